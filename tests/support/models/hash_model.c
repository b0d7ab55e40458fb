/* SPDX-License-Identifier: BSD-3-Clause */
#include "hash_model.h"

#include "base/hash.h"

#define NEXT_BATCH 80  /* fields taken at a time, at most */
#define SCAN_WRITES 20 /* between two steps of a scan */

static const size_t odd_lens[] = {0,     1,     239,   240,   241,   4095,  16379, 16380,
                                  16381, 65529, 65530, 65531, 65535, 65536, 100000};
#define ODD_LEN_MAX 100000

static size_t length_of(const struct hash_model *m, uint64_t number, size_t usual) {
    uint64_t r = number * UINT64_C(0x9E3779B97F4A7C15) >> 20;
    if (m->form->odd_every != 0 && r % m->form->odd_every == 0) {
        return odd_lens[r / m->form->odd_every % ARRAY_LEN(odd_lens)];
    }
    return r % usual;
}

static struct bytes name_into(const struct hash_model *m, uint32_t field, char *name) {
    size_t len = length_of(m, field, m->form->lens[0]);
    fill_pattern(name, len, field);
    memcpy(name + len, &field, sizeof(field));
    return BYTES(name, len + sizeof(field));
}

static struct bytes value_into(const struct hash_model *m, uint32_t number, char *value) {
    size_t len = length_of(m, number, m->form->lens[1]);
    fill_pattern(value, len, number);
    return BYTES(value, len);
}

static struct bytes name_of(const struct hash_model *m, uint32_t field) {
    static char name[ODD_LEN_MAX + sizeof(field)];
    return name_into(m, field, name);
}

static struct bytes value_of(const struct hash_model *m, uint32_t number) {
    static char value[ODD_LEN_MAX];
    return value_into(m, number, value);
}

static uint32_t field_of(const struct hash_model *m, struct bytes name) {
    uint32_t field;
    REQUIRE(name.len >= sizeof(field));
    memcpy(&field, name.ptr + name.len - sizeof(field), sizeof(field));
    REQUIRE(field < m->form->fields && bytes_equal(name, name_of(m, field)));
    return field;
}

/* ---- reading --------------------------------------------------------------------------------- */

void hash_model_verify_field(struct hash_model *m, uint32_t field) {
    struct bytes name = name_of(m, field), value;
    hash_prefetch_index(&m->held.v, hash_bytes(name));
    hash_prefetch_record(&m->held.v, hash_bytes(name));
    bool found = hash_get(&m->held.v, name, &value);
    REQUIRE(found == (m->number[field] != 0));
    REQUIRE(!found || bytes_equal(value, value_of(m, m->number[field])));
}

struct seen {
    const struct hash_model *m;
    uint8_t *times; /* by field */
};

static void mark(void *arg, struct bytes name, struct bytes value) {
    struct seen *seen = arg;
    uint32_t field = field_of(seen->m, name);
    REQUIRE(seen->m->number[field] != 0);
    REQUIRE(bytes_equal(value, value_of(seen->m, seen->m->number[field])));
    REQUIRE(seen->times[field] < 255);
    seen->times[field]++;
}

void hash_model_verify_random(struct hash_model *m) {
    struct hash_pair pair;
    if (m->live > 0) {
        hash_random(&m->held.v, &m->rng, &pair);
        REQUIRE(m->number[field_of(m, pair.field)] != 0);
    }
}

static void verify_all(struct hash_model *m, const struct value *v) {
    struct seen seen = {m, calloc(m->form->fields, 1)};
    struct hash_pair pairs[NEXT_BATCH];
    uint64_t position = 0;
    size_t count;
    REQUIRE(seen.times != NULL);
    hash_check(v);
    REQUIRE(hash_count(v) == m->live);
    while ((count = hash_next(v, &position, pairs, 1 + rng_below(&m->rng, NEXT_BATCH))) != 0) {
        for (size_t i = 0; i < count; i++) {
            mark(&seen, pairs[i].field, pairs[i].value);
        }
    }
    for (uint32_t i = 0; i < m->form->fields; i++) {
        REQUIRE(seen.times[i] == (m->number[i] != 0));
    }
    free(seen.times);
}

void hash_model_verify_all(struct hash_model *m) {
    verify_all(m, &m->held.v);
}

/* ---- writing --------------------------------------------------------------------------------- */

void hash_model_set(struct hash_model *m, uint32_t field, uint32_t number, size_t fail_after) {
    bool added;
    enum value_encoding encoding = m->held.v.encoding;
    struct bytes name = name_of(m, field), value = value_of(m, number);
    account_fail_after(fail_after);
    enum status st = hash_set(&m->held.v, name, value, &added);
    account_fail_after(0);
    if (st != ST_OK) {
        REQUIRE(fail_after != 0 && st == ST_NOMEM && m->held.v.encoding == encoding);
        m->failures++;
        hash_model_verify_all(m);
        return;
    }
    REQUIRE(added == (m->number[field] == 0));
    m->live += added;
    m->number[field] = number;
}

