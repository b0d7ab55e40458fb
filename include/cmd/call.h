/* SPDX-License-Identifier: BSD-3-Clause */
/* call: one command on its way through execution. Handlers get this and nothing else; they reply
 * exactly once. */
#ifndef CMD_CALL_H
#define CMD_CALL_H

#include "base/bytes.h"
#include "resp/parser.h"
#include "resp/reply.h"

struct client;
struct cmd_context;
struct command;

struct call {
    struct cmd_context *cx;    /* databases, configuration, metrics, clock: cmd/context.h */
    struct client *client;     /* who asked: cmd/client.h */
    const struct command *row; /* the table row, of the subcommand where there is one */
    struct bytes
        *argv;   /* views into the input, good until the handler returns; argv[0] is the name */
    size_t argc; /* at least 1; arity was checked against the row */
    struct reply reply;      /* into the client's output buffer, in the client's protocol */
    uint64_t key_hash;       /* hash_bytes of the first key when the row has keys */
    struct resp_args *input; /* the batch's arguments, for call_steal */
};

/* Take over the malloc'ed block in which a large argument arrived (argv[i].len + 2 bytes), NULL
 * when it is a view. */
static inline char *call_steal(struct call *call, size_t i) {
    return resp_args_steal(call->input, call->argv[i]);
}

#endif
