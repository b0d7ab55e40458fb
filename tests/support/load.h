/* SPDX-License-Identifier: BSD-3-Clause */
/* Bulk loads whose every value can be recomputed, for tests of memory and of reads after trouble.
 *
 * Entry i of generation g is named "field:<i>" and its value is a function of (i, g, min, max); so
 * a reader needs no copy of what was written. Requests go out in pipelines; a batch of replies is
 * read before the next goes out. */
#ifndef SUPPORT_LOAD_H
#define SUPPORT_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "support/client.h"

enum load_kind { LOAD_HASH /* fields of the hash "big" */, LOAD_STRINGS /* keys */ };

struct load {
    struct client *client;
    enum load_kind kind;
    uint32_t value_min_len, value_max_len; /* 4096 at most */
    uint64_t errors;                       /* replies that were errors (OOM), not failures */
};

/* Write entries [from, to) of a generation. */
void load_write(struct load *l, uint64_t from, uint64_t to, uint32_t generation);

/* Remove every entry of [from, to) with i % step == 0. */
void load_remove(struct load *l, uint64_t from, uint64_t to, uint64_t step);

/* Read [from, to) and count the entries that are not what the generation wrote. Entries with
 * i % gone_step == 0 must be absent (0: none). */
uint64_t load_verify(struct load *l, uint64_t from, uint64_t to, uint32_t generation,
                     uint64_t gone_step);

#endif
