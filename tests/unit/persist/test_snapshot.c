/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots on disk: whatever fails, the file that was there stays and the error says what and
 * where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "persist/snapshot.h"

#define NOBODY 65534

/* ---- a folder a test ------------------------------------------------------------------------- */

static char folder[64];

static int enter_folder(void **state) {
    snprintf(folder, sizeof(folder), "/tmp/goblin-unit-XXXXXX");
    return mkdtemp(folder) != NULL && chdir(folder) == 0 ? 0 : -1;
}

static int leave_folder(void **state) {
    char command[128], disk[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    snprintf(disk, sizeof(disk), "%s/disk", folder);
    umount2(disk, MNT_DETACH);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static size_t count_files(void) {
    size_t count = 0;
    DIR *dir = opendir(".");
    struct dirent *e;
    while ((e = readdir(dir)) != NULL) {
        count += e->d_name[0] != '.';
    }
    closedir(dir);
    return count;
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static void make_temporary(int64_t pid) {
    char name[64];
    snprintf(name, sizeof(name), "temp-%lld.rdb", (long long)pid);
    write_file(name, BYTES_LIT("half a file"));
}

static int64_t pid_of_the_dead(void) {
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    return pid;
}

/* ---- short calls ----------------------------------------------------------------------------- */

static char error[SNAPSHOT_ERROR_LEN];

static enum status save(struct store *s, const char *path) {
    struct snapshot_save_options options = {.compress = true, .checksum = true};
    struct writer_stats stats;
    error[0] = '\0';
    return snapshot_save(s->set, path, &options, &stats, error);
}

static enum status load(const char *path, struct store *s) {
    struct snapshot_load_options options = {.now_ms = NOW};
    struct reader_report report;
    struct dbset *fresh = NULL;
    error[0] = '\0';
    enum status st =
        snapshot_load(path, &s->set->env, s->set->count, &options, &fresh, &report, error);
    assert_true((st == ST_OK) == (fresh != NULL));
    if (st == ST_OK) {
        dbset_take(s->set, fresh);
    }
    return st;
}

static void assert_error_says(const char *text) {
    if (strstr(error, text) == NULL) {
        fail_msg("'%s' does not say '%s'", error, text);
    }
}

static void assert_loads(const char *path, struct store *like) {
    struct store s;
    store_create(&s);
    if (load(path, &s) != ST_OK) {
        fail_msg("%s", error);
    }
    assert_same_data(like, &s);
    store_destroy(&s);
}

/* Two stores: what is on the disk as "a.rdb", and more that is to be saved over it. */
struct pair {
    struct store old, more;
};

static void pair_create(struct pair *p) {
    store_create(&p->old);
    store_create(&p->more);
    put(&p->old, 0, "old", BYTES_LIT("data"), FAR);
    put(&p->more, 0, "big", bytes_of(1, 2000000, 1), FAR);
    assert_int_equal(save(&p->old, "a.rdb"), ST_OK);
}

/* The save failed: the old file is all there is. */
static void pair_check(struct pair *p, const char *path) {
    assert_int_equal(count_files(), 1);
    assert_loads(path, &p->old);
    store_destroy(&p->old);
    store_destroy(&p->more);
    assert_int_equal(total_bytes(), 0);
}

/* ---- round trip ------------------------------------------------------------------------------ */

static bool count_call(void *arg, uint64_t bytes, uint64_t keys) {
    uint64_t *seen = arg;
    assert_true(bytes >= seen[1]);
    assert_true(keys >= seen[2]);
    seen[0]++;
    seen[1] = bytes;
    seen[2] = keys;
    return true;
}

static void see_total(void *arg, uint64_t total_bytes) {
    ((uint64_t *)arg)[3] = total_bytes;
}

static void what_is_saved_is_loaded(void **state) {
    struct store s;
    uint64_t saving[4] = {0}, loading[4] = {0};
    struct snapshot_save_options save_options = {
        .compress = true, .checksum = true, .progress = count_call, .progress_arg = saving};
    struct snapshot_load_options load_options = {
        .now_ms = NOW, .progress = count_call, .progress_arg = loading, .opened = see_total};
    struct writer_stats stats;
    struct reader_report report;
    struct dbset *fresh;
    store_create(&s);
    fill(&s);
    assert_int_equal(snapshot_save(s.set, "dump.rdb", &save_options, &stats, error), ST_OK);
    assert_loads("dump.rdb", &s);
    char absolute[128];
    snprintf(absolute, sizeof(absolute), "%s/dump.rdb", folder);
    assert_loads(absolute, &s);
    struct stat st;
    assert_int_equal(stat("dump.rdb", &st), 0);
    assert_int_equal(stats.bytes, st.st_size);
    assert_int_equal(saving[1], st.st_size);
    assert_true(saving[0] > 3);
    assert_int_equal(
        snapshot_load("dump.rdb", &s.set->env, DATABASES, &load_options, &fresh, &report, error),
        ST_OK);
    dbset_destroy(fresh);
    assert_int_equal(loading[3], st.st_size);
    assert_int_equal(report.keys, stats.keys);
    assert_true(report.checksum_compared);
    memset(loading, 0, sizeof(loading));
    assert_int_equal(snapshot_check("dump.rdb", &s.set->env, &load_options, &report, error), ST_OK);
    assert_int_equal(report.keys, stats.keys);
    assert_int_equal(save(&s, absolute), ST_OK); /* over an older one */
    assert_int_equal(count_files(), 1);
    store_destroy(&s);
    assert_int_equal(total_bytes(), 0);
}

static bool stop_soon(void *arg, uint64_t bytes, uint64_t keys) {
    int *left = arg;
    return (*left)-- > 0;
}

static void both_can_be_stopped(void **state) {
    struct pair p;
    struct writer_stats stats;
    struct reader_report report;
    struct dbset *fresh;
    pair_create(&p);
    for (int calls = 0; calls < 2; calls++) {
        int left = calls;
        struct snapshot_save_options options = {.progress = stop_soon, .progress_arg = &left};
        assert_int_equal(snapshot_save(p.more.set, "a.rdb", &options, &stats, error), ST_CLOSED);
        assert_error_says("stopped");
    }
    assert_int_equal(save(&p.more, "b.rdb"), ST_OK);
    int left = 1;
    struct snapshot_load_options options = {
        .now_ms = NOW, .progress = stop_soon, .progress_arg = &left};
    assert_int_equal(
        snapshot_load("b.rdb", &p.old.set->env, DATABASES, &options, &fresh, &report, error),
        ST_CLOSED);
    unlink("b.rdb");
    pair_check(&p, "a.rdb");
}

/* ---- what can fail while saving --------------------------------------------------------------- */

static void a_folder_that_is_not_there_is_named(void **state) {
    struct pair p;
    pair_create(&p);
    assert_int_equal(save(&p.more, "none/a.rdb"), ST_IO);
    assert_error_says("/none/temp-");
    assert_error_says("No such file or directory");
    pair_check(&p, "a.rdb");
}

static void a_folder_that_is_not_writable_is_named(void **state) {
    struct pair p;
    pair_create(&p);
    assert_int_equal(chmod(".", 0555), 0);
    bool root = geteuid() == 0;
    assert_false(root && seteuid(NOBODY) != 0);
    enum status st = save(&p.more, "a.rdb");
    assert_false(root && seteuid(0) != 0);
    assert_int_equal(chmod(".", 0755), 0);
    assert_int_equal(st, ST_IO);
    assert_error_says(folder);
    assert_error_says("Permission denied");
    pair_check(&p, "a.rdb");
}

static void a_limit_of_file_size_is_an_error(void **state) {
    struct pair p;
    struct rlimit before, limit = {.rlim_cur = 1000000, .rlim_max = RLIM_INFINITY};
    pair_create(&p);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum status st = save(&p.more, "a.rdb");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(st, ST_IO);
    assert_error_says("File too large");
    pair_check(&p, "a.rdb");
}

static void a_full_disk_is_an_error(void **state) {
    struct pair p;
    char where[128];
    snprintf(where, sizeof(where), "%s/disk", folder);
    assert_int_equal(mkdir(where, 0755), 0);
    if (mount("none", where, "tmpfs", 0, "size=1m") != 0) {
        rmdir(where);
        print_message("SKIP: no tmpfs can be mounted here\n");
        skip();
    }
    assert_int_equal(chdir(where), 0);
    pair_create(&p);
    enum status st = save(&p.more, "a.rdb");
    assert_int_equal(st, ST_IO);
    assert_error_says("/disk/temp-");
    assert_error_says("No space left on device");
    pair_check(&p, "a.rdb");
}

static void what_is_no_snapshot_is_not_replaced(void **state) {
    struct pair p;
    pair_create(&p);
    write_file("notes", BYTES_LIT("REDI"));
    assert_int_equal(save(&p.more, "notes"), ST_IO);
    assert_error_says("/notes: it exists and is no snapshot");
    write_file("notes", BYTES_LIT("something else"));
    assert_int_equal(save(&p.more, "notes"), ST_IO);
    unlink("notes");
    write_file("notes", BYTES_LIT("something else"));
    assert_int_equal(symlink("notes", "link"), 0);
    assert_int_equal(save(&p.more, "link"), ST_IO);
    unlink("link");
    unlink("notes");
    assert_int_equal(mkdir("sub", 0755), 0);
    assert_int_equal(save(&p.more, "sub"), ST_IO);
    rmdir("sub");
    write_file("empty", BYTES_LIT(""));
    assert_int_equal(save(&p.more, "empty"), ST_OK);
    assert_loads("empty", &p.more);
    unlink("empty");
    pair_check(&p, "a.rdb");
}

/* As a user may have pointed here at a file of another server. */
static void a_link_is_replaced_and_what_it_leads_to_stays(void **state) {
    struct pair p;
    struct stat st;
    pair_create(&p);
    for (int there = 0; there < 2; there++) {
        assert_int_equal(symlink(there ? "a.rdb" : "nowhere.rdb", "link"), 0);
        assert_int_equal(save(&p.more, "link"), ST_OK);
        assert_int_equal(lstat("link", &st), 0);
        assert_true(S_ISREG(st.st_mode));
        assert_loads("link", &p.more);
        unlink("link");
    }
    assert_int_equal(access("nowhere.rdb", F_OK), -1);
    pair_check(&p, "a.rdb");
}

static bool put_folder_in_place(void *arg, uint64_t bytes, uint64_t keys) {
    return mkdir("a.rdb", 0755) == 0 || errno == EEXIST;
}

/* The target becomes a folder while it is written. */
static void a_rename_that_fails_is_an_error(void **state) {
    struct store s;
    struct writer_stats stats;
    struct snapshot_save_options options = {.progress = put_folder_in_place};
    store_create(&s);
    put(&s, 0, "k", BYTES_LIT("v"), FAR);
    assert_int_equal(snapshot_save(s.set, "a.rdb", &options, &stats, error), ST_IO);
    assert_error_says("cannot rename the temporary to ");
    assert_error_says("/a.rdb: Is a directory");
    assert_int_equal(count_files(), 1);
    store_destroy(&s);
}

static void a_path_that_is_too_long_is_an_error(void **state) {
    struct store s;
    char path[8192];
    store_create(&s);
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(save(&s, path), ST_IO);
    assert_error_says("File name too long");
    memset(path, '/', 5000);
    assert_int_equal(save(&s, path), ST_IO);
    assert_error_says("File name too long");
    store_destroy(&s);
}

static void saving_without_memory_leaves_the_old_file(void **state) {
    struct pair p;
    pair_create(&p);
    for (size_t n = 1; n < 3; n++) {
        account_fail_after(n);
        enum status st = save(&p.more, "a.rdb");
        account_fail_after(0);
        assert_int_equal(st, ST_NOMEM);
        assert_error_says("out of memory");
    }
    pair_check(&p, "a.rdb");
}

/* ---- what can fail while loading -------------------------------------------------------------- */

static void a_file_that_cannot_be_loaded_changes_nothing(void **state) {
    struct pair p;
    struct bytes file;
    pair_create(&p);
    assert_int_equal(save(&p.more, "b.rdb"), ST_OK);
    file = read_file("b.rdb");
    assert_int_equal(load("none.rdb", &p.old), ST_NOTFOUND);
    assert_error_says("/none.rdb: No such file or directory");
    assert_int_equal(load(".", &p.old), ST_IO);
    assert_error_says("not a regular file");
    assert_int_equal(mkfifo("pipe", 0644), 0);
    assert_int_equal(load("pipe", &p.old), ST_IO);
    assert_error_says("/pipe: it is not a regular file");
    unlink("pipe");
    write_file("b.rdb", BYTES(file.ptr, file.len - 1));
    assert_int_equal(load("b.rdb", &p.old), ST_CORRUPT);
    assert_error_says("/b.rdb: checksum at offset ");
    assert_error_says("ends too early");
    write_file("b.rdb", BYTES(file.ptr, file.len / 2));
    assert_int_equal(load("b.rdb", &p.old), ST_CORRUPT);
    assert_error_says("key 'big' at offset ");
    ((char *)(uintptr_t)file.ptr)[file.len / 2] ^= 1;
    write_file("b.rdb", file);
    assert_int_equal(load("b.rdb", &p.old), ST_CORRUPT);
    assert_error_says("checksum at offset ");
    struct snapshot_load_options lax = {.now_ms = NOW, .ignore_checksum = true};
    struct reader_report report;
    assert_int_equal(snapshot_check("b.rdb", &p.old.set->env, &lax, &report, error), ST_OK);
    write_file("b.rdb", BYTES_LIT(""));
    assert_int_equal(load("b.rdb", &p.old), ST_CORRUPT);
    unlink("b.rdb");
    free((char *)(uintptr_t)file.ptr);
    pair_check(&p, "a.rdb");
}

/* ---- names and temporaries -------------------------------------------------------------------- */

static void names_are_of_this_folder(void **state) {
    static const char *const good[] = {"a",           "dump.rdb",  "...",         ".hidden",
                                       "temp-.rdb",   "temp-1",    "temp-1x.rdb", "Temp-1.rdb",
                                       "temp-0.rdb2", "with blank"};
    static const char *const bad[] = {
        "",     ".",           "..",      "/",          "a/b",
        "../a", "/etc/passwd", "a/",      "temp-1.rdb", "temp-99999.rdb",
        "a\nb", "\r",          "\x1b[2J", "\x7f"};
    char name[300];
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_true(snapshot_name_ok(bytes_from_cstr(good[i])));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(snapshot_name_ok(bytes_from_cstr(bad[i])));
    }
    memset(name, 'a', sizeof(name));
    assert_true(snapshot_name_ok(BYTES(name, 255)));
    assert_false(snapshot_name_ok(BYTES(name, 256)));
    assert_false(snapshot_name_ok(BYTES("a\0b", 3)));
}

static void only_abandoned_temporaries_are_removed(void **state) {
    char name[64];
    int64_t dead = pid_of_the_dead();
    make_temporary(dead);
    make_temporary(getpid());
    make_temporary(getppid());
    make_temporary(1);
    write_file("temp-x.rdb", BYTES_LIT(""));
    write_file("dump.rdb", BYTES_LIT("REDIS"));
    snprintf(name, sizeof(name), "temp-%lld.rdb", (long long)dead);
    int fd = open(name, O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0); /* somebody in another container */
    assert_int_equal(snapshot_remove_stale(0), 1);
    assert_true(exists(name));
    close(fd);
    assert_int_equal(snapshot_remove_stale(0), 1);
    assert_false(exists(name));
    assert_int_equal(snapshot_remove_stale(0), 0);
    assert_int_equal(count_files(), 4);
    assert_true(exists("temp-1.rdb"));
    assert_int_equal(snapshot_remove_stale(1), 1);
    assert_int_equal(snapshot_remove_stale(getppid()), 1);
    assert_int_equal(count_files(), 2);
}

static void a_temporary_of_our_own_number_is_overwritten(void **state) {
    struct pair p;
    make_temporary(getpid());
    pair_create(&p);
    pair_check(&p, "a.rdb");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_saved_is_loaded),
        TEST(both_can_be_stopped),
        TEST(a_folder_that_is_not_there_is_named),
        TEST(a_folder_that_is_not_writable_is_named),
        TEST(a_limit_of_file_size_is_an_error),
        TEST(a_full_disk_is_an_error),
        TEST(what_is_no_snapshot_is_not_replaced),
        TEST(a_link_is_replaced_and_what_it_leads_to_stays),
        TEST(a_rename_that_fails_is_an_error),
        TEST(a_path_that_is_too_long_is_an_error),
        TEST(saving_without_memory_leaves_the_old_file),
        TEST(a_file_that_cannot_be_loaded_changes_nothing),
        TEST(names_are_of_this_folder),
        TEST(only_abandoned_temporaries_are_removed),
        TEST(a_temporary_of_our_own_number_is_overwritten),
    };
    hash_setup_seed(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
