/* SPDX-License-Identifier: BSD-3-Clause */
/* client: what commands know and change of a connection. The socket is the server's
 * (server/frontend.c). */
#ifndef CMD_CLIENT_H
#define CMD_CLIENT_H

#include "base/buf.h"
#include "base/bytes.h"

enum client_flag {
    CLIENT_CLOSE_AFTER_REPLY = 1 << 0, /* QUIT, protocol errors, CLIENT KILL of oneself */
    CLIENT_CLOSE_NOW = 1 << 1,         /* CLIENT KILL by another */
    CLIENT_AUTHENTICATED = 1 << 2,
    CLIENT_UNIX_SOCKET = 1 << 3,
    CLIENT_REPLY_OFF = 1 << 4,  /* CLIENT REPLY OFF */
    CLIENT_REPLY_SKIP = 1 << 5, /* the next command's reply is dropped */
    CLIENT_NO_EVICT = 1 << 6,
    CLIENT_NO_TOUCH = 1 << 7,
    CLIENT_LOCAL = 1 << 8,      /* the peer is on a loopback address or a Unix socket */
    CLIENT_STALLED = 1 << 9,    /* it does not read its replies: nothing is executed until it has */
    CLIENT_BACKLOG = 1 << 10,   /* it has deferred requests, which go before any new one */
    CLIENT_REPLAYING = 1 << 11, /* those are being executed */
    CLIENT_GONE = 1 << 12,      /* its connection is closed; what it has sent is still executed */
};

struct command;
struct waiter;

struct client {
    uint64_t id;              /* 1, 2, 3 ... never reused */
    uint32_t flags;           /* enum client_flag */
    uint16_t db;              /* selected database */
    uint8_t proto;            /* 2 or 3 */
    struct buf *out;          /* where replies go; NULL until its first request */
    char *name;               /* CLIENT SETNAME; NULL when unset */
    char *lib_name, *lib_ver; /* CLIENT SETINFO */
    int64_t created_ms, last_active_ms;
    struct waiter *waiter; /* what it is blocked on (cmd/block.h); NULL: it is not */
    struct buf deferred;   /* requests that came while it had to wait, to be executed afterwards */
    const struct command *last_row; /* last command executed, for CLIENT LIST */
    struct client *prev, *next;     /* in the registry, by id */
};

/* What CLIENT LIST shows of the connection, asked for only then. */
struct client_connection_info {
    char peer[128], local[128];
    int fd;
    size_t query_bytes, query_free_bytes, output_bytes, memory_bytes, argv_bytes;
};

/* What all clients take, for INFO. */
struct client_use {
    size_t memory_bytes;
    size_t query_max_bytes, output_max_bytes; /* the largest */
};

/* All clients in order of their ids. */
struct client_registry {
    struct client *first, *last;
    struct client *hand; /* whose turn it is next; NULL: the first's */
    uint64_t next_id;
    size_t count;
    struct client_use use;   /* in the last whole round of turns: a second old at most, or so */
    struct client_use round; /* in the turns taken since */
    void (*describe)(const struct client *c,
                     struct client_connection_info *out); /* set by the server */
};

/* Give the client its id and put it in the registry; deinit takes it out and frees names. */
void client_init(struct client *c, struct client_registry *r, struct buf *out, int64_t now_ms);
void client_deinit(struct client *c, struct client_registry *r);

/* One after the other, from the first again behind the last; NULL when there are none. O(1). */
struct client *client_take_turn(struct client_registry *r);

/* What the client whose turn it is takes: behind the last one of a round, `use` is that of all. */
void client_note_use(struct client_registry *r, const struct client_use *use);

/* The client of this id, NULL when there is none or its connection is closed. */
struct client *client_find(const struct client_registry *r, uint64_t id);

#endif
