/* SPDX-License-Identifier: BSD-3-Clause */
/* SORT and SORT_RO: the elements of a list, a set or a sorted set in another order.
 *
 *   weight   what elements are sorted by: the element itself, or what BY's pattern names
 *
 * Everything is a view until the reply is made or the result stored. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cmd/block.h"
#include "handlers_priv.h"
#include "list_priv.h"
#include "mem/account.h"
#include "scratch_priv.h"
#include "sort_priv.h"
#include "types/set.h"
#include "types/zset.h"

/* ---- what is asked for ---------------------------------------------------------------------- */

/* Short texts that have no other place, integers written out. */
#define POOL_LEN 4080
struct pool {
    struct pool *next;
    size_t used;
    char bytes[POOL_LEN];
};

struct sort {
    struct call *call;
    bool descending, alpha;
    bool has_by, keep_order; /* keep_order: BY a pattern without '*' */
    int64_t offset, count;   /* LIMIT; count negative: to the end */
    size_t store_i;          /* argument with the destination, 0: none */
    struct sort_pattern by;
    struct sort_pattern *gets; /* account_alloc'ed */
    size_t get_count;

    struct sort_item *items; /* account_alloc'ed */
    size_t item_count;
    size_t first, last;   /* the result: items first .. last - 1 */
    struct bytes *stored; /* account_alloc'ed: what goes under the destination */
    struct pool *pool;
    struct buf names;  /* of the keys looked up at the moment */
    struct buf number; /* the text parsed at the moment, NUL-terminated */
};

/* ---- parsing -------------------------------------------------------------------------------- */

/* The option at argument *i; *i moves to its last argument. */
static bool parse_option(struct sort *s, size_t *i, bool may_store) {
    struct call *call = s->call;
    size_t left = call->argc - *i - 1;
    if (args_is(call, *i, "ASC")) {
        s->descending = false;
    } else if (args_is(call, *i, "DESC")) {
        s->descending = true;
    } else if (args_is(call, *i, "ALPHA")) {
        s->alpha = true;
    } else if (args_is(call, *i, "LIMIT") && left >= 2) {
        *i += 2;
        return args_i64(call, *i - 1, &s->offset) && args_i64(call, *i, &s->count);
    } else if (may_store && args_is(call, *i, "STORE") && left >= 1) {
        s->store_i = ++*i;
    } else if (args_is(call, *i, "BY") && left >= 1) {
        s->by = sort_pattern_of(call->argv[++*i]);
        s->has_by = true;
        s->keep_order |= s->by.is_nothing;
    } else if (args_is(call, *i, "GET") && left >= 1) {
        s->gets[s->get_count++] = sort_pattern_of(call->argv[++*i]);
    } else {
        args_syntax_error(call);
        return false;
    }
    return true;
}

static bool parse(struct sort *s, bool may_store) {
    s->gets = account_alloc(ACCOUNT_OTHER, s->call->argc / 2 * sizeof(*s->gets));
    if (s->gets == NULL) {
        args_nomem(s->call);
        return false;
    }
    for (size_t i = 2; i < s->call->argc; i++) {
        if (!parse_option(s, &i, may_store)) {
            return false;
        }
    }
    return true;
}

/* ---- texts kept ----------------------------------------------------------------------------- */

/* Have *text, a short one, point at a copy that lasts until the command is done. */
static enum status keep(struct sort *s, struct bytes *text) {
    if (s->pool == NULL || s->pool->used + text->len > POOL_LEN) {
        struct pool *fresh = account_alloc(ACCOUNT_OTHER, sizeof(*fresh));
        if (fresh == NULL) {
            return ST_NOMEM;
        }
        fresh->next = s->pool;
        fresh->used = 0;
        s->pool = fresh;
    }
    char *copy = s->pool->bytes + s->pool->used;
    memcpy(copy, text->ptr, text->len);
    s->pool->used += text->len;
    text->ptr = copy;
    return ST_OK;
}

/* ---- collecting ----------------------------------------------------------------------------- */

/* What LIMIT leaves of so many elements. */
static void limit(struct sort *s, uint64_t total) {
    uint64_t first = s->offset < 0 ? 0 : (uint64_t)s->offset;
    first = first < total ? first : total;
    uint64_t n = s->count < 0 ? total - first : (uint64_t)s->count;
    s->first = (size_t)first;
    s->last = (size_t)(n < total - first ? first + n : total);
}

static void collect_list(struct sort *s, const struct value *v, uint64_t from, bool backward) {
    struct bytes batch[LIST_BATCH];
    struct list_iter it;
    list_iter_init(&it, v, from, backward);
    for (size_t i = 0; i < s->item_count;) {
        size_t want = s->item_count - i < LIST_BATCH ? s->item_count - i : LIST_BATCH;
        size_t got = list_fetch(&it, batch, want);
        for (size_t k = 0; k < got; k++) {
            s->items[i++] = (struct sort_item){.element = batch[k]};
        }
    }
}

