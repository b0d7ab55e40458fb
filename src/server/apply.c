/* SPDX-License-Identifier: BSD-3-Clause */
/* What CONFIG SET changes at once; options that are read where they are used need nothing here. */
#include <stdio.h>
#include <sys/resource.h>

#include "base/log.h"
#include "server/server.h"
#include "types/list.h"

/* Files that are not clients: listeners, epoll, signals, timers, the log, standard streams. */
#define FILES_RESERVED 32

bool apply_maxclients(size_t wanted, size_t *possible) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        *possible = wanted;
        return true;
    }
    rlim_t need = (rlim_t)wanted + FILES_RESERVED;
    if (limit.rlim_cur < need) {
        struct rlimit raised = {.rlim_cur = need,
                                .rlim_max = limit.rlim_max < need ? need : limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        } else {
            raised = (struct rlimit){.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
            if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
                limit = raised;
            }
        }
    }
    size_t have = limit.rlim_cur > FILES_RESERVED ? (size_t)limit.rlim_cur - FILES_RESERVED : 0;
    *possible = have < wanted ? have : wanted;
    return *possible == wanted;
}

static bool change_maxclients(void *ctx, const struct config *config, const char **why) {
    static char text[160];
    size_t possible;
    (void)ctx;
    if (apply_maxclients(config->maxclients, &possible)) {
        return true;
    }
    snprintf(
        text, sizeof(text),
        "The operating system is not able to handle the specified number of clients, try with %zu",
        possible);
    *why = text;
    return false;
}

static bool change_packed_limits(void *ctx, const struct config *config, const char **why) {
    struct server *s = ctx;
    (void)why;
    s->dbs->env.hash_packed_entries_max = config->hash_max_listpack_entries;
    s->dbs->env.hash_packed_element_max = config->hash_max_listpack_value;
    s->dbs->env.set_int_entries_max = config->set_max_intset_entries;
    list_limits(config->list_max_listpack_size, &s->dbs->env);
    s->dbs->env.set_packed_entries_max = config->set_max_listpack_entries;
    s->dbs->env.set_packed_element_max = config->set_max_listpack_value;
    s->dbs->env.zset_packed_entries_max = config->zset_max_listpack_entries;
    s->dbs->env.zset_packed_element_max = config->zset_max_listpack_value;
    return true;
}

static bool change_log_level(void *ctx, const struct config *config, const char **why) {
    (void)ctx;
    (void)why;
    log_set_level((enum log_level)config->loglevel);
    return true;
}

static bool change_keepalive(void *ctx, const struct config *config, const char **why) {
    struct server *s = ctx;
    (void)why;
    s->frontend.conns.keepalive_s = config->tcp_keepalive;
    return true;
}

static bool change_hz(void *ctx, const struct config *config, const char **why) {
    struct server *s = ctx;
    (void)config;
    *why = "out of memory";
    return cron_setup(s) == ST_OK;
}

static bool change_maxmemory(void *ctx, const struct config *config, const char **why) {
    struct server *s = ctx;
    (void)why;
    context_sample_memory(&s->cx);
    if (config->maxmemory != 0 && s->cx.used_memory_bytes > config->maxmemory) {
        log_warning("The new maxmemory is below what is in use (%zu bytes): writes will be refused",
                    s->cx.used_memory_bytes);
    }
    return true;
}

static bool change_save(void *ctx, const struct config *config, const char **why) {
    const struct server *s = ctx;
    const char *refused = background_refuses_points(&s->cx);
    (void)config;
    if (refused != NULL) {
        *why = refused;
    }
    return refused == NULL;
}

void apply_setup(struct server *s) {
    struct config *c = &s->config;
    config_on_change(c, OPTION_maxclients, change_maxclients, s);
    config_on_change(c, OPTION_hash_max_listpack_entries, change_packed_limits, s);
    config_on_change(c, OPTION_hash_max_listpack_value, change_packed_limits, s);
    config_on_change(c, OPTION_list_max_listpack_size, change_packed_limits, s);
    config_on_change(c, OPTION_set_max_intset_entries, change_packed_limits, s);
    config_on_change(c, OPTION_set_max_listpack_entries, change_packed_limits, s);
    config_on_change(c, OPTION_set_max_listpack_value, change_packed_limits, s);
    config_on_change(c, OPTION_zset_max_listpack_entries, change_packed_limits, s);
    config_on_change(c, OPTION_zset_max_listpack_value, change_packed_limits, s);
    config_on_change(c, OPTION_loglevel, change_log_level, s);
    config_on_change(c, OPTION_tcp_keepalive, change_keepalive, s);
    config_on_change(c, OPTION_hz, change_hz, s);
    config_on_change(c, OPTION_save, change_save, s);
    config_on_change(c, OPTION_maxmemory, change_maxmemory, s);
}
