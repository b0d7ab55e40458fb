/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "host.h"
#include "types/zset.h"

#define SMALL_CHUNK ((size_t)64 << 10)
#define LARGE_CHUNK ((size_t)2 << 20)

struct fixture {
    struct held h;
    struct pages *pages;
};

static void create_with(struct fixture *f, size_t chunk_bytes, size_t entries_max,
                        size_t element_max) {
    f->pages = held_pages(chunk_bytes);
    struct type_env env = {.pages = f->pages,
                           .zset_packed_entries_max = entries_max,
                           .zset_packed_element_max = element_max};
    struct value_image image = {.encoding = VALUE_PACKED,
                                .data = BYTES(zset_empty, ZSET_EMPTY_LEN)};
    held_init(&f->h, VALUE_ZSET, &image, &env);
}

/* Packed for as long as possible, or a table from the first member on. */
static void create(struct fixture *f, bool packed) {
    create_with(f, SMALL_CHUNK, packed ? SIZE_MAX : 0, SIZE_MAX);
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

static void set(struct fixture *f, struct bytes member, double score, bool is_new) {
    bool added = !is_new;
    assert_int_equal(zset_set(&f->h.v, member, score, &added), ST_OK);
    assert_int_equal(added, is_new);
}

static struct bytes number(char *text, uint64_t n) {
    return BYTES(text, (size_t)sprintf(text, "%08u", (unsigned)n));
}

/* Members "00000000"... with scores 0, 1, 2 ... */
static void fill(struct fixture *f, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) {
        char text[16];
        set(f, number(text, i), (double)i, true);
    }
}

static struct bytes pattern(char *p, size_t len, uint64_t seed) {
    fill_pattern(p, len, seed);
    return BYTES(p, len);
}

/* The members in order, each followed by a blank; they are C strings here. */
static void assert_order(const struct value *v, const char *expected) {
    char text[512] = "";
    struct zset_iter it;
    struct zset_entry e;
    zset_iter_init(&it, v, 0, false);
    while (zset_fetch(&it, &e, 1) == 1) {
        strncat(text, e.member.ptr, e.member.len);
        strcat(text, " ");
    }
    assert_string_equal(text, expected);
}

/* One number for all entries of a set, ranks included. */
static uint64_t digest(const struct value *v) {
    uint64_t sum = zset_count(v);
    struct zset_iter it;
    struct zset_entry out[7];
    size_t count;
    zset_iter_init(&it, v, 0, false);
    while ((count = zset_fetch(&it, out, ARRAY_LEN(out))) != 0) {
        for (size_t i = 0; i < count; i++) {
            uint64_t bits;
            memcpy(&bits, &out[i].score, sizeof(bits));
            sum = (sum ^ hash_bytes(out[i].member) ^ bits) * UINT64_C(0x9E3779B97F4A7C15);
        }
    }
    return sum;
}

static size_t object_bytes(void) {
    return held_object_bytes() + account_bytes(ACCOUNT_ORDER);
}

/* Fail the first, second, third ... allocation of zset_set until it succeeds; after each failure
 * the set is as before. Returns how many times it failed. */
static size_t set_until_it_succeeds(struct fixture *f, struct bytes member, double score) {
    struct value *v = &f->h.v;
    uint64_t before = digest(v);
    enum value_encoding encoding = v->encoding;
    for (size_t fail = 1;; fail++) {
        size_t value_bytes = account_bytes(ACCOUNT_VALUE);
        bool added;
        double now;
        account_fail_after(fail);
        enum status st = zset_set(v, member, score, &added);
        account_fail_after(0);
        zset_check(v);
        if (st == ST_OK) {
            assert_true(zset_score(v, member, &now));
            assert_true(now == score);
            return fail - 1;
        }
        assert_int_equal(st, ST_NOMEM);
        assert_int_equal(v->encoding, encoding);
        assert_true(digest(v) == before);
        assert_int_equal(account_bytes(ACCOUNT_VALUE), value_bytes);
        assert_true(fail < 2000);
    }
}

/* ---- forms and scores ------------------------------------------------------------------------ */

