/* SPDX-License-Identifier: BSD-3-Clause */
#include "types/hash.h"

#include <stdlib.h>

#include "hash_priv.h"
#include "run_priv.h"

static bool is_packed(const struct value *v) {
    return v->encoding == VALUE_PACKED;
}

uint64_t hash_count(const struct value *v) {
    if (is_packed(v)) {
        return run_count(v->data);
    }
    const struct hash *h = value_object(v);
    return swiss_count(&h->index);
}

bool hash_get(const struct value *v, struct bytes field, struct bytes *value) {
    if (!is_packed(v)) {
        return table_get(value_object(v), field, value);
    }
    struct packed_spot spot = packed_find(v->data, field);
    *value = spot.value;
    return spot.found;
}

/* Turn a packed hash into a table that also has the new field: the value changes only when all of
 * it worked. */
static enum status convert_and_set(struct value *v, struct bytes field, struct bytes value) {
    struct hash *h = table_create(v->host->env);
    if (h == NULL) {
        return ST_NOMEM;
    }
    enum status st = ST_OK;
    bool added;
    struct packed_iter it = packed_begin(v->data);
    for (uint64_t left = run_count(v->data); left > 0 && st == ST_OK; left--) {
        struct hash_pair pair = packed_read(v->data, &it);
        st = table_set(h, pair.field, pair.value, &added);
    }
    if (st == ST_OK) {
        st = table_set(h, field, value, &added);
    }
    if (st == ST_OK) {
        st = value_resize(v, VALUE_HEAP, sizeof(h));
    }
    if (st != ST_OK) {
        value_free(VALUE_HASH, h);
        return st;
    }
    memcpy(v->data, &h, sizeof(h));
    return ST_OK;
}

enum status hash_set(struct value *v, struct bytes field, struct bytes value, bool *added) {
    bool unused;
    added = added ? added : &unused;
    if (!is_packed(v)) {
        return table_set(value_object(v), field, value, added);
    }
    struct packed_spot spot = packed_find(v->data, field);
    enum status st = packed_set(v, &spot, field, value);
    if (st == ST_RANGE) {
        st = convert_and_set(v, field, value);
    }
    if (st == ST_OK) {
        *added = !spot.found;
    }
    return st;
}

bool hash_delete(struct value *v, struct bytes field) {
    if (!is_packed(v)) {
        return table_delete(value_object(v), field);
    }
    struct packed_spot spot = packed_find(v->data, field);
    if (spot.found) {
        packed_delete(v, &spot);
    }
    return spot.found;
}

/* A packed hash's position is (offset, entries seen); the count is 16 bits. */
static size_t packed_next(const struct value *v, uint64_t *position, struct hash_pair *pairs,
                          size_t cap) {
    struct packed_iter it = {.index = *position & UINT16_MAX, .off = (size_t)(*position >> 16)};
    it = *position == 0 ? packed_begin(v->data) : it;
    size_t count = run_count(v->data), filled = 0;
    while (it.index < count && filled < cap) {
        pairs[filled++] = packed_read(v->data, &it);
    }
    *position = (uint64_t)it.off << 16 | it.index;
    return filled;
}

size_t hash_next(const struct value *v, uint64_t *position, struct hash_pair *pairs, size_t cap) {
    if (is_packed(v)) {
        return packed_next(v, position, pairs, cap);
    }
    const struct hash *h = value_object(v);
    uint64_t refs[64];
    cap = cap < ARRAY_LEN(refs) ? cap : ARRAY_LEN(refs);
    size_t count = swiss_next(&h->index, position, refs, cap);
    for (size_t i = 0; i < count; i++) {
        h->index.ops->prefetch(h->index.owner, refs[i]);
    }
    for (size_t i = 0; i < count; i++) {
        pairs[i] = table_pair(h, refs[i]);
    }
    return count;
}

struct scan_arg {
    const struct hash *h;
    hash_visit fn;
    void *arg;
};

static void scan_visit(void *arg, uint64_t ref) {
    const struct scan_arg *scan = arg;
    struct hash_pair pair = table_pair(scan->h, ref);
    scan->fn(scan->arg, pair.field, pair.value);
}

uint64_t hash_scan(const struct value *v, uint64_t cursor, size_t want, hash_visit fn, void *arg) {
    if (!is_packed(v)) {
        struct scan_arg scan = {value_object(v), fn, arg};
        return swiss_scan(&scan.h->index, cursor, want, scan_visit, &scan);
    }
    struct packed_iter it = packed_begin(v->data);
    for (uint64_t left = run_count(v->data); left > 0; left--) {
        struct hash_pair pair = packed_read(v->data, &it);
        fn(arg, pair.field, pair.value);
    }
    return 0;
}

void hash_random(const struct value *v, struct rng *rng, struct hash_pair *out) {
    if (!is_packed(v)) {
        const struct hash *h = value_object(v);
        *out = table_pair(h, swiss_random(&h->index, rng));
        return;
    }
    struct packed_iter it = packed_seek(v->data, rng_below(rng, run_count(v->data)));
    *out = packed_read(v->data, &it);
}

void hash_prefetch_index(const struct value *v, uint64_t field_hash) {
    if (!is_packed(v)) {
        const struct hash *h = value_object(v);
        swiss_prefetch(&h->index, field_hash);
    }
}

void hash_prefetch_record(const struct value *v, uint64_t field_hash) {
    if (!is_packed(v)) {
        const struct hash *h = value_object(v);
        uint64_t ref = swiss_likely(&h->index, field_hash);
        if (ref != SWISS_NONE) {
            h->index.ops->prefetch(h->index.owner, ref);
        }
    }
}

void hash_check(const struct value *v) {
    if (!is_packed(v)) {
        table_check(value_object(v));
    } else if (!packed_check(v->data, v->len)) {
        abort();
    }
}
