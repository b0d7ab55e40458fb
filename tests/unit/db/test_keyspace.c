/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys: adding, finding, replacing, deleting, renaming, moving, copying. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "mem/calm.h"

static void keys_come_and_go(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    assert_absent(db, BYTES_LIT("a"));
    put(db, BYTES_LIT("a"), BYTES_LIT("one"), DB_NO_EXPIRY);
    put(db, BYTES_LIT(""), BYTES_LIT(""), DB_NO_EXPIRY);
    put(db, BYTES_LIT("a\0b"), BYTES_LIT("\0"), DB_NO_EXPIRY);
    put(db, BYTES_LIT("a"), BYTES_LIT("two, longer"), DB_NO_EXPIRY);
    assert_int_equal(db_count(db), 3);
    assert_text(db, BYTES_LIT("a"), BYTES_LIT("two, longer"), DB_NO_EXPIRY);
    assert_text(db, BYTES_LIT(""), BYTES_LIT(""), DB_NO_EXPIRY);
    assert_text(db, BYTES(NULL, 0), BYTES_LIT(""), DB_NO_EXPIRY);
    assert_text(db, BYTES_LIT("a\0b"), BYTES_LIT("\0"), DB_NO_EXPIRY);
    assert_absent(f.set->dbs[1], BYTES_LIT("a"));
    struct entry e;
    assert_true(find(db, BYTES_LIT("a"), &e));
    entry_delete(&e);
    assert_absent(db, BYTES_LIT("a"));
    assert_int_equal(db_count(db), 2);
    destroy(&f);
}

static const size_t key_lens[] = {
    0, 1, 239, 240, DB_KEY_INLINE_MAX - 1, DB_KEY_INLINE_MAX, 2049, 2050, 65535, 65536, 1 << 20};
static const size_t text_lens[] = {0,   1,   2,    12,   128,  239,  240,  241,
                                   255, 256, 1000, 1030, 4096, 4097, 70000};

static void every_key_length_takes_every_value_length(void **state) {
    static const size_t chunks[] = {SMALL_CHUNK, LARGE_CHUNK};
    for (size_t c = 0; c < ARRAY_LEN(chunks); c++) {
        struct fixture f;
        create(&f, chunks[c], 128, 64);
        struct db *db = f.set->dbs[0];
        for (size_t k = 0; k < ARRAY_LEN(key_lens); k++) {
            struct bytes key = bytes_of(k, key_lens[k]);
            char *copy = malloc(key.len + 1);
            memcpy(copy, key.ptr, key.len);
            key.ptr = copy;
            for (size_t i = 0; i < ARRAY_LEN(text_lens) * 3; i++) {
                size_t len = text_lens[i * 7 % ARRAY_LEN(text_lens)];
                int64_t expire_ms = i % 3 == 0 ? NOW + 1 + (int64_t)i : DB_NO_EXPIRY;
                put(db, key, bytes_of(i, len), expire_ms);
                assert_text(db, key, bytes_of(i, len), expire_ms);
                db_check(db);
            }
            free(copy);
        }
        assert_int_equal(db_count(db), ARRAY_LEN(key_lens));
        for (size_t k = 0; k < ARRAY_LEN(key_lens); k++) {
            struct entry e;
            assert_true(find(db, bytes_of(k, key_lens[k]), &e));
            assert_true(entry_memory(&e) >= key_lens[k]);
            entry_delete(&e);
            db_check(db);
        }
        destroy(&f);
    }
}

static void a_value_grows_in_its_record(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    char expected[700];
    put(db, BYTES_LIT("k"), BYTES_LIT(""), NOW + 5);
    for (size_t i = 0; i < sizeof(expected); i++) {
        struct entry e;
        expected[i] = (char)('a' + i % 26);
        assert_true(find(db, BYTES_LIT("k"), &e));
        assert_int_equal(string_write(&e.value, i, BYTES(expected + i, 1)), ST_OK);
        assert_int_equal(e.expire_ms, NOW + 5);
        assert_text(db, BYTES_LIT("k"), BYTES(expected, i + 1), NOW + 5);
        db_check(db);
    }
    destroy(&f);
}

