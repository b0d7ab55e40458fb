/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

enum { START_TIMEOUT_MS = 30000, STOP_TIMEOUT_MS = 60000, MAX_ARGS = 64 };

int tests_skipped;

/* ---- small helpers ---- */

static void sleep_ms(int ms) {
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L};
    nanosleep(&ts, NULL);
}

static const char *server_program(enum server_kind kind) {
    const char *path = getenv(kind == SERVER_GOBLIN ? "GOBLIN_CORE" : "REDIS_SERVER");
    if (path && *path) {
        return path;
    }
    return kind == SERVER_GOBLIN ? "goblin-core" : "redis-server";
}

bool server_available(enum server_kind kind) {
    const char *program = server_program(kind);
    if (strchr(program, '/')) {
        return access(program, X_OK) == 0;
    }
    const char *path_env = getenv("PATH");
    char *path = strdup(path_env ? path_env : "/usr/bin");
    bool found = false;
    char *save = NULL;
    for (char *dir = strtok_r(path, ":", &save); dir && !found; dir = strtok_r(NULL, ":", &save)) {
        char full[4096];
        snprintf(full, sizeof(full), "%s/%s", dir, program);
        found = access(full, X_OK) == 0;
    }
    free(path);
    return found;
}

int free_port(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    close(fd);
    return ntohs(addr.sin_port);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static char *read_file(const char *path) {
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out) {
        abort();
    }
    char chunk[4096];
    size_t n;
    while (f && (n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        fwrite(chunk, 1, n, out);
    }
    fclose(out);
    if (f) {
        fclose(f);
    }
    return text;
}

char *server_log(const struct server *s) {
    return read_file(s->log_path);
}

/* ---- starting ---- */

/* Never returns. The child dies with its parent, so a crashed test leaves no server behind. */
static void exec_child(const char *program, char **argv, int out_fd, bool (*prepare)(void)) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (prepare && !prepare()) {
        _exit(126);
    }
    setenv("LC_ALL", "C", 1); /* redis-server's SORT ALPHA goes by the locale */
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(out_fd, STDOUT_FILENO);
    dup2(out_fd, STDERR_FILENO);
    execvp(program, argv);
    dprintf(STDERR_FILENO, "cannot execute %s: %s\n", program, strerror(errno));
    _exit(127);
}

