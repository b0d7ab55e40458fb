/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/watchdog.h"

#define CONN_DISCARD_MAX ((size_t)1 << 20) /* unread input thrown away before closing */

static_assert(sizeof(struct conn) <= 112, "an idle connection is this and its parser");

/* ---- the set's lists ---- */

static void link_conn(struct conn_set *set, struct conn *conn) {
    conn->prev = set->last;
    conn->next = NULL;
    if (set->last != NULL) {
        set->last->next = conn;
    } else {
        set->first = conn;
    }
    set->last = conn;
    set->count++;
}

static void unlink_conn(struct conn_set *set, struct conn *conn) {
    if (conn->prev != NULL) {
        conn->prev->next = conn->next;
    } else {
        set->first = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->prev = conn->prev;
    } else {
        set->last = conn->prev;
    }
    conn->prev = conn->next = NULL;
    set->count--;
}

/* Take conn out of the pending list. O(its length), for closing only. */
static void unlink_pending(struct conn_set *set, struct conn *conn) {
    if ((conn->flags & CONN_PENDING) == 0) {
        return;
    }
    struct conn **at = &set->pending;
    while (*at != conn) {
        at = &(*at)->next_pending;
    }
    *at = conn->next_pending;
    conn->flags &= ~(unsigned)CONN_PENDING;
}

/* ---- output buffers ---- */

static void take_spare(struct conn_set *set, struct buf *out) {
    if (set->spare_count > 0) {
        *out = set->spare[--set->spare_count];
    }
}

/* All of out is sent or given up: hand its memory on. */
static void release_out(struct conn *conn) {
    struct conn_set *set = conn->set;
    buf_clear(&conn->out);
    conn->sent = 0;
    if (conn->out.cap != 0 && conn->out.cap <= CONN_SPARE_CAP &&
        set->spare_count < CONN_SPARE_MAX) {
        set->spare[set->spare_count++] = conn->out;
        conn->out = (struct buf){0};
    } else {
        buf_deinit(&conn->out);
    }
}

/* ---- what is watched ---- */

static void watch(struct conn *conn) {
    unsigned unread = CONN_EOF | CONN_PAUSED | CONN_FLUSH_CLOSE;
    unsigned events = (conn->flags & unread) == 0 ? (unsigned)LOOP_READ : 0;
    events |= conn->io.events & LOOP_WRITE;
    if (loop_modify(conn->set->loop, &conn->io, events) != ST_OK) {
        conn_close(conn);
    }
}

/* Ask for EPOLLOUT, or no longer. */
static void watch_writing(struct conn *conn, bool on) {
    unsigned events = (conn->io.events & ~(unsigned)LOOP_WRITE) | (on ? (unsigned)LOOP_WRITE : 0);
    if (loop_modify(conn->set->loop, &conn->io, events) != ST_OK) {
        conn_close(conn);
    }
}

static void conn_ready(struct loop *loop, struct loop_io *io, unsigned events) {
    struct conn *conn = CONTAINER_OF(io, struct conn, io);
    if ((events & LOOP_WRITE) != 0 && conn_flush(conn) == ST_OK &&
        conn->set->handler.drained != NULL) {
        conn->set->handler.drained(conn);
    }
    if (!conn_is_open(conn)) {
        return;
    }
    if ((events & LOOP_READ) != 0) {
        conn->set->handler.readable(conn);
    } else if ((events & LOOP_FAILED) != 0) {
        conn_close(
            conn); /* nobody is left to read replies, and nothing is watched that could tell */
    }
}

/* ---- life ---- */

/* Free what was closed; closing more from inside closed() is fine. */
static void reap_closed(struct loop *loop, struct loop_task *task) {
    struct conn_set *set = CONTAINER_OF(task, struct conn_set, reap);
    struct conn *conn;
    while ((conn = set->closed) != NULL) {
        set->closed = conn->next;
        set->handler.closed(conn);
        buf_deinit(&conn->out);
        free(conn);
    }
}

void conn_set_init(struct conn_set *set, struct loop *loop, struct conn_handler handler,
                   int keepalive_s) {
    *set = (struct conn_set){.loop = loop, .handler = handler, .keepalive_s = keepalive_s};
    set->reap.run = reap_closed;
}

