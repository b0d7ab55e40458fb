/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "host.h"
#include "mem/arena.h"
#include "types/hash.h"
#include "types/string.h"
#include "types/varlen.h"

#define SMALL_CHUNK ((size_t)64 << 10)
#define LARGE_CHUNK ((size_t)2 << 20)
#define LARGE ((size_t)1 << 20)

struct fixture {
    struct held h;
    struct pages *pages;
};

static void create(struct fixture *f, size_t chunk_bytes, size_t entries_max, size_t element_max) {
    f->pages = held_pages(chunk_bytes);
    struct type_env env = {.pages = f->pages,
                           .hash_packed_entries_max = entries_max,
                           .hash_packed_element_max = element_max};
    struct value_image image = {.encoding = VALUE_PACKED,
                                .data = BYTES(hash_empty, HASH_EMPTY_LEN)};
    held_init(&f->h, VALUE_HASH, &image, &env);
}

static void destroy(struct fixture *f) {
    struct pages_stats stats;
    held_deinit(&f->h);
    pages_get_stats(f->pages, &stats);
    assert_int_equal(stats.chunks, 0);
    pages_destroy(f->pages);
    assert_int_equal(held_total_bytes(), 0);
}

static bool packed(const struct fixture *f) {
    return f->h.v.encoding == VALUE_PACKED;
}

/* Bytes made from a number, in one of a few buffers so that two or three can be had at once. */
static struct bytes bytes_of(uint64_t seed, size_t len) {
    static char *buffers[4];
    static unsigned next;
    char **p = &buffers[next++ % ARRAY_LEN(buffers)];
    *p = realloc(*p, len + 1);
    assert_non_null(*p);
    fill_pattern(*p, len, seed);
    return BYTES(*p, len);
}

static void set(struct fixture *f, struct bytes field, struct bytes value, bool is_new) {
    bool added = !is_new;
    assert_int_equal(hash_set(&f->h.v, field, value, &added), ST_OK);
    assert_int_equal(added, is_new);
}

static void assert_pair(const struct value *v, struct bytes field, struct bytes expected) {
    struct bytes value;
    assert_true(hash_get(v, field, &value));
    assert_int_equal(value.len, expected.len);
    if (value.len != 0) {
        assert_memory_equal(value.ptr, expected.ptr, expected.len);
    }
}

/* One number for all pairs of a hash, whatever their order. */
static uint64_t digest(const struct value *v) {
    uint64_t sum = hash_count(v), position = 0;
    struct hash_pair pairs[7];
    size_t count;
    while ((count = hash_next(v, &position, pairs, ARRAY_LEN(pairs))) != 0) {
        for (size_t i = 0; i < count; i++) {
            uint64_t field = hash_bytes(pairs[i].field), value = hash_bytes(pairs[i].value);
            sum += (field ^ (value << 1 | value >> 63)) * UINT64_C(0x9E3779B97F4A7C15);
        }
    }
    return sum;
}

static struct bytes number(char *text, uint64_t n) {
    return BYTES(text, number_format_u64(text, n));
}

static void fill(struct fixture *f, uint64_t from, uint64_t to, size_t value_len) {
    for (uint64_t i = from; i < to; i++) {
        char text[NUMBER_I64_MAX_LEN];
        set(f, number(text, i), bytes_of(i, value_len), true);
    }
}

/* Fail the first, second, third ... allocation of hash_set until it succeeds; after each failure
 * the hash is as before. Returns how many times it failed. */
static size_t set_until_it_succeeds(struct fixture *f, struct bytes field, struct bytes value) {
    struct value *v = &f->h.v;
    uint64_t before = digest(v);
    enum value_encoding encoding = v->encoding;
    size_t value_bytes = account_bytes(ACCOUNT_VALUE);
    for (size_t fail = 1;; fail++) {
        bool added;
        account_fail_after(fail);
        enum status st = hash_set(v, field, value, &added);
        account_fail_after(0);
        hash_check(v);
        if (st == ST_OK) {
            assert_pair(v, field, value);
            return fail - 1;
        }
        assert_int_equal(st, ST_NOMEM);
        assert_int_equal(v->encoding, encoding);
        assert_true(digest(v) == before);
        assert_int_equal(account_bytes(ACCOUNT_VALUE), value_bytes);
        assert_true(fail < 2000);
    }
}

