/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#ifndef GC_SANITIZE
#include <jemalloc/jemalloc.h>
#endif

static void each_tag_counts_its_own(void **state) {
    void *kept[ACCOUNT_TAGS];
    for (int tag = 0; tag < ACCOUNT_TAGS; tag++) {
        size_t before = account_bytes(tag);
        kept[tag] = account_alloc(tag, 100 + (size_t)tag);
        assert_non_null(kept[tag]);
        assert_true(account_bytes(tag) >= before + 100);
        assert_true(strlen(account_tag_name(tag)) > 0);
    }
    for (int tag = 0; tag < ACCOUNT_TAGS; tag++) {
        account_free(tag, kept[tag]);
        assert_int_equal(account_bytes(tag), 0);
    }
    account_free(ACCOUNT_OTHER, NULL);
}

static void counts_the_size_it_promised(void **state) {
    static const size_t sizes[] = {0, 1, 8, 9, 100, 1000, 4097, 16385, 70000, 3000000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        void *p = account_alloc(ACCOUNT_VALUE, sizes[i]);
        assert_non_null(p);
        assert_int_equal(account_bytes(ACCOUNT_VALUE), account_good_size(sizes[i]));
        account_free(ACCOUNT_VALUE, p);
    }
}

static void realloc_keeps_bytes_and_count(void **state) {
    char *p = account_realloc(ACCOUNT_VALUE, NULL, 10);
    assert_non_null(p);
    memcpy(p, "0123456789", 10);
    p = account_realloc(ACCOUNT_VALUE, p, 100000);
    assert_non_null(p);
    assert_memory_equal(p, "0123456789", 10);
    assert_int_equal(account_bytes(ACCOUNT_VALUE), account_good_size(100000));
    p = account_realloc(ACCOUNT_VALUE, p, 10);
    assert_memory_equal(p, "0123456789", 10);
    account_free(ACCOUNT_VALUE, p);
    assert_int_equal(account_bytes(ACCOUNT_VALUE), 0);
}

static void discards_a_long_block_in_steps(void **state) {
    (void)state;
    const size_t len = (size_t)5 << 20, step = (size_t)2 << 20;
    size_t before = account_bytes(ACCOUNT_VALUE), at = 0;
    unsigned char *block = account_alloc(ACCOUNT_VALUE, len);
    assert_non_null(block);
    memset(block, 1, len);
    assert_false(account_discard(block, &at, step));
    assert_int_equal(at, step);
    assert_int_equal(block[step + 4096], 1); /* what is behind is still there */
#ifndef GC_SANITIZE
    assert_int_equal(block[step / 2], 0);
#endif
    assert_false(account_discard(block, &at, step));
    assert_true(account_discard(block, &at, step));
    account_free(ACCOUNT_VALUE, block);
    assert_int_equal(account_bytes(ACCOUNT_VALUE), before);
}

static void counts_what_comes_from_elsewhere(void **state) {
    struct account_heap before, after;
    account_heap(&before);
    account_count(ACCOUNT_INDEX, (size_t)1 << 30);
    account_heap(&after);
    assert_int_equal(account_bytes(ACCOUNT_INDEX), 1 << 30);
    assert_true(after.allocated_bytes - before.allocated_bytes >= (size_t)1 << 29);
    assert_true(after.resident_bytes - before.resident_bytes >= (size_t)1 << 29);
    account_uncount(ACCOUNT_INDEX, (size_t)1 << 30);
    assert_int_equal(account_bytes(ACCOUNT_INDEX), 0);
}

static void moves_between_tags_and_plain_malloc(void **state) {
    void *p = malloc(500);
    account_move(ACCOUNT_TAGS, ACCOUNT_CLIENT, p);
    size_t bytes = account_bytes(ACCOUNT_CLIENT);
    assert_true(bytes >= 500);
    account_move(ACCOUNT_CLIENT, ACCOUNT_VALUE, p);
    assert_int_equal(account_bytes(ACCOUNT_CLIENT), 0);
    assert_int_equal(account_bytes(ACCOUNT_VALUE), bytes);
    account_move(ACCOUNT_VALUE, ACCOUNT_TAGS, p);
    assert_int_equal(account_bytes(ACCOUNT_VALUE), 0);
    free(p);
    account_move(ACCOUNT_VALUE, ACCOUNT_CLIENT, NULL);
}

static void fails_from_the_nth_allocation_on(void **state) {
    void *kept = account_alloc(ACCOUNT_OTHER, 64);
    account_fail_after(2);
    void *first = account_alloc(ACCOUNT_OTHER, 64);
    assert_non_null(first);
    size_t before = account_bytes(ACCOUNT_OTHER);
    assert_null(account_alloc(ACCOUNT_OTHER, 64));
    assert_null(account_realloc(ACCOUNT_OTHER, kept, 1000));
    assert_true(account_must_fail());
    assert_int_equal(account_bytes(ACCOUNT_OTHER), before);
    account_fail_after(0);
    kept = account_realloc(ACCOUNT_OTHER, kept, 1000);
    assert_non_null(kept);
    account_free(ACCOUNT_OTHER, first);
    account_free(ACCOUNT_OTHER, kept);
}

static void refuses_what_no_machine_has(void **state) {
#ifndef GC_SANITIZE
    assert_null(account_alloc(ACCOUNT_OTHER, SIZE_MAX / 4));
    assert_null(account_alloc(ACCOUNT_OTHER, SIZE_MAX));
    assert_int_equal(account_bytes(ACCOUNT_OTHER), 0);
#endif
}

static void its_options_are_in_force(void **state) {
#ifndef GC_SANITIZE
    unsigned narenas = 0;
    ssize_t decay = 0;
    size_t len = sizeof(narenas);
    assert_int_equal(mallctl("opt.narenas", &narenas, &len, NULL, 0), 0);
    assert_int_equal(narenas, 1);
    len = sizeof(decay);
    assert_int_equal(mallctl("opt.dirty_decay_ms", &decay, &len, NULL, 0), 0);
    assert_int_equal(decay, 100);
#endif
}

static void tells_what_the_heap_holds(void **state) {
    struct account_heap before, during;
    account_heap(&before);
    void *p = account_alloc(ACCOUNT_VALUE, 50000000);
    assert_non_null(p);
    memset(p, 1, 50000000);
    account_heap(&during);
    assert_true(during.allocated_bytes >= before.allocated_bytes + 50000000);
    assert_true(during.resident_bytes >= before.resident_bytes + 40000000);
    account_free(ACCOUNT_VALUE, p);
    account_decay();
    account_purge();
#ifndef GC_SANITIZE
    struct account_heap after;
    account_heap(&after);
    assert_true(after.resident_bytes < before.resident_bytes + 8000000);
    assert_memory_equal(account_allocator_name(), "jemalloc-", 9);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tag_counts_its_own),
        cmocka_unit_test(counts_the_size_it_promised),
        cmocka_unit_test(realloc_keeps_bytes_and_count),
        cmocka_unit_test(discards_a_long_block_in_steps),
        cmocka_unit_test(counts_what_comes_from_elsewhere),
        cmocka_unit_test(moves_between_tags_and_plain_malloc),
        cmocka_unit_test(fails_from_the_nth_allocation_on),
        cmocka_unit_test(refuses_what_no_machine_has),
        cmocka_unit_test(its_options_are_in_force),
        cmocka_unit_test(tells_what_the_heap_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
