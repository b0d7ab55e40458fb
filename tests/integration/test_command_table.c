/* SPDX-License-Identifier: BSD-3-Clause */
/* What COMMAND says of each row, held against a redis-server 7.0. Known differences: the rows
 * listed below came or changed with 7.2; we have no key spec "notes"; a container lists the
 * subcommands that exist here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "support/client.h"
#include "support/server.h"

static const char *const newer[] = {"client|setinfo", "client|no-touch", "zrank", "zrevrank"};
/* Not in Redis, or with an argument that Redis does not have. */
static const char *const own[] = {"load", "save"};

static struct server *ours, *oracle;

static bool is_among(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Take the pair of a key out of a map, which RESP2 sends as a flat array. */
static void drop_pair(struct reply *map, const char *key) {
    for (size_t i = 0; i + 1 < map->count; i += 2) {
        if (map->elements[i]->str != NULL && strcmp(map->elements[i]->str, key) == 0) {
            reply_free(map->elements[i]);
            reply_free(map->elements[i + 1]);
            memmove(&map->elements[i], &map->elements[i + 2],
                    (map->count - i - 2) * sizeof map->elements[0]);
            map->count -= 2;
            return;
        }
    }
}

/* One command's INFO without what is known to differ: the ten elements of the array inside. */
static char *info_text(struct client *c, const char *name) {
    struct reply *r = client_cmd(c, "COMMAND", "INFO", name, NULL);
    assert_non_null(r);
    assert_int_equal(r->count, 1);
    struct reply *row = r->elements[0];
    assert_int_equal(row->count, 10);
    for (size_t i = 0; i < row->elements[8]->count; i++) {
        drop_pair(row->elements[8]->elements[i], "notes");
    }
    reply_sort(row->elements[7], 1);
    reply_free(row->elements[9]);
    row->count = 9;
    char *text = reply_text(row);
    reply_free(r);
    return text;
}

static void compare_all(const char *proto) {
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server");
    }
    struct client *a = server_connect(ours), *b = server_connect(oracle);
    reply_free(client_cmd(a, "HELLO", proto, NULL));
    reply_free(client_cmd(b, "HELLO", proto, NULL));
    struct reply *names = client_cmd(a, "COMMAND", "LIST", "FILTERBY", "PATTERN", "*", NULL);
    assert_non_null(names);
    assert_true(names->count > 100);
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->elements[i]->str;
        if (is_among(name, newer, sizeof newer / sizeof newer[0]) ||
            is_among(name, own, sizeof own / sizeof own[0])) {
            continue;
        }
        char *here = info_text(a, name), *there = info_text(b, name);
        assert_string_equal(here, there);
        free(here);
        free(there);
    }
    reply_free(names);
    client_close(a);
    client_close(b);
}

static void info_equals_redis_in_resp2(void **state) {
    (void)state;
    compare_all("2");
}

static void info_equals_redis_in_resp3(void **state) {
    (void)state;
    compare_all("3");
}

static int setup(void **state) {
    (void)state;
    ours = server_start(SERVER_GOBLIN, NULL);
    oracle = server_available(SERVER_ORACLE) ? server_start(SERVER_ORACLE, NULL) : NULL;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    server_stop(ours);
    server_stop(oracle);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_equals_redis_in_resp2),
        cmocka_unit_test(info_equals_redis_in_resp3),
    };
    return tests_result(cmocka_run_group_tests(tests, setup, teardown),
                        sizeof tests / sizeof tests[0]);
}
