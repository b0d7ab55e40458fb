/* SPDX-License-Identifier: BSD-3-Clause */
/* MIGRATE: by example, to and from redis-server, and to targets that are dead, silent, locked, full
 * or out of their mind. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/example.h"
#include "support/scene.h"
#include "support/specimens.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define HOST "127.0.0.1"
#define READING "-IOERR error or timeout reading to target instance"
#define WRITING "-IOERR error or timeout writing to target instance"
#define CONNECTING "-IOERR error or timeout connecting to the client"
#define REPLIED "-ERR Target instance replied with error: "

/* ---- arguments ------------------------------------------------------------------------------ */

/* clang-format off */
static const struct example arguments[] = {
    {"MIGRATE", ARITY("migrate"), BOTH}, {"MIGRATE h 1 k 0", ARITY("migrate"), BOTH},
    {"MIGRATE " HOST " 1 none 0 100", "+NOKEY", BOTH}, {"MIGRATE " HOST " 1 '' 0 100", "+NOKEY", BOTH},
    {"MIGRATE " HOST " 1 '' 0 100 KEYS a b", "+NOKEY", BOTH}, {"MIGRATE " HOST " 1 '' 0 100 KEYS", "+NOKEY", BOTH},
    {"MIGRATE " HOST " 1 none 0 100 copy REPLACE Auth x auth2 u p", "+NOKEY", BOTH},
    {"MIGRATE " HOST " 1 none 0 100 COPY FOO", SYNTAX, BOTH}, {"MIGRATE " HOST " 1 none 0 100 AUTH", SYNTAX, BOTH},
    {"MIGRATE " HOST " 1 none 0 100 AUTH2 u", SYNTAX, BOTH},
    {"MIGRATE " HOST " 1 k 0 100 KEYS a", "-ERR When using MIGRATE KEYS option, the key argument must be set to the empty string", BOTH},
    {"MIGRATE " HOST " 1 none x 100", NOT_INTEGER, BOTH}, {"MIGRATE " HOST " 1 none 0 x", NOT_INTEGER, BOTH},
    {"MIGRATE " HOST " 1 none x x FOO", SYNTAX, BOTH}, {"MIGRATE " HOST " 1 none -1 0", "+NOKEY", BOTH},
    {"SET k v", "+OK", BOTH}, {"MIGRATE " HOST " 1 k 0 100", CONNECTING, NEW}, {"MIGRATE '' 1 k 0 100", CONNECTING, NEW},
    {"MIGRATE " HOST " nonsense k 0 100", CONNECTING, NEW}, {"MIGRATE \\x00 1 k 0 100", CONNECTING, NEW}, {"GET k", "\"v\"", BOTH},
    {"COMMAND GETKEYS MIGRATE h 1 k 0 10 COPY", "[\"k\"]", BOTH}, {"COMMAND GETKEYS MIGRATE h 1 '' 0 10 COPY KEYS a b", "[\"a\" \"b\"]", BOTH},
    {"COMMAND GETKEYS MIGRATE h 1 '' 0 10 AUTH keys KEYS a", "[\"a\"]", BOTH}, {"COMMAND GETKEYS MIGRATE h 1 '' 0 10 KEYS", "[\"\"]", BOTH},
    {"COMMAND GETKEYS MIGRATE h 1 k 0 10 KEYS a", "-ERR Invalid arguments specified for command", BOTH},
    {"COMMAND GETKEYSANDFLAGS MIGRATE h 1 '' 0 10 KEYS a", "[[\"a\" [+RW +access +delete]]]", RESP2},
};
/* clang-format on */

static const struct example_group groups[] = {EXAMPLES(arguments)};

static void arguments_are_checked_as_by_redis(void **state) {
    examples_assert(SERVER_GOBLIN, groups, COUNT(groups), 2);
    examples_assert(SERVER_GOBLIN, groups, COUNT(groups), 3);
    if (server_available(SERVER_ORACLE)) {
        examples_assert(SERVER_ORACLE, groups, COUNT(groups), 2);
    }
}

/* ---- pairs of servers ----------------------------------------------------------------------- */

struct pair {
    struct server *a, *b;
    struct client *from, *to;
    char port[16]; /* of b */
};

