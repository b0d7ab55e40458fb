/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats/metrics.h"

#define RATE_PERIOD_US 100000

void metrics_reset(struct metrics *m) {
#define COUNTER(section, field, unit, help) m->field = 0;
#define GAUGE(section, field, unit, help)
#define VALUE(section, type, field, unit, help)
#define DERIVED(section, type, name, function, unit, help)
#define FIXED(section, name, text, help)
#include "stats/metrics.def"
#undef COUNTER
#undef GAUGE
#undef VALUE
#undef DERIVED
#undef FIXED
}

/* ---- errors by prefix ---------------------------------------------------------------------- */

/* Replies without a prefix of their own are counted as ERR. */
static struct bytes prefix_of(struct bytes text) {
    size_t len = 0;
    while (len < text.len && text.ptr[len] != ' ') {
        char c = text.ptr[len];
        bool good = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!good || len == ERROR_PREFIX_MAX_LEN) {
            return BYTES_LIT("ERR");
        }
        len++;
    }
    return len > 0 ? BYTES(text.ptr, len) : BYTES_LIT("ERR");
}

void error_counts_add(struct error_counts *e, struct bytes text) {
    struct bytes prefix = prefix_of(text);
    size_t at = 0;
    int order = 1;
    while (at < e->count &&
           (order = bytes_compare(bytes_from_cstr(e->rows[at].prefix), prefix)) < 0) {
        at++;
    }
    if (at == e->count || order != 0) {
        if (e->count == ERROR_COUNTS_MAX) {
            return;
        }
        memmove(&e->rows[at + 1], &e->rows[at], (e->count - at) * sizeof(e->rows[0]));
        e->count++;
        e->rows[at] = (struct error_count){0};
        memcpy(e->rows[at].prefix, prefix.ptr, prefix.len);
    }
    e->rows[at].replies++;
}

void error_counts_reset(struct error_counts *e) {
    e->count = 0;
}

/* ---- rates --------------------------------------------------------------------------------- */

void rates_sample(struct rates *r, const struct metrics *m, int64_t monotonic_us) {
    const uint64_t now[RATES] = {
        [RATE_COMMANDS] = m->total_commands_processed,
        [RATE_INPUT_BYTES] = m->total_net_input_bytes,
        [RATE_OUTPUT_BYTES] = m->total_net_output_bytes,
    };
    bool first = r->last_us == 0;
    int64_t elapsed_us = monotonic_us - r->last_us;
    if (!first && elapsed_us < RATE_PERIOD_US) {
        return;
    }
    bool went_back = false;
    for (size_t i = 0; i < RATES; i++) {
        went_back |= now[i] < r->last[i];
    }
    for (size_t i = 0; i < RATES && !first && !went_back; i++) {
        r->per_second[i][r->next] = (double)(now[i] - r->last[i]) * 1e6 / (double)elapsed_us;
    }
    r->next = first || went_back ? r->next : (r->next + 1) % RATE_SAMPLES;
    memcpy(r->last, now, sizeof(now));
    r->last_us = monotonic_us;
}

double rates_get(const struct rates *r, enum rate_kind kind) {
    double sum = 0;
    for (size_t i = 0; i < RATE_SAMPLES; i++) {
        sum += r->per_second[kind][i];
    }
    return sum / RATE_SAMPLES;
}