/* ---- packed, and beyond -------------------------------------------------------------------- */

static void lengths_take_one_three_or_five_bytes(void **state) {
    static const struct {
        size_t len, size;
    } cases[] = {{0, 1},   {1, 1},     {239, 1},   {240, 3},
                 {255, 3}, {65535, 3}, {65536, 5}, {UINT32_MAX, 5}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char at[VARLEN_MAX];
        size_t len;
        assert_int_equal(varlen_size(cases[i].len), cases[i].size);
        assert_int_equal(varlen_put(at, cases[i].len), cases[i].size);
        assert_int_equal(varlen_get(at, &len), cases[i].size);
        assert_int_equal(len, cases[i].len);
        assert_true((unsigned char)at[0] <= 0xF1);
    }
}

static void a_new_hash_is_empty(void **state) {
    struct fixture f;
    struct bytes value;
    struct hash_pair pair;
    uint64_t position = 0;
    create(&f, LARGE_CHUNK, 128, 64);
    assert_int_equal(hash_count(&f.h.v), 0);
    assert_false(hash_get(&f.h.v, BYTES_LIT(""), &value));
    assert_false(hash_delete(&f.h.v, BYTES_LIT("x")));
    assert_int_equal(hash_next(&f.h.v, &position, &pair, 1), 0);
    hash_check(&f.h.v);
    destroy(&f);
}

static void more_entries_make_a_table(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 128, 64);
    fill(&f, 0, 128, 8);
    assert_true(packed(&f));
    assert_string_equal(value_encoding_name(&f.h.v), "listpack");
    set(&f, BYTES_LIT("5"), BYTES_LIT("again"), false);
    assert_true(packed(&f));
    set(&f, BYTES_LIT("one more"), BYTES_LIT("x"), true);
    assert_false(packed(&f));
    assert_string_equal(value_encoding_name(&f.h.v), "hashtable");
    assert_int_equal(hash_count(&f.h.v), 129);
    hash_check(&f.h.v);
    assert_pair(&f.h.v, BYTES_LIT("5"), BYTES_LIT("again"));
    assert_pair(&f.h.v, BYTES_LIT("127"), bytes_of(127, 8));
    destroy(&f);
}

static void longer_elements_make_a_table(void **state) {
    for (int which = 0; which < 3; which++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, 128, 64);
        set(&f, bytes_of(1, 64), bytes_of(2, 64), true);
        assert_true(packed(&f));
        if (which == 0) {
            set(&f, bytes_of(3, 65), bytes_of(4, 1), true);
        } else {
            set(&f, bytes_of(which == 1 ? 1 : 3, 64), bytes_of(4, 65), which == 2);
        }
        assert_false(packed(&f));
        hash_check(&f.h.v);
        assert_int_equal(hash_count(&f.h.v), which == 1 ? 1 : 2);
        destroy(&f);
    }
}

static void a_full_record_makes_a_table(void **state) {
    for (int replace = 0; replace < 2; replace++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, 1000, 1000);
        f.h.len_max = 1000;
        fill(&f, 0, 9, 100);
        assert_true(packed(&f));
        set(&f, replace ? BYTES_LIT("3") : BYTES_LIT("30"), bytes_of(9, 300), !replace);
        assert_false(packed(&f));
        assert_int_equal(hash_count(&f.h.v), replace ? 9 : 10);
        assert_pair(&f.h.v, BYTES_LIT("8"), bytes_of(8, 100));
        destroy(&f);
    }
}

static void no_limits_at_all_make_a_table_at_once(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 0, 0);
    set(&f, BYTES_LIT(""), BYTES_LIT(""), true);
    assert_false(packed(&f));
    assert_pair(&f.h.v, BYTES_LIT(""), BYTES_LIT(""));
    destroy(&f);
}

