/* SPDX-License-Identifier: BSD-3-Clause */
/* What the swiss index costs: time and bytes an entry, worst single insert.
 *
 *   ds_swiss [entries]        default 8,000,000; records of 34 bytes (16-byte key, 16-byte value)
 * at 36-byte steps
 *
 * Times include reading the record (finds compare the key). All are CPU time, so that other
 * programs disturb less; the worst cases are each operation's lesser of three runs. "records alone"
 * is the floor: the same random records read in batches without any index. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/hash.h"
#include "ds/swiss.h"
#include "mem/account.h"

enum { RECORD_STEP = 36, KEY_LEN = 16, BATCH_MAX = 32 };

struct record {
    uint8_t key_len;
    uint8_t value_len;
    char key[KEY_LEN];
    char value[KEY_LEN];
};

static char *records;

static struct record *record_at(uint64_t ref) {
    return (struct record *)(void *)(records + ref * 4);
}

static uint64_t ref_of(uint64_t i) {
    return i * (RECORD_STEP / 4);
}

static uint64_t bench_hash_of(void *owner, uint64_t ref) {
    struct record *r = record_at(ref);
    return hash_bytes(BYTES(r->key, r->key_len));
}

static bool bench_matches(void *owner, uint64_t ref, struct bytes key) {
    struct record *r = record_at(ref);
    return bytes_equal(BYTES(r->key, r->key_len), key);
}

static void bench_prefetch(void *owner, uint64_t ref) {
    PREFETCH(record_at(ref));
    PREFETCH((char *)record_at(ref) + sizeof(struct record) - 1);
}

static const struct swiss_ops ops = {bench_hash_of, bench_matches, bench_prefetch};

static void make_key(char key[KEY_LEN], uint64_t i) {
    memcpy(key, "field:0000000000", KEY_LEN);
    for (size_t at = KEY_LEN; i > 0 && at > 6; i /= 10) {
        key[--at] = (char)('0' + i % 10);
    }
}

static void load_records(uint64_t n) {
    records = mmap(NULL, n * RECORD_STEP, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (records == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    for (uint64_t i = 0; i < n; i++) {
        struct record *r = record_at(ref_of(i));
        r->key_len = KEY_LEN;
        r->value_len = KEY_LEN;
        make_key(r->key, i);
    }
}

static int64_t cpu_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static double per(int64_t ns, uint64_t n) {
    return (double)ns / (double)n;
}

static void insert_or_exit(struct swiss *s, uint64_t i) {
    uint64_t ref = ref_of(i);
    if (swiss_insert(s, bench_hash_of(NULL, ref), ref) != ST_OK) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
}

static int compare_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* took[] holds each operation's lesser time of several runs: a pause of the machine does not strike
 * the same one each time, a long operation is long each time. */
static void note_time(uint32_t *took, int run, int64_t start) {
    uint32_t ns = (uint32_t)(cpu_ns() - start);
    *took = run > 0 && *took < ns ? *took : ns;
}

static void print_worst(const char *what, uint32_t *took, uint64_t n) {
    qsort(took, n, sizeof(*took), compare_u32);
    printf("%s, worst 8, us     ", what);
    for (uint64_t i = 1; i <= 8; i++) {
        printf(" %.1f", took[n - i] / 1000.0);
    }
    printf("; 99.99 %%: %.1f\n", took[n - 1 - n / 10000] / 1000.0);
}

static void bench_insert_average(struct swiss *s, uint64_t n) {
    int64_t start = cpu_ns();
    for (uint64_t i = 0; i < n; i++) {
        insert_or_exit(s, i);
    }
    printf("insert, growing            %8.1f ns\n", per(cpu_ns() - start, n));
    swiss_deinit(s);
}

