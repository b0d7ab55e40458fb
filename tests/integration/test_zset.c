/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorted sets by example (support/example.h), and large ones beside the oracle. Commands that wait
 * are in test_zset_blocking.c. */
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
#define BAD_SCORE "-ERR min or max is not a float"
#define BAD_LEX "-ERR min or max not valid string range item"

enum { LARGE = 20000, PIPELINE = 500 };

/* clang-format off */
static const struct example adding[] = {
    {"ZADD z 1 a 2 b 3 c", ":3", BOTH}, {"ZADD z 1 a 5 b", ":0", BOTH}, {"ZADD z CH 1 a 6 b 4 d", ":2", BOTH},
    {"ZADD z XX CH 7 a 9 new", ":1", BOTH}, {"ZADD z NX 9 a 10 e", ":1", BOTH}, {"ZADD z GT CH 1 a 11 b", ":1", BOTH},
    {"ZADD z LT CH 1 a 12 b", ":1", BOTH}, {"ZADD z XX GT CH 5 a 5 nobody", ":1", BOTH},
    {"ZRANGE z 0 -1 WITHSCORES", "[\"c\" \"3\" \"d\" \"4\" \"a\" \"5\" \"e\" \"10\" \"b\" \"11\"]", RESP2}, {"ZRANGE z 0 -1 WITHSCORES", "[[\"c\" ,3] [\"d\" ,4] [\"a\" ,5] [\"e\" ,10] [\"b\" ,11]]", RESP3},
    {"ZADD z INCR 2.5 a", "\"7.5\"", RESP2}, {"ZADD z INCR 2.5 a", ",7.5", RESP3},
    {"ZADD z NX INCR 1 a", "nil", RESP2}, {"ZADD z NX INCR 1 a", "null", RESP3},
    {"ZADD z XX INCR 1 nobody", "nil", RESP2}, {"ZADD z XX INCR 1 nobody", "null", RESP3},
    {"ZADD z GT INCR -1 a", "nil", RESP2}, {"ZADD z GT INCR -1 a", "null", RESP3},
    {"ZADD z LT INCR -1 a", "\"6.5\"", RESP2}, {"ZADD z LT INCR -1 a", ",6.5", RESP3},
    {"ZADD z INCR CH 0 a", "\"6.5\"", RESP2}, {"ZADD z INCR CH 0 a", ",6.5", RESP3}, {"ZADD none XX 1 a", ":0", BOTH},
    {"ZADD none XX INCR 1 a", "nil", RESP2}, {"ZADD none XX INCR 1 a", "null", RESP3}, {"EXISTS none", ":0", BOTH},
    {"ZADD z NX XX 1 a", "-ERR XX and NX options at the same time are not compatible", BOTH},
    {"ZADD z NX GT 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible", BOTH},
    {"ZADD z NX LT 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible", BOTH},
    {"ZADD z GT LT 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible", BOTH},
    {"ZADD z 1 a 2", SYNTAX, BOTH}, {"ZADD z CH INCR", SYNTAX, BOTH}, {"ZADD z CH", ARITY("zadd"), BOTH},
    {"ZADD z INCR 1 a 2 b", "-ERR INCR option supports a single increment-element pair", BOTH},
    {"ZADD z nan a", NOT_FLOAT, BOTH}, {"ZADD z '' a", NOT_FLOAT, BOTH}, {"ZADD z ' 1' a", NOT_FLOAT, BOTH},
    {"ZADD z 1e400 a", NOT_FLOAT, BOTH}, {"ZADD z 1 new x b", NOT_FLOAT, BOTH},
    {"ZSCORE z new", "nil", RESP2}, {"ZSCORE z new", "null", RESP3},
    {"ZADD limits inf a -inf b 0x10 c 1e3 d 0 e 1.7976931348623157e308 f 2251799813685249.5 g", ":7", BOTH},
    {"ZRANGE limits 0 -1 WITHSCORES", "[\"b\" \"-inf\" \"e\" \"0\" \"c\" \"16\" \"d\" \"1000\" \"g\" \"2251799813685249.5\" \"f\" \"1.7976931348623157e+308\" \"a\" \"inf\"]", RESP2}, {"ZRANGE limits 0 -1 WITHSCORES", "[[\"b\" ,-inf] [\"e\" ,0] [\"c\" ,16] [\"d\" ,1000] [\"g\" ,2251799813685249.5] [\"f\" ,1.7976931348623157e+308] [\"a\" ,inf]]", RESP3},
    {"ZADD limits INCR -inf a", "-ERR resulting score is not a number (NaN)", BOTH},
    {"ZINCRBY limits -inf a", "-ERR resulting score is not a number (NaN)", BOTH},
    {"ZADD limits NX INCR -inf a", "nil", RESP2}, {"ZADD limits NX INCR -inf a", "null", RESP3},
    {"ZINCRBY limits 1 c", "\"17\"", RESP2}, {"ZINCRBY limits 1 c", ",17", RESP3},
    {"ZINCRBY z 1.5 a", "\"8\"", RESP2}, {"ZINCRBY z 1.5 a", ",8", RESP3},
    {"ZINCRBY z -100 fresh", "\"-100\"", RESP2}, {"ZINCRBY z -100 fresh", ",-100", RESP3},
    {"ZINCRBY newkey 3 m", "\"3\"", RESP2}, {"ZINCRBY newkey 3 m", ",3", RESP3}, {"ZINCRBY z nan a", NOT_FLOAT, BOTH},
    {"ZINCRBY z x a", NOT_FLOAT, BOTH}, {"ZINCRBY z 1", ARITY("zincrby"), BOTH}, {"SET s v", "+OK", BOTH},
    {"ZADD s 1 a", WRONGTYPE, BOTH}, {"ZADD s XX 1 a", WRONGTYPE, BOTH}, {"ZADD s x a", NOT_FLOAT, BOTH},
    {"ZADD s INCR 1 a", WRONGTYPE, BOTH}, {"ZINCRBY s 1 a", WRONGTYPE, BOTH},
    {"ZADD bin 1 '' 1 \\x00 1 \\x00\\xff 1 a\\x0d\\x0ab", ":4", BOTH},
    {"ZRANGE bin 0 -1", "[\"\" \"\\x00\" \"\\x00\\xff\" \"a\\x0d\\x0ab\"]", BOTH}, {"TYPE bin", "+zset", BOTH},
};

