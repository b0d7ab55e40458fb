/* SPDX-License-Identifier: BSD-3-Clause */
/* Frees big values and whole databases a part at a time, so that no DEL or FLUSHALL stalls the
 * loop; and sweeps up what living values have dropped. */
#include <stdlib.h>

#include "mem/account.h"
#include "record_priv.h"

/* Segments, records or nodes freed between two looks at the budget. A segment takes 3 us: its OS pages
 * go back to the kernel at once. */
#define STEP 16
/* Of a long string: its OS pages given back between two looks, 100 us at most. */
#define DISCARD_STEP_BYTES ((size_t)2 << 20)

struct reaper_job {
    struct reaper_job *next;
    struct db *db; /* NULL: a value */
    enum value_type type;
    void *object;
    uint64_t cursor; /* of the walk that frees what records point at; of what a string gave back */
    bool walked;
    bool sweep; /* the value lives */
};

static void enqueue(struct dbset *set, struct reaper_job *job) {
    *(set->reap_last ? &set->reap_last->next : &set->reap_first) = job;
    set->reap_last = job;
    set->reap_count++;
}

static struct reaper_job *value_job(struct dbset *set, const struct value *v) {
    struct reaper_job *job = calloc(1, sizeof(*job));
    if (job != NULL) {
        job->type = v->type;
        job->object = value_object(v);
        enqueue(set, job);
    }
    return job;
}

void *reaper_sweep_value(struct value *v) {
    struct dbset *set = CONTAINER_OF(v, struct entry, value)->db->set;
    struct reaper_job *job = value_job(set, v);
    if (job != NULL) {
        job->sweep = true;
    }
    return job;
}

void reaper_take_value(struct dbset *set, const struct value *v) {
    struct reaper_job *sweeper = value_sweeper(v);
    if (sweeper != NULL) {
        sweeper->sweep = false;
    } else if (!value_is_big(v) || value_job(set, v) == NULL) {
        value_free(v->type, value_object(v));
    }
}

/* ---- databases ----------------------------------------------------------------------------- */

static void free_pointed_at(void *arg, uint64_t ref) {
    struct db *db = arg;
    struct record r;
    record_read(record_at(db, ref), &r);
    if (r.head & RECORD_KEY_BOXED) {
        account_free(ACCOUNT_VALUE, (char *)(uintptr_t)r.key.ptr);
    }
    if (record_encoding(r.head) == VALUE_HEAP) {
        struct value v = {.type = record_type(r.head),
                          .encoding = VALUE_HEAP,
                          .data = r.value_at,
                          .len = r.value_len};
        reaper_take_value(db->set, &v);
    }
}

/* Free some of what records point at; true when nothing of it is left. The walk reads refs only, no
 * key. */
static bool walk_step(struct db *db, struct reaper_job *job) {
    uint64_t position = job->cursor;
    uint64_t refs[STEP];
    size_t count = db->key_heap_count ? swiss_next(&db->index, &position, refs, STEP) : 0;
    for (size_t i = 0; i < count; i++) {
        free_pointed_at(db, refs[i]);
    }
    job->cursor = position;
    return count == 0;
}

static bool db_step(struct reaper_job *job) {
    struct db *db = job->db;
    if (!job->walked) {
        job->walked = walk_step(db, job);
        return false;
    }
    if (!swiss_deinit_step(&db->index, STEP) || !arena_deinit_step(&db->arena, 1) ||
        !order_destroy_step(&db->expiries, STEP)) {
        return false;
    }
    account_free(ACCOUNT_OTHER, db);
    return true;
}

void reaper_empty_db(struct db *db) {
    struct reaper_job job = {.db = db};
    struct dbset *set = db->set;
    while (!walk_step(db, &job)) {
    }
    swiss_deinit(&db->index);
    arena_deinit(&db->arena);
    order_deinit(&db->expiries);
    db_init(db, set);
}

void reaper_take_db(struct dbset *set, struct db *db) {
    struct reaper_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        reaper_empty_db(db);
        account_free(ACCOUNT_OTHER, db);
        return;
    }
    job->db = db;
    enqueue(set, job);
}

/* ---- running ------------------------------------------------------------------------------- */

/* A string is one block. */
static bool string_step(struct reaper_job *job) {
    size_t at = job->cursor;
    bool done = account_discard(job->object, &at, DISCARD_STEP_BYTES);
    job->cursor = at;
    return done && value_free_step(job->type, job->object, STEP);
}

static bool job_step(struct reaper_job *job) {
    if (job->sweep) {
        return value_sweep_step(job->type, job->object, STEP);
    }
    if (job->db == NULL && job->type == VALUE_STRING) {
        return string_step(job);
    }
    return job->db != NULL ? db_step(job) : value_free_step(job->type, job->object, STEP);
}

bool reaper_run(struct dbset *set, size_t budget) {
    while (set->reap_first != NULL && budget > 0) {
        struct reaper_job *job = set->reap_first;
        budget -= budget < STEP ? budget : STEP;
        if (job_step(job)) {
            set->reap_first = job->next;
            if (set->reap_first == NULL) {
                set->reap_last = NULL;
            }
            set->reap_count--;
            set->stats.reaped_objects += !job->sweep;
            free(job);
        }
    }
    return set->reap_first != NULL;
}
