/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/watchdog.h"

#include <sys/resource.h>

#include "base/log.h"

static struct rusage turn_began;

void watchdog_turn(void) {
    (void)getrusage(RUSAGE_THREAD, &turn_began);
}

bool watchdog_check(uint64_t start, const char *stage, const char *detail, uint64_t limit_us) {
    uint64_t us = ticks_to_ns(ticks_now() - start) / 1000;
    if (LIKELY(us <= limit_us)) {
        return false;
    }
    struct rusage now;
    (void)getrusage(RUSAGE_THREAD, &now);
    log_warning("watchdog: %s%s%s took %llu us; this turn so far: %ld page faults, %ld preemptions",
                stage, detail != NULL ? " " : "", detail != NULL ? detail : "",
                (unsigned long long)us, now.ru_minflt - turn_began.ru_minflt,
                now.ru_nivcsw - turn_began.ru_nivcsw);
    return true;
}
