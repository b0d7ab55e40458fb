/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers against what redis-server 7.0 answered for the same text (INCRBY 0, INCRBYFLOAT 0,
 * ZADD). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "base/rng.h"

static void parse_i64_takes_canonical_decimal_only(void **state) {
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"1", true, 1},
        {"-1", true, -1},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"18446744073709551616", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"--1", false, 0},
        {"01", false, 0},
        {"-01", false, 0},
        {"+1", false, 0},
        {"-0", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"0x10", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t v = 42;
        bool good = number_parse_i64(bytes_from_cstr(cases[i].text), &v);
        if (good != cases[i].good || v != (good ? cases[i].value : 42)) {
            fail_msg("'%s' gave %d, %lld", cases[i].text, good, (long long)v);
        }
    }
    int64_t v;
    assert_false(number_parse_i64(BYTES(NULL, 0), &v));
    assert_false(number_parse_i64(BYTES("1\0", 2), &v));
}

static void parse_u64_reaches_its_limit(void **state) {
    uint64_t v;
    assert_true(number_parse_u64(BYTES_LIT("18446744073709551615"), &v));
    assert_true(v == UINT64_MAX);
    assert_false(number_parse_u64(BYTES_LIT("18446744073709551616"), &v));
    assert_false(number_parse_u64(BYTES_LIT("-1"), &v));
    assert_false(number_parse_u64(BYTES(NULL, 0), &v));
}

static void integers_survive_a_round_trip(void **state) {
    static const int64_t edges[] = {0, 1, -1, 9, 10, -10, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    struct rng rng;
    rng_init(&rng, 7);
    for (size_t i = 0; i < 20000; i++) {
        int64_t v =
            i < ARRAY_LEN(edges) ? edges[i] : (int64_t)(rng_next(&rng) >> rng_below(&rng, 64));
        char text[NUMBER_I64_MAX_LEN], want[32];
        size_t len = number_format_i64(text, v);
        snprintf(want, sizeof(want), "%lld", (long long)v);
        assert_int_equal(len, strlen(want));
        assert_memory_equal(text, want, len);
        int64_t back;
        assert_true(number_parse_i64(BYTES(text, len), &back));
        assert_true(back == v);
        uint64_t u = (uint64_t)v, u_back;
        len = number_format_u64(text, u);
        assert_true(number_parse_u64(BYTES(text, len), &u_back));
        assert_true(u_back == u);
    }
}

/* INCRBYFLOAT key 0, key holding the text; NULL: "value is not a valid float". */
static void reals_parse_and_print_as_incrbyfloat(void **state) {
    static const struct {
        const char *text, *printed;
    } cases[] = {
        {"1", "1"},
        {"01", "1"},
        {"+1", "1"},
        {"-0", "0"},
        {"-0.0", "0"},
        {"0x10", "16"},
        {"1.5e3", "1500"},
        {".5", "0.5"},
        {"5.", "5"},
        {"0.1", "0.1"},
        {"3.3", "3.3"},
        {"-3.30", "-3.3"},
        {"1e17", "100000000000000000"},
        {"123456789012345678901234567890", "123456789012345678899921813504"},
        {"1e-17", "0.00000000000000001"},
        {"1e-18", "0"},
        {"-1e-18", "0"},
        {"1e-400", "0"},
        {"inf", "inf"},
        {"-Infinity", "-inf"},
        {"", NULL},
        {" 1", NULL},
        {"1 ", NULL},
        {"\t1", NULL},
        {"nan", NULL},
        {"-nan", NULL},
        {"1_0", NULL},
        {"1e-5000", NULL},
        {"1e5000", NULL},
        {"abc", NULL},
        {"-", NULL},
        {"1e", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        long double v;
        char out[NUMBER_REAL_MAX_LEN];
        bool good = number_parse_real(bytes_from_cstr(cases[i].text), &v);
        if (good != (cases[i].printed != NULL)) {
            fail_msg("'%s' gave %d", cases[i].text, good);
        }
        if (good) {
            size_t len = number_format_real(out, v);
            if (!bytes_equal(BYTES(out, len), bytes_from_cstr(cases[i].printed))) {
                fail_msg("'%s' printed '%.*s'", cases[i].text, (int)len, out);
            }
        }
    }
    long double v;
    assert_false(number_parse_real(BYTES("1\0", 2), &v));
    assert_false(number_parse_real(BYTES(NULL, 0), &v));
}

static void what_a_real_prints_reads_back(void **state) {
    static const long double values[] = {LDBL_MAX, -LDBL_MAX, 1e400L, 0.1L, 1e30L};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char out[NUMBER_REAL_MAX_LEN];
        long double back;
        size_t len = number_format_real(out, values[i]);
        assert_true(len < sizeof(out));
        assert_true(number_parse_real(BYTES(out, len), &back));
        assert_true(fabsl(back - values[i]) <= fabsl(values[i]) * 1e-15L);
    }
}

static void parse_double_refuses_what_zadd_refuses(void **state) {
    static const struct {
        const char *text;
        bool good;
        double value;
    } cases[] = {
        {"1", true, 1},
        {"01", true, 1},
        {"+1", true, 1},
        {"0x10", true, 16},
        {"inf", true, HUGE_VAL},
        {"-Inf", true, -HUGE_VAL},
        {"infinity", true, HUGE_VAL},
        {"1e308", true, 1e308},
        {"1e-320", true, 1e-320},
        {".5", true, 0.5},
        {"5.", true, 5},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"", false, 0},
        {"1e400", false, 0},
        {"-1e400", false, 0},
        {"1e-400", false, 0},
        {"nan", false, 0},
        {"one", false, 0},
        {"1,5", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double v = 42;
        bool good = number_parse_double(bytes_from_cstr(cases[i].text), &v);
        if (good != cases[i].good || (good && v != cases[i].value)) {
            fail_msg("'%s' gave %d, %g", cases[i].text, good, v);
        }
    }
}

static void doubles_print_short_and_read_back(void **state) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {1, "1"},
                 {-1.5, "-1.5"},
                 {0.1, "0.1"},
                 {1e20, "1e+20"},
                 {1e-7, "1e-7"},
                 {HUGE_VAL, "inf"},
                 {-HUGE_VAL, "-inf"},
                 {1e308, "1e+308"},
                 {3, "3"},
                 {123456789.123, "123456789.123"}};
    char out[32];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t len = number_format_double(out, cases[i].value);
        if (!bytes_equal(BYTES(out, len), bytes_from_cstr(cases[i].text))) {
            fail_msg("%g printed '%.*s'", cases[i].value, (int)len, out);
        }
    }
    assert_int_equal(number_format_double(out, (double)NAN), 3);
    assert_memory_equal(out, "nan", 3);
    struct rng rng;
    rng_init(&rng, 11);
    for (size_t i = 0; i < 20000; i++) {
        uint64_t bits = rng_next(&rng);
        double v, back;
        memcpy(&v, &bits, sizeof(v));
        if (isnan(v) || isinf(v)) {
            continue;
        }
        size_t len = number_format_double(out, v);
        assert_true(len < sizeof(out));
        assert_true(number_parse_double(BYTES(out, len), &back));
        assert_true(back == v);
        out[len] = '\0';
        assert_true(strtod(out, NULL) == v);
    }
}

