/* SPDX-License-Identifier: BSD-3-Clause */
/* Really mapping and filling huge pages, and giving all of them back. The pool is changed under the lock
 * file of all tests that do, and put back; skipped with the reason where that is not permitted. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

#include "mem/machine.h"

#define LOCK_FILE "/tmp/goblin-hugepages.lock"

static size_t total_before;
static int lock = -1;

static struct pages_pool pool_now(void) {
    struct pages_pool pool = {0};
    (void)!pages_pool_read(pages_default_huge_bytes(), &pool);
    return pool;
}

static bool pool_resize(size_t total) {
    FILE *file = fopen("/proc/sys/vm/nr_hugepages", "we");
    bool good = file != NULL && fprintf(file, "%zu\n", total) > 0;
    return file != NULL && fclose(file) == 0 && good;
}

static int hold_pool(void **state) {
    lock = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_true(lock >= 0);
    flock(lock, LOCK_EX);
    total_before = pool_now().total;
    return 0;
}

static int give_back(void **state) {
    if (pool_now().total != total_before) {
        (void)!pool_resize(total_before);
    }
    close(lock);
    return 0;
}

/* Exactly this many free pages, or the test is skipped. */
static struct pages_pool have_free(size_t count) {
    struct pages_pool pool = pool_now();
    if (pool.page_bytes == 0 || pool.reserved != 0 ||
        !pool_resize(pool.total - pool.free + count) || pool_now().free != count) {
        print_message("SKIP: vm.nr_hugepages cannot be set so that %zu pages are free\n", count);
        skip();
    }
    return pool_now();
}

static void reserved_pages_are_counted_and_given_back(void **state) {
    struct pages_trial trial;
    struct pages_pool pool = have_free(5);
    pages_try(PAGES_HUGETLB, 0, 3 * pool.page_bytes - 1, &trial);
    assert_int_equal(trial.huge_bytes, 3 * pool.page_bytes);
    assert_int_equal(trial.reason, PAGES_REASON_NONE);
    pages_try(PAGES_HUGETLB, pool.page_bytes, 5 * pool.page_bytes, &trial);
    assert_int_equal(trial.huge_bytes, 5 * pool.page_bytes);
    assert_int_equal(pool_now().free, 5);
}

static void a_short_pool_gives_what_it_has(void **state) {
    struct pages_trial trial;
    struct pages_pool pool = have_free(7);
    pages_try(PAGES_HUGETLB, 0, 4096 * pool.page_bytes, &trial);
    assert_int_equal(trial.huge_bytes, 7 * pool.page_bytes);
    assert_int_equal(trial.reason, PAGES_REASON_POOL_EMPTY);
    assert_int_equal(pool_now().free, 7);
    pool = have_free(0);
    pages_try(PAGES_HUGETLB, 0, 1, &trial);
    assert_int_equal(trial.huge_bytes, 0);
    assert_int_equal(trial.reason, PAGES_REASON_POOL_EMPTY);
}

static void transparent_pages_are_what_the_kernel_counts(void **state) {
    struct pages_trial trial;
    struct machine machine;
    size_t bytes = 8 * pages_thp_bytes();
    machine_read("", &machine);
    if (bytes == 0 || machine.available_bytes / 2 < bytes) {
        print_message("SKIP: no transparent huge pages, or no memory for eight\n");
        skip();
    }
    pages_try(PAGES_THP, 0, bytes - 1, &trial);
    assert_true(trial.huge_bytes <= bytes);
    assert_int_equal(trial.huge_bytes % pages_thp_bytes(), 0);
    assert_int_equal(trial.huge_bytes == bytes, trial.reason == PAGES_REASON_NONE);
    assert_int_equal(machine.thp_mode[0] == 'n', trial.reason == PAGES_REASON_THP_NEVER);
}

static void what_there_is_not_is_not_had(void **state) {
    struct pages_trial trial;
    pages_try(PAGES_HUGETLB, 12345, 1, &trial);
    assert_int_equal(trial.huge_bytes, 0);
    assert_int_equal(trial.reason, PAGES_REASON_NO_SUPPORT);
    pages_try(PAGES_PLAIN, 0, 1, &trial);
    assert_int_equal(trial.reason, PAGES_REASON_NO_SUPPORT);
}

int main(void) {
#define POOL_TEST(name) cmocka_unit_test_setup_teardown(name, hold_pool, give_back)
    const struct CMUnitTest tests[] = {
        POOL_TEST(reserved_pages_are_counted_and_given_back),
        POOL_TEST(a_short_pool_gives_what_it_has),
        cmocka_unit_test(transparent_pages_are_what_the_kernel_counts),
        cmocka_unit_test(what_there_is_not_is_not_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
