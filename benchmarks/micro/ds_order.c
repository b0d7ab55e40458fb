/* SPDX-License-Identifier: BSD-3-Clause */
/* The order tree alone: bytes an entry and ns an operation, per kind of key.
 *
 *   micro_ds_order [entries]        default 1000000
 *
 * "bytes" are the tree's nodes as allocated; "heap" adds what jemalloc holds in OS pages for them.
 * Records (16 bytes, key inside) are an array of their own and not counted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "ds/order.h"
#include "mem/account.h"

#define LOOKUPS 1000000
#define REPEATS                                                                                    \
    3 /* fills; the worst insert is the worst of the best of these, which is not noise */

struct record {
    uint64_t key;
    uint64_t member;
};

static struct record *records;
static int64_t *best; /* ns of each insert */
static struct rng rng;

static int compare(void *ctx, uint64_t ref, const void *probe) {
    uint64_t a = records[ref].member, b = *(const uint64_t *)probe;
    return (a > b) - (a < b);
}

static uint64_t key_of(void *ctx, uint64_t ref) {
    return records[ref].key;
}

static void prefetch(void *ctx, uint64_t ref) {
    PREFETCH(&records[ref]);
}

static const struct order_ops with_records = {compare, key_of, prefetch};
static const struct order_ops exact_keys = {compare, NULL, prefetch};

enum kind { RANDOM_DOUBLES, RANDOM_INTS, INTS_0_999, ALL_EQUAL, APPENDED_TIMES, DESCENDING, KINDS };
static const char *const kind_name[KINDS] = {"random doubles", "random ints", "ints 0..999",
                                             "all keys equal", "appended",    "descending"};

static uint64_t draw(enum kind kind, uint64_t i) {
    uint64_t r = rng_next(&rng);
    switch (kind) {
    case RANDOM_DOUBLES:
        return order_key_from_double((double)(r >> 11) * 0x1p-53);
    case RANDOM_INTS:
        return order_key_from_double((double)(r % 100000000));
    case INTS_0_999:
        return order_key_from_double((double)(r % 1000));
    case ALL_EQUAL:
        return order_key_from_double(1);
    case APPENDED_TIMES:
        return order_key_from_i64((int64_t)(UINT64_C(1700000000000) + i * 7));
    default:
        return order_key_from_i64((int64_t)(UINT64_C(1700000000000) - i * 7));
    }
}

static size_t heap_bytes(void) {
    struct account_heap heap;
    account_purge();
    account_heap(&heap);
    return heap.active_bytes;
}

/* CPU time of this process: other load on the machine counts only through the caches. */
static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static double ns_each(int64_t since, uint64_t n) {
    return (double)(cpu_ns() - since) / (double)n;
}

static void must(bool ok) {
    if (!ok) {
        fprintf(stderr, "micro_ds_order: the tree went wrong or memory ran out\n");
        exit(1);
    }
}

static double fill(struct order *o, uint64_t n) {
    int64_t start = cpu_ns();
    for (uint64_t i = 0; i < n; i++) {
        must(order_insert(o, records[i].key, i, &records[i].member) == ST_OK);
    }
    return ns_each(start, n);
}

/* The same inserts, timed one by one and repeated: the worst in microseconds. */
static double worst_insert(const struct order_ops *ops, uint64_t n) {
    int64_t worst = 0;
    for (uint64_t i = 0; i < n; i++) {
        best[i] = INT64_MAX;
    }
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        struct order o;
        order_init(&o, ops, NULL);
        int64_t last = clock_monotonic_ns();
        for (uint64_t i = 0; i < n; i++) {
            must(order_insert(&o, records[i].key, i, &records[i].member) == ST_OK);
            int64_t now = clock_monotonic_ns();
            best[i] = now - last < best[i] ? now - last : best[i];
            last = now;
        }
        order_deinit(&o);
    }
    for (uint64_t i = 0; i < n; i++) {
        worst = best[i] > worst ? best[i] : worst;
    }
    return (double)worst / 1000;
}

/* Rank look-ups of random entries in batches of 16, the way the server's pipelines come. */
static double find_batches(const struct order *o, uint64_t n) {
    int64_t start = cpu_ns();
    uint64_t pick[16], rank = 0;
    for (int i = 0; i < LOOKUPS; i += 16) {
        for (int j = 0; j < 16; j++) {
            pick[j] = rng_below(&rng, n);
            PREFETCH(&records[pick[j]]);
        }
        for (int j = 0; j < 16; j++) {
            order_prefetch(o, records[pick[j]].key);
        }
        for (int j = 0; j < 16; j++) {
            const struct record *r = &records[pick[j]];
            must(order_find(o, r->key, pick[j], &r->member, &rank));
        }
    }
    return ns_each(start, LOOKUPS);
}

