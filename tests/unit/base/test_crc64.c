/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc64.h"
#include "base/rng.h"

/* A bit at a time, straight from the definition. */
static uint64_t slowly(uint64_t crc, const unsigned char *p, size_t len) {
    for (; len > 0; p++, len--) {
        crc ^= *p;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? crc >> 1 ^ UINT64_C(0x95ac9329ac4bc9b5) : crc >> 1;
        }
    }
    return crc;
}

static void crc64_has_its_published_check_value(void **state) {
    (void)state;
    assert_true(crc64(0, "123456789", 9) == UINT64_C(0xe9c6d914c4b8d9ca));
    assert_true(crc64_tables(0, "123456789", 9) == UINT64_C(0xe9c6d914c4b8d9ca));
    assert_true(crc64(7, "", 0) == 7);
}

static void crc64_agrees_with_its_definition_at_every_length_and_start(void **state) {
    (void)state;
    unsigned char bytes[600];
    struct rng rng;
    rng_init(&rng, 1);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)rng_next(&rng);
    }
    for (size_t from = 0; from < 17; from++) {
        for (size_t len = 0; from + len <= sizeof(bytes); len++) {
            uint64_t start = rng_next(&rng), expected = slowly(start, bytes + from, len);
            assert_true(crc64(start, bytes + from, len) == expected);
            assert_true(crc64_tables(start, bytes + from, len) == expected);
        }
    }
}

static void crc64_of_parts_is_that_of_the_whole(void **state) {
    (void)state;
    unsigned char bytes[4096];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * i >> 3);
    }
    uint64_t whole = crc64(0, bytes, sizeof(bytes));
    for (size_t cut = 0; cut <= sizeof(bytes); cut += 13) {
        assert_true(crc64(crc64(0, bytes, cut), bytes + cut, sizeof(bytes) - cut) == whole);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc64_has_its_published_check_value),
        cmocka_unit_test(crc64_agrees_with_its_definition_at_every_length_and_start),
        cmocka_unit_test(crc64_of_parts_is_that_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
