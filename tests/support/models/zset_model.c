/* SPDX-License-Identifier: BSD-3-Clause */
#include "zset_model.h"

#include <math.h>

#include "base/hash.h"

#define RANGE_BATCH 150 /* entries fetched at a time, at most */
#define SCAN_WRITES 20  /* between two steps of a scan */

double zset_model_score(enum zset_model_scores kind, uint64_t r) {
    static const double special[] = {
        INFINITY, -INFINITY, -0.0,       0,      127,    128,        -128,        -129,
        32767,    32768,     -32768,     -32769, 0x1p31, 0x1p31 - 1, -0x1p31,     -0x1p31 - 1,
        0x1p53,   0x1p-1074, -0x1p-1074, 1e308,  0.1,    -0.1,       0x1p31 - .5, 1700000000000.0};
    switch (kind) {
    case SCORES_DOUBLES:
        return (double)(r >> 11) * 0x1p-53;
    case SCORES_INTEGERS:
        return (double)((int64_t)r >> (24 + r % 40));
    case SCORES_FEW:
        return (double)(r % 5) - 2;
    case SCORES_EQUAL:
        return 7;
    default:
        return r % 4 == 0   ? special[(r >> 8) % ARRAY_LEN(special)]
               : r % 4 == 1 ? (double)(int8_t)(r >> 8)
               : r % 4 == 2 ? (double)(int32_t)(r >> 32)
                            : (double)(int64_t)r * 0x1p-40;
    }
}

/* ---- the model ------------------------------------------------------------------------------- */

static bool is_there(const struct zset_model *m, uint32_t id) {
    return !isnan(m->score_of[id]);
}

static int compare(const struct zset_model *m, double score, struct bytes member,
                   const struct zset_model_entry *e) {
    return score != e->score ? (score > e->score) - (score < e->score)
                             : bytes_compare(member, m->names[e->id]);
}

