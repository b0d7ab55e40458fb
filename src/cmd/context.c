/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/context.h"

#include "base/clock.h"
#include "mem/account.h"

size_t context_used_memory(const struct cmd_context *cx) {
    struct account_heap heap;
    struct pages_stats pages;
    account_heap(&heap);
    pages_get_stats(cx->dbs->env.pages, &pages);
    return heap.allocated_bytes + pages.chunks * pages.chunk_bytes;
}

void context_refresh_clock(struct cmd_context *cx) {
    cx->now_ms = clock_realtime_ms();
    cx->dbs->now_ms = cx->now_ms;
}
