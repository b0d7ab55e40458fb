/* SPDX-License-Identifier: BSD-3-Clause */
/* A struct hash is a struct ktable by another name. */
#include "types/hash.h"

#include <stdlib.h>

#include "keyed_priv.h"
#include "run_priv.h"

static_assert(RUN_COUNT_LEN == HASH_EMPTY_LEN, "an empty run is its count");
static_assert(KPACKED_BYTES_MAX == HASH_PACKED_BYTES_MAX, "one limit for all");

const char hash_empty[HASH_EMPTY_LEN] = {0, 0};

static bool is_packed(const struct value *v) {
    return v->encoding == VALUE_PACKED;
}

uint64_t hash_count(const struct value *v) {
    return is_packed(v) ? run_count(v->data) : swiss_count(&keyed_table(v)->index);
}

bool hash_get(const struct value *v, struct bytes field, struct bytes *value) {
    if (is_packed(v)) {
        struct kpacked_spot spot = kpacked_find(v->data, KPACKED_PAIRS, field);
        *value = spot.value;
        return spot.found;
    }
    const struct ktable *t = keyed_table(v);
    uint64_t ref = ktable_find(t, field);
    if (ref == SWISS_NONE) {
        return false;
    }
    *value = ktable_read(t, ref).value;
    return true;
}

/* Turn a packed hash into a table that also has the new field: the value changes only when all of
 * it worked. */
static enum status convert_and_set(struct value *v, const struct keyed *entry) {
    struct ktable *t;
    bool added;
    enum status st = ktable_from_packed(v, KPACKED_PAIRS, &t);
    if (st == ST_OK) {
        st = ktable_set(t, entry, &added);
    }
    return ktable_install(v, t, st);
}

/* ST_RANGE: the hash must become a table. */
static enum status packed_set(struct value *v, const struct kpacked_spot *spot,
                              const struct keyed *entry) {
    const struct type_env *env = v->host->env;
    size_t element_max = env->hash_packed_element_max;
    if (spot->found) {
        size_t longest = entry->key.len > entry->value.len ? entry->key.len : entry->value.len;
        return longest <= element_max && longest <= UINT8_MAX
                   ? kpacked_change(v, KPACKED_PAIRS, spot, entry->value)
                   : ST_RANGE;
    }
    return kpacked_fits(v->data, v->len, KPACKED_PAIRS, entry, env->hash_packed_entries_max,
                        element_max)
               ? kpacked_append(v, KPACKED_PAIRS, entry)
               : ST_RANGE;
}

enum status hash_set(struct value *v, struct bytes field, struct bytes value, bool *added) {
    bool unused;
    struct keyed entry = {field, value};
    added = added ? added : &unused;
    if (!is_packed(v)) {
        return ktable_set(keyed_table(v), &entry, added);
    }
    struct kpacked_spot spot = kpacked_find(v->data, KPACKED_PAIRS, field);
    enum status st = packed_set(v, &spot, &entry);
    if (st == ST_RANGE) {
        st = convert_and_set(v, &entry);
    }
    if (st == ST_OK) {
        *added = !spot.found;
    }
    return st;
}

static_assert(offsetof(struct hash_pair, field) == offsetof(struct keyed, key) &&
                  offsetof(struct hash_pair, value) == offsetof(struct keyed, value) &&
                  sizeof(struct hash_pair) == sizeof(struct keyed),
              "an array of the one is an array of the other");

enum status hash_expect(struct value *v, uint64_t count) {
    assert(is_packed(v) && run_count(v->data) == 0);
    return count > v->host->env->hash_packed_entries_max ? ktable_expect(v, KPACKED_PAIRS, count)
                                                         : ST_OK;
}

enum status hash_add_all(struct value *v, const struct hash_pair *pairs, size_t count) {
    size_t done = 0;
    while (done < count && is_packed(v)) {
        bool added;
        enum status st = hash_set(v, pairs[done].field, pairs[done].value, &added);
        if (st != ST_OK || !added) {
            return st == ST_OK ? ST_EXISTS : st;
        }
        done++;
    }
    const struct keyed *rest = (const struct keyed *)(const void *)(pairs + done);
    return done < count ? ktable_add_all(keyed_table(v), rest, count - done) : ST_OK;
}

