/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/histogram.h"
#include "base/rng.h"

static struct histogram *create(void) {
    struct histogram *h = calloc(1, sizeof(*h));
    assert_non_null(h);
    return h;
}

static void empty_histogram_answers_zero(void **state) {
    struct histogram *h = create();
    assert_int_equal(histogram_quantile(h, 0.5), 0);
    assert_int_equal(histogram_quantile(h, 1.0), 0);
    free(h);
}

static void every_value_falls_in_the_bucket_that_ends_at_or_after_it(void **state) {
    struct rng r;
    rng_init(&r, 7);
    for (int i = 0; i < 200000; i++) {
        uint64_t value = rng_next(&r) >> (24 + rng_below(&r, 40));
        size_t idx = histogram_bucket_of(value);
        assert_true(idx < HISTOGRAM_BUCKET_COUNT);
        assert_true(value <= histogram_bucket_last(idx));
        if (idx > 0) {
            assert_true(value > histogram_bucket_last(idx - 1));
        }
        /* Within 1/64 of the value: the promise of the header. */
        assert_true(histogram_bucket_last(idx) - value <= value / 64);
    }
}

static void buckets_are_contiguous(void **state) {
    for (size_t i = 0; i + 1 < HISTOGRAM_BUCKET_COUNT; i++) {
        assert_int_equal(histogram_bucket_of(histogram_bucket_last(i)), i);
        assert_int_equal(histogram_bucket_of(histogram_bucket_last(i) + 1), i + 1);
    }
}

static void quantiles_of_small_values_are_exact(void **state) {
    struct histogram *h = create();
    for (uint64_t v = 1; v <= 100; v++) {
        histogram_add(h, v);
    }
    assert_int_equal(histogram_quantile(h, 0.0), 1);
    assert_int_equal(histogram_quantile(h, 0.01), 1);
    assert_int_equal(histogram_quantile(h, 0.5), 50);
    assert_int_equal(histogram_quantile(h, 0.99), 99);
    assert_int_equal(histogram_quantile(h, 0.991), 100);
    assert_int_equal(histogram_quantile(h, 1.0), 100);
    free(h);
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void quantiles_agree_with_sorting_within_the_promise(void **state) {
    enum { COUNT = 50000 };
    uint64_t *values = malloc(COUNT * sizeof(*values));
    struct histogram *h = create();
    struct rng r;
    assert_non_null(values);
    rng_init(&r, 11);
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = rng_next(&r) >> (30 + rng_below(&r, 30));
        histogram_add(h, values[i]);
    }
    qsort(values, COUNT, sizeof(*values), by_value);
    const double fractions[] = {0.1, 0.5, 0.9, 0.99, 0.999, 0.9999};
    for (size_t i = 0; i < ARRAY_LEN(fractions); i++) {
        size_t rank = (size_t)(fractions[i] * COUNT);
        uint64_t truth = values[rank > 0 ? rank - 1 : 0];
        uint64_t answer = histogram_quantile(h, fractions[i]);
        assert_true(answer >= truth);
        assert_true(answer - truth <= truth / 64 + (values[rank] - truth));
    }
    assert_int_equal(histogram_quantile(h, 1.0), values[COUNT - 1]);
    free(values);
    free(h);
}

static void huge_values_land_in_the_last_bucket_and_max_stays_exact(void **state) {
    struct histogram *h = create();
    histogram_add(h, UINT64_MAX);
    histogram_add(h, (uint64_t)1 << 40);
    assert_int_equal(h->bucket_count[HISTOGRAM_BUCKET_COUNT - 1], 2);
    assert_true(histogram_quantile(h, 1.0) == UINT64_MAX);
    free(h);
}

static void merge_is_the_same_as_adding_all_to_one(void **state) {
    struct histogram *a = create();
    struct histogram *b = create();
    struct histogram *both = create();
    for (uint64_t v = 0; v < 10000; v += 7) {
        histogram_add(v % 2 ? a : b, v * v);
        histogram_add(both, v * v);
    }
    histogram_merge(a, b);
    assert_memory_equal(a, both, sizeof(*a));
    free(a);
    free(b);
    free(both);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_histogram_answers_zero),
        cmocka_unit_test(every_value_falls_in_the_bucket_that_ends_at_or_after_it),
        cmocka_unit_test(buckets_are_contiguous),
        cmocka_unit_test(quantiles_of_small_values_are_exact),
        cmocka_unit_test(quantiles_agree_with_sorting_within_the_promise),
        cmocka_unit_test(huge_values_land_in_the_last_bucket_and_max_stays_exact),
        cmocka_unit_test(merge_is_the_same_as_adding_all_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
