/* SPDX-License-Identifier: BSD-3-Clause */
/* BITFIELD: integers of 1 to 64 bits at any bit offset of a string. */
#include "bitmap_priv.h"
#include "cmd/args.h"
#include "handlers_priv.h"
#include "mem/account.h"

/* Bytes that a field of 64 bits can touch. */
#define WINDOW_LEN 9

enum field_action { FIELD_GET, FIELD_SET, FIELD_INCRBY };
enum field_overflow { OVERFLOW_WRAP, OVERFLOW_SAT, OVERFLOW_FAIL };

/* One subcommand. */
struct field_op {
    enum field_action action;
    enum field_overflow overflow;
    bool is_signed;
    unsigned width; /* bits: 1..64 signed, 1..63 unsigned */
    uint64_t offset;
    int64_t operand; /* the value to set, or the increment */
};

struct field_ops {
    struct field_op *list; /* account_alloc'ed */
    size_t count;
    size_t need_len; /* bytes the string must have for the writing ones; 0: all only read */
};

/* ---- parsing -------------------------------------------------------------------------------- */

static bool parse_type(struct call *call, size_t i, struct field_op *op) {
    struct bytes text = call->argv[i];
    int64_t width;
    bool is_signed = text.len > 0 && text.ptr[0] == 'i';
    if (text.len < 2 || (!is_signed && text.ptr[0] != 'u') ||
        !number_parse_i64(BYTES(text.ptr + 1, text.len - 1), &width) || width < 1 ||
        width > (is_signed ? 64 : 63)) {
        reply_error(&call->reply, "ERR Invalid bitfield type. Use something like i16 u8. "
                                  "Note that u64 is not supported but i64 is.");
        return false;
    }
    op->is_signed = is_signed;
    op->width = (unsigned)width;
    return true;
}

static bool parse_overflow(struct call *call, size_t i, enum field_overflow *overflow) {
    static const char *const words[] = {"WRAP", "SAT", "FAIL"};
    for (size_t w = 0; w < ARRAY_LEN(words); w++) {
        if (args_is(call, i, words[w])) {
            *overflow = (enum field_overflow)w;
            return true;
        }
    }
    reply_error(&call->reply, "ERR Invalid OVERFLOW type specified");
    return false;
}

/* The subcommand at argument *i, but OVERFLOW; *i moves behind it. */
static bool parse_op(struct call *call, size_t *i, struct field_op *op) {
    size_t left = call->argc - *i - 1;
    if (args_is(call, *i, "GET") && left >= 2) {
        op->action = FIELD_GET;
    } else if (args_is(call, *i, "SET") && left >= 3) {
        op->action = FIELD_SET;
    } else if (args_is(call, *i, "INCRBY") && left >= 3) {
        op->action = FIELD_INCRBY;
    } else {
        args_syntax_error(call);
        return false;
    }
    if (!parse_type(call, *i + 1, op) || !bitmap_offset(call, *i + 2, op->width, &op->offset) ||
        (op->action != FIELD_GET && !args_i64(call, *i + 3, &op->operand))) {
        return false;
    }
    *i += op->action == FIELD_GET ? 3 : 4;
    return true;
}

static bool parse_into(struct call *call, struct field_ops *ops, bool may_write) {
    enum field_overflow overflow = OVERFLOW_WRAP;
    for (size_t i = 2; i < call->argc;) {
        if (args_is(call, i, "OVERFLOW") && i + 1 < call->argc) {
            if (!parse_overflow(call, i + 1, &overflow)) {
                return false;
            }
            i += 2;
            continue;
        }
        struct field_op *op = &ops->list[ops->count++];
        *op = (struct field_op){.overflow = overflow};
        if (!parse_op(call, &i, op)) {
            return false;
        }
        size_t end = (size_t)((op->offset + op->width + 7) / 8);
        if (op->action != FIELD_GET && end > ops->need_len) {
            ops->need_len = end;
        }
    }
    if (ops->need_len > 0 && !may_write) {
        reply_error(&call->reply, "ERR BITFIELD_RO only supports the GET subcommand");
        return false;
    }
    return true;
}

