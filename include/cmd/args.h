/* SPDX-License-Identifier: BSD-3-Clause */
/* args: what handlers share when they read arguments and refuse them.
 *
 * A decoder answers true and fills *out, or has already replied the error and answers false: the
 * handler then returns at once, having changed nothing. An args_<refusal>() replies one error; call
 * it instead of any other reply. Texts are Redis 7.2's, byte for byte, unless the comment says
 * otherwise. Nothing here allocates; every call is O(length of the argument). Index i is into
 * call->argv and must be below call->argc. */
#ifndef CMD_ARGS_H
#define CMD_ARGS_H

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/status.h"

struct call;
struct reply;

/* --- decoding
 * -----------------------------------------------------------------------------------------------------
 */

/* "ERR value is not an integer or out of range" */
MUST_CHECK bool args_i64(struct call *call, size_t i, int64_t *out);

/* As args_i64, with the error text of your choice, prefix included: "ERR timeout is not an integer
 * or out of range". */
MUST_CHECK bool args_i64_or(struct call *call, size_t i, int64_t *out, const char *error);

/* An integer within [min, max]. error is the reply to anything else; NULL picks Redis's own: "ERR
 * value is not an integer or out of range" when it is none, "ERR value is out of range, value must
 * between MIN and MAX" when it is outside. */
MUST_CHECK bool args_i64_range(struct call *call, size_t i, int64_t min, int64_t max, int64_t *out,
                               const char *error);

/* A count of 0 or more: "ERR value is out of range, must be positive", the same text when it is no
 * number at all. */
MUST_CHECK bool args_count(struct call *call, size_t i, int64_t *out);

/* "ERR value is not a valid float"; NaN is refused, infinities are not. */
MUST_CHECK bool args_real(struct call *call, size_t i, long double *out);
MUST_CHECK bool args_double(struct call *call, size_t i, double *out);

/* A SCAN cursor, an unsigned 64-bit decimal: "ERR invalid cursor". */
MUST_CHECK bool args_cursor(struct call *call, size_t i, uint64_t *out);

/* Argument i is this word but for ASCII case; false as well when there is no argument i. Replies
 * nothing. */
bool args_is(const struct call *call, size_t i, const char *word);

enum args_time {
    ARGS_TIME_SECONDS = 0,
    ARGS_TIME_MS = 1 << 0,       /* the argument counts milliseconds, else seconds */
    ARGS_TIME_ABSOLUTE = 1 << 1, /* it is a Unix time, else a distance from now_ms */
    ARGS_TIME_POSITIVE =
        1 << 2, /* 0 and less are refused (SET, SETEX, GETEX; the EXPIRE family takes them) */
};

/* A time to live as an absolute Unix time in milliseconds. now_ms is the clock's time that relative
 * forms count from. "ERR value is not an integer or out of range", or "ERR invalid expire time in
 * 'set' command" with the row's name for what does not fit 64 bits of milliseconds or is not
 * positive where it must be. */
MUST_CHECK bool args_expiry(struct call *call, size_t i, unsigned time_flags, int64_t now_ms,
                            int64_t *out_ms);

/* What LMPOP, ZMPOP and their forms that wait are given. */
struct args_mpop {
    size_t first_key, key_count; /* arguments */
    bool second;                 /* the second of the two words */
    uint64_t count;              /* at most so many elements, 1 when not given */
};

/* numkeys key [key ...] <first|second> [COUNT count] from argument i on: "ERR numkeys should be
 * greater than 0", "ERR count should be greater than 0", "ERR syntax error". */
MUST_CHECK bool args_mpop(struct call *call, size_t i, const char *first, const char *second,
                          struct args_mpop *out);

/* --- refusals
 * -----------------------------------------------------------------------------------------------------
 */

void args_syntax_error(struct call *call); /* ERR syntax error */
void args_wrong_type(
    struct call *call); /* WRONGTYPE Operation against a key holding the wrong kind of value */
void args_out_of_range(struct call *call);   /* ERR index out of range */
void args_no_such_key(struct call *call);    /* ERR no such key */
void args_not_an_integer(struct call *call); /* ERR value is not an integer or out of range */
void args_not_a_float(struct call *call);    /* ERR value is not a valid float */
void args_expire_error(struct call *call);   /* ERR invalid expire time in '<row>' command */
void args_wrong_arity(
    struct call *call);             /* ERR wrong number of arguments for '<row>' command, any row */
void args_nomem(struct call *call); /* OOM out of memory, nothing was changed (ours, not Redis's) */
void args_string_too_long(
    struct call *call); /* ERR string exceeds maximum allowed size (proto-max-bulk-len) */

/* The reply to a failed status from types or db: args_nomem, args_wrong_type, ... or "ERR <status
 * text>". */
void args_status_error(struct call *call, enum status st);

/* The same where no call is at hand: a client that waited is served. */
void args_status_reply(struct reply *r, enum status st);

/* "ERR unknown subcommand or wrong number of arguments for 'X'. Try CONTAINER HELP.", X cut at 128
 * bytes: for a subcommand that takes argument 1 and refuses the rest. The dispatcher answers
 * unknown subcommands itself. */
void args_subcommand_syntax(struct call *call);

/* --- HELP
 * ---------------------------------------------------------------------------------------------------------
 */

/* Reply to CONTAINER HELP: the header line, then the given lines (NULL-terminated), then the two
 * lines on HELP itself. Each is a simple string, as redis-cli prints them. */
void args_help(struct call *call, const char *const *lines);

#endif
