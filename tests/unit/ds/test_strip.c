/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ds/strip.h"

#define CAP 70000

static char memory[CAP];
static char text[STRIP_ELEMENT_MAX];

static struct strip fresh(void) {
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)(i * 7 + i / 256);
    }
    return (struct strip){memory, memory + CAP, 0, 0, STRIP_EVEN};
}

static struct bytes of(size_t len) {
    return BYTES(text + len % 97, len);
}

static void add(struct strip *s, uint32_t i, size_t len) {
    uint32_t form = strip_form_for(s, len);
    if (form != s->form) {
        strip_widen(s, form);
    }
    strip_insert(s, i, of(len));
}

static void assert_lens(const struct strip *s, const size_t *lens, uint32_t count) {
    uint32_t off = 0;
    assert_int_equal(s->count, count);
    for (uint32_t i = 0; i < count; i++) {
        struct bytes e = strip_at(s, i);
        assert_int_equal(e.len, lens[i]);
        assert_ptr_equal(e.ptr, s->data + off);
        assert_true(bytes_equal(e, BYTES(text + lens[i] % 97, lens[i])));
        off += (uint32_t)e.len;
    }
    assert_int_equal(strip_data_len(s), off);
}

static void elements_of_one_length_cost_nothing_more(void **state) {
    struct strip s = fresh();
    for (uint32_t i = 0; i < 100; i++) {
        add(&s, i, 16);
    }
    assert_int_equal(s.form, STRIP_EVEN);
    assert_int_equal(strip_bytes(&s), 1600);
    strip_remove(&s, 10, 80);
    assert_int_equal(strip_bytes(&s), 320);
    strip_remove(&s, 0, 20);
    assert_int_equal(strip_form_for(&s, 3), STRIP_EVEN);
}

static void forms_widen_as_lengths_need(void **state) {
    struct strip s = fresh();
    add(&s, 0, 5);
    add(&s, 1, 5);
    add(&s, 0, 255);
    assert_int_equal(s.form, STRIP_BYTE);
    assert_lens(&s, (size_t[]){255, 5, 5}, 3);
    add(&s, 2, 256);
    assert_int_equal(s.form, STRIP_SHORT);
    assert_lens(&s, (size_t[]){255, 5, 256, 5}, 4);
    add(&s, 4, 0);
    assert_lens(&s, (size_t[]){255, 5, 256, 5, 0}, 5);
    strip_remove(&s, 1, 2);
    assert_lens(&s, (size_t[]){255, 5, 0}, 3);
}

static void even_ones_widen_straight_to_two_bytes(void **state) {
    struct strip s = fresh();
    add(&s, 0, 300);
    add(&s, 0, 300);
    add(&s, 1, 1);
    assert_int_equal(s.form, STRIP_SHORT);
    assert_lens(&s, (size_t[]){300, 1, 300}, 3);
}

static void lengths_change_in_place(void **state) {
    struct strip s = fresh();
    add(&s, 0, 9);
    add(&s, 1, 8);
    add(&s, 2, 7);
    strip_resize_at(&s, 1, 30);
    memcpy(s.data + strip_offset(&s, 1), of(30).ptr, 30);
    assert_lens(&s, (size_t[]){9, 30, 7}, 3);
    strip_resize_at(&s, 0, 0);
    assert_lens(&s, (size_t[]){0, 30, 7}, 3);
}

/* More than one round of the sums' lanes. */
static void offsets_add_up_over_thousands(void **state) {
    for (size_t longest = 255; longest <= 256; longest++) {
        struct strip s = fresh();
        static size_t lens[5000];
        size_t base = longest == 255 ? 0 : 1;
        size_t total = 0;
        for (uint32_t i = 0; i < 3000; i++) {
            lens[i] = i % 150 == 0 ? longest : i % 9 + base;
            add(&s, i, lens[i]);
        }
        for (uint32_t i = 0; i < 3000; i++) {
            assert_int_equal(strip_offset(&s, i), total);
            total += lens[i];
        }
        assert_int_equal(strip_offset(&s, 3000), total);
    }
    static char many[8192];
    memset(many, 0xFF, sizeof(many));
    struct strip bytes = {NULL, many + sizeof(many), 8192, 8192 * 255, STRIP_BYTE};
    assert_int_equal(strip_offset(&bytes, 4093), 4093 * 255);
    struct strip shorts = {NULL, many + sizeof(many), 4096, 4096 * 65535, STRIP_SHORT};
    assert_int_equal(strip_offset(&shorts, 2047), 2047 * 65535);
    assert_int_equal(strip_offset(&shorts, 2049), 2049 * 65535);
}

static void walks_go_both_ways_from_anywhere(void **state) {
    for (uint32_t form = STRIP_EVEN; form <= STRIP_SHORT; form++) {
        struct strip s = fresh();
        struct bytes out[20];
        for (uint32_t i = 0; i < 20; i++) {
            add(&s, i, form == STRIP_EVEN ? 7 : form == STRIP_BYTE ? i : 250 + i);
        }
        assert_int_equal(s.form, form);
        for (uint32_t from = 0; from <= 20; from++) {
            uint32_t place = from, off = strip_offset(&s, from);
            strip_read(&s, &place, &off, false, out, 20 - from);
            for (uint32_t i = from; i < 20; i++) {
                assert_true(bytes_equal(out[i - from], strip_at(&s, i)));
            }
            assert_int_equal(off, strip_data_len(&s));
            place = from;
            off = strip_offset(&s, from);
            strip_read(&s, &place, &off, true, out, from);
            for (uint32_t i = 0; i < from; i++) {
                assert_true(bytes_equal(out[i], strip_at(&s, from - 1 - i)));
            }
            assert_int_equal(place, 0);
            assert_int_equal(off, 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_of_one_length_cost_nothing_more),
        cmocka_unit_test(forms_widen_as_lengths_need),
        cmocka_unit_test(even_ones_widen_straight_to_two_bytes),
        cmocka_unit_test(lengths_change_in_place),
        cmocka_unit_test(offsets_add_up_over_thousands),
        cmocka_unit_test(walks_go_both_ways_from_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
