/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of ds/seq share: runs of elements, blocks, nodes. See ds/seq.h. */
#ifndef DS_SEQ_PRIV_H
#define DS_SEQ_PRIV_H

#include <string.h>

#include "ds/seq.h"
#include "ds/strip.h"

#define FORM_BOX 3 /* of a block, beside the forms of a strip: one element, elsewhere */

enum seq_run_kind { RUN_NONE, RUN_HEAD, RUN_BLOCK, RUN_TAIL };

/* 2 for each element: what a buffer needs. */
static inline uint32_t strip_weight(const struct strip *r) {
    return strip_data_len(r) + 2 * r->count;
}

/* ---- blocks ----
 *
 *   0      1     2       4     6     8        16
 *   +------+-----+-------+-----+-----+--------+--------------+- - - -+--------+
 *   | form | pad | count | cap | len | owner  | elements     | room  | lens   |
 *   +------+-----+-------+-----+-----+--------+--------------+- - - -+--------+
 *   511 elements of 16 bytes: 16 + 8176 = 8192, and 16 in its node
 */
struct __attribute__((packed, aligned(2))) seq_block {
    uint8_t form;
    uint8_t unused; /* 0 */
    uint16_t count;
    uint16_t cap_half;      /* half of the record's bytes */
    uint16_t len;           /* as in struct strip; 0 in a box */
    struct seq_node *owner; /* the node that names this block */
};
static_assert(sizeof(struct seq_block) == 16 && ARENA_UNIT == 2, "as drawn; records are even");

struct seq_box {
    size_t len;
    char bytes[];
};
#define BLOCK_BOX_LEN (sizeof(struct seq_block) + sizeof(struct seq_box *))

static inline char *block_data(const struct seq_block *b) {
    return (char *)(uintptr_t)(b + 1);
}

static inline size_t block_cap(const struct seq_block *b) {
    return 2 * (size_t)b->cap_half;
}

static inline struct seq_box *block_box(const struct seq_block *b) {
    struct seq_box *box;
    memcpy(&box, block_data(b), sizeof(box));
    return box;
}

static inline struct strip block_strip(const struct seq_block *b) {
    if (UNLIKELY(b->form == FORM_BOX)) {
        struct seq_box *box = block_box(b);
        return (struct strip){box->bytes, NULL, 1, (uint32_t)box->len, STRIP_EVEN};
    }
    return (struct strip){block_data(b), block_data(b) - sizeof(*b) + block_cap(b), b->count,
                          b->len, b->form};
}

/* Bytes that a block of these elements needs. */
static inline size_t block_size(uint32_t form, uint32_t count, uint32_t data_len) {
    return (sizeof(struct seq_block) + data_len + (size_t)count * form + 1) & ~(size_t)1;
}

static inline size_t block_used(const struct seq_block *b) {
    if (b->form == FORM_BOX) {
        return BLOCK_BOX_LEN;
    }
    struct strip r = block_strip(b);
    return block_size(b->form, b->count, strip_data_len(&r));
}

/* Alone in its block, whatever comes. */
static inline bool block_is_large(const struct seq_block *b) {
    return b->form == FORM_BOX || (b->form == STRIP_EVEN && b->len > SEQ_SMALL_MAX);
}

/* May a block of these elements get one more of len <= SEQ_SMALL_MAX bytes? */
bool seq_block_may_grow(const struct strip *r, size_t len);

/* Room for it without a new record? */
bool seq_block_has_room(const struct seq_block *b, size_t len);

/* Needs room. */
void seq_block_insert(struct seq_block *b, uint32_t i, struct bytes element);
void seq_block_remove(struct seq_block *b, uint32_t i, uint32_t n);

/* Change the length of an element, when there is room; its bytes are then undefined. */
bool seq_block_resize_at(struct seq_block *b, uint32_t i, size_t len);

/* ---- making blocks: what will be in it, then the record ---- */

/* A block that was opened by an insert gets room up to the next multiple of this, so that the next
 * few fit. */
#define SEQ_GROW_STEP 256

