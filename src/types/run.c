/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_priv.h"

/* The tail moves; when it gets shorter, a failure to give memory back only leaves idle bytes at the
 * end. */
enum status run_stretch(struct value *v, size_t off, size_t old_len, size_t new_len, size_t used) {
    size_t tail_len = used - off - old_len;
    if (new_len <= old_len) {
        memmove(v->data + off + new_len, v->data + off + old_len, tail_len);
        enum status st = value_resize(v, VALUE_PACKED, used - old_len + new_len);
        (void)st;
        return ST_OK;
    }
    enum status st = value_resize(v, VALUE_PACKED, used - old_len + new_len);
    if (st == ST_OK) {
        memmove(v->data + off + new_len, v->data + off + old_len, tail_len);
    }
    return st;
}
