/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "host.h"
#include "types/set.h"

#define SMALL_CHUNK ((size_t)64 << 10)
#define LARGE_CHUNK ((size_t)2 << 20)
#define LARGE ((size_t)1 << 20)

struct fixture {
    struct held h;
    struct pages *pages;
};

struct limits {
    size_t ints, entries, element;
};

static const struct limits usual = {512, 128, 64};
static const struct limits none = {0, 0, 0};

static void create(struct fixture *f, size_t chunk_bytes, bool integers, struct limits limits) {
    f->pages = held_pages(chunk_bytes);
    struct type_env env = {.pages = f->pages,
                           .set_int_entries_max = limits.ints,
                           .set_packed_entries_max = limits.entries,
                           .set_packed_element_max = limits.element};
    struct value_image image;
    set_empty_image(integers, &image);
    held_init(&f->h, VALUE_SET, &image, &env);
}

static void destroy(struct fixture *f) {
    struct pages_stats stats;
    held_deinit(&f->h);
    pages_get_stats(f->pages, &stats);
    assert_int_equal(stats.chunks, 0);
    pages_destroy(f->pages);
    assert_int_equal(held_total_bytes(), 0);
}

static void assert_form(const struct fixture *f, const char *name) {
    assert_string_equal(value_encoding_name(&f->h.v), name);
    set_check(&f->h.v);
}

static void add(struct fixture *f, struct bytes member, bool is_new) {
    bool added = !is_new;
    assert_int_equal(set_add(&f->h.v, member, &added), ST_OK);
    assert_int_equal(added, is_new);
    assert_true(set_contains(&f->h.v, member));
}

static struct bytes number(char *text, int64_t n) {
    return BYTES(text, number_format_i64(text, n));
}

static void add_int(struct fixture *f, int64_t n, bool is_new) {
    char text[NUMBER_I64_MAX_LEN];
    add(f, number(text, n), is_new);
}

