/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes: insert, erase, move, bulk build, and the laying out of leaves anew that serves them all.
 *
 * A change of shape first gathers entries, allocates every new leaf, and only then replaces the
 * old ones: running out of memory on the way leaves the tree as it was. Inner nodes make room
 * beforehand, which changes no entry. */
#include "order_priv.h"

#define LEAF_CHILD_BYTES_MIN                                                                       \
    (LEAF_BYTES_MAX / 16)                         /* below a root: no point in starting smaller    \
                                                   */
#define MERGED_BYTES_MAX (LEAF_BYTES_MAX * 7 / 8) /* two leaves become one up to here */
/* Share entries with neighbours while the window stays under this, else add a leaf. Nearer to 1
 * packs leaves tighter and lays them out more often. */
#define WINDOW_FULL(leaves) ((size_t)(leaves)*LEAF_BYTES_MAX / 16 * 15)
/* Read the records again once this many bits of a leaf's keys could be won back. A leaf of 510
 * entries then still tells 2^20 keys apart. */
#define REFINE_BITS 12

/* ---- laying out leaves ---- */

struct layout {
    uint32_t leaves;
    uint32_t from[WINDOW_MAX + 2]; /* [leaves] is the end */
    struct leaf_plan plan[WINDOW_MAX + 1];
};

/* Cut the gathered entries evenly; false when a leaf would be too large. Reads the records of at
 * most one leaf, where its keys had become too coarse. */
static bool layout_make(const struct order *o, struct gather *g, uint32_t leaves,
                        struct layout *out) {
    bool refined = false;
    out->leaves = leaves;
    for (uint32_t i = 0; i <= leaves; i++) {
        out->from[i] = (uint32_t)((uint64_t)g->len * i / leaves);
    }
    for (uint32_t i = 0; i < leaves; i++) {
        uint32_t from = out->from[i], len = out->from[i + 1] - from;
        struct leaf_plan *plan = &out->plan[i];
        *plan = leaf_plan_make(o, g, from, len);
        if (plan->lost >= REFINE_BITS && !refined) {
            refined = true;
            gather_refine(o, g, from, len);
            *plan = leaf_plan_make(o, g, from, len);
        }
        if (plan->bytes_needed > LEAF_BYTES_MAX) {
            return false;
        }
    }
    return true;
}

/* The exact key of a gathered entry. */
static uint64_t gathered_key(const struct order *o, const struct gather *g, uint32_t i) {
    return g->grain[i] == 0 ? g->key[i] : order_record_key(o, g->ref[i]);
}

/* Allocate and fill the leaves of a layout: all or none. */
static enum status layout_build(struct order *o, const struct gather *g, const struct layout *lay,
                                size_t min_bytes, struct leaf **out) {
    for (uint32_t i = 0; i < lay->leaves; i++) {
        out[i] = leaf_create(o, &lay->plan[i], min_bytes);
        if (out[i] == NULL) {
            while (i > 0) {
                leaf_destroy(o, out[--i]);
            }
            return ST_NOMEM;
        }
        leaf_encode(out[i], &lay->plan[i], g, lay->from[i], lay->from[i + 1] - lay->from[i]);
    }
    return ST_OK;
}

/* Replace children [first, first + gone) of the deepest inner node by the leaves of a layout. The
 * node must have room. Without inner nodes the only leaf replaces the root. */
static enum status layout_apply(struct order *o, struct path *p, uint32_t first, uint32_t gone,
                                const struct gather *g, const struct layout *lay) {
    struct leaf *leaves[WINDOW_MAX + 1];
    size_t min_bytes = p->depth == 0 ? LEAF_BYTES_MIN : LEAF_CHILD_BYTES_MIN;
    enum status st = layout_build(o, g, lay, min_bytes, leaves);
    if (st != ST_OK) {
        return st;
    }
    if (p->depth == 0) {
        assert(lay->leaves == 1);
        if (o->root != NULL) {
            leaf_destroy(o, o->root);
        }
        o->root = leaves[0];
        return ST_OK;
    }
    struct inner *parent = p->at[p->depth - 1].node;
    for (uint32_t i = 0; i < gone; i++) {
        leaf_destroy(o, inner_child(parent)[first + i]);
    }
    inner_remove(parent, first, gone);
    for (uint32_t i = 0; i < lay->leaves; i++) {
        uint32_t from = lay->from[i];
        inner_insert(parent, first + i, gathered_key(o, g, from), g->ref[from], leaves[i],
                     leaves[i]->count);
    }
    path_refresh(p);
    return ST_OK;
}

