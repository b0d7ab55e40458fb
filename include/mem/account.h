/* SPDX-License-Identifier: BSD-3-Clause */
/* Every heap allocation that belongs to data goes through here, so that INFO can say what holds the
 * memory. A thin layer over jemalloc: one tag a purpose, bytes counted as jemalloc's usable size.
 * Single-threaded. Sanitizer builds use the C library's malloc instead, which AddressSanitizer
 * replaces: jemalloc would hide overruns. */
#ifndef MEM_ACCOUNT_H
#define MEM_ACCOUNT_H

#include "base/buf.h"
#include "base/compiler.h"

enum account_tag {
    ACCOUNT_ARENA,  /* small arena blocks and arena tables */
    ACCOUNT_INDEX,  /* swiss table segments and directories */
    ACCOUNT_ORDER,  /* order-tree nodes */
    ACCOUNT_VALUE,  /* objects and values that stand alone (large strings, boxed records) */
    ACCOUNT_CLIENT, /* connections and their buffers */
    ACCOUNT_OTHER,
    ACCOUNT_TAGS
};

/* NULL when memory is short; nothing is counted then. Size 0 is taken as 1. */
void *account_alloc(enum account_tag tag, size_t size);

/* ptr NULL allocates. On failure NULL and ptr is as before. */
void *account_realloc(enum account_tag tag, void *ptr, size_t size);

/* ptr NULL is allowed. */
void account_free(enum account_tag tag, void *ptr);

/* Before account_free of a very long block: give its OS pages back, max_bytes from *at on (start with
 * 0). What it held is lost. True when it is done. A free alone gives all of them back in one call,
 * 30 to 50 us a MiB. */
bool account_discard(void *ptr, size_t *at, size_t max_bytes);

/* The size jemalloc would really give for a request: fill it rather than waste it. */
size_t account_good_size(size_t size);

/* Hand an allocation over to another tag, or take in one that came from plain malloc (from ==
 * ACCOUNT_TAGS), or give one out to whoever will call plain free (to == ACCOUNT_TAGS). ptr NULL is
 * allowed. */
void account_move(enum account_tag from, enum account_tag to, void *ptr);

/* Count bytes that hold data but come from elsewhere (the mappings of mem/dense): account_bytes
 * shows them, and account_heap among what is allocated, active and resident. */
void account_count(enum account_tag tag, size_t bytes);
void account_uncount(enum account_tag tag, size_t bytes);

size_t account_bytes(enum account_tag tag);
const char *account_tag_name(enum account_tag tag);

/* jemalloc's own view, refreshed at each call, and what account_count was told of. */
struct account_heap {
    size_t allocated_bytes; /* asked for by the program, size-class rounding included */
    size_t active_bytes;    /* in OS pages that hold at least one allocation */
    size_t resident_bytes;  /* mapped and touched, allocator metadata included */
    size_t retained_bytes;  /* address space kept, not resident */
    size_t metadata_bytes;
};
void account_heap(struct account_heap *out);

/* What the allocator writes about itself, pages of text. False: it keeps no statistics. */
bool account_write_stats(struct buf *out);

/* "jemalloc-5.3.0". */
const char *account_allocator_name(void);

/* Return freed OS pages to the kernel at once (MEMORY PURGE) or let decay run (call now and then
 * when idle). */
void account_purge(void);
void account_decay(void);

/* Bytes that were ever freed and do not go back at once: when they grow fast, call account_decay
 * often, or one call gives back all of it, 30 to 50 us a MiB. */
size_t account_freed_bytes(void);

/* Tests: the n-th allocation from now fails, and all after it until called with 0. */
void account_fail_after(size_t n);

/* Tests: count one allocation that is made elsewhere (a chunk); true when it has to fail. */
bool account_must_fail(void);

#endif