static void a_packed_hash_ends_at_a_byte_of_length_and_at_its_size(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, SIZE_MAX, SIZE_MAX);
    set(&f, bytes_of(1, 255), bytes_of(2, 255), true);
    assert_true(packed(&f));
    set(&f, BYTES_LIT("f"), bytes_of(3, 256), true);
    assert_false(packed(&f));
    destroy(&f);

    create(&f, LARGE_CHUNK, SIZE_MAX, SIZE_MAX);
    for (size_t i = 0; packed(&f); i++) {
        assert_true(f.h.v.len <= HASH_PACKED_BYTES_MAX);
        assert_true(i * 13 < HASH_PACKED_BYTES_MAX);
        set(&f, bytes_of(i, 4), bytes_of(i, 6), true);
    }
    assert_true(hash_count(&f.h.v) > HASH_PACKED_BYTES_MAX / 14);
    hash_check(&f.h.v);
    destroy(&f);
}

/* Two fields of one tag are told apart, and a tag that no field has is not found. */
static void fields_of_equal_tags_are_told_apart(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 512, 64);
    for (size_t i = 0; i < 512; i++) { /* twice as many as there are tags */
        set(&f, bytes_of(i, 12), bytes_of(i, 5), true);
    }
    assert_true(packed(&f));
    for (size_t i = 0; i < 512; i++) {
        assert_pair(&f.h.v, bytes_of(i, 12), bytes_of(i, 5));
    }
    struct bytes value;
    for (size_t i = 512; i < 2048; i++) {
        assert_false(hash_get(&f.h.v, bytes_of(i, 12), &value));
    }
    for (size_t i = 0; i < 512; i += 3) {
        assert_true(hash_delete(&f.h.v, bytes_of(i, 12)));
    }
    hash_check(&f.h.v);
    for (size_t i = 0; i < 512; i++) {
        assert_int_equal(hash_get(&f.h.v, bytes_of(i, 12), &value), i % 3 != 0);
    }
    destroy(&f);
}

/* ---- overwriting --------------------------------------------------------------------------- */

static const size_t border_lens[] = {0,     13,    34,    239,   240,   1024,     1025,      16379,
                                     16380, 65529, 65530, 65535, 65536, 64 << 10, 100 << 10, LARGE};

static void values_grow_and_shrink_across_the_borders(size_t chunk_bytes, bool keep_packed) {
    struct fixture f;
    create(&f, chunk_bytes, keep_packed ? 128 : 0, keep_packed ? SIZE_MAX : 0);
    f.h.len_max = keep_packed ? SIZE_MAX : 60000;
    set(&f, BYTES_LIT("before"), BYTES_LIT("1"), true);
    set(&f, BYTES_LIT("field"), BYTES_LIT(""), true);
    set(&f, BYTES_LIT("behind"), BYTES_LIT("2"), true);
    for (size_t i = 0; i < ARRAY_LEN(border_lens); i++) {
        for (size_t j = 0; j < ARRAY_LEN(border_lens); j++) {
            for (int k = 0; k < 2; k++) {
                size_t len = border_lens[k ? j : i];
                set(&f, BYTES_LIT("field"), bytes_of(len, len), false);
                assert_pair(&f.h.v, BYTES_LIT("field"), bytes_of(len, len));
                assert_pair(&f.h.v, BYTES_LIT("before"), BYTES_LIT("1"));
                assert_pair(&f.h.v, BYTES_LIT("behind"), BYTES_LIT("2"));
            }
            hash_check(&f.h.v);
        }
    }
    assert_false(packed(&f));
    destroy(&f);
}

static void packed_values_cross_the_borders(void **state) {
    for (size_t i = 0; i < 256; i += 51) {
        for (size_t j = 0; j < 256; j += 51) {
            struct fixture f;
            create(&f, LARGE_CHUNK, 128, 255);
            set(&f, BYTES_LIT("before"), BYTES_LIT("1"), true);
            set(&f, BYTES_LIT("field"), bytes_of(1, i), true);
            set(&f, BYTES_LIT("behind"), BYTES_LIT("2"), true);
            set(&f, BYTES_LIT("field"), bytes_of(2, j), false);
            assert_pair(&f.h.v, BYTES_LIT("before"), BYTES_LIT("1"));
            assert_pair(&f.h.v, BYTES_LIT("field"), bytes_of(2, j));
            assert_pair(&f.h.v, BYTES_LIT("behind"), BYTES_LIT("2"));
            assert_true(packed(&f));
            hash_check(&f.h.v);
            destroy(&f);
        }
    }
    values_grow_and_shrink_across_the_borders(LARGE_CHUNK, true);
}