static void pair_up(struct pair *p, enum server_kind a, enum server_kind b,
                    const char *const *args_of_b) {
    p->a = server_start(a, NULL);
    p->b = server_start(b, args_of_b);
    p->from = server_connect(p->a);
    p->to = server_connect(p->b);
    snprintf(p->port, sizeof(p->port), "%d", p->b->port);
}

static void part(struct pair *p) {
    client_close(p->from);
    client_close(p->to);
    server_stop(p->a);
    server_stop(p->b);
}

static void move_specimens(enum server_kind a, enum server_kind b) {
    if (!server_available(a) || !server_available(b)) {
        TEST_SKIP("no redis-server to exchange keys with");
    }
    struct pair p;
    char *before[64];
    size_t count = specimens_count();
    const char *argv[80];
    size_t lens[80];
    int argc = 0;
    pair_up(&p, a, b, NULL);
    specimens_load(p.from);
    client_expect(p.from, ":1", "PEXPIREAT", specimen_key(3), "99999999999999", NULL);
    const char *const head[] = {"MIGRATE", HOST, p.port, "", "3", "5000", "KEYS", "none"};
    for (size_t i = 0; i < COUNT(head); i++) {
        argv[argc++] = head[i];
    }
    for (size_t i = 0; i < count; i++) {
        before[i] = value_text(p.from, specimen_key(i));
        argv[argc++] = specimen_key(i);
    }
    for (int i = 0; i < argc; i++) {
        lens[i] = strlen(argv[i]);
    }
    struct reply *r = client_cmd_argv(p.from, argc, argv, lens);
    char *text = reply_text(r);
    assert_string_equal(text, "+OK");
    free(text);
    reply_free(r);
    client_expect(p.from, ":0", "DBSIZE", NULL);
    client_expect(p.to, ":0", "DBSIZE", NULL);
    client_expect(p.to, "+OK", "SELECT", "3", NULL);
    for (size_t i = 0; i < count; i++) {
        char *after = value_text(p.to, specimen_key(i));
        assert_string_equal(before[i], after);
        free(before[i]);
        free(after);
        r = client_cmd(p.to, "TTL", specimen_key(i), NULL);
        assert_true(r != NULL && (i == 3 ? r->integer > 1000000 : r->integer == -1));
        reply_free(r);
    }
    part(&p);
}

static void every_type_moves_to_redis(void **state) {
    move_specimens(SERVER_GOBLIN, SERVER_ORACLE);
}

static void every_type_moves_from_redis(void **state) {
    move_specimens(SERVER_ORACLE, SERVER_GOBLIN);
}

static void every_type_moves_between_two_of_ours(void **state) {
    move_specimens(SERVER_GOBLIN, SERVER_GOBLIN);
}

/* ---- single keys ---------------------------------------------------------------------------- */

#define MIGRATE(p, expected, key, db, ...)                                                         \
    client_expect((p)->from, expected, "MIGRATE", HOST, (p)->port, key, db, "2000", ##__VA_ARGS__, \
                  NULL)

static void copy_and_replace(void **state) {
    struct pair p;
    pair_up(&p, SERVER_GOBLIN, SERVER_GOBLIN, NULL);
    client_expect(p.from, "+OK", "SET", "k", "v1", NULL);
    MIGRATE(&p, "+OK", "k", "0", "COPY");
    client_expect(p.from, "\"v1\"", "GET", "k", NULL);
    client_expect(p.to, "\"v1\"", "GET", "k", NULL);
    client_expect(p.from, "+OK", "SET", "k", "v2", NULL);
    MIGRATE(&p, REPLIED "BUSYKEY Target key name already exists.", "k", "0");
    client_expect(p.from, "\"v2\"", "GET", "k", NULL);
    client_expect(p.to, "\"v1\"", "GET", "k", NULL);
    MIGRATE(&p, "+OK", "k", "0", "REPLACE");
    client_expect(p.from, ":0", "EXISTS", "k", NULL);
    client_expect(p.to, "\"v2\"", "GET", "k", NULL);
    MIGRATE(&p, "+NOKEY", "k", "0");
    part(&p);
}

