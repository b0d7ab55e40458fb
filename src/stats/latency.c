/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats/latency.h"

static const char *const names[LATENCY_EVENTS] = {
#define LATENCY_EVENT_NAME(id, name, what) name,
    LATENCY_EVENT_MAP(LATENCY_EVENT_NAME)
#undef LATENCY_EVENT_NAME
};

const char *latency_event_name(enum latency_event event) {
    return names[event];
}

enum latency_event latency_event_find(struct bytes name) {
    enum latency_event event = 0;
    while (event < LATENCY_EVENTS && !bytes_equal(name, bytes_from_cstr(names[event]))) {
        event++;
    }
    return event;
}

void latency_add(struct latency_monitor *m, enum latency_event event, int64_t now_s, uint64_t ms) {
    struct latency_series *series = &m->series[event];
    struct latency_sample sample = {(uint32_t)now_s, ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX};
    series->max_ms = sample.ms > series->max_ms ? sample.ms : series->max_ms;
    struct latency_sample *last =
        &series->ring[(series->next_idx + LATENCY_SAMPLES - 1) % LATENCY_SAMPLES];
    if (series->count != 0 && last->time_s == sample.time_s) {
        last->ms = sample.ms > last->ms ? sample.ms : last->ms;
        return;
    }
    series->ring[series->next_idx] = sample;
    series->next_idx = (series->next_idx + 1) % LATENCY_SAMPLES;
    series->count += series->count < LATENCY_SAMPLES;
}

bool latency_reset(struct latency_monitor *m, enum latency_event event) {
    bool any = m->series[event].count != 0;
    m->series[event] = (struct latency_series){0};
    return any;
}

struct latency_sample latency_at(const struct latency_series *series, size_t i) {
    size_t oldest = series->next_idx + LATENCY_SAMPLES - series->count;
    return series->ring[(oldest + i) % LATENCY_SAMPLES];
}
