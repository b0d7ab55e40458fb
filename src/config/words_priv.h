/* SPDX-License-Identifier: BSD-3-Clause */
/* One line of a configuration file as words: blanks part them, "double quotes" take the escapes
 * \n \r \t \b \a \xHH and \any, 'single quotes' only \'. A closing quote ends its word. */
#ifndef CONFIG_WORDS_PRIV_H
#define CONFIG_WORDS_PRIV_H

#include "base/buf.h"

/* Zero-initialised is empty. The words are views into text. */
struct words {
    struct bytes *items;
    size_t count;
    struct buf text;
};

void words_deinit(struct words *w);

/* Replace w's words by those of line. ST_SYNTAX: a quote is not closed, or something follows it
 * without a blank. ST_NOMEM. */
MUST_CHECK enum status words_split(struct words *w, struct bytes line);

#endif
