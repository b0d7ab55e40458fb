/* SPDX-License-Identifier: BSD-3-Clause */
/* A struct set is a struct ktable by another name. */
#include "types/set.h"

#include <stdlib.h>

#include "keyed_priv.h"
#include "mem/account.h"
#include "run_priv.h"
#include "set_priv.h"

static bool is_ints(const struct value *v) {
    return v->encoding == VALUE_INT;
}

static bool is_packed(const struct value *v) {
    return v->encoding == VALUE_PACKED;
}

static bool is_table(const struct value *v) {
    return v->encoding == VALUE_HEAP;
}

void set_empty_image(bool integers, struct value_image *image) {
    size_t len = integers ? INTS_HEAD_LEN : RUN_COUNT_LEN;
    image->encoding = integers ? VALUE_INT : VALUE_PACKED;
    memset(image->small, 0, len);
    if (integers) {
        memcpy(image->small, ints_empty, len);
    }
    image->data = BYTES(image->small, len);
}

uint64_t set_count(const struct value *v) {
    if (is_table(v)) {
        return swiss_count(&keyed_table(v)->index);
    }
    return is_ints(v) ? ints_count(v->data) : run_count(v->data);
}

bool set_contains(const struct value *v, struct bytes member) {
    int64_t n;
    size_t index;
    if (is_table(v)) {
        return ktable_find(keyed_table(v), member) != SWISS_NONE;
    }
    if (is_packed(v)) {
        return kpacked_find(v->data, KPACKED_MEMBERS, member).found;
    }
    return number_parse_i64(member, &n) && ints_find(v->data, n, &index);
}

/* ---- other forms ----------------------------------------------------------------------------- */

static struct bytes int_text(const struct value *v, size_t index, char *scratch) {
    return BYTES(scratch, number_format_i64(scratch, ints_at(v->data, index)));
}

/* Bytes of all integers written out, and of the longest. */
static size_t int_texts_len(const struct value *v, size_t *longest) {
    char scratch[SET_SCRATCH_LEN];
    size_t sum = 0;
    *longest = 0;
    for (size_t i = 0; i < ints_count(v->data); i++) {
        size_t len = int_text(v, i, scratch).len;
        sum += len;
        *longest = len > *longest ? len : *longest;
    }
    return sum;
}

/* Integers, and one more member that is none, become a packed run. ST_RANGE: it would be too large
 * for one. */
static enum status pack_ints(struct value *v, struct bytes member) {
    const struct type_env *env = v->host->env;
    size_t longest, count = ints_count(v->data);
    if (count >= env->set_packed_entries_max || count >= RUN_COUNT_MAX) {
        return ST_RANGE;
    }
    size_t data_len = int_texts_len(v, &longest) + member.len;
    size_t len = kpacked_len(KPACKED_MEMBERS, count + 1, data_len);
    longest = longest > member.len ? longest : member.len;
    if (longest > env->set_packed_element_max || longest > UINT8_MAX || len > KPACKED_BYTES_MAX) {
        return ST_RANGE;
    }
    char *run = account_alloc(ACCOUNT_VALUE, len);
    if (run == NULL) {
        return ST_NOMEM;
    }
    struct kpacked_iter it = kpacked_build_begin(run, count + 1);
    char scratch[SET_SCRATCH_LEN];
    for (size_t i = 0; i < count; i++) {
        kpacked_build_add(run, &it, int_text(v, i, scratch));
    }
    kpacked_build_add(run, &it, member);
    enum status st = value_resize(v, VALUE_PACKED, len);
    if (st == ST_OK) {
        memcpy(v->data, run, len);
    }
    account_free(ACCOUNT_VALUE, run);
    return st;
}

static enum status table_from_ints(const struct value *v, struct ktable **out) {
    struct ktable *t = ktable_create(v->host->env->pages, false);
    enum status st = t != NULL ? ST_OK : ST_NOMEM;
    for (size_t i = 0; i < ints_count(v->data) && st == ST_OK; i++) {
        char scratch[SET_SCRATCH_LEN];
        struct keyed entry = {.key = int_text(v, i, scratch)};
        bool added;
        st = ktable_set(t, &entry, &added);
    }
    *out = t;
    return st;
}

