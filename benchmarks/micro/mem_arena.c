/* SPDX-License-Identifier: BSD-3-Clause */
/* What the arena costs alone: ns an operation, ns an evacuated record, and resident bytes beside
 * the records.
 *
 *   micro_mem_arena [plain|thp|hugetlb]
 *
 * Records are 34 bytes (a hash field of 16 + 16 with its two lengths). */
#include "mem/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "mem/account.h"

#define RECORD_LEN 34

struct owner {
    struct arena arena;
    uint64_t *refs;
    size_t relocated;
};

static size_t record_len(const void *record) {
    return ((const unsigned char *)record)[4];
}

static void record_write(void *record, uint32_t key) {
    memset(record, 0, RECORD_LEN);
    memcpy((char *)record + 5, &key, sizeof(key));
    ((unsigned char *)record)[4] = RECORD_LEN;
}

static enum status relocate(void *owner, uint64_t ref) {
    struct owner *o = owner;
    uint64_t to;
    enum status st = arena_alloc(&o->arena, RECORD_LEN, &to);
    if (st != ST_OK) {
        return st;
    }
    const char *from = arena_at(&o->arena, ref);
    uint32_t key;
    memcpy(&key, from + 5, sizeof(key));
    memcpy(arena_at(&o->arena, to), from, RECORD_LEN);
    o->refs[key] = to;
    arena_free(&o->arena, ref, RECORD_LEN);
    o->relocated++;
    return ST_OK;
}

static const struct arena_ops ops = {record_len, relocate, NULL};

static void add(struct owner *o, uint32_t key) {
    if (arena_alloc(&o->arena, RECORD_LEN, &o->refs[key]) != ST_OK) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    record_write(arena_at(&o->arena, o->refs[key]), key);
}

static void report(const char *what, int64_t started_ns, size_t count) {
    double each = (double)(clock_monotonic_ns() - started_ns) / (double)count;
    printf("%-44s %8.1f ns\n", what, each);
}

static size_t status_bytes(const char *name) {
    char line[256];
    size_t kb = 0, len = strlen(name);
    FILE *f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, name, len) == 0 && line[len] == ':') {
            kb = strtoull(line + len + 1, NULL, 10);
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return kb * 1024;
}

static void operations(struct pages *pages, size_t count) {
    struct owner o = {.refs = calloc(count, sizeof(uint64_t))};
    uint32_t *order = malloc(count * sizeof(uint32_t));
    struct rng rng;
    rng_init(&rng, 1);
    arena_init(&o.arena, &ops, &o, pages);
    for (size_t i = 0; i < count; i++) {
        order[i] = (uint32_t)rng_below(&rng, count);
    }
    memset(o.refs, 1, count * sizeof(uint64_t));
    printf("%zu records of %d bytes\n", count, RECORD_LEN);

    int64_t started = clock_monotonic_ns();
    for (size_t i = 0; i < count; i++) {
        add(&o, (uint32_t)i);
    }
    report("append: alloc and write, first touch included", started, count);

    started = clock_monotonic_ns();
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (uintptr_t)arena_at(&o.arena, o.refs[i]);
    }
    report("arena_at, address only", started, count);

    started = clock_monotonic_ns();
    for (size_t i = 0; i < count; i++) {
        sum += *(unsigned char *)arena_at(&o.arena, o.refs[order[i]]);
    }
    report("arena_at at random, record read", started, count);

    started = clock_monotonic_ns();
    for (size_t i = 0; i < count; i++) {
        arena_free(&o.arena, o.refs[order[i]], RECORD_LEN);
        add(&o, order[i]);
    }
    report("free at random, alloc from the list, write", started, count);

    size_t deleted = 0;
    started = clock_monotonic_ns();
    for (size_t i = 0; i < count; i++) {
        if (i % 5 < 2) {
            arena_free(&o.arena, o.refs[i], RECORD_LEN);
            o.refs[i] = ARENA_NONE;
            deleted++;
        }
    }
    report("free in order, no evacuation", started, deleted);

    int64_t worst = 0, total = clock_monotonic_ns();
    size_t calls = 0;
    for (bool more = true; more; calls++) {
        int64_t before = clock_monotonic_ns();
        more = arena_evacuate(&o.arena, 16);
        int64_t took = clock_monotonic_ns() - before;
        worst = took > worst ? took : worst;
    }
    printf("%-44s %8.1f ns   (%zu records, %zu calls of 16, worst call %.1f us)\n",
           "evacuate, per record moved",
           (double)(clock_monotonic_ns() - total) / (double)(o.relocated + 1), o.relocated, calls,
           (double)worst / 1000);
    printf("%-44s %8llx\n", "(checksum)", (unsigned long long)(sum & 0xFF));
    arena_deinit(&o.arena);
    free(o.refs);
    free(order);
}

/* Many arenas of n records each, about 100 MB in all, so that VmRSS can tell what one costs. */
static void overhead(struct pages *pages, size_t n, size_t arenas) {
    struct owner *owners = calloc(arenas, sizeof(struct owner));
    uint64_t *refs = calloc(n, sizeof(uint64_t));
    memset(refs, 1, n * sizeof(uint64_t));
    memset(owners, 1, arenas * sizeof(struct owner));
    account_purge();
    size_t before = status_bytes("VmRSS") + status_bytes("HugetlbPages");
    size_t reserved = 0, heap = account_bytes(ACCOUNT_ARENA);
    for (size_t i = 0; i < arenas; i++) {
        owners[i].refs = refs;
        arena_init(&owners[i].arena, &ops, &owners[i], pages);
        for (uint32_t key = 0; key < n; key++) {
            add(&owners[i], key);
            if (arena_wants_evacuation(&owners[i].arena)) {
                arena_evacuate(&owners[i].arena, 4);
            }
        }
        struct arena_stats stats;
        arena_get_stats(&owners[i].arena, &stats);
        reserved += stats.reserved_bytes;
    }
    size_t resident = status_bytes("VmRSS") + status_bytes("HugetlbPages") - before;
    double live = (double)(n * arenas * RECORD_LEN);
    heap = account_bytes(ACCOUNT_ARENA) - heap;
    printf("%9zu records x %-6zu reserved %6.2f %%   heap %6.2f %%   resident %6.2f %%  over live, "
           "%.2f B a record\n",
           n, arenas, ((double)reserved / live - 1) * 100, (double)heap / live * 100,
           ((double)resident / live - 1) * 100, (double)resident / (double)(n * arenas));
    for (size_t i = 0; i < arenas; i++) {
        arena_deinit(&owners[i].arena);
    }
    free(owners);
    free(refs);
}

int main(int argc, char **argv) {
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)2 << 20};
    for (enum pages_kind kind = PAGES_PLAIN; argc > 1 && kind <= PAGES_HUGETLB; kind++) {
        if (strcmp(argv[1], pages_kind_name(kind)) == 0) {
            options.kind = kind;
        }
    }
    struct pages *pages;
    if (pages_create(&options, &pages) != ST_OK) {
        return 1;
    }
    printf("chunks: %s, allocator: %s\n", pages_kind_name(options.kind), account_allocator_name());
    operations(pages, 300000);
    operations(pages, 3000000);
    overhead(pages, 10, 50000);
    overhead(pages, 30, 50000);
    overhead(pages, 500, 3000);
    overhead(pages, 31000, 60);
    overhead(pages, 45000, 40);
    overhead(pages, 95000, 20);
    overhead(pages, 3000000, 1);
    pages_destroy(pages);
    return 0;
}
