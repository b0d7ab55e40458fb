/* SPDX-License-Identifier: BSD-3-Clause */
/* process: what the kernel says of this process. Each call reads afresh; a number that the kernel
 * does not tell is 0. The huge-page pool is mem/pages.h's to read. */
#ifndef STATS_PROCESS_H
#define STATS_PROCESS_H

#include "base/compiler.h"

struct process_memory {
    uint64_t vm_rss_bytes;        /* VmRSS: without hugetlb pages */
    uint64_t hugetlb_pages_bytes; /* HugetlbPages */
    uint64_t page_table_bytes;    /* VmPTE */
};

/* One read of /proc/self/status: 4 us. */
void process_read_memory(struct process_memory *out);

/* AnonHugePages: transparent huge pages in use. Reads /proc/self/smaps_rollup, for which the kernel
 * walks all page tables. Measured at 2 GiB resident: 36 ms on 4 KiB pages, 0.14 ms on huge ones. So
 * a server calls it only where somebody asked for this number.
 *
 *   madvised  this process asked for such pages (MADV_HUGEPAGE). When it did not and the kernel
 *             gives none unasked ([madvise] or [never]), the answer is 0 without the walk */
uint64_t process_read_anon_huge_bytes(bool madvised);

/* Bytes of this process's memory that only it has: what copying on write came to, in a child of fork.
 * The same walk. */
uint64_t process_read_private_dirty_bytes(void);

struct process_cpu {
    double user_s, sys_s;                   /* all threads */
    double user_children_s, sys_children_s; /* children that were waited for */
    double user_thread_s, sys_thread_s;     /* the calling thread */
};

/* Three getrusage calls: 0.5 us. */
void process_read_cpu(struct process_cpu *out);

/* "Linux 6.1.0 x86_64" into out, terminated. */
void process_os_name(char *out, size_t out_cap);

uint64_t process_system_memory_bytes(void);

#endif
