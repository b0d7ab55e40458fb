/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of commands from several clients, with real databases and no socket. */
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

enum { CLIENTS = 3, LINES_MAX = 4096 };

struct fixture {
    struct config config;
    struct metrics metrics;
    struct pages *pages;
    struct dbset *dbs;
    struct cmd_context cx;
    struct client clients[CLIENTS];
    struct buf out[CLIENTS];
    struct batch batch;
    struct resp_parser parser;
    char *lines[LINES_MAX]; /* the input that arguments are views into */
    size_t lines_len;
    unsigned closed[CLIENTS], flushed;
    bool forgets; /* a closed client is forgotten by the batch, as the server does */
};

static void on_close(void *server, struct client *c) {
    struct fixture *f = server;
    f->closed[c - f->clients]++;
    if (f->forgets) {
        batch_forget(&f->batch, c);
    }
}

static void on_flush(void *server, struct client *c) {
    struct fixture *f = server;
    f->flushed++;
    buf_clear(c->out);
}

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)64 << 10};
    assert_int_equal(config_init(&f->config), ST_OK);
    assert_int_equal(pages_create(&options, &f->pages), ST_OK);
    struct type_env env = {
        .pages = f->pages, .hash_packed_entries_max = 8, .hash_packed_element_max = 64};
    assert_int_equal(dbset_create(&env, 16, &f->dbs), ST_OK);
    assert_int_equal(context_init(&f->cx, &f->config, f->dbs, &f->metrics), ST_OK);
    f->cx.hooks = (struct server_hooks){.server = f, .close = on_close, .flush = on_flush};
    for (size_t i = 0; i < CLIENTS; i++) {
        client_init(&f->clients[i], &f->cx.clients, &f->out[i], f->cx.now_ms);
    }
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < CLIENTS; i++) {
        client_deinit(&f->clients[i], &f->cx.clients);
        buf_deinit(&f->out[i]);
    }
    for (size_t i = 0; i < f->lines_len; i++) {
        free(f->lines[i]);
    }
    context_deinit(&f->cx);
    for (size_t i = 0; i < f->dbs->count; i++) {
        db_check(f->dbs->dbs[i]);
    }
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

/* Put one line, an inline command, into the batch. */
static void add(struct fixture *f, size_t client, const char *line) {
    struct resp_result result;
    struct resp_limits limits = RESP_LIMITS_DEFAULT;
    size_t len = strlen(line);
    char *input = malloc(len + 3);
    assert_non_null(input);
    assert_true(f->lines_len < LINES_MAX);
    snprintf(input, len + 3, "%s\r\n", line);
    f->lines[f->lines_len++] = input;
    assert_int_equal(resp_parse(&f->parser, input, len + 2, &limits, &f->batch.args, &result),
                     RESP_COMMAND);
    assert_false(batch_is_full(&f->batch));
    f->batch.items[f->batch.len++] = (struct batch_item){
        .client = &f->clients[client], .first = result.first, .argc = result.argc};
}

static void dispatch(struct fixture *f) {
    dispatch_batch(&f->cx, &f->batch);
    assert_int_equal(f->batch.len, 0);
    assert_int_equal(f->batch.args.len, 0);
    for (size_t i = 0; i < f->lines_len; i++) {
        free(f->lines[i]);
    }
    f->lines_len = 0;
}

static void expect(struct fixture *f, size_t client, const char *replies) {
    struct buf *out = &f->out[client];
    buf_append_char(out, '\0');
    assert_string_equal(out->ptr, replies);
    buf_clear(out);
}

/* One command alone. */
static void run(struct fixture *f, const char *line, const char *reply) {
    add(f, 0, line);
    dispatch(f);
    expect(f, 0, reply);
}

static const struct command_stats *stats_of(struct fixture *f, const char *name) {
    return &f->cx.command_stats[table_find_full(bytes_from_cstr(name))->id];
}

/* ---- order --------------------------------------------------------------------------------- */

static void commands_run_in_the_order_they_came(void **state) {
    struct fixture *f = *state;
    add(f, 0, "SET k 1");
    add(f, 1, "INCR k");
    add(f, 2, "GET k");
    add(f, 0, "INCR k");
    add(f, 1, "GET k");
    add(f, 2, "DEL k");
    add(f, 0, "GET k");
    dispatch(f);
    expect(f, 0, "+OK\r\n:3\r\n$-1\r\n");
    expect(f, 1, ":2\r\n$1\r\n3\r\n");
    expect(f, 2, "$1\r\n2\r\n:1\r\n");
}

