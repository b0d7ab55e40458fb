/* SPDX-License-Identifier: BSD-3-Clause */
/* The promise of SCAN and HSCAN while the table changes under the cursor: what is present from the
 * first call to the last is returned at least once; what never existed is never returned. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/client.h"
#include "support/reply.h"
#include "support/server.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Names: "stay:<i>" from begin to end; "come:<i>" while scanning; "go:<i>" removed while scanning.
 */
enum { STAY = 20000, MOVING = 60000, COME_STEP = 400, SMALL = 40 };

static struct server *server;
static struct client *client;
static unsigned char *seen; /* times each "stay" was returned, up to 255 */

enum target { KEYSPACE, HASH };
enum change { NOTHING, GROWS, SHRINKS, SHRINKS_AND_GROWS, OVERWRITES };

static void append_set(enum target target, const char *prefix, int i, const char *value) {
    char name[32];
    snprintf(name, sizeof(name), "%s:%d", prefix, i);
    if (target == HASH) {
        client_append(client, "HSET", "h", name, value, NULL);
    } else {
        client_append(client, "SET", name, value, NULL);
    }
}

static void append_remove(enum target target, const char *prefix, int i) {
    char name[32];
    snprintf(name, sizeof(name), "%s:%d", prefix, i);
    if (target == HASH) {
        client_append(client, "HDEL", "h", name, NULL);
    } else {
        client_append(client, "DEL", name, NULL);
    }
}

static void take(int count) {
    assert_true(client_flush(client));
    while (count-- > 0) {
        struct reply *r = client_read(client);
        assert_non_null(r);
        assert_false(reply_is_error(r));
        reply_free(r);
    }
}

static void fill(enum target target, const char *prefix, int count) {
    for (int i = 0; i < count; i++) {
        append_set(target, prefix, i, "v");
        if (i % 1000 == 999 || i + 1 == count) {
            take(i % 1000 + 1);
        }
    }
}

/* The changes between two calls; `round` counts them. */
static void change_some(enum target target, enum change change, int round) {
    int begin = round * COME_STEP;
    int count = 0;
    for (int i = begin; i < begin + COME_STEP && i < MOVING; i++) {
        if (change == GROWS || change == SHRINKS_AND_GROWS) {
            append_set(target, "come", i, "a somewhat longer value than the others");
            count++;
        }
        if (change == SHRINKS || change == SHRINKS_AND_GROWS) {
            append_remove(target, "go", i);
            count++;
        }
        if (change == OVERWRITES) {
            append_set(target, "stay", i % STAY, i % 3 ? "w" : "a value of another length");
            count++;
        }
    }
    take(count);
}

static void note_name(const struct reply *name, int stay_count) {
    int i = -1;
    if (strncmp(name->str, "stay:", 5) == 0) {
        i = atoi(name->str + 5);
        assert_in_range(i, 0, stay_count - 1);
        seen[i] = (unsigned char)(seen[i] + (seen[i] < 255));
    } else {
        assert_true(strncmp(name->str, "come:", 5) == 0 || strncmp(name->str, "go:", 3) == 0);
    }
}

/* One whole iteration with changes between its calls; the number of calls. */
static int iterate(enum target target, enum change change, int stay_count, const char *count_arg) {
    char cursor[32] = "0";
    int calls = 0;
    memset(seen, 0, STAY);
    do {
        struct reply *r = target == HASH
                              ? client_cmd(client, "HSCAN", "h", cursor, "COUNT", count_arg, NULL)
                              : client_cmd(client, "SCAN", cursor, "COUNT", count_arg, NULL);
        assert_non_null(r);
        assert_int_equal(r->type, '*');
        assert_int_equal(r->count, 2);
        const struct reply *list = r->elements[1];
        for (size_t i = 0; i < list->count; i += target == HASH ? 2 : 1) {
            note_name(list->elements[i], stay_count);
        }
        snprintf(cursor, sizeof(cursor), "%s", r->elements[0]->str);
        reply_free(r);
        change_some(target, change, calls++);
        assert_true(calls < 1000000); /* an iteration ends */
    } while (strcmp(cursor, "0") != 0);
    return calls;
}

