/* SPDX-License-Identifier: BSD-3-Clause */
/* The arena of GC_ARENA_GUARDED builds: each record is its own allocation, poisoned behind its
 * exact length, so that a sanitizer sees an overrun by one byte and any use after free. Same
 * interface; refs are indexes, nothing is ever evacuated. */
#include "arena_priv.h"

#ifdef GC_ARENA_GUARDED

#include <stdio.h>
#include <stdlib.h>

#include "mem/account.h"

static uint64_t ref_of(const struct arena *a, size_t idx) {
    return idx < a->skip_count ? idx : idx + a->skip;
}

static size_t idx_of(const struct arena *a, uint64_t ref) {
    return (size_t)(ref < a->skip_count ? ref : ref - a->skip);
}

void arena_init(struct arena *a, const struct arena_ops *ops, void *owner, struct pages *pages) {
    *a = (struct arena){.ops = ops, .owner = owner, .pages = pages, .skip_count = SIZE_MAX};
}

bool arena_deinit_step(struct arena *a, size_t max_units) {
    for (; a->count > 0 && max_units > 0; max_units--) {
        account_free(ACCOUNT_ARENA, a->records[--a->count].ptr);
    }
    if (a->count > 0) {
        return false;
    }
    account_free(ACCOUNT_ARENA, a->records);
    arena_init(a, a->ops, a->owner, a->pages);
    return true;
}

void arena_deinit(struct arena *a) {
    arena_deinit_step(a, SIZE_MAX);
}

enum status arena_alloc(struct arena *a, size_t len, uint64_t *ref) {
    if (len == 0 || len > arena_record_max(a)) {
        return ST_RANGE;
    }
    if (a->count == a->cap) {
        size_t cap = a->cap + a->cap / 2 + 8;
        void *records = account_realloc(ACCOUNT_ARENA, a->records, cap * sizeof(a->records[0]));
        if (records == NULL) {
            return ST_NOMEM;
        }
        a->records = records;
        a->cap = cap;
    }
    char *ptr = account_alloc(ACCOUNT_ARENA, arena_round(len)); /* room for arena_refit */
    if (ptr == NULL) {
        return ST_NOMEM;
    }
    POISON(ptr + len, arena_round(len) - len);
    a->records[a->count] = (struct arena_guarded_record){.ptr = ptr, .len = len};
    a->live_bytes += arena_round(len);
    *ref = ref_of(a, a->count++);
    return ST_OK;
}

void arena_refit(struct arena *a, uint64_t ref, size_t len) {
    struct arena_guarded_record *r = &a->records[idx_of(a, ref)];
    assert(arena_round(r->len) == arena_round(len));
    r->len = len;
    UNPOISON((char *)r->ptr, len);
    POISON((char *)r->ptr + len, arena_round(len) - len);
}

void arena_free(struct arena *a, uint64_t ref, size_t len) {
    struct arena_guarded_record *r = &a->records[idx_of(a, ref)];
    assert(r->ptr != NULL && arena_round(r->len) == arena_round(len));
    a->live_bytes -= arena_round(len);
    account_free(ACCOUNT_ARENA, r->ptr);
    *r = (struct arena_guarded_record){
        0}; /* refs are not reused: a stale one never finds another record */
}

bool arena_evacuate(struct arena *a, size_t max_records) {
    return false;
}

void arena_get_stats(const struct arena *a, struct arena_stats *out) {
    *out = (struct arena_stats){
        .live_bytes = a->live_bytes, .reserved_bytes = a->live_bytes, .units = a->count};
}

void arena_each(const struct arena *a, void (*fn)(void *arg, uint64_t ref, void *record),
                void *arg) {
    for (size_t i = 0; i < a->count; i++) {
        if (a->records[i].ptr != NULL) {
            fn(arg, ref_of(a, i), a->records[i].ptr);
        }
    }
}

void arena_check(const struct arena *a) {
    uint64_t live = 0;
    for (size_t i = 0; i < a->count; i++) {
        const struct arena_guarded_record *r = &a->records[i];
        if (r->ptr == NULL) {
            continue;
        }
        live += arena_round(r->len);
        if (arena_round(a->ops->record_len(r->ptr)) != arena_round(r->len)) {
            fprintf(stderr, "arena_check: record %zu has another length than it was given\n", i);
            abort();
        }
    }
    if (live != a->live_bytes) {
        fprintf(stderr, "arena_check: live bytes are miscounted\n");
        abort();
    }
}

void arena_skip_to(struct arena *a, uint64_t ref) {
    assert(a->skip == 0 && ref >= a->count);
    a->skip_count = a->count;
    a->skip = ref - a->count;
}

#endif
