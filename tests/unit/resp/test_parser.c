/* SPDX-License-Identifier: BSD-3-Clause */
#include "resp/parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/buf.h"

/* ---- a connection's view of the parser ---- */

/* Feed a stream in pieces of `piece` bytes through freshly moved memory and write down what comes
 * out: "[arg][arg];" a command, "!text" for an error, "~" when the stream ends inside a command. */
static void transcribe(struct bytes stream, size_t piece, const struct resp_limits *limits,
                       struct buf *log) {
    struct resp_parser p = {0};
    struct resp_args args = {0};
    struct resp_result r;
    char *in = NULL;
    size_t len = 0, fed = 0;
    bool alive = true;
    while (alive && fed < stream.len) {
        size_t n = stream.len - fed < piece ? stream.len - fed : piece;
        char *moved = malloc(len + n);
        assert_non_null(moved);
        if (len != 0) {
            memcpy(moved, in, len);
        }
        memcpy(moved + len, stream.ptr + fed, n);
        free(in);
        in = moved;
        len += n;
        fed += n;
        size_t at = 0;
        for (bool more = true; more;) {
            enum resp_event ev = resp_parse(&p, in + at, len - at, limits, &args, &r);
            at += ev == RESP_ERROR ? 0 : r.consumed;
            switch (ev) {
            case RESP_COMMAND:
                for (size_t i = 0; i < r.argc; i++) {
                    buf_append_char(log, '[');
                    buf_append(log, args.v[r.first + i].ptr, args.v[r.first + i].len);
                    buf_append_char(log, ']');
                }
                buf_append_char(log, ';');
                assert_true(resp_parser_idle(&p));
                assert_int_equal(resp_parser_memory(&p), 0);
                break;
            case RESP_BIG:
                len = at + r.keep;
                more = false;
                break;
            case RESP_ERROR:
                buf_append_char(log, '!');
                buf_append_cstr(log, r.error);
                alive = more = false;
                break;
            default:
                assert_int_equal(ev, RESP_NEED_MORE);
                more = false;
            }
        }
        resp_args_clear(&args);
        memmove(in, in + at, len - at);
        len -= at;
    }
    if (alive && !resp_parser_idle(&p)) {
        buf_append_char(log, '~');
    }
    resp_parser_deinit(&p);
    resp_args_deinit(&args);
    free(in);
}

static void assert_transcript(struct bytes stream, size_t piece, const struct resp_limits *limits,
                              struct bytes expected) {
    struct buf log = {0};
    transcribe(stream, piece, limits, &log);
    if (!bytes_equal(buf_bytes(&log), expected)) {
        print_message("stream %.80s\n in pieces of %zu\n gives %.*s\n not   %.*s\n", stream.ptr,
                      piece, (int)log.len, log.ptr, (int)expected.len, expected.ptr);
        fail();
    }
    buf_deinit(&log);
}

/* ---- samples; each is checked against redis-server's answer ---- */

struct sample {
    struct bytes in, expected;
};
#define SAMPLE(in_, expected_)                                                                     \
    {                                                                                              \
        {in_, sizeof(in_) - 1}, {                                                                  \
            expected_, sizeof(expected_) - 1                                                       \
        }                                                                                          \
    }