static void scan_while(enum target target, enum change change, const char *name) {
    client_expect(client, "+OK", "FLUSHALL", NULL);
    fill(target, "stay", STAY);
    if (change == SHRINKS || change == SHRINKS_AND_GROWS) {
        fill(target, "go", MOVING);
    }
    int calls = iterate(target, change, STAY, "100");
    int missed = 0;
    int twice = 0;
    for (int i = 0; i < STAY; i++) {
        missed += seen[i] == 0;
        twice += seen[i] > 1;
    }
    print_message("%s %s: %d calls, %d of %d returned again, %d missed\n",
                  target == HASH ? "HSCAN" : "SCAN", name, calls, twice, STAY, missed);
    assert_int_equal(missed, 0);
}

static void scan_returns_all_that_stays(void **state) {
    (void)state;
    static const char *const names[] = {"unchanged", "growing", "shrinking",
                                        "shrinking and growing", "overwriting"};
    for (int change = NOTHING; change <= OVERWRITES; change++) {
        scan_while(KEYSPACE, (enum change)change, names[change]);
    }
}

static void hscan_returns_all_that_stays(void **state) {
    (void)state;
    static const char *const names[] = {"unchanged", "growing", "shrinking",
                                        "shrinking and growing", "overwriting"};
    for (int change = NOTHING; change <= OVERWRITES; change++) {
        scan_while(HASH, (enum change)change, names[change]);
    }
}

/* A packed hash that outgrows its form between two calls. */
static void hscan_survives_the_change_of_form(void **state) {
    (void)state;
    client_expect(client, "+OK", "FLUSHALL", NULL);
    fill(HASH, "stay", SMALL);
    (void)iterate(HASH, GROWS, SMALL, "10");
    for (int i = 0; i < SMALL; i++) {
        assert_int_not_equal(seen[i], 0);
    }
}

/* An unchanging table returns each element exactly once. */
static void nothing_is_returned_twice_without_changes(void **state) {
    (void)state;
    client_expect(client, "+OK", "FLUSHALL", NULL);
    fill(HASH, "stay", STAY);
    static const char *const counts[] = {"1", "10", "1000", "1000000"};
    for (size_t c = 0; c < COUNT(counts); c++) {
        (void)iterate(HASH, NOTHING, STAY, counts[c]);
        for (int i = 0; i < STAY; i++) {
            assert_int_equal(seen[i], 1);
        }
    }
}

/* COUNT bounds the work of a call: no call returns a multiple of what was asked. */
static void a_call_returns_about_what_was_asked(void **state) {
    (void)state;
    client_expect(client, "+OK", "FLUSHALL", NULL);
    fill(KEYSPACE, "stay", STAY);
    char cursor[32] = "0";
    size_t most = 0;
    do {
        struct reply *r = client_cmd(client, "SCAN", cursor, "COUNT", "10", NULL);
        most = r->elements[1]->count > most ? r->elements[1]->count : most;
        snprintf(cursor, sizeof(cursor), "%s", r->elements[0]->str);
        reply_free(r);
    } while (strcmp(cursor, "0") != 0);
    print_message("SCAN COUNT 10: %zu at most\n", most);
    assert_in_range(most, 1, 100);
}

