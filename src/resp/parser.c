/* SPDX-License-Identifier: BSD-3-Clause */
#include "resp/parser.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "inline_priv.h"

#define ARGS_START 64       /* a batch of small commands */
#define ARGS_KEEP_MAX 65536 /* 1 MiB of views is kept between batches, no more */
#define PARTIAL_START 8     /* arguments of the usual cut command */
#define FAST_DIGITS 7       /* lengths up to 9,999,999 skip the general line search */
#define BIG_MARK SIZE_MAX   /* offset of an argument that lies in a big bulk */

enum state {
    STATE_IDLE, /* pos is 0: the first byte decides */
    STATE_INLINE,
    STATE_COUNT, /* the "*n" line */
    STATE_BULKS
};

/* What one step of parsing came to. */
enum step { STEP_DONE, STEP_MORE, STEP_BIG, STEP_ERROR, STEP_NOMEM };

/* An argument of a partial: an offset from the start of the command, because the input may move. */
struct span {
    size_t off; /* BIG_MARK: the next of bigs */
    size_t len;
};

struct resp_partial {
    struct span *spans;
    size_t len, cap;
    struct resp_big *bigs;
    size_t bigs_len, bigs_cap;
    size_t bigs_bytes; /* in finished bigs */
    char *fill;        /* the big bulk under way, or NULL */
    size_t fill_len, fill_cap, fill_need;
};

static_assert(sizeof(struct resp_parser) <= 64, "an idle connection's parser is one cache line");

/* ---- vectors ---- */

/* Make room for one more element of a doubling vector. */
static bool grow(void **v, size_t *cap, size_t elem_size, size_t start) {
    size_t more = *cap == 0 ? start : *cap * 2;
    void *moved = realloc(*v, more * elem_size);
    if (moved == NULL) {
        return false;
    }
    *v = moved;
    *cap = more;
    return true;
}

static NOINLINE bool grow_args(struct resp_args *args) {
    void *v = args->v;
    bool ok = grow(&v, &args->cap, sizeof(*args->v), ARGS_START);
    args->v = v;
    return ok;
}

static ALWAYS_INLINE bool push_arg(struct resp_args *args, const char *ptr, size_t len) {
    if (UNLIKELY(args->len == args->cap) && !grow_args(args)) {
        return false;
    }
    args->v[args->len++] = BYTES(ptr, len);
    return true;
}

static bool push_big(struct resp_big **bigs, size_t *len, size_t *cap, struct resp_big big) {
    if (*len == *cap) {
        void *v = *bigs;
        if (!grow(&v, cap, sizeof(big), 4)) {
            return false;
        }
        *bigs = v;
    }
    (*bigs)[(*len)++] = big;
    return true;
}

static bool push_span(struct resp_partial *part, size_t off, size_t len) {
    if (part->len == part->cap) {
        void *v = part->spans;
        if (!grow(&v, &part->cap, sizeof(*part->spans), PARTIAL_START)) {
            return false;
        }
        part->spans = v;
    }
    part->spans[part->len++] = (struct span){off, len};
    return true;
}

/* ---- the partial ---- */

static void partial_destroy(struct resp_partial *part) {
    if (part == NULL) {
        return;
    }
    for (size_t i = 0; i < part->bigs_len; i++) {
        free(part->bigs[i].ptr);
    }
    free(part->fill);
    free(part->bigs);
    free(part->spans);
    free(part);
}

/* Turn the arguments from args->v[first] on into offsets, and take them off args. */
static bool partial_create(struct resp_parser *p, const char *in, struct resp_args *args,
                           size_t first) {
    struct resp_partial *part = calloc(1, sizeof(*part));
    if (part == NULL) {
        return false;
    }
    for (size_t i = first; i < args->len; i++) {
        if (!push_span(part, (size_t)(args->v[i].ptr - in), args->v[i].len)) {
            partial_destroy(part);
            return false;
        }
    }
    args->len = first;
    p->partial = part;
    return true;
}

