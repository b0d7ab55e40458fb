/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets by example (support/example.h), large ones beside the oracle, and whether chance is fair. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/example.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define OUT_OF_LONG                                                                                \
    "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
#define NOT_POSITIVE "-ERR value is out of range, must be positive"

enum { LARGE = 20000, PIPELINE = 500 };

/* clang-format off */
static const struct example adding[] = {
    {"SADD a 3 1 2 3", ":3", BOTH}, {"SADD a 1 4", ":1", BOTH}, {"SCARD a", ":4", BOTH}, {"SCARD none", ":0", BOTH},
    {"OBJECT ENCODING a", "\"intset\"", BOTH}, {"TYPE a", "+set", BOTH},
    {"SMEMBERS a", "[\"1\" \"2\" \"3\" \"4\"]", RESP2}, {"SMEMBERS a", "~[\"1\" \"2\" \"3\" \"4\"]", RESP3},
    {"SMEMBERS none", "[]", RESP2}, {"SMEMBERS none", "~[]", RESP3},
    {"SADD a 01 +1 -0", ":3", BOTH}, {"SISMEMBER a 1", ":1", BOTH}, {"SISMEMBER a 0", ":0", BOTH}, {"SISMEMBER a -0", ":1", BOTH},
    {"OBJECT ENCODING a", "\"listpack\"", RESP2_NEW}, {"SISMEMBER none x", ":0", BOTH},
    {"SADD ends 9223372036854775807 -9223372036854775808 0 70000", ":4", BOTH},
    {"SMEMBERS ends", "[\"-9223372036854775808\" \"0\" \"70000\" \"9223372036854775807\"]", RESP2},
    {"SADD ends 9223372036854775808", ":1", BOTH}, {"SMISMEMBER ends 0 1 9223372036854775808 70000", "[:1 :0 :1 :1]", BOTH},
    {"SMISMEMBER none a b", "[:0 :0]", BOTH}, {"SMISMEMBER a", ARITY("smismember"), BOTH},
    {"SADD bin '' \\x00 \\x00\\xff a\\x0d\\x0ab ''", ":4", BOTH}, {"SMISMEMBER bin '' \\x00 \\x00\\xfe a\\x0d\\x0ab", "[:1 :1 :0 :1]", BOTH},
    {"SREM bin \\x00 nobody '' ''", ":2", BOTH}, {"SCARD bin", ":2", BOTH}, {"SREM bin \\x00\\xff a\\x0d\\x0ab", ":2", BOTH},
    {"EXISTS bin", ":0", BOTH}, {"SREM none x", ":0", BOTH}, {"SREM a", ARITY("srem"), BOTH}, {"SADD a", ARITY("sadd"), BOTH},
    {"SREM a 2 3 zz", ":2", BOTH}, {"SCARD a", ":5", BOTH},
    {"SET s v", "+OK", BOTH}, {"SADD s 1", WRONGTYPE, BOTH}, {"SREM s 1", WRONGTYPE, BOTH}, {"SCARD s", WRONGTYPE, BOTH},
    {"SISMEMBER s 1", WRONGTYPE, BOTH}, {"SMISMEMBER s 1", WRONGTYPE, BOTH}, {"SMEMBERS s", WRONGTYPE, BOTH},
    {"GET a", WRONGTYPE, BOTH}, {"ZSCORE a 1", WRONGTYPE, BOTH},
};

static const struct example moving[] = {
    {"SADD a 1 2 x", ":3", BOTH}, {"SADD b 2", ":1", BOTH}, {"SMOVE a b 1", ":1", BOTH}, {"SMOVE a b 1", ":0", BOTH},
    {"SMOVE a b 2", ":1", BOTH}, {"SCARD a", ":1", BOTH}, {"SCARD b", ":2", BOTH}, {"SMOVE a c x", ":1", BOTH},
    {"EXISTS a", ":0", BOTH}, {"SISMEMBER c x", ":1", BOTH}, {"SMOVE none b 1", ":0", BOTH}, {"SMOVE b b 1", ":1", BOTH},
    {"SMOVE b b 9", ":0", BOTH}, {"SCARD b", ":2", BOTH}, {"SET s v", "+OK", BOTH}, {"SMOVE s b 1", WRONGTYPE, BOTH},
    {"SMOVE b s 1", WRONGTYPE, BOTH}, {"SMOVE b s 77", WRONGTYPE, BOTH}, {"SMOVE none s 1", ":0", BOTH},
    {"SMOVE b c", ARITY("smove"), BOTH},
};