static void table_values_cross_the_borders(void **state) {
    values_grow_and_shrink_across_the_borders(LARGE_CHUNK, false);
}

static void table_values_cross_the_borders_of_small_chunks(void **state) {
    values_grow_and_shrink_across_the_borders(SMALL_CHUNK, false);
}

static void fields_of_every_length_live_together(void **state) {
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, form ? 0 : 128, form ? 0 : SIZE_MAX);
        f.h.len_max = SIZE_MAX;
        for (size_t i = 0; i < ARRAY_LEN(border_lens); i++) {
            size_t len = border_lens[i];
            bool seen_before = false;
            for (size_t j = 0; j < i; j++) {
                seen_before |= border_lens[j] == len;
            }
            set(&f, bytes_of(len, len), bytes_of(i, i * 7), !seen_before);
        }
        for (size_t i = 0; i < ARRAY_LEN(border_lens); i++) {
            if (border_lens[i] != 65536) { /* there twice */
                assert_pair(&f.h.v, bytes_of(border_lens[i], border_lens[i]), bytes_of(i, i * 7));
            }
        }
        hash_check(&f.h.v);
        for (size_t i = 0; i < ARRAY_LEN(border_lens); i++) {
            bool gone = hash_delete(&f.h.v, bytes_of(border_lens[i], border_lens[i]));
            assert_true(gone || border_lens[i] == 65536);
            hash_check(&f.h.v);
        }
        assert_int_equal(hash_count(&f.h.v), 0);
        destroy(&f);
    }
}

static void empty_views_without_an_address_are_fine(void **state) {
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, form ? 0 : 128, form ? 0 : SIZE_MAX);
        f.h.len_max = SIZE_MAX;
        set(&f, BYTES(NULL, 0), BYTES(NULL, 0), true);
        assert_pair(&f.h.v, BYTES(NULL, 0), BYTES(NULL, 0));
        set(&f, BYTES(NULL, 0), bytes_of(1, LARGE), false); /* boxed, in a table */
        assert_pair(&f.h.v, BYTES(NULL, 0), bytes_of(1, LARGE));
        set(&f, bytes_of(2, LARGE), BYTES(NULL, 0), true);
        assert_pair(&f.h.v, bytes_of(2, LARGE), BYTES(NULL, 0));
        assert_true(hash_delete(&f.h.v, BYTES(NULL, 0)));
        destroy(&f);
    }
}

static void nuls_are_bytes_like_others(void **state) {
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, form ? 0 : 128, 64);
        set(&f, BYTES_LIT("a\0b"), BYTES_LIT("\0"), true);
        set(&f, BYTES_LIT("a\0c"), BYTES_LIT("\0\0"), true);
        set(&f, BYTES_LIT("a"), BYTES_LIT(""), true);
        assert_pair(&f.h.v, BYTES_LIT("a\0b"), BYTES_LIT("\0"));
        assert_pair(&f.h.v, BYTES_LIT("a\0c"), BYTES_LIT("\0\0"));
        assert_pair(&f.h.v, BYTES_LIT("a"), BYTES_LIT(""));
        destroy(&f);
    }
}

