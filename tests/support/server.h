/* SPDX-License-Identifier: BSD-3-Clause */
/* A server under test, or the oracle beside it: started in a fresh directory with a Unix socket and
 * a free TCP port on loopback, stopped with its exit checked.
 *
 * The path of our server is $GOBLIN_CORE (ctest sets it), the oracle's is $REDIS_SERVER or
 * redis-server on the PATH. Both get the same command line, and both die with the test program. */
#ifndef SUPPORT_SERVER_H
#define SUPPORT_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "support/client.h"

enum server_kind { SERVER_GOBLIN, SERVER_ORACLE };

struct server {
    enum server_kind kind;
    pid_t pid;
    int port;
    char dir[64];
    char socket_path[80];
    char log_path[80];
    struct server *next; /* all that run, so that a failed test leaves none behind */
};

/* True when the program exists; the oracle is allowed to be missing on a developer's machine. */
bool server_available(enum server_kind kind);

/* Start with these extra arguments (a NULL-terminated list, or NULL) and wait until PING is
 * answered. Fails the test, with the log shown, when that does not happen within 30 s. */
struct server *server_start(enum server_kind kind, const char *const *args);

/* The same, after the child has called prepare(), which puts it into a cgroup or gives up rights, say; false ends the child. */
struct server *server_start_prepared(enum server_kind kind, const char *const *args,
                                     bool (*prepare)(void));

/* SIGTERM, wait 60 s at most, fail the test when the exit status is not 0 or a sanitizer reported
 * anything; the directory is removed. NULL does nothing. */
void server_stop(struct server *s);

/* Stop without a verdict: SIGKILL, directory removed. For servers expected to misbehave. */
void server_kill(struct server *s);

/* True while the process has not ended. */
bool server_alive(struct server *s);

/* Run the server with exactly these arguments until it ends by itself (10 s at most, then it is
 * killed and -1 returned). Its exit status; out gets the start of what it printed. */
int server_run(enum server_kind kind, const char *const *args, char *out, size_t out_cap);

/* A new connection over the Unix socket, or TCP; fails the test when refused. */
struct client *server_connect(const struct server *s);
struct client *server_connect_tcp(const struct server *s);

/* Everything it printed; the caller frees it. */
char *server_log(const struct server *s);

/* A "kB" line of /proc/PID/status ("VmRSS", "HugetlbPages") in bytes, -1 when absent. */
long long server_status_bytes(const struct server *s, const char *field);

/* A TCP port on loopback nobody listens on at the moment. */
int free_port(void);

/* ---- programs whose tests may all be impossible on a machine ---- */

extern int tests_skipped; /* how many tests of this program said TEST_SKIP */

/* Leave the test as skipped, with a reason that scripts/test.sh repeats. */
#define TEST_SKIP(...)                                                                             \
    do {                                                                                           \
        print_message("SKIP: " __VA_ARGS__);                                                       \
        print_message("\n");                                                                       \
        tests_skipped++;                                                                           \
        skip();                                                                                    \
    } while (0)

/* What main returns: failures, or 77 (ctest: skipped) when no test ran at all. */
static inline int tests_result(int failed, size_t test_count) {
    return failed == 0 && (size_t)tests_skipped == test_count ? 77 : failed;
}

#endif
