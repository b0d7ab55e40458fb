/* SPDX-License-Identifier: BSD-3-Clause */
#include "resp/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#define ASSERT_OUT(out, expected)                                                                  \
    do {                                                                                           \
        assert_int_equal((out).len, sizeof(expected) - 1);                                         \
        assert_memory_equal((out).ptr, expected, sizeof(expected) - 1);                            \
    } while (0)

/* Run one call in both protocols and compare the bytes. */
#define EXPECT(call, resp2, resp3)                                                                 \
    do {                                                                                           \
        struct buf out = {0};                                                                      \
        struct reply two = {&out, 2}, three = {&out, 3};                                           \
        struct reply *r = &two;                                                                    \
        call;                                                                                      \
        ASSERT_OUT(out, resp2);                                                                    \
        buf_clear(&out);                                                                           \
        r = &three;                                                                                \
        call;                                                                                      \
        ASSERT_OUT(out, resp3);                                                                    \
        buf_deinit(&out);                                                                          \
    } while (0)

static void scalars_have_their_form_in_both_protocols(void **state) {
    EXPECT(reply_ok(r), "+OK\r\n", "+OK\r\n");
    EXPECT(reply_simple(r, "PONG"), "+PONG\r\n", "+PONG\r\n");
    EXPECT(reply_null(r), "$-1\r\n", "_\r\n");
    EXPECT(reply_null_array(r), "*-1\r\n", "_\r\n");
    EXPECT(reply_bool(r, true), ":1\r\n", "#t\r\n");
    EXPECT(reply_bool(r, false), ":0\r\n", "#f\r\n");
    EXPECT(reply_verbatim(r, "txt", BYTES_LIT("hi\r\n")), "$4\r\nhi\r\n\r\n",
           "=8\r\ntxt:hi\r\n\r\n");
    EXPECT(reply_verbatim(r, "mkd", BYTES(NULL, 0)), "$0\r\n\r\n", "=4\r\nmkd:\r\n");
    EXPECT(reply_big_number(r, BYTES_LIT("-1234567999999999999999999999999999999")),
           "$38\r\n-1234567999999999999999999999999999999\r\n",
           "(-1234567999999999999999999999999999999\r\n");
}

