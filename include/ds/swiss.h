/* SPDX-License-Identifier: BSD-3-Clause */
/* swiss: an index from keyed 64-bit hashes to record refs that never stops the world.
 *
 *   slot, group   16 slots are a group: 16 control bytes, then 16 low ref halves
 *   control byte  EMPTY, DELETED (tombstone), or the 7-bit tag of a full slot
 *   segment       up to SWISS_SEGMENT_SLOTS_MAX slots that grow, split, merge and rebuild alone
 *   depth         leading hash bits that all entries of a segment share (0..25)
 *   directory     2^depth entries on the top hash bits, each naming a segment (extendible hashing,
 *                 Fagin et al. 1979)
 *   order bits    hash >> 7: what decides where an entry lies. Homes ascend with them inside a
 *                 segment and segments do in the directory, so every resize keeps entries in
 *                 their order and a cursor is just a point in it
 *
 * The hash, and who uses which bits (tag and position never overlap):
 *
 *   63        64-depth                                     7 6     0
 *   +----------------+---------------------+----------------+-------+
 *   | depth, 0..25   | position, 32        | unused         | tag 7 |
 *   +----------------+---------------------+----------------+-------+
 *                      home group = position x groups >> 32
 *
 * One group (narrow, 80 bytes):        A wide group (refs of 33..40 bits, 96 bytes):
 *   0        16                80        0        16                80       96
 *   +--------+-----------------+         +--------+-----------------+--------+
 *   | ctrl   | 16 x u32 ref    |         | ctrl   | 16 x u32 low    | 16 x u8|
 *   +--------+-----------------+         +--------+-----------------+--------+
 *
 * 5 bytes a slot, full between 86 and 94 % (drawn for each segment, so that they do not all grow at
 * once), four sizes a doubling, those of 2 KiB and more in pools without holes (mem/dense): 5.9..6.3
 * bytes an entry at any size. Example: 8 M entries are 8192 segments of ~980 entries, 5 or 6 KiB
 * each, and a directory of 64 KiB.
 * A segment turns wide alone, when it first meets a ref above 32 bits.
 *
 * The owner keeps records; the index asks it for a record's hash (rehash) and whether a record has
 * a key (find). Insert, erase and reserve may ask for the hash of any entry but the one given, so
 * the records of all others must be readable then. Guarantees: an operation rehashes at most one
 * segment (two when merging), < 0.3 ms. Refs are opaque here. Not thread-safe. A failed insert
 * changes nothing.
 *
 * Hashes are keyed, so nobody can choose them; the index stays right all the same when many share
 * their top bits: the directory never gets more than an entry for 64 records, a segment it cannot
 * cut grows beyond the usual maximum instead, and at 2^15 slots inserts into it answer ST_NOMEM.
 *
 * Sources: Swiss tables (Abseil, 2017), Dash (VLDB 2020). Decisions and measurements:
 * docs/design/003-swiss.md. */
#ifndef DS_SWISS_H
#define DS_SWISS_H

#include "base/bytes.h"
#include "base/rng.h"
#include "base/status.h"

#define SWISS_NONE UINT64_MAX
#define SWISS_SEGMENT_SLOTS_MAX 1632 /* 102 groups: 8 KiB when narrow */
#define SWISS_REF_BITS 40

struct swiss_ops {
    /* The hash of the record behind ref, the same that was given to swiss_insert. */
    uint64_t (*hash_of)(void *owner, uint64_t ref);
    /* Does the record behind ref have this key? */
    bool (*matches)(void *owner, uint64_t ref, struct bytes key);
    /* Advice before hash_of or matches is called on ref. May be NULL. */
    void (*prefetch)(void *owner, uint64_t ref);
};

/* Embedded by value; treat as opaque. May not be moved while it has entries: its segments name it,
 * so that they can be moved. 48 bytes. */
struct swiss {
    const struct swiss_ops *ops;
    void *owner;
    union {
        uint64_t *directory; /* depth > 0: 2^depth packed entries (segment address, groups, ...) */
        uint64_t only;       /* depth 0: the one entry, 0 while empty */
    } root;
    uint64_t count; /* entries */
    uint32_t segments;
    uint32_t deepest; /* segments whose local depth is the directory's */
    uint32_t jitter;  /* state of the growth jitter */
    uint16_t largest; /* no segment has more groups */
    uint8_t depth;
    bool dying; /* swiss_deinit_step has begun */
};

