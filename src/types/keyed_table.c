/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/hash.h"
#include "keyed_priv.h"
#include "mem/account.h"
#include "types/varlen.h"

#define BOXED_MARK 0xFD
#define BOXED_LEN 10 /* mark, pad, pointer */

/* Live records moved out of a thinning unit by each write: a delete frees one record and moves at
 * most this many, so the share of dead bytes cannot run away however long the deletes go on. */
#define EVACUATE_PER_WRITE 8

/* A record too long for the arena: one allocation that the arena record points at. */
struct box {
    size_t key_len, value_len;
    char bytes[]; /* key, then value */
};

static_assert(BOXED_MARK < ARENA_DEAD_MARK, "a boxed record is alive");

/* ---- records ------------------------------------------------------------------------------- */

static bool is_boxed(const char *record) {
    return (unsigned char)record[0] == BOXED_MARK;
}

static struct box *box_of(const char *record) {
    struct box *box;
    memcpy(&box, record + 2, sizeof(box));
    return box;
}

static ALWAYS_INLINE struct keyed record_read(const char *record, bool has_value) {
    struct keyed entry;
    if (UNLIKELY(is_boxed(record))) {
        const struct box *box = box_of(record);
        entry.key = BYTES(box->bytes, box->key_len);
        entry.value = BYTES(box->bytes + box->key_len, box->value_len);
        return entry;
    }
    record += varlen_get(record, &entry.key.len);
    entry.value.len = 0;
    if (has_value) {
        record += varlen_get(record, &entry.value.len);
    }
    entry.key.ptr = record;
    entry.value.ptr = record + entry.key.len;
    return entry;
}

static ALWAYS_INLINE size_t plain_len(const struct keyed *entry, bool has_value) {
    size_t lens = varlen_size(entry->key.len) + (has_value ? varlen_size(entry->value.len) : 0);
    return lens + entry->key.len + entry->value.len;
}

static ALWAYS_INLINE size_t record_len(const char *record, bool has_value) {
    if (UNLIKELY(is_boxed(record))) {
        return BOXED_LEN;
    }
    struct keyed entry = record_read(record, has_value);
    return plain_len(&entry, has_value);
}

static size_t box_size(size_t key_len, size_t value_len) {
    return sizeof(struct box) + key_len + value_len;
}

/* Write a record; the key may lie in the record itself (same key, in place). */
static void write_plain(char *record, const struct keyed *entry, bool has_value) {
    size_t head = plain_len(entry, has_value) - entry->key.len - entry->value.len;
    if (entry->key.len != 0) {
        memmove(record + head, entry->key.ptr, entry->key.len);
    }
    if (entry->value.len != 0) {
        memcpy(record + head + entry->key.len, entry->value.ptr, entry->value.len);
    }
    record += varlen_put(record, entry->key.len);
    if (has_value) {
        varlen_put(record, entry->value.len);
    }
}

static struct box *box_create(const struct keyed *entry) {
    struct box *box = account_alloc(ACCOUNT_VALUE, box_size(entry->key.len, entry->value.len));
    if (box == NULL) {
        return NULL;
    }
    box->key_len = entry->key.len;
    box->value_len = entry->value.len;
    if (entry->key.len != 0) { /* an empty view may have no address */
        memcpy(box->bytes, entry->key.ptr, entry->key.len);
    }
    if (entry->value.len != 0) {
        memcpy(box->bytes + entry->key.len, entry->value.ptr, entry->value.len);
    }
    return box;
}

/* A new record, boxed when it has to be. */
static enum status record_create(struct ktable *t, const struct keyed *entry, uint64_t *ref) {
    size_t len = plain_len(entry, t->has_values);
    if (len <= arena_record_max(&t->arena)) {
        enum status st = arena_alloc(&t->arena, len, ref);
        if (st == ST_OK) {
            write_plain(arena_at(&t->arena, *ref), entry, t->has_values);
        }
        return st;
    }
    struct box *box = box_create(entry);
    if (box == NULL) {
        return ST_NOMEM;
    }
    enum status st = arena_alloc(&t->arena, BOXED_LEN, ref);
    if (st != ST_OK) {
        account_free(ACCOUNT_VALUE, box);
        return st;
    }
    char *record = arena_at(&t->arena, *ref);
    record[0] = (char)BOXED_MARK;
    record[1] = 0;
    memcpy(record + 2, &box, sizeof(box));
    t->boxed_bytes += box_size(box->key_len, box->value_len);
    return ST_OK;
}

