/* SPDX-License-Identifier: BSD-3-Clause */
/* A value outside any database, in which a command builds its result before that takes a key's
 * place: until then nothing is changed, and a result that does not fit into memory leaves no trace. */
#ifndef CMD_SCRATCH_PRIV_H
#define CMD_SCRATCH_PRIV_H

#include "cmd/call.h"
#include "types/value.h"

struct scratch {
    struct value value;
    struct value_host host;
    size_t len_max; /* a longer value would not fit a key's record */
};

/* Start with a copy of an image; ST_NOMEM leaves nothing to free. */
MUST_CHECK enum status scratch_init(struct scratch *s, const struct call *call,
                                    enum value_type type, const struct value_image *image);

/* Put the value under the key at argument i, in place of whatever is there; s is empty then, and
 * scratch_deinit still due. ST_NOMEM: both are as before. */
MUST_CHECK enum status scratch_store(struct scratch *s, struct call *call, size_t i,
                                     int64_t expire_ms);

void scratch_deinit(struct scratch *s);

#endif
