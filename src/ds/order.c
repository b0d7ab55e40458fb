/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ups, iteration, teardown and the invariant walk. Changes are in order_edit.c. */
#include "ds/order.h"

#include "order_priv.h"

#define PREFETCH_AHEAD 32 /* records in flight while entries are handed out */

static const struct order_ops no_ops;

void order_init(struct order *o, const struct order_ops *ops, void *ctx) {
    *o = (struct order){.ops = ops != NULL ? ops : &no_ops, .ctx = ctx};
}

/* ---- descent ---- */

/* Slots whose first key is <= key. */
static uint32_t slots_upto(const uint64_t *keys, uint32_t n, uint64_t key) {
    const uint64_t *at = keys;
    while (n > 1) {
        uint32_t half = n / 2;
        at += half & BRANCHLESS_MASK(at[half - 1] <= key);
        n -= half;
    }
    return (uint32_t)(at - keys) + (n == 1 && *at <= key);
}

/* The last child whose first entry is not behind the target; 0 when all are. */
static uint32_t child_slot(const struct order *o, const struct inner *n, const struct target *t) {
    const uint64_t *keys = inner_key(n);
    uint32_t hi = slots_upto(keys, n->count, t->key);
    if (hi == 0 || keys[hi - 1] != t->key) {
        return hi == 0 ? 0 : hi - 1;
    }
    /* [lo, hi) are equal keys: ask the records, of which the first of each child is known here. */
    uint32_t lo = hi;
    while (lo > 0 && keys[lo - 1] == t->key) {
        lo--;
    }
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (order_tie(o, inner_ref(n)[mid], t) <= 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo == 0 ? 0 : lo - 1;
}

struct leaf *order_descend(const struct order *o, const struct target *t, struct path *p,
                           uint64_t *before) {
    void *node = o->root;
    uint64_t sum = 0;
    p->depth = o->height;
    for (uint32_t level = 0; level < o->height; level++) {
        struct inner *n = node;
        uint32_t slot = child_slot(o, n, t);
        p->at[level].node = n;
        p->at[level].slot = slot;
        if (before != NULL) {
            sum += inner_sum(n, slot);
        }
        node = inner_child(n)[slot];
    }
    if (before != NULL) {
        *before = sum;
    }
    return node;
}

struct leaf *order_descend_rank(const struct order *o, uint64_t rank, struct path *p,
                                uint32_t *pos) {
    void *node = o->root;
    assert(rank < o->count);
    p->depth = o->height;
    for (uint32_t level = 0; level < o->height; level++) {
        struct inner *n = node;
        const uint64_t *total = inner_total(n);
        uint32_t slot = 0;
        while (rank >= total[slot]) {
            rank -= total[slot++];
        }
        p->at[level].node = n;
        p->at[level].slot = slot;
        node = inner_child(n)[slot];
    }
    *pos = (uint32_t)rank;
    return node;
}

/* ---- look-up ---- */

static uint64_t rank_of(const struct order *o, const struct target *t, bool *equal) {
    struct path p;
    uint64_t before = 0;
    *equal = false;
    if (o->root == NULL) {
        return 0;
    }
    const struct leaf *l = order_descend(o, t, &p, &before);
    return before + leaf_search(o, l, t, equal);
}

bool order_find(const struct order *o, uint64_t key, uint64_t ref, const void *probe,
                uint64_t *rank) {
    struct target t = {.key = key, .ref = ref, .probe = probe};
    bool equal = false;
    uint64_t at = rank_of(o, &t, &equal);
    if (equal && rank != NULL) {
        *rank = at;
    }
    return equal;
}

uint64_t order_lower_bound(const struct order *o, uint64_t key, bool exclusive) {
    struct target t = {.key = key, .tie = exclusive ? TIE_BEHIND : TIE_BEFORE};
    bool equal = false;
    return rank_of(o, &t, &equal);
}

uint64_t order_lower_bound_tie(const struct order *o, uint64_t key, uint64_t ref, const void *probe,
                               bool exclusive) {
    struct target t = {.key = key, .ref = ref, .probe = probe};
    bool equal = false;
    uint64_t rank = rank_of(o, &t, &equal);
    return rank + (equal && exclusive);
}

uint64_t order_count_between(const struct order *o, uint64_t min_key, bool min_exclusive,
                             uint64_t max_key, bool max_exclusive) {
    uint64_t from = order_lower_bound(o, min_key, min_exclusive);
    uint64_t to = order_lower_bound(o, max_key, !max_exclusive);
    return to > from ? to - from : 0;
}

bool order_at(const struct order *o, uint64_t rank, struct order_entry *out) {
    struct path p;
    uint32_t pos = 0;
    if (rank >= o->count) {
        return false;
    }
    const struct leaf *l = order_descend_rank(o, rank, &p, &pos);
    *out = (struct order_entry){leaf_key(o, l, pos), leaf_ref(l, pos)};
    return true;
}

bool order_first(const struct order *o, struct order_entry *out) {
    return order_at(o, 0, out);
}

bool order_last(const struct order *o, struct order_entry *out) {
    return o->count > 0 && order_at(o, o->count - 1, out);
}

/* The lines of a leaf that a search will touch if its keys lie evenly between the separators around
 * it, as guess32 in order_leaf.c expects: header and first key, last key, three lines of keys and
 * one of refs around the place. `total` entries at 8 bytes tell where the arrays are. */
static void prefetch_leaf(const void *leaf, uint64_t total, double part) {
    const char *at = (const char *)leaf + sizeof(struct leaf);
    size_t bytes = order_size_class(sizeof(struct leaf) + (size_t)total * 8);
    size_t cap = (bytes - sizeof(struct leaf)) / 8;
    size_t place = (size_t)(part * (double)total);
    PREFETCH(leaf);
    PREFETCH(at + 4 * total - 4);
    PREFETCH(at + 4 * place);
    PREFETCH(at + 4 * place - 64);
    PREFETCH(at + 4 * place + 64);
    PREFETCH(at + 4 * cap + 4 * place);
}

void order_prefetch(const struct order *o, uint64_t key) {
    const void *node = o->root;
    uint64_t total = o->count;
    double part = 0.5;
    if (node == NULL) {
        return;
    }
    for (uint32_t level = 0; level < o->height; level++) {
        const struct inner *n = node;
        const uint64_t *keys = inner_key(n);
        uint32_t slots = slots_upto(keys, n->count, key);
        uint32_t slot = slots > 0 ? slots - 1 : 0;
        if (slots > 0 && slots < n->count) {
            part = (double)(key - keys[slot]) / (double)(keys[slots] - keys[slot]);
        } else {
            part = 0.5;
        }
        node = inner_child(n)[slot];
        total = inner_total(n)[slot];
    }
    prefetch_leaf(node, total < LEAF_ENTRIES_MAX ? total : LEAF_ENTRIES_MAX, part);
}

/* ---- iteration ---- */

void order_iter_init(struct order_iter *it, const struct order *o, uint64_t rank) {
    *it = (struct order_iter){.order = o, .rank = rank < o->count ? rank : o->count};
}

/* Copy n entries of a leaf out, from pos upward or from pos - 1 downward. */
static void hand_out(const struct order *o, const struct leaf *l, uint32_t pos, uint32_t n,
                     bool back, struct order_entry *out) {
    bool ask = l->form & LEAF_LOSSY && o->ops->prefetch != NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (ask && i % PREFETCH_AHEAD == 0) {
            for (uint32_t j = i; j < n && j < i + PREFETCH_AHEAD; j++) {
                o->ops->prefetch(o->ctx, leaf_ref(l, back ? pos - 1 - j : pos + j));
            }
        }
        uint32_t at = back ? pos - 1 - i : pos + i;
        out[i] = (struct order_entry){leaf_key(o, l, at), leaf_ref(l, at)};
    }
}

