/* SPDX-License-Identifier: BSD-3-Clause */
/* latency: a histogram of times, for percentiles within 1/16 (6.25 %) of the true value.
 *
 * Log-linear buckets as in HdrHistogram (Tene): below 16 ns one bucket a nanosecond; above, each
 * power of two is cut into 16 equal buckets, up to 2^34 ns (17 s); longer times count as that.
 *
 *   16 + (34 - 4) × 16 = 496 buckets × 8 B = 3968 B a histogram */
#ifndef STATS_LATENCY_H
#define STATS_LATENCY_H

#include "base/compiler.h"

#define LATENCY_SUB_BITS 4
#define LATENCY_MAX_BITS 34
#define LATENCY_BUCKETS                                                                            \
    ((1 << LATENCY_SUB_BITS) + ((LATENCY_MAX_BITS - LATENCY_SUB_BITS) << LATENCY_SUB_BITS))

/* Zero-initialised is empty. */
struct latency_histogram {
    uint64_t total;
    uint64_t counts[LATENCY_BUCKETS];
};

/* Count `times` events of ns each. */
void latency_record(struct latency_histogram *h, uint64_t ns, uint64_t times);
void latency_reset(struct latency_histogram *h);

/* The upper end, in ns, of the bucket that holds the given percentile (0..100); 0 when empty.
 * Walks the buckets: a few hundred additions. */
uint64_t latency_percentile(const struct latency_histogram *h, double percentile);

#endif
