/* SPDX-License-Identifier: BSD-3-Clause */
/* What a swiss index really holds while it grows, and while it shrinks again: its own count of bytes, and what the process's resident
 * memory grew by, per entry, at many sizes.
 *
 *   ds_swiss_resident [to [from [step [plain|thp|hugetlb]]]]       default 4,000,000 800,000 25,000 plain
 *
 * There are no records: a ref is a number and its hash a mix of it, so that nothing but the index
 * grows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ds/swiss.h"
#include "mem/index.h"

static uint64_t asked; /* calls of hash_of by the index: entries it has moved */

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t mixed_hash_of(void *owner, uint64_t ref) {
    asked++;
    return mix(ref);
}

static bool number_matches(void *owner, uint64_t ref, struct bytes key) {
    return memcmp(&ref, key.ptr, sizeof(ref)) == 0;
}

static const struct swiss_ops ops = {mixed_hash_of, number_matches, NULL};

/* With the hugetlb pages of the index, which the kernel counts apart. */
static size_t resident_bytes(void) {
    unsigned long pages = 0;
    struct pages_stats stats = {0};
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%*u %lu", &pages) != 1) {
        perror("/proc/self/statm");
        exit(1);
    }
    fclose(f);
    if (index_pages() != NULL && pages_asked(index_pages()) == PAGES_HUGETLB) {
        pages_get_stats(index_pages(), &stats);
    }
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) + stats.huge_mapped_bytes;
}

struct tally {
    double most;
    double sum;
    uint64_t at;
};

static double note(struct tally *t, size_t bytes, uint64_t n) {
    double each = (double)bytes / (double)n;
    t->sum += each;
    if (each > t->most) {
        t->most = each;
        t->at = n;
    }
    return each;
}

struct phase {
    struct tally counted;
    struct tally resident;
    double samples;
};

static void sample(struct phase *p, const struct swiss *s, size_t before) {
    double c = note(&p->counted, swiss_bytes(s), swiss_count(s));
    double r = note(&p->resident, resident_bytes() - before, swiss_count(s));
    printf("%10" PRIu64 " %8.2f %9.2f\n", swiss_count(s), c, r);
    p->samples++;
}

static void print_phase(const char *name, const struct phase *p, uint64_t changes) {
    printf("%s: counted mean %.2f, worst %.2f at %" PRIu64
           "; resident mean %.2f, worst %.2f at %" PRIu64 "; %.2f moved for each\n",
           name, p->counted.sum / p->samples, p->counted.most, p->counted.at,
           p->resident.sum / p->samples, p->resident.most, p->resident.at,
           (double)asked / (double)changes);
}

static enum pages_kind kind_of(const char *name) {
    enum pages_kind kind = PAGES_PLAIN;
    while (strcmp(name, pages_kind_name(kind)) != 0) {
        if (kind++ == PAGES_HUGETLB) {
            fprintf(stderr, "no such kind of page: %s\n", name);
            exit(2);
        }
    }
    return kind;
}

int main(int argc, char **argv) {
    uint64_t to = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000000;
    uint64_t from = argc > 2 ? strtoull(argv[2], NULL, 10) : 800000;
    uint64_t step = argc > 3 ? strtoull(argv[3], NULL, 10) : 25000;
    if (from == 0 || to < from || step == 0) {
        fprintf(stderr, "usage: ds_swiss_resident [to [from [step [plain|thp|hugetlb]]]]\n");
        return 2;
    }
    if (index_setup(argc > 4 ? kind_of(argv[4]) : PAGES_PLAIN) != ST_OK) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    struct phase growing = {0};
    struct phase shrinking = {0};
    struct swiss s;
    swiss_init(&s, &ops, NULL);
    size_t before = resident_bytes();
    printf("%10s %8s %9s\n", "entries", "counted", "resident");
    for (uint64_t i = 0; i < to; i++) {
        if (swiss_insert(&s, mix(i), i) != ST_OK) {
            fprintf(stderr, "out of memory\n");
            return 1;
        }
        if (swiss_count(&s) >= from && (swiss_count(&s) - from) % step == 0) {
            sample(&growing, &s, before);
        }
    }
    print_phase("growing", &growing, to);
    asked = 0;
    for (uint64_t i = 0; swiss_count(&s) > from; i++) {
        swiss_erase(&s, mix(i), i);
        if ((swiss_count(&s) - from) % step == 0) {
            sample(&shrinking, &s, before);
        }
    }
    print_phase("shrinking", &shrinking, to - from);
    swiss_deinit(&s);
    printf("left after freeing all: %zd KiB\n",
           ((ssize_t)resident_bytes() - (ssize_t)before) / 1024);
    return 0;
}
