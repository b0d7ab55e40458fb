/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on hashes. */
#include "types/hash.h"

#include <math.h>

#include "base/number.h"
#include "cmd/args.h"
#include "cmd/lookup.h"
#include "cmd/scan.h"
#include "handlers_priv.h"
#include "sample_priv.h"

#define PAIR_BATCH 64

/* ---- finding and making -------------------------------------------------------------------- */

static enum lookup find_hash(struct call *call, struct entry *e) {
    return lookup_typed(call, 1, VALUE_HASH, e);
}

/* The hash at key 1, made empty when absent. *fresh: it was. False: refused or OOM, replied. */
static bool find_or_add(struct call *call, struct entry *e, bool *fresh) {
    enum lookup found = find_hash(call, e);
    *fresh = found == LOOKUP_ABSENT;
    if (found != LOOKUP_ABSENT) {
        return found == LOOKUP_FOUND;
    }
    struct value_image empty = {.encoding = VALUE_PACKED, .data = {hash_empty, HASH_EMPTY_LEN}};
    enum status st = db_add(call_db(call), call->argv[1], lookup_hash(call, 1), VALUE_HASH, &empty,
                            DB_NO_EXPIRY, e);
    if (st != ST_OK) {
        args_status_error(call, st);
    }
    return st == ST_OK;
}

/* A write on e failed before anything was in it: a key made for it goes again. */
static void undo_add(struct entry *e, bool fresh) {
    if (fresh && hash_count(&e->value) == 0) {
        entry_delete(e);
    }
}