static void collect_zset(struct sort *s, const struct value *v, uint64_t from, bool backward) {
    struct zset_entry batch[LIST_BATCH];
    struct zset_iter it;
    zset_iter_init(&it, v, from, backward);
    for (size_t i = 0; i < s->item_count;) {
        size_t want = s->item_count - i < LIST_BATCH ? s->item_count - i : LIST_BATCH;
        size_t got = zset_fetch(&it, batch, want);
        for (size_t k = 0; k < got; k++) {
            s->items[i++] = (struct sort_item){.element = batch[k].member};
        }
    }
}

static enum status collect_set(struct sort *s, const struct value *v) {
    struct bytes batch[LIST_BATCH];
    char scratch[LIST_BATCH * SET_SCRATCH_LEN];
    uint64_t position = 0;
    for (size_t i = 0; i < s->item_count;) {
        size_t got = set_next(v, &position, batch, LIST_BATCH, scratch);
        for (size_t k = 0; k < got; k++) {
            if (v->encoding == VALUE_INT && keep(s, &batch[k]) != ST_OK) {
                return ST_NOMEM;
            }
            s->items[i++] = (struct sort_item){.element = batch[k]};
        }
    }
    return ST_OK;
}

static uint64_t count_of(const struct value *v) {
    return v->type == VALUE_LIST   ? list_count(v)
           : v->type == VALUE_ZSET ? zset_count(v)
                                   : set_count(v);
}

/* All elements, or, where the order stays as it is, just those of the result. */
static enum status collect(struct sort *s, const struct value *v) {
    uint64_t total = count_of(v), from = 0;
    bool backward = s->keep_order && s->descending;
    limit(s, total);
    s->item_count = (size_t)total;
    if (s->keep_order && v->type != VALUE_SET) {
        from = s->first;
        s->item_count = s->last - s->first;
        s->first = 0;
        s->last = s->item_count;
    }
    if (s->item_count == 0) {
        return ST_OK;
    }
    s->items = account_alloc(ACCOUNT_OTHER, s->item_count * sizeof(*s->items));
    if (s->items == NULL) {
        return ST_NOMEM;
    }
    if (v->type == VALUE_SET) {
        return collect_set(s, v);
    }
    from = backward ? total - 1 - from : from;
    (v->type == VALUE_LIST ? collect_list : collect_zset)(s, v, from, backward);
    return ST_OK;
}

/* ---- weighing ------------------------------------------------------------------------------- */

/* A number as strtod reads it, "" being 0; a NUL ends it, as in Redis. */
static bool parse_score(struct sort *s, struct bytes text, double *score) {
    int64_t n;
    if (number_parse_i64(text, &n)) {
        *score = (double)n;
        return true;
    }
    s->number.len = 0;
    buf_append(&s->number, text.ptr, text.len);
    buf_append_char(&s->number, '\0');
    if (s->number.failed) {
        return false;
    }
    char *end;
    errno = 0;
    *score = strtod(s->number.ptr, &end);
    return *end == '\0' && errno != ERANGE && !isnan(*score);
}

/* Give an item its weight, text being what is at its key. ST_SYNTAX: it is no number. */
static enum status weigh(struct sort *s, struct sort_item *item, struct bytes text, bool there,
                         bool copy) {
    if (!s->alpha) {
        item->score = 0;
        return !there || parse_score(s, text, &item->score) ? ST_OK : ST_SYNTAX;
    }
    item->missing = !there;
    item->text = text;
    return there && copy ? keep(s, &item->text) : ST_OK;
}

static enum status weigh_by_pattern(struct sort *s) {
    struct sort_found found;
    struct sort_look_ups l = {.patterns = &s->by, .pattern_count = 1, .items = s->items};
    for (; l.first < s->item_count; l.first += l.count) {
        size_t left = s->item_count - l.first;
        l.count = left < LOOKUP_GROUP ? left : LOOKUP_GROUP;
        enum status st = sort_look_up(s->call, &s->names, &l, &found);
        for (size_t i = 0; i < l.count && st == ST_OK; i++) {
            st = weigh(s, &s->items[l.first + i], found.at[i].text, found.at[i].there,
                       found.at[i].in_digits);
        }
        if (st != ST_OK) {
            return st;
        }
    }
    return ST_OK;
}

