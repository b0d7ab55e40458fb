/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on a sequence against an array.
 *
 *   property_ds_seq [seed [operations]]
 *
 * Each round takes other lengths, another chunk size and another mix of ends and middle. The
 * sequence grows and shrinks in waves; one write in four runs short of memory, should it ask for
 * some, and must then change nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "ds/seq.h"
#include "mem/account.h"

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Lengths: base + below(spread); one in odd_every up to odd_max. */
struct shape {
    uint32_t base, spread, odd_every, odd_max;
    uint32_t count_max;
};

static const struct shape shapes[] = {
    {16, 1, 0, 0, 30000},       /* even */
    {0, 1, 0, 0, 30000},        /* nothing in them */
    {0, 32, 0, 0, 30000},       /* short */
    {100, 1, 50, 300, 8000},    /* mostly even, some beyond a byte */
    {0, 700, 0, 0, 4000},       /* around a byte */
    {0, 4200, 0, 0, 700},       /* around what stands alone */
    {4050, 60, 0, 0, 12000},    /* one or two a block: many nodes */
    {10, 20, 40, 100000, 3000}, /* large ones between small ones */
    {1, 2, 3000, 5000, 30000},
};

struct element {
    uint32_t seed, len;
};

static struct rng rng;
static const struct shape *shape;
static struct element *model;
static uint32_t live;
static uint32_t next_seed;
static uint64_t failures;
static char *scratch;

#define LEN_MAX 100000

/* ---- elements -------------------------------------------------------------------------------- */

static void fill(char *p, const struct element *e) {
    uint64_t x = e->seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (uint32_t i = 0; i < e->len; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        p[i] = (char)(x >> 32);
    }
}

static struct element draw(void) {
    struct element e = {next_seed++, shape->base + (uint32_t)rng_below(&rng, shape->spread)};
    if (shape->odd_every != 0 && rng_below(&rng, shape->odd_every) == 0) {
        e.len = (uint32_t)rng_below(&rng, shape->odd_max + 1);
    }
    return e;
}

static struct bytes bytes_of(const struct element *e) {
    fill(scratch, e);
    return BYTES(scratch, e->len);
}

