/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of list commands share.
 *
 *   list.c        elements pushed, read and changed where they are
 *   list_pop.c    elements taken from an end, or moved to another list
 *   list_block.c  the same, waiting for an element if need be */
#ifndef CMD_LIST_PRIV_H
#define CMD_LIST_PRIV_H

#include "cmd/args.h"
#include "cmd/lookup.h"
#include "types/list.h"

/* Elements read from a list at a time. */
#define LIST_BATCH 64

static inline enum lookup list_find(struct call *call, size_t i, struct entry *e) {
    return lookup_typed(call, i, VALUE_LIST, e);
}

/* A key with a list without elements, for a push that follows at once. */
MUST_CHECK enum status list_add_key(struct db *db, struct bytes key, uint64_t hash,
                                    struct entry *e);

/* What to take, and how the reply names it. */
struct list_pop {
    uint64_t count;
    enum list_end end;
    bool nested; /* [key, [element, ...]], of LMPOP; else [key, element] */
};

/* Reply the key and up to pop->count elements and remove them, the key with the last one; how many.
 * Nothing is removed when the reply did not fit into memory: the client would never know of it. */
uint64_t list_take_with_key(struct entry *e, struct bytes key, const struct list_pop *pop,
                            struct reply *r);

/* Take from the first of the keys that holds something. True: replied, be it an error. */
bool list_pop_first(struct call *call, size_t first_key, size_t count, const struct list_pop *pop);

struct list_pop list_pop_of(const struct args_mpop *args);

struct list_move {
    enum list_end from, to;
};

/* LEFT|RIGHT LEFT|RIGHT at argument i. False: the error was replied. */
MUST_CHECK bool list_parse_move(struct call *call, size_t i, struct list_move *move);

/* Move an element and reply it, or the error that says why nothing was changed. The source is a
 * list. The destination is signalled. */
void list_move(struct cmd_context *cx, struct db *db, struct bytes source, struct bytes destination,
               const struct list_move *move, struct reply *r);

#endif
