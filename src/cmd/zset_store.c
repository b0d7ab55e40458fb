/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of sorted-set commands: collected, replied, or made a key. */
#include <stdlib.h>

#include "cmd/args.h"
#include "cmd/block.h"
#include "mem/account.h"
#include "scratch_priv.h"
#include "zset_priv.h"

#define RESULT_CAP_MIN 64

/* ---- replies -------------------------------------------------------------------------------- */

void zset_reply_header(struct reply *r, uint64_t count, bool with_scores) {
    reply_array(r, with_scores && r->proto == 2 ? count * 2 : count);
}

void zset_reply_entry(struct reply *r, const struct zset_entry *entry, bool with_scores) {
    if (with_scores && r->proto == 3) {
        reply_array(r, 2);
    }
    reply_bulk(r, entry->member);
    if (with_scores) {
        reply_double(r, entry->score);
    }
}

/* ---- collecting ----------------------------------------------------------------------------- */

enum status zset_result_add(struct zset_result *result, const struct zset_entry *entry) {
    if (UNLIKELY(result->count == result->cap)) {
        size_t cap = result->cap > 0 ? result->cap * 2 : RESULT_CAP_MIN;
        struct zset_entry *entries =
            account_realloc(ACCOUNT_OTHER, result->entries, cap * sizeof(*entries));
        if (entries == NULL) {
            return ST_NOMEM;
        }
        result->entries = entries;
        result->cap = cap;
    }
    result->entries[result->count++] = *entry;
    return ST_OK;
}

void zset_result_deinit(struct zset_result *result) {
    account_free(ACCOUNT_OTHER, result->entries);
    *result = (struct zset_result){0};
}

static int compare_entries(const void *a, const void *b) {
    const struct zset_entry *x = a, *y = b;
    if (x->score != y->score) {
        return x->score < y->score ? -1 : 1;
    }
    return bytes_compare(x->member, y->member);
}

void zset_result_sort(struct zset_result *result) {
    if (result->count > 1) {
        qsort(result->entries, result->count, sizeof(*result->entries), compare_entries);
    }
}

void zset_result_reply(struct call *call, const struct zset_result *result, bool with_scores) {
    zset_reply_header(&call->reply, result->count, with_scores);
    for (size_t i = 0; i < result->count; i++) {
        zset_reply_entry(&call->reply, &result->entries[i], with_scores);
    }
}

/* ---- storing -------------------------------------------------------------------------------- */

static enum status build_and_put(struct call *call, size_t i, struct zset_result *result) {
    struct scratch s;
    struct value_image empty = {.encoding = VALUE_PACKED, .data = {zset_empty, ZSET_EMPTY_LEN}};
    enum status st = scratch_init(&s, call, VALUE_ZSET, &empty);
    if (st != ST_OK) {
        return st;
    }
    st = zset_build(&s.value, result->entries, result->count);
    if (st == ST_OK) {
        st = scratch_store(&s, call, i, DB_NO_EXPIRY);
    }
    scratch_deinit(&s);
    return st;
}

void zset_result_store(struct call *call, size_t i, struct zset_result *result) {
    struct entry e;
    if (result->count == 0) {
        if (lookup_key(call, i, DB_NO_TOUCH, &e)) {
            entry_delete(&e);
            call_dirty(call, 1);
        }
        reply_integer(&call->reply, 0);
        return;
    }
    enum status st = build_and_put(call, i, result);
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    call_dirty(call, 1);
    block_signal_key(call->cx, call_db(call), call->argv[i]);
    reply_integer(&call->reply, (int64_t)result->count);
}
