/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/account.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef GC_SANITIZE
#include <jemalloc/jemalloc.h>
#endif

#define LARGE_BYTES (14 * 1024) /* jemalloc's largest small class with 4 KiB OS pages */

static size_t tag_bytes[ACCOUNT_TAGS];
static size_t freed_bytes;
static size_t foreign_bytes;  /* of these, those of account_count */
static size_t fail_countdown; /* 0: allocations work; 1: they fail; n: the n-th from now is the
                                 first to fail */

bool account_must_fail(void) {
    if (LIKELY(fail_countdown == 0)) {
        return false;
    }
    if (fail_countdown > 1) {
        fail_countdown--;
        return false;
    }
    return true;
}

void account_fail_after(size_t n) {
    fail_countdown = n;
}

/* ---- the allocator ---- */

#ifdef GC_SANITIZE

static void *heap_alloc(enum account_tag tag, size_t size) {
    return malloc(size);
}

static void *heap_realloc(enum account_tag tag, void *ptr, size_t size) {
    return realloc(ptr, size);
}

static void heap_free(enum account_tag tag, void *ptr, size_t usable) {
    free(ptr);
}

static size_t heap_usable(void *ptr) {
    return malloc_usable_size(ptr);
}

static void heap_discard(char *from, char *to) {
    (void)from;
    (void)to;
}

size_t account_good_size(size_t size) {
    return size != 0 ? size : 1;
}

void account_heap(struct account_heap *out) {
    *out = (struct account_heap){0};
    for (int tag = 0; tag < ACCOUNT_TAGS; tag++) {
        out->allocated_bytes += tag_bytes[tag];
    }
    out->active_bytes = out->resident_bytes = out->allocated_bytes;
}

bool account_write_stats(struct buf *out) {
    (void)out;
    return false;
}

const char *account_allocator_name(void) {
    return "libc";
}

void account_purge(void) {
}

void account_decay(void) {
}

#else

/* Read by jemalloc before main. MALLOC_CONF in the environment still overrides each option.
 *
 *   narenas:1                one thread allocates: a second arena would only spread data over more
 *                            half-used OS pages
 *   oversize_threshold:0     no separate arena for allocations of 8 MiB and more, likewise
 *   lg_tcache_max:12         cached frees stop at 4 KiB; above, 20 of each class could lie idle,
 *                            2.4 MB in all
 *   dirty_decay_ms:100       freed OS pages go back at once, nearly: a hash growing 1 to 2 M fields holds
 *                            42.2 bytes a field at its worst, 44.5 with 1000, for the same CPU time; with 0
 *                            (42.1) each large buffer that is freed and used again would be faulted in anew
 *   muzzy_decay_ms:0         straight to MADV_DONTNEED: pages freed lazily (MADV_FREE) still count
 *                            in VmRSS
 *   background_thread:false  the server calls account_decay when idle
 *   thp:never                heap memory must stay plain where THP is "always", or VmRSS jumps by
 *                            2 MiB a touch
 *   metadata_thp:disabled    as above, for the allocator's own tables */
__attribute__((used)) const char *malloc_conf =
    "narenas:1,oversize_threshold:0,lg_tcache_max:12,dirty_decay_ms:100,"
    "muzzy_decay_ms:0,background_thread:false,thp:never,metadata_thp:disabled";

static size_t read_stat(const char *name) {
    size_t value = 0, len = sizeof(value);
    return mallctl(name, &value, &len, NULL, 0) == 0 ? value : 0;
}

/* jemalloc starts an allocation of 16 KiB or more at a random cache line and adds an OS page for it
 * (5.3 has no start-up option against it). Asking for OS-page alignment keeps the start, so the
 * added page is never touched: 4000 blocks of 16 KiB, filled, raise VmRSS by 66 MB, not 82.
 */
static int large_flags(size_t size) {
    static int flags;
    if (LIKELY(size <= LARGE_BYTES)) {
        return 0;
    }
    if (flags == 0) {
        size_t page = read_stat("arenas.page");
        flags = page != 0 ? MALLOCX_ALIGN(page) : 0;
    }
    return flags;
}

/* Index segments are freed and taken all the time while a table grows, in a few sizes. In an arena of their own they
 * share OS pages with nothing that lives longer, and what they leave goes back at once: no dirty page waits for the
 * decay of the rest. Without a cache, as each free is one in some two hundred inserts. */
static int index_flags(void) {
    static int flags;
    if (UNLIKELY(flags == 0)) {
        unsigned arena = 0;
        size_t len = sizeof(arena);
        ssize_t now_ms = 0;
        char name[64];
        flags = MALLOCX_TCACHE_NONE;
        if (mallctl("arenas.create", &arena, &len, NULL, 0) == 0) {
            snprintf(name, sizeof(name), "arena.%u.dirty_decay_ms", arena);
            mallctl(name, NULL, NULL, &now_ms, sizeof(now_ms));
            flags |= MALLOCX_ARENA(arena);
        }
    }
    return flags;
}

static int tag_flags(enum account_tag tag) {
    return tag == ACCOUNT_INDEX ? index_flags() : 0;
}

static void *heap_alloc(enum account_tag tag, size_t size) {
    return mallocx(size, large_flags(size) | tag_flags(tag));
}

static void *heap_realloc(enum account_tag tag, void *ptr, size_t size) {
    return rallocx(ptr, size, large_flags(size) | tag_flags(tag));
}

