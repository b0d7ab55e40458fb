/* SPDX-License-Identifier: BSD-3-Clause */
/* Records, free lists and units. Evacuation is in arena_evacuate.c, walks and checks in
 * arena_check.c. */
#include "mem/arena.h"

#ifndef GC_ARENA_GUARDED

#include <string.h>

#include "arena_priv.h"
#include "mem/account.h"

/* A ladder unit may waste 1/12 of itself behind its last record (and to jemalloc's rounding) before
 * a longer one is tried, and is grown to at most 8 records for that. */
#define UNIT_WASTE_SHARE 12
#define UNIT_RECORDS_MAX 8

/* Plain chunks are made present this much at a time: faults cost more than the records, and the whole chunk at once would be a
 * stall, and resident before it is used. */
#define WARM_BYTES ((uint64_t)32 << 10)

/* Pop looks past this many records of the victim, then gives up the list for this once. */
#define POP_TRIES 8

static_assert(sizeof(struct arena_unit) == 8, "16 bytes a slot");

/* ---- sizes ---- */

/* The longest class not above len. */
static size_t round_down(size_t len) {
    if (len <= CLASS_FINE_MAX) {
        return len & ~(size_t)(ARENA_UNIT - 1);
    }
    return len & ~(((size_t)1 << class_step_shift(len)) - 1);
}

/* ---- free lists ---- */

/* False when there is no memory for the heads: the record stays dead and unlisted. */
static bool cover_class(struct arena *a, size_t class) {
    if (LIKELY(class < a->heads_count)) {
        return true;
    }
    size_t bytes = account_good_size((class + 1) * sizeof(a->heads[0]));
    uint64_t *heads = account_realloc(ACCOUNT_ARENA, a->heads, bytes);
    if (heads == NULL) {
        return false;
    }
    size_t count = bytes / sizeof(heads[0]);
    if (count > CLASS_COUNT) {
        count = CLASS_COUNT;
    }
    for (size_t i = a->heads_count; i < count; i++) {
        heads[i] = ARENA_LINK_NONE;
    }
    a->heads = heads;
    a->heads_count = (uint16_t)count;
    return true;
}

static void link_dead(struct arena *a, uint64_t ref, size_t bytes) {
    size_t class = class_of(bytes);
    if (bytes < DEAD_HEADER_BYTES || !cover_class(a, class)) {
        return;
    }
    uint8_t *p = arena_at(a, ref);
    uint64_t next = a->heads[class];
    dead_set_listed(p, true);
    dead_set_link(DEAD_NEXT(p), next);
    dead_set_link(DEAD_PREV(p), ARENA_LINK_NONE);
    if (next != ARENA_LINK_NONE) {
        uint8_t *q = arena_at(a, next);
        dead_set_link(DEAD_PREV(q), ref);
    }
    a->heads[class] = ref;
}

void arena_unlink(struct arena *a, uint64_t ref) {
    uint8_t *p = arena_at(a, ref);
    uint64_t next = dead_get_link(DEAD_NEXT(p));
    uint64_t prev = dead_get_link(DEAD_PREV(p));
    if (next != ARENA_LINK_NONE) {
        uint8_t *q = arena_at(a, next);
        dead_set_link(DEAD_PREV(q), prev);
    }
    if (prev != ARENA_LINK_NONE) {
        uint8_t *q = arena_at(a, prev);
        dead_set_link(DEAD_NEXT(q), next);
    } else {
        a->heads[class_of(dead_bytes(p))] = next;
    }
    dead_set_listed(p, false);
}

/* A dead record of this size outside the victim, off its list; ARENA_NONE when there is none. */
static uint64_t pop_dead(struct arena *a, size_t bytes) {
    size_t class = class_of(bytes);
    if (class >= a->heads_count) {
        return ARENA_NONE;
    }
    for (int tries = 0; tries < POP_TRIES; tries++) {
        uint64_t ref = a->heads[class];
        if (ref == ARENA_LINK_NONE) {
            return ARENA_NONE;
        }
        arena_unlink(a, ref);
        if (LIKELY(a->victim == ARENA_NO_UNIT || unit_of(a, ref * ARENA_UNIT) != a->victim)) {
            return ref;
        }
    }
    return ARENA_NONE;
}

void arena_fill_dead(struct arena *a, uint64_t off, size_t len) {
    size_t max = arena_record_max(a);
    while (len > 0) {
        size_t bytes = round_down(len < max ? len : max);
        dead_mark(offset_at(a, off), bytes);
        link_dead(a, off / ARENA_UNIT, bytes);
        off += bytes;
        len -= bytes;
    }
}

/* ---- units ---- */