static void a_new_zset_is_empty(void **state) {
    struct fixture f;
    struct zset_entry e;
    uint64_t first, count;
    double score;
    create(&f, true);
    assert_int_equal(zset_count(&f.h.v), 0);
    assert_false(zset_score(&f.h.v, BYTES_LIT("a"), &score));
    assert_false(zset_delete(&f.h.v, BYTES_LIT("a")));
    assert_false(zset_at(&f.h.v, 0, &e));
    assert_int_equal(zset_delete_range(&f.h.v, 0, 10), 0);
    zset_range_by_score(&f.h.v, &(struct zset_score_bound){-INFINITY, false},
                        &(struct zset_score_bound){INFINITY, false}, &first, &count);
    assert_int_equal(count, 0);
    assert_string_equal(value_type_name(VALUE_ZSET), "zset");
    assert_string_equal(value_encoding_name(&f.h.v), "listpack");
    zset_check(&f.h.v);
    destroy(&f);
}

static const struct {
    double score;
    size_t len;
} score_cases[] = {
    {0, 1},
    {127, 1},
    {-128, 1},
    {128, 2},
    {-129, 2},
    {32767, 2},
    {-32768, 2},
    {32768, 4},
    {-32769, 4},
    {2147483647, 4},
    {-2147483648.0, 4},
    {2147483648.0, 8},
    {-2147483649.0, 8},
    {0.5, 8},
    {-0.1, 8},
    {9007199254740993.0, 8},
    {0x1p-1074, 8},
    {1.7976931348623157e308, 8},
    {INFINITY, 8},
    {-INFINITY, 8},
};

static void scores_are_exact_in_the_fewest_bytes(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(score_cases); i++) {
        for (int form = 0; form < 2; form++) {
            struct fixture f;
            double score;
            create(&f, form == 0);
            set(&f, BYTES_LIT("m"), score_cases[i].score, true);
            assert_true(zset_score(&f.h.v, BYTES_LIT("m"), &score));
            assert_true(score == score_cases[i].score);
            assert_int_equal(packed(&f), form == 0);
            if (form == 0) {
                assert_int_equal(f.h.v.len, 2 + 1 + score_cases[i].len + 1 + 1);
            }
            zset_check(&f.h.v);
            destroy(&f);
        }
    }
}

/* Every score to every other: in place, wider, narrower. */
static void scores_change_to_any_other(void **state) {
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        double score;
        uint64_t rank;
        create(&f, form == 0);
        set(&f, BYTES_LIT("low"), -1000, true);
        set(&f, BYTES_LIT("m"), 1, true);
        set(&f, BYTES_LIT("high"), 1000, true);
        for (size_t i = 0; i < ARRAY_LEN(score_cases); i++) {
            for (size_t j = 0; j < ARRAY_LEN(score_cases); j++) {
                double to = score_cases[j].score;
                set(&f, BYTES_LIT("m"), score_cases[i].score, false);
                set(&f, BYTES_LIT("m"), to, false);
                assert_true(zset_rank(&f.h.v, BYTES_LIT("m"), &rank, &score));
                assert_true(score == to);
                assert_int_equal(rank, to < -1000 ? 0 : to < 1000 ? 1 : 2);
                zset_check(&f.h.v);
            }
        }
        assert_int_equal(zset_count(&f.h.v), 3);
        destroy(&f);
    }
}

static void assert_zero(const struct value *v, struct bytes member, bool minus) {
    double score = 1;
    assert_true(zset_score(v, member, &score));
    assert_true(score == 0 && (signbit(score) != 0) == minus);
}

static void minus_zero_is_kept_and_equals_zero(void **state) {
    const struct zset_score_bound zero = {0, false}, minus = {-0.0, false}, above = {-0.0, true};
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        uint64_t first, count;
        create(&f, form == 0);
        set(&f, BYTES_LIT("c"), 0, true);
        set(&f, BYTES_LIT("b"), -0.0, true);
        set(&f, BYTES_LIT("a"), 0, true);
        assert_order(&f.h.v, "a b c ");
        set(&f, BYTES_LIT("b"), 0, false); /* no change of score */
        set(&f, BYTES_LIT("a"), -0.0, false);
        assert_zero(&f.h.v, BYTES_LIT("b"), true);
        assert_zero(&f.h.v, BYTES_LIT("a"), false);
        set(&f, BYTES_LIT("a"), 5, false);
        assert_order(&f.h.v, "b c a ");
        set(&f, BYTES_LIT("a"), -0.0, false); /* from a record of one byte */
        set(&f, BYTES_LIT("c"), 0.5, false);
        set(&f, BYTES_LIT("c"), 0, false);
        assert_order(&f.h.v, "a b c ");
        assert_zero(&f.h.v, BYTES_LIT("a"), true);
        assert_zero(&f.h.v, BYTES_LIT("c"), false);
        zset_range_by_score(&f.h.v, &minus, &zero, &first, &count);
        assert_true(first == 0 && count == 3);
        zset_range_by_score(&f.h.v, &above, &zero, &first, &count);
        assert_int_equal(count, 0);
        assert_true(zset_delete(&f.h.v, BYTES_LIT("b")));
        assert_order(&f.h.v, "a c ");
        destroy(&f);
    }
}

