/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that wait for an element of a list: in turn, in chains, with time-outs, woken by every
 * command that can fill a list, and gone while they wait. Each scenario runs against the oracle
 * too. Then crowds: a hundred workers, and $GC_CHURN (10,000) clients that come and leave. */
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

/* ---- scenarios ---- */

static void served_when_another_pushes(struct scene *s) {
    WAIT(s, 0, "BLPOP", "k", "0");
    await_blocked(s->writer, 1);
    expect_silence(s->waiters[0]);
    client_expect(s->writer, ":3", "RPUSH", "k", "a", "b", "c", NULL);
    client_expect_next(s->waiters[0], "[\"k\" \"a\"]");
    WAIT(s, 0, "BRPOP", "none", "k", "0");
    client_expect_next(s->waiters[0], "[\"k\" \"c\"]");
    WAIT(s, 0, "BRPOPLPUSH", "k", "l", "0");
    client_expect_next(s->waiters[0], "\"b\"");
    client_expect(s->writer, ":0", "EXISTS", "k", NULL);
    await_blocked(s->writer, 0);
}

/* What counts is the list once the command is done, not the order in which elements came. */
static void many_elements_serve_many_in_turn(struct scene *s) {
    for (int i = 0; i < SCENE_WAITERS; i++) {
        WAIT(s, i, i % 2 ? "BRPOP" : "BLPOP", "k", "0");
        await_blocked(s->writer, i + 1);
    }
    client_expect(s->writer, ":3", "LPUSH", "k", "a", "b", "c", NULL);
    client_expect_next(s->waiters[0], "[\"k\" \"c\"]");
    client_expect_next(s->waiters[1], "[\"k\" \"a\"]");
    client_expect_next(s->waiters[2], "[\"k\" \"b\"]");
    expect_silence(s->waiters[3]);
    client_expect(s->writer, ":0", "EXISTS", "k", NULL);
    /* who comes back stands behind who is still waiting */
    WAIT(s, 0, "BLMPOP", "0", "1", "k", "LEFT", "COUNT", "10");
    await_blocked(s->writer, 2);
    client_expect(s->writer, ":3", "RPUSH", "k", "d", "e", "f", NULL);
    client_expect_next(s->waiters[3], "[\"k\" \"f\"]");
    client_expect_next(s->waiters[0], "[\"k\" [\"d\" \"e\"]]");
    client_expect(s->writer, ":0", "EXISTS", "k", NULL);
}

static void waits_for_several_keys(struct scene *s) {
    WAIT(s, 0, "BLPOP", "a", "b", "c", "b", "0");
    WAIT(s, 1, "BLMPOP", "0", "2", "c", "d", "RIGHT", "COUNT", "2");
    await_blocked(s->writer, 2);
    client_expect(s->writer, ":3", "RPUSH", "d", "x", "y", "z", NULL);
    client_expect_next(s->waiters[1], "[\"d\" [\"z\" \"y\"]]");
    client_expect(s->writer, "[\"x\"]", "LRANGE", "d", "0", "-1", NULL);
    client_expect(s->writer, ":1", "RPUSH", "b", "x", NULL);
    client_expect_next(s->waiters[0], "[\"b\" \"x\"]");
    client_expect(s->writer, ":1", "RPUSH", "b", "x", NULL);
    client_expect(s->writer, ":1", "RPUSH", "a", "x", NULL);
    client_expect(s->writer, ":2", "EXISTS", "a", "b", NULL);
}

