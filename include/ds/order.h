/* SPDX-License-Identifier: BSD-3-Clause */
/* An ordered index that knows ranks: a counted B+-tree over (key, ref) pairs. Expiry keys it by
 * time, sorted sets by score.
 *
 *   key    64 bits whose unsigned order is the order wanted (order_key_from_*)
 *   ref    the name of the record an entry stands for, up to 40 bits, unique in the tree
 *   tie    two entries with one key; ordered by ops->compare, or by ref where that is NULL
 *   probe  what ops->compare compares a record with (a member's bytes); the tree never looks inside
 *   rank   position in order, from 0
 *   lossy  said of a leaf that keeps only the upper bits of its keys and asks ops->key_of for the
 *          rest
 *
 * Records belong to the caller. The record of every ref in the tree must be readable by the
 * callbacks from before its insert until after its erase. Callbacks must not touch the tree.
 *
 * Memory: 8 bytes an entry in a leaf (4 of key, 4 of ref) when the keys of that leaf fit 32 bits
 * after a shift, or when ops->key_of is given; else 12; one more when a ref of the leaf exceeds 32
 * bits. Nodes follow jemalloc's size classes, so that small and half-full leaves are small
 * allocations. Measured in all: 8.1 (appended) to 8.9 (random inserts) bytes an entry.
 *
 * Cost: every operation is O(log n + entries moved or returned); ties cost like distinct keys, but
 * for O(log n) calls of ops->compare. The worst single insert re-encodes two 4 KiB leaves into
 * three. One thread. Nothing outside points into the tree except iterators, which any change
 * invalidates.
 *
 * ST_NOMEM always leaves the entries as they were. Erasing never fails.
 * Method, its sources and measurements: docs/design/004-order.md. */
#ifndef DS_ORDER_H
#define DS_ORDER_H

#include "base/compiler.h"
#include "base/status.h"

#define ORDER_REF_MAX ((UINT64_C(1) << 40) - 1)

struct order_ops {
    /* Record ref against probe: <0 before it, 0 equal, >0 behind. NULL: ties go by ref, and probe
     * arguments are ignored. */
    int (*compare)(void *ctx, uint64_t ref, const void *probe);
    /* The full key of a record. NULL: leaves always hold keys in full. */
    uint64_t (*key_of)(void *ctx, uint64_t ref);
    /* Advice that compare or key_of will soon read the record. May be NULL. */
    void (*prefetch)(void *ctx, uint64_t ref);
};

struct order_entry {
    uint64_t key;
    uint64_t ref;
};

/* Fields are private; the struct is public so that owners embed it. */
struct order {
    const struct order_ops *ops;
    void *ctx;
    void *root;                      /* a leaf when height is 0; NULL when empty */
    const struct order_entry *moved; /* during a move: the key to believe for this ref */
    uint64_t count;
    uint64_t bytes;  /* in nodes */
    uint32_t height; /* levels of inner nodes */
};

/* ---- keys ---- */