static const struct sample samples[] = {
    /* multibulk */
    SAMPLE("*1\r\n$4\r\nPING\r\n", "[PING];"),
    SAMPLE("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n", "[GET][k];[PING];"),
    SAMPLE("*2\r\n$4\r\nECHO\r\n$5\r\na\0\r\nb\r\n", "[ECHO][a\0\r\nb];"),
    SAMPLE("*1\r\n$0\r\n\r\n", "[];"),
    SAMPLE("*12\r\n$1\r\n0\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n$1\r\n6\r\n"
           "$1\r\n7\r\n$1\r\n8\r\n$1\r\n9\r\n$1\r\na\r\n$12\r\nbbbbbbbbbbbb\r\n",
           "[0][1][2][3][4][5][6][7][8][9][a][bbbbbbbbbbbb];"),
    /* the two bytes behind a bulk and the one behind a CR are skipped unseen */
    SAMPLE("*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", "[PING];[PING];"),
    SAMPLE("*1\rx$4\ryPING\r\n", "[PING];"),
    /* empty commands */
    SAMPLE("*0\r\n*-1\r\n*-5\r\nPING\r\n", "[PING];"),
    SAMPLE("\r\n\n   \r\n\t\nPING\n", "[PING];"),
    SAMPLE("*0\r\n", ""),
    /* unfinished */
    SAMPLE("*1048576\r\n", "~"),
    SAMPLE("*2\r\n$3\r\nGET\r\n$3\r\nke", "~"),
    SAMPLE("*1\r\nx", "~"),
    SAMPLE("*1\n$4\nPING\n", "~"),
    SAMPLE("*1\r\n$536870912\r\nabc", "~"),
    SAMPLE("PING", "~"),
    /* bad counts and lengths */
    SAMPLE("*abc\r\n", "!Protocol error: invalid multibulk length"),
    SAMPLE("*\r\nPING\r\n", "!Protocol error: invalid multibulk length"),
    SAMPLE("*01\r\n", "!Protocol error: invalid multibulk length"),
    SAMPLE("*+1\r\n", "!Protocol error: invalid multibulk length"),
    SAMPLE("*-0\r\n", "!Protocol error: invalid multibulk length"),
    SAMPLE("* 1\r\n", "!Protocol error: invalid multibulk length"),
    SAMPLE("*1048577\r\n", "!Protocol error: invalid multibulk length"),
    SAMPLE("*2147483648\r\n", "!Protocol error: invalid multibulk length"),
    SAMPLE("*99999999999999999999\r\n", "!Protocol error: invalid multibulk length"),
    SAMPLE("PING\r\n*1\r\n$-1\r\n", "[PING];!Protocol error: invalid bulk length"),
    SAMPLE("*1\r\n$abc\r\n", "!Protocol error: invalid bulk length"),
    SAMPLE("*1\r\n$ 4\r\n", "!Protocol error: invalid bulk length"),
    SAMPLE("*1\r\n$\r\n", "!Protocol error: invalid bulk length"),
    SAMPLE("*1\r\n$04\r\nPING\r\n", "!Protocol error: invalid bulk length"),
    SAMPLE("*1\r\n$536870913\r\n", "!Protocol error: invalid bulk length"),
    SAMPLE("*1\r\n$9223372036854775808\r\n", "!Protocol error: invalid bulk length"),
    SAMPLE("*3\r\n$3\r\nSET\r\n$-1\r\n", "!Protocol error: invalid bulk length"),
    SAMPLE("*1\r\nx\r\n", "!Protocol error: expected '$', got 'x'"),
    SAMPLE("*1\r\n*1\r\n", "!Protocol error: expected '$', got '*'"),
    SAMPLE("*1\r\n\r\n", "!Protocol error: expected '$', got ' '"),
    SAMPLE("*1\r\n\xff\r\n", "!Protocol error: expected '$', got '\xff'"),
    SAMPLE("*1\r\n\0\r\n", "!Protocol error: expected '$', got ' '"),
    /* inline and its quotes */
    SAMPLE("SET k v\r\nGET\tk\n", "[SET][k][v];[GET][k];"),
    SAMPLE("ECHO \"a\\x41\\n\\r\\t\\a\\b\\q\\\"\"\r\n", "[ECHO][aA\n\r\t\a\bq\"];"),
    SAMPLE("ECHO 'a\\'b\\x41'\r\n", "[ECHO][a'b\\x41];"),
    SAMPLE("ECHO a\"b\" c\r\n", "[ECHO][ab][c];"),
    SAMPLE("ECHO \"\"\r\n", "[ECHO][];"),
    SAMPLE("\"\" x\r\n", "[][x];"),
    SAMPLE("ECHO \"\\xzz\" \"\\x4\"\r\n", "[ECHO][xzz][x4];"),
    SAMPLE("ECHO \"\\xfF\\x00\"\r\n", "[ECHO][\xff\0];"),
    SAMPLE("ECHO a\rb\r\n", "[ECHO][a][b];"),
    SAMPLE("\tPING\v\r\n", "[PING\v];"),
    SAMPLE("ECHO \fab\vc\r\n", "[ECHO][ab\vc];"),
    SAMPLE("$4\r\n", "[$4];"),
    SAMPLE("GET\r\r\n", "[GET];"),
    SAMPLE("PING \"foo\r\n", "!Protocol error: unbalanced quotes in request"),
    SAMPLE("PING 'foo\r\n", "!Protocol error: unbalanced quotes in request"),
    SAMPLE("ECHO \"a\"b\r\n", "!Protocol error: unbalanced quotes in request"),
    SAMPLE("ECHO 'a'b\r\n", "!Protocol error: unbalanced quotes in request"),
    SAMPLE("ECHO a\"b\"c\r\n", "!Protocol error: unbalanced quotes in request"),
    SAMPLE("ECHO \"x\\\"\r\n", "!Protocol error: unbalanced quotes in request"),
    SAMPLE("ECHO \"a\" \"b\r\n", "!Protocol error: unbalanced quotes in request"),
};

