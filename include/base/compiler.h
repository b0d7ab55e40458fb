/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Advice only: the address may be stale or unmapped, a prefetch never faults. The empty asm keeps it:
 * GCC takes a function that only prefetches for one without effect and drops calls of it, even
 * across files with link-time optimization. */
#define PREFETCH(addr)                                                                             \
    do {                                                                                           \
        const void *prefetch_at_ = (addr);                                                         \
        __builtin_prefetch(prefetch_at_, 0, 3);                                                    \
        __asm__ volatile("" : : "r"(prefetch_at_));                                                \
    } while (0)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The struct that holds member at ptr. */
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
