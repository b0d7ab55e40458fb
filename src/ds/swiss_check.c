/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk that recounts everything. */
#include <stdio.h>
#include <stdlib.h>

#include "swiss_priv.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: swiss invariant broken: %s\n", __FILE__, __LINE__,             \
                    #condition);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The entry in slot of group g belongs to this segment, and a probe from its home reaches it. */
static void check_slot(const struct swiss *s, const struct segment *seg, uint64_t prefix,
                       uint32_t g, unsigned slot) {
    size_t stride = stride_of(seg->wide);
    const uint8_t *group = group_at(seg, stride, g);
    uint64_t hash = s->ops->hash_of(s->owner, group_ref(group, slot, seg->wide));
    CHECK(group[slot] == tag_of(hash));
    CHECK(seg->depth == 0 || hash >> (64 - seg->depth) == prefix);
    uint32_t at = home_group(hash, seg->depth, seg->groups);
    while (at != g) {
        CHECK(!group_has_empty(group_at(seg, stride, at)));
        at = at + 1 == seg->groups ? 0 : at + 1;
    }
}

static void check_segment(const struct swiss *s, const struct segment *seg, uint64_t prefix) {
    uint32_t full = 0;
    uint32_t deleted = 0;
    CHECK(seg->groups > 0 && seg->groups <= SWISS_GROUPS_CAP);
    CHECK(seg->groups <= s->largest);
    CHECK(seg->owner == s && seg->prefix == prefix);
    for (uint32_t g = 0; g < seg->groups; g++) {
        const uint8_t *group = group_at(seg, stride_of(seg->wide), g);
        for (unsigned slot = 0; slot < GROUP_SLOTS; slot++) {
            if (group[slot] < 0x80) {
                full++;
                check_slot(s, seg, prefix, g, slot);
            } else {
                CHECK(group[slot] == CTRL_EMPTY || group[slot] == CTRL_DELETED);
                deleted += group[slot] == CTRL_DELETED;
            }
        }
    }
    CHECK(seg->count == full && seg->tombstones == deleted);
    CHECK(seg->count + seg->tombstones <= seg->limit);
    CHECK(seg->limit < (uint32_t)seg->groups * GROUP_SLOTS);
}

void swiss_check(const struct swiss *s) {
    if (s->segments == 0) {
        CHECK(s->count == 0 && s->depth == 0 && s->root.only == 0);
        return;
    }
    uint64_t count = 0;
    uint32_t segments = 0;
    uint32_t deepest = 0;
    const uint64_t *dir = directory_of(s);
    CHECK(s->depth <= SWISS_DIRECTORY_BITS);
    for (uint64_t i = 0; i < (uint64_t)1 << s->depth;) {
        const struct segment *seg = entry_segment(dir[i]);
        CHECK(seg != NULL && entry_pack(seg) == dir[i] && seg->depth <= s->depth);
        uint64_t span = (uint64_t)1 << (s->depth - seg->depth);
        CHECK(i % span == 0);
        for (uint64_t j = 1; j < span; j++) {
            CHECK(dir[i + j] == dir[i]);
        }
        check_segment(s, seg, i / span);
        count += seg->count;
        segments++;
        deepest += seg->depth == s->depth;
        i += span;
    }
    CHECK(s->count == count && s->segments == segments && s->deepest == deepest);
}
