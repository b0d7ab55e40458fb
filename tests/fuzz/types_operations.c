/* SPDX-License-Identifier: BSD-3-Clause */
/* Sequences of operations on one value, beside a model of it (tests/support/models).
 *
 *   byte 0    bits 0-2  type: 0-4 zset, 5 hash, 6 list, 7 set
 *             bits 3-4  limits of the small forms
 *             bit 5     room in the key's record: plenty, or little
 *             bits 6-7  kind of members, fields and elements: short, longer, some at borders of length
 *   byte 1    zset: kind of scores; set: starts as integers?
 *   then      one byte an operation, and its arguments; bytes that are missing are 0
 *
 * Values are small and so are their limits, chunks are 64 KiB, the order tree's nodes have 30 entries
 * or 4 children: what usually takes millions of members happens in hundreds. Every write may be told
 * which of its allocations fails. The value's own check runs after each write while it is small, else
 * after one in eight, after each that failed, and at the end. */
#define LEAF_BYTES_MAX 256
#define INNER_BYTES_MAX 160

#include "../../src/ds/order.c"
#include "../../src/ds/order_edit.c"
#include "../../src/ds/order_leaf.c"
#include "../../src/ds/order_node.c"

#include "base/hash.h"
#include "support/models/hash_model.h"
#include "support/models/list_model.h"
#include "support/models/set_model.h"
#include "support/models/zset_model.h"

#include <math.h>

#define IDS 2400           /* of members; above 1632 the index has several segments */
#define OPERATIONS_MAX 300 /* in one input */
#define SMALL 150          /* entries that are checked after each write */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- input ----------------------------------------------------------------------------------- */

static const uint8_t *in;
static size_t in_left;

static uint64_t take(unsigned bytes) {
    uint64_t n = 0;
    for (; bytes > 0; bytes--) {
        n = n << 8 | (in_left != 0 ? *in : 0);
        in += in_left != 0;
        in_left -= in_left != 0;
    }
    return n;
}

static uint32_t take_id(void) {
    return (uint32_t)(take(2) % IDS);
}

/* Of a run of operations. */
static uint32_t take_count(void) {
    return (uint32_t)take(1) * 4;
}

/* Three writes of four have all the memory they want. */
static size_t take_failure(void) {
    uint64_t n = take(1);
    return n < 192 ? 0 : 1 + (n - 192) % 24;
}

/* 64 bits that follow from two. */
static uint64_t take_random(void) {
    uint64_t x = (take(2) + 1) * UINT64_C(0x9E3779B97F4A7C15);
    return x ^ x >> 29;
}

/* ---- what all types share -------------------------------------------------------------------- */

/* Limits by the two bits of byte 0: never packed, a few, more, up to what the record takes. */
static const size_t entries_max[] = {0, 8, 60, SIZE_MAX};
static const int list_sizes[] = {1, 12, -1, -5};

struct form {
    uint32_t usual_len;
    unsigned odd_every;
};
static const struct form forms[] = {{12, 0}, {40, 0}, {70, 0}, {30, 12}};

/* Members end in a number of four bytes; with it, one byte or eight of score and the record's head,
 * these lie around what one byte tells, what a record of a 64 KiB chunk takes, and what 16 bits tell. */
static const size_t odd_lens[] = {0,     1,     235,   236,   251,   252,
                                  16364, 16368, 16369, 16372, 65531, 65532};

static size_t header;
static size_t record_max;
static struct type_env env;
static unsigned writes;

static const struct form *form(void) {
    return &forms[header >> 6 & 3];
}

static bool check_now(uint64_t live) {
    return live <= SMALL || ++writes % 8 == 0;
}

static struct bytes *names_create(const struct form *f) {
    struct bytes *names = malloc(IDS * sizeof(*names));
    struct rng rng;
    REQUIRE(names != NULL);
    rng_init(&rng, 1);
    for (uint32_t id = 0; id < IDS; id++) {
        uint64_t r = rng_next(&rng);
        size_t len = r % f->usual_len;
        if (f->odd_every != 0 && (r >> 16) % f->odd_every == 0) {
            len = odd_lens[(r >> 40) % ARRAY_LEN(odd_lens)];
        }
        char *name = malloc(len + sizeof(id));
        REQUIRE(name != NULL);
        fill_pattern(name, len, id % 100); /* many share their first bytes */
        memcpy(name + len, &id, sizeof(id));
        names[id] = BYTES(name, len + sizeof(id));
    }
    return names;
}

/* ---- zset ------------------------------------------------------------------------------------ */

static struct zset_model zset;

