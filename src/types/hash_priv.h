/* SPDX-License-Identifier: BSD-3-Clause */
/* The two forms of a hash, seen by types/hash.c only. */
#ifndef TYPES_HASH_PRIV_H
#define TYPES_HASH_PRIV_H

#include "ds/swiss.h"
#include "mem/arena.h"
#include "types/hash.h"

/* ---- packed (hash_packed.c) ---------------------------------------------------------------- */

/* Where a field's entry lies in a packed run. */
struct packed_spot {
    bool found;
    size_t index;
    size_t off; /* of the field's bytes, from the start of the run */
    struct bytes value;
};

struct packed_iter {
    size_t index;
    size_t off; /* of the next entry's field */
};

struct packed_spot packed_find(const char *run, struct bytes field);

/* Entries in order; read at most run_count of them. */
struct packed_iter packed_begin(const char *run);
struct packed_iter packed_seek(const char *run, size_t index);
struct hash_pair packed_read(const char *run, struct packed_iter *it);

/* Bytes in use, which may be fewer than the value's len. */
size_t packed_used(const char *run);

/* ST_RANGE: the hash must become a table. */
MUST_CHECK enum status packed_set(struct value *v, const struct packed_spot *spot,
                                  struct bytes field, struct bytes value);
void packed_delete(struct value *v, const struct packed_spot *spot);

/* False when the run is damaged. */
bool packed_check(const char *run, size_t len);

/* ---- table (hash_table.c) ------------------------------------------------------------------ */

struct hash {
    struct swiss index;
    struct arena arena;
    size_t boxed_bytes; /* held by boxed records */
};

struct hash *table_create(const struct type_env *env);
bool table_get(const struct hash *h, struct bytes field, struct bytes *value);
MUST_CHECK enum status table_set(struct hash *h, struct bytes field, struct bytes value,
                                 bool *added);
bool table_delete(struct hash *h, struct bytes field);
struct hash_pair table_pair(const struct hash *h, uint64_t ref);
void table_check(const struct hash *h);

#endif