/* One that moves fills the key that another waits for. */
static void chains_of_moves(struct scene *s) {
    WAIT(s, 0, "BLMOVE", "a", "b", "LEFT", "RIGHT", "0");
    await_blocked(s->writer, 1);
    WAIT(s, 1, "BLMOVE", "b", "c", "RIGHT", "LEFT", "0");
    await_blocked(s->writer, 2);
    WAIT(s, 2, "BRPOPLPUSH", "c", "a", "0");
    await_blocked(s->writer, 3);
    WAIT(s, 3, "BLPOP", "a", "0");
    await_blocked(s->writer, 4);
    client_expect(s->writer, ":1", "RPUSH", "a", "x", NULL);
    client_expect_next(s->waiters[0], "\"x\"");
    client_expect_next(s->waiters[1], "\"x\"");
    client_expect_next(s->waiters[2], "\"x\"");
    client_expect_next(s->waiters[3], "[\"a\" \"x\"]");
    client_expect(s->writer, ":0", "EXISTS", "a", "b", "c", NULL);
}

static void moves_within_one_list(struct scene *s) {
    WAIT(s, 0, "BLMOVE", "k", "k", "LEFT", "RIGHT", "0");
    await_blocked(s->writer, 1);
    WAIT(s, 1, "BRPOPLPUSH", "k", "k", "0");
    await_blocked(s->writer, 2);
    WAIT(s, 2, "BLPOP", "k", "0");
    await_blocked(s->writer, 3);
    client_expect(s->writer, ":2", "RPUSH", "k", "a", "b", NULL);
    client_expect_next(s->waiters[0], "\"a\"");
    client_expect_next(s->waiters[1], "\"a\"");
    client_expect_next(s->waiters[2], "[\"k\" \"a\"]");
    client_expect(s->writer, "[\"b\"]", "LRANGE", "k", "0", "-1", NULL);
}

static void a_destination_of_another_type(struct scene *s) {
    WAIT(s, 0, "BLMOVE", "k", "text", "LEFT", "RIGHT", "0");
    await_blocked(s->writer, 1);
    WAIT(s, 1, "BLPOP", "k", "0");
    await_blocked(s->writer, 2);
    client_expect(s->writer, "+OK", "SET", "text", "v", NULL);
    client_expect(s->writer, ":1", "RPUSH", "k", "a", NULL);
    client_expect_next(s->waiters[0],
                       "-WRONGTYPE Operation against a key holding the wrong kind of value");
    client_expect_next(s->waiters[1], "[\"k\" \"a\"]");
    client_expect(s->writer, "\"v\"", "GET", "text", NULL);
}

static void time_runs_out(struct scene *s) {
    reply_free(client_cmd(s->waiters[2], "HELLO", "3", NULL));
    int64_t start = scene_now_ms();
    WAIT(s, 0, "BLPOP", "k", "0.2");
    WAIT(s, 1, "BLMPOP", "0.1", "1", "k", "LEFT");
    WAIT(s, 2, "BLMOVE", "k", "l", "LEFT", "RIGHT", "0.15");
    WAIT(s, 3, "BRPOPLPUSH", "k", "l", "0.05");
    client_expect_next(s->waiters[3], "nil*");
    client_expect_next(s->waiters[1], "nil*");
    client_expect_next(s->waiters[2], "null");
    client_expect_next(s->waiters[0], "nil*");
    assert_true(scene_now_ms() - start >= 199);
    await_blocked(s->writer, 0);
    client_expect(s->writer, ":1", "RPUSH", "k", "a", NULL);
    client_expect(s->writer, ":1", "LLEN", "k", NULL);
}

static void those_with_a_time_are_counted(struct scene *s) {
    WAIT(s, 0, "BLPOP", "k", "0");
    WAIT(s, 1, "BLPOP", "k", "100");
    WAIT(s, 2, "BLMOVE", "k", "l", "LEFT", "RIGHT", "99.5");
    await_blocked(s->writer, 3);
    assert_int_equal(client_info_number(s->writer, "clients", "clients_in_timeout_table"), 2);
    client_expect(s->writer, ":3", "RPUSH", "k", "a", "b", "c", NULL);
    await_blocked(s->writer, 0);
    assert_int_equal(client_info_number(s->writer, "clients", "clients_in_timeout_table"), 0);
}

