/* SPDX-License-Identifier: BSD-3-Clause */
/* Sixteen control bytes at once: which slots hold this byte, which are free.
 *
 * A mask has one bit a slot, GROUP_MASK_STRIDE bits apart; walk it with group_first and mask &
 * (mask - 1). SSE2 (any x86-64), NEON (any arm64), or two 64-bit words. The word form is always
 * compiled, as *_word, so that the tests compare it on every machine; SWISS_GROUP_PORTABLE makes it
 * the one in use. benchmarks/micro/ds_swiss.c */
#ifndef DS_SWISS_GROUP_H
#define DS_SWISS_GROUP_H

#include <string.h>

#include "base/compiler.h"

#if !defined(SWISS_GROUP_PORTABLE) && defined(__SSE2__)
#define GROUP_SSE2
#include <emmintrin.h>
#elif !defined(SWISS_GROUP_PORTABLE) && defined(__ARM_NEON) && defined(__aarch64__) &&             \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define GROUP_NEON
#include <arm_neon.h>
#endif

enum { GROUP_SLOTS = 16 };

/* Full slots hold a tag, 0x00..0x7f; both others have the top bit. */
enum { CTRL_EMPTY = 0x80, CTRL_DELETED = 0xfe };

#ifdef GROUP_NEON
enum { GROUP_MASK_STRIDE = 4 };
#define GROUP_MASK_ALL 0x8888888888888888u
#else
enum { GROUP_MASK_STRIDE = 1 };
#define GROUP_MASK_ALL 0xffffu
#endif

#define WORD_LOW7 0x7f7f7f7f7f7f7f7fu
#define WORD_TOP 0x8080808080808080u
#define WORD_ONES 0x0101010101010101u

/* Eight control bytes, the first in the lowest byte. */
static inline uint64_t group_load_word(const uint8_t *ctrl) {
    uint64_t w;
    memcpy(&w, ctrl, sizeof(w));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

/* The top bits of eight bytes as one byte: the product moves bit 8i+7 to bit 56+i, no two terms
 * meet. */
static inline uint64_t group_gather_word(uint64_t top_bits) {
    return ((top_bits >> 7) * 0x0102040810204080u) >> 56;
}

/* Top bit of each byte of w that is zero; exact, no carry crosses a byte. */
static inline uint64_t group_zero_bytes_word(uint64_t w) {
    return ~(((w & WORD_LOW7) + WORD_LOW7) | w | WORD_LOW7);
}

static inline uint64_t group_match_word(const uint8_t *ctrl, uint8_t byte) {
    uint64_t pattern = WORD_ONES * byte;
    uint64_t low = group_zero_bytes_word(group_load_word(ctrl) ^ pattern);
    uint64_t high = group_zero_bytes_word(group_load_word(ctrl + 8) ^ pattern);
    return group_gather_word(low) | group_gather_word(high) << 8;
}

static inline uint64_t group_free_word(const uint8_t *ctrl) {
    uint64_t low = group_load_word(ctrl) & WORD_TOP;
    uint64_t high = group_load_word(ctrl + 8) & WORD_TOP;
    return group_gather_word(low) | group_gather_word(high) << 8;
}

/* Slots whose control byte is `byte`. */
static inline uint64_t group_match(const uint8_t *ctrl, uint8_t byte) {
#if defined(GROUP_SSE2)
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)ctrl);
    return (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8((char)byte)));
#elif defined(GROUP_NEON)
    uint8x16_t equal = vceqq_u8(vld1q_u8(ctrl), vdupq_n_u8(byte));
    uint8x8_t nibbles = vshrn_n_u16(vreinterpretq_u16_u8(equal), 4);
    return vget_lane_u64(vreinterpret_u64_u8(nibbles), 0) & GROUP_MASK_ALL;
#else
    return group_match_word(ctrl, byte);
#endif
}

/* Slots without an entry: EMPTY or DELETED. */
static inline uint64_t group_free(const uint8_t *ctrl) {
#if defined(GROUP_SSE2)
    return (uint64_t)(uint32_t)_mm_movemask_epi8(
        _mm_loadu_si128((const __m128i *)(const void *)ctrl));
#elif defined(GROUP_NEON)
    uint8x16_t top = vcltzq_s8(vreinterpretq_s8_u8(vld1q_u8(ctrl)));
    uint8x8_t nibbles = vshrn_n_u16(vreinterpretq_u16_u8(top), 4);
    return vget_lane_u64(vreinterpret_u64_u8(nibbles), 0) & GROUP_MASK_ALL;
#else
    return group_free_word(ctrl);
#endif
}

static inline uint64_t group_full(const uint8_t *ctrl) {
    return group_free(ctrl) ^ GROUP_MASK_ALL;
}

static inline bool group_has_empty(const uint8_t *ctrl) {
    return group_match(ctrl, CTRL_EMPTY) != 0;
}

/* The first slot of a mask that is not 0. */
static inline unsigned group_first(uint64_t mask) {
    return (unsigned)__builtin_ctzll(mask) / GROUP_MASK_STRIDE;
}

#endif
