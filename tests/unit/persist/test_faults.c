/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are wrong: each is refused in words, nothing crashes, nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc64.h"
#include "fixture.h"

/* One key of every form that the writer has. */
static void write_small(struct buf *file) {
    struct store s;
    store_create(&s);
    put(&s, 0, "string", bytes_of(1, 30, 2), FAR);
    put(&s, 0, "number", digits_of(-70000), DB_NO_EXPIRY);
    for (size_t i = 0; i < 5; i++) {
        put_field(&s, 0, "hash", element_of(i), element_of(i + 9));
        put_member(&s, 2, "set", element_of(i));
        put_member(&s, 2, "ints", digits_of((int64_t)i * 1000));
        put_score(&s, 2, "zset", element_of(i), score_of(i));
        put_element(&s, 2, "list", element_of(i));
    }
    put_field(&s, 2, "plain hash", BYTES_LIT("f"), bytes_of(3, 300, 2));
    put_score(&s, 2, "plain zset", bytes_of(3, 70, 0), 0.5);
    write_store(&s, true, file);
    store_destroy(&s);
}

static void every_truncation_is_refused(void **state) {
    struct buf file = {0};
    write_small(&file);
    for (size_t len = 0; len < file.len; len++) {
        for (int known = 0; known < 2; known++) {
            struct store s;
            struct reader_report report;
            char *exact = malloc(len + 1); /* so that a sanitizer sees a read beyond */
            assert_non_null(exact);
            memcpy(exact, file.ptr, len);
            store_create(&s);
            assert_int_equal(read_bytes_into(&s, BYTES(exact, len), SIZE_MAX, known, NULL, &report),
                             ST_CORRUPT);
            assert_non_null(strstr(report.error, "at offset"));
            store_destroy(&s);
            free(exact);
        }
    }
    buf_deinit(&file);
    assert_int_equal(total_bytes(), 0);
}

static void every_flipped_bit_is_noticed(void **state) {
    struct buf file = {0};
    write_small(&file);
    for (size_t bit = 0; bit < file.len * 8; bit++) {
        struct store s;
        struct reader_report report;
        struct reader_options lax = {
            .now_ms = NOW, .ignore_checksum = true, .skip_unsupported = true};
        file.ptr[bit / 8] ^= (char)(1 << bit % 8);
        store_create(&s);
        assert_int_not_equal(read_bytes_into(&s, buf_bytes(&file), SIZE_MAX, true, NULL, &report),
                             ST_OK);
        store_destroy(&s);
        store_create(&s); /* without the checksum whatever comes out is sound in itself */
        enum status st = read_bytes_into(&s, buf_bytes(&file), SIZE_MAX, true, &lax, &report);
        assert_true(st == ST_OK || st == ST_CORRUPT || st == ST_UNSUPPORTED);
        store_destroy(&s);
        file.ptr[bit / 8] ^= (char)(1 << bit % 8);
    }
    buf_deinit(&file);
    assert_int_equal(total_bytes(), 0);
}

/* ---- one fault at a time ---------------------------------------------------------------------- */

struct wrong {
    const char *body; /* behind the header, without end and checksum */
    size_t len;
    enum status st;
    const char *says;
};
#define WRONG(body_, st_, says_)                                                                   \
    { body_, sizeof(body_) - 1, st_, says_ }

/* A head of a ziplist or listpack that is right for the entries given. */
#define KEY(type) type "\x01k"

