/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's settings for huge pages: changed by tests, put back after each.
 *
 * Setup takes a lock that every program holds while it changes a pool, and notes what is set;
 * teardown puts all of it back, failed test or not; a child does it when the program is killed. Every setter answers false where the machine
 * does not allow it: TEST_SKIP with the reason then. Only pages of 2 MiB and 1 GiB are known. */
#ifndef SUPPORT_HUGEPAGES_H
#define SUPPORT_HUGEPAGES_H

#include <stdbool.h>

#define HUGE_2M (2LL * 1024 * 1024)
#define HUGE_1G (1024LL * 1024 * 1024)

void hugepages_setup(void);
void hugepages_teardown(void);

/* True when the pool now has exactly this many pages. */
bool hugepages_set_pool(long long page_bytes, long pages);

/* Pages that are free, -1 when there is no such size. */
long hugepages_free(long long page_bytes);

/* How many pages of 2 MiB the kernel may add to an exhausted pool from free memory. */
bool hugepages_set_overcommit(long pages);

/* transparent_hugepage/enabled: "always", "madvise" or "never". */
bool hugepages_set_thp(const char *mode);

/* A hugetlb cgroup of our own, v2 or v1; removed by teardown. False when neither can be had. */
bool hugepages_open_cgroup(void);

/* Its limit of 2 MiB pages: on pages in use, or (on_reservations) on those promised by mmap. */
bool hugepages_limit(bool on_reservations, long long bytes);

/* Put the calling process into it. */
bool hugepages_enter_cgroup(void);

#endif
