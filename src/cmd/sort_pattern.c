/* SPDX-License-Identifier: BSD-3-Clause */
/* What the patterns of SORT name: keys and fields of hashes, looked up in groups. */
#include "base/hash.h"
#include "sort_priv.h"
#include "types/hash.h"

struct sort_pattern sort_pattern_of(struct bytes text) {
    struct sort_pattern p = {.is_element = bytes_equal(text, BYTES_LIT("#"))};
    const char *star = text.len > 0 ? memchr(text.ptr, '*', text.len) : NULL;
    if (star == NULL) {
        p.is_nothing = true;
        return p;
    }
    p.before = BYTES(text.ptr, (size_t)(star - text.ptr));
    p.after = BYTES(star + 1, text.len - p.before.len - 1);
    for (size_t i = 0; i + 2 < p.after.len; i++) {
        if (p.after.ptr[i] == '-' && p.after.ptr[i + 1] == '>') {
            p.field = BYTES(p.after.ptr + i + 2, p.after.len - i - 2);
            p.after.len = i;
            break;
        }
    }
    return p;
}

/* ---- looking up by pattern ------------------------------------------------------------------ */

static bool names_key(const struct sort_pattern *p) {
    return !p->is_element && !p->is_nothing;
}

/* The text at a key or in a field of it; false when there is none. */
static bool read_text(struct db *db, const struct sort_pattern *p, struct bytes key, uint64_t hash,
                      char *digits, struct bytes *text) {
    struct entry e;
    if (!db_find(db, key, hash, DB_TOUCH, &e)) {
        return false;
    }
    if (p->field.len > 0) {
        return e.value.type == VALUE_HASH && hash_get(&e.value, p->field, text);
    }
    if (e.value.type != VALUE_STRING) {
        return false;
    }
    *text = string_text(&e.value, digits);
    return true;
}

static const struct sort_pattern *pattern_at(const struct sort_look_ups *l, size_t i) {
    return &l->patterns[(l->first + i) % l->pattern_count];
}

static struct bytes element_at(const struct sort_look_ups *l, size_t i) {
    return l->items[(l->first + i) / l->pattern_count].element;
}

/* Write the names of the keys, hash them and prefetch what finding them needs. */
static enum status prepare(struct db *db, struct buf *names, const struct sort_look_ups *l,
                           struct bytes *keys, uint64_t *hashes) {
    size_t at = 0;
    names->len = 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct sort_pattern *p = pattern_at(l, i);
        size_t start = names->len;
        if (names_key(p)) {
            struct bytes element = element_at(l, i);
            buf_append(names, p->before.ptr, p->before.len);
            buf_append(names, element.ptr, element.len);
            buf_append(names, p->after.ptr, p->after.len);
        }
        keys[i].len = names->len - start;
    }
    if (names->failed) {
        return ST_NOMEM;
    }
    for (size_t i = 0; i < l->count; at += keys[i++].len) {
        keys[i].ptr = names->ptr + at;
        hashes[i] = hash_bytes(keys[i]);
        db_prefetch_index(db, hashes[i]);
    }
    for (size_t i = 0; i < l->count; i++) {
        db_prefetch_record(db, hashes[i]);
    }
    return ST_OK;
}

enum status sort_look_up(struct call *call, struct buf *names, const struct sort_look_ups *l,
                         struct sort_found *found) {
    struct db *db = call_db(call);
    struct bytes keys[LOOKUP_GROUP];
    uint64_t hashes[LOOKUP_GROUP];
    if (prepare(db, names, l, keys, hashes) != ST_OK) {
        return ST_NOMEM;
    }
    for (size_t i = 0; i < l->count; i++) {
        const struct sort_pattern *p = pattern_at(l, i);
        struct bytes *text = &found->at[i].text;
        *text = element_at(l, i);
        found->at[i].there = p->is_element || (names_key(p) && read_text(db, p, keys[i], hashes[i],
                                                                         found->digits[i], text));
        found->at[i].in_digits = text->ptr == found->digits[i];
    }
    return ST_OK;
}
