/* SPDX-License-Identifier: BSD-3-Clause */
/* DEBUG: off unless enable-debug-command allows it. */
#include <stdio.h>
#include <time.h>

#include "cmd/args.h"
#include "cmd/lookup.h"
#include "handlers_priv.h"
#include "persist/writer.h"

static bool allowed(struct call *call) {
    int mode = call->cx->config->enable_debug_command;
    bool ok = mode == CONFIG_DEBUG_YES ||
              (mode == CONFIG_DEBUG_LOCAL && (call->client->flags & CLIENT_LOCAL));
    if (!ok) {
        reply_error(
            &call->reply,
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to "
            "\"local\", "
            "you can run it from a local connection, otherwise you need to set this option in "
            "the configuration file, and then restart the server.");
    }
    return ok;
}

static void debug_sleep(struct call *call) {
    double seconds;
    if (!args_double(call, 2, &seconds)) {
        return;
    }
    if (seconds > 0) {
        struct timespec ts = {.tv_sec = (time_t)seconds};
        ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
        nanosleep(&ts, NULL);
    }
    reply_ok(&call->reply);
}

static void debug_object(struct call *call) {
    struct entry e;
    if (!lookup_key(call, 2, DB_NO_TOUCH, &e)) {
        args_no_such_key(call);
        return;
    }
    char text[256];
    uint64_t bytes;
    enum status st = writer_value_bytes(&e.value, call->cx->config->rdbcompression, &bytes);
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    snprintf(text, sizeof(text),
             "Value at:%p refcount:1 encoding:%s serializedlength:%llu memory:%zu "
             "lru_seconds_idle:%lld",
             (void *)e.value.data, value_encoding_name(&e.value), (unsigned long long)bytes,
             entry_memory(&e), (long long)entry_idle_seconds(&e));
    reply_simple(&call->reply, text);
}

static void debug_set_active_expire(struct call *call) {
    int64_t on;
    if (args_i64(call, 2, &on)) {
        call->cx->dbs->active_expire = on != 0;
        reply_ok(&call->reply);
    }
}

static void debug_check(struct call *call) {
    for (size_t i = 0; i < call->cx->dbs->count; i++) {
        db_check(call->cx->dbs->dbs[i]);
    }
    reply_ok(&call->reply);
}

static void debug_arena(struct call *call) {
    struct db_memory m;
    char text[256];
    db_get_memory(call_db(call), &m);
    snprintf(text, sizeof(text),
             "live:%zu dead:%zu reserved:%zu huge:%zu units:%zu index:%zu order:%zu",
             m.arena.live_bytes, m.arena.dead_bytes, m.arena.reserved_bytes, m.arena.huge_bytes,
             m.arena.units, m.index_bytes, m.order_bytes);
    reply_simple(&call->reply, text);
}

static void debug_reload(struct call *call) {
    struct cmd_context *cx = call->cx;
    struct bytes name = bytes_from_cstr(cx->config->dbfilename);
    char error[SNAPSHOT_ERROR_LEN];
    if (cx->persist.loading) {
        reply_error(&call->reply, "LOADING Redis is loading the dataset in memory");
        return;
    }
    background_cancel(cx, true); /* or it would put its older file in the place of this one */
    enum status st = persist_save(cx, name, error);
    if (st == ST_OK) {
        st = persist_load(cx, cx->config->dbfilename, PERSIST_MAXMEMORY, error);
    }
    if (st == ST_OK) {
        reply_ok(&call->reply);
    } else {
        reply_errorf(&call->reply, "ERR Error trying to load the RDB dump: %s", error);
    }
}

static void debug_help(struct call *call) {
    static const char *const lines[] = {
        "ARENA",
        "    Memory of the selected database's key records and indexes.",
        "CHECK",
        "    Verifies every data structure; the server aborts when one is damaged.",
        "OBJECT <key>",
        "    Where and how the key's value is stored.",
        "RELOAD",
        "    Saves to dbfilename and loads that, in place of the data there are.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    Turns the background removal of expired keys off or on.",
        "SLEEP <seconds>",
        "    Stops the server for a time; fractions are allowed.",
        NULL};
    args_help(call, lines);
}

void debug_command(struct call *call) {
    static const struct {
        const char *word;
        size_t argc;
        void (*run)(struct call *call);
    } subs[] = {
        {"ARENA", 2, debug_arena},
        {"CHECK", 2, debug_check},
        {"HELP", 2, debug_help},
        {"OBJECT", 3, debug_object},
        {"RELOAD", 2, debug_reload},
        {"SLEEP", 3, debug_sleep},
        {"SET-ACTIVE-EXPIRE", 3, debug_set_active_expire},
    };
    if (!allowed(call)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(subs); i++) {
        if (args_is(call, 1, subs[i].word) && call->argc == subs[i].argc) {
            subs[i].run(call);
            return;
        }
    }
    args_subcommand_syntax(call);
}