/* Make the node above the leaves able to take one more, creating it where the root is a leaf. */
static enum status make_room(struct order *o, struct path *p) {
    if (p->depth > 0) {
        return path_make_room(o, p, p->depth - 1);
    }
    struct leaf *l = o->root;
    struct inner *root = inner_create(o, 2);
    if (root == NULL) {
        return ST_NOMEM;
    }
    inner_insert(root, 0, leaf_key(o, l, 0), leaf_ref(l, 0), l, l->count);
    p->at[0].node = root;
    p->at[0].slot = 0;
    p->depth = 1;
    o->root = root;
    o->height = 1;
    return ST_OK;
}

/* ---- insert ---- */

static bool at_right_edge(const struct path *p) {
    for (uint32_t level = 0; level < p->depth; level++) {
        if (p->at[level].slot + 1 != p->at[level].node->count) {
            return false;
        }
    }
    return true;
}

static void add_totals(struct path *p, uint64_t delta) {
    for (uint32_t level = 0; level < p->depth; level++) {
        inner_total(p->at[level].node)[p->at[level].slot] += delta;
    }
}

/* The first entry of the leaf changed: the separators that name it follow. */
static void set_first(struct path *p, uint64_t key, uint64_t ref) {
    for (uint32_t level = p->depth; level-- > 0;) {
        uint32_t slot = p->at[level].slot;
        inner_key(p->at[level].node)[slot] = key;
        inner_ref(p->at[level].node)[slot] = ref;
        if (slot != 0) {
            return;
        }
    }
}

/* Add gathered entries as leaves behind the last one, to which the path leads. */
static enum status attach_last(struct order *o, struct path *p, struct gather *g) {
    struct layout lay;
    if (!layout_make(o, g, 1, &lay)) {
        bool fits = layout_make(o, g, 2, &lay);
        assert(fits); /* half of 510 entries at 13 bytes are 3331 bytes */
        (void)fits;
    }
    struct leaf *leaves[WINDOW_MAX + 1];
    enum status st = layout_build(o, g, &lay, LEAF_CHILD_BYTES_MIN, leaves);
    for (uint32_t i = 0; st == ST_OK && i < lay.leaves; i++) {
        st = make_room(o, p);
        if (st != ST_OK) {
            while (i < lay.leaves) {
                leaf_destroy(o, leaves[i++]);
            }
            break;
        }
        uint32_t slot = ++p->at[p->depth - 1].slot, from = lay.from[i];
        inner_insert(p->at[p->depth - 1].node, slot, gathered_key(o, g, from), g->ref[from],
                     leaves[i], leaves[i]->count);
        path_refresh(p);
        o->count += leaves[i]->count;
    }
    return st;
}

/* Gather the leaf of the path with up to width - 1 neighbours and the new entry, and lay them out
 * into as many leaves while those have room, else into one more. False when the forms needed take
 * more than that. */
static bool window_layout(const struct order *o, const struct path *p, uint32_t width,
                          struct gather *g, uint32_t pos, const struct order_entry *e,
                          uint32_t *first, uint32_t *leaves, struct layout *lay) {
    const struct inner *parent = p->at[p->depth - 1].node;
    uint32_t slot = p->at[p->depth - 1].slot;
    uint32_t n = parent->count < width ? parent->count : width;
    uint32_t from = slot > width / 2 ? slot - width / 2 : 0;
    from = from + n > parent->count ? parent->count - n : from;
    size_t used = 0;
    g->len = 0;
    for (uint32_t i = from; i < from + n; i++) {
        const struct leaf *l = inner_child(parent)[i];
        used += leaf_used_bytes(l);
        pos += i == slot ? g->len : 0;
        gather_leaf(g, l);
    }
    gather_entry(g, pos, e->key, e->ref);
    *first = from;
    *leaves = n;
    return (n > 1 && used <= WINDOW_FULL(n) && layout_make(o, g, n, lay)) ||
           layout_make(o, g, n + 1, lay);
}

/* The leaf of the path has no room even as a leaf of full size. */
static NOINLINE enum status insert_full(struct order *o, struct path *p, const struct leaf *l,
                                        uint32_t pos, const struct order_entry *e) {
    struct gather g;
    struct layout lay;
    uint32_t first = 0, leaves = 0;
    enum status st = make_room(o, p);
    if (st != ST_OK) {
        return st;
    }
    if (pos == l->count && at_right_edge(p)) {
        g.len = 0;
        gather_entry(&g, 0, e->key, e->ref);
        return attach_last(o, p, &g);
    }
    if (!window_layout(o, p, WINDOW_MAX, &g, pos, e, &first, &leaves, &lay)) {
        bool fits = window_layout(o, p, 1, &g, pos, e, &first, &leaves, &lay);
        assert(fits); /* half of 511 entries at 13 bytes are 3344 bytes */
        (void)fits;
    }
    st = layout_apply(o, p, first, leaves, &g, &lay);
    o->count += st == ST_OK;
    return st;
}