static bool has_int(const struct fixture *f, int64_t n) {
    char text[NUMBER_I64_MAX_LEN];
    return set_contains(&f->h.v, number(text, n));
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

/* Members that are no integers. */
static void fill(struct fixture *f, uint64_t from, uint64_t to, size_t len) {
    for (uint64_t i = from; i < to; i++) {
        add(f, bytes_of(i, len), true);
    }
}

/* One number for all members, whatever their order. */
static uint64_t digest(const struct value *v) {
    uint64_t sum = set_count(v), position = 0;
    struct bytes members[7];
    char scratch[7 * SET_SCRATCH_LEN];
    size_t count;
    while ((count = set_next(v, &position, members, ARRAY_LEN(members), scratch)) != 0) {
        for (size_t i = 0; i < count; i++) {
            sum += hash_bytes(members[i]) * UINT64_C(0x9E3779B97F4A7C15);
        }
    }
    return sum;
}

/* Fail the first, second, third ... allocation of set_add until it succeeds; after each failure the
 * set is as before. Returns how many times it failed. */
static size_t add_until_it_succeeds(struct fixture *f, struct bytes member) {
    struct value *v = &f->h.v;
    uint64_t before = digest(v);
    enum value_encoding encoding = v->encoding;
    size_t value_bytes = account_bytes(ACCOUNT_VALUE);
    for (size_t fail = 1;; fail++) {
        bool added;
        account_fail_after(fail);
        enum status st = set_add(v, member, &added);
        account_fail_after(0);
        set_check(v);
        if (st == ST_OK) {
            assert_true(set_contains(v, member));
            return fail - 1;
        }
        assert_int_equal(st, ST_NOMEM);
        assert_int_equal(v->encoding, encoding);
        assert_true(digest(v) == before);
        assert_int_equal(account_bytes(ACCOUNT_VALUE), value_bytes);
        assert_true(fail < 2000);
    }
}

/* ---- integers ------------------------------------------------------------------------------- */

static void a_new_set_is_empty(void **state) {
    for (int integers = 0; integers < 2; integers++) {
        struct fixture f;
        struct bytes member;
        char scratch[SET_SCRATCH_LEN];
        uint64_t position = 0;
        create(&f, LARGE_CHUNK, integers, usual);
        assert_form(&f, integers ? "intset" : "listpack");
        assert_int_equal(set_count(&f.h.v), 0);
        assert_false(set_contains(&f.h.v, BYTES_LIT("")));
        assert_false(has_int(&f, 0));
        assert_false(set_remove(&f.h.v, BYTES_LIT("1")));
        assert_int_equal(set_next(&f.h.v, &position, &member, 1, scratch), 0);
        destroy(&f);
    }
}

static void integers_stay_sorted_and_widen(void **state) {
    static const int64_t in_order_of_arrival[] = {
        5,         -3,         0,         32767,      -32768,   32768,
        -32769,    2147483647, INT32_MIN, 2147483648, 7,        INT32_MIN - INT64_C(1),
        INT64_MAX, INT64_MIN,  1,         -1,         123456789};
    struct fixture f;
    create(&f, LARGE_CHUNK, true, usual);
    for (size_t i = 0; i < ARRAY_LEN(in_order_of_arrival); i++) {
        add_int(&f, in_order_of_arrival[i], true);
        add_int(&f, in_order_of_arrival[i], false);
        set_check(&f.h.v);
        for (size_t k = 0; k <= i; k++) {
            assert_true(has_int(&f, in_order_of_arrival[k]));
        }
    }
    assert_form(&f, "intset");
    assert_int_equal(set_count(&f.h.v), ARRAY_LEN(in_order_of_arrival));
    char scratch[64 * SET_SCRATCH_LEN];
    struct bytes members[64];
    uint64_t position = 0;
    size_t count = set_next(&f.h.v, &position, members, 64, scratch);
    int64_t last = 0, n;
    assert_int_equal(count, ARRAY_LEN(in_order_of_arrival));
    for (size_t i = 0; i < count; i++) {
        assert_true(number_parse_i64(members[i], &n));
        assert_true(i == 0 || last < n);
        last = n;
    }
    assert_false(has_int(&f, 6));
    for (size_t i = 0; i < ARRAY_LEN(in_order_of_arrival); i++) {
        char text[NUMBER_I64_MAX_LEN];
        assert_true(set_remove(&f.h.v, number(text, in_order_of_arrival[i])));
        assert_false(set_remove(&f.h.v, number(text, in_order_of_arrival[i])));
        set_check(&f.h.v);
    }
    assert_int_equal(set_count(&f.h.v), 0);
    destroy(&f);
}

/* The first wider integer may be the smallest or the largest of all. */
static void widening_works_at_both_ends(void **state) {
    static const int64_t wide[] = {40000, -40000, INT64_C(1) << 40, -(INT64_C(1) << 40)};
    for (size_t w = 0; w < ARRAY_LEN(wide); w++) {
        for (int64_t narrow = 0; narrow < 4; narrow++) {
            struct fixture f;
            create(&f, LARGE_CHUNK, true, usual);
            for (int64_t i = 0; i < narrow; i++) {
                add_int(&f, i * 10, true);
            }
            add_int(&f, wide[w], true);
            add_int(&f, 3, true);
            set_check(&f.h.v);
            for (int64_t i = 0; i < narrow; i++) {
                assert_true(has_int(&f, i * 10));
            }
            assert_int_equal(f.h.v.len, 3 + (uint64_t)(narrow + 2) * (w < 2 ? 4 : 8));
            destroy(&f);
        }
    }
}

static void texts_that_are_no_plain_integers_are_other_members(void **state) {
    static const char *const texts[] = {"01",  "+1", "-0",  " 1",
                                        "1.0", "",   "1e0", "9223372036854775808"};
    struct fixture f;
    create(&f, LARGE_CHUNK, true, usual);
    add_int(&f, 1, true);
    add_int(&f, 0, true);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_false(set_contains(&f.h.v, bytes_from_cstr(texts[i])));
        assert_false(set_remove(&f.h.v, bytes_from_cstr(texts[i])));
    }
    assert_form(&f, "intset");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        add(&f, bytes_from_cstr(texts[i]), true);
    }
    assert_form(&f, "listpack");
    assert_int_equal(set_count(&f.h.v), 2 + ARRAY_LEN(texts));
    assert_true(has_int(&f, 1));
    destroy(&f);
}

/* ---- from one form to the next --------------------------------------------------------------- */

