/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists by example (support/example.h), and large ones beside the oracle. Commands that really wait
 * are in test_list_blocking.c. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/example.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { LARGE = 20000, ROUNDS = 3000, PIPELINE = 500 };

/* clang-format off */
static const struct example pushing[] = {
    {"LPUSH l a b c", ":3", BOTH}, {"RPUSH l d e", ":5", BOTH},
    {"LRANGE l 0 -1", "[\"c\" \"b\" \"a\" \"d\" \"e\"]", BOTH}, {"LLEN l", ":5", BOTH}, {"LPUSHX l z", ":6", BOTH},
    {"RPUSHX l y x", ":8", BOTH}, {"LPUSHX none a", ":0", BOTH}, {"RPUSHX none a b", ":0", BOTH},
    {"EXISTS none", ":0", BOTH}, {"LLEN none", ":0", BOTH}, {"TYPE l", "+list", BOTH},
    {"LPUSH l", ARITY("lpush"), BOTH}, {"RPUSH l", ARITY("rpush"), BOTH}, {"LPUSHX l", ARITY("lpushx"), BOTH},
    {"RPUSHX l", ARITY("rpushx"), BOTH}, {"LLEN", ARITY("llen"), BOTH}, {"LLEN l l", ARITY("llen"), BOTH},
    {"RPUSH bin '' \\x00 a\\x0d\\x0ab \\xff 12 -5", ":6", BOTH},
    {"LRANGE bin 0 -1", "[\"\" \"\\x00\" \"a\\x0d\\x0ab\" \"\\xff\" \"12\" \"-5\"]", BOTH}, {"SET s v", "+OK", BOTH},
    {"LPUSH s a", WRONGTYPE, BOTH}, {"RPUSH s a", WRONGTYPE, BOTH}, {"LPUSHX s a", WRONGTYPE, BOTH},
    {"RPUSHX s a", WRONGTYPE, BOTH}, {"LLEN s", WRONGTYPE, BOTH}, {"GET l", WRONGTYPE, BOTH},
    {"HGET l f", WRONGTYPE, BOTH}, {"ZADD l 1 a", WRONGTYPE, BOTH}, {"OBJECT ENCODING bin", "\"listpack\"", NEW},
};

static const struct example popping[] = {
    {"RPUSH l a b c d e f g h", ":8", BOTH}, {"LPOP l", "\"a\"", BOTH}, {"RPOP l", "\"h\"", BOTH},
    {"LPOP l 2", "[\"b\" \"c\"]", BOTH}, {"RPOP l 2", "[\"g\" \"f\"]", BOTH}, {"LPOP l 0", "[]", BOTH},
    {"RPOP l 0", "[]", BOTH}, {"LPOP l 100", "[\"d\" \"e\"]", BOTH}, {"EXISTS l", ":0", BOTH},
    {"LPOP l", "nil", RESP2}, {"LPOP l", "null", RESP3}, {"RPOP l", "nil", RESP2}, {"RPOP l", "null", RESP3},
    {"LPOP l 1", "nil*", RESP2}, {"LPOP l 1", "null", RESP3}, {"RPOP l 5", "nil*", RESP2}, {"RPOP l 5", "null", RESP3},
    {"LPOP l 0", "nil*", RESP2}, {"LPOP l 0", "null", RESP3}, {"RPUSH l a b", ":2", BOTH},
    {"LPOP l -1", "-ERR value is out of range, must be positive", BOTH},
    {"LPOP l x", "-ERR value is out of range, must be positive", BOTH},
    {"LPOP l 1.5", "-ERR value is out of range, must be positive", BOTH},
    {"LPOP l 9223372036854775808", "-ERR value is out of range, must be positive", BOTH},
    {"LPOP l 1 2", ARITY("lpop"), BOTH}, {"RPOP l 1 2", ARITY("rpop"), BOTH},
    {"LPOP none x", "-ERR value is out of range, must be positive", BOTH},
    {"LPOP none -1", "-ERR value is out of range, must be positive", BOTH}, {"LPOP none 1 2", ARITY("lpop"), BOTH},
    {"RPOP l 9223372036854775807", "[\"b\" \"a\"]", BOTH}, {"LPOP", ARITY("lpop"), BOTH}, {"SET s v", "+OK", BOTH},
    {"LPOP s", WRONGTYPE, BOTH}, {"RPOP s", WRONGTYPE, BOTH}, {"LPOP s 0", WRONGTYPE, BOTH},
    {"LPOP s 1", WRONGTYPE, BOTH}, {"LPOP s x", "-ERR value is out of range, must be positive", BOTH},
};

