/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host.h"
#include "types/string.h"

static const struct type_env env = {0};

static void hold(struct held *h, struct bytes text) {
    struct value_image image;
    assert_int_equal(string_image(text, NULL, &image), ST_OK);
    held_init(h, VALUE_STRING, &image, &env);
}

static void assert_text(const struct held *h, struct bytes expected) {
    char scratch[STRING_SCRATCH_LEN];
    struct bytes text = string_text(&h->v, scratch);
    assert_int_equal(text.len, expected.len);
    assert_int_equal(string_len(&h->v), expected.len);
    if (expected.len != 0) {
        assert_memory_equal(text.ptr, expected.ptr, expected.len);
    }
    value_check(&h->v);
}

static char *pattern(size_t len, uint64_t seed) {
    char *p = malloc(len + 1);
    assert_non_null(p);
    fill_pattern(p, len, seed);
    return p;
}

/* ---- forms --------------------------------------------------------------------------------- */

static void integers_take_the_fewest_bytes(void **state) {
    static const struct {
        const char *text;
        int64_t n;
        size_t width;
    } cases[] = {
        {"0", 0, 1},
        {"-1", -1, 1},
        {"127", 127, 1},
        {"128", 128, 2},
        {"-128", -128, 1},
        {"-129", -129, 2},
        {"32767", 32767, 2},
        {"32768", 32768, 4},
        {"-32768", -32768, 2},
        {"-32769", -32769, 4},
        {"2147483647", INT32_MAX, 4},
        {"2147483648", (int64_t)INT32_MAX + 1, 8},
        {"-2147483648", INT32_MIN, 4},
        {"-2147483649", (int64_t)INT32_MIN - 1, 8},
        {"9223372036854775807", INT64_MAX, 8},
        {"-9223372036854775808", INT64_MIN, 8},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct held h;
        int64_t n;
        hold(&h, bytes_from_cstr(cases[i].text));
        assert_int_equal(h.v.encoding, VALUE_INT);
        assert_int_equal(h.v.len, cases[i].width);
        assert_true(string_as_i64(&h.v, &n));
        assert_int_equal(n, cases[i].n);
        assert_text(&h, bytes_from_cstr(cases[i].text));
        assert_string_equal(value_encoding_name(&h.v), "int");
        assert_int_equal(string_set_i64(&h.v, 0), ST_OK);
        assert_int_equal(string_set_i64(&h.v, cases[i].n), ST_OK);
        assert_int_equal(h.v.len, cases[i].width);
        assert_text(&h, bytes_from_cstr(cases[i].text));
        held_deinit(&h);
    }
    assert_int_equal(held_total_bytes(), 0);
}

static void what_does_not_read_back_stays_text(void **state) {
    static const struct bytes cases[] = {
        BYTES_LIT(""),
        BYTES_LIT("-"),
        BYTES_LIT("-0"),
        BYTES_LIT("00"),
        BYTES_LIT("01"),
        BYTES_LIT("-01"),
        BYTES_LIT("+1"),
        BYTES_LIT(" 1"),
        BYTES_LIT("1 "),
        BYTES_LIT("1.0"),
        BYTES_LIT("1e3"),
        BYTES_LIT("0x1"),
        BYTES_LIT("1\0"),
        BYTES_LIT("\0"),
        BYTES_LIT("9223372036854775808"),
        BYTES_LIT("-9223372036854775809"),
        BYTES_LIT("12345678901234567890"),
        BYTES_LIT("99999999999999999999"),
        BYTES_LIT("00000000000000000001"),
        BYTES_LIT("000000000000000000001"),
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct held h;
        int64_t n;
        hold(&h, cases[i]);
        assert_int_equal(h.v.encoding, VALUE_RAW);
        assert_false(string_as_i64(&h.v, &n));
        assert_text(&h, cases[i]);
        held_deinit(&h);
    }
    struct held h;
    hold(&h, BYTES(NULL, 0));
    assert_text(&h, BYTES(NULL, 0));
    assert_int_equal(string_set(&h.v, BYTES(NULL, 0)), ST_OK);
    assert_int_equal(string_write(&h.v, 0, BYTES(NULL, 0)), ST_OK);
    held_deinit(&h);
    assert_int_equal(held_total_bytes(), 0);
}

