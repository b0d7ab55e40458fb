/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on a set in all its forms, against an array of which members are there.
 *
 *   property_types_set [seed [operations a round]]
 *
 * Each round takes another chunk size, other limits of the small forms and other members. The set
 * grows and shrinks in waves; one write in sixteen runs short of memory and must then change
 * nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../unit/types/host.h"
#include "base/hash.h"
#include "types/set.h"

#define OPERATIONS 40000

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct shape {
    size_t chunk_bytes, record_max;
    struct {
        size_t ints, entries, element;
    } limits;
    uint32_t members;    /* in use this round */
    uint32_t words_from; /* members below are integers */
    size_t word_len;     /* words: usual lengths below this */
    unsigned odd_every;  /* one in so many has a length at some border */
};

static const struct shape shapes[] = {
    {65536, 60000, {100, 20, 64}, 160, 160, 0, 0},                  /* integers, and too many */
    {65536, 60000, {512, 128, 64}, 170, 140, 30, 0},                /* all three forms */
    {65536, 3000, {SIZE_MAX, SIZE_MAX, SIZE_MAX}, 500, 400, 20, 0}, /* until the record is full */
    {65536, 60000, {16, 16, 64}, 20000, 10000, 24, 0},              /* many chunks */
    {65536, 60000, {16, 16, 64}, 2000, 100, 900, 50},               /* long records, boxes */
    {(size_t)2 << 20, 60000, {16, 16, 64}, 20000, 100, 200, 3000},
};

static const size_t odd_lens[] = {0,     239,   240,   241,   4095,  16379, 16380,
                                  16381, 65529, 65531, 65535, 65536, 100000};

static struct rng rng;
static const struct shape *shape;
static struct held held;
static uint8_t *there; /* by number */
static uint64_t live, failures, changes_of_form;

/* Integers of all widths, told apart by their last five digits. */
static int64_t integer_of(uint32_t number) {
    static const int64_t scales[] = {0, 0, 0, 0, 0, 1, -1, 3000000, -3000000, 92233720368546};
    return scales[number % ARRAY_LEN(scales)] * 100000 + number;
}

static struct bytes member_of(uint32_t number) {
    static char text[100100];
    if (number < shape->words_from) {
        return BYTES(text, number_format_i64(text, integer_of(number)));
    }
    uint64_t r = number * UINT64_C(0x9E3779B97F4A7C15) >> 20;
    size_t len = r % shape->word_len;
    if (shape->odd_every != 0 && r % shape->odd_every == 0) {
        len = odd_lens[r / shape->odd_every % ARRAY_LEN(odd_lens)];
    }
    fill_pattern(text, len, number);
    text[len] = 'w'; /* no digit */
    memcpy(text + len + 1, &number, sizeof(number));
    return BYTES(text, len + 1 + sizeof(number));
}

static uint32_t number_of(struct bytes member) {
    uint32_t number;
    int64_t n;
    if (number_parse_i64(member, &n)) {
        n = (n % 100000 + 100000) % 100000;
        number = (uint32_t)n;
    } else {
        REQUIRE(member.len > sizeof(number));
        memcpy(&number, member.ptr + member.len - sizeof(number), sizeof(number));
    }
    REQUIRE(number < shape->members && bytes_equal(member, member_of(number)));
    return number;
}

static void mark(void *arg, struct bytes member) {
    uint8_t *times = arg;
    uint32_t number = number_of(member);
    REQUIRE(there[number] && times[number] < 255);
    times[number]++;
}

static void verify_all(const struct value *v) {
    uint8_t *times = calloc(shape->members, 1);
    struct bytes members[80];
    char scratch[80 * SET_SCRATCH_LEN];
    uint64_t position = 0;
    size_t count;
    REQUIRE(times != NULL);
    set_check(v);
    REQUIRE(set_count(v) == live);
    while ((count = set_next(v, &position, members, 1 + rng_below(&rng, 80), scratch)) != 0) {
        for (size_t i = 0; i < count; i++) {
            mark(times, members[i]);
        }
    }
    for (uint32_t i = 0; i < shape->members; i++) {
        REQUIRE(times[i] == there[i]);
    }
    free(times);
}

static void add(uint32_t number) {
    bool short_of_memory = rng_below(&rng, 16) == 0, added;
    enum value_encoding encoding = held.v.encoding;
    struct bytes member = member_of(number);
    if (short_of_memory) {
        account_fail_after(1 + rng_below(&rng, 5));
    }
    enum status st = set_add(&held.v, member, &added);
    account_fail_after(0);
    REQUIRE(st == ST_OK || (short_of_memory && st == ST_NOMEM));
    REQUIRE(st == ST_OK || held.v.encoding == encoding);
    if (st == ST_OK) {
        REQUIRE(added == !there[number]);
        live += added;
        there[number] = 1;
    }
    failures += st != ST_OK;
    changes_of_form += encoding != held.v.encoding;
}