/* Set one field; on failure reply it and leave all as before. */
static bool set_field(struct call *call, struct entry *e, bool fresh, struct bytes field,
                      struct bytes value) {
    enum status st = hash_set(&e->value, field, value, NULL);
    if (st != ST_OK) {
        undo_add(e, fresh);
        args_status_error(call, st);
        return false;
    }
    call_dirty(call, 1);
    return true;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Set all pairs; how many were new, or -1 with the error replied. Memory can run out half-way: the
 * fields set by then stay, and the error tells how many. */
static int64_t set_pairs(struct call *call) {
    struct entry e;
    bool fresh;
    int64_t added_count = 0;
    if (call->argc % 2 != 0) {
        args_wrong_arity(call);
        return -1;
    }
    if (!find_or_add(call, &e, &fresh)) {
        return -1;
    }
    for (size_t i = 2; i < call->argc; i += 2) {
        bool added;
        if ((i / 2 - 1) % LOOKUP_GROUP == 0) {
            lookup_prefetch_members(call, &e.value, i, 2);
        }
        if (hash_set(&e.value, call->argv[i], call->argv[i + 1], &added) != ST_OK) {
            undo_add(&e, fresh);
            reply_errorf(&call->reply, "OOM out of memory, %zu of %zu fields were set", i / 2 - 1,
                         call->argc / 2 - 1);
            return -1;
        }
        added_count += added;
        call_dirty(call, 1);
    }
    return added_count;
}

void hset_command(struct call *call) {
    int64_t added = set_pairs(call);
    if (added >= 0) {
        reply_integer(&call->reply, added);
    }
}

void hmset_command(struct call *call) {
    if (set_pairs(call) >= 0) {
        reply_ok(&call->reply);
    }
}

void hsetnx_command(struct call *call) {
    struct entry e;
    bool fresh;
    struct bytes old;
    if (!find_or_add(call, &e, &fresh)) {
        return;
    }
    if (hash_get(&e.value, call->argv[2], &old)) {
        reply_integer(&call->reply, 0);
    } else if (set_field(call, &e, fresh, call->argv[2], call->argv[3])) {
        reply_integer(&call->reply, 1);
    }
}

void hdel_command(struct call *call) {
    struct entry e;
    int64_t deleted = 0;
    enum lookup found = find_hash(call, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    for (size_t i = 2; found == LOOKUP_FOUND && i < call->argc; i++) {
        if ((i - 2) % LOOKUP_GROUP == 0) {
            lookup_prefetch_members(call, &e.value, i, 1);
        }
        deleted += hash_delete(&e.value, call->argv[i]);
        if (hash_count(&e.value) == 0) {
            entry_delete(&e);
            break;
        }
    }
    call_dirty(call, (uint64_t)deleted);
    reply_integer(&call->reply, deleted);
}

void hincrby_command(struct call *call) {
    struct entry e;
    bool fresh;
    int64_t by, n = 0;
    struct bytes old;
    if (!args_i64(call, 3, &by) || !find_or_add(call, &e, &fresh)) {
        return;
    }
    if (hash_get(&e.value, call->argv[2], &old) && !number_parse_i64(old, &n)) {
        reply_error(&call->reply, "ERR hash value is not an integer");
    } else if (__builtin_add_overflow(n, by, &n)) {
        reply_error(&call->reply, "ERR increment or decrement would overflow");
    } else {
        char text[NUMBER_I64_MAX_LEN];
        if (set_field(call, &e, fresh, call->argv[2], BYTES(text, number_format_i64(text, n)))) {
            reply_integer(&call->reply, n);
        }
    }
}

void hincrbyfloat_command(struct call *call) {
    struct entry e;
    bool fresh;
    long double by, n = 0;
    struct bytes old;
    if (!args_real(call, 3, &by)) {
        return;
    }
    if (isnan(by) || isinf(by)) {
        reply_error(&call->reply, "ERR value is NaN or Infinity");
        return;
    }
    if (!find_or_add(call, &e, &fresh)) {
        return;
    }
    if (hash_get(&e.value, call->argv[2], &old) && !number_parse_real(old, &n)) {
        reply_error(&call->reply, "ERR hash value is not a float");
        return;
    }
    n += by;
    if (isnan(n) || isinf(n)) {
        undo_add(&e, fresh);
        reply_error(&call->reply, "ERR increment would produce NaN or Infinity");
        return;
    }
    char text[NUMBER_REAL_MAX_LEN];
    struct bytes sum = BYTES(text, number_format_real(text, n));
    if (set_field(call, &e, fresh, call->argv[2], sum)) {
        reply_bulk(&call->reply, sum);
    }
}

/* ---- reading ------------------------------------------------------------------------------- */

static void reply_field(struct call *call, const struct entry *e, struct bytes field) {
    struct bytes value;
    if (hash_get(&e->value, field, &value)) {
        reply_bulk(&call->reply, value);
    } else {
        reply_null(&call->reply);
    }
}

void hget_command(struct call *call) {
    struct entry e;
    enum lookup found = find_hash(call, &e);
    if (found == LOOKUP_FOUND) {
        reply_field(call, &e, call->argv[2]);
    } else if (found == LOOKUP_ABSENT) {
        reply_null(&call->reply);
    }
}

void hmget_command(struct call *call) {
    struct entry e;
    enum lookup found = find_hash(call, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    reply_array(&call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++) {
        if (found == LOOKUP_ABSENT) {
            reply_null(&call->reply);
            continue;
        }
        if ((i - 2) % LOOKUP_GROUP == 0) {
            lookup_prefetch_members(call, &e.value, i, 1);
        }
        reply_field(call, &e, call->argv[i]);
    }
}

void hlen_command(struct call *call) {
    struct entry e;
    enum lookup found = find_hash(call, &e);
    if (found != LOOKUP_REFUSED) {
        reply_integer(&call->reply, found == LOOKUP_FOUND ? (int64_t)hash_count(&e.value) : 0);
    }
}

void hexists_command(struct call *call) {
    struct entry e;
    struct bytes value;
    enum lookup found = find_hash(call, &e);
    if (found != LOOKUP_REFUSED) {
        reply_integer(&call->reply,
                      found == LOOKUP_FOUND && hash_get(&e.value, call->argv[2], &value));
    }
}

void hstrlen_command(struct call *call) {
    struct entry e;
    struct bytes value = {0};
    enum lookup found = find_hash(call, &e);
    if (found != LOOKUP_REFUSED) {
        bool there = found == LOOKUP_FOUND && hash_get(&e.value, call->argv[2], &value);
        reply_integer(&call->reply, there ? (int64_t)value.len : 0);
    }
}

enum part { PART_FIELDS = 1, PART_VALUES = 2 };

static void reply_all(struct call *call, unsigned parts) {
    struct entry e;
    struct reply *r = &call->reply;
    enum lookup found = find_hash(call, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    size_t count = found == LOOKUP_FOUND ? hash_count(&e.value) : 0;
    if (parts == (PART_FIELDS | PART_VALUES)) {
        reply_map(r, count);
    } else {
        reply_array(r, count);
    }
    struct hash_pair pairs[PAIR_BATCH];
    uint64_t position = 0;
    size_t got;
    while (found == LOOKUP_FOUND &&
           (got = hash_next(&e.value, &position, pairs, PAIR_BATCH)) != 0) {
        for (size_t i = 0; i < got; i++) {
            if (parts & PART_FIELDS) {
                reply_bulk(r, pairs[i].field);
            }
            if (parts & PART_VALUES) {
                reply_bulk(r, pairs[i].value);
            }
        }
    }
}

void hgetall_command(struct call *call) {
    reply_all(call, PART_FIELDS | PART_VALUES);
}

void hkeys_command(struct call *call) {
    reply_all(call, PART_FIELDS);
}

void hvals_command(struct call *call) {
    reply_all(call, PART_VALUES);
}

/* ---- HSCAN --------------------------------------------------------------------------------- */

struct hscan {
    struct reply *reply;
    const struct scan_options *options;
    size_t emitted;
};

static void hscan_visit(void *arg, struct bytes field, struct bytes value) {
    struct hscan *scan = arg;
    if (!scan_matches(scan->options, field)) {
        return;
    }
    reply_bulk(scan->reply, field);
    scan->emitted++;
    if (!scan->options->no_values) {
        reply_bulk(scan->reply, value);
        scan->emitted++;
    }
}

void hscan_command(struct call *call) {
    uint64_t cursor;
    struct scan_options options;
    struct entry e;
    if (!args_cursor(call, 2, &cursor)) {
        return;
    }
    enum lookup found = find_hash(call, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_ABSENT) {
        scan_reply_empty(&call->reply);
        return;
    }
    if (!scan_parse(call, 3, SCAN_HASH, &options)) {
        return;
    }
    size_t mark = scan_reply_begin(&call->reply);
    struct hscan scan = {&call->reply, &options, 0};
    cursor = hash_scan(&e.value, cursor, options.count, hscan_visit, &scan);
    scan_reply_end(&call->reply, mark, cursor, scan.emitted);
}

/* ---- HRANDFIELD ---------------------------------------------------------------------------- */

/* RESP3 sends pairs, RESP2 a flat list. */
static void reply_random_pair(struct reply *r, const struct hash_pair *pair, bool with_values) {
    if (with_values && r->proto == 3) {
        reply_array(r, 2);
    }
    reply_bulk(r, pair->field);
    if (with_values) {
        reply_bulk(r, pair->value);
    }
}

static void reply_random_header(struct reply *r, size_t count, bool with_values) {
    reply_array(r, with_values && r->proto == 2 ? count * 2 : count);
}

/* Repeats allowed: `count` independent picks. */
static void random_with_repeats(struct call *call, const struct entry *e, uint64_t count,
                                bool with_values) {
    reply_random_header(&call->reply, count, with_values);
    for (uint64_t i = 0; i < count && !call->reply.out->failed; i++) {
        struct hash_pair pair;
        hash_random(&e->value, &call->cx->rng, &pair);
        reply_random_pair(&call->reply, &pair, with_values);
    }
}

/* Distinct fields, `count` of them out of `size`, in one walk. */
static void random_distinct(struct call *call, const struct entry *e, uint64_t count, uint64_t size,
                            bool with_values) {
    struct hash_pair pairs[PAIR_BATCH];
    uint64_t position = 0, left = size, wanted = count;
    size_t got;
    reply_random_header(&call->reply, count, with_values);
    while (wanted > 0 && (got = hash_next(&e->value, &position, pairs, PAIR_BATCH)) != 0) {
        for (size_t i = 0; i < got && wanted > 0; i++) {
            if (sample_take(&call->cx->rng, &left, &wanted)) {
                reply_random_pair(&call->reply, &pairs[i], with_values);
            }
        }
    }
}

/* Distinct fields of a table when they are few among many, or the walk when memory is short. Picks
 * are told apart by where their field lies, which no write changes meanwhile. */
static void random_few(struct call *call, const struct entry *e, uint64_t count, uint64_t size,
                       bool with_values) {
    struct picks picks;
    if (!picks_init(&picks, count)) {
        random_distinct(call, e, count, size, with_values);
        return;
    }
    reply_random_header(&call->reply, count, with_values);
    for (uint64_t picked = 0; picked < count;) {
        struct hash_pair pair;
        hash_random(&e->value, &call->cx->rng, &pair);
        if (picks_add(&picks, (uintptr_t)pair.field.ptr)) {
            reply_random_pair(&call->reply, &pair, with_values);
            picked++;
        }
    }
    picks_deinit(&picks);
}

static void random_many(struct call *call, int64_t wanted, bool with_values) {
    struct entry e;
    enum lookup found = find_hash(call, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_ABSENT || wanted == 0) {
        reply_array(&call->reply, 0);
        return;
    }
    uint64_t size = hash_count(&e.value);
    uint64_t count = wanted < 0 ? (uint64_t)-wanted : (uint64_t)wanted;
    if (wanted < 0) {
        random_with_repeats(call, &e, count, with_values);
    } else if (value_has_index(&e.value) && sample_is_few(count, size)) {
        random_few(call, &e, count, size, with_values);
    } else {
        random_distinct(call, &e, count < size ? count : size, size, with_values);
    }
}

void hrandfield_command(struct call *call) {
    if (call->argc == 2) {
        struct entry e;
        enum lookup found = find_hash(call, &e);
        if (found == LOOKUP_ABSENT) {
            reply_null(&call->reply);
        } else if (found == LOOKUP_FOUND) {
            struct hash_pair pair;
            hash_random(&e.value, &call->cx->rng, &pair);
            reply_bulk(&call->reply, pair.field);
        }
        return;
    }
    int64_t wanted;
    bool with_values = call->argc == 4 && args_is(call, 3, "WITHVALUES");
    if (!args_i64_range(call, 2, -INT64_MAX, INT64_MAX, &wanted, NULL)) {
        return;
    }
    if (call->argc > 4 || (call->argc == 4 && !with_values)) {
        args_syntax_error(call);
        return;
    }
    if (with_values && (wanted < -INT64_MAX / 2 || wanted > INT64_MAX / 2)) {
        reply_error(&call->reply, "ERR value is out of range");
        return;
    }
    random_many(call, wanted, with_values);
}
