/* SPDX-License-Identifier: BSD-3-Clause */
#include "reader_priv.h"

/* What each type of the format is called in messages. */
static const char *const type_names[RDB_TYPES] = {
    [RDB_STRING] = "string",
    [RDB_LIST] = "list",
    [RDB_SET] = "set",
    [RDB_ZSET] = "sorted set",
    [RDB_HASH] = "hash",
    [RDB_ZSET_2] = "sorted set",
    [RDB_MODULE] = "module value",
    [RDB_MODULE_2] = "module value",
    [RDB_HASH_ZIPMAP] = "hash zipmap",
    [RDB_LIST_ZIPLIST] = "list ziplist",
    [RDB_SET_INTSET] = "set intset",
    [RDB_ZSET_ZIPLIST] = "sorted set ziplist",
    [RDB_HASH_ZIPLIST] = "hash ziplist",
    [RDB_LIST_QUICKLIST] = "list quicklist",
    [RDB_STREAM] = "stream",
    [RDB_HASH_LISTPACK] = "hash listpack",
    [RDB_ZSET_LISTPACK] = "sorted set listpack",
    [RDB_LIST_QUICKLIST_2] = "list quicklist",
    [RDB_STREAM_2] = "stream",
    [RDB_SET_LISTPACK] = "set listpack",
    [RDB_STREAM_3] = "stream",
    [RDB_HASH_METADATA_PRE_GA] = "hash with expiring fields",
    [RDB_HASH_LISTPACK_EX_PRE_GA] = "hash with expiring fields",
    [RDB_HASH_METADATA] = "hash with expiring fields",
    [RDB_HASH_LISTPACK_EX] = "hash with expiring fields",
};

/* ---- elements that stand one by one --------------------------------------------------------- */

/* A collection of many elements goes group by group, and views are let go after each: no other key
 * may wait then. A small one joins the group of keys. */
static bool begin_plain(struct reader *r, enum value_type type, size_t min_bytes, uint64_t *count) {
    return get_count(r, min_bytes, count) && (*count <= BATCH || reader_flush(r)) &&
           build_begin(r, &r->at->build, type, false) &&
           build_expect(r, &r->at->build, input_believe(&r->in, *count, min_bytes));
}

static void end_group(struct reader *r, uint64_t count) {
    if (count > BATCH) {
        input_release(&r->in);
    }
}

static size_t group_of(uint64_t left) {
    return left < BATCH ? (size_t)left : BATCH;
}

static bool get_plain_hash(struct reader *r) {
    struct hash_pair pairs[BATCH];
    uint64_t count;
    if (!begin_plain(r, VALUE_HASH, 2, &count)) {
        return false;
    }
    for (uint64_t left = count; left > 0; left -= group_of(left)) {
        size_t n = group_of(left);
        for (size_t i = 0; i < n; i++) {
            if (!get_string(r, &pairs[i].field) || !get_string(r, &pairs[i].value)) {
                return false;
            }
        }
        if (!build_add_pairs(r, &r->at->build, pairs, n)) {
            return false;
        }
        end_group(r, count);
    }
    return true;
}

typedef bool (*add_group)(struct reader *r, struct build *b, const struct bytes *elements,
                          size_t count);

static bool get_plain_elements(struct reader *r, enum value_type type, add_group add) {
    struct bytes elements[BATCH];
    uint64_t count;
    if (!begin_plain(r, type, 1, &count)) {
        return false;
    }
    for (uint64_t left = count; left > 0; left -= group_of(left)) {
        size_t n = group_of(left);
        for (size_t i = 0; i < n; i++) {
            if (!get_string(r, &elements[i])) {
                return false;
            }
        }
        if (!add(r, &r->at->build, elements, n)) {
            return false;
        }
        end_group(r, count);
    }
    return true;
}

static bool get_text_score(struct reader *r, double *score) {
    unsigned char len;
    if (!get_byte(r, &len)) {
        return false;
    }
    if (len >= RDB_SCORE_NAN) {
        *score = len == RDB_SCORE_NAN   ? (double)__builtin_nanf("")
                 : len == RDB_SCORE_INF ? (double)__builtin_inff()
                                        : -(double)__builtin_inff();
        return true;
    }
    const char *text = input_take(r, len);
    return text != NULL &&
           (number_parse_double(BYTES(text, len), score) || corrupt(r, "a score is not a number"));
}

