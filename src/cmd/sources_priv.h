/* SPDX-License-Identifier: BSD-3-Clause */
/* The sets a command combines: union, intersection and difference of sets and sorted sets. */
#ifndef CMD_SOURCES_PRIV_H
#define CMD_SOURCES_PRIV_H

#include "cmd/lookup.h"

struct source {
    struct value value; /* good when count is not 0 */
    uint64_t count;
    double weight; /* of scores, 1 at first */
    char *texts;   /* room for a set's integers written out, NULL at first: see zset_algebra.c */
};

/* Look up count keys at arguments first_key, ...: sets, and sorted sets too when `scored`. Views
 * into them are good until the next write: those that have expired are deleted before any is
 * taken. False when one holds another type, replied. */
MUST_CHECK bool sources_find(struct call *call, size_t first_key, struct source *sources,
                             size_t count, bool scored);

/* Smallest first; equal ones stay in the order named. */
void sources_sort(struct source *sources, size_t count);

#endif
