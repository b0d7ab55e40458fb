/* SPDX-License-Identifier: BSD-3-Clause */
/* The sorted integers of a small set, drawn in types/set.h; seen by types/set.c only. A run may be
 * shorter than its value: idle bytes at the end are allowed. */
#ifndef TYPES_SET_PRIV_H
#define TYPES_SET_PRIV_H

#include "types/value.h"

#define INTS_HEAD_LEN 3 /* width, count */
#define INTS_COUNT_MAX UINT16_MAX

/* A run without integers. */
extern const char ints_empty[INTS_HEAD_LEN];

uint64_t ints_count(const char *run);
int64_t ints_at(const char *run, size_t index);

/* Where n stands, or would: at *index. */
bool ints_find(const char *run, int64_t n, size_t *index);

/* Put in n, which is absent, at the index found. ST_RANGE: the run is full, or the record is. */
MUST_CHECK enum status ints_insert(struct value *v, size_t index, int64_t n);
void ints_delete(struct value *v, size_t index);

/* False when the run is damaged. */
bool ints_check(const char *run, size_t len);

#endif
