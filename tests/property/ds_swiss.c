/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on the swiss index against an array that knows the truth.
 *
 *   property_ds_swiss [seed] [operations]
 *
 * Runs with random hashes and with hashes far from random (few top bits vary, few hashes in all),
 * with and without failing allocations, with a scan going on all the time: what stays present
 * during a whole scan must be visited once, and nothing twice. Then with several indexes that grow,
 * shrink and die in turns, as freeing one's segment moves another's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ds/swiss.h"
#include "mem/account.h"

enum { KEYS = 24000, REF_SLOTS = 1 << 17 };

#define WIDE_BASE ((uint64_t)5 << 32)

enum shape { SHAPE_RANDOM, SHAPE_NARROW_TOP, SHAPE_FEW_HASHES, SHAPES };

static const char *const shape_names[SHAPES] = {"random hashes", "equal top bits", "few hashes"};

struct model {
    struct swiss index;
    struct rng rng;
    enum shape shape;
    uint64_t ref_of[KEYS];      /* SWISS_NONE: absent */
    uint32_t key_at[REF_SLOTS]; /* the key of a ref's low bits; KEYS: none */
    uint64_t present;
    uint64_t cursor;       /* of the scan going on */
    bool throughout[KEYS]; /* present since the scan began */
    uint8_t visits[KEYS];
    uint64_t scans;
    uint64_t refused; /* inserts that got no memory */
};

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t hash_of_key(const struct model *m, uint32_t key) {
    uint64_t h = mix(key + 0x9e3779b97f4a7c15u);
    switch (m->shape) {
    case SHAPE_NARROW_TOP:
        return (h & ~(0x3fffffull << 42)) | 0x155555ull << 42;
    case SHAPE_FEW_HASHES:
        return mix(key % 7 + 1);
    default:
        return h;
    }
}

/* Refs are a record number, some of them above 32 bits. */
static uint32_t key_of_ref(const struct model *m, uint64_t ref) {
    uint32_t key = m->key_at[ref % REF_SLOTS];
    MUST(key < KEYS && m->ref_of[key] == ref);
    return key;
}

static uint64_t model_hash_of(void *owner, uint64_t ref) {
    return hash_of_key(owner, key_of_ref(owner, ref));
}

static bool model_matches(void *owner, uint64_t ref, struct bytes key) {
    uint32_t wanted;
    memcpy(&wanted, key.ptr, sizeof(wanted));
    return key_of_ref(owner, ref) == wanted;
}

static void model_prefetch(void *owner, uint64_t ref) {
    (void)key_of_ref(owner, ref);
}

static const struct swiss_ops model_ops = {model_hash_of, model_matches, model_prefetch};

static uint64_t find(const struct model *m, uint32_t key) {
    return swiss_find(&m->index, hash_of_key(m, key), BYTES((const char *)&key, sizeof(key)));
}

static uint64_t fresh_ref(struct model *m, bool wide) {
    uint64_t slot;
    do {
        slot = rng_below(&m->rng, REF_SLOTS);
    } while (m->key_at[slot] != KEYS);
    return wide ? WIDE_BASE + slot : slot;
}

/* ---- operations ---- */

static void do_insert(struct model *m, uint32_t key, bool wide) {
    uint64_t ref = fresh_ref(m, wide);
    uint64_t hash = hash_of_key(m, key);
    bool reserve = rng_below(&m->rng, 4) == 0;
    if (reserve) {
        if (swiss_reserve(&m->index, hash, ref) != ST_OK) {
            m->refused++;
            return;
        }
        account_fail_after(1);
    }
    enum status st = swiss_insert(&m->index, hash, ref);
    if (reserve) {
        account_fail_after(0);
        MUST(st == ST_OK);
    }
    if (st != ST_OK) {
        MUST(st == ST_NOMEM);
        m->refused++;
        return;
    }
    m->ref_of[key] = ref;
    m->key_at[ref % REF_SLOTS] = key;
    m->present++;
}

/* The record is gone from the owner before the index hears of it: it must not be asked for. */
static void do_erase(struct model *m, uint32_t key) {
    uint64_t ref = m->ref_of[key];
    m->ref_of[key] = SWISS_NONE;
    m->key_at[ref % REF_SLOTS] = KEYS;
    m->throughout[key] = false;
    m->present--;
    swiss_erase(&m->index, hash_of_key(m, key), ref);
}

