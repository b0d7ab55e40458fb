/* SPDX-License-Identifier: BSD-3-Clause */
#include "record_priv.h"

size_t record_parts_len(const struct record_parts *parts) {
    return RECORD_HEAD_LEN + varlen_size(parts->key_full_len) + varlen_size(parts->value_len) +
           (parts->expire_ms == DB_NO_EXPIRY ? 0 : sizeof(int64_t)) + parts->key.len +
           parts->value_len;
}

char *record_write(char *at, const struct record_parts *parts) {
    bool expires = parts->expire_ms != DB_NO_EXPIRY;
    at[0] = (char)((unsigned)parts->type | (unsigned)parts->encoding << RECORD_ENCODING_SHIFT |
                   (expires ? RECORD_EXPIRES : 0u) | (parts->key_boxed ? RECORD_KEY_BOXED : 0u));
    record_set_access(at, parts->access);
    char *p = at + RECORD_HEAD_LEN;
    p += varlen_put(p, parts->key_full_len);
    p += varlen_put(p, parts->value_len);
    if (expires) {
        memcpy(p, &parts->expire_ms, sizeof(parts->expire_ms));
        p += sizeof(parts->expire_ms);
    }
    if (parts->key.len != 0) {
        memcpy(p, parts->key.ptr, parts->key.len);
    }
    return p + parts->key.len;
}
