/* SPDX-License-Identifier: BSD-3-Clause */
/* Every command of the server, of keys, strings and hashes by example; support/example.h says how. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "support/example.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* clang-format off */
static const struct example connection[] = {
    {"PING", "+PONG", BOTH}, {"PING hello", "\"hello\"", BOTH}, {"PING a b", ARITY("ping"), BOTH},
    {"ECHO 'a b'", "\"a b\"", BOTH}, {"ECHO", ARITY("echo"), BOTH},
    {"SELECT 1", "+OK", BOTH}, {"SELECT 16", "-ERR DB index is out of range", BOTH},
    {"SELECT x", NOT_INTEGER, BOTH},
    {"CLIENT SETNAME me", "+OK", BOTH}, {"CLIENT GETNAME", "\"me\"", BOTH},
    {"CLIENT SETNAME 'a b'", "-ERR Client names cannot contain spaces, newlines or special characters.", BOTH},
    {"CLIENT SETINFO LIB-NAME lib", "+OK", NEW}, {"CLIENT SETINFO LIB-VER 1.2", "+OK", NEW},
    {"CLIENT SETINFO lib-name 'a b'", "-ERR lib-name cannot contain spaces, newlines or special characters.", NEW},
    {"CLIENT SETINFO FOO x", "-ERR Unrecognized option 'FOO'", NEW},
    {"CLIENT ID", ANY, BOTH}, {"CLIENT INFO", ANY, BOTH}, {"CLIENT LIST", ANY, BOTH}, {"CLIENT HELP", ANY, BOTH},
    {"CLIENT KILL ID 123456789", ":0", BOTH}, {"CLIENT KILL 1.2.3.4:5", "-ERR No such client", BOTH},
    {"CLIENT NOSUCH", "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.", BOTH},
    {"CLIENT SETNAME", ARITY("client|setname"), BOTH},
    {"AUTH x", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?", BOTH},
    {"AUTH default x", "+OK", BOTH}, {"AUTH nobody x", "-WRONGPASS invalid username-password pair or user is disabled.", BOTH},
    {"HELLO 4", "-NOPROTO unsupported protocol version", BOTH},
    {"HELLO x", "-ERR Protocol version is not an integer or out of range", BOTH},
    {"HELLO", ANY, BOTH},
    {"nosuch a b", "-ERR unknown command 'nosuch', with args beginning with: 'a' 'b' ", BOTH},
    {"RESET", "+RESET", BOTH}, {"CLIENT GETNAME", "nil", BOTH},
};

static const struct example server_commands[] = {
    {"COMMAND COUNT", ANY, BOTH}, {"COMMAND", ANY, BOTH}, {"COMMAND DOCS", ANY, BOTH}, {"COMMAND LIST", ANY, BOTH},
    {"COMMAND INFO nosuch", "[nil]", RESP2}, {"COMMAND INFO nosuch", "[null]", RESP3},
    {"COMMAND GETKEYS MSET a 1 b 2", "[\"a\" \"b\"]", BOTH},
    {"COMMAND GETKEYS PING x", "-ERR The command has no key arguments", BOTH},
    {"COMMAND GETKEYS nosuch x", "-ERR Invalid command specified", BOTH},
    {"COMMAND GETKEYSANDFLAGS SET k v", "[[\"k\" [+OW +update]]]", RESP2},
    {"COMMAND GETKEYSANDFLAGS SET k v", "[[\"k\" ~[+OW +update]]]", RESP3},
    {"COMMAND LIST FILTERBY PATTERN hstrl*", "[\"hstrlen\"]", BOTH},
    {"CONFIG GET databases", "[\"databases\" \"16\"]", RESP2}, {"CONFIG GET databases", "{\"databases\" \"16\"}", RESP3},
    {"CONFIG GET nosuch", "[]", RESP2}, {"CONFIG GET nosuch", "{}", RESP3},
    {"CONFIG SET timeout 0", "+OK", BOTH},
    {"CONFIG SET nosuch 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'", BOTH},
    {"INFO", ANY, BOTH}, {"INFO memory", ANY, BOTH}, {"INFO keyspace server", ANY, BOTH}, {"INFO everything", ANY, BOTH},
    {"DBSIZE", ":0", BOTH}, {"SET a 1", "+OK", BOTH}, {"DBSIZE", ":1", BOTH},
    {"SWAPDB 0 1", "+OK", BOTH}, {"DBSIZE", ":0", BOTH}, {"SWAPDB 0 99", "-ERR DB index is out of range", BOTH},
    {"SWAPDB x 0", "-ERR invalid first DB index", BOTH}, {"SWAPDB 0 x", "-ERR invalid second DB index", BOTH},
    {"FLUSHDB", "+OK", BOTH}, {"FLUSHALL ASYNC", "+OK", BOTH}, {"FLUSHALL SYNC", "+OK", BOTH}, {"FLUSHDB X", SYNTAX, BOTH},
    {"TIME", ANY, BOTH}, {"SET n 12", "+OK", BOTH}, {"SET e short", "+OK", BOTH},
    {"MEMORY STATS", ANY, BOTH}, {"MEMORY DOCTOR", ANY, BOTH}, {"MEMORY MALLOC-STATS", ANY, BOTH}, {"MEMORY PURGE", "+OK", BOTH},
    {"MEMORY HELP", ANY, BOTH}, {"MEMORY STATS x", ARITY("memory|stats"), BOTH}, {"MEMORY DOCTOR x", ARITY("memory|doctor"), BOTH},
    {"MEMORY USAGE n", ANY, BOTH}, {"MEMORY USAGE none", "nil", RESP2}, {"MEMORY USAGE none", "null", RESP3},
    {"OBJECT ENCODING n", "\"int\"", BOTH}, {"OBJECT ENCODING e", "\"embstr\"", BOTH},
    {"OBJECT ENCODING none", "nil", RESP2}, {"OBJECT IDLETIME n", ANY, BOTH}, {"OBJECT REFCOUNT e", ":1", BOTH},
    {"OBJECT HELP", ANY, BOTH}, {"DEBUG SLEEP 0", "+OK", BOTH}, {"DEBUG SET-ACTIVE-EXPIRE 1", "+OK", BOTH},
    {"SHUTDOWN NOSUCH", SYNTAX, BOTH},
};

static const struct example keys[] = {
    {"MSET a 1 b 2 c 3", "+OK", BOTH}, {"EXISTS a b a none", ":3", BOTH}, {"TOUCH a none", ":1", BOTH},
    {"TYPE a", "+string", BOTH}, {"TYPE none", "+none", BOTH}, {"DEL a none", ":1", BOTH}, {"UNLINK b", ":1", BOTH},
    {"RENAME c d", "+OK", BOTH}, {"RENAME none d", "-ERR no such key", BOTH}, {"RENAMENX d d", ":0", BOTH},
    {"COPY d e", ":1", BOTH}, {"COPY d e", ":0", BOTH}, {"COPY d e REPLACE", ":1", BOTH},
    {"COPY d d", "-ERR source and destination objects are the same", BOTH}, {"COPY d d DB 2", ":1", BOTH},
    {"MOVE e 1", ":1", BOTH}, {"MOVE e 0", "-ERR source and destination objects are the same", BOTH}, {"MOVE none 1", ":0", BOTH},
    {"KEYS *", "[\"d\"]", BOTH}, {"KEYS x*", "[]", BOTH}, {"SCAN 0", "[\"0\" [\"d\"]]", BOTH},
    {"RANDOMKEY", "\"d\"", BOTH}, {"SCAN x", "-ERR invalid cursor", BOTH}, {"SCAN 0 COUNT 0", SYNTAX, BOTH},
    {"EXPIRE d 100", ":1", BOTH}, {"TTL d", ":100", BOTH}, {"EXPIRE d 50 GT", ":0", BOTH}, {"EXPIRE d 50 LT", ":1", BOTH},
    {"EXPIRE d 100 NX", ":0", BOTH}, {"EXPIRE d 100 XX", ":1", BOTH},
    {"EXPIRE d 1 NX GT", "-ERR NX and XX, GT or LT options at the same time are not compatible", BOTH},
    {"EXPIRE d 1 GT LT", "-ERR GT and LT options at the same time are not compatible", BOTH},
    {"EXPIRE d 1 FOO", "-ERR Unsupported option FOO", BOTH},
    {"EXPIRE d 9223372036854775807", "-ERR invalid expire time in 'expire' command", BOTH},
    {"PEXPIRE d 100000", ":1", BOTH}, {"PTTL d", ANY, BOTH}, {"EXPIREAT d 33177117420", ":1", BOTH},
    {"EXPIRETIME d", ":33177117420", BOTH}, {"PEXPIREAT d 33177117420001", ":1", BOTH}, {"PEXPIRETIME d", ":33177117420001", BOTH},
    {"PERSIST d", ":1", BOTH}, {"PERSIST d", ":0", BOTH}, {"TTL d", ":-1", BOTH}, {"TTL none", ":-2", BOTH},
    {"EXPIRE d -1", ":1", BOTH}, {"EXISTS d", ":0", BOTH},
};

static const struct example strings[] = {
    {"SET k v", "+OK", BOTH}, {"GET k", "\"v\"", BOTH}, {"GET none", "nil", RESP2}, {"GET none", "null", RESP3},
    {"SET k w NX", "nil", RESP2}, {"SET k w NX", "null", RESP3}, {"SET k w XX", "+OK", BOTH},
    {"SET k x GET", "\"w\"", BOTH}, {"SET k y NX GET", "\"x\"", BOTH}, {"SET k v EX 0", "-ERR invalid expire time in 'set' command", BOTH},
    {"SET k v EX 10 PX 10", SYNTAX, BOTH}, {"SET k v EX x", NOT_INTEGER, BOTH}, {"SET k v EX 100", "+OK", BOTH},
    {"SET k v KEEPTTL", "+OK", BOTH}, {"TTL k", ":100", BOTH}, {"SET k v", "+OK", BOTH}, {"TTL k", ":-1", BOTH},
    {"SETNX k z", ":0", BOTH}, {"SETNX l z", ":1", BOTH}, {"SETEX k 10 v", "+OK", BOTH}, {"PSETEX k 0 v", "-ERR invalid expire time in 'psetex' command", BOTH},
    {"GETSET k new", "\"v\"", BOTH}, {"GETDEL k", "\"new\"", BOTH}, {"EXISTS k", ":0", BOTH},
    {"SET k v", "+OK", BOTH}, {"GETEX k EX 50", "\"v\"", BOTH}, {"TTL k", ":50", BOTH}, {"GETEX k PERSIST", "\"v\"", BOTH},
    {"MGET k none l", "[\"v\" nil \"z\"]", RESP2}, {"MGET k none l", "[\"v\" null \"z\"]", RESP3},
    {"MSET a 1 b", ARITY("mset"), BOTH}, {"MSETNX a 1 k 2", ":0", BOTH}, {"MSETNX m 1 n 2", ":1", BOTH},
    {"APPEND k w", ":2", BOTH}, {"STRLEN k", ":2", BOTH}, {"GETRANGE k 0 -1", "\"vw\"", BOTH}, {"SUBSTR k 1 1", "\"w\"", BOTH},
    {"SETRANGE k 4 z", ":5", BOTH}, {"GET k", "\"vw\\x00\\x00z\"", BOTH}, {"SETRANGE k -1 z", "-ERR offset is out of range", BOTH},
    {"SETRANGE k 536870912 z", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)", BOTH},
    {"INCR i", ":1", BOTH}, {"INCRBY i 41", ":42", BOTH}, {"DECR i", ":41", BOTH}, {"DECRBY i 1", ":40", BOTH}, {"INCR k", NOT_INTEGER, BOTH},
    {"SET i 9223372036854775807", "+OK", BOTH}, {"INCR i", "-ERR increment or decrement would overflow", BOTH},
    {"DECRBY i -9223372036854775808", "-ERR decrement would overflow", BOTH},
    {"SET f 10.5", "+OK", BOTH}, {"INCRBYFLOAT f 0.1", "\"10.6\"", BOTH}, {"SET f 5.0e3", "+OK", BOTH}, {"INCRBYFLOAT f 2.0e2", "\"5200\"", BOTH},
    {"INCRBYFLOAT f nan", "-ERR value is not a valid float", BOTH}, {"INCRBYFLOAT f inf", "-ERR increment would produce NaN or Infinity", BOTH},
    {"MSET x ohmytext y mynewtext", "+OK", BOTH}, {"LCS x y", "\"mytext\"", BOTH}, {"LCS x y LEN", ":6", BOTH},
    {"LCS x y IDX MINMATCHLEN 4 WITHMATCHLEN", "[\"matches\" [[[:4 :7] [:5 :8] :4]] \"len\" :6]", RESP2},
    {"LCS x y IDX MINMATCHLEN 4 WITHMATCHLEN", "{\"matches\" [[[:4 :7] [:5 :8] :4]] \"len\" :6}", RESP3},
    {"HSET h f v", ":1", BOTH}, {"GET h", WRONGTYPE, BOTH}, {"APPEND h x", WRONGTYPE, BOTH}, {"SET h v GET", WRONGTYPE, BOTH}, {"MGET h", "[nil]", RESP2},
};

static const struct example hashes[] = {
    {"HSET h a 1 b 2", ":2", BOTH}, {"HSET h a 3 c 4", ":1", BOTH}, {"HSET h a", ARITY("hset"), BOTH}, {"HSET h a 1 b", ARITY("hset"), BOTH},
    {"HMSET h d 5", "+OK", BOTH}, {"HSETNX h a 9", ":0", BOTH}, {"HSETNX h e 6", ":1", BOTH},
    {"HGET h a", "\"3\"", BOTH}, {"HGET h z", "nil", RESP2}, {"HGET h z", "null", RESP3},
    {"HMGET h a z", "[\"3\" nil]", RESP2}, {"HMGET none a", "[null]", RESP3},
    {"HDEL h b c d e z", ":4", BOTH}, {"HLEN h", ":1", BOTH}, {"HEXISTS h a", ":1", BOTH}, {"HSTRLEN h a", ":1", BOTH}, {"HSTRLEN h z", ":0", BOTH},
    {"HGETALL h", "[\"a\" \"3\"]", RESP2}, {"HGETALL h", "{\"a\" \"3\"}", RESP3}, {"HGETALL none", "[]", RESP2}, {"HGETALL none", "{}", RESP3},
    {"HKEYS h", "[\"a\"]", BOTH}, {"HVALS h", "[\"3\"]", BOTH}, {"HINCRBY h a 4", ":7", BOTH}, {"HINCRBY h s x", NOT_INTEGER, BOTH},
    {"HSET h s text", ":1", BOTH}, {"HINCRBY h s 1", "-ERR hash value is not an integer", BOTH}, {"HINCRBYFLOAT h s 1", "-ERR hash value is not a float", BOTH},
    {"HINCRBYFLOAT h a 0.5", "\"7.5\"", BOTH}, {"HDEL h s", ":1", BOTH},
    {"HRANDFIELD h", "\"a\"", BOTH}, {"HRANDFIELD h 5", "[\"a\"]", BOTH}, {"HRANDFIELD h -3", "[\"a\" \"a\" \"a\"]", BOTH},
    {"HRANDFIELD h 1 WITHVALUES", "[\"a\" \"7.5\"]", RESP2}, {"HRANDFIELD h 1 WITHVALUES", "[[\"a\" \"7.5\"]]", RESP3}, {"HRANDFIELD none 3", "[]", BOTH},
    {"HSCAN h 0", "[\"0\" [\"a\" \"7.5\"]]", BOTH}, {"HSCAN h 0 NOVALUES", "[\"0\" [\"a\"]]", NEW}, {"HSCAN h x", "-ERR invalid cursor", BOTH},
    {"OBJECT ENCODING h", "\"listpack\"", BOTH}, {"TYPE h", "+hash", BOTH}, {"HDEL h a", ":1", BOTH}, {"EXISTS h", ":0", BOTH},
    {"SET s v", "+OK", BOTH}, {"HGET s a", WRONGTYPE, BOTH}, {"HSET s a 1", WRONGTYPE, BOTH}, {"HGETALL s", WRONGTYPE, BOTH}, {"HINCRBY s a 1", WRONGTYPE, BOTH},
};
/* clang-format on */

static const struct example_group groups[] = {
    EXAMPLES(connection), EXAMPLES(server_commands), EXAMPLES(keys),
    EXAMPLES(strings),    EXAMPLES(hashes),
};

/* ---- running them ---- */

static void run_all(enum server_kind kind, int protocol) {
    struct server *s = server_start(kind, NULL);
    int wrong = examples_run(s, groups, COUNT(groups), protocol);
    server_stop(s);
    assert_int_equal(wrong, 0);
}

static void examples_hold_in_resp2(void **state) {
    (void)state;
    run_all(SERVER_GOBLIN, 2);
}

static void examples_hold_in_resp3(void **state) {
    (void)state;
    run_all(SERVER_GOBLIN, 3);
}

static void the_oracle_agrees_with_the_examples(void **state) {
    (void)state;
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server to compare with");
    }
    run_all(SERVER_ORACLE, 2);
    run_all(SERVER_ORACLE, 3);
}

