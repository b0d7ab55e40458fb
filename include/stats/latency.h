/* SPDX-License-Identifier: BSD-3-Clause */
/* latency: what took longer than latency-monitor-threshold, behind the LATENCY commands.
 *
 *   event    a kind of work the loop stood still for: a row of the map below
 *   sample   the worst of an event within one second
 *   series   an event's latest LATENCY_SAMPLES samples, and the worst of all times
 *
 * Fixed memory, no allocation; zero-initialised is empty. Whoever does the work measures it and
 * compares it with the threshold. Single-threaded. */
#ifndef STATS_LATENCY_H
#define STATS_LATENCY_H

#include "base/buf.h"
#include "base/bytes.h"

#define LATENCY_SAMPLES 160

/* X(id, name, what it is): names are Redis's where it has one. */
#define LATENCY_EVENT_MAP(X)                                                                       \
    X(COMMAND, "command", "a command that may take long by its nature")                            \
    X(FAST_COMMAND, "fast-command", "a command of constant or logarithmic time")                   \
    X(EXPIRE, "expire-cycle", "removing keys whose time has come")                                 \
    X(REAP, "reaper", "freeing big values and flushed databases")                                  \
    X(COMPACT, "active-defrag-cycle", "moving records out of thinning memory")                     \
    X(FORK, "fork", "making the child of a background save")                                       \
    X(SAVE, "save", "writing a snapshot in the foreground")                                        \
    X(LOAD, "load", "reading a snapshot, other clients being served in between")                   \
    X(CRON, "cron", "what is done a few times a second, the cycles above included")                \
    X(LOOP, "eventloop", "all of one turn: requests of many clients, replies, timers")

enum latency_event {
#define LATENCY_EVENT_ID(id, name, what) LATENCY_##id,
    LATENCY_EVENT_MAP(LATENCY_EVENT_ID)
#undef LATENCY_EVENT_ID
        LATENCY_EVENTS
};

struct latency_sample {
    uint32_t time_s; /* Unix time */
    uint32_t ms;     /* never 0 */
};

struct latency_series {
    struct latency_sample ring[LATENCY_SAMPLES];
    uint32_t next_idx, count;
    uint32_t max_ms; /* since the last reset; 0: nothing was seen */
};

struct latency_monitor {
    struct latency_series series[LATENCY_EVENTS];
};

/* 160 × 8 + 12 bytes a series. */
static_assert(sizeof(struct latency_monitor) == LATENCY_EVENTS * 1292, "a table, 13 KB");

const char *latency_event_name(enum latency_event event);

/* By its exact name; LATENCY_EVENTS when there is none. */
enum latency_event latency_event_find(struct bytes name);

/* One more occurrence, of 1 ms or more. O(1). */
void latency_add(struct latency_monitor *m, enum latency_event event, int64_t now_s, uint64_t ms);

/* Forget an event; false when there was nothing of it. */
bool latency_reset(struct latency_monitor *m, enum latency_event event);

/* The i-th sample, oldest first; i < series.count. */
struct latency_sample latency_at(const struct latency_series *series, size_t i);

/* LATENCY GRAPH: samples as columns, their ages below, as Redis draws it. The event has samples. */
void latency_write_graph(const struct latency_monitor *m, enum latency_event event, int64_t now_s,
                         struct buf *out);

/* LATENCY DOCTOR: events in words, and what to do about them. */
void latency_write_report(const struct latency_monitor *m, size_t threshold_ms, int64_t now_s,
                          struct buf *out);

#endif
