/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "stats/latency.h"

static void assert_sample(const struct latency_monitor *m, size_t i, uint32_t time_s, uint32_t ms) {
    struct latency_sample s = latency_at(&m->series[LATENCY_COMMAND], i);
    assert_int_equal(s.time_s, time_s);
    assert_int_equal(s.ms, ms);
}

static void one_sample_a_second_keeps_the_worst(void **state) {
    struct latency_monitor m = {0};
    latency_add(&m, LATENCY_COMMAND, 100, 7);
    latency_add(&m, LATENCY_COMMAND, 100, 9);
    latency_add(&m, LATENCY_COMMAND, 100, 8);
    latency_add(&m, LATENCY_COMMAND, 101, 3);
    assert_int_equal(m.series[LATENCY_COMMAND].count, 2);
    assert_int_equal(m.series[LATENCY_COMMAND].max_ms, 9);
    assert_sample(&m, 0, 100, 9);
    assert_sample(&m, 1, 101, 3);
    assert_int_equal(m.series[LATENCY_FORK].count, 0);
}

static void the_oldest_samples_make_room(void **state) {
    struct latency_monitor m = {0};
    for (uint32_t i = 0; i < 3 * LATENCY_SAMPLES + 5; i++) {
        latency_add(&m, LATENCY_COMMAND, 1000 + i, i + 1);
        assert_int_equal(m.series[LATENCY_COMMAND].count,
                         i + 1 < LATENCY_SAMPLES ? i + 1 : LATENCY_SAMPLES);
        assert_sample(&m, m.series[LATENCY_COMMAND].count - 1, 1000 + i, i + 1);
    }
    assert_sample(&m, 0, 1000 + 2 * LATENCY_SAMPLES + 5, 2 * LATENCY_SAMPLES + 6);
}

static void reset_forgets_one_event(void **state) {
    struct latency_monitor m = {0};
    assert_false(latency_reset(&m, LATENCY_COMMAND));
    latency_add(&m, LATENCY_COMMAND, 100, 7);
    latency_add(&m, LATENCY_CRON, 100, 7);
    assert_true(latency_reset(&m, LATENCY_COMMAND));
    assert_int_equal(m.series[LATENCY_COMMAND].max_ms, 0);
    assert_int_equal(m.series[LATENCY_CRON].count, 1);
}

static void names_are_found_exactly(void **state) {
    for (enum latency_event e = 0; e < LATENCY_EVENTS; e++) {
        assert_int_equal(latency_event_find(bytes_from_cstr(latency_event_name(e))), e);
    }
    assert_int_equal(latency_event_find(BYTES_LIT("Command")), LATENCY_EVENTS);
    assert_int_equal(latency_event_find(BYTES_LIT("")), LATENCY_EVENTS);
}

static void durations_past_the_field_are_cut(void **state) {
    struct latency_monitor m = {0};
    latency_add(&m, LATENCY_COMMAND, 100, UINT64_MAX);
    assert_sample(&m, 0, 100, UINT32_MAX);
}

static char *text_of(struct buf *out) {
    buf_append_char(out, '\0');
    assert_false(out->failed);
    return out->ptr;
}

/* The picture that redis-server 7.0 draws of the same samples. */
static void graph_is_that_of_redis(void **state) {
    static const uint32_t ms[] = {10, 20, 35, 50, 70, 100, 11, 100};
    static const uint32_t age_s[] = {9, 8, 7, 5, 4, 3, 2, 1};
    struct latency_monitor m = {0};
    struct buf out = {0};
    for (size_t i = 0; i < ARRAY_LEN(ms); i++) {
        latency_add(&m, LATENCY_COMMAND, 1000 - age_s[i], ms[i]);
    }
    latency_write_graph(&m, LATENCY_COMMAND, 1000, &out);
    assert_string_equal(
        text_of(&out),
        "command - high 100 ms, low 10 ms (all time high 100 ms)\n"
        "--------------------------------------------------------------------------------\n"
        "     # #\n"
        "    #| |\n"
        "  _#|| |\n"
        "_o||||_|\n"
        "        \n"
        "98754321\n"
        "ssssssss\n");
    buf_deinit(&out);
}

static void graph_wraps_and_tells_long_ages(void **state) {
    struct latency_monitor m = {0};
    struct buf out = {0};
    for (int i = 0; i < 81; i++) {
        latency_add(&m, LATENCY_FORK, i, 5);
    }
    latency_write_graph(&m, LATENCY_FORK, 80 + 7200, &out);
    const char *second = strstr(text_of(&out), "\n\n");
    assert_non_null(second);
    assert_string_equal(second, "\n\n \n \n \n_\n \n2\nh\n");
    buf_deinit(&out);
}

static void report_tells_what_was_slow(void **state) {
    struct latency_monitor m = {0};
    struct buf out = {0};
    latency_write_report(&m, 0, 1000, &out);
    assert_non_null(strstr(text_of(&out), "latency-monitor-threshold"));
    buf_clear(&out);
    latency_add(&m, LATENCY_COMMAND, 998, 30);
    latency_add(&m, LATENCY_COMMAND, 1000, 50);
    latency_add(&m, LATENCY_SAVE, 1000, 7);
    latency_write_report(&m, 5, 1000, &out);
    const char *text = text_of(&out);
    assert_non_null(strstr(text, "1. command: 2 latency spikes (average 40ms, mean deviation 10ms, "
                                 "period 1.00 sec). Worst all time event 50ms.\n"));
    assert_non_null(strstr(text, "2. save: 1 latency spikes"));
    assert_non_null(strstr(text, "\n- command: "));
    assert_null(strstr(text, "\n- fork: "));
    buf_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sample_a_second_keeps_the_worst),
        cmocka_unit_test(the_oldest_samples_make_room),
        cmocka_unit_test(reset_forgets_one_event),
        cmocka_unit_test(names_are_found_exactly),
        cmocka_unit_test(durations_past_the_field_are_cut),
        cmocka_unit_test(graph_is_that_of_redis),
        cmocka_unit_test(graph_wraps_and_tells_long_ages),
        cmocka_unit_test(report_tells_what_was_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
