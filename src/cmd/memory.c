/* SPDX-License-Identifier: BSD-3-Clause */
/* MEMORY: of one key, of the heap, of all the process. */
#include <stdio.h>

#include "cmd/args.h"
#include "cmd/lookup.h"
#include "doctor_priv.h"
#include "handlers_priv.h"
#include "mem/account.h"

void memory_usage_command(struct call *call) {
    struct entry e;
    for (size_t i = 3; i < call->argc; i++) {
        int64_t samples;
        if (!args_is(call, i, "SAMPLES") || i + 1 >= call->argc) {
            args_syntax_error(call);
            return;
        }
        if (!args_i64(call, ++i, &samples)) {
            return;
        }
        if (samples < 0) {
            args_syntax_error(call);
            return;
        }
    }
    if (!lookup_key(call, 2, DB_NO_TOUCH, &e)) {
        reply_null(&call->reply);
        return;
    }
    /* exact, from the arena's own counters, so SAMPLES has nothing to choose */
    reply_integer(&call->reply, (int64_t)entry_memory(&e));
}

void memory_purge_command(struct call *call) {
    account_purge();
    reply_ok(&call->reply);
}

static void reply_text(struct call *call, struct buf *text) {
    if (text->failed) {
        reply_error(&call->reply, "OOM out of memory");
    } else {
        reply_verbatim(&call->reply, "txt", buf_bytes(text));
    }
    buf_deinit(text);
}

void memory_malloc_stats_command(struct call *call) {
    struct buf text = {0};
    if (!account_write_stats(&text)) {
        reply_bulk_cstr(&call->reply, "Stats not supported for the current allocator");
        return;
    }
    reply_text(call, &text);
}

void memory_doctor_command(struct call *call) {
    struct cmd_context *cx = call->cx;
    struct memory_source memory;
    struct machine machine;
    struct info_source s = {.metrics = cx->metrics};
    struct buf text = {0};
    memory_source_fill(&memory, cx, &s);
    s.connected_clients = cx->clients.count;
    machine_read("", &machine);
    doctor_write(&(struct doctor_facts){&s, &memory, &machine}, &text);
    reply_text(call, &text);
}

/* ---- MEMORY STATS ---------------------------------------------------------------------------- */

/* A map under way: names and values are appended, pairs counted. */
struct map {
    struct reply *r;
    size_t mark, pairs;
};

static struct map map_begin(struct reply *r) {
    return (struct map){.r = r, .mark = reply_defer(r)};
}

static void map_end(const struct map *m) {
    reply_defer_map(m->r, m->mark, m->pairs);
}

static void name_next(struct map *m, const char *name) {
    reply_bulk_cstr(m->r, name);
    m->pairs++;
}

static void put(struct map *m, const char *name, uint64_t v) {
    name_next(m, name);
    reply_integer(m->r, (int64_t)v);
}

static void put_text(struct map *m, const char *name, const char *v) {
    name_next(m, name);
    reply_bulk_cstr(m->r, v);
}

/* a of b; 0 when there is no b. */
static void put_ratio(struct map *m, const char *name, double a, double b) {
    name_next(m, name);
    reply_double(m->r, b > 0 ? a / b : 0);
}

static void put_ratio_and_rest(struct map *m, const char *ratio, const char *rest, uint64_t a,
                               uint64_t b) {
    put_ratio(m, ratio, (double)a, (double)b);
    put(m, rest, a - b);
}

/* What each database needs beside its data; the sum. */
static size_t put_databases(struct map *m, const struct dbset *dbs) {
    size_t sum = 0;
    for (size_t i = 0; i < dbs->count; i++) {
        struct db_memory memory;
        char name[32];
        if (db_count(dbs->dbs[i]) == 0) {
            continue;
        }
        db_get_memory(dbs->dbs[i], &memory);
        snprintf(name, sizeof(name), "db.%zu", i);
        name_next(m, name);
        struct map of = map_begin(m->r);
        put(&of, "overhead.hashtable.main", memory.index_bytes);
        put(&of, "overhead.hashtable.expires", memory.order_bytes);
        put(&of, "overhead.hashtable.slot-to-keys", 0);
        map_end(&of);
        sum += memory.index_bytes + memory.order_bytes;
    }
    return sum;
}

static void put_data(struct map *m, const struct dbset *dbs, const struct info_source *s,
                     size_t overhead) {
    uint64_t used = s->used_memory, keys = dbset_count(dbs);
    uint64_t data = used > overhead ? used - overhead : 0;
    uint64_t since_start = used > s->used_memory_startup ? used - s->used_memory_startup : 0;
    put(m, "overhead.total", overhead);
    put(m, "keys.count", keys);
    put(m, "keys.bytes-per-key", keys != 0 ? since_start / keys : 0);
    put(m, "dataset.bytes", data);
    put_ratio(m, "dataset.percentage", 100 * (double)data, (double)since_start);
    put_ratio(m, "peak.percentage", 100 * (double)used, (double)s->used_memory_peak);
}

