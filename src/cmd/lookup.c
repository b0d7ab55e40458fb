/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/lookup.h"

#include "base/hash.h"
#include "cmd/args.h"
#include "cmd/table.h"

uint64_t lookup_hash(const struct call *call, size_t i) {
    return call->row->keys[0].first == (int)i ? call->key_hash : hash_bytes(call->argv[i]);
}

bool lookup_key(struct call *call, size_t i, enum db_touch touch, struct entry *out) {
    if (call->client->flags & CLIENT_NO_TOUCH) {
        touch = DB_NO_TOUCH;
    }
    return db_find(call_db(call), call->argv[i], lookup_hash(call, i), touch, out);
}

enum lookup lookup_typed(struct call *call, size_t i, enum value_type type, struct entry *out) {
    if (!lookup_key(call, i, DB_TOUCH, out)) {
        return LOOKUP_ABSENT;
    }
    if (out->value.type != type) {
        args_wrong_type(call);
        return LOOKUP_REFUSED;
    }
    return LOOKUP_FOUND;
}

void lookup_prefetch(struct call *call, size_t first, size_t step, uint64_t hashes[LOOKUP_GROUP]) {
    struct db *db = call_db(call);
    size_t count = (call->argc - first + step - 1) / step;
    count = count < LOOKUP_GROUP ? count : LOOKUP_GROUP;
    for (size_t i = 0; i < count; i++) {
        hashes[i] = hash_bytes(call->argv[first + i * step]);
        if (count > 1) {
            db_prefetch_index(db, hashes[i]);
        }
    }
    for (size_t i = 0; count > 1 && i < count; i++) {
        db_prefetch_record(db, hashes[i]);
    }
}

void lookup_prefetch_hashed(const struct value *v, const uint64_t *hashes, size_t count) {
    if (count < 2 || !value_has_index(v)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        value_prefetch_index(v, hashes[i]);
    }
    for (size_t i = 0; i < count; i++) {
        value_prefetch_record(v, hashes[i]);
    }
}

void lookup_prefetch_members(const struct call *call, const struct value *v, size_t first,
                             size_t step) {
    uint64_t hashes[LOOKUP_GROUP];
    size_t count = (call->argc - first + step - 1) / step;
    count = count < LOOKUP_GROUP ? count : LOOKUP_GROUP;
    if (count < 2 || !value_has_index(v)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        hashes[i] = hash_bytes(call->argv[first + i * step]);
    }
    lookup_prefetch_hashed(v, hashes, count);
}
