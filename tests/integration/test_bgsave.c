/* SPDX-License-Identifier: BSD-3-Clause */
/* BGSAVE and save points: what a client is told, what lies on disk, and what is left when the child, the
 * server or the disk fails. The child is held with SIGSTOP where something has to happen meanwhile. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/client.h"
#include "support/load.h"
#include "support/server.h"

enum { KEYS = 100000, CRASHES = 20 };

#define MISCONF                                                                                    \
    "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to " \
    "disk. Commands that may modify the data set are disabled, because this instance is "          \
    "configured to report errors during writes if RDB snapshotting fails "                         \
    "(stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB " \
    "error."
#define STARTED "+Background saving started"
#define IN_PROGRESS "-ERR Background save already in progress"

/* ---- helpers -------------------------------------------------------------------------------- */

static struct client *start_with(struct server **s, const char *const *args, uint64_t keys) {
    *s = server_start(SERVER_GOBLIN, args);
    struct client *c = server_connect(*s);
    struct load load = {
        .client = c, .kind = LOAD_STRINGS, .value_min_len = 50, .value_max_len = 150};
    load_write(&load, 0, keys, 1);
    return c;
}

static pid_t child_of(const struct server *s) {
    char path[64];
    int pid = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)s->pid, (int)s->pid);
    FILE *f = fopen(path, "r");
    if (f != NULL) {
        if (fscanf(f, "%d", &pid) != 1) {
            pid = 0;
        }
        fclose(f);
    }
    return pid;
}

static bool has_settled(pid_t child) {
    char path[64], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)child);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    (void)!fscanf(f, "%31s", name);
    fclose(f);
    return strcmp(name, "goblin-bgsave") == 0;
}

/* A background save that stays where it is, soon after its start. */
static pid_t begin_and_hold(struct server *s, struct client *c) {
    client_expect(c, STARTED, "BGSAVE", NULL);
    pid_t child = child_of(s);
    assert_true(child > 0);
    while (!has_settled(child)) {
        usleep(200);
    }
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(client_info_number(c, "persistence", "rdb_bgsave_in_progress"), 1);
    return child;
}

static void await_number(struct client *c, const char *section, const char *field, long long want) {
    for (int i = 0; client_info_number(c, section, field) != want; i++) {
        assert_true(i < 3000);
        usleep(10000);
    }
}

static void await_end(struct client *c) {
    await_number(c, "persistence", "rdb_bgsave_in_progress", 0);
}

static void expect_status(struct client *c, const char *want) {
    char got[16];
    assert_true(client_info(c, "persistence", "rdb_last_bgsave_status", got, sizeof(got)));
    assert_string_equal(got, want);
}

static void kill_child(struct server *s, struct client *c, int signal_number) {
    assert_int_equal(kill(begin_and_hold(s, c), signal_number), 0);
    kill(child_of(s), SIGCONT); /* what is no SIGKILL waits for it */
    await_end(c);
}

static bool log_has(const struct server *s, const char *text) {
    char *log = server_log(s);
    bool found = strstr(log, text) != NULL;
    free(log);
    return found;
}

/* How many temporaries there are; they are removed when asked. */
static int temporaries(const char *dir, bool remove_them) {
    int count = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strncmp(e->d_name, "temp-", 5) == 0) {
            count++;
            if (remove_them) {
                unlinkat(dirfd(d), e->d_name, 0);
            }
        }
    }
    closedir(d);
    return count;
}

static int temporaries_in(const char *dir) {
    return temporaries(dir, false);
}

static long long size_of(const char *dir, const char *name) {
    char path[256];
    struct stat info;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return stat(path, &info) == 0 ? (long long)info.st_size : -1;
}

/* How many keys a server finds in the file when it starts there. */
static long long keys_in(enum server_kind kind, const char *dir, const char *name) {
    const char *args[] = {"--dir", dir, "--dbfilename", name, NULL};
    struct server *s = server_start(kind, args);
    struct client *c = server_connect(s);
    await_number(c, "persistence", "loading", 0);
    struct reply *r = client_cmd(c, "DBSIZE", NULL);
    long long keys = r->integer;
    reply_free(r);
    client_close(c);
    server_kill(s);
    return keys;
}

static int64_t now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- BGSAVE --------------------------------------------------------------------------------- */

