/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding, adding, changing and removing keys. */
#include "base/hash.h"
#include "mem/account.h"
#include "mem/calm.h"
#include "record_priv.h"

static uint32_t access_now(const struct db *db) {
    return (uint32_t)(db->set->now_ms / 1000) & RECORD_ACCESS_MASK;
}

static bool holds_heap(uint8_t head) {
    return (head & RECORD_KEY_BOXED) || record_encoding(head) == VALUE_HEAP;
}

/* ---- what the index and the arena ask ------------------------------------------------------- */

static uint64_t index_hash_of(void *owner, uint64_t ref) {
    struct record r;
    record_read(record_at(owner, ref), &r);
    return hash_bytes(r.key);
}

static bool index_matches(void *owner, uint64_t ref, struct bytes key) {
    struct record r;
    record_read(record_at(owner, ref), &r);
    return bytes_equal(r.key, key);
}

static void index_prefetch(void *owner, uint64_t ref) {
    const char *record = record_at(owner, ref);
    PREFETCH(record);
    PREFETCH(record + 63);
}

static const struct swiss_ops index_ops = {
    .hash_of = index_hash_of, .matches = index_matches, .prefetch = index_prefetch};

static size_t arena_record_len(const void *record) {
    struct record r;
    record_read((char *)(uintptr_t)record, &r);
    return r.len;
}

static enum status arena_relocate(void *owner, uint64_t ref) {
    struct db *db = owner;
    struct record r;
    record_read(record_at(db, ref), &r);
    int64_t expire_ms = record_expiry(&r);
    uint64_t hash = hash_bytes(r.key);
    uint64_t moved;
    enum status st = arena_alloc(&db->arena, r.len, &moved);
    if (st != ST_OK) {
        return st;
    }
    memcpy(record_at(db, moved), record_at(db, ref), r.len);
    if (expire_ms != DB_NO_EXPIRY) {
        st = order_insert(&db->expiries, order_key_from_i64(expire_ms), moved, NULL);
    }
    if (st == ST_OK) {
        st = swiss_replace(&db->index, hash, ref, moved);
        if (expire_ms != DB_NO_EXPIRY) {
            order_erase(&db->expiries, order_key_from_i64(expire_ms), st == ST_OK ? ref : moved,
                        NULL);
        }
    }
    arena_free(&db->arena, st == ST_OK ? ref : moved, r.len);
    return st;
}

static void arena_prefetch(void *owner, const uint64_t *refs, size_t count) {
    struct db *db = owner;
    for (size_t i = 0; i < count; i++) {
        swiss_prefetch(&db->index, index_hash_of(db, refs[i]));
    }
}

const struct arena_ops db_arena_ops = {
    .record_len = arena_record_len, .relocate = arena_relocate, .prefetch = arena_prefetch};

void db_init(struct db *db, struct dbset *set) {
    *db = (struct db){.set = set};
    swiss_init(&db->index, &index_ops, db);
    arena_init(&db->arena, &db_arena_ops, db, set->env.pages);
    order_init(&db->expiries, NULL, NULL);
}

/* ---- finding ------------------------------------------------------------------------------- */

void entry_load(struct db *db, uint64_t hash, uint64_t ref, struct entry *e) {
    struct record r;
    record_read(record_at(db, ref), &r);
    e->value.type = record_type(r.head);
    e->value.encoding = record_encoding(r.head);
    e->value.data = r.value_at;
    e->value.len = r.value_len;
    e->value.host = &db->set->host;
    e->db = db;
    e->hash = hash;
    e->ref = ref;
    e->key = r.key;
    e->expire_ms = record_expiry(&r);
}

bool db_find(struct db *db, struct bytes key, uint64_t hash, enum db_touch touch,
             struct entry *out) {
    struct dbset *set = db->set;
    uint64_t ref = swiss_find(&db->index, hash, key);
    if (ref != SWISS_NONE) {
        entry_load(db, hash, ref, out);
        if (UNLIKELY(out->expire_ms != DB_NO_EXPIRY && out->expire_ms < set->now_ms)) {
            entry_delete(out);
            set->stats.expired++;
            ref = SWISS_NONE;
        } else if (touch == DB_TOUCH && !calm()) {
            record_set_access(record_at(db, ref), access_now(db));
        }
    }
    if (touch == DB_TOUCH) {
        *(ref != SWISS_NONE ? &set->stats.hits : &set->stats.misses) += 1;
    }
    return ref != SWISS_NONE;
}

