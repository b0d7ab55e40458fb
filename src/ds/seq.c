/* SPDX-License-Identifier: BSD-3-Clause */
/* What is public: which part an index lies in, walks over the parts, totals. */
#include "ds/seq.h"

#include "mem/account.h"
#include "seq_priv.h"

/* Blocks that one step of freeing visits for a unit of its budget. */
#define FREE_BLOCKS_PER_UNIT 16

/* Removing more than this from an end that is empty works on the block; fewer, the block moves into
 * the end first, as more of the kind may follow. */
#define LOAD_COUNT_MAX 128

/* Where an index lies: a run, and the place in it (in a head, counted from the bottom). */
struct place {
    enum seq_run_kind run;
    uint64_t at;
};

static inline struct place place_of(const struct seq *s, uint64_t index) {
    uint64_t head = s->end[SEQ_HEAD].count;
    if (index < head) {
        return (struct place){RUN_HEAD, head - 1 - index};
    }
    index -= head;
    return index < s->inner ? (struct place){RUN_BLOCK, index}
                            : (struct place){RUN_TAIL, index - s->inner};
}

static inline const struct seq_buffer *place_buffer(const struct seq *s, struct place p) {
    return &s->end[p.run == RUN_HEAD ? SEQ_HEAD : SEQ_TAIL];
}

/* ---- life ------------------------------------------------------------------------------------ */

void seq_init(struct seq *s, struct pages *pages) {
    *s = (struct seq){.root = NULL};
    arena_init(&s->arena, &seq_arena_ops, s, pages);
}

bool seq_deinit_step(struct seq *s, size_t budget) {
    for (int i = 0; i < 2; i++) {
        account_free(ACCOUNT_VALUE, s->end[i].memory);
        s->end[i] = (struct seq_buffer){0};
    }
    size_t blocks =
        budget < SIZE_MAX / FREE_BLOCKS_PER_UNIT ? budget * FREE_BLOCKS_PER_UNIT : budget;
    if (!seq_tree_free_step(s, &blocks)) {
        return false;
    }
    s->inner = 0;
    return arena_deinit_step(&s->arena, budget == SIZE_MAX ? SIZE_MAX : 1);
}

void seq_deinit(struct seq *s) {
    bool done = seq_deinit_step(s, SIZE_MAX);
    assert(done);
    (void)done;
}

/* ---- insert ---------------------------------------------------------------------------------- */

/* An element alone in its block, at one edge of the tree. */
static enum status push_large(struct seq *s, enum seq_end end, struct bytes element) {
    uint64_t ref;
    enum status st = seq_end_flush(s, end);
    if (st == ST_OK) {
        st = seq_block_create_large(s, element, &ref);
    }
    if (st != ST_OK) {
        return st;
    }
    struct seq_path p;
    seq_tree_edge(s, end, end == SEQ_TAIL, &p);
    st = seq_tree_insert(s, &p, ref);
    if (st != ST_OK) {
        seq_block_destroy(s, ref);
    }
    return st;
}

/* Make room in an end for an element that may lie in that end's memory: kept keeps its bytes. */
static enum status make_room(struct seq *s, enum seq_end end, struct bytes *element, char *kept) {
    const struct seq_buffer *b = &s->end[end];
    uintptr_t from = (uintptr_t)element->ptr, memory = (uintptr_t)b->memory;
    if (from >= memory && from < memory + b->cap) {
        memcpy(kept, element->ptr, element->len);
        element->ptr = kept;
    }
    return seq_end_make_room(s, end, element->len);
}

static NOINLINE enum status push_slow(struct seq *s, enum seq_end end, struct bytes element) {
    char kept[SEQ_SMALL_MAX];
    enum status st;
    if (element.len > SEQ_SMALL_MAX) {
        st = push_large(s, end, element);
    } else {
        st = make_room(s, end, &element, kept);
        if (st == ST_OK) {
            buffer_push(&s->end[end], element);
        }
    }
    seq_compact(s);
    return st;
}

