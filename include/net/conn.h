/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: bytes in and out of one socket. What the bytes mean is the owner's business.
 *
 * A *conn set* holds all connections of one owner on one loop. Life of a connection:
 *
 *     conn_create            watched for reading
 *     handler.readable       the owner calls conn_read, parses, executes, appends to conn_out
 *     conn_set_flush         one send for each connection that has output; what the socket does not
 *                            take waits for EPOLLOUT, which is asked for only then
 *     conn_close             the socket is closed and handler.closing called at once; handler.closed and the freeing wait for
 *                            the end of the turn, so a pointer held by a batch stays good until
 * then
 *
 * Closing is safe from everywhere: from its own handler, from another connection's command, twice.
 * After it conn_is_open is false, output is dropped, readable is not called again.
 *
 * A peer that shuts down its sending side (half-closed) still gets its replies: conn_read answers
 * ST_CLOSED and stops watching for input; the owner executes what it has and calls
 * conn_close_after_flush.
 *
 * Memory: struct conn, nothing else, while idle: an output buffer that was drained goes back to a
 * small pool of the set (warm ones are handed out first) or, when large, to the system.
 * SIGPIPE is never raised. */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/status.h"
#include "net/loop.h"

#define CONN_SPARE_MAX 32                  /* drained output buffers a set keeps */
#define CONN_SPARE_CAP ((size_t)32 * 1024) /* none larger than this: 1 MiB in all */
#define CONN_ADDRESS_LEN 128               /* a Unix path, or "[ipv6%scope]:port" */

struct conn;
struct conn_set;

struct conn_handler {
    /* Input, an error or the end of it is to be had from conn_read. */
    void (*readable)(struct conn *conn);
    /* Nothing reaches the peer from now on; called once, by conn_close, before closed. The owner
     * gives up what others could still hand to it, and closes nothing. May be NULL. */
    void (*closing)(struct conn *conn);
    /* The connection is gone; its memory goes when this returns. Called once for every one. */
    void (*closed)(struct conn *conn);
    /* Output that had to wait is all sent; may be NULL. For owners that stopped reading meanwhile.
     */
    void (*drained)(struct conn *conn);
};

enum conn_flags {
    CONN_UNIX = 1,
    CONN_CLOSING = 2,     /* conn_close was called */
    CONN_FLUSH_CLOSE = 4, /* close once the output is sent */
    CONN_EOF = 8,         /* the peer has shut down its side */
    CONN_PAUSED = 16,     /* the owner does not want to read now */
    CONN_PENDING = 32     /* in the set's list for the next flush */
};

/* Fields but user are read-only for owners. 112 bytes. */
struct conn {
    struct loop_io io;
    unsigned flags; /* enum conn_flags */
    struct conn_set *set;
    struct conn *prev,
        *next; /* all open connections of the set, oldest first; or the closed ones */
    struct conn *next_pending;
    struct buf out;
    size_t sent; /* bytes of out the socket has taken */
    void *user;
    int64_t created_ms; /* loop time */
};

struct conn_set {
    struct loop *loop;
    struct conn_handler handler;
    int keepalive_s; /* TCP keepalive for connections made from now on; 0: none */
    struct conn *first, *last;
    size_t count;
    struct conn *pending; /* have new output */
    struct conn *closed;  /* to be freed at the end of the turn */
    struct loop_task reap;
    struct buf spare[CONN_SPARE_MAX];
    size_t spare_count;
    uint64_t sends, sent_bytes; /* since the owner last set them to 0 */
};

void conn_set_init(struct conn_set *set, struct loop *loop, struct conn_handler handler,
                   int keepalive_s);
/* Closes and frees all, handler.closed included. */
void conn_set_deinit(struct conn_set *set);

/* Take over a connected non-blocking socket: TCP_NODELAY and keepalive for TCP, watched for input.
 * NULL when out of memory or the kernel refuses; fd is closed then. */
struct conn *conn_create(struct conn_set *set, int fd, bool is_unix, void *user);

static inline bool conn_is_open(const struct conn *conn) {
    return (conn->flags & CONN_CLOSING) == 0;
}

/* Read at most cap bytes into ptr; one system call.
 *   ST_OK      *n > 0 bytes
 *   ST_AGAIN   nothing now
 *   ST_CLOSED  the peer sends no more; input is no longer watched
 *   ST_IO      the connection broke; call conn_close */
MUST_CHECK enum status conn_read(struct conn *conn, void *ptr, size_t cap, size_t *n);

/* The output buffer to append to; the connection will be looked at by the next conn_set_flush. Ask
 * again after each flush. On a closed connection what is appended goes nowhere. */
struct buf *conn_out(struct conn *conn);

/* Bytes appended and not yet sent. */
static inline size_t conn_out_len(const struct conn *conn) {
    return conn->out.len - conn->sent;
}

/* One send. ST_OK when all is out, ST_AGAIN when the rest waits for the socket, ST_CLOSED when the
 * connection broke, was closed, or its output buffer failed for want of memory (it is closed). */
enum status conn_flush(struct conn *conn);

/* conn_flush for every connection with new output that is not waiting for its socket already. */
void conn_set_flush(struct conn_set *set);

/* Stop or go on reading: back-pressure for a peer that does not read its replies. */
void conn_pause_reading(struct conn *conn, bool pause);

/* Close once all output is sent; reads no more. An error on the way closes at once. */
void conn_close_after_flush(struct conn *conn);
void conn_close(struct conn *conn);

/* "127.0.0.1:6379", "[::1]:6379", "/path/sock:0", or "?:0" when there is none any more. out has
 * CONN_ADDRESS_LEN bytes and is terminated. */
void conn_peer_address(const struct conn *conn, char *out);
void conn_local_address(const struct conn *conn, char *out);

#endif
