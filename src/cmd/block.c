/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/block.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/number.h"
#include "cmd/args.h"
#include "ds/order.h"

#define BUCKETS_MIN 64

/* A waiter's place in the queue of one key. */
struct place {
    struct waiter *waiter;
    struct queue *queue;
    struct place *prev, *next;
};

/* A blocked client. */
struct waiter {
    struct client *client;
    const struct block_ops *ops;
    struct bytes payload; /* behind the places */
    int64_t deadline_ms;  /* 0: none */
    size_t slot;          /* in registry->waiters; the ref in registry->deadlines */
    size_t count;
    struct place places[]; /* one a key, in the order named */
};

/* Those who wait for one key, first come first. */
struct queue {
    struct queue *next; /* in the bucket */
    struct queue *next_ready;
    struct place *first, *last;
    uint64_t hash;
    uint16_t db;
    bool ready; /* in the list of ready keys */
    size_t key_len;
    char key[];
};

struct block_registry {
    struct queue **buckets; /* a power of two of them */
    size_t bucket_count, queue_count;
    struct queue *ready_first, *ready_last;
    struct waiter **waiters; /* by slot, NULL where free */
    size_t waiter_cap, waiter_count;
    struct order deadlines; /* (time, slot) */
};

/* ---- queues -------------------------------------------------------------------------------- */

static uint64_t queue_hash(uint16_t db, struct bytes key) {
    return hash_bytes(key) + db;
}

static struct queue **queue_slot(struct block_registry *b, uint16_t db, struct bytes key) {
    struct queue **at = &b->buckets[queue_hash(db, key) & (b->bucket_count - 1)];
    while (*at != NULL &&
           ((*at)->db != db || !bytes_equal(BYTES((*at)->key, (*at)->key_len), key))) {
        at = &(*at)->next;
    }
    return at;
}

/* Twice the buckets; without memory the chains just grow longer. */
static void grow_buckets(struct block_registry *b) {
    size_t count = b->bucket_count * 2;
    struct queue **buckets = calloc(count, sizeof(struct queue *));
    if (buckets == NULL) {
        return;
    }
    for (size_t i = 0; i < b->bucket_count; i++) {
        for (struct queue *q = b->buckets[i], *next; q != NULL; q = next) {
            next = q->next;
            q->next = buckets[q->hash & (count - 1)];
            buckets[q->hash & (count - 1)] = q;
        }
    }
    free(b->buckets);
    b->buckets = buckets;
    b->bucket_count = count;
}

static struct queue *queue_find_or_add(struct block_registry *b, uint16_t db, struct bytes key) {
    struct queue **at = queue_slot(b, db, key);
    if (*at != NULL) {
        return *at;
    }
    struct queue *q = calloc(1, sizeof(*q) + key.len);
    if (q == NULL) {
        return NULL;
    }
    q->hash = queue_hash(db, key);
    q->db = db;
    q->key_len = key.len;
    memcpy(q->key, key.ptr, key.len);
    *at = q;
    if (++b->queue_count > b->bucket_count) {
        grow_buckets(b);
    }
    return q;
}

/* Free a queue nobody is in. One that is ready is freed when its turn comes. */
static void queue_drop_if_idle(struct block_registry *b, struct queue *q) {
    if (q->first == NULL && !q->ready) {
        *queue_slot(b, q->db, BYTES(q->key, q->key_len)) = q->next;
        b->queue_count--;
        free(q);
    }
}

static void place_unlink(struct place *p) {
    *(p->prev ? &p->prev->next : &p->queue->first) = p->next;
    *(p->next ? &p->next->prev : &p->queue->last) = p->prev;
}

static void place_link(struct place *p, struct waiter *w, struct queue *q) {
    *p = (struct place){.waiter = w, .queue = q, .prev = q->last};
    *(q->last ? &q->last->next : &q->first) = p;
    q->last = p;
}

/* ---- waiters ------------------------------------------------------------------------------- */

static enum status take_slot(struct block_registry *b, struct waiter *w) {
    if (b->waiter_count == b->waiter_cap) {
        size_t cap = b->waiter_cap ? b->waiter_cap * 2 : BUCKETS_MIN;
        struct waiter **waiters = realloc(b->waiters, cap * sizeof(struct waiter *));
        if (waiters == NULL) {
            return ST_NOMEM;
        }
        memset(waiters + b->waiter_cap, 0, (cap - b->waiter_cap) * sizeof(struct waiter *));
        b->waiters = waiters;
        b->waiter_cap = cap;
    }
    /* a full table was just doubled, so a free slot is at most a few steps behind the count */
    w->slot = b->waiter_count;
    while (b->waiters[w->slot] != NULL) {
        w->slot = (w->slot + 1) % b->waiter_cap;
    }
    if (w->deadline_ms != 0 &&
        order_insert(&b->deadlines, order_key_from_i64(w->deadline_ms), w->slot, NULL) != ST_OK) {
        return ST_NOMEM;
    }
    b->waiters[w->slot] = w;
    b->waiter_count++;
    return ST_OK;
}

