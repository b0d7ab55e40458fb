/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/ticks.h"
#include "cmd/table.h"
#include "mem/index.h"
#include "types/list.h"

static void hook_shutdown(void *user, unsigned flags) {
    struct server *s = user;
    s->shutdown_flags = flags;
    loop_stop(s->loop);
}

static enum status fail(struct buf *error, enum status st, const char *what) {
    buf_printf(error, "%s: %s", what, errno && st == ST_IO ? strerror(errno) : status_text(st));
    return st;
}

struct type_env server_type_env(const struct config *config, struct pages *pages) {
    struct type_env env = {.pages = pages,
                           .hash_packed_entries_max = config->hash_max_listpack_entries,
                           .hash_packed_element_max = config->hash_max_listpack_value,
                           .set_int_entries_max = config->set_max_intset_entries,
                           .set_packed_entries_max = config->set_max_listpack_entries,
                           .set_packed_element_max = config->set_max_listpack_value,
                           .zset_packed_entries_max = config->zset_max_listpack_entries,
                           .zset_packed_element_max = config->zset_max_listpack_value};
    list_limits(config->list_max_listpack_size, &env);
    return env;
}

static enum pages_kind index_kind(const struct config *c) {
    static const enum pages_kind kinds[] = {[CONFIG_INDEX_NO] = PAGES_PLAIN,
                                            [CONFIG_INDEX_THP] = PAGES_THP,
                                            [CONFIG_INDEX_HUGETLB] = PAGES_HUGETLB};
    return kinds[c->index_hugepages];
}

static enum status setup_data(struct server *s, struct buf *error) {
    const struct config *c = &s->config;
    struct pages_options options = {.kind = c->arena_hugetlb ? PAGES_HUGETLB
                                            : c->arena_thp   ? PAGES_THP
                                                             : PAGES_PLAIN,
                                    .huge_page_bytes = c->arena_hugetlb_size,
                                    .chunk_bytes = c->hash_chunk_bytes,
                                    .what = "arena"};
    enum status st = pages_create(&options, &s->pages);
    st = st == ST_OK ? index_setup(index_kind(c)) : st;
    if (st != ST_OK) {
        return fail(error, st, "cannot set up memory pages");
    }
    struct type_env env = server_type_env(&s->config, s->pages);
    st = dbset_create(&env, (size_t)s->config.databases, &s->dbs);
    if (st != ST_OK) {
        return fail(error, st, "cannot create databases");
    }
    st = context_init(&s->cx, &s->config, s->dbs, &s->metrics);
    if (st != ST_OK) {
        return fail(error, st, "cannot set up commands");
    }
    const char *refused = background_refuses_points(&s->cx);
    if (refused != NULL) {
        buf_append_cstr(error, refused);
        return ST_UNSUPPORTED;
    }
    return ST_OK;
}

static enum status open_sockets(struct server *s, struct buf *error) {
    char text[LISTENER_ERROR_LEN];
    const struct config *c = &s->config;
    s->listener =
        listener_create(s->loop, (struct listener_handler){frontend_accepted, &s->frontend});
    if (s->listener == NULL) {
        return fail(error, ST_NOMEM, "cannot listen");
    }
    enum status st = ST_OK;
    if (c->port != 0 && c->bind.count != 0) {
        st = listener_open_tcp(s->listener, (const char *const *)c->bind.items, c->bind.count,
                               c->port, c->tcp_backlog, text);
    }
    if (st == ST_OK && c->unixsocket[0] != '\0') {
        st =
            listener_open_unix(s->listener, c->unixsocket, c->unixsocketperm, c->tcp_backlog, text);
    }
    if (st != ST_OK) {
        buf_append_cstr(error, text);
        return st;
    }
    if (listener_count(s->listener) == 0) {
        buf_append_cstr(
            error, "nothing to listen on: port is 0, or bind is empty, and no unixsocket is set");
        return ST_RANGE;
    }
    return ST_OK;
}

/* Fewer files than maxclients wants: go on with what there is, as long as anybody can come in. */
static enum status fit_maxclients(struct server *s, struct buf *error) {
    size_t possible;
    if (apply_maxclients(s->config.maxclients, &possible)) {
        return ST_OK;
    }
    if (possible == 0) {
        buf_append_cstr(error,
                        "the limit of open files leaves no room for clients: raise 'ulimit -n'");
        return ST_RANGE;
    }
    log_warning("maxclients %zu needs more open files than the limit allows: lowered to %zu "
                "('ulimit -n' raises it)",
                s->config.maxclients, possible);
    s->config.maxclients = possible;
    return ST_OK;
}

enum status server_setup(struct server *s, struct buf *error) {
    if (s->config.hash_seed != 0) {
        hash_setup_seed(s->config.hash_seed);
    } else {
        hash_setup();
    }
    ticks_setup();
    table_setup();
    errno = 0;
    enum status st = setup_data(s, error);
    if (st != ST_OK) {
        return st;
    }
    s->cx.hooks.shutdown = hook_shutdown;
    peers_setup(s);
    persist_hooks(s);
    s->cx.executable = s->executable;
    struct loop_hooks hooks = {
        .before_sleep = frontend_before_sleep, .after_ready = frontend_after_ready, .user = s};
    s->loop = loop_create(hooks);
    if (s->loop == NULL) {
        return fail(error, ST_IO, "cannot create the event loop");
    }
    st = frontend_setup(&s->frontend, s);
    if (st != ST_OK) {
        return fail(error, st, "cannot set up connections");
    }
    st = fit_maxclients(s, error);
    st = st == ST_OK ? open_sockets(s, error) : st;
    if (st != ST_OK) {
        return st;
    }
    apply_setup(s);
    st = signals_setup(s);
    if (st != ST_OK) {
        return fail(error, st, "cannot watch signals");
    }
    context_sample_memory(&s->cx);
    s->cx.startup_memory_bytes = s->cx.used_memory_bytes;
    st = cron_setup(s);
    return st == ST_OK ? st : fail(error, st, "cannot start timers");
}

void server_teardown(struct server *s) {
    if (s->loop != NULL) {
        cron_teardown(s);
        signals_teardown(s);
        listener_destroy(s->listener);
        frontend_teardown(&s->frontend);
        loop_destroy(s->loop);
    }
    peers_teardown(s);
    context_deinit(&s->cx);
    dbset_destroy(s->dbs);
    index_teardown();
    pages_destroy(s->pages);
}
