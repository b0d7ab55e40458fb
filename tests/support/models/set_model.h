/* SPDX-License-Identifier: BSD-3-Clause */
/* A set beside an array of which members are there (model.h). Members are integers and words that
 * follow from a number. */
#ifndef TESTS_MODELS_SET_MODEL_H
#define TESTS_MODELS_SET_MODEL_H

#include "model.h"
#include "types/set.h"

struct set_model_form {
    uint32_t members;    /* in use, < 100000 */
    uint32_t words_from; /* members below are integers */
    size_t word_len;     /* words: usual lengths below this */
    unsigned odd_every;  /* one in so many has a length at some border; 0: none */
};

struct set_model {
    struct held held;
    const struct set_model_form *form;
    uint8_t *there; /* by number */
    uint64_t live, failures, changes_of_form;
    struct rng rng;
};

void set_model_init(struct set_model *m, const struct type_env *env, size_t record_max,
                    const struct set_model_form *form, bool integers, uint64_t seed);
void set_model_deinit(struct set_model *m);
void set_model_restart(struct set_model *m, bool integers); /* with an empty set */

void set_model_add(struct set_model *m, uint32_t number, size_t fail_after);
void set_model_remove(struct set_model *m, uint32_t number, size_t fail_after);

/* Members there throughout a scan between writes come once. */
void set_model_scan(struct set_model *m);
void set_model_clone(struct set_model *m, size_t fail_after);

/* Build the set anew as a snapshot's reader would, having been told of so many members; the new one
 * takes the old one's place. With a twin, a member that comes again, the answer must be
 * ST_EXISTS, and the old one stays. */
void set_model_load(struct set_model *m, bool integers, uint64_t expected, bool twin,
                    size_t fail_after);

void set_model_verify_member(struct set_model *m, uint32_t number);
void set_model_verify_random(struct set_model *m);
void set_model_verify_all(struct set_model *m);

#endif