static void other_databases_on_one_connection(void **state) {
    struct pair p;
    pair_up(&p, SERVER_GOBLIN, SERVER_GOBLIN, NULL);
    static const char *const numbers[] = {"0", "5", "5", "0"};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        char key[8];
        snprintf(key, sizeof(key), "k%zu", i);
        client_expect(p.from, "+OK", "SET", key, "v", NULL);
        MIGRATE(&p, "+OK", key, numbers[i]);
        client_expect(p.to, "+OK", "SELECT", numbers[i], NULL);
        client_expect(p.to, ":1", "EXISTS", key, NULL);
    }
    assert_int_equal(client_info_number(p.from, "stats", "migrate_cached_sockets"), 1);
    /* no such database there: the key must land in no other */
    client_expect(p.from, "+OK", "SET", "k", "v", NULL);
    MIGRATE(&p, REPLIED "ERR DB index is out of range", "k", "99");
    MIGRATE(&p, REPLIED "ERR DB index is out of range", "k", "-1");
    client_expect(p.to, ":2", "DBSIZE", NULL);
    client_expect(p.from, ":1", "EXISTS", "k", NULL);
    MIGRATE(&p, "+OK", "k", "5");
    part(&p);
}

static void a_connection_closed_meanwhile_is_made_anew(void **state) {
    struct pair p;
    pair_up(&p, SERVER_GOBLIN, SERVER_GOBLIN, NULL);
    for (int i = 0; i < 3; i++) {
        client_expect(p.from, "+OK", "SET", "k", "v", NULL);
        MIGRATE(&p, "+OK", "k", "0", "REPLACE");
        client_expect(p.from, ":0", "EXISTS", "k", NULL);
        client_expect(p.to, i == 1 ? ":0" : ":1", "CLIENT", "KILL", "TYPE",
                      i == 1 ? "pubsub" : "normal", "SKIPME", "yes", NULL);
    }
    part(&p);
}

static void passwords(void **state) {
    const char *const args[] = {"--requirepass", "secret", NULL};
    struct pair p;
    pair_up(&p, SERVER_GOBLIN, SERVER_GOBLIN, args);
    client_expect(p.to, "+OK", "AUTH", "secret", NULL);
    client_expect(p.from, "+OK", "MSET", "a", "1", "b", "2", "c", "3", NULL);
    MIGRATE(&p, REPLIED "NOAUTH Authentication required.", "a", "0");
    struct reply *r =
        client_cmd(p.from, "MIGRATE", HOST, p.port, "a", "0", "2000", "AUTH", "wrong", NULL);
    assert_true(reply_is_error(r) && strncmp(r->str, &REPLIED[1], sizeof(REPLIED) - 2) == 0);
    reply_free(r);
    client_expect(p.from, ":3", "DBSIZE", NULL);
    client_expect(p.to, ":0", "DBSIZE", NULL);
    MIGRATE(&p, "+OK", "a", "0", "AUTH", "secret");
    MIGRATE(&p, "+OK", "b", "0", "AUTH2", "default", "secret");
    client_expect(p.from, ":1", "DBSIZE", NULL);
    client_expect(p.to, ":2", "DBSIZE", NULL);
    part(&p);
}

static void a_full_target_refuses_and_the_key_stays(void **state) {
    const char *const args[] = {"--maxmemory", "1", NULL};
    struct pair p;
    pair_up(&p, SERVER_GOBLIN, SERVER_GOBLIN, args);
    client_expect(p.from, "+OK", "SET", "k", "v", NULL);
    MIGRATE(&p, REPLIED "OOM command not allowed when used memory > 'maxmemory'.", "k", "0");
    client_expect(p.from, "\"v\"", "GET", "k", NULL);
    part(&p);
}

/* ---- many keys, some refused ---------------------------------------------------------------- */

enum { MANY = 5000, TAKEN_EVERY = 7 };

static void set_many(struct client *c, int step) {
    int replies = 0;
    for (int i = 0; i < MANY; i += step, replies++) {
        char key[32];
        snprintf(key, sizeof(key), "key:%d", i);
        client_append(c, "SET", key, "value", NULL);
    }
    assert_true(client_flush(c));
    while (replies-- > 0) {
        client_expect_next(c, "+OK");
    }
}

