/* SPDX-License-Identifier: BSD-3-Clause */
/* Through a real redis-server: it loads what we write, saves it under settings that force other
 * encodings, and we read that back. Skipped where there is none. This program opens no socket; the
 * server has one in a folder of its own, and saves when it is told to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

#define ARGS_MAX 40
#define WAIT_MS 60000

static bool have(const char *program) {
    char command[128];
    snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", program);
    return system(command) == 0;
}

static void path_in(char *to, size_t cap, const char *folder, const char *name) {
    snprintf(to, cap, "%s/%s", folder, name);
}

static void remove_folder(const char *folder) {
    DIR *dir = opendir(folder);
    struct dirent *e;
    while (dir != NULL && (e = readdir(dir)) != NULL) {
        char path[512];
        path_in(path, sizeof(path), folder, e->d_name);
        unlink(path);
    }
    closedir(dir);
    rmdir(folder);
}

static pid_t start(char *const *args) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execvp(args[0], args);
        _exit(127);
    }
    return pid;
}

static bool log_says(const char *folder, const char *text) {
    char path[512], log[65536];
    path_in(path, sizeof(path), folder, "log");
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        return false;
    }
    size_t len = fread(log, 1, sizeof(log) - 1, f);
    log[len] = '\0';
    fclose(f);
    return strstr(log, text) != NULL;
}

/* A server that loads folder/dump.rdb and saves it again when it ends. */
static void load_and_save(const char *folder, const char *const *settings) {
    char socket[512], log[512];
    path_in(socket, sizeof(socket), folder, "socket");
    path_in(log, sizeof(log), folder, "log");
    const char *fixed[] = {
        "redis-server", "--port",    "0", "--unixsocket", socket,        "--dir",
        folder,         "--logfile", log, "--save",       "90000 90000", "--sanitize-dump-payload",
        "yes"};
    const char *args[ARGS_MAX + 1] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        args[count++] = fixed[i];
    }
    for (size_t i = 0; settings[i] != NULL && count < ARGS_MAX; i++) {
        args[count++] = settings[i];
    }
    pid_t pid = start((char *const *)(uintptr_t)args);
    int status = 0, waited = 0;
    for (; waited < WAIT_MS && !log_says(folder, "eady to accept connections"); waited += 20) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            fail_msg("redis-server ended while it loaded, see %s", log);
        }
        usleep(20000);
    }
    kill(pid, waited < WAIT_MS ? SIGTERM : SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(waited < WAIT_MS && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(log_says(folder, "DB saved on disk"));
}

static void through_redis(struct store *a, bool compress, const char *const *settings) {
    char folder[] = "/tmp/goblin-redis-XXXXXX", dump[512];
    struct buf file = {0};
    struct store b;
    struct reader_report report;
    assert_non_null(mkdtemp(folder));
    path_in(dump, sizeof(dump), folder, "dump.rdb");
    write_store(a, compress, &file);
    write_file(dump, buf_bytes(&file));
    buf_deinit(&file);
    if (have("redis-check-rdb")) {
        char *const check[] = {(char[]){"redis-check-rdb"}, dump, NULL};
        int status;
        pid_t pid = start(check);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    load_and_save(folder, settings);
    struct bytes saved = read_file(dump);
    store_create(&b);
    read_store(&b, saved, &report);
    assert_true(report.checksum_compared);
    assert_same_data(a, &b);
    assert_same_data(&b, a);
    store_destroy(&b);
    free((void *)(uintptr_t)saved.ptr);
    remove_folder(folder);
}

static void redis_loads_what_is_written_and_we_what_it_saves(void **state) {
    static const char *const usual[] = {NULL};
    static const char *const plain[] = {"--hash-max-listpack-entries",
                                        "0",
                                        "--zset-max-listpack-entries",
                                        "0",
                                        "--set-max-intset-entries",
                                        "0",
                                        "--list-max-listpack-size",
                                        "1",
                                        "--rdbcompression",
                                        "no",
                                        NULL};
    static const char *const packed[] = {"--hash-max-listpack-entries",
                                         "100000",
                                         "--hash-max-listpack-value",
                                         "1000000",
                                         "--zset-max-listpack-entries",
                                         "100000",
                                         "--zset-max-listpack-value",
                                         "1000000",
                                         "--set-max-intset-entries",
                                         "100000",
                                         "--list-max-listpack-size",
                                         "-5",
                                         NULL};
    static const char *const *const settings[] = {usual, plain, packed};
    if (!have("redis-server")) {
        skip();
    }
    struct store a;
    store_create(&a);
    fill(&a);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        through_redis(&a, i % 2 == 0, settings[i]);
    }
    store_destroy(&a);
    assert_int_equal(total_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redis_loads_what_is_written_and_we_what_it_saves),
    };
    hash_setup_seed(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
