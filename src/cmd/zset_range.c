/* SPDX-License-Identifier: BSD-3-Clause */
/* Members between two ranks, scores or members. Whatever the bounds are, they become a run of ranks
 * first; counting, replying, storing and removing are the same from there. */
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "cmd/args.h"
#include "handlers_priv.h"
#include "zset_priv.h"

enum range_by { BY_RANK, BY_SCORE, BY_LEX, BY_ANY /* the options say */ };

struct range {
    enum range_by by;
    bool reverse;
    bool with_scores;
    int64_t offset, limit; /* of LIMIT; limit below 0: all */
    int64_t start, stop;   /* BY_RANK, negative ones from the end */
    struct zset_score_bound min_score, max_score;
    struct zset_lex_bound min_lex, max_lex;
};

/* Ranks first .. first + count - 1, in the order of scores even when the reply is reversed. */
struct run {
    uint64_t first, count;
};

/* ---- bounds --------------------------------------------------------------------------------- */

/* As strtod reads the argument up to a NUL: blanks in front, nothing at all (0) and what is beyond a
 * double's range (infinity, 0) are taken, unlike in scores. */
static bool parse_loose_double(struct bytes b, double *out) {
    char text[NUMBER_REAL_MAX_LEN], *end;
    if (number_parse_double(b, out)) {
        return true;
    }
    if (b.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, b.len > 0 ? b.ptr : "", b.len);
    text[b.len] = '\0';
    *out = strtod(text, &end);
    return *end == '\0' && !isnan(*out);
}

static bool parse_score_bound(struct bytes b, struct zset_score_bound *out) {
    int64_t n;
    out->exclusive = b.len > 0 && b.ptr[0] == '(';
    b = BYTES(b.ptr + out->exclusive, b.len - out->exclusive);
    if (number_parse_i64(b, &n)) {
        out->score = (double)n;
        return true;
    }
    return parse_loose_double(b, &out->score);
}

static bool parse_lex_bound(struct bytes b, struct zset_lex_bound *out) {
    *out = (struct zset_lex_bound){.kind = ZSET_LEX_MEMBER};
    if (b.len == 0) {
        return false;
    }
    bool alone = b.len == 1 || b.ptr[1] == '\0';
    switch (b.ptr[0]) {
    case '-':
        out->kind = ZSET_LEX_MIN;
        return alone;
    case '+':
        out->kind = ZSET_LEX_MAX;
        return alone;
    case '(':
        out->exclusive = true;
        break;
    case '[':
        break;
    default:
        return false;
    }
    out->member = BYTES(b.ptr + 1, b.len - 1);
    return true;
}

static bool parse_scores(struct call *call, size_t min, size_t max, struct range *r) {
    if (parse_score_bound(call->argv[min], &r->min_score) &&
        parse_score_bound(call->argv[max], &r->max_score)) {
        return true;
    }
    reply_error(&call->reply, "ERR min or max is not a float");
    return false;
}

static bool parse_members(struct call *call, size_t min, size_t max, struct range *r) {
    if (parse_lex_bound(call->argv[min], &r->min_lex) &&
        parse_lex_bound(call->argv[max], &r->max_lex)) {
        return true;
    }
    reply_error(&call->reply, "ERR min or max not valid string range item");
    return false;
}

/* The two bounds at arguments i and i + 1: the larger comes first when scores or members are
 * reversed. */
static bool parse_bounds(struct call *call, size_t i, struct range *r) {
    size_t min = i + r->reverse, max = i + !r->reverse;
    switch (r->by) {
    case BY_SCORE:
        return parse_scores(call, min, max, r);
    case BY_LEX:
        return parse_members(call, min, max, r);
    default:
        return args_i64(call, i, &r->start) && args_i64(call, i + 1, &r->stop);
    }
}

/* ---- from bounds to ranks ------------------------------------------------------------------- */

static struct run run_of_ranks(const struct range *r, uint64_t size) {
    int64_t n = (int64_t)size;
    int64_t start = r->start < 0 ? r->start + n : r->start;
    int64_t stop = r->stop < 0 ? r->stop + n : r->stop;
    start = start < 0 ? 0 : start;
    stop = stop >= n ? n - 1 : stop;
    if (start > stop) {
        return (struct run){0, 0};
    }
    int64_t first = r->reverse ? n - 1 - stop : start;
    return (struct run){(uint64_t)first, (uint64_t)(stop - start) + 1};
}

