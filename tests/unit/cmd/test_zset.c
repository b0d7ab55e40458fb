/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on sorted sets while memory fails: the first allocation of a command, then the second,
 * and so on until it succeeds. After each failure the data are as before. What the commands answer
 * otherwise is tested against a server: tests/integration/test_zset.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)64 << 10};
    assert_int_equal(config_init(&f->config), ST_OK);
    assert_int_equal(pages_create(&options, &f->pages), ST_OK);
    struct type_env env = {.pages = f->pages,
                           .hash_packed_entries_max = 8,
                           .hash_packed_element_max = 64,
                           .zset_packed_entries_max = 8,
                           .zset_packed_element_max = 64};
    assert_int_equal(dbset_create(&env, 16, &f->dbs), ST_OK);
    assert_int_equal(context_init(&f->cx, &f->config, f->dbs, &f->metrics), ST_OK);
    client_init(&f->client, &f->cx.clients, &f->out, f->cx.now_ms);
    *state = f;
    return 0;
}

static int teardown(void **state) {
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
static const char *run(struct fixture *f, const char *line) {
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

/* All that the keys of these tests hold. */
static char *dump(struct fixture *f) {
    static const char *const keys[] = {"small", "large", "other", "d", "new"};
    struct buf text = {0};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char line[64];
        snprintf(line, sizeof(line), "ZRANGE %s 0 -1 WITHSCORES", keys[i]);
        buf_append_cstr(&text, run(f, line));
        snprintf(line, sizeof(line), "TYPE %s", keys[i]);
        buf_append_cstr(&text, run(f, line));
        snprintf(line, sizeof(line), "EXPIRETIME %s", keys[i]);
        buf_append_cstr(&text, run(f, line));
    }
    for (size_t i = 0; i < f->dbs->count; i++) {
        db_check(f->dbs->dbs[i]);
    }
    buf_append_char(&text, '\0');
    assert_false(text.failed);
    return text.ptr;
}

static void fill(struct fixture *f) {
    run(f, "FLUSHALL");
    while (reaper_run(f->dbs, SIZE_MAX)) {
    }
    run(f, "ZADD small 1 a 2 b 3 c 4 d 5 e 6 f 7 g 8 h");
    for (int i = 0; i < 300; i++) {
        char line[64];
        snprintf(line, sizeof(line), "ZADD %s %d.5 m%d", i % 3 ? "large" : "other", i % 7, i / 2);
        run(f, line);
    }
    run(f, "SET d text EXAT 33177117420");
}

static const char *const atomic_lines[] = {
    "ZADD small 9 i",
    "ZADD small 2.5 a",
    "ZADD new 1 a",
    "ZADD large 1 new-member",
    "ZADD large 100000.25 m2",
    "ZADD large CH XX 100000.25 m2",
    "ZINCRBY large 0.125 m4",
    "ZINCRBY new 1 a",
    "ZADD new INCR 1 a",
    "ZADD small 1 a-member-longer-than-what-a-packed-sorted-set-holds-and-then-some-more-bytes",
    "ZUNIONSTORE d 2 large other",
    "ZUNIONSTORE new 2 large other",
    "ZUNIONSTORE large 2 large other WEIGHTS 2 3",
    "ZINTERSTORE d 2 large other",
    "ZINTERSTORE new 1 small",
    "ZDIFFSTORE other 2 other small",
    "ZRANGESTORE d large 0 -1",
    "ZRANGESTORE new small 0 -1",
    "ZRANGESTORE large large 3 5",
    "ZUNION 2 large other",
    "ZINTER 2 large other WITHSCORES",
    "ZINTERCARD 2 large other",
};

static void a_command_without_memory_changes_nothing(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(atomic_lines); i++) {
        size_t n = 0;
        fill(f);
        char *before = dump(f);
        bool done = false;
        while (!done) {
            assert_true(++n < FAILURES_MAX);
            account_fail_after(n);
            const char *reply = run(f, atomic_lines[i]);
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
        char *after = dump(f);
        free(after);
    }
}

/* Many members in one command: those that were added stay, and the error tells how many. */
static void members_added_before_memory_ran_out_stay(void **state) {
    struct fixture *f = *state;
    char line[LINE_MAX_LEN];
    size_t len = (size_t)snprintf(line, sizeof(line), "ZADD new");
    enum { MEMBERS = 200 };
    for (int i = 0; i < MEMBERS; i++) {
        len += (size_t)snprintf(line + len, sizeof(line) - len, " %d member:%d", i * 7 % 50, i);
    }
    for (size_t n = 1;; n++) {
        assert_true(n < FAILURES_MAX);
        fill(f);
        account_fail_after(n);
        const char *reply = run(f, line);
        account_fail_after(0);
        size_t set = 0, all = 0;
        if (reply[0] == ':') {
            assert_string_equal(reply, ":200\r\n");
            break;
        }
        if (sscanf(reply, "-OOM out of memory, %zu of %zu members were set", &set, &all) == 2) {
            assert_int_equal(all, MEMBERS);
        } else {
            assert_string_equal(reply, "-OOM out of memory, nothing was changed\r\n");
        }
        char expected[32];
        snprintf(expected, sizeof(expected), ":%zu\r\n", set);
        assert_string_equal(run(f, "ZCARD new"), expected);
        assert_string_equal(run(f, "EXISTS new"), set > 0 ? ":1\r\n" : ":0\r\n");
        free(dump(f));
    }
}

/* ZRANDMEMBER has a way that needs no memory. */
static void random_members_need_no_memory(void **state) {
    struct fixture *f = *state;
    fill(f);
    account_fail_after(1);
    const char *reply = run(f, "ZRANDMEMBER large 10");
    account_fail_after(0);
    assert_int_equal(strncmp(reply, "*10\r\n", 5), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_without_memory_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(members_added_before_memory_ran_out_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(random_members_need_no_memory, setup, teardown),
    };
    hash_setup_seed(1);
    ticks_setup();
    table_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