/* The leaf must grow to another size or form. */
static NOINLINE enum status insert_anew(struct order *o, struct path *p, const struct leaf *l,
                                        uint32_t pos, const struct order_entry *e) {
    struct gather g;
    struct layout lay;
    g.len = 0;
    if (l != NULL) {
        gather_leaf(&g, l);
    }
    gather_entry(&g, pos, e->key, e->ref);
    if (!layout_make(o, &g, 1, &lay)) {
        return insert_full(o, p, l, pos, e);
    }
    enum status st = layout_apply(o, p, p->depth > 0 ? p->at[p->depth - 1].slot : 0, 1, &g, &lay);
    o->count += st == ST_OK;
    return st;
}

/* Put an entry at a position of the leaf at the path's end. */
static enum status insert_at(struct order *o, struct path *p, struct leaf *l, uint32_t pos,
                             const struct order_entry *e) {
    assert(e->ref <= ORDER_REF_MAX);
    if (l == NULL) {
        return insert_anew(o, p, l, pos, e);
    }
    if (!leaf_fits(l, e->key, e->ref)) {
        bool full = leaf_used_bytes(l) + leaf_entry_bytes(l->form) > LEAF_BYTES_MAX;
        return full ? insert_full(o, p, l, pos, e) : insert_anew(o, p, l, pos, e);
    }
    leaf_insert(l, pos, e->key, e->ref);
    add_totals(p, 1);
    if (pos == 0) {
        set_first(p, e->key, e->ref);
    }
    o->count++;
    return ST_OK;
}

/* order_insert that also tells the rank. */
static enum status insert(struct order *o, const struct target *t, uint64_t *rank) {
    struct path p = {.depth = 0};
    struct order_entry e = {t->key, t->ref};
    struct leaf *l = NULL;
    uint32_t pos = 0;
    *rank = 0;
    if (o->root != NULL) {
        bool equal = false;
        l = order_descend(o, t, &p, rank);
        pos = leaf_search(o, l, t, &equal);
        if (equal) {
            return ST_EXISTS;
        }
        *rank += pos;
    }
    return insert_at(o, &p, l, pos, &e);
}

enum status order_insert(struct order *o, uint64_t key, uint64_t ref, const void *probe) {
    struct target t = {.key = key, .ref = ref, .probe = probe};
    uint64_t rank = 0;
    return insert(o, &t, &rank);
}

/* ---- erase ---- */

/* After entries left a leaf: join or share with a neighbour when it is nearly empty, shrink it when
 * it fits a much smaller size. Best effort: without memory the leaf stays as it is. */
static void settle_leaf(struct order *o, struct path *p, const struct leaf *l) {
    /* A sixteenth above the need, so that inserts and erases in turn do not resize it each time. */
    size_t used = leaf_used_bytes(l), roomy = used + used / 16;
    size_t least = p->depth > 0 ? LEAF_CHILD_BYTES_MIN : LEAF_BYTES_MIN;
    const struct inner *parent = p->depth > 0 ? p->at[p->depth - 1].node : NULL;
    uint32_t first = parent != NULL ? p->at[p->depth - 1].slot : 0, gone = 1;
    if (parent != NULL && parent->count > 1 && used < LEAF_BYTES_MAX / 4) {
        first -= first + 1 == parent->count;
        gone = 2;
    } else if (order_size_class(roomy > least ? roomy : least) >= l->bytes) {
        return;
    }
    struct gather g;
    struct layout lay;
    g.len = 0;
    if (gone == 1) {
        gather_leaf(&g, l);
    } else {
        gather_leaf(&g, inner_child(parent)[first]);
        gather_leaf(&g, inner_child(parent)[first + 1]);
    }
    bool fits = layout_make(o, &g, 1, &lay);
    if (gone == 2 && (!fits || lay.plan[0].bytes_needed > MERGED_BYTES_MAX)) {
        fits = layout_make(o, &g, 2, &lay);
    }
    if (fits) {
        enum status st = layout_apply(o, p, first, gone, &g, &lay);
        (void)st;
    }
}