/* Turn a partial's offsets into arguments; its big bulks go over to args. Nothing changes hands
 * unless there is memory for all. */
static bool partial_finish(struct resp_parser *p, const char *in, struct resp_args *args) {
    struct resp_partial *part = p->partial;
    size_t first = args->len;
    size_t first_big = args->bigs_len;
    size_t big = 0;
    for (size_t i = 0; i < part->len; i++) {
        const char *ptr;
        if (part->spans[i].off == BIG_MARK) {
            ptr = part->bigs[big].ptr;
            struct resp_big moved = {first + i, part->bigs[big++].ptr};
            if (!push_big(&args->bigs, &args->bigs_len, &args->bigs_cap, moved)) {
                goto undo;
            }
        } else {
            ptr = in + part->spans[i].off;
        }
        if (!push_arg(args, ptr, part->spans[i].len)) {
            goto undo;
        }
    }
    part->bigs_len = 0;
    partial_destroy(part);
    p->partial = NULL;
    return true;
undo:
    args->len = first;
    args->bigs_len = first_big;
    return false;
}

/* ---- big bulks ---- */

/* Room behind what arrived: at least one byte while any is missing. */
static bool fill_grow(struct resp_partial *part, size_t want) {
    size_t cap = part->fill_cap == 0 ? RESP_BIG_START : part->fill_cap * 2;
    if (part->fill_len >= RESP_BIG_TRUSTED) {
        cap =
            part->fill_need; /* OS pages are touched as the rest arrives, and nothing is copied again */
    }
    cap = cap < want ? want : cap;
    cap = cap > part->fill_need ? part->fill_need : cap;
    if (cap <= part->fill_cap) {
        return true;
    }
    char *moved = realloc(part->fill, cap);
    if (moved == NULL) {
        return false;
    }
    part->fill = moved;
    part->fill_cap = cap;
    return true;
}

/* Move what the input has of the big bulk at p->pos into its own memory; *taken bytes. */
static bool fill_from_input(struct resp_parser *p, const char *in, size_t len, size_t *taken) {
    struct resp_partial *part = p->partial;
    size_t n = part->fill_need - part->fill_len;
    n = n > len - p->pos ? len - p->pos : n;
    *taken = n;
    if (part->fill_cap - part->fill_len < n || part->fill == NULL) {
        if (!fill_grow(part, part->fill_len + n)) {
            return false;
        }
    }
    memcpy(part->fill + part->fill_len, in + p->pos, n);
    part->fill_len += n;
    return true;
}

/* The big bulk at p->pos, of p->bulk_len bytes, is not complete in the input: begin it or go on. */
static enum step parse_big(struct resp_parser *p, const char *in, size_t len,
                           struct resp_args *args, size_t first) {
    if (p->partial == NULL && !partial_create(p, in, args, first)) {
        return STEP_NOMEM;
    }
    struct resp_partial *part = p->partial;
    if (part->fill == NULL) {
        part->fill_need = (size_t)p->bulk_len + 2;
    }
    size_t taken;
    if (!fill_from_input(p, in, len, &taken)) {
        return STEP_NOMEM;
    }
    if (part->fill_len < part->fill_need) {
        return STEP_BIG;
    }
    struct resp_big done = {part->len, part->fill};
    if (!push_big(&part->bigs, &part->bigs_len, &part->bigs_cap, done)) {
        return STEP_NOMEM;
    }
    part->bigs_bytes += part->fill_need;
    part->fill = NULL;
    part->fill_len = part->fill_cap = part->fill_need = 0;
    p->pos += taken;
    return push_span(part, BIG_MARK, (size_t)p->bulk_len) ? STEP_DONE : STEP_NOMEM;
}

/* ---- lines ---- */

static enum step protocol_error(struct resp_result *out, const char *what) {
    snprintf(out->error, sizeof(out->error), "Protocol error: %s", what);
    return STEP_ERROR;
}

