/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/bytes.h"
#include "base/clock.h"

/* Rows as redis-server 7.0's KEYS answered them. */
static void glob_matches_as_redis(void **state) {
    static const struct {
        const char *pattern, *text;
        bool match;
    } cases[] = {
        {"*", "", true},
        {"*", "abc", true},
        {"", "", true},
        {"", "a", false},
        {"abc", "abc", true},
        {"abc", "abcd", false},
        {"abc", "ab", false},
        {"h?llo", "hello", true},
        {"h?llo", "hllo", false},
        {"*?", "a", true},
        {"***a***", "bab", true},
        {"a*b*c", "aXbYbZc", true},
        {"a*b*c", "aXbYbZ", false},
        {"[a-c]x", "bx", true},
        {"[c-a]x", "bx", true},
        {"[^a]", "b", true},
        {"[^a]", "a", false},
        {"[abc", "a", true},
        {"[abc", "d", false},
        {"[", "[", false},
        {"[]", "a", false},
        {"[^]", "a", true},
        {"[a-]", "-", false},
        {"[a-]", "a", true},
        {"[a-", "-", true},
        {"a\\", "a\\", true},
        {"a\\", "a", false},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"[\\]]", "]", true},
        {"[a\\-c]", "b", false},
        {"[a\\-c]", "-", true},
        {"[^", "x", true},
        {"[a-c", "b", true},
        {"[z-a-c]", "-", true},
        {"[a-c-e]", "d", false},
        {"[^\\^]", "^", false},
        {"[!a]", "a", true},
        {"[!a]", "b", false},
        {"a[", "a", false},
        {"a[", "a[", false},
        {"a*[", "ab", false},
        {"[a-\\]]", "b", false},
        {"*[b", "ab", true},
        {"[\\", "\\", true},
        {"[b\\", "\\", true},
        {"[b\\", "b", true},
        {"[b\\", "c", false},
        {"A", "a", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (bytes_glob_match(bytes_from_cstr(cases[i].pattern), bytes_from_cstr(cases[i].text),
                             false) != cases[i].match) {
            fail_msg("'%s' on '%s' is not %d", cases[i].pattern, cases[i].text, cases[i].match);
        }
    }
}

static void glob_without_case(void **state) {
    assert_true(bytes_glob_match(BYTES_LIT("MAX*"), BYTES_LIT("maxclients"), true));
    assert_true(bytes_glob_match(BYTES_LIT("[A-C]x"), BYTES_LIT("bX"), true));
    assert_true(bytes_glob_match(BYTES_LIT("\\A"), BYTES_LIT("a"), true));
    assert_false(bytes_glob_match(BYTES_LIT("[^A]"), BYTES_LIT("a"), true));
}

static void glob_sees_nuls_and_high_bytes(void **state) {
    assert_true(bytes_glob_match(BYTES("a\0*", 3), BYTES("a\0b", 3), false));
    assert_false(bytes_glob_match(BYTES("a\0b", 3), BYTES("a", 1), false));
    assert_true(bytes_glob_match(BYTES_LIT("[\x80-\xff]"), BYTES_LIT("\xc3"), false));
    assert_true(bytes_glob_match(BYTES(NULL, 0), BYTES(NULL, 0), false));
    assert_true(bytes_glob_match(BYTES_LIT("*"), BYTES(NULL, 0), false));
}

/* 50 stars against 20,000 bytes that never match: exponential where each star backtracks. */
static void glob_of_many_stars_is_bounded(void **state) {
    char pattern[101], text[20000];
    for (size_t i = 0; i < 100; i += 2) {
        pattern[i] = '*';
        pattern[i + 1] = 'a';
    }
    pattern[100] = 'b';
    memset(text, 'a', sizeof(text));
    int64_t start_us = clock_monotonic_us();
    assert_false(bytes_glob_match(BYTES(pattern, 101), BYTES(text, sizeof(text)), false));
    assert_true(clock_monotonic_us() - start_us < 5000000);
}

static void compare_is_byte_order_then_length(void **state) {
    assert_int_equal(bytes_compare(BYTES_LIT("abc"), BYTES_LIT("abc")), 0);
    assert_true(bytes_compare(BYTES_LIT("ab"), BYTES_LIT("abc")) < 0);
    assert_true(bytes_compare(BYTES_LIT("abd"), BYTES_LIT("abc")) > 0);
    assert_true(bytes_compare(BYTES_LIT("\xff"), BYTES_LIT("a")) > 0);
    assert_true(bytes_compare(BYTES(NULL, 0), BYTES_LIT("a")) < 0);
    assert_int_equal(bytes_compare(BYTES(NULL, 0), BYTES(NULL, 0)), 0);
}

static void equality_with_and_without_case(void **state) {
    assert_true(bytes_equal(BYTES("a\0b", 3), BYTES("a\0b", 3)));
    assert_false(bytes_equal(BYTES("a\0b", 3), BYTES("a\0c", 3)));
    assert_true(bytes_equal(BYTES(NULL, 0), BYTES_LIT("")));
    assert_true(bytes_is(BYTES_LIT("CoNfIg"), "config"));
    assert_false(bytes_is(BYTES_LIT("config"), "confi"));
    assert_false(bytes_equal_nocase(BYTES_LIT("["), BYTES_LIT("{"))); /* differ in bit 5 only */
}

static void secrets_compare_whole(void **state) {
    assert_true(bytes_equal_secret(BYTES_LIT("secret"), BYTES_LIT("secret")));
    assert_false(bytes_equal_secret(BYTES_LIT("secret"), BYTES_LIT("secreT")));
    assert_false(bytes_equal_secret(BYTES_LIT("secret"), BYTES_LIT("secretsecret")));
    assert_false(bytes_equal_secret(BYTES_LIT("secret"), BYTES_LIT("sec")));
    assert_false(bytes_equal_secret(BYTES_LIT("secret"), BYTES(NULL, 0)));
    assert_false(bytes_equal_secret(BYTES(NULL, 0), BYTES_LIT("x")));
    assert_true(bytes_equal_secret(BYTES(NULL, 0), BYTES(NULL, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(glob_matches_as_redis),
        cmocka_unit_test(glob_without_case),
        cmocka_unit_test(glob_sees_nuls_and_high_bytes),
        cmocka_unit_test(glob_of_many_stars_is_bounded),
        cmocka_unit_test(compare_is_byte_order_then_length),
        cmocka_unit_test(equality_with_and_without_case),
        cmocka_unit_test(secrets_compare_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
