/* SPDX-License-Identifier: BSD-3-Clause */
/* SORT by example (support/example.h), and over large collections beside the oracle. */
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

enum { LARGE = 5000 };

/* clang-format off */
static const struct example numbers[] = {
    {"RPUSH l 3 10 2 -1 1.5 1e2 0x10 inf -inf", ":9", BOTH},
    {"SORT l", "[\"-inf\" \"-1\" \"1.5\" \"2\" \"3\" \"10\" \"0x10\" \"1e2\" \"inf\"]", BOTH},
    {"SORT l ASC", "[\"-inf\" \"-1\" \"1.5\" \"2\" \"3\" \"10\" \"0x10\" \"1e2\" \"inf\"]", BOTH},
    {"SORT l DESC", "[\"inf\" \"1e2\" \"0x10\" \"10\" \"3\" \"2\" \"1.5\" \"-1\" \"-inf\"]", BOTH},
    {"SORT l desc asc", "[\"-inf\" \"-1\" \"1.5\" \"2\" \"3\" \"10\" \"0x10\" \"1e2\" \"inf\"]", BOTH},
    {"SORT l ALPHA", "[\"-1\" \"-inf\" \"0x10\" \"1.5\" \"10\" \"1e2\" \"2\" \"3\" \"inf\"]", BOTH},
    {"SORT l ALPHA DESC", "[\"inf\" \"3\" \"2\" \"1e2\" \"10\" \"1.5\" \"0x10\" \"-inf\" \"-1\"]", BOTH},
    {"SORT l LIMIT 0 3", "[\"-inf\" \"-1\" \"1.5\"]", BOTH},
    {"SORT l LIMIT 2 3 DESC", "[\"0x10\" \"10\" \"3\"]", BOTH}, {"SORT l LIMIT -5 2", "[\"-inf\" \"-1\"]", BOTH},
    {"SORT l LIMIT 3 -1", "[\"2\" \"3\" \"10\" \"0x10\" \"1e2\" \"inf\"]", BOTH},
    {"SORT l LIMIT 3 -100", "[\"2\" \"3\" \"10\" \"0x10\" \"1e2\" \"inf\"]", BOTH}, {"SORT l LIMIT 0 0", "[]", BOTH},
    {"SORT l LIMIT 9 2", "[]", BOTH}, {"SORT l LIMIT 100 2", "[]", BOTH},
    {"SORT l LIMIT 5 100", "[\"10\" \"0x10\" \"1e2\" \"inf\"]", BOTH},
    {"SORT l LIMIT 9223372036854775807 1", "[]", BOTH},
    {"SORT l LIMIT 1 9223372036854775807", "[\"-1\" \"1.5\" \"2\" \"3\" \"10\" \"0x10\" \"1e2\" \"inf\"]", BOTH},
    {"SORT l LIMIT 9223372036854775807 9223372036854775807", "[]", BOTH},
    {"SORT l LIMIT -9223372036854775808 -9223372036854775808", "[\"-inf\" \"-1\" \"1.5\" \"2\" \"3\" \"10\" \"0x10\" \"1e2\" \"inf\"]", BOTH},
    {"SORT l LIMIT x 1", NOT_INTEGER, BOTH}, {"SORT l LIMIT 1 x", NOT_INTEGER, BOTH}, {"SORT l LIMIT 1", SYNTAX, BOTH},
    {"SORT l LIMIT", SYNTAX, BOTH}, {"SORT l LIMIT 0 1 LIMIT 1 2", "[\"-1\" \"1.5\"]", BOTH},
    {"SORT l FOO", SYNTAX, BOTH}, {"SORT l BY", SYNTAX, BOTH}, {"SORT l GET", SYNTAX, BOTH},
    {"SORT l STORE", SYNTAX, BOTH}, {"SORT none", "[]", BOTH}, {"SORT none ALPHA DESC LIMIT 0 10", "[]", BOTH},
    {"SORT none FOO", SYNTAX, BOTH}, {"SORT none GET # GET x*", "[]", BOTH}, {"SORT", ARITY("sort"), BOTH},
    {"RPUSH mixed 1 two 3", ":3", BOTH},
    {"SORT mixed", "-ERR One or more scores can't be converted into double", BOTH},
    {"SORT mixed ALPHA", "[\"1\" \"3\" \"two\"]", BOTH},
    {"SORT mixed LIMIT 0 0", "-ERR One or more scores can't be converted into double", BOTH},
    {"SORT mixed LIMIT 5 1", "-ERR One or more scores can't be converted into double", BOTH},
    {"RPUSH odd '' ' 5' 4", ":3", BOTH}, {"SORT odd", "[\"\" \"4\" \" 5\"]", BOTH}, {"RPUSH odd2 '5 '", ":1", BOTH},
    {"SORT odd2", "-ERR One or more scores can't be converted into double", BOTH},
    {"RPUSH odd6 +5 05 5 5.0", ":4", BOTH}, {"SORT odd6", "[\"+5\" \"05\" \"5\" \"5.0\"]", BOTH},
    {"SORT odd6 DESC", "[\"5.0\" \"5\" \"05\" \"+5\"]", BOTH},
    {"SORT odd6 ALPHA", "[\"+5\" \"05\" \"5\" \"5.0\"]", BOTH}, {"RPUSH odd3 1e400", ":1", BOTH},
    {"SORT odd3", "-ERR One or more scores can't be converted into double", BOTH}, {"RPUSH odd4 1e-400", ":1", BOTH},
    {"SORT odd4", "-ERR One or more scores can't be converted into double", BOTH}, {"RPUSH odd5 nan", ":1", BOTH},
    {"SORT odd5", "-ERR One or more scores can't be converted into double", BOTH}, {"RPUSH one x", ":1", BOTH},
    {"SORT one", "-ERR One or more scores can't be converted into double", BOTH}, {"SORT one ALPHA", "[\"x\"]", BOTH},
    {"RPUSH twins b a b a c", ":5", BOTH}, {"SORT twins ALPHA", "[\"a\" \"a\" \"b\" \"b\" \"c\"]", BOTH},
    {"SORT twins ALPHA DESC", "[\"c\" \"b\" \"b\" \"a\" \"a\"]", BOTH}, {"ZADD z 3 1 2 2 1 3", ":3", BOTH},
    {"SORT z", "[\"1\" \"2\" \"3\"]", BOTH}, {"SORT z DESC", "[\"3\" \"2\" \"1\"]", BOTH},
    {"SORT z ALPHA LIMIT 1 1", "[\"2\"]", BOTH}, {"SORT z BY nosort", "[\"3\" \"2\" \"1\"]", BOTH},
    {"SORT z BY nosort DESC", "[\"1\" \"2\" \"3\"]", BOTH}, {"SORT z BY nosort LIMIT 1 1", "[\"2\"]", BOTH},
    {"SORT z BY nosort DESC LIMIT 0 2", "[\"1\" \"2\"]", BOTH}, {"SORT z BY nosort LIMIT 1 -1", "[\"2\" \"1\"]", BOTH},
    {"SORT z BY nosort LIMIT 5 1", "[]", BOTH}, {"SORT z BY nosort LIMIT -1 1", "[\"3\"]", BOTH},
    {"SORT z BY nosort LIMIT 0 0", "[]", BOTH},
    {"SORT z BY nosort GET # GET x*", "[\"3\" nil \"2\" nil \"1\" nil]", RESP2}, {"SORT z BY nosort GET # GET x*", "[\"3\" null \"2\" null \"1\" null]", RESP3},
    {"SORT z BY nosort ALPHA DESC", "[\"1\" \"2\" \"3\"]", BOTH},
    {"SORT l BY nosort", "[\"3\" \"10\" \"2\" \"-1\" \"1.5\" \"1e2\" \"0x10\" \"inf\" \"-inf\"]", BOTH},
    {"SORT l BY nosort DESC", "[\"-inf\" \"inf\" \"0x10\" \"1e2\" \"1.5\" \"-1\" \"2\" \"10\" \"3\"]", BOTH},
    {"SORT l BY nosort LIMIT 1 2", "[\"10\" \"2\"]", BOTH}, {"SORT mixed BY nosort", "[\"1\" \"two\" \"3\"]", BOTH},
    {"SORT mixed BY # DESC", "[\"3\" \"two\" \"1\"]", BOTH}, {"SET s v", "+OK", BOTH}, {"HSET h f v", ":1", BOTH},
    {"SORT s", WRONGTYPE, BOTH}, {"SORT s FOO", SYNTAX, BOTH}, {"SORT h", WRONGTYPE, BOTH},
    {"SORT h ALPHA", WRONGTYPE, BOTH},
    {"SORT_RO l", "[\"-inf\" \"-1\" \"1.5\" \"2\" \"3\" \"10\" \"0x10\" \"1e2\" \"inf\"]", BOTH},
    {"SORT_RO l DESC LIMIT 0 2", "[\"inf\" \"1e2\"]", BOTH}, {"SORT_RO l STORE x", SYNTAX, BOTH},
    {"SORT_RO s", WRONGTYPE, BOTH}, {"SORT_RO none", "[]", BOTH},
    {"SORT_RO mixed", "-ERR One or more scores can't be converted into double", BOTH},
    {"SORT_RO", ARITY("sort_ro"), BOTH}, {"SADD set 3 1 2 10", ":4", BOTH},
    {"SORT set", "[\"1\" \"2\" \"3\" \"10\"]", BOTH}, {"SORT set DESC LIMIT 0 2", "[\"10\" \"3\"]", BOTH},
    {"SORT set ALPHA", "[\"1\" \"10\" \"2\" \"3\"]", BOTH}, {"SADD words b a c", ":3", BOTH},
    {"SORT words ALPHA DESC", "[\"c\" \"b\" \"a\"]", BOTH},
    {"SORT words", "-ERR One or more scores can't be converted into double", BOTH},
    {"SORT one BY nosort LIMIT 0 1", "[\"x\"]", BOTH}, {"RPUSH five 1 2 3 4 5", ":5", BOTH},
    {"SORT five BY nosort DESC LIMIT 1 2", "[\"4\" \"3\"]", BOTH},
    {"SORT five BY nosort DESC LIMIT 4 9", "[\"1\"]", BOTH},
};

