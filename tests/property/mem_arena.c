/* SPDX-License-Identifier: BSD-3-Clause */
/* Random allocations, frees and overwrites, followed by small evacuation steps as a server would do
 * them, against a table that knows every record. arena_check and a full comparison run at
 * intervals.
 *
 * GC_SEED sets the seed (printed), GC_OPS the operations a run. */
#include "mem/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "mem/account.h"

#define HEADER_BYTES 10 /* tag 1, length 4, key 4, one byte of filling at least */
#define REF_DEAD UINT64_MAX

/* The owner: key -> ref, and what the record must hold. A record is tag, length, key, then bytes of
 * (key + length). */
struct model {
    struct arena arena;
    struct pages *pages;
    struct rng rng;
    uint64_t *refs;
    uint32_t *lens;
    size_t keys, live_count;
    uint64_t live_bytes;
    size_t relocated, out_of_memory;
    size_t min_len, max_len;
    bool flaky; /* relocate now and then has no memory */
};

static size_t record_len(const void *record) {
    uint32_t len;
    memcpy(&len, (const char *)record + 1, sizeof(len));
    return len;
}

static void record_write(void *record, uint32_t key, uint32_t len) {
    char *p = record;
    p[0] = (char)(key % 0xFE);
    memcpy(p + 1, &len, sizeof(len));
    memcpy(p + 5, &key, sizeof(key));
    memset(p + 9, (int)(key + len), len - 9);
}

static void record_verify(const struct model *m, uint32_t key) {
    const unsigned char *p = arena_at(&m->arena, m->refs[key]);
    uint32_t stored;
    memcpy(&stored, p + 5, sizeof(stored));
    assert_int_equal(stored, key);
    assert_int_equal(record_len(p), m->lens[key]);
    for (size_t i = 9; i < m->lens[key]; i++) {
        if (p[i] != (unsigned char)(key + m->lens[key])) {
            fail_msg("key %u: byte %zu differs", key, i);
        }
    }
}

static enum status relocate(void *owner, uint64_t ref) {
    struct model *m = owner;
    uint32_t key;
    memcpy(&key, (const char *)arena_at(&m->arena, ref) + 5, sizeof(key));
    assert_true(key < m->keys && m->refs[key] == ref);
    if (m->flaky && rng_below(&m->rng, 50) == 0) {
        return ST_NOMEM;
    }
    size_t len = m->lens[key];
    uint64_t to;
    enum status st = arena_alloc(&m->arena, len, &to);
    if (st != ST_OK) {
        return st;
    }
    memcpy(arena_at(&m->arena, to), arena_at(&m->arena, ref), len);
    m->refs[key] = to;
    arena_free(&m->arena, ref, len);
    m->relocated++;
    return ST_OK;
}

static void prefetch(void *owner, const uint64_t *refs, size_t count) {
    struct model *m = owner;
    for (size_t i = 0; i < count; i++) {
        PREFETCH(arena_at(&m->arena, refs[i]));
    }
}

static const struct arena_ops ops = {record_len, relocate, prefetch};

static uint64_t seed_from_env(void) {
    const char *text = getenv("GC_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : rng_entropy();
    print_message("GC_SEED=0x%llx\n", (unsigned long long)seed);
    return seed;
}

static size_t ops_from_env(size_t usual) {
    const char *text = getenv("GC_OPS");
    return text != NULL ? strtoull(text, NULL, 0) : usual;
}

static void model_init(struct model *m, size_t chunk_bytes, size_t keys, size_t min_len,
                       size_t max_len) {
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = chunk_bytes};
    memset(m, 0, sizeof(*m));
    assert_int_equal(pages_create(&options, &m->pages), ST_OK);
    arena_init(&m->arena, &ops, m, m->pages);
    rng_init(&m->rng, seed_from_env());
    m->keys = keys;
    m->refs = malloc(keys * sizeof(m->refs[0]));
    m->lens = malloc(keys * sizeof(m->lens[0]));
    memset(m->refs, 0xFF, keys * sizeof(m->refs[0]));
    m->min_len = min_len < HEADER_BYTES ? HEADER_BYTES : min_len;
    m->max_len = max_len;
}

static void model_deinit(struct model *m) {
    while (!arena_deinit_step(&m->arena, 3)) {
    }
    arena_deinit(&m->arena);
    struct pages_stats stats;
    pages_get_stats(m->pages, &stats);
    assert_int_equal(stats.chunks, 0);
    pages_destroy(m->pages);
    assert_int_equal(account_bytes(ACCOUNT_ARENA), 0);
    free(m->refs);
    free(m->lens);
}

