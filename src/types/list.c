/* SPDX-License-Identifier: BSD-3-Clause */
#include "types/list.h"

#include <stdlib.h>

#include "ds/seq.h"
#include "list_priv.h"
#include "mem/account.h"

struct list {
    struct seq seq;
    void *sweeper; /* see value_host; NULL: nobody sweeps */
};

static_assert(sizeof(struct seq_iter) <= sizeof(((struct list_iter *)0)->seq_iter) &&
                  offsetof(struct list_iter, seq_iter) % _Alignof(struct seq_iter) == 0,
              "a list_iter has room for the sequence's");

void list_limits(int listpack_size, struct type_env *env) {
    int step = listpack_size < -5 ? 5 : -listpack_size;
    env->list_packed_bytes_max = listpack_size < 0 ? (size_t)2048 << step : 8192;
    env->list_packed_entries_max = listpack_size < 0   ? SIZE_MAX
                                   : listpack_size > 0 ? (size_t)listpack_size
                                                       : 1;
}

static bool is_packed(const struct value *v) {
    return v->encoding == VALUE_PACKED;
}

static struct seq *seq_of(const struct value *v) {
    struct list *l = value_object(v);
    return &l->seq;
}

uint64_t list_count(const struct value *v) {
    return is_packed(v) ? lpacked_count(v) : seq_count(seq_of(v));
}

/* ---- an object in place of a packed list ----------------------------------------------------- */

static struct list *create(struct pages *pages) {
    struct list *l = account_alloc(ACCOUNT_VALUE, sizeof(*l));
    if (l != NULL) {
        l->sweeper = NULL;
        seq_init(&l->seq, pages);
    }
    return l;
}

static void destroy(struct list *l) {
    while (!list_free_step(l, SIZE_MAX)) {
    }
}

/* Put the object into the value, when all that was done to it worked; else the value is as it was. */
static enum status install(struct value *v, struct list *l, enum status st) {
    if (st == ST_OK) {
        st = value_resize(v, VALUE_HEAP, sizeof(l));
    }
    if (st != ST_OK) {
        destroy(l);
        return st;
    }
    memcpy(v->data, &l, sizeof(l));
    return ST_OK;
}

/* All elements of a packed list, and then element inserted at index or put in its place. */
static enum status convert(struct value *v, uint64_t index, struct bytes element, bool replace) {
    struct list *l = create(v->host->env->pages);
    if (l == NULL) {
        return ST_NOMEM;
    }
    struct strip s = lpacked_strip(v);
    enum status st = ST_OK;
    uint32_t off = 0;
    for (uint32_t i = 0; i < s.count && st == ST_OK; i++) {
        struct bytes e = BYTES(s.data + off, strip_len_at(&s, i));
        st = seq_push(&l->seq, SEQ_TAIL, e);
        off += (uint32_t)e.len;
    }
    if (st == ST_OK) {
        st = replace ? seq_set(&l->seq, index, element) : seq_insert(&l->seq, index, element);
    }
    return install(v, l, st);
}

/* ---- change ---------------------------------------------------------------------------------- */

enum status list_push(struct value *v, enum list_end end, struct bytes element) {
    if (!is_packed(v)) {
        return seq_push(seq_of(v), end == LIST_HEAD ? SEQ_HEAD : SEQ_TAIL, element);
    }
    return list_insert(v, end == LIST_HEAD ? 0 : lpacked_count(v), element);
}

enum status list_insert(struct value *v, uint64_t index, struct bytes element) {
    assert(index <= list_count(v));
    if (!is_packed(v)) {
        return seq_insert(seq_of(v), index, element);
    }
    enum status st = lpacked_insert(v, (uint32_t)index, element);
    return st == ST_RANGE ? convert(v, index, element, false) : st;
}

enum status list_set(struct value *v, uint64_t index, struct bytes element) {
    assert(index < list_count(v));
    if (!is_packed(v)) {
        return seq_set(seq_of(v), index, element);
    }
    enum status st = lpacked_set(v, (uint32_t)index, element);
    return st == ST_RANGE ? convert(v, index, element, true) : st;
}

static uint64_t remove_from_object(struct value *v, uint64_t index, uint64_t count) {
    struct list *l = value_object(v);
    uint64_t removed = seq_remove(&l->seq, index, count);
    if (UNLIKELY(seq_wants_sweep(&l->seq)) && l->sweeper == NULL) {
        l->sweeper = value_sweep_later(v);
    }
    return removed;
}

uint64_t list_remove(struct value *v, uint64_t index, uint64_t count) {
    if (!is_packed(v)) {
        return remove_from_object(v, index, count);
    }
    uint64_t total = lpacked_count(v);
    if (index >= total || count == 0) {
        return 0;
    }
    count = count < total - index ? count : total - index;
    lpacked_remove(v, (uint32_t)index, (uint32_t)count);
    return count;
}

/* ---- look-up --------------------------------------------------------------------------------- */

bool list_at(const struct value *v, uint64_t index, struct bytes *element) {
    if (!is_packed(v)) {
        return seq_at(seq_of(v), index, element);
    }
    struct strip s = lpacked_strip(v);
    if (index >= s.count) {
        return false;
    }
    *element = strip_at(&s, (uint32_t)index);
    return true;
}

