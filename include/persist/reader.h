/* SPDX-License-Identifier: BSD-3-Clause */
/* reader: RDB files of versions 1 to 12 into values, and a caller that keeps them.
 *
 *   source   where the bytes come from, in order, once
 *   target   who is given each key; reader_into_dbset is the one that fills databases
 *   report   what was found, and the first fault in words
 *
 * The bytes are hostile: docs/persistence.md says what is checked and how much memory that takes. A
 * file was good when reader_run answers ST_OK, and not before: keys that the target got earlier are
 * to be thrown away otherwise. No state is kept between calls. */
#ifndef PERSIST_READER_H
#define PERSIST_READER_H

#include "base/buf.h"
#include "db/db.h"

#define READER_ERROR_LEN 320
#define READER_UNKNOWN_LEN UINT64_MAX

/* A key that was read. The image's object becomes the target's when it answers ST_OK; everything
 * else is good during the call only. */
struct reader_key {
    struct bytes key;
    uint64_t hash; /* hash_bytes(key) */
    enum value_type type;
    struct value_image *image;
    int64_t expire_ms;     /* DB_NO_EXPIRY when none */
    uint64_t idle_seconds; /* since its last access, 0 when the file does not say */
};

struct reader_target {
    void *arg;
    const struct type_env *env; /* for the values that are built */
    /* Keys that follow belong to this database; the counts are the file's hints, 0 when it has none.
     * ST_RANGE: there is no such database. */
    enum status (*select)(void *arg, uint64_t number, uint64_t keys, uint64_t expiring);
    /* Advice: this key comes soon; and again, near, when it comes with the next group. May be NULL. */
    void (*prefetch)(void *arg, uint64_t hash, bool near);
    /* ST_EXISTS: the database has it already. ST_NOMEM. */
    enum status (*add)(void *arg, const struct reader_key *key);
    /* A field of the file's head. May be NULL. */
    void (*aux)(void *arg, struct bytes name, struct bytes value);
};

struct reader_options {
    /* Up to cap bytes to ptr; *len is how many, 0 at the end. ST_IO, any other error. */
    enum status (*read)(void *arg, char *ptr, size_t cap, size_t *len);
    void *arg;
    uint64_t total_bytes;  /* the file's length, or READER_UNKNOWN_LEN */
    bool ignore_checksum;  /* do not compare it */
    bool skip_unsupported; /* pass over what is not built here, and count it, instead of refusing */
    bool keep_expired;     /* hand over keys whose time has come by now_ms, too */
    int64_t now_ms;
    /* After each piece that was read, at most 256 KiB but for long strings; false stops the reading
     * with ST_CLOSED. May be NULL. */
    bool (*progress)(void *arg, uint64_t bytes, uint64_t keys);
    void *progress_arg;
};

struct reader_report {
    unsigned version;
    uint64_t bytes; /* read and understood */
    uint64_t keys;  /* handed over */
    uint64_t keys_by_type[VALUE_TYPES];
    uint64_t expiring; /* of them have an expiry */
    uint64_t expired;  /* left out: their time has come */
    uint64_t empty;    /* left out: collections of nothing */
    uint64_t skipped_streams, skipped_modules, skipped_hashes; /* keys, with skip_unsupported */
    uint64_t skipped_functions;  /* libraries, with skip_unsupported */
    uint64_t skipped_module_aux; /* sections, always */
    bool checksum_compared;
    char error[READER_ERROR_LEN]; /* "" when all was well */
};

/* Read a whole file. ST_CORRUPT (a fault in the bytes), ST_UNSUPPORTED (a version, type or section
 * that is not built here), ST_NOMEM, ST_CLOSED (progress said so), or what read answered; each with
 * report->error set. */
MUST_CHECK enum status reader_run(const struct reader_options *options,
                                  const struct reader_target *target, struct reader_report *report);

/* A target that adds keys to the databases of a fresh set. */
struct reader_dbset {
    struct dbset *set;
    struct db *db; /* the one selected */
};
void reader_into_dbset(struct reader_dbset *to, struct dbset *set, struct reader_target *target);

/* A target that keeps nothing: reading only to check. env as above. */
void reader_into_nothing(const struct type_env *env, struct reader_target *target);

/* RESTORE: a value out of a payload of writer_payload or of a Redis up to RDB version 12. On ST_OK
 * the image is the caller's, and its bytes may lie in hold or in the payload. ST_SYNTAX: the version
 * or the checksum is not right, nothing else was looked at; ST_CORRUPT: the bytes are not;
 * ST_UNSUPPORTED; ST_NOMEM. error as in the report. */
MUST_CHECK enum status reader_payload(struct bytes payload, const struct type_env *env,
                                      struct buf *hold, enum value_type *type,
                                      struct value_image *image, char error[READER_ERROR_LEN]);

#endif
