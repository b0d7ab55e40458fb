/* SPDX-License-Identifier: BSD-3-Clause */
/* What the server says of its memory: --check-hugepages before it starts, MEMORY STATS and MEMORY DOCTOR
 * while it runs. */
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/client.h"
#include "support/server.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LOCK_FILE "/tmp/goblin-hugepages.lock"

static char out[16384];

/* What is tried takes pages from the pool, which other tests count. */
static int lock_fd = -1;

static int hold_pool(void **state) {
    (void)state;
    lock_fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return lock_fd >= 0 && flock(lock_fd, LOCK_EX) == 0 ? 0 : -1;
}

static int release_pool(void **state) {
    (void)state;
    return close(lock_fd);
}

/* ---- --check-hugepages ------------------------------------------------------------------------ */

static int check(const char *a, const char *b, const char *c) {
    const char *args[] = {"--check-hugepages", a, b, c, NULL};
    return server_run(SERVER_GOBLIN, args, out, sizeof(out));
}

static void bad_arguments_are_told_apart(void **state) {
    (void)state;
    static const char *const sizes[] = {"0", "2x", "-5", "1e9", ""};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_int_equal(check(sizes[i], NULL, NULL), 2);
        assert_non_null(strstr(out, "is no size in bytes"));
    }
    assert_int_equal(check("2mb", "--arena-huge", NULL), 2);
    assert_non_null(strstr(out, "'arena-huge'"));
    assert_int_equal(check("2mb", "--arena-thp", "--arena-hugetlb"), 2);
    assert_non_null(strstr(out, "exclude each other"));
    assert_int_equal(check("2mb", "--version", NULL), 2);
    assert_int_equal(check("--help", NULL, NULL), 2);
    assert_int_equal(check("2mb", "/none/goblin.conf", NULL), 2);
}

/* More than any machine has: never, and quickly. */
static void too_much_is_not_to_be_had(void **state) {
    (void)state;
    assert_int_equal(check("900000gb", NULL, NULL), 1);
    assert_non_null(strstr(out, "\nNo: that much cannot be had on huge pages now."));
    assert_non_null(strstr(out, "Transparent huge pages"));
    assert_non_null(strstr(out, "NUMA nodes: "));
    assert_non_null(strstr(out, "RLIMIT_MEMLOCK"));
    assert_int_equal(check("900000gb", "--arena-hugetlb", NULL), 1);
    assert_non_null(strstr(out, "as the options ask for them"));
}

/* The status says what the text says; which it is, is the machine's. */
static void the_status_is_the_answer(void **state) {
    (void)state;
    static const char *const options[] = {NULL, "--arena-hugetlb", "--arena-thp"};
    for (size_t i = 0; i < COUNT(options); i++) {
        int status = check("2mb", options[i], NULL);
        assert_true(status == 0 || status == 1);
        assert_int_equal(strstr(out, "\nYes: ") != NULL, status == 0);
        assert_int_equal(strstr(out, "\nNo: ") != NULL, status == 1);
    }
    int status = check(NULL, NULL, NULL);
    assert_true(status == 0 || status == 1);
    assert_non_null(strstr(out, "one page of each is tried"));
}

static void a_size_that_no_kernel_has_is_said(void **state) {
    (void)state;
    const char *args[] = {"--check-hugepages",    "1gb",  "--arena-hugetlb",
                          "--arena-hugetlb-size", "128k", NULL};
    assert_int_equal(server_run(SERVER_GOBLIN, args, out, sizeof(out)), 1);
    assert_non_null(
        strstr(out, "huge pages of 128 KiB") != NULL ? out : strstr(out, "no reserved huge pages"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_told_apart),
        cmocka_unit_test(too_much_is_not_to_be_had),
        cmocka_unit_test(the_status_is_the_answer),
        cmocka_unit_test(a_size_that_no_kernel_has_is_said),
    };
    return tests_result(cmocka_run_group_tests(tests, hold_pool, release_pool), COUNT(tests));
}
