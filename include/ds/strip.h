/* SPDX-License-Identifier: BSD-3-Clause */
/* strip: byte strings side by side in memory that someone else owns; blocks, buffers and small
 * lists are strips.
 *
 *   +-----------+-----------+-----------+- - - -+-------+-------+-------+
 *   | element 0 | element 1 | element 2 | room  | len 2 | len 1 | len 0 |
 *   +-----------+-----------+-----------+- - - -+-------+-------+-------+
 *   ^ data                                                              ^ lens
 *
 * Lengths stand together, from the other side: the offset of an element is a sum over few cache
 * lines, either end is a step away, and an element appended moves nothing. Lengths of zero bytes
 * (all elements equally long), one or two, whichever the longest needs. Elements up to 65,535
 * bytes.
 *
 * The struct is a view: the owner keeps count, len and form wherever it wants and stores them after
 * a change. What changes a strip needs the room it asks for: strip_bytes before and after. */
#ifndef DS_STRIP_H
#define DS_STRIP_H

#include "base/bytes.h"

#define STRIP_ELEMENT_MAX UINT16_MAX

/* How lengths are stored; the number of bytes each takes. */
enum strip_form { STRIP_EVEN = 0, STRIP_BYTE = 1, STRIP_SHORT = 2 };

struct strip {
    char *data;
    char *lens; /* behind the length of element 0 */
    uint32_t count;
    uint32_t len;  /* STRIP_EVEN: of each element; else of all together */
    uint32_t form; /* enum strip_form */
};

static inline uint32_t strip_len_at(const struct strip *s, uint32_t i) {
    if (s->form == STRIP_EVEN) {
        return s->len;
    }
    if (s->form == STRIP_BYTE) {
        return (unsigned char)s->lens[-(ptrdiff_t)i - 1];
    }
    uint16_t len;
    memcpy(&len, s->lens - 2 * (size_t)i - 2, sizeof(len));
    return len;
}

/* Bytes of all elements. */
static inline uint32_t strip_data_len(const struct strip *s) {
    return s->form == STRIP_EVEN ? s->count * s->len : s->len;
}

/* Bytes of elements and lengths. */
static inline size_t strip_bytes(const struct strip *s) {
    return strip_data_len(s) + (size_t)s->count * s->form;
}

/* Bytes before element i <= count. Sums at most half of the lengths, eight or four at a time. */
uint32_t strip_offset(const struct strip *s, uint32_t i);

static inline struct bytes strip_at(const struct strip *s, uint32_t i) {
    return BYTES(s->data + strip_offset(s, i), strip_len_at(s, i));
}

/* The form that the strip must have for an element of this length: its own, or a wider one. */
static inline uint32_t strip_form_for(const struct strip *s, size_t len) {
    if (s->form == STRIP_EVEN && (s->count == 0 || len == s->len)) {
        return STRIP_EVEN;
    }
    size_t longest = s->form == STRIP_EVEN && s->len > len ? s->len : len;
    return longest > UINT8_MAX || s->form == STRIP_SHORT ? STRIP_SHORT : STRIP_BYTE;
}

/* Store lengths in a wider form. */
void strip_widen(struct strip *s, uint32_t form);

/* The form must be right for element. It may be a view of another strip only. */
void strip_insert(struct strip *s, uint32_t i, struct bytes element);

void strip_remove(struct strip *s, uint32_t i, uint32_t n);

/* Give element i another length, for which the form must be right; its bytes are then undefined. */
void strip_resize_at(struct strip *s, uint32_t i, size_t len);

/* Store the length of element i without moving anything. */
void strip_put_len(struct strip *s, uint32_t i, size_t len);

/* Up to n elements from place on, forward (place, place + 1, ..) or backward (place - 1, ..). off:
 * strip_offset of place, kept up to date as place is. n is within the strip. */
void strip_read(const struct strip *s, uint32_t *place, uint32_t *off, bool backward,
                struct bytes *out, uint32_t n);

#endif