static const struct example reading[] = {
    {"RPUSH l a b c d e", ":5", BOTH}, {"LINDEX l 0", "\"a\"", BOTH}, {"LINDEX l 4", "\"e\"", BOTH},
    {"LINDEX l 5", "nil", RESP2}, {"LINDEX l 5", "null", RESP3}, {"LINDEX l -1", "\"e\"", BOTH},
    {"LINDEX l -5", "\"a\"", BOTH}, {"LINDEX l -6", "nil", RESP2}, {"LINDEX l -6", "null", RESP3},
    {"LINDEX l 9223372036854775807", "nil", RESP2}, {"LINDEX l 9223372036854775807", "null", RESP3},
    {"LINDEX l -9223372036854775808", "nil", RESP2}, {"LINDEX l -9223372036854775808", "null", RESP3},
    {"LINDEX l 9223372036854775808", NOT_INTEGER, BOTH}, {"LINDEX l x", NOT_INTEGER, BOTH},
    {"LINDEX l 1.0", NOT_INTEGER, BOTH}, {"LINDEX none 0", "nil", RESP2}, {"LINDEX none 0", "null", RESP3},
    {"LINDEX none x", "nil", RESP2}, {"LINDEX none x", "null", RESP3}, {"LRANGE l 1 3", "[\"b\" \"c\" \"d\"]", BOTH},
    {"LRANGE l -3 -2", "[\"c\" \"d\"]", BOTH}, {"LRANGE l -100 100", "[\"a\" \"b\" \"c\" \"d\" \"e\"]", BOTH},
    {"LRANGE l 3 1", "[]", BOTH}, {"LRANGE l 5 9", "[]", BOTH}, {"LRANGE l 4 4", "[\"e\"]", BOTH},
    {"LRANGE l -9223372036854775808 9223372036854775807", "[\"a\" \"b\" \"c\" \"d\" \"e\"]", BOTH},
    {"LRANGE l 9223372036854775807 -9223372036854775808", "[]", BOTH}, {"LRANGE l x 1", NOT_INTEGER, BOTH},
    {"LRANGE l 1 x", NOT_INTEGER, BOTH}, {"LRANGE none 0 -1", "[]", BOTH}, {"LRANGE none x 1", NOT_INTEGER, BOTH},
    {"LRANGE l 0", ARITY("lrange"), BOTH}, {"RPUSH p a b c 1 2 3 c c", ":8", BOTH}, {"LPOS p c", ":2", BOTH},
    {"LPOS p c RANK 2", ":6", BOTH}, {"LPOS p c RANK -1", ":7", BOTH}, {"LPOS p c RANK -2", ":6", BOTH},
    {"LPOS p c RANK 4", "nil", RESP2}, {"LPOS p c RANK 4", "null", RESP3}, {"LPOS p c COUNT 2", "[:2 :6]", BOTH},
    {"LPOS p c COUNT 0", "[:2 :6 :7]", BOTH}, {"LPOS p c RANK -1 COUNT 2", "[:7 :6]", BOTH},
    {"LPOS p c RANK -1 COUNT 0", "[:7 :6 :2]", BOTH}, {"LPOS p c RANK 2 COUNT 0", "[:6 :7]", BOTH},
    {"LPOS p c COUNT 0 MAXLEN 3", "[:2]", BOTH}, {"LPOS p c COUNT 0 MAXLEN 2", "[]", BOTH},
    {"LPOS p c MAXLEN 1", "nil", RESP2}, {"LPOS p c MAXLEN 1", "null", RESP3},
    {"LPOS p c RANK -1 MAXLEN 1", ":7", BOTH},
    {"LPOS p a RANK -1 MAXLEN 7", "nil", RESP2}, {"LPOS p a RANK -1 MAXLEN 7", "null", RESP3},
    {"LPOS p a RANK -1 MAXLEN 8", ":0", BOTH}, {"LPOS p a RANK -1 MAXLEN 0", ":0", BOTH},
    {"LPOS p nobody", "nil", RESP2}, {"LPOS p nobody", "null", RESP3}, {"LPOS p nobody COUNT 0", "[]", BOTH},
    {"LPOS p 1", ":3", BOTH}, {"LPOS p 01", "nil", RESP2}, {"LPOS p 01", "null", RESP3},
    {"LPOS none c", "nil", RESP2}, {"LPOS none c", "null", RESP3}, {"LPOS none c COUNT 0", "[]", BOTH},
    {"LPOS none c RANK 0", "-ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list", BOTH},
    {"LPOS p c RANK 0", "-ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list", BOTH},
    {"LPOS p c RANK x", NOT_INTEGER, BOTH},
    {"LPOS p c RANK -9223372036854775808", "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807", NEW},
    {"LPOS p c RANK 9223372036854775807", "nil", RESP2}, {"LPOS p c RANK 9223372036854775807", "null", RESP3},
    {"LPOS p c RANK -9223372036854775807", "nil", RESP2}, {"LPOS p c RANK -9223372036854775807", "null", RESP3},
    {"LPOS p c COUNT -1", "-ERR COUNT can't be negative", BOTH},
    {"LPOS p c COUNT x", "-ERR COUNT can't be negative", BOTH},
    {"LPOS p c MAXLEN -1", "-ERR MAXLEN can't be negative", BOTH},
    {"LPOS p c MAXLEN x", "-ERR MAXLEN can't be negative", BOTH}, {"LPOS p c COUNT", SYNTAX, BOTH},
    {"LPOS p c FOO 1", SYNTAX, BOTH}, {"LPOS p c rank 1 RANK 2", ":6", BOTH},
    {"LPOS p c COUNT 1 COUNT 0", "[:2 :6 :7]", BOTH}, {"LPOS p", ARITY("lpos"), BOTH}, {"SET s v", "+OK", BOTH},
    {"LINDEX s 0", WRONGTYPE, BOTH}, {"LINDEX s x", WRONGTYPE, BOTH}, {"LRANGE s 0 1", WRONGTYPE, BOTH},
    {"LRANGE s x 1", NOT_INTEGER, BOTH}, {"LPOS s c", WRONGTYPE, BOTH},
    {"LPOS s c RANK 0", "-ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list", BOTH},
};

