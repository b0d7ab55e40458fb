/* SPDX-License-Identifier: BSD-3-Clause */
/* List commands that wait for an element: BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH. */
#include "base/hash.h"
#include "cmd/block.h"
#include "handlers_priv.h"
#include "list_priv.h"

static bool is_list(struct db *db, struct bytes key, struct entry *e) {
    return db_find(db, key, hash_bytes(key), DB_TOUCH, e) && e->value.type == VALUE_LIST;
}

static void time_out(struct reply *r) {
    reply_null_array(r);
}

/* ---- popping -------------------------------------------------------------------------------- */

static bool serve_pop(struct cmd_context *cx, struct db *db, struct bytes key, struct bytes payload,
                      struct reply *r) {
    struct list_pop pop;
    struct entry e;
    memcpy(&pop, payload.ptr, sizeof(pop));
    if (!is_list(db, key, &e)) {
        return false;
    }
    cx->dbs->stats.dirty += list_take_with_key(&e, key, &pop, r);
    return true;
}

static void pop_or_wait(struct call *call, size_t first_key, size_t count, int64_t timeout_ms,
                        const struct list_pop *pop) {
    static const struct block_ops ops = {.serve = serve_pop, .time_out = time_out};
    if (!list_pop_first(call, first_key, count, pop)) {
        block_client(call, first_key, count, timeout_ms, &ops,
                     BYTES((const char *)pop, sizeof(*pop)));
    }
}

static void pop_waiting(struct call *call, enum list_end end) {
    struct list_pop pop = {.count = 1, .end = end};
    int64_t timeout_ms;
    if (block_parse_timeout(call, call->argc - 1, &timeout_ms)) {
        pop_or_wait(call, 1, call->argc - 2, timeout_ms, &pop);
    }
}

void blpop_command(struct call *call) {
    pop_waiting(call, LIST_HEAD);
}

void brpop_command(struct call *call) {
    pop_waiting(call, LIST_TAIL);
}

void blmpop_command(struct call *call) {
    struct args_mpop args;
    int64_t timeout_ms;
    if (args_mpop(call, 2, "LEFT", "RIGHT", &args) && block_parse_timeout(call, 1, &timeout_ms)) {
        struct list_pop pop = list_pop_of(&args);
        pop_or_wait(call, args.first_key, args.key_count, timeout_ms, &pop);
    }
}

/* ---- moving --------------------------------------------------------------------------------- */

/* The payload is a struct list_move, then the name of the destination. */
static bool serve_move(struct cmd_context *cx, struct db *db, struct bytes key,
                       struct bytes payload, struct reply *r) {
    struct list_move move;
    struct entry e;
    memcpy(&move, payload.ptr, sizeof(move));
    if (!is_list(db, key, &e)) {
        return false;
    }
    struct bytes destination = BYTES(payload.ptr + sizeof(move), payload.len - sizeof(move));
    list_move(cx, db, key, destination, &move, r);
    return true;
}

static void wait_to_move(struct call *call, int64_t timeout_ms, const struct list_move *move) {
    static const struct block_ops ops = {.serve = serve_move, .time_out = time_out};
    struct buf payload = {0};
    buf_append(&payload, move, sizeof(*move));
    buf_append(&payload, call->argv[2].ptr, call->argv[2].len);
    if (payload.failed) {
        args_nomem(call);
    } else {
        block_client(call, 1, 1, timeout_ms, &ops, buf_bytes(&payload));
    }
    buf_deinit(&payload);
}

static void move_or_wait(struct call *call, int64_t timeout_ms, const struct list_move *move) {
    struct entry e;
    enum lookup found = list_find(call, 1, &e);
    if (found == LOOKUP_FOUND) {
        list_move(call->cx, call_db(call), call->argv[1], call->argv[2], move, &call->reply);
    } else if (found == LOOKUP_ABSENT) {
        wait_to_move(call, timeout_ms, move);
    }
}

void blmove_command(struct call *call) {
    struct list_move move;
    int64_t timeout_ms;
    if (list_parse_move(call, 3, &move) && block_parse_timeout(call, 5, &timeout_ms)) {
        move_or_wait(call, timeout_ms, &move);
    }
}

void brpoplpush_command(struct call *call) {
    int64_t timeout_ms;
    if (block_parse_timeout(call, 3, &timeout_ms)) {
        move_or_wait(call, timeout_ms, &(struct list_move){.from = LIST_TAIL, .to = LIST_HEAD});
    }
}