static void more_integers_make_a_table(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, true, usual);
    for (int64_t i = 0; i < 512; i++) {
        add_int(&f, i * 7919 % 512, true);
    }
    assert_form(&f, "intset");
    add_int(&f, 5, false);
    assert_form(&f, "intset");
    add_int(&f, 512, true);
    assert_form(&f, "hashtable");
    assert_int_equal(set_count(&f.h.v), 513);
    for (int64_t i = 0; i <= 512; i++) {
        assert_true(has_int(&f, i));
    }
    assert_false(has_int(&f, 513));
    destroy(&f);
}

static void a_word_among_integers_makes_a_packed_set_or_a_table(void **state) {
    static const struct {
        int64_t ints;
        size_t element_max, word_len;
        const char *form;
    } cases[] = {{0, 64, 3, "listpack"},   {127, 64, 3, "listpack"},  {128, 64, 3, "hashtable"},
                 {10, 64, 64, "listpack"}, {10, 64, 65, "hashtable"}, {10, 3, 3, "listpack"},
                 {10, 2, 2, "hashtable"}}; /* 109 is longer */
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        struct fixture f;
        struct limits limits = {512, 128, cases[c].element_max};
        create(&f, LARGE_CHUNK, true, limits);
        for (int64_t i = 0; i < cases[c].ints; i++) {
            add_int(&f, i + 100, true);
        }
        add(&f, bytes_of(1, cases[c].word_len), true);
        assert_form(&f, cases[c].form);
        assert_int_equal(set_count(&f.h.v), cases[c].ints + 1);
        for (int64_t i = 0; i < cases[c].ints; i++) {
            assert_true(has_int(&f, i + 100));
        }
        destroy(&f);
    }
}

static void more_members_make_a_table(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, false, usual);
    fill(&f, 0, 128, 8);
    add(&f, bytes_of(5, 8), false);
    assert_form(&f, "listpack");
    add(&f, BYTES_LIT("one more"), true);
    assert_form(&f, "hashtable");
    assert_int_equal(set_count(&f.h.v), 129);
    add(&f, bytes_of(127, 8), false);
    destroy(&f);
}

static void longer_members_make_a_table(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, false, usual);
    add(&f, bytes_of(1, 64), true);
    assert_form(&f, "listpack");
    add(&f, bytes_of(2, 65), true);
    assert_form(&f, "hashtable");
    assert_true(set_contains(&f.h.v, bytes_of(1, 64)));
    destroy(&f);

    struct limits wide = {512, SIZE_MAX, SIZE_MAX}; /* a length is a byte at most */
    create(&f, LARGE_CHUNK, false, wide);
    add(&f, bytes_of(1, 255), true);
    assert_form(&f, "listpack");
    add(&f, bytes_of(2, 256), true);
    assert_form(&f, "hashtable");
    destroy(&f);
}

static void a_full_record_makes_a_table(void **state) {
    struct limits wide = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    for (int integers = 0; integers < 2; integers++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, integers, wide);
        f.h.len_max = 1000;
        uint64_t count = 0;
        for (; f.h.v.encoding != VALUE_HEAP; count++) {
            if (integers) {
                add_int(&f, (int64_t)count * 1000000, true);
            } else {
                add(&f, bytes_of(count, 20), true);
            }
            assert_true(count < 1000);
        }
        assert_int_equal(set_count(&f.h.v), count);
        assert_form(&f, "hashtable");
        destroy(&f);
    }
}

static void no_limits_at_all_make_a_table_at_once(void **state) {
    for (int integers = 0; integers < 2; integers++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, integers, none);
        add(&f, integers ? BYTES_LIT("1") : BYTES_LIT(""), true);
        assert_form(&f, "hashtable");
        destroy(&f);
    }
}

static void many_at_once_are_the_same_as_one_by_one(void **state) {
    static const size_t counts[] = {0, 1, 128, 129, 512, 513, 10000};
    static char text[10000][SET_SCRATCH_LEN];
    static struct bytes members[10000];
    for (size_t k = 0; k < ARRAY_LEN(counts) * 4; k++) {
        struct fixture f;
        size_t count = counts[k / 4];
        bool integers = k / 2 % 2;
        create(&f, SMALL_CHUNK, true, usual);
        for (size_t i = 0; i < count; i++) {
            members[i] = number(text[i], (int64_t)i * 7);
            text[i][0] = integers ? text[i][0] : 'x';
        }
        if (!integers && count > 10) { /* 0 and 7 differ in their first digit only */
            members[1].len = 0;
        }
        if (k % 2) {
            assert_int_equal(set_expect(&f.h.v, count), ST_OK);
        }
        size_t distinct = 0;
        for (size_t i = 0; i < count; i++) {
            bool twice = set_contains(&f.h.v, members[i]);
            distinct += !twice;
            assert_int_equal(set_add_all(&f.h.v, members + i, 1), twice ? ST_EXISTS : ST_OK);
        }
        assert_int_equal(set_count(&f.h.v), distinct);
        set_check(&f.h.v);
        destroy(&f);
        create(&f, SMALL_CHUNK, true, usual);
        if (integers) {
            assert_int_equal(set_add_all(&f.h.v, members, count), ST_OK);
            assert_int_equal(set_count(&f.h.v), count);
            set_check(&f.h.v);
        }
        destroy(&f);
    }
}