static pid_t spawn(const char *program, char **argv, const char *log_path, bool (*prepare)(void)) {
    int out_fd = open(log_path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    assert_true(out_fd >= 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        exec_child(program, argv, out_fd, prepare);
    }
    close(out_fd);
    return pid;
}

bool server_alive(struct server *s) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

static bool wait_answers(struct server *s) {
    for (int waited_ms = 0; waited_ms < START_TIMEOUT_MS; waited_ms += 10) {
        struct client *c = client_connect_unix(s->socket_path);
        if (c) {
            struct reply *r = client_cmd(c, "PING", NULL);
            bool answered = r != NULL; /* -NOAUTH is an answer too */
            reply_free(r);
            client_close(c);
            if (answered) {
                return true;
            }
        }
        if (!server_alive(s)) {
            return false;
        }
        sleep_ms(10);
    }
    return false;
}

static struct server *running;

/* At the program's end: what failed tests did not stop. */
static void kill_running(void) {
    while (running) {
        server_kill(running);
    }
}

static void add_running(struct server *s) {
    static bool registered;
    if (!registered) {
        atexit(kill_running);
        registered = true;
    }
    s->next = running;
    running = s;
}

static void free_server(struct server *s) {
    struct server **link = &running;
    while (*link && *link != s) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = s->next;
    }
    nftw(s->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(s);
}

struct server *server_start_prepared(enum server_kind kind, const char *const *args,
                                     bool (*prepare)(void)) {
    struct server *s = calloc(1, sizeof(*s));
    s->kind = kind;
    snprintf(s->dir, sizeof(s->dir), "/tmp/goblin-test-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->socket_path, sizeof(s->socket_path), "%s/socket", s->dir);
    snprintf(s->log_path, sizeof(s->log_path), "%s/log", s->dir);
    s->port = free_port();
    char port[16];
    snprintf(port, sizeof(port), "%d", s->port);
    const char *program = server_program(kind);
    const char *argv[MAX_ARGS] = {
        program, "--port",       port,           "--bind", "127.0.0.1",
        "--dir", s->dir,         "--save",       "",       "--enable-debug-command",
        "yes",   "--unixsocket", s->socket_path, NULL};
    int argc = 0;
    while (argv[argc]) {
        argc++;
    }
    for (int i = 0; args && args[i]; i++) {
        assert_true(argc < MAX_ARGS - 1);
        argv[argc++] = args[i];
    }
    s->pid = spawn(program, (char **)argv, s->log_path, prepare);
    add_running(s);
    if (!wait_answers(s)) {
        char *log = server_log(s);
        fprintf(stderr, "%s did not answer; its log:\n%s\n", program, log);
        free(log);
        server_kill(s);
        fail();
    }
    return s;
}

struct server *server_start(enum server_kind kind, const char *const *args) {
    return server_start_prepared(kind, args, NULL);
}

/* ---- stopping ---- */

/* The wait status, or -1 when it had to be killed. */
static int wait_exit(pid_t pid, int timeout_ms) {
    int status = 0;
    for (int waited_ms = 0; waited_ms < timeout_ms; waited_ms += 5) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            return status;
        }
        sleep_ms(5);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
}

static bool log_is_clean(const char *log) {
    static const char *const marks[] = {"AddressSanitizer", "LeakSanitizer",
                                        "runtime error:", "UndefinedBehaviorSanitizer",
                                        "Assertion `"};
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (strstr(log, marks[i])) {
            return false;
        }
    }
    return true;
}

void server_stop(struct server *s) {
    if (!s) {
        return;
    }
    kill(s->pid, SIGTERM);
    int status = wait_exit(s->pid, STOP_TIMEOUT_MS);
    char *log = server_log(s);
    bool ok = status == 0 && log_is_clean(log);
    if (!ok) {
        fprintf(stderr, "the server ended with wait status %d; its log:\n%.20000s\n", status, log);
    }
    free(log);
    free_server(s);
    assert_true(ok);
}

void server_kill(struct server *s) {
    if (!s) {
        return;
    }
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    free_server(s);
}

int server_run(enum server_kind kind, const char *const *args, char *out, size_t out_cap) {
    char log_path[] = "/tmp/goblin-run-XXXXXX";
    int fd = mkstemp(log_path);
    assert_true(fd >= 0);
    close(fd);
    const char *program = server_program(kind);
    const char *argv[MAX_ARGS] = {program};
    for (int i = 0; args[i] && i < MAX_ARGS - 2; i++) {
        argv[i + 1] = args[i];
    }
    int status = wait_exit(spawn(program, (char **)argv, log_path, NULL), 10000);
    char *log = read_file(log_path);
    snprintf(out, out_cap, "%s", log);
    free(log);
    unlink(log_path);
    return status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- looking at it ---- */

struct client *server_connect(const struct server *s) {
    struct client *c = client_connect_unix(s->socket_path);
    assert_non_null(c);
    return c;
}

struct client *server_connect_tcp(const struct server *s) {
    struct client *c = client_connect_tcp("127.0.0.1", s->port);
    assert_non_null(c);
    return c;
}

long long server_status_bytes(const struct server *s, const char *field) {
    char path[64];
    char line[256];
    long long bytes = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)s->pid);
    FILE *f = fopen(path, "r");
    size_t len = strlen(field);
    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, field, len) == 0 && line[len] == ':') {
            bytes = atoll(line + len + 1) * 1024;
            break;
        }
    }
    if (f) {
        fclose(f);
    }
    return bytes;
}