static void samples_in_one_piece(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        assert_transcript(samples[i].in, samples[i].in.len, &RESP_LIMITS_DEFAULT,
                          samples[i].expected);
    }
}

static void samples_in_every_piece_size(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        for (size_t piece = 1; piece < samples[i].in.len; piece++) {
            assert_transcript(samples[i].in, piece, &RESP_LIMITS_DEFAULT, samples[i].expected);
        }
    }
}

static void limits_before_authentication(void **state) {
    static const struct sample rows[] = {
        SAMPLE("*11\r\n", "!Protocol error: unauthenticated multibulk length"),
        SAMPLE("*10\r\n", "~"),
        SAMPLE("*1048577\r\n", "!Protocol error: invalid multibulk length"),
        SAMPLE("*2\r\n$16385\r\n", "!Protocol error: unauthenticated bulk length"),
        SAMPLE("*2\r\n$16384\r\n", "~"),
        SAMPLE("*2\r\n$600000000\r\n", "!Protocol error: invalid bulk length"),
        SAMPLE("AUTH a b c d e f g h i j k l\r\n", "[AUTH][a][b][c][d][e][f][g][h][i][j][k][l];"),
    };
    struct resp_limits limits = RESP_LIMITS_DEFAULT;
    limits.unauthenticated = true;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t piece = 1; piece <= rows[i].in.len; piece++) {
            assert_transcript(rows[i].in, piece, &limits, rows[i].expected);
        }
    }
}

static void the_bulk_limit_is_settable(void **state) {
    struct resp_limits limits = {.max_bulk_len = 5, .max_multibulk = 2};
    assert_transcript(BYTES_LIT("*1\r\n$5\r\nhello\r\n"), 99, &limits, BYTES_LIT("[hello];"));
    assert_transcript(BYTES_LIT("*1\r\n$6\r\n"), 99, &limits,
                      BYTES_LIT("!Protocol error: invalid bulk length"));
    assert_transcript(BYTES_LIT("*3\r\n"), 99, &limits,
                      BYTES_LIT("!Protocol error: invalid multibulk length"));
}

/* prefix, then n times fill, then suffix: long lines. */
static void assert_long_line(const char *prefix, char fill, size_t n, const char *suffix,
                             const char *expected) {
    struct buf in = {0};
    buf_append_cstr(&in, prefix);
    for (size_t i = 0; i < n; i++) {
        buf_append_char(&in, fill);
    }
    buf_append_cstr(&in, suffix);
    assert_transcript(buf_bytes(&in), in.len, &RESP_LIMITS_DEFAULT, bytes_from_cstr(expected));
    assert_transcript(buf_bytes(&in), 997, &RESP_LIMITS_DEFAULT, bytes_from_cstr(expected));
    buf_deinit(&in);
}

static void lines_are_bounded(void **state) {
    assert_long_line("", 'a', 65536, "", "~");
    assert_long_line("", 'a', 65537, "", "!Protocol error: too big inline request");
    assert_long_line("", 'a', 70000, "\n", "!Protocol error: too big inline request");
    assert_long_line("*", '1', 65535, "", "~");
    assert_long_line("*", '1', 65536, "", "!Protocol error: too big mbulk count string");
    assert_long_line("*", '1', 65530, "\r\n", "!Protocol error: invalid multibulk length");
    assert_long_line("*1\r\n$", '1', 65535, "", "~");
    assert_long_line("*1\r\n$", '1', 65536, "", "!Protocol error: too big bulk count string");
}

