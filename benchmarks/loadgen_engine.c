/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of the load generator and the closed loop over them: one thread, epoll. The next
 * batch of a connection is built while the server works on the current one, so that a reply is
 * followed at once by the next request. */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "loadgen_priv.h"

#define RECV_BYTES (64u << 10)
#define SILENCE_LIMIT_MS 60000 /* a server that answers nothing for so long is dead */
#define PROGRESS_US 200000

/* ---- batches ------------------------------------------------------------------------------- */

struct batch *batch_acquire(struct engine *e) {
    struct batch *b = e->free_batches;
    if (b != NULL) {
        e->free_batches = b->after;
        b->after = NULL;
        return b;
    }
    b = calloc(1, sizeof(*b));
    if (b != NULL) {
        b->items = calloc(e->opt->pipeline, sizeof(struct item));
    }
    if (b == NULL || b->items == NULL) {
        die(EXIT_RUN_FAILED, "out of memory; lower --pipeline or --connections");
    }
    return b;
}

void batch_release(struct engine *e, struct batch *b) {
    b->after = e->free_batches;
    e->free_batches = b;
}

static void batches_destroy(struct batch *b) {
    while (b != NULL) {
        struct batch *after = b->after;
        buf_deinit(&b->out);
        free(b->items);
        free(b);
        b = after;
    }
}

/* ---- connections --------------------------------------------------------------------------- */

static int connect_to(const struct options *o) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    struct addrinfo *list = NULL;
    int rc = getaddrinfo(o->host, o->port, &hints, &list);
    if (rc != 0) {
        die(EXIT_NO_SERVER, "%s: %s", o->host, gai_strerror(rc));
    }
    int fd = -1;
    for (struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            int saved = errno;
            close(fd);
            errno = saved;
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd < 0) {
        die(EXIT_NO_SERVER, "cannot connect to %s port %s: %s", o->host, o->port, strerror(errno));
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static void watch(struct engine *e, struct conn *c, int operation) {
    struct epoll_event ev = {.events = EPOLLIN | (c->wants_write ? EPOLLOUT : 0u), .data.ptr = c};
    if (epoll_ctl(e->epoll_fd, operation, c->fd, &ev) != 0) {
        die(EXIT_RUN_FAILED, "epoll_ctl: %s", strerror(errno));
    }
}

static void conns_init(struct engine *e) {
    const struct options *o = e->opt;
    e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    e->conns = calloc(o->connections, sizeof(*e->conns));
    if (e->epoll_fd < 0 || e->conns == NULL) {
        die(EXIT_RUN_FAILED, "cannot set up %" PRIu64 " connections", o->connections);
    }
    for (size_t i = 0; i < o->connections; i++) {
        e->conns[i].fd = connect_to(o);
        watch(e, &e->conns[i], EPOLL_CTL_ADD);
    }
}

static void conns_deinit(struct engine *e) {
    for (size_t i = 0; i < e->opt->connections; i++) {
        struct conn *c = &e->conns[i];
        close(c->fd);
        buf_deinit(&c->in);
        batches_destroy(c->oldest);
        batches_destroy(c->ahead);
    }
    batches_destroy(e->free_batches);
    free(e->conns);
    close(e->epoll_fd);
}

/* Send what is left; ask for EPOLLOUT only while the kernel is full. */
static void send_pending(struct engine *e, struct conn *c) {
    bool full = false;
    while (c->sending != NULL && !full) {
        const struct buf *out = &c->sending->out;
        ssize_t n = send(c->fd, out->ptr + c->sent_bytes, out->len - c->sent_bytes,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
            die(EXIT_RUN_FAILED, "send: %s", strerror(errno));
        }
        full = n < 0;
        c->sent_bytes += full ? 0 : (size_t)n;
        if (c->sent_bytes == out->len) {
            c->sending = c->sending->after;
            c->sent_bytes = 0;
        }
    }
    if (full != c->wants_write) {
        c->wants_write = full;
        watch(e, c, EPOLL_CTL_MOD);
    }
}

void conn_submit(struct engine *e, struct conn *c, struct batch *b) {
    b->after = NULL;
    if (c->oldest == NULL) {
        c->oldest = b;
        c->reply_count = 0;
    } else {
        c->newest->after = b;
    }
    c->newest = b;
    e->outstanding++;
    if (c->sending == NULL) {
        c->sending = b;
        send_pending(e, c);
    }
}

/* Send the batch that is ready, if there is one, and build the one after it. */
static void closed_next(struct engine *e, struct conn *c, int64_t now_ns) {
    struct batch *b = c->ahead;
    if (b == NULL || b->item_count == 0 || now_ns >= e->deadline_ns) {
        return;
    }
    b->due_ns = now_ns;
    conn_submit(e, c, b);
    c->ahead = batch_acquire(e);
    request_build(e, c->ahead);
}

/* ---- events -------------------------------------------------------------------------------- */

static void report_progress(struct engine *e) {
    int64_t now_us = clock_monotonic_us();
    if (now_us - e->progress_at_us >= PROGRESS_US || e->result->ops == e->opt->fields) {
        e->progress_at_us = now_us;
        fprintf(stderr, "progress %" PRIu64 " %" PRIu64 "\n", e->result->ops, e->opt->fields);
    }
}

static void note_series(struct result *r, int64_t took_ns) {
    if (r->series != NULL && r->series_len < r->series_cap) {
        r->series[r->series_len++] = took_ns < UINT32_MAX ? (uint32_t)took_ns : UINT32_MAX;
    }
}

static void batch_done(struct engine *e, struct conn *c, int64_t now_ns) {
    struct batch *b = c->oldest;
    histogram_add(&e->result->latency_ns, (uint64_t)(now_ns - b->due_ns));
    note_series(e->result, now_ns - b->due_ns);
    e->result->ops += b->op_count;
    c->oldest = b->after;
    c->reply_count = 0;
    e->outstanding--;
    batch_release(e, b);
    if (e->opt->progress) {
        report_progress(e);
    }
}

/* Read and check what has come; in a closed loop an answered batch is followed by the next. */
static void on_readable(struct engine *e, struct conn *c) {
    char *tail = buf_tail(&c->in, RECV_BYTES);
    must_have_grown(&c->in);
    ssize_t n = recv(c->fd, tail, RECV_BYTES, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno == ECONNRESET)) {
        die(EXIT_RUN_FAILED, "the server closed the connection");
    }
    if (n < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
            return;
        }
        die(EXIT_RUN_FAILED, "recv: %s", strerror(errno));
    }
    c->in.len += (size_t)n;
    while (c->in.len > 0) {
        if (c->oldest == NULL) {
            die(EXIT_RUN_FAILED, "the server sent a reply that nobody asked for");
        }
        if (!replies_take(e, c)) {
            break;
        }
        int64_t now_ns = clock_monotonic_ns();
        batch_done(e, c, now_ns);
        closed_next(e, c, now_ns);
    }
}

