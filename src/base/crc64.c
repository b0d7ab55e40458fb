/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crc64.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_FOLDING 1
#endif

/* The polynomial, bits reflected: bit 63 is x^0. */
#define POLY UINT64_C(0x95ac9329ac4bc9b5)

#define FOLD_BLOCK 64 /* bytes a round of folding: four 128-bit lanes */

static uint64_t table[8][256]; /* [k][b]: byte b followed by k zero bytes */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t times_x(uint64_t p) {
    return p >> 1 ^ (p & 1 ? POLY : 0);
}

static void fill_tables(void) {
    for (unsigned b = 0; b < 256; b++) {
        uint64_t crc = b;
        for (int bit = 0; bit < 8; bit++) {
            crc = times_x(crc);
        }
        table[0][b] = crc;
    }
    for (unsigned b = 0; b < 256; b++) {
        for (int k = 1; k < 8; k++) {
            uint64_t crc = table[k - 1][b];
            table[k][b] = table[0][crc & 0xFF] ^ crc >> 8;
        }
    }
}

static uint64_t load_u64(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static uint64_t by_tables(uint64_t crc, const unsigned char *p, size_t len) {
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t v = crc ^ load_u64(p);
        crc = table[7][v & 0xFF] ^ table[6][v >> 8 & 0xFF] ^ table[5][v >> 16 & 0xFF] ^
              table[4][v >> 24 & 0xFF] ^ table[3][v >> 32 & 0xFF] ^ table[2][v >> 40 & 0xFF] ^
              table[1][v >> 48 & 0xFF] ^ table[0][v >> 56];
    }
    for (; len > 0; p++, len--) {
        crc = table[0][(crc ^ *p) & 0xFF] ^ crc >> 8;
    }
    return crc;
}

#ifdef HAVE_FOLDING

/* Folding (Gopal et al., "Fast CRC computation using PCLMULQDQ", Intel, 2009), reflected. A 128-bit
 * lane is a polynomial whose first 64 bits in memory, lo, weigh x^64 more than the rest, hi. To
 * carry it d bits on is lo x x^(64 + d) + hi x x^d, each power reduced; a carry-less product of two
 * reflected factors comes out multiplied by x, so the powers are taken one lower. */
static uint64_t fold_16[2], fold_64[2]; /* carry a lane 16 and 64 bytes on: for lo, for hi */

static uint64_t power_of_x(unsigned n) {
    uint64_t p = UINT64_C(1) << 63;
    while (n-- > 0) {
        p = times_x(p);
    }
    return p;
}

static void fill_folds(void) {
    fold_16[0] = power_of_x(128 + 63);
    fold_16[1] = power_of_x(128 - 1);
    fold_64[0] = power_of_x(512 + 63);
    fold_64[1] = power_of_x(512 - 1);
}

__attribute__((target("pclmul,sse4.1"))) static inline __m128i carry(__m128i lane, __m128i by,
                                                                     __m128i next) {
    __m128i lo = _mm_clmulepi64_si128(lane, by, 0x00);
    __m128i hi = _mm_clmulepi64_si128(lane, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(lo, hi), next);
}

/* len is a multiple of FOLD_BLOCK, not 0. */
__attribute__((target("pclmul,sse4.1"))) static uint64_t
by_folding(uint64_t crc, const unsigned char *p, size_t len) {
    const __m128i *in = (const __m128i *)(const void *)p, *end = in + len / sizeof(*in);
    __m128i by = _mm_set_epi64x((long long)fold_64[1], (long long)fold_64[0]);
    __m128i lane[4];
    for (int i = 0; i < 4; i++) {
        lane[i] = _mm_loadu_si128(in + i);
    }
    lane[0] = _mm_xor_si128(lane[0], _mm_set_epi64x(0, (long long)crc));
    for (in += 4; in < end; in += 4) {
        for (int i = 0; i < 4; i++) {
            lane[i] = carry(lane[i], by, _mm_loadu_si128(in + i));
        }
    }
    by = _mm_set_epi64x((long long)fold_16[1], (long long)fold_16[0]);
    __m128i sum = lane[0];
    for (int i = 1; i < 4; i++) {
        sum = carry(sum, by, lane[i]);
    }
    unsigned char rest[16];
    _mm_storeu_si128((__m128i *)(void *)rest, sum);
    return by_tables(0, rest, sizeof(rest));
}

static bool can_fold;

#endif

static void fill(void) {
    fill_tables();
#ifdef HAVE_FOLDING
    fill_folds();
    can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
}

uint64_t crc64_tables(uint64_t crc, const void *ptr, size_t len) {
    pthread_once(&once, fill);
    return by_tables(crc, ptr, len);
}

uint64_t crc64(uint64_t crc, const void *ptr, size_t len) {
    pthread_once(&once, fill);
    const unsigned char *p = ptr;
#ifdef HAVE_FOLDING
    size_t folded_len = len & ~(size_t)(FOLD_BLOCK - 1);
    if (folded_len != 0 && can_fold) {
        crc = by_folding(crc, p, folded_len);
        p += folded_len;
        len -= folded_len;
    }
#endif
    return by_tables(crc, p, len);
}