/* Long ones are compared at both ends only, most of the time. */
static bool same(struct bytes b, const struct element *e) {
    static char expected[LEN_MAX];
    if (b.len != e->len) {
        return false;
    }
    struct element head = *e;
    if (e->len > 64 && rng_below(&rng, 16) != 0) {
        head.len = 64;
    }
    fill(expected, &head);
    return head.len == 0 || memcmp(b.ptr, expected, head.len) == 0;
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

/* ---- operations ------------------------------------------------------------------------------ */

static void maybe_fail(void) {
    if (rng_below(&rng, 4) == 0) {
        account_fail_after(1 + rng_below(&rng, 4));
    }
}

/* After a write: true when it was done. */
static bool done(enum status st) {
    account_fail_after(0);
    failures += st != ST_OK;
    REQUIRE(st == ST_OK || st == ST_NOMEM);
    return st == ST_OK;
}

static void op_push(struct seq *s) {
    struct element e = draw();
    bool head = rng_below(&rng, 2) == 0;
    struct bytes b = bytes_of(&e);
    uint32_t from = live != 0 ? (uint32_t)rng_below(&rng, live) : 0;
    if (live != 0 && rng_below(&rng, 8) == 0) { /* a view of one that is there */
        REQUIRE(seq_at(s, from, &b));
        e = model[from];
    }
    maybe_fail();
    if (done(seq_push(s, head ? SEQ_HEAD : SEQ_TAIL, b))) {
        model_insert(head ? 0 : live, e);
    }
}

static void op_insert(struct seq *s) {
    static uint32_t last;
    struct element e = draw();
    struct bytes b = bytes_of(&e);
    uint32_t at = (uint32_t)rng_below(&rng, live + 1U);
    if (rng_below(&rng, 4) != 0) { /* behind the one before, mostly */
        at = last < live ? last + 1 : live;
    }
    if (live != 0 && rng_below(&rng, 8) == 0) {
        uint32_t from = (uint32_t)rng_below(&rng, live);
        REQUIRE(seq_at(s, from, &b));
        e = model[from];
    }
    maybe_fail();
    if (done(seq_insert(s, at, b))) {
        model_insert(at, e);
    }
    last = at;
}

static void op_set(struct seq *s) {
    if (live == 0) {
        return;
    }
    uint32_t at = (uint32_t)rng_below(&rng, live);
    struct element e = draw();
    maybe_fail();
    if (done(seq_set(s, at, bytes_of(&e)))) {
        model[at] = e;
    }
}

static void op_pop(struct seq *s) {
    if (live == 0) {
        return;
    }
    uint32_t at = rng_below(&rng, 2) == 0 ? 0 : live - 1;
    maybe_fail();
    REQUIRE(seq_remove(s, at, 1) == 1);
    account_fail_after(0);
    model_remove(at, 1);
}

static void op_remove(struct seq *s, uint32_t most) {
    uint32_t at = (uint32_t)rng_below(&rng, live + 2U);
    uint32_t n = (uint32_t)rng_below(&rng, most);
    uint32_t there = at >= live ? 0 : n < live - at ? n : live - at;
    maybe_fail();
    REQUIRE(seq_remove(s, at, n) == there);
    account_fail_after(0);
    if (there != 0) {
        model_remove(at, there);
    }
}

static void op_sweep(struct seq *s) {
    uint64_t before = seq_count(s);
    maybe_fail();
    bool done = seq_sweep(s, 1 + rng_below(&rng, 40));
    account_fail_after(0);
    REQUIRE(done == !seq_wants_sweep(s) && seq_count(s) == before);
}

static void op_look(const struct seq *s) {
    struct bytes b;
    for (int i = 0; i < 4 && live != 0; i++) {
        uint32_t at = (uint32_t)rng_below(&rng, live);
        seq_prefetch(s, at);
        REQUIRE(seq_at(s, at, &b) && same(b, &model[at]));
    }
    seq_prefetch(s, live);
    REQUIRE(!seq_at(s, live, &b) && seq_count(s) == live);
}

static void walk(const struct seq *s, uint32_t at, bool backward, uint32_t most) {
    struct bytes out[300];
    struct seq_iter it;
    size_t n;
    seq_iter_init(&it, s, at, backward);
    for (uint32_t seen = 0; seen < most; seen += (uint32_t)n) {
        size_t want = 1 + rng_below(&rng, ARRAY_LEN(out));
        uint32_t left = backward ? at : live - at;
        n = seq_fetch(&it, out, want);
        REQUIRE(n == (want < left ? want : left));
        for (size_t i = 0; i < n; i++) {
            REQUIRE(same(out[i], &model[backward ? --at : at++]));
        }
        if (n == 0) {
            break;
        }
    }
}

static void step(struct seq *s, bool growing, uint64_t ends_pct) {
    uint64_t pick = rng_below(&rng, 100);
    bool at_end = rng_below(&rng, 100) < ends_pct;
    if (pick < (growing ? 55U : 25U)) {
        if (live < shape->count_max) {
            at_end ? op_push(s) : op_insert(s);
        }
    } else if (pick < 80) {
        if (at_end) {
            op_pop(s);
        } else {
            uint64_t rare = rng_below(&rng, 1200);
            op_remove(s, rare == 0 ? live + 2 : rare < 4 ? 3000 : 3);
        }
    } else if (pick < 81) {
        op_sweep(s);
    } else if (pick < 88) {
        op_set(s);
    } else if (pick < 98) {
        op_look(s);
    } else {
        walk(s, (uint32_t)rng_below(&rng, live + 1U), rng_below(&rng, 2) == 0, 600);
    }
}

static void round_run(uint64_t operations) {
    static const uint64_t ends[] = {100, 50, 10, 0};
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)64 << 10};
    struct pages *pages;
    struct seq s;
    shape = &shapes[rng_below(&rng, ARRAY_LEN(shapes))];
    options.chunk_bytes <<= rng_below(&rng, 3) == 0 ? 5 : 0;
    REQUIRE(pages_create(&options, &pages) == ST_OK);
    seq_init(&s, pages);
    live = 0;
    uint64_t ends_pct = ends[rng_below(&rng, ARRAY_LEN(ends))];
    for (uint32_t n = (uint32_t)rng_below(&rng, shape->count_max / 2); live < n;) {
        op_push(&s);
    }
    for (uint64_t i = 0; i < operations; i++) {
        step(&s, i * 4 / operations % 2 == 0, ends_pct);
        if (i % 500 == 0) {
            seq_check(&s);
        }
    }
    seq_check(&s);
    walk(&s, 0, false, UINT32_MAX);
    walk(&s, live, true, UINT32_MAX);
    if (rng_below(&rng, 2) == 0) {
        seq_deinit(&s);
    } else {
        while (!seq_deinit_step(&s, 2)) {
        }
    }
    pages_destroy(pages);
    REQUIRE(account_bytes(ACCOUNT_VALUE) == 0 && account_bytes(ACCOUNT_ARENA) == 0);
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : rng_entropy();
    uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 0) : 300000;
    printf("seed %" PRIu64 ", %" PRIu64 " operations\n", seed, operations);
    fflush(stdout);
    rng_init(&rng, seed);
    model = calloc(40000, sizeof(*model));
    scratch = malloc(LEN_MAX + 1);
    REQUIRE(model != NULL && scratch != NULL);
    for (uint64_t ran = 0; ran < operations;) {
        uint64_t n = 2000 + rng_below(&rng, 28000);
        n = n < operations - ran ? n : operations - ran;
        round_run(n);
        ran += n;
    }
    free(model);
    free(scratch);
    printf("ok, %" PRIu64 " writes without memory\n", failures);
    return 0;
}