static const struct wrong wrongs[] = {
    WRONG("\x08\x01k\x01v", ST_CORRUPT, "no type"),
    WRONG("\x1a\x01k\x01v", ST_CORRUPT, "no type"),
    WRONG("\xFE\x10", ST_UNSUPPORTED, "there is no database 16"),
    WRONG("\xFE\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", ST_UNSUPPORTED, "no database"),
    WRONG("\xFE\x82", ST_CORRUPT, "0x82 begins no length"),
    WRONG(KEY("\x00") "\xC4", ST_CORRUPT, "string of key 'k' at offset 12: 0xc4 begins no string"),
    WRONG(KEY("\x00") "\x80\xFF\xFF\xFF\xFF", ST_CORRUPT, "more than the file holds"),
    WRONG(KEY("\x00") "\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", ST_CORRUPT, "more than the file"),
    WRONG(KEY("\x00") "\xC3\x03\x80\xFF\xFF\xFF\xFF"
                      "abc",
          ST_CORRUPT, "impossible"),
    WRONG(KEY("\x00") "\xC3\x03\x05"
                      "\x01"
                      "ab",
          ST_CORRUPT, "does not decompress"),
    WRONG(KEY("\x00") "\xC3\x03\x05"
                      "\x20\x05\x01",
          ST_CORRUPT, "does not decompress"),
    WRONG(KEY("\x00") "\xC3\x00\x00", ST_CORRUPT, "impossible"),
    WRONG(KEY("\x00") "\x01v" KEY("\x00") "\x01w", ST_CORRUPT,
          "key of key 'k' at offset 15: the key is there twice"),
    WRONG(KEY("\x00") "\x01v" KEY("\x02") "\x01\x01w", ST_CORRUPT, "the key is there twice"),
    WRONG(KEY("\x01") "\x80\xFF\xFF\xFF\xFF", ST_CORRUPT, "more than the file can hold"),
    WRONG(KEY("\x04") "\x81\x40\x00\x00\x00\x00\x00\x00\x00", ST_CORRUPT, "more than the file"),
    WRONG(KEY("\x04") "\x02\x01"
                      "a\x01"
                      "b\x01"
                      "a\x01"
                      "c",
          ST_CORRUPT, "hash of key 'k' at offset 12: a field is there twice"),
    WRONG(KEY("\x02") "\x02\x01"
                      "a\x01"
                      "a",
          ST_CORRUPT, "a member is there twice"),
    WRONG(KEY("\x02") "\x02\x01"
                      "7\xC0\x07",
          ST_CORRUPT, "a member is there twice"),
    WRONG(KEY("\x03") "\x02\x01"
                      "a\x01"
                      "1\x01"
                      "a\x01"
                      "2",
          ST_CORRUPT, "twice"),
    WRONG(KEY("\x03") "\x01\x01"
                      "a\xFD",
          ST_CORRUPT, "a score is not a number"),
    WRONG(KEY("\x03") "\x01\x01"
                      "a\x03"
                      "nan",
          ST_CORRUPT, "a score is not a number"),
    WRONG(KEY("\x03") "\x01\x01"
                      "a\x00",
          ST_CORRUPT, "a score is not a number"),
    WRONG(KEY("\x03") "\x01\x01"
                      "a\x03"
                      "1 2",
          ST_CORRUPT, "a score is not a number"),
    WRONG(KEY("\x05") "\x01\x01"
                      "a\0\0\0\0\0\0\xF8\x7F",
          ST_CORRUPT, "a score is not a number"),
    /* ziplists */
    WRONG(KEY("\x0A") "\x00", ST_CORRUPT, "list ziplist of key 'k' at offset 12: shorter"),
    WRONG(KEY("\x0A") "\x0B\x0C\0\0\0\x0A\0\0\0\0\0\xFF", ST_CORRUPT, "its length is not"),
    WRONG(KEY("\x0A") "\x0B\x0B\0\0\0\x0A\0\0\0\0\0\xFE", ST_CORRUPT, "no end mark"),
    WRONG(KEY("\x0A") "\x0B\x0B\0\0\0\x0A\0\0\0\x01\0\xFF", ST_CORRUPT, "not have as many"),
    WRONG(KEY("\x0A") "\x0B\x0B\0\0\0\x0B\0\0\0\0\0\xFF", ST_CORRUPT, "last entry is not where"),
    WRONG(KEY("\x0A") "\x0E\x0E\0\0\0\x0A\0\0\0\x01\0\x00\x02"
                      "a\xFF",
          ST_CORRUPT, "overruns"),
    WRONG(KEY("\x0A") "\x0E\x0E\0\0\0\x0A\0\0\0\x01\0\x05\x01"
                      "a\xFF",
          ST_CORRUPT, "wrong length"),
    WRONG(KEY("\x0A") "\x0C\x0C\0\0\0\x0A\0\0\0\x01\0\x00\xFF", ST_CORRUPT, "overruns"),
    WRONG(KEY("\x0A") "\x0D\x0D\0\0\0\x0A\0\0\0\x01\0\x00\xFF\xFF", ST_CORRUPT, "unknown kind"),
    WRONG(KEY("\x0A") "\x0D\x0D\0\0\0\x0A\0\0\0\x01\0\x00\xC1\xFF", ST_CORRUPT, "unknown kind"),
    WRONG(KEY("\x0A") "\x0D\x0D\0\0\0\x0A\0\0\0\x01\0\x00\xE0\xFF", ST_CORRUPT, "overruns"),
    WRONG(KEY("\x0A") "\x0D\x0D\0\0\0\x0A\0\0\0\x01\0\x00\x80\xFF", ST_CORRUPT, "overruns"),
    WRONG(KEY("\x0A") "\x0D\x0D\0\0\0\x0A\0\0\0\x01\0\xFE\x00\xFF", ST_CORRUPT, "overruns"),
    WRONG(KEY("\x0D") "\x0D\x0D\0\0\0\x0A\0\0\0\x01\0\x00\xF1\xFF", ST_CORRUPT, "partner"),
    WRONG(KEY("\x0C") "\x0D\x0D\0\0\0\x0A\0\0\0\x01\0\x00\xF1\xFF", ST_CORRUPT, "partner"),
    WRONG(KEY("\x0C") "\x10\x10\0\0\0\x0C\0\0\0\x02\0\x00\xF1\x02\x01"
                      "x\xFF",
          ST_CORRUPT, "a score is not a number"),
    /* listpacks */
    WRONG(KEY("\x10") "\x06\x06\0\0\0\0\xFF", ST_CORRUPT, "shorter"),
    WRONG(KEY("\x10") "\x09\x09\0\0\0\x01\0\x05\x01\xFF", ST_CORRUPT, "partner"),
    WRONG(KEY("\x10") "\x09\x09\0\0\0\x02\0\x05\x01\xFF", ST_CORRUPT, "as many"),
    WRONG(KEY("\x14") "\x09\x09\0\0\0\x02\0\x05\x01\xFF", ST_CORRUPT, "not have as many"),
    WRONG(KEY("\x10") "\x09\x09\0\0\0\x01\0\x05\x02\xFF", ST_CORRUPT, "length behind it is wrong"),
    WRONG(KEY("\x10") "\x09\x09\0\0\0\x01\0\x05\x81\xFF", ST_CORRUPT, "length behind it is wrong"),
    WRONG(KEY("\x10") "\x08\x08\0\0\0\x01\0\x05\xFF", ST_CORRUPT, "length behind it is wrong"),
    WRONG(KEY("\x10") "\x09\x09\0\0\0\x01\0\x85"
                      "a\xFF",
          ST_CORRUPT, "overruns"),
    WRONG(KEY("\x10") "\x09\x09\0\0\0\x01\0\xF5"
                      "a\xFF",
          ST_CORRUPT, "unknown kind"),
    WRONG(KEY("\x10") "\x09\x09\0\0\0\x01\0\xF4"
                      "a\xFF",
          ST_CORRUPT, "overruns"),
    WRONG(KEY("\x10") "\x08\x08\0\0\0\x01\0\xEF\xFF", ST_CORRUPT, "overruns"),
    WRONG(KEY("\x10") "\x08\x08\0\0\0\x01\0\xF0\xFF", ST_CORRUPT, "overruns"),
    WRONG(KEY("\x12") "\x01\x03\x01"
                      "a",
          ST_CORRUPT, "a node of an unknown kind"),
    WRONG(KEY("\x14") "\x0B\x0B\0\0\0\x02\0\x05\x01\x05\x01\xFF", ST_CORRUPT, "twice"),
    WRONG(KEY("\x11") "\x0F\x0F\0\0\0\x04\0\x05\x01\x05\x01\x05\x01\x06\x01\xFF", ST_CORRUPT,
          "twice"),
    /* intsets and zipmaps */
    WRONG(KEY("\x0B") "\x07\x02\0\0\0\0\0\0", ST_CORRUPT, "shorter"),
    WRONG(KEY("\x0B") "\x08\x03\0\0\0\0\0\0\0", ST_CORRUPT, "impossible size"),
    WRONG(KEY("\x0B") "\x08\x02\0\0\0\x01\0\0\0", ST_CORRUPT, "its length is not"),
    WRONG(KEY("\x0B") "\x08\x08\0\0\0\0\0\0\x20", ST_CORRUPT, "its length is not"),
    WRONG(KEY("\x0B") "\x0C\x02\0\0\0\x02\0\0\0\x01\0\x01\0", ST_CORRUPT, "do not ascend"),
    WRONG(KEY("\x09") "\x01\xFF", ST_CORRUPT, "shorter"),
    WRONG(KEY("\x09") "\x02\x01\xFF", ST_CORRUPT, "as many"),
    WRONG(KEY("\x09") "\x05\x01\x01"
                      "a\x01\xFF",
          ST_CORRUPT, "overruns"),
    WRONG(KEY("\x09") "\x07\x01\x01"
                      "a\x01\x02"
                      "b\xFF",
          ST_CORRUPT, "overruns"),
    WRONG(KEY("\x09") "\x04\xFE\x01"
                      "a\xFF",
          ST_CORRUPT, "partner"),
    WRONG(KEY("\x09") "\x05\xFE\xFF\x01"
                      "a\xFF",
          ST_CORRUPT, "an end mark amid entries"),
    /* what is not built here */
    WRONG(KEY("\x0F") "\x00", ST_UNSUPPORTED, "stream of key 'k' at offset 12: this server has no"),
    WRONG(KEY("\x07") "\x81\x00\x10\x83\x10\x51\x87\x20\x00\x00", ST_UNSUPPORTED, "of module "),
    WRONG(KEY("\x06") "\x00", ST_UNSUPPORTED, "of module AAAAAAAAA, in a form"),
    WRONG(KEY("\x18") "\x00", ST_UNSUPPORTED, "hash with expiring fields of key 'k'"),
    WRONG(KEY("\x16") "\x00", ST_UNSUPPORTED, "no release"),
    WRONG("\xF5\x0A#!lua name", ST_UNSUPPORTED, "function library '#!lua name'"),
    WRONG("\xF7\x00\x09", ST_CORRUPT, "module data at offset 10: a module's value of an unknown"),
};

