/* SPDX-License-Identifier: BSD-3-Clause */
/* Databases that are filled, written to memory or a file, read back and compared. Shared by the
 * tests of the layer. */
#ifndef TESTS_PERSIST_FIXTURE_H
#define TESTS_PERSIST_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "db/db.h"
#include "mem/account.h"
#include "persist/reader.h"
#include "persist/writer.h"
#include "types/hash.h"
#include "types/list.h"
#include "types/set.h"
#include "types/string.h"
#include "types/zset.h"

#define DATABASES 16
#define NOW INT64_C(1700000000000)
#define FAR INT64_C(4100000000123) /* 2099 */

struct store {
    struct pages *pages;
    struct dbset *set;
};

static inline void store_create(struct store *s) {
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)2 << 20};
    assert_int_equal(pages_create(&options, &s->pages), ST_OK);
    struct type_env env = {.pages = s->pages,
                           .hash_packed_entries_max = 128,
                           .hash_packed_element_max = 64,
                           .set_int_entries_max = 512,
                           .set_packed_entries_max = 128,
                           .set_packed_element_max = 64,
                           .zset_packed_entries_max = 128,
                           .zset_packed_element_max = 64};
    list_limits(-2, &env);
    assert_int_equal(dbset_create(&env, DATABASES, &s->set), ST_OK);
    s->set->now_ms = NOW;
}

static inline void store_destroy(struct store *s) {
    for (size_t i = 0; i < s->set->count; i++) {
        db_check(s->set->dbs[i]);
    }
    dbset_destroy(s->set);
    pages_destroy(s->pages);
}

static inline size_t total_bytes(void) {
    size_t sum = 0;
    for (int tag = 0; tag < ACCOUNT_TAGS; tag++) {
        sum += account_bytes((enum account_tag)tag);
    }
    return sum;
}

/* ---- filling -------------------------------------------------------------------------------- */

/* The value of a key, made empty of that type first when it is not there. */
static inline struct value *value_of(struct store *s, size_t db, const char *name,
                                     enum value_type type, struct entry *e) {
    struct bytes key = bytes_from_cstr(name);
    struct db *d = s->set->dbs[db];
    if (!db_find(d, key, hash_bytes(key), DB_NO_TOUCH, e)) {
        struct value_image image = {.encoding = VALUE_PACKED};
        image.data = type == VALUE_LIST   ? BYTES(list_empty, LIST_EMPTY_LEN)
                     : type == VALUE_HASH ? BYTES(hash_empty, HASH_EMPTY_LEN)
                                          : BYTES(zset_empty, ZSET_EMPTY_LEN);
        if (type == VALUE_SET) {
            set_empty_image(true, &image);
        }
        assert_int_equal(db_add(d, key, hash_bytes(key), type, &image, DB_NO_EXPIRY, e), ST_OK);
    }
    assert_int_equal(e->value.type, type);
    return &e->value;
}

static inline void put_text_of(struct store *s, size_t db, struct bytes key, struct bytes text,
                               int64_t expire_ms) {
    struct value_image image;
    struct entry e;
    assert_int_equal(string_image(text, NULL, &image), ST_OK);
    assert_int_equal(
        db_add(s->set->dbs[db], key, hash_bytes(key), VALUE_STRING, &image, expire_ms, &e), ST_OK);
}

static inline void put(struct store *s, size_t db, const char *key, struct bytes text,
                       int64_t expire_ms) {
    put_text_of(s, db, bytes_from_cstr(key), text, expire_ms);
}

static inline void put_field(struct store *s, size_t db, const char *key, struct bytes field,
                             struct bytes value) {
    struct entry e;
    assert_int_equal(hash_set(value_of(s, db, key, VALUE_HASH, &e), field, value, NULL), ST_OK);
}

static inline void put_member(struct store *s, size_t db, const char *key, struct bytes member) {
    struct entry e;
    assert_int_equal(set_add(value_of(s, db, key, VALUE_SET, &e), member, NULL), ST_OK);
}

