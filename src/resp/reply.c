/* SPDX-License-Identifier: BSD-3-Clause */
#include "resp/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"

#define HEADER_MAX (1 + NUMBER_I64_MAX_LEN + 2) /* type byte, digits, CRLF */
#define DEFER_GAP 4                             /* "*9\r\n": the header of a short aggregate */
#define DOUBLE_MAX_LEN 32
#define ERROR_STACK_LEN 512 /* error texts up to here need no second buffer */

/* ---- pieces ---- */

/* Room for n bytes, or NULL with out->failed set. */
static ALWAYS_INLINE char *room(struct buf *out, size_t n) {
    if (LIKELY(out->cap - out->len >= n)) {
        return out->ptr + out->len;
    }
    return buf_tail(out, n);
}

static ALWAYS_INLINE char *put_crlf(char *p) {
    memcpy(p, "\r\n", 2);
    return p + 2;
}

/* Lengths are mostly below 1000: those are written digit by digit, without the general loop. */
static ALWAYS_INLINE char *put_u64(char *p, uint64_t v) {
    if (LIKELY(v < 10)) {
        *p = (char)('0' + v);
        return p + 1;
    }
    if (v < 100) {
        p[0] = (char)('0' + v / 10);
        p[1] = (char)('0' + v % 10);
        return p + 2;
    }
    if (v < 1000) {
        p[0] = (char)('0' + v / 100);
        p[1] = (char)('0' + v / 10 % 10);
        p[2] = (char)('0' + v % 10);
        return p + 3;
    }
    return p + number_format_u64(p, v);
}

/* "<type><v>CRLF" at p, which has HEADER_MAX bytes. */
static ALWAYS_INLINE char *put_header(char *p, char type, uint64_t v) {
    *p++ = type;
    return put_crlf(put_u64(p, v));
}

static ALWAYS_INLINE void commit(struct buf *out, const char *end) {
    out->len = (size_t)(end - out->ptr);
}

static void append_header(struct reply *r, char type, uint64_t v) {
    char *p = room(r->out, HEADER_MAX);
    if (p != NULL) {
        commit(r->out, put_header(p, type, v));
    }
}

/* "<type><text>CRLF" */
static void append_line(struct reply *r, char type, const char *text, size_t len) {
    char *p = room(r->out, len + 3);
    if (p != NULL) {
        *p = type;
        memcpy(p + 1, text, len);
        commit(r->out, put_crlf(p + 1 + len));
    }
}

static char aggregate_type(const struct reply *r, char resp3_type) {
    return r->proto >= 3 ? resp3_type : '*';
}

/* ---- scalars ---- */

void reply_simple(struct reply *r, const char *text) {
    append_line(r, '+', text, strlen(text));
}

void reply_ok(struct reply *r) {
    append_line(r, '+', "OK", 2);
}

static void append_error(struct reply *r, const char *text, size_t len) {
    while (len > 0 && (text[len - 1] == '\r' || text[len - 1] == '\n')) {
        len--;
    }
    size_t at = r->out->len;
    append_line(r, '-', text, len);
    if (r->out->len == at) {
        return;
    }
    char *body = r->out->ptr + at + 1;
    for (size_t i = 0; i < len; i++) {
        if (body[i] == '\r' || body[i] == '\n') {
            body[i] = ' ';
        }
    }
}

void reply_error(struct reply *r, const char *text) {
    append_error(r, text, strlen(text));
}

void reply_errorf(struct reply *r, const char *fmt, ...) {
    char stack[ERROR_STACK_LEN];
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(stack, sizeof(stack), fmt, ap);
    va_end(ap);
    if (len < 0) {
        append_error(r, "ERR", 3);
        return;
    }
    if ((size_t)len < sizeof(stack)) {
        append_error(r, stack, (size_t)len);
        return;
    }
    char *text = malloc((size_t)len + 1);
    if (text == NULL) { /* the error is worth more than its tail */
        append_error(r, stack, sizeof(stack) - 1);
        return;
    }
    va_start(ap, fmt);
    vsnprintf(text, (size_t)len + 1, fmt, ap);
    va_end(ap);
    append_error(r, text, (size_t)len);
    free(text);
}

void reply_integer(struct reply *r, int64_t v) {
    char *p = room(r->out, HEADER_MAX);
    if (p == NULL) {
        return;
    }
    if (LIKELY(v >= 0)) {
        commit(r->out, put_header(p, ':', (uint64_t)v));
        return;
    }
    *p = ':';
    commit(r->out, put_crlf(p + 1 + number_format_i64(p + 1, v)));
}

