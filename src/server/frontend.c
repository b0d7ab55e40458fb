/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/frontend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/watchdog.h"
#include "cmd/block.h"
#include "mem/account.h"
#include "server/server.h"

/* ---- life of a session --------------------------------------------------------------------- */

static void send_and_close(int fd, const char *text) {
    ssize_t sent = write(fd, text, strlen(text));
    (void)sent; /* a courtesy: the socket's buffer is empty, so it fits or the peer is gone */
    close(fd);
}

static bool is_local(const struct conn *conn) {
    char peer[CONN_ADDRESS_LEN];
    if (conn->flags & CONN_UNIX) {
        return true;
    }
    conn_peer_address(conn, peer);
    return strncmp(peer, "127.", 4) == 0 || strncmp(peer, "[::1]", 5) == 0 ||
           strncmp(peer, "[::ffff:127.", 12) == 0;
}

/* Protected mode: no password, so only this machine may come in. */
static bool is_refused(const struct server *server, const struct session *s) {
    return server->config.protected_mode && server->config.requirepass[0] == '\0' &&
           !(s->client.flags & CLIENT_LOCAL);
}

static const char protected_text[] =
    "-DENIED Goblin Core is running in protected mode because no password is set. In this mode "
    "connections are only "
    "accepted from this machine. To accept others, set a password (CONFIG SET requirepass, or "
    "--requirepass), or "
    "disable the protection with CONFIG SET protected-mode no or --protected-mode no.\r\n";

void frontend_accepted(void *user, int fd, bool is_unix) {
    struct frontend *f = user;
    struct server *server = f->server;
    if (server->cx.clients.count >= server->config.maxclients) {
        server->metrics.rejected_connections++;
        send_and_close(fd, "-ERR max number of clients reached\r\n");
        return;
    }
    struct session *s = account_alloc(ACCOUNT_CLIENT, sizeof(*s));
    if (s == NULL) {
        send_and_close(fd, "-OOM out of memory\r\n");
        return;
    }
    *s = (struct session){.frontend = f};
    s->conn = conn_create(&f->conns, fd, is_unix, s);
    if (s->conn == NULL) {
        account_free(ACCOUNT_CLIENT, s);
        return;
    }
    client_init(&s->client, &server->cx.clients, NULL, server->cx.now_ms);
    s->client.flags |= is_unix ? CLIENT_UNIX_SOCKET : 0;
    s->client.flags |= is_local(s->conn) ? CLIENT_LOCAL : 0;
    s->client.flags |= server->config.requirepass[0] == '\0' ? CLIENT_AUTHENTICATED : 0;
    server->metrics.total_connections_received++;
    if (is_refused(server, s)) {
        server->metrics.rejected_connections++;
        buf_append_cstr(conn_out(s->conn), protected_text);
        conn_close_after_flush(s->conn);
    }
}

static void forget_resumed(struct session *s) {
    struct frontend *f = s->frontend;
    struct session **at = &f->resumed_first, *last = NULL;
    if (!s->resumed) {
        return;
    }
    while (*at != s) {
        last = *at;
        at = &(*at)->next_resumed;
    }
    *at = s->next_resumed;
    if (f->resumed_last == s) {
        f->resumed_last = last;
    }
}

size_t session_memory(const struct session *s) {
    return sizeof(*s) + sizeof(*s->conn) + s->in.cap + s->replay.cap + s->client.deferred.cap +
           s->conn->out.cap + resp_parser_memory(&s->parser);
}

/* ---- parsing ------------------------------------------------------------------------------- */

static struct resp_limits limits_of(const struct session *s) {
    const struct config *config = &s->frontend->server->config;
    return (struct resp_limits){.max_bulk_len = config->proto_max_bulk_len,
                                .max_multibulk = RESP_MAX_MULTIBULK,
                                .unauthenticated = config->requirepass[0] != '\0' &&
                                                   !(s->client.flags & CLIENT_AUTHENTICATED)};
}

static bool is_ending(const struct session *s) {
    return !conn_is_open(s->conn) || (s->conn->flags & CONN_FLUSH_CLOSE);
}