static void unblocked_by_another(struct scene *s) {
    char id[2][32];
    for (int i = 0; i < 2; i++) {
        struct reply *r = client_cmd(s->waiters[i], "CLIENT", "ID", NULL);
        assert_true(r && r->type == ':');
        snprintf(id[i], sizeof(id[i]), "%lld", (long long)r->integer);
        reply_free(r);
        WAIT(s, i, "BLMOVE", "k", "l", "LEFT", "LEFT", "0");
    }
    await_blocked(s->writer, 2);
    client_expect(s->writer, ":1", "CLIENT", "UNBLOCK", id[0], NULL);
    client_expect_next(s->waiters[0], "nil*");
    client_expect(s->writer, ":1", "CLIENT", "UNBLOCK", id[1], "ERROR", NULL);
    client_expect_next(s->waiters[1], "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    client_expect(s->writer, ":0", "CLIENT", "UNBLOCK", id[1], "TIMEOUT", NULL);
    client_expect(s->waiters[1], "+PONG", "PING", NULL);
}

/* Some wait for a list and some for a sorted set under one key. */
static void each_waits_for_its_own_type(struct scene *s) {
    WAIT(s, 0, "BZPOPMIN", "k", "0");
    await_blocked(s->writer, 1);
    WAIT(s, 1, "BLPOP", "k", "0");
    await_blocked(s->writer, 2);
    WAIT(s, 2, "BZPOPMAX", "k", "0");
    await_blocked(s->writer, 3);
    client_expect(s->writer, "+OK", "SET", "k", "v", NULL);
    client_expect(s->writer, ":1", "DEL", "k", NULL);
    client_expect(s->writer, ":1", "RPUSH", "k", "a", NULL);
    client_expect_next(s->waiters[1], "[\"k\" \"a\"]");
    expect_silence(s->waiters[0]);
    client_expect(s->writer, ":2", "ZADD", "k", "1", "a", "2", "b", NULL);
    client_expect_next(s->waiters[0], "[\"k\" \"a\" \"1\"]");
    client_expect_next(s->waiters[2], "[\"k\" \"b\" \"2\"]");
}

static void a_client_leaves_while_it_waits(struct scene *s) {
    WAIT(s, 0, "BLMOVE", "k", "l", "LEFT", "RIGHT", "0");
    await_blocked(s->writer, 1);
    WAIT(s, 1, "BLPOP", "k", "0");
    await_blocked(s->writer, 2);
    client_close(s->waiters[0]);
    s->waiters[0] = NULL;
    await_blocked(s->writer, 1);
    client_expect(s->writer, ":2", "RPUSH", "k", "a", "b", NULL);
    client_expect_next(s->waiters[1], "[\"k\" \"a\"]");
    client_expect(s->writer, "[\"b\"]", "LRANGE", "k", "0", "-1", NULL);
    client_expect(s->writer, ":0", "EXISTS", "l", NULL);
}

/* What a client sends behind the command that waits is answered after it; and within one batch of
 * another client a waiter is served between two commands. */
static void served_in_the_middle_of_a_batch(struct scene *s) {
    client_append(s->waiters[0], "BLPOP", "k", "0", NULL);
    client_append(s->waiters[0], "BRPOP", "k", "0", NULL);
    client_append(s->waiters[0], "ECHO", "end", NULL);
    assert_true(client_flush(s->waiters[0]));
    await_blocked(s->writer, 1);
    client_append(s->writer, "RPUSH", "k", "a", NULL);
    client_append(s->writer, "EXISTS", "k", NULL);
    client_append(s->writer, "RPUSH", "k", "b", "c", NULL);
    client_append(s->writer, "PING", NULL);
    assert_true(client_flush(s->writer));
    client_expect_next(s->writer, ":1");
    client_expect_next(s->writer, ":0");
    client_expect_next(s->writer, ":2");
    client_expect_next(s->writer, "+PONG");
    client_expect_next(s->waiters[0], "[\"k\" \"a\"]");
    client_expect_next(s->waiters[0], "[\"k\" \"c\"]");
    client_expect_next(s->waiters[0], "\"end\"");
    client_expect(s->writer, "[\"b\"]", "LRANGE", "k", "0", "-1", NULL);
}

/* Both ends of it in one pipeline of one client. */
static void never_waits_for_itself(struct scene *s) {
    client_append(s->writer, "RPUSH", "k", "a", NULL);
    client_append(s->writer, "BLMOVE", "k", "l", "LEFT", "RIGHT", "0", NULL);
    client_append(s->writer, "BLPOP", "k", "0.05", NULL);
    client_append(s->writer, "BRPOPLPUSH", "l", "k", "0", NULL);
    client_append(s->writer, "BLMPOP", "0", "1", "k", "LEFT", NULL);
    assert_true(client_flush(s->writer));
    client_expect_next(s->writer, ":1");
    client_expect_next(s->writer, "\"a\"");
    client_expect_next(s->writer, "nil*");
    client_expect_next(s->writer, "\"a\"");
    client_expect_next(s->writer, "[\"k\" [\"a\"]]");
}

/* Everything that can give a key elements. */
static void every_way_to_fill_a_key_wakes(struct scene *s) {
    static const char *const lines[][8] = {
        {"LPUSH", "k", "a"},
        {"RPUSH", "k", "a"},
        {"LMOVE", "source", "k", "LEFT", "RIGHT"},
        {"RPOPLPUSH", "source", "k"},
        {"BLMOVE", "source", "k", "LEFT", "RIGHT", "0"},
        {"BRPOPLPUSH", "source", "k", "0"},
        {"COPY", "source", "k"},
        {"RENAME", "source", "k"},
        {"RENAMENX", "source", "k"},
        {"SORT", "source", "ALPHA", "STORE", "k"},
        {"SORT", "zset", "BY", "nosort", "STORE", "k"},
    };
    for (size_t i = 0; i < COUNT(lines); i++) {
        int argc = 0;
        size_t lens[8];
        for (; argc < 8 && lines[i][argc]; argc++) {
            lens[argc] = strlen(lines[i][argc]);
        }
        reply_free(client_cmd(s->writer, "DEL", "source", NULL));
        reply_free(client_cmd(s->writer, "RPUSH", "source", "a", NULL));
        reply_free(client_cmd(s->writer, "ZADD", "zset", "1", "a", NULL));
        WAIT(s, 0, "BLPOP", "k", "20");
        await_blocked(s->writer, 1);
        reply_free(client_cmd_argv(s->writer, argc, lines[i], lens));
        client_expect_next(s->waiters[0], "[\"k\" \"a\"]");
        client_expect(s->writer, ":0", "EXISTS", "k", NULL);
    }
}

/* A key that comes into the database of the waiter from another one. */
static void keys_from_other_databases_wake(struct scene *s) {
    reply_free(client_cmd(s->writer, "SELECT", "1", NULL));
    reply_free(client_cmd(s->writer, "RPUSH", "k", "a", NULL));
    WAIT(s, 0, "BLMOVE", "k", "l", "LEFT", "RIGHT", "20");
    await_blocked(s->writer, 1);
    client_expect(s->writer, ":1", "MOVE", "k", "0", NULL);
    client_expect_next(s->waiters[0], "\"a\"");
    client_expect(s->waiters[0], "[\"a\"]", "LRANGE", "l", "0", "-1", NULL);
    reply_free(client_cmd(s->writer, "RPUSH", "k", "b", NULL));
    WAIT(s, 0, "BLPOP", "k", "20");
    await_blocked(s->writer, 1);
    expect_silence(s->waiters[0]);
    client_expect(s->writer, "+OK", "SWAPDB", "0", "1", NULL);
    client_expect_next(s->waiters[0], "[\"k\" \"b\"]");
}

static const struct scenario scenarios[] = {
    SCENARIO(served_when_another_pushes),
    SCENARIO(many_elements_serve_many_in_turn),
    SCENARIO(waits_for_several_keys),
    SCENARIO(chains_of_moves),
    SCENARIO(moves_within_one_list),
    SCENARIO(a_destination_of_another_type),
    SCENARIO(time_runs_out),
    SCENARIO(those_with_a_time_are_counted),
    SCENARIO(unblocked_by_another),
    SCENARIO(each_waits_for_its_own_type),
    SCENARIO(a_client_leaves_while_it_waits),
    SCENARIO(served_in_the_middle_of_a_batch),
    SCENARIO(never_waits_for_itself),
    SCENARIO(every_way_to_fill_a_key_wakes),
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

/* ---- a crowd of workers ---- */

enum { WORKERS = 100, JOBS = 20000, PRODUCERS = 4, PUSH_BATCH = 50 };

/* Work of all kinds on two queues; what BLMOVE takes is also found under "done". */
static void ask_for_work(struct client *c, int worker) {
    switch (worker % 4) {
    case 0:
        client_append(c, "BLPOP", "high", "low", "0", NULL);
        break;
    case 1:
        client_append(c, "BRPOP", "low", "high", "0", NULL);
        break;
    case 2:
        client_append(c, "BLMOVE", worker % 8 == 2 ? "high" : "low", "done", "LEFT", "RIGHT", "0",
                      NULL);
        break;
    default:
        client_append(c, "BLMPOP", "0", "2", "low", "high", "RIGHT", "COUNT", "3", NULL);
        break;
    }
    assert_true(client_flush(c));
}

static size_t note_job(const struct reply *r, unsigned char *seen) {
    long job = strtol(r->str, NULL, 10);
    assert_in_range(job, 0, JOBS - 1);
    seen[job]++;
    return 1;
}

/* The jobs a reply names: an element, [key, element] or [key, [elements]]. */
static size_t note_reply(const struct reply *r, unsigned char *seen) {
    if (r->type == '$') {
        return note_job(r, seen);
    }
    assert_true(r->type == '*' && r->count == 2);
    const struct reply *what = r->elements[1];
    size_t jobs = 0;
    if (what->type == '$') {
        return note_job(what, seen);
    }
    for (size_t i = 0; i < what->count; i++) {
        jobs += note_job(what->elements[i], seen);
    }
    return jobs;
}

/* Push the next jobs, one or several a command, some by way of a third list. */
static int produce(struct client *c, int next) {
    int commands = 0;
    for (int end = next + PUSH_BATCH; next < end && next < JOBS; commands++) {
        char a[16], b[16];
        const char *queue = next % 3 ? "high" : "low";
        snprintf(a, sizeof(a), "%d", next++);
        if (next % 7 == 0) {
            client_append(c, "RPUSH", "inbox", a, NULL);
            client_append(c, "LMOVE", "inbox", queue, "LEFT", "LEFT", NULL);
            commands++;
        } else if (next % 2 && next < JOBS) {
            snprintf(b, sizeof(b), "%d", next++);
            client_append(c, "RPUSH", queue, a, b, NULL);
        } else {
            client_append(c, "LPUSH", queue, a, NULL);
        }
    }
    assert_true(client_flush(c));
    while (commands-- > 0) {
        struct reply *r = client_read(c);
        assert_true(r && !reply_is_error(r));
        reply_free(r);
    }
    return next;
}

/* Take the replies that are there and ask again. */
static size_t consume(struct client **workers, unsigned char *seen, int wait_ms) {
    struct pollfd fds[WORKERS];
    size_t jobs = 0;
    for (int i = 0; i < WORKERS; i++) {
        fds[i] = (struct pollfd){.fd = workers[i]->fd, .events = POLLIN};
    }
    poll(fds, WORKERS, wait_ms);
    for (int i = 0; i < WORKERS; i++) {
        if (fds[i].revents & POLLIN) {
            struct reply *r = client_read(workers[i]);
            assert_non_null(r);
            jobs += note_reply(r, seen);
            reply_free(r);
            ask_for_work(workers[i], i);
        }
    }
    return jobs;
}

static void a_hundred_workers_lose_and_repeat_nothing(void **state) {
    (void)state;
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *workers[WORKERS], *producers[PRODUCERS];
    unsigned char *seen = calloc(JOBS, 1);
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = server_connect(s);
    }
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = server_connect(s);
        ask_for_work(workers[i], i);
    }
    await_blocked(producers[0], WORKERS);
    size_t done = 0;
    for (int next = 0; next < JOBS;) {
        next = produce(producers[next / PUSH_BATCH % PRODUCERS], next);
        done += consume(workers, seen, 0);
    }
    int64_t deadline = scene_now_ms() + 20000;
    while (done < JOBS && scene_now_ms() < deadline) {
        done += consume(workers, seen, 100);
    }
    assert_int_equal(done, JOBS);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(seen[i], 1);
    }
    await_blocked(producers[0], WORKERS);
    client_expect(producers[0], ":0", "EXISTS", "high", "low", "inbox", NULL);
    for (int i = 0; i < WORKERS; i++) {
        client_close(workers[i]);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        client_close(producers[i]);
    }
    free(seen);
    server_stop(s);
}

