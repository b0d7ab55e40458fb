/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands against databases of their own, without a server, while memory fails: the first
 * allocation of a command, then the second, and so on until it succeeds. After each failure the
 * data are as before. Small forms end at 8 members here. Include behind cmocka.h. */
#ifndef TESTS_CMD_STARVED_H
#define TESTS_CMD_STARVED_H

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/ticks.h"
#include "cmd/context.h"
#include "cmd/dispatch.h"
#include "cmd/table.h"
#include "mem/account.h"

enum { FAILURES_MAX = 2000, LINE_MAX_LEN = 8192 };

struct fixture {
    struct config config;
    struct metrics metrics;
    struct pages *pages;
    struct dbset *dbs;
    struct cmd_context cx;
    struct client client;
    struct buf out;
    struct batch batch;
    struct resp_parser parser;
};

static inline int setup(void **state) {
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)64 << 10};
    assert_int_equal(config_init(&f->config), ST_OK);
    assert_int_equal(pages_create(&options, &f->pages), ST_OK);
    struct type_env env = {.pages = f->pages,
                           .hash_packed_entries_max = 8,
                           .hash_packed_element_max = 64,
                           .list_packed_bytes_max = 64,
                           .list_packed_entries_max = 8,
                           .set_int_entries_max = 8,
                           .set_packed_entries_max = 8,
                           .set_packed_element_max = 64,
                           .zset_packed_entries_max = 8,
                           .zset_packed_element_max = 64};
    assert_int_equal(dbset_create(&env, 16, &f->dbs), ST_OK);
    assert_int_equal(context_init(&f->cx, &f->config, f->dbs, &f->metrics), ST_OK);
    client_init(&f->client, &f->cx.clients, &f->out, f->cx.now_ms);
    *state = f;
    return 0;
}

static inline int teardown(void **state) {
    struct fixture *f = *state;
    client_deinit(&f->client, &f->cx.clients);
    buf_deinit(&f->out);
    context_deinit(&f->cx);
    dbset_destroy(f->dbs);
    pages_destroy(f->pages);
    config_deinit(&f->config);
    resp_args_deinit(&f->batch.args);
    free(f);
    for (int tag = 0; tag < ACCOUNT_TAGS; tag++) {
        assert_int_equal(account_bytes((enum account_tag)tag), 0);
    }
    return 0;
}

/* Run one inline command; its reply, good until the next one. */
static inline const char *run(struct fixture *f, const char *line) {
    static char input[LINE_MAX_LEN];
    struct resp_result result;
    struct resp_limits limits = RESP_LIMITS_DEFAULT;
    int len = snprintf(input, sizeof(input), "%s\r\n", line);
    assert_true(len > 0 && len < LINE_MAX_LEN);
    assert_int_equal(resp_parse(&f->parser, input, (size_t)len, &limits, &f->batch.args, &result),
                     RESP_COMMAND);
    f->batch.items[f->batch.len++] =
        (struct batch_item){.client = &f->client, .first = result.first, .argc = result.argc};
    buf_clear(&f->out);
    dispatch_batch(&f->cx, &f->batch);
    buf_append_char(&f->out, '\0');
    return f->out.ptr;
}

/* The replies to several commands for each key, as one text; every invariant is verified. Each line
 * has a %s where the key goes. The caller frees it. */
static inline char *dump_keys(struct fixture *f, const char *const *keys, size_t key_count,
                              const char *const *lines, size_t line_count) {
    struct buf text = {0};
    for (size_t i = 0; i < key_count * line_count; i++) {
        char line[64];
        snprintf(line, sizeof(line), lines[i % line_count], keys[i / line_count]);
        buf_append_cstr(&text, run(f, line));
    }
    for (size_t i = 0; i < f->dbs->count; i++) {
        db_check(f->dbs->dbs[i]);
    }
    buf_append_char(&text, '\0');
    assert_false(text.failed);
    return text.ptr;
}

/* Drop everything, down to what is freed in the background. */
static inline void flush_all(struct fixture *f) {
    run(f, "FLUSHALL");
    while (reaper_run(f->dbs, SIZE_MAX)) {
    }
}

/* Run the line with the first, second, ... allocation failing, on data that `fill` makes and `dump`
 * shows, until it succeeds. */
static inline void assert_all_or_nothing(struct fixture *f, const char *line,
                                         void (*fill)(struct fixture *f),
                                         char *(*dump)(struct fixture *f)) {
    fill(f);
    char *before = dump(f);
    bool done = false;
    for (size_t n = 1; !done; n++) {
        assert_true(n < FAILURES_MAX);
        account_fail_after(n);
        const char *reply = run(f, line);
        account_fail_after(0);
        done = reply[0] != '-';
        if (!done) {
            assert_non_null(strstr(reply, "OOM out of memory"));
            char *after = dump(f);
            assert_string_equal(after, before);
            free(after);
        }
    }
    free(before);
    free(dump(f));
}

/* Many members in one command: those that were added stay, and the error tells how many. */
static inline void assert_members_before_failure_stay(struct fixture *f, const char *line,
                                                      size_t members, const char *count_line,
                                                      void (*fill)(struct fixture *f),
                                                      char *(*dump)(struct fixture *f)) {
    char all_added[32], expected[32];
    snprintf(all_added, sizeof(all_added), ":%zu\r\n", members);
    for (size_t n = 1;; n++) {
        assert_true(n < FAILURES_MAX);
        fill(f);
        account_fail_after(n);
        const char *reply = run(f, line);
        account_fail_after(0);
        size_t set = 0, all = 0;
        if (reply[0] == ':') {
            assert_string_equal(reply, all_added);
            break;
        }
        if (sscanf(reply, "-OOM out of memory, %zu of %zu members were set", &set, &all) == 2) {
            assert_int_equal(all, members);
        } else {
            assert_string_equal(reply, "-OOM out of memory, nothing was changed\r\n");
        }
        snprintf(expected, sizeof(expected), ":%zu\r\n", set);
        assert_string_equal(run(f, count_line), expected);
        assert_string_equal(run(f, "EXISTS new"), set > 0 ? ":1\r\n" : ":0\r\n");
        free(dump(f));
    }
}

#endif