static const struct example choosing[] = {
    {"SPOP none", "nil", RESP2}, {"SPOP none", "null", RESP3}, {"SPOP none 3", "[]", RESP2}, {"SPOP none 3", "~[]", RESP3},
    {"SADD one x", ":1", BOTH}, {"SPOP one 0", "[]", RESP2}, {"SPOP one 0", "~[]", RESP3}, {"SPOP one -1", NOT_POSITIVE, BOTH},
    {"SPOP one x", NOT_POSITIVE, BOTH}, {"SPOP one 1 2", SYNTAX, BOTH}, {"SPOP none -1", NOT_POSITIVE, BOTH},
    {"SRANDMEMBER one", "\"x\"", BOTH}, {"SRANDMEMBER one 5", "[\"x\"]", BOTH}, {"SRANDMEMBER one -3", "[\"x\" \"x\" \"x\"]", BOTH},
    {"SRANDMEMBER one 0", "[]", BOTH}, {"SRANDMEMBER none", "nil", RESP2}, {"SRANDMEMBER none", "null", RESP3},
    {"SRANDMEMBER none 3", "[]", BOTH}, {"SRANDMEMBER none -3", "[]", BOTH}, {"SRANDMEMBER one x", NOT_INTEGER, BOTH},
    {"SRANDMEMBER one -9223372036854775808", OUT_OF_LONG, BOTH}, {"SRANDMEMBER one 1 2", SYNTAX, BOTH},
    {"SPOP one", "\"x\"", BOTH}, {"EXISTS one", ":0", BOTH}, {"SADD two 5 5", ":1", BOTH}, {"SPOP two 9223372036854775807", "[\"5\"]", RESP2},
    {"SPOP two 9223372036854775807", "~[\"5\"]", RESP3}, {"EXISTS two", ":0", BOTH}, {"SET s v", "+OK", BOTH},
    {"SPOP s", WRONGTYPE, BOTH}, {"SPOP s 1", WRONGTYPE, BOTH}, {"SPOP s 0", WRONGTYPE, BOTH}, {"SRANDMEMBER s", WRONGTYPE, BOTH},
    {"SRANDMEMBER s 0", WRONGTYPE, BOTH},
    {"SADD kept 1 2 3", ":3", BOTH}, {"EXPIRE kept 1000", ":1", BOTH}, {"SPOP kept 2", ANY, BOTH}, {"TTL kept", ":1000", BOTH},
    {"SADD all a b c", ":3", BOTH}, {"SPOP all 3", ANY, BOTH}, {"EXISTS all", ":0", BOTH},
};

static const struct example walking[] = {
    {"SADD one x", ":1", BOTH}, {"SSCAN one 0", "[\"0\" [\"x\"]]", BOTH}, {"SSCAN none 0", "[\"0\" []]", BOTH},
    {"SADD a 1 2 11", ":3", BOTH}, {"SSCAN a 0 MATCH 1*", "[\"0\" [\"1\" \"11\"]]", BOTH},
    {"SSCAN a 0 COUNT 1", "[\"0\" [\"1\" \"2\" \"11\"]]", BOTH}, {"SSCAN a 0 MATCH zz COUNT 5", "[\"0\" []]", BOTH},
    {"SSCAN a x", "-ERR invalid cursor", BOTH}, {"SSCAN a 0 COUNT 0", SYNTAX, BOTH}, {"SSCAN a 0 COUNT x", NOT_INTEGER, BOTH},
    {"SSCAN a 0 FOO", SYNTAX, BOTH}, {"SSCAN a 0 NOVALUES", SYNTAX, BOTH}, {"SET s v", "+OK", BOTH}, {"SSCAN s 0", WRONGTYPE, BOTH},
};