#define SEQ_COUNT_MAX (SEQ_WEIGHT_MAX / 2)

struct seq_draft {
    uint32_t count, data_len;
    uint32_t shortest, longest;
    uint32_t pieces;
    bool reversed; /* the one piece holds the elements last one first */
    struct bytes piece[3];
    uint16_t lens[SEQ_COUNT_MAX + 1];
};

void seq_draft_init(struct seq_draft *d);
void seq_draft_take(struct seq_draft *d, const struct strip *r, uint32_t from, uint32_t to);
void seq_draft_take_reversed(struct seq_draft *d, const struct strip *r, uint32_t from,
                             uint32_t to);
void seq_draft_put(struct seq_draft *d, struct bytes element);

/* A block of the draft's elements, without an owner. grows: it will soon get more. ST_NOMEM. */
MUST_CHECK enum status seq_block_create(struct seq *s, const struct seq_draft *d, bool grows,
                                        uint64_t *ref);

/* A block of one element above SEQ_SMALL_MAX. ST_NOMEM. */
MUST_CHECK enum status seq_block_create_large(struct seq *s, struct bytes element, uint64_t *ref);

void seq_block_destroy(struct seq *s, uint64_t ref);

static inline struct seq_block *block_at(const struct seq *s, uint64_t ref) {
    return arena_at(&s->arena, ref);
}

extern const struct arena_ops seq_arena_ops;

/* Free some doomed blocks, and give back what dead ones hold, in proportion to the blocks made and
 * freed, a bounded amount a call. Moves blocks: the last thing an operation does. */
void seq_compact(struct seq *s);

/* ---- the tree ---- */

#define SEQ_NODE_MAX 63
#define SEQ_HEIGHT_MAX 12

/* child: a node, or at level 0 a block:
 *
 *   63     62..56  55..40                                      39..0
 *   +------+-------+-------------------------------------------+-----+
 *   | even | 0     | even: length of each, else: half the bytes | ref |
 *   +------+-------+-------------------------------------------+-----+
 *   so that a look-up in a block of equal lengths reads the element and nothing else of it, and in
 *   another can ask for header, lengths and element at once
 */
struct seq_entry {
    uint64_t count; /* elements below */
    uint64_t child;
};
#define CHILD_EVEN (UINT64_C(1) << 63)

struct seq_node {
    uint16_t len, cap; /* entries */
    uint32_t level;    /* 0: the children are blocks */
    struct seq_entry entry[];
};
static_assert(sizeof(struct seq_node) + SEQ_NODE_MAX * sizeof(struct seq_entry) <= 1024,
              "a full node is a size class of jemalloc's");

/* The counts in doomed nodes mean nothing; that of the first entry of a detached one names the next
 * in the chain. Their blocks keep naming their owners, so the arena can move them. */
static inline struct seq_node *doomed_next(const struct seq_node *n) {
    return (struct seq_node *)(uintptr_t)n->entry[0].count; // NOLINT(performance-no-int-to-ptr)
}

static inline uint64_t child_ref(uint64_t child) {
    return child & ((UINT64_C(1) << ARENA_REF_BITS) - 1);
}

static inline uint32_t child_extra(uint64_t child) {
    return (uint32_t)(child >> ARENA_REF_BITS) & UINT16_MAX;
}

static inline uint64_t child_of_block(const struct seq *s, uint64_t ref) {
    const struct seq_block *b = block_at(s, ref);
    return b->form == STRIP_EVEN ? CHILD_EVEN | (uint64_t)b->len << ARENA_REF_BITS | ref
                                 : (uint64_t)b->cap_half << ARENA_REF_BITS | ref;
}

static inline struct seq_node *child_node(uint64_t child) {
    return (struct seq_node *)(uintptr_t)child; // NOLINT(performance-no-int-to-ptr)
}

static inline struct seq_block *entry_block(const struct seq *s, const struct seq_entry *e) {
    return block_at(s, child_ref(e->child));
}

/* From the root (step[levels - 1]) down to a block (step[0]) and an element in it. */
struct seq_path {
    uint32_t levels;
    uint32_t at;
    struct seq_step {
        struct seq_node *node;
        uint32_t pos;
    } step[SEQ_HEIGHT_MAX];
};

