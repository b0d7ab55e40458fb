/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "mem/account.h"
#include "pages_os.h"

/* One mmap of plain or THP chunks: 64 MiB of address space, or one chunk when that is longer. Costs
 * nothing until touched; few mappings keep vm.max_map_count (65530 by default) far away even at
 * terabytes. */
#define REGION_BYTES ((size_t)64 << 20)

#define BACKOFF_FIRST_US (INT64_C(1) * 1000 * 1000)
#define BACKOFF_LAST_US (INT64_C(64) * 1000 * 1000)

/* How often, at most, a backed-off pages looks whether the pool's free count changed or THP were
 * switched on (one small file read). */
#define POOL_LOOK_US (INT64_C(50) * 1000)

/* Regions looked at for the fullest one. */
#define PICK_TRIES 64

/* Regions of a kind with a free chunk are on that kind's open list; all regions are in `sorted`, by
 * address, so that a chunk finds its region by binary search. */
struct region {
    char *base;
    size_t bytes;
    enum pages_kind kind; /* what it really is */
    uint32_t chunks, used;
    uint32_t fresh; /* chunks from here on were never handed out */
    struct region *next_open, *prev_open;
    uint32_t free_count;
    uint32_t free[]; /* chunks that came back */
};

struct pages {
    struct pages_options options;
    size_t os_page_bytes; /* of the huge page asked for; 0 when plain is asked or there is none */
    struct region **sorted;
    size_t region_count, region_cap;
    struct region *open[PAGES_HUGETLB + 1];
    struct region *spare; /* at most one plain region all of whose chunks are back */
    size_t chunks[PAGES_HUGETLB + 1];
    size_t mapped_bytes, huge_mapped_bytes;

    /* Back-off after a failed huge request. */
    int64_t retry_at_us, backoff_us; /* backoff_us 0: none */
    int64_t look_at_us;
    size_t pool_free_seen;
    bool recovery_logged;

    uint64_t failures[PAGES_REASONS];
    enum pages_reason last_reason;
    int last_errno;
};

/* ---- failures and back-off ---- */

static size_t pool_free(const struct pages *p) {
    struct pages_pool pool;
    return pages_pool_read(p->os_page_bytes, &pool) == ST_OK ? pool.free : 0;
}

static void note_failure(struct pages *p, struct pages_os_error error) {
    int64_t now_us = clock_monotonic_us();
    p->backoff_us = p->backoff_us == 0 ? BACKOFF_FIRST_US : p->backoff_us * 2;
    if (p->backoff_us > BACKOFF_LAST_US) {
        p->backoff_us = BACKOFF_LAST_US;
    }
    p->retry_at_us = now_us + p->backoff_us;
    p->look_at_us = now_us + POOL_LOOK_US;
    p->pool_free_seen = p->options.kind == PAGES_HUGETLB ? pool_free(p) : 0;
    p->last_reason = error.reason;
    p->last_errno = error.code;
    if (p->failures[error.reason]++ == 0) {
        log_warning(
            "%s %s chunks: %s (%s): falling back to plain OS pages; counted from here on, see "
            "INFO memory",
            pages_kind_name(p->options.kind), p->options.what, pages_reason_text(error.reason),
            error.code != 0 ? strerror(error.code) : "no errno");
    }
}

static void note_success(struct pages *p) {
    if (p->backoff_us != 0 && !p->recovery_logged) {
        p->recovery_logged = true;
        log_notice("%s %s chunks are to be had again: new data gets them, what fell back stays on "
                   "plain OS pages; not logged from here on",
                   pages_kind_name(p->options.kind), p->options.what);
    }
    p->backoff_us = 0;
}