/* Nothing more comes in, and all that came is answered: tell the error, if one ended it, and close. */
static void end_session(struct session *s) {
    if (is_ending(s)) {
        return;
    }
    if (s->end_error[0] != '\0') {
        struct reply r = {conn_out(s->conn), s->client.proto};
        reply_errorf(&r, "ERR %s", s->end_error);
    }
    block_forget(&s->frontend->server->cx, &s->client);
    conn_close_after_flush(s->conn);
}

/* The input has ended, in an error or not. What came before is answered first, however long the client takes to read. */
static void end_input(struct session *s) {
    frontend_execute(s->frontend);
    s->input_ended = true;
    bool waits = s->client.waiter != NULL;
    if (waits || !(s->client.flags & CLIENT_BACKLOG)) {
        end_session(s);
    } else if (!is_ending(s) && !(s->conn->flags & CONN_EOF)) {
        conn_pause_reading(s->conn, true);
    }
}

static void protocol_error(struct session *s, const char *text) {
    struct server *server = s->frontend->server;
    snprintf(s->end_error, sizeof(s->end_error), "%s", text);
    server->metrics.protocol_errors++;
    server->metrics.total_error_replies++;
    log_verbose("Protocol error (%s) from client id=%llu", text, (unsigned long long)s->client.id);
    end_input(s);
}

static void enqueue(struct session *s, const struct resp_result *result) {
    struct frontend *f = s->frontend;
    s->client.out = conn_out(s->conn);
    f->batch.items[f->batch.len++] =
        (struct batch_item){.client = &s->client, .first = result->first, .argc = result->argc};
    if (batch_is_full(&f->batch)) {
        frontend_execute(f);
    }
}

/* Put every complete command of the input into the batch. *rest: bytes at the end to be kept for
 * later; how many were used up before them is returned. An ended session keeps nothing. */