static const struct example patterns[] = {
    {"RPUSH l 1 2 3 4", ":4", BOTH}, {"MSET w1 30 w2 20 w3 10 o1 first o2 second o3 third", "+OK", BOTH},
    {"SORT l BY w*", "[\"4\" \"3\" \"2\" \"1\"]", BOTH}, {"SORT l BY w* DESC", "[\"1\" \"2\" \"3\" \"4\"]", BOTH},
    {"SORT l BY w* GET o*", "[nil \"third\" \"second\" \"first\"]", RESP2}, {"SORT l BY w* GET o*", "[null \"third\" \"second\" \"first\"]", RESP3},
    {"SORT l BY w* GET # GET o* GET w*", "[\"4\" nil nil \"3\" \"third\" \"10\" \"2\" \"second\" \"20\" \"1\" \"first\" \"30\"]", RESP2}, {"SORT l BY w* GET # GET o* GET w*", "[\"4\" null null \"3\" \"third\" \"10\" \"2\" \"second\" \"20\" \"1\" \"first\" \"30\"]", RESP3},
    {"SORT l BY w* ALPHA", "[\"4\" \"3\" \"2\" \"1\"]", BOTH},
    {"SORT l BY w* ALPHA DESC", "[\"1\" \"2\" \"3\" \"4\"]", BOTH},
    {"SORT l GET none", "[nil nil nil nil]", RESP2}, {"SORT l GET none", "[null null null null]", RESP3},
    {"SORT l GET none*", "[nil nil nil nil]", RESP2}, {"SORT l GET none*", "[null null null null]", RESP3},
    {"SORT l GET o* LIMIT 1 2", "[\"second\" \"third\"]", BOTH}, {"SORT l GET #", "[\"1\" \"2\" \"3\" \"4\"]", BOTH},
    {"SORT l GET ##", "[nil nil nil nil]", RESP2}, {"SORT l GET ##", "[null null null null]", RESP3},
    {"SORT l GET #*", "[nil nil nil nil]", RESP2}, {"SORT l GET #*", "[null null null null]", RESP3},
    {"SORT l GET ''", "[nil nil nil nil]", RESP2}, {"SORT l GET ''", "[null null null null]", RESP3},
    {"HSET h1 w 5 name one", ":2", BOTH}, {"HSET h2 w 4 name two", ":2", BOTH},
    {"HSET h3 w 3 name three other x", ":3", BOTH}, {"SORT l BY h*->w", "[\"4\" \"3\" \"2\" \"1\"]", BOTH},
    {"SORT l BY h*->w GET h*->name", "[nil \"three\" \"two\" \"one\"]", RESP2}, {"SORT l BY h*->w GET h*->name", "[null \"three\" \"two\" \"one\"]", RESP3},
    {"SORT l BY h*->w DESC GET # GET h*->name GET h*->other", "[\"1\" \"one\" nil \"2\" \"two\" nil \"3\" \"three\" \"x\" \"4\" nil nil]", RESP2}, {"SORT l BY h*->w DESC GET # GET h*->name GET h*->other", "[\"1\" \"one\" null \"2\" \"two\" null \"3\" \"three\" \"x\" \"4\" null null]", RESP3},
    {"SORT l BY h*->none", "[\"1\" \"2\" \"3\" \"4\"]", BOTH}, {"SORT l BY h*->", "[\"1\" \"2\" \"3\" \"4\"]", BOTH},
    {"SORT l GET h*->", "[nil nil nil nil]", RESP2}, {"SORT l GET h*->", "[null null null null]", RESP3},
    {"SORT l GET h*->name->x", "[nil nil nil nil]", RESP2}, {"SORT l GET h*->name->x", "[null null null null]", RESP3},
    {"SORT l BY ->h*", "[\"1\" \"2\" \"3\" \"4\"]", BOTH},
    {"SORT l GET ->h*", "[nil nil nil nil]", RESP2}, {"SORT l GET ->h*", "[null null null null]", RESP3},
    {"SORT l GET *->w", "[nil nil nil nil]", RESP2}, {"SORT l GET *->w", "[null null null null]", RESP3},
    {"SORT l GET w*->w", "[nil nil nil nil]", RESP2}, {"SORT l GET w*->w", "[null null null null]", RESP3},
    {"SORT l GET h*", "[nil nil nil nil]", RESP2}, {"SORT l GET h*", "[null null null null]", RESP3},
    {"SORT l BY h*", "[\"1\" \"2\" \"3\" \"4\"]", BOTH},
    {"SORT l BY o*", "-ERR One or more scores can't be converted into double", BOTH},
    {"SORT l BY o* ALPHA", "[\"4\" \"1\" \"2\" \"3\"]", BOTH}, {"SORT l BY *", "[\"1\" \"2\" \"3\" \"4\"]", BOTH},
    {"SORT l BY w** GET w**", "[nil nil nil nil]", RESP2}, {"SORT l BY w** GET w**", "[null null null null]", RESP3},
    {"SET 1-> x", "+OK", BOTH}, {"SET -> y", "+OK", BOTH},
    {"SORT l GET *->", "[\"x\" nil nil nil]", RESP2}, {"SORT l GET *->", "[\"x\" null null null]", RESP3},
    {"SORT l BY w* BY nosort", "[\"1\" \"2\" \"3\" \"4\"]", BOTH},
    {"SORT l BY nosort BY w*", "[\"1\" \"2\" \"3\" \"4\"]", BOTH},
    {"SORT l BY nosort GET o* GET #", "[\"first\" \"1\" \"second\" \"2\" \"third\" \"3\" nil \"4\"]", RESP2}, {"SORT l BY nosort GET o* GET #", "[\"first\" \"1\" \"second\" \"2\" \"third\" \"3\" null \"4\"]", RESP3},
    {"MSET v1 '' v2 10 v3 1e1 v4 abc", "+OK", BOTH},
    {"SORT l BY v*", "-ERR One or more scores can't be converted into double", BOTH}, {"DEL v4", ":1", BOTH},
    {"SORT l BY v*", "[\"1\" \"4\" \"2\" \"3\"]", BOTH}, {"SORT l BY v* DESC", "[\"3\" \"2\" \"4\" \"1\"]", BOTH},
    {"SORT l BY v* ALPHA", "[\"4\" \"1\" \"2\" \"3\"]", BOTH}, {"RPUSH bin a\\x00b c", ":2", BOTH},
    {"SET x_a\\x00b val", "+OK", BOTH}, {"SET x_c val2", "+OK", BOTH},
    {"SORT bin BY nosort GET x_*", "[\"val\" \"val2\"]", BOTH}, {"HSET hh_c f\\x00 v", ":1", BOTH},
    {"RPUSH ints 5 1 3", ":3", BOTH},
    {"SORT ints BY nosort GET # GET w*", "[\"5\" nil \"1\" \"30\" \"3\" \"10\"]", RESP2}, {"SORT ints BY nosort GET # GET w*", "[\"5\" null \"1\" \"30\" \"3\" \"10\"]", RESP3},
    {"MSET n5 2 n1 9 n3 10", "+OK", BOTH}, {"SORT ints BY n* ALPHA", "[\"3\" \"5\" \"1\"]", BOTH},
    {"SORT ints BY n*", "[\"5\" \"1\" \"3\"]", BOTH},
};