/* -0 is what Redis keeps in its skiplist form, which the long member asks for. */
static const struct example zeros[] = {
    {"ZADD z 0 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx 0 b -0 a -0.0 c", ":4", BOTH}, {"OBJECT ENCODING z", "\"skiplist\"", BOTH},
    {"ZMSCORE z a b c", "[\"-0\" \"0\" \"-0\"]", RESP2}, {"ZMSCORE z a b c", "[,-0 ,0 ,-0]", RESP3},
    {"ZRANGE z 0 2", "[\"a\" \"b\" \"c\"]", BOTH}, {"ZCOUNT z -0 0", ":4", BOTH}, {"ZCOUNT z (-0 1", ":0", BOTH},
    {"ZADD z CH -0 b 0 a", ":0", BOTH}, {"ZSCORE z a", "\"-0\"", RESP2}, {"ZSCORE z b", "\"0\"", RESP2},
    {"ZADD z GT CH 0 a", ":0", BOTH}, {"ZINCRBY z 0 a", "\"0\"", RESP2}, {"ZSCORE z a", "\"-0\"", RESP2},
    {"ZADD z CH 1 b", ":1", BOTH}, {"ZADD z CH -0 b", ":1", BOTH}, {"ZSCORE z b", "\"-0\"", RESP2},
    {"ZINCRBY z -0 d", "\"-0\"", RESP2}, {"ZINCRBY z -0 d", ",-0", RESP3},
    {"ZRANGEBYSCORE z 0 0 LIMIT 0 2", "[\"a\" \"b\"]", BOTH}, {"ZPOPMIN z", "[\"a\" \"-0\"]", RESP2},
};

static const struct example small_zeros[] = {
    {"ZADD z -0 a 0 b", ":2", BOTH}, {"OBJECT ENCODING z", "\"listpack\"", BOTH},
    {"ZMSCORE z a b", "[\"-0\" \"0\"]", RESP2_NEW}, {"ZMSCORE z a b", "[,-0 ,0]", RESP3_NEW},
    {"ZUNIONSTORE u 1 z", ":2", BOTH}, {"ZRANGESTORE r z 0 -1", ":2", BOTH}, {"ZSCORE r a", "\"-0\"", RESP2_NEW},
};

static const struct example reading[] = {
    {"ZADD z 1 a 2.5 b 3 c", ":3", BOTH}, {"ZCARD z", ":3", BOTH}, {"ZCARD none", ":0", BOTH},
    {"ZSCORE z b", "\"2.5\"", RESP2}, {"ZSCORE z b", ",2.5", RESP3},
    {"ZSCORE z nobody", "nil", RESP2}, {"ZSCORE z nobody", "null", RESP3},
    {"ZSCORE none a", "nil", RESP2}, {"ZSCORE none a", "null", RESP3},
    {"ZMSCORE z a nobody c", "[\"1\" nil \"3\"]", RESP2}, {"ZMSCORE z a nobody c", "[,1 null ,3]", RESP3},
    {"ZMSCORE none a b", "[nil nil]", RESP2}, {"ZMSCORE none a b", "[null null]", RESP3}, {"ZRANK z a", ":0", BOTH},
    {"ZRANK z c", ":2", BOTH}, {"ZRANK z nobody", "nil", RESP2}, {"ZRANK z nobody", "null", RESP3},
    {"ZRANK none a", "nil", RESP2}, {"ZRANK none a", "null", RESP3}, {"ZREVRANK z a", ":2", BOTH},
    {"ZREVRANK z c", ":0", BOTH},
    {"ZRANK z b WITHSCORE", "[:1 \"2.5\"]", RESP2_NEW}, {"ZRANK z b WITHSCORE", "[:1 ,2.5]", RESP3_NEW},
    {"ZREVRANK z a withscore", "[:2 \"1\"]", RESP2_NEW}, {"ZREVRANK z a withscore", "[:2 ,1]", RESP3_NEW},
    {"ZRANK z nobody WITHSCORE", "nil*", RESP2_NEW}, {"ZRANK none a WITHSCORE", "null", RESP3_NEW},
    {"ZRANK z a WITHSCORES", SYNTAX, NEW}, {"ZRANK z a WITHSCORE x", ARITY("zrank"), NEW},
    {"ZREVRANK s a FOO", SYNTAX, NEW}, {"ZRANK z", ARITY("zrank"), BOTH}, {"ZCOUNT z 1 3", ":3", BOTH},
    {"ZCOUNT z (1 (3", ":1", BOTH}, {"ZCOUNT z -inf +inf", ":3", BOTH}, {"ZCOUNT z 3 1", ":0", BOTH},
    {"ZCOUNT z (2.5 2.5", ":0", BOTH}, {"ZCOUNT z '' 5", ":3", BOTH}, {"ZCOUNT z ' 1' 1e400", ":3", BOTH},
    {"ZCOUNT z x 1", BAD_SCORE, BOTH}, {"ZCOUNT z 1 (x", BAD_SCORE, BOTH}, {"ZCOUNT z nan 1", BAD_SCORE, BOTH},
    {"ZCOUNT z ((1 1", BAD_SCORE, BOTH}, {"ZCOUNT none 1 2", ":0", BOTH}, {"ZCOUNT none x 2", BAD_SCORE, BOTH},
    {"ZADD l 0 a 0 b 0 c 0 d 0 aa", ":5", BOTH}, {"ZLEXCOUNT l - +", ":5", BOTH}, {"ZLEXCOUNT l [a (c", ":3", BOTH},
    {"ZLEXCOUNT l (a [c", ":3", BOTH}, {"ZLEXCOUNT l + -", ":0", BOTH}, {"ZLEXCOUNT l - -", ":0", BOTH},
    {"ZLEXCOUNT l + +", ":0", BOTH}, {"ZLEXCOUNT l [c [a", ":0", BOTH}, {"ZLEXCOUNT l a c", BAD_LEX, BOTH},
    {"ZLEXCOUNT l '' c", BAD_LEX, BOTH}, {"ZLEXCOUNT l -a +", BAD_LEX, BOTH}, {"ZLEXCOUNT none - +", ":0", BOTH},
    {"ZRANDMEMBER none", "nil", RESP2}, {"ZRANDMEMBER none", "null", RESP3}, {"ZRANDMEMBER none 3", "[]", BOTH},
    {"ZRANDMEMBER z 0", "[]", BOTH}, {"ZADD one 1.5 x", ":1", BOTH}, {"ZRANDMEMBER one", "\"x\"", BOTH},
    {"ZRANDMEMBER one 5", "[\"x\"]", BOTH}, {"ZRANDMEMBER one -3", "[\"x\" \"x\" \"x\"]", BOTH},
    {"ZRANDMEMBER one 1 WITHSCORES", "[\"x\" \"1.5\"]", RESP2}, {"ZRANDMEMBER one 1 WITHSCORES", "[[\"x\" ,1.5]]", RESP3},
    {"ZRANDMEMBER one -2 WITHSCORES", "[\"x\" \"1.5\" \"x\" \"1.5\"]", RESP2}, {"ZRANDMEMBER one -2 WITHSCORES", "[[\"x\" ,1.5] [\"x\" ,1.5]]", RESP3},
    {"ZRANDMEMBER z x", NOT_INTEGER, BOTH}, {"ZRANDMEMBER z 1 FOO", SYNTAX, BOTH},
    {"ZRANDMEMBER z 1 WITHSCORES x", SYNTAX, BOTH},
    {"ZRANDMEMBER z -9223372036854775808", "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807", BOTH},
    {"ZRANDMEMBER z 4611686018427387904 WITHSCORES", "-ERR value is out of range", BOTH},
    {"ZSCAN one 0", "[\"0\" [\"x\" \"1.5\"]]", BOTH},
    {"ZSCAN z 0 MATCH [ab]", "[\"0\" [\"a\" \"1\" \"b\" \"2.5\"]]", BOTH},
    {"ZSCAN z 0 MATCH c COUNT 100", "[\"0\" [\"c\" \"3\"]]", BOTH}, {"ZSCAN none 0", "[\"0\" []]", BOTH},
    {"ZSCAN z x", "-ERR invalid cursor", BOTH}, {"ZSCAN z 0 COUNT 0", SYNTAX, BOTH},
    {"ZSCAN z 0 COUNT x", NOT_INTEGER, BOTH}, {"ZSCAN z 0 FOO", SYNTAX, BOTH}, {"ZSCAN z 0 NOVALUES", SYNTAX, BOTH},
    {"SET s v", "+OK", BOTH}, {"ZCARD s", WRONGTYPE, BOTH}, {"ZSCORE s a", WRONGTYPE, BOTH},
    {"ZMSCORE s a", WRONGTYPE, BOTH}, {"ZRANK s a", WRONGTYPE, BOTH}, {"ZREVRANK s a", WRONGTYPE, BOTH},
    {"ZCOUNT s 1 2", WRONGTYPE, BOTH}, {"ZLEXCOUNT s - +", WRONGTYPE, BOTH}, {"ZRANDMEMBER s", WRONGTYPE, BOTH},
    {"ZSCAN s 0", WRONGTYPE, BOTH}, {"GET z", WRONGTYPE, BOTH}, {"HGET z a", WRONGTYPE, BOTH},
};

