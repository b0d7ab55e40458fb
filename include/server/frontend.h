/* SPDX-License-Identifier: BSD-3-Clause */
/* frontend: between sockets and commands. One turn of the loop:
 *
 *   each readable connection   one read; every complete command in it joins the batch
 *   batch full, or all read    dispatch_batch, then one send a connection
 *
 *   tick buffer   what connections without a partial command read into, side by side: commands are
 * views into it, and it starts anew once they are executed. A connection that ends a read in the
 * middle of a command gets a buffer of its own for the rest, until that command is complete. An
 * idle one has no buffer. session       a connection's side of the protocol: parser, partial input,
 * and the client that commands see */
#ifndef SERVER_FRONTEND_H
#define SERVER_FRONTEND_H

#include "cmd/client.h"
#include "cmd/dispatch.h"
#include "net/conn.h"
#include "resp/parser.h"

/* One read. Long enough for a deep pipeline in one call, short enough that one connection does not
 * starve the rest. */
#define FRONTEND_READ_BYTES ((size_t)64 * 1024)
/* The tick buffer: what 16 connections can fill at most, within the L2 cache. */
#define FRONTEND_TICK_BYTES ((size_t)1024 * 1024)
/* What one read of a long argument takes at most, so that others get their turn. */
#define FRONTEND_BIG_READ_BYTES ((size_t)1024 * 1024)
/* Unsent replies at which a client's further commands wait until it has read them all. Its input is
 * still taken, so one that writes everything before it reads anything gets through. */
#define FRONTEND_STALL_BYTES ((size_t)1024 * 1024)
/* Deferred commands of one client executed in one turn. */
#define FRONTEND_REPLAY_MAX 1024
/* Input after which memory in use is measured again while maxmemory is set. */
#define FRONTEND_SAMPLE_BYTES ((uint64_t)1024 * 1024)

struct server;

struct session {
    struct client client;
    struct conn *conn;
    struct frontend *frontend;
    struct resp_parser parser;
    struct buf in;    /* input of a command that is not complete */
    size_t in_used;   /* bytes of it that were consumed; dropped before the next read */
    bool input_ended; /* nothing more is read: close once all deferred requests are answered */
    char end_error[RESP_ERROR_TEXT_LEN]; /* the protocol error that ended it, to be told then */
    size_t seen_output_bytes;     /* unsent at cron's last look: when it shrinks, the peer reads */
    struct session *next_resumed; /* in the frontend's list of those unblocked this turn */
    bool resumed;
    struct buf replay;     /* deferred requests that are being executed */
    size_t replay_used;    /* bytes of them that were */
    int64_t soft_since_ms; /* output over the soft limit since then; 0: it is not */
};

struct frontend {
    struct server *server;
    struct conn_set conns;
    struct batch batch;
    struct session *resumed_first, *resumed_last;
    uint64_t sampled_at_bytes; /* input there had been when memory in use was last measured */
    char *tick;
    size_t tick_len;
};

MUST_CHECK enum status frontend_setup(struct frontend *f, struct server *server);
void frontend_teardown(struct frontend *f);

/* A new connection from the listener. */
void frontend_accepted(void *frontend, int fd, bool is_unix);

/* Execute what the batch holds. */
void frontend_execute(struct frontend *f);

/* Loop hooks. */
void frontend_after_ready(struct loop *loop, void *server);
void frontend_before_sleep(struct loop *loop, void *server);

/* Close a session that is over client-output-buffer-limit. For cron: clients that send nothing are seen by nobody else. */
void frontend_check_output(struct session *s);

/* Heap bytes of a session and its connection. */
size_t session_memory(const struct session *s);

static inline struct session *session_of(const struct client *c) {
    return CONTAINER_OF(c, struct session, client);
}

#endif