static inline struct seq_entry *path_entry(const struct seq_path *p) {
    return &p->step[0].node->entry[p->step[0].pos];
}

/* Path of an element of the tree, index < s->inner. */
void seq_tree_find(const struct seq *s, uint64_t index, struct seq_path *p);

/* Path of the first or the last block (one behind it, for tree_insert, when behind). */
void seq_tree_edge(const struct seq *s, enum seq_end end, bool behind, struct seq_path *p);

/* Add to the counts along a path, and to s->inner. */
void seq_tree_add(struct seq *s, const struct seq_path *p, int64_t delta);

/* Put a block where the path points, before what is there. The path is void afterwards. */
MUST_CHECK enum status seq_tree_insert(struct seq *s, struct seq_path *p, uint64_t ref);

/* Take the block out of the tree (it is not freed). The path is void afterwards. */
void seq_tree_remove(struct seq *s, struct seq_path *p);

/* Name another block in the place of one with as many elements. */
void seq_tree_replace(struct seq *s, struct seq_node *node, uint32_t pos, uint64_t ref);

/* Where a block's owner names it. */
uint32_t seq_tree_pos_of(const struct seq *s, uint64_t ref);

/* Take elements from .. to - 1 out, both on borders between blocks. Subtrees that lie between are
 * doomed; of the two leaves at the borders, single blocks are freed. O(log n), no memory needed. */
void seq_tree_cut(struct seq *s, uint64_t from, uint64_t to);

/* Free doomed nodes with their blocks, a part at a time: true when none is left. */
bool seq_tree_sweep_step(struct seq *s, size_t *budget);

/* Free all nodes and boxes, doomed ones too, a part at a time: true when done. */
bool seq_tree_free_step(struct seq *s, size_t *budget);

/* ---- edits inside the tree (seq_edit.c) ---- */

MUST_CHECK enum status seq_inner_insert(struct seq *s, uint64_t index, struct bytes element);

/* False: it needs more than the place it has. */
bool seq_inner_set(struct seq *s, uint64_t index, struct bytes element);

void seq_inner_remove(struct seq *s, uint64_t index, uint64_t count);

/* ---- the two ends (seq_end.c) ---- */

struct strip seq_buffer_strip(const struct seq_buffer *b);

/* Room for one more element, now? */
static inline bool buffer_has_room(const struct seq_buffer *b, size_t len) {
    return b->stop + len + 2 * ((size_t)b->gone + b->count + 1) <= b->cap;
}

/* Needs room. */
static inline void buffer_push(struct seq_buffer *b, struct bytes element) {
    uint16_t len = (uint16_t)element.len;
    memcpy(b->memory + b->cap - 2 * ((size_t)b->gone + b->count + 1), &len, sizeof(len));
    if (element.len != 0) {
        memmove(b->memory + b->stop, element.ptr, element.len);
    }
    b->stop += len;
    b->count++;
}

/* Remove n elements from the i-th on, counted from the bottom. */
void seq_buffer_remove(struct seq_buffer *b, uint32_t i, uint32_t n);

/* Needs room. */
void seq_buffer_insert(struct seq_buffer *b, uint32_t i, struct bytes element);

/* Change the length of an element, when there is room; its bytes are then undefined. */
bool seq_buffer_resize_at(struct seq_buffer *b, uint32_t i, size_t len);

/* Make room for an element of len bytes: compact, grow, or hand a block's worth to the tree. */
MUST_CHECK enum status seq_end_make_room(struct seq *s, enum seq_end end, size_t len);

/* Hand everything to the tree. */
MUST_CHECK enum status seq_end_flush(struct seq *s, enum seq_end end);

/* Fill an empty end from the tree's edge. False when it could not: no memory, or the edge is a
 * large element. */
bool seq_end_load(struct seq *s, enum seq_end end);

/* After elements left: give memory back that a short sequence does not need. */
void seq_end_trim(struct seq *s, enum seq_end end);

#endif
