/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor: what the numbers about memory mean, in words. */
#ifndef CMD_DOCTOR_PRIV_H
#define CMD_DOCTOR_PRIV_H

#include "memory_source_priv.h"

struct doctor_facts {
    const struct info_source *info; /* section of memory, and connected_clients */
    const struct memory_source *memory;
    const struct machine *machine;
};

/* Append the report: one paragraph a problem, with what to type; then what arenas and indexes are on. */
void doctor_write(const struct doctor_facts *f, struct buf *out);

#endif
