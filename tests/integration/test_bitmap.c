/* SPDX-License-Identifier: BSD-3-Clause */
/* Bitmaps by example (support/example.h), and large ones beside the oracle. */
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

enum { LARGE = 200000, ROUNDS = 600 };

/* clang-format off */
static const struct example bits[] = {
    {"SETBIT b 7 1", ":0", BOTH}, {"SETBIT b 7 0", ":1", BOTH}, {"SETBIT b 7 1", ":0", BOTH},
    {"GETBIT b 7", ":1", BOTH}, {"GETBIT b 6", ":0", BOTH}, {"GETBIT b 100", ":0", BOTH},
    {"GETBIT none 5", ":0", BOTH}, {"GET b", "\"\\x01\"", BOTH}, {"SETBIT b 23 1", ":0", BOTH},
    {"GET b", "\"\\x01\\x00\\x01\"", BOTH}, {"STRLEN b", ":3", BOTH}, {"SETBIT zero 9 0", ":0", BOTH},
    {"GET zero", "\"\\x00\\x00\"", BOTH}, {"EXISTS none", ":0", BOTH},
    {"SETBIT n x 1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"SETBIT n -1 1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"SETBIT n 4294967296 1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"SETBIT n 4294967296 0", "-ERR bit offset is not an integer or out of range", BOTH},
    {"GETBIT n 4294967295", ":0", BOTH},
    {"GETBIT n 4294967296", "-ERR bit offset is not an integer or out of range", BOTH},
    {"GETBIT n -1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"GETBIT n x", "-ERR bit offset is not an integer or out of range", BOTH},
    {"SETBIT n #1 1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"SETBIT n 1 2", "-ERR bit is not an integer or out of range", BOTH},
    {"SETBIT n 1 -1", "-ERR bit is not an integer or out of range", BOTH},
    {"SETBIT n 1 x", "-ERR bit is not an integer or out of range", BOTH},
    {"SETBIT n 1 ''", "-ERR bit is not an integer or out of range", BOTH},
    {"SETBIT n '' 1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"SETBIT n 01 1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"SETBIT n 9223372036854775808 1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"EXISTS n", ":0", BOTH}, {"SETBIT n 1", ARITY("setbit"), BOTH}, {"SETBIT n 1 1 1", ARITY("setbit"), BOTH},
    {"GETBIT n", ARITY("getbit"), BOTH}, {"SET int 12", "+OK", BOTH}, {"SETBIT int 6 1", ":0", BOTH},
    {"GET int", "\"32\"", BOTH}, {"SETBIT int 7 0", ":1", BOTH}, {"GET int", "\"22\"", BOTH},
    {"SET int 12", "+OK", BOTH}, {"GETBIT int 2", ":1", BOTH}, {"SETBIT int 2 1", ":1", BOTH},
    {"INCR int", ":13", BOTH}, {"SETBIT int 30 1", ":0", BOTH}, {"GET int", "\"13\\x00\\x02\"", BOTH},
    {"SET ttl v EX 1000", "+OK", BOTH}, {"SETBIT ttl 1 0", ":1", BOTH}, {"GET ttl", "\"6\"", BOTH},
    {"PERSIST ttl", ":1", BOTH}, {"HSET h f v", ":1", BOTH}, {"SETBIT h 1 1", WRONGTYPE, BOTH},
    {"SETBIT h x 1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"SETBIT h 1 x", "-ERR bit is not an integer or out of range", BOTH}, {"GETBIT h 1", WRONGTYPE, BOTH},
    {"GETBIT h x", "-ERR bit offset is not an integer or out of range", BOTH}, {"TYPE b", "+string", BOTH},
};

static const struct example counting[] = {
    {"SET k foobar", "+OK", BOTH}, {"BITCOUNT k", ":26", BOTH}, {"BITCOUNT k 0 0", ":4", BOTH},
    {"BITCOUNT k 1 1", ":6", BOTH}, {"BITCOUNT k 1 1 BYTE", ":6", BOTH}, {"BITCOUNT k 5 30 BIT", ":17", BOTH},
    {"BITCOUNT k 5 30 bit", ":17", BOTH}, {"BITCOUNT k 0 -1", ":26", BOTH}, {"BITCOUNT k -2 -1", ":7", BOTH},
    {"BITCOUNT k -1 -2", ":0", BOTH}, {"BITCOUNT k -1 -2 BIT", ":0", BOTH}, {"BITCOUNT k 3 2", ":0", BOTH},
    {"BITCOUNT k 10 20", ":0", BOTH}, {"BITCOUNT k -100 -50", ":4", BOTH}, {"BITCOUNT k -100 -50 BIT", ":0", BOTH},
    {"BITCOUNT k -100 2", ":16", BOTH}, {"BITCOUNT k 0 9223372036854775807", ":26", BOTH},
    {"BITCOUNT k -9223372036854775808 9223372036854775807 BIT", ":26", BOTH},
    {"BITCOUNT k 9223372036854775807 -9223372036854775808", ":0", BOTH}, {"BITCOUNT k 0 0 BIT", ":0", BOTH},
    {"BITCOUNT k 1 1 BIT", ":1", BOTH}, {"BITCOUNT k 1 7 BIT", ":4", BOTH}, {"BITCOUNT k 7 8 BIT", ":0", BOTH},
    {"BITCOUNT k 47 47 BIT", ":0", BOTH}, {"BITCOUNT k 47 48 BIT", ":0", BOTH}, {"BITCOUNT k 48 49 BIT", ":0", BOTH},
    {"BITCOUNT k -8 -1 BIT", ":4", BOTH}, {"BITCOUNT k 0", SYNTAX, BOTH}, {"BITCOUNT k x", SYNTAX, BOTH},
    {"BITCOUNT k 0 x", NOT_INTEGER, BOTH}, {"BITCOUNT k x 0", NOT_INTEGER, BOTH}, {"BITCOUNT k 0 1 FOO", SYNTAX, BOTH},
    {"BITCOUNT k x 1 FOO", NOT_INTEGER, BOTH}, {"BITCOUNT k 0 x FOO", NOT_INTEGER, BOTH},
    {"BITCOUNT k 0 1 BIT BIT", SYNTAX, BOTH}, {"BITCOUNT k x 1 BIT BIT", SYNTAX, BOTH},
    {"BITCOUNT k 1.0 2", NOT_INTEGER, BOTH}, {"BITCOUNT none", ":0", BOTH}, {"BITCOUNT none 0", ":0", BOTH},
    {"BITCOUNT none x y FOO", ":0", BOTH}, {"BITCOUNT none 0 -1", ":0", BOTH}, {"BITCOUNT", ARITY("bitcount"), BOTH},
    {"SET int 1234", "+OK", BOTH}, {"BITCOUNT int", ":13", BOTH}, {"BITCOUNT int 0 0", ":3", BOTH},
    {"SET empty ''", "+OK", BOTH}, {"BITCOUNT empty", ":0", BOTH}, {"BITCOUNT empty 0 -1", ":0", BOTH},
    {"BITCOUNT empty 0 0 BIT", ":0", BOTH}, {"HSET h f v", ":1", BOTH}, {"BITCOUNT h", WRONGTYPE, BOTH},
    {"BITCOUNT h x", WRONGTYPE, BOTH}, {"BITCOUNT h 0 1 FOO", WRONGTYPE, BOTH},
};

static const struct example searching[] = {
    {"SET ff \\xff\\xff\\xff", "+OK", BOTH}, {"SET zz \\x00\\x00\\x00", "+OK", BOTH},
    {"SET mix \\xff\\xf0\\x00", "+OK", BOTH}, {"SET low \\x00\\x0f\\xff", "+OK", BOTH}, {"BITPOS ff 1", ":0", BOTH},
    {"BITPOS ff 0", ":24", BOTH}, {"BITPOS ff 0 0", ":24", BOTH}, {"BITPOS ff 0 1", ":24", BOTH},
    {"BITPOS ff 0 0 -1", ":-1", BOTH}, {"BITPOS ff 0 0 1", ":-1", BOTH}, {"BITPOS ff 0 5", ":-1", BOTH},
    {"BITPOS ff 0 3", ":-1", BOTH}, {"BITPOS ff 0 2", ":24", BOTH}, {"BITPOS zz 1", ":-1", BOTH},
    {"BITPOS zz 0", ":0", BOTH}, {"BITPOS zz 1 0 -1", ":-1", BOTH}, {"BITPOS zz 1 1", ":-1", BOTH},
    {"BITPOS zz 0 1", ":8", BOTH}, {"BITPOS zz 0 2 2", ":16", BOTH}, {"BITPOS mix 0", ":12", BOTH},
    {"BITPOS mix 1", ":0", BOTH}, {"BITPOS mix 1 1", ":8", BOTH}, {"BITPOS mix 1 2", ":-1", BOTH},
    {"BITPOS mix 0 0 0", ":-1", BOTH}, {"BITPOS mix 0 1 1", ":12", BOTH}, {"BITPOS mix 0 2 -1 BYTE", ":16", BOTH},
    {"BITPOS mix 0 2 -1 BIT", ":12", BOTH}, {"BITPOS mix 0 2 11 BIT", ":-1", BOTH},
    {"BITPOS mix 0 2 12 BIT", ":12", BOTH}, {"BITPOS mix 1 12 20 BIT", ":-1", BOTH},
    {"BITPOS low 1 0 -1 BIT", ":12", BOTH}, {"BITPOS low 1 12 12 BIT", ":12", BOTH},
    {"BITPOS low 1 11 11 BIT", ":-1", BOTH}, {"BITPOS low 1 13 -1 BIT", ":13", BOTH},
    {"BITPOS low 0 12 -1 BIT", ":-1", BOTH}, {"BITPOS low 0 16", ":-1", BOTH}, {"BITPOS low 1 -1", ":16", BOTH},
    {"BITPOS low 1 -1 -1", ":16", BOTH}, {"BITPOS low 1 -2 -1", ":12", BOTH}, {"BITPOS low 1 -1 -2", ":-1", BOTH},
    {"BITPOS low 1 -3 -2 BIT", ":21", BOTH}, {"BITPOS low 1 5 2", ":-1", BOTH}, {"BITPOS low 1 -100 100", ":12", BOTH},
    {"BITPOS low 1 -9223372036854775808 9223372036854775807 BIT", ":12", BOTH}, {"BITPOS none 0", ":0", BOTH},
    {"BITPOS none 1", ":-1", BOTH}, {"BITPOS none 0 x", ":0", BOTH}, {"BITPOS none 1 0 -1 FOO", ":-1", BOTH},
    {"BITPOS none 0 5 6", ":0", BOTH}, {"BITPOS none 2", "-ERR The bit argument must be 1 or 0.", BOTH},
    {"BITPOS none x", NOT_INTEGER, BOTH}, {"BITPOS low 2", "-ERR The bit argument must be 1 or 0.", BOTH},
    {"BITPOS low -1", "-ERR The bit argument must be 1 or 0.", BOTH}, {"BITPOS low x", NOT_INTEGER, BOTH},
    {"BITPOS low 1 x", NOT_INTEGER, BOTH}, {"BITPOS low 1 0 x", NOT_INTEGER, BOTH},
    {"BITPOS low 1 0 -1 FOO", SYNTAX, BOTH}, {"BITPOS low 1 x -1 FOO", NOT_INTEGER, BOTH},
    {"BITPOS low 1 0 x FOO", SYNTAX, BOTH}, {"BITPOS low 1 0 -1 BIT x", SYNTAX, BOTH},
    {"BITPOS low 1 x -1 BIT x", SYNTAX, BOTH}, {"BITPOS low", ARITY("bitpos"), BOTH}, {"SET empty ''", "+OK", BOTH},
    {"BITPOS empty 0", ":-1", BOTH}, {"BITPOS empty 1", ":-1", BOTH}, {"BITPOS empty 0 0", ":-1", BOTH},
    {"BITPOS empty 0 0 -1", ":-1", BOTH}, {"SET int 11", "+OK", BOTH}, {"BITPOS int 1", ":2", BOTH},
    {"BITPOS int 0 1", ":8", BOTH}, {"HSET h f v", ":1", BOTH}, {"BITPOS h 1", WRONGTYPE, BOTH},
    {"BITPOS h 2", "-ERR The bit argument must be 1 or 0.", BOTH}, {"BITPOS h 1 x", WRONGTYPE, BOTH},
};

static const struct example combining[] = {
    {"SET a abcdef", "+OK", BOTH}, {"SET b abc", "+OK", BOTH}, {"SET c \\xff\\x00\\xff", "+OK", BOTH},
    {"BITOP AND r a b", ":6", BOTH}, {"GET r", "\"abc\\x00\\x00\\x00\"", BOTH}, {"BITOP OR r a b", ":6", BOTH},
    {"GET r", "\"abcdef\"", BOTH}, {"BITOP XOR r a b", ":6", BOTH}, {"GET r", "\"\\x00\\x00\\x00def\"", BOTH},
    {"BITOP NOT r c", ":3", BOTH}, {"GET r", "\"\\x00\\xff\\x00\"", BOTH}, {"BITOP AND r a b c", ":6", BOTH},
    {"GET r", "\"a\\x00c\\x00\\x00\\x00\"", BOTH}, {"BITOP OR r a none c", ":6", BOTH},
    {"GET r", "\"\\xffb\\xffdef\"", BOTH}, {"BITOP AND r a none", ":6", BOTH},
    {"GET r", "\"\\x00\\x00\\x00\\x00\\x00\\x00\"", BOTH}, {"BITOP XOR r a", ":6", BOTH},
    {"GET r", "\"abcdef\"", BOTH}, {"BITOP and r b", ":3", BOTH}, {"GET r", "\"abc\"", BOTH},
    {"BITOP XOR r a a", ":6", BOTH}, {"GET r", "\"\\x00\\x00\\x00\\x00\\x00\\x00\"", BOTH},
    {"BITOP NOT r r", ":6", BOTH}, {"GET r", "\"\\xff\\xff\\xff\\xff\\xff\\xff\"", BOTH},
    {"SET int 1234567890123", "+OK", BOTH}, {"SET one 00000000000000000000000000", "+OK", BOTH},
    {"BITOP OR r int one", ":26", BOTH}, {"GET r", "\"12345678901230000000000000\"", BOTH},
    {"BITOP OR int int", ":13", BOTH}, {"GET int", "\"1234567890123\"", BOTH}, {"BITOP NOT a a", ":6", BOTH},
    {"GET a", "\"\\x9e\\x9d\\x9c\\x9b\\x9a\\x99\"", BOTH}, {"BITOP AND r none", ":0", BOTH}, {"EXISTS r", ":0", BOTH},
    {"SET r v", "+OK", BOTH}, {"BITOP OR r none none2", ":0", BOTH}, {"EXISTS r", ":0", BOTH},
    {"SET r v EX 1000", "+OK", BOTH}, {"BITOP OR r b", ":3", BOTH}, {"TTL r", ":-1", BOTH}, {"HSET h f v", ":1", BOTH},
    {"BITOP OR h b", ":3", BOTH}, {"TYPE h", "+string", BOTH}, {"HSET h2 f v", ":1", BOTH},
    {"BITOP OR r b h2", WRONGTYPE, BOTH}, {"BITOP OR r h2 b", WRONGTYPE, BOTH}, {"BITOP NOT r h2", WRONGTYPE, BOTH},
    {"GET r", "\"abc\"", BOTH}, {"BITOP NOT r a b", "-ERR BITOP NOT must be called with a single source key.", BOTH},
    {"BITOP NOT r", ARITY("bitop"), BOTH}, {"BITOP FOO r a", SYNTAX, BOTH}, {"BITOP FOO r h2", SYNTAX, BOTH},
    {"BITOP AND r", ARITY("bitop"), BOTH}, {"BITOP", ARITY("bitop"), BOTH}, {"SET e1 ''", "+OK", BOTH},
    {"BITOP OR h e1", ":0", BOTH}, {"EXISTS h", ":0", BOTH},
};

static const struct example fields[] = {
    {"BITFIELD f SET u8 0 255 GET u8 0 GET u4 0 GET u4 4 GET i8 0", "[:0 :255 :15 :15 :-1]", BOTH},
    {"GET f", "\"\\xff\"", BOTH}, {"BITFIELD f INCRBY u8 0 10", "[:9]", BOTH},
    {"BITFIELD f INCRBY u8 0 -10", "[:255]", BOTH},
    {"BITFIELD f OVERFLOW SAT INCRBY u8 0 100 OVERFLOW SAT INCRBY u8 0 -300", "[:255 :0]", BOTH},
    {"BITFIELD f OVERFLOW FAIL INCRBY u8 0 300 INCRBY u8 0 255 INCRBY u8 0 1 GET u8 0", "[nil :255 nil :255]", RESP2}, {"BITFIELD f OVERFLOW FAIL INCRBY u8 0 300 INCRBY u8 0 255 INCRBY u8 0 1 GET u8 0", "[null :255 null :255]", RESP3},
    {"BITFIELD f OVERFLOW FAIL SET u8 0 256 OVERFLOW WRAP SET u8 0 256 OVERFLOW SAT SET u8 0 256 GET u8 0", "[nil :255 :0 :255]", RESP2}, {"BITFIELD f OVERFLOW FAIL SET u8 0 256 OVERFLOW WRAP SET u8 0 256 OVERFLOW SAT SET u8 0 256 GET u8 0", "[null :255 :0 :255]", RESP3},
    {"BITFIELD f OVERFLOW SAT SET u8 0 -1 GET u8 0 OVERFLOW WRAP SET u8 0 -2 GET u8 0", "[:255 :255 :255 :254]", BOTH},
    {"BITFIELD f SET i8 8 -128 INCRBY i8 8 -1 GET i8 8", "[:0 :127 :127]", BOTH},
    {"BITFIELD f OVERFLOW SAT INCRBY i8 8 1 INCRBY i8 8 -300 INCRBY i8 8 500 GET i8 8", "[:127 :-128 :127 :127]", BOTH},
    {"BITFIELD f OVERFLOW FAIL INCRBY i8 8 1 INCRBY i8 8 -255 INCRBY i8 8 -1", "[nil :-128 nil]", RESP2}, {"BITFIELD f OVERFLOW FAIL INCRBY i8 8 1 INCRBY i8 8 -255 INCRBY i8 8 -1", "[null :-128 null]", RESP3},
    {"BITFIELD f OVERFLOW SAT SET i8 8 128 GET i8 8 SET i8 8 -129 GET i8 8", "[:-128 :127 :127 :-128]", BOTH},
    {"BITFIELD f OVERFLOW WRAP SET i8 8 128 GET i8 8 SET i8 8 -129 GET i8 8", "[:-128 :-128 :-128 :127]", BOTH},
    {"BITFIELD g SET u63 0 9223372036854775807 GET u63 0 GET i64 0 GET u63 1", "[:0 :9223372036854775807 :-2 :9223372036854775806]", BOTH},
    {"BITFIELD g INCRBY u63 0 1", "[:0]", BOTH}, {"BITFIELD g INCRBY u63 0 -1", "[:9223372036854775807]", BOTH},
    {"BITFIELD g OVERFLOW SAT INCRBY u63 0 9223372036854775807 INCRBY u63 0 -9223372036854775808", "[:9223372036854775807 :0]", BOTH},
    {"BITFIELD g OVERFLOW FAIL INCRBY u63 0 -1 SET u63 0 -1", "[nil nil]", RESP2}, {"BITFIELD g OVERFLOW FAIL INCRBY u63 0 -1 SET u63 0 -1", "[null null]", RESP3},
    {"BITFIELD i SET i64 0 9223372036854775807 INCRBY i64 0 1", "[:0 :-9223372036854775808]", BOTH},
    {"BITFIELD i SET i64 0 -9223372036854775808 INCRBY i64 0 -1", "[:-9223372036854775808 :9223372036854775807]", BOTH},
    {"BITFIELD i OVERFLOW SAT SET i64 0 9223372036854775807 INCRBY i64 0 9223372036854775807 INCRBY i64 0 -9223372036854775808 INCRBY i64 0 -9223372036854775808", "[:9223372036854775807 :9223372036854775807 :-1 :-9223372036854775808]", BOTH},
    {"BITFIELD i OVERFLOW FAIL INCRBY i64 0 -1 INCRBY i64 0 9223372036854775807 GET i64 0", "[nil :-1 :-1]", RESP2}, {"BITFIELD i OVERFLOW FAIL INCRBY i64 0 -1 INCRBY i64 0 9223372036854775807 GET i64 0", "[null :-1 :-1]", RESP3},
    {"BITFIELD odd SET i64 3 -2 GET i64 3 GET u63 4 GET u5 62 SET u63 7 1234567890123456789 GET u63 7 GET u9 64", "[:0 :-2 :9223372036854775806 :30 :9223372036854775792 :1234567890123456789 :168]", BOTH},
    {"GET odd", "\"\\x1eD\\x88C\\xd1\\xf7\\xa6\\x04T\"", BOTH},
    {"BITFIELD odd SET i1 0 1 GET i1 0 GET u1 0 SET i1 0 0 SET i1 0 -1 INCRBY i1 0 1 INCRBY u1 1 1 INCRBY u1 1 1", "[:0 :-1 :1 :-1 :0 :0 :1 :0]", BOTH},
    {"BITFIELD hash SET u8 #0 1 SET u8 #1 2 SET u4 #4 3 GET u8 #2 GET i5 #3", "[:0 :0 :0 :48 :3]", BOTH},
    {"GET hash", "\"\\x01\\x020\"", BOTH},
    {"BITFIELD hash GET u63 #68056473384187692", "-ERR bit offset is not an integer or out of range", BOTH},
    {"BITFIELD hash GET u63 #68174084", "[:0]", BOTH},
    {"BITFIELD hash GET u63 #9223372036854775807", "-ERR bit offset is not an integer or out of range", BOTH},
    {"BITFIELD hash GET u8 #-1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"BITFIELD hash GET u8 #", "-ERR bit offset is not an integer or out of range", BOTH},
    {"BITFIELD hash GET u8 #x", "-ERR bit offset is not an integer or out of range", BOTH},
    {"BITFIELD hash GET u8 4294967295", "[:0]", BOTH},
    {"BITFIELD hash GET u8 4294967296", "-ERR bit offset is not an integer or out of range", BOTH},
    {"BITFIELD hash GET u8 -1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"BITFIELD hash GET u8 x", "-ERR bit offset is not an integer or out of range", BOTH},
    {"BITFIELD hash SET u8 x 1", "-ERR bit offset is not an integer or out of range", BOTH},
    {"BITFIELD hash SET u8 0 x", NOT_INTEGER, BOTH}, {"BITFIELD hash SET u8 0 9223372036854775808", NOT_INTEGER, BOTH},
    {"BITFIELD hash GET u64 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD hash GET u0 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD hash GET i65 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD hash GET i0 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD hash GET u 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD hash GET 8 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD hash GET '' 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD hash GET U8 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD hash GET u08 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD hash GET i-8 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD hash GET u8", SYNTAX, BOTH}, {"BITFIELD hash GET", SYNTAX, BOTH},
    {"BITFIELD hash SET u8 0", SYNTAX, BOTH}, {"BITFIELD hash INCRBY u8 0", SYNTAX, BOTH},
    {"BITFIELD hash FOO u8 0", SYNTAX, BOTH}, {"BITFIELD hash OVERFLOW", SYNTAX, BOTH},
    {"BITFIELD hash OVERFLOW FOO", "-ERR Invalid OVERFLOW type specified", BOTH},
    {"BITFIELD hash OVERFLOW FOO GET u8 0", "-ERR Invalid OVERFLOW type specified", BOTH},
    {"BITFIELD hash OVERFLOW WRAP", "[]", BOTH}, {"BITFIELD hash GET u8 0 SET u8 0 99 FOO", SYNTAX, BOTH},
    {"BITFIELD hash GET u8 0", "[:1]", BOTH},
    {"BITFIELD i1 OVERFLOW SAT INCRBY i1 0 5 INCRBY i1 0 -5 INCRBY i1 0 -5 SET i1 0 1 SET i1 0 -9", "[:0 :-1 :-1 :-1 :0]", BOTH},
    {"BITFIELD far OVERFLOW SAT SET i11 0 -9223372036854775808 GET i11 0 SET i11 0 -9223372036854774785 GET i11 0 SET i11 0 -9223372036854774784 GET i11 0", "[:0 :1023 :1023 :1023 :1023 :-1024]", BOTH},
    {"BITFIELD i1 OVERFLOW FAIL INCRBY i1 0 1 INCRBY i1 0 1 INCRBY i1 0 -1 INCRBY i1 0 -1", "[:0 nil :-1 nil]", RESP2}, {"BITFIELD i1 OVERFLOW FAIL INCRBY i1 0 1 INCRBY i1 0 1 INCRBY i1 0 -1 INCRBY i1 0 -1", "[:0 null :-1 null]", RESP3},
    {"BITFIELD hash", "[]", BOTH}, {"BITFIELD none", "[]", BOTH},
    {"BITFIELD none GET u8 0 GET i64 100", "[:0 :0]", BOTH}, {"EXISTS none", ":0", BOTH},
    {"BITFIELD fresh OVERFLOW FAIL SET u8 0 256", "[nil]", RESP2}, {"BITFIELD fresh OVERFLOW FAIL SET u8 0 256", "[null]", RESP3},
    {"EXISTS fresh", ":1", BOTH}, {"GET fresh", "\"\\x00\"", BOTH}, {"BITFIELD long SET u8 800 7", "[:0]", BOTH},
    {"STRLEN long", ":101", BOTH},
    {"BITFIELD long GET u8 800 GET u8 808 GET u16 800 GET u16 796", "[:7 :0 :1792 :112]", BOTH},
    {"SET int 12", "+OK", BOTH}, {"BITFIELD int GET u8 0 GET u8 8", "[:49 :50]", BOTH},
    {"BITFIELD int INCRBY u8 8 5", "[:55]", BOTH}, {"GET int", "\"17\"", BOTH}, {"SET int 12", "+OK", BOTH},
    {"BITFIELD int GET u8 0", "[:49]", BOTH}, {"HSET h f v", ":1", BOTH}, {"BITFIELD h GET u8 0", WRONGTYPE, BOTH},
    {"BITFIELD h SET u8 0 1", WRONGTYPE, BOTH},
    {"BITFIELD h GET u99 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD h", WRONGTYPE, BOTH}, {"BITFIELD", ARITY("bitfield"), BOTH},
    {"BITFIELD_RO f GET u8 0 GET u8 8", "[:254 :127]", BOTH}, {"BITFIELD_RO none GET u8 0", "[:0]", BOTH},
    {"BITFIELD_RO f SET u8 0 1", "-ERR BITFIELD_RO only supports the GET subcommand", BOTH},
    {"BITFIELD_RO f GET u8 0 INCRBY u8 0 1", "-ERR BITFIELD_RO only supports the GET subcommand", BOTH},
    {"BITFIELD_RO f OVERFLOW SAT GET u8 0", "[:254]", BOTH},
    {"BITFIELD_RO f OVERFLOW FOO GET u8 0", "-ERR Invalid OVERFLOW type specified", BOTH},
    {"BITFIELD_RO f GET u64 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.", BOTH},
    {"BITFIELD_RO h GET u8 0", WRONGTYPE, BOTH}, {"BITFIELD_RO f", "[]", BOTH}, {"BITFIELD_RO none", "[]", BOTH},
    {"COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0", "[[\"k\" [+RO +access]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0", "[[\"k\" ~[+RO +access]]]", RESP3},
    {"COMMAND GETKEYSANDFLAGS BITFIELD k SET u8 0 1", "[[\"k\" [+RW +access +update]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS BITFIELD k SET u8 0 1", "[[\"k\" ~[+RW +access +update]]]", RESP3},
    {"COMMAND GETKEYSANDFLAGS BITFIELD k OVERFLOW SAT GET u8 0 GET u8 1", "[[\"k\" [+RO +access]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS BITFIELD k OVERFLOW SAT GET u8 0 GET u8 1", "[[\"k\" ~[+RO +access]]]", RESP3},
    {"COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0 INCRBY u8 0 1", "[[\"k\" [+RW +access +update]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0 INCRBY u8 0 1", "[[\"k\" ~[+RW +access +update]]]", RESP3},
    {"COMMAND GETKEYSANDFLAGS BITFIELD k GET u8", "[[\"k\" [+RW +access +update]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS BITFIELD k GET u8", "[[\"k\" ~[+RW +access +update]]]", RESP3},
    {"COMMAND GETKEYSANDFLAGS BITFIELD k", "[[\"k\" [+RO +access]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS BITFIELD k", "[[\"k\" ~[+RO +access]]]", RESP3},
    {"COMMAND GETKEYSANDFLAGS BITOP AND d a b c", "[[\"d\" [+OW +update]] [\"a\" [+RO +access]] [\"b\" [+RO +access]] [\"c\" [+RO +access]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS BITOP AND d a b c", "[[\"d\" ~[+OW +update]] [\"a\" ~[+RO +access]] [\"b\" ~[+RO +access]] [\"c\" ~[+RO +access]]]", RESP3},
    {"COMMAND GETKEYSANDFLAGS SETBIT k 0 1", "[[\"k\" [+RW +access +update]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS SETBIT k 0 1", "[[\"k\" ~[+RW +access +update]]]", RESP3},
    {"COMMAND GETKEYSANDFLAGS SET k v GET", "[[\"k\" [+RW +access +update]]]", RESP2}, {"COMMAND GETKEYSANDFLAGS SET k v GET", "[[\"k\" ~[+RW +access +update]]]", RESP3},
};

/* clang-format on */

static const struct example_group groups[] = {
    EXAMPLES(bits), EXAMPLES(counting), EXAMPLES(searching), EXAMPLES(combining), EXAMPLES(fields),
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

/* ---- large strings ---- */

static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Random bytes, but long runs of ones and of zeros in the middle. */
static void set_large(struct client *c, const char *key, uint64_t seed, size_t len) {
    char *value = malloc(len);
    for (size_t i = 0; i < len; i++) {
        bool ones = i > len / 4 && i<len / 2, zeros = i> len / 2 && i < len * 3 / 4;
        value[i] = (char)(ones ? 0xff : zeros ? 0 : next_random(&seed));
    }
    struct reply *r =
        client_cmd_argv(c, 3, (const char *[]){"SET", key, value}, (size_t[]){3, strlen(key), len});
    assert_true(r && r->type == '+');
    reply_free(r);
    free(value);
}

/* A random command on the keys a and b. */
static void random_line(uint64_t *seed, char *line, size_t cap) {
    static const char *const ops[] = {"AND", "OR", "XOR"};
    unsigned kind = (unsigned)(next_random(seed) % 7);
    long from = (long)(next_random(seed) % (LARGE * 8)),
         to = (long)(next_random(seed) % (LARGE * 8));
    const char *unit = next_random(seed) % 2 ? "BIT" : "BYTE";
    char key = "ab"[next_random(seed) % 2];
    if (unit[1] == 'Y') {
        from /= 8;
        to /= 8;
    }
    switch (kind) {
    case 0:
    case 1:
        snprintf(line, cap, "BITCOUNT %c %ld %ld %s", key, from, to, unit);
        break;
    case 2:
        snprintf(line, cap, "BITPOS %c %d %ld %ld %s", key, (int)(next_random(seed) % 2), from, to,
                 unit);
        break;
    case 3:
        snprintf(line, cap, "BITPOS %c %d %ld", key, (int)(next_random(seed) % 2), from);
        break;
    case 4:
        snprintf(line, cap, "SETBIT %c %ld %d", key, from, (int)(next_random(seed) % 2));
        break;
    case 5:
        snprintf(line, cap, "BITFIELD %c OVERFLOW SAT INCRBY i%d %ld %ld GET u%d %ld", key,
                 1 + (int)(next_random(seed) % 64), from, to - LARGE * 4,
                 1 + (int)(next_random(seed) % 63), to);
        break;
    default:
        snprintf(line, cap, "BITOP %s %c a b", ops[next_random(seed) % 3], key);
        break;
    }
}

static char *answer(struct client *c, const char *text) {
    char *line = strdup(text);
    const char *argv[16];
    size_t lens[16];
    int argc = example_split(line, argv, lens, 16);
    struct reply *r = client_cmd_argv(c, argc, argv, lens);
    char *got = reply_text(r);
    reply_free(r);
    free(line);
    return got;
}

static int compare_line(struct client *const clients[2], const char *line) {
    char *a = answer(clients[0], line), *b = answer(clients[1], line);
    int wrong = strcmp(a, b) != 0;
    if (wrong) {
        fprintf(stderr, "%s\n  oracle %.300s\n  ours   %.300s\n", line, a, b);
    }
    free(a);
    free(b);
    return wrong;
}

static void large_strings_answer_as_the_oracles(void **state) {
    (void)state;
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server to compare with");
    }
    struct server *servers[2] = {server_start(SERVER_ORACLE, NULL),
                                 server_start(SERVER_GOBLIN, NULL)};
    struct client *clients[2];
    uint64_t seed = 7;
    int wrong = 0;
    for (int i = 0; i < 2; i++) {
        clients[i] = server_connect(servers[i]);
        set_large(clients[i], "a", 1, LARGE);
        set_large(clients[i], "b", 2, LARGE - 1237);
    }
    for (int i = 0; i < ROUNDS; i++) {
        char line[128];
        random_line(&seed, line, sizeof(line));
        wrong += compare_line(clients, line);
    }
    wrong += compare_line(clients, "GET a");
    wrong += compare_line(clients, "GET b");
    for (int i = 0; i < 2; i++) {
        client_close(clients[i]);
        server_stop(servers[i]);
    }
    assert_int_equal(wrong, 0);
}

/* The last bit that proto-max-bulk-len allows, when that is small and when it is not. */
static void strings_grow_to_the_limit_and_no_further(void **state) {
    (void)state;
    struct server *s =
        server_start(SERVER_GOBLIN, (const char *[]){"--proto-max-bulk-len", "1mb", NULL});
    struct client *c = server_connect(s);
    client_expect(c, ":0", "SETBIT", "k", "8388607", "1", NULL);
    client_expect(c, ":1048576", "STRLEN", "k", NULL);
    client_expect(c, ":1", "BITCOUNT", "k", NULL);
    client_expect(c, ":8388607", "BITPOS", "k", "1", NULL);
    client_expect(c, "-ERR bit offset is not an integer or out of range", "SETBIT", "k", "8388608",
                  "1", NULL);
    client_expect(c, "-ERR bit offset is not an integer or out of range", "BITFIELD", "k", "GET",
                  "u8", "8388608", NULL);
    client_expect(c, "+OK", "CONFIG", "SET", "proto-max-bulk-len", "512mb", NULL);
    client_expect(c, ":0", "SETBIT", "k", "4294967295", "1", NULL);
    client_expect(c, ":536870912", "STRLEN", "k", NULL);
    client_expect(c, "-ERR bit offset is not an integer or out of range", "SETBIT", "k",
                  "4294967296", "1", NULL);
    /* Edits touch the bytes they change: a thousand of them would copy half a terabyte otherwise. */
    for (int i = 0; i < 1000; i++) {
        char offset[32];
        snprintf(offset, sizeof(offset), "%u", (unsigned)i * 4000037u % 4294967295u);
        client_append(c, "SETBIT", "k", offset, "1", NULL);
        client_append(c, "BITFIELD", "k", "SET", "u8", offset, "255", NULL);
    }
    assert_true(client_flush(c));
    for (int i = 0; i < 2000; i++) {
        struct reply *r = client_read(c);
        assert_true(r && !reply_is_error(r));
        reply_free(r);
    }
    client_close(c);
    server_stop(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_hold_in_resp2),
        cmocka_unit_test(examples_hold_in_resp3),
        cmocka_unit_test(the_oracle_agrees_with_the_examples),
        cmocka_unit_test(large_strings_answer_as_the_oracles),
        cmocka_unit_test(strings_grow_to_the_limit_and_no_further),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
