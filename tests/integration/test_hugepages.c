/* SPDX-License-Identifier: BSD-3-Clause */
/* Huge pages for arenas and for indexes on every kind of machine: no pool, a full one, one that
 * runs out under load, one that appears later, limits that forbid what the pool has, transparent
 * ones switched off. In each the server keeps running, says why once in its log, goes back to huge
 * pages when they are to be had, reads back what was written, and INFO agrees with the kernel.
 *
 * The tests change the kernel's settings and put them back (support/hugepages.h); they need root
 * and are skipped with the reason where the machine does not allow it or the pool is in use by
 * somebody else. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/client.h"
#include "support/hugepages.h"
#include "support/load.h"
#include "support/server.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { POOL_PAGES = 64, RECOVERY_TRIES = 200, RECOVERY_STEP_US = 100 * 1000 };

/* What is asked to be on huge pages, and entries that fill some 30 MiB of an arena, or 3 MiB of an
 * index. */
struct arm {
    const char *name; /* as in INFO and in the log */
    const char *hugetlb[3], *thp[3];
    uint32_t value_min_len, value_max_len;
    uint64_t entries;
    long scarce_pages; /* a pool that the entries exhaust */
};

static const struct arm arena_arm = {.name = "arena",
                                     .hugetlb = {"--arena-hugetlb", NULL},
                                     .thp = {"--arena-thp", NULL},
                                     .value_min_len = 80,
                                     .value_max_len = 120,
                                     .entries = 250000,
                                     .scarce_pages = 8};

#ifndef GC_SANITIZE /* each segment of an index is an allocation of its own there */
static const struct arm index_arm = {.name = "index",
                                     .hugetlb = {"--index-hugepages", "hugetlb", NULL},
                                     .thp = {"--index-hugepages", "thp", NULL},
                                     .value_min_len = 4,
                                     .value_max_len = 8,
                                     .entries = 500000,
                                     .scarce_pages = 1};
#endif

static const struct arm *arm;
static struct server *server;
static struct load load;
static uint64_t written;

/* ---- before and after ---- */

static int prepare_test(void **state) {
    arm = *state;
    hugepages_setup();
    return 0;
}

static int clean_up(void **state) {
    (void)state;
    client_close(load.client);
    load.client = NULL;
    server_kill(server); /* only after a failed test: a passed one has stopped it */
    server = NULL;
    hugepages_teardown();
    return 0;
}

/* A pool of 2 MiB pages, all of them free. */
static void need_pool(long pages) {
    if (!hugepages_set_pool(HUGE_2M, pages) || hugepages_free(HUGE_2M) != pages) {
        TEST_SKIP("cannot have a pool of exactly %ld free huge pages (root needed, memory in one "
                  "piece, no other user)",
                  pages);
    }
}

static void need_thp(const char *mode) {
    if (!hugepages_set_thp(mode)) {
        TEST_SKIP("cannot set transparent huge pages to '%s' here", mode);
    }
}

/* ---- the server's side ---- */

static void start(const char *const *args, bool (*prepare)(void)) {
    server = server_start_prepared(SERVER_GOBLIN, args, prepare);
    load = (struct load){.client = server_connect(server),
                         .kind = LOAD_HASH,
                         .value_min_len = arm->value_min_len,
                         .value_max_len = arm->value_max_len};
    written = 0;
}

static void write_more(uint64_t entries) {
    load_write(&load, written, written + entries, 0);
    written += entries;
}

/* INFO's number of this arm: its name and the rest of the field's. */
static long long info(const char *field) {
    char full[64];
    snprintf(full, sizeof(full), "%s_%s", arm->name, field);
    long long n = client_info_number(load.client, "memory", full);
    assert_true(n >= 0);
    return n;
}

/* What this arm has on huge pages, by INFO, after comparing that with the kernel's account: an
 * index's blocks share huge pages. */
static long long huge_bytes(void) {
    long long counted = info("huge_bytes");
    long long mapped = server_status_bytes(server, "HugetlbPages");
    assert_int_equal(client_info_number(load.client, "memory", "hugetlb_pages_bytes"), mapped);
    if (arm == &arena_arm) {
        assert_int_equal(counted, mapped);
    } else {
        assert_true(counted <= mapped && (counted == 0) == (mapped == 0));
    }
    return counted;
}

