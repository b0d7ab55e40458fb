/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats/info.h"

/* ---- helpers ------------------------------------------------------------------------------- */

static info_section_set parse(const char *words) {
    struct bytes list[8];
    size_t count = 0;
    for (const char *p = words; *p != '\0';) {
        size_t len = strcspn(p, " ");
        list[count++] = BYTES(p, len);
        p += len + (p[len] == ' ');
    }
    return info_parse_sections(list, count);
}

/* INFO with the words, terminated; free it. */
static char *render(const char *words, const struct info_source *s) {
    struct buf out = {0};
    info_render(&out, parse(words), s);
    buf_append_char(&out, '\0');
    assert_false(out.failed);
    return out.ptr;
}

static void assert_line(const char *text, const char *line) {
    char want[256];
    snprintf(want, sizeof(want), "\n%s\r\n", line);
    if (strstr(text, want) == NULL) {
        fail_msg("no line '%s' in:\n%s", line, text);
    }
}

/* Only the headings: "Server Clients". */
static void assert_headings(const char *words, const char *want) {
    struct metrics m = {0};
    struct info_source s = {.metrics = &m};
    char *text = render(words, &s), got[512] = "";
    for (const char *p = text; (p = strstr(p, "# ")) != NULL; p += 2) {
        assert_true(p == text || p[-1] == '\n');
        size_t len = strlen(got);
        snprintf(got + len, sizeof(got) - len, "%s%.*s", len ? " " : "", (int)strcspn(p + 2, "\r"),
                 p + 2);
    }
    assert_string_equal(got, want);
    free(text);
}

/* ---- sections ------------------------------------------------------------------------------ */

static void sections_are_asked_for_as_in_redis(void **state) {
    const char *all = "Server Clients Memory Persistence Stats Replication CPU Modules "
                      "Commandstats Errorstats Latencystats Cluster Keyspace";
    const char *usual = "Server Clients Memory Persistence Stats Replication CPU Modules "
                        "Errorstats Cluster Keyspace";
    assert_headings("", usual);
    assert_headings("default", usual);
    assert_headings("ALL", all);
    assert_headings("everything", all);
    assert_headings("server", "Server");
    assert_headings("clients nope SERVER server", "Server Clients");
    assert_headings("nope", "");
    assert_headings("default commandstats",
                    "Server Clients Memory Persistence Stats Replication CPU Modules Commandstats "
                    "Errorstats Cluster Keyspace");
}

static void sections_are_parted_by_an_empty_line(void **state) {
    struct metrics m = {0};
    struct info_source s = {.metrics = &m};
    char *text = render("modules cluster keyspace", &s);
    assert_string_equal(text, "# Modules\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n"
                              "# Keyspace\r\n");
    free(text);
    text = render("nope", &s);
    assert_string_equal(text, "");
    free(text);
}

/* ---- lines --------------------------------------------------------------------------------- */

static void each_pool_is_a_line(void **state) {
    struct metrics m = {0};
    const struct info_pool pools[] = {{2 << 20, 10, 9, 3, 1}, {1 << 30, 0, 0, 0, 0}};
    struct info_source s = {.metrics = &m, .pools = pools, .pool_count = ARRAY_LEN(pools)};
    char *text = render("memory", &s);
    assert_line(text, "hugetlb_pool_2048kB:total=10,free=9,reserved=3,surplus=1");
    assert_line(text, "hugetlb_pool_1048576kB:total=0,free=0,reserved=0,surplus=0");
    free(text);
}

static void values_counters_and_ratios_are_printed(void **state) {
    struct metrics m = {
        .keyspace_hits = 7, .total_net_input_bytes = UINT64_MAX, .rdb_changes_since_last_save = 3};
    struct info_source s = {
        .metrics = &m,
        .os = "Linux 6 x86_64",
        .run_id = "abc",
        .config_file = "/a\r\nb",
        .hz = 10,
        .uptime_in_seconds = 2 * 86400 + 5,
        .used_memory = 3 << 19,
        .used_memory_peak = 3 << 20,
        .vm_rss_bytes = 1 << 20,
        .hugetlb_pages_bytes = 2 << 20,
        .page_table_bytes = 4096,
        .arena_failures = "pool_empty=3",
        .allocator_allocated = 400,
        .allocator_active = 300,
        .maxmemory_policy = "noeviction",
        .arena_hugetlb_asked = 1,
        .arena_fallback_reason = "none",
        .used_cpu_user = 1.5,
        .instantaneous_input_kbps = 0.125,
    };
    char *text = render("all", &s);
    static const char *const lines[] = {
        "redis_version:7.2.0",
        ("goblin_version:" GC_VERSION),
        "os:Linux 6 x86_64",
        "arch_bits:64",
        "run_id:abc",
        "config_file:/a__b",
        "executable:",
        "uptime_in_days:2",
        "configured_hz:10",
        "used_memory:1572864",
        "used_memory_human:1.50M",
        "used_memory_peak_perc:50.00%",
        "used_memory_rss:3145728",
        "resident_bytes:3145728",
        "footprint_bytes:3149824",
        "arena_failures:pool_empty=3",
        "index_failures:",
        "mem_fragmentation_ratio:2.00",
        "mem_fragmentation_bytes:1572864",
        "allocator_frag_ratio:0.75",
        "allocator_frag_bytes:-100",
        "maxmemory_human:0B",
        "arena_hugetlb_asked:1",
        "loading:0",
        "rdb_changes_since_last_save:3",
        "keyspace_hits:7",
        "total_net_input_bytes:18446744073709551615",
        "instantaneous_input_kbps:0.12",
        "role:master",
        "used_cpu_user:1.500000",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_line(text, lines[i]);
    }
    free(text);
}

