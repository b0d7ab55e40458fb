/* SPDX-License-Identifier: BSD-3-Clause */
/* DUMP and RESTORE by example, and payloads of every type carried between two servers of ours and
 * redis-server, in each direction. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/example.h"
#include "support/scene.h"
#include "support/specimens.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Payloads of redis-server 7.0. */
#define HELLO "\\x00\\x05hello\\x0a\\x00cr\\xdfve4\\x20\\x0a"
#define LIST                                                                                       \
    "\\x12\\x01\\x02\\x0e\\x0e\\x00\\x00\\x00\\x03\\x00\\x01\\x01\\x02\\x01\\x81a\\x02\\xff\\x0a"  \
    "\\x00\\xcc\\x0f\\xc6\\x88\\xab\\xd7Yi"
#define STREAM                                                                                     \
    "\\x13\\x01\\x10\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00"   \
    "\\x01\\x1d\\x1d\\x00\\x00\\x00\\x0a\\x00\\x01\\x01\\x00\\x01\\x01\\x01\\x81a\\x02\\x00\\x01"  \
    "\\x02\\x01\\x00\\x01\\x00\\x01\\x81b\\x02\\x04\\x01\\xff\\x01\\x01\\x01\\x01\\x01\\x00\\x00"  \
    "\\x01\\x00\\x0a\\x00oC4\\xec\\xd7\\xfaZ\\xec"
#define WRONG_SUM "\\x00\\x05hellO\\x0a\\x00cr\\xdfve4\\x20\\x0a"
#define BUSY "-BUSYKEY Target key name already exists."
#define BAD_SUM "-ERR DUMP payload version or checksum are wrong"
#define FAR "99999999999999"