static const struct example algebra[] = {
    {"SADD a 1 2 3 4", ":4", BOTH}, {"SADD b 3 4 5", ":3", BOTH}, {"SADD c 4 x", ":2", BOTH}, {"SET s v", "+OK", BOTH},
    {"SINTER a b", "[\"3\" \"4\"]", RESP2}, {"SINTER a b", "~[\"3\" \"4\"]", RESP3}, {"SINTER a b c", "[\"4\"]", RESP2},
    {"SINTER a", "[\"1\" \"2\" \"3\" \"4\"]", RESP2}, {"SINTER a none", "[]", RESP2}, {"SINTER a none", "~[]", RESP3},
    {"SINTER a s", WRONGTYPE, BOTH}, {"SINTER none s", WRONGTYPE, BOTH}, {"SINTER none", "[]", RESP2},
    {"SUNION a b", "[\"1\" \"2\" \"3\" \"4\" \"5\"]", RESP2}, {"SUNION a b", "~[\"1\" \"2\" \"3\" \"4\" \"5\"]", RESP3},
    {"SUNION none a", "[\"1\" \"2\" \"3\" \"4\"]", RESP2}, {"SUNION none", "[]", RESP2}, {"SUNION none", "~[]", RESP3},
    {"SUNION a s", WRONGTYPE, BOTH}, {"SDIFF a b", "[\"1\" \"2\"]", RESP2}, {"SDIFF a b", "~[\"1\" \"2\"]", RESP3},
    {"SDIFF a none", "[\"1\" \"2\" \"3\" \"4\"]", RESP2}, {"SDIFF none a", "[]", RESP2}, {"SDIFF a a", "[]", RESP2},
    {"SDIFF b a c none", "[\"5\"]", RESP2}, {"SDIFF none s", WRONGTYPE, BOTH}, {"SDIFF", ARITY("sdiff"), BOTH},
    {"SINTERCARD 2 a b", ":2", BOTH}, {"SINTERCARD 2 a b LIMIT 1", ":1", BOTH}, {"SINTERCARD 2 a b LIMIT 0", ":2", BOTH},
    {"SINTERCARD 2 a b LIMIT 9", ":2", BOTH}, {"SINTERCARD 2 a b limit 9 LIMIT 1", ":1", BOTH}, {"SINTERCARD 2 a none", ":0", BOTH},
    {"SINTERCARD 0 a", "-ERR numkeys should be greater than 0", BOTH}, {"SINTERCARD x a", "-ERR numkeys should be greater than 0", BOTH},
    {"SINTERCARD 3 a b", "-ERR Number of keys can't be greater than number of args", BOTH}, {"SINTERCARD 1 a b", SYNTAX, BOTH},
    {"SINTERCARD 2 a b LIMIT", SYNTAX, BOTH}, {"SINTERCARD 2 a b LIMIT -1", "-ERR LIMIT can't be negative", BOTH},
    {"SINTERCARD 2 a b LIMIT x", "-ERR LIMIT can't be negative", BOTH}, {"SINTERCARD 2 a s", WRONGTYPE, BOTH}, {"SINTERCARD 1", ARITY("sintercard"), BOTH},
    {"SINTERSTORE d a b", ":2", BOTH}, {"SMEMBERS d", "[\"3\" \"4\"]", RESP2}, {"OBJECT ENCODING d", "\"intset\"", BOTH},
    {"EXPIRE d 100", ":1", BOTH}, {"SUNIONSTORE d a b c", ":6", BOTH}, {"TTL d", ":-1", BOTH}, {"SISMEMBER d x", ":1", BOTH},
    {"SDIFFSTORE d d a b", ":1", BOTH}, {"SMEMBERS d", "[\"x\"]", RESP2}, {"SDIFFSTORE d d c", ":0", BOTH}, {"EXISTS d", ":0", BOTH},
    {"SUNIONSTORE s s", WRONGTYPE, BOTH}, {"SINTERSTORE s a none", ":0", BOTH}, {"EXISTS s", ":0", BOTH}, {"SET s v", "+OK", BOTH},
    {"SUNIONSTORE s a", ":4", BOTH}, {"TYPE s", "+set", BOTH}, {"SINTERSTORE a a b", ":2", BOTH}, {"SCARD a", ":2", BOTH},
    {"SDIFFSTORE none none", ":0", BOTH}, {"SINTERSTORE d", ARITY("sinterstore"), BOTH}, {"SUNIONSTORE", ARITY("sunionstore"), BOTH},
    {"SINTERSTORE empty a none", ":0", BOTH},
};