/* ---- a client library ---- */

static void hiredis_talks_to_it(void **state) {
    (void)state;
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    redisContext *c = redisConnect("127.0.0.1", s->port);
    assert_non_null(c);
    assert_int_equal(c->err, 0);
    redisReply *r = redisCommand(c, "SET %b %b", "k\0y", (size_t)3, "v\0l", (size_t)3);
    assert_non_null(r);
    assert_int_equal(r->type, REDIS_REPLY_STATUS);
    freeReplyObject(r);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(redisAppendCommand(c, "HSET h f%d %d", i, i), REDIS_OK);
    }
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(redisGetReply(c, (void **)&r), REDIS_OK);
        assert_int_equal(r->integer, 1);
        freeReplyObject(r);
    }
    r = redisCommand(c, "HGETALL h");
    assert_non_null(r);
    assert_int_equal(r->type, REDIS_REPLY_ARRAY);
    assert_int_equal(r->elements, 2000);
    freeReplyObject(r);
    redisFree(c);
    server_stop(s);
}

static void info_counts_what_is_sent(void **state) {
    (void)state;
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    client_expect(c, "+OK", "CONFIG", "RESETSTAT", NULL);
    client_expect(c, "\"0123456789\"", "ECHO", "0123456789", NULL);
    /* +OK, and $10 with its bytes: what INFO itself answers is sent later */
    assert_int_equal(client_info_number(c, "stats", "total_net_output_bytes"), 5 + 5 + 12);
    assert_int_equal(client_info_number(c, "stats", "total_writes_processed"), 3);
    client_close(c);
    server_stop(s);
}

/* SHUTDOWN ends the process with status 0; a second one on a pipeline is never executed. */
static void shutdown_ends_the_server(void **state) {
    (void)state;
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    client_append(c, "SHUTDOWN", "NOSAVE", NULL);
    assert_true(client_flush(c));
    assert_true(client_wait_closed(c, 10000));
    client_close(c);
    server_stop(s); /* checks the exit status; the signal finds nobody */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_hold_in_resp2),
        cmocka_unit_test(examples_hold_in_resp3),
        cmocka_unit_test(the_oracle_agrees_with_the_examples),
        cmocka_unit_test(hiredis_talks_to_it),
        cmocka_unit_test(info_counts_what_is_sent),
        cmocka_unit_test(shutdown_ends_the_server),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
