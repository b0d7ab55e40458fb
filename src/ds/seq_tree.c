/* SPDX-License-Identifier: BSD-3-Clause */
/* The counted tree: a B+-tree by position (order-statistic tree, Cormen et al., ch. 14). Only
 * blocks know their node, for the arena's sake; everything else comes with a path. */
#include "mem/account.h"
#include "seq_priv.h"

/* The first node of a short sequence. It doubles until it is full; all others are full-sized. */
#define NODE_FIRST 4

/* Two siblings become one when they fit this. */
#define NODE_MERGE_MAX (SEQ_NODE_MAX * 3 / 4)

/* ---- nodes ----------------------------------------------------------------------------------- */

static size_t node_size(uint32_t cap) {
    return sizeof(struct seq_node) + cap * sizeof(struct seq_entry);
}

static struct seq_node *node_create(struct seq *s, uint32_t level, uint32_t cap) {
    struct seq_node *n = account_alloc(ACCOUNT_VALUE, node_size(cap));
    if (n != NULL) {
        *n = (struct seq_node){.len = 0, .cap = (uint16_t)cap, .level = level};
        s->node_bytes += account_good_size(node_size(cap));
    }
    return n;
}

static void node_destroy(struct seq *s, struct seq_node *n) {
    s->node_bytes -= account_good_size(node_size(n->cap));
    account_free(ACCOUNT_VALUE, n);
}

static uint64_t node_total(const struct seq_node *n) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < n->len; i++) {
        total += n->entry[i].count;
    }
    return total;
}

static void adopt(struct seq *s, struct seq_node *n, uint32_t from, uint32_t to) {
    if (n->level != 0) {
        return;
    }
    for (uint32_t i = from; i < to; i++) {
        PREFETCH(entry_block(s, &n->entry[i]));
    }
    for (uint32_t i = from; i < to; i++) {
        entry_block(s, &n->entry[i])->owner = n;
    }
}

static void node_put(struct seq *s, struct seq_node *n, uint32_t pos, struct seq_entry e) {
    memmove(&n->entry[pos + 1], &n->entry[pos], (n->len - pos) * sizeof(n->entry[0]));
    n->entry[pos] = e;
    n->len++;
    adopt(s, n, pos, pos + 1);
}

static void node_take(struct seq_node *n, uint32_t pos) {
    n->len--;
    memmove(&n->entry[pos], &n->entry[pos + 1], (n->len - pos) * sizeof(n->entry[0]));
}

/* Entries from .. of one node go behind those of another. */
static void node_move(struct seq *s, struct seq_node *to, struct seq_node *from, uint32_t first) {
    uint32_t n = from->len - first, len = to->len;
    memcpy(&to->entry[len], &from->entry[first], n * sizeof(to->entry[0]));
    to->len = (uint16_t)(len + n);
    from->len = (uint16_t)first;
    adopt(s, to, len, len + n);
}

/* ---- paths ----------------------------------------------------------------------------------- */

void seq_tree_find(const struct seq *s, uint64_t index, struct seq_path *p) {
    struct seq_node *n = s->root;
    p->levels = n->level + 1;
    for (;;) {
        uint32_t pos = 0;
        while (index >= n->entry[pos].count) {
            index -= n->entry[pos++].count;
        }
        p->step[n->level] = (struct seq_step){n, pos};
        if (n->level == 0) {
            break;
        }
        n = child_node(n->entry[pos].child);
    }
    p->at = (uint32_t)index;
}

void seq_tree_edge(const struct seq *s, enum seq_end end, bool behind, struct seq_path *p) {
    struct seq_node *n = s->root;
    p->at = 0;
    p->levels = n == NULL ? 0 : n->level + 1;
    while (n != NULL) {
        uint32_t pos = end == SEQ_HEAD ? 0 : n->len - 1U;
        struct seq_node *down = n->level == 0 ? NULL : child_node(n->entry[pos].child);
        p->step[n->level] = (struct seq_step){n, pos + (n->level == 0 && behind)};
        n = down;
    }
}