/* Members of sets score 1 in commands on sorted sets. */
static const struct example mixed[] = {
    {"SADD ints 1 2 300000", ":3", BOTH}, {"SADD words a b", ":2", BOTH}, {"ZADD z 5 a 7 1 9 z", ":3", BOTH}, {"SET s v", "+OK", BOTH},
    {"ZUNION 2 ints z WITHSCORES", "[\"2\" \"1\" \"300000\" \"1\" \"a\" \"5\" \"1\" \"8\" \"z\" \"9\"]", RESP2},
    {"ZUNION 2 ints z WITHSCORES", "[[\"2\" ,1] [\"300000\" ,1] [\"a\" ,5] [\"1\" ,8] [\"z\" ,9]]", RESP3},
    {"ZINTER 2 words z WITHSCORES WEIGHTS 10 1", "[\"a\" \"15\"]", RESP2}, {"ZINTER 2 z words", "[\"a\"]", BOTH},
    {"ZINTER 2 z ints AGGREGATE MIN WITHSCORES", "[\"1\" \"1\"]", RESP2}, {"ZDIFF 2 words z", "[\"b\"]", BOTH},
    {"ZDIFF 3 ints z none WITHSCORES", "[\"2\" \"1\" \"300000\" \"1\"]", RESP2}, {"ZDIFF 2 z ints", "[\"a\" \"z\"]", BOTH},
    {"ZINTERCARD 2 words z", ":1", BOTH}, {"ZINTERCARD 2 ints ints", ":3", BOTH}, {"ZUNIONSTORE d 3 ints words ints", ":5", BOTH},
    {"ZRANGE d 0 -1 WITHSCORES", "[\"a\" \"1\" \"b\" \"1\" \"1\" \"2\" \"2\" \"2\" \"300000\" \"2\"]", RESP2},
    {"ZINTERSTORE d 2 ints ints WEIGHTS 2 3", ":3", BOTH}, {"ZSCORE d 300000", "\"5\"", RESP2}, {"ZDIFFSTORE ints 1 ints", ":3", BOTH},
    {"TYPE ints", "+zset", BOTH}, {"ZUNION 2 words s", WRONGTYPE, BOTH}, {"ZRANGESTORE d words 0 -1", WRONGTYPE, BOTH},
    {"SUNION words z", WRONGTYPE, BOTH}, {"SINTERSTORE d words z", WRONGTYPE, BOTH},
};
/* clang-format on */

static const struct example_group groups[] = {
    EXAMPLES(adding),  EXAMPLES(moving),  EXAMPLES(choosing),
    EXAMPLES(walking), EXAMPLES(algebra), EXAMPLES(mixed),
};

static void examples_hold_in_resp2(void **state) {
    (void)state;
    examples_assert(SERVER_GOBLIN, groups, COUNT(groups), 2);
}

static void examples_hold_in_resp3(void **state) {
    (void)state;
    examples_assert(SERVER_GOBLIN, groups, COUNT(groups), 3);
}

static void the_oracle_agrees_with_the_examples(void **state) {
    (void)state;
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server to compare with");
    }
    examples_assert(SERVER_ORACLE, groups, COUNT(groups), 2);
    examples_assert(SERVER_ORACLE, groups, COUNT(groups), 3);
}

/* ---- loading ---- */

/* Members prefix<i>, i from `from` on by `step`, below `to`. */
static void load(struct client *c, const char *key, const char *prefix, unsigned from, unsigned to,
                 unsigned step) {
    for (unsigned i = from; i < to;) {
        unsigned n = 0;
        for (; n < PIPELINE && i < to; n++, i += step) {
            char member[64];
            snprintf(member, sizeof(member), "%s%u", prefix, i);
            client_append(c, "SADD", key, member, NULL);
        }
        assert_true(client_flush(c));
        while (n-- > 0) {
            struct reply *r = client_read(c);
            assert_true(r && r->type == ':' && r->integer == 1);
            reply_free(r);
        }
    }
}

/* ---- large sets ---- */

