/* SPDX-License-Identifier: BSD-3-Clause */
#include "list_model.h"

#define WALK_BATCH 150 /* elements fetched at a time, at most */

/* ---- elements -------------------------------------------------------------------------------- */

static struct list_model_element element_of(const struct list_model *m, uint32_t kind) {
    const struct list_model_form *form = m->form;
    struct list_model_element e = {kind % form->kinds, 0};
    struct rng own;
    rng_init(&own, e.kind);
    e.len = form->base + (uint32_t)rng_below(&own, form->spread);
    if (form->odd_every != 0 && rng_below(&own, form->odd_every) == 0) {
        e.len = (uint32_t)rng_below(&own, form->odd_max + 1);
    }
    return e;
}

static struct bytes bytes_of(const struct list_model_element *e) {
    static char bytes[LIST_MODEL_LEN_MAX];
    fill_pattern(bytes, e->len, e->kind);
    return BYTES(bytes, e->len);
}

/* Long ones are compared in full only now and then. */
static bool same(struct list_model *m, struct bytes b, const struct list_model_element *e) {
    static char expected[LIST_MODEL_LEN_MAX];
    if (b.len != e->len) {
        return false;
    }
    uint32_t len = e->len > 64 && rng_below(&m->rng, 16) != 0 ? 64 : e->len;
    fill_pattern(expected, len, e->kind);
    return len == 0 || memcmp(b.ptr, expected, len) == 0;
}

/* Short ones of different kinds may be. */
static bool equal(const struct list_model_element *a, const struct list_model_element *b) {
    char x[8], y[8];
    if (a->kind == b->kind || a->len != b->len || a->len > sizeof(x)) {
        return a->kind == b->kind;
    }
    fill_pattern(x, a->len, a->kind);
    fill_pattern(y, b->len, b->kind);
    return memcmp(x, y, a->len) == 0;
}

static void model_insert(struct list_model *m, uint32_t at, struct list_model_element e) {
    memmove(m->elements + at + 1, m->elements + at, (m->live - at) * sizeof(*m->elements));
    m->elements[at] = e;
    m->live++;
}

static void model_remove(struct list_model *m, uint32_t at, uint32_t n) {
    memmove(m->elements + at, m->elements + at + n, (m->live - at - n) * sizeof(*m->elements));
    m->live -= n;
}

/* ---- reading --------------------------------------------------------------------------------- */

void list_model_verify_some(struct list_model *m) {
    const struct value *v = &m->held.v;
    struct bytes b;
    for (int i = 0; i < 4 && m->live != 0; i++) {
        uint32_t at = (uint32_t)rng_below(&m->rng, m->live);
        list_prefetch(v, at);
        REQUIRE(list_at(v, at, &b) && same(m, b, &m->elements[at]));
    }
    list_prefetch(v, m->live);
    REQUIRE(!list_at(v, m->live, &b) && list_count(v) == m->live);
}

static void verify_walk(struct list_model *m, const struct value *v, uint64_t index, bool backward,
                        uint32_t most) {
    struct bytes out[WALK_BATCH];
    struct list_iter it;
    size_t n = 1;
    uint32_t at = index >= m->live ? m->live : (uint32_t)index + backward;
    list_iter_init(&it, v, index, backward);
    for (uint32_t seen = 0; seen < most && n != 0; seen += (uint32_t)n) {
        size_t want = 1 + rng_below(&m->rng, WALK_BATCH);
        uint32_t left = backward ? at : m->live - at;
        n = list_fetch(&it, out, want);
        REQUIRE(n == (want < left ? want : left));
        for (size_t i = 0; i < n; i++) {
            REQUIRE(same(m, out[i], &m->elements[backward ? --at : at++]));
        }
        REQUIRE(it.index == at);
    }
}

void list_model_verify_walk(struct list_model *m, uint64_t index, bool backward, uint32_t most) {
    verify_walk(m, &m->held.v, index, backward, most);
}

static void verify_all(struct list_model *m, const struct value *v) {
    list_check(v);
    REQUIRE(list_count(v) == m->live);
    verify_walk(m, v, 0, false, UINT32_MAX);
    verify_walk(m, v, UINT64_MAX, true, UINT32_MAX);
}

