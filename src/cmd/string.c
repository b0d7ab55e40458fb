/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on strings: whole values, ranges, numbers. LCS is in cmd/lcs.c. */
#include "types/string.h"

#include <math.h>
#include <stdlib.h>

#include "cmd/args.h"
#include "cmd/lookup.h"
#include "cmd/table.h"
#include "handlers_priv.h"

/* ---- storing ------------------------------------------------------------------------------- */

/* Store an image at the key of argument key_i: e is the key's entry, NULL when the key is absent.
 */
static enum status put(struct call *call, size_t key_i, struct entry *e, struct value_image *image,
                       int64_t expire_ms) {
    struct entry added;
    enum status st = e != NULL ? entry_replace(e, VALUE_STRING, image, expire_ms)
                               : db_add(call_db(call), call->argv[key_i], lookup_hash(call, key_i),
                                        VALUE_STRING, image, expire_ms, &added);
    if (st != ST_OK) {
        value_image_discard(VALUE_STRING, image);
        return st;
    }
    call_dirty(call, 1);
    return ST_OK;
}

/* Store argument value_i. A large argument's memory is taken over. */
static enum status store(struct call *call, size_t key_i, struct entry *e, size_t value_i,
                         int64_t expire_ms) {
    struct value_image image;
    char *owned = call->argv[value_i].len > STRING_INLINE_MAX ? call_steal(call, value_i) : NULL;
    enum status st = string_image(call->argv[value_i], &owned, &image);
    return st == ST_OK ? put(call, key_i, e, &image, expire_ms) : st;
}

/* store, then the reply to a failure: what was replied since mark is taken back. False: it failed.
 */
static bool store_or_refuse(struct call *call, size_t key_i, struct entry *e, size_t value_i,
                            int64_t expire_ms, size_t mark) {
    enum status st = store(call, key_i, e, value_i, expire_ms);
    if (st != ST_OK) {
        call->reply.out->len = mark;
        args_status_error(call, st);
    }
    return st == ST_OK;
}

static void reply_string(struct call *call, const struct entry *e) {
    char scratch[STRING_SCRATCH_LEN];
    reply_bulk(&call->reply, string_text(&e->value, scratch));
}

/* ---- SET and its relatives ----------------------------------------------------------------- */

enum set_flag {
    SET_NX = 1 << 0,
    SET_XX = 1 << 1,
    SET_GET = 1 << 2,
    SET_KEEPTTL = 1 << 3,
    SET_PERSIST = 1 << 4
};

struct set_options {
    unsigned flags;      /* enum set_flag */
    unsigned time_flags; /* enum args_time */
    size_t time_i;       /* argument with the time, 0: none */
};

/* The words that take a time. */
static bool time_word(const struct call *call, size_t i, unsigned *time_flags) {
    static const struct {
        const char *word;
        unsigned flags;
    } words[] = {{"EX", ARGS_TIME_SECONDS},
                 {"PX", ARGS_TIME_MS},
                 {"EXAT", ARGS_TIME_ABSOLUTE},
                 {"PXAT", ARGS_TIME_MS | ARGS_TIME_ABSOLUTE}};
    for (size_t w = 0; w < ARRAY_LEN(words); w++) {
        if (args_is(call, i, words[w].word)) {
            *time_flags = words[w].flags | ARGS_TIME_POSITIVE;
            return true;
        }
    }
    return false;
}

/* One kind of time, and none beside KEEPTTL or PERSIST; the same kind again replaces the first. */
static bool time_allowed(const struct set_options *o, unsigned time_flags) {
    return !(o->flags & (SET_KEEPTTL | SET_PERSIST)) &&
           (o->time_i == 0 || o->time_flags == time_flags);
}

/* Options from argument i on: SET allows NX XX GET KEEPTTL, GETEX allows PERSIST; both a time. */
static bool parse_options(struct call *call, size_t i, bool is_getex, struct set_options *o) {
    *o = (struct set_options){0};
    for (; i < call->argc; i++) {
        unsigned time_flags;
        if (!is_getex && args_is(call, i, "NX") && !(o->flags & SET_XX)) {
            o->flags |= SET_NX;
        } else if (!is_getex && args_is(call, i, "XX") && !(o->flags & SET_NX)) {
            o->flags |= SET_XX;
        } else if (!is_getex && args_is(call, i, "GET")) {
            o->flags |= SET_GET;
        } else if (!is_getex && args_is(call, i, "KEEPTTL") && o->time_i == 0) {
            o->flags |= SET_KEEPTTL;
        } else if (is_getex && args_is(call, i, "PERSIST") && o->time_i == 0) {
            o->flags |= SET_PERSIST;
        } else if (i + 1 < call->argc && time_word(call, i, &time_flags) &&
                   time_allowed(o, time_flags)) {
            o->time_flags = time_flags;
            o->time_i = ++i;
        } else {
            args_syntax_error(call);
            return false;
        }
    }
    return true;
}

