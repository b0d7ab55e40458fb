/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on lists: pushing, reading, changing. Taking elements is in cmd/list_pop.c. */
#include "cmd/block.h"
#include "handlers_priv.h"
#include "list_priv.h"

/* ---- shared --------------------------------------------------------------------------------- */

enum status list_add_key(struct db *db, struct bytes key, uint64_t hash, struct entry *e) {
    const struct value_image empty = {.encoding = VALUE_PACKED,
                                      .data = {list_empty, LIST_EMPTY_LEN}};
    return db_add(db, key, hash, VALUE_LIST, &empty, DB_NO_EXPIRY, e);
}

/* An index as clients give it, from the end when negative. False: there is no such element. */
static bool resolve_index(int64_t index, uint64_t count, uint64_t *at) {
    *at = index < 0 ? (uint64_t)index + count : (uint64_t)index;
    return *at < count; /* what lies before the head has wrapped around */
}

/* Elements first .. first + n - 1 between two indexes, both included; n 0: none. */
static void resolve_range(int64_t start, int64_t stop, uint64_t count, uint64_t *first,
                          uint64_t *n) {
    int64_t size = (int64_t)count;
    start = start < 0 ? start + size : start;
    stop = stop < 0 ? stop + size : stop;
    start = start < 0 ? 0 : start;
    stop = stop >= size ? size - 1 : stop;
    *first = (uint64_t)start;
    *n = start > stop ? 0 : (uint64_t)(stop - start) + 1;
}

static void delete_if_empty(struct entry *e) {
    if (list_count(&e->value) == 0) {
        entry_delete(e);
    }
}

/* ---- pushing -------------------------------------------------------------------------------- */

/* Push the arguments from 2 on; all of them or, without memory, none. */
static enum status push_all(struct call *call, struct entry *e, enum list_end end) {
    uint64_t before = list_count(&e->value);
    enum status st = ST_OK;
    for (size_t i = 2; i < call->argc && st == ST_OK; i++) {
        st = list_push(&e->value, end, call->argv[i]);
    }
    if (st != ST_OK) {
        uint64_t pushed = list_count(&e->value) - before;
        list_remove(&e->value, end == LIST_HEAD ? 0 : before, pushed);
        delete_if_empty(e);
    }
    return st;
}

static void push(struct call *call, enum list_end end, bool only_existing) {
    struct entry e;
    enum lookup found = list_find(call, 1, &e);
    enum status st = ST_OK;
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_ABSENT && only_existing) {
        reply_integer(&call->reply, 0);
        return;
    }
    if (found == LOOKUP_ABSENT) {
        st = list_add_key(call_db(call), call->argv[1], lookup_hash(call, 1), &e);
    }
    if (st == ST_OK) {
        st = push_all(call, &e, end);
    }
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    call_dirty(call, call->argc - 2);
    reply_integer(&call->reply, (int64_t)list_count(&e.value));
    block_signal_key(call->cx, call_db(call), call->argv[1]);
}

void lpush_command(struct call *call) {
    push(call, LIST_HEAD, false);
}

void rpush_command(struct call *call) {
    push(call, LIST_TAIL, false);
}

void lpushx_command(struct call *call) {
    push(call, LIST_HEAD, true);
}

void rpushx_command(struct call *call) {
    push(call, LIST_TAIL, true);
}

/* ---- reading -------------------------------------------------------------------------------- */

void llen_command(struct call *call) {
    struct entry e;
    enum lookup found = list_find(call, 1, &e);
    if (found != LOOKUP_REFUSED) {
        reply_integer(&call->reply, found == LOOKUP_FOUND ? (int64_t)list_count(&e.value) : 0);
    }
}

void lindex_command(struct call *call) {
    struct entry e;
    struct bytes element;
    int64_t index;
    uint64_t at;
    enum lookup found = list_find(call, 1, &e);
    if (found == LOOKUP_ABSENT) {
        reply_null(&call->reply);
    }
    if (found != LOOKUP_FOUND || !args_i64(call, 2, &index)) {
        return;
    }
    if (resolve_index(index, list_count(&e.value), &at) && list_at(&e.value, at, &element)) {
        reply_bulk(&call->reply, element);
    } else {
        reply_null(&call->reply);
    }
}

void lrange_command(struct call *call) {
    struct entry e;
    struct bytes batch[LIST_BATCH];
    struct list_iter it;
    int64_t start, stop;
    uint64_t first, left = 0;
    if (!args_i64(call, 2, &start) || !args_i64(call, 3, &stop)) {
        return;
    }
    enum lookup found = list_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_FOUND) {
        resolve_range(start, stop, list_count(&e.value), &first, &left);
    }
    reply_array(&call->reply, left);
    if (left == 0) {
        return;
    }
    list_iter_init(&it, &e.value, first, false);
    while (left > 0) {
        size_t got = list_fetch(&it, batch, left < LIST_BATCH ? (size_t)left : LIST_BATCH);
        for (size_t i = 0; i < got; i++) {
            reply_bulk(&call->reply, batch[i]);
        }
        left -= got;
    }
}

/* ---- searching ------------------------------------------------------------------------------ */

struct search {
    struct bytes element;
    int64_t rank;     /* of the first match wanted; negative: counted from the tail */
    uint64_t count;   /* matches wanted, 0: all */
    uint64_t max_len; /* elements looked at, 0: all */
    bool counted;     /* COUNT was given: the reply is an array */
};

