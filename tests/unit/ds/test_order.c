/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "ds/order.h"
#include "mem/account.h"

#define MANY 300000

/* Records: the ref is the index. Members are distinct. */
struct record {
    uint64_t key;
    uint64_t member;
};

static struct record *records;
static uint64_t compares;

static int compare(void *ctx, uint64_t ref, const void *probe) {
    uint64_t a = records[ref].member, b = *(const uint64_t *)probe;
    compares++;
    return (a > b) - (a < b);
}

static uint64_t key_of(void *ctx, uint64_t ref) {
    return records[ref].key;
}

static const struct order_ops by_member = {compare, key_of, NULL};
static const struct order_ops by_member_exact = {compare, NULL, NULL};

static void add(struct order *o, uint64_t id, uint64_t key, uint64_t member) {
    records[id] = (struct record){key, member};
    assert_int_equal(order_insert(o, key, id, &records[id].member), ST_OK);
}

static void fill_random_doubles(struct order *o, uint64_t n, uint64_t seed) {
    struct rng r;
    rng_init(&r, seed);
    for (uint64_t i = 0; i < n; i++) {
        add(o, i, order_key_from_double((double)(rng_next(&r) >> 11) * 0x1p-53), rng_next(&r));
    }
}

static double bytes_each(const struct order *o) {
    return (double)order_bytes(o) / (double)order_count(o);
}

static int setup(void **state) {
    records = calloc(MANY, sizeof(*records));
    return records == NULL ? -1 : 0;
}

static int teardown(void **state) {
    free(records);
    assert_int_equal(account_bytes(ACCOUNT_ORDER), 0);
    return 0;
}

/* ---- keys ---- */

static void double_keys_keep_order_and_convert_back(void **state) {
    static const double ascending[] = {-INFINITY, -1e308, -2.5, -1,  -5e-324, 0,
                                       5e-324,    1e-9,   1,    1.5, 1e308,   INFINITY};
    for (size_t i = 0; i < ARRAY_LEN(ascending); i++) {
        uint64_t key = order_key_from_double(ascending[i]);
        assert_true(order_key_to_double(key) == ascending[i]);
        assert_true(i == 0 || order_key_from_double(ascending[i - 1]) < key);
    }
    assert_int_equal(order_key_from_double(-0.0), order_key_from_double(0.0));
    assert_false(signbit(order_key_to_double(order_key_from_double(-0.0))));
}

static void int_keys_keep_order_and_convert_back(void **state) {
    static const int64_t ascending[] = {INT64_MIN, -5, -1, 0, 1, 1700000000000, INT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(ascending); i++) {
        uint64_t key = order_key_from_i64(ascending[i]);
        assert_int_equal(order_key_to_i64(key), ascending[i]);
        assert_true(i == 0 || order_key_from_i64(ascending[i - 1]) < key);
    }
}

/* ---- behaviour ---- */

static void empty_tree_answers(void **state) {
    struct order o;
    struct order_entry e;
    struct order_iter it;
    order_init(&o, NULL, NULL);
    assert_int_equal(order_count(&o), 0);
    assert_int_equal(order_bytes(&o), 0);
    assert_false(order_first(&o, &e) || order_last(&o, &e) || order_at(&o, 0, &e));
    assert_false(order_pop_first(&o, &e) || order_pop_last(&o, &e));
    assert_false(order_erase(&o, 1, 1, NULL) || order_find(&o, 1, 1, NULL, NULL));
    assert_int_equal(order_lower_bound(&o, 0, false), 0);
    assert_int_equal(order_erase_range(&o, 0, 10), 0);
    assert_int_equal(order_update_key(&o, 1, 1, NULL, 2), ST_NOTFOUND);
    assert_int_equal(order_replace_ref(&o, 1, 1, NULL, 2), ST_NOTFOUND);
    order_iter_init(&it, &o, 5);
    assert_int_equal(order_fetch(&it, &e, 1) + order_fetch_back(&it, &e, 1), 0);
    order_prefetch(&o, 1);
    assert_true(order_check(&o));
    assert_true(order_destroy_step(&o, 1));
}