/* The first place whose entry is at or behind (score, member). */
static size_t place_of(const struct zset_model *m, double score, struct bytes member) {
    size_t low = 0, high = m->live;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (compare(m, score, member, &m->sorted[mid]) > 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

static void model_delete_range(struct zset_model *m, size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        m->score_of[m->sorted[i].id] = NAN;
    }
    memmove(m->sorted + first, m->sorted + first + count,
            (m->live - first - count) * sizeof(*m->sorted));
    m->live -= count;
}

static void model_delete(struct zset_model *m, uint32_t id) {
    if (is_there(m, id)) {
        model_delete_range(m, place_of(m, m->score_of[id], m->names[id]), 1);
    }
}

static void model_set(struct zset_model *m, uint32_t id, double score) {
    model_delete(m, id);
    size_t at = place_of(m, score, m->names[id]);
    memmove(m->sorted + at + 1, m->sorted + at, (m->live - at) * sizeof(*m->sorted));
    m->sorted[at] = (struct zset_model_entry){score, id};
    m->score_of[id] = score;
    m->live++;
}

static uint32_t id_of(const struct zset_model *m, struct bytes member) {
    uint32_t id;
    REQUIRE(member.len >= sizeof(id));
    memcpy(&id, member.ptr + member.len - sizeof(id), sizeof(id));
    REQUIRE(id < m->ids && bytes_equal(member, m->names[id]));
    return id;
}

/* 0 and -0 differ here. */
static bool same_score(double a, double b) {
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static bool same(const struct zset_model *m, const struct zset_entry *e,
                 const struct zset_model_entry *expected) {
    return same_score(e->score, expected->score) && bytes_equal(e->member, m->names[expected->id]);
}

/* ---- reading --------------------------------------------------------------------------------- */

void zset_model_verify_member(struct zset_model *m, uint32_t id) {
    const struct value *v = &m->held.v;
    struct bytes name = m->names[id];
    double score = -1, ranked = -1;
    uint64_t rank = 0;
    struct zset_entry e;
    zset_prefetch_index(v, hash_bytes(name));
    zset_prefetch_record(v, hash_bytes(name));
    zset_prefetch_order(v, hash_bytes(name));
    REQUIRE(zset_score(v, name, &score) == is_there(m, id));
    REQUIRE(zset_rank(v, name, &rank, &ranked) == is_there(m, id));
    if (is_there(m, id)) {
        REQUIRE(same_score(score, m->score_of[id]) && ranked == score);
        REQUIRE(rank == place_of(m, score, name));
        REQUIRE(zset_at(v, rank, &e) && same(m, &e, &m->sorted[rank]));
    }
    REQUIRE(!zset_at(v, m->live, &e));
}

static void verify_walk(struct zset_model *m, const struct value *v, uint64_t rank, bool backward,
                        size_t most) {
    struct zset_iter it;
    struct zset_entry out[RANGE_BATCH];
    size_t seen = 0, n;
    uint64_t from = rank < m->live ? rank + backward : m->live;
    uint64_t left = backward ? from : m->live - from, next = from;
    zset_iter_init(&it, v, rank, backward);
    while (seen < most && (n = zset_fetch(&it, out, 1 + rng_below(&m->rng, RANGE_BATCH))) != 0) {
        for (size_t i = 0; i < n; i++) {
            uint64_t at = backward ? --next : next++;
            REQUIRE(at < m->live && same(m, &out[i], &m->sorted[at]));
        }
        seen += n;
    }
    REQUIRE(seen >= most || seen == left);
}

void zset_model_verify_walk(struct zset_model *m, uint64_t rank, bool backward, size_t most) {
    verify_walk(m, &m->held.v, rank, backward, most);
}

/* Entries before a bound; the model is sorted, so those within two of them lie between. */
static size_t before_score(const struct zset_model *m, double score, bool and_equal) {
    size_t low = 0, high = m->live;
    while (low < high) {
        size_t mid = (low + high) / 2;
        double s = m->sorted[mid].score;
        if (and_equal ? s <= score : s < score) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

void zset_model_verify_score_range(struct zset_model *m, struct zset_score_bound min,
                                   struct zset_score_bound max) {
    uint64_t first, count;
    size_t begin = before_score(m, min.score, min.exclusive);
    size_t end = before_score(m, max.score, !max.exclusive);
    size_t expected = end > begin ? end - begin : 0;
    zset_prefetch_score(&m->held.v, min.score);
    zset_range_by_score(&m->held.v, &min, &max, &first, &count);
    REQUIRE(count == expected && (count == 0 || first == begin));
}

static bool lex_passes(struct bytes member, const struct zset_lex_bound *b, int sign) {
    if (b->kind != ZSET_LEX_MEMBER) {
        return (b->kind == ZSET_LEX_MIN) == (sign > 0);
    }
    int order = sign * bytes_compare(member, b->member);
    return order > 0 || (order == 0 && !b->exclusive);
}

/* With several scores the answer means nothing, but must lie in the set. */
void zset_model_verify_lex_range(struct zset_model *m, struct zset_lex_bound min,
                                 struct zset_lex_bound max) {
    uint64_t first, count, expected_first = 0, expected = 0;
    zset_range_by_lex(&m->held.v, &min, &max, &first, &count);
    if (m->live != 0 && m->sorted[0].score != m->sorted[m->live - 1].score) {
        REQUIRE(first <= m->live && count <= m->live - first);
        return;
    }
    for (size_t i = 0; i < m->live; i++) {
        struct bytes member = m->names[m->sorted[i].id];
        bool above = lex_passes(member, &min, 1);
        expected_first += !above;
        expected += above && lex_passes(member, &max, -1);
    }
    REQUIRE(count == expected && (count == 0 || first == expected_first));
}

void zset_model_verify_random(struct zset_model *m) {
    struct zset_entry e;
    if (m->live > 0) {
        zset_random(&m->held.v, &m->rng, &e);
        REQUIRE(same_score(m->score_of[id_of(m, e.member)], e.score));
    }
}

static void verify_all(struct zset_model *m, const struct value *v) {
    zset_check(v);
    REQUIRE(zset_count(v) == m->live);
    verify_walk(m, v, 0, false, SIZE_MAX);
    verify_walk(m, v, m->live, true, SIZE_MAX);
}

void zset_model_verify_all(struct zset_model *m) {
    verify_all(m, &m->held.v);
}

/* ---- writing --------------------------------------------------------------------------------- */

void zset_model_set(struct zset_model *m, uint32_t id, double score, size_t fail_after) {
    bool added;
    enum value_encoding encoding = m->held.v.encoding;
    account_fail_after(fail_after);
    enum status st = zset_set(&m->held.v, m->names[id], score, &added);
    account_fail_after(0);
    if (st != ST_OK) {
        REQUIRE(fail_after != 0 && st == ST_NOMEM && m->held.v.encoding == encoding);
        m->failures++;
        zset_model_verify_all(m);
        return;
    }
    REQUIRE(added == !is_there(m, id));
    if (score != m->score_of[id]) { /* 0 and -0 are no change of each other */
        model_set(m, id, score);
    }
}

void zset_model_delete(struct zset_model *m, uint32_t id, size_t fail_after) {
    account_fail_after(fail_after);
    bool was = zset_delete(&m->held.v, m->names[id]);
    account_fail_after(0);
    REQUIRE(was == is_there(m, id));
    model_delete(m, id);
}

void zset_model_delete_range(struct zset_model *m, uint64_t first, uint64_t count,
                             size_t fail_after) {
    uint64_t left = first < m->live ? m->live - first : 0;
    uint64_t expected = count < left ? count : left;
    account_fail_after(fail_after);
    uint64_t done = zset_delete_range(&m->held.v, first, count);
    account_fail_after(0);
    REQUIRE(done == expected);
    if (expected != 0) {
        model_delete_range(m, first, expected);
    }
}

struct seen {
    const struct zset_model *m;
    uint8_t *times; /* by id */
};

static void mark(void *arg, struct bytes member, double score) {
    struct seen *seen = arg;
    uint32_t id = id_of(seen->m, member);
    REQUIRE(same_score(seen->m->score_of[id], score) && seen->times[id] < 255);
    seen->times[id]++;
}

static void write_between(struct zset_model *m, bool *stays) {
    for (int i = 0; i < SCAN_WRITES; i++) {
        uint32_t id = (uint32_t)rng_below(&m->rng, m->ids);
        if (rng_below(&m->rng, 2)) {
            zset_model_set(m, id, zset_model_score(m->kind, rng_next(&m->rng)), 0);
        } else {
            zset_model_delete(m, id, 0);
            stays[id] = false;
        }
    }
}

void zset_model_scan(struct zset_model *m) {
    bool *stays = malloc(m->ids * sizeof(*stays));
    struct seen seen = {m, calloc(m->ids, 1)};
    uint64_t cursor = 0;
    REQUIRE(stays != NULL && seen.times != NULL);
    for (uint32_t i = 0; i < m->ids; i++) {
        stays[i] = is_there(m, i);
    }
    do {
        cursor = zset_scan(&m->held.v, cursor, 1 + rng_below(&m->rng, 200), mark, &seen);
        if (cursor != 0) {
            write_between(m, stays);
        }
    } while (cursor != 0);
    for (uint32_t i = 0; i < m->ids; i++) {
        REQUIRE(!stays[i] || seen.times[i] == 1);
    }
    free(stays);
    free(seen.times);
}

void zset_model_clone(struct zset_model *m, size_t fail_after) {
    struct held copy;
    size_t before = model_object_bytes();
    if (model_clone(&m->held, &copy, fail_after)) {
        verify_all(m, &copy.v);
        model_discard(&copy, &m->rng);
        REQUIRE(model_object_bytes() == before);
    }
}

static struct zset_entry *entries_of(const struct zset_model *m) {
    struct zset_entry *entries = malloc((m->live + 1) * sizeof(*entries));
    REQUIRE(entries != NULL);
    for (size_t i = 0; i < m->live; i++) {
        entries[i] = (struct zset_entry){m->names[m->sorted[i].id], m->sorted[i].score};
    }
    return entries;
}

static void reorder(struct zset_model *m, struct zset_entry *entries, enum zset_model_order order) {
    for (size_t i = 0; i < m->live; i++) {
        size_t j = order == ORDER_RANDOM                       ? rng_below(&m->rng, m->live)
                   : order == ORDER_REVERSE && i < m->live / 2 ? m->live - 1 - i
                                                               : i;
        struct zset_entry e = entries[i];
        entries[i] = entries[j];
        entries[j] = e;
    }
}

static void hold_empty(struct held *h, const struct type_env *env, size_t record_max) {
    struct value_image image = {.encoding = VALUE_PACKED,
                                .data = BYTES(zset_empty, ZSET_EMPTY_LEN)};
    held_init(h, VALUE_ZSET, &image, env);
    h->len_max = record_max;
}

void zset_model_build(struct zset_model *m, enum zset_model_order order, bool checked,
                      size_t fail_after) {
    struct held built;
    struct zset_entry *entries = entries_of(m);
    enum status (*build)(struct value *, struct zset_entry *, size_t) =
        checked ? zset_build_checked : zset_build;
    reorder(m, entries, order);
    hold_empty(&built, &m->held.env, m->held.len_max);
    account_fail_after(fail_after);
    enum status st = build(&built.v, entries, m->live);
    account_fail_after(0);
    if (st != ST_OK) {
        REQUIRE(fail_after != 0 && st == ST_NOMEM && zset_count(&built.v) == 0);
        REQUIRE(build(&built.v, entries, m->live) == ST_OK);
    }
    verify_all(m, &built.v);
    model_replace(&m->held, &built, &m->rng);
    free(entries);
}

void zset_model_build_twin(struct zset_model *m, uint64_t random) {
    struct held built;
    if (m->live == 0) {
        return;
    }
    struct zset_entry *entries = entries_of(m);
    entries[m->live] = entries[random % m->live];
    if (random >> 32 & 1) {
        entries[m->live].score = zset_model_score(m->kind, rng_next(&m->rng));
    }
    hold_empty(&built, &m->held.env, m->held.len_max);
    REQUIRE(zset_build_checked(&built.v, entries, m->live + 1) == ST_EXISTS);
    REQUIRE(zset_count(&built.v) == 0 && built.v.encoding == VALUE_PACKED);
    held_deinit(&built);
    free(entries);
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

static void start_empty(struct zset_model *m, const struct type_env *env, size_t record_max) {
    hold_empty(&m->held, env, record_max);
    m->live = 0;
    for (uint32_t id = 0; id < m->ids; id++) {
        m->score_of[id] = NAN;
    }
}

void zset_model_init(struct zset_model *m, const struct type_env *env, size_t record_max,
                     const struct bytes *names, uint32_t ids, enum zset_model_scores kind,
                     uint64_t seed) {
    *m = (struct zset_model){.kind = kind, .names = names, .ids = ids};
    rng_init(&m->rng, seed);
    m->score_of = malloc(ids * sizeof(*m->score_of));
    m->sorted = malloc((ids + 1) * sizeof(*m->sorted));
    REQUIRE(m->score_of != NULL && m->sorted != NULL);
    start_empty(m, env, record_max);
}

void zset_model_restart(struct zset_model *m) {
    struct type_env env = m->held.env;
    size_t record_max = m->held.len_max;
    held_deinit(&m->held);
    start_empty(m, &env, record_max);
}

void zset_model_deinit(struct zset_model *m) {
    held_deinit(&m->held);
    free(m->score_of);
    free(m->sorted);
}
