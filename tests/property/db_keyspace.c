/* SPDX-License-Identifier: BSD-3-Clause */
/* Random operations on a set of databases against a table of what each key should hold.
 *
 *   property_db_keyspace [seed [operations a round]]
 *
 * Every round takes another size of chunk and other limits of the packed hash; small chunks make
 * chunk borders, the move of the ladder and evacuation frequent. The key spaces are small,
 * so that most operations meet a key that is there. One operation in sixteen runs short of memory: it must
 * either work or leave everything as it was. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "db/db.h"
#include "mem/account.h"
#include "types/hash.h"
#include "types/string.h"

#define DATABASES 3
#define KEYS_MAX 4000
#define FIELDS 24
#define ROUNDS 6
#define OPERATIONS 40000
#define NOW INT64_C(1700000000000)

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* What one key should hold. */
struct item {
    bool live;
    bool is_hash;
    int64_t expire_ms;
    char *text;
    size_t len;
    uint32_t fields[FIELDS]; /* the number its value is made from, 0: absent */
};

static struct rng rng;
static unsigned keys; /* in use this round */
static struct dbset *set;
static struct item *model[DATABASES];
static char *key_text[KEYS_MAX];
static size_t key_len[KEYS_MAX];
static uint64_t failures;

/* ---- bytes made from numbers --------------------------------------------------------------- */

static void fill_pattern(char *p, size_t len, uint64_t seed) {
    uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (size_t i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        p[i] = (char)(x >> 32);
    }
}

static size_t draw_len(void) {
    uint64_t r = rng_below(&rng, 1000);
    if (r < 700) {
        return rng_below(&rng, 60);
    }
    if (r < 900) {
        return rng_below(&rng, 300);
    }
    if (r < 960) {
        return 230 + rng_below(&rng, 30);
    }
    return r < 990 ? 4080 + rng_below(&rng, 40) : rng_below(&rng, 40000);
}

/* The length of a field's value follows from its number, so that the model need not keep it. */
static struct bytes field_value(uint32_t number) {
    static char bytes[70000];
    uint64_t r = number * UINT64_C(0x9E3779B97F4A7C15) >> 33;
    size_t len = r % 100 < 90 ? r % 61 : r % 100 < 97 ? 200 + r % 100 : r % 70000;
    fill_pattern(bytes, len, number);
    return BYTES(bytes, len);
}

static struct bytes field_name(unsigned field) {
    static char name[400];
    size_t len = field % 8 == 0 ? field * 12 : field % 8;
    fill_pattern(name, len, field);
    memcpy(name + len, &field, 2);
    return BYTES(name, len + 2);
}

static struct bytes key_of(unsigned id) {
    return BYTES(key_text[id], key_len[id]);
}

/* The number stands at the end of the key; one is empty. */
#define EMPTY_KEY 1
#define NUMBER_LEN 4

static void make_keys(void) {
    for (unsigned id = 0; id < KEYS_MAX; id++) {
        size_t pad = id % 16 == 0 ? 2000 + id % 100 : id % 60;
        key_text[id] = malloc(pad + NUMBER_LEN + 1);
        REQUIRE(key_text[id] != NULL);
        fill_pattern(key_text[id], pad, id);
        snprintf(key_text[id] + pad, NUMBER_LEN + 1, "%0*u", NUMBER_LEN, id % 10000);
        key_len[id] = id == EMPTY_KEY ? 0 : pad + NUMBER_LEN;
    }
}

static unsigned id_of(struct bytes key) {
    char number[NUMBER_LEN + 1] = {0};
    if (key.len == 0) {
        return EMPTY_KEY;
    }
    memcpy(number, key.ptr + key.len - NUMBER_LEN, NUMBER_LEN);
    unsigned id = (unsigned)strtoul(number, NULL, 10);
    REQUIRE(bytes_equal(key, key_of(id)));
    return id;
}

/* ---- model --------------------------------------------------------------------------------- */

static void item_drop(struct item *m) {
    free(m->text);
    *m = (struct item){0};
}

static void item_copy(struct item *to, const struct item *from) {
    item_drop(to);
    *to = *from;
    if (from->text != NULL) {
        to->text = malloc(from->len + 1);
        REQUIRE(to->text != NULL);
        memcpy(to->text, from->text, from->len);
    }
}

