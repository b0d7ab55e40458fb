/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections, requests and replies of the load generator: one thread, epoll, one batch of
 * pipelined requests outstanding on each connection. The next batch of a connection is built while
 * the server works on the current one, so that a reply is followed at once by the next request. */
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

#include "base/buf.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/rng.h"
#include "loadgen.h"

#define VALUE_GENERATIONS 4                /* 0 is what load writes, 1..3 what run writes */
#define POOL_MIN_BYTES (1u << 20)          /* values are windows of this many random bytes */
#define POOL_SEED UINT64_C(0x676f626c696e) /* the same for load and run: run checks load's data */
#define RECV_BYTES (64u << 10)
#define SILENCE_LIMIT_MS 60000 /* a server that answers nothing for so long is dead */
#define PROGRESS_US 200000

/* ---- data: everything about an item follows from its number -------------------------------- */

struct dataset {
    char *pool;
    size_t pool_bytes;
    size_t value_len;
};

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33); /* the finaliser of MurmurHash3 (Appleby) */
}

static void dataset_init(struct dataset *d, size_t value_len) {
    d->value_len = value_len;
    d->pool_bytes = POOL_MIN_BYTES + 2 * value_len;
    d->pool = malloc(d->pool_bytes);
    if (d->pool == NULL) {
        die(EXIT_RUN_FAILED, "no memory for values of %zu bytes", value_len);
    }
    struct rng rng;
    rng_init(&rng, POOL_SEED);
    for (size_t i = 0; i < d->pool_bytes; i += sizeof(uint64_t)) {
        uint64_t word = rng_next(&rng);
        size_t rest = d->pool_bytes - i;
        memcpy(d->pool + i, &word, rest < sizeof(word) ? rest : sizeof(word));
    }
}

static const char *dataset_value(const struct dataset *d, uint64_t id, unsigned generation) {
    uint64_t span = d->pool_bytes - d->value_len;
    uint64_t high = mix(id * VALUE_GENERATIONS + generation + 1) >> 32;
    return d->pool + (size_t)((high * span) >> 32);
}