static const struct example storing[] = {
    {"RPUSH l 3 1 2", ":3", BOTH}, {"SORT l STORE d", ":3", BOTH}, {"LRANGE d 0 -1", "[\"1\" \"2\" \"3\"]", BOTH},
    {"TYPE d", "+list", BOTH}, {"SORT l DESC STORE l", ":3", BOTH}, {"LRANGE l 0 -1", "[\"3\" \"2\" \"1\"]", BOTH},
    {"SORT l LIMIT 1 1 STORE d", ":1", BOTH}, {"LRANGE d 0 -1", "[\"2\"]", BOTH},
    {"SORT l LIMIT 5 1 STORE d", ":0", BOTH}, {"EXISTS d", ":0", BOTH}, {"SET d text EX 1000", "+OK", BOTH},
    {"SORT l STORE d", ":3", BOTH}, {"TTL d", ":-1", BOTH}, {"LRANGE d 0 -1", "[\"1\" \"2\" \"3\"]", BOTH},
    {"SORT none STORE d", ":0", BOTH}, {"EXISTS d", ":0", BOTH}, {"SORT none STORE d", ":0", BOTH},
    {"MSET o1 first o3 third", "+OK", BOTH}, {"SORT l GET o* GET # STORE d", ":6", BOTH},
    {"LRANGE d 0 -1", "[\"first\" \"1\" \"\" \"2\" \"third\" \"3\"]", BOTH}, {"RPUSH bad 1 x", ":2", BOTH},
    {"SORT bad STORE d", "-ERR One or more scores can't be converted into double", BOTH},
    {"LRANGE d 0 -1", "[\"first\" \"1\" \"\" \"2\" \"third\" \"3\"]", BOTH}, {"SORT l STORE d STORE e", ":3", BOTH},
    {"LRANGE e 0 -1", "[\"1\" \"2\" \"3\"]", BOTH}, {"SORT l STORE GET GET #", ":3", BOTH},
    {"LRANGE GET 0 -1", "[\"1\" \"2\" \"3\"]", BOTH}, {"SET s v", "+OK", BOTH}, {"SORT s STORE d", WRONGTYPE, BOTH},
    {"LLEN d", ":6", BOTH}, {"ZADD z 2 a 1 b", ":2", BOTH}, {"SORT z BY nosort STORE d", ":2", BOTH},
    {"LRANGE d 0 -1", "[\"b\" \"a\"]", BOTH}, {"SORT z ALPHA STORE z", ":2", BOTH}, {"TYPE z", "+list", BOTH},
    {"LRANGE z 0 -1", "[\"a\" \"b\"]", BOTH}, {"SADD set 3 1 2 10", ":4", BOTH},
    {"SORT set BY nosort STORE d", ":4", BOTH}, {"LRANGE d 0 -1", "[\"1\" \"10\" \"2\" \"3\"]", BOTH},
    {"SADD words b a c 10", ":4", BOTH}, {"SORT words BY nosort DESC STORE d", ":4", BOTH},
    {"LRANGE d 0 -1", "[\"c\" \"b\" \"a\" \"10\"]", BOTH},
    {"SORT words BY nosort LIMIT 1 2 GET # GET x* STORE words", ":4", BOTH},
    {"LRANGE words 0 -1", "[\"a\" \"\" \"b\" \"\"]", BOTH}, {"COMMAND GETKEYS SORT a", "[\"a\"]", BOTH},
    {"COMMAND GETKEYS SORT a BY w* GET x STORE d", "[\"a\" \"d\"]", BOTH},
    {"COMMAND GETKEYS SORT a BY store LIMIT 1 store GET store STORE d STORE e", "[\"a\" \"e\"]", BOTH},
    {"COMMAND GETKEYS SORT a STORE", "[\"a\"]", BOTH}, {"COMMAND GETKEYS SORT_RO a BY w*", "[\"a\"]", BOTH},
    {"COMMAND GETKEYS SORT_RO a STORE d", "[\"a\"]", BOTH},
    {"COMMAND GETKEYSANDFLAGS SORT a STORE d", "[[\"a\" [+RO +access]] [\"d\" [+OW +update]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS SORT a STORE d", "[[\"a\" ~[+RO +access]] [\"d\" ~[+OW +update]]]", RESP3},
    {"COMMAND GETKEYSANDFLAGS SORT_RO a", "[[\"a\" [+RO +access]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS SORT_RO a", "[[\"a\" ~[+RO +access]]]", RESP3},
};

