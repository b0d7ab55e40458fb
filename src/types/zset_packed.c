/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "run_priv.h"
#include "types/varlen.h"
#include "zset_priv.h"

static_assert(RUN_COUNT_LEN == ZSET_EMPTY_LEN, "an empty run is its count");

const char zset_empty[ZSET_EMPTY_LEN] = {0, 0};

/* ---- entries --------------------------------------------------------------------------------- */

static size_t entry_len(const struct zset_entry *e) {
    return 1 + score_size(score_kind_of(e->score)) + varlen_size(e->member.len) + e->member.len;
}

static void put(char *p, const struct zset_entry *e) {
    enum score_kind kind = score_kind_of(e->score);
    *p++ = (char)kind;
    score_put(p, kind, e->score);
    p += score_size(kind);
    p += varlen_put(p, e->member.len);
    if (e->member.len != 0) {
        memcpy(p, e->member.ptr, e->member.len);
    }
}

struct zset_entry zpacked_read(const char *run, size_t *off) {
    struct zset_entry e;
    const char *p = run + *off;
    enum score_kind kind = (enum score_kind) * p++;
    e.score = score_get(p, kind);
    p += score_size(kind);
    p += varlen_get(p, &e.member.len);
    e.member.ptr = p;
    *off = (size_t)(p + e.member.len - run);
    return e;
}

/* ---- walks ----------------------------------------------------------------------------------- */

/* Scores are decoded for the one entry that is looked for. */
struct zpacked_spot zpacked_find(const char *run, struct bytes member) {
    size_t off = RUN_COUNT_LEN;
    uint64_t count = run_count(run);
    for (uint64_t rank = 0; rank < count; rank++) {
        enum score_kind kind = (enum score_kind)run[off];
        struct bytes here;
        here.ptr = run + off + 1 + score_size(kind);
        here.ptr += varlen_get(here.ptr, &here.len);
        size_t end_off = (size_t)(here.ptr + here.len - run);
        if (bytes_equal(here, member)) {
            double score = score_get(run + off + 1, kind);
            return (struct zpacked_spot){true, rank, off, end_off, score};
        }
        off = end_off;
    }
    return (struct zpacked_spot){.rank = count, .off = off, .end_off = off};
}

size_t zpacked_offset(const char *run, uint64_t rank) {
    size_t off = RUN_COUNT_LEN;
    while (rank-- > 0) {
        zpacked_read(run, &off);
    }
    return off;
}

static size_t used_len(const char *run) {
    return zpacked_offset(run, run_count(run));
}

/* All that a write has to know, in one walk. */
struct locus {
    struct zpacked_spot spot; /* of the member */
    size_t place;             /* where the entry has to stand: before the first one behind it */
    size_t used;              /* bytes of the run */
};

/* The member's own entry counts as any other: the old and the new place are then the two ends of
 * the bytes that move. */
static struct locus locate(const char *run, const struct zset_entry *entry) {
    struct locus at = {.spot = {.found = false}};
    size_t off = RUN_COUNT_LEN;
    uint64_t count = run_count(run);
    for (uint64_t rank = 0; rank < count; rank++) {
        size_t entry_off = off;
        struct zset_entry e = zpacked_read(run, &off);
        if (!at.spot.found && bytes_equal(e.member, entry->member)) {
            at.spot = (struct zpacked_spot){true, rank, entry_off, off, e.score};
        }
        if (at.place == 0 && zset_entry_compare(&e, entry) > 0) {
            at.place = entry_off;
        }
    }
    at.place = at.place == 0 ? off : at.place;
    at.used = off;
    return at;
}

/* ---- change ---------------------------------------------------------------------------------- */

static enum status insert(struct value *v, const struct locus *at, const struct zset_entry *e) {
    const struct type_env *env = v->host->env;
    uint64_t count = run_count(v->data);
    if (e->member.len > env->zset_packed_element_max || count >= env->zset_packed_entries_max ||
        count >= RUN_COUNT_MAX) {
        return ST_RANGE;
    }
    enum status st = run_stretch(v, at->place, 0, entry_len(e), at->used);
    if (st == ST_OK) {
        put(v->data + at->place, e);
        run_set_count(v->data, count + 1);
    }
    return st;
}

/* Take the old entry out and put the new one in; a longer one gets its room first. */
static enum status change(struct value *v, const struct locus *at, const struct zset_entry *e) {
    const struct zpacked_spot *spot = &at->spot;
    size_t place = at->place, used = at->used;
    size_t old_len = spot->end_off - spot->off, new_len = entry_len(e);
    size_t end = used - old_len + new_len;
    if (new_len > old_len) {
        enum status st = value_resize(v, VALUE_PACKED, end);
        if (st != ST_OK) {
            return st;
        }
    }
    char *run = v->data;
    memmove(run + spot->off, run + spot->end_off, used - spot->end_off);
    used -= old_len;
    place -= place > spot->off ? old_len : 0;
    memmove(run + place + new_len, run + place, used - place);
    put(run + place, e);
    if (new_len < old_len) {
        enum status st = value_resize(v, VALUE_PACKED, end);
        (void)st; /* idle bytes at the end do no harm */
    }
    return ST_OK;
}

