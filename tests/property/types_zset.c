/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on a sorted set, packed and as a table, against a sorted array.
 *
 *   property_types_zset [seed [operations a round]]
 *
 * Each round takes another chunk size, other limits of the packed form, other lengths and another
 * distribution of scores. The set grows and shrinks in waves; one write in sixteen runs short of
 * memory and must then change nothing. Each step compares what it touched; all entries, with
 * the tree's and the index's own checks, come every CHECK_EVERY steps. */
#include <inttypes.h>

#include "base/hash.h"
#include "support/models/zset_model.h"

/* A million in all rounds: 2 s, under AddressSanitizer 10 s. */
#define OPERATIONS 91000
#define CHECK_EVERY 500

struct shape {
    size_t chunk_bytes, entries_max, element_max, record_max;
    uint32_t ids;       /* members in use this round */
    size_t usual_len;   /* of members, below this */
    unsigned odd_every; /* one in so many has a length at some border; 0: none */
    enum zset_model_scores scores;
};

#define SMALL_CHUNK 65536
#define LARGE_CHUNK ((size_t)2 << 20)

static const struct shape shapes[] = {
    /* around the limit of the packed form */
    {SMALL_CHUNK, 128, 64, 60000, 160, 20, 0, SCORES_DOUBLES},
    {SMALL_CHUNK, 128, 64, 60000, 160, 20, 0, SCORES_FEW},
    {SMALL_CHUNK, 128, 64, 60000, 160, 20, 0, SCORES_MIXED},
    {SMALL_CHUNK, 128, 64, 60000, 160, 20, 0, SCORES_EQUAL},
    /* until the record is full */
    {SMALL_CHUNK, SIZE_MAX, SIZE_MAX, 6000, 300, 30, 30, SCORES_MIXED},
    /* tables */
    {SMALL_CHUNK, 16, 64, 60000, 9000, 30, 0, SCORES_DOUBLES},
    {SMALL_CHUNK, 16, 64, 60000, 9000, 30, 0, SCORES_FEW},
    {SMALL_CHUNK, 16, 64, 60000, 9000, 30, 0, SCORES_INTEGERS},
    {SMALL_CHUNK, 16, 64, 60000, 5000, 30, 0, SCORES_EQUAL},
    {SMALL_CHUNK, 16, 64, 60000, 2000, 400, 30, SCORES_MIXED}, /* long members, boxes */
    {LARGE_CHUNK, 16, 64, 60000, 9000, 300, 2000, SCORES_MIXED},
};

/* Members end in a number of four bytes, so these are on both sides of what fits a record of a
 * 64 KiB chunk with one byte or eight of score. */
static const size_t odd_lens[] = {0,     1,     235,   236,   237,   251,   16363, 16364, 16365,
                                  16366, 16367, 16368, 16369, 16370, 16371, 16372, 65535, 100000};

static struct rng rng;
static const struct shape *shape;
static struct zset_model set;

static struct bytes *make_names(void) {
    struct bytes *names = malloc(shape->ids * sizeof(*names));
    REQUIRE(names != NULL);
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
    }
    return names;
}

static void free_names(struct bytes *names) {
    for (uint32_t id = 0; id < shape->ids; id++) {
        free((char *)names[id].ptr);
    }
    free(names);
}

static double draw_score(void) {
    return zset_model_score(shape->scores, rng_next(&rng));
}

static struct zset_score_bound draw_bound(void) {
    return (struct zset_score_bound){draw_score(), rng_below(&rng, 2)};
}

static struct zset_lex_bound draw_lex(void) {
    static const char other[] = "other";
    uint64_t r = rng_next(&rng);
    struct zset_lex_bound b = {r % 8 == 0   ? ZSET_LEX_MIN
                               : r % 8 == 1 ? ZSET_LEX_MAX
                                            : ZSET_LEX_MEMBER,
                               set.names[(r >> 32) % shape->ids], r >> 8 & 1};
    if (r % 8 == 2) {
        b.member = BYTES(other, r >> 16 & 3);
    }
    return b;
}

/* In one case of sixteen, which allocation fails first. */
static size_t draw_failure(uint64_t most) {
    return rng_below(&rng, 16) == 0 ? 1 + rng_below(&rng, most) : 0;
}

static void look_around(void) {
    zset_model_verify_score_range(&set, draw_bound(), draw_bound());
    zset_model_verify_lex_range(&set, draw_lex(), draw_lex());
    zset_model_verify_walk(&set, rng_below(&rng, set.live + 3), rng_below(&rng, 2),
                           1 + rng_below(&rng, 100));
    zset_model_verify_random(&set);
}

static void delete_some(void) {
    uint64_t most = rng_below(&rng, 8) == 0 ? 200 : 4;
    zset_model_delete_range(&set, rng_below(&rng, set.live + 2), rng_below(&rng, most),
                            draw_failure(1));
}

static void step(uint64_t i, uint64_t operations) {
    uint32_t id = (uint32_t)rng_below(&rng, shape->ids);
    bool grows = i / (operations / 6 + 1) % 2 == 0;
    if (rng_below(&rng, 100) < (grows ? 75 : 40)) {
        zset_model_set(&set, id, draw_score(), draw_failure(5));
    } else {
        zset_model_delete(&set, id, draw_failure(1));
    }
    zset_model_verify_member(&set, id);
    if (i % 16 == 0) {
        look_around();
    }
    if (i % 64 == 0) {
        delete_some();
    }
    if (i % CHECK_EVERY == 0) {
        zset_model_verify_all(&set);
    }
    if (i % (operations / 20 + 1) == 0 || (shape->ids < 1000 && i % CHECK_EVERY == 0)) {
        zset_model_scan(&set);
        zset_model_clone(&set, 1 + rng_below(&rng, 40));
        zset_model_clone(&set, 0);
        zset_model_build_twin(&set, rng_next(&rng));
        zset_model_build(&set, (enum zset_model_order)rng_below(&rng, ORDERS), rng_below(&rng, 2),
                         1 + rng_below(&rng, 20));
    }
}

static void run_round(uint64_t operations) {
    struct pages *pages = held_pages(shape->chunk_bytes);
    struct type_env env = {.pages = pages,
                           .zset_packed_entries_max = shape->entries_max,
                           .zset_packed_element_max = shape->element_max};
    struct bytes *names = make_names();
    zset_model_init(&set, &env, shape->record_max, names, shape->ids, shape->scores,
                    rng_next(&rng));
    for (uint64_t i = 0; i < operations; i++) {
        step(i, operations);
        if (shape->ids < 1000 && i % 5000 == 0) {
            zset_model_restart(&set);
        }
    }
    zset_model_verify_all(&set);
    printf("chunk %zu, scores %d, %" PRIu64 " operations, %" PRIu64
           " short of memory, %zu members at the end, %s\n",
           shape->chunk_bytes, (int)shape->scores, operations, set.failures, set.live,
           value_encoding_name(&set.held.v));
    zset_model_deinit(&set);
    free_names(names);
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
