/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes inside the tree. What needs several steps first brings the blocks into a shape that holds
 * the same elements, so a step that fails leaves the sequence as it was. */
#include "seq_priv.h"

/* Neighbours that together weigh less become one block. */
#define MERGE_WEIGHT_MAX (SEQ_WEIGHT_MAX * 3 / 4)

/* Bytes of room that are too many. */
#define SHRINK_FROM (3 * SEQ_GROW_STEP / 2)

static struct seq_block *path_block(const struct seq *s, const struct seq_path *p) {
    return entry_block(s, path_entry(p));
}

/* The draft's elements in the place of the block that the path points at. */
static enum status rewrite(struct seq *s, const struct seq_path *p, const struct seq_draft *d,
                           bool grows) {
    uint64_t old = child_ref(path_entry(p)->child), ref;
    enum status st = seq_block_create(s, d, grows, &ref);
    if (st == ST_OK) {
        seq_tree_replace(s, p->step[0].node, p->step[0].pos, ref);
        seq_block_destroy(s, old);
    }
    return st;
}

/* A block that lost elements gets a shorter record, if memory allows. */
static void shrink(struct seq *s, const struct seq_path *p, bool grows) {
    const struct seq_block *b = path_block(s, p);
    if (block_is_large(b) || block_used(b) + SHRINK_FROM > block_cap(b)) {
        return;
    }
    struct strip r = block_strip(b);
    struct seq_draft d;
    seq_draft_init(&d);
    seq_draft_take(&d, &r, 0, r.count);
    enum status st = rewrite(s, p, &d, grows);
    (void)st; /* it stays as it is */
}

/* ---- insert ---------------------------------------------------------------------------------- */

static enum status insert_block(struct seq *s, struct seq_path *p, struct bytes element) {
    uint64_t ref;
    enum status st;
    if (element.len > SEQ_SMALL_MAX) {
        st = seq_block_create_large(s, element, &ref);
    } else {
        struct seq_draft d;
        seq_draft_init(&d);
        seq_draft_put(&d, element);
        st = seq_block_create(s, &d, true, &ref);
    }
    if (st != ST_OK) {
        return st;
    }
    st = seq_tree_insert(s, p, ref);
    if (st != ST_OK) {
        seq_block_destroy(s, ref);
    }
    return st;
}

/* Two blocks of one, cut before element k, 0 < k < count. */
static enum status split(struct seq *s, struct seq_path *p, uint32_t k) {
    uint64_t left = child_ref(path_entry(p)->child), right;
    struct strip r = block_strip(block_at(s, left));
    struct seq_draft d;
    int64_t n = (int64_t)r.count - k;
    seq_draft_init(&d);
    seq_draft_take(&d, &r, k, r.count);
    enum status st = seq_block_create(s, &d, true, &right);
    if (st != ST_OK) {
        return st;
    }
    struct seq_path behind = *p;
    behind.step[0].pos++;
    seq_tree_add(s, p, -n);
    st = seq_tree_insert(s, &behind, right);
    if (st != ST_OK) {
        seq_tree_add(s, p, n);
        seq_block_destroy(s, right);
        return st;
    }
    seq_block_remove(block_at(s, left), k, (uint32_t)n);
    p->levels = 1; /* above, the path is void */
    p->step[0] = (struct seq_step){block_at(s, left)->owner, seq_tree_pos_of(s, left)};
    shrink(s, p, true);
    return ST_OK;
}

/* The element that halves a run by weight, never the first. */
static uint32_t middle(const struct strip *r) {
    uint32_t half = strip_weight(r) / 2, weight = 0, k = 0;
    while (k < r->count - 1 && weight < half) {
        weight += strip_len_at(r, k++) + 2;
    }
    return k;
}

static enum status reshape_and_insert(struct seq *s, const struct seq_path *p,
                                      struct bytes element) {
    struct strip r = block_strip(path_block(s, p));
    struct seq_draft d;
    seq_draft_init(&d);
    seq_draft_take(&d, &r, 0, p->at);
    seq_draft_put(&d, element);
    seq_draft_take(&d, &r, p->at, r.count);
    return rewrite(s, p, &d, true);
}

/* Between two blocks: behind the one before when that is the better place. */
static void prefer_block_before(const struct seq *s, struct seq_path *p) {
    struct seq_step *step = &p->step[0];
    if (p->at != 0 || step->pos == 0) {
        return;
    }
    const struct seq_block *b = path_block(s, p);
    const struct seq_block *before = entry_block(s, &step->node->entry[step->pos - 1]);
    struct strip r = block_strip(b), q = block_strip(before);
    if (!block_is_large(before) && (block_is_large(b) || strip_weight(&q) < strip_weight(&r))) {
        step->pos--;
        p->at = before->count;
    }
}