static enum status weigh_all(struct sort *s) {
    if (s->has_by) {
        return weigh_by_pattern(s);
    }
    for (size_t i = 0; i < s->item_count; i++) {
        enum status st = weigh(s, &s->items[i], s->items[i].element, true, false);
        if (st != ST_OK) {
            return st;
        }
    }
    return ST_OK;
}

/* ---- sorting -------------------------------------------------------------------------------- */

static int compare_scores(const void *a, const void *b) {
    const struct sort_item *x = a, *y = b;
    if (x->score != y->score) {
        return x->score < y->score ? -1 : 1;
    }
    return bytes_compare(x->element, y->element);
}

static int compare_texts(const void *a, const void *b) {
    const struct sort_item *x = a, *y = b;
    if (x->missing || y->missing) {
        return y->missing - x->missing;
    }
    return bytes_compare(x->text, y->text);
}

static void reverse(struct sort_item *items, size_t count) {
    for (size_t i = 0; i < count / 2; i++) {
        struct sort_item item = items[i];
        items[i] = items[count - 1 - i];
        items[count - 1 - i] = item;
    }
}

/* ---- the first few of many ---- */

/* Up to this part of the elements is selected instead of sorting all: 2 log2(k) comparisons at worst for each element, one
 * for most, against log2(n). */
#define SELECT_PART 64

typedef int compare_items(const void *a, const void *b);

static bool is_before(const struct sort *s, compare_items *compare, size_t a, size_t b) {
    int c = compare(&s->items[a], &s->items[b]);
    return s->descending ? c > 0 : c < 0;
}

static void swap_items(struct sort *s, size_t a, size_t b) {
    struct sort_item item = s->items[a];
    s->items[a] = s->items[b];
    s->items[b] = item;
}

/* items 0 .. count - 1 are a heap, the last in order on top, but for the one at `at`. */
static void sift_down(struct sort *s, compare_items *compare, size_t at, size_t count) {
    for (size_t child; (child = at * 2 + 1) < count; at = child) {
        child += child + 1 < count && is_before(s, compare, child, child + 1);
        if (!is_before(s, compare, at, child)) {
            return;
        }
        swap_items(s, at, child);
    }
}

/* Bring those that are the first `count` in order to the front, in any order. */
static void select_first(struct sort *s, compare_items *compare, size_t count) {
    for (size_t i = count / 2; i-- > 0;) {
        sift_down(s, compare, i, count);
    }
    for (size_t i = count; i < s->item_count; i++) {
        if (is_before(s, compare, i, 0)) {
            swap_items(s, i, 0);
            sift_down(s, compare, 0, count);
        }
    }
}

/* Elements that compare equal by another text are told apart only by where they stood, which selecting forgets: what
 * LIMIT shows of them, page by page, must not depend on the page. */
static bool may_select(const struct sort *s) {
    return s->last > 0 && s->last <= s->item_count / SELECT_PART && !(s->alpha && s->has_by);
}

static enum status arrange(struct sort *s) {
    if (s->keep_order || s->item_count == 0) {
        return ST_OK;
    }
    enum status st = weigh_all(s);
    if (st != ST_OK) {
        return st;
    }
    compare_items *compare = s->alpha ? compare_texts : compare_scores;
    size_t count = s->item_count;
    if (may_select(s)) {
        count = s->last;
        select_first(s, compare, count);
    }
    qsort(s->items, count, sizeof(*s->items), compare);
    if (s->descending) {
        reverse(s->items, count);
    }
    return ST_OK;
}

/* ---- the result ----------------------------------------------------------------------------- */

/* Call emit for each text of the result, element after element. */
static enum status each_result(struct sort *s,
                               enum status (*emit)(struct sort *s, size_t n, struct bytes text,
                                                   bool there, bool copy)) {
    struct sort_found found;
    struct sort_look_ups l = {
        .patterns = s->gets, .pattern_count = s->get_count, .items = s->items};
    enum status st = ST_OK;
    if (s->get_count == 0) {
        for (size_t i = s->first; i < s->last && st == ST_OK; i++) {
            st = emit(s, i - s->first, s->items[i].element, true, false);
        }
        return st;
    }
    size_t begin = s->first * s->get_count, end = s->last * s->get_count;
    for (l.first = begin; l.first < end && st == ST_OK; l.first += l.count) {
        size_t left = end - l.first;
        l.count = left < LOOKUP_GROUP ? left : LOOKUP_GROUP;
        st = sort_look_up(s->call, &s->names, &l, &found);
        for (size_t i = 0; i < l.count && st == ST_OK; i++) {
            st = emit(s, l.first - begin + i, found.at[i].text, found.at[i].there,
                      found.at[i].in_digits);
        }
    }
    return st;
}

