/* SPDX-License-Identifier: BSD-3-Clause */
/* A value beside a simple model of it: what the property tests and the fuzz target of the types share.
 * The callers choose operations and their arguments; a model carries each out on the value, compares
 * every answer, and aborts where the two differ.
 *
 *   fail_after   the n-th allocation of the operation and all behind it fail; 0: none does. An
 *                operation that answers ST_NOMEM must have changed nothing, one that cannot answer it
 *                (deleting) must work all the same
 *   rng          of the model's own, for what should make no difference: how many entries are
 *                fetched at a time, what is written between two steps of a scan */
#ifndef TESTS_MODELS_MODEL_H
#define TESTS_MODELS_MODEL_H

#include <stdio.h>

#include "unit/types/host.h"

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* What all objects hold, order trees included. */
static inline size_t model_object_bytes(void) {
    return held_object_bytes() + account_bytes(ACCOUNT_ORDER);
}

/* Free a value step by step. */
static inline void model_discard(struct held *h, struct rng *rng) {
    if (h->v.encoding == VALUE_HEAP) {
        void *object = value_object(&h->v);
        while (!value_free_step(h->v.type, object, 1 + rng_below(rng, 100))) {
        }
        h->v.encoding = VALUE_PACKED;
    }
    held_deinit(h);
}

/* Let one value take another's place. */
static inline void model_replace(struct held *old, struct held *with, struct rng *rng) {
    model_discard(old, rng);
    *old = *with;
    old->v.host = &old->host;
    old->host.env = &old->env;
}

/* A copy of a value, in c. False when memory was short; nothing is held then. */
static inline bool model_clone(const struct held *h, struct held *c, size_t fail_after) {
    struct value_image image;
    size_t before = model_object_bytes();
    account_fail_after(fail_after);
    enum status st = value_clone(&h->v, &image);
    account_fail_after(0);
    REQUIRE(st == ST_OK || (fail_after != 0 && st == ST_NOMEM));
    if (st != ST_OK) {
        REQUIRE(model_object_bytes() == before);
        return false;
    }
    held_init(c, h->v.type, &image, &h->env);
    c->len_max = h->len_max;
    return true;
}

#endif