size_t arena_unit_slots(const struct arena *a, uint32_t head) {
    const struct arena_unit *units = arena_units(a);
    size_t end = head + 1;
    while (end < a->slots && units[end].live == ARENA_CONTINUES && units[end].used == head) {
        end++;
    }
    return end - head;
}

static size_t span_bytes(const struct arena *a, size_t slot, size_t count) {
    size_t last = slot + count - 1;
    return (size_t)(slot_start(a, last) - slot_start(a, slot)) + slot_bytes(a, last);
}

/* Room for `slots` slots in the table; the new ones are free. */
static bool grow_table(struct arena *a, size_t slots) {
    if (slots <= a->cap) {
        return true;
    }
    size_t each = sizeof(uintptr_t) + sizeof(struct arena_unit);
    size_t want = a->cap + a->cap / 8;
    size_t cap = account_good_size((want > slots ? want : slots) * each) / each;
    if (cap > UINT32_MAX - 1) {
        return false;
    }
    uintptr_t *base = account_alloc(ACCOUNT_ARENA, cap * each);
    if (base == NULL) {
        return false;
    }
    struct arena_unit *units = (struct arena_unit *)(void *)(base + cap);
    memset(base, 0, cap * each);
    if (a->slots > 0) {
        memcpy(base, a->base, a->slots * sizeof(base[0]));
        memcpy(units, arena_units(a), a->slots * sizeof(units[0]));
    }
    account_free(ACCOUNT_ARENA, a->base);
    a->base = base;
    a->cap = (uint32_t)cap;
    return true;
}

static bool slot_is_free(const struct arena *a, size_t slot) {
    return slot >= a->slots || a->base[slot] == 0;
}

/* How many of the free ladder slots from `slot` on one unit for records of len bytes should cover.
 * 0: they are too few. */
static size_t plan_ladder_unit(const struct arena *a, size_t slot, size_t len) {
    size_t bytes = 0, best = 0, best_bytes = 1, best_waste = 1;
    for (size_t count = 1; slot + count <= a->ladder_slots; count++) {
        if (!slot_is_free(a, slot + count - 1)) {
            break;
        }
        bytes += slot_bytes(a, slot + count - 1);
        if (bytes < len) {
            continue;
        }
        size_t waste = account_good_size(bytes) - bytes / len * len;
        if (best == 0 || waste * best_bytes < best_waste * bytes) {
            best = count;
            best_bytes = bytes;
            best_waste = waste;
        }
        if (waste * UNIT_WASTE_SHARE <= bytes || bytes >= len * UNIT_RECORDS_MAX) {
            break;
        }
    }
    return best;
}

bool arena_ladder_in_use(const struct arena *a) {
    for (size_t i = 0; i < a->ladder_slots; i++) {
        if (!slot_is_free(a, i)) {
            return true;
        }
    }
    return false;
}

/* All of the ladder is free and the collection is too large for blocks: take it as one chunk. */
static bool ladder_as_chunk(const struct arena *a, size_t slot) {
    return slot == 0 && a->chunks != 0 && a->live_bytes >= arena_chunk_bytes(a) / 2 &&
           !arena_ladder_in_use(a);
}

/* The lowest free place for a unit that holds records of len bytes: its slot, and how many slots it
 * covers. */
static size_t plan_unit(const struct arena *a, size_t len, size_t *count) {
    size_t slot = a->first_free;
    if (slot < a->ladder_slots && (a->ladder == LADDER_WANTED || a->ladder == LADDER_MOVING)) {
        slot = a->ladder_slots;
    }
    for (; slot < a->ladder_slots; slot++) {
        if (!slot_is_free(a, slot)) {
            continue;
        }
        if (ladder_as_chunk(a, slot)) {
            *count = a->ladder_slots;
            return slot;
        }
        *count = plan_ladder_unit(a, slot, len);
        if (*count != 0) {
            return slot;
        }
    }
    while (!slot_is_free(a, slot)) {
        slot++;
    }
    *count = 1;
    return slot;
}

void arena_close_open(struct arena *a) {
    if (a->open == ARENA_NO_UNIT) {
        return;
    }
    struct arena_unit *unit = &arena_units(a)[a->open];
    unit->used = (uint32_t)(a->bump - slot_start(a, a->open)) | (unit->used & ARENA_UNIT_HUGE);
    a->open = ARENA_NO_UNIT;
    a->bump = a->bump_end = 0;
}

/* Let the open unit, a plain chunk, take records up to `end`. */
static void warm_to(struct arena *a, uint64_t end) {
    pages_warm(offset_at(a, a->bump_end), (size_t)(end - a->bump_end));
    a->bump_end = end;
}