/* Is a huge request worth trying now? */
static bool may_ask_huge(struct pages *p) {
    if (p->os_page_bytes == 0) { /* plain is asked for, or there is no such size */
        return false;
    }
    if (p->backoff_us == 0) {
        return true;
    }
    int64_t now_us = clock_monotonic_us();
    if (now_us >= p->retry_at_us) {
        return true;
    }
    if (now_us < p->look_at_us) {
        return false;
    }
    p->look_at_us = now_us + POOL_LOOK_US;
    if (p->options.kind == PAGES_HUGETLB) {
        return pool_free(p) != p->pool_free_seen;
    }
    return p->last_reason == PAGES_REASON_THP_NEVER && !pages_os_thp_is_never();
}

/* ---- regions ---- */

static size_t region_bytes(const struct pages *p, enum pages_kind kind) {
    size_t chunk = p->options.chunk_bytes;
    /* Chunks that share a transparent huge page go back together, like those of a hugetlb one:
     * giving back a part would split it. */
    if (kind == PAGES_HUGETLB || (kind == PAGES_THP && chunk < p->os_page_bytes)) {
        return chunk > p->os_page_bytes ? chunk : p->os_page_bytes;
    }
    return chunk > REGION_BYTES ? chunk : REGION_BYTES;
}

/* The index of the first region whose base is above ptr. */
static size_t region_above(const struct pages *p, const void *ptr) {
    size_t low = 0, high = p->region_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if ((uintptr_t)p->sorted[mid]->base <= (uintptr_t)ptr) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

static void open_push(struct pages *p, struct region *r) {
    r->prev_open = NULL;
    r->next_open = p->open[r->kind];
    if (r->next_open != NULL) {
        r->next_open->prev_open = r;
    }
    p->open[r->kind] = r;
}

static void open_remove(struct pages *p, struct region *r) {
    if (r->next_open != NULL) {
        r->next_open->prev_open = r->prev_open;
    }
    if (r->prev_open != NULL) {
        r->prev_open->next_open = r->next_open;
    } else {
        p->open[r->kind] = r->next_open;
    }
}

static bool reserve_sorted(struct pages *p) {
    if (p->region_count < p->region_cap) {
        return true;
    }
    size_t cap = p->region_cap + p->region_cap / 2 + 8;
    struct region **sorted =
        account_realloc(ACCOUNT_OTHER, p->sorted, cap * sizeof(struct region *));
    if (sorted == NULL) {
        return false;
    }
    p->sorted = sorted;
    p->region_cap = cap;
    return true;
}

static void *map_kind(const struct pages *p, enum pages_kind kind, size_t bytes,
                      struct pages_os_error *error) {
    size_t chunk = p->options.chunk_bytes;
    if (kind == PAGES_HUGETLB) {
        return pages_os_map_hugetlb(bytes, p->os_page_bytes, chunk, error);
    }
    if (kind == PAGES_PLAIN) {
        return pages_os_map(bytes, chunk, false, error);
    }
    if (pages_os_thp_is_never()) {
        *error = (struct pages_os_error){.reason = PAGES_REASON_THP_NEVER};
        return NULL;
    }
    return pages_os_map(bytes, chunk > p->os_page_bytes ? chunk : p->os_page_bytes, true, error);
}

/* Map a region and put it on its kind's open list. NULL: *error says why (reason NONE: our own
 * tables have no memory). */
static struct region *region_map(struct pages *p, enum pages_kind kind,
                                 struct pages_os_error *error) {
    *error = (struct pages_os_error){.reason = PAGES_REASON_NONE};
    size_t bytes = region_bytes(p, kind);
    size_t chunks = bytes / p->options.chunk_bytes;
    if (!reserve_sorted(p)) {
        return NULL;
    }
    struct region *r = account_alloc(ACCOUNT_OTHER, sizeof(*r) + chunks * sizeof(r->free[0]));
    if (r == NULL) {
        return NULL;
    }
    char *base = map_kind(p, kind, bytes, error);
    if (base == NULL) {
        account_free(ACCOUNT_OTHER, r);
        return NULL;
    }
    *r = (struct region){.base = base, .bytes = bytes, .kind = kind, .chunks = (uint32_t)chunks};
    size_t at = region_above(p, base);
    memmove(&p->sorted[at + 1], &p->sorted[at], (p->region_count - at) * sizeof(p->sorted[0]));
    p->sorted[at] = r;
    p->region_count++;
    p->mapped_bytes += bytes;
    p->huge_mapped_bytes += kind == PAGES_PLAIN ? 0 : bytes;
    open_push(p, r);
    return r;
}

static void region_unmap(struct pages *p, struct region *r) {
    if (r->used < r->chunks) {
        open_remove(p, r);
    }
    size_t at = region_above(p, r->base);
    memmove(&p->sorted[at - 1], &p->sorted[at], (p->region_count - at) * sizeof(p->sorted[0]));
    p->region_count--;
    p->mapped_bytes -= r->bytes;
    p->huge_mapped_bytes -= r->kind == PAGES_PLAIN ? 0 : r->bytes;
    munmap(r->base, r->bytes);
    account_free(ACCOUNT_OTHER, r);
}

static void *region_take(struct pages *p, struct region *r) {
    uint32_t idx = r->free_count > 0 ? r->free[--r->free_count] : r->fresh++;
    if (++r->used == r->chunks) {
        open_remove(p, r);
    }
    if (r == p->spare) {
        p->spare = NULL;
    }
    p->chunks[r->kind]++;
    return r->base + (size_t)idx * p->options.chunk_bytes;
}

/* ---- public ---- */

enum status pages_create(const struct pages_options *options, struct pages **out) {
    size_t chunk = options->chunk_bytes;
    if (chunk < ((size_t)64 << 10) || chunk > ((size_t)1 << 30) || (chunk & (chunk - 1)) != 0) {
        return ST_RANGE;
    }
    struct pages *p = account_alloc(ACCOUNT_OTHER, sizeof(*p));
    if (p == NULL) {
        return ST_NOMEM;
    }
    *p = (struct pages){.options = *options};
    p->options.what = options->what != NULL ? options->what : "data";
    if (options->kind != PAGES_PLAIN) {
        p->os_page_bytes = pages_os_find_size(options->kind, options->huge_page_bytes);
        if (p->os_page_bytes == 0) {
            note_failure(p, (struct pages_os_error){.reason = PAGES_REASON_NO_SUPPORT});
        }
    }
    *out = p;
    return ST_OK;
}

void pages_destroy(struct pages *p) {
    if (p == NULL) {
        return;
    }
    if (p->spare != NULL) {
        region_unmap(p, p->spare);
    }
    assert(p->region_count == 0);
    account_free(ACCOUNT_OTHER, p->sorted);
    account_free(ACCOUNT_OTHER, p);
}

/* Of the first regions with a free chunk the fullest: the others may empty, and go back. */
static struct region *pick_open(const struct pages *p, enum pages_kind kind) {
    struct region *best = p->open[kind];
    struct region *r = best;
    for (int tries = PICK_TRIES; r != NULL && tries > 0; tries--, r = r->next_open) {
        best = r->used > best->used ? r : best;
    }
    return best;
}

/* A chunk on the kind asked for, NULL when it is not to be had now. */
static void *acquire_huge(struct pages *p) {
    enum pages_kind kind = p->options.kind;
    struct pages_os_error error = {.reason = PAGES_REASON_NONE};
    struct region *r = pick_open(p, kind);
    if (r == NULL && may_ask_huge(p)) {
        r = region_map(p, kind, &error);
        if (r != NULL) {
            note_success(p);
        } else if (error.reason != PAGES_REASON_NONE) {
            note_failure(p, error);
        }
    }
    return r != NULL ? region_take(p, r) : NULL;
}

void *pages_acquire(struct pages *p, enum pages_kind *kind) {
    if (UNLIKELY(account_must_fail())) {
        return NULL;
    }
    enum pages_kind got = p->options.kind;
    void *chunk = got == PAGES_PLAIN ? NULL : acquire_huge(p);
    if (chunk == NULL) {
        got = PAGES_PLAIN;
        struct pages_os_error error;
        struct region *r = p->open[PAGES_PLAIN];
        if (r == NULL) {
            r = region_map(p, PAGES_PLAIN, &error);
        }
        if (r == NULL) {
            return NULL;
        }
        chunk = region_take(p, r);
    }
    if (kind != NULL) {
        *kind = got;
    }
    return chunk;
}

void pages_release(struct pages *p, void *chunk) {
    struct region *r = p->sorted[region_above(p, chunk) - 1];
    size_t at = (size_t)((char *)chunk - r->base);
    assert(at < r->bytes && at % p->options.chunk_bytes == 0 && r->used > 0);
    if (r->used-- == r->chunks) {
        open_push(p, r);
    }
    r->free[r->free_count++] = (uint32_t)(at / p->options.chunk_bytes);
    p->chunks[r->kind]--;
    if (r->used == 0 && (r->kind != PAGES_PLAIN || p->spare != NULL)) {
        region_unmap(p, r);
        return;
    }
    if (r->kind == PAGES_PLAIN || (r->kind == PAGES_THP && r->bytes > p->os_page_bytes)) {
        madvise(chunk, p->options.chunk_bytes, MADV_DONTNEED);
    }
    if (r->used == 0) {
        p->spare = r;
    }
}

size_t pages_chunk_bytes(const struct pages *p) {
    return p->options.chunk_bytes;
}

enum pages_kind pages_asked(const struct pages *p) {
    return p->options.kind;
}

void pages_get_stats(const struct pages *p, struct pages_stats *out) {
    size_t huge = p->chunks[PAGES_THP] + p->chunks[PAGES_HUGETLB];
    *out = (struct pages_stats){
        .asked = p->options.kind,
        .chunk_bytes = p->options.chunk_bytes,
        .asked_page_bytes = p->options.huge_page_bytes,
        .huge_page_bytes = p->os_page_bytes,
        .chunks = huge + p->chunks[PAGES_PLAIN],
        .huge_chunks = huge,
        .fallback_chunks = p->options.kind == PAGES_PLAIN ? 0 : p->chunks[PAGES_PLAIN],
        .mapped_bytes = p->mapped_bytes,
        .huge_mapped_bytes = p->huge_mapped_bytes,
        .last_reason = p->last_reason,
        .last_errno = p->last_errno,
    };
    memcpy(out->failures, p->failures, sizeof(out->failures));
}

static const struct {
    const char *name, *text;
} reasons[PAGES_REASONS] = {
    [PAGES_REASON_NONE] = {"none", "none"},
    [PAGES_REASON_NO_SUPPORT] = {"no_support", "no such huge page size on this machine"},
    [PAGES_REASON_THP_NEVER] = {"thp_never", "transparent huge pages are set to 'never'"},
    [PAGES_REASON_POOL_EMPTY] = {"pool_empty", "the huge page pool is empty"},
    [PAGES_REASON_HELD_BACK] =
        {"held_back",
         "the huge page pool has free pages, but not for this process (cgroup limit on "
         "reservations, cpuset, NUMA policy or ulimit -v)"},
    [PAGES_REASON_POPULATE] = {"populate",
                               "reserved but not populated (cgroup limit, cpuset or NUMA policy)"},
    [PAGES_REASON_NOT_PERMITTED] = {"not_permitted", "not permitted"},
    [PAGES_REASON_OTHER] = {"other", "refused by the kernel"},
};

const char *pages_reason_text(enum pages_reason reason) {
    return reasons[reason].text;
}

const char *pages_reason_name(enum pages_reason reason) {
    return reasons[reason].name;
}

const char *pages_kind_name(enum pages_kind kind) {
    static const char *const names[] = {
        [PAGES_PLAIN] = "plain", [PAGES_THP] = "thp", [PAGES_HUGETLB] = "hugetlb"};
    return names[kind];
}
