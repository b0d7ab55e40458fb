/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on sorted sets, a member at a time. */
#include "types/zset.h"

#include <math.h>

#include "base/number.h"
#include "cmd/args.h"
#include "cmd/block.h"
#include "cmd/scan.h"
#include "handlers_priv.h"
#include "mem/account.h"
#include "sample_priv.h"
#include "zset_priv.h"

/* Scores of one ZADD kept on the stack. */
#define SCORES_FEW 16
/* "-1.7976931348623157e+308" and then some */
#define SCORE_TEXT_MAX 32

/* ---- finding and making --------------------------------------------------------------------- */

/* The set at key 1, made empty when absent. *fresh: it was. False: refused or OOM, replied. */
static bool find_or_add(struct call *call, struct entry *e, bool *fresh) {
    enum lookup found = zset_find(call, 1, e);
    *fresh = found == LOOKUP_ABSENT;
    if (found != LOOKUP_ABSENT) {
        return found == LOOKUP_FOUND;
    }
    struct value_image empty = {.encoding = VALUE_PACKED, .data = {zset_empty, ZSET_EMPTY_LEN}};
    enum status st = db_add(call_db(call), call->argv[1], lookup_hash(call, 1), VALUE_ZSET, &empty,
                            DB_NO_EXPIRY, e);
    if (st != ST_OK) {
        args_status_error(call, st);
    }
    return st == ST_OK;
}

/* A write on e failed before anything was in it: a key made for it goes again. */
static void undo_add(struct entry *e, bool fresh) {
    if (fresh && zset_count(&e->value) == 0) {
        entry_delete(e);
    }
}

/* ---- ZADD, ZINCRBY -------------------------------------------------------------------------- */

enum add_flag {
    ADD_NX = 1 << 0, /* new members only */
    ADD_XX = 1 << 1, /* members that are there only */
    ADD_GT = 1 << 2, /* not to a lower score */
    ADD_LT = 1 << 3, /* not to a higher score */
    ADD_CH = 1 << 4, /* the reply counts changed scores as well */
    ADD_INCR = 1 << 5,
    ADD_CONDITIONS = ADD_NX | ADD_XX | ADD_GT | ADD_LT,
};

/* Read the options; the index of what follows them. */
static size_t parse_add_options(struct call *call, unsigned *flags) {
    static const struct {
        const char *word;
        unsigned flag;
    } options[] = {{"NX", ADD_NX}, {"XX", ADD_XX}, {"GT", ADD_GT},
                   {"LT", ADD_LT}, {"CH", ADD_CH}, {"INCR", ADD_INCR}};
    size_t i = 2;
    *flags = 0;
    for (; i < call->argc; i++) {
        size_t k = 0;
        while (k < ARRAY_LEN(options) && !args_is(call, i, options[k].word)) {
            k++;
        }
        if (k == ARRAY_LEN(options)) {
            break;
        }
        *flags |= options[k].flag;
    }
    return i;
}

static bool check_add_options(struct call *call, unsigned flags, size_t words) {
    if (words == 0 || words % 2 != 0) {
        args_syntax_error(call);
    } else if ((flags & ADD_NX) && (flags & ADD_XX)) {
        reply_error(&call->reply, "ERR XX and NX options at the same time are not compatible");
    } else if (((flags & ADD_GT) != 0) + ((flags & ADD_LT) != 0) + ((flags & ADD_NX) != 0) > 1) {
        reply_error(&call->reply,
                    "ERR GT, LT, and/or NX options at the same time are not compatible");
    } else if ((flags & ADD_INCR) && words > 2) {
        reply_error(&call->reply, "ERR INCR option supports a single increment-element pair");
    } else {
        return true;
    }
    return false;
}

/* Whole numbers, which most scores are, need no strtod: the conversion rounds as it would. */
static bool parse_score(struct call *call, size_t i, double *out) {
    int64_t n;
    if (number_parse_i64(call->argv[i], &n)) {
        *out = (double)n;
        return true;
    }
    return args_double(call, i, out);
}

static bool allowed(unsigned flags, bool there, double old, double score) {
    if (there) {
        return !(flags & ADD_NX) && !((flags & ADD_GT) && score <= old) &&
               !((flags & ADD_LT) && score >= old);
    }
    return !(flags & ADD_XX);
}

