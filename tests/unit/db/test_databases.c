/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole databases: expiry, walks, random keys, flush, swap, the reaper, evacuation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

static void put_number(struct db *db, uint64_t n, int64_t expire_ms) {
    char text[NUMBER_I64_MAX_LEN];
    put(db, number(text, n), bytes_of(n, n % 40), expire_ms);
}

static bool find_number(struct db *db, uint64_t n, struct entry *e) {
    char text[NUMBER_I64_MAX_LEN];
    return find(db, number(text, n), e);
}

static uint64_t number_of(const struct entry *e) {
    int64_t n;
    assert_true(number_parse_i64(e->key, &n));
    return (uint64_t)n;
}

/* ---- expiry -------------------------------------------------------------------------------- */

static void expiry_is_set_changed_and_taken_away(void **state) {
    struct fixture f;
    struct entry e;
    create(&f, LARGE_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    assert_int_equal(dbset_next_due_ms(f.set), INT64_MAX);
    assert_int_equal(db_average_ttl_ms(db), 0);
    put_number(db, 1, DB_NO_EXPIRY);
    assert_true(find_number(db, 1, &e));
    static const int64_t times[] = {NOW + 10,   NOW + 20,  NOW + 5, DB_NO_EXPIRY, DB_NO_EXPIRY,
                                    NOW + 1000, INT64_MAX, NOW + 1, NOW + 1,      DB_NO_EXPIRY};
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        assert_int_equal(entry_set_expiry(&e, times[i]), ST_OK);
        assert_int_equal(e.expire_ms, times[i]);
        assert_true(find_number(db, 1, &e));
        assert_int_equal(e.expire_ms, times[i]);
        assert_int_equal(dbset_next_due_ms(f.set), times[i] == DB_NO_EXPIRY ? INT64_MAX : times[i]);
        db_check(db);
    }
    destroy(&f);
}

