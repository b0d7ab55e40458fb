/* SPDX-License-Identifier: BSD-3-Clause */
/* A decoded reply of either protocol, and its canonical text.
 *
 * Debian's hiredis (0.14) decodes RESP2 only, so the tests that compare RESP3 replies bring this
 * small tree of their own; hiredis still formats the commands and serves as a real client.
 *
 * The canonical text names every type, so that two replies are the same exactly when their texts
 * are:
 *   +OK  -ERR text  :12  "bulk\x00"  nil (RESP2 null bulk)  nil* (RESP2 null array)  null (RESP3)
 *   ,1.5  #t  (123  =txt:"verbatim"  [a b] array  {k v k v} map  ~[a b] set  >[a b] push */
#ifndef SUPPORT_REPLY_H
#define SUPPORT_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* type is the first byte on the wire; a null has is_null set and its own type byte. */
struct reply {
    char type;
    bool is_null;
    int64_t integer;         /* ':' and '#' (0 or 1) */
    char *str;               /* '+' '-' '$' ',' '(' '=': NUL-terminated behind len bytes */
    size_t len;              /* bytes of str */
    struct reply **elements; /* '*' '%' '~' '>': a map holds key, value, key, value */
    size_t count;
};

void reply_free(struct reply *r);

/* The canonical text; the caller frees it. A NULL reply is "(no reply)". */
char *reply_text(const struct reply *r);

/* Sort the elements of an aggregate by their canonical text, in groups of `width` (1 for a list of
 * names, 2 for the flat pairs of HGETALL and for maps), so that unordered replies compare equal. */
void reply_sort(struct reply *r, size_t width);

static inline bool reply_is_error(const struct reply *r) {
    return r && r->type == '-';
}

static inline bool reply_is_aggregate(const struct reply *r) {
    return r && (r->type == '*' || r->type == '%' || r->type == '~' || r->type == '>');
}

/* Bytes as readable text: printable characters stay, the others become \xNN. Cut at max bytes with
 * the whole length named. The caller frees it. */
char *bytes_text(const char *ptr, size_t len, size_t max);

#endif
