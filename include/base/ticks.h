/* SPDX-License-Identifier: BSD-3-Clause */
/* A cheap monotonic counter for timing commands: the CPU's own (about 8 ns to read), calibrated
 * once against the monotonic clock. Both counters run at a constant rate on every CPU this builds
 * for; where none is known it is the clock. */
#ifndef BASE_TICKS_H
#define BASE_TICKS_H

#include "base/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline uint64_t ticks_now(void) {
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
    return (uint64_t)clock_monotonic_ns();
#endif
}

/* Calibrate: spins for 2 ms. Call once at start. */
void ticks_setup(void);

/* Nanoseconds of a difference of two readings. */
uint64_t ticks_to_ns(uint64_t ticks);

#endif