/* Drop `offset` entries where the reply begins and what exceeds `limit` where it ends. */
static struct run run_limited(const struct range *r, struct run run) {
    if (r->offset < 0 || (uint64_t)r->offset >= run.count) {
        return (struct run){0, 0};
    }
    uint64_t left = run.count - (uint64_t)r->offset;
    uint64_t count = r->limit >= 0 && (uint64_t)r->limit < left ? (uint64_t)r->limit : left;
    run.first += r->reverse ? left - count : (uint64_t)r->offset;
    run.count = count;
    return run;
}

static struct run run_of(const struct range *r, const struct value *v) {
    struct run run;
    switch (r->by) {
    case BY_SCORE:
        zset_range_by_score(v, &r->min_score, &r->max_score, &run.first, &run.count);
        break;
    case BY_LEX:
        zset_range_by_lex(v, &r->min_lex, &r->max_lex, &run.first, &run.count);
        break;
    default:
        return run_of_ranks(r, zset_count(v));
    }
    return run_limited(r, run);
}

/* ---- ZRANGE and its relatives --------------------------------------------------------------- */

/* What the options may choose, and where they begin. */
struct range_form {
    enum range_by by;
    bool reverse; /* fixed; REV is an option of BY_ANY only */
    bool store;   /* ZRANGESTORE: key 2 is the source, no WITHSCORES */
};

/* One option at argument i; how many arguments it took, 0 with the error replied. */
static size_t parse_option(struct call *call, size_t i, const struct range_form *form,
                           struct range *r) {
    bool free_form = form->by == BY_ANY;
    if (!form->store && args_is(call, i, "WITHSCORES")) {
        r->with_scores = true;
    } else if (args_is(call, i, "LIMIT") && i + 2 < call->argc) {
        return args_i64(call, i + 1, &r->offset) && args_i64(call, i + 2, &r->limit) ? 3 : 0;
    } else if (free_form && !r->reverse && args_is(call, i, "REV")) {
        r->reverse = true;
    } else if (free_form && r->by == BY_ANY && args_is(call, i, "BYLEX")) {
        r->by = BY_LEX;
    } else if (free_form && r->by == BY_ANY && args_is(call, i, "BYSCORE")) {
        r->by = BY_SCORE;
    } else {
        args_syntax_error(call);
        return 0;
    }
    return 1;
}

static bool parse_range(struct call *call, const struct range_form *form, struct range *r) {
    size_t bounds = form->store ? 3 : 2;
    *r = (struct range){.by = form->by, .reverse = form->reverse, .limit = -1};
    for (size_t i = bounds + 2, took; i < call->argc; i += took) {
        took = parse_option(call, i, form, r);
        if (took == 0) {
            return false;
        }
    }
    if (r->by == BY_ANY) {
        r->by = BY_RANK;
    }
    if (r->limit != -1 && r->by == BY_RANK) {
        reply_error(&call->reply, "ERR syntax error, LIMIT is only supported in combination with "
                                  "either BYSCORE or BYLEX");
        return false;
    }
    if (r->with_scores && r->by == BY_LEX) {
        reply_error(&call->reply,
                    "ERR syntax error, WITHSCORES not supported in combination with BYLEX");
        return false;
    }
    return parse_bounds(call, bounds, r);
}

/* Begin a walk over the run in the reply's direction. */
static void walk(struct zset_iter *it, const struct value *v, struct run run, bool reverse) {
    zset_iter_init(it, v, reverse ? run.first + run.count - 1 : run.first, reverse);
}

static size_t walk_next(struct zset_iter *it, struct zset_entry *batch, uint64_t left) {
    return left == 0 ? 0 : zset_fetch(it, batch, left < ZSET_BATCH ? (size_t)left : ZSET_BATCH);
}

static void reply_run(struct call *call, const struct value *v, struct run run,
                      const struct range *r) {
    struct zset_entry batch[ZSET_BATCH];
    struct zset_iter it;
    size_t got;
    zset_reply_header(&call->reply, run.count, r->with_scores);
    walk(&it, v, run, r->reverse);
    for (uint64_t left = run.count; (got = walk_next(&it, batch, left)) > 0; left -= got) {
        for (size_t i = 0; i < got; i++) {
            zset_reply_entry(&call->reply, &batch[i], r->with_scores);
        }
        if (call->reply.out->failed) {
            return;
        }
    }
}

