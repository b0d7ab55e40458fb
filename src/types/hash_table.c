/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/hash.h"
#include "hash_priv.h"
#include "mem/account.h"
#include "types/varlen.h"

#define BOXED_MARK 0xFD
#define BOXED_LEN 10 /* mark, pad, pointer */

/* Live records moved out of a thinning unit by each write: a delete frees one record and moves at
 * most this many, so the share of dead bytes cannot run away however long the deletes go on. */
#define EVACUATE_PER_WRITE 8

/* A record too long for the arena: one allocation that the arena record points at. */
struct box {
    size_t field_len, value_len;
    char bytes[]; /* field, then value */
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

static struct hash_pair record_pair(const char *record) {
    struct hash_pair pair;
    if (UNLIKELY(is_boxed(record))) {
        const struct box *box = box_of(record);
        pair.field = BYTES(box->bytes, box->field_len);
        pair.value = BYTES(box->bytes + box->field_len, box->value_len);
        return pair;
    }
    record += varlen_get(record, &pair.field.len);
    record += varlen_get(record, &pair.value.len);
    pair.field.ptr = record;
    pair.value.ptr = record + pair.field.len;
    return pair;
}

static size_t plain_len(size_t field_len, size_t value_len) {
    return varlen_size(field_len) + varlen_size(value_len) + field_len + value_len;
}

static size_t record_len(const void *record) {
    if (UNLIKELY(is_boxed(record))) {
        return BOXED_LEN;
    }
    struct hash_pair pair = record_pair(record);
    return plain_len(pair.field.len, pair.value.len);
}

static size_t box_size(size_t field_len, size_t value_len) {
    return sizeof(struct box) + field_len + value_len;
}

/* Write a record; the bytes may lie in the record itself (same field, in place). */
static void write_plain(char *record, struct bytes field, struct bytes value) {
    size_t head = varlen_size(field.len) + varlen_size(value.len);
    if (field.len != 0) {
        memmove(record + head, field.ptr, field.len);
    }
    if (value.len != 0) {
        memcpy(record + head + field.len, value.ptr, value.len);
    }
    record += varlen_put(record, field.len);
    varlen_put(record, value.len);
}

/* A new record, boxed when it has to be. */
static enum status record_create(struct hash *h, struct bytes field, struct bytes value,
                                 uint64_t *ref) {
    size_t len = plain_len(field.len, value.len);
    if (len <= arena_record_max(&h->arena)) {
        enum status st = arena_alloc(&h->arena, len, ref);
        if (st == ST_OK) {
            write_plain(arena_at(&h->arena, *ref), field, value);
        }
        return st;
    }
    struct box *box = account_alloc(ACCOUNT_VALUE, box_size(field.len, value.len));
    if (box == NULL) {
        return ST_NOMEM;
    }
    enum status st = arena_alloc(&h->arena, BOXED_LEN, ref);
    if (st != ST_OK) {
        account_free(ACCOUNT_VALUE, box);
        return st;
    }
    box->field_len = field.len;
    box->value_len = value.len;
    if (field.len != 0) { /* an empty view may have no address */
        memcpy(box->bytes, field.ptr, field.len);
    }
    if (value.len != 0) {
        memcpy(box->bytes + field.len, value.ptr, value.len);
    }
    char *record = arena_at(&h->arena, *ref);
    record[0] = (char)BOXED_MARK;
    record[1] = 0;
    memcpy(record + 2, &box, sizeof(box));
    h->boxed_bytes += box_size(field.len, value.len);
    return ST_OK;
}

static void record_destroy(struct hash *h, uint64_t ref) {
    char *record = arena_at(&h->arena, ref);
    size_t len = record_len(record);
    if (UNLIKELY(is_boxed(record))) {
        struct box *box = box_of(record);
        h->boxed_bytes -= box_size(box->field_len, box->value_len);
        account_free(ACCOUNT_VALUE, box);
    }
    arena_free(&h->arena, ref, len);
}

/* ---- what the index and the arena ask ------------------------------------------------------- */

static uint64_t index_hash_of(void *owner, uint64_t ref) {
    struct hash *h = owner;
    return hash_bytes(record_pair(arena_at(&h->arena, ref)).field);
}

static bool index_matches(void *owner, uint64_t ref, struct bytes key) {
    struct hash *h = owner;
    return bytes_equal(record_pair(arena_at(&h->arena, ref)).field, key);
}

static void index_prefetch(void *owner, uint64_t ref) {
    struct hash *h = owner;
    const char *record = arena_at(&h->arena, ref);
    PREFETCH(record);
    PREFETCH(record + 63);
}

static const struct swiss_ops index_ops = {
    .hash_of = index_hash_of, .matches = index_matches, .prefetch = index_prefetch};

static enum status arena_relocate(void *owner, uint64_t ref) {
    struct hash *h = owner;
    const char *record = arena_at(&h->arena, ref);
    size_t len = record_len(record);
    uint64_t hash = index_hash_of(h, ref);
    uint64_t moved;
    enum status st = arena_alloc(&h->arena, len, &moved);
    if (st != ST_OK) {
        return st;
    }
    memcpy(arena_at(&h->arena, moved), arena_at(&h->arena, ref), len);
    st = swiss_replace(&h->index, hash, ref, moved);
    arena_free(&h->arena, st == ST_OK ? ref : moved, len);
    return st;
}

static void arena_prefetch(void *owner, const uint64_t *refs, size_t count) {
    struct hash *h = owner;
    for (size_t i = 0; i < count; i++) {
        swiss_prefetch(&h->index, index_hash_of(h, refs[i]));
    }
}

static const struct arena_ops record_ops = {
    .record_len = record_len, .relocate = arena_relocate, .prefetch = arena_prefetch};

static void compact_a_little(struct hash *h) {
    if (UNLIKELY(arena_wants_evacuation(&h->arena))) {
        arena_evacuate(&h->arena, EVACUATE_PER_WRITE);
    }
}

/* ---- table --------------------------------------------------------------------------------- */

struct hash *table_create(const struct type_env *env) {
    struct hash *h = account_alloc(ACCOUNT_VALUE, sizeof(*h));
    if (h != NULL) {
        swiss_init(&h->index, &index_ops, h);
        arena_init(&h->arena, &record_ops, h, env->pages);
        h->boxed_bytes = 0;
    }
    return h;
}

struct hash_pair table_pair(const struct hash *h, uint64_t ref) {
    return record_pair(arena_at(&h->arena, ref));
}

bool table_get(const struct hash *h, struct bytes field, struct bytes *value) {
    uint64_t ref = swiss_find(&h->index, hash_bytes(field), field);
    if (ref == SWISS_NONE) {
        return false;
    }
    *value = table_pair(h, ref).value;
    return true;
}

static enum status table_add(struct hash *h, uint64_t hash, struct bytes field,
                             struct bytes value) {
    uint64_t ref;
    enum status st = record_create(h, field, value, &ref);
    if (st != ST_OK) {
        return st;
    }
    st = swiss_insert(&h->index, hash, ref);
    if (st != ST_OK) {
        record_destroy(h, ref);
    }
    return st;
}

static enum status table_change(struct hash *h, uint64_t hash, uint64_t ref, struct bytes field,
                                struct bytes value) {
    char *record = arena_at(&h->arena, ref);
    size_t old_len = record_len(record);
    size_t new_len = plain_len(field.len, value.len);
    if (!is_boxed(record) && new_len <= arena_record_max(&h->arena) &&
        arena_round(old_len) == arena_round(new_len)) {
        arena_refit(&h->arena, ref, new_len);
        write_plain(record, record_pair(record).field, value);
        return ST_OK;
    }
    uint64_t moved;
    enum status st = record_create(h, field, value, &moved);
    if (st != ST_OK) {
        return st;
    }
    st = swiss_replace(&h->index, hash, ref, moved);
    record_destroy(h, st == ST_OK ? ref : moved);
    return st;
}

enum status table_set(struct hash *h, struct bytes field, struct bytes value, bool *added) {
    uint64_t hash = hash_bytes(field);
    uint64_t ref = swiss_find(&h->index, hash, field);
    enum status st = ref == SWISS_NONE ? table_add(h, hash, field, value)
                                       : table_change(h, hash, ref, field, value);
    if (st == ST_OK) {
        *added = ref == SWISS_NONE;
        compact_a_little(h);
    }
    return st;
}

bool table_delete(struct hash *h, struct bytes field) {
    uint64_t hash = hash_bytes(field);
    uint64_t ref = swiss_find(&h->index, hash, field);
    if (ref == SWISS_NONE) {
        return false;
    }
    swiss_erase(&h->index, hash, ref);
    record_destroy(h, ref);
    compact_a_little(h);
    return true;
}

/* ---- the whole object ---------------------------------------------------------------------- */

static void free_box(void *arg, uint64_t ref, void *record) {
    (void)arg;
    (void)ref;
    if (is_boxed(record)) {
        account_free(ACCOUNT_VALUE, box_of(record));
    }
}

/* Boxes go first, in one walk: a box is over a quarter of a chunk, so the walk costs little for
 * what it frees. */
bool hash_free_step(struct hash *h, size_t budget) {
    if (h->boxed_bytes != 0) {
        arena_each(&h->arena, free_box, NULL);
        h->boxed_bytes = 0;
    }
    if (!swiss_deinit_step(&h->index, budget) || !arena_deinit_step(&h->arena, 1)) {
        return false;
    }
    account_free(ACCOUNT_VALUE, h);
    return true;
}

enum status hash_clone(const struct hash *h, struct hash **out) {
    struct type_env env = {.pages = h->arena.pages};
    struct hash *copy = table_create(&env);
    if (copy == NULL) {
        return ST_NOMEM;
    }
    uint64_t refs[32], position = 0;
    size_t count;
    while ((count = swiss_next(&h->index, &position, refs, ARRAY_LEN(refs))) != 0) {
        for (size_t i = 0; i < count; i++) {
            struct hash_pair pair = table_pair(h, refs[i]);
            if (table_add(copy, hash_bytes(pair.field), pair.field, pair.value) != ST_OK) {
                while (!hash_free_step(copy, SIZE_MAX)) {
                }
                return ST_NOMEM;
            }
        }
    }
    *out = copy;
    return ST_OK;
}

size_t hash_bytes_held(const struct hash *h) {
    struct arena_stats stats;
    arena_get_stats(&h->arena, &stats);
    return account_good_size(sizeof(*h)) + swiss_bytes(&h->index) + stats.reserved_bytes +
           h->boxed_bytes;
}

void hash_arena_stats(const struct hash *h, struct arena_stats *out) {
    arena_get_stats(&h->arena, out);
}

bool hash_object_is_big(const struct hash *h) {
    return swiss_count(&h->index) > 1024 || h->boxed_bytes != 0;
}

void table_check(const struct hash *h) {
    swiss_check(&h->index);
    arena_check(&h->arena);
}
