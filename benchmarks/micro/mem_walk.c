/* SPDX-License-Identifier: BSD-3-Clause */
/* What huge pages can gain on this machine at most: ns a random read of a region on each kind of OS page, each read
 * waiting for the one before it, and 16 at once.
 *
 *   micro_mem_walk [MIB [ROUNDS]]      the region, a power of two (default 512); 5 rounds, kinds in turn
 *
 * One line a kind: name, page size in KiB, ns one after the other, ns 16 at once (medians of the rounds). A kind that this
 * machine does not give now is left out, with the reason on standard error. The region is one cycle through all its
 * cache lines in random order, so that neither prefetchers nor caches help beyond its size. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/rng.h"
#include "mem/pages.h"

enum { LINE_BYTES = 64, AT_ONCE = 16, READS = 1 << 20, ROUNDS_MAX = 99, KINDS_MAX = 8 };

struct region {
    struct pages *pages;
    const char *name;
    size_t page_bytes;
    char *at; /* NULL: not to be had */
    double one_ns[ROUNDS_MAX], many_ns[ROUNDS_MAX];
};

static uint64_t next_of(const struct region *r, uint64_t off) {
    return *(const volatile uint64_t *)(r->at + off);
}

/* Sattolo's shuffle: one cycle through all lines. */
static uint32_t *cycle(size_t lines, struct rng *rng) {
    uint32_t *next = malloc(lines * sizeof(*next));
    for (size_t i = 0; next != NULL && i < lines; i++) {
        next[i] = (uint32_t)i;
    }
    for (size_t i = lines - 1; next != NULL && i > 0; i--) {
        size_t j = rng_below(rng, i);
        uint32_t other = next[i];
        next[i] = next[j];
        next[j] = other;
    }
    return next;
}

static void acquire(struct region *r, const char *name, enum pages_kind kind, size_t page_bytes,
                    size_t bytes) {
    struct pages_options options = {
        .kind = kind, .huge_page_bytes = page_bytes, .chunk_bytes = bytes, .what = NULL};
    enum pages_kind obtained;
    r->name = name;
    r->page_bytes = page_bytes;
    if (pages_create(&options, &r->pages) != ST_OK) {
        fprintf(stderr, "micro_mem_walk: MIB must be a power of two, up to 1024\n");
        exit(2);
    }
    r->at = pages_acquire(r->pages, &obtained);
    if (r->at != NULL && obtained != kind) {
        struct pages_stats stats;
        pages_get_stats(r->pages, &stats);
        fprintf(stderr, "%s %zu: left out: %s\n", name, page_bytes / 1024,
                pages_reason_text(stats.last_reason));
        pages_release(r->pages, r->at);
        r->at = NULL;
    }
}

static void fill(struct region *r, const uint32_t *next, size_t lines) {
    for (size_t i = 0; i < lines; i++) {
        *(uint64_t *)(r->at + i * LINE_BYTES) = (uint64_t)next[i] * LINE_BYTES;
    }
}

static void measure(struct region *r, size_t round, size_t lines, struct rng *rng) {
    uint64_t at[AT_ONCE];
    for (size_t k = 0; k < AT_ONCE; k++) {
        at[k] = rng_below(rng, lines) * LINE_BYTES;
    }
    clock_t started = clock();
    for (size_t i = 0; i < READS; i++) {
        at[0] = next_of(r, at[0]);
    }
    clock_t between = clock();
    for (size_t i = 0; i < READS / AT_ONCE; i++) {
        for (size_t k = 0; k < AT_ONCE; k++) {
            at[k] = next_of(r, at[k]);
        }
    }
    r->one_ns[round] = (double)(between - started) * (1e9 / CLOCKS_PER_SEC / READS);
    r->many_ns[round] = (double)(clock() - between) * (1e9 / CLOCKS_PER_SEC / READS);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
    qsort(values, count, sizeof(*values), by_value);
    return values[count / 2];
}

int main(int argc, char **argv) {
    size_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 512) << 20;
    size_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 5, kinds = 2,
           lines = bytes / LINE_BYTES;
    size_t sizes[KINDS_MAX - 2];
    static struct region regions[KINDS_MAX];
    struct rng rng;
    rng_init(&rng, 1);
    log_set_level(LOG_NOTHING); /* what falls back is said here, once */
    if (bytes == 0 || rounds == 0 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: micro_mem_walk [MIB [ROUNDS]]\n");
        return 2;
    }
    acquire(&regions[0], "plain", PAGES_PLAIN, 4096, bytes);
    acquire(&regions[1], "thp", PAGES_THP, pages_thp_bytes(), bytes);
    for (size_t i = 0, count = pages_huge_sizes(sizes, KINDS_MAX - 2); i < count; i++) {
        acquire(&regions[kinds++], "hugetlb", PAGES_HUGETLB, sizes[i], bytes);
    }
    uint32_t *next = cycle(lines, &rng);
    if (next == NULL || regions[0].at == NULL) {
        fprintf(stderr, "micro_mem_walk: out of memory\n");
        return 1;
    }
    for (size_t k = 0; k < kinds; k++) {
        if (regions[k].at != NULL) {
            fill(&regions[k], next, lines);
        }
    }
    for (size_t round = 0; round < rounds; round++) {
        for (size_t k = 0; k < kinds; k++) {
            if (regions[k].at != NULL) {
                measure(&regions[k], round, lines, &rng);
            }
        }
    }
    for (size_t k = 0; k < kinds; k++) {
        struct region *r = &regions[k];
        if (r->at != NULL) {
            printf("%s %zu %.1f %.2f\n", r->name, r->page_bytes / 1024, median(r->one_ns, rounds),
                   median(r->many_ns, rounds));
            pages_release(r->pages, r->at);
        }
        pages_destroy(r->pages);
    }
    free(next);
    return 0;
}
