/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of databases and short ways to fill and read them. Shared by the tests of the layer. */
#ifndef TESTS_DB_FIXTURE_H
#define TESTS_DB_FIXTURE_H

#include <stdlib.h>

#include "base/hash.h"
#include "db/db.h"
#include "mem/account.h"
#include "types/hash.h"
#include "types/list.h"
#include "types/string.h"

#define SMALL_CHUNK ((size_t)64 << 10)
#define LARGE_CHUNK ((size_t)2 << 20)
#define DATABASES 4
#define NOW INT64_C(1700000000000)

struct fixture {
    struct pages *pages;
    struct dbset *set;
};

static inline size_t total_bytes(void) {
    size_t sum = 0;
    for (int tag = 0; tag < ACCOUNT_TAGS; tag++) {
        sum += account_bytes((enum account_tag)tag);
    }
    return sum;
}

static inline void create(struct fixture *f, size_t chunk_bytes, size_t entries_max,
                          size_t element_max) {
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = chunk_bytes};
    assert_int_equal(pages_create(&options, &f->pages), ST_OK);
    struct type_env env = {.pages = f->pages,
                           .hash_packed_entries_max = entries_max,
                           .hash_packed_element_max = element_max};
    assert_int_equal(dbset_create(&env, DATABASES, &f->set), ST_OK);
    f->set->now_ms = NOW;
}

static inline void check_all(struct fixture *f) {
    for (size_t i = 0; i < f->set->count; i++) {
        db_check(f->set->dbs[i]);
    }
}

static inline void destroy(struct fixture *f) {
    struct pages_stats stats;
    check_all(f);
    dbset_destroy(f->set);
    pages_get_stats(f->pages, &stats);
    assert_int_equal(stats.chunks, 0);
    pages_destroy(f->pages);
    assert_int_equal(total_bytes(), 0);
}

/* ---- bytes --------------------------------------------------------------------------------- */

/* Made from a number, in one of a few buffers so that two or three can be had at once. */
static inline struct bytes bytes_of(uint64_t seed, size_t len) {
    static char *buffers[4];
    static unsigned next;
    char **p = &buffers[next++ % ARRAY_LEN(buffers)];
    *p = realloc(*p, len + 1);
    assert_non_null(*p);
    uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (size_t i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (*p)[i] = (char)(x >> 32 | 0x80); /* never a number */
    }
    return BYTES(*p, len);
}

static inline struct bytes number(char *text, uint64_t n) {
    return BYTES(text, number_format_u64(text, n));
}

/* ---- keys ---------------------------------------------------------------------------------- */

static inline bool find(struct db *db, struct bytes key, struct entry *e) {
    return db_find(db, key, hash_bytes(key), DB_NO_TOUCH, e);
}

/* SET without asking what was there. */
static inline enum status try_put(struct db *db, struct bytes key, struct bytes text,
                                  int64_t expire_ms) {
    struct value_image image;
    struct entry e;
    enum status st = string_image(text, NULL, &image);
    if (st != ST_OK) {
        return st;
    }
    st = find(db, key, &e) ? entry_replace(&e, VALUE_STRING, &image, expire_ms)
                           : db_add(db, key, hash_bytes(key), VALUE_STRING, &image, expire_ms, &e);
    if (st != ST_OK) {
        value_image_discard(VALUE_STRING, &image);
    }
    return st;
}

static inline void put(struct db *db, struct bytes key, struct bytes text, int64_t expire_ms) {
    assert_int_equal(try_put(db, key, text, expire_ms), ST_OK);
}

static inline void add_hash(struct db *db, struct bytes key, int64_t expire_ms, struct entry *e) {
    struct value_image image = {.encoding = VALUE_PACKED,
                                .data = BYTES(hash_empty, HASH_EMPTY_LEN)};
    assert_int_equal(db_add(db, key, hash_bytes(key), VALUE_HASH, &image, expire_ms, e), ST_OK);
}

static inline void assert_text(struct db *db, struct bytes key, struct bytes expected,
                               int64_t expire_ms) {
    struct entry e;
    char scratch[STRING_SCRATCH_LEN];
    assert_true(find(db, key, &e));
    assert_int_equal(e.value.type, VALUE_STRING);
    assert_int_equal(e.expire_ms, expire_ms);
    assert_int_equal(e.key.len, key.len);
    assert_true(bytes_equal(e.key, key));
    struct bytes text = string_text(&e.value, scratch);
    assert_int_equal(text.len, expected.len);
    assert_true(bytes_equal(text, expected));
}

static inline void assert_absent(struct db *db, struct bytes key) {
    struct entry e;
    assert_false(find(db, key, &e));
}

/* Fail the first, second, third ... allocation of `call` until it succeeds; `unchanged` is run after
 * each failure. `fails` counts them. */
#define UNTIL_IT_SUCCEEDS(fails, call, unchanged)                                                  \
    do {                                                                                           \
        size_t value_bytes_before = account_bytes(ACCOUNT_VALUE);                                  \
        for (size_t nth = 1;; nth++) {                                                             \
            account_fail_after(nth);                                                               \
            enum status st_ = (call);                                                              \
            account_fail_after(0);                                                                 \
            if (st_ == ST_OK) {                                                                    \
                break;                                                                             \
            }                                                                                      \
            (fails)++;                                                                             \
            assert_int_equal(st_, ST_NOMEM);                                                       \
            assert_int_equal(account_bytes(ACCOUNT_VALUE), value_bytes_before);                    \
            unchanged;                                                                             \
            assert_true(nth < 200);                                                                \
        }                                                                                          \
    } while (0)

#endif