static void ties_are_in_byte_order(void **state) {
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        create(&f, form == 0);
        set(&f, BYTES_LIT("b"), 1, true);
        set(&f, BYTES_LIT("ab"), 1, true);
        set(&f, BYTES_LIT("\xff"), 1, true);
        set(&f, BYTES_LIT("a"), 1, true);
        set(&f, BYTES_LIT(""), 1, true);
        set(&f, BYTES_LIT("z"), 0.5, true);
        set(&f, BYTES_LIT("B"), 1, true);
        assert_order(&f.h.v, "z  B a ab b \xff ");
        set(&f, BYTES_LIT("z"), 1, false);
        assert_order(&f.h.v, " B a ab b z \xff ");
        set(&f, BYTES_LIT("a\0b"), 1, true);
        assert_true(zset_delete(&f.h.v, BYTES_LIT("a")));
        assert_false(zset_delete(&f.h.v, BYTES_LIT("a")));
        assert_true(zset_delete(&f.h.v, BYTES_LIT("a\0b")));
        assert_order(&f.h.v, " B ab b z \xff ");
        zset_check(&f.h.v);
        destroy(&f);
    }
}

static void more_members_make_a_table(void **state) {
    struct fixture f;
    char text[16];
    create_with(&f, LARGE_CHUNK, 128, 64);
    fill(&f, 0, 128);
    assert_true(packed(&f));
    set(&f, number(text, 5), 3.25, false);
    assert_true(packed(&f));
    fill(&f, 128, 129);
    assert_false(packed(&f));
    assert_string_equal(value_encoding_name(&f.h.v), "skiplist");
    assert_int_equal(zset_count(&f.h.v), 129);
    zset_check(&f.h.v);
    destroy(&f);
}

static void longer_members_make_a_table(void **state) {
    struct fixture f;
    char text[100];
    create_with(&f, LARGE_CHUNK, 128, 64);
    set(&f, pattern(text, 64, 1), 1, true);
    assert_true(packed(&f));
    f.h.env.zset_packed_element_max = 10;
    set(&f, pattern(text, 64, 1), 2, false); /* there already: stays */
    assert_true(packed(&f));
    set(&f, pattern(text, 11, 2), 2, true);
    assert_false(packed(&f));
    zset_check(&f.h.v);
    destroy(&f);
}

static void a_full_record_makes_a_table(void **state) {
    struct fixture f;
    char text[16];
    for (int changing = 0; changing < 2; changing++) {
        create(&f, true);
        fill(&f, 0, 10);
        f.h.len_max = f.h.v.len;
        if (changing) { /* a wider score */
            set(&f, number(text, 3), 8.5, false);
            assert_order(&f.h.v, "00000000 00000001 00000002 00000004 00000005 00000006 00000007 "
                                 "00000008 00000003 00000009 ");
        } else {
            fill(&f, 10, 11);
        }
        assert_false(packed(&f));
        assert_int_equal(zset_count(&f.h.v), changing ? 10 : 11);
        zset_check(&f.h.v);
        destroy(&f);
    }
}

static void a_new_member_takes_its_place_when_a_table_is_made(void **state) {
    static const double places[] = {-1, 4.5, 100};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct fixture f;
        uint64_t rank;
        double score;
        create_with(&f, SMALL_CHUNK, 10, 64);
        fill(&f, 0, 10);
        set(&f, BYTES_LIT("new"), places[i], true);
        assert_false(packed(&f));
        assert_true(zset_rank(&f.h.v, BYTES_LIT("new"), &rank, &score));
        assert_int_equal(rank, i * 5);
        zset_check(&f.h.v);
        destroy(&f);
    }
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void score_ranges_keep_to_their_bounds(void **state) {
    static const struct {
        struct zset_score_bound min, max;
        uint64_t first, count;
    } cases[] = {
        {{-INFINITY, false}, {INFINITY, false}, 0, 6},
        {{1, false}, {3, false}, 0, 4},
        {{1, true}, {3, false}, 1, 3},
        {{1, true}, {3, true}, 1, 2},
        {{2, false}, {2, false}, 1, 2},
        {{2, true}, {2, false}, 0, 0},
        {{2, false}, {2, true}, 0, 0},
        {{3, false}, {1, false}, 0, 0},
        {{-5, false}, {0, false}, 0, 0},
        {{4.5, false}, {INFINITY, true}, 0, 0},
        {{4.5, false}, {INFINITY, false}, 5, 1},
        {{INFINITY, true}, {INFINITY, false}, 0, 0},
    };
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        create(&f, form == 0);
        set(&f, BYTES_LIT("a"), 1, true);
        set(&f, BYTES_LIT("b"), 2, true);
        set(&f, BYTES_LIT("c"), 2, true);
        set(&f, BYTES_LIT("d"), 3, true);
        set(&f, BYTES_LIT("e"), 4.25, true);
        set(&f, BYTES_LIT("f"), INFINITY, true);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            uint64_t first, count;
            zset_range_by_score(&f.h.v, &cases[i].min, &cases[i].max, &first, &count);
            assert_int_equal(count, cases[i].count);
            assert_true(count == 0 || first == cases[i].first);
        }
        destroy(&f);
    }
}