static void record_destroy(struct ktable *t, uint64_t ref) {
    char *record = arena_at(&t->arena, ref);
    size_t len = record_len(record, t->has_values);
    if (UNLIKELY(is_boxed(record))) {
        struct box *box = box_of(record);
        t->boxed_bytes -= box_size(box->key_len, box->value_len);
        account_free(ACCOUNT_VALUE, box);
    }
    arena_free(&t->arena, ref, len);
}

/* ---- what the index and the arena ask ------------------------------------------------------- */

static struct bytes key_at(const struct ktable *t, uint64_t ref) {
    return record_read(arena_at(&t->arena, ref), t->has_values).key;
}

static uint64_t index_hash_of(void *owner, uint64_t ref) {
    return hash_bytes(key_at(owner, ref));
}

static bool index_matches(void *owner, uint64_t ref, struct bytes key) {
    return bytes_equal(key_at(owner, ref), key);
}

static void index_prefetch(void *owner, uint64_t ref) {
    const struct ktable *t = owner;
    const char *record = arena_at(&t->arena, ref);
    PREFETCH(record);
    PREFETCH(record + 63);
}

static const struct swiss_ops index_ops = {
    .hash_of = index_hash_of, .matches = index_matches, .prefetch = index_prefetch};

static enum status arena_relocate(void *owner, uint64_t ref) {
    struct ktable *t = owner;
    const char *record = arena_at(&t->arena, ref);
    size_t len = record_len(record, t->has_values);
    uint64_t hash = index_hash_of(t, ref);
    uint64_t moved;
    enum status st = arena_alloc(&t->arena, len, &moved);
    if (st != ST_OK) {
        return st;
    }
    memcpy(arena_at(&t->arena, moved), arena_at(&t->arena, ref), len);
    st = swiss_replace(&t->index, hash, ref, moved);
    arena_free(&t->arena, st == ST_OK ? ref : moved, len);
    return st;
}

static void arena_prefetch(void *owner, const uint64_t *refs, size_t count) {
    struct ktable *t = owner;
    for (size_t i = 0; i < count; i++) {
        swiss_prefetch(&t->index, index_hash_of(t, refs[i]));
    }
}

static size_t pair_len(const void *record) {
    return record_len(record, true);
}

static size_t member_len(const void *record) {
    return record_len(record, false);
}

static const struct arena_ops pair_ops = {
    .record_len = pair_len, .relocate = arena_relocate, .prefetch = arena_prefetch};

static const struct arena_ops member_ops = {
    .record_len = member_len, .relocate = arena_relocate, .prefetch = arena_prefetch};

static void compact_a_little(struct ktable *t) {
    if (UNLIKELY(arena_wants_evacuation(&t->arena))) {
        arena_evacuate(&t->arena, EVACUATE_PER_WRITE);
    }
}

/* ---- table --------------------------------------------------------------------------------- */

struct ktable *ktable_create(struct pages *pages, bool has_values) {
    struct ktable *t = account_alloc(ACCOUNT_VALUE, sizeof(*t));
    if (t != NULL) {
        swiss_init(&t->index, &index_ops, t);
        arena_init(&t->arena, has_values ? &pair_ops : &member_ops, t, pages);
        t->boxed_bytes = 0;
        t->free_position = 0;
        t->has_values = has_values;
    }
    return t;
}

struct keyed ktable_read(const struct ktable *t, uint64_t ref) {
    return record_read(arena_at(&t->arena, ref), t->has_values);
}

uint64_t ktable_find(const struct ktable *t, struct bytes key) {
    return swiss_find(&t->index, hash_bytes(key), key);
}

static enum status add(struct ktable *t, uint64_t hash, const struct keyed *entry) {
    uint64_t ref;
    enum status st = record_create(t, entry, &ref);
    if (st != ST_OK) {
        return st;
    }
    st = swiss_insert(&t->index, hash, ref);
    if (st != ST_OK) {
        record_destroy(t, ref);
    }
    return st;
}