/* clang-format off */
static const struct example dumps[] = {
    {"DUMP none", "nil", RESP2}, {"DUMP none", "null", RESP3}, {"DUMP", ARITY("dump"), BOTH}, {"DUMP a b", ARITY("dump"), BOTH},
    {"SET s hello", "+OK", BOTH}, {"DUMP s", "\"\\x00\\x05hello\\x0a\\x00cr\\xdfve4 \\x0a\"", BOTH},
    {"SET n -7", "+OK", BOTH}, {"DUMP n", ANY, BOTH},
    {"SET long aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "+OK", BOTH},
    {"DUMP long", "\"\\x00\\xc3\\x09\\x1e\\x01aa\\xe0\\x11\\x00\\x01aa\\x0a\\x00Es|\\xbb+d{\\xbb\"", BOTH},
    {"CONFIG SET rdbcompression no", "+OK", BOTH},
    {"DUMP long", "\"\\x00\\x1eaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\x0a\\x00\\xdb\\xc3\\xf38\\x19\\x96\\xf3\\xba\"", BOTH},
    {"CONFIG SET rdbcompression yes", "+OK", BOTH},
};

static const struct example restores[] = {
    {"RESTORE s 0 " HELLO, "+OK", BOTH}, {"GET s", "\"hello\"", BOTH}, {"TTL s", ":-1", BOTH},
    {"RESTORE s 0 " HELLO, BUSY, BOTH}, {"RESTORE s -1 x", BUSY, BOTH}, {"RESTORE s x x", BUSY, BOTH},
    {"RESTORE s 0 " LIST " REPLACE", "+OK", BOTH}, {"LRANGE s 0 -1", "[\"1\" \"2\" \"a\"]", BOTH},
    {"RESTORE s 100000 " HELLO " replace", "+OK", BOTH}, {"TTL s", ":100", BOTH},
    {"RESTORE s 0 " HELLO " REPLACE", "+OK", BOTH}, {"TTL s", ":-1", BOTH},
    {"RESTORE s 0 " HELLO " REPLACE ABSTTL", "+OK", BOTH}, {"TTL s", ":-1", BOTH},
    {"RESTORE s " FAR " " HELLO " REPLACE ABSTTL", "+OK", BOTH}, {"PEXPIRETIME s", ":" FAR, BOTH},
    {"RESTORE s 1 " HELLO " REPLACE ABSTTL", "+OK", BOTH}, {"EXISTS s", ":0", BOTH},
    {"RESTORE s 1 " HELLO " ABSTTL", "+OK", BOTH}, {"EXISTS s", ":0", BOTH},
    {"RESTORE s -1 " HELLO, "-ERR Invalid TTL value, must be >= 0", BOTH},
    {"RESTORE s x " HELLO, NOT_INTEGER, BOTH}, {"RESTORE s 1.5 " HELLO, NOT_INTEGER, BOTH},
    {"RESTORE s 0 " WRONG_SUM, BAD_SUM, BOTH}, {"RESTORE s 0 ''", BAD_SUM, BOTH}, {"RESTORE s 0 short", BAD_SUM, BOTH},
    {"RESTORE s 0", ARITY("restore"), BOTH}, {"RESTORE", ARITY("restore"), BOTH},
    {"EXISTS s", ":0", BOTH},
    {"SET kept v", "+OK", BOTH}, {"RESTORE kept 0 " WRONG_SUM " REPLACE", BAD_SUM, BOTH}, {"GET kept", "\"v\"", BOTH},
    {"RESTORE '' 0 " HELLO, "+OK", BOTH}, {"GET ''", "\"hello\"", BOTH},
};

static const struct example options[] = {
    {"RESTORE s 0 " HELLO " IDLETIME 100", "+OK", BOTH}, {"OBJECT IDLETIME s", ":100", BOTH},
    {"RESTORE s 0 " HELLO " REPLACE", "+OK", BOTH}, {"OBJECT IDLETIME s", ":0", BOTH},
    {"RESTORE s 0 " HELLO " REPLACE IDLETIME 0", "+OK", BOTH}, {"OBJECT IDLETIME s", ":0", BOTH},
    {"RESTORE s 0 " HELLO " REPLACE IDLETIME 1000000", "+OK", BOTH}, {"OBJECT IDLETIME s", ":1000000", BOTH},
    {"GET s", "\"hello\"", BOTH}, {"OBJECT IDLETIME s", ":0", BOTH},
    {"RESTORE s 0 " HELLO " REPLACE IDLETIME 5 IDLETIME 70", "+OK", BOTH}, {"OBJECT IDLETIME s", ":70", BOTH},
    {"RESTORE s 0 " HELLO " REPLACE IDLETIME -1", "-ERR Invalid IDLETIME value, must be >= 0", BOTH},
    {"RESTORE s 0 " HELLO " REPLACE IDLETIME x", NOT_INTEGER, BOTH},
    {"RESTORE s 0 " HELLO " REPLACE IDLETIME", SYNTAX, BOTH}, {"RESTORE s 0 " HELLO " FREQ", SYNTAX, BOTH},
    {"RESTORE s 0 " HELLO " REPLACE FREQ 0", "+OK", BOTH}, {"RESTORE s 0 " HELLO " REPLACE FREQ 255", "+OK", BOTH},
    {"RESTORE s 0 " HELLO " REPLACE FREQ 256", "-ERR Invalid FREQ value, must be >= 0 and <= 255", BOTH},
    {"RESTORE s 0 " HELLO " REPLACE FREQ -1", "-ERR Invalid FREQ value, must be >= 0 and <= 255", BOTH},
    {"RESTORE s 0 " HELLO " REPLACE FREQ x", NOT_INTEGER, BOTH},
    {"RESTORE s 0 " HELLO " REPLACE FREQ 5 IDLETIME 5", SYNTAX, BOTH},
    {"RESTORE s 0 " HELLO " REPLACE IDLETIME 5 FREQ 5", SYNTAX, BOTH},
    {"RESTORE s 0 " HELLO " WHAT", SYNTAX, BOTH}, {"RESTORE s 0 " HELLO " REPLACE REPLACE ABSTTL ABSTTL", "+OK", BOTH},
    {"OBJECT IDLETIME s", ":0", BOTH},
};

/* Ours alone: a time to live that leads past 64 bits is refused, where Redis wraps. */
static const struct example own[] = {
    {"RESTORE s 9223372036854775807 " HELLO, "-ERR invalid expire time in 'restore' command", NEW},
    {"RESTORE x 0 " STREAM, "-ERR Bad data format: stream at offset 1: this server has no such type", NEW},
    {"EXISTS s x", ":0", BOTH},
};
/* clang-format on */

static const struct example_group groups[] = {EXAMPLES(dumps), EXAMPLES(restores),
                                              EXAMPLES(options), EXAMPLES(own)};

static void examples_hold_in_resp2(void **state) {
    examples_assert(SERVER_GOBLIN, groups, COUNT(groups), 2);
}

static void examples_hold_in_resp3(void **state) {
    examples_assert(SERVER_GOBLIN, groups, COUNT(groups), 3);
}

static void the_oracle_agrees_with_the_examples(void **state) {
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server to compare with");
    }
    examples_assert(SERVER_ORACLE, groups, COUNT(groups), 2);
}

/* ---- every type, in every direction --------------------------------------------------------- */

static void carry(struct client *from, struct client *to, const char *key) {
    struct reply *payload = client_cmd(from, "DUMP", key, NULL);
    assert_true(payload != NULL && payload->type == '$' && payload->len != 0);
    const char *argv[] = {"RESTORE", key, "0", payload->str};
    struct reply *r =
        client_cmd_argv(to, 4, argv, (const size_t[]){7, strlen(key), 1, payload->len});
    char *text = reply_text(r), *before = value_text(from, key), *after = value_text(to, key);
    if (strcmp(text, "+OK") != 0 || strcmp(before, after) != 0) {
        fail_msg("%s: %s\n  before %.300s\n  after  %.300s", key, text, before, after);
    }
    free(text);
    free(before);
    free(after);
    reply_free(r);
    reply_free(payload);
}

