/* SPDX-License-Identifier: BSD-3-Clause */
/* background: snapshots that save themselves: BGSAVE and save points, as commands, INFO and cron see them.
 *
 *   point       "so many changes, and so long ago was the last save": the option save
 *   unsaved     the last save to dbfilename failed in the background, or at a point: writes are refused while
 *               there are points (stop-writes-on-bgsave-error), which try again after BACKGROUND_RETRY_S
 *
 * Only a save to dbfilename counts for LASTSAVE and the changes since then; one to another name is a
 * copy. */
#ifndef CMD_BACKGROUND_H
#define CMD_BACKGROUND_H

#include "persist/bgsave.h"

#define BACKGROUND_RETRY_S 5

/* What everything is answered with that cannot go beside a background save. */
#define BACKGROUND_IN_PROGRESS "ERR Background save already in progress"

struct cmd_context;

struct background {
    struct bgsave *child;
    char name[256];        /* what it writes */
    uint64_t dirty_before; /* changes at the fork */
    int64_t tried_us;      /* monotonic: when the last background save began */
    int64_t took_s;        /* how long the last one took; -1: none yet */
    uint64_t copied_bytes; /* of the last one */
    bool failed;           /* the last one, whatever its name; INFO tells it or unsaved */
    bool unsaved;
};

MUST_CHECK enum status background_setup(struct cmd_context *cx);

/* A child that lives is killed and waited for. */
void background_teardown(struct cmd_context *cx);

/* Fork a child that saves to name. ST_EXISTS, ST_UNSUPPORTED (the data cannot be shared with a child), ST_IO:
 * error says why. */
MUST_CHECK enum status background_save(struct cmd_context *cx, struct bytes name,
                                       char error[SNAPSHOT_ERROR_LEN]);

bool background_is_saving(const struct cmd_context *cx);

/* End the child. wait: kill it, and do not return before it is gone; else it goes when it hears of it. */
void background_cancel(struct cmd_context *cx, bool wait);

/* A child may have ended. */
void background_poll(struct cmd_context *cx);

/* Start a save when a save point has come. */
void background_cron(struct cmd_context *cx);

/* Why the configured save points cannot be obeyed; NULL: they can. */
const char *background_refuses_points(const struct cmd_context *cx);

/* Writes are to be refused until a save is good. */
bool background_stops_writes(const struct cmd_context *cx);

#endif
