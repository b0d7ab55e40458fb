/* SPDX-License-Identifier: BSD-3-Clause */
/* Members taken from one end: ZPOPMIN, ZPOPMAX, ZMPOP, and their forms that wait. */
#include "base/hash.h"
#include "cmd/args.h"
#include "cmd/block.h"
#include "handlers_priv.h"
#include "zset_priv.h"

/* What to take, and how the reply names it. */
struct pop {
    uint64_t count;
    bool from_max;
    bool nested; /* [key, [[member, score], ...]], of ZMPOP; else [key, member, score] */
};

/* ---- taking --------------------------------------------------------------------------------- */

static void reply_popped(struct reply *r, const struct zset_entry *entry, bool nested) {
    if (nested) {
        reply_array(r, 2);
    }
    reply_bulk(r, entry->member);
    reply_double(r, entry->score);
}

/* Reply up to pop->count entries and remove them, the key with the last one. Nothing is removed
 * when the reply did not fit into memory: the client would never know of it. How many. */
static uint64_t take(struct entry *e, const struct pop *pop, bool nested, struct reply *r) {
    struct zset_entry batch[ZSET_BATCH];
    struct zset_iter it;
    uint64_t size = zset_count(&e->value);
    uint64_t count = pop->count < size ? pop->count : size;
    zset_iter_init(&it, &e->value, pop->from_max ? size - 1 : 0, pop->from_max);
    for (uint64_t left = count; left > 0;) {
        size_t got = zset_fetch(&it, batch, left < ZSET_BATCH ? (size_t)left : ZSET_BATCH);
        for (size_t i = 0; i < got; i++) {
            reply_popped(r, &batch[i], nested);
        }
        left -= got;
    }
    if (UNLIKELY(r->out->failed)) {
        return 0;
    }
    if (count == size) {
        entry_delete(e);
    } else {
        zset_delete_range(&e->value, pop->from_max ? size - count : 0, count);
    }
    return count;
}

/* The reply of commands that name several keys. */
static uint64_t take_with_key(struct entry *e, struct bytes key, const struct pop *pop,
                              struct reply *r) {
    uint64_t size = zset_count(&e->value);
    reply_array(r, pop->nested ? 2 : 3);
    reply_bulk(r, key);
    if (pop->nested) {
        reply_array(r, pop->count < size ? pop->count : size);
    }
    return take(e, pop, pop->nested, r);
}

/* ---- ZPOPMIN, ZPOPMAX ----------------------------------------------------------------------- */

static void pop_one_key(struct call *call, bool from_max) {
    struct entry e;
    int64_t count = 1;
    bool counted = call->argc == 3;
    if (call->argc > 3) {
        args_syntax_error(call);
        return;
    }
    if (counted && !args_count(call, 2, &count)) {
        return;
    }
    enum lookup found = zset_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_ABSENT || count == 0) {
        reply_array(&call->reply, 0);
        return;
    }
    struct pop pop = {.count = (uint64_t)count, .from_max = from_max};
    uint64_t size = zset_count(&e.value);
    bool nested = counted && call->reply.proto == 3;
    uint64_t pairs = pop.count < size ? pop.count : size;
    reply_array(&call->reply, nested ? pairs : pairs * 2);
    call_dirty(call, take(&e, &pop, nested, &call->reply));
}

void zpopmin_command(struct call *call) {
    pop_one_key(call, false);
}

void zpopmax_command(struct call *call) {
    pop_one_key(call, true);
}

/* ---- the first of several keys -------------------------------------------------------------- */

/* Take from the first of the keys that holds something. True: replied, be it an error. */
static bool pop_first(struct call *call, size_t first_key, size_t count, const struct pop *pop) {
    for (size_t i = first_key; i < first_key + count; i++) {
        struct entry e;
        enum lookup found = zset_find(call, i, &e);
        if (found == LOOKUP_FOUND) {
            call_dirty(call, take_with_key(&e, call->argv[i], pop, &call->reply));
        }
        if (found != LOOKUP_ABSENT) {
            return true;
        }
    }
    return false;
}

static struct pop pop_of(const struct args_mpop *args) {
    return (struct pop){.count = args->count, .from_max = args->second, .nested = true};
}

void zmpop_command(struct call *call) {
    struct args_mpop args;
    if (!args_mpop(call, 1, "MIN", "MAX", &args)) {
        return;
    }
    struct pop pop = pop_of(&args);
    if (!pop_first(call, args.first_key, args.key_count, &pop)) {
        reply_null_array(&call->reply);
    }
}

/* ---- waiting -------------------------------------------------------------------------------- */

static bool serve(struct cmd_context *cx, struct db *db, struct bytes key, struct bytes payload,
                  struct reply *r) {
    struct pop pop;
    struct entry e;
    memcpy(&pop, payload.ptr, sizeof(pop));
    if (!db_find(db, key, hash_bytes(key), DB_TOUCH, &e) || e.value.type != VALUE_ZSET) {
        return false;
    }
    cx->dbs->stats.dirty += take_with_key(&e, key, &pop, r);
    return true;
}

static void time_out(struct reply *r) {
    reply_null_array(r);
}

static const struct block_ops pop_ops = {.serve = serve, .time_out = time_out};

static void pop_or_wait(struct call *call, size_t first_key, size_t count, int64_t timeout_ms,
                        const struct pop *pop) {
    if (!pop_first(call, first_key, count, pop)) {
        block_client(call, first_key, count, timeout_ms, &pop_ops,
                     BYTES((const char *)pop, sizeof(*pop)));
    }
}

static void bzpop(struct call *call, bool from_max) {
    struct pop pop = {.count = 1, .from_max = from_max};
    int64_t timeout_ms;
    if (block_parse_timeout(call, call->argc - 1, &timeout_ms)) {
        pop_or_wait(call, 1, call->argc - 2, timeout_ms, &pop);
    }
}

void bzpopmin_command(struct call *call) {
    bzpop(call, false);
}

void bzpopmax_command(struct call *call) {
    bzpop(call, true);
}

void bzmpop_command(struct call *call) {
    struct args_mpop args;
    int64_t timeout_ms;
    if (args_mpop(call, 2, "MIN", "MAX", &args) && block_parse_timeout(call, 1, &timeout_ms)) {
        struct pop pop = pop_of(&args);
        pop_or_wait(call, args.first_key, args.key_count, timeout_ms, &pop);
    }
}
