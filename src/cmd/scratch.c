/* SPDX-License-Identifier: BSD-3-Clause */
#include "scratch_priv.h"

#include "cmd/lookup.h"
#include "mem/account.h"

/* What a record holds beside its value: the longest key, an expiry, lengths. */
#define BESIDE_VALUE_MAX (DB_KEY_INLINE_MAX + 64)

/* The bytes are a block of their own here. */
static enum status resize(struct value *v, enum value_encoding encoding, size_t len) {
    const struct scratch *s = CONTAINER_OF(v, struct scratch, value);
    if (len > s->len_max) {
        return ST_RANGE;
    }
    char *data = account_realloc(ACCOUNT_OTHER, v->data, len);
    if (data == NULL) {
        return ST_NOMEM;
    }
    v->data = data;
    v->len = len;
    v->encoding = encoding;
    return ST_OK;
}

enum status scratch_init(struct scratch *s, const struct call *call, enum value_type type,
                         const struct value_image *image) {
    s->host = (struct value_host){.resize = resize, .env = &call->cx->dbs->env};
    s->value = (struct value){.type = type, .host = &s->host};
    s->len_max = arena_record_max(&call_db(call)->arena) - BESIDE_VALUE_MAX;
    enum status st = resize(&s->value, image->encoding, image->data.len);
    if (st == ST_OK) {
        memcpy(s->value.data, image->data.ptr, image->data.len);
    }
    return st;
}

enum status scratch_store(struct scratch *s, struct call *call, size_t i, int64_t expire_ms) {
    struct entry e;
    struct value_image image;
    value_image_of(&s->value, &image);
    enum status st = lookup_key(call, i, DB_NO_TOUCH, &e)
                         ? entry_replace(&e, s->value.type, &image, expire_ms)
                         : db_add(call_db(call), call->argv[i], lookup_hash(call, i), s->value.type,
                                  &image, expire_ms, &e);
    if (st == ST_OK) {
        account_free(ACCOUNT_OTHER, s->value.data);
        s->value.data = NULL; /* a heap object is the key's now */
    }
    return st;
}

void scratch_deinit(struct scratch *s) {
    if (s->value.data != NULL && s->value.encoding == VALUE_HEAP) {
        value_free(s->value.type, value_object(&s->value));
    }
    account_free(ACCOUNT_OTHER, s->value.data);
    s->value.data = NULL;
}
