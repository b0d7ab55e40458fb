/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on a list, packed and as a sequence of blocks, against an array.
 *
 *   property_types_list [seed [operations]]
 *
 * Each round takes other limits of the packed form, other lengths and another chunk size. The list
 * grows and shrinks in waves; one write in four runs short of memory, should it ask for some, and
 * must then change nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../unit/types/host.h"
#include "types/list.h"

#define OPERATIONS 300000
#define LEN_MAX 70000

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Lengths: base + below(spread); one in odd_every up to odd_max. kinds: how many different elements
 * there are. */
struct shape {
    int listpack_size;
    size_t record_max;
    uint32_t base, spread, odd_every, odd_max, kinds, count_max;
};

static const struct shape shapes[] = {
    {-2, 60000, 16, 1, 0, 0, 1000000, 1200},    /* around the limit, even */
    {-2, 60000, 0, 40, 0, 0, 1000000, 1000},    /* short */
    {-2, 60000, 8, 1, 20, 400, 1000000, 1000},  /* some beyond a byte */
    {-5, 60000, 0, 300, 0, 0, 1000000, 500},    /* the record is the limit */
    {-5, 3000, 0, 60, 0, 0, 1000000, 300},      /* a short one */
    {64, 60000, 4, 2, 0, 0, 4, 130},            /* a number of elements; many equal */
    {-1, 60000, 3, 3, 0, 0, 2, 3000},           /* many equal */
    {8, 60000, 10, 20, 50, 70000, 30, 2000},    /* blocks, with large ones */
    {0, 60000, 0, 5000, 0, 0, 1000000, 400},    /* around what stands alone */
    {-2, 60000, 8, 1, 500, 70000, 20000, 4000}, /* mostly even */
};

struct element {
    uint32_t seed, len;
};

static struct rng rng;
static const struct shape *shape;
static struct held held;
static struct element *model;
static uint32_t live;
static uint64_t failures;
static char *scratch;

