/* SPDX-License-Identifier: BSD-3-Clause */
/* How segments grow, split, merge, shrink and rebuild, each alone.
 *
 * A new segment is allocated first, filled in order from the old ones, then put in the directory: a
 * failed allocation leaves all as it was, and the old ones are freed, which may move others, when
 * no pointer to a segment is needed any more. Asking records for their hashes is the cost (they lie
 * anywhere in memory), so they are prefetched a group ahead. benchmarks/micro/ds_swiss.c */
#include "mem/account.h"
#include "swiss_priv.h"

/* Loads in 1/256 of the slots. */
enum {
    LOAD_ONE = 256,
    LOAD_ALONE = 236,      /* 92 %: a table of one segment, whose bytes nobody averages out */
    LOAD_FEW_GROUPS = 240, /* 15 of 16: at most FEW_GROUPS, all of them near in cache */
    LOAD_LEAST = 220,      /* 86..94 %: drawn for each of many segments, so that they do not all */
    LOAD_RANGE = 21,       /* grow at the same time */
    LOAD_COMPACT = 210,    /* 82 %: what a shrunk or merged segment starts with at most */
};

enum {
    FEW_GROUPS = 16,
    PIPELINE_GROUPS = 4,   /* ~45 records in flight */
    HEADROOM_DIVISOR = 12, /* a grown segment takes at least 1/12 more entries, so that it lasts */
    TOMBSTONE_DIVISOR = 8, /* rebuild rather than grow when this part of a full segment is dead */
    /* 979; a split leaves 1403..1530 in two: no thrashing */
    MERGE_COUNT_MAX = SWISS_SEGMENT_SLOTS_MAX * 6 / 10,
    ENTRIES_PER_DIRECTORY_ENTRY_MIN = 64,
    EXPECTED_SPREAD_DIVISOR = 24, /* 4 %: of 1000 on average, nine segments in ten get no more */
    /* 1300; with that spread still below the least limit of the largest normal segment, 1402 */
    EXPECTED_COUNT_MAX = SWISS_SEGMENT_SLOTS_MAX * 8 / 10 - 5,
};

/* ---- sizes ---- */

/* The smallest size that wastes no bytes and holds count at this load. */
static uint32_t fitting_groups(uint32_t count, uint32_t load, bool wide) {
    uint32_t slots = (uint32_t)((uint64_t)count * LOAD_ONE / load) + 1;
    uint32_t groups = (slots + GROUP_SLOTS - 1) / GROUP_SLOTS;
    return swiss_fit_groups(groups, wide);
}

/* xorshift32 (Marsaglia, 2003): spreads loads, decides nothing else. */
static uint32_t draw_load(struct swiss *s, unsigned depth) {
    if (depth == 0) {
        return LOAD_ALONE;
    }
    uint32_t x = s->jitter;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    s->jitter = x;
    return LOAD_LEAST + (uint32_t)((uint64_t)x * LOAD_RANGE >> 32);
}

static uint32_t limit_at(uint32_t groups, uint32_t load) {
    uint32_t part = groups <= FEW_GROUPS ? LOAD_FEW_GROUPS : load;
    return (uint32_t)((uint64_t)groups * GROUP_SLOTS * part / LOAD_ONE);
}

/* ---- making and filling segments ---- */

/* Groups for a segment that is to take `count` entries and some more; at least min_groups. */
static uint32_t choose_groups(uint32_t count, uint32_t min_groups, uint32_t load, bool wide) {
    uint32_t wanted = count + count / HEADROOM_DIVISOR + 1;
    uint32_t groups = fitting_groups(wanted, LOAD_FEW_GROUPS, wide);
    if (groups < min_groups) {
        groups = min_groups;
    }
    while (limit_at(groups, load) < wanted) {
        groups = swiss_next_groups(groups, wide);
    }
    /* Rather little headroom than beyond the usual maximum. */
    if (groups > SWISS_GROUPS_MAX && limit_at(min_groups, load) > count) {
        groups = min_groups;
    }
    return groups < SWISS_GROUPS_CAP ? groups : SWISS_GROUPS_CAP;
}

/* An empty segment; NULL when memory is short. */
static struct segment *segment_create(struct swiss *s, uint32_t groups, uint32_t limit,
                                      unsigned depth, bool wide) {
    struct segment *seg = swiss_segment_create(groups, limit, depth, wide);
    if (seg != NULL && groups > s->largest) {
        s->largest = (uint16_t)groups;
    }
    return seg;
}

/* An empty segment sized for count entries and some more; NULL also when no segment may hold so
 * many. */
