/* SPDX-License-Identifier: BSD-3-Clause */
/* The mapped form, also in sanitizer builds (there the library has the guarded one). */
#define DENSE_MAPPED
#include "../../../src/mem/dense.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"

enum { SLOTS_MAX = 3000 };

/* The owner: a slot begins with its owner's number, and the rest repeats it. */
static void *place[SLOTS_MAX];
static size_t slot_words;
static size_t moves;

static void fill(size_t owner) {
    uint64_t *words = place[owner];
    for (size_t i = 0; i < slot_words; i++) {
        words[i] = owner;
    }
}

static void assert_intact(size_t owner) {
    const uint64_t *words = place[owner];
    for (size_t i = 0; i < slot_words; i++) {
        assert_int_equal(words[i], owner);
    }
}

static void note_move(void *from, void *to) {
    size_t owner = *(uint64_t *)to;
    assert_ptr_equal(place[owner], from);
    place[owner] = to;
    moves++;
}

static void setup_pool(struct dense *d, size_t slot_bytes) {
    dense_init(d, slot_bytes, note_move);
    memset(place, 0, sizeof(place));
    slot_words = slot_bytes / sizeof(uint64_t);
    moves = 0;
}

static void take(struct dense *d, size_t owner) {
    place[owner] = dense_alloc(d);
    assert_non_null(place[owner]);
    assert_int_equal((uintptr_t)place[owner] % 16, 0);
    fill(owner);
}

static void drop(struct dense *d, size_t owner) {
    void *slot = place[owner];
    place[owner] = NULL;
    dense_free(d, slot);
}

static size_t resident_bytes(void) {
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
    fclose(f);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void the_last_slot_fills_the_hole(void **state) {
    struct dense d;
    setup_pool(&d, 64);
    assert_null(dense_last(&d));
    for (size_t i = 0; i < 3; i++) {
        take(&d, i);
    }
    void *hole = place[0];
    assert_ptr_equal(dense_last(&d), place[2]);
    drop(&d, 0);
    assert_int_equal(moves, 1);
    assert_ptr_equal(place[2], hole);
    assert_ptr_equal(dense_last(&d), place[1]);
    drop(&d, 1);
    drop(&d, 2);
    assert_int_equal(moves, 1);
    assert_null(dense_last(&d));
    dense_check(&d);
    dense_deinit(&d);
}

static void slots_keep_their_bytes_through_any_order_of_frees(void **state) {
    static const size_t sizes[] = {16, 48, 2352, 6032, 8192, 65536};
    struct rng rng;
    rng_init(&rng, 1);
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        struct dense d;
        size_t slots = sizes[k] > 10000 ? 60 : sizes[k] > 1000 ? 400 : SLOTS_MAX;
        size_t target = 0;
        size_t used = 0;
        setup_pool(&d, sizes[k]);
        for (int round = 0; round < 8000; round++) {
            size_t owner = rng_below(&rng, slots);
            target = round % 500 == 0 ? rng_below(&rng, slots) : target;
            if (place[owner] != NULL && used > target) {
                assert_intact(owner);
                drop(&d, owner);
                used--;
            } else if (place[owner] == NULL && used <= target) {
                take(&d, owner);
                used++;
            }
            assert_int_equal(d.used, used);
            assert_int_equal(account_bytes(ACCOUNT_INDEX), used * sizes[k]);
            dense_check(&d);
        }
        for (size_t owner = 0; owner < slots; owner++) {
            if (place[owner] != NULL) {
                assert_intact(owner);
                drop(&d, owner);
            }
        }
        assert_true(moves > 0);
        assert_int_equal(account_bytes(ACCOUNT_INDEX), 0);
        dense_check(&d);
        dense_deinit(&d);
    }
}

static void freed_pages_leave_the_process(void **state) {
    enum { SLOT = 8192, COUNT = 2000 };
    struct dense d;
    setup_pool(&d, SLOT);
    size_t before = resident_bytes();
    for (size_t i = 0; i < COUNT; i++) {
        take(&d, i);
        assert_true(dense_idle_bytes(&d) == 0);
    }
    size_t full = resident_bytes();
    assert_true(full - before >= (size_t)COUNT * SLOT);
#ifndef GC_SANITIZE /* whose own tables grow with what is touched */
    assert_true(full - before <= (size_t)COUNT * SLOT * 102 / 100);
#endif
    for (size_t i = 0; i < COUNT - 100; i++) {
        drop(&d, i);
        assert_true(dense_idle_bytes(&d) <= DENSE_IDLE_BYTES);
    }
    assert_true(full - resident_bytes() >= (size_t)(COUNT - 100) * SLOT - 2 * DENSE_IDLE_BYTES);
    for (size_t i = COUNT - 100; i < COUNT; i++) {
        assert_intact(i);
        drop(&d, i);
    }
    assert_int_equal(dense_idle_bytes(&d), 0);
#ifndef GC_SANITIZE
    assert_true(resident_bytes() <= before + 256 * 1024); /* code pages come in on the way */
#endif
    assert_true(d.spare != NULL);
    dense_deinit(&d);
}

static void a_border_between_blocks_is_crossed_both_ways(void **state) {
    enum { SLOT = 65536 }; /* 7 a block */
    struct dense d;
    setup_pool(&d, SLOT);
    for (size_t i = 0; i < 8; i++) {
        take(&d, i);
    }
    for (int round = 0; round < 20; round++) {
        drop(&d, 7);
        assert_int_equal(d.top_used, 7);
        assert_non_null(d.spare);
        dense_check(&d);
        take(&d, 7);
        assert_int_equal(d.top_used, 1);
        assert_null(d.spare);
        dense_check(&d);
    }
    drop(&d, 3); /* the first block's hole takes the second block's only slot */
    assert_int_equal(moves, 1);
    for (size_t i = 0; i < 8; i++) {
        if (place[i] != NULL) {
            assert_intact(i);
            drop(&d, i);
        }
    }
    dense_deinit(&d);
}

static void a_failed_allocation_changes_nothing(void **state) {
    struct dense d;
    setup_pool(&d, 4096);
    account_fail_after(1);
    assert_null(dense_alloc(&d));
    account_fail_after(2);
    take(&d, 0);
    assert_null(dense_alloc(&d));
    account_fail_after(0);
    assert_int_equal(account_bytes(ACCOUNT_INDEX), 4096);
    assert_int_equal(d.used, 1);
    take(&d, 1);
    drop(&d, 0);
    assert_intact(1);
    drop(&d, 1);
    dense_deinit(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_slot_fills_the_hole),
        cmocka_unit_test(slots_keep_their_bytes_through_any_order_of_frees),
        cmocka_unit_test(freed_pages_leave_the_process),
        cmocka_unit_test(a_border_between_blocks_is_crossed_both_ways),
        cmocka_unit_test(a_failed_allocation_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
