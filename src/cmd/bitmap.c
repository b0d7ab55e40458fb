/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings as arrays of bits. BITFIELD is in cmd/bitfield.c. */
#include <stdlib.h>

#include "base/hash.h"
#include "bitmap_priv.h"
#include "cmd/args.h"
#include "handlers_priv.h"
#include "mem/account.h"

/* ---- shared --------------------------------------------------------------------------------- */

bool bitmap_offset(struct call *call, size_t i, unsigned width, uint64_t *offset) {
    struct bytes text = call->argv[i];
    int64_t n;
    bool in_fields = width > 0 && text.len > 0 && text.ptr[0] == '#';
    if (in_fields) {
        text = BYTES(text.ptr + 1, text.len - 1);
    }
    if (!number_parse_i64(text, &n) || n < 0 ||
        (in_fields && __builtin_mul_overflow(n, (int64_t)width, &n)) ||
        (uint64_t)n >> 3 >= call->cx->config->proto_max_bulk_len) {
        reply_error(&call->reply, "ERR bit offset is not an integer or out of range");
        return false;
    }
    *offset = (uint64_t)n;
    return true;
}

/* Writing the last byte makes the string long enough; writing any byte makes an integer text. */
static enum status make_writable(struct value *v, size_t len) {
    size_t old_len = string_len(v);
    if (old_len < len) {
        return string_write(v, len - 1, BYTES("", 1));
    }
    if (v->encoding == VALUE_INT) {
        char scratch[STRING_SCRATCH_LEN];
        return string_write(v, 0, BYTES(string_text(v, scratch).ptr, 1));
    }
    return ST_OK;
}

bool bitmap_open(struct call *call, size_t len, struct entry *e) {
    static const struct value_image empty = {.encoding = VALUE_RAW, .data = {"", 0}};
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, e);
    enum status st = ST_OK;
    if (found == LOOKUP_REFUSED) {
        return false;
    }
    if (found == LOOKUP_ABSENT) {
        st = db_add(call_db(call), call->argv[1], lookup_hash(call, 1), VALUE_STRING, &empty,
                    DB_NO_EXPIRY, e);
    }
    if (st == ST_OK) {
        st = make_writable(&e->value, len);
        if (st != ST_OK && found == LOOKUP_ABSENT) {
            entry_delete(e);
        }
    }
    if (st != ST_OK) {
        args_status_error(call, st);
    }
    return st == ST_OK;
}

/* The string at key 1 for reading, "" when absent. False: the error was replied. */
static bool find_text(struct call *call, struct bytes *text, bool *absent, char *scratch) {
    struct entry e;
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, &e);
    *text = found == LOOKUP_FOUND ? string_text(&e.value, scratch) : BYTES("", 0);
    *absent = found == LOOKUP_ABSENT;
    return found != LOOKUP_REFUSED;
}

static uint64_t load_word(const char *p) {
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return word;
}

/* ---- single bits ---------------------------------------------------------------------------- */

void setbit_command(struct call *call) {
    uint64_t offset;
    int64_t bit;
    struct entry e;
    if (!bitmap_offset(call, 2, 0, &offset) ||
        !args_i64_range(call, 3, 0, 1, &bit, "ERR bit is not an integer or out of range") ||
        !bitmap_open(call, (size_t)(offset / 8) + 1, &e)) {
        return;
    }
    char scratch[STRING_SCRATCH_LEN];
    unsigned char old = (unsigned char)string_text(&e.value, scratch).ptr[offset / 8];
    unsigned char mask = (unsigned char)(128 >> offset % 8);
    char now = (char)(bit ? old | mask : old & ~mask);
    enum status st = string_write(&e.value, (size_t)(offset / 8), BYTES(&now, 1));
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    call_dirty(call, 1);
    reply_integer(&call->reply, (old & mask) != 0);
}

