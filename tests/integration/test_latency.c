/* SPDX-License-Identifier: BSD-3-Clause */
/* LATENCY and INFO latencystats: shapes and errors by example, beside redis-server, and what makes a
 * sample. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/example.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* clang-format off */
static const struct example monitor[] = {
    {"LATENCY LATEST", "[]", BOTH}, {"LATENCY HISTORY command", "[]", BOTH}, {"LATENCY HISTORY nosuch", "[]", BOTH},
    {"LATENCY RESET", ":0", BOTH}, {"LATENCY RESET nosuch command", ":0", BOTH},
    {"LATENCY GRAPH nosuch", "-ERR No samples available for event 'nosuch'", BOTH},
    {"LATENCY GRAPH command", "-ERR No samples available for event 'command'", BOTH},
    {"LATENCY DOCTOR", ANY, BOTH}, {"LATENCY HELP", ANY, BOTH},
    {"LATENCY", ARITY("latency"), BOTH}, {"LATENCY LATEST x", ARITY("latency|latest"), BOTH},
    {"LATENCY HISTORY", ARITY("latency|history"), BOTH}, {"LATENCY GRAPH a b", ARITY("latency|graph"), BOTH},
    {"LATENCY NOSUCH", "-ERR unknown subcommand 'NOSUCH'. Try LATENCY HELP.", BOTH},
    {"CONFIG GET latency-monitor-threshold", "[\"latency-monitor-threshold\" \"0\"]", RESP2},
    {"CONFIG SET latency-monitor-threshold -1", "-ERR CONFIG SET failed (possibly related to argument 'latency-monitor-threshold')"
        " - argument must be between 0 and 9223372036854775807 inclusive", BOTH},
    {"CONFIG SET latency-monitor-threshold 20", "+OK", BOTH},
    {"DEBUG SLEEP 0.03", "+OK", BOTH}, {"LATENCY GRAPH command", ANY, BOTH}, {"LATENCY DOCTOR", ANY, BOTH},
    {"LATENCY RESET nosuch", ":0", BOTH}, {"LATENCY RESET command", ":1", BOTH},
    {"LATENCY HISTORY command", "[]", BOTH},
};

static const struct example tracking[] = {
    {"CONFIG RESETSTAT", "+OK", BOTH}, {"LATENCY HISTOGRAM nosuch", "[]", RESP2}, {"LATENCY HISTOGRAM nosuch", "{}", RESP3},
    {"LATENCY HISTOGRAM get", "[]", RESP2}, {"LATENCY HISTOGRAM get", "{}", RESP3},
    {"LATENCY HISTOGRAM", ANY, BOTH}, {"LATENCY HISTOGRAM latency", ANY, BOTH},
    {"CONFIG SET latency-tracking no", "+OK", BOTH}, {"GET a", "nil", RESP2}, {"LATENCY HISTOGRAM get", "[]", RESP2},
    {"INFO latencystats", "\"# Latencystats\\x0d\\x0a\"", RESP2}, {"CONFIG SET latency-tracking yes", "+OK", BOTH},
    {"CONFIG GET latency-tracking-info-percentiles", "[\"latency-tracking-info-percentiles\" \"50 99 99.9\"]", RESP2},
    {"CONFIG SET latency-tracking-info-percentiles '0 50.5'", "+OK", BOTH},
    {"CONFIG GET latency-tracking-info-percentiles", "[\"latency-tracking-info-percentiles\" \"0 50.5\"]", RESP2},
    {"CONFIG SET latency-tracking-info-percentiles '50 101'", "-ERR CONFIG SET failed (possibly related to argument"
        " 'latency-tracking-info-percentiles') - latency-tracking-info-percentiles parameters should sit between [0.0,100.0]", BOTH},
    {"CONFIG SET latency-tracking-info-percentiles '50 x'", "-ERR CONFIG SET failed (possibly related to argument"
        " 'latency-tracking-info-percentiles') - Invalid latency-tracking-info-percentiles parameters", BOTH},
    {"CONFIG SET latency-tracking-info-percentiles ''", "+OK", BOTH},
    {"CONFIG GET latency-tracking-info-percentiles", "[\"latency-tracking-info-percentiles\" \"\"]", RESP2},
    {"INFO latencystats", ANY, BOTH}, {"CONFIG SET latency-tracking-info-percentiles '50 99 99.9'", "+OK", BOTH},
};
/* clang-format on */