static void leave_slot(struct block_registry *b, struct waiter *w) {
    if (w->deadline_ms != 0) {
        order_erase(&b->deadlines, order_key_from_i64(w->deadline_ms), w->slot, NULL);
    }
    b->waiters[w->slot] = NULL;
    b->waiter_count--;
}

static void leave_queues(struct block_registry *b, struct waiter *w, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct queue *q = w->places[i].queue;
        place_unlink(&w->places[i]);
        queue_drop_if_idle(b, q);
    }
}

static void waiter_destroy(struct block_registry *b, struct waiter *w) {
    leave_queues(b, w, w->count);
    leave_slot(b, w);
    w->client->waiter = NULL;
    free(w);
}

/* The client has its reply: what it sent meanwhile can go on. */
void block_release(struct cmd_context *cx, struct client *c) {
    waiter_destroy(cx->block, c->waiter);
    c->last_active_ms = cx->now_ms;
    cx->hooks.resume(cx->hooks.server, c);
}

struct reply block_reply(struct cmd_context *cx, struct client *c) {
    c->out = cx->hooks.output(cx->hooks.server, c);
    return (struct reply){c->out, c->proto};
}

void block_client(struct call *call, size_t first_key, size_t count, int64_t timeout_ms,
                  const struct block_ops *ops, struct bytes payload) {
    struct block_registry *b = call->cx->block;
    if (count != 0 && (call->client->flags & CLIENT_GONE)) {
        /* it would wait to the end of its days: what is behind this command is never executed */
        call->client->flags |= CLIENT_CLOSE_NOW;
        ops->time_out(&call->reply);
        return;
    }
    struct waiter *w = calloc(1, sizeof(*w) + count * sizeof(struct place) + payload.len);
    if (w == NULL) {
        args_nomem(call);
        return;
    }
    w->client = call->client;
    w->ops = ops;
    w->deadline_ms = timeout_ms ? call->cx->now_ms + timeout_ms : 0;
    char *behind = (char *)(w->places + count);
    memcpy(behind, payload.ptr, payload.len);
    w->payload = BYTES(behind, payload.len);
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++) {
        struct queue *q = queue_find_or_add(b, call->client->db, call->argv[first_key + i]);
        ok = q != NULL;
        if (ok) {
            place_link(&w->places[w->count++], w, q);
        }
    }
    if (!ok || take_slot(b, w) != ST_OK) {
        leave_queues(b, w, w->count);
        free(w);
        args_nomem(call);
        return;
    }
    call->client->waiter = w;
}

static bool never_served(struct cmd_context *cx, struct db *db, struct bytes key,
                         struct bytes payload, struct reply *r) {
    return false;
}

static void let_go(struct reply *r) {
    reply_error(r, "UNBLOCKED what the client asked for is still under way");
}

bool block_until_released(struct call *call) {
    static const struct block_ops ops = {.serve = never_served, .time_out = let_go};
    block_client(call, 0, 0, 0, &ops, BYTES("", 0));
    return block_is_blocked(call->client);
}

bool block_parse_timeout(struct call *call, size_t i, int64_t *timeout_ms) {
    long double seconds;
    if (!number_parse_real(call->argv[i], &seconds)) {
        reply_error(&call->reply, "ERR timeout is not a float or out of range");
        return false;
    }
    if (seconds < 0) {
        reply_error(&call->reply, "ERR timeout is negative");
        return false;
    }
    long double ms = ceill(seconds * 1000);
    if (ms > (long double)(INT64_MAX - call->cx->now_ms)) {
        reply_error(&call->reply, "ERR timeout is out of range");
        return false;
    }
    *timeout_ms = (int64_t)ms;
    return true;
}

/* ---- keys become ready ---------------------------------------------------------------------- */

static void make_ready(struct cmd_context *cx, struct queue *q) {
    struct block_registry *b = cx->block;
    if (q->ready) {
        return;
    }
    q->ready = true;
    q->next_ready = NULL;
    *(b->ready_last ? &b->ready_last->next_ready : &b->ready_first) = q;
    b->ready_last = q;
    cx->block_ready = true;
}

