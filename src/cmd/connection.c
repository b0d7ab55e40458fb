/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands about the connection itself. What CLIENT says of all connections is in
 * client_commands.c. */
#include <stdlib.h>

#include "client_priv.h"
#include "cmd/args.h"
#include "cmd/call.h"
#include "cmd/context.h"
#include "cmd/table.h"
#include "handlers_priv.h"

/* ---- identity ------------------------------------------------------------------------------- */

/* Texts that INFO shows as well: the rows of stats/metrics.def are where they are said. */
static const char *fixed_text(const char *wanted) {
#define FIXED(section, name, text, help)                                                           \
    if (strcmp(wanted, #name) == 0) {                                                              \
        return text;                                                                               \
    }
#define COUNTER(section, field, unit, help)
#define GAUGE(section, field, unit, help)
#define VALUE(section, type, field, unit, help)
#define DERIVED(section, type, name, function, unit, help)
#include "stats/metrics.def"
#undef DERIVED
#undef VALUE
#undef GAUGE
#undef COUNTER
#undef FIXED
    return "";
}

/* ---- PING, ECHO, QUIT, SELECT --------------------------------------------------------------- */

void ping_command(struct call *call) {
    if (call->argc > 2) {
        args_wrong_arity(call);
    } else if (call->argc == 2) {
        reply_bulk(&call->reply, call->argv[1]);
    } else {
        reply_simple(&call->reply, "PONG");
    }
}

void echo_command(struct call *call) {
    reply_bulk(&call->reply, call->argv[1]);
}

void quit_command(struct call *call) {
    call->client->flags |= CLIENT_CLOSE_AFTER_REPLY;
    reply_ok(&call->reply);
}

void select_command(struct call *call) {
    int64_t number;
    if (!args_i64_range(call, 1, INT32_MIN, INT32_MAX, &number, NULL)) {
        return;
    }
    if (number < 0 || (uint64_t)number >= call->cx->dbs->count) {
        reply_error(&call->reply, "ERR DB index is out of range");
        return;
    }
    call->client->db = (uint16_t)number;
    reply_ok(&call->reply);
}

/* ---- AUTH, HELLO, RESET --------------------------------------------------------------------- */

static void set_flag(struct client *c, uint32_t flag, bool on) {
    c->flags = on ? c->flags | flag : c->flags & ~flag;
}

/* There is one user, "default"; without requirepass it takes any password. */
static bool authenticate(struct call *call, struct bytes user, struct bytes password) {
    const char *secret = call->cx->config->requirepass;
    bool good = bytes_equal(user, BYTES_LIT("default")) &&
                (secret[0] == '\0' || bytes_equal_secret(bytes_from_cstr(secret), password));
    if (!good) {
        reply_error(&call->reply, "WRONGPASS invalid username-password pair or user is disabled.");
        return false;
    }
    call->client->flags |= CLIENT_AUTHENTICATED;
    return true;
}

void auth_command(struct call *call) {
    if (call->argc > 3) {
        args_syntax_error(call);
        return;
    }
    bool has_user = call->argc == 3;
    if (!has_user && call->cx->config->requirepass[0] == '\0') {
        reply_error(&call->reply, "ERR AUTH <password> called without any password configured for "
                                  "the default user. Are you sure your configuration is correct?");
        return;
    }
    struct bytes user = has_user ? call->argv[1] : BYTES_LIT("default");
    if (authenticate(call, user, call->argv[call->argc - 1])) {
        reply_ok(&call->reply);
    }
}

struct hello {
    int64_t proto;                              /* 0: keep */
    const struct bytes *user, *password, *name; /* NULL: not given */
};

static bool parse_hello(struct call *call, struct hello *h) {
    *h = (struct hello){.proto = 0};
    if (call->argc == 1) {
        return true;
    }
    if (!args_i64_or(call, 1, &h->proto,
                     "ERR Protocol version is not an integer or out of range")) {
        return false;
    }
    if (h->proto != 2 && h->proto != 3) {
        reply_error(&call->reply, "NOPROTO unsupported protocol version");
        return false;
    }
    for (size_t i = 2; i < call->argc; i++) {
        size_t more = call->argc - 1 - i;
        if (args_is(call, i, "auth") && more >= 2) {
            h->user = &call->argv[i + 1];
            h->password = &call->argv[i + 2];
            i += 2;
        } else if (args_is(call, i, "setname") && more >= 1) {
            h->name = &call->argv[++i];
            if (!client_name_check(call, *h->name)) {
                return false;
            }
        } else {
            struct bytes option = call->argv[i];
            reply_errorf(&call->reply, "ERR Syntax error in HELLO option '%.*s'",
                         (int)(option.len < 128 ? option.len : 128), option.ptr);
            return false;
        }
    }
    return true;
}

static void reply_hello(struct call *call) {
    struct reply *r = &call->reply;
    reply_map(r, 7);
    reply_bulk_cstr(r, "server");
    reply_bulk_cstr(r, "redis"); /* the protocol's name: clients look for it */
    reply_bulk_cstr(r, "version");
    reply_bulk_cstr(r, fixed_text("redis_version"));
    reply_bulk_cstr(r, "proto");
    reply_integer(r, call->client->proto);
    reply_bulk_cstr(r, "id");
    reply_integer(r, (int64_t)call->client->id);
    reply_bulk_cstr(r, "mode");
    reply_bulk_cstr(r, fixed_text("redis_mode"));
    reply_bulk_cstr(r, "role");
    reply_bulk_cstr(r, fixed_text("role"));
    reply_bulk_cstr(r, "modules");
    reply_array(r, 0);
}

void hello_command(struct call *call) {
    struct client *c = call->client;
    struct hello h;
    if (!parse_hello(call, &h)) {
        return;
    }
    if (h.user != NULL && !authenticate(call, *h.user, *h.password)) {
        return;
    }
    if (call->cx->config->requirepass[0] != '\0' && !(c->flags & CLIENT_AUTHENTICATED)) {
        reply_error(&call->reply,
                    "NOAUTH HELLO must be called with the client already authenticated, otherwise "
                    "the HELLO AUTH <user> <pass> option can be used to authenticate the client "
                    "and select the RESP protocol version at the same time");
        return;
    }
    if (h.name != NULL && !client_text_set(&c->name, *h.name)) {
        args_nomem(call);
        return;
    }
    if (h.proto != 0) {
        c->proto = (uint8_t)h.proto;
        call->reply.proto = (int)h.proto;
    }
    reply_hello(call);
}

/* The library's name and version stay: it is still the same library. */
void reset_command(struct call *call) {
    struct client *c = call->client;
    c->db = 0;
    c->proto = 2;
    call->reply.proto = 2;
    free(c->name);
    c->name = NULL;
    set_flag(c, CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP | CLIENT_NO_EVICT | CLIENT_NO_TOUCH, false);
    set_flag(c, CLIENT_AUTHENTICATED, call->cx->config->requirepass[0] == '\0');
    reply_simple(&call->reply, "RESET");
}

/* ---- CLIENT, about the caller --------------------------------------------------------------- */

void client_id_command(struct call *call) {
    reply_integer(&call->reply, (int64_t)call->client->id);
}

void client_getname_command(struct call *call) {
    if (call->client->name != NULL) {
        reply_bulk_cstr(&call->reply, call->client->name);
    } else {
        reply_null(&call->reply);
    }
}

static void set_text(struct call *call, char **field, struct bytes text) {
    if (client_text_set(field, text)) {
        reply_ok(&call->reply);
    } else {
        args_nomem(call);
    }
}

void client_setname_command(struct call *call) {
    if (client_name_check(call, call->argv[2])) {
        set_text(call, &call->client->name, call->argv[2]);
    }
}

void client_setinfo_command(struct call *call) {
    struct bytes which = call->argv[2];
    struct client *c = call->client;
    char **field = args_is(call, 2, "lib-name")  ? &c->lib_name
                   : args_is(call, 2, "lib-ver") ? &c->lib_ver
                                                 : NULL;
    int shown = (int)(which.len < 128 ? which.len : 128);
    if (field == NULL) {
        reply_errorf(&call->reply, "ERR Unrecognized option '%.*s'", shown, which.ptr);
    } else if (!client_text_is_plain(call->argv[3])) {
        reply_errorf(&call->reply,
                     "ERR %.*s cannot contain spaces, newlines or special characters.", shown,
                     which.ptr);
    } else {
        set_text(call, field, call->argv[3]);
    }
}

/* OFF and SKIP answer nothing, which is the one exception to "every handler replies once". */
void client_reply_command(struct call *call) {
    struct client *c = call->client;
    if (args_is(call, 2, "on")) {
        set_flag(c, CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP, false);
        reply_ok(&call->reply);
    } else if (args_is(call, 2, "off")) {
        set_flag(c, CLIENT_REPLY_OFF, true);
    } else if (args_is(call, 2, "skip")) {
        set_flag(c, CLIENT_REPLY_SKIP, !(c->flags & CLIENT_REPLY_OFF));
    } else {
        args_syntax_error(call);
    }
}

static void set_on_off(struct call *call, uint32_t flag) {
    bool on = args_is(call, 2, "on");
    if (!on && !args_is(call, 2, "off")) {
        args_syntax_error(call);
        return;
    }
    set_flag(call->client, flag, on);
    reply_ok(&call->reply);
}

void client_no_evict_command(struct call *call) {
    set_on_off(call, CLIENT_NO_EVICT);
}

void client_no_touch_command(struct call *call) {
    set_on_off(call, CLIENT_NO_TOUCH);
}