static size_t parse_input(struct session *s, struct resp_parser *parser, char *in, size_t len,
                          size_t *rest) {
    size_t used = 0;
    struct resp_result result;
    struct frontend *f = s->frontend;
    while (!is_ending(s) && !s->input_ended) {
        struct resp_limits limits = limits_of(s);
        WATCHDOG_BEGIN(start);
        enum resp_event event =
            resp_parse(parser, in + used, len - used, &limits, &f->batch.args, &result);
        WATCHDOG_END(start, "parse", NULL);
        switch (event) {
        case RESP_COMMAND:
            enqueue(s, &result);
            used += result.consumed;
            if (limits.unauthenticated) {
                frontend_execute(f); /* it may be AUTH, which lifts the limits on what follows */
            }
            break;
        case RESP_NEED_MORE:
            used += result.consumed;
            *rest = len - used;
            return used;
        case RESP_BIG:
            used += result.consumed;
            *rest = result.keep;
            return used;
        case RESP_ERROR:
            protocol_error(s, result.error);
            break;
        case RESP_NOMEM:
            log_warning("Closing client id=%llu: out of memory for its request",
                        (unsigned long long)s->client.id);
            frontend_execute(f);
            conn_close(s->conn);
            break;
        }
    }
    *rest = 0;
    return len;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* The first `in_used` bytes of a session's own buffer belong to commands that are executed by now.
 */
static void drop_used(struct session *s) {
    buf_consume(&s->in, s->in_used);
    s->in_used = 0;
    if (s->in.len == 0 && s->in.cap != 0) {
        buf_deinit(&s->in);
    }
}

static enum status read_counted(struct session *s, char *at, size_t room, size_t *n) {
    enum status st = conn_read(s->conn, at, room, n);
    s->frontend->server->metrics.total_reads_processed++;
    if (st == ST_OK) {
        s->frontend->server->metrics.total_net_input_bytes += *n;
        s->client.last_active_ms = s->frontend->server->cx.now_ms;
    }
    return st;
}

/* No partial input: read into the tick buffer, keep what is left over. */
static enum status read_into_tick(struct session *s) {
    struct frontend *f = s->frontend;
    if (FRONTEND_TICK_BYTES - f->tick_len < FRONTEND_READ_BYTES) {
        frontend_execute(f);
        f->tick_len = 0;
    }
    char *at = f->tick + f->tick_len;
    size_t n, rest;
    enum status st = read_counted(s, at, FRONTEND_READ_BYTES, &n);
    if (st != ST_OK) {
        return st;
    }
    f->tick_len += n;
    size_t used = parse_input(s, &s->parser, at, n, &rest);
    if (rest != 0) {
        buf_append(&s->in, at + used, rest);
    }
    return s->in.failed ? ST_NOMEM : ST_OK;
}

/* More of a command that is not complete. */
static enum status read_into_own(struct session *s) {
    size_t n, rest;
    drop_used(s);
    char *at = buf_tail(&s->in, FRONTEND_READ_BYTES);
    if (at == NULL) {
        return ST_NOMEM;
    }
    enum status st = read_counted(s, at, FRONTEND_READ_BYTES, &n);
    if (st != ST_OK) {
        return st;
    }
    s->in.len += n;
    s->in_used = parse_input(s, &s->parser, s->in.ptr, s->in.len, &rest);
    if (conn_is_open(s->conn)) {
        s->in.len = s->in_used + rest;
    }
    return ST_OK;
}

/* A long argument under way goes straight to its place. */
static enum status read_big(struct session *s) {
    size_t room, n;
    char *at = resp_big_room(&s->parser, &room);
    if (at == NULL) {
        return ST_NOMEM;
    }
    room = room < FRONTEND_BIG_READ_BYTES ? room : FRONTEND_BIG_READ_BYTES;
    enum status st = read_counted(s, at, room, &n);
    if (st != ST_OK) {
        return st;
    }
    resp_big_commit(&s->parser, n);
    if (resp_big_missing(&s->parser) == 0) {
        size_t rest;
        drop_used(s);
        s->in_used = parse_input(s, &s->parser, s->in.ptr, s->in.len, &rest);
        if (conn_is_open(s->conn)) {
            s->in.len = s->in_used + rest;
        }
    }
    return ST_OK;
}

static void check_query_limit(struct session *s) {
    struct server *server = s->frontend->server;
    size_t held = s->in.len - s->in_used + s->client.deferred.len + s->replay.len +
                  resp_parser_memory(&s->parser);
    if (UNLIKELY(held > server->config.client_query_buffer_limit)) {
        log_warning("Closing client id=%llu: %zu bytes of input are over client-query-buffer-limit",
                    (unsigned long long)s->client.id, held);
        server->metrics.client_query_buffer_limit_disconnections++;
        conn_close(s->conn);
    }
}

static void session_readable(struct conn *conn) {
    struct session *s = conn->user;
    enum status st;
    if (resp_big_missing(&s->parser) != 0) {
        st = read_big(s);
    } else if (s->in.len > s->in_used) {
        st = read_into_own(s);
    } else {
        st = read_into_tick(s);
    }
    if (st == ST_CLOSED) {
        end_input(s);
    } else if (st == ST_IO || st == ST_NOMEM) {
        if (st == ST_NOMEM) {
            log_warning("Closing client id=%llu: out of memory for its input",
                        (unsigned long long)s->client.id);
        }
        frontend_execute(s->frontend);
        conn_close(conn);
    } else if (conn_is_open(conn)) {
        check_query_limit(s);
    }
}

/* ---- executing ----------------------------------------------------------------------------- */

void frontend_check_output(struct session *s) {
    struct server *server = s->frontend->server;
    const struct config_output_limit *limit = &server->config.client_output_buffer_limit;
    size_t held = conn_out_len(s->conn);
    bool soft = limit->soft_bytes != 0 && held > limit->soft_bytes;
    int64_t now_ms = server->cx.now_ms;
    if (!soft) {
        s->soft_since_ms = 0;
    } else if (s->soft_since_ms == 0) {
        s->soft_since_ms = now_ms;
    }
    bool over = (limit->hard_bytes != 0 && held > limit->hard_bytes) ||
                (soft && now_ms - s->soft_since_ms >= (int64_t)limit->soft_seconds * 1000);
    if (UNLIKELY(over)) {
        log_warning(
            "Closing client id=%llu: %zu bytes of output are over client-output-buffer-limit",
            (unsigned long long)s->client.id, held);
        server->metrics.client_output_buffer_limit_disconnections++;
        conn_close(s->conn);
    }
}

static void hook_flush(void *server, struct client *c) {
    struct session *s = session_of(c);
    (void)server;
    conn_flush(s->conn);
    frontend_check_output(s);
    if (conn_is_open(s->conn) && conn_out_len(s->conn) > FRONTEND_STALL_BYTES) {
        c->flags |= CLIENT_STALLED;
    }
    c->out = conn_out(s->conn);
}

static void hook_close(void *server, struct client *c) {
    struct session *s = session_of(c);
    (void)server;
    if (c->flags & CLIENT_CLOSE_NOW) {
        conn_close(s->conn);
    } else {
        conn_close_after_flush(s->conn);
    }
}

static struct buf *hook_output(void *server, struct client *c) {
    (void)server;
    return conn_out(session_of(c)->conn);
}

static void hook_resume(void *server, struct client *c) {
    struct session *s = session_of(c);
    struct frontend *f = s->frontend;
    (void)server;
    if (s->resumed || !(c->flags & CLIENT_BACKLOG)) {
        return;
    }
    s->resumed = true;
    s->next_resumed = NULL;
    *(f->resumed_last ? &f->resumed_last->next_resumed : &f->resumed_first) = s;
    f->resumed_last = s;
    loop_poke(f->server->loop);
}

static bool may_replay(const struct session *s) {
    return !is_ending(s) && s->client.waiter == NULL && !(s->client.flags & CLIENT_STALLED);
}

/* The next deferred request into the batch; false when there is none. */
static bool replay_next(struct session *s) {
    struct resp_limits limits = limits_of(s);
    struct resp_parser parser = {0};
    struct resp_result result;
    if (s->replay_used == s->replay.len) {
        buf_deinit(&s->replay);
        s->replay = s->client.deferred;
        s->replay_used = 0;
        s->client.deferred = (struct buf){0};
    }
    if (s->replay.len == 0 ||
        resp_parse(&parser, s->replay.ptr + s->replay_used, s->replay.len - s->replay_used, &limits,
                   &s->frontend->batch.args, &result) != RESP_COMMAND) {
        return false;
    }
    s->replay_used += result.consumed;
    enqueue(s, &result);
    return true;
}

/* Execute what the session deferred, one by one: any of them may make it wait again. */
static void replay(struct session *s) {
    struct client *c = &s->client;
    size_t left = FRONTEND_REPLAY_MAX;
    c->flags |= CLIENT_REPLAYING;
    bool more = true;
    while (more && left > 0 && may_replay(s)) {
        more = replay_next(s);
        frontend_execute(s->frontend);
        left--;
    }
    c->flags &= ~(uint32_t)CLIENT_REPLAYING;
    if (!more) {
        c->flags &= ~(uint32_t)CLIENT_BACKLOG;
        buf_deinit(&s->replay);
        s->replay_used = 0;
        if (s->input_ended) {
            end_session(s);
        }
    } else if (may_replay(s)) {
        hook_resume(s->frontend->server, c);
    }
}

/* Those that were resumed before this turn's replays began; the ones resumed by these go next turn. */
static void run_resumed(struct frontend *f) {
    struct session *s = f->resumed_first;
    f->resumed_first = f->resumed_last = NULL;
    while (s != NULL) {
        struct session *next = s->next_resumed;
        s->resumed = false;
        replay(s);
        s = next;
    }
}

/* The peer is gone without having read its replies; what it asked for is done all the same. */
static void execute_unread(struct session *s) {
    s->client.flags = (s->client.flags & ~(uint32_t)CLIENT_STALLED) | CLIENT_REPLAYING;
    while (s->client.waiter == NULL && !(s->client.flags & CLIENT_CLOSE_NOW) && replay_next(s)) {
        frontend_execute(s->frontend);
    }
}

/* It waits for no key any more: what a command of this very turn puts there is for those who are left. */
static void session_closing(struct conn *conn) {
    struct session *s = conn->user;
    s->client.flags |= CLIENT_GONE;
    block_forget(&s->frontend->server->cx, &s->client);
}

static void session_closed(struct conn *conn) {
    struct session *s = conn->user;
    if ((s->client.flags & (CLIENT_BACKLOG | CLIENT_CLOSE_NOW)) == CLIENT_BACKLOG) {
        execute_unread(s);
    }
    batch_forget(&s->frontend->batch, &s->client);
    block_forget(&s->frontend->server->cx, &s->client);
    forget_resumed(s);
    client_deinit(&s->client, &s->frontend->server->cx.clients);
    resp_parser_deinit(&s->parser);
    buf_deinit(&s->in);
    buf_deinit(&s->replay);
    account_free(ACCOUNT_CLIENT, s);
}

static void session_drained(struct conn *conn) {
    struct session *s = conn->user;
    if (s->client.flags & CLIENT_STALLED) {
        s->client.flags &= ~(uint32_t)CLIENT_STALLED;
        hook_resume(s->frontend->server, &s->client);
    }
}

static void describe(const struct client *c, struct client_connection_info *out) {
    const struct session *s = session_of(c);
    *out = (struct client_connection_info){.fd = s->conn->io.fd,
                                           .query_bytes = s->in.len - s->in_used,
                                           .query_free_bytes = s->in.cap - s->in.len,
                                           .output_bytes = conn_out_len(s->conn),
                                           .memory_bytes = session_memory(s),
                                           .argv_bytes = resp_parser_memory(&s->parser)};
    conn_peer_address(s->conn, out->peer);
    conn_local_address(s->conn, out->local);
}

void frontend_execute(struct frontend *f) {
    if (f->batch.len != 0) {
        dispatch_batch(&f->server->cx, &f->batch);
    }
}

/* Under maxmemory, what is in use is measured again after each so many bytes of input: cron alone would be late. */
static void sample_for_maxmemory(struct server *server) {
    uint64_t input_bytes = server->metrics.total_net_input_bytes;
    if (server->config.maxmemory != 0 &&
        input_bytes - server->frontend.sampled_at_bytes > FRONTEND_SAMPLE_BYTES) {
        server->frontend.sampled_at_bytes = input_bytes;
        context_sample_memory(&server->cx);
    }
}

void frontend_after_ready(struct loop *loop, void *user) {
    struct server *server = user;
    (void)loop;
    frontend_execute(&server->frontend);
    WATCHDOG_BEGIN(start);
    run_resumed(&server->frontend);
    WATCHDOG_END(start, "resumed clients", NULL);
    server->frontend.tick_len = 0;
    sample_for_maxmemory(server);
    if (server->dbs->reap_first != NULL || cron_has_freed(server)) {
        cron_poke(server);
    }
    if (block_count(&server->cx) != 0) {
        cron_watch_deadlines(server);
    }
}

static void count_output(struct server *server) {
    struct conn_set *conns = &server->frontend.conns;
    server->metrics.total_writes_processed += conns->sends;
    server->metrics.total_net_output_bytes += conns->sent_bytes;
    conns->sends = conns->sent_bytes = 0;
}

void frontend_before_sleep(struct loop *loop, void *user) {
    struct server *server = user;
    WATCHDOG_BEGIN(start);
    conn_set_flush(&server->frontend.conns);
    WATCHDOG_END(start, "write to all", NULL);
    count_output(server);
    if (UNLIKELY(server->config.latency_monitor_threshold != 0)) {
        int64_t turn_us = clock_monotonic_us() - loop_woke_us(loop);
        context_note_latency(&server->cx, LATENCY_LOOP, (uint64_t)turn_us * 1000);
    }
}

/* ---- setup --------------------------------------------------------------------------------- */

enum status frontend_setup(struct frontend *f, struct server *server) {
    f->server = server;
    f->tick = malloc(FRONTEND_TICK_BYTES);
    if (f->tick == NULL) {
        return ST_NOMEM;
    }
    struct conn_handler handler = {.readable = session_readable,
                                   .closing = session_closing,
                                   .closed = session_closed,
                                   .drained = session_drained};
    conn_set_init(&f->conns, server->loop, handler, server->config.tcp_keepalive);
    server->cx.clients.describe = describe;
    server->cx.hooks.server = server;
    server->cx.hooks.flush = hook_flush;
    server->cx.hooks.close = hook_close;
    server->cx.hooks.output = hook_output;
    server->cx.hooks.resume = hook_resume;
    return ST_OK;
}

void frontend_teardown(struct frontend *f) {
    if (f->tick != NULL) {
        conn_set_deinit(&f->conns);
        resp_args_deinit(&f->batch.args);
        free(f->tick);
        f->tick = NULL;
    }
}
