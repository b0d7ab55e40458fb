/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/context.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cmd/block.h"
#include "cmd/table.h"
#include "mem/account.h"
#include "mem/index.h"

static void random_id(struct rng *rng, char id[41]) {
    for (int i = 0; i < 40; i += 8) {
        snprintf(id + i, 9, "%08x", (unsigned)(rng_next(rng) >> 32));
    }
}

enum status context_init(struct cmd_context *cx, struct config *config, struct dbset *dbs,
                         struct metrics *metrics) {
    *cx = (struct cmd_context){.config = config, .dbs = dbs, .metrics = metrics};
    cx->command_stats = calloc(table_count(), sizeof(*cx->command_stats));
    cx->command_latency = calloc(table_count(), sizeof(*cx->command_latency));
    if (cx->command_stats == NULL || cx->command_latency == NULL || block_setup(cx) != ST_OK ||
        background_setup(cx) != ST_OK) {
        context_deinit(cx);
        return ST_NOMEM;
    }
    rng_init(&cx->rng, rng_entropy());
    random_id(&cx->rng, cx->run_id);
    random_id(&cx->rng, cx->repl_id);
    context_refresh_clock(cx);
    cx->started_ms = cx->now_ms;
    persist_setup(cx);
    return ST_OK;
}

void context_deinit(struct cmd_context *cx) {
    background_teardown(cx);
    block_teardown(cx);
    for (size_t i = 0; cx->command_latency != NULL && i < table_count(); i++) {
        free(cx->command_latency[i]);
    }
    free(cx->command_latency);
    free(cx->command_stats);
    cx->command_latency = NULL;
    cx->command_stats = NULL;
}

void context_sample_memory(struct cmd_context *cx) {
    struct account_heap heap;
    struct pages_stats pages;
    account_heap(&heap);
    pages_get_stats(cx->dbs->env.pages, &pages);
    cx->used_memory_bytes = heap.allocated_bytes + pages.chunks * pages.chunk_bytes;
    if (cx->used_memory_bytes > cx->peak_memory_bytes) {
        cx->peak_memory_bytes = cx->used_memory_bytes;
    }
}

bool context_may_fork(const struct cmd_context *cx, const char **why) {
    if (pages_asked(cx->dbs->env.pages) == PAGES_HUGETLB) {
        *why = "arenas are on reserved huge pages (--arena-hugetlb), which a fork would have to "
               "copy from "
               "the same pool: use SAVE";
        return false;
    }
    if (index_pages() != NULL && pages_asked(index_pages()) == PAGES_HUGETLB) {
        *why = "indexes are on reserved huge pages (--index-hugepages hugetlb), which a fork would "
               "have to copy from the same pool: use SAVE";
        return false;
    }
    return true;
}

void context_refresh_clock(struct cmd_context *cx) {
    cx->now_ms = clock_realtime_ms();
    cx->dbs->now_ms = cx->now_ms;
}

void context_note_latency(struct cmd_context *cx, enum latency_event event, uint64_t ns) {
    size_t threshold_ms = cx->config->latency_monitor_threshold;
    uint64_t ms = ns / 1000000;
    if (threshold_ms != 0 && ms >= threshold_ms) {
        latency_add(&cx->latency, event, clock_realtime_ms() / 1000, ms);
    }
}

void context_reset_command_stats(struct cmd_context *cx) {
    memset(cx->command_stats, 0, table_count() * sizeof(*cx->command_stats));
    for (size_t i = 0; i < table_count(); i++) {
        free(cx->command_latency[i]);
        cx->command_latency[i] = NULL;
    }
}