static bool parse_search(struct call *call, struct search *s) {
    int64_t n;
    *s = (struct search){.element = call->argv[2], .rank = 1, .count = 1};
    for (size_t i = 3; i < call->argc; i += 2) {
        bool more = i + 1 < call->argc;
        if (more && args_is(call, i, "RANK")) {
            if (!args_i64_range(call, i + 1, -INT64_MAX, INT64_MAX, &s->rank, NULL)) {
                return false;
            }
            if (s->rank == 0) {
                reply_error(&call->reply,
                            "ERR RANK can't be zero: use 1 to start from the first match, 2 from "
                            "the second ... or use negative to start from the end of the list");
                return false;
            }
        } else if (more && args_is(call, i, "COUNT")) {
            if (!args_i64_range(call, i + 1, 0, INT64_MAX, &n, "ERR COUNT can't be negative")) {
                return false;
            }
            s->count = (uint64_t)n;
            s->counted = true;
        } else if (more && args_is(call, i, "MAXLEN")) {
            if (!args_i64_range(call, i + 1, 0, INT64_MAX, &n, "ERR MAXLEN can't be negative")) {
                return false;
            }
            s->max_len = (uint64_t)n;
        } else {
            args_syntax_error(call);
            return false;
        }
    }
    return true;
}

/* Reply the index of each match wanted; how many there were. */
static uint64_t reply_matches(struct reply *r, const struct value *v, const struct search *s) {
    struct bytes batch[LIST_BATCH];
    struct list_iter it;
    bool backward = s->rank < 0;
    uint64_t skip = (uint64_t)(backward ? -s->rank : s->rank) - 1;
    uint64_t size = list_count(v), replied = 0;
    uint64_t left = s->max_len != 0 && s->max_len < size ? s->max_len : size;
    uint64_t at = backward ? size - 1 : 0;
    list_iter_init(&it, v, at, backward);
    while (left > 0) {
        size_t got = list_fetch(&it, batch, left < LIST_BATCH ? (size_t)left : LIST_BATCH);
        for (size_t i = 0; i < got; i++, at += backward ? UINT64_MAX : 1) {
            if (!bytes_equal(batch[i], s->element)) {
                continue;
            }
            if (skip > 0) {
                skip--;
                continue;
            }
            reply_integer(r, (int64_t)at);
            if (++replied == s->count) {
                return replied;
            }
        }
        left -= got;
    }
    return replied;
}

void lpos_command(struct call *call) {
    struct search s;
    struct entry e;
    if (!parse_search(call, &s)) {
        return;
    }
    enum lookup found = list_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    size_t mark = s.counted ? reply_defer(&call->reply) : 0;
    uint64_t matches = found == LOOKUP_FOUND ? reply_matches(&call->reply, &e.value, &s) : 0;
    if (s.counted) {
        reply_defer_array(&call->reply, mark, matches);
    } else if (matches == 0) {
        reply_null(&call->reply);
    }
}

/* The first element equal to this one. */
static bool find_element(const struct value *v, struct bytes element, uint64_t *at) {
    struct bytes batch[LIST_BATCH];
    struct list_iter it;
    size_t got;
    list_iter_init(&it, v, 0, false);
    *at = 0;
    while ((got = list_fetch(&it, batch, LIST_BATCH)) > 0) {
        for (size_t i = 0; i < got; i++, ++*at) {
            if (bytes_equal(batch[i], element)) {
                return true;
            }
        }
    }
    return false;
}

/* ---- changing ------------------------------------------------------------------------------- */

void lset_command(struct call *call) {
    struct entry e;
    int64_t index;
    uint64_t at;
    enum lookup found = list_find(call, 1, &e);
    if (found == LOOKUP_ABSENT) {
        args_no_such_key(call);
    }
    if (found != LOOKUP_FOUND || !args_i64(call, 2, &index)) {
        return;
    }
    if (!resolve_index(index, list_count(&e.value), &at)) {
        args_out_of_range(call);
        return;
    }
    enum status st = list_set(&e.value, at, call->argv[3]);
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    call_dirty(call, 1);
    reply_ok(&call->reply);
}

void linsert_command(struct call *call) {
    struct entry e;
    uint64_t at;
    bool after = args_is(call, 2, "AFTER");
    if (!after && !args_is(call, 2, "BEFORE")) {
        args_syntax_error(call);
        return;
    }
    enum lookup found = list_find(call, 1, &e);
    if (found == LOOKUP_ABSENT) {
        reply_integer(&call->reply, 0);
    }
    if (found != LOOKUP_FOUND) {
        return;
    }
    if (!find_element(&e.value, call->argv[3], &at)) {
        reply_integer(&call->reply, -1);
        return;
    }
    enum status st = list_insert(&e.value, at + after, call->argv[4]);
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    call_dirty(call, 1);
    reply_integer(&call->reply, (int64_t)list_count(&e.value));
}

void ltrim_command(struct call *call) {
    struct entry e;
    int64_t start, stop;
    uint64_t first, n;
    if (!args_i64(call, 2, &start) || !args_i64(call, 3, &stop)) {
        return;
    }
    enum lookup found = list_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_FOUND) {
        uint64_t count = list_count(&e.value);
        resolve_range(start, stop, count, &first, &n);
        call_dirty(call, count - n);
        if (n == 0) {
            entry_delete(&e);
        } else {
            list_remove(&e.value, first + n, count - first - n);
            list_remove(&e.value, 0, first);
        }
    }
    reply_ok(&call->reply);
}

void lrem_command(struct call *call) {
    struct entry e;
    int64_t count;
    uint64_t removed = 0;
    if (!args_i64(call, 2, &count)) {
        return;
    }
    enum lookup found = list_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_FOUND) {
        uint64_t max = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
        removed = list_remove_equal(&e.value, call->argv[3], max, count < 0);
        call_dirty(call, removed);
        delete_if_empty(&e);
    }
    reply_integer(&call->reply, (int64_t)removed);
}
