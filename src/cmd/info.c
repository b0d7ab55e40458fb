/* SPDX-License-Identifier: BSD-3-Clause */
/* INFO: gathers what stats/info.h renders. Only the sections asked for are measured. */
#include "stats/info.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "cmd/block.h"
#include "cmd/lookup.h"
#include "cmd/table.h"
#include "handlers_priv.h"
#include "memory_source_priv.h"
#include "stats/process.h"

#define OS_NAME_LEN 256

static bool asked(info_section_set set, enum info_section section) {
    return (set & 1u << section) != 0;
}

static void fill_server(const struct cmd_context *cx, struct info_source *s, char *os_name) {
    process_os_name(os_name, OS_NAME_LEN);
    s->os = os_name;
    s->process_id = (uint64_t)getpid();
    s->run_id = cx->run_id;
    s->tcp_port = (uint64_t)cx->config->port;
    s->server_time_usec = (uint64_t)clock_realtime_us();
    s->uptime_in_seconds = (uint64_t)(cx->now_ms - cx->started_ms) / 1000;
    s->hz = (uint64_t)cx->config->hz;
    s->executable = cx->executable;
    s->config_file = cx->config->config_file;
}

static void fill_clients(const struct cmd_context *cx, struct info_source *s) {
    s->connected_clients = cx->clients.count;
    s->maxclients = cx->config->maxclients;
    s->blocked_clients = block_count(cx);
    s->clients_in_timeout_table = block_timed_count(cx);
    s->client_recent_max_input_buffer = cx->clients.use.query_max_bytes;
    s->client_recent_max_output_buffer = cx->clients.use.output_max_bytes;
}

static void fill_persistence(const struct cmd_context *cx, struct info_source *s) {
    const struct persist *p = &cx->persist;
    s->rdb_last_save_time = (uint64_t)p->last_save_ms / 1000;
    s->rdb_last_load_keys_expired = p->loaded_expired;
    s->rdb_last_load_keys_loaded = p->loaded_keys;
    s->loading = p->loading;
    s->loading_start_time = (uint64_t)p->loading_since_ms / 1000;
    s->loading_total_bytes = p->loading_total_bytes;
    s->loading_loaded_bytes = p->loading_bytes;
    if (p->loading_bytes != 0 && p->loading_total_bytes > p->loading_bytes) {
        double elapsed_s = (double)(clock_realtime_ms() - p->loading_since_ms) / 1000;
        s->loading_eta_seconds =
            (uint64_t)(elapsed_s * (double)(p->loading_total_bytes - p->loading_bytes) /
                       (double)p->loading_bytes);
    }
}

static void fill_background(const struct cmd_context *cx, struct info_source *s) {
    const struct background *b = &cx->background;
    struct bgsave_progress now;
    int64_t now_us = clock_monotonic_us();
    bgsave_get_progress(b->child, &now);
    s->current_cow_peak = now.copied_peak_bytes;
    s->current_cow_size = now.copied_bytes;
    s->current_cow_size_age =
        now.measured_us != 0 ? (uint64_t)(now_us - now.measured_us) / 1000000 : 0;
    s->current_fork_perc =
        now.keys_total != 0 ? 100 * (double)now.keys / (double)now.keys_total : 0;
    s->current_save_keys_processed = now.keys;
    s->current_save_keys_total = now.keys_total;
    s->rdb_bgsave_in_progress = now.pid != 0;
    s->rdb_last_bgsave_status = b->failed || b->unsaved ? "err" : "ok";
    s->rdb_last_bgsave_time_sec = b->took_s;
    s->rdb_current_bgsave_time_sec = now.pid != 0 ? (now_us - now.started_us) / 1000000 : -1;
    s->rdb_last_cow_size = b->copied_bytes;
}

static void fill_stats(struct cmd_context *cx, struct info_source *s) {
    s->instantaneous_ops_per_sec = (uint64_t)rates_get(&cx->rates, RATE_COMMANDS);
    s->instantaneous_input_kbps = rates_get(&cx->rates, RATE_INPUT_BYTES) / 1024;
    s->instantaneous_output_kbps = rates_get(&cx->rates, RATE_OUTPUT_BYTES) / 1024;
    s->migrate_cached_sockets = cx->peers.count != NULL ? cx->peers.count(cx->hooks.server) : 0;
}