static void lex_ranges_keep_to_their_bounds(void **state) {
    static const struct zset_lex_bound low = {.kind = ZSET_LEX_MIN}, high = {.kind = ZSET_LEX_MAX};
    const struct zset_lex_bound b = {ZSET_LEX_MEMBER, BYTES_LIT("b"), false};
    const struct zset_lex_bound after_b = {ZSET_LEX_MEMBER, BYTES_LIT("b"), true};
    const struct zset_lex_bound bb = {ZSET_LEX_MEMBER, BYTES_LIT("bb"), false};
    const struct zset_lex_bound z = {ZSET_LEX_MEMBER, BYTES_LIT("z"), false};
    const struct {
        const struct zset_lex_bound *min, *max;
        uint64_t first, count;
    } cases[] = {
        {&low, &high, 0, 4},    {&b, &high, 1, 3},   {&after_b, &high, 2, 2}, {&low, &b, 0, 2},
        {&low, &after_b, 0, 1}, {&b, &b, 1, 1},      {&after_b, &b, 0, 0},    {&bb, &z, 2, 2},
        {&z, &high, 0, 0},      {&high, &low, 0, 0}, {&high, &high, 0, 0},    {&low, &low, 0, 0},
        {&z, &b, 0, 0},
    };
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        create(&f, form == 0);
        set(&f, BYTES_LIT("a"), 5, true);
        set(&f, BYTES_LIT("b"), 5, true);
        set(&f, BYTES_LIT("c"), 5, true);
        set(&f, BYTES_LIT("d"), 5, true);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            uint64_t first, count;
            zset_range_by_lex(&f.h.v, cases[i].min, cases[i].max, &first, &count);
            assert_int_equal(count, cases[i].count);
            assert_true(count == 0 || first == cases[i].first);
        }
        destroy(&f);
    }
}

static void walks_start_at_their_rank(void **state) {
    static const struct {
        uint64_t rank;
        bool backward;
        size_t count;
    } cases[] = {{0, false, 300},  {1, false, 299},        {299, false, 1}, {300, false, 0},
                 {9999, false, 0}, {0, true, 1},           {1, true, 2},    {299, true, 300},
                 {300, true, 300}, {UINT64_MAX, true, 300}};
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        create(&f, form == 0);
        fill(&f, 0, 300);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            struct zset_iter it;
            struct zset_entry out[77];
            size_t seen = 0, n;
            uint64_t rank = cases[i].rank > 299 ? 299 : cases[i].rank;
            zset_iter_init(&it, &f.h.v, cases[i].rank, cases[i].backward);
            while ((n = zset_fetch(&it, out, 1 + seen % 77)) != 0) {
                for (size_t j = 0; j < n; j++, seen++) {
                    uint64_t at = cases[i].backward ? rank - seen : rank + seen;
                    assert_true(out[j].score == (double)at);
                }
            }
            assert_int_equal(seen, cases[i].count);
        }
        destroy(&f);
    }
}

static void ranges_are_removed_by_rank(void **state) {
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        struct zset_entry e;
        create(&f, form == 0);
        fill(&f, 0, 500);
        assert_int_equal(zset_delete_range(&f.h.v, 500, 1), 0);
        assert_int_equal(zset_delete_range(&f.h.v, 3, 0), 0);
        assert_int_equal(zset_delete_range(&f.h.v, 100, 300), 300);
        zset_check(&f.h.v);
        assert_true(zset_at(&f.h.v, 99, &e) && e.score == 99);
        assert_true(zset_at(&f.h.v, 100, &e) && e.score == 400);
        assert_int_equal(zset_delete_range(&f.h.v, 199, UINT64_MAX), 1);
        assert_int_equal(zset_delete_range(&f.h.v, 0, UINT64_MAX), 199);
        assert_int_equal(zset_count(&f.h.v), 0);
        zset_check(&f.h.v);
        fill(&f, 0, 10);
        zset_check(&f.h.v);
        destroy(&f);
    }
}

