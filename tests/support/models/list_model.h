/* SPDX-License-Identifier: BSD-3-Clause */
/* A list beside an array of its elements (model.h). Elements are bytes that follow from their kind, a
 * number, as their length does: two elements are equal when their kinds are. */
#ifndef TESTS_MODELS_LIST_MODEL_H
#define TESTS_MODELS_LIST_MODEL_H

#include "model.h"
#include "types/list.h"

#define LIST_MODEL_LEN_MAX 70000

/* Lengths: base + below(spread); one in odd_every up to odd_max, <= LIST_MODEL_LEN_MAX. */
struct list_model_form {
    uint32_t base, spread, odd_every, odd_max;
    uint32_t kinds;     /* how many different elements there are */
    uint32_t count_max; /* an insert beyond does nothing */
};

struct list_model_element {
    uint32_t kind, len;
};

struct list_model {
    struct held held;
    const struct list_model_form *form;
    struct list_model_element *elements; /* what the list must be */
    uint32_t live;
    uint64_t failures;
    struct rng rng;
};

void list_model_init(struct list_model *m, const struct type_env *env, size_t record_max,
                     const struct list_model_form *form, uint64_t seed);
void list_model_deinit(struct list_model *m);

/* Positions beyond the end, and kinds beyond those in use, are taken modulo. */
void list_model_push(struct list_model *m, enum list_end end, uint32_t kind, size_t fail_after);
void list_model_insert(struct list_model *m, uint32_t at, uint32_t kind, size_t fail_after);
void list_model_set(struct list_model *m, uint32_t at, uint32_t kind, size_t fail_after);

/* Insert a view of an element that is there; at == UINT32_MAX: at the tail, as a push. */
void list_model_insert_own(struct list_model *m, uint32_t at, uint32_t from, size_t fail_after);

void list_model_remove(struct list_model *m, uint64_t at, uint64_t count, size_t fail_after);
void list_model_remove_equal(struct list_model *m, uint32_t kind, uint64_t max, bool from_tail,
                             size_t fail_after);
void list_model_clone(struct list_model *m, size_t fail_after);

/* Build the list anew from its elements; the new one takes the old one's place. */
void list_model_build(struct list_model *m, size_t fail_after);

void list_model_verify_some(struct list_model *m);
void list_model_verify_walk(struct list_model *m, uint64_t index, bool backward, uint32_t most);
void list_model_verify_all(struct list_model *m);

#endif
