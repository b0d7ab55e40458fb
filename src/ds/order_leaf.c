/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaf coding: search, change in place, and the choice of a form when leaves are laid out anew. */
#include <string.h>

#include "order_priv.h"

#define KEYS32 (UINT64_C(1) << 32)
#define GUESS_REACH 32
#define GUESS_ENTRIES_MIN (4 * GUESS_REACH)
#define REFINE_AHEAD 16 /* records in flight; more does not help (design.md 3) */

uint64_t order_record_key(const struct order *o, uint64_t ref) {
    if (UNLIKELY(o->moved != NULL) && o->moved->ref == ref) {
        return o->moved->key;
    }
    return o->ops->key_of(o->ctx, ref);
}

int order_tie(const struct order *o, uint64_t ref, const struct target *t) {
    if (t->tie != TIE_PROBE) {
        return t->tie == TIE_BEFORE ? 1 : -1;
    }
    if (o->ops->compare != NULL) {
        return o->ops->compare(o->ctx, ref, t->probe);
    }
    return (ref > t->ref) - (ref < t->ref);
}

/* ---- search ---- */

/* Entries below x (at or below it when `behind`). No branch depends on the data. */
static uint32_t bound32(const uint32_t *keys, uint32_t n, uint32_t x, bool behind) {
    const uint32_t *at = keys;
    while (n > 1) {
        uint32_t half = n / 2;
        at += half & BRANCHLESS_MASK((at[half - 1] < x) | (behind & (at[half - 1] == x)));
        n -= half;
    }
    bool below = n == 1 && (behind ? *at <= x : *at < x);
    return (uint32_t)(at - keys) + below;
}

/* The same from a guess: where keys lie evenly between the first and the last, x is within 3
 * standard deviations (sqrt(510)/2 = 11 entries) of its proportional place, two or three adjacent
 * cache lines instead of five scattered ones. Elsewhere nothing is lost but the guess.
 * With the matching order_prefetch, rank look-ups in batches of 16 over 1 M random doubles went
 * from 302-307 to 252-279 ns on a loaded machine (benchmarks/micro/ds_order.c). */
static uint32_t guess32(const uint32_t *keys, uint32_t n, uint32_t x) {
    if (n >= GUESS_ENTRIES_MIN && x > keys[0] && x <= keys[n - 1]) {
        uint64_t at = (uint64_t)(x - keys[0]) * (n - 1) / (keys[n - 1] - keys[0]);
        uint32_t lo = at > GUESS_REACH ? (uint32_t)at - GUESS_REACH : 0;
        uint32_t hi = at + GUESS_REACH < n ? (uint32_t)at + GUESS_REACH : n - 1;
        if (keys[lo] < x && x <= keys[hi]) {
            return lo + bound32(keys + lo, hi - lo, x, false);
        }
    }
    return bound32(keys, n, x, false);
}

static uint32_t bound64(const uint64_t *keys, uint32_t n, uint64_t x, bool behind) {
    const uint64_t *at = keys;
    while (n > 1) {
        uint32_t half = n / 2;
        at += half & BRANCHLESS_MASK((at[half - 1] < x) | (behind & (at[half - 1] == x)));
        n -= half;
    }
    bool below = n == 1 && (behind ? *at <= x : *at < x);
    return (uint32_t)(at - keys) + below;
}

/* Search [lo, hi), a run whose stored keys all equal the target's. */
static uint32_t search_run(const struct order *o, const struct leaf *l, uint32_t lo, uint32_t hi,
                           const struct target *t, bool *equal) {
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        uint64_t ref = leaf_ref(l, mid);
        int cmp = 0;
        if (l->form & LEAF_LOSSY) {
            uint64_t key = order_record_key(o, ref);
            cmp = (key > t->key) - (key < t->key);
        }
        cmp = cmp != 0 ? cmp : order_tie(o, ref, t);
        if (cmp < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
            *equal = cmp == 0;
            if (cmp == 0) {
                break;
            }
        }
    }
    return *equal ? hi : lo;
}