void getbit_command(struct call *call) {
    char scratch[STRING_SCRATCH_LEN];
    struct bytes text;
    uint64_t offset;
    bool absent;
    if (!bitmap_offset(call, 2, 0, &offset) || !find_text(call, &text, &absent, scratch)) {
        return;
    }
    bool inside = offset / 8 < text.len;
    reply_integer(&call->reply,
                  inside && ((unsigned char)text.ptr[offset / 8] << offset % 8 & 128));
}

/* ---- ranges of bits ------------------------------------------------------------------------- */

/* Bits first .. last of a string; none when first > last. */
struct bit_range {
    int64_t first, last;
};

/* [BYTE|BIT] at argument i. */
static bool parse_unit(struct call *call, size_t i, bool *bits) {
    *bits = args_is(call, i, "BIT");
    if (call->argc > i && !*bits && !args_is(call, i, "BYTE")) {
        args_syntax_error(call);
        return false;
    }
    return true;
}

/* Bits start .. end, or bytes, of a string of len bytes; negative ones count from its end. */
static struct bit_range clip_range(int64_t start, int64_t end, bool bits, size_t len) {
    int64_t total = (int64_t)len * (bits ? 8 : 1);
    start = start < 0 ? start + total : start;
    end = end < 0 ? end + total : end;
    start = start < 0 ? 0 : start;
    end = end < 0 ? 0 : end;
    end = end >= total ? total - 1 : end;
    if (start > end) {
        return (struct bit_range){0, -1};
    }
    return bits ? (struct bit_range){start, end} : (struct bit_range){start * 8, end * 8 + 7};
}

static bool too_many(struct call *call, size_t argc_max) {
    if (call->argc > argc_max) {
        args_syntax_error(call);
    }
    return call->argc > argc_max;
}

/* ---- counting ------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) uint64_t count_words(const char *p, size_t len) {
    uint64_t a = 0, b = 0, c = 0, d = 0; /* four sums that do not wait for one another */
    for (; len >= 32; p += 32, len -= 32) {
        a += (unsigned)__builtin_popcountll(load_word(p));
        b += (unsigned)__builtin_popcountll(load_word(p + 8));
        c += (unsigned)__builtin_popcountll(load_word(p + 16));
        d += (unsigned)__builtin_popcountll(load_word(p + 24));
    }
    for (; len >= 8; p += 8, len -= 8) {
        a += (unsigned)__builtin_popcountll(load_word(p));
    }
    uint64_t rest = 0;
    if (len > 0) {
        memcpy(&rest, p, len);
    }
    return a + b + c + d + (unsigned)__builtin_popcountll(rest);
}

#ifdef __x86_64__
/* The instruction is not in the x86-64 baseline: without it a word is a call into libgcc. */
__attribute__((target("popcnt"))) static uint64_t count_by_instruction(const char *p, size_t len) {
    return count_words(p, len);
}
#endif

static uint64_t count_bytes(const char *p, size_t len) {
#ifdef __x86_64__
    if (LIKELY(__builtin_cpu_supports("popcnt"))) {
        return count_by_instruction(p, len);
    }
#endif
    return count_words(p, len);
}

/* Whole bytes, less the bits in front of the first and behind the last. */
static uint64_t count_range(const char *text, const struct bit_range *range) {
    size_t first = (size_t)(range->first / 8), last = (size_t)(range->last / 8);
    unsigned before = (unsigned char)text[first] & ~(0xffu >> range->first % 8);
    unsigned behind = (unsigned char)text[last] & (0x7fu >> range->last % 8);
    return count_bytes(text + first, last - first + 1) - (unsigned)__builtin_popcount(before) -
           (unsigned)__builtin_popcount(behind);
}

/* [start end [BYTE|BIT]] from argument 2 on. */
static bool parse_count_range(struct call *call, size_t len, struct bit_range *range) {
    int64_t start = 0, end = -1;
    bool bits;
    if (too_many(call, 5)) {
        return false;
    }
    if (call->argc > 2 && (!args_i64(call, 2, &start) || !args_i64(call, 3, &end))) {
        return false;
    }
    if (call->argc > 2 && start < 0 && end < 0 && start > end) {
        *range = (struct bit_range){0, -1}; /* whatever the unit says, as Redis has it */
        return true;
    }
    if (!parse_unit(call, 4, &bits)) {
        return false;
    }
    *range = clip_range(start, end, bits, len);
    return true;
}

