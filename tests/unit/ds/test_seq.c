/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "ds/seq.h"
#include "mem/account.h"

#define LARGE 100000 /* beyond an arena record */

struct fixture {
    struct seq s;
    struct pages *pages;
    struct rng rng;
};

static int setup(void **state) {
    static struct fixture f;
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)64 << 10};
    assert_int_equal(pages_create(&options, &f.pages), ST_OK);
    seq_init(&f.s, f.pages);
    rng_init(&f.rng, 7);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    seq_check(&f->s);
    seq_deinit(&f->s);
    assert_int_equal(seq_bytes(&f->s), 0);
    pages_destroy(f->pages);
    assert_int_equal(account_bytes(ACCOUNT_VALUE), 0);
    assert_int_equal(account_bytes(ACCOUNT_ARENA), 0);
    return 0;
}

/* An element that tells its number, in one of two buffers. */
static struct bytes element(uint64_t number, size_t len) {
    static char text[2][LARGE];
    static unsigned next;
    char *p = text[next++ % 2];
    for (size_t i = 0; i < len; i++) {
        p[i] = (char)(number >> (8 * (i % 8)));
    }
    return BYTES(p, len);
}

static void push(struct fixture *f, enum seq_end end, uint64_t number, size_t len) {
    assert_int_equal(seq_push(&f->s, end, element(number, len)), ST_OK);
}

static void assert_at(struct fixture *f, uint64_t index, uint64_t number, size_t len) {
    struct bytes e;
    assert_true(seq_at(&f->s, index, &e));
    assert_int_equal(e.len, len);
    assert_true(bytes_equal(e, element(number, len)));
}

static void fill(struct fixture *f, uint64_t count, size_t len) {
    for (uint64_t i = 0; i < count; i++) {
        push(f, SEQ_TAIL, i, len);
    }
}

