/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies: the known workloads' byte by byte, those of free commands by their structure. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "loadgen_priv.h"

/* ---- replies ------------------------------------------------------------------------------- */

/* Say what came instead of the reply to an item, printable bytes only, and end the run. */
static void wrong_reply(const char *what, const struct item *item, const char *ptr, size_t len)
    __attribute__((noreturn));

static void wrong_reply(const char *what, const struct item *item, const char *ptr, size_t len) {
    char text[121];
    size_t n = 0;
    while (n < len && n < sizeof(text) - 1 && ptr[n] != '\r') {
        text[n] = ptr[n] >= ' ' && ptr[n] <= '~' ? ptr[n] : '.';
        n++;
    }
    text[n] = '\0';
    die(EXIT_RUN_FAILED, "%s (item %" PRIu64 "); the server said: %s", what, item->id, text);
}

/* Bytes of a value reply at ptr, 0 while it is incomplete. */
static size_t take_value(const struct engine *e, const struct item *item, const char *ptr,
                         size_t len) {
    const struct buf *head = &e->tmpl.value_head; /* its first two bytes are the CR LF before */
    size_t head_len = head->len - 2;
    size_t total = head_len + e->data.value_len + 2;
    size_t have = len < head_len ? len : head_len;
    if (memcmp(ptr, head->ptr + 2, have) != 0) {
        bool nil = len >= 3 && memcmp(ptr, "$-1", 3) == 0;
        wrong_reply(nil           ? "no such item, is the data set loaded with the same --fields?"
                    : *ptr == '$' ? "a value of another length than --value-bytes"
                                  : "no value",
                    item, ptr, len);
    }
    if (len < total) {
        return 0;
    }
    if (memcmp(ptr + total - 2, "\r\n", 2) != 0 ||
        !dataset_holds(&e->data, item->id, ptr + head_len)) {
        wrong_reply("a value with wrong content", item, ptr, len);
    }
    return total;
}

static size_t take_integer(struct engine *e, const struct item *item, const char *ptr, size_t len) {
    const char *end = memchr(ptr, '\n', len);
    if (*ptr != ':') {
        wrong_reply("no integer", item, ptr, len);
    }
    if (end == NULL) {
        if (len > NUMBER_I64_MAX_LEN + 2) {
            wrong_reply("an integer without end", item, ptr, len);
        }
        return 0;
    }
    uint64_t value;
    if (end - ptr < 3 || end[-1] != '\r' ||
        !number_parse_u64(BYTES(ptr + 1, (size_t)(end - ptr) - 2), &value)) {
        wrong_reply("no count", item, ptr, len);
    }
    e->result->new_items += value;
    return (size_t)(end - ptr) + 1;
}

static size_t take_ok(const struct item *item, const char *ptr, size_t len) {
    static const char ok[] = "+OK\r\n";
    size_t have = len < sizeof(ok) - 1 ? len : sizeof(ok) - 1;
    if (memcmp(ptr, ok, have) != 0) {
        wrong_reply("no OK", item, ptr, len);
    }
    return have == sizeof(ok) - 1 ? have : 0;
}

/* Look further at one RESP2 reply of any kind that begins at ptr: its bytes when it is complete, else
 * 0. Elements of nested arrays are counted, the arrays are not. */
static size_t take_any(struct scan *s, const struct item *item, const char *ptr, size_t len) {
    if (s->at == 0) {
        s->open = 1;
    }
    while (s->open > 0) {
        const char *line = ptr + s->at;
        const char *end = s->at < len ? memchr(line, '\n', len - s->at) : NULL;
        if (s->at < len && *line == '-') {
            wrong_reply("an error", item, line, len - s->at);
        }
        if (end == NULL) {
            return 0;
        }
        size_t line_len = (size_t)(end - line) + 1;
        bool bulk = *line == '$';
        bool array = *line == '*';
        if ((!bulk && !array && *line != ':' && *line != '+') || line_len < 3) {
            wrong_reply("no RESP2 reply", item, line, len - s->at);
        }
        int64_t count = 0;
        if ((bulk || array) &&
            (!number_parse_i64(BYTES(line + 1, line_len - 3), &count) || count < -1)) {
            wrong_reply("no length", item, line, line_len);
        }
        size_t body_len = bulk && count >= 0 ? (size_t)count + 2 : 0;
        if (s->at + line_len + body_len > len) {
            return 0;
        }
        s->at += line_len + body_len;
        s->open -= 1;
        s->open += array && count > 0 ? (uint64_t)count : 0;
        s->nils += count < 0;
        s->elements += !array && count >= 0;
    }
    return s->at;
}

static size_t take_counted(struct engine *e, struct conn *c, const struct item *item,
                           const char *ptr, size_t len) {
    size_t used = take_any(&c->scan, item, ptr, len);
    if (used > 0) {
        e->result->reply_elements += c->scan.elements;
        e->result->reply_nils += c->scan.nils;
        c->scan = (struct scan){0};
    }
    return used;
}

static size_t take_one(struct engine *e, struct conn *c, const struct item *item, const char *ptr,
                       size_t len) {
    switch (item->reply) {
    case REPLY_VALUE:
        return take_value(e, item, ptr, len);
    case REPLY_INTEGER:
        return take_integer(e, item, ptr, len);
    case REPLY_OK:
        return take_ok(item, ptr, len);
    case REPLY_ANY:
        break;
    }
    return take_counted(e, c, item, ptr, len);
}

bool replies_take(struct engine *e, struct conn *c) {
    const struct batch *b = c->oldest;
    size_t at = 0;
    while (at < c->in.len && c->reply_count < b->item_count) {
        size_t used = take_one(e, c, &b->items[c->reply_count], c->in.ptr + at, c->in.len - at);
        if (used == 0) {
            break;
        }
        at += used;
        c->reply_count++;
    }
    buf_consume(&c->in, at);
    return c->reply_count == b->item_count;
}
