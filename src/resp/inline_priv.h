/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of an inline command, unquoted in place: what a word means is never longer than how it
 * is written. Rules, as Redis's:
 *   - words are parted by blank, tab, CR, LF; VT and FF are skipped before a word, kept inside it;
 *   - "..." knows \n \r \t \b \a \xHH and \c for any other c; '...' knows \' only;
 *   - a quote may open inside a word; a closing one must be followed by white space or the end.
 * A NUL is a byte like others. */
#ifndef RESP_INLINE_PRIV_H
#define RESP_INLINE_PRIV_H

#include "base/bytes.h"

enum inline_event { INLINE_WORD, INLINE_END, INLINE_UNBALANCED };

/* The unread rest of the line. */
struct inline_line {
    char *at, *end;
};

enum inline_event inline_next(struct inline_line *line, struct bytes *word);

#endif