static void empty_sources_divide_by_nothing(void **state) {
    struct metrics m = {0};
    struct info_source s = {.metrics = &m};
    char *text = render("memory", &s);
    assert_line(text, "mem_fragmentation_ratio:0.00");
    assert_line(text, "used_memory_peak_perc:0.00%");
    assert_null(strstr(text, "nan"));
    free(text);
}

static void lists_show_what_happened(void **state) {
    struct metrics m = {0};
    struct error_counts errors = {0};
    error_counts_add(&errors, BYTES_LIT("WRONGTYPE Operation against a key"));
    error_counts_add(&errors, BYTES_LIT("ERR syntax error"));
    error_counts_add(&errors, BYTES_LIT("ERR value is not an integer"));
    struct histogram *h = calloc(1, sizeof(*h));
    assert_non_null(h);
    histogram_add(h, 100);
    const struct info_command commands[] = {
        {.name = "get", .stats = {.calls = 2, .nsec = 5000, .failed = 1}, .latency_ns = h},
        {.name = "set"},
        {.name = "config|set", .stats = {.rejected = 1}},
    };
    const double percentiles[] = {50, 12.3456789, 99.9, 0};
    const struct info_db dbs[] = {{.keys = 3, .expires = 1}, {0}, {.keys = 1, .avg_ttl_ms = 9}};
    struct info_source s = {.metrics = &m,
                            .errors = &errors,
                            .dbs = dbs,
                            .db_count = ARRAY_LEN(dbs),
                            .commands = commands,
                            .command_count = ARRAY_LEN(commands),
                            .percentiles = percentiles,
                            .percentile_count = ARRAY_LEN(percentiles)};
    char *text = render("commandstats errorstats latencystats keyspace", &s);
    assert_string_equal(
        text, "# Commandstats\r\n"
              "cmdstat_get:calls=2,usec=5,usec_per_call=2.50,rejected_calls=0,"
              "failed_calls=1\r\n"
              "cmdstat_config|set:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,"
              "failed_calls=0\r\n"
              "\r\n# Errorstats\r\n"
              "errorstat_ERR:count=2\r\n"
              "errorstat_WRONGTYPE:count=1\r\n"
              "\r\n# Latencystats\r\n"
              "latency_percentiles_usec_get:p50=0.100,p12.345679=0.100,p99.9=0.100,p0=0.100\r\n"
              "\r\n# Keyspace\r\n"
              "db0:keys=3,expires=1,avg_ttl=0\r\n"
              "db2:keys=1,expires=0,avg_ttl=9\r\n");
    free(text);
    free(h);
}

static void human_sizes_as_redis(void **state) {
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0B"},          {1023, "1023B"},         {1024, "1.00K"},       {1015592, "991.79K"},
        {1048576, "1.00M"}, {25276063744, "23.54G"}, {UINT64_MAX, "16.00E"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[32];
        info_format_human(out, cases[i].bytes);
        assert_string_equal(out, cases[i].text);
    }
}

/* ---- page ---------------------------------------------------------------------------------- */

/* docs/metrics.md is committed; with GC_WRITE_PAGES set in the environment it is written anew. */
static void the_page_is_up_to_date(void **state) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.*s/../../../docs/metrics.md",
             (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
    struct buf page = {0}, found = {0};
    metrics_write_markdown(&page);
    if (getenv("GC_WRITE_PAGES") != NULL) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        assert_int_equal(fwrite(page.ptr, 1, page.len, out), page.len);
        assert_int_equal(fclose(out), 0);
    }
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *tail = buf_tail(&found, page.len + 1);
    assert_non_null(tail);
    found.len = fread(tail, 1, page.len + 1, file);
    fclose(file);
    assert_true(bytes_equal(buf_bytes(&found), buf_bytes(&page)));
    buf_deinit(&page);
    buf_deinit(&found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_are_asked_for_as_in_redis),
        cmocka_unit_test(sections_are_parted_by_an_empty_line),
        cmocka_unit_test(each_pool_is_a_line),
        cmocka_unit_test(values_counters_and_ratios_are_printed),
        cmocka_unit_test(empty_sources_divide_by_nothing),
        cmocka_unit_test(lists_show_what_happened),
        cmocka_unit_test(human_sizes_as_redis),
        cmocka_unit_test(the_page_is_up_to_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
