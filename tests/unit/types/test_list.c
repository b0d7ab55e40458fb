/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "host.h"
#include "types/list.h"

struct fixture {
    struct held h;
    struct pages *pages;
};

static void create(struct fixture *f, int listpack_size) {
    f->pages = held_pages((size_t)64 << 10);
    struct type_env env = {.pages = f->pages};
    struct value_image image = {VALUE_PACKED, {0}, BYTES(list_empty, LIST_EMPTY_LEN)};
    list_limits(listpack_size, &env);
    held_init(&f->h, VALUE_LIST, &image, &env);
}

static void destroy(struct fixture *f) {
    list_check(&f->h.v);
    held_deinit(&f->h);
    pages_destroy(f->pages);
    assert_int_equal(held_total_bytes(), 0);
}

static bool packed(const struct fixture *f) {
    return f->h.v.encoding == VALUE_PACKED;
}

static struct bytes number(uint64_t n) {
    static char text[4][24];
    static unsigned next;
    char *p = text[next++ % 4];
    return BYTES(p, (size_t)snprintf(p, sizeof(text[0]), "%llu", (unsigned long long)n));
}

static void push(struct fixture *f, enum list_end end, struct bytes e) {
    assert_int_equal(list_push(&f->h.v, end, e), ST_OK);
}

/* 0, 1, 2, ... */
static void fill(struct fixture *f, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        push(f, LIST_TAIL, number(i));
    }
}

static void assert_list(struct fixture *f, const char *expected) {
    struct list_iter it;
    struct bytes e[3];
    char text[400];
    size_t len = 0, n;
    list_check(&f->h.v);
    list_iter_init(&it, &f->h.v, 0, false);
    while ((n = list_fetch(&it, e, 3)) != 0) {
        for (size_t i = 0; i < n; i++) {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s", len == 0 ? "" : " ",
                                    (int)e[i].len, e[i].ptr);
        }
    }
    text[len] = '\0';
    assert_string_equal(text, expected);
}

/* Every test runs on a packed list and on one of blocks. */
static void on_both_forms(void (*test)(struct fixture *f)) {
    struct fixture f;
    create(&f, -2);
    test(&f);
    assert_true(packed(&f));
    destroy(&f);
    create(&f, 1);
    test(&f);
    assert_false(packed(&f));
    destroy(&f);
}

/* ---- rules, in both forms -------------------------------------------------------------------- */

static void test_push(struct fixture *f) {
    push(f, LIST_TAIL, BYTES_LIT("b"));
    push(f, LIST_TAIL, BYTES_LIT("cc"));
    push(f, LIST_HEAD, BYTES_LIT("a"));
    push(f, LIST_HEAD, BYTES_LIT("long one"));
    assert_list(f, "long one a b cc");
    assert_int_equal(list_count(&f->h.v), 4);
}

static void push_appends_at_either_end(void **state) {
    on_both_forms(test_push);
}

static void test_insert(struct fixture *f) {
    fill(f, 4);
    assert_int_equal(list_insert(&f->h.v, 2, BYTES_LIT("x")), ST_OK);
    assert_int_equal(list_insert(&f->h.v, 0, BYTES_LIT("head")), ST_OK);
    assert_int_equal(list_insert(&f->h.v, 6, BYTES_LIT("tail")), ST_OK);
    assert_int_equal(list_insert(&f->h.v, 6, BYTES_LIT("")), ST_OK);
    assert_list(f, "head 0 1 x 2 3  tail");
}

static void insert_moves_what_is_behind(void **state) {
    on_both_forms(test_insert);
}

static void test_set(struct fixture *f) {
    fill(f, 5);
    assert_int_equal(list_set(&f->h.v, 0, BYTES_LIT("a")), ST_OK);
    assert_int_equal(list_set(&f->h.v, 4, BYTES_LIT("eeeee")), ST_OK);
    assert_int_equal(list_set(&f->h.v, 2, BYTES_LIT("cc")), ST_OK);
    assert_list(f, "a 1 cc 3 eeeee");
    assert_int_equal(list_set(&f->h.v, 4, BYTES_LIT("")), ST_OK);
    assert_list(f, "a 1 cc 3 ");
}

static void set_replaces_by_any_length(void **state) {
    on_both_forms(test_set);
}

