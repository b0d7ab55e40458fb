/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BUF_MIN_CAP 64
#define BUF_DOUBLE_UNTIL ((size_t)1 << 20)

void buf_deinit(struct buf *b) {
    free(b->ptr);
    *b = (struct buf){0};
}

void buf_clear(struct buf *b) {
    b->len = 0;
    b->failed = false;
}

enum status buf_reserve(struct buf *b, size_t extra_len) {
    if (extra_len <= b->cap - b->len) {
        return ST_OK;
    }
    if (extra_len > SIZE_MAX / 2 - b->len) {
        b->failed = true;
        return ST_NOMEM;
    }
    size_t need = b->len + extra_len;
    size_t cap = b->cap < BUF_DOUBLE_UNTIL ? b->cap * 2 : b->cap + b->cap / 4;
    cap = cap < need ? need : cap;
    cap = cap < BUF_MIN_CAP ? BUF_MIN_CAP : cap;
    char *ptr = realloc(b->ptr, cap);
    if (ptr == NULL) {
        b->failed = true;
        return ST_NOMEM;
    }
    b->ptr = ptr;
    b->cap = cap;
    return ST_OK;
}

char *buf_tail(struct buf *b, size_t extra_len) {
    return buf_reserve(b, extra_len) == ST_OK ? b->ptr + b->len : NULL;
}

void buf_append(struct buf *b, const void *ptr, size_t len) {
    if (len == 0) {
        return; /* ptr may still be NULL */
    }
    char *tail = buf_tail(b, len);
    if (tail != NULL) {
        memcpy(tail, ptr, len);
        b->len += len;
    }
}

void buf_append_cstr(struct buf *b, const char *s) {
    buf_append(b, s, strlen(s));
}

void buf_append_char(struct buf *b, char c) {
    buf_append(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (len > 0) {
        char *tail = buf_tail(b, (size_t)len + 1);
        if (tail != NULL) {
            vsnprintf(tail, (size_t)len + 1, fmt, again);
            b->len += (size_t)len;
        }
    }
    va_end(again);
}

void buf_consume(struct buf *b, size_t n) {
    assert(n <= b->len);
    b->len -= n;
    if (b->len != 0 && n != 0) {
        memmove(b->ptr, b->ptr + n, b->len);
    }
}
