/* SPDX-License-Identifier: BSD-3-Clause */
/* Any cutting of a random request stream into reads gives the commands, and the error, of the
 * stream in one piece. Every read moves the input to new memory, so a pointer kept too long is a
 * use after free under the sanitizer. Seed: RESP_SEED. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/rng.h"
#include "resp/parser.h"

#define ROUNDS 1000
#define CUTS_PER_STREAM 4
#define WHOLE SIZE_MAX

/* ---- random streams ---- */

static void append_random_bytes(struct rng *rng, struct buf *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        buf_append_char(b,
                        (char)(rng_below(rng, 4) == 0 ? rng_next(rng) : 'a' + rng_below(rng, 26)));
    }
}

static size_t random_bulk_len(struct rng *rng) {
    switch (rng_below(rng, 200)) {
    case 0:
        return RESP_BIG_BULK - 2 + rng_below(rng, 5);
    case 1:
        return RESP_BIG_START - 4 + rng_below(rng, 8);
    case 2:
        return rng_below(rng, 200000);
    default:
        return rng_below(rng, rng_below(rng, 8) == 0 ? 300 : 20);
    }
}

static void append_multibulk(struct rng *rng, struct buf *b) {
    size_t argc = rng_below(rng, 50) == 0 ? rng_below(rng, 300) : rng_below(rng, 6);
    buf_printf(b, "*%zu\r\n", argc);
    for (size_t i = 0; i < argc; i++) {
        size_t len = random_bulk_len(rng);
        buf_printf(b, "$%zu\r\n", len);
        append_random_bytes(rng, b, len);
        buf_append(b, "\r\n", 2);
    }
}

static void append_inline(struct rng *rng, struct buf *b) {
    static const char alphabet[] = "ab  \t'\"\\xnr1f\r\v";
    size_t len = rng_below(rng, 20);
    for (size_t i = 0; i < len; i++) {
        buf_append_char(b, alphabet[rng_below(rng, sizeof(alphabet) - 1)]);
    }
    buf_append_cstr(b, rng_below(rng, 2) == 0 ? "\n" : "\r\n");
}

static void random_stream(struct rng *rng, struct buf *b) {
    size_t commands = 1 + rng_below(rng, 12);
    for (size_t i = 0; i < commands; i++) {
        if (rng_below(rng, 6) == 0) {
            append_inline(rng, b);
        } else {
            append_multibulk(rng, b);
        }
    }
    if (b->len > 0 && rng_below(rng, 4) == 0) { /* damage one byte, or cut the end */
        size_t at = rng_below(rng, b->len < 64 ? b->len : 64);
        b->ptr[at] = (char)rng_next(rng);
    }
    if (rng_below(rng, 4) == 0) {
        b->len -= rng_below(rng, b->len + 1);
    }
}

/* ---- reading ---- */

/* Length-prefixed transcript of what the parser says, so that no two differ only in framing. */
static void note_command(struct buf *log, const struct resp_args *args,
                         const struct resp_result *r) {
    buf_printf(log, "%zu:", r->argc);
    for (size_t i = 0; i < r->argc; i++) {
        buf_printf(log, "%zu=", args->v[r->first + i].len);
        buf_append(log, args->v[r->first + i].ptr, args->v[r->first + i].len);
    }
}

struct reader {
    struct resp_parser parser;
    struct resp_args args;
    struct resp_limits limits;
    char *in; /* exactly in_len bytes, so that reading past the end is seen */
    size_t in_len;
    bool dead;
};

static void reader_move(struct reader *rd, size_t drop, size_t keep, const char *more, size_t n) {
    char *moved = malloc(keep + n + (keep + n == 0));
    assert_non_null(moved);
    if (keep != 0) {
        memcpy(moved, rd->in + drop, keep);
    }
    if (n != 0) {
        memcpy(moved + keep, more, n);
    }
    free(rd->in);
    rd->in = moved;
    rd->in_len = keep + n;
}

static void reader_drain(struct reader *rd, struct buf *log) {
    size_t at = 0, keep = 0;
    for (bool more = true; more;) {
        struct resp_result r;
        enum resp_event ev =
            resp_parse(&rd->parser, rd->in + at, rd->in_len - at, &rd->limits, &rd->args, &r);
        at += r.consumed;
        keep = rd->in_len - at;
        switch (ev) {
        case RESP_COMMAND:
            note_command(log, &rd->args, &r);
            continue;
        case RESP_ERROR:
            buf_append_cstr(log, r.error);
            rd->dead = true;
            break;
        case RESP_BIG:
            keep = r.keep;
            break;
        default:
            assert_int_equal(ev, RESP_NEED_MORE);
        }
        more = false;
    }
    resp_args_clear(&rd->args);
    reader_move(rd, at, keep, NULL, 0);
}

/* pieces of up to max_piece bytes; big bulks go the direct way when `direct`. */
static void read_stream(struct rng *rng, struct bytes stream, size_t max_piece, bool direct,
                        struct buf *log) {
    struct reader rd = {.limits = RESP_LIMITS_DEFAULT};
    size_t fed = 0;
    while (fed < stream.len && !rd.dead) {
        size_t n = max_piece == WHOLE ? stream.len : 1 + rng_below(rng, max_piece);
        n = n > stream.len - fed ? stream.len - fed : n;
        size_t room;
        char *into = direct ? resp_big_room(&rd.parser, &room) : NULL;
        if (into != NULL) {
            n = n > room ? room : n;
            memcpy(into, stream.ptr + fed, n);
            resp_big_commit(&rd.parser, n);
        } else {
            reader_move(&rd, 0, rd.in_len, stream.ptr + fed, n);
        }
        fed += n;
        reader_drain(&rd, log);
    }
    buf_append_cstr(log, rd.dead || resp_parser_idle(&rd.parser) ? "." : "~");
    resp_parser_deinit(&rd.parser);
    resp_args_deinit(&rd.args);
    free(rd.in);
}

static void any_split_reads_the_same(void **state) {
    const char *given = getenv("RESP_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : rng_entropy();
    print_message("RESP_SEED=%" PRIu64 "\n", seed);
    struct rng rng;
    rng_init(&rng, seed);
    for (int round = 0; round < ROUNDS; round++) {
        struct buf stream = {0}, whole = {0}, log = {0};
        random_stream(&rng, &stream);
        read_stream(&rng, buf_bytes(&stream), WHOLE, false, &whole);
        for (int cut = 0; cut < CUTS_PER_STREAM; cut++) {
            static const size_t max_piece[] = {1, 3, 40, 20000};
            size_t max = stream.len > 5000 ? (size_t)700 << cut : max_piece[cut];
            buf_clear(&log);
            read_stream(&rng, buf_bytes(&stream), max, rng_below(&rng, 2) == 0, &log);
            assert_true(bytes_equal(buf_bytes(&whole), buf_bytes(&log)));
        }
        buf_deinit(&stream);
        buf_deinit(&whole);
        buf_deinit(&log);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_split_reads_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