static void same_entry_twice_is_refused(void **state) {
    struct order o;
    uint64_t member = 7;
    order_init(&o, &by_member, NULL);
    add(&o, 0, 5, member);
    assert_int_equal(order_insert(&o, 5, 1, &member), ST_EXISTS);
    assert_int_equal(order_insert(&o, 6, 1, &member), ST_OK);
    assert_int_equal(order_count(&o), 2);
    order_deinit(&o);
}

static void lower_bounds_include_and_exclude(void **state) {
    struct order o;
    order_init(&o, NULL, NULL);
    for (uint64_t i = 0; i < 3000; i++) {
        assert_int_equal(order_insert(&o, i / 3 * 10, i, NULL), ST_OK);
    }
    for (uint64_t k = 0; k < 1000; k += 37) {
        assert_int_equal(order_lower_bound(&o, k * 10, false), k * 3);
        assert_int_equal(order_lower_bound(&o, k * 10, true), k * 3 + 3);
        assert_int_equal(order_lower_bound(&o, k * 10 + 1, false), k * 3 + 3);
        assert_int_equal(order_lower_bound_tie(&o, k * 10, k * 3 + 1, NULL, false), k * 3 + 1);
        assert_int_equal(order_lower_bound_tie(&o, k * 10, k * 3 + 1, NULL, true), k * 3 + 2);
        assert_int_equal(order_count_between(&o, k * 10, false, k * 10, false), 3);
        assert_int_equal(order_count_between(&o, k * 10, true, k * 10, false), 0);
    }
    assert_int_equal(order_count_between(&o, 0, false, UINT64_MAX, false), 3000);
    assert_int_equal(order_count_between(&o, 100, false, 50, false), 0);
    order_deinit(&o);
}

static void extreme_keys_stay_exact_without_records(void **state) {
    static const uint64_t keys[] = {
        0, 1, 2, UINT64_C(1) << 32, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
    struct order o;
    struct order_entry e;
    order_init(&o, NULL, NULL);
    for (size_t i = ARRAY_LEN(keys); i-- > 0;) {
        assert_int_equal(order_insert(&o, keys[i], ORDER_REF_MAX - i, NULL), ST_OK);
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        assert_true(order_at(&o, i, &e));
        assert_int_equal(e.key, keys[i]);
        assert_int_equal(e.ref, ORDER_REF_MAX - i);
    }
    assert_true(order_check(&o));
    order_deinit(&o);
}

static void equal_keys_cost_a_logarithm(void **state) {
    struct order o;
    struct rng r;
    rng_init(&r, 3);
    order_init(&o, &by_member, NULL);
    compares = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        add(&o, i, 42, rng_next(&r));
    }
    assert_true(compares < (uint64_t)MANY * 26); /* log2(MANY) is 18.2; a level may ask one more */
    assert_true(bytes_each(&o) < 9.5);
    compares = 0;
    for (uint64_t i = 0; i < MANY; i += 3) {
        uint64_t rank = 0;
        struct order_entry e;
        assert_true(order_find(&o, 42, i, &records[i].member, &rank));
        assert_true(order_at(&o, rank, &e));
        assert_int_equal(e.ref, i);
    }
    assert_true(compares < (uint64_t)MANY / 3 * 26);
    for (uint64_t i = 0; i < MANY; i += 2) {
        assert_true(order_erase(&o, 42, i, &records[i].member));
    }
    assert_true(order_check(&o));
    assert_int_equal(order_lower_bound(&o, 42, true), MANY / 2);
    order_deinit(&o);
}

static void pops_come_in_order(void **state) {
    struct order o;
    struct order_entry e;
    uint64_t low = 0, high = UINT64_MAX;
    order_init(&o, &by_member, NULL);
    fill_random_doubles(&o, 20000, 5);
    while (order_count(&o) > 0) {
        assert_true(order_pop_first(&o, &e));
        assert_true(e.key >= low);
        low = e.key;
        assert_true(order_pop_last(&o, &e));
        assert_true(e.key <= high && e.key >= low);
        high = e.key;
    }
    assert_int_equal(order_bytes(&o), 0);
    order_deinit(&o);
}