static struct segment *segment_create_for(struct swiss *s, uint32_t count, uint32_t min_groups,
                                          unsigned depth, bool wide) {
    uint32_t load = draw_load(s, depth);
    uint32_t groups = choose_groups(count, min_groups, load, wide);
    uint32_t limit = limit_at(groups, load);
    return limit > count ? segment_create(s, groups, limit, depth, wide) : NULL;
}

/* An empty segment in which count entries lie closely, yet below any limit. */
static struct segment *segment_create_compact(struct swiss *s, uint32_t count, unsigned depth,
                                              bool wide) {
    uint32_t groups = fitting_groups(count, LOAD_COMPACT, wide);
    return segment_create(s, groups, limit_at(groups, draw_load(s, depth)), depth, wide);
}

/* Groups whose refs have been read and records asked for, ahead of the one being moved. */
struct pipeline {
    const struct swiss *s;
    const struct segment *from;
    uint32_t next; /* group to gather */
    uint8_t n[PIPELINE_GROUPS];
    uint64_t refs[PIPELINE_GROUPS][GROUP_SLOTS];
};

static void gather(struct pipeline *p) {
    unsigned lane = p->next % PIPELINE_GROUPS;
    uint8_t n = 0;
    if (p->next < p->from->groups) {
        bool wide = p->from->wide;
        const uint8_t *group = group_at(p->from, stride_of(wide), p->next);
        for (uint64_t mask = group_full(group); mask != 0; mask &= mask - 1) {
            uint64_t ref = group_ref(group, group_first(mask), wide);
            if (p->s->ops->prefetch != NULL) {
                p->s->ops->prefetch(p->s->owner, ref);
            }
            p->refs[lane][n++] = ref;
        }
    }
    p->n[lane] = n;
    p->next++;
}

/* Put all entries of `from` into one segment (high == NULL) or two, by the hash bit below from's
 * depth. Returns how many have that bit set; a segment at its limit takes no more. */
static uint32_t transfer(const struct swiss *s, const struct segment *from, struct segment *low,
                         struct segment *high) {
    struct pipeline p = {.s = s, .from = from};
    uint32_t high_count = 0;
    while (p.next < PIPELINE_GROUPS - 1) {
        gather(&p);
    }
    for (uint32_t g = 0; g < from->groups; g++) {
        gather(&p);
        unsigned lane = g % PIPELINE_GROUPS;
        for (unsigned i = 0; i < p.n[lane]; i++) {
            uint64_t ref = p.refs[lane][i];
            uint64_t hash = s->ops->hash_of(s->owner, ref);
            bool up = high != NULL && (hash << from->depth >> 63) != 0;
            struct segment *to = up ? high : low;
            high_count += up;
            if (LIKELY(to->count < to->limit)) {
                segment_place(to, hash, ref);
            }
        }
    }
    return high_count;
}

/* ---- the directory ---- */

/* One more bit. 8 bytes per entry of the directory: 64 KiB at 8 M records, ~10 us. */
static enum status directory_double(struct swiss *s) {
    uint64_t n = (uint64_t)1 << s->depth;
    uint64_t *twice = account_alloc(ACCOUNT_INDEX, 2 * n * sizeof(*twice));
    if (twice == NULL) {
        return ST_NOMEM;
    }
    const uint64_t *once = directory_of(s);
    for (uint64_t i = 0; i < n; i++) {
        twice[2 * i] = once[i];
        twice[2 * i + 1] = once[i];
    }
    if (s->depth > 0) {
        account_free(ACCOUNT_INDEX, s->root.directory);
    }
    s->root.directory = twice;
    s->depth++;
    s->deepest = 0;
    return ST_OK;
}

/* One bit less, while no segment needs it; stops where memory is short. */
static void directory_trim(struct swiss *s) {
    while (s->depth > 0 && s->deepest == 0) {
        uint64_t *twice = s->root.directory;
        uint64_t n = (uint64_t)1 << (s->depth - 1);
        if (n == 1) {
            s->root.only = twice[0];
            s->deepest = 1;
        } else {
            uint64_t *once = account_alloc(ACCOUNT_INDEX, n * sizeof(*once));
            if (once == NULL) {
                return;
            }
            for (uint64_t i = 0; i < n; i++) {
                once[i] = twice[2 * i];
                s->deepest += entry_depth(once[i]) + 1u == s->depth;
            }
            s->root.directory = once;
        }
        s->depth--;
        account_free(ACCOUNT_INDEX, twice);
    }
}

/* ---- growing ---- */