static void integers_cover_the_whole_range(void **state) {
    EXPECT(reply_integer(r, 0), ":0\r\n", ":0\r\n");
    EXPECT(reply_integer(r, 9), ":9\r\n", ":9\r\n");
    EXPECT(reply_integer(r, 10), ":10\r\n", ":10\r\n");
    EXPECT(reply_integer(r, 999), ":999\r\n", ":999\r\n");
    EXPECT(reply_integer(r, 1000), ":1000\r\n", ":1000\r\n");
    EXPECT(reply_integer(r, -1), ":-1\r\n", ":-1\r\n");
    EXPECT(reply_integer(r, INT64_MAX), ":9223372036854775807\r\n", ":9223372036854775807\r\n");
    EXPECT(reply_integer(r, INT64_MIN), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n");
    for (int v = 0; v < 2100; v++) {
        struct buf out = {0}, expected = {0};
        struct reply r = {&out, 2};
        reply_integer(&r, v);
        buf_printf(&expected, ":%d\r\n", v);
        assert_true(bytes_equal(buf_bytes(&out), buf_bytes(&expected)));
        buf_deinit(&out);
        buf_deinit(&expected);
    }
}

static void bulks_hold_any_bytes(void **state) {
    EXPECT(reply_bulk(r, BYTES_LIT("a\0\r\nb")), "$5\r\na\0\r\nb\r\n", "$5\r\na\0\r\nb\r\n");
    EXPECT(reply_bulk(r, BYTES(NULL, 0)), "$0\r\n\r\n", "$0\r\n\r\n");
    EXPECT(reply_bulk_cstr(r, "txt"), "$3\r\ntxt\r\n", "$3\r\ntxt\r\n");
    EXPECT(reply_bulk_i64(r, -42), "$3\r\n-42\r\n", "$3\r\n-42\r\n");
}

static void aggregates_have_their_type(void **state) {
    EXPECT(reply_array(r, 12), "*12\r\n", "*12\r\n");
    EXPECT(reply_map(r, 3), "*6\r\n", "%3\r\n");
    EXPECT(reply_set(r, 3), "*3\r\n", "~3\r\n");
    EXPECT(reply_push(r, 3), "*3\r\n", ">3\r\n");
}

static void doubles_are_shortest_and_name_infinity(void **state) {
    EXPECT(reply_double(r, 0.1), "$3\r\n0.1\r\n", ",0.1\r\n");
    EXPECT(reply_double(r, 3), "$1\r\n3\r\n", ",3\r\n");
    EXPECT(reply_double(r, -0.0), "$2\r\n-0\r\n", ",-0\r\n");
    EXPECT(reply_double(r, INFINITY), "$3\r\ninf\r\n", ",inf\r\n");
    EXPECT(reply_double(r, -INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
    EXPECT(reply_double(r, NAN), "$3\r\nnan\r\n", ",nan\r\n");
    EXPECT(reply_double(r, 3.141), "$5\r\n3.141\r\n", ",3.141\r\n");
}

static void errors_cannot_be_split_by_client_bytes(void **state) {
    EXPECT(reply_error(r, "ERR syntax error"), "-ERR syntax error\r\n", "-ERR syntax error\r\n");
    EXPECT(reply_error(r, "ERR a\r\n+OK b\r\n"), "-ERR a  +OK b\r\n", "-ERR a  +OK b\r\n");
    EXPECT(reply_errorf(r, "ERR unknown '%s' %d", "x\ny", 7), "-ERR unknown 'x y' 7\r\n",
           "-ERR unknown 'x y' 7\r\n");
}

static void long_error_texts_are_whole(void **state) {
    char word[3000];
    memset(word, 'w', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    struct buf out = {0};
    struct reply r = {&out, 2};
    reply_errorf(&r, "ERR %s", word);
    assert_int_equal(out.len, 1 + 4 + sizeof(word) - 1 + 2);
    assert_memory_equal(out.ptr + 5, word, sizeof(word) - 1);
    buf_deinit(&out);
}

static void deferred_headers_fit_any_length(void **state) {
    static const size_t counts[] = {0, 9, 10, 99, 100, 12345, 1000000};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct buf out = {0}, expected = {0};
        struct reply r = {&out, 3};
        reply_ok(&r);
        size_t mark = reply_defer(&r);
        for (size_t k = 0; k < counts[i]; k++) {
            reply_integer(&r, (int64_t)k);
        }
        reply_defer_set(&r, mark, counts[i]);
        buf_printf(&expected, "+OK\r\n~%zu\r\n", counts[i]);
        for (size_t k = 0; k < counts[i]; k++) {
            buf_printf(&expected, ":%zu\r\n", k);
        }
        assert_true(bytes_equal(buf_bytes(&out), buf_bytes(&expected)));
        buf_deinit(&out);
        buf_deinit(&expected);
    }
}

static void deferred_headers_nest(void **state) {
    struct buf out = {0};
    struct reply r = {&out, 2};
    size_t outer = reply_defer(&r);
    size_t inner = reply_defer(&r);
    for (int i = 0; i < 11; i++) {
        reply_ok(&r);
    }
    reply_defer_array(&r, inner, 11);
    size_t map = reply_defer(&r);
    reply_defer_map(&r, map, 0);
    reply_defer_array(&r, outer, 2);
    assert_memory_equal(out.ptr, "*2\r\n*11\r\n+OK\r\n", 14);
    assert_memory_equal(out.ptr + out.len - 9, "+OK\r\n*0\r\n", 9);
    assert_int_equal(out.len, 4 + 5 + 55 + 4);
    buf_deinit(&out);
}

static void a_failed_buffer_stays_failed(void **state) {
    struct buf out = {0};
    struct reply r = {&out, 2};
    reply_ok(&r);
    reply_bulk(&r, BYTES("x", SIZE_MAX - 4));
    assert_true(out.failed);
    size_t mark = reply_defer(&r);
    reply_defer_array(&r, mark, 1);
    assert_true(out.failed);
    assert_memory_equal(out.ptr, "+OK\r\n", 5);
    buf_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_have_their_form_in_both_protocols),
        cmocka_unit_test(integers_cover_the_whole_range),
        cmocka_unit_test(bulks_hold_any_bytes),
        cmocka_unit_test(aggregates_have_their_type),
        cmocka_unit_test(doubles_are_shortest_and_name_infinity),
        cmocka_unit_test(errors_cannot_be_split_by_client_bytes),
        cmocka_unit_test(long_error_texts_are_whole),
        cmocka_unit_test(deferred_headers_fit_any_length),
        cmocka_unit_test(deferred_headers_nest),
        cmocka_unit_test(a_failed_buffer_stays_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
