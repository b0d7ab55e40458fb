/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots at the start, at the end, and between two turns of the loop. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/block.h"
#include "server/server.h"

#define SHOW_PERIOD_US 100000
#define MB(bytes) ((double)(bytes) / 1048576)

/* ---- progress ------------------------------------------------------------------------------- */

/* A line on the terminal, when there is one, that is gone when the work is done. */
static void show_progress(struct server *s, const struct persist_progress *p) {
    int64_t now_us = clock_monotonic_us();
    bool due = now_us - s->shown_us >= SHOW_PERIOD_US;
    if (!s->on_terminal || (!due && !(p->over && s->shown))) {
        return;
    }
    s->shown_us = now_us;
    s->shown = !p->over;
    if (p->over) {
        fprintf(stderr, "\r\033[K");
    } else if (p->loading && p->total_bytes != 0) {
        fprintf(stderr, "\rLoading %s: %3.0f %%, %.1f of %.1f MB\033[K", p->path,
                100 * (double)p->bytes / (double)p->total_bytes, MB(p->bytes), MB(p->total_bytes));
    } else {
        fprintf(stderr, "\rSaving %s: %.1f MB, %llu of %llu keys\033[K", p->path, MB(p->bytes),
                (unsigned long long)p->keys, (unsigned long long)p->total_keys);
    }
    fflush(stderr);
}

/* Loading ends when the program is to end. Saving does not: the first signal waits, a second SIGINT ends
 * the process (signals.c). */
static bool hook_progress(void *user, const struct persist_progress *p) {
    struct server *s = user;
    show_progress(s, p);
    if (p->over) {
        return true;
    }
    if (s->between_turns) {
        if (loop_turn(s->loop, 0) != ST_OK) {
            log_warning("The event loop failed while a snapshot is loaded");
        }
    } else {
        signals_poll(s);
    }
    return !p->loading || s->shutdown_flags == 0;
}

static void hook_load(void *user) {
    struct server *s = user;
    s->load_wanted = true;
    loop_stop(s->loop);
}

void persist_hooks(struct server *s) {
    s->cx.hooks.progress = hook_progress;
    s->cx.hooks.load = hook_load;
    s->on_terminal = isatty(STDERR_FILENO) == 1;
}

/* ---- start ---------------------------------------------------------------------------------- */

enum status persist_start(struct server *s, struct buf *error) {
    char text[SNAPSHOT_ERROR_LEN];
    bool asked = s->config.load[0] != '\0';
    size_t stale = snapshot_remove_stale(0);
    if (stale != 0) {
        log_notice("Removed %zu temporary snapshots of processes that were killed", stale);
    }
    s->between_turns = true;
    enum status st =
        persist_load(&s->cx, asked ? s->config.load : s->config.dbfilename, PERSIST_NO_LIMIT, text);
    s->between_turns = false;
    if (st == ST_NOTFOUND && !asked) {
        log_notice("No snapshot to load: the databases are empty");
        return ST_OK;
    }
    if (st != ST_OK && st != ST_CLOSED) {
        buf_printf(error, "cannot load the snapshot: %s", text);
    }
    return st;
}

/* ---- end ------------------------------------------------------------------------------------ */

static bool wants_save(const struct server *s) {
    if (s->shutdown_flags & (SHUTDOWN_SAVE | SHUTDOWN_NOSAVE)) {
        return (s->shutdown_flags & SHUTDOWN_SAVE) != 0;
    }
    return s->config.save_on_exit || s->config.save.count != 0;
}

/* The client of SHUTDOWN hears of it only when the server goes on. */
static void refuse_shutdown(struct server *s) {
    struct client *c = client_find(&s->cx.clients, s->cx.shutdown_client_id);
    if (c != NULL && block_is_blocked(c)) {
        struct reply r = block_reply(&s->cx, c);
        s->metrics.total_error_replies++;
        reply_error(&r, "ERR Errors trying to SHUTDOWN. Check logs.");
        block_release(&s->cx, c);
    }
    s->cx.shutdown_client_id = 0;
    s->shutdown_flags = 0;
}

/* False: the server goes on. */
static bool prepare_shutdown(struct server *s) {
    char error[SNAPSHOT_ERROR_LEN];
    background_cancel(&s->cx, true);
    if (!wants_save(s)) {
        return true;
    }
    log_notice("Saving the final RDB snapshot before exiting.");
    context_sample_memory(&s->cx);
    if (persist_save(&s->cx, bytes_from_cstr(s->config.dbfilename), error) == ST_OK) {
        return true;
    }
    if (s->shutdown_flags & SHUTDOWN_FORCE) {
        log_warning("Error trying to save the DB. Exit anyway.");
        return true;
    }
    log_warning("Error trying to save the DB, can't exit.");
    refuse_shutdown(s);
    return false;
}

enum status persist_run(struct server *s) {
    for (;;) {
        enum status st = loop_run(s->loop);
        if (st != ST_OK) {
            return st;
        }
        if (s->load_wanted && s->shutdown_flags == 0) {
            s->load_wanted = false;
            s->between_turns = true;
            persist_run_load(&s->cx);
            s->between_turns = false;
        }
        if (s->shutdown_flags != 0 && prepare_shutdown(s)) {
            return ST_OK;
        }
    }
}