static void do_replace(struct model *m, uint32_t key, bool wide) {
    uint64_t old_ref = m->ref_of[key];
    uint64_t new_ref = fresh_ref(m, wide);
    if (swiss_replace(&m->index, hash_of_key(m, key), old_ref, new_ref) == ST_OK) {
        m->key_at[old_ref % REF_SLOTS] = KEYS;
        m->key_at[new_ref % REF_SLOTS] = key;
        m->ref_of[key] = new_ref;
    } else {
        MUST(wide);
        m->refused++;
    }
}

static void visit(void *arg, uint64_t ref) {
    struct model *m = arg;
    uint32_t key = key_of_ref(m, ref);
    MUST(m->visits[key] == 0);
    m->visits[key] = 1;
}

static void do_scan(struct model *m) {
    if (m->cursor == 0) {
        for (uint32_t key = 0; key < KEYS; key++) {
            m->throughout[key] = m->ref_of[key] != SWISS_NONE;
            m->visits[key] = 0;
        }
    }
    m->cursor = swiss_scan(&m->index, m->cursor, rng_below(&m->rng, 300), visit, m);
    if (m->cursor == 0) {
        m->scans++;
        for (uint32_t key = 0; key < KEYS; key++) {
            MUST(!m->throughout[key] || m->visits[key] == 1);
        }
    }
}

static void count_visit(void *arg, uint64_t ref) {
    uint64_t *sum = arg;
    sum[0]++;
    sum[1] += ref;
}

static void check_all(const struct model *m) {
    swiss_check(&m->index);
    MUST(swiss_count(&m->index) == m->present);
    uint64_t true_sum = 0;
    for (uint32_t key = 0; key < KEYS; key++) {
        MUST(find(m, key) == m->ref_of[key]);
        true_sum += m->ref_of[key] != SWISS_NONE ? m->ref_of[key] : 0;
    }
    uint64_t each[2] = {0, 0};
    swiss_each(&m->index, count_visit, each);
    MUST(each[0] == m->present && each[1] == true_sum);
    uint64_t position = 0;
    uint64_t refs[37];
    uint64_t walk[2] = {0, 0};
    size_t n;
    while ((n = swiss_next(&m->index, &position, refs, ARRAY_LEN(refs))) > 0) {
        for (size_t i = 0; i < n; i++) {
            count_visit(walk, refs[i]);
        }
    }
    MUST(walk[0] == m->present && walk[1] == true_sum);
}

static void one_operation(struct model *m, uint64_t target, bool failing) {
    uint32_t key = (uint32_t)rng_below(&m->rng, KEYS);
    bool wide = rng_below(&m->rng, 5000) == 0;
    uint64_t dice = rng_below(&m->rng, 100);
    if (failing && rng_below(&m->rng, 8) == 0) {
        account_fail_after(1 + rng_below(&m->rng, 3));
    }
    if (m->ref_of[key] == SWISS_NONE) {
        if (m->present < target || dice < 10) {
            do_insert(m, key, wide);
        } else {
            MUST(find(m, key) == SWISS_NONE);
        }
    } else if (dice < 10) {
        do_replace(m, key, wide);
    } else if (m->present > target || dice < 20) {
        do_erase(m, key);
    } else {
        uint64_t likely = swiss_likely(&m->index, hash_of_key(m, key));
        swiss_prefetch(&m->index, hash_of_key(m, key));
        MUST(likely == SWISS_NONE || key_of_ref(m, likely) < KEYS);
        MUST(find(m, key) == m->ref_of[key]);
    }
    account_fail_after(0);
    if (dice == 99) {
        do_scan(m);
        uint64_t ref = swiss_random(&m->index, &m->rng);
        MUST(m->present == 0 ? ref == SWISS_NONE : key_of_ref(m, ref) < KEYS);
    }
}

static void model_init(struct model *m, enum shape shape, uint64_t seed) {
    memset(m, 0, sizeof(*m));
    m->shape = shape;
    rng_init(&m->rng, seed);
    swiss_init(&m->index, &model_ops, m);
    for (uint32_t key = 0; key < KEYS; key++) {
        m->ref_of[key] = SWISS_NONE;
    }
    for (uint32_t slot = 0; slot < REF_SLOTS; slot++) {
        m->key_at[slot] = KEYS;
    }
}

