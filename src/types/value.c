/* SPDX-License-Identifier: BSD-3-Clause */
#include "types/value.h"

#include <stdlib.h>

#include "mem/account.h"
#include "types/hash.h"
#include "types/list.h"
#include "types/set.h"
#include "types/string.h"
#include "types/zset.h"

/* What OBJECT ENCODING calls a short string: the longest that Redis embeds. */
#define EMBSTR_MAX 44

/* ---- one row a type ------------------------------------------------------------------------ */

struct type_ops {
    const char *name;
    const char *(*encoding_name)(const struct value *v);
    bool (*free_step)(void *object, size_t budget);
    enum status (*clone)(const struct value *v,
                         struct value_image *image); /* of a VALUE_HEAP value */
    size_t (*bytes)(const struct value *v);
    bool (*is_big)(const struct value *v);
    void (*check)(const struct value *v);
    /* NULL: it never leaves work behind. */
    bool (*sweep_step)(void *object, size_t budget);
    void *(*sweeper)(const struct value *v);
    /* Batch stages of a look-up by member or field; NULL: there is nothing to prefetch. */
    void (*prefetch_index)(const struct value *v, uint64_t member_hash);
    void (*prefetch_record)(const struct value *v, uint64_t member_hash);
};

static const char *string_encoding_name(const struct value *v) {
    if (v->encoding == VALUE_INT) {
        return "int";
    }
    return v->encoding == VALUE_RAW && v->len <= EMBSTR_MAX ? "embstr" : "raw";
}

static bool string_free_step(void *object, size_t budget) {
    (void)budget;
    account_free(ACCOUNT_VALUE, object);
    return true;
}

static enum status string_clone(const struct value *v, struct value_image *image) {
    return string_image(string_text(v, NULL), NULL, image);
}

static size_t string_bytes(const struct value *v) {
    struct string_heap heap;
    memcpy(&heap, v->data, sizeof(heap));
    return heap.cap;
}

/* One allocation; but its OS pages are many. */
static bool string_is_big(const struct value *v) {
    return string_bytes(v) > (size_t)1 << 20;
}

static void string_check(const struct value *v) {
    struct string_heap heap;
    if (v->encoding == VALUE_HEAP) {
        memcpy(&heap, v->data, sizeof(heap));
        if (v->len != sizeof(heap) || heap.len > heap.cap) {
            abort();
        }
    } else if (v->encoding == VALUE_INT && v->len > sizeof(int64_t)) {
        abort();
    }
}

static const char *hash_encoding_name(const struct value *v) {
    return v->encoding == VALUE_PACKED ? "listpack" : "hashtable";
}

static bool hash_free_object(void *object, size_t budget) {
    return hash_free_step(object, budget);
}

static void image_of_object(struct value_image *image, const void *object) {
    image->encoding = VALUE_HEAP;
    memcpy(image->small, &object, sizeof(object));
    image->data = BYTES(image->small, sizeof(object));
}

static enum status hash_clone_object(const struct value *v, struct value_image *image) {
    struct hash *copy;
    enum status st = hash_clone(value_object(v), &copy);
    if (st == ST_OK) {
        image_of_object(image, copy);
    }
    return st;
}

static size_t hash_object_bytes(const struct value *v) {
    return hash_bytes_held(value_object(v));
}

static bool hash_is_big(const struct value *v) {
    return hash_object_is_big(value_object(v));
}

static const char *list_encoding_name(const struct value *v) {
    return v->encoding == VALUE_PACKED ? "listpack" : "quicklist";
}

static bool list_free_object(void *object, size_t budget) {
    return list_free_step(object, budget);
}

static enum status list_clone_object(const struct value *v, struct value_image *image) {
    struct list *copy;
    enum status st = list_clone(value_object(v), &copy);
    if (st == ST_OK) {
        image_of_object(image, copy);
    }
    return st;
}

static size_t list_object_bytes(const struct value *v) {
    return list_bytes_held(value_object(v));
}

static bool list_is_big(const struct value *v) {
    return list_object_is_big(value_object(v));
}

static bool list_sweep_object(void *object, size_t budget) {
    return list_sweep_step(object, budget);
}

static void *list_object_sweeper(const struct value *v) {
    return list_sweeper(value_object(v));
}

static const char *set_encoding_name(const struct value *v) {
    return v->encoding == VALUE_INT      ? "intset"
           : v->encoding == VALUE_PACKED ? "listpack"
                                         : "hashtable";
}

