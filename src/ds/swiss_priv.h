/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts shared by the files of the swiss index; nothing here leaves them.
 *
 * A directory entry names a segment and all that is needed to compute a home group's address from a
 * hash, so that a lookup reads the directory and the group and never the segment's header:
 *
 *   63                          20 19           6    5      4       0
 *   +-----------------------------+-------------+------+-------------+
 *   | segment address / 16  (44)  | groups (14) | wide | depth (5)   |     0 = no segment
 *   +-----------------------------+-------------+------+-------------+
 *
 * A segment, 32 bytes then its groups, group g at 32 + g x 80 (narrow) or 32 + g x 96 (wide):
 *
 *   0       4            8       12       14      15     16      24       28       32
 *   +-------+------------+-------+--------+-------+------+-------+--------+--------+---------+- -
 *   | count | tombstones | limit | groups | depth | wide | owner | prefix | unused | group 0 |
 *   +-------+------------+-------+--------+-------+------+-------+--------+--------+---------+- -
 *
 * Largest normal narrow segment: 32 + 102 x 80 = 8192 bytes. A wide one of as many groups: 32 + 102
 * x 96 = 9824.
 *
 * Where segments lie: up to SWISS_GROUPS_SMALL groups, and beyond SWISS_GROUPS_MAX, in heap
 * allocations; between, in slots of mem/dense, a pool for each size, shared by all indexes. There
 *
 *   freeing a segment may move any other one, of any index,
 *
 * and its owner's directory is corrected before swiss_segment_free returns: a pointer to a segment
 * is not to be used after that, but found again. A segment that no directory names yet, or any more,
 * must not be moved: such are freed last created first, or by swiss_segments_free. */
#ifndef DS_SWISS_PRIV_H
#define DS_SWISS_PRIV_H

#include "ds/swiss.h"
#include "swiss_group.h"

enum {
    SWISS_DIRECTORY_BITS = 25,
    SWISS_TAG_BITS = 7,
    SWISS_ORDER_BITS = 64 - SWISS_TAG_BITS, /* 57: a scan cursor counts in these */
    SWISS_GROUPS_MAX = SWISS_SEGMENT_SLOTS_MAX / GROUP_SLOTS,
    SWISS_GROUPS_SMALL = 25, /* 2032 bytes when narrow, in jemalloc's 2048 */
    SWISS_GROUPS_CAP = 2047, /* of a segment whose entries no directory can tell apart */
    SWISS_STRIDE_NARROW = GROUP_SLOTS + GROUP_SLOTS * 4,   /* 80 */
    SWISS_STRIDE_WIDE = SWISS_STRIDE_NARROW + GROUP_SLOTS, /* 96 */
};

struct segment {
    uint32_t count;      /* full slots */
    uint32_t tombstones; /* DELETED slots */
    uint32_t limit;      /* count + tombstones may not pass this; < slots, so probing ends */
    uint16_t groups;
    uint8_t depth; /* leading hash bits that all its entries share */
    uint8_t wide;
    struct swiss *owner; /* whose directory names it, NULL while none does */
    uint32_t prefix;     /* those leading bits */
    uint32_t unused;
    uint8_t group[]; /* groups x stride */
};

static_assert(sizeof(struct segment) == 32, "segment header");
static_assert(32 + SWISS_GROUPS_MAX * SWISS_STRIDE_NARROW == 8192, "the largest normal one");
static_assert(offsetof(struct segment, group) == 32, "groups follow the header");
static_assert(sizeof(void *) == 8, "directory entries hold 48-bit pointers");
static_assert(sizeof(struct swiss) == 48, "struct swiss is 48 bytes");

static inline size_t stride_of(bool wide) {
    return wide ? SWISS_STRIDE_WIDE : SWISS_STRIDE_NARROW;
}

/* ---- directory entries ---- */

static inline uint64_t entry_pack(const struct segment *seg) {
    uint64_t address = (uint64_t)(uintptr_t)seg;
    assert(address % 16 == 0 && address >> 48 == 0);
    return address / 16 << 20 | (uint64_t)seg->groups << 6 | (uint64_t)seg->wide << 5 | seg->depth;
}

static inline struct segment *entry_segment(uint64_t entry) {
    return (struct segment *)(uintptr_t)(entry >> 20 << 4);
}

static inline uint32_t entry_groups(uint64_t entry) {
    return (uint32_t)(entry >> 6) & 0x3fff;
}

