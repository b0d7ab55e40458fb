/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/client.h"

#include <stdlib.h>

void client_init(struct client *c, struct client_registry *r, struct buf *out, int64_t now_ms) {
    *c = (struct client){.id = ++r->next_id,
                         .proto = 2,
                         .out = out,
                         .created_ms = now_ms,
                         .last_active_ms = now_ms,
                         .prev = r->last};
    if (r->last != NULL) {
        r->last->next = c;
    } else {
        r->first = c;
    }
    r->last = c;
    r->count++;
}

/* Everybody had a turn. */
static void end_round(struct client_registry *r) {
    r->use = r->round;
    r->round = (struct client_use){0};
}

void client_deinit(struct client *c, struct client_registry *r) {
    *(c->prev ? &c->prev->next : &r->first) = c->next;
    *(c->next ? &c->next->prev : &r->last) = c->prev;
    r->count--;
    if (r->hand == c) {
        r->hand = c->next;
        if (r->hand == NULL) {
            end_round(r);
        }
    }
    free(c->name);
    free(c->lib_name);
    free(c->lib_ver);
    buf_deinit(&c->deferred);
}

struct client *client_take_turn(struct client_registry *r) {
    struct client *c = r->hand != NULL ? r->hand : r->first;
    r->hand = c != NULL ? c->next : NULL;
    return c;
}

static size_t greater(size_t a, size_t b) {
    return a > b ? a : b;
}

void client_note_use(struct client_registry *r, const struct client_use *use) {
    r->round.memory_bytes += use->memory_bytes;
    r->round.query_max_bytes = greater(r->round.query_max_bytes, use->query_max_bytes);
    r->round.output_max_bytes = greater(r->round.output_max_bytes, use->output_max_bytes);
    if (r->hand == NULL) {
        end_round(r);
    }
}

struct client *client_find(const struct client_registry *r, uint64_t id) {
    struct client *c = r->last;
    while (c != NULL && c->id > id) {
        c = c->prev;
    }
    return c != NULL && c->id == id && !(c->flags & CLIENT_GONE) ? c : NULL;
}