/* Order and bytes of all elements in a number. */
static uint64_t digest(const struct seq *s) {
    struct seq_iter it;
    struct bytes e[50];
    uint64_t sum = seq_count(s);
    size_t n;
    seq_iter_init(&it, s, 0, false);
    while ((n = seq_fetch(&it, e, 50)) != 0) {
        for (size_t i = 0; i < n; i++) {
            sum = sum * 31 + e[i].len;
            for (size_t j = 0; j < e[i].len; j += e[i].len / 9 + 1) {
                sum = sum * 31 + (unsigned char)e[i].ptr[j];
            }
        }
    }
    return sum;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void an_empty_one_has_nothing(void **state) {
    struct fixture *f = *state;
    struct bytes e;
    struct seq_iter it;
    assert_int_equal(seq_count(&f->s), 0);
    assert_false(seq_at(&f->s, 0, &e));
    assert_int_equal(seq_remove(&f->s, 0, 5), 0);
    seq_prefetch(&f->s, 0);
    seq_iter_init(&it, &f->s, 0, true);
    assert_int_equal(seq_fetch(&it, &e, 1), 0);
    assert_int_equal(seq_bytes(&f->s), 0);
}

static void pushes_line_up_at_both_ends(void **state) {
    struct fixture *f = *state;
    for (uint64_t i = 0; i < 5000; i++) {
        push(f, SEQ_HEAD, 5000 - 1 - i, 12);
        push(f, SEQ_TAIL, 5000 + i, 12);
    }
    for (uint64_t i = 0; i < 10000; i++) {
        assert_at(f, i, i, 12);
    }
}

static void pops_at_one_end_empty_what_was_pushed_at_the_other(void **state) {
    struct fixture *f = *state;
    for (int tail = 0; tail < 2; tail++) {
        for (uint64_t i = 0; i < 5000; i++) {
            push(f, tail ? SEQ_HEAD : SEQ_TAIL, i, i % 40);
        }
        for (uint64_t i = 0; i < 5000; i++) {
            uint64_t index = tail ? seq_count(&f->s) - 1 : 0;
            assert_at(f, index, i, i % 40);
            assert_int_equal(seq_remove(&f->s, index, 1), 1);
        }
        assert_int_equal(seq_count(&f->s), 0);
        seq_check(&f->s);
    }
}

/* Around the place where a full end hands a block over, and takes it back. */
static void pushes_and_pops_in_turn_move_no_blocks(void **state) {
    struct fixture *f = *state;
    fill(f, 20000, 16);
    for (int i = 0; i < 600; i++) {
        struct seq_stats before, after;
        seq_get_stats(&f->s, &before);
        for (int j = 0; j < 50; j++) {
            push(f, SEQ_TAIL, 1, 16);
            assert_int_equal(seq_remove(&f->s, seq_count(&f->s) - 1, 1), 1);
            seq_get_stats(&f->s, &after);
            assert_in_range(after.blocks, before.blocks, before.blocks + 1);
        }
        push(f, SEQ_TAIL, 2, 16);
    }
}

static void a_queue_of_steady_length_keeps_its_memory(void **state) {
    struct fixture *f = *state;
    for (int len = 30; len <= 3000; len *= 100) {
        fill(f, (uint64_t)len, 50);
        for (int i = 0; i < 30000; i++) {
            push(f, SEQ_TAIL, 1, 50);
            assert_int_equal(seq_remove(&f->s, 0, 1), 1);
        }
        assert_true(seq_bytes(&f->s) < (size_t)len * 50 * 5 / 4 + 3 * 65536);
        assert_int_equal(seq_remove(&f->s, 0, UINT64_MAX), len);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void budgets_are_kept(void **state) {
    static const struct {
        size_t len;
        double each_max;
    } cases[] = {{16, 17.4}, {100, 101.5}};
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int end = 0; end < 2; end++) {
            for (uint64_t n = 0; n < 200000; n++) {
                push(f, end ? SEQ_TAIL : SEQ_HEAD, n, cases[i].len);
            }
            struct seq_stats stats;
            seq_get_stats(&f->s, &stats);
            size_t bytes = stats.block_bytes + stats.nodes * 1024;
            assert_true((double)bytes <= 200000 * cases[i].each_max);
            assert_int_equal(seq_remove(&f->s, 0, UINT64_MAX), 200000);
        }
    }
}

static void churn_keeps_blocks_full_and_memory_bounded(void **state) {
    struct fixture *f = *state;
    size_t live = 0;
    struct seq_stats stats;
    struct bytes e;
    for (uint64_t i = 0; i < 30000; i++) {
        push(f, SEQ_TAIL, i, 10 + i % 40);
    }
    for (int i = 0; i < 200000; i++) {
        uint64_t at = rng_below(&f->rng, seq_count(&f->s));
        if (seq_count(&f->s) > 20000 + rng_below(&f->rng, 20000)) {
            assert_int_equal(seq_remove(&f->s, at, 1), 1);
        } else {
            size_t len = 10 + rng_below(&f->rng, 40);
            assert_int_equal(seq_insert(&f->s, at, element(at, len)), ST_OK);
        }
    }
    seq_get_stats(&f->s, &stats);
    assert_true(stats.used_bytes * 10 > stats.block_bytes * 9);
    for (uint64_t i = 0; i < seq_count(&f->s); i++) {
        assert_true(seq_at(&f->s, i, &e));
        live += e.len;
    }
    assert_true(seq_bytes(&f->s) < live * 5 / 4 + seq_count(&f->s) * 2 + 3 * 65536);
}

static size_t sweep(struct fixture *f) {
    size_t steps = 1;
    for (; !seq_sweep(&f->s, 50); steps++) {
        if (steps % 16 == 0) {
            seq_check(&f->s);
        }
    }
    seq_check(&f->s);
    return steps;
}

static void what_is_cut_away_is_given_back(void **state) {
    struct fixture *f = *state;
    fill(f, 100000, 20);
    assert_int_equal(seq_remove(&f->s, 50, 99900), 99900);
    assert_at(f, 49, 49, 20);
    assert_at(f, 50, 99950, 20);
    seq_check(&f->s);
    sweep(f);
    assert_true(seq_bytes(&f->s) < 3 * 65536);
}

/* 4 elements a block, 252 a leaf, 15876 in a node above. */
static void ranges_of_every_size_are_cut_at_any_place(void **state) {
    static const uint64_t counts[] = {1, 5, 251, 253, 505, 15876, 20000, 49000};
    struct fixture *f = *state;
    const uint64_t total = 50000;
    for (size_t i = 0; i < 2 * ARRAY_LEN(counts); i++) {
        uint64_t n = counts[i / 2], at = i % 2 == 0 ? 0 : rng_below(&f->rng, total - n);
        fill(f, total, 2000);
        assert_int_equal(seq_remove(&f->s, at, n), n);
        seq_check(&f->s);
        assert_int_equal(seq_count(&f->s), total - n);
        for (uint64_t j = 0; j < total - n; j += 97) {
            assert_at(f, j, j < at ? j : j + n, 2000);
        }
        if (i % 4 == 0) {
            sweep(f);
        }
        assert_int_equal(seq_remove(&f->s, 0, total), total - n);
        assert_int_equal(seq_count(&f->s), 0);
        if (i % 3 == 0) {
            sweep(f);
            assert_int_equal(seq_bytes(&f->s), 0);
        }
    }
}

static void a_long_range_goes_at_once_and_its_memory_in_steps(void **state) {
    struct fixture *f = *state;
    struct seq_stats stats;
    fill(f, 200000, 100);
    size_t full = seq_bytes(&f->s);
    assert_int_equal(seq_remove(&f->s, 1000, 198000), 198000);
    seq_get_stats(&f->s, &stats);
    assert_true(stats.blocks < 30);
    assert_true(seq_wants_sweep(&f->s) && seq_bytes(&f->s) > full / 2);
    assert_true(sweep(f) > 20);
    assert_false(seq_wants_sweep(&f->s));
    assert_true(seq_bytes(&f->s) < 300000 + 3 * 65536);
}

static void later_changes_free_what_was_cut(void **state) {
    struct fixture *f = *state;
    fill(f, 200000, 100);
    assert_int_equal(seq_remove(&f->s, 1000, 198000), 198000);
    for (uint64_t i = 0; seq_wants_sweep(&f->s); i++) {
        assert_true(i < 100000);
        push(f, i % 2 == 0 ? SEQ_HEAD : SEQ_TAIL, i, 100);
        assert_int_equal(seq_remove(&f->s, i % 2 == 0 ? seq_count(&f->s) - 1 : 0, 1), 1);
    }
    assert_int_equal(seq_count(&f->s), 2000);
    assert_true(seq_bytes(&f->s) < 300000 + 3 * 65536);
}

/* ---- elements of all sizes ------------------------------------------------------------------- */

static void lengths_at_every_border_work_anywhere(void **state) {
    static const size_t lens[] = {0,     1,     255,   256,   4095,  4096,  4097,
                                  16367, 16368, 16369, 65519, 65535, 65536, LARGE};
    struct fixture *f = *state;
    fill(f, 3000, 10);
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        for (uint64_t at = 0; at <= 3000; at += 500) {
            uint64_t index = at == 0 ? 0 : at - 1;
            assert_int_equal(seq_insert(&f->s, index, element(77, lens[i])), ST_OK);
            assert_at(f, index, 77, lens[i]);
            assert_int_equal(seq_set(&f->s, index, element(78, lens[i])), ST_OK);
            assert_at(f, index, 78, lens[i]);
            assert_int_equal(seq_set(&f->s, index, element(79, lens[(i * 5 + at) % 14])), ST_OK);
            assert_at(f, index, 79, lens[(i * 5 + at) % 14]);
            seq_check(&f->s);
            assert_int_equal(seq_remove(&f->s, index, 1), 1);
        }
        seq_check(&f->s);
    }
    assert_int_equal(seq_count(&f->s), 3000);
    for (uint64_t i = 0; i < 3000; i++) {
        assert_at(f, i, i, 10);
    }
}