/* False: the error was replied, nothing is held. */
static bool parse_ops(struct call *call, bool may_write, struct field_ops *ops) {
    *ops = (struct field_ops){
        .list = account_alloc(ACCOUNT_OTHER, (call->argc / 3 + 1) * sizeof(*ops->list))};
    if (ops->list == NULL) {
        args_nomem(call);
        return false;
    }
    if (!parse_into(call, ops, may_write)) {
        account_free(ACCOUNT_OTHER, ops->list);
        return false;
    }
    return true;
}

/* ---- values --------------------------------------------------------------------------------- */

/* The low bits of a word as the field's value: sign-extended or not. */
static int64_t extend(const struct field_op *op, uint64_t bits) {
    unsigned unused = 64 - op->width;
    return op->is_signed ? (int64_t)(bits << unused) >> unused
                         : (int64_t)(bits << unused >> unused);
}

/* a + b as a signed field: <0 below its range, 0 inside, >0 above. A value to be set that lies 2^63
 * and more below the largest counts as above, as Redis has it. */
static int add_signed(const struct field_op *op, int64_t a, int64_t b, int64_t *sum) {
    int64_t max = (int64_t)(UINT64_MAX >> (64 - op->width) >> 1), room;
    if (__builtin_add_overflow(a, b, sum)) {
        return b < 0 ? -1 : 1; /* *sum has wrapped already, as it should */
    }
    if (op->width < 64 && __builtin_sub_overflow(max, a, &room)) {
        return 1;
    }
    return *sum > max ? 1 : *sum < -max - 1 ? -1 : 0;
}

/* The same, unsigned: a is a field's value, or any 64 bits when b is 0. */
static int add_unsigned(const struct field_op *op, uint64_t a, int64_t b, int64_t *sum) {
    uint64_t max = UINT64_MAX >> (64 - op->width);
    *sum = (int64_t)(a + (uint64_t)b);
    if (b < 0) {
        return -(uint64_t)b > a ? -1 : 0;
    }
    return a > max || (uint64_t)b > max - a ? 1 : 0;
}

/* Apply SET or INCRBY to the old value. False: out of range and OVERFLOW FAIL. */
static bool new_value(const struct field_op *op, int64_t old, int64_t *value) {
    int64_t a = op->action == FIELD_SET ? op->operand : old;
    int64_t b = op->action == FIELD_SET ? 0 : op->operand;
    int over =
        op->is_signed ? add_signed(op, a, b, value) : add_unsigned(op, (uint64_t)a, b, value);
    if (over == 0) {
        return true;
    }
    if (op->overflow == OVERFLOW_SAT) {
        uint64_t max = UINT64_MAX >> (64 - op->width) >> op->is_signed;
        *value = over > 0 ? (int64_t)max : op->is_signed ? -(int64_t)max - 1 : 0;
    } else {
        *value = extend(op, (uint64_t)*value);
    }
    return op->overflow != OVERFLOW_FAIL;
}

/* ---- windows -------------------------------------------------------------------------------- */

/* The bytes a field lies in, bits numbered as in the string: 64 of them from the first byte on, and
 * those of the ninth byte.
 *
 *   |<------------- head ------------->|<- tail ->|
 *   |..fffffffffffffffffffffffffffffff|fff.......|   offset % 8 is 2, a field f of 64 bits
 */
struct window {
    size_t first, len; /* where in the string, and how many bytes of it are there */
    uint64_t head;
    unsigned tail;
};

static void window_load(struct window *w, const struct field_op *op, struct bytes text) {
    unsigned char bytes[WINDOW_LEN] = {0};
    size_t want = (size_t)((op->offset % 8 + op->width + 7) / 8);
    w->first = (size_t)(op->offset / 8);
    size_t have = w->first < text.len ? text.len - w->first : 0;
    w->len = want < have ? want : have;
    if (w->len > 0) {
        memcpy(bytes, text.ptr + w->first, w->len);
    }
    w->head = 0;
    for (int i = 0; i < WINDOW_LEN - 1; i++) {
        w->head = w->head << 8 | bytes[i];
    }
    w->tail = bytes[WINDOW_LEN - 1];
}

