/* SPDX-License-Identifier: BSD-3-Clause */
/* keyed: what hashes and sets share, the two forms of a collection of keys with or without values.
 *
 *   key     a field of a hash or a member of a set; no two of a collection are equal
 *   packed  one run in the key's record, drawn in types/hash.h and types/set.h
 *   table   records in an arena under a swiss index
 *
 * Seen by hash.c and the files of sets only. ST_NOMEM leaves all as before. */
#ifndef TYPES_KEYED_PRIV_H
#define TYPES_KEYED_PRIV_H

#include "base/rng.h"
#include "ds/swiss.h"
#include "mem/arena.h"
#include "types/value.h"

/* The value of a set's member is empty. */
struct keyed {
    struct bytes key, value;
};

/* ---- packed (keyed_packed.c) --------------------------------------------------------------- */

/* What stands in front of the bytes for each entry, a tag aside: that many lengths of a byte. */
enum kpacked_form { KPACKED_MEMBERS = 1, KPACKED_PAIRS = 2 };

/* A packed run is copied when it grows: 24 KiB take about 1 us. */
#define KPACKED_BYTES_MAX ((size_t)24 * 1024)

/* Where an entry lies in a run. */
struct kpacked_spot {
    bool found;
    size_t index;
    size_t off;         /* of the key's bytes, from the start of the run */
    struct bytes value; /* behind the key's bytes */
};

struct kpacked_iter {
    size_t index;
    size_t off; /* of the next entry's key */
};

struct kpacked_spot kpacked_find(const char *run, enum kpacked_form form, struct bytes key);

/* Entries in order; read at most run_count of them. */
struct kpacked_iter kpacked_begin(const char *run, enum kpacked_form form);
struct kpacked_iter kpacked_seek(const char *run, enum kpacked_form form, size_t index);
struct keyed kpacked_read(const char *run, enum kpacked_form form, struct kpacked_iter *it);

/* Up to cap entries from *position (start with 0); how many, 0 at the end. */
size_t kpacked_next(const char *run, enum kpacked_form form, uint64_t *position,
                    struct keyed *entries, size_t cap);

/* May a run of len bytes get this entry, as far as limits go? */
bool kpacked_fits(const char *run, size_t len, enum kpacked_form form, const struct keyed *entry,
                  size_t entries_max, size_t element_max);

/* Write: ST_RANGE when the record cannot hold the run. Lengths are up to 255 bytes. */
MUST_CHECK enum status kpacked_append(struct value *v, enum kpacked_form form,
                                      const struct keyed *entry);
MUST_CHECK enum status kpacked_change(struct value *v, enum kpacked_form form,
                                      const struct kpacked_spot *spot, struct bytes value);
void kpacked_delete(struct value *v, enum kpacked_form form, const struct kpacked_spot *spot);

/* Bytes of a run of count members whose own bytes sum up to data_len. */
size_t kpacked_len(enum kpacked_form form, size_t count, size_t data_len);

/* Members into a fresh run, count of them, in order. it is where the next one goes. */
struct kpacked_iter kpacked_build_begin(char *run, size_t count);
void kpacked_build_add(char *run, struct kpacked_iter *it, struct bytes member);

/* False when the run is damaged. */
bool kpacked_check(const char *run, size_t len, enum kpacked_form form);

/* ---- table (keyed_table.c) ----------------------------------------------------------------- */

/* A record, 2-byte aligned; vlen and value in tables with values only:
 *
 *   +------+- - - +-----+- - - -+        +------+-----+-------------+
 *   | klen | vlen | key | value |   or   | 0xFD | pad | pointer u64 |
 *   +------+- - - +-----+- - - -+        +------+-----+-------------+
 *                                        boxed: too long for an arena record */
struct ktable {
    struct swiss index;
    struct arena arena;
    size_t boxed_bytes;     /* held by boxed records */
    uint64_t free_position; /* of the walk that frees boxes (swiss_next); 0 while the table lives */
    bool has_values;
};

#define KTABLE_BATCH 64

/* NULL when memory is short. */
struct ktable *ktable_create(struct pages *pages, bool has_values);

/* The ref of a key's record, or SWISS_NONE. */
uint64_t ktable_find(const struct ktable *t, struct bytes key);
struct keyed ktable_read(const struct ktable *t, uint64_t ref);

MUST_CHECK enum status ktable_set(struct ktable *t, const struct keyed *entry, bool *added);
/* Add entries that should be new, their groups in flight side by side. ST_EXISTS: one was not; those
 * before it are in. ST_NOMEM: likewise. */
MUST_CHECK enum status ktable_add_all(struct ktable *t, const struct keyed *entries, size_t count);
bool ktable_delete(struct ktable *t, struct bytes key);

/* swiss_next of at most KTABLE_BATCH entries, read with their records in flight side by side. */
size_t ktable_next(const struct ktable *t, uint64_t *position, struct keyed *entries, size_t cap);

/* Batch stages of a look-up. */
void ktable_prefetch_index(const struct ktable *t, uint64_t hash);
void ktable_prefetch_record(const struct ktable *t, uint64_t hash);

/* A table of what a packed run holds; an object in place of the run, which stays as it is when that
 * fails: the table is freed then. t may be NULL when st is an error already. */
MUST_CHECK enum status ktable_from_packed(const struct value *v, enum kpacked_form form,
                                          struct ktable **out);
MUST_CHECK enum status ktable_install(struct value *v, struct ktable *t, enum status st);

/* An empty table in place of an empty run, ready for count entries. */
MUST_CHECK enum status ktable_expect(struct value *v, enum kpacked_form form, uint64_t count);

bool ktable_free_step(struct ktable *t, size_t budget);
MUST_CHECK enum status ktable_clone(const struct ktable *t, struct ktable **out);
size_t ktable_bytes_held(const struct ktable *t);
bool ktable_is_big(const struct ktable *t);
void ktable_check(const struct ktable *t);

/* ---- both ---------------------------------------------------------------------------------- */

/* The table behind a VALUE_HEAP hash or set, whose objects are nothing else. */
static inline struct ktable *keyed_table(const struct value *v) {
    return value_object(v);
}

#endif
