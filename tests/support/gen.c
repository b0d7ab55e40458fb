/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/gen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- what is drawn from ---- */

struct text {
    const char *ptr;
    size_t len;
};

#define TEXT(s)                                                                                    \
    { (s), sizeof(s) - 1 }
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Keys that may hold anything; the generator adds s0..s7 (mostly strings), h0..h7 (mostly hashes),
 * z0..z7 (mostly sorted sets), t0..t7 (mostly sets), l0..l7 (mostly lists) and one key of a
 * thousand bytes. */
static const struct text odd_keys[] = {
    TEXT(""), TEXT("bin\0\r\n\xff"), TEXT("a"), TEXT("key:{tag}:1"), TEXT("*"), TEXT("[x]")};

static const struct text odd_values[] = {
    TEXT(""),
    TEXT("0"),
    TEXT("1"),
    TEXT("-1"),
    TEXT("10"),
    TEXT("42"),
    TEXT("007"),
    TEXT("+5"),
    TEXT("-0"),
    TEXT(" 1"),
    TEXT("1 "),
    TEXT("9223372036854775807"),
    TEXT("9223372036854775806"),
    TEXT("-9223372036854775808"),
    TEXT("9223372036854775808"),
    TEXT("3.5"),
    TEXT("-0.0"),
    TEXT("1e3"),
    TEXT("5.0e-1"),
    TEXT("0x10"),
    TEXT("1e400"),
    TEXT("1.7976931348623157e308"),
    TEXT("0.1"),
    TEXT("3.0000000000000000001"),
    TEXT("inf"),
    TEXT("-inf"),
    TEXT("nan"),
    TEXT("hello"),
    TEXT("Hello World, a value of fifty bytes and some more.."),
    TEXT("\0nul\0"),
    TEXT("line\r\nline"),
    TEXT("\xff\xfe\x80"),
    TEXT("value44_exactly_embstr_limit_aaaaaaaaaaaaaaa"),
    TEXT("value45_over_the_embstr_limit_aaaaaaaaaaaaaaa"),
};

static const struct text integers[] = {TEXT("1"),
                                       TEXT("-1"),
                                       TEXT("10"),
                                       TEXT("0"),
                                       TEXT("5000000000"),
                                       TEXT("-5000000000"),
                                       TEXT("9223372036854775807"),
                                       TEXT("-9223372036854775808"),
                                       TEXT("-9223372036854775807"),
                                       TEXT("9223372036854775808"),
                                       TEXT("1.5"),
                                       TEXT("abc"),
                                       TEXT(""),
                                       TEXT(" 7"),
                                       TEXT("+7"),
                                       TEXT("07"),
                                       TEXT("-0")};

static const struct text floats[] = {
    TEXT("1"),      TEXT("-1"),      TEXT("0.1"),    TEXT("0.5"),       TEXT("-2.25"),
    TEXT("1e3"),    TEXT("1E-3"),    TEXT("5.0e3"),  TEXT("1e17"),      TEXT("1e-20"),
    TEXT("0x1p3"),  TEXT("inf"),     TEXT("-inf"),   TEXT("+inf"),      TEXT("nan"),
    TEXT("1e308"),  TEXT("-1e308"),  TEXT("1e4932"), TEXT("-1e4932"),   TEXT("1e5000"),
    TEXT("abc"),    TEXT(""),        TEXT(" 1"),     TEXT("1 "),        TEXT(".5"),
    TEXT("5."),     TEXT("1.5.5"),   TEXT("1e"),     TEXT("123456789"), TEXT("0.30000000000000004"),
    TEXT("1\0002"), TEXT("infinity")};

static const struct text offsets[] = {
    TEXT("0"),    TEXT("1"),   TEXT("2"),          TEXT("5"),
    TEXT("10"),   TEXT("43"),  TEXT("44"),         TEXT("300"),
    TEXT("-1"),   TEXT("-2"),  TEXT("-10"),        TEXT("-1000000"),
    TEXT("4000"), TEXT("abc"), TEXT("1000000000"), TEXT("-9223372036854775808"),
    TEXT("1.0"),  TEXT(""),    TEXT("4294967296"), TEXT("9223372036854775807")};

/* No sums of these depend on anything but the order they are added in. */
static const struct text scores[] = {TEXT("0"),
                                     TEXT("1"),
                                     TEXT("2"),
                                     TEXT("-1"),
                                     TEXT("0.1"),
                                     TEXT("-2.5"),
                                     TEXT("1e3"),
                                     TEXT("1e10"),
                                     TEXT("70000"),
                                     TEXT("inf"),
                                     TEXT("-inf"),
                                     TEXT("1e308"),
                                     TEXT("1e-300"),
                                     TEXT("-0"),
                                     TEXT("3.0000000000000004"),
                                     TEXT("9007199254740993"),
                                     TEXT("-9223372036854775808"),
                                     TEXT("128"),
                                     TEXT("-129"),
                                     TEXT("0x1p-3"),
                                     TEXT("+7")};
static const struct text bad_scores[] = {TEXT("nan"), TEXT("abc"), TEXT(""),   TEXT("1e400"),
                                         TEXT(" 1"),  TEXT("1 "),  TEXT("(1"), TEXT("1\0002")};

static const struct text score_bounds[] = {
    TEXT("-inf"),  TEXT("+inf"), TEXT("0"),  TEXT("(0"),  TEXT("10"),   TEXT("(10"), TEXT("-5"),
    TEXT("(-5"),   TEXT("1"),    TEXT("(1"), TEXT("5.5"), TEXT("1000"), TEXT("inf"), TEXT("(inf"),
    TEXT("(-inf"), TEXT("1e10"), TEXT("20"), TEXT("3"),   TEXT("-20"),  TEXT("(2")};
static const struct text odd_bounds[] = {
    TEXT(""),   TEXT("("),     TEXT("abc"), TEXT("nan"), TEXT(" 1"),     TEXT("1 "),    TEXT("((1"),
    TEXT("[1"), TEXT("1e400"), TEXT("-"),   TEXT("+"),   TEXT("1\0002"), TEXT("1e-400")};

static const struct text lex_bounds[] = {
    TEXT("-"),  TEXT("+"),     TEXT("[m1"), TEXT("(m1"),  TEXT("[m5"),   TEXT("(m5"),
    TEXT("[m"), TEXT("(m9"),   TEXT("[m3"), TEXT("(m30"), TEXT("["),     TEXT("("),
    TEXT("[z"), TEXT("(\xff"), TEXT("-"),   TEXT("+"),    TEXT("[m2\0"), TEXT("(M")};
static const struct text odd_lex_bounds[] = {TEXT(""),   TEXT("m1"),  TEXT("-1"),
                                             TEXT("+m"), TEXT("inf"), TEXT("--")};

static const struct text limits[] = {TEXT("0"),
                                     TEXT("1"),
                                     TEXT("2"),
                                     TEXT("5"),
                                     TEXT("10"),
                                     TEXT("-1"),
                                     TEXT("-3"),
                                     TEXT("100"),
                                     TEXT("9223372036854775807"),
                                     TEXT("-9223372036854775808"),
                                     TEXT("abc"),
                                     TEXT("1.5"),
                                     TEXT("0"),
                                     TEXT("3"),
                                     TEXT("20"),
                                     TEXT("-2"),
                                     TEXT("-10"),
                                     TEXT("1")};