static const struct example changing[] = {
    {"RPUSH l a b c b a", ":5", BOTH}, {"LSET l 0 A", "+OK", BOTH}, {"LSET l -1 Z", "+OK", BOTH},
    {"LRANGE l 0 -1", "[\"A\" \"b\" \"c\" \"b\" \"Z\"]", BOTH}, {"LSET l 5 x", "-ERR index out of range", BOTH},
    {"LSET l -6 x", "-ERR index out of range", BOTH}, {"LSET l x y", NOT_INTEGER, BOTH},
    {"LSET none 0 x", "-ERR no such key", BOTH}, {"LSET none x x", "-ERR no such key", BOTH},
    {"LSET l 2 'a much longer element than the one that was here before, so that it has to move'", "+OK", BOTH},
    {"LSET l 9223372036854775807 x", "-ERR index out of range", BOTH},
    {"LSET l -9223372036854775808 x", "-ERR index out of range", BOTH}, {"LSET l 0", ARITY("lset"), BOTH},
    {"LRANGE l 0 -1", "[\"A\" \"b\" \"a much longer element than the one that was here before, so that it has to move\" \"b\" \"Z\"]", BOTH},
    {"LINSERT l BEFORE b new", ":6", BOTH}, {"LINSERT l AFTER b new2", ":7", BOTH},
    {"LINSERT l after Z end", ":8", BOTH}, {"LINSERT l before A start", ":9", BOTH},
    {"LRANGE l 0 -1", "[\"start\" \"A\" \"new\" \"b\" \"new2\" \"a much longer element than the one that was here before, so that it has to move\" \"b\" \"Z\" \"end\"]", BOTH},
    {"LINSERT l BEFORE nobody x", ":-1", BOTH}, {"LINSERT none BEFORE a x", ":0", BOTH},
    {"LINSERT none FOO a x", SYNTAX, BOTH}, {"LINSERT l FOO a x", SYNTAX, BOTH},
    {"LINSERT l BEFORE a", ARITY("linsert"), BOTH}, {"EXISTS none", ":0", BOTH}, {"DEL l", ":1", BOTH},
    {"RPUSH l a b a c a d a", ":7", BOTH}, {"LREM l 2 a", ":2", BOTH},
    {"LRANGE l 0 -1", "[\"b\" \"c\" \"a\" \"d\" \"a\"]", BOTH}, {"LREM l -1 a", ":1", BOTH},
    {"LRANGE l 0 -1", "[\"b\" \"c\" \"a\" \"d\"]", BOTH}, {"LREM l 0 a", ":1", BOTH},
    {"LRANGE l 0 -1", "[\"b\" \"c\" \"d\"]", BOTH}, {"LREM l 0 nobody", ":0", BOTH},
    {"LREM l 9223372036854775807 b", ":1", BOTH}, {"LREM l -9223372036854775807 c", ":1", BOTH},
    {"LREM l -9223372036854775808 c", ":0", BOTH}, {"LREM l x c", NOT_INTEGER, BOTH}, {"LREM none 0 a", ":0", BOTH},
    {"LREM none x a", NOT_INTEGER, BOTH}, {"LREM l 1 d", ":1", BOTH}, {"EXISTS l", ":0", BOTH},
    {"LREM l 1", ARITY("lrem"), BOTH}, {"RPUSH l a b c d e", ":5", BOTH}, {"LTRIM l 1 -2", "+OK", BOTH},
    {"LRANGE l 0 -1", "[\"b\" \"c\" \"d\"]", BOTH}, {"LTRIM l 0 9223372036854775807", "+OK", BOTH},
    {"LTRIM l -2 100", "+OK", BOTH}, {"LRANGE l 0 -1", "[\"c\" \"d\"]", BOTH}, {"LTRIM l 1 0", "+OK", BOTH},
    {"EXISTS l", ":0", BOTH}, {"LTRIM none 0 1", "+OK", BOTH}, {"LTRIM none x 1", NOT_INTEGER, BOTH},
    {"RPUSH l a b c", ":3", BOTH}, {"LTRIM l 5 10", "+OK", BOTH}, {"EXISTS l", ":0", BOTH},
    {"RPUSH l a b c", ":3", BOTH}, {"LTRIM l -9223372036854775808 -9223372036854775808", "+OK", BOTH},
    {"EXISTS l", ":0", BOTH}, {"RPUSH l a b c", ":3", BOTH}, {"LTRIM l x 1", NOT_INTEGER, BOTH},
    {"LTRIM l 1 x", NOT_INTEGER, BOTH}, {"LTRIM l 0", ARITY("ltrim"), BOTH}, {"LTRIM l 0 0", "+OK", BOTH},
    {"LRANGE l 0 -1", "[\"a\"]", BOTH}, {"SET s v", "+OK", BOTH}, {"LSET s 0 x", WRONGTYPE, BOTH},
    {"LSET s x x", WRONGTYPE, BOTH}, {"LINSERT s BEFORE a x", WRONGTYPE, BOTH}, {"LINSERT s FOO a x", SYNTAX, BOTH},
    {"LREM s 0 a", WRONGTYPE, BOTH}, {"LREM s x a", NOT_INTEGER, BOTH}, {"LTRIM s 0 1", WRONGTYPE, BOTH},
    {"LTRIM s x 1", NOT_INTEGER, BOTH},
};

