/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/watchdog.h"

static void only_what_is_over_the_limit_is_told(void **state) {
    ticks_setup();
    watchdog_turn();
    uint64_t start = ticks_now();
    assert_false(watchdog_check(start, "stage", NULL, 3600000000));
    while (ticks_to_ns(ticks_now() - start) < 2000000) {
    }
    assert_true(watchdog_check(start, "stage", NULL, 1000));
    assert_true(watchdog_check(start, "stage", "with detail", 1000));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_over_the_limit_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