/* ---- long members ---------------------------------------------------------------------------- */

/* Around 240 bytes, where mlen gets longer, and 16 KiB, where a record of a 64 KiB chunk ends; the
 * score is widened and narrowed at each. */
static void members_of_every_length_live_together(void **state) {
    static const size_t lens[] = {0,     1,     238,   239,   240,   241,   16370, 16371, 16372,
                                  16373, 16374, 16375, 16376, 16383, 16384, 65535, 65536, 200000};
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        char *text = malloc(200000);
        double score;
        assert_non_null(text);
        create(&f, form == 0);
        f.h.len_max = SIZE_MAX;
        for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
            set(&f, pattern(text, lens[i], i), (double)i, true);
        }
        zset_check(&f.h.v);
        for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
            set(&f, pattern(text, lens[i], i), (double)i + 0.5, false);
            zset_check(&f.h.v);
        }
        for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
            assert_true(zset_score(&f.h.v, pattern(text, lens[i], i), &score));
            assert_true(score == (double)i + 0.5);
            set(&f, BYTES(text, lens[i]), -(double)i, false);
        }
        zset_check(&f.h.v);
        for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
            assert_true(zset_delete(&f.h.v, pattern(text, lens[i], i)));
        }
        zset_check(&f.h.v);
        free(text);
        destroy(&f);
    }
}

static void boxed_bytes_are_counted_and_given_back(void **state) {
    struct fixture f;
    char *text = malloc(100000);
    assert_non_null(text);
    create(&f, false);
    set(&f, BYTES_LIT("small"), 1, true);
    size_t before = value_heap_bytes(&f.h.v), values = account_bytes(ACCOUNT_VALUE);
    assert_false(value_is_big(&f.h.v));
    set(&f, pattern(text, 100000, 1), 1, true);
    assert_true(value_heap_bytes(&f.h.v) >= before + 100000);
    assert_true(value_is_big(&f.h.v));
    set(&f, BYTES(text, 100000), 0.5, false); /* a wider record for the same box */
    assert_true(zset_delete(&f.h.v, BYTES(text, 100000)));
    assert_int_equal(account_bytes(ACCOUNT_VALUE), values);
    set(&f, BYTES(text, 100000), 1, true); /* for the teardown to free */
    free(text);
    destroy(&f);
}

/* ---- scans, samples, prefetching ------------------------------------------------------------- */

static void count_visit(void *arg, struct bytes member, double score) {
    uint8_t *times = arg;
    times[(size_t)score]++;
}

static void scans_see_every_member_once(void **state) {
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        uint8_t times[3000] = {0};
        uint64_t cursor = 0;
        size_t calls = 0, count = form == 0 ? 100 : 3000;
        create(&f, form == 0);
        fill(&f, 0, count);
        do {
            cursor = zset_scan(&f.h.v, cursor, 10, count_visit, times);
            calls++;
        } while (cursor != 0);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(times[i], 1);
        }
        assert_true(form == 0 ? calls == 1 : calls > 50);
        destroy(&f);
    }
}

static void random_members_are_uniform(void **state) {
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        struct rng rng;
        unsigned times[20] = {0};
        create(&f, form == 0);
        fill(&f, 0, 20);
        rng_init(&rng, 5);
        for (int i = 0; i < 20000; i++) {
            struct zset_entry e;
            zset_random(&f.h.v, &rng, &e);
            times[(size_t)e.score]++;
        }
        for (size_t i = 0; i < 20; i++) { /* 1000 expected; 6 standard deviations */
            assert_in_range(times[i], 815, 1185);
        }
        destroy(&f);
    }
}

static void prefetching_changes_nothing(void **state) {
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        create(&f, form == 0);
        fill(&f, 0, 200);
        uint64_t before = digest(&f.h.v);
        for (uint64_t i = 0; i < 300; i++) {
            char text[16];
            uint64_t hash = hash_bytes(number(text, i));
            zset_prefetch_index(&f.h.v, hash);
            zset_prefetch_record(&f.h.v, hash);
            zset_prefetch_order(&f.h.v, hash);
            zset_prefetch_score(&f.h.v, (double)i);
        }
        assert_true(digest(&f.h.v) == before);
        destroy(&f);
    }
}

