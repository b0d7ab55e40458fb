/* SPDX-License-Identifier: BSD-3-Clause */
/* The packed form, drawn in types/hash.h: tags and lengths stand apart from the bytes they describe, so that a search
 * looks at one byte a field. */
#include "base/hash.h"
#include "hash_priv.h"
#include "run_priv.h"

#define HEAD_PER_FIELD 3 /* tag, field length, value length */
static_assert(RUN_COUNT_LEN == HASH_EMPTY_LEN, "an empty run is its count");

const char hash_empty[HASH_EMPTY_LEN] = {0, 0};

/* ---- layout -------------------------------------------------------------------------------- */

static const char *tags_of(const char *run) {
    return run + RUN_COUNT_LEN;
}

static size_t lens_off(size_t count) {
    return RUN_COUNT_LEN + count;
}

static size_t data_off(size_t count) {
    return RUN_COUNT_LEN + HEAD_PER_FIELD * count;
}

static const unsigned char *lens_of(const char *run, size_t count) {
    return (const unsigned char *)run + lens_off(count);
}

static char tag_of(struct bytes field) {
    return (char)hash_bytes(field);
}

/* Sum of n bytes, eight at a time in four 16-bit lanes, which take 128 steps of 2 x 255 each. */
static size_t sum_bytes(const unsigned char *p, size_t n) {
    const uint64_t even = UINT64_C(0x00FF00FF00FF00FF);
    size_t sum = 0;
    while (n >= 8) {
        uint64_t lanes = 0;
        for (size_t steps = n / 8 < 128 ? n / 8 : 128; steps > 0; steps--, p += 8, n -= 8) {
            uint64_t x;
            memcpy(&x, p, sizeof(x));
            lanes += (x & even) + (x >> 8 & even);
        }
        lanes =
            (lanes & UINT64_C(0x0000FFFF0000FFFF)) + (lanes >> 16 & UINT64_C(0x0000FFFF0000FFFF));
        sum += (size_t)(lanes & UINT32_MAX) + (size_t)(lanes >> 32);
    }
    for (; n > 0; n--) {
        sum += *p++;
    }
    return sum;
}

size_t packed_used(const char *run) {
    size_t count = run_count(run);
    return data_off(count) + sum_bytes(lens_of(run, count), 2 * count);
}

/* ---- reading ------------------------------------------------------------------------------- */

struct packed_iter packed_begin(const char *run) {
    return (struct packed_iter){.index = 0, .off = data_off(run_count(run))};
}

struct packed_iter packed_seek(const char *run, size_t index) {
    size_t count = run_count(run);
    return (struct packed_iter){.index = index,
                                .off = data_off(count) + sum_bytes(lens_of(run, count), 2 * index)};
}

struct hash_pair packed_read(const char *run, struct packed_iter *it) {
    const unsigned char *lens = lens_of(run, run_count(run)) + 2 * it->index;
    struct hash_pair pair = {.field = BYTES(run + it->off, lens[0]),
                             .value = BYTES(run + it->off + lens[0], lens[1])};
    it->off += (size_t)lens[0] + lens[1];
    it->index++;
    return pair;
}

/* One field in 256 has the tag of another, so memchr mostly stops at the right one only. */
struct packed_spot packed_find(const char *run, struct bytes field) {
    size_t count = run_count(run);
    const char *tags = tags_of(run);
    const unsigned char *lens = lens_of(run, count);
    char tag = tag_of(field);
    size_t seen = 0, off = data_off(count);
    for (size_t i = 0; i < count; i++) {
        const char *hit = memchr(tags + i, tag, count - i);
        if (hit == NULL) {
            break;
        }
        i = (size_t)(hit - tags);
        off += sum_bytes(lens + 2 * seen, 2 * (i - seen));
        seen = i;
        if (bytes_equal(BYTES(run + off, lens[2 * i]), field)) {
            struct bytes value = BYTES(run + off + field.len, lens[2 * i + 1]);
            return (struct packed_spot){.found = true, .index = i, .off = off, .value = value};
        }
    }
    return (struct packed_spot){.found = false, .index = count};
}

