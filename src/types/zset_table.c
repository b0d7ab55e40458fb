/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/hash.h"
#include "mem/account.h"
#include "types/varlen.h"
#include "zset_priv.h"

/* In place of mlen: no length starts so (types/varlen.h). */
#define BOXED_MARK 0xF2

/* Live records moved out of a thinning unit for each record written or removed, as in a hash. */
#define EVACUATE_PER_WRITE 8

/* Entries read, or removed, at a time: their records' misses overlap. */
#define BATCH 64

/* A member too long for the arena: one allocation that its record points at. */
struct box {
    size_t len;
    char bytes[];
};

/* ---- records --------------------------------------------------------------------------------- */

static enum score_kind record_kind(const char *record) {
    return (enum score_kind)record[0];
}

static bool is_boxed(const char *record) {
    return (unsigned char)record[1] == BOXED_MARK;
}

/* Offset of the score: behind kind and length, or mark. */
static size_t score_off(const char *record) {
    unsigned char first = (unsigned char)record[1];
    return LIKELY(first <= VARLEN_ONE_MAX || first == BOXED_MARK) ? 2 : first == 0xF0 ? 4 : 6;
}

static double record_score(const char *record) {
    return score_get(record + score_off(record), record_kind(record));
}

static uint64_t record_key(const char *record) {
    return order_key_from_double(record_score(record));
}

static struct box *box_of(const char *record) {
    struct box *box;
    memcpy(&box, record + 2 + score_size(record_kind(record)), sizeof(box));
    return box;
}

static struct bytes record_member(const char *record) {
    struct bytes member;
    if (UNLIKELY(is_boxed(record))) {
        const struct box *box = box_of(record);
        return BYTES(box->bytes, box->len);
    }
    member.ptr = record + 1 + varlen_get(record + 1, &member.len);
    member.ptr += score_size(record_kind(record));
    return member;
}

static size_t plain_len(size_t member_len, enum score_kind kind) {
    return 1 + varlen_size(member_len) + score_size(kind) + member_len;
}

static size_t boxed_len(enum score_kind kind) {
    return 2 + score_size(kind) + sizeof(struct box *);
}

static size_t record_len(const void *record) {
    enum score_kind kind = record_kind(record);
    if (UNLIKELY(is_boxed(record))) {
        return boxed_len(kind);
    }
    return plain_len(record_member(record).len, kind);
}

static enum status box_create(struct zset *z, struct bytes member, struct box **out) {
    struct box *box = account_alloc(ACCOUNT_VALUE, sizeof(*box) + member.len);
    if (box == NULL) {
        return ST_NOMEM;
    }
    box->len = member.len;
    memcpy(box->bytes, member.ptr, member.len);
    z->boxed_bytes += sizeof(*box) + member.len;
    *out = box;
    return ST_OK;
}

static void box_destroy(struct zset *z, struct box *box) {
    z->boxed_bytes -= sizeof(*box) + box->len;
    account_free(ACCOUNT_VALUE, box);
}

static enum status create_boxed(struct zset *z, struct bytes member, double score, uint64_t *ref) {
    enum score_kind kind = score_kind_of(score);
    struct box *box;
    enum status st = box_create(z, member, &box);
    if (st != ST_OK) {
        return st;
    }
    st = arena_alloc(&z->arena, boxed_len(kind), ref);
    if (st != ST_OK) {
        box_destroy(z, box);
        return st;
    }
    char *record = arena_at(&z->arena, *ref);
    record[0] = (char)kind;
    record[1] = (char)BOXED_MARK;
    score_put(record + 2, kind, score);
    memcpy(record + 2 + score_size(kind), &box, sizeof(box));
    return ST_OK;
}

/* A new record. Whether it is boxed does not depend on the score, which may come to need all of its
 * eight bytes. */
static enum status record_create(struct zset *z, struct bytes member, double score, uint64_t *ref) {
    if (UNLIKELY(plain_len(member.len, SCORE_DOUBLE) > arena_record_max(&z->arena))) {
        return create_boxed(z, member, score, ref);
    }
    enum score_kind kind = score_kind_of(score);
    enum status st = arena_alloc(&z->arena, plain_len(member.len, kind), ref);
    if (st != ST_OK) {
        return st;
    }
    char *p = arena_at(&z->arena, *ref);
    *p++ = (char)kind;
    p += varlen_put(p, member.len);
    score_put(p, kind, score);
    if (member.len != 0) { /* an empty view may have no address */
        memcpy(p + score_size(kind), member.ptr, member.len);
    }
    return ST_OK;
}

