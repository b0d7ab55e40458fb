/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends: buffers that grow at their tops, and what passes between them and the tree. */
#include "mem/account.h"
#include "seq_priv.h"

/* A block's weight and a third more: a push into a full buffer leaves elements in it, a block taken
 * back leaves room for some. The size is a class of jemalloc's. */
#define BUFFER_MAX 12288
#define BUFFER_MIN 64

/* Of the last few elements that could close a block, those wait for the next that would make the
 * record longer, rounded as the arena does, than they are worth. */
#define FIT_TRIES 4
#define BLOCK_EXTRA 16 /* bytes a block costs outside its record */

static_assert(BUFFER_MAX / 2 <= UINT16_MAX, "slots fit their fields");

/* ---- buffers --------------------------------------------------------------------------------- */

struct strip seq_buffer_strip(const struct seq_buffer *b) {
    if (b->cap == 0) {
        return (struct strip){.form = STRIP_SHORT};
    }
    return (struct strip){b->memory + b->start, b->memory + b->cap - 2 * (size_t)b->gone, b->count,
                          b->stop - b->start, STRIP_SHORT};
}

static uint32_t buffer_weight(const struct seq_buffer *b) {
    return b->stop - b->start + 2U * b->count;
}

static uint16_t *slot(const struct seq_buffer *b, uint32_t i) {
    return (uint16_t *)(void *)(b->memory + b->cap) - 1 - b->gone - i;
}

static void drop_bottom(struct seq_buffer *b, uint32_t n, uint32_t bytes) {
    b->start += bytes;
    b->gone = (uint16_t)(b->gone + n);
    b->count = (uint16_t)(b->count - n);
    if (b->count == 0) {
        b->start = b->stop = b->gone = 0;
    }
}

static void store(struct seq_buffer *b, const struct strip *r) {
    b->stop = b->start + r->len;
    b->count = (uint16_t)r->count;
}

void seq_buffer_remove(struct seq_buffer *b, uint32_t i, uint32_t n) {
    struct strip r = seq_buffer_strip(b);
    if (i == 0) {
        drop_bottom(b, n, strip_offset(&r, n));
    } else {
        strip_remove(&r, i, n);
        store(b, &r);
    }
}

void seq_buffer_insert(struct seq_buffer *b, uint32_t i, struct bytes element) {
    struct strip r = seq_buffer_strip(b);
    strip_insert(&r, i, element);
    store(b, &r);
}

bool seq_buffer_resize_at(struct seq_buffer *b, uint32_t i, size_t len) {
    struct strip r = seq_buffer_strip(b);
    uint32_t old = strip_len_at(&r, i);
    if (len > SEQ_SMALL_MAX || b->stop + len + 2 * ((size_t)b->gone + b->count) > b->cap + old) {
        return len == old;
    }
    strip_resize_at(&r, i, len);
    store(b, &r);
    return true;
}

/* Move the elements to the front of a memory of cap bytes: the same or another one. */
static void buffer_move(struct seq_buffer *b, char *memory, uint32_t cap) {
    uint32_t data_len = b->stop - b->start;
    size_t lens_len = 2 * (size_t)b->count;
    if (b->count != 0) {
        memmove(memory, b->memory + b->start, data_len);
        memmove(memory + cap - lens_len, slot(b, b->count - 1U), lens_len);
    }
    if (memory != b->memory) {
        account_free(ACCOUNT_VALUE, b->memory);
    }
    *b = (struct seq_buffer){.memory = memory, .cap = cap, .stop = data_len, .count = b->count};
}

/* want: at least the weight. */
static enum status buffer_resize(struct seq_buffer *b, size_t want) {
    size_t cap = account_good_size(want < BUFFER_MIN ? BUFFER_MIN : (want + 1) & ~(size_t)1);
    cap = cap < BUFFER_MAX ? cap : BUFFER_MAX;
    assert(cap >= buffer_weight(b));
    char *memory = account_alloc(ACCOUNT_VALUE, cap);
    if (memory == NULL) {
        return ST_NOMEM;
    }
    buffer_move(b, memory, (uint32_t)cap);
    return ST_OK;
}

static void buffer_release(struct seq_buffer *b) {
    account_free(ACCOUNT_VALUE, b->memory);
    *b = (struct seq_buffer){0};
}

/* ---- towards the tree ------------------------------------------------------------------------ */

