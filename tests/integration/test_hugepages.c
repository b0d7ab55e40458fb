/* SPDX-License-Identifier: BSD-3-Clause */
/* --arena-hugetlb on every kind of machine: no pool, a full one, one that runs out under load, one
 * that appears later, and one whose cgroup forbids what the pool has. In each the server keeps
 * running, reads back what was written, and INFO agrees with the kernel.
 *
 * The tests change the kernel's pool of 2 MiB pages and restore it; they need root and are skipped
 * with the reason where the machine does not allow it or the pool is in use by somebody else. */
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/client.h"
#include "support/load.h"
#include "support/server.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LOCK_FILE "/tmp/goblin-hugepages.lock" /* held by every test that changes the pool */
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

enum { PAGE_BYTES = 2 * 1024 * 1024, SMALL_LOAD = 100000, LARGE_LOAD = 400000 };

/* About 120 bytes an entry: SMALL_LOAD fills some 12 MiB, LARGE_LOAD some 48 MiB. */
static struct server *server;
static struct load load;
static long pool_before = -1;
static int lock_fd = -1;
static char cgroup_mount[] = "/tmp/goblin-cgroup-XXXXXX";
static char cgroup_dir[64];

/* ---- the kernel's side ---- */

static long read_number(const char *path) {
    long n = -1;
    FILE *f = fopen(path, "r");
    if (f) {
        if (fscanf(f, "%ld", &n) != 1) {
            n = -1;
        }
        fclose(f);
    }
    return n;
}

static bool write_number(const char *path, long long n) {
    FILE *f = fopen(path, "w");
    bool ok = f && fprintf(f, "%lld\n", n) > 0;
    return f && fclose(f) == 0 && ok;
}

/* True when the pool now has exactly this many pages, all free. */
static bool set_pool(long pages) {
    return write_number(POOL "nr_hugepages", pages) && read_number(POOL "nr_hugepages") == pages &&
           read_number(POOL "free_hugepages") == pages;
}

#define NEED_POOL(pages)                                                                           \
    do {                                                                                           \
        if (!set_pool(pages)) {                                                                    \
            TEST_SKIP("cannot have a pool of exactly %d free huge pages (root needed, memory in "  \
                      "one piece, no other user)",                                                 \
                      (int)(pages));                                                               \
        }                                                                                          \
    } while (0)

static int save_pool(void **state) {
    (void)state;
    lock_fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_fd >= 0) {
        (void)flock(lock_fd, LOCK_EX);
    }
    pool_before = read_number(POOL "nr_hugepages");
    return 0;
}

static void close_cgroup(void) {
    if (cgroup_dir[0]) {
        rmdir(cgroup_dir);
        umount(cgroup_mount);
        rmdir(cgroup_mount);
        cgroup_dir[0] = '\0';
    }
}

static int restore_pool(void **state) {
    (void)state;
    client_close(load.client);
    load.client = NULL;
    server_kill(server); /* only after a failed test: a passed one has stopped it */
    server = NULL;
    close_cgroup();
    if (pool_before >= 0) {
        (void)write_number(POOL "nr_hugepages", pool_before);
    }
    if (lock_fd >= 0) {
        close(lock_fd);
    }
    return 0;
}

/* ---- the server's side ---- */

static void start(const char *procs_path) {
    static const char *const args[] = {"--arena-hugetlb", NULL};
    server = server_start_in_cgroup(SERVER_GOBLIN, args, procs_path);
    load = (struct load){.client = server_connect(server),
                         .kind = LOAD_HASH,
                         .value_min_len = 80,
                         .value_max_len = 120};
}

static long long info(const char *field) {
    return client_info_number(load.client, "memory", field);
}

/* The three that must agree: INFO's account, INFO's reading of /proc, and ours. */
static long long huge_bytes(void) {
    long long counted = info("arena_huge_bytes");
    assert_int_equal(info("hugetlb_pages_bytes"), server_status_bytes(server, "HugetlbPages"));
    assert_int_equal(counted, server_status_bytes(server, "HugetlbPages"));
    return counted;
}

static void expect_reason(bool expected) {
    char reason[256] = "";
    assert_true(
        client_info(load.client, "memory", "arena_fallback_reason", reason, sizeof(reason)));
    print_message("huge %lld KiB, fallen back %lld KiB, reason \"%s\"\n",
                  info("arena_huge_bytes") / 1024, info("arena_fallback_bytes") / 1024, reason);
    if (expected) {
        assert_true(strlen(reason) > 3);
    }
}

static void finish(uint64_t entries) {
    assert_int_equal(load.errors, 0);
    assert_int_equal(load_verify(&load, 0, entries, 0, 0), 0);
    client_close(load.client);
    load.client = NULL;
    struct server *s = server;
    server = NULL;
    server_stop(s);
}

/* ---- tests ---- */

