/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/persist.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/args.h"
#include "cmd/block.h"
#include "cmd/context.h"
#include "handlers_priv.h"
#include "mem/account.h"

#define MB(bytes) ((double)(bytes) / 1048576)
#define SECONDS(us) ((double)(us) / 1e6)

static void copy_name(char to[256], struct bytes name) {
    snprintf(to, 256, "%.*s", (int)name.len, name.ptr);
}

bool persist_is_main_file(const struct cmd_context *cx, struct bytes name) {
    return bytes_equal(name, bytes_from_cstr(cx->config->dbfilename));
}

void persist_setup(struct cmd_context *cx) {
    cx->persist.last_save_ms = cx->now_ms;
    cx->persist.saved_us = clock_monotonic_us();
}

void persist_note_saved(struct cmd_context *cx, uint64_t dirty_then) {
    cx->dbs->stats.dirty -= dirty_then;
    cx->persist.last_save_ms = clock_realtime_ms();
    cx->persist.saved_us = clock_monotonic_us();
    cx->background.failed = cx->background.unsaved = false;
}

/* A child that saves now would put an old file in the place of a new one. False: refused. */
static bool no_child_saves(struct call *call) {
    if (background_is_saving(call->cx)) {
        reply_error(&call->reply, BACKGROUND_IN_PROGRESS);
        return false;
    }
    return true;
}

/* False: stop. */
static bool tell(struct cmd_context *cx, const struct persist_progress *p) {
    return cx->hooks.progress == NULL || cx->hooks.progress(cx->hooks.server, p);
}

/* ---- saving --------------------------------------------------------------------------------- */

struct saving {
    struct cmd_context *cx;
    struct persist_progress progress;
};

static bool saving_progress(void *arg, uint64_t bytes, uint64_t keys) {
    struct saving *s = arg;
    s->progress.bytes = bytes;
    s->progress.keys = keys;
    return tell(s->cx, &s->progress);
}

enum status persist_save(struct cmd_context *cx, struct bytes name,
                         char error[SNAPSHOT_ERROR_LEN]) {
    char path[256];
    copy_name(path, name);
    struct saving s = {.cx = cx, .progress = {.path = path, .total_keys = dbset_count(cx->dbs)}};
    struct snapshot_save_options options = {.compress = cx->config->rdbcompression,
                                            .checksum = cx->config->rdbchecksum,
                                            .used_bytes = cx->used_memory_bytes,
                                            .progress = saving_progress,
                                            .progress_arg = &s};
    struct writer_stats stats;
    int64_t start_us = clock_monotonic_us();
    enum status st = snapshot_save(cx->dbs, path, &options, &stats, error);
    int64_t took_us = clock_monotonic_us() - start_us;
    context_note_latency(cx, LATENCY_SAVE, (uint64_t)took_us * 1000);
    s.progress.over = true;
    tell(cx, &s.progress);
    if (st != ST_OK) {
        log_warning("Saving failed: %s", error);
        return st;
    }
    cx->metrics->rdb_saves++;
    if (persist_is_main_file(cx, name)) {
        persist_note_saved(cx, cx->dbs->stats.dirty);
    }
    log_notice("DB saved on disk: %" PRIu64 " keys, %.1f MB to %s in %.3f seconds", stats.keys,
               MB(stats.bytes), path, SECONDS(took_us));
    return ST_OK;
}

/* ---- loading -------------------------------------------------------------------------------- */

struct loading {
    struct cmd_context *cx;
    struct persist_progress progress;
    enum persist_limit limit;
};

static void loading_opened(void *arg, uint64_t total_bytes) {
    struct loading *l = arg;
    l->progress.total_bytes = total_bytes;
    l->cx->persist.loading_total_bytes = total_bytes;
}

static bool loading_progress(void *arg, uint64_t bytes, uint64_t keys) {
    struct loading *l = arg;
    struct cmd_context *cx = l->cx;
    l->progress.bytes = bytes;
    l->progress.keys = keys;
    cx->persist.loading_bytes = bytes;
    if (l->limit == PERSIST_MAXMEMORY && cx->config->maxmemory != 0) {
        context_sample_memory(cx);
        cx->persist.load_over_maxmemory = cx->used_memory_bytes > cx->config->maxmemory;
    }
    return !cx->persist.load_over_maxmemory && tell(cx, &l->progress);
}

static void log_skipped(const struct reader_report *r) {
    uint64_t keys = r->skipped_streams + r->skipped_modules + r->skipped_hashes;
    if (keys != 0 || r->skipped_functions != 0 || r->skipped_module_aux != 0) {
        log_warning("Skipped: %" PRIu64 " streams, %" PRIu64 " module values, %" PRIu64
                    " hashes with expiring fields, %" PRIu64 " function libraries, %" PRIu64
                    " sections of module data",
                    r->skipped_streams, r->skipped_modules, r->skipped_hashes, r->skipped_functions,
                    r->skipped_module_aux);
    }
    if (r->empty != 0) {
        log_warning("Left out: %" PRIu64 " empty collections", r->empty);
    }
}

