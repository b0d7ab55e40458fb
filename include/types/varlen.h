/* SPDX-License-Identifier: BSD-3-Clause */
/* Lengths in front of bytes, as records and packed values store them.
 *
 *   first byte   bytes in all   length
 *   0x00..0xEF   1              the byte itself
 *   0xF0         3              16 bits, little-endian
 *   0xF1         5              32 bits, little-endian
 *
 * 0xF2..0xFF never start a length: records use them as marks (mem/arena.h, types/record.h). */
#ifndef TYPES_VARLEN_H
#define TYPES_VARLEN_H

#include <string.h>

#include "base/compiler.h"

#define VARLEN_ONE_MAX 0xEF
#define VARLEN_MAX 5

static inline size_t varlen_size(size_t len) {
    return len <= VARLEN_ONE_MAX ? 1 : len <= UINT16_MAX ? 3 : 5;
}

/* Write len at p; the bytes written. len < 2^32. */
static inline size_t varlen_put(char *p, size_t len) {
    if (LIKELY(len <= VARLEN_ONE_MAX)) {
        p[0] = (char)len;
        return 1;
    }
    if (len <= UINT16_MAX) {
        uint16_t v = (uint16_t)len;
        p[0] = (char)0xF0;
        memcpy(p + 1, &v, sizeof(v));
        return 3;
    }
    uint32_t v = (uint32_t)len;
    p[0] = (char)0xF1;
    memcpy(p + 1, &v, sizeof(v));
    return 5;
}

/* Read a length at p; the bytes read. */
static inline size_t varlen_get(const char *p, size_t *len) {
    unsigned char first = (unsigned char)p[0];
    if (LIKELY(first <= VARLEN_ONE_MAX)) {
        *len = first;
        return 1;
    }
    if (first == 0xF0) {
        uint16_t v;
        memcpy(&v, p + 1, sizeof(v));
        *len = v;
        return 3;
    }
    uint32_t v;
    memcpy(&v, p + 1, sizeof(v));
    *len = v;
    return 5;
}

#endif
