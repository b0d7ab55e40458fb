/* SPDX-License-Identifier: BSD-3-Clause */
/* dense: slots of one size with no holes among them. What many thousand allocations of a few KiB
 * cost beyond their own bytes stays below a few dozen KiB, whatever the order of the frees.
 *
 *   slot    slot_bytes long, aligned to 16
 *   block   DENSE_BLOCK_BYTES of plain mapping, filled from its start; the blocks form a stack, all
 *           but the top one full
 *   moved   freeing a slot moves the last slot of the pool into the hole, and the owner is told
 *
 *   block 0 (full)                block 1, the top
 *   +------+---+---+- - -+---+    +------+---+---+---+------------+- - - - - - - - - - -+
 *   | prev | 0 | 1 |     | n |    | prev | 0 | 1 | 2 | idle <32K  | never touched       |
 *   +------+---+---+- - -+---+    +------+---+---+---+------------+- - - - - - - - - - -+
 *   0      16                                        ^ next       ^ touched
 *
 * Resident beyond the slots in use: at most DENSE_IDLE_BYTES behind the last one, and the tail of
 * a block too short for a slot (below slot_bytes in 512 KiB). Pages past that go back to the kernel
 * at once. One empty block is kept mapped, none of it resident; none when the index is on pages of its own
 * (mem/index.h), from which only whole blocks go back.
 *
 * Ownership: a pool lives as long as its slots; its struct must not move while it has any. Slots in
 * use are counted under the tag ACCOUNT_INDEX. An allocation obeys account_fail_after. Cost: O(1); a free
 * copies a slot at most once, and every few of them there is one madvise. Not thread-safe.
 *
 * Sanitizer builds give each slot an allocation of its own, also where it moves to, so that any
 * use of an address from before a move is seen; DENSE_MAPPED before this header's source file
 * (src/mem/dense.c, included by a test) compiles the mapped form there too, its idle bytes poisoned. */
#ifndef MEM_DENSE_H
#define MEM_DENSE_H

#include "base/compiler.h"

#define DENSE_BLOCK_BYTES ((size_t)512 * 1024)
#define DENSE_IDLE_BYTES ((size_t)128 * 1024)

/* The slot at `from` lies at `to` now, copied already; from is not readable any more. May neither
 * allocate from the pool nor free. */
typedef void (*dense_moved)(void *from, void *to);

/* Treat as opaque. */
struct dense {
    size_t slot_bytes;
    dense_moved moved;
    size_t used; /* slots */
    void *top;   /* the top block, NULL without any; sanitizer builds: the array of all slots */
    void *spare; /* an empty block, or NULL */
    size_t top_used;
    size_t touched; /* bytes from the start of the top block that may be resident; sanitizer builds:
                       places in the array */
};

/* slot_bytes: a multiple of 16, at most 64 KiB. */
void dense_init(struct dense *d, size_t slot_bytes, dense_moved moved);

/* Gives back the spare block. No slot may be in use. */
void dense_deinit(struct dense *d);

/* NULL when memory is short. Moves nothing. */
void *dense_alloc(struct dense *d);

/* May move the last slot, never another one. */
void dense_free(struct dense *d, void *slot);

/* The slot that the next free moves, or the one that can be freed without moving any; NULL when none is in use. */
void *dense_last(const struct dense *d);

/* Bytes that may be resident though no slot in use needs them. */
size_t dense_idle_bytes(const struct dense *d);

/* Verify every invariant. Aborts on a fault. */
void dense_check(const struct dense *d);

#endif
