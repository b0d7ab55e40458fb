/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "mem/account.h"
#include "mem/calm.h"

#define CHUNK ((size_t)2 << 20)

/* Records: a tag byte below 0xFE, the length in two bytes and eight of key. */
#define KEY_AT 3
#define RECORD_LEN 34

struct owner {
    struct arena arena;
    struct pages *pages;
    uint64_t *refs;
    size_t count;
    size_t relocated, prefetched;
    bool no_memory;
};

static size_t record_len(const void *record) {
    uint16_t len;
    memcpy(&len, (const char *)record + 1, sizeof(len));
    return len;
}

static uint64_t record_key(const void *record) {
    uint64_t key;
    memcpy(&key, (const char *)record + KEY_AT, sizeof(key));
    return key;
}

static enum status add(struct owner *o, uint64_t key, size_t len) {
    uint64_t ref;
    enum status st = arena_alloc(&o->arena, len, &ref);
    if (st != ST_OK) {
        return st;
    }
    char *p = arena_at(&o->arena, ref);
    uint16_t stored = (uint16_t)len;
    memset(p, 'r', len);
    memcpy(p + 1, &stored, sizeof(stored));
    memcpy(p + KEY_AT, &key, sizeof(key));
    o->refs[key] = ref;
    return ST_OK;
}

static void drop(struct owner *o, uint64_t key) {
    arena_free(&o->arena, o->refs[key], record_len(arena_at(&o->arena, o->refs[key])));
    o->refs[key] = ARENA_NONE;
}

static enum status relocate(void *owner, uint64_t ref) {
    struct owner *o = owner;
    const char *from = arena_at(&o->arena, ref);
    uint64_t key = record_key(from), old = o->refs[key];
    assert_int_equal(old, ref);
    if (o->no_memory) {
        return ST_NOMEM;
    }
    size_t len = record_len(from);
    enum status st = add(o, key, len);
    if (st == ST_OK) {
        arena_free(&o->arena, old, len);
        o->relocated++;
    }
    return st;
}

static void prefetch(void *owner, const uint64_t *refs, size_t count) {
    ((struct owner *)owner)->prefetched += count;
}

static const struct arena_ops ops = {record_len, relocate, prefetch};

static void owner_init(struct owner *o, size_t chunk_bytes, size_t count) {
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = chunk_bytes};
    *o = (struct owner){.count = count};
    assert_int_equal(pages_create(&options, &o->pages), ST_OK);
    arena_init(&o->arena, &ops, o, o->pages);
    o->refs = malloc(count * sizeof(o->refs[0]));
    memset(o->refs, 0xFF, count * sizeof(o->refs[0]));
}

static void owner_deinit(struct owner *o) {
    arena_deinit(&o->arena);
    pages_destroy(o->pages);
    free(o->refs);
    assert_int_equal(account_bytes(ACCOUNT_ARENA), 0);
}

static void fill(struct owner *o, size_t from, size_t to, size_t len) {
    for (size_t key = from; key < to; key++) {
        assert_int_equal(add(o, key, len), ST_OK);
    }
}

static void verify(const struct owner *o) {
    arena_check(&o->arena);
    for (size_t key = 0; key < o->count; key++) {
        if (o->refs[key] != ARENA_NONE) {
            assert_int_equal(record_key(arena_at(&o->arena, o->refs[key])), key);
        }
    }
}

#ifndef GC_ARENA_GUARDED
static struct arena_stats stats_of(const struct owner *o) {
    struct arena_stats stats;
    arena_get_stats(&o->arena, &stats);
    return stats;
}

#endif

/* ---- sizes ---- */

static void rounding_wastes_little_and_has_few_classes(void **state) {
    size_t classes = 0, last = 0;
    for (size_t len = 1; len <= 65536; len++) {
        size_t rounded = arena_round(len);
        assert_true(rounded >= len && rounded % ARENA_UNIT == 0 && rounded >= last);
        assert_int_equal(arena_round(rounded), rounded);
        assert_true(len <= 1024 ? rounded - len < 2 : (rounded - len) * 33 < len);
        classes += rounded != last;
        last = rounded;
    }
    assert_int_equal(last, 65536);
    assert_true(classes < 1000);
}