/* A size to walk towards: 0 and all now and then. */
static uint64_t draw_target(struct rng *rng) {
    uint64_t choice = rng_below(rng, 6);
    return choice == 0 ? 0 : choice == 1 ? KEYS : rng_below(rng, KEYS);
}

static void run(enum shape shape, bool failing, uint64_t seed, uint64_t operations) {
    struct model *m = malloc(sizeof(*m));
    MUST(m != NULL);
    model_init(m, shape, seed);
    uint64_t target = 0;
    for (uint64_t i = 0; i < operations; i++) {
        if (i % 20000 == 0) {
            target = draw_target(&m->rng);
        }
        one_operation(m, target, failing);
        if (i % 15000 == 14999) {
            check_all(m);
            MUST(swiss_bytes(&m->index) == account_bytes(ACCOUNT_INDEX));
        }
    }
    while (swiss_count(&m->index) > 0 && m->present % 2 == 0) {
        do_erase(m, key_of_ref(m, swiss_random(&m->index, &m->rng)));
    }
    check_all(m);
    printf("%s%s: %" PRIu64 " operations, %" PRIu64 " scans, %" PRIu64 " refused\n",
           shape_names[shape], failing ? ", failing memory" : "", operations, m->scans, m->refused);
    while (!swiss_deinit_step(&m->index, 3)) {
    }
    MUST(account_bytes(ACCOUNT_INDEX) == 0);
    free(m);
}

/* ---- several indexes, whose segments share pools ---- */

enum { TABLES = 5 };

struct table {
    struct model model;
    uint64_t target;
    bool dying;
    uint64_t deaths;
};

/* Free a few segments: the rest may be moved by others until the next step. */
static void die_a_little(struct table *t) {
    t->dying = true;
    if (swiss_deinit_step(&t->model.index, 1 + rng_below(&t->model.rng, 2))) {
        model_init(&t->model, SHAPE_RANDOM, rng_next(&t->model.rng));
        t->dying = false;
        t->deaths++;
    }
}

static void check_tables(struct table *tables) {
    size_t bytes = 0;
    bool all_alive = true;
    for (int i = 0; i < TABLES; i++) {
        all_alive = all_alive && !tables[i].dying;
        if (!tables[i].dying) {
            check_all(&tables[i].model);
            bytes += swiss_bytes(&tables[i].model.index);
        }
    }
    MUST(bytes == account_bytes(ACCOUNT_INDEX) ||
         (!all_alive && bytes < account_bytes(ACCOUNT_INDEX)));
}

static void run_tables(bool failing, uint64_t seed, uint64_t operations) {
    struct table *tables = calloc(TABLES, sizeof(*tables));
    struct rng rng;
    uint64_t deaths = 0;
    MUST(tables != NULL);
    rng_init(&rng, seed);
    for (int i = 0; i < TABLES; i++) {
        model_init(&tables[i].model, SHAPE_RANDOM, rng_next(&rng));
    }
    for (uint64_t i = 0; i < operations; i++) {
        struct table *t = &tables[rng_below(&rng, TABLES)];
        if (i % 5000 == 0) {
            t->target = draw_target(&rng);
        }
        if (t->dying ? rng_below(&rng, 50) == 0 : rng_below(&rng, 20000) == 0) {
            die_a_little(t);
        }
        if (!t->dying) {
            one_operation(&t->model, t->target, failing);
        }
        if (i % 25000 == 24999) {
            check_tables(tables);
        }
    }
    for (int i = 0; i < TABLES; i++) {
        deaths += tables[i].deaths;
    }
    printf("%d tables%s: %" PRIu64 " operations, %" PRIu64 " deaths\n", TABLES,
           failing ? ", failing memory" : "", operations, deaths);
    bool left = true;
    while (left) { /* all die at once, in turns */
        left = false;
        for (int i = 0; i < TABLES; i++) {
            left = !swiss_deinit_step(&tables[i].model.index, 1) || left;
        }
    }
    MUST(account_bytes(ACCOUNT_INDEX) == 0);
    free(tables);
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : rng_entropy() % 1000000000;
    uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 10) : 300000;
    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    run(SHAPE_RANDOM, false, seed, operations);
    run(SHAPE_RANDOM, true, seed + 1, operations / 3);
    run(SHAPE_NARROW_TOP, true, seed + 2, operations / 5);
    run(SHAPE_FEW_HASHES, true, seed + 3, operations / 40);
    run_tables(false, seed + 4, operations * 2);
    run_tables(true, seed + 5, operations);
    return 0;
}
