/* SPDX-License-Identifier: BSD-3-Clause */
/* Random choice of distinct elements, in one of two ways:
 *
 *   few of many   independent picks, those met before rejected (struct picks): expected O(picks)
 *   many          one walk that takes each element with the right chance (sample_take), which is
 *                 selection sampling (Knuth, TAOCP 3.4.2, algorithm S): O(size) */
#ifndef CMD_SAMPLE_PRIV_H
#define CMD_SAMPLE_PRIV_H

#include "base/rng.h"

/* At a third, rejection costs as much as the walk saves. */
static inline bool sample_is_few(uint64_t count, uint64_t size) {
    return count < size / 3;
}

/* Decide on one element of a walk: left elements are still to come, this one included, of which
 * *wanted are to be taken. */
static inline bool sample_take(struct rng *rng, uint64_t *left, uint64_t *wanted) {
    bool taken = rng_below(rng, (*left)--) < *wanted;
    *wanted -= taken;
    return taken;
}

/* Numbers met so far, none of them 0: what tells elements apart. */
struct picks {
    uint64_t *slots;
    size_t mask;
};

/* Room for count numbers. False: memory is short, nothing to free. */
bool picks_init(struct picks *p, uint64_t count);

/* False when id was there already. */
bool picks_add(struct picks *p, uint64_t id);
void picks_deinit(struct picks *p);

#endif
