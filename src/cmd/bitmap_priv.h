/* SPDX-License-Identifier: BSD-3-Clause */
/* What the bitmap commands share: offsets, and strings made long enough to be written to.
 *
 *   bit n    of a string is the bit of weight 128 >> n % 8 in byte n / 8; bits behind its end are 0
 *
 * bitmap.c has single bits, counts, searches and BITOP; bitfield.c has BITFIELD. */
#ifndef CMD_BITMAP_PRIV_H
#define CMD_BITMAP_PRIV_H

#include "cmd/lookup.h"
#include "types/string.h"

/* A bit offset within proto-max-bulk-len bytes. width over 0: "#n" is allowed and means n fields of
 * that many bits. False: "ERR bit offset is not an integer or out of range" was replied. */
MUST_CHECK bool bitmap_offset(struct call *call, size_t i, unsigned width, uint64_t *offset);

/* The string at key 1, added when absent, made len bytes long with zeros when shorter, and in a form
 * in which writing inside it never fails. False: an error was replied, nothing changed. */
MUST_CHECK bool bitmap_open(struct call *call, size_t len, struct entry *e);

#endif