/* All members at once, for the tree is built bottom-up. */
static bool get_plain_zset(struct reader *r, bool binary) {
    uint64_t count;
    if (!begin_plain(r, VALUE_ZSET, binary ? 9 : 2, &count)) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct bytes member;
        double score;
        if (!get_string(r, &member) ||
            !(binary ? get_double(r, &score) : get_text_score(r, &score)) ||
            !build_add_scored(r, &r->at->build, member, score)) {
            return false;
        }
    }
    bool ok = build_end(r, &r->at->build);
    end_group(r, count);
    return ok;
}

/* ---- elements packed into one string --------------------------------------------------------- */

/* A run of elements from a packed value; integers get their text from scratch. */
struct packed_group {
    struct pack pack;
    struct pack_element element; /* the next one, when there is one */
    char scratch[2 * BATCH][NUMBER_I64_MAX_LEN];
};

static bool open_pack(struct reader *r, struct packed_group *g, enum pack_kind kind) {
    struct bytes bytes;
    return get_string(r, &bytes) && (pack_open(&g->pack, kind, bytes) || corrupt(r, g->pack.fault));
}

/* Up to cap texts. *n is 0 at the end. */
static bool next_texts(struct reader *r, struct packed_group *g, struct bytes *texts, size_t cap,
                       size_t *n) {
    struct pack_element e;
    *n = 0;
    while (*n < cap && pack_next(&g->pack, &e)) {
        texts[*n] = pack_text(&e, g->scratch[*n]);
        ++*n;
    }
    return g->pack.fault == NULL || corrupt(r, g->pack.fault);
}

static bool odd(struct reader *r) {
    return corrupt(r, "its last entry is without a partner");
}

static bool get_packed_hash(struct reader *r, enum pack_kind kind) {
    struct packed_group g;
    struct bytes texts[2 * BATCH];
    struct hash_pair pairs[BATCH];
    size_t n;
    if (!open_pack(r, &g, kind) || !build_begin(r, &r->at->build, VALUE_HASH, false)) {
        return false;
    }
    do {
        if (!next_texts(r, &g, texts, 2 * BATCH, &n)) {
            return false;
        }
        if (n % 2 != 0) {
            return odd(r);
        }
        for (size_t i = 0; i < n / 2; i++) {
            pairs[i] = (struct hash_pair){.field = texts[2 * i], .value = texts[2 * i + 1]};
        }
        if (!build_add_pairs(r, &r->at->build, pairs, n / 2)) {
            return false;
        }
    } while (n != 0);
    return true;
}

/* Into a value that has begun. */
static bool add_packed_elements(struct reader *r, enum pack_kind kind, add_group add) {
    struct packed_group g;
    struct bytes texts[BATCH];
    size_t n;
    if (!open_pack(r, &g, kind)) {
        return false;
    }
    do {
        if (!next_texts(r, &g, texts, BATCH, &n) || !add(r, &r->at->build, texts, n)) {
            return false;
        }
    } while (n != 0);
    return true;
}

static bool get_packed_set(struct reader *r, enum pack_kind kind) {
    return build_begin(r, &r->at->build, VALUE_SET, kind == PACK_INTSET) &&
           add_packed_elements(r, kind, build_add_members);
}

static bool get_packed_list(struct reader *r, enum pack_kind kind) {
    return build_begin(r, &r->at->build, VALUE_LIST, false) &&
           add_packed_elements(r, kind, build_add_elements);
}

static bool packed_score(struct reader *r, const struct pack_element *e, double *score) {
    if (e->is_integer) {
        *score = (double)e->integer;
        return true;
    }
    return number_parse_double(e->text, score) || corrupt(r, "a score is not a number");
}

/* A member's text that lasts until the set is built. */
static bool lasting_text(struct reader *r, const struct pack_element *e, struct bytes *out) {
    if (!e->is_integer) {
        *out = e->text;
        return true;
    }
    char *held = input_hold(r, NUMBER_I64_MAX_LEN);
    if (held == NULL) {
        return false;
    }
    *out = pack_text(e, held);
    return true;
}

