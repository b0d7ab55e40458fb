/* SPDX-License-Identifier: BSD-3-Clause */
/* DUMP and RESTORE: a value as bytes of its own, which a Redis understands too. */
#include "cmd/args.h"
#include "cmd/block.h"
#include "cmd/lookup.h"
#include "handlers_priv.h"
#include "persist/reader.h"
#include "persist/writer.h"

/* ---- DUMP ----------------------------------------------------------------------------------- */

void dump_command(struct call *call) {
    struct entry e;
    struct buf payload = {0};
    if (!lookup_key(call, 1, DB_TOUCH, &e)) {
        reply_null(&call->reply);
        return;
    }
    enum status st = writer_payload(&e.value, call->cx->config->rdbcompression, &payload);
    if (st == ST_OK) {
        reply_bulk(&call->reply, buf_bytes(&payload));
    } else {
        args_status_error(call, st);
    }
    buf_deinit(&payload);
}

/* ---- RESTORE -------------------------------------------------------------------------------- */

enum { NOT_GIVEN = -1, FREQ_MAX = 255 };

struct restore {
    bool replace, absolute;
    int64_t expire_ms;  /* DB_NO_EXPIRY when none */
    int64_t idle, freq; /* NOT_GIVEN when not given */
};

/* A number behind IDLETIME or FREQ. */
static bool get_option(struct call *call, size_t i, int64_t max, int64_t *out, const char *error) {
    if (!args_i64(call, i, out)) {
        return false;
    }
    if (*out < 0 || *out > max) {
        reply_error(&call->reply, error);
        return false;
    }
    return true;
}

static bool parse_options(struct call *call, struct restore *r) {
    *r = (struct restore){.expire_ms = DB_NO_EXPIRY, .idle = NOT_GIVEN, .freq = NOT_GIVEN};
    for (size_t i = 4; i < call->argc; i++) {
        bool more = i + 1 < call->argc;
        if (args_is(call, i, "REPLACE")) {
            r->replace = true;
        } else if (args_is(call, i, "ABSTTL")) {
            r->absolute = true;
        } else if (args_is(call, i, "IDLETIME") && more && r->freq == NOT_GIVEN) {
            if (!get_option(call, ++i, INT64_MAX, &r->idle,
                            "ERR Invalid IDLETIME value, must be >= 0")) {
                return false;
            }
        } else if (args_is(call, i, "FREQ") && more && r->idle == NOT_GIVEN) {
            if (!get_option(call, ++i, FREQ_MAX, &r->freq,
                            "ERR Invalid FREQ value, must be >= 0 and <= 255")) {
                return false;
            }
        } else {
            args_syntax_error(call);
            return false;
        }
    }
    return true;
}

/* 0 is no expiry, absolute or not. */
static bool parse_ttl(struct call *call, struct restore *r) {
    int64_t ttl_ms;
    if (!args_i64(call, 2, &ttl_ms)) {
        return false;
    }
    if (ttl_ms < 0) {
        reply_error(&call->reply, "ERR Invalid TTL value, must be >= 0");
        return false;
    }
    if (ttl_ms == 0) {
        return true;
    }
    if (!r->absolute && __builtin_add_overflow(ttl_ms, call->cx->now_ms, &ttl_ms)) {
        args_expire_error(call);
        return false;
    }
    r->expire_ms = ttl_ms;
    return true;
}

static void refuse_payload(struct call *call, enum status st, const char *error) {
    switch (st) {
    case ST_SYNTAX:
        reply_error(&call->reply, "ERR DUMP payload version or checksum are wrong");
        break;
    case ST_CORRUPT:
        reply_error(&call->reply, "ERR Bad data format");
        break;
    case ST_UNSUPPORTED: /* a good payload, of what is not built here: say which */
        reply_errorf(&call->reply, "ERR Bad data format: %s", error);
        break;
    default:
        args_status_error(call, st);
    }
}

/* Put the value where the key's is, or nothing when its time has come already. The image's object
 * is the key's on ST_OK. */
static enum status put_value(struct call *call, const struct restore *r, enum value_type type,
                             struct value_image *image) {
    struct entry e;
    bool found = lookup_key(call, 1, DB_NO_TOUCH, &e);
    if (r->expire_ms != DB_NO_EXPIRY && r->expire_ms <= call->cx->now_ms) {
        value_image_discard(type, image);
        if (found) {
            entry_delete(&e);
            call_dirty(call, 1);
        }
        return ST_OK;
    }
    enum status st = found ? entry_replace(&e, type, image, r->expire_ms)
                           : db_add(call_db(call), call->argv[1], lookup_hash(call, 1), type, image,
                                    r->expire_ms, &e);
    if (st == ST_OK) {
        entry_set_idle_seconds(&e, r->idle == NOT_GIVEN ? 0 : (uint64_t)r->idle);
        call_dirty(call, 1);
        block_signal_key(call->cx, call_db(call), call->argv[1]);
    }
    return st;
}

static void restore_value(struct call *call, const struct restore *r) {
    enum value_type type;
    struct value_image image;
    struct buf hold = {0};
    char error[READER_ERROR_LEN];
    enum status st =
        reader_payload(call->argv[3], &call->cx->dbs->env, &hold, &type, &image, error);
    if (st != ST_OK) {
        refuse_payload(call, st, error);
    } else {
        st = put_value(call, r, type, &image);
        if (st == ST_OK) {
            reply_ok(&call->reply);
        } else {
            value_image_discard(type, &image);
            args_status_error(call, st);
        }
    }
    buf_deinit(&hold);
}

void restore_command(struct call *call) {
    struct restore r;
    struct entry e;
    if (!parse_options(call, &r)) {
        return;
    }
    if (!r.replace && lookup_key(call, 1, DB_NO_TOUCH, &e)) {
        reply_error(&call->reply, "BUSYKEY Target key name already exists.");
        return;
    }
    if (parse_ttl(call, &r)) {
        restore_value(call, &r);
    }
}
