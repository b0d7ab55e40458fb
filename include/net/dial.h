/* SPDX-License-Identifier: BSD-3-Clause */
/* dial: a TCP connection to another server, used by waiting for it. Whoever calls stands still
 * meanwhile, the event loop too; each wait ends after timeout_ms at the latest. While bytes move on
 * there may be several waits: a time-out bounds standstill, not the whole. Looking up a host's name
 * is the resolver's to bound.
 *
 * ST_AGAIN: the time was up. ST_CLOSED: the other side closed. ST_IO: anything else about the
 * socket, in errno. After any failure the connection is good for dial_close only. */
#ifndef NET_DIAL_H
#define NET_DIAL_H

#include "base/bytes.h"
#include "base/status.h"

#define DIAL_LINE_MAX 4096
#define DIAL_INPUT_MAX ((size_t)1 << 20)

struct dial;

/* Connect to a host name or address, and a port in digits; its addresses are tried in turn. ST_IO:
 * no such host or port; ST_NOMEM. */
MUST_CHECK enum status dial_open(const char *host, const char *port, int64_t timeout_ms,
                                 struct dial **out);
void dial_close(struct dial *d);

/* Send all of it. What comes in meanwhile is read and kept, DIAL_INPUT_MAX bytes at most, so that
 * two sides that both write do not wait for each other. */
MUST_CHECK enum status dial_send(struct dial *d, struct bytes bytes, int64_t timeout_ms);

/* The next line, without its CR LF, good until the next call. ST_SYNTAX: longer than
 * DIAL_LINE_MAX. */
MUST_CHECK enum status dial_read_line(struct dial *d, int64_t timeout_ms, struct bytes *line);

#endif