static enum status install(struct swiss *s, uint64_t hash, struct segment *seg,
                           struct segment *fresh) {
    if (fresh == NULL) {
        return ST_NOMEM;
    }
    transfer(s, seg, fresh, NULL);
    swiss_directory_set(s, hash, fresh);
    swiss_segment_free(seg);
    return ST_OK;
}

static enum status grow(struct swiss *s, uint64_t hash, struct segment *seg, uint32_t groups) {
    return install(s, hash, seg, segment_create_for(s, seg->count, groups, seg->depth, seg->wide));
}

static enum status rebuild(struct swiss *s, uint64_t hash, struct segment *seg) {
    return install(s, hash, seg, segment_create(s, seg->groups, seg->limit, seg->depth, seg->wide));
}

/* Entries in the upper half of the position range, but for the few displaced over its border. */
static uint32_t estimate_high(const struct segment *seg) {
    uint32_t high = 0;
    for (uint32_t g = seg->groups / 2; g < seg->groups; g++) {
        uint64_t full = group_full(group_at(seg, stride_of(seg->wide), g));
        uint32_t n = (uint32_t)__builtin_popcountll(full);
        high += g == seg->groups / 2 && seg->groups % 2 == 1 ? n / 2 : n;
    }
    return high;
}

/* Fill two segments of one bit more from seg: false, and none, when memory is short. The sizes come
 * from an estimate; when one proves too small (hashes far from random), once more with the true
 * counts. */
static bool split_into(struct swiss *s, const struct segment *seg, struct segment *half[2]) {
    uint32_t high = estimate_high(seg);
    for (;;) {
        half[0] = segment_create_for(s, seg->count - high, 1, seg->depth + 1u, seg->wide);
        half[1] = segment_create_for(s, high, 1, seg->depth + 1u, seg->wide);
        if (half[0] != NULL && half[1] != NULL) {
            high = transfer(s, seg, half[0], half[1]);
            if (half[0]->count + half[1]->count == seg->count) {
                return true;
            }
        }
        bool short_of_memory = half[0] == NULL || half[1] == NULL;
        swiss_segment_free(half[1]);
        swiss_segment_free(half[0]);
        if (short_of_memory) {
            return false;
        }
    }
}

static enum status split(struct swiss *s, uint64_t hash, struct segment *seg) {
    struct segment *half[2];
    if (!split_into(s, seg, half)) {
        return ST_NOMEM;
    }
    if (seg->depth == s->depth && directory_double(s) != ST_OK) {
        swiss_segment_free(half[1]);
        swiss_segment_free(half[0]);
        return ST_NOMEM;
    }
    uint64_t bit = (uint64_t)1 << (63 - seg->depth);
    swiss_directory_set(s, hash & ~bit, half[0]);
    swiss_directory_set(s, hash | bit, half[1]);
    s->segments++;
    s->deepest += half[0]->depth == s->depth ? 2 : 0;
    swiss_segment_free(seg);
    return ST_OK;
}

/* Hashes that are far from random must not blow up the directory. */
static bool may_split(const struct swiss *s, const struct segment *seg) {
    if (seg->depth < s->depth) {
        return true;
    }
    return s->depth < SWISS_DIRECTORY_BITS &&
           s->count >> (s->depth + 1) >= ENTRIES_PER_DIRECTORY_ENTRY_MIN;
}

enum status swiss_make_room(struct swiss *s, uint64_t hash) {
    uint64_t entry = entry_of(s, hash);
    if (entry == 0) {
        struct segment *first = segment_create_for(s, 0, 1, 0, false);
        if (first == NULL) {
            return ST_NOMEM;
        }
        swiss_directory_set(s, hash, first);
        s->segments = 1;
        s->deepest = 1;
        return ST_OK;
    }
    struct segment *seg = entry_segment(entry);
    if (seg->tombstones >= seg->limit / TOMBSTONE_DIVISOR) {
        return rebuild(s, hash, seg);
    }
    uint32_t groups = swiss_next_groups(seg->groups, seg->wide);
    if (groups > SWISS_GROUPS_MAX && may_split(s, seg)) {
        return split(s, hash, seg);
    }
    return grow(s, hash, seg, groups);
}