static void item_text(struct item *m, struct bytes text, int64_t expire_ms) {
    item_drop(m);
    *m = (struct item){.live = true, .expire_ms = expire_ms, .text = malloc(text.len + 1)};
    REQUIRE(m->text != NULL);
    m->len = text.len;
    memcpy(m->text, text.ptr, text.len);
}

static bool is_due(const struct item *m) {
    return m->live && m->expire_ms != DB_NO_EXPIRY && m->expire_ms < set->now_ms;
}

/* As db_find: a due key goes when it is met. */
static struct item *meet(size_t db, unsigned id) {
    struct item *m = &model[db][id];
    if (is_due(m)) {
        item_drop(m);
    }
    return m;
}

static uint64_t item_fields(const struct item *m) {
    uint64_t count = 0;
    for (unsigned i = 0; i < FIELDS; i++) {
        count += m->fields[i] != 0;
    }
    return count;
}

static void verify_value(const struct item *m, const struct value *v) {
    REQUIRE((v->type == VALUE_HASH) == m->is_hash);
    if (!m->is_hash) {
        char scratch[STRING_SCRATCH_LEN];
        REQUIRE(bytes_equal(string_text(v, scratch), BYTES(m->text, m->len)));
        return;
    }
    REQUIRE(hash_count(v) == item_fields(m));
    for (unsigned i = 0; i < FIELDS; i++) {
        struct bytes value;
        bool found = hash_get(v, field_name(i), &value);
        REQUIRE(found == (m->fields[i] != 0));
        REQUIRE(!found || bytes_equal(value, field_value(m->fields[i])));
    }
}

static bool find(size_t db, unsigned id, struct entry *e) {
    struct item *m = meet(db, id);
    struct bytes key = key_of(id);
    enum db_touch touch = rng_below(&rng, 2) ? DB_TOUCH : DB_NO_TOUCH;
    bool found = db_find(set->dbs[db], key, hash_bytes(key), touch, e);
    REQUIRE(found == m->live);
    REQUIRE(!found || (e->expire_ms == m->expire_ms && bytes_equal(e->key, key)));
    return found;
}

static void verify(size_t db, unsigned id) {
    struct entry e;
    if (find(db, id, &e)) {
        verify_value(&model[db][id], &e.value);
        REQUIRE(entry_memory(&e) > 0);
    }
}

static void verify_all(void) {
    int64_t next = INT64_MAX;
    for (size_t db = 0; db < DATABASES; db++) {
        uint64_t live = 0;
        for (unsigned id = 0; id < keys; id++) {
            const struct item *m = &model[db][id];
            live += m->live;
            if (m->live && m->expire_ms != DB_NO_EXPIRY && m->expire_ms < next) {
                next = m->expire_ms;
            }
        }
        REQUIRE(db_count(set->dbs[db]) == live);
        db_check(set->dbs[db]);
    }
    REQUIRE(dbset_next_due_ms(set) == next);
    for (size_t db = 0; db < DATABASES; db++) {
        for (unsigned id = 0; id < keys; id++) {
            verify(db, id);
        }
    }
}

/* ---- operations ---------------------------------------------------------------------------- */

static int64_t draw_expiry(void) {
    return rng_below(&rng, 2) ? DB_NO_EXPIRY : set->now_ms + (int64_t)rng_below(&rng, 9000) - 20;
}

static struct bytes draw_text(void) {
    static char text[40100];
    if (rng_below(&rng, 3) == 0) {
        int64_t n = (int64_t)rng_next(&rng) >> rng_below(&rng, 64);
        return BYTES(text, number_format_i64(text, n));
    }
    size_t len = draw_len();
    fill_pattern(text, len, rng_next(&rng));
    return BYTES(text, len);
}

/* True when it worked; false: it must have been for want of memory. */
static bool worked(enum status st) {
    REQUIRE(st == ST_OK || st == ST_NOMEM);
    failures += st != ST_OK;
    return st == ST_OK;
}

