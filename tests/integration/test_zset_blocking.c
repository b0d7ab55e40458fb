/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that wait for a sorted set: in turn, with time-outs, woken by every command that can give
 * a key its members, and gone while they wait. Each scenario runs against the oracle too. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/scene.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- scenarios ---- */

static void served_when_another_adds(struct scene *s) {
    WAIT(s, 0, "BZPOPMIN", "k", "0");
    await_blocked(s->writer, 1);
    expect_silence(s->waiters[0]);
    client_expect(s->writer, ":3", "ZADD", "k", "2", "b", "1", "a", "3", "c", NULL);
    client_expect_next(s->waiters[0], "[\"k\" \"a\" \"1\"]");
    WAIT(s, 0, "BZPOPMAX", "none", "k", "0");
    client_expect_next(s->waiters[0], "[\"k\" \"c\" \"3\"]");
    WAIT(s, 0, "BZPOPMAX", "k", "0");
    client_expect_next(s->waiters[0], "[\"k\" \"b\" \"2\"]");
    client_expect(s->writer, ":0", "EXISTS", "k", NULL);
    await_blocked(s->writer, 0);
}

static void served_in_turn(struct scene *s) {
    for (int i = 0; i < SCENE_WAITERS; i++) {
        WAIT(s, i, i % 2 ? "BZPOPMAX" : "BZPOPMIN", "k", "0");
        await_blocked(s->writer, i + 1);
    }
    client_expect(s->writer, ":3", "ZADD", "k", "1", "a", "2", "b", "3", "c", NULL);
    client_expect_next(s->waiters[0], "[\"k\" \"a\" \"1\"]");
    client_expect_next(s->waiters[1], "[\"k\" \"c\" \"3\"]");
    client_expect_next(s->waiters[2], "[\"k\" \"b\" \"2\"]");
    expect_silence(s->waiters[3]);
    client_expect(s->writer, ":0", "EXISTS", "k", NULL);
    /* who comes back stands behind who is still waiting */
    WAIT(s, 0, "BZPOPMIN", "k", "0");
    await_blocked(s->writer, 2);
    client_expect(s->writer, ":1", "ZADD", "k", "4", "d", NULL);
    client_expect_next(s->waiters[3], "[\"k\" \"d\" \"4\"]");
    expect_silence(s->waiters[0]);
    client_expect(s->writer, ":1", "ZADD", "k", "5", "e", NULL);
    client_expect_next(s->waiters[0], "[\"k\" \"e\" \"5\"]");
}

static void waits_for_several_keys(struct scene *s) {
    WAIT(s, 0, "BZPOPMIN", "a", "b", "c", "b", "0");
    WAIT(s, 1, "BZMPOP", "0", "2", "c", "d", "MAX", "COUNT", "2");
    await_blocked(s->writer, 2);
    client_expect(s->writer, ":3", "ZADD", "d", "1", "x", "2", "y", "3", "z", NULL);
    client_expect_next(s->waiters[1], "[\"d\" [[\"z\" \"3\"] [\"y\" \"2\"]]]");
    client_expect(s->writer, "[\"x\"]", "ZRANGE", "d", "0", "-1", NULL);
    client_expect(s->writer, ":1", "ZADD", "b", "1", "x", NULL);
    client_expect_next(s->waiters[0], "[\"b\" \"x\" \"1\"]");
    client_expect(s->writer, ":1", "ZADD", "b", "1", "x", NULL);
    client_expect(s->writer, ":1", "ZADD", "a", "1", "x", NULL);
    client_expect(s->writer, ":2", "EXISTS", "a", "b", NULL);
}

static void time_runs_out(struct scene *s) {
    reply_free(client_cmd(s->waiters[2], "HELLO", "3", NULL));
    int64_t start = scene_now_ms();
    WAIT(s, 0, "BZPOPMIN", "k", "0.2");
    WAIT(s, 1, "BZMPOP", "0.1", "1", "k", "MIN");
    WAIT(s, 2, "BZPOPMAX", "k", "0.15");
    client_expect_next(s->waiters[1], "nil*");
    client_expect_next(s->waiters[2], "null");
    client_expect_next(s->waiters[0], "nil*");
    assert_true(scene_now_ms() - start >= 199);
    await_blocked(s->writer, 0);
    client_expect(s->writer, ":1", "ZADD", "k", "1", "a", NULL);
    client_expect(s->writer, ":1", "ZCARD", "k", NULL);
}