static void heap_free(enum account_tag tag, void *ptr, size_t usable) {
    sdallocx(ptr, usable, tag == ACCOUNT_INDEX ? MALLOCX_TCACHE_NONE : 0);
}

static size_t heap_usable(void *ptr) {
    return sallocx(ptr, 0);
}

/* The whole OS pages between. */
static void heap_discard(char *from, char *to) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)from + page - 1) / page * page,
              last = (uintptr_t)to / page * page;
    if (first < last) {
        madvise((void *)first, last - first, MADV_DONTNEED);
    }
}

size_t account_good_size(size_t size) {
    size_t good = nallocx(size != 0 ? size : 1, 0);
    return good != 0 ? good : size; /* 0: beyond the largest class, the allocation will fail */
}

void account_heap(struct account_heap *out) {
    uint64_t epoch = 1;
    size_t len = sizeof(epoch);
    mallctl("epoch", &epoch, &len, &epoch, sizeof(epoch));
    out->allocated_bytes = read_stat("stats.allocated") + foreign_bytes;
    out->active_bytes = read_stat("stats.active") + foreign_bytes;
    out->resident_bytes = read_stat("stats.resident") + foreign_bytes;
    out->retained_bytes = read_stat("stats.retained");
    out->metadata_bytes = read_stat("stats.metadata");
}

static void append_stats(void *out, const char *text) {
    buf_append_cstr(out, text);
}

bool account_write_stats(struct buf *out) {
    malloc_stats_print(append_stats, out, NULL);
    return true;
}

const char *account_allocator_name(void) {
    static char name[48];
    if (name[0] == '\0') {
        const char *version = "";
        size_t len = sizeof(version);
        mallctl("version", &version, &len, NULL, 0);
        int digits = 0; /* "5.3.0-0-g54eaed1": the commit says nothing to an operator */
        while (version[digits] != '\0' && version[digits] != '-') {
            digits++;
        }
        snprintf(name, sizeof(name), "jemalloc-%.*s", digits, version);
    }
    return name;
}

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

void account_purge(void) {
    mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
    mallctl("arena." TEXT(MALLCTL_ARENAS_ALL) ".purge", NULL, NULL, NULL, 0);
}

void account_decay(void) {
    mallctl("arena." TEXT(MALLCTL_ARENAS_ALL) ".decay", NULL, NULL, NULL, 0);
}

#endif

/* ---- counting ---- */

void *account_alloc(enum account_tag tag, size_t size) {
    if (UNLIKELY(account_must_fail())) {
        return NULL;
    }
    void *ptr = heap_alloc(tag, size != 0 ? size : 1);
    if (ptr != NULL) {
        tag_bytes[tag] += heap_usable(ptr);
    }
    return ptr;
}

void *account_realloc(enum account_tag tag, void *ptr, size_t size) {
    if (ptr == NULL) {
        return account_alloc(tag, size);
    }
    if (UNLIKELY(account_must_fail())) {
        return NULL;
    }
    size_t before = heap_usable(ptr);
    void *moved = heap_realloc(tag, ptr, size != 0 ? size : 1);
    if (moved != NULL) {
        tag_bytes[tag] += heap_usable(moved) - before;
    }
    return moved;
}

void account_free(enum account_tag tag, void *ptr) {
    if (ptr == NULL) {
        return;
    }
    size_t usable = heap_usable(ptr);
    assert(tag_bytes[tag] >= usable);
    tag_bytes[tag] -= usable;
    freed_bytes += tag != ACCOUNT_INDEX ? usable : 0;
    heap_free(tag, ptr, usable);
}

bool account_discard(void *ptr, size_t *at, size_t max_bytes) {
    size_t usable = heap_usable(ptr), from = *at;
    size_t to = max_bytes < usable - from ? from + max_bytes : usable;
    heap_discard((char *)ptr + from, (char *)ptr + to);
    *at = to;
    return to == usable;
}

void account_move(enum account_tag from, enum account_tag to, void *ptr) {
    if (ptr == NULL) {
        return;
    }
    size_t usable = heap_usable(ptr);
    if (from != ACCOUNT_TAGS) {
        assert(tag_bytes[from] >= usable);
        tag_bytes[from] -= usable;
    }
    if (to != ACCOUNT_TAGS) {
        tag_bytes[to] += usable;
    }
}

void account_count(enum account_tag tag, size_t bytes) {
    tag_bytes[tag] += bytes;
    foreign_bytes += bytes;
}

void account_uncount(enum account_tag tag, size_t bytes) {
    assert(tag_bytes[tag] >= bytes && foreign_bytes >= bytes);
    tag_bytes[tag] -= bytes;
    foreign_bytes -= bytes;
}

size_t account_freed_bytes(void) {
    return freed_bytes;
}

size_t account_bytes(enum account_tag tag) {
    return tag_bytes[tag];
}

const char *account_tag_name(enum account_tag tag) {
    static const char *const names[ACCOUNT_TAGS] = {
        [ACCOUNT_ARENA] = "arena", [ACCOUNT_INDEX] = "index",   [ACCOUNT_ORDER] = "order",
        [ACCOUNT_VALUE] = "value", [ACCOUNT_CLIENT] = "client", [ACCOUNT_OTHER] = "other",
    };
    return names[tag];
}