void engine_poll(struct engine *e, int timeout_ms) {
    struct epoll_event events[256];
    int n = epoll_wait(e->epoll_fd, events, (int)ARRAY_LEN(events),
                       timeout_ms < 0 ? SILENCE_LIMIT_MS : timeout_ms);
    if (n == 0 && timeout_ms < 0) {
        die(EXIT_RUN_FAILED, "no reply for %d seconds", SILENCE_LIMIT_MS / 1000);
    }
    if (n < 0 && errno != EINTR) {
        die(EXIT_RUN_FAILED, "epoll_wait: %s", strerror(errno));
    }
    for (int i = 0; i < n; i++) {
        struct conn *c = events[i].data.ptr;
        if (events[i].events & EPOLLOUT) {
            send_pending(e, c);
        }
        if (events[i].events & ~(uint32_t)EPOLLOUT) {
            on_readable(e, c);
        }
    }
}

/* ---- the engine ---------------------------------------------------------------------------- */

struct engine *engine_create(const struct options *opt) {
    struct engine *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        die(EXIT_RUN_FAILED, "out of memory");
    }
    e->opt = opt;
    rng_init(&e->rng, opt->seed);
    dataset_init(&e->data, opt->value_bytes);
    templates_init(&e->tmpl, opt);
    if (opt->workload == WORK_COMMAND) {
        e->command = command_create(opt);
    }
    conns_init(e);
    return e;
}

void engine_destroy(struct engine *e) {
    if (e == NULL) {
        return;
    }
    conns_deinit(e);
    command_destroy(e->command);
    templates_deinit(&e->tmpl);
    free(e->data.pool);
    free(e);
}

static void closed_loop(struct engine *e) {
    for (size_t i = 0; i < e->opt->connections; i++) {
        struct conn *c = &e->conns[i];
        if (c->ahead == NULL) {
            c->ahead = batch_acquire(e);
        }
        request_build(e, c->ahead);
        closed_next(e, c, clock_monotonic_ns());
    }
}

void engine_run(struct engine *e, uint64_t ops, double seconds, struct result *out) {
    int64_t start_ns = clock_monotonic_ns();
    e->result = out;
    e->to_send = ops;
    e->deadline_ns = seconds > 0 ? start_ns + (int64_t)(seconds * 1e9) : INT64_MAX;
    if (e->opt->rate > 0) {
        open_loop(e, start_ns);
    } else {
        closed_loop(e);
    }
    while (e->outstanding > 0) {
        engine_poll(e, -1);
    }
    out->seconds = (double)(clock_monotonic_ns() - start_ns) / 1e9;
}