static bool number_of(const struct cmd_context *cx, const struct db *db, uint16_t *number) {
    for (size_t i = 0; i < cx->dbs->count; i++) {
        if (cx->dbs->dbs[i] == db) {
            *number = (uint16_t)i;
            return true;
        }
    }
    return false;
}

void block_signal_key(struct cmd_context *cx, struct db *db, struct bytes key) {
    struct block_registry *b = cx->block;
    uint16_t number;
    if (LIKELY(b->queue_count == 0) || !number_of(cx, db, &number)) {
        return;
    }
    struct queue *q = *queue_slot(b, number, key);
    if (q != NULL) {
        make_ready(cx, q);
    }
}

void block_signal_db(struct cmd_context *cx, struct db *db) {
    struct block_registry *b = cx->block;
    uint16_t number;
    if (b->queue_count == 0 || !number_of(cx, db, &number)) {
        return;
    }
    for (size_t i = 0; i < b->bucket_count; i++) {
        for (struct queue *q = b->buckets[i]; q != NULL; q = q->next) {
            if (q->db == number) {
                make_ready(cx, q);
            }
        }
    }
}

/* Offer the key to those who wait for it, in turn, as long as there is a key. A waiter that cannot use it (another
 * type) keeps its place. */
static void serve_queue(struct cmd_context *cx, struct queue *q) {
    struct db *db = cx->dbs->dbs[q->db];
    struct bytes key = BYTES(q->key, q->key_len);
    uint64_t hash = hash_bytes(key);
    for (struct place *p = q->first, *next; p != NULL; p = next) {
        struct entry e;
        next = p->next;
        if (!db_find(db, key, hash, DB_NO_TOUCH, &e)) {
            return;
        }
        struct waiter *w = p->waiter;
        struct reply r = block_reply(cx, w->client);
        if (w->ops->serve(cx, db, key, w->payload, &r)) {
            /* a client may name a key twice: go on behind all its places */
            while (next != NULL && next->waiter == w) {
                next = next->next;
            }
            block_release(cx, w->client);
        }
    }
}

void block_serve_ready(struct cmd_context *cx) {
    struct block_registry *b = cx->block;
    struct queue *q;
    while ((q = b->ready_first) != NULL) {
        serve_queue(cx, q);
        b->ready_first = q->next_ready;
        if (b->ready_first == NULL) {
            b->ready_last = NULL;
        }
        q->ready = false;
        queue_drop_if_idle(b, q);
    }
    cx->block_ready = false;
}

/* ---- the end of waiting ---------------------------------------------------------------------- */

int64_t block_expire(struct cmd_context *cx) {
    struct block_registry *b = cx->block;
    struct order_entry due;
    while (order_first(&b->deadlines, &due)) {
        if (order_key_to_i64(due.key) > cx->now_ms) {
            return order_key_to_i64(due.key);
        }
        block_cancel(cx, b->waiters[due.ref]->client, false);
    }
    return INT64_MAX;
}

void block_cancel(struct cmd_context *cx, struct client *c, bool with_error) {
    struct reply r = block_reply(cx, c);
    if (with_error) {
        reply_error(&r, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
    } else {
        c->waiter->ops->time_out(&r);
    }
    block_release(cx, c);
}

void block_forget(struct cmd_context *cx, struct client *c) {
    if (c->waiter != NULL) {
        waiter_destroy(cx->block, c->waiter);
    }
}

size_t block_count(const struct cmd_context *cx) {
    return cx->block->waiter_count;
}

size_t block_timed_count(const struct cmd_context *cx) {
    return (size_t)order_count(&cx->block->deadlines);
}

/* ---- setup --------------------------------------------------------------------------------- */

enum status block_setup(struct cmd_context *cx) {
    struct block_registry *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return ST_NOMEM;
    }
    b->buckets = calloc(BUCKETS_MIN, sizeof(struct queue *));
    if (b->buckets == NULL) {
        free(b);
        return ST_NOMEM;
    }
    b->bucket_count = BUCKETS_MIN;
    order_init(&b->deadlines, NULL, NULL);
    cx->block = b;
    return ST_OK;
}

void block_teardown(struct cmd_context *cx) {
    struct block_registry *b = cx->block;
    if (b == NULL) {
        return;
    }
    for (size_t i = 0; i < b->waiter_cap; i++) {
        if (b->waiters[i] != NULL) {
            waiter_destroy(b, b->waiters[i]);
        }
    }
    while (b->ready_first != NULL) {
        struct queue *q = b->ready_first;
        b->ready_first = q->next_ready;
        q->ready = false;
        queue_drop_if_idle(b, q);
    }
    order_deinit(&b->deadlines);
    free(b->waiters);
    free(b->buckets);
    free(b);
    cx->block = NULL;
}
