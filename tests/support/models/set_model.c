/* SPDX-License-Identifier: BSD-3-Clause */
#include "set_model.h"

#include "base/hash.h"

#define NEXT_BATCH 80  /* members taken at a time, at most */
#define SCAN_WRITES 20 /* between two steps of a scan */

static const size_t odd_lens[] = {0,     239,   240,   241,   4095,  16379, 16380,
                                  16381, 65529, 65531, 65535, 65536, 100000};
#define ODD_LEN_MAX 100000

/* Integers of all widths, told apart by their last five digits. */
static int64_t integer_of(uint32_t number) {
    static const int64_t scales[] = {0, 0, 0, 0, 0, 1, -1, 3000000, -3000000, 92233720368546};
    return scales[number % ARRAY_LEN(scales)] * 100000 + number;
}

static struct bytes member_of(const struct set_model *m, uint32_t number) {
    static char text[ODD_LEN_MAX + 1 + sizeof(number)];
    if (number < m->form->words_from) {
        return BYTES(text, number_format_i64(text, integer_of(number)));
    }
    uint64_t r = number * UINT64_C(0x9E3779B97F4A7C15) >> 20;
    size_t len = r % m->form->word_len;
    if (m->form->odd_every != 0 && r % m->form->odd_every == 0) {
        len = odd_lens[r / m->form->odd_every % ARRAY_LEN(odd_lens)];
    }
    fill_pattern(text, len, number);
    text[len] = 'w'; /* no digit */
    memcpy(text + len + 1, &number, sizeof(number));
    return BYTES(text, len + 1 + sizeof(number));
}

