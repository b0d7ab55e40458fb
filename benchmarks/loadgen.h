/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the load generator: what the options say, the engine that drives the
 * connections, and CPU times. Errors of any kind end the process through die(), with a line that
 * says what happened: a benchmark that goes on after a wrong reply measures nothing. */
#ifndef BENCHMARKS_LOADGEN_H
#define BENCHMARKS_LOADGEN_H

#include "base/histogram.h"

enum exit_code { EXIT_RUN_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_SERVER = 3 };

#define ID_DIGITS 12                   /* field:000000000042, key:000000000042 */
#define ID_MAX UINT64_C(1000000000000) /* 10^ID_DIGITS */
#define VALUE_MAX_BYTES (512u << 20)   /* Redis's proto-max-bulk-len */

enum workload { WORK_LOAD, WORK_HGET, WORK_HSET, WORK_GET, WORK_SET, WORK_MIXED, WORK_COMMAND };

struct options {
    enum workload workload;
    const char *host;
    const char *port;
    const char *key;
    bool key_given;
    bool strings; /* load: many string keys instead of one hash */
    bool progress;
    const char *command; /* run command: words with places */
    const char *series;  /* file for the latency of each batch, NULL: none */
    uint64_t first;      /* run command: where {seq} begins */
    double rate;         /* requests a second of an open loop, 0: a closed loop */
    uint64_t fields;
    uint64_t value_bytes;
    uint64_t per_command; /* load: fields in one HSET, keys in one MSET */
    uint64_t pipeline;
    uint64_t connections;
    uint64_t ops; /* run: stop after so many; 0 is by time */
    uint64_t write_pct;
    uint64_t seed;
    uint64_t pid; /* of the server, 0: do not look at it */
    int64_t cpu;  /* pin to it, -1: do not */
    double seconds;
    double warmup_seconds;
};

/* Print "loadgen: " and the message on standard error and exit. */
void die(enum exit_code code, const char *fmt, ...) PRINTF_LIKE(2, 3) __attribute__((noreturn));

/* What one phase of traffic amounted to. */
struct result {
    uint64_t ops;       /* requests answered; items, for load */
    uint64_t new_items; /* sum of the integer replies: fields that were not there before */
    double seconds;
    uint64_t reply_elements; /* run command: of all replies together */
    uint64_t reply_nils;
    bool overrun;                /* open loop: given up, the server was too far behind */
    struct histogram latency_ns; /* of batches, from when they were due to the last reply; in a
                                    closed loop a batch is due when it is sent */
    struct histogram lag_ns;     /* open loop: from when they were due until they were sent */
    uint32_t *series;            /* latencies in order, or NULL */
    size_t series_len;
    size_t series_cap;
};

struct engine;

/* Connect; the options must outlive the engine. */
struct engine *engine_create(const struct options *opt);
void engine_destroy(struct engine *e);

/* Every connection keeps one batch outstanding (or, with a rate, batches are sent when they are
 * due) until `ops` requests are sent or `seconds` are over (0: no limit of time), then the last
 * replies are awaited. load ends with its items instead. Adds to *out. */
void engine_run(struct engine *e, uint64_t ops, double seconds, struct result *out);

struct cpu_time {
    uint64_t total_ns;
    uint64_t user_ns; /* by the kernel's accounting: sampled at ticks on most kernels */
    uint64_t sys_ns;
    bool exact; /* total_ns comes from schedstat or getrusage, not from ticks */
};

struct cpu_time cpu_time_own(void);
struct cpu_time cpu_time_of(uint64_t pid); /* all threads; zeros for pid 0 */
struct cpu_time cpu_time_since(struct cpu_time now, struct cpu_time then);

#endif