static void a_full_batch_runs_whole(void **state) {
    struct fixture *f = *state;
    struct buf expected = {0};
    for (int i = 1; i <= DISPATCH_BATCH_MAX; i++) {
        add(f, 1, "INCR n");
        buf_printf(&expected, ":%d\r\n", i);
    }
    assert_true(batch_is_full(&f->batch));
    dispatch(f);
    buf_append_char(&expected, '\0');
    expect(f, 1, expected.ptr);
    buf_deinit(&expected);
    assert_int_equal(stats_of(f, "incr")->calls, DISPATCH_BATCH_MAX);
    assert_int_equal(f->metrics.total_commands_processed, DISPATCH_BATCH_MAX);
}

static void an_empty_batch_is_nothing(void **state) {
    struct fixture *f = *state;
    dispatch(f);
    assert_int_equal(f->metrics.total_commands_processed, 0);
}

/* The stages looked at keys and fields that earlier commands of the batch move, convert, delete. */
static void earlier_commands_may_move_everything(void **state) {
    struct fixture *f = *state;
    run(f, "HSET h a 1 b 2", ":2\r\n");
    add(f, 0, "HSET h c 3 d 4 e 5 f 6 g 7 h 8 i 9 j 10"); /* becomes a table */
    add(f, 0, "HGET h a");
    add(f, 0, "RENAME h g");
    add(f, 0, "HGET h a");
    add(f, 0, "HGET g j");
    add(f, 0, "DEL g");
    add(f, 0, "SET g text");
    add(f, 0, "HGET g a");
    add(f, 0, "FLUSHALL");
    add(f, 0, "GET g");
    dispatch(f);
    expect(f, 0,
           ":8\r\n$1\r\n1\r\n+OK\r\n$-1\r\n$2\r\n10\r\n:1\r\n+OK\r\n"
           "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n+OK\r\n$-1\r\n");
}

static void selecting_a_database_counts_at_once(void **state) {
    struct fixture *f = *state;
    add(f, 0, "SET k zero");
    add(f, 0, "SELECT 3");
    add(f, 0, "GET k");
    add(f, 0, "SET k three");
    add(f, 1, "GET k");
    add(f, 0, "SWAPDB 0 3");
    add(f, 1, "GET k");
    add(f, 0, "GET k");
    dispatch(f);
    expect(f, 0, "+OK\r\n+OK\r\n$-1\r\n+OK\r\n+OK\r\n$4\r\nzero\r\n");
    expect(f, 1, "$4\r\nzero\r\n$5\r\nthree\r\n");
}

static void a_subcommands_key_is_hashed(void **state) {
    struct fixture *f = *state;
    add(f, 0, "SET key 12");
    add(f, 0, "OBJECT ENCODING key");
    add(f, 0, "OBJECT REFCOUNT key");
    dispatch(f);
    expect(f, 0, "+OK\r\n$3\r\nint\r\n:1\r\n");
}

static void replies_do_not_depend_on_prefetching(void **state) {
    struct fixture *f = *state;
    run(f, "CONFIG SET prefetch no", "+OK\r\n");
    assert_false(f->config.prefetch);
    earlier_commands_may_move_everything(state);
    commands_run_in_the_order_they_came(state);
    run(f, "CONFIG SET prefetch yes", "+OK\r\n");
    assert_true(f->config.prefetch);
    commands_run_in_the_order_they_came(state);
}

/* ---- clients that go ----------------------------------------------------------------------- */

static void a_forgotten_clients_commands_are_dropped(void **state) {
    struct fixture *f = *state;
    add(f, 0, "SET a 1");
    add(f, 1, "SET a 2");
    add(f, 1, "SET b 2");
    add(f, 0, "GET a");
    add(f, 0, "GET b");
    batch_forget(&f->batch, &f->clients[1]);
    dispatch(f);
    expect(f, 0, "+OK\r\n$1\r\n1\r\n$-1\r\n");
    expect(f, 1, "");
}

