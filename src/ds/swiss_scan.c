/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks: in hash order with a cursor that survives any resize, over everything at once, and at
 * random. */
#include "swiss_priv.h"

enum {
    SCAN_SPARE_GROUPS = 64, /* groups a call may pass beyond what was wanted */
    SCAN_RUN_GROUPS = 8,    /* home groups taken together, so that their chains are read once */
    SCAN_GROUP_YIELD = 12,  /* entries a group gives, roughly */
    SCAN_BATCH = 64,        /* refs whose records are fetched together */
    NEXT_SLOT_BITS = 20,    /* of swiss_next's position */
};

static_assert(((uint64_t)SWISS_GROUPS_CAP * GROUP_SLOTS) >> NEXT_SLOT_BITS == 0, "slots fit");

/* ---- scan ---- */

/* One run of home groups: the entries whose order bits lie in [from, to). */
struct scan {
    const struct swiss *s;
    uint64_t from;
    uint64_t to;
    size_t seen;
    swiss_visit fn;
    void *arg;
    size_t n;
    uint64_t refs[SCAN_BATCH];
};

static void scan_flush(struct scan *scan) {
    const struct swiss *s = scan->s;
    for (size_t i = 0; i < scan->n; i++) {
        uint64_t order = s->ops->hash_of(s->owner, scan->refs[i]) >> SWISS_TAG_BITS;
        if (order >= scan->from && order < scan->to) {
            scan->fn(scan->arg, scan->refs[i]);
            scan->seen++;
        }
    }
    scan->n = 0;
}

/* The segment that the scan is in. */
static const struct segment *scan_segment(const struct scan *scan) {
    return entry_segment(entry_of(scan->s, scan->from << SWISS_TAG_BITS));
}

/* Entries at home in groups [home, home + run) lie there or behind, up to the first group with an
 * EMPTY slot from the last home on. */
static void scan_run(struct scan *scan, uint32_t home, uint32_t run) {
    const struct swiss *s = scan->s;
    const struct segment *seg = scan_segment(scan);
    uint32_t g = home;
    for (uint32_t passed = 1; passed <= seg->groups; passed++) {
        const uint8_t *group = group_at(seg, stride_of(seg->wide), g);
        if (scan->n + GROUP_SLOTS > SCAN_BATCH) {
            scan_flush(scan);
            seg = scan_segment(scan); /* fn may have freed another index: segments move */
            group = group_at(seg, stride_of(seg->wide), g);
        }
        for (uint64_t mask = group_full(group); mask != 0; mask &= mask - 1) {
            uint64_t ref = group_ref(group, group_first(mask), seg->wide);
            if (s->ops->prefetch != NULL) {
                s->ops->prefetch(s->owner, ref);
            }
            scan->refs[scan->n++] = ref;
        }
        if (passed >= run && group_has_empty(group)) {
            break;
        }
        g = g + 1 == seg->groups ? 0 : g + 1;
    }
    scan_flush(scan);
}

/* The order bits where home group h of a segment begins: the least position p with p x groups >> 32
 * = h. */
static uint64_t group_start(uint64_t base, unsigned depth, uint32_t groups, uint32_t h) {
    if (h == groups) {
        return base + ((uint64_t)1 << (SWISS_ORDER_BITS - depth));
    }
    uint64_t position = (((uint64_t)h << 32) + groups - 1) / groups;
    return base + (position << (SWISS_DIRECTORY_BITS - depth));
}

static uint32_t smaller(size_t a, uint32_t b) {
    return a < b ? (uint32_t)a : b;
}

/* Go on from scan->to; returns the groups passed. */
static size_t scan_on(struct scan *scan, size_t want) {
    uint64_t hash = scan->to << SWISS_TAG_BITS;
    uint64_t entry = entry_of(scan->s, hash);
    unsigned depth = entry_depth(entry);
    unsigned shift = SWISS_ORDER_BITS - depth;
    uint64_t base = scan->to >> shift << shift;
    uint32_t home = home_group(hash, depth, entry_groups(entry));
    scan->from = scan->to;
    const struct segment *seg = scan_segment(scan);
    if (seg->count == 0) {
        scan->to = base + ((uint64_t)1 << shift);
        return 1;
    }
    uint32_t run = smaller((want - scan->seen) / SCAN_GROUP_YIELD + 1, SCAN_RUN_GROUPS);
    run = smaller(run, seg->groups - home);
    scan->to = group_start(base, depth, seg->groups, home + run);
    scan_run(scan, home, run);
    return run;
}

