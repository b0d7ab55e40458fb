/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"

#include <time.h>

static int64_t now_ns(clockid_t id) {
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t clock_realtime_ms(void) {
    return now_ns(CLOCK_REALTIME) / 1000000;
}

int64_t clock_realtime_us(void) {
    return now_ns(CLOCK_REALTIME) / 1000;
}

int64_t clock_monotonic_us(void) {
    return now_ns(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_monotonic_ns(void) {
    return now_ns(CLOCK_MONOTONIC);
}
