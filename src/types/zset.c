/* SPDX-License-Identifier: BSD-3-Clause */
#include "types/zset.h"

#include <stdlib.h>

#include "base/hash.h"
#include "run_priv.h"
#include "zset_priv.h"

static_assert(sizeof(struct order_iter) <= sizeof(((struct zset_iter *)0)->order_iter) &&
                  offsetof(struct zset_iter, order_iter) % _Alignof(struct order_iter) == 0,
              "a zset_iter has room for the tree's");

static bool is_packed(const struct value *v) {
    return v->encoding == VALUE_PACKED;
}

uint64_t zset_count(const struct value *v) {
    if (is_packed(v)) {
        return run_count(v->data);
    }
    const struct zset *z = value_object(v);
    return order_count(&z->order);
}

/* ---- a table in place of a packed run -------------------------------------------------------- */

/* Finish what was built and put it into the value, which changes only when all of it worked. */
static enum status install(struct value *v, struct ztable_builder *b, enum status st) {
    if (st == ST_OK) {
        st = ztable_build_finish(b);
    }
    if (st == ST_OK) {
        st = value_resize(v, VALUE_HEAP, sizeof(b->z));
    }
    if (st != ST_OK) {
        ztable_destroy(b->z);
        return st;
    }
    memcpy(v->data, &b->z, sizeof(b->z));
    return ST_OK;
}

/* All of a packed set, and one entry more in its place; an old entry of that member is left out. */
static enum status convert_and_set(struct value *v, const struct zset_entry *extra) {
    struct ztable_builder b;
    size_t off = RUN_COUNT_LEN;
    bool placed = false;
    enum status st = ztable_build_init(&b, v->host->env->pages);
    for (uint64_t left = run_count(v->data); left > 0 && st == ST_OK; left--) {
        struct zset_entry e = zpacked_read(v->data, &off);
        if (!placed && zset_entry_compare(extra, &e) < 0) {
            placed = true;
            st = ztable_build_add(&b, extra);
        }
        if (st == ST_OK && !bytes_equal(e.member, extra->member)) {
            st = ztable_build_add(&b, &e);
        }
    }
    if (st == ST_OK && !placed) {
        st = ztable_build_add(&b, extra);
    }
    return install(v, &b, st);
}

/* ---- by member ------------------------------------------------------------------------------- */

bool zset_score(const struct value *v, struct bytes member, double *score) {
    if (!is_packed(v)) {
        return ztable_score(value_object(v), member, score);
    }
    struct zpacked_spot spot = zpacked_find(v->data, member);
    if (spot.found) {
        *score = spot.score;
    }
    return spot.found;
}

enum status zset_set(struct value *v, struct bytes member, double score, bool *added) {
    bool unused;
    added = added ? added : &unused;
    assert(score == score);
    if (!is_packed(v)) {
        return ztable_set(value_object(v), member, score, added);
    }
    enum status st = zpacked_set(v, member, score, added);
    if (st == ST_RANGE) {
        struct zset_entry e = {member, score};
        st = convert_and_set(v, &e);
    }
    return st;
}

bool zset_delete(struct value *v, struct bytes member) {
    if (!is_packed(v)) {
        return ztable_delete(value_object(v), member);
    }
    struct zpacked_spot spot = zpacked_find(v->data, member);
    if (spot.found) {
        zpacked_delete(v, &spot);
    }
    return spot.found;
}