static void types_replace_each_other(void **state) {
    struct fixture f;
    create(&f, SMALL_CHUNK, 8, 64);
    struct db *db = f.set->dbs[0];
    for (uint64_t fields = 1; fields < 2000; fields = fields * 3 + 1) {
        struct entry e;
        put(db, BYTES_LIT("k"), bytes_of(1, fields * 10), NOW + 1000);
        assert_true(find(db, BYTES_LIT("k"), &e));
        struct value_image image = {.encoding = VALUE_PACKED,
                                    .data = BYTES(hash_empty, HASH_EMPTY_LEN)};
        assert_int_equal(entry_replace(&e, VALUE_HASH, &image, e.expire_ms), ST_OK);
        for (uint64_t i = 0; i < fields; i++) {
            char text[NUMBER_I64_MAX_LEN];
            assert_int_equal(hash_set(&e.value, number(text, i), BYTES_LIT("x"), NULL), ST_OK);
        }
        assert_int_equal(e.expire_ms, NOW + 1000);
        assert_int_equal(hash_count(&e.value), fields);
        assert_true(entry_memory(&e) > fields);
        db_check(db);
    }
    put(db, BYTES_LIT("k"), BYTES_LIT("1"), DB_NO_EXPIRY);
    while (reaper_run(f.set, 1)) {
    }
    destroy(&f);
}

/* Grow a packed hash to the end of its record; close to it, after each field, it must still take an
 * expiry and the longest name, since EXPIRE, RENAME and COPY cannot turn it into a table. */
static void a_full_record_takes_expiry_and_longer_names(void **state) {
    static const size_t chunks[] = {SMALL_CHUNK, LARGE_CHUNK};
    for (size_t c = 0; c < ARRAY_LEN(chunks); c++) {
        struct fixture f;
        struct entry e, copy;
        create(&f, chunks[c], SIZE_MAX, SIZE_MAX);
        struct db *db = f.set->dbs[0], *other = f.set->dbs[1];
        add_hash(db, BYTES_LIT("k"), DB_NO_EXPIRY, &e);
        for (uint64_t i = 0; e.value.encoding == VALUE_PACKED; i++) {
            char text[NUMBER_I64_MAX_LEN];
            assert_int_equal(hash_set(&e.value, number(text, i), bytes_of(i, 5), NULL), ST_OK);
            if (e.value.len + 3000 > arena_record_max(&db->arena)) {
                struct bytes key = bytes_of(1, DB_KEY_INLINE_MAX);
                assert_int_equal(entry_copy(&e, other, key, hash_bytes(key)), ST_OK);
                assert_true(find(other, bytes_of(1, DB_KEY_INLINE_MAX), &copy));
                assert_int_equal(entry_set_expiry(&copy, NOW + 1), ST_OK);
                entry_delete(&copy);
            }
        }
        destroy(&f);
    }
}

/* ---- rename, move, copy -------------------------------------------------------------------- */

enum kind { SHORT, LONG, INTEGER, PACKED, TABLE, KINDS };

static void make(struct db *db, struct bytes key, enum kind kind, int64_t expire_ms) {
    struct entry e;
    if (find(db, key, &e)) {
        entry_delete(&e);
    }
    if (kind <= INTEGER) {
        put(db, key,
            kind == SHORT  ? BYTES_LIT("short")
            : kind == LONG ? bytes_of(7, 9000)
                           : BYTES_LIT("12345"),
            expire_ms);
        return;
    }
    add_hash(db, key, expire_ms, &e);
    for (uint64_t i = 0; i < (kind == PACKED ? 5 : 200); i++) {
        char text[NUMBER_I64_MAX_LEN];
        assert_int_equal(hash_set(&e.value, number(text, i), number(text, i), NULL), ST_OK);
    }
}

static void assert_kind(struct db *db, struct bytes key, enum kind kind, int64_t expire_ms) {
    struct entry e;
    struct bytes value;
    if (kind <= INTEGER) {
        assert_text(db, key,
                    kind == SHORT  ? BYTES_LIT("short")
                    : kind == LONG ? bytes_of(7, 9000)
                                   : BYTES_LIT("12345"),
                    expire_ms);
        return;
    }
    assert_true(find(db, key, &e));
    assert_int_equal(e.expire_ms, expire_ms);
    assert_int_equal(e.value.type, VALUE_HASH);
    assert_int_equal(e.value.encoding, kind == PACKED ? VALUE_PACKED : VALUE_HEAP);
    assert_int_equal(hash_count(&e.value), kind == PACKED ? 5 : 200);
    assert_true(hash_get(&e.value, BYTES_LIT("4"), &value));
    assert_true(bytes_equal(value, BYTES_LIT("4")));
}

