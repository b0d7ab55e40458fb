/* SPDX-License-Identifier: BSD-3-Clause */
#include "hash_priv.h"
#include "types/varlen.h"

#define COUNT_LEN 2
static_assert(COUNT_LEN == HASH_EMPTY_LEN, "an empty run is its count");

const char hash_empty[HASH_EMPTY_LEN] = {0, 0};

uint64_t packed_count(const char *run) {
    uint16_t count;
    memcpy(&count, run, sizeof(count));
    return count;
}

static void set_count(char *run, uint64_t count) {
    uint16_t v = (uint16_t)count;
    memcpy(run, &v, sizeof(v));
}

struct hash_pair packed_read(const char *run, size_t *off) {
    struct hash_pair pair;
    const char *p = run + *off;
    p += varlen_get(p, &pair.field.len);
    pair.field.ptr = p;
    p += pair.field.len;
    p += varlen_get(p, &pair.value.len);
    pair.value.ptr = p;
    *off = (size_t)(p + pair.value.len - run);
    return pair;
}

size_t packed_used(const char *run) {
    size_t off = COUNT_LEN;
    for (uint64_t left = packed_count(run); left > 0; left--) {
        packed_read(run, &off);
    }
    return off;
}

struct packed_spot packed_find(const char *run, struct bytes field) {
    size_t off = COUNT_LEN;
    for (uint64_t left = packed_count(run); left > 0; left--) {
        size_t entry_off = off;
        struct hash_pair pair = packed_read(run, &off);
        if (bytes_equal(pair.field, field)) {
            size_t value_off = (size_t)(pair.field.ptr + pair.field.len - run);
            return (struct packed_spot){true, entry_off, value_off, off, pair.value};
        }
    }
    return (struct packed_spot){.entry_off = off, .value_off = off, .end_off = off};
}

static void put(char *run, size_t off, struct bytes b) {
    off += varlen_put(run + off, b.len);
    if (b.len != 0) {
        memcpy(run + off, b.ptr, b.len);
    }
}

/* Make the bytes [off, off + old_len) of the run new_len long. The tail moves; when it gets
 * shorter, a failure to give memory back only leaves idle bytes at the end. */
static enum status stretch(struct value *v, size_t off, size_t old_len, size_t new_len,
                           size_t used) {
    size_t tail_len = used - off - old_len;
    if (new_len <= old_len) {
        memmove(v->data + off + new_len, v->data + off + old_len, tail_len);
        enum status st = value_resize(v, VALUE_PACKED, used - old_len + new_len);
        (void)st;
        return ST_OK;
    }
    enum status st = value_resize(v, VALUE_PACKED, used - old_len + new_len);
    if (st == ST_OK) {
        memmove(v->data + off + new_len, v->data + off + old_len, tail_len);
    }
    return st;
}

enum status packed_set(struct value *v, const struct packed_spot *spot, struct bytes field,
                       struct bytes value) {
    const struct type_env *env = v->host->env;
    size_t longest = field.len > value.len ? field.len : value.len;
    uint64_t count = packed_count(v->data);
    if (longest > env->hash_packed_element_max ||
        (!spot->found && (count >= env->hash_packed_entries_max || count >= UINT16_MAX))) {
        return ST_RANGE;
    }
    size_t old_len = spot->end_off - spot->value_off;
    size_t new_len = varlen_size(value.len) + value.len;
    if (!spot->found) {
        new_len += varlen_size(field.len) + field.len;
    }
    if (new_len != old_len) {
        enum status st = stretch(v, spot->value_off, old_len, new_len, packed_used(v->data));
        if (st != ST_OK) {
            return st;
        }
    }
    if (!spot->found) {
        put(v->data, spot->entry_off, field);
        put(v->data, spot->entry_off + varlen_size(field.len) + field.len, value);
        set_count(v->data, count + 1);
    } else {
        put(v->data, spot->value_off, value);
    }
    return ST_OK;
}

void packed_delete(struct value *v, const struct packed_spot *spot) {
    size_t used = packed_used(v->data);
    set_count(v->data, packed_count(v->data) - 1);
    enum status st = stretch(v, spot->entry_off, spot->end_off - spot->entry_off, 0, used);
    assert(st == ST_OK);
    (void)st;
}