static bool get_packed_zset(struct reader *r, enum pack_kind kind) {
    struct packed_group g;
    struct pack_element member, score;
    if (!open_pack(r, &g, kind) || !build_begin(r, &r->at->build, VALUE_ZSET, false)) {
        return false;
    }
    while (pack_next(&g.pack, &member)) {
        struct bytes text;
        double number;
        if (!pack_next(&g.pack, &score)) {
            return g.pack.fault != NULL ? corrupt(r, g.pack.fault) : odd(r);
        }
        if (!lasting_text(r, &member, &text) || !packed_score(r, &score, &number) ||
            !build_add_scored(r, &r->at->build, text, number)) {
            return false;
        }
    }
    return g.pack.fault != NULL ? corrupt(r, g.pack.fault) : build_end(r, &r->at->build);
}

/* ---- lists of nodes -------------------------------------------------------------------------- */

static bool get_node(struct reader *r, bool listpacks) {
    uint64_t form = RDB_NODE_PACKED;
    if (listpacks && !get_len(r, &form)) {
        return false;
    }
    if (form == RDB_NODE_PLAIN) {
        struct bytes element;
        return get_string(r, &element) && build_add_elements(r, &r->at->build, &element, 1);
    }
    if (form != RDB_NODE_PACKED) {
        return corrupt(r, "a node of an unknown kind");
    }
    return add_packed_elements(r, listpacks ? PACK_LISTPACK : PACK_ZIPLIST, build_add_elements);
}

static bool get_quicklist(struct reader *r, bool listpacks) {
    uint64_t count;
    if (!get_count(r, 1, &count) || (count > 1 && !reader_flush(r)) ||
        !build_begin(r, &r->at->build, VALUE_LIST, false)) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!get_node(r, listpacks)) {
            return false;
        }
        if (count > 1) {
            input_release(&r->in);
        }
    }
    return true;
}

/* ---- all ------------------------------------------------------------------------------------ */

static bool get_text_value(struct reader *r) {
    if (!get_string_image(r, &r->at->image)) {
        return false;
    }
    r->at->build.v.type = VALUE_STRING;
    return true;
}

static bool get_collection(struct reader *r, unsigned char type) {
    switch (type) {
    case RDB_LIST:
        return get_plain_elements(r, VALUE_LIST, build_add_elements);
    case RDB_SET:
        return get_plain_elements(r, VALUE_SET, build_add_members);
    case RDB_ZSET:
        return get_plain_zset(r, false);
    case RDB_ZSET_2:
        return get_plain_zset(r, true);
    case RDB_HASH:
        return get_plain_hash(r);
    case RDB_HASH_ZIPMAP:
        return get_packed_hash(r, PACK_ZIPMAP);
    case RDB_HASH_ZIPLIST:
        return get_packed_hash(r, PACK_ZIPLIST);
    case RDB_HASH_LISTPACK:
        return get_packed_hash(r, PACK_LISTPACK);
    case RDB_LIST_ZIPLIST:
        return get_packed_list(r, PACK_ZIPLIST);
    case RDB_LIST_QUICKLIST:
        return get_quicklist(r, false);
    case RDB_LIST_QUICKLIST_2:
        return get_quicklist(r, true);
    case RDB_SET_INTSET:
        return get_packed_set(r, PACK_INTSET);
    case RDB_SET_LISTPACK:
        return get_packed_set(r, PACK_LISTPACK);
    case RDB_ZSET_ZIPLIST:
        return get_packed_zset(r, PACK_ZIPLIST);
    default:
        return get_packed_zset(r, PACK_LISTPACK);
    }
}

bool get_value(struct reader *r, unsigned char type, bool *kept) {
    if (type >= RDB_TYPES || type_names[type] == NULL) {
        return fault(r, ST_CORRUPT, "0x%02x is no type and no section", type);
    }
    reading(r, type_names[type]);
    *kept = true;
    switch (type) {
    case RDB_STRING:
        return get_text_value(r);
    case RDB_MODULE:
    case RDB_MODULE_2:
    case RDB_STREAM:
    case RDB_STREAM_2:
    case RDB_STREAM_3:
    case RDB_HASH_METADATA_PRE_GA:
    case RDB_HASH_LISTPACK_EX_PRE_GA:
    case RDB_HASH_METADATA:
    case RDB_HASH_LISTPACK_EX:
        *kept = false;
        return skip_value(r, type);
    default:
        if (!get_collection(r, type)) {
            return false;
        }
        *kept = build_count(&r->at->build) != 0;
        r->report->empty += !*kept;
        return true;
    }
}
