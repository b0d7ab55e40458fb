/* SPDX-License-Identifier: BSD-3-Clause */
/* ahead: what a command is about to do with a value, told before it does it, so that the memory of
 * many commands is fetched side by side.
 *
 *   part    one thing it will do: look a member up, go to a score
 *   stage   one round of prefetches over all commands of a batch; each reads what the round before
 *           it fetched:
 *
 *              object    the object behind VALUE_HEAP; else the value's own bytes
 *              index     the member's index group; the leaf of a score
 *              record    the member's likely record
 *
 * Advice only: nothing is changed, a wrong part costs a wasted prefetch. The value must be good to
 * read, so no command may run between the stages of a batch. What has no stage, and why:
 * docs/design/010-dispatch.md. */
#ifndef TYPES_AHEAD_H
#define TYPES_AHEAD_H

#include "types/value.h"

enum ahead_part {
    AHEAD_MEMBER = 1 << 0, /* hash: of a member or field */
    AHEAD_SCORE = 1 << 1,  /* score: where a range begins */
};

enum ahead_stage { AHEAD_STAGE_OBJECT, AHEAD_STAGE_INDEX, AHEAD_STAGE_RECORD };

struct ahead {
    struct value value;
    unsigned parts; /* enum ahead_part */
    uint64_t hash;
    double score;
};

void ahead_prefetch(const struct ahead *a, enum ahead_stage stage);

#endif
