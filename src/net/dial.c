/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/dial.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

#define READ_BYTES ((size_t)16 << 10)

struct dial {
    int fd;
    struct buf in;
    size_t in_pos; /* before: given out as lines */
};

/* ---- waiting -------------------------------------------------------------------------------- */

/* Until the socket is ready for one of the events. */
static enum status wait_for(int fd, short events, int64_t timeout_ms, short *ready) {
    struct pollfd p = {.fd = fd, .events = events};
    int64_t end_us = clock_monotonic_us() + timeout_ms * 1000;
    for (int64_t left_ms = timeout_ms;;) {
        int n = poll(&p, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
        if (n > 0) {
            *ready = p.revents;
            return ST_OK;
        }
        if (n < 0 && errno != EINTR) {
            return ST_IO;
        }
        left_ms = (end_us - clock_monotonic_us() + 999) / 1000;
        if (left_ms <= 0) {
            return ST_AGAIN;
        }
    }
}

static bool would_block(void) {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* ---- connecting ----------------------------------------------------------------------------- */

static enum status await_connection(int fd, int64_t timeout_ms) {
    short ready;
    int error = 0;
    socklen_t len = sizeof(error);
    enum status st = wait_for(fd, POLLOUT, timeout_ms, &ready);
    if (st != ST_OK) {
        return st;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        return ST_IO;
    }
    errno = error;
    return error == 0 ? ST_OK : ST_IO;
}

static enum status connect_to(const struct addrinfo *address, int64_t timeout_ms, int *out) {
    int one = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    address->ai_protocol);
    if (fd < 0) {
        return ST_IO;
    }
    /* without it requests are slower, no more */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    enum status st = ST_OK;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        st = errno == EINPROGRESS ? await_connection(fd, timeout_ms) : ST_IO;
    }
    if (st != ST_OK) {
        int error = errno;
        close(fd);
        errno = error;
        return st;
    }
    *out = fd;
    return ST_OK;
}

/* One after the other, within the time for all. */
static enum status connect_any(const struct addrinfo *addresses, int64_t timeout_ms, int *out) {
    enum status st = ST_IO;
    int64_t end_us = clock_monotonic_us() + timeout_ms * 1000;
    for (const struct addrinfo *a = addresses; a != NULL; a = a->ai_next) {
        int64_t left_ms = (end_us - clock_monotonic_us() + 999) / 1000;
        if (left_ms <= 0) {
            return ST_AGAIN;
        }
        st = connect_to(a, left_ms, out);
        if (st == ST_OK) {
            return ST_OK;
        }
    }
    return st;
}

enum status dial_open(const char *host, const char *port, int64_t timeout_ms, struct dial **out) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *addresses;
    if (getaddrinfo(host, port, &hints, &addresses) != 0) {
        errno = EHOSTUNREACH;
        return ST_IO;
    }
    struct dial *d = calloc(1, sizeof(*d));
    enum status st = d == NULL ? ST_NOMEM : connect_any(addresses, timeout_ms, &d->fd);
    freeaddrinfo(addresses);
    if (st != ST_OK) {
        free(d);
        return st;
    }
    *out = d;
    return ST_OK;
}

void dial_close(struct dial *d) {
    if (d != NULL) {
        close(d->fd);
        buf_deinit(&d->in);
        free(d);
    }
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* What is there, READ_BYTES at most. */
static enum status receive(struct dial *d) {
    char *to = buf_tail(&d->in, READ_BYTES);
    if (to == NULL) {
        return ST_NOMEM;
    }
    ssize_t n = recv(d->fd, to, READ_BYTES, 0);
    if (n > 0) {
        d->in.len += (size_t)n;
        return ST_OK;
    }
    if (n == 0) {
        return ST_CLOSED;
    }
    return would_block() ? ST_OK : ST_IO;
}

enum status dial_send(struct dial *d, struct bytes bytes, int64_t timeout_ms) {
    while (bytes.len != 0) {
        short ready, events = POLLOUT;
        ssize_t n = send(d->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n > 0) {
            bytes = BYTES(bytes.ptr + n, bytes.len - (size_t)n);
            continue;
        }
        if (n < 0 && !would_block()) {
            return errno == EPIPE || errno == ECONNRESET ? ST_CLOSED : ST_IO;
        }
        if (d->in.len - d->in_pos < DIAL_INPUT_MAX) {
            events |= POLLIN;
        }
        enum status st = wait_for(d->fd, events, timeout_ms, &ready);
        if (st == ST_OK && (ready & POLLIN) && (events & POLLIN)) {
            st = receive(d);
        }
        if (st != ST_OK) {
            return st;
        }
    }
    return ST_OK;
}

/* A complete line at in_pos, taken. */
static bool take_line(struct dial *d, struct bytes *line) {
    const char *from = d->in.ptr + d->in_pos;
    size_t len = d->in.len - d->in_pos;
    const char *end = len == 0 ? NULL : memchr(from, '\n', len);
    if (end == NULL) {
        return false;
    }
    d->in_pos += (size_t)(end - from) + 1;
    *line = BYTES(from, (size_t)(end - from));
    if (line->len != 0 && line->ptr[line->len - 1] == '\r') {
        line->len--;
    }
    return true;
}

enum status dial_read_line(struct dial *d, int64_t timeout_ms, struct bytes *line) {
    while (!take_line(d, line)) {
        short ready;
        buf_consume(&d->in, d->in_pos);
        d->in_pos = 0;
        if (d->in.len > DIAL_LINE_MAX) {
            return ST_SYNTAX;
        }
        enum status st = wait_for(d->fd, POLLIN, timeout_ms, &ready);
        st = st == ST_OK ? receive(d) : st;
        if (st != ST_OK) {
            return st;
        }
    }
    return line->len <= DIAL_LINE_MAX ? ST_OK : ST_SYNTAX;
}
