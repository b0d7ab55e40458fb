/* SPDX-License-Identifier: BSD-3-Clause */
/* Union, intersection and difference of sorted sets, and of sets, whose members score 1.
 *
 *   source        one of the sets named, with its weight
 *   union         all sources into one table of members, smallest source first
 *   intersection  the smallest source walked in batches, each batch probed in the others
 *   difference    the first source walked, probed in the others
 *
 * Sources are taken in the order of their sizes because sums of doubles depend on it and clients
 * compare: Redis adds up in this order. Views into the sets stay good, since nothing is written
 * before the result is complete. */
#include <math.h>

#include "base/hash.h"
#include "base/number.h"
#include "cmd/args.h"
#include "cmd/table.h"
#include "handlers_priv.h"
#include "mem/account.h"
#include "sources_priv.h"
#include "types/set.h"
#include "zset_priv.h"

enum algebra_op { OP_UNION, OP_INTER, OP_DIFF };
enum aggregate { AGGREGATE_SUM, AGGREGATE_MIN, AGGREGATE_MAX };

struct algebra {
    enum algebra_op op;
    enum aggregate aggregate;
    bool with_scores;
    bool store; /* into the key at argument 1 */
    bool only_count;
    uint64_t limit; /* of ZINTERCARD; 0: none */
    struct source *sources;
    size_t source_count;
};

/* ---- options -------------------------------------------------------------------------------- */

static bool parse_weights(struct call *call, size_t i, struct algebra *a) {
    for (size_t k = 0; k < a->source_count; k++) {
        if (!number_parse_double(call->argv[i + k], &a->sources[k].weight)) {
            reply_error(&call->reply, "ERR weight value is not a float");
            return false;
        }
    }
    return true;
}

static bool parse_aggregate(struct call *call, size_t i, struct algebra *a) {
    if (args_is(call, i, "SUM")) {
        a->aggregate = AGGREGATE_SUM;
    } else if (args_is(call, i, "MIN")) {
        a->aggregate = AGGREGATE_MIN;
    } else if (args_is(call, i, "MAX")) {
        a->aggregate = AGGREGATE_MAX;
    } else {
        args_syntax_error(call);
        return false;
    }
    return true;
}

static bool parse_limit(struct call *call, size_t i, struct algebra *a) {
    int64_t limit;
    if (!args_i64_range(call, i, 0, INT64_MAX, &limit, "ERR LIMIT can't be negative")) {
        return false;
    }
    a->limit = (uint64_t)limit;
    return true;
}

/* One option at argument i; how many arguments it took, 0 with the error replied. */
static size_t parse_option(struct call *call, size_t i, struct algebra *a) {
    bool weighted = a->op != OP_DIFF && !a->only_count;
    size_t behind = call->argc - i - 1;
    if (weighted && behind >= a->source_count && args_is(call, i, "WEIGHTS")) {
        return parse_weights(call, i + 1, a) ? 1 + a->source_count : 0;
    }
    if (weighted && behind >= 1 && args_is(call, i, "AGGREGATE")) {
        return parse_aggregate(call, i + 1, a) ? 2 : 0;
    }
    if (!a->store && !a->only_count && args_is(call, i, "WITHSCORES")) {
        a->with_scores = true;
        return 1;
    }
    if (a->only_count && behind >= 1 && args_is(call, i, "LIMIT")) {
        return parse_limit(call, i + 1, a) ? 2 : 0;
    }
    args_syntax_error(call);
    return 0;
}

static bool parse_options(struct call *call, size_t i, struct algebra *a) {
    for (size_t took; i < call->argc; i += took) {
        took = parse_option(call, i, a);
        if (took == 0) {
            return false;
        }
    }
    return true;
}

/* ---- scores --------------------------------------------------------------------------------- */

/* Infinity times 0 counts as 0, and so does infinity minus infinity. */
static double weighted(double score, double weight) {
    double product = score * weight;
    return isnan(product) ? 0 : product;
}

static void aggregate(double *score, double other, enum aggregate how) {
    switch (how) {
    case AGGREGATE_SUM:
        *score += other;
        if (isnan(*score)) {
            *score = 0;
        }
        break;
    case AGGREGATE_MIN:
        *score = other < *score ? other : *score;
        break;
    case AGGREGATE_MAX:
        *score = other > *score ? other : *score;
        break;
    }
}

/* ---- batches -------------------------------------------------------------------------------- */

/* Entries on their way through the sources, with the hashes of their members. */
struct batch {
    struct zset_entry entries[ZSET_BATCH];
    uint64_t hashes[ZSET_BATCH];
    size_t count;
};

/* A walk through a source. */
struct walk {
    const struct source *source;
    struct zset_iter it;
    uint64_t position; /* in a set */
};

/* The members of a set of integers are texts made for the result, which outlives the walk: they get
 * room for all of them. */
static enum status walk_init(struct walk *w, struct source *s) {
    *w = (struct walk){.source = s};
    if (s->value.type == VALUE_ZSET) {
        zset_iter_init(&w->it, &s->value, 0, false);
    } else if (s->value.encoding == VALUE_INT && s->texts == NULL) {
        s->texts = account_alloc(ACCOUNT_OTHER, s->count * SET_SCRATCH_LEN);
        return s->texts != NULL ? ST_OK : ST_NOMEM;
    }
    return ST_OK;
}