/* A score of the kind in use, now and then one that is there, its neighbour, or any double. */
static double take_score(void) {
    uint64_t how = take(1);
    double score = zset_model_score(zset.kind, take_random());
    if (zset.kind == SCORES_EQUAL || how < 160) {
        return score;
    }
    if (how < 224 && zset.live != 0) {
        score = zset.sorted[take(2) % zset.live].score;
        return how < 192 ? score : nextafter(score, how % 2 ? INFINITY : -INFINITY);
    }
    uint64_t bits = take(8);
    memcpy(&score, &bits, sizeof(score));
    return isnan(score) ? 0 : score;
}

static void zset_op_set(void) {
    uint32_t id = take_id();
    double score = take_score();
    zset_model_set(&zset, id, score, take_failure());
    zset_model_verify_member(&zset, id);
}

/* A stretch of members, with scores that rise, fall or neither. */
static void zset_op_set_run(void) {
    uint32_t id = take_id(), step = (uint32_t)take(1), count = take_count();
    uint64_t random = take_random(), fail_from = take_count();
    double base = take_score(), rise = (double)(int8_t)take(1);
    for (uint32_t i = 0; i < count; i++, id = (id + step) % IDS) {
        double score =
            rise == 0 ? zset_model_score(zset.kind, random * (2 * i + 1)) : base + rise * (double)i;
        zset_model_set(&zset, id, isnan(score) ? 0 : score, i < fail_from ? 0 : 1 + i % 5);
    }
}

static void zset_op_delete(void) {
    uint32_t id = take_id();
    zset_model_delete(&zset, id, take_failure());
    zset_model_verify_member(&zset, id);
}

static void zset_op_delete_run(void) {
    uint32_t id = take_id(), step = (uint32_t)take(1), count = take_count();
    size_t fail_after = take_failure();
    for (uint32_t i = 0; i < count; i++, id = (id + step) % IDS) {
        zset_model_delete(&zset, id, fail_after);
    }
}

static void zset_op_delete_range(void) {
    uint64_t first = take(2) % (zset.live + 2), count = take(2);
    zset_model_delete_range(&zset, first, count, take_failure());
}

static void zset_op_walk(void) {
    uint64_t rank = take(2) % (zset.live + 2), backward = take(1);
    zset_model_verify_walk(&zset, rank, backward & 1, take(1));
}

static struct zset_score_bound take_bound(void) {
    double score = take_score();
    return (struct zset_score_bound){score, take(1) & 1};
}

static void zset_op_score_range(void) {
    struct zset_score_bound min = take_bound();
    zset_model_verify_score_range(&zset, min, take_bound());
}

static struct zset_lex_bound take_lex(void) {
    uint64_t r = take(1);
    struct zset_lex_bound b = {r % 8 == 0   ? ZSET_LEX_MIN
                               : r % 8 == 1 ? ZSET_LEX_MAX
                                            : ZSET_LEX_MEMBER,
                               zset.names[take_id()], r >> 3 & 1};
    if (r >> 7) {
        b.member.len = r % (b.member.len + 1);
    }
    return b;
}

static void zset_op_lex_range(void) {
    struct zset_lex_bound min = take_lex();
    zset_model_verify_lex_range(&zset, min, take_lex());
}

static void zset_op_random(void) {
    zset_model_verify_random(&zset);
}

static void zset_op_scan(void) {
    zset_model_scan(&zset);
}

static void zset_op_clone(void) {
    zset_model_clone(&zset, take_failure());
}

static void zset_op_build(void) {
    uint64_t how = take(1);
    zset_model_build(&zset, (enum zset_model_order)(how % ORDERS), how & 8, take_failure());
}

static void zset_op_twin(void) {
    zset_model_build_twin(&zset, take_random());
}

static void zset_op_restart(void) {
    zset_model_restart(&zset);
}

static void zset_begin(void) {
    static struct bytes *names[ARRAY_LEN(forms)];
    struct bytes **mine = &names[form() - forms];
    *mine = *mine != NULL ? *mine : names_create(form());
    zset_model_init(&zset, &env, record_max, *mine, IDS,
                    (enum zset_model_scores)(take(1) % SCORES_KINDS), header);
}

static void zset_verify(bool now) {
    if (now || check_now(zset.live)) {
        zset_model_verify_all(&zset);
    }
}

static void zset_end(void) {
    zset_model_deinit(&zset);
}

/* ---- hash ------------------------------------------------------------------------------------ */

static struct hash_model hash;

static void hash_op_set(void) {
    uint32_t field = take_id(), number = (uint32_t)take(2) + 1;
    hash_model_set(&hash, field, number, take_failure());
    hash_model_verify_field(&hash, field);
}

static void hash_op_set_run(void) {
    uint32_t field = take_id(), step = (uint32_t)take(1), count = take_count();
    uint32_t number = (uint32_t)take(2) + 1, fail_from = take_count();
    for (uint32_t i = 0; i < count; i++, field = (field + step) % IDS) {
        hash_model_set(&hash, field, number + i, i < fail_from ? 0 : 1 + i % 5);
    }
}

