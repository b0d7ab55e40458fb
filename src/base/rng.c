/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rng.h"

#include <stdlib.h>
#include <sys/random.h>

uint64_t rng_entropy(void) {
    uint64_t value;
    if (getentropy(&value, sizeof(value)) != 0) {
        abort();
    }
    return value;
}

static uint64_t splitmix(uint64_t *x) {
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
}

void rng_init(struct rng *r, uint64_t seed) {
    for (size_t i = 0; i < ARRAY_LEN(r->state); i++) {
        r->state[i] = splitmix(&seed);
    }
}

uint64_t rng_next(struct rng *r) {
    uint64_t *s = r->state;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t rng_below(struct rng *r, uint64_t bound) {
    assert(bound > 0);
    unsigned __int128 m = (unsigned __int128)rng_next(r) * bound;
    if ((uint64_t)m < bound) {
        uint64_t threshold = (0 - bound) % bound;
        while ((uint64_t)m < threshold) {
            m = (unsigned __int128)rng_next(r) * bound;
        }
    }
    return (uint64_t)(m >> 64);
}