static const struct example moving[] = {
    {"RPUSH a 1 2 3", ":3", BOTH}, {"LMOVE a b LEFT RIGHT", "\"1\"", BOTH}, {"LMOVE a b RIGHT LEFT", "\"3\"", BOTH},
    {"LMOVE a b left left", "\"2\"", BOTH}, {"LRANGE b 0 -1", "[\"2\" \"3\" \"1\"]", BOTH}, {"EXISTS a", ":0", BOTH},
    {"LMOVE a b LEFT LEFT", "nil", RESP2}, {"LMOVE a b LEFT LEFT", "null", RESP3},
    {"RPOPLPUSH a b", "nil", RESP2}, {"RPOPLPUSH a b", "null", RESP3}, {"RPOPLPUSH b a", "\"1\"", BOTH},
    {"LRANGE a 0 -1", "[\"1\"]", BOTH}, {"LMOVE b b LEFT RIGHT", "\"2\"", BOTH},
    {"LMOVE b b RIGHT LEFT", "\"2\"", BOTH}, {"LMOVE b b LEFT LEFT", "\"2\"", BOTH},
    {"LMOVE b b RIGHT RIGHT", "\"3\"", BOTH}, {"LRANGE b 0 -1", "[\"2\" \"3\"]", BOTH},
    {"RPOPLPUSH b b", "\"3\"", BOTH}, {"LRANGE b 0 -1", "[\"3\" \"2\"]", BOTH},
    {"LMOVE a a LEFT RIGHT", "\"1\"", BOTH}, {"LRANGE a 0 -1", "[\"1\"]", BOTH}, {"LMOVE a b FOO RIGHT", SYNTAX, BOTH},
    {"LMOVE a b LEFT FOO", SYNTAX, BOTH}, {"LMOVE a b LEFT", ARITY("lmove"), BOTH},
    {"LMOVE none b FOO LEFT", SYNTAX, BOTH}, {"RPOPLPUSH a", ARITY("rpoplpush"), BOTH}, {"SET s v", "+OK", BOTH},
    {"LMOVE s a LEFT LEFT", WRONGTYPE, BOTH}, {"LMOVE a s LEFT LEFT", WRONGTYPE, BOTH},
    {"LMOVE none s LEFT LEFT", "nil", RESP2}, {"LMOVE none s LEFT LEFT", "null", RESP3},
    {"LMOVE s none LEFT LEFT", WRONGTYPE, BOTH}, {"LMOVE s s LEFT LEFT", WRONGTYPE, BOTH},
    {"RPOPLPUSH a s", WRONGTYPE, BOTH}, {"RPOPLPUSH s a", WRONGTYPE, BOTH},
    {"RPOPLPUSH none s", "nil", RESP2}, {"RPOPLPUSH none s", "null", RESP3}, {"LRANGE a 0 -1", "[\"1\"]", BOTH},
    {"RPUSH t x", ":1", BOTH}, {"EXPIRE t 1000", ":1", BOTH}, {"LMOVE a t LEFT LEFT", "\"1\"", BOTH},
    {"TTL t", ":1000", BOTH}, {"LMOVE t t LEFT RIGHT", "\"1\"", BOTH}, {"RPUSH m 1 2 3 4 5 6", ":6", BOTH},
    {"LMPOP 1 m LEFT", "[\"m\" [\"1\"]]", BOTH}, {"LMPOP 1 m RIGHT COUNT 2", "[\"m\" [\"6\" \"5\"]]", BOTH},
    {"LMPOP 2 none m left count 10", "[\"m\" [\"2\" \"3\" \"4\"]]", BOTH},
    {"LMPOP 1 m LEFT", "nil*", RESP2}, {"LMPOP 1 m LEFT", "null", RESP3},
    {"LMPOP 2 none none2 RIGHT COUNT 5", "nil*", RESP2}, {"LMPOP 2 none none2 RIGHT COUNT 5", "null", RESP3},
    {"LMPOP 2 none s LEFT", WRONGTYPE, BOTH}, {"LMPOP 2 s b LEFT", WRONGTYPE, BOTH},
    {"LMPOP 2 b s LEFT", "[\"b\" [\"3\"]]", BOTH}, {"LMPOP 0 m LEFT", "-ERR numkeys should be greater than 0", BOTH},
    {"LMPOP -1 m LEFT", "-ERR numkeys should be greater than 0", BOTH},
    {"LMPOP x m LEFT", "-ERR numkeys should be greater than 0", BOTH}, {"LMPOP 2 m LEFT", SYNTAX, BOTH},
    {"LMPOP 1 m FOO", SYNTAX, BOTH}, {"LMPOP 1 m", ARITY("lmpop"), BOTH}, {"LMPOP 1 m LEFT COUNT", SYNTAX, BOTH},
    {"LMPOP 1 m LEFT COUNT 0", "-ERR count should be greater than 0", BOTH},
    {"LMPOP 1 m LEFT COUNT -1", "-ERR count should be greater than 0", BOTH},
    {"LMPOP 1 m LEFT COUNT x", "-ERR count should be greater than 0", BOTH},
    {"LMPOP 1 m LEFT COUNT 1 COUNT 2", SYNTAX, BOTH}, {"LMPOP 1 m LEFT FOO", SYNTAX, BOTH},
    {"LMPOP 1 m LEFT RIGHT", SYNTAX, BOTH}, {"LMPOP 9223372036854775807 m LEFT", SYNTAX, BOTH},
    {"LMPOP 9223372036854775808 m LEFT", "-ERR numkeys should be greater than 0", BOTH},
};