static struct bytes whole_file(const struct wrong *w, bool behind) {
    static char file[1024];
    memcpy(file, "REDIS0012", 9);
    memcpy(file + 9, w->body, w->len);
    size_t len = 9 + w->len;
    file[len++] = (char)0xFF;
    uint64_t crc = crc64(0, file, len);
    memcpy(file + len, &crc, sizeof(crc));
    len += sizeof(crc);
    file[len] = 'x';
    return BYTES(file, len + behind);
}

static void each_fault_is_named(void **state) {
    size_t wrong = 0;
    for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
        struct store s;
        struct reader_report report;
        store_create(&s);
        enum status st =
            read_bytes_into(&s, whole_file(&wrongs[i], false), SIZE_MAX, true, NULL, &report);
        if (st != wrongs[i].st || strstr(report.error, wrongs[i].says) == NULL) {
            print_error("case %zu: %d \"%s\", not \"%s\"\n", i, st, report.error, wrongs[i].says);
            wrong++;
        }
        store_destroy(&s);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(total_bytes(), 0);
}

static void whole(const char *file, size_t len, enum status expected, const char *says) {
    struct store s;
    struct reader_report report;
    store_create(&s);
    assert_int_equal(read_bytes_into(&s, BYTES(file, len), SIZE_MAX, true, NULL, &report),
                     expected);
    if (strstr(report.error, says) == NULL) {
        fail_msg("\"%s\", not \"%s\"", report.error, says);
    }
    store_destroy(&s);
}

