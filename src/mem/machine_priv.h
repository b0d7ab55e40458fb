/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of control groups, versions 1 and 2. */
#ifndef MEM_MACHINE_PRIV_H
#define MEM_MACHINE_PRIV_H

#include "mem/machine.h"

void machine_read_hugetlb_limit(const char *root, size_t page_bytes, struct machine_limit *out);

/* File pages that can be dropped count as room. */
void machine_read_memory_limit(const char *root, struct machine_limit *out);

#endif
