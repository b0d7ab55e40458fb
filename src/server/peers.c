/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections to other servers, kept for a while: MIGRATE is seldom called once. */
#include <stdlib.h>

#include "base/clock.h"
#include "net/dial.h"
#include "server/server.h"

#define PEERS_MAX 64
#define PEER_IDLE_MS 10000
#define HOST_LEN_MAX 255
#define PORT_LEN_MAX 15

struct link {
    struct peer peer;
    struct dial *dial;
    char host[HOST_LEN_MAX + 1], port[PORT_LEN_MAX + 1];
    int64_t used_us; /* monotonic */
    struct link *next;
};

static struct link *link_of(struct peer *p) {
    return CONTAINER_OF(p, struct link, peer);
}

static void drop(struct server *s, struct link **at) {
    struct link *link = *at;
    *at = link->next;
    s->peer_count--;
    dial_close(link->dial);
    free(link);
}

/* The one that was used longest ago. */
static struct link **oldest(struct server *s) {
    struct link **found = &s->peers;
    for (struct link **at = found; *at != NULL; at = &(*at)->next) {
        if ((*at)->used_us < (*found)->used_us) {
            found = at;
        }
    }
    return found;
}

static bool copy_text(char *to, size_t len_max, struct bytes from) {
    if (from.len > len_max || memchr(from.ptr, '\0', from.len) != NULL) {
        return false;
    }
    memcpy(to, from.ptr, from.len);
    to[from.len] = '\0';
    return true;
}

static enum status connect_new(struct server *s, struct bytes host, struct bytes port,
                               int64_t timeout_ms, struct link **out) {
    struct link *link = calloc(1, sizeof(*link));
    if (link == NULL) {
        return ST_NOMEM;
    }
    enum status st = ST_IO;
    if (host.len != 0 && port.len != 0 && copy_text(link->host, HOST_LEN_MAX, host) &&
        copy_text(link->port, PORT_LEN_MAX, port)) {
        st = dial_open(link->host, link->port, timeout_ms, &link->dial);
    }
    if (st != ST_OK) {
        free(link);
        return st;
    }
    if (s->peer_count == PEERS_MAX) {
        drop(s, oldest(s));
    }
    link->next = s->peers;
    s->peers = link;
    s->peer_count++;
    *out = link;
    return ST_OK;
}

static enum status open_peer(void *server, struct bytes host, struct bytes port, int64_t timeout_ms,
                             struct peer **out) {
    struct server *s = server;
    struct link *link = s->peers;
    while (link != NULL && !(bytes_is(host, link->host) && bytes_is(port, link->port))) {
        link = link->next;
    }
    bool reused = link != NULL;
    if (!reused) {
        enum status st = connect_new(s, host, port, timeout_ms, &link);
        if (st != ST_OK) {
            return st;
        }
    }
    link->peer.reused = reused;
    link->used_us = clock_monotonic_us();
    *out = &link->peer;
    return ST_OK;
}

static enum status send_to_peer(struct peer *p, struct bytes bytes, int64_t timeout_ms) {
    return dial_send(link_of(p)->dial, bytes, timeout_ms);
}

static enum status read_peer_line(struct peer *p, int64_t timeout_ms, struct bytes *line) {
    return dial_read_line(link_of(p)->dial, timeout_ms, line);
}

static void close_peer(void *server, struct peer *p) {
    struct server *s = server;
    struct link **at = &s->peers;
    while (*at != link_of(p)) {
        at = &(*at)->next;
    }
    drop(s, at);
}

static size_t count_peers(const void *server) {
    return ((const struct server *)server)->peer_count;
}

void peers_setup(struct server *s) {
    s->cx.peers = (struct peer_hooks){.open = open_peer,
                                      .send = send_to_peer,
                                      .read_line = read_peer_line,
                                      .close = close_peer,
                                      .count = count_peers};
}

void peers_tend(struct server *s) {
    int64_t before_us = clock_monotonic_us() - (int64_t)PEER_IDLE_MS * 1000;
    for (struct link **at = &s->peers; *at != NULL;) {
        if ((*at)->used_us < before_us) {
            drop(s, at);
        } else {
            at = &(*at)->next;
        }
    }
}

void peers_teardown(struct server *s) {
    while (s->peers != NULL) {
        drop(s, &s->peers);
    }
}
