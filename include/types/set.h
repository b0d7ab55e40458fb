/* SPDX-License-Identifier: BSD-3-Clause */
/* set: distinct members.
 *
 * VALUE_INT, small sets of integers, in the key's record: sorted little-endian integers of one width.
 *
 *   +----------+-----------+----------------+
 *   | width u8 | count u16 | n x width bytes |   width 2, 4 or 8
 *   +----------+-----------+----------------+
 *
 * VALUE_PACKED, other small sets, in the key's record, as a packed hash without values:
 *
 *   +-----------+---------+----------+------------------+
 *   | count u16 | n tags  | n x len8 | n x member bytes |
 *   +-----------+---------+----------+------------------+
 *   10 members of 8 bytes: 2 + 10 x 10 = 102 bytes
 *
 * VALUE_HEAP: a struct set: records in an arena under a swiss index, as a hash without values. A
 * record of 16 bytes takes 18; with 6.3 bytes of index 24.3 bytes a member at any size.
 *
 * Arguments are views, copied. Views returned are good until the next write; integers are written
 * into the scratch that is passed. "ST_NOMEM" everywhere means the set is as before. */
#ifndef TYPES_SET_H
#define TYPES_SET_H

#include "base/number.h"
#include "base/rng.h"
#include "types/value.h"

struct set; /* the VALUE_HEAP object */

#define SET_SCRATCH_LEN NUMBER_I64_MAX_LEN

/* Images of a new empty set: one that will hold integers as long as it can, or a packed one. */
void set_empty_image(bool integers, struct value_image *image);

uint64_t set_count(const struct value *v);
bool set_contains(const struct value *v, struct bytes member);

/* added (may be NULL): true when the member was new. */
MUST_CHECK enum status set_add(struct value *v, struct bytes member, bool *added);

/* For loading, as of types/hash.h: v is empty and so many members will come; then members that
 * should be new. */
MUST_CHECK enum status set_expect(struct value *v, uint64_t count);
MUST_CHECK enum status set_add_all(struct value *v, const struct bytes *members, size_t count);

/* False when absent. The caller deletes the key when nothing is left. */
bool set_remove(struct value *v, struct bytes member);

/* All members, some at a time: fill up to cap from *position (start with 0); 0 at the end. scratch
 * holds cap x SET_SCRATCH_LEN bytes for integers. The set must not change between calls. */
size_t set_next(const struct value *v, uint64_t *position, struct bytes *members, size_t cap,
                char *scratch);

/* SSCAN's guarantee, see swiss_scan. A small set comes whole, whatever `want` is. */
typedef void (*set_visit)(void *arg, struct bytes member);
uint64_t set_scan(const struct value *v, uint64_t cursor, size_t want, set_visit fn, void *arg);

/* A uniformly random member of a set that is not empty. */
struct bytes set_random(const struct value *v, struct rng *rng, char *scratch);

/* Batch stages, as of types/hash.h. */
void set_prefetch_index(const struct value *v, uint64_t member_hash);
void set_prefetch_record(const struct value *v, uint64_t member_hash);

/* The object behind VALUE_HEAP. */
bool set_free_step(struct set *s, size_t budget);
MUST_CHECK enum status set_clone(const struct set *s, struct set **out);
size_t set_bytes_held(const struct set *s);
bool set_object_is_big(const struct set *s);

/* Verify. Aborts on a fault. */
void set_check(const struct value *v);

#endif
