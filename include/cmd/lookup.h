/* SPDX-License-Identifier: BSD-3-Clause */
/* lookup: from an argument to the key's entry, in the client's database. */
#ifndef CMD_LOOKUP_H
#define CMD_LOOKUP_H

#include "cmd/call.h"
#include "cmd/context.h"

static inline struct db *call_db(const struct call *call) {
    return context_db(call->cx, call->client);
}

/* The hash of the key at argument i: the dispatcher's when i is the first key. */
uint64_t lookup_hash(const struct call *call, size_t i);

/* Find the key at argument i. A client with NO-TOUCH on touches nothing. */
bool lookup_key(struct call *call, size_t i, enum db_touch touch, struct entry *out);

enum lookup { LOOKUP_FOUND, LOOKUP_ABSENT, LOOKUP_REFUSED };

/* Find a key of one type. LOOKUP_REFUSED: it holds another type, WRONGTYPE was replied. */
enum lookup lookup_typed(struct call *call, size_t i, enum value_type type, struct entry *out);

/* Many keys in one command: a group's index and records are fetched side by side. */
#define LOOKUP_GROUP 16

/* Hash up to LOOKUP_GROUP keys at arguments first, first + step, ... into hashes and prefetch what
 * finding them needs. */
void lookup_prefetch(struct call *call, size_t first, size_t step, uint64_t hashes[LOOKUP_GROUP]);

/* Members or fields at arguments first, first + step, ...: fetch what finding up to LOOKUP_GROUP of
 * them in v will touch, side by side. */
void lookup_prefetch_members(const struct call *call, const struct value *v, size_t first,
                             size_t step);

/* The same for members whose hashes are known, any number of them. */
void lookup_prefetch_hashed(const struct value *v, const uint64_t *hashes, size_t count);

/* A write happened: `changes` are counted for the save points. */
static inline void call_dirty(struct call *call, uint64_t changes) {
    call->cx->dbs->stats.dirty += changes;
}

#endif
