/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

static void what_is_written_is_read_back(void **state) {
    struct store a, b;
    store_create(&a);
    fill(&a);
    for (int compress = 0; compress < 2; compress++) {
        struct buf file = {0};
        struct reader_report report;
        write_store(&a, compress, &file);
        store_create(&b);
        read_store(&b, buf_bytes(&file), &report);
        assert_same_data(&a, &b);
        assert_same_data(&b, &a);
        assert_int_equal(report.version, 10);
        assert_int_equal(report.bytes, file.len);
        assert_true(report.checksum_compared);
        assert_int_equal(report.expired + report.empty, 0);
        store_destroy(&b);
        buf_deinit(&file);
    }
    store_destroy(&a);
    assert_int_equal(total_bytes(), 0);
}

static void any_cut_of_the_source_gives_the_same(void **state) {
    static const size_t pieces[] = {1, 7, 1000, 65536, 262144, SIZE_MAX};
    struct store a, b;
    struct buf file = {0};
    store_create(&a);
    fill_strings(&a);
    fill_collections(&a, 0, 1000);
    fill_odd_collections(&a);
    write_store(&a, true, &file);
    for (size_t i = 0; i < 2 * ARRAY_LEN(pieces); i++) {
        struct reader_report report;
        store_create(&b);
        assert_int_equal(read_bytes_into(&b, buf_bytes(&file), pieces[i / 2], i % 2, NULL, &report),
                         ST_OK);
        assert_same_data(&a, &b);
        store_destroy(&b);
    }
    buf_deinit(&file);
    store_destroy(&a);
    assert_int_equal(total_bytes(), 0);
}

static void small_buffers_write_the_same_bytes(void **state) {
    static const size_t sizes[] = {1, 64, 100, 4096, (size_t)4 << 20};
    struct store a;
    struct buf first = {0};
    store_create(&a);
    fill(&a);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct buf out = {0};
        struct writer_options options = {
            .write = into_buf, .arg = &out, .buffer_bytes = sizes[i], .checksum = true};
        struct writer *w;
        assert_int_equal(writer_create(&options, &w), ST_OK);
        assert_int_equal(writer_begin(w), ST_OK);
        for (size_t db = 0; db < DATABASES; db++) {
            struct entry e;
            assert_int_equal(writer_select(w, db, 1, 0), ST_OK);
            struct rng rng;
            rng_init(&rng, db);
            for (int k = 0; k < 100 && db_random(a.set->dbs[db], &rng, &e); k++) {
                assert_int_equal(writer_key(w, &e), ST_OK);
            }
        }
        assert_int_equal(writer_end(w), ST_OK);
        writer_destroy(w);
        if (i == 0) {
            first = out;
        } else {
            assert_bytes(buf_bytes(&first), buf_bytes(&out));
            buf_deinit(&out);
        }
    }
    buf_deinit(&first);
    store_destroy(&a);
}

struct failing_sink {
    uint64_t left, calls_after_failure;
    bool failed;
};

static enum status fail_after(void *arg, const char *ptr, size_t len) {
    struct failing_sink *sink = arg;
    sink->calls_after_failure += sink->failed;
    if (len > sink->left) {
        sink->failed = true;
        return ST_IO;
    }
    sink->left -= len;
    return ST_OK;
}

static void a_failed_sink_stops_the_writer_for_good(void **state) {
    struct store a;
    struct buf file = {0};
    store_create(&a);
    fill_collections(&a, 0, 500);
    fill_odd_collections(&a);
    write_store(&a, false, &file);
    for (uint64_t left = 0; left < file.len; left += file.len / 50) {
        struct failing_sink sink = {.left = left};
        struct writer_options options = {
            .write = fail_after, .arg = &sink, .buffer_bytes = 1000, .checksum = true};
        struct writer *w;
        assert_int_equal(writer_create(&options, &w), ST_OK);
        assert_int_equal(writer_dbset(w, a.set, 0), ST_IO);
        assert_int_equal(writer_end(w), ST_IO);
        assert_int_equal(sink.calls_after_failure, 0);
        writer_destroy(w);
    }
    buf_deinit(&file);
    store_destroy(&a);
}

static void expired_keys_stay_away(void **state) {
    struct store a, b;
    struct buf file = {0};
    struct reader_report report;
    struct reader_options keep = {.keep_expired = true, .now_ms = FAR + 6};
    store_create(&a);
    for (int i = 0; i < 10; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        put(&a, 2, key, bytes_of((uint64_t)i, 10000, 0), FAR + i);
    }
    write_store(&a, false, &file);
    store_create(&b);
    struct reader_options later = {.now_ms = FAR + 6};
    assert_int_equal(read_bytes_into(&b, buf_bytes(&file), SIZE_MAX, true, &later, &report), ST_OK);
    assert_int_equal(report.keys, 4);
    assert_int_equal(report.expiring, 4);
    assert_int_equal(report.expired, 6);
    assert_int_equal(db_count(b.set->dbs[2]), 4);
    store_destroy(&b);
    store_create(&b);
    assert_int_equal(read_bytes_into(&b, buf_bytes(&file), SIZE_MAX, true, &keep, &report), ST_OK);
    assert_same_data(&a, &b);
    store_destroy(&b);
    buf_deinit(&file);
    store_destroy(&a);
    assert_int_equal(total_bytes(), 0);
}

/* ---- payloads ------------------------------------------------------------------------------- */

struct payloads {
    struct store *to;
    size_t db;
};

static void copy_by_payload(void *arg, struct entry *e) {
    struct payloads *p = arg;
    for (int compress = 0; compress < 2; compress++) {
        struct buf payload = {0}, hold = {0};
        struct value_image image;
        enum value_type type;
        char error[READER_ERROR_LEN];
        struct entry copy;
        assert_int_equal(writer_payload(&e->value, compress, &payload), ST_OK);
        enum status st =
            reader_payload(buf_bytes(&payload), &p->to->set->env, &hold, &type, &image, error);
        if (st != ST_OK) {
            fail_msg("%s", error);
        }
        assert_int_equal(type, e->value.type);
        if (compress) {
            assert_int_equal(db_add(p->to->set->dbs[p->db], e->key, hash_bytes(e->key), type,
                                    &image, e->expire_ms, &copy),
                             ST_OK);
        } else {
            value_image_discard(type, &image);
        }
        payload.ptr[payload.len / 2] ^= 4;
        assert_int_equal(
            reader_payload(buf_bytes(&payload), &p->to->set->env, &hold, &type, &image, error),
            ST_SYNTAX);
        buf_deinit(&payload);
        buf_deinit(&hold);
    }
}

static void payloads_carry_values_of_every_kind(void **state) {
    struct store a, b;
    store_create(&a);
    store_create(&b);
    fill(&a);
    for (size_t i = 0; i < DATABASES; i++) {
        struct payloads p = {&b, i};
        db_each(a.set->dbs[i], copy_by_payload, &p);
    }
    assert_same_data(&a, &b);
    store_destroy(&a);
    store_destroy(&b);
    assert_int_equal(total_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(any_cut_of_the_source_gives_the_same),
        cmocka_unit_test(small_buffers_write_the_same_bytes),
        cmocka_unit_test(a_failed_sink_stops_the_writer_for_good),
        cmocka_unit_test(expired_keys_stay_away),
        cmocka_unit_test(payloads_carry_values_of_every_kind),
    };
    hash_setup_seed(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
