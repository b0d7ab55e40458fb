/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on a sorted set, packed and as a table, against a sorted array.
 *
 *   property_types_zset [seed [operations a round]]
 *
 * Each round takes another chunk size, other limits of the packed form, other lengths and another
 * distribution of scores. The set grows and shrinks in waves; one write in sixteen runs short of
 * memory and must then change nothing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../unit/types/host.h"
#include "base/hash.h"
#include "types/zset.h"

#define OPERATIONS 40000

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum scores { DOUBLES, INTEGERS, FEW, EQUAL, MIXED };

struct shape {
    size_t chunk_bytes, entries_max, element_max, record_max;
    uint32_t ids;       /* members in use this round */
    size_t usual_len;   /* of members, below this */
    unsigned odd_every; /* one in so many has a length at some border; 0: none */
    enum scores scores;
};

#define SMALL_CHUNK 65536
#define LARGE_CHUNK ((size_t)2 << 20)

static const struct shape shapes[] = {
    /* around the limit of the packed form */
    {SMALL_CHUNK, 128, 64, 60000, 160, 20, 0, DOUBLES},
    {SMALL_CHUNK, 128, 64, 60000, 160, 20, 0, FEW},
    {SMALL_CHUNK, 128, 64, 60000, 160, 20, 0, MIXED},
    {SMALL_CHUNK, 128, 64, 60000, 160, 20, 0, EQUAL},
    /* until the record is full */
    {SMALL_CHUNK, SIZE_MAX, SIZE_MAX, 6000, 300, 30, 30, MIXED},
    /* tables */
    {SMALL_CHUNK, 16, 64, 60000, 9000, 30, 0, DOUBLES},
    {SMALL_CHUNK, 16, 64, 60000, 9000, 30, 0, FEW},
    {SMALL_CHUNK, 16, 64, 60000, 9000, 30, 0, INTEGERS},
    {SMALL_CHUNK, 16, 64, 60000, 5000, 30, 0, EQUAL},
    {SMALL_CHUNK, 16, 64, 60000, 2000, 400, 30, MIXED}, /* long members, boxes */
    {LARGE_CHUNK, 16, 64, 60000, 9000, 300, 2000, MIXED},
};

/* Members end in a number of four bytes, so these are on both sides of what fits a record of a
 * 64 KiB chunk with one byte or eight of score. */
static const size_t odd_lens[] = {0,     1,     235,   236,   237,   251,   16363, 16364, 16365,
                                  16366, 16367, 16368, 16369, 16370, 16371, 16372, 65535, 100000};

struct entry {
    double score;
    uint32_t id;
};

static struct rng rng;
static const struct shape *shape;
static struct held held;
static struct bytes *names;  /* of all ids */
static double *score_now;    /* NAN: absent */
static struct entry *sorted; /* the model: what the set must be */
static size_t live;
static uint64_t failures;

/* ---- the model ------------------------------------------------------------------------------- */

static double draw_score(void) {
    static const double special[] = {
        INFINITY, -INFINITY, -0.0,       0,      127,    128,        -128,        -129,
        32767,    32768,     -32768,     -32769, 0x1p31, 0x1p31 - 1, -0x1p31,     -0x1p31 - 1,
        0x1p53,   0x1p-1074, -0x1p-1074, 1e308,  0.1,    -0.1,       0x1p31 - .5, 1700000000000.0};
    uint64_t r = rng_next(&rng);
    switch (shape->scores) {
    case DOUBLES:
        return (double)(r >> 11) * 0x1p-53;
    case INTEGERS:
        return (double)((int64_t)r >> (24 + rng_below(&rng, 40)));
    case FEW:
        return (double)(r % 5) - 2;
    case EQUAL:
        return 7;
    default:
        return r % 4 == 0   ? special[rng_below(&rng, ARRAY_LEN(special))]
               : r % 4 == 1 ? (double)(int8_t)(r >> 8)
               : r % 4 == 2 ? (double)(int32_t)(r >> 32)
                            : (double)(int64_t)r * 0x1p-40;
    }
}

static int compare(double score, struct bytes member, const struct entry *e) {
    return score != e->score ? (score > e->score) - (score < e->score)
                             : bytes_compare(member, names[e->id]);
}

