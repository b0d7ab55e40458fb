/* SPDX-License-Identifier: BSD-3-Clause */
/* The sequence alone: bytes an element and ns an operation, by lengths and by how it was built.
 *
 *   micro_ds_seq [elements]        default 1000000
 *
 * "RSS" is the growth of the process's resident memory, an OS page a part; "held" what the sequence
 * says it holds, the untouched rest of the last chunk included. Times are CPU time of this process;
 * the lowest of three passes for those that change nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "ds/seq.h"
#include "mem/account.h"

#define LOOKUPS 1000000
#define EDITS 200000
#define BATCH 16
#define PASSES 3

static struct rng rng;
static struct pages *pages;
static char text[4096];

enum build { RPUSH, LPUSH, RANDOM, BUILDS };
static const char *const build_name[BUILDS] = {"rpush", "lpush", "random"};

struct lengths {
    const char *name;
    uint32_t base, spread;
};
static const struct lengths lengths[] = {
    {"16", 16, 1}, {"1..31", 1, 31}, {"100", 100, 1}, {"1..199", 1, 199}, {"1..600", 1, 600}};

static void must(bool ok) {
    if (!ok) {
        fprintf(stderr, "micro_ds_seq: something went wrong or memory ran out\n");
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

static double least(double a, double b) {
    return a < b ? a : b;
}

static size_t resident_bytes(void) {
    unsigned long size = 0, resident = 0;
    account_purge();
    FILE *f = fopen("/proc/self/statm", "r");
    must(f != NULL && fscanf(f, "%lu %lu", &size, &resident) == 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static struct bytes draw(const struct lengths *l) {
    return BYTES(text + rng_below(&rng, 1024), l->base + rng_below(&rng, l->spread));
}

static double fill(struct seq *s, const struct lengths *l, enum build build, uint64_t n) {
    int64_t start = cpu_ns();
    for (uint64_t i = 0; i < n; i++) {
        struct bytes e = draw(l);
        enum status st = build == RANDOM  ? seq_insert(s, rng_below(&rng, i + 1), e)
                         : build == LPUSH ? seq_push(s, SEQ_HEAD, e)
                                          : seq_push(s, SEQ_TAIL, e);
        must(st == ST_OK);
    }
    return ns_each(start, n);
}

static double look_up(const struct seq *s, uint64_t n, uint64_t *sum) {
    struct bytes e;
    int64_t start = cpu_ns();
    for (int i = 0; i < LOOKUPS; i++) {
        must(seq_at(s, rng_below(&rng, n), &e));
        *sum += e.len != 0 ? (unsigned char)e.ptr[0] : 0;
    }
    return ns_each(start, LOOKUPS);
}

/* As the server's pipelines come. */
static double look_up_batches(const struct seq *s, uint64_t n, uint64_t *sum) {
    uint64_t index[BATCH];
    struct bytes e;
    int64_t start = cpu_ns();
    for (int i = 0; i < LOOKUPS; i += BATCH) {
        for (int j = 0; j < BATCH; j++) {
            index[j] = rng_below(&rng, n);
            seq_prefetch(s, index[j]);
        }
        for (int j = 0; j < BATCH; j++) {
            must(seq_at(s, index[j], &e));
            *sum += e.len != 0 ? (unsigned char)e.ptr[0] : 0;
        }
    }
    return ns_each(start, LOOKUPS);
}

static double walk(const struct seq *s, bool backward, uint64_t *sum) {
    struct seq_iter it;
    struct bytes e[64];
    size_t n;
    int64_t start = cpu_ns();
    seq_iter_init(&it, s, backward ? UINT64_MAX : 0, backward);
    while ((n = seq_fetch(&it, e, 64)) != 0) {
        for (size_t i = 0; i < n; i++) {
            *sum += e[i].len != 0 ? (unsigned char)e[i].ptr[0] : 0;
        }
    }
    return ns_each(start, seq_count(s));
}

/* LRANGE 100 from random places, a range. */
static double ranges(const struct seq *s, uint64_t n, uint64_t *sum) {
    struct bytes e[100];
    int64_t start = cpu_ns();
    for (int i = 0; i < 20000; i++) {
        struct seq_iter it;
        seq_iter_init(&it, s, rng_below(&rng, n), false);
        size_t got = seq_fetch(&it, e, 100);
        for (size_t j = 0; j < got; j++) {
            *sum += e[j].len != 0 ? (unsigned char)e[j].ptr[0] : 0;
        }
    }
    return ns_each(start, 20000);
}

static double insert_random(struct seq *s, const struct lengths *l) {
    int64_t start = cpu_ns();
    for (int i = 0; i < EDITS; i++) {
        must(seq_insert(s, rng_below(&rng, seq_count(s)), draw(l)) == ST_OK);
    }
    return ns_each(start, EDITS);
}

