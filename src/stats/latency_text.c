/* SPDX-License-Identifier: BSD-3-Clause */
/* The samples as people read them: a graph and a report. */
#include <inttypes.h>
#include <stdio.h>

#include "stats/latency.h"

#define GRAPH_COLUMNS 80
#define GRAPH_ROWS 4
#define AGE_LEN 16

/* ---- graph --------------------------------------------------------------------------------- */

struct range {
    uint32_t low_ms, high_ms;
};

static struct range range_of(const struct latency_series *series) {
    struct range r = {UINT32_MAX, 0};
    for (size_t i = 0; i < series->count; i++) {
        uint32_t ms = latency_at(series, i).ms;
        r.low_ms = ms < r.low_ms ? ms : r.low_ms;
        r.high_ms = ms > r.high_ms ? ms : r.high_ms;
    }
    return r;
}

/* A column is a stem of '|' with one of three tops, so a row has three heights. */
static char cell(uint32_t ms, struct range r, size_t row) {
    static const char tops[] = {'_', 'o', '#'};
    const size_t steps = GRAPH_ROWS * sizeof(tops);
    size_t span = r.high_ms - r.low_ms;
    size_t height = span == 0 ? 0 : (size_t)(ms - r.low_ms) * steps / span;
    height = height < steps ? height : steps - 1;
    if (height / sizeof(tops) == row) {
        return tops[height % sizeof(tops)];
    }
    return height / sizeof(tops) > row ? '|' : ' ';
}

static void format_age(char out[AGE_LEN], int64_t age_s) {
    static const struct {
        int64_t s;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}};
    age_s = age_s < 0 ? 0 : age_s;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (age_s >= units[i].s) {
            snprintf(out, AGE_LEN, "%u%c", (unsigned)(age_s / units[i].s), units[i].unit);
            return;
        }
    }
    snprintf(out, AGE_LEN, "%us", (unsigned)age_s);
}

/* Ages run downwards, a character a line; the line between the columns and them is empty. */
static void write_ages(const struct latency_series *series, size_t first, size_t end, int64_t now_s,
                       struct buf *out) {
    size_t longest = 0;
    for (size_t line = 0; line <= longest; line++) {
        for (size_t i = first; i < end; i++) {
            char age[AGE_LEN];
            format_age(age, now_s - latency_at(series, i).time_s);
            size_t len = strlen(age);
            longest = len > longest ? len : longest;
            buf_append_char(out, line > 0 && line <= len ? age[line - 1] : ' ');
        }
        buf_append_char(out, '\n');
    }
}

void latency_write_graph(const struct latency_monitor *m, enum latency_event event, int64_t now_s,
                         struct buf *out) {
    const struct latency_series *series = &m->series[event];
    struct range r = range_of(series);
    buf_printf(out, "%s - high %u ms, low %u ms (all time high %u ms)\n", latency_event_name(event),
               r.high_ms, r.low_ms, series->max_ms);
    for (size_t i = 0; i < GRAPH_COLUMNS; i++) {
        buf_append_char(out, '-');
    }
    buf_append_char(out, '\n');
    for (size_t first = 0, end; first < series->count; first = end) {
        end = first + GRAPH_COLUMNS < series->count ? first + GRAPH_COLUMNS : series->count;
        buf_append_cstr(out, first > 0 ? "\n" : "");
        for (size_t row = GRAPH_ROWS; row-- > 0;) {
            for (size_t i = first; i < end; i++) {
                buf_append_char(out, cell(latency_at(series, i).ms, r, row));
            }
            buf_append_char(out, '\n');
        }
        write_ages(series, first, end, now_s, out);
    }
}

/* ---- report -------------------------------------------------------------------------------- */

static const char *const advice[LATENCY_EVENTS] = {
    [LATENCY_COMMAND] =
        "Commands over many elements (KEYS, SMEMBERS, SORT, SUNION, LRANGE and the like of big "
        "collections) take as long as there are elements: take parts, with SCAN, HSCAN, SSCAN, "
        "ZSCAN or ranges. INFO commandstats and LATENCY HISTOGRAM tell which commands they are.",
    [LATENCY_FAST_COMMAND] =
        "Commands that are fast by nature were slow: is the machine short of CPU or memory, does "
        "it swap, or do they carry very long values or very many arguments?",
    [LATENCY_EXPIRE] = "Expiry works within a budget of time: when it is over it, the machine is "
                       "short of CPU.",
    [LATENCY_REAP] = "Freeing works within a budget of time: when it is over it, the kernel is "
                     "slow to take memory back.",
    [LATENCY_COMPACT] = "Compaction works within a budget of time: when it is over it, the machine "
                        "is short of CPU.",
    [LATENCY_FORK] =
        "A fork copies the page tables, 8 bytes for each 4 KiB: transparent huge pages "
        "(--arena-thp) have fewer; or save less often.",
    [LATENCY_SAVE] = "SAVE stops the server until the file is on the disk: use BGSAVE.",
    [LATENCY_LOAD] = "A snapshot is read while other commands are refused: load at the start.",
    [LATENCY_CRON] = "Work done a few times a second was slow: is the machine short of CPU? "
                     "A greater hz makes its parts smaller.",
    [LATENCY_LOOP] = "A turn serves all clients that are ready: what is not told under another "
                     "event is many requests or replies at once, or the kernel's network code.",
};

/* Returns whether there was anything. */
static bool write_event(const struct latency_monitor *m, enum latency_event event, unsigned number,
                        int64_t now_s, struct buf *out) {
    const struct latency_series *series = &m->series[event];
    size_t count = series->count;
    if (count == 0) {
        return false;
    }
    double sum_ms = 0, deviation_ms = 0;
    for (size_t i = 0; i < count; i++) {
        sum_ms += latency_at(series, i).ms;
    }
    double mean_ms = sum_ms / (double)count;
    for (size_t i = 0; i < count; i++) {
        double off_ms = latency_at(series, i).ms - mean_ms;
        deviation_ms += off_ms < 0 ? -off_ms : off_ms;
    }
    int64_t span_s = now_s - latency_at(series, 0).time_s;
    buf_printf(out,
               "%u. %s: %zu latency spikes (average %.0fms, mean deviation %.0fms, period %.2f "
               "sec). Worst all time event %ums.\n",
               number, latency_event_name(event), count, mean_ms, deviation_ms / (double)count,
               (double)(span_s < 0 ? 0 : span_s) / (double)count, series->max_ms);
    return true;
}

void latency_write_report(const struct latency_monitor *m, size_t threshold_ms, int64_t now_s,
                          struct buf *out) {
    unsigned seen = 0;
    for (enum latency_event e = 0; e < LATENCY_EVENTS; e++) {
        seen += write_event(m, e, seen + 1, now_s, out);
    }
    if (seen == 0) {
        buf_append_cstr(out,
                        threshold_ms == 0
                            ? "Latency monitoring is off: CONFIG SET latency-monitor-threshold "
                              "MILLISECONDS turns it on.\n"
                            : "Nothing took longer than latency-monitor-threshold so far.\n");
        return;
    }
    buf_append_cstr(out, "\n");
    for (enum latency_event e = 0; e < LATENCY_EVENTS; e++) {
        if (m->series[e].count != 0) {
            buf_printf(out, "- %s: %s\n", latency_event_name(e), advice[e]);
        }
    }
}
