/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics: what the server counts. Plain uint64_t fields that whoever sees the event bumps
 * (metrics->expired_keys++); the rows are in stats/metrics.def. Single-threaded.
 * rates: the moving means behind instantaneous_*. error_counts: error replies by prefix.
 * command_stats: one for each command row, bumped by dispatch. */
#ifndef STATS_METRICS_H
#define STATS_METRICS_H

#include "base/bytes.h"

struct metrics {
#define COUNTER(section, field, unit, help) uint64_t field;
#define GAUGE(section, field, unit, help) uint64_t field;
#define VALUE(section, type, field, unit, help)
#define DERIVED(section, type, name, function, unit, help)
#define FIXED(section, name, text, help)
#include "stats/metrics.def"
#undef COUNTER
#undef GAUGE
#undef VALUE
#undef DERIVED
#undef FIXED
};

/* CONFIG RESETSTAT: counters to 0, gauges as they are. */
void metrics_reset(struct metrics *m);

/* ---- commands ------------------------------------------------------------------------------- */

struct command_stats {
    uint64_t calls;    /* executed, failed ones included */
    uint64_t nsec;     /* spent in them */
    uint64_t rejected; /* refused before execution: arity, auth, OOM */
    uint64_t failed;   /* executed, answered with an error */
};

/* ---- errors by prefix ----------------------------------------------------------------------- */

/* As Redis 7.2: the first word of an error reply, at most 128 different ones; further ones are
 * only in total_error_replies. Sorted by prefix. Zero-initialised is empty. */
#define ERROR_COUNTS_MAX 128
#define ERROR_PREFIX_MAX_LEN 31 /* longer words are not prefixes, and are counted as ERR */

struct error_counts {
    size_t count;
    struct error_count {
        char prefix[ERROR_PREFIX_MAX_LEN + 1];
        uint64_t replies;
    } rows[ERROR_COUNTS_MAX];
};

/* Count one error reply, its text without the leading '-': "WRONGTYPE Operation ...". */
void error_counts_add(struct error_counts *e, struct bytes text);
void error_counts_reset(struct error_counts *e);

/* ---- rates ---------------------------------------------------------------------------------- */

enum rate_kind { RATE_COMMANDS, RATE_INPUT_BYTES, RATE_OUTPUT_BYTES, RATES };

#define RATE_SAMPLES 16 /* as Redis: 1.6 s of history at ten samples a second */

/* Zero-initialised is ready; the first sample only sets the base. */
struct rates {
    int64_t last_us;
    uint64_t last[RATES];
    double per_second[RATES][RATE_SAMPLES];
    size_t next;
};

/* Take a sample; more often than every 100 ms is ignored, so call it from every cron. A counter
 * that went back (RESETSTAT) only sets the base anew. */
void rates_sample(struct rates *r, const struct metrics *m, int64_t monotonic_us);

/* Mean of the last RATE_SAMPLES samples, per second. */
double rates_get(const struct rates *r, enum rate_kind kind);

#endif
