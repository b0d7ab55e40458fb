/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers: xoshiro256** (Blackman and Vigna, 2018) for sampling, the kernel for secrets. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include "base/compiler.h"

struct rng {
    uint64_t state[4];
};

/* 64 bits from the kernel; aborts only where no kernel source works at all. */
uint64_t rng_entropy(void);

void rng_init(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);

/* Uniform in [0, bound), bound > 0; no modulo bias (Lemire, 2019). */
uint64_t rng_below(struct rng *r, uint64_t bound);

#endif
