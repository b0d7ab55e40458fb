/* SPDX-License-Identifier: BSD-3-Clause */
#include "ds/swiss.h"

#include "mem/account.h"
#include "swiss_priv.h"

enum { JITTER_SEED = 0x2545f491 };

/* ---- lifecycle ---- */

void swiss_init(struct swiss *s, const struct swiss_ops *ops, void *owner) {
    *s = (struct swiss){.ops = ops, .owner = owner, .jitter = JITTER_SEED};
}

bool swiss_deinit_step(struct swiss *s, size_t max_segments) {
    if (!s->dying) {
        s->dying = true;
        s->deepest = 0; /* from here on the next directory index to free */
    }
    const uint64_t *dir = directory_of(s);
    uint64_t i = s->deepest;
    while (i < (uint64_t)1 << s->depth && max_segments > 0) {
        uint64_t entry = dir[i];
        if (entry !=
            0) { /* freeing may move one that is still to come: the directory tells where */
            swiss_segment_free(entry_segment(entry));
        }
        i += (uint64_t)1 << (s->depth - entry_depth(entry));
        max_segments--;
    }
    s->deepest = (uint32_t)i;
    if (i < (uint64_t)1 << s->depth) {
        return false;
    }
    if (s->depth > 0) {
        account_free(ACCOUNT_INDEX, s->root.directory);
    }
    swiss_init(s, s->ops, s->owner);
    return true;
}

void swiss_deinit(struct swiss *s) {
    swiss_deinit_step(s, SIZE_MAX);
}

/* ---- lookup ---- */

/* Hot: reads one directory entry, then groups from the home on until the key or a group with an
 * EMPTY slot. */
uint64_t swiss_find(const struct swiss *s, uint64_t hash, struct bytes key) {
    uint64_t entry = entry_of(s, hash);
    if (entry == 0) {
        return SWISS_NONE;
    }
    const struct segment *seg = entry_segment(entry);
    bool wide = entry_wide(entry);
    size_t stride = stride_of(wide);
    uint32_t groups = entry_groups(entry);
    uint32_t g = home_group(hash, entry_depth(entry), groups);
    for (;;) {
        const uint8_t *group = group_at(seg, stride, g);
        uint64_t mask = group_match(group, tag_of(hash));
        for (; mask != 0; mask &= mask - 1) {
            uint64_t ref = group_ref(group, group_first(mask), wide);
            if (LIKELY(s->ops->matches(s->owner, ref, key))) {
                return ref;
            }
        }
        if (LIKELY(group_has_empty(group))) {
            return SWISS_NONE;
        }
        g = g + 1 == groups ? 0 : g + 1;
    }
}

void swiss_prefetch(const struct swiss *s, uint64_t hash) {
    uint64_t entry = entry_of(s, hash);
    if (entry == 0) {
        return;
    }
    bool wide = entry_wide(entry);
    uint32_t home = home_group(hash, entry_depth(entry), entry_groups(entry));
    const uint8_t *group = group_at(entry_segment(entry), stride_of(wide), home);
    /* 80 bytes at a multiple of 16 lie on two cache lines, 96 on two or three. */
    PREFETCH(group);
    PREFETCH(group + 64);
    if (wide) {
        PREFETCH(group + SWISS_STRIDE_WIDE - 1);
    }
}

uint64_t swiss_likely(const struct swiss *s, uint64_t hash) {
    uint64_t entry = entry_of(s, hash);
    if (entry == 0) {
        return SWISS_NONE;
    }
    const struct segment *seg = entry_segment(entry);
    size_t stride = stride_of(entry_wide(entry));
    uint32_t groups = entry_groups(entry);
    uint32_t g = home_group(hash, entry_depth(entry), groups);
    for (int tries = 0; tries < 2; tries++) {
        const uint8_t *group = group_at(seg, stride, g);
        uint64_t mask = group_match(group, tag_of(hash));
        if (mask != 0) {
            return group_ref(group, group_first(mask), entry_wide(entry));
        }
        if (group_has_empty(group)) {
            return SWISS_NONE;
        }
        g = g + 1 == groups ? 0 : g + 1;
    }
    return SWISS_NONE;
}