/* clang-format on */

static const struct example_group groups[] = {
    EXAMPLES(numbers),
    EXAMPLES(patterns),
    EXAMPLES(storing),
};

/* ---- examples ---- */

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

/* ---- large collections ---- */

/* One number in a list, a set and a sorted set, and what it is weighed by; every tenth has no
 * weight. */
static int append_number(struct client *c, unsigned i) {
    char number[32], weight[32], key[64];
    unsigned n = i * 2654435761u % 1000003u;
    snprintf(number, sizeof(number), "%u", n);
    client_append(c, i % 2 ? "RPUSH" : "LPUSH", "list", number, NULL);
    client_append(c, "SADD", "set", number, NULL);
    client_append(c, "ZADD", "zset", number, number, NULL);
    if (i % 10 == 0) {
        return 3;
    }
    snprintf(weight, sizeof(weight), "%d.5", (int)(n * 7919u % 100000u) - 50000);
    snprintf(key, sizeof(key), "weight:%u", n);
    client_append(c, "SET", key, weight, NULL);
    snprintf(key, sizeof(key), "hash:%u", n);
    client_append(c, "HSET", key, "w", weight, "name", number, NULL);
    return 5;
}

static void load(struct client *c) {
    for (unsigned i = 0; i < LARGE;) {
        int replies = 0;
        for (unsigned end = i + 100; i < end && i < LARGE; i++) {
            replies += append_number(c, i);
        }
        assert_true(client_flush(c));
        while (replies-- > 0) {
            struct reply *r = client_read(c);
            assert_true(r && !reply_is_error(r));
            reply_free(r);
        }
    }
}

