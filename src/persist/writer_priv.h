/* SPDX-License-Identifier: BSD-3-Clause */
/* The pieces of a file, and how values are made of them; seen by persist/writer*.c only. */
#ifndef PERSIST_WRITER_PRIV_H
#define PERSIST_WRITER_PRIV_H

#include "persist/format.h"
#include "persist/writer.h"

#define PUT_LEN_MAX 9 /* the longest length, opcode or integer string */

struct writer {
    struct writer_options options;
    enum status st; /* the first failure */
    char *buffer;
    size_t len, cap;
    uint64_t crc; /* of what went to the sink */
    uint64_t sunk_bytes, keys;
    struct buf packed; /* a listpack or intset under construction */
    char *lzf;         /* output of the last compression */
    size_t lzf_cap;
};

/* ---- pieces (writer.c) ---------------------------------------------------------------------- */

/* Hand the buffer over. False after any failure. */
bool put_flush(struct writer *w);

/* Room for len <= PUT_LEN_MAX bytes at the returned address; commit by w->len. NULL after a failure. */
static inline char *put_room(struct writer *w, size_t len) {
    if (UNLIKELY(w->cap - w->len < len) && !put_flush(w)) {
        return NULL;
    }
    return w->buffer + w->len;
}

void put_bytes(struct writer *w, const void *ptr, size_t len);
void put_byte(struct writer *w, unsigned char byte);
void put_u64(struct writer *w, uint64_t v); /* 8 bytes, little-endian */
void put_double(struct writer *w, double v);
void put_len(struct writer *w, uint64_t len);

/* In the shortest form: an integer, compressed when that is on, or plain. */
void put_string(struct writer *w, struct bytes s);
/* The same for what is never an integer's decimal form. */
void put_blob(struct writer *w, struct bytes s);

/* ---- values (writer_value.c) ---------------------------------------------------------------- */

/* The form in which a value is written. */
enum rdb_type put_value_type(const struct value *v);
void put_value(struct writer *w, const struct value *v, enum rdb_type type);

/* ---- listpacks (listpack.c) ----------------------------------------------------------------- */

/* A listpack under construction in b, which is empty before. */
void listpack_begin(struct buf *b);
void listpack_put(struct buf *b, struct bytes element);
void listpack_put_i64(struct buf *b, int64_t n);
void listpack_end(struct buf *b, size_t count);

#define LISTPACK_EMPTY_LEN 7

/* The most that an element of len bytes takes in a listpack; len < 16 KiB. */
static inline size_t listpack_cost(size_t len) {
    size_t head = len <= 63 ? 1 : len <= 4095 ? 2 : 5;
    return head + len + (head + len <= 127 ? 1 : 2);
}

/* True when s may be an integer's decimal form: a look at its first byte and length. */
static inline bool may_be_integer(struct bytes s, size_t len_max) {
    return s.len != 0 && s.len <= len_max &&
           ((unsigned char)(s.ptr[0] - '0') <= 9 || (s.ptr[0] == '-' && s.len > 1));
}

#endif