static double set_random(struct seq *s, const struct lengths *l) {
    int64_t start = cpu_ns();
    for (int i = 0; i < EDITS; i++) {
        must(seq_set(s, rng_below(&rng, seq_count(s)), draw(l)) == ST_OK);
    }
    return ns_each(start, EDITS);
}

static double remove_random(struct seq *s) {
    int64_t start = cpu_ns();
    for (int i = 0; i < EDITS; i++) {
        must(seq_remove(s, rng_below(&rng, seq_count(s)), 1) == 1);
    }
    return ns_each(start, EDITS);
}

static double pop(struct seq *s, bool tail, uint64_t n) {
    struct bytes e;
    int64_t start = cpu_ns();
    for (uint64_t i = 0; i < n; i++) {
        uint64_t index = tail ? seq_count(s) - 1 : 0;
        must(seq_at(s, index, &e) && seq_remove(s, index, 1) == 1);
    }
    return ns_each(start, n);
}

/* A queue of a steady length. */
static double rotate(struct seq *s, const struct lengths *l, uint64_t n) {
    int64_t start = cpu_ns();
    for (uint64_t i = 0; i < n; i++) {
        must(seq_push(s, SEQ_TAIL, draw(l)) == ST_OK && seq_remove(s, 0, 1) == 1);
    }
    return ns_each(start, n);
}

static double fullness(const struct seq *s) {
    struct seq_stats stats;
    seq_get_stats(s, &stats);
    return 100 * (double)stats.used_bytes / (double)stats.block_bytes;
}

static void run(const struct lengths *l, enum build build, uint64_t n) {
    struct seq s;
    uint64_t sum = 0;
    double at = 1e9, batch = 1e9, up = 1e9, down = 1e9, range = 1e9;
    size_t before = resident_bytes();
    seq_init(&s, pages);
    double build_ns = fill(&s, l, build, n);
    double rss = (double)(resident_bytes() - before) / (double)n;
    double held = (double)seq_bytes(&s) / (double)n, full = fullness(&s);
    for (int pass = 0; pass < PASSES; pass++) {
        at = least(at, look_up(&s, n, &sum));
        batch = least(batch, look_up_batches(&s, n, &sum));
        up = least(up, walk(&s, false, &sum));
        down = least(down, walk(&s, true, &sum));
        range = least(range, ranges(&s, n, &sum));
    }
    double set = set_random(&s, l), insert = insert_random(&s, l), erase = remove_random(&s);
    double churned = fullness(&s);
    double churned_rss = (double)(resident_bytes() - before) / (double)seq_count(&s);
    double queue = rotate(&s, l, n), lpop = pop(&s, false, n / 2), rpop = pop(&s, true, n / 4);
    printf("%-7s %-7s %7.2f %7.2f %4.0f%% %6.0f %6.0f %6.0f %5.1f %5.1f %6.0f %6.0f %6.0f %6.0f "
           "%4.0f%% %7.2f %6.0f %5.0f %5.0f\n",
           l->name, build_name[build], rss, held, full, build_ns, at, batch, up, down, range, set,
           insert, erase, churned, churned_rss, queue, lpop, rpop);
    seq_check(&s);
    seq_deinit(&s);
    must(sum != 1);
}

static void run_sizes(uint64_t max) {
    printf("\nelements   bytes each, 16 and 100 bytes long, struct seq (%zu bytes) included\n",
           sizeof(struct seq));
    for (uint64_t n = 30; n <= max; n = n * 10 / 4) {
        double each[2];
        for (int i = 0; i < 2; i++) {
            struct seq s;
            seq_init(&s, pages);
            fill(&s, &lengths[2 * i], RPUSH, n);
            each[i] = (double)(seq_bytes(&s) + sizeof(s)) / (double)n;
            seq_deinit(&s);
        }
        printf("%8" PRIu64 " %9.2f %9.2f\n", n, each[0], each[1]);
    }
}

int main(int argc, char **argv) {
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)2 << 20};
    must(n > 0 && pages_create(&options, &pages) == ST_OK);
    rng_init(&rng, 1);
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)rng_next(&rng);
    }
    printf("%" PRIu64 " elements; bytes an element, ns an operation\n", n);
    printf("length  built       RSS    held  full  build  index  in16s    up  down  rng100  "
           "  set insert  erase churned: full, RSS  queue  lpop  rpop\n");
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        for (int build = 0; build < BUILDS; build++) {
            run(&lengths[i], (enum build)build, n);
        }
    }
    run_sizes(n);
    pages_destroy(pages);
    return 0;
}
