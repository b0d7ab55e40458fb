/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole databases: creation, walks, expiry, prefetch stages. */
#include "db/db.h"

#include <stdlib.h>

#include "mem/account.h"
#include "record_priv.h"

#define RANDOM_TRIES 100
#define TTL_SAMPLES 64

/* ---- life ---------------------------------------------------------------------------------- */

enum status dbset_create(const struct type_env *env, size_t count, struct dbset **out) {
    struct dbset *set = calloc(1, sizeof(*set));
    struct db **dbs = calloc(count, sizeof(*dbs));
    if (set == NULL || dbs == NULL) {
        goto fail;
    }
    set->env = *env;
    set->host = (struct value_host){
        .resize = entry_resize_value, .sweep_later = reaper_sweep_value, .env = &set->env};
    set->active_expire = true;
    for (size_t i = 0; i < count; i++) {
        dbs[i] = account_alloc(ACCOUNT_OTHER, sizeof(**dbs));
        if (dbs[i] == NULL) {
            goto fail;
        }
        db_init(dbs[i], set);
    }
    set->dbs = dbs;
    set->count = count;
    *out = set;
    return ST_OK;
fail:
    for (size_t i = 0; dbs != NULL && i < count; i++) {
        account_free(ACCOUNT_OTHER, dbs[i]);
    }
    free(dbs);
    free(set);
    return ST_NOMEM;
}

void dbset_destroy(struct dbset *set) {
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        reaper_take_db(set, set->dbs[i]);
    }
    while (reaper_run(set, SIZE_MAX)) {
    }
    free(set->dbs);
    free(set);
}

void dbset_flush(struct dbset *set, size_t number) {
    struct db *fresh = account_alloc(ACCOUNT_OTHER, sizeof(*fresh));
    if (fresh == NULL) {
        reaper_empty_db(set->dbs[number]);
        return;
    }
    db_init(fresh, set);
    reaper_take_db(set, set->dbs[number]);
    set->dbs[number] = fresh;
}

void dbset_swap(struct dbset *set, size_t a, size_t b) {
    struct db *db = set->dbs[a];
    set->dbs[a] = set->dbs[b];
    set->dbs[b] = db;
}

void dbset_take(struct dbset *set, struct dbset *fresh) {
    assert(set->count == fresh->count && fresh->reap_first == NULL);
    for (size_t i = 0; i < set->count; i++) {
        reaper_take_db(set, set->dbs[i]);
        set->dbs[i] = fresh->dbs[i];
        set->dbs[i]->set = set;
    }
    free(fresh->dbs);
    free(fresh);
}

uint64_t db_count(const struct db *db) {
    return swiss_count(&db->index);
}

uint64_t dbset_count(const struct dbset *set) {
    uint64_t keys = 0;
    for (size_t i = 0; i < set->count; i++) {
        keys += db_count(set->dbs[i]);
    }
    return keys;
}

void db_expect(struct db *db, uint64_t keys) {
    swiss_expect(&db->index, keys);
}

void db_get_memory(const struct db *db, struct db_memory *out) {
    out->index_bytes = swiss_bytes(&db->index);
    out->order_bytes = order_bytes(&db->expiries);
    arena_get_stats(&db->arena, &out->arena);
}

/* ---- walks --------------------------------------------------------------------------------- */

struct walk {
    struct db *db;
    db_visit fn;
    void *arg;
};

static void walk_visit(void *arg, uint64_t ref) {
    const struct walk *walk = arg;
    struct entry e;
    entry_load(walk->db, 0, ref, &e);
    if (e.expire_ms == DB_NO_EXPIRY || e.expire_ms >= walk->db->set->now_ms) {
        walk->fn(walk->arg, &e);
    }
}

uint64_t db_scan(struct db *db, uint64_t cursor, size_t want, db_visit fn, void *arg) {
    struct walk walk = {db, fn, arg};
    return swiss_scan(&db->index, cursor, want, walk_visit, &walk);
}