bool hash_delete(struct value *v, struct bytes field) {
    if (!is_packed(v)) {
        return ktable_delete(keyed_table(v), field);
    }
    struct kpacked_spot spot = kpacked_find(v->data, KPACKED_PAIRS, field);
    if (spot.found) {
        kpacked_delete(v, KPACKED_PAIRS, &spot);
    }
    return spot.found;
}

size_t hash_next(const struct value *v, uint64_t *position, struct hash_pair *pairs, size_t cap) {
    struct keyed entries[KTABLE_BATCH];
    cap = cap < KTABLE_BATCH ? cap : KTABLE_BATCH;
    size_t count = is_packed(v) ? kpacked_next(v->data, KPACKED_PAIRS, position, entries, cap)
                                : ktable_next(keyed_table(v), position, entries, cap);
    for (size_t i = 0; i < count; i++) {
        pairs[i] = (struct hash_pair){entries[i].key, entries[i].value};
    }
    return count;
}

struct scan_arg {
    const struct ktable *t;
    hash_visit fn;
    void *arg;
};

static void scan_visit(void *arg, uint64_t ref) {
    const struct scan_arg *scan = arg;
    struct keyed entry = ktable_read(scan->t, ref);
    scan->fn(scan->arg, entry.key, entry.value);
}

uint64_t hash_scan(const struct value *v, uint64_t cursor, size_t want, hash_visit fn, void *arg) {
    if (!is_packed(v)) {
        struct scan_arg scan = {keyed_table(v), fn, arg};
        return swiss_scan(&scan.t->index, cursor, want, scan_visit, &scan);
    }
    struct kpacked_iter it = kpacked_begin(v->data, KPACKED_PAIRS);
    for (uint64_t left = run_count(v->data); left > 0; left--) {
        struct keyed entry = kpacked_read(v->data, KPACKED_PAIRS, &it);
        fn(arg, entry.key, entry.value);
    }
    return 0;
}

void hash_random(const struct value *v, struct rng *rng, struct hash_pair *out) {
    struct keyed entry;
    if (is_packed(v)) {
        struct kpacked_iter it =
            kpacked_seek(v->data, KPACKED_PAIRS, rng_below(rng, run_count(v->data)));
        entry = kpacked_read(v->data, KPACKED_PAIRS, &it);
    } else {
        const struct ktable *t = keyed_table(v);
        entry = ktable_read(t, swiss_random(&t->index, rng));
    }
    *out = (struct hash_pair){entry.key, entry.value};
}

void hash_prefetch_index(const struct value *v, uint64_t field_hash) {
    if (!is_packed(v)) {
        ktable_prefetch_index(keyed_table(v), field_hash);
    }
}

void hash_prefetch_record(const struct value *v, uint64_t field_hash) {
    if (!is_packed(v)) {
        ktable_prefetch_record(keyed_table(v), field_hash);
    }
}

/* ---- the object ----------------------------------------------------------------------------- */

static struct ktable *table_of(struct hash *h) {
    return (struct ktable *)(void *)h;
}

static const struct ktable *const_table_of(const struct hash *h) {
    return (const struct ktable *)(const void *)h;
}

bool hash_free_step(struct hash *h, size_t budget) {
    return ktable_free_step(table_of(h), budget);
}

enum status hash_clone(const struct hash *h, struct hash **out) {
    struct ktable *copy;
    enum status st = ktable_clone(const_table_of(h), &copy);
    if (st == ST_OK) {
        *out = (struct hash *)(void *)copy;
    }
    return st;
}

size_t hash_bytes_held(const struct hash *h) {
    return ktable_bytes_held(const_table_of(h));
}

bool hash_object_is_big(const struct hash *h) {
    return ktable_is_big(const_table_of(h));
}

void hash_arena_stats(const struct hash *h, struct arena_stats *out) {
    arena_get_stats(&const_table_of(h)->arena, out);
}

void hash_check(const struct value *v) {
    if (!is_packed(v)) {
        ktable_check(keyed_table(v));
    } else if (!kpacked_check(v->data, v->len, KPACKED_PAIRS)) {
        abort();
    }
}
