/* SPDX-License-Identifier: BSD-3-Clause */
#include "row_priv.h"

#include <inttypes.h>
#include <stdio.h>

#define HUMAN_MAX_LEN 32

/* ---- sections ------------------------------------------------------------------------------ */

static info_section_set default_sections(void) {
    info_section_set set = 0;
    for (unsigned i = 0; i < INFO_SECTIONS; i++) {
        set |= info_section_rows[i].is_default ? 1u << i : 0;
    }
    return set;
}

static info_section_set sections_of(struct bytes word) {
    if (bytes_is(word, "default")) {
        return default_sections();
    }
    if (bytes_is(word, "all") || bytes_is(word, "everything")) {
        return (1u << INFO_SECTIONS) - 1;
    }
    for (unsigned i = 0; i < INFO_SECTIONS; i++) {
        if (bytes_is(word, info_section_rows[i].word)) {
            return 1u << i;
        }
    }
    return 0;
}

info_section_set info_parse_sections(const struct bytes *words, size_t count) {
    info_section_set set = count == 0 ? default_sections() : 0;
    for (size_t i = 0; i < count; i++) {
        set |= sections_of(words[i]);
    }
    return set;
}

/* ---- values -------------------------------------------------------------------------------- */

void info_format_human(char *out, uint64_t bytes) {
    static const char units[] = "KMGTPE";
    if (bytes < 1024) {
        snprintf(out, HUMAN_MAX_LEN, "%" PRIu64 "B", bytes);
        return;
    }
    size_t unit = 0;
    double v = (double)bytes / 1024;
    while (bytes >= UINT64_C(1024) * 1024) {
        bytes /= 1024;
        v /= 1024;
        unit++;
    }
    snprintf(out, HUMAN_MAX_LEN, "%.2f%c", v, units[unit]);
}

static union info_value value_of(const struct info_row *row, const struct info_source *s) {
    union info_value v = {.s = row->text};
    const char *from = (const char *)(row->origin == ORIGIN_VALUE ? (const void *)s : s->metrics);
    switch (row->origin) {
    case ORIGIN_COUNTER:
    case ORIGIN_GAUGE:
    case ORIGIN_VALUE: /* every C type of a value is a member of the union */
        memcpy(&v, from + row->offset, sizeof(v));
        break;
    case ORIGIN_DERIVED:
        return row->derive(s);
    case ORIGIN_FIXED:
        break;
    }
    return v;
}
static_assert(sizeof(union info_value) == sizeof(uint64_t), "all kinds of value have one size");

/* A path may hold a newline; a line of INFO must not. */
static void append_text(struct buf *out, const char *s) {
    for (; s != NULL && *s != '\0'; s++) {
        buf_append_char(out, *s == '\r' || *s == '\n' ? '_' : *s);
    }
}

static void append_value(struct buf *out, enum info_type type, union info_value v) {
    char human[HUMAN_MAX_LEN];
    switch (type) {
    case INFO_IS_UINT:
        buf_printf(out, "%" PRIu64, v.u);
        break;
    case INFO_IS_INT:
        buf_printf(out, "%" PRId64, v.i);
        break;
    case INFO_IS_TEXT:
        append_text(out, v.s);
        break;
    case INFO_IS_HUMAN:
        info_format_human(human, v.u);
        buf_append_cstr(out, human);
        break;
    case INFO_IS_REAL2:
        buf_printf(out, "%.2f", v.d);
        break;
    case INFO_IS_REAL6:
        buf_printf(out, "%.6f", v.d);
        break;
    case INFO_IS_PERCENT:
        buf_printf(out, "%.2f%%", v.d);
        break;
    }
}

/* ---- sections that are lists --------------------------------------------------------------- */

static void render_commands(struct buf *out, const struct info_source *s) {
    for (size_t i = 0; i < s->command_count; i++) {
        const struct info_command *c = &s->commands[i];
        const struct command_stats *st = &c->stats;
        if (st->calls == 0 && st->rejected == 0 && st->failed == 0) {
            continue;
        }
        double per_call = st->calls == 0 ? 0 : (double)st->nsec / 1e3 / (double)st->calls;
        buf_printf(out,
                   "cmdstat_%s:calls=%" PRIu64 ",usec=%" PRIu64
                   ",usec_per_call=%.2f,rejected_calls=%" PRIu64 ",failed_calls=%" PRIu64 "\r\n",
                   c->name, st->calls, st->nsec / 1000, per_call, st->rejected, st->failed);
    }
}

/* "99.9": six decimals at most, no zeros at the end. */
static void append_percentile(struct buf *out, double percentile) {
    char text[32];
    int len = snprintf(text, sizeof(text), "%.6f", percentile);
    while (text[len - 1] == '0') {
        len--;
    }
    buf_append(out, text, (size_t)len - (text[len - 1] == '.'));
}

static void render_latencies(struct buf *out, const struct info_source *s) {
    for (size_t i = 0; i < s->command_count; i++) {
        const struct histogram *h = s->commands[i].latency_ns;
        if (h == NULL || h->count == 0) {
            continue;
        }
        buf_printf(out, "latency_percentiles_usec_%s:", s->commands[i].name);
        for (size_t k = 0; k < s->percentile_count; k++) {
            double usec = (double)histogram_quantile(h, s->percentiles[k] / 100) / 1000;
            buf_append_cstr(out, k == 0 ? "p" : ",p");
            append_percentile(out, s->percentiles[k]);
            buf_printf(out, "=%.3f", usec);
        }
        buf_append_cstr(out, "\r\n");
    }
}

static void render_errors(struct buf *out, const struct info_source *s) {
    for (size_t i = 0; s->errors != NULL && i < s->errors->count; i++) {
        const struct error_count *row = &s->errors->rows[i];
        buf_printf(out, "errorstat_%s:count=%" PRIu64 "\r\n", row->prefix, row->replies);
    }
}