void hash_model_delete(struct hash_model *m, uint32_t field, size_t fail_after) {
    struct bytes name = name_of(m, field);
    account_fail_after(fail_after);
    bool was = hash_delete(&m->held.v, name);
    account_fail_after(0);
    REQUIRE(was == (m->number[field] != 0));
    m->live -= was;
    m->number[field] = 0;
}

static void write_between(struct hash_model *m, bool *stays) {
    for (int i = 0; i < SCAN_WRITES; i++) {
        uint32_t field = (uint32_t)rng_below(&m->rng, m->form->fields);
        if (rng_below(&m->rng, 2)) {
            hash_model_set(m, field, (uint32_t)rng_next(&m->rng) | 1, 0);
        } else {
            hash_model_delete(m, field, 0);
            stays[field] = false;
        }
    }
}

/* A packed hash comes whole at each call, so its promise holds only while it stays packed and is
 * read once. */
void hash_model_scan(struct hash_model *m) {
    bool *stays = malloc(m->form->fields * sizeof(*stays));
    struct seen seen = {m, calloc(m->form->fields, 1)};
    bool table = m->held.v.encoding == VALUE_HEAP;
    uint64_t cursor = 0;
    REQUIRE(stays != NULL && seen.times != NULL);
    for (uint32_t i = 0; i < m->form->fields; i++) {
        stays[i] = m->number[i] != 0;
    }
    do {
        cursor = hash_scan(&m->held.v, cursor, 1 + rng_below(&m->rng, 200), mark, &seen);
        if (cursor != 0) {
            write_between(m, stays);
        }
    } while (cursor != 0);
    for (uint32_t i = 0; i < m->form->fields; i++) {
        REQUIRE(!stays[i] || seen.times[i] == 1);
        REQUIRE(!table || stays[i] || seen.times[i] <= 2); /* deleted and set again: maybe twice */
    }
    free(stays);
    free(seen.times);
}

void hash_model_clone(struct hash_model *m, size_t fail_after) {
    struct held copy;
    size_t before = model_object_bytes();
    if (model_clone(&m->held, &copy, fail_after)) {
        verify_all(m, &copy.v);
        model_discard(&copy, &m->rng);
        REQUIRE(model_object_bytes() == before);
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

static void hold_empty(struct held *h, const struct type_env *env, size_t record_max) {
    struct value_image image = {.encoding = VALUE_PACKED,
                                .data = BYTES(hash_empty, HASH_EMPTY_LEN)};
    held_init(h, VALUE_HASH, &image, env);
    h->len_max = record_max;
}

/* Views of all pairs of the hash. */
static struct hash_pair *pairs_of(const struct hash_model *m) {
    struct hash_pair *pairs = malloc((m->live + 1) * sizeof(*pairs));
    uint64_t position = 0, filled = 0;
    size_t count;
    REQUIRE(pairs != NULL);
    while ((count = hash_next(&m->held.v, &position, pairs + filled, m->live + 1 - filled)) != 0) {
        filled += count;
    }
    REQUIRE(filled == m->live);
    return pairs;
}

/* All of pairs, a few at a time. */
static enum status load_into(struct hash_model *m, struct held *h, const struct hash_pair *pairs,
                             size_t count, uint64_t expected) {
    enum status st = hash_expect(&h->v, expected);
    for (size_t at = 0, n; at < count && st == ST_OK; at += n) {
        n = 1 + rng_below(&m->rng, NEXT_BATCH);
        n = n < count - at ? n : count - at;
        st = hash_add_all(&h->v, pairs + at, n);
    }
    return st;
}

void hash_model_load(struct hash_model *m, uint64_t expected, bool twin, size_t fail_after) {
    struct held built;
    struct hash_pair *pairs = pairs_of(m);
    twin = twin && m->live != 0;
    if (twin) {
        pairs[m->live] = pairs[rng_below(&m->rng, m->live)];
    }
    hold_empty(&built, &m->held.env, m->held.len_max);
    account_fail_after(fail_after);
    enum status st = load_into(m, &built, pairs, m->live + twin, expected);
    account_fail_after(0);
    REQUIRE(st == ST_OK || (twin && st == ST_EXISTS) || (fail_after != 0 && st == ST_NOMEM));
    hash_check(&built.v);
    if (st == ST_OK) {
        REQUIRE(!twin);
        verify_all(m, &built.v);
        model_replace(&m->held, &built, &m->rng);
    } else {
        model_discard(&built, &m->rng);
    }
    free(pairs);
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

void hash_model_init(struct hash_model *m, const struct type_env *env, size_t record_max,
                     const struct hash_model_form *form, uint64_t seed) {
    *m = (struct hash_model){.form = form};
    rng_init(&m->rng, seed);
    m->number = calloc(form->fields, sizeof(*m->number));
    REQUIRE(m->number != NULL);
    hold_empty(&m->held, env, record_max);
}

void hash_model_restart(struct hash_model *m) {
    struct type_env env = m->held.env;
    size_t record_max = m->held.len_max;
    held_deinit(&m->held);
    hold_empty(&m->held, &env, record_max);
    memset(m->number, 0, m->form->fields * sizeof(*m->number));
    m->live = 0;
}

void hash_model_deinit(struct hash_model *m) {
    held_deinit(&m->held);
    free(m->number);
}
