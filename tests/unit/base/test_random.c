/* SPDX-License-Identifier: BSD-3-Clause */
/* rng and hash against published vectors, and as keyed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"
#include "base/status.h"

/* The first numbers of xoshiro256** from state 1, 2, 3, 4, as its authors' code gives them. */
static void rng_is_xoshiro256starstar(void **state) {
    static const uint64_t want[] = {11520u,
                                    0u,
                                    1509978240u,
                                    1215971899390074240u,
                                    1216172134540287360u,
                                    607988272756665600u,
                                    16172922978634559625u,
                                    8476171486693032832u,
                                    10595114339597558777u,
                                    2904607092377533576u};
    struct rng r = {{1, 2, 3, 4}};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_true(rng_next(&r) == want[i]);
    }
}

/* SplitMix64 from 1234567. */
static void rng_seeds_by_splitmix64(void **state) {
    struct rng r;
    rng_init(&r, 1234567);
    assert_true(r.state[0] == 6457827717110365317u);
    assert_true(r.state[1] == 3203168211198807973u);
    assert_true(r.state[2] == 9817491932198370423u);
    assert_true(r.state[3] == 4593380528125082431u);
}

static void rng_below_is_uniform_and_below(void **state) {
    struct rng r;
    rng_init(&r, 1);
    size_t seen[10] = {0};
    for (size_t i = 0; i < 100000; i++) {
        seen[rng_below(&r, 10)]++;
    }
    for (size_t i = 0; i < 10; i++) {
        assert_in_range(seen[i], 9500, 10500); /* 5 sigma */
    }
    assert_int_equal(rng_below(&r, 1), 0);
    for (size_t i = 0; i < 1000; i++) {
        assert_true(rng_below(&r, UINT64_MAX) < UINT64_MAX);
        assert_true(rng_below(&r, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
    }
}

static void entropy_differs(void **state) {
    assert_true(rng_entropy() != rng_entropy());
}

/* XXH3's own vector for the empty input. */
static void hash_is_xxh3(void **state) {
    hash_setup_seed(0);
    assert_true(hash_bytes(BYTES(NULL, 0)) == 0x2d06800538d394c2u);
    assert_true(hash_bytes(BYTES_LIT("")) == 0x2d06800538d394c2u);
}

static void hash_depends_on_seed_and_every_byte(void **state) {
    char text[300] = {0};
    hash_setup_seed(1);
    uint64_t one = hash_bytes(BYTES(text, sizeof(text)));
    assert_true(hash_bytes(BYTES(text, sizeof(text))) == one);
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = 1;
        assert_true(hash_bytes(BYTES(text, sizeof(text))) != one);
        text[i] = 0;
        assert_true(hash_bytes(BYTES(text, i)) != one);
    }
    hash_setup_seed(2);
    assert_true(hash_bytes(BYTES(text, sizeof(text))) != one);
    hash_setup();
    uint64_t random = hash_bytes(BYTES(text, sizeof(text)));
    hash_setup();
    assert_true(hash_bytes(BYTES(text, sizeof(text))) != random);
}

static void every_status_has_a_text(void **state) {
#define HAS_TEXT(name, value, text)                                                                \
    assert_string_equal(status_text(name), text);                                                  \
    assert_true((value) <= 0);
    STATUS_MAP(HAS_TEXT)
#undef HAS_TEXT
    assert_string_equal(status_text((enum status) - 1000), "unknown status");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rng_is_xoshiro256starstar),
        cmocka_unit_test(rng_seeds_by_splitmix64),
        cmocka_unit_test(rng_below_is_uniform_and_below),
        cmocka_unit_test(entropy_differs),
        cmocka_unit_test(hash_is_xxh3),
        cmocka_unit_test(hash_depends_on_seed_and_every_byte),
        cmocka_unit_test(every_status_has_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