/* ---- clients that come and leave ---- */

/* Resident memory may differ by what the allocator keeps for a while. */
enum { CHURN_CLIENTS = 50, CHURN_ROUNDS = 200, CHURN_WARM = 50, CHURN_RESIDENT_MAX = 1 << 20 };

static void come_wait_and_leave(struct server *s, struct client *observer, long round) {
    struct client *clients[CHURN_CLIENTS];
    char key[32];
    for (int i = 0; i < CHURN_CLIENTS; i++) {
        clients[i] = server_connect(s);
        snprintf(key, sizeof(key), "key:%ld:%d", round, i / 2);
        if (i % 3 == 0) {
            client_append(clients[i], "BLMOVE", key, "destination", "LEFT", "LEFT", "1000", NULL);
        } else {
            client_append(clients[i], "BLPOP", "shared", key, "another", "0", NULL);
        }
        client_append(clients[i], "PING", NULL); /* deferred, and never answered */
        assert_true(client_flush(clients[i]));
    }
    await_blocked(observer, CHURN_CLIENTS);
    for (int i = 0; i < CHURN_CLIENTS; i++) {
        client_close(clients[i]);
    }
    await_blocked(observer, 0);
}

static long churn_rounds(void) {
    const char *text = getenv("GC_CHURN");
    long clients = text != NULL ? atol(text) : CHURN_CLIENTS * CHURN_ROUNDS;
    return clients / CHURN_CLIENTS > 2 * CHURN_WARM ? clients / CHURN_CLIENTS : 2 * CHURN_WARM;
}