static size_t fetch_members(struct walk *w, struct zset_entry *entries) {
    const struct source *s = w->source;
    struct bytes members[ZSET_BATCH];
    char *texts = s->texts != NULL ? s->texts + w->position * SET_SCRATCH_LEN : NULL;
    size_t count = set_next(&s->value, &w->position, members, ZSET_BATCH, texts);
    for (size_t i = 0; i < count; i++) {
        entries[i] = (struct zset_entry){members[i], 1};
    }
    return count;
}

/* The next entries of a walk, scores weighted; false at the end. */
static bool batch_fetch(struct batch *b, struct walk *w) {
    b->count = w->source->value.type == VALUE_ZSET ? zset_fetch(&w->it, b->entries, ZSET_BATCH)
                                                   : fetch_members(w, b->entries);
    for (size_t i = 0; i < b->count; i++) {
        b->entries[i].score = weighted(b->entries[i].score, w->source->weight);
        b->hashes[i] = hash_bytes(b->entries[i].member);
    }
    return b->count > 0;
}

static bool source_score(const struct source *s, struct bytes member, double *score) {
    if (s->value.type == VALUE_ZSET) {
        return zset_score(&s->value, member, score);
    }
    *score = 1;
    return set_contains(&s->value, member);
}

/* Keep what is in this source too (intersection), or what is not (difference). */
static void batch_filter(struct batch *b, const struct source *s, const struct algebra *a) {
    size_t kept = 0;
    lookup_prefetch_hashed(&s->value, b->hashes, b->count);
    for (size_t i = 0; i < b->count; i++) {
        double score;
        bool there = source_score(s, b->entries[i].member, &score);
        if (there != (a->op == OP_INTER)) {
            continue;
        }
        b->entries[kept] = b->entries[i];
        b->hashes[kept] = b->hashes[i];
        if (there) {
            aggregate(&b->entries[kept].score, score * s->weight, a->aggregate);
        }
        kept++;
    }
    b->count = kept;
}

/* ---- intersection, difference --------------------------------------------------------------- */

/* Walk the first source and pass it through the others. What passes is collected, or only counted,
 * up to the limit. */
static enum status filter_first(const struct algebra *a, struct zset_result *result,
                                uint64_t *counted) {
    struct batch b;
    struct walk w;
    if (a->sources[0].count == 0) {
        return ST_OK;
    }
    if (walk_init(&w, &a->sources[0]) != ST_OK) {
        return ST_NOMEM;
    }
    while (batch_fetch(&b, &w)) {
        for (size_t k = 1; k < a->source_count && b.count > 0; k++) {
            if (a->sources[k].count > 0) {
                batch_filter(&b, &a->sources[k], a);
            }
        }
        *counted += b.count;
        if (a->limit != 0 && *counted >= a->limit) {
            *counted = a->limit;
            return ST_OK;
        }
        for (size_t i = 0; i < b.count && !a->only_count; i++) {
            if (zset_result_add(result, &b.entries[i]) != ST_OK) {
                return ST_NOMEM;
            }
        }
    }
    return ST_OK;
}

/* ---- union ---------------------------------------------------------------------------------- */

/* Members met so far: an open-addressed table from 32 hash bits to places in the result. */
struct slot {
    uint32_t tag;
    uint32_t at; /* place + 1; 0 is free */
};

struct members {
    struct slot *slots;
    size_t mask; /* slots - 1; at most half of them are taken */
    struct zset_result *result;
};

static enum status members_resize(struct members *m, size_t slots) {
    struct slot *bigger = account_alloc(ACCOUNT_OTHER, slots * sizeof(*bigger));
    if (bigger == NULL) {
        return ST_NOMEM;
    }
    memset(bigger, 0, slots * sizeof(*bigger));
    for (size_t i = 0; m->slots != NULL && i <= m->mask; i++) {
        size_t to = m->slots[i].tag & (slots - 1);
        while (m->slots[i].at != 0 && bigger[to].at != 0) {
            to = (to + 1) & (slots - 1);
        }
        if (m->slots[i].at != 0) {
            bigger[to] = m->slots[i];
        }
    }
    account_free(ACCOUNT_OTHER, m->slots);
    m->slots = bigger;
    m->mask = slots - 1;
    return ST_OK;
}

/* Fetch what adding a batch will touch: slots, the entries they name, the members of those. */
static void members_prefetch(const struct members *m, const struct batch *b) {
    const struct zset_entry *likely[ZSET_BATCH];
    for (size_t i = 0; i < b->count; i++) {
        PREFETCH(&m->slots[(uint32_t)b->hashes[i] & m->mask]);
    }
    for (size_t i = 0; i < b->count; i++) {
        const struct slot *s = &m->slots[(uint32_t)b->hashes[i] & m->mask];
        bool same = s->at != 0 && s->tag == (uint32_t)b->hashes[i];
        likely[i] = same ? &m->result->entries[s->at - 1] : NULL;
        PREFETCH(likely[i]);
    }
    for (size_t i = 0; i < b->count; i++) {
        if (likely[i] != NULL) {
            PREFETCH(likely[i]->member.ptr);
        }
    }
}

