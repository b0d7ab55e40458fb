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
#include "support/load.h"
#include "support/reply.h"
#include "support/server.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"
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
    assert_int_equal(value_of(arena, "failures")->count, 12);
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

static long read_pool(const char *name) {
    char path[128];
    long n = -1;
    snprintf(path, sizeof(path), POOL "%s", name);
    FILE *f = fopen(path, "r");
    if (f != NULL) {
        if (fscanf(f, "%ld", &n) != 1) {
            n = -1;
        }
        fclose(f);
    }
    return n;
}

static bool set_pool(long pages) {
    FILE *f = fopen(POOL "nr_hugepages", "w");
    bool good = f != NULL && fprintf(f, "%ld\n", pages) > 0;
    good = f != NULL && fclose(f) == 0 && good;
    return good && read_pool("nr_hugepages") == pages;
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

static void what_the_doctor_says_to_type_is_enough(void **state) {
    (void)state;
    const char *args[] = {"--arena-hugetlb", "--index-hugepages", "hugetlb", NULL};
    long before = read_pool("nr_hugepages"), told = 0;
    if (!set_pool(3) || read_pool("free_hugepages") != 3) {
        (void)(before >= 0 && set_pool(before));
        TEST_SKIP("cannot have a pool of exactly 3 free huge pages of 2 MiB");
    }
    struct server *s = server_start(SERVER_GOBLIN, args);
    long long fallen = fallen_back(s);
    server_stop(s);
    const char *line = strstr(out, "sysctl -w vm.nr_hugepages=");
    print_message("%s", out);
    bool grown =
        line != NULL && sscanf(line, "sysctl -w vm.nr_hugepages=%ld", &told) == 1 && set_pool(told);
    long long then = -1;
    if (grown) {
        s = server_start(SERVER_GOBLIN, args);
        then = fallen_back(s);
        server_stop(s);
    }
    assert_true(set_pool(before));
    assert_true(fallen > 0);
    assert_true(told > 3);
    assert_true(grown);
    assert_int_equal(then, 0);
    assert_null(strstr(out, "did not get all of it"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_told_apart),
        cmocka_unit_test(too_much_is_not_to_be_had),
        cmocka_unit_test(the_status_is_the_answer),
        cmocka_unit_test(a_size_that_no_kernel_has_is_said),
        cmocka_unit_test(redis_fields_come_first),
        cmocka_unit_test(stats_are_those_of_info),
        cmocka_unit_test(the_doctor_answers_in_both_protocols),
        cmocka_unit_test(what_the_doctor_says_to_type_is_enough),
    };
    return tests_result(cmocka_run_group_tests(tests, hold_pool, release_pool), COUNT(tests));
}