void bitcount_command(struct call *call) {
    char scratch[STRING_SCRATCH_LEN];
    struct bytes text;
    struct bit_range range;
    bool absent;
    if (!find_text(call, &text, &absent, scratch)) {
        return;
    }
    if (absent) {
        reply_integer(&call->reply, 0); /* whatever the other arguments are, as Redis has it */
    } else if (call->argc == 3) {
        args_syntax_error(call);
    } else if (parse_count_range(call, text.len, &range)) {
        bool none = range.first > range.last;
        reply_integer(&call->reply, none ? 0 : (int64_t)count_range(text.ptr, &range));
    }
}

/* ---- searching ------------------------------------------------------------------------------ */

/* The first bit of that value in the range; -1 when there is none. */
static int64_t find_bit(const char *text, const struct bit_range *range, bool bit) {
    const uint64_t skip = bit ? 0 : UINT64_MAX;
    size_t at = (size_t)(range->first / 8), last = (size_t)(range->last / 8);
    unsigned mask = 0xffu >> range->first % 8;
    for (;;) {
        unsigned wanted = ((unsigned char)text[at] ^ (unsigned)(skip & 0xff)) & mask;
        if (wanted != 0) {
            int64_t found = (int64_t)at * 8 + __builtin_clz(wanted) - 24;
            return found <= range->last ? found : -1;
        }
        at++;
        while (at + 8 <= last && load_word(text + at) == skip) {
            at += 8;
        }
        if (at > last) {
            return -1;
        }
        mask = 0xff;
    }
}

/* [start [end [BYTE|BIT]]] from argument 3 on; the unit is looked at before the end. */
static bool parse_search_range(struct call *call, size_t len, struct bit_range *range) {
    int64_t start = 0, end = -1;
    bool bits;
    if (too_many(call, 6) || (call->argc > 3 && !args_i64(call, 3, &start)) ||
        !parse_unit(call, 5, &bits) || (call->argc > 4 && !args_i64(call, 4, &end))) {
        return false;
    }
    *range = clip_range(start, end, bits, len);
    return true;
}

void bitpos_command(struct call *call) {
    char scratch[STRING_SCRATCH_LEN];
    struct bytes text;
    struct bit_range range;
    bool absent;
    int64_t bit;
    if (!args_i64(call, 2, &bit)) {
        return;
    }
    if (bit != 0 && bit != 1) {
        reply_error(&call->reply, "ERR The bit argument must be 1 or 0.");
        return;
    }
    if (!find_text(call, &text, &absent, scratch)) {
        return;
    }
    if (absent) {
        reply_integer(&call->reply, bit ? -1 : 0);
        return;
    }
    if (!parse_search_range(call, text.len, &range)) {
        return;
    }
    bool none = range.first > range.last;
    int64_t found = none ? -1 : find_bit(text.ptr, &range, bit);
    if (found < 0 && !none && !bit && call->argc < 5) {
        found = (int64_t)text.len * 8; /* no end was given: the zeros behind the string count */
    }
    reply_integer(&call->reply, found);
}

/* ---- BITOP ---------------------------------------------------------------------------------- */

enum bit_op { BIT_AND, BIT_OR, BIT_XOR, BIT_NOT };

static bool parse_op(struct call *call, enum bit_op *op) {
    static const char *const words[] = {"AND", "OR", "XOR", "NOT"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (args_is(call, 1, words[i])) {
            *op = (enum bit_op)i;
            return true;
        }
    }
    args_syntax_error(call);
    return false;
}

/* The length of the longest source. False: one is of another type, which was replied. */
static bool longest_source(struct call *call, size_t *len) {
    *len = 0;
    for (size_t i = 3; i < call->argc; i++) {
        struct entry e;
        enum lookup found = lookup_typed(call, i, VALUE_STRING, &e);
        if (found == LOOKUP_REFUSED) {
            return false;
        }
        size_t source_len = found == LOOKUP_FOUND ? string_len(&e.value) : 0;
        *len = source_len > *len ? source_len : *len;
    }
    return true;
}