static const struct example ranges[] = {
    {"ZADD z 1 a 2 b 3 c 4 d 5 e", ":5", BOTH}, {"ZRANGE z 0 -1", "[\"a\" \"b\" \"c\" \"d\" \"e\"]", BOTH},
    {"ZRANGE z 1 2", "[\"b\" \"c\"]", BOTH}, {"ZRANGE z -2 -1", "[\"d\" \"e\"]", BOTH},
    {"ZRANGE z -100 100", "[\"a\" \"b\" \"c\" \"d\" \"e\"]", BOTH}, {"ZRANGE z 3 1", "[]", BOTH},
    {"ZRANGE z 5 9", "[]", BOTH},
    {"ZRANGE z -9223372036854775808 9223372036854775807", "[\"a\" \"b\" \"c\" \"d\" \"e\"]", BOTH},
    {"ZRANGE z 0 1 WITHSCORES", "[\"a\" \"1\" \"b\" \"2\"]", RESP2}, {"ZRANGE z 0 1 WITHSCORES", "[[\"a\" ,1] [\"b\" ,2]]", RESP3},
    {"ZRANGE z 0 1 REV", "[\"e\" \"d\"]", BOTH},
    {"ZRANGE z 0 1 REV WITHSCORES", "[\"e\" \"5\" \"d\" \"4\"]", RESP2}, {"ZRANGE z 0 1 REV WITHSCORES", "[[\"e\" ,5] [\"d\" ,4]]", RESP3},
    {"ZRANGE none 0 -1", "[]", BOTH}, {"ZRANGE z 2 4 BYSCORE", "[\"b\" \"c\" \"d\"]", BOTH},
    {"ZRANGE z (2 (4 BYSCORE", "[\"c\"]", BOTH}, {"ZRANGE z 4 2 BYSCORE REV", "[\"d\" \"c\" \"b\"]", BOTH},
    {"ZRANGE z 2 4 BYSCORE REV", "[]", BOTH}, {"ZRANGE z -inf +inf BYSCORE LIMIT 1 2", "[\"b\" \"c\"]", BOTH},
    {"ZRANGE z +inf -inf BYSCORE REV LIMIT 1 2 WITHSCORES", "[\"d\" \"4\" \"c\" \"3\"]", RESP2}, {"ZRANGE z +inf -inf BYSCORE REV LIMIT 1 2 WITHSCORES", "[[\"d\" ,4] [\"c\" ,3]]", RESP3},
    {"ZRANGE z -inf +inf BYSCORE LIMIT -1 2", "[]", BOTH},
    {"ZRANGE z -inf +inf BYSCORE LIMIT 3 -1", "[\"d\" \"e\"]", BOTH},
    {"ZRANGE z -inf +inf BYSCORE LIMIT 0 0", "[]", BOTH}, {"ZRANGE z -inf +inf BYSCORE LIMIT 9 1", "[]", BOTH},
    {"ZRANGE z -inf +inf BYSCORE LIMIT 4 9223372036854775807", "[\"e\"]", BOTH},
    {"ZRANGE z -inf +inf BYSCORE LIMIT 9223372036854775807 9223372036854775807", "[]", BOTH},
    {"ZRANGE z -inf +inf BYSCORE LIMIT 0 x", NOT_INTEGER, BOTH}, {"ZRANGE z -inf +inf BYSCORE LIMIT 0", SYNTAX, BOTH},
    {"ZRANGE z [b (d BYLEX", "[\"b\" \"c\"]", BOTH}, {"ZRANGE z (d [b BYLEX REV", "[\"c\" \"b\"]", BOTH},
    {"ZRANGE z - + BYLEX LIMIT 1 2", "[\"b\" \"c\"]", BOTH},
    {"ZRANGE z + - BYLEX REV LIMIT 1 2", "[\"d\" \"c\"]", BOTH},
    {"ZRANGE z 0 -1 LIMIT 0 1", "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX", BOTH},
    {"ZRANGE z 0 -1 LIMIT 0 -1", "[\"a\" \"b\" \"c\" \"d\" \"e\"]", BOTH},
    {"ZRANGE z - + BYLEX WITHSCORES", "-ERR syntax error, WITHSCORES not supported in combination with BYLEX", BOTH},
    {"ZRANGE z 0 -1 BYSCORE BYLEX", SYNTAX, BOTH}, {"ZRANGE z 0 -1 REV REV", SYNTAX, BOTH},
    {"ZRANGE z 0 -1 FOO", SYNTAX, BOTH}, {"ZRANGE z x 1", NOT_INTEGER, BOTH}, {"ZRANGE z 1.5 2", NOT_INTEGER, BOTH},
    {"ZRANGE z 1 x BYSCORE", BAD_SCORE, BOTH}, {"ZRANGE z a b BYLEX", BAD_LEX, BOTH},
    {"ZREVRANGE z 0 1", "[\"e\" \"d\"]", BOTH},
    {"ZREVRANGE z 0 0 WITHSCORES", "[\"e\" \"5\"]", RESP2}, {"ZREVRANGE z 0 0 WITHSCORES", "[[\"e\" ,5]]", RESP3},
    {"ZREVRANGE z 0 1 REV", SYNTAX, BOTH}, {"ZREVRANGE z -1 -1", "[\"a\"]", BOTH},
    {"ZRANGEBYSCORE z 2 3", "[\"b\" \"c\"]", BOTH},
    {"ZRANGEBYSCORE z (2 +inf WITHSCORES LIMIT 1 1", "[\"d\" \"4\"]", RESP2}, {"ZRANGEBYSCORE z (2 +inf WITHSCORES LIMIT 1 1", "[[\"d\" ,4]]", RESP3},
    {"ZRANGEBYSCORE z 3 2", "[]", BOTH}, {"ZRANGEBYSCORE z 1 2 BYSCORE", SYNTAX, BOTH},
    {"ZRANGEBYSCORE z min max", BAD_SCORE, BOTH}, {"ZREVRANGEBYSCORE z 3 2", "[\"c\" \"b\"]", BOTH},
    {"ZREVRANGEBYSCORE z (3 -inf LIMIT 0 1 WITHSCORES", "[\"b\" \"2\"]", RESP2}, {"ZREVRANGEBYSCORE z (3 -inf LIMIT 0 1 WITHSCORES", "[[\"b\" ,2]]", RESP3},
    {"ZRANGEBYLEX z [b [c", "[\"b\" \"c\"]", BOTH}, {"ZRANGEBYLEX z - (c LIMIT 1 5", "[\"b\"]", BOTH},
    {"ZRANGEBYLEX z b c", BAD_LEX, BOTH},
    {"ZRANGEBYLEX z [b [c WITHSCORES", "-ERR syntax error, WITHSCORES not supported in combination with BYLEX", BOTH},
    {"ZREVRANGEBYLEX z + [d", "[\"e\" \"d\"]", BOTH}, {"ZREVRANGEBYLEX z [d +", "[]", BOTH},
    {"ZRANGESTORE d z 1 2", ":2", BOTH},
    {"ZRANGE d 0 -1 WITHSCORES", "[\"b\" \"2\" \"c\" \"3\"]", RESP2}, {"ZRANGE d 0 -1 WITHSCORES", "[[\"b\" ,2] [\"c\" ,3]]", RESP3},
    {"ZRANGESTORE d z 2 4 BYSCORE LIMIT 1 1", ":1", BOTH},
    {"ZRANGE d 0 -1 WITHSCORES", "[\"c\" \"3\"]", RESP2}, {"ZRANGE d 0 -1 WITHSCORES", "[[\"c\" ,3]]", RESP3},
    {"ZRANGESTORE d z + [d BYLEX REV", ":2", BOTH}, {"ZRANGE d 0 -1", "[\"d\" \"e\"]", BOTH},
    {"EXPIRE d 100", ":1", BOTH}, {"ZRANGESTORE d d 0 0", ":1", BOTH}, {"TTL d", ":-1", BOTH},
    {"ZRANGE d 0 -1", "[\"d\"]", BOTH}, {"ZRANGESTORE d z 9 10", ":0", BOTH}, {"EXISTS d", ":0", BOTH},
    {"ZRANGESTORE d none 0 -1", ":0", BOTH}, {"ZRANGESTORE d z 0 -1 WITHSCORES", SYNTAX, BOTH},
    {"ZRANGESTORE d z x 1", NOT_INTEGER, BOTH}, {"SET s v", "+OK", BOTH}, {"ZRANGESTORE s z 0 -1", ":5", BOTH},
    {"TYPE s", "+zset", BOTH}, {"SET s v", "+OK", BOTH}, {"ZRANGE s 0 -1", WRONGTYPE, BOTH},
    {"ZRANGE s x 1", NOT_INTEGER, BOTH}, {"ZREVRANGE s 0 -1", WRONGTYPE, BOTH},
    {"ZRANGEBYSCORE s 0 1", WRONGTYPE, BOTH}, {"ZREVRANGEBYSCORE s 0 1", WRONGTYPE, BOTH},
    {"ZRANGEBYLEX s - +", WRONGTYPE, BOTH}, {"ZREVRANGEBYLEX s + -", WRONGTYPE, BOTH},
    {"ZRANGESTORE d s 0 -1", WRONGTYPE, BOTH},
};