static void large_ones_come_and_go_at_the_ends(void **state) {
    struct fixture *f = *state;
    for (uint64_t i = 0; i < 60; i++) {
        push(f, SEQ_HEAD, i, i % 3 == 0 ? 9 : i % 3 == 1 ? 9000 : LARGE);
        push(f, SEQ_TAIL, i, i % 3 == 0 ? 9 : i % 3 == 1 ? 9000 : LARGE);
        seq_check(&f->s);
    }
    for (uint64_t i = 60; i-- > 0;) {
        size_t len = i % 3 == 0 ? 9 : i % 3 == 1 ? 9000 : LARGE;
        assert_at(f, 0, i, len);
        assert_at(f, seq_count(&f->s) - 1, i, len);
        assert_int_equal(seq_remove(&f->s, 0, 1), 1);
        assert_int_equal(seq_remove(&f->s, seq_count(&f->s) - 1, 1), 1);
        seq_check(&f->s);
    }
}

static void a_view_of_an_element_can_be_added(void **state) {
    static const size_t lens[] = {1, 90, 4000, 9000, LARGE};
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        uint64_t first = 0, last = 9;
        fill(f, 10, lens[i]);
        for (uint64_t n = 0; n < (lens[i] == LARGE ? 40 : 1000); n++) {
            struct bytes e;
            uint64_t total = seq_count(&f->s), number = n % 2 == 0 ? last : first;
            uint64_t to = n % 3 == 0 ? 0 : n % 3 == 1 ? total : total / 2;
            assert_true(seq_at(&f->s, n % 2 == 0 ? total - 1 : 0, &e));
            assert_int_equal(seq_insert(&f->s, to, e), ST_OK);
            assert_at(f, to, number, lens[i]);
            first = to == 0 ? number : first;
            last = to == total ? number : last;
            assert_at(f, 0, first, lens[i]);
            assert_at(f, total, last, lens[i]);
            if (n % 5 == 4) { /* another pair of views */
                push(f, SEQ_HEAD, n, lens[i]);
                first = n;
            }
        }
        seq_check(&f->s);
        assert_true(seq_remove(&f->s, 0, UINT64_MAX) > 40);
    }
}

