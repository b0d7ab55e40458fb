/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on the server as a whole. INFO is in cmd/info.c, DEBUG in cmd/debug.c. */
#include "base/clock.h"
#include "cmd/args.h"
#include "cmd/block.h"
#include "cmd/lookup.h"
#include "handlers_priv.h"

void dbsize_command(struct call *call) {
    reply_integer(&call->reply, (int64_t)db_count(call_db(call)));
}

void time_command(struct call *call) {
    int64_t us = clock_realtime_us();
    reply_array(&call->reply, 2);
    reply_bulk_i64(&call->reply, us / 1000000);
    reply_bulk_i64(&call->reply, us % 1000000);
}

/* ---- emptying ------------------------------------------------------------------------------ */

/* ASYNC leaves the freeing to the background; SYNC answers when it is done. False: an error was
 * replied. */
static bool parse_flush(struct call *call, bool *sync) {
    *sync = !call->cx->config->lazyfree_lazy_user_flush;
    if (call->argc > 2 ||
        (call->argc == 2 && !args_is(call, 1, "SYNC") && !args_is(call, 1, "ASYNC"))) {
        args_syntax_error(call);
        return false;
    }
    if (call->argc == 2) {
        *sync = args_is(call, 1, "SYNC");
    }
    return true;
}

/* False: an error was replied. */
static bool flush_range(struct call *call, size_t first, size_t end) {
    bool sync;
    if (!parse_flush(call, &sync)) {
        return false;
    }
    for (size_t i = first; i < end; i++) {
        call_dirty(call, db_count(call->cx->dbs->dbs[i]));
        dbset_flush(call->cx->dbs, i);
    }
    while (sync && reaper_run(call->cx->dbs, SIZE_MAX)) {
    }
    return true;
}

void flushdb_command(struct call *call) {
    if (flush_range(call, call->client->db, call->client->db + 1u)) {
        reply_ok(&call->reply);
    }
}

/* A child would put back what is gone now. With save points, the file says at once that all is gone, as in
 * Redis. */
static void save_emptiness(struct cmd_context *cx) {
    char error[SNAPSHOT_ERROR_LEN];
    bool save = cx->config->save.count != 0;
    background_cancel(cx, save);
    if (save) {
        enum status st = persist_save(cx, bytes_from_cstr(cx->config->dbfilename), error);
        (void)st; /* it was logged, and the save points try again */
    }
}

void flushall_command(struct call *call) {
    if (flush_range(call, 0, call->cx->dbs->count)) {
        save_emptiness(call->cx);
        reply_ok(&call->reply);
    }
}

void swapdb_command(struct call *call) {
    int64_t a, b;
    if (!args_i64_range(call, 1, INT32_MIN, INT32_MAX, &a, "ERR invalid first DB index") ||
        !args_i64_range(call, 2, INT32_MIN, INT32_MAX, &b, "ERR invalid second DB index")) {
        return;
    }
    int64_t count = (int64_t)call->cx->dbs->count;
    if (a < 0 || a >= count || b < 0 || b >= count) {
        reply_error(&call->reply, "ERR DB index is out of range");
        return;
    }
    dbset_swap(call->cx->dbs, (size_t)a, (size_t)b);
    call_dirty(call, 1);
    block_signal_db(call->cx, call->cx->dbs->dbs[a]);
    block_signal_db(call->cx, call->cx->dbs->dbs[b]);
    reply_ok(&call->reply);
}

/* ---- CONFIG -------------------------------------------------------------------------------- */

static void emit_option(void *ctx, struct bytes name, struct bytes value) {
    struct reply *r = ctx;
    reply_bulk(r, name);
    reply_bulk(r, value);
}

void config_get_command(struct call *call) {
    const struct bytes *patterns = call->argv + 2;
    size_t count = call->argc - 2;
    reply_map(&call->reply, config_get(call->cx->config, patterns, count, NULL, NULL));
    config_get(call->cx->config, patterns, count, emit_option, &call->reply);
}

void config_set_command(struct call *call) {
    struct buf error = {0};
    enum status st = config_set(call->cx->config, call->argv + 2, call->argc - 2, &error);
    if (st == ST_OK) {
        reply_ok(&call->reply);
    } else if (error.len == 0) {
        args_status_error(call, st);
    } else {
        reply_errorf(&call->reply, "%.*s", (int)error.len, error.ptr);
    }
    buf_deinit(&error);
}

void config_resetstat_command(struct call *call) {
    struct cmd_context *cx = call->cx;
    metrics_reset(cx->metrics);
    error_counts_reset(&cx->errors);
    cx->dbs->stats.expired = cx->dbs->stats.hits = cx->dbs->stats.misses = 0;
    cx->dbs->stats.reaped_objects = 0;
    cx->peak_memory_bytes = cx->used_memory_bytes;
    context_reset_command_stats(cx);
    reply_ok(&call->reply);
}

void config_help_command(struct call *call) {
    static const char *const lines[] = {
        "GET <pattern> [<pattern> ...]",
        "    Options whose names match a pattern, and their values.",
        "RESETSTAT",
        "    Sets the counters of INFO to zero.",
        "SET <option> <value> [<option> <value> ...]",
        "    Changes options, all or none of them.",
        NULL};
    args_help(call, lines);
}

/* ---- SHUTDOWN ------------------------------------------------------------------------------ */

/* It happens when the batch is done. Nobody is answered but for an error. */
void shutdown_command(struct call *call) {
    unsigned flags = SHUTDOWN_ASKED;
    for (size_t i = 1; i < call->argc; i++) {
        if (args_is(call, i, "NOSAVE") && !(flags & SHUTDOWN_SAVE)) {
            flags |= SHUTDOWN_NOSAVE;
        } else if (args_is(call, i, "SAVE") && !(flags & SHUTDOWN_NOSAVE)) {
            flags |= SHUTDOWN_SAVE;
        } else if (args_is(call, i, "NOW")) {
            flags |= SHUTDOWN_NOW;
        } else if (args_is(call, i, "FORCE")) {
            flags |= SHUTDOWN_FORCE;
        } else if (args_is(call, i, "ABORT") && call->argc == 2) {
            reply_error(&call->reply, "ERR No shutdown in progress.");
            return;
        } else {
            args_syntax_error(call);
            return;
        }
    }
    if (!block_until_released(call)) {
        return;
    }
    call->cx->shutdown_client_id = call->client->id;
    call->cx->hooks.shutdown(call->cx->hooks.server, flags);
}