static inline uint64_t combine_word(enum bit_op op, uint64_t a, uint64_t b) {
    return op == BIT_AND ? a & b : op == BIT_OR ? a | b : a ^ b;
}

/* out = out op source, for the bytes both have. */
static void combine(enum bit_op op, char *out, struct bytes source) {
    size_t at = 0;
    for (; at + 8 <= source.len; at += 8) {
        uint64_t word = combine_word(op, load_word(out + at), load_word(source.ptr + at));
        memcpy(out + at, &word, sizeof(word));
    }
    for (; at < source.len; at++) {
        out[at] = (char)combine_word(op, (unsigned char)out[at], (unsigned char)source.ptr[at]);
    }
}

static void invert(char *out, size_t len) {
    size_t at = 0;
    for (; at + 8 <= len; at += 8) {
        uint64_t word = ~load_word(out + at);
        memcpy(out + at, &word, sizeof(word));
    }
    for (; at < len; at++) {
        out[at] = (char)~(unsigned char)out[at];
    }
}

/* Fill out, len bytes long, from the sources. */
static void compute(struct call *call, enum bit_op op, char *out, size_t len) {
    char scratch[STRING_SCRATCH_LEN];
    for (size_t i = 3; i < call->argc; i++) {
        struct entry e;
        bool found = lookup_key(call, i, DB_NO_TOUCH, &e);
        struct bytes text = found ? string_text(&e.value, scratch) : BYTES("", 0);
        if (i == 3) {
            memcpy(out, text.ptr, text.len);
            memset(out + text.len, 0, len - text.len);
        } else {
            combine(op, out, text);
            if (op == BIT_AND) {
                memset(out + text.len, 0, len - text.len);
            }
        }
    }
    if (op == BIT_NOT) {
        invert(out, len);
    }
}

/* Put the result, which is ACCOUNT_OTHER's, under the destination; takes it over. */
static enum status store_result(struct call *call, char *result, size_t len) {
    struct value_image image;
    struct entry e;
    char *owned = result;
    account_move(ACCOUNT_OTHER, ACCOUNT_TAGS, owned);
    enum status st =
        string_image(BYTES(result, len), len > STRING_INLINE_MAX ? &owned : NULL, &image);
    if (st == ST_OK) {
        st = lookup_key(call, 2, DB_NO_TOUCH, &e)
                 ? entry_replace(&e, VALUE_STRING, &image, DB_NO_EXPIRY)
                 : db_add(call_db(call), call->argv[2], lookup_hash(call, 2), VALUE_STRING, &image,
                          DB_NO_EXPIRY, &e);
        if (st != ST_OK) {
            value_image_discard(VALUE_STRING, &image);
        }
    }
    free(owned);
    return st;
}

static void delete_destination(struct call *call) {
    struct entry e;
    if (lookup_key(call, 2, DB_NO_TOUCH, &e)) {
        entry_delete(&e);
        call_dirty(call, 1);
    }
    reply_integer(&call->reply, 0);
}

void bitop_command(struct call *call) {
    enum bit_op op;
    size_t len;
    if (!parse_op(call, &op)) {
        return;
    }
    if (op == BIT_NOT && call->argc != 4) {
        reply_error(&call->reply, "ERR BITOP NOT must be called with a single source key.");
        return;
    }
    if (!longest_source(call, &len)) {
        return;
    }
    if (len == 0) {
        delete_destination(call);
        return;
    }
    char *result = account_alloc(ACCOUNT_OTHER, len);
    if (result == NULL) {
        args_nomem(call);
        return;
    }
    compute(call, op, result, len);
    enum status st = store_result(call, result, len);
    if (st != ST_OK) {
        args_status_error(call, st);
        return;
    }
    call_dirty(call, 1);
    reply_integer(&call->reply, (int64_t)len);
}
