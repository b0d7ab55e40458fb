/* SPDX-License-Identifier: BSD-3-Clause */
/* What the arena's files share: units, dead records, free lists. See mem/arena.h and
 * mem/arena_layout.h. */
#ifndef MEM_ARENA_PRIV_H
#define MEM_ARENA_PRIV_H

#include "mem/arena.h"

#define ARENA_NO_UNIT UINT32_MAX
#define ARENA_RECORD_LIMIT ((size_t)64 * 1024)
#define ARENA_LINK_NONE ((UINT64_C(1) << ARENA_REF_BITS) - 1) /* no ref: end of a list */

enum arena_ladder {
    LADDER_BLOCKS, /* heap blocks, or empty */
    LADDER_WANTED, /* to be moved into a chunk */
    LADDER_MOVING, /* slots below `walk` (a slot number here) have been moved */
    LADDER_WHOLE,  /* one unit on one chunk, head 0 */
};

/* One a slot, meaningful at a unit's head. A slot that continues a unit has live == ARENA_CONTINUES
 * and its head in used. */
struct arena_unit {
    uint32_t live; /* bytes in live records */
    uint32_t used; /* bytes up to the last record (stale while open); ARENA_UNIT_HUGE on top */
};

#define ARENA_CONTINUES UINT32_MAX
#define ARENA_UNIT_HUGE (UINT32_C(1) << 31) /* on the kind of OS page asked for */

/* ---- AddressSanitizer sees into the arena ---- */

#ifdef GC_SANITIZE
#include <sanitizer/asan_interface.h>
#define NO_ASAN __attribute__((no_sanitize("address")))
#define POISON(ptr, len) __asan_poison_memory_region((ptr), (len))
#define UNPOISON(ptr, len) __asan_unpoison_memory_region((ptr), (len))
#else
#define NO_ASAN
#define POISON(ptr, len) ((void)(ptr), (void)(len))
#define UNPOISON(ptr, len) ((void)(ptr), (void)(len))
#endif

/* ---- dead records ----
 *
 *   under 14 bytes       14 bytes and more
 *   0      1       2     0      1       2       4        9        14
 *   +------+-------+--   +------+-------+-------+--------+--------+- - -
 *   | 0xFE | units |     | 0xFF | flags | units | next:5 | prev:5 | stale
 *   +------+-------+--   +------+-------+-------+--------+--------+- - -
 *
 *   units of ARENA_UNIT bytes; next and prev are refs, little-endian, and mean something only in a
 *   listed record. */
#define DEAD_SMALL 0xFE
#define DEAD_LARGE 0xFF
#define DEAD_LISTED 1
#define DEAD_HEADER_BYTES 14

static_assert(ARENA_DEAD_MARK == DEAD_SMALL, "the marks of dead records start there");
static_assert(ARENA_RECORD_LIMIT / ARENA_UNIT <= UINT16_MAX, "units fit their field");

NO_ASAN static inline bool dead_is(const uint8_t *p) {
    return p[0] >= ARENA_DEAD_MARK;
}

NO_ASAN static inline size_t dead_bytes(const uint8_t *p) {
    size_t units = p[0] == DEAD_SMALL ? p[1] : (size_t)p[2] | (size_t)p[3] << 8;
    return units * ARENA_UNIT;
}

NO_ASAN static inline bool dead_is_listed(const uint8_t *p) {
    return p[0] == DEAD_LARGE && (p[1] & DEAD_LISTED) != 0;
}

NO_ASAN static inline void dead_set_listed(uint8_t *p, bool listed) {
    p[1] = listed ? DEAD_LISTED : 0;
}

NO_ASAN static inline void dead_mark(uint8_t *p, size_t bytes) {
    size_t units = bytes / ARENA_UNIT;
    if (bytes < DEAD_HEADER_BYTES) {
        p[0] = DEAD_SMALL;
        p[1] = (uint8_t)units;
        return;
    }
    p[0] = DEAD_LARGE;
    p[1] = 0;
    p[2] = (uint8_t)units;
    p[3] = (uint8_t)(units >> 8);
}

NO_ASAN static inline uint64_t dead_get_link(const uint8_t *p) {
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32;
}

NO_ASAN static inline void dead_set_link(uint8_t *p, uint64_t ref) {
    p[0] = (uint8_t)ref;
    p[1] = (uint8_t)(ref >> 8);
    p[2] = (uint8_t)(ref >> 16);
    p[3] = (uint8_t)(ref >> 24);
    p[4] = (uint8_t)(ref >> 32);
}

