/* SPDX-License-Identifier: BSD-3-Clause */
/* What pages asks of the kernel: sizes, mappings, population. Inside mem only. */
#ifndef MEM_PAGES_OS_H
#define MEM_PAGES_OS_H

#include "mem/pages.h"

struct pages_os_error {
    enum pages_reason reason;
    int code; /* errno */
};

/* The huge page size to use for a request (0: the default one); 0 when this machine has no such
 * size. */
size_t pages_os_find_size(enum pages_kind kind, size_t asked_bytes);

bool pages_os_thp_is_never(void);

/* A mapping of `bytes`, aligned, populated in full. NULL with *error. */
void *pages_os_map_hugetlb(size_t bytes, size_t os_page_bytes, size_t align,
                           struct pages_os_error *error);

/* A mapping of ordinary memory, aligned, not populated; kept on 4 KiB OS pages, or on THP with thp.
 * NULL with *error. */
void *pages_os_map(size_t bytes, size_t align, bool thp, struct pages_os_error *error);

/* Give back the memory of the whole OS pages in [from, to) of a mapping of ordinary memory, whose
 * start is base; the next touch finds zeroes. Returns where that began: from, rounded up. */
size_t pages_os_release(void *base, size_t from, size_t to);

void pages_os_unmap(void *base, size_t bytes);

/* Write-touch every OS page; the errno, 0 when all are there. pages_os_touch is for kernels
 * before 5.14, which have no MADV_POPULATE_WRITE: a SIGBUS under a guard becomes EFAULT. */
int pages_os_populate(void *ptr, size_t bytes, size_t os_page_bytes);
int pages_os_touch(void *ptr, size_t bytes, size_t os_page_bytes);

#endif
