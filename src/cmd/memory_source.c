/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory_source_priv.h"

#include <inttypes.h>
#include <stdio.h>

#include "mem/account.h"
#include "mem/index.h"
#include "stats/process.h"

/* "no_support=0,thp_never=0,..." */
static void write_failures(const struct pages_stats *pages, char out[MEMORY_FAILURES_LEN]) {
    size_t len = 0;
    for (int i = PAGES_REASON_NONE + 1; i < PAGES_REASONS && len < MEMORY_FAILURES_LEN; i++) {
        len += (size_t)snprintf(out + len, MEMORY_FAILURES_LEN - len, "%s%s=%" PRIu64,
                                len != 0 ? "," : "", pages_reason_name((enum pages_reason)i),
                                pages->failures[i]);
    }
}

static const char *last_reason(const struct pages_stats *pages) {
    return pages->last_reason == PAGES_REASON_NONE ? "" : pages_reason_text(pages->last_reason);
}

static void fill_arenas(struct memory_source *m, const struct cmd_context *cx,
                        struct info_source *s) {
    const struct pages_stats *pages = &m->arena;
    pages_get_stats(cx->dbs->env.pages, &m->arena);
    write_failures(pages, m->arena_failures);
    s->arena_hugetlb_asked = cx->config->arena_hugetlb;
    s->arena_asked = pages_kind_name(pages->asked);
    s->arena_bytes = pages->chunks * pages->chunk_bytes;
    s->arena_huge_bytes = pages->huge_chunks * pages->chunk_bytes;
    s->arena_fallback_bytes = pages->fallback_chunks * pages->chunk_bytes;
    s->arena_fallback_reason = last_reason(pages);
    s->arena_failures = m->arena_failures;
    s->arena_huge_page_bytes = pages->huge_page_bytes;
}

static void fill_indexes(struct memory_source *m, struct info_source *s) {
    const struct pages_stats *pages = &m->index;
    m->index = (struct pages_stats){.asked = PAGES_PLAIN};
    if (index_pages() != NULL) {
        pages_get_stats(index_pages(), &m->index);
    }
    write_failures(pages, m->index_failures);
    s->index_asked = pages_kind_name(pages->asked);
    s->index_bytes = pages->chunks * pages->chunk_bytes;
    s->index_huge_bytes = pages->huge_chunks * pages->chunk_bytes;
    s->index_fallback_bytes = pages->fallback_chunks * pages->chunk_bytes;
    s->index_fallback_reason = last_reason(pages);
    s->index_failures = m->index_failures;
    s->index_huge_page_bytes = pages->huge_page_bytes;
}

/* The lines without a size are of the pages that arenas use, or would. */
static void fill_pools(struct memory_source *m, struct info_source *s) {
    struct pages_pool pools[MACHINE_POOLS_MAX];
    size_t mine = m->arena.asked == PAGES_HUGETLB ? m->arena.huge_page_bytes : 0;
    s->hugetlb_page_bytes = mine != 0 ? mine : pages_default_huge_bytes();
    s->pools = m->pools;
    s->pool_count = machine_read_pools("", pools, MACHINE_POOLS_MAX);
    for (size_t i = 0; i < s->pool_count; i++) {
        const struct pages_pool *p = &pools[i];
        m->pools[i] = (struct info_pool){p->page_bytes, p->total, p->free, p->reserved, p->surplus};
        if (p->page_bytes == s->hugetlb_page_bytes) {
            s->hugetlb_pool_total = p->total;
            s->hugetlb_pool_free = p->free;
            s->hugetlb_pool_reserved = p->reserved;
            s->hugetlb_pool_surplus = p->surplus;
        }
    }
    pages_thp_mode(m->thp_mode);
    s->thp_mode = m->thp_mode;
}

static void fill_process(const struct memory_source *m, struct info_source *s) {
    struct process_memory process;
    process_read_memory(&process);
    s->vm_rss_bytes = process.vm_rss_bytes;
    s->hugetlb_pages_bytes = process.hugetlb_pages_bytes;
    s->page_table_bytes = process.page_table_bytes;
    s->anon_huge_pages_bytes =
        process_read_anon_huge_bytes(m->arena.asked == PAGES_THP || m->index.asked == PAGES_THP);
}

static void fill_heap(struct info_source *s) {
    struct account_heap heap;
    account_heap(&heap);
    s->used_memory_index = account_bytes(ACCOUNT_INDEX);
    s->used_memory_order = account_bytes(ACCOUNT_ORDER);
    s->used_memory_values = account_bytes(ACCOUNT_VALUE);
    s->allocator_allocated = heap.allocated_bytes;
    s->allocator_active = heap.active_bytes;
    s->allocator_resident = heap.resident_bytes;
    s->mem_allocator = account_allocator_name();
}

static void fill_clients(const struct cmd_context *cx, struct info_source *s) {
    s->mem_clients_normal = cx->clients.use.memory_bytes;
}

void memory_source_fill(struct memory_source *m, struct cmd_context *cx, struct info_source *s) {
    context_sample_memory(cx);
    s->used_memory = cx->used_memory_bytes;
    s->used_memory_peak = cx->peak_memory_bytes;
    s->used_memory_startup = cx->startup_memory_bytes;
    s->total_system_memory = process_system_memory_bytes();
    s->maxmemory = cx->config->maxmemory;
    s->maxmemory_policy = "noeviction";
    fill_heap(s);
    fill_clients(cx, s);
    fill_arenas(m, cx, s);
    fill_indexes(m, s);
    fill_pools(m, s);
    fill_process(m, s);
}