static void long_texts_stand_alone(void **state) {
    static const struct {
        size_t len;
        enum value_encoding encoding;
        const char *name;
    } cases[] = {
        {44, VALUE_RAW, "embstr"},
        {45, VALUE_RAW, "raw"},
        {STRING_INLINE_MAX - 1, VALUE_RAW, "raw"},
        {STRING_INLINE_MAX, VALUE_RAW, "raw"},
        {STRING_INLINE_MAX + 1, VALUE_HEAP, "raw"},
        {1000000, VALUE_HEAP, "raw"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text = pattern(cases[i].len, i);
        struct held h;
        hold(&h, BYTES(text, cases[i].len));
        assert_int_equal(h.v.encoding, cases[i].encoding);
        assert_string_equal(value_encoding_name(&h.v), cases[i].name);
        assert_text(&h, BYTES(text, cases[i].len));
        assert_true((value_heap_bytes(&h.v) >= cases[i].len) == (cases[i].encoding == VALUE_HEAP));
        held_deinit(&h);
        free(text);
    }
    assert_int_equal(held_total_bytes(), 0);
}

static void an_integer_can_be_read_from_text(void **state) {
    struct held h;
    int64_t n;
    hold(&h, BYTES_LIT("1x"));
    assert_int_equal(string_write(&h.v, 1, BYTES_LIT("2")), ST_OK);
    assert_int_equal(h.v.encoding, VALUE_RAW);
    assert_true(string_as_i64(&h.v, &n));
    assert_int_equal(n, 12);
    held_deinit(&h);
}

/* ---- stolen buffers ------------------------------------------------------------------------ */

static void a_long_texts_block_is_taken_over(void **state) {
    size_t len = 70000;
    char *block = pattern(len + 1, 1), *copy = pattern(len, 1), *owned = block;
    struct value_image image;
    assert_int_equal(string_image(BYTES(block, len), &owned, &image), ST_OK);
    assert_null(owned);
    struct held h;
    held_init(&h, VALUE_STRING, &image, &env);
    assert_ptr_equal(value_object(&h.v), block);
    assert_text(&h, BYTES(copy, len));
    assert_true(account_bytes(ACCOUNT_VALUE) >= len);
    assert_int_equal(string_write(&h.v, len, BYTES_LIT("more")), ST_OK);
    assert_int_equal(string_len(&h.v), len + 4);
    held_deinit(&h);
    free(copy);
    assert_int_equal(held_total_bytes(), 0);
}

static void a_short_texts_block_stays_the_callers(void **state) {
    static const char *const texts[] = {"12", "abc"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char *block = strdup(texts[i]), *owned = block;
        struct value_image image;
        assert_int_equal(string_image(bytes_from_cstr(block), &owned, &image), ST_OK);
        assert_ptr_equal(owned, block);
        free(block);
    }
    char *none = NULL, *text = pattern(5000, 2);
    struct value_image image;
    assert_int_equal(string_image(BYTES(text, 5000), &none, &image), ST_OK);
    assert_int_equal(image.encoding, VALUE_HEAP);
    value_image_discard(VALUE_STRING, &image);
    free(text);
    assert_int_equal(held_total_bytes(), 0);
}

/* ---- changing ------------------------------------------------------------------------------ */

static const size_t text_lens[] = {0, 3, 100, 128, 129, 4096, 4097, 50000};
#define FORMS (2 + ARRAY_LEN(text_lens))

/* One of every form; the text is the caller's to free. */
static struct bytes text_of_form(size_t form) {
    if (form >= 2) {
        return BYTES(pattern(text_lens[form - 2], form), text_lens[form - 2]);
    }
    char *text = strdup(form == 0 ? "7" : "-9223372036854775808");
    return bytes_from_cstr(text);
}

/* Fail the first, second, third allocation of a call until it succeeds; before each try the value
 * holds `before`, after a failed one it must hold it still. */
#define UNTIL_IT_SUCCEEDS(h, before, call)                                                         \
    do {                                                                                           \
        size_t value_bytes = account_bytes(ACCOUNT_VALUE);                                         \
        enum value_encoding encoding = (h)->v.encoding;                                            \
        for (size_t fail = 1;; fail++) {                                                           \
            account_fail_after(fail);                                                              \
            enum status st = (call);                                                               \
            account_fail_after(0);                                                                 \
            if (st == ST_OK) {                                                                     \
                break;                                                                             \
            }                                                                                      \
            assert_int_equal(st, ST_NOMEM);                                                        \
            assert_int_equal((h)->v.encoding, encoding);                                           \
            assert_text((h), (before));                                                            \
            assert_int_equal(account_bytes(ACCOUNT_VALUE), value_bytes);                           \
            assert_true(fail < 20);                                                                \
        }                                                                                          \
    } while (0)

static void every_form_can_replace_every_other(void **state) {
    for (size_t from = 0; from < FORMS; from++) {
        for (size_t to = 0; to < FORMS; to++) {
            struct bytes before = text_of_form(from), after = text_of_form(to);
            struct held h;
            hold(&h, before);
            UNTIL_IT_SUCCEEDS(&h, before, string_set(&h.v, after));
            assert_text(&h, after);
            held_deinit(&h);
            free((char *)(uintptr_t)before.ptr);
            free((char *)(uintptr_t)after.ptr);
        }
    }
    assert_int_equal(held_total_bytes(), 0);
}

static void an_integer_can_replace_every_form(void **state) {
    for (size_t from = 0; from < FORMS; from++) {
        struct bytes before = text_of_form(from);
        struct held h;
        hold(&h, before);
        UNTIL_IT_SUCCEEDS(&h, before, string_set_i64(&h.v, 70000));
        assert_text(&h, BYTES_LIT("70000"));
        held_deinit(&h);
        free((char *)(uintptr_t)before.ptr);
    }
    assert_int_equal(held_total_bytes(), 0);
}

static void equal_widths_change_in_place(void **state) {
    struct held h;
    hold(&h, BYTES_LIT("100"));
    for (int64_t n = -128; n <= 127; n++) {
        assert_int_equal(string_set_i64(&h.v, n), ST_OK);
    }
    assert_int_equal(h.resizes, 0);
    assert_int_equal(string_set_i64(&h.v, 128), ST_OK);
    assert_int_equal(h.resizes, 1);
    held_deinit(&h);
}

/* What string_write does, the plain way. */
static struct bytes written(struct bytes old, size_t off, struct bytes text) {
    size_t len = text.len != 0 && off + text.len > old.len ? off + text.len : old.len;
    char *p = calloc(1, len + 1);
    assert_non_null(p);
    if (old.len != 0) {
        memcpy(p, old.ptr, old.len);
    }
    if (text.len != 0) {
        memcpy(p + off, text.ptr, text.len);
    }
    return BYTES(p, len);
}

static void writes_splice_append_and_fill_gaps(void **state) {
    static const size_t lens[] = {0, 1, 5, 100, 5000};
    for (size_t from = 0; from < FORMS; from++) {
        struct bytes before = text_of_form(from);
        const size_t offs[] = {0,
                               1,
                               before.len / 2,
                               before.len,
                               before.len + 1,
                               before.len + 7,
                               before.len + 200,
                               before.len + 9000};
        for (size_t o = 0; o < ARRAY_LEN(offs); o++) {
            for (size_t l = 0; l < ARRAY_LEN(lens); l++) {
                char *text = pattern(lens[l], 77 + l);
                struct bytes after = written(before, offs[o], BYTES(text, lens[l]));
                struct held h;
                hold(&h, before);
                UNTIL_IT_SUCCEEDS(&h, before, string_write(&h.v, offs[o], BYTES(text, lens[l])));
                assert_text(&h, after);
                held_deinit(&h);
                free((char *)(uintptr_t)after.ptr);
                free(text);
            }
        }
        free((char *)(uintptr_t)before.ptr);
    }
    assert_int_equal(held_total_bytes(), 0);
}

static void a_gap_is_zero_even_where_bytes_lay(void **state) {
    struct held h;
    char *text = pattern(6000, 3);
    hold(&h, BYTES(text, 6000));
    assert_int_equal(string_write(&h.v, 6000, BYTES(text, 3000)), ST_OK); /* room to spare */
    assert_int_equal(string_set(&h.v, BYTES(text, 5000)), ST_OK);
    assert_int_equal(string_write(&h.v, 5100, BYTES_LIT("x")), ST_OK);
    char scratch[STRING_SCRATCH_LEN];
    struct bytes now = string_text(&h.v, scratch);
    assert_int_equal(now.len, 5101);
    for (size_t i = 5000; i < 5100; i++) {
        assert_int_equal(now.ptr[i], 0);
    }
    held_deinit(&h);
    free(text);
}

static void appends_are_amortized(void **state) {
    struct held h;
    hold(&h, BYTES_LIT(""));
    size_t moves = 0;
    const void *last = NULL;
    for (size_t i = 0; i < 200000; i++) {
        char c = (char)i;
        assert_int_equal(string_write(&h.v, i, BYTES(&c, 1)), ST_OK);
        if (h.v.encoding == VALUE_HEAP) {
            moves += value_object(&h.v) != last;
            last = value_object(&h.v);
        }
    }
    assert_in_range(h.resizes, 0, STRING_GROW_HEAP_MIN + 1);
    assert_in_range(moves, 0, 60); /* log(200000 / 128) / log(1.25) = 33 */
    assert_true(value_heap_bytes(&h.v) <= 200000 * 3 / 2);
    held_deinit(&h);
    assert_int_equal(held_total_bytes(), 0);
}

/* ---- value --------------------------------------------------------------------------------- */

static void a_clone_is_equal_and_independent(void **state) {
    for (size_t from = 0; from < FORMS; from++) {
        struct bytes text = text_of_form(from);
        struct held h, copy;
        struct value_image image;
        hold(&h, text);
        UNTIL_IT_SUCCEEDS(&h, text, value_clone(&h.v, &image));
        held_init(&copy, VALUE_STRING, &image, &env);
        assert_text(&copy, text);
        assert_int_equal(string_set(&h.v, BYTES_LIT("other")), ST_OK);
        assert_text(&copy, text);
        held_deinit(&h);
        held_deinit(&copy);
        free((char *)(uintptr_t)text.ptr);
    }
    assert_int_equal(held_total_bytes(), 0);
}

static void only_large_texts_are_freed_later(void **state) {
    char *text = pattern((size_t)3 << 20, 9);
    struct held h;
    hold(&h, BYTES(text, 1000));
    assert_false(value_is_big(&h.v));
    assert_int_equal(string_set(&h.v, BYTES(text, 5000)), ST_OK);
    assert_false(value_is_big(&h.v));
    assert_int_equal(string_set(&h.v, BYTES(text, (size_t)3 << 20)), ST_OK);
    assert_true(value_is_big(&h.v));
    held_deinit(&h);
    free(text);
    assert_int_equal(held_total_bytes(), 0);
}

static void types_have_redis_names(void **state) {
    assert_string_equal(value_type_name(VALUE_STRING), "string");
    assert_string_equal(value_type_name(VALUE_HASH), "hash");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_take_the_fewest_bytes),
        cmocka_unit_test(what_does_not_read_back_stays_text),
        cmocka_unit_test(long_texts_stand_alone),
        cmocka_unit_test(an_integer_can_be_read_from_text),
        cmocka_unit_test(a_long_texts_block_is_taken_over),
        cmocka_unit_test(a_short_texts_block_stays_the_callers),
        cmocka_unit_test(every_form_can_replace_every_other),
        cmocka_unit_test(an_integer_can_replace_every_form),
        cmocka_unit_test(equal_widths_change_in_place),
        cmocka_unit_test(writes_splice_append_and_fill_gaps),
        cmocka_unit_test(a_gap_is_zero_even_where_bytes_lay),
        cmocka_unit_test(appends_are_amortized),
        cmocka_unit_test(a_clone_is_equal_and_independent),
        cmocka_unit_test(only_large_texts_are_freed_later),
        cmocka_unit_test(types_have_redis_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