enum status seq_push(struct seq *s, enum seq_end end, struct bytes element) {
    struct seq_buffer *b = &s->end[end];
    if (LIKELY(element.len <= SEQ_SMALL_MAX && buffer_has_room(b, element.len))) {
        buffer_push(b, element);
        return ST_OK;
    }
    return push_slow(s, end, element);
}

/* Between elements: into an end's buffer while there is one on either side, else into the tree. */
static enum status insert(struct seq *s, uint64_t index, struct bytes element) {
    char kept[SEQ_SMALL_MAX];
    if (element.len != 0 && element.len <= SEQ_SMALL_MAX) {
        memcpy(kept, element.ptr, element.len);
        element.ptr = kept; /* what moves below may be what it was a view of */
    }
    for (;;) {
        uint64_t head = s->end[SEQ_HEAD].count;
        bool in_head = head != 0 && index <= head;
        if (!in_head && index - head < s->inner) {
            return seq_inner_insert(s, index - head, element);
        }
        if (!in_head && s->end[SEQ_TAIL].count == 0) {
            return push_slow(s, SEQ_TAIL, element);
        }
        enum seq_end end = in_head ? SEQ_HEAD : SEQ_TAIL;
        struct seq_buffer *b = &s->end[end];
        enum status st;
        if (element.len > SEQ_SMALL_MAX) {
            st = seq_end_flush(s, end);
        } else if (buffer_has_room(b, element.len)) {
            seq_buffer_insert(b, (uint32_t)(in_head ? head - index : index - head - s->inner),
                              element);
            return ST_OK;
        } else {
            st = seq_end_make_room(s, end, element.len);
        }
        if (st != ST_OK) {
            return st;
        }
    }
}

enum status seq_insert(struct seq *s, uint64_t index, struct bytes element) {
    assert(index <= seq_count(s));
    if (index == 0 || index == seq_count(s)) {
        return seq_push(s, index == 0 ? SEQ_HEAD : SEQ_TAIL, element);
    }
    enum status st = insert(s, index, element);
    seq_compact(s);
    return st;
}

/* ---- replace --------------------------------------------------------------------------------- */

static bool set_in_place(struct seq *s, uint64_t index, struct bytes element) {
    struct place p = place_of(s, index);
    if (p.run == RUN_BLOCK) {
        return seq_inner_set(s, p.at, element);
    }
    struct seq_buffer *b = &s->end[p.run == RUN_HEAD ? SEQ_HEAD : SEQ_TAIL];
    if (!seq_buffer_resize_at(b, (uint32_t)p.at, element.len)) {
        return false;
    }
    if (element.len != 0) {
        struct strip r = seq_buffer_strip(b);
        memmove(b->memory + b->start + strip_offset(&r, (uint32_t)p.at), element.ptr, element.len);
    }
    return true;
}

enum status seq_set(struct seq *s, uint64_t index, struct bytes element) {
    assert(index < seq_count(s));
    if (set_in_place(s, index, element)) {
        return ST_OK;
    }
    enum status st = seq_insert(s, index, element);
    if (st == ST_OK) {
        seq_remove(s, index + 1, 1);
    }
    return st;
}

/* ---- remove ---------------------------------------------------------------------------------- */

static void remove_from_end(struct seq *s, enum seq_end end, uint64_t i, uint64_t n) {
    if (n != 0) {
        seq_buffer_remove(&s->end[end], (uint32_t)i, (uint32_t)n);
        seq_end_trim(s, end);
    }
}

static uint64_t overlap(uint64_t from, uint64_t to, uint64_t start, uint64_t stop) {
    from = from > start ? from : start;
    to = to < stop ? to : stop;
    return to > from ? to - from : 0;
}

static void remove_range(struct seq *s, uint64_t from, uint64_t to) {
    uint64_t head = s->end[SEQ_HEAD].count, behind = head + s->inner;
    uint64_t in_tail = overlap(from, to, behind, UINT64_MAX);
    uint64_t in_blocks = overlap(from, to, head, behind);
    uint64_t in_head = overlap(from, to, 0, head);
    remove_from_end(s, SEQ_TAIL, from > behind ? from - behind : 0, in_tail);
    seq_inner_remove(s, from > head ? from - head : 0, in_blocks);
    remove_from_end(s, SEQ_HEAD, head - from - in_head, in_head);
}

