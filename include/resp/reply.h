/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies: what a command answers, appended to a buffer in the connection's protocol.
 *
 * One call appends one RESP value (or one header, for aggregates: the caller then appends the
 * elements). Each function knows both protocols and picks by r->proto, so a handler says what it
 * means ("a map of n pairs") and never asks which protocol is spoken:
 *
 *     call                RESP2              RESP3
 *     simple, ok          +OK                +OK
 *     error               -ERR text          -ERR text
 *     integer             :n                 :n
 *     bulk                $len bytes         $len bytes
 *     null                $-1                _
 *     null_array          *-1                _
 *     array               *n                 *n
 *     map                 *2n                %n
 *     set                 *n                 ~n
 *     push                *n                 >n
 *     double              $len digits        ,digits
 *     bool                :1 or :0           #t or #f
 *     verbatim            $len text          =len+4 ext:text
 *     big_number          $len digits        (digits
 *
 * Pure functions over memory: no socket, no allocation but the buffer's growth. When that growth
 * fails the rest is dropped and r->out->failed stays set; the owner asks once, when the command is
 * done, and gives up the connection, since its stream is no longer whole.
 * Cost: one room check and one pass over the bytes each; header numbers are written from a table
 * of digit pairs.
 * Protocol: redis.io "RESP protocol specification"; number forms as Redis 7.2 sends them. */
#ifndef RESP_REPLY_H
#define RESP_REPLY_H

#include "base/buf.h"
#include "base/bytes.h"

struct reply {
    struct buf *out; /* borrowed */
    int proto;       /* 2 or 3 */
};

/* "+text". The text holds no CR or LF. */
void reply_simple(struct reply *r, const char *text);
void reply_ok(struct reply *r);

/* "-text": the text starts with its code word ("ERR syntax error"), without the '-'. CR and LF
 * inside become blanks, at the end they are cut, so client bytes quoted in an error cannot forge
 * a reply. */
void reply_error(struct reply *r, const char *text);
void reply_errorf(struct reply *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

void reply_integer(struct reply *r, int64_t v);

void reply_bulk(struct reply *r, struct bytes b);
void reply_bulk_cstr(struct reply *r, const char *s);
/* The decimal digits of v as a bulk. */
void reply_bulk_i64(struct reply *r, int64_t v);

void reply_null(struct reply *r);
void reply_null_array(struct reply *r);

/* Headers; n (or pairs x 2) values must follow. */
void reply_array(struct reply *r, size_t n);
void reply_map(struct reply *r, size_t pairs);
void reply_set(struct reply *r, size_t n);
void reply_push(struct reply *r, size_t n);

/* The shortest digits that read back as the same double; inf, -inf and nan as words. */
void reply_double(struct reply *r, double v);
void reply_bool(struct reply *r, bool v);

/* Text with its kind, three letters: "txt" or "mkd". */
void reply_verbatim(struct reply *r, const char ext[3], struct bytes text);

/* Decimal digits with an optional sign, of any length. */
void reply_big_number(struct reply *r, struct bytes digits);

/* An aggregate whose length is known only at the end: remember a mark, append the elements, then
 * put the header in. Marks nest: the one taken last is finished first. The bytes behind the mark
 * move by a few places unless n < 10 (one memmove, a small part of what writing them cost). */
MUST_CHECK size_t reply_defer(struct reply *r);
void reply_defer_array(struct reply *r, size_t mark, size_t n);
void reply_defer_map(struct reply *r, size_t mark, size_t pairs);
void reply_defer_set(struct reply *r, size_t mark, size_t n);

#endif