static void a_killed_clients_commands_are_dropped(void **state) {
    struct fixture *f = *state;
    for (int forgets = 0; forgets < 2; forgets++) {
        f->forgets = forgets;
        f->clients[1].flags = 0;
        add(f, 1, "SET a 1");
        add(f, 0, "CLIENT KILL ID 2");
        add(f, 1, "SET a 2");
        add(f, 0, "GET a");
        dispatch(f);
        expect(f, 0, ":1\r\n$1\r\n1\r\n");
        expect(f, 1, "+OK\r\n");
        assert_true(f->closed[1] > 0 || (f->clients[1].flags & CLIENT_CLOSE_NOW));
        assert_int_equal(f->closed[0], 0);
    }
}

static void nothing_runs_after_quit(void **state) {
    struct fixture *f = *state;
    add(f, 0, "SET a 1");
    add(f, 0, "QUIT");
    add(f, 0, "SET a 2");
    add(f, 1, "GET a");
    add(f, 0, "PING");
    dispatch(f);
    expect(f, 0, "+OK\r\n+OK\r\n");
    expect(f, 1, "$1\r\n1\r\n");
    assert_int_equal(f->closed[0], 1);
}

static void a_reply_that_did_not_fit_closes_the_client(void **state) {
    struct fixture *f = *state;
    static const char *const lines[] = {"PING", "NOSUCH", "GET", "CLIENT NOSUCH"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        char nothing[8] = "";
        f->out[0] = (struct buf){.ptr = nothing, .len = SIZE_MAX / 2, .cap = SIZE_MAX / 2};
        f->clients[0].flags = 0;
        add(f, 0, lines[i]);
        dispatch(f);
        f->out[0] = (struct buf){0};
        assert_true(f->clients[0].flags & CLIENT_CLOSE_NOW);
        assert_int_equal(f->closed[0], i + 1);
    }
    f->clients[0].flags = 0;
    run(f, "PING", "+PONG\r\n");
}

static void large_replies_are_sent_on_the_way(void **state) {
    struct fixture *f = *state;
    run(f, "SETRANGE big 300000 x", ":300001\r\n");
    add(f, 0, "GET big");
    add(f, 0, "PING");
    add(f, 0, "GET big");
    add(f, 1, "PING");
    add(f, 0, "PING");
    dispatch(f);
    assert_int_equal(f->flushed, 2);
    expect(f, 0, "+PONG\r\n");
    expect(f, 1, "+PONG\r\n");
}

/* ---- CLIENT REPLY -------------------------------------------------------------------------- */

static void reply_off_drops_every_reply(void **state) {
    struct fixture *f = *state;
    add(f, 0, "PING");
    add(f, 0, "CLIENT REPLY OFF");
    add(f, 0, "SET a 1");
    add(f, 0, "NOSUCH");
    add(f, 0, "GET");
    add(f, 0, "CLIENT REPLY SKIP");
    add(f, 0, "CLIENT REPLY");
    add(f, 0, "CLIENT REPLY MAYBE");
    add(f, 0, "CLIENT NOSUCH");
    add(f, 1, "GET a");
    add(f, 0, "PING");
    add(f, 0, "CLIENT REPLY ON");
    add(f, 0, "GET a");
    dispatch(f);
    expect(f, 0, "+PONG\r\n+OK\r\n$1\r\n1\r\n");
    expect(f, 1, "$1\r\n1\r\n");
}

