/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/account.h"
#include "reader_priv.h"
#include "types/list.h"
#include "types/set.h"

/* A record holds at most a quarter of a chunk or 64 KiB (mem/arena.h), the longest key and its head
 * included. */
#define RECORD_MAX ((size_t)64 << 10)
#define BESIDE_VALUE_MAX (2 * (size_t)DB_KEY_INLINE_MAX)

static enum status resize(struct value *v, enum value_encoding encoding, size_t len) {
    struct build *b = CONTAINER_OF(v, struct build, v);
    size_t record_max = pages_chunk_bytes(b->host.env->pages) / 4;
    record_max = record_max < RECORD_MAX ? record_max : RECORD_MAX;
    if (len + BESIDE_VALUE_MAX > record_max) {
        return ST_RANGE;
    }
    if (len > b->bytes.len && buf_reserve(&b->bytes, len - b->bytes.len) != ST_OK) {
        return ST_NOMEM;
    }
    b->bytes.len = len;
    v->data = b->bytes.ptr;
    v->len = len;
    v->encoding = encoding;
    return ST_OK;
}

void build_init(struct build *b, const struct type_env *env) {
    *b = (struct build){.host = {.resize = resize, .env = env}};
}

void build_drop(struct build *b) {
    if (b->v.len != 0 && b->v.encoding == VALUE_HEAP) {
        value_free(b->v.type, value_object(&b->v));
    }
    b->v.len = 0;
    b->entries_count = 0;
}

void build_deinit(struct build *b) {
    build_drop(b);
    account_free(ACCOUNT_OTHER, b->entries);
    buf_deinit(&b->bytes);
}

static bool no_memory(struct reader *r) {
    return fault(r, ST_NOMEM, "out of memory");
}

bool build_begin(struct reader *r, struct build *b, enum value_type type, bool integers) {
    struct value_image image = {.encoding = VALUE_PACKED};
    image.data = type == VALUE_LIST   ? BYTES(list_empty, LIST_EMPTY_LEN)
                 : type == VALUE_HASH ? BYTES(hash_empty, HASH_EMPTY_LEN)
                                      : BYTES(zset_empty, ZSET_EMPTY_LEN);
    if (type == VALUE_SET) {
        set_empty_image(integers, &image);
    }
    build_drop(b);
    b->v = (struct value){.type = type, .host = &b->host};
    b->bytes.len = 0;
    if (resize(&b->v, image.encoding, image.data.len) != ST_OK) {
        b->v.len = 0;
        return no_memory(r);
    }
    memcpy(b->v.data, image.data.ptr, image.data.len);
    return true;
}

static bool added(struct reader *r, enum status st, const char *twice) {
    return st == ST_OK ? true : st == ST_EXISTS ? corrupt(r, twice) : no_memory(r);
}

bool build_expect(struct reader *r, struct build *b, uint64_t count) {
    enum status st = b->v.type == VALUE_HASH  ? hash_expect(&b->v, count)
                     : b->v.type == VALUE_SET ? set_expect(&b->v, count)
                                              : ST_OK;
    return st == ST_OK || no_memory(r);
}

bool build_add_pairs(struct reader *r, struct build *b, const struct hash_pair *pairs,
                     size_t count) {
    return added(r, hash_add_all(&b->v, pairs, count), "a field is there twice");
}

bool build_add_members(struct reader *r, struct build *b, const struct bytes *members,
                       size_t count) {
    return added(r, set_add_all(&b->v, members, count), "a member is there twice");
}

bool build_add_elements(struct reader *r, struct build *b, const struct bytes *elements,
                        size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (list_push(&b->v, LIST_TAIL, elements[i]) != ST_OK) {
            return no_memory(r);
        }
    }
    return true;
}

bool build_add_scored(struct reader *r, struct build *b, struct bytes member, double score) {
    if (score != score) {
        return corrupt(r, "a score is not a number");
    }
    if (b->entries_count == b->entries_cap) {
        size_t cap = b->entries_cap == 0 ? BATCH : b->entries_cap * 2;
        void *entries = account_realloc(ACCOUNT_OTHER, b->entries, cap * sizeof(*b->entries));
        if (entries == NULL) {
            return no_memory(r);
        }
        b->entries = entries;
        b->entries_cap = cap;
    }
    b->entries[b->entries_count++] = (struct zset_entry){.member = member, .score = score};
    return true;
}

bool build_end(struct reader *r, struct build *b) {
    if (b->v.type != VALUE_ZSET || b->entries_count == 0) {
        return true;
    }
    enum status st = zset_build_checked(&b->v, b->entries, b->entries_count);
    b->entries_count = 0;
    if (b->entries_cap > BATCH * BATCH) { /* not in each of the waiting keys */
        account_free(ACCOUNT_OTHER, b->entries);
        b->entries = NULL;
        b->entries_cap = 0;
    }
    return added(r, st, "a member is there twice");
}

uint64_t build_count(const struct build *b) {
    switch (b->v.type) {
    case VALUE_LIST:
        return list_count(&b->v);
    case VALUE_SET:
        return set_count(&b->v);
    case VALUE_ZSET:
        return b->entries_count != 0 ? b->entries_count : zset_count(&b->v);
    case VALUE_HASH:
        return hash_count(&b->v);
    default:
        return 1;
    }
}
