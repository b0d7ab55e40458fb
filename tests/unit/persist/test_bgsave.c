/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots by a forked child: what they leave on disk, and how their end is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "mem/calm.h"
#include "persist/bgsave.h"

#define FILE_NAME "dump.rdb"

static char dir[] = "/tmp/goblin-bgsave-XXXXXX";

struct scene {
    struct store store;
    struct bgsave *bgsave;
    struct bgsave_result result;
    char error[SNAPSHOT_ERROR_LEN];
};

static void begin(struct scene *s) {
    store_create(&s->store);
    put(&s->store, 0, "a", BYTES_LIT("old"), DB_NO_EXPIRY);
    for (int i = 0; i < 500; i++) {
        char name[32];
        snprintf(name, sizeof(name), "key:%d", i);
        put(&s->store, 3, name, BYTES_LIT("some value"), FAR);
    }
    assert_int_equal(bgsave_create(&s->bgsave), ST_OK);
}

static void end(struct scene *s) {
    bgsave_destroy(s->bgsave);
    store_destroy(&s->store);
    assert_false(calm());
    unlink(FILE_NAME);
    assert_int_equal(access("temp", F_OK), -1);
}

static enum status start(struct scene *s, uint64_t (*copied_bytes)(void)) {
    struct bgsave_options options = {
        .checksum = true, .compress = true, .copied_bytes = copied_bytes};
    int64_t fork_us = -1;
    enum status st = bgsave_start(s->bgsave, s->store.set, FILE_NAME, &options, &fork_us, s->error);
    assert_true(fork_us >= 0 || st == ST_EXISTS);
    return st;
}

static enum bgsave_end await_end(struct scene *s) {
    enum bgsave_end end;
    int waited = 0;
    while ((end = bgsave_poll(s->bgsave, &s->result)) == BGSAVE_RUNNING) {
        assert_true(calm());
        assert_true(waited++ < 30000);
        usleep(1000);
    }
    assert_false(bgsave_is_running(s->bgsave));
    assert_int_equal(bgsave_poll(s->bgsave, &s->result), BGSAVE_NONE);
    return end;
}

static uint64_t keys_in_file(const struct scene *s) {
    struct snapshot_load_options options = {.now_ms = NOW};
    struct reader_report report;
    char error[SNAPSHOT_ERROR_LEN];
    assert_int_equal(snapshot_check(FILE_NAME, &s->store.set->env, &options, &report, error),
                     ST_OK);
    return report.keys;
}

static int64_t child_pid(const struct scene *s) {
    struct bgsave_progress progress;
    bgsave_get_progress(s->bgsave, &progress);
    return progress.pid;
}

/* Stays until somebody kills it: called in the child once its file is in place. */
static uint64_t never_return(void) {
    while (pause() != 0) {
    }
    return 0;
}

static uint64_t seven_pages(void) {
    return 7 * 4096;
}

/* ---- the good case -------------------------------------------------------------------------- */

static void the_file_holds_the_data_as_it_was(void **state) {
    struct scene s;
    begin(&s);
    assert_int_equal(start(&s, seven_pages), ST_OK);
    assert_true(calm());
    put(&s.store, 0, "b", BYTES_LIT("later"), DB_NO_EXPIRY);
    assert_int_equal(await_end(&s), BGSAVE_DONE);
    assert_int_equal(keys_in_file(&s), 501);
    assert_int_equal(s.result.last.keys, 501);
    assert_int_equal(s.result.last.keys_total, 501);
    assert_int_equal(s.result.last.copied_bytes, 7 * 4096);
    assert_int_equal(s.result.last.copied_peak_bytes, 7 * 4096);
    assert_true(s.result.last.bytes > 501 && s.result.took_us > 0);
    struct stat info;
    assert_int_equal(stat(FILE_NAME, &info), 0);
    assert_int_equal(info.st_size, s.result.last.bytes);
    end(&s);
}

static void one_child_at_a_time(void **state) {
    struct scene s;
    begin(&s);
    assert_int_equal(start(&s, never_return), ST_OK);
    assert_true(bgsave_is_running(s.bgsave));
    assert_int_equal(start(&s, NULL), ST_EXISTS);
    bgsave_cancel(s.bgsave, true);
    assert_int_equal(start(&s, NULL), ST_EXISTS); /* until its end was told */
    assert_int_equal(await_end(&s), BGSAVE_CANCELLED);
    assert_int_equal(start(&s, NULL), ST_OK);
    assert_int_equal(await_end(&s), BGSAVE_DONE);
    end(&s);
}

static uint64_t misbehaves(void) {
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    return 4096 | (uint64_t)(sigismember(&blocked, SIGTERM) || sigismember(&blocked, SIGCHLD)) |
           (uint64_t)(fcntl(100, F_GETFD) != -1) << 1 |
           (uint64_t)(getpriority(PRIO_PROCESS, 0) < 10 || sched_getscheduler(0) != SCHED_BATCH)
               << 2;
}

