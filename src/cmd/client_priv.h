/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and lines of text that a client may give itself. */
#ifndef CMD_CLIENT_PRIV_H
#define CMD_CLIENT_PRIV_H

#include "base/bytes.h"

struct call;

/* Only '!' to '~': no blanks, no control bytes, nothing outside ASCII. Empty is plain. */
bool client_text_is_plain(struct bytes text);

/* client_text_is_plain, or false with the error replied. */
MUST_CHECK bool client_name_check(struct call *call, struct bytes name);

/* Replace *field by a copy; an empty text makes it NULL. False: no memory, *field as before. */
MUST_CHECK bool client_text_set(char **field, struct bytes text);

#endif
