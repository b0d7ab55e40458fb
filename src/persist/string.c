/* SPDX-License-Identifier: BSD-3-Clause */
#include <liblzf/lzf.h>
#include <stdlib.h>

#include "base/number.h"
#include "reader_priv.h"
#include "types/string.h"

#define STRING_LEN_MAX UINT32_MAX /* what the types hold */
#define COPY_LEN_MIN ((size_t)64 << 10)
/* Three bytes of LZF give at most 264: no honest string claims more. */
#define LZF_RATIO_MAX 264

/* ---- numbers -------------------------------------------------------------------------------- */

static uint64_t little(const char *p, size_t size) {
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++) {
        v |= (uint64_t)(unsigned char)p[i] << 8 * i;
    }
    return v;
}

bool get_byte(struct reader *r, unsigned char *out) {
    const char *p = input_take(r, 1);
    if (p == NULL) {
        return false;
    }
    *out = (unsigned char)*p;
    return true;
}

bool get_u64(struct reader *r, uint64_t *out) {
    const char *p = input_take(r, 8);
    if (p == NULL) {
        return false;
    }
    *out = little(p, 8);
    return true;
}

bool get_u32(struct reader *r, uint32_t *out) {
    const char *p = input_take(r, 4);
    if (p == NULL) {
        return false;
    }
    *out = (uint32_t)little(p, 4);
    return true;
}

bool get_double(struct reader *r, double *out) {
    uint64_t bits;
    if (!get_u64(r, &bits)) {
        return false;
    }
    memcpy(out, &bits, sizeof(*out));
    return true;
}

/* A length whose first byte is known. */
static bool rest_of_len(struct reader *r, unsigned char first, uint64_t *out) {
    size_t size = first == RDB_LEN_32 ? 4 : first == RDB_LEN_64 ? 8 : 0;
    if ((first & RDB_LEN_MASK) == RDB_LEN_6) {
        *out = first;
        return true;
    }
    if ((first & RDB_LEN_MASK) == RDB_LEN_14) {
        unsigned char second;
        if (!get_byte(r, &second)) {
            return false;
        }
        *out = (uint64_t)(first & 0x3F) << 8 | second;
        return true;
    }
    if (size == 0) {
        return fault(r, ST_CORRUPT, "0x%02x begins no length", first);
    }
    const char *p = input_take(r, size);
    if (p == NULL) {
        return false;
    }
    *out = __builtin_bswap64(little(p, size)) >> (64 - 8 * size);
    return true;
}

bool get_len(struct reader *r, uint64_t *out) {
    unsigned char first;
    return get_byte(r, &first) && rest_of_len(r, first, out);
}

bool get_count(struct reader *r, size_t min_bytes, uint64_t *out) {
    if (!get_len(r, out)) {
        return false;
    }
    if (*out > input_left(&r->in) / min_bytes) {
        return fault(r, ST_CORRUPT, "a count of %llu is more than the file can hold",
                     (unsigned long long)*out);
    }
    return true;
}

/* ---- strings -------------------------------------------------------------------------------- */

/* The head of a string: how many bytes follow and what they are. */
struct head {
    enum { PLAIN, INTEGER, COMPRESSED } form;
    size_t stored_len; /* bytes that follow */
    size_t len;        /* of the string, not known for integers */
};

static bool string_len_fits(struct reader *r, uint64_t stored, uint64_t len) {
    if (stored > input_left(&r->in)) {
        return fault(r, ST_CORRUPT, "a string of %llu bytes is more than the file holds",
                     (unsigned long long)stored);
    }
    if (len > STRING_LEN_MAX || stored > STRING_LEN_MAX) {
        return fault(r, ST_CORRUPT, "a string of %llu bytes is too long", (unsigned long long)len);
    }
    return true;
}

static bool get_special_head(struct reader *r, unsigned char first, struct head *h) {
    unsigned special = first & 0x3F;
    if (special <= RDB_INT32) {
        *h = (struct head){.form = INTEGER, .stored_len = (size_t)1 << special};
        return true;
    }
    if (special != RDB_LZF) {
        return fault(r, ST_CORRUPT, "0x%02x begins no string", first);
    }
    uint64_t stored, len;
    if (!get_len(r, &stored) || !get_len(r, &len) || !string_len_fits(r, stored, len)) {
        return false;
    }
    if (stored == 0 || len == 0 || len / LZF_RATIO_MAX > stored) {
        return corrupt(r, "a compressed string's lengths are impossible");
    }
    *h = (struct head){.form = COMPRESSED, .stored_len = (size_t)stored, .len = (size_t)len};
    return true;
}

