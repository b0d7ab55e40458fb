/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of struct arena, published only so that arena_at is a few inlined instructions.
 * Included by mem/arena.h.
 *
 * Slots number the pieces of the offset space, in order:
 *
 *   slot      0        1 .. 8        9 .. 16       ..  ladder_slots - 1 | ladder_slots     + 1 ..
 *   offset    0..1023  1024 + 128 i  2048 + 256 i  ..  .. chunk_bytes   | chunk_bytes x 1  x 2 ..
 *
 *   ladder_slots = 1 + 8 x (log2(chunk_bytes) - 10) = 89 for 2 MiB
 *
 * base[slot] is the address of the slot's memory less its offset, so an address is base[slot] +
 * offset. One allocation may cover several slots (all with the same base); its first slot, the
 * head, names the unit. Beside base lies one struct arena_unit a slot: 16 bytes a slot in one table
 * that grows with the arena. 500 records of 34 bytes: 17,000 bytes in 18,432 of blocks, 34 slots of
 * table, 640 bytes. */
#ifndef MEM_ARENA_LAYOUT_H
#define MEM_ARENA_LAYOUT_H

#include "base/compiler.h"

/* Dead bytes may reach live / SHARE + FLOOR before evacuation starts. The floor keeps tiny arenas
 * still. */
#define ARENA_DEAD_SHARE 5
#define ARENA_DEAD_FLOOR 1024

#ifdef GC_ARENA_GUARDED

struct arena_guarded_record {
    void *ptr; /* NULL: free */
    size_t len;
};

/* Each record its own allocation; a ref is an index into a table, plus skip for those made after
 * arena_skip_to. */
struct arena {
    const struct arena_ops *ops;
    void *owner;
    struct pages *pages;
    struct arena_guarded_record *records;
    size_t count, cap;   /* entries in use or once used, entries allocated */
    size_t skip_count;   /* entries made before arena_skip_to */
    uint64_t skip;       /* what was skipped, in refs */
    uint64_t live_bytes; /* rounded as everywhere */
};

static inline void *arena_at(const struct arena *a, uint64_t ref) {
    return a->records[ref < a->skip_count ? ref : ref - a->skip].ptr;
}

static inline bool arena_wants_evacuation(const struct arena *a) {
    return false;
}

#else

/* 136 bytes. */
struct arena {
    uintptr_t *base;       /* cap entries, then cap struct arena_unit; 0: the slot has no memory */
    uint16_t ladder_slots; /* slots below chunk_bytes */
    uint8_t chunk_shift;   /* log2(chunk_bytes) */
    uint8_t ladder;        /* enum arena_ladder: blocks on the heap, on the move, or one chunk */
    bool ladder_huge;      /* the ladder's chunk is on huge pages */
    bool working;          /* a victim or a ladder move is under way */
    uint16_t heads_count;  /* classes that heads covers */
    uint64_t live_bytes;
    uint64_t used_bytes; /* live and dead: all units up to their last record */
    uint64_t bump;       /* offset of the next record in the open unit */
    uint64_t
        bump_end; /* offset behind what of the open unit may be used; bump == bump_end == 0: none is open */
    uint64_t *heads; /* first ref of each size class's free list */
    const struct arena_ops *ops;
    void *owner;
    struct pages *pages;
    uint64_t walk;         /* offset that the evacuation has reached in the victim */
    uintptr_t ladder_base; /* the ladder's chunk, 0 while it has none */
    uint32_t slots;        /* slots in the table, all behind are free */
    uint32_t cap;
    uint32_t open;       /* head of the unit that bump is in, or ARENA_NO_UNIT */
    uint32_t victim;     /* head of the unit under evacuation, or ARENA_NO_UNIT */
    uint32_t first_free; /* no slot below is free */
    uint32_t units;
    uint32_t chunks; /* units on chunks; huge_chunks of them on the kind asked for */
    uint32_t huge_chunks;
    uint32_t move_wait; /* calls of arena_evacuate until the ladder's next block moves */
};

static_assert(sizeof(struct arena) == 136, "one arena a collection: keep it small");

/* Offset -> slot. Above the ladder one shift; in it the top four bits of the offset (see the
 * drawing above). */
static ALWAYS_INLINE size_t arena_slot(const struct arena *a, uint64_t off) {
    uint64_t chunk = off >> a->chunk_shift;
    if (LIKELY(chunk != 0)) {
        return a->ladder_slots - 1 + (size_t)chunk;
    }
    uint64_t o = off < 1024 ? 1023 : off; /* 1023 lands in slot 0 by the same formula */
    unsigned top = 63 - (unsigned)__builtin_clzll(o);
    return 8 * (size_t)top + (size_t)(o >> (top - 3)) - 87;
}

static inline void *arena_at(const struct arena *a, uint64_t ref) {
    uint64_t off = ref * 2;
    return (void *)(a->base[arena_slot(a, off)] + off); // NOLINT(performance-no-int-to-ptr)
}

static inline bool arena_wants_evacuation(const struct arena *a) {
    return a->working ||
           a->used_bytes - a->live_bytes > a->live_bytes / ARENA_DEAD_SHARE + ARENA_DEAD_FLOOR;
}

#endif

#endif
