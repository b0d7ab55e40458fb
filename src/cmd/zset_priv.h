/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of sorted-set commands share: finding, replying and storing.
 *
 *   zset.c          one member at a time: add, remove, score, rank, random picks, ZSCAN
 *   zset_range.c    between two ranks, scores or members
 *   zset_pop.c      from one end, waiting for it if need be
 *   zset_algebra.c  union, intersection, difference
 *   zset_store.c    a result becomes a key */
#ifndef CMD_ZSET_PRIV_H
#define CMD_ZSET_PRIV_H

#include "cmd/lookup.h"
#include "types/zset.h"

/* Entries taken out of a set at a time, their records in flight side by side. */
#define ZSET_BATCH 64

static inline enum lookup zset_find(struct call *call, size_t i, struct entry *e) {
    return lookup_typed(call, i, VALUE_ZSET, e);
}

/* ---- replies -------------------------------------------------------------------------------- */

/* The array of a list of entries: RESP3 sends scores as pairs of their own, RESP2 all flat. */
void zset_reply_header(struct reply *r, uint64_t count, bool with_scores);
void zset_reply_entry(struct reply *r, const struct zset_entry *entry, bool with_scores);

/* ---- results -------------------------------------------------------------------------------- */

/* Entries collected, to be stored or sorted and replied. Members are views into the sets they came
 * from. Zero-initialised is empty. */
struct zset_result {
    struct zset_entry *entries;
    size_t count, cap;
};

/* Room for one more is made when needed; ST_NOMEM changes nothing. */
MUST_CHECK enum status zset_result_add(struct zset_result *result, const struct zset_entry *entry);
void zset_result_deinit(struct zset_result *result);

/* Put the result under the key at argument i, in place of whatever is there, or delete the key when
 * the result is empty; reply the number of members, or that memory ran out and nothing changed. The
 * views may lie in the very set that is replaced. Reorders the result. */
void zset_result_store(struct call *call, size_t i, struct zset_result *result);

/* In the order of (score, member). */
void zset_result_sort(struct zset_result *result);
void zset_result_reply(struct call *call, const struct zset_result *result, bool with_scores);

#endif
