/* SPDX-License-Identifier: BSD-3-Clause */
#include "reader_priv.h"

#define ZIPLIST_HEAD_LEN 10
#define LISTPACK_HEAD_LEN 6
#define INTSET_HEAD_LEN 8
#define END_MARK 0xFF
#define BIG_LEN_MARK 0xFE /* a length of four bytes follows: ziplist, zipmap */

static uint64_t little(const unsigned char *p, size_t size) {
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++) {
        v |= (uint64_t)p[i] << 8 * i;
    }
    return v;
}

static uint64_t big(const unsigned char *p, size_t size) {
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++) {
        v = v << 8 | p[i];
    }
    return v;
}

static int64_t signed_little(const unsigned char *p, size_t size) {
    unsigned shift = 64 - 8 * (unsigned)size;
    return (int64_t)(little(p, size) << shift) >> shift;
}

/* Always false. */
static bool bad(struct pack *p, const char *text) {
    p->fault = text;
    return false;
}

static size_t left(const struct pack *p) {
    return (size_t)(p->end - p->at);
}

/* ---- heads ---------------------------------------------------------------------------------- */

/* head_len bytes, entries, the end mark; total and count by the head. */
static bool open_list(struct pack *p, size_t len, size_t head_len, size_t count_off) {
    if (len < head_len + 1) {
        return bad(p, "shorter than its head");
    }
    if (little(p->start, 4) != len) {
        return bad(p, "its length is not what its head says");
    }
    if (p->start[len - 1] != END_MARK) {
        return bad(p, "no end mark");
    }
    p->claimed = little(p->start + count_off, 2);
    p->claimed = p->claimed == UINT16_MAX ? PACK_UNKNOWN : p->claimed;
    p->at = p->start + head_len;
    p->end = p->start + len - 1;
    return true;
}

static bool open_intset(struct pack *p, size_t len) {
    if (len < INTSET_HEAD_LEN) {
        return bad(p, "shorter than its head");
    }
    p->width = (size_t)little(p->start, 4);
    p->claimed = little(p->start + 4, 4);
    if (p->width != 2 && p->width != 4 && p->width != 8) {
        return bad(p, "integers of an impossible size");
    }
    if (len - INTSET_HEAD_LEN != p->claimed * p->width) {
        return bad(p, "its length is not what its head says");
    }
    p->at = p->start + INTSET_HEAD_LEN;
    p->end = p->start + len;
    return true;
}

static bool open_zipmap(struct pack *p, size_t len) {
    if (len < 2) {
        return bad(p, "shorter than its head");
    }
    if (p->start[len - 1] != END_MARK) {
        return bad(p, "no end mark");
    }
    p->claimed = p->start[0] >= BIG_LEN_MARK ? PACK_UNKNOWN : 2 * (uint64_t)p->start[0];
    p->at = p->start + 1;
    p->end = p->start + len - 1;
    return true;
}

bool pack_open(struct pack *p, enum pack_kind kind, struct bytes bytes) {
    *p = (struct pack){.kind = kind, .start = (const unsigned char *)bytes.ptr};
    switch (kind) {
    case PACK_ZIPLIST:
        return open_list(p, bytes.len, ZIPLIST_HEAD_LEN, 8);
    case PACK_LISTPACK:
        return open_list(p, bytes.len, LISTPACK_HEAD_LEN, 4);
    case PACK_INTSET:
        return open_intset(p, bytes.len);
    default:
        return open_zipmap(p, bytes.len);
    }
}

/* ---- entries -------------------------------------------------------------------------------- */

/* A string of len bytes behind a head of head bytes, both from p->at on. */
static bool take_text(struct pack *p, size_t head, uint64_t len, struct pack_element *out) {
    if (left(p) < head || left(p) - head < len) {
        return bad(p, "an entry overruns");
    }
    out->is_integer = false;
    out->text = BYTES((const char *)p->at + head, (size_t)len);
    p->at += head + len;
    return true;
}

static bool take_integer(struct pack *p, size_t size, struct pack_element *out) {
    if (left(p) < 1 + size) {
        return bad(p, "an entry overruns");
    }
    out->is_integer = true;
    out->integer = signed_little(p->at + 1, size);
    p->at += 1 + size;
    return true;
}

static bool small_integer(struct pack *p, int64_t n, size_t size, struct pack_element *out) {
    out->is_integer = true;
    out->integer = n;
    p->at += size;
    return true;
}

/* The length of the entry before, which every ziplist entry begins with. */
static bool take_previous_len(struct pack *p) {
    size_t size = *p->at == BIG_LEN_MARK ? 5 : 1;
    if (*p->at == END_MARK) {
        return bad(p, "an end mark amid entries");
    }
    if (left(p) <= size) {
        return bad(p, "an entry overruns");
    }
    if ((size == 5 ? little(p->at + 1, 4) : *p->at) != p->entry_len) {
        return bad(p, "an entry gives the one before a wrong length");
    }
    p->at += size;
    return true;
}