uint32_t leaf_search(const struct order *o, const struct leaf *l, const struct target *t,
                     bool *equal) {
    uint32_t n = l->count;
    *equal = false;
    if (l->form & LEAF_WIDE_KEY) {
        const uint64_t *keys = leaf_key64(l);
        uint32_t lo = bound64(keys, n, t->key, false);
        if (lo == n || keys[lo] != t->key) {
            return lo;
        }
        return search_run(o, l, lo, lo + bound64(keys + lo, n - lo, t->key, true), t, equal);
    }
    uint64_t upper = t->key >> l->shift;
    if (upper < l->base) {
        return 0;
    }
    if (upper - l->base >= KEYS32) {
        return n;
    }
    const uint32_t *keys = leaf_key32(l);
    uint32_t x = (uint32_t)(upper - l->base);
    uint32_t lo = guess32(keys, n, x);
    if (lo == n || keys[lo] != x) {
        return lo;
    }
    uint32_t hi = lo + 1;
    if (hi < n && keys[hi] == x) {
        hi += bound32(keys + hi, n - hi, x, true);
    }
    if (!(l->form & LEAF_LOSSY) && upper << l->shift != t->key) {
        return hi; /* the run's low bits are zero, the target's are not */
    }
    return search_run(o, l, lo, hi, t, equal);
}

/* ---- change in place ---- */

static bool key_fits(const struct leaf *l, uint64_t key) {
    if (l->form & LEAF_WIDE_KEY) {
        return true;
    }
    uint64_t upper = key >> l->shift;
    if (upper < l->base || upper - l->base >= KEYS32) {
        return false;
    }
    return l->form & LEAF_LOSSY || upper << l->shift == key;
}

static bool ref_fits(const struct leaf *l, uint64_t ref) {
    return ref < KEYS32 || l->form & LEAF_WIDE_REF;
}

static void put_key(struct leaf *l, uint32_t pos, uint64_t key) {
    if (l->form & LEAF_WIDE_KEY) {
        leaf_key64(l)[pos] = key;
    } else {
        leaf_key32(l)[pos] = (uint32_t)((key >> l->shift) - l->base);
    }
}

static void put_ref(struct leaf *l, uint32_t pos, uint64_t ref) {
    leaf_ref32(l)[pos] = (uint32_t)ref;
    if (l->form & LEAF_WIDE_REF) {
        leaf_ref_hi(l)[pos] = (uint8_t)(ref >> 32);
    }
}

bool leaf_fits(const struct leaf *l, uint64_t key, uint64_t ref) {
    return l->count < l->cap && key_fits(l, key) && ref_fits(l, ref);
}

/* Move n entries from one position to another in each array. */
static void shift_entries(struct leaf *l, uint32_t to, uint32_t from, uint32_t n) {
    if (l->form & LEAF_WIDE_KEY) {
        memmove(leaf_key64(l) + to, leaf_key64(l) + from, n * sizeof(uint64_t));
    } else {
        memmove(leaf_key32(l) + to, leaf_key32(l) + from, n * sizeof(uint32_t));
    }
    memmove(leaf_ref32(l) + to, leaf_ref32(l) + from, n * sizeof(uint32_t));
    if (l->form & LEAF_WIDE_REF) {
        memmove(leaf_ref_hi(l) + to, leaf_ref_hi(l) + from, n);
    }
}

void leaf_insert(struct leaf *l, uint32_t pos, uint64_t key, uint64_t ref) {
    assert(leaf_fits(l, key, ref) && pos <= l->count);
    shift_entries(l, pos + 1, pos, l->count - pos);
    l->count++;
    put_key(l, pos, key);
    put_ref(l, pos, ref);
}

void leaf_remove(struct leaf *l, uint32_t pos, uint32_t n) {
    assert(pos + n <= l->count);
    shift_entries(l, pos, pos + n, l->count - pos - n);
    l->count = (uint16_t)(l->count - n);
}

bool leaf_set_key(struct leaf *l, uint32_t pos, uint64_t key) {
    if (!key_fits(l, key)) {
        return false;
    }
    put_key(l, pos, key);
    return true;
}

bool leaf_set_ref(struct leaf *l, uint32_t pos, uint64_t ref) {
    if (!ref_fits(l, ref)) {
        return false;
    }
    put_ref(l, pos, ref);
    return true;
}

/* ---- laying out anew ---- */

