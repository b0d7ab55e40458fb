/* SPDX-License-Identifier: BSD-3-Clause */
/* CONFIG GET and CONFIG SET; the error texts are those redis-server 7.0 gave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "config/config.h"

/* ---- helpers ------------------------------------------------------------------------------- */

#define ARGS_MAX 16

/* Words to views, NULL at their end. */
static size_t views(const char *const *words, struct bytes *out) {
    size_t count = 0;
    for (; words[count] != NULL; count++) {
        assert_in_range(count, 0, ARGS_MAX - 1);
        out[count] = bytes_from_cstr(words[count]);
    }
    return count;
}

/* "" when it was set, else the error text; the buffer is the caller's. */
static void set(struct config *c, struct buf *error, const char *const *words) {
    struct bytes args[ARGS_MAX];
    size_t count = views(words, args);
    buf_clear(error);
    enum status st = config_set(c, args, count, error);
    assert_int_equal(st == ST_OK, error->len == 0);
}

#define SET(c, error, ...) set(c, error, (const char *const[]){__VA_ARGS__, NULL})

static void emit_pair(void *ctx, struct bytes name, struct bytes value) {
    struct buf *out = ctx;
    buf_append(out, name.ptr, name.len);
    buf_append_char(out, '=');
    buf_append(out, value.ptr, value.len);
    buf_append_char(out, ';');
}

static void assert_text(const struct buf *b, const char *want) {
    if (!bytes_equal(buf_bytes(b), bytes_from_cstr(want))) {
        fail_msg("got  '%.*s'\nwant '%s'", (int)b->len, b->ptr, want);
    }
}

static void assert_get(const struct config *c, const char *const *patterns, size_t pairs,
                       const char *want) {
    struct bytes args[ARGS_MAX];
    size_t count = views(patterns, args);
    struct buf out = {0};
    assert_int_equal(config_get(c, args, count, emit_pair, &out), pairs);
    assert_int_equal(config_get(c, args, count, NULL, NULL), pairs);
    assert_text(&out, want);
    buf_deinit(&out);
}

#define GET(c, pairs, want, ...)                                                                   \
    assert_get(c, (const char *const[]){__VA_ARGS__, NULL}, pairs, want)

static int make_config(void **state) {
    struct config *c = malloc(sizeof(*c));
    *state = c;
    return c != NULL && config_init(c) == ST_OK ? 0 : -1;
}

static int drop_config(void **state) {
    config_deinit(*state);
    free(*state);
    return 0;
}

/* A hook that notes its calls and can be told to refuse. */
struct probe {
    size_t calls;
    bool refuse;
    size_t seen_maxclients;
};

static bool note(void *ctx, const struct config *c, const char **why) {
    struct probe *p = ctx;
    p->calls++;
    p->seen_maxclients = c->maxclients;
    if (p->refuse) {
        *why = "no such luck";
    }
    return !p->refuse;
}

/* ---- get ----------------------------------------------------------------------------------- */

static void get_prints_values_as_redis(void **state) {
    struct config *c = *state;
    GET(c, 1, "proto-max-bulk-len=536870912;", "proto-max-bulk-len");
    GET(c, 1, "bind=127.0.0.1 -::1;", "bind");
    GET(c, 1, "client-output-buffer-limit=normal 0 0 0;", "client-output-buffer-limit");
    GET(c, 1, "loglevel=notice;", "loglevel");
    GET(c, 1, "save=;", "save");
    GET(c, 1, "unixsocketperm=0;", "unixsocketperm");
    GET(c, 0, "", "nope");
    GET(c, 0, "", "");
    GET(c, 0, "", "[*");
}

static void get_takes_several_patterns_each_name_once(void **state) {
    struct config *c = *state;
    GET(c, 2, "save=;appendonly=no;", "appendonly", "save", "SAVE");
    GET(c, 3, "MAXCLIENTS=10000;maxmemory=0;maxmemory-policy=noeviction;", "MAXCLIENTS",
        "maxclients", "MAX*");
    GET(c, 2, "hash-max-listpack-entries=512;HASH-MAX-ziplist-entries=512;",
        "HASH-MAX-ziplist-entries", "hash*entries");
}

static void get_star_gives_every_option_and_alias(void **state) {
    struct config *c = *state;
    struct bytes star = BYTES_LIT("*");
    struct buf out = {0};
    assert_int_equal(config_get(c, &star, 1, emit_pair, &out), CONFIG_OPTIONS + 5);
    assert_non_null(memmem(out.ptr, out.len, "hash-max-ziplist-value=64;", 26));
    buf_deinit(&out);
}

/* ---- set ----------------------------------------------------------------------------------- */

