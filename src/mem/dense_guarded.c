/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of sanitizer builds: each slot is an allocation of its own, and a slot that moves, moves
 * to a fresh one. The same slots move at the same frees as in the mapped form. */
#include "mem/dense.h"

#ifdef GC_SANITIZE

#include <stdlib.h>
#include <string.h>

#include "mem/account.h"

/* Before each slot: its place in the array of all slots. */
struct guard {
    size_t place;
    size_t unused;
};

static_assert(sizeof(struct guard) == 16, "slots are aligned to 16");

static struct guard *guard_of(void *slot) {
    return (struct guard *)slot - 1;
}

static void *new_slot(const struct dense *d, size_t place) {
    struct guard *guard = malloc(sizeof(*guard) + d->slot_bytes);
    if (guard == NULL) {
        return NULL;
    }
    guard->place = place;
    return guard + 1;
}

void dense_init(struct dense *d, size_t slot_bytes, dense_moved moved) {
    assert(slot_bytes > 0 && slot_bytes % 16 == 0);
    *d = (struct dense){.slot_bytes = slot_bytes, .moved = moved};
}

void dense_deinit(struct dense *d) {
    assert(d->used == 0);
    free(d->top);
    d->top = NULL;
    d->touched = 0;
}

void *dense_alloc(struct dense *d) {
    if (account_must_fail()) {
        return NULL;
    }
    if (d->used == d->touched) {
        size_t places = d->touched * 2 + 16;
        void *more = realloc(d->top, places * sizeof(void *));
        if (more == NULL) {
            return NULL;
        }
        d->top = more;
        d->touched = places;
    }
    void *slot = new_slot(d, d->used);
    if (slot != NULL) {
        ((void **)d->top)[d->used++] = slot;
        account_count(ACCOUNT_INDEX, d->slot_bytes);
    }
    return slot;
}

void dense_free(struct dense *d, void *slot) {
    void *last = dense_last(d);
    assert(last != NULL);
    size_t place = guard_of(slot)->place;
    void *moved_to = NULL;
    d->used--;
    account_uncount(ACCOUNT_INDEX, d->slot_bytes);
    if (slot != last) {
        moved_to = new_slot(d, place);
        if (moved_to == NULL) {
            abort();
        }
        memcpy(moved_to, last, d->slot_bytes);
        ((void **)d->top)[place] = moved_to;
        free(guard_of(last));
    }
    free(guard_of(slot));
    if (moved_to != NULL) {
        d->moved(last, moved_to);
    }
}

void *dense_last(const struct dense *d) {
    return d->used == 0 ? NULL : ((void **)d->top)[d->used - 1];
}

size_t dense_idle_bytes(const struct dense *d) {
    return 0;
}

void dense_check(const struct dense *d) {
    for (size_t i = 0; i < d->used; i++) {
        if (guard_of(((void **)d->top)[i])->place != i) {
            abort();
        }
    }
}

#endif
