/* SPDX-License-Identifier: BSD-3-Clause */
/* What SORT's two files share.
 *
 *   sort.c           options, sorting, the result
 *   sort_pattern.c   what BY and GET name
 *
 *   pattern   names a key, or a field of a hash, for each element: the first '*' stands for the
 *             element ("weight_*", "user_*->name") */
#ifndef CMD_SORT_PRIV_H
#define CMD_SORT_PRIV_H

#include "cmd/lookup.h"
#include "types/string.h"

struct sort_pattern {
    bool is_element; /* "#": the element itself */
    bool is_nothing; /* no '*' in it: names no key */
    struct bytes before, after;
    struct bytes field; /* of a hash; empty: the key is a string */
};

/* An element, and what it is sorted by. */
struct sort_item {
    struct bytes element;
    union {
        double score;
        struct bytes text; /* ALPHA with BY */
    };
    bool missing; /* ALPHA with BY: there is no such text; comes before all others */
};

struct sort_pattern sort_pattern_of(struct bytes text);

/* Look-up number n is pattern n % pattern_count for item n / pattern_count. */
struct sort_look_ups {
    const struct sort_pattern *patterns;
    size_t pattern_count;
    const struct sort_item *items;
    size_t first, count; /* at most LOOKUP_GROUP of them */
};

/* What patterns name, a few of them looked up side by side. */
struct sort_found {
    struct {
        struct bytes text;
        bool there;
        bool in_digits; /* the text is written below */
    } at[LOOKUP_GROUP];
    char digits[LOOKUP_GROUP][STRING_SCRATCH_LEN];
};

/* Look them up side by side. names is emptied and filled with the names of the keys. Keys that
 * expired are deleted on the way; that moves no other record, so that views of elements stay good.
 * ST_NOMEM when there was no room for the names. */
MUST_CHECK enum status sort_look_up(struct call *call, struct buf *names,
                                    const struct sort_look_ups *l, struct sort_found *found);

#endif