static enum status emit_reply(struct sort *s, size_t n, struct bytes text, bool there, bool copy) {
    (void)n;
    (void)copy;
    if (there) {
        reply_bulk(&s->call->reply, text);
    } else {
        reply_null(&s->call->reply);
    }
    return ST_OK;
}

static enum status emit_stored(struct sort *s, size_t n, struct bytes text, bool there, bool copy) {
    s->stored[n] = there ? text : BYTES("", 0);
    return there && copy ? keep(s, &s->stored[n]) : ST_OK;
}

static size_t result_count(const struct sort *s) {
    return (s->last - s->first) * (s->get_count > 0 ? s->get_count : 1);
}

static enum status reply_result(struct sort *s) {
    size_t mark = s->call->reply.out->len;
    reply_array(&s->call->reply, result_count(s));
    enum status st = each_result(s, emit_reply);
    if (st != ST_OK) {
        s->call->reply.out->len = mark;
    }
    return st;
}

static void delete_destination(struct sort *s) {
    struct entry e;
    if (lookup_key(s->call, s->store_i, DB_NO_TOUCH, &e)) {
        entry_delete(&e);
        call_dirty(s->call, 1);
    }
    reply_integer(&s->call->reply, 0);
}

static enum status build_and_store(struct sort *s, size_t count) {
    const struct value_image empty = {.encoding = VALUE_PACKED,
                                      .data = {list_empty, LIST_EMPTY_LEN}};
    struct scratch scratch;
    enum status st = scratch_init(&scratch, s->call, VALUE_LIST, &empty);
    if (st != ST_OK) {
        return st;
    }
    st = list_build(&scratch.value, s->stored, count);
    if (st == ST_OK) {
        st = scratch_store(&scratch, s->call, s->store_i, DB_NO_EXPIRY);
    }
    scratch_deinit(&scratch);
    return st;
}

static enum status store_result(struct sort *s) {
    size_t count = result_count(s);
    if (count == 0) {
        delete_destination(s);
        return ST_OK;
    }
    s->stored = account_alloc(ACCOUNT_OTHER, count * sizeof(*s->stored));
    if (s->stored == NULL) {
        return ST_NOMEM;
    }
    enum status st = each_result(s, emit_stored);
    if (st == ST_OK) {
        st = build_and_store(s, count);
    }
    if (st == ST_OK) {
        call_dirty(s->call, 1);
        reply_integer(&s->call->reply, (int64_t)count);
        block_signal_key(s->call->cx, call_db(s->call), s->call->argv[s->store_i]);
    }
    return st;
}

/* ---- commands ------------------------------------------------------------------------------- */

/* Find what is to be sorted. False: another type, WRONGTYPE was replied. */
static bool find_source(struct call *call, struct entry *e, bool *found) {
    *found = lookup_key(call, 1, DB_TOUCH, e);
    if (*found && e->value.type != VALUE_LIST && e->value.type != VALUE_SET &&
        e->value.type != VALUE_ZSET) {
        args_wrong_type(call);
        return false;
    }
    return true;
}

/* The order of a set means nothing: what is stored is sorted all the same, so that it is the same
 * each time. */
static void settle_order(struct sort *s, const struct value *v) {
    if (s->keep_order && v->type == VALUE_SET && s->store_i != 0) {
        s->keep_order = false;
        s->has_by = false;
        s->alpha = true;
    }
}

static enum status run(struct sort *s, const struct value *v) {
    enum status st = ST_OK;
    if (v != NULL) {
        settle_order(s, v);
        st = collect(s, v);
    }
    if (st == ST_OK) {
        st = arrange(s);
    }
    if (st == ST_OK) {
        st = s->store_i != 0 ? store_result(s) : reply_result(s);
    }
    return st;
}

static void deinit(struct sort *s) {
    account_free(ACCOUNT_OTHER, s->gets);
    account_free(ACCOUNT_OTHER, s->items);
    account_free(ACCOUNT_OTHER, s->stored);
    while (s->pool != NULL) {
        struct pool *next = s->pool->next;
        account_free(ACCOUNT_OTHER, s->pool);
        s->pool = next;
    }
    buf_deinit(&s->names);
    buf_deinit(&s->number);
}

static void sort(struct call *call, bool may_store) {
    struct sort s = {.call = call, .count = -1};
    struct entry e;
    bool found;
    if (parse(&s, may_store) && find_source(call, &e, &found)) {
        enum status st = run(&s, found ? &e.value : NULL);
        if (st == ST_SYNTAX) {
            reply_error(&call->reply, "ERR One or more scores can't be converted into double");
        } else if (st != ST_OK) {
            args_status_error(call, st);
        }
    }
    deinit(&s);
}

void sort_command(struct call *call) {
    sort(call, true);
}

void sort_ro_command(struct call *call) {
    sort(call, false);
}
