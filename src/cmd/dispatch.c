/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/dispatch.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "base/watchdog.h"
#include "cmd/block.h"
#include "cmd/client.h"
#include "cmd/context.h"
#include "cmd/table.h"
#include "handlers_priv.h"
#include "types/ahead.h"

/* Reply bytes that make a client's output worth sending before its batch is over. */
#define FLUSH_EARLY_BYTES ((size_t)256 * 1024)
/* A command this slow makes the clock worth reading again, and may be a sample for LATENCY: less than
 * the least latency-monitor-threshold. */
#define SLOW_NS 500000
/* With fewer commands there is no latency to hide behind one another. */
#define PREFETCH_MIN 2

/* What the stages know of a command. Every pointer in here is advice. */
struct plan {
    const struct command *row;
    struct bytes *argv;
    struct db *db;
    uint64_t key_hash;
    uint64_t ref; /* the key's likely record */
    bool has_key;
    struct ahead ahead;
};

/* ---- stages -------------------------------------------------------------------------------- */

static void stage_key(struct cmd_context *cx, const struct batch *b, struct plan *plans,
                      bool prefetch) {
    for (size_t i = 0; i < b->len; i++) {
        const struct batch_item *item = &b->items[i];
        struct plan *p = &plans[i];
        p->argv = b->args.v + item->first;
        p->row = table_find(p->argv[0]);
        int first = p->row ? p->row->keys[0].first : 0;
        p->has_key = first > 0 && (size_t)first < item->argc && item->client != NULL;
        p->ref = SWISS_NONE;
        if (!p->has_key) {
            continue;
        }
        p->key_hash = hash_bytes(p->argv[first]);
        p->db = context_db(cx, item->client);
        if (prefetch) {
            db_prefetch_index(p->db, p->key_hash);
        }
    }
}

static void stage_record(const struct batch *b, struct plan *plans) {
    for (size_t i = 0; i < b->len; i++) {
        if (plans[i].has_key) {
            plans[i].ref = db_prefetch_record(plans[i].db, plans[i].key_hash);
        }
    }
}

/* The argument a plan names, NULL when the line has none such. */
static const struct bytes *planned(const struct plan *p, size_t argc, int at) {
    size_t i = at < 0 ? argc - (size_t)-at : (size_t)at;
    return at != 0 && i < argc && i > 0 ? &p->argv[i] : NULL;
}

/* A score as it stands in ranges too: "(1.5". Infinities lead to leaves that are warm anyway. */
static bool read_score(struct bytes b, double *out) {
    size_t skip = b.len > 0 && b.ptr[0] == '(';
    size_t at = skip + (b.len > skip && b.ptr[skip] == '-');
    bool digit = b.len > at && b.ptr[at] >= '0' && b.ptr[at] <= '9';
    return digit && number_parse_double(BYTES(b.ptr + skip, b.len - skip), out);
}

/* What the command will do with its value, by the plan of its row. */
static void look_ahead(struct plan *p, size_t argc) {
    const struct command_plan *plan = &p->row->plan;
    const struct bytes *member = planned(p, argc, plan->member);
    const struct bytes *score = planned(p, argc, plan->score);
    if (member != NULL) {
        p->ahead.parts |= AHEAD_MEMBER;
        p->ahead.hash = hash_bytes(*member);
    }
    if (score != NULL && read_score(*score, &p->ahead.score)) {
        p->ahead.parts |= AHEAD_SCORE;
    }
}

/* The values, and who of them goes on to the stages behind; how many. */
static size_t stage_value(const struct batch *b, struct plan *plans, const struct ahead **going) {
    size_t count = 0;
    for (size_t i = 0; i < b->len; i++) {
        struct plan *p = &plans[i];
        if (p->ref == SWISS_NONE || p->row->plan.key_only) {
            continue;
        }
        db_peek_likely(p->db, p->ref, &p->ahead.value);
        ahead_prefetch(&p->ahead, AHEAD_STAGE_OBJECT);
        p->ahead.parts = 0;
        if (p->ahead.value.encoding == VALUE_HEAP) {
            look_ahead(p, b->items[i].argc);
        }
        if (p->ahead.parts != 0) {
            going[count++] = &p->ahead;
        }
    }
    return count;
}

static void stage_ahead(const struct ahead **going, size_t count, enum ahead_stage stage) {
    for (size_t i = 0; i < count; i++) {
        ahead_prefetch(going[i], stage);
    }
}

static void run_stages(struct cmd_context *cx, const struct batch *b, struct plan *plans) {
    const struct ahead *going[DISPATCH_BATCH_MAX];
    bool prefetch = b->len >= PREFETCH_MIN && cx->config->prefetch;
    stage_key(cx, b, plans, prefetch);
    if (!prefetch) {
        return;
    }
    stage_record(b, plans);
    size_t count = stage_value(b, plans, going);
    stage_ahead(going, count, AHEAD_STAGE_INDEX);
    stage_ahead(going, count, AHEAD_STAGE_RECORD);
}

