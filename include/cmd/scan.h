/* SPDX-License-Identifier: BSD-3-Clause */
/* scan: what SCAN and its relatives share: options, filter, the shape of the reply. */
#ifndef CMD_SCAN_H
#define CMD_SCAN_H

#include "cmd/call.h"
#include "types/value.h"

enum scan_kind { SCAN_KEYS, SCAN_HASH, SCAN_SET, SCAN_ZSET };

struct scan_options {
    size_t count;     /* COUNT, 10 when not given: elements looked at a call */
    bool has_pattern; /* MATCH, and not just "*" */
    struct bytes pattern;
    bool has_type; /* TYPE, of SCAN_KEYS only */
    struct bytes type;
    bool no_values; /* NOVALUES, of SCAN_HASH only */
};

/* Read the options from argument i on. False: an error was replied. */
MUST_CHECK bool scan_parse(struct call *call, size_t i, enum scan_kind kind,
                           struct scan_options *out);

bool scan_matches(const struct scan_options *options, struct bytes name);

/* The reply: begin, elements, end with the next cursor and the number of elements replied. */
size_t scan_reply_begin(struct reply *r);
void scan_reply_end(struct reply *r, size_t mark, uint64_t cursor, size_t elements);
void scan_reply_empty(struct reply *r);

#endif
