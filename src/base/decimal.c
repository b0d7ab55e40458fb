/* SPDX-License-Identifier: BSD-3-Clause */
#include "decimal_priv.h"

#include <string.h>

#define FRACTION_BITS 52
#define EXPONENT_BIAS 1075 /* of the fraction taken as an integer */
#define EXPONENT_MAX 2046  /* of a finite double */

static_assert(sizeof(double) == 8, "IEEE 754 binary64");

typedef unsigned __int128 u128;

static const struct {
    uint64_t high, low;
} powers[] = {
#define POWER(high, low) {high, low},
#include "decimal_powers.def"
#undef POWER
};

static_assert(ARRAY_LEN(powers) == DECIMAL_POWER_MAX - DECIMAL_POWER_MIN + 1, "a row each");

u128 decimal_power(int k) {
    return (u128)powers[k - DECIMAL_POWER_MIN].high << 64 | powers[k - DECIMAL_POWER_MIN].low;
}

/* floor(log2(10^k)), exact for |k| <= 1233. */
static int floor_log2_power(int k) {
    return (k * 1741647) >> 19;
}

/* The product's top 64 bits of 192, with the lowest set when anything but 0 or 1 is below. */
static uint64_t multiply_to_odd(u128 g, uint64_t by) {
    u128 low = (u128)(uint64_t)g * by;
    u128 high = (u128)(uint64_t)(g >> 64) * by + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* The paper's names: v = c x 2^q; the reals that round to v lie between cbl and cbr, all times 4. */
struct decimal decimal_shortest(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    uint64_t fraction = bits & (((uint64_t)1 << FRACTION_BITS) - 1);
    int exponent = (int)(bits >> FRACTION_BITS);
    uint64_t c = exponent != 0 ? fraction | (uint64_t)1 << FRACTION_BITS : fraction;
    int q = (exponent != 0 ? exponent : 1) - EXPONENT_BIAS;
    bool is_odd = c & 1;
    bool below_is_closer = fraction == 0 && exponent > 1; /* a power of two */
    int k = (q * 1262611 - (below_is_closer ? 524031 : 0)) >> 22;
    int h = q + floor_log2_power(-k) + 1;
    u128 g = decimal_power(-k);
    uint64_t lower = multiply_to_odd(g, (4 * c - 2 + below_is_closer) << h) + is_odd;
    uint64_t vb = multiply_to_odd(g, (4 * c) << h);
    uint64_t upper = multiply_to_odd(g, (4 * c + 2) << h) - is_odd;
    uint64_t s = vb / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        bool down_inside = lower <= 40 * tens, up_inside = 40 * tens + 40 <= upper;
        if (down_inside != up_inside) {
            return (struct decimal){tens + up_inside, k + 1};
        }
    }
    bool down_inside = lower <= 4 * s, up_inside = 4 * s + 4 <= upper;
    if (down_inside != up_inside) {
        return (struct decimal){s + up_inside, k};
    }
    uint64_t middle = 4 * s + 2;
    bool up = vb > middle || (vb == middle && (s & 1));
    return (struct decimal){s + up, k};
}

/* digits x g is off by less than 2^64, one in the upper 128 bits of its 192. Where that may not decide
 * which double is closest, strtod does. */
bool decimal_to_double(uint64_t digits, int scale, double *out) {
    if (digits == 0) {
        *out = 0;
        return true;
    }
    if (scale < DECIMAL_POWER_MIN || scale > DECIMAL_POWER_MAX) {
        return false;
    }
    int shift = __builtin_clzll(digits);
    u128 g = decimal_power(scale);
    u128 low = (u128)(uint64_t)g * (digits << shift);
    u128 product = (u128)(uint64_t)(g >> 64) * (digits << shift) + (uint64_t)(low >> 64);
    int top = (product >> 127) != 0; /* the product has 127 or 128 bits */
    int drop = 127 - FRACTION_BITS - 1 + top;
    u128 rest = product & (((u128)1 << drop) - 1);
    u128 half = (u128)1 << (drop - 1);
    if (rest + 2 >= half && rest <= half + 2) {
        return false;
    }
    uint64_t c = (uint64_t)(product >> drop) + (rest > half);
    /* value = product x 2^64 / 2^shift x 2^(floor_log2_power - 127) */
    int exponent = drop + 64 - shift + floor_log2_power(scale) - 127 + EXPONENT_BIAS;
    if (c >> (FRACTION_BITS + 1)) { /* rounded up to the next power of two */
        c >>= 1;
        exponent++;
    }
    if (exponent < 1 || exponent > EXPONENT_MAX) {
        return false;
    }
    uint64_t bits =
        (uint64_t)exponent << FRACTION_BITS | (c & (((uint64_t)1 << FRACTION_BITS) - 1));
    memcpy(out, &bits, sizeof(bits));
    return true;
}
