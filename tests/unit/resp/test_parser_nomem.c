/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser under a failing allocator: its source is compiled here with the allocating calls
 * replaced, so that the n-th of them can fail, for every n. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>

static size_t calls_left = SIZE_MAX; /* until one fails */

static bool fails_now(void) {
    return --calls_left == 0;
}

static void *failing_calloc(size_t n, size_t size) {
    return fails_now() ? NULL : calloc(n, size);
}

static void *failing_realloc(void *ptr, size_t size) {
    return fails_now() ? NULL : realloc(ptr, size);
}

#define calloc failing_calloc
#define realloc failing_realloc
#include "../../../src/resp/parser.c"
#undef calloc
#undef realloc

#include "base/buf.h"

/* A stream that makes the parser allocate everything it can: arguments, partials, big bulks. */
static void make_stream(struct buf *b) {
    buf_append_cstr(b, "PING\r\n*103\r\n");
    for (int i = 0; i < 100; i++) {
        buf_append_cstr(b, "$2\r\nab\r\n");
    }
    for (int i = 0; i < 3; i++) {
        size_t len = RESP_BIG_START + 100;
        buf_printf(b, "$%zu\r\n", len);
        char *tail = buf_tail(b, len);
        assert_non_null(tail);
        memset(tail, 'x', len);
        b->len += len;
        buf_append_cstr(b, "\r\n");
    }
    buf_append_cstr(b, "PING\r\n");
}

/* The number of commands that came whole; the last event in *ev. */
static size_t read_all(struct bytes stream, size_t piece, enum resp_event *ev) {
    struct resp_parser p = {0};
    struct resp_args args = {0};
    struct resp_limits limits = RESP_LIMITS_DEFAULT;
    struct resp_result r;
    struct buf in = {0};
    size_t commands = 0;
    *ev = RESP_NEED_MORE;
    for (size_t fed = 0; fed < stream.len && *ev != RESP_NOMEM;) {
        size_t n = stream.len - fed < piece ? stream.len - fed : piece;
        buf_append(&in, stream.ptr + fed, n);
        fed += n;
        size_t before = args.len;
        while ((*ev = resp_parse(&p, in.ptr, in.len, &limits, &args, &r)) == RESP_COMMAND) {
            commands++;
            resp_args_clear(&args);
            buf_consume(&in, r.consumed);
        }
        assert_int_equal(args.len, before);
        if (*ev != RESP_NOMEM) {
            buf_consume(&in, r.consumed);
            in.len = *ev == RESP_BIG ? r.keep : in.len;
        }
    }
    resp_parser_deinit(&p);
    resp_args_deinit(&args);
    buf_deinit(&in);
    return commands;
}

static void every_failed_allocation_is_reported(void **state) {
    static const size_t pieces[] = {13, 5000, 70000};
    struct buf stream = {0};
    make_stream(&stream);
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        enum resp_event ev = RESP_NOMEM;
        size_t nth = 0, commands = 0;
        while (ev == RESP_NOMEM) {
            calls_left = ++nth;
            commands = read_all(buf_bytes(&stream), pieces[i], &ev);
            calls_left = SIZE_MAX;
            assert_true(nth < 1000);
        }
        assert_int_equal(ev, RESP_NEED_MORE);
        assert_int_equal(commands, 3);
        assert_true(nth > 8); /* so many allocations were made to fail, one after the other */
    }
    buf_deinit(&stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failed_allocation_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