static const struct example_group groups[] = {EXAMPLES(monitor), EXAMPLES(tracking)};

static void examples_hold(void **state) {
    examples_assert(SERVER_GOBLIN, groups, COUNT(groups), 2);
    examples_assert(SERVER_GOBLIN, groups, COUNT(groups), 3);
}

static void the_oracle_agrees_with_the_examples(void **state) {
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server to compare with");
    }
    examples_assert(SERVER_ORACLE, groups, COUNT(groups), 2);
    examples_assert(SERVER_ORACLE, groups, COUNT(groups), 3);
}

/* ---- what makes a sample ------------------------------------------------------------------- */

/* The row of LATENCY LATEST; fails the test when there is none. */
static void assert_latest(struct client *c, const char *event, int64_t min_ms) {
    struct reply *r = client_cmd(c, "LATENCY", "LATEST", NULL);
    for (size_t i = 0; i < r->count; i++) {
        const struct reply *row = r->elements[i];
        if (strcmp(row->elements[0]->str, event) == 0) {
            assert_int_equal(row->count, 4);
            assert_true(row->elements[1]->integer > 1500000000);
            assert_true(row->elements[2]->integer >= min_ms);
            assert_true(row->elements[3]->integer >= row->elements[2]->integer);
            reply_free(r);
            return;
        }
    }
    fail_msg("no sample of %s in %s", event, reply_text(r));
}

static void slow_work_makes_samples(void **state) {
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    client_expect(c, "+OK", "CONFIG", "SET", "latency-monitor-threshold", "1", NULL);
    client_expect(c, "+OK", "DEBUG", "SLEEP", "0.05", NULL);
    assert_latest(c, "command", 50);
    assert_latest(c, "eventloop", 50);
    /* a snapshot of this size cannot be had within a millisecond */
    char *value = calloc(1, 4 << 20);
    memset(value, 'x', (4 << 20) - 1);
    for (int i = 0; i < 4; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key:%d", i);
        client_expect(c, "+OK", "SET", key, value, NULL);
    }
    free(value);
    client_expect(c, "+OK", "CONFIG", "SET", "rdbcompression", "no", NULL);
    client_expect(c, "+OK", "SAVE", NULL);
    assert_latest(c, "save", 1);
    client_expect(c, "+OK", "LOAD", "dump.rdb", NULL);
    assert_latest(c, "load", 1);
    client_close(c);
    server_stop(s);
}

/* ---- histograms ---------------------------------------------------------------------------- */

static void histograms_count_every_call(void **state) {
    struct server *s = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(s);
    reply_free(client_cmd(c, "HELLO", "3", NULL));
    for (int i = 0; i < 7; i++) {
        client_expect(c, "null", "GET", "none", NULL);
    }
    client_expect(c, "+OK", "DEBUG", "SLEEP", "0.04", NULL);
    struct reply *r = client_cmd(c, "LATENCY", "HISTOGRAM", "GET", "debug", NULL);
    assert_int_equal(r->type, '%');
    assert_int_equal(r->count, 4);
    assert_string_equal(r->elements[0]->str, "get");
    const struct reply *get = r->elements[1];
    assert_string_equal(get->elements[0]->str, "calls");
    assert_int_equal(get->elements[1]->integer, 7);
    assert_string_equal(get->elements[2]->str, "histogram_usec");
    const struct reply *steps = get->elements[3];
    assert_int_equal(steps->type, '%');
    assert_int_equal(steps->elements[steps->count - 1]->integer, 7);
    /* 40 ms and more lie past 2^25 ns; the levels have the numbers of Redis */
    steps = r->elements[3]->elements[3];
    assert_int_equal(steps->count, 2);
    assert_true(steps->elements[0]->integer >= 67633);
    assert_int_equal(steps->elements[1]->integer, 1);
    reply_free(r);
    client_close(c);
    server_stop(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_hold),
        cmocka_unit_test(the_oracle_agrees_with_the_examples),
        cmocka_unit_test(slow_work_makes_samples),
        cmocka_unit_test(histograms_count_every_call),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