static void the_child_holds_nothing_it_should_not(void **state) {
    struct scene s;
    sigset_t some;
    begin(&s);
    sigemptyset(&some);
    sigaddset(&some, SIGTERM);
    sigaddset(&some, SIGCHLD);
    sigprocmask(SIG_BLOCK, &some, NULL);
    assert_int_equal(dup2(STDERR_FILENO, 100), 100);
    assert_int_equal(start(&s, misbehaves), ST_OK);
    assert_int_equal(await_end(&s), BGSAVE_DONE);
    assert_int_equal(s.result.last.copied_bytes, 4096);
    close(100);
    sigprocmask(SIG_UNBLOCK, &some, NULL);
    end(&s);
}

/* What stdio holds back is the parent's to write, and so are its atexit handlers. */
static void the_child_flushes_nothing_of_the_parents(void **state) {
    struct scene s;
    struct stat info;
    begin(&s);
    FILE *file = fopen("buffered", "w");
    assert_non_null(file);
    fputs("once", file);
    assert_int_equal(start(&s, NULL), ST_OK);
    assert_int_equal(await_end(&s), BGSAVE_DONE);
    fclose(file);
    assert_int_equal(stat("buffered", &info), 0);
    assert_int_equal(info.st_size, 4);
    unlink("buffered");
    end(&s);
}

/* ---- ends before its time -------------------------------------------------------------------- */

static void a_killed_child_is_told_by_its_signal(void **state) {
    struct scene s;
    char temporary[64];
    begin(&s);
    for (int signal_number = SIGKILL; signal_number != 0;
         signal_number = signal_number == SIGKILL ? SIGTERM : 0) {
        assert_int_equal(start(&s, never_return), ST_OK);
        snprintf(temporary, sizeof(temporary), "temp-%lld.rdb", (long long)child_pid(&s));
        kill((pid_t)child_pid(&s), signal_number);
        assert_int_equal(waitid(P_PID, (id_t)child_pid(&s), &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
        fclose(fopen(temporary, "w")); /* as one killed while it writes leaves it */
        assert_int_equal(await_end(&s), BGSAVE_FAILED);
        assert_non_null(
            strstr(s.result.error, signal_number == SIGKILL ? "signal 9" : "signal 15"));
        assert_int_equal(access(temporary, F_OK), -1);
    }
    end(&s);
}

static void cancelling_is_no_failure(void **state) {
    struct scene s;
    begin(&s);
    for (int times = 1; times <= 2; times++) {
        assert_int_equal(start(&s, never_return), ST_OK);
        for (int i = 0; i < times; i++) {
            bgsave_cancel(s.bgsave, true);
        }
        assert_int_equal(await_end(&s), BGSAVE_CANCELLED);
        assert_string_equal(s.result.error, "");
    }
    bgsave_cancel(s.bgsave, true); /* nobody there */
    end(&s);
}

static void destroying_ends_the_child(void **state) {
    struct scene s;
    begin(&s);
    assert_int_equal(start(&s, never_return), ST_OK);
    pid_t pid = (pid_t)child_pid(&s);
    bgsave_destroy(s.bgsave);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(bgsave_create(&s.bgsave), ST_OK);
    end(&s);
}

static void a_directory_that_is_gone_is_told_and_the_old_file_stays(void **state) {
    struct scene s;
    begin(&s);
    assert_int_equal(start(&s, NULL), ST_OK);
    assert_int_equal(await_end(&s), BGSAVE_DONE);
    put(&s.store, 0, "b", BYTES_LIT("later"), DB_NO_EXPIRY);
    assert_int_equal(mkdir("gone", 0700), 0);
    assert_int_equal(chdir("gone"), 0);
    assert_int_equal(rmdir("../gone"), 0);
    assert_int_equal(start(&s, NULL), ST_OK);
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(await_end(&s), BGSAVE_FAILED);
    assert_non_null(strstr(s.result.error, "No such file or directory"));
    assert_int_equal(keys_in_file(&s), 501);
    end(&s);
}

static void a_fork_that_fails_is_told(void **state) {
    struct scene s;
    struct rlimit before, none;
    uid_t uid = getuid();
    begin(&s);
    assert_int_equal(getrlimit(RLIMIT_NPROC, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    if (uid == 0) { /* the limit is not for root */
        assert_int_equal(setresuid(12345, 12345, 0), 0);
    }
    assert_int_equal(setrlimit(RLIMIT_NPROC, &none), 0);
    enum status st = start(&s, NULL);
    assert_int_equal(setrlimit(RLIMIT_NPROC, &before), 0);
    assert_int_equal(setresuid(uid, uid, uid), 0);
    assert_int_equal(st, ST_IO);
    assert_string_equal(s.error, "cannot fork: Resource temporarily unavailable");
    assert_false(calm());
    assert_int_equal(bgsave_poll(s.bgsave, &s.result), BGSAVE_NONE);
    end(&s);
}

static int enter(void **state) {
    return mkdtemp(dir) != NULL && chdir(dir) == 0 ? 0 : -1;
}

static int leave(void **state) {
    return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_holds_the_data_as_it_was),
        cmocka_unit_test(one_child_at_a_time),
        cmocka_unit_test(the_child_holds_nothing_it_should_not),
        cmocka_unit_test(the_child_flushes_nothing_of_the_parents),
        cmocka_unit_test(a_killed_child_is_told_by_its_signal),
        cmocka_unit_test(cancelling_is_no_failure),
        cmocka_unit_test(destroying_ends_the_child),
        cmocka_unit_test(a_directory_that_is_gone_is_told_and_the_old_file_stays),
        cmocka_unit_test(a_fork_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