static bool option_expiry(struct call *call, const struct set_options *o, int64_t *expire_ms) {
    *expire_ms = DB_NO_EXPIRY;
    return o->time_i == 0 ||
           args_expiry(call, o->time_i, o->time_flags, call->cx->now_ms, expire_ms);
}

void set_command(struct call *call) {
    struct set_options o;
    int64_t expire_ms;
    if (!parse_options(call, 3, false, &o) || !option_expiry(call, &o, &expire_ms)) {
        return;
    }
    struct entry e;
    bool found = lookup_key(call, 1, o.flags & SET_GET ? DB_TOUCH : DB_NO_TOUCH, &e);
    struct reply *r = &call->reply;
    size_t mark = r->out->len;
    if (o.flags & SET_GET) {
        if (found && e.value.type != VALUE_STRING) {
            args_wrong_type(call);
            return;
        }
        if (found) {
            reply_string(call, &e);
        } else {
            reply_null(r);
        }
    }
    if ((found && (o.flags & SET_NX)) || (!found && (o.flags & SET_XX))) {
        if (!(o.flags & SET_GET)) {
            reply_null(r);
        }
        return;
    }
    if (found && (o.flags & SET_KEEPTTL)) {
        expire_ms = e.expire_ms;
    }
    if (store_or_refuse(call, 1, found ? &e : NULL, 2, expire_ms, mark) && !(o.flags & SET_GET)) {
        reply_ok(r);
    }
}

void setnx_command(struct call *call) {
    struct entry e;
    if (lookup_key(call, 1, DB_NO_TOUCH, &e)) {
        reply_integer(&call->reply, 0);
    } else if (store_or_refuse(call, 1, NULL, 2, DB_NO_EXPIRY, call->reply.out->len)) {
        reply_integer(&call->reply, 1);
    }
}

static void set_expiring(struct call *call, unsigned time_flags) {
    int64_t expire_ms;
    struct entry e;
    if (!args_expiry(call, 2, time_flags | ARGS_TIME_POSITIVE, call->cx->now_ms, &expire_ms)) {
        return;
    }
    bool found = lookup_key(call, 1, DB_NO_TOUCH, &e);
    if (store_or_refuse(call, 1, found ? &e : NULL, 3, expire_ms, call->reply.out->len)) {
        reply_ok(&call->reply);
    }
}

void setex_command(struct call *call) {
    set_expiring(call, ARGS_TIME_SECONDS);
}

void psetex_command(struct call *call) {
    set_expiring(call, ARGS_TIME_MS);
}

/* Reply the string at key 1 or null. True: *e is there. */
static bool reply_get(struct call *call, struct entry *e) {
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, e);
    if (found == LOOKUP_FOUND) {
        reply_string(call, e);
    } else if (found == LOOKUP_ABSENT) {
        reply_null(&call->reply);
    }
    return found == LOOKUP_FOUND;
}

void get_command(struct call *call) {
    struct entry e;
    reply_get(call, &e);
}

void getset_command(struct call *call) {
    struct entry e;
    size_t mark = call->reply.out->len;
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_FOUND) {
        reply_string(call, &e);
    } else {
        reply_null(&call->reply);
    }
    (void)store_or_refuse(call, 1, found == LOOKUP_FOUND ? &e : NULL, 2, DB_NO_EXPIRY, mark);
}

void getdel_command(struct call *call) {
    struct entry e;
    if (reply_get(call, &e)) {
        entry_delete(&e);
        call_dirty(call, 1);
    }
}