void conn_set_deinit(struct conn_set *set) {
    while (set->first != NULL) {
        conn_close(set->first);
    }
    reap_closed(set->loop, &set->reap);
    loop_cancel(set->loop, &set->reap);
    while (set->spare_count > 0) {
        buf_deinit(&set->spare[--set->spare_count]);
    }
}

/* As redis does it: probe after interval_s of silence, then three times at a third of that. */
static void set_keepalive(int fd, int interval_s) {
    int one = 1, probes = 3;
    int between_s = interval_s / 3 > 0 ? interval_s / 3 : 1;
    if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &interval_s, sizeof(interval_s)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof(between_s)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes)) != 0) {
        log_verbose("Setting keepalive of a client failed: %s", strerror(errno));
    }
}

static void set_tcp_options(int fd, int keepalive_s) {
    int one = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0) {
        log_verbose("Setting TCP_NODELAY of a client failed: %s", strerror(errno));
    }
    if (keepalive_s > 0) {
        set_keepalive(fd, keepalive_s);
    }
}

struct conn *conn_create(struct conn_set *set, int fd, bool is_unix, void *user) {
    struct conn *conn = calloc(1, sizeof(*conn));
    if (conn == NULL) {
        close(fd);
        return NULL;
    }
    conn->io.ready = conn_ready;
    conn->set = set;
    conn->flags = is_unix ? (unsigned)CONN_UNIX : 0;
    conn->user = user;
    conn->created_ms = loop_now_ms(set->loop);
    if (!is_unix) {
        set_tcp_options(fd, set->keepalive_s);
    }
    if (loop_add(set->loop, &conn->io, fd, LOOP_READ) != ST_OK) {
        close(fd);
        free(conn);
        return NULL;
    }
    link_conn(set, conn);
    return conn;
}

void conn_close(struct conn *conn) {
    struct conn_set *set = conn->set;
    if (!conn_is_open(conn)) {
        return;
    }
    unlink_pending(set, conn);
    unlink_conn(set, conn);
    conn->flags |= CONN_CLOSING;
    if (set->handler.closing != NULL) {
        set->handler.closing(conn);
    }
    loop_remove(set->loop, &conn->io);
    close(conn->io.fd);
    conn->io.fd = -1;
    release_out(conn);
    conn->next = set->closed;
    set->closed = conn;
    loop_defer(set->loop, &set->reap);
}

void conn_close_after_flush(struct conn *conn) {
    if (!conn_is_open(conn)) {
        return;
    }
    if (conn_out_len(conn) == 0) {
        conn_close(conn);
        return;
    }
    conn->flags |= CONN_FLUSH_CLOSE;
    watch(conn);
}

void conn_pause_reading(struct conn *conn, bool pause) {
    if (!conn_is_open(conn)) {
        return;
    }
    conn->flags = pause ? conn->flags | CONN_PAUSED : conn->flags & ~(unsigned)CONN_PAUSED;
    watch(conn);
}

/* ---- bytes ---- */

enum status conn_read(struct conn *conn, void *ptr, size_t cap, size_t *n) {
    *n = 0;
    if (!conn_is_open(conn) || (conn->flags & CONN_EOF) != 0) {
        return ST_CLOSED;
    }
    ssize_t got;
    WATCHDOG_BEGIN(start);
    do {
        got = recv(conn->io.fd, ptr, cap, 0);
    } while (got < 0 && errno == EINTR);
    WATCHDOG_END(start, "receive", NULL);
    if (got > 0) {
        *n = (size_t)got;
        return ST_OK;
    }
    if (got < 0) {
        return errno == EAGAIN ? ST_AGAIN : ST_IO;
    }
    conn->flags |= CONN_EOF;
    watch(conn);
    return ST_CLOSED;
}

struct buf *conn_out(struct conn *conn) {
    if (conn->out.cap == 0) {
        take_spare(conn->set, &conn->out);
    }
    if ((conn->flags & (CONN_PENDING | CONN_CLOSING)) == 0) {
        conn->flags |= CONN_PENDING;
        conn->next_pending = conn->set->pending;
        conn->set->pending = conn;
    }
    return &conn->out;
}

/* Closing TCP with input unread resets the connection, and a reset may overtake the last reply (the
 * one that says why we close). Discard what has arrived, within reason. */