/* ---- execution ----------------------------------------------------------------------------- */

static bool refuse_unauthenticated(struct cmd_context *cx, struct call *call) {
    bool locked =
        cx->config->requirepass[0] != '\0' && !(call->client->flags & CLIENT_AUTHENTICATED);
    if (locked && !(call->row->flags & CMD_NO_AUTH)) {
        reply_error(&call->reply, "NOAUTH Authentication required.");
        return true;
    }
    return false;
}

static bool refuse_over_maxmemory(struct cmd_context *cx, struct call *call) {
    size_t limit = cx->config->maxmemory;
    if (LIKELY(limit == 0) || !(call->row->flags & CMD_DENYOOM)) {
        return false;
    }
    if (cx->used_memory_bytes <= limit) {
        return false;
    }
    reply_error(&call->reply, "OOM command not allowed when used memory > 'maxmemory'.");
    return true;
}

static bool refuse_while_loading(struct cmd_context *cx, struct call *call) {
    if (LIKELY(!cx->persist.loading) || (call->row->flags & CMD_LOADING)) {
        return false;
    }
    reply_error(&call->reply, "LOADING Redis is loading the dataset in memory");
    return true;
}

/* PING tells of it, too: it is what watches a server. */
static bool refuse_after_failed_save(struct cmd_context *cx, struct call *call) {
    if (LIKELY(!cx->background.unsaved) || !background_stops_writes(cx) ||
        !((call->row->flags & CMD_WRITE) || call->row->handler == ping_command)) {
        return false;
    }
    reply_error(
        &call->reply,
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to "
        "persist to disk. Commands that may modify the data set are disabled, because this "
        "instance is configured to report errors during writes if RDB snapshotting fails "
        "(stop-writes-on-bgsave-error option). Please check the Redis logs for details about "
        "the RDB error.");
    return true;
}

/* The first words of an HTTP request: a page in somebody's browser may be attacking a server that only listens on
 * loopback, with commands in the request's body. */
static bool is_http(struct bytes name) {
    return bytes_is(name, "post") || bytes_is(name, "host:");
}

/* Resolve a container's subcommand and check the number of arguments. */
static bool resolve(struct call *call) {
    if (call->row == NULL && is_http(call->argv[0])) {
        log_warning("A web browser was made to send commands here: client id=%llu is closed",
                    (unsigned long long)call->client->id);
        call->client->flags |= CLIENT_CLOSE_NOW;
        return false;
    }
    if (call->row == NULL) {
        table_reply_unknown(&call->reply, call->argv, call->argc);
        return false;
    }
    if (command_is_container(call->row) && call->argc > 1) {
        const struct command *sub = table_find_sub(call->row, call->argv[1]);
        if (sub == NULL) {
            table_reply_unknown_sub(&call->reply, call->row, call->argv[1]);
            return false;
        }
        call->row = sub;
        size_t first = (size_t)sub->keys[0].first;
        if (first > 0 && first < call->argc) {
            call->key_hash = hash_bytes(call->argv[first]);
        }
    }
    if (call->row->handler == NULL || !command_arity_ok(call->row, call->argc)) {
        table_reply_wrong_arity(&call->reply, call->row);
        return false;
    }
    return true;
}

static void track_latency(struct cmd_context *cx, const struct command *row, uint64_t ns) {
    struct histogram **slot = &cx->command_latency[row->id];
    if (UNLIKELY(*slot == NULL)) {
        *slot = calloc(1, sizeof(**slot));
    }
    if (*slot != NULL) {
        histogram_add(*slot, ns);
    }
}

static void note_slow(struct cmd_context *cx, const struct command *row, uint64_t ns) {
    context_refresh_clock(cx);
    context_note_latency(cx, row->flags & CMD_FAST ? LATENCY_FAST_COMMAND : LATENCY_COMMAND, ns);
}

static void count_error(struct cmd_context *cx, const struct buf *out, size_t mark) {
    const char *text = out->ptr + mark + 1;
    const char *end = memchr(text, '\r', out->len - mark - 1);
    cx->metrics->total_error_replies++;
    error_counts_add(&cx->errors, BYTES(text, end ? (size_t)(end - text) : 0));
}

