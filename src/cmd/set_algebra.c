/* SPDX-License-Identifier: BSD-3-Clause */
/* Union, intersection and difference of sets.
 *
 *   intersection  the smallest set walked in batches, each batch probed in the others: O(smallest x
 *                 sets)
 *   difference    the first set walked, probed in the others; where they are many and small against
 *                 it, in their union. Either way O(members of all)
 *   union         all put into a new set
 *
 * What passes goes straight into the reply or into the set that will be stored, whose members tell
 * repeats. Nothing is written to the database before the result is complete. */
#include "base/hash.h"
#include "cmd/args.h"
#include "cmd/table.h"
#include "handlers_priv.h"
#include "mem/account.h"
#include "scratch_priv.h"
#include "set_priv.h"
#include "sources_priv.h"

/* Adding a member to a set costs about as much as probing for this many. */
#define PROBES_PER_ADD 6

enum algebra_op { OP_UNION, OP_INTER, OP_DIFF };

struct algebra {
    enum algebra_op op;
    bool store; /* into the key at argument 1 */
    bool only_count;
    uint64_t limit; /* of SINTERCARD; 0: none */
    struct source *sources;
    size_t source_count;
};

/* ---- where members go ----------------------------------------------------------------------- */

struct sink {
    struct reply *reply; /* NULL: not there */
    struct value *set;   /* NULL: not there */
    uint64_t count;      /* members that came */
};

/* A batch with the hashes of its members. */
struct batch {
    struct set_batch set;
    uint64_t hashes[SET_BATCH];
};

static bool batch_next(struct batch *b, const struct value *v, uint64_t *position) {
    if (!set_batch_next(&b->set, v, position)) {
        return false;
    }
    for (size_t i = 0; i < b->set.count; i++) {
        b->hashes[i] = hash_bytes(b->set.members[i]);
    }
    return true;
}

static enum status sink_batch(struct sink *sink, const struct batch *b) {
    enum status st = ST_OK;
    sink->count += b->set.count;
    if (sink->set != NULL) {
        lookup_prefetch_hashed(sink->set, b->hashes, b->set.count);
    }
    for (size_t i = 0; i < b->set.count && st == ST_OK; i++) {
        if (sink->reply != NULL) {
            reply_bulk(sink->reply, b->set.members[i]);
        }
        if (sink->set != NULL) {
            st = set_add(sink->set, b->set.members[i], NULL);
        }
    }
    return st;
}

/* ---- walks ---------------------------------------------------------------------------------- */

/* Keep what is in v too, or what is not. */
static void batch_filter(struct batch *b, const struct value *v, bool keep_common) {
    size_t kept = 0;
    lookup_prefetch_hashed(v, b->hashes, b->set.count);
    for (size_t i = 0; i < b->set.count; i++) {
        if (set_contains(v, b->set.members[i]) == keep_common) {
            b->set.members[kept] = b->set.members[i];
            b->hashes[kept++] = b->hashes[i];
        }
    }
    b->set.count = kept;
}

/* Walk the first source and pass it through the others, up to the limit. */
static enum status filter_first(const struct source *sources, size_t count, bool keep_common,
                                uint64_t limit, struct sink *sink) {
    struct batch b;
    uint64_t position = 0;
    enum status st = ST_OK;
    if (sources[0].count == 0) {
        return ST_OK;
    }
    while (st == ST_OK && (limit == 0 || sink->count < limit) &&
           batch_next(&b, &sources[0].value, &position)) {
        for (size_t k = 1; k < count && b.set.count > 0; k++) {
            if (sources[k].count > 0) {
                batch_filter(&b, &sources[k].value, keep_common);
            }
        }
        st = sink_batch(sink, &b);
    }
    return st;
}

static enum status sink_all(const struct source *sources, size_t count, struct sink *sink) {
    enum status st = ST_OK;
    for (size_t k = 0; k < count && st == ST_OK; k++) {
        st = filter_first(&sources[k], 1, true, 0, sink);
    }
    return st;
}

static enum status empty_set(struct scratch *s, const struct call *call) {
    struct value_image empty;
    set_empty_image(true, &empty);
    return scratch_init(s, call, VALUE_SET, &empty);
}

/* The first set without the union of the others. */
static enum status subtract_union(const struct call *call, const struct algebra *a,
                                  struct sink *sink) {
    struct scratch others;
    enum status st = empty_set(&others, call);
    if (st != ST_OK) {
        return st;
    }
    struct sink into = {.set = &others.value};
    st = sink_all(a->sources + 1, a->source_count - 1, &into);
    if (st == ST_OK) {
        struct source two[2] = {a->sources[0],
                                {.value = others.value, .count = set_count(&others.value)}};
        st = filter_first(two, 2, false, 0, sink);
    }
    scratch_deinit(&others);
    return st;
}

static enum status subtract(const struct call *call, const struct algebra *a, struct sink *sink) {
    uint64_t others = 0, members = 0;
    for (size_t k = 1; k < a->source_count; k++) {
        others += a->sources[k].count > 0;
        members += a->sources[k].count;
    }
    if (others > 1 && a->sources[0].count > members / (others - 1) * PROBES_PER_ADD) {
        return subtract_union(call, a, sink);
    }
    return filter_first(a->sources, a->source_count, false, 0, sink);
}

