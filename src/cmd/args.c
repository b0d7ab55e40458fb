/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/args.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "cmd/call.h"
#include "cmd/table.h"

#define CURSOR_TEXT_MAX 63 /* longer than any number that fits 64 bits */

static const char not_an_integer[] = "ERR value is not an integer or out of range";
static const char not_positive[] = "ERR value is out of range, must be positive";

/* ---- decoding ------------------------------------------------------------------------------- */

bool args_i64(struct call *call, size_t i, int64_t *out) {
    return args_i64_or(call, i, out, not_an_integer);
}

bool args_i64_or(struct call *call, size_t i, int64_t *out, const char *error) {
    if (UNLIKELY(!number_parse_i64(call->argv[i], out))) {
        reply_error(&call->reply, error);
        return false;
    }
    return true;
}

bool args_i64_range(struct call *call, size_t i, int64_t min, int64_t max, int64_t *out,
                    const char *error) {
    if (!args_i64_or(call, i, out, error != NULL ? error : not_an_integer)) {
        return false;
    }
    if (*out >= min && *out <= max) {
        return true;
    }
    if (error != NULL) {
        reply_error(&call->reply, error);
    } else {
        reply_errorf(&call->reply,
                     "ERR value is out of range, value must between %" PRId64 " and %" PRId64, min,
                     max);
    }
    return false;
}

bool args_count(struct call *call, size_t i, int64_t *out) {
    return args_i64_range(call, i, 0, INT64_MAX, out, not_positive);
}

bool args_real(struct call *call, size_t i, long double *out) {
    if (!number_parse_real(call->argv[i], out)) {
        args_not_a_float(call);
        return false;
    }
    return true;
}

bool args_double(struct call *call, size_t i, double *out) {
    if (!number_parse_double(call->argv[i], out)) {
        args_not_a_float(call);
        return false;
    }
    return true;
}

/* As Redis reads it, with strtoull: nothing at all is 0, a sign is allowed. */
bool args_cursor(struct call *call, size_t i, uint64_t *out) {
    char text[CURSOR_TEXT_MAX + 1], *end = text;
    struct bytes arg = call->argv[i];
    bool plain =
        arg.len == 0 || (arg.len <= CURSOR_TEXT_MAX && !isspace((unsigned char)arg.ptr[0]));
    if (plain) {
        memcpy(text, arg.ptr, arg.len);
        text[arg.len] = '\0';
        errno = 0;
        *out = strtoull(text, &end, 10);
    }
    if (!plain || end != text + arg.len || errno == ERANGE) {
        reply_error(&call->reply, "ERR invalid cursor");
        return false;
    }
    return true;
}

bool args_is(const struct call *call, size_t i, const char *word) {
    return i < call->argc && bytes_is(call->argv[i], word);
}

bool args_expiry(struct call *call, size_t i, unsigned time_flags, int64_t now_ms,
                 int64_t *out_ms) {
    int64_t when;
    if (!args_i64(call, i, &when)) {
        return false;
    }
    bool fits = !(time_flags & ARGS_TIME_POSITIVE) || when > 0;
    if (!(time_flags & ARGS_TIME_MS)) {
        fits = fits && !__builtin_mul_overflow(when, (int64_t)1000, &when);
    }
    if (!(time_flags & ARGS_TIME_ABSOLUTE)) {
        fits = fits && !__builtin_add_overflow(when, now_ms, &when);
    }
    if (!fits) {
        args_expire_error(call);
        return false;
    }
    *out_ms = when;
    return true;
}

/* ---- refusals ------------------------------------------------------------------------------- */

void args_syntax_error(struct call *call) {
    reply_error(&call->reply, "ERR syntax error");
}

void args_wrong_type(struct call *call) {
    args_status_reply(&call->reply, ST_WRONGTYPE);
}

void args_out_of_range(struct call *call) {
    reply_error(&call->reply, "ERR index out of range");
}