static void update_stays_in_place_between_neighbours(void **state) {
    struct order o;
    struct order_entry e;
    order_init(&o, NULL, NULL);
    for (uint64_t i = 0; i < 5000; i++) {
        assert_int_equal(order_insert(&o, i * 10, i, NULL), ST_OK);
    }
    account_fail_after(1); /* in place takes no memory */
    for (uint64_t i = 0; i < 5000; i++) {
        assert_int_equal(order_update_key(&o, i * 10, i, NULL, i * 10 + 5), ST_OK);
    }
    account_fail_after(0);
    assert_true(order_check(&o));
    assert_int_equal(order_update_key(&o, 5, 0, NULL, 1000000), ST_OK);
    assert_true(order_last(&o, &e) && e.ref == 0 && e.key == 1000000);
    assert_int_equal(order_update_key(&o, 5, 0, NULL, 7), ST_NOTFOUND);
    order_deinit(&o);
}

static void update_onto_an_equal_entry_is_refused(void **state) {
    struct order o;
    order_init(&o, &by_member_exact, NULL);
    add(&o, 0, 1, 9);
    add(&o, 1, 2, 9);
    assert_int_equal(order_update_key(&o, 1, 0, &records[0].member, 2), ST_EXISTS);
    assert_true(order_find(&o, 1, 0, &records[0].member, NULL));
    assert_true(order_check(&o));
    order_deinit(&o);
}

static void replaced_refs_widen_the_leaf(void **state) {
    struct order o;
    struct order_entry e;
    order_init(&o, NULL, NULL);
    for (uint64_t i = 0; i < 2000; i++) {
        assert_int_equal(order_insert(&o, i, i, NULL), ST_OK);
    }
    for (uint64_t i = 0; i < 2000; i += 7) {
        assert_int_equal(order_replace_ref(&o, i, i, NULL, i | UINT64_C(1) << 39), ST_OK);
        assert_true(order_at(&o, i, &e));
        assert_int_equal(e.ref, i | UINT64_C(1) << 39);
    }
    assert_int_equal(order_replace_ref(&o, 1, 77, NULL, 78), ST_NOTFOUND);
    assert_int_equal(order_count(&o), 2000);
    assert_true(order_check(&o));
    order_deinit(&o);
}

static void iterators_meet_in_the_middle(void **state) {
    struct order o;
    struct order_entry out[333];
    struct order_iter it;
    uint64_t seen = 0;
    size_t got = 0;
    order_init(&o, &by_member, NULL);
    fill_random_doubles(&o, 50000, 8);
    order_iter_init(&it, &o, 0);
    while ((got = order_fetch(&it, out, ARRAY_LEN(out))) > 0) {
        for (size_t i = 0; i < got; i++, seen++) {
            struct order_entry e;
            assert_true(order_at(&o, seen, &e));
            assert_true(e.key == out[i].key && e.ref == out[i].ref);
            assert_int_equal(e.key, records[e.ref].key);
        }
    }
    assert_int_equal(seen, 50000);
    while ((got = order_fetch_back(&it, out, ARRAY_LEN(out))) > 0) {
        seen -= got;
    }
    assert_int_equal(seen, 0);
    order_deinit(&o);
}

/* ---- memory ---- */

static void small_trees_are_small(void **state) {
    struct order o;
    order_init(&o, &by_member, NULL);
    fill_random_doubles(&o, 10, 1);
    assert_int_equal(order_bytes(&o), 96); /* 16 + 10 x 8 */
    order_deinit(&o);
}

static void entries_take_under_nine_and_a_half_bytes(void **state) {
    struct order o;
    order_init(&o, &by_member, NULL);
    fill_random_doubles(&o, MANY, 2);
    assert_true(bytes_each(&o) < 9.5);
    assert_true(order_check(&o));
    order_deinit(&o);

    order_init(&o, NULL, NULL);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(order_insert(&o, UINT64_C(1700000000000) + i * 3, i, NULL), ST_OK);
    }
    assert_true(bytes_each(&o) < 8.2);
    order_deinit(&o);
}

static void erasing_returns_memory(void **state) {
    struct order o;
    order_init(&o, &by_member, NULL);
    fill_random_doubles(&o, MANY, 4);
    for (uint64_t i = 0; i < MANY; i++) {
        if (i % 20 != 0) {
            assert_true(order_erase(&o, records[i].key, i, &records[i].member));
        }
    }
    assert_true(order_check(&o));
    assert_true(bytes_each(&o) < 11);
    assert_int_equal(order_erase_range(&o, 5, MANY), MANY / 20 - 5);
    assert_true(order_bytes(&o) <= 256);
    order_deinit(&o);
}

