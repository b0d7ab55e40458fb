/* SPDX-License-Identifier: BSD-3-Clause */
/* What the load generator sends: items whose bytes follow from their number alone, and requests
 * about them, built from templates. */
#include <inttypes.h>
#include <stdlib.h>

#include "loadgen_priv.h"

#define POOL_MIN_BYTES (1u << 20)          /* values are windows of this many random bytes */
#define POOL_SEED UINT64_C(0x676f626c696e) /* the same for load and run: run checks load's data */

/* ---- data: everything about an item follows from its number -------------------------------- */

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33); /* the finaliser of MurmurHash3 (Appleby) */
}

void dataset_init(struct dataset *d, size_t value_len) {
    d->value_len = value_len;
    d->pool_bytes = POOL_MIN_BYTES + 2 * value_len;
    d->pool = malloc(d->pool_bytes);
    if (d->pool == NULL) {
        die(EXIT_RUN_FAILED, "no memory for values of %zu bytes", value_len);
    }
    struct rng rng;
    rng_init(&rng, POOL_SEED);
    for (size_t i = 0; i < d->pool_bytes; i += sizeof(uint64_t)) {
        uint64_t word = rng_next(&rng);
        size_t rest = d->pool_bytes - i;
        memcpy(d->pool + i, &word, rest < sizeof(word) ? rest : sizeof(word));
    }
}

const char *dataset_value(const struct dataset *d, uint64_t id, unsigned generation) {
    uint64_t span = d->pool_bytes - d->value_len;
    uint64_t high = mix(id * VALUE_GENERATIONS + generation + 1) >> 32;
    return d->pool + (size_t)((high * span) >> 32);
}