static const char *const large_lines[] = {
    "SCARD big",
    "SMEMBERS big",
    "SINTER big odd",
    "SINTER big odd third",
    "SINTER small big odd",
    "SINTER ints bigints",
    "SINTERCARD 2 big odd",
    "SINTERCARD 3 big odd third LIMIT 100",
    "SINTERCARD 2 bigints ints LIMIT 5",
    "SUNION odd third",
    "SUNION ints small third",
    "SUNION bigints ints",
    "SDIFF big odd",
    "SDIFF big odd third small",
    "SDIFF big small small2 ints none",
    "SDIFF small big",
    "SDIFF third big",
    "SUNIONSTORE u big odd third ints",
    "SMEMBERS u",
    "SINTERSTORE i big third",
    "SMEMBERS i",
    "SDIFFSTORE d big third odd",
    "SMEMBERS d",
    "SDIFFSTORE d big small small2 ints",
    "SCARD d",
    "SDIFFSTORE big big odd",
    "SMEMBERS big",
    "SUNIONSTORE ints ints bigints",
    "OBJECT ENCODING ints",
    "SINTERSTORE few ints small",
    "SCARD few",
    "SINTERSTORE few bigints ints",
    "SCARD few",
    "ZUNIONSTORE z 3 third small bigints WEIGHTS 1 2 3",
    "ZRANGE z 0 -1 WITHSCORES",
    "ZINTERSTORE z 2 z bigints",
    "ZRANGE z 0 -1 WITHSCORES",
    "ZDIFF 2 third big",
    "SPOP third 1000000",
    "EXISTS third",
};

static char *answer(struct client *c, const char *text) {
    char *line = strdup(text);
    const char *argv[16];
    size_t lens[16];
    int argc = example_split(line, argv, lens, 16);
    struct reply *r = client_cmd_argv(c, argc, argv, lens);
    if (reply_is_aggregate(r) && line[0] == 'S') {
        reply_sort(r, 1);
    }
    char *reply = reply_text(r);
    reply_free(r);
    free(line);
    return reply;
}

static void load_all(struct client *c) {
    load(c, "big", "member:", 0, LARGE, 1);
    load(c, "odd", "member:", 1, LARGE + 5000, 2);
    load(c, "third", "member:", 0, LARGE + 9000, 3);
    load(c, "small", "member:", LARGE - 50, LARGE + 50, 1);
    load(c, "small2", "member:", 100, 160, 2);
    load(c, "ints", "", 400, 700, 1);
    load(c, "bigints", "", 0, 3000, 7);
}

static void large_sets_answer_as_the_oracles(void **state) {
    (void)state;
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server to compare with");
    }
    struct server *servers[2] = {server_start(SERVER_ORACLE, NULL),
                                 server_start(SERVER_GOBLIN, NULL)};
    struct client *clients[2];
    int wrong = 0;
    for (int i = 0; i < 2; i++) {
        clients[i] = server_connect(servers[i]);
        load_all(clients[i]);
    }
    for (size_t i = 0; i < COUNT(large_lines); i++) {
        char *text[2] = {answer(clients[0], large_lines[i]), answer(clients[1], large_lines[i])};
        if (strcmp(text[0], text[1]) != 0) {
            fprintf(stderr, "%s\n  oracle %.1000s\n  ours   %.1000s\n", large_lines[i], text[0],
                    text[1]);
            wrong++;
        }
        free(text[0]);
        free(text[1]);
    }
    for (int i = 0; i < 2; i++) {
        client_close(clients[i]);
        server_stop(servers[i]);
    }
    assert_int_equal(wrong, 0);
}

/* ---- random picks ---- */

static unsigned number_of(const char *member) {
    return (unsigned)strtoul(member + strcspn(member, "0123456789"), NULL, 10);
}

/* Count each member of a reply in seen[0..n); how many are met for the first time. */
static size_t count_members(const struct reply *r, unsigned *seen, unsigned n) {
    size_t fresh = 0;
    for (size_t i = 0; i < r->count; i++) {
        unsigned number = number_of(r->elements[i]->str);
        assert_true(number < n);
        fresh += seen[number]++ == 0;
    }
    return fresh;
}

