/* SPDX-License-Identifier: BSD-3-Clause */
/* info: renders INFO. It measures nothing itself: the server fills a struct info_source (plain
 * data, views, no ownership) and renders from it.
 *
 *   type     C type of the field   printed as
 *   UINT     uint64_t              decimal
 *   INT      int64_t               decimal
 *   TEXT     const char *          as it is; NULL prints as nothing
 *   HUMAN    uint64_t              1.50M
 *   REAL2    double                two decimals
 *   REAL6    double                six decimals
 *   PERCENT  double                two decimals and a '%'
 */
#ifndef STATS_INFO_H
#define STATS_INFO_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/histogram.h"
#include "stats/metrics.h"

/* One row a section: id, the word that asks for it, its title, in the default set? In order. */
#define INFO_SECTION_MAP(X)                                                                        \
    X(SERVER, "server", "Server", true)                                                            \
    X(CLIENTS, "clients", "Clients", true)                                                         \
    X(MEMORY, "memory", "Memory", true)                                                            \
    X(PERSISTENCE, "persistence", "Persistence", true)                                             \
    X(STATS, "stats", "Stats", true)                                                               \
    X(REPLICATION, "replication", "Replication", true)                                             \
    X(CPU, "cpu", "CPU", true)                                                                     \
    X(MODULES, "modules", "Modules", true)                                                         \
    X(COMMANDSTATS, "commandstats", "Commandstats", false)                                         \
    X(ERRORSTATS, "errorstats", "Errorstats", true)                                                \
    X(LATENCYSTATS, "latencystats", "Latencystats", false)                                         \
    X(CLUSTER, "cluster", "Cluster", true)                                                         \
    X(KEYSPACE, "keyspace", "Keyspace", true)

enum info_section {
#define INFO_SECTION_ID(id, word, title, is_default) INFO_##id,
    INFO_SECTION_MAP(INFO_SECTION_ID)
#undef INFO_SECTION_ID
        INFO_SECTIONS
};

/* A set of sections: bit 1 << INFO_x. */
typedef uint32_t info_section_set;

struct info_db {
    uint64_t keys; /* a database without keys is not shown */
    uint64_t expires;
    uint64_t avg_ttl_ms;
};

/* The kernel's reserved huge pages of one size. */
struct info_pool {
    uint64_t page_bytes;
    uint64_t total, free, reserved, surplus; /* OS pages */
};

struct info_command {
    const char *name; /* "get", "config|set" */
    struct command_stats stats;
    const struct histogram *latency_ns; /* NULL: no line in latencystats */
};

#define INFO_TYPE_UINT uint64_t
#define INFO_TYPE_INT int64_t
#define INFO_TYPE_TEXT const char *
#define INFO_TYPE_HUMAN uint64_t
#define INFO_TYPE_REAL2 double
#define INFO_TYPE_REAL6 double
#define INFO_TYPE_PERCENT double

struct info_source {
#define COUNTER(section, field, unit, help)
#define GAUGE(section, field, unit, help)
#define VALUE(section, type, field, unit, help) INFO_TYPE_##type field;
#define DERIVED(section, type, name, function, unit, help)
#define FIXED(section, name, text, help)
#include "stats/metrics.def"
#undef COUNTER
#undef GAUGE
#undef VALUE
#undef DERIVED
#undef FIXED
    const struct metrics *metrics;     /* never NULL */
    const struct error_counts *errors; /* NULL: none */
    const struct info_db *dbs;
    size_t db_count;
    const struct info_pool *pools;
    size_t pool_count;
    const struct info_command *commands; /* those never called are not shown */
    size_t command_count;
    const double *percentiles; /* that latencystats shows */
    size_t percentile_count;
};

/* The sections that INFO's arguments ask for: none means default; "default", "all" and
 * "everything" are sets; unknown words ask for nothing. The server fills only what is asked:
 * (set & 1u << INFO_MEMORY) before it reads /proc. */
info_section_set info_parse_sections(const struct bytes *words, size_t count);

/* Append the sections in order, "# Title\r\nname:value\r\n...", an empty line between them.
 * out->failed tells a lack of memory. */
void info_render(struct buf *out, info_section_set sections, const struct info_source *source);

/* "1.50M" into out (at least 32 bytes), as the *_human lines; terminated. */
void info_format_human(char *out, uint64_t bytes);

/* docs/metrics.md. */
void metrics_write_markdown(struct buf *out);

#endif
