/* SPDX-License-Identifier: BSD-3-Clause */
/* A row of metrics.def at run time. */
#ifndef STATS_ROW_PRIV_H
#define STATS_ROW_PRIV_H

#include "stats/info.h"

enum info_type {
    INFO_IS_UINT,
    INFO_IS_INT,
    INFO_IS_TEXT,
    INFO_IS_HUMAN,
    INFO_IS_REAL2,
    INFO_IS_REAL6,
    INFO_IS_PERCENT
};

enum info_origin { ORIGIN_COUNTER, ORIGIN_GAUGE, ORIGIN_VALUE, ORIGIN_DERIVED, ORIGIN_FIXED };

union info_value {
    uint64_t u; /* UINT HUMAN */
    int64_t i;  /* INT */
    double d;   /* REAL2 REAL6 PERCENT */
    const char *s;
};

typedef union info_value info_derive(const struct info_source *s);

struct info_row {
    const char *name;
    const char *unit;
    const char *help;
    const char *text;    /* FIXED */
    info_derive *derive; /* DERIVED */
    size_t offset;       /* COUNTER GAUGE: in struct metrics; VALUE: in struct info_source */
    enum info_section section;
    enum info_type type;
    enum info_origin origin;
};

extern const struct info_row info_rows[];
extern const size_t info_row_count;

struct info_section_row {
    const char *word;  /* asks for it */
    const char *title; /* heads it */
    bool is_default;
};
extern const struct info_section_row info_section_rows[INFO_SECTIONS];

info_derive derived_arch_bits, derived_uptime_days, derived_configured_hz;
info_derive derived_used_memory, derived_used_memory_peak, derived_peak_perc;
info_derive derived_total_memory, derived_maxmemory, derived_resident;
info_derive derived_allocator_frag, derived_allocator_frag_bytes;
info_derive derived_allocator_rss, derived_allocator_rss_bytes;
info_derive derived_frag, derived_frag_bytes, derived_loaded_perc, derived_footprint;

#endif