/* ---- walks ----------------------------------------------------------------------------------- */

static void walks_cross_every_border(void **state) {
    struct fixture *f = *state;
    struct bytes e[700];
    for (uint64_t i = 0; i < 3000; i++) {
        push(f, SEQ_HEAD, 2999 - i, 11);
        push(f, SEQ_TAIL, 3000 + i, 11);
    }
    for (uint64_t from = 0; from <= 6000; from += 97) {
        for (int backward = 0; backward < 2; backward++) {
            struct seq_iter it;
            uint64_t left = backward ? from : 6000 - from;
            seq_iter_init(&it, &f->s, from, backward);
            size_t n = seq_fetch(&it, e, 700);
            assert_int_equal(n, left < 700 ? left : 700);
            assert_int_equal(it.index, backward ? from - n : from + n);
            for (size_t i = 0; i < n; i++) {
                assert_true(bytes_equal(e[i], element(backward ? from - 1 - i : from + i, 11)));
            }
        }
    }
}

/* ---- without memory -------------------------------------------------------------------------- */

enum operation { PUSH_HEAD, PUSH_TAIL, INSERT, SET, OPERATIONS };

static enum status run(struct seq *s, enum operation op, uint64_t at, struct bytes e) {
    switch (op) {
    case PUSH_HEAD:
        return seq_push(s, SEQ_HEAD, e);
    case PUSH_TAIL:
        return seq_push(s, SEQ_TAIL, e);
    case INSERT:
        return seq_insert(s, at, e);
    default:
        return seq_set(s, at, e);
    }
}