/* Any double but NaN; infinities included; -0 is 0. */
static inline uint64_t order_key_from_double(double v) {
    uint64_t bits;
    v = v == 0 ? 0 : v;
    __builtin_memcpy(&bits, &v, sizeof(bits));
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* Exact inverse of the above (a -0 comes back as 0). */
static inline double order_key_to_double(uint64_t key) {
    uint64_t bits = key >> 63 ? key & ~(UINT64_C(1) << 63) : ~key;
    double v;
    __builtin_memcpy(&v, &bits, sizeof(v));
    return v;
}

static inline uint64_t order_key_from_i64(int64_t v) {
    return (uint64_t)v ^ UINT64_C(1) << 63;
}

static inline int64_t order_key_to_i64(uint64_t key) {
    return (int64_t)(key ^ UINT64_C(1) << 63);
}

/* ---- life ---- */

/* An empty tree without memory. ops and ctx must outlive it; ops may be NULL (no callbacks). */
void order_init(struct order *o, const struct order_ops *ops, void *ctx);

/* Free all nodes at once, O(n / 500). The tree is empty afterwards and may be used again. */
void order_deinit(struct order *o);

/* The same in steps of at most budget_nodes nodes; true when nothing is left. Between the first
 * step and the last, nothing but further steps and order_deinit is allowed. Reads no record. */
bool order_destroy_step(struct order *o, size_t budget_nodes);

static inline uint64_t order_count(const struct order *o) {
    return o->count;
}

/* Bytes of the nodes as allocated, without struct order itself. */
static inline size_t order_bytes(const struct order *o) {
    return (size_t)o->bytes;
}

/* ---- change ---- */

/* Add an entry. probe: the new record as compare sees it. ST_OK; ST_EXISTS when an entry with this
 * key compares equal; ST_NOMEM. */
MUST_CHECK enum status order_insert(struct order *o, uint64_t key, uint64_t ref, const void *probe);

/* Remove the entry with this key that compares equal to probe (compare NULL: that has this ref;
 * otherwise ref is ignored). False when there is none. */
bool order_erase(struct order *o, uint64_t key, uint64_t ref, const void *probe);

/* Remove up to n entries from rank on; the number removed. O(log n + n). */
uint64_t order_erase_range(struct order *o, uint64_t rank, uint64_t n);

/* Remove the first or last entry and hand it out. False when empty. */
bool order_pop_first(struct order *o, struct order_entry *out);
bool order_pop_last(struct order *o, struct order_entry *out);

/* The record moved: old_ref becomes new_ref. Both must be readable, with the same key and compare
 * result, until the call returns. With compare NULL the new ref may sort elsewhere among its ties.
 * ST_OK, ST_NOTFOUND; ST_EXISTS (new_ref is there already) with compare NULL; ST_NOMEM only with
 * compare NULL or when new_ref is the first of its leaf beyond 32 bits. */
MUST_CHECK enum status order_replace_ref(struct order *o, uint64_t key, uint64_t old_ref,
                                         const void *probe, uint64_t new_ref);

/* Move an entry to a new key; in place when it stays between its neighbours. key_of may answer the
 * old or the new key for it during the call, the new one afterwards.
 * ST_OK, ST_NOTFOUND, ST_NOMEM; ST_EXISTS when an equal entry holds the new key already. */
MUST_CHECK enum status order_update_key(struct order *o, uint64_t old_key, uint64_t ref,
                                        const void *probe, uint64_t new_key);

/* ---- look-up ---- */

/* Rank of an entry (named as in order_erase); rank may be NULL. */
bool order_find(const struct order *o, uint64_t key, uint64_t ref, const void *probe,
                uint64_t *rank);

/* The entry at a rank; false when rank >= count. */
bool order_at(const struct order *o, uint64_t rank, struct order_entry *out);
bool order_first(const struct order *o, struct order_entry *out);
bool order_last(const struct order *o, struct order_entry *out);

/* Rank of the first entry with a key >= key (exclusive: > key); count when there is none. */
uint64_t order_lower_bound(const struct order *o, uint64_t key, bool exclusive);

/* Rank of the first entry at or behind (key, ref or probe) (exclusive: behind it). */
uint64_t order_lower_bound_tie(const struct order *o, uint64_t key, uint64_t ref, const void *probe,
                               bool exclusive);

/* Number of entries between two keys, either bound inclusive or exclusive; 0 when crossed. */
uint64_t order_count_between(const struct order *o, uint64_t min_key, bool min_exclusive,
                             uint64_t max_key, bool max_exclusive);

/* Start loading what a look-up of key will read: walks the inner nodes, which are few and warm,
 * and prefetches the leaf. Changes nothing. */
void order_prefetch(const struct order *o, uint64_t key);

/* ---- iteration ---- */

/* Stands between rank-1 and rank. Any change of the tree invalidates it. */
struct order_iter {
    const struct order *order;
    const void *leaf; /* the leaf of rank, or of rank-1 at a leaf's end; NULL: look it up */
    uint64_t rank;
    uint32_t pos; /* of rank inside leaf */
};

/* rank 0..count; beyond is taken as count. O(1): the descent happens at the first fetch. */
void order_iter_init(struct order_iter *it, const struct order *o, uint64_t rank);

/* The next up to max entries forward (ranks rank, rank+1, ...), moving behind them; the number
 * filled, 0 at the end. */
size_t order_fetch(struct order_iter *it, struct order_entry *out, size_t max);

/* The next up to max entries backward (ranks rank-1, rank-2, ...), moving before them. */
size_t order_fetch_back(struct order_iter *it, struct order_entry *out, size_t max);

/* ---- bulk build ---- */

#define ORDER_BUILD_BATCH 510 /* entries of a full 8-byte leaf: (4096 - 16) / 8 */

/* Collects a sorted stream behind the last entry of a tree, a whole leaf at a time. 8 KiB; the
 * caller's, usually on the stack. */
struct order_builder {
    struct order *order;
    uint32_t len;
    bool any; /* last is set */
    struct order_entry last;
    struct order_entry batch[ORDER_BUILD_BATCH];
};

void order_build_init(struct order_builder *b, struct order *o);

/* Entries in strictly ascending order, behind everything in the tree. ST_RANGE when the key (or,
 * with compare NULL, the tie) is not; order among compare's ties is the caller's promise.
 * ST_NOMEM. After an error the tree holds a prefix of the stream and stays valid. The tree must not
 * be used otherwise before order_build_finish. */
MUST_CHECK enum status order_build_add(struct order_builder *b, uint64_t key, uint64_t ref);
MUST_CHECK enum status order_build_finish(struct order_builder *b);

/* ---- invariants ---- */

/* Walk everything: order, separators, counts, leaf forms, bytes. True when all agree. Compare's
 * ties cannot be checked without a probe; ties by ref are. O(n). */
bool order_check(const struct order *o);

#endif
