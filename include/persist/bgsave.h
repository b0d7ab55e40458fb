/* SPDX-License-Identifier: BSD-3-Clause */
/* bgsave: a snapshot written by a forked child while this process goes on.
 *
 *   child     has the data as it was at the fork, writes it with snapshot_save, and ends
 *   copied    an OS page that either of the two writes is copied by the kernel: the child measures how
 *             many bytes that came to, once a second at most and for a hundredth of its time
 *   board     an OS page that both see: the child writes on it how far it is and how it ended
 *   calm      set from the fork until the child is gone (mem/calm.h)
 *
 * The child runs at low priority, and when memory runs out the kernel takes it first rather than the
 * process that holds the data (oom_score_adj). It holds no descriptor but the standard three, blocks
 * no signal, and dies with its parent. It leaves by _exit: nothing of the parent's is flushed twice.
 *
 * One child at a time. Not with data on hugetlb pages: the caller refuses that. No call waits for the
 * child but those that say so. */
#ifndef PERSIST_BGSAVE_H
#define PERSIST_BGSAVE_H

#include "persist/snapshot.h"

struct bgsave_options {
    bool compress, checksum; /* as in snapshot_save_options */
    size_t used_bytes;
    /* Called in the child: bytes that were copied so far. May be NULL. */
    uint64_t (*copied_bytes)(void);
};

/* How far the child is. */
struct bgsave_progress {
    int64_t pid; /* 0: there is none, and all below is 0 */
    int64_t started_us,
        measured_us; /* monotonic; measured_us: when copied_bytes was, 0: never yet */
    uint64_t keys, keys_total, bytes; /* written so far; at the start */
    uint64_t copied_bytes, copied_peak_bytes;
};

enum bgsave_end {
    BGSAVE_RUNNING,
    BGSAVE_NONE, /* no child is there */
    BGSAVE_DONE,
    BGSAVE_FAILED,
    BGSAVE_CANCELLED, /* by bgsave_cancel, or by a SIGUSR1 to the child as operators of Redis send it */
};

/* What became of a child. */
struct bgsave_result {
    struct bgsave_progress last;
    int64_t took_us;
    char error[SNAPSHOT_ERROR_LEN]; /* BGSAVE_FAILED: what, where and why */
};

struct bgsave;

/* ST_NOMEM. */
MUST_CHECK enum status bgsave_create(struct bgsave **out);

/* A child that lives is killed and waited for. NULL is allowed. */
void bgsave_destroy(struct bgsave *b);

/* Fork a child that writes all databases to path. *fork_us: how long the fork held up the caller.
 * ST_EXISTS: one is under way. ST_IO: fork failed, error says why. */
MUST_CHECK enum status bgsave_start(struct bgsave *b, const struct dbset *set, const char *path,
                                    const struct bgsave_options *options, int64_t *fork_us,
                                    char error[SNAPSHOT_ERROR_LEN]);

/* Look whether the child has ended, after a SIGCHLD or now and then. Its end is told once: the next
 * call answers BGSAVE_NONE. The temporary of a child that was killed is removed. */
enum bgsave_end bgsave_poll(struct bgsave *b, struct bgsave_result *result);

/* End the child; what becomes of it is told by bgsave_poll. With wait it is killed and waited for, so that it
 * can no longer put its file in place; this took 120 ms in the middle of a file of 1 GB, as its file has to go.
 * Without, it is asked to clear its file away and end, and may still succeed when it was nearly done. */
void bgsave_cancel(struct bgsave *b, bool wait);

bool bgsave_is_running(const struct bgsave *b);
void bgsave_get_progress(const struct bgsave *b, struct bgsave_progress *out);

#endif
