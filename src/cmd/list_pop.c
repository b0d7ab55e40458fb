/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements taken from one end of a list, or moved to another: LPOP, RPOP, LMPOP, LMOVE, RPOPLPUSH.
 * Their forms that wait are in cmd/list_block.c. */
#include "base/hash.h"
#include "cmd/block.h"
#include "handlers_priv.h"
#include "list_priv.h"

/* ---- taking --------------------------------------------------------------------------------- */

static uint64_t at_end(uint64_t size, enum list_end end) {
    return end == LIST_HEAD ? 0 : size - 1;
}

static void reply_from_end(struct reply *r, const struct value *v, enum list_end end,
                           uint64_t count) {
    struct bytes batch[LIST_BATCH];
    struct list_iter it;
    list_iter_init(&it, v, at_end(list_count(v), end), end == LIST_TAIL);
    while (count > 0) {
        size_t got = list_fetch(&it, batch, count < LIST_BATCH ? (size_t)count : LIST_BATCH);
        for (size_t i = 0; i < got; i++) {
            reply_bulk(r, batch[i]);
        }
        count -= got;
    }
}

/* Reply count elements, no more than there are, and remove them; how many were removed. */
static uint64_t take(struct entry *e, enum list_end end, uint64_t count, struct reply *r) {
    uint64_t size = list_count(&e->value);
    struct bytes element;
    if (count == 1 && list_at(&e->value, at_end(size, end), &element)) {
        reply_bulk(r, element);
    } else {
        reply_from_end(r, &e->value, end, count);
    }
    if (UNLIKELY(r->out->failed)) {
        return 0;
    }
    if (count == size) {
        entry_delete(e);
    } else {
        list_remove(&e->value, end == LIST_HEAD ? 0 : size - count, count);
    }
    return count;
}

uint64_t list_take_with_key(struct entry *e, struct bytes key, const struct list_pop *pop,
                            struct reply *r) {
    uint64_t size = list_count(&e->value);
    uint64_t count = pop->count < size ? pop->count : size;
    reply_array(r, 2);
    reply_bulk(r, key);
    if (pop->nested) {
        reply_array(r, count);
    }
    return take(e, pop->end, count, r);
}

/* ---- LPOP, RPOP ----------------------------------------------------------------------------- */

static void pop_one_key(struct call *call, enum list_end end) {
    struct entry e;
    int64_t count = 1;
    bool counted = call->argc == 3;
    if (call->argc > 3) {
        args_wrong_arity(call);
        return;
    }
    if (counted && !args_count(call, 2, &count)) {
        return;
    }
    enum lookup found = list_find(call, 1, &e);
    if (found == LOOKUP_ABSENT && counted) {
        reply_null_array(&call->reply);
    } else if (found == LOOKUP_ABSENT) {
        reply_null(&call->reply);
    }
    if (found != LOOKUP_FOUND) {
        return;
    }
    uint64_t size = list_count(&e.value);
    uint64_t n = (uint64_t)count < size ? (uint64_t)count : size;
    if (counted) {
        reply_array(&call->reply, n);
    }
    if (n > 0) {
        call_dirty(call, take(&e, end, n, &call->reply));
    }
}

void lpop_command(struct call *call) {
    pop_one_key(call, LIST_HEAD);
}

void rpop_command(struct call *call) {
    pop_one_key(call, LIST_TAIL);
}

/* ---- the first of several keys -------------------------------------------------------------- */

bool list_pop_first(struct call *call, size_t first_key, size_t count, const struct list_pop *pop) {
    for (size_t i = first_key; i < first_key + count; i++) {
        struct entry e;
        enum lookup found = list_find(call, i, &e);
        if (found == LOOKUP_FOUND) {
            call_dirty(call, list_take_with_key(&e, call->argv[i], pop, &call->reply));
        }
        if (found != LOOKUP_ABSENT) {
            return true;
        }
    }
    return false;
}

struct list_pop list_pop_of(const struct args_mpop *args) {
    return (struct list_pop){
        .count = args->count, .end = args->second ? LIST_TAIL : LIST_HEAD, .nested = true};
}

void lmpop_command(struct call *call) {
    struct args_mpop args;
    if (!args_mpop(call, 1, "LEFT", "RIGHT", &args)) {
        return;
    }
    struct list_pop pop = list_pop_of(&args);
    if (!list_pop_first(call, args.first_key, args.key_count, &pop)) {
        reply_null_array(&call->reply);
    }
}