static void do_set(size_t db, unsigned id) {
    struct entry e;
    struct value_image image;
    struct bytes text = draw_text(), key = key_of(id);
    int64_t expire_ms = draw_expiry();
    char *block = malloc(text.len + 2), *owned = block;
    REQUIRE(block != NULL);
    memcpy(block, text.ptr, text.len);
    bool found = find(db, id, &e);
    enum status st =
        string_image(BYTES(block, text.len), rng_below(&rng, 2) ? &owned : NULL, &image);
    if (worked(st)) {
        st = found
                 ? entry_replace(&e, VALUE_STRING, &image, expire_ms)
                 : db_add(set->dbs[db], key, hash_bytes(key), VALUE_STRING, &image, expire_ms, &e);
        if (worked(st)) {
            item_text(&model[db][id], text, expire_ms);
        } else {
            value_image_discard(VALUE_STRING, &image);
        }
    }
    free(owned);
}

static void do_write(size_t db, unsigned id) {
    struct entry e;
    struct item *m = meet(db, id);
    if (!find(db, id, &e) || m->is_hash) {
        return;
    }
    struct bytes text = draw_text();
    size_t off = rng_below(&rng, 2) ? m->len : rng_below(&rng, m->len + 200);
    if (m->len > 100000 || !worked(string_write(&e.value, off, text)) || text.len == 0) {
        return;
    }
    size_t len = off + text.len > m->len ? off + text.len : m->len;
    m->text = realloc(m->text, len + 1);
    REQUIRE(m->text != NULL);
    if (off > m->len) {
        memset(m->text + m->len, 0, off - m->len);
    }
    memcpy(m->text + off, text.ptr, text.len);
    m->len = len;
}

static void do_set_i64(size_t db, unsigned id) {
    struct entry e;
    if (find(db, id, &e) && !model[db][id].is_hash) {
        char text[NUMBER_I64_MAX_LEN];
        int64_t n = (int64_t)rng_next(&rng) >> rng_below(&rng, 64);
        if (worked(string_set_i64(&e.value, n))) {
            item_text(&model[db][id], BYTES(text, number_format_i64(text, n)), e.expire_ms);
        }
    }
}

static void do_hset(size_t db, unsigned id) {
    struct entry e;
    struct bytes key = key_of(id);
    struct value_image image = {.encoding = VALUE_PACKED,
                                .data = BYTES(hash_empty, HASH_EMPTY_LEN)};
    bool found = find(db, id, &e), fresh = false;
    struct item *m = &model[db][id];
    if (!found) {
        fresh = true;
        if (!worked(
                db_add(set->dbs[db], key, hash_bytes(key), VALUE_HASH, &image, DB_NO_EXPIRY, &e))) {
            return;
        }
    } else if (!m->is_hash) {
        if (!worked(entry_replace(&e, VALUE_HASH, &image, e.expire_ms))) {
            return;
        }
        int64_t expire_ms = m->expire_ms;
        item_drop(m);
        *m = (struct item){.live = true, .is_hash = true, .expire_ms = expire_ms};
    }
    unsigned field = (unsigned)rng_below(&rng, FIELDS);
    uint32_t number = (uint32_t)rng_next(&rng) | 1;
    bool added;
    if (worked(hash_set(&e.value, field_name(field), field_value(number), &added))) {
        if (fresh) {
            *m = (struct item){.live = true, .is_hash = true, .expire_ms = DB_NO_EXPIRY};
        }
        REQUIRE(added == (m->fields[field] == 0));
        m->fields[field] = number;
    } else if (fresh) {
        entry_delete(&e);
    }
}

static void do_hdel(size_t db, unsigned id) {
    struct entry e;
    if (!find(db, id, &e) || !model[db][id].is_hash) {
        return;
    }
    struct item *m = &model[db][id];
    unsigned field = (unsigned)rng_below(&rng, FIELDS);
    REQUIRE(hash_delete(&e.value, field_name(field)) == (m->fields[field] != 0));
    m->fields[field] = 0;
    if (hash_count(&e.value) == 0) {
        entry_delete(&e);
        item_drop(m);
    }
}

static void do_delete(size_t db, unsigned id) {
    struct entry e;
    if (find(db, id, &e)) {
        entry_delete(&e);
        item_drop(&model[db][id]);
    }
}

