/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/scan.h"

#include "base/number.h"
#include "cmd/args.h"

#define DEFAULT_COUNT 10

bool scan_parse(struct call *call, size_t i, enum scan_kind kind, struct scan_options *out) {
    *out = (struct scan_options){.count = DEFAULT_COUNT};
    while (i < call->argc) {
        bool has_value = i + 1 < call->argc;
        if (args_is(call, i, "COUNT") && has_value) {
            int64_t count;
            if (!args_i64(call, i + 1, &count)) {
                return false;
            }
            if (count < 1) {
                args_syntax_error(call);
                return false;
            }
            out->count = (size_t)count;
            i += 2;
        } else if (args_is(call, i, "MATCH") && has_value) {
            out->pattern = call->argv[i + 1];
            out->has_pattern = !bytes_equal(out->pattern, BYTES_LIT("*"));
            i += 2;
        } else if (kind == SCAN_KEYS && args_is(call, i, "TYPE") && has_value) {
            out->has_type = true;
            out->type = call->argv[i + 1];
            i += 2;
        } else if (kind == SCAN_HASH && args_is(call, i, "NOVALUES")) {
            out->no_values = true;
            i += 1;
        } else {
            args_syntax_error(call);
            return false;
        }
    }
    return true;
}

bool scan_matches(const struct scan_options *options, struct bytes name) {
    return !options->has_pattern || bytes_glob_match(options->pattern, name, false);
}

size_t scan_reply_begin(struct reply *r) {
    reply_array(r, 2);
    return r->out->len;
}

/* Cursor and header go in front of the elements once both are known. */
void scan_reply_end(struct reply *r, size_t mark, uint64_t cursor, size_t elements) {
    char digits[NUMBER_I64_MAX_LEN], head_bytes[96];
    struct buf head = {.ptr = head_bytes, .cap = sizeof(head_bytes)};
    struct reply head_reply = {&head, r->proto};
    reply_bulk(&head_reply, BYTES(digits, number_format_u64(digits, cursor)));
    reply_array(&head_reply, elements);
    if (buf_tail(r->out, head.len) != NULL) {
        memmove(r->out->ptr + mark + head.len, r->out->ptr + mark, r->out->len - mark);
        memcpy(r->out->ptr + mark, head.ptr, head.len);
        r->out->len += head.len;
    }
}

void scan_reply_empty(struct reply *r) {
    size_t mark = scan_reply_begin(r);
    scan_reply_end(r, mark, 0, 0);
}