static void refuses_lengths_out_of_range(void **state) {
    struct owner o;
    uint64_t ref;
    owner_init(&o, (size_t)64 << 10, 1);
    assert_int_equal(arena_record_max(&o.arena), 16384);
    assert_int_equal(arena_alloc(&o.arena, 0, &ref), ST_RANGE);
    assert_int_equal(arena_alloc(&o.arena, 16385, &ref), ST_RANGE);
    assert_int_equal(account_bytes(ACCOUNT_ARENA), 0);
    assert_int_equal(add(&o, 0, 16384), ST_OK);
    owner_deinit(&o);
    owner_init(&o, CHUNK, 1);
    assert_int_equal(arena_record_max(&o.arena), 65536);
    assert_int_equal(arena_alloc(&o.arena, 65537, &ref), ST_RANGE);
    owner_deinit(&o);
}

static void takes_back_what_was_freed_first(void **state) {
    struct owner o;
    owner_init(&o, CHUNK, 20);
    fill(&o, 0, 20, RECORD_LEN);
    uint64_t freed = o.refs[4];
    drop(&o, 4);
    verify(&o);
    assert_int_equal(add(&o, 4, RECORD_LEN), ST_OK);
#ifdef GC_ARENA_GUARDED
    assert_int_not_equal(o.refs[4], freed);
#else
    assert_int_equal(o.refs[4], freed);
    assert_int_equal(stats_of(&o).dead_bytes, 0);
    freed = o.refs[19];
    drop(&o, 19); /* the last one: the space simply ends earlier */
    assert_int_equal(stats_of(&o).dead_bytes, 0);
    assert_int_equal(add(&o, 19, RECORD_LEN + 20), ST_OK);
    assert_int_equal(o.refs[19], freed);
#endif
    verify(&o);
    owner_deinit(&o);
}

#ifndef GC_ARENA_GUARDED

/* ---- overhead ---- */

static void a_tiny_arena_is_cheap(void **state) {
    struct owner o;
    owner_init(&o, CHUNK, 10);
    assert_int_equal(account_bytes(ACCOUNT_ARENA), 0);
    fill(&o, 0, 10, RECORD_LEN);
    size_t beside = account_bytes(ACCOUNT_ARENA) - stats_of(&o).reserved_bytes;
    assert_true(beside < 100);
    assert_true(stats_of(&o).reserved_bytes <= 1024);
    for (uint64_t key = 0; key < 10; key++) {
        drop(&o, key);
    }
    verify(&o);
    owner_deinit(&o);
}

/* Idle bytes stay near 1/8 of the arena or 8 records, whichever is more, for every length and size.
 */
static void growth_leaves_little_idle(void **state) {
    static const size_t lens[] = {11, 34, 100, 333, 1000, 3333, 20000, 65000};
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        struct owner o;
        size_t count = 3 * CHUNK / 2 / lens[i];
        owner_init(&o, CHUNK, count);
        for (size_t key = 0; key < count; key++) {
            assert_int_equal(add(&o, key, lens[i]), ST_OK);
            struct arena_stats stats = stats_of(&o);
            size_t idle = stats.live_bytes * 23 / 100 + 9 * lens[i] + 1024;
            if (stats.reserved_bytes < CHUNK) {
                assert_true(stats.reserved_bytes <= stats.live_bytes + idle);
            }
        }
        verify(&o);
        owner_deinit(&o);
    }
}

static void the_ladder_moves_into_a_chunk_step_by_step(void **state) {
    struct owner o;
    size_t count = CHUNK / RECORD_LEN + 2000;
    owner_init(&o, CHUNK, count);
    fill(&o, 0, count, RECORD_LEN);
    for (uint64_t key = 5; key < 40; key += 3) {
        drop(&o, key);
    }
    assert_true(arena_wants_evacuation(&o.arena));
    size_t steps = 0;
    while (arena_evacuate(&o.arena, 4)) {
        if (steps % 61 == 0) {
            verify(&o);
        }
        if (steps % 7 == 3) { /* the lists work in the middle of it */
            assert_int_equal(add(&o, 5 + steps % 5 * 3, RECORD_LEN), ST_OK);
            drop(&o, 5 + steps % 5 * 3);
        }
        steps++;
    }
    /* paced: a step for every 256 bytes, and one for each block */
    assert_true(steps > CHUNK / 512 && steps <= CHUNK / 256 + 110);
    assert_int_equal(stats_of(&o).units, 2);
    assert_int_equal(stats_of(&o).reserved_bytes, 2 * CHUNK);
    assert_int_equal(o.relocated, 0);
    assert_false(arena_wants_evacuation(&o.arena));
    verify(&o);
    owner_deinit(&o);
}