static void do_expire(size_t db, unsigned id) {
    struct entry e;
    int64_t expire_ms = draw_expiry();
    if (find(db, id, &e) && worked(entry_set_expiry(&e, expire_ms))) {
        REQUIRE(e.expire_ms == expire_ms);
        verify_value(&model[db][id], &e.value);
        model[db][id].expire_ms = expire_ms;
    }
}

static void do_transfer(size_t db, unsigned id) {
    struct entry e;
    size_t to = rng_below(&rng, DATABASES);
    unsigned new_id = (unsigned)rng_below(&rng, keys);
    bool copy = rng_below(&rng, 2);
    struct bytes key = key_of(new_id);
    if ((to == db && new_id == id) || !find(db, id, &e)) {
        return;
    }
    struct item *target = meet(to, new_id);
    if (worked((copy ? entry_copy : entry_move)(&e, set->dbs[to], key, hash_bytes(key)))) {
        item_copy(target, &model[db][id]);
        if (!copy) {
            item_drop(&model[db][id]);
        }
    } else {
        struct entry there;
        (void)find(to, new_id, &there); /* met, whatever came of it */
    }
    verify(to, new_id);
}

struct seen {
    size_t db;
    uint8_t times[KEYS_MAX];
};

static void mark(void *arg, struct entry *e) {
    struct seen *seen = arg;
    unsigned id = id_of(e->key);
    const struct item *m = &model[seen->db][id];
    REQUIRE(m->live && !is_due(m) && e->expire_ms == m->expire_ms);
    seen->times[id]++;
}

static void do_scan(size_t db) {
    struct seen scanned = {.db = db}, walked = {.db = db};
    uint64_t cursor = 0;
    do {
        cursor = db_scan(set->dbs[db], cursor, 1 + rng_below(&rng, 50), mark, &scanned);
    } while (cursor != 0);
    db_each(set->dbs[db], mark, &walked);
    for (unsigned id = 0; id < keys; id++) {
        bool there = model[db][id].live && !is_due(&model[db][id]);
        REQUIRE(scanned.times[id] == there && walked.times[id] == there);
    }
}

static void do_random(size_t db) {
    struct entry e;
    if (db_random(set->dbs[db], &rng, &e)) {
        const struct item *m = &model[db][id_of(e.key)];
        REQUIRE(m->live && !is_due(m) && e.hash == hash_bytes(e.key));
        verify_value(m, &e.value);
    }
}

/* The earliest go first: what is left is due no earlier than what went. */
static void do_expire_due(size_t db) {
    uint64_t due = 0, max_keys = rng_below(&rng, 30), before = db_count(set->dbs[db]);
    for (unsigned id = 0; id < keys; id++) {
        due += is_due(&model[db][id]);
    }
    bool more = db_expire_due(set->dbs[db], max_keys);
    uint64_t gone = due < max_keys ? due : max_keys;
    REQUIRE(more == (due >= max_keys));
    REQUIRE(before - db_count(set->dbs[db]) == gone);
    for (; gone > 0; gone--) {
        struct item *first = NULL;
        for (unsigned id = 0; id < keys; id++) {
            struct item *m = &model[db][id];
            first = is_due(m) && (first == NULL || m->expire_ms < first->expire_ms) ? m : first;
        }
        if (max_keys >= due) {
            item_drop(first);
            continue;
        }
        /* which of those due at one moment went is the tree's affair: ask without touching */
        int64_t at = first->expire_ms;
        for (unsigned id = 0; id < keys && gone > 0; id++) {
            struct item *m = &model[db][id];
            struct bytes key = key_of(id);
            if (is_due(m) && m->expire_ms == at &&
                swiss_find(&set->dbs[db]->index, hash_bytes(key), key) == SWISS_NONE) {
                item_drop(m);
                break;
            }
            REQUIRE(id + 1 < keys);
        }
    }
}