static inline void put_score(struct store *s, size_t db, const char *key, struct bytes member,
                             double score) {
    struct entry e;
    assert_int_equal(zset_set(value_of(s, db, key, VALUE_ZSET, &e), member, score, NULL), ST_OK);
}

static inline void put_element(struct store *s, size_t db, const char *key, struct bytes element) {
    struct entry e;
    assert_int_equal(list_push(value_of(s, db, key, VALUE_LIST, &e), LIST_TAIL, element), ST_OK);
}

/* Bytes made from a number, of any length; good until the eighth call from now. kind 0: letters, 1:
 * any byte, 2: the same few over and over. */
static inline struct bytes bytes_of(uint64_t seed, size_t len, int kind) {
    static char *buffers[8];
    static unsigned next;
    char **p = &buffers[next++ % ARRAY_LEN(buffers)];
    *p = realloc(*p, len + 1);
    assert_non_null(*p);
    uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (size_t i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (*p)[i] = kind == 0   ? (char)('a' + (x >> 33) % 26)
                  : kind == 1 ? (char)(x >> 32)
                              : (char)('a' + i / 7 % 3);
    }
    return BYTES(*p, len);
}

static inline struct bytes digits_of(int64_t n) {
    static char text[8][NUMBER_I64_MAX_LEN];
    static unsigned next;
    char *p = text[next++ % 8];
    return BYTES(p, number_format_i64(p, n));
}

/* ---- comparing ------------------------------------------------------------------------------ */

static inline void assert_bytes(struct bytes a, struct bytes b) {
    assert_int_equal(a.len, b.len);
    assert_true(bytes_equal(a, b));
}

static inline void assert_same_hash(const struct value *a, const struct value *b) {
    struct hash_pair pairs[64];
    uint64_t position = 0;
    size_t n;
    assert_int_equal(hash_count(a), hash_count(b));
    while ((n = hash_next(a, &position, pairs, 64)) != 0) {
        for (size_t i = 0; i < n; i++) {
            struct bytes value;
            assert_true(hash_get(b, pairs[i].field, &value));
            assert_bytes(pairs[i].value, value);
        }
    }
}

static inline void assert_same_set(const struct value *a, const struct value *b) {
    struct bytes members[64];
    char scratch[64 * SET_SCRATCH_LEN];
    uint64_t position = 0;
    size_t n;
    assert_int_equal(set_count(a), set_count(b));
    while ((n = set_next(a, &position, members, 64, scratch)) != 0) {
        for (size_t i = 0; i < n; i++) {
            assert_true(set_contains(b, members[i]));
        }
    }
}

static inline void assert_same_zset(const struct value *a, const struct value *b) {
    struct zset_entry x[64], y[64];
    struct zset_iter i, j;
    size_t n;
    assert_int_equal(zset_count(a), zset_count(b));
    zset_iter_init(&i, a, 0, false);
    zset_iter_init(&j, b, 0, false);
    while ((n = zset_fetch(&i, x, 64)) != 0) {
        for (size_t done = 0; done < n;) {
            size_t m = zset_fetch(&j, y, n - done);
            assert_true(m != 0);
            for (size_t k = 0; k < m; k++, done++) {
                assert_bytes(x[done].member, y[k].member);
                assert_memory_equal(&x[done].score, &y[k].score, sizeof(double));
            }
        }
    }
}

static inline void assert_same_list(const struct value *a, const struct value *b) {
    struct bytes x[64], y[64];
    struct list_iter i, j;
    size_t n;
    assert_int_equal(list_count(a), list_count(b));
    list_iter_init(&i, a, 0, false);
    list_iter_init(&j, b, 0, false);
    while ((n = list_fetch(&i, x, 64)) != 0) {
        for (size_t done = 0; done < n;) {
            size_t m = list_fetch(&j, y, n - done);
            assert_true(m != 0);
            for (size_t k = 0; k < m; k++, done++) {
                assert_bytes(x[done], y[k]);
            }
        }
    }
}

