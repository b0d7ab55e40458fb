/* SPDX-License-Identifier: BSD-3-Clause */
/* What packed collections share: a run of entries behind a count of 16 bits, in a value's bytes.
 * A run may be shorter than the value: idle bytes at its end are allowed. */
#ifndef TYPES_RUN_PRIV_H
#define TYPES_RUN_PRIV_H

#include "types/value.h"

#define RUN_COUNT_LEN 2 /* where the first entry starts */
#define RUN_COUNT_MAX UINT16_MAX

static inline uint64_t run_count(const char *run) {
    uint16_t count;
    memcpy(&count, run, sizeof(count));
    return count;
}

static inline void run_set_count(char *run, uint64_t count) {
    uint16_t v = (uint16_t)count;
    memcpy(run, &v, sizeof(v));
}

/* Make the bytes [off, off + old_len) of a run new_len long; used: bytes of the run now. What they
 * hold afterwards is undefined. ST_NOMEM, ST_RANGE (too long for a record): as before; never when
 * new_len <= old_len. */
MUST_CHECK enum status run_stretch(struct value *v, size_t off, size_t old_len, size_t new_len,
                                   size_t used);

#endif