static inline void pop(struct seq_buffer *b) {
    uint16_t len;
    b->count--;
    memcpy(&len, b->memory + b->cap - 2 * ((size_t)b->gone + b->count + 1), sizeof(len));
    b->stop -= len;
}

/* One element at an end whose buffer has more than it. */
static inline bool pop_fast(struct seq *s, uint64_t index, uint64_t total) {
    struct seq_buffer *b = &s->end[index == 0 ? SEQ_HEAD : SEQ_TAIL];
    if ((index != 0 && index + 1 != total) || b->count < 2 || s->root == NULL) {
        return false;
    }
    pop(b);
    return true;
}

uint64_t seq_remove(struct seq *s, uint64_t index, uint64_t count) {
    uint64_t total = seq_count(s);
    if (index >= total || count == 0) {
        return 0;
    }
    count = count < total - index ? count : total - index;
    if (count == 1 && LIKELY(pop_fast(s, index, total))) {
        return 1;
    }
    if (count <= LOAD_COUNT_MAX) {
        if (index == 0 && s->end[SEQ_HEAD].count == 0) {
            seq_end_load(s, SEQ_HEAD);
        } else if (index + count == total && s->end[SEQ_TAIL].count == 0) {
            seq_end_load(s, SEQ_TAIL);
        }
    }
    remove_range(s, index, index + count);
    if (s->root == NULL) {
        seq_end_trim(s, SEQ_HEAD);
        seq_end_trim(s, SEQ_TAIL);
    }
    seq_compact(s);
    return count;
}

/* ---- look-up --------------------------------------------------------------------------------- */

static const char *even_element(const struct seq *s, uint64_t child, uint32_t at) {
    return block_data(block_at(s, child_ref(child))) + (size_t)at * child_extra(child);
}

bool seq_at(const struct seq *s, uint64_t index, struct bytes *element) {
    if (index >= seq_count(s)) {
        return false;
    }
    struct place p = place_of(s, index);
    if (p.run != RUN_BLOCK) {
        struct strip r = seq_buffer_strip(place_buffer(s, p));
        *element = strip_at(&r, (uint32_t)p.at);
        return true;
    }
    struct seq_path path;
    seq_tree_find(s, p.at, &path);
    const struct seq_entry *e = path_entry(&path);
    if (e->child & CHILD_EVEN) {
        *element = BYTES(even_element(s, e->child, path.at), child_extra(e->child));
    } else {
        struct strip r = block_strip(entry_block(s, e));
        *element = strip_at(&r, path.at);
    }
    return true;
}

void seq_prefetch(const struct seq *s, uint64_t index) {
    if (index >= seq_count(s)) {
        return;
    }
    struct place p = place_of(s, index);
    if (p.run != RUN_BLOCK) {
        const struct seq_buffer *b = place_buffer(s, p);
        PREFETCH(b->memory + (p.at == 0 ? b->start : b->stop));
        return;
    }
    struct seq_path path;
    seq_tree_find(s, p.at, &path);
    const struct seq_entry *e = path_entry(&path);
    if (e->child & CHILD_EVEN) {
        PREFETCH(even_element(s, e->child, path.at));
    } else {
        const char *b = (const char *)entry_block(s, e);
        PREFETCH(b);
        PREFETCH(b + 2 * (size_t)child_extra(e->child) - 64); /* lengths; more tells the header */
    }
}

/* ---- iteration ------------------------------------------------------------------------------- */

void seq_iter_init(struct seq_iter *it, const struct seq *s, uint64_t index, bool backward) {
    uint64_t total = seq_count(s);
    *it = (struct seq_iter){
        .seq = s, .index = index < total ? index : total, .run = RUN_NONE, .backward = backward};
}

