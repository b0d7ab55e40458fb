/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on a list, packed and as a sequence of blocks, against an array.
 *
 *   property_types_list [seed [operations]]
 *
 * Each round takes other limits of the packed form, other lengths and another chunk size. The list
 * grows and shrinks in waves; one write in four runs short of memory, should it ask for some, and
 * must then change nothing. */
#include <inttypes.h>

#include "support/models/list_model.h"

#define OPERATIONS 300000

struct shape {
    int listpack_size;
    size_t record_max;
    struct list_model_form form;
};

static const struct shape shapes[] = {
    {-2, 60000, {16, 1, 0, 0, 1000000, 1200}},    /* around the limit, even */
    {-2, 60000, {0, 40, 0, 0, 1000000, 1000}},    /* short */
    {-2, 60000, {8, 1, 20, 400, 1000000, 1000}},  /* some beyond a byte */
    {-5, 60000, {0, 300, 0, 0, 1000000, 500}},    /* the record is the limit */
    {-5, 3000, {0, 60, 0, 0, 1000000, 300}},      /* a short one */
    {64, 60000, {4, 2, 0, 0, 4, 130}},            /* a number of elements; many equal */
    {-1, 60000, {3, 3, 0, 0, 2, 3000}},           /* many equal */
    {8, 60000, {10, 20, 50, 70000, 30, 2000}},    /* blocks, with large ones */
    {0, 60000, {0, 5000, 0, 0, 1000000, 400}},    /* around what stands alone */
    {-2, 60000, {8, 1, 500, 70000, 20000, 4000}}, /* mostly even */
};

static struct rng rng;
static struct list_model list;

static uint32_t draw(uint64_t below) {
    return (uint32_t)rng_below(&rng, below);
}

/* In one case of four, which allocation fails first. */
static size_t draw_failure(void) {
    return draw(4) == 0 ? 1 + draw(5) : 0;
}

static void op_insert(bool at_end) {
    uint32_t kind = draw(list.form->kinds), at = draw(list.live + 1U);
    enum list_end end = draw(2) == 0 ? LIST_HEAD : LIST_TAIL;
    if (draw(8) == 0) {
        list_model_insert_own(&list,
                              !at_end            ? at
                              : end == LIST_HEAD ? 0
                                                 : UINT32_MAX,
                              draw(list.live + 1U), draw_failure());
    } else if (at_end) {
        list_model_push(&list, end, kind, draw_failure());
    } else {
        list_model_insert(&list, at, kind, draw_failure());
    }
}

static void op_remove(bool at_end) {
    uint32_t most = draw(100) == 0 ? 400 : 3;
    uint32_t at = draw(list.live + 2U), n = draw(most);
    if (at_end) {
        at = draw(2) == 0 ? 0 : list.live - (n < list.live ? n : list.live);
    }
    list_model_remove(&list, at, n, draw_failure());
}

static void op_remove_equal(void) {
    uint64_t max = draw(64) == 0 ? 0 : 1 + draw(4);
    list_model_remove_equal(&list, draw(list.form->kinds), max, draw(2) == 0, draw_failure());
}

static void step(bool growing, uint64_t ends_pct) {
    uint64_t pick = draw(1000);
    bool at_end = draw(100) < ends_pct;
    if (pick < (growing ? 560U : 250U)) {
        op_insert(at_end);
    } else if (pick < 780) {
        op_remove(at_end);
    } else if (pick < 790) {
        op_remove_equal();
    } else if (pick < 870) {
        list_model_set(&list, draw(list.live + 1U), draw(list.form->kinds), draw_failure());
    } else if (pick < 980) {
        list_model_verify_some(&list);
    } else if (pick < 998) {
        list_model_verify_walk(&list, draw(list.live + 2U), draw(2) == 0, 300);
    } else if (pick == 998) {
        list_model_clone(&list, draw_failure());
    } else {
        list_model_build(&list, draw_failure());
    }
}

static uint64_t run_round(uint64_t operations) {
    const struct shape *shape = &shapes[draw(ARRAY_LEN(shapes))];
    struct type_env env = {.pages = held_pages((size_t)64 << 10)};
    uint64_t ends_pct = draw(101);
    list_limits(shape->listpack_size, &env);
    list_model_init(&list, &env, shape->record_max, &shape->form, rng_next(&rng));
    for (uint64_t i = 0; i < operations; i++) {
        step(i * 4 / operations % 2 == 0, ends_pct);
        if (i % 200 == 0) {
            list_check(&list.held.v);
        }
    }
    list_model_verify_all(&list);
    list_model_deinit(&list);
    pages_destroy(env.pages);
    REQUIRE(held_total_bytes() == 0);
    return list.failures;
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : rng_entropy(), failures = 0;
    uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 0) : OPERATIONS;
    printf("seed %" PRIu64 ", %" PRIu64 " operations\n", seed, operations);
    fflush(stdout);
    rng_init(&rng, seed);
    for (uint64_t ran = 0; ran < operations;) {
        uint64_t n = 2000 + rng_below(&rng, 18000);
        n = n < operations - ran ? n : operations - ran;
        failures += run_round(n);
        ran += n;
    }
    printf("ok, %" PRIu64 " writes without memory\n", failures);
    return 0;
}
