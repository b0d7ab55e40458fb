/* SPDX-License-Identifier: BSD-3-Clause */
#include "ds/strip.h"

/* ---- sums of lengths ------------------------------------------------------------------------- */

/* Eight at a time in four lanes of 16 bits, which take 128 steps of 2 x 255 each. (SSE2's psadbw
 * made a look-up among 480 lengths 70 ns rather than 76: not worth a second path.) */
static uint32_t sum_bytes(const char *p, size_t n) {
    const uint64_t even = UINT64_C(0x00FF00FF00FF00FF), wide = UINT64_C(0x0000FFFF0000FFFF);
    uint32_t sum = 0;
    while (n >= 8) {
        uint64_t lanes = 0;
        for (size_t steps = n / 8 < 128 ? n / 8 : 128; steps > 0; steps--, p += 8, n -= 8) {
            uint64_t x;
            memcpy(&x, p, sizeof(x));
            lanes += (x & even) + (x >> 8 & even);
        }
        lanes = (lanes & wide) + (lanes >> 16 & wide);
        sum += (uint32_t)lanes + (uint32_t)(lanes >> 32);
    }
    for (; n > 0; n--) {
        sum += (unsigned char)*p++;
    }
    return sum;
}

/* n lengths of two bytes, four at a time. */
static uint32_t sum_shorts(const char *p, size_t n) {
    const uint64_t wide = UINT64_C(0x0000FFFF0000FFFF);
    uint64_t lanes = 0;
    uint16_t len;
    for (; n >= 4; n -= 4, p += 8) {
        uint64_t x;
        memcpy(&x, p, sizeof(x));
        lanes += (x & wide) + (x >> 16 & wide);
    }
    uint32_t sum = (uint32_t)lanes + (uint32_t)(lanes >> 32);
    for (; n > 0; n--, p += sizeof(len)) {
        memcpy(&len, p, sizeof(len));
        sum += len;
    }
    return sum;
}

/* Lengths of elements from .. to - 1. */
static uint32_t sum_lens(const struct strip *s, uint32_t from, uint32_t to) {
    return s->form == STRIP_BYTE ? sum_bytes(s->lens - to, to - from)
                                 : sum_shorts(s->lens - 2 * (size_t)to, to - from);
}

uint32_t strip_offset(const struct strip *s, uint32_t i) {
    if (s->form == STRIP_EVEN) {
        return i * s->len;
    }
    return i <= s->count / 2 ? sum_lens(s, 0, i) : s->len - sum_lens(s, i, s->count);
}

/* ---- lengths --------------------------------------------------------------------------------- */

void strip_put_len(struct strip *s, uint32_t i, size_t len) {
    if (s->form == STRIP_BYTE) {
        s->lens[-(ptrdiff_t)i - 1] = (char)len;
    } else if (s->form == STRIP_SHORT) {
        uint16_t v = (uint16_t)len;
        memcpy(s->lens - 2 * (size_t)i - 2, &v, sizeof(v));
    }
}

/* From the last one on: a wider slot lies on those of elements behind, which have been read. */
void strip_widen(struct strip *s, uint32_t form) {
    struct strip wide = *s;
    wide.form = form;
    wide.len = strip_data_len(s);
    for (uint32_t i = s->count; i > 0; i--) {
        strip_put_len(&wide, i - 1, strip_len_at(s, i - 1));
    }
    *s = wide;
}

/* Lengths from the i-th on move n slots further. */
static void open_lens(struct strip *s, uint32_t i, uint32_t n) {
    size_t width = s->form, count = s->count;
    if (width != 0 && i < count) {
        memmove(s->lens - (count + n) * width, s->lens - count * width, (count - i) * width);
    }
}

static void close_lens(struct strip *s, uint32_t i, uint32_t n) {
    size_t width = s->form, count = s->count, behind = count - i - n;
    if (width != 0 && behind != 0) {
        memmove(s->lens - (count - n) * width, s->lens - count * width, behind * width);
    }
}

/* ---- change ---------------------------------------------------------------------------------- */

void strip_insert(struct strip *s, uint32_t i, struct bytes element) {
    uint32_t off = strip_offset(s, i);
    char *p = s->data + off;
    assert(strip_form_for(s, element.len) == s->form && element.len <= STRIP_ELEMENT_MAX);
    memmove(p + element.len, p, strip_data_len(s) - off);
    if (element.len != 0) {
        memcpy(p, element.ptr, element.len);
    }
    open_lens(s, i, 1);
    strip_put_len(s, i, element.len);
    s->count++;
    s->len = (uint32_t)(s->form == STRIP_EVEN ? element.len : s->len + element.len);
}

void strip_remove(struct strip *s, uint32_t i, uint32_t n) {
    uint32_t off = strip_offset(s, i), end = strip_offset(s, i + n);
    memmove(s->data + off, s->data + end, strip_data_len(s) - end);
    close_lens(s, i, n);
    s->count -= n;
    s->len -= s->form == STRIP_EVEN ? 0 : end - off;
}

void strip_resize_at(struct strip *s, uint32_t i, size_t len) {
    uint32_t old = strip_len_at(s, i), off = strip_offset(s, i);
    char *p = s->data + off;
    assert(s->form != STRIP_EVEN || s->count == 1 || len == old);
    memmove(p + len, p + old, strip_data_len(s) - off - old);
    strip_put_len(s, i, len);
    s->len = (uint32_t)(s->len - old + len);
}

/* ---- read ------------------------------------------------------------------------------------ */

void strip_read(const struct strip *s, uint32_t *place, uint32_t *off, bool backward,
                struct bytes *out, uint32_t n) {
    const char *p = s->data + *off;
    uint32_t i = *place;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t len = strip_len_at(s, backward ? --i : i++);
        p -= backward ? len : 0;
        out[k] = BYTES(p, len);
        p += backward ? 0 : len;
    }
    *place = i;
    *off = (uint32_t)(p - s->data);
}
