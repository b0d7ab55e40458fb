/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/number.h"
#include "types/hash.h"
#include "types/list.h"
#include "types/set.h"
#include "types/string.h"
#include "types/zset.h"
#include "writer_priv.h"

#include <math.h>

#define BATCH 64 /* elements fetched at once, their records in flight side by side */

/* ---- forms ---------------------------------------------------------------------------------- */

/* What a packed value's record holds is about what its listpack will. */
static bool goes_packed(const struct value *v) {
    return v->encoding == VALUE_PACKED && v->len <= RDB_LISTPACK_BYTES_MAX;
}

enum rdb_type put_value_type(const struct value *v) {
    switch (v->type) {
    case VALUE_LIST:
        return RDB_LIST_QUICKLIST_2;
    case VALUE_SET:
        return v->encoding == VALUE_INT ? RDB_SET_INTSET : RDB_SET;
    case VALUE_ZSET:
        return goes_packed(v) ? RDB_ZSET_LISTPACK : RDB_ZSET_2;
    case VALUE_HASH:
        return goes_packed(v) ? RDB_HASH_LISTPACK : RDB_HASH;
    default:
        return RDB_STRING;
    }
}

/* The packed value that was gathered, as a string. */
static void put_packed(struct writer *w) {
    if (w->packed.failed && w->st == ST_OK) {
        w->st = ST_NOMEM;
    }
    put_blob(w, buf_bytes(&w->packed));
}

static void put_text(struct writer *w, const struct value *v) {
    char scratch[STRING_SCRATCH_LEN];
    put_string(w, string_text(v, scratch));
}

/* ---- hashes --------------------------------------------------------------------------------- */

static void put_hash(struct writer *w, const struct value *v) {
    struct hash_pair pairs[BATCH];
    uint64_t position = 0;
    size_t n;
    put_len(w, hash_count(v));
    while (w->st == ST_OK && (n = hash_next(v, &position, pairs, BATCH)) != 0) {
        for (size_t i = 0; i < n; i++) {
            put_string(w, pairs[i].field);
            put_string(w, pairs[i].value);
        }
    }
}

static void put_packed_hash(struct writer *w, const struct value *v) {
    struct hash_pair pairs[BATCH];
    uint64_t position = 0;
    size_t n;
    listpack_begin(&w->packed);
    while ((n = hash_next(v, &position, pairs, BATCH)) != 0) {
        for (size_t i = 0; i < n; i++) {
            listpack_put(&w->packed, pairs[i].field);
            listpack_put(&w->packed, pairs[i].value);
        }
    }
    listpack_end(&w->packed, 2 * hash_count(v));
    put_packed(w);
}

/* ---- sorted sets ---------------------------------------------------------------------------- */

/* Highest first: Redis builds its skip list from the tail, so that each insert is at its head. */
static void put_zset(struct writer *w, const struct value *v) {
    struct zset_entry entries[BATCH];
    struct zset_iter it;
    size_t n;
    put_len(w, zset_count(v));
    zset_iter_init(&it, v, zset_count(v), true);
    while (w->st == ST_OK && (n = zset_fetch(&it, entries, BATCH)) != 0) {
        for (size_t i = 0; i < n; i++) {
            put_string(w, entries[i].member);
            put_double(w, entries[i].score);
        }
    }
}

static void put_packed_score(struct buf *b, double score) {
    char text[32];
    bool whole = score >= -9e15 && score <= 9e15 && (double)(int64_t)score == score;
    if (whole && !(score == 0 && signbit(score))) { /* "-0" is a text, which Redis keeps */
        listpack_put_i64(b, (int64_t)score);
    } else {
        listpack_put(b, BYTES(text, number_format_double(text, score)));
    }
}

static void put_packed_zset(struct writer *w, const struct value *v) {
    struct zset_entry entries[BATCH];
    struct zset_iter it;
    size_t n;
    listpack_begin(&w->packed);
    zset_iter_init(&it, v, 0, false);
    while ((n = zset_fetch(&it, entries, BATCH)) != 0) {
        for (size_t i = 0; i < n; i++) {
            listpack_put(&w->packed, entries[i].member);
            put_packed_score(&w->packed, entries[i].score);
        }
    }
    listpack_end(&w->packed, 2 * zset_count(v));
    put_packed(w);
}

/* ---- sets ----------------------------------------------------------------------------------- */

static void put_set(struct writer *w, const struct value *v) {
    struct bytes members[BATCH];
    char scratch[BATCH * SET_SCRATCH_LEN];
    uint64_t position = 0;
    size_t n;
    put_len(w, set_count(v));
    while (w->st == ST_OK && (n = set_next(v, &position, members, BATCH, scratch)) != 0) {
        for (size_t i = 0; i < n; i++) {
            put_string(w, members[i]);
        }
    }
}