static const struct example waiting[] = {
    {"RPUSH l a b c d e f g h", ":8", BOTH}, {"BLPOP l 0", "[\"l\" \"a\"]", BOTH},
    {"BRPOP l 1", "[\"l\" \"h\"]", BOTH}, {"BLPOP none l 0.5", "[\"l\" \"b\"]", BOTH},
    {"BRPOP none none2 l 0", "[\"l\" \"g\"]", BOTH}, {"BLMOVE l m LEFT RIGHT 0", "\"c\"", BOTH},
    {"BRPOPLPUSH l m 0", "\"f\"", BOTH}, {"LRANGE m 0 -1", "[\"f\" \"c\"]", BOTH},
    {"BLMPOP 0 1 l LEFT", "[\"l\" [\"d\"]]", BOTH}, {"BLMPOP 0 2 none l RIGHT COUNT 5", "[\"l\" [\"e\"]]", BOTH},
    {"EXISTS l", ":0", BOTH}, {"BLPOP l 0.01", "nil*", RESP2}, {"BLPOP l 0.01", "null", RESP3},
    {"BRPOP l none 0.01", "nil*", RESP2}, {"BRPOP l none 0.01", "null", RESP3},
    {"BLMOVE l m LEFT RIGHT 0.01", "nil*", RESP2}, {"BLMOVE l m LEFT RIGHT 0.01", "null", RESP3},
    {"BRPOPLPUSH l m 0.01", "nil*", RESP2}, {"BRPOPLPUSH l m 0.01", "null", RESP3},
    {"BLMPOP 0.01 1 l LEFT", "nil*", RESP2}, {"BLMPOP 0.01 1 l LEFT", "null", RESP3},
    {"BLPOP l -1", "-ERR timeout is negative", BOTH},
    {"BLPOP l x", "-ERR timeout is not a float or out of range", BOTH},
    {"BLPOP l ''", "-ERR timeout is not a float or out of range", BOTH},
    {"BLPOP l inf", "-ERR timeout is out of range", NEW},
    {"BLPOP l nan", "-ERR timeout is not a float or out of range", BOTH},
    {"BLPOP l -0.5", "-ERR timeout is negative", BOTH},
    {"BLPOP l 9223372036854775807", "-ERR timeout is out of range", NEW},
    {"BRPOP l -1", "-ERR timeout is negative", BOTH}, {"BLMOVE l m LEFT RIGHT -1", "-ERR timeout is negative", BOTH},
    {"BLMOVE l m LEFT RIGHT x", "-ERR timeout is not a float or out of range", BOTH},
    {"BLMOVE l m FOO RIGHT x", SYNTAX, BOTH}, {"BLMOVE l m LEFT FOO x", SYNTAX, BOTH},
    {"BLMOVE l m LEFT RIGHT", ARITY("blmove"), BOTH},
    {"BRPOPLPUSH l m x", "-ERR timeout is not a float or out of range", BOTH},
    {"BRPOPLPUSH l m -1", "-ERR timeout is negative", BOTH},
    {"BLMPOP x 1 l LEFT", "-ERR timeout is not a float or out of range", BOTH},
    {"BLMPOP -1 1 l LEFT", "-ERR timeout is negative", BOTH},
    {"BLMPOP x 0 l LEFT", "-ERR numkeys should be greater than 0", BOTH}, {"BLMPOP x 1 l FOO", SYNTAX, BOTH},
    {"BLMPOP 0 1 l LEFT COUNT 0", "-ERR count should be greater than 0", BOTH}, {"BLMPOP 0 2 l LEFT", SYNTAX, BOTH},
    {"BLPOP l", ARITY("blpop"), BOTH}, {"BLMPOP 0 1 l", ARITY("blmpop"), BOTH}, {"SET s v", "+OK", BOTH},
    {"BLPOP s 0", WRONGTYPE, BOTH}, {"BLPOP s x", "-ERR timeout is not a float or out of range", BOTH},
    {"BLPOP none s 0", WRONGTYPE, BOTH}, {"BLPOP none s m 0", WRONGTYPE, BOTH}, {"BLPOP m s 0", "[\"m\" \"f\"]", BOTH},
    {"BLMOVE s m LEFT RIGHT 0", WRONGTYPE, BOTH}, {"BLMOVE m s LEFT RIGHT 0", WRONGTYPE, BOTH},
    {"BLMOVE none s LEFT RIGHT 0.01", "nil*", RESP2}, {"BLMOVE none s LEFT RIGHT 0.01", "null", RESP3},
    {"BRPOPLPUSH m s 0", WRONGTYPE, BOTH}, {"BLMPOP 0 2 none s LEFT", WRONGTYPE, BOTH},
    {"BLMOVE m m LEFT RIGHT 0", "\"c\"", BOTH}, {"COMMAND GETKEYS BLPOP a b c 0", "[\"a\" \"b\" \"c\"]", BOTH},
    {"COMMAND GETKEYS BLMOVE a b LEFT RIGHT 0", "[\"a\" \"b\"]", BOTH},
    {"COMMAND GETKEYS BLMPOP 0 2 a b LEFT", "[\"a\" \"b\"]", BOTH},
    {"COMMAND GETKEYS LMPOP 2 a b LEFT", "[\"a\" \"b\"]", BOTH},
    {"COMMAND GETKEYS LMOVE a b LEFT LEFT", "[\"a\" \"b\"]", BOTH},
    {"COMMAND GETKEYS LMPOP 3 a b", "-ERR Invalid arguments specified for command", BOTH},
    {"COMMAND GETKEYSANDFLAGS BRPOPLPUSH a b 0", "[[\"a\" [+RW +access +delete]] [\"b\" [+RW +insert]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS BRPOPLPUSH a b 0", "[[\"a\" ~[+RW +access +delete]] [\"b\" ~[+RW +insert]]]", RESP3},
    {"COMMAND GETKEYSANDFLAGS LPUSH a b c", "[[\"a\" [+RW +insert]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS LPUSH a b c", "[[\"a\" ~[+RW +insert]]]", RESP3},
};