/* More of the open unit for a record of len bytes. False: it is at its end, or not a plain chunk. */
static bool warm_more(struct arena *a, size_t len) {
    uint64_t chunk_bytes = arena_chunk_bytes(a);
    if (a->open == ARENA_NO_UNIT || a->bump_end % chunk_bytes == 0 ||
        (a->open < a->ladder_slots && a->ladder != LADDER_WHOLE) ||
        (arena_units(a)[a->open].used & ARENA_UNIT_HUGE) != 0) {
        return false;
    }
    uint64_t unit_end = (a->bump_end / chunk_bytes + 1) * chunk_bytes;
    uint64_t end = a->bump_end + (len + WARM_BYTES - 1) / WARM_BYTES * WARM_BYTES;
    warm_to(a, end < unit_end ? end : unit_end);
    return a->bump_end - a->bump >= len;
}

/* Memory for a unit; *huge says whether it is on the OS pages asked for. */
static void *unit_memory(struct arena *a, bool chunk, size_t bytes, bool *huge) {
    enum pages_kind kind = PAGES_PLAIN;
    void *memory = chunk ? pages_acquire(a->pages, &kind) : account_alloc(ACCOUNT_ARENA, bytes);
    *huge = kind != PAGES_PLAIN;
    return memory;
}

/* Open the unit that the next record of len bytes goes into. */
static NOINLINE enum status open_unit(struct arena *a, size_t len) {
    size_t count, slot = plan_unit(a, len, &count);
    bool chunk = slot >= a->ladder_slots || count == a->ladder_slots;
    size_t bytes = span_bytes(a, slot, count);
    if (slot_start(a, slot) + bytes > (UINT64_C(1) << ARENA_REF_BITS) * ARENA_UNIT - ARENA_UNIT ||
        !grow_table(a, slot + count)) {
        return ST_NOMEM;
    }
    bool huge;
    void *memory = unit_memory(a, chunk, bytes, &huge);
    if (memory == NULL) {
        return ST_NOMEM;
    }
    POISON(memory, bytes);
    uint32_t previous = a->open;
    arena_close_open(a);
    if (slot + count > a->slots) {
        a->slots = (uint32_t)(slot + count);
    }
    uint32_t head = (uint32_t)slot;
    struct arena_unit *units = arena_units(a);
    for (size_t i = slot; i < slot + count; i++) {
        a->base[i] = (uintptr_t)memory - (uintptr_t)slot_start(a, slot);
        units[i] = (struct arena_unit){.live = ARENA_CONTINUES, .used = head};
    }
    units[head] = (struct arena_unit){.live = 0, .used = huge ? ARENA_UNIT_HUGE : 0};
    if (chunk && slot == 0) {
        a->ladder = LADDER_WHOLE;
        a->ladder_base = (uintptr_t)memory;
        a->ladder_huge = huge;
    } else if (chunk && a->ladder == LADDER_BLOCKS && arena_ladder_in_use(a)) {
        a->ladder = LADDER_WANTED;
        a->working = true;
    }
    a->open = head;
    a->bump = slot_start(a, slot);
    a->bump_end = a->bump + bytes;
    if (chunk && !huge) {
        a->bump_end = a->bump;
        warm_to(a, a->bump + (len + WARM_BYTES - 1) / WARM_BYTES * WARM_BYTES);
    }
    a->units++;
    a->chunks += chunk;
    a->huge_chunks += chunk && huge;
    if (slot == a->first_free) {
        a->first_free = (uint32_t)(slot + count);
    }
    if (previous != ARENA_NO_UNIT && unit_used(a, previous) == 0) {
        arena_release_unit(
            a, previous); /* emptied by frees at its end, and too small for this record */
    }
    return ST_OK;
}

static void drop_tables(struct arena *a) {
    account_free(ACCOUNT_ARENA, a->base);
    account_free(ACCOUNT_ARENA, a->heads);
    struct arena fresh;
    arena_init(&fresh, a->ops, a->owner, a->pages);
    *a = fresh;
}