static void model_set(struct model *m, uint32_t key, uint32_t len) {
    uint64_t ref;
    enum status st = arena_alloc(&m->arena, len, &ref);
    if (st == ST_NOMEM) {
        m->out_of_memory++;
        return;
    }
    assert_int_equal(st, ST_OK);
    record_write(arena_at(&m->arena, ref), key, len);
    if (m->refs[key] != REF_DEAD) {
        arena_free(&m->arena, m->refs[key], m->lens[key]);
        m->live_bytes -= arena_round(m->lens[key]);
        m->live_count--;
    }
    m->refs[key] = ref;
    m->lens[key] = len;
    m->live_bytes += arena_round(len);
    m->live_count++;
}

static void model_delete(struct model *m, uint32_t key) {
    if (m->refs[key] != REF_DEAD) {
        arena_free(&m->arena, m->refs[key], m->lens[key]);
        m->live_bytes -= arena_round(m->lens[key]);
        m->live_count--;
        m->refs[key] = REF_DEAD;
    }
}

static void after_op(struct model *m) {
    if (arena_wants_evacuation(&m->arena)) {
        arena_evacuate(&m->arena, 8);
    }
}

struct seen {
    const struct model *m;
    size_t count;
    uint64_t last;
};

static void see(void *arg, uint64_t ref, void *record) {
    struct seen *s = arg;
    uint32_t key;
    memcpy(&key, (char *)record + 5, sizeof(key));
    assert_int_equal(s->m->refs[key], ref);
    assert_true(s->count == 0 || ref > s->last);
    s->last = ref;
    s->count++;
}

static void model_verify(const struct model *m) {
    arena_check(&m->arena);
    struct arena_stats stats;
    arena_get_stats(&m->arena, &stats);
    assert_int_equal(stats.live_bytes, m->live_bytes);
    struct seen s = {.m = m};
    arena_each(&m->arena, see, &s);
    assert_int_equal(s.count, m->live_count);
    for (uint32_t key = 0; key < m->keys; key++) {
        if (m->refs[key] != REF_DEAD) {
            record_verify(m, key);
        }
    }
}

static uint32_t random_len(struct model *m) {
    return (uint32_t)(m->min_len + rng_below(&m->rng, m->max_len - m->min_len + 1));
}

/* Phases of growing, shrinking and plain overwriting, so that every transition is met. */
static void random_run(struct model *m, size_t count, size_t verify_every) {
    unsigned set_share = 60;
    for (size_t i = 0; i < count; i++) {
        if (i % (count / 12 + 1) == 0) {
            set_share = (unsigned)(10 + rng_below(&m->rng, 86));
        }
        uint32_t key = (uint32_t)rng_below(&m->rng, m->keys);
        if (rng_below(&m->rng, 100) < set_share) {
            model_set(m, key, random_len(m));
        } else {
            model_delete(m, key);
        }
        after_op(m);
        if (i % verify_every == verify_every - 1) {
            model_verify(m);
        }
    }
    model_verify(m);
}

static void run(size_t chunk_bytes, size_t keys, size_t min_len, size_t max_len, size_t count,
                uint64_t skip) {
    struct model m;
    model_init(&m, chunk_bytes, keys, min_len, max_len);
    if (skip != 0) {
        arena_skip_to(&m.arena, skip);
    }
    m.flaky = true;
    random_run(&m, ops_from_env(count), count / 40 + 1);
    if (skip != 0 && m.live_count > 0) {
        bool beyond = false;
        for (size_t i = 0; i < m.keys; i++) {
            beyond |= m.refs[i] != REF_DEAD && m.refs[i] > UINT32_MAX;
        }
        assert_true(beyond);
    }
    model_deinit(&m);
}

static void tiny_collections_follow_the_model(void **state) {
    for (int i = 0; i < 20; i++) {
        run((size_t)2 << 20, 60, 10, 100, 2000, 0);
    }
}

static void small_records_follow_the_model(void **state) {
    run((size_t)64 << 10, 20000, 10, 40, 120000, 0);
}

static void mixed_records_follow_the_model(void **state) {
    run((size_t)256 << 10, 4000, 10, 900, 100000, 0);
}

static void large_records_follow_the_model(void **state) {
    run((size_t)2 << 20, 300, 10, 65536, 6000, 0);
}

static void default_chunks_follow_the_model(void **state) {
    run((size_t)2 << 20, 60000, 20, 200, 150000, 0);
}

static void refs_beyond_32_bits_follow_the_model(void **state) {
#ifndef GC_ARENA_GUARDED
    run((size_t)2 << 20, 20000, 20, 200, 50000, UINT64_C(1) << 32);
#else
    run((size_t)2 << 20, 2000, 20, 200, 20000, UINT64_C(1) << 32);
#endif
}