static const char *const large_lines[] = {
    "SORT list",
    "SORT list DESC LIMIT 100 50",
    "SORT set",
    "SORT zset DESC",
    "SORT list ALPHA",
    "SORT set ALPHA DESC LIMIT 4990 100",
    "SORT list BY weight:*",
    "SORT set BY weight:* DESC LIMIT 0 700",
    "SORT zset BY hash:*->w GET # GET hash:*->name GET weight:* GET none:*",
    "SORT list BY hash:*->name LIMIT 10 20 GET hash:*->w",
    "SORT list BY nosort LIMIT 1000 1000",
    "SORT list BY nosort DESC LIMIT 1000 1000 GET weight:*",
    "SORT zset BY nosort DESC LIMIT 4000 5000 GET #",
    "SORT set BY nosort STORE stored",
    "LRANGE stored 0 -1",
    "SORT set BY weight:* GET # GET weight:* GET hash:*->w STORE stored",
    "LRANGE stored 0 -1",
    "SORT zset BY nosort DESC STORE zset",
    "LRANGE zset 0 -1",
    "SORT list DESC STORE list",
    "SORT list BY nosort",
    "SORT_RO list BY weight:* LIMIT 17 3 GET weight:* GET # DESC",
};

static char *answer(struct client *c, const char *text) {
    char *line = strdup(text);
    const char *argv[20];
    size_t lens[20];
    int argc = example_split(line, argv, lens, 20);
    struct reply *r = client_cmd_argv(c, argc, argv, lens);
    char *got = reply_text(r);
    reply_free(r);
    free(line);
    return got;
}

