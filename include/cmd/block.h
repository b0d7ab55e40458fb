/* SPDX-License-Identifier: BSD-3-Clause */
/* block: clients that wait until a key has something for them (BZPOPMIN and its relatives).
 *
 *   waiter     a blocked client with the keys it waits for, in the order it named them
 *   ready key  a key that a write may have given something; looked at when that command is done
 *   served     a waiter got its reply and is no longer blocked
 *
 * Waiters of a key are served first come, first served. A waiter's commands that come in meanwhile are kept and executed
 * once it is served (dispatch defers them). The hidden state is one registry in the context, empty at no cost while
 * nobody waits. */
#ifndef CMD_BLOCK_H
#define CMD_BLOCK_H

#include "cmd/call.h"
#include "cmd/lookup.h"

struct block_registry;

struct block_ops {
    /* A key the client waits for may be ready. Serve it from there: write one complete reply to r and return true; or
     * return false having written nothing (empty, or another type). db is the waiter's database; the handler does what
     * the command would have done, deleting the key when it is empty and counting changes included. It may signal
     * further keys (BLMOVE's destination). */
    bool (*serve)(struct cmd_context *cx, struct db *db, struct bytes key, struct bytes payload,
                  struct reply *r);
    /* The time is up: write the reply. */
    void (*time_out)(struct reply *r);
};

/* Block the calling client on count keys at call->argv[first_key ...]. The handler has replied nothing and returns next.
 *
 *   timeout_ms  from now; 0 waits for ever
 *   payload     copied: what serve needs to know (direction, count, another key)
 *
 * Out of memory is replied as an error. A client whose connection is closed does not wait, and nothing of what it sent
 * behind this is executed. */
void block_client(struct call *call, size_t first_key, size_t count, int64_t timeout_ms,
                  const struct block_ops *ops, struct bytes payload);

/* A timeout argument, seconds with fractions: "ERR timeout is not a float or out of range", "ERR timeout is negative",
 * "ERR timeout is out of range". False: the error was replied. 0 means for ever. */
MUST_CHECK bool block_parse_timeout(struct call *call, size_t i, int64_t *timeout_ms);

/* To be called by every command that gives a key of a type clients can wait for its first or further elements, renames
 * or copies a key to a name, or swaps databases. Cheap while nobody waits. */
void block_signal_key(struct cmd_context *cx, struct db *db, struct bytes key);
void block_signal_db(struct cmd_context *cx, struct db *db);

/* ---- for dispatch and the server -------------------------------------------------------------- */

MUST_CHECK enum status block_setup(struct cmd_context *cx);
void block_teardown(struct cmd_context *cx);

static inline bool block_is_blocked(const struct client *c) {
    return c->waiter != NULL;
}

/* Serve the waiters of ready keys; after each command. */
void block_serve_ready(struct cmd_context *cx);

/* Answer those whose time is up; from cron. The next deadline, INT64_MAX when none. */
int64_t block_expire(struct cmd_context *cx);

/* Unblock a client without serving it: with its time-out reply, or with "-UNBLOCKED client unblocked via CLIENT UNBLOCK". */
void block_cancel(struct cmd_context *cx, struct client *c, bool with_error);

/* Block the calling client until the server has done what it asked for: where its reply goes then, and the end of
 * its waiting. False: there was no memory, and that was replied. */
MUST_CHECK bool block_until_released(struct call *call);
struct reply block_reply(struct cmd_context *cx, struct client *c);
void block_release(struct cmd_context *cx, struct client *c);

/* The client is going away: at once, nothing may be served to a closed connection. */
void block_forget(struct cmd_context *cx, struct client *c);

size_t block_count(const struct cmd_context *cx);
/* Those of them whose time will be up. */
size_t block_timed_count(const struct cmd_context *cx);

#endif
