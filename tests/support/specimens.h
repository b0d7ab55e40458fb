/* SPDX-License-Identifier: BSD-3-Clause */
/* Specimens: one key of every type in every form a server stores and writes it in, small and large,
 * for tests that carry values from one server to another. */
#ifndef SUPPORT_SPECIMENS_H
#define SUPPORT_SPECIMENS_H

#include "support/client.h"

size_t specimens_count(void);

/* The key's name, which says what it is: "zset of 5000 short texts". */
const char *specimen_key(size_t i);

/* Make all of them in the client's database. */
void specimens_load(struct client *c);

/* What is under any such key, in RESP2, order of fields and members and the digits of scores aside:
 * equal texts are equal values. The caller frees it. */
char *value_text(struct client *c, const char *key);

#endif