static void heads_and_ends_are_checked(void **state) {
    static const struct wrong nothing = WRONG("", ST_OK, "");
    whole("", 0, ST_CORRUPT, "header at offset 0: the file ends too early");
    whole("REDIS", 5, ST_CORRUPT, "ends too early");
    whole("REDIT0009", 9, ST_CORRUPT, "no RDB file");
    whole("REDIS00x9", 9, ST_CORRUPT, "version is not a number");
    whole("REDIS0000", 9, ST_UNSUPPORTED, "RDB version 0");
    whole("REDIS0013", 9, ST_UNSUPPORTED, "RDB version 13; this server reads 1 to 12");
    whole("REDIS0009", 9, ST_CORRUPT, "ends too early");
    whole("REDIS0009\xFF", 10, ST_CORRUPT, "checksum at offset 10: the file ends too early");
    whole("REDIS0009\xFF\0\0\0\0\0\0\0\0", 18, ST_OK, "");
    whole("REDIS0009\xFF\1\0\0\0\0\0\0\0", 18, ST_CORRUPT,
          "checksum at offset 10: 0000000000000001");
    whole("REDIS0004\xFF", 10, ST_OK, "");
    whole("REDIS0004\xFFx", 11, ST_CORRUPT, "bytes follow it");
    struct bytes file = whole_file(&nothing, false);
    whole(file.ptr, file.len, ST_OK, "");
    whole(file.ptr, file.len + 1, ST_CORRUPT, "end at offset 18: bytes follow it");
}