static bool dataset_holds(const struct dataset *d, uint64_t id, const char *value) {
    for (unsigned g = 0; g < VALUE_GENERATIONS; g++) {
        if (memcmp(value, dataset_value(d, id, g), d->value_len) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- requests ------------------------------------------------------------------------------ */

enum reply_kind { REPLY_VALUE, REPLY_INTEGER, REPLY_OK };

struct item {
    uint64_t id;
    enum reply_kind reply;
};

/* One pipelined group of requests: their bytes, and what is to come back for each. */
struct batch {
    struct buf out;
    struct item *items;
    size_t item_count;
    uint64_t op_count; /* item_count, or what load's commands carry together */
};

struct conn {
    int fd;
    bool wants_write;   /* EPOLLOUT is on: the kernel's buffer was full */
    bool busy;          /* a batch is outstanding */
    size_t sent_bytes;  /* of the current batch */
    size_t reply_count; /* replies of the current batch that have come */
    int64_t sent_at_ns;
    struct batch *current;
    struct batch *next; /* built ahead; item_count 0 when there is nothing more to send */
    struct batch batches[2];
    struct buf in;
};

/* Requests of one kind differ in the digits and the value only. */
struct templates {
    struct buf read_head;
    struct buf write_head;
    struct buf value_head; /* CR LF $len CR LF, between the digits and the value */
};

struct engine {
    const struct options *opt;
    struct dataset data;
    struct templates tmpl;
    struct rng rng;
    struct conn *conns;
    int epoll_fd;
    uint64_t load_next;  /* first item not yet sent by load */
    uint64_t to_send;    /* requests still allowed in this phase (by --ops) */
    int64_t deadline_ns; /* no batch is started after it */
    int64_t progress_at_us;
    struct result *result; /* of the phase that is running */
};

static void must_have_grown(const struct buf *b) {
    if (b->failed) {
        die(EXIT_RUN_FAILED, "out of memory; lower --pipeline, --connections or --value-bytes");
    }
}

static void templates_init(struct templates *t, const struct options *o) {
    bool hash = !o->strings && o->workload != WORK_GET && o->workload != WORK_SET;
    if (hash) {
        size_t key_len = strlen(o->key);
        buf_printf(&t->read_head, "*3\r\n$4\r\nHGET\r\n$%zu\r\n%s\r\n$18\r\nfield:", key_len,
                   o->key);
        buf_printf(&t->write_head, "*4\r\n$4\r\nHSET\r\n$%zu\r\n%s\r\n$18\r\nfield:", key_len,
                   o->key);
    } else {
        buf_append_cstr(&t->read_head, "*2\r\n$3\r\nGET\r\n$16\r\nkey:");
        buf_append_cstr(&t->write_head, "*3\r\n$3\r\nSET\r\n$16\r\nkey:");
    }
    buf_printf(&t->value_head, "\r\n$%" PRIu64 "\r\n", o->value_bytes);
    must_have_grown(&t->read_head);
    must_have_grown(&t->write_head);
    must_have_grown(&t->value_head);
}

static char *put(char *at, const void *from, size_t len) {
    memcpy(at, from, len);
    return at + len;
}

/* id as ID_DIGITS decimal digits. */
static char *put_id(char *at, uint64_t id) {
    for (int i = ID_DIGITS - 2; i >= 0; i -= 2) {
        unsigned pair = (unsigned)(id % 100);
        id /= 100;
        at[i] = (char)('0' + pair / 10);
        at[i + 1] = (char)('0' + pair % 10);
    }
    return at + ID_DIGITS;
}

static char *put_value(const struct engine *e, char *at, uint64_t id, unsigned generation) {
    at = put(at, e->tmpl.value_head.ptr, e->tmpl.value_head.len);
    at = put(at, dataset_value(&e->data, id, generation), e->data.value_len);
    return put(at, "\r\n", 2);
}

static void add_read(struct engine *e, struct batch *b, uint64_t id, enum reply_kind reply) {
    const struct buf *head = &e->tmpl.read_head;
    char *start = buf_tail(&b->out, head->len + ID_DIGITS + 2);
    must_have_grown(&b->out);
    char *at = put_id(put(start, head->ptr, head->len), id);
    b->out.len += (size_t)(put(at, "\r\n", 2) - start);
    b->items[b->item_count++] = (struct item){id, reply};
    b->op_count++;
}

static void add_write(struct engine *e, struct batch *b, uint64_t id, enum reply_kind reply) {
    const struct buf *head = &e->tmpl.write_head;
    size_t room = head->len + ID_DIGITS + e->tmpl.value_head.len + e->data.value_len + 2;
    char *start = buf_tail(&b->out, room);
    must_have_grown(&b->out);
    unsigned generation = 1 + (unsigned)rng_below(&e->rng, VALUE_GENERATIONS - 1);
    char *at = put_id(put(start, head->ptr, head->len), id);
    b->out.len += (size_t)(put_value(e, at, id, generation) - start);
    b->items[b->item_count++] = (struct item){id, reply};
    b->op_count++;
}

/* One HSET or MSET of up to per_command items; false when everything is sent. */
static bool add_load_command(struct engine *e, struct batch *b) {
    const struct options *o = e->opt;
    uint64_t count = o->fields - e->load_next;
    if (count == 0) {
        return false;
    }
    count = count < o->per_command ? count : o->per_command;
    if (o->strings) {
        buf_printf(&b->out, "*%" PRIu64 "\r\n$4\r\nMSET\r\n", 1 + 2 * count);
    } else {
        buf_printf(&b->out, "*%" PRIu64 "\r\n$4\r\nHSET\r\n$%zu\r\n%s\r\n", 2 + 2 * count,
                   strlen(o->key), o->key);
    }
    const char *name = o->strings ? "$16\r\nkey:" : "$18\r\nfield:";
    size_t name_len = strlen(name);
    size_t each = name_len + ID_DIGITS + e->tmpl.value_head.len + e->data.value_len + 2;
    char *start = buf_tail(&b->out, each * count);
    must_have_grown(&b->out);
    char *at = start;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t id = e->load_next + i;
        at = put_value(e, put_id(put(at, name, name_len), id), id, 0);
    }
    b->out.len += (size_t)(at - start);
    b->items[b->item_count++] =
        (struct item){e->load_next + count, o->strings ? REPLY_OK : REPLY_INTEGER};
    e->load_next += count;
    b->op_count += count;
    return true;
}

static bool add_request(struct engine *e, struct batch *b) {
    enum workload w = e->opt->workload;
    if (w == WORK_LOAD) {
        return add_load_command(e, b);
    }
    if (e->to_send == 0) {
        return false;
    }
    e->to_send--;
    uint64_t id = rng_below(&e->rng, e->opt->fields);
    bool write = w == WORK_HSET || w == WORK_SET ||
                 (w == WORK_MIXED && rng_below(&e->rng, 100) < e->opt->write_pct);
    if (write) {
        add_write(e, b, id, w == WORK_SET ? REPLY_OK : REPLY_INTEGER);
    } else {
        add_read(e, b, id, REPLY_VALUE);
    }
    return true;
}

static void build_next(struct engine *e, struct conn *c) {
    struct batch *b = c->next;
    buf_clear(&b->out);
    b->item_count = 0;
    b->op_count = 0;
    while (b->item_count < e->opt->pipeline && add_request(e, b)) {
    }
}

/* ---- replies ------------------------------------------------------------------------------- */

/* Say what came instead of the reply to an item, printable bytes only, and end the run. */
static void wrong_reply(const char *what, const struct item *item, const char *ptr, size_t len)
    __attribute__((noreturn));

static void wrong_reply(const char *what, const struct item *item, const char *ptr, size_t len) {
    char text[121];
    size_t n = 0;
    while (n < len && n < sizeof(text) - 1 && ptr[n] != '\r') {
        text[n] = ptr[n] >= ' ' && ptr[n] <= '~' ? ptr[n] : '.';
        n++;
    }
    text[n] = '\0';
    die(EXIT_RUN_FAILED, "%s (item %" PRIu64 "); the server said: %s", what, item->id, text);
}

/* Bytes of a value reply at ptr, 0 while it is incomplete. */
static size_t take_value(const struct engine *e, const struct item *item, const char *ptr,
                         size_t len) {
    const struct buf *head = &e->tmpl.value_head; /* its first two bytes are the CR LF before */
    size_t head_len = head->len - 2;
    size_t total = head_len + e->data.value_len + 2;
    size_t have = len < head_len ? len : head_len;
    if (memcmp(ptr, head->ptr + 2, have) != 0) {
        bool nil = len >= 3 && memcmp(ptr, "$-1", 3) == 0;
        wrong_reply(nil           ? "no such item, is the data set loaded with the same --fields?"
                    : *ptr == '$' ? "a value of another length than --value-bytes"
                                  : "no value",
                    item, ptr, len);
    }
    if (len < total) {
        return 0;
    }
    if (memcmp(ptr + total - 2, "\r\n", 2) != 0 ||
        !dataset_holds(&e->data, item->id, ptr + head_len)) {
        wrong_reply("a value with wrong content", item, ptr, len);
    }
    return total;
}

static size_t take_integer(struct engine *e, const struct item *item, const char *ptr, size_t len) {
    const char *end = memchr(ptr, '\n', len);
    if (*ptr != ':') {
        wrong_reply("no integer", item, ptr, len);
    }
    if (end == NULL) {
        if (len > NUMBER_I64_MAX_LEN + 2) {
            wrong_reply("an integer without end", item, ptr, len);
        }
        return 0;
    }
    uint64_t value;
    if (end - ptr < 3 || end[-1] != '\r' ||
        !number_parse_u64(BYTES(ptr + 1, (size_t)(end - ptr) - 2), &value)) {
        wrong_reply("no count", item, ptr, len);
    }
    e->result->new_items += value;
    return (size_t)(end - ptr) + 1;
}

static size_t take_ok(const struct item *item, const char *ptr, size_t len) {
    static const char ok[] = "+OK\r\n";
    size_t have = len < sizeof(ok) - 1 ? len : sizeof(ok) - 1;
    if (memcmp(ptr, ok, have) != 0) {
        wrong_reply("no OK", item, ptr, len);
    }
    return have == sizeof(ok) - 1 ? have : 0;
}

/* Check every complete reply in the connection's buffer and drop it. */
static void take_replies(struct engine *e, struct conn *c) {
    const struct batch *b = c->current;
    size_t at = 0;
    while (at < c->in.len) {
        if (c->reply_count == b->item_count) {
            die(EXIT_RUN_FAILED, "the server sent a reply that nobody asked for");
        }
        const struct item *item = &b->items[c->reply_count];
        const char *ptr = c->in.ptr + at;
        size_t len = c->in.len - at;
        size_t used = item->reply == REPLY_VALUE     ? take_value(e, item, ptr, len)
                      : item->reply == REPLY_INTEGER ? take_integer(e, item, ptr, len)
                                                     : take_ok(item, ptr, len);
        if (used == 0) {
            break;
        }
        at += used;
        c->reply_count++;
    }
    buf_consume(&c->in, at);
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
        struct conn *c = &e->conns[i];
        c->fd = connect_to(o);
        c->current = &c->batches[0];
        c->next = &c->batches[1];
        for (size_t k = 0; k < 2; k++) {
            c->batches[k].items = calloc(o->pipeline, sizeof(struct item));
            if (c->batches[k].items == NULL) {
                die(EXIT_RUN_FAILED, "out of memory; lower --pipeline or --connections");
            }
        }
        watch(e, c, EPOLL_CTL_ADD);
    }
}

static void conns_deinit(struct engine *e) {
    for (size_t i = 0; i < e->opt->connections; i++) {
        struct conn *c = &e->conns[i];
        close(c->fd);
        buf_deinit(&c->in);
        for (size_t k = 0; k < 2; k++) {
            buf_deinit(&c->batches[k].out);
            free(c->batches[k].items);
        }
    }
    free(e->conns);
    close(e->epoll_fd);
}

/* Send what is left of the current batch; ask for EPOLLOUT only while the kernel is full. */
static void send_current(struct engine *e, struct conn *c) {
    const struct buf *out = &c->current->out;
    while (c->sent_bytes < out->len) {
        ssize_t n = send(c->fd, out->ptr + c->sent_bytes, out->len - c->sent_bytes,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
            die(EXIT_RUN_FAILED, "send: %s", strerror(errno));
        }
        if (n < 0) {
            break;
        }
        c->sent_bytes += (size_t)n;
    }
    bool full = c->sent_bytes < out->len;
    if (full != c->wants_write) {
        c->wants_write = full;
        watch(e, c, EPOLL_CTL_MOD);
    }
}

/* Send the batch that is ready and build the one after it. False when there is nothing to send. */
static bool start_batch(struct engine *e, struct conn *c, int64_t now_ns) {
    if (c->next->item_count == 0 || now_ns >= e->deadline_ns) {
        return false;
    }
    struct batch *ready = c->next;
    c->next = c->current;
    c->current = ready;
    c->sent_bytes = 0;
    c->reply_count = 0;
    c->sent_at_ns = now_ns;
    c->busy = true;
    send_current(e, c);
    build_next(e, c);
    return true;
}

static void report_progress(struct engine *e) {
    int64_t now_us = clock_monotonic_us();
    if (now_us - e->progress_at_us >= PROGRESS_US || e->result->ops == e->opt->fields) {
        e->progress_at_us = now_us;
        fprintf(stderr, "progress %" PRIu64 " %" PRIu64 "\n", e->result->ops, e->opt->fields);
    }
}

static void batch_done(struct engine *e, struct conn *c, int64_t now_ns) {
    histogram_add(&e->result->latency_ns, (uint64_t)(now_ns - c->sent_at_ns));
    c->busy = false;
    e->result->ops += c->current->op_count;
    if (e->opt->progress) {
        report_progress(e);
    }
}

/* Read and check what has come. True when that ended the connection's last batch. */
static bool on_readable(struct engine *e, struct conn *c) {
    char *tail = buf_tail(&c->in, RECV_BYTES);
    must_have_grown(&c->in);
    ssize_t n = recv(c->fd, tail, RECV_BYTES, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno == ECONNRESET)) {
        die(EXIT_RUN_FAILED, "the server closed the connection");
    }
    if (n < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
            return false;
        }
        die(EXIT_RUN_FAILED, "recv: %s", strerror(errno));
    }
    c->in.len += (size_t)n;
    take_replies(e, c);
    if (!c->busy || c->reply_count < c->current->item_count) {
        return false;
    }
    int64_t now_ns = clock_monotonic_ns();
    batch_done(e, c, now_ns);
    return !start_batch(e, c, now_ns);
}