/* The first place whose entry is at or behind (score, member). */
static size_t place_of(double score, struct bytes member) {
    size_t low = 0, high = live;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (compare(score, member, &sorted[mid]) > 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

static void model_delete_range(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        score_now[sorted[i].id] = NAN;
    }
    memmove(sorted + first, sorted + first + count, (live - first - count) * sizeof(*sorted));
    live -= count;
}

static void model_delete(uint32_t id) {
    if (!isnan(score_now[id])) {
        model_delete_range(place_of(score_now[id], names[id]), 1);
    }
}

static void model_set(uint32_t id, double score) {
    model_delete(id);
    size_t at = place_of(score, names[id]);
    memmove(sorted + at + 1, sorted + at, (live - at) * sizeof(*sorted));
    sorted[at] = (struct entry){score, id};
    score_now[id] = score;
    live++;
}

static uint32_t id_of(struct bytes member) {
    uint32_t id;
    REQUIRE(member.len >= sizeof(id));
    memcpy(&id, member.ptr + member.len - sizeof(id), sizeof(id));
    REQUIRE(id < shape->ids && bytes_equal(member, names[id]));
    return id;
}

static bool same(const struct zset_entry *e, const struct entry *expected) {
    return memcmp(&e->score, &expected->score, sizeof(e->score)) == 0 &&
           bytes_equal(e->member, names[expected->id]);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void verify(uint32_t id) {
    double score = -1, ranked = -1;
    uint64_t rank = 0;
    struct zset_entry e;
    bool there = !isnan(score_now[id]);
    zset_prefetch_index(&held.v, hash_bytes(names[id]));
    zset_prefetch_record(&held.v, hash_bytes(names[id]));
    REQUIRE(zset_score(&held.v, names[id], &score) == there);
    REQUIRE(zset_rank(&held.v, names[id], &rank, &ranked) == there);
    if (there) {
        REQUIRE(memcmp(&score, &score_now[id], sizeof(score)) == 0 && ranked == score);
        REQUIRE(rank == place_of(score, names[id]));
        REQUIRE(zset_at(&held.v, rank, &e) && same(&e, &sorted[rank]));
    }
    REQUIRE(!zset_at(&held.v, live, &e));
}

static void verify_walk(const struct value *v, uint64_t rank, bool backward, size_t most) {
    struct zset_iter it;
    struct zset_entry out[150];
    size_t seen = 0, n;
    uint64_t left = backward ? (rank < live ? rank + 1 : live) : (rank < live ? live - rank : 0);
    uint64_t next = backward ? left : rank;
    zset_iter_init(&it, v, rank, backward);
    while (seen < most && (n = zset_fetch(&it, out, 1 + rng_below(&rng, 150))) != 0) {
        for (size_t i = 0; i < n; i++) {
            uint64_t at = backward ? --next : next++;
            REQUIRE(at < live && same(&out[i], &sorted[at]));
        }
        seen += n;
    }
    REQUIRE(seen >= most || seen == left);
}

static void verify_score_range(void) {
    struct zset_score_bound min = {draw_score(), rng_below(&rng, 2)};
    struct zset_score_bound max = {draw_score(), rng_below(&rng, 2)};
    uint64_t first, count, expected_first = 0, expected = 0;
    for (size_t i = 0; i < live; i++) {
        double s = sorted[i].score;
        bool above = min.exclusive ? s > min.score : s >= min.score;
        bool below = max.exclusive ? s < max.score : s <= max.score;
        expected_first += !above;
        expected += above && below;
    }
    zset_range_by_score(&held.v, &min, &max, &first, &count);
    REQUIRE(count == expected && (count == 0 || first == expected_first));
}

static bool lex_passes(struct bytes member, const struct zset_lex_bound *b, int sign) {
    if (b->kind != ZSET_LEX_MEMBER) {
        return (b->kind == ZSET_LEX_MIN) == (sign > 0);
    }
    int order = sign * bytes_compare(member, b->member);
    return order > 0 || (order == 0 && !b->exclusive);
}

static struct zset_lex_bound draw_lex(void) {
    static const char other[] = "other";
    uint64_t r = rng_next(&rng);
    struct zset_lex_bound b = {r % 8 == 0   ? ZSET_LEX_MIN
                               : r % 8 == 1 ? ZSET_LEX_MAX
                                            : ZSET_LEX_MEMBER,
                               names[(r >> 32) % shape->ids], r >> 8 & 1};
    if (r % 8 == 2) {
        b.member = BYTES(other, r >> 16 & 3);
    }
    return b;
}

static void verify_lex_range(void) {
    struct zset_lex_bound min = draw_lex(), max = draw_lex();
    uint64_t first, count, expected_first = 0, expected = 0;
    for (size_t i = 0; i < live; i++) {
        bool above = lex_passes(names[sorted[i].id], &min, 1);
        expected_first += !above;
        expected += above && lex_passes(names[sorted[i].id], &max, -1);
    }
    zset_range_by_lex(&held.v, &min, &max, &first, &count);
    if (shape->scores == EQUAL) {
        REQUIRE(count == expected && (count == 0 || first == expected_first));
    } else {
        REQUIRE(first <= live && count <= live - first);
    }
}

static void mark(void *arg, struct bytes member, double score) {
    uint8_t *times = arg;
    uint32_t id = id_of(member);
    REQUIRE(score_now[id] == score && times[id] < 255);
    times[id]++;
}

static void verify_all(const struct value *v) {
    zset_check(v);
    REQUIRE(zset_count(v) == live);
    verify_walk(v, 0, false, SIZE_MAX);
    verify_walk(v, live, true, SIZE_MAX);
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool run_short(uint64_t most) {
    bool is = rng_below(&rng, 16) == 0;
    if (is) {
        account_fail_after(1 + rng_below(&rng, most));
    }
    return is;
}

static void set_member(uint32_t id) {
    double score = draw_score();
    bool added, is_short = run_short(5);
    enum status st = zset_set(&held.v, names[id], score, &added);
    account_fail_after(0);
    REQUIRE(st == ST_OK || (is_short && st == ST_NOMEM));
    if (st == ST_OK) {
        REQUIRE(added == (isnan(score_now[id]) != 0));
        if (score != score_now[id]) { /* 0 and -0 are no change of each other */
            model_set(id, score);
        }
    }
    failures += st != ST_OK;
}

static void delete_member(uint32_t id) {
    account_fail_after(rng_below(&rng, 16) == 0); /* deleting works without memory */
    bool was = zset_delete(&held.v, names[id]);
    account_fail_after(0);
    REQUIRE(was == !isnan(score_now[id]));
    model_delete(id);
}

static void delete_range(void) {
    uint64_t first = rng_below(&rng, live + 2), most = rng_below(&rng, 8) == 0 ? 200 : 4;
    uint64_t count = rng_below(&rng, most);
    uint64_t expected = first >= live ? 0 : count < live - first ? count : live - first;
    account_fail_after(rng_below(&rng, 16) == 0);
    uint64_t done = zset_delete_range(&held.v, first, count);
    account_fail_after(0);
    REQUIRE(done == expected);
    if (expected != 0) {
        model_delete_range(first, expected);
    }
}

/* A whole scan between writes: members there throughout come once. A packed set comes whole. */
static void scan_while_writing(void) {
    bool *stays = malloc(shape->ids * sizeof(*stays));
    uint8_t *times = calloc(shape->ids, 1);
    REQUIRE(stays != NULL && times != NULL);
    for (uint32_t i = 0; i < shape->ids; i++) {
        stays[i] = !isnan(score_now[i]);
    }
    uint64_t cursor = 0;
    do {
        cursor = zset_scan(&held.v, cursor, 1 + rng_below(&rng, 200), mark, times);
        for (int i = 0; cursor != 0 && i < 20; i++) {
            uint32_t id = (uint32_t)rng_below(&rng, shape->ids);
            if (rng_below(&rng, 2)) {
                set_member(id);
            } else {
                delete_member(id);
                stays[id] = false;
            }
        }
    } while (cursor != 0);
    for (uint32_t i = 0; i < shape->ids; i++) {
        REQUIRE(!stays[i] || times[i] == 1);
    }
    free(stays);
    free(times);
}

static void hold_empty(struct held *h, const struct type_env *env) {
    struct value_image image = {.encoding = VALUE_PACKED,
                                .data = BYTES(zset_empty, ZSET_EMPTY_LEN)};
    held_init(h, VALUE_ZSET, &image, env);
    h->len_max = shape->record_max;
}

/* Free a copy's object step by step. */
static void discard(struct held *copy) {
    if (copy->v.encoding == VALUE_HEAP) {
        void *object = value_object(&copy->v);
        while (!value_free_step(VALUE_ZSET, object, 1 + rng_below(&rng, 100))) {
        }
        copy->v.encoding = VALUE_PACKED;
    }
    held_deinit(copy);
}

static void clone_and_compare(void) {
    struct value_image image;
    struct held copy;
    size_t before = held_object_bytes() + account_bytes(ACCOUNT_ORDER);
    account_fail_after(1 + rng_below(&rng, 40));
    enum status st = value_clone(&held.v, &image);
    account_fail_after(0);
    REQUIRE(st == ST_OK || st == ST_NOMEM);
    if (st == ST_OK) {
        value_image_discard(VALUE_ZSET, &image);
    }
    REQUIRE(held_object_bytes() + account_bytes(ACCOUNT_ORDER) == before);
    REQUIRE(value_clone(&held.v, &image) == ST_OK);
    held_init(&copy, VALUE_ZSET, &image, &held.env);
    verify_all(&copy.v);
    discard(&copy);
}

static void reorder(struct zset_entry *entries, size_t count) {
    uint64_t how = rng_below(&rng, 3);
    for (size_t i = 0; i < count; i++) {
        size_t j = how == 0                    ? rng_below(&rng, count)
                   : how == 1 && i < count / 2 ? count - 1 - i
                                               : i;
        struct zset_entry e = entries[i];
        entries[i] = entries[j];
        entries[j] = e;
    }
}

/* Build the set anew, from its entries in any order; the new one takes the old one's place. */
static void build_and_take_over(void) {
    struct held built;
    struct zset_entry *entries = malloc((live + 1) * sizeof(*entries));
    REQUIRE(entries != NULL);
    for (size_t i = 0; i < live; i++) {
        entries[i] = (struct zset_entry){names[sorted[i].id], sorted[i].score};
    }
    reorder(entries, live);
    hold_empty(&built, &held.env);
    account_fail_after(1 + rng_below(&rng, 20));
    enum status st = zset_build(&built.v, entries, live);
    account_fail_after(0);
    if (st != ST_OK) {
        REQUIRE(st == ST_NOMEM && zset_count(&built.v) == 0);
        REQUIRE(zset_build(&built.v, entries, live) == ST_OK);
    }
    verify_all(&built.v);
    discard(&held);
    held = built;
    held.v.host = &held.host;
    held.host.env = &held.env;
    free(entries);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void make_names(void) {
    names = malloc(shape->ids * sizeof(*names));
    score_now = malloc(shape->ids * sizeof(*score_now));
    sorted = malloc((shape->ids + 1) * sizeof(*sorted));
    REQUIRE(names != NULL && score_now != NULL && sorted != NULL);
    for (uint32_t id = 0; id < shape->ids; id++) {
        uint64_t r = rng_next(&rng);
        size_t len = r % shape->usual_len;
        if (shape->odd_every != 0 && (r >> 16) % shape->odd_every == 0) {
            len = odd_lens[(r >> 40) % ARRAY_LEN(odd_lens)];
        }
        char *name = malloc(len + sizeof(id));
        REQUIRE(name != NULL);
        fill_pattern(name, len, id % 100); /* many share their first bytes */
        memcpy(name + len, &id, sizeof(id));
        names[id] = BYTES(name, len + sizeof(id));
        score_now[id] = NAN;
    }
    live = 0;
}

static void free_names(void) {
    for (uint32_t id = 0; id < shape->ids; id++) {
        free((char *)names[id].ptr);
    }
    free(names);
    free(score_now);
    free(sorted);
}

static void look_around(void) {
    struct zset_entry e;
    verify_score_range();
    verify_lex_range();
    verify_walk(&held.v, rng_below(&rng, live + 3), rng_below(&rng, 2), 1 + rng_below(&rng, 100));
    if (live > 0) {
        zset_random(&held.v, &rng, &e);
        REQUIRE(score_now[id_of(e.member)] == e.score);
    }
}

static void step(uint64_t i, uint64_t operations) {
    uint32_t id = (uint32_t)rng_below(&rng, shape->ids);
    bool grows = i / (operations / 6 + 1) % 2 == 0;
    if (rng_below(&rng, 100) < (grows ? 75 : 40)) {
        set_member(id);
    } else {
        delete_member(id);
    }
    verify(id);
    if (i % 16 == 0) {
        look_around();
    }
    if (i % 64 == 0) {
        delete_range();
    }
    if (i % (operations / 20 + 1) == 0 || (shape->ids < 1000 && i % 500 == 0)) {
        verify_all(&held.v);
        scan_while_writing();
        clone_and_compare();
        build_and_take_over();
    }
}

static void start_empty(const struct type_env *env) {
    hold_empty(&held, env);
    live = 0;
    for (uint32_t id = 0; id < shape->ids; id++) {
        score_now[id] = NAN;
    }
}

static void run_round(uint64_t operations) {
    struct pages *pages = held_pages(shape->chunk_bytes);
    struct type_env env = {.pages = pages,
                           .zset_packed_entries_max = shape->entries_max,
                           .zset_packed_element_max = shape->element_max};
    make_names();
    start_empty(&env);
    failures = 0;
    for (uint64_t i = 0; i < operations; i++) {
        step(i, operations);
        if (shape->ids < 1000 && i % 5000 == 0) {
            held_deinit(&held);
            start_empty(&env);
        }
    }
    verify_all(&held.v);
    printf("chunk %zu, scores %d, %" PRIu64 " operations, %" PRIu64
           " short of memory, %zu members at the end, %s\n",
           shape->chunk_bytes, (int)shape->scores, operations, failures, live,
           value_encoding_name(&held.v));
    held_deinit(&held);
    free_names();
    pages_destroy(pages);
    REQUIRE(held_total_bytes() == 0);
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : rng_entropy();
    uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 0) : OPERATIONS;
    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    rng_init(&rng, seed);
    hash_setup_seed(seed);
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        shape = &shapes[i];
        run_round(operations);
        fflush(stdout);
    }
    return 0;
}
