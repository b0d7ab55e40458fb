/* SPDX-License-Identifier: BSD-3-Clause */
#include "persist/bgsave.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "mem/calm.h"

/* Lower is no better for anybody: as SCHED_IDLE a save of 0.6 s on two busy CPUs took 1.1 s, and 99.9 % of a
 * reader's waits were below 143 us instead of 54. */
#define CHILD_NICE 10
#define CHILD_OOM_SCORE 800 /* of 1000, as Redis's oom-score-adj-values has it for such a child */
#define EXIT_ASKED 2        /* exit status of a child that was asked to end */
/* A measurement walks all page tables: 36 ms for 2 GiB. */
#define MEASURE_PERIOD_US 1000000
#define MEASURE_SHARE 100

/* Written by the child alone, each field by itself; the parent trusts error and done only once the
 * child has ended. */
struct board {
    _Atomic uint64_t keys, bytes, copied_bytes, copied_peak_bytes;
    _Atomic int64_t measured_us;
    char error[SNAPSHOT_ERROR_LEN];
};

struct bgsave {
    struct board *board;
    pid_t pid; /* 0: no child */
    bool cancelled;
    bool waited;     /* its wait status is in wait_status */
    int wait_status; /* -1: nobody knows */
    int64_t started_us;
    uint64_t keys_total;
};

/* ---- the child ------------------------------------------------------------------------------ */

struct child {
    struct board *board;
    uint64_t (*copied_bytes)(void);
    int64_t next_measure_us;
};

static void measure(struct child *c) {
    int64_t start_us = clock_monotonic_us();
    uint64_t copied = c->copied_bytes();
    int64_t now_us = clock_monotonic_us();
    int64_t pause_us = (now_us - start_us) * MEASURE_SHARE;
    c->next_measure_us = now_us + (pause_us > MEASURE_PERIOD_US ? pause_us : MEASURE_PERIOD_US);
    atomic_store_explicit(&c->board->copied_bytes, copied, memory_order_relaxed);
    if (copied > atomic_load_explicit(&c->board->copied_peak_bytes, memory_order_relaxed)) {
        atomic_store_explicit(&c->board->copied_peak_bytes, copied, memory_order_relaxed);
    }
    atomic_store_explicit(&c->board->measured_us, now_us, memory_order_relaxed);
}

/* SIGUSR1: the child clears its file away itself, which takes 50 ms for 500 MB, and ends. */
static volatile sig_atomic_t asked_to_end;

static void ask_to_end(int signal_number) {
    (void)signal_number;
    asked_to_end = 1;
}

static bool tell_progress(void *arg, uint64_t bytes, uint64_t keys) {
    struct child *c = arg;
    atomic_store_explicit(&c->board->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&c->board->keys, keys, memory_order_relaxed);
    if (c->copied_bytes != NULL && clock_monotonic_us() >= c->next_measure_us) {
        measure(c);
    }
    return !asked_to_end;
}

/* Advice to the kernel: where it cannot be given all stays as it is. */
static void be_expendable(void) {
    FILE *file = fopen("/proc/self/oom_score_adj", "r+");
    int score;
    if (file != NULL) {
        if (fscanf(file, "%d", &score) == 1 && score < CHILD_OOM_SCORE) {
            rewind(file);
            fprintf(file, "%d", CHILD_OOM_SCORE);
        }
        fclose(file);
    }
}

static void settle(pid_t parent) {
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(EXIT_FAILURE); /* it died before this could be asked for */
    }
    closefrom(STDERR_FILENO + 1); /* a socket held here would not close for its peer */
    prctl(PR_SET_NAME, "goblin-bgsave");
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}); /* the parent may be real-time */
    setpriority(PRIO_PROCESS, 0, CHILD_NICE);
    be_expendable();
    signal(SIGUSR1, ask_to_end);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void run_child(struct board *board, const struct dbset *set, const char *path,
                      const struct bgsave_options *options) {
    struct child c = {.board = board,
                      .copied_bytes = options->copied_bytes,
                      .next_measure_us = clock_monotonic_us() + MEASURE_PERIOD_US};
    struct snapshot_save_options save = {.compress = options->compress,
                                         .checksum = options->checksum,
                                         .used_bytes = options->used_bytes,
                                         .progress = tell_progress,
                                         .progress_arg = &c};
    struct writer_stats stats;
    enum status st = snapshot_save(set, path, &save, &stats, board->error);
    if (st == ST_OK) {
        tell_progress(&c, stats.bytes, stats.keys);
    }
    if (c.copied_bytes != NULL) {
        measure(&c);
    }
    _exit(st == ST_OK ? EXIT_SUCCESS : st == ST_CLOSED ? EXIT_ASKED : EXIT_FAILURE);
}

/* ---- the parent ----------------------------------------------------------------------------- */

