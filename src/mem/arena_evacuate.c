/* SPDX-License-Identifier: BSD-3-Clause */
/* Giving memory back: the unit with the largest dead share is emptied a few records at a time. And,
 * in the same small steps, the move of the ladder's blocks into one chunk once the collection has
 * outgrown them. */
#include "mem/arena.h"

#ifndef GC_ARENA_GUARDED

#include <string.h>

#include "arena_priv.h"
#include "mem/account.h"
#include "mem/calm.h"

/* Once started, evacuation goes on until dead bytes are down to live / 6: it runs in bursts rather
 * than at every free. */
#define STOP_SHARE (ARENA_DEAD_SHARE + 1)

/* In a calm nothing moves until dead bytes pass live / 2. */
#define CALM_SHARE 2

/* Refs gathered before they are relocated, so that the owner's prefetches overlap. */
#define BATCH 16

/* Dead records that one call may pass for each live one it may move. */
#define DEAD_PER_RECORD 16

/* Bytes of the ladder that move for each call of arena_evacuate, on the average: a block of 128 KiB
 * takes ~50 us, so after one 512 calls pass before the next. Moving all of it at once held up a
 * batch of 32 inserts for 1.3 ms. */
#define MOVE_BYTES_PER_CALL 256

/* ---- the ladder's move into a chunk ---- */

/* The whole ladder becomes the unit 0, used up to `end`. */
static void become_whole(struct arena *a, size_t used) {
    struct arena_unit *units = arena_units(a);
    size_t live = 0;
    for (size_t i = 0; i < a->ladder_slots; i++) {
        if (unit_exists(a, i)) {
            live += units[i].live;
            a->units--;
        }
        a->base[i] = a->ladder_base;
        units[i] = (struct arena_unit){.live = ARENA_CONTINUES, .used = 0};
    }
    units[0].live = (uint32_t)live;
    units[0].used = (uint32_t)used | (a->ladder_huge ? ARENA_UNIT_HUGE : 0);
    a->units++;
    a->ladder = LADDER_WHOLE;
    a->walk = 0;
    a->working = false;
}

void arena_abort_move(struct arena *a) {
    if (a->ladder != LADDER_MOVING) {
        return;
    }
    size_t used = 0;
    for (size_t i = 0; i < a->ladder_slots; i++) {
        if (unit_exists(a, i)) {
            used += unit_used(a, (uint32_t)i);
            if (i >= a->walk) {
                account_free(ACCOUNT_ARENA, offset_at(a, slot_start(a, i)));
            }
        }
    }
    become_whole(a, used);
}

static bool begin_move(struct arena *a) {
    enum pages_kind kind;
    void *chunk = pages_acquire(a->pages, &kind);
    if (chunk == NULL) {
        a->ladder = LADDER_BLOCKS; /* asked again when the next chunk is opened */
        a->working = false;
        return false;
    }
    POISON(chunk, arena_chunk_bytes(a));
    a->ladder = LADDER_MOVING;
    a->ladder_base = (uintptr_t)chunk;
    a->ladder_huge = kind != PAGES_PLAIN;
    a->chunks++;
    a->huge_chunks += a->ladder_huge;
    a->walk = 0;
    return true;
}

#ifdef GC_SANITIZE
static void poison_dead(const struct arena *a, uint64_t off, uint64_t end) {
    while (off < end) {
        uint8_t *p = offset_at(a, off);
        size_t len = dead_is(p) ? 0 : a->ops->record_len(p);
        size_t bytes = len == 0 ? dead_bytes(p) : arena_round(len);
        POISON(p + len, bytes - len);
        off += bytes;
    }
}
#endif

/* Move the unit at `head`; what it did not use becomes dead records. Links are refs, so lists stay
 * good. */
static void move_block(struct arena *a, uint32_t head) {
    size_t count = arena_unit_slots(a, head);
    uint64_t start = slot_start(a, head);
    uint64_t end = slot_start(a, head + count);
    size_t used = unit_used(a, head);
    uint8_t *from = offset_at(a, start);
    uint8_t *to = (uint8_t *)(a->ladder_base + start); // NOLINT(performance-no-int-to-ptr)
    UNPOISON(from, used);
    UNPOISON(to, used);
    if (!a->ladder_huge) {
        pages_warm(to, used);
    }
    memcpy(to, from, used);
    account_free(ACCOUNT_ARENA, from);
    for (size_t i = 0; i < count; i++) {
        a->base[head + i] = a->ladder_base;
    }
#ifdef GC_SANITIZE
    poison_dead(a, start, start + used);
#endif
    arena_units(a)[head].used = (uint32_t)(end - start);
    a->used_bytes += (size_t)(end - start) - used;
    arena_fill_dead(a, start + used, (size_t)(end - start) - used);
    a->walk = head + count;
}

/* Free slots between units become one unit of dead records. */
static void fill_gap(struct arena *a, uint32_t slot, size_t next) {
    struct arena_unit *units = arena_units(a);
    size_t bytes = (size_t)(slot_start(a, next) - slot_start(a, slot));
    for (size_t i = slot; i < next; i++) {
        a->base[i] = a->ladder_base;
        units[i] = (struct arena_unit){.live = ARENA_CONTINUES, .used = slot};
    }
    units[slot] = (struct arena_unit){.live = 0, .used = (uint32_t)bytes};
    a->units++;
    a->used_bytes += bytes;
    arena_fill_dead(a, slot_start(a, slot), bytes);
    a->walk = next;
}

/* One block at a time, at most chunk_bytes / 16 = 128 KiB copied (or a longer unit of few large
 * records). */
