/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots end to end: SAVE, LOAD, LASTSAVE, loading at start, what the end of the program saves, and
 * that no failure costs data. $GC_CRASHES: how often a saving server is killed (20). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/server.h"
#include "support/specimens.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FAR_MS "4100000000123"
#define LOADING "-LOADING Redis is loading the dataset in memory"
#define SHUTDOWN_FAILED "-ERR Errors trying to SHUTDOWN. Check logs."
#define NAME_REFUSED                                                                               \
    "-ERR a snapshot's name is that of a file in the server's dir: 1 to 255 bytes, no '/', no "    \
    "control character, and not temp-<number>.rdb"

/* ---- a folder that outlives its servers ------------------------------------------------------ */

static char folder[64];

static int make_folder(void **state) {
    snprintf(folder, sizeof(folder), "/tmp/goblin-persist-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[160];
    umount2(folder, MNT_DETACH);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void path_of(char out[128], const char *name) {
    snprintf(out, 128, "%s/%s", folder, name);
}

static bool is_there(const char *name) {
    char path[128];
    path_of(path, name);
    return access(path, F_OK) == 0;
}

static void write_text(const char *name, const char *text, size_t len) {
    char path[128];
    path_of(path, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static size_t count_temporaries(void) {
    size_t count = 0;
    DIR *dir = opendir(folder);
    struct dirent *e;
    while ((e = readdir(dir)) != NULL) {
        count += strncmp(e->d_name, "temp-", 5) == 0;
    }
    closedir(dir);
    return count;
}

/* ---- servers --------------------------------------------------------------------------------- */

/* A server in the folder, with one or no more option. */
static struct server *start_with(enum server_kind kind, const char *name, const char *value) {
    const char *args[] = {"--dir", folder, name, value, NULL};
    return server_start(kind, args);
}

static struct server *start(void) {
    return start_with(SERVER_GOBLIN, NULL, NULL);
}

/* What happens when a server is started that is to end by itself. */
static int run_with(const char *name, const char *value, char out[4096]) {
    const char *args[] = {"--dir",       folder, "--port", "0", "--unixsocket",
                          "none.socket", name,   value,    NULL};
    return server_run(SERVER_GOBLIN, args, out, 4096);
}

static void wait_ms(int ms) {
    usleep((useconds_t)ms * 1000);
}

/* Commands are executed and no longer answered with -LOADING. */
static void wait_loaded(struct client *c) {
    for (int waited_ms = 0; waited_ms < 30000; waited_ms += 10) {
        struct reply *r = client_cmd(c, "PING", NULL);
        bool ready = r != NULL && !reply_is_error(r);
        reply_free(r);
        if (ready) {
            return;
        }
        wait_ms(10);
    }
    fail_msg("still loading after 30 s");
}

static struct client *connect_loaded(struct server *s) {
    struct client *c = server_connect(s);
    wait_loaded(c);
    return c;
}

static void wait_end(struct server *s) {
    for (int waited_ms = 0; server_alive(s); waited_ms += 5) {
        assert_true(waited_ms < 30000);
        wait_ms(5);
    }
}

static void expect_error_with(struct client *c, struct reply *r, const char *part) {
    if (!reply_is_error(r) || strstr(r->str, part) == NULL) {
        char *text = reply_text(r);
        fail_msg("'%s' is no error that says '%s'", text, part);
    }
    reply_free(r);
    client_expect(c, "+PONG", "PING", NULL);
}

static bool log_has(struct server *s, const char *text) {
    char *log = server_log(s);
    bool has = strstr(log, text) != NULL;
    free(log);
    return has;
}

/* Fields f0 .. of a hash, values that do not compress. */
static void fill_hash(struct client *c, const char *key, int count, int value_len) {
    static uint64_t x = 88172645463325252;
    char field[32], value[4096];
    for (int done = 0; done < count;) {
        int batch = count - done < 500 ? count - done : 500;
        for (int i = 0; i < batch; i++) {
            snprintf(field, sizeof(field), "field:%d", done + i);
            for (int j = 0; j < value_len; j++) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                value[j] = (char)(x >> 40);
            }
            const char *argv[] = {"HSET", key, field, value};
            const size_t lens[] = {4, strlen(key), strlen(field), (size_t)value_len};
            client_append_argv(c, 4, argv, lens);
        }
        assert_true(client_flush(c));
        for (int i = 0; i < batch; i++) {
            client_expect_next(c, ":1");
        }
        done += batch;
    }
}

/* ---- there and back --------------------------------------------------------------------------- */

#define EXPIRING 7

static void load_everything(struct client *c) {
    specimens_load(c);
    for (size_t i = 0; i < specimens_count(); i += EXPIRING) {
        client_expect(c, ":1", "PEXPIREAT", specimen_key(i), FAR_MS, NULL);
    }
    client_expect(c, "+OK", "SELECT", "9", NULL);
    client_expect(c, "+OK", "SET", "nine", "9", NULL);
    client_expect(c, "+OK", "SELECT", "15", NULL);
    client_expect(c, ":3", "RPUSH", "fifteen", "1", "b", "3", NULL);
    client_expect(c, "+OK", "SELECT", "0", NULL);
}

static void compare_everything(struct client *a, struct client *b) {
    char count[32];
    for (size_t i = 0; i < specimens_count(); i++) {
        char *x = value_text(a, specimen_key(i)), *y = value_text(b, specimen_key(i));
        assert_string_equal(x, y);
        free(x);
        free(y);
        client_expect(b, i % EXPIRING == 0 ? ":" FAR_MS : ":-1", "PEXPIRETIME", specimen_key(i),
                      NULL);
    }
    snprintf(count, sizeof(count), ":%zu", specimens_count());
    client_expect(b, count, "DBSIZE", NULL);
    client_expect(b, "+OK", "SELECT", "9", NULL);
    client_expect(b, "\"9\"", "GET", "nine", NULL);
    client_expect(b, "+OK", "SELECT", "15", NULL);
    client_expect(b, "[\"1\" \"b\" \"3\"]", "LRANGE", "fifteen", "0", "-1", NULL);
    client_expect(b, ":1", "DBSIZE", NULL);
    client_expect(b, "+OK", "SELECT", "0", NULL);
}

static void every_type_goes_to_redis_and_comes_back(void **state) {
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server");
    }
    struct server *first = start();
    struct client *data = server_connect(first);
    load_everything(data);
    client_expect(data, "+OK", "SAVE", NULL);
    struct server *redis = start_with(SERVER_ORACLE, NULL, NULL);
    struct client *c = connect_loaded(redis);
    compare_everything(data, c);
    client_expect(c, "+OK", "CONFIG", "SET", "hash-max-listpack-entries", "4",
                  "set-max-intset-entries", "4", "zset-max-listpack-entries", "4", "rdbcompression",
                  "no", NULL);
    client_expect(c, "+OK", "SAVE", NULL);
    client_close(c);
    server_stop(redis);
    struct server *second = start();
    c = connect_loaded(second);
    compare_everything(data, c);
    client_expect(c, "+OK", "DEBUG", "CHECK", NULL);
    client_close(c);
    client_close(data);
    server_stop(second);
    server_stop(first);
}

static void a_snapshot_replaces_all_there_is(void **state) {
    struct server *s = start();
    struct client *c = server_connect(s);
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    client_expect(c, "+OK", "SET", "short", "x", "PX", "300", NULL);
    client_expect(c, "+OK", "SAVE", "one.rdb", NULL);
    client_expect(c, "+OK", "SET", "a", "2", NULL);
    client_expect(c, "+OK", "SET", "b", "2", NULL);
    wait_ms(350);
    /* what follows LOAD on the same connection waits for it */
    client_append(c, "LOAD", "one.rdb", NULL);
    client_append(c, "GET", "a", NULL);
    client_append(c, "EXISTS", "b", NULL);
    assert_true(client_flush(c));
    client_expect_next(c, "+OK");
    client_expect_next(c, "\"1\"");
    client_expect_next(c, ":0");
    assert_int_equal(client_info_number(c, "persistence", "rdb_last_load_keys_expired"), 1);
    assert_int_equal(client_info_number(c, "persistence", "rdb_last_load_keys_loaded"), 1);
    assert_int_equal(client_info_number(c, "persistence", "loading"), 0);
    assert_false(is_there("dump.rdb"));
    client_close(c);
    server_stop(s);
}

static void only_dbfilename_counts_as_saved(void **state) {
    struct server *s = start();
    struct client *c = server_connect(s);
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    struct reply *before = client_cmd(c, "LASTSAVE", NULL);
    assert_int_equal(before->type, ':');
    wait_ms(1100);
    client_expect(c, "+OK", "SAVE", "copy.rdb", NULL);
    assert_int_equal(client_info_number(c, "persistence", "rdb_changes_since_last_save"), 1);
    struct reply *after = client_cmd(c, "LASTSAVE", NULL);
    assert_int_equal(after->integer, before->integer);
    reply_free(after);
    client_expect(c, "+OK", "SAVE", NULL);
    assert_int_equal(client_info_number(c, "persistence", "rdb_changes_since_last_save"), 0);
    assert_int_equal(client_info_number(c, "persistence", "rdb_saves"), 2);
    after = client_cmd(c, "LASTSAVE", NULL);
    assert_true(after->integer > before->integer);
    assert_int_equal(client_info_number(c, "persistence", "rdb_last_save_time"), after->integer);
    client_expect(c, "+OK", "LOAD", "copy.rdb", NULL);
    assert_true(client_info_number(c, "persistence", "rdb_changes_since_last_save") > 0);
    client_expect(c, "+OK", "LOAD", "dump.rdb", NULL);
    assert_int_equal(client_info_number(c, "persistence", "rdb_changes_since_last_save"), 0);
    reply_free(before);
    reply_free(after);
    client_close(c);
    server_stop(s);
}

static void names_stay_in_the_folder(void **state) {
    static const char *const bad[] = {"../a.rdb", "/tmp/a.rdb", "a/b",  "",       ".",
                                      "..",       "temp-1.rdb", "a\nb", "\x1b[2J"};
    struct server *s = start();
    struct client *c = server_connect(s);
    for (size_t i = 0; i < COUNT(bad); i++) {
        client_expect(c, NAME_REFUSED, "SAVE", bad[i], NULL);
        client_expect(c, NAME_REFUSED, "LOAD", bad[i], NULL);
    }
    write_text("notes", "mine", 4);
    expect_error_with(c, client_cmd(c, "SAVE", "notes", NULL), "it exists and is no snapshot");
    client_expect(c, "-ERR syntax error", "SAVE", "a", "b", NULL);
    client_expect(c, "-ERR wrong number of arguments for 'load' command", "LOAD", NULL);
    client_expect(c,
                  "-ERR CONFIG SET failed (possibly related to argument 'dbfilename') - can't set "
                  "protected config",
                  "CONFIG", "SET", "dbfilename", "x", NULL);
    client_close(c);
    server_stop(s);
    char out[4096];
    assert_int_equal(run_with("--dbfilename", "a/b", out), 1);
    assert_non_null(strstr(out, "dbfilename can't be a path, just a filename"));
}

static void who_waits_is_served_by_a_load(void **state) {
    struct server *s = start();
    struct client *c = server_connect(s), *waiter = server_connect(s);
    client_expect(c, ":2", "RPUSH", "list", "a", "b", NULL);
    client_expect(c, "+OK", "SAVE", NULL);
    client_expect(c, ":1", "DEL", "list", NULL);
    client_append(waiter, "BLPOP", "list", "0", NULL);
    assert_true(client_flush(waiter));
    while (client_info_number(c, "clients", "blocked_clients") != 1) {
        wait_ms(1);
    }
    client_expect(c, "+OK", "LOAD", "dump.rdb", NULL);
    client_expect_next(waiter, "[\"list\" \"a\"]");
    client_expect(c, ":1", "LLEN", "list", NULL);
    client_close(waiter);
    client_close(c);
    server_stop(s);
}

static void loading_is_told(void **state) {
    struct server *s = start();
    struct client *c = server_connect(s), *other = server_connect(s);
    fill_hash(c, "h", 200000, 16);
    client_expect(c, "+OK", "SAVE", NULL);
    client_append(c, "LOAD", "dump.rdb", NULL);
    client_append(c, "HLEN", "h", NULL);
    assert_true(client_flush(c));
    bool told = false;
    for (int i = 0; i < 1000 && !told; i++) {
        struct reply *r = client_cmd(other, "PING", NULL);
        told = reply_is_error(r);
        reply_free(r);
    }
    assert_true(told);
    if (client_info_number(other, "persistence", "loading") == 1) { /* not over yet */
        client_append(other, "GET", "a", NULL);
        client_append(other, "SAVE", NULL);
        client_append(other, "LOAD", "dump.rdb", NULL);
        client_append(other, "INFO", "persistence", NULL);
        assert_true(client_flush(other));
        client_expect_next(other, LOADING);
        client_expect_next(other, LOADING);
        client_expect_next(other, LOADING);
        reply_free(client_read(other));
    }
    client_expect_next(c, "+OK");
    client_expect_next(c, ":200000");
    client_expect(other, "+PONG", "PING", NULL);
    assert_true(log_has(s, "DB loaded from disk: "));
    client_close(other);
    /* whoever asked may be gone when it is done */
    client_append(c, "LOAD", "dump.rdb", NULL);
    assert_true(client_flush(c));
    client_close(c);
    c = connect_loaded(s);
    client_expect(c, ":200000", "HLEN", "h", NULL);
    client_close(c);
    server_stop(s);
}

/* A program that is to be asked something before it has loaded its file. */
static pid_t start_unwaited(const char *socket_path) {
    const char *program = getenv("GOBLIN_CORE");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execlp(program != NULL ? program : "goblin-core", "goblin-core", "--port", "0", "--dir",
               folder, "--unixsocket", socket_path, "--logfile", "log", NULL);
        _exit(127);
    }
    return pid;
}

/* Stopped as soon as it listens, so that it has the requests when it goes on. NULL: it had loaded the
 * file already, as may happen on a busy machine. */
static struct client *ask_while_it_loads(const char *socket_path, pid_t *pid) {
    struct client *c = NULL;
    unlink(socket_path);
    *pid = start_unwaited(socket_path);
    for (int i = 0; i < 50000 && c == NULL; i++) {
        usleep(200);
        c = client_connect_unix(socket_path);
    }
    assert_non_null(c);
    kill(*pid, SIGSTOP);
    client_append(c, "PING", NULL);
    client_append(c, "GET", "a", NULL);
    client_append(c, "BGSAVE", NULL);
    client_append(c, "INFO", "persistence", NULL);
    assert_true(client_flush(c));
    kill(*pid, SIGCONT);
    struct reply *r = client_read(c);
    bool loads = reply_is_error(r);
    reply_free(r);
    if (!loads) {
        client_close(c);
        kill(*pid, SIGKILL);
        waitpid(*pid, NULL, 0);
    }
    return loads ? c : NULL;
}

static void expect_loading_fields(const char *info) {
    static const char *const fields[] = {
        "loading_start_time:", "loading_total_bytes:", "loading_loaded_bytes:",
        "loading_loaded_perc:", "loading_eta_seconds:"};
    assert_non_null(strstr(info, "loading:1\r\n"));
    for (size_t i = 0; i < COUNT(fields); i++) {
        const char *at = strstr(info, fields[i]);
        assert_non_null(at);
        assert_in_range(at[strlen(fields[i])], '0', '9');
    }
    const char *total = strstr(info, fields[1]) + strlen(fields[1]);
    assert_true(atoll(total) > 10000000);
    assert_true(atoll(strstr(info, fields[2]) + strlen(fields[2])) < atoll(total));
}

static void loading_at_start_is_told(void **state) {
    char socket_path[128];
    pid_t pid;
    int status;
    path_of(socket_path, "socket");
    struct server *s = start();
    struct client *c = server_connect(s);
    fill_hash(c, "h", 400000, 16);
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    client_expect(c, "+OK", "SAVE", NULL);
    client_close(c);
    server_stop(s);
    c = NULL;
    for (int i = 0; i < 20 && c == NULL; i++) {
        c = ask_while_it_loads(socket_path, &pid);
    }
    assert_non_null(c);
    client_expect_next(c, LOADING);
    client_expect_next(c, LOADING);
    struct reply *info = client_read(c);
    expect_loading_fields(info->str);
    reply_free(info);
    wait_loaded(c);
    client_expect(c, "\"1\"", "GET", "a", NULL);
    client_expect(c, ":400000", "HLEN", "h", NULL);
    assert_int_equal(client_info_number(c, "persistence", "loading"), 0);
    client_close(c);
    kill(pid, SIGTERM);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* A sorted set is read with 24 bytes a member beside it. */
static void what_only_the_loading_needed_is_given_back(void **state) {
    enum { MEMBERS = 400000, GROUP = 1000 };
    struct server *s = start();
    struct client *c = server_connect(s);
    static char words[2 * GROUP][16];
    for (int first = 0; first < MEMBERS; first += GROUP) {
        const char *argv[2 + 2 * GROUP] = {"ZADD", "z"};
        size_t lens[2 + 2 * GROUP] = {4, 1};
        for (int i = 0; i < GROUP; i++) {
            snprintf(words[2 * i], sizeof(words[0]), "%d.5", first + i);
            snprintf(words[2 * i + 1], sizeof(words[0]), "member%d", first + i);
        }
        for (int i = 0; i < 2 * GROUP; i++) {
            argv[2 + i] = words[i];
            lens[2 + i] = strlen(words[i]);
        }
        reply_free(client_cmd_argv(c, 2 + 2 * GROUP, argv, lens));
    }
    client_expect(c, "+OK", "SAVE", NULL);
    client_close(c);
    server_stop(s);
    s = start();
    c = connect_loaded(s);
    client_expect(c, ":400000", "ZCARD", "z", NULL);
    long long held = client_info_number(c, "memory", "resident_bytes");
    client_expect(c, "+OK", "MEMORY", "PURGE", NULL);
    long long needed = client_info_number(c, "memory", "resident_bytes");
    assert_true(needed > MEMBERS * 20);
    assert_true(held - needed < 2 << 20);
    client_close(c);
    server_stop(s);
}

/* ---- bad files --------------------------------------------------------------------------------- */

static void a_bad_file_costs_nothing(void **state) {
    struct server *s = start();
    struct client *c = server_connect(s);
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    expect_error_with(c, client_cmd(c, "LOAD", "none.rdb", NULL),
                      "/none.rdb: No such file or directory");
    write_text("bad.rdb", "REDIS0010\0\1k", 12);
    expect_error_with(c, client_cmd(c, "LOAD", "bad.rdb", NULL),
                      "/bad.rdb: string of key 'k' at offset 12: the file ends too early");
    write_text("bad.rdb", "REDIS0010\xff\1\1\1\1\1\1\1\1", 18);
    expect_error_with(c, client_cmd(c, "LOAD", "bad.rdb", NULL), "checksum at offset 10: ");
    write_text("bad.rdb", "REDIS0099\xff\1\1\1\1\1\1\1\1", 18);
    expect_error_with(c, client_cmd(c, "LOAD", "bad.rdb", NULL), "RDB version 99");
    client_expect(c, "\"1\"", "GET", "a", NULL);
    assert_true(log_has(s, "Loading failed: "));
    client_close(c);
    server_stop(s);
}

static void a_bad_file_stops_the_start(void **state) {
    char out[4096], path[128];
    write_text("dump.rdb", "REDIS0010\0\1k", 12);
    assert_int_equal(run_with(NULL, NULL, out), 1);
    assert_non_null(strstr(out, "string of key 'k' at offset 12: the file ends too early"));
    path_of(path, "none.rdb");
    assert_int_equal(run_with("--load", path, out), 1);
    assert_non_null(strstr(out, "No such file or directory"));
    assert_true(is_there("dump.rdb"));
}

static void another_file_is_loaded_on_demand(void **state) {
    char path[128];
    struct server *s = start();
    struct client *c = server_connect(s);
    client_expect(c, "+OK", "SET", "a", "other", NULL);
    client_expect(c, "+OK", "SAVE", "other.rdb", NULL);
    client_close(c);
    server_stop(s);
    path_of(path, "other.rdb");
    s = start_with(SERVER_GOBLIN, "--load", path);
    c = connect_loaded(s);
    client_expect(c, "\"other\"", "GET", "a", NULL);
    assert_true(client_info_number(c, "persistence", "rdb_changes_since_last_save") > 0);
    client_close(c);
    server_stop(s);
}

/* A stream, as redis-server writes it. */
static void what_is_not_built_is_refused_or_skipped(void **state) {
    if (!server_available(SERVER_ORACLE)) {
        TEST_SKIP("no redis-server");
    }
    char out[4096];
    struct server *s = start_with(SERVER_ORACLE, NULL, NULL);
    struct client *c = server_connect(s);
    client_expect(c, "\"1-1\"", "XADD", "stream", "1-1", "f", "v", NULL);
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    client_expect(c, "+OK", "SAVE", NULL);
    client_close(c);
    server_stop(s);
    assert_int_equal(run_with(NULL, NULL, out), 1);
    assert_non_null(strstr(out, "stream"));
    s = start_with(SERVER_GOBLIN, "--load-skip-unsupported", "yes");
    c = connect_loaded(s);
    client_expect(c, "\"1\"", "GET", "a", NULL);
    client_expect(c, ":1", "DBSIZE", NULL);
    assert_true(log_has(s, "Skipped: 1 streams"));
    client_close(c);
    server_stop(s);
}

static void a_load_stays_within_maxmemory(void **state) {
    struct server *s = start();
    struct client *c = server_connect(s);
    fill_hash(c, "h", 30000, 300);
    client_expect(c, "+OK", "SAVE", NULL);
    char limit[32];
    snprintf(limit, sizeof(limit), "%lld",
             client_info_number(c, "memory", "used_memory") + (4LL << 20));
    client_expect(c, "+OK", "CONFIG", "SET", "maxmemory", limit, NULL);
    expect_error_with(c, client_cmd(c, "LOAD", "dump.rdb", NULL), "needs more than maxmemory");
    client_expect(c, ":30000", "HLEN", "h", NULL);
    client_expect(c, "+OK", "CONFIG", "SET", "maxmemory", "0", NULL);
    client_expect(c, "+OK", "LOAD", "dump.rdb", NULL);
    client_close(c);
    server_stop(s);
}

static void a_file_is_checked_without_loading_it(void **state) {
    char out[4096], path[128];
    const char *args[] = {"--check-rdb", path, NULL};
    struct server *s = start();
    struct client *c = server_connect(s);
    load_everything(c);
    client_expect(c, "+OK", "DEBUG", "RELOAD", NULL);
    client_expect(c, "+OK", "DEBUG", "CHECK", NULL);
    client_expect(c, "+OK", "SET", "extra", "1", NULL);
    client_expect(c, "+OK", "SAVE", "extra.rdb", NULL);
    client_close(c);
    server_stop(s);
    path_of(path, "extra.rdb");
    assert_int_equal(server_run(SERVER_GOBLIN, args, out, sizeof(out)), 0);
    assert_non_null(strstr(out, "version:             RDB 10"));
    assert_non_null(strstr(out, "checksum:            right"));
    assert_non_null(strstr(out, "The file is good."));
    char keys[64];
    snprintf(keys, sizeof(keys), "keys:                %zu\n", specimens_count() + 3);
    assert_non_null(strstr(out, keys));
    write_text("bad.rdb", "REDIS0010\0\1k\1v\0\1l", 17);
    path_of(path, "bad.rdb");
    assert_int_equal(server_run(SERVER_GOBLIN, args, out, sizeof(out)), 1);
    assert_non_null(
        strstr(out, "/bad.rdb: string of key 'l' at offset 17: the file ends too early"));
    path_of(path, "none.rdb");
    assert_int_equal(server_run(SERVER_GOBLIN, args, out, sizeof(out)), 1);
    assert_non_null(strstr(out, "No such file or directory"));
}

/* ---- the end ---------------------------------------------------------------------------------- */

enum how { BY_SIGTERM, BY_SIGINT, BY_SHUTDOWN, BY_NOSAVE, BY_SAVE, BY_SAVE_NOW };

static void end_by(struct server *s, struct client *c, enum how how) {
    switch (how) {
    case BY_SIGTERM:
    case BY_SIGINT:
        kill(s->pid, how == BY_SIGINT ? SIGINT : SIGTERM);
        return;
    case BY_SHUTDOWN:
        client_append(c, "SHUTDOWN", NULL);
        break;
    case BY_NOSAVE:
        client_append(c, "SHUTDOWN", "NOSAVE", NULL);
        break;
    case BY_SAVE:
        client_append(c, "SHUTDOWN", "SAVE", NULL);
        break;
    case BY_SAVE_NOW:
        client_append(c, "SHUTDOWN", "NOW", "SAVE", NULL);
        break;
    }
    client_append(c, "SET", "late", "1", NULL); /* never executed */
    assert_true(client_flush(c));
}

static void the_end_saves_when_it_is_to(void **state) {
    static const struct {
        enum how how;
        const char *save_on_exit;
        bool saves;
    } cases[] = {
        {BY_SIGTERM, "no", false},  {BY_SIGTERM, "yes", true},  {BY_SIGINT, "yes", true},
        {BY_SHUTDOWN, "no", false}, {BY_SHUTDOWN, "yes", true}, {BY_NOSAVE, "yes", false},
        {BY_SAVE, "no", true},      {BY_SAVE_NOW, "no", true},
    };
    char path[128];
    path_of(path, "dump.rdb");
    for (size_t i = 0; i < COUNT(cases); i++) {
        unlink(path);
        struct server *s = start_with(SERVER_GOBLIN, "--save-on-exit", cases[i].save_on_exit);
        struct client *c = server_connect(s);
        client_expect(c, "+OK", "SET", "a", "1", NULL);
        end_by(s, c, cases[i].how);
        assert_true(client_wait_closed(c, 10000));
        client_close(c);
        wait_end(s);
        server_stop(s);
        assert_int_equal(is_there("dump.rdb"), cases[i].saves);
    }
    struct server *s = start(); /* the last one saved */
    struct client *c = connect_loaded(s);
    client_expect(c, "\"1\"", "GET", "a", NULL);
    client_expect(c, ":1", "DBSIZE", NULL);
    client_close(c);
    server_stop(s);
}

static void a_save_that_fails_keeps_the_server(void **state) {
    struct server *s = start_with(SERVER_GOBLIN, "--save-on-exit", "yes");
    struct client *c = connect_loaded(s);
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    write_text("dump.rdb", "no snapshot", 11);
    client_expect(c, SHUTDOWN_FAILED, "SHUTDOWN", NULL);
    client_expect(c, SHUTDOWN_FAILED, "SHUTDOWN", "SAVE", "NOW", NULL);
    client_expect(c, "-ERR No shutdown in progress.", "SHUTDOWN", "ABORT", NULL);
    client_expect(c, "-ERR syntax error", "SHUTDOWN", "SAVE", "NOSAVE", NULL);
    kill(s->pid, SIGTERM);
    for (int waited_ms = 0; !log_has(s, "Received SIGTERM"); waited_ms += 10) {
        assert_true(waited_ms < 10000);
        wait_ms(10);
    }
    client_expect(c, "\"1\"", "GET", "a", NULL);
    assert_true(server_alive(s));
    assert_true(log_has(s, "Error trying to save the DB, can't exit."));
    client_append(c, "SHUTDOWN", "SAVE", "FORCE", NULL);
    assert_true(client_flush(c));
    assert_true(client_wait_closed(c, 10000));
    client_close(c);
    wait_end(s);
    server_stop(s);
    assert_int_equal(count_temporaries(), 0);
}

/* ---- failures of the world --------------------------------------------------------------------- */

static void a_full_disk_keeps_the_old_file(void **state) {
    if (mount("none", folder, "tmpfs", 0, "size=2m") != 0) {
        TEST_SKIP("no tmpfs can be mounted");
    }
    struct server *s = start();
    struct client *c = server_connect(s);
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    client_expect(c, "+OK", "SAVE", NULL);
    fill_hash(c, "h", 3000, 1000);
    expect_error_with(c, client_cmd(c, "SAVE", NULL), "No space left on device");
    assert_int_equal(count_temporaries(), 0);
    client_expect(c, SHUTDOWN_FAILED, "SHUTDOWN", "SAVE", NULL);
    client_expect(c, "+OK", "LOAD", "dump.rdb", NULL);
    client_expect(c, "\"1\"", "GET", "a", NULL);
    client_expect(c, ":1", "DBSIZE", NULL);
    client_close(c);
    server_stop(s);
}

static int64_t pid_of_the_dead(void) {
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    return pid;
}

static void stale_temporaries_go_at_start(void **state) {
    char dead[64], living[64];
    snprintf(dead, sizeof(dead), "temp-%lld.rdb", (long long)pid_of_the_dead());
    snprintf(living, sizeof(living), "temp-%d.rdb", (int)getpid());
    write_text(dead, "half", 4);
    write_text(living, "half", 4);
    struct server *s = start();
    assert_false(is_there(dead));
    assert_true(is_there(living));
    server_stop(s);
}

/* The hash and a mark are saved together: what is loaded later is what one save or the other wrote. */
static void a_killed_save_leaves_a_good_file(void **state) {
    const char *asked = getenv("GC_CRASHES");
    int crashes = asked != NULL ? atoi(asked) : 20;
    int mark = 0;
    struct server *s = start();
    struct client *c = server_connect(s);
    fill_hash(c, "h", 20000, 200);
    client_expect(c, "+OK", "SET", "mark", "0", NULL);
    client_expect(c, "+OK", "SAVE", NULL);
    for (int i = 1; i <= crashes; i++) {
        char text[16], expected[32];
        snprintf(text, sizeof(text), "%d", i);
        client_expect(c, "+OK", "SET", "mark", text, NULL);
        client_append(c, "SAVE", NULL);
        assert_true(client_flush(c));
        usleep((useconds_t)(i * 7919 % 30000));
        server_kill(s);
        client_close(c);
        s = start();
        c = connect_loaded(s);
        struct reply *r = client_cmd(c, "GET", "mark", NULL);
        assert_true(r != NULL && r->type == '$' && !r->is_null);
        int found = atoi(r->str);
        reply_free(r);
        assert_true(found == i || found == mark);
        mark = found;
        snprintf(expected, sizeof(expected), ":%d", 20000);
        client_expect(c, expected, "HLEN", "h", NULL);
        assert_int_equal(count_temporaries(), 0);
    }
    client_close(c);
    server_stop(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_type_goes_to_redis_and_comes_back),
        TEST(a_snapshot_replaces_all_there_is),
        TEST(only_dbfilename_counts_as_saved),
        TEST(names_stay_in_the_folder),
        TEST(who_waits_is_served_by_a_load),
        TEST(loading_is_told),
        TEST(loading_at_start_is_told),
        TEST(what_only_the_loading_needed_is_given_back),
        TEST(a_bad_file_costs_nothing),
        TEST(a_bad_file_stops_the_start),
        TEST(another_file_is_loaded_on_demand),
        TEST(what_is_not_built_is_refused_or_skipped),
        TEST(a_load_stays_within_maxmemory),
        TEST(a_file_is_checked_without_loading_it),
        TEST(the_end_saves_when_it_is_to),
        TEST(a_save_that_fails_keeps_the_server),
        TEST(a_full_disk_keeps_the_old_file),
        TEST(stale_temporaries_go_at_start),
        TEST(a_killed_save_leaves_a_good_file),
    };
    return tests_result(cmocka_run_group_tests(tests, NULL, NULL), COUNT(tests));
}
