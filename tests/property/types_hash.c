/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on a hash, packed and as a table, against an array of what each field holds.
 *
 *   property_types_hash [seed [operations a round]]
 *
 * Each round takes another chunk size, other limits of the packed form and other lengths. The hash
 * grows and shrinks in waves; one write in sixteen runs short of memory and must then change
 * nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../unit/types/host.h"
#include "base/hash.h"
#include "types/hash.h"

#define FIELDS 20000
#define OPERATIONS 40000

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct shape {
    size_t chunk_bytes, entries_max, element_max, record_max;
    uint32_t fields;    /* in use this round */
    size_t lens[2];     /* field and value: usual lengths below these */
    unsigned odd_every; /* one in so many has a length at some border */
};

static const struct shape shapes[] = {
    {65536, 128, 64, 60000, 160, {20, 60}, 0},            /* around the limit of the packed form */
    {65536, SIZE_MAX, SIZE_MAX, 9000, 300, {30, 60}, 20}, /* until the record is full */
    {65536, 16, 64, 60000, 20000, {20, 40}, 0},           /* many chunks */
    {65536, 16, 64, 60000, 3000, {300, 900}, 50},         /* long records, boxes */
    {(size_t)2 << 20, 16, 64, 60000, 20000, {20, 300}, 2000},
};

static const size_t odd_lens[] = {0,     1,     239,   240,   241,   4095,  16379, 16380,
                                  16381, 65529, 65530, 65531, 65535, 65536, 100000};

static struct rng rng;
static const struct shape *shape;
static struct held held;
static uint32_t *model; /* the number a field's value is made from, 0: absent */
static uint64_t live, failures;

static size_t length_of(uint64_t number, size_t usual) {
    uint64_t r = number * UINT64_C(0x9E3779B97F4A7C15) >> 20;
    if (shape->odd_every != 0 && r % shape->odd_every == 0) {
        return odd_lens[r / shape->odd_every % ARRAY_LEN(odd_lens)];
    }
    return r % usual;
}

/* Names are told apart by their last four bytes, which are the number. */
static struct bytes field_name(uint32_t field) {
    static char name[100100];
    size_t len = length_of(field, shape->lens[0]);
    fill_pattern(name, len, field);
    memcpy(name + len, &field, sizeof(field));
    return BYTES(name, len + sizeof(field));
}

static struct bytes field_value(uint32_t number) {
    static char value[100100];
    size_t len = length_of(number, shape->lens[1]);
    fill_pattern(value, len, number);
    return BYTES(value, len);
}

static uint32_t number_of(struct bytes field) {
    uint32_t number;
    REQUIRE(field.len >= sizeof(number));
    memcpy(&number, field.ptr + field.len - sizeof(number), sizeof(number));
    REQUIRE(number < shape->fields);
    return number;
}

static void verify(uint32_t field) {
    struct bytes value;
    bool found = hash_get(&held.v, field_name(field), &value);
    REQUIRE(found == (model[field] != 0));
    REQUIRE(!found || bytes_equal(value, field_value(model[field])));
}

struct seen {
    uint8_t *times;
};

static void mark(void *arg, struct bytes field, struct bytes value) {
    struct seen *seen = arg;
    uint32_t number = number_of(field);
    REQUIRE(model[number] != 0 && bytes_equal(value, field_value(model[number])));
    REQUIRE(seen->times[number] < 255);
    seen->times[number]++;
}

static void verify_all(const struct value *v) {
    struct seen seen = {.times = calloc(shape->fields, 1)};
    struct hash_pair pairs[80];
    uint64_t position = 0;
    size_t count;
    REQUIRE(seen.times != NULL);
    hash_check(v);
    REQUIRE(hash_count(v) == live);
    while ((count = hash_next(v, &position, pairs, 1 + rng_below(&rng, 80))) != 0) {
        for (size_t i = 0; i < count; i++) {
            mark(&seen, pairs[i].field, pairs[i].value);
        }
    }
    for (uint32_t i = 0; i < shape->fields; i++) {
        REQUIRE(seen.times[i] == (model[i] != 0));
    }
    free(seen.times);
}

static void set_field(uint32_t field) {
    uint32_t number = (uint32_t)rng_next(&rng) | 1;
    bool short_of_memory = rng_below(&rng, 16) == 0, added;
    struct bytes name = field_name(field), value = field_value(number);
    if (short_of_memory) {
        account_fail_after(1 + rng_below(&rng, 5));
    }
    enum status st = hash_set(&held.v, name, value, &added);
    account_fail_after(0);
    REQUIRE(st == ST_OK || (short_of_memory && st == ST_NOMEM));
    if (st == ST_OK) {
        REQUIRE(added == (model[field] == 0));
        live += added;
        model[field] = number;
    }
    failures += st != ST_OK;
}

