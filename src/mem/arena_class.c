/* SPDX-License-Identifier: BSD-3-Clause */
#include "arena_priv.h"

size_t arena_round(size_t len) {
    if (LIKELY(len <= CLASS_FINE_MAX)) {
        return (len + (ARENA_UNIT - 1)) & ~(size_t)(ARENA_UNIT - 1);
    }
    size_t mask = ((size_t)1 << class_step_shift(len)) - 1;
    return (len + mask) & ~mask;
}

size_t arena_record_max(const struct arena *a) {
    size_t quarter = pages_chunk_bytes(a->pages) / 4;
    return quarter < ARENA_RECORD_LIMIT ? quarter : ARENA_RECORD_LIMIT;
}
