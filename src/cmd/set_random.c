/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of a set picked at random: SRANDMEMBER, and SPOP, which takes them out. */
#include "base/hash.h"
#include "cmd/args.h"
#include "handlers_priv.h"
#include "mem/account.h"
#include "sample_priv.h"
#include "scratch_priv.h"
#include "set_priv.h"

/* Rejection tells members apart by where they lie, which in a small set says nothing: there a walk
 * is as good. */
static bool takes_few(const struct value *v, uint64_t count, uint64_t size) {
    return value_has_index(v) && sample_is_few(count, size);
}

/* ---- SRANDMEMBER ---------------------------------------------------------------------------- */

/* Repeats allowed: `count` independent picks. */
static void random_with_repeats(struct call *call, const struct value *v, uint64_t count) {
    char scratch[SET_SCRATCH_LEN];
    for (uint64_t i = 0; i < count && !call->reply.out->failed; i++) {
        reply_bulk(&call->reply, set_random(v, &call->cx->rng, scratch));
    }
}

static void random_walk(struct call *call, const struct value *v, uint64_t count) {
    struct set_batch b;
    uint64_t position = 0, left = set_count(v), wanted = count;
    while (wanted > 0 && set_batch_next(&b, v, &position)) {
        for (size_t i = 0; i < b.count; i++) {
            if (sample_take(&call->cx->rng, &left, &wanted)) {
                reply_bulk(&call->reply, b.members[i]);
            }
        }
    }
}

/* Distinct members of a table, few of many. False: memory is short, nothing was replied. */
static bool random_few(struct call *call, const struct value *v, uint64_t count) {
    struct picks picks;
    if (!picks_init(&picks, count)) {
        return false;
    }
    for (uint64_t picked = 0; picked < count;) {
        struct bytes member = set_random(v, &call->cx->rng, NULL);
        if (picks_add(&picks, (uintptr_t)member.ptr)) {
            reply_bulk(&call->reply, member);
            picked++;
        }
    }
    picks_deinit(&picks);
    return true;
}

static void random_many(struct call *call, const struct value *v, int64_t wanted) {
    uint64_t size = set_count(v);
    uint64_t count = wanted < 0 ? (uint64_t)-wanted : (uint64_t)wanted;
    if (wanted < 0) {
        reply_array(&call->reply, count);
        random_with_repeats(call, v, count);
        return;
    }
    count = count < size ? count : size;
    reply_array(&call->reply, count);
    if (!takes_few(v, count, size) || !random_few(call, v, count)) {
        random_walk(call, v, count);
    }
}

static void random_one(struct call *call) {
    struct entry e;
    char scratch[SET_SCRATCH_LEN];
    enum lookup found = set_find(call, 1, &e);
    if (found == LOOKUP_FOUND) {
        reply_bulk(&call->reply, set_random(&e.value, &call->cx->rng, scratch));
    } else if (found == LOOKUP_ABSENT) {
        reply_null(&call->reply);
    }
}

void srandmember_command(struct call *call) {
    struct entry e;
    int64_t wanted;
    if (call->argc == 2) {
        random_one(call);
        return;
    }
    if (call->argc > 3) {
        args_syntax_error(call);
        return;
    }
    if (!args_i64_range(call, 2, -INT64_MAX, INT64_MAX, &wanted, NULL)) {
        return;
    }
    enum lookup found = set_find(call, 1, &e);
    if (found == LOOKUP_ABSENT || (found == LOOKUP_FOUND && wanted == 0)) {
        reply_array(&call->reply, 0);
    } else if (found == LOOKUP_FOUND) {
        random_many(call, &e.value, wanted);
    }
}

/* ---- SPOP ----------------------------------------------------------------------------------- */

/* Nothing is removed unless the client is told: the reply is written first, and read back to know
 * what to remove, since removing moves members about. */

static void pop_one(struct call *call) {
    struct entry e;
    char scratch[SET_SCRATCH_LEN];
    enum lookup found = set_find(call, 1, &e);
    if (found == LOOKUP_ABSENT) {
        reply_null(&call->reply);
    }
    if (found != LOOKUP_FOUND) {
        return;
    }
    struct bytes member = set_random(&e.value, &call->cx->rng, scratch);
    reply_bulk(&call->reply, member);
    if (UNLIKELY(call->reply.out->failed)) {
        return;
    }
    set_remove(&e.value, member);
    if (set_count(&e.value) == 0) {
        entry_delete(&e);
    }
    call_dirty(call, 1);
}

static void pop_all(struct call *call, struct entry *e) {
    uint64_t size = set_count(&e->value);
    reply_set(&call->reply, size);
    set_reply_members(&call->reply, &e->value);
    if (LIKELY(!call->reply.out->failed)) {
        entry_delete(e);
        call_dirty(call, size);
    }
}