/* ---- moving --------------------------------------------------------------------------------- */

static bool parse_end(struct call *call, size_t i, enum list_end *end) {
    bool right = args_is(call, i, "RIGHT");
    if (!right && !args_is(call, i, "LEFT")) {
        args_syntax_error(call);
        return false;
    }
    *end = right ? LIST_TAIL : LIST_HEAD;
    return true;
}

bool list_parse_move(struct call *call, size_t i, struct list_move *move) {
    return parse_end(call, i, &move->from) && parse_end(call, i + 1, &move->to);
}

/* Source and destination are one list. */
static enum status rotate(struct value *v, struct bytes element, const struct list_move *move) {
    if (move->from == move->to) {
        return ST_OK;
    }
    enum status st = list_push(v, move->to, element);
    if (st == ST_OK) {
        list_remove(v, at_end(list_count(v), move->from), 1);
    }
    return st;
}

/* Push to another key than the source, added when absent. */
static enum status push_to(struct db *db, struct bytes key, struct bytes element,
                           enum list_end end) {
    struct entry e;
    uint64_t hash = hash_bytes(key);
    bool added = !db_find(db, key, hash, DB_NO_TOUCH, &e);
    enum status st = added ? list_add_key(db, key, hash, &e) : ST_OK;
    if (st != ST_OK) {
        return st;
    }
    st = list_push(&e.value, end, element);
    if (st != ST_OK && added) {
        entry_delete(&e);
    }
    return st;
}

/* Remove what was moved. The entry that the element was read from does not outlive the push. */
static void remove_moved(struct db *db, struct bytes key, enum list_end end) {
    struct entry e;
    if (!db_find(db, key, hash_bytes(key), DB_TOUCH, &e)) {
        return;
    }
    uint64_t size = list_count(&e.value);
    if (size == 1) {
        entry_delete(&e);
    } else {
        list_remove(&e.value, at_end(size, end), 1);
    }
}

/* The reply comes first: it holds the element while both lists change. */
static enum status move_element(struct db *db, struct bytes source, struct bytes destination,
                                const struct list_move *move, struct reply *r) {
    struct entry e;
    struct bytes element;
    if (!db_find(db, source, hash_bytes(source), DB_NO_TOUCH, &e) ||
        !list_at(&e.value, at_end(list_count(&e.value), move->from), &element)) {
        return ST_NOTFOUND;
    }
    reply_bulk(r, element);
    if (r->out->failed) {
        return ST_NOMEM;
    }
    element.ptr = r->out->ptr + r->out->len - strlen("\r\n") - element.len;
    if (bytes_equal(source, destination)) {
        return rotate(&e.value, element, move);
    }
    enum status st = push_to(db, destination, element, move->to);
    if (st == ST_OK) {
        remove_moved(db, source, move->from);
    }
    return st;
}

void list_move(struct cmd_context *cx, struct db *db, struct bytes source, struct bytes destination,
               const struct list_move *move, struct reply *r) {
    struct entry e;
    size_t mark = r->out->len;
    bool there = db_find(db, destination, hash_bytes(destination), DB_NO_TOUCH, &e);
    enum status st = there && e.value.type != VALUE_LIST
                         ? ST_WRONGTYPE
                         : move_element(db, source, destination, move, r);
    if (st != ST_OK) {
        r->out->len = mark;
        args_status_reply(r, st);
        return;
    }
    cx->dbs->stats.dirty++;
    block_signal_key(cx, db, destination);
}

static void move_or_null(struct call *call, const struct list_move *move) {
    struct entry e;
    enum lookup found = list_find(call, 1, &e);
    if (found == LOOKUP_FOUND) {
        list_move(call->cx, call_db(call), call->argv[1], call->argv[2], move, &call->reply);
    } else if (found == LOOKUP_ABSENT) {
        reply_null(&call->reply);
    }
}

void lmove_command(struct call *call) {
    struct list_move move;
    if (list_parse_move(call, 3, &move)) {
        move_or_null(call, &move);
    }
}

void rpoplpush_command(struct call *call) {
    move_or_null(call, &(struct list_move){.from = LIST_TAIL, .to = LIST_HEAD});
}