static void do_rarely(size_t db) {
    switch (rng_below(&rng, 200)) {
    case 0:
        dbset_flush(set, db);
        for (unsigned id = 0; id < keys; id++) {
            item_drop(&model[db][id]);
        }
        break;
    case 1:
    case 2: {
        size_t other = rng_below(&rng, DATABASES);
        struct item *items = model[db];
        model[db] = model[other];
        model[other] = items;
        dbset_swap(set, db, other);
        break;
    }
    case 3:
    case 4:
    case 6:
    case 7:
    case 8:
    case 9:
        do_scan(db);
        break;
    case 5:
        reaper_run(set, SIZE_MAX);
        break;
    default:
        reaper_run(set, rng_below(&rng, 200));
    }
}

static void step(void) {
    size_t db = rng_below(&rng, DATABASES);
    unsigned id = (unsigned)rng_below(&rng, keys);
    static void (*const on_a_key[])(size_t, unsigned) = {
        do_set,  do_set,    do_set,    do_write,  do_write,    do_set_i64, do_hset,   do_hset,
        do_hset, do_hset,   do_hset,   do_hset,   do_hdel,     do_hdel,    do_delete, do_delete,
        verify,  do_expire, do_expire, do_expire, do_transfer, do_transfer};
    uint64_t r = rng_below(&rng, 200);
    if (rng_below(&rng, 16) == 0) {
        account_fail_after(1 + rng_below(&rng, 4));
    }
    if (r < 185) {
        on_a_key[r % ARRAY_LEN(on_a_key)](db, id);
    } else if (r < 190) {
        set->now_ms += (int64_t)rng_below(&rng, 100);
    } else if (r < 193) {
        do_expire_due(db);
    } else if (r < 196) {
        do_random(db);
    } else {
        do_rarely(db);
    }
    if (rng_below(&rng, 10) != 0) {
        db_after_write(set->dbs[db], 1 + rng_below(&rng, 3));
    }
    account_fail_after(0);
    verify(db, id);
}

static void run_round(unsigned round, uint64_t operations) {
    static const size_t chunks[] = {65536, 65536, 65536, 65536, (size_t)2 << 20, (size_t)2 << 20};
    static const size_t entries_max[] = {4, 12, 1000, 4, 12, 1000};
    static const size_t element_max[] = {64, 300, SIZE_MAX, 64, 300, SIZE_MAX};
    struct pages *pages;
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = chunks[round]};
    REQUIRE(pages_create(&options, &pages) == ST_OK);
    struct type_env env = {.pages = pages,
                           .hash_packed_entries_max = entries_max[round],
                           .hash_packed_element_max = element_max[round]};
    REQUIRE(dbset_create(&env, DATABASES, &set) == ST_OK);
    set->now_ms = NOW;
    keys = round % 2 ? KEYS_MAX : 300;
    for (size_t db = 0; db < DATABASES; db++) {
        model[db] = calloc(keys, sizeof(**model));
        REQUIRE(model[db] != NULL);
    }
    failures = 0;
    for (uint64_t i = 0; i < operations; i++) {
        step();
        if (i % 2500 == 0) {
            verify_all();
        }
    }
    verify_all();
    struct db_memory memory;
    db_get_memory(set->dbs[0], &memory);
    printf("round %u: chunk %zu, %" PRIu64 " operations, %" PRIu64 " short of memory, %" PRIu64
           " expired; live %zu reserved %zu\n",
           round, options.chunk_bytes, operations, failures, set->stats.expired,
           memory.arena.live_bytes, memory.arena.reserved_bytes);
    dbset_destroy(set);
    for (size_t db = 0; db < DATABASES; db++) {
        for (unsigned id = 0; id < keys; id++) {
            item_drop(&model[db][id]);
        }
        free(model[db]);
    }
    pages_destroy(pages);
    for (int tag = 0; tag < ACCOUNT_TAGS; tag++) {
        REQUIRE(account_bytes((enum account_tag)tag) == 0);
    }
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : rng_entropy();
    uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 0) : OPERATIONS;
    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    rng_init(&rng, seed);
    hash_setup_seed(seed);
    make_keys();
    for (unsigned round = 0; round < ROUNDS; round++) {
        run_round(round, operations);
        fflush(stdout);
    }
    for (unsigned id = 0; id < KEYS_MAX; id++) {
        free(key_text[id]);
    }
    return 0;
}
