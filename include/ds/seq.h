/* SPDX-License-Identifier: BSD-3-Clause */
/* seq: a sequence of byte strings by position: packed blocks under a counted tree.
 *
 *   element   a byte string, 0 .. 2^32 - 1 bytes; those over SEQ_SMALL_MAX stand alone
 *   block     some elements side by side (ds/strip) in one arena record of up to SEQ_BLOCK_MAX bytes
 *   weight    of a block: its elements' bytes and 2 for each, what an end needs to take it back; up
 *             to SEQ_WEIGHT_MAX
 *   end       one of two heap buffers that hold the first and the last elements; a push or pop there
 *             touches nothing else
 *   index     position from the first element, from 0
 *   doomed    of a node cut out of the tree: its blocks hold nothing any more, but still lie in the
 *             arena; a few are freed by each later change, or by seq_sweep
 *
 *        head end                 counted tree of blocks                  tail end
 *   +----------------+     +-----+-----+-- ... --+-----+-----+      +------------------+
 *   | .. 2  1  0  <- |     | 511 | 511 |         | 511 | 511 |      | ->  n-2  n-1     |
 *   +----------------+     +-----+-----+-- ... --+-----+-----+      +------------------+
 *     last in, last                blocks in an arena
 *
 * A full end hands a block's worth to the tree, an empty one takes a block back; a quarter of a
 * buffer lies between the two, so that pushes and pops in turn do not move blocks.
 *
 * Elements of one length cost no overhead in a block; others 1 byte, or 2 where one of the block is
 * longer than 255 bytes. Headers and tree add 32 bytes a block. 16-byte elements: 16.2 bytes each;
 * of 1 to 31 bytes, 16 on average: 17.2; both appended.
 *
 * Guarantees: ST_NOMEM leaves the elements as they were; removing never fails. An element given may
 * be a view of one in the sequence. Views and iterators are good until the next write. The struct
 * must not move once initialised. One thread.
 * Method and measurements: docs/design/008-seq.md. */
#ifndef DS_SEQ_H
#define DS_SEQ_H

#include "base/bytes.h"
#include "base/status.h"
#include "mem/arena.h"

#define SEQ_BLOCK_MAX 8192
#define SEQ_WEIGHT_MAX 9216
#define SEQ_SMALL_MAX 4096

enum seq_end { SEQ_HEAD, SEQ_TAIL };

/* A strip that grows at its top and is read from either side:
 *
 *   0        start            stop               cap
 *   +--------+----------------+- - - - - -+------+
 *   | gone   | element bytes  |  room     | lens |   lens: u16 each, the first at the very end
 *   +--------+----------------+- - - - - -+------+
 */
struct seq_buffer {
    char *memory; /* NULL when cap is 0 */
    uint32_t cap;
    uint32_t start, stop; /* element bytes, from the bottom element's to the top one's */
    uint16_t gone;        /* length slots of elements that left at the bottom */
    uint16_t count;
};

struct seq_node;

/* Fields are private; the struct is public so that owners embed it. */
struct seq {
    struct seq_buffer end[2]; /* SEQ_HEAD: the first element is on top; SEQ_TAIL: the last one */
    struct seq_node *root;    /* NULL: no blocks */
    struct seq_node *doomed;  /* a chain, see seq_priv.h */
    uint64_t inner;           /* elements in blocks */
    size_t node_bytes, boxed_bytes;
    uint32_t churn; /* blocks made and freed for which the arena was not yet compacted */
    struct arena arena;
};

/* ---- life ---- */

/* Empty, without memory. pages must outlive it. */
void seq_init(struct seq *s, struct pages *pages);

/* Free everything; or a part at a time, about budget blocks: true when nothing is left. Between the
 * first step and the last only further steps are allowed. */
void seq_deinit(struct seq *s);
bool seq_deinit_step(struct seq *s, size_t budget);

static inline uint64_t seq_count(const struct seq *s) {
    return s->inner + s->end[SEQ_HEAD].count + s->end[SEQ_TAIL].count;
}

/* ---- change ---- */

/* O(1), amortized: a block moves once in some hundred pushes. */
MUST_CHECK enum status seq_push(struct seq *s, enum seq_end end, struct bytes element);

/* Make element the one at index <= count. O(log n + block). */
MUST_CHECK enum status seq_insert(struct seq *s, uint64_t index, struct bytes element);

/* Replace the element at index < count. O(log n), + block when the length changes. */
MUST_CHECK enum status seq_set(struct seq *s, uint64_t index, struct bytes element);

/* Remove up to count elements from index on; the number removed. O(1) for one at either end, else
 * O(log n + block), whatever the count: of a long range, whole nodes are doomed. */
uint64_t seq_remove(struct seq *s, uint64_t index, uint64_t count);

/* Are blocks doomed, or is the arena far behind with giving memory back? Then seq_sweep has work.
 */
bool seq_wants_sweep(const struct seq *s);

/* Free about budget doomed blocks and compact accordingly; true when nothing is left that can be
 * done now. Moves blocks, changes no element. */
bool seq_sweep(struct seq *s, size_t budget);

/* ---- look-up ---- */

/* False when index >= count. O(log n), O(1) in the ends. */
bool seq_at(const struct seq *s, uint64_t index, struct bytes *element);

/* Start loading what seq_at(index) will read: walks the inner nodes, which are few and warm. */
void seq_prefetch(const struct seq *s, uint64_t index);

/* ---- iteration ---- */

/* Any change of the sequence invalidates it. */
struct seq_iter {
    const struct seq *seq;
    uint64_t index; /* of the next element when forward; one behind it when backward */
    const struct seq_node *node;
    uint32_t pos;   /* of the block in node */
    uint32_t place; /* inside the run, between two elements */
    uint32_t off;   /* of that place, bytes */
    uint8_t run;    /* enum seq_run_kind */
    bool backward;
};

/* Forward: elements index, index + 1, ...; backward: index - 1, index - 2, ... index beyond count is
 * taken as count. */
void seq_iter_init(struct seq_iter *it, const struct seq *s, uint64_t index, bool backward);

/* Fill up to cap elements and move behind them; the number filled, below cap only at the end. */
size_t seq_fetch(struct seq_iter *it, struct bytes *out, size_t cap);

/* ---- the rest ---- */

struct seq_stats {
    size_t blocks, nodes; /* of the tree: doomed ones are left out */
    size_t used_bytes;    /* of block records: headers, elements, lengths */
    size_t block_bytes;   /* of block records as allocated */
};
void seq_get_stats(const struct seq *s, struct seq_stats *out);

/* Memory held, without struct seq itself. */
size_t seq_bytes(const struct seq *s);

/* Verify every invariant: recounts elements, bytes and nodes. Aborts on a fault. O(n). */
void seq_check(const struct seq *s);

#endif
