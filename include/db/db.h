/* SPDX-License-Identifier: BSD-3-Clause */
/* db: the numbered databases. A database is one arena of key records, a swiss index over them, and
 * an order tree of the keys that expire, by time. A key record, 2-byte aligned:
 *
 *   0        1            4      5      6           14        14 + klen
 *   +--------+------------+------+------+- - - - - -+---------+---------+
 *   | head   | access 24  | klen | vlen | expiry 64 | key     | value   |
 *   +--------+------------+------+------+- - - - - -+---------+---------+
 *   head         bits 0..2 type, 3..4 encoding, 5 has expiry, 6 key is boxed, 7 zero: a live record
 *                to mem/arena.h
 *   access       seconds of the last access, modulo 2^24 (194 days)
 *   klen, vlen   as in types/varlen.h
 *   expiry       milliseconds since 1970, there only when bit 5 is set
 *   key          over DB_KEY_INLINE_MAX bytes it is boxed: a pointer of 8 bytes stands in its place
 *   value        as types/value.h says
 *
 *   16-byte key and value: 6 + 32 = 38 bytes, about 45 with the key's share of the index.
 *
 * Everything here is O(1) but what says otherwise. ST_NOMEM leaves all as before. */
#ifndef DB_DB_H
#define DB_DB_H

#include "base/rng.h"
#include "ds/order.h"
#include "ds/swiss.h"
#include "mem/arena.h"
#include "types/value.h"

#define DB_NO_EXPIRY INT64_MIN
#define DB_KEY_INLINE_MAX 2048

/* Counters the databases bump; the server reads them into INFO. */
struct db_stats {
    uint64_t expired;        /* keys deleted because their time came */
    uint64_t hits, misses;   /* db_find with DB_TOUCH */
    uint64_t dirty;          /* changes since the last snapshot */
    uint64_t reaped_objects; /* big values freed in the background */
};

struct dbset;

struct db {
    struct dbset *set;
    struct swiss index;
    struct arena arena;
    struct order expiries; /* (time, ref) */
    uint64_t
        key_heap_count; /* keys whose record holds a pointer: boxed keys and VALUE_HEAP values */
};

struct reaper_job;

struct dbset {
    struct type_env env;
    struct value_host host;
    struct db **dbs; /* by number */
    size_t count;
    int64_t now_ms;     /* the time that decides expiry; set by the server at each tick */
    bool active_expire; /* delete due keys in the background (they are never visible either way) */
    struct db_stats stats;
    struct reaper_job *reap_first, *reap_last;
    size_t reap_count;
};

/* env is copied; env.pages must outlive the set. */
MUST_CHECK enum status dbset_create(const struct type_env *env, size_t count, struct dbset **out);
void dbset_destroy(struct dbset *set);

/* ---- finding ------------------------------------------------------------------------------- */

/* A key at hand. Good until anything is written in its database other than through itself. */
struct entry {
    struct value value;
    struct db *db;
    uint64_t hash;
    uint64_t ref;
    struct bytes key;
    int64_t expire_ms; /* DB_NO_EXPIRY when none */
};

enum db_touch { DB_TOUCH, DB_NO_TOUCH };

/* Find a key that has not expired (one that has is deleted here and now). DB_TOUCH notes the access
 * (not in a calm: mem/calm.h) and counts a hit or a miss. hash is hash_bytes(key). */
bool db_find(struct db *db, struct bytes key, uint64_t hash, enum db_touch touch,
             struct entry *out);

/* Seconds since the last access that was noted; and note one that long ago, DB_IDLE_MAX at most. */
#define DB_IDLE_MAX 0xFFFFFF
int64_t entry_idle_seconds(const struct entry *e);
void entry_set_idle_seconds(struct entry *e, uint64_t seconds);

/* ---- writing ------------------------------------------------------------------------------- */

/* Add a key known to be absent. The image's object becomes the database's on ST_OK only. */
MUST_CHECK enum status db_add(struct db *db, struct bytes key, uint64_t hash, enum value_type type,
                              const struct value_image *image, int64_t expire_ms,
                              struct entry *out);

/* Give a key another value, of any type, and expiry (e->expire_ms keeps it). The old value is
 * freed. */
MUST_CHECK enum status entry_replace(struct entry *e, enum value_type type,
                                     const struct value_image *image, int64_t expire_ms);

/* Delete; a big value is freed in the background. e is dead afterwards. */
void entry_delete(struct entry *e);