static void the_file_is_there_and_the_server_goes_on(void **state) {
    (void)state;
    struct server *s;
    struct client *c = start_with(&s, NULL, KEYS);
    client_expect(c, STARTED, "BGSAVE", NULL);
    client_expect(c, "+OK", "SET", "later", "1", NULL);
    await_end(c);
    expect_status(c, "ok");
    assert_int_equal(client_info_number(c, "persistence", "rdb_changes_since_last_save"), 1);
    assert_int_equal(client_info_number(c, "persistence", "rdb_saves"), 1);
    assert_int_equal(client_info_number(c, "persistence", "rdb_current_bgsave_time_sec"), -1);
    assert_true(client_info_number(c, "persistence", "rdb_last_bgsave_time_sec") >= 0);
    assert_true(client_info_number(c, "persistence", "rdb_last_cow_size") > 0);
    assert_true(client_info_number(c, "stats", "latest_fork_usec") > 0);
    assert_int_equal(client_info_number(c, "stats", "total_forks"), 1);
    assert_true(log_has(s, "Background saving terminated with success"));
    assert_int_equal(temporaries_in(s->dir), 0);
    assert_int_equal(keys_in(SERVER_GOBLIN, s->dir, "dump.rdb"), KEYS);
    if (server_available(SERVER_ORACLE)) {
        assert_int_equal(keys_in(SERVER_ORACLE, s->dir, "dump.rdb"), KEYS);
    }
    client_close(c);
    server_stop(s);
}

static void it_takes_a_name_and_schedule(void **state) {
    (void)state;
    struct server *s;
    struct client *c = start_with(&s, NULL, 10);
    static const char *const forms[][3] = {
        {"SCHEDULE"}, {"copy.rdb"}, {"schedule", "other.rdb"}, {"SCHEDULE", "schedule"}};
    static const char *const files[] = {"dump.rdb", "copy.rdb", "other.rdb", "schedule"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        client_append(c, "BGSAVE", forms[i][0], forms[i][1], NULL);
        assert_true(client_flush(c));
        client_expect_next(c, STARTED);
        await_end(c);
        assert_true(size_of(s->dir, files[i]) > 0);
    }
    /* Only the first was to dbfilename: the others are copies. */
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    client_expect(c, STARTED, "BGSAVE", "copy.rdb", NULL);
    await_end(c);
    assert_int_equal(client_info_number(c, "persistence", "rdb_changes_since_last_save"), 1);
    client_expect(c, "-ERR syntax error", "BGSAVE", "SCHEDULE", "a", "b", NULL);
    client_expect(c, "-ERR syntax error", "BGSAVE", "a", "b", NULL);
    static const char *const bad[] = {"", ".", "..", "a/b", "/tmp/x", "../x", "temp-1.rdb"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct reply *r = client_cmd(c, "BGSAVE", bad[i], NULL);
        assert_true(reply_is_error(r));
        reply_free(r);
    }
    assert_int_equal(client_info_number(c, "persistence", "rdb_bgsave_in_progress"), 0);
    client_close(c);
    server_stop(s);
}

static void what_cannot_go_beside_it_is_refused(void **state) {
    (void)state;
    struct server *s;
    struct client *c = start_with(&s, NULL, KEYS);
    pid_t child = begin_and_hold(s, c);
    client_expect(c, IN_PROGRESS, "BGSAVE", NULL);
    client_expect(c, IN_PROGRESS, "BGSAVE", "SCHEDULE", NULL);
    client_expect(c, IN_PROGRESS, "BGSAVE", "other.rdb", NULL);
    client_expect(c, IN_PROGRESS, "SAVE", NULL);
    client_expect(c, IN_PROGRESS, "LOAD", "dump.rdb", NULL);
    assert_int_equal(client_info_number(c, "persistence", "current_save_keys_total"), KEYS);
    assert_true(client_info_number(c, "persistence", "current_save_keys_processed") < KEYS);
    assert_true(client_info_number(c, "persistence", "rdb_current_bgsave_time_sec") >= 0);
    client_expect(c, "+OK", "SET", "a", "1", NULL); /* reads and writes go on */
    client_expect(c, "\"1\"", "GET", "a", NULL);
    kill(child, SIGCONT);
    await_end(c);
    expect_status(c, "ok");
    client_expect(c, "+OK", "SAVE", NULL);
    client_close(c);
    server_stop(s);
}