static void match_and_type_filter(void **state) {
    (void)state;
    client_expect(client, "+OK", "FLUSHALL", NULL);
    client_expect(client, "+OK", "MSET", "a1", "x", "a2", "x", "b1", "x", NULL);
    client_expect(client, ":1", "HSET", "a3", "f1", "x", NULL);
    client_expect(client, "[\"0\" [\"a3\"]]", "SCAN", "0", "MATCH", "a*", "COUNT", "1000", "TYPE",
                  "hash", NULL);
    client_expect(client, "[\"0\" [\"b1\"]]", "SCAN", "0", "MATCH", "b?", "COUNT", "1000", NULL);
    client_expect(client, "[\"0\" []]", "SCAN", "0", "TYPE", "zset", "COUNT", "1000", NULL);
    client_expect(client, "[\"0\" [\"f1\" \"x\"]]", "HSCAN", "a3", "0", NULL);
    client_expect(client, "[\"0\" [\"f1\"]]", "HSCAN", "a3", "0", "NOVALUES", NULL);
    client_expect(client, "[\"0\" []]", "HSCAN", "a3", "0", "MATCH", "g*", NULL);
    client_expect(client, "[\"0\" []]", "HSCAN", "nokey", "0", NULL);
}

/* Cursors nobody was given: an answer, whatever it holds, and no harm. */
static void invented_cursors_are_harmless(void **state) {
    (void)state;
    client_expect(client, "+OK", "FLUSHALL", NULL);
    fill(KEYSPACE, "stay", STAY);
    fill(HASH, "stay", STAY);
    static const char *const cursors[] = {"1",
                                          "7",
                                          "4294967295",
                                          "4294967296",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "12297829382473034410"};
    for (size_t i = 0; i < COUNT(cursors); i++) {
        struct reply *r = client_cmd(client, "SCAN", cursors[i], NULL);
        assert_non_null(r);
        assert_int_equal(r->count, 2);
        reply_free(r);
        r = client_cmd(client, "HSCAN", "h", cursors[i], NULL);
        assert_non_null(r);
        assert_int_equal(r->count, 2);
        reply_free(r);
    }
    client_expect(client, "-ERR invalid cursor", "SCAN", "18446744073709551616", NULL);
    client_expect(client, "+PONG", "PING", NULL);
}

/* What SCAN returns of 1000 keys, in the order of the index, as text; the caller frees it. */
static char *order_of_keys(const char *seed) {
    const char *args[] = {"--hash-seed", seed, NULL};
    struct server *s = server_start(SERVER_GOBLIN, args);
    struct client *c = server_connect(s);
    for (int i = 0; i < 1000; i++) {
        char key[32];
        snprintf(key, sizeof(key), "key:%d", i);
        client_expect(c, "+OK", "SET", key, "v", NULL);
    }
    struct reply *r = client_cmd(c, "SCAN", "0", "COUNT", "100000", NULL);
    assert_non_null(r);
    char *text = reply_text(r);
    reply_free(r);
    client_close(c);
    server_stop(s);
    return text;
}

static void a_fixed_seed_repeats_the_order(void **state) {
    (void)state;
    char *first = order_of_keys("7");
    char *again = order_of_keys("7");
    char *drawn = order_of_keys("0");
    assert_string_equal(first, again);
    assert_string_not_equal(first, drawn);
    free(first);
    free(again);
    free(drawn);
}

static int start(void **state) {
    (void)state;
    server = server_start(SERVER_GOBLIN, NULL);
    client = server_connect(server);
    seen = calloc(STAY, 1);
    return seen ? 0 : -1;
}

static int stop(void **state) {
    (void)state;
    free(seen);
    client_close(client);
    server_stop(server);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scan_returns_all_that_stays),
        cmocka_unit_test(hscan_returns_all_that_stays),
        cmocka_unit_test(hscan_survives_the_change_of_form),
        cmocka_unit_test(nothing_is_returned_twice_without_changes),
        cmocka_unit_test(a_call_returns_about_what_was_asked),
        cmocka_unit_test(match_and_type_filter),
        cmocka_unit_test(invented_cursors_are_harmless),
        cmocka_unit_test(a_fixed_seed_repeats_the_order),
    };
    return tests_result(cmocka_run_group_tests(tests, start, stop), COUNT(tests));
}