static struct value *v(void) {
    return &held.v;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* The length depends on the kind: two elements are equal when their kinds are. */
static struct element draw(void) {
    struct element e = {(uint32_t)rng_below(&rng, shape->kinds), 0};
    struct rng own;
    rng_init(&own, e.seed);
    e.len = shape->base + (uint32_t)rng_below(&own, shape->spread);
    if (shape->odd_every != 0 && rng_below(&own, shape->odd_every) == 0) {
        e.len = (uint32_t)rng_below(&own, shape->odd_max + 1);
    }
    return e;
}

static struct bytes bytes_of(const struct element *e) {
    fill_pattern(scratch, e->len, e->seed);
    return BYTES(scratch, e->len);
}

static bool same(struct bytes b, const struct element *e) {
    static char expected[LEN_MAX];
    if (b.len != e->len) {
        return false;
    }
    uint32_t len = e->len > 64 && rng_below(&rng, 16) != 0 ? 64 : e->len;
    fill_pattern(expected, len, e->seed);
    return len == 0 || memcmp(b.ptr, expected, len) == 0;
}

static void model_insert(uint32_t at, struct element e) {
    memmove(model + at + 1, model + at, (live - at) * sizeof(*model));
    model[at] = e;
    live++;
}

static void model_remove(uint32_t at, uint32_t n) {
    memmove(model + at, model + at + n, (live - at - n) * sizeof(*model));
    live -= n;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void verify_some(void) {
    struct bytes b;
    for (int i = 0; i < 4 && live != 0; i++) {
        uint32_t at = (uint32_t)rng_below(&rng, live);
        list_prefetch(v(), at);
        REQUIRE(list_at(v(), at, &b) && same(b, &model[at]));
    }
    list_prefetch(v(), live);
    REQUIRE(!list_at(v(), live, &b) && list_count(v()) == live);
}

static void verify_walk(const struct value *value, uint32_t index, bool backward, uint32_t most) {
    struct bytes out[150];
    struct list_iter it;
    size_t n = 1;
    uint32_t at = index >= live ? live : index + backward;
    list_iter_init(&it, value, index, backward);
    for (uint32_t seen = 0; seen < most && n != 0; seen += (uint32_t)n) {
        size_t want = 1 + rng_below(&rng, ARRAY_LEN(out));
        uint32_t left = backward ? at : live - at;
        n = list_fetch(&it, out, want);
        REQUIRE(n == (want < left ? want : left));
        for (size_t i = 0; i < n; i++) {
            REQUIRE(same(out[i], &model[backward ? --at : at++]));
        }
        REQUIRE(it.index == at);
    }
}

static void verify_all(const struct value *value) {
    list_check(value);
    REQUIRE(list_count(value) == live);
    verify_walk(value, 0, false, UINT32_MAX);
    verify_walk(value, UINT32_MAX, true, UINT32_MAX);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void maybe_fail(void) {
    if (rng_below(&rng, 4) == 0) {
        account_fail_after(1 + rng_below(&rng, 5));
    }
}

static bool done(enum status st) {
    account_fail_after(0);
    REQUIRE(st == ST_OK || st == ST_NOMEM);
    if (st != ST_OK) {
        failures++;
        list_check(v());
        verify_some();
    }
    return st == ST_OK;
}

static void op_insert(bool at_end) {
    struct element e = draw();
    struct bytes b = bytes_of(&e);
    uint32_t at = (uint32_t)rng_below(&rng, live + 1U);
    bool head = rng_below(&rng, 2) == 0;
    if (live >= shape->count_max) {
        return;
    }
    if (live != 0 && rng_below(&rng, 8) == 0) { /* a view of one that is there */
        uint32_t from = (uint32_t)rng_below(&rng, live);
        REQUIRE(list_at(v(), from, &b));
        e = model[from];
    }
    at = at_end ? (head ? 0 : live) : at;
    maybe_fail();
    if (done(at_end ? list_push(v(), head ? LIST_HEAD : LIST_TAIL, b) : list_insert(v(), at, b))) {
        model_insert(at, e);
    }
}

static void op_set(void) {
    if (live == 0) {
        return;
    }
    uint32_t at = (uint32_t)rng_below(&rng, live);
    struct element e = draw();
    maybe_fail();
    if (done(list_set(v(), at, bytes_of(&e)))) {
        model[at] = e;
    }
}

static void op_remove(bool at_end) {
    uint32_t most = rng_below(&rng, 100) == 0 ? 400 : 3;
    uint32_t at = (uint32_t)rng_below(&rng, live + 2U), n = (uint32_t)rng_below(&rng, most);
    if (at_end) {
        at = rng_below(&rng, 2) == 0 ? 0 : live - (n < live ? n : live);
    }
    uint32_t there = at >= live ? 0 : n < live - at ? n : live - at;
    maybe_fail();
    REQUIRE(list_remove(v(), at, n) == there);
    account_fail_after(0);
    if (there != 0) {
        model_remove(at, there);
    }
}

/* Short ones of different kinds may be. */
static bool equal(const struct element *a, const struct element *b) {
    char x[8], y[8];
    if (a->seed == b->seed || a->len != b->len || a->len > sizeof(x)) {
        return a->seed == b->seed;
    }
    fill_pattern(x, a->len, a->seed);
    fill_pattern(y, b->len, b->seed);
    return memcmp(x, y, a->len) == 0;
}

static void op_remove_equal(void) {
    struct element e = draw();
    bool from_tail = rng_below(&rng, 2) == 0;
    uint64_t max = rng_below(&rng, 4), removed = 0;
    max = rng_below(&rng, 64) == 0 ? 0 : max + 1;
    maybe_fail();
    uint64_t n = list_remove_equal(v(), bytes_of(&e), max, from_tail);
    account_fail_after(0);
    for (uint32_t left = live; left > 0 && (max == 0 || removed < max); left--) {
        uint32_t at = from_tail ? left - 1 : live - left;
        if (equal(&model[at], &e)) {
            model_remove(at, 1);
            removed++;
        }
    }
    REQUIRE(n == removed);
}

static void verify_copy(void) {
    struct value_image image;
    struct held copy;
    maybe_fail();
    enum status st = value_clone(v(), &image);
    account_fail_after(0);
    if (st == ST_OK) {
        held_init(&copy, VALUE_LIST, &image, &held.env);
        verify_all(&copy.v);
        held_deinit(&copy);
    }
}

static void verify_build(void) {
    struct value_image image = {VALUE_PACKED, {0}, BYTES(list_empty, LIST_EMPTY_LEN)};
    struct held built;
    struct list_iter it;
    struct bytes *all = calloc(live + 1U, sizeof(*all));
    REQUIRE(all != NULL);
    list_iter_init(&it, v(), 0, false);
    REQUIRE(list_fetch(&it, all, live + 1U) == live);
    held_init(&built, VALUE_LIST, &image, &held.env);
    built.len_max = shape->record_max;
    maybe_fail();
    enum status st = list_build(&built.v, all, live);
    account_fail_after(0);
    REQUIRE(st == ST_OK || (st == ST_NOMEM && list_count(&built.v) == 0));
    list_check(&built.v);
    if (st == ST_OK) {
        verify_all(&built.v);
    }
    held_deinit(&built);
    free(all);
}

static void step(bool growing, uint64_t ends_pct) {
    uint64_t pick = rng_below(&rng, 1000);
    bool at_end = rng_below(&rng, 100) < ends_pct;
    if (pick < (growing ? 560U : 250U)) {
        op_insert(at_end);
    } else if (pick < 780) {
        op_remove(at_end);
    } else if (pick < 790) {
        op_remove_equal();
    } else if (pick < 870) {
        op_set();
    } else if (pick < 980) {
        verify_some();
    } else if (pick < 998) {
        verify_walk(v(), (uint32_t)rng_below(&rng, live + 2U), rng_below(&rng, 2) == 0, 300);
    } else if (pick == 998) {
        verify_copy();
    } else {
        verify_build();
    }
}

static void round_run(uint64_t operations) {
    struct type_env env = {.pages = held_pages((size_t)64 << 10)};
    struct value_image image = {VALUE_PACKED, {0}, BYTES(list_empty, LIST_EMPTY_LEN)};
    uint64_t ends_pct = rng_below(&rng, 101);
    shape = &shapes[rng_below(&rng, ARRAY_LEN(shapes))];
    list_limits(shape->listpack_size, &env);
    held_init(&held, VALUE_LIST, &image, &env);
    held.len_max = shape->record_max;
    live = 0;
    for (uint64_t i = 0; i < operations; i++) {
        step(i * 4 / operations % 2 == 0, ends_pct);
        if (i % 200 == 0) {
            list_check(v());
        }
    }
    verify_all(v());
    held_deinit(&held);
    pages_destroy(env.pages);
    REQUIRE(held_total_bytes() == 0);
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : rng_entropy();
    uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 0) : OPERATIONS;
    printf("seed %" PRIu64 ", %" PRIu64 " operations\n", seed, operations);
    fflush(stdout);
    rng_init(&rng, seed);
    model = calloc(5000, sizeof(*model));
    scratch = malloc(LEN_MAX + 1);
    REQUIRE(model != NULL && scratch != NULL);
    for (uint64_t ran = 0; ran < operations;) {
        uint64_t n = 2000 + rng_below(&rng, 18000);
        n = n < operations - ran ? n : operations - ran;
        round_run(n);
        ran += n;
    }
    free(model);
    free(scratch);
    printf("ok, %" PRIu64 " writes without memory\n", failures);
    return 0;
}
