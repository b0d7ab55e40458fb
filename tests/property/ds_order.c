/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on an order tree against a sorted array of record numbers.
 *
 *   property_ds_order [seed [operations]]
 *
 * Every round draws a key distribution, whether ties are compared through records, whether keys may
 * be read from records, and whether refs exceed 32 bits. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "ds/order.h"
#include "mem/account.h"

#define RECORDS 40000
#define WIDE_BIT (UINT64_C(1) << 37)

struct record {
    uint64_t key;
    uint64_t member;
    bool live;
};

enum shape { UNIFORM, SMALL_INTS, EQUAL, CLUSTERS, TIMES, EXTREMES, SHAPES };

static struct rng rng;
static struct record *records;
static uint32_t *model; /* record numbers in order */
static uint32_t model_len;
static bool wide_refs, by_member;
static enum shape shape;
static uint64_t clock_now;

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static uint64_t ref_of(uint32_t id) {
    return wide_refs && id % 5 == 0 ? id | WIDE_BIT : id;
}

static uint32_t id_of(uint64_t ref) {
    return (uint32_t)(ref & ~WIDE_BIT);
}

static int compare(void *ctx, uint64_t ref, const void *probe) {
    uint64_t a = records[id_of(ref)].member, b = *(const uint64_t *)probe;
    return (a > b) - (a < b);
}

static uint64_t key_of(void *ctx, uint64_t ref) {
    return records[id_of(ref)].key;
}

static void prefetch(void *ctx, uint64_t ref) {
    PREFETCH(&records[id_of(ref)]);
}

static uint64_t draw_key(void) {
    uint64_t r = rng_next(&rng);
    double unit = (double)(r >> 11) * 0x1p-53;
    switch (shape) {
    case UNIFORM:
        return order_key_from_double(unit);
    case SMALL_INTS:
        return order_key_from_double((double)(r % 200) - 100);
    case EQUAL:
        return order_key_from_double(r % 1000 == 0 ? 8 : 7);
    case CLUSTERS:
        return order_key_from_double((double)(r % 4) * 1e9 + unit * 1e-5);
    case TIMES:
        return order_key_from_i64((int64_t)(clock_now += r % 3));
    default:
        return r % 3 == 0 ? r : r % 3 == 1 ? UINT64_MAX - r % 100 : r % 100;
    }
}

/* ---- the model ---- */

static int model_compare(uint32_t id, uint64_t key, uint64_t ref, uint64_t member) {
    const struct record *r = &records[id];
    uint64_t a = by_member ? r->member : ref_of(id), b = by_member ? member : ref;
    if (r->key != key) {
        return r->key > key ? 1 : -1;
    }
    return (a > b) - (a < b);
}