static enum status change(struct ktable *t, uint64_t hash, uint64_t ref,
                          const struct keyed *entry) {
    char *record = arena_at(&t->arena, ref);
    size_t old_len = record_len(record, true), new_len = plain_len(entry, true);
    if (!is_boxed(record) && new_len <= arena_record_max(&t->arena) &&
        arena_round(old_len) == arena_round(new_len)) {
        struct keyed in_place = {record_read(record, true).key, entry->value};
        arena_refit(&t->arena, ref, new_len);
        write_plain(record, &in_place, true);
        return ST_OK;
    }
    uint64_t moved;
    enum status st = record_create(t, entry, &moved);
    if (st != ST_OK) {
        return st;
    }
    st = swiss_replace(&t->index, hash, ref, moved);
    record_destroy(t, st == ST_OK ? ref : moved);
    return st;
}

enum status ktable_set(struct ktable *t, const struct keyed *entry, bool *added) {
    uint64_t hash = hash_bytes(entry->key);
    uint64_t ref = swiss_find(&t->index, hash, entry->key);
    enum status st = ST_OK;
    if (ref == SWISS_NONE) {
        st = add(t, hash, entry);
    } else if (t->has_values) {
        st = change(t, hash, ref, entry);
    }
    if (st == ST_OK) {
        *added = ref == SWISS_NONE;
        compact_a_little(t);
    }
    return st;
}