/* Find the end of the line at p->pos; *end is the offset of the end character. */
static enum step find_line(struct resp_parser *p, const char *in, size_t len, char end_char,
                           const char *too_big, size_t *end, struct resp_result *out) {
    size_t from = p->scanned > p->pos ? p->scanned : p->pos;
    const char *at = from < len ? memchr(in + from, end_char, len - from) : NULL;
    size_t stop = at != NULL ? (size_t)(at - in) : len;
    p->scanned = stop;
    if (stop - p->pos > RESP_MAX_LINE) {
        return protocol_error(out, too_big);
    }
    *end = stop;
    return at != NULL ? STEP_DONE : STEP_MORE;
}

/* "<type><digits>CRLF" at *pos, the form every client sends. False: look closer. */
static ALWAYS_INLINE bool fast_length(const char *in, size_t len, size_t *pos, char type,
                                      uint32_t *v) {
    const char *q = in + *pos;
    const char *end = in + len;
    if (end - q < 4 || *q != type) {
        return false;
    }
    uint32_t digit = (uint32_t)(unsigned char)*++q - '0';
    if (digit > 9) {
        return false;
    }
    uint32_t n = digit;
    if (*++q != '\r') {
        if (n == 0) {
            return false;
        }
        const char *last = end - q > FAST_DIGITS ? q + FAST_DIGITS : end - 1;
        while (q < last && (digit = (uint32_t)(unsigned char)*q - '0') <= 9) {
            n = n * 10 + digit;
            q++;
        }
        if (q >= last || *q != '\r') {
            return false;
        }
    }
    *v = n;
    *pos = (size_t)(q - in) + 2;
    return true;
}

/* The line at p->pos as a length: everything the fast way leaves over. On STEP_DONE p->pos is
 * behind the line, *ok tells whether it held a number. */
static NOINLINE enum step slow_length(struct resp_parser *p, const char *in, size_t len, char type,
                                      const char *too_big, int64_t *v, bool *ok,
                                      struct resp_result *out) {
    size_t end;
    enum step step = find_line(p, in, len, '\r', too_big, &end, out);
    if (step != STEP_DONE) {
        return step;
    }
    if (end + 1 >= len) {
        return STEP_MORE;
    }
    if (in[p->pos] != type) {
        char c = in[p->pos];
        c = c == '\0' || c == '\r' || c == '\n' ? ' ' : c;
        snprintf(out->error, sizeof(out->error), "Protocol error: expected '$', got '%c'", c);
        return STEP_ERROR;
    }
    *ok = number_parse_i64(BYTES(in + p->pos + 1, end - p->pos - 1), v);
    p->pos = end + 2;
    return STEP_DONE;
}

/* ---- multibulk ---- */

/* "*n": n arguments follow. p->left is 0 for an empty command. */
static enum step parse_count(struct resp_parser *p, const char *in, size_t len,
                             const struct resp_limits *limits, struct resp_result *out) {
    uint32_t small;
    int64_t count;
    if (fast_length(in, len, &p->pos, '*', &small)) {
        count = small;
    } else {
        bool ok;
        enum step step =
            slow_length(p, in, len, '*', "too big mbulk count string", &count, &ok, out);
        if (step != STEP_DONE) {
            return step;
        }
        if (!ok) {
            return protocol_error(out, "invalid multibulk length");
        }
    }
    if (count > (int64_t)limits->max_multibulk) {
        return protocol_error(out, "invalid multibulk length");
    }
    if (count > RESP_UNAUTH_MULTIBULK && limits->unauthenticated) {
        return protocol_error(out, "unauthenticated multibulk length");
    }
    p->left = count > 0 ? (uint32_t)count : 0;
    p->bulk_len = -1;
    p->state = STATE_BULKS;
    return STEP_DONE;
}

