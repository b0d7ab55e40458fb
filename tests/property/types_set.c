/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on a set in all its forms, against an array of which members are there.
 *
 *   property_types_set [seed [operations a round]]
 *
 * Each round takes another chunk size, other limits of the small forms and other members. The set
 * grows and shrinks in waves; one write in sixteen runs short of memory and must then change
 * nothing. */
#include <inttypes.h>

#include "base/hash.h"
#include "support/models/set_model.h"

#define OPERATIONS 40000

struct shape {
    size_t chunk_bytes, record_max;
    struct {
        size_t ints, entries, element;
    } limits;
    struct set_model_form form;
};

static const struct shape shapes[] = {
    {65536, 60000, {100, 20, 64}, {160, 160, 0, 0}},                  /* integers, and too many */
    {65536, 60000, {512, 128, 64}, {170, 140, 30, 0}},                /* all three forms */
    {65536, 3000, {SIZE_MAX, SIZE_MAX, SIZE_MAX}, {500, 400, 20, 0}}, /* until the record is full */
    {65536, 60000, {16, 16, 64}, {20000, 10000, 24, 0}},              /* many chunks */
    {65536, 60000, {16, 16, 64}, {2000, 100, 900, 50}},               /* long records, boxes */
    {(size_t)2 << 20, 60000, {16, 16, 64}, {20000, 100, 200, 3000}},
};

static struct rng rng;
static const struct shape *shape;
static struct set_model set;

/* In one case of sixteen, which allocation fails first. */
static size_t draw_failure(uint64_t most) {
    return rng_below(&rng, 16) == 0 ? 1 + rng_below(&rng, most) : 0;
}

static void step(uint64_t i, uint64_t operations) {
    uint32_t number = (uint32_t)rng_below(&rng, shape->form.members);
    bool grows = i / (operations / 6 + 1) % 2 == 0;
    if (rng_below(&rng, 100) < (grows ? 75 : 40)) {
        set_model_add(&set, number, draw_failure(5));
    } else {
        set_model_remove(&set, number, draw_failure(1));
    }
    set_model_verify_member(&set, number);
    if (i % 7 == 0) {
        set_model_verify_random(&set);
    }
    if (i % (operations / 10 + 1) == 0) {
        set_model_verify_all(&set);
        set_model_scan(&set);
        set_model_clone(&set, rng_below(&rng, 2) ? 0 : 1 + rng_below(&rng, 40));
        set_model_load(&set, rng_below(&rng, 2), rng_below(&rng, 2) ? set.live : 0, true, 0);
        set_model_load(&set, rng_below(&rng, 2), set.live, false,
                       rng_below(&rng, 2) ? 0 : 1 + rng_below(&rng, 40));
    }
    if (set.live == 0 || (shape->form.members < 1000 && i % 400 == 0)) { /* again, small */
        set_model_restart(&set, rng_below(&rng, 4) != 0);
    }
}

static void run_round(uint64_t operations) {
    struct pages *pages = held_pages(shape->chunk_bytes);
    struct type_env env = {.pages = pages,
                           .set_int_entries_max = shape->limits.ints,
                           .set_packed_entries_max = shape->limits.entries,
                           .set_packed_element_max = shape->limits.element};
    set_model_init(&set, &env, shape->record_max, &shape->form, rng_below(&rng, 4) != 0,
                   rng_next(&rng));
    for (uint64_t i = 0; i < operations; i++) {
        step(i, operations);
    }
    set_model_verify_all(&set);
    printf("chunk %zu, %" PRIu64 " operations, %" PRIu64 " short of memory, %" PRIu64
           " changes of form, %" PRIu64 " members at the end, %s\n",
           shape->chunk_bytes, operations, set.failures, set.changes_of_form, set.live,
           value_encoding_name(&set.held.v));
    set_model_deinit(&set);
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
