/* SPDX-License-Identifier: BSD-3-Clause */
/* The two forms of a zset and how both store scores; seen by types/zset*.c only. */
#ifndef TYPES_ZSET_PRIV_H
#define TYPES_ZSET_PRIV_H

#include "ds/order.h"
#include "ds/swiss.h"
#include "mem/arena.h"
#include "types/zset.h"

#include <math.h>

/* ---- scores --------------------------------------------------------------------------------- */

/* How a score is stored; each holds all that those before it hold. */
enum score_kind { SCORE_I8, SCORE_I16, SCORE_I32, SCORE_DOUBLE };

static inline size_t score_size(enum score_kind kind) {
    return (size_t)1 << kind;
}
static_assert(SCORE_I8 == 0 && SCORE_DOUBLE == 3, "a kind is the log2 of its bytes");

/* The narrowest kind that holds a score (no NaN) exactly; -0 is no integer. */
static inline enum score_kind score_kind_of(double score) {
    if (score >= INT32_MIN && score <= INT32_MAX) {
        int32_t i = (int32_t)score;
        if ((double)i == score && (i != 0 || !signbit(score))) {
            return i == (int8_t)i ? SCORE_I8 : i == (int16_t)i ? SCORE_I16 : SCORE_I32;
        }
    }
    return SCORE_DOUBLE;
}

/* Write score, which kind can hold, at p. */
static inline void score_put(char *p, enum score_kind kind, double score) {
    if (kind == SCORE_DOUBLE) {
        memcpy(p, &score, sizeof(score));
        return;
    }
    int32_t i = (int32_t)score; /* its low bytes are the narrower kinds, little-endian */
    memcpy(p, &i, score_size(kind));
}
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "scores are stored little-endian by copying"
#endif

static inline double score_get(const char *p, enum score_kind kind) {
    int16_t i16;
    int32_t i32;
    double score;
    switch (kind) {
    case SCORE_I8:
        return (int8_t)p[0];
    case SCORE_I16:
        memcpy(&i16, p, sizeof(i16));
        return i16;
    case SCORE_I32:
        memcpy(&i32, p, sizeof(i32));
        return i32;
    default:
        memcpy(&score, p, sizeof(score));
        return score;
    }
}

/* (score, member): <0, 0, >0. */
static inline int zset_entry_compare(const struct zset_entry *a, const struct zset_entry *b) {
    if (a->score != b->score) {
        return a->score < b->score ? -1 : 1;
    }
    return bytes_compare(a->member, b->member);
}

/* ---- packed (zset_packed.c): kind, score, mlen, member --------------------------------------- */

/* Where a member's entry lies in a packed run; offsets from its start. */
struct zpacked_spot {
    bool found;
    uint64_t rank;
    size_t off, end_off; /* the entry; the end of the last one when not found */
    double score;
};

struct zpacked_spot zpacked_find(const char *run, struct bytes member);

/* Read the entry at *off and step behind it. */
struct zset_entry zpacked_read(const char *run, size_t *off);

/* Offset of the entry at a rank <= count. */
size_t zpacked_offset(const char *run, uint64_t rank);

/* ST_RANGE: beyond the limits of the packed form. Else as zset_set. */
MUST_CHECK enum status zpacked_set(struct value *v, struct bytes member, double score, bool *added);
void zpacked_delete(struct value *v, const struct zpacked_spot *spot);
void zpacked_delete_range(struct value *v, uint64_t first, uint64_t count);

/* The same as of types/zset.h. */
void zpacked_range_by_score(const char *run, const struct zset_score_bound *min,
                            const struct zset_score_bound *max, uint64_t *first, uint64_t *count);
void zpacked_range_by_lex(const char *run, const struct zset_lex_bound *min,
                          const struct zset_lex_bound *max, uint64_t *first, uint64_t *count);
size_t zpacked_fetch(struct zset_iter *it, struct zset_entry *out, size_t cap);

/* Fill an empty run with sorted entries. ST_RANGE: beyond the limits of the packed form. */
MUST_CHECK enum status zpacked_build(struct value *v, const struct zset_entry *entries,
                                     size_t count);
void zpacked_check(const struct value *v);

/* ---- table (zset_table.c) -------------------------------------------------------------------- */

struct zset {
    struct swiss index;
    struct order order;
    struct arena arena;
    size_t boxed_bytes;     /* held by boxed members */
    uint64_t free_position; /* of the walk that frees boxes (swiss_next); 0 while the set lives */
};

bool ztable_score(const struct zset *z, struct bytes member, double *score);
MUST_CHECK enum status ztable_set(struct zset *z, struct bytes member, double score, bool *added);
bool ztable_delete(struct zset *z, struct bytes member);
bool ztable_rank(const struct zset *z, struct bytes member, uint64_t *rank, double *score);
void ztable_range_by_score(const struct zset *z, const struct zset_score_bound *min,
                           const struct zset_score_bound *max, uint64_t *first, uint64_t *count);
void ztable_range_by_lex(const struct zset *z, const struct zset_lex_bound *min,
                         const struct zset_lex_bound *max, uint64_t *first, uint64_t *count);
size_t ztable_fetch(struct order_iter *it, bool backward, struct zset_entry *out, size_t cap);
uint64_t ztable_delete_range(struct zset *z, uint64_t first, uint64_t count);
struct zset_entry ztable_entry(const struct zset *z, uint64_t ref);
void ztable_destroy(struct zset *z);
void ztable_check(const struct zset *z);

/* A new table from entries in order: records lie in rank order, the tree is built bottom-up and the
 * index is filled in prefetched groups. 8.5 KiB; the caller's, on the stack. After an error the
 * caller destroys b.z. */
#define ZTABLE_PENDING 32 /* index inserts prefetched ahead */
struct ztable_builder {
    struct zset *z;
    struct order_builder order;
    bool checked; /* set after init: look for members that are there already, answer ST_EXISTS */
    size_t pending;
    uint64_t hash[ZTABLE_PENDING], ref[ZTABLE_PENDING];
};
MUST_CHECK enum status ztable_build_init(struct ztable_builder *b, struct pages *pages);
MUST_CHECK enum status ztable_build_add(struct ztable_builder *b, const struct zset_entry *e);
MUST_CHECK enum status ztable_build_finish(struct ztable_builder *b);

#endif