static inline void assert_same_value(const struct value *a, const struct value *b) {
    char scratch_a[STRING_SCRATCH_LEN], scratch_b[STRING_SCRATCH_LEN];
    assert_int_equal(a->type, b->type);
    switch (a->type) {
    case VALUE_HASH:
        assert_same_hash(a, b);
        break;
    case VALUE_SET:
        assert_same_set(a, b);
        break;
    case VALUE_ZSET:
        assert_same_zset(a, b);
        break;
    case VALUE_LIST:
        assert_same_list(a, b);
        break;
    default:
        assert_bytes(string_text(a, scratch_a), string_text(b, scratch_b));
    }
}

static inline void compare_key(void *arg, struct entry *e) {
    struct db *other = arg;
    struct entry f;
    if (!db_find(other, e->key, hash_bytes(e->key), DB_NO_TOUCH, &f)) {
        fail_msg("no key '%.*s'", (int)e->key.len, e->key.ptr);
    }
    assert_true(e->expire_ms == f.expire_ms);
    assert_same_value(&e->value, &f.value);
}

static inline void assert_same_data(struct store *a, struct store *b) {
    for (size_t i = 0; i < DATABASES; i++) {
        assert_int_equal(db_count(a->set->dbs[i]), db_count(b->set->dbs[i]));
        db_each(a->set->dbs[i], compare_key, b->set->dbs[i]);
    }
}

/* ---- writing and reading -------------------------------------------------------------------- */

static inline enum status into_buf(void *arg, const char *ptr, size_t len) {
    struct buf *b = arg;
    buf_append(b, ptr, len);
    return b->failed ? ST_NOMEM : ST_OK;
}

static inline void write_store(const struct store *s, bool compress, struct buf *out) {
    struct writer_options options = {
        .write = into_buf, .arg = out, .compress = compress, .checksum = true};
    struct writer_stats stats;
    struct writer *w;
    assert_int_equal(writer_create(&options, &w), ST_OK);
    assert_int_equal(writer_dbset(w, s->set, 123456), ST_OK);
    writer_get_stats(w, &stats);
    assert_int_equal(stats.bytes, out->len);
    writer_destroy(w);
}

/* Bytes that come in pieces of at most `piece`. */
struct slow_bytes {
    struct bytes left;
    size_t piece;
};

static inline enum status from_bytes(void *arg, char *ptr, size_t cap, size_t *len) {
    struct slow_bytes *s = arg;
    size_t n = s->left.len < cap ? s->left.len : cap;
    n = n < s->piece ? n : s->piece;
    if (n != 0) {
        memcpy(ptr, s->left.ptr, n);
    }
    s->left = BYTES(s->left.ptr + n, s->left.len - n);
    *len = n;
    return ST_OK;
}

/* options: what is not about the bytes; NULL for none. */
static inline enum status read_bytes_into(struct store *s, struct bytes file, size_t piece,
                                          bool total_known, const struct reader_options *more,
                                          struct reader_report *report) {
    struct slow_bytes source = {file, piece};
    struct reader_options options = more != NULL ? *more : (struct reader_options){.now_ms = NOW};
    struct reader_dbset to;
    struct reader_target target;
    options.read = from_bytes;
    options.arg = &source;
    options.total_bytes = total_known ? file.len : READER_UNKNOWN_LEN;
    reader_into_dbset(&to, s->set, &target);
    enum status st = reader_run(&options, &target, report);
    assert_int_equal(st == ST_OK, report->error[0] == '\0');
    return st;
}

static inline void read_store(struct store *s, struct bytes file, struct reader_report *report) {
    enum status st = read_bytes_into(s, file, SIZE_MAX, true, NULL, report);
    if (st != ST_OK) {
        fail_msg("%s", report->error);
    }
}

static inline struct bytes read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fail_msg("%s cannot be opened", path);
    }
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    size_t len = (size_t)ftell(f);
    char *text = malloc(len + 1);
    assert_non_null(text);
    rewind(f);
    assert_int_equal(fread(text, 1, len, f), len);
    fclose(f);
    return BYTES(text, len);
}