/* ---- the whole object ------------------------------------------------------------------------ */

/* Entries of fill(), in one of three orders. */
static struct zset_entry *make_entries(size_t count, int how, char (*text)[16]) {
    struct zset_entry *entries = malloc((count + 1) * sizeof(*entries));
    assert_non_null(entries);
    for (size_t i = 0; i < count; i++) {
        size_t n = how == 0 ? i : how == 1 ? count - 1 - i : i * 7 % count;
        entries[i] = (struct zset_entry){number(text[i], n), (double)n};
    }
    return entries;
}

static void any_order_builds_the_same_set(void **state) {
    static const size_t counts[] = {0, 1, 2, 16, 17, 1000, 20000}; /* none a multiple of 7 */
    static char text[20000][16];
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct fixture set_one_by_one;
        create_with(&set_one_by_one, SMALL_CHUNK, 16, 64);
        fill(&set_one_by_one, 0, counts[i]);
        for (int how = 0; how < 3; how++) {
            struct fixture f;
            create_with(&f, SMALL_CHUNK, 16, 64);
            struct zset_entry *entries = make_entries(counts[i], how, text);
            assert_int_equal(zset_build(&f.h.v, entries, counts[i]), ST_OK);
            free(entries);
            assert_int_equal(packed(&f), counts[i] <= 16);
            assert_true(digest(&f.h.v) == digest(&set_one_by_one.h.v));
            zset_check(&f.h.v);
            fill(&f, counts[i], counts[i] + 20);
            zset_check(&f.h.v);
            held_deinit(&f.h);
            pages_destroy(f.pages);
        }
        destroy(&set_one_by_one);
    }
}

static void a_checked_build_refuses_a_member_twice(void **state) {
    static const size_t counts[] = {2, 16, 17, 1000, 20000};
    static char text[20000][16];
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        size_t count = counts[i];
        for (int how = 0; how < 6; how++) {
            struct fixture f;
            create_with(&f, SMALL_CHUNK, 16, 64);
            struct zset_entry *entries = make_entries(count, how % 3, text);
            assert_int_equal(zset_build_checked(&f.h.v, entries, count), ST_OK);
            assert_int_equal(zset_count(&f.h.v), count);
            zset_check(&f.h.v);
            destroy(&f);
            free(entries);
            create_with(&f, SMALL_CHUNK, 16, 64);
            entries = make_entries(count, how % 3, text);
            entries[count / 2].member = entries[count / 2 - 1].member; /* with another score */
            if (how >= 3) {
                entries[count / 2].score = entries[count / 2 - 1].score;
            }
            assert_int_equal(zset_build_checked(&f.h.v, entries, count), ST_EXISTS);
            assert_int_equal(zset_count(&f.h.v), 0);
            assert_int_equal(object_bytes(), 0);
            free(entries);
            destroy(&f);
        }
    }
}

static void long_members_are_built_into_a_table(void **state) {
    struct fixture f;
    struct zset_entry entries[] = {{BYTES_LIT("longer"), 2}, {BYTES_LIT("ok"), 1}};
    create_with(&f, SMALL_CHUNK, 16, 5);
    assert_int_equal(zset_build(&f.h.v, entries, 2), ST_OK);
    assert_false(packed(&f));
    assert_order(&f.h.v, "ok longer ");
    destroy(&f);
    create(&f, true);
    f.h.len_max = 12; /* the record has no room for both */
    assert_int_equal(zset_build(&f.h.v, entries, 2), ST_OK);
    assert_false(packed(&f));
    assert_order(&f.h.v, "ok longer ");
    destroy(&f);
}

static void a_failed_build_leaves_the_set_empty(void **state) {
    static char text[3000][16];
    for (size_t count = 10; count <= 3000; count *= 300) {
        struct fixture f;
        size_t failures = 0;
        create_with(&f, SMALL_CHUNK, 16, 64);
        struct zset_entry *entries = make_entries(count, 0, text);
        for (size_t fail = 1;; fail++) {
            account_fail_after(fail);
            enum status st = zset_build(&f.h.v, entries, count);
            account_fail_after(0);
            if (st == ST_OK) {
                break;
            }
            failures++;
            assert_int_equal(st, ST_NOMEM);
            assert_true(packed(&f));
            assert_int_equal(zset_count(&f.h.v), 0);
            assert_int_equal(object_bytes(), 0);
        }
        assert_true(failures >= (count == 10 ? 1 : 20));
        assert_int_equal(zset_count(&f.h.v), count);
        zset_check(&f.h.v);
        free(entries);
        destroy(&f);
    }
}