/* ---- writing ------------------------------------------------------------------------------- */

static void put(char *at, struct bytes b) {
    if (b.len != 0) {
        memcpy(at, b.ptr, b.len);
    }
}

static enum status append(struct value *v, struct bytes field, struct bytes value) {
    size_t count = run_count(v->data), used = packed_used(v->data);
    enum status st = value_resize(v, VALUE_PACKED, used + HEAD_PER_FIELD + field.len + value.len);
    if (st != ST_OK) {
        return st;
    }
    char *run = v->data;
    memmove(run + data_off(count + 1), run + data_off(count), used - data_off(count));
    memmove(run + lens_off(count + 1), run + lens_off(count), 2 * count);
    run[RUN_COUNT_LEN + count] = tag_of(field);
    run[data_off(count + 1) - 2] = (char)field.len;
    run[data_off(count + 1) - 1] = (char)value.len;
    put(run + used + HEAD_PER_FIELD, field);
    put(run + used + HEAD_PER_FIELD + field.len, value);
    run_set_count(run, count + 1);
    return ST_OK;
}

static enum status change(struct value *v, const struct packed_spot *spot, struct bytes value) {
    size_t at = (size_t)(spot->value.ptr - v->data);
    if (value.len != spot->value.len) {
        enum status st = run_stretch(v, at, spot->value.len, value.len, packed_used(v->data));
        if (st != ST_OK) {
            return st;
        }
        v->data[lens_off(run_count(v->data)) + 2 * spot->index + 1] = (char)value.len;
    }
    put(v->data + at, value);
    return ST_OK;
}

enum status packed_set(struct value *v, const struct packed_spot *spot, struct bytes field,
                       struct bytes value) {
    const struct type_env *env = v->host->env;
    size_t longest = field.len > value.len ? field.len : value.len;
    size_t count = run_count(v->data);
    if (longest > env->hash_packed_element_max || longest > UINT8_MAX) {
        return ST_RANGE;
    }
    if (spot->found) {
        return change(v, spot, value);
    }
    if (count >= env->hash_packed_entries_max || count >= RUN_COUNT_MAX ||
        v->len + HEAD_PER_FIELD + field.len + value.len > HASH_PACKED_BYTES_MAX) {
        return ST_RANGE;
    }
    return append(v, field, value);
}

/* Everything moves towards the front, so each part may go before the next is read. */
void packed_delete(struct value *v, const struct packed_spot *spot) {
    char *run = v->data;
    size_t count = run_count(run), used = packed_used(run), i = spot->index, behind = count - i - 1;
    size_t before_len = spot->off - data_off(count);
    size_t entry_len = (size_t)(spot->value.ptr - run) + spot->value.len - spot->off;
    size_t after_len = used - spot->off - entry_len;
    char *tags = run + RUN_COUNT_LEN, *lens = run + lens_off(count), *data = run + data_off(count);
    memmove(tags + i, tags + i + 1, behind);
    memmove(lens - 1, lens, 2 * i);
    memmove(lens - 1 + 2 * i, lens + 2 * i + 2, 2 * behind);
    memmove(data - HEAD_PER_FIELD, data, before_len);
    memmove(data - HEAD_PER_FIELD + before_len, data + before_len + entry_len, after_len);
    run_set_count(run, count - 1);
    enum status st = value_resize(v, VALUE_PACKED, used - HEAD_PER_FIELD - entry_len);
    (void)st; /* failing, it leaves idle bytes at the end */
}

bool packed_check(const char *run, size_t len) {
    if (packed_used(run) > len) {
        return false;
    }
    struct packed_iter it = packed_begin(run);
    for (size_t i = 0; i < run_count(run); i++) {
        if (tags_of(run)[i] != tag_of(packed_read(run, &it).field)) {
            return false;
        }
    }
    return true;
}