/* A union must be collected to tell repeats, unless at most one source has members. */
static bool is_collected(const struct algebra *a) {
    size_t with_members = 0;
    for (size_t k = 0; k < a->source_count; k++) {
        with_members += a->sources[k].count > 0;
    }
    return a->op == OP_UNION && with_members > 1;
}

static enum status combine(const struct call *call, const struct algebra *a, struct sink *sink) {
    switch (a->op) {
    case OP_UNION:
        return sink_all(a->sources, a->source_count, sink);
    case OP_INTER:
        sources_sort(a->sources, a->source_count);
        return filter_first(a->sources, a->source_count, true, a->limit, sink);
    default:
        return subtract(call, a, sink);
    }
}

/* ---- results -------------------------------------------------------------------------------- */

static void count_members(struct call *call, const struct algebra *a) {
    struct sink sink = {0};
    enum status st = combine(call, a, &sink);
    assert(st == ST_OK); /* counting takes no memory */
    (void)st;
    bool cut = a->limit != 0 && sink.count > a->limit;
    reply_integer(&call->reply, (int64_t)(cut ? a->limit : sink.count));
}

static void reply_straight(struct call *call, const struct algebra *a) {
    struct sink sink = {.reply = &call->reply};
    size_t start = call->reply.out->len, mark = reply_defer(&call->reply);
    enum status st = combine(call, a, &sink);
    if (st != ST_OK) {
        call->reply.out->len = start;
        args_status_error(call, st);
        return;
    }
    reply_defer_set(&call->reply, mark, sink.count);
}

/* The set in s, or nothing when it is empty, takes the place of the key at argument 1. */
static enum status store(struct call *call, struct scratch *s) {
    struct entry e;
    uint64_t count = set_count(&s->value);
    if (count > 0) {
        enum status st = scratch_store(s, call, 1, DB_NO_EXPIRY);
        if (st != ST_OK) {
            return st;
        }
        call_dirty(call, 1);
    } else if (lookup_key(call, 1, DB_NO_TOUCH, &e)) {
        entry_delete(&e);
        call_dirty(call, 1);
    }
    reply_integer(&call->reply, (int64_t)count);
    return ST_OK;
}

static enum status collect(struct call *call, const struct algebra *a) {
    struct scratch result;
    enum status st = empty_set(&result, call);
    if (st != ST_OK) {
        return st;
    }
    struct sink sink = {.set = &result.value};
    st = combine(call, a, &sink);
    if (st == ST_OK && a->store) {
        st = store(call, &result);
    } else if (st == ST_OK) {
        reply_set(&call->reply, set_count(&result.value));
        set_reply_members(&call->reply, &result.value);
    }
    scratch_deinit(&result);
    return st;
}

static void run(struct call *call, const struct algebra *a) {
    if (a->only_count) {
        count_members(call, a);
    } else if (!a->store && !is_collected(a)) {
        reply_straight(call, a);
    } else {
        enum status st = collect(call, a);
        if (st != ST_OK) {
            args_status_error(call, st);
        }
    }
}

/* ---- commands ------------------------------------------------------------------------------- */

/* Of count keys at argument first and behind. */
static void run_on_keys(struct call *call, size_t first, size_t count, struct algebra a) {
    a.source_count = count;
    a.sources = account_alloc(ACCOUNT_OTHER, count * sizeof(*a.sources));
    if (a.sources == NULL) {
        args_nomem(call);
        return;
    }
    if (sources_find(call, first, a.sources, count, false)) {
        run(call, &a);
    }
    account_free(ACCOUNT_OTHER, a.sources);
}

/* [destination] key [key ...] */
static void run_on_rest(struct call *call, struct algebra a) {
    size_t first = a.store ? 2 : 1;
    run_on_keys(call, first, call->argc - first, a);
}

void sunion_command(struct call *call) {
    run_on_rest(call, (struct algebra){.op = OP_UNION});
}

void sinter_command(struct call *call) {
    run_on_rest(call, (struct algebra){.op = OP_INTER});
}

void sdiff_command(struct call *call) {
    run_on_rest(call, (struct algebra){.op = OP_DIFF});
}

void sunionstore_command(struct call *call) {
    run_on_rest(call, (struct algebra){.op = OP_UNION, .store = true});
}

void sinterstore_command(struct call *call) {
    run_on_rest(call, (struct algebra){.op = OP_INTER, .store = true});
}

void sdiffstore_command(struct call *call) {
    run_on_rest(call, (struct algebra){.op = OP_DIFF, .store = true});
}

/* numkeys key [key ...] [LIMIT limit] */
void sintercard_command(struct call *call) {
    int64_t keys, limit = 0;
    if (!args_i64_range(call, 1, 1, INT64_MAX, &keys, "ERR numkeys should be greater than 0")) {
        return;
    }
    if ((uint64_t)keys > call->argc - 2) {
        reply_error(&call->reply, "ERR Number of keys can't be greater than number of args");
        return;
    }
    for (size_t i = 2 + (size_t)keys; i < call->argc; i += 2) {
        if (!args_is(call, i, "LIMIT") || i + 1 >= call->argc) {
            args_syntax_error(call);
            return;
        }
        if (!args_i64_range(call, i + 1, 0, INT64_MAX, &limit, "ERR LIMIT can't be negative")) {
            return;
        }
    }
    struct algebra a = {.op = OP_INTER, .only_count = true, .limit = (uint64_t)limit};
    run_on_keys(call, 2, (size_t)keys, a);
}