static void a_clone_is_equal_and_independent(void **state) {
    struct fixture f, copy;
    struct value_image image;
    char *text = malloc(70000), small[16];
    assert_non_null(text);
    create(&f, false);
    fill(&f, 0, 5000);
    set(&f, pattern(text, 70000, 1), 17.5, true);
    assert_int_equal(value_clone(&f.h.v, &image), ST_OK);
    copy.pages = f.pages;
    held_init(&copy.h, VALUE_ZSET, &image, &f.h.env);
    assert_true(digest(&copy.h.v) == digest(&f.h.v));
    zset_check(&copy.h.v);
    uint64_t before = digest(&copy.h.v);
    for (uint64_t i = 0; i < 5000; i += 2) {
        assert_true(zset_delete(&f.h.v, number(small, i)));
    }
    assert_true(digest(&copy.h.v) == before);
    zset_check(&f.h.v);
    held_deinit(&copy.h);
    free(text);
    destroy(&f);
}

static void a_failed_clone_leaves_nothing(void **state) {
    struct fixture f;
    struct value_image image;
    char text[300];
    create(&f, false);
    fill(&f, 0, 3000);
    set(&f, pattern(text, 300, 1), 17.5, true);
    size_t before = object_bytes(), failures = 0;
    for (size_t fail = 1;; fail++) {
        account_fail_after(fail);
        enum status st = value_clone(&f.h.v, &image);
        account_fail_after(0);
        if (st == ST_OK) {
            break;
        }
        failures++;
        assert_int_equal(st, ST_NOMEM);
        assert_int_equal(object_bytes(), before);
    }
    assert_true(failures >= 20);
    value_image_discard(VALUE_ZSET, &image);
    destroy(&f);
}

static void a_big_zset_is_freed_in_steps(void **state) {
    struct fixture f;
    create(&f, false);
    fill(&f, 0, 1000);
    assert_false(value_is_big(&f.h.v));
    fill(&f, 1000, 50000);
    assert_true(value_is_big(&f.h.v));
    void *object = value_object(&f.h.v);
    size_t steps = 1;
    while (!value_free_step(VALUE_ZSET, object, 1)) {
        steps++;
    }
    assert_true(steps > 100);
    assert_int_equal(object_bytes(), 0);
    f.h.v.encoding = VALUE_PACKED;
    destroy(&f);
}

static void churn_gives_memory_back(void **state) {
#ifdef GC_ARENA_GUARDED
    skip(); /* evacuation has nothing to do there */
#endif
    struct fixture f, fresh;
    char text[16];
    create(&f, false);
    fill(&f, 0, 60000);
    for (uint64_t i = 0; i < 60000; i++) {
        if (i % 4 != 0) {
            assert_true(zset_delete(&f.h.v, number(text, i)));
        }
    }
    zset_check(&f.h.v);
    create(&fresh, false);
    for (uint64_t i = 0; i < 60000; i += 4) {
        set(&fresh, number(text, i), (double)i, true);
    }
    assert_true(digest(&f.h.v) == digest(&fresh.h.v));
    assert_true(value_heap_bytes(&f.h.v) <= value_heap_bytes(&fresh.h.v) * 5 / 4 + 2 * SMALL_CHUNK);
    held_deinit(&fresh.h);
    pages_destroy(fresh.pages);
    destroy(&f);
}

/* Scores that come and go do not move records: nothing is allocated, nothing dies. */
static void narrower_scores_stay_in_place(void **state) {
    struct fixture f;
    char text[16];
    create(&f, false);
    for (uint64_t i = 0; i < 1000; i++) {
        set(&f, number(text, i), (double)i + 0.5, true);
    }
    size_t before = account_bytes(ACCOUNT_ARENA);
    for (uint64_t round = 0; round < 10; round++) {
        for (uint64_t i = 0; i < 1000; i++) {
            set(&f, number(text, i), (double)i + (round % 2 ? 0.5 : 0), false);
        }
    }
    assert_int_equal(account_bytes(ACCOUNT_ARENA), before);
    zset_check(&f.h.v);
    destroy(&f);
}

/* ---- allocations that fail ------------------------------------------------------------------- */