static void run_handler(struct cmd_context *cx, struct call *call, uint64_t *start) {
    struct command_stats *stats = &cx->command_stats[call->row->id];
    const struct command *row = call->row;
    struct client *c = call->client;
    struct buf *out = c->out;
    size_t mark = out->len;
    uint64_t dirty = cx->dbs->stats.dirty;
    row->handler(call);
    WATCHDOG_END(*start, "execute", row->name);
    if (row->flags & CMD_WRITE) {
        WATCHDOG_BEGIN(handled);
        db_after_write(context_db(cx, c), cx->dbs->stats.dirty - dirty + 1);
        WATCHDOG_END(handled, "work after", row->name);
    }
    uint64_t now = ticks_now();
    uint64_t ns = ticks_to_ns(now - *start);
    *start = now;
    stats->calls++;
    stats->nsec += ns;
    if (LIKELY(cx->config->latency_tracking)) {
        track_latency(cx, row, ns);
    }
    if (UNLIKELY(out->len > mark && out->ptr[mark] == '-')) {
        stats->failed++;
        count_error(cx, out, mark);
    }
    if (UNLIKELY(ns > SLOW_NS)) {
        note_slow(cx, row, ns);
    }
}

/* CLIENT REPLY ON is answered though replies were off; its errors are dropped like others. */
static bool is_heard(const struct command *row, const struct buf *out, size_t mark) {
    return row != NULL && row->heard_when_muted && out->len > mark && out->ptr[mark] != '-';
}

/* Blocked, or not reading its replies, or with older requests still to be executed. */
static bool must_wait(const struct client *c) {
    return c->waiter != NULL || (c->flags & CLIENT_STALLED) ||
           (c->flags & (CLIENT_BACKLOG | CLIENT_REPLAYING)) == CLIENT_BACKLOG;
}

/* The command waits in the client's own buffer, written as it came. */
static void defer(struct client *c, const struct bytes *argv, size_t argc) {
    struct reply request = {&c->deferred, 2};
    c->flags |= CLIENT_BACKLOG;
    reply_array(&request, argc);
    for (size_t i = 0; i < argc; i++) {
        reply_bulk(&request, argv[i]);
    }
}

static void execute(struct cmd_context *cx, struct batch *b, const struct batch_item *item,
                    const struct plan *plan, uint64_t *start) {
    struct client *c = item->client;
    if (c == NULL || (c->flags & (CLIENT_CLOSE_NOW | CLIENT_CLOSE_AFTER_REPLY))) {
        return;
    }
    if (UNLIKELY(must_wait(c))) {
        defer(c, plan->argv, item->argc);
        return;
    }
    struct call call = {.cx = cx,
                        .client = c,
                        .row = plan->row,
                        .argv = plan->argv,
                        .argc = item->argc,
                        .reply = {c->out, c->proto},
                        .key_hash = plan->key_hash,
                        .input = &b->args};
    size_t mark = c->out->len;
    bool skip = (c->flags & CLIENT_REPLY_SKIP) != 0;
    c->flags &= ~(uint32_t)CLIENT_REPLY_SKIP;
    c->last_active_ms = cx->now_ms;
    bool resolved = resolve(&call);
    if (resolved) {
        c->last_row = call.row;
    }
    if (!resolved || refuse_unauthenticated(cx, &call) || refuse_over_maxmemory(cx, &call) ||
        refuse_after_failed_save(cx, &call) || refuse_while_loading(cx, &call)) {
        if (c->out->len > mark) {
            count_error(cx, c->out, mark);
        }
        if (call.row != NULL) {
            cx->command_stats[call.row->id].rejected++;
        }
    } else {
        cx->metrics->total_commands_processed++;
        run_handler(cx, &call, start);
    }
    if (UNLIKELY(skip || (c->flags & CLIENT_REPLY_OFF)) && !is_heard(call.row, c->out, mark)) {
        c->out->len = mark; /* CLIENT REPLY OFF and SKIP: the reply was made and is dropped */
    }
    if (UNLIKELY(c->out->failed)) {
        c->flags |= CLIENT_CLOSE_NOW; /* a reply is missing: the stream cannot go on */
    }
    if (UNLIKELY(c->flags & (CLIENT_CLOSE_NOW | CLIENT_CLOSE_AFTER_REPLY))) {
        cx->hooks.close(cx->hooks.server, c);
    } else if (UNLIKELY(c->out->len > FLUSH_EARLY_BYTES)) {
        cx->hooks.flush(cx->hooks.server, c);
    }
    if (UNLIKELY(cx->block_ready)) {
        WATCHDOG_BEGIN(ready);
        block_serve_ready(cx);
        WATCHDOG_END(ready, "serve waiting", NULL);
    }
}

void dispatch_batch(struct cmd_context *cx, struct batch *b) {
    struct plan plans[DISPATCH_BATCH_MAX];
    context_refresh_clock(cx);
    WATCHDOG_BEGIN(staged);
    run_stages(cx, b, plans);
    WATCHDOG_END(staged, "stages", NULL);
    uint64_t start = ticks_now();
    for (size_t i = 0; i < b->len; i++) {
        execute(cx, b, &b->items[i], &plans[i], &start);
    }
    b->len = 0;
    resp_args_clear(&b->args);
}

void batch_forget(struct batch *b, const struct client *c) {
    for (size_t i = 0; i < b->len; i++) {
        if (b->items[i].client == c) {
            b->items[i].client = NULL;
        }
    }
}
