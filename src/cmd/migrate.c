/* SPDX-License-Identifier: BSD-3-Clause */
/* MIGRATE: keys to another server, by RESTORE.
 *
 * The other server is waited for here, and so are we by everyone else: each wait ends after the
 * time-out given. Memory: the payload of one key and what goes with it. Up to WINDOW keys are under
 * way before the first is acknowledged. A key goes from here when its own RESTORE was answered
 * +OK, and not before; whatever happens to others. */
#include "cmd/args.h"
#include "cmd/lookup.h"
#include "handlers_priv.h"
#include "persist/writer.h"

enum { WINDOW = 1024, TIMEOUT_DEFAULT_MS = 1000, ERROR_CAP = 512, SEND_BYTES = 64 << 10 };

struct migrate {
    struct call *call;
    size_t first_key, key_count; /* arguments */
    int64_t db, timeout_ms;
    bool copy, replace;
    size_t auth_first, auth_count; /* arguments of AUTH, 0 when not given */
    struct peer *peer;
    struct buf out;     /* requests to be sent */
    struct buf payload; /* of one key */
    size_t under_way[WINDOW];
    size_t sent, acknowledged; /* keys; under_way is a ring over them */
    bool writing;              /* what failed, for the error */
    bool refused;              /* the other server answered an error */
    char error[ERROR_CAP];     /* the first one */
};

/* ---- arguments ------------------------------------------------------------------------------ */

static bool take_keys(struct migrate *m, size_t i) {
    if (m->call->argv[3].len != 0) {
        reply_error(&m->call->reply, "ERR When using MIGRATE KEYS option, the key argument must be "
                                     "set to the empty string");
        return false;
    }
    m->first_key = i + 1;
    m->key_count = m->call->argc - m->first_key;
    return true;
}

static bool parse_options(struct migrate *m) {
    struct call *call = m->call;
    for (size_t i = 6; i < call->argc; i++) {
        size_t more = call->argc - 1 - i;
        size_t words = args_is(call, i, "AUTH") ? 1 : args_is(call, i, "AUTH2") ? 2 : 0;
        if (args_is(call, i, "COPY")) {
            m->copy = true;
        } else if (args_is(call, i, "REPLACE")) {
            m->replace = true;
        } else if (words != 0 && more >= words) {
            m->auth_first = i + 1;
            m->auth_count = words;
            i += words;
        } else if (args_is(call, i, "KEYS")) {
            return take_keys(m, i);
        } else {
            args_syntax_error(call);
            return false;
        }
    }
    return true;
}

static bool parse(struct migrate *m) {
    m->first_key = 3;
    m->key_count = 1;
    if (!parse_options(m) || !args_i64(m->call, 5, &m->timeout_ms) ||
        !args_i64(m->call, 4, &m->db)) {
        return false;
    }
    if (m->timeout_ms <= 0) {
        m->timeout_ms = TIMEOUT_DEFAULT_MS;
    } else if (m->timeout_ms > INT32_MAX) {
        m->timeout_ms = INT32_MAX;
    }
    return true;
}

static bool any_key_is_there(struct migrate *m) {
    struct entry e;
    for (size_t i = 0; i < m->key_count; i++) {
        if (lookup_key(m->call, m->first_key + i, DB_NO_TOUCH, &e)) {
            return true;
        }
    }
    return false;
}

/* ---- talking -------------------------------------------------------------------------------- */

static enum status flush(struct migrate *m) {
    if (m->out.failed) {
        return ST_NOMEM;
    }
    m->writing = true;
    enum status st = m->call->cx->peers.send(m->peer, buf_bytes(&m->out), m->timeout_ms);
    m->writing = st != ST_OK;
    buf_clear(&m->out);
    return st;
}

/* Read "+OK" or an error; the first error is kept, *ok tells which. Anything else is no answer to
 * what was asked. */
static enum status read_answer(struct migrate *m, bool *ok) {
    struct bytes line;
    enum status st = m->call->cx->peers.read_line(m->peer, m->timeout_ms, &line);
    if (st != ST_OK) {
        return st;
    }
    *ok = bytes_equal(line, BYTES_LIT("+OK"));
    if (*ok) {
        return ST_OK;
    }
    if (line.len == 0 || line.ptr[0] != '-') {
        return ST_SYNTAX;
    }
    if (!m->refused) {
        m->refused = true;
        size_t len = line.len - 1 < ERROR_CAP - 1 ? line.len - 1 : ERROR_CAP - 1;
        memcpy(m->error, line.ptr + 1, len);
        m->error[len] = '\0';
    }
    return ST_OK;
}