void args_no_such_key(struct call *call) {
    reply_error(&call->reply, "ERR no such key");
}

void args_not_an_integer(struct call *call) {
    reply_error(&call->reply, not_an_integer);
}

void args_not_a_float(struct call *call) {
    reply_error(&call->reply, "ERR value is not a valid float");
}

void args_expire_error(struct call *call) {
    reply_errorf(&call->reply, "ERR invalid expire time in '%s' command", call->row->name);
}

void args_wrong_arity(struct call *call) {
    table_reply_wrong_arity(&call->reply, call->row);
}

void args_nomem(struct call *call) {
    args_status_reply(&call->reply, ST_NOMEM);
}

void args_string_too_long(struct call *call) {
    reply_error(&call->reply, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
}

void args_status_reply(struct reply *r, enum status st) {
    switch (st) {
    case ST_NOMEM:
        reply_error(r, "OOM out of memory, nothing was changed");
        return;
    case ST_WRONGTYPE:
        reply_error(r, "WRONGTYPE Operation against a key holding the wrong kind of value");
        return;
    default:
        reply_errorf(r, "ERR %s", status_text(st));
    }
}

void args_status_error(struct call *call, enum status st) {
    args_status_reply(&call->reply, st);
}

/* numkeys key [key ...], then what follows. */
static bool parse_counted_keys(struct call *call, size_t i, struct args_mpop *out) {
    int64_t count;
    if (!args_i64_range(call, i, 1, INT64_MAX, &count, "ERR numkeys should be greater than 0")) {
        return false;
    }
    if ((uint64_t)count >= call->argc - i - 1) {
        args_syntax_error(call);
        return false;
    }
    out->first_key = i + 1;
    out->key_count = (size_t)count;
    return true;
}

bool args_mpop(struct call *call, size_t i, const char *first, const char *second,
               struct args_mpop *out) {
    if (!parse_counted_keys(call, i, out)) {
        return false;
    }
    i = out->first_key + out->key_count;
    out->second = args_is(call, i, second);
    int64_t count = 0; /* none given yet */
    bool ok = out->second || args_is(call, i, first);
    for (i++; ok && i < call->argc; i += 2) {
        ok = count == 0 && args_is(call, i, "COUNT") && i + 1 < call->argc;
        if (ok && !args_i64_range(call, i + 1, 1, INT64_MAX, &count,
                                  "ERR count should be greater than 0")) {
            return false;
        }
    }
    if (!ok) {
        args_syntax_error(call);
        return false;
    }
    out->count = count > 0 ? (uint64_t)count : 1;
    return true;
}

/* ---- HELP ----------------------------------------------------------------------------------- */

/* "CLIENT" of the row "client|kill", or the name of a row without container. */
static const char *container_upper(const struct call *call, char *out, size_t cap) {
    const char *name = call->row->container != NULL ? call->row->container->name : call->row->name;
    size_t len = 0;
    for (; name[len] != '\0' && len + 1 < cap; len++) {
        char c = name[len];
        out[len] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    out[len] = '\0';
    return out;
}

void args_subcommand_syntax(struct call *call) {
    char name[32];
    struct bytes sub = call->argv[1];
    reply_errorf(&call->reply,
                 "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s HELP.",
                 (int)(sub.len < 128 ? sub.len : 128), sub.ptr,
                 container_upper(call, name, sizeof name));
}

void args_help(struct call *call, const char *const *lines) {
    size_t count = 0;
    while (lines[count] != NULL) {
        count++;
    }
    char name[32], header[128];
    snprintf(header, sizeof header, "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
             container_upper(call, name, sizeof name));
    reply_array(&call->reply, count + 3);
    reply_simple(&call->reply, header);
    for (size_t i = 0; i < count; i++) {
        reply_simple(&call->reply, lines[i]);
    }
    reply_simple(&call->reply, "HELP");
    reply_simple(&call->reply, "    Prints this help.");
}