struct added {
    uint64_t added, changed; /* members */
};

/* One pair of ZADD without INCR. */
static enum status add_one(struct value *v, struct bytes member, double score, unsigned flags,
                           struct added *sum) {
    bool added;
    double old = 0;
    if (flags & (ADD_CONDITIONS | ADD_CH)) {
        bool there = zset_score(v, member, &old);
        if (!allowed(flags, there, old, score) || (there && old == score)) {
            return ST_OK;
        }
    }
    enum status st = zset_set(v, member, score, &added);
    if (st == ST_OK) {
        sum->added += added;
        sum->changed += !added;
    }
    return st;
}

/* All pairs from argument i on. False: memory ran out half-way, replied; the members added by then
 * stay, and the error tells how many. */
static bool add_pairs(struct call *call, struct entry *e, size_t first, const double *scores,
                      unsigned flags, struct added *sum) {
    size_t pairs = (call->argc - first) / 2;
    for (size_t k = 0; k < pairs; k++) {
        size_t at = first + 2 * k + 1;
        if (k % LOOKUP_GROUP == 0) {
            lookup_prefetch_members(call, &e->value, at, 2);
        }
        if (add_one(&e->value, call->argv[at], scores[k], flags, sum) != ST_OK) {
            reply_errorf(&call->reply, "OOM out of memory, %zu of %zu members were set", k, pairs);
            return false;
        }
    }
    return true;
}

static void after_add(struct call *call, const struct added *sum) {
    call_dirty(call, sum->added + sum->changed);
    if (sum->added > 0) {
        block_signal_key(call->cx, call_db(call), call->argv[1]);
    }
}

static void add(struct call *call, size_t first, const double *scores, unsigned flags) {
    struct entry e;
    bool fresh = false;
    struct added sum = {0, 0};
    if (flags & ADD_XX) { /* makes no key */
        enum lookup found = zset_find(call, 1, &e);
        if (found == LOOKUP_ABSENT) {
            reply_integer(&call->reply, 0);
        }
        if (found != LOOKUP_FOUND) {
            return;
        }
    } else if (!find_or_add(call, &e, &fresh)) {
        return;
    }
    bool whole = add_pairs(call, &e, first, scores, flags, &sum);
    undo_add(&e, fresh);
    after_add(call, &sum);
    if (whole) {
        reply_integer(&call->reply,
                      (int64_t)(flags & ADD_CH ? sum.added + sum.changed : sum.added));
    }
}

/* Add to one member's score; the reply is the new score, or null when a condition forbids it. */
static void increment(struct call *call, double by, struct bytes member, unsigned flags) {
    struct entry e;
    bool fresh;
    double old = 0;
    struct added sum = {0, 0};
    enum lookup found = zset_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    bool there = found == LOOKUP_FOUND && zset_score(&e.value, member, &old);
    double score = there ? old + by : by;
    if (there && !(flags & ADD_NX) && isnan(score)) {
        reply_error(&call->reply, "ERR resulting score is not a number (NaN)");
        return;
    }
    if (!allowed(flags, there, old, score)) {
        reply_null(&call->reply);
        return;
    }
    if (!find_or_add(call, &e, &fresh)) {
        return;
    }
    enum status st = there && old == score ? ST_OK : add_one(&e.value, member, score, 0, &sum);
    if (st != ST_OK) {
        undo_add(&e, fresh);
        args_status_error(call, st);
        return;
    }
    after_add(call, &sum);
    reply_double(&call->reply, score);
}

/* All scores are read before anything is written. */
static void parse_and_add(struct call *call, size_t first, double *scores, unsigned flags) {
    for (size_t i = first; i < call->argc; i += 2) {
        if (!parse_score(call, i, &scores[(i - first) / 2])) {
            return;
        }
    }
    if (flags & ADD_INCR) {
        increment(call, scores[0], call->argv[first + 1], flags);
    } else {
        add(call, first, scores, flags);
    }
}

void zadd_command(struct call *call) {
    unsigned flags;
    double few[SCORES_FEW];
    size_t first = parse_add_options(call, &flags);
    size_t words = call->argc - first;
    if (!check_add_options(call, flags, words)) {
        return;
    }
    double *scores =
        words / 2 <= SCORES_FEW ? few : account_alloc(ACCOUNT_OTHER, words / 2 * sizeof(*scores));
    if (scores == NULL) {
        args_nomem(call);
        return;
    }
    parse_and_add(call, first, scores, flags);
    if (scores != few) {
        account_free(ACCOUNT_OTHER, scores);
    }
}

