/* SPDX-License-Identifier: BSD-3-Clause */
/* The packed form of a list; seen by types/list*.c only. */
#ifndef TYPES_LIST_PRIV_H
#define TYPES_LIST_PRIV_H

#include "ds/strip.h"
#include "types/list.h"

/* The elements; good until the value is resized. */
struct strip lpacked_strip(const struct value *v);

uint64_t lpacked_count(const struct value *v);

/* Change a packed list. ST_RANGE: beyond the limits of the packed form. ST_NOMEM. element may be a
 * view of the list when it is inserted. */
MUST_CHECK enum status lpacked_insert(struct value *v, uint32_t index, struct bytes element);
MUST_CHECK enum status lpacked_set(struct value *v, uint32_t index, struct bytes element);
void lpacked_remove(struct value *v, uint32_t index, uint32_t count);

/* Fill an empty list. */
MUST_CHECK enum status lpacked_build(struct value *v, const struct bytes *elements, size_t count);

void lpacked_check(const struct value *v);

#endif
