/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation a write needs fails in turn: the databases stay as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

/* Where each record is an allocation of its own, far more of them can fail. */
#ifdef GC_ARENA_GUARDED
#define MOVES 5
#else
#define MOVES 40
#endif

/* An arena and an index that are about to need memory at nearly every step: many keys of many
 * lengths, some with expiry, in small chunks. */
static void fill(struct fixture *f) {
    for (uint64_t i = 0; i < 300; i++) {
        char text[NUMBER_I64_MAX_LEN];
        put(f->set->dbs[0], number(text, i), bytes_of(i, i % 90),
            i % 2 ? NOW + 1 + (int64_t)i : DB_NO_EXPIRY);
    }
}

static void add_large(struct db *db, struct bytes key, int64_t expire_ms) {
    struct entry e;
    add_hash(db, key, expire_ms, &e);
    for (uint64_t i = 0; i < 50; i++) {
        char text[NUMBER_I64_MAX_LEN];
        assert_int_equal(hash_set(&e.value, number(text, i), number(text, i), NULL), ST_OK);
    }
    assert_int_equal(hash_set(&e.value, BYTES_LIT("box"), bytes_of(1, 30000), NULL), ST_OK);
}

static void assert_large(struct db *db, struct bytes key, int64_t expire_ms) {
    struct entry e;
    struct bytes value;
    assert_true(find(db, key, &e));
    assert_int_equal(e.expire_ms, expire_ms);
    assert_int_equal(hash_count(&e.value), 51);
    assert_true(hash_get(&e.value, BYTES_LIT("49"), &value));
    assert_true(bytes_equal(value, BYTES_LIT("49")));
}

static void adding_may_fail(void **state) {
    static const size_t key_lens[] = {10, 3000}, text_lens[] = {20, 5000};
    struct fixture f;
    size_t fails = 0;
    create(&f, SMALL_CHUNK, 8, 64);
    struct db *db = f.set->dbs[0];
    for (uint64_t i = 0; i < 2000; i++) {
        size_t key_len = key_lens[i % 17 == 0], text_len = text_lens[i % 13 == 0];
        int64_t expire_ms = i % 2 ? NOW + 1 + (int64_t)(i * 7919 % 3000) : DB_NO_EXPIRY;
        UNTIL_IT_SUCCEEDS(fails,
                          try_put(db, bytes_of(i, key_len), bytes_of(i, text_len), expire_ms), {
                              assert_absent(db, bytes_of(i, key_len));
                              assert_int_equal(db_count(db), i);
                              db_check(db);
                          });
        assert_text(db, bytes_of(i, key_len), bytes_of(i, text_len), expire_ms);
    }
    print_message("adding failed %zu times\n", fails);
    assert_true(fails > 300);
    destroy(&f);
}

static void replacing_may_fail(void **state) {
    static const size_t lens[] = {0, 20, 21, 300, 4000, 5000};
    struct fixture f;
    size_t fails = 0;
    create(&f, SMALL_CHUNK, 8, 64);
    struct db *db = f.set->dbs[0];
    fill(&f);
    size_t old_len = 0;
    int64_t old_ms = DB_NO_EXPIRY;
    put(db, BYTES_LIT("k"), bytes_of(0, 0), DB_NO_EXPIRY);
    for (uint64_t i = 1; i < 400; i++) {
        size_t len = lens[i * 31 % ARRAY_LEN(lens)];
        int64_t ms = i % 3 == 0 ? DB_NO_EXPIRY : NOW + (int64_t)(i % 7) + 1;
        UNTIL_IT_SUCCEEDS(fails, try_put(db, BYTES_LIT("k"), bytes_of(i, len), ms), {
            assert_text(db, BYTES_LIT("k"), bytes_of(i - 1, old_len), old_ms);
            db_check(db);
        });
        assert_text(db, BYTES_LIT("k"), bytes_of(i, len), ms);
        old_len = len;
        old_ms = ms;
        put(db, bytes_of(i, 9), bytes_of(i, len % 1000), ms); /* so that free lists run dry */
    }
    print_message("replacing failed %zu times\n", fails);
    assert_true(fails > 20);
    destroy(&f);
}

static enum status try_expiry(struct db *db, struct bytes key, int64_t expire_ms) {
    struct entry e;
    assert_true(find(db, key, &e));
    enum status st = entry_set_expiry(&e, expire_ms);
    assert_true(st != ST_OK || e.expire_ms == expire_ms);
    return st;
}

static void setting_expiry_may_fail(void **state) {
    struct fixture f;
    size_t fails = 0;
    create(&f, SMALL_CHUNK, 8, 64);
    struct db *db = f.set->dbs[0];
    for (uint64_t i = 0; i < 1500; i++) {
        char text[NUMBER_I64_MAX_LEN];
        struct bytes key = number(text, i);
        int64_t old_ms = DB_NO_EXPIRY;
        put(db, key, bytes_of(i, i % 90), old_ms);
        for (int k = 0; k < 3; k++) {
            int64_t ms =
                k == 2 ? DB_NO_EXPIRY : NOW + 1 + (int64_t)((i + 50 * (unsigned)k) * 7919 % 3001);
            UNTIL_IT_SUCCEEDS(fails, try_expiry(db, key, ms), {
                assert_text(db, key, bytes_of(i, i % 90), old_ms);
                db_check(db);
            });
            assert_text(db, key, bytes_of(i, i % 90), ms);
            old_ms = ms;
        }
        assert_int_equal(try_expiry(db, key, NOW + 1 + (int64_t)i), ST_OK);
    }
    print_message("setting an expiry failed %zu times\n", fails);
    assert_true(fails > 20);
    destroy(&f);
}