static void bulk_build_equals_inserts(void **state) {
    static const uint64_t sizes[] = {0, 1, 10, 509, 510, 511, 1020, 1021, 100000};
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        for (uint64_t wide = 0; wide < 2; wide++) {
            struct order o;
            struct order_builder b;
            struct order_entry e;
            order_init(&o, NULL, NULL);
            order_build_init(&b, &o);
            for (uint64_t i = 0; i < sizes[s]; i++) {
                /* wide: keys that fit no 32 bits and refs that need a fifth byte */
                uint64_t key = wide ? i * UINT64_C(0x10000000001) : i * 5;
                assert_int_equal(order_build_add(&b, key, i | wide << 38), ST_OK);
            }
            assert_int_equal(order_build_finish(&b), ST_OK);
            assert_int_equal(order_count(&o), sizes[s]);
            assert_true(order_check(&o));
            assert_true(sizes[s] == 0 ||
                        (order_last(&o, &e) && (e.ref & 0xffffff) == sizes[s] - 1));
            assert_true(wide || sizes[s] < 10000 || bytes_each(&o) < 8.2);
            order_deinit(&o);
        }
    }
}

static void bulk_build_refuses_disorder(void **state) {
    struct order o;
    struct order_builder b;
    order_init(&o, NULL, NULL);
    assert_int_equal(order_insert(&o, 100, 1, NULL), ST_OK);
    order_build_init(&b, &o);
    assert_int_equal(order_build_add(&b, 99, 2), ST_RANGE);
    assert_int_equal(order_build_add(&b, 100, 1), ST_RANGE);
    assert_int_equal(order_build_add(&b, 100, 2), ST_OK);
    assert_int_equal(order_build_finish(&b), ST_OK);
    assert_int_equal(order_count(&o), 2);
    order_deinit(&o);
}

static void destroy_goes_in_steps(void **state) {
    struct order o;
    size_t steps = 0, before = 0;
    order_init(&o, &by_member, NULL);
    fill_random_doubles(&o, 50000, 6);
    before = order_bytes(&o);
    while (!order_destroy_step(&o, 10)) {
        assert_true(order_bytes(&o) < before && before - order_bytes(&o) <= 10 * 4096);
        before = order_bytes(&o);
        steps++;
    }
    assert_true(steps > 8);
    assert_int_equal(order_bytes(&o), 0);
    fill_random_doubles(&o, 100, 6); /* usable again */
    assert_true(order_check(&o));
    order_deinit(&o);
}

/* ---- running out of memory ---- */

/* The order of refs, to see that nothing moved. */
static uint64_t fingerprint(const struct order *o) {
    struct order_entry out[256];
    struct order_iter it;
    uint64_t sum = 0;
    size_t got = 0;
    order_iter_init(&it, o, 0);
    while ((got = order_fetch(&it, out, ARRAY_LEN(out))) > 0) {
        for (size_t i = 0; i < got; i++) {
            sum = (sum ^ out[i].key ^ out[i].ref << 24) * UINT64_C(0x9E3779B97F4A7C15);
        }
    }
    return sum;
}

enum attempt { INSERT, UPDATE, REPLACE };

static enum status attempt(struct order *o, enum attempt what, uint64_t id, uint64_t key) {
    struct record *r = &records[id];
    if (what == INSERT) {
        return order_insert(o, r->key, id, &r->member);
    }
    if (what == UPDATE) {
        return order_update_key(o, r->key, id, &r->member, key);
    }
    return order_replace_ref(o, r->key, id, &r->member, id | UINT64_C(1) << 36);
}

/* Fail the 1st, 2nd, 3rd... allocation until the call succeeds. The number of failures. */
static size_t until_it_works(struct order *o, enum attempt what, uint64_t id, uint64_t key) {
    uint64_t count = order_count(o), before = fingerprint(o);
    for (size_t n = 1;; n++) {
        account_fail_after(n);
        enum status st = attempt(o, what, id, key);
        account_fail_after(0);
        if (st == ST_OK) {
            return n - 1;
        }
        assert_int_equal(st, ST_NOMEM);
        assert_int_equal(order_count(o), count);
        assert_true(order_check(o));
        assert_true(fingerprint(o) == before);
    }
}