static void boxed_bytes_are_counted_and_given_back(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 0, 0);
    set(&f, BYTES_LIT("a"), BYTES_LIT("small"), true);
    size_t before = account_bytes(ACCOUNT_VALUE), held = value_heap_bytes(&f.h.v);
    assert_false(value_is_big(&f.h.v));
    set(&f, BYTES_LIT("a"), bytes_of(1, LARGE), false);
    assert_true(account_bytes(ACCOUNT_VALUE) - before >= LARGE);
    assert_true(value_heap_bytes(&f.h.v) - held >= LARGE);
    assert_true(value_is_big(&f.h.v));
    set(&f, BYTES_LIT("a"), BYTES_LIT("small"), false);
    assert_int_equal(account_bytes(ACCOUNT_VALUE), before);
    assert_false(value_is_big(&f.h.v));
    set(&f, bytes_of(2, 64 << 10), bytes_of(3, 64 << 10), true);
    assert_true(hash_delete(&f.h.v, bytes_of(2, 64 << 10)));
    assert_int_equal(account_bytes(ACCOUNT_VALUE), before);
    destroy(&f);
}

/* ---- walking ------------------------------------------------------------------------------- */

static void mark_field(void *arg, struct bytes field, struct bytes value) {
    uint8_t *seen = arg;
    int64_t n;
    assert_true(number_parse_i64(field, &n));
    seen[n]++;
}

static void walks_see_every_field_once(void **state) {
    static const size_t counts[] = {1, 2, 128, 129, 5000};
    static const size_t caps[] = {1, 3, 64, 1000};
    for (size_t c = 0; c < ARRAY_LEN(counts); c++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, 128, 64);
        fill(&f, 0, counts[c], 5);
        for (size_t k = 0; k < ARRAY_LEN(caps); k++) {
            uint8_t seen[5000] = {0}, scanned[5000] = {0};
            struct hash_pair pairs[1000];
            uint64_t position = 0, cursor = 0;
            size_t count;
            while ((count = hash_next(&f.h.v, &position, pairs, caps[k])) != 0) {
                assert_true(count <= caps[k]);
                for (size_t i = 0; i < count; i++) {
                    mark_field(seen, pairs[i].field, pairs[i].value);
                    assert_int_equal(pairs[i].value.len, 5);
                }
            }
            do {
                cursor = hash_scan(&f.h.v, cursor, caps[k], mark_field, scanned);
            } while (cursor != 0);
            for (size_t i = 0; i < counts[c]; i++) {
                assert_int_equal(seen[i], 1);
                assert_int_equal(scanned[i], 1);
            }
        }
        destroy(&f);
    }
}

/* Chi-square of `picks` draws; mean n - 1, variance 2 (n - 1) when uniform. */
static double chi_square(struct fixture *f, size_t n, size_t picks) {
    struct rng rng;
    rng_init(&rng, 42);
    uint32_t *hits = calloc(n, sizeof(*hits));
    assert_non_null(hits);
    for (size_t i = 0; i < picks; i++) {
        struct hash_pair pair;
        int64_t field;
        hash_random(&f->h.v, &rng, &pair);
        assert_true(number_parse_i64(pair.field, &field));
        hits[field]++;
    }
    double sum = 0, expected = (double)picks / (double)n;
    for (size_t i = 0; i < n; i++) {
        sum += ((double)hits[i] - expected) * ((double)hits[i] - expected) / expected;
    }
    free(hits);
    return sum;
}

static void random_fields_are_uniform(void **state) {
    static const struct {
        size_t fields;
        double limit; /* mean + 4 standard deviations */
    } cases[] = {{10, 26}, {128, 191}, {1000, 1178}, {5000, 5399}};
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, 128, 64);
        fill(&f, 0, cases[c].fields, 5);
        double sum = chi_square(&f, cases[c].fields, 100000);
        print_message("%zu fields: chi-square %.0f, limit %.0f\n", cases[c].fields, sum,
                      cases[c].limit);
        assert_true(sum < cases[c].limit);
        destroy(&f);
    }
}

static void prefetching_changes_nothing(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 128, 64);
    for (uint64_t i = 0; i < 300; i++) {
        char text[NUMBER_I64_MAX_LEN];
        uint64_t hash = hash_bytes(number(text, i));
        hash_prefetch_index(&f.h.v, hash);
        hash_prefetch_record(&f.h.v, hash);
        fill(&f, i, i + 1, 3);
        hash_prefetch_index(&f.h.v, hash);
        hash_prefetch_record(&f.h.v, hash);
    }
    destroy(&f);
}