uint64_t swiss_scan(const struct swiss *s, uint64_t cursor, size_t want, swiss_visit fn,
                    void *arg) {
    if (s->count == 0 || cursor >> SWISS_ORDER_BITS != 0) {
        return 0;
    }
    struct scan scan = {.s = s, .to = cursor, .fn = fn, .arg = arg};
    size_t passed = 0;
    do {
        passed += scan_on(&scan, want);
        if (scan.to >> SWISS_ORDER_BITS != 0) {
            return 0;
        }
    } while (scan.seen < want && (passed < SCAN_SPARE_GROUPS || passed - SCAN_SPARE_GROUPS < want));
    return scan.to;
}

/* ---- everything ---- */

size_t swiss_next(const struct swiss *s, uint64_t *position, uint64_t *refs, size_t cap) {
    if (s->count == 0) {
        return 0;
    }
    const uint64_t *dir = directory_of(s);
    uint64_t i = *position >> NEXT_SLOT_BITS;
    uint32_t slot = *position & ((1u << NEXT_SLOT_BITS) - 1);
    size_t n = 0;
    while (i < (uint64_t)1 << s->depth && n < cap) {
        const struct segment *seg = entry_segment(dir[i]);
        while (slot < (uint32_t)seg->groups * GROUP_SLOTS && n < cap) {
            const uint8_t *group = group_at(seg, stride_of(seg->wide), slot / GROUP_SLOTS);
            uint64_t mask = group_full(group);
            mask &= GROUP_MASK_ALL << (slot % GROUP_SLOTS * GROUP_MASK_STRIDE);
            for (; mask != 0 && n < cap; mask &= mask - 1) {
                refs[n] = group_ref(group, group_first(mask), seg->wide);
                if (s->ops->prefetch != NULL) {
                    s->ops->prefetch(s->owner, refs[n]);
                }
                n++;
            }
            slot = mask != 0 ? slot / GROUP_SLOTS * GROUP_SLOTS + group_first(mask)
                             : (slot / GROUP_SLOTS + 1) * GROUP_SLOTS;
        }
        if (slot >= (uint32_t)seg->groups * GROUP_SLOTS) {
            i += (uint64_t)1 << (s->depth - entry_depth(dir[i]));
            slot = 0;
        }
    }
    *position = i << NEXT_SLOT_BITS | slot;
    return n;
}

void swiss_each(const struct swiss *s, swiss_visit fn, void *arg) {
    uint64_t refs[2][SCAN_BATCH / 2];
    uint64_t position = 0;
    unsigned now = 0;
    size_t n = swiss_next(s, &position, refs[now], SCAN_BATCH / 2);
    while (n > 0) {
        size_t ahead = swiss_next(s, &position, refs[now ^ 1], SCAN_BATCH / 2);
        for (size_t i = 0; i < n; i++) {
            fn(arg, refs[now][i]);
        }
        n = ahead;
        now ^= 1;
    }
}

/* ---- random ---- */

/* A uniform slot of a segment until it is a full one. */
static uint64_t random_of_segment(const struct segment *seg, struct rng *rng) {
    for (;;) {
        uint64_t slot = rng_below(rng, (uint64_t)seg->groups * GROUP_SLOTS);
        const uint8_t *group = group_at(seg, stride_of(seg->wide), (uint32_t)(slot / GROUP_SLOTS));
        if ((group[slot % GROUP_SLOTS] & 0x80) == 0) {
            return group_ref(group, slot % GROUP_SLOTS, seg->wide);
        }
    }
}

/* Rejection: a segment is drawn with probability 2^-depth (only the first of its directory entries
 * counts), then accepted with probability count / bound, bound being no less than any segment's
 * count: each entry equally. */
uint64_t swiss_random(const struct swiss *s, struct rng *rng) {
    if (s->count == 0) {
        return SWISS_NONE;
    }
    if (s->depth == 0) {
        return random_of_segment(entry_segment(s->root.only), rng);
    }
    uint64_t bound = (uint64_t)s->largest * GROUP_SLOTS;
    for (;;) {
        uint64_t i = rng_next(rng) >> (64 - s->depth);
        uint64_t entry = s->root.directory[i];
        uint64_t span = (uint64_t)1 << (s->depth - entry_depth(entry));
        const struct segment *seg = entry_segment(entry);
        if (i % span == 0 && rng_below(rng, bound) < seg->count) {
            return random_of_segment(seg, rng);
        }
    }
}