/* Add an entry, or its score to the one of the same member. */
static enum status members_add(struct members *m, const struct zset_entry *entry, uint64_t hash,
                               enum aggregate how) {
    struct zset_result *result = m->result;
    uint32_t tag = (uint32_t)hash;
    if (result->count * 2 > m->mask && members_resize(m, (m->mask + 1) * 2) != ST_OK) {
        return ST_NOMEM;
    }
    size_t i = tag & m->mask;
    for (; m->slots[i].at != 0; i = (i + 1) & m->mask) {
        if (m->slots[i].tag == tag) {
            struct zset_entry *met = &result->entries[m->slots[i].at - 1];
            if (bytes_equal(met->member, entry->member)) {
                aggregate(&met->score, entry->score, how);
                return ST_OK;
            }
        }
    }
    if (result->count >= UINT32_MAX || zset_result_add(result, entry) != ST_OK) {
        return ST_NOMEM;
    }
    m->slots[i] = (struct slot){.tag = tag, .at = (uint32_t)result->count};
    return ST_OK;
}

static enum status add_source(struct members *m, struct source *s, enum aggregate how) {
    struct batch b;
    struct walk w;
    if (walk_init(&w, s) != ST_OK) {
        return ST_NOMEM;
    }
    while (batch_fetch(&b, &w)) {
        members_prefetch(m, &b);
        for (size_t i = 0; i < b.count; i++) {
            enum status st = members_add(m, &b.entries[i], b.hashes[i], how);
            if (st != ST_OK) {
                return st;
            }
        }
    }
    return ST_OK;
}

static enum status unite(const struct algebra *a, struct zset_result *result) {
    struct members m = {.result = result};
    uint64_t largest = a->sources[a->source_count - 1].count;
    size_t slots = 64;
    while (slots / 2 < largest) {
        slots *= 2;
    }
    enum status st = members_resize(&m, slots);
    for (size_t k = 0; k < a->source_count && st == ST_OK; k++) {
        if (a->sources[k].count > 0) {
            st = add_source(&m, &a->sources[k], a->aggregate);
        }
    }
    account_free(ACCOUNT_OTHER, m.slots);
    return st;
}

/* ---- commands ------------------------------------------------------------------------------- */

static void run(struct call *call, struct algebra *a) {
    struct zset_result result = {0};
    uint64_t counted = 0;
    if (a->op != OP_DIFF) {
        sources_sort(a->sources, a->source_count);
    }
    enum status st = a->op == OP_UNION ? unite(a, &result) : filter_first(a, &result, &counted);
    if (st != ST_OK) {
        args_status_error(call, st);
    } else if (a->only_count) {
        reply_integer(&call->reply, (int64_t)counted);
    } else if (a->store) {
        zset_result_store(call, 1, &result);
    } else {
        zset_result_sort(&result);
        zset_result_reply(call, &result, a->with_scores);
    }
    zset_result_deinit(&result);
}

/* [destination] numkeys key [key ...] [options] */
static void combine(struct call *call, struct algebra a) {
    size_t i = a.store ? 2 : 1;
    int64_t count;
    if (!args_i64(call, i, &count)) {
        return;
    }
    if (count < 1) {
        reply_errorf(&call->reply, "ERR at least 1 input key is needed for '%s' command",
                     call->row->name);
        return;
    }
    if ((uint64_t)count > call->argc - i - 1) {
        args_syntax_error(call);
        return;
    }
    a.source_count = (size_t)count;
    a.sources = account_alloc(ACCOUNT_OTHER, a.source_count * sizeof(*a.sources));
    if (a.sources == NULL) {
        args_nomem(call);
        return;
    }
    if (sources_find(call, i + 1, a.sources, a.source_count, true)) {
        if (parse_options(call, i + 1 + a.source_count, &a)) {
            run(call, &a);
        }
        for (size_t k = 0; k < a.source_count; k++) {
            account_free(ACCOUNT_OTHER, a.sources[k].texts);
        }
    }
    account_free(ACCOUNT_OTHER, a.sources);
}

void zunion_command(struct call *call) {
    combine(call, (struct algebra){.op = OP_UNION});
}

void zinter_command(struct call *call) {
    combine(call, (struct algebra){.op = OP_INTER});
}

void zdiff_command(struct call *call) {
    combine(call, (struct algebra){.op = OP_DIFF});
}

void zintercard_command(struct call *call) {
    combine(call, (struct algebra){.op = OP_INTER, .only_count = true});
}

void zunionstore_command(struct call *call) {
    combine(call, (struct algebra){.op = OP_UNION, .store = true});
}

void zinterstore_command(struct call *call) {
    combine(call, (struct algebra){.op = OP_INTER, .store = true});
}

void zdiffstore_command(struct call *call) {
    combine(call, (struct algebra){.op = OP_DIFF, .store = true});
}
