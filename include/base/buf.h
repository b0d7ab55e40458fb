/* SPDX-License-Identifier: BSD-3-Clause */
/* A growable run of bytes. Zero-initialised is a valid empty buffer; buf_deinit frees it.
 * Growth is ×2 up to 1 MiB, then ×1.25, so appends are amortized O(1). A failed growth leaves the
 * buffer as before and sets `failed`, which stays set until buf_clear: a writer may append many
 * pieces and ask once. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/bytes.h"
#include "base/status.h"

struct buf {
    char *ptr;
    size_t len;
    size_t cap;
    bool failed; /* an append was dropped for want of memory */
};

void buf_deinit(struct buf *b);

/* Empty the buffer; keeps its memory. */
void buf_clear(struct buf *b);

/* Make room for extra_len more bytes behind len. */
MUST_CHECK enum status buf_reserve(struct buf *b, size_t extra_len);

/* Room for extra_len bytes behind len, NULL on failure; commit with b->len += written. */
char *buf_tail(struct buf *b, size_t extra_len);

void buf_append(struct buf *b, const void *ptr, size_t len);
void buf_append_cstr(struct buf *b, const char *s);
void buf_append_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Drop the first n bytes. */
void buf_consume(struct buf *b, size_t n);

static inline struct bytes buf_bytes(const struct buf *b) {
    return BYTES(b->ptr, b->len);
}

#endif