static void a_small_set_is_as_small_as_drawn(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, false, usual);
    fill(&f, 0, 10, 8);
    assert_int_equal(f.h.v.len, 102);
    destroy(&f);
    create(&f, LARGE_CHUNK, true, usual);
    for (int64_t i = 0; i < 10; i++) {
        add_int(&f, i, true);
    }
    assert_int_equal(f.h.v.len, 23);
    destroy(&f);
}

/* ---- members of all kinds -------------------------------------------------------------------- */

static const size_t border_lens[] = {0,     1,     13,    63,    64,    239,   240,    255,  256,
                                     16379, 16380, 65529, 65530, 65535, 65536, 100000, LARGE};

static void members_of_every_length_live_together(void **state) {
    static const size_t chunks[] = {SMALL_CHUNK, LARGE_CHUNK};
    for (size_t c = 0; c < ARRAY_LEN(chunks); c++) {
        struct fixture f;
        create(&f, chunks[c], false, usual);
        for (size_t i = 0; i < ARRAY_LEN(border_lens); i++) {
            add(&f, bytes_of(i, border_lens[i]), true);
            add(&f, bytes_of(i, border_lens[i]), false);
            set_check(&f.h.v);
        }
        for (size_t i = 0; i < ARRAY_LEN(border_lens); i++) {
            assert_true(set_remove(&f.h.v, bytes_of(i, border_lens[i])));
            assert_false(set_contains(&f.h.v, bytes_of(i, border_lens[i])));
            set_check(&f.h.v);
        }
        assert_int_equal(set_count(&f.h.v), 0);
        destroy(&f);
    }
}

static void nuls_and_empty_views_are_members(void **state) {
    for (int form = 0; form < 2; form++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, false, form ? none : usual);
        add(&f, BYTES(NULL, 0), true);
        add(&f, BYTES_LIT(""), false);
        add(&f, BYTES_LIT("a\0b"), true);
        add(&f, BYTES_LIT("a\0c"), true);
        add(&f, BYTES_LIT("a"), true);
        assert_true(set_remove(&f.h.v, BYTES(NULL, 0)));
        assert_int_equal(set_count(&f.h.v), 3);
        set_check(&f.h.v);
        destroy(&f);
    }
}

static void members_of_equal_tags_are_told_apart(void **state) {
    struct fixture f;
    struct limits limits = {0, 512, 64};
    create(&f, LARGE_CHUNK, false, limits);
    fill(&f, 0, 512, 12); /* twice as many as there are tags */
    assert_form(&f, "listpack");
    for (size_t i = 512; i < 2048; i++) {
        assert_false(set_contains(&f.h.v, bytes_of(i, 12)));
    }
    for (size_t i = 0; i < 512; i += 3) {
        assert_true(set_remove(&f.h.v, bytes_of(i, 12)));
    }
    set_check(&f.h.v);
    for (size_t i = 0; i < 512; i++) {
        assert_int_equal(set_contains(&f.h.v, bytes_of(i, 12)), i % 3 != 0);
    }
    destroy(&f);
}

static void boxed_bytes_are_counted_and_given_back(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, false, none);
    add(&f, BYTES_LIT("a"), true);
    size_t before = account_bytes(ACCOUNT_VALUE), held = value_heap_bytes(&f.h.v);
    assert_false(value_is_big(&f.h.v));
    add(&f, bytes_of(1, LARGE), true);
    assert_true(account_bytes(ACCOUNT_VALUE) - before >= LARGE);
    assert_true(value_heap_bytes(&f.h.v) - held >= LARGE);
    assert_true(value_is_big(&f.h.v));
    assert_true(set_remove(&f.h.v, bytes_of(1, LARGE)));
    assert_int_equal(account_bytes(ACCOUNT_VALUE), before);
    assert_false(value_is_big(&f.h.v));
    destroy(&f);
}

