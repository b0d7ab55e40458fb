/* SPDX-License-Identifier: BSD-3-Clause */
/* persist: saving and loading in this process, as commands, INFO and the server's start and end share
 * it. Files and formats are persist/snapshot.h's.
 *
 *   dbfilename   the snapshot that is loaded at the next start. Only saving to it, or loading from it,
 *                counts for LASTSAVE and the changes since then; any other name is a copy
 *   name, path   a name comes from a client and is in the working directory (snapshot_name_ok); a path
 *                is the operator's
 *
 * SAVE stops the server while it runs. LOAD and the loading at start run between two turns of the
 * loop, and turn it meanwhile: commands without CMD_LOADING are answered with -LOADING. */
#ifndef CMD_PERSIST_H
#define CMD_PERSIST_H

#include "persist/snapshot.h"

struct call;
struct cmd_context;

struct persist {
    int64_t last_save_ms; /* wall clock of the last save to dbfilename; of the start before any */
    int64_t saved_us;     /* the same moment by the monotonic clock */
    uint64_t loaded_keys, loaded_expired; /* by the last load that was good */

    /* While something is loaded, and 0 otherwise. */
    bool loading; /* from LOAD's request on */
    int64_t loading_since_ms;
    uint64_t loading_total_bytes, loading_bytes;

    /* What LOAD asked for: the server does it once the batch is executed. */
    char load_name[256];
    uint64_t load_client_id;
    bool load_over_maxmemory; /* why it was stopped */
};

/* How far a file is, for whoever shows it. */
struct persist_progress {
    bool loading; /* or saving */
    const char *path;
    uint64_t bytes, total_bytes; /* total_bytes: 0 when not known, as in saving */
    uint64_t keys, total_keys;   /* likewise, in loading */
    bool over;                   /* the last call for this file */
};

void persist_setup(struct cmd_context *cx);

/* dbfilename holds all but the changes made since stats.dirty was dirty_then. */
void persist_note_saved(struct cmd_context *cx, uint64_t dirty_then);

/* Save all to name, in this process, logging how it went. As snapshot_save. */
MUST_CHECK enum status persist_save(struct cmd_context *cx, struct bytes name,
                                    char error[SNAPSHOT_ERROR_LEN]);

/* Replace all data by path's, logging how it went; the old data stay unless ST_OK. Waiting clients are
 * not served. With a limit: ST_NOMEM when old and new data together pass maxmemory. As snapshot_load. */
enum persist_limit { PERSIST_NO_LIMIT, PERSIST_MAXMEMORY };
MUST_CHECK enum status persist_load(struct cmd_context *cx, const char *path,
                                    enum persist_limit limit, char error[SNAPSHOT_ERROR_LEN]);

/* Do what LOAD asked for and answer the client, if it is still there. */
void persist_run_load(struct cmd_context *cx);

/* Does the name mean dbfilename? */
bool persist_is_main_file(const struct cmd_context *cx, struct bytes name);

/* The name a client gave as argument i, dbfilename when there is no such argument. False: it may not be
 * used, and the error was replied. */
MUST_CHECK bool persist_name_argument(struct call *call, size_t i, struct bytes *name);

#endif