static enum status try_transfer(struct db *from, struct bytes key, struct db *to,
                                struct bytes new_key, bool copy) {
    struct entry e;
    assert_true(find(from, key, &e));
    return (copy ? entry_copy : entry_move)(&e, to, new_key, hash_bytes(new_key));
}

/* Targets: none, a text, a large hash; keys inline and boxed. */
static void moving_and_copying_may_fail(void **state) {
    size_t fails = 0;
    for (int variant = 0; variant < 24; variant++) {
        struct fixture f;
        create(&f, SMALL_CHUNK, 8, 64);
        bool copy = variant & 1, boxed = variant & 2, other = variant & 4;
        int target = variant / 8;
        struct db *from = f.set->dbs[0], *to = f.set->dbs[other];
        fill(&f);
        for (uint64_t i = 0; i < MOVES; i++) {
            char text[2][NUMBER_I64_MAX_LEN];
            struct bytes key = number(text[0], 1000000 + i);
            struct bytes new_key = boxed ? BYTES(NULL, 0) : number(text[1], 2000000 + i);
#define NEW_KEY (boxed ? bytes_of(i, 2500) : new_key)
            add_large(from, key, NOW + 9);
            if (target == 1) {
                put(to, NEW_KEY, BYTES_LIT("old"), DB_NO_EXPIRY);
            } else if (target == 2) {
                add_large(to, NEW_KEY, NOW + 10);
            }
            uint64_t count = db_count(from) + db_count(to);
            UNTIL_IT_SUCCEEDS(fails, try_transfer(from, key, to, NEW_KEY, copy), {
                assert_large(from, key, NOW + 9);
                assert_int_equal(db_count(from) + db_count(to), count);
                if (target == 0) {
                    assert_absent(to, NEW_KEY);
                } else if (target == 1) {
                    assert_text(to, NEW_KEY, BYTES_LIT("old"), DB_NO_EXPIRY);
                } else {
                    assert_large(to, NEW_KEY, NOW + 10);
                }
                check_all(&f);
            });
            assert_large(to, NEW_KEY, NOW + 9);
            if (copy) {
                assert_large(from, key, NOW + 9);
            } else {
                assert_absent(from, key);
            }
            reaper_run(f.set, SIZE_MAX);
        }
        check_all(&f);
        destroy(&f);
    }
    print_message("moving and copying failed %zu times\n", fails);
    assert_true(fails > 1000);
}

static enum status try_field(struct db *db, struct bytes field, struct bytes value) {
    struct entry e;
    assert_true(find(db, BYTES_LIT("h"), &e));
    return hash_set(&e.value, field, value, NULL);
}

/* The value's host is a real record here, with its expiry. */
static void growing_a_value_in_its_record_may_fail(void **state) {
    struct fixture f;
    struct entry e;
    size_t fails = 0;
    create(&f, SMALL_CHUNK, 40, 64);
    struct db *db = f.set->dbs[0];
    fill(&f);
    add_hash(db, BYTES_LIT("h"), NOW + 1, &e);
    for (uint64_t i = 0; i < 100; i++) {
        char text[NUMBER_I64_MAX_LEN];
        struct bytes field = number(text, i);
        UNTIL_IT_SUCCEEDS(fails, try_field(db, field, bytes_of(i, i % 60)), {
            assert_true(find(db, BYTES_LIT("h"), &e));
            assert_int_equal(hash_count(&e.value), i);
            assert_int_equal(e.expire_ms, NOW + 1);
            db_check(db);
        });
    }
    print_message("growing failed %zu times\n", fails);
    assert_true(fails > 10);
    destroy(&f);
}

/* Evacuation and expiry with no memory at all: nothing is lost, it goes on later. */
static void upkeep_without_memory_loses_nothing(void **state) {
    struct fixture f;
    struct entry e;
    create(&f, SMALL_CHUNK, 8, 64);
    struct db *db = f.set->dbs[0];
    for (uint64_t i = 0; i < 6000; i++) {
        char text[NUMBER_I64_MAX_LEN];
        put(db, number(text, i), bytes_of(i, 50), NOW + 1 + (int64_t)(i * 7919 % 6007));
    }
    for (uint64_t i = 0; i < 6000; i++) {
        char text[NUMBER_I64_MAX_LEN];
        if (i % 3 != 0 && find(db, number(text, i), &e)) {
            account_fail_after(1 + i % 3);
            entry_delete(&e);
            db_after_write(db, 1);
            account_fail_after(0);
        }
        if (i % 1000 == 0) {
            db_check(db);
        }
    }
    db_check(db);
    assert_int_equal(db_count(db), 2000);
    for (uint64_t i = 0; i < 6000; i += 3) {
        char text[NUMBER_I64_MAX_LEN];
        assert_text(db, number(text, i), bytes_of(i, 50), NOW + 1 + (int64_t)(i * 7919 % 6007));
    }
    f.set->now_ms = NOW + 7000;
    account_fail_after(1);
    assert_false(db_expire_due(db, SIZE_MAX));
    account_fail_after(0);
    assert_int_equal(db_count(db), 0);
    destroy(&f);
}

int main(void) {
    hash_setup_seed(12345);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adding_may_fail),
        cmocka_unit_test(replacing_may_fail),
        cmocka_unit_test(setting_expiry_may_fail),
        cmocka_unit_test(moving_and_copying_may_fail),
        cmocka_unit_test(growing_a_value_in_its_record_may_fail),
        cmocka_unit_test(upkeep_without_memory_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
