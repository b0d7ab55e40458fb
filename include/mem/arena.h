/* SPDX-License-Identifier: BSD-3-Clause */
/* arena: records of any length named by a ref, packed without gaps, for one collection.
 *
 *   record      a run of bytes that tells its own length (ops->record_len); 2-byte aligned; the
 *               first byte of a live one is below 0xFE: 0xFE and 0xFF mark dead ones
 *   ref         the record's name, at most 40 bits: offset in the arena / ARENA_UNIT; refs below
 *               2^32 reach 8 GiB
 *   unit        a piece of the offset space with its own memory: a ladder block or a chunk
 *   live, dead  bytes in records in use / in freed ones (lengths rounded as arena_round says)
 *
 * The offset space:
 *
 *   0        1024     2048     4096              chunk_bytes             2 x chunk_bytes
 *   +--------+--------+--------+---- ... --------+-----------------------+- - -
 *   | block  |8 blocks|8 blocks| 8 a doubling    | chunk 1               | chunk 2
 *   +--------+--------+--------+---- ... --------+-----------------------+- - -
 *    heap blocks (the ladder): each an eighth of   from mem/pages, on huge pages when asked
 *    the power of two below it, so about 1/8 is
 *    idle at most, nothing is copied as it grows,
 *    and growth touches only new bytes
 *
 * A record never crosses a unit's end; where the next block is short for its records, one
 * allocation covers several. Once chunk 1 is open, the blocks move into a chunk of their own, one a
 * call of arena_evacuate (offsets stay): large collections are chunks throughout, on huge pages
 * when asked. A collection that shrinks far below a chunk goes back to blocks.
 *
 * Freed records go on exact-size free lists (doubly linked through the dead bytes; records under
 * 14 bytes are only counted) and are reused first. When dead bytes pass a share of live ones, the
 * unit with the largest dead share is evacuated a few records at a time: the owner moves each live
 * record (ops->relocate) and the empty unit's memory goes back; its offsets are reused. Every
 * alloc/free may be followed by arena_evacuate with a small budget: cost stays bounded and
 * reserved memory stays under 1.25 x live, and two chunks, after any churn.
 *
 * Guarantees: a ref changes only through ops->relocate, an address only in arena_evacuate. Not
 * thread-safe. A failed call changes nothing that can be seen. AddressSanitizer builds poison
 * unused and dead bytes; under GC_ARENA_GUARDED each record is an allocation of its own. Source of
 * the evacuation rule: log-structured memory (Rumble et al., FAST 2014). */
#ifndef MEM_ARENA_H
#define MEM_ARENA_H

#include "base/status.h"
#include "mem/pages.h"

#define ARENA_UNIT 2            /* bytes a ref step; 34-byte records stay 34 bytes */
#define ARENA_NONE UINT64_MAX   /* no record */
#define ARENA_REF_BITS 40       /* 2 TiB of offsets */
#define ARENA_DEAD_MARK 0xFE    /* a live record's first byte is below this */
#define ARENA_LADDER_FIRST 1024 /* bytes of the first block; why: docs/design/002-arena.md */

struct arena_ops {
    /* Length in bytes of the live record at ptr, as given to arena_alloc. */
    size_t (*record_len)(const void *record);
    /* Move the live record ref elsewhere: arena_alloc, copy, change every place that holds the ref,
     * arena_free the old one. ST_NOMEM: not moved, the evacuation is tried again later. */
    enum status (*relocate)(void *owner, uint64_t ref);
    /* Optional: about to relocate these; prefetch what that will touch. */
    void (*prefetch)(void *owner, const uint64_t *refs, size_t count);
};

struct arena; /* fields in mem/arena_layout.h for arena_at's sake; treat as opaque */

#include "mem/arena_layout.h"

/* No memory is taken until the first record. */
void arena_init(struct arena *a, const struct arena_ops *ops, void *owner, struct pages *pages);

/* Free everything at once; or a few units at a time: true when nothing is left. */
void arena_deinit(struct arena *a);
bool arena_deinit_step(struct arena *a, size_t max_units);

/* Room for a record of len bytes, 1..arena_record_max. The bytes are undefined: write the record at
 * once. ST_NOMEM; ST_RANGE when len is too long (box it elsewhere). O(1). */
MUST_CHECK enum status arena_alloc(struct arena *a, size_t len, uint64_t *ref);

/* len is the record's length as allocated. O(1). */
void arena_free(struct arena *a, uint64_t ref, size_t len);

/* The bytes that a record of len bytes really takes; two lengths that round alike can replace each
 * other in place: call arena_refit first. */
size_t arena_round(size_t len);

/* The record at ref is about to be rewritten as one of len bytes, which rounds as its old length
 * does. What a sanitizer may see of it changes; other builds need not know. */
#if defined(GC_SANITIZE) || defined(GC_ARENA_GUARDED)
void arena_refit(struct arena *a, uint64_t ref, size_t len);
#else
static inline void arena_refit(struct arena *a, uint64_t ref, size_t len) {
    (void)a;
    (void)ref;
    (void)len;
}
#endif

/* A quarter of a chunk, at most 64 KiB. */
size_t arena_record_max(const struct arena *a);

/* Address of a record; good until the next arena_evacuate, or arena_free of it: arena_alloc moves
 * nothing. */
static inline void *arena_at(const struct arena *a, uint64_t ref);

/* True when dead bytes (or a move of the ladder) call for arena_evacuate; cheap enough to ask after
 * each free. */
static inline bool arena_wants_evacuation(const struct arena *a);

/* Move up to max_records live records out of the unit under evacuation, passing at most 16 dead
 * ones for each; or one ladder block into the ladder's chunk (at most 128 KiB copied). True while
 * more is to do; false also when memory was short or mem/calm holds it back, and then
 * arena_wants_evacuation stays true: ask again later. Once a unit, its memory goes back to the kernel: the longest call, 50 us for 2 MiB.
 */
bool arena_evacuate(struct arena *a, size_t max_records);

struct arena_stats {
    size_t live_bytes, dead_bytes;
    size_t reserved_bytes; /* memory held: ladder blocks and whole chunks */
    size_t huge_bytes;     /* of these on huge pages */
    size_t units;
};
void arena_get_stats(const struct arena *a, struct arena_stats *out);

/* Call fn for each live record, in offset order. fn must not alloc or free. */
void arena_each(const struct arena *a, void (*fn)(void *arg, uint64_t ref, void *record),
                void *arg);

/* Verify every invariant: walks all units, recounts live and dead bytes, walks the free lists.
 * Aborts on a fault. */
void arena_check(const struct arena *a);

/* Tests: place the next fresh chunk at this ref (a multiple of a chunk), to reach refs above 32
 * bits. */
void arena_skip_to(struct arena *a, uint64_t ref);

#endif