static void bench_bytes(struct swiss *s, uint64_t n) {
    double least = 1e9;
    double most = 0;
    double sum = 0;
    uint64_t samples = 0;
    uint64_t next_sample = n / 2;
    for (uint64_t i = 0; i < n; i++) {
        insert_or_exit(s, i);
        if (i == next_sample) {
            double bytes = (double)swiss_bytes(s) / (double)swiss_count(s);
            least = bytes < least ? bytes : least;
            most = bytes > most ? bytes : most;
            sum += bytes;
            samples++;
            next_sample += next_sample / 100 + 1;
        }
    }
    printf("index bytes an entry        min %.2f  max %.2f  mean %.2f over the last octave\n",
           least, most, sum / (double)samples);
    swiss_deinit(s);
}

/* Leaves the index full. */
static void bench_insert_worst(struct swiss *s, uint64_t n, uint32_t *took) {
    for (int run = 0; run < 3; run++) {
        swiss_deinit(s);
        for (uint64_t i = 0; i < n; i++) {
            int64_t start = cpu_ns();
            insert_or_exit(s, i);
            note_time(&took[i], run, start);
        }
    }
    print_worst("insert", took, n);
}

static uint64_t find_batch(const struct swiss *s, char (*keys)[KEY_LEN], size_t batch) {
    uint64_t hashes[BATCH_MAX];
    uint64_t found = 0;
    for (size_t j = 0; j < batch; j++) {
        hashes[j] = hash_bytes(BYTES(keys[j], KEY_LEN));
        if (batch > 1) {
            swiss_prefetch(s, hashes[j]);
        }
    }
    for (size_t j = 0; batch > 1 && j < batch; j++) {
        uint64_t ref = swiss_likely(s, hashes[j]);
        if (ref != SWISS_NONE) {
            bench_prefetch(NULL, ref);
        }
    }
    for (size_t j = 0; j < batch; j++) {
        found += swiss_find(s, hashes[j], BYTES(keys[j], KEY_LEN)) != SWISS_NONE;
    }
    return found;
}

/* Keys are made a block at a time, outside the clock. */
static void bench_find(const struct swiss *s, uint64_t n, uint64_t finds, size_t batch) {
    enum { BLOCK = 1024 };
    static char keys[BLOCK][KEY_LEN];
    struct rng rng;
    rng_init(&rng, 7);
    uint64_t found = 0;
    int64_t spent = 0;
    finds -= finds % BLOCK;
    for (uint64_t done = 0; done < finds; done += BLOCK) {
        for (size_t j = 0; j < BLOCK; j++) {
            make_key(keys[j], rng_below(&rng, n));
        }
        int64_t start = cpu_ns();
        for (size_t j = 0; j < BLOCK; j += batch) {
            found += find_batch(s, keys + j, batch);
        }
        spent += cpu_ns() - start;
    }
    printf("find, %2zu at a time         %8.1f ns%s\n", batch, per(spent, finds),
           found < finds ? "  MISSES" : "");
}

static void bench_floor(uint64_t n, uint64_t reads, size_t batch) {
    struct rng rng;
    rng_init(&rng, 9);
    uint64_t sum = 0;
    uint64_t refs[BATCH_MAX];
    int64_t start = cpu_ns();
    for (uint64_t done = 0; done < reads; done += batch) {
        for (size_t j = 0; j < batch; j++) {
            refs[j] = ref_of(rng_below(&rng, n));
            bench_prefetch(NULL, refs[j]);
        }
        for (size_t j = 0; j < batch; j++) {
            sum += record_at(refs[j])->value_len;
        }
    }
    printf("records alone, %2zu at once  %8.1f ns%s\n", batch, per(cpu_ns() - start, reads),
           sum == 0 ? "  WRONG" : "");
}

static void bench_miss(const struct swiss *s, uint64_t n, uint64_t finds) {
    uint64_t found = 0;
    int64_t start = cpu_ns();
    for (uint64_t i = 0; i < finds; i++) {
        char key[KEY_LEN] = "absent";
        memcpy(key + 8, &i, sizeof(i));
        found += swiss_find(s, hash_bytes(BYTES(key, KEY_LEN)), BYTES(key, KEY_LEN)) != SWISS_NONE;
    }
    printf("find, absent, one by one   %8.1f ns%s\n", per(cpu_ns() - start, finds),
           found > 0 ? "  FOUND" : "");
}

