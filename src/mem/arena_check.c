/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks over an arena: for its owner, for INFO, and the check of every invariant. */
#include "mem/arena.h"

#ifndef GC_ARENA_GUARDED

#include <stdio.h>
#include <stdlib.h>

#include "arena_priv.h"
#include "mem/account.h"

#define CHECK(cond) check_that((cond), #cond, __LINE__)

static void check_that(bool good, const char *text, int line) {
    if (UNLIKELY(!good)) {
        fprintf(stderr, "arena_check: line %d: %s\n", line, text);
        abort();
    }
}

void arena_get_stats(const struct arena *a, struct arena_stats *out) {
    *out = (struct arena_stats){
        .live_bytes = a->live_bytes,
        .dead_bytes = a->used_bytes - a->live_bytes,
        .reserved_bytes = (size_t)a->chunks << a->chunk_shift,
        .huge_bytes = (size_t)a->huge_chunks << a->chunk_shift,
        .units = a->units,
    };
    for (uint32_t i = 0; i < a->slots && i < a->ladder_slots; i++) {
        if (unit_exists(a, i) && a->base[i] != a->ladder_base) {
            size_t bytes = (size_t)(slot_start(a, i + arena_unit_slots(a, i)) - slot_start(a, i));
            out->reserved_bytes += account_good_size(bytes);
        }
    }
}

void arena_each(const struct arena *a, void (*fn)(void *arg, uint64_t ref, void *record),
                void *arg) {
    for (uint32_t head = 0; head < a->slots; head++) {
        if (!unit_exists(a, head)) {
            continue;
        }
        uint64_t off = slot_start(a, head), end = off + unit_used(a, head);
        while (off < end) {
            uint8_t *p = offset_at(a, off);
            if (dead_is(p)) {
                off += dead_bytes(p);
            } else {
                size_t len = a->ops->record_len(p);
                fn(arg, off / ARENA_UNIT, p);
                off += arena_round(len);
            }
        }
    }
}

/* Recount one unit; the listed dead records in it. */
static size_t check_unit(const struct arena *a, uint32_t head) {
    uint64_t off = slot_start(a, head), end = off + unit_used(a, head);
    size_t live = 0, listed = 0;
    CHECK(end <= slot_start(a, head + arena_unit_slots(a, head)));
    while (off < end) {
        const uint8_t *p = offset_at(a, off);
        size_t bytes;
        if (dead_is(p)) {
            bytes = dead_bytes(p);
            listed += dead_is_listed(p);
            CHECK(!(dead_is_listed(p) && head == a->victim && off < a->walk));
        } else {
            bytes = arena_round(a->ops->record_len(p));
            live += bytes;
        }
        CHECK(bytes > 0);
        off += bytes;
    }
    CHECK(off == end);
    CHECK(live == arena_units(a)[head].live);
    return listed;
}

static size_t check_lists(const struct arena *a) {
    size_t listed = 0;
    for (size_t class = 0; class < a->heads_count; class ++) {
        uint64_t prev = ARENA_LINK_NONE;
        for (uint64_t ref = a->heads[class]; ref != ARENA_LINK_NONE; listed++) {
            const uint8_t *p = arena_at(a, ref);
            CHECK(dead_is_listed(p));
            CHECK(class_of(dead_bytes(p)) == class);
            CHECK(dead_get_link(DEAD_PREV(p)) == prev);
            prev = ref;
            ref = dead_get_link(DEAD_NEXT(p));
        }
    }
    return listed;
}

static void check_slots(const struct arena *a, uint32_t head) {
    size_t count = arena_unit_slots(a, head);
    for (size_t i = head; i < head + count; i++) {
        CHECK(a->base[i] == a->base[head]);
        CHECK(unit_of(a, slot_start(a, i)) == head);
        CHECK(arena_slot(a, slot_start(a, i)) == i);
        CHECK(arena_slot(a, slot_start(a, i) + slot_bytes(a, i) - 1) == i);
    }
}

void arena_check(const struct arena *a) {
    uint64_t live = 0, used = 0;
    size_t units = 0, listed = 0, chunks = 0;
    CHECK(a->slots <= a->cap);
    CHECK(a->slots == 0 || a->base[a->slots - 1] != 0);
    for (uint32_t head = 0; head < a->slots; head++) {
        if (!unit_exists(a, head)) {
            continue;
        }
        check_slots(a, head);
        listed += check_unit(a, head);
        live += arena_units(a)[head].live;
        used += unit_used(a, head);
        units++;
        chunks += head >= a->ladder_slots;
    }
    CHECK(live == a->live_bytes);
    CHECK(used == a->used_bytes);
    CHECK(units == a->units);
    CHECK(chunks + (a->ladder_base != 0) == a->chunks);
    CHECK((a->ladder_base != 0) == (a->ladder == LADDER_MOVING || a->ladder == LADDER_WHOLE));
    CHECK(a->huge_chunks <= a->chunks);
    CHECK(check_lists(a) == listed);
    CHECK(a->victim == ARENA_NO_UNIT || (a->victim != a->open && unit_exists(a, a->victim)));
    CHECK(a->open == ARENA_NO_UNIT ? a->bump_end == 0 : a->bump <= a->bump_end);
}

#endif
