/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshot: RDB files on disk, written so that no failure costs the file that was there, and read so
 * that no bad file costs the data that is there.
 *
 *   name        a file of the working directory, without a slash: what a client may give
 *   temporary   "temp-<pid>.rdb" beside it while it is written, locked (flock) by who writes it
 *
 * Writing: temporary, fsync, rename, fsync of the directory. A file that is no RDB file is not
 * replaced; a link is, and what it leads to stays. On any failure the temporary is removed, the old file is as it was (unless it was the
 * directory's fsync: then the new one is there and may not outlive a power cut), and error says what
 * failed, on which path, and why. A process that is killed leaves its temporary;
 * snapshot_remove_stale clears those away at the next start.
 *
 * Reading: into a fresh set of databases, which is handed over only when the file was good to its
 * last byte, checksum included. Until then the memory of both is needed. */
#ifndef PERSIST_SNAPSHOT_H
#define PERSIST_SNAPSHOT_H

#include "persist/reader.h"
#include "persist/writer.h"

#define SNAPSHOT_ERROR_LEN 1024 /* the path, as much of it as fits, and the reason in full */

/* Advice on how far a file has got: bytes and keys so far. false stops the work with ST_CLOSED. */
typedef bool (*snapshot_progress)(void *arg, uint64_t bytes, uint64_t keys);

struct snapshot_save_options {
    bool compress;              /* rdbcompression */
    bool checksum;              /* rdbchecksum */
    size_t used_bytes;          /* memory in use, for the file's head */
    snapshot_progress progress; /* may be NULL */
    void *progress_arg;
};

/* Write all databases to name. path may be relative to the working directory or absolute: what a
 * client may say is for the caller to check with snapshot_name_ok. ST_IO, ST_NOMEM, ST_CLOSED. Nothing
 * is written to the data, so a forked child may call this. */
MUST_CHECK enum status snapshot_save(const struct dbset *set, const char *path,
                                     const struct snapshot_save_options *options,
                                     struct writer_stats *stats, char error[SNAPSHOT_ERROR_LEN]);

struct snapshot_load_options {
    bool ignore_checksum;
    bool skip_unsupported; /* see reader_options */
    int64_t now_ms;
    snapshot_progress progress; /* may be NULL */
    void *progress_arg;
    /* Called once the file is open, with its length. May be NULL. */
    void (*opened)(void *arg, uint64_t total_bytes);
};

/* Read path into *fresh, a set of `count` databases made here, the caller's on ST_OK. ST_NOTFOUND: there
 * is no such file; otherwise as reader_run, with error saying what, where (offset or key) and why. */
MUST_CHECK enum status snapshot_load(const char *path, const struct type_env *env, size_t count,
                                     const struct snapshot_load_options *options,
                                     struct dbset **fresh, struct reader_report *report,
                                     char error[SNAPSHOT_ERROR_LEN]);

/* Read path to its end and keep nothing: --check-rdb. Needs the memory of its largest key. Errors as
 * snapshot_load. */
MUST_CHECK enum status snapshot_check(const char *path, const struct type_env *env,
                                      const struct snapshot_load_options *options,
                                      struct reader_report *report, char error[SNAPSHOT_ERROR_LEN]);

/* Whether a client may name a file so: 1 to 255 bytes, no slash, no control character, not "." or
 * "..", not the name of a temporary. */
bool snapshot_name_ok(struct bytes name);

/* Remove temporaries of the working directory: those that nobody has locked and whose process is gone
 * or is this one, and that of pid, locked or not, when it is not 0. Returns how many. */
size_t snapshot_remove_stale(int64_t pid);

#endif