/* ---- copies and ends ----------------------------------------------------------------------- */

static void many_at_once_are_the_same_as_one_by_one(void **state) {
    static const size_t counts[] = {0, 1, 16, 17, 64, 65, 1000, 10000};
    static char text[10000][16];
    static struct hash_pair pairs[10000];
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        pairs[i] = (struct hash_pair){number(text[i], i), BYTES(text[i], i % 7)};
    }
    for (size_t k = 0; k < ARRAY_LEN(counts) * 2; k++) {
        struct fixture f;
        size_t count = counts[k / 2];
        create(&f, SMALL_CHUNK, 16, 64);
        if (k % 2) {
            assert_int_equal(hash_expect(&f.h.v, count), ST_OK);
        }
        assert_int_equal(hash_add_all(&f.h.v, pairs, count), ST_OK);
        assert_int_equal(packed(&f), count <= 16);
        assert_int_equal(hash_count(&f.h.v), count);
        for (size_t i = 0; i < count; i++) {
            assert_pair(&f.h.v, pairs[i].field, pairs[i].value);
        }
        hash_check(&f.h.v);
        if (count != 0) {
            assert_int_equal(hash_add_all(&f.h.v, pairs + count - 1, 1), ST_EXISTS);
            assert_int_equal(hash_count(&f.h.v), count);
        }
        destroy(&f);
    }
}

static void many_at_once_may_fail(void **state) {
    static char text[3000][16];
    static struct hash_pair pairs[3000];
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        pairs[i] = (struct hash_pair){number(text[i], i), BYTES(text[i], 8)};
    }
    for (size_t nth = 1;; nth++) {
        struct fixture f;
        create(&f, SMALL_CHUNK, 16, 64);
        account_fail_after(nth);
        enum status st = hash_expect(&f.h.v, ARRAY_LEN(pairs));
        if (st == ST_OK) {
            st = hash_add_all(&f.h.v, pairs, ARRAY_LEN(pairs));
        }
        account_fail_after(0);
        hash_check(&f.h.v);
        assert_true(st == ST_OK || st == ST_NOMEM);
        destroy(&f);
        if (st == ST_OK) {
            assert_true(nth > 10);
            return;
        }
    }
}

static void a_clone_is_equal_and_independent(void **state) {
    static const size_t counts[] = {0, 3, 129, 3000};
    for (size_t c = 0; c < ARRAY_LEN(counts); c++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, 128, 64);
        fill(&f, 0, counts[c], 20);
        if (c == 3) {
            set(&f, BYTES_LIT("big"), bytes_of(1, LARGE), true);
        }
        uint64_t before = digest(&f.h.v);
        struct value_image image;
        struct held copy;
        assert_int_equal(value_clone(&f.h.v, &image), ST_OK);
        held_init(&copy, VALUE_HASH, &image, &f.h.env);
        assert_true(digest(&copy.v) == before);
        fill(&f, counts[c], counts[c] + 1, 20);
        assert_true(hash_delete(&f.h.v, BYTES_LIT("0")));
        hash_check(&copy.v);
        assert_true(digest(&copy.v) == before);
        held_deinit(&copy);
        destroy(&f);
    }
}

static void a_failed_clone_leaves_nothing(void **state) {
    struct fixture f;
    create(&f, SMALL_CHUNK, 128, 64);
    fill(&f, 0, 400, 20);
    set(&f, BYTES_LIT("big"), bytes_of(1, 100 << 10), true);
    uint64_t before = digest(&f.h.v);
    size_t held = held_object_bytes(), fail = 0;
    struct value_image image;
    enum status st;
    do {
        account_fail_after(++fail);
        st = value_clone(&f.h.v, &image);
        account_fail_after(0);
        if (st != ST_OK) {
            assert_int_equal(st, ST_NOMEM);
            assert_int_equal(held_object_bytes(), held);
        }
    } while (st != ST_OK);
    assert_true(fail > 5);
    assert_true(digest(&f.h.v) == before);
    value_image_discard(VALUE_HASH, &image);
    assert_int_equal(held_object_bytes(), held);
    destroy(&f);
}

