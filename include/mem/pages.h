/* SPDX-License-Identifier: BSD-3-Clause */
/* pages: the only code that calls mmap for data. Hands out chunks of one fixed size, on the kind of
 * OS page that was asked for when the machine has it, and on plain pages when not; says which, and
 * why.
 *
 *   chunk     what acquire returns: chunk_bytes long, aligned to chunk_bytes
 *   OS page   what the kernel maps: 4 KiB plain, or a huge page whose size the kernel tells
 *   region    what one mmap covers: a whole number of OS pages, carved into chunks, unmapped when
 *             all are back
 *
 * Guarantees: a hugetlb chunk is populated before it is returned (MADV_POPULATE_WRITE), so a pool
 * that lies, say under a hugetlb cgroup limit, costs a fallback and never a SIGBUS. Plain and THP
 * chunks come with first touch, plain ones also with pages_warm; plain ones are kept on 4 KiB OS pages even where THP is "always",
 * so that "plain" is the truth. A THP chunk counts as on the kind asked for, but the kernel may
 * still serve it with small OS pages: AnonHugePages tells. A plain chunk's memory goes back to the
 * kernel on release, a huge one's when all chunks of its OS page are back. Chunks never move.
 * Single-threaded. fork() with hugetlb chunks is the caller's to refuse.
 * A failed huge request is counted by reason, logged once a reason, and not retried until the
 * pool's free count changes, THP are switched on, or a back-off (1 s doubling to 64 s) has passed.
 * The first success after failures is logged, once. What fell back stays on plain pages.
 *
 * Chunks smaller than a huge page come from the fullest of those with room, that the others may
 * empty and go back. */
#ifndef MEM_PAGES_H
#define MEM_PAGES_H

#include "base/status.h"

enum pages_kind { PAGES_PLAIN, PAGES_THP, PAGES_HUGETLB };

/* Why a huge chunk was not to be had. */
enum pages_reason {
    PAGES_REASON_NONE,
    PAGES_REASON_NO_SUPPORT,    /* the kernel or CPU has no such page size */
    PAGES_REASON_THP_NEVER,     /* transparent_hugepage/enabled is "never" */
    PAGES_REASON_POOL_EMPTY,    /* mmap: ENOMEM, no free page in the pool */
    PAGES_REASON_HELD_BACK,     /* mmap: ENOMEM, though the pool has free pages */
    PAGES_REASON_POPULATE,      /* mapped but not populated: cgroup limit, cpuset, NUMA policy */
    PAGES_REASON_NOT_PERMITTED, /* EPERM */
    PAGES_REASON_OTHER,         /* any other errno */
    PAGES_REASONS
};

struct pages_options {
    enum pages_kind kind;   /* what is asked for */
    size_t huge_page_bytes; /* 0: the kernel's default huge page size */
    size_t chunk_bytes;     /* a power of two, 64 KiB .. 1 GiB */
    const char *what;       /* for log lines: "arena"; NULL: "data" */
};

struct pages_stats {
    enum pages_kind asked;
    size_t chunk_bytes;
    size_t asked_page_bytes; /* as in pages_options; 0: the default size */
    size_t huge_page_bytes;  /* in use, 0 when plain */
    size_t chunks;           /* handed out now */
    size_t huge_chunks;      /* of these on the kind asked for (plain asked: 0) */
    size_t fallback_chunks;  /* of these on plain pages though huge ones were asked */
    size_t mapped_bytes;     /* of all regions */
    size_t huge_mapped_bytes;
    uint64_t failures[PAGES_REASONS]; /* since start, by reason */
    enum pages_reason last_reason;
    int last_errno;
};

struct pages;

/* ST_RANGE: chunk_bytes is not as above. ST_NOMEM. A machine without huge pages is no error: it
 * falls back. */
MUST_CHECK enum status pages_create(const struct pages_options *options, struct pages **out);

/* All chunks must be back. NULL is allowed. */
void pages_destroy(struct pages *p);

/* A chunk, zeroed when fresh but not when reused; *kind (may be NULL) says what it is on. NULL: no
 * memory at all. */
void *pages_acquire(struct pages *p, enum pages_kind *kind);

/* Give a chunk back. A region all of whose chunks are back is unmapped, but for one plain spare. */
void pages_release(struct pages *p, void *chunk);

/* Have plain memory there before it is touched: one call of the kernel for all OS pages that [ptr, ptr + bytes) lies in, instead
 * of a fault for each. Contents stay. Advice: what is not to be had now comes, or fails, with first touch.
 * 32 KiB cost 4 us, by faults 9 us on one machine and 115 us on another (docs/design/001-pages.md). */
void pages_warm(void *ptr, size_t bytes);

size_t pages_chunk_bytes(const struct pages *p);
enum pages_kind pages_asked(const struct pages *p);
void pages_get_stats(const struct pages *p, struct pages_stats *out);
const char *pages_reason_text(enum pages_reason reason);
const char *pages_reason_name(enum pages_reason reason); /* one word, "pool_empty" */
const char *pages_kind_name(enum pages_kind kind);

/* The kernel's pool for one huge page size: /sys/kernel/mm/hugepages. ST_NOTFOUND when there is no
 * such size. */
struct pages_pool {
    size_t page_bytes;
    size_t total, free, reserved, surplus; /* OS pages */
};
MUST_CHECK enum status pages_pool_read(size_t huge_page_bytes, struct pages_pool *out);
size_t pages_default_huge_bytes(void); /* 0: none */

/* The hugetlb page sizes of this kernel, ascending; returns how many of them were written. */
size_t pages_huge_sizes(size_t *sizes, size_t max);

/* Really map and fill huge pages, at least `bytes` of them or as many as there are, count, and give
 * all of them back.
 *
 *   page_bytes  of kind hugetlb: a size of this kernel; THP has one size
 *
 * Hugetlb pages are taken from the pool meanwhile. THP takes ordinary memory: the caller sees to it
 * that there is as much. 0.1 to 0.3 s a GiB. */
struct pages_trial {
    size_t huge_bytes; /* had on huge pages, at most what was asked, rounded up to whole pages */
    enum pages_reason reason; /* why it was not all */
    int code;                 /* errno, or 0 */
};
void pages_try(enum pages_kind kind, size_t page_bytes, size_t bytes, struct pages_trial *out);

/* "always", "madvise" or "never"; "" when the kernel has no THP. */
#define PAGES_THP_MODE_LEN 16
void pages_thp_mode(char mode[PAGES_THP_MODE_LEN]);
size_t pages_thp_bytes(void); /* 0: none */

#endif