static void test_remove(struct fixture *f) {
    fill(f, 10);
    assert_int_equal(list_remove(&f->h.v, 10, 1), 0);
    assert_int_equal(list_remove(&f->h.v, 3, 0), 0);
    assert_int_equal(list_remove(&f->h.v, 3, 2), 2);
    assert_int_equal(list_remove(&f->h.v, 0, 1), 1);
    assert_list(f, "1 2 5 6 7 8 9");
    assert_int_equal(list_remove(&f->h.v, 5, UINT64_MAX), 2);
    assert_list(f, "1 2 5 6 7");
    assert_int_equal(list_remove(&f->h.v, 0, 100), 5);
    assert_int_equal(list_count(&f->h.v), 0);
    push(f, LIST_HEAD, BYTES_LIT("again"));
    push(f, LIST_HEAD, BYTES_LIT("and"));
    assert_list(f, "and again");
}

static void remove_takes_what_there_is(void **state) {
    on_both_forms(test_remove);
}

static void put_words(struct fixture *f, const char *words) {
    list_remove(&f->h.v, 0, UINT64_MAX);
    for (; *words != '\0'; words++) {
        push(f, LIST_TAIL, BYTES(words, 1));
    }
}

static void test_remove_equal(struct fixture *f) {
    static const struct {
        const char *before;
        uint64_t max;
        bool from_tail;
        uint64_t removed;
        const char *after;
    } cases[] = {
        {"abcabca", 0, false, 3, "b c b c"},  {"abcabca", 2, false, 2, "b c b c a"},
        {"abcabca", 2, true, 2, "a b c b c"}, {"aaaab", 3, false, 3, "a b"},
        {"baaaa", 3, true, 3, "b a"},         {"aaab", 0, true, 3, "b"},
        {"bbb", 0, false, 0, "b b b"},        {"abab", 9, true, 2, "b b"},
        {"aabaab", 3, false, 3, "b a b"},     {"baabaa", 3, true, 3, "b a b"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        put_words(f, cases[i].before);
        assert_int_equal(
            list_remove_equal(&f->h.v, BYTES_LIT("a"), cases[i].max, cases[i].from_tail),
            cases[i].removed);
        assert_list(f, cases[i].after);
    }
    put_words(f, "aaa");
    assert_int_equal(list_remove_equal(&f->h.v, BYTES_LIT("a"), 0, false), 3);
    assert_int_equal(list_count(&f->h.v), 0);
    put_words(f, "ab");
}

static void remove_equal_counts_from_either_end(void **state) {
    on_both_forms(test_remove_equal);
}

static void test_walk(struct fixture *f) {
    struct list_iter it;
    struct bytes e[8];
    fill(f, 6);
    list_iter_init(&it, &f->h.v, 4, true);
    assert_int_equal(list_fetch(&it, e, 3), 3);
    assert_true(bytes_equal(e[0], number(4)) && bytes_equal(e[2], number(2)));
    assert_int_equal(list_fetch(&it, e, 8), 2);
    assert_true(bytes_equal(e[1], number(0)));
    assert_int_equal(list_fetch(&it, e, 8), 0);
    list_iter_init(&it, &f->h.v, 100, true);
    assert_int_equal(list_fetch(&it, e, 1), 1);
    assert_true(bytes_equal(e[0], number(5)));
    list_iter_init(&it, &f->h.v, 5, false);
    assert_int_equal(list_fetch(&it, e, 8), 1);
    list_iter_init(&it, &f->h.v, 100, false);
    assert_int_equal(list_fetch(&it, e, 8), 0);
}

static void walks_start_at_their_index(void **state) {
    on_both_forms(test_walk);
}

static void test_own_view(struct fixture *f) {
    struct bytes e;
    push(f, LIST_TAIL, BYTES_LIT("one"));
    push(f, LIST_TAIL, BYTES_LIT("three"));
    assert_true(list_at(&f->h.v, 1, &e));
    push(f, LIST_HEAD, e);
    assert_true(list_at(&f->h.v, 0, &e));
    assert_int_equal(list_insert(&f->h.v, 1, e), ST_OK);
    assert_true(list_at(&f->h.v, 2, &e));
    push(f, LIST_TAIL, e);
    assert_list(f, "three three one three one");
}

static void an_element_of_the_list_can_be_added_to_it(void **state) {
    on_both_forms(test_own_view);
}

/* ---- forms ----------------------------------------------------------------------------------- */

static void small_lists_keep_their_budget(void **state) {
    struct fixture f;
    create(&f, -2);
    for (uint64_t i = 0; i < 10; i++) {
        push(&f, LIST_TAIL, BYTES("12345678", 8));
    }
    assert_int_equal(f.h.v.len, 86);
    push(&f, LIST_TAIL, BYTES_LIT("123"));
    assert_int_equal(f.h.v.len, 6 + 83 + 11);
    assert_string_equal(value_type_name(VALUE_LIST), "list");
    assert_string_equal(value_encoding_name(&f.h.v), "listpack");
    destroy(&f);
}

static void limits_follow_list_max_listpack_size(void **state) {
    static const struct {
        int size;
        size_t bytes_max, entries_max;
    } cases[] = {
        {-1, 4096, SIZE_MAX},  {-2, 8192, SIZE_MAX},
        {-3, 16384, SIZE_MAX}, {-4, 32768, SIZE_MAX},
        {-5, 65536, SIZE_MAX}, {INT32_MIN, 65536, SIZE_MAX},
        {0, 8192, 1},          {1, 8192, 1},
        {128, 8192, 128},      {INT32_MAX, 8192, INT32_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct type_env env = {0};
        list_limits(cases[i].size, &env);
        assert_int_equal(env.list_packed_bytes_max, cases[i].bytes_max);
        assert_int_equal(env.list_packed_entries_max, cases[i].entries_max);
    }
}

static void a_list_beyond_its_limits_gets_blocks(void **state) {
    struct fixture f;
    create(&f, 3);
    fill(&f, 3);
    assert_true(packed(&f));
    fill(&f, 1);
    assert_false(packed(&f));
    assert_list(&f, "0 1 2 0");
    assert_string_equal(value_encoding_name(&f.h.v), "quicklist");
    destroy(&f);

    create(&f, -2); /* by bytes: 6 and 511 x 16 */
    for (int i = 0; i < 511; i++) {
        push(&f, LIST_HEAD, BYTES("0123456789abcdef", 16));
    }
    assert_true(packed(&f));
    assert_int_equal(list_insert(&f.h.v, 100, BYTES("0123456789abcdef", 16)), ST_OK);
    assert_false(packed(&f));
    destroy(&f);

    create(&f, -5); /* by the record */
    f.h.len_max = 500;
    fill(&f, 120);
    assert_true(packed(&f));
    assert_int_equal(list_set(&f.h.v, 60, BYTES(list_empty, 6)), ST_OK);
    fill(&f, 120);
    assert_false(packed(&f));
    assert_int_equal(list_count(&f.h.v), 240);
    destroy(&f);
}

static void a_replacement_too_long_turns_the_list(void **state) {
    static char large[100000];
    struct fixture f;
    struct bytes e;
    create(&f, -2);
    fill(&f, 10);
    assert_int_equal(list_set(&f.h.v, 3, BYTES(large, sizeof(large))), ST_OK);
    assert_false(packed(&f));
    assert_true(list_at(&f.h.v, 3, &e) && e.len == sizeof(large));
    assert_true(list_at(&f.h.v, 4, &e) && bytes_equal(e, number(4)));
    assert_int_equal(list_set(&f.h.v, 3, number(3)), ST_OK);
    assert_list(&f, "0 1 2 3 4 5 6 7 8 9");
    destroy(&f);
}

static void pushes_seldom_move_the_record(void **state) {
    struct fixture f;
    create(&f, -2);
    for (int i = 0; i < 450; i++) {
        push(&f, LIST_TAIL, BYTES("0123456789abcdef", 16));
    }
    assert_true(packed(&f));
    assert_true(f.h.resizes < 100);
    for (int i = 0; i < 440; i++) {
        assert_int_equal(list_remove(&f.h.v, 0, 1), 1);
    }
    assert_true(f.h.resizes < 250);
    assert_int_equal(f.h.v.len, 6 + 160);
    destroy(&f);
}

/* ---- whole lists ----------------------------------------------------------------------------- */

static void build_takes_the_form_that_fits(void **state) {
    static const size_t counts[] = {0, 1, 500, 50000};
    static struct bytes e[50000];
    static char text[50000][8];
    for (size_t i = 0; i < ARRAY_LEN(e); i++) {
        e[i] = BYTES(text[i], (size_t)snprintf(text[i], sizeof(text[i]), "%zu", i));
    }
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct fixture f;
        struct bytes got;
        create(&f, -2);
        assert_int_equal(list_build(&f.h.v, e, counts[i]), ST_OK);
        assert_int_equal(list_count(&f.h.v), counts[i]);
        assert_int_equal(packed(&f), counts[i] <= 500);
        for (size_t j = 0; j < counts[i]; j += 7) {
            assert_true(list_at(&f.h.v, j, &got) && bytes_equal(got, e[j]));
        }
        destroy(&f);
    }
}

static void a_clone_is_its_own_list(void **state) {
    struct fixture f;
    struct value_image image;
    struct held copy;
    create(&f, 1);
    fill(&f, 5);
    assert_int_equal(value_clone(&f.h.v, &image), ST_OK);
    held_init(&copy, VALUE_LIST, &image, &f.h.env);
    push(&f, LIST_TAIL, BYTES_LIT("more"));
    assert_int_equal(list_count(&copy.v), 5);
    assert_int_equal(list_remove(&copy.v, 0, 3), 3);
    assert_list(&f, "0 1 2 3 4 more");
    held_deinit(&copy);
    destroy(&f);
}

static void size_tells_what_is_freed_in_steps(void **state) {
    struct fixture f;
    create(&f, 1);
    fill(&f, 100);
    assert_false(value_is_big(&f.h.v));
    assert_true(value_heap_bytes(&f.h.v) >= account_bytes(ACCOUNT_VALUE));
    fill(&f, 300000);
    assert_true(value_is_big(&f.h.v));
    assert_true(value_heap_bytes(&f.h.v) > 1500000);
    destroy(&f);
}

/* ---- without memory -------------------------------------------------------------------------- */

enum operation { PUSH, INSERT, SET, OPERATIONS };

static void conversion_changes_nothing_when_memory_is_short(void **state) {
    static char large[5000];
    for (int op = 0; op < OPERATIONS; op++) {
        struct fixture f;
        size_t fail = 1;
        create(&f, -2);
        fill(&f, 12);
        for (;; fail++) {
            struct bytes e = op == PUSH ? BYTES(large, 5000) : BYTES(large, 4000);
            f.h.env.list_packed_bytes_max = 100;
            account_fail_after(fail);
            enum status st = op == PUSH     ? list_push(&f.h.v, LIST_HEAD, e)
                             : op == INSERT ? list_insert(&f.h.v, 5, e)
                                            : list_set(&f.h.v, 5, e);
            account_fail_after(0);
            if (st == ST_OK) {
                break;
            }
            assert_int_equal(st, ST_NOMEM);
            assert_true(packed(&f));
            assert_list(&f, "0 1 2 3 4 5 6 7 8 9 10 11");
        }
        assert_true(fail > 3);
        assert_false(packed(&f));
        assert_int_equal(list_count(&f.h.v), op == SET ? 12 : 13);
        destroy(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(push_appends_at_either_end),
        cmocka_unit_test(insert_moves_what_is_behind),
        cmocka_unit_test(set_replaces_by_any_length),
        cmocka_unit_test(remove_takes_what_there_is),
        cmocka_unit_test(remove_equal_counts_from_either_end),
        cmocka_unit_test(walks_start_at_their_index),
        cmocka_unit_test(an_element_of_the_list_can_be_added_to_it),
        cmocka_unit_test(small_lists_keep_their_budget),
        cmocka_unit_test(limits_follow_list_max_listpack_size),
        cmocka_unit_test(a_list_beyond_its_limits_gets_blocks),
        cmocka_unit_test(a_replacement_too_long_turns_the_list),
        cmocka_unit_test(pushes_seldom_move_the_record),
        cmocka_unit_test(build_takes_the_form_that_fits),
        cmocka_unit_test(a_clone_is_its_own_list),
        cmocka_unit_test(size_tells_what_is_freed_in_steps),
        cmocka_unit_test(conversion_changes_nothing_when_memory_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