static bool next_ziplist(struct pack *p, struct pack_element *out) {
    const unsigned char *start = p->at;
    if (!take_previous_len(p)) {
        return false;
    }
    static const unsigned char sizes[] = {2, 4, 8, 3}; /* C0 D0 E0 F0 */
    unsigned char head = *p->at;
    bool ok;
    if (head < 0x40) {
        ok = take_text(p, 1, head, out);
    } else if (head < 0x80) {
        ok = left(p) < 2 ? bad(p, "an entry overruns")
                         : take_text(p, 2, big(p->at, 2) & 0x3FFF, out);
    } else if (head == 0x80) {
        ok = left(p) < 5 ? bad(p, "an entry overruns") : take_text(p, 5, big(p->at + 1, 4), out);
    } else if (head >= 0xC0 && (head & 0x0F) == 0) {
        ok = take_integer(p, sizes[(head - 0xC0) >> 4], out);
    } else if (head == 0xFE) {
        ok = take_integer(p, 1, out);
    } else if (head >= 0xF1 && head <= 0xFD) {
        ok = small_integer(p, head - 0xF1, 1, out);
    } else {
        ok = bad(p, "an entry of an unknown kind");
    }
    p->entry_len = (size_t)(p->at - start);
    return ok;
}

/* The entry's own length behind it. Seven bits a byte; a writer may use one byte more than needed
 * at the very end of a byte's range. */
static bool take_backward_len(struct pack *p, size_t entry_len) {
    size_t seen = 0;
    for (size_t size = 1; size <= 5 && size <= left(p); size++) {
        unsigned char byte = p->at[size - 1];
        if ((size > 1) != ((byte & 0x80) != 0)) {
            break;
        }
        seen = seen << 7 | (byte & 0x7F);
        bool more = size < left(p) && size < 5 && seen < entry_len;
        if (!more) {
            p->at += size;
            return seen == entry_len || bad(p, "an entry's length behind it is wrong");
        }
    }
    return bad(p, "an entry's length behind it is wrong");
}

static bool next_listpack(struct pack *p, struct pack_element *out) {
    const unsigned char *start = p->at;
    unsigned char head = *p->at;
    bool ok;
    if (head < 0x80) {
        ok = small_integer(p, head, 1, out);
    } else if (head < 0xC0) {
        ok = take_text(p, 1, head & 0x3F, out);
    } else if (left(p) < 2) {
        ok = bad(p, "an entry overruns");
    } else if (head < 0xE0) {
        int64_t n = (int64_t)(big(p->at, 2) & 0x1FFF);
        ok = small_integer(p, n < 4096 ? n : n - 8192, 2, out);
    } else if (head < 0xF0) {
        ok = take_text(p, 2, big(p->at, 2) & 0x0FFF, out);
    } else if (head == 0xF0) {
        ok = left(p) < 5 ? bad(p, "an entry overruns") : take_text(p, 5, little(p->at + 1, 4), out);
    } else if (head <= 0xF4) {
        ok = take_integer(p, head == 0xF4 ? 8 : (size_t)(head - 0xEF), out);
    } else {
        ok = bad(p, "an entry of an unknown kind");
    }
    return ok && take_backward_len(p, (size_t)(p->at - start));
}

static bool next_intset(struct pack *p, struct pack_element *out) {
    int64_t n = signed_little(p->at, p->width);
    if (p->count > 0 && n <= signed_little(p->at - p->width, p->width)) {
        return bad(p, "integers that do not ascend");
    }
    return small_integer(p, n, p->width, out);
}

static bool next_zipmap(struct pack *p, struct pack_element *out) {
    bool is_value = p->count % 2 == 1;
    size_t head = *p->at == BIG_LEN_MARK ? 5 : 1;
    if (*p->at == END_MARK) {
        return bad(p, "an end mark amid entries");
    }
    if (left(p) < head + is_value) {
        return bad(p, "an entry overruns");
    }
    uint64_t len = head == 5 ? little(p->at + 1, 4) : *p->at;
    size_t unused = is_value ? p->at[head] : 0;
    if (!take_text(p, head + is_value, len, out)) {
        return false;
    }
    if (left(p) < unused) {
        return bad(p, "an entry overruns");
    }
    p->at += unused;
    return true;
}

static bool check_end(struct pack *p) {
    if (p->claimed != PACK_UNKNOWN && p->claimed != p->count) {
        return bad(p, "it does not have as many entries as its head says");
    }
    if (p->kind == PACK_ZIPLIST &&
        little(p->start + 4, 4) != (uint64_t)(p->end - p->start) - p->entry_len) {
        return bad(p, "its last entry is not where its head says");
    }
    return false;
}

bool pack_next(struct pack *p, struct pack_element *out) {
    bool ok;
    if (p->fault != NULL) {
        return false;
    }
    if (p->at == p->end) {
        return check_end(p);
    }
    switch (p->kind) {
    case PACK_ZIPLIST:
        ok = next_ziplist(p, out);
        break;
    case PACK_LISTPACK:
        ok = next_listpack(p, out);
        break;
    case PACK_INTSET:
        ok = next_intset(p, out);
        break;
    default:
        ok = next_zipmap(p, out);
    }
    p->count += ok;
    return ok;
}