static void packed_growth_may_fail(void **state) {
    struct fixture f;
    char text[16];
    create(&f, true);
    fill(&f, 0, 20);
    assert_int_equal(set_until_it_succeeds(&f, BYTES_LIT("new"), 5), 1);
    assert_int_equal(set_until_it_succeeds(&f, number(text, 3), 5), 0);    /* same width */
    assert_int_equal(set_until_it_succeeds(&f, number(text, 3), 5000), 1); /* wider */
    assert_int_equal(set_until_it_succeeds(&f, number(text, 3), 1), 0);    /* idle byte stays */
    destroy(&f);
}

static void conversion_may_fail(void **state) {
    struct fixture f;
    create_with(&f, SMALL_CHUNK, 128, 64);
    fill(&f, 0, 128);
    assert_true(set_until_it_succeeds(&f, BYTES_LIT("new"), 64) >= 6);
    assert_false(packed(&f));
    destroy(&f);
}

static void table_growth_may_fail(void **state) {
    struct fixture f;
    size_t failures = 0;
    create(&f, false);
    for (uint64_t i = 0; i < 1500; i++) {
        char text[16];
        failures += set_until_it_succeeds(&f, number(text, i * 7919 % 1500), (double)(i % 40));
    }
    assert_true(failures >= 30);
    destroy(&f);
}

static void moving_and_widening_may_fail(void **state) {
    struct fixture f;
    size_t failures = 0;
    create(&f, false);
    fill(&f, 0, 1000);
    for (uint64_t i = 0; i < 1000; i++) {
        char text[16];
        failures += set_until_it_succeeds(&f, number(text, i), (double)(i * 7919 % 1000) + 0.25);
    }
    assert_true(failures >= 5);
    destroy(&f);
}

static void boxing_may_fail(void **state) {
    struct fixture f;
    char *text = malloc(70000);
    assert_non_null(text);
    create(&f, false);
    fill(&f, 0, 200);
    assert_true(set_until_it_succeeds(&f, pattern(text, 70000, 1), 5) >= 1);
    set_until_it_succeeds(&f, BYTES(text, 70000), 0.5);
    free(text);
    destroy(&f);
}

static void deleting_never_fails(void **state) {
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        char text[16];
        create(&f, form == 0);
        fill(&f, 0, 2000);
        account_fail_after(1);
        for (uint64_t i = 0; i < 2000; i += 2) {
            assert_true(zset_delete(&f.h.v, number(text, i)));
        }
        assert_int_equal(zset_delete_range(&f.h.v, 0, 999), 999);
        account_fail_after(0);
        zset_check(&f.h.v);
        assert_order(&f.h.v, "00001999 ");
        destroy(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_zset_is_empty),
        cmocka_unit_test(scores_are_exact_in_the_fewest_bytes),
        cmocka_unit_test(scores_change_to_any_other),
        cmocka_unit_test(minus_zero_is_kept_and_equals_zero),
        cmocka_unit_test(ties_are_in_byte_order),
        cmocka_unit_test(more_members_make_a_table),
        cmocka_unit_test(longer_members_make_a_table),
        cmocka_unit_test(a_full_record_makes_a_table),
        cmocka_unit_test(a_new_member_takes_its_place_when_a_table_is_made),
        cmocka_unit_test(score_ranges_keep_to_their_bounds),
        cmocka_unit_test(lex_ranges_keep_to_their_bounds),
        cmocka_unit_test(walks_start_at_their_rank),
        cmocka_unit_test(ranges_are_removed_by_rank),
        cmocka_unit_test(members_of_every_length_live_together),
        cmocka_unit_test(boxed_bytes_are_counted_and_given_back),
        cmocka_unit_test(scans_see_every_member_once),
        cmocka_unit_test(random_members_are_uniform),
        cmocka_unit_test(prefetching_changes_nothing),
        cmocka_unit_test(any_order_builds_the_same_set),
        cmocka_unit_test(a_checked_build_refuses_a_member_twice),
        cmocka_unit_test(long_members_are_built_into_a_table),
        cmocka_unit_test(a_failed_build_leaves_the_set_empty),
        cmocka_unit_test(a_clone_is_equal_and_independent),
        cmocka_unit_test(a_failed_clone_leaves_nothing),
        cmocka_unit_test(a_big_zset_is_freed_in_steps),
        cmocka_unit_test(churn_gives_memory_back),
        cmocka_unit_test(narrower_scores_stay_in_place),
        cmocka_unit_test(packed_growth_may_fail),
        cmocka_unit_test(conversion_may_fail),
        cmocka_unit_test(table_growth_may_fail),
        cmocka_unit_test(moving_and_widening_may_fail),
        cmocka_unit_test(boxing_may_fail),
        cmocka_unit_test(deleting_never_fails),
    };
    hash_setup_seed(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