/* ---- big bulks ---- */

static void fill_pattern(char *p, size_t len, unsigned salt) {
    for (size_t i = 0; i < len; i++) {
        p[i] = (char)(i * 31 + salt + (i >> 8));
    }
}

static void assert_pattern(struct bytes b, size_t len, unsigned salt) {
    char *expected = malloc(len);
    assert_non_null(expected);
    fill_pattern(expected, len, salt);
    assert_int_equal(b.len, len);
    assert_memory_equal(b.ptr, expected, len);
    free(expected);
}

/* MSET k <big> k <big>: with direct reads into the parser's room, `piece` bytes each. */
static void drive_big(size_t big_len, size_t piece) {
    struct buf stream = {0};
    buf_append_cstr(&stream, "*5\r\n$4\r\nMSET\r\n");
    for (unsigned i = 0; i < 2; i++) {
        buf_printf(&stream, "$1\r\n%u\r\n$%zu\r\n", i, big_len);
        char *tail = buf_tail(&stream, big_len);
        assert_non_null(tail);
        fill_pattern(tail, big_len, i);
        stream.len += big_len;
        buf_append_cstr(&stream, "\r\n");
    }
    buf_append_cstr(&stream, "PING\r\n");

    struct resp_parser p = {0};
    struct resp_args args = {0};
    struct resp_limits limits = RESP_LIMITS_DEFAULT;
    struct resp_result r;
    struct buf in = {0};
    size_t fed = 0, commands = 0;
    while (fed < stream.len) {
        size_t n = stream.len - fed < piece ? stream.len - fed : piece;
        size_t room;
        char *into = resp_big_room(&p, &room);
        if (into != NULL) {
            n = n < room ? n : room;
            memcpy(into, stream.ptr + fed, n);
            resp_big_commit(&p, n);
        } else {
            buf_append(&in, stream.ptr + fed, n);
        }
        fed += n;
        if (resp_big_missing(&p) != 0) {
            continue;
        }
        enum resp_event ev;
        while ((ev = resp_parse(&p, in.ptr, in.len, &limits, &args, &r)) == RESP_COMMAND) {
            if (++commands == 1) {
                assert_int_equal(r.argc, 5);
                assert_pattern(args.v[r.first + 2], big_len, 0);
                assert_pattern(args.v[r.first + 4], big_len, 1);
                char *stolen = resp_args_steal(&args, args.v[r.first + 4]);
                assert_true(stolen != NULL || piece > big_len); /* came whole: still a view */
                assert_true(stolen == NULL || stolen == args.v[r.first + 4].ptr);
                assert_null(resp_args_steal(&args, args.v[r.first + 4]));
                assert_null(resp_args_steal(&args, args.v[r.first + 1]));
                resp_args_clear(&args);
                if (stolen != NULL) {
                    assert_pattern(BYTES(stolen, big_len), big_len, 1);
                }
                free(stolen);
            }
            buf_consume(&in, r.consumed);
            resp_args_clear(&args);
        }
        assert_true(ev == RESP_NEED_MORE || ev == RESP_BIG);
        buf_consume(&in, r.consumed);
        in.len = ev == RESP_BIG ? r.keep : in.len;
    }
    assert_int_equal(commands, 2);
    assert_int_equal(in.len, 0);
    resp_parser_deinit(&p);
    resp_args_deinit(&args);
    buf_deinit(&in);
    buf_deinit(&stream);
}

static void big_bulks_are_read_in_place(void **state) {
    static const size_t sizes[] = {RESP_BIG_BULK + 1, RESP_BIG_START - 2, RESP_BIG_START - 1,
                                   RESP_BIG_START, 300000};
    static const size_t pieces[] = {1, 7, 4096, 16384, 32768 + 20, 65536, 100000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        for (size_t k = 0; k < ARRAY_LEN(pieces); k++) {
            drive_big(sizes[i], pieces[k]);
        }
    }
}