static void the_child_keeps_no_socket_open(void **state) {
    (void)state;
    struct server *s;
    struct client *c = start_with(&s, NULL, KEYS);
    struct client *other = server_connect_tcp(s);
    client_expect(other, "+PONG", "PING", NULL);
    begin_and_hold(s, c);
    client_expect(other, "+OK", "QUIT", NULL);
    assert_true(client_wait_closed(other, 5000));
    client_close(other);
    client_close(c);
    server_stop(s); /* kills the child */
}

static void flushall_ends_it(void **state) {
    (void)state;
    struct server *s;
    struct client *c = start_with(&s, NULL, KEYS);
    struct load load = {
        .client = c, .kind = LOAD_STRINGS, .value_min_len = 50, .value_max_len = 150};
    client_expect(c, "+OK", "SAVE", NULL);
    long long size = size_of(s->dir, "dump.rdb");
    pid_t child = begin_and_hold(s, c);
    client_expect(c, "+OK", "FLUSHALL", NULL);
    kill(child, SIGCONT);
    await_end(c);
    expect_status(c, "ok");
    assert_true(log_has(s, "Background saving was cancelled"));
    assert_int_equal(temporaries_in(s->dir), 0);
    assert_int_equal(size_of(s->dir, "dump.rdb"), size); /* no save points: the file stays */
    client_expect(c, "+OK", "CONFIG", "SET", "save", "3600 1", NULL);
    load_write(&load, 0, KEYS, 1);
    child = begin_and_hold(s, c);
    client_expect(c, "+OK", "FLUSHALL", NULL);
    assert_int_equal(kill(child, 0), -1);
    assert_int_equal(client_info_number(c, "persistence", "rdb_bgsave_in_progress"), 0);
    assert_true(size_of(s->dir, "dump.rdb") < 300); /* with save points it tells at once */
    assert_int_equal(temporaries_in(s->dir), 0);
    client_close(c);
    server_stop(s);
}

static void debug_reload_ends_it(void **state) {
    (void)state;
    struct server *s;
    struct client *c = start_with(&s, NULL, KEYS);
    pid_t child = begin_and_hold(s, c);
    client_expect(c, "+OK", "DEBUG", "RELOAD", NULL);
    assert_int_equal(kill(child, 0), -1);
    assert_int_equal(client_info_number(c, "persistence", "rdb_changes_since_last_save"), 0);
    assert_int_equal(temporaries_in(s->dir), 0);
    client_close(c);
    server_stop(s);
}

/* With save points it saves itself, without a word. */
static void shutdown_ends_it(void **state) {
    (void)state;
    static const char *const args[] = {"--save", "3600 1", NULL};
    for (int save = 0; save < 2; save++) {
        struct server *s;
        struct client *c = start_with(&s, args, KEYS);
        pid_t child = begin_and_hold(s, c);
        client_append(c, "SHUTDOWN", save ? NULL : "NOSAVE", NULL);
        assert_true(client_flush(c));
        assert_true(client_wait_closed(c, 10000));
        client_close(c);
        for (int i = 0; i < 1000 && server_alive(s); i++) {
            usleep(10000);
        }
        assert_int_equal(kill(child, 0), -1);
        assert_int_equal(temporaries_in(s->dir), 0);
        if (save) {
            assert_int_equal(keys_in(SERVER_GOBLIN, s->dir, "dump.rdb"), KEYS);
        } else {
            assert_int_equal(size_of(s->dir, "dump.rdb"), -1);
        }
        server_stop(s);
    }
}

/* ---- failures ------------------------------------------------------------------------------- */