static int log_lines(const char *part, const char *other_part) {
    char *log = server_log(server);
    int count = 0;
    char *save = NULL;
    for (char *line = strtok_r(log, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        count += strstr(line, part) && strstr(line, other_part);
    }
    free(log);
    return count;
}

/* Something fell back: INFO says how much and why, the log says why, in one line. */
static void expect_fallback(const char *reason) {
    char field[64], text[256] = "";
    snprintf(field, sizeof(field), "%s_fallback_reason", arm->name);
    assert_true(client_info(load.client, "memory", field, text, sizeof(text)));
    print_message("huge %lld KiB, fallen back %lld KiB, reason \"%s\"\n", info("huge_bytes") / 1024,
                  info("fallback_bytes") / 1024, text);
    assert_true(info("fallback_bytes") > 0);
    assert_non_null(strstr(text, reason));
    assert_int_equal(log_lines(arm->name, reason), 1);
}

/* More on huge pages than could be until now, after up to 20 s of growing: the retry may back off,
 * not give up. */
static void expect_recovery(long long pages_before) {
    long long before = pages_before * HUGE_2M;
    for (int i = 0; i < RECOVERY_TRIES && info("huge_bytes") <= before; i++) {
        write_more(arm->entries / 20);
        usleep(RECOVERY_STEP_US);
    }
    assert_true(info("huge_bytes") > before);
    assert_int_equal(log_lines(arm->name, "are to be had again"), 1);
    print_message("recovered: huge %lld KiB\n", info("huge_bytes") / 1024);
}

static void finish(void) {
    assert_true(server_alive(server));
    assert_int_equal(load.errors, 0);
    assert_int_equal(load_verify(&load, 0, written, 0, 0), 0);
    client_close(load.client);
    load.client = NULL;
    struct server *s = server;
    server = NULL;
    server_stop(s);
}

/* ---- the pool ---- */

static void without_a_pool_it_runs_on_plain_pages(void **state) {
    (void)state;
    need_pool(0);
    start(arm->hugetlb, NULL);
    write_more(arm->entries);
    assert_int_equal(huge_bytes(), 0);
    expect_fallback("pool is empty");
    finish();
}

static void with_a_pool_it_is_on_huge_pages(void **state) {
    (void)state;
    need_pool(POOL_PAGES);
    start(arm->hugetlb, NULL);
    write_more(arm->entries);
    long long huge = huge_bytes();
    assert_true(huge >= 3 * HUGE_2M / 2);
    assert_int_equal(huge, info("bytes"));
    assert_int_equal(info("fallback_bytes"), 0);
    assert_int_equal(client_info_number(load.client, "memory", "hugetlb_pool_total"), POOL_PAGES);
    assert_int_equal(client_info_number(load.client, "memory", "hugetlb_pool_free"),
                     POOL_PAGES - server_status_bytes(server, "HugetlbPages") / HUGE_2M);
    /* Churn on huge pages. */
    load_write(&load, 0, written, 1);
    load_remove(&load, 0, written, 2);
    load_write(&load, 0, written, 0);
    (void)huge_bytes();
    assert_int_equal(log_lines(arm->name, "falling back"), 0);
    finish();
    assert_int_equal(hugepages_free(HUGE_2M), POOL_PAGES);
}

static void flushing_returns_the_pages(void **state) {
    (void)state;
    need_pool(POOL_PAGES);
    start(arm->hugetlb, NULL);
    write_more(arm->entries);
    long long huge = huge_bytes();
    client_expect(load.client, "+OK", "FLUSHALL", NULL);
    for (int i = 0; i < 100 && huge_bytes() > huge / 4; i++) {
        usleep(100 * 1000);
    }
    assert_true(huge_bytes() <= huge / 4);
    written = 0;
    finish();
}

static void a_pool_that_runs_out_is_topped_up_and_used_again_when_refilled(void **state) {
    (void)state;
    need_pool(arm->scarce_pages);
    start(arm->hugetlb, NULL);
    write_more(arm->entries);
    long long huge = huge_bytes();
    assert_true(huge > 0 && huge <= arm->scarce_pages * HUGE_2M);
    expect_fallback("pool is empty");
    if (!hugepages_set_pool(HUGE_2M, POOL_PAGES)) {
        TEST_SKIP("cannot refill the pool");
    }
    expect_recovery(arm->scarce_pages);
    (void)huge_bytes();
    finish();
}

static void a_pool_filled_later_is_used(void **state) {
    (void)state;
    need_pool(0);
    start(arm->hugetlb, NULL);
    write_more(arm->entries / 4);
    assert_int_equal(huge_bytes(), 0);
    need_pool(POOL_PAGES);
    expect_recovery(0);
    assert_true(huge_bytes() > 0);
    finish();
}

/* The kernel adds to an empty pool what it may overcommit. */
static void an_empty_pool_that_may_grow_is_used(void **state) {
    (void)state;
    need_pool(0);
    if (!hugepages_set_overcommit(POOL_PAGES)) {
        TEST_SKIP("cannot set nr_overcommit_hugepages here");
    }
    start(arm->hugetlb, NULL);
    write_more(arm->entries);
    assert_int_equal(huge_bytes(), info("bytes"));
    assert_int_equal(log_lines("ool is empty", ""), 0);
    finish();
}

/* ---- limits of the process ---- */

/* mmap succeeds and the pool has pages, but the cgroup does not allow them: touching one would be
 * SIGBUS. */
static void a_cgroup_limit_below_the_pool_is_survived_and_its_end_noticed(void **state) {
    (void)state;
    need_pool(POOL_PAGES);
    if (!hugepages_open_cgroup() || !hugepages_limit(false, HUGE_2M)) {
        TEST_SKIP("cannot have a hugetlb cgroup (v1 or v2)");
    }
    start(arm->hugetlb, hugepages_enter_cgroup);
    write_more(arm->entries);
    assert_true(huge_bytes() <= HUGE_2M);
    expect_fallback("cgroup limit");
    assert_true(hugepages_limit(false, POOL_PAGES * HUGE_2M));
    expect_recovery(1);
    finish();
}

/* Here it is mmap that fails, with the code of an empty pool. */
static void a_cgroup_limit_on_reservations_is_not_taken_for_an_empty_pool(void **state) {
    (void)state;
    need_pool(POOL_PAGES);
    if (!hugepages_open_cgroup() || !hugepages_limit(true, HUGE_2M)) {
        TEST_SKIP("cannot limit the reservations of a hugetlb cgroup");
    }
    start(arm->hugetlb, hugepages_enter_cgroup);
    write_more(arm->entries);
    assert_true(huge_bytes() <= HUGE_2M);
    expect_fallback("has free pages");
    assert_true(hugepages_limit(true, POOL_PAGES * HUGE_2M));
    expect_recovery(1);
    finish();
}

/* No right to anything, and no memory to lock: neither is asked for. */
static bool give_up_rights(void) {
    struct rlimit none = {0, 0};
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap) != 0) {
            return false;
        }
    }
    return setrlimit(RLIMIT_MEMLOCK, &none) == 0;
}

