/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of the order tree, shared by order.c (look-ups), order_edit.c (changes of shape),
 * order_node.c (inner nodes and allocation) and order_leaf.c (leaf coding).
 *
 *    inner, up to 2048 bytes                         leaf, up to 4096 bytes
 *    +--------+-------+-------+---------+---------+  +----------+--------+--------+----------+
 *    | header | key[] | ref[] | child[] | total[] |  | header   | key[]  | ref[]  | ref_hi[] |
 *    +--------+-------+-------+---------+---------+  +----------+--------+--------+----------+
 *    0        8                                      0          16       4 or 8   4 each   0 or 1
 *               each array of `cap` 8-byte fields                each of `cap` fields
 *
 *    inner: 8 + 63 x 32 = 2024 -> class 2048; 63 children
 *    leaf:  16 + 510 x 8 = 4096; 510 entries (12 bytes: 340, 13 bytes: 313)
 *    a tree of 10 entries: 16 + 10 x 8 = 96 bytes, exactly a class
 *
 * key[i], ref[i] of an inner node are those of the first entry under child i, always exact;
 * total[i] is the number of entries under it. Narrow leaf keys mean
 * (base + key[i]) << shift; that is the whole key in an exact leaf, its upper bits in a lossy one.
 */
#ifndef DS_ORDER_PRIV_H
#define DS_ORDER_PRIV_H

#include "ds/order.h"

/* A test builds the tree with tiny nodes, for height. */
#ifndef LEAF_BYTES_MAX
#define LEAF_BYTES_MAX 4096
#define INNER_BYTES_MAX 2048
#endif
#define LEAF_BYTES_MIN 32
#define LEAF_ENTRIES_MAX ((LEAF_BYTES_MAX - 16) / 8) /* 510 */
#define FANOUT ((INNER_BYTES_MAX - 8) / 32)          /* 63 */
#define MAX_HEIGHT                                                                                 \
    24 /* 2^40 entries; inner nodes under 1/4 merge when they can: far out of reach */

/* Leaves re-encoded together when one is full: 2 into 3 at most, as in a B*-tree. At 1 M random
 * inserts: 1: 8.95 bytes an entry, but 11.3 with jemalloc's half-empty slabs; 2: 8.75 and 8.9;
 * 3 and 4: 8.70 and 8.9, at twice the worst insert (benchmarks/micro/ds_order.c). */
#define WINDOW_MAX 2

enum leaf_form {
    LEAF_WIDE_KEY = 1, /* 8-byte keys, shift and base 0 */
    LEAF_WIDE_REF = 2, /* a fifth ref byte */
    LEAF_LOSSY = 4     /* the low `shift` bits of keys are in the records only */
};

struct leaf {
    uint64_t base;
    uint16_t count;
    uint16_t cap;
    uint16_t bytes; /* of the allocation */
    uint8_t shift;
    uint8_t form; /* enum leaf_form bits */
};
static_assert(sizeof(struct leaf) == 16, "leaf header");

struct inner {
    uint16_t count;
    uint16_t cap;
    uint32_t bytes;
    uint64_t fields[];
};
static_assert(sizeof(struct inner) == 8, "inner header");
static_assert(LEAF_ENTRIES_MAX <= ORDER_BUILD_BATCH, "the builder collects one leaf");

/* All ones or none: for steps of a search that no branch may decide. GCC makes a jump of "c ? a : b" there, which is
 * mispredicted every other time. */
#define BRANCHLESS_MASK(condition) (-(uint32_t)(condition))

static inline uint64_t *inner_key(const struct inner *n) {
    return (uint64_t *)n->fields;
}

static inline uint64_t *inner_ref(const struct inner *n) {
    return (uint64_t *)n->fields + n->cap;
}

static inline void **inner_child(const struct inner *n) {
    return (void **)((uint64_t *)n->fields + 2 * (size_t)n->cap);
}

static inline uint64_t *inner_total(const struct inner *n) {
    return (uint64_t *)n->fields + 3 * (size_t)n->cap;
}
static_assert(sizeof(void *) == sizeof(uint64_t), "child pointers share the 8-byte fields");

static inline uint32_t *leaf_key32(const struct leaf *l) {
    return (uint32_t *)(uintptr_t)(l + 1);
}

static inline uint64_t *leaf_key64(const struct leaf *l) {
    return (uint64_t *)(uintptr_t)(l + 1);
}

static inline uint32_t *leaf_ref32(const struct leaf *l) {
    return leaf_key32(l) + (l->form & LEAF_WIDE_KEY ? 2 * (size_t)l->cap : (size_t)l->cap);
}

static inline uint8_t *leaf_ref_hi(const struct leaf *l) {
    return (uint8_t *)(leaf_ref32(l) + l->cap);
}

static inline uint64_t leaf_ref(const struct leaf *l, uint32_t pos) {
    uint64_t ref = leaf_ref32(l)[pos];
    return l->form & LEAF_WIDE_REF ? ref | (uint64_t)leaf_ref_hi(l)[pos] << 32 : ref;
}

/* The key as far as the leaf knows it. */
static inline uint64_t leaf_key_stored(const struct leaf *l, uint32_t pos) {
    return l->form & LEAF_WIDE_KEY ? leaf_key64(l)[pos]
                                   : (l->base + leaf_key32(l)[pos]) << l->shift;
}

