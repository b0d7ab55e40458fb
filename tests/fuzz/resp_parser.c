/* SPDX-License-Identifier: BSD-3-Clause */
/* The first byte picks how the rest is cut and which limits hold; the rest is the request stream,
 * read once whole and once in pieces. Both must give the same commands and the same error, no
 * argument may lie outside the input or its own allocation, and memory must stay in proportion to
 * what arrived. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "resp/parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void note_command(struct buf *log, const struct resp_args *args,
                         const struct resp_result *r) {
    buf_printf(log, "%zu:", r->argc);
    for (size_t i = 0; i < r->argc; i++) {
        buf_printf(log, "%zu=", args->v[r->first + i].len);
        buf_append(log, args->v[r->first + i].ptr, args->v[r->first + i].len);
    }
}

struct stream {
    struct resp_parser parser;
    struct resp_args args;
    struct resp_limits limits;
    char *in;
    size_t in_len;
    bool dead;
};

static void feed(struct stream *s, const uint8_t *data, size_t n) {
    char *moved = malloc(s->in_len + n + 1);
    CHECK(moved != NULL);
    if (s->in_len != 0) {
        memcpy(moved, s->in, s->in_len);
    }
    memcpy(moved + s->in_len, data, n);
    free(s->in);
    s->in = moved;
    s->in_len += n;
}

static void drain(struct stream *s, struct buf *log) {
    size_t at = 0;
    struct resp_result r;
    enum resp_event ev;
    while ((ev = resp_parse(&s->parser, s->in + at, s->in_len - at, &s->limits, &s->args, &r)) ==
           RESP_COMMAND) {
        CHECK(r.argc > 0 && r.consumed > 0 && r.consumed <= s->in_len - at);
        note_command(log, &s->args, &r);
        at += r.consumed;
    }
    CHECK(ev != RESP_NOMEM && r.consumed <= s->in_len - at);
    at += r.consumed;
    if (ev == RESP_ERROR) {
        buf_append_cstr(log, r.error);
        s->dead = true;
    }
    size_t keep = ev == RESP_BIG ? r.keep : s->in_len - at;
    CHECK(keep <= s->in_len - at);
    resp_args_clear(&s->args);
    memmove(s->in, s->in + at, keep);
    s->in_len = keep;
}

static void run(const uint8_t *data, size_t size, size_t piece, struct resp_limits limits,
                struct buf *log) {
    struct stream s = {.limits = limits};
    for (size_t fed = 0; fed < size && !s.dead;) {
        size_t n = size - fed < piece ? size - fed : piece;
        size_t room;
        char *into = resp_big_room(&s.parser, &room);
        if (into != NULL && piece % 2 == 0) {
            n = n < room ? n : room;
            memcpy(into, data + fed, n);
            resp_big_commit(&s.parser, n);
        } else {
            feed(&s, data + fed, n);
        }
        fed += n;
        drain(&s, log);
        CHECK(resp_parser_memory(&s.parser) <= 512 + 2 * RESP_BIG_START + 16 * fed);
    }
    buf_append_char(log, s.dead || resp_parser_idle(&s.parser) ? '.' : '~');
    resp_parser_deinit(&s.parser);
    resp_args_deinit(&s.args);
    free(s.in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    struct resp_limits limits = RESP_LIMITS_DEFAULT;
    limits.unauthenticated = (data[0] & 0x80) != 0;
    size_t piece = 1 + (data[0] & 0x7f);
    struct buf whole = {0}, cut = {0};
    run(data + 1, size - 1, size, limits, &whole);
    run(data + 1, size - 1, piece, limits, &cut);
    CHECK(bytes_equal(buf_bytes(&whole), buf_bytes(&cut)));
    buf_deinit(&whole);
    buf_deinit(&cut);
    return 0;
}