/* AUTH and SELECT, answered before any key is sent: none must land in the wrong database. */
static enum status prepare(struct migrate *m) {
    struct reply r = {.out = &m->out, .proto = 2};
    bool selects = m->auth_count != 0 || !m->peer->db_known || m->peer->db != m->db;
    bool ok = true;
    if (m->auth_count != 0) {
        reply_array(&r, 1 + m->auth_count);
        reply_bulk_cstr(&r, "AUTH");
        for (size_t i = 0; i < m->auth_count; i++) {
            reply_bulk(&r, m->call->argv[m->auth_first + i]);
        }
    }
    if (selects) {
        reply_array(&r, 2);
        reply_bulk_cstr(&r, "SELECT");
        reply_bulk_i64(&r, m->db);
        m->peer->db_known = false;
    }
    enum status st = selects ? flush(m) : ST_OK;
    for (int answers = (m->auth_count != 0) + selects; st == ST_OK && answers > 0; answers--) {
        st = read_answer(m, &ok);
    }
    if (st == ST_OK && !m->refused) {
        m->peer->db = m->db;
        m->peer->db_known = true;
    }
    return st;
}

/* ---- keys ----------------------------------------------------------------------------------- */

static enum status put_restore(struct migrate *m, const struct entry *e) {
    struct reply r = {.out = &m->out, .proto = 2};
    int64_t ttl_ms = 0;
    if (e->expire_ms != DB_NO_EXPIRY) {
        ttl_ms = e->expire_ms - m->call->cx->now_ms;
        ttl_ms = ttl_ms < 1 ? 1 : ttl_ms;
    }
    buf_clear(&m->payload);
    enum status st = writer_payload(&e->value, m->call->cx->config->rdbcompression, &m->payload);
    if (st == ST_OK) {
        reply_array(&r, m->replace ? 5 : 4);
        reply_bulk_cstr(&r, "RESTORE");
        reply_bulk(&r, e->key);
        reply_bulk_i64(&r, ttl_ms);
        reply_bulk(&r, buf_bytes(&m->payload));
        if (m->replace) {
            reply_bulk_cstr(&r, "REPLACE");
        }
        st = m->out.failed ? ST_NOMEM : ST_OK;
    }
    return st;
}

/* The answer for the key that is under way longest. */
static enum status acknowledge(struct migrate *m) {
    struct entry e;
    bool ok;
    enum status st = read_answer(m, &ok);
    if (st != ST_OK) {
        return st;
    }
    size_t key = m->under_way[m->acknowledged++ % WINDOW];
    if (ok && !m->copy && lookup_key(m->call, key, DB_NO_TOUCH, &e)) {
        entry_delete(&e);
        call_dirty(m->call, 1);
    }
    return ST_OK;
}

static enum status send_keys(struct migrate *m) {
    enum status st = ST_OK;
    for (size_t i = 0; i < m->key_count && st == ST_OK; i++) {
        struct entry e;
        if (!lookup_key(m->call, m->first_key + i, DB_TOUCH, &e)) {
            continue;
        }
        st = put_restore(m, &e);
        if (st != ST_OK) {
            return st;
        }
        m->under_way[m->sent++ % WINDOW] = m->first_key + i;
        bool full = m->sent - m->acknowledged == WINDOW;
        st = full || m->out.len >= SEND_BYTES ? flush(m) : ST_OK;
        if (st == ST_OK && full) {
            st = acknowledge(m);
        }
    }
    st = st == ST_OK ? flush(m) : st;
    while (st == ST_OK && m->acknowledged < m->sent) {
        st = acknowledge(m);
    }
    return st;
}

/* ---- the command ---------------------------------------------------------------------------- */

static void reply_result(struct migrate *m, enum status st) {
    struct reply *r = &m->call->reply;
    if (m->refused) {
        reply_errorf(r, "ERR Target instance replied with error: %s", m->error);
    } else if (st == ST_NOMEM) {
        args_nomem(m->call);
    } else if (st != ST_OK) {
        reply_errorf(r, "IOERR error or timeout %s to target instance",
                     m->writing ? "writing" : "reading");
    } else {
        reply_ok(r);
    }
}

/* On one connection. False: it was an old one that nobody heard us on, and a new one may do. */
static bool attempt(struct migrate *m) {
    struct cmd_context *cx = m->call->cx;
    enum status st = cx->peers.open(cx->hooks.server, m->call->argv[1], m->call->argv[2],
                                    m->timeout_ms, &m->peer);
    if (st != ST_OK) {
        reply_error(&m->call->reply, "IOERR error or timeout connecting to the client");
        return true;
    }
    m->sent = m->acknowledged = 0;
    buf_clear(&m->out);
    st = prepare(m);
    if (st == ST_OK && !m->refused) {
        st = send_keys(m);
    }
    bool again =
        m->peer->reused && m->acknowledged == 0 && !m->refused && (st == ST_CLOSED || st == ST_IO);
    if (st != ST_OK) { /* answers may be on their way: they are nobody's */
        cx->peers.close(cx->hooks.server, m->peer);
    }
    if (!again) {
        reply_result(m, st);
    }
    return !again;
}

void migrate_command(struct call *call) {
    struct migrate m = {.call = call};
    if (!parse(&m)) {
        return;
    }
    if (!any_key_is_there(&m)) {
        reply_simple(&call->reply, "NOKEY");
        return;
    }
    while (!attempt(&m)) {
    }
    buf_deinit(&m.out);
    buf_deinit(&m.payload);
}