static void those_that_were_refused_stay(void **state) {
    struct pair p;
    pair_up(&p, SERVER_GOBLIN, SERVER_GOBLIN, NULL);
    set_many(p.from, 1);
    set_many(p.to, TAKEN_EVERY);
    static char keys[MANY][16];
    static const char *argv[MANY + 7];
    static size_t lens[MANY + 7];
    const char *const head[] = {"MIGRATE", HOST, p.port, "", "0", "5000", "KEYS"};
    for (size_t i = 0; i < MANY + COUNT(head); i++) {
        if (i < COUNT(head)) {
            argv[i] = head[i];
        } else {
            snprintf(keys[i - COUNT(head)], sizeof(keys[0]), "key:%zu", i - COUNT(head));
            argv[i] = keys[i - COUNT(head)];
        }
        lens[i] = strlen(argv[i]);
    }
    struct reply *r = client_cmd_argv(p.from, COUNT(argv), argv, lens);
    char *text = reply_text(r);
    assert_string_equal(text, REPLIED "BUSYKEY Target key name already exists.");
    free(text);
    reply_free(r);
    for (int i = 0; i < MANY; i++) {
        client_append(p.from, "EXISTS", keys[i], NULL);
    }
    assert_true(client_flush(p.from));
    for (int i = 0; i < MANY; i++) {
        client_expect_next(p.from, i % TAKEN_EVERY == 0 ? ":1" : ":0");
    }
    r = client_cmd(p.to, "DBSIZE", NULL);
    assert_int_equal(r->integer, MANY);
    reply_free(r);
    /* the connection is in step: it can be used again */
    client_expect(p.from, "+OK", "SET", "another", "v", NULL);
    MIGRATE(&p, "+OK", "another", "0");
    part(&p);
}

/* ---- targets played by the test ------------------------------------------------------------- */

struct stage {
    struct server *server;
    struct client *client;
    int listening, fd;
    char port[16];
};

static void stage_open(struct stage *s) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    *s = (struct stage){.fd = -1};
    s->listening = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->listening, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(s->listening, 8), 0);
    assert_int_equal(getsockname(s->listening, (struct sockaddr *)&address, &len), 0);
    snprintf(s->port, sizeof(s->port), "%d", ntohs(address.sin_port));
    s->server = server_start(SERVER_GOBLIN, NULL);
    s->client = server_connect(s->server);
    client_expect(s->client, "+OK", "MSET", "a", "1", "b", "2", "c", "3", NULL);
}

static void stage_close(struct stage *s) {
    if (s->fd >= 0) {
        close(s->fd);
    }
    close(s->listening);
    client_close(s->client);
    server_stop(s->server);
}

static void stage_accept(struct stage *s) {
    s->fd = accept(s->listening, NULL, NULL);
    assert_true(s->fd >= 0);
}

/* Read on until the text came by. */
static void stage_await(struct stage *s, const char *text) {
    char seen[8192];
    size_t len = 0;
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    do {
        assert_int_equal(poll(&p, 1, 10000), 1);
        ssize_t n = read(s->fd, seen + len, sizeof(seen) - len - 1);
        assert_true(n > 0);
        len += (size_t)n;
        seen[len] = '\0';
    } while (memmem(seen, len, text, strlen(text)) == NULL);
}

static void stage_say(struct stage *s, const char *text) {
    assert_int_equal(write(s->fd, text, strlen(text)), strlen(text));
}

/* Three keys under way. */
static void stage_begin(struct stage *s) {
    client_append(s->client, "MIGRATE", HOST, s->port, "", "0", "400", "KEYS", "a", "b", "c", NULL);
    assert_true(client_flush(s->client));
    stage_accept(s);
    stage_await(s, "SELECT");
    stage_say(s, "+OK\r\n");
    stage_await(s, "\r\nc\r\n");
}

static void a_dead_target_costs_nothing(void **state) {
    struct stage s;
    stage_open(&s);
    char port[16];
    snprintf(port, sizeof(port), "%d", free_port());
    client_expect(s.client, CONNECTING, "MIGRATE", HOST, port, "a", "0", "1000", NULL);
    client_expect(s.client, ":3", "DBSIZE", NULL);
    stage_close(&s);
}

static void a_silent_target_is_given_up_in_time(void **state) {
    struct stage s;
    stage_open(&s);
    int64_t start_ms = scene_now_ms();
    client_expect(s.client, READING, "MIGRATE", HOST, s.port, "a", "0", "200", NULL);
    int64_t took_ms = scene_now_ms() - start_ms;
    assert_true(took_ms >= 190 && took_ms < 10000);
    client_expect(s.client, ":3", "DBSIZE", NULL);
    assert_int_equal(client_info_number(s.client, "stats", "migrate_cached_sockets"), 0);
    stage_close(&s);
}