/* How many of the bottom elements make the next block. */
static uint32_t plan_block(const struct strip *r) {
    struct strip plan = {.form = STRIP_EVEN};
    uint32_t best = 0;
    size_t best_cost = 0;
    while (plan.count < r->count) {
        uint32_t len = strip_len_at(r, plan.count);
        if (!seq_block_may_grow(&plan, len)) {
            break;
        }
        uint32_t form = strip_form_for(&plan, len);
        plan.len = form == STRIP_EVEN ? len : strip_data_len(&plan) + len;
        plan.form = form;
        plan.count++;
    }
    if (plan.count == r->count) {
        return plan.count;
    }
    for (uint32_t tries = 0; tries < FIT_TRIES && tries + 1 < plan.count; tries++) {
        uint32_t n = plan.count - tries;
        uint32_t data_len = strip_offset(r, n);
        size_t cost = arena_round(block_size(plan.form, n, data_len)) + BLOCK_EXTRA;
        if (best == 0 || cost * best < best_cost * n) {
            best = n;
            best_cost = cost;
        }
    }
    return best != 0 ? best : 1;
}

/* One block's worth from the bottom of an end to the tree's edge there. */
static enum status hand_over(struct seq *s, enum seq_end end) {
    struct seq_buffer *b = &s->end[end];
    struct strip r = seq_buffer_strip(b);
    struct seq_draft d;
    struct seq_path p;
    uint64_t ref;
    uint32_t n = plan_block(&r);
    seq_draft_init(&d);
    if (end == SEQ_TAIL) {
        seq_draft_take(&d, &r, 0, n);
    } else {
        seq_draft_take_reversed(&d, &r, 0, n);
    }
    enum status st = seq_block_create(s, &d, false, &ref);
    if (st != ST_OK) {
        return st;
    }
    seq_tree_edge(s, end, end == SEQ_TAIL, &p);
    st = seq_tree_insert(s, &p, ref);
    if (st != ST_OK) {
        seq_block_destroy(s, ref);
        return st;
    }
    drop_bottom(b, n, d.data_len);
    return ST_OK;
}

enum status seq_end_flush(struct seq *s, enum seq_end end) {
    enum status st = ST_OK;
    while (s->end[end].count != 0 && st == ST_OK) {
        st = hand_over(s, end);
    }
    return st;
}

enum status seq_end_make_room(struct seq *s, enum seq_end end, size_t len) {
    struct seq_buffer *b = &s->end[end];
    assert(len <= SEQ_SMALL_MAX);
    while (!buffer_has_room(b, len)) {
        size_t need = buffer_weight(b) + len + 2;
        if (need <= b->cap && b->start + 2U * b->gone >= b->cap / 4) {
            buffer_move(b, b->memory, b->cap);
            return ST_OK;
        }
        if (b->cap < BUFFER_MAX && need <= BUFFER_MAX) {
            size_t want = b->cap + b->cap / 2;
            return buffer_resize(b, want > need ? want : need);
        }
        enum status st = hand_over(s, end);
        if (st != ST_OK) {
            return st;
        }
    }
    return ST_OK;
}

/* ---- from the tree --------------------------------------------------------------------------- */

static void fill(struct seq_buffer *b, const struct strip *r, bool reversed) {
    uint32_t at = strip_data_len(r);
    b->stop = at;
    b->count = (uint16_t)r->count;
    if (!reversed && at != 0) {
        memcpy(b->memory, r->data, at);
    }
    const char *from = r->data;
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t len = strip_len_at(r, i);
        *slot(b, reversed ? r->count - 1 - i : i) = (uint16_t)len;
        if (reversed) {
            at -= len;
            memcpy(b->memory + at, from, len);
            from += len;
        }
    }
}

bool seq_end_load(struct seq *s, enum seq_end end) {
    struct seq_buffer *b = &s->end[end];
    struct seq_path p;
    assert(b->count == 0);
    if (s->root == NULL) {
        return false;
    }
    seq_tree_edge(s, end, false, &p);
    uint64_t ref = child_ref(path_entry(&p)->child);
    struct strip r = block_strip(block_at(s, ref));
    if (block_is_large(block_at(s, ref)) ||
        (b->cap < strip_weight(&r) && buffer_resize(b, strip_weight(&r)) != ST_OK)) {
        return false;
    }
    fill(b, &r, end == SEQ_HEAD);
    seq_tree_remove(s, &p);
    seq_block_destroy(s, ref);
    return true;
}

void seq_end_trim(struct seq *s, enum seq_end end) {
    struct seq_buffer *b = &s->end[end];
    if (s->root != NULL || b->cap <= BUFFER_MIN) {
        return;
    }
    if (b->count == 0) {
        buffer_release(b);
    } else if (buffer_weight(b) < b->cap / 8) {
        enum status st = buffer_resize(b, b->cap / 2);
        (void)st; /* it stays as it is */
    }
}
