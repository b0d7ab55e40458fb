/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/buf.h"

static void appends_keep_order(void **state) {
    struct buf b = {0};
    buf_append_cstr(&b, "one");
    buf_append_char(&b, ' ');
    buf_append(&b, "t\0o", 3);
    buf_printf(&b, " %d%s", 3, "!");
    assert_true(bytes_equal(buf_bytes(&b), BYTES("one t\0o 3!", 10)));
    buf_append(&b, NULL, 0);
    buf_printf(&b, "%s", "");
    assert_int_equal(b.len, 10);
    assert_false(b.failed);
    buf_deinit(&b);
    assert_null(b.ptr);
}

static void grows_to_any_size(void **state) {
    struct buf b = {0};
    size_t growths = 0, cap = 0;
    for (size_t i = 0; i < 300000; i++) {
        buf_append(&b, &i, sizeof(i));
        growths += b.cap != cap;
        cap = b.cap;
    }
    assert_int_equal(b.len, 300000 * sizeof(size_t));
    assert_true(growths < 40); /* amortized: 64 B doubled to 1 MiB, then by quarters */
    for (size_t i = 0; i < 300000; i++) {
        size_t v;
        memcpy(&v, b.ptr + i * sizeof(v), sizeof(v));
        assert_int_equal(v, i);
    }
    buf_deinit(&b);
}

static void consume_drops_the_front(void **state) {
    struct buf b = {0};
    buf_append_cstr(&b, "hello world");
    buf_consume(&b, 0);
    buf_consume(&b, 6);
    assert_true(bytes_equal(buf_bytes(&b), BYTES_LIT("world")));
    buf_consume(&b, 5);
    assert_int_equal(b.len, 0);
    buf_deinit(&b);
}

static void reserve_gives_room_to_write_in(void **state) {
    struct buf b = {0};
    char *tail = buf_tail(&b, 1000);
    assert_non_null(tail);
    assert_int_equal(b.len, 0);
    memset(tail, 'x', 1000);
    b.len += 1000;
    assert_int_equal(buf_reserve(&b, b.cap - b.len), ST_OK);
    assert_int_equal(b.ptr[999], 'x');
    buf_deinit(&b);
}

static void a_failed_growth_changes_nothing_and_is_remembered(void **state) {
    struct buf b = {0};
    buf_append_cstr(&b, "kept");
    assert_int_equal(buf_reserve(&b, SIZE_MAX), ST_NOMEM);
    assert_true(b.failed);
    assert_null(buf_tail(&b, SIZE_MAX / 2));
    buf_append_cstr(&b, " too");
    assert_true(bytes_equal(buf_bytes(&b), BYTES_LIT("kept too")));
    assert_true(b.failed);
    buf_clear(&b);
    assert_false(b.failed);
    assert_int_equal(b.len, 0);
    buf_deinit(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_keep_order),
        cmocka_unit_test(grows_to_any_size),
        cmocka_unit_test(consume_drops_the_front),
        cmocka_unit_test(reserve_gives_room_to_write_in),
        cmocka_unit_test(a_failed_growth_changes_nothing_and_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