void seq_tree_add(struct seq *s, const struct seq_path *p, int64_t delta) {
    for (uint32_t l = 0; l < p->levels; l++) {
        p->step[l].node->entry[p->step[l].pos].count += (uint64_t)delta;
    }
    s->inner += (uint64_t)delta;
}

uint32_t seq_tree_pos_of(const struct seq *s, uint64_t ref) {
    const struct seq_node *n = block_at(s, ref)->owner;
    uint32_t pos = 0;
    while (child_ref(n->entry[pos].child) != ref) {
        pos++;
    }
    return pos;
}

void seq_tree_replace(struct seq *s, struct seq_node *node, uint32_t pos, uint64_t ref) {
    node->entry[pos].child = child_of_block(s, ref);
    block_at(s, ref)->owner = node;
}

/* ---- insert ---------------------------------------------------------------------------------- */

/* The only node of a short sequence gets twice its room. */
static enum status grow_root(struct seq *s, struct seq_path *p) {
    struct seq_node *old = s->root;
    uint32_t cap = 2U * old->cap < SEQ_NODE_MAX ? 2U * old->cap : SEQ_NODE_MAX;
    struct seq_node *n = node_create(s, 0, cap);
    if (n == NULL) {
        return ST_NOMEM;
    }
    node_move(s, n, old, 0);
    node_destroy(s, old);
    s->root = p->step[0].node = n;
    return ST_OK;
}

struct spares {
    uint32_t count;
    struct seq_node *node[SEQ_HEIGHT_MAX + 1];
};

/* Every node that the insert will need, before anything changes. */
static enum status reserve(struct seq *s, struct seq_path *p, struct spares *spare) {
    spare->count = 0;
    if (s->root == NULL) {
        s->root = node_create(s, 0, NODE_FIRST);
        *p = (struct seq_path){.levels = 1, .step = {{s->root, 0}}};
        return s->root == NULL ? ST_NOMEM : ST_OK;
    }
    if (s->root->len == s->root->cap && s->root->cap < SEQ_NODE_MAX) {
        return grow_root(s, p);
    }
    uint32_t full = 0;
    while (full < p->levels && p->step[full].node->len == SEQ_NODE_MAX) {
        full++;
    }
    uint32_t want = full + (full == p->levels);
    bool ok = full < SEQ_HEIGHT_MAX;
    while (ok && spare->count < want) {
        spare->node[spare->count] = node_create(s, spare->count, SEQ_NODE_MAX);
        ok = spare->node[spare->count] != NULL;
        spare->count += ok;
    }
    while (!ok && spare->count > 0) {
        node_destroy(s, spare->node[--spare->count]);
    }
    return ok ? ST_OK : ST_NOMEM;
}

/* Make room in a full node for an entry at pos by moving what is behind into an empty one; at
 * either edge nothing moves, so that blocks added one by one fill their nodes. The entry is put,
 * and *e becomes the new node's. True: the new node comes before the old one. */
static bool split(struct seq *s, struct seq_node *n, uint32_t pos, struct seq_node *fresh,
                  struct seq_entry *e) {
    uint32_t keep = pos == 0 || pos == n->len ? n->len : n->len / 2U;
    node_move(s, fresh, n, keep);
    if (pos < keep && pos != 0) {
        node_put(s, n, pos, *e);
    } else {
        node_put(s, fresh, pos == 0 ? 0 : pos - keep, *e);
    }
    *e = (struct seq_entry){node_total(fresh), (uint64_t)(uintptr_t)fresh};
    return pos == 0;
}

static void new_root(struct seq *s, struct seq_path *p, struct seq_node *fresh) {
    node_put(s, fresh, 0, (struct seq_entry){node_total(s->root), (uint64_t)(uintptr_t)s->root});
    p->step[p->levels++] = (struct seq_step){fresh, 0};
    s->root = fresh;
}