static const struct text weights[] = {TEXT("1"),   TEXT("2"),  TEXT("0"),   TEXT("-1"),
                                      TEXT("0.5"), TEXT("3"),  TEXT("inf"), TEXT("-inf"),
                                      TEXT("1e3"), TEXT("10"), TEXT("abc"), TEXT("nan")};

static const struct text small_counts[] = {TEXT("1"),   TEXT("2"),   TEXT("5"),  TEXT("10"),
                                           TEXT("100"), TEXT("0"),   TEXT("-1"), TEXT("abc"),
                                           TEXT("1.5"), TEXT("1000")};

/* No count that asks for a reply of gigabytes. */
static const struct text rand_counts[] = {TEXT("0"),
                                          TEXT("1"),
                                          TEXT("3"),
                                          TEXT("50"),
                                          TEXT("10000"),
                                          TEXT("-1"),
                                          TEXT("-3"),
                                          TEXT("-60"),
                                          TEXT("abc"),
                                          TEXT("9223372036854775807"),
                                          TEXT("-9223372036854775808"),
                                          TEXT("9223372036854775808")};

static const struct text bit_offsets[] = {
    TEXT("0"),   TEXT("1"),   TEXT("5"),    TEXT("7"),     TEXT("8"),  TEXT("15"),
    TEXT("16"),  TEXT("63"),  TEXT("64"),   TEXT("100"),   TEXT("#0"), TEXT("#1"),
    TEXT("#3"),  TEXT("350"), TEXT("1000"), TEXT("20000"), TEXT("-1"), TEXT("4294967296"),
    TEXT("abc"), TEXT(""),    TEXT("#abc"), TEXT("#-1"),   TEXT("3"),  TEXT("9223372036854775807")};
static const struct text field_types[] = {
    TEXT("u8"),  TEXT("i8"),  TEXT("u1"),  TEXT("i1"),  TEXT("u4"),  TEXT("i5"),
    TEXT("u16"), TEXT("i16"), TEXT("u31"), TEXT("i32"), TEXT("u63"), TEXT("i64"),
    TEXT("i63"), TEXT("u64"), TEXT("i65"), TEXT("u0"),  TEXT("x8"),  TEXT("")};

static const struct text databases[] = {
    TEXT("0"),  TEXT("0"),  TEXT("0"),   TEXT("1"), TEXT("1"),   TEXT("2"),          TEXT("15"),
    TEXT("16"), TEXT("-1"), TEXT("abc"), TEXT(""),  TEXT("1.0"), TEXT("99999999999")};

static const struct text patterns[] = {
    TEXT("*"),        TEXT("s*"),  TEXT("h?"),    TEXT("[sh][0-3]"), TEXT("[^s]*"),  TEXT("\\*"),
    TEXT("*1"),       TEXT("f*9"), TEXT(""),      TEXT("[a-"),       TEXT("**"),     TEXT("s[0-9"),
    TEXT("bin*\xff"), TEXT("?"),   TEXT("\\[x]"), TEXT("[z-a]*"),    TEXT("f[1-3]*")};

/* clang-format off */
/* DUMPs of redis 7.0, of every type, and damaged ones. */
static const struct text payloads[] = {
    TEXT("\x00\x05hello\x0a\x00""cr\xdfve4\x20\x0a"),
    TEXT("\x00\xc1""90\x0a\x00\x9d\x94\xea\x27\x93\xfc\x08\xb9"),
    TEXT("\x12\x01\x02\x0e\x0e\x00\x00\x00\x03\x00\x01\x01\x02\x01\x81""a\x02\xff\x0a\x00\xcc\x0f\xc6\x88\xab\xd7Yi"),
    TEXT("\x10\x12\x12\x00\x00\x00\x04\x00\x81""f\x02\x81v\x02\x81g\x02\x07\x01\xff\x0a\x00g\x0fs\xba""d\xa7\xf2\xa2"),
    TEXT("\x0b\x0e\x02\x00\x00\x00\x03\x00\x00\x00\x01\x00\x02\x00\x03\x00\x0a\x00\xa5\x02\x5c\xe2mnM\x1b"),
    TEXT("\x02\x02\x01""b\x01""a\x0a\x00u\xd9\x9d\x83^\xf8_e"),
    TEXT("\x11\x14\x14\x00\x00\x00\x04\x00\x81""a\x02\x01\x01\x81""b\x02\x83""2.5\x04\xff\x0a\x00\xd4Ln\xa4\xf6""D\xd9\xd7"),
    TEXT("\x00\x05hellO\x0a\x00""cr\xdfve4\x20\x0a"),
    TEXT("\x00\x05hello"),
    TEXT(""),
};
/* clang-format on */

static const struct text junk[] = {
    TEXT("foo"),     TEXT("NX"),      TEXT("XX"),   TEXT("GET"),        TEXT("EX"),
    TEXT("MATCH"),   TEXT("COUNT"),   TEXT("DB"),   TEXT("REPLACE"),    TEXT("GT"),
    TEXT("KEEPTTL"), TEXT("PERSIST"), TEXT("TYPE"), TEXT("WITHVALUES"), TEXT("IDX"),
    TEXT("FIELDS"),  TEXT(""),        TEXT("*"),    TEXT("LT"),         TEXT("bin\0\r\nx"),
    TEXT("default")};

/* Replacements for an argument; none is a small positive number, which as an expiry would make the
 * outcome depend on the clock. */
static const struct text mutants[] = {TEXT(""),
                                      TEXT("0"),
                                      TEXT("-1"),
                                      TEXT("nan"),
                                      TEXT("inf"),
                                      TEXT("abc"),
                                      TEXT("9223372036854775807"),
                                      TEXT("-9223372036854775808"),
                                      TEXT("9223372036854775808"),
                                      TEXT("9223372036854775000"),
                                      TEXT("1e3"),
                                      TEXT(" 1"),
                                      TEXT("+1"),
                                      TEXT("1.5"),
                                      TEXT("\0"),
                                      TEXT("a\r\nb")};

static const struct text past_s[] = {TEXT("1"), TEXT("1000000"), TEXT("0"), TEXT("-1"),
                                     TEXT("-100")};
static const struct text bad_times[] = {
    TEXT("abc"),  TEXT(""),    TEXT("9223372036854775807"),  TEXT("9223372036854775808"),
    TEXT("1e10"), TEXT("1.5"), TEXT("-9223372036854775808"), TEXT("9223372036854775000"),
    TEXT("0"),    TEXT("-1")};

/* ---- the table ---- */

struct row {
    int weight;
    enum compare compare;
    const char *words;
    /* What is never mutated, since it could do harm or reply gigabytes: false, nothing; true, all of
     * it; 2 and above, the argument of that number. */
    int fixed;
};

#define SET_TAIL                                                                                   \
    "{|||EX %e|PX %E|EXAT %b|PXAT %B|KEEPTTL} {|||NX|XX|GET|NX GET|XX GET|NX XX|KEEPTTL|EX %e|%w}"
#define EXPIRE_TAIL "{||||NX|XX|GT|LT|GT LT|NX XX|XX GT|XX LT|NX GT|%w}"