static const struct example removing[] = {
    {"ZADD z 1 a 2 b 3 c 4 d 5 e 6 f 7 g", ":7", BOTH}, {"ZREM z a a nobody", ":1", BOTH},
    {"ZREM none a", ":0", BOTH}, {"ZREMRANGEBYRANK z 0 0", ":1", BOTH}, {"ZREMRANGEBYRANK z -1 -1", ":1", BOTH},
    {"ZREMRANGEBYRANK z 5 3", ":0", BOTH}, {"ZREMRANGEBYRANK z x 1", NOT_INTEGER, BOTH},
    {"ZREMRANGEBYSCORE z (3 (5", ":1", BOTH}, {"ZREMRANGEBYSCORE z 5 3", ":0", BOTH},
    {"ZREMRANGEBYSCORE z x 1", BAD_SCORE, BOTH}, {"ZREMRANGEBYLEX z [c [c", ":1", BOTH},
    {"ZREMRANGEBYLEX z x y", BAD_LEX, BOTH}, {"ZRANGE z 0 -1", "[\"e\" \"f\"]", BOTH},
    {"ZREMRANGEBYSCORE z -inf +inf", ":2", BOTH}, {"EXISTS z", ":0", BOTH}, {"ZREMRANGEBYRANK z 0 -1", ":0", BOTH},
    {"ZADD z 1 a", ":1", BOTH}, {"ZREMRANGEBYRANK z 0 -1", ":1", BOTH}, {"EXISTS z", ":0", BOTH},
    {"ZADD z 1 a", ":1", BOTH}, {"ZREMRANGEBYLEX z - +", ":1", BOTH}, {"EXISTS z", ":0", BOTH},
    {"ZADD z 1 a", ":1", BOTH}, {"ZREM z a", ":1", BOTH}, {"EXISTS z", ":0", BOTH}, {"SET s v", "+OK", BOTH},
    {"ZREM s a", WRONGTYPE, BOTH}, {"ZREMRANGEBYRANK s 0 1", WRONGTYPE, BOTH},
    {"ZREMRANGEBYSCORE s 0 1", WRONGTYPE, BOTH}, {"ZREMRANGEBYLEX s - +", WRONGTYPE, BOTH},
};