void zincrby_command(struct call *call) {
    double by;
    if (parse_score(call, 2, &by)) {
        increment(call, by, call->argv[3], 0);
    }
}

/* ---- ZREM ----------------------------------------------------------------------------------- */

void zrem_command(struct call *call) {
    struct entry e;
    uint64_t deleted = 0;
    enum lookup found = zset_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    for (size_t i = 2; found == LOOKUP_FOUND && i < call->argc; i++) {
        if ((i - 2) % LOOKUP_GROUP == 0) {
            lookup_prefetch_members(call, &e.value, i, 1);
        }
        deleted += zset_delete(&e.value, call->argv[i]);
        if (zset_count(&e.value) == 0) {
            entry_delete(&e);
            break;
        }
    }
    call_dirty(call, deleted);
    reply_integer(&call->reply, (int64_t)deleted);
}

/* ---- reading -------------------------------------------------------------------------------- */

void zcard_command(struct call *call) {
    struct entry e;
    enum lookup found = zset_find(call, 1, &e);
    if (found != LOOKUP_REFUSED) {
        reply_integer(&call->reply, found == LOOKUP_FOUND ? (int64_t)zset_count(&e.value) : 0);
    }
}

static void reply_score(struct call *call, enum lookup found, const struct entry *e, size_t i) {
    double score;
    if (found == LOOKUP_FOUND && zset_score(&e->value, call->argv[i], &score)) {
        reply_double(&call->reply, score);
    } else {
        reply_null(&call->reply);
    }
}

void zscore_command(struct call *call) {
    struct entry e;
    enum lookup found = zset_find(call, 1, &e);
    if (found != LOOKUP_REFUSED) {
        reply_score(call, found, &e, 2);
    }
}

void zmscore_command(struct call *call) {
    struct entry e;
    enum lookup found = zset_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    reply_array(&call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++) {
        if (found == LOOKUP_FOUND && (i - 2) % LOOKUP_GROUP == 0) {
            lookup_prefetch_members(call, &e.value, i, 1);
        }
        reply_score(call, found, &e, i);
    }
}

static void reply_rank(struct call *call, bool from_max) {
    struct entry e;
    uint64_t rank;
    double score;
    bool with_score = call->argc > 3;
    if (call->argc > 4) {
        args_wrong_arity(call);
        return;
    }
    if (with_score && !args_is(call, 3, "WITHSCORE")) {
        args_syntax_error(call);
        return;
    }
    enum lookup found = zset_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_ABSENT || !zset_rank(&e.value, call->argv[2], &rank, &score)) {
        if (with_score) {
            reply_null_array(&call->reply);
        } else {
            reply_null(&call->reply);
        }
        return;
    }
    if (with_score) {
        reply_array(&call->reply, 2);
    }
    reply_integer(&call->reply, (int64_t)(from_max ? zset_count(&e.value) - 1 - rank : rank));
    if (with_score) {
        reply_double(&call->reply, score);
    }
}

void zrank_command(struct call *call) {
    reply_rank(call, false);
}

void zrevrank_command(struct call *call) {
    reply_rank(call, true);
}

/* ---- ZSCAN ---------------------------------------------------------------------------------- */

struct zscan {
    struct reply *reply;
    const struct scan_options *options;
    size_t emitted;
};

/* Scores are texts here, in RESP3 as well. */
static void zscan_visit(void *arg, struct bytes member, double score) {
    struct zscan *scan = arg;
    char text[SCORE_TEXT_MAX];
    if (scan_matches(scan->options, member)) {
        reply_bulk(scan->reply, member);
        reply_bulk(scan->reply, BYTES(text, number_format_double(text, score)));
        scan->emitted += 2;
    }
}

void zscan_command(struct call *call) {
    uint64_t cursor;
    struct scan_options options;
    struct entry e;
    if (!args_cursor(call, 2, &cursor)) {
        return;
    }
    enum lookup found = zset_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_ABSENT) {
        scan_reply_empty(&call->reply);
        return;
    }
    if (!scan_parse(call, 3, SCAN_ZSET, &options)) {
        return;
    }
    size_t mark = scan_reply_begin(&call->reply);
    struct zscan scan = {&call->reply, &options, 0};
    cursor = zset_scan(&e.value, cursor, options.count, zscan_visit, &scan);
    scan_reply_end(&call->reply, mark, cursor, scan.emitted);
}

