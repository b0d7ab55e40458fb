/* SPDX-License-Identifier: BSD-3-Clause */
/* The packed form, drawn in types/list.h: a strip behind its three numbers. */
#include <stdlib.h>

#include "list_priv.h"

#define HEAD_LEN LIST_EMPTY_LEN

/* A longer list that grows asks for a 16th more than it needs, so that not every push moves its
 * key's record; one that shrinks keeps up to an eighth. */
#define SPARE_FROM 256
#define SPARE_SHARE 16
#define IDLE_SHARE 8

const char list_empty[LIST_EMPTY_LEN] = {0};

struct head {
    uint16_t count, len, form;
};
static_assert(sizeof(struct head) == HEAD_LEN, "as drawn");

/* ---- the record ------------------------------------------------------------------------------ */

uint64_t lpacked_count(const struct value *v) {
    struct head head;
    memcpy(&head, v->data, sizeof(head));
    return head.count;
}

struct strip lpacked_strip(const struct value *v) {
    struct head head;
    memcpy(&head, v->data, sizeof(head));
    return (struct strip){v->data + HEAD_LEN, v->data + v->len, head.count, head.len, head.form};
}

static void store(struct value *v, const struct strip *s) {
    struct head head = {(uint16_t)s->count, (uint16_t)s->len, (uint16_t)s->form};
    memcpy(v->data, &head, sizeof(head));
}

/* Lengths stand at the value's end and go where it goes. */
static enum status resize(struct value *v, size_t len) {
    struct strip s = lpacked_strip(v);
    size_t lens_len = s.count * (size_t)s.form, old_len = v->len;
    assert(len >= HEAD_LEN + strip_bytes(&s));
    if (len < old_len) {
        memmove(v->data + len - lens_len, s.lens - lens_len, lens_len);
    }
    enum status st = value_resize(v, VALUE_PACKED, len);
    if (st == ST_OK && len > old_len) {
        memmove(v->data + len - lens_len, v->data + old_len - lens_len, lens_len);
    } else if (st != ST_OK && len < old_len) {
        memmove(v->data + old_len - lens_len, v->data + len - lens_len, lens_len);
    }
    return st;
}

/* ---- limits and room ------------------------------------------------------------------------- */

static bool within_limits(const struct value *v, size_t count, size_t data_len, size_t bytes) {
    const struct type_env *env = v->host->env;
    return count <= env->list_packed_entries_max && count <= UINT16_MAX && data_len <= UINT16_MAX &&
           bytes <= env->list_packed_bytes_max;
}

/* Room for lengths of `form` and for bytes in all. */
static enum status prepare(struct value *v, uint32_t form, size_t bytes) {
    if (bytes > v->len) {
        size_t spare = bytes < SPARE_FROM ? 0 : bytes / SPARE_SHARE;
        enum status st = resize(v, bytes + spare);
        if (st == ST_RANGE && spare != 0) {
            st = resize(v, bytes);
        }
        if (st != ST_OK) {
            return st;
        }
    }
    struct strip s = lpacked_strip(v);
    if (form != s.form) {
        strip_widen(&s, form);
        store(v, &s);
    }
    return ST_OK;
}

/* A list that shrank gives back what it does not use. */
static void settle(struct value *v) {
    struct strip s = lpacked_strip(v);
    size_t bytes = HEAD_LEN + strip_bytes(&s);
    if (v->len - bytes > (bytes < SPARE_FROM ? 0 : bytes / IDLE_SHARE)) {
        enum status st = resize(v, bytes);
        (void)st; /* room at the end does no harm */
    }
}

/* ---- change ---------------------------------------------------------------------------------- */