/* clang-format off */
static const struct row rows[] = {
    /* connection */
    {4, COMPARE_EXACT, "PING {||%v|%v %v}", false},
    {3, COMPARE_EXACT, "ECHO {%v|%v|%l}", false},
    {14, COMPARE_EXACT, "SELECT %d", false},
    {1, COMPARE_EXACT, "RESET", false},
    {1, COMPARE_CLOSES, "QUIT", true},
    {2, COMPARE_EXACT, "AUTH {%v|default %v|%v %v|%v %v %v}", false},
    {2, COMPARE_SHAPE, "HELLO {|3|2|3 SETNAME %w|2 SETNAME bob|2 AUTH default x}", true},
    {2, COMPARE_EXACT, "HELLO {4|1|abc|-1|3 AUTH nobody x|3 SETNAME|3 AUTH a|3 %w x}", true},
    {2, COMPARE_EXACT, "CLIENT GETNAME", false},
    {2, COMPARE_EXACT, "CLIENT SETNAME {bob|alice|%w|%v|}", true},
    {1, COMPARE_TYPE, "CLIENT ID", false},
    {1, COMPARE_TYPE, "CLIENT {INFO|LIST|HELP|LIST TYPE normal|LIST ID 99999999}", true},
    {1, COMPARE_TYPE, "{OBJECT HELP|COMMAND HELP|CONFIG HELP|MEMORY HELP|DEBUG HELP}", true},
    {1, COMPARE_EXACT, "CLIENT {LIST TYPE foo|LIST FOO|LIST ID abc|LIST TYPE|foo|GETNAME x|ID x|INFO x|SETNAME}", true},
    {2, COMPARE_EXACT, "CLIENT KILL {ID 99999999|1.2.3.4:5|ID abc|ID 0|TYPE foo|USER nobody|FOO bar|ADDR 1.2.3.4:5|LADDR 1.2.3.4:5|ID|SKIPME maybe|USER default ID 99999999|TYPE pubsub|}", true},
    /* server */
    {1, COMPARE_TYPE, "COMMAND COUNT", true},
    {2, COMPARE_SORTED, "COMMAND LIST FILTERBY {PATTERN hget*|PATTERN getd*|MODULE none|PATTERN *xyzzy|PATTERN incr*}", true},
    {1, COMPARE_EXACT, "COMMAND {LIST FILTERBY|LIST FOO|COUNT x|FOO|INFO nosuch|GETKEYS|DOCS nosuch|LIST FILTERBY FOO bar|LIST FILTERBY ACLCAT nosuch}", true},
    {3, COMPARE_EXACT, "COMMAND {GETKEYS|GETKEYSANDFLAGS} {SET %k %v|GET %k|MSET %k%v+|HSET %h %f%v+|DEL %k+|COPY %k %k|RENAME %k %k|LCS %k %k|PING|GET|FOO %k|SET %k %v GET|OBJECT ENCODING %k|MEMORY USAGE %k|HGETALL %h|TOUCH %k+}", true},
    {2, COMPARE_EXACT, "CONFIG {GET nosuch|GET databases|GET proto-max-bulk-len|SET nosuch 1|SET nosuch|SET|GET|FOO|GET no*such|SET port}", true},
    {3, COMPARE_EXACT, "DBSIZE", false},
    {1, COMPARE_EXACT, "{FLUSHDB|FLUSHALL|FLUSHDB ASYNC|FLUSHDB SYNC|FLUSHALL ASYNC|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE|DBSIZE}", false},
    {1, COMPARE_EXACT, "{FLUSHDB|FLUSHALL} {%v|SYNC ASYNC}", true},
    {4, COMPARE_EXACT, "SWAPDB {0 1|1 2|%d %d}", false},
    {1, COMPARE_SHAPE, "TIME", false},
    {2, COMPARE_TYPE, "MEMORY USAGE %k", false},
    {1, COMPARE_EXACT, "MEMORY {USAGE|USAGE %k SAMPLES|USAGE %k SAMPLES -1|USAGE nokey SAMPLES 5|USAGE %k SAMPLES abc|FOO|USAGE %k FOO}", true},
    {5, COMPARE_ENCODING, "OBJECT ENCODING %k", false},
    {1, COMPARE_TYPE, "OBJECT {REFCOUNT|IDLETIME} %k", false},
    {1, COMPARE_EXACT, "OBJECT {FREQ %k|FREQ nokey|FOO %k|ENCODING|REFCOUNT nokey|IDLETIME nokey|ENCODING nokey}", true},
    {1, COMPARE_EXACT, "SHUTDOWN {FOO|SAVE NOSAVE|NOW FOO|ABORT NOW}", true},
    {1, COMPARE_EXACT, "DEBUG {FOO|SLEEP 0|SET-ACTIVE-EXPIRE|OBJECT nokey}", true},
    {2, COMPARE_EXACT, "{nosuch|NOSUCH|foo\xff|GETT} {|%v|%v %v|%k+}", false},
    /* keys */
    {12, COMPARE_EXACT, "{DEL|UNLINK} %k+", false},
    {6, COMPARE_EXACT, "{EXISTS|TOUCH} %k+", false},
    {8, COMPARE_EXACT, "TYPE %k", false},
    {8, COMPARE_EXACT, "{RENAME|RENAMENX} %k %k", false},
    {3, COMPARE_TYPE, "DUMP %k", false},
    {8, COMPARE_EXACT, "RESTORE %k {0|0|777777777|-1|x} %D {|REPLACE|REPLACE|REPLACE|REPLACE IDLETIME 5|REPLACE FREQ 5|IDLETIME|FREQ 256|REPLACE %w}", 2},
    {3, COMPARE_EXACT, "RESTORE %k {0|%A} %D ABSTTL {|REPLACE|REPLACE}", 2},
    {10, COMPARE_EXACT, "COPY %k %k {|||DB %d|REPLACE|DB %d REPLACE|REPLACE REPLACE|%w|DB}", false},
    {6, COMPARE_EXACT, "MOVE %k %d", false},
    {4, COMPARE_SORTED, "KEYS %p", false},
    {3, COMPARE_SCAN, "SCAN 0 {|MATCH %p|COUNT %n|MATCH %p COUNT %n|TYPE string|TYPE hash COUNT 100|TYPE zset|TYPE set|TYPE list|COUNT|%w x|%w}", true},
    {1, COMPARE_EXACT, "SCAN {abc|1x||1 MATCH|0 COUNT 0|0 COUNT -5|0 COUNT x|0 FOO}", true},
    {2, COMPARE_RANDKEY, "RANDOMKEY", true},
    {8, COMPARE_EXACT, "EXPIRE %k %e " EXPIRE_TAIL, false},
    {8, COMPARE_EXACT, "PEXPIRE %k %E " EXPIRE_TAIL, false},
    {8, COMPARE_EXACT, "EXPIREAT %k %a " EXPIRE_TAIL, false},
    {8, COMPARE_EXACT, "PEXPIREAT %k %A " EXPIRE_TAIL, false},
    {8, COMPARE_NEAR_S, "{TTL|EXPIRETIME} %k", false},
    {8, COMPARE_NEAR_MS, "{PTTL|PEXPIRETIME} %k", false},
    {5, COMPARE_EXACT, "PERSIST %k", false},
    /* strings */
    {40, COMPARE_EXACT, "SET {%s|%s|%k} %v", false},
    {30, COMPARE_EXACT, "SET {%s|%s|%k} %v " SET_TAIL, false},
    {25, COMPARE_EXACT, "GET {%s|%s|%k}", false},
    {5, COMPARE_EXACT, "SETNX %s %v", false},
    {6, COMPARE_EXACT, "SETEX %s %e %v", false},
    {6, COMPARE_EXACT, "PSETEX %s %E %v", false},
    {5, COMPARE_EXACT, "{GETSET %s %v|GETDEL %s}", false},
    {8, COMPARE_EXACT, "GETEX %s {||EX %e|PX %E|EXAT %a|PXAT %A|PERSIST|PERSIST EX %e|%w|EX|EX %e PX %E}", false},
    {8, COMPARE_EXACT, "MGET {%s+|%k+}", false},
    {8, COMPARE_EXACT, "{MSET|MSETNX} {%s%v+|%k%v|%s%v+ %k}", false},
    {14, COMPARE_EXACT, "APPEND %s %v", false},
    {8, COMPARE_EXACT, "STRLEN {%s|%k}", false},
    {12, COMPARE_EXACT, "{GETRANGE|SUBSTR} %s %o %o", false},
    {10, COMPARE_EXACT, "SETRANGE %s %o %v", true},
    {14, COMPARE_EXACT, "{INCR|DECR} %s", false},
    {14, COMPARE_EXACT, "{INCRBY|DECRBY} %s %i", false},
    {14, COMPARE_EXACT, "INCRBYFLOAT %s %F", false},
    {2, COMPARE_EXACT, "LCS %s %s {||LEN|IDX|IDX WITHMATCHLEN|IDX MINMATCHLEN 2|IDX MINMATCHLEN 3 WITHMATCHLEN|LEN IDX|MINMATCHLEN abc|MINMATCHLEN|%w}", true},
    /* hashes */
    {50, COMPARE_EXACT, "HSET {%h|%h|%k} %f%v+", false},
    {6, COMPARE_EXACT, "HSET %h {%f|%f%v %f|}", false},
    {6, COMPARE_EXACT, "HMSET {%h|%k} {%f%v+|%f%v|%f}", false},
    {1, COMPARE_EXACT, "HSET %h %f %l", false},
    {1, COMPARE_EXACT, "HSET %h %l %v", false},
    {6, COMPARE_EXACT, "HSETNX %h %f %v", false},
    {20, COMPARE_EXACT, "HGET {%h|%h|%k} %f", false},
    {12, COMPARE_EXACT, "HMGET {%h|%k} %f+", false},
    {16, COMPARE_EXACT, "HDEL %h %f+", false},
    {8, COMPARE_PAIRS, "HGETALL {%h|%k}", false},
    {6, COMPARE_SORTED, "{HKEYS|HVALS} {%h|%k}", false},
    {6, COMPARE_EXACT, "HLEN {%h|%k}", false},
    {6, COMPARE_EXACT, "{HEXISTS|HSTRLEN} {%h|%k} %f", false},
    {16, COMPARE_EXACT, "HINCRBY %h %f %i", false},
    {16, COMPARE_EXACT, "HINCRBYFLOAT %h %f %F", false},
    {4, COMPARE_RANDOM, "HRANDFIELD {%h|%h|%k} {|%r|%r WITHVALUES}", true},
    {1, COMPARE_EXACT, "HRANDFIELD %h {%r FOO|5 WITHVALUES x|abc|9223372036854775808|-9223372036854775808|-4611686018427387905 WITHVALUES}", true},
    {4, COMPARE_SCAN, "HSCAN {%h|%k} 0 {|MATCH %p|COUNT %n|MATCH %p COUNT %n|COUNT|%w x}", true},
    {1, COMPARE_EXACT, "HSCAN %h {abc|1x||0 COUNT 0|0 COUNT x|0 FOO}", true},
    /* sets */
    {60, COMPARE_EXACT, "SADD {%t|%t|%k} %u+", false},
    {1, COMPARE_EXACT, "SADD %t %l", false},
    {20, COMPARE_EXACT, "SREM {%t|%t|%k} %u+", false},
    {6, COMPARE_EXACT, "SCARD {%t|%k}", false},
    {14, COMPARE_EXACT, "SISMEMBER {%t|%t|%k} %u", false},
    {8, COMPARE_EXACT, "SMISMEMBER {%t|%k} %u+", false},
    {8, COMPARE_SORTED, "SMEMBERS {%t|%k}", false},
    {8, COMPARE_EXACT, "SMOVE {%t|%t|%k} {%t|%t|%k} %u", false},
    {8, COMPARE_SORTED, "{SINTER|SUNION|SDIFF} {%t|%t %t|%t %t %t|%t %k|%t %t %t %t %t|}", false},
    {8, COMPARE_EXACT, "{SINTERSTORE|SUNIONSTORE|SDIFFSTORE} {%t|%t|%k} {%t|%t %t|%t %t %t|%t %k|}", false},
    {5, COMPARE_EXACT, "SINTERCARD {1 %t|2 %t %t|3 %t %t %t|2 %t %k|%n %t} {||LIMIT %L|LIMIT|%w}", false},
    {6, COMPARE_POPPED, "SPOP {%t|%t|%k} {||1|2|7|100|0|1000}", true},
    {2, COMPARE_EXACT, "SPOP %t {-1|abc|-9223372036854775808|9223372036854775808|1 2}", true},
    {4, COMPARE_RANDOM, "SRANDMEMBER {%t|%t|%k} {|%r}", true},
    {1, COMPARE_EXACT, "SRANDMEMBER %t {%r FOO|abc|9223372036854775808|-9223372036854775808}", true},
    {4, COMPARE_SCAN, "SSCAN {%t|%k} 0 {|MATCH %p|COUNT %n|MATCH %p COUNT %n|COUNT|%w x}", true},
    {1, COMPARE_EXACT, "SSCAN %t {abc|1x||0 COUNT 0|0 COUNT x|0 FOO|0 NOVALUES}", true},
    {5, COMPARE_SCORES, "{ZUNION|ZINTER} {2 %z %t|2 %t %t|3 %t %z %t} {||WITHSCORES|WITHSCORES AGGREGATE MAX|WEIGHTS %g %g}", false},
    {3, COMPARE_SCORES, "ZDIFF {2 %z %t|2 %t %z|2 %t %t} {|WITHSCORES}", false},
    {4, COMPARE_EXACT, "{ZUNIONSTORE|ZINTERSTORE|ZDIFFSTORE} %z {2 %z %t|2 %t %t|3 %t %z %t|1 %t}", false},
    {1, COMPARE_EXACT, "ZINTERCARD {2 %z %t|2 %t %t} {|LIMIT %L}", false},
    {1, COMPARE_EXACT, "COMMAND {GETKEYS|GETKEYSANDFLAGS} {SADD %t a|SINTER %t %t|SUNIONSTORE %t %t %t|SMOVE %t %t a|SINTERCARD 2 %t %t|SINTERCARD 3 %t|SDIFFSTORE %t}", true},
    /* lists */
    {40, COMPARE_EXACT, "{LPUSH|RPUSH} {%c|%c|%k} %C+", false},
    {6, COMPARE_EXACT, "{LPUSHX|RPUSHX} {%c|%c|%k} %C+", false},
    {1, COMPARE_EXACT, "{LPUSH|RPUSH} %c {%l|%l %C|}", false},
    {16, COMPARE_EXACT, "{LPOP|RPOP} {%c|%c|%k} {|||1|2|5|0|%n|1 2}", false},
    {6, COMPARE_EXACT, "LLEN {%c|%k}", false},
    {12, COMPARE_EXACT, "LINDEX {%c|%c|%k} %L", false},
    {10, COMPARE_EXACT, "LSET {%c|%c|%k} %L %C", false},
    {12, COMPARE_EXACT, "LINSERT {%c|%c|%k} {BEFORE|AFTER|%w} %C %C", false},
    {12, COMPARE_EXACT, "LRANGE {%c|%c|%k} %L %L", false},
    {2, COMPARE_EXACT, "LTRIM {%c|%k} {0 100|1 -2|-50 -1|0 -1|%L %L}", false},
    {10, COMPARE_EXACT, "LREM {%c|%c|%k} {0|1|-1|2|%L} %C", false},
    {12, COMPARE_EXACT, "LPOS {%c|%c|%k} %C {||RANK 2|RANK -1|COUNT 0|RANK -1 COUNT 2|COUNT %n|MAXLEN %n|RANK 0|COUNT 0 MAXLEN 5 RANK -2|RANK x|COUNT -1|%w}", true},
    {12, COMPARE_EXACT, "LMOVE {%c|%c|%k} {%c|%c|%k} {LEFT LEFT|LEFT RIGHT|RIGHT LEFT|RIGHT RIGHT|LEFT %w}", false},
    {8, COMPARE_EXACT, "RPOPLPUSH {%c|%c|%k} {%c|%c|%k}", false},
    {6, COMPARE_EXACT, "LMPOP {1 %c|2 %c %c|3 %c %c %k|%n %c} {LEFT|RIGHT|LEFT COUNT %n|RIGHT COUNT 2|LEFT COUNT|%w}", false},
    {4, COMPARE_EXACT, "{BLPOP|BRPOP} {%c|%c %c|%c %c %k} {0.001|0.002|abc|-1}", true},
    {3, COMPARE_EXACT, "BLMOVE {%c|%k} {%c|%k} {LEFT RIGHT|RIGHT LEFT|LEFT %w} {0.001|0.002|abc|-1}", true},
    {2, COMPARE_EXACT, "BRPOPLPUSH {%c|%k} {%c|%k} {0.001|0.002|abc|-1}", true},
    {2, COMPARE_EXACT, "BLMPOP {0.001|0.002|abc|-1} {1 %c|2 %c %c|3 %c %k %c|3 %c|0 %c} {LEFT|RIGHT|LEFT COUNT %n|%w}", true},
    {1, COMPARE_EXACT, "COMMAND {GETKEYS|GETKEYSANDFLAGS} {LPUSH %c a|LMOVE %c %c LEFT LEFT|LMPOP 1 %c LEFT|BLMPOP 0 2 %c %c LEFT|BLPOP %c %c 0|LMPOP 3 %c %c|SORT %c|SORT %c GET x STORE %c|SORT_RO %c BY x}", true},
    /* sorting: numbers only where all are whole, since a redis-server of 7.0 takes an errno left
     * over from another command for a mistake in any other number */
    {10, COMPARE_EXACT, "{LPUSH|RPUSH} %j %J+", true},
    {3, COMPARE_EXACT, "{LREM %j 0 abc|LPOP %j|DEL %j|SET %W %J|SET %W %J|SET %W %J|DEL %W}", true},
    {8, COMPARE_EXACT, "{SORT|SORT_RO} %j {||DESC|ALPHA|ALPHA DESC|LIMIT %L %L|LIMIT %L %L DESC|LIMIT 1|%w}", true},
    {8, COMPARE_EXACT, "SORT %j BY {w*|w*|nosort|none*|w*->x} {||DESC|LIMIT %L %L|GET # GET w*|GET s*|GET h*->f1 GET #|GET nostar LIMIT 0 5}", true},
    {4, COMPARE_EXACT, "SORT %j {|BY w*|ALPHA|BY nosort|DESC} {STORE %c|LIMIT %L %L STORE %c|STORE %j|GET w* STORE %c|STORE}", true},
    {3, COMPARE_EXACT, "SORT %q BY nosort {|DESC|LIMIT %L %L|LIMIT %L %L DESC|GET # GET s*|STORE %c}", true},
    {3, COMPARE_SORTED, "SORT {%c|%z|%t} BY nosort {|DESC|GET #|GET s*}", true},
    {4, COMPARE_SORTED, "SORT {%c|%z|%t|%k} ALPHA {|DESC|BY s*|BY h*->f1 DESC}", true},
    {2, COMPARE_EXACT, "SORT {%t BY nosort STORE %c|%k FOO|%s|%h ALPHA|none STORE %c}", true},
    /* bitmaps */
    {14, COMPARE_EXACT, "SETBIT {%s|%s|%k} %O {0|1|1|1|2|-1|abc}", true},
    {10, COMPARE_EXACT, "GETBIT {%s|%s|%k} %O", true},
    {10, COMPARE_EXACT, "BITCOUNT {%s|%s|%k} {||%o %o|%o %o BYTE|%o %o BIT|%o|%o %o %w}", false},
    {10, COMPARE_EXACT, "BITPOS {%s|%s|%k} {0|1|1|2|abc} {||%o|%o %o|%o %o BYTE|%o %o BIT|%o %o %w}", false},
    {8, COMPARE_EXACT, "BITOP {AND|OR|XOR|NOT|%w} %s {%s|%s %s|%s %s %s|%s %k}", true},
    {14, COMPARE_EXACT, "BITFIELD {%s|%s|%k} {|OVERFLOW SAT|OVERFLOW FAIL|OVERFLOW WRAP|OVERFLOW %w} {SET %T %O %i|INCRBY %T %O %i|GET %T %O|INCRBY %T %O 1 INCRBY %T %O -300|SET %T %O 5 GET %T %O|GET %T|SET %T %O|%w}", true},
    {3, COMPARE_EXACT, "BITFIELD_RO {%s|%k} {GET %T %O|GET %T %O GET %T %O|SET %T %O 1|%w|}", true},
    {1, COMPARE_EXACT, "COMMAND {GETKEYS|GETKEYSANDFLAGS} {BITFIELD %s GET u8 0|BITFIELD %s GET u8 0 SET u8 0 1|BITOP AND %s %s %s|SETBIT %s 1 1}", true},
    /* sorted sets */
    {60, COMPARE_EXACT, "ZADD {%z|%z|%k} %S%m+", false},
    {25, COMPARE_EXACT, "ZADD %z {NX|XX|GT|LT|CH|CH|XX GT|XX LT CH|GT CH|LT CH|NX CH|NX XX|GT LT|NX GT|%w} %S%m+", false},
    {10, COMPARE_SCORES, "ZADD %z {INCR|NX INCR|XX INCR|GT INCR|LT INCR|INCR CH|XX GT INCR} {%S%m|%S%m|%S%m|%S%m+}", false},
    {4, COMPARE_EXACT, "ZADD %z {|%S|%S%m %S|%m%S|CH|INCR}", false},
    {1, COMPARE_EXACT, "ZADD %z %S %l", false},
    {14, COMPARE_SCORES, "ZINCRBY {%z|%z|%k} %S %m", false},
    {14, COMPARE_EXACT, "ZREM {%z|%z|%k} %m+", false},
    {6, COMPARE_EXACT, "ZCARD {%z|%k}", false},
    {14, COMPARE_SCORES, "ZSCORE {%z|%z|%k} %m", false},
    {8, COMPARE_SCORES, "ZMSCORE {%z|%z|%k} %m+", false},
    {14, COMPARE_EXACT, "{ZRANK|ZREVRANK} {%z|%z|%k} %m", true},
    {10, COMPARE_EXACT, "ZCOUNT {%z|%z|%k} %x %x", false},
    {12, COMPARE_EXACT, "ZADD %q 0 %m {0 %m|0 %m 0 %m|0 %m 0 %m 0 %m|}", true},
    {3, COMPARE_EXACT, "{ZREM %q %m+|DEL %q|ZPOPMIN %q 3|ZREMRANGEBYLEX %q %y %y}", true},
    {8, COMPARE_EXACT, "ZLEXCOUNT %q %y {%y|%y|%y|%y|%y|%y %w|}", true},
    {12, COMPARE_SCORES, "ZRANGE {%z|%z|%k} %L %L {||REV|WITHSCORES|REV WITHSCORES|LIMIT %L %L|%w}", false},
    {12, COMPARE_SCORES, "ZRANGE {%z|%z|%k} %x %x BYSCORE {||REV|WITHSCORES|REV WITHSCORES|LIMIT %L %L|LIMIT %L %L REV WITHSCORES|LIMIT %L|BYLEX|%w}", false},
    {10, COMPARE_EXACT, "ZRANGE %q %y %y BYLEX {||REV|LIMIT %L %L|REV LIMIT %L %L|WITHSCORES|REV REV|%w}", true},
    {8, COMPARE_SCORES, "ZREVRANGE {%z|%k} %L %L {||WITHSCORES|REV|%w}", false},
    {10, COMPARE_SCORES, "{ZRANGEBYSCORE|ZREVRANGEBYSCORE} {%z|%z|%k} %x %x {||WITHSCORES|LIMIT %L %L|WITHSCORES LIMIT %L %L|LIMIT 1|%w}", false},
    {10, COMPARE_EXACT, "{ZRANGEBYLEX|ZREVRANGEBYLEX} %q %y %y {||LIMIT %L %L|WITHSCORES|%w}", true},
    {5, COMPARE_EXACT, "ZRANGESTORE %z %z {%L %L|%L %L REV|%x %x BYSCORE|%x %x BYSCORE LIMIT %L %L|%L %L WITHSCORES|%k}", false},
    {3, COMPARE_EXACT, "ZREMRANGEBYRANK {%z|%k} {%L %L|0 0|-1 -1|3 5}", false},
    {3, COMPARE_EXACT, "ZREMRANGEBYSCORE {%z|%k} %x %x", false},
    {2, COMPARE_EXACT, "ZRANGESTORE %z %q %y %y BYLEX {|LIMIT %L %L|REV}", true},
    {10, COMPARE_SCORES, "{ZPOPMIN|ZPOPMAX} {%z|%z|%k} {|||1|2|5|0|%n|%w}", false},
    {6, COMPARE_SCORES, "ZMPOP {1 %z|2 %z %z|3 %z %z %k|%n %z} {MIN|MAX|MIN COUNT %n|MAX COUNT 2|MIN COUNT|%w}", false},
    {3, COMPARE_SCORES, "{BZPOPMIN|BZPOPMAX} {%z|%z %z|%z %z %k} {0.001|0.002|abc|-1}", true},
    {2, COMPARE_SCORES, "BZMPOP {0.001|0.002|abc|-1} {1 %z|2 %z %z|3 %z %k %z|3 %z|0 %z} {MIN|MAX|MIN COUNT %n|%w}", true},
    {4, COMPARE_RANDOM, "ZRANDMEMBER {%z|%z|%k} {|%r|%r WITHSCORES}", true},
    {1, COMPARE_EXACT, "ZRANDMEMBER %z {%r FOO|5 WITHSCORES x|abc|9223372036854775808|-9223372036854775808|-4611686018427387905 WITHSCORES}", true},
    {4, COMPARE_SCAN, "ZSCAN {%z|%k} 0 {|MATCH %p|COUNT %n|MATCH %p COUNT %n|COUNT|%w x}", true},
    {1, COMPARE_EXACT, "ZSCAN %z {abc|1x||0 COUNT 0|0 COUNT x|0 FOO|0 NOVALUES}", true},
    {8, COMPARE_SCORES, "{ZUNION|ZINTER} {1 %z|2 %z %z|3 %z %z %z|2 %z %k|%n %z} {|||WITHSCORES|WITHSCORES AGGREGATE MAX|WITHSCORES AGGREGATE MIN|AGGREGATE %w|%w}", false},
    {8, COMPARE_SCORES, "{ZUNION|ZINTER} 2 %z %z WEIGHTS %g {%g|%g WITHSCORES|%g AGGREGATE SUM WITHSCORES|%g AGGREGATE MIN WITHSCORES|%g WITHSCORES AGGREGATE MAX|}", false},
    {6, COMPARE_SCORES, "ZDIFF {1 %z|2 %z %z|3 %z %z %z|2 %z %k} {||WITHSCORES|WEIGHTS 1 1|%w}", false},
    {5, COMPARE_EXACT, "ZINTERCARD {1 %z|2 %z %z|3 %z %z %z|2 %z %k|%n %z} {||LIMIT %L|LIMIT|%w}", false},
    {8, COMPARE_EXACT, "{ZUNIONSTORE|ZINTERSTORE} %z {1 %z|2 %z %z|3 %z %z %z|2 %z %k|%n %z} {|||AGGREGATE MIN|AGGREGATE MAX|WITHSCORES|WEIGHTS %g|%w}", false},
    {5, COMPARE_EXACT, "{ZUNIONSTORE|ZINTERSTORE} %z 2 %z %z WEIGHTS %g {%g|%g AGGREGATE SUM|%g AGGREGATE MIN|%g AGGREGATE MAX}", false},
    {4, COMPARE_EXACT, "ZDIFFSTORE %z {1 %z|2 %z %z|3 %z %z %z|2 %z %k|0 %z} {|||%w}", false},
    {2, COMPARE_EXACT, "COMMAND {GETKEYS|GETKEYSANDFLAGS} {ZADD %z 1 a|ZUNION 2 %z %z|ZUNION 3 %z %z|ZUNIONSTORE %z 2 %z %z WEIGHTS 1 2|ZUNIONSTORE %z 3 %z|ZMPOP 1 %z MIN|BZMPOP 0 2 %z %z MIN|BZPOPMIN %z %z 0|ZRANGESTORE %z %z 0 1|ZINTERCARD 2 %z}", true},
    {1, COMPARE_EXACT, "CLIENT UNBLOCK {99999999|abc|99999999 ERROR|99999999 TIMEOUT|99999999 FOO|99999999 ERROR x|}", true},
};
/* clang-format on */