static enum status add_group(struct ktable *t, const struct keyed *entries, size_t count) {
    uint64_t hashes[KTABLE_BATCH];
    for (size_t i = 0; i < count; i++) {
        hashes[i] = hash_bytes(entries[i].key);
        swiss_prefetch(&t->index, hashes[i]);
    }
    for (size_t i = 0; i < count; i++) { /* one in ten meets another's tag, whose record is read */
        ktable_prefetch_record(t, hashes[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (swiss_find(&t->index, hashes[i], entries[i].key) != SWISS_NONE) {
            return ST_EXISTS;
        }
        enum status st = add(t, hashes[i], &entries[i]);
        if (st != ST_OK) {
            return st;
        }
    }
    return ST_OK;
}

enum status ktable_add_all(struct ktable *t, const struct keyed *entries, size_t count) {
    enum status st = ST_OK;
    for (size_t i = 0; i < count && st == ST_OK; i += KTABLE_BATCH) {
        st = add_group(t, entries + i, count - i < KTABLE_BATCH ? count - i : KTABLE_BATCH);
    }
    return st;
}

bool ktable_delete(struct ktable *t, struct bytes key) {
    uint64_t hash = hash_bytes(key);
    uint64_t ref = swiss_find(&t->index, hash, key);
    if (ref == SWISS_NONE) {
        return false;
    }
    swiss_erase(&t->index, hash, ref);
    record_destroy(t, ref);
    compact_a_little(t);
    return true;
}

size_t ktable_next(const struct ktable *t, uint64_t *position, struct keyed *entries, size_t cap) {
    uint64_t refs[KTABLE_BATCH];
    cap = cap < ARRAY_LEN(refs) ? cap : ARRAY_LEN(refs);
    size_t count = swiss_next(&t->index, position, refs, cap);
    for (size_t i = 0; i < count; i++) {
        index_prefetch(t->index.owner, refs[i]);
    }
    for (size_t i = 0; i < count; i++) {
        entries[i] = ktable_read(t, refs[i]);
    }
    return count;
}

void ktable_prefetch_index(const struct ktable *t, uint64_t hash) {
    swiss_prefetch(&t->index, hash);
}

void ktable_prefetch_record(const struct ktable *t, uint64_t hash) {
    uint64_t ref = swiss_likely(&t->index, hash);
    if (ref != SWISS_NONE) {
        index_prefetch(t->index.owner, ref);
    }
}

/* ---- in place of a packed run -------------------------------------------------------------- */

static void destroy(struct ktable *t) {
    while (t != NULL && !ktable_free_step(t, SIZE_MAX)) {
    }
}

enum status ktable_from_packed(const struct value *v, enum kpacked_form form, struct ktable **out) {
    struct ktable *t = ktable_create(v->host->env->pages, form == KPACKED_PAIRS);
    enum status st = t != NULL ? ST_OK : ST_NOMEM;
    struct keyed entries[KTABLE_BATCH];
    uint64_t position = 0;
    size_t count;
    while (st == ST_OK &&
           (count = kpacked_next(v->data, form, &position, entries, KTABLE_BATCH)) != 0) {
        for (size_t i = 0; i < count && st == ST_OK; i++) {
            st = add(t, hash_bytes(entries[i].key), &entries[i]);
        }
    }
    if (st != ST_OK) {
        destroy(t);
        t = NULL;
    }
    *out = t;
    return st;
}

enum status ktable_install(struct value *v, struct ktable *t, enum status st) {
    if (st == ST_OK) {
        st = value_resize(v, VALUE_HEAP, sizeof(t));
    }
    if (st != ST_OK) {
        destroy(t);
        return st;
    }
    memcpy(v->data, &t, sizeof(t));
    return ST_OK;
}

enum status ktable_expect(struct value *v, enum kpacked_form form, uint64_t count) {
    struct ktable *t = ktable_create(v->host->env->pages, form == KPACKED_PAIRS);
    if (t != NULL) {
        swiss_expect(&t->index, count);
    }
    return ktable_install(v, t, t != NULL ? ST_OK : ST_NOMEM);
}

/* ---- the whole object ---------------------------------------------------------------------- */

/* Of a record that is not read again but by this. */
static void free_box(void *arg, uint64_t ref, void *record) {
    static struct box *const none = NULL;
    struct ktable *t = arg;
    struct box *box = is_boxed(record) ? box_of(record) : NULL;
    (void)ref;
    if (box != NULL) {
        t->boxed_bytes -= box_size(box->key_len, box->value_len);
        account_free(ACCOUNT_VALUE, box);
        memcpy((char *)record + 2, &none, sizeof(none));
    }
}

/* Boxes go first, found by a walk over some records a step; true when none is left. Those that the
 * walk does not find are of a table whose building failed before they were in its index. */
static bool free_boxes_step(struct ktable *t, size_t budget) {
    uint64_t refs[KTABLE_BATCH];
    if (t->boxed_bytes == 0) {
        return true;
    }
    size_t cap = budget < KTABLE_BATCH ? budget : KTABLE_BATCH;
    size_t count = swiss_next(&t->index, &t->free_position, refs, cap);
    for (size_t i = 0; i < count; i++) {
        free_box(t, refs[i], arena_at(&t->arena, refs[i]));
    }
    if (count == 0) {
        arena_each(&t->arena, free_box, t);
    }
    return false;
}

bool ktable_free_step(struct ktable *t, size_t budget) {
    if (!free_boxes_step(t, budget)) {
        return false;
    }
    if (!swiss_deinit_step(&t->index, budget) || !arena_deinit_step(&t->arena, 1)) {
        return false;
    }
    account_free(ACCOUNT_VALUE, t);
    return true;
}

enum status ktable_clone(const struct ktable *t, struct ktable **out) {
    struct ktable *copy = ktable_create(t->arena.pages, t->has_values);
    enum status st = copy != NULL ? ST_OK : ST_NOMEM;
    struct keyed entries[KTABLE_BATCH];
    uint64_t position = 0;
    size_t count;
    while (st == ST_OK && (count = ktable_next(t, &position, entries, KTABLE_BATCH)) != 0) {
        for (size_t i = 0; i < count && st == ST_OK; i++) {
            st = add(copy, hash_bytes(entries[i].key), &entries[i]);
        }
    }
    if (st != ST_OK) {
        destroy(copy);
        return st;
    }
    *out = copy;
    return ST_OK;
}

size_t ktable_bytes_held(const struct ktable *t) {
    struct arena_stats stats;
    arena_get_stats(&t->arena, &stats);
    return account_good_size(sizeof(*t)) + swiss_bytes(&t->index) + stats.reserved_bytes +
           t->boxed_bytes;
}

bool ktable_is_big(const struct ktable *t) {
    return swiss_count(&t->index) > 1024 || t->boxed_bytes != 0;
}

struct recount {
    uint64_t records;
    size_t boxed_bytes;
};

static void recount(void *arg, uint64_t ref, void *record) {
    struct recount *sum = arg;
    (void)ref;
    sum->records++;
    if (is_boxed(record)) {
        sum->boxed_bytes += box_size(box_of(record)->key_len, box_of(record)->value_len);
    }
}

void ktable_check(const struct ktable *t) {
    struct recount sum = {0, 0};
    swiss_check(&t->index);
    arena_check(&t->arena);
    arena_each(&t->arena, recount, &sum);
    if (sum.records != swiss_count(&t->index) || sum.boxed_bytes != t->boxed_bytes) {
        abort();
    }
}