/* clang-format on */

static const struct example_group groups[] = {
    EXAMPLES(pushing),  EXAMPLES(popping), EXAMPLES(reading),
    EXAMPLES(changing), EXAMPLES(moving),  EXAMPLES(waiting),
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

/* ---- large lists ---- */

static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Elements that repeat now and then, a few of them long. */
static void element(uint64_t n, char *out, size_t cap) {
    static const char filler[] = "----------------------------------------------------------------";
    int width = n % 11 == 0 ? 60 : n % 101 == 0 ? 0 : (int)(n % 13);
    snprintf(out, cap, "e%llu%.*s", (unsigned long long)(n % (LARGE / 2)), width, filler);
}

static void load(struct client *c, const char *key) {
    for (int i = 0; i < LARGE;) {
        int n = 0;
        for (; n < PIPELINE && i < LARGE; n++, i++) {
            char text[128];
            element((uint64_t)i, text, sizeof(text));
            client_append(c, i % 5 == 4 ? "LPUSH" : "RPUSH", key, text, NULL);
        }
        assert_true(client_flush(c));
        while (n-- > 0) {
            struct reply *r = client_read(c);
            assert_true(r && r->type == ':');
            reply_free(r);
        }
    }
}

/* A random command on the lists a and b, of up to seven words. */
static int random_line(uint64_t *seed, const char **argv, char text[3][128]) {
    static const char *const ends[] = {"LEFT", "RIGHT"};
    const char *key = next_random(seed) % 2 ? "a" : "b", *end = ends[next_random(seed) % 2];
    long at = (long)(next_random(seed) % (LARGE * 2)) - LARGE, n = (long)(next_random(seed) % 70);
    snprintf(text[0], 128, "%ld", at);
    snprintf(text[1], 128, "%ld", n);
    element(next_random(seed) % LARGE, text[2], 128);
    unsigned kind = (unsigned)(next_random(seed) % 12);
    const char *words[7] = {NULL, key, text[0], text[2]};
    switch (kind) {
    case 0:
    case 1:
        words[0] = "LINDEX";
        words[3] = NULL;
        break;
    case 2:
        words[0] = "LSET";
        break;
    case 3:
    case 4:
        snprintf(text[1], 128, "%ld", at + n);
        words[0] = "LRANGE";
        words[3] = text[1];
        break;
    case 5:
    case 6:
        words[0] = "LINSERT";
        words[2] = end[0] == 'L' ? "BEFORE" : "AFTER";
        words[4] = n % 2 ? "a new element" : text[1];
        break;
    case 7:
        snprintf(text[1], 128, "%ld", n % 5 - 2);
        words[0] = "LREM";
        words[2] = text[1];
        break;
    case 8:
        words[0] = "LPOS";
        words[2] = text[2];
        words[3] = "RANK";
        words[4] = end[0] == 'L' ? "1" : "-2";
        words[5] = "COUNT";
        words[6] = "0";
        break;
    case 9:
        words[0] = end[0] == 'L' ? "LPOP" : "RPOP";
        words[2] = text[1];
        words[3] = NULL;
        break;
    case 10:
        words[0] = "LMOVE";
        words[2] = n % 3 ? "b" : "a";
        words[3] = end;
        words[4] = ends[n % 2];
        break;
    default:
        words[0] = end[0] == 'L' ? "LPUSH" : "RPUSH";
        words[2] = text[2];
        words[3] = text[1];
        words[4] = end;
        break;
    }
    int argc = 0;
    while (argc < 7 && words[argc]) {
        argv[argc] = words[argc];
        argc++;
    }
    return argc;
}

static char *answer(struct client *c, int argc, const char *const *argv) {
    size_t lens[7];
    for (int i = 0; i < argc; i++) {
        lens[i] = strlen(argv[i]);
    }
    struct reply *r = client_cmd_argv(c, argc, argv, lens);
    char *got = reply_text(r);
    reply_free(r);
    return got;
}

static int compare(struct client *const clients[2], int argc, const char *const *argv) {
    char *a = answer(clients[0], argc, argv), *b = answer(clients[1], argc, argv);
    int wrong = strcmp(a, b) != 0;
    if (wrong) {
        fprintf(stderr, "%s %s %s\n  oracle %.300s\n  ours   %.300s\n", argv[0], argv[1],
                argc > 2 ? argv[2] : "", a, b);
    }
    free(a);
    free(b);
    return wrong;
}

static void large_lists_answer_as_the_oracles(void **state) {
    (void)state;
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server to compare with");
    }
    struct server *servers[2] = {server_start(SERVER_ORACLE, NULL),
                                 server_start(SERVER_GOBLIN, NULL)};
    struct client *clients[2];
    uint64_t seed = 11;
    int wrong = 0;
    for (int i = 0; i < 2; i++) {
        clients[i] = server_connect(servers[i]);
        load(clients[i], "a");
        load(clients[i], "b");
    }
    for (int i = 0; i < ROUNDS && wrong < 5; i++) {
        const char *argv[7];
        char text[3][128];
        int argc = random_line(&seed, argv, text);
        wrong += compare(clients, argc, argv);
    }
    static const char *const ends[][4] = {
        {"LRANGE", "a", "0", "-1"},       {"LRANGE", "b", "0", "-1"},
        {"LTRIM", "a", "700", "-900"},    {"LRANGE", "a", "0", "-1"},
        {"LTRIM", "b", "-3000", "10000"}, {"LRANGE", "b", "0", "-1"},
        {"LTRIM", "a", "100", "110"},     {"LRANGE", "a", "0", "-1"},
        {"LPOP", "b", "100000"},          {"EXISTS", "b"},
    };
    for (size_t i = 0; i < COUNT(ends); i++) {
        int argc = 0;
        while (argc < 4 && ends[i][argc]) {
            argc++;
        }
        wrong += compare(clients, argc, ends[i]);
    }
    for (int i = 0; i < 2; i++) {
        client_close(clients[i]);
        server_stop(servers[i]);
    }
    assert_int_equal(wrong, 0);
}