/* DB_NO_EXPIRY takes the expiry away. */
MUST_CHECK enum status entry_set_expiry(struct entry *e, int64_t expire_ms);

/* Move a key, value and expiry to another name or database (RENAME, MOVE), or copy it (COPY). A key
 * that is there is replaced. key must not be e's own. e is dead after a move. */
MUST_CHECK enum status entry_move(struct entry *e, struct db *to, struct bytes key, uint64_t hash);
MUST_CHECK enum status entry_copy(struct entry *e, struct db *to, struct bytes key, uint64_t hash);

/* Bytes the key costs: record, share of index and expiry tree, what its value holds elsewhere. */
size_t entry_memory(const struct entry *e);

/* ---- whole databases ------------------------------------------------------------------------ */

uint64_t db_count(const struct db *db);
uint64_t dbset_count(const struct dbset *set); /* keys of all databases */

/* Advice before loading so many keys into an empty database: its index gets its size at once. */
void db_expect(struct db *db, uint64_t keys);

/* Drop all keys. The memory is given back in the background; reaper_run(SIZE_MAX) does it at once.
 */
void dbset_flush(struct dbset *set, size_t number);
void dbset_swap(struct dbset *set, size_t a, size_t b);

/* Make the databases of fresh, as many, those of set, and free fresh. The old ones go as in
 * dbset_flush. Nothing of fresh may wait to be freed; set keeps its clock, settings and counters. O(count). */
void dbset_take(struct dbset *set, struct dbset *fresh);

/* Visit keys from cursor on (see swiss_scan), expired ones left out. fn may not write. */
typedef void (*db_visit)(void *arg, struct entry *e);
uint64_t db_scan(struct db *db, uint64_t cursor, size_t want, db_visit fn, void *arg);
void db_each(struct db *db, db_visit fn, void *arg);

/* A random key that has not expired; false when there is none to be found. */
bool db_random(struct db *db, struct rng *rng, struct entry *out);

struct db_memory {
    size_t index_bytes, order_bytes;
    struct arena_stats arena;
};
void db_get_memory(const struct db *db, struct db_memory *out);

/* Mean of the times to live of up to 64 keys spread over the expiry tree, ms; 0 when none expires.
 */
int64_t db_average_ttl_ms(const struct db *db);

/* ---- upkeep, called by the server ------------------------------------------------------------ */

/* Live records moved out of thinning arena units for each key changed: a change leaves at most one
 * dead record behind, so the share of dead bytes cannot run away. */
#define DB_EVACUATE_PER_CHANGE 8
/* At most so many after one command: about 0.5 ms. */
#define DB_EVACUATE_MAX 4096

/* After a write that changed that many keys: move a few records out of thinning arena units.
 * Invalidates entries. */
static inline void db_after_write(struct db *db, uint64_t changes) {
    if (UNLIKELY(arena_wants_evacuation(&db->arena))) {
        size_t few = changes < DB_EVACUATE_MAX / DB_EVACUATE_PER_CHANGE
                         ? (size_t)changes * DB_EVACUATE_PER_CHANGE
                         : DB_EVACUATE_MAX;
        arena_evacuate(&db->arena, few);
    }
}

/* Delete up to max_keys that are due, which is from the millisecond after their expiry on. True while more are. O(log n) a key. */
bool db_expire_due(struct db *db, size_t max_keys);

/* The earliest expiry of the set, ms since 1970; INT64_MAX when nothing expires. */
int64_t dbset_next_due_ms(const struct dbset *set);

/* Move up to max_records live records out of thinning arena units, for the work that writes left behind. True while
 * there is more to do. Invalidates entries. */
bool db_compact(struct db *db, size_t max_records);

/* Free detached values and databases, and what living values have dropped, about `budget` allocations' worth. True while more is to do.
 */
bool reaper_run(struct dbset *set, size_t budget);

/* ---- batch stages ---------------------------------------------------------------------------- */

void db_prefetch_index(const struct db *db, uint64_t hash);
/* Prefetch the key's record; the ref for db_peek_likely, or SWISS_NONE. */
uint64_t db_prefetch_record(const struct db *db, uint64_t hash);
/* The value of the likely record, unverified: advice for prefetching into a collection only. */
void db_peek_likely(const struct db *db, uint64_t ref, struct value *out);

/* Verify every invariant, each value included. Aborts on a fault. */
void db_check(struct db *db);

#endif
