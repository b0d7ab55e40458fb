/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/compiler.h"

int64_t clock_realtime_ms(void);
int64_t clock_realtime_us(void);
int64_t clock_monotonic_us(void);
int64_t clock_monotonic_ns(void);

#endif