int64_t entry_idle_seconds(const struct entry *e) {
    uint32_t then = record_access(record_at(e->db, e->ref));
    return (int64_t)((access_now(e->db) - then) & RECORD_ACCESS_MASK);
}

void entry_set_idle_seconds(struct entry *e, uint64_t seconds) {
    uint32_t ago = (uint32_t)(seconds < DB_IDLE_MAX ? seconds : DB_IDLE_MAX);
    record_set_access(record_at(e->db, e->ref), access_now(e->db) - ago);
}

/* ---- adding -------------------------------------------------------------------------------- */

static enum status expiry_insert(struct db *db, int64_t expire_ms, uint64_t ref) {
    if (expire_ms == DB_NO_EXPIRY) {
        return ST_OK;
    }
    return order_insert(&db->expiries, order_key_from_i64(expire_ms), ref, NULL);
}

static void expiry_erase(struct db *db, int64_t expire_ms, uint64_t ref) {
    if (expire_ms != DB_NO_EXPIRY) {
        order_erase(&db->expiries, order_key_from_i64(expire_ms), ref, NULL);
    }
}

/* The key as a record holds it: itself, or the pointer to a copy. *box is that copy, NULL when
 * inline. */
static enum status key_for_record(struct bytes key, struct record_parts *parts, char **box) {
    parts->key = key;
    parts->key_full_len = key.len;
    *box = NULL;
    if (key.len <= DB_KEY_INLINE_MAX) {
        return ST_OK;
    }
    *box = account_alloc(ACCOUNT_VALUE, key.len);
    if (*box == NULL) {
        return ST_NOMEM;
    }
    memcpy(*box, key.ptr, key.len);
    parts->key = BYTES((const char *)box, sizeof(*box));
    parts->key_boxed = true;
    return ST_OK;
}

/* Append a record to the arena and enter it into index and expiry tree. */
static enum status record_link(struct db *db, uint64_t hash, const struct record_parts *parts,
                               struct bytes value, uint64_t *ref) {
    size_t len = record_parts_len(parts);
    enum status st = arena_alloc(&db->arena, len, ref);
    if (st != ST_OK) {
        return st;
    }
    char *value_at = record_write(record_at(db, *ref), parts);
    if (value.len != 0) {
        memcpy(value_at, value.ptr, value.len);
    }
    st = expiry_insert(db, parts->expire_ms, *ref);
    if (st == ST_OK) {
        st = swiss_insert(&db->index, hash, *ref);
        if (st != ST_OK) {
            expiry_erase(db, parts->expire_ms, *ref);
        }
    }
    if (st != ST_OK) {
        arena_free(&db->arena, *ref, len);
    }
    return st;
}

enum status db_add(struct db *db, struct bytes key, uint64_t hash, enum value_type type,
                   const struct value_image *image, int64_t expire_ms, struct entry *out) {
    struct record_parts parts = {.type = type,
                                 .encoding = image->encoding,
                                 .access = access_now(db),
                                 .expire_ms = expire_ms,
                                 .value_len = image->data.len};
    char *box;
    enum status st = key_for_record(key, &parts, &box);
    if (st != ST_OK) {
        return st;
    }
    uint64_t ref;
    st = record_link(db, hash, &parts, image->data, &ref);
    if (st != ST_OK) {
        account_free(ACCOUNT_VALUE, box);
        return st;
    }
    db->key_heap_count += box != NULL || image->encoding == VALUE_HEAP;
    entry_load(db, hash, ref, out);
    return ST_OK;
}

/* ---- changing ------------------------------------------------------------------------------ */

/* What changes about a record; its key stays. */
struct change {
    enum value_type type;
    enum value_encoding encoding;
    int64_t expire_ms;
    size_t value_len;
    const char *value; /* NULL: keep the old bytes, as many as fit */
};