void swiss_init(struct swiss *s, const struct swiss_ops *ops, void *owner);

/* Free everything at once; or some segments at a time: true when nothing is left. The records are
 * the owner's. Between steps nothing but another step or swiss_deinit may be called. Afterwards the
 * index is empty and usable. */
void swiss_deinit(struct swiss *s);
bool swiss_deinit_step(struct swiss *s, size_t max_segments);

static inline uint64_t swiss_count(const struct swiss *s) {
    return s->count;
}

/* The ref whose record has this key, or SWISS_NONE. */
uint64_t swiss_find(const struct swiss *s, uint64_t hash, struct bytes key);

/* Insert a ref whose key is known to be absent. ST_NOMEM: unchanged. */
MUST_CHECK enum status swiss_insert(struct swiss *s, uint64_t hash, uint64_t ref);

/* Make room first so that the very next swiss_insert of this hash and of a ref up to ref_max
 * (< 2^SWISS_REF_BITS) cannot fail and resizes no segment. */
MUST_CHECK enum status swiss_reserve(struct swiss *s, uint64_t hash, uint64_t ref_max);

/* Advice before many inserts into an empty index: make the segments that so many entries will take,
 * so that hardly any grows or splits while they come (each time asks every record of a segment for
 * its hash; hashes that come in order are the worst case). Nothing happens when the index is not
 * empty or memory is short. O(count), and 6 to 7 bytes of memory for each entry expected. */
void swiss_expect(struct swiss *s, uint64_t count);

/* The record moved: old_ref must be in the index under hash. ST_NOMEM only when new_ref needs a
 * wide segment. No record is read, so old_ref may be gone already. */
MUST_CHECK enum status swiss_replace(struct swiss *s, uint64_t hash, uint64_t old_ref,
                                     uint64_t new_ref);

/* Remove an entry that must be there. May shrink or merge its segment (skipped silently when memory
 * is short). The record of ref itself is not read. */
void swiss_erase(struct swiss *s, uint64_t hash, uint64_t ref);

/* Staged lookup for a batch: first touch the group, later ask for the likely ref (a slot whose tag
 * matches in the home group or the next, or SWISS_NONE) to prefetch its record. Change nothing,
 * promise nothing. */
void swiss_prefetch(const struct swiss *s, uint64_t hash);
uint64_t swiss_likely(const struct swiss *s, uint64_t hash);

/* Visit entries from cursor on until at least `want` were seen (whole groups), or want + 64 groups
 * or empty segments were passed, in hash order; returns the next cursor, 0 at the end. Start with
 * 0. Every entry present throughout a full iteration is visited exactly once, and none twice,
 * whatever grows, splits, merges or is deleted between the calls. fn may not change the index. A
 * cursor of any value is safe. Cursors are below 2^57. */
typedef void (*swiss_visit)(void *arg, uint64_t ref);
uint64_t swiss_scan(const struct swiss *s, uint64_t cursor, size_t want, swiss_visit fn, void *arg);

/* Visit all entries, prefetching records ahead. fn may not change the index. */
void swiss_each(const struct swiss *s, swiss_visit fn, void *arg);

/* Fill refs[] with the next entries of a walk over all segments (a bulk iterator for replies) and
 * prefetch their records: *position starts at 0; returns how many were filled, 0 at the end. The
 * index must not change between calls. */
size_t swiss_next(const struct swiss *s, uint64_t *position, uint64_t *refs, size_t cap);

/* A uniformly random entry, SWISS_NONE when empty. Expected O(1). */
uint64_t swiss_random(const struct swiss *s, struct rng *rng);

/* Heap bytes held: segments and directory. O(segments), reads the directory only. */
size_t swiss_bytes(const struct swiss *s);

/* Verify every invariant, hash_of each entry included. Aborts on a fault. */
void swiss_check(const struct swiss *s);

#endif
