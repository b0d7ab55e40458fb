/* SPDX-License-Identifier: BSD-3-Clause */
/* A host for one value: what a key's record is to it, as an allocation of its own of exactly the
 * value's length, so that a sanitizer sees every byte beyond. Shared by the tests of the types. */
#ifndef TESTS_TYPES_HOST_H
#define TESTS_TYPES_HOST_H

#include <stdlib.h>

#include "base/rng.h"
#include "mem/account.h"
#include "types/value.h"

struct held {
    struct value v;
    struct value_host host;
    struct type_env env;
    size_t len_max; /* a longer value does not fit the record */
    size_t resizes;
};

static enum status held_resize(struct value *v, enum value_encoding encoding, size_t len) {
    struct held *h = CONTAINER_OF(v, struct held, v);
    if (len > h->len_max) {
        return ST_RANGE;
    }
    char *data = account_alloc(ACCOUNT_OTHER, len);
    if (data == NULL) {
        return ST_NOMEM;
    }
    size_t kept_len = len < v->len ? len : v->len;
    if (kept_len != 0) {
        memcpy(data, v->data, kept_len);
    }
    account_free(ACCOUNT_OTHER, v->data);
    v->data = data;
    v->len = len;
    v->encoding = encoding;
    h->resizes++;
    return ST_OK;
}

static inline struct pages *held_pages(size_t chunk_bytes) {
    struct pages *pages;
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = chunk_bytes};
    if (pages_create(&options, &pages) != ST_OK) {
        abort();
    }
    return pages;
}

/* Hold an image as a key's record would. */
static inline void held_init(struct held *h, enum value_type type, const struct value_image *image,
                             const struct type_env *env) {
    *h = (struct held){.env = *env, .len_max = 60000};
    h->host = (struct value_host){.resize = held_resize, .env = &h->env};
    h->v = (struct value){.type = type, .encoding = image->encoding, .host = &h->host};
    h->v.len = image->data.len;
    h->v.data = account_alloc(ACCOUNT_OTHER, image->data.len);
    if (h->v.data == NULL) {
        abort();
    }
    if (image->data.len != 0) {
        memcpy(h->v.data, image->data.ptr, image->data.len);
    }
}

static inline void held_deinit(struct held *h) {
    if (h->v.encoding == VALUE_HEAP) {
        value_free(h->v.type, value_object(&h->v));
    }
    account_free(ACCOUNT_OTHER, h->v.data);
}

/* Sum of all that types and this host hold: 0 once everything is freed. */
static inline size_t held_total_bytes(void) {
    size_t sum = 0;
    for (int tag = 0; tag < ACCOUNT_TAGS; tag++) {
        sum += account_bytes((enum account_tag)tag);
    }
    return sum;
}

/* What objects hold; the rest belongs to records and to mem/pages. */
static inline size_t held_object_bytes(void) {
    return account_bytes(ACCOUNT_VALUE) + account_bytes(ACCOUNT_INDEX) +
           account_bytes(ACCOUNT_ARENA);
}

/* Bytes that depend on a number only: two numbers give different ones, all lengths work. */
static inline void fill_pattern(char *p, size_t len, uint64_t seed) {
    uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (size_t i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        p[i] = (char)(x >> 32);
    }
}

#endif
