/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening sockets: TCP over IPv4 and IPv6, and Unix sockets. Accepted descriptors are
 * non-blocking, close-on-exec, and handed to the owner; nothing else is done to them.
 *
 * A listener accepts at most LISTENER_BATCH connections a turn, so that a storm of them does not
 * hold up the clients there are. When the process or the system has no descriptor left, it stops
 * watching its sockets for LISTENER_PAUSE_MS instead of spinning on a socket that stays ready: the
 * kernel's backlog holds the new ones meanwhile. The log says so once until it gets better. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include "base/compiler.h"
#include "base/status.h"
#include "net/loop.h"

#define LISTENER_SOCKETS_MAX 17 /* 16 addresses and a Unix socket */
#define LISTENER_BATCH 32
#define LISTENER_PAUSE_MS 100
#define LISTENER_ERROR_LEN 512

struct listener;

struct listener_handler {
    /* A new connection; the owner has the descriptor now. */
    void (*accepted)(void *user, int fd, bool is_unix);
    void *user;
};

/* An empty listener; NULL when out of memory. */
struct listener *listener_create(struct loop *loop, struct listener_handler handler);

/* Listen on each address and the port (0: any free one, see listener_port).
 *
 *   addresses  "127.0.0.1", "::1", a host name; "*" is every IPv4 and "::*" every IPv6 address.
 *              A '-' in front makes it optional: an address this machine does not have is skipped.
 *              A protocol the kernel lacks is always skipped. An empty name means none.
 *   error      at least LISTENER_ERROR_LEN bytes; on failure "Could not create server TCP
 *              listening socket 127.0.0.1:6379: bind: Address already in use"
 *
 * ST_OK; ST_IO with nothing of this call left open; also when every address was skipped. */
MUST_CHECK enum status listener_open_tcp(struct listener *listener, const char *const *addresses,
                                         size_t count, int port, int backlog, char *error);

/* Listen on a Unix socket. perm 0 leaves the mode to the umask; otherwise it holds before the first
 * connection can be made. A socket file nobody listens on any more is replaced; one that answers,
 * or a file of another kind, is an error: "Could not create server Unix listening socket
 * /run/x.sock: bind: Address already in use". The file is removed by listener_destroy if it is
 * still ours. */
MUST_CHECK enum status listener_open_unix(struct listener *listener, const char *path,
                                          unsigned perm, int backlog, char *error);

/* Sockets open; the TCP port of the first one, 0 when there is none. */
size_t listener_count(const struct listener *listener);
int listener_port(const struct listener *listener);

/* Close all; the listener can be opened anew (a changed port or bind). */
void listener_close(struct listener *listener);
void listener_destroy(struct listener *listener);

#endif