void reply_bulk(struct reply *r, struct bytes b) {
    if (UNLIKELY(b.len > SIZE_MAX / 4)) {
        r->out->failed = true;
        return;
    }
    char *p = room(r->out, HEADER_MAX + b.len + 2);
    if (p == NULL) {
        return;
    }
    p = put_header(p, '$', b.len);
    if (b.len != 0) {
        memcpy(p, b.ptr, b.len);
    }
    commit(r->out, put_crlf(p + b.len));
}

void reply_bulk_cstr(struct reply *r, const char *s) {
    reply_bulk(r, bytes_from_cstr(s));
}

void reply_bulk_i64(struct reply *r, int64_t v) {
    char digits[NUMBER_I64_MAX_LEN];
    reply_bulk(r, BYTES(digits, number_format_i64(digits, v)));
}

void reply_null(struct reply *r) {
    if (r->proto >= 3) {
        append_line(r, '_', "", 0);
    } else {
        append_line(r, '$', "-1", 2);
    }
}

void reply_null_array(struct reply *r) {
    if (r->proto >= 3) {
        append_line(r, '_', "", 0);
    } else {
        append_line(r, '*', "-1", 2);
    }
}

void reply_double(struct reply *r, double v) {
    char digits[DOUBLE_MAX_LEN];
    size_t len = number_format_double(digits, v);
    if (r->proto >= 3) {
        append_line(r, ',', digits, len);
    } else {
        reply_bulk(r, BYTES(digits, len));
    }
}

void reply_bool(struct reply *r, bool v) {
    if (r->proto >= 3) {
        append_line(r, '#', v ? "t" : "f", 1);
    } else {
        append_line(r, ':', v ? "1" : "0", 1);
    }
}

void reply_verbatim(struct reply *r, const char ext[3], struct bytes text) {
    if (r->proto < 3) {
        reply_bulk(r, text);
        return;
    }
    if (UNLIKELY(text.len > SIZE_MAX / 4)) {
        r->out->failed = true;
        return;
    }
    char *p = room(r->out, HEADER_MAX + 4 + text.len + 2);
    if (p == NULL) {
        return;
    }
    p = put_header(p, '=', text.len + 4);
    memcpy(p, ext, 3);
    p[3] = ':';
    if (text.len != 0) {
        memcpy(p + 4, text.ptr, text.len);
    }
    commit(r->out, put_crlf(p + 4 + text.len));
}

void reply_big_number(struct reply *r, struct bytes digits) {
    if (r->proto >= 3) {
        append_line(r, '(', digits.ptr, digits.len);
    } else {
        reply_bulk(r, digits);
    }
}

/* ---- aggregates ---- */

void reply_array(struct reply *r, size_t n) {
    append_header(r, '*', n);
}

void reply_map(struct reply *r, size_t pairs) {
    append_header(r, aggregate_type(r, '%'), r->proto >= 3 ? pairs : pairs * 2);
}

void reply_set(struct reply *r, size_t n) {
    append_header(r, aggregate_type(r, '~'), n);
}

void reply_push(struct reply *r, size_t n) {
    append_header(r, aggregate_type(r, '>'), n);
}

size_t reply_defer(struct reply *r) {
    size_t mark = r->out->len;
    if (room(r->out, DEFER_GAP) != NULL) {
        r->out->len += DEFER_GAP;
    }
    return mark;
}

/* Replace the gap at mark by the header. */
static void finish(struct reply *r, size_t mark, char type, size_t n) {
    struct buf *out = r->out;
    char header[HEADER_MAX];
    size_t len = (size_t)(put_header(header, type, n) - header);
    if (out->failed || out->len < mark + DEFER_GAP || room(out, HEADER_MAX) == NULL) {
        return;
    }
    char *gap = out->ptr + mark;
    if (len != DEFER_GAP) {
        memmove(gap + len, gap + DEFER_GAP, out->len - mark - DEFER_GAP);
        out->len += len - DEFER_GAP;
    }
    memcpy(gap, header, len);
}

void reply_defer_array(struct reply *r, size_t mark, size_t n) {
    finish(r, mark, '*', n);
}

void reply_defer_map(struct reply *r, size_t mark, size_t pairs) {
    finish(r, mark, aggregate_type(r, '%'), r->proto >= 3 ? pairs : pairs * 2);
}

void reply_defer_set(struct reply *r, size_t mark, size_t n) {
    finish(r, mark, aggregate_type(r, '~'), n);
}