/* The group and slot of an entry that must be there; compares refs, reads no record. */
static uint8_t *locate(const struct swiss *s, uint64_t hash, uint64_t ref, unsigned *slot) {
    uint64_t entry = entry_of(s, hash);
    assert(entry != 0);
    bool wide = entry_wide(entry);
    uint32_t groups = entry_groups(entry);
    uint32_t g = home_group(hash, entry_depth(entry), groups);
    for (;;) {
        uint8_t *group = group_at(entry_segment(entry), stride_of(wide), g);
        uint64_t mask = group_match(group, tag_of(hash));
        for (; mask != 0; mask &= mask - 1) {
            *slot = group_first(mask);
            if (group_ref(group, *slot, wide) == ref) {
                return group;
            }
        }
        assert(!group_has_empty(group));
        g = g + 1 == groups ? 0 : g + 1;
    }
}

/* ---- change ---- */

enum status swiss_reserve(struct swiss *s, uint64_t hash, uint64_t ref_max) {
    assert(ref_max >> SWISS_REF_BITS == 0 && !s->dying);
    for (;;) {
        uint64_t entry = entry_of(s, hash);
        if (LIKELY(entry != 0)) {
            const struct segment *seg = entry_segment(entry);
            if (LIKELY(seg->count + seg->tombstones < seg->limit)) {
                break;
            }
        }
        enum status st = swiss_make_room(s, hash);
        if (st != ST_OK) {
            return st;
        }
    }
    if (UNLIKELY(ref_max > UINT32_MAX) && !entry_wide(entry_of(s, hash))) {
        return swiss_widen(s, hash);
    }
    return ST_OK;
}

enum status swiss_insert(struct swiss *s, uint64_t hash, uint64_t ref) {
    enum status st = swiss_reserve(s, hash, ref);
    if (LIKELY(st == ST_OK)) {
        segment_place(entry_segment(entry_of(s, hash)), hash, ref);
        s->count++;
    }
    return st;
}

enum status swiss_replace(struct swiss *s, uint64_t hash, uint64_t old_ref, uint64_t new_ref) {
    assert(new_ref >> SWISS_REF_BITS == 0);
    if (UNLIKELY(new_ref > UINT32_MAX) && !entry_wide(entry_of(s, hash))) {
        enum status st = swiss_widen(s, hash);
        if (st != ST_OK) {
            return st;
        }
    }
    unsigned slot;
    uint8_t *group = locate(s, hash, old_ref, &slot);
    group_set_ref(group, slot, entry_wide(entry_of(s, hash)), new_ref);
    return ST_OK;
}

void swiss_erase(struct swiss *s, uint64_t hash, uint64_t ref) {
    unsigned slot;
    uint8_t *group = locate(s, hash, ref, &slot);
    struct segment *seg = entry_segment(entry_of(s, hash));
    /* No probe ever went past a group that has an EMPTY slot: such a group was never full. */
    bool leave_tombstone = !group_has_empty(group);
    group[slot] = leave_tombstone ? CTRL_DELETED : CTRL_EMPTY;
    seg->tombstones += leave_tombstone;
    seg->count--;
    s->count--;
    if (s->count == 0) {
        swiss_deinit(s);
    } else if (seg->count * 5 < seg->groups * (GROUP_SLOTS * 3u)) { /* under 60 % */
        swiss_make_compact(s, hash);
    }
}

size_t swiss_bytes(const struct swiss *s) {
    if (s->segments == 0) {
        return 0;
    }
    const uint64_t *dir = directory_of(s);
    size_t bytes = s->depth == 0 ? 0 : account_good_size(sizeof(*dir) << s->depth);
    for (uint64_t i = 0; i < (uint64_t)1 << s->depth;) {
        bytes += swiss_segment_bytes(entry_groups(dir[i]), entry_wide(dir[i]));
        i += (uint64_t)1 << (s->depth - entry_depth(dir[i]));
    }
    return bytes;
}