static void failed_insert_changes_nothing(void **state) {
    struct order o;
    struct rng r;
    size_t most = 0;
    rng_init(&r, 9);
    for (int shape = 0; shape < 3; shape++) {
        order_init(&o, &by_member, NULL);
        for (uint64_t i = 0; i < 3000; i++) {
            uint64_t key = shape == 0 ? i : shape == 1 ? rng_next(&r) : i % 2;
            records[i] = (struct record){key, rng_next(&r)};
            size_t failed = until_it_works(&o, INSERT, i, 0);
            most = failed > most ? failed : most;
        }
        order_deinit(&o);
    }
    assert_true(most >= 3);
}

/* Splits of inner nodes and of the root happen too rarely for the test above. */
static void failed_inner_split_changes_nothing(void **state) {
    struct order o;
    struct order_builder b;
    size_t most = 0;
    order_init(&o, NULL, NULL);
    order_build_init(&b, &o);
    for (uint64_t i = 0; i < 63 * 510; i++) { /* one full inner node of full leaves */
        assert_int_equal(order_build_add(&b, i * 4, i), ST_OK);
    }
    assert_int_equal(order_build_finish(&b), ST_OK);
    for (uint64_t i = 0; i < 4; i++) {
        records[MANY - 1 - i].key = i * 30000 + 1;
        size_t failed = until_it_works(&o, INSERT, MANY - 1 - i, 0);
        most = failed > most ? failed : most;
    }
    assert_true(most >= 3); /* new root, right half, leaves; what was made stays made */
    assert_true(order_check(&o));
    order_deinit(&o);
}

static void failed_moves_change_nothing(void **state) {
    struct order o;
    struct rng r;
    size_t failed = 0;
    rng_init(&r, 10);
    order_init(&o, NULL, NULL);
    for (uint64_t i = 0; i < 3000; i++) {
        add(&o, i, rng_next(&r), 0);
    }
    for (uint64_t i = 0; i < 3000; i++) {
        uint64_t key = rng_next(&r);
        failed += until_it_works(&o, UPDATE, i, key);
        records[i].key = key;
    }
    for (uint64_t i = 0; i < 3000; i += 10) {
        failed += until_it_works(&o, REPLACE, i, 0);
    }
    assert_true(failed > 0 && order_check(&o));
    order_deinit(&o);
}

static void erase_needs_no_memory(void **state) {
    struct order o;
    order_init(&o, &by_member, NULL);
    fill_random_doubles(&o, 30000, 12);
    account_fail_after(1);
    for (uint64_t i = 0; i < 30000; i++) {
        assert_true(order_erase(&o, records[i].key, i, &records[i].member));
    }
    account_fail_after(0);
    assert_int_equal(order_count(&o), 0);
    assert_true(order_check(&o));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(double_keys_keep_order_and_convert_back),
        cmocka_unit_test(int_keys_keep_order_and_convert_back),
        cmocka_unit_test(empty_tree_answers),
        cmocka_unit_test(same_entry_twice_is_refused),
        cmocka_unit_test(lower_bounds_include_and_exclude),
        cmocka_unit_test(extreme_keys_stay_exact_without_records),
        cmocka_unit_test(equal_keys_cost_a_logarithm),
        cmocka_unit_test(pops_come_in_order),
        cmocka_unit_test(update_stays_in_place_between_neighbours),
        cmocka_unit_test(update_onto_an_equal_entry_is_refused),
        cmocka_unit_test(replaced_refs_widen_the_leaf),
        cmocka_unit_test(iterators_meet_in_the_middle),
        cmocka_unit_test(small_trees_are_small),
        cmocka_unit_test(entries_take_under_nine_and_a_half_bytes),
        cmocka_unit_test(erasing_returns_memory),
        cmocka_unit_test(bulk_build_equals_inserts),
        cmocka_unit_test(bulk_build_refuses_disorder),
        cmocka_unit_test(destroy_goes_in_steps),
        cmocka_unit_test(failed_insert_changes_nothing),
        cmocka_unit_test(failed_inner_split_changes_nothing),
        cmocka_unit_test(failed_moves_change_nothing),
        cmocka_unit_test(erase_needs_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