static void append_little(struct buf *b, uint64_t v, size_t size) {
    for (size_t i = 0; i < size; i++) {
        buf_append_char(b, (char)(v >> 8 * i));
    }
}

/* Small sets of integers come in ascending order: the last and the first tell the width. */
static size_t intset_width(const struct value *v) {
    struct bytes members[BATCH];
    char scratch[BATCH * SET_SCRATCH_LEN];
    uint64_t position = 0;
    size_t n, width = 2;
    while ((n = set_next(v, &position, members, BATCH, scratch)) != 0) {
        for (size_t i = 0; i < n; i++) {
            int64_t number = 0;
            bool is_number = number_parse_i64(members[i], &number);
            assert(is_number);
            (void)is_number;
            size_t wide = number == (int16_t)number ? 2 : number == (int32_t)number ? 4 : 8;
            width = wide > width ? wide : width;
        }
    }
    return width;
}

static void put_intset(struct writer *w, const struct value *v) {
    struct bytes members[BATCH];
    char scratch[BATCH * SET_SCRATCH_LEN];
    uint64_t position = 0;
    size_t n, width = intset_width(v);
    buf_clear(&w->packed);
    append_little(&w->packed, width, 4);
    append_little(&w->packed, set_count(v), 4);
    while ((n = set_next(v, &position, members, BATCH, scratch)) != 0) {
        for (size_t i = 0; i < n; i++) {
            int64_t number = 0;
            if (number_parse_i64(members[i], &number)) {
                append_little(&w->packed, (uint64_t)number, width);
            }
        }
    }
    put_packed(w);
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* How elements fall into nodes; depends on their lengths only. */
struct cutter {
    size_t node_bytes; /* of the open node; 0: none is open */
};

#define ELEMENT_PACKED_MAX (RDB_LISTPACK_BYTES_MAX - LISTPACK_EMPTY_LEN - 7)

/* Where the next element goes: into the open node, a new one, or alone. */
enum cut { CUT_SAME, CUT_NEW, CUT_ALONE };

static enum cut cut_next(struct cutter *c, size_t element_len) {
    if (element_len > ELEMENT_PACKED_MAX) {
        c->node_bytes = 0;
        return CUT_ALONE;
    }
    size_t cost = listpack_cost(element_len);
    if (c->node_bytes != 0 && c->node_bytes + cost <= RDB_LISTPACK_BYTES_MAX) {
        c->node_bytes += cost;
        return CUT_SAME;
    }
    c->node_bytes = LISTPACK_EMPTY_LEN + cost;
    return CUT_NEW;
}

static uint64_t count_nodes(const struct value *v) {
    struct bytes elements[BATCH];
    struct cutter cutter = {0};
    struct list_iter it;
    uint64_t nodes = 0;
    size_t n;
    list_iter_init(&it, v, 0, false);
    while ((n = list_fetch(&it, elements, BATCH)) != 0) {
        for (size_t i = 0; i < n; i++) {
            nodes += cut_next(&cutter, elements[i].len) != CUT_SAME;
        }
    }
    return nodes;
}

static void put_node(struct writer *w, size_t count) {
    if (count != 0) {
        listpack_end(&w->packed, count);
        put_len(w, RDB_NODE_PACKED);
        put_packed(w);
    }
}

static void put_list(struct writer *w, const struct value *v) {
    struct bytes elements[BATCH];
    struct cutter cutter = {0};
    struct list_iter it;
    size_t n, count = 0; /* elements in the open node */
    put_len(w, count_nodes(v));
    list_iter_init(&it, v, 0, false);
    while (w->st == ST_OK && (n = list_fetch(&it, elements, BATCH)) != 0) {
        for (size_t i = 0; i < n; i++) {
            enum cut cut = cut_next(&cutter, elements[i].len);
            if (cut != CUT_SAME) {
                put_node(w, count);
                count = 0;
                listpack_begin(&w->packed);
            }
            if (cut == CUT_ALONE) {
                put_len(w, RDB_NODE_PLAIN);
                put_blob(w, elements[i]);
            } else {
                listpack_put(&w->packed, elements[i]);
                count++;
            }
        }
    }
    put_node(w, count);
}

/* ---- all ------------------------------------------------------------------------------------ */

void put_value(struct writer *w, const struct value *v, enum rdb_type type) {
    switch (type) {
    case RDB_LIST_QUICKLIST_2:
        put_list(w, v);
        break;
    case RDB_SET:
        put_set(w, v);
        break;
    case RDB_SET_INTSET:
        put_intset(w, v);
        break;
    case RDB_ZSET_2:
        put_zset(w, v);
        break;
    case RDB_ZSET_LISTPACK:
        put_packed_zset(w, v);
        break;
    case RDB_HASH:
        put_hash(w, v);
        break;
    case RDB_HASH_LISTPACK:
        put_packed_hash(w, v);
        break;
    default:
        put_text(w, v);
    }
}