/* Handle events until every connection's last batch is answered. */
static void drain(struct engine *e, size_t busy) {
    struct epoll_event events[256];
    while (busy > 0) {
        int n = epoll_wait(e->epoll_fd, events, (int)ARRAY_LEN(events), SILENCE_LIMIT_MS);
        if (n == 0) {
            die(EXIT_RUN_FAILED, "no reply for %d seconds", SILENCE_LIMIT_MS / 1000);
        }
        if (n < 0 && errno != EINTR) {
            die(EXIT_RUN_FAILED, "epoll_wait: %s", strerror(errno));
        }
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            if (events[i].events & EPOLLOUT) {
                send_current(e, c);
            }
            if (events[i].events & ~(uint32_t)EPOLLOUT) {
                busy -= on_readable(e, c);
            }
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
    conns_init(e);
    return e;
}

void engine_destroy(struct engine *e) {
    if (e == NULL) {
        return;
    }
    conns_deinit(e);
    free(e->data.pool);
    buf_deinit(&e->tmpl.read_head);
    buf_deinit(&e->tmpl.write_head);
    buf_deinit(&e->tmpl.value_head);
    free(e);
}

void engine_run(struct engine *e, uint64_t ops, double seconds, struct result *out) {
    int64_t start_ns = clock_monotonic_ns();
    size_t busy = 0;
    *out = (struct result){0};
    e->result = out;
    e->to_send = ops;
    e->deadline_ns = seconds > 0 ? start_ns + (int64_t)(seconds * 1e9) : INT64_MAX;
    for (size_t i = 0; i < e->opt->connections; i++) {
        build_next(e, &e->conns[i]);
        busy += start_batch(e, &e->conns[i], clock_monotonic_ns());
    }
    drain(e, busy);
    out->seconds = (double)(clock_monotonic_ns() - start_ns) / 1e9;
}
