/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on one set at a time, and SMOVE. */
#include "types/set.h"

#include "base/number.h"
#include "cmd/args.h"
#include "cmd/scan.h"
#include "handlers_priv.h"
#include "set_priv.h"

/* ---- finding and making --------------------------------------------------------------------- */

/* The set at argument i, made empty when absent: for integers if the first member to come is one.
 * *fresh: it was. False: refused or OOM, replied. */
static bool find_or_add(struct call *call, size_t i, struct bytes first, struct entry *e,
                        bool *fresh) {
    int64_t n;
    struct value_image empty;
    enum lookup found = set_find(call, i, e);
    *fresh = found == LOOKUP_ABSENT;
    if (found != LOOKUP_ABSENT) {
        return found == LOOKUP_FOUND;
    }
    set_empty_image(number_parse_i64(first, &n), &empty);
    enum status st = db_add(call_db(call), call->argv[i], lookup_hash(call, i), VALUE_SET, &empty,
                            DB_NO_EXPIRY, e);
    if (st != ST_OK) {
        args_status_error(call, st);
    }
    return st == ST_OK;
}

/* A write on e failed before anything was in it: a key made for it goes again. */
static void undo_add(struct entry *e, bool fresh) {
    if (fresh && set_count(&e->value) == 0) {
        entry_delete(e);
    }
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Memory can run out half-way: the members added by then stay, and the error tells how many of the
 * arguments were taken. */
void sadd_command(struct call *call) {
    struct entry e;
    bool fresh;
    int64_t added_count = 0;
    if (!find_or_add(call, 1, call->argv[2], &e, &fresh)) {
        return;
    }
    for (size_t i = 2; i < call->argc; i++) {
        bool added;
        if ((i - 2) % LOOKUP_GROUP == 0) {
            lookup_prefetch_members(call, &e.value, i, 1);
        }
        if (set_add(&e.value, call->argv[i], &added) != ST_OK) {
            undo_add(&e, fresh);
            call_dirty(call, (uint64_t)added_count);
            reply_errorf(&call->reply, "OOM out of memory, %zu of %zu members were set", i - 2,
                         call->argc - 2);
            return;
        }
        added_count += added;
    }
    call_dirty(call, (uint64_t)added_count);
    reply_integer(&call->reply, added_count);
}

void srem_command(struct call *call) {
    struct entry e;
    int64_t removed = 0;
    enum lookup found = set_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    for (size_t i = 2; found == LOOKUP_FOUND && i < call->argc; i++) {
        if ((i - 2) % LOOKUP_GROUP == 0) {
            lookup_prefetch_members(call, &e.value, i, 1);
        }
        removed += set_remove(&e.value, call->argv[i]);
        if (set_count(&e.value) == 0) {
            entry_delete(&e);
            break;
        }
    }
    call_dirty(call, (uint64_t)removed);
    reply_integer(&call->reply, removed);
}

/* Put the member into the set at argument 2; false: replied that memory is short. */
static bool move_in(struct call *call, struct bytes member) {
    struct entry e;
    bool fresh, added;
    if (!find_or_add(call, 2, member, &e, &fresh)) {
        return false;
    }
    enum status st = set_add(&e.value, member, &added);
    if (st != ST_OK) {
        undo_add(&e, fresh);
        args_status_error(call, st);
        return false;
    }
    call_dirty(call, 1 + (uint64_t)added);
    return true;
}

/* Looked up afresh: writing to the other key may have moved this one. */
static void move_out(struct call *call, struct bytes member) {
    struct entry e;
    if (lookup_key(call, 1, DB_NO_TOUCH, &e) && set_remove(&e.value, member) &&
        set_count(&e.value) == 0) {
        entry_delete(&e);
    }
}

/* In first, then out: when memory is short nothing has changed. */
void smove_command(struct call *call) {
    struct entry from, to;
    struct bytes member = call->argv[3];
    enum lookup found = set_find(call, 1, &from);
    if (found == LOOKUP_ABSENT) {
        reply_integer(&call->reply, 0);
    }
    if (found != LOOKUP_FOUND || set_find(call, 2, &to) == LOOKUP_REFUSED) {
        return;
    }
    if (!lookup_key(call, 1, DB_NO_TOUCH, &from) || !set_contains(&from.value, member)) {
        reply_integer(&call->reply, 0);
        return;
    }
    if (!bytes_equal(call->argv[1], call->argv[2])) {
        if (!move_in(call, member)) {
            return;
        }
        move_out(call, member);
    }
    reply_integer(&call->reply, 1);
}

/* ---- reading -------------------------------------------------------------------------------- */

void scard_command(struct call *call) {
    struct entry e;
    enum lookup found = set_find(call, 1, &e);
    if (found != LOOKUP_REFUSED) {
        reply_integer(&call->reply, found == LOOKUP_FOUND ? (int64_t)set_count(&e.value) : 0);
    }
}

void sismember_command(struct call *call) {
    struct entry e;
    enum lookup found = set_find(call, 1, &e);
    if (found != LOOKUP_REFUSED) {
        reply_integer(&call->reply, found == LOOKUP_FOUND && set_contains(&e.value, call->argv[2]));
    }
}

void smismember_command(struct call *call) {
    struct entry e;
    enum lookup found = set_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    reply_array(&call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++) {
        if (found == LOOKUP_FOUND && (i - 2) % LOOKUP_GROUP == 0) {
            lookup_prefetch_members(call, &e.value, i, 1);
        }
        reply_integer(&call->reply, found == LOOKUP_FOUND && set_contains(&e.value, call->argv[i]));
    }
}

void set_reply_members(struct reply *r, const struct value *v) {
    struct set_batch b;
    uint64_t position = 0;
    while (set_batch_next(&b, v, &position)) {
        for (size_t i = 0; i < b.count; i++) {
            reply_bulk(r, b.members[i]);
        }
    }
}

void smembers_command(struct call *call) {
    struct entry e;
    enum lookup found = set_find(call, 1, &e);
    if (found == LOOKUP_FOUND) {
        reply_set(&call->reply, set_count(&e.value));
        set_reply_members(&call->reply, &e.value);
    } else if (found == LOOKUP_ABSENT) {
        reply_set(&call->reply, 0);
    }
}

/* ---- SSCAN ---------------------------------------------------------------------------------- */

struct sscan {
    struct reply *reply;
    const struct scan_options *options;
    size_t emitted;
};

static void sscan_visit(void *arg, struct bytes member) {
    struct sscan *scan = arg;
    if (scan_matches(scan->options, member)) {
        reply_bulk(scan->reply, member);
        scan->emitted++;
    }
}

void sscan_command(struct call *call) {
    uint64_t cursor;
    struct scan_options options;
    struct entry e;
    if (!args_cursor(call, 2, &cursor)) {
        return;
    }
    enum lookup found = set_find(call, 1, &e);
    if (found == LOOKUP_ABSENT) {
        scan_reply_empty(&call->reply);
    }
    if (found != LOOKUP_FOUND || !scan_parse(call, 3, SCAN_SET, &options)) {
        return;
    }
    size_t mark = scan_reply_begin(&call->reply);
    struct sscan scan = {&call->reply, &options, 0};
    cursor = set_scan(&e.value, cursor, options.count, sscan_visit, &scan);
    scan_reply_end(&call->reply, mark, cursor, scan.emitted);
}