static inline size_t leaf_entry_bytes(unsigned form) {
    return (form & LEAF_WIDE_KEY ? 12U : 8U) + (form & LEAF_WIDE_REF ? 1U : 0U);
}

static inline size_t leaf_used_bytes(const struct leaf *l) {
    return sizeof(*l) + l->count * leaf_entry_bytes(l->form);
}

/* ---- what is searched for ---- */

enum target_tie { TIE_PROBE, TIE_BEFORE, TIE_BEHIND };

struct target {
    uint64_t key;
    uint64_t ref; /* TIE_PROBE without compare */
    const void *probe;
    enum target_tie tie; /* BEFORE, BEHIND: the ends of the run of equal keys */
};

/* The steps of a descent, root first: node and the child slot taken. */
struct path {
    uint32_t depth; /* equals the tree's height */
    struct {
        struct inner *node;
        uint32_t slot;
    } at[MAX_HEIGHT];
};

/* ---- order_leaf.c ---- */

/* The exact key of a record whose leaf is lossy. */
uint64_t order_record_key(const struct order *o, uint64_t ref);

/* Exact key of an entry. */
static inline uint64_t leaf_key(const struct order *o, const struct leaf *l, uint32_t pos) {
    return l->form & LEAF_LOSSY ? order_record_key(o, leaf_ref(l, pos)) : leaf_key_stored(l, pos);
}

/* <0, 0, >0: a record with the target's key stands before, at or behind the target. */
int order_tie(const struct order *o, uint64_t ref, const struct target *t);

/* The first position whose entry is not before the target; *equal: that entry is the target. */
uint32_t leaf_search(const struct order *o, const struct leaf *l, const struct target *t,
                     bool *equal);

/* True when the entry fits the leaf's form and there is room. */
bool leaf_fits(const struct leaf *l, uint64_t key, uint64_t ref);
void leaf_insert(struct leaf *l, uint32_t pos, uint64_t key, uint64_t ref);
void leaf_remove(struct leaf *l, uint32_t pos, uint32_t n);

/* True when the key or ref at pos can be changed to this in place; then it is. */
bool leaf_set_key(struct leaf *l, uint32_t pos, uint64_t key);
bool leaf_set_ref(struct leaf *l, uint32_t pos, uint64_t ref);

/* Entries taken out of leaves to be laid out anew. grain: low bits of a key that are unknown. */
struct gather {
    uint32_t len;
    uint64_t key[(WINDOW_MAX + 1) * LEAF_ENTRIES_MAX];
    uint64_t ref[(WINDOW_MAX + 1) * LEAF_ENTRIES_MAX];
    uint8_t grain[(WINDOW_MAX + 1) * LEAF_ENTRIES_MAX];
};

void gather_leaf(struct gather *g, const struct leaf *l);
void gather_entry(struct gather *g, uint32_t pos, uint64_t key, uint64_t ref);

/* The cheapest form for a piece of the gathered entries. */
struct leaf_plan {
    uint64_t base;
    uint32_t bytes_needed;
    uint8_t shift;
    uint8_t form;
    uint8_t lost; /* bits of shift that reading the records would win back */
};
struct leaf_plan leaf_plan_make(const struct order *o, const struct gather *g, uint32_t from,
                                uint32_t len);

/* Read the full keys of a piece from the records. */
void gather_refine(const struct order *o, struct gather *g, uint32_t from, uint32_t len);
void leaf_encode(struct leaf *l, const struct leaf_plan *plan, const struct gather *g,
                 uint32_t from, uint32_t len);

/* ---- order_node.c ---- */

size_t order_size_class(size_t bytes);
struct leaf *leaf_create(struct order *o, const struct leaf_plan *plan, size_t min_bytes);
void leaf_destroy(struct order *o, struct leaf *l);
struct inner *inner_create(struct order *o, uint32_t cap);
void inner_destroy(struct order *o, struct inner *n);

uint64_t inner_sum(const struct inner *n, uint32_t slots);
void inner_insert(struct inner *n, uint32_t slot, uint64_t key, uint64_t ref, void *child,
                  uint64_t total);
void inner_remove(struct inner *n, uint32_t slot, uint32_t slots);
/* Append slots [from, from + slots) of src. */
void inner_append(struct inner *n, const struct inner *src, uint32_t from, uint32_t slots);

/* Recompute separators and totals from the deepest inner node of the path upward. */
void path_refresh(struct path *p);

/* Make the node at a level of the path able to take one more child: grow it, or split it and those
 * above it. The path follows. Entries never change; ST_NOMEM leaves a valid tree. */
MUST_CHECK enum status path_make_room(struct order *o, struct path *p, uint32_t level);

/* Shrink, merge and collapse inner nodes along the path after children were removed. Best effort;
 * the path is void afterwards. */
void path_settle(struct order *o, struct path *p);

/* ---- order.c ---- */

/* Descend to the leaf where the target is or belongs. *before: entries in earlier leaves. The tree
 * must not be empty. */
struct leaf *order_descend(const struct order *o, const struct target *t, struct path *p,
                           uint64_t *before);
/* Descend to the entry at rank < count. */
struct leaf *order_descend_rank(const struct order *o, uint64_t rank, struct path *p,
                                uint32_t *pos);

#endif