static void render_pools(struct buf *out, const struct info_source *s) {
    for (size_t i = 0; i < s->pool_count; i++) {
        const struct info_pool *p = &s->pools[i];
        buf_printf(out,
                   "hugetlb_pool_%" PRIu64 "kB:total=%" PRIu64 ",free=%" PRIu64 ",reserved=%" PRIu64
                   ",surplus=%" PRIu64 "\r\n",
                   p->page_bytes / 1024, p->total, p->free, p->reserved, p->surplus);
    }
}

static void render_keyspace(struct buf *out, const struct info_source *s) {
    for (size_t i = 0; i < s->db_count; i++) {
        const struct info_db *db = &s->dbs[i];
        if (db->keys != 0) {
            buf_printf(out, "db%zu:keys=%" PRIu64 ",expires=%" PRIu64 ",avg_ttl=%" PRIu64 "\r\n", i,
                       db->keys, db->expires, db->avg_ttl_ms);
        }
    }
}

/* ---- INFO ---------------------------------------------------------------------------------- */

static void render_section(struct buf *out, enum info_section section,
                           const struct info_source *s) {
    buf_printf(out, "# %s\r\n", info_section_rows[section].title);
    for (size_t i = 0; i < info_row_count; i++) {
        const struct info_row *row = &info_rows[i];
        if (row->section == section) {
            buf_printf(out, "%s:", row->name);
            append_value(out, row->type, value_of(row, s));
            buf_append_cstr(out, "\r\n");
        }
    }
    if (section == INFO_MEMORY) {
        render_pools(out, s);
    } else if (section == INFO_COMMANDSTATS) {
        render_commands(out, s);
    } else if (section == INFO_LATENCYSTATS) {
        render_latencies(out, s);
    } else if (section == INFO_ERRORSTATS) {
        render_errors(out, s);
    } else if (section == INFO_KEYSPACE) {
        render_keyspace(out, s);
    }
}

void info_render(struct buf *out, info_section_set sections, const struct info_source *source) {
    bool first = true;
    for (enum info_section i = 0; i < INFO_SECTIONS; i++) {
        if (sections & 1u << i) {
            buf_append_cstr(out, first ? "" : "\r\n");
            render_section(out, i, source);
            first = false;
        }
    }
}

/* ---- page ---------------------------------------------------------------------------------- */

static const char *kind_word(const struct info_row *row) {
    switch (row->origin) {
    case ORIGIN_COUNTER:
        return "counter";
    case ORIGIN_FIXED:
        return "constant";
    case ORIGIN_GAUGE:
    case ORIGIN_VALUE:
    case ORIGIN_DERIVED:
        break;
    }
    return row->type == INFO_IS_TEXT ? "text" : "gauge";
}

/* Lines that are made from lists, described by hand; behind the rows where there are such. */
static const char *const list_lines[INFO_SECTIONS] = {
    [INFO_MEMORY] = "A line for each size of huge page that the kernel has:\n"
                    "`hugetlb_pool_SIZEkB:total=N,free=N,reserved=N,surplus=N`, in OS pages.\n",
    [INFO_MODULES] = "Always empty: there are no modules.\n",
    [INFO_COMMANDSTATS] =
        "A line for each command that was called since start or `CONFIG RESETSTAT`:\n"
        "`cmdstat_NAME:calls=N,usec=N,usec_per_call=R,rejected_calls=N,failed_calls=N`.\n"
        "Calls include failed ones; rejected ones were refused before they ran.\n",
    [INFO_ERRORSTATS] =
        "A line for each first word of error replies: `errorstat_PREFIX:count=N`.\n",
    [INFO_LATENCYSTATS] =
        "A line for each command that was called while `latency-tracking` is on, in microseconds\n"
        "within 1.6 %, with the percentiles of `latency-tracking-info-percentiles`:\n"
        "`latency_percentiles_usec_NAME:p50=R,p99=R,p99.9=R`.\n",
    [INFO_KEYSPACE] =
        "A line for each database that has keys: `dbN:keys=N,expires=N,avg_ttl=MS`.\n",
};

static void write_section_page(struct buf *out, enum info_section section) {
    const struct info_section_row *head = &info_section_rows[section];
    buf_printf(out, "\n## %s (`INFO %s`%s)\n\n", head->title, head->word,
               head->is_default ? "" : ", not in the default set");
    size_t rows = 0;
    for (size_t i = 0; i < info_row_count; i++) {
        const struct info_row *row = &info_rows[i];
        if (row->section == section) {
            if (rows++ == 0) {
                buf_append_cstr(out, "| line | kind | unit | meaning |\n|---|---|---|---|\n");
            }
            buf_printf(out, "| `%s` | %s | %s | %s |\n", row->name, kind_word(row), row->unit,
                       row->help);
        }
    }
    if (list_lines[section] != NULL) {
        buf_printf(out, "%s%s", rows != 0 ? "\n" : "", list_lines[section]);
    }
}

void metrics_write_markdown(struct buf *out) {
    buf_append_cstr(
        out, "# Metrics\n\n"
             "<!-- Generated from include/stats/metrics.def; a test compares. -->\n\n"
             "The lines of `INFO`, in order. `INFO` alone gives the default sections, `INFO all`\n"
             "and `INFO everything` every one, `INFO NAME ...` those named. `CONFIG RESETSTAT`\n"
             "sets counters to 0 and leaves gauges. A constant says what this version is or\n"
             "lacks, under the name that clients ask for.\n");
    for (enum info_section i = 0; i < INFO_SECTIONS; i++) {
        write_section_page(out, i);
    }
}
