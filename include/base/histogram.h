/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of durations in log-linear buckets, so that any percentile can be read back within 1.6 %
 * from 17.5 KiB and without keeping the samples. The bucketing is that of HdrHistogram (Gil Tene):
 * every power of two is cut into the same number of equal parts.
 *
 *   value     0 .. 127        one bucket each, exact
 *   value     2^k .. 2^(k+1)  64 buckets of 2^(k-6) each, k = 7 .. 39
 *   value     >= 2^40         counted in the last bucket (2^40 ns is 18 minutes); max stays exact
 *
 * Zero-initialised is a valid empty histogram. Holds no pointer: copy it, put it on the heap. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include "base/compiler.h"

#define HISTOGRAM_SUB_BITS 6
#define HISTOGRAM_SUB_COUNT (1u << HISTOGRAM_SUB_BITS)
#define HISTOGRAM_VALUE_BITS 40
/* Two runs of 64 for the exact values under 128, then one run for each further power of two. */
#define HISTOGRAM_BUCKET_COUNT                                                                     \
    ((HISTOGRAM_VALUE_BITS - HISTOGRAM_SUB_BITS + 1) * HISTOGRAM_SUB_COUNT) /* 2240 */

struct histogram {
    uint64_t count;
    uint64_t max;
    uint64_t bucket_count[HISTOGRAM_BUCKET_COUNT];
};

/* Count one value. O(1), no branch on the size of the histogram. */
void histogram_add(struct histogram *h, uint64_t value);

/* Add the counts of from to h. */
void histogram_merge(struct histogram *h, const struct histogram *from);

/* The smallest recorded value v such that at least fraction (0..1) of all values are <= v, as the
 * upper end of its bucket and never above max; 0 when empty. O(buckets). */
uint64_t histogram_quantile(const struct histogram *h, double fraction);

/* The bucket of a value, and the largest value that falls in a bucket: inverse of each other. */
size_t histogram_bucket_of(uint64_t value);
uint64_t histogram_bucket_last(size_t bucket_idx);

#endif
