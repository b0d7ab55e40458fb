/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of memory, for INFO, MEMORY STATS and MEMORY DOCTOR. */
#ifndef CMD_MEMORY_SOURCE_PRIV_H
#define CMD_MEMORY_SOURCE_PRIV_H

#include "cmd/context.h"
#include "mem/machine.h"
#include "stats/info.h"

#define MEMORY_FAILURES_LEN 192

/* What the lines of an info_source point to. */
struct memory_source {
    struct pages_stats arena, index; /* index: all zero when it is not on pages */
    char arena_failures[MEMORY_FAILURES_LEN], index_failures[MEMORY_FAILURES_LEN];
    char thp_mode[PAGES_THP_MODE_LEN];
    struct info_pool pools[MACHINE_POOLS_MAX];
};

/* Measure and fill the section of memory of s. m has to live as long as s is used. */
void memory_source_fill(struct memory_source *m, struct cmd_context *cx, struct info_source *s);

#endif
