/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that go while they wait for a key, in the same turn of the loop in which something comes
 * for them: killed by another, closed by their peer, closed for what they do not read. What comes
 * stays where it was put or goes to the next in line. */
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/scene.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- killed, in one pipeline with what they wait for: the oracle too ---- */

static void id_of(struct client *c, char id[32]) {
    struct reply *r = client_cmd(c, "CLIENT", "ID", NULL);
    snprintf(id, 32, "%lld", (long long)r->integer);
    reply_free(r);
}

static void killed_before_a_list_comes(struct scene *s) {
    static const char *const waits[][7] = {
        {"BLPOP", "k", "0"},
        {"BRPOP", "none", "k", "0"},
        {"BLMOVE", "k", "l", "LEFT", "RIGHT", "0"},
        {"BRPOPLPUSH", "k", "l", "0"},
        {"BLMPOP", "0", "1", "k", "LEFT"},
    };
    for (size_t i = 0; i < COUNT(waits); i++) {
        struct client *c = server_connect(s->server);
        char id[32];
        size_t lens[7];
        int argc = 0;
        for (; argc < 7 && waits[i][argc] != NULL; argc++) {
            lens[argc] = strlen(waits[i][argc]);
        }
        id_of(c, id);
        client_append_argv(c, argc, waits[i], lens);
        assert_true(client_flush(c));
        await_blocked(s->writer, 1);
        client_append(s->writer, "CLIENT", "KILL", "ID", id, NULL);
        client_append(s->writer, "RPUSH", "k", "a", "b", NULL);
        client_append(s->writer, "LRANGE", "k", "0", "-1", NULL);
        client_append(s->writer, "DEL", "k", "l", NULL);
        assert_true(client_flush(s->writer));
        client_expect_next(s->writer, ":1");
        client_expect_next(s->writer, ":2");
        client_expect_next(s->writer, "[\"a\" \"b\"]");
        client_expect_next(s->writer, ":1");
        assert_true(client_wait_closed(c, 5000));
        client_close(c);
    }
}

static void killed_before_a_sorted_set_comes(struct scene *s) {
    WAIT(s, 0, "BZPOPMIN", "k", "0");
    WAIT(s, 1, "BZPOPMAX", "none", "k", "0");
    WAIT(s, 2, "BZMPOP", "0", "1", "k", "MIN");
    await_blocked(s->writer, 3);
    client_append(s->writer, "CLIENT", "KILL", "TYPE", "normal", NULL);
    client_append(s->writer, "ZADD", "k", "1", "a", "2", "b", NULL);
    client_append(s->writer, "ZRANGE", "k", "0", "-1", NULL);
    assert_true(client_flush(s->writer));
    client_expect_next(s->writer, ":4"); /* the fourth waiter's connection was idle */
    client_expect_next(s->writer, ":2");
    client_expect_next(s->writer, "[\"a\" \"b\"]");
}

/* The first and the third in line are killed: the second and the fourth are served. */
static void those_behind_a_killed_one_are_served(struct scene *s) {
    char first[32], third[32];
    id_of(s->waiters[0], first);
    id_of(s->waiters[2], third);
    for (int i = 0; i < SCENE_WAITERS; i++) {
        WAIT(s, i, "BLPOP", "k", "0");
        await_blocked(s->writer, i + 1);
    }
    client_append(s->writer, "CLIENT", "KILL", "ID", first, NULL);
    client_append(s->writer, "CLIENT", "KILL", "ID", third, NULL);
    client_append(s->writer, "RPUSH", "k", "a", "b", "c", NULL);
    client_append(s->writer, "LRANGE", "k", "0", "-1", NULL);
    assert_true(client_flush(s->writer));
    client_expect_next(s->writer, ":1");
    client_expect_next(s->writer, ":1");
    client_expect_next(s->writer, ":3");
    client_expect_next(s->writer, "[\"c\"]");
    client_expect_next(s->waiters[1], "[\"k\" \"a\"]");
    client_expect_next(s->waiters[3], "[\"k\" \"b\"]");
}