enum status lpacked_insert(struct value *v, uint32_t index, struct bytes element) {
    struct strip s = lpacked_strip(v);
    if (element.len > STRIP_ELEMENT_MAX) {
        return ST_RANGE;
    }
    uint32_t form = strip_form_for(&s, element.len);
    size_t data_len = strip_data_len(&s) + element.len;
    size_t bytes = HEAD_LEN + data_len + (s.count + (size_t)1) * form;
    if (!within_limits(v, s.count + (size_t)1, data_len, bytes)) {
        return ST_RANGE;
    }
    uintptr_t at = (uintptr_t)element.ptr - (uintptr_t)s.data;
    bool own = element.len != 0 && at < strip_data_len(&s);
    enum status st = prepare(v, form, bytes);
    if (st != ST_OK) {
        return st;
    }
    s = lpacked_strip(v);
    if (own) { /* it moved with the record, and will with what makes way for it */
        element.ptr = s.data + at + (at >= strip_offset(&s, index) ? element.len : 0);
    }
    strip_insert(&s, index, element);
    store(v, &s);
    return ST_OK;
}

enum status lpacked_set(struct value *v, uint32_t index, struct bytes element) {
    struct strip s = lpacked_strip(v);
    uint32_t old_len = strip_len_at(&s, index);
    if (element.len != old_len) {
        if (element.len > STRIP_ELEMENT_MAX) {
            return ST_RANGE;
        }
        uint32_t form =
            s.count == 1 && s.form == STRIP_EVEN ? STRIP_EVEN : strip_form_for(&s, element.len);
        size_t data_len = strip_data_len(&s) - old_len + element.len;
        size_t bytes = HEAD_LEN + data_len + (size_t)s.count * form;
        if (!within_limits(v, s.count, data_len, bytes)) {
            return ST_RANGE;
        }
        size_t wide = HEAD_LEN + strip_data_len(&s) + (size_t)s.count * form;
        enum status st = prepare(v, form, bytes > wide ? bytes : wide);
        if (st != ST_OK) {
            return st;
        }
        s = lpacked_strip(v);
        strip_resize_at(&s, index, element.len);
        store(v, &s);
    }
    if (element.len != 0) {
        memmove(s.data + strip_offset(&s, index), element.ptr, element.len);
    }
    if (element.len < old_len) {
        settle(v);
    }
    return ST_OK;
}

void lpacked_remove(struct value *v, uint32_t index, uint32_t count) {
    struct strip s = lpacked_strip(v);
    strip_remove(&s, index, count);
    if (s.count == 0) {
        s.len = s.form = STRIP_EVEN;
    }
    store(v, &s);
    settle(v);
}

enum status lpacked_build(struct value *v, const struct bytes *elements, size_t count) {
    struct strip s = {.form = STRIP_EVEN};
    size_t data_len = 0;
    for (size_t i = 0; i < count; i++) {
        data_len += elements[i].len;
        if (elements[i].len > STRIP_ELEMENT_MAX || !within_limits(v, i + 1, data_len, data_len)) {
            return ST_RANGE;
        }
        uint32_t form = strip_form_for(&s, elements[i].len);
        s.count = (uint32_t)i + 1;
        s.len = (uint32_t)(form == STRIP_EVEN        ? elements[i].len
                           : s.len > elements[i].len ? s.len
                                                     : elements[i].len);
        s.form = form;
    }
    size_t bytes = HEAD_LEN + data_len + count * s.form;
    if (!within_limits(v, count, data_len, bytes)) {
        return ST_RANGE;
    }
    enum status st = resize(v, bytes);
    if (st != ST_OK) {
        return st;
    }
    struct strip out = {v->data + HEAD_LEN, v->data + v->len, 0, 0, s.form};
    for (size_t i = 0; i < count; i++) {
        strip_insert(&out, (uint32_t)i, elements[i]);
    }
    store(v, &out);
    return ST_OK;
}

void lpacked_check(const struct value *v) {
    struct strip s = lpacked_strip(v);
    uint32_t sum = 0;
    if (v->len < HEAD_LEN || s.form > STRIP_SHORT || HEAD_LEN + strip_bytes(&s) > v->len ||
        (s.count == 0 && (s.len != 0 || s.form != STRIP_EVEN))) {
        abort();
    }
    for (uint32_t i = 0; i < s.count; i++) {
        sum += strip_len_at(&s, i);
    }
    if (sum != strip_data_len(&s)) {
        abort();
    }
}