static size_t run_until_it_works(struct fixture *f, enum operation op, uint64_t at,
                                 struct bytes e) {
    uint64_t before = digest(&f->s);
    for (size_t fail = 1;; fail++) {
        account_fail_after(fail);
        enum status st = run(&f->s, op, at, e);
        account_fail_after(0);
        seq_check(&f->s);
        if (st == ST_OK) {
            return fail - 1;
        }
        assert_int_equal(st, ST_NOMEM);
        assert_true(digest(&f->s) == before);
        assert_true(fail < 20);
    }
}

static void every_failed_allocation_changes_nothing(void **state) {
    static const size_t lens[] = {0, 16, 17, 300, 4096, 5000, LARGE};
    struct fixture *f = *state;
    size_t failures = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        push(f, SEQ_HEAD, i, 16);
        push(f, SEQ_TAIL, i, 16);
    }
    for (int i = 0; i < 3000; i++) {
        size_t len = lens[rng_below(&f->rng, i % 4 == 0 ? ARRAY_LEN(lens) : 4)];
        failures += run_until_it_works(f, (enum operation)rng_below(&f->rng, OPERATIONS),
                                       rng_below(&f->rng, seq_count(&f->s)), element(5, len));
    }
    assert_true(failures > 100);
}

static void removing_needs_no_memory(void **state) {
    struct fixture *f = *state;
    for (uint64_t i = 0; i < 8000; i++) {
        push(f, SEQ_TAIL, i, i % 500 == 0 ? 6000 : i % 30);
    }
    account_fail_after(1);
    for (uint64_t total = 8000; total > 0; total--) {
        uint64_t at = total % 3 == 0 ? 0 : total % 3 == 1 ? total - 1 : total / 2;
        assert_int_equal(seq_remove(&f->s, at, 1), 1);
        if (total % 100 == 0) {
            seq_check(&f->s);
        }
    }
    account_fail_after(0);
    assert_int_equal(seq_count(&f->s), 0);
}

static void freeing_goes_in_steps(void **state) {
    struct fixture *f = *state;
    int steps = 0;
    for (uint64_t i = 0; i < 400000; i++) {
        push(f, SEQ_TAIL, i, i % 1000 == 0 ? LARGE : 16);
    }
    assert_int_equal(seq_remove(&f->s, 10000, 300000), 300000);
    assert_true(seq_wants_sweep(&f->s));
    while (!seq_deinit_step(&f->s, 1)) {
        steps++;
    }
    assert_true(steps > 20);
    push(f, SEQ_TAIL, 3, 10); /* good for use again */
    assert_at(f, 0, 3, 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_empty_one_has_nothing),
        TEST(pushes_line_up_at_both_ends),
        TEST(pops_at_one_end_empty_what_was_pushed_at_the_other),
        TEST(pushes_and_pops_in_turn_move_no_blocks),
        TEST(a_queue_of_steady_length_keeps_its_memory),
        TEST(budgets_are_kept),
        TEST(churn_keeps_blocks_full_and_memory_bounded),
        TEST(what_is_cut_away_is_given_back),
        TEST(ranges_of_every_size_are_cut_at_any_place),
        TEST(a_long_range_goes_at_once_and_its_memory_in_steps),
        TEST(later_changes_free_what_was_cut),
        TEST(lengths_at_every_border_work_anywhere),
        TEST(large_ones_come_and_go_at_the_ends),
        TEST(a_view_of_an_element_can_be_added),
        TEST(walks_cross_every_border),
        TEST(every_failed_allocation_changes_nothing),
        TEST(removing_needs_no_memory),
        TEST(freeing_goes_in_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
