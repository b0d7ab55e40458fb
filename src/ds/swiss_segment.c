/* SPDX-License-Identifier: BSD-3-Clause */
/* Where segments lie: sizes, pools, and what happens when a pool moves one.
 *
 * While a large index grows, all its segments pass through a size at about the same time. With an
 * allocator's classes that leaves slabs half empty in one class after the other; mem/dense has no
 * holes. docs/design/007-dense.md */
#include "mem/account.h"
#include "mem/dense.h"
#include "mem/index.h"
#include "swiss_priv.h"

/* Group counts of pooled segments, about x 1.17: four steps a doubling. */
static const uint8_t pool_groups[] = {29, 34, 40, 48, 60, 72, 86, SWISS_GROUPS_MAX};

static struct dense pools[ARRAY_LEN(pool_groups)][2]; /* [size][wide] */

/* ---- sizes ---- */

static size_t raw_bytes(uint32_t groups, bool wide) {
    return sizeof(struct segment) + groups * stride_of(wide);
}

static bool is_pooled(uint32_t groups) {
    return groups > SWISS_GROUPS_SMALL && groups <= SWISS_GROUPS_MAX;
}

/* The pool that has room for so many groups, at most SWISS_GROUPS_MAX. */
static size_t pool_index(uint32_t groups) {
    size_t i = 0;
    while (pool_groups[i] < groups) {
        i++;
    }
    return i;
}

size_t swiss_segment_bytes(uint32_t groups, bool wide) {
    return is_pooled(groups) ? raw_bytes(pool_groups[pool_index(groups)], wide)
                             : account_good_size(raw_bytes(groups, wide));
}

/* Most groups in the allocation class that holds `bytes`. */
static uint32_t class_groups(size_t bytes, bool wide) {
    return (uint32_t)((account_good_size(bytes) - sizeof(struct segment)) / stride_of(wide));
}

uint32_t swiss_fit_groups(uint32_t groups, bool wide) {
    if (is_pooled(groups)) {
        return pool_groups[pool_index(groups)];
    }
    uint32_t filled = class_groups(raw_bytes(groups, wide), wide);
    return groups > SWISS_GROUPS_SMALL || filled < SWISS_GROUPS_SMALL ? filled : SWISS_GROUPS_SMALL;
}

/* jemalloc's classes are 1.143 to 1.25 apart, so an eighth more is never past the next one;
 * allocators with finer ones give steps of an eighth. */
uint32_t swiss_next_groups(uint32_t groups, bool wide) {
    if (groups >= SWISS_GROUPS_SMALL && groups < SWISS_GROUPS_MAX) {
        return swiss_fit_groups(groups + 1, wide);
    }
    size_t bytes = swiss_segment_bytes(groups, wide);
    uint32_t next;
    do {
        bytes = account_good_size(bytes + bytes / 8 + 1);
        next = class_groups(bytes, wide);
    } while (next <= groups);
    return groups >= SWISS_GROUPS_MAX || next < SWISS_GROUPS_SMALL ? next : SWISS_GROUPS_SMALL;
}

/* ---- the directory ---- */

void swiss_directory_set(struct swiss *s, uint64_t hash, struct segment *seg) {
    seg->owner = s;
    seg->prefix = seg->depth == 0 ? 0 : (uint32_t)(hash >> (64 - seg->depth));
    if (s->depth == 0) {
        s->root.only = entry_pack(seg);
        return;
    }
    uint64_t span = (uint64_t)1 << (s->depth - seg->depth);
    uint64_t first = directory_index(s, hash) & ~(span - 1);
    for (uint64_t i = 0; i < span; i++) {
        s->root.directory[first + i] = entry_pack(seg);
    }
}

static void segment_moved(void *from, void *to) {
    struct segment *seg = to;
    uint64_t hash = seg->depth == 0 ? 0 : (uint64_t)seg->prefix << (64 - seg->depth);
    assert(seg->owner != NULL && entry_segment(entry_of(seg->owner, hash)) == from);
    (void)from;
    swiss_directory_set(seg->owner, hash, seg);
}

/* ---- life ---- */

static struct dense *pool_of(uint32_t groups, bool wide) {
    size_t i = pool_index(groups);
    struct dense *pool = &pools[i][wide];
    if (UNLIKELY(pool->slot_bytes == 0)) {
        dense_init(pool, raw_bytes(pool_groups[i], wide), segment_moved);
    }
    return pool;
}

struct segment *swiss_segment_create(uint32_t groups, uint32_t limit, unsigned depth, bool wide) {
    struct segment *seg = is_pooled(groups) ? dense_alloc(pool_of(groups, wide))
                                            : index_alloc(ACCOUNT_INDEX, raw_bytes(groups, wide));
    if (seg == NULL) {
        return NULL;
    }
    *seg = (struct segment){
        .limit = limit, .groups = (uint16_t)groups, .depth = (uint8_t)depth, .wide = wide};
    for (uint32_t g = 0; g < groups; g++) {
        memset(group_at(seg, stride_of(wide), g), CTRL_EMPTY, GROUP_SLOTS);
    }
    return seg;
}

void swiss_segment_free(struct segment *seg) {
    if (seg != NULL && is_pooled(seg->groups)) {
        dense_free(pool_of(seg->groups, seg->wide), seg);
    } else if (seg != NULL) {
        index_free(ACCOUNT_INDEX, seg, raw_bytes(seg->groups, seg->wide));
    }
}

/* A pool moves its last slot only. If one of the two is that, it goes first. If neither is, freeing
 * the first moves a third, and then the other one may be the last, which is freed without a move. */
void swiss_segments_free(struct segment *a, struct segment *b) {
    bool b_first = is_pooled(b->groups) && dense_last(pool_of(b->groups, b->wide)) == b;
    swiss_segment_free(b_first ? b : a);
    swiss_segment_free(b_first ? a : b);
}