/* A copy of a record with another score; a box is then shared by both until one is freed alone. */
static enum status record_copy(struct zset *z, const char *record, double score, uint64_t *ref) {
    enum score_kind kind = score_kind_of(score);
    size_t head = score_off(record), old_size = score_size(record_kind(record));
    size_t tail_len = record_len(record) - head - old_size;
    enum status st = arena_alloc(&z->arena, head + score_size(kind) + tail_len, ref);
    if (st == ST_OK) {
        char *copy = arena_at(&z->arena, *ref);
        memcpy(copy, record, head);
        copy[0] = (char)kind;
        score_put(copy + head, kind, score);
        memcpy(copy + head + score_size(kind), record + head + old_size, tail_len);
    }
    return st;
}

/* Free a record alone, or with its box. */
static void record_free(struct zset *z, uint64_t ref) {
    arena_free(&z->arena, ref, record_len(arena_at(&z->arena, ref)));
}

static void record_destroy(struct zset *z, uint64_t ref) {
    const char *record = arena_at(&z->arena, ref);
    struct box *box = is_boxed(record) ? box_of(record) : NULL;
    record_free(z, ref);
    if (UNLIKELY(box != NULL)) {
        box_destroy(z, box);
    }
}

/* ---- what the index, the tree and the arena ask ---------------------------------------------- */

static uint64_t index_hash_of(void *owner, uint64_t ref) {
    struct zset *z = owner;
    return hash_bytes(record_member(arena_at(&z->arena, ref)));
}

static bool index_matches(void *owner, uint64_t ref, struct bytes key) {
    struct zset *z = owner;
    return bytes_equal(record_member(arena_at(&z->arena, ref)), key);
}

static int order_compare(void *ctx, uint64_t ref, const void *probe) {
    struct zset *z = ctx;
    const struct bytes *member = probe;
    return bytes_compare(record_member(arena_at(&z->arena, ref)), *member);
}

static uint64_t order_key_of(void *ctx, uint64_t ref) {
    struct zset *z = ctx;
    return record_key(arena_at(&z->arena, ref));
}

static void prefetch_record(void *owner, uint64_t ref) {
    struct zset *z = owner;
    const char *record = arena_at(&z->arena, ref);
    PREFETCH(record);
    PREFETCH(record + 31);
}

static const struct swiss_ops index_ops = {
    .hash_of = index_hash_of, .matches = index_matches, .prefetch = prefetch_record};

static const struct order_ops order_ops = {
    .compare = order_compare, .key_of = order_key_of, .prefetch = prefetch_record};

/* The index first: the tree's answer is the last that may fail, and giving the index its old ref
 * back cannot. */
static enum status arena_relocate(void *owner, uint64_t ref) {
    struct zset *z = owner;
    const char *record = arena_at(&z->arena, ref);
    struct bytes member = record_member(record);
    size_t len = record_len(record);
    uint64_t hash = hash_bytes(member), moved;
    enum status st = arena_alloc(&z->arena, len, &moved);
    if (st != ST_OK) {
        return st;
    }
    memcpy(arena_at(&z->arena, moved), record, len);
    st = swiss_replace(&z->index, hash, ref, moved);
    if (st == ST_OK) {
        st = order_replace_ref(&z->order, record_key(record), ref, &member, moved);
        if (st != ST_OK) {
            enum status back = swiss_replace(&z->index, hash, moved, ref);
            assert(back == ST_OK);
            (void)back;
        }
    }
    arena_free(&z->arena, st == ST_OK ? ref : moved, len);
    return st;
}

static void arena_prefetch(void *owner, const uint64_t *refs, size_t count) {
    struct zset *z = owner;
    for (size_t i = 0; i < count; i++) {
        swiss_prefetch(&z->index, index_hash_of(z, refs[i]));
        order_prefetch(&z->order, order_key_of(z, refs[i]));
    }
}

static const struct arena_ops record_ops = {
    .record_len = record_len, .relocate = arena_relocate, .prefetch = arena_prefetch};

static void compact_a_little(struct zset *z, size_t writes) {
    if (UNLIKELY(arena_wants_evacuation(&z->arena))) {
        arena_evacuate(&z->arena, writes * EVACUATE_PER_WRITE);
    }
}

/* ---- by member ------------------------------------------------------------------------------- */

struct zset_entry ztable_entry(const struct zset *z, uint64_t ref) {
    const char *record = arena_at(&z->arena, ref);
    return (struct zset_entry){record_member(record), record_score(record)};
}

bool ztable_score(const struct zset *z, struct bytes member, double *score) {
    uint64_t ref = swiss_find(&z->index, hash_bytes(member), member);
    if (ref == SWISS_NONE) {
        return false;
    }
    *score = record_score(arena_at(&z->arena, ref));
    return true;
}