static double find_single(const struct order *o, uint64_t n) {
    int64_t start = cpu_ns();
    uint64_t rank = 0;
    for (int i = 0; i < LOOKUPS; i++) {
        uint64_t pick = rng_below(&rng, n);
        must(order_find(o, records[pick].key, pick, &records[pick].member, &rank));
    }
    return ns_each(start, LOOKUPS);
}

static double read_ranks(const struct order *o, uint64_t n) {
    struct order_entry e;
    int64_t start = cpu_ns();
    for (int i = 0; i < LOOKUPS; i++) {
        must(order_at(o, rng_below(&rng, n), &e));
    }
    return ns_each(start, LOOKUPS);
}

/* Every entry gets a new random key of its kind: where it stays in place nothing moves. */
static double update(struct order *o, uint64_t n, enum kind kind) {
    int64_t start = cpu_ns();
    for (uint64_t i = 0; i < n; i++) {
        uint64_t id = rng_below(&rng, n), key = draw(kind, id);
        must(order_update_key(o, records[id].key, id, &records[id].member, key) == ST_OK);
        records[id].key = key;
    }
    return ns_each(start, n);
}

static void erase_half(struct order *o, uint64_t n) {
    for (uint64_t i = 0; i < n; i += 2) {
        must(order_erase(o, records[i].key, i, &records[i].member));
    }
}

static void run(enum kind kind, const struct order_ops *ops, uint64_t n) {
    struct order o;
    for (uint64_t i = 0; i < n; i++) {
        records[i] = (struct record){draw(kind, i), rng_next(&rng)};
    }
    double worst = worst_insert(ops, n);
    size_t heap = heap_bytes();
    order_init(&o, ops, NULL);
    double insert_ns = fill(&o, n);
    double bytes = (double)order_bytes(&o) / (double)n;
    double held = (double)(heap_bytes() - heap) / (double)n;
    double batch_ns = find_batches(&o, n), find_ns = find_single(&o, n), at_ns = read_ranks(&o, n);
    double update_ns = update(&o, n, kind);
    double updated = (double)order_bytes(&o) / (double)n;
    erase_half(&o, n);
    double halved = (double)order_bytes(&o) / (double)order_count(&o);
    printf("%-15s %-6s %6.2f %6.2f %7.0f %7.1f %6.0f %6.0f %6.0f %7.0f %7.2f %7.2f\n",
           kind_name[kind], ops->key_of != NULL ? "record" : "leaf", bytes, held, insert_ns, worst,
           find_ns, batch_ns, at_ns, update_ns, updated, halved);
    must(order_check(&o));
    order_deinit(&o);
}

/* Memory of small trees and of the bulk build. */
static void run_sizes(uint64_t max) {
    printf("\nentries   inserted at random   built in bulk   (bytes an entry, random doubles)\n");
    for (uint64_t n = 10; n <= max; n = n < 1000 ? n * 10 / 4 : n * 3) {
        struct order o;
        struct order_builder b;
        for (uint64_t i = 0; i < n; i++) {
            records[i] = (struct record){draw(RANDOM_DOUBLES, i), rng_next(&rng)};
        }
        order_init(&o, &with_records, NULL);
        for (uint64_t i = 0; i < n; i++) {
            must(order_insert(&o, records[i].key, i, &records[i].member) == ST_OK);
        }
        double random = (double)order_bytes(&o) / (double)n;
        order_deinit(&o);
        order_init(&o, &with_records, NULL);
        order_build_init(&b, &o);
        for (uint64_t i = 0; i < n; i++) {
            records[i].key = order_key_from_double((double)i / 7);
            must(order_build_add(&b, records[i].key, i) == ST_OK);
        }
        must(order_build_finish(&b) == ST_OK);
        printf("%8" PRIu64 " %20.2f %15.2f\n", n, random, (double)order_bytes(&o) / (double)n);
        order_deinit(&o);
    }
}

int main(int argc, char **argv) {
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;
    records = calloc(n, sizeof(*records));
    best = calloc(n, sizeof(*best));
    must(n > 0 && records != NULL && best != NULL);
    rng_init(&rng, 1);
    printf("%" PRIu64 " entries; ns an operation\n", n);
    printf("keys            full   bytes/  heap/          worst   find   find   read          "
           " bytes/  half\n"
           "                key in entry   entry   insert      us    one   of16   rank  update "
           "updated  erased\n");
    for (int kind = 0; kind < KINDS; kind++) {
        run((enum kind)kind, &with_records, n);
    }
    run(RANDOM_DOUBLES, &exact_keys, n);
    run(RANDOM_INTS, &exact_keys, n);
    run_sizes(n);
    free(best);
    free(records);
    return 0;
}