static inline void write_file(const char *path, struct bytes text) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text.ptr, 1, text.len, f), text.len);
    assert_int_equal(fclose(f), 0);
}

/* ---- data of every kind --------------------------------------------------------------------- */

static inline void fill_strings(struct store *s) {
    static const int64_t numbers[] = {0,         -1,         127,       128,         -128,
                                      -129,      32767,      32768,     -32768,      -32769,
                                      INT32_MAX, INT32_MIN,  INT64_MAX, INT64_MIN,   2147483648,
                                      99999,     1234567890, -99999,    -2147483649, 12};
    static const size_t lens[] = {0,     1,     2,     19,    20,    21,     22,
                                  63,    64,    65,    255,   4096,  4097,   16383,
                                  16384, 16385, 65535, 65536, 70000, 300000, 1500000};
    char key[64];
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        snprintf(key, sizeof(key), "number:%zu", i);
        put(s, 0, key, digits_of(numbers[i]), i % 3 == 0 ? FAR + (int64_t)i : DB_NO_EXPIRY);
    }
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        for (int kind = 0; kind < 3; kind++) {
            snprintf(key, sizeof(key), "string:%zu:%d", lens[i], kind);
            put(s, kind == 1 ? 3 : 0, key, bytes_of(i, lens[i], kind), DB_NO_EXPIRY);
        }
    }
    put(s, 0, "not:number:1", BYTES_LIT("007"), DB_NO_EXPIRY);
    put(s, 0, "not:number:2", BYTES_LIT("-0"), DB_NO_EXPIRY);
    put(s, 0, "not:number:3", BYTES_LIT("+1"), DB_NO_EXPIRY);
    put(s, 0, "not:number:4", BYTES_LIT("1 "), DB_NO_EXPIRY);
    put(s, 0, "12345", BYTES_LIT("a number for a name"), FAR);
    put_text_of(s, 0, BYTES_LIT(""), BYTES_LIT("no name"), DB_NO_EXPIRY);
    put_text_of(s, 15, BYTES_LIT("with\0a\0nul"), BYTES_LIT("\0\0"), DB_NO_EXPIRY);
    put_text_of(s, 15, bytes_of(1, 5000, 0), BYTES_LIT("a long name"), FAR);
    put_text_of(s, 15, bytes_of(1, 100000, 1), BYTES_LIT("a very long name"), FAR);
}

static inline struct bytes element_of(size_t i) {
    switch (i % 8) {
    case 0:
        return digits_of((int64_t)i);
    case 1:
        return digits_of(-(int64_t)(i * i * i));
    case 2:
        return digits_of((int64_t)(i * UINT64_C(0x123456789ABCD)));
    case 3:
        return bytes_of(i, i % 70 + 8, 1);
    case 4:
        return bytes_of(i, 12, 0);
    case 5:
        return digits_of(INT64_MIN + (int64_t)i);
    case 6:
        return digits_of((int64_t)i * 1000);
    default:
        return bytes_of(i, i % 60 + 10, 0);
    }
}

static inline double score_of(size_t i) {
    static const double odd[] = {
        0.1,  -0.1, 1.0 / 3, 1e300, -1e300, 5e-324,     3.5,     1e15,
        1e16, 1e17, 9e18,    -9e18, 1e-7,   123456.789, 2.5e-10, 4503599627370497.5};
    return i % 3 == 0   ? (double)i - 20
           : i % 3 == 1 ? odd[i / 3 % ARRAY_LEN(odd)] + (double)(i / 48) * 0.25
                        : (double)((int64_t)i * -7919 % 100000) / 8;
}

