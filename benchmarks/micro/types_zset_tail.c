/* SPDX-License-Identifier: BSD-3-Clause */
/* The slowest inserts while one sorted set grows: the set's own work, told from the machine's.
 *
 *   micro_types_zset_tail [members [rounds]]      default 1000000, 3
 *
 * Each round inserts the same members of 16 bytes with the same random doubles, and takes the CPU
 * time of this thread for each insert. What the machine adds falls on another insert in each round;
 * work of ours comes again at the same one. So the least of all rounds is what the set causes. Times
 * hold what taking them costs, which is printed.
 *
 *   faults   first touches of OS pages
 *   chunks   2 MiB pieces taken from mem/pages
 *   away     times the scheduler took the CPU
 *
 * 8 M members take a minute and 400 MiB. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/hash.h"
#include "base/rng.h"
#include "mem/account.h"
#include "types/zset.h"

#define MEMBER_LEN 16
#define WORST 10

/* A point in time; counters of this thread. */
struct moment {
    int64_t cpu_ns;
    long faults, away;
    size_t chunks;
};

/* What lies between two of them. 8 bytes a member, so that millions fit beside the set. */
struct sample {
    uint32_t cpu_ns;
    uint16_t faults;
    uint8_t chunks, away;
};
static_assert(sizeof(struct sample) == 8, "as above");

static struct pages *pages;
static struct type_env env;

static void must(bool ok) {
    if (!ok) {
        fprintf(stderr, "micro_types_zset_tail: something went wrong or memory ran out\n");
        exit(1);
    }
}

static struct moment now(void) {
    struct rusage usage;
    struct timespec cpu;
    struct pages_stats stats;
    getrusage(RUSAGE_THREAD, &usage);
    pages_get_stats(pages, &stats);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (struct moment){.cpu_ns = cpu.tv_sec * INT64_C(1000000000) + cpu.tv_nsec,
                           .faults = usage.ru_minflt,
                           .away = usage.ru_nivcsw + usage.ru_nvcsw,
                           .chunks = stats.chunks};
}

static struct sample between(const struct moment *a, const struct moment *b) {
    return (struct sample){.cpu_ns = (uint32_t)(b->cpu_ns - a->cpu_ns),
                           .faults = (uint16_t)(b->faults - a->faults),
                           .chunks = (uint8_t)(b->chunks - a->chunks),
                           .away = (uint8_t)(b->away - a->away)};
}

static uint32_t clock_cost_ns(void) {
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < 1000; i++) {
        struct moment a = now(), b = now();
        struct sample s = between(&a, &b);
        least = s.cpu_ns < least ? s.cpu_ns : least;
    }
    return least;
}

static enum status resize(struct value *v, enum value_encoding encoding, size_t len) {
    char *data = realloc(v->data, len);
    if (data == NULL) {
        return ST_NOMEM;
    }
    v->data = data;
    v->len = len;
    v->encoding = encoding;
    return ST_OK;
}

static struct bytes name_of(uint64_t i, uint64_t name[2]) {
    name[0] = i * UINT64_C(0x9E3779B97F4A7C15);
    name[1] = i ^ UINT64_C(0xBF58476D1CE4E5B9);
    return BYTES((const char *)name, MEMBER_LEN);
}

/* One round: the least of all so far for each member. */
static void grow(uint64_t n, struct sample *least) {
    struct value_host host = {.resize = resize, .env = &env};
    struct value v = {.type = VALUE_ZSET, .host = &host};
    struct rng scores;
    uint64_t name[2];
    rng_init(&scores, 2);
    must(value_resize(&v, VALUE_PACKED, ZSET_EMPTY_LEN) == ST_OK);
    memcpy(v.data, zset_empty, ZSET_EMPTY_LEN);
    for (uint64_t i = 0; i < n; i++) {
        double score = (double)(rng_next(&scores) >> 11) * 0x1p-53;
        struct bytes member = name_of(i, name);
        struct moment before = now();
        must(zset_set(&v, member, score, NULL) == ST_OK);
        struct moment after = now();
        struct sample s = between(&before, &after);
        if (s.cpu_ns < least[i].cpu_ns) {
            least[i] = s;
        }
    }
    value_free(VALUE_ZSET, value_object(&v));
    free(v.data);
    account_purge(); /* a server frees in steps; this would fall on the next round's inserts */
}

static int by_ns(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void print_percentiles(const struct sample *least, uint64_t n) {
    static const double at[] = {0.5, 0.99, 0.999, 0.9999, 0.99999, 0.999999};
    uint32_t *sorted = malloc(n * sizeof(*sorted));
    must(sorted != NULL);
    for (uint64_t i = 0; i < n; i++) {
        sorted[i] = least[i].cpu_ns;
    }
    qsort(sorted, n, sizeof(*sorted), by_ns);
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        printf("%9.4f %% %8.2f us\n", at[i] * 100, sorted[(uint64_t)(at[i] * (double)n)] / 1e3);
    }
    printf("%11s %8.2f us\n", "max", sorted[n - 1] / 1e3);
    free(sorted);
}

static void print_worst(struct sample *least, uint64_t n) {
    printf("\n%10s %9s %7s %7s %6s\n", "member", "CPU us", "faults", "chunks", "away");
    for (int row = 0; row < WORST; row++) {
        uint64_t worst = 0;
        for (uint64_t i = 0; i < n; i++) {
            worst = least[i].cpu_ns > least[worst].cpu_ns ? i : worst;
        }
        struct sample *s = &least[worst];
        printf("%10" PRIu64 " %9.1f %7u %7u %6u\n", worst, s->cpu_ns / 1e3, s->faults, s->chunks,
               s->away);
        s->cpu_ns = 0;
    }
}

int main(int argc, char **argv) {
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;
    uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 3;
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)2 << 20};
    struct sample *least = malloc(n * sizeof(*least));
    must(n >= 1000 && rounds > 0 && least != NULL);
    must(pages_create(&options, &pages) == ST_OK);
    env = (struct type_env){
        .pages = pages, .zset_packed_entries_max = 128, .zset_packed_element_max = 64};
    hash_setup_seed(1);
    memset(least, 0xFF, n * sizeof(*least));
    printf("%" PRIu64 " members of %d bytes, CPU time of an insert, least of %" PRIu64
           " rounds; taking the time is %u ns of it\n",
           n, MEMBER_LEN, rounds, clock_cost_ns());
    fflush(stdout);
    for (uint64_t round = 0; round < rounds; round++) {
        grow(n, least);
    }
    print_percentiles(least, n);
    print_worst(least, n);
    free(least);
    pages_destroy(pages);
    return 0;
}