/* "$n": a bulk of n bytes follows. */
static ALWAYS_INLINE enum step parse_bulk_header(struct resp_parser *p, const char *in, size_t len,
                                                 const struct resp_limits *limits,
                                                 struct resp_result *out) {
    uint32_t small;
    int64_t bulk_len;
    if (LIKELY(fast_length(in, len, &p->pos, '$', &small))) {
        bulk_len = small;
    } else {
        bool ok;
        enum step step =
            slow_length(p, in, len, '$', "too big bulk count string", &bulk_len, &ok, out);
        if (step != STEP_DONE) {
            return step;
        }
        if (!ok || bulk_len < 0) {
            return protocol_error(out, "invalid bulk length");
        }
    }
    if ((uint64_t)bulk_len > limits->max_bulk_len) {
        return protocol_error(out, "invalid bulk length");
    }
    if (UNLIKELY(limits->unauthenticated) && bulk_len > RESP_UNAUTH_BULK) {
        return protocol_error(out, "unauthenticated bulk length");
    }
    p->bulk_len = bulk_len;
    return STEP_DONE;
}

/* The bulks of one command: the hot loop. */
static enum step parse_bulks(struct resp_parser *p, char *in, size_t len,
                             const struct resp_limits *limits, struct resp_args *args,
                             struct resp_result *out) {
    size_t first = args->len;
    while (p->left > 0) {
        if (p->bulk_len < 0) {
            enum step step = parse_bulk_header(p, in, len, limits, out);
            if (UNLIKELY(step != STEP_DONE)) {
                return step;
            }
        }
        size_t bulk_len = (size_t)p->bulk_len;
        bool filling = p->partial != NULL && p->partial->fill != NULL;
        if (UNLIKELY(filling || len - p->pos < bulk_len + 2)) {
            if (bulk_len <= RESP_BIG_BULK) {
                return STEP_MORE;
            }
            enum step step = parse_big(p, in, len, args, first);
            if (step != STEP_DONE) {
                return step;
            }
        } else {
            if (UNLIKELY(p->partial != NULL)) {
                if (!push_span(p->partial, p->pos, bulk_len)) {
                    return STEP_NOMEM;
                }
            } else if (UNLIKELY(!push_arg(args, in + p->pos, bulk_len))) {
                return STEP_NOMEM;
            }
            p->pos += bulk_len + 2;
        }
        p->bulk_len = -1;
        p->left--;
    }
    return STEP_DONE;
}

/* ---- inline ---- */

static enum step parse_inline(struct resp_parser *p, char *in, size_t len, struct resp_args *args,
                              struct resp_result *out) {
    size_t end;
    enum step step = find_line(p, in, len, '\n', "too big inline request", &end, out);
    if (step != STEP_DONE) {
        return step;
    }
    size_t line_len = end > 0 && in[end - 1] == '\r' ? end - 1 : end;
    struct inline_line line = {in, in + line_len};
    struct bytes word;
    for (;;) {
        switch (inline_next(&line, &word)) {
        case INLINE_WORD:
            if (!push_arg(args, word.ptr, word.len)) {
                return STEP_NOMEM;
            }
            break;
        case INLINE_END:
            p->pos = end + 1;
            return STEP_DONE;
        case INLINE_UNBALANCED:
            return protocol_error(out, "unbalanced quotes in request");
        }
    }
}

/* ---- public ---- */

/* One command from its start or from where it stopped. */
static ALWAYS_INLINE enum step parse_command(struct resp_parser *p, char *in, size_t len,
                                             const struct resp_limits *limits,
                                             struct resp_args *args, struct resp_result *out) {
    if (p->state == STATE_IDLE) {
        if (len == 0) {
            return STEP_MORE;
        }
        p->state = in[0] == '*' ? STATE_COUNT : STATE_INLINE;
    }
    if (p->state == STATE_INLINE) {
        return parse_inline(p, in, len, args, out);
    }
    if (p->state == STATE_COUNT) {
        enum step step = parse_count(p, in, len, limits, out);
        if (step != STEP_DONE) {
            return step;
        }
    }
    return parse_bulks(p, in, len, limits, args, out);
}

