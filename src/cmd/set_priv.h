/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of set commands share.
 *
 *   set.c          one set at a time, and SMOVE
 *   set_random.c   SPOP, SRANDMEMBER
 *   set_algebra.c  union, intersection, difference */
#ifndef CMD_SET_PRIV_H
#define CMD_SET_PRIV_H

#include "cmd/lookup.h"
#include "types/set.h"

/* Members taken out of a set at a time, with the texts of those that are integers. */
#define SET_BATCH 64

struct set_batch {
    struct bytes members[SET_BATCH];
    char scratch[SET_BATCH * SET_SCRATCH_LEN];
    size_t count;
};

/* The next members from *position (0 at first); false at the end. */
static inline bool set_batch_next(struct set_batch *b, const struct value *v, uint64_t *position) {
    b->count = set_next(v, position, b->members, SET_BATCH, b->scratch);
    return b->count > 0;
}

static inline enum lookup set_find(struct call *call, size_t i, struct entry *e) {
    return lookup_typed(call, i, VALUE_SET, e);
}

/* All members as bulks, behind a header that the caller wrote. */
void set_reply_members(struct reply *r, const struct value *v);

#endif