static void a_bulk_of_the_threshold_stays_in_the_input(void **state) {
    struct buf in = {0};
    buf_printf(&in, "*1\r\n$%zu\r\n", RESP_BIG_BULK);
    struct resp_parser p = {0};
    struct resp_args args = {0};
    struct resp_result r;
    assert_int_equal(resp_parse(&p, in.ptr, in.len, &RESP_LIMITS_DEFAULT, &args, &r),
                     RESP_NEED_MORE);
    assert_int_equal(resp_big_missing(&p), 0);
    assert_int_equal(resp_parser_memory(&p), 0);
    resp_parser_deinit(&p);
    resp_args_deinit(&args);
    buf_deinit(&in);
}

static void claims_cost_nothing(void **state) {
    static const char *claims[] = {"*1048576\r\n", "*1048576\r\n$536870912\r\n",
                                   "*2\r\n$3\r\nSET\r\n$536870912\r\nabc"};
    for (size_t i = 0; i < ARRAY_LEN(claims); i++) {
        struct resp_parser p = {0};
        struct resp_args args = {0};
        struct resp_result r;
        char in[64];
        size_t len = strlen(claims[i]);
        memcpy(in, claims[i], len);
        enum resp_event ev = resp_parse(&p, in, len, &RESP_LIMITS_DEFAULT, &args, &r);
        assert_true(ev == RESP_NEED_MORE || ev == RESP_BIG);
        assert_true(resp_parser_memory(&p) <= RESP_BIG_START + 512);
        resp_parser_deinit(&p);
        resp_args_deinit(&args);
    }
}

static void a_million_arguments_byte_by_byte(void **state) {
    const size_t n = 1048576;
    struct buf in = {0};
    buf_printf(&in, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++) {
        buf_append(&in, "$1\r\nx\r\n", 7);
    }
    struct resp_parser p = {0};
    struct resp_args args = {0};
    struct resp_result r;
    for (size_t len = 1; len < in.len; len++) {
        assert_int_equal(resp_parse(&p, in.ptr, len, &RESP_LIMITS_DEFAULT, &args, &r),
                         RESP_NEED_MORE);
        assert_true(resp_parser_memory(&p) <= 512 + len * 5);
    }
    assert_int_equal(resp_parse(&p, in.ptr, in.len, &RESP_LIMITS_DEFAULT, &args, &r), RESP_COMMAND);
    assert_int_equal(r.argc, n);
    assert_int_equal(r.consumed, in.len);
    resp_args_clear(&args);
    assert_int_equal(args.cap, 0); /* a huge vector is given back */
    resp_args_deinit(&args);
    buf_deinit(&in);
}

static void commands_of_several_connections_share_a_batch(void **state) {
    struct resp_parser a = {0}, b = {0};
    struct resp_args args = {0};
    struct resp_result ra, rb;
    char in_a[] = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPI", in_b[] = "GET b\r\n";
    assert_int_equal(resp_parse(&a, in_a, sizeof(in_a) - 1, &RESP_LIMITS_DEFAULT, &args, &ra),
                     RESP_COMMAND);
    size_t first = ra.first;
    assert_int_equal(resp_parse(&a, in_a + ra.consumed, sizeof(in_a) - 1 - ra.consumed,
                                &RESP_LIMITS_DEFAULT, &args, &ra),
                     RESP_NEED_MORE);
    assert_int_equal(resp_parse(&b, in_b, sizeof(in_b) - 1, &RESP_LIMITS_DEFAULT, &args, &rb),
                     RESP_COMMAND);
    assert_int_equal(rb.first, 2);
    assert_true(bytes_equal(args.v[first + 1], BYTES_LIT("a")));
    assert_true(bytes_equal(args.v[rb.first + 1], BYTES_LIT("b")));
    resp_parser_deinit(&a);
    resp_parser_deinit(&b);
    resp_args_deinit(&args);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_in_one_piece),
        cmocka_unit_test(samples_in_every_piece_size),
        cmocka_unit_test(limits_before_authentication),
        cmocka_unit_test(the_bulk_limit_is_settable),
        cmocka_unit_test(lines_are_bounded),
        cmocka_unit_test(big_bulks_are_read_in_place),
        cmocka_unit_test(a_bulk_of_the_threshold_stays_in_the_input),
        cmocka_unit_test(claims_cost_nothing),
        cmocka_unit_test(a_million_arguments_byte_by_byte),
        cmocka_unit_test(commands_of_several_connections_share_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
