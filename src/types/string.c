/* SPDX-License-Identifier: BSD-3-Clause */
#include "types/string.h"

#include "mem/account.h"

static_assert(sizeof(struct string_heap) <= VALUE_SMALL_MAX, "an image holds it");
static_assert(offsetof(struct string_heap, ptr) == 0, "value_object reads the pointer first");

/* ---- integers ------------------------------------------------------------------------------ */

static size_t int_width(int64_t n) {
    if (n >= INT8_MIN && n <= INT8_MAX) {
        return 1;
    }
    if (n >= INT16_MIN && n <= INT16_MAX) {
        return 2;
    }
    return n >= INT32_MIN && n <= INT32_MAX ? 4 : 8;
}

/* Little-endian on every machine this builds for, checked in tests. */
static int64_t int_load(const char *p, size_t width) {
    int64_t n = 0;
    memcpy(&n, p, width);
    unsigned shift = (unsigned)(64 - 8 * width);
    return (int64_t)((uint64_t)n << shift) >> shift;
}

static void int_store(char *p, int64_t n) {
    memcpy(p, &n, int_width(n));
}

/* ---- the heap form ------------------------------------------------------------------------- */

static struct string_heap heap_of(const struct value *v) {
    struct string_heap heap;
    memcpy(&heap, v->data, sizeof(heap));
    return heap;
}

static void heap_put(struct value *v, const struct string_heap *heap) {
    memcpy(v->data, heap, sizeof(*heap));
}

static enum status heap_create(struct string_heap *heap, size_t cap) {
    cap = account_good_size(cap);
    *heap = (struct string_heap){.ptr = account_alloc(ACCOUNT_VALUE, cap), .cap = cap};
    return heap->ptr ? ST_OK : ST_NOMEM;
}

/* Room for len bytes, a quarter to spare when it has to grow. */
static enum status heap_grow(struct string_heap *heap, size_t len) {
    if (len <= heap->cap) {
        return ST_OK;
    }
    size_t cap = account_good_size(len + len / 4);
    char *ptr = account_realloc(ACCOUNT_VALUE, heap->ptr, cap);
    if (ptr == NULL) {
        return ST_NOMEM;
    }
    heap->ptr = ptr;
    heap->cap = cap;
    return ST_OK;
}

/* ---- images -------------------------------------------------------------------------------- */

static void image_of_i64(int64_t n, struct value_image *image) {
    image->encoding = VALUE_INT;
    int_store(image->small, n);
    image->data = BYTES(image->small, int_width(n));
}

enum status string_image(struct bytes text, char **owned, struct value_image *image) {
    int64_t n;
    if (text.len <= NUMBER_I64_MAX_LEN && number_parse_i64(text, &n)) {
        image_of_i64(n, image);
        return ST_OK;
    }
    if (text.len <= STRING_INLINE_MAX) {
        image->encoding = VALUE_RAW;
        image->data = text;
        return ST_OK;
    }
    struct string_heap heap;
    if (owned != NULL && *owned != NULL) {
        account_move(ACCOUNT_TAGS, ACCOUNT_VALUE, *owned);
        heap = (struct string_heap){.ptr = *owned, .len = text.len, .cap = text.len};
        *owned = NULL;
    } else {
        if (heap_create(&heap, text.len) != ST_OK) {
            return ST_NOMEM;
        }
        memcpy(heap.ptr, text.ptr, text.len);
        heap.len = text.len;
    }
    image->encoding = VALUE_HEAP;
    memcpy(image->small, &heap, sizeof(heap));
    image->data = BYTES(image->small, sizeof(heap));
    return ST_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

struct bytes string_text(const struct value *v, char *scratch) {
    if (v->encoding == VALUE_RAW) {
        return BYTES(v->data, v->len);
    }
    if (v->encoding == VALUE_INT) {
        return BYTES(scratch, number_format_i64(scratch, int_load(v->data, v->len)));
    }
    struct string_heap heap = heap_of(v);
    return BYTES(heap.ptr, heap.len);
}

size_t string_len(const struct value *v) {
    char scratch[STRING_SCRATCH_LEN];
    return string_text(v, scratch).len;
}

bool string_as_i64(const struct value *v, int64_t *out) {
    char scratch[STRING_SCRATCH_LEN];
    if (v->encoding == VALUE_INT) {
        *out = int_load(v->data, v->len);
        return true;
    }
    return number_parse_i64(string_text(v, scratch), out);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Put an image in the value's place; what a VALUE_HEAP value pointed at goes once the new one is
 * in. */
static enum status replace(struct value *v, struct value_image *image) {
    char *old = v->encoding == VALUE_HEAP ? value_object(v) : NULL;
    if (v->len != image->data.len || v->encoding != image->encoding) {
        enum status st = value_resize(v, image->encoding, image->data.len);
        if (st != ST_OK) {
            value_image_discard(VALUE_STRING, image);
            return st;
        }
    }
    if (image->data.len != 0) {
        memcpy(v->data, image->data.ptr, image->data.len);
    }
    account_free(ACCOUNT_VALUE, old);
    return ST_OK;
}

enum status string_set(struct value *v, struct bytes text) {
    struct value_image image;
    enum status st = string_image(text, NULL, &image);
    return st == ST_OK ? replace(v, &image) : st;
}

enum status string_set_i64(struct value *v, int64_t n) {
    struct value_image image;
    image_of_i64(n, &image);
    return replace(v, &image);
}

static void splice(char *at, size_t old_len, size_t off, struct bytes text) {
    if (off > old_len) {
        memset(at + old_len, 0, off - old_len);
    }
    memcpy(at + off, text.ptr, text.len);
}

/* Leave the record: the text goes into an allocation of its own that can grow. */
static enum status write_to_new_heap(struct value *v, struct bytes old, size_t off,
                                     struct bytes text, size_t len) {
    struct string_heap heap;
    if (heap_create(&heap, len + len / 4) != ST_OK) {
        return ST_NOMEM;
    }
    memcpy(heap.ptr, old.ptr, old.len);
    splice(heap.ptr, old.len, off, text);
    heap.len = len;
    enum status st = value_resize(v, VALUE_HEAP, sizeof(heap));
    if (st != ST_OK) {
        account_free(ACCOUNT_VALUE, heap.ptr);
        return st;
    }
    heap_put(v, &heap);
    return ST_OK;
}

enum status string_write(struct value *v, size_t off, struct bytes text) {
    char scratch[STRING_SCRATCH_LEN];
    struct bytes old = string_text(v, scratch);
    if (text.len == 0) {
        return ST_OK;
    }
    size_t end = off + text.len;
    size_t len = end > old.len ? end : old.len;
    if (v->encoding == VALUE_HEAP) {
        struct string_heap heap = heap_of(v);
        enum status st = heap_grow(&heap, len);
        if (st == ST_OK) {
            splice(heap.ptr, heap.len, off, text);
            heap.len = len;
            heap_put(v, &heap);
        }
        return st;
    }
    if (len > STRING_GROW_HEAP_MIN && len > old.len) {
        return write_to_new_heap(v, old, off, text, len);
    }
    if (v->encoding != VALUE_RAW || len != old.len) {
        enum status st = value_resize(v, VALUE_RAW, len);
        if (st != ST_OK) {
            return st;
        }
        if (old.ptr == scratch) {
            memcpy(v->data, old.ptr, old.len);
        }
    }
    splice(v->data, old.len, off, text);
    return ST_OK;
}