static void random_members_are_members(void **state) {
    (void)state;
    static const struct {
        const char *count;
        size_t returned, distinct; /* 0: any number */
    } cases[] = {
        {"10", 10, 10},          {"1000", 1000, 1000},    {"15000", 15000, 15000},
        {"20000", 20000, 20000}, {"30000", 20000, 20000}, {"-50", 50, 0},
        {"-30000", 30000, 0},    {"6665", 6665, 6665},    {"6667", 6667, 6667},
    };
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    load(c, "big", "m", 0, LARGE, 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned *seen = calloc(LARGE, sizeof(*seen));
        struct reply *r = client_cmd(c, "SRANDMEMBER", "big", cases[i].count, NULL);
        assert_true(r && r->count == cases[i].returned);
        size_t distinct = count_members(r, seen, LARGE);
        assert_true(distinct > 1 && (cases[i].distinct == 0 || distinct == cases[i].distinct));
        reply_free(r);
        free(seen);
    }
    client_close(c);
    server_stop(s);
}

/* Pop in pieces of all sizes: every member comes out once, and what is left is what has not. */
static void popped_members_are_gone(void **state) {
    (void)state;
    static const struct {
        const char *prefix;
        unsigned members;
    } sets[] = {{"", 300}, {"m", 100}, {"m", LARGE}, {"", 5000}};
    static const char *const counts[] = {"1", "7", "0", "50%", "3", "20%", "64", "90%", "5"};
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    for (size_t i = 0; i < COUNT(sets); i++) {
        unsigned *seen = calloc(sets[i].members, sizeof(*seen));
        size_t left = sets[i].members, popped = 0;
        load(c, "p", sets[i].prefix, 0, sets[i].members, 1);
        for (size_t k = 0; left > 0; k++) {
            char count[32];
            unsigned n = number_of(counts[k % COUNT(counts)]);
            bool share = strchr(counts[k % COUNT(counts)], '%') != NULL;
            size_t want = share ? left * n / 100 : n;
            snprintf(count, sizeof(count), "%zu", want);
            struct reply *r = client_cmd(c, "SPOP", "p", count, NULL);
            want = want < left ? want : left;
            assert_true(r && r->count == want);
            assert_int_equal(count_members(r, seen, sets[i].members), want);
            reply_free(r);
            popped += want;
            left -= want;
            r = client_cmd(c, "SCARD", "p", NULL);
            assert_true(r && r->integer == (int64_t)left);
            reply_free(r);
        }
        assert_int_equal(popped, sets[i].members);
        client_expect(c, ":0", "EXISTS", "p", NULL);
        free(seen);
    }
    client_close(c);
    server_stop(s);
}

/* ---- chance ---- */

/* Draws of k distinct members out of n: each turns up with probability p = k / n, and the sum of
 * squares over draws * p, divided by (1 - p) n / (n - 1), is chi-square with n - 1 degrees of
 * freedom. The limit is five standard deviations above its mean. */
static void assert_fair(const unsigned *seen, unsigned n, unsigned k, unsigned draws) {
    double p = (double)k / n, expected = draws * p, sum = 0;
    for (unsigned i = 0; i < n; i++) {
        sum += (seen[i] - expected) * (seen[i] - expected) / expected;
    }
    double chi = sum * (n - 1) / (n * (1 - p)), excess = chi - (n - 1);
    printf("%u of %u, %u draws: chi-square %.0f\n", k, n, draws, chi);
    assert_true(excess < 0 || excess * excess < 25.0 * 2 * (n - 1));
}

static void draw(struct client *c, const char *command, const char *key, unsigned n, unsigned k,
                 unsigned draws) {
    unsigned *seen = calloc(n, sizeof(*seen));
    char count[16];
    bool pops = strcmp(command, "SPOP") == 0;
    snprintf(count, sizeof(count), "%u", k);
    for (unsigned done = 0; done < draws; done += 100) {
        for (unsigned i = 0; i < 100; i++) {
            client_append(c, "SUNIONSTORE", "copy", key, NULL);
            client_append(c, command, "copy", count, NULL);
        }
        assert_true(client_flush(c));
        for (unsigned i = 0; i < 100; i++) {
            struct reply *stored = client_read(c), *r = client_read(c);
            assert_true(stored && stored->integer == n && r && r->count == k);
            count_members(r, seen, n);
            reply_free(stored);
            reply_free(r);
        }
    }
    printf("%s from %s: ", pops ? "SPOP" : "SRANDMEMBER", key);
    assert_fair(seen, n, k, draws);
    free(seen);
}

