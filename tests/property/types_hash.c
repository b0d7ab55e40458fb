/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on a hash, packed and as a table, against an array of what each field holds.
 *
 *   property_types_hash [seed [operations a round]]
 *
 * Each round takes another chunk size, other limits of the packed form and other lengths. The hash
 * grows and shrinks in waves; one write in sixteen runs short of memory and must then change
 * nothing. */
#include <inttypes.h>

#include "base/hash.h"
#include "support/models/hash_model.h"

#define OPERATIONS 40000

struct shape {
    size_t chunk_bytes, entries_max, element_max, record_max;
    struct hash_model_form form;
};

static const struct shape shapes[] = {
    {65536, 128, 64, 60000, {160, {20, 60}, 0}}, /* around the limit of the packed form */
    {65536, SIZE_MAX, SIZE_MAX, 9000, {300, {30, 60}, 20}}, /* until the record is full */
    {65536, 16, 64, 60000, {20000, {20, 40}, 0}},           /* many chunks */
    {65536, 16, 64, 60000, {3000, {300, 900}, 50}},         /* long records, boxes */
    {(size_t)2 << 20, 16, 64, 60000, {20000, {20, 300}, 2000}},
};

static struct rng rng;
static const struct shape *shape;
static struct hash_model hash;

/* In one case of sixteen, which allocation fails first. */
static size_t draw_failure(uint64_t most) {
    return rng_below(&rng, 16) == 0 ? 1 + rng_below(&rng, most) : 0;
}

static void step(uint64_t i, uint64_t operations) {
    uint32_t field = (uint32_t)rng_below(&rng, shape->form.fields);
    bool grows = i / (operations / 6 + 1) % 2 == 0;
    if (rng_below(&rng, 100) < (grows ? 75 : 40)) {
        hash_model_set(&hash, field, (uint32_t)rng_next(&rng) | 1, draw_failure(5));
    } else {
        hash_model_delete(&hash, field, draw_failure(1));
    }
    hash_model_verify_field(&hash, field);
    if (i % 7 == 0) {
        hash_model_verify_random(&hash);
    }
    if (i % (operations / 10 + 1) == 0) {
        hash_model_verify_all(&hash);
        hash_model_scan(&hash);
        hash_model_clone(&hash, rng_below(&rng, 2) ? 0 : 1 + rng_below(&rng, 40));
        hash_model_load(&hash, rng_below(&rng, 2) ? hash.live : 0, true, 0);
        hash_model_load(&hash, hash.live, false, rng_below(&rng, 2) ? 0 : 1 + rng_below(&rng, 40));
    }
    if (hash.live == 0 || (shape->form.fields < 1000 && i % 500 == 0)) { /* again, packed */
        hash_model_restart(&hash);
    }
}

static void run_round(uint64_t operations) {
    struct pages *pages = held_pages(shape->chunk_bytes);
    struct type_env env = {.pages = pages,
                           .hash_packed_entries_max = shape->entries_max,
                           .hash_packed_element_max = shape->element_max};
    hash_model_init(&hash, &env, shape->record_max, &shape->form, rng_next(&rng));
    for (uint64_t i = 0; i < operations; i++) {
        step(i, operations);
    }
    hash_model_verify_all(&hash);
    printf("chunk %zu, %" PRIu64 " operations, %" PRIu64 " short of memory, %" PRIu64
           " fields at the end, %s\n",
           shape->chunk_bytes, operations, hash.failures, hash.live,
           value_encoding_name(&hash.held.v));
    hash_model_deinit(&hash);
    pages_destroy(pages);
    REQUIRE(held_total_bytes() == 0);
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : rng_entropy();
    uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 0) : OPERATIONS;
    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    rng_init(&rng, seed);
    hash_setup_seed(seed);
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        shape = &shapes[i];
        run_round(operations);
        fflush(stdout);
    }
    return 0;
}