/* ---- walks ----------------------------------------------------------------------------------- */

/* Members 0 to n - 1 as texts, in the form asked for. */
enum form { FORM_INTS, FORM_PACKED, FORM_TABLE, FORMS };

static void create_numbers(struct fixture *f, enum form form, int64_t n) {
    static const struct limits of_form[FORMS] = {
        {SIZE_MAX, 0, 0}, {0, SIZE_MAX, SIZE_MAX}, {0, 0, 0}};
    static const char *const names[FORMS] = {"intset", "listpack", "hashtable"};
    create(f, LARGE_CHUNK, form == FORM_INTS, of_form[form]);
    for (int64_t i = 0; i < n; i++) {
        add_int(f, i, true);
    }
    assert_form(f, names[form]);
}

static void mark(void *arg, struct bytes member) {
    uint8_t *seen = arg;
    int64_t n;
    assert_true(number_parse_i64(member, &n));
    seen[n]++;
}

static void walks_see_every_member_once(void **state) {
    static const int64_t counts[] = {1, 2, 128, 1500};
    static const size_t caps[] = {1, 3, 64, 1000};
    static char scratch[1000 * SET_SCRATCH_LEN];
    for (size_t c = 0; c < ARRAY_LEN(counts) * FORMS; c++) {
        struct fixture f;
        int64_t n = counts[c / FORMS];
        create_numbers(&f, (enum form)(c % FORMS), n);
        for (size_t k = 0; k < ARRAY_LEN(caps); k++) {
            uint8_t seen[1500] = {0}, scanned[1500] = {0};
            struct bytes members[1000];
            uint64_t position = 0, cursor = 0;
            size_t count;
            while ((count = set_next(&f.h.v, &position, members, caps[k], scratch)) != 0) {
                assert_true(count <= caps[k]);
                for (size_t i = 0; i < count; i++) {
                    mark(seen, members[i]);
                }
            }
            do {
                cursor = set_scan(&f.h.v, cursor, caps[k], mark, scanned);
            } while (cursor != 0);
            for (int64_t i = 0; i < n; i++) {
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
        char scratch[SET_SCRATCH_LEN];
        int64_t member;
        assert_true(number_parse_i64(set_random(&f->h.v, &rng, scratch), &member));
        hits[member]++;
    }
    double sum = 0, expected = (double)picks / (double)n;
    for (size_t i = 0; i < n; i++) {
        sum += ((double)hits[i] - expected) * ((double)hits[i] - expected) / expected;
    }
    free(hits);
    return sum;
}

static void random_members_are_uniform(void **state) {
    static const struct {
        size_t members;
        double limit; /* mean + 4 standard deviations */
    } cases[] = {{10, 26}, {128, 191}, {1000, 1178}, {4000, 4357}};
    for (size_t c = 0; c < ARRAY_LEN(cases) * FORMS; c++) {
        struct fixture f;
        size_t n = cases[c / FORMS].members;
        create_numbers(&f, (enum form)(c % FORMS), (int64_t)n);
        double sum = chi_square(&f, n, 50000);
        print_message("%zu members, %s: chi-square %.0f, limit %.0f\n", n,
                      value_encoding_name(&f.h.v), sum, cases[c / FORMS].limit);
        assert_true(sum < cases[c / FORMS].limit);
        destroy(&f);
    }
}

static void prefetching_changes_nothing(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, true, usual);
    for (int64_t i = 0; i < 600; i++) {
        char text[NUMBER_I64_MAX_LEN];
        uint64_t hash = hash_bytes(number(text, i));
        set_prefetch_index(&f.h.v, hash);
        set_prefetch_record(&f.h.v, hash);
        add_int(&f, i, true);
        set_prefetch_index(&f.h.v, hash);
        set_prefetch_record(&f.h.v, hash);
    }
    destroy(&f);
}

/* ---- copies and ends ------------------------------------------------------------------------- */

static void a_clone_is_equal_and_independent(void **state) {
    static const int64_t counts[] = {0, 3, 600, 3000};
    for (size_t c = 0; c < ARRAY_LEN(counts); c++) {
        struct fixture f;
        create(&f, LARGE_CHUNK, true, usual);
        for (int64_t i = 0; i < counts[c]; i++) {
            add_int(&f, i, true);
        }
        if (c == 3) {
            add(&f, bytes_of(1, LARGE), true);
        }
        uint64_t before = digest(&f.h.v);
        struct value_image image;
        struct held copy;
        assert_int_equal(value_clone(&f.h.v, &image), ST_OK);
        held_init(&copy, VALUE_SET, &image, &f.h.env);
        assert_true(digest(&copy.v) == before);
        add_int(&f, 1000000, true);
        if (counts[c] > 0) {
            assert_true(set_remove(&f.h.v, BYTES_LIT("0")));
        }
        set_check(&copy.v);
        assert_true(digest(&copy.v) == before);
        held_deinit(&copy);
        destroy(&f);
    }
}

static void a_failed_clone_leaves_nothing(void **state) {
    struct fixture f;
    create(&f, SMALL_CHUNK, false, usual);
    fill(&f, 0, 400, 20);
    add(&f, bytes_of(1, 100 << 10), true);
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
    value_image_discard(VALUE_SET, &image);
    assert_int_equal(held_object_bytes(), held);
    destroy(&f);
}

static void a_big_set_is_freed_in_steps(void **state) {
    struct fixture f;
    create(&f, SMALL_CHUNK, false, usual);
    fill(&f, 0, 20000, 20);
    add(&f, bytes_of(1, LARGE), true);
    assert_true(value_is_big(&f.h.v));
    void *object = value_object(&f.h.v);
    size_t steps = 1, bytes = held_total_bytes();
    while (!value_free_step(VALUE_SET, object, 1)) {
        steps++;
        assert_true(held_total_bytes() <= bytes);
        bytes = held_total_bytes();
    }
    assert_true(steps > 5);
    f.h.v.encoding = VALUE_PACKED; /* nothing left to free but the record */
    destroy(&f);
}

static void churn_gives_memory_back(void **state) {
    struct fixture f;
    struct rng rng;
    rng_init(&rng, 7);
    create(&f, SMALL_CHUNK, false, none);
    fill(&f, 0, 20000, 16);
    size_t fresh = set_bytes_held(value_object(&f.h.v));
    uint64_t from = 0, to = 20000;
    for (; from < 60000; from++, to++) {
        assert_true(set_remove(&f.h.v, bytes_of(from, 16)));
        add(&f, bytes_of(to, 16), true);
    }
    set_check(&f.h.v);
    size_t after = set_bytes_held(value_object(&f.h.v));
    print_message("%zu bytes fresh, %zu after three times as many changes\n", fresh, after);
    assert_true(after <= fresh * 5 / 4 + 2 * SMALL_CHUNK);
    for (; from < to; from++) {
        assert_true(set_remove(&f.h.v, bytes_of(from, 16)));
    }
    assert_int_equal(set_count(&f.h.v), 0);
    set_check(&f.h.v);
    destroy(&f);
}

/* Bytes a member of 16 bytes over a doubling: the budget is 25 at the worst size. */
static void a_member_of_sixteen_bytes_takes_less_than_twenty_five(void **state) {
    struct fixture f;
    double worst = 0;
    create(&f, LARGE_CHUNK, false, usual);
    for (uint64_t i = 0; i < 400000; i++) {
        add(&f, bytes_of(i, 16), true);
        if (i >= 200000 && i % 1000 == 0) {
            double each = (double)(set_bytes_held(value_object(&f.h.v)) - LARGE_CHUNK) / (double)i;
            worst = each > worst ? each : worst;
        }
    }
    print_message("%.2f bytes a member at the worst size, the last chunk aside\n", worst);
    assert_true(worst <= 25);
    destroy(&f);
}

/* ---- failed allocations ---------------------------------------------------------------------- */

static void small_forms_may_fail_to_grow(void **state) {
    struct fixture f;
    char text[NUMBER_I64_MAX_LEN];
    create(&f, LARGE_CHUNK, true, usual);
    for (int64_t i = 0; i < 100; i++) {
        assert_int_equal(add_until_it_succeeds(&f, number(text, i * 1000)), 1);
        assert_int_equal(add_until_it_succeeds(&f, number(text, i * 1000)), 0);
    }
    assert_int_equal(add_until_it_succeeds(&f, BYTES_LIT("word")), 2);
    assert_form(&f, "listpack");
    for (uint64_t i = 0; i < 27; i++) {
        assert_int_equal(add_until_it_succeeds(&f, bytes_of(i, 8)), 1);
    }
    assert_form(&f, "listpack");
    assert_true(add_until_it_succeeds(&f, BYTES_LIT("one more")) >= 5);
    assert_form(&f, "hashtable");
    destroy(&f);
}

static void turning_to_a_table_may_fail(void **state) {
    struct fixture f;
    char text[NUMBER_I64_MAX_LEN];
    create(&f, SMALL_CHUNK, true, usual);
    for (int64_t i = 0; i < 512; i++) {
        add_int(&f, i, true);
    }
    assert_true(add_until_it_succeeds(&f, number(text, 512)) >= 5);
    assert_form(&f, "hashtable");
    destroy(&f);
    create(&f, SMALL_CHUNK, true, usual);
    for (int64_t i = 0; i < 50; i++) {
        add_int(&f, i, true);
    }
    assert_true(add_until_it_succeeds(&f, bytes_of(1, LARGE)) >= 5);
    assert_form(&f, "hashtable");
    destroy(&f);
}

static void table_growth_may_fail(void **state) {
    struct fixture f;
    size_t failed = 0;
    create(&f, SMALL_CHUNK, false, none);
    add(&f, BYTES_LIT("first"), true);
    for (uint64_t i = 0; i < 1500; i++) {
        failed += add_until_it_succeeds(&f, bytes_of(i, 8 + i % 100));
    }
    print_message("adding failed %zu times\n", failed);
    assert_true(failed > 20);
    assert_true(add_until_it_succeeds(&f, bytes_of(3, LARGE)) >= 1);
    destroy(&f);
}

static void removing_never_fails(void **state) {
    for (int form = 0; form < FORMS; form++) {
        struct fixture f;
        char text[NUMBER_I64_MAX_LEN];
        create_numbers(&f, (enum form)form, 1000);
        account_fail_after(1);
        for (int64_t i = 0; i < 990; i++) {
            assert_true(set_remove(&f.h.v, number(text, i * 7 % 1000)));
            if (i % 100 == 0) {
                set_check(&f.h.v);
            }
        }
        account_fail_after(0);
        set_check(&f.h.v);
        assert_int_equal(set_count(&f.h.v), 10);
        add_int(&f, 0, true); /* over the idle bytes */
        set_check(&f.h.v);
        assert_int_equal(set_count(&f.h.v), 11);
        destroy(&f);
    }
}

int main(void) {
    hash_setup_seed(12345);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_set_is_empty),
        cmocka_unit_test(integers_stay_sorted_and_widen),
        cmocka_unit_test(widening_works_at_both_ends),
        cmocka_unit_test(texts_that_are_no_plain_integers_are_other_members),
        cmocka_unit_test(more_integers_make_a_table),
        cmocka_unit_test(a_word_among_integers_makes_a_packed_set_or_a_table),
        cmocka_unit_test(more_members_make_a_table),
        cmocka_unit_test(longer_members_make_a_table),
        cmocka_unit_test(a_full_record_makes_a_table),
        cmocka_unit_test(no_limits_at_all_make_a_table_at_once),
        cmocka_unit_test(many_at_once_are_the_same_as_one_by_one),
        cmocka_unit_test(a_small_set_is_as_small_as_drawn),
        cmocka_unit_test(members_of_every_length_live_together),
        cmocka_unit_test(nuls_and_empty_views_are_members),
        cmocka_unit_test(members_of_equal_tags_are_told_apart),
        cmocka_unit_test(boxed_bytes_are_counted_and_given_back),
        cmocka_unit_test(walks_see_every_member_once),
        cmocka_unit_test(random_members_are_uniform),
        cmocka_unit_test(prefetching_changes_nothing),
        cmocka_unit_test(a_clone_is_equal_and_independent),
        cmocka_unit_test(a_failed_clone_leaves_nothing),
        cmocka_unit_test(a_big_set_is_freed_in_steps),
        cmocka_unit_test(churn_gives_memory_back),
        cmocka_unit_test(a_member_of_sixteen_bytes_takes_less_than_twenty_five),
        cmocka_unit_test(small_forms_may_fail_to_grow),
        cmocka_unit_test(turning_to_a_table_may_fail),
        cmocka_unit_test(table_growth_may_fail),
        cmocka_unit_test(removing_never_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
