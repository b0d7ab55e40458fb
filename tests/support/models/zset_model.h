/* SPDX-License-Identifier: BSD-3-Clause */
/* A sorted set beside a sorted array of its entries (model.h). Members are known by their number. */
#ifndef TESTS_MODELS_ZSET_MODEL_H
#define TESTS_MODELS_ZSET_MODEL_H

#include "model.h"
#include "types/zset.h"

enum zset_model_scores {
    SCORES_DOUBLES,
    SCORES_INTEGERS,
    SCORES_FEW,
    SCORES_EQUAL,
    SCORES_MIXED,
    SCORES_KINDS
};

/* A score of a kind, from 64 random bits. */
double zset_model_score(enum zset_model_scores kind, uint64_t random);

struct zset_model_entry {
    double score;
    uint32_t id;
};

struct zset_model {
    struct held held;
    enum zset_model_scores kind; /* of scores that the model draws itself */
    const struct bytes *names;   /* of all ids, the caller's; each ends in the id's four bytes */
    uint32_t ids;
    double *score_of;                /* NAN: absent */
    struct zset_model_entry *sorted; /* what the set must be */
    size_t live;
    uint64_t failures; /* writes that were short of memory */
    struct rng rng;
};

void zset_model_init(struct zset_model *m, const struct type_env *env, size_t record_max,
                     const struct bytes *names, uint32_t ids, enum zset_model_scores kind,
                     uint64_t seed);
void zset_model_deinit(struct zset_model *m);
void zset_model_restart(struct zset_model *m); /* with an empty set */

void zset_model_set(struct zset_model *m, uint32_t id, double score, size_t fail_after);
void zset_model_delete(struct zset_model *m, uint32_t id, size_t fail_after);
void zset_model_delete_range(struct zset_model *m, uint64_t first, uint64_t count,
                             size_t fail_after);

/* A whole scan between writes: members there throughout come once. */
void zset_model_scan(struct zset_model *m);

/* A copy, compared and freed in steps. */
void zset_model_clone(struct zset_model *m, size_t fail_after);

/* Build the set anew, from its entries in any order; the new one takes the old one's place. */
enum zset_model_order { ORDER_RANDOM, ORDER_REVERSE, ORDER_SORTED, ORDERS };
void zset_model_build(struct zset_model *m, enum zset_model_order order, bool checked,
                      size_t fail_after);

/* What zset_build_checked is for: an entry more whose member is there already. */
void zset_model_build_twin(struct zset_model *m, uint64_t random);

void zset_model_verify_member(struct zset_model *m, uint32_t id);
void zset_model_verify_walk(struct zset_model *m, uint64_t rank, bool backward, size_t most);
void zset_model_verify_score_range(struct zset_model *m, struct zset_score_bound min,
                                   struct zset_score_bound max);
void zset_model_verify_lex_range(struct zset_model *m, struct zset_lex_bound min,
                                 struct zset_lex_bound max);
void zset_model_verify_random(struct zset_model *m);

/* The set's own check, then all of its entries both ways. O(n). */
void zset_model_verify_all(struct zset_model *m);

#endif