static uint64_t window_get(const struct window *w, const struct field_op *op) {
    unsigned shift = op->offset % 8;
    uint64_t bits = w->head << shift | w->tail >> (8 - shift);
    return bits >> (64 - op->width);
}

static void window_put(struct window *w, const struct field_op *op, uint64_t bits) {
    unsigned shift = op->offset % 8;
    uint64_t mask = UINT64_MAX << (64 - op->width);
    bits <<= 64 - op->width;
    w->head = (w->head & ~(mask >> shift)) | bits >> shift;
    w->tail = (w->tail & ~(unsigned)(mask << (8 - shift))) | (unsigned)(bits << (8 - shift));
}

/* The window's bytes, len of them, as they stand in the string. */
static void window_store(const struct window *w, char out[WINDOW_LEN]) {
    for (int i = 0; i < WINDOW_LEN - 1; i++) {
        out[i] = (char)(w->head >> (56 - 8 * i));
    }
    out[WINDOW_LEN - 1] = (char)w->tail;
}

/* ---- commands ------------------------------------------------------------------------------- */

static void run_get(struct call *call, const struct field_op *op, struct bytes text) {
    struct window w;
    window_load(&w, op, text);
    reply_integer(&call->reply, extend(op, window_get(&w, op)));
}

static enum status run_write(struct call *call, const struct field_op *op, struct value *v) {
    char scratch[STRING_SCRATCH_LEN], bytes[WINDOW_LEN];
    struct window w;
    int64_t value;
    window_load(&w, op, string_text(v, scratch));
    int64_t old = extend(op, window_get(&w, op));
    if (!new_value(op, old, &value)) {
        reply_null(&call->reply);
        return ST_OK;
    }
    reply_integer(&call->reply, op->action == FIELD_SET ? old : value);
    window_put(&w, op, (uint64_t)value);
    window_store(&w, bytes);
    call_dirty(call, 1);
    return string_write(v, w.first, BYTES(bytes, w.len));
}

static void run_reading(struct call *call, const struct field_ops *ops) {
    struct entry e;
    char scratch[STRING_SCRATCH_LEN];
    enum lookup found = lookup_typed(call, 1, VALUE_STRING, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    struct bytes text = found == LOOKUP_FOUND ? string_text(&e.value, scratch) : BYTES("", 0);
    reply_array(&call->reply, ops->count);
    for (size_t i = 0; i < ops->count; i++) {
        run_get(call, &ops->list[i], text);
    }
}

static void run_writing(struct call *call, const struct field_ops *ops) {
    struct entry e;
    size_t mark = call->reply.out->len;
    if (!bitmap_open(call, ops->need_len, &e)) {
        return;
    }
    reply_array(&call->reply, ops->count);
    for (size_t i = 0; i < ops->count; i++) {
        char scratch[STRING_SCRATCH_LEN];
        const struct field_op *op = &ops->list[i];
        enum status st = ST_OK;
        if (op->action == FIELD_GET) {
            run_get(call, op, string_text(&e.value, scratch));
        } else {
            st = run_write(call, op, &e.value);
        }
        if (st != ST_OK) {
            call->reply.out->len = mark;
            args_status_error(call, st);
            return;
        }
    }
}

static void bitfield(struct call *call, bool may_write) {
    struct field_ops ops;
    if (!parse_ops(call, may_write, &ops)) {
        return;
    }
    if (ops.need_len > 0) {
        run_writing(call, &ops);
    } else {
        run_reading(call, &ops);
    }
    account_free(ACCOUNT_OTHER, ops.list);
}

void bitfield_command(struct call *call) {
    bitfield(call, true);
}

void bitfield_ro_command(struct call *call) {
    bitfield(call, false);
}