static void reply_range(struct call *call, const struct range_form *form) {
    struct range r;
    struct entry e;
    if (!parse_range(call, form, &r)) {
        return;
    }
    enum lookup found = zset_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    struct run run = found == LOOKUP_FOUND ? run_of(&r, &e.value) : (struct run){0, 0};
    if (run.count == 0) {
        reply_array(&call->reply, 0);
    } else {
        reply_run(call, &e.value, run, &r);
    }
}

void zrange_command(struct call *call) {
    reply_range(call, &(struct range_form){.by = BY_ANY});
}

void zrevrange_command(struct call *call) {
    reply_range(call, &(struct range_form){.by = BY_RANK, .reverse = true});
}

void zrangebyscore_command(struct call *call) {
    reply_range(call, &(struct range_form){.by = BY_SCORE});
}

void zrevrangebyscore_command(struct call *call) {
    reply_range(call, &(struct range_form){.by = BY_SCORE, .reverse = true});
}

void zrangebylex_command(struct call *call) {
    reply_range(call, &(struct range_form){.by = BY_LEX});
}

void zrevrangebylex_command(struct call *call) {
    reply_range(call, &(struct range_form){.by = BY_LEX, .reverse = true});
}

/* ---- ZRANGESTORE ---------------------------------------------------------------------------- */

/* False: memory ran out. */
static bool collect_run(const struct value *v, struct run run, struct zset_result *result) {
    struct zset_entry batch[ZSET_BATCH];
    struct zset_iter it;
    size_t got;
    if (run.count == 0) {
        return true;
    }
    walk(&it, v, run, false);
    for (uint64_t left = run.count; (got = walk_next(&it, batch, left)) > 0; left -= got) {
        for (size_t i = 0; i < got; i++) {
            if (zset_result_add(result, &batch[i]) != ST_OK) {
                return false;
            }
        }
    }
    return true;
}

void zrangestore_command(struct call *call) {
    struct range r;
    struct entry e;
    struct zset_result result = {0};
    if (!parse_range(call, &(struct range_form){.by = BY_ANY, .store = true}, &r)) {
        return;
    }
    enum lookup found = zset_find(call, 2, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_FOUND && !collect_run(&e.value, run_of(&r, &e.value), &result)) {
        args_nomem(call);
    } else {
        zset_result_store(call, 1, &result);
    }
    zset_result_deinit(&result);
}

/* ---- counting ------------------------------------------------------------------------------- */

static void count_range(struct call *call, enum range_by by) {
    struct range r = {.by = by, .limit = -1};
    struct entry e;
    if (!parse_bounds(call, 2, &r)) {
        return;
    }
    enum lookup found = zset_find(call, 1, &e);
    if (found != LOOKUP_REFUSED) {
        reply_integer(&call->reply,
                      found == LOOKUP_FOUND ? (int64_t)run_of(&r, &e.value).count : 0);
    }
}

void zcount_command(struct call *call) {
    count_range(call, BY_SCORE);
}

void zlexcount_command(struct call *call) {
    count_range(call, BY_LEX);
}

/* ---- removing ------------------------------------------------------------------------------- */

static void remove_range(struct call *call, enum range_by by) {
    struct range r = {.by = by, .limit = -1};
    struct entry e;
    if (!parse_bounds(call, 2, &r)) {
        return;
    }
    enum lookup found = zset_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    uint64_t removed = 0;
    if (found == LOOKUP_FOUND) {
        struct run run = run_of(&r, &e.value);
        removed = run.count;
        if (run.count == zset_count(&e.value)) {
            entry_delete(&e);
        } else if (run.count > 0) {
            removed = zset_delete_range(&e.value, run.first, run.count);
        }
    }
    call_dirty(call, removed);
    reply_integer(&call->reply, (int64_t)removed);
}

void zremrangebyrank_command(struct call *call) {
    remove_range(call, BY_RANK);
}

void zremrangebyscore_command(struct call *call) {
    remove_range(call, BY_SCORE);
}

void zremrangebylex_command(struct call *call) {
    remove_range(call, BY_LEX);
}