static const struct example popping[] = {
    {"ZADD z 1 a 2 b 3 c 4 d 5 e 6 f 7 g 8.5 h", ":8", BOTH},
    {"ZPOPMIN z", "[\"a\" \"1\"]", RESP2}, {"ZPOPMIN z", "[\"a\" ,1]", RESP3},
    {"ZPOPMAX z", "[\"h\" \"8.5\"]", RESP2}, {"ZPOPMAX z", "[\"h\" ,8.5]", RESP3},
    {"ZPOPMIN z 2", "[\"b\" \"2\" \"c\" \"3\"]", RESP2}, {"ZPOPMIN z 2", "[[\"b\" ,2] [\"c\" ,3]]", RESP3},
    {"ZPOPMAX z 1", "[\"g\" \"7\"]", RESP2}, {"ZPOPMAX z 1", "[[\"g\" ,7]]", RESP3}, {"ZPOPMIN z 0", "[]", BOTH},
    {"ZPOPMIN z -1", "-ERR value is out of range, must be positive", BOTH},
    {"ZPOPMIN z x", "-ERR value is out of range, must be positive", BOTH}, {"ZPOPMIN z 1 2", SYNTAX, BOTH},
    {"ZPOPMAX none", "[]", BOTH}, {"ZPOPMIN none 3", "[]", BOTH},
    {"ZMPOP 1 z MIN", "[\"z\" [[\"d\" \"4\"]]]", RESP2}, {"ZMPOP 1 z MIN", "[\"z\" [[\"d\" ,4]]]", RESP3},
    {"ZMPOP 2 none z MAX COUNT 10", "[\"z\" [[\"f\" \"6\"] [\"e\" \"5\"]]]", RESP2}, {"ZMPOP 2 none z MAX COUNT 10", "[\"z\" [[\"f\" ,6] [\"e\" ,5]]]", RESP3},
    {"EXISTS z", ":0", BOTH}, {"ZMPOP 1 z MIN", "nil*", RESP2}, {"ZMPOP 1 z MIN", "null", RESP3},
    {"ZADD z 1 a 2 b", ":2", BOTH},
    {"ZPOPMAX z 100", "[\"b\" \"2\" \"a\" \"1\"]", RESP2}, {"ZPOPMAX z 100", "[[\"b\" ,2] [\"a\" ,1]]", RESP3},
    {"EXISTS z", ":0", BOTH}, {"ZMPOP 0 z MIN", "-ERR numkeys should be greater than 0", BOTH},
    {"ZMPOP x z MIN", "-ERR numkeys should be greater than 0", BOTH},
    {"ZMPOP -1 z MIN", "-ERR numkeys should be greater than 0", BOTH}, {"ZMPOP 2 z MIN", SYNTAX, BOTH},
    {"ZMPOP 9223372036854775807 z MIN", SYNTAX, BOTH}, {"ZMPOP 1 z FOO", SYNTAX, BOTH},
    {"ZMPOP 1 z MIN COUNT 0", "-ERR count should be greater than 0", BOTH},
    {"ZMPOP 1 z MIN COUNT x", "-ERR count should be greater than 0", BOTH}, {"ZMPOP 1 z MIN COUNT", SYNTAX, BOTH},
    {"ZMPOP 1 z MIN COUNT 1 COUNT 1", SYNTAX, BOTH}, {"ZMPOP 1 z MIN FOO 1", SYNTAX, BOTH},
    {"ZADD z 1 a 2 b 3 c 4 d", ":4", BOTH},
    {"BZPOPMIN none z 0", "[\"z\" \"a\" \"1\"]", RESP2}, {"BZPOPMIN none z 0", "[\"z\" \"a\" ,1]", RESP3},
    {"BZPOPMAX z 0", "[\"z\" \"d\" \"4\"]", RESP2}, {"BZPOPMAX z 0", "[\"z\" \"d\" ,4]", RESP3},
    {"BZPOPMIN none 0.01", "nil*", RESP2}, {"BZPOPMIN none 0.01", "null", RESP3},
    {"BZMPOP 0 2 none z MIN COUNT 9", "[\"z\" [[\"b\" \"2\"] [\"c\" \"3\"]]]", RESP2}, {"BZMPOP 0 2 none z MIN COUNT 9", "[\"z\" [[\"b\" ,2] [\"c\" ,3]]]", RESP3},
    {"BZMPOP 0.01 1 none MAX", "nil*", RESP2}, {"BZMPOP 0.01 1 none MAX", "null", RESP3},
    {"BZPOPMIN z x", "-ERR timeout is not a float or out of range", BOTH},
    {"BZPOPMIN z -1", "-ERR timeout is negative", BOTH},
    {"BZPOPMIN z nan", "-ERR timeout is not a float or out of range", BOTH},
    {"BZMPOP x 1 z MIN", "-ERR timeout is not a float or out of range", BOTH},
    {"BZMPOP -1 1 z MIN", "-ERR timeout is negative", BOTH},
    {"BZMPOP 0 0 z MIN", "-ERR numkeys should be greater than 0", BOTH}, {"BZMPOP 0 5 z MIN", SYNTAX, BOTH},
    {"BZMPOP 0 1 z FOO", SYNTAX, BOTH}, {"BZMPOP 0 1 z MIN COUNT 0", "-ERR count should be greater than 0", BOTH},
    {"BZPOPMIN 0", ARITY("bzpopmin"), BOTH}, {"SET s v", "+OK", BOTH}, {"ZPOPMIN s", WRONGTYPE, BOTH},
    {"ZPOPMAX s 0", WRONGTYPE, BOTH}, {"ZMPOP 2 none s MIN", WRONGTYPE, BOTH}, {"BZPOPMIN s 0", WRONGTYPE, BOTH},
    {"BZPOPMAX none s 0", WRONGTYPE, BOTH}, {"BZMPOP 0 1 s MIN", WRONGTYPE, BOTH}, {"ZADD z 1 a", ":1", BOTH},
    {"ZMPOP 2 z s MIN", "[\"z\" [[\"a\" \"1\"]]]", RESP2}, {"ZMPOP 2 z s MIN", "[\"z\" [[\"a\" ,1]]]", RESP3},
    {"CLIENT UNBLOCK x", NOT_INTEGER, BOTH}, {"CLIENT UNBLOCK 99999999", ":0", BOTH},
    {"CLIENT UNBLOCK 99999999 ERROR", ":0", BOTH},
    {"CLIENT UNBLOCK 99999999 FOO", "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR", BOTH},
    {"CLIENT UNBLOCK -1 TIMEOUT", ":0", BOTH},
    {"CLIENT UNBLOCK 1 TIMEOUT x", "-ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT HELP.", BOTH},
    {"CLIENT UNBLOCK", ARITY("client|unblock"), BOTH},
};