static size_t significant(const char *text, size_t len) {
    size_t count = 0, zeros = 0;
    for (size_t i = 0; i < len && text[i] != 'e'; i++) {
        if (text[i] >= '0' && text[i] <= '9' && (count > 0 || text[i] != '0')) {
            count++;
            zeros = text[i] == '0' ? zeros + 1 : 0;
        }
    }
    return count - zeros;
}

/* Against printf with one digit more until it reads back: never longer, and no further from v. */
static void prints_no_more_digits_than_needed(double v) {
    char out[32], text[40];
    int want = 1;
    for (; want < 17; want++) {
        snprintf(text, sizeof(text), "%.*e", want - 1, v);
        if (strtod(text, NULL) == v) {
            break;
        }
    }
    snprintf(text, sizeof(text), "%.*e", want - 1, v);
    size_t len = number_format_double(out, v);
    out[len] = '\0';
    size_t digits = significant(out, len);
    if (strtod(out, NULL) != v || digits > (size_t)want) {
        fail_msg("%.17g printed '%s', printf '%s'", v, out, text);
    }
    long double off = fabsl(strtold(out, NULL) - v), other = fabsl(strtold(text, NULL) - v);
    if (digits == (size_t)want && off > other * 1.0001L) {
        fail_msg("%.17g printed '%s', which is further away than '%s'", v, out, text);
    }
}

static void doubles_print_the_shortest_form(void **state) {
    struct rng rng;
    rng_init(&rng, 12);
    for (int exponent = -1074; exponent <= 1023;
         exponent++) { /* each power of two and its neighbours */
        double v = ldexp(1, exponent);
        if (v != floor(v) || v > 4611686018427387904.0) { /* whole numbers are written in full */
            prints_no_more_digits_than_needed(v);
            prints_no_more_digits_than_needed(nextafter(v, 0) > 0 ? nextafter(v, 0) : v);
            prints_no_more_digits_than_needed(nextafter(v, HUGE_VAL));
        }
    }
    for (size_t i = 0; i < 20000; i++) {
        prints_no_more_digits_than_needed((double)(rng_next(&rng) >> 11) * 0x1p-53 * 1e6 + 1e-9);
        prints_no_more_digits_than_needed((double)rng_below(&rng, 1000000) / 1000 + 1e-4);
    }
}

