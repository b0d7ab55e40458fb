/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/number.h"
#include "writer_priv.h"

/* The entry's own length, to be read backward: 7 bits a byte, high ones first. */
static size_t backward_len(char *p, size_t entry_len) {
    if (LIKELY(entry_len <= 127)) {
        p[0] = (char)entry_len;
        return 1;
    }
    size_t size = 1;
    for (size_t rest = entry_len >> 7; rest != 0; rest >>= 7) {
        size++;
    }
    for (size_t i = 0; i < size; i++) {
        size_t bits = entry_len >> 7 * (size - 1 - i) & 0x7F;
        p[i] = (char)(i == 0 ? bits : bits | 0x80);
    }
    return size;
}

static void put_little(char *p, uint64_t v, size_t size) {
    for (size_t i = 0; i < size; i++) {
        p[i] = (char)(v >> 8 * i);
    }
}

void listpack_begin(struct buf *b) {
    buf_clear(b);
    buf_append(b, "\0\0\0\0\0", 6);
}

void listpack_put_i64(struct buf *b, int64_t n) {
    char *p = buf_tail(b, 10);
    if (p == NULL) {
        return;
    }
    uint64_t u = (uint64_t)n;
    size_t len;
    if (n >= 0 && n <= 127) {
        p[0] = (char)n;
        len = 1;
    } else if (n >= -4096 && n <= 4095) {
        p[0] = (char)(0xC0 | (u >> 8 & 0x1F));
        p[1] = (char)u;
        len = 2;
    } else {
        size_t size = n >= INT16_MIN && n <= INT16_MAX   ? 2
                      : n >= -(1 << 23) && n < (1 << 23) ? 3
                      : n >= INT32_MIN && n <= INT32_MAX ? 4
                                                         : 8;
        p[0] = (char)(size == 8 ? 0xF4 : 0xEF + size);
        put_little(p + 1, u, size);
        len = 1 + size;
    }
    b->len += len + backward_len(p + len, len);
}

static void put_text(struct buf *b, struct bytes s) {
    char *p = buf_tail(b, s.len + 10);
    if (p == NULL) {
        return;
    }
    size_t head;
    if (s.len <= 63) {
        p[0] = (char)(0x80 | s.len);
        head = 1;
    } else if (s.len <= 4095) {
        p[0] = (char)(0xE0 | s.len >> 8);
        p[1] = (char)s.len;
        head = 2;
    } else {
        p[0] = (char)0xF0;
        put_little(p + 1, s.len, 4);
        head = 5;
    }
    if (s.len != 0) {
        memcpy(p + head, s.ptr, s.len);
    }
    size_t len = head + s.len;
    b->len += len + backward_len(p + len, len);
}

void listpack_put(struct buf *b, struct bytes element) {
    int64_t n;
    if (may_be_integer(element, NUMBER_I64_MAX_LEN) && number_parse_i64(element, &n)) {
        listpack_put_i64(b, n);
    } else {
        put_text(b, element);
    }
}

void listpack_end(struct buf *b, size_t count) {
    buf_append_char(b, (char)0xFF);
    if (!b->failed) {
        put_little(b->ptr, b->len, 4);
        put_little(b->ptr + 4, count < UINT16_MAX ? count : UINT16_MAX, 2);
    }
}