static void empty_collections_are_left_out(void **state) {
    static const struct wrong empty[] = {
        WRONG(KEY("\x01") "\x00", ST_OK, ""),
        WRONG(KEY("\x02") "\x00", ST_OK, ""),
        WRONG(KEY("\x03") "\x00", ST_OK, ""),
        WRONG(KEY("\x04") "\x00", ST_OK, ""),
        WRONG(KEY("\x05") "\x00", ST_OK, ""),
        WRONG(KEY("\x09") "\x02\x00\xFF", ST_OK, ""),
        WRONG(KEY("\x0A") "\x0B\x0B\0\0\0\x0A\0\0\0\0\0\xFF", ST_OK, ""),
        WRONG(KEY("\x0B") "\x08\x02\0\0\0\0\0\0\0", ST_OK, ""),
        WRONG(KEY("\x0E") "\x00", ST_OK, ""),
        WRONG(KEY("\x0E") "\x01\x0B\x0B\0\0\0\x0A\0\0\0\0\0\xFF", ST_OK, ""),
        WRONG(KEY("\x10") "\x07\x07\0\0\0\0\0\xFF", ST_OK, ""),
        WRONG(KEY("\x11") "\x07\x07\0\0\0\0\0\xFF", ST_OK, ""),
    };
    for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
        struct store s;
        struct reader_report report;
        store_create(&s);
        assert_int_equal(
            read_bytes_into(&s, whole_file(&empty[i], false), SIZE_MAX, true, NULL, &report),
            ST_OK);
        assert_int_equal(report.empty, 1);
        assert_int_equal(report.keys, 0);
        assert_int_equal(db_count(s.set->dbs[0]), 0);
        store_destroy(&s);
    }
}