static void large_collections_are_sorted_as_by_the_oracle(void **state) {
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
        load(clients[i]);
    }
    for (size_t i = 0; i < COUNT(large_lines); i++) {
        char *a = answer(clients[0], large_lines[i]), *b = answer(clients[1], large_lines[i]);
        if (strcmp(a, b) != 0) {
            fprintf(stderr, "%s\n  oracle %.500s\n  ours   %.500s\n", large_lines[i], a, b);
            wrong++;
        }
        free(a);
        free(b);
    }
    for (int i = 0; i < 2; i++) {
        client_close(clients[i]);
        server_stop(servers[i]);
    }
    assert_int_equal(wrong, 0);
}

/* ---- LIMIT, where a few of many are selected ---- */

/* SORT list, the words of options, and LIMIT unless it is NULL. */
static struct reply *sort_limited(struct client *c, const char *options, const char *offset,
                                  const char *count) {
    const char *argv[10] = {"SORT", "list"};
    size_t lens[10];
    int argc = 2;
    char words[64];
    snprintf(words, sizeof(words), "%s", options);
    for (char *rest = words, *word; (word = strsep(&rest, " ")) != NULL;) {
        argv[argc] = word;
        argc += word[0] != '\0';
    }
    if (offset != NULL) {
        argv[argc++] = "LIMIT";
        argv[argc++] = offset;
        argv[argc++] = count;
    }
    for (int i = 0; i < argc; i++) {
        lens[i] = strlen(argv[i]);
    }
    return client_cmd_argv(c, argc, argv, lens);
}