static void hash_op_delete(void) {
    uint32_t field = take_id();
    hash_model_delete(&hash, field, take_failure());
    hash_model_verify_field(&hash, field);
}

static void hash_op_delete_run(void) {
    uint32_t field = take_id(), step = (uint32_t)take(1), count = take_count();
    size_t fail_after = take_failure();
    for (uint32_t i = 0; i < count; i++, field = (field + step) % IDS) {
        hash_model_delete(&hash, field, fail_after);
    }
}

static void hash_op_random(void) {
    hash_model_verify_random(&hash);
}

static void hash_op_scan(void) {
    hash_model_scan(&hash);
}

static void hash_op_clone(void) {
    hash_model_clone(&hash, take_failure());
}

static void hash_op_load(void) {
    uint64_t how = take(1), expected = how & 1 ? take(2) : hash.live;
    hash_model_load(&hash, expected, how & 2, take_failure());
}

static void hash_op_restart(void) {
    hash_model_restart(&hash);
}

static void hash_begin(void) {
    static struct hash_model_form own;
    own = (struct hash_model_form){
        IDS, {form()->usual_len, form()->usual_len + 5}, form()->odd_every};
    take(1);
    hash_model_init(&hash, &env, record_max, &own, header);
}

static void hash_verify(bool now) {
    if (now || check_now(hash.live)) {
        hash_model_verify_all(&hash);
    }
}

static void hash_end(void) {
    hash_model_deinit(&hash);
}

/* ---- list ------------------------------------------------------------------------------------ */

static struct list_model list;

static void list_op_push(void) {
    uint64_t kind = take(2);
    list_model_push(&list, kind & 1 ? LIST_TAIL : LIST_HEAD, (uint32_t)kind >> 1, take_failure());
}

static void list_op_push_run(void) {
    uint32_t kind = (uint32_t)take(2), count = take_count(), fail_from = take_count();
    for (uint32_t i = 0; i < count; i++) {
        list_model_push(&list, kind & 1 ? LIST_TAIL : LIST_HEAD, (kind >> 1) + i,
                        i < fail_from ? 0 : 1 + i % 5);
    }
}

static void list_op_insert(void) {
    uint32_t at = (uint32_t)take(2), kind = (uint32_t)take(2);
    list_model_insert(&list, at, kind, take_failure());
}

static void list_op_insert_own(void) {
    uint32_t at = (uint32_t)take(2), from = (uint32_t)take(2);
    list_model_insert_own(&list, at == 0xFFFF ? UINT32_MAX : at, from, take_failure());
}

static void list_op_set(void) {
    uint32_t at = (uint32_t)take(2), kind = (uint32_t)take(2);
    list_model_set(&list, at, kind, take_failure());
}

static void list_op_remove(void) {
    uint64_t at = take(2), count = take(2);
    list_model_remove(&list, at, count, take_failure());
}

static void list_op_remove_equal(void) {
    uint32_t kind = (uint32_t)take(2), max = (uint32_t)take(1);
    list_model_remove_equal(&list, kind, max >> 1, max & 1, take_failure());
}

static void list_op_walk(void) {
    uint64_t index = take(2), backward = take(1);
    list_model_verify_walk(&list, index, backward & 1, (uint32_t)take(1));
}

static void list_op_look(void) {
    list_model_verify_some(&list);
}

static void list_op_clone(void) {
    list_model_clone(&list, take_failure());
}

static void list_op_build(void) {
    list_model_build(&list, take_failure());
}

static void list_begin(void) {
    static struct list_model_form own;
    uint64_t how = take(1);
    own = (struct list_model_form){.base = how & 1 ? 4 : 0,
                                   .spread = how & 2 ? form()->usual_len : 1,
                                   .odd_every = form()->odd_every,
                                   .odd_max = how & 4 ? 300 : 9000,
                                   .kinds = how & 8 ? 3 : 4000,
                                   .count_max = 3000};
    list_model_init(&list, &env, record_max, &own, header);
}

static void list_verify(bool now) {
    if (now || check_now(list.live)) {
        list_model_verify_all(&list);
    }
}

static void list_end_of_input(void) {
    list_model_deinit(&list);
}

/* ---- set ------------------------------------------------------------------------------------- */

static struct set_model set;

static void set_op_add(void) {
    uint32_t number = take_id();
    set_model_add(&set, number, take_failure());
    set_model_verify_member(&set, number);
}

