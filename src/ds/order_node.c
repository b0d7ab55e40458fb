/* SPDX-License-Identifier: BSD-3-Clause */
/* Node allocation and everything about inner nodes. */
#include <string.h>

#include "mem/index.h"
#include "order_priv.h"

#define INNER_SPARE_BYTES 256 /* inner nodes this small are not worth shrinking */

/* ---- allocation: the only place that takes and returns memory ---- */

static void *node_alloc(struct order *o, size_t bytes) {
    void *node = index_alloc(ACCOUNT_ORDER, bytes);
    if (node != NULL) {
        o->bytes += bytes;
    }
    return node;
}

static void node_free(struct order *o, void *node, size_t bytes) {
    o->bytes -= bytes;
    index_free(ACCOUNT_ORDER, node, bytes);
}

/* jemalloc's classes: multiples of 16 up to 128, then four to a doubling. Computed rather than
 * asked of the allocator, so that sanitizer builds exercise the same capacities. */
size_t order_size_class(size_t bytes) {
    size_t step = 16;
    if (bytes > 128) {
        step = (size_t)1 << (61 - __builtin_clzll(bytes - 1));
    }
    return (bytes + step - 1) & ~(step - 1);
}

struct leaf *leaf_create(struct order *o, const struct leaf_plan *plan, size_t min_bytes) {
    size_t bytes =
        order_size_class(plan->bytes_needed > min_bytes ? plan->bytes_needed : min_bytes);
    struct leaf *l = node_alloc(o, bytes);
    if (l != NULL) {
        *l = (struct leaf){.bytes = (uint16_t)bytes};
        l->cap = (uint16_t)((bytes - sizeof(*l)) / leaf_entry_bytes(plan->form));
    }
    return l;
}

void leaf_destroy(struct order *o, struct leaf *l) {
    node_free(o, l, l->bytes);
}

/* Room for at least cap children, more when the size class holds more. */
struct inner *inner_create(struct order *o, uint32_t cap) {
    assert(cap <= FANOUT);
    size_t bytes = order_size_class(sizeof(struct inner) + cap * 4 * sizeof(uint64_t));
    struct inner *n = node_alloc(o, bytes);
    if (n != NULL) {
        n->count = 0;
        n->cap = (uint16_t)((bytes - sizeof(*n)) / (4 * sizeof(uint64_t)));
        n->bytes = (uint32_t)bytes;
    }
    return n;
}

void inner_destroy(struct order *o, struct inner *n) {
    node_free(o, n, n->bytes);
}

/* ---- slots ---- */

uint64_t inner_sum(const struct inner *n, uint32_t slots) {
    const uint64_t *total = inner_total(n);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < slots; i++) {
        sum += total[i];
    }
    return sum;
}

static void shift_slots(struct inner *n, uint32_t to, uint32_t from) {
    for (size_t i = 0; i < 4; i++) {
        uint64_t *field = n->fields + i * n->cap;
        memmove(field + to, field + from, (n->count - from) * sizeof(*field));
    }
}

void inner_insert(struct inner *n, uint32_t slot, uint64_t key, uint64_t ref, void *child,
                  uint64_t total) {
    assert(n->count < n->cap && slot <= n->count);
    shift_slots(n, slot + 1, slot);
    n->count++;
    inner_key(n)[slot] = key;
    inner_ref(n)[slot] = ref;
    inner_child(n)[slot] = child;
    inner_total(n)[slot] = total;
}

void inner_remove(struct inner *n, uint32_t slot, uint32_t slots) {
    assert(slot + slots <= n->count);
    shift_slots(n, slot, slot + slots);
    n->count = (uint16_t)(n->count - slots);
}

void inner_append(struct inner *n, const struct inner *src, uint32_t from, uint32_t slots) {
    assert(n->count + slots <= n->cap && from + slots <= src->count);
    for (size_t i = 0; i < 4; i++) {
        memcpy(n->fields + i * n->cap + n->count, src->fields + i * src->cap + from,
               slots * sizeof(uint64_t));
    }
    n->count = (uint16_t)(n->count + slots);
}

/* ---- along a path ---- */

/* Put a node where the one at a level of the path was. */
static void path_put(struct order *o, struct path *p, uint32_t level, struct inner *n) {
    p->at[level].node = n;
    if (level == 0) {
        o->root = n;
    } else {
        inner_child(p->at[level - 1].node)[p->at[level - 1].slot] = n;
    }
}

/* Give the node at a level a new capacity. */
static enum status resize(struct order *o, struct path *p, uint32_t level, uint32_t cap) {
    struct inner *old = p->at[level].node;
    struct inner *n = inner_create(o, cap);
    if (n == NULL) {
        return ST_NOMEM;
    }
    inner_append(n, old, 0, old->count);
    path_put(o, p, level, n);
    inner_destroy(o, old);
    return ST_OK;
}