/* The path is not kept: at the end of a leaf the next is found again by rank, once in some hundred
 * entries, which spares every leaf its sibling links. */
size_t order_fetch(struct order_iter *it, struct order_entry *out, size_t max) {
    const struct order *o = it->order;
    struct path p;
    size_t done = 0;
    while (done < max && it->rank < o->count) {
        const struct leaf *l = it->leaf;
        if (l == NULL || it->pos == l->count) {
            l = it->leaf = order_descend_rank(o, it->rank, &p, &it->pos);
        }
        size_t left = l->count - it->pos;
        uint32_t n = (uint32_t)(left < max - done ? left : max - done);
        hand_out(o, l, it->pos, n, false, out + done);
        it->pos += n;
        it->rank += n;
        done += n;
    }
    return done;
}

size_t order_fetch_back(struct order_iter *it, struct order_entry *out, size_t max) {
    const struct order *o = it->order;
    struct path p;
    size_t done = 0;
    while (done < max && it->rank > 0) {
        const struct leaf *l = it->leaf;
        if (l == NULL || it->pos == 0) {
            l = it->leaf = order_descend_rank(o, it->rank - 1, &p, &it->pos);
            it->pos++;
        }
        uint32_t n = (uint32_t)(it->pos < max - done ? it->pos : max - done);
        hand_out(o, l, it->pos, n, true, out + done);
        it->pos -= n;
        it->rank -= n;
        done += n;
    }
    return done;
}