static void grows_and_vanishes(void **state) {
    struct model m;
    model_init(&m, (size_t)64 << 10, 5000, 34, 34);
    for (int round = 0; round < 5; round++) {
        for (uint32_t key = 0; key < m.keys; key++) {
            model_set(&m, key, 34);
            after_op(&m);
        }
        model_verify(&m);
        for (uint32_t key = 0; key < m.keys; key++) {
            model_delete(&m, round % 2 == 0 ? key : (uint32_t)m.keys - 1 - key);
            after_op(&m);
        }
        while (arena_evacuate(&m.arena, 64)) {
        }
        model_verify(&m);
        struct arena_stats stats;
        arena_get_stats(&m.arena, &stats);
        assert_true(stats.reserved_bytes <= (size_t)96 << 10);
    }
    model_deinit(&m);
}

#ifndef GC_ARENA_GUARDED
static void assert_lean(struct model *m, const char *when) {
    struct arena_stats stats;
    arena_get_stats(&m->arena, &stats);
    print_message("%s: live %zu dead %zu reserved %zu (%.3f x live), relocated %zu\n", when,
                  stats.live_bytes, stats.dead_bytes, stats.reserved_bytes,
                  (double)stats.reserved_bytes / (double)stats.live_bytes, m->relocated);
    size_t slack = 2 * pages_chunk_bytes(m->pages) + 8192;
    assert_true(stats.reserved_bytes <= stats.live_bytes + stats.live_bytes / 4 + slack);
}

/* The churn: overwrite with random sizes, delete half, reinsert. */
static void churn_leaves_memory_bounded(size_t chunk_bytes, size_t keys, size_t min_len,
                                        size_t max_len) {
    struct model m;
    model_init(&m, chunk_bytes, keys, min_len, max_len);
    for (uint32_t key = 0; key < m.keys; key++) {
        model_set(&m, key, random_len(&m));
        after_op(&m);
    }
    assert_lean(&m, "loaded");
    for (size_t i = 0; i < 3 * keys; i++) {
        model_set(&m, (uint32_t)rng_below(&m.rng, keys), random_len(&m));
        after_op(&m);
    }
    assert_lean(&m, "overwritten");
    for (uint32_t key = 0; key < m.keys; key += 2) {
        model_delete(&m, key);
        after_op(&m);
    }
    assert_lean(&m, "half deleted");
    for (uint32_t key = 0; key < m.keys; key += 2) {
        model_set(&m, key, random_len(&m));
        after_op(&m);
    }
    assert_lean(&m, "reinserted");
    model_verify(&m);
    model_deinit(&m);
}

static void churn_of_small_records_is_bounded(void **state) {
    churn_leaves_memory_bounded((size_t)64 << 10, 60000, 10, 100);
}

static void churn_of_larger_records_is_bounded(void **state) {
    churn_leaves_memory_bounded((size_t)2 << 20, 15000, 200, 3000);
}
#endif

static void every_failed_allocation_changes_nothing(void **state) {
    struct model m;
    model_init(&m, (size_t)64 << 10, 3000, 10, 200);
    for (size_t i = 0; i < 12000; i++) {
        account_fail_after(1 + rng_below(&m.rng, 3));
        uint32_t key = (uint32_t)rng_below(&m.rng, m.keys);
        size_t before = m.out_of_memory;
        if (rng_below(&m.rng, 3) != 0) {
            model_set(&m, key, random_len(&m));
        } else {
            model_delete(&m, key);
        }
        after_op(&m);
        account_fail_after(0);
        if (m.out_of_memory != before && m.out_of_memory % 64 == 0) {
            model_verify(&m);
        }
        if (i % 10 == 0) {
            model_set(&m, key, random_len(&m)); /* so that it also grows */
        }
    }
    print_message("out of memory %zu times, relocated %zu\n", m.out_of_memory, m.relocated);
    assert_true(m.out_of_memory > 0);
    model_verify(&m);
    model_deinit(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_collections_follow_the_model),
        cmocka_unit_test(small_records_follow_the_model),
        cmocka_unit_test(mixed_records_follow_the_model),
        cmocka_unit_test(large_records_follow_the_model),
        cmocka_unit_test(default_chunks_follow_the_model),
        cmocka_unit_test(refs_beyond_32_bits_follow_the_model),
        cmocka_unit_test(grows_and_vanishes),
#ifndef GC_ARENA_GUARDED
        cmocka_unit_test(churn_of_small_records_is_bounded),
        cmocka_unit_test(churn_of_larger_records_is_bounded),
#endif
        cmocka_unit_test(every_failed_allocation_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
