/* SPDX-License-Identifier: BSD-3-Clause */
/* decimal: between doubles and digits x 10^scale, in integer arithmetic with one table of powers.
 *
 *   10^k = g x 2^r - error   g: 128 bits, the top one set, rounded up; r = floor(log2(10^k)) - 127 */
#ifndef BASE_DECIMAL_PRIV_H
#define BASE_DECIMAL_PRIV_H

#include "base/compiler.h"

#define DECIMAL_POWER_MIN (-292)
#define DECIMAL_POWER_MAX 324

struct decimal {
    uint64_t digits; /* at most 17 of them; trailing zeros are possible */
    int scale;
};

/* The shortest decimal that reads back as v, and of those the closest. v is finite and positive.
 * Raffaello Giulietti, "The Schubfach way to render doubles" (2020). */
struct decimal decimal_shortest(double v);

/* The double closest to digits x 10^scale. False: it lies too near the middle between two, or is
 * not a normal double; strtod knows. */
bool decimal_to_double(uint64_t digits, int scale, double *out);

/* g of 10^k, DECIMAL_POWER_MIN <= k <= DECIMAL_POWER_MAX. */
unsigned __int128 decimal_power(int k);

#endif