static struct strip iter_strip(const struct seq_iter *it) {
    const struct seq *s = it->seq;
    return it->run == RUN_BLOCK
               ? block_strip(entry_block(s, &it->node->entry[it->pos]))
               : seq_buffer_strip(&s->end[it->run == RUN_HEAD ? SEQ_HEAD : SEQ_TAIL]);
}

/* Does the walk go upward in its run? */
static bool iter_ascends(const struct seq_iter *it) {
    return it->backward == (it->run == RUN_HEAD);
}

/* Find the run of the next element. */
static void iter_enter(struct seq_iter *it) {
    struct place p = place_of(it->seq, it->backward ? it->index - 1 : it->index);
    it->run = (uint8_t)p.run;
    if (p.run == RUN_BLOCK) {
        struct seq_path path;
        seq_tree_find(it->seq, p.at, &path);
        it->node = path.step[0].node;
        it->pos = path.step[0].pos;
        p.at = path.at;
    }
    struct strip r = iter_strip(it);
    it->place = (uint32_t)p.at + !iter_ascends(it);
    it->off = strip_offset(&r, it->place);
}

/* The lines of a block that a walk touches first. The rest comes in order, which the hardware sees
 * by itself. */
static void prefetch_block(const struct seq *s, const struct seq_entry *e) {
    const char *b = (const char *)entry_block(s, e);
    PREFETCH(b);
    PREFETCH(b + 64);
    PREFETCH(b + 128);
    PREFETCH(b + 192);
}

/* This run is done: the next block of the node, or a new search. */
static void iter_leave(struct seq_iter *it) {
    bool more = it->run == RUN_BLOCK && (it->backward ? it->pos > 0 : it->pos + 1 < it->node->len);
    if (!more) {
        it->run = RUN_NONE;
        return;
    }
    it->pos += it->backward ? UINT32_MAX : 1;
    struct strip r = iter_strip(it);
    it->place = it->backward ? r.count : 0;
    it->off = it->backward ? strip_data_len(&r) : 0;
    uint32_t next = it->pos + (it->backward ? UINT32_MAX : 1);
    if (next < it->node->len) {
        prefetch_block(it->seq, &it->node->entry[next]);
    }
}

size_t seq_fetch(struct seq_iter *it, struct bytes *out, size_t cap) {
    size_t done = 0;
    uint64_t total = seq_count(it->seq);
    while (done < cap && (it->backward ? it->index > 0 : it->index < total)) {
        if (it->run == RUN_NONE) {
            iter_enter(it);
        }
        struct strip r = iter_strip(it);
        bool up = iter_ascends(it);
        uint32_t left = up ? r.count - it->place : it->place;
        uint32_t n = cap - done < left ? (uint32_t)(cap - done) : left;
        strip_read(&r, &it->place, &it->off, !up, out + done, n);
        done += n;
        it->index += it->backward ? -(uint64_t)n : n;
        if (n == left) {
            iter_leave(it);
        }
    }
    return done;
}

/* ---- totals ---------------------------------------------------------------------------------- */

static void count_node(const struct seq *s, const struct seq_node *n, struct seq_stats *out) {
    out->nodes++;
    for (uint32_t i = 0; i < n->len; i++) {
        if (n->level != 0) {
            count_node(s, child_node(n->entry[i].child), out);
            continue;
        }
        const struct seq_block *b = entry_block(s, &n->entry[i]);
        out->blocks++;
        out->used_bytes += block_used(b);
        out->block_bytes += arena_round(block_cap(b));
    }
}

void seq_get_stats(const struct seq *s, struct seq_stats *out) {
    *out = (struct seq_stats){0};
    if (s->root != NULL) {
        count_node(s, s->root, out);
    }
}

size_t seq_bytes(const struct seq *s) {
    struct arena_stats stats;
    arena_get_stats(&s->arena, &stats);
    return stats.reserved_bytes + s->node_bytes + s->boxed_bytes + s->end[SEQ_HEAD].cap +
           s->end[SEQ_TAIL].cap;
}