static void delete_field(uint32_t field) {
    struct bytes name = field_name(field);
    account_fail_after(rng_below(&rng, 16) == 0); /* deleting works without memory */
    bool was = hash_delete(&held.v, name);
    account_fail_after(0);
    REQUIRE(was == (model[field] != 0));
    live -= was;
    model[field] = 0;
}

/* A whole scan between writes: fields there throughout come once, none comes twice. A packed hash
 * comes whole at each call, so its promise holds only while it stays packed and is read once. */
static void scan_while_writing(void) {
    uint8_t *stays = malloc(shape->fields);
    struct seen seen = {.times = calloc(shape->fields, 1)};
    REQUIRE(stays != NULL && seen.times != NULL);
    for (uint32_t i = 0; i < shape->fields; i++) {
        stays[i] = model[i] != 0;
    }
    uint64_t cursor = 0;
    bool table = held.v.encoding == VALUE_HEAP;
    do {
        cursor = hash_scan(&held.v, cursor, 1 + rng_below(&rng, 200), mark, &seen);
        for (int i = 0; cursor != 0 && i < 20; i++) {
            uint32_t field = (uint32_t)rng_below(&rng, shape->fields);
            if (rng_below(&rng, 2)) {
                set_field(field);
            } else {
                delete_field(field);
                stays[field] = 0;
            }
        }
    } while (cursor != 0);
    for (uint32_t i = 0; i < shape->fields; i++) {
        REQUIRE(!stays[i] || seen.times[i] == 1);
        REQUIRE(!table || stays[i] || seen.times[i] <= 2); /* deleted and set again: maybe twice */
    }
    free(stays);
    free(seen.times);
}

static void clone_and_compare(void) {
    struct value_image image;
    struct held copy;
    if (rng_below(&rng, 2) == 0) {
        size_t before = held_object_bytes();
        account_fail_after(1 + rng_below(&rng, 40));
        enum status st = value_clone(&held.v, &image);
        account_fail_after(0);
        REQUIRE(st == ST_OK || (st == ST_NOMEM && held_object_bytes() == before));
        if (st == ST_OK) {
            value_image_discard(VALUE_HASH, &image);
        }
        REQUIRE(held_object_bytes() == before);
        return;
    }
    REQUIRE(value_clone(&held.v, &image) == ST_OK);
    held_init(&copy, VALUE_HASH, &image, &held.env);
    verify_all(&copy.v);
    if (copy.v.encoding == VALUE_HEAP) {
        void *object = value_object(&copy.v);
        while (!value_free_step(VALUE_HASH, object, 1 + rng_below(&rng, 100))) {
        }
        copy.v.encoding = VALUE_PACKED;
    }
    held_deinit(&copy);
}

static void run_round(uint64_t operations) {
    struct pages *pages = held_pages(shape->chunk_bytes);
    struct type_env env = {.pages = pages,
                           .hash_packed_entries_max = shape->entries_max,
                           .hash_packed_element_max = shape->element_max};
    struct value_image image = {.encoding = VALUE_PACKED,
                                .data = BYTES(hash_empty, HASH_EMPTY_LEN)};
    held_init(&held, VALUE_HASH, &image, &env);
    held.len_max = shape->record_max;
    model = calloc(shape->fields, sizeof(*model));
    REQUIRE(model != NULL);
    live = failures = 0;
    for (uint64_t i = 0; i < operations; i++) {
        uint32_t field = (uint32_t)rng_below(&rng, shape->fields);
        bool grows = i / (operations / 6 + 1) % 2 == 0;
        if (rng_below(&rng, 100) < (grows ? 75 : 40)) {
            set_field(field);
        } else {
            delete_field(field);
        }
        verify(field);
        if (live > 0 && i % 7 == 0) {
            struct hash_pair pair;
            hash_random(&held.v, &rng, &pair);
            REQUIRE(model[number_of(pair.field)] != 0);
        }
        if (i % (operations / 10 + 1) == 0) {
            verify_all(&held.v);
            scan_while_writing();
            clone_and_compare();
        }
        if (live == 0 || (shape->fields < 1000 && i % 500 == 0)) { /* start again, packed */
            held_deinit(&held);
            held_init(&held, VALUE_HASH, &image, &env);
            held.len_max = shape->record_max;
            memset(model, 0, shape->fields * sizeof(*model));
            live = 0;
        }
    }
    verify_all(&held.v);
    printf("chunk %zu, %" PRIu64 " operations, %" PRIu64 " short of memory, %" PRIu64
           " fields at the end, %s\n",
           shape->chunk_bytes, operations, failures, live, value_encoding_name(&held.v));
    held_deinit(&held);
    free(model);
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