static void neither_lockable_memory_nor_rights_are_needed(void **state) {
    (void)state;
    need_pool(POOL_PAGES);
    start(arm->hugetlb, give_up_rights);
    write_more(arm->entries);
    assert_int_equal(huge_bytes(), info("bytes"));
    finish();
}

/* set_mempolicy as numactl --membind=0 does it; kept across exec. */
static bool bind_to_node_0(void) {
    const int mpol_bind = 2;
    unsigned long nodes = 1;
    return syscall(SYS_set_mempolicy, mpol_bind, &nodes, sizeof(nodes) * 8) == 0;
}

static void a_numa_policy_is_obeyed(void **state) {
    (void)state;
    need_pool(POOL_PAGES);
    if (access("/sys/devices/system/node/node0", F_OK) != 0) {
        TEST_SKIP("a kernel without NUMA");
    }
    start(arm->hugetlb, bind_to_node_0);
    write_more(arm->entries);
    if (access("/sys/devices/system/node/node1", F_OK) != 0) {
        assert_int_equal(huge_bytes(), info("bytes")); /* all of the pool is there */
    } else if (info("fallback_bytes") > 0) {
        expect_fallback("NUMA policy");
    }
    finish();
}

/* ---- transparent huge pages ---- */

static void transparent_pages_switched_off_are_told_and_used_when_back_on(void **state) {
    (void)state;
    need_thp("never");
    start(arm->thp, NULL);
    write_more(arm->entries);
    assert_int_equal(info("huge_bytes"), 0);
    expect_fallback("'never'");
    need_thp("madvise");
    expect_recovery(0);
    assert_true(client_info_number(load.client, "memory", "anon_huge_pages_bytes") > 0);
    finish();
}

/* Whoever wants to compare needs plain pages to be plain. */
static void plain_stays_plain_where_transparent_pages_come_unasked(void **state) {
    (void)state;
#ifdef GC_SANITIZE
    TEST_SKIP("a sanitizer's heap takes transparent huge pages as they come");
#endif
    need_thp("always");
    start(NULL, NULL);
    write_more(arm->entries);
    assert_int_equal(client_info_number(load.client, "memory", "anon_huge_pages_bytes"), 0);
    finish();
}

/* ---- pages of 1 GiB ---- */

static const char *const args_1g[] = {"--arena-hugetlb", "--arena-hugetlb-size", "1g", NULL};