#define DEAD_NEXT(p) ((p) + 4)
#define DEAD_PREV(p) ((p) + 9)

/* ---- size classes: those of arena_round ----
 *
 *   up to 1024    every even length, 512 classes
 *   above         64 steps a doubling, 384 classes up to 64 KiB: rounding wastes at most 1/64 */
#define CLASS_FINE_MAX 1024
#define CLASS_FINE_COUNT (CLASS_FINE_MAX / ARENA_UNIT)
#define CLASS_STEPS_SHIFT 6
#define CLASS_COUNT (CLASS_FINE_COUNT + (6 << CLASS_STEPS_SHIFT)) /* 896 */

/* log2 of the class step for lengths above CLASS_FINE_MAX: 2^e < len <= 2^(e+1) has steps of
 * 2^(e-6). */
static inline unsigned class_step_shift(size_t len) {
    return 63 - (unsigned)__builtin_clzll((unsigned long long)(len - 1)) - CLASS_STEPS_SHIFT;
}

static inline size_t class_of(size_t rounded) {
    if (LIKELY(rounded <= CLASS_FINE_MAX)) {
        return rounded / ARENA_UNIT - 1;
    }
    unsigned shift = class_step_shift(rounded);
    size_t doubling = shift + CLASS_STEPS_SHIFT - 10; /* 1024 = 2^10 */
    size_t step = ((rounded - 1) >> shift) - (1u << CLASS_STEPS_SHIFT);
    return CLASS_FINE_COUNT + (doubling << CLASS_STEPS_SHIFT) + step;
}

#ifndef GC_ARENA_GUARDED

/* ---- slots and units ---- */

static inline size_t arena_chunk_bytes(const struct arena *a) {
    return (size_t)1 << a->chunk_shift;
}

static inline struct arena_unit *arena_units(const struct arena *a) {
    return (struct arena_unit *)(void *)(a->base + a->cap);
}

static inline uint64_t slot_start(const struct arena *a, size_t slot) {
    if (slot >= a->ladder_slots) {
        return (uint64_t)(slot - a->ladder_slots + 1) << a->chunk_shift;
    }
    return slot == 0 ? 0 : (uint64_t)(8 + (slot - 1) % 8) << ((slot - 1) / 8 + 7);
}

static inline size_t slot_bytes(const struct arena *a, size_t slot) {
    if (slot >= a->ladder_slots) {
        return arena_chunk_bytes(a);
    }
    return slot == 0 ? ARENA_LADDER_FIRST : (size_t)1 << ((slot - 1) / 8 + 7);
}

static inline uint32_t unit_of(const struct arena *a, uint64_t off) {
    size_t slot = arena_slot(a, off);
    const struct arena_unit *unit = &arena_units(a)[slot];
    return unit->live == ARENA_CONTINUES ? unit->used : (uint32_t)slot;
}

/* Bytes up to the unit's last record. */
static inline size_t unit_used(const struct arena *a, uint32_t head) {
    if (head == a->open) {
        return (size_t)(a->bump - slot_start(a, head));
    }
    return arena_units(a)[head].used & ~ARENA_UNIT_HUGE;
}

static inline bool unit_exists(const struct arena *a, size_t slot) {
    return a->base[slot] != 0 && arena_units(a)[slot].live != ARENA_CONTINUES;
}

static inline uint8_t *offset_at(const struct arena *a, uint64_t off) {
    return arena_at(a, off / ARENA_UNIT);
}

static_assert(ARENA_LADDER_FIRST == 1 << 10, "arena_slot and the functions above count from 2^10");

/* Slots that the unit covers, 1 and more. */
size_t arena_unit_slots(const struct arena *a, uint32_t head);

/* Does any ladder slot have memory? */
bool arena_ladder_in_use(const struct arena *a);

/* Free a unit's memory; the offsets are free again. The last one takes the tables with it. */
void arena_release_unit(struct arena *a, uint32_t head);

/* No more records go into the open unit. */
void arena_close_open(struct arena *a);

/* Take a listed dead record off its list. */
void arena_unlink(struct arena *a, uint64_t ref);

/* Before everything is freed: a half-moved ladder becomes one unit again, contents void. */
void arena_abort_move(struct arena *a);

/* Make len bytes at off, which no record covers, into dead records on the lists. */
void arena_fill_dead(struct arena *a, uint64_t off, size_t len);

#endif

#endif
