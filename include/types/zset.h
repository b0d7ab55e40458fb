/* SPDX-License-Identifier: BSD-3-Clause */
/* zset: members with scores, in the order of (score, then member bytes).
 *
 *   score    a double, any but NaN; -0 is kept and equal to 0: such members are in byte order, and a
 *            change from one to the other is none
 *   rank     position in order, from 0
 *   range    entries between two scores, two members (of one score) or two ranks
 *
 * A score is stored in the fewest bytes that hold it exactly: as an integer of 1, 2, 4 bytes or as a
 * double of 8. What tells which is the kind byte. A record whose score changes keeps its width while
 * that is enough, so that a score that comes and goes does not move it.
 *
 * VALUE_PACKED, small ones, in the key's record, sorted (drawn for two members; lengths as in
 * types/varlen.h):
 *
 *   +-----------+------+-------+------+--------+------+-------+------+--------+
 *   | count u16 | kind | score | mlen | member | kind | score | mlen | member |
 *   +-----------+------+-------+------+--------+------+-------+------+--------+
 *   10 members of 8 bytes with scores below 2^31: 2 + 10 x 14 = 142 bytes
 *
 * VALUE_HEAP: a struct zset: records in an arena, a swiss index from member to record, an order tree
 * over (score, member). A record, 2-byte aligned:
 *
 *   +------+------+-------+--------+        +------+------+-------+-------------+
 *   | kind | mlen | score | member |   or   | kind | 0xF2 | score | pointer u64 |  boxed member
 *   +------+------+-------+--------+        +------+------+-------+-------------+
 *   16-byte member: 26 with a double, 22 with an integer of 4 bytes; with 6.3 bytes of index and 8.9
 *   of order tree, 41 and 37 bytes a member at any size
 *
 * Arguments are views, copied. Views returned are good until the next write. "ST_NOMEM" everywhere
 * means the set is as before. n is the number of members, k of those visited or removed. */
#ifndef TYPES_ZSET_H
#define TYPES_ZSET_H

#include "base/rng.h"
#include "types/value.h"

struct zset; /* the VALUE_HEAP object */

/* A new empty packed set is these bytes. */
#define ZSET_EMPTY_LEN 2
extern const char zset_empty[ZSET_EMPTY_LEN];

struct zset_entry {
    struct bytes member;
    double score;
};

uint64_t zset_count(const struct value *v);

/* ---- by member ------------------------------------------------------------------------------ */

/* O(1). */
bool zset_score(const struct value *v, struct bytes member, double *score);

/* Insert a member or move it to a new score. added (may be NULL): it was new. A score that stays
 * between its neighbours is changed in place. O(log n). */
MUST_CHECK enum status zset_set(struct value *v, struct bytes member, double score, bool *added);

/* False when absent. The caller deletes the key when nothing is left. O(log n). */
bool zset_delete(struct value *v, struct bytes member);

/* O(log n). */
bool zset_rank(const struct value *v, struct bytes member, uint64_t *rank, double *score);

/* ---- ranges: all become ranks ---------------------------------------------------------------- */

struct zset_score_bound {
    double score;
    bool exclusive;
};

enum zset_lex_kind { ZSET_LEX_MIN, ZSET_LEX_MEMBER, ZSET_LEX_MAX }; /* "-", a member, "+" */
struct zset_lex_bound {
    enum zset_lex_kind kind;
    struct bytes member;
    bool exclusive;
};

/* Ranks first .. first + count - 1 of the entries inside both bounds; count 0 when there are none.
 * The lexical form supposes that all scores are equal, as Redis does. O(log n). */
void zset_range_by_score(const struct value *v, const struct zset_score_bound *min,
                         const struct zset_score_bound *max, uint64_t *first, uint64_t *count);
void zset_range_by_lex(const struct value *v, const struct zset_lex_bound *min,
                       const struct zset_lex_bound *max, uint64_t *first, uint64_t *count);

/* Walk from a rank, forward or backward: the entry at that rank comes first either way (backward from
 * a rank >= count starts at the last entry). Zero or more calls of zset_fetch, each filling up to cap
 * entries; 0 at the end. The set must not change between calls. Records ahead are prefetched. */
struct zset_iter {
    const struct value *value;
    uint64_t rank; /* the next entry's, when forward; one behind it, when backward */
    bool backward;
    uint64_t offset;              /* packed: where rank's entry starts */
    unsigned char order_iter[48]; /* heap: a struct order_iter */
};
void zset_iter_init(struct zset_iter *it, const struct value *v, uint64_t rank, bool backward);
size_t zset_fetch(struct zset_iter *it, struct zset_entry *out, size_t cap);

/* The entry at a rank; false when rank >= count. */
bool zset_at(const struct value *v, uint64_t rank, struct zset_entry *out);

/* Remove count entries from rank first on; the number removed. O(log n + k). */
uint64_t zset_delete_range(struct value *v, uint64_t first, uint64_t count);

/* ---- the rest -------------------------------------------------------------------------------- */

/* ZSCAN's guarantee, see swiss_scan. A packed set comes whole, whatever `want` is. */
typedef void (*zset_visit)(void *arg, struct bytes member, double score);
uint64_t zset_scan(const struct value *v, uint64_t cursor, size_t want, zset_visit fn, void *arg);

/* A uniformly random entry of a set that is not empty. */
void zset_random(const struct value *v, struct rng *rng, struct zset_entry *out);

/* Build from entries that are all distinct, in any order: sorts the array, then builds bottom-up.
 * v must be an empty packed set. For STORE commands and loading. O(n log n). */
MUST_CHECK enum status zset_build(struct value *v, struct zset_entry *entries, size_t count);

/* The same of entries that nobody vouches for: ST_EXISTS when a member is there twice; v as before. */
MUST_CHECK enum status zset_build_checked(struct value *v, struct zset_entry *entries,
                                          size_t count);

/* Batch stages, as of types/hash.h: the index group, then the record; then the leaf of the order
 * tree that the member stands in, which zset_rank, zset_delete and a change of score read. The last
 * is the leaf that a score to come goes to, at any stage. */
void zset_prefetch_index(const struct value *v, uint64_t member_hash);
void zset_prefetch_record(const struct value *v, uint64_t member_hash);
void zset_prefetch_order(const struct value *v, uint64_t member_hash);
void zset_prefetch_score(const struct value *v, double score);

/* The object behind VALUE_HEAP. */
bool zset_free_step(struct zset *z, size_t budget);
MUST_CHECK enum status zset_clone(const struct zset *z, struct zset **out);
size_t zset_bytes_held(const struct zset *z);
bool zset_object_is_big(const struct zset *z);

/* Verify a packed run or a table. Aborts on a fault. */
void zset_check(const struct value *v);

#endif