static struct seq_iter *seq_iter_of(struct list_iter *it) {
    return (struct seq_iter *)(void *)it->seq_iter;
}

void list_iter_init(struct list_iter *it, const struct value *v, uint64_t index, bool backward) {
    uint64_t count = list_count(v);
    uint64_t at = index < count ? index + backward : count;
    *it = (struct list_iter){.value = v, .index = at, .backward = backward};
    if (is_packed(v)) {
        struct strip s = lpacked_strip(v);
        it->offset = strip_offset(&s, (uint32_t)at);
    } else {
        seq_iter_init(seq_iter_of(it), seq_of(v), at, backward);
    }
}

size_t list_fetch(struct list_iter *it, struct bytes *out, size_t cap) {
    if (!is_packed(it->value)) {
        size_t n = seq_fetch(seq_iter_of(it), out, cap);
        it->index = seq_iter_of(it)->index;
        return n;
    }
    struct strip s = lpacked_strip(it->value);
    uint32_t place = (uint32_t)it->index, off = (uint32_t)it->offset;
    uint32_t left = it->backward ? place : s.count - place;
    uint32_t n = cap < left ? (uint32_t)cap : left;
    strip_read(&s, &place, &off, it->backward, out, n);
    it->index = place;
    it->offset = off;
    return n;
}

void list_prefetch(const struct value *v, uint64_t index) {
    if (!is_packed(v)) {
        seq_prefetch(seq_of(v), index);
    }
}

/* ---- remove by value ------------------------------------------------------------------------- */

#define BATCH 64

/* The next elements equal to this one that stand together, from a walk that starts at *index (one
 * behind it, when backward): their number, at most max. *index becomes that of the first of them
 * when forward, of the one behind the last when backward. 0: there is none. */
static uint64_t next_equal(const struct value *v, struct bytes element, uint64_t max, bool backward,
                           uint64_t *index) {
    struct list_iter it;
    struct bytes e[BATCH];
    uint64_t found = 0;
    size_t n;
    if (backward && *index == 0) {
        return 0;
    }
    list_iter_init(&it, v, backward ? *index - 1 : *index, backward);
    while ((n = list_fetch(&it, e, BATCH)) != 0) {
        for (size_t i = 0; i < n; i++) {
            if (bytes_equal(e[i], element)) {
                if (++found == max) {
                    return found;
                }
            } else if (found != 0) {
                return found;
            } else {
                *index += backward ? UINT64_MAX : 1;
            }
        }
    }
    return found;
}

uint64_t list_remove_equal(struct value *v, struct bytes element, uint64_t max, bool from_tail) {
    uint64_t removed = 0, index = from_tail ? list_count(v) : 0, n;
    max = max == 0 ? UINT64_MAX : max;
    while (removed < max && (n = next_equal(v, element, max - removed, from_tail, &index)) != 0) {
        index -= from_tail ? n : 0;
        removed += list_remove(v, index, n);
    }
    return removed;
}

/* ---- the rest -------------------------------------------------------------------------------- */

enum status list_build(struct value *v, const struct bytes *elements, size_t count) {
    assert(is_packed(v) && lpacked_count(v) == 0);
    enum status st = lpacked_build(v, elements, count);
    if (st != ST_RANGE) {
        return st;
    }
    struct list *l = create(v->host->env->pages);
    if (l == NULL) {
        return ST_NOMEM;
    }
    st = ST_OK;
    for (size_t i = 0; i < count && st == ST_OK; i++) {
        st = seq_push(&l->seq, SEQ_TAIL, elements[i]);
    }
    return install(v, l, st);
}

bool list_free_step(struct list *l, size_t budget) {
    if (!seq_deinit_step(&l->seq, budget)) {
        return false;
    }
    account_free(ACCOUNT_VALUE, l);
    return true;
}

bool list_sweep_step(struct list *l, size_t budget) {
    bool done = seq_sweep(&l->seq, budget);
    if (done) {
        l->sweeper = NULL;
    }
    return done;
}

void *list_sweeper(const struct list *l) {
    return l->sweeper;
}

enum status list_clone(const struct list *l, struct list **out) {
    struct list *copy = create(l->seq.arena.pages);
    struct seq_iter it;
    struct bytes e[BATCH];
    enum status st = copy == NULL ? ST_NOMEM : ST_OK;
    size_t n;
    seq_iter_init(&it, &l->seq, 0, false);
    while (st == ST_OK && (n = seq_fetch(&it, e, BATCH)) != 0) {
        for (size_t i = 0; i < n && st == ST_OK; i++) {
            st = seq_push(&copy->seq, SEQ_TAIL, e[i]);
        }
    }
    if (st == ST_OK) {
        *out = copy;
    } else if (copy != NULL) {
        destroy(copy);
    }
    return st;
}

size_t list_bytes_held(const struct list *l) {
    return account_good_size(sizeof(*l)) + seq_bytes(&l->seq);
}

bool list_object_is_big(const struct list *l) {
    return seq_bytes(&l->seq) > (size_t)1 << 20;
}

void list_check(const struct value *v) {
    if (is_packed(v)) {
        lpacked_check(v);
    } else {
        seq_check(seq_of(v));
    }
}
