/* SPDX-License-Identifier: BSD-3-Clause */
#include "set_priv.h"

const char ints_empty[INTS_HEAD_LEN] = {2, 0, 0};

/* ---- one integer ---------------------------------------------------------------------------- */

static size_t width_of(int64_t n) {
    return n == (int16_t)n ? 2 : n == (int32_t)n ? 4 : 8;
}

static int64_t get(const char *p, size_t width) {
    int16_t narrow;
    int32_t middle;
    int64_t wide;
    switch (width) {
    case 2:
        memcpy(&narrow, p, sizeof(narrow));
        return narrow;
    case 4:
        memcpy(&middle, p, sizeof(middle));
        return middle;
    default:
        memcpy(&wide, p, sizeof(wide));
        return wide;
    }
}

/* The low bytes of a little-endian integer are the narrower one. */
static void put(char *p, size_t width, int64_t n) {
    memcpy(p, &n, width);
}

/* ---- the run -------------------------------------------------------------------------------- */

static size_t run_width(const char *run) {
    return (unsigned char)run[0];
}

uint64_t ints_count(const char *run) {
    uint16_t count;
    memcpy(&count, run + 1, sizeof(count));
    return count;
}

static void set_count(char *run, size_t count) {
    uint16_t n = (uint16_t)count;
    memcpy(run + 1, &n, sizeof(n));
}

static size_t run_len(size_t width, size_t count) {
    return INTS_HEAD_LEN + width * count;
}

int64_t ints_at(const char *run, size_t index) {
    size_t width = run_width(run);
    return get(run + run_len(width, index), width);
}

bool ints_find(const char *run, int64_t n, size_t *index) {
    size_t low = 0, high = ints_count(run);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ints_at(run, middle) < n) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *index = low;
    return low < ints_count(run) && ints_at(run, low) == n;
}

/* An integer that is too wide lies beyond all others: behind the last or before the first. From the
 * last one on, each moves to where only those before it have been. */
static void widen(char *run, size_t from, size_t to, size_t shift) {
    for (size_t i = ints_count(run); i-- > 0;) {
        put(run + run_len(to, i + shift), to, get(run + run_len(from, i), from));
    }
    run[0] = (char)to;
}

enum status ints_insert(struct value *v, size_t index, int64_t n) {
    size_t old_width = run_width(v->data), count = ints_count(v->data);
    size_t width = width_of(n) > old_width ? width_of(n) : old_width;
    if (count >= INTS_COUNT_MAX) {
        return ST_RANGE;
    }
    enum status st = value_resize(v, VALUE_INT, run_len(width, count + 1));
    if (st != ST_OK) {
        return st;
    }
    char *run = v->data, *at = run + run_len(width, index);
    if (width > old_width) {
        widen(run, old_width, width, index == 0);
    } else {
        memmove(at + width, at, (count - index) * width);
    }
    put(at, width, n);
    set_count(run, count + 1);
    return ST_OK;
}

void ints_delete(struct value *v, size_t index) {
    char *run = v->data;
    size_t width = run_width(run), count = ints_count(run);
    char *at = run + run_len(width, index);
    memmove(at, at + width, (count - index - 1) * width);
    set_count(run, count - 1);
    enum status st = value_resize(v, VALUE_INT, run_len(width, count - 1));
    (void)st; /* failing, it leaves idle bytes at the end */
}

bool ints_check(const char *run, size_t len) {
    if (len < INTS_HEAD_LEN) {
        return false;
    }
    size_t width = run_width(run), count = ints_count(run);
    if ((width != 2 && width != 4 && width != 8) || run_len(width, count) > len) {
        return false;
    }
    for (size_t i = 1; i < count; i++) {
        if (ints_at(run, i - 1) >= ints_at(run, i)) {
            return false;
        }
    }
    return true;
}
