/* SPDX-License-Identifier: BSD-3-Clause */
/* advice: whether a machine has huge pages for so many more bytes, what is lacking, and what an
 * operator types to change that. Judges facts (mem/machine.h), asks the kernel nothing: what MEMORY
 * DOCTOR says of a running server and --check-hugepages before one starts is the same. */
#ifndef MEM_ADVICE_H
#define MEM_ADVICE_H

#include "base/buf.h"
#include "mem/machine.h"

/* What stands in the way; several may. */
enum advice_lack {
    ADVICE_SIZE = 1 << 0, /* the kernel has no such huge page */
    ADVICE_POOL = 1 << 1, /* too few reserved pages */
    ADVICE_NODES =
        1 << 2, /* too few on the NUMA nodes this process may use, though enough in all */
    ADVICE_CGROUP = 1 << 3, /* a control group's limit */
    ADVICE_MEMORY = 1 << 4, /* not so much memory available, in the machine or the control group */
    ADVICE_MODE = 1 << 5,   /* transparent huge pages are "never" */
};

struct advice {
    enum pages_kind kind; /* PAGES_THP or PAGES_HUGETLB */
    size_t page_bytes;    /* 0: none of that kind or size */
    size_t asked_bytes;   /* the size that was asked for, for the text */
    size_t pages_needed;  /* for the bytes, rounded up */
    size_t pages_usable;  /* of what is there now, by the pool, the nodes, the limits */
    size_t pages_lacking; /* that the pool has to grow by; 0 of THP */
    unsigned lacks;       /* enum advice_lack; 0: enough of everything */
};

/* Are there huge pages for `bytes` more than are in use now?
 *
 *   kind        PAGES_THP or PAGES_HUGETLB
 *   page_bytes  of kind hugetlb; 0: the kernel's default size */
void advice_judge(const struct machine *m, enum pages_kind kind, size_t page_bytes, size_t bytes,
                  struct advice *out);

/* A line or more for each lack: what it is, what to type now and to have it at each boot. Lines begin with
 * `indent` and end with a newline. Nothing when nothing lacks. */
void advice_write(const struct machine *m, const struct advice *a, const char *indent,
                  struct buf *out);

/* What large huge pages mean for a server: how they are shared, and which smaller size there is.
 * Nothing for pages of a chunk or less. */
void advice_write_size(const struct machine *m, size_t page_bytes, size_t chunk_bytes,
                       const char *indent, struct buf *out);

/* "2 MiB", "512 KiB": the largest unit that goes without a rest up to GiB. */
void advice_write_bytes(size_t bytes, struct buf *out);

#endif