static struct bytes from_key(int variant) {
    return variant & 1 ? bytes_of(100, 5000) : BYTES_LIT("from");
}

static struct bytes to_key(int variant) {
    return variant & 2 ? bytes_of(200, 3000) : BYTES_LIT("to");
}

/* Every kind onto every kind or nothing, both with and without expiry, boxed keys too, in one
 * database and across two. */
static void each_pair_of_kinds(bool copy) {
    struct fixture f;
    create(&f, SMALL_CHUNK, 8, 64);
    for (int variant = 0; variant < 8; variant++) {
        struct db *from = f.set->dbs[0], *to = f.set->dbs[variant & 4 ? 1 : 0];
        for (int k = 0; k < KINDS * (KINDS + 1) * 4; k++) {
            enum kind source = (enum kind)(k % KINDS),
                      target = (enum kind)(k / KINDS % (KINDS + 1));
            int64_t source_ms = k / (KINDS * (KINDS + 1)) % 2 ? NOW + 100 : DB_NO_EXPIRY;
            int64_t target_ms = k / (KINDS * (KINDS + 1)) / 2 ? NOW + 200 : DB_NO_EXPIRY;
            make(from, from_key(variant), source, source_ms);
            if (target != KINDS) {
                make(to, to_key(variant), target, target_ms);
            }
            struct entry e;
            assert_true(find(from, from_key(variant), &e));
            struct bytes key = to_key(variant);
            assert_int_equal((copy ? entry_copy : entry_move)(&e, to, key, hash_bytes(key)), ST_OK);
            assert_kind(to, to_key(variant), source, source_ms);
            if (copy) {
                assert_kind(from, from_key(variant), source, source_ms);
                assert_true(find(from, from_key(variant), &e));
                entry_delete(&e);
                assert_kind(to, to_key(variant), source, source_ms);
            }
            assert_absent(from, from_key(variant));
            check_all(&f);
            assert_true(find(to, to_key(variant), &e));
            entry_delete(&e);
        }
    }
    assert_int_equal(db_count(f.set->dbs[0]) + db_count(f.set->dbs[1]), 0);
    assert_int_equal(dbset_next_due_ms(f.set), INT64_MAX);
    destroy(&f);
}

static void moving_keeps_value_and_expiry(void **state) {
    each_pair_of_kinds(false);
}

static void copying_makes_a_second_value(void **state) {
    each_pair_of_kinds(true);
}

#ifndef GC_ARENA_GUARDED
/* Writes into another database than the client's own must not let its dead records pile up. */
static void copies_into_another_database_leave_it_lean(void **state) {
    struct fixture f;
    struct rng rng;
    rng_init(&rng, 3);
    create(&f, SMALL_CHUNK, 128, 64);
    struct db *from = f.set->dbs[0], *to = f.set->dbs[1];
    for (int i = 0; i < 60000; i++) {
        char text[NUMBER_I64_MAX_LEN];
        struct entry e;
        put(from, BYTES_LIT("k"), bytes_of(1, rng_below(&rng, 800)), DB_NO_EXPIRY);
        db_after_write(from, 1);
        assert_true(find(from, BYTES_LIT("k"), &e));
        struct bytes key = number(text, rng_below(&rng, 500));
        assert_int_equal(entry_copy(&e, to, key, hash_bytes(key)), ST_OK);
        db_after_write(from, 1);
    }
    struct db_memory memory;
    db_get_memory(to, &memory);
    print_message("live %zu reserved %zu\n", memory.arena.live_bytes, memory.arena.reserved_bytes);
    assert_true(memory.arena.reserved_bytes <= memory.arena.live_bytes * 5 / 4 + 2 * SMALL_CHUNK);
    destroy(&f);
}
#endif

/* ---- access -------------------------------------------------------------------------------- */