static bool move_step(struct arena *a) {
    if (a->ladder == LADDER_WANTED && !begin_move(a)) {
        return false;
    }
    if (a->move_wait > 0) {
        a->move_wait--;
        return true;
    }
    size_t slot = (size_t)a->walk, next = slot;
    while (next < a->ladder_slots && a->base[next] == 0) {
        next++;
    }
    if (next == a->ladder_slots) {
        become_whole(a, (size_t)slot_start(a, slot));
        return arena_wants_evacuation(a);
    }
    if (next == slot) {
        move_block(a, (uint32_t)slot);
        a->move_wait =
            (uint32_t)((slot_start(a, a->walk) - slot_start(a, slot)) / MOVE_BYTES_PER_CALL);
    } else {
        fill_gap(a, (uint32_t)slot, next);
    }
    return true;
}

/* ---- the victim ---- */

static bool dead_above(const struct arena *a, uint64_t share) {
    return a->used_bytes - a->live_bytes > a->live_bytes / share + ARENA_DEAD_FLOOR;
}

static size_t unit_bytes(const struct arena *a, uint32_t head) {
    size_t count = arena_unit_slots(a, head);
    size_t last = head + count - 1;
    return (size_t)(slot_start(a, last) - slot_start(a, head)) + slot_bytes(a, last);
}

static void set_victim(struct arena *a, uint32_t head) {
    if (head == a->open) {
        arena_close_open(a);
    }
    a->victim = head;
    a->walk = slot_start(a, head);
    a->working = true;
}

/* The unit with the largest dead share. One pass over 8 bytes a unit: 8192 units, 16 GiB of chunks,
 * are 64 KiB. */
static bool pick_victim(struct arena *a) {
    uint64_t best_dead = 0, best_bytes = 1;
    uint32_t best = ARENA_NO_UNIT;
    for (uint32_t head = 0; head < a->slots; head++) {
        if (!unit_exists(a, head)) {
            continue;
        }
        uint64_t dead = unit_used(a, head) - arena_units(a)[head].live;
        uint64_t bytes = dead == 0 ? 1 : unit_bytes(a, head);
        if (dead * best_bytes > best_dead * bytes) {
            best = head;
            best_dead = dead;
            best_bytes = bytes;
        }
    }
    if (best == ARENA_NO_UNIT) {
        return false;
    }
    set_victim(a, best);
    return true;
}

/* A collection that shrank to less than a quarter of a chunk goes back to ladder blocks. */
static bool pick_last_chunk(struct arena *a) {
    if (a->chunks == 0 || a->live_bytes >= arena_chunk_bytes(a) / 4 || arena_ladder_in_use(a)) {
        return false;
    }
    set_victim(a, a->slots - 1);
    a->first_free = 0;
    return true;
}

/* The victim is empty. */
static bool finish_victim(struct arena *a) {
    uint32_t victim = a->victim;
    assert(arena_units(a)[victim].live == 0);
    a->victim = ARENA_NO_UNIT;
    arena_release_unit(a, victim);
    if (a->units == 0) {
        return false;
    }
    bool shrinking = pick_last_chunk(a);
    a->working = shrinking || dead_above(a, STOP_SHARE) || a->ladder == LADDER_WANTED;
    return a->working;
}

/* Walk on from a->walk, take listed dead records off their lists, and gather up to max live ones.
 */
static size_t gather(struct arena *a, uint64_t end, uint64_t *refs, size_t max, size_t *steps) {
    size_t count = 0;
    while (a->walk < end && count<max && * steps> 0) {
        uint8_t *p = offset_at(a, a->walk);
        size_t bytes;
        if (dead_is(p)) {
            bytes = dead_bytes(p);
            if (dead_is_listed(p)) {
                arena_unlink(a, a->walk / ARENA_UNIT);
            }
        } else {
            bytes = arena_round(a->ops->record_len(p));
            refs[count++] = a->walk / ARENA_UNIT;
        }
        a->walk += bytes;
        (*steps)--;
    }
    return count;
}

/* False when memory is short: the walk goes back to the record that could not be moved. */
static bool relocate(struct arena *a, const uint64_t *refs, size_t count) {
    if (a->ops->prefetch != NULL && count > 0) {
        a->ops->prefetch(a->owner, refs, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (UNLIKELY(dead_is(arena_at(a, refs[i])))) {
            continue; /* freed by the owner meanwhile */
        }
        if (a->ops->relocate(a->owner, refs[i]) != ST_OK) {
            a->walk = refs[i] * ARENA_UNIT;
            return false;
        }
    }
    return true;
}

static bool walk_victim(struct arena *a, size_t max_records) {
    uint64_t end = slot_start(a, a->victim) + unit_used(a, a->victim);
    size_t steps = max_records * DEAD_PER_RECORD;
    while (a->walk < end && max_records > 0 && steps > 0) {
        uint64_t refs[BATCH];
        size_t count = gather(a, end, refs, max_records < BATCH ? max_records : BATCH, &steps);
        if (!relocate(a, refs, count)) {
            return false;
        }
        max_records -= count;
    }
    return a->walk < end ? true : finish_victim(a);
}

bool arena_evacuate(struct arena *a, size_t max_records) {
    if (calm() && !dead_above(a, CALM_SHARE)) {
        return false;
    }
    if (a->victim == ARENA_NO_UNIT) {
        if (a->ladder == LADDER_WANTED || a->ladder == LADDER_MOVING) {
            return move_step(a);
        }
        if (!dead_above(a, a->working ? STOP_SHARE : ARENA_DEAD_SHARE) || !pick_victim(a)) {
            a->working = false;
            return false;
        }
    }
    return walk_victim(a, max_records != 0 ? max_records : 1);
}

#endif