static void set_op_add_run(void) {
    uint32_t number = take_id(), step = (uint32_t)take(1), count = take_count();
    uint32_t fail_from = take_count();
    for (uint32_t i = 0; i < count; i++, number = (number + step) % IDS) {
        set_model_add(&set, number, i < fail_from ? 0 : 1 + i % 5);
    }
}

static void set_op_remove(void) {
    uint32_t number = take_id();
    set_model_remove(&set, number, take_failure());
    set_model_verify_member(&set, number);
}

static void set_op_remove_run(void) {
    uint32_t number = take_id(), step = (uint32_t)take(1), count = take_count();
    size_t fail_after = take_failure();
    for (uint32_t i = 0; i < count; i++, number = (number + step) % IDS) {
        set_model_remove(&set, number, fail_after);
    }
}

static void set_op_random(void) {
    set_model_verify_random(&set);
}

static void set_op_scan(void) {
    set_model_scan(&set);
}

static void set_op_clone(void) {
    set_model_clone(&set, take_failure());
}

static void set_op_load(void) {
    uint64_t how = take(1), expected = how & 1 ? take(2) : set.live;
    set_model_load(&set, how & 4, expected, how & 2, take_failure());
}

static void set_op_restart(void) {
    set_model_restart(&set, take(1) & 1);
}

static void set_begin(void) {
    static struct set_model_form own;
    uint64_t how = take(1);
    own = (struct set_model_form){.members = IDS,
                                  .words_from = how & 1 ? 1000 : 0,
                                  .word_len = form()->usual_len,
                                  .odd_every = form()->odd_every};
    set_model_init(&set, &env, record_max, &own, how & 2, header);
}

static void set_verify(bool now) {
    if (now || check_now(set.live)) {
        set_model_verify_all(&set);
    }
}

static void set_end(void) {
    set_model_deinit(&set);
}

/* ---- the target ------------------------------------------------------------------------------ */

#define OPS_MAX 16

struct type {
    void (*begin)(void);
    void (*verify)(bool now);
    void (*end)(void);
    void (*ops[OPS_MAX])(void);
};

static const struct type zset_type = {
    zset_begin,
    zset_verify,
    zset_end,
    {zset_op_set, zset_op_set_run, zset_op_delete, zset_op_delete_run, zset_op_delete_range,
     zset_op_walk, zset_op_score_range, zset_op_lex_range, zset_op_random, zset_op_scan,
     zset_op_clone, zset_op_build, zset_op_twin, zset_op_restart}};

static const struct type hash_type = {hash_begin,
                                      hash_verify,
                                      hash_end,
                                      {hash_op_set, hash_op_set_run, hash_op_delete,
                                       hash_op_delete_run, hash_op_random, hash_op_scan,
                                       hash_op_clone, hash_op_load, hash_op_restart}};

static const struct type list_type = {list_begin,
                                      list_verify,
                                      list_end_of_input,
                                      {list_op_push, list_op_push_run, list_op_insert,
                                       list_op_insert_own, list_op_set, list_op_remove,
                                       list_op_remove_equal, list_op_walk, list_op_look,
                                       list_op_clone, list_op_build}};

static const struct type set_type = {set_begin,
                                     set_verify,
                                     set_end,
                                     {set_op_add, set_op_add_run, set_op_remove, set_op_remove_run,
                                      set_op_random, set_op_scan, set_op_clone, set_op_load,
                                      set_op_restart}};

static size_t op_count(const struct type *type) {
    size_t n = 0;
    while (n < OPS_MAX && type->ops[n] != NULL) {
        n++;
    }
    return n;
}

static void set_limits(struct pages *pages) {
    size_t limit = entries_max[header >> 3 & 3];
    record_max = header & 32 ? 3000 : 60000;
    env = (struct type_env){.pages = pages,
                            .hash_packed_entries_max = limit,
                            .hash_packed_element_max = 64,
                            .set_int_entries_max = limit,
                            .set_packed_entries_max = limit,
                            .set_packed_element_max = 64,
                            .zset_packed_entries_max = limit,
                            .zset_packed_element_max = 64};
    list_limits(list_sizes[header >> 3 & 3], &env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct type *const types[] = {&zset_type, &zset_type, &zset_type, &zset_type,
                                               &zset_type, &hash_type, &list_type, &set_type};
    struct pages *pages = held_pages((size_t)64 << 10);
    in = data;
    in_left = size;
    hash_setup_seed(1);
    header = take(1);
    writes = 0;
    set_limits(pages);
    const struct type *type = types[header & 7];
    size_t ops = op_count(type);
    type->begin();
    for (int i = 0; i < OPERATIONS_MAX && in_left != 0; i++) {
        type->ops[take(1) % ops]();
        type->verify(false);
    }
    type->verify(true);
    type->end();
    pages_destroy(pages);
    REQUIRE(held_total_bytes() == 0);
    return 0;
}