/* ---- memory ---- */

/* A command of a thousand elements of 100 bytes. */
static void push_thousand(struct client *c, const char *key) {
    static char text[128];
    const char *argv[1002] = {"RPUSH", key};
    memset(text, 'x', 100);
    for (size_t i = 2; i < COUNT(argv); i++) {
        argv[i] = text;
    }
    client_append_argv(c, (int)COUNT(argv), argv, NULL);
}

/* The list is not touched again: what it dropped is freed behind it. */
static void a_list_that_was_cut_gives_its_memory_back(void **state) {
    (void)state;
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    for (int i = 0; i < 200; i++) {
        push_thousand(c, "l");
    }
    assert_true(client_flush(c));
    for (int i = 0; i < 200; i++) {
        reply_free(client_read(c));
    }
    long long full = client_info_number(c, "memory", "used_memory"), now = full;
    client_expect(c, "+OK", "LTRIM", "l", "1000", "1999", NULL);
    client_expect(c, ":1000", "LLEN", "l", NULL);
    for (int i = 0; i < 500 && now > full / 2; i++) {
        client_expect(c, "+OK", "DEBUG", "CHECK", NULL);
        usleep(10000);
        now = client_info_number(c, "memory", "used_memory");
    }
    assert_true(now < full / 2);
    assert_int_equal(client_info_number(c, "memory", "lazyfreed_objects"), 0);
    client_close(c);
    server_stop(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_hold_in_resp2),
        cmocka_unit_test(examples_hold_in_resp3),
        cmocka_unit_test(the_oracle_agrees_with_the_examples),
        cmocka_unit_test(large_lists_answer_as_the_oracles),
        cmocka_unit_test(a_list_that_was_cut_gives_its_memory_back),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