static void parts_of_change(const struct record *r, const char *at, const struct change *c,
                            struct record_parts *parts) {
    *parts = (struct record_parts){.type = c->type,
                                   .encoding = c->encoding,
                                   .access = record_access(at),
                                   .expire_ms = c->expire_ms,
                                   .key = BYTES(r->key_at, r->key_len_in_record),
                                   .key_full_len = r->key.len,
                                   .key_boxed = (r->head & RECORD_KEY_BOXED) != 0,
                                   .value_len = c->value_len};
}

/* Same place, same offsets of key and value: only head, value length, expiry time and value bytes
 * differ. */
static bool fits_in_place(const struct record *r, const struct change *c, size_t new_len) {
    return (r->expiry_at != NULL) == (c->expire_ms != DB_NO_EXPIRY) &&
           varlen_size(r->value_len) == varlen_size(c->value_len) &&
           arena_round(r->len) == arena_round(new_len);
}

static enum status change_in_place(struct entry *e, struct record *r, const struct change *c,
                                   const struct record_parts *parts, size_t new_len) {
    if (c->expire_ms != e->expire_ms) {
        enum status st = expiry_insert(e->db, c->expire_ms, e->ref);
        if (st != ST_OK) {
            return st;
        }
        expiry_erase(e->db, e->expire_ms, e->ref);
    }
    arena_refit(&e->db->arena, e->ref, new_len);
    char *at = record_at(e->db, e->ref);
    /* key bytes are copied onto themselves: the parts point into this very record */
    at[0] = (char)((unsigned)parts->type | (unsigned)parts->encoding << RECORD_ENCODING_SHIFT |
                   (r->head & (RECORD_EXPIRES | RECORD_KEY_BOXED)));
    varlen_put(at + RECORD_HEAD_LEN + varlen_size(r->key.len), c->value_len);
    if (r->expiry_at != NULL) {
        memcpy(r->expiry_at, &c->expire_ms, sizeof(c->expire_ms));
    }
    if (c->value != NULL) {
        memmove(r->value_at, c->value, c->value_len);
    }
    return ST_OK;
}

static enum status change_by_moving(struct entry *e, struct record *r, const struct change *c,
                                    const struct record_parts *parts, size_t new_len) {
    struct db *db = e->db;
    uint64_t moved;
    enum status st = arena_alloc(&db->arena, new_len, &moved);
    if (st != ST_OK) {
        return st;
    }
    char *value_at = record_write(record_at(db, moved), parts);
    size_t kept_len = c->value || c->value_len < r->value_len ? c->value_len : r->value_len;
    memcpy(value_at, c->value ? c->value : r->value_at, kept_len);
    st = expiry_insert(db, c->expire_ms, moved);
    if (st == ST_OK) {
        st = swiss_replace(&db->index, e->hash, e->ref, moved);
        if (st != ST_OK) {
            expiry_erase(db, c->expire_ms, moved);
        }
    }
    if (st != ST_OK) {
        arena_free(&db->arena, moved, new_len);
        return st;
    }
    expiry_erase(db, e->expire_ms, e->ref);
    arena_free(&db->arena, e->ref, r->len);
    e->ref = moved;
    return ST_OK;
}

static enum status entry_change(struct entry *e, const struct change *c) {
    struct db *db = e->db;
    char *at = record_at(db, e->ref);
    struct record r;
    struct record_parts parts;
    record_read(at, &r);
    parts_of_change(&r, at, c, &parts);
    size_t new_len = record_parts_len(&parts);
    if (new_len > arena_record_max(&db->arena)) {
        return ST_RANGE;
    }
    enum status st = fits_in_place(&r, c, new_len) ? change_in_place(e, &r, c, &parts, new_len)
                                                   : change_by_moving(e, &r, c, &parts, new_len);
    if (st == ST_OK) {
        bool boxed = (r.head & RECORD_KEY_BOXED) != 0;
        db->key_heap_count += (uint64_t)(boxed || c->encoding == VALUE_HEAP) - holds_heap(r.head);
        entry_load(db, e->hash, e->ref, e);
    }
    return st;
}

/* struct value_host.resize, set up in dbset_create. */
enum status entry_resize_value(struct value *v, enum value_encoding encoding, size_t len) {
    struct entry *e = CONTAINER_OF(v, struct entry, value);
    if (len + RECORD_BESIDE_VALUE_MAX > arena_record_max(&e->db->arena)) {
        return ST_RANGE;
    }
    struct change c = {.type = v->type,
                       .encoding = encoding,
                       .expire_ms = e->expire_ms,
                       .value_len = len,
                       .value = NULL};
    return entry_change(e, &c);
}