static void what_may_be_skipped_is(void **state) {
    static const struct wrong sections[] = {
        WRONG("\xF7\x05\x02\x02\x01\x07\x03"
              "abcd\x04"
              "abcdefgh\x05\x03"
              "abc\x00",
              ST_OK, ""),
        WRONG("\xF6\x01n\x03lua\x01\x04"
              "desc\x04"
              "code",
              ST_OK, ""),
        WRONG("\xF6\x01n\x03lua\x00\x04"
              "code",
              ST_OK, ""),
        WRONG(KEY("\x07") "\x81\x00\x10\x83\x10\x51\x87\x20\x00\x02\x05\x00", ST_OK, ""),
        WRONG(KEY("\x18") "abcdefgh\x01\x05\x01"
                          "f\x01v",
              ST_OK, ""),
        WRONG(KEY("\x19") "abcdefgh\x03"
                          "abc",
              ST_OK, ""),
        WRONG(KEY("\x15") "\x00\x00\x05\x05\x00\x00\x00\x00\x00\x01\x01g\x05\x05\x02\x01"
                          "0123456789abcdef"
                          "01234567\x03\x01\x01"
                          "c01234567"
                          "01234567\x01"
                          "0123456789abcdef",
              ST_OK, ""),
    };
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        struct store s;
        struct reader_report report;
        struct reader_options skip = {.now_ms = NOW, .skip_unsupported = true};
        store_create(&s);
        put(&s, 1, "unused", BYTES_LIT("v"), DB_NO_EXPIRY);
        if (read_bytes_into(&s, whole_file(&sections[i], false), SIZE_MAX, true, &skip, &report) !=
            ST_OK) {
            fail_msg("case %zu: %s", i, report.error);
        }
        assert_int_equal(report.skipped_functions + report.skipped_hashes +
                             report.skipped_module_aux + report.skipped_modules +
                             report.skipped_streams,
                         1);
        assert_int_equal(report.keys, 0);
        store_destroy(&s);
    }
}

/* ---- the world ------------------------------------------------------------------------------ */

static void failed_memory_is_an_answer(void **state) {
    struct store a;
    struct buf file = {0};
    store_create(&a);
    fill_collections(&a, 0, 10);
    fill_collections(&a, 0, 200);
    fill_collections(&a, 1, 600);
    put(&a, 0, "long", bytes_of(1, 200000, 0), FAR);
    put(&a, 0, "compressed", bytes_of(1, 200000, 2), FAR);
    write_store(&a, true, &file);
    size_t refused = 0;
    for (size_t nth = 1;; nth += 1 + nth / 40) {
        struct store b;
        struct reader_report report;
        store_create(&b);
        account_fail_after(nth);
        enum status st = read_bytes_into(&b, buf_bytes(&file), 5000, nth % 2, NULL, &report);
        account_fail_after(0);
        assert_true(st == ST_OK || st == ST_NOMEM);
        if (st == ST_OK) {
            assert_same_data(&a, &b);
        } else {
            assert_non_null(strstr(report.error, "out of memory"));
            refused++;
        }
        store_destroy(&b);
        if (st == ST_OK) {
            break;
        }
    }
    assert_true(refused > 50);
    buf_deinit(&file);
    store_destroy(&a);
    assert_int_equal(total_bytes(), 0);
}

static bool stop_at_third(void *arg, uint64_t bytes, uint64_t keys) {
    size_t *calls = arg;
    return ++*calls < 3;
}

static void progress_may_stop_it(void **state) {
    struct store a, b;
    struct buf file = {0};
    struct reader_report report;
    size_t calls = 0;
    struct reader_options options = {
        .now_ms = NOW, .progress = stop_at_third, .progress_arg = &calls};
    store_create(&a);
    fill_strings(&a);
    write_store(&a, false, &file);
    store_create(&b);
    assert_int_equal(read_bytes_into(&b, buf_bytes(&file), 1000, true, &options, &report),
                     ST_CLOSED);
    assert_int_equal(calls, 3);
    store_destroy(&b);
    buf_deinit(&file);
    store_destroy(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(each_fault_is_named),
        cmocka_unit_test(heads_and_ends_are_checked),
        cmocka_unit_test(empty_collections_are_left_out),
        cmocka_unit_test(what_may_be_skipped_is),
        cmocka_unit_test(failed_memory_is_an_answer),
        cmocka_unit_test(progress_may_stop_it),
    };
    hash_setup_seed(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