void path_refresh(struct path *p) {
    for (uint32_t level = p->depth; level-- > 1;) {
        const struct inner *n = p->at[level].node;
        struct inner *parent = p->at[level - 1].node;
        uint32_t slot = p->at[level - 1].slot;
        inner_key(parent)[slot] = inner_key(n)[0];
        inner_ref(parent)[slot] = inner_ref(n)[0];
        inner_total(parent)[slot] = inner_sum(n, n->count);
    }
}

/* A new root above the old one, with it as the only child. */
static enum status raise_root(struct order *o, struct path *p) {
    struct inner *old = p->at[0].node;
    struct inner *root = inner_create(o, 2);
    if (root == NULL) {
        return ST_NOMEM;
    }
    assert(p->depth < MAX_HEIGHT);
    inner_insert(root, 0, inner_key(old)[0], inner_ref(old)[0], old, o->count);
    memmove(p->at + 1, p->at, p->depth * sizeof(p->at[0]));
    p->at[0].node = root;
    p->at[0].slot = 0;
    p->depth++;
    o->root = root;
    o->height++;
    return ST_OK;
}

/* Cut a full node in two below a parent with room. At its right edge nearly all stays on the left:
 * appended keys fill nodes. */
static enum status split(struct order *o, struct path *p, uint32_t level) {
    struct inner *left = p->at[level].node;
    uint32_t slot = p->at[level].slot;
    uint32_t keep = slot + 1 == left->count ? left->count - 1U : left->count / 2U;
    struct inner *right = inner_create(o, left->count - keep + 1);
    if (right == NULL) {
        return ST_NOMEM;
    }
    inner_append(right, left, keep, left->count - keep);
    left->count = (uint16_t)keep;

    struct inner *parent = p->at[level - 1].node;
    uint32_t up = p->at[level - 1].slot;
    inner_total(parent)[up] = inner_sum(left, keep);
    inner_insert(parent, up + 1, inner_key(right)[0], inner_ref(right)[0], right,
                 inner_sum(right, right->count));
    if (slot >= keep) {
        p->at[level].node = right;
        p->at[level].slot = slot - keep;
        p->at[level - 1].slot++;
    }
    return ST_OK;
}

enum status path_make_room(struct order *o, struct path *p, uint32_t level) {
    uint32_t depth = p->depth;
    const struct inner *n = p->at[level].node;
    if (n->count < n->cap) {
        return ST_OK;
    }
    if (n->cap < FANOUT) {
        return resize(o, p, level, n->cap + 1U);
    }
    enum status st = level == 0 ? raise_root(o, p) : path_make_room(o, p, level - 1);
    if (st != ST_OK) {
        return st;
    }
    level += p->depth - depth; /* a new root pushed every level down by one */
    return split(o, p, level); /* both halves have room */
}

/* Merge child slot + 1 of a parent into child slot if both fit well under a full node. */
static bool try_merge(struct order *o, struct inner *parent, uint32_t slot) {
    struct inner *left = inner_child(parent)[slot], *right = inner_child(parent)[slot + 1];
    uint32_t count = left->count + (uint32_t)right->count;
    if (count > FANOUT * 3 / 4) {
        return false;
    }
    struct inner *into = left;
    if (left->cap < count) {
        into = inner_create(o, count);
        if (into == NULL) {
            return false;
        }
        inner_append(into, left, 0, left->count);
        inner_destroy(o, left);
        inner_child(parent)[slot] = into;
    }
    inner_append(into, right, 0, right->count);
    inner_destroy(o, right);
    inner_total(parent)[slot] += inner_total(parent)[slot + 1];
    inner_remove(parent, slot + 1, 1);
    return true;
}

void path_settle(struct order *o, struct path *p) {
    for (uint32_t level = p->depth; level-- > 0;) {
        const struct inner *n = p->at[level].node;
        if (level > 0 && n->count <= FANOUT / 4) {
            struct inner *parent = p->at[level - 1].node;
            uint32_t slot = p->at[level - 1].slot;
            if ((slot + 1 < parent->count && try_merge(o, parent, slot)) ||
                (slot > 0 && try_merge(o, parent, slot - 1))) {
                continue;
            }
        }
        if (n->bytes > INNER_SPARE_BYTES && n->count * 2 < n->cap) {
            /* Only an attempt: without memory the node stays as large as it is. */
            enum status st = resize(o, p, level, n->count + 1U);
            (void)st;
        }
    }
    while (o->height > 0 && ((struct inner *)o->root)->count == 1) {
        struct inner *old = o->root;
        o->root = inner_child(old)[0];
        o->height--;
        inner_destroy(o, old);
    }
}
