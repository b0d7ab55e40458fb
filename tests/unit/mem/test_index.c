/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of every size come and go on huge blocks; where the machine has none, on plain ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mem/index.h"

enum { SLOTS = 4000 };

static size_t size_of(size_t i) {
    return 480 + (i * 2654435761U >> 7) % 3700; /* below, within and above what spans serve */
}

static void blocks_go_back_when_empty(enum pages_kind kind) {
    static unsigned char *slots[SLOTS];
    size_t before = account_bytes(ACCOUNT_ORDER);
    assert_int_equal(index_setup(kind), ST_OK);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < SLOTS; i++) {
            slots[i] = index_alloc(ACCOUNT_ORDER, size_of(i));
            assert_non_null(slots[i]);
            memset(slots[i], (int)(i & 255), size_of(i));
        }
        for (size_t k = 0; k < SLOTS; k++) {
            size_t i = k * 1709 % SLOTS;
            assert_int_equal(slots[i][0], i & 255);
            assert_int_equal(slots[i][size_of(i) - 1], i & 255);
            index_free(ACCOUNT_ORDER, slots[i], size_of(i));
        }
        assert_int_equal(index_slot_bytes(), 0);
        assert_int_equal(account_bytes(ACCOUNT_ORDER), before);
        if (kind != PAGES_PLAIN) {
            struct pages_stats stats;
            pages_get_stats(index_pages(), &stats);
            assert_int_equal(stats.chunks, 0);
        }
    }
    index_teardown();
}

static void slots_on_transparent_huge_pages(void **state) {
    (void)state;
    blocks_go_back_when_empty(PAGES_THP);
}

static void slots_on_reserved_huge_pages(void **state) {
    (void)state;
    blocks_go_back_when_empty(PAGES_HUGETLB);
}

static void without_pages_the_allocator_serves(void **state) {
    (void)state;
    blocks_go_back_when_empty(PAGES_PLAIN);
}

static void a_failed_slot_changes_nothing(void **state) {
    (void)state;
    assert_int_equal(index_setup(PAGES_THP), ST_OK);
    for (size_t n = 1; n < 3; n++) {
        account_fail_after(n);
        void *slot = index_alloc(ACCOUNT_INDEX, 1024);
        account_fail_after(0);
        assert_null(slot);
        assert_int_equal(index_slot_bytes(), 0);
    }
    void *slot = index_alloc(ACCOUNT_INDEX, 1024);
    assert_non_null(slot);
    index_free(ACCOUNT_INDEX, slot, 1024);
    index_teardown();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_on_transparent_huge_pages),
        cmocka_unit_test(slots_on_reserved_huge_pages),
        cmocka_unit_test(without_pages_the_allocator_serves),
        cmocka_unit_test(a_failed_slot_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