static void visit(void *arg, uint64_t ref) {
    *(uint64_t *)arg += record_at(ref)->value_len;
}

static void bench_walks(const struct swiss *s, uint64_t n) {
    for (size_t want = 10; want <= 1000; want *= 10) {
        uint64_t sum = 0;
        uint64_t cursor = 0;
        int64_t start = cpu_ns();
        do {
            cursor = swiss_scan(s, cursor, want, visit, &sum);
        } while (cursor != 0);
        printf("scan, count %-4zu           %8.1f ns an entry%s\n", want, per(cpu_ns() - start, n),
               sum != n * KEY_LEN ? "  WRONG" : "");
    }
    uint64_t sum = 0;
    int64_t start = cpu_ns();
    swiss_each(s, visit, &sum);
    printf("each                       %8.1f ns an entry\n", per(cpu_ns() - start, n));
    struct rng rng;
    rng_init(&rng, 3);
    uint64_t picks = n / 8;
    start = cpu_ns();
    for (uint64_t i = 0; i < picks; i++) {
        sum += swiss_random(s, &rng);
    }
    printf("random                     %8.1f ns\n", per(cpu_ns() - start, picks));
}

/* All entries, in an order that has nothing to do with where they lie. */
static uint64_t erase_next(uint64_t i, uint64_t n) {
    uint64_t step = 1000003; /* prime */
    return n % step == 0 ? (i + 1) % n : (i + step) % n;
}

static void bench_erase_average(struct swiss *s, uint64_t n) {
    int64_t start = cpu_ns();
    uint64_t i = 0;
    for (uint64_t done = 0; done < n; done++) {
        if (done == n / 2) {
            printf("erase, first half          %8.1f ns, then %.2f index bytes an entry\n",
                   per(cpu_ns() - start, n / 2), (double)swiss_bytes(s) / (double)swiss_count(s));
            start = cpu_ns();
        }
        swiss_erase(s, bench_hash_of(NULL, ref_of(i)), ref_of(i));
        i = erase_next(i, n);
    }
    printf("erase, second half         %8.1f ns, left %" PRIu64 "\n",
           per(cpu_ns() - start, n - n / 2), swiss_count(s));
}

static void bench_erase_worst(struct swiss *s, uint64_t n, uint32_t *took) {
    for (int run = 0; run < 3; run++) {
        for (uint64_t i = 0; i < n; i++) {
            insert_or_exit(s, i);
        }
        uint64_t i = 0;
        for (uint64_t done = 0; done < n; done++) {
            int64_t start = cpu_ns();
            swiss_erase(s, bench_hash_of(NULL, ref_of(i)), ref_of(i));
            note_time(&took[done], run, start);
            i = erase_next(i, n);
        }
    }
    print_worst("erase ", took, n);
}

static void bench_size(uint64_t n) {
    struct swiss s;
    swiss_init(&s, &ops, NULL);
    uint32_t *took = calloc(n, sizeof(*took));
    if (took == NULL) {
        perror("calloc");
        exit(1);
    }
    printf("-- %" PRIu64 " entries\n", n);
    bench_insert_average(&s, n);
    bench_bytes(&s, n);
    bench_insert_worst(&s, n, took);
    uint64_t finds = n < 2000000 ? 2000000 : n;
    bench_floor(n, finds, 16);
    bench_find(&s, n, finds / 2, 1);
    bench_find(&s, n, finds, 16);
    bench_find(&s, n, finds, 32);
    bench_miss(&s, n, finds / 2);
    bench_walks(&s, n);
    bench_erase_average(&s, n);
    bench_erase_worst(&s, n, took);
    free(took);
    swiss_deinit(&s);
}

int main(int argc, char **argv) {
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 8000000;
    if (n < 1000) {
        fprintf(stderr, "usage: ds_swiss [entries, at least 1000]\n");
        return 2;
    }
    hash_setup_seed(42);
    load_records(n);
    if (n > 100000) {
        bench_size(100000);
    }
    bench_size(n);
    return 0;
}