bool zset_rank(const struct value *v, struct bytes member, uint64_t *rank, double *score) {
    if (!is_packed(v)) {
        return ztable_rank(value_object(v), member, rank, score);
    }
    struct zpacked_spot spot = zpacked_find(v->data, member);
    if (spot.found) {
        *rank = spot.rank;
        *score = spot.score;
    }
    return spot.found;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

void zset_range_by_score(const struct value *v, const struct zset_score_bound *min,
                         const struct zset_score_bound *max, uint64_t *first, uint64_t *count) {
    if (is_packed(v)) {
        zpacked_range_by_score(v->data, min, max, first, count);
    } else {
        ztable_range_by_score(value_object(v), min, max, first, count);
    }
}

void zset_range_by_lex(const struct value *v, const struct zset_lex_bound *min,
                       const struct zset_lex_bound *max, uint64_t *first, uint64_t *count) {
    if (is_packed(v)) {
        zpacked_range_by_lex(v->data, min, max, first, count);
    } else {
        ztable_range_by_lex(value_object(v), min, max, first, count);
    }
}

static struct order_iter *tree_iter(struct zset_iter *it) {
    return (struct order_iter *)(void *)it->order_iter;
}

void zset_iter_init(struct zset_iter *it, const struct value *v, uint64_t rank, bool backward) {
    uint64_t count = zset_count(v);
    uint64_t at = rank < count ? rank + backward : count;
    *it = (struct zset_iter){.value = v, .rank = at, .backward = backward};
    if (is_packed(v)) {
        it->offset = zpacked_offset(v->data, at);
    } else {
        const struct zset *z = value_object(v);
        order_iter_init(tree_iter(it), &z->order, at);
    }
}

size_t zset_fetch(struct zset_iter *it, struct zset_entry *out, size_t cap) {
    if (is_packed(it->value)) {
        return zpacked_fetch(it, out, cap);
    }
    size_t n = ztable_fetch(tree_iter(it), it->backward, out, cap);
    it->rank = tree_iter(it)->rank;
    return n;
}

bool zset_at(const struct value *v, uint64_t rank, struct zset_entry *out) {
    if (!is_packed(v)) {
        const struct zset *z = value_object(v);
        struct order_entry e;
        if (!order_at(&z->order, rank, &e)) {
            return false;
        }
        *out = ztable_entry(z, e.ref);
        return true;
    }
    if (rank >= run_count(v->data)) {
        return false;
    }
    size_t off = zpacked_offset(v->data, rank);
    *out = zpacked_read(v->data, &off);
    return true;
}

uint64_t zset_delete_range(struct value *v, uint64_t first, uint64_t count) {
    uint64_t total = zset_count(v);
    if (first >= total || count == 0) {
        return 0;
    }
    count = count < total - first ? count : total - first;
    if (!is_packed(v)) {
        return ztable_delete_range(value_object(v), first, count);
    }
    zpacked_delete_range(v, first, count);
    return count;
}

/* ---- the rest -------------------------------------------------------------------------------- */

struct scan_arg {
    const struct zset *z;
    zset_visit fn;
    void *arg;
};

static void scan_visit(void *arg, uint64_t ref) {
    const struct scan_arg *scan = arg;
    struct zset_entry e = ztable_entry(scan->z, ref);
    scan->fn(scan->arg, e.member, e.score);
}

uint64_t zset_scan(const struct value *v, uint64_t cursor, size_t want, zset_visit fn, void *arg) {
    if (!is_packed(v)) {
        struct scan_arg scan = {value_object(v), fn, arg};
        return swiss_scan(&scan.z->index, cursor, want, scan_visit, &scan);
    }
    size_t off = RUN_COUNT_LEN;
    for (uint64_t left = run_count(v->data); left > 0; left--) {
        struct zset_entry e = zpacked_read(v->data, &off);
        fn(arg, e.member, e.score);
    }
    return 0;
}

void zset_random(const struct value *v, struct rng *rng, struct zset_entry *out) {
    if (is_packed(v)) {
        zset_at(v, rng_below(rng, run_count(v->data)), out);
    } else {
        const struct zset *z = value_object(v);
        *out = ztable_entry(z, swiss_random(&z->index, rng));
    }
}

static int compare_entries(const void *a, const void *b) {
    return zset_entry_compare(a, b);
}

/* Snapshots and range results come sorted, upward or downward: only what is neither is sorted. */
static void sort_entries(struct zset_entry *entries, size_t count) {
    size_t up = 1, down = 1;
    while (up < count && zset_entry_compare(&entries[up - 1], &entries[up]) < 0) {
        up++;
    }
    while (down < count && zset_entry_compare(&entries[down - 1], &entries[down]) > 0) {
        down++;
    }
    if (up >= count) {
        return;
    }
    if (down < count) {
        qsort(entries, count, sizeof(*entries), compare_entries);
        return;
    }
    for (size_t i = 0, j = count - 1; i < j; i++, j--) {
        struct zset_entry e = entries[i];
        entries[i] = entries[j];
        entries[j] = e;
    }
}

/* Members lie where their source left them: anywhere, once they are sorted. */
#define BUILD_AHEAD 16

static enum status build_table(struct value *v, const struct zset_entry *entries, size_t count,
                               bool checked) {
    struct ztable_builder b;
    enum status st = ztable_build_init(&b, v->host->env->pages);
    b.checked = checked;
    if (st == ST_OK) {
        swiss_expect(&b.z->index, count);
    }
    for (size_t i = 0; i < count && st == ST_OK; i++) {
        if (i + BUILD_AHEAD < count) {
            PREFETCH(entries[i + BUILD_AHEAD].member.ptr);
        }
        st = ztable_build_add(&b, &entries[i]);
    }
    return install(v, &b, st);
}

/* Into an empty packed set, or a table in its place. */
static enum status build(struct value *v, const struct zset_entry *entries, size_t count,
                         bool checked) {
    enum status st = zpacked_build(v, entries, count);
    return st == ST_RANGE ? build_table(v, entries, count, checked) : st;
}

static void sort(const struct value *v, struct zset_entry *entries, size_t count) {
    assert(is_packed(v) && run_count(v->data) == 0);
    (void)v;
    sort_entries(entries, count);
}

enum status zset_build(struct value *v, struct zset_entry *entries, size_t count) {
    sort(v, entries, count);
    return build(v, entries, count, false);
}

/* Few enough to be packed: those that agree in a byte of their hash are compared. */
static bool packed_has_twins(const struct zset_entry *entries, size_t count) {
    unsigned char bytes[RUN_COUNT_MAX];
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)hash_bytes(entries[i].member);
        const unsigned char *same = bytes;
        while ((same = memchr(same, byte, (size_t)(bytes + i - same))) != NULL) {
            if (bytes_equal(entries[same - bytes].member, entries[i].member)) {
                return true;
            }
            same++;
        }
        bytes[i] = byte;
    }
    return false;
}