/* Same groups, so each slot is copied where it was. */
enum status swiss_widen(struct swiss *s, uint64_t hash) {
    struct segment *seg = entry_segment(entry_of(s, hash));
    struct segment *fresh = segment_create(s, seg->groups, seg->limit, seg->depth, true);
    if (fresh == NULL) {
        return ST_NOMEM;
    }
    fresh->count = seg->count;
    fresh->tombstones = seg->tombstones;
    for (uint32_t g = 0; g < seg->groups; g++) {
        uint8_t *group = group_at(fresh, SWISS_STRIDE_WIDE, g);
        memcpy(group, group_at(seg, SWISS_STRIDE_NARROW, g), SWISS_STRIDE_NARROW);
        memset(group + SWISS_STRIDE_NARROW, 0, GROUP_SLOTS);
    }
    swiss_directory_set(s, hash, fresh);
    swiss_segment_free(seg);
    return ST_OK;
}

/* ---- many to come ---- */

/* A segment for about count of them: as large as one that has grown to it. A few will be a little
 * more, and grow alone. */
static struct segment *segment_create_expecting(struct swiss *s, uint32_t count, unsigned depth) {
    uint32_t load = draw_load(s, depth);
    uint32_t wanted = count + count / EXPECTED_SPREAD_DIVISOR + 1;
    uint32_t groups = fitting_groups(wanted, LOAD_ONE, false);
    while (limit_at(groups, load) < wanted) {
        groups = swiss_next_groups(groups, false);
    }
    return segment_create(s, groups, limit_at(groups, load), depth, false);
}

/* All segments of one depth; false, and none, when memory is short. */
static bool fill_directory(struct swiss *s, uint32_t each) {
    for (uint64_t i = 0; i < (uint64_t)1 << s->depth; i++) {
        struct segment *seg = segment_create_expecting(s, each, s->depth);
        if (seg == NULL) {
            while (i-- > 0) { /* last created first */
                swiss_segment_free(entry_segment(directory_of(s)[i]));
            }
            return false;
        }
        swiss_directory_set(s, s->depth == 0 ? 0 : i << (64 - s->depth), seg);
    }
    return true;
}

void swiss_expect(struct swiss *s, uint64_t count) {
    unsigned depth = 0;
    while (depth < SWISS_DIRECTORY_BITS && count >> depth > EXPECTED_COUNT_MAX) {
        depth++;
    }
    uint64_t n = (uint64_t)1 << depth, each = count >> depth;
    if (s->segments != 0 || count == 0 || each > EXPECTED_COUNT_MAX) {
        return;
    }
    if (depth > 0) {
        uint64_t *directory = account_alloc(ACCOUNT_INDEX, n * sizeof(*directory));
        if (directory == NULL) {
            return;
        }
        memset(directory, 0, n * sizeof(*directory));
        s->root.directory = directory;
        s->depth = (uint8_t)depth;
    }
    if (fill_directory(s, (uint32_t)each)) {
        s->segments = s->deepest = (uint32_t)n;
        return;
    }
    if (depth > 0) {
        account_free(ACCOUNT_INDEX, s->root.directory);
    }
    s->root.only = 0;
    s->depth = 0;
}

/* ---- getting smaller ---- */

/* The other half of a segment's parent, NULL when that is cut finer (or there is none). */
static struct segment *buddy_of(const struct swiss *s, uint64_t hash, const struct segment *seg) {
    if (seg->depth == 0) {
        return NULL;
    }
    uint64_t other = hash ^ (uint64_t)1 << (64 - seg->depth);
    struct segment *buddy = entry_segment(entry_of(s, other));
    return buddy->depth == seg->depth ? buddy : NULL;
}

static void merge(struct swiss *s, uint64_t hash, struct segment *seg, struct segment *buddy) {
    uint32_t count = seg->count + buddy->count;
    bool wide = seg->wide || buddy->wide;
    struct segment *both = segment_create_compact(s, count, seg->depth - 1u, wide);
    if (both == NULL) {
        return;
    }
    transfer(s, seg, both, NULL);
    transfer(s, buddy, both, NULL);
    s->deepest -= seg->depth == s->depth ? 2 : 0;
    s->segments--;
    swiss_directory_set(s, hash, both);
    swiss_segments_free(seg, buddy);
    directory_trim(s);
}

void swiss_make_compact(struct swiss *s, uint64_t hash) {
    directory_trim(s); /* again, where memory was short at the last merge */
    struct segment *seg = entry_segment(entry_of(s, hash));
    struct segment *buddy = buddy_of(s, hash, seg);
    if (buddy != NULL && seg->count + buddy->count <= MERGE_COUNT_MAX) {
        merge(s, hash, seg, buddy);
        return;
    }
    if (fitting_groups(seg->count, LOAD_COMPACT, seg->wide) < seg->groups) {
        struct segment *less = segment_create_compact(s, seg->count, seg->depth, seg->wide);
        enum status st = install(s, hash, seg, less);
        (void)st; /* without memory it stays as it is */
    }
}