static void a_due_key_is_gone(void **state) {
    struct fixture f;
    struct entry e;
    struct rng rng;
    rng_init(&rng, 1);
    create(&f, LARGE_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    static const int64_t past[] = {NOW - 1, NOW - 2, 0, -1, INT64_MIN + 1};
    for (uint64_t i = 0; i < ARRAY_LEN(past); i++) {
        put_number(db, i, past[i]);
        assert_false(db_random(db, &rng, &e));
        assert_int_equal(db_count(db), 1);
        assert_false(find_number(db, i, &e));
        assert_int_equal(db_count(db), 0);
        put_number(db, i, DB_NO_EXPIRY);
        assert_true(find_number(db, i, &e));
        assert_int_equal(entry_set_expiry(&e, past[i]), ST_OK);
        assert_false(find_number(db, i, &e));
        db_check(db);
    }
    assert_int_equal(f.set->stats.expired, 2 * ARRAY_LEN(past));
    put_number(db, 1, NOW + 1);
    assert_true(find_number(db, 1, &e));
    f.set->now_ms++; /* its last millisecond */
    assert_true(find_number(db, 1, &e));
    f.set->now_ms++;
    assert_false(find_number(db, 1, &e));
    destroy(&f);
}

static void a_key_renamed_onto_a_due_one_replaces_it(void **state) {
    struct fixture f;
    struct entry e;
    create(&f, LARGE_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    put(db, BYTES_LIT("a"), BYTES_LIT("x"), DB_NO_EXPIRY);
    put(db, BYTES_LIT("b"), bytes_of(1, 9000), NOW + 1);
    f.set->now_ms += 2;
    assert_true(find(db, BYTES_LIT("a"), &e));
    assert_int_equal(entry_move(&e, db, BYTES_LIT("b"), hash_bytes(BYTES_LIT("b"))), ST_OK);
    assert_text(db, BYTES_LIT("b"), BYTES_LIT("x"), DB_NO_EXPIRY);
    assert_int_equal(db_count(db), 1);
    destroy(&f);
}

static void exactly_the_due_keys_are_deleted_in_order(void **state) {
    enum { KEYS = 3000, TIMES = 500 };
    struct fixture f;
    struct rng rng;
    struct entry e;
    int64_t *due = calloc(KEYS, sizeof(*due));
    rng_init(&rng, 2);
    create(&f, SMALL_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    for (uint64_t i = 0; i < KEYS; i++) {
        due[i] = i % 5 == 0 ? DB_NO_EXPIRY : NOW + 1 + (int64_t)rng_below(&rng, TIMES);
        put_number(db, i, due[i]);
    }
    uint64_t left = KEYS;
    for (int64_t t = 0; t <= TIMES; t += 7) {
        f.set->now_ms = NOW + t;
        uint64_t is_due = 0;
        for (uint64_t i = 0; i < KEYS; i++) {
            is_due += due[i] != DB_NO_EXPIRY && due[i] >= NOW + t - 7 && due[i] < NOW + t;
        }
        if (is_due > 3) {
            int64_t before = dbset_next_due_ms(f.set);
            assert_true(db_expire_due(db, 3));
            assert_int_equal(db_count(db), left - 3);
            assert_true(dbset_next_due_ms(f.set) >= before);
        }
        assert_false(db_expire_due(db, KEYS));
        left -= is_due;
        assert_int_equal(db_count(db), left);
        assert_true(dbset_next_due_ms(f.set) >= f.set->now_ms);
    }
    f.set->now_ms = NOW + TIMES + 1;
    while (db_expire_due(db, 10)) {
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        assert_int_equal(find_number(db, i, &e), due[i] == DB_NO_EXPIRY);
    }
    assert_int_equal(dbset_next_due_ms(f.set), INT64_MAX);
    assert_int_equal(f.set->stats.expired, KEYS - KEYS / 5);
    free(due);
    destroy(&f);
}

static void the_next_due_time_is_that_of_all_databases(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 128, 64);
    put_number(f.set->dbs[0], 1, NOW + 300);
    put_number(f.set->dbs[3], 1, NOW + 100);
    put_number(f.set->dbs[2], 1, NOW + 200);
    assert_int_equal(dbset_next_due_ms(f.set), NOW + 100);
    dbset_flush(f.set, 3);
    assert_int_equal(dbset_next_due_ms(f.set), NOW + 200);
    destroy(&f);
}

static void the_mean_ttl_is_estimated(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    put_number(db, 0, NOW + 1000);
    assert_int_equal(db_average_ttl_ms(db), 1000);
    put_number(db, 1, NOW - 5000); /* due: counts as none */
    assert_int_equal(db_average_ttl_ms(db), 500);
    for (uint64_t i = 2; i < 2000; i++) {
        put_number(db, i, NOW + (int64_t)i);
    }
    assert_in_range(db_average_ttl_ms(db), 950, 1050);
    destroy(&f);
}

/* ---- walks --------------------------------------------------------------------------------- */

struct seen {
    uint8_t times[20000];
    uint64_t count;
};

static void mark(void *arg, struct entry *e) {
    struct seen *seen = arg;
    seen->times[number_of(e)]++;
    seen->count++;
}

static void walks_leave_out_what_is_due(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    for (uint64_t i = 0; i < 1000; i++) {
        put_number(db, i, i % 4 == 0 ? NOW - 1 : i % 4 == 1 ? NOW + 1 : DB_NO_EXPIRY);
    }
    struct seen *seen = calloc(2, sizeof(*seen));
    uint64_t cursor = 0;
    do {
        cursor = db_scan(db, cursor, 10, mark, &seen[0]);
    } while (cursor != 0);
    db_each(db, mark, &seen[1]);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(seen[0].times[i], i % 4 != 0);
        assert_int_equal(seen[1].times[i], i % 4 != 0);
    }
    free(seen);
    destroy(&f);
}

static void a_scan_sees_what_stays_while_keys_come_and_go(void **state) {
    enum { STAY = 4000 };
    for (int direction = 0; direction < 2; direction++) {
        struct fixture f;
        struct rng rng;
        struct entry e;
        rng_init(&rng, 5);
        create(&f, SMALL_CHUNK, 128, 64);
        struct db *db = f.set->dbs[0];
        uint64_t last = direction ? 20000 : STAY;
        for (uint64_t i = 0; i < last; i++) {
            put_number(db, i, i % 3 ? DB_NO_EXPIRY : NOW + (int64_t)i + 1);
        }
        struct seen *seen = calloc(1, sizeof(*seen));
        uint64_t cursor = 0;
        do {
            cursor = db_scan(db, cursor, 10, mark, seen);
            for (int k = 0; k < 30; k++) {
                if (direction == 0 && last < 20000) {
                    put_number(db, last++, DB_NO_EXPIRY);
                } else if (direction == 1 && last > STAY) {
                    assert_true(find_number(db, --last, &e));
                    entry_delete(&e);
                }
                put_number(db, rng_below(&rng, STAY), DB_NO_EXPIRY); /* moves records */
                db_after_write(db, 2);
            }
        } while (cursor != 0);
        for (uint64_t i = 0; i < STAY; i++) {
            assert_int_equal(seen->times[i], 1);
        }
        free(seen);
        destroy(&f);
    }
}

static void random_keys_are_uniform(void **state) {
    enum { KEYS = 2000, PICKS = 100000 };
    struct fixture f;
    struct rng rng;
    struct entry e;
    rng_init(&rng, 8);
    create(&f, LARGE_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    assert_false(db_random(db, &rng, &e));
    for (uint64_t i = 0; i < KEYS; i++) {
        put_number(db, i, i % 2 ? NOW + 1000 : DB_NO_EXPIRY);
    }
    uint32_t *hits = calloc(KEYS, sizeof(*hits));
    for (int i = 0; i < PICKS; i++) {
        assert_true(db_random(db, &rng, &e));
        assert_true(e.hash == hash_bytes(e.key));
        hits[number_of(&e)]++;
    }
    double sum = 0, expected = (double)PICKS / KEYS;
    for (int i = 0; i < KEYS; i++) {
        sum += (hits[i] - expected) * (hits[i] - expected) / expected;
    }
    print_message("chi-square %.0f of %d keys\n", sum, KEYS);
    assert_true(sum < KEYS - 1 + 4 * 63.2); /* standard deviation: sqrt(2 * 1999) */
    f.set->now_ms = NOW + 1001;
    for (int i = 0; i < 1000; i++) {
        assert_true(db_random(db, &rng, &e));
        assert_int_equal(number_of(&e) % 2, 0);
    }
    free(hits);
    destroy(&f);
}

/* ---- flush, swap, reaper ------------------------------------------------------------------- */

static void fill_with_everything(struct db *db) {
    struct entry e;
    for (uint64_t i = 0; i < 3000; i++) {
        put_number(db, i, i % 2 ? NOW + 100 : DB_NO_EXPIRY);
    }
    for (uint64_t i = 0; i < 200; i++) {
        put(db, bytes_of(i, 3000), bytes_of(i, 5000), NOW + 5); /* both stand alone */
    }
    put(db, BYTES_LIT("huge"), bytes_of(1, (size_t)3 << 20), DB_NO_EXPIRY);
    for (uint64_t h = 0; h < 3; h++) {
        add_hash(db, bytes_of(h, 20), DB_NO_EXPIRY, &e);
        for (uint64_t i = 0; i < 3000; i++) {
            char text[NUMBER_I64_MAX_LEN];
            assert_int_equal(hash_set(&e.value, number(text, i), bytes_of(i, 20), NULL), ST_OK);
        }
        assert_int_equal(hash_set(&e.value, BYTES_LIT("big"), bytes_of(1, 100000), NULL), ST_OK);
    }
}

static void a_flush_is_seen_at_once_and_freed_in_steps(void **state) {
    struct fixture f;
    create(&f, SMALL_CHUNK, 128, 64);
    size_t empty = account_bytes(ACCOUNT_VALUE) + account_bytes(ACCOUNT_INDEX) +
                   account_bytes(ACCOUNT_ARENA) + account_bytes(ACCOUNT_ORDER);
    fill_with_everything(f.set->dbs[1]);
    put_number(f.set->dbs[2], 1, NOW + 7);
    dbset_flush(f.set, 1);
    assert_int_equal(db_count(f.set->dbs[1]), 0);
    assert_int_equal(dbset_next_due_ms(f.set), NOW + 7);
    put_number(f.set->dbs[1], 1, DB_NO_EXPIRY);
    size_t steps = 0;
    while (reaper_run(f.set, 1)) {
        steps++;
        put_number(f.set->dbs[1], steps, DB_NO_EXPIRY);
    }
    assert_true(steps > 20);
    assert_int_equal(f.set->reap_count, 0);
    dbset_flush(f.set, 1);
    dbset_flush(f.set, 2);
    dbset_flush(f.set, 2);
    assert_false(reaper_run(f.set, SIZE_MAX));
    size_t held = account_bytes(ACCOUNT_VALUE) + account_bytes(ACCOUNT_INDEX) +
                  account_bytes(ACCOUNT_ARENA) + account_bytes(ACCOUNT_ORDER);
    assert_int_equal(held, empty);
    destroy(&f);
}

static void a_flush_without_memory_happens_here_and_now(void **state) {
    struct fixture f;
    create(&f, SMALL_CHUNK, 128, 64);
    fill_with_everything(f.set->dbs[0]);
    account_fail_after(1);
    dbset_flush(f.set, 0);
    account_fail_after(0);
    assert_int_equal(db_count(f.set->dbs[0]), 0);
    db_check(f.set->dbs[0]);
    reaper_run(f.set, SIZE_MAX); /* big values may still wait */
    put_number(f.set->dbs[0], 1, NOW + 1);
    destroy(&f);
}

static void big_values_are_freed_in_the_background(void **state) {
    struct fixture f;
    struct entry e;
    create(&f, SMALL_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    fill_with_everything(db);
    assert_true(find(db, bytes_of(0, 20), &e));
    entry_delete(&e);
    assert_int_equal(f.set->reap_count, 1);
    put(db, bytes_of(1, 20), BYTES_LIT("x"), DB_NO_EXPIRY);
    put(db, BYTES_LIT("huge"), BYTES_LIT("x"), DB_NO_EXPIRY);
    assert_int_equal(f.set->reap_count, 3);
    put(db, bytes_of(5, 3000), BYTES_LIT("x"), DB_NO_EXPIRY); /* small: at once */
    assert_int_equal(f.set->reap_count, 3);
    assert_true(reaper_run(f.set, 1));
    assert_false(reaper_run(f.set, SIZE_MAX));
    assert_int_equal(f.set->stats.reaped_objects, 3);
    destroy(&f);
}

static void add_long_list(struct db *db, struct bytes key, struct entry *e) {
    struct value_image image = {.encoding = VALUE_PACKED,
                                .data = BYTES(list_empty, LIST_EMPTY_LEN)};
    assert_int_equal(db_add(db, key, hash_bytes(key), VALUE_LIST, &image, DB_NO_EXPIRY, e), ST_OK);
    for (uint64_t i = 0; i < 100000; i++) {
        assert_int_equal(list_push(&e->value, LIST_TAIL, bytes_of(i, 100)), ST_OK);
    }
}

static void what_a_list_drops_is_freed_in_the_background(void **state) {
    struct fixture f;
    struct entry e;
    create(&f, SMALL_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    add_long_list(db, BYTES_LIT("list"), &e);
    size_t full = value_heap_bytes(&e.value), steps = 0;
    assert_int_equal(list_remove(&e.value, 100, 99000), 99000);
    assert_int_equal(list_remove(&e.value, 100, 100), 100);
    assert_int_equal(f.set->reap_count, 1);
    assert_true(value_heap_bytes(&e.value) > full / 2);
    while (reaper_run(f.set, 1)) {
        steps++;
        assert_true(find(db, BYTES_LIT("list"), &e));
        value_check(&e.value);
    }
    assert_true(steps > 10);
    assert_true(find(db, BYTES_LIT("list"), &e));
    assert_int_equal(list_count(&e.value), 900);
    assert_true(value_heap_bytes(&e.value) < full / 20);
    assert_int_equal(f.set->reap_count, 0);
    assert_int_equal(f.set->stats.reaped_objects, 0);
    destroy(&f);
}

/* Deleted, replaced, moved and flushed before the reaper came. */
static void a_list_can_go_while_it_is_being_swept(void **state) {
    struct fixture f;
    struct entry e;
    create(&f, SMALL_CHUNK, 128, 64);
    for (int way = 0; way < 4; way++) {
        struct db *db = f.set->dbs[0];
        add_long_list(db, BYTES_LIT("list"), &e);
        assert_int_equal(list_remove(&e.value, 0, 99500), 99500);
        reaper_run(f.set, 1);
        assert_true(find(db, BYTES_LIT("list"), &e));
        if (way == 0) {
            entry_delete(&e);
        } else if (way == 1) {
            put(db, BYTES_LIT("list"), BYTES_LIT("x"), DB_NO_EXPIRY);
        } else if (way == 2) {
            struct bytes other = BYTES_LIT("other");
            assert_int_equal(entry_move(&e, f.set->dbs[1], other, hash_bytes(other)), ST_OK);
        } else {
            dbset_flush(f.set, 0);
        }
        assert_false(reaper_run(f.set, SIZE_MAX));
        check_all(&f);
        dbset_flush(f.set, 0);
    }
    destroy(&f);
}

/* A long string is one block, but of many OS pages. */
static void long_strings_are_freed_in_steps(void **state) {
    struct fixture f;
    struct entry e;
    create(&f, SMALL_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    const size_t len = (size_t)9 << 20;
    char *text = calloc(1, len);
    assert_non_null(text);
    put(db, BYTES_LIT("long"), BYTES(text, len), DB_NO_EXPIRY);
    free(text);
    assert_true(account_bytes(ACCOUNT_VALUE) >= len);
    assert_true(find(db, BYTES_LIT("long"), &e));
    entry_delete(&e);
    size_t steps = 0;
    while (reaper_run(f.set, 1)) {
        steps++;
    }
    assert_true(steps >= 4);
    assert_int_equal(account_bytes(ACCOUNT_VALUE), 0);
    destroy(&f);
}

static void a_set_can_end_with_work_left(void **state) {
    struct fixture f;
    create(&f, SMALL_CHUNK, 128, 64);
    fill_with_everything(f.set->dbs[0]);
    dbset_flush(f.set, 0);
    reaper_run(f.set, 200);
    fill_with_everything(f.set->dbs[0]);
    dbset_flush(f.set, 0);
    fill_with_everything(f.set->dbs[3]);
    destroy(&f);
}

static void databases_swap(void **state) {
    struct fixture f;
    struct entry e;
    create(&f, LARGE_CHUNK, 128, 64);
    put_number(f.set->dbs[0], 1, NOW + 10);
    put_number(f.set->dbs[1], 2, DB_NO_EXPIRY);
    dbset_swap(f.set, 0, 1);
    assert_true(find_number(f.set->dbs[0], 2, &e));
    assert_false(find_number(f.set->dbs[0], 1, &e));
    assert_true(find_number(f.set->dbs[1], 1, &e));
    assert_int_equal(e.expire_ms, NOW + 10);
    assert_int_equal(entry_set_expiry(&e, NOW + 11), ST_OK);
    dbset_swap(f.set, 1, 1);
    assert_true(find_number(f.set->dbs[1], 1, &e));
    f.set->now_ms += 20;
    assert_false(db_expire_due(f.set->dbs[1], 9));
    assert_int_equal(db_count(f.set->dbs[1]), 0);
    destroy(&f);
}

static void a_fresh_set_takes_the_place_of_the_live_one(void **state) {
    struct fixture f;
    struct dbset *fresh;
    struct entry e;
    create(&f, SMALL_CHUNK, 128, 64);
    fill_with_everything(f.set->dbs[1]);
    put_number(f.set->dbs[0], 1, NOW + 10);
    assert_int_equal(dbset_create(&f.set->env, DATABASES, &fresh), ST_OK);
    fresh->now_ms = NOW - 1;
    put_number(fresh->dbs[0], 2, NOW + 20);
    fill_with_everything(fresh->dbs[2]);
    uint64_t keys = db_count(fresh->dbs[2]);
    dbset_take(f.set, fresh);
    assert_int_equal(f.set->reap_count, DATABASES);
    assert_true(find_number(f.set->dbs[0], 2, &e));
    assert_ptr_equal(e.db->set, f.set);
    assert_false(find_number(f.set->dbs[0], 1, &e));
    assert_int_equal(db_count(f.set->dbs[1]), 0);
    assert_int_equal(db_count(f.set->dbs[2]), keys);
    assert_true(reaper_run(f.set, 1));
    put_number(f.set->dbs[1], 7, DB_NO_EXPIRY);
    f.set->now_ms = NOW + 30;
    assert_false(db_expire_due(f.set->dbs[0], 9));
    assert_int_equal(f.set->stats.expired, 1);
    assert_false(reaper_run(f.set, SIZE_MAX));
    destroy(&f);
}

static void a_fresh_set_is_taken_without_memory_too(void **state) {
    struct fixture f;
    struct dbset *fresh;
    struct entry e;
    create(&f, SMALL_CHUNK, 128, 64);
    fill_with_everything(f.set->dbs[1]);
    assert_int_equal(dbset_create(&f.set->env, DATABASES, &fresh), ST_OK);
    put_number(fresh->dbs[1], 2, NOW + 20);
    account_fail_after(1);
    dbset_take(f.set, fresh);
    account_fail_after(0);
    assert_true(find_number(f.set->dbs[1], 2, &e));
    destroy(&f);
}

static void a_set_that_cannot_be_made_leaves_nothing(void **state) {
    struct fixture f;
    create(&f, LARGE_CHUNK, 128, 64);
    struct dbset *other;
    size_t held = total_bytes();
    for (size_t fail = 1; fail <= 16; fail++) {
        account_fail_after(fail);
        assert_int_equal(dbset_create(&f.set->env, 16, &other), ST_NOMEM);
        account_fail_after(0);
        assert_int_equal(total_bytes(), held);
    }
    dbset_destroy(NULL);
    destroy(&f);
}

/* ---- evacuation ---------------------------------------------------------------------------- */

/* Records move under live expiries: index and tree must follow each of them. */
static void churn_with_expiries_stays_lean_and_right(void **state) {
    enum { KEYS = 8000 };
    struct fixture f;
    struct rng rng;
    struct entry e;
    struct db_memory memory;
    rng_init(&rng, 11);
    create(&f, SMALL_CHUNK, 128, 64);
    struct db *db = f.set->dbs[0];
    for (int i = 0; i < 120000; i++) {
        char text[NUMBER_I64_MAX_LEN];
        uint64_t n = rng_below(&rng, KEYS);
        if (rng_below(&rng, 4) == 0) {
            if (find_number(db, n, &e)) {
                entry_delete(&e);
            }
        } else {
            put(db, number(text, n), bytes_of(n, rng_below(&rng, 100)),
                rng_below(&rng, 2) ? NOW + 1 + (int64_t)rng_below(&rng, 1000) : DB_NO_EXPIRY);
        }
        db_after_write(db, 1);
        if (i % 20000 == 0) {
            db_check(db);
        }
    }
    db_get_memory(db, &memory);
    print_message("live %zu dead %zu reserved %zu\n", memory.arena.live_bytes,
                  memory.arena.dead_bytes, memory.arena.reserved_bytes);
    assert_true(memory.arena.reserved_bytes <= memory.arena.live_bytes * 5 / 4 + 2 * SMALL_CHUNK);
    db_check(db);
    f.set->now_ms = NOW + 1001;
    assert_false(db_expire_due(db, SIZE_MAX));
    db_check(db);
    assert_int_equal(dbset_next_due_ms(f.set), INT64_MAX);
    destroy(&f);
}

int main(void) {
    hash_setup_seed(12345);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expiry_is_set_changed_and_taken_away),
        cmocka_unit_test(a_due_key_is_gone),
        cmocka_unit_test(a_key_renamed_onto_a_due_one_replaces_it),
        cmocka_unit_test(exactly_the_due_keys_are_deleted_in_order),
        cmocka_unit_test(the_next_due_time_is_that_of_all_databases),
        cmocka_unit_test(the_mean_ttl_is_estimated),
        cmocka_unit_test(walks_leave_out_what_is_due),
        cmocka_unit_test(a_scan_sees_what_stays_while_keys_come_and_go),
        cmocka_unit_test(random_keys_are_uniform),
        cmocka_unit_test(a_flush_is_seen_at_once_and_freed_in_steps),
        cmocka_unit_test(a_flush_without_memory_happens_here_and_now),
        cmocka_unit_test(big_values_are_freed_in_the_background),
        cmocka_unit_test(what_a_list_drops_is_freed_in_the_background),
        cmocka_unit_test(a_list_can_go_while_it_is_being_swept),
        cmocka_unit_test(long_strings_are_freed_in_steps),
        cmocka_unit_test(a_set_can_end_with_work_left),
        cmocka_unit_test(databases_swap),
        cmocka_unit_test(a_fresh_set_takes_the_place_of_the_live_one),
        cmocka_unit_test(a_fresh_set_is_taken_without_memory_too),
        cmocka_unit_test(a_set_that_cannot_be_made_leaves_nothing),
        cmocka_unit_test(churn_with_expiries_stays_lean_and_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
