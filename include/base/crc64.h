/* SPDX-License-Identifier: BSD-3-Clause */
/* The 64-bit checksum of RDB files: the polynomial of Jones (0xad93d23594c935a9), bits reflected,
 * start value 0, no final xor. The check value of "123456789" is e9c6d914c4b8d9ca.
 *
 * Two forms that give the same: carry-less multiplication where the CPU has it (12 GB/s and more),
 * eight table look-ups for 8 bytes elsewhere (1.6 GB/s). */
#ifndef BASE_CRC64_H
#define BASE_CRC64_H

#include "base/compiler.h"

/* The checksum of the bytes that gave crc (0 for none), followed by these. */
uint64_t crc64(uint64_t crc, const void *ptr, size_t len);

/* The form by tables; crc64 uses it where nothing faster is at hand. */
uint64_t crc64_tables(uint64_t crc, const void *ptr, size_t len);

#endif
