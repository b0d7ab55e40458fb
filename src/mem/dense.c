/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/dense.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/account.h"
#include "mem/index.h"
#include "pages_os.h"

#if !defined(GC_SANITIZE) || defined(DENSE_MAPPED)

#ifdef GC_SANITIZE
#include <sanitizer/asan_interface.h>
#define HIDE(ptr, len) __asan_poison_memory_region((ptr), (len))
#define SHOW(ptr, len) __asan_unpoison_memory_region((ptr), (len))
#else
#define HIDE(ptr, len) ((void)(ptr), (void)(len))
#define SHOW(ptr, len) ((void)(ptr), (void)(len))
#endif

enum {
    KEEP_BYTES = 8 * 1024, /* stay touched behind the last slot when pages go back */
    SLOT_BYTES_MAX = 64 * 1024,
};

struct block {
    struct block *prev;
    uint64_t unused;
};

static_assert(DENSE_BLOCK_BYTES == INDEX_BLOCK_BYTES, "a pool's block is a block of the index");
static_assert(sizeof(struct block) == 16, "slots follow the block's header, aligned to 16");

static size_t per_block(const struct dense *d) {
    return (DENSE_BLOCK_BYTES - sizeof(struct block)) / d->slot_bytes;
}

/* Where slot i of a block begins, from the block's start. */
static size_t slot_offset(const struct dense *d, size_t i) {
    return sizeof(struct block) + i * d->slot_bytes;
}

/* ---- blocks ---- */

/* Blocks come from the index's pages, huge ones maybe: then nothing but whole blocks goes back. */
static bool on_pages(void) {
    return index_pages() != NULL;
}

static bool push_block(struct dense *d) {
    struct pages_os_error error;
    struct block *block = d->spare;
    if (block == NULL) {
        block = on_pages() ? pages_acquire(index_pages(), NULL)
                           : pages_os_map(DENSE_BLOCK_BYTES, 1, false, &error);
        if (block == NULL) {
            return false;
        }
        HIDE((char *)block + sizeof(*block), DENSE_BLOCK_BYTES - sizeof(*block));
    }
    block->prev = d->top;
    d->spare = NULL;
    d->top = block;
    d->top_used = 0;
    d->touched = sizeof(*block);
    return true;
}

static void unmap_block(void *block) {
    SHOW(block, DENSE_BLOCK_BYTES);
    if (on_pages()) {
        pages_release(index_pages(), block);
    } else {
        pages_os_unmap(block, DENSE_BLOCK_BYTES);
    }
}

/* The top block is empty: the one below, which is full, becomes the top. */
static void pop_block(struct dense *d) {
    struct block *block = d->top;
    d->top = block->prev;
    d->top_used = d->top != NULL ? per_block(d) : 0;
    if (d->spare == NULL && !on_pages()) {
        pages_os_release(block, 0, d->touched);
        d->spare = block;
    } else {
        unmap_block(block); /* on pages it may be huge: all of a spare would be resident */
    }
    d->touched = d->top != NULL ? slot_offset(d, d->top_used) : 0;
}

static void give_back_idle(struct dense *d) {
    size_t end = slot_offset(d, d->top_used);
    if (d->top_used == 0) {
        pop_block(d);
    } else if (d->touched - end > DENSE_IDLE_BYTES && !on_pages()) {
        d->touched = pages_os_release(d->top, end + KEEP_BYTES, d->touched);
    }
}

/* ---- interface ---- */

void dense_init(struct dense *d, size_t slot_bytes, dense_moved moved) {
    assert(slot_bytes > 0 && slot_bytes % 16 == 0 && slot_bytes <= SLOT_BYTES_MAX);
    *d = (struct dense){.slot_bytes = slot_bytes, .moved = moved};
}

void dense_deinit(struct dense *d) {
    assert(d->used == 0);
    if (d->spare != NULL) {
        unmap_block(d->spare);
        d->spare = NULL;
    }
}

void *dense_alloc(struct dense *d) {
    if (UNLIKELY(account_must_fail())) {
        return NULL;
    }
    if ((d->top == NULL || d->top_used == per_block(d)) && !push_block(d)) {
        return NULL;
    }
    char *slot = (char *)d->top + slot_offset(d, d->top_used);
    d->top_used++;
    d->used++;
    size_t end = slot_offset(d, d->top_used);
    if (end > d->touched) {
        if (!on_pages()) {
            pages_warm((char *)d->top + d->touched, end - d->touched);
        }
        d->touched = end;
    }
    account_count(ACCOUNT_INDEX, d->slot_bytes);
    SHOW(slot, d->slot_bytes);
    return slot;
}

void dense_free(struct dense *d, void *slot) {
    void *last = dense_last(d);
    assert(last != NULL);
    if (slot != last) {
        memcpy(slot, last, d->slot_bytes);
    }
    HIDE(last, d->slot_bytes);
    d->top_used--;
    d->used--;
    account_uncount(ACCOUNT_INDEX, d->slot_bytes);
    give_back_idle(d);
    if (slot != last) {
        d->moved(last, slot);
    }
}

void *dense_last(const struct dense *d) {
    return d->used == 0 ? NULL : (char *)d->top + slot_offset(d, d->top_used - 1);
}

size_t dense_idle_bytes(const struct dense *d) {
    return d->top == NULL ? 0 : d->touched - slot_offset(d, d->top_used);
}

/* ---- check ---- */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: dense invariant broken: %s\n", __FILE__, __LINE__,             \
                    #condition);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

void dense_check(const struct dense *d) {
    size_t used = 0;
    CHECK((d->top == NULL) == (d->used == 0));
    for (const struct block *b = d->top; b != NULL; b = b->prev) {
        used += b == d->top ? d->top_used : per_block(d);
    }
    CHECK(used == d->used);
    if (d->top != NULL) {
        CHECK(d->top_used > 0 && d->top_used <= per_block(d));
        CHECK(d->touched >= slot_offset(d, d->top_used) && d->touched <= DENSE_BLOCK_BYTES);
        CHECK(on_pages() || dense_idle_bytes(d) <= DENSE_IDLE_BYTES);
    }
}

#undef CHECK

#endif