static void without_a_1g_page_it_runs_on_plain_pages(void **state) {
    (void)state;
    need_pool(POOL_PAGES); /* of the other size: not touched */
    if (hugepages_free(HUGE_1G) < 0 || !hugepages_set_pool(HUGE_1G, 0)) {
        TEST_SKIP("no huge pages of 1 GiB on this machine, or some in use");
    }
    start(args_1g, NULL);
    write_more(arm->entries);
    assert_int_equal(huge_bytes(), 0);
    assert_int_equal(hugepages_free(HUGE_2M), POOL_PAGES);
    expect_fallback("pool is empty");
    finish();
}

static void a_1g_page_is_carved_and_goes_back_whole(void **state) {
    (void)state;
    if (!hugepages_set_pool(HUGE_1G, 1) || hugepages_free(HUGE_1G) != 1) {
        TEST_SKIP("cannot have one free huge page of 1 GiB");
    }
    start(args_1g, NULL);
    write_more(arm->entries);
    assert_true(info("huge_bytes") > 0 && info("huge_bytes") % HUGE_2M == 0);
    assert_int_equal(info("huge_bytes"), info("bytes"));
    assert_int_equal(server_status_bytes(server, "HugetlbPages"), HUGE_1G);
    assert_int_equal(hugepages_free(HUGE_1G), 0);
    assert_int_equal(load_verify(&load, 0, written, 0, 0), 0);
    client_expect(load.client, "+OK", "FLUSHALL", NULL);
    for (int i = 0; i < 100 && hugepages_free(HUGE_1G) == 0; i++) {
        usleep(50 * 1000);
    }
    assert_int_equal(hugepages_free(HUGE_1G), 1);
    written = 0;
    write_more(arm->entries / 4);
    assert_int_equal(info("fallback_bytes"), 0);
    finish();
}

/* ---- fork ---- */

static void bgsave_is_refused_on_hugetlb_pages(void **state) {
    (void)state;
    need_pool(POOL_PAGES);
    start(arm->hugetlb, NULL);
    write_more(arm->entries / 4);
    struct reply *r = client_cmd(load.client, "BGSAVE", NULL);
    assert_true(reply_is_error(r));
    assert_non_null(strstr(r->str, arm->hugetlb[0]));
    reply_free(r);
    client_expect(load.client, "+OK", "SAVE", NULL);
    finish();
}

static void bgsave_is_allowed_on_transparent_pages(void **state) {
    (void)state;
    need_thp("madvise");
    start(arm->thp, NULL);
    write_more(arm->entries);
    client_expect(load.client, "+Background saving started", "BGSAVE", NULL);
    load_write(&load, 0, written, 1); /* each write may split or copy a huge page */
    load_write(&load, 0, written, 0);
    for (int i = 0; i < 600; i++) {
        if (client_info_number(load.client, "persistence", "rdb_bgsave_in_progress") == 0) {
            break;
        }
        usleep(50 * 1000);
    }
    char status[16] = "";
    assert_true(
        client_info(load.client, "persistence", "rdb_last_bgsave_status", status, sizeof(status)));
    assert_string_equal(status, "ok");
    finish();
}

int main(void) {
#define ON_ARENA(f)                                                                                \
    { "arena: " #f, f, prepare_test, clean_up, (void *)&arena_arm }
#ifdef GC_SANITIZE
#define ON_BOTH(f) ON_ARENA(f)
#else
#define ON_BOTH(f)                                                                                 \
    ON_ARENA(f), {                                                                                 \
        "index: " #f, f, prepare_test, clean_up, (void *)&index_arm                                \
    }
#endif
    const struct CMUnitTest tests[] = {
        ON_BOTH(without_a_pool_it_runs_on_plain_pages),
        ON_BOTH(with_a_pool_it_is_on_huge_pages),
        ON_BOTH(flushing_returns_the_pages),
        ON_BOTH(a_pool_that_runs_out_is_topped_up_and_used_again_when_refilled),
        ON_BOTH(a_pool_filled_later_is_used),
        ON_BOTH(an_empty_pool_that_may_grow_is_used),
        ON_BOTH(a_cgroup_limit_below_the_pool_is_survived_and_its_end_noticed),
        ON_BOTH(a_cgroup_limit_on_reservations_is_not_taken_for_an_empty_pool),
        ON_BOTH(neither_lockable_memory_nor_rights_are_needed),
        ON_BOTH(a_numa_policy_is_obeyed),
        ON_BOTH(transparent_pages_switched_off_are_told_and_used_when_back_on),
        ON_BOTH(plain_stays_plain_where_transparent_pages_come_unasked),
        ON_ARENA(without_a_1g_page_it_runs_on_plain_pages),
        ON_ARENA(a_1g_page_is_carved_and_goes_back_whole),
        ON_BOTH(bgsave_is_refused_on_hugetlb_pages),
        ON_BOTH(bgsave_is_allowed_on_transparent_pages),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
