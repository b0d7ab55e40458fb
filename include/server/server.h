/* SPDX-License-Identifier: BSD-3-Clause */
/* server: the one place that sees everything. main sets it up in dependency order and tears it down
 * in reverse. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "cmd/context.h"
#include "cmd/dispatch.h"
#include "config/config.h"
#include "mem/pages.h"
#include "net/conn.h"
#include "net/listener.h"
#include "net/loop.h"
#include "server/frontend.h"
#include "stats/metrics.h"

struct link;

struct server {
    struct config config;
    struct metrics metrics;
    struct pages *pages;
    struct dbset *dbs;
    struct cmd_context cx;
    struct loop *loop;
    struct frontend frontend;
    struct listener *listener;
    struct link *peers; /* connections to other servers (peers.c) */
    size_t peer_count;
    struct loop_timer cron; /* hz times a second */
    struct loop_timer
        upkeep; /* every UPKEEP_PERIOD_MS while there is something to free or expire */
    struct loop_timer deadline; /* the next blocked client's time-out */
    size_t freed_seen_bytes;    /* account_freed_bytes at the last look */
    int64_t decay_until_ms; /* loop time up to which freed memory is given back in small parts */
    int64_t deadline_ms;    /* wall clock the timer is set for; INT64_MAX: it is not */
    struct loop_io signals;
    unsigned shutdown_flags; /* enum shutdown_flag; 0: nobody asked for the end */
    bool load_wanted;        /* LOAD waits for the batch to be done */
    bool between_turns;      /* the loop may be turned while a snapshot is loaded */
    bool on_terminal;        /* for the progress line */
    bool shown;
    int64_t shown_us;
    const char *executable; /* path of this program, for INFO */
};

/* Everything but main's argument handling: pages, databases, commands, sockets, timers. error gets
 * one line. */
MUST_CHECK enum status server_setup(struct server *s, struct buf *error);
void server_teardown(struct server *s);

/* Values built as the options say. */
struct type_env server_type_env(const struct config *config, struct pages *pages);

/* ---- screen.c ------------------------------------------------------------------------------ */

/* At the start: version, allocator, pages asked for and what there is of them, where it listens. */
void server_print_start(const struct server *s);

/* Once the snapshot is loaded: how much of the huge pages asked for was had. */
void server_print_shares(const struct server *s);

/* ---- cron.c -------------------------------------------------------------------------------- */

MUST_CHECK enum status cron_setup(struct server *s);
void cron_teardown(struct server *s);

/* There may be something to free or expire: run upkeep soon. */
void cron_poke(struct server *s);

/* So much memory was freed that it is to go back to the kernel in parts: run upkeep soon. */
bool cron_has_freed(const struct server *s);

/* Clients are blocked: see that the first time-out is answered when it is due. */
void cron_watch_deadlines(struct server *s);

/* ---- peers.c ------------------------------------------------------------------------------- */

void peers_setup(struct server *s);
void peers_teardown(struct server *s);

/* Close those that nobody has used for 10 s. */
void peers_tend(struct server *s);

/* ---- persist.c ----------------------------------------------------------------------------- */

void persist_hooks(struct server *s);

/* Load what is there at start. ST_CLOSED: the program is to end already. Any other fault is told in error. */
MUST_CHECK enum status persist_start(struct server *s, struct buf *error);

/* Run the loop, load in between when LOAD asks for it, and save at the end when that is wanted. ST_IO when
 * the loop fails. */
MUST_CHECK enum status persist_run(struct server *s);

/* ---- check.c ------------------------------------------------------------------------------- */

/* --check-rdb: read a file to its end and print what is in it. The program's exit status. */
int check_rdb(const struct config *config, const char *path);

/* ---- hugepages.c --------------------------------------------------------------------------- */

/* --check-hugepages [SIZE] [FILE] [--name value ...]: print what this machine would give for SIZE bytes. The
 * program's exit status: 0 when they can be had on huge pages of each kind that the options ask for, of any kind
 * when they ask for none; 1 when not; 2 for bad arguments. Without SIZE, one page is SIZE. */
int check_hugepages(struct config *config, int argc, char *const *argv);

/* ---- signals.c ----------------------------------------------------------------------------- */

MUST_CHECK enum status signals_setup(struct server *s);
void signals_teardown(struct server *s);

/* Look at signals while the loop stands still. */
void signals_poll(struct server *s);

/* ---- apply.c: CONFIG SET made true ----------------------------------------------------------- */

void apply_setup(struct server *s);

/* Raise the limit of open files for maxclients; false: it cannot be had, *possible says how many
 * clients can. */
bool apply_maxclients(size_t wanted, size_t *possible);

#endif
