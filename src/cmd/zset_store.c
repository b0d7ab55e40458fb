/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of sorted-set commands: collected, replied, or made a key. */
#include <stdlib.h>

#include "cmd/args.h"
#include "cmd/block.h"
#include "mem/account.h"
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

/* A value outside any database, in which a set is built before it takes a key's place. */
struct scratch {
    struct value value;
    struct value_host host;
};

/* The bytes are a block of their own here. */
static enum status scratch_resize(struct value *v, enum value_encoding encoding, size_t len) {
    char *data = account_realloc(ACCOUNT_OTHER, v->data, len);
    if (data == NULL) {
        return ST_NOMEM;
    }
    v->data = data;
    v->len = len;
    v->encoding = encoding;
    return ST_OK;
}

static enum status scratch_init(struct scratch *s, const struct type_env *env) {
    s->host = (struct value_host){.resize = scratch_resize, .env = env};
    s->value = (struct value){.type = VALUE_ZSET, .encoding = VALUE_PACKED, .host = &s->host};
    enum status st = scratch_resize(&s->value, VALUE_PACKED, ZSET_EMPTY_LEN);
    if (st == ST_OK) {
        memcpy(s->value.data, zset_empty, ZSET_EMPTY_LEN);
    }
    return st;
}

/* stored: a heap object belongs to a key now. */
static void scratch_deinit(struct scratch *s, bool stored) {
    if (s->value.encoding == VALUE_HEAP && !stored) {
        value_free(VALUE_ZSET, value_object(&s->value));
    }
    account_free(ACCOUNT_OTHER, s->value.data);
}

static enum status put(struct call *call, size_t i, const struct value *v) {
    struct entry e;
    struct value_image image;
    value_image_of(v, &image);
    if (lookup_key(call, i, DB_NO_TOUCH, &e)) {
        return entry_replace(&e, VALUE_ZSET, &image, DB_NO_EXPIRY);
    }
    return db_add(call_db(call), call->argv[i], lookup_hash(call, i), VALUE_ZSET, &image,
                  DB_NO_EXPIRY, &e);
}

static enum status build_and_put(struct call *call, size_t i, struct zset_result *result) {
    struct scratch s;
    enum status st = scratch_init(&s, &call->cx->dbs->env);
    if (st == ST_OK) {
        st = zset_build(&s.value, result->entries, result->count);
    }
    if (st == ST_OK) {
        st = put(call, i, &s.value);
    }
    scratch_deinit(&s, st == ST_OK);
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