static void can_be_freed_in_the_middle_of_the_move(void **state) {
    for (size_t steps = 0; steps < CHUNK / 256 + 110; steps += CHUNK / 2048 + 1) {
        struct owner o;
        size_t count = CHUNK / RECORD_LEN + 2000;
        owner_init(&o, CHUNK, count);
        fill(&o, 0, count, RECORD_LEN);
        for (size_t i = 0; i < steps; i++) {
            arena_evacuate(&o.arena, 1);
        }
        while (!arena_deinit_step(&o.arena, 1)) {
        }
        struct pages_stats stats;
        pages_get_stats(o.pages, &stats);
        assert_int_equal(stats.chunks, 0);
        owner_deinit(&o);
    }
}

/* ---- evacuation ---- */

static void evacuation_starts_at_a_fifth_and_stops(void **state) {
    struct owner o;
    owner_init(&o, (size_t)64 << 10, 20000);
    fill(&o, 0, 20000, RECORD_LEN);
    while (arena_evacuate(&o.arena, 64)) {
    }
    assert_int_equal(o.relocated, 0);
    uint64_t key = 0;
    for (; !arena_wants_evacuation(&o.arena); key += 2) {
        drop(&o, key);
    }
    struct arena_stats stats = stats_of(&o);
    assert_true(stats.dead_bytes > stats.live_bytes / 5 &&
                stats.dead_bytes < stats.live_bytes / 5 + 2048);
    size_t calls = 0;
    for (size_t before = 0; arena_evacuate(&o.arena, 8); calls++) {
        assert_true(o.relocated - before <= 8); /* bounded */
        before = o.relocated;
    }
    verify(&o);
    assert_true(o.prefetched >= o.relocated && o.relocated > 0);
    assert_false(arena_wants_evacuation(&o.arena));
    stats = stats_of(&o);
    assert_true(stats.reserved_bytes <= stats.live_bytes * 5 / 4 + ((size_t)64 << 10));
    owner_deinit(&o);
}

static void nothing_moves_in_a_calm_until_half_is_dead(void **state) {
    struct owner o;
    owner_init(&o, (size_t)64 << 10, 20000);
    fill(&o, 0, 20000, RECORD_LEN);
    while (arena_evacuate(&o.arena, 64)) {
    }
    calm_set(true);
    uint64_t key = 0;
    for (struct arena_stats stats = stats_of(&o); stats.dead_bytes <= stats.live_bytes / 2;
         stats = stats_of(&o)) {
        assert_false(arena_evacuate(&o.arena, 8));
        drop(&o, key);
        key += 2;
    }
    assert_int_equal(o.relocated, 0);
    while (stats_of(&o).dead_bytes > stats_of(&o).live_bytes / 2 + 2048) {
        assert_true(arena_evacuate(&o.arena, 8));
    }
    while (arena_evacuate(&o.arena, 8)) {
    }
    struct arena_stats held = stats_of(&o);
    assert_true(held.dead_bytes > held.live_bytes / 3); /* no further than it must */
    calm_set(false);
    while (arena_evacuate(&o.arena, 8)) {
    }
    assert_false(arena_wants_evacuation(&o.arena));
    verify(&o);
    owner_deinit(&o);
}

static void a_failed_relocation_is_tried_again(void **state) {
    struct owner o;
    owner_init(&o, (size_t)64 << 10, 10000);
    fill(&o, 0, 10000, RECORD_LEN);
    for (uint64_t key = 0; key < 10000; key += 3) {
        drop(&o, key);
    }
    while (arena_evacuate(&o.arena, 8) && o.arena.victim == UINT32_MAX) {
    }
    o.no_memory = true;
    for (int i = 0; i < 5; i++) {
        while (arena_evacuate(&o.arena, 8)) { /* dead records only */
        }
        verify(&o);
        assert_true(arena_wants_evacuation(&o.arena));
    }
    o.no_memory = false;
    while (arena_evacuate(&o.arena, 8)) {
    }
    assert_false(arena_wants_evacuation(&o.arena));
    verify(&o);
    owner_deinit(&o);
}

