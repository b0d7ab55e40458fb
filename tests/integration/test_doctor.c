/* SPDX-License-Identifier: BSD-3-Clause */
/* What the server says of its memory: --check-hugepages before it starts, MEMORY STATS and MEMORY DOCTOR
 * while it runs. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/client.h"
#include "support/hugepages.h"
#include "support/load.h"
#include "support/reply.h"
#include "support/server.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char out[16384];

/* What is tried takes pages from the pool, which other tests count: all hold the same lock. */
static int setup(void **state) {
    (void)state;
    hugepages_setup();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hugepages_teardown();
    return 0;
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

/* ---- MEMORY STATS ----------------------------------------------------------------------------- */

/* Name and value at place i of a map, in either protocol. */
static const char *name_at(const struct reply *map, size_t i) {
    return map->elements[2 * i]->str;
}

static struct reply *value_of(const struct reply *map, const char *name) {
    for (size_t i = 0; 2 * i + 1 < map->count; i++) {
        if (strcmp(name_at(map, i), name) == 0) {
            return map->elements[2 * i + 1];
        }
    }
    fail_msg("no '%s'", name);
    return NULL;
}

static void redis_fields_come_first(void **state) {
    (void)state;
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server");
    }
    struct server *servers[2] = {server_start(SERVER_ORACLE, NULL),
                                 server_start(SERVER_GOBLIN, NULL)};
    for (int proto = 2; proto <= 3; proto++) {
        struct reply *stats[2];
        for (int i = 0; i < 2; i++) {
            struct client *c = server_connect(servers[i]);
            reply_free(client_cmd(c, "HELLO", proto == 2 ? "2" : "3", NULL));
            client_expect(c, "+OK", "SET", "k", "v", "EX", "100", NULL);
            stats[i] = client_cmd(c, "MEMORY", "STATS", NULL);
            client_close(c);
        }
        assert_int_equal(stats[0]->type, stats[1]->type);
        assert_true(stats[1]->count > stats[0]->count);
        for (size_t k = 0; k < stats[0]->count; k++) {
            const struct reply *theirs = stats[0]->elements[k], *ours = stats[1]->elements[k];
            assert_int_equal(theirs->type, ours->type);
            if (k % 2 == 0) {
                assert_string_equal(theirs->str, ours->str);
            }
            assert_int_equal(theirs->count, ours->count); /* of the map of db.0 */
            for (size_t i = 0; i < theirs->count; i += 2) {
                assert_string_equal(theirs->elements[i]->str, ours->elements[i]->str);
            }
        }
        reply_free(stats[0]);
        reply_free(stats[1]);
    }
    server_stop(servers[0]);
    server_stop(servers[1]);
}

static void stats_are_those_of_info(void **state) {
    (void)state;
    const char *args[] = {"--arena-thp", "--index-hugepages", "thp", NULL};
    struct server *s = server_start(SERVER_GOBLIN, args);
    struct load load = {
        .client = server_connect(s), .kind = LOAD_HASH, .value_min_len = 80, .value_max_len = 120};
    load_write(&load, 0, 50000, 0);
    struct client *c = load.client;
    struct reply *stats = client_cmd(c, "MEMORY", "STATS", NULL);
    struct reply *arena = value_of(stats, "arena"), *index = value_of(stats, "index");
    assert_string_equal(value_of(arena, "asked")->str, "thp");
    assert_int_equal(value_of(arena, "bytes")->integer,
                     client_info_number(c, "memory", "arena_bytes"));
    assert_int_equal(value_of(index, "bytes")->integer,
                     client_info_number(c, "memory", "index_bytes"));
    assert_true(value_of(arena, "bytes")->integer > 0);
    assert_int_equal(value_of(arena, "huge.bytes")->integer +
                         value_of(arena, "fallback.bytes")->integer,
                     value_of(arena, "bytes")->integer);
    assert_int_equal(value_of(value_of(arena, "failures"), "pool_empty")->integer, 0);
    assert_int_equal(value_of(stats, "keys.count")->integer, 1);
    long long resident = value_of(stats, "resident.bytes")->integer;
    assert_int_equal(resident, value_of(stats, "vm-rss.bytes")->integer +
                                   value_of(stats, "hugetlb.bytes")->integer);
    assert_int_equal(value_of(stats, "footprint.bytes")->integer,
                     resident + value_of(stats, "page-tables.bytes")->integer);
    assert_int_equal(value_of(stats, "total.allocated")->integer,
                     value_of(stats, "overhead.total")->integer +
                         value_of(stats, "dataset.bytes")->integer);
    reply_free(stats);
    client_close(c);
    server_stop(s);
}

