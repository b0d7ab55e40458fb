/* SPDX-License-Identifier: BSD-3-Clause */
/* calm: as long as a child of fork shares this process's memory, each OS page that is written is
 * copied by the kernel. While it is set, nothing is written that could as well be written later:
 *
 *   arenas     no record moves (arena_evacuate) until dead bytes pass half of the live ones
 *   databases  no access time is noted (db_find)
 *
 * What stays as it is, and why: an index segment shrinks after some four hundred deletes, whose
 * marks had the same OS pages copied before; freed OS pages that go back to the kernel are not copied,
 * and the child keeps its own.
 *
 * One for the process, as its memory is; set by who forks. */
#ifndef MEM_CALM_H
#define MEM_CALM_H

#include "base/compiler.h"

extern bool calm_is_set; /* read it through calm() */

static inline bool calm(void) {
    return UNLIKELY(calm_is_set);
}

void calm_set(bool on);

#endif
