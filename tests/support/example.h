/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands by example: a command line, and its reply's canonical text (support/reply.h) as Redis 7.2
 * gives it. Where the protocols differ a line says which one it is for. Tables run against
 * redis-server too, so that a wrong expectation shows; lines that 7.0 does not know are marked.
 *
 * Command lines are words split at blanks; 'single quotes' hold blanks, and \xNN is a byte. */
#ifndef SUPPORT_EXAMPLE_H
#define SUPPORT_EXAMPLE_H

#include "support/client.h"
#include "support/server.h"

#define ANY NULL /* an answer that is not an error */

#define WRONGTYPE "-WRONGTYPE Operation against a key holding the wrong kind of value"
#define ARITY(name) "-ERR wrong number of arguments for '" name "' command"
#define NOT_INTEGER "-ERR value is not an integer or out of range"
#define NOT_FLOAT "-ERR value is not a valid float"
#define SYNTAX "-ERR syntax error"

enum example_for {
    BOTH = 0,
    RESP2 = 2,
    RESP3 = 3,
    NEW = 4, /* 7.2 and later: not sent to the oracle */
    RESP2_NEW = RESP2 | NEW,
    RESP3_NEW = RESP3 | NEW,
};

struct example {
    const char *command;
    const char *reply;
    enum example_for which;
};

struct example_group {
    const char *name;
    const struct example *rows;
    size_t count;
};

#define EXAMPLES(array)                                                                            \
    { #array, (array), sizeof(array) / sizeof((array)[0]) }

/* Split a command line in place; the count of words. */
int example_split(char *line, const char **argv, size_t *lens, int cap);

/* Each group on a connection of its own that starts with FLUSHALL. The number of rows that were
 * answered otherwise, each printed. */
int examples_run(const struct server *s, const struct example_group *groups, size_t count,
                 int protocol);

/* The groups against a server of their own; fails the test when any row was answered otherwise. */
void examples_assert(enum server_kind kind, const struct example_group *groups, size_t count,
                     int protocol);

#endif