static void a_shrunken_collection_gives_its_chunks_back(void **state) {
    struct owner o;
    owner_init(&o, CHUNK, 300000);
    fill(&o, 0, 300000, RECORD_LEN);
    while (arena_evacuate(&o.arena, 64)) {
    }
    assert_true(stats_of(&o).reserved_bytes >= 5 * CHUNK);
    for (uint64_t key = 0; key < 300000; key++) {
        if (key % 1000 != 7) {
            drop(&o, key);
        }
        if (arena_wants_evacuation(&o.arena)) {
            arena_evacuate(&o.arena, 4);
        }
    }
    while (arena_evacuate(&o.arena, 64)) {
    }
    verify(&o);
    struct arena_stats stats = stats_of(&o);
    assert_int_equal(stats.live_bytes, 300 * RECORD_LEN);
    assert_true(stats.reserved_bytes < 16384);
    fill(&o, 0, 7, RECORD_LEN);
    verify(&o);
    owner_deinit(&o);
}

#ifndef GC_SANITIZE
static size_t resident_bytes(void) {
    size_t kb = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        sscanf(line, "VmRSS: %zu kB", &kb);
    }
    fclose(f);
    return kb * 1024;
}

/* OS pages of [ptr, ptr + bytes) that are resident. */
static size_t resident_pages(void *ptr, size_t bytes) {
    static unsigned char is_there[CHUNK / 4096];
    size_t os_page = (size_t)sysconf(_SC_PAGESIZE), count = 0;
    assert_true(bytes / os_page <= sizeof(is_there));
    assert_int_equal(mincore(ptr, bytes, is_there), 0);
    for (size_t i = 0; i < bytes / os_page; i++) {
        count += is_there[i] & 1;
    }
    return count;
}

static bool kernel_populates(void) {
    void *ptr = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(ptr, MAP_FAILED);
    bool can = madvise(ptr, 4096, 23 /* MADV_POPULATE_WRITE */) == 0;
    munmap(ptr, 4096);
    return can;
}

static void plain_chunks_come_in_steps(void **state) {
    size_t os_page = (size_t)sysconf(_SC_PAGESIZE), each = CHUNK / RECORD_LEN;
    if (!kernel_populates() || os_page > 16384) {
        skip(); /* a kernel before 5.14, or steps of no more than an OS page or two */
    }
    struct owner o;
    owner_init(&o, CHUNK, 4 * each);
    size_t key = 0;
    for (; key < 2 * each; key++) { /* past the blocks, into chunks */
        assert_int_equal(add(&o, key, RECORD_LEN), ST_OK);
    }
    size_t reserved = stats_of(&o).reserved_bytes;
    while (stats_of(&o).reserved_bytes <= reserved) { /* to the first record of a new one */
        assert_int_equal(add(&o, key++, RECORD_LEN), ST_OK);
    }
    char *chunk =
        (char *)((uintptr_t)arena_at(&o.arena, o.refs[key - 1]) & ~(uintptr_t)(CHUNK - 1));
    assert_int_equal(resident_pages(chunk, CHUNK), 32768 / os_page);
    size_t records = CHUNK / 2 / RECORD_LEN;
    for (size_t i = 0; i < records; i++) {
        assert_int_equal(add(&o, key++, RECORD_LEN), ST_OK);
    }
    size_t used_pages = CHUNK / 2 / os_page, resident = resident_pages(chunk, CHUNK);
    assert_true(resident >= used_pages && resident <= used_pages + 2 * 32768 / os_page);
    verify(&o);
    owner_deinit(&o);
}