static inline bool entry_wide(uint64_t entry) {
    return entry >> 5 & 1;
}

static inline unsigned entry_depth(uint64_t entry) {
    return entry & 31;
}

/* While the depth is 0 the one entry lives in the struct itself: a small table has no directory. */
static inline const uint64_t *directory_of(const struct swiss *s) {
    return s->depth == 0 ? &s->root.only : s->root.directory;
}

static inline uint64_t directory_index(const struct swiss *s, uint64_t hash) {
    return s->depth == 0 ? 0 : hash >> (64 - s->depth);
}

static inline uint64_t entry_of(const struct swiss *s, uint64_t hash) {
    return s->depth == 0 ? s->root.only : s->root.directory[hash >> (64 - s->depth)];
}

/* ---- places ---- */

static inline uint8_t tag_of(uint64_t hash) {
    return hash & 0x7f;
}

/* The 32 bits below the segment's depth spread evenly over its groups, in order (Lemire's range
 * reduction). With depth <= 25 they end at bit 7: never a tag bit. */
static inline uint32_t home_group(uint64_t hash, unsigned depth, uint32_t groups) {
    uint64_t position = hash << depth >> 32;
    return (uint32_t)(position * groups >> 32);
}

static inline uint8_t *group_at(const struct segment *seg, size_t stride, uint32_t g) {
    return (uint8_t *)(uintptr_t)seg->group + g * stride;
}

static inline uint64_t group_ref(const uint8_t *group, unsigned slot, bool wide) {
    uint32_t low;
    memcpy(&low, group + GROUP_SLOTS + slot * 4, sizeof(low));
    return wide ? (uint64_t)group[SWISS_STRIDE_NARROW + slot] << 32 | low : low;
}

static inline void group_set_ref(uint8_t *group, unsigned slot, bool wide, uint64_t ref) {
    uint32_t low = (uint32_t)ref;
    memcpy(group + GROUP_SLOTS + slot * 4, &low, sizeof(low));
    if (wide) {
        group[SWISS_STRIDE_NARROW + slot] = (uint8_t)(ref >> 32);
    }
}

/* Put an absent entry into the first free slot from its home on. count + tombstones < limit, or a
 * free slot at least. */
static inline void segment_place(struct segment *seg, uint64_t hash, uint64_t ref) {
    size_t stride = stride_of(seg->wide);
    uint32_t g = home_group(hash, seg->depth, seg->groups);
    uint64_t mask;
    while ((mask = group_free(group_at(seg, stride, g))) == 0) {
        g = g + 1 == seg->groups ? 0 : g + 1;
    }
    uint8_t *group = group_at(seg, stride, g);
    unsigned slot = group_first(mask);
    seg->tombstones -= group[slot] == CTRL_DELETED;
    seg->count++;
    group[slot] = tag_of(hash);
    group_set_ref(group, slot, seg->wide, ref);
}

/* ---- swiss_segment.c ---- */

/* Bytes a segment of so many groups takes from the heap or a pool. */
size_t swiss_segment_bytes(uint32_t groups, bool wide);

/* The least size that has no fewer groups and wastes no bytes. */
uint32_t swiss_fit_groups(uint32_t groups, bool wide);

/* The next size up. */
uint32_t swiss_next_groups(uint32_t groups, bool wide);

/* An empty segment that no directory names; NULL when memory is short. Moves nothing. */
struct segment *swiss_segment_create(uint32_t groups, uint32_t limit, unsigned depth, bool wide);

/* May move any other segment, see above. NULL is allowed. */
void swiss_segment_free(struct segment *seg);

/* Both of two that no directory names any more. */
void swiss_segments_free(struct segment *a, struct segment *b);

/* Name seg at every entry of the prefix that it shares with hash. */
void swiss_directory_set(struct swiss *s, uint64_t hash, struct segment *seg);

/* ---- swiss_resize.c ---- */

/* Give the segment of this hash room for one more entry; on ST_NOMEM nothing changed. May have to
 * be called again. */
MUST_CHECK enum status swiss_make_room(struct swiss *s, uint64_t hash);

/* Give the segment of this hash wide refs; asks for no record. */
MUST_CHECK enum status swiss_widen(struct swiss *s, uint64_t hash);

/* The segment of this hash has got sparse: merge it with its buddy or shrink it if that pays. */
void swiss_make_compact(struct swiss *s, uint64_t hash);

#endif
