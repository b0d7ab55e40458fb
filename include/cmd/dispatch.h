/* SPDX-License-Identifier: BSD-3-Clause */
/* dispatch: a batch of parsed commands, from any number of clients, through its stages.
 *
 *   stage 1   find the row, hash the first key, prefetch its index group
 *   stage 2   prefetch the key's record
 *   stage 3   prefetch the value: its object, or its bytes
 *   stage 4   hash the member the row's plan names, prefetch its index group; or the leaf of a score
 *   stage 5   prefetch the member's record
 *   execute   strictly in the order the commands came
 *
 * Stages 1 to 5 touch memory and change nothing; execution looks everything up again, so an earlier
 * command of the batch may move or delete anything. Group prefetching: Chen et al., SIGMOD 2004.
 * The option prefetch turns the prefetching off, to show what it hides. */
#ifndef CMD_DISPATCH_H
#define CMD_DISPATCH_H

#include "cmd/call.h"
#include "db/db.h"
#include "resp/parser.h"

/* Enough accesses in flight to hide memory latency, few enough that what was prefetched is still in
 * the L1 cache: measured in docs/design/010-dispatch.md. */
#define DISPATCH_BATCH_MAX 64

struct batch_item {
    struct client *client; /* NULL: the client went away */
    size_t first, argc;    /* in args */
};

struct batch {
    struct resp_args args;
    size_t len;
    struct batch_item items[DISPATCH_BATCH_MAX];
};

static inline bool batch_is_full(const struct batch *b) {
    return b->len == DISPATCH_BATCH_MAX;
}

/* Execute and empty the batch. Clients whose flags ask for it are to be closed by the caller
 * afterwards. */
void dispatch_batch(struct cmd_context *cx, struct batch *b);

/* A client is being destroyed: its commands in the batch are dropped. */
void batch_forget(struct batch *b, const struct client *c);

#endif
