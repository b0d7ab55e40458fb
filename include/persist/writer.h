/* SPDX-License-Identifier: BSD-3-Clause */
/* writer: data as an RDB file of version 10, which Redis 7.0 loads. docs/persistence.md says in
 * which of the format's forms each value is written.
 *
 *   sink     where the bytes go, a buffer at a time: a file, a pipe, a count for progress
 *   buffer   what is gathered before the sink is called; the checksum is taken of it then
 *
 * Memory: the buffer, and what docs/persistence.md promises, whatever the size of the data. Nothing
 * is written to the data, so a forked child may use it; db_each leaves out keys that are due by
 * dbset.now_ms.
 *
 * The first failure stays: all calls after it answer the same, and nothing more reaches the sink. */
#ifndef PERSIST_WRITER_H
#define PERSIST_WRITER_H

#include "base/buf.h"
#include "db/db.h"

struct writer_options {
    /* Take len bytes, all of them; anything but ST_OK ends the writing. */
    enum status (*write)(void *arg, const char *ptr, size_t len);
    void *arg;
    size_t buffer_bytes; /* 0: 256 KiB */
    bool compress;       /* strings over 20 bytes by LZF, when that makes them shorter */
    bool checksum;       /* of the whole file; without it eight zeros are written */
};

struct writer_stats {
    uint64_t bytes; /* handed to the sink */
    uint64_t keys;  /* written so far */
};

struct writer;

/* ST_NOMEM. */
MUST_CHECK enum status writer_create(const struct writer_options *options, struct writer **out);
void writer_destroy(struct writer *w);

/* The parts of a file, in this order: begin, any number of aux fields, databases, end. */
MUST_CHECK enum status writer_begin(struct writer *w);
MUST_CHECK enum status writer_aux(struct writer *w, const char *name, struct bytes value);
MUST_CHECK enum status writer_aux_number(struct writer *w, const char *name, int64_t value);

/* Keys that follow belong to this database. The counts are hints for who loads. */
MUST_CHECK enum status writer_select(struct writer *w, size_t number, uint64_t keys,
                                     uint64_t expiring);
MUST_CHECK enum status writer_key(struct writer *w, const struct entry *e);

/* Write the end and the checksum, hand the last bytes to the sink. */
MUST_CHECK enum status writer_end(struct writer *w);

/* All of it: begin, the usual aux fields, every database that is not empty, end. used_bytes is the
 * memory in use that the file tells its reader. */
MUST_CHECK enum status writer_dbset(struct writer *w, const struct dbset *set, size_t used_bytes);

void writer_get_stats(const struct writer *w, struct writer_stats *out);

/* DUMP: a value as a payload that RESTORE takes, appended to out. ST_NOMEM: out as before. */
MUST_CHECK enum status writer_payload(const struct value *v, bool compress, struct buf *out);

/* Bytes a value takes in a file, its type and its key's name aside. ST_NOMEM. */
MUST_CHECK enum status writer_value_bytes(const struct value *v, bool compress, uint64_t *bytes);

#endif