/* Redis's fields, in its order. What this server has not takes no memory. */
static void put_usual(struct map *m, const struct dbset *dbs, const struct info_source *s) {
    static const char *const none[] = {"cluster.links", "aof.buffer", "lua.caches",
                                       "functions.caches"};
    uint64_t resident = s->vm_rss_bytes + s->hugetlb_pages_bytes;
    put(m, "peak.allocated", s->used_memory_peak);
    put(m, "total.allocated", s->used_memory);
    put(m, "startup.allocated", s->used_memory_startup);
    put(m, "replication.backlog", 0);
    put(m, "clients.slaves", 0);
    put(m, "clients.normal", s->mem_clients_normal);
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        put(m, none[i], 0);
    }
    size_t overhead = s->used_memory_startup + s->mem_clients_normal + put_databases(m, dbs);
    put_data(m, dbs, s, overhead);
    put(m, "allocator.allocated", s->allocator_allocated);
    put(m, "allocator.active", s->allocator_active);
    put(m, "allocator.resident", s->allocator_resident);
    put_ratio_and_rest(m, "allocator-fragmentation.ratio", "allocator-fragmentation.bytes",
                       s->allocator_active, s->allocator_allocated);
    put_ratio_and_rest(m, "allocator-rss.ratio", "allocator-rss.bytes", s->allocator_resident,
                       s->allocator_active);
    put_ratio_and_rest(m, "rss-overhead.ratio", "rss-overhead.bytes", resident,
                       s->allocator_resident + s->arena_bytes);
    put_ratio_and_rest(m, "fragmentation", "fragmentation.bytes", resident, s->used_memory);
}

static void put_pages(struct map *m, const char *name, const struct pages_stats *pages) {
    name_next(m, name);
    struct map of = map_begin(m->r);
    put_text(&of, "asked", pages_kind_name(pages->asked));
    put(&of, "page.bytes", pages->huge_page_bytes);
    put(&of, "bytes", pages->chunks * pages->chunk_bytes);
    put(&of, "huge.bytes", pages->huge_chunks * pages->chunk_bytes);
    put(&of, "fallback.bytes", pages->fallback_chunks * pages->chunk_bytes);
    put_text(&of, "fallback.reason", pages_reason_name(pages->last_reason));
    name_next(&of, "failures");
    struct map failures = map_begin(m->r);
    for (int i = PAGES_REASON_NONE + 1; i < PAGES_REASONS; i++) {
        put(&failures, pages_reason_name((enum pages_reason)i), pages->failures[i]);
    }
    map_end(&failures);
    map_end(&of);
}

static void put_pools(struct map *m, const struct info_source *s) {
    name_next(m, "hugetlb.pools");
    struct map of = map_begin(m->r);
    for (size_t i = 0; i < s->pool_count; i++) {
        const struct info_pool *p = &s->pools[i];
        char name[32];
        snprintf(name, sizeof(name), "%zukB", (size_t)p->page_bytes >> 10);
        name_next(&of, name);
        struct map pool = map_begin(m->r);
        put(&pool, "total", p->total);
        put(&pool, "free", p->free);
        put(&pool, "reserved", p->reserved);
        put(&pool, "surplus", p->surplus);
        map_end(&pool);
    }
    map_end(&of);
}

/* What Redis has no names for. */
static void put_ours(struct map *m, const struct memory_source *memory,
                     const struct info_source *s) {
    uint64_t resident = s->vm_rss_bytes + s->hugetlb_pages_bytes;
    put(m, "index.bytes", s->used_memory_index);
    put(m, "order.bytes", s->used_memory_order);
    put(m, "values.bytes", s->used_memory_values);
    put(m, "vm-rss.bytes", s->vm_rss_bytes);
    put(m, "hugetlb.bytes", s->hugetlb_pages_bytes);
    put(m, "thp.bytes", s->anon_huge_pages_bytes);
    put(m, "page-tables.bytes", s->page_table_bytes);
    put(m, "resident.bytes", resident);
    put(m, "footprint.bytes", resident + s->page_table_bytes);
    put_text(m, "thp.mode", s->thp_mode);
    put_pages(m, "arena", &memory->arena);
    put_pages(m, "index", &memory->index);
    put_pools(m, s);
}

void memory_stats_command(struct call *call) {
    struct cmd_context *cx = call->cx;
    struct memory_source memory;
    struct info_source s = {.metrics = cx->metrics};
    memory_source_fill(&memory, cx, &s);
    struct map m = map_begin(&call->reply);
    put_usual(&m, cx->dbs, &s);
    put_ours(&m, &memory, &s);
    map_end(&m);
}

void memory_help_command(struct call *call) {
    static const char *const lines[] = {
        "DOCTOR",
        "    What is wrong with the use of memory, huge pages above all, and what to type.",
        "MALLOC-STATS",
        "    What the allocator tells of itself.",
        "PURGE",
        "    Gives free heap pages back to the kernel.",
        "STATS",
        "    Where the memory is, as names and numbers.",
        "USAGE <key> [SAMPLES <count>]",
        "    Bytes the key and its value take. The count is exact: every element is "
        "in it, whatever SAMPLES says.",
        NULL};
    args_help(call, lines);
}