static void remove_member(uint32_t number) {
    account_fail_after(rng_below(&rng, 16) == 0); /* removing works without memory */
    bool was = set_remove(&held.v, member_of(number));
    account_fail_after(0);
    REQUIRE(was == there[number]);
    live -= was;
    there[number] = 0;
}

/* A whole scan between writes: members there throughout come once. A small set comes whole at each
 * call, so it is read in one. */
static void scan_while_writing(void) {
    uint8_t *stays = malloc(shape->members), *times = calloc(shape->members, 1);
    REQUIRE(stays != NULL && times != NULL);
    memcpy(stays, there, shape->members);
    uint64_t cursor = 0;
    do {
        cursor = set_scan(&held.v, cursor, 1 + rng_below(&rng, 200), mark, times);
        for (int i = 0; cursor != 0 && i < 20; i++) {
            uint32_t number = (uint32_t)rng_below(&rng, shape->members);
            if (rng_below(&rng, 2)) {
                add(number);
            } else {
                remove_member(number);
                stays[number] = 0;
            }
        }
    } while (cursor != 0);
    for (uint32_t i = 0; i < shape->members; i++) {
        REQUIRE(!stays[i] || times[i] == 1);
        REQUIRE(times[i] <= 2); /* removed and added again: maybe twice */
    }
    free(stays);
    free(times);
}

static void clone_and_compare(void) {
    struct value_image image;
    struct held copy;
    size_t before = held_object_bytes();
    account_fail_after(rng_below(&rng, 2) ? 0 : 1 + rng_below(&rng, 40));
    enum status st = value_clone(&held.v, &image);
    account_fail_after(0);
    if (st != ST_OK) {
        REQUIRE(st == ST_NOMEM && held_object_bytes() == before);
        return;
    }
    held_init(&copy, VALUE_SET, &image, &held.env);
    verify_all(&copy.v);
    if (copy.v.encoding == VALUE_HEAP) {
        void *object = value_object(&copy.v);
        while (!value_free_step(VALUE_SET, object, 1 + rng_below(&rng, 100))) {
        }
        copy.v.encoding = VALUE_PACKED;
    }
    held_deinit(&copy);
    REQUIRE(held_object_bytes() == before);
}

static void start(const struct type_env *env) {
    struct value_image image;
    set_empty_image(rng_below(&rng, 4) != 0, &image);
    held_init(&held, VALUE_SET, &image, env);
    held.len_max = shape->record_max;
    memset(there, 0, shape->members);
    live = 0;
}

static void step(uint64_t i, uint64_t operations) {
    uint32_t number = (uint32_t)rng_below(&rng, shape->members);
    bool grows = i / (operations / 6 + 1) % 2 == 0;
    if (rng_below(&rng, 100) < (grows ? 75 : 40)) {
        add(number);
    } else {
        remove_member(number);
    }
    REQUIRE(set_contains(&held.v, member_of(number)) == there[number]);
    if (live > 0 && i % 7 == 0) {
        char scratch[SET_SCRATCH_LEN];
        REQUIRE(there[number_of(set_random(&held.v, &rng, scratch))]);
    }
    if (i % (operations / 10 + 1) == 0) {
        verify_all(&held.v);
        scan_while_writing();
        clone_and_compare();
    }
}

static void run_round(uint64_t operations) {
    struct pages *pages = held_pages(shape->chunk_bytes);
    struct type_env env = {.pages = pages,
                           .set_int_entries_max = shape->limits.ints,
                           .set_packed_entries_max = shape->limits.entries,
                           .set_packed_element_max = shape->limits.element};
    there = calloc(shape->members, 1);
    REQUIRE(there != NULL);
    failures = changes_of_form = 0;
    start(&env);
    for (uint64_t i = 0; i < operations; i++) {
        step(i, operations);
        if (live == 0 || (shape->members < 1000 && i % 400 == 0)) { /* start again, small */
            held_deinit(&held);
            start(&env);
        }
    }
    verify_all(&held.v);
    printf("chunk %zu, %" PRIu64 " operations, %" PRIu64 " short of memory, %" PRIu64
           " changes of form, %" PRIu64 " members at the end, %s\n",
           shape->chunk_bytes, operations, failures, changes_of_form, live,
           value_encoding_name(&held.v));
    held_deinit(&held);
    free(there);
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