enum status bgsave_create(struct bgsave **out) {
    struct bgsave *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return ST_NOMEM;
    }
    b->board =
        mmap(NULL, sizeof(*b->board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b->board == MAP_FAILED) {
        free(b);
        return ST_NOMEM;
    }
    *out = b;
    return ST_OK;
}

void bgsave_destroy(struct bgsave *b) {
    struct bgsave_result result;
    if (b == NULL) {
        return;
    }
    if (b->pid != 0) {
        bgsave_cancel(b, true);
        bgsave_poll(b, &result);
    }
    munmap(b->board, sizeof(*b->board));
    free(b);
}

enum status bgsave_start(struct bgsave *b, const struct dbset *set, const char *path,
                         const struct bgsave_options *options, int64_t *fork_us,
                         char error[SNAPSHOT_ERROR_LEN]) {
    if (b->pid != 0) {
        snprintf(error, SNAPSHOT_ERROR_LEN, "a background save is in progress");
        return ST_EXISTS;
    }
    memset(b->board, 0, sizeof(*b->board));
    int64_t start_us = clock_monotonic_us();
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        settle(parent);
        run_child(b->board, set, path, options);
    }
    *fork_us = clock_monotonic_us() - start_us;
    if (pid < 0) {
        snprintf(error, SNAPSHOT_ERROR_LEN, "cannot fork: %s%s", strerror(errno),
                 errno == ENOMEM
                     ? " (the kernel promises memory for a second copy of the data only with "
                       "vm.overcommit_memory=1)"
                     : "");
        return ST_IO;
    }
    calm_set(true);
    *b = (struct bgsave){.board = b->board,
                         .pid = pid,
                         .wait_status = -1,
                         .started_us = start_us,
                         .keys_total = dbset_count(set)};
    return ST_OK;
}

void bgsave_cancel(struct bgsave *b, bool wait) {
    if (b->pid == 0 || b->waited) {
        return;
    }
    b->cancelled = true;
    kill(b->pid, wait ? SIGKILL : SIGUSR1);
    if (wait) {
        while (waitpid(b->pid, &b->wait_status, 0) < 0 && errno == EINTR) {
        }
        b->waited = true;
    }
}

static void describe_death(int signal_number, char error[SNAPSHOT_ERROR_LEN]) {
    snprintf(error, SNAPSHOT_ERROR_LEN, "the child was killed by signal %d (%s)%s", signal_number,
             strsignal(signal_number),
             signal_number == SIGKILL ? ": by somebody, or by the kernel for want of memory" : "");
}

static enum bgsave_end judge(const struct bgsave *b, char error[SNAPSHOT_ERROR_LEN]) {
    int status = b->wait_status;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
        return BGSAVE_DONE;
    }
    bool asked = (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_ASKED) ||
                 (WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1); /* before it could listen */
    if (b->cancelled || asked) {
        return BGSAVE_CANCELLED;
    }
    if (WIFSIGNALED(status)) {
        describe_death(WTERMSIG(status), error);
    } else if (b->board->error[0] != '\0') {
        snprintf(error, SNAPSHOT_ERROR_LEN, "%.*s", SNAPSHOT_ERROR_LEN - 1, b->board->error);
    } else {
        snprintf(error, SNAPSHOT_ERROR_LEN, "the child ended with status %d", status);
    }
    return BGSAVE_FAILED;
}

enum bgsave_end bgsave_poll(struct bgsave *b, struct bgsave_result *result) {
    if (b->pid == 0) {
        return BGSAVE_NONE;
    }
    if (!b->waited) {
        pid_t ended = waitpid(b->pid, &b->wait_status, WNOHANG);
        if (ended == 0 || (ended < 0 && errno == EINTR)) {
            return BGSAVE_RUNNING;
        }
    }
    *result = (struct bgsave_result){.took_us = clock_monotonic_us() - b->started_us};
    bgsave_get_progress(b, &result->last);
    enum bgsave_end end = judge(b, result->error);
    if (WIFSIGNALED(b->wait_status)) {
        snapshot_remove_stale(b->pid);
    }
    b->pid = 0;
    calm_set(false);
    return end;
}

bool bgsave_is_running(const struct bgsave *b) {
    return b->pid != 0;
}

void bgsave_get_progress(const struct bgsave *b, struct bgsave_progress *out) {
    const struct board *board = b->board;
    *out = (struct bgsave_progress){0};
    if (b->pid == 0) {
        return;
    }
    out->pid = b->pid;
    out->started_us = b->started_us;
    out->keys_total = b->keys_total;
    out->measured_us = atomic_load_explicit(&board->measured_us, memory_order_relaxed);
    out->keys = atomic_load_explicit(&board->keys, memory_order_relaxed);
    out->bytes = atomic_load_explicit(&board->bytes, memory_order_relaxed);
    out->copied_bytes = atomic_load_explicit(&board->copied_bytes, memory_order_relaxed);
    out->copied_peak_bytes = atomic_load_explicit(&board->copied_peak_bytes, memory_order_relaxed);
}
