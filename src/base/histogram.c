/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/histogram.h"

static_assert(HISTOGRAM_BUCKET_COUNT == 2240, "35 runs of 64");
static_assert(sizeof(struct histogram) == (2240 + 2) * 8, "17.5 KiB of counts, two totals");

size_t histogram_bucket_of(uint64_t value) {
    if (value < HISTOGRAM_SUB_COUNT) {
        return (size_t)value;
    }
    unsigned top_bit = 63u - (unsigned)__builtin_clzll(value);
    if (top_bit >= HISTOGRAM_VALUE_BITS) {
        return HISTOGRAM_BUCKET_COUNT - 1;
    }
    unsigned shift = top_bit - HISTOGRAM_SUB_BITS;
    /* value >> shift is 64..127: its low six bits are the part, the run before it is shift + 1. */
    return (size_t)shift * HISTOGRAM_SUB_COUNT + (size_t)(value >> shift);
}

uint64_t histogram_bucket_last(size_t bucket_idx) {
    if (bucket_idx < HISTOGRAM_SUB_COUNT) {
        return bucket_idx;
    }
    unsigned shift = (unsigned)(bucket_idx / HISTOGRAM_SUB_COUNT) - 1;
    uint64_t part = HISTOGRAM_SUB_COUNT + bucket_idx % HISTOGRAM_SUB_COUNT;
    return ((part + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t value) {
    h->bucket_count[histogram_bucket_of(value)]++;
    h->count++;
    if (value > h->max) {
        h->max = value;
    }
}

void histogram_merge(struct histogram *h, const struct histogram *from) {
    for (size_t i = 0; i < HISTOGRAM_BUCKET_COUNT; i++) {
        h->bucket_count[i] += from->bucket_count[i];
    }
    h->count += from->count;
    if (from->max > h->max) {
        h->max = from->max;
    }
}

uint64_t histogram_quantile(const struct histogram *h, double fraction) {
    double exact = fraction * (double)h->count;
    uint64_t rank = (uint64_t)exact;
    if ((double)rank < exact || rank == 0) {
        rank++; /* round up: the rank-th smallest value, counted from 1 */
    }
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKET_COUNT - 1; i++) {
        seen += h->bucket_count[i];
        if (seen >= rank) {
            uint64_t last = histogram_bucket_last(i);
            return last < h->max ? last : h->max;
        }
    }
    return h->max;
}