static bool get_head(struct reader *r, struct head *h) {
    unsigned char first;
    uint64_t len;
    if (!get_byte(r, &first)) {
        return false;
    }
    if ((first & RDB_LEN_MASK) == RDB_LEN_SPECIAL) {
        return get_special_head(r, first, h);
    }
    if (!rest_of_len(r, first, &len) || !string_len_fits(r, len, len)) {
        return false;
    }
    *h = (struct head){.form = PLAIN, .stored_len = (size_t)len, .len = (size_t)len};
    return true;
}

static int64_t sign_extended(uint64_t v, size_t size) {
    unsigned shift = 64 - 8 * (unsigned)size;
    return (int64_t)(v << shift) >> shift;
}

static bool decompress(struct reader *r, const struct head *h, const char *stored, char *to) {
    unsigned len = lzf_decompress(stored, (unsigned)h->stored_len, to, (unsigned)h->len);
    return len == h->len || corrupt(r, "a compressed string does not decompress");
}

/* What follows the head, as a view. */
static bool get_body(struct reader *r, const struct head *h, struct bytes *out) {
    const char *stored = input_take(r, h->stored_len);
    if (stored == NULL) {
        return false;
    }
    if (LIKELY(h->form == PLAIN)) {
        *out = BYTES(stored, h->len);
        return true;
    }
    size_t len = h->form == INTEGER ? NUMBER_I64_MAX_LEN : h->len;
    char *to = input_hold(r, len);
    if (to == NULL) {
        return false;
    }
    if (h->form == INTEGER) {
        len = number_format_i64(to, sign_extended(little(stored, h->stored_len), h->stored_len));
    } else if (!decompress(r, h, stored, to)) {
        return false;
    }
    *out = BYTES(to, len);
    return true;
}

bool get_string(struct reader *r, struct bytes *out) {
    struct input *in = &r->in;
    if (LIKELY(in->pos < in->len)) { /* short, plain and in the window: nearly all */
        unsigned char first = (unsigned char)in->window->bytes[in->pos];
        if (first < 64 && in->len - in->pos > first) {
            *out = BYTES(in->window->bytes + in->pos + 1, first);
            in->pos += 1 + (size_t)first;
            in->pinned = true;
            return true;
        }
    }
    struct head head;
    return get_head(r, &head) && get_body(r, &head, out);
}

bool skip_string(struct reader *r) {
    struct head head;
    if (!get_head(r, &head)) {
        return false;
    }
    return input_take(r, head.stored_len) != NULL;
}

/* A long string into a block of its own, which becomes the value. */
static bool get_owned(struct reader *r, const struct head *h, char *owned) {
    if (h->form == PLAIN) {
        return input_copy(r, owned, h->len);
    }
    const char *stored = input_take(r, h->stored_len);
    return stored != NULL && decompress(r, h, stored, owned);
}

static bool get_long_image(struct reader *r, const struct head *h, struct value_image *image) {
    char *owned = malloc(h->len);
    if (owned == NULL) {
        return fault(r, ST_NOMEM, "out of memory for %zu bytes", h->len);
    }
    bool ok = get_owned(r, h, owned);
    if (ok && string_image(BYTES(owned, h->len), &owned, image) != ST_OK) {
        ok = fault(r, ST_NOMEM, "out of memory");
    }
    free(owned); /* NULL when the image took it over */
    return ok;
}

bool get_string_image(struct reader *r, struct value_image *image) {
    struct head head;
    struct bytes text;
    if (!get_head(r, &head)) {
        return false;
    }
    bool known = r->options->total_bytes != READER_UNKNOWN_LEN || head.form == COMPRESSED;
    if (known && head.len >= COPY_LEN_MIN) {
        return get_long_image(r, &head, image);
    }
    if (!get_body(r, &head, &text)) {
        return false;
    }
    return string_image(text, NULL, image) == ST_OK || fault(r, ST_NOMEM, "out of memory");
}