static void set_changes_several_at_once(void **state) {
    struct config *c = *state;
    struct buf error = {0};
    SET(c, &error, "MAXCLIENTS", "77", "maxmemory", "100mb", "requirepass", "pw", "loglevel",
        "DEBUG", "protected-mode", "NO");
    assert_text(&error, "");
    assert_int_equal(c->maxclients, 77);
    assert_int_equal(c->maxmemory, 104857600);
    assert_string_equal(c->requirepass, "pw");
    assert_false(c->protected_mode);
    SET(c, &error, "client-output-buffer-limit", "normal 1mb 2mb 60");
    GET(c, 1, "client-output-buffer-limit=normal 1048576 2097152 60;",
        "client-output-buffer-limit");
    SET(c, &error, "hz", "1000");
    assert_int_equal(c->hz, 500);
    SET(c, &error, "hz", "0");
    assert_int_equal(c->hz, 1);
    SET(c, &error, "hash-max-listpack-entries", "1", "hash-max-ziplist-entries", "2");
    assert_int_equal(c->hash_max_listpack_entries, 2);
    SET(c, &error, "list-max-ziplist-size", "-1");
    GET(c, 2, "list-max-listpack-size=-1;list-max-ziplist-size=-1;", "list-max-*-size");
    SET(c, &error, "save", "3600 1 60 100");
    SET(c, &error, "save", "30 10"); /* takes the place of what was there */
    GET(c, 1, "save=30 10;", "save");
    SET(c, &error, "appendonly", "no", "save", "", "requirepass", "");
    GET(c, 1, "save=;", "save");
    assert_text(&error, "");
    assert_string_equal(c->requirepass, "");
    buf_deinit(&error);
}

#define FAILED(name, why) "ERR CONFIG SET failed (possibly related to argument '" name "') - " why

static void set_refuses_with_the_texts_of_redis(void **state) {
    static const struct {
        const char *words[8];
        const char *error;
    } cases[] = {
        {{"foo", "1"}, "ERR Unknown option or number of arguments for CONFIG SET - 'foo'"},
        {{"maxclients", "5", "bar", "2"},
         "ERR Unknown option or number of arguments for CONFIG SET - 'bar'"},
        {{"timeout", "x", "foo", "1"},
         "ERR Unknown option or number of arguments for CONFIG SET - 'foo'"},
        {{"a", "b", "c"}, "ERR syntax error"},
        {{"maxclients", "abc"},
         FAILED("maxclients", "argument couldn't be parsed into an integer")},
        {{"maxclients", "0"},
         FAILED("maxclients", "argument must be between 1 and 4294967295 inclusive")},
        {{"timeout", "-1"},
         FAILED("timeout", "argument must be between 0 and 2147483647 inclusive")},
        {{"timeout", ""}, FAILED("timeout", "argument couldn't be parsed into an integer")},
        {{"timeout", "010"}, FAILED("timeout", "argument couldn't be parsed into an integer")},
        {{"databases", "3"}, FAILED("databases", "can't set immutable config")},
        {{"enable-debug-command", "yes"},
         FAILED("enable-debug-command", "can't set immutable config")},
        {{"dir", "/"}, FAILED("dir", "can't set protected config")},
        {{"timeout", "y", "dir", "x"}, FAILED("dir", "can't set protected config")},
        {{"dir", "x", "foo", "1"}, FAILED("dir", "can't set protected config")},
        {{"maxclients", "10", "maxclients", "20"}, FAILED("maxclients", "duplicate parameter")},
        {{"maxclients", "1", "MAXCLIENTS", "2"}, FAILED("MAXCLIENTS", "duplicate parameter")},
        {{"lazyfree-lazy-user-flush", "maybe"},
         FAILED("lazyfree-lazy-user-flush", "argument must be 'yes' or 'no'")},
        {{"client-query-buffer-limit", "5"},
         FAILED("client-query-buffer-limit",
                "argument must be between 1048576 and 9223372036854775807 inclusive")},
        {{"proto-max-bulk-len", "-1"},
         FAILED("proto-max-bulk-len", "argument must be a memory value")},
        {{"maxmemory", "10%"}, FAILED("maxmemory", "argument must be a memory value")},
        {{"maxmemory-policy", "foo"},
         FAILED("maxmemory-policy", "argument(s) must be one of the following: noeviction")},
        {{"client-output-buffer-limit", "foo"},
         FAILED("client-output-buffer-limit",
                "Wrong number of arguments in buffer limit configuration.")},
        {{"client-output-buffer-limit", "normal  0 0 0"},
         FAILED("client-output-buffer-limit",
                "Wrong number of arguments in buffer limit configuration.")},
        {{"save", " "}, FAILED("save", "Invalid save parameters")},
        {{"save", " 60 1"}, FAILED("save", "Invalid save parameters")},
        {{"save", "60  1"}, FAILED("save", "Invalid save parameters")},
        {{"save", "60 1 "}, FAILED("save", "Invalid save parameters")},
        {{"latency-tracking-info-percentiles", "50  99"},
         FAILED("latency-tracking-info-percentiles",
                "Invalid latency-tracking-info-percentiles parameters")},
        {{"client-output-buffer-limit", "foo 0 0 0"},
         FAILED("client-output-buffer-limit",
                "Invalid client class specified in buffer limit configuration.")},
        {{"client-output-buffer-limit", "normal 1mb xx 60"},
         FAILED("client-output-buffer-limit",
                "Error in hard, soft or soft_seconds setting in buffer limit configuration.")},
        {{"client-output-buffer-limit", "normal 0 0 -1"},
         FAILED("client-output-buffer-limit",
                "Error in hard, soft or soft_seconds setting in buffer limit configuration.")},
        {{"hash-max-listpack-entries", "-1"},
         FAILED("hash-max-listpack-entries",
                "argument must be between 0 and 9223372036854775807 inclusive")},
    };
    struct config *c = *state;
    struct buf error = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        set(c, &error, cases[i].words);
        assert_text(&error, cases[i].error);
    }
    buf_deinit(&error);
}