/* ---- MEMORY DOCTOR ---------------------------------------------------------------------------- */

static void doctor(struct client *c) {
    struct reply *r = client_cmd(c, "MEMORY", "DOCTOR", NULL);
    assert_true(r->type == '$' || r->type == '=');
    snprintf(out, sizeof(out), "%s", r->str);
    reply_free(r);
}

static void the_doctor_answers_in_both_protocols(void **state) {
    (void)state;
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    doctor(c);
    assert_non_null(
        strstr(out, "Arenas: on plain pages, as asked.\nIndexes: on plain pages, as asked.\n"));
    reply_free(client_cmd(c, "HELLO", "3", NULL));
    struct reply *r = client_cmd(c, "MEMORY", "DOCTOR", NULL);
    assert_int_equal(r->type, '=');
    reply_free(r);
    client_close(c);
    server_stop(s);
}

/* A hash of some 12 MiB; bytes of it and of its index on plain pages. */
static long long fallen_back(struct server *s) {
    struct load load = {
        .client = server_connect(s), .kind = LOAD_HASH, .value_min_len = 80, .value_max_len = 120};
    load_write(&load, 0, 100000, 0);
    doctor(load.client);
    long long bytes = client_info_number(load.client, "memory", "arena_fallback_bytes") +
                      client_info_number(load.client, "memory", "index_fallback_bytes");
    client_close(load.client);
    return bytes;
}

#define NEED_POOL(pages)                                                                           \
    do {                                                                                           \
        if (!hugepages_set_pool(HUGE_2M, pages) || hugepages_free(HUGE_2M) != (pages)) {           \
            TEST_SKIP("cannot have a pool of exactly %d free huge pages of 2 MiB", (int)(pages));  \
        }                                                                                          \
    } while (0)

static const char *const on_huge_pages[] = {"--arena-hugetlb", "--index-hugepages", "hugetlb",
                                            NULL};

/* The number behind the first `text` of the last report. */
static long long told(const char *text) {
    long long number = -1;
    const char *at = strstr(out, text);
    print_message("%s", out);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(text), "%lld", &number), 1);
    return number;
}

static void what_the_doctor_says_to_type_is_enough(void **state) {
    (void)state;
    NEED_POOL(3);
    struct server *s = server_start(SERVER_GOBLIN, on_huge_pages);
    assert_true(fallen_back(s) > 0);
    server_stop(s);
    long long pages = told("sysctl -w vm.nr_hugepages=");
    NEED_POOL((long)pages);
    s = server_start(SERVER_GOBLIN, on_huge_pages);
    assert_int_equal(fallen_back(s), 0);
    assert_null(strstr(out, "did not get all of it"));
    server_stop(s);
}

/* The limit that the doctor names is the one that holds, and the bytes it tells are enough. */
static void a_control_groups_limit_is_named(void **state) {
    (void)state;
    NEED_POOL(16);
    if (!hugepages_open_cgroup() || !hugepages_limit(false, 2 * HUGE_2M)) {
        TEST_SKIP("cannot have a hugetlb cgroup (v1 or v2)");
    }
    struct server *s = server_start_prepared(SERVER_GOBLIN, on_huge_pages, hugepages_enter_cgroup);
    assert_true(fallen_back(s) > 0);
    server_stop(s);
    assert_non_null(strstr(out, "The control group's limit leaves 0 MiB of 4 MiB."));
    assert_non_null(strstr(out, "/hugetlb.2MB."));
    assert_true(hugepages_limit(false, told("  echo ")));
    s = server_start_prepared(SERVER_GOBLIN, on_huge_pages, hugepages_enter_cgroup);
    assert_int_equal(fallen_back(s), 0);
    server_stop(s);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(bad_arguments_are_told_apart),
        TEST(too_much_is_not_to_be_had),
        TEST(the_status_is_the_answer),
        TEST(a_size_that_no_kernel_has_is_said),
        TEST(redis_fields_come_first),
        TEST(stats_are_those_of_info),
        TEST(the_doctor_answers_in_both_protocols),
        TEST(what_the_doctor_says_to_type_is_enough),
        TEST(a_control_groups_limit_is_named),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