static void fill_cpu(struct info_source *s) {
    struct process_cpu cpu;
    process_read_cpu(&cpu);
    s->used_cpu_sys = cpu.sys_s;
    s->used_cpu_user = cpu.user_s;
    s->used_cpu_sys_children = cpu.sys_children_s;
    s->used_cpu_user_children = cpu.user_children_s;
    s->used_cpu_sys_main_thread = cpu.sys_thread_s;
    s->used_cpu_user_main_thread = cpu.user_thread_s;
}

/* What the databases count themselves. */
static void fill_metrics(struct cmd_context *cx) {
    const struct db_stats *stats = &cx->dbs->stats;
    cx->metrics->expired_keys = stats->expired;
    cx->metrics->keyspace_hits = stats->hits;
    cx->metrics->keyspace_misses = stats->misses;
    cx->metrics->rdb_changes_since_last_save = stats->dirty;
    cx->metrics->lazyfreed_objects = stats->reaped_objects;
    cx->metrics->lazyfree_pending_objects = cx->dbs->reap_count;
}

static void fill_dbs(const struct cmd_context *cx, struct info_db *dbs) {
    for (size_t i = 0; i < cx->dbs->count; i++) {
        const struct db *db = cx->dbs->dbs[i];
        dbs[i] = (struct info_db){.keys = db_count(db),
                                  .expires = order_count(&db->expiries),
                                  .avg_ttl_ms = (uint64_t)db_average_ttl_ms(db)};
    }
}

static void fill_commands(const struct cmd_context *cx, struct info_command *commands) {
    bool tracked = cx->config->latency_tracking;
    for (size_t i = 0; i < table_count(); i++) {
        commands[i] = (struct info_command){.name = table_at(i)->name,
                                            .stats = cx->command_stats[i],
                                            .latency_ns = tracked ? cx->command_latency[i] : NULL};
    }
}

/* As the option has them; malloc'ed. NULL: out of memory. */
static double *percentiles_of(const struct config *config) {
    const struct config_list *list = &config->latency_tracking_info_percentiles;
    double *percentiles = calloc(list->count + 1, sizeof(*percentiles));
    for (size_t i = 0; percentiles != NULL && i < list->count; i++) {
        bool ok = number_parse_double(bytes_from_cstr(list->items[i]), &percentiles[i]);
        assert(ok); /* the option's check saw to it */
        (void)ok;
    }
    return percentiles;
}

void info_command(struct call *call) {
    struct cmd_context *cx = call->cx;
    info_section_set set = info_parse_sections(call->argv + 1, call->argc - 1);
    struct info_source s = {
        .metrics = cx->metrics, .errors = &cx->errors, .master_replid = cx->repl_id};
    struct info_db *dbs = calloc(cx->dbs->count, sizeof(*dbs));
    struct info_command *commands = calloc(table_count(), sizeof(*commands));
    double *percentiles = percentiles_of(cx->config);
    struct memory_source memory;
    char os_name[OS_NAME_LEN];
    struct buf text = {0};
    if (dbs == NULL || commands == NULL || percentiles == NULL) {
        reply_error(&call->reply, "OOM out of memory");
        goto out;
    }
    if (asked(set, INFO_SERVER)) {
        fill_server(cx, &s, os_name);
    }
    if (asked(set, INFO_CLIENTS)) {
        fill_clients(cx, &s);
    }
    if (asked(set, INFO_MEMORY)) {
        memory_source_fill(&memory, cx, &s);
    }
    if (asked(set, INFO_PERSISTENCE)) {
        fill_persistence(cx, &s);
        fill_background(cx, &s);
    }
    if (asked(set, INFO_STATS)) {
        fill_stats(cx, &s);
    }
    if (asked(set, INFO_CPU)) {
        fill_cpu(&s);
    }
    if (asked(set, INFO_KEYSPACE)) {
        fill_dbs(cx, dbs);
        s.dbs = dbs;
        s.db_count = cx->dbs->count;
    }
    if (asked(set, INFO_COMMANDSTATS) || asked(set, INFO_LATENCYSTATS)) {
        fill_commands(cx, commands);
        s.commands = commands;
        s.command_count = table_count();
        s.percentiles = percentiles;
        s.percentile_count = cx->config->latency_tracking_info_percentiles.count;
    }
    fill_metrics(cx);
    info_render(&text, set, &s);
    if (text.failed) {
        reply_error(&call->reply, "OOM out of memory");
    } else {
        reply_verbatim(&call->reply, "txt", buf_bytes(&text));
    }
out:
    buf_deinit(&text);
    free(percentiles);
    free(commands);
    free(dbs);
}
