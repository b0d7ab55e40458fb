/* SPDX-License-Identifier: BSD-3-Clause */
/* list: elements in order, by position.
 *
 *   index     position from the head, from 0; callers resolve negative ones
 *   end       head or tail
 *
 * VALUE_PACKED, small ones, in the key's record: a ds/strip, whose lengths take 0 bytes when all
 * elements are equally long, else 1 or 2, behind the three numbers it needs:
 *
 *   +-------+-----+------+-----------+-----------+- - - -+-------+-------+
 *   | count | len | form | element 0 | element 1 | room  | len 1 | len 0 |   u16 each
 *   +-------+-----+------+-----------+-----------+- - - -+-------+-------+
 *   10 elements of 8 bytes: 6 + 80 = 86 bytes; of 3 to 8 bytes, 5.5 on average: 6 + 55 + 10 = 71
 *
 * VALUE_HEAP: a struct list: a ds/seq, packed blocks of elements under a counted tree. Any position
 * is reached in O(log n), both ends in O(1); 16-byte elements take 16.2 bytes each, all told.
 *
 * Arguments are views, copied; an element pushed or inserted may be a view of one in the same list.
 * Views returned are good until the next write. "ST_NOMEM" everywhere
 * means the list is as before. n is the number of elements, k of those visited or removed. */
#ifndef TYPES_LIST_H
#define TYPES_LIST_H

#include "types/value.h"

struct list; /* the VALUE_HEAP object */

/* A new empty packed list is these bytes. */
#define LIST_EMPTY_LEN 6
extern const char list_empty[LIST_EMPTY_LEN];

enum list_end { LIST_HEAD, LIST_TAIL };

/* The limits of packed lists, list_packed_*_max, by Redis's list-max-listpack-size: -1 to -5 (and
 * below) mean 4, 8, 16, 32, 64 KiB; a positive number, elements, in 8 KiB at most; 0 is 1. */
void list_limits(int listpack_size, struct type_env *env);

uint64_t list_count(const struct value *v);

/* Append at an end. O(1). */
MUST_CHECK enum status list_push(struct value *v, enum list_end end, struct bytes element);

/* Make element the one at index, moving it and those behind back; index <= count. O(log n). */
MUST_CHECK enum status list_insert(struct value *v, uint64_t index, struct bytes element);

/* Replace the element at index < count. O(log n). */
MUST_CHECK enum status list_set(struct value *v, uint64_t index, struct bytes element);

/* The element at an index; false when index >= count. O(log n), O(1) at both ends. */
bool list_at(const struct value *v, uint64_t index, struct bytes *element);

/* Remove count elements from index on (fewer when the list ends first); the number removed. Never
 * fails. O(log n): what a long range took is freed later (value_sweep_later). The caller deletes the
 * key when nothing is left. */
uint64_t list_remove(struct value *v, uint64_t index, uint64_t count);

/* Remove up to max (0: all) elements equal to element, from the head on, or from the tail on when
 * from_tail; the number removed. Never fails. O(n). */
uint64_t list_remove_equal(struct value *v, struct bytes element, uint64_t max, bool from_tail);

/* Walk from an index, forward or backward: the element at that index comes first either way (backward
 * from an index >= count starts at the last one). list_fetch fills up to cap elements; 0 at the end. The
 * list must not change between calls. Blocks ahead are prefetched. */
struct list_iter {
    const struct value *value;
    uint64_t index; /* of the next element when forward; one behind it when backward */
    bool backward;
    uint64_t offset;            /* packed: where that element starts */
    unsigned char seq_iter[64]; /* heap: a struct seq_iter */
};
void list_iter_init(struct list_iter *it, const struct value *v, uint64_t index, bool backward);
size_t list_fetch(struct list_iter *it, struct bytes *out, size_t cap);

/* Build from elements in order. v must be an empty packed list. For STORE commands and loading. */
MUST_CHECK enum status list_build(struct value *v, const struct bytes *elements, size_t count);

/* Batch stage: prefetch what list_at(index) will touch, as far as that is known without waiting. */
void list_prefetch(const struct value *v, uint64_t index);

/* The object behind VALUE_HEAP. */
bool list_free_step(struct list *l, size_t budget);
bool list_sweep_step(struct list *l, size_t budget);
void *list_sweeper(const struct list *l);
MUST_CHECK enum status list_clone(const struct list *l, struct list **out);
size_t list_bytes_held(const struct list *l);
bool list_object_is_big(const struct list *l);

/* Verify a packed run or a list object. Aborts on a fault. */
void list_check(const struct value *v);

#endif
