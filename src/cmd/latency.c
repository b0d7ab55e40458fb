/* SPDX-License-Identifier: BSD-3-Clause */
/* LATENCY: the monitor's samples (stats/latency.h) and the commands' histograms. */
#include "stats/latency.h"

#include "cmd/args.h"
#include "cmd/lookup.h"
#include "cmd/table.h"
#include "handlers_priv.h"

/* ---- samples ------------------------------------------------------------------------------- */

static void reply_sample(struct reply *r, struct latency_sample sample) {
    reply_integer(r, sample.time_s);
    reply_integer(r, sample.ms);
}

void latency_latest_command(struct call *call) {
    const struct latency_monitor *m = &call->cx->latency;
    size_t count = 0;
    for (size_t i = 0; i < LATENCY_EVENTS; i++) {
        count += m->series[i].count != 0;
    }
    reply_array(&call->reply, count);
    for (enum latency_event e = 0; e < LATENCY_EVENTS; e++) {
        const struct latency_series *series = &m->series[e];
        if (series->count != 0) {
            reply_array(&call->reply, 4);
            reply_bulk(&call->reply, bytes_from_cstr(latency_event_name(e)));
            reply_sample(&call->reply, latency_at(series, series->count - 1));
            reply_integer(&call->reply, series->max_ms);
        }
    }
}

/* The series an argument names, NULL when there is nothing in it or no such event. */
static const struct latency_series *find_series(const struct call *call, enum latency_event *e) {
    *e = latency_event_find(call->argv[2]);
    const struct latency_series *series = &call->cx->latency.series[*e];
    return *e < LATENCY_EVENTS && series->count != 0 ? series : NULL;
}

void latency_history_command(struct call *call) {
    enum latency_event e;
    const struct latency_series *series = find_series(call, &e);
    size_t count = series != NULL ? series->count : 0;
    reply_array(&call->reply, count);
    for (size_t i = 0; i < count; i++) {
        reply_array(&call->reply, 2);
        reply_sample(&call->reply, latency_at(series, i));
    }
}

void latency_reset_command(struct call *call) {
    struct latency_monitor *m = &call->cx->latency;
    int64_t count = 0;
    for (size_t i = 2; i < call->argc; i++) {
        enum latency_event e = latency_event_find(call->argv[i]);
        count += e < LATENCY_EVENTS && latency_reset(m, e);
    }
    for (enum latency_event e = 0; call->argc == 2 && e < LATENCY_EVENTS; e++) {
        count += latency_reset(m, e);
    }
    reply_integer(&call->reply, count);
}

static void reply_text(struct call *call, struct buf *text) {
    if (text->failed) {
        args_nomem(call);
    } else {
        reply_verbatim(&call->reply, "txt", buf_bytes(text));
    }
    buf_deinit(text);
}

void latency_graph_command(struct call *call) {
    enum latency_event e;
    struct buf text = {0};
    if (find_series(call, &e) == NULL) {
        struct bytes name = call->argv[2];
        reply_errorf(&call->reply, "ERR No samples available for event '%.*s'", (int)name.len,
                     name.ptr);
        return;
    }
    latency_write_graph(&call->cx->latency, e, call->cx->now_ms / 1000, &text);
    reply_text(call, &text);
}

void latency_doctor_command(struct call *call) {
    struct cmd_context *cx = call->cx;
    struct buf text = {0};
    latency_write_report(&cx->latency, cx->config->latency_monitor_threshold, cx->now_ms / 1000,
                         &text);
    reply_text(call, &text);
}

/* ---- histograms ---------------------------------------------------------------------------- */

/* Redis tells of calls up to 2^10 ns, 2^11 ns and so on, by the upper end of the narrow bucket at that
 * place in its own histogram, in whole microseconds: 1, 2, 4, 8, 16, 33, 66, 132 ... */
#define FIRST_POWER 10
#define LEVELS (HISTOGRAM_VALUE_BITS - FIRST_POWER + 1)

static int64_t level_usec(unsigned power) {
    return (int64_t)(((UINT64_C(1) << power) + (UINT64_C(1) << (power - 7)) - 1) / 1000);
}

/* The levels at which there are more calls than at the one before, and all calls up to each. */
static size_t cumulate(const struct histogram *h, unsigned powers[LEVELS], uint64_t calls[LEVELS]) {
    size_t count = 0, bucket = 0;
    uint64_t seen = 0;
    for (unsigned power = FIRST_POWER; power < FIRST_POWER + LEVELS; power++) {
        uint64_t before = seen;
        for (; bucket <= histogram_bucket_of(UINT64_C(1) << power); bucket++) {
            seen += h->bucket_count[bucket];
        }
        if (seen != before) {
            powers[count] = power;
            calls[count++] = seen;
        }
    }
    return count;
}

static void reply_histogram(struct reply *r, const struct command *row, const struct histogram *h) {
    unsigned powers[LEVELS];
    uint64_t calls[LEVELS];
    size_t count = cumulate(h, powers, calls);
    reply_bulk(r, bytes_from_cstr(row->name));
    reply_map(r, 2);
    reply_bulk(r, bytes_from_cstr("calls"));
    reply_integer(r, (int64_t)h->count);
    reply_bulk(r, bytes_from_cstr("histogram_usec"));
    reply_map(r, count);
    for (size_t i = 0; i < count; i++) {
        reply_integer(r, level_usec(powers[i]));
        reply_integer(r, (int64_t)calls[i]);
    }
}

/* Of these rows the ones that were called; r NULL only counts them. */
static size_t each_called(const struct cmd_context *cx, size_t first, size_t count,
                          struct reply *r) {
    size_t called = 0;
    for (size_t id = first; id < first + count; id++) {
        const struct histogram *h = cx->command_latency[id];
        if (h != NULL && h->count != 0) {
            called++;
            if (r != NULL) {
                reply_histogram(r, table_at(id), h);
            }
        }
    }
    return called;
}

/* All rows that the arguments name; a container's name means its subcommands. */
static size_t each_named(const struct call *call, struct reply *r) {
    size_t called = 0;
    for (size_t i = 2; i < call->argc; i++) {
        const struct command *row = table_find_full(call->argv[i]);
        if (row != NULL) {
            called += each_called(call->cx, row->id, 1, r);
            called += each_called(call->cx, row->sub_first, row->sub_count, r);
        }
    }
    return call->argc == 2 ? each_called(call->cx, 0, table_count(), r) : called;
}

void latency_histogram_command(struct call *call) {
    reply_map(&call->reply, each_named(call, NULL));
    each_named(call, &call->reply);
}

void latency_help_command(struct call *call) {
    static const char *const lines[] = {
        "DOCTOR",
        "    What was slow, in words, and what to do about it.",
        "GRAPH <event>",
        "    The samples of an event as a picture.",
        "HISTOGRAM [<command> ...]",
        "    How many calls of commands took how long; of all that were called by default.",
        "HISTORY <event>",
        "    The samples of an event: time and milliseconds.",
        "LATEST",
        "    The latest sample of each event, and its worst.",
        "RESET [<event> ...]",
        "    Forgets samples, of all events by default.",
        NULL};
    args_help(call, lines);
}