static void a_killed_child_stops_writes_until_a_save_is_good(void **state) {
    (void)state;
    static const char *const args[] = {"--save", "3600 1", NULL};
    struct server *s;
    struct client *c = start_with(&s, args, KEYS);
    client_expect(c, "+OK", "SAVE", NULL);
    long long size = size_of(s->dir, "dump.rdb");
    for (int round = 0; round < 2; round++) {
        kill_child(s, c, SIGKILL);
        expect_status(c, "err");
        assert_true(log_has(s, "Background saving error: the child was killed by signal 9"));
        assert_int_equal(temporaries_in(s->dir), 0);
        assert_int_equal(size_of(s->dir, "dump.rdb"), size);
        client_expect(c, MISCONF, "SET", "a", "1", NULL);
        client_expect(c, MISCONF, "PING", NULL);
        client_expect(c, MISCONF, "FLUSHALL", NULL);
        client_expect(c, "nil", "GET", "a", NULL);
        client_expect(c, "+OK", "CONFIG", "SET", "stop-writes-on-bgsave-error", "no", NULL);
        client_expect(c, ":0", "DEL", "a", NULL);
        client_expect(c, "+OK", "CONFIG", "SET", "stop-writes-on-bgsave-error", "yes", NULL);
        client_expect(c, MISCONF, "DEL", "a", NULL);
        client_expect(c, "+OK", "CONFIG", "SET", "save", "", NULL);
        client_expect(c, ":0", "DEL", "a", NULL); /* without save points nobody relies on it */
        client_expect(c, "+OK", "CONFIG", "SET", "save", "3600 1", NULL);
        if (round == 0) {
            client_expect(c, STARTED, "BGSAVE", NULL);
            await_end(c);
        } else {
            client_expect(c, "+OK", "SAVE", NULL);
        }
        expect_status(c, "ok");
        client_expect(c, ":0", "DEL", "a", NULL);
    }
    kill_child(s, c, SIGUSR1); /* an operator's way to end it: no failure */
    expect_status(c, "ok");
    assert_true(log_has(s, "Background saving was cancelled"));
    client_close(c);
    server_stop(s);
}

static void a_good_copy_does_not_make_the_status_good(void **state) {
    (void)state;
    static const char *const args[] = {"--save", "3600 1", NULL};
    struct server *s;
    struct client *c = start_with(&s, args, 1);
    char path[128];
    snprintf(path, sizeof(path), "%s/dump.rdb", s->dir);
    assert_int_equal(mkdir(path, 0755), 0);
    client_expect(c, STARTED, "BGSAVE", NULL);
    await_end(c);
    expect_status(c, "err");
    client_expect(c, STARTED, "BGSAVE", "copy.rdb", NULL);
    await_end(c);
    assert_true(size_of(s->dir, "copy.rdb") > 0);
    expect_status(c, "err");
    client_expect(c, MISCONF, "SET", "a", "1", NULL);
    assert_int_equal(rmdir(path), 0);
    client_expect(c, STARTED, "BGSAVE", NULL);
    await_end(c);
    expect_status(c, "ok");
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    client_close(c);
    server_stop(s);
}

/* No change is left that a save point could count. */
static void loading_the_file_again_lets_clients_write(void **state) {
    (void)state;
    static const char *const args[] = {"--save", "3600 1", NULL};
    struct server *s;
    struct client *c = start_with(&s, args, KEYS);
    client_expect(c, "+OK", "SAVE", NULL);
    kill_child(s, c, SIGKILL);
    client_expect(c, MISCONF, "SET", "a", "1", NULL);
    client_expect(c, "+OK", "LOAD", "dump.rdb", NULL);
    expect_status(c, "ok");
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    client_close(c);
    server_stop(s);
}

static void a_synchronous_save_point_that_fails_is_told(void **state) {
    (void)state;
    static const char *const args[] = {"--save", "1 1", "--save-synchronously", "yes", NULL};
    struct server *s;
    struct client *c = start_with(&s, args, 0);
    char path[128];
    snprintf(path, sizeof(path), "%s/dump.rdb", s->dir);
    assert_int_equal(mkdir(path, 0755), 0);
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    for (int i = 0; !log_has(s, "Saving failed: "); i++) {
        assert_true(i < 1000);
        usleep(10000);
    }
    client_expect(c, MISCONF, "SET", "a", "1", NULL);
    expect_status(c, "err");
    assert_int_equal(rmdir(path), 0);
    client_expect(c, "+OK", "SAVE", NULL);
    expect_status(c, "ok");
    client_close(c);
    server_stop(s);
}