static void a_big_hash_is_freed_in_steps(void **state) {
    struct fixture f;
    create(&f, SMALL_CHUNK, 128, 64);
    fill(&f, 0, 20000, 20);
    for (char i = 'a'; i < 'i'; i++) {
        set(&f, BYTES(&i, 1), bytes_of(1, LARGE), true);
    }
    assert_true(value_is_big(&f.h.v));
    void *object = value_object(&f.h.v);
    size_t steps = 1, bytes = held_total_bytes();
    while (!value_free_step(VALUE_HASH, object, 1)) {
        steps++;
        assert_true(held_total_bytes() <= bytes);
        bytes = held_total_bytes();
    }
    assert_true(steps > 20000 / 10); /* the walk that finds the long values is cut in steps too */
    f.h.v.encoding = VALUE_PACKED;   /* nothing left to free but the record */
    destroy(&f);
}

static void churn_gives_memory_back(void **state) {
    struct fixture f;
    struct rng rng;
    rng_init(&rng, 7);
    create(&f, SMALL_CHUNK, 0, 0);
    fill(&f, 0, 5000, 30);
    for (int i = 0; i < 60000; i++) {
        char text[NUMBER_I64_MAX_LEN];
        struct bytes field = number(text, rng_below(&rng, 5000));
        set(&f, field, bytes_of(1, rng_below(&rng, 60)), false);
    }
    hash_check(&f.h.v);
    struct arena_stats stats;
    hash_arena_stats(value_object(&f.h.v), &stats);
    print_message("live %zu reserved %zu\n", stats.live_bytes, stats.reserved_bytes);
    assert_true(stats.reserved_bytes <= stats.live_bytes * 5 / 4 + 2 * SMALL_CHUNK);
    for (uint64_t i = 0; i < 5000; i++) {
        char text[NUMBER_I64_MAX_LEN];
        assert_true(hash_delete(&f.h.v, number(text, i)));
    }
    assert_int_equal(hash_count(&f.h.v), 0);
    hash_check(&f.h.v);
    destroy(&f);
}

/* ---- failed allocations -------------------------------------------------------------------- */

static void packed_growth_may_fail(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 128, 64);
    for (uint64_t i = 0; i < 128; i++) {
        assert_int_equal(set_until_it_succeeds(&f, bytes_of(i, 8), bytes_of(i, i % 60)), 1);
    }
    assert_int_equal(set_until_it_succeeds(&f, bytes_of(1, 8), bytes_of(1, 64)), 1);
    assert_int_equal(set_until_it_succeeds(&f, bytes_of(1, 8), bytes_of(2, 64)), 0);
    /* giving memory back is no reason to fail */
    assert_int_equal(set_until_it_succeeds(&f, bytes_of(1, 8), bytes_of(2, 1)), 0);
    account_fail_after(1);
    assert_true(hash_delete(&f.h.v, bytes_of(1, 8)));
    assert_true(hash_delete(&f.h.v, bytes_of(127, 8)));
    assert_true(hash_delete(&f.h.v, bytes_of(0, 8)));
    account_fail_after(0);
    hash_check(&f.h.v);
    assert_int_equal(hash_count(&f.h.v), 125);
    assert_pair(&f.h.v, bytes_of(126, 8), bytes_of(126, 126 % 60));
    set_until_it_succeeds(&f, bytes_of(1, 8), bytes_of(2, 30)); /* over the idle bytes */
    assert_pair(&f.h.v, bytes_of(126, 8), bytes_of(126, 126 % 60));
    destroy(&f);
}

static void conversion_may_fail(void **state) {
    for (int cause = 0; cause < 3; cause++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, 128, 64);
        fill(&f, 0, 128, 40);
        size_t failed = set_until_it_succeeds(&f, BYTES_LIT(" new"),
                                              bytes_of(1, cause == 0   ? 10
                                                          : cause == 1 ? 65
                                                                       : LARGE));
        assert_false(packed(&f));
        assert_true(failed >= 5);
        destroy(&f);
    }
}

