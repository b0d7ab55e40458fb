/* SPDX-License-Identifier: BSD-3-Clause */
/* value: what a key holds, as the type code sees it, wherever its bytes lie.
 *
 *   data      the value's bytes inside its key's record: a short string, a packed collection, or -
 * encoding VALUE_HEAP - a pointer to an object of its own host      who owns that record and can
 * resize it (db/keyspace); the types call no layer above them
 *
 * A struct value is a handle: good until anything else is written in the same database. data moves
 * when the value is resized, so type code takes v->data afresh after each value_resize.
 *
 * Encodings, three bits in the record. What a client calls the encoding (OBJECT ENCODING) is
 * value_encoding_name. */
#ifndef TYPES_VALUE_H
#define TYPES_VALUE_H

#include "base/bytes.h"
#include "base/status.h"
#include "mem/pages.h"

enum value_type { VALUE_STRING, VALUE_LIST, VALUE_SET, VALUE_ZSET, VALUE_HASH, VALUE_TYPES };

enum value_encoding {
    VALUE_RAW,    /* string: the bytes themselves */
    VALUE_INT,    /* string: a little-endian integer of 1, 2, 4 or 8 bytes */
    VALUE_PACKED, /* small collection in one run, see types/packed.h */
    VALUE_HEAP,   /* a pointer to an object that stands alone */
};

/* What the types need of the world; one for the program, set up by main. */
struct type_env {
    struct pages *pages;            /* chunks for the arenas of large collections */
    size_t hash_packed_entries_max; /* a packed hash with more fields becomes a table */
    size_t hash_packed_element_max; /* ... or with a longer field or value, bytes */
    size_t list_packed_bytes_max;   /* a longer packed list becomes a sequence of blocks */
    size_t list_packed_entries_max; /* ... or one of more elements */
    size_t set_int_entries_max;     /* a set of more integers becomes a table */
    size_t set_packed_entries_max;  /* a packed set with more members becomes a table */
    size_t set_packed_element_max;  /* ... or with a longer member, bytes */
    size_t zset_packed_entries_max; /* a packed zset with more members becomes a table */
    size_t zset_packed_element_max; /* ... or with a longer member, bytes */
};

#define VALUE_SMALL_MAX 24

struct value {
    enum value_type type;
    enum value_encoding encoding;
    char *data;
    size_t len;
    const struct value_host *host;
};

/* What to put into a record: an encoding and its bytes. Do not copy one: data may point into small.
 */
struct value_image {
    enum value_encoding encoding;
    char small[VALUE_SMALL_MAX]; /* VALUE_INT: the integer's bytes; VALUE_HEAP: the pointer and what
                                    goes with it */
    struct bytes data;           /* points into small, or at bytes that stay the caller's */
};

struct value_host {
    /* Give the value len bytes and an encoding; the first min(old, new) bytes are kept. ST_NOMEM:
     * as before. ST_RANGE: too long for a record (the type must turn to VALUE_HEAP). */
    enum status (*resize)(struct value *v, enum value_encoding encoding, size_t len);
    /* Optional. Have value_sweep_step called for the value's object until it is true. The answer
     * names the one who will; the object keeps it until then, so that the object cannot be freed
     * behind its back. NULL: nobody, memory is short. */
    void *(*sweep_later)(struct value *v);
    const struct type_env *env;
};

MUST_CHECK static inline enum status value_resize(struct value *v, enum value_encoding encoding,
                                                  size_t len) {
    return v->host->resize(v, encoding, len);
}

static inline void *value_sweep_later(struct value *v) {
    return v->host->sweep_later == NULL ? NULL : v->host->sweep_later(v);
}

/* The object of a VALUE_HEAP value. */
static inline void *value_object(const struct value *v) {
    void *object;
    memcpy(&object, v->data, sizeof(object));
    return object;
}

/* "string", "list", "set", "zset", "hash". */
const char *value_type_name(enum value_type type);

/* The words OBJECT ENCODING answers. */
const char *value_encoding_name(const struct value *v);

/* Free the object of a VALUE_HEAP value a part at a time: true when it is gone. For other encodings
 * nothing is held. */
bool value_free_step(enum value_type type, void *object, size_t budget);

/* Free memory that a VALUE_HEAP value's object no longer uses, a part at a time; true when that is
 * done, and the object then has no sweeper any more. */
bool value_sweep_step(enum value_type type, void *object, size_t budget);

/* What value_sweep_later answered for a VALUE_HEAP value, until its sweep is done; else NULL. */
void *value_sweeper(const struct value *v);

/* Worth freeing in steps rather than at once? */
bool value_is_big(const struct value *v);

/* Free what a VALUE_HEAP value holds, at once. */
void value_free(enum value_type type, void *object);

/* The image of a copy of v: for VALUE_HEAP a deep copy that the image owns, else a view of v's own
 * bytes. ST_NOMEM. */
MUST_CHECK enum status value_clone(const struct value *v, struct value_image *image);

/* An image of v as it is: its bytes, shared. */
static inline void value_image_of(const struct value *v, struct value_image *image) {
    image->encoding = v->encoding;
    image->data = BYTES(v->data, v->len);
}

/* Free what an image owns that was not stored after all. */
void value_image_discard(enum value_type type, struct value_image *image);

/* Batch stages of a look-up by member or field, of a value that has an index of its own: first prefetch the index group,
 * later the record it likely names. */
bool value_has_index(const struct value *v);
void value_prefetch_index(const struct value *v, uint64_t member_hash);
void value_prefetch_record(const struct value *v, uint64_t member_hash);

/* Verify the value's own invariants. Aborts on a fault. */
void value_check(const struct value *v);

/* Bytes held outside the key's record. */
size_t value_heap_bytes(const struct value *v);

#endif
