/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/background.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/args.h"
#include "cmd/call.h"
#include "cmd/context.h"
#include "handlers_priv.h"
#include "stats/process.h"

#define SECONDS(us) ((us) / 1000000)
#define MB(bytes) ((double)(bytes) / 1048576)

enum status background_setup(struct cmd_context *cx) {
    cx->background.took_s = -1;
    return bgsave_create(&cx->background.child);
}

void background_teardown(struct cmd_context *cx) {
    bgsave_destroy(cx->background.child);
    cx->background.child = NULL;
}

/* ---- saving --------------------------------------------------------------------------------- */

/* Of the save to b->name. */
static void note_failure(struct cmd_context *cx) {
    struct background *b = &cx->background;
    b->failed = true;
    b->unsaved |= persist_is_main_file(cx, bytes_from_cstr(b->name));
}

enum status background_save(struct cmd_context *cx, struct bytes name,
                            char error[SNAPSHOT_ERROR_LEN]) {
    struct background *b = &cx->background;
    struct bgsave_options options = {.compress = cx->config->rdbcompression,
                                     .checksum = cx->config->rdbchecksum,
                                     .used_bytes = cx->used_memory_bytes,
                                     .copied_bytes = process_read_private_dirty_bytes};
    const char *why;
    if (!context_may_fork(cx, &why)) {
        snprintf(error, SNAPSHOT_ERROR_LEN, "%s", why);
        return ST_UNSUPPORTED;
    }
    if (background_is_saving(cx)) {
        snprintf(error, SNAPSHOT_ERROR_LEN, "a background save is in progress");
        return ST_EXISTS;
    }
    int64_t fork_us = 0;
    snprintf(b->name, sizeof(b->name), "%.*s", (int)name.len, name.ptr);
    b->dirty_before = cx->dbs->stats.dirty;
    b->tried_us = clock_monotonic_us();
    enum status st = bgsave_start(b->child, cx->dbs, b->name, &options, &fork_us, error);
    if (st != ST_OK) {
        log_warning("Can't save in background: %s", error);
        note_failure(cx);
        return st;
    }
    struct bgsave_progress progress;
    bgsave_get_progress(b->child, &progress);
    cx->metrics->latest_fork_usec = (uint64_t)fork_us;
    context_note_latency(cx, LATENCY_FORK, (uint64_t)fork_us * 1000);
    cx->metrics->total_forks++;
    log_notice("Background saving started by pid %" PRId64 ", fork took %.1f ms", progress.pid,
               (double)fork_us / 1000);
    return ST_OK;
}

bool background_is_saving(const struct cmd_context *cx) {
    return bgsave_is_running(cx->background.child);
}

/* ---- its end -------------------------------------------------------------------------------- */

static void note_success(struct cmd_context *cx, const struct bgsave_result *result) {
    struct background *b = &cx->background;
    log_notice("Background saving terminated with success: %" PRIu64
               " keys, %.1f MB to %s in %.1f s, "
               "%.1f MB were copied on write",
               result->last.keys, MB(result->last.bytes), b->name, (double)result->took_us / 1e6,
               MB(result->last.copied_bytes));
    b->failed = false;
    cx->metrics->rdb_saves++;
    if (persist_is_main_file(cx, bytes_from_cstr(b->name))) {
        persist_note_saved(cx, b->dirty_before);
    }
}

void background_poll(struct cmd_context *cx) {
    struct background *b = &cx->background;
    struct bgsave_result result;
    enum bgsave_end end = bgsave_poll(b->child, &result);
    if (end == BGSAVE_NONE || end == BGSAVE_RUNNING) {
        return;
    }
    b->took_s = SECONDS(result.took_us);
    b->copied_bytes = result.last.copied_bytes;
    if (end == BGSAVE_DONE) {
        note_success(cx, &result);
    } else if (end == BGSAVE_CANCELLED) {
        log_notice("Background saving was cancelled");
    } else {
        log_warning("Background saving error: %s", result.error);
        note_failure(cx);
    }
}

void background_cancel(struct cmd_context *cx, bool wait) {
    if (background_is_saving(cx)) {
        log_notice("There is a child saving in background: it has to end");
        bgsave_cancel(cx->background.child, wait);
        background_poll(cx);
    }
}

/* ---- save points ---------------------------------------------------------------------------- */

const char *background_refuses_points(const struct cmd_context *cx) {
    const char *why;
    if (cx->config->save.count == 0 || cx->config->save_synchronously ||
        context_may_fork(cx, &why)) {
        return NULL;
    }
    return "save points need a background save, which data on reserved huge pages cannot have: use "
           "--save-synchronously yes, with which the server stands still while it saves, or --save "
           "\"\"";
}

bool background_stops_writes(const struct cmd_context *cx) {
    return cx->background.unsaved && cx->config->stop_writes_on_bgsave_error &&
           cx->config->save.count != 0;
}

static const struct config_save_point *find_due(const struct cmd_context *cx, int64_t now_us) {
    const struct config_save_points *points = &cx->config->save;
    for (size_t i = 0; i < points->count; i++) {
        if (cx->dbs->stats.dirty >= (uint64_t)points->at[i].changes &&
            SECONDS(now_us - cx->persist.saved_us) > points->at[i].seconds) {
            return &points->at[i];
        }
    }
    return NULL;
}

void background_cron(struct cmd_context *cx) {
    struct background *b = &cx->background;
    int64_t now_us = clock_monotonic_us();
    if (cx->config->save.count == 0 || cx->persist.loading || background_is_saving(cx) ||
        (b->unsaved && SECONDS(now_us - b->tried_us) <= BACKGROUND_RETRY_S)) {
        return;
    }
    const struct config_save_point *due = find_due(cx, now_us);
    if (due == NULL) {
        return;
    }
    char error[SNAPSHOT_ERROR_LEN];
    struct bytes name = bytes_from_cstr(cx->config->dbfilename);
    log_notice("%" PRId64 " changes in %" PRId64 " seconds. Saving...", due->changes, due->seconds);
    if (cx->config->save_synchronously) {
        b->tried_us = now_us;
        b->unsaved = persist_save(cx, name, error) != ST_OK;
    } else if (background_save(cx, name, error) != ST_OK) {
        b->unsaved = true; /* it was logged */
    }
}

/* ---- the command ---------------------------------------------------------------------------- */

void bgsave_command(struct call *call) {
    bool schedule =
        args_is(call, 1, "SCHEDULE"); /* there is nothing else that a save could wait for */
    size_t at = schedule ? 2 : 1;
    struct bytes name;
    char error[SNAPSHOT_ERROR_LEN];
    if (call->argc > at + 1) {
        args_syntax_error(call);
        return;
    }
    if (!persist_name_argument(call, at, &name)) {
        return;
    }
    switch (background_save(call->cx, name, error)) {
    case ST_OK:
        reply_simple(&call->reply, "Background saving started");
        return;
    case ST_EXISTS:
        reply_error(&call->reply, BACKGROUND_IN_PROGRESS);
        return;
    default:
        reply_errorf(&call->reply, "ERR Can't save in background: %s", error);
    }
}
