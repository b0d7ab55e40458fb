/* SPDX-License-Identifier: BSD-3-Clause */
/* Keyed hashing for every index: XXH3 with a random process-wide 64-bit seed, so that a client
 * cannot choose colliding keys. All 64 bits are good; see ds/swiss.h for who uses which. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/bytes.h"

/* Seed from the kernel; a fixed seed makes tests and measurements repeatable. Call once before the first
 * hash_bytes. */
void hash_setup(void);
void hash_setup_seed(uint64_t seed);

uint64_t hash_bytes(struct bytes b);

#endif
