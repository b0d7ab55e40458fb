/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters, rates, errors by prefix, and what the kernel tells of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "stats/metrics.h"
#include "stats/process.h"

static void reset_clears_counters_and_keeps_gauges(void **state) {
    struct metrics m;
    memset(&m, 0x11, sizeof(m));
    metrics_reset(&m);
    assert_int_equal(m.total_commands_processed, 0);
    assert_int_equal(m.lazyfreed_objects, 0);
    assert_true(m.lazyfree_pending_objects == 0x1111111111111111u);
    assert_true(m.rdb_changes_since_last_save == 0x1111111111111111u);
}

/* ---- rates --------------------------------------------------------------------------------- */

static void rates_are_the_mean_of_the_last_samples(void **state) {
    struct rates r = {0};
    struct metrics m = {.total_commands_processed = 5000};
    int64_t now_us = 1000000;
    rates_sample(&r, &m, now_us);
    assert_true(rates_get(&r, RATE_COMMANDS) == 0.0); /* what came before is no rate */
    for (size_t i = 0; i < RATE_SAMPLES; i++) {
        now_us += 100000;
        m.total_commands_processed += 100;
        m.total_net_input_bytes += 1024;
        rates_sample(&r, &m, now_us);
        rates_sample(&r, &m, now_us + 50000); /* too early: ignored */
    }
    assert_in_range((uint64_t)(rates_get(&r, RATE_COMMANDS) + 0.5), 1000, 1000);
    assert_in_range((uint64_t)(rates_get(&r, RATE_INPUT_BYTES) + 0.5), 10240, 10240);
    assert_true(rates_get(&r, RATE_OUTPUT_BYTES) == 0.0);
    for (size_t i = 0; i < RATE_SAMPLES / 2; i++) {
        now_us += 200000;
        rates_sample(&r, &m, now_us);
    }
    assert_in_range((uint64_t)(rates_get(&r, RATE_COMMANDS) + 0.5), 500, 500);
}

static void rates_survive_a_reset_of_the_counters(void **state) {
    struct rates r = {0};
    struct metrics m = {.total_commands_processed = 5000};
    rates_sample(&r, &m, 1000000);
    m.total_commands_processed = 10;
    rates_sample(&r, &m, 1100000);
    assert_true(rates_get(&r, RATE_COMMANDS) == 0.0);
    m.total_commands_processed = 26;
    rates_sample(&r, &m, 1200000);
    assert_in_range((uint64_t)(rates_get(&r, RATE_COMMANDS) + 0.5), 10, 10); /* 160 in 1 of 16 */
}

/* ---- errors -------------------------------------------------------------------------------- */

static void errors_are_counted_by_first_word_in_order(void **state) {
    struct error_counts *e = calloc(1, sizeof(*e));
    assert_non_null(e);
    static const char *const texts[] = {"WRONGTYPE Operation",
                                        "ERR one",
                                        "NOAUTH Authentication required.",
                                        "ERR two",
                                        "OOM",
                                        "lower case has no prefix",
                                        "",
                                        " leading blank",
                                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345 is longer than a prefix",
                                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ01234 just fits"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        error_counts_add(e, bytes_from_cstr(texts[i]));
    }
    static const struct {
        const char *prefix;
        uint64_t replies;
    } want[] = {{"ABCDEFGHIJKLMNOPQRSTUVWXYZ01234", 1},
                {"ERR", 6},
                {"NOAUTH", 1},
                {"OOM", 1},
                {"WRONGTYPE", 1}};
    assert_int_equal(e->count, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_string_equal(e->rows[i].prefix, want[i].prefix);
        assert_int_equal(e->rows[i].replies, want[i].replies);
    }
    error_counts_reset(e);
    assert_int_equal(e->count, 0);
    free(e);
}

static void errors_beyond_the_table_are_dropped(void **state) {
    struct error_counts *e = calloc(1, sizeof(*e));
    assert_non_null(e);
    for (int i = 0; i < 2 * ERROR_COUNTS_MAX; i++) {
        char text[16];
        snprintf(text, sizeof(text), "E%d x", i);
        error_counts_add(e, bytes_from_cstr(text));
    }
    error_counts_add(e, BYTES_LIT("E5 again"));
    assert_int_equal(e->count, ERROR_COUNTS_MAX);
    for (size_t i = 1; i < e->count; i++) {
        assert_true(strcmp(e->rows[i - 1].prefix, e->rows[i].prefix) < 0);
    }
    free(e);
}

/* ---- process ------------------------------------------------------------------------------- */

static void memory_grows_when_pages_are_touched(void **state) {
    const size_t size = 32u << 20;
    struct process_memory before, after;
    process_read_memory(&before);
    assert_true(before.vm_rss_bytes > 0);
    assert_true(before.page_table_bytes > 0);
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    memset(pages, 1, size);
    process_read_memory(&after);
    assert_true(after.vm_rss_bytes >= before.vm_rss_bytes + size / 2);
    assert_true(process_read_anon_huge_bytes(true) <= after.vm_rss_bytes);
    munmap(pages, size);
}

static void transparent_huge_pages_are_counted(void **state) {
    const size_t size = 16u << 20;
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    if (madvise(pages, size, MADV_HUGEPAGE) != 0) {
        munmap(pages, size);
        skip(); /* a kernel without them */
    }
    memset(pages, 1, size);
    uint64_t bytes = process_read_anon_huge_bytes(true);
    assert_int_equal(bytes % (2u << 20), 0);
    assert_true(process_read_anon_huge_bytes(false) == 0 ||
                process_read_anon_huge_bytes(false) == bytes);
    munmap(pages, size);
}

static void cpu_time_is_told(void **state) {
    struct process_cpu cpu;
    process_read_cpu(&cpu);
    assert_true(cpu.user_s + cpu.sys_s > 0);
    assert_true(cpu.user_thread_s <= cpu.user_s + 0.1);
}

static void the_machine_is_named(void **state) {
    char os[128];
    process_os_name(os, sizeof(os));
    assert_true(strncmp(os, "Linux ", 6) == 0);
    assert_true(process_system_memory_bytes() > 1u << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reset_clears_counters_and_keeps_gauges),
        cmocka_unit_test(rates_are_the_mean_of_the_last_samples),
        cmocka_unit_test(rates_survive_a_reset_of_the_counters),
        cmocka_unit_test(errors_are_counted_by_first_word_in_order),
        cmocka_unit_test(errors_beyond_the_table_are_dropped),
        cmocka_unit_test(memory_grows_when_pages_are_touched),
        cmocka_unit_test(transparent_huge_pages_are_counted),
        cmocka_unit_test(cpu_time_is_told),
        cmocka_unit_test(the_machine_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