static void discard_input(struct conn *conn) {
    if ((conn->flags & CONN_UNIX) == 0) {
        (void)!recv(conn->io.fd, NULL, CONN_DISCARD_MAX, MSG_TRUNC | MSG_DONTWAIT);
    }
}

/* The output is all sent. */
static enum status flushed(struct conn *conn) {
    release_out(conn);
    if ((conn->flags & CONN_FLUSH_CLOSE) != 0) {
        discard_input(conn);
        conn_close(conn);
        return ST_CLOSED;
    }
    watch_writing(conn, false);
    return conn_is_open(conn) ? ST_OK : ST_CLOSED;
}

enum status conn_flush(struct conn *conn) {
    if (!conn_is_open(conn)) {
        return ST_CLOSED;
    }
    if (conn->out
            .failed) { /* a reply is missing in the middle: nothing behind it can be told apart */
        log_warning("A client's output buffer could not grow; closing it");
        conn_close(conn);
        return ST_CLOSED;
    }
    size_t left = conn_out_len(conn);
    if (left == 0) {
        return flushed(conn);
    }
    ssize_t n;
    WATCHDOG_BEGIN(start);
    do {
        n = send(conn->io.fd, conn->out.ptr + conn->sent, left, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    WATCHDOG_END(start, "send", NULL);
    if (n < 0 && errno != EAGAIN) {
        conn_close(conn);
        return ST_CLOSED;
    }
    conn->set->sends++;
    conn->set->sent_bytes += n > 0 ? (size_t)n : 0;
    if (n == (ssize_t)left) {
        return flushed(conn);
    }
    /* A short send of a stream socket means it is full: no second call to hear EAGAIN. */
    conn->sent += n > 0 ? (size_t)n : 0;
    if (conn->sent > conn->out.len / 2 && conn->sent > CONN_SPARE_CAP) {
        buf_consume(&conn->out, conn->sent); /* moves less than was sent: O(1) a byte */
        conn->sent = 0;
    }
    watch_writing(conn, true);
    return conn_is_open(conn) ? ST_AGAIN : ST_CLOSED;
}

void conn_set_flush(struct conn_set *set) {
    struct conn *conn;
    while ((conn = set->pending) != NULL) {
        set->pending = conn->next_pending;
        conn->flags &= ~(unsigned)CONN_PENDING;
        if ((conn->io.events & LOOP_WRITE) == 0 || conn->out.failed) {
            conn_flush(conn);
        }
    }
}

/* ---- addresses ---- */

static void format_address(const struct sockaddr_storage *name, socklen_t len, char *out) {
    char host[INET6_ADDRSTRLEN];
    if (name->ss_family == AF_INET) {
        const struct sockaddr_in *in4 = (const struct sockaddr_in *)name;
        inet_ntop(AF_INET, &in4->sin_addr, host, sizeof(host));
        snprintf(out, CONN_ADDRESS_LEN, "%s:%d", host, ntohs(in4->sin_port));
    } else if (name->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)name;
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
        snprintf(out, CONN_ADDRESS_LEN, "[%s]:%d", host, ntohs(in6->sin6_port));
    } else if (name->ss_family == AF_UNIX && len > offsetof(struct sockaddr_un, sun_path)) {
        const struct sockaddr_un *un = (const struct sockaddr_un *)name;
        snprintf(out, CONN_ADDRESS_LEN, "%.*s:0", (int)sizeof(un->sun_path), un->sun_path);
    }
}

void conn_local_address(const struct conn *conn, char *out) {
    struct sockaddr_storage name = {0};
    socklen_t len = sizeof(name);
    snprintf(out, CONN_ADDRESS_LEN, "?:0");
    if (conn_is_open(conn) && getsockname(conn->io.fd, (struct sockaddr *)&name, &len) == 0) {
        format_address(&name, len, out);
    }
}

void conn_peer_address(const struct conn *conn, char *out) {
    if ((conn->flags & CONN_UNIX) != 0) { /* its clients have no name: show where they came in */
        conn_local_address(conn, out);
        return;
    }
    struct sockaddr_storage name = {0};
    socklen_t len = sizeof(name);
    snprintf(out, CONN_ADDRESS_LEN, "?:0");
    if (conn_is_open(conn) && getpeername(conn->io.fd, (struct sockaddr *)&name, &len) == 0) {
        format_address(&name, len, out);
    }
}
