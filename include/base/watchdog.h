/* SPDX-License-Identifier: BSD-3-Clause */
/* watchdog: a build that tells which stage of the event loop took long (cmake -DGC_WATCHDOG_US=300).
 *
 *     WATCHDOG_BEGIN(start);
 *     ... the stage ...
 *     WATCHDOG_END(start, "execute", name);
 *
 * logs "watchdog: execute hgetall took 512 us; this turn so far: 7 page faults, 0 preemptions" when
 * that is over the limit. Stages may be nested; each tells for itself. In other builds the macros are
 * nothing. A stage that was preempted, or whose machine was, is not to blame: run it on an idle CPU. */
#ifndef BASE_WATCHDOG_H
#define BASE_WATCHDOG_H

#include "base/ticks.h"

/* A turn begins: page faults and preemptions are counted from here. */
void watchdog_turn(void);

/* Log the stage when more than limit_us have passed since start (ticks_now); whether it did.
 * detail NULL: nothing more to say. */
bool watchdog_check(uint64_t start, const char *stage, const char *detail, uint64_t limit_us);

#ifdef GC_WATCHDOG_US
#define WATCHDOG_TURN() watchdog_turn()
#define WATCHDOG_BEGIN(start) const uint64_t start = ticks_now()
#define WATCHDOG_END(start, stage, detail)                                                         \
    ((void)watchdog_check(start, stage, detail, GC_WATCHDOG_US))
#else
#define WATCHDOG_TURN() ((void)0)
#define WATCHDOG_BEGIN(start) ((void)0)
#define WATCHDOG_END(start, stage, detail) ((void)0)
#endif

#endif