static void set_is_all_or_nothing(void **state) {
    struct config *c = *state;
    struct buf error = {0};
    SET(c, &error, "maxclients", "20", "requirepass", "new", "timeout", "x");
    assert_int_not_equal(error.len, 0);
    assert_int_equal(c->maxclients, 10000);
    assert_string_equal(c->requirepass, "");
    buf_deinit(&error);
}

static void hooks_run_once_and_only_for_changes(void **state) {
    struct config *c = *state;
    struct buf error = {0};
    struct probe p = {0};
    config_on_change(c, OPTION_maxclients, note, &p);
    config_on_change(c, OPTION_timeout, note, &p);
    SET(c, &error, "maxclients", "20", "timeout", "5");
    assert_int_equal(p.calls, 1);
    assert_int_equal(p.seen_maxclients, 20);
    SET(c, &error, "maxclients", "20");
    assert_int_equal(p.calls, 1);
    SET(c, &error, "tcp-keepalive", "9");
    assert_int_equal(p.calls, 1);
    buf_deinit(&error);
}

static void a_hook_that_refuses_rolls_back(void **state) {
    struct config *c = *state;
    struct buf error = {0};
    struct probe good = {0}, bad = {.refuse = true};
    config_on_change(c, OPTION_maxclients, note, &good);
    config_on_change(c, OPTION_loglevel, note, &bad);
    SET(c, &error, "requirepass", "old");
    SET(c, &error, "LogLevel", "debug", "requirepass", "new", "maxclients", "20");
    assert_text(&error, FAILED("LogLevel", "no such luck"));
    assert_int_equal(c->maxclients, 10000);
    assert_string_equal(c->requirepass, "old");
    assert_int_equal(good.calls, 2);
    assert_int_equal(good.seen_maxclients, 10000);
    assert_int_equal(bad.calls, 1);
    buf_deinit(&error);
}

static void a_value_with_nul_is_refused(void **state) {
    struct config *c = *state;
    struct buf error = {0};
    struct bytes args[] = {BYTES_LIT("requirepass"), BYTES("a\0b", 3)};
    assert_int_equal(config_set(c, args, 2, &error), ST_SYNTAX);
    assert_text(&error, FAILED("requirepass", "argument must not hold NUL bytes"));
    buf_deinit(&error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(get_prints_values_as_redis, make_config, drop_config),
        cmocka_unit_test_setup_teardown(get_takes_several_patterns_each_name_once, make_config,
                                        drop_config),
        cmocka_unit_test_setup_teardown(get_star_gives_every_option_and_alias, make_config,
                                        drop_config),
        cmocka_unit_test_setup_teardown(set_changes_several_at_once, make_config, drop_config),
        cmocka_unit_test_setup_teardown(set_refuses_with_the_texts_of_redis, make_config,
                                        drop_config),
        cmocka_unit_test_setup_teardown(set_is_all_or_nothing, make_config, drop_config),
        cmocka_unit_test_setup_teardown(hooks_run_once_and_only_for_changes, make_config,
                                        drop_config),
        cmocka_unit_test_setup_teardown(a_hook_that_refuses_rolls_back, make_config, drop_config),
        cmocka_unit_test_setup_teardown(a_value_with_nul_is_refused, make_config, drop_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