/* Collections of count entries, each named after it. */
static inline void fill_collections(struct store *s, size_t db, size_t count) {
    char hash[32], set[32], ints[32], zset[32], list[32];
    snprintf(hash, sizeof(hash), "hash:%zu", count);
    snprintf(set, sizeof(set), "set:%zu", count);
    snprintf(ints, sizeof(ints), "ints:%zu", count);
    snprintf(zset, sizeof(zset), "zset:%zu", count);
    snprintf(list, sizeof(list), "list:%zu", count);
    for (size_t i = 0; i < count; i++) {
        put_field(s, db, hash, element_of(i), element_of(i * 5 + 3));
        put_member(s, db, set, element_of(i));
        put_member(s, db, ints, digits_of((int64_t)(i * i) * (i % 2 ? -1 : 1)));
        put_score(s, db, zset, element_of(i), score_of(i));
        put_element(s, db, list, element_of(i / 2));
    }
}

static inline void fill_odd_collections(struct store *s) {
    put_field(s, 1, "hash:empty names", BYTES_LIT(""), BYTES_LIT(""));
    put_field(s, 1, "hash:empty names", BYTES_LIT("x"), BYTES_LIT(""));
    put_field(s, 1, "hash:long", BYTES_LIT("f"), bytes_of(1, 100000, 0));
    put_field(s, 1, "hash:long", bytes_of(2, 70000, 1), BYTES_LIT("v"));
    put_member(s, 1, "set:empty name", BYTES_LIT(""));
    put_member(s, 1, "set:long", bytes_of(3, 70000, 2));
    put_score(s, 1, "zset:limits", BYTES_LIT("inf"), __builtin_inf());
    put_score(s, 1, "zset:limits", BYTES_LIT("-inf"), -__builtin_inf());
    put_score(s, 1, "zset:limits", BYTES_LIT("max"), 1.7976931348623157e308);
    put_score(s, 1, "zset:limits", BYTES_LIT("-0"), -0.0);
    put_score(s, 1, "zset:limits", BYTES_LIT(""), 9007199254740993.0);
    put_score(s, 1, "zset:limits", BYTES_LIT("2^62"), 4611686018427387904.0);
    put_score(s, 1, "zset:limits", BYTES_LIT("2^63"), 9223372036854775808.0);
    put_score(s, 1, "zset:limits", BYTES_LIT("-2^63"), -9223372036854775808.0);
    put_score(s, 1, "zset:long", bytes_of(4, 70000, 0), 0.5);
    put_score(s, 1, "zset:long big", bytes_of(4, 70000, 0), __builtin_inf());
    for (size_t i = 0; i < 300; i++) {
        put_score(s, 1, "zset:long big", digits_of((int64_t)i), -__builtin_inf());
    }
    static const int64_t edges[] = {
        127,     128,     -4096,    -4097,    4095,       4096,       32767,       32768, -32769,
        8388607, 8388608, -8388608, -8388609, 2147483647, 2147483648, -2147483649, 0,     -1};
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        put_element(s, 1, "list:edges", digits_of(edges[i]));
        put_score(s, 1, "zset:edges", digits_of(edges[i]), (double)edges[i]);
        put_field(s, 1, "hash:edges", digits_of(edges[i]), digits_of(-edges[i]));
    }
    static const size_t lens[] = {0,    1,     62,    63,    64,    126,   127,
                                  128,  4094,  4095,  4096,  8177,  8178,  8179,
                                  8192, 16373, 16377, 16378, 16379, 16384, 70000};
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        put_element(s, 1, "list:lens", bytes_of(i, lens[i], 1));
        put_element(s, 1, "list:lens", digits_of((int64_t)i));
    }
}

static inline void fill(struct store *s) {
    static const size_t counts[] = {1, 2, 10, 64, 65, 128, 129, 200, 512, 513, 5000};
    fill_strings(s);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        fill_collections(s, i % 2 ? 7 : 0, counts[i]);
    }
    fill_odd_collections(s);
    for (size_t i = 0; i < 3000; i++) {
        char key[32];
        snprintf(key, sizeof(key), "small:%zu", i);
        put(s, 9, key, element_of(i), i % 2 ? FAR + (int64_t)i : DB_NO_EXPIRY);
    }
}

#endif