static enum status read_fresh(struct loading *l, struct dbset **fresh, struct reader_report *report,
                              char *error) {
    struct cmd_context *cx = l->cx;
    struct snapshot_load_options options = {.ignore_checksum = !cx->config->rdbchecksum,
                                            .skip_unsupported = cx->config->load_skip_unsupported,
                                            .now_ms = clock_realtime_ms(),
                                            .progress = loading_progress,
                                            .progress_arg = l,
                                            .opened = loading_opened};
    cx->persist.loading = true;
    cx->persist.loading_since_ms = options.now_ms;
    cx->persist.load_over_maxmemory = false;
    enum status st = snapshot_load(l->progress.path, &cx->dbs->env, cx->dbs->count, &options, fresh,
                                   report, error);
    account_purge(); /* what only the loading needed */
    l->progress.over = true;
    bool ignored = tell(cx, &l->progress);
    (void)ignored;
    cx->persist.loading = false;
    cx->persist.loading_since_ms = 0;
    cx->persist.loading_total_bytes = cx->persist.loading_bytes = 0;
    if (cx->persist.load_over_maxmemory) {
        snprintf(error, SNAPSHOT_ERROR_LEN,
                 "%.256s needs more than maxmemory beside the data that is there",
                 l->progress.path);
        return ST_NOMEM;
    }
    return st;
}

enum status persist_load(struct cmd_context *cx, const char *path, enum persist_limit limit,
                         char error[SNAPSHOT_ERROR_LEN]) {
    struct loading l = {.cx = cx, .progress = {.loading = true, .path = path}, .limit = limit};
    struct reader_report report;
    struct dbset *fresh;
    int64_t start_us = clock_monotonic_us();
    enum status st = read_fresh(&l, &fresh, &report, error);
    context_note_latency(cx, LATENCY_LOAD, (uint64_t)(clock_monotonic_us() - start_us) * 1000);
    if (st != ST_OK) {
        return st;
    }
    uint64_t keys_before = dbset_count(cx->dbs);
    dbset_take(cx->dbs, fresh);
    cx->persist.loaded_keys = report.keys;
    cx->persist.loaded_expired = report.expired;
    if (persist_is_main_file(cx, bytes_from_cstr(path))) {
        cx->dbs->stats.dirty = 0;
        cx->background.failed = cx->background.unsaved = false; /* nothing is unsaved now */
    } else {
        cx->dbs->stats.dirty += keys_before + report.keys;
    }
    log_notice("Done loading RDB, keys loaded: %" PRIu64 ", keys expired: %" PRIu64 ".",
               report.keys, report.expired);
    log_skipped(&report);
    log_notice("DB loaded from disk: %.3f seconds, %.1f MB of %s",
               SECONDS(clock_monotonic_us() - start_us), MB(report.bytes), path);
    context_refresh_clock(cx);
    context_sample_memory(cx);
    return ST_OK;
}

/* Who waits for a key may find it now. */
static void serve_waiting(struct cmd_context *cx) {
    for (size_t i = 0; i < cx->dbs->count; i++) {
        block_signal_db(cx, cx->dbs->dbs[i]);
    }
    block_serve_ready(cx);
}

void persist_run_load(struct cmd_context *cx) {
    char error[SNAPSHOT_ERROR_LEN];
    enum status st = persist_load(cx, cx->persist.load_name, PERSIST_MAXMEMORY, error);
    struct client *c = client_find(&cx->clients, cx->persist.load_client_id);
    if (st != ST_OK) {
        log_warning("Loading failed: %s. The data are as before.", error);
    }
    if (c != NULL && block_is_blocked(c)) {
        struct reply r = block_reply(cx, c);
        if (st == ST_OK) {
            reply_ok(&r);
        } else {
            cx->metrics->total_error_replies++;
            reply_errorf(&r, "ERR %s", error);
        }
        block_release(cx, c);
    }
    if (st == ST_OK) {
        serve_waiting(cx);
    }
}

/* ---- commands ------------------------------------------------------------------------------- */

bool persist_name_argument(struct call *call, size_t i, struct bytes *name) {
    *name = i < call->argc ? call->argv[i] : bytes_from_cstr(call->cx->config->dbfilename);
    if (!snapshot_name_ok(*name)) {
        reply_error(&call->reply,
                    "ERR a snapshot's name is that of a file in the server's dir: 1 to 255 bytes, "
                    "no '/', no control character, and not temp-<number>.rdb");
        return false;
    }
    return true;
}

void save_command(struct call *call) {
    struct bytes name;
    char error[SNAPSHOT_ERROR_LEN];
    if (call->argc > 2) {
        args_syntax_error(call);
        return;
    }
    if (!persist_name_argument(call, 1, &name) || !no_child_saves(call)) {
        return;
    }
    if (persist_save(call->cx, name, error) == ST_OK) {
        reply_ok(&call->reply);
    } else {
        reply_errorf(&call->reply, "ERR %s", error);
    }
}

void lastsave_command(struct call *call) {
    reply_integer(&call->reply, call->cx->persist.last_save_ms / 1000);
}

/* The loading needs the loop, which is in the middle of a batch now. */
void load_command(struct call *call) {
    struct persist *p = &call->cx->persist;
    struct bytes name;
    if (persist_name_argument(call, 1, &name) && no_child_saves(call) &&
        block_until_released(call)) {
        copy_name(p->load_name, name);
        p->load_client_id = call->client->id;
        p->loading = true;
        p->loading_since_ms = call->cx->now_ms;
        call->cx->hooks.load(call->cx->hooks.server);
    }
}
