/* SPDX-License-Identifier: BSD-3-Clause */
/* Times to live. */
#include "base/bytes.h"
#include "cmd/args.h"
#include "cmd/lookup.h"
#include "handlers_priv.h"

/* What TTL and its relatives answer instead of a time. */
#define TTL_NO_KEY (-2)
#define TTL_NO_EXPIRY (-1)

enum expire_flag { EXPIRE_NX = 1 << 0, EXPIRE_XX = 1 << 1, EXPIRE_GT = 1 << 2, EXPIRE_LT = 1 << 3 };

static bool parse_flags(struct call *call, unsigned *flags) {
    *flags = 0;
    for (size_t i = 3; i < call->argc; i++) {
        if (args_is(call, i, "NX")) {
            *flags |= EXPIRE_NX;
        } else if (args_is(call, i, "XX")) {
            *flags |= EXPIRE_XX;
        } else if (args_is(call, i, "GT")) {
            *flags |= EXPIRE_GT;
        } else if (args_is(call, i, "LT")) {
            *flags |= EXPIRE_LT;
        } else {
            reply_errorf(&call->reply, "ERR Unsupported option %.*s", (int)call->argv[i].len,
                         call->argv[i].ptr);
            return false;
        }
    }
    if ((*flags & EXPIRE_NX) && (*flags & ~(unsigned)EXPIRE_NX)) {
        reply_error(&call->reply,
                    "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if ((*flags & EXPIRE_GT) && (*flags & EXPIRE_LT)) {
        reply_error(&call->reply, "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    return true;
}

/* A key without expiry counts as one that expires after all others. */
static bool flags_allow(unsigned flags, int64_t current_ms, int64_t new_ms) {
    bool expires = current_ms != DB_NO_EXPIRY;
    if (((flags & EXPIRE_NX) && expires) || ((flags & EXPIRE_XX) && !expires)) {
        return false;
    }
    if ((flags & EXPIRE_GT) && (!expires || new_ms <= current_ms)) {
        return false;
    }
    return !((flags & EXPIRE_LT) && expires && new_ms >= current_ms);
}

static void expire_key(struct call *call, unsigned time_flags) {
    unsigned flags;
    int64_t expire_ms;
    struct entry e;
    if (!parse_flags(call, &flags) ||
        !args_expiry(call, 2, time_flags, call->cx->now_ms, &expire_ms)) {
        return;
    }
    if (!lookup_key(call, 1, DB_NO_TOUCH, &e) || !flags_allow(flags, e.expire_ms, expire_ms)) {
        reply_integer(&call->reply, 0);
        return;
    }
    if (expire_ms <= call->cx->now_ms) {
        entry_delete(&e);
    } else {
        enum status st = entry_set_expiry(&e, expire_ms);
        if (st != ST_OK) {
            args_status_error(call, st);
            return;
        }
    }
    call_dirty(call, 1);
    reply_integer(&call->reply, 1);
}

void expire_command(struct call *call) {
    expire_key(call, ARGS_TIME_SECONDS);
}

void pexpire_command(struct call *call) {
    expire_key(call, ARGS_TIME_MS);
}

void expireat_command(struct call *call) {
    expire_key(call, ARGS_TIME_SECONDS | ARGS_TIME_ABSOLUTE);
}

void pexpireat_command(struct call *call) {
    expire_key(call, ARGS_TIME_MS | ARGS_TIME_ABSOLUTE);
}

static void reply_expiry(struct call *call, bool absolute, bool in_ms) {
    struct entry e;
    if (!lookup_key(call, 1, DB_NO_TOUCH, &e)) {
        reply_integer(&call->reply, TTL_NO_KEY);
        return;
    }
    if (e.expire_ms == DB_NO_EXPIRY) {
        reply_integer(&call->reply, TTL_NO_EXPIRY);
        return;
    }
    int64_t ms = absolute ? e.expire_ms : e.expire_ms - call->cx->now_ms;
    reply_integer(&call->reply, in_ms ? ms : ms / 1000 + (ms % 1000 >= 500));
}

void ttl_command(struct call *call) {
    reply_expiry(call, false, false);
}

void pttl_command(struct call *call) {
    reply_expiry(call, false, true);
}

void expiretime_command(struct call *call) {
    reply_expiry(call, true, false);
}

void pexpiretime_command(struct call *call) {
    reply_expiry(call, true, true);
}

void persist_command(struct call *call) {
    struct entry e;
    bool had = lookup_key(call, 1, DB_NO_TOUCH, &e) && e.expire_ms != DB_NO_EXPIRY;
    if (had) {
        enum status st = entry_set_expiry(&e, DB_NO_EXPIRY);
        if (st != ST_OK) {
            args_status_error(call, st);
            return;
        }
        call_dirty(call, 1);
    }
    reply_integer(&call->reply, had);
}