/* ---- state ---- */

enum { BLOCK_BYTES = 4 * 1024 * 1024, LONG_KEY_BYTES = 1000 };

struct gen {
    uint64_t state;
    int protocol;
    int weight_sum;
    bool want_hello; /* the next command returns to RESP3 */
    uint64_t relative_count;
    int64_t start_s;
    char *block; /* arguments of the current batch */
    size_t block_len;
    char long_key[LONG_KEY_BYTES];
};

/* splitmix64 (Steele, Lea and Flood, 2014): one word of state, enough for choosing commands. */
static uint64_t next_random(struct gen *g) {
    uint64_t z = (g->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t gen_below(struct gen *g, uint64_t bound) {
    return next_random(g) % bound;
}

static bool one_in(struct gen *g, uint64_t n) {
    return gen_below(g, n) == 0;
}

struct gen *gen_create(uint64_t seed, int protocol) {
    struct gen *g = calloc(1, sizeof(*g));
    if (!g) {
        abort();
    }
    g->state = seed;
    g->protocol = protocol;
    g->want_hello = protocol == 3;
    g->start_s = (int64_t)time(NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        g->weight_sum += rows[i].weight;
    }
    g->block = malloc(BLOCK_BYTES);
    if (!g->block) {
        abort();
    }
    memset(g->long_key, 'L', sizeof(g->long_key));
    return g;
}

void gen_destroy(struct gen *g) {
    if (g) {
        free(g->block);
        free(g);
    }
}

void gen_recycle(struct gen *g) {
    g->block_len = 0;
}

/* ---- arguments ---- */

static char *take(struct gen *g, size_t len) {
    if (g->block_len + len > BLOCK_BYTES) {
        fprintf(stderr, "generator: a batch larger than %d bytes\n", BLOCK_BYTES);
        abort();
    }
    char *ptr = g->block + g->block_len;
    g->block_len += len;
    return ptr;
}

static void add(struct gen *g, struct command *cmd, const char *ptr, size_t len) {
    if (cmd->argc == GEN_MAX_ARGS) {
        return;
    }
    char *copy = take(g, len + 1);
    memcpy(copy, ptr, len);
    copy[len] = '\0';
    cmd->argv[cmd->argc] = copy;
    cmd->lens[cmd->argc++] = len;
}

static void add_pick(struct gen *g, struct command *cmd, const struct text *list, size_t count) {
    const struct text *t = &list[gen_below(g, count)];
    add(g, cmd, t->ptr, t->len);
}

#define ADD_PICK(g, cmd, list) add_pick((g), (cmd), (list), COUNT(list))

static void add_number(struct gen *g, struct command *cmd, const char *prefix, int64_t n) {
    char text[48];
    int len = snprintf(text, sizeof(text), "%s%" PRId64, prefix, n);
    add(g, cmd, text, (size_t)len);
}

static void add_key(struct gen *g, struct command *cmd, char kind) {
    if (kind == 'k' || one_in(g, 12)) {
        switch (gen_below(g, 5)) {
        case 0:
            ADD_PICK(g, cmd, odd_keys);
            return;
        case 1:
            if (one_in(g, 3)) {
                add(g, cmd, g->long_key, sizeof(g->long_key));
                return;
            }
            break;
        default:
            break;
        }
        kind = "shztl"[gen_below(g, 5)];
    }
    char prefix[2] = {kind, '\0'};
    add_number(g, cmd, prefix, (int64_t)gen_below(g, 8));
}

/* Few fields most of the time; a third of the draws come from a range wide enough that hashes
 * outgrow their packed form. */
static void add_field(struct gen *g, struct command *cmd) {
    if (one_in(g, 12)) {
        ADD_PICK(g, cmd, odd_values);
    } else {
        add_number(g, cmd, "f", (int64_t)gen_below(g, one_in(g, 3) ? 700 : 12));
    }
}

/* Up to max_len letters. */
static void add_long(struct gen *g, struct command *cmd, size_t max_len) {
    if (cmd->argc == GEN_MAX_ARGS) {
        return;
    }
    size_t len = gen_below(g, max_len);
    char *copy = take(g, len + 1);
    for (size_t i = 0; i < len; i++) {
        copy[i] = (char)('a' + (i + len) % 26);
    }
    copy[len] = '\0';
    cmd->argv[cmd->argc] = copy;
    cmd->lens[cmd->argc++] = len;
}

/* Few elements, so that some are equal; of all lengths now and then. */
static void add_element(struct gen *g, struct command *cmd) {
    if (one_in(g, 12)) {
        ADD_PICK(g, cmd, odd_values);
    } else if (one_in(g, 30)) {
        add_long(g, cmd, one_in(g, 8) ? 6000 : 100);
    } else {
        add_number(g, cmd, one_in(g, 2) ? "e" : "", (int64_t)gen_below(g, 12));
    }
}

/* As fields, so that sorted sets outgrow their packed form too. */
static void add_member(struct gen *g, struct command *cmd) {
    if (one_in(g, 12)) {
        ADD_PICK(g, cmd, odd_values);
    } else {
        add_number(g, cmd, "m", (int64_t)gen_below(g, one_in(g, 3) ? 700 : 12));
    }
}

/* Integers and words in turn by key, so that sets of either and of both occur. */
static void add_set_member(struct gen *g, struct command *cmd) {
    bool words = cmd->argc > 1 && cmd->lens[1] > 1 && cmd->argv[1][1] % 2 != 0;
    if (one_in(g, 30)) {
        ADD_PICK(g, cmd, odd_values);
    } else {
        add_number(g, cmd, words ? "m" : "", (int64_t)gen_below(g, one_in(g, 3) ? 700 : 12));
    }
}

/* Mostly small whole numbers, so that members tie. */
static void add_score(struct gen *g, struct command *cmd) {
    if (one_in(g, 40)) {
        ADD_PICK(g, cmd, bad_scores);
    } else if (one_in(g, 4)) {
        ADD_PICK(g, cmd, scores);
    } else {
        add_number(g, cmd, "", (int64_t)gen_below(g, 40) - 15);
    }
}

static void add_value(struct gen *g, struct command *cmd) {
    switch (gen_below(g, 8)) {
    case 0:
    case 1:
        add_number(g, cmd, "", (int64_t)gen_below(g, 20000) - 10000);
        return;
    case 2:
        add_number(g, cmd, "value-", (int64_t)gen_below(g, 1000));
        return;
    case 3:
        if (one_in(g, 4)) {
            add_long(g, cmd, one_in(g, 8) ? 3000 : 300);
            return;
        }
        break;
    default:
        break;
    }
    ADD_PICK(g, cmd, odd_values);
}

/* A relative time nobody draws twice: 1,000,000 s and up by steps of 7, so 81 days and more. */
static int64_t relative_s(struct gen *g) {
    return 1000000 + 7 * (int64_t)(g->relative_count++ * 131071 % 1000003);
}

/* An absolute time some 4 to 7 years ahead, out of eight, so that equal times meet. */
static int64_t future_s(struct gen *g) {
    return (g->start_s / 1000000 + 150) * 1000000 + (int64_t)gen_below(g, 8) * 10000000;
}

static void add_time(struct gen *g, struct command *cmd, char kind) {
    bool absolute = strchr("aAbB", kind) != NULL;
    bool may_be_past = kind == 'a' || kind == 'A';
    int64_t unit = strchr("ABE", kind) ? 1000 : 1;
    if (one_in(g, 12)) {
        ADD_PICK(g, cmd, bad_times);
    } else if (may_be_past && one_in(g, 8)) {
        ADD_PICK(g, cmd, past_s);
    } else {
        add_number(g, cmd, "", (absolute ? future_s(g) : relative_s(g)) * unit);
    }
}

static void add_bound(struct gen *g, struct command *cmd, const struct text *good,
                      size_t good_count, const struct text *odd, size_t odd_count) {
    bool is_odd = one_in(g, 15);
    add_pick(g, cmd, is_odd ? odd : good, is_odd ? odd_count : good_count);
}

static void add_special(struct gen *g, struct command *cmd, char what) {
    switch (what) {
    case 'k':
    case 's':
    case 'h':
    case 'z':
    case 't':
        add_key(g, cmd, what);
        break;
    case 'u':
        add_set_member(g, cmd);
        break;
    case 'q':
        add_number(g, cmd, "q", (int64_t)gen_below(g, 4));
        break;
    case 'c':
        add_key(g, cmd, 'l');
        break;
    case 'C':
        add_element(g, cmd);
        break;
    case 'j':
        add_number(g, cmd, "n", (int64_t)gen_below(g, 3));
        break;
    case 'J':
        if (one_in(g, 30)) {
            add(g, cmd, "abc", 3);
        } else {
            add_number(g, cmd, "", (int64_t)gen_below(g, 14) - 2);
        }
        break;
    case 'W':
        add_number(g, cmd, "w", (int64_t)gen_below(g, 12));
        break;
    case 'O':
        ADD_PICK(g, cmd, bit_offsets);
        break;
    case 'T':
        ADD_PICK(g, cmd, field_types);
        break;
    case 'm':
        add_member(g, cmd);
        break;
    case 'S':
        add_score(g, cmd);
        break;
    case 'x':
        add_bound(g, cmd, score_bounds, COUNT(score_bounds), odd_bounds, COUNT(odd_bounds));
        break;
    case 'y':
        add_bound(g, cmd, lex_bounds, COUNT(lex_bounds), odd_lex_bounds, COUNT(odd_lex_bounds));
        break;
    case 'L':
        ADD_PICK(g, cmd, limits);
        break;
    case 'g':
        ADD_PICK(g, cmd, weights);
        break;
    case 'f':
        add_field(g, cmd);
        break;
    case 'v':
        add_value(g, cmd);
        break;
    case 'i':
        ADD_PICK(g, cmd, integers);
        break;
    case 'F':
        ADD_PICK(g, cmd, floats);
        break;
    case 'o':
        ADD_PICK(g, cmd, offsets);
        break;
    case 'n':
        ADD_PICK(g, cmd, small_counts);
        break;
    case 'r':
        ADD_PICK(g, cmd, rand_counts);
        break;
    case 'D':
        ADD_PICK(g, cmd, payloads);
        break;
    case 'd':
        ADD_PICK(g, cmd, databases);
        break;
    case 'p':
        ADD_PICK(g, cmd, patterns);
        break;
    case 'w':
        ADD_PICK(g, cmd, junk);
        break;
    case 'l':
        add_long(g, cmd, one_in(g, 2) ? 2000 : 100000);
        break;
    default:
        add_time(g, cmd, what);
        break;
    }
}

/* ---- templates ---- */

/* One word: a literal, or a run of %x with an optional +. */
static void expand_word(struct gen *g, struct command *cmd, const char *word, size_t len) {
    if (len == 0) {
        return;
    }
    if (word[0] != '%') {
        add(g, cmd, word, len);
        return;
    }
    size_t times = 1;
    if (word[len - 1] == '+') {
        len--;
        times = 1 + gen_below(g, one_in(g, 4) ? 6 : 2);
    }
    while (times-- > 0) {
        for (size_t i = 0; i + 1 < len; i += 2) {
            add_special(g, cmd, word[i + 1]);
        }
    }
}

static void expand_words(struct gen *g, struct command *cmd, const char *words, size_t len) {
    const char *end = words + len;
    while (words < end) {
        const char *space = memchr(words, ' ', (size_t)(end - words));
        const char *stop = space ? space : end;
        expand_word(g, cmd, words, (size_t)(stop - words));
        words = space ? space + 1 : end;
    }
}

/* {A|B|C}: one of them, each as likely. */
static void expand_choice(struct gen *g, struct command *cmd, const char *from, const char *to) {
    size_t count = 1;
    for (const char *p = from; p < to; p++) {
        count += *p == '|';
    }
    size_t chosen = gen_below(g, count);
    while (chosen-- > 0) {
        from = (const char *)memchr(from, '|', (size_t)(to - from)) + 1;
    }
    const char *bar = memchr(from, '|', (size_t)(to - from));
    expand_words(g, cmd, from, (size_t)((bar ? bar : to) - from));
}

static void expand(struct gen *g, struct command *cmd, const char *words) {
    while (*words) {
        if (*words == '{') {
            const char *close = strchr(words, '}');
            expand_choice(g, cmd, words + 1, close);
            words = close + 1;
        } else {
            size_t len = strcspn(words, "{");
            expand_words(g, cmd, words, len);
            words += len;
        }
    }
}

/* ---- mistakes ---- */

static void mutate(struct gen *g, struct command *cmd, int fixed) {
    int victim = 1 + (int)gen_below(g, (uint64_t)(cmd->argc > 1 ? cmd->argc - 1 : 1));
    switch (gen_below(g, 5)) {
    case 0: /* one argument short */
        if (cmd->argc > 1) {
            cmd->argc--;
        }
        break;
    case 1: /* one too many */
        ADD_PICK(g, cmd, junk);
        break;
    case 2: /* no arguments at all */
        cmd->argc = 1;
        break;
    default: /* another value */
        if (cmd->argc > 1 && victim != fixed) {
            const struct text *t = &mutants[gen_below(g, COUNT(mutants))];
            cmd->argv[victim] = t->ptr;
            cmd->lens[victim] = t->len;
        }
        break;
    }
}

static void random_case(struct gen *g, struct command *cmd) {
    char *name = take(g, cmd->lens[0] + 1);
    for (size_t i = 0; i <= cmd->lens[0]; i++) {
        char c = cmd->argv[0][i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        name[i] = letter && one_in(g, 2) ? (char)(c ^ 0x20) : c;
    }
    cmd->argv[0] = name;
}

static const struct row *pick_row(struct gen *g) {
    int at = (int)gen_below(g, (uint64_t)g->weight_sum);
    const struct row *row = rows;
    while (at >= row->weight) {
        at -= row->weight;
        row++;
    }
    return row;
}

static bool command_is(const struct command *cmd, const char *name) {
    return cmd->lens[0] == strlen(name) && strncmp(cmd->argv[0], name, cmd->lens[0]) == 0;
}

void gen_next(struct gen *g, struct command *cmd) {
    memset(cmd, 0, sizeof(*cmd));
    if (g->want_hello) {
        g->want_hello = false;
        cmd->compare = COMPARE_SHAPE;
        expand(g, cmd, "HELLO 3");
        return;
    }
    const struct row *row = pick_row(g);
    cmd->compare = row->compare;
    expand(g, cmd, row->words);
    if (cmd->argc == 0) {
        add(g, cmd, "", 0);
    }
    cmd->ends_batch = row->compare == COMPARE_RANDOM || row->compare == COMPARE_POPPED ||
                      row->compare == COMPARE_RANDKEY || row->compare == COMPARE_CLOSES;
    g->want_hello =
        g->protocol == 3 && !one_in(g, 3) &&
        (command_is(cmd, "RESET") || command_is(cmd, "HELLO") || row->compare == COMPARE_CLOSES);
    if (row->fixed != true && one_in(g, 25)) {
        mutate(g, cmd, row->fixed);
    }
    if (one_in(g, 20)) {
        random_case(g, cmd);
    }
}
