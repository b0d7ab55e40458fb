/* SPDX-License-Identifier: BSD-3-Clause */
/* string: bytes up to 512 MiB, or a 64-bit integer.
 *
 * Three forms. VALUE_RAW: the bytes in the key's record. VALUE_INT: what reads back as a canonical
 * decimal int64 is kept as an integer of 1, 2, 4 or 8 bytes, which is never longer than the text.
 * VALUE_HEAP: a struct string_heap in the record that points at the bytes, for strings longer than
 * STRING_INLINE_MAX and for those that grow by APPEND and SETRANGE (capacity to spare, so that
 * appends are amortized O(1)). */
#ifndef TYPES_STRING_H
#define TYPES_STRING_H

#include "base/number.h"
#include "types/value.h"

/* Longer strings stand alone. Inline ones are copied when their record moves (compaction, RENAME),
 * which this bounds; above it jemalloc's class rounding (at most 1/8, 1/16 on average) is the
 * better price. */
#define STRING_INLINE_MAX 4096
/* A string this long that grows stands alone with room to spare. */
#define STRING_GROW_HEAP_MIN 128
#define STRING_SCRATCH_LEN NUMBER_I64_MAX_LEN

/* In the record, unaligned: copy it out and in. 24 bytes; the pointer comes first, as value_object
 * expects. */
struct string_heap {
    char *ptr;  /* account_alloc'ed, ACCOUNT_VALUE */
    size_t len; /* bytes used */
    size_t cap;
};

/* The form in which a string is best stored. text stays the caller's, VALUE_RAW points at it.
 * owned, when not NULL, points at a malloc'ed block that holds text: it is taken over for
 * VALUE_HEAP (and set NULL), which saves copying. ST_NOMEM. */
MUST_CHECK enum status string_image(struct bytes text, char **owned, struct value_image *image);

/* The text. For an integer it is written into scratch (STRING_SCRATCH_LEN bytes). */
struct bytes string_text(const struct value *v, char *scratch);
size_t string_len(const struct value *v);

/* The integer a string holds, whatever its form; false when it is none. */
bool string_as_i64(const struct value *v, int64_t *out);

/* Replace the whole text; an integer's width or an equally long text is changed in place. ST_NOMEM:
 * as before. */
MUST_CHECK enum status string_set(struct value *v, struct bytes text);
MUST_CHECK enum status string_set_i64(struct value *v, int64_t n);

/* Write text at offset off, zero-filling a gap; APPEND is off == string_len. Amortized O(text).
 * ST_NOMEM: as before. */
MUST_CHECK enum status string_write(struct value *v, size_t off, struct bytes text);

#endif