static void table_growth_may_fail(void **state) {
    struct fixture f;
    size_t failed = 0;
    create(&f, SMALL_CHUNK, 0, 0);
    set(&f, BYTES_LIT("first"), BYTES_LIT("x"), true);
    for (uint64_t i = 0; i < 1500; i++) {
        failed += set_until_it_succeeds(&f, bytes_of(i, 8), bytes_of(i, i % 100));
    }
    print_message("inserting failed %zu times\n", failed);
    assert_true(failed > 20);
    for (uint64_t i = 0; i < 1500; i++) {
        set_until_it_succeeds(&f, bytes_of(i, 8), bytes_of(i, i % 301));
    }
    destroy(&f);
}

static void boxing_may_fail(void **state) {
    struct fixture f;
    create(&f, SMALL_CHUNK, 0, 0);
    set(&f, BYTES_LIT("a"), BYTES_LIT("x"), true);
    assert_true(set_until_it_succeeds(&f, BYTES_LIT("a"), bytes_of(1, 20 << 10)) >= 1);
    assert_true(set_until_it_succeeds(&f, BYTES_LIT("a"), bytes_of(2, LARGE)) >= 1);
    assert_true(set_until_it_succeeds(&f, bytes_of(3, LARGE), BYTES_LIT("")) >= 1);
    set_until_it_succeeds(&f, BYTES_LIT("a"), bytes_of(4, 300)); /* back to plain */
    set_until_it_succeeds(&f, bytes_of(3, LARGE), bytes_of(5, LARGE));
    destroy(&f);
}

static void deleting_never_fails(void **state) {
    struct fixture f;
    create(&f, SMALL_CHUNK, 0, 0);
    fill(&f, 0, 3000, 50);
    account_fail_after(1);
    for (uint64_t i = 0; i < 3000; i++) {
        char text[NUMBER_I64_MAX_LEN];
        assert_true(hash_delete(&f.h.v, number(text, i * 7 % 3000)));
        if (i % 500 == 0) {
            hash_check(&f.h.v);
        }
    }
    account_fail_after(0);
    hash_check(&f.h.v);
    assert_int_equal(hash_count(&f.h.v), 0);
    destroy(&f);
}

int main(void) {
    hash_setup_seed(12345);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_take_one_three_or_five_bytes),
        cmocka_unit_test(a_new_hash_is_empty),
        cmocka_unit_test(more_entries_make_a_table),
        cmocka_unit_test(longer_elements_make_a_table),
        cmocka_unit_test(a_full_record_makes_a_table),
        cmocka_unit_test(no_limits_at_all_make_a_table_at_once),
        cmocka_unit_test(a_packed_hash_ends_at_a_byte_of_length_and_at_its_size),
        cmocka_unit_test(fields_of_equal_tags_are_told_apart),
        cmocka_unit_test(packed_values_cross_the_borders),
        cmocka_unit_test(table_values_cross_the_borders),
        cmocka_unit_test(table_values_cross_the_borders_of_small_chunks),
        cmocka_unit_test(fields_of_every_length_live_together),
        cmocka_unit_test(empty_views_without_an_address_are_fine),
        cmocka_unit_test(nuls_are_bytes_like_others),
        cmocka_unit_test(boxed_bytes_are_counted_and_given_back),
        cmocka_unit_test(walks_see_every_field_once),
        cmocka_unit_test(random_fields_are_uniform),
        cmocka_unit_test(prefetching_changes_nothing),
        cmocka_unit_test(many_at_once_are_the_same_as_one_by_one),
        cmocka_unit_test(many_at_once_may_fail),
        cmocka_unit_test(a_clone_is_equal_and_independent),
        cmocka_unit_test(a_failed_clone_leaves_nothing),
        cmocka_unit_test(a_big_hash_is_freed_in_steps),
        cmocka_unit_test(churn_gives_memory_back),
        cmocka_unit_test(packed_growth_may_fail),
        cmocka_unit_test(conversion_may_fail),
        cmocka_unit_test(table_growth_may_fail),
        cmocka_unit_test(boxing_may_fail),
        cmocka_unit_test(deleting_never_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