static void clients_that_come_and_leave_cost_nothing(void **state) {
    (void)state;
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *observer = server_connect(s);
    long long warm = 0, warm_resident = 0;
    long rounds = churn_rounds();
    for (long round = 0; round < rounds; round++) {
        come_wait_and_leave(s, observer, round);
        if (round == CHURN_WARM) {
            warm = client_info_number(observer, "memory", "used_memory");
            warm_resident = server_status_bytes(s, "VmRSS");
        }
    }
    long long used = client_info_number(observer, "memory", "used_memory");
    long long resident = server_status_bytes(s, "VmRSS");
    print_message("after %d clients: used %lld, resident %lld; after %ld: %lld, %lld\n",
                  CHURN_WARM * CHURN_CLIENTS, warm, warm_resident, rounds * CHURN_CLIENTS, used,
                  resident);
    assert_true(warm > 0 && used <= warm + 32 * 1024);
#ifndef GC_SANITIZE /* which keeps what was freed */
    assert_true(resident <= warm_resident + CHURN_RESIDENT_MAX);
#endif
    client_close(observer);
    server_stop(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_works),
        cmocka_unit_test(the_oracle_waits_the_same_way),
        cmocka_unit_test(a_hundred_workers_lose_and_repeat_nothing),
        cmocka_unit_test(clients_that_come_and_leave_cost_nothing),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