void arena_release_unit(struct arena *a, uint32_t head) {
    struct arena_unit *units = arena_units(a);
    size_t count = arena_unit_slots(a, head);
    size_t used = unit_used(a, head);
    bool chunk = head >= a->ladder_slots || a->ladder == LADDER_WHOLE;
    void *memory = offset_at(a, slot_start(a, head));
    if (head == a->open) {
        arena_close_open(a);
    }
    UNPOISON(memory, span_bytes(a, head, count));
    if (chunk) {
        a->chunks--;
        a->huge_chunks -= (units[head].used & ARENA_UNIT_HUGE) != 0;
        pages_release(a->pages, memory);
    } else {
        account_free(ACCOUNT_ARENA, memory);
    }
    if (chunk && head == 0) {
        a->ladder = LADDER_BLOCKS;
        a->ladder_base = 0;
        a->ladder_huge = false;
    }
    a->live_bytes -= units[head].live;
    a->used_bytes -= used;
    memset(&a->base[head], 0, count * sizeof(a->base[0]));
    memset(&units[head], 0, count * sizeof(units[0]));
    a->units--;
    if (head < a->first_free) {
        a->first_free = head;
    }
    while (a->slots > 0 && a->base[a->slots - 1] == 0) {
        a->slots--;
    }
    if (a->units == 0) {
        drop_tables(a);
    }
}

/* ---- public ---- */

void arena_init(struct arena *a, const struct arena_ops *ops, void *owner, struct pages *pages) {
    size_t chunk_bytes = pages_chunk_bytes(pages);
    unsigned shift = 63 - (unsigned)__builtin_clzll((unsigned long long)chunk_bytes);
    *a = (struct arena){
        .ops = ops,
        .owner = owner,
        .pages = pages,
        .chunk_shift = (uint8_t)shift,
        .ladder_slots = (uint16_t)(1 + 8 * (shift - 10)), /* 2^10 is ARENA_LADDER_FIRST */
        .open = ARENA_NO_UNIT,
        .victim = ARENA_NO_UNIT,
    };
}

enum status arena_alloc(struct arena *a, size_t len, uint64_t *ref) {
    if (UNLIKELY(len == 0 || len > arena_record_max(a))) {
        return ST_RANGE;
    }
    size_t bytes = arena_round(len);
    uint64_t found = pop_dead(a, bytes);
    if (found == ARENA_NONE) {
        if (UNLIKELY(a->bump_end - a->bump < bytes)) {
            enum status st = warm_more(a, bytes) ? ST_OK : open_unit(a, bytes);
            if (st != ST_OK) {
                return st;
            }
        }
        found = a->bump / ARENA_UNIT;
        a->bump += bytes;
        a->used_bytes += bytes;
        arena_units(a)[a->open].live += (uint32_t)bytes;
    } else {
        arena_units(a)[unit_of(a, found * ARENA_UNIT)].live += (uint32_t)bytes;
    }
    a->live_bytes += bytes;
    UNPOISON(arena_at(a, found), len);
    *ref = found;
    return ST_OK;
}

#ifdef GC_SANITIZE
void arena_refit(struct arena *a, uint64_t ref, size_t len) {
    uint8_t *p = arena_at(a, ref);
    UNPOISON(p, len);
    POISON(p + len, arena_round(len) - len);
}
#endif

void arena_free(struct arena *a, uint64_t ref, size_t len) {
    size_t bytes = arena_round(len);
    uint64_t off = ref * ARENA_UNIT;
    uint8_t *p = arena_at(a, ref);
    uint32_t head = unit_of(a, off);
    struct arena_unit *unit = &arena_units(a)[head];
    assert(!dead_is(p) && unit->live >= bytes);
    unit->live -= (uint32_t)bytes;
    a->live_bytes -= bytes;
    POISON(p, bytes);
    if (off + bytes == a->bump && head == a->open) {
        a->bump = off;
        a->used_bytes -= bytes;
        return;
    }
    dead_mark(p, bytes);
    if (LIKELY(head != a->victim)) {
        link_dead(a, ref, bytes);
    }
}

bool arena_deinit_step(struct arena *a, size_t max_units) {
    a->victim = ARENA_NO_UNIT;
    a->working = false;
    if (a->ladder == LADDER_WANTED) {
        a->ladder = LADDER_BLOCKS;
    }
    arena_abort_move(a);
    for (; a->units > 0 && max_units > 0; max_units--) {
        size_t last = a->slots - 1;
        struct arena_unit *unit = &arena_units(a)[last];
        arena_release_unit(a, unit->live == ARENA_CONTINUES ? unit->used : (uint32_t)last);
    }
    if (a->units > 0) {
        return false;
    }
    drop_tables(a); /* there may be some without a unit: the first one's memory was not to be had */
    return true;
}

void arena_deinit(struct arena *a) {
    arena_deinit_step(a, SIZE_MAX);
}

void arena_skip_to(struct arena *a, uint64_t ref) {
    uint64_t off = ref * ARENA_UNIT;
    assert(off >= arena_chunk_bytes(a) && off % arena_chunk_bytes(a) == 0);
    arena_close_open(a);
    a->first_free = (uint32_t)arena_slot(a, off);
    assert(a->first_free >= a->slots);
}

#endif
