/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/rng.h"

static uint64_t hash_seed;

void hash_setup(void) {
    hash_seed = rng_entropy();
}

void hash_setup_seed(uint64_t seed) {
    hash_seed = seed;
}

uint64_t hash_bytes(struct bytes b) {
    return XXH3_64bits_withSeed(b.len ? b.ptr : "", b.len, hash_seed);
}