enum status seq_inner_insert(struct seq *s, uint64_t index, struct bytes element) {
    bool large = element.len > SEQ_SMALL_MAX;
    for (;;) {
        struct seq_path p;
        seq_tree_find(s, index, &p);
        if (!large) {
            prefer_block_before(s, &p);
        }
        struct seq_block *b = path_block(s, &p);
        struct strip r = block_strip(b);
        enum status st;
        if (seq_block_has_room(b, element.len)) {
            seq_block_insert(b, p.at, element);
            seq_tree_add(s, &p, 1);
            return ST_OK;
        }
        if (!large && !block_is_large(b) && seq_block_may_grow(&r, element.len)) {
            st = reshape_and_insert(s, &p, element);
            if (st == ST_OK) {
                seq_tree_add(s, &p, 1);
            }
            return st;
        }
        if (p.at == 0 || p.at == r.count) {
            p.step[0].pos += p.at != 0;
            return insert_block(s, &p, element);
        }
        st = split(s, &p, large ? p.at : middle(&r));
        if (st != ST_OK) {
            return st;
        }
    }
}

bool seq_inner_set(struct seq *s, uint64_t index, struct bytes element) {
    struct seq_path p;
    seq_tree_find(s, index, &p);
    struct seq_block *b = path_block(s, &p);
    struct strip r = block_strip(b);
    if (element.len != strip_len_at(&r, p.at) && !seq_block_resize_at(b, p.at, element.len)) {
        return false;
    }
    r = block_strip(b);
    if (element.len != 0) {
        char *at = (char *)(uintptr_t)r.data + strip_offset(&r, p.at);
        memmove(at, element.ptr, element.len);
    }
    return true;
}

/* ---- remove ---------------------------------------------------------------------------------- */

/* The block at a step and the one behind it become one, when they are light enough and memory
 * allows. */
static bool merge(struct seq *s, const struct seq_path *p, uint32_t left) {
    const struct seq_node *n = p->step[0].node;
    if (left + 1 >= n->len) {
        return false;
    }
    const struct seq_block *a = entry_block(s, &n->entry[left]);
    const struct seq_block *b = entry_block(s, &n->entry[left + 1]);
    struct strip ra = block_strip(a), rb = block_strip(b);
    if (block_is_large(a) || block_is_large(b) ||
        strip_weight(&ra) + strip_weight(&rb) > MERGE_WEIGHT_MAX) {
        return false;
    }
    struct seq_draft d;
    seq_draft_init(&d);
    seq_draft_take(&d, &ra, 0, ra.count);
    seq_draft_take(&d, &rb, 0, rb.count);
    struct seq_path to = *p, from = *p;
    to.step[0].pos = left;
    from.step[0].pos = left + 1;
    uint64_t gone = child_ref(n->entry[left + 1].child);
    if (rewrite(s, &to, &d, true) != ST_OK) {
        return false;
    }
    seq_tree_add(s, &to, rb.count);
    seq_tree_remove(s, &from);
    seq_block_destroy(s, gone);
    return true;
}

/* The block that the path points at has lost elements. */
static void tidy(struct seq *s, const struct seq_path *p) {
    uint32_t pos = p->step[0].pos;
    struct strip r = block_strip(path_block(s, p));
    bool light = strip_weight(&r) <= MERGE_WEIGHT_MAX / 2;
    if (!light || !(merge(s, p, pos) || (pos > 0 && merge(s, p, pos - 1)))) {
        shrink(s, p, false);
    }
}

/* Take out the whole blocks of a range that begins at the path and goes beyond its block: their
 * elements. */
static uint64_t cut_blocks(struct seq *s, const struct seq_path *p, uint64_t index,
                           uint64_t count) {
    uint64_t from = p->at == 0 ? index : index - p->at + path_block(s, p)->count;
    uint64_t to = index + count;
    if (to < s->inner) {
        struct seq_path end;
        seq_tree_find(s, to, &end);
        to -= end.at;
    }
    if (from >= to) {
        return 0;
    }
    seq_tree_cut(s, from, to);
    return to - from;
}

void seq_inner_remove(struct seq *s, uint64_t index, uint64_t count) {
    bool whole = true;
    while (count > 0) {
        struct seq_path p;
        seq_tree_find(s, index, &p);
        uint64_t ref = child_ref(path_entry(&p)->child);
        struct seq_block *b = block_at(s, ref);
        uint32_t n = b->count - p.at;
        if (whole && count > n) {
            whole = false; /* what is left then are parts of two blocks */
            count -= cut_blocks(s, &p, index, count);
            continue;
        }
        n = count < n ? (uint32_t)count : n;
        count -= n;
        if (n == b->count) {
            seq_tree_remove(s, &p);
            seq_block_destroy(s, ref);
        } else {
            seq_block_remove(b, p.at, n);
            seq_tree_add(s, &p, -(int64_t)n);
            tidy(s, &p);
        }
    }
}