/* ---- teardown ---- */

bool order_destroy_step(struct order *o, size_t budget_nodes) {
    struct path p;
    for (; budget_nodes > 0 && o->root != NULL; budget_nodes--) {
        void *node = o->root;
        uint32_t depth = 0;
        while (depth < o->height && ((struct inner *)node)->count > 0) {
            struct inner *n = node;
            p.at[depth++].node = n;
            node = inner_child(n)[n->count - 1];
        }
        if (depth == o->height) {
            leaf_destroy(o, node);
        } else {
            inner_destroy(o, node);
        }
        if (depth == 0) {
            o->root = NULL;
        } else {
            p.at[depth - 1].node->count--;
        }
    }
    if (o->root != NULL) {
        return false;
    }
    o->height = 0;
    o->count = 0;
    return true;
}

void order_deinit(struct order *o) {
    bool done = order_destroy_step(o, SIZE_MAX);
    assert(done && o->bytes == 0);
    (void)done;
}

/* ---- invariants ---- */

struct check {
    const struct order *order;
    struct order_entry last; /* the entry before the one looked at */
    uint64_t count;
    uint64_t bytes;
};

static bool check_entry(struct check *c, const struct leaf *l, uint32_t pos) {
    const struct order *o = c->order;
    struct order_entry e = {leaf_key(o, l, pos), leaf_ref(l, pos)};
    if (l->form & LEAF_LOSSY && e.key >> l->shift << l->shift != leaf_key_stored(l, pos)) {
        return false;
    }
    if (c->count > 0) {
        bool tie = e.key == c->last.key;
        if (e.key < c->last.key || (tie && o->ops->compare == NULL && e.ref <= c->last.ref)) {
            return false;
        }
    }
    c->last = e;
    c->count++;
    return true;
}

static bool check_leaf(struct check *c, const struct leaf *l, struct order_entry *first) {
    size_t cap = (l->bytes - sizeof(*l)) / leaf_entry_bytes(l->form);
    if (l->count == 0 || l->count > l->cap || l->cap != cap || l->bytes > LEAF_BYTES_MAX ||
        (l->form & LEAF_LOSSY && (l->shift == 0 || c->order->ops->key_of == NULL))) {
        return false;
    }
    for (uint32_t i = 0; i < l->count; i++) {
        if (!check_entry(c, l, i)) {
            return false;
        }
        if (i == 0) {
            *first = c->last;
        }
    }
    c->bytes += l->bytes;
    return true;
}

static bool check_node(struct check *c, const void *node, uint32_t height,
                       struct order_entry *first) {
    if (height == 0) {
        return check_leaf(c, node, first);
    }
    const struct inner *n = node;
    if (n->count == 0 || n->count > n->cap || n->cap > FANOUT || n->bytes > INNER_BYTES_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < n->count; i++) {
        uint64_t before = c->count;
        struct order_entry head;
        if (!check_node(c, inner_child(n)[i], height - 1, &head) || head.key != inner_key(n)[i] ||
            head.ref != inner_ref(n)[i] || c->count - before != inner_total(n)[i]) {
            return false;
        }
        if (i == 0) {
            *first = head;
        }
    }
    c->bytes += n->bytes;
    return true;
}

bool order_check(const struct order *o) {
    struct check c = {.order = o};
    struct order_entry first;
    if (o->root != NULL && !check_node(&c, o->root, o->height, &first)) {
        return false;
    }
    return c.count == o->count && c.bytes == o->bytes && o->moved == NULL &&
           (o->root != NULL || o->height == 0);
}
