/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on keys, whatever they hold. Times to live are in cmd/ttl.c. */
#include "base/hash.h"
#include "base/number.h"
#include "cmd/args.h"
#include "cmd/block.h"
#include "cmd/lookup.h"
#include "cmd/scan.h"
#include "handlers_priv.h"

/* ---- counting and removing ------------------------------------------------------------------ */

/* Call fn for each key that is there, groups of them fetched side by side; the number of those. */
static int64_t for_each_key(struct call *call, enum db_touch touch, void (*fn)(struct entry *e)) {
    uint64_t hashes[LOOKUP_GROUP];
    int64_t count = 0;
    for (size_t i = 1; i < call->argc; i++) {
        size_t in_group = (i - 1) % LOOKUP_GROUP;
        if (in_group == 0) {
            lookup_prefetch(call, i, 1, hashes);
        }
        struct entry e;
        if (db_find(call_db(call), call->argv[i], hashes[in_group], touch, &e)) {
            count++;
            if (fn != NULL) {
                fn(&e);
            }
        }
    }
    return count;
}

/* Big values are freed in the background either way: DEL and UNLINK are the same here. */
static void delete_keys(struct call *call) {
    int64_t deleted = for_each_key(call, DB_NO_TOUCH, entry_delete);
    call_dirty(call, (uint64_t)deleted);
    reply_integer(&call->reply, deleted);
}

void del_command(struct call *call) {
    delete_keys(call);
}

void unlink_command(struct call *call) {
    delete_keys(call);
}

void exists_command(struct call *call) {
    reply_integer(&call->reply, for_each_key(call, DB_NO_TOUCH, NULL));
}

void touch_command(struct call *call) {
    reply_integer(&call->reply, for_each_key(call, DB_TOUCH, NULL));
}

void type_command(struct call *call) {
    struct entry e;
    bool found = lookup_key(call, 1, DB_NO_TOUCH, &e);
    reply_simple(&call->reply, found ? value_type_name(e.value.type) : "none");
}

/* ---- moving -------------------------------------------------------------------------------- */

static void rename_key(struct call *call, bool only_if_absent) {
    struct entry e, target;
    bool same = bytes_equal(call->argv[1], call->argv[2]);
    bool taken = only_if_absent && lookup_key(call, 2, DB_NO_TOUCH, &target);
    if (!lookup_key(call, 1, DB_NO_TOUCH, &e)) {
        args_no_such_key(call);
        return;
    }
    if (taken) {
        reply_integer(&call->reply, 0);
        return;
    }
    if (!same) {
        enum status st = entry_move(&e, call_db(call), call->argv[2], hash_bytes(call->argv[2]));
        if (st != ST_OK) {
            args_status_error(call, st);
            return;
        }
        call_dirty(call, 1);
        block_signal_key(call->cx, call_db(call), call->argv[2]);
    }
    if (only_if_absent) {
        reply_integer(&call->reply, 1);
    } else {
        reply_ok(&call->reply);
    }
}

void rename_command(struct call *call) {
    rename_key(call, false);
}

void renamenx_command(struct call *call) {
    rename_key(call, true);
}

/* A database number among the arguments; NULL: the error was replied. */
static struct db *args_db(struct call *call, size_t i) {
    int64_t number;
    if (!args_i64_range(call, i, INT32_MIN, INT32_MAX, &number, NULL)) {
        return NULL;
    }
    if (number < 0 || (uint64_t)number >= call->cx->dbs->count) {
        reply_error(&call->reply, "ERR DB index is out of range");
        return NULL;
    }
    return call->cx->dbs->dbs[number];
}

void move_command(struct call *call) {
    struct db *to = args_db(call, 2);
    struct entry e, target;
    if (to == NULL) {
        return;
    }
    if (to == call_db(call)) {
        reply_error(&call->reply, "ERR source and destination objects are the same");
        return;
    }
    uint64_t hash = lookup_hash(call, 1);
    if (!lookup_key(call, 1, DB_NO_TOUCH, &e) ||
        db_find(to, call->argv[1], hash, DB_NO_TOUCH, &target)) {
        reply_integer(&call->reply, 0);
        return;
    }
    enum status st = entry_move(&e, to, call->argv[1], hash);
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    call_dirty(call, 1);
    block_signal_key(call->cx, to, call->argv[1]);
    reply_integer(&call->reply, 1);
}

void copy_command(struct call *call) {
    struct db *to = call_db(call);
    bool replace = false;
    for (size_t i = 3; i < call->argc; i++) {
        if (args_is(call, i, "REPLACE")) {
            replace = true;
        } else if (args_is(call, i, "DB") && i + 1 < call->argc) {
            to = args_db(call, ++i);
            if (to == NULL) {
                return;
            }
        } else {
            args_syntax_error(call);
            return;
        }
    }
    if (to == call_db(call) && bytes_equal(call->argv[1], call->argv[2])) {
        reply_error(&call->reply, "ERR source and destination objects are the same");
        return;
    }
    struct entry e, target;
    uint64_t hash = hash_bytes(call->argv[2]);
    bool taken = db_find(to, call->argv[2], hash, DB_NO_TOUCH, &target);
    if (!lookup_key(call, 1, DB_TOUCH, &e) || (taken && !replace)) {
        reply_integer(&call->reply, 0);
        return;
    }
    enum status st = entry_copy(&e, to, call->argv[2], hash);
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    call_dirty(call, 1);
    block_signal_key(call->cx, to, call->argv[2]);
    reply_integer(&call->reply, 1);
}

/* ---- walking ------------------------------------------------------------------------------- */

struct key_walk {
    struct reply *reply;
    const struct scan_options *options;
    size_t emitted;
};

static void emit_key(void *arg, struct entry *e) {
    struct key_walk *walk = arg;
    const struct scan_options *o = walk->options;
    if ((o->has_type && !bytes_is(o->type, value_type_name(e->value.type))) ||
        !scan_matches(o, e->key)) {
        return;
    }
    reply_bulk(walk->reply, e->key);
    walk->emitted++;
}

void keys_command(struct call *call) {
    struct scan_options options = {.pattern = call->argv[1]};
    options.has_pattern = !bytes_equal(options.pattern, BYTES_LIT("*"));
    struct key_walk walk = {&call->reply, &options, 0};
    size_t mark = reply_defer(&call->reply);
    db_each(call_db(call), emit_key, &walk);
    reply_defer_array(&call->reply, mark, walk.emitted);
}

void scan_command(struct call *call) {
    uint64_t cursor;
    struct scan_options options;
    if (!args_cursor(call, 1, &cursor) || !scan_parse(call, 2, SCAN_KEYS, &options)) {
        return;
    }
    struct key_walk walk = {&call->reply, &options, 0};
    size_t mark = scan_reply_begin(&call->reply);
    cursor = db_scan(call_db(call), cursor, options.count, emit_key, &walk);
    scan_reply_end(&call->reply, mark, cursor, walk.emitted);
}

void randomkey_command(struct call *call) {
    struct entry e;
    if (db_random(call_db(call), &call->cx->rng, &e)) {
        reply_bulk(&call->reply, e.key);
    } else {
        reply_null(&call->reply);
    }
}