void gather_leaf(struct gather *g, const struct leaf *l) {
    uint64_t *key = g->key + g->len, *ref = g->ref + g->len;
    uint32_t n = l->count;
    assert(g->len + n <= ARRAY_LEN(g->key));
    if (l->form & LEAF_WIDE_KEY) {
        memcpy(key, leaf_key64(l), n * sizeof(*key));
    } else {
        const uint32_t *stored = leaf_key32(l);
        for (uint32_t i = 0; i < n; i++) {
            key[i] = (l->base + stored[i]) << l->shift;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        ref[i] = leaf_ref(l, i);
    }
    memset(g->grain + g->len, l->form & LEAF_LOSSY ? l->shift : 0, n);
    g->len += n;
}

void gather_entry(struct gather *g, uint32_t pos, uint64_t key, uint64_t ref) {
    assert(pos <= g->len && g->len < ARRAY_LEN(g->key));
    uint32_t behind = g->len - pos;
    memmove(g->key + pos + 1, g->key + pos, behind * sizeof(*g->key));
    memmove(g->ref + pos + 1, g->ref + pos, behind * sizeof(*g->ref));
    memmove(g->grain + pos + 1, g->grain + pos, behind);
    g->key[pos] = key;
    g->ref[pos] = ref;
    g->grain[pos] = 0;
    g->len++;
}

void gather_refine(const struct order *o, struct gather *g, uint32_t from, uint32_t len) {
    void (*prefetch)(void *, uint64_t) = o->ops->prefetch;
    for (uint32_t i = 0; i < len; i++) {
        if (prefetch != NULL && i % REFINE_AHEAD == 0) {
            for (uint32_t j = i; j < len && j < i + REFINE_AHEAD; j++) {
                prefetch(o->ctx, g->ref[from + j]);
            }
        }
        if (g->grain[from + i] != 0) {
            g->key[from + i] = order_record_key(o, g->ref[from + i]);
            g->grain[from + i] = 0;
        }
    }
}

/* The least shift after which the distance from lo to hi fits 32 bits. */
static unsigned shift_for(uint64_t lo, uint64_t hi) {
    uint64_t span = (hi - lo) >> 32;
    unsigned shift = span == 0 ? 0 : 64 - (unsigned)__builtin_clzll(span);
    if ((hi >> shift) - (lo >> shift) >= KEYS32) {
        shift++;
    }
    return shift;
}

struct leaf_plan leaf_plan_make(const struct order *o, const struct gather *g, uint32_t from,
                                uint32_t len) {
    uint64_t low_bits = 0, ref_bits = 0;
    unsigned grain = 0;
    for (uint32_t i = from; i < from + len; i++) {
        low_bits |= g->key[i];
        ref_bits |= g->ref[i];
        grain = g->grain[i] > grain ? g->grain[i] : grain;
    }
    uint64_t lo = g->key[from], hi = g->key[from + len - 1];
    unsigned least = shift_for(lo, hi), shift = least;
    struct leaf_plan plan = {.form = ref_bits >= KEYS32 ? LEAF_WIDE_REF : 0};
    if (grain == 0 && (low_bits & ((UINT64_C(1) << least) - 1)) == 0) {
        /* exact */
    } else if (o->ops->key_of != NULL) {
        plan.form |= LEAF_LOSSY;
        shift = grain > least ? grain : least;
        plan.lost = (uint8_t)(shift - least);
    } else {
        plan.form |= LEAF_WIDE_KEY;
        shift = 0;
    }
    plan.shift = (uint8_t)shift;
    if (!(plan.form & LEAF_WIDE_KEY)) {
        /* Centre the keys in the 32-bit window, so that a leaf can grow to both sides before it
         * must be laid out anew. */
        uint64_t first = lo >> shift, spare = (KEYS32 - 1 - ((hi >> shift) - first)) / 2;
        plan.base = first - (first < spare ? first : spare);
    }
    plan.bytes_needed = (uint32_t)(sizeof(struct leaf) + len * leaf_entry_bytes(plan.form));
    return plan;
}

void leaf_encode(struct leaf *l, const struct leaf_plan *plan, const struct gather *g,
                 uint32_t from, uint32_t len) {
    assert(len <= l->cap);
    l->base = plan->base;
    l->shift = plan->shift;
    l->form = plan->form;
    l->count = (uint16_t)len;
    if (l->form & LEAF_WIDE_KEY) {
        memcpy(leaf_key64(l), g->key + from, len * sizeof(uint64_t));
    } else {
        uint32_t *stored = leaf_key32(l);
        for (uint32_t i = 0; i < len; i++) {
            stored[i] = (uint32_t)((g->key[from + i] >> plan->shift) - plan->base);
        }
    }
    for (uint32_t i = 0; i < len; i++) {
        put_ref(l, i, g->ref[from + i]);
    }
}