static uint32_t number_of(const struct set_model *m, struct bytes member) {
    uint32_t number;
    int64_t n;
    if (number_parse_i64(member, &n)) {
        n = (n % 100000 + 100000) % 100000;
        number = (uint32_t)n;
    } else {
        REQUIRE(member.len > sizeof(number));
        memcpy(&number, member.ptr + member.len - sizeof(number), sizeof(number));
    }
    REQUIRE(number < m->form->members && bytes_equal(member, member_of(m, number)));
    return number;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct seen {
    const struct set_model *m;
    uint8_t *times; /* by number */
};

static void mark(void *arg, struct bytes member) {
    struct seen *seen = arg;
    uint32_t number = number_of(seen->m, member);
    REQUIRE(seen->m->there[number] && seen->times[number] < 255);
    seen->times[number]++;
}

void set_model_verify_member(struct set_model *m, uint32_t number) {
    struct bytes member = member_of(m, number);
    set_prefetch_index(&m->held.v, hash_bytes(member));
    set_prefetch_record(&m->held.v, hash_bytes(member));
    REQUIRE(set_contains(&m->held.v, member) == m->there[number]);
}

void set_model_verify_random(struct set_model *m) {
    char scratch[SET_SCRATCH_LEN];
    if (m->live > 0) {
        REQUIRE(m->there[number_of(m, set_random(&m->held.v, &m->rng, scratch))]);
    }
}

static void verify_all(struct set_model *m, const struct value *v) {
    struct seen seen = {m, calloc(m->form->members, 1)};
    struct bytes members[NEXT_BATCH];
    char scratch[NEXT_BATCH * SET_SCRATCH_LEN];
    uint64_t position = 0;
    size_t count;
    REQUIRE(seen.times != NULL);
    set_check(v);
    REQUIRE(set_count(v) == m->live);
    while ((count = set_next(v, &position, members, 1 + rng_below(&m->rng, NEXT_BATCH), scratch)) !=
           0) {
        for (size_t i = 0; i < count; i++) {
            mark(&seen, members[i]);
        }
    }
    for (uint32_t i = 0; i < m->form->members; i++) {
        REQUIRE(seen.times[i] == m->there[i]);
    }
    free(seen.times);
}

void set_model_verify_all(struct set_model *m) {
    verify_all(m, &m->held.v);
}

/* ---- writing --------------------------------------------------------------------------------- */

void set_model_add(struct set_model *m, uint32_t number, size_t fail_after) {
    bool added;
    enum value_encoding encoding = m->held.v.encoding;
    struct bytes member = member_of(m, number);
    account_fail_after(fail_after);
    enum status st = set_add(&m->held.v, member, &added);
    account_fail_after(0);
    m->changes_of_form += encoding != m->held.v.encoding;
    if (st != ST_OK) {
        REQUIRE(fail_after != 0 && st == ST_NOMEM && m->held.v.encoding == encoding);
        m->failures++;
        set_model_verify_all(m);
        return;
    }
    REQUIRE(added == !m->there[number]);
    m->live += added;
    m->there[number] = 1;
}

void set_model_remove(struct set_model *m, uint32_t number, size_t fail_after) {
    account_fail_after(fail_after);
    bool was = set_remove(&m->held.v, member_of(m, number));
    account_fail_after(0);
    REQUIRE(was == m->there[number]);
    m->live -= was;
    m->there[number] = 0;
}

static void write_between(struct set_model *m, uint8_t *stays) {
    for (int i = 0; i < SCAN_WRITES; i++) {
        uint32_t number = (uint32_t)rng_below(&m->rng, m->form->members);
        if (rng_below(&m->rng, 2)) {
            set_model_add(m, number, 0);
        } else {
            set_model_remove(m, number, 0);
            stays[number] = 0;
        }
    }
}

/* A small set comes whole at each call, so it is read in one. */
void set_model_scan(struct set_model *m) {
    uint8_t *stays = malloc(m->form->members);
    struct seen seen = {m, calloc(m->form->members, 1)};
    uint64_t cursor = 0;
    REQUIRE(stays != NULL && seen.times != NULL);
    memcpy(stays, m->there, m->form->members);
    do {
        cursor = set_scan(&m->held.v, cursor, 1 + rng_below(&m->rng, 200), mark, &seen);
        if (cursor != 0) {
            write_between(m, stays);
        }
    } while (cursor != 0);
    for (uint32_t i = 0; i < m->form->members; i++) {
        REQUIRE(!stays[i] || seen.times[i] == 1);
        REQUIRE(seen.times[i] <= 2); /* removed and added again: maybe twice */
    }
    free(stays);
    free(seen.times);
}

void set_model_clone(struct set_model *m, size_t fail_after) {
    struct held copy;
    size_t before = model_object_bytes();
    if (model_clone(&m->held, &copy, fail_after)) {
        verify_all(m, &copy.v);
        model_discard(&copy, &m->rng);
        REQUIRE(model_object_bytes() == before);
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

static void hold_empty(struct held *h, const struct type_env *env, size_t record_max,
                       bool integers) {
    struct value_image image;
    set_empty_image(integers, &image);
    held_init(h, VALUE_SET, &image, env);
    h->len_max = record_max;
}

/* Views of all members; those that are integers lie in *scratch. The caller frees both. */
static struct bytes *members_of(const struct set_model *m, char **scratch) {
    struct bytes *members = malloc((m->live + 1) * sizeof(*members));
    uint64_t position = 0, filled = 0;
    size_t count;
    *scratch = malloc((m->live + 1) * SET_SCRATCH_LEN);
    REQUIRE(members != NULL && *scratch != NULL);
    while ((count = set_next(&m->held.v, &position, members + filled, m->live + 1 - filled,
                             *scratch + filled * SET_SCRATCH_LEN)) != 0) {
        filled += count;
    }
    REQUIRE(filled == m->live);
    return members;
}

/* All of members, a few at a time. */
static enum status load_into(struct set_model *m, struct held *h, const struct bytes *members,
                             size_t count, uint64_t expected) {
    enum status st = set_expect(&h->v, expected);
    for (size_t at = 0, n; at < count && st == ST_OK; at += n) {
        n = 1 + rng_below(&m->rng, NEXT_BATCH);
        n = n < count - at ? n : count - at;
        st = set_add_all(&h->v, members + at, n);
    }
    return st;
}

void set_model_load(struct set_model *m, bool integers, uint64_t expected, bool twin,
                    size_t fail_after) {
    struct held built;
    char *scratch;
    struct bytes *members = members_of(m, &scratch);
    twin = twin && m->live != 0;
    if (twin) {
        members[m->live] = members[rng_below(&m->rng, m->live)];
    }
    hold_empty(&built, &m->held.env, m->held.len_max, integers);
    account_fail_after(fail_after);
    enum status st = load_into(m, &built, members, m->live + twin, expected);
    account_fail_after(0);
    REQUIRE(st == ST_OK || (twin && st == ST_EXISTS) || (fail_after != 0 && st == ST_NOMEM));
    set_check(&built.v);
    if (st == ST_OK) {
        REQUIRE(!twin);
        verify_all(m, &built.v);
        model_replace(&m->held, &built, &m->rng);
    } else {
        model_discard(&built, &m->rng);
    }
    free(members);
    free(scratch);
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

void set_model_init(struct set_model *m, const struct type_env *env, size_t record_max,
                    const struct set_model_form *form, bool integers, uint64_t seed) {
    *m = (struct set_model){.form = form};
    rng_init(&m->rng, seed);
    m->there = calloc(form->members, 1);
    REQUIRE(m->there != NULL);
    hold_empty(&m->held, env, record_max, integers);
}

void set_model_restart(struct set_model *m, bool integers) {
    struct type_env env = m->held.env;
    size_t record_max = m->held.len_max;
    held_deinit(&m->held);
    hold_empty(&m->held, &env, record_max, integers);
    memset(m->there, 0, m->form->members);
    m->live = 0;
}

void set_model_deinit(struct set_model *m) {
    held_deinit(&m->held);
    free(m->there);
}
