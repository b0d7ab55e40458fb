/* SPDX-License-Identifier: BSD-3-Clause */
#include "persist/reader.h"

/* ---- databases ------------------------------------------------------------------------------ */

static enum status into_select(void *arg, uint64_t number, uint64_t keys, uint64_t expiring) {
    struct reader_dbset *to = arg;
    if (number >= to->set->count) {
        return ST_RANGE;
    }
    to->db = to->set->dbs[number];
    db_expect(to->db, keys);
    return ST_OK;
}

/* Near: one key in ten meets another's tag in the index, whose record is read then. */
static void into_prefetch(void *arg, uint64_t hash, bool near) {
    struct reader_dbset *to = arg;
    if (near) {
        db_prefetch_record(to->db, hash);
    } else {
        db_prefetch_index(to->db, hash);
    }
}

static enum status into_add(void *arg, const struct reader_key *key) {
    struct reader_dbset *to = arg;
    struct entry e;
    if (db_find(to->db, key->key, key->hash, DB_NO_TOUCH, &e)) {
        return ST_EXISTS;
    }
    enum status st = db_add(to->db, key->key, key->hash, key->type, key->image, key->expire_ms, &e);
    if (st == ST_OK && key->idle_seconds != 0) {
        entry_set_idle_seconds(&e, key->idle_seconds);
    }
    return st;
}

void reader_into_dbset(struct reader_dbset *to, struct dbset *set, struct reader_target *target) {
    *to = (struct reader_dbset){.set = set, .db = set->dbs[0]};
    *target = (struct reader_target){.arg = to,
                                     .env = &set->env,
                                     .select = into_select,
                                     .prefetch = into_prefetch,
                                     .add = into_add};
}

/* ---- nothing -------------------------------------------------------------------------------- */

static enum status drop_select(void *arg, uint64_t number, uint64_t keys, uint64_t expiring) {
    return ST_OK;
}

static enum status drop_add(void *arg, const struct reader_key *key) {
    value_image_discard(key->type, key->image);
    return ST_OK;
}

void reader_into_nothing(const struct type_env *env, struct reader_target *target) {
    *target = (struct reader_target){.env = env, .select = drop_select, .add = drop_add};
}