static void carry_all(enum server_kind from_kind, enum server_kind to_kind) {
    if (!server_available(from_kind) || !server_available(to_kind)) {
        TEST_SKIP("no redis-server to exchange payloads with");
    }
    const char *const oracle_args[] = {"--sanitize-dump-payload", "yes", NULL};
    struct server *a = server_start(from_kind, NULL);
    struct server *b = server_start(to_kind, to_kind == SERVER_ORACLE ? oracle_args : NULL);
    struct client *from = server_connect(a), *to = server_connect(b);
    specimens_load(from);
    for (size_t i = 0; i < specimens_count(); i++) {
        carry(from, to, specimen_key(i));
    }
    client_close(from);
    client_close(to);
    server_stop(a);
    server_stop(b);
}

static void redis_takes_our_payloads(void **state) {
    carry_all(SERVER_GOBLIN, SERVER_ORACLE);
}

static void we_take_payloads_of_redis(void **state) {
    carry_all(SERVER_ORACLE, SERVER_GOBLIN);
}

static void we_take_our_own_payloads(void **state) {
    carry_all(SERVER_GOBLIN, SERVER_GOBLIN);
}

/* Every byte of a payload matters. */
static void damaged_payloads_are_refused(void **state) {
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    client_expect(c, ":3", "ZADD", "z", "1", "a", "2.5", "b", "inf", "c", NULL);
    struct reply *payload = client_cmd(c, "DUMP", "z", NULL);
    assert_non_null(payload);
    const char *argv[] = {"RESTORE", "copy", "0", payload->str};
    for (size_t i = 0; i < payload->len; i++) {
        payload->str[i] ^= 0x10;
        struct reply *r = client_cmd_argv(c, 4, argv, (const size_t[]){7, 4, 1, payload->len});
        assert_true(reply_is_error(r));
        reply_free(r);
        payload->str[i] ^= 0x10;
        r = client_cmd_argv(c, 4, argv, (const size_t[]){7, 4, 1, i});
        assert_true(reply_is_error(r));
        reply_free(r);
    }
    client_expect(c, ":0", "EXISTS", "copy", NULL);
    reply_free(client_cmd_argv(c, 4, argv, (const size_t[]){7, 4, 1, payload->len}));
    client_expect(c, ":1", "EXISTS", "copy", NULL);
    reply_free(payload);
    client_close(c);
    server_stop(s);
}

static void serializedlength_is_that_of_the_payload(void **state) {
    const char *const args[] = {"--enable-debug-command", "yes", NULL};
    struct server *s = server_start(SERVER_GOBLIN, args);
    struct client *c = server_connect(s);
    specimens_load(c);
    for (size_t i = 0; i < specimens_count(); i++) {
        const char *key = specimen_key(i);
        struct reply *payload = client_cmd(c, "DUMP", key, NULL);
        struct reply *object = client_cmd(c, "DEBUG", "OBJECT", key, NULL);
        assert_non_null(payload);
        assert_non_null(object);
        const char *at = strstr(object->str, "serializedlength:");
        assert_non_null(at);
        /* type, version and checksum are the payload's alone */
        assert_int_equal(atoll(strchr(at, ':') + 1), payload->len - 11);
        reply_free(payload);
        reply_free(object);
    }
    client_close(c);
    server_stop(s);
}

/* ---- those who wait ------------------------------------------------------------------------- */

static void restore_serves_who_waits(struct scene *s) {
    client_expect(s->writer, ":2", "RPUSH", "l", "a", "b", NULL);
    struct reply *payload = client_cmd(s->writer, "DUMP", "l", NULL);
    assert_non_null(payload);
    client_expect(s->writer, ":1", "DEL", "l", NULL);
    WAIT(s, 0, "BLPOP", "l", "0");
    WAIT(s, 1, "BZPOPMIN", "l", "0");
    await_blocked(s->writer, 2);
    const char *argv[] = {"RESTORE", "l", "0", payload->str};
    struct reply *r = client_cmd_argv(s->writer, 4, argv, (const size_t[]){7, 1, 1, payload->len});
    assert_true(r != NULL && !reply_is_error(r));
    client_expect_next(s->waiters[0], "[\"l\" \"a\"]");
    expect_silence(s->waiters[1]);
    client_expect(s->writer, ":1", "LLEN", "l", NULL);
    reply_free(r);
    reply_free(payload);
}

static const struct scenario scenarios[] = {SCENARIO(restore_serves_who_waits)};

static void waiting_clients_are_served(void **state) {
    scenes_play(SERVER_GOBLIN, scenarios, COUNT(scenarios));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_hold_in_resp2),
        cmocka_unit_test(examples_hold_in_resp3),
        cmocka_unit_test(the_oracle_agrees_with_the_examples),
        cmocka_unit_test(redis_takes_our_payloads),
        cmocka_unit_test(we_take_payloads_of_redis),
        cmocka_unit_test(we_take_our_own_payloads),
        cmocka_unit_test(damaged_payloads_are_refused),
        cmocka_unit_test(serializedlength_is_that_of_the_payload),
        cmocka_unit_test(waiting_clients_are_served),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
