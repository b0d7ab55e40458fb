/* SPDX-License-Identifier: BSD-3-Clause */
/* CLIENT LIST, INFO, KILL, UNBLOCK and HELP: commands about other connections. */
#include <inttypes.h>
#include <stdlib.h>

#include "client_priv.h"
#include "cmd/args.h"
#include "cmd/block.h"
#include "cmd/call.h"
#include "cmd/context.h"
#include "cmd/table.h"
#include "handlers_priv.h"

/* ---- names ---------------------------------------------------------------------------------- */

bool client_text_is_plain(struct bytes text) {
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '!' || text.ptr[i] > '~') {
            return false;
        }
    }
    return true;
}

bool client_name_check(struct call *call, struct bytes name) {
    if (client_text_is_plain(name)) {
        return true;
    }
    reply_error(&call->reply,
                "ERR Client names cannot contain spaces, newlines or special characters.");
    return false;
}

bool client_text_set(char **field, struct bytes text) {
    char *copy = NULL;
    if (text.len > 0) {
        copy = malloc(text.len + 1);
        if (copy == NULL) {
            return false;
        }
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
    }
    free(*field);
    *field = copy;
    return true;
}

/* ---- types ---------------------------------------------------------------------------------- */

/* Every connection of this version is a normal one; the other words are known and match none. */
static bool parse_type(struct call *call, struct bytes word, bool *is_normal) {
    *is_normal = bytes_is(word, "normal");
    if (*is_normal || bytes_is(word, "master") || bytes_is(word, "slave") ||
        bytes_is(word, "replica") || bytes_is(word, "pubsub")) {
        return true;
    }
    reply_errorf(&call->reply, "ERR Unknown client type '%.*s'",
                 (int)(word.len < 128 ? word.len : 128), word.ptr);
    return false;
}

/* ---- CLIENT LIST, INFO ---------------------------------------------------------------------- */

static void write_flags(struct buf *out, uint32_t flags) {
    static const struct {
        uint32_t flag;
        char letter;
    } letters[] = {
        {CLIENT_CLOSE_AFTER_REPLY, 'c'}, {CLIENT_CLOSE_NOW, 'A'}, {CLIENT_UNIX_SOCKET, 'U'},
        {CLIENT_NO_EVICT, 'e'},          {CLIENT_NO_TOUCH, 'T'},
    };
    size_t before = out->len;
    for (size_t i = 0; i < ARRAY_LEN(letters); i++) {
        if (flags & letters[i].flag) {
            buf_append_char(out, letters[i].letter);
        }
    }
    if (out->len == before) {
        buf_append_char(out, 'N');
    }
}

static const char *or_empty(const char *s) {
    return s != NULL ? s : "";
}

static int64_t seconds_since(int64_t now_ms, int64_t then_ms) {
    return now_ms > then_ms ? (now_ms - then_ms) / 1000 : 0;
}

/* One line, fields and order as in Redis 7.2. There is one output buffer: it is "rbs", and what
 * waits in it "obl". */
static void write_client(struct buf *out, const struct cmd_context *cx, const struct client *c) {
    struct client_connection_info info = {.fd = -1};
    size_t output_cap = c->out != NULL ? c->out->cap : 0; /* NULL until its first request */
    if (cx->clients.describe != NULL) {
        cx->clients.describe(c, &info);
    }
    buf_printf(
        out,
        "id=%" PRIu64 " addr=%s laddr=%s fd=%d name=%s age=%" PRId64 " idle=%" PRId64 " flags=",
        c->id, info.peer, info.local, info.fd, or_empty(c->name),
        seconds_since(cx->now_ms, c->created_ms), seconds_since(cx->now_ms, c->last_active_ms));
    write_flags(out, c->flags);
    buf_printf(out,
               " db=%u sub=0 psub=0 ssub=0 multi=-1 qbuf=%zu qbuf-free=%zu argv-mem=%zu "
               "multi-mem=0 rbs=%zu rbp=%zu obl=%zu oll=0 omem=0 tot-mem=%zu events=%s cmd=%s "
               "user=default redir=-1 resp=%u lib-name=%s lib-ver=%s\n",
               (unsigned)c->db, info.query_bytes, info.query_free_bytes, info.argv_bytes,
               output_cap, output_cap, info.output_bytes, info.memory_bytes,
               info.output_bytes > 0 ? "rw" : "r", c->last_row != NULL ? c->last_row->name : "NULL",
               (unsigned)c->proto, or_empty(c->lib_name), or_empty(c->lib_ver));
}