void list_model_verify_all(struct list_model *m) {
    verify_all(m, &m->held.v);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* After a write: did it succeed? */
static bool done(struct list_model *m, enum status st, size_t fail_after,
                 enum value_encoding before) {
    account_fail_after(0);
    if (st == ST_OK) {
        return true;
    }
    REQUIRE(fail_after != 0 && st == ST_NOMEM && m->held.v.encoding == before);
    m->failures++;
    list_model_verify_all(m);
    return false;
}

static void insert(struct list_model *m, uint32_t at, struct bytes b, struct list_model_element e,
                   size_t fail_after) {
    enum value_encoding before = m->held.v.encoding;
    account_fail_after(fail_after);
    if (done(m, list_insert(&m->held.v, at, b), fail_after, before)) {
        model_insert(m, at, e);
    }
}

static void push(struct list_model *m, enum list_end end, struct bytes b,
                 struct list_model_element e, size_t fail_after) {
    enum value_encoding before = m->held.v.encoding;
    account_fail_after(fail_after);
    if (done(m, list_push(&m->held.v, end, b), fail_after, before)) {
        model_insert(m, end == LIST_HEAD ? 0 : m->live, e);
    }
}

void list_model_push(struct list_model *m, enum list_end end, uint32_t kind, size_t fail_after) {
    struct list_model_element e = element_of(m, kind);
    if (m->live < m->form->count_max) {
        push(m, end, bytes_of(&e), e, fail_after);
    }
}

void list_model_insert(struct list_model *m, uint32_t at, uint32_t kind, size_t fail_after) {
    struct list_model_element e = element_of(m, kind);
    if (m->live < m->form->count_max) {
        insert(m, at % (m->live + 1), bytes_of(&e), e, fail_after);
    }
}

void list_model_insert_own(struct list_model *m, uint32_t at, uint32_t from, size_t fail_after) {
    struct bytes b;
    if (m->live == 0 || m->live >= m->form->count_max) {
        return;
    }
    from %= m->live;
    REQUIRE(list_at(&m->held.v, from, &b));
    if (at == UINT32_MAX) {
        push(m, LIST_TAIL, b, m->elements[from], fail_after);
    } else {
        insert(m, at % (m->live + 1), b, m->elements[from], fail_after);
    }
}

void list_model_set(struct list_model *m, uint32_t at, uint32_t kind, size_t fail_after) {
    struct list_model_element e = element_of(m, kind);
    enum value_encoding before = m->held.v.encoding;
    if (m->live == 0) {
        return;
    }
    at %= m->live;
    account_fail_after(fail_after);
    if (done(m, list_set(&m->held.v, at, bytes_of(&e)), fail_after, before)) {
        m->elements[at] = e;
    }
}

void list_model_remove(struct list_model *m, uint64_t at, uint64_t count, size_t fail_after) {
    uint64_t left = at < m->live ? m->live - at : 0;
    uint64_t expected = count < left ? count : left;
    account_fail_after(fail_after);
    REQUIRE(list_remove(&m->held.v, at, count) == expected);
    account_fail_after(0);
    if (expected != 0) {
        model_remove(m, (uint32_t)at, (uint32_t)expected);
    }
}

void list_model_remove_equal(struct list_model *m, uint32_t kind, uint64_t max, bool from_tail,
                             size_t fail_after) {
    struct list_model_element e = element_of(m, kind);
    uint64_t removed = 0;
    account_fail_after(fail_after);
    uint64_t n = list_remove_equal(&m->held.v, bytes_of(&e), max, from_tail);
    account_fail_after(0);
    for (uint32_t left = m->live; left > 0 && (max == 0 || removed < max); left--) {
        uint32_t at = from_tail ? left - 1 : m->live - left;
        if (equal(&m->elements[at], &e)) {
            model_remove(m, at, 1);
            removed++;
        }
    }
    REQUIRE(n == removed);
}

void list_model_clone(struct list_model *m, size_t fail_after) {
    struct held copy;
    size_t before = model_object_bytes();
    if (model_clone(&m->held, &copy, fail_after)) {
        verify_all(m, &copy.v);
        model_discard(&copy, &m->rng);
        REQUIRE(model_object_bytes() == before);
    }
}

static void hold_empty(struct held *h, const struct type_env *env, size_t record_max) {
    struct value_image image = {VALUE_PACKED, {0}, BYTES(list_empty, LIST_EMPTY_LEN)};
    held_init(h, VALUE_LIST, &image, env);
    h->len_max = record_max;
}

void list_model_build(struct list_model *m, size_t fail_after) {
    struct held built;
    struct list_iter it;
    struct bytes *all = malloc((m->live + 1U) * sizeof(*all));
    REQUIRE(all != NULL);
    list_iter_init(&it, &m->held.v, 0, false);
    for (size_t at = 0, n = 1; n != 0; at += n) {
        n = list_fetch(&it, all + at, m->live + 1U - at);
    }
    hold_empty(&built, &m->held.env, m->held.len_max);
    account_fail_after(fail_after);
    enum status st = list_build(&built.v, all, m->live);
    account_fail_after(0);
    if (st != ST_OK) {
        REQUIRE(fail_after != 0 && st == ST_NOMEM && list_count(&built.v) == 0);
        list_check(&built.v);
        REQUIRE(list_build(&built.v, all, m->live) == ST_OK);
    }
    verify_all(m, &built.v);
    model_replace(&m->held, &built, &m->rng);
    free(all);
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

void list_model_init(struct list_model *m, const struct type_env *env, size_t record_max,
                     const struct list_model_form *form, uint64_t seed) {
    *m = (struct list_model){.form = form};
    rng_init(&m->rng, seed);
    m->elements = calloc(form->count_max, sizeof(*m->elements));
    REQUIRE(m->elements != NULL);
    hold_empty(&m->held, env, record_max);
}

void list_model_deinit(struct list_model *m) {
    held_deinit(&m->held);
    free(m->elements);
}