/* Free the emptied leaf at the path's end and the inner nodes that empty with it. */
static void drop_leaf(struct order *o, struct path *p, struct leaf *l) {
    leaf_destroy(o, l);
    while (p->depth > 0) {
        struct inner *n = p->at[p->depth - 1].node;
        inner_remove(n, p->at[p->depth - 1].slot, 1);
        if (n->count > 0) {
            path_refresh(p);
            path_settle(o, p);
            return;
        }
        inner_destroy(o, n);
        p->depth--;
    }
    o->root = NULL;
    o->height = 0;
}

/* Remove n entries of the leaf at the path's end. */
static void remove_at(struct order *o, struct path *p, struct leaf *l, uint32_t pos, uint32_t n) {
    leaf_remove(l, pos, n);
    o->count -= n;
    add_totals(p, (uint64_t)0 - n);
    if (l->count == 0) {
        drop_leaf(o, p, l);
        return;
    }
    if (pos == 0) {
        set_first(p, leaf_key(o, l, 0), leaf_ref(l, 0));
    }
    settle_leaf(o, p, l);
    path_settle(o, p);
}

static void remove_rank(struct order *o, uint64_t rank) {
    struct path p;
    uint32_t pos = 0;
    struct leaf *l = order_descend_rank(o, rank, &p, &pos);
    remove_at(o, &p, l, pos, 1);
}

bool order_erase(struct order *o, uint64_t key, uint64_t ref, const void *probe) {
    struct target t = {.key = key, .ref = ref, .probe = probe};
    struct path p;
    bool equal = false;
    if (o->root == NULL) {
        return false;
    }
    struct leaf *l = order_descend(o, &t, &p, NULL);
    uint32_t pos = leaf_search(o, l, &t, &equal);
    if (equal) {
        remove_at(o, &p, l, pos, 1);
    }
    return equal;
}

uint64_t order_erase_range(struct order *o, uint64_t rank, uint64_t n) {
    uint64_t done = 0;
    while (done < n && rank < o->count) {
        struct path p;
        uint32_t pos = 0;
        struct leaf *l = order_descend_rank(o, rank, &p, &pos);
        uint32_t here = l->count - pos;
        here = here < n - done ? here : (uint32_t)(n - done);
        remove_at(o, &p, l, pos, here);
        done += here;
    }
    return done;
}

bool order_pop_first(struct order *o, struct order_entry *out) {
    return order_first(o, out) && order_erase_range(o, 0, 1) == 1;
}

bool order_pop_last(struct order *o, struct order_entry *out) {
    return order_last(o, out) && order_erase_range(o, o->count - 1, 1) == 1;
}

/* ---- move ---- */

/* Where entry (key, ref) stands against the target. */
static int entry_compare(const struct order *o, uint64_t key, uint64_t ref,
                         const struct target *t) {
    return key != t->key ? (key > t->key) - (key < t->key) : order_tie(o, ref, t);
}

/* The same of an entry of a leaf. Its record is read only when what the leaf keeps of the key does
 * not tell. */
static int leaf_compare(const struct order *o, const struct leaf *l, uint32_t pos,
                        const struct target *t) {
    if (l->form & LEAF_LOSSY) {
        uint64_t kept = l->base + leaf_key32(l)[pos], wanted = t->key >> l->shift;
        if (kept != wanted) {
            return kept > wanted ? 1 : -1;
        }
    }
    return entry_compare(o, leaf_key(o, l, pos), leaf_ref(l, pos), t);
}

/* True when the target, which sorts upward or downward of the entry at pos, still stands before
 * the next (behind the previous) one. May decline where that one is in another leaf. */
static bool stays(const struct order *o, const struct path *p, const struct leaf *l, uint32_t pos,
                  const struct target *t, bool upward) {
    if (upward && pos + 1 < l->count) {
        return leaf_compare(o, l, pos + 1, t) > 0;
    }
    if (!upward && pos > 0) {
        return leaf_compare(o, l, pos - 1, t) < 0;
    }
    for (uint32_t level = p->depth; level-- > 0;) {
        const struct inner *n = p->at[level].node;
        uint32_t next = p->at[level].slot + 1;
        if (!upward && p->at[level].slot > 0) {
            return false;
        }
        if (upward && next < n->count) {
            return entry_compare(o, inner_key(n)[next], inner_ref(n)[next], t) > 0;
        }
    }
    return true;
}

