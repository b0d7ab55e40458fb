/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorted sets without a server: bytes a member and ns an operation, by kind of score.
 *
 *   micro_types_zset [members]      default 1000000
 *
 * Members are 16 bytes. "bytes" is what the object holds by its own counters: index, order tree,
 * arena blocks and chunks. Times are CPU time of this process, so that other load on the machine
 * counts only through the caches. "best worst" is the largest of each insert's best of three fills:
 * what the set itself causes, less what the machine adds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/rng.h"
#include "mem/account.h"
#include "types/zset.h"

#define LOOKUPS 1000000
#define FETCHES 20000
#define FETCH 100
#define BATCH 16
#define FILLS 3
#define MEMBER_LEN 16

static struct rng rng;
static struct pages *pages;
static char *names; /* MEMBER_LEN bytes each */
static double *scores;
static int64_t *best; /* ns of each insert */

enum kind { DOUBLES, INTEGERS, SMALL, EQUAL, APPENDED, KINDS };
static const char *const kind_name[KINDS] = {"random doubles", "random integers", "0..99",
                                             "all equal", "appended integers"};

static double draw(enum kind kind, uint64_t i) {
    uint64_t r = rng_next(&rng);
    switch (kind) {
    case DOUBLES:
        return (double)(r >> 11) * 0x1p-53;
    case INTEGERS:
        return (double)(r % 100000000);
    case SMALL:
        return (double)(r % 100);
    case EQUAL:
        return 1;
    default:
        return (double)(1000000 + i * 3);
    }
}

static struct bytes name_of(uint64_t i) {
    return BYTES(names + i * MEMBER_LEN, MEMBER_LEN);
}

static void must(bool ok) {
    if (!ok) {
        fprintf(stderr, "micro_types_zset: something went wrong or memory ran out\n");
        exit(1);
    }
}

static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static double ns_each(int64_t since, uint64_t n) {
    return (double)(cpu_ns() - since) / (double)n;
}

/* ---- a value to work on ---------------------------------------------------------------------- */

struct held {
    struct value v;
    struct value_host host;
    struct type_env env;
};

static enum status held_resize(struct value *v, enum value_encoding encoding, size_t len) {
    char *data = realloc(v->data, len);
    if (data == NULL) {
        return ST_NOMEM;
    }
    v->data = data;
    v->len = len;
    v->encoding = encoding;
    return ST_OK;
}

static void held_init(struct held *h, size_t entries_max) {
    h->env = (struct type_env){
        .pages = pages, .zset_packed_entries_max = entries_max, .zset_packed_element_max = 64};
    h->host = (struct value_host){.resize = held_resize, .env = &h->env};
    h->v = (struct value){.type = VALUE_ZSET, .host = &h->host};
    must(value_resize(&h->v, VALUE_PACKED, ZSET_EMPTY_LEN) == ST_OK);
    memcpy(h->v.data, zset_empty, ZSET_EMPTY_LEN);
}

static void held_deinit(struct held *h) {
    if (h->v.encoding == VALUE_HEAP) {
        value_free(VALUE_ZSET, value_object(&h->v));
    }
    free(h->v.data);
}

static double bytes_each(const struct held *h) {
    return (double)value_heap_bytes(&h->v) / (double)zset_count(&h->v);
}

/* ---- operations ------------------------------------------------------------------------------ */

static double fill(struct held *h, uint64_t n) {
    int64_t start = cpu_ns();
    for (uint64_t i = 0; i < n; i++) {
        must(zset_set(&h->v, name_of(i), scores[i], NULL) == ST_OK);
    }
    return ns_each(start, n);
}

static void worst_insert(uint64_t n, double *worst_us, double *best_worst_us) {
    int64_t worst = 0, best_worst = 0;
    for (uint64_t i = 0; i < n; i++) {
        best[i] = INT64_MAX;
    }
    for (int repeat = 0; repeat < FILLS; repeat++) {
        struct held h;
        held_init(&h, 128);
        int64_t last = clock_monotonic_ns();
        for (uint64_t i = 0; i < n; i++) {
            must(zset_set(&h.v, name_of(i), scores[i], NULL) == ST_OK);
            int64_t now = clock_monotonic_ns();
            best[i] = now - last < best[i] ? now - last : best[i];
            worst = now - last > worst ? now - last : worst;
            last = now;
        }
        held_deinit(&h);
    }
    for (uint64_t i = 0; i < n; i++) {
        best_worst = best[i] > best_worst ? best[i] : best_worst;
    }
    *worst_us = (double)worst / 1000;
    *best_worst_us = (double)best_worst / 1000;
}

/* Members of requests to come. A server has them in its read buffer, so they are in the caches. */
static void draw_names(uint64_t n, struct bytes *out) {
    for (int j = 0; j < BATCH; j++) {
        out[j] = name_of(rng_below(&rng, n));
        PREFETCH(out[j].ptr);
    }
}