enum status seq_tree_insert(struct seq *s, struct seq_path *p, uint64_t ref) {
    struct spares spare;
    enum status st = reserve(s, p, &spare);
    if (st != ST_OK) {
        return st;
    }
    struct seq_entry e = {block_at(s, ref)->count, child_of_block(s, ref)};
    s->inner += e.count;
    for (uint32_t l = 1; l < p->levels; l++) {
        p->step[l].node->entry[p->step[l].pos].count += e.count;
    }
    for (uint32_t l = 0;; l++) {
        struct seq_node *n = p->step[l].node;
        uint32_t pos = p->step[l].pos;
        if (n->len < n->cap) {
            node_put(s, n, pos, e);
            return ST_OK;
        }
        bool before = split(s, n, pos, spare.node[l], &e);
        if (l + 1 == p->levels) {
            new_root(s, p, spare.node[l + 1]);
        }
        struct seq_step *up = &p->step[l + 1];
        up->node->entry[up->pos].count = node_total(n);
        up->pos += !before;
    }
}

/* ---- remove ---------------------------------------------------------------------------------- */

/* Merge the node of a step with a sibling when both fit one. The position of the one to remove from
 * the node above, which is freed; UINT32_MAX: none. */
static uint32_t merge(struct seq *s, const struct seq_step *up, struct seq_node *n) {
    uint32_t left = up->pos + 1U < up->node->len ? up->pos : up->pos - 1U;
    if (up->node->len < 2 || n->len > NODE_MERGE_MAX / 2) {
        return UINT32_MAX;
    }
    struct seq_node *a = child_node(up->node->entry[left].child);
    struct seq_node *b = child_node(up->node->entry[left + 1].child);
    if (a->len + b->len > NODE_MERGE_MAX) {
        return UINT32_MAX;
    }
    node_move(s, a, b, 0);
    up->node->entry[left].count += up->node->entry[left + 1].count;
    node_destroy(s, b);
    return left + 1;
}

/* A root with one child hands over to it; an empty one goes. */
static void lower_root(struct seq *s) {
    while (s->root->level != 0 && s->root->len == 1) {
        struct seq_node *down = child_node(s->root->entry[0].child);
        node_destroy(s, s->root);
        s->root = down;
    }
    if (s->root->len == 0) {
        node_destroy(s, s->root);
        s->root = NULL;
    }
}

void seq_tree_remove(struct seq *s, struct seq_path *p) {
    seq_tree_add(s, p, -(int64_t)path_entry(p)->count);
    for (uint32_t l = 0; l < p->levels; l++) {
        struct seq_node *n = p->step[l].node;
        node_take(n, p->step[l].pos);
        if (l + 1 == p->levels) {
            break;
        }
        if (n->len == 0) {
            node_destroy(s, n);
            continue;
        }
        uint32_t gone = merge(s, &p->step[l + 1], n);
        if (gone == UINT32_MAX) {
            break;
        }
        p->step[l + 1].pos = gone;
    }
    lower_root(s);
}

/* ---- cutting a range out --------------------------------------------------------------------- */

static void doom(struct seq *s, struct seq_node *n) {
    n->entry[0].count = (uint64_t)(uintptr_t)s->doomed;
    s->doomed = n;
}

/* Siblings left short at a cut become one. */
static void rejoin(struct seq *s, struct seq_node *above, uint32_t pos) {
    if (pos < above->len) {
        uint32_t gone =
            merge(s, &(struct seq_step){above, pos}, child_node(above->entry[pos].child));
        if (gone != UINT32_MAX) {
            node_take(above, gone);
        }
    }
}

/* Entries that the cut covers. */
static void drop(struct seq *s, const struct seq_node *n, uint32_t pos, uint32_t stop) {
    for (uint32_t i = pos; i < stop && n->level == 0; i++) {
        PREFETCH(entry_block(s, &n->entry[i]));
    }
    for (uint32_t i = pos; i < stop; i++) {
        if (n->level == 0) {
            seq_block_destroy(s, child_ref(n->entry[i].child));
        } else {
            doom(s, child_node(n->entry[i].child));
        }
    }
}