void getex_command(struct call *call) {
    struct set_options o;
    int64_t expire_ms;
    struct entry e;
    if (!parse_options(call, 2, true, &o)) {
        return;
    }
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, &e);
    if (found == LOOKUP_ABSENT) {
        reply_null(&call->reply);
    }
    if (found != LOOKUP_FOUND || !option_expiry(call, &o, &expire_ms)) {
        return;
    }
    bool changes = o.time_i != 0 || ((o.flags & SET_PERSIST) && e.expire_ms != DB_NO_EXPIRY);
    bool due = o.time_i != 0 && expire_ms <= call->cx->now_ms;
    if (changes && !due) {
        enum status st = entry_set_expiry(&e, expire_ms);
        if (st != ST_OK) {
            args_status_error(call, st);
            return;
        }
    }
    reply_string(call, &e);
    if (due) {
        entry_delete(&e);
    }
    call_dirty(call, changes);
}

/* ---- several keys -------------------------------------------------------------------------- */

void mget_command(struct call *call) {
    uint64_t hashes[LOOKUP_GROUP];
    reply_array(&call->reply, call->argc - 1);
    for (size_t i = 1; i < call->argc; i++) {
        size_t in_group = (i - 1) % LOOKUP_GROUP;
        if (in_group == 0) {
            lookup_prefetch(call, i, 1, hashes);
        }
        struct entry e;
        bool found = db_find(call_db(call), call->argv[i], hashes[in_group], DB_TOUCH, &e);
        if (found && e.value.type == VALUE_STRING) {
            reply_string(call, &e);
        } else {
            reply_null(&call->reply);
        }
    }
}

/* Store all pairs. Only here can memory run out half-way: the pairs stored by then stay, and the
 * error tells. */
static bool store_pairs(struct call *call) {
    uint64_t hashes[LOOKUP_GROUP];
    for (size_t i = 1; i < call->argc; i += 2) {
        size_t in_group = (i / 2) % LOOKUP_GROUP;
        if (in_group == 0) {
            lookup_prefetch(call, i, 2, hashes);
        }
        struct entry e;
        bool found = db_find(call_db(call), call->argv[i], hashes[in_group], DB_NO_TOUCH, &e);
        if (store(call, i, found ? &e : NULL, i + 1, DB_NO_EXPIRY) != ST_OK) {
            reply_errorf(&call->reply, "OOM out of memory, %zu of %zu keys were set", i / 2,
                         call->argc / 2);
            return false;
        }
    }
    return true;
}

void mset_command(struct call *call) {
    if (call->argc % 2 == 0) {
        args_wrong_arity(call);
    } else if (store_pairs(call)) {
        reply_ok(&call->reply);
    }
}

void msetnx_command(struct call *call) {
    if (call->argc % 2 == 0) {
        args_wrong_arity(call);
        return;
    }
    for (size_t i = 1; i < call->argc; i += 2) {
        struct entry e;
        if (lookup_key(call, i, DB_NO_TOUCH, &e)) {
            reply_integer(&call->reply, 0);
            return;
        }
    }
    if (store_pairs(call)) {
        reply_integer(&call->reply, 1);
    }
}

/* ---- ranges -------------------------------------------------------------------------------- */

void strlen_command(struct call *call) {
    struct entry e;
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, &e);
    if (found != LOOKUP_REFUSED) {
        reply_integer(&call->reply, found == LOOKUP_FOUND ? (int64_t)string_len(&e.value) : 0);
    }
}

void getrange_command(struct call *call) {
    int64_t start, end;
    struct entry e;
    if (!args_i64(call, 2, &start) || !args_i64(call, 3, &end)) {
        return;
    }
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    char scratch[STRING_SCRATCH_LEN];
    struct bytes text = found == LOOKUP_FOUND ? string_text(&e.value, scratch) : BYTES("", 0);
    int64_t len = (int64_t)text.len;
    bool crossed = start < 0 && end < 0 && start > end;
    start = start < 0 ? start + len : start;
    end = end < 0 ? end + len : end;
    start = start < 0 ? 0 : start;
    end = end < 0 ? 0 : end >= len ? len - 1 : end;
    if (crossed || len == 0 || start > end) {
        reply_bulk(&call->reply, BYTES("", 0));
    } else {
        reply_bulk(&call->reply, BYTES(text.ptr + start, (size_t)(end - start + 1)));
    }
}

void substr_command(struct call *call) {
    getrange_command(call);
}

static bool check_length(struct call *call, size_t off, size_t len) {
    size_t max = call->cx->config->proto_max_bulk_len;
    if (len > max || off > max - len) {
        args_string_too_long(call);
        return false;
    }
    return true;
}

/* Write argument value_i into the string at offset off and reply its length. e NULL: the key is
 * new. */