static void assert_slice(const struct reply *part, const struct reply *whole, size_t from,
                         size_t count) {
    assert_true(part->type == '*' && part->count == count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(part->elements[i]->str, whole->elements[from + i]->str);
    }
}

enum { LIMITED = 4000 }; /* up to 62 of them are selected */

static void load_limited(struct client *c) {
    char number[32], key[40], weight[32];
    for (unsigned i = 0; i < LIMITED; i++) {
        unsigned n = i * 2654435761u % 3001u; /* some of them several times */
        snprintf(number, sizeof(number), "%u", n);
        snprintf(key, sizeof(key), "w%u", n);
        snprintf(weight, sizeof(weight), "%u", n % 10);
        client_append(c, "RPUSH", "list", number, NULL);
        client_append(c, n % 3 ? "SET" : "TYPE", key, n % 3 ? weight : NULL, NULL);
    }
    assert_true(client_flush(c));
    for (int i = 0; i < 2 * LIMITED; i++) {
        struct reply *r = client_read(c);
        assert_true(r != NULL && !reply_is_error(r));
        reply_free(r);
    }
}

static void limits_show_parts_of_one_order(void **state) {
    static const char *const options[] = {
        "",        "DESC",       "ALPHA",       "ALPHA DESC",
        "BY w*",   "BY w* DESC", "BY w* ALPHA", "BY w* ALPHA DESC",
        "BY none*"};
    static const size_t limits[][2] = {{0, 1},  {0, 2},  {0, 10},  {3, 4},  {50, 12},
                                       {61, 1}, {62, 1}, {52, 11}, {10, 0}, {3999, 1}};
    (void)state;
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    load_limited(c);
    for (size_t i = 0; i < COUNT(options); i++) {
        struct reply *whole = sort_limited(c, options[i], NULL, NULL);
        assert_true(whole->type == '*' && whole->count == LIMITED);
        for (size_t k = 0; k < COUNT(limits); k++) {
            char offset[24], count[24];
            snprintf(offset, sizeof(offset), "%zu", limits[k][0]);
            snprintf(count, sizeof(count), "%zu", limits[k][1]);
            struct reply *part = sort_limited(c, options[i], offset, count);
            assert_slice(part, whole, limits[k][0], limits[k][1]);
            reply_free(part);
        }
        reply_free(whole);
    }
    client_close(c);
    server_stop(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_hold_in_resp2),
        cmocka_unit_test(examples_hold_in_resp3),
        cmocka_unit_test(the_oracle_agrees_with_the_examples),
        cmocka_unit_test(large_collections_are_sorted_as_by_the_oracle),
        cmocka_unit_test(limits_show_parts_of_one_order),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