static const struct example algebra[] = {
    {"ZADD x 1 a 2 b 3 c", ":3", BOTH}, {"ZADD y 10 b 20 c 30 d", ":3", BOTH},
    {"ZUNION 2 x y", "[\"a\" \"b\" \"c\" \"d\"]", BOTH},
    {"ZUNION 2 x y WITHSCORES", "[\"a\" \"1\" \"b\" \"12\" \"c\" \"23\" \"d\" \"30\"]", RESP2}, {"ZUNION 2 x y WITHSCORES", "[[\"a\" ,1] [\"b\" ,12] [\"c\" ,23] [\"d\" ,30]]", RESP3},
    {"ZUNION 2 x y WEIGHTS 2 0.5 WITHSCORES", "[\"a\" \"2\" \"b\" \"9\" \"d\" \"15\" \"c\" \"16\"]", RESP2}, {"ZUNION 2 x y WEIGHTS 2 0.5 WITHSCORES", "[[\"a\" ,2] [\"b\" ,9] [\"d\" ,15] [\"c\" ,16]]", RESP3},
    {"ZUNION 2 x y AGGREGATE MIN WITHSCORES", "[\"a\" \"1\" \"b\" \"2\" \"c\" \"3\" \"d\" \"30\"]", RESP2}, {"ZUNION 2 x y AGGREGATE MIN WITHSCORES", "[[\"a\" ,1] [\"b\" ,2] [\"c\" ,3] [\"d\" ,30]]", RESP3},
    {"ZUNION 2 x y WEIGHTS 1 1 AGGREGATE max WITHSCORES", "[\"a\" \"1\" \"b\" \"10\" \"c\" \"20\" \"d\" \"30\"]", RESP2}, {"ZUNION 2 x y WEIGHTS 1 1 AGGREGATE max WITHSCORES", "[[\"a\" ,1] [\"b\" ,10] [\"c\" ,20] [\"d\" ,30]]", RESP3},
    {"ZUNION 3 x none x WITHSCORES", "[\"a\" \"2\" \"b\" \"4\" \"c\" \"6\"]", RESP2}, {"ZUNION 3 x none x WITHSCORES", "[[\"a\" ,2] [\"b\" ,4] [\"c\" ,6]]", RESP3},
    {"ZUNION 1 none", "[]", BOTH},
    {"ZINTER 2 x y WITHSCORES", "[\"b\" \"12\" \"c\" \"23\"]", RESP2}, {"ZINTER 2 x y WITHSCORES", "[[\"b\" ,12] [\"c\" ,23]]", RESP3},
    {"ZINTER 2 x y WEIGHTS 10 1 AGGREGATE MAX WITHSCORES", "[\"b\" \"20\" \"c\" \"30\"]", RESP2}, {"ZINTER 2 x y WEIGHTS 10 1 AGGREGATE MAX WITHSCORES", "[[\"b\" ,20] [\"c\" ,30]]", RESP3},
    {"ZINTER 2 x none", "[]", BOTH},
    {"ZINTER 3 x x x WITHSCORES", "[\"a\" \"3\" \"b\" \"6\" \"c\" \"9\"]", RESP2}, {"ZINTER 3 x x x WITHSCORES", "[[\"a\" ,3] [\"b\" ,6] [\"c\" ,9]]", RESP3},
    {"ZDIFF 2 x y WITHSCORES", "[\"a\" \"1\"]", RESP2}, {"ZDIFF 2 x y WITHSCORES", "[[\"a\" ,1]]", RESP3},
    {"ZDIFF 2 x none", "[\"a\" \"b\" \"c\"]", BOTH}, {"ZDIFF 2 none x", "[]", BOTH}, {"ZDIFF 2 x x", "[]", BOTH},
    {"ZINTERCARD 2 x y", ":2", BOTH}, {"ZINTERCARD 2 x y LIMIT 1", ":1", BOTH},
    {"ZINTERCARD 2 x y LIMIT 0", ":2", BOTH}, {"ZINTERCARD 2 x none", ":0", BOTH},
    {"ZUNIONSTORE d 2 x y WEIGHTS 1 2", ":4", BOTH},
    {"ZRANGE d 0 -1 WITHSCORES", "[\"a\" \"1\" \"b\" \"22\" \"c\" \"43\" \"d\" \"60\"]", RESP2}, {"ZRANGE d 0 -1 WITHSCORES", "[[\"a\" ,1] [\"b\" ,22] [\"c\" ,43] [\"d\" ,60]]", RESP3},
    {"ZINTERSTORE d 2 x y", ":2", BOTH},
    {"ZRANGE d 0 -1 WITHSCORES", "[\"b\" \"12\" \"c\" \"23\"]", RESP2}, {"ZRANGE d 0 -1 WITHSCORES", "[[\"b\" ,12] [\"c\" ,23]]", RESP3},
    {"ZDIFFSTORE d 2 x y", ":1", BOTH},
    {"ZRANGE d 0 -1 WITHSCORES", "[\"a\" \"1\"]", RESP2}, {"ZRANGE d 0 -1 WITHSCORES", "[[\"a\" ,1]]", RESP3},
    {"EXPIRE d 100", ":1", BOTH}, {"ZUNIONSTORE d 2 d x", ":3", BOTH}, {"TTL d", ":-1", BOTH},
    {"ZRANGE d 0 -1 WITHSCORES", "[\"a\" \"2\" \"b\" \"2\" \"c\" \"3\"]", RESP2}, {"ZRANGE d 0 -1 WITHSCORES", "[[\"a\" ,2] [\"b\" ,2] [\"c\" ,3]]", RESP3},
    {"ZINTERSTORE d 2 d none", ":0", BOTH}, {"EXISTS d", ":0", BOTH}, {"ZINTERSTORE d 2 d none", ":0", BOTH},
    {"ZADD inf inf a -inf b", ":2", BOTH}, {"ZADD inf2 -inf a inf b", ":2", BOTH},
    {"ZUNION 2 inf inf2 WITHSCORES", "[\"a\" \"0\" \"b\" \"0\"]", RESP2}, {"ZUNION 2 inf inf2 WITHSCORES", "[[\"a\" ,0] [\"b\" ,0]]", RESP3},
    {"ZUNION 1 inf WEIGHTS 0 WITHSCORES", "[\"a\" \"0\" \"b\" \"0\"]", RESP2}, {"ZUNION 1 inf WEIGHTS 0 WITHSCORES", "[[\"a\" ,0] [\"b\" ,0]]", RESP3},
    {"ZINTER 2 inf inf2 WEIGHTS inf -inf WITHSCORES", "[\"b\" \"-inf\" \"a\" \"inf\"]", RESP2}, {"ZINTER 2 inf inf2 WEIGHTS inf -inf WITHSCORES", "[[\"b\" ,-inf] [\"a\" ,inf]]", RESP3},
    {"ZUNIONSTORE d 1 x WITHSCORES", SYNTAX, BOTH},
    {"ZUNION 0 x", "-ERR at least 1 input key is needed for 'zunion' command", BOTH},
    {"ZUNION -1 x", "-ERR at least 1 input key is needed for 'zunion' command", BOTH},
    {"ZUNION x x", NOT_INTEGER, BOTH}, {"ZUNION 2 x", SYNTAX, BOTH}, {"ZUNION 9223372036854775807 x", SYNTAX, BOTH},
    {"ZUNIONSTORE d 0 x", "-ERR at least 1 input key is needed for 'zunionstore' command", BOTH},
    {"ZINTERCARD 0 x", "-ERR at least 1 input key is needed for 'zintercard' command", BOTH},
    {"ZUNION 1 x WEIGHTS", SYNTAX, BOTH}, {"ZUNION 1 x WEIGHTS x", "-ERR weight value is not a float", BOTH},
    {"ZUNION 1 x WEIGHTS nan", "-ERR weight value is not a float", BOTH}, {"ZUNION 2 x y WEIGHTS 1", SYNTAX, BOTH},
    {"ZUNION 1 x AGGREGATE", SYNTAX, BOTH}, {"ZUNION 1 x AGGREGATE FOO", SYNTAX, BOTH},
    {"ZUNION 1 x FOO", SYNTAX, BOTH}, {"ZDIFF 1 x WEIGHTS 1", SYNTAX, BOTH},
    {"ZDIFF 1 x AGGREGATE SUM", SYNTAX, BOTH}, {"ZDIFFSTORE d 1 x AGGREGATE SUM", SYNTAX, BOTH},
    {"ZINTERCARD 1 x LIMIT -1", "-ERR LIMIT can't be negative", BOTH},
    {"ZINTERCARD 1 x LIMIT x", "-ERR LIMIT can't be negative", BOTH}, {"ZINTERCARD 1 x WITHSCORES", SYNTAX, BOTH},
    {"SET s v", "+OK", BOTH}, {"ZUNION 2 x s", WRONGTYPE, BOTH}, {"ZUNION 1 s FOO", WRONGTYPE, BOTH},
    {"ZINTER 2 none s", WRONGTYPE, BOTH}, {"ZDIFF 2 none s", WRONGTYPE, BOTH}, {"ZINTERCARD 1 s", WRONGTYPE, BOTH},
    {"ZUNIONSTORE d 1 s", WRONGTYPE, BOTH}, {"ZUNIONSTORE s 1 x", ":3", BOTH}, {"TYPE s", "+zset", BOTH},
};