/* Where a member stands in the reply. */
struct replied {
    size_t off, len;
};

static struct bytes member_at(const struct buf *out, const struct replied *at) {
    return BYTES(out->ptr + at->off, at->len);
}

/* Remove what was replied, in groups whose records are fetched side by side. */
static void remove_replied(struct value *v, const struct buf *out, const struct replied *replied,
                           uint64_t count) {
    uint64_t hashes[LOOKUP_GROUP];
    for (uint64_t done = 0; done < count; done += LOOKUP_GROUP) {
        size_t n = count - done < LOOKUP_GROUP ? (size_t)(count - done) : LOOKUP_GROUP;
        for (size_t i = 0; i < n; i++) {
            hashes[i] = hash_bytes(member_at(out, &replied[done + i]));
        }
        lookup_prefetch_hashed(v, hashes, n);
        for (size_t i = 0; i < n; i++) {
            set_remove(v, member_at(out, &replied[done + i]));
        }
    }
}

/* Few of many: picks, which are then removed. The set keeps members. */
static enum status pop_few(struct call *call, struct entry *e, uint64_t count) {
    struct buf *out = call->reply.out;
    struct picks picks;
    struct replied *replied = account_alloc(ACCOUNT_OTHER, (size_t)count * sizeof(*replied));
    if (replied == NULL) {
        return ST_NOMEM;
    }
    if (!picks_init(&picks, count)) {
        account_free(ACCOUNT_OTHER, replied);
        return ST_NOMEM;
    }
    reply_set(&call->reply, (size_t)count);
    for (uint64_t picked = 0; picked < count;) {
        struct bytes member = set_random(&e->value, &call->cx->rng, NULL);
        if (picks_add(&picks, (uintptr_t)member.ptr)) {
            reply_bulk(&call->reply, member);
            replied[picked++] = (struct replied){out->len - 2 - member.len, member.len};
        }
    }
    picks_deinit(&picks);
    if (LIKELY(!out->failed)) {
        remove_replied(&e->value, out, replied, count);
        call_dirty(call, count);
    }
    account_free(ACCOUNT_OTHER, replied);
    return ST_OK;
}

/* One walk that replies some members and puts the others into a new set. */
static enum status split(struct call *call, const struct value *v, uint64_t count,
                         struct value *rest) {
    struct set_batch b;
    uint64_t position = 0, left = set_count(v), wanted = count;
    enum status st = ST_OK;
    while (st == ST_OK && set_batch_next(&b, v, &position)) {
        for (size_t i = 0; i < b.count && st == ST_OK; i++) {
            if (sample_take(&call->cx->rng, &left, &wanted)) {
                reply_bulk(&call->reply, b.members[i]);
            } else {
                st = set_add(rest, b.members[i], NULL);
            }
        }
    }
    return st;
}

/* A good part of the set: what stays becomes the value. */
static enum status pop_many(struct call *call, struct entry *e, uint64_t count) {
    struct scratch rest;
    struct value_image empty;
    size_t mark = call->reply.out->len;
    set_empty_image(e->value.encoding != VALUE_PACKED, &empty);
    enum status st = scratch_init(&rest, call, VALUE_SET, &empty);
    if (st != ST_OK) {
        return st;
    }
    reply_set(&call->reply, (size_t)count);
    st = split(call, &e->value, count, &rest.value);
    if (st == ST_OK && !call->reply.out->failed) {
        st = scratch_store(&rest, call, 1, e->expire_ms);
        call_dirty(call, st == ST_OK ? count : 0);
    }
    scratch_deinit(&rest);
    if (st != ST_OK) {
        call->reply.out->len = mark;
    }
    return st;
}

static void pop_some(struct call *call, struct entry *e, uint64_t count) {
    uint64_t size = set_count(&e->value);
    if (count >= size) {
        pop_all(call, e);
        return;
    }
    enum status st =
        takes_few(&e->value, count, size) ? pop_few(call, e, count) : pop_many(call, e, count);
    if (st != ST_OK) {
        args_status_error(call, st);
    }
}

void spop_command(struct call *call) {
    struct entry e;
    int64_t count;
    if (call->argc == 2) {
        pop_one(call);
        return;
    }
    if (call->argc > 3) {
        args_syntax_error(call);
        return;
    }
    if (!args_count(call, 2, &count)) {
        return;
    }
    enum lookup found = set_find(call, 1, &e);
    if (found == LOOKUP_ABSENT || (found == LOOKUP_FOUND && count == 0)) {
        reply_set(&call->reply, 0);
    } else if (found == LOOKUP_FOUND) {
        pop_some(call, &e, (uint64_t)count);
    }
}