static void expect_as_strtod(const char *text) {
    double v;
    double want = strtod(text, NULL);
    bool good = number_parse_double(bytes_from_cstr(text), &v);
    if (isinf(want)) {
        assert_false(good);
    } else if (!good ? want != 0 : v != want || signbit(v) != signbit(want)) {
        fail_msg("'%s' read as %.17g, strtod says %.17g", text, good ? v : (double)NAN, want);
    }
}

/* Every power of ten, digits of every length; and what lies at or near the middle between two doubles. */
static void doubles_read_as_strtod_reads_them(void **state) {
    static const char *const cases[] = {"9007199254740993",
                                        "9007199254740995",
                                        "9007199254740992.9999",
                                        "9007199254740993.0001",
                                        "1.00000000000000011102230246251565",
                                        "2.2250738585072011e-308",
                                        "2.2250738585072014e-308",
                                        "4.9e-324",
                                        "2.4e-324",
                                        "1.7976931348623157e308",
                                        "1.7976931348623158e+308",
                                        "0.0e5",
                                        "-0",
                                        "-0.0",
                                        ".5",
                                        "5.",
                                        "+7",
                                        "00012.50",
                                        "9999999999999999999",
                                        "18446744073709551616",
                                        "123456789012345678901234567890",
                                        "0.000000000000000000000000000000000000000000000000123",
                                        "1e22",
                                        "1e23",
                                        "8.5e-1",
                                        "1E5",
                                        "179769313486231580793e288",
                                        "1e-400",
                                        "1e32768"};
    struct rng rng;
    char text[64];
    rng_init(&rng, 13);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        expect_as_strtod(cases[i]);
    }
    for (int exponent = -345; exponent <= 310; exponent++) {
        for (unsigned shift = 0; shift < 64; shift++) {
            snprintf(text, sizeof(text), "%s%llue%d", shift & 1 ? "-" : "",
                     (unsigned long long)(rng_next(&rng) >> shift), exponent);
            expect_as_strtod(text);
        }
    }
    for (size_t i = 0; i < 20000; i++) { /* scores as they are mostly written */
        double v = (double)(rng_next(&rng) >> 11) * 0x1p-53 * 1e6;
        snprintf(text, sizeof(text), "%.*g", (int)rng_below(&rng, 19) + 1, v);
        expect_as_strtod(text);
        double next = nextafter(v, HUGE_VAL);
        snprintf(text, sizeof(text), "%.19g", v + (next - v) / 2);
        expect_as_strtod(text);
    }
}

static void sizes_take_units(void **state) {
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } cases[] = {
        {"0", true, 0},
        {"100", true, 100},
        {"010", true, 10},
        {"1b", true, 1},
        {"1k", true, 1000},
        {"1K", true, 1000},
        {"1kb", true, 1024},
        {"1MB", true, 1048576},
        {"1m", true, 1000000},
        {"2g", true, 2000000000},
        {"2gb", true, 2147483648},
        {"010mb", true, 10485760},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"17179869184gb", false, 0},
        {"", false, 0},
        {"mb", false, 0},
        {"-1", false, 0},
        {"1.5gb", false, 0},
        {"10%", false, 0},
        {"10zb", false, 0},
        {"1 kb", false, 0},
        {"10k5", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t v = 42;
        bool good = number_parse_size(bytes_from_cstr(cases[i].text), &v);
        if (good != cases[i].good || (good && v != cases[i].value)) {
            fail_msg("'%s' gave %d, %llu", cases[i].text, good, (unsigned long long)v);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_i64_takes_canonical_decimal_only),
        cmocka_unit_test(parse_u64_reaches_its_limit),
        cmocka_unit_test(integers_survive_a_round_trip),
        cmocka_unit_test(reals_parse_and_print_as_incrbyfloat),
        cmocka_unit_test(what_a_real_prints_reads_back),
        cmocka_unit_test(parse_double_refuses_what_zadd_refuses),
        cmocka_unit_test(doubles_print_short_and_read_back),
        cmocka_unit_test(doubles_print_the_shortest_form),
        cmocka_unit_test(doubles_read_as_strtod_reads_them),
        cmocka_unit_test(sizes_take_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