static void a_full_disk_costs_nothing_and_the_save_points_try_again(void **state) {
    (void)state;
    char dir[] = "/tmp/goblin-full-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    if (mount("goblin", dir, "tmpfs", 0, "size=1m") != 0) {
        rmdir(dir);
        TEST_SKIP("a small tmpfs cannot be mounted here");
    }
    const char *args[] = {"--dir", dir, "--save", "1 1", NULL};
    struct server *s;
    struct client *c = start_with(&s, args, 10);
    await_number(c, "persistence", "rdb_changes_since_last_save", 0);
    long long size = size_of(dir, "dump.rdb");
    assert_true(size > 0);
    struct load load = {
        .client = c, .kind = LOAD_STRINGS, .value_min_len = 50, .value_max_len = 150};
    load_write(&load, 10, 20000, 1); /* 2 MB */
    struct reply *r;
    for (int i = 0;; i++) {
        r = client_cmd(c, "SET", "a", "1", NULL);
        if (reply_is_error(r)) {
            break;
        }
        reply_free(r);
        assert_true(i < 3000);
        usleep(10000);
    }
    assert_memory_equal(r->str, "MISCONF ", 8);
    reply_free(r);
    expect_status(c, "err");
    assert_true(log_has(s, "No space left on device"));
    assert_int_equal(temporaries_in(dir), 0);
    assert_int_equal(size_of(dir, "dump.rdb"), size);
    int64_t failed_ms = now_ms();
    assert_int_equal(mount("goblin", dir, "tmpfs", MS_REMOUNT, "size=8m"), 0);
    await_number(c, "persistence", "rdb_changes_since_last_save", 0);
    assert_true(now_ms() - failed_ms > 4000); /* after its five seconds, not at once */
    expect_status(c, "ok");
    assert_true(size_of(dir, "dump.rdb") > 1000000);
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    client_close(c);
    server_kill(s);
    snprintf(path, sizeof(path), "%s/dump.rdb", dir);
    unlink(path);
    umount(dir);
    rmdir(dir);
}

/* ---- save points ---------------------------------------------------------------------------- */

static void a_save_point_saves_after_so_many_changes(void **state) {
    (void)state;
    static const char *const args[] = {"--save", "1 3", NULL};
    struct server *s;
    struct client *c = start_with(&s, args, 2);
    usleep(2300000);
    assert_int_equal(size_of(s->dir, "dump.rdb"), -1); /* two changes only */
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    await_number(c, "persistence", "rdb_changes_since_last_save", 0);
    assert_true(size_of(s->dir, "dump.rdb") > 0);
    assert_true(log_has(s, "3 changes in 1 seconds. Saving..."));
    client_expect(c, "[\"save\" \"1 3\"]", "CONFIG", "GET", "save", NULL);
    client_close(c);
    server_stop(s);
}

/* ---- reserved huge pages -------------------------------------------------------------------- */

static void reserved_huge_pages_refuse_a_fork_and_name_save(void **state) {
    (void)state;
    static const char *const args[] = {"--arena-hugetlb", "yes", NULL};
    struct server *s;
    struct client *c = start_with(&s, args, 10);
    struct reply *r = client_cmd(c, "BGSAVE", NULL);
    assert_true(reply_is_error(r));
    assert_non_null(strstr(r->str, "use SAVE"));
    assert_non_null(strstr(r->str, "--arena-hugetlb"));
    reply_free(r);
    r = client_cmd(c, "CONFIG", "SET", "save", "60 1", NULL);
    assert_true(reply_is_error(r));
    assert_non_null(strstr(r->str, "save-synchronously"));
    reply_free(r);
    client_expect(c, "[\"save\" \"\"]", "CONFIG", "GET", "save", NULL);
    client_expect(c, "+OK", "SAVE", NULL);
    expect_status(c, "ok");
    client_close(c);
    server_stop(s);

    char port[16], out[4096];
    snprintf(port, sizeof(port), "%d", free_port());
    const char *start[] = {"--port", port, "--arena-hugetlb", "--save", "60 1", NULL};
    assert_true(server_run(SERVER_GOBLIN, start, out, sizeof(out)) > 0);
    assert_non_null(strstr(out, "save-synchronously"));

    static const char *const synchronous[] = {"--arena-hugetlb",      "yes", "--save", "1 1",
                                              "--save-synchronously", "yes", NULL};
    c = start_with(&s, synchronous, 10);
    await_number(c, "persistence", "rdb_changes_since_last_save", 0);
    assert_int_equal(client_info_number(c, "stats", "total_forks"), 0);
    assert_int_equal(client_info_number(c, "persistence", "rdb_saves"), 1);
    assert_true(size_of(s->dir, "dump.rdb") > 0);
    client_close(c);
    server_stop(s);
}

