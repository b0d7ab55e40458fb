/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs and blocks: finding an element, changing a block in place, making new ones. */
#include "mem/account.h"
#include "seq_priv.h"

/* Records moved, or steps of the ladder's move made, for each block made or freed; and in one call at
 * most. It also ends when a chunk was given back. */
#define COMPACT_PER_BLOCK 8
#define COMPACT_MAX 32

/* Doomed blocks that one operation frees. */
#define SWEEP_PER_OPERATION 64

/* The operations that follow make up for a smaller backlog. */
#define BACKLOG_MIN 64

/* ---- in place -------------------------------------------------------------------------------- */

static bool form_holds(const struct seq_block *b, size_t len) {
    return b->form == STRIP_EVEN ? len == b->len : b->form != STRIP_BYTE || len <= UINT8_MAX;
}

bool seq_block_may_grow(const struct strip *r, size_t len) {
    size_t data_len = strip_data_len(r) + len;
    return data_len + 2 * (r->count + (size_t)1) <= SEQ_WEIGHT_MAX &&
           block_size(strip_form_for(r, len), r->count + 1, (uint32_t)data_len) <= SEQ_BLOCK_MAX;
}

bool seq_block_has_room(const struct seq_block *b, size_t len) {
    if (block_is_large(b) || len > SEQ_SMALL_MAX || !form_holds(b, len)) {
        return false;
    }
    struct strip r = block_strip(b);
    return strip_weight(&r) + len + 2 <= SEQ_WEIGHT_MAX &&
           sizeof(*b) + strip_bytes(&r) + len + b->form <= block_cap(b);
}

static void store(struct seq_block *b, const struct strip *r) {
    b->count = (uint16_t)r->count;
    b->len = (uint16_t)r->len;
}

void seq_block_insert(struct seq_block *b, uint32_t i, struct bytes element) {
    struct strip r = block_strip(b);
    strip_insert(&r, i, element);
    store(b, &r);
}

void seq_block_remove(struct seq_block *b, uint32_t i, uint32_t n) {
    struct strip r = block_strip(b);
    strip_remove(&r, i, n);
    store(b, &r);
}

bool seq_block_resize_at(struct seq_block *b, uint32_t i, size_t len) {
    struct strip r = block_strip(b);
    uint32_t old = strip_len_at(&r, i);
    if (len == old) {
        return true;
    }
    if (block_is_large(b) || len > SEQ_SMALL_MAX || !form_holds(b, len) ||
        strip_weight(&r) - old + len > SEQ_WEIGHT_MAX ||
        sizeof(*b) + strip_bytes(&r) - old + len > block_cap(b)) {
        return false;
    }
    strip_resize_at(&r, i, len);
    store(b, &r);
    return true;
}

/* ---- drafts ---------------------------------------------------------------------------------- */

void seq_draft_init(struct seq_draft *d) {
    d->count = d->data_len = d->pieces = d->longest = 0;
    d->shortest = UINT32_MAX;
    d->reversed = false;
}

static void note_len(struct seq_draft *d, uint32_t len) {
    assert(d->count <= SEQ_COUNT_MAX && len <= SEQ_SMALL_MAX);
    d->lens[d->count++] = (uint16_t)len;
    d->shortest = len < d->shortest ? len : d->shortest;
    d->longest = len > d->longest ? len : d->longest;
    d->data_len += len;
}

static void add_piece(struct seq_draft *d, const char *ptr, size_t len) {
    assert(d->pieces < ARRAY_LEN(d->piece));
    d->piece[d->pieces++] = BYTES(ptr, len);
}

void seq_draft_take(struct seq_draft *d, const struct strip *r, uint32_t from, uint32_t to) {
    uint32_t before = d->data_len;
    if (from == to) {
        return;
    }
    for (uint32_t i = from; i < to; i++) {
        note_len(d, strip_len_at(r, i));
    }
    add_piece(d, r->data + strip_offset(r, from), d->data_len - before);
}

void seq_draft_take_reversed(struct seq_draft *d, const struct strip *r, uint32_t from,
                             uint32_t to) {
    assert(d->count == 0);
    for (uint32_t i = to; i > from; i--) {
        note_len(d, strip_len_at(r, i - 1));
    }
    add_piece(d, r->data + strip_offset(r, from), d->data_len);
    d->reversed = true;
}

void seq_draft_put(struct seq_draft *d, struct bytes element) {
    note_len(d, (uint32_t)element.len);
    add_piece(d, element.ptr, element.len);
}

static uint32_t draft_form(const struct seq_draft *d) {
    return d->shortest == d->longest ? STRIP_EVEN
           : d->longest <= UINT8_MAX ? STRIP_BYTE
                                     : STRIP_SHORT;
}

static void write_data(char *p, const struct seq_draft *d) {
    if (d->reversed) {
        const char *from = d->piece[0].ptr + d->data_len;
        for (uint32_t i = 0; i < d->count; i++) {
            from -= d->lens[i];
            memcpy(p, from, d->lens[i]);
            p += d->lens[i];
        }
        return;
    }
    for (uint32_t i = 0; i < d->pieces; i++) {
        if (d->piece[i].len != 0) {
            memcpy(p, d->piece[i].ptr, d->piece[i].len);
            p += d->piece[i].len;
        }
    }
}