/* ---- ZRANDMEMBER ---------------------------------------------------------------------------- */

/* Repeats allowed: `count` independent picks. */
static void random_with_repeats(struct call *call, const struct entry *e, uint64_t count,
                                bool with_scores) {
    zset_reply_header(&call->reply, count, with_scores);
    for (uint64_t i = 0; i < count && !call->reply.out->failed; i++) {
        struct zset_entry entry;
        zset_random(&e->value, &call->cx->rng, &entry);
        zset_reply_entry(&call->reply, &entry, with_scores);
    }
}

/* Distinct members, `count` of them out of `size`, in one walk. */
static void random_distinct(struct call *call, const struct entry *e, uint64_t count, uint64_t size,
                            bool with_scores) {
    struct zset_entry batch[ZSET_BATCH];
    struct zset_iter it;
    uint64_t left = size, wanted = count;
    size_t got;
    zset_reply_header(&call->reply, count, with_scores);
    zset_iter_init(&it, &e->value, 0, false);
    while (wanted > 0 && (got = zset_fetch(&it, batch, ZSET_BATCH)) != 0) {
        for (size_t i = 0; i < got && wanted > 0; i++) {
            if (sample_take(&call->cx->rng, &left, &wanted)) {
                zset_reply_entry(&call->reply, &batch[i], with_scores);
            }
        }
    }
}

/* Distinct members when they are few among many, by rank, or the walk when memory is short. */
static void random_few(struct call *call, const struct entry *e, uint64_t count, uint64_t size,
                       bool with_scores) {
    struct picks picks;
    if (!picks_init(&picks, count)) {
        random_distinct(call, e, count, size, with_scores);
        return;
    }
    zset_reply_header(&call->reply, count, with_scores);
    for (uint64_t picked = 0; picked < count;) {
        struct zset_entry entry;
        uint64_t rank = rng_below(&call->cx->rng, size);
        if (picks_add(&picks, rank + 1) && zset_at(&e->value, rank, &entry)) {
            zset_reply_entry(&call->reply, &entry, with_scores);
            picked++;
        }
    }
    picks_deinit(&picks);
}

static void random_many(struct call *call, int64_t wanted, bool with_scores) {
    struct entry e;
    enum lookup found = zset_find(call, 1, &e);
    if (found == LOOKUP_REFUSED) {
        return;
    }
    if (found == LOOKUP_ABSENT || wanted == 0) {
        reply_array(&call->reply, 0);
        return;
    }
    uint64_t size = zset_count(&e.value);
    uint64_t count = wanted < 0 ? (uint64_t)-wanted : (uint64_t)wanted;
    if (wanted < 0) {
        random_with_repeats(call, &e, count, with_scores);
    } else if (sample_is_few(count, size)) {
        random_few(call, &e, count, size, with_scores);
    } else {
        random_distinct(call, &e, count < size ? count : size, size, with_scores);
    }
}

static void random_one(struct call *call) {
    struct entry e;
    enum lookup found = zset_find(call, 1, &e);
    if (found == LOOKUP_ABSENT) {
        reply_null(&call->reply);
    } else if (found == LOOKUP_FOUND) {
        struct zset_entry entry;
        zset_random(&e.value, &call->cx->rng, &entry);
        reply_bulk(&call->reply, entry.member);
    }
}

void zrandmember_command(struct call *call) {
    int64_t wanted;
    bool with_scores = call->argc == 4 && args_is(call, 3, "WITHSCORES");
    if (call->argc == 2) {
        random_one(call);
        return;
    }
    if (!args_i64_range(call, 2, -INT64_MAX, INT64_MAX, &wanted, NULL)) {
        return;
    }
    if (call->argc > 4 || (call->argc == 4 && !with_scores)) {
        args_syntax_error(call);
        return;
    }
    if (with_scores && (wanted < -INT64_MAX / 2 || wanted > INT64_MAX / 2)) {
        reply_error(&call->reply, "ERR value is out of range");
        return;
    }
    random_many(call, wanted, with_scores);
}