static enum status add(struct zset *z, uint64_t hash, struct bytes member, double score) {
    uint64_t ref, key = order_key_from_double(score);
    enum status st = record_create(z, member, score, &ref);
    if (st != ST_OK) {
        return st;
    }
    st = order_insert(&z->order, key, ref, &member);
    if (st != ST_OK) {
        record_destroy(z, ref);
        return st;
    }
    st = swiss_insert(&z->index, hash, ref);
    if (st != ST_OK) {
        order_erase(&z->order, key, ref, &member);
        record_destroy(z, ref);
    }
    return st;
}

/* The record gets a wider form elsewhere. The tree sees two entries of one member for a moment;
 * their keys differ. */
static enum status widen(struct zset *z, uint64_t hash, uint64_t ref, struct bytes member,
                         double score) {
    uint64_t old_key = order_key_of(z, ref), new_key = order_key_from_double(score), moved;
    enum status st = record_copy(z, arena_at(&z->arena, ref), score, &moved);
    if (st != ST_OK) {
        return st;
    }
    st = order_insert(&z->order, new_key, moved, &member);
    if (st != ST_OK) {
        record_free(z, moved);
        return st;
    }
    st = swiss_replace(&z->index, hash, ref, moved);
    if (st != ST_OK) {
        order_erase(&z->order, new_key, moved, &member);
        record_free(z, moved);
        return st;
    }
    order_erase(&z->order, old_key, ref, &member);
    record_free(z, ref);
    return ST_OK;
}

static enum status change(struct zset *z, uint64_t hash, uint64_t ref, struct bytes member,
                          double score) {
    char *record = arena_at(&z->arena, ref);
    double old_score = record_score(record);
    if (score == old_score) {
        return ST_OK;
    }
    if (score_kind_of(score) > record_kind(record)) {
        return widen(z, hash, ref, member, score);
    }
    order_prefetch(&z->order, order_key_from_double(old_score));
    enum status st = order_update_key(&z->order, order_key_from_double(old_score), ref, &member,
                                      order_key_from_double(score));
    if (st == ST_OK) {
        score_put(record + score_off(record), record_kind(record), score);
    }
    return st;
}

enum status ztable_set(struct zset *z, struct bytes member, double score, bool *added) {
    uint64_t hash = hash_bytes(member);
    order_prefetch(&z->order, order_key_from_double(score));
    uint64_t ref = swiss_find(&z->index, hash, member);
    enum status st =
        ref == SWISS_NONE ? add(z, hash, member, score) : change(z, hash, ref, member, score);
    if (st == ST_OK) {
        *added = ref == SWISS_NONE;
        compact_a_little(z, 1);
    }
    return st;
}

bool ztable_delete(struct zset *z, struct bytes member) {
    uint64_t hash = hash_bytes(member);
    uint64_t ref = swiss_find(&z->index, hash, member);
    if (ref == SWISS_NONE) {
        return false;
    }
    bool erased = order_erase(&z->order, order_key_of(z, ref), ref, &member);
    assert(erased);
    (void)erased;
    swiss_erase(&z->index, hash, ref);
    record_destroy(z, ref);
    compact_a_little(z, 1);
    return true;
}