/* Who was killed is nobody any more to the commands behind. */
static void a_killed_one_is_gone_at_once(struct scene *s) {
    char id[32];
    id_of(s->waiters[0], id);
    WAIT(s, 0, "BLPOP", "k", "0");
    await_blocked(s->writer, 1);
    client_append(s->writer, "CLIENT", "KILL", "ID", id, NULL);
    client_append(s->writer, "CLIENT", "UNBLOCK", id, NULL);
    client_append(s->writer, "CLIENT", "KILL", "ID", id, NULL);
    client_append(s->writer, "CLIENT", "LIST", "ID", id, NULL);
    assert_true(client_flush(s->writer));
    client_expect_next(s->writer, ":1");
    client_expect_next(s->writer, ":0");
    client_expect_next(s->writer, ":0");
    client_expect_next(s->writer, "\"\"");
}

static const struct scenario scenarios[] = {
    SCENARIO(killed_before_a_list_comes),
    SCENARIO(killed_before_a_sorted_set_comes),
    SCENARIO(those_behind_a_killed_one_are_served),
    SCENARIO(a_killed_one_is_gone_at_once),
};

/* ---- closed otherwise: two clients' input is made to meet in one turn by a sleep ---- */

static void sleep_begins(struct scene *s) {
    WAIT(s, 3, "DEBUG", "SLEEP", "0.2");
    poll(NULL, 0, 50);
}

static void push_behind(struct scene *s) {
    client_append(s->writer, "RPUSH", "k", "a", NULL);
    assert_true(client_flush(s->writer));
    client_expect_next(s->writer, ":1");
    client_expect(s->writer, "[\"a\"]", "LRANGE", "k", "0", "-1", NULL);
    client_expect_next(s->waiters[3], "+OK");
}

static void closed_by_the_peer(struct scene *s) {
    struct client *c = server_connect(s->server);
    client_append(c, "BLPOP", "k", "0", NULL);
    client_append(c, "PING", NULL); /* deferred, and never answered */
    assert_true(client_flush(c));
    await_blocked(s->writer, 1);
    sleep_begins(s);
    client_close(c);
    push_behind(s);
}

/* Input that is no protocol ends the connection, though earlier replies of it are still unread. */
static void closed_for_its_input(struct scene *s) {
    WAIT(s, 0, "BLPOP", "k", "0");
    await_blocked(s->writer, 1);
    sleep_begins(s);
    client_append_raw(s->waiters[0], "*1\r\n!oops\r\n", 11);
    assert_true(client_flush(s->waiters[0]));
    push_behind(s);
}

/* Closed for its output, it comes to a command that waits only behind that. */
static void closed_for_its_output(struct scene *s) {
    size_t len = 8 << 20;
    char *big = calloc(1, len);
    const char *const set[] = {"SET", "big", big};
    const size_t lens[] = {3, 3, len};
    reply_free(client_cmd_argv(s->writer, 3, set, lens));
    free(big);
    client_expect(s->writer, "+OK", "CONFIG", "SET", "client-output-buffer-limit",
                  "normal 65536 0 0", NULL);
    sleep_begins(s);
    client_append(s->waiters[0], "GET", "big", NULL);
    client_append(s->waiters[0], "BLPOP", "k", "0", NULL);
    client_append(s->waiters[0], "SET", "behind", "v", NULL);
    assert_true(client_flush(s->waiters[0]));
    push_behind(s);
    client_expect(s->writer, ":0", "EXISTS", "behind", NULL);
}

static const struct scenario closings[] = {
    SCENARIO(closed_by_the_peer),
    SCENARIO(closed_for_its_input),
    SCENARIO(closed_for_its_output),
};

/* ---- running ---- */

static void nothing_is_lost_to_those_who_leave(void **state) {
    (void)state;
    scenes_play(SERVER_GOBLIN, scenarios, COUNT(scenarios));
}

static void the_oracle_loses_nothing_either(void **state) {
    (void)state;
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server to compare with");
    }
    scenes_play(SERVER_ORACLE, scenarios, COUNT(scenarios));
}

static void nothing_is_lost_to_those_who_are_closed(void **state) {
    (void)state;
    scenes_play(SERVER_GOBLIN, closings, COUNT(closings));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_to_those_who_leave),
        cmocka_unit_test(the_oracle_loses_nothing_either),
        cmocka_unit_test(nothing_is_lost_to_those_who_are_closed),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