/* clang-format on */

static const struct example_group groups[] = {
    EXAMPLES(adding),  EXAMPLES(reading), EXAMPLES(ranges), EXAMPLES(removing),
    EXAMPLES(popping), EXAMPLES(algebra), EXAMPLES(zeros),  EXAMPLES(small_zeros),
};

/* ---- examples ---- */

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

/* ---- large sets ---- */

/* Scores that repeat, a little out of order, so that ties, both halves and every width occur. */
static void append_member(struct client *c, const char *key, unsigned i, unsigned scores) {
    char score[32], member[64];
    snprintf(score, sizeof(score), "%d", (int)(i * 2654435761u % scores) - (int)scores / 2);
    snprintf(member, sizeof(member), "member:%05u%s", i,
             i % 997 == 0 ? ":and a longer name than most" : "");
    client_append(c, "ZADD", key, score, member, NULL);
}

static void load(struct client *c, const char *key, unsigned from, unsigned to, unsigned scores) {
    for (unsigned i = from; i < to;) {
        unsigned n = 0;
        for (; n < PIPELINE && i < to; n++, i++) {
            append_member(c, key, i, scores);
        }
        assert_true(client_flush(c));
        while (n-- > 0) {
            struct reply *r = client_read(c);
            assert_true(r && r->type == ':' && r->integer == 1);
            reply_free(r);
        }
    }
}

