/* SPDX-License-Identifier: BSD-3-Clause */
/* The packed form, drawn in types/hash.h and types/set.h: tags and lengths stand apart from the
 * bytes they describe, so that a search looks at one byte an entry. */
#include "base/hash.h"
#include "keyed_priv.h"
#include "run_priv.h"

/* ---- layout -------------------------------------------------------------------------------- */

/* Tag and lengths of an entry. */
static size_t head_len(enum kpacked_form form) {
    return 1 + (size_t)form;
}

static const char *tags_of(const char *run) {
    return run + RUN_COUNT_LEN;
}

static size_t lens_off(size_t count) {
    return RUN_COUNT_LEN + count;
}

static size_t data_off(enum kpacked_form form, size_t count) {
    return RUN_COUNT_LEN + head_len(form) * count;
}

static const unsigned char *lens_of(const char *run, size_t count) {
    return (const unsigned char *)run + lens_off(count);
}

static char tag_of(struct bytes key) {
    return (char)hash_bytes(key);
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

/* Bytes in use, which may be fewer than the value's len. */
static size_t used_len(const char *run, enum kpacked_form form) {
    return kpacked_seek(run, form, run_count(run)).off;
}

size_t kpacked_len(enum kpacked_form form, size_t count, size_t data_len) {
    return data_off(form, count) + data_len;
}

/* ---- reading ------------------------------------------------------------------------------- */

struct kpacked_iter kpacked_begin(const char *run, enum kpacked_form form) {
    return (struct kpacked_iter){.index = 0, .off = data_off(form, run_count(run))};
}

struct kpacked_iter kpacked_seek(const char *run, enum kpacked_form form, size_t index) {
    size_t count = run_count(run);
    size_t before_len = sum_bytes(lens_of(run, count), form * index);
    return (struct kpacked_iter){.index = index, .off = data_off(form, count) + before_len};
}

struct keyed kpacked_read(const char *run, enum kpacked_form form, struct kpacked_iter *it) {
    const unsigned char *lens = lens_of(run, run_count(run)) + form * it->index;
    struct keyed entry = {.key = BYTES(run + it->off, lens[0])};
    it->off += lens[0];
    entry.value = BYTES(run + it->off, form == KPACKED_PAIRS ? lens[1] : 0);
    it->off += entry.value.len;
    it->index++;
    return entry;
}

/* A position is (offset, entries seen); the count is 16 bits. */
size_t kpacked_next(const char *run, enum kpacked_form form, uint64_t *position,
                    struct keyed *entries, size_t cap) {
    struct kpacked_iter it = {.index = *position & UINT16_MAX, .off = (size_t)(*position >> 16)};
    it = *position == 0 ? kpacked_begin(run, form) : it;
    size_t count = run_count(run), filled = 0;
    while (it.index < count && filled < cap) {
        entries[filled++] = kpacked_read(run, form, &it);
    }
    *position = (uint64_t)it.off << 16 | it.index;
    return filled;
}

/* One key in 256 has the tag of another, so memchr mostly stops at the right one only. */
struct kpacked_spot kpacked_find(const char *run, enum kpacked_form form, struct bytes key) {
    size_t count = run_count(run);
    const char *tags = tags_of(run);
    const unsigned char *lens = lens_of(run, count);
    char tag = tag_of(key);
    size_t seen = 0, off = data_off(form, count);
    for (size_t i = 0; i < count; i++) {
        const char *hit = memchr(tags + i, tag, count - i);
        if (hit == NULL) {
            break;
        }
        i = (size_t)(hit - tags);
        off += sum_bytes(lens + form * seen, form * (i - seen));
        seen = i;
        if (bytes_equal(BYTES(run + off, lens[form * i]), key)) {
            size_t value_len = form == KPACKED_PAIRS ? lens[form * i + 1] : 0;
            struct bytes value = BYTES(run + off + key.len, value_len);
            return (struct kpacked_spot){.found = true, .index = i, .off = off, .value = value};
        }
    }
    return (struct kpacked_spot){.found = false, .index = count};
}

/* ---- writing ------------------------------------------------------------------------------- */

bool kpacked_fits(const char *run, size_t len, enum kpacked_form form, const struct keyed *entry,
                  size_t entries_max, size_t element_max) {
    size_t longest = entry->key.len > entry->value.len ? entry->key.len : entry->value.len;
    size_t count = run_count(run);
    return longest <= element_max && longest <= UINT8_MAX && count < entries_max &&
           count < RUN_COUNT_MAX &&
           len + head_len(form) + entry->key.len + entry->value.len <= KPACKED_BYTES_MAX;
}

static void put(char *at, struct bytes b) {
    if (b.len != 0) {
        memcpy(at, b.ptr, b.len);
    }
}

enum status kpacked_append(struct value *v, enum kpacked_form form, const struct keyed *entry) {
    size_t count = run_count(v->data), used = used_len(v->data, form), head = head_len(form);
    size_t entry_len = entry->key.len + entry->value.len;
    enum status st = value_resize(v, VALUE_PACKED, used + head + entry_len);
    if (st != ST_OK) {
        return st;
    }
    char *run = v->data;
    size_t data = data_off(form, count);
    memmove(run + data + head, run + data, used - data);
    memmove(run + lens_off(count + 1), run + lens_off(count), form * count);
    run[RUN_COUNT_LEN + count] = tag_of(entry->key);
    run[data + 1] = (char)entry->key.len;
    if (form == KPACKED_PAIRS) {
        run[data + 2] = (char)entry->value.len;
    }
    put(run + used + head, entry->key);
    put(run + used + head + entry->key.len, entry->value);
    run_set_count(run, count + 1);
    return ST_OK;
}

enum status kpacked_change(struct value *v, enum kpacked_form form, const struct kpacked_spot *spot,
                           struct bytes value) {
    size_t at = (size_t)(spot->value.ptr - v->data);
    if (value.len != spot->value.len) {
        enum status st = run_stretch(v, at, spot->value.len, value.len, used_len(v->data, form));
        if (st != ST_OK) {
            return st;
        }
        v->data[lens_off(run_count(v->data)) + form * spot->index + 1] = (char)value.len;
    }
    put(v->data + at, value);
    return ST_OK;
}

/* Everything moves towards the front, so each part may go before the next is read. */
void kpacked_delete(struct value *v, enum kpacked_form form, const struct kpacked_spot *spot) {
    char *run = v->data;
    size_t count = run_count(run), used = used_len(run, form), head = head_len(form);
    size_t i = spot->index, behind = count - i - 1;
    size_t before_len = spot->off - data_off(form, count);
    size_t entry_len = (size_t)(spot->value.ptr - run) + spot->value.len - spot->off;
    size_t after_len = used - spot->off - entry_len;
    char *tags = run + RUN_COUNT_LEN, *lens = run + lens_off(count);
    char *data = run + data_off(form, count);
    memmove(tags + i, tags + i + 1, behind);
    memmove(lens - 1, lens, form * i);
    memmove(lens - 1 + form * i, lens + form * (i + 1), form * behind);
    memmove(data - head, data, before_len);
    memmove(data - head + before_len, data + before_len + entry_len, after_len);
    run_set_count(run, count - 1);
    enum status st = value_resize(v, VALUE_PACKED, used - head - entry_len);
    (void)st; /* failing, it leaves idle bytes at the end */
}

struct kpacked_iter kpacked_build_begin(char *run, size_t count) {
    run_set_count(run, count);
    return kpacked_begin(run, KPACKED_MEMBERS);
}

void kpacked_build_add(char *run, struct kpacked_iter *it, struct bytes member) {
    run[RUN_COUNT_LEN + it->index] = tag_of(member);
    run[lens_off(run_count(run)) + it->index] = (char)member.len;
    put(run + it->off, member);
    it->off += member.len;
    it->index++;
}

bool kpacked_check(const char *run, size_t len, enum kpacked_form form) {
    if (len < RUN_COUNT_LEN || len < data_off(form, run_count(run)) || used_len(run, form) > len) {
        return false;
    }
    struct kpacked_iter it = kpacked_begin(run, form);
    for (size_t i = 0; i < run_count(run); i++) {
        if (tags_of(run)[i] != tag_of(kpacked_read(run, form, &it).key)) {
            return false;
        }
    }
    return true;
}