enum status seq_block_create(struct seq *s, const struct seq_draft *d, bool grows, uint64_t *ref) {
    uint32_t form = draft_form(d);
    size_t cap = block_size(form, d->count, d->data_len);
    if (grows) {
        cap = (cap + SEQ_GROW_STEP - 1) & ~(size_t)(SEQ_GROW_STEP - 1);
    }
    enum status st = arena_alloc(&s->arena, cap, ref);
    if (st != ST_OK) {
        return st;
    }
    s->churn++;
    struct seq_block *b = block_at(s, *ref);
    *b = (struct seq_block){.form = (uint8_t)form,
                            .count = (uint16_t)d->count,
                            .cap_half = (uint16_t)(cap / 2),
                            .len = (uint16_t)(form == STRIP_EVEN ? d->longest : d->data_len)};
    write_data(block_data(b), d);
    struct strip r = block_strip(b);
    for (uint32_t i = 0; form != STRIP_EVEN && i < d->count; i++) {
        strip_put_len(&r, i, d->lens[i]);
    }
    return ST_OK;
}

static enum status create_box(struct seq *s, struct bytes element, uint64_t *ref) {
    size_t bytes = sizeof(struct seq_box) + element.len;
    struct seq_box *box = account_alloc(ACCOUNT_VALUE, bytes);
    if (box == NULL || arena_alloc(&s->arena, BLOCK_BOX_LEN, ref) != ST_OK) {
        account_free(ACCOUNT_VALUE, box);
        return ST_NOMEM;
    }
    box->len = element.len;
    memcpy(box->bytes, element.ptr, element.len);
    struct seq_block *b = block_at(s, *ref);
    *b = (struct seq_block){.form = FORM_BOX, .count = 1, .cap_half = BLOCK_BOX_LEN / 2};
    memcpy(block_data(b), &box, sizeof(box));
    s->boxed_bytes += bytes;
    return ST_OK;
}

enum status seq_block_create_large(struct seq *s, struct bytes element, uint64_t *ref) {
    size_t cap = block_size(STRIP_EVEN, 1, (uint32_t)element.len);
    s->churn++;
    if (element.len > UINT16_MAX || cap > arena_record_max(&s->arena)) {
        return create_box(s, element, ref);
    }
    enum status st = arena_alloc(&s->arena, cap, ref);
    if (st != ST_OK) {
        return st;
    }
    struct seq_block *b = block_at(s, *ref);
    *b = (struct seq_block){.form = STRIP_EVEN,
                            .count = 1,
                            .cap_half = (uint16_t)(cap / 2),
                            .len = (uint16_t)element.len};
    memcpy(block_data(b), element.ptr, element.len);
    return ST_OK;
}

void seq_block_destroy(struct seq *s, uint64_t ref) {
    struct seq_block *b = block_at(s, ref);
    if (b->form == FORM_BOX) {
        struct seq_box *box = block_box(b);
        s->boxed_bytes -= sizeof(*box) + box->len;
        account_free(ACCOUNT_VALUE, box);
    }
    s->churn++;
    arena_free(&s->arena, ref, block_cap(b));
}

/* ---- what the arena asks --------------------------------------------------------------------- */

static size_t record_len(const void *record) {
    return block_cap(record);
}

static enum status relocate(void *owner, uint64_t ref) {
    struct seq *s = owner;
    size_t cap = block_cap(block_at(s, ref));
    uint64_t moved;
    enum status st = arena_alloc(&s->arena, cap, &moved);
    if (st != ST_OK) {
        return st;
    }
    uint32_t pos = seq_tree_pos_of(s, ref);
    memcpy(block_at(s, moved), block_at(s, ref), cap);
    seq_tree_replace(s, block_at(s, ref)->owner, pos, moved);
    arena_free(&s->arena, ref, cap);
    return ST_OK;
}

const struct arena_ops seq_arena_ops = {.record_len = record_len, .relocate = relocate};

static size_t units(const struct seq *s) {
    struct arena_stats stats;
    arena_get_stats(&s->arena, &stats);
    return stats.units;
}

static void compact(struct seq *s) {
    uint32_t blocks =
        s->churn < COMPACT_MAX / COMPACT_PER_BLOCK ? s->churn : COMPACT_MAX / COMPACT_PER_BLOCK;
    for (uint32_t steps = blocks * COMPACT_PER_BLOCK; steps > 0; steps--) {
        size_t before = units(s);
        if (!arena_wants_evacuation(&s->arena)) {
            s->churn = 0;
            return;
        }
        if (!arena_evacuate(&s->arena, 1)) {
            break;
        }
        if (units(s) < before) {
            return; /* the longest step there is; the rest another time */
        }
    }
    s->churn -= blocks;
}

void seq_compact(struct seq *s) {
    size_t budget = SWEEP_PER_OPERATION;
    if (UNLIKELY(s->doomed != NULL)) {
        seq_tree_sweep_step(s, &budget);
    }
    compact(s);
}

bool seq_wants_sweep(const struct seq *s) {
    return s->doomed != NULL || (s->churn > BACKLOG_MIN && arena_wants_evacuation(&s->arena));
}

bool seq_sweep(struct seq *s, size_t budget) {
    seq_tree_sweep_step(s, &budget);
    compact(s);
    return !seq_wants_sweep(s);
}