static void unblocked_by_another(struct scene *s) {
    char id[2][32];
    for (int i = 0; i < 2; i++) {
        struct reply *r = client_cmd(s->waiters[i], "CLIENT", "ID", NULL);
        assert_true(r && r->type == ':');
        snprintf(id[i], sizeof(id[i]), "%lld", (long long)r->integer);
        reply_free(r);
        client_expect(s->writer, ":0", "CLIENT", "UNBLOCK", id[i], NULL);
        WAIT(s, i, "BZPOPMIN", "k", "0");
    }
    await_blocked(s->writer, 2);
    client_expect(s->writer, ":1", "CLIENT", "UNBLOCK", id[0], NULL);
    client_expect_next(s->waiters[0], "nil*");
    client_expect(s->writer, ":1", "CLIENT", "UNBLOCK", id[1], "ERROR", NULL);
    client_expect_next(s->waiters[1], "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    client_expect(s->writer, ":0", "CLIENT", "UNBLOCK", id[1], "TIMEOUT", NULL);
    client_expect(s->waiters[1], "+PONG", "PING", NULL);
    await_blocked(s->writer, 0);
}

static void another_type_does_not_serve(struct scene *s) {
    WAIT(s, 0, "BZPOPMIN", "k", "l", "0");
    await_blocked(s->writer, 1);
    client_expect(s->writer, "+OK", "SET", "k", "v", NULL);
    client_expect(s->writer, ":1", "HSET", "l", "f", "v", NULL);
    expect_silence(s->waiters[0]);
    client_expect(s->writer, ":2", "DEL", "k", "l", NULL);
    client_expect(s->writer, ":1", "ZADD", "l", "1", "a", NULL);
    client_expect_next(s->waiters[0], "[\"l\" \"a\" \"1\"]");
}

static void a_client_leaves_while_it_waits(struct scene *s) {
    WAIT(s, 0, "BZPOPMIN", "k", "0");
    await_blocked(s->writer, 1);
    WAIT(s, 1, "BZPOPMIN", "k", "0");
    await_blocked(s->writer, 2);
    client_close(s->waiters[0]);
    s->waiters[0] = NULL;
    await_blocked(s->writer, 1);
    client_expect(s->writer, ":2", "ZADD", "k", "1", "a", "2", "b", NULL);
    client_expect_next(s->waiters[1], "[\"k\" \"a\" \"1\"]");
    client_expect(s->writer, "[\"b\"]", "ZRANGE", "k", "0", "-1", NULL);
}

/* What a client sends behind the command that waits is answered after it; and within one batch of
 * another client a waiter is served between two commands. */
static void served_in_the_middle_of_a_batch(struct scene *s) {
    client_append(s->waiters[0], "BZPOPMIN", "k", "0", NULL);
    client_append(s->waiters[0], "ZCARD", "k", NULL);
    client_append(s->waiters[0], "BZPOPMAX", "k", "0", NULL);
    client_append(s->waiters[0], "ECHO", "end", NULL);
    assert_true(client_flush(s->waiters[0]));
    await_blocked(s->writer, 1);
    client_append(s->writer, "ZADD", "k", "5", "a", NULL);
    client_append(s->writer, "EXISTS", "k", NULL);
    client_append(s->writer, "ZADD", "k", "1", "b", "2", "c", NULL);
    client_append(s->writer, "PING", NULL);
    assert_true(client_flush(s->writer));
    client_expect_next(s->writer, ":1");
    client_expect_next(s->writer, ":0");
    client_expect_next(s->writer, ":2");
    client_expect_next(s->writer, "+PONG");
    client_expect_next(s->waiters[0], "[\"k\" \"a\" \"5\"]");
    struct reply *card = client_read(s->waiters[0]); /* before or after the writer's second ZADD */
    assert_true(card && card->type == ':' && (card->integer == 0 || card->integer == 2));
    reply_free(card);
    client_expect_next(s->waiters[0], "[\"k\" \"c\" \"2\"]");
    client_expect_next(s->waiters[0], "\"end\"");
    client_expect(s->writer, "[\"b\"]", "ZRANGE", "k", "0", "-1", NULL);
}

/* Both ends of it in one pipeline of one client. */
static void never_waits_for_itself(struct scene *s) {
    client_append(s->writer, "ZADD", "k", "1", "a", NULL);
    client_append(s->writer, "BZPOPMIN", "k", "0", NULL);
    client_append(s->writer, "BZPOPMIN", "k", "0.05", NULL);
    client_append(s->writer, "ZADD", "k", "1", "b", NULL);
    client_append(s->writer, "BZMPOP", "0", "1", "k", "MIN", NULL);
    assert_true(client_flush(s->writer));
    client_expect_next(s->writer, ":1");
    client_expect_next(s->writer, "[\"k\" \"a\" \"1\"]");
    client_expect_next(s->writer, "nil*");
    client_expect_next(s->writer, ":1");
    client_expect_next(s->writer, "[\"k\" [[\"b\" \"1\"]]]");
}

/* Everything that can give a key members. */
static void every_way_to_fill_a_key_wakes(struct scene *s) {
    static const char *const lines[][8] = {
        {"ZINCRBY", "k", "1", "a"},
        {"ZADD", "k", "INCR", "1", "a"},
        {"ZUNIONSTORE", "k", "1", "source"},
        {"ZINTERSTORE", "k", "1", "source"},
        {"ZDIFFSTORE", "k", "1", "source"},
        {"ZRANGESTORE", "k", "source", "0", "-1"},
        {"COPY", "source", "k"},
        {"RENAME", "other", "k"},
        {"RENAMENX", "other", "k"},
    };
    for (size_t i = 0; i < COUNT(lines); i++) {
        int argc = 0;
        size_t lens[8];
        for (; argc < 8 && lines[i][argc]; argc++) {
            lens[argc] = strlen(lines[i][argc]);
        }
        reply_free(client_cmd(s->writer, "ZADD", "source", "1", "a", NULL));
        reply_free(client_cmd(s->writer, "ZADD", "other", "1", "a", NULL));
        WAIT(s, 0, "BZPOPMIN", "k", "20");
        await_blocked(s->writer, 1);
        reply_free(client_cmd_argv(s->writer, argc, lines[i], lens));
        client_expect_next(s->waiters[0], "[\"k\" \"a\" \"1\"]");
        client_expect(s->writer, ":0", "EXISTS", "k", NULL);
    }
}

/* A key that comes into the database of the waiter from another one. */
static void keys_from_other_databases_wake(struct scene *s) {
    reply_free(client_cmd(s->writer, "SELECT", "1", NULL));
    reply_free(client_cmd(s->writer, "ZADD", "k", "1", "a", NULL));
    WAIT(s, 0, "BZPOPMIN", "k", "20");
    await_blocked(s->writer, 1);
    client_expect(s->writer, ":1", "MOVE", "k", "0", NULL);
    client_expect_next(s->waiters[0], "[\"k\" \"a\" \"1\"]");
    reply_free(client_cmd(s->writer, "ZADD", "k", "2", "b", NULL));
    WAIT(s, 0, "BZPOPMIN", "k", "20");
    await_blocked(s->writer, 1);
    expect_silence(s->waiters[0]);
    client_expect(s->writer, "+OK", "SWAPDB", "0", "1", NULL);
    client_expect_next(s->waiters[0], "[\"k\" \"b\" \"2\"]");
}

/* ---- running ---- */

static const struct scenario scenarios[] = {
    SCENARIO(served_when_another_adds),       SCENARIO(served_in_turn),
    SCENARIO(waits_for_several_keys),         SCENARIO(time_runs_out),
    SCENARIO(unblocked_by_another),           SCENARIO(another_type_does_not_serve),
    SCENARIO(a_client_leaves_while_it_waits), SCENARIO(served_in_the_middle_of_a_batch),
    SCENARIO(never_waits_for_itself),         SCENARIO(every_way_to_fill_a_key_wakes),
    SCENARIO(keys_from_other_databases_wake),
};

static void waiting_works(void **state) {
    (void)state;
    scenes_play(SERVER_GOBLIN, scenarios, COUNT(scenarios));
}

static void the_oracle_waits_the_same_way(void **state) {
    (void)state;
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server to compare with");
    }
    scenes_play(SERVER_ORACLE, scenarios, COUNT(scenarios));
}

/* Clients that wait when the server is told to stop do not hold it up. */
static void the_server_stops_with_clients_waiting(void **state) {
    (void)state;
    struct scene s = {.server = server_start(SERVER_GOBLIN, NULL)};
    s.writer = server_connect(s.server);
    for (int k = 0; k < SCENE_WAITERS; k++) {
        s.waiters[k] = server_connect(s.server);
        WAIT(&s, k, "BZPOPMIN", "k", "l", k % 2 ? "0" : "100");
    }
    await_blocked(s.writer, SCENE_WAITERS);
    client_close(s.writer);
    server_stop(s.server);
    for (int k = 0; k < SCENE_WAITERS; k++) {
        client_close(s.waiters[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_works),
        cmocka_unit_test(the_oracle_waits_the_same_way),
        cmocka_unit_test(the_server_stops_with_clients_waiting),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