void db_each(struct db *db, db_visit fn, void *arg) {
    struct walk walk = {db, fn, arg};
    swiss_each(&db->index, walk_visit, &walk);
}

bool db_random(struct db *db, struct rng *rng, struct entry *out) {
    for (int tries = 0; tries < RANDOM_TRIES; tries++) {
        uint64_t ref = swiss_random(&db->index, rng);
        if (ref == SWISS_NONE) {
            return false;
        }
        entry_load(db, 0, ref, out);
        out->hash = db->index.ops->hash_of(db, ref);
        if (out->expire_ms == DB_NO_EXPIRY || out->expire_ms >= db->set->now_ms) {
            return true;
        }
    }
    return false;
}

/* ---- expiry -------------------------------------------------------------------------------- */

bool db_expire_due(struct db *db, size_t max_keys) {
    struct dbset *set = db->set;
    for (size_t done = 0; done < max_keys; done++) {
        struct order_entry due;
        if (!order_first(&db->expiries, &due) || order_key_to_i64(due.key) >= set->now_ms) {
            return false;
        }
        struct entry e;
        entry_load(db, db->index.ops->hash_of(db, due.ref), due.ref, &e);
        entry_delete(&e);
        set->stats.expired++;
        db_after_write(db, 1);
    }
    return true;
}

int64_t dbset_next_due_ms(const struct dbset *set) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < set->count; i++) {
        struct order_entry due;
        if (order_first(&set->dbs[i]->expiries, &due) && order_key_to_i64(due.key) < next) {
            next = order_key_to_i64(due.key);
        }
    }
    return next;
}

bool db_compact(struct db *db, size_t max_records) {
    return arena_wants_evacuation(&db->arena) && arena_evacuate(&db->arena, max_records);
}

int64_t db_average_ttl_ms(const struct db *db) {
    uint64_t count = order_count(&db->expiries);
    uint64_t samples = count < TTL_SAMPLES ? count : TTL_SAMPLES;
    long double sum = 0;
    for (uint64_t i = 0; i < samples; i++) {
        struct order_entry at;
        if (order_at(&db->expiries, i * count / samples, &at)) {
            int64_t left = order_key_to_i64(at.key) - db->set->now_ms;
            sum += left > 0 ? (long double)left : 0;
        }
    }
    return samples ? (int64_t)(sum / (long double)samples) : 0;
}

/* ---- batch stages -------------------------------------------------------------------------- */

void db_prefetch_index(const struct db *db, uint64_t hash) {
    swiss_prefetch(&db->index, hash);
}

uint64_t db_prefetch_record(const struct db *db, uint64_t hash) {
    uint64_t ref = swiss_likely(&db->index, hash);
    if (ref != SWISS_NONE) {
        db->index.ops->prefetch(db->index.owner, ref);
    }
    return ref;
}

void db_peek_likely(const struct db *db, uint64_t ref, struct value *out) {
    struct record r;
    record_read(record_at(db, ref), &r);
    *out = (struct value){.type = record_type(r.head),
                          .encoding = record_encoding(r.head),
                          .data = r.value_at,
                          .len = r.value_len,
                          .host = &db->set->host};
}

/* ---- check --------------------------------------------------------------------------------- */

struct check {
    struct db *db;
    uint64_t expires, heap;
};

static void check_visit(void *arg, uint64_t ref) {
    struct check *check = arg;
    struct record r;
    struct entry e;
    record_read(record_at(check->db, ref), &r);
    entry_load(check->db, 0, ref, &e);
    check->expires += e.expire_ms != DB_NO_EXPIRY;
    check->heap += (r.head & RECORD_KEY_BOXED) || e.value.encoding == VALUE_HEAP;
    value_check(&e.value);
}

void db_check(struct db *db) {
    struct check check = {.db = db};
    swiss_check(&db->index);
    arena_check(&db->arena);
    order_check(&db->expiries);
    swiss_each(&db->index, check_visit, &check);
    if (check.expires != order_count(&db->expiries) || check.heap != db->key_heap_count) {
        abort();
    }
}
