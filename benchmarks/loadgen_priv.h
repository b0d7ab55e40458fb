/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of the load generator's engine.
 *
 *   item    one request that was sent and the reply that is to come for it
 *   batch   requests sent together. A closed loop has one batch outstanding on each connection and
 *           one built ahead; an open loop has as many outstanding as the server is late with
 *   due     when a batch was to be sent. In an open loop latency counts from there and not from
 *           when it was sent, so that a stalled server does not hide the requests that it delays
 *           ("coordinated omission", Gil Tene) */
#ifndef BENCHMARKS_LOADGEN_PRIV_H
#define BENCHMARKS_LOADGEN_PRIV_H

#include "base/buf.h"
#include "base/rng.h"
#include "loadgen.h"

#define VALUE_GENERATIONS 4 /* 0 is what load writes, 1..3 what run writes */

struct dataset {
    char *pool; /* values are windows of these random bytes */
    size_t pool_bytes;
    size_t value_len;
};

enum reply_kind { REPLY_VALUE, REPLY_INTEGER, REPLY_OK, REPLY_ANY };

struct item {
    uint64_t id;
    enum reply_kind reply;
};

struct batch {
    struct buf out;
    struct item *items;
    size_t item_count;
    uint64_t op_count; /* item_count, or what load's commands carry together */
    int64_t due_ns;
    struct batch *after; /* sent after it on the same connection, or free as it is */
};

/* How far a reply of unknown structure has been looked at, since it may come in many parts. */
struct scan {
    size_t at;     /* bytes of it that are done with */
    uint64_t open; /* replies in it still to be taken */
    uint64_t elements;
    uint64_t nils;
};

struct conn {
    int fd;
    bool wants_write;     /* EPOLLOUT is on: the kernel's buffer was full */
    size_t reply_count;   /* replies of the oldest batch that have come */
    size_t sent_bytes;    /* of the batch being sent */
    struct batch *oldest; /* outstanding; NULL when everything is answered */
    struct batch *newest;
    struct batch *sending; /* the first one not wholly sent, NULL when all are */
    struct batch *ahead;   /* closed loop: built, not yet sent */
    struct buf in;
    struct scan scan; /* all zero between replies */
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
    struct command *command; /* WORK_COMMAND only */
    struct rng rng;
    struct conn *conns;
    struct batch *free_batches;
    int epoll_fd;
    size_t outstanding;  /* batches */
    uint64_t load_next;  /* first item not yet sent by load */
    uint64_t to_send;    /* requests still allowed in this phase (by --ops) */
    int64_t deadline_ns; /* no batch is started after it */
    int64_t progress_at_us;
    struct result *result; /* of the phase that is running */
};

void must_have_grown(const struct buf *b);

/* ---- loadgen_request.c ---- */
void dataset_init(struct dataset *d, size_t value_len);
const char *dataset_value(const struct dataset *d, uint64_t id, unsigned generation);
bool dataset_holds(const struct dataset *d, uint64_t id, const char *value);
void templates_init(struct templates *t, const struct options *o);
void templates_deinit(struct templates *t);

/* Fill an empty batch with up to --pipeline requests; item_count stays 0 when all are sent. */
void request_build(struct engine *e, struct batch *b);

/* id as ID_DIGITS decimal digits; the end. */
char *put_id(char *at, uint64_t id);

/* ---- loadgen_command.c ---- */

/* Read a command given as words with places in braces (see loadgen --help); dies on a bad one. */
struct command *command_create(const struct options *o);
void command_destroy(struct command *c);

/* Append the request with the places filled in. */
void command_append(struct engine *e, struct buf *out, uint64_t id);

/* ---- loadgen_reply.c ---- */

/* Check complete replies in the connection's buffer against its oldest batch, count them, and drop
 * them, until the batch is answered or the bytes end. True when the batch is answered. */
bool replies_take(struct engine *e, struct conn *c);

/* ---- loadgen_engine.c ---- */
struct batch *batch_acquire(struct engine *e);
void batch_release(struct engine *e, struct batch *b);

/* Put a batch behind the connection's others and send what the kernel takes. */
void conn_submit(struct engine *e, struct conn *c, struct batch *b);

/* Wait for timeout_ms (negative: until something comes; a long silence dies), handle what came. */
void engine_poll(struct engine *e, int timeout_ms);

/* ---- loadgen_open.c ---- */

/* Batches at random times (a Poisson process) at opt->rate requests a second until the deadline or
 * until to_send are sent, whatever the server does meanwhile. */
void open_loop(struct engine *e, int64_t start_ns);

#endif
