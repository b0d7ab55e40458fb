/* SPDX-License-Identifier: BSD-3-Clause */
/* LCS: the longest common subsequence of two strings, by the textbook table (Wagner and Fischer,
 * 1974): length[i][j] of the first i bytes of a and the first j of b, walked back from the far
 * corner. */
#include <stdlib.h>

#include "cmd/args.h"
#include "cmd/lookup.h"
#include "handlers_priv.h"
#include "types/string.h"

struct lcs {
    struct bytes a, b;
    uint32_t *length; /* (a.len + 1) x (b.len + 1) */
    bool want_len, want_idx, with_match_len;
    int64_t min_match_len;
};

/* A run of equal bytes, ends inclusive. */
struct lcs_range {
    size_t a_first, a_last, b_first, b_last;
};

static uint32_t *cell(const struct lcs *l, size_t i, size_t j) {
    return &l->length[i * (l->b.len + 1) + j];
}

static bool parse(struct call *call, struct lcs *l) {
    for (size_t i = 3; i < call->argc; i++) {
        if (args_is(call, i, "LEN")) {
            l->want_len = true;
        } else if (args_is(call, i, "IDX")) {
            l->want_idx = true;
        } else if (args_is(call, i, "WITHMATCHLEN")) {
            l->with_match_len = true;
        } else if (args_is(call, i, "MINMATCHLEN") && i + 1 < call->argc) {
            if (!args_i64(call, ++i, &l->min_match_len)) {
                return false;
            }
            l->min_match_len = l->min_match_len < 0 ? 0 : l->min_match_len;
        } else {
            args_syntax_error(call);
            return false;
        }
    }
    if (l->want_len && l->want_idx) {
        reply_error(&call->reply,
                    "ERR If you want both the length and indexes, please just use IDX.");
        return false;
    }
    return true;
}

static bool find_string(struct call *call, size_t i, char *scratch, struct bytes *out) {
    struct entry e;
    *out = BYTES("", 0);
    if (!lookup_key(call, i, DB_TOUCH, &e)) {
        return true;
    }
    if (e.value.type != VALUE_STRING) {
        reply_error(&call->reply, "ERR The specified keys must contain string values");
        return false;
    }
    *out = string_text(&e.value, scratch);
    return true;
}

static void fill_table(const struct lcs *l) {
    for (size_t i = 0; i <= l->a.len; i++) {
        for (size_t j = 0; j <= l->b.len; j++) {
            uint32_t v = 0;
            if (i != 0 && j != 0) {
                uint32_t up = *cell(l, i - 1, j), left = *cell(l, i, j - 1);
                v = l->a.ptr[i - 1] == l->b.ptr[j - 1] ? *cell(l, i - 1, j - 1) + 1
                    : up > left                        ? up
                                                       : left;
            }
            *cell(l, i, j) = v;
        }
    }
}

static void reply_range(struct reply *r, const struct lcs *l, const struct lcs_range *range) {
    reply_array(r, 2 + l->with_match_len);
    reply_array(r, 2);
    reply_integer(r, (int64_t)range->a_first);
    reply_integer(r, (int64_t)range->a_last);
    reply_array(r, 2);
    reply_integer(r, (int64_t)range->b_first);
    reply_integer(r, (int64_t)range->b_last);
    if (l->with_match_len) {
        reply_integer(r, (int64_t)(range->a_last - range->a_first + 1));
    }
}

static size_t emit_range(struct reply *r, const struct lcs *l, const struct lcs_range *range) {
    if ((int64_t)(range->a_last - range->a_first + 1) < l->min_match_len) {
        return 0;
    }
    reply_range(r, l, range);
    return 1;
}

/* Walk back from the far corner: result (may be NULL) gets the subsequence, ranges are replied when
 * asked. */
static size_t walk_back(struct reply *r, const struct lcs *l, char *result) {
    size_t i = l->a.len, j = l->b.len, at = *cell(l, i, j), ranges = 0;
    struct lcs_range range;
    bool open = false;
    while (i > 0 && j > 0) {
        if (l->a.ptr[i - 1] == l->b.ptr[j - 1]) {
            if (result != NULL) {
                result[--at] = l->a.ptr[i - 1];
            }
            if (open && range.a_first == i && range.b_first == j) {
                range.a_first--;
                range.b_first--;
            } else {
                if (open && l->want_idx) {
                    ranges += emit_range(r, l, &range);
                }
                range = (struct lcs_range){i - 1, i - 1, j - 1, j - 1};
                open = true;
            }
            i--;
            j--;
        } else if (*cell(l, i - 1, j) > *cell(l, i, j - 1)) {
            i--;
        } else {
            j--;
        }
    }
    if (open && l->want_idx) {
        ranges += emit_range(r, l, &range);
    }
    return ranges;
}

static void reply_lcs(struct call *call, const struct lcs *l) {
    struct reply *r = &call->reply;
    uint32_t len = *cell(l, l->a.len, l->b.len);
    if (l->want_len) {
        reply_integer(r, len);
    } else if (l->want_idx) {
        reply_map(r, 2);
        reply_bulk_cstr(r, "matches");
        size_t mark = reply_defer(r);
        reply_defer_array(r, mark, walk_back(r, l, NULL));
        reply_bulk_cstr(r, "len");
        reply_integer(r, len);
    } else {
        char *result = malloc((size_t)len + 1);
        if (result == NULL) {
            args_nomem(call);
            return;
        }
        walk_back(r, l, result);
        reply_bulk(r, BYTES(result, len));
        free(result);
    }
}

void lcs_command(struct call *call) {
    struct lcs l = {0};
    char scratch[2][STRING_SCRATCH_LEN];
    if (!find_string(call, 1, scratch[0], &l.a) || !find_string(call, 2, scratch[1], &l.b) ||
        !parse(call, &l)) {
        return;
    }
    size_t cells;
    if (l.a.len >= UINT32_MAX - 1 || l.b.len >= UINT32_MAX - 1) {
        reply_error(&call->reply, "ERR String too long for LCS");
        return;
    }
    if (__builtin_mul_overflow(l.a.len + 1, l.b.len + 1, &cells) ||
        cells > call->cx->config->proto_max_bulk_len / sizeof(uint32_t)) {
        reply_error(&call->reply,
                    "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
        return;
    }
    l.length = malloc(cells * sizeof(uint32_t));
    if (l.length == NULL) {
        args_nomem(call);
        return;
    }
    fill_table(&l);
    reply_lcs(call, &l);
    free(l.length);
}
