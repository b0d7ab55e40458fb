/* SPDX-License-Identifier: BSD-3-Clause */
/* hash: fields with values.
 *
 * VALUE_PACKED, small ones, in the key's record:
 *
 *   +-----------+---------+--------------------+--------------------------------+
 *   | count u16 | n tags  | n x (flen8, vlen8) | n x (field bytes, value bytes) |
 *   +-----------+---------+--------------------+--------------------------------+
 *   tag: a byte of the field's hash
 *   10 fields of 8 + 8 bytes: 2 + 10 x (3 + 16) = 192 bytes
 *
 * A search is memchr over the tags and a sum over the lengths before the hit: what it costs hardly
 * depends on the number of fields. docs/design/005-values.md has the figures, and why it ends at 512
 * fields, 255 bytes an element or HASH_PACKED_BYTES_MAX in all.
 *
 * VALUE_HEAP: a struct hash: records in an arena, a swiss index over them. A record, 2-byte aligned:
 *
 *   +------+------+-------+-------+        +------+-----+-------------+
 *   | flen | vlen | field | value |   or   | 0xFD | pad | pointer u64 |
 *   +------+------+-------+-------+        +------+-----+-------------+
 *                                          boxed: too long for an arena record
 *   16 + 16 bytes: 34; with 5 / load-factor bytes of index, 40 to 41 bytes a field at any size
 *
 * Arguments are views, copied; field and value lengths up to 2^32 - 1 bytes. Views returned are
 * good until the next write. "ST_NOMEM" everywhere means the hash is as before. */
#ifndef TYPES_HASH_H
#define TYPES_HASH_H

#include "base/rng.h"
#include "types/value.h"

struct hash; /* the VALUE_HEAP object */

/* A packed hash is copied when it grows: 24 KiB take about 1 us. */
#define HASH_PACKED_BYTES_MAX ((size_t)24 * 1024)

/* A new empty packed hash is these bytes. */
#define HASH_EMPTY_LEN 2
extern const char hash_empty[HASH_EMPTY_LEN];

uint64_t hash_count(const struct value *v);

/* The value of a field; false when absent. */
bool hash_get(const struct value *v, struct bytes field, struct bytes *value);

/* Set a field. added (may be NULL): true when it was new. May turn a packed hash into a table. */
MUST_CHECK enum status hash_set(struct value *v, struct bytes field, struct bytes value,
                                bool *added);

/* For loading: v is an empty packed hash that so many fields will come to. Turns it into a table with
 * an index of the right size when they are too many for a packed one. */
MUST_CHECK enum status hash_expect(struct value *v, uint64_t count);

/* For loading: add fields that should be new, their index groups in flight side by side. ST_EXISTS:
 * one was there, ST_NOMEM: those before it are in. */
struct hash_pair {
    struct bytes field, value;
};
MUST_CHECK enum status hash_add_all(struct value *v, const struct hash_pair *pairs, size_t count);

/* Remove a field; false when absent. The caller deletes the key when nothing is left. */
bool hash_delete(struct value *v, struct bytes field);

/* All fields, some at a time: fill up to cap pairs from *position (start with 0); returns how many,
 * 0 at the end. The hash must not change between calls. Records ahead are prefetched. */
size_t hash_next(const struct value *v, uint64_t *position, struct hash_pair *pairs, size_t cap);

/* HSCAN's guarantee, see swiss_scan. A packed hash comes whole, whatever `want` is. */
typedef void (*hash_visit)(void *arg, struct bytes field, struct bytes value);
uint64_t hash_scan(const struct value *v, uint64_t cursor, size_t want, hash_visit fn, void *arg);

/* A uniformly random pair of a non-empty hash. */
void hash_random(const struct value *v, struct rng *rng, struct hash_pair *out);

/* Batch stages: prefetch what hash_get of this field will touch: first the index group, then the
 * record. */
void hash_prefetch_index(const struct value *v, uint64_t field_hash);
void hash_prefetch_record(const struct value *v, uint64_t field_hash);

/* The object behind VALUE_HEAP. */
bool hash_free_step(struct hash *h, size_t budget);
MUST_CHECK enum status hash_clone(const struct hash *h, struct hash **out);
size_t hash_bytes_held(const struct hash *h);
bool hash_object_is_big(const struct hash *h);
struct arena_stats;
void hash_arena_stats(const struct hash *h, struct arena_stats *out);

/* Verify a packed run or a table. Aborts on a fault. */
void hash_check(const struct value *v);

#endif