/* A table that has one member more. */
static enum status convert_and_add(struct value *v, const struct keyed *entry) {
    struct ktable *t;
    bool added;
    enum status st =
        is_ints(v) ? table_from_ints(v, &t) : ktable_from_packed(v, KPACKED_MEMBERS, &t);
    if (st == ST_OK) {
        st = ktable_set(t, entry, &added);
    }
    return ktable_install(v, t, st);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* ST_RANGE from these two: the set must become a table. */
static enum status add_to_ints(struct value *v, struct bytes member, bool *added) {
    int64_t n;
    size_t index;
    if (!number_parse_i64(member, &n)) {
        *added = true;
        return pack_ints(v, member);
    }
    *added = !ints_find(v->data, n, &index);
    if (!*added) {
        return ST_OK;
    }
    return ints_count(v->data) < v->host->env->set_int_entries_max ? ints_insert(v, index, n)
                                                                   : ST_RANGE;
}

static enum status add_to_packed(struct value *v, const struct keyed *entry, bool *added) {
    const struct type_env *env = v->host->env;
    *added = !kpacked_find(v->data, KPACKED_MEMBERS, entry->key).found;
    if (!*added) {
        return ST_OK;
    }
    return kpacked_fits(v->data, v->len, KPACKED_MEMBERS, entry, env->set_packed_entries_max,
                        env->set_packed_element_max)
               ? kpacked_append(v, KPACKED_MEMBERS, entry)
               : ST_RANGE;
}

enum status set_add(struct value *v, struct bytes member, bool *added) {
    bool is_new;
    struct keyed entry = {.key = member};
    enum status st;
    if (is_table(v)) {
        st = ktable_set(keyed_table(v), &entry, &is_new);
    } else {
        st = is_ints(v) ? add_to_ints(v, member, &is_new) : add_to_packed(v, &entry, &is_new);
        if (st == ST_RANGE) {
            st = convert_and_add(v, &entry);
        }
    }
    if (st == ST_OK && added != NULL) {
        *added = is_new;
    }
    return st;
}

enum status set_expect(struct value *v, uint64_t count) {
    const struct type_env *env = v->host->env;
    assert(!is_table(v) && set_count(v) == 0);
    return count > env->set_int_entries_max && count > env->set_packed_entries_max
               ? ktable_expect(v, KPACKED_MEMBERS, count)
               : ST_OK;
}

static enum status add_group(struct ktable *t, const struct bytes *members, size_t count) {
    struct keyed entries[KTABLE_BATCH];
    for (size_t i = 0; i < count; i++) {
        entries[i] = (struct keyed){.key = members[i]};
    }
    return ktable_add_all(t, entries, count);
}

enum status set_add_all(struct value *v, const struct bytes *members, size_t count) {
    enum status st = ST_OK;
    for (size_t done = 0; done < count && st == ST_OK;) {
        size_t left = count - done, n = left < KTABLE_BATCH ? left : KTABLE_BATCH;
        bool added = true;
        if (is_table(v)) {
            st = add_group(keyed_table(v), members + done, n);
        } else {
            n = 1;
            st = set_add(v, members[done], &added);
        }
        st = added || st != ST_OK ? st : ST_EXISTS;
        done += n;
    }
    return st;
}

static bool remove_int(struct value *v, struct bytes member) {
    int64_t n;
    size_t index;
    if (!number_parse_i64(member, &n) || !ints_find(v->data, n, &index)) {
        return false;
    }
    ints_delete(v, index);
    return true;
}

bool set_remove(struct value *v, struct bytes member) {
    if (is_table(v)) {
        return ktable_delete(keyed_table(v), member);
    }
    if (is_ints(v)) {
        return remove_int(v, member);
    }
    struct kpacked_spot spot = kpacked_find(v->data, KPACKED_MEMBERS, member);
    if (spot.found) {
        kpacked_delete(v, KPACKED_MEMBERS, &spot);
    }
    return spot.found;
}

/* ---- walks ----------------------------------------------------------------------------------- */

static size_t next_ints(const struct value *v, uint64_t *position, struct bytes *members,
                        size_t cap, char *scratch) {
    size_t count = ints_count(v->data), filled = 0;
    for (; *position < count && filled < cap; filled++) {
        members[filled] = int_text(v, (size_t)(*position)++, scratch + filled * SET_SCRATCH_LEN);
    }
    return filled;
}

size_t set_next(const struct value *v, uint64_t *position, struct bytes *members, size_t cap,
                char *scratch) {
    struct keyed entries[KTABLE_BATCH];
    if (is_ints(v)) {
        return next_ints(v, position, members, cap, scratch);
    }
    cap = cap < KTABLE_BATCH ? cap : KTABLE_BATCH;
    size_t count = is_packed(v) ? kpacked_next(v->data, KPACKED_MEMBERS, position, entries, cap)
                                : ktable_next(keyed_table(v), position, entries, cap);
    for (size_t i = 0; i < count; i++) {
        members[i] = entries[i].key;
    }
    return count;
}

struct scan_arg {
    const struct ktable *t;
    set_visit fn;
    void *arg;
};

static void scan_visit(void *arg, uint64_t ref) {
    const struct scan_arg *scan = arg;
    scan->fn(scan->arg, ktable_read(scan->t, ref).key);
}

uint64_t set_scan(const struct value *v, uint64_t cursor, size_t want, set_visit fn, void *arg) {
    if (is_table(v)) {
        struct scan_arg scan = {keyed_table(v), fn, arg};
        return swiss_scan(&scan.t->index, cursor, want, scan_visit, &scan);
    }
    char scratch[SET_SCRATCH_LEN];
    struct bytes member;
    uint64_t position = 0;
    while (set_next(v, &position, &member, 1, scratch) != 0) {
        fn(arg, member);
    }
    return 0;
}

struct bytes set_random(const struct value *v, struct rng *rng, char *scratch) {
    if (is_table(v)) {
        const struct ktable *t = keyed_table(v);
        return ktable_read(t, swiss_random(&t->index, rng)).key;
    }
    size_t index = (size_t)rng_below(rng, set_count(v));
    if (is_ints(v)) {
        return int_text(v, index, scratch);
    }
    struct kpacked_iter it = kpacked_seek(v->data, KPACKED_MEMBERS, index);
    return kpacked_read(v->data, KPACKED_MEMBERS, &it).key;
}

void set_prefetch_index(const struct value *v, uint64_t member_hash) {
    if (is_table(v)) {
        ktable_prefetch_index(keyed_table(v), member_hash);
    }
}

void set_prefetch_record(const struct value *v, uint64_t member_hash) {
    if (is_table(v)) {
        ktable_prefetch_record(keyed_table(v), member_hash);
    }
}

/* ---- the object ------------------------------------------------------------------------------ */

static const struct ktable *table_of(const struct set *s) {
    return (const struct ktable *)(const void *)s;
}

bool set_free_step(struct set *s, size_t budget) {
    return ktable_free_step((struct ktable *)(void *)s, budget);
}

enum status set_clone(const struct set *s, struct set **out) {
    struct ktable *copy;
    enum status st = ktable_clone(table_of(s), &copy);
    if (st == ST_OK) {
        *out = (struct set *)(void *)copy;
    }
    return st;
}

size_t set_bytes_held(const struct set *s) {
    return ktable_bytes_held(table_of(s));
}

bool set_object_is_big(const struct set *s) {
    return ktable_is_big(table_of(s));
}

void set_check(const struct value *v) {
    if (is_table(v)) {
        ktable_check(keyed_table(v));
    } else if (is_ints(v) ? !ints_check(v->data, v->len)
                          : !kpacked_check(v->data, v->len, KPACKED_MEMBERS)) {
        abort();
    }
}