enum status zpacked_set(struct value *v, struct bytes member, double score, bool *added) {
    struct zset_entry e = {member, score};
    struct locus at = locate(v->data, &e);
    *added = !at.spot.found;
    if (!at.spot.found) {
        return insert(v, &at, &e);
    }
    return at.spot.score == score ? ST_OK : change(v, &at, &e);
}

static void cut(struct value *v, size_t off, size_t end_off, uint64_t count) {
    size_t used = used_len(v->data);
    run_set_count(v->data, run_count(v->data) - count);
    enum status st = run_stretch(v, off, end_off - off, 0, used);
    assert(st == ST_OK);
    (void)st;
}

void zpacked_delete(struct value *v, const struct zpacked_spot *spot) {
    cut(v, spot->off, spot->end_off, 1);
}

void zpacked_delete_range(struct value *v, uint64_t first, uint64_t count) {
    cut(v, zpacked_offset(v->data, first), zpacked_offset(v->data, first + count), count);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static bool score_at_least(double score, const struct zset_score_bound *min) {
    return min->exclusive ? score > min->score : score >= min->score;
}

static bool score_at_most(double score, const struct zset_score_bound *max) {
    return max->exclusive ? score < max->score : score <= max->score;
}

static bool lex_at_least(struct bytes member, const struct zset_lex_bound *min) {
    if (min->kind != ZSET_LEX_MEMBER) {
        return min->kind == ZSET_LEX_MIN;
    }
    int order = bytes_compare(member, min->member);
    return min->exclusive ? order > 0 : order >= 0;
}

static bool lex_at_most(struct bytes member, const struct zset_lex_bound *max) {
    if (max->kind != ZSET_LEX_MEMBER) {
        return max->kind == ZSET_LEX_MAX;
    }
    int order = bytes_compare(member, max->member);
    return max->exclusive ? order < 0 : order <= 0;
}

void zpacked_range_by_score(const char *run, const struct zset_score_bound *min,
                            const struct zset_score_bound *max, uint64_t *first, uint64_t *count) {
    size_t off = RUN_COUNT_LEN;
    *first = *count = 0;
    for (uint64_t left = run_count(run); left > 0; left--) {
        double score = zpacked_read(run, &off).score;
        if (!score_at_most(score, max)) {
            return;
        }
        if (score_at_least(score, min)) {
            ++*count;
        } else {
            ++*first;
        }
    }
}

/* From the first member that reaches min to the first that passes max: what Redis's small form does
 * with scores that differ, too. */
void zpacked_range_by_lex(const char *run, const struct zset_lex_bound *min,
                          const struct zset_lex_bound *max, uint64_t *first, uint64_t *count) {
    size_t off = RUN_COUNT_LEN;
    *first = *count = 0;
    for (uint64_t left = run_count(run); left > 0; left--) {
        struct bytes member = zpacked_read(run, &off).member;
        if (*count == 0 && !lex_at_least(member, min)) {
            ++*first;
        } else if (lex_at_most(member, max)) {
            ++*count;
        } else {
            return;
        }
    }
}

size_t zpacked_fetch(struct zset_iter *it, struct zset_entry *out, size_t cap) {
    const char *run = it->value->data;
    uint64_t left = it->backward ? it->rank : run_count(run) - it->rank;
    size_t n = left < cap ? (size_t)left : cap;
    if (it->backward) { /* entries tell where the next starts, not the one before */
        it->rank -= n;
        it->offset = zpacked_offset(run, it->rank);
    }
    size_t off = (size_t)it->offset;
    for (size_t i = 0; i < n; i++) {
        out[it->backward ? n - 1 - i : i] = zpacked_read(run, &off);
    }
    if (!it->backward) {
        it->rank += n;
        it->offset = off;
    }
    return n;
}

/* ---- the whole run --------------------------------------------------------------------------- */

enum status zpacked_build(struct value *v, const struct zset_entry *entries, size_t count) {
    const struct type_env *env = v->host->env;
    size_t len = RUN_COUNT_LEN;
    if (count > env->zset_packed_entries_max || count > RUN_COUNT_MAX) {
        return ST_RANGE;
    }
    for (size_t i = 0; i < count; i++) {
        if (entries[i].member.len > env->zset_packed_element_max) {
            return ST_RANGE;
        }
        len += entry_len(&entries[i]);
    }
    enum status st = value_resize(v, VALUE_PACKED, len);
    if (st != ST_OK) {
        return st;
    }
    char *p = v->data + RUN_COUNT_LEN;
    for (size_t i = 0; i < count; i++) {
        put(p, &entries[i]);
        p += entry_len(&entries[i]);
    }
    run_set_count(v->data, count);
    return ST_OK;
}

void zpacked_check(const struct value *v) {
    size_t off = RUN_COUNT_LEN;
    struct zset_entry last;
    uint64_t count = run_count(v->data);
    for (uint64_t rank = 0; rank < count; rank++) {
        if (off >= v->len || (unsigned char)v->data[off] > SCORE_DOUBLE) {
            abort();
        }
        char kind = v->data[off];
        struct zset_entry e = zpacked_read(v->data, &off);
        if (off > v->len || kind != (char)score_kind_of(e.score) ||
            (rank > 0 && zset_entry_compare(&last, &e) >= 0)) {
            abort();
        }
        last = e;
    }
}