static void reply_text(struct call *call, struct buf *text) {
    if (text->failed) {
        args_nomem(call);
    } else {
        reply_verbatim(&call->reply, "txt", buf_bytes(text));
    }
    buf_deinit(text);
}

void client_info_command(struct call *call) {
    struct buf text = {0};
    write_client(&text, call->cx, call->client);
    reply_text(call, &text);
}

/* In the order asked; ids that are not there are left out. */
static bool write_by_id(struct call *call, struct buf *text) {
    for (size_t i = 3; i < call->argc; i++) {
        int64_t id;
        if (!args_i64_or(call, i, &id, "ERR Invalid client ID")) {
            return false;
        }
        const struct client *c = id > 0 ? client_find(&call->cx->clients, (uint64_t)id) : NULL;
        if (c != NULL) {
            write_client(text, call->cx, c);
        }
    }
    return true;
}

static bool write_list(struct call *call, struct buf *text) {
    if (call->argc > 3 && args_is(call, 2, "id")) {
        return write_by_id(call, text);
    }
    bool is_normal = true;
    if (call->argc == 4 && args_is(call, 2, "type")) {
        if (!parse_type(call, call->argv[3], &is_normal)) {
            return false;
        }
    } else if (call->argc != 2) {
        args_syntax_error(call);
        return false;
    }
    const struct client *c = is_normal ? call->cx->clients.first : NULL;
    for (; c != NULL; c = c->next) {
        if (!(c->flags & CLIENT_GONE)) {
            write_client(text, call->cx, c);
        }
    }
    return true;
}

void client_list_command(struct call *call) {
    struct buf text = {0};
    if (write_list(call, &text)) {
        reply_text(call, &text);
    } else {
        buf_deinit(&text);
    }
}

/* ---- CLIENT KILL ---------------------------------------------------------------------------- */

struct kill_filter {
    const struct bytes *peer, *local; /* NULL: any */
    uint64_t id;                      /* 0: any */
    bool is_normal, skip_me;
};

static bool kill_option(struct call *call, size_t i, struct kill_filter *f) {
    struct bytes value = call->argv[i + 1];
    int64_t id;
    if (args_is(call, i, "id")) {
        if (!args_i64_range(call, i + 1, 1, INT64_MAX, &id,
                            "ERR client-id should be greater than 0")) {
            return false;
        }
        f->id = (uint64_t)id;
    } else if (args_is(call, i, "type")) {
        return parse_type(call, value, &f->is_normal);
    } else if (args_is(call, i, "addr")) {
        f->peer = &call->argv[i + 1];
    } else if (args_is(call, i, "laddr")) {
        f->local = &call->argv[i + 1];
    } else if (args_is(call, i, "user")) {
        if (!bytes_equal(value, BYTES_LIT("default"))) {
            reply_errorf(&call->reply, "ERR No such user '%.*s'",
                         (int)(value.len < 128 ? value.len : 128), value.ptr);
            return false;
        }
    } else if (args_is(call, i, "skipme") && (bytes_is(value, "yes") || bytes_is(value, "no"))) {
        f->skip_me = bytes_is(value, "yes");
    } else {
        args_syntax_error(call);
        return false;
    }
    return true;
}

static bool parse_kill(struct call *call, struct kill_filter *f) {
    if (call->argc == 3) { /* the old form: one address, oneself included */
        *f = (struct kill_filter){.peer = &call->argv[2], .is_normal = true};
        return true;
    }
    *f = (struct kill_filter){.is_normal = true, .skip_me = true};
    for (size_t i = 2; i < call->argc; i += 2) {
        if (i + 1 == call->argc) {
            args_syntax_error(call);
            return false;
        }
        if (!kill_option(call, i, f)) {
            return false;
        }
    }
    return true;
}