static double score_single(const struct held *h, uint64_t n) {
    int64_t start = cpu_ns();
    struct bytes name[BATCH];
    double score;
    for (int i = 0; i < LOOKUPS; i += BATCH) {
        draw_names(n, name);
        for (int j = 0; j < BATCH; j++) {
            must(zset_score(&h->v, name[j], &score));
        }
    }
    return ns_each(start, LOOKUPS);
}

/* The stages of a server's batch. */
static void prefetch_batch(const struct held *h, const struct bytes *name, bool order) {
    uint64_t hash[BATCH];
    for (int j = 0; j < BATCH; j++) {
        hash[j] = hash_bytes(name[j]);
        zset_prefetch_index(&h->v, hash[j]);
    }
    for (int j = 0; j < BATCH; j++) {
        zset_prefetch_record(&h->v, hash[j]);
    }
    for (int j = 0; j < BATCH && order; j++) {
        zset_prefetch_order(&h->v, hash[j]);
    }
}

static double score_batched(const struct held *h, uint64_t n) {
    int64_t start = cpu_ns();
    struct bytes name[BATCH];
    double score;
    for (int i = 0; i < LOOKUPS; i += BATCH) {
        draw_names(n, name);
        prefetch_batch(h, name, false);
        for (int j = 0; j < BATCH; j++) {
            must(zset_score(&h->v, name[j], &score));
        }
    }
    return ns_each(start, LOOKUPS);
}

static double ranks(const struct held *h, uint64_t n, bool batched) {
    int64_t start = cpu_ns();
    struct bytes name[BATCH];
    uint64_t rank;
    double score;
    for (int i = 0; i < LOOKUPS; i += BATCH) {
        draw_names(n, name);
        if (batched) {
            prefetch_batch(h, name, true);
        }
        for (int j = 0; j < BATCH; j++) {
            must(zset_rank(&h->v, name[j], &rank, &score));
        }
    }
    return ns_each(start, LOOKUPS);
}

/* ns an entry of FETCH entries from a random rank on. */
static double fetches(const struct held *h, uint64_t n, bool backward) {
    int64_t start = cpu_ns();
    struct zset_entry out[FETCH];
    uint64_t total = 0;
    for (int i = 0; i < FETCHES; i++) {
        struct zset_iter it;
        zset_iter_init(&it, &h->v, rng_below(&rng, n), backward);
        total += zset_fetch(&it, out, FETCH);
    }
    return ns_each(start, total);
}

static double updates(struct held *h, uint64_t n, enum kind kind, bool batched) {
    int64_t start = cpu_ns();
    struct bytes name[BATCH];
    double score[BATCH];
    for (uint64_t i = 0; i < LOOKUPS; i += BATCH) {
        draw_names(n, name);
        for (int j = 0; j < BATCH; j++) {
            score[j] = draw(kind, i + (uint64_t)j);
        }
        if (batched) {
            prefetch_batch(h, name, true);
            for (int j = 0; j < BATCH; j++) {
                zset_prefetch_score(&h->v, score[j]);
            }
        }
        for (int j = 0; j < BATCH; j++) {
            must(zset_set(&h->v, name[j], score[j], NULL) == ST_OK);
        }
    }
    return ns_each(start, LOOKUPS);
}

/* Between neighbours: the score moves by less than the distance of two of them. */
static double nudges(struct held *h, uint64_t n) {
    int64_t start = cpu_ns();
    struct bytes name[BATCH];
    double score;
    for (int i = 0; i < LOOKUPS; i += BATCH) {
        draw_names(n, name);
        for (int j = 0; j < BATCH; j++) {
            must(zset_score(&h->v, name[j], &score));
            must(zset_set(&h->v, name[j], score + 0x1p-40, NULL) == ST_OK);
        }
    }
    return ns_each(start, LOOKUPS);
}

static double deletes(struct held *h, uint64_t n) {
    int64_t start = cpu_ns();
    for (uint64_t i = 0; i < n; i++) {
        must(zset_delete(&h->v, name_of(i)));
    }
    return ns_each(start, n);
}

static double pops(struct held *h, uint64_t n) {
    int64_t start = cpu_ns();
    for (uint64_t i = 0; i < n; i++) {
        must(zset_delete_range(&h->v, 0, 1) == 1);
    }
    return ns_each(start, n);
}