enum status zset_build_checked(struct value *v, struct zset_entry *entries, size_t count) {
    sort(v, entries, count);
    for (size_t i = 1; i < count; i++) {
        if (zset_entry_compare(&entries[i - 1], &entries[i]) == 0) {
            return ST_EXISTS; /* which the tree would not take */
        }
    }
    if (count > v->host->env->zset_packed_entries_max || count > RUN_COUNT_MAX) {
        return build_table(v, entries, count, true);
    }
    return packed_has_twins(entries, count) ? ST_EXISTS : build(v, entries, count, false);
}

void zset_prefetch_index(const struct value *v, uint64_t member_hash) {
    if (!is_packed(v)) {
        const struct zset *z = value_object(v);
        swiss_prefetch(&z->index, member_hash);
    }
}

void zset_prefetch_record(const struct value *v, uint64_t member_hash) {
    if (!is_packed(v)) {
        const struct zset *z = value_object(v);
        uint64_t ref = swiss_likely(&z->index, member_hash);
        if (ref != SWISS_NONE) {
            z->index.ops->prefetch(z->index.owner, ref);
        }
    }
}

void zset_prefetch_order(const struct value *v, uint64_t member_hash) {
    if (!is_packed(v)) {
        const struct zset *z = value_object(v);
        uint64_t ref = swiss_likely(&z->index, member_hash);
        if (ref != SWISS_NONE) {
            order_prefetch(&z->order, order_key_from_double(ztable_entry(z, ref).score));
        }
    }
}

void zset_prefetch_score(const struct value *v, double score) {
    if (!is_packed(v)) {
        const struct zset *z = value_object(v);
        order_prefetch(&z->order, order_key_from_double(score));
    }
}

void zset_check(const struct value *v) {
    if (is_packed(v)) {
        zpacked_check(v);
    } else {
        ztable_check(value_object(v));
    }
}