bool ztable_rank(const struct zset *z, struct bytes member, uint64_t *rank, double *score) {
    uint64_t ref = swiss_find(&z->index, hash_bytes(member), member);
    if (ref == SWISS_NONE) {
        return false;
    }
    *score = record_score(arena_at(&z->arena, ref));
    uint64_t key = order_key_from_double(*score);
    order_prefetch(&z->order, key);
    bool found = order_find(&z->order, key, ref, &member, rank);
    assert(found);
    return found;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void range_set(uint64_t from, uint64_t to, uint64_t *first, uint64_t *count) {
    *first = from;
    *count = to > from ? to - from : 0;
}

void ztable_range_by_score(const struct zset *z, const struct zset_score_bound *min,
                           const struct zset_score_bound *max, uint64_t *first, uint64_t *count) {
    uint64_t from = order_lower_bound(&z->order, order_key_from_double(min->score), min->exclusive);
    uint64_t to = order_lower_bound(&z->order, order_key_from_double(max->score), !max->exclusive);
    range_set(from, to, first, count);
}

/* Rank of the first entry at or behind a bound (behind: behind it), among entries with this key. */
static uint64_t lex_rank(const struct zset *z, uint64_t key, const struct zset_lex_bound *bound,
                         bool behind) {
    if (bound->kind != ZSET_LEX_MEMBER) {
        return bound->kind == ZSET_LEX_MIN ? 0 : order_count(&z->order);
    }
    return order_lower_bound_tie(&z->order, key, 0, &bound->member, behind);
}

void ztable_range_by_lex(const struct zset *z, const struct zset_lex_bound *min,
                         const struct zset_lex_bound *max, uint64_t *first, uint64_t *count) {
    struct order_entry e = {0};
    if (!order_first(&z->order, &e)) {
        range_set(0, 0, first, count);
        return;
    }
    range_set(lex_rank(z, e.key, min, min->exclusive), lex_rank(z, e.key, max, !max->exclusive),
              first, count);
}

size_t ztable_fetch(struct order_iter *it, bool backward, struct zset_entry *out, size_t cap) {
    struct zset *z = CONTAINER_OF(it->order, struct zset, order);
    struct order_entry entries[BATCH];
    size_t done = 0, n;
    do {
        n = cap - done < BATCH ? cap - done : BATCH;
        n = backward ? order_fetch_back(it, entries, n) : order_fetch(it, entries, n);
        for (size_t i = 0; i < n; i++) {
            prefetch_record(z, entries[i].ref);
        }
        for (size_t i = 0; i < n; i++) {
            out[done++] = ztable_entry(z, entries[i].ref);
        }
    } while (n == BATCH && done < cap);
    return done;
}

/* Remove up to BATCH entries: from the tree at once, then each from the index, while the records
 * are still there for both to read. */
static size_t delete_some(struct zset *z, uint64_t first, size_t count) {
    struct order_entry entries[BATCH];
    uint64_t hash[BATCH];
    struct order_iter it;
    order_iter_init(&it, &z->order, first);
    size_t n = order_fetch(&it, entries, count < BATCH ? count : BATCH);
    for (size_t i = 0; i < n; i++) {
        prefetch_record(z, entries[i].ref);
    }
    for (size_t i = 0; i < n; i++) {
        hash[i] = index_hash_of(z, entries[i].ref);
        swiss_prefetch(&z->index, hash[i]);
    }
    uint64_t erased = order_erase_range(&z->order, first, n);
    assert(erased == n);
    (void)erased;
    for (size_t i = 0; i < n; i++) {
        swiss_erase(&z->index, hash[i], entries[i].ref);
        record_destroy(z, entries[i].ref);
    }
    compact_a_little(z, n);
    return n;
}

uint64_t ztable_delete_range(struct zset *z, uint64_t first, uint64_t count) {
    uint64_t done = 0;
    while (done < count) {
        size_t n = delete_some(z, first, count - done < BATCH ? (size_t)(count - done) : BATCH);
        if (n == 0) {
            break;
        }
        done += n;
    }
    return done;
}

/* ---- bottom-up build ------------------------------------------------------------------------- */

static struct zset *create(struct pages *pages) {
    struct zset *z = account_alloc(ACCOUNT_VALUE, sizeof(*z));
    if (z != NULL) {
        swiss_init(&z->index, &index_ops, z);
        order_init(&z->order, &order_ops, z);
        arena_init(&z->arena, &record_ops, z, pages);
        z->boxed_bytes = 0;
        z->free_position = 0;
    }
    return z;
}

enum status ztable_build_init(struct ztable_builder *b, struct pages *pages) {
    b->z = create(pages);
    if (b->z == NULL) {
        return ST_NOMEM;
    }
    order_build_init(&b->order, &b->z->order);
    b->checked = false;
    b->pending = 0;
    return ST_OK;
}

static enum status insert_pending(struct ztable_builder *b) {
    enum status st = ST_OK;
    for (size_t i = 0; i < b->pending && st == ST_OK; i++) {
        if (b->checked && swiss_find(&b->z->index, b->hash[i],
                                     ztable_entry(b->z, b->ref[i]).member) != SWISS_NONE) {
            return ST_EXISTS;
        }
        st = swiss_insert(&b->z->index, b->hash[i], b->ref[i]);
    }
    b->pending = 0;
    return st;
}

enum status ztable_build_add(struct ztable_builder *b, const struct zset_entry *e) {
    uint64_t ref;
    enum status st = record_create(b->z, e->member, e->score, &ref);
    if (st == ST_OK) {
        st = order_build_add(&b->order, order_key_from_double(e->score), ref);
        assert(st != ST_RANGE);
    }
    if (st != ST_OK) {
        return st;
    }
    uint64_t hash = hash_bytes(e->member);
    swiss_prefetch(&b->z->index, hash);
    b->hash[b->pending] = hash;
    b->ref[b->pending++] = ref;
    return b->pending == ZTABLE_PENDING ? insert_pending(b) : ST_OK;
}

enum status ztable_build_finish(struct ztable_builder *b) {
    enum status st = insert_pending(b);
    return st == ST_OK ? order_build_finish(&b->order) : st;
}

/* ---- the whole object ------------------------------------------------------------------------ */

/* Of a record that is not read again but by this. */
static void free_box(void *arg, uint64_t ref, void *record) {
    static struct box *const none = NULL;
    struct box *box = is_boxed(record) ? box_of(record) : NULL;
    (void)ref;
    if (box != NULL) {
        box_destroy(arg, box);
        memcpy((char *)record + 2 + score_size(record_kind(record)), &none, sizeof(none));
    }
}

/* Boxes go first, found by a walk over some records a step; true when none is left. Those that the
 * walk does not find are of a set whose building failed before they were in its index. */
static bool free_boxes_step(struct zset *z, size_t budget) {
    uint64_t refs[BATCH];
    if (z->boxed_bytes == 0) {
        return true;
    }
    size_t count = swiss_next(&z->index, &z->free_position, refs, budget < BATCH ? budget : BATCH);
    for (size_t i = 0; i < count; i++) {
        free_box(z, refs[i], arena_at(&z->arena, refs[i]));
    }
    if (count == 0) {
        arena_each(&z->arena, free_box, z);
    }
    return false;
}

bool zset_free_step(struct zset *z, size_t budget) {
    if (!free_boxes_step(z, budget)) {
        return false;
    }
    if (!order_destroy_step(&z->order, budget) || !swiss_deinit_step(&z->index, budget) ||
        !arena_deinit_step(&z->arena, 1)) {
        return false;
    }
    account_free(ACCOUNT_VALUE, z);
    return true;
}

void ztable_destroy(struct zset *z) {
    while (z != NULL && !zset_free_step(z, SIZE_MAX)) {
    }
}

enum status zset_clone(const struct zset *z, struct zset **out) {
    struct ztable_builder b;
    struct zset_entry entries[BATCH];
    struct order_iter it;
    size_t n;
    order_iter_init(&it, &z->order, 0);
    enum status st = ztable_build_init(&b, z->arena.pages);
    while (st == ST_OK && (n = ztable_fetch(&it, false, entries, BATCH)) != 0) {
        for (size_t i = 0; i < n && st == ST_OK; i++) {
            st = ztable_build_add(&b, &entries[i]);
        }
    }
    if (st == ST_OK) {
        st = ztable_build_finish(&b);
    }
    if (st != ST_OK) {
        ztable_destroy(b.z);
        return st;
    }
    *out = b.z;
    return ST_OK;
}

size_t zset_bytes_held(const struct zset *z) {
    struct arena_stats stats;
    arena_get_stats(&z->arena, &stats);
    return account_good_size(sizeof(*z)) + swiss_bytes(&z->index) + order_bytes(&z->order) +
           stats.reserved_bytes + z->boxed_bytes;
}

bool zset_object_is_big(const struct zset *z) {
    return swiss_count(&z->index) > 1024 || z->boxed_bytes != 0;
}

/* ---- invariants ------------------------------------------------------------------------------ */

struct recount {
    uint64_t records;
    size_t boxed_bytes;
};

static void recount(void *arg, uint64_t ref, void *record) {
    struct recount *sum = arg;
    (void)ref;
    sum->records++;
    if (is_boxed(record)) {
        sum->boxed_bytes += sizeof(struct box) + box_of(record)->len;
    }
}

/* Every entry of the tree: in order, with its record's score, and in the index under its name. */
static void check_entries(const struct zset *z) {
    struct order_iter it;
    struct order_entry e;
    struct zset_entry last = {{NULL, 0}, 0};
    order_iter_init(&it, &z->order, 0);
    for (bool any = false; order_fetch(&it, &e, 1) == 1; any = true) {
        struct zset_entry now = ztable_entry(z, e.ref);
        if (e.key != order_key_from_double(now.score) ||
            (any && zset_entry_compare(&last, &now) >= 0) ||
            swiss_find(&z->index, hash_bytes(now.member), now.member) != e.ref) {
            abort();
        }
        last = now;
    }
}

void ztable_check(const struct zset *z) {
    struct recount sum = {0, 0};
    swiss_check(&z->index);
    arena_check(&z->arena);
    arena_each(&z->arena, recount, &sum);
    if (!order_check(&z->order) || sum.boxed_bytes != z->boxed_bytes ||
        sum.records != swiss_count(&z->index) || sum.records != order_count(&z->order)) {
        abort();
    }
    check_entries(z);
}
