/* SPDX-License-Identifier: BSD-3-Clause */
/* context: what commands may see of the program. main fills it; handlers reach it as call->cx. */
#ifndef CMD_CONTEXT_H
#define CMD_CONTEXT_H

#include "base/histogram.h"
#include "base/rng.h"
#include "cmd/background.h"
#include "cmd/client.h"
#include "cmd/persist.h"
#include "config/config.h"
#include "db/db.h"
#include "stats/latency.h"
#include "stats/metrics.h"

enum shutdown_flag {
    SHUTDOWN_ASKED = 1 << 0,
    SHUTDOWN_NOSAVE = 1 << 1,
    SHUTDOWN_NOW = 1 << 2,
    SHUTDOWN_FORCE = 1 << 3,
    SHUTDOWN_SAVE = 1 << 4
};

/* What the server does for commands: the calls that go up a layer. */
struct server_hooks {
    void *server;
    /* A reply is large: send what can be sent before the batch goes on. */
    void (*flush)(void *server, struct client *c);
    /* Close a client: at once, or after what it still has to read. */
    void (*close)(void *server, struct client *c);
    /* The buffer for output that is no reply to a request under way. */
    struct buf *(*output)(void *server, struct client *c);
    /* A client is no longer blocked: execute what it deferred. */
    void (*resume)(void *server, struct client *c);
    /* A snapshot is written or read: called every few hundred KiB, and when it is over. False stops
     * it. May be NULL. */
    bool (*progress)(void *server, const struct persist_progress *p);
    /* Call persist_run_load once this batch is done. */
    void (*load)(void *server);
    /* Stop the program once this batch is done, having saved if that is wanted; when saving fails,
     * shutdown_client_id is answered and the program goes on. */
    void (*shutdown)(void *server, unsigned flags);
};

/* A connection to another server, for MIGRATE. */
struct peer {
    int64_t db;    /* selected there */
    bool db_known; /* false at first */
    bool reused;   /* an earlier command made it: the other side may have closed it since */
};

/* What the server does about them. Each waits, timeout_ms at most before bytes move again: ST_AGAIN
 * when they do not, ST_CLOSED, ST_IO, ST_NOMEM; a peer that failed is to be closed. */
struct peer_hooks {
    /* The connection there is to host and port, or a new one. */
    enum status (*open)(void *server, struct bytes host, struct bytes port, int64_t timeout_ms,
                        struct peer **out);
    enum status (*send)(struct peer *p, struct bytes bytes, int64_t timeout_ms);
    /* A line without its end, good until the next call. ST_SYNTAX: it is too long. */
    enum status (*read_line)(struct peer *p, int64_t timeout_ms, struct bytes *line);
    void (*close)(void *server, struct peer *p);
    size_t (*count)(const void *server);
};

struct block_registry;

struct cmd_context {
    struct dbset *dbs;
    struct config *config;
    struct metrics *metrics;
    struct error_counts errors;
    struct rates rates;
    struct command_stats *command_stats; /* by row id */
    struct histogram **command_latency;  /* by row id; NULL until its first tracked call */
    struct latency_monitor latency;
    struct client_registry clients;
    struct background background;
    struct block_registry *block; /* who waits for which key: cmd/block.h */
    bool block_ready;             /* some key may have something for a waiter */
    struct persist persist;
    uint64_t shutdown_client_id; /* whose SHUTDOWN is under way; 0: nobody's */
    struct rng rng;
    int64_t now_ms; /* wall clock of this batch, refreshed after a slow command; dbs->now_ms is the
                       same */
    int64_t started_ms;       /* wall clock when the server was ready */
    size_t used_memory_bytes; /* sampled by cron; compared with maxmemory */
    size_t peak_memory_bytes;
    size_t startup_memory_bytes;
    char run_id[41], repl_id[41];
    const char *executable;
    struct server_hooks hooks;
    struct peer_hooks peers;
};

/* Everything but hooks and clients.describe, which the server sets. ST_NOMEM leaves nothing to
 * free. */
MUST_CHECK enum status context_init(struct cmd_context *cx, struct config *config,
                                    struct dbset *dbs, struct metrics *metrics);
void context_deinit(struct cmd_context *cx);

/* Measure used_memory_bytes (heap allocations and arena chunks: what maxmemory is about) and keep
 * its peak. */
void context_sample_memory(struct cmd_context *cx);

/* The loop stood still for this long: a sample when latency-monitor-threshold asks for one. */
void context_note_latency(struct cmd_context *cx, enum latency_event event, uint64_t ns);

/* CONFIG RESETSTAT's part here. */
void context_reset_command_stats(struct cmd_context *cx);

/* Whether a child may share the data; *why is what a client is told otherwise. */
bool context_may_fork(const struct cmd_context *cx, const char **why);

/* Read the clock into now_ms and dbs->now_ms. */
void context_refresh_clock(struct cmd_context *cx);

static inline struct db *context_db(const struct cmd_context *cx, const struct client *c) {
    return cx->dbs->dbs[c->db];
}

#endif
