/* SPDX-License-Identifier: BSD-3-Clause */
/* machine: what the kernel says of huge pages and of the limits on them. Facts only, read afresh at
 * each call; what they mean for a wish is mem/advice.h's to say.
 *
 *   pool     the reserved huge pages of one size. `free` includes `reserved`, those promised to a
 *            mapping that has not touched them yet; `overcommit` pages may be made on demand beyond
 *            the pool, `surplus` of them exist now
 *   node     a NUMA node. A process bound to some of them can use their part of a pool only
 *   limit    of a control group, of this process's own or of one above it: the one with least room
 *
 * A machine that does not tell something has none of it: 0, "", MACHINE_NO_LIMIT. */
#ifndef MEM_MACHINE_H
#define MEM_MACHINE_H

#include "mem/pages.h"

#define MACHINE_POOLS_MAX 8
#define MACHINE_NO_LIMIT SIZE_MAX
#define MACHINE_FILE_LEN 256
#define MACHINE_LIST_LEN 64

struct machine_limit {
    size_t room_bytes;           /* what is left; MACHINE_NO_LIMIT: no limit */
    size_t limit_bytes;          /* the limit itself, likewise */
    char file[MACHINE_FILE_LEN]; /* that says so */
};

struct machine_pool {
    struct pages_pool pages;
    size_t overcommit; /* OS pages */
    size_t node_free;  /* free ones on the nodes this process may use */
    struct machine_limit cgroup;
};

struct machine {
    size_t os_page_bytes;
    size_t default_huge_bytes; /* what vm.nr_hugepages counts; 0: no hugetlb pages at all */
    size_t pool_count;
    struct machine_pool pools[MACHINE_POOLS_MAX]; /* ascending sizes */

    size_t thp_bytes; /* 0: none */
    char thp_mode[PAGES_THP_MODE_LEN];
    char thp_defrag[PAGES_THP_MODE_LEN];

    size_t total_bytes, available_bytes; /* MemTotal, MemAvailable */
    struct machine_limit cgroup_memory;
    size_t overcommit_memory; /* vm.overcommit_memory, 0..2 */
    size_t memlock_bytes;     /* RLIMIT_MEMLOCK, or MACHINE_NO_LIMIT */

    size_t node_count; /* online; 0: the kernel has no NUMA */
    char nodes_online[MACHINE_LIST_LEN], nodes_allowed[MACHINE_LIST_LEN]; /* "0-1,3" */
};

/* Some sixty reads of small files, 0.5 ms.
 *
 *   root  "" for this machine; a folder that holds proc/ and sys/ for tests */
void machine_read(const char *root, struct machine *out);

/* NULL: this kernel has no such size. */
const struct machine_pool *machine_pool(const struct machine *m, size_t page_bytes);

/* The first node this process may use; false when it may use all there are. */
bool machine_is_bound(const struct machine *m, unsigned *first_node);

/* Just the pools' pages, ascending; returns how many of them were written. */
size_t machine_read_pools(const char *root, struct pages_pool *pools, size_t max);

#endif