static bool set_free_object(void *object, size_t budget) {
    return set_free_step(object, budget);
}

static enum status set_clone_object(const struct value *v, struct value_image *image) {
    struct set *copy;
    enum status st = set_clone(value_object(v), &copy);
    if (st == ST_OK) {
        image_of_object(image, copy);
    }
    return st;
}

static size_t set_object_bytes(const struct value *v) {
    return set_bytes_held(value_object(v));
}

static bool set_is_big(const struct value *v) {
    return set_object_is_big(value_object(v));
}

static const char *zset_encoding_name(const struct value *v) {
    return v->encoding == VALUE_PACKED ? "listpack" : "skiplist";
}

static bool zset_free_object(void *object, size_t budget) {
    return zset_free_step(object, budget);
}

static enum status zset_clone_object(const struct value *v, struct value_image *image) {
    struct zset *copy;
    enum status st = zset_clone(value_object(v), &copy);
    if (st == ST_OK) {
        image_of_object(image, copy);
    }
    return st;
}

static size_t zset_object_bytes(const struct value *v) {
    return zset_bytes_held(value_object(v));
}

static bool zset_is_big(const struct value *v) {
    return zset_object_is_big(value_object(v));
}

static const struct type_ops type_table[VALUE_TYPES] = {
    [VALUE_STRING] = {"string", string_encoding_name, string_free_step, string_clone, string_bytes,
                      string_is_big, string_check, NULL, NULL, NULL, NULL},
    [VALUE_LIST] = {"list", list_encoding_name, list_free_object, list_clone_object,
                    list_object_bytes, list_is_big, list_check, list_sweep_object,
                    list_object_sweeper, NULL, NULL},
    [VALUE_SET] = {"set", set_encoding_name, set_free_object, set_clone_object, set_object_bytes,
                   set_is_big, set_check, NULL, NULL, set_prefetch_index, set_prefetch_record},
    [VALUE_ZSET] = {"zset", zset_encoding_name, zset_free_object, zset_clone_object,
                    zset_object_bytes, zset_is_big, zset_check, NULL, NULL, zset_prefetch_index,
                    zset_prefetch_record},
    [VALUE_HASH] = {"hash", hash_encoding_name, hash_free_object, hash_clone_object,
                    hash_object_bytes, hash_is_big, hash_check, NULL, NULL, hash_prefetch_index,
                    hash_prefetch_record},
};

/* ---- public -------------------------------------------------------------------------------- */

const char *value_type_name(enum value_type type) {
    return type_table[type].name;
}

const char *value_encoding_name(const struct value *v) {
    return type_table[v->type].encoding_name(v);
}

bool value_free_step(enum value_type type, void *object, size_t budget) {
    return type_table[type].free_step(object, budget);
}

bool value_sweep_step(enum value_type type, void *object, size_t budget) {
    return type_table[type].sweep_step(object, budget);
}

void *value_sweeper(const struct value *v) {
    bool may = v->encoding == VALUE_HEAP && type_table[v->type].sweeper != NULL;
    return may ? type_table[v->type].sweeper(v) : NULL;
}

bool value_is_big(const struct value *v) {
    return v->encoding == VALUE_HEAP && type_table[v->type].is_big(v);
}

void value_free(enum value_type type, void *object) {
    while (!value_free_step(type, object, SIZE_MAX)) {
    }
}

enum status value_clone(const struct value *v, struct value_image *image) {
    if (v->encoding == VALUE_HEAP) {
        return type_table[v->type].clone(v, image);
    }
    value_image_of(v, image);
    return ST_OK;
}

void value_image_discard(enum value_type type, struct value_image *image) {
    if (image->encoding == VALUE_HEAP) {
        void *object;
        memcpy(&object, image->data.ptr, sizeof(object));
        value_free(type, object);
    }
}

size_t value_heap_bytes(const struct value *v) {
    return v->encoding == VALUE_HEAP ? type_table[v->type].bytes(v) : 0;
}

void value_check(const struct value *v) {
    type_table[v->type].check(v);
}

bool value_has_index(const struct value *v) {
    return v->encoding == VALUE_HEAP && type_table[v->type].prefetch_index != NULL;
}

void value_prefetch_index(const struct value *v, uint64_t member_hash) {
    type_table[v->type].prefetch_index(v, member_hash);
}

void value_prefetch_record(const struct value *v, uint64_t member_hash) {
    type_table[v->type].prefetch_record(v, member_hash);
}