static bool kill_matches(const struct call *call, const struct client *c,
                         const struct kill_filter *f) {
    if (!f->is_normal || (c->flags & CLIENT_GONE) || (f->skip_me && c == call->client) ||
        (f->id != 0 && c->id != f->id)) {
        return false;
    }
    if (f->peer == NULL && f->local == NULL) {
        return true;
    }
    struct client_connection_info info = {.fd = -1};
    if (call->cx->clients.describe != NULL) {
        call->cx->clients.describe(c, &info);
    }
    return (f->peer == NULL || bytes_equal(*f->peer, bytes_from_cstr(info.peer))) &&
           (f->local == NULL || bytes_equal(*f->local, bytes_from_cstr(info.local)));
}

/* Oneself goes once the reply is out; others at once, and their memory with them. */
static void kill_client(struct call *call, struct client *c) {
    const struct server_hooks *hooks = &call->cx->hooks;
    if (c == call->client) {
        c->flags |= CLIENT_CLOSE_AFTER_REPLY;
        return;
    }
    c->flags |= CLIENT_CLOSE_NOW;
    if (hooks->close != NULL) {
        hooks->close(hooks->server, c);
    }
}

void client_kill_command(struct call *call) {
    struct kill_filter filter;
    if (!parse_kill(call, &filter)) {
        return;
    }
    int64_t killed = 0;
    struct client *next;
    for (struct client *c = call->cx->clients.first; c != NULL; c = next) {
        next = c->next;
        if (kill_matches(call, c, &filter)) {
            kill_client(call, c);
            killed++;
        }
    }
    if (call->argc > 3) {
        reply_integer(&call->reply, killed);
    } else if (killed > 0) {
        reply_ok(&call->reply);
    } else {
        reply_error(&call->reply, "ERR No such client");
    }
}

/* ---- CLIENT UNBLOCK ------------------------------------------------------------------------- */

void client_unblock_command(struct call *call) {
    int64_t id;
    bool with_error = args_is(call, 3, "ERROR");
    if (call->argc > 4) {
        args_subcommand_syntax(call);
        return;
    }
    if (call->argc == 4 && !with_error && !args_is(call, 3, "TIMEOUT")) {
        reply_error(&call->reply, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        return;
    }
    if (!args_i64(call, 2, &id)) {
        return;
    }
    struct client *c = id > 0 ? client_find(&call->cx->clients, (uint64_t)id) : NULL;
    bool blocked = c != NULL && block_is_blocked(c);
    if (blocked) {
        block_cancel(call->cx, c, with_error);
    }
    reply_integer(&call->reply, blocked);
}

/* ---- CLIENT HELP ---------------------------------------------------------------------------- */

void client_help_command(struct call *call) {
    static const char *const lines[] = {
        "GETNAME",
        "    Return the name of this connection.",
        "ID",
        "    Return the id of this connection.",
        "INFO",
        "    Describe this connection.",
        "KILL <ip:port>",
        "    Close the connection from that address.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Close every connection that passes all filters:",
        "    * ADDR (<ip:port>|<unixsocket>:0)",
        "      connected from this address",
        "    * ID <client-id>",
        "      of this id",
        "    * LADDR (<ip:port>|<unixsocket>:0)",
        "      connected to this address of ours",
        "    * SKIPME (YES|NO)",
        "      sparing this connection (default: yes)",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "      of this type",
        "    * USER <username>",
        "      authenticated as this user",
        "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB)|ID <client-id> [...]]",
        "    Describe the open connections, a line each.",
        "NO-EVICT (ON|OFF)",
        "    Keep this connection open when memory for clients runs short.",
        "NO-TOUCH (ON|OFF)",
        "    Keep this connection's commands from counting as accesses to keys.",
        "REPLY (ON|OFF|SKIP)",
        "    Turn the replies of this connection off and on.",
        "SETINFO (LIB-NAME <name>|LIB-VER <version>)",
        "    Tell which client library speaks here.",
        "SETNAME <name>",
        "    Name this connection.",
        "UNBLOCK <client-id> [TIMEOUT|ERROR]",
        "    Wake a connection that waits, as if its time were up or with an error.",
        NULL,
    };
    args_help(call, lines);
}
