/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/ticks.h"

#define CALIBRATE_NS 2000000

/* Nanoseconds a tick, as a fraction of 2^32. */
static uint64_t ns_per_tick_q32 = (uint64_t)1 << 32;

void ticks_setup(void) {
    int64_t start_ns = clock_monotonic_ns(), now_ns;
    uint64_t start = ticks_now();
    do {
        now_ns = clock_monotonic_ns();
    } while (now_ns - start_ns < CALIBRATE_NS);
    uint64_t ticks = ticks_now() - start;
    ns_per_tick_q32 = ((uint64_t)(now_ns - start_ns) << 32) / (ticks ? ticks : 1);
}

uint64_t ticks_to_ns(uint64_t ticks) {
    return (uint64_t)((unsigned __int128)ticks * ns_per_tick_q32 >> 32);
}