static enum status move(struct order *o, const struct target *from, const struct target *to,
                        struct order_entry *moved) {
    struct path p;
    uint64_t rank = 0, new_rank = 0;
    bool equal = false;
    struct leaf *l = order_descend(o, from, &p, &rank);
    uint32_t pos = leaf_search(o, l, from, &equal);
    if (!equal || leaf_ref(l, pos) != from->ref) {
        return ST_NOTFOUND;
    }
    if (to->key == from->key && to->ref == from->ref) {
        return ST_OK;
    }
    bool upward = to->key != from->key ? to->key > from->key : to->ref > from->ref;
    bool here =
        (to->key == from->key && o->ops->compare != NULL) || stays(o, &p, l, pos, to, upward);
    if (here && (to->key == from->key || leaf_set_key(l, pos, to->key)) &&
        (to->ref == from->ref || leaf_set_ref(l, pos, to->ref))) {
        if (pos == 0) {
            set_first(&p, to->key, to->ref);
        }
        return ST_OK;
    }
    /* Insert first: that may fail. Then the old entry goes by rank, as by key it could be taken
     * for the new one. */
    rank += pos;
    enum status st = ST_OK;
    if (here) {
        struct order_entry e = {to->key, to->ref};
        st = insert_at(o, &p, l, pos + upward, &e);
        new_rank = upward ? rank + 1 : rank;
    } else {
        st = insert(o, to, &new_rank);
    }
    if (st == ST_OK) {
        moved->key = to->key;
        remove_rank(o, rank + (new_rank <= rank));
    }
    return st;
}

enum status order_update_key(struct order *o, uint64_t old_key, uint64_t ref, const void *probe,
                             uint64_t new_key) {
    struct target from = {.key = old_key, .ref = ref, .probe = probe};
    struct target to = {.key = new_key, .ref = ref, .probe = probe};
    struct order_entry moved = {old_key, ref};
    if (o->root == NULL) {
        return ST_NOTFOUND;
    }
    /* What key_of says of this ref is not known during the move: believe `moved`. */
    o->moved = &moved;
    enum status st = move(o, &from, &to, &moved);
    o->moved = NULL;
    return st;
}

enum status order_replace_ref(struct order *o, uint64_t key, uint64_t old_ref, const void *probe,
                              uint64_t new_ref) {
    struct target from = {.key = key, .ref = old_ref, .probe = probe};
    struct target to = {.key = key, .ref = new_ref, .probe = probe};
    struct order_entry moved = {key, old_ref};
    if (o->root == NULL) {
        return ST_NOTFOUND;
    }
    return move(o, &from, &to, &moved);
}

/* ---- bulk build ---- */

void order_build_init(struct order_builder *b, struct order *o) {
    b->order = o;
    b->len = 0;
    b->any = order_last(o, &b->last);
}

static void gather_batch(struct gather *g, const struct order_builder *b, uint32_t from) {
    g->len = 0;
    for (uint32_t i = from; i < b->len; i++) {
        g->key[g->len] = b->batch[i].key;
        g->ref[g->len] = b->batch[i].ref;
        g->grain[g->len++] = 0;
    }
}

static enum status flush(struct order_builder *b) {
    struct order *o = b->order;
    struct path p = {.depth = 0};
    struct gather g;
    uint32_t pos = 0;
    gather_batch(&g, b, 0);
    if (g.len > 0 && o->root == NULL) {
        struct layout lay;
        bool fits = layout_make(o, &g, 1, &lay);
        enum status st =
            fits ? layout_apply(o, &p, 0, 0, &g, &lay) : insert_at(o, &p, NULL, 0, &b->batch[0]);
        if (st == ST_OK && fits) {
            o->count = g.len;
        }
        if (st != ST_OK || fits) {
            b->len = 0;
            return st;
        }
        gather_batch(&g, b, 1);
    }
    b->len = 0;
    if (g.len == 0) {
        return ST_OK;
    }
    order_descend_rank(o, o->count - 1, &p, &pos);
    return attach_last(o, &p, &g);
}

enum status order_build_add(struct order_builder *b, uint64_t key, uint64_t ref) {
    assert(ref <= ORDER_REF_MAX);
    if (b->any && (key < b->last.key ||
                   (key == b->last.key && b->order->ops->compare == NULL && ref <= b->last.ref))) {
        return ST_RANGE;
    }
    if (b->len == LEAF_ENTRIES_MAX) {
        enum status st = flush(b);
        if (st != ST_OK) {
            return st;
        }
    }
    b->any = true;
    b->last = (struct order_entry){key, ref};
    b->batch[b->len++] = b->last;
    return ST_OK;
}

enum status order_build_finish(struct order_builder *b) {
    return flush(b);
}
