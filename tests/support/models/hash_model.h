/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash beside an array of what each field holds (model.h). Fields and values are bytes that follow
 * from a number; fields end in its four bytes. */
#ifndef TESTS_MODELS_HASH_MODEL_H
#define TESTS_MODELS_HASH_MODEL_H

#include "model.h"
#include "types/hash.h"

struct hash_model_form {
    uint32_t fields;    /* in use */
    size_t lens[2];     /* field and value: usual lengths below these */
    unsigned odd_every; /* one in so many has a length at some border; 0: none */
};

struct hash_model {
    struct held held;
    const struct hash_model_form *form;
    uint32_t *number; /* by field: what its value is made from, 0: absent */
    uint64_t live, failures;
    struct rng rng;
};

void hash_model_init(struct hash_model *m, const struct type_env *env, size_t record_max,
                     const struct hash_model_form *form, uint64_t seed);
void hash_model_deinit(struct hash_model *m);
void hash_model_restart(struct hash_model *m); /* with an empty hash */

void hash_model_set(struct hash_model *m, uint32_t field, uint32_t number, size_t fail_after);
void hash_model_delete(struct hash_model *m, uint32_t field, size_t fail_after);

/* Fields there throughout a scan between writes come once. */
void hash_model_scan(struct hash_model *m);
void hash_model_clone(struct hash_model *m, size_t fail_after);

/* Build the hash anew as a snapshot's reader would, having been told of so many fields; the new one
 * takes the old one's place. With a twin, a field that comes again, the answer must be
 * ST_EXISTS, and the old one stays. */
void hash_model_load(struct hash_model *m, uint64_t expected, bool twin, size_t fail_after);

void hash_model_verify_field(struct hash_model *m, uint32_t field);
void hash_model_verify_random(struct hash_model *m);
void hash_model_verify_all(struct hash_model *m);

#endif