static void memory_really_goes_back(void **state) {
    struct owner o;
    size_t count = 1000000;
    owner_init(&o, CHUNK, count);
    account_purge();
    size_t before = resident_bytes();
    fill(&o, 0, count, RECORD_LEN);
    size_t full = resident_bytes();
    assert_true(full - before > count * RECORD_LEN / 20 * 19);
    for (uint64_t key = 0; key < count; key++) {
        if (key % 10 != 0) {
            drop(&o, key);
            if (arena_wants_evacuation(&o.arena)) {
                arena_evacuate(&o.arena, 4);
            }
        }
    }
    while (arena_evacuate(&o.arena, 64)) {
    }
    account_purge();
    size_t after = resident_bytes();
    print_message("resident above the start: full %zu, a tenth left %zu\n", full - before,
                  after - before);
    assert_true(after - before < count * RECORD_LEN / 10 * 5 / 4 + 6 * CHUNK / 4);
    verify(&o);
    owner_deinit(&o);
}
#endif

/* ---- failure ---- */

/* At every point where an allocation needs memory: fail the 1st, 2nd, 3rd... one until it succeeds.
 */
static void each_failed_allocation_changes_nothing(void **state) {
    struct owner o;
    size_t count = 2 * 65536 / RECORD_LEN, failures = 0;
    owner_init(&o, (size_t)64 << 10, count);
    for (size_t key = 0; key < count; key++) {
        for (size_t nth = 1;; nth++) {
            struct arena before = o.arena;
            size_t bytes = account_bytes(ACCOUNT_ARENA);
            account_fail_after(nth);
            enum status st = add(&o, key, RECORD_LEN);
            account_fail_after(0);
            if (st == ST_OK) {
                break;
            }
            failures++;
            assert_int_equal(st, ST_NOMEM);
            if (o.arena.cap == before.cap) { /* a table that grew is kept for the next try */
                assert_memory_equal(&before, &o.arena, sizeof(before));
                assert_int_equal(account_bytes(ACCOUNT_ARENA), bytes);
            }
            verify(&o);
        }
    }
    assert_true(failures > 20);
    account_fail_after(
        1); /* free never fails: without memory for list heads the record is only counted */
    for (size_t key = 0; key < count; key += 2) {
        drop(&o, key);
    }
    account_fail_after(0);
    verify(&o);
    assert_true(stats_of(&o).dead_bytes > 0);
    while (arena_evacuate(&o.arena, 64)) {
    }
    verify(&o);
    owner_deinit(&o);
}

static void refs_reach_beyond_32_bits(void **state) {
    struct owner o;
    owner_init(&o, CHUNK, 5000);
    fill(&o, 0, 1000, RECORD_LEN);
    arena_skip_to(&o.arena, UINT64_C(1) << 32);
    fill(&o, 1000, 5000, RECORD_LEN);
    assert_int_equal(o.refs[1000], UINT64_C(1) << 32);
    for (uint64_t key = 1000; key < 5000; key += 2) {
        drop(&o, key);
    }
    verify(&o);
    fill(&o, 1000, 1001, RECORD_LEN);
    assert_true(o.refs[1000] > UINT32_MAX); /* from the free list: links are 40 bits */
    while (arena_evacuate(&o.arena, 64)) {
    }
    verify(&o);
    owner_deinit(&o);
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_wastes_little_and_has_few_classes),
        cmocka_unit_test(refuses_lengths_out_of_range),
        cmocka_unit_test(takes_back_what_was_freed_first),
#ifndef GC_ARENA_GUARDED
        cmocka_unit_test(a_tiny_arena_is_cheap),
        cmocka_unit_test(growth_leaves_little_idle),
        cmocka_unit_test(the_ladder_moves_into_a_chunk_step_by_step),
        cmocka_unit_test(can_be_freed_in_the_middle_of_the_move),
        cmocka_unit_test(evacuation_starts_at_a_fifth_and_stops),
        cmocka_unit_test(nothing_moves_in_a_calm_until_half_is_dead),
        cmocka_unit_test(a_failed_relocation_is_tried_again),
        cmocka_unit_test(a_shrunken_collection_gives_its_chunks_back),
#ifndef GC_SANITIZE
        cmocka_unit_test(memory_really_goes_back),
        cmocka_unit_test(plain_chunks_come_in_steps),
#endif
        cmocka_unit_test(each_failed_allocation_changes_nothing),
        cmocka_unit_test(refs_reach_beyond_32_bits),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