/* It takes the SELECT, and then reads no more: the value does not fit between us. */
static void a_target_that_does_not_read_is_given_up(void **state) {
    struct stage s;
    stage_open(&s);
    size_t len = (size_t)32 << 20;
    char *noise = malloc(len);
    assert_non_null(noise);
    for (size_t i = 0; i < len; i++) {
        noise[i] = (char)(i * 2654435761u >> 13);
    }
    const char *argv[] = {"SET", "big", noise};
    reply_free(client_cmd_argv(s.client, 3, argv, (const size_t[]){3, 3, len}));
    free(noise);
    client_append(s.client, "MIGRATE", HOST, s.port, "big", "0", "200", NULL);
    assert_true(client_flush(s.client));
    stage_accept(&s);
    stage_await(&s, "SELECT");
    stage_say(&s, "+OK\r\n");
    client_expect_next(s.client, WRITING);
    client_expect(s.client, ":4", "DBSIZE", NULL);
    stage_close(&s);
}

static void what_was_acknowledged_before_the_end_is_gone(void **state) {
    struct stage s;
    stage_open(&s);
    stage_begin(&s);
    stage_say(&s, "+OK\r\n-ERR no\r\n");
    close(s.fd);
    s.fd = -1;
    client_expect_next(s.client, REPLIED "ERR no");
    client_expect(s.client, "[nil \"2\" \"3\"]", "MGET", "a", "b", "c", NULL);
    stage_close(&s);
}

static void half_an_answer_is_none(void **state) {
    struct stage s;
    stage_open(&s);
    stage_begin(&s);
    stage_say(&s, "+OK\r\n+OK\r\n+O");
    client_expect_next(s.client, READING);
    client_expect(s.client, "[nil nil \"3\"]", "MGET", "a", "b", "c", NULL);
    stage_close(&s);
}

static void an_answer_to_something_else_is_none(void **state) {
    static const char *const answers[] = {"+QUEUED\r\n+OK\r\n+OK\r\n", ":1\r\n", "\r\n+OK\r\n",
                                          "$2\r\nOK\r\n"};
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct stage s;
        stage_open(&s);
        stage_begin(&s);
        stage_say(&s, answers[i]);
        client_expect_next(s.client, READING);
        client_expect(s.client, ":3", "DBSIZE", NULL);
        stage_close(&s);
    }
}

static void an_endless_line_is_given_up(void **state) {
    struct stage s;
    stage_open(&s);
    stage_begin(&s);
    for (int i = 0; i < 200; i++) {
        stage_say(&s, "----------------------------------------------------------------");
    }
    client_expect_next(s.client, READING);
    client_expect(s.client, ":3", "DBSIZE", NULL);
    stage_close(&s);
}

/* We ourselves are a target that cannot answer. */
static void migrating_to_oneself_ends(void **state) {
    struct stage s;
    stage_open(&s);
    char port[16];
    snprintf(port, sizeof(port), "%d", s.server->port);
    client_expect(s.client, READING, "MIGRATE", HOST, port, "a", "1", "100", NULL);
    client_expect(s.client, ":3", "DBSIZE", NULL);
    stage_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_checked_as_by_redis),
        cmocka_unit_test(every_type_moves_to_redis),
        cmocka_unit_test(every_type_moves_from_redis),
        cmocka_unit_test(every_type_moves_between_two_of_ours),
        cmocka_unit_test(copy_and_replace),
        cmocka_unit_test(other_databases_on_one_connection),
        cmocka_unit_test(a_connection_closed_meanwhile_is_made_anew),
        cmocka_unit_test(passwords),
        cmocka_unit_test(a_full_target_refuses_and_the_key_stays),
        cmocka_unit_test(those_that_were_refused_stay),
        cmocka_unit_test(a_dead_target_costs_nothing),
        cmocka_unit_test(a_silent_target_is_given_up_in_time),
        cmocka_unit_test(a_target_that_does_not_read_is_given_up),
        cmocka_unit_test(what_was_acknowledged_before_the_end_is_gone),
        cmocka_unit_test(half_an_answer_is_none),
        cmocka_unit_test(an_answer_to_something_else_is_none),
        cmocka_unit_test(an_endless_line_is_given_up),
        cmocka_unit_test(migrating_to_oneself_ends),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