enum status entry_replace(struct entry *e, enum value_type type, const struct value_image *image,
                          int64_t expire_ms) {
    struct value old = e->value;
    char object[VALUE_SMALL_MAX];
    if (old.encoding == VALUE_HEAP) {
        memcpy(object, old.data, old.len);
        old.data = object;
    }
    struct change c = {.type = type,
                       .encoding = image->encoding,
                       .expire_ms = expire_ms,
                       .value_len = image->data.len,
                       .value = image->data.ptr ? image->data.ptr : ""};
    enum status st = entry_change(e, &c);
    if (st == ST_OK && old.encoding == VALUE_HEAP) {
        reaper_take_value(e->db->set, &old);
    }
    return st;
}

enum status entry_set_expiry(struct entry *e, int64_t expire_ms) {
    struct change c = {.type = e->value.type,
                       .encoding = e->value.encoding,
                       .expire_ms = expire_ms,
                       .value_len = e->value.len,
                       .value = NULL};
    return expire_ms == e->expire_ms ? ST_OK : entry_change(e, &c);
}

/* ---- removing and moving ------------------------------------------------------------------- */

void entry_unlink(struct entry *e) {
    struct db *db = e->db;
    struct record r;
    record_read(record_at(db, e->ref), &r);
    db->key_heap_count -= holds_heap(r.head);
    swiss_erase(&db->index, e->hash, e->ref);
    expiry_erase(db, e->expire_ms, e->ref);
    if (UNLIKELY(r.head & RECORD_KEY_BOXED)) {
        account_free(ACCOUNT_VALUE, (char *)(uintptr_t)r.key.ptr);
    }
    arena_free(&db->arena, e->ref, r.len);
}

void entry_delete(struct entry *e) {
    struct value old = e->value;
    char object[VALUE_SMALL_MAX];
    if (old.encoding == VALUE_HEAP) {
        memcpy(object, old.data, old.len);
        old.data = object;
    }
    entry_unlink(e);
    if (old.encoding == VALUE_HEAP) {
        reaper_take_value(e->db->set, &old);
    }
}

/* Store an image under a key that may be there already. */
static enum status put(struct db *to, struct bytes key, uint64_t hash, enum value_type type,
                       const struct value_image *image, int64_t expire_ms) {
    struct entry target;
    if (db_find(to, key, hash, DB_NO_TOUCH, &target)) {
        return entry_replace(&target, type, image, expire_ms);
    }
    return db_add(to, key, hash, type, image, expire_ms, &target);
}

/* The caller looks after e's own database only. */
static void after_put(const struct entry *e, struct db *to) {
    if (to != e->db) {
        db_after_write(to, 1);
    }
}

enum status entry_move(struct entry *e, struct db *to, struct bytes key, uint64_t hash) {
    struct value_image image;
    value_image_of(&e->value, &image);
    enum status st = put(to, key, hash, e->value.type, &image, e->expire_ms);
    if (st == ST_OK) {
        entry_unlink(e);
        after_put(e, to);
    }
    return st;
}

enum status entry_copy(struct entry *e, struct db *to, struct bytes key, uint64_t hash) {
    struct value_image image;
    enum status st = value_clone(&e->value, &image);
    if (st != ST_OK) {
        return st;
    }
    st = put(to, key, hash, e->value.type, &image, e->expire_ms);
    if (st != ST_OK) {
        value_image_discard(e->value.type, &image);
        return st;
    }
    after_put(e, to);
    return ST_OK;
}

size_t entry_memory(const struct entry *e) {
    struct record r;
    record_read(record_at(e->db, e->ref), &r);
    size_t bytes = arena_round(r.len) + value_heap_bytes(&e->value);
    bytes += swiss_bytes(&e->db->index) / swiss_count(&e->db->index);
    if (r.head & RECORD_KEY_BOXED) {
        bytes += r.key.len;
    }
    if (r.expiry_at != NULL) {
        bytes += order_bytes(&e->db->expiries) / order_count(&e->db->expiries);
    }
    return bytes;
}