bool dataset_holds(const struct dataset *d, uint64_t id, const char *value) {
    for (unsigned g = 0; g < VALUE_GENERATIONS; g++) {
        if (memcmp(value, dataset_value(d, id, g), d->value_len) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- requests ------------------------------------------------------------------------------ */

void must_have_grown(const struct buf *b) {
    if (b->failed) {
        die(EXIT_RUN_FAILED, "out of memory; lower --pipeline, --connections or --value-bytes");
    }
}

void templates_init(struct templates *t, const struct options *o) {
    bool hash = !o->strings && o->workload != WORK_GET && o->workload != WORK_SET;
    if (hash) {
        size_t key_len = strlen(o->key);
        buf_printf(&t->read_head, "*3\r\n$4\r\nHGET\r\n$%zu\r\n%s\r\n$18\r\nfield:", key_len,
                   o->key);
        buf_printf(&t->write_head, "*4\r\n$4\r\nHSET\r\n$%zu\r\n%s\r\n$18\r\nfield:", key_len,
                   o->key);
    } else {
        buf_append_cstr(&t->read_head, "*2\r\n$3\r\nGET\r\n$16\r\nkey:");
        buf_append_cstr(&t->write_head, "*3\r\n$3\r\nSET\r\n$16\r\nkey:");
    }
    buf_printf(&t->value_head, "\r\n$%" PRIu64 "\r\n", o->value_bytes);
    must_have_grown(&t->read_head);
    must_have_grown(&t->write_head);
    must_have_grown(&t->value_head);
}

void templates_deinit(struct templates *t) {
    buf_deinit(&t->read_head);
    buf_deinit(&t->write_head);
    buf_deinit(&t->value_head);
}

static char *put(char *at, const void *from, size_t len) {
    memcpy(at, from, len);
    return at + len;
}

/* id as ID_DIGITS decimal digits. */
char *put_id(char *at, uint64_t id) {
    for (int i = ID_DIGITS - 2; i >= 0; i -= 2) {
        unsigned pair = (unsigned)(id % 100);
        id /= 100;
        at[i] = (char)('0' + pair / 10);
        at[i + 1] = (char)('0' + pair % 10);
    }
    return at + ID_DIGITS;
}

static char *put_value(const struct engine *e, char *at, uint64_t id, unsigned generation) {
    at = put(at, e->tmpl.value_head.ptr, e->tmpl.value_head.len);
    at = put(at, dataset_value(&e->data, id, generation), e->data.value_len);
    return put(at, "\r\n", 2);
}

static void add_read(struct engine *e, struct batch *b, uint64_t id, enum reply_kind reply) {
    const struct buf *head = &e->tmpl.read_head;
    char *start = buf_tail(&b->out, head->len + ID_DIGITS + 2);
    must_have_grown(&b->out);
    char *at = put_id(put(start, head->ptr, head->len), id);
    b->out.len += (size_t)(put(at, "\r\n", 2) - start);
    b->items[b->item_count++] = (struct item){id, reply};
    b->op_count++;
}

static void add_write(struct engine *e, struct batch *b, uint64_t id, enum reply_kind reply) {
    const struct buf *head = &e->tmpl.write_head;
    size_t room = head->len + ID_DIGITS + e->tmpl.value_head.len + e->data.value_len + 2;
    char *start = buf_tail(&b->out, room);
    must_have_grown(&b->out);
    unsigned generation = 1 + (unsigned)rng_below(&e->rng, VALUE_GENERATIONS - 1);
    char *at = put_id(put(start, head->ptr, head->len), id);
    b->out.len += (size_t)(put_value(e, at, id, generation) - start);
    b->items[b->item_count++] = (struct item){id, reply};
    b->op_count++;
}

/* One HSET or MSET of up to per_command items; false when everything is sent. */
static bool add_load_command(struct engine *e, struct batch *b) {
    const struct options *o = e->opt;
    uint64_t count = o->fields - e->load_next;
    if (count == 0) {
        return false;
    }
    count = count < o->per_command ? count : o->per_command;
    if (o->strings) {
        buf_printf(&b->out, "*%" PRIu64 "\r\n$4\r\nMSET\r\n", 1 + 2 * count);
    } else {
        buf_printf(&b->out, "*%" PRIu64 "\r\n$4\r\nHSET\r\n$%zu\r\n%s\r\n", 2 + 2 * count,
                   strlen(o->key), o->key);
    }
    const char *name = o->strings ? "$16\r\nkey:" : "$18\r\nfield:";
    size_t name_len = strlen(name);
    size_t each = name_len + ID_DIGITS + e->tmpl.value_head.len + e->data.value_len + 2;
    char *start = buf_tail(&b->out, each * count);
    must_have_grown(&b->out);
    char *at = start;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t id = e->load_next + i;
        at = put_value(e, put_id(put(at, name, name_len), id), id, 0);
    }
    b->out.len += (size_t)(at - start);
    b->items[b->item_count++] =
        (struct item){e->load_next + count, o->strings ? REPLY_OK : REPLY_INTEGER};
    e->load_next += count;
    b->op_count += count;
    return true;
}

static bool add_request(struct engine *e, struct batch *b) {
    enum workload w = e->opt->workload;
    if (w == WORK_LOAD) {
        return add_load_command(e, b);
    }
    if (e->to_send == 0) {
        return false;
    }
    e->to_send--;
    uint64_t id = rng_below(&e->rng, e->opt->fields);
    if (w == WORK_COMMAND) {
        command_append(e, &b->out, id);
        b->items[b->item_count++] = (struct item){id, REPLY_ANY};
        b->op_count++;
        return true;
    }
    bool write = w == WORK_HSET || w == WORK_SET ||
                 (w == WORK_MIXED && rng_below(&e->rng, 100) < e->opt->write_pct);
    if (write) {
        add_write(e, b, id, w == WORK_SET ? REPLY_OK : REPLY_INTEGER);
    } else {
        add_read(e, b, id, REPLY_VALUE);
    }
    return true;
}

void request_build(struct engine *e, struct batch *b) {
    buf_clear(&b->out);
    b->item_count = 0;
    b->op_count = 0;
    while (b->item_count < e->opt->pipeline && add_request(e, b)) {
    }
}