static void without_a_pool_it_runs_on_plain_pages(void **state) {
    (void)state;
    NEED_POOL(0);
    start(NULL);
    load_write(&load, 0, SMALL_LOAD, 0);
    assert_int_equal(info("arena_hugetlb_asked"), 1);
    assert_int_equal(huge_bytes(), 0);
    assert_true(info("arena_fallback_bytes") > 0);
    expect_reason(true);
    finish(SMALL_LOAD);
}

static void with_a_pool_the_arena_is_on_huge_pages(void **state) {
    (void)state;
    NEED_POOL(64);
    start(NULL);
    load_write(&load, 0, LARGE_LOAD, 0);
    long long huge = huge_bytes();
    expect_reason(false);
    assert_true(huge >= 30LL * 1024 * 1024);
    assert_int_equal(huge % PAGE_BYTES, 0);
    assert_int_equal(info("arena_fallback_bytes"), 0);
    assert_int_equal(info("hugetlb_pool_total"), 64);
    assert_int_equal(info("hugetlb_pool_free"), 64 - huge / PAGE_BYTES);
    /* Churn on huge pages. */
    load_write(&load, 0, LARGE_LOAD, 1);
    load_remove(&load, 0, LARGE_LOAD, 2);
    load_write(&load, 0, LARGE_LOAD, 0);
    (void)huge_bytes();
    finish(LARGE_LOAD);
    assert_int_equal(read_number(POOL "free_hugepages"), 64);
}

static void flushing_returns_the_pages(void **state) {
    (void)state;
    NEED_POOL(64);
    start(NULL);
    load_write(&load, 0, LARGE_LOAD, 0);
    long long huge = huge_bytes();
    client_expect(load.client, "+OK", "FLUSHALL", NULL);
    for (int i = 0; i < 100 && huge_bytes() > huge / 4; i++) {
        usleep(100 * 1000);
    }
    assert_true(huge_bytes() <= huge / 4);
    finish(0);
}

static void a_pool_that_runs_out_is_topped_up_with_plain_pages(void **state) {
    (void)state;
    NEED_POOL(8);
    start(NULL);
    load_write(&load, 0, LARGE_LOAD, 0);
    long long huge = huge_bytes();
    assert_true(huge > 0 && huge <= 8LL * PAGE_BYTES);
    assert_true(info("arena_fallback_bytes") > 0);
    expect_reason(true);
    finish(LARGE_LOAD);
}

static void a_pool_filled_later_is_used(void **state) {
    (void)state;
    NEED_POOL(0);
    start(NULL);
    load_write(&load, 0, SMALL_LOAD, 0);
    assert_int_equal(huge_bytes(), 0);
    NEED_POOL(64);
    uint64_t written = SMALL_LOAD;
    /* Up to a minute of growing: the retry may back off, not give up. */
    for (int i = 0; i < 60 && huge_bytes() == 0; i++) {
        load_write(&load, written, written + 20000, 0);
        written += 20000;
        usleep(1000 * 1000);
    }
    expect_reason(false);
    assert_true(huge_bytes() > 0);
    finish(written);
}

/* mmap succeeds and the pool has pages, but the cgroup does not allow them: touching one would be
 * SIGBUS. */
static void a_cgroup_limit_below_the_pool_is_survived(void **state) {
    (void)state;
    NEED_POOL(64);
    assert_non_null(mkdtemp(cgroup_mount));
    if (mount("none", cgroup_mount, "cgroup", 0, "hugetlb") != 0) {
        rmdir(cgroup_mount);
        TEST_SKIP("cannot mount a hugetlb cgroup (v1)");
    }
    char path[128];
    snprintf(cgroup_dir, sizeof(cgroup_dir), "%s/goblin-test-%d", cgroup_mount, (int)getpid());
    assert_int_equal(mkdir(cgroup_dir, 0700), 0);
    snprintf(path, sizeof(path), "%s/hugetlb.2MB.limit_in_bytes", cgroup_dir);
    assert_true(write_number(path, 4LL * PAGE_BYTES));
    snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup_dir);
    start(path);
    load_write(&load, 0, LARGE_LOAD, 0);
    assert_true(server_alive(server));
    assert_true(huge_bytes() <= 4LL * PAGE_BYTES);
    assert_true(info("arena_fallback_bytes") > 0);
    expect_reason(true);
    finish(LARGE_LOAD);
}

int main(void) {
#define POOL_TEST(f) cmocka_unit_test_setup_teardown(f, save_pool, restore_pool)
    const struct CMUnitTest tests[] = {
        POOL_TEST(without_a_pool_it_runs_on_plain_pages),
        POOL_TEST(with_a_pool_the_arena_is_on_huge_pages),
        POOL_TEST(flushing_returns_the_pages),
        POOL_TEST(a_pool_that_runs_out_is_topped_up_with_plain_pages),
        POOL_TEST(a_pool_filled_later_is_used),
        POOL_TEST(a_cgroup_limit_below_the_pool_is_survived),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
