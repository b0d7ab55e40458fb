/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection of a test to a server: append commands or raw bytes, flush, read replies.
 *
 * The socket does not block: a flush goes on reading while it waits to write, so that a pipeline of
 * any size cannot deadlock against a server that stops reading until its replies are taken. Every
 * wait has a deadline (timeout_ms, 30 s at first); past it the call fails the test's expectation
 * instead of hanging. */
#ifndef SUPPORT_CLIENT_H
#define SUPPORT_CLIENT_H

#include "support/reply.h"

struct client {
    int fd;
    int timeout_ms;
    bool closed; /* the server closed its side, or the socket failed */
    char *in;    /* received, in[in_pos..in_len) not yet decoded */
    size_t in_pos, in_len, in_cap;
    char *out; /* appended, not yet sent */
    size_t out_len, out_cap;
};

/* NULL when nobody accepts there. */
struct client *client_connect_unix(const char *path);
struct client *client_connect_tcp(const char *host, int port);
void client_close(struct client *c);

/* Queue bytes as they are, or a command of binary-safe arguments (formatted by hiredis). */
void client_append_raw(struct client *c, const void *ptr, size_t len);
void client_append_argv(struct client *c, int argc, const char *const *argv, const size_t *lens);

/* Queue a command of C strings, closed by NULL. */
void client_append(struct client *c, ...) __attribute__((sentinel));

/* Send what is queued; false when the server closed or the deadline passed. */
bool client_flush(struct client *c);

/* The same in writes of piece_len bytes at most, so that the server meets partial commands. */
bool client_flush_pieces(struct client *c, size_t piece_len);

/* The next reply, NULL when the connection closed (c->closed) or the deadline passed. */
struct reply *client_read(struct client *c);

/* Flush, then read one reply. */
struct reply *client_cmd_argv(struct client *c, int argc, const char *const *argv,
                              const size_t *lens);
struct reply *client_cmd(struct client *c, ...) __attribute__((sentinel));

/* True when the server closes the connection before the deadline; replies on the way are dropped.
 */
bool client_wait_closed(struct client *c, int timeout_ms);

/* Send the command of C strings and require exactly this canonical text as its reply. */
void client_expect(struct client *c, const char *text, ...) __attribute__((sentinel));

/* Same, for a reply already queued: reads it and compares. */
void client_expect_next(struct client *c, const char *text);

/* One field of INFO ("used_memory"), NUL-terminated into out; false when there is no such line. */
bool client_info(struct client *c, const char *section, const char *field, char *out, size_t cap);

/* The same as a number, -1 when absent or not a number. */
long long client_info_number(struct client *c, const char *section, const char *field);

#endif