static void reply_skip_drops_the_next_one(void **state) {
    struct fixture *f = *state;
    add(f, 0, "CLIENT REPLY SKIP");
    add(f, 0, "SET a 1");
    add(f, 0, "GET a");
    add(f, 0, "CLIENT REPLY SKIP");
    add(f, 0, "NOSUCH");
    add(f, 0, "PING");
    add(f, 0, "CLIENT REPLY SKIP");
    add(f, 0, "CLIENT REPLY SKIP");
    add(f, 0, "PING");
    add(f, 0, "PING");
    add(f, 0, "CLIENT REPLY SKIP");
    add(f, 0, "CLIENT REPLY MAYBE");
    add(f, 0, "CLIENT REPLY SKIP");
    add(f, 0, "CLIENT REPLY ON");
    add(f, 0, "ECHO end");
    dispatch(f);
    expect(f, 0, "$1\r\n1\r\n+PONG\r\n+PONG\r\n+OK\r\n$3\r\nend\r\n");
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void set_option(struct fixture *f, const char *name, const char *value) {
    struct bytes args[] = {bytes_from_cstr(name), bytes_from_cstr(value)};
    struct buf error = {0};
    assert_int_equal(config_set(&f->config, args, 2, &error), ST_OK);
    buf_deinit(&error);
}

static void a_password_is_asked_for(void **state) {
    struct fixture *f = *state;
    static const char noauth[] = "-NOAUTH Authentication required.\r\n";
    set_option(f, "requirepass", "secret");
    run(f, "GET a", noauth);
    run(f, "PING", noauth);
    run(f, "COMMAND COUNT", noauth);
    run(f, "GET", "-ERR wrong number of arguments for 'get' command\r\n");
    run(f, "NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: \r\n");
    run(f, "AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    assert_int_equal(stats_of(f, "get")->rejected, 2);
    assert_int_equal(stats_of(f, "get")->calls, 0);
    assert_int_equal(stats_of(f, "auth")->failed, 1);
    add(f, 0, "SET a 1");
    add(f, 0, "AUTH secret");
    add(f, 0, "SET a 2");
    add(f, 1, "GET a");
    dispatch(f);
    expect(f, 0, "-NOAUTH Authentication required.\r\n+OK\r\n+OK\r\n");
    expect(f, 1, noauth);
    set_option(f, "requirepass", "");
    add(f, 1, "GET a");
    dispatch(f);
    expect(f, 1, "$1\r\n2\r\n");
}

static void maxmemory_refuses_what_may_grow(void **state) {
    struct fixture *f = *state;
    static const char oom[] = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    run(f, "SET a 1", "+OK\r\n");
    f->config.maxmemory = 1000;
    f->cx.used_memory_bytes = 1000;
    run(f, "SET a 2", "+OK\r\n");
    f->cx.used_memory_bytes = 1001;
    run(f, "SET a 3", oom);
    run(f, "HSET h f v", oom);
    run(f, "APPEND a x", oom);
    run(f, "GET a", "$1\r\n2\r\n");
    run(f, "EXPIRE a 100", ":1\r\n");
    run(f, "DEL a", ":1\r\n");
    assert_int_equal(stats_of(f, "set")->rejected, 1);
    assert_int_equal(f->metrics.total_error_replies, 3);
    f->config.maxmemory = 0;
    run(f, "SET a 3", "+OK\r\n");
}

static void what_is_no_command_is_refused(void **state) {
    struct fixture *f = *state;
    run(f, "nosuch a b", "-ERR unknown command 'nosuch', with args beginning with: 'a' 'b' \r\n");
    run(f, "get a b", "-ERR wrong number of arguments for 'get' command\r\n");
    run(f, "client", "-ERR wrong number of arguments for 'client' command\r\n");
    run(f, "client nosuch", "-ERR unknown subcommand 'nosuch'. Try CLIENT HELP.\r\n");
    run(f, "client kill", "-ERR wrong number of arguments for 'client|kill' command\r\n");
    run(f, "\"\"", "-ERR unknown command '', with args beginning with: \r\n");
    assert_int_equal(f->metrics.total_error_replies, 6);
    assert_int_equal(f->metrics.total_commands_processed, 0);
    assert_int_equal(f->cx.errors.count, 1);
    assert_string_equal(f->cx.errors.rows[0].prefix, "ERR");
    assert_int_equal(f->cx.errors.rows[0].replies, 6);
    assert_int_equal(stats_of(f, "get")->rejected, 1);
    assert_int_equal(stats_of(f, "client|kill")->rejected, 1);
}

static void failures_are_counted_by_prefix(void **state) {
    struct fixture *f = *state;
    add(f, 0, "SET a text");
    add(f, 0, "HGET a f");
    add(f, 0, "INCR a");
    add(f, 0, "INCR a");
    dispatch(f);
    assert_int_equal(stats_of(f, "set")->failed, 0);
    assert_int_equal(stats_of(f, "hget")->failed, 1);
    assert_int_equal(stats_of(f, "incr")->failed, 2);
    assert_int_equal(f->cx.errors.count, 2);
    assert_string_equal(f->cx.errors.rows[0].prefix, "ERR");
    assert_int_equal(f->cx.errors.rows[0].replies, 2);
    assert_string_equal(f->cx.errors.rows[1].prefix, "WRONGTYPE");
    assert_int_equal(f->cx.command_latency[table_find(BYTES_LIT("incr"))->id]->count, 2);
    assert_ptr_equal(f->clients[0].last_row, table_find(BYTES_LIT("incr")));
}

/* ---- memory -------------------------------------------------------------------------------- */

#ifndef GC_ARENA_GUARDED
/* One command may leave many dead records behind: evacuation keeps up with them. */
static void commands_of_many_keys_leave_the_database_lean(void **state) {
    struct fixture *f = *state;
    struct rng rng;
    char line[9000];
    rng_init(&rng, 4);
    for (int i = 0; i < 1500; i++) {
        int len = snprintf(line, sizeof(line), "MSET");
        for (int k = 0; k < 50; k++) {
            len += snprintf(line + len, sizeof(line) - (size_t)len, " %d %0*d",
                            (int)rng_below(&rng, 2000), 1 + (int)rng_below(&rng, 120), 0);
        }
        run(f, line, "+OK\r\n");
    }
    struct db_memory memory;
    db_get_memory(f->dbs->dbs[0], &memory);
    print_message("live %zu reserved %zu\n", memory.arena.live_bytes, memory.arena.reserved_bytes);
    assert_true(memory.arena.reserved_bytes <=
                memory.arena.live_bytes * 5 / 4 + ((size_t)128 << 10));
}
#endif

static void clients_take_turns(void **state) {
    (void)state;
    struct client_registry r = {0};
    struct client c[4];
    assert_null(client_take_turn(&r));
    for (size_t i = 0; i < 3; i++) {
        client_init(&c[i], &r, NULL, 0);
    }
    assert_ptr_equal(client_take_turn(&r), &c[0]);
    client_deinit(&c[1], &r); /* whose turn it would have been */
    assert_ptr_equal(client_take_turn(&r), &c[2]);
    assert_ptr_equal(client_take_turn(&r), &c[0]);
    assert_ptr_equal(client_take_turn(&r), &c[2]);
    client_init(&c[3], &r, NULL, 0);
    assert_ptr_equal(client_take_turn(&r), &c[0]);
    client_deinit(&c[0], &r);
    client_deinit(&c[2], &r);
    assert_ptr_equal(client_take_turn(&r), &c[3]);
    client_deinit(&c[3], &r);
    assert_null(client_take_turn(&r));
}

static void take_turn(struct client_registry *r, size_t bytes) {
    assert_non_null(client_take_turn(r));
    client_note_use(r, &(struct client_use){bytes, bytes + 1, bytes + 2});
}

static void assert_use(const struct client_registry *r, size_t sum, size_t max) {
    assert_int_equal(r->use.memory_bytes, sum);
    assert_int_equal(r->use.query_max_bytes, max + 1);
    assert_int_equal(r->use.output_max_bytes, max + 2);
}

/* INFO tells what all clients held without asking all of them at once. */
static void a_round_of_turns_adds_up(void **state) {
    (void)state;
    struct client_registry r = {0};
    struct client c[3];
    for (size_t i = 0; i < ARRAY_LEN(c); i++) {
        client_init(&c[i], &r, NULL, 0);
    }
    take_turn(&r, 10);
    take_turn(&r, 50);
    assert_int_equal(r.use.memory_bytes, 0);
    take_turn(&r, 20);
    assert_use(&r, 80, 50);
    take_turn(&r, 1);
    take_turn(&r, 2);
    assert_use(&r, 80, 50);
    client_deinit(&c[2], &r); /* the last one of the round */
    assert_use(&r, 3, 2);
    take_turn(&r, 4);
    take_turn(&r, 5);
    assert_use(&r, 9, 5);
    client_deinit(&c[0], &r);
    client_deinit(&c[1], &r);
}

/* ---- batches against single commands ------------------------------------------------------- */

static void random_line(struct rng *rng, char *line, size_t size) {
    static const char *const forms[] = {
        "SET k%d %d",
        "GET k%d",
        "INCR k%d",
        "APPEND k%d %d",
        "DEL k%d",
        "HSET h%d f%d %d",
        "HSET h%d f%d %d",
        "HGET h%d f%d",
        "HGET h%d f%d",
        "HDEL h%d f%d",
        "HLEN h%d",
        "RENAME h%d h%d",
        "RENAME k%d k%d",
        "COPY h%d h%d",
        "EXISTS k%d h%d k%d",
        "MSET k%d %d k%d %d",
        "MGET k%d k%d h%d",
        "HMGET h%d f%d f%d f%d",
        "DBSIZE",
        "TYPE h%d",
        "SELECT %d",
        "MOVE h%d 1",
        "OBJECT ENCODING h%d",
        "HGET k%d f%d",
        "ZADD z%d %d m%d",
        "ZADD z%d nx ch %d m%d",
        "ZADD z%d x m%d", /* no score */
        "ZADD z%d",
        "ZADD h%d %d m%d",
        "ZINCRBY z%d %d m%d",
        "ZSCORE z%d m%d",
        "ZSCORE h%d m%d",
        "ZRANK z%d m%d",
        "ZREM z%d m%d",
        "ZRANGEBYSCORE z%d (%d +inf LIMIT 0 3",
        "ZRANGEBYSCORE z%d ( %d",
        "ZRANGEBYSCORE z%d -%d 1e400",
        "ZRANGEBYSCORE h%d %d 9",
        "ZCOUNT z%d -inf %d",
        "ZREMRANGEBYSCORE z%d %d (%d",
        "RENAME z%d h%d",
        "SADD s%d m%d",
        "SMOVE s%d s%d m%d",
        "SMOVE z%d s%d m%d",
        "SISMEMBER s%d m%d",
    };
    const char *form = forms[rng_below(rng, ARRAY_LEN(forms))];
    int a = (int)rng_below(rng, 12), b = (int)rng_below(rng, 12), c = (int)rng_below(rng, 12);
    if (strncmp(form, "SELECT", 6) == 0) {
        a %= 2;
    }
    if (strchr(form, 'm') != NULL && strchr(form, 'z') != NULL) {
        c = (int)rng_below(rng, 30);
    }
    if (form[0] == 'H' && strchr(form, 'f') != NULL) {
        b = (int)rng_below(rng, 30);
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(line, size, form, a, b, c, a * 7);
#pragma GCC diagnostic pop
}

static void batches_answer_as_single_commands_do(void **state) {
    struct fixture *batched = *state;
    void *other;
    setup(&other);
    struct fixture *single = other;
    struct rng rng;
    rng_init(&rng, 99);
    for (int round = 0; round < 600; round++) {
        size_t count = 1 + rng_below(&rng, DISPATCH_BATCH_MAX);
        for (size_t i = 0; i < count; i++) {
            char line[100];
            size_t client = rng_below(&rng, CLIENTS);
            random_line(&rng, line, sizeof(line));
            add(batched, client, line);
            add(single, client, line);
            dispatch(single);
        }
        dispatch(batched);
        for (size_t i = 0; i < CLIENTS; i++) {
            assert_true(bytes_equal(buf_bytes(&batched->out[i]), buf_bytes(&single->out[i])));
            buf_clear(&batched->out[i]);
            buf_clear(&single->out[i]);
        }
    }
    /* the accounts reach zero only once both are gone */
    for (size_t i = 0; i < single->dbs->count; i++) {
        dbset_flush(batched->dbs, i);
        db_check(single->dbs->dbs[i]);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        client_deinit(&single->clients[i], &single->cx.clients);
        buf_deinit(&single->out[i]);
    }
    context_deinit(&single->cx);
    dbset_destroy(single->dbs);
    pages_destroy(single->pages);
    config_deinit(&single->config);
    resp_args_deinit(&single->batch.args);
    free(single);
}

int main(void) {
    hash_setup_seed(12345);
    table_setup();
    ticks_setup();
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(commands_run_in_the_order_they_came),
        TEST(a_full_batch_runs_whole),
        TEST(an_empty_batch_is_nothing),
        TEST(earlier_commands_may_move_everything),
        TEST(replies_do_not_depend_on_prefetching),
        TEST(selecting_a_database_counts_at_once),
        TEST(a_subcommands_key_is_hashed),
        TEST(a_forgotten_clients_commands_are_dropped),
        TEST(a_killed_clients_commands_are_dropped),
        TEST(nothing_runs_after_quit),
        TEST(a_reply_that_did_not_fit_closes_the_client),
        TEST(large_replies_are_sent_on_the_way),
        TEST(reply_off_drops_every_reply),
        TEST(reply_skip_drops_the_next_one),
        TEST(a_password_is_asked_for),
        TEST(maxmemory_refuses_what_may_grow),
        cmocka_unit_test(clients_take_turns),
        cmocka_unit_test(a_round_of_turns_adds_up),
        TEST(what_is_no_command_is_refused),
        TEST(failures_are_counted_by_prefix),
#ifndef GC_ARENA_GUARDED
        TEST(commands_of_many_keys_leave_the_database_lean),
#endif
        TEST(batches_answer_as_single_commands_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