/* A command stopped half-way: remember its arguments as offsets. */
static enum resp_event suspend(struct resp_parser *p, const char *in, struct resp_args *args,
                               size_t first, enum step step, struct resp_result *out) {
    if (step == STEP_MORE || step == STEP_BIG) {
        if (args->len > first && !partial_create(p, in, args, first)) {
            step = STEP_NOMEM;
        }
    }
    args->len = first;
    out->keep = p->pos;
    switch (step) {
    case STEP_MORE:
        return RESP_NEED_MORE;
    case STEP_BIG:
        return RESP_BIG;
    case STEP_ERROR:
        return RESP_ERROR;
    default:
        return RESP_NOMEM;
    }
}

enum resp_event resp_parse(struct resp_parser *p, char *in, size_t len,
                           const struct resp_limits *limits, struct resp_args *args,
                           struct resp_result *out) {
    size_t first = args->len;
    out->consumed = 0;
    for (;;) {
        enum step step = parse_command(p, in, len, limits, args, out);
        if (UNLIKELY(step != STEP_DONE)) {
            return suspend(p, in, args, first, step, out);
        }
        if (UNLIKELY(p->partial != NULL) && !partial_finish(p, in, args)) {
            return RESP_NOMEM;
        }
        size_t used = p->pos;
        p->pos = 0;
        p->scanned = 0;
        p->state = STATE_IDLE;
        out->consumed += used;
        if (LIKELY(args->len > first)) {
            out->first = first;
            out->argc = args->len - first;
            return RESP_COMMAND;
        }
        in += used; /* an empty command: not worth a word */
        len -= used;
    }
}

void resp_parser_deinit(struct resp_parser *p) {
    partial_destroy(p->partial);
    *p = (struct resp_parser){0};
}

size_t resp_parser_memory(const struct resp_parser *p) {
    const struct resp_partial *part = p->partial;
    if (part == NULL) {
        return 0;
    }
    return sizeof(*part) + part->cap * sizeof(*part->spans) + part->bigs_cap * sizeof(*part->bigs) +
           part->bigs_bytes + part->fill_cap;
}

size_t resp_big_missing(const struct resp_parser *p) {
    const struct resp_partial *part = p->partial;
    return part != NULL ? part->fill_need - part->fill_len : 0;
}

char *resp_big_room(struct resp_parser *p, size_t *room) {
    struct resp_partial *part = p->partial;
    *room = 0;
    if (resp_big_missing(p) == 0) {
        return NULL;
    }
    if (part->fill_len == part->fill_cap && !fill_grow(part, part->fill_len + 1)) {
        return NULL;
    }
    *room = part->fill_cap - part->fill_len;
    return part->fill + part->fill_len;
}

void resp_big_commit(struct resp_parser *p, size_t n) {
    assert(p->partial != NULL && n <= p->partial->fill_cap - p->partial->fill_len);
    p->partial->fill_len += n;
}

char *resp_args_steal(struct resp_args *args, struct bytes arg) {
    for (size_t i = 0; i < args->bigs_len; i++) {
        size_t at = args->steal_idx + i;
        at = at >= args->bigs_len ? at - args->bigs_len : at;
        char *ptr = args->bigs[at].ptr;
        if (ptr != NULL && ptr == arg.ptr) {
            args->bigs[at].ptr = NULL;
            args->steal_idx = at + 1 < args->bigs_len ? at + 1 : 0;
            return ptr;
        }
    }
    return NULL;
}

void resp_args_clear(struct resp_args *args) {
    for (size_t i = 0; i < args->bigs_len; i++) {
        free(args->bigs[i].ptr);
    }
    args->bigs_len = 0;
    args->steal_idx = 0;
    args->len = 0;
    if (UNLIKELY(args->cap > ARGS_KEEP_MAX)) {
        resp_args_deinit(args);
    }
}

void resp_args_deinit(struct resp_args *args) {
    for (size_t i = 0; i < args->bigs_len; i++) {
        free(args->bigs[i].ptr);
    }
    free(args->bigs);
    free(args->v);
    *args = (struct resp_args){0};
}