/* Not everything below n goes. Positions count from n's first element. */
static void cut(struct seq *s, struct seq_node *n, uint64_t from, uint64_t to) {
    uint32_t pos = 0;
    uint64_t at = 0;
    for (; at + n->entry[pos].count <= from; pos++) {
        at += n->entry[pos].count;
    }
    uint32_t first = pos;
    if (at < from || to - at < n->entry[pos].count) { /* a part of this child */
        uint64_t end = at + n->entry[pos].count, stop = to < end ? to : end;
        cut(s, child_node(n->entry[pos].child), from - at, stop - at);
        n->entry[pos++].count -= stop - from;
        at = end;
    }
    uint32_t gone = pos;
    for (; gone < n->len && at + n->entry[gone].count <= to; gone++) {
        at += n->entry[gone].count;
    }
    if (gone < n->len && at < to) {
        cut(s, child_node(n->entry[gone].child), 0, to - at);
        n->entry[gone].count -= to - at;
    }
    drop(s, n, pos, gone);
    memmove(&n->entry[pos], &n->entry[gone], (n->len - gone) * sizeof(n->entry[0]));
    n->len = (uint16_t)(n->len - (gone - pos));
    if (n->level != 0) {
        rejoin(s, n, pos);
        rejoin(s, n, first);
    }
}

void seq_tree_cut(struct seq *s, uint64_t from, uint64_t to) {
    if (to - from == s->inner) {
        doom(s, s->root);
        s->root = NULL;
    } else {
        cut(s, s->root, from, to);
        lower_root(s);
    }
    s->inner -= to - from;
}

/* ---- freeing --------------------------------------------------------------------------------- */

static void free_box(struct seq *s, const struct seq_entry *e) {
    const struct seq_block *b = entry_block(s, e);
    if (b->form == FORM_BOX) {
        struct seq_box *box = block_box(b);
        s->boxed_bytes -= sizeof(*box) + box->len;
        account_free(ACCOUNT_VALUE, box);
    }
}

/* The last blocks of a subtree, from its last leaf; each node goes when it is empty. True when all
 * are gone. A block's record is freed, or stays for the arena to drop as a whole. */
static bool free_last(struct seq *s, struct seq_node *top, bool records, size_t *budget) {
    struct seq_node *n = top, *above = NULL;
    while (n->level != 0 && n->len != 0) {
        above = n;
        n = child_node(n->entry[n->len - 1].child);
    }
    for (; n->level == 0 && n->len != 0 && *budget > 0; n->len--, --*budget) {
        const struct seq_entry *e = &n->entry[n->len - 1];
        if (records) {
            seq_block_destroy(s, child_ref(e->child));
        } else if (s->boxed_bytes != 0) {
            free_box(s, e);
        }
    }
    if (n->len != 0) {
        return false;
    }
    if (above != NULL) {
        above->len--;
    }
    node_destroy(s, n);
    return above == NULL;
}

bool seq_tree_sweep_step(struct seq *s, size_t *budget) {
    while (s->doomed != NULL && *budget > 0) {
        struct seq_node *next = doomed_next(s->doomed);
        if (free_last(s, s->doomed, true, budget)) {
            s->doomed = next;
        }
    }
    return s->doomed == NULL;
}

bool seq_tree_free_step(struct seq *s, size_t *budget) {
    while (*budget > 0 && (s->root != NULL || s->doomed != NULL)) {
        if (s->root == NULL) {
            s->root = s->doomed;
            s->doomed = doomed_next(s->root);
        }
        if (free_last(s, s->root, false, budget)) {
            s->root = NULL;
        }
    }
    return s->root == NULL && s->doomed == NULL;
}