static void every_member_has_the_same_chance(void **state) {
    (void)state;
    static const char *const commands[] = {"SRANDMEMBER", "SPOP"};
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    load(c, "integers", "", 0, 40, 1);
    load(c, "packed", "m", 0, 40, 1);
    load(c, "table", "m", 0, 300, 1);
    for (size_t i = 0; i < COUNT(commands); i++) {
        draw(c, commands[i], "integers", 40, 3, 4000);
        draw(c, commands[i], "packed", 40, 3, 4000);
        draw(c, commands[i], "packed", 40, 30, 2000);
        draw(c, commands[i], "table", 300, 20, 3000);
        draw(c, commands[i], "table", 300, 200, 1000);
    }
    client_close(c);
    server_stop(s);
}

/* ---- scans ---- */

static void a_scan_sees_every_member(void **state) {
    (void)state;
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    unsigned *seen = calloc(LARGE, sizeof(*seen));
    char cursor[32] = "0";
    size_t fresh = 0, calls = 0;
    load(c, "big", "m", 0, LARGE, 1);
    do {
        struct reply *r = client_cmd(c, "SSCAN", "big", cursor, "COUNT", "100", NULL);
        assert_true(r && r->count == 2);
        fresh += count_members(r->elements[1], seen, LARGE);
        snprintf(cursor, sizeof(cursor), "%s", r->elements[0]->str);
        reply_free(r);
        calls++;
    } while (strcmp(cursor, "0") != 0);
    assert_int_equal(fresh, LARGE);
    assert_true(calls > 10);
    free(seen);
    client_close(c);
    server_stop(s);
}

/* ---- encodings ---- */

static void forms_change_at_the_options_limits(void **state) {
    (void)state;
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    load(c, "i", "", 0, 512, 1);
    client_expect(c, "\"intset\"", "OBJECT", "ENCODING", "i", NULL);
    load(c, "i", "", 512, 513, 1);
    client_expect(c, "\"hashtable\"", "OBJECT", "ENCODING", "i", NULL);
    load(c, "w", "m", 0, 128, 1);
    client_expect(c, "\"listpack\"", "OBJECT", "ENCODING", "w", NULL);
    load(c, "w", "m", 128, 129, 1);
    client_expect(c, "\"hashtable\"", "OBJECT", "ENCODING", "w", NULL);
    load(c, "m", "", 0, 200, 1);
    client_expect(c, ":1", "SADD", "m", "word", NULL); /* too many for a packed set */
    client_expect(c, "\"hashtable\"", "OBJECT", "ENCODING", "m", NULL);
    client_expect(c, "+OK", "CONFIG", "SET", "set-max-intset-entries", "3",
                  "set-max-listpack-entries", "2", "set-max-listpack-value", "4", NULL);
    client_expect(c, ":3", "SADD", "i3", "1", "2", "3", NULL);
    client_expect(c, "\"intset\"", "OBJECT", "ENCODING", "i3", NULL);
    client_expect(c, ":1", "SADD", "i3", "x", NULL);
    client_expect(c, "\"hashtable\"", "OBJECT", "ENCODING", "i3", NULL);
    client_expect(c, ":2", "SADD", "w2", "four", "", NULL);
    client_expect(c, "\"listpack\"", "OBJECT", "ENCODING", "w2", NULL);
    client_expect(c, ":1", "SADD", "long", "longer", NULL);
    client_expect(c, "\"hashtable\"", "OBJECT", "ENCODING", "long", NULL);
    client_expect(c, ":3", "SUNIONSTORE", "u", "w2", "long", NULL);
    client_expect(c, "\"hashtable\"", "OBJECT", "ENCODING", "u", NULL);
    client_close(c);
    server_stop(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_hold_in_resp2),
        cmocka_unit_test(examples_hold_in_resp3),
        cmocka_unit_test(the_oracle_agrees_with_the_examples),
        cmocka_unit_test(large_sets_answer_as_the_oracles),
        cmocka_unit_test(random_members_are_members),
        cmocka_unit_test(popped_members_are_gone),
        cmocka_unit_test(every_member_has_the_same_chance),
        cmocka_unit_test(a_scan_sees_every_member),
        cmocka_unit_test(forms_change_at_the_options_limits),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