static void write_at(struct call *call, struct entry *e, size_t off, size_t value_i) {
    static const struct value_image empty = {.encoding = VALUE_RAW, .data = {"", 0}};
    struct entry added;
    bool fresh = e == NULL;
    enum status st = ST_OK;
    if (fresh) {
        e = &added;
        st = db_add(call_db(call), call->argv[1], lookup_hash(call, 1), VALUE_STRING, &empty,
                    DB_NO_EXPIRY, e);
    }
    if (st == ST_OK) {
        st = string_write(&e->value, off, call->argv[value_i]);
        if (st != ST_OK && fresh) {
            entry_delete(e);
        }
    }
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    call_dirty(call, 1);
    reply_integer(&call->reply, (int64_t)string_len(&e->value));
}

void append_command(struct call *call) {
    struct entry e;
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, &e);
    if (found == LOOKUP_ABSENT) {
        if (store_or_refuse(call, 1, NULL, 2, DB_NO_EXPIRY, call->reply.out->len)) {
            reply_integer(&call->reply, (int64_t)call->argv[2].len);
        }
    } else if (found == LOOKUP_FOUND) {
        size_t len = string_len(&e.value);
        if (check_length(call, len, call->argv[2].len)) {
            write_at(call, &e, len, 2);
        }
    }
}

void setrange_command(struct call *call) {
    int64_t off;
    struct entry e;
    if (!args_i64(call, 2, &off)) {
        return;
    }
    if (off < 0) {
        reply_error(&call->reply, "ERR offset is out of range");
        return;
    }
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (call->argv[3].len == 0) {
        reply_integer(&call->reply, found == LOOKUP_FOUND ? (int64_t)string_len(&e.value) : 0);
    } else if (check_length(call, (size_t)off, call->argv[3].len)) {
        write_at(call, found == LOOKUP_FOUND ? &e : NULL, (size_t)off, 3);
    }
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* Give the string at key 1 an integer, adding the key when absent; reply the integer. */
static void store_i64(struct call *call, struct entry *e, int64_t n) {
    enum status st;
    if (e != NULL) {
        st = string_set_i64(&e->value, n);
        call_dirty(call, st == ST_OK);
    } else {
        char text[NUMBER_I64_MAX_LEN];
        struct value_image image;
        st = string_image(BYTES(text, number_format_i64(text, n)), NULL, &image);
        st = st == ST_OK ? put(call, 1, NULL, &image, DB_NO_EXPIRY) : st;
    }
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    reply_integer(&call->reply, n);
}

static void increment(struct call *call, int64_t by) {
    struct entry e;
    int64_t n = 0;
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_FOUND && !string_as_i64(&e.value, &n)) {
        args_not_an_integer(call);
    } else if (__builtin_add_overflow(n, by, &n)) {
        reply_error(&call->reply, "ERR increment or decrement would overflow");
    } else {
        store_i64(call, found == LOOKUP_FOUND ? &e : NULL, n);
    }
}

void incr_command(struct call *call) {
    increment(call, 1);
}

void decr_command(struct call *call) {
    increment(call, -1);
}

void incrby_command(struct call *call) {
    int64_t by;
    if (args_i64(call, 2, &by)) {
        increment(call, by);
    }
}

void decrby_command(struct call *call) {
    int64_t by;
    if (!args_i64(call, 2, &by)) {
        return;
    }
    if (by == INT64_MIN) {
        reply_error(&call->reply, "ERR decrement would overflow");
    } else {
        increment(call, -by);
    }
}

void incrbyfloat_command(struct call *call) {
    struct entry e;
    char scratch[STRING_SCRATCH_LEN], text[NUMBER_REAL_MAX_LEN];
    long double n = 0, by;
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_FOUND && !number_parse_real(string_text(&e.value, scratch), &n)) {
        args_not_a_float(call);
        return;
    }
    if (!args_real(call, 2, &by)) {
        return;
    }
    n += by;
    if (isnan(n) || isinf(n)) {
        reply_error(&call->reply, "ERR increment would produce NaN or Infinity");
        return;
    }
    struct bytes sum = BYTES(text, number_format_real(text, n));
    struct value_image image;
    enum status st = string_image(sum, NULL, &image);
    if (st == ST_OK) {
        bool there = found == LOOKUP_FOUND;
        st = put(call, 1, there ? &e : NULL, &image, there ? e.expire_ms : DB_NO_EXPIRY);
    }
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    reply_bulk(&call->reply, sum);
}