static void idle_seconds_count_from_the_last_touch(void **state) {
    struct fixture f;
    struct entry e;
    create(&f, LARGE_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    uint64_t hash = hash_bytes(BYTES_LIT("k"));
    put(db, BYTES_LIT("k"), BYTES_LIT("v"), DB_NO_EXPIRY);
    f.set->now_ms += 5000;
    assert_true(db_find(db, BYTES_LIT("k"), hash, DB_NO_TOUCH, &e));
    assert_int_equal(entry_idle_seconds(&e), 5);
    assert_true(db_find(db, BYTES_LIT("k"), hash, DB_TOUCH, &e));
    assert_int_equal(entry_idle_seconds(&e), 0);
    f.set->now_ms += INT64_C(3600000) * 24 * 100;
    assert_true(db_find(db, BYTES_LIT("k"), hash, DB_NO_TOUCH, &e));
    assert_int_equal(entry_idle_seconds(&e), 3600 * 24 * 100);
    assert_int_equal(entry_set_expiry(&e, f.set->now_ms + 9), ST_OK);
    assert_int_equal(entry_idle_seconds(&e), 3600 * 24 * 100);
    entry_set_idle_seconds(&e, 77);
    assert_int_equal(entry_idle_seconds(&e), 77);
    f.set->now_ms += 3000;
    assert_int_equal(entry_idle_seconds(&e), 80);
    entry_set_idle_seconds(&e, UINT64_MAX);
    assert_int_equal(entry_idle_seconds(&e), DB_IDLE_MAX);
    assert_int_equal(f.set->stats.hits, 1);
    assert_false(db_find(db, BYTES_LIT("x"), hash_bytes(BYTES_LIT("x")), DB_TOUCH, &e));
    assert_false(db_find(db, BYTES_LIT("x"), hash_bytes(BYTES_LIT("x")), DB_NO_TOUCH, &e));
    assert_int_equal(f.set->stats.misses, 1);
    destroy(&f);
}

static void a_touch_in_a_calm_writes_nothing(void **state) {
    struct fixture f;
    struct entry e;
    create(&f, LARGE_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    uint64_t hash = hash_bytes(BYTES_LIT("k"));
    put(db, BYTES_LIT("k"), BYTES_LIT("v"), DB_NO_EXPIRY);
    f.set->now_ms += 5000;
    calm_set(true);
    assert_true(db_find(db, BYTES_LIT("k"), hash, DB_TOUCH, &e));
    assert_int_equal(entry_idle_seconds(&e), 5);
    assert_int_equal(f.set->stats.hits, 1);
    calm_set(false);
    assert_true(db_find(db, BYTES_LIT("k"), hash, DB_TOUCH, &e));
    assert_int_equal(entry_idle_seconds(&e), 0);
    destroy(&f);
}

static void prefetching_changes_nothing(void **state) {
    struct fixture f;
    struct value value;
    create(&f, LARGE_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    uint64_t hash = hash_bytes(BYTES_LIT("k"));
    db_prefetch_index(db, hash);
    assert_true(db_prefetch_record(db, hash) == SWISS_NONE);
    put(db, BYTES_LIT("k"), BYTES_LIT("v"), DB_NO_EXPIRY);
    db_prefetch_index(db, hash);
    uint64_t ref = db_prefetch_record(db, hash);
    assert_true(ref != SWISS_NONE);
    db_peek_likely(db, ref, &value);
    assert_int_equal(value.type, VALUE_STRING);
    assert_int_equal(value.len, 1);
    destroy(&f);
}

int main(void) {
    hash_setup_seed(12345);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_come_and_go),
        cmocka_unit_test(every_key_length_takes_every_value_length),
        cmocka_unit_test(a_value_grows_in_its_record),
        cmocka_unit_test(types_replace_each_other),
        cmocka_unit_test(a_full_record_takes_expiry_and_longer_names),
        cmocka_unit_test(moving_keeps_value_and_expiry),
        cmocka_unit_test(copying_makes_a_second_value),
#ifndef GC_ARENA_GUARDED
        cmocka_unit_test(copies_into_another_database_leave_it_lean),
#endif
        cmocka_unit_test(idle_seconds_count_from_the_last_touch),
        cmocka_unit_test(a_touch_in_a_calm_writes_nothing),
        cmocka_unit_test(prefetching_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