static double build(struct held *h, uint64_t n) {
    struct zset_entry *entries = malloc(n * sizeof(*entries));
    must(entries != NULL);
    for (uint64_t i = 0; i < n; i++) {
        entries[i] = (struct zset_entry){name_of(i), scores[i]};
    }
    int64_t start = cpu_ns();
    must(zset_build(&h->v, entries, n) == ST_OK);
    double ns = ns_each(start, n);
    free(entries);
    return ns;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void run(enum kind kind, uint64_t n) {
    struct held h, built;
    double worst, best_worst;
    for (uint64_t i = 0; i < n; i++) {
        scores[i] = draw(kind, i);
    }
    worst_insert(n, &worst, &best_worst);
    held_init(&h, 128);
    double insert = fill(&h, n), bytes = bytes_each(&h);
    double single = score_single(&h, n), batched = score_batched(&h, n), rank = ranks(&h, n, false);
    double rank_batched = ranks(&h, n, true);
    double forward = fetches(&h, n, false), backward = fetches(&h, n, true);
    double nudge = kind == DOUBLES ? nudges(&h, n) : 0, update = updates(&h, n, kind, false);
    double update_batched = updates(&h, n, kind, true);
    double updated = bytes_each(&h), removed = deletes(&h, n / 2);
    double halved = bytes_each(&h), popped = pops(&h, n / 4);
    held_deinit(&h);
    held_init(&built, 128);
    double building = build(&built, n), built_bytes = bytes_each(&built);
    double in_order = fetches(&built, n, false);
    held_deinit(&built);
    printf("%-17s %6.1f %6.1f %6.1f %6.1f | %6.0f %6.0f %6.0f %6.0f | %6.0f %6.0f %6.0f %6.0f | "
           "%6.0f %6.0f %6.0f | %5.1f %5.1f %5.1f | %6.0f %5.0f\n",
           kind_name[kind], bytes, updated, halved, built_bytes, insert, update, update_batched,
           nudge, single, batched, rank, rank_batched, removed, popped, building, forward, backward,
           in_order, worst, best_worst);
    fflush(stdout);
}

/* What small sets cost, packed or not: ns an operation on one of many. */
static void run_small(void) {
    printf("\nmembers of 8 bytes, scores below 2^31; ns an operation on one of 2000 sets\n"
           "members   packed: bytes a set  update  score  rank   table: bytes a set  update  score "
           " rank\n");
    for (uint64_t n = 4; n <= 1024; n *= 2) {
        printf("%7" PRIu64, n);
        for (int packed = 1; packed >= 0; packed--) {
            enum { SETS = 2000 };
            static struct held sets[SETS];
            double bytes = 0, score;
            uint64_t rank;
            for (int s = 0; s < SETS; s++) {
                held_init(&sets[s], packed ? SIZE_MAX : 0);
                for (uint64_t i = 0; i < n; i++) {
                    must(zset_set(&sets[s].v, BYTES(name_of(i).ptr, 8),
                                  (double)(rng_next(&rng) >> 33), NULL) == ST_OK);
                }
                bytes += (double)(sets[s].v.len + value_heap_bytes(&sets[s].v)) / SETS;
            }
            double ns[3];
            for (int what = 0; what < 3; what++) {
                int64_t start = cpu_ns();
                for (int i = 0; i < 50000; i++) {
                    struct held *h = &sets[rng_below(&rng, SETS)];
                    struct bytes name = BYTES(name_of(rng_below(&rng, n)).ptr, 8);
                    must(what == 0
                             ? zset_set(&h->v, name, (double)(rng_next(&rng) >> 33), NULL) == ST_OK
                         : what == 1 ? zset_score(&h->v, name, &score)
                                     : zset_rank(&h->v, name, &rank, &score));
                }
                ns[what] = ns_each(start, 50000);
            }
            printf("%22.0f %7.0f %6.0f %5.0f", bytes, ns[0], ns[1], ns[2]);
            for (int s = 0; s < SETS; s++) {
                held_deinit(&sets[s]);
            }
        }
        printf("\n");
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)2 << 20};
    names = malloc((n > 1024 ? n : 1024) * MEMBER_LEN);
    scores = calloc(n, sizeof(*scores));
    best = calloc(n, sizeof(*best));
    must(n >= 1000 && names != NULL && scores != NULL && best != NULL);
    must(pages_create(&options, &pages) == ST_OK);
    rng_init(&rng, 1);
    hash_setup_seed(1);
    for (uint64_t i = 0; i < (n > 1024 ? n : 1024); i++) {
        uint64_t part[2] = {i * UINT64_C(0x9E3779B97F4A7C15), rng_next(&rng)};
        memcpy(names + i * MEMBER_LEN, part, MEMBER_LEN);
    }
    printf("%" PRIu64 " members of %d bytes; bytes a member, ns an operation (fetch: an entry), "
           "worst insert in us\n",
           n, MEMBER_LEN);
    printf(
        "scores              bytes a member            | insert update         nudge | score    "
        "     rank          | delete    pop  build | fetch              | worst insert\n"
        "                     new updated halved built |           one  of 16       |    one  of "
        "16    one  of 16 |                      |    up  down built |    any  best\n");
    for (int kind = 0; kind < KINDS; kind++) {
        run((enum kind)kind, n);
    }
    run_small();
    free(names);
    free(scores);
    free(best);
    pages_destroy(pages);
    return 0;
}
