/* SPDX-License-Identifier: BSD-3-Clause */
/* DUMP, RESTORE and MIGRATE without a server and with little memory: all or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "starved.h"

static const char *const keys[] = {"large", "packed", "string", "copy"};

/* What the other server of MIGRATE answers. */
static const char *answer;
static struct peer peer;

static enum status open_peer(void *server, struct bytes host, struct bytes port, int64_t timeout_ms,
                             struct peer **out) {
    *out = &peer;
    return ST_OK;
}

static enum status send_to_peer(struct peer *p, struct bytes bytes, int64_t timeout_ms) {
    return ST_OK;
}

static enum status read_peer_line(struct peer *p, int64_t timeout_ms, struct bytes *line) {
    *line = bytes_from_cstr(answer);
    return ST_OK;
}

static void close_peer(void *server, struct peer *p) {
    *p = (struct peer){0};
}

static void fill(struct fixture *f) {
    flush_all(f);
    for (int i = 0; i < 40; i++) {
        char line[64];
        snprintf(line, sizeof(line), "ZADD large %d member:%d", i, i);
        run(f, line);
    }
    run(f, "HSET packed a 1 b 2");
    run(f, "SET string here");
    run(f, "RPUSH copy 1 2 3");
    answer = "+OK";
    peer = (struct peer){0};
    f->cx.peers = (struct peer_hooks){
        .open = open_peer, .send = send_to_peer, .read_line = read_peer_line, .close = close_peer};
}

static char *dump(struct fixture *f) {
    static const char *const lines[] = {"TYPE %s", "DUMP %s", "PTTL %s"};
    return dump_keys(f, keys, ARRAY_LEN(keys), lines, ARRAY_LEN(lines));
}

/* RESTORE of what is under a key, as an inline command. */
static void restore_line(struct fixture *f, const char *key, const char *rest,
                         char line[LINE_MAX_LEN]) {
    char dump_line[64];
    snprintf(dump_line, sizeof(dump_line), "DUMP %s", key);
    const char *reply = run(f, dump_line);
    size_t payload_len = strtoul(reply + 1, NULL, 10);
    const char *payload = strchr(reply, '\n') + 1;
    size_t len = (size_t)snprintf(line, LINE_MAX_LEN, "RESTORE copy 0 \"");
    for (size_t i = 0; i < payload_len; i++) {
        len += (size_t)snprintf(line + len, LINE_MAX_LEN - len, "\\x%02x",
                                (unsigned)(unsigned char)payload[i]);
    }
    len += (size_t)snprintf(line + len, LINE_MAX_LEN - len, "\" %s", rest);
    assert_true(len + 3 < LINE_MAX_LEN);
}

static void restore_replaces_or_changes_nothing(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char line[LINE_MAX_LEN], before[LINE_MAX_LEN], dump_line[64];
        snprintf(dump_line, sizeof(dump_line), "DUMP %s", keys[i]);
        fill(f);
        restore_line(f, keys[i], "REPLACE IDLETIME 3", line);
        snprintf(before, sizeof(before), "%s", run(f, dump_line));
        assert_all_or_nothing(f, line, fill, dump);
        assert_string_equal(run(f, "DUMP copy"), before);
        assert_string_equal(run(f, "OBJECT IDLETIME copy"), ":0\r\n"); /* DUMP is an access */
    }
}

static void restore_makes_a_key_or_none(void **state) {
    struct fixture *f = *state;
    char line[LINE_MAX_LEN];
    fill(f);
    restore_line(f, "large", "", line);
    memcpy(line, "RESTORE next", 12);
    assert_all_or_nothing(f, line, fill, dump);
    assert_string_equal(run(f, "ZCARD next"), ":40\r\n");
    assert_string_equal(run(f, line), "-BUSYKEY Target key name already exists.\r\n");
}

static void dump_answers_or_tells(void **state) {
    assert_all_or_nothing(*state, "DUMP large", fill, dump);
}

static void migrate_without_memory_keeps_the_key(void **state) {
    struct fixture *f = *state;
    assert_all_or_nothing(f, "MIGRATE h 1 large 0 100 COPY", fill, dump);
    fill(f);
    assert_string_equal(run(f, "MIGRATE h 1 large 0 100"), "+OK\r\n");
    assert_string_equal(run(f, "EXISTS large"), ":0\r\n");
}

static void only_an_ok_deletes(void **state) {
    static const char *const answers[] = {"", "-", "-ERR x", "+", "+O", "+OKAY", ":1", "OK", "+ok"};
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        fill(f);
        assert_string_equal(run(f, "MIGRATE h 1 string 0 100 COPY"), "+OK\r\n");
        answer = answers[i];
        assert_int_equal(run(f, "MIGRATE h 1 '' 0 100 KEYS string packed")[0], '-');
        assert_string_equal(run(f, "EXISTS string packed"), ":2\r\n");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(restore_replaces_or_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(restore_makes_a_key_or_none, setup, teardown),
        cmocka_unit_test_setup_teardown(dump_answers_or_tells, setup, teardown),
        cmocka_unit_test_setup_teardown(migrate_without_memory_keeps_the_key, setup, teardown),
        cmocka_unit_test_setup_teardown(only_an_ok_deletes, setup, teardown),
    };
    hash_setup_seed(1);
    ticks_setup();
    table_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
