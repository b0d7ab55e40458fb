/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a key record, drawn in db/db.h. */
#ifndef DB_RECORD_PRIV_H
#define DB_RECORD_PRIV_H

#include "db/db.h"
#include "types/varlen.h"

#define RECORD_TYPE_MASK 0x07
#define RECORD_ENCODING_SHIFT 3
#define RECORD_ENCODING_MASK 0x18
#define RECORD_EXPIRES 0x20
#define RECORD_KEY_BOXED 0x40
#define RECORD_HEAD_LEN 4
#define RECORD_ACCESS_MASK 0xFFFFFFu
static_assert(DB_IDLE_MAX == RECORD_ACCESS_MASK, "as far back as the access time goes");

/* The most a record holds beside its value. A value grows in a record only as far as this leaves
 * room, so that any name and an expiry can be given to it later. */
#define RECORD_BESIDE_VALUE_MAX                                                                    \
    (RECORD_HEAD_LEN + 2 * VARLEN_MAX + sizeof(int64_t) + DB_KEY_INLINE_MAX)

static_assert(VALUE_TYPES <= RECORD_TYPE_MASK + 1, "type bits");
static_assert(VALUE_HEAP <= RECORD_ENCODING_MASK >> RECORD_ENCODING_SHIFT, "encoding bits");

/* A record taken apart. */
struct record {
    uint8_t head;
    struct bytes key; /* the key's bytes, in the box when boxed */
    char *key_at;     /* in the record: key bytes or pointer */
    size_t key_len_in_record;
    char *expiry_at; /* NULL when it has none */
    char *value_at;
    size_t value_len;
    size_t len; /* of the whole record */
};

/* What a new record is made of. */
struct record_parts {
    enum value_type type;
    enum value_encoding encoding;
    uint32_t access;
    int64_t expire_ms;
    struct bytes key; /* written as it is: the pointer's bytes when boxed */
    size_t key_full_len;
    bool key_boxed;
    size_t value_len;
};

static inline void record_read(char *at, struct record *r) {
    r->head = (uint8_t)at[0];
    char *p = at + RECORD_HEAD_LEN;
    size_t key_len;
    p += varlen_get(p, &key_len);
    p += varlen_get(p, &r->value_len);
    r->expiry_at = NULL;
    if (r->head & RECORD_EXPIRES) {
        r->expiry_at = p;
        p += sizeof(int64_t);
    }
    r->key_at = p;
    if (UNLIKELY(r->head & RECORD_KEY_BOXED)) {
        const char *box;
        memcpy(&box, p, sizeof(box));
        r->key = BYTES(box, key_len);
        r->key_len_in_record = sizeof(box);
    } else {
        r->key = BYTES(p, key_len);
        r->key_len_in_record = key_len;
    }
    r->value_at = p + r->key_len_in_record;
    r->len = (size_t)(r->value_at - at) + r->value_len;
}

static inline enum value_type record_type(uint8_t head) {
    return (enum value_type)(head & RECORD_TYPE_MASK);
}

static inline enum value_encoding record_encoding(uint8_t head) {
    return (enum value_encoding)((head & RECORD_ENCODING_MASK) >> RECORD_ENCODING_SHIFT);
}

static inline uint32_t record_access(const char *at) {
    return (uint32_t)(uint8_t)at[1] | (uint32_t)(uint8_t)at[2] << 8 |
           (uint32_t)(uint8_t)at[3] << 16;
}

static inline void record_set_access(char *at, uint32_t access) {
    at[1] = (char)access;
    at[2] = (char)(access >> 8);
    at[3] = (char)(access >> 16);
}

static inline int64_t record_expiry(const struct record *r) {
    int64_t ms = DB_NO_EXPIRY;
    if (r->expiry_at != NULL) {
        memcpy(&ms, r->expiry_at, sizeof(ms));
    }
    return ms;
}

size_t record_parts_len(const struct record_parts *parts);

/* Write everything but the value; returns where the value goes. */
char *record_write(char *at, const struct record_parts *parts);

/* ---- shared inside the layer --------------------------------------------------------------- */

/* Fill an entry from the record at ref. */
void entry_load(struct db *db, uint64_t hash, uint64_t ref, struct entry *e);

/* Take the key out of index, expiry tree and arena. Its value is the caller's afterwards. */
void entry_unlink(struct entry *e);

void db_init(struct db *db, struct dbset *set);
extern const struct arena_ops db_arena_ops;

static inline char *record_at(const struct db *db, uint64_t ref) {
    return arena_at(&db->arena, ref);
}

/* Free a value's object: now, or in steps when big. */
void reaper_take_value(struct dbset *set, const struct value *v);

/* struct value_host.sweep_later for values in key records. */
void *reaper_sweep_value(struct value *v);

/* Take over a heap-allocated database and free it in steps; or empty it here and now. */
void reaper_take_db(struct dbset *set, struct db *db);
void reaper_empty_db(struct db *db);

/* struct value_host.resize for values in key records. */
enum status entry_resize_value(struct value *v, enum value_encoding encoding, size_t len);

#endif