static uint32_t model_bound(uint64_t key, uint64_t ref, uint64_t member, bool *equal) {
    uint32_t lo = 0, hi = model_len;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (model_compare(model[mid], key, ref, member) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    *equal = lo < model_len && model_compare(model[lo], key, ref, member) == 0;
    return lo;
}

static uint32_t model_key_bound(uint64_t key, bool exclusive) {
    uint32_t lo = 0, hi = model_len;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        uint64_t k = records[model[mid]].key;
        if (k < key || (exclusive && k == key)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static void model_insert(uint32_t at, uint32_t id) {
    memmove(model + at + 1, model + at, (model_len - at) * sizeof(*model));
    model[at] = id;
    model_len++;
}

static void model_remove(uint32_t at, uint32_t n) {
    memmove(model + at, model + at + n, (model_len - at - n) * sizeof(*model));
    model_len -= n;
}

static uint32_t free_id(void) {
    uint32_t id = (uint32_t)rng_below(&rng, RECORDS);
    while (records[id].live) {
        id = (id + 1) % RECORDS;
    }
    return id;
}

/* ---- operations: each does the same to both and compares ---- */

static void op_insert(struct order *o) {
    if (model_len > RECORDS * 3 / 4) {
        return;
    }
    uint32_t id = free_id();
    struct record *r = &records[id];
    bool equal = false;
    r->key = draw_key();
    r->member = rng_below(&rng, 1000000);
    uint32_t at = model_bound(r->key, ref_of(id), r->member, &equal);
    enum status st = order_insert(o, r->key, ref_of(id), &r->member);
    REQUIRE(st == (equal ? ST_EXISTS : ST_OK));
    if (!equal) {
        r->live = true;
        model_insert(at, id);
    }
}

static void op_erase(struct order *o) {
    if (model_len == 0) {
        return;
    }
    uint32_t at = (uint32_t)rng_below(&rng, model_len), id = model[at];
    struct record *r = &records[id];
    uint64_t absent = r->member + 1000000;
    REQUIRE(!order_erase(o, r->key, WIDE_BIT + RECORDS, &absent));
    REQUIRE(order_erase(o, r->key, ref_of(id), &r->member));
    model_remove(at, 1);
    r->live = false;
}

static void op_update(struct order *o) {
    if (model_len == 0) {
        return;
    }
    uint32_t at = (uint32_t)rng_below(&rng, model_len), id = model[at];
    struct record *r = &records[id];
    uint64_t old = r->key, key = draw_key();
    bool equal = false;
    if (rng_below(&rng, 3) == 0) {
        key = old + rng_below(&rng, 5) - 2;
    }
    uint32_t to = model_bound(key, ref_of(id), r->member, &equal);
    bool taken = equal && key != old;
    if (rng_below(&rng, 2) == 0) {
        r->key = taken ? old : key; /* the record may hold either key during the call */
    }
    enum status st = order_update_key(o, old, ref_of(id), &r->member, key);
    REQUIRE(st == (taken ? ST_EXISTS : ST_OK));
    if (!taken && key != old) {
        r->key = key;
        model_remove(at, 1);
        model_insert(to > at ? to - 1 : to, id);
    }
}

static void op_replace(struct order *o) {
    if (model_len == 0) {
        return;
    }
    uint32_t at = (uint32_t)rng_below(&rng, model_len), id = model[at], fresh = free_id();
    bool equal = false;
    records[fresh] = records[id];
    REQUIRE(order_replace_ref(o, records[id].key, ref_of(id), &records[id].member, ref_of(fresh)) ==
            ST_OK);
    model_remove(at, 1);
    uint32_t to = model_bound(records[id].key, ref_of(fresh), records[id].member, &equal);
    model_insert(to, fresh);
    records[id].live = false;
}

static void op_erase_range(struct order *o) {
    uint32_t at = (uint32_t)rng_below(&rng, model_len + 1U);
    uint32_t n = (uint32_t)rng_below(&rng, rng_below(&rng, 8) == 0 ? 3000 : 12);
    uint32_t there = n < model_len - at ? n : model_len - at;
    REQUIRE(order_erase_range(o, at, n) == there);
    for (uint32_t i = 0; i < there; i++) {
        records[model[at + i]].live = false;
    }
    model_remove(at, there);
}

static void op_pop(struct order *o) {
    struct order_entry e;
    bool last = rng_below(&rng, 2) == 0;
    bool got = last ? order_pop_last(o, &e) : order_pop_first(o, &e);
    REQUIRE(got == (model_len > 0));
    if (got) {
        uint32_t at = last ? model_len - 1 : 0, id = model[at];
        REQUIRE(e.key == records[id].key && e.ref == ref_of(id));
        records[id].live = false;
        model_remove(at, 1);
    }
}

static void op_look(const struct order *o) {
    uint64_t key = draw_key(), member = rng_below(&rng, 1000000), ref = rng_below(&rng, RECORDS);
    bool equal = false, exclusive = rng_below(&rng, 2) == 0;
    struct order_entry e;
    uint64_t rank = 0;
    order_prefetch(o, key);
    REQUIRE(order_lower_bound(o, key, exclusive) == model_key_bound(key, exclusive));
    uint32_t at = model_bound(key, ref, member, &equal);
    REQUIRE(order_lower_bound_tie(o, key, ref, &member, exclusive) == at + (equal && exclusive));
    uint64_t max = draw_key();
    uint32_t from = model_key_bound(key, exclusive), to = model_key_bound(max, true);
    REQUIRE(order_count_between(o, key, exclusive, max, false) == (to > from ? to - from : 0));
    if (model_len > 0) {
        at = (uint32_t)rng_below(&rng, model_len);
        const struct record *r = &records[model[at]];
        REQUIRE(order_find(o, r->key, ref_of(model[at]), &r->member, &rank) && rank == at);
        REQUIRE(order_at(o, at, &e) && e.key == r->key && e.ref == ref_of(model[at]));
    }
    REQUIRE(!order_at(o, model_len, &e));
}

static void op_fetch(const struct order *o) {
    struct order_entry out[700];
    uint32_t at = (uint32_t)rng_below(&rng, model_len + 1U);
    struct order_iter it;
    order_iter_init(&it, o, at);
    for (int i = 0; i < 4; i++) {
        size_t want = (size_t)rng_below(&rng, ARRAY_LEN(out));
        bool back = rng_below(&rng, 2) == 0;
        size_t there = back ? at : model_len - at;
        size_t got = back ? order_fetch_back(&it, out, want) : order_fetch(&it, out, want);
        REQUIRE(got == (want < there ? want : there));
        for (size_t j = 0; j < got; j++) {
            uint32_t id = model[back ? at - 1 - j : at + j];
            REQUIRE(out[j].ref == ref_of(id) && out[j].key == records[id].key);
        }
        at = (uint32_t)(back ? at - got : at + got);
    }
}

static void step(struct order *o, uint64_t grow_pct) {
    uint64_t pick = rng_below(&rng, 100);
    if (pick < grow_pct) {
        op_insert(o);
    } else if (pick < 70) {
        op_erase(o);
    } else if (pick < 82) {
        op_update(o);
    } else if (pick < 87) {
        op_replace(o);
    } else if (pick < 96) {
        op_look(o);
    } else if (pick < 98) {
        op_pop(o);
    } else {
        op_fetch(o);
    }
    if (rng_below(&rng, 2000) == 0) {
        op_erase_range(o);
    }
}

static void compare_all(const struct order *o) {
    struct order_entry out[512];
    struct order_iter it;
    uint32_t at = 0;
    size_t got = 0;
    REQUIRE(order_check(o) && order_count(o) == model_len);
    order_iter_init(&it, o, 0);
    while ((got = order_fetch(&it, out, ARRAY_LEN(out))) > 0) {
        for (size_t i = 0; i < got; i++, at++) {
            REQUIRE(out[i].ref == ref_of(model[at]));
        }
    }
    REQUIRE(at == model_len);
}

static void round_run(uint64_t operations) {
    struct order_ops ops = {0};
    struct order o;
    shape = (enum shape)rng_below(&rng, SHAPES);
    wide_refs = rng_below(&rng, 4) == 0;
    by_member = rng_below(&rng, 2) == 0;
    bool keys_in_records = rng_below(&rng, 3) != 0;
    ops.compare = by_member ? compare : NULL;
    ops.key_of = keys_in_records ? key_of : NULL;
    ops.prefetch = rng_below(&rng, 2) == 0 ? prefetch : NULL;
    order_init(&o, &ops, NULL);
    memset(records, 0, RECORDS * sizeof(*records));
    model_len = 0;
    clock_now = UINT64_C(1700000000000);
    for (uint64_t i = 0; i < operations; i++) {
        uint64_t phase = i * 4 / operations;
        step(&o, phase == 1 || phase == 3 ? 25 : 62);
        if (i % 1000 == 0) {
            REQUIRE(order_check(&o));
        }
    }
    compare_all(&o);
    if (rng_below(&rng, 2) == 0) {
        order_deinit(&o);
    } else {
        while (!order_destroy_step(&o, 3)) {
        }
    }
    REQUIRE(order_bytes(&o) == 0);
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : rng_entropy();
    uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 0) : 300000;
    printf("seed %" PRIu64 ", %" PRIu64 " operations\n", seed, operations);
    fflush(stdout);
    rng_init(&rng, seed);
    records = calloc(RECORDS, sizeof(*records));
    model = calloc(RECORDS + 1, sizeof(*model));
    REQUIRE(records != NULL && model != NULL);
    for (uint64_t done = 0; done < operations;) {
        uint64_t n = 2000 + rng_below(&rng, 58000);
        n = n < operations - done ? n : operations - done;
        round_run(n);
        done += n;
    }
    free(model);
    free(records);
    REQUIRE(account_bytes(ACCOUNT_ORDER) == 0);
    printf("ok\n");
    return 0;
}