static const char *const large_lines[] = {
    "ZCARD big",
    "ZRANGE big 0 20 WITHSCORES",
    "ZRANGE big 10000 10100 WITHSCORES",
    "ZRANGE big 0 -1",
    "ZREVRANGE big 0 300 WITHSCORES",
    "ZREVRANGE big 19990 -1",
    "ZRANGE big -100 100 BYSCORE",
    "ZRANGE big (100 (-100 BYSCORE REV LIMIT 50 70",
    "ZRANGE big -inf +inf BYSCORE LIMIT 12345 5 WITHSCORES",
    "ZRANGE big -inf +inf BYSCORE LIMIT 9223372036854775807 9223372036854775807",
    "ZCOUNT big -50 50",
    "ZCOUNT big (0 +inf",
    "ZRANK big member:00001",
    "ZREVRANK big member:19999",
    "ZRANK big member:00997:and\x01",
    "ZMSCORE big member:00001 member:00002 member:00003 member:00004 nobody member:00006",
    "ZLEXCOUNT same - +",
    "ZLEXCOUNT same [member:01 (member:02",
    "ZRANGE same [member:015 [member:016 BYLEX",
    "ZRANGE same + [member:019 BYLEX REV LIMIT 3 40",
    "ZRANK same member:01000",
    "ZUNIONSTORE u 3 big other same WEIGHTS 1 2 3",
    "ZRANGE u 0 -1 WITHSCORES",
    "ZINTERSTORE i 3 big other same AGGREGATE MAX",
    "ZRANGE i 0 -1 WITHSCORES",
    "ZINTERCARD 2 big other",
    "ZINTERCARD 2 big other LIMIT 100",
    "ZDIFFSTORE d 2 big other",
    "ZRANGE d 0 -1 WITHSCORES",
    "ZDIFF 3 big other same",
    "ZUNIONSTORE u 2 u u AGGREGATE MIN",
    "ZRANGE u -500 -1 WITHSCORES",
    "ZRANGESTORE part big -50 50 BYSCORE",
    "ZRANGE part 0 -1 WITHSCORES",
    "ZRANGESTORE big2 big 0 -1",
    "ZRANGE big2 7000 7050 WITHSCORES",
    "ZPOPMIN big 300",
    "ZPOPMAX big 1",
    "ZMPOP 2 none big MAX COUNT 200",
    "ZREMRANGEBYRANK big 1000 3000",
    "ZREMRANGEBYSCORE big (-200 (-20",
    "ZREMRANGEBYLEX same (member:012 [member:017",
    "ZCARD big",
    "ZRANGE big 0 -1 WITHSCORES",
    "ZRANGE same 0 -1",
    "ZREMRANGEBYRANK big 5 -6",
    "ZRANGE big 0 -1",
    "ZPOPMIN big 9223372036854775807",
    "EXISTS big",
};

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
        load(clients[i], "big", 0, LARGE, 1000);
        load(clients[i], "other", LARGE / 2, LARGE + LARGE / 2, 100000);
        load(clients[i], "same", 0, 2000, 1);
    }
    for (size_t i = 0; i < COUNT(large_lines); i++) {
        char *text[2];
        for (int side = 0; side < 2; side++) {
            char *line = strdup(large_lines[i]);
            const char *argv[16];
            size_t lens[16];
            int argc = example_split(line, argv, lens, 16);
            struct reply *r = client_cmd_argv(clients[side], argc, argv, lens);
            text[side] = reply_text(r);
            reply_free(r);
            free(line);
        }
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

/* ---- random picks and scans ---- */

static int compare_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The distinct texts among every step-th element, each a member of the set "big". */
static size_t distinct_members(struct client *c, const struct reply *list, size_t step) {
    size_t n = 0, distinct = 0;
    const char **texts = malloc((list->count + 1) * sizeof(*texts));
    for (size_t i = 0; i < list->count; i += step) {
        texts[n++] = list->elements[i]->str;
    }
    qsort(texts, n, sizeof(*texts), compare_text);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(texts[i], texts[i - 1]) != 0) {
            client_append(c, "ZSCORE", "big", texts[i], NULL);
            distinct++;
        }
    }
    assert_true(client_flush(c));
    for (size_t i = 0; i < distinct; i++) {
        struct reply *r = client_read(c);
        assert_true(r && r->type == '$' && !r->is_null);
        reply_free(r);
    }
    free(texts);
    return distinct;
}

static void random_members_are_members(void **state) {
    (void)state;
    static const struct {
        const char *count;
        size_t returned, distinct; /* 0: any number */
    } cases[] = {
        {"10", 10, 10},          {"1000", 1000, 1000},    {"15000", 15000, 15000},
        {"20000", 20000, 20000}, {"30000", 20000, 20000}, {"-50", 50, 0},
        {"-30000", 30000, 0},    {"6665", 6665, 6665},
    };
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    load(c, "big", 0, LARGE, 1000);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reply *r = client_cmd(c, "ZRANDMEMBER", "big", cases[i].count, NULL);
        assert_true(r && r->count == cases[i].returned);
        size_t distinct = distinct_members(c, r, 1);
        assert_true(distinct > 1 && (cases[i].distinct == 0 || distinct == cases[i].distinct));
        reply_free(r);
        r = client_cmd(c, "ZRANDMEMBER", "big", cases[i].count, "WITHSCORES", NULL);
        assert_true(r && r->count == 2 * cases[i].returned);
        reply_free(r);
    }
    client_close(c);
    server_stop(s);
}

static void a_scan_sees_every_member(void **state) {
    (void)state;
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    load(c, "big", 0, LARGE, 1000);
    char cursor[32] = "0";
    size_t seen = 0, calls = 0;
    do {
        struct reply *r = client_cmd(c, "ZSCAN", "big", cursor, "COUNT", "100", NULL);
        assert_true(r && r->count == 2);
        seen += distinct_members(c, r->elements[1], 2);
        snprintf(cursor, sizeof(cursor), "%s", r->elements[0]->str);
        reply_free(r);
        calls++;
    } while (strcmp(cursor, "0") != 0);
    assert_int_equal(seen, LARGE);
    assert_true(calls > 10);
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
        cmocka_unit_test(a_scan_sees_every_member),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