/* ---- kill -9 -------------------------------------------------------------------------------- */

/* No process of that number runs; one that is dead and that nobody has waited for does not. */
static bool is_dead(pid_t pid) {
    char path[64], state = 'X';
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f != NULL) {
        (void)!fscanf(f, "%*d (%*[^)]) %c", &state);
        fclose(f);
    }
    return state == 'X' || state == 'Z';
}

static void await_death(pid_t pid) {
    for (int i = 0; pid > 0 && !is_dead(pid); i++) {
        assert_true(i < 1000);
        usleep(5000);
    }
}

/* Its number is free, so that a server knows its file for a left one. Where orphans are waited for by nobody
 * this never comes. */
static bool await_forgotten(pid_t pid) {
    for (int i = 0; pid > 0 && kill(pid, 0) == 0; i++) {
        if (i == 200) {
            return false;
        }
        usleep(5000);
    }
    return true;
}

/* The server, or its child, at any moment of a save: what was saved before is there at the next start,
 * or what is newer; and nothing else is left. */
static void kill_9_at_any_moment_costs_no_saved_data(void **state) {
    (void)state;
    const char *text = getenv("GC_CRASHES");
    int rounds = text != NULL ? atoi(text) : CRASHES;
    char dir[] = "/tmp/goblin-crash-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    const char *args[] = {"--dir", dir, NULL};
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u, %d rounds\n", seed, rounds);
    bool forgotten = true;
    int saved = 0; /* the newest round that is surely in the file */
    for (int round = 1; round <= rounds; round++) {
        struct server *s = server_start(SERVER_GOBLIN, args);
        struct client *c = server_connect(s);
        await_number(c, "persistence", "loading", 0);
        int left = temporaries_in(dir);
        assert_true(!forgotten || left == 0);
        if (round == 1) {
            struct load load = {
                .client = c, .kind = LOAD_STRINGS, .value_min_len = 50, .value_max_len = 150};
            load_write(&load, 0, 20000, 1);
        } else {
            struct reply *r = client_cmd(c, "GET", "round", NULL);
            int found = r->str != NULL ? atoi(r->str) : 0;
            reply_free(r);
            assert_true(found >= saved && found < round);
            client_expect(c, found > 0 ? ":20001" : ":0", "DBSIZE", NULL);
            saved = found;
        }
        char number[16];
        snprintf(number, sizeof(number), "%d", round);
        client_expect(c, "+OK", "SET", "round", number, NULL);
        if (round == 1) {
            client_expect(c, "+OK", "SAVE", NULL);
            saved = 1;
        }
        client_expect(c, STARTED, "BGSAVE", NULL);
        pid_t child = child_of(s);
        usleep((useconds_t)rand_r(&seed) % 40000);
        if (round % 2 == 0 && child > 0) {
            kill(child, SIGKILL);
            await_end(c);
            assert_true(temporaries_in(dir) <= left);
        }
        client_close(c);
        server_kill(s);
        await_death(child); /* it must not put an old file in a new one's place later */
        forgotten &= await_forgotten(child);
    }
    temporaries(dir, true);
    snprintf(path, sizeof(path), "%s/dump.rdb", dir);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_there_and_the_server_goes_on),
        cmocka_unit_test(it_takes_a_name_and_schedule),
        cmocka_unit_test(what_cannot_go_beside_it_is_refused),
        cmocka_unit_test(the_child_keeps_no_socket_open),
        cmocka_unit_test(flushall_ends_it),
        cmocka_unit_test(debug_reload_ends_it),
        cmocka_unit_test(shutdown_ends_it),
        cmocka_unit_test(a_killed_child_stops_writes_until_a_save_is_good),
        cmocka_unit_test(a_good_copy_does_not_make_the_status_good),
        cmocka_unit_test(loading_the_file_again_lets_clients_write),
        cmocka_unit_test(a_synchronous_save_point_that_fails_is_told),
        cmocka_unit_test(a_full_disk_costs_nothing_and_the_save_points_try_again),
        cmocka_unit_test(a_save_point_saves_after_so_many_changes),
        cmocka_unit_test(reserved_huge_pages_refuse_a_fork_and_name_save),
        cmocka_unit_test(kill_9_at_any_moment_costs_no_saved_data),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL),
                        sizeof(tests) / sizeof(tests[0]));
}
