/* SPDX-License-Identifier: BSD-3-Clause */
/* The tools people point at a server: redis-cli in its modes, and redis-benchmark. Each is run as a
 * user would run it and judged by its exit status and by what it prints. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/client.h"
#include "support/server.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { KEYS = 500 };

static struct server *server;

/* Run a shell line with $PORT set, 60 s at most; its exit status, what it printed in out. */
static int run(const char *line, char *out, size_t cap) {
    char command[2048];
    snprintf(command, sizeof(command),
             "PORT=%d; export PORT; timeout 60 sh -c '%s' 2>&1 </dev/null", server->port, line);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t len = fread(out, 1, cap - 1, f);
    out[len] = '\0';
    char rest[4096];
    while (fread(rest, 1, sizeof(rest), f) > 0) {
    }
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool have(const char *program) {
    char command[128];
    snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
    return system(command) == 0;
}

struct tool_case {
    const char *line;
    const char *printed; /* must be in the output */
    int status;          /* 124: it runs until stopped, timeout(1) stops it */
};

static void run_cases(const struct tool_case *cases, size_t count) {
    static char out[1024 * 1024];
    for (size_t i = 0; i < count; i++) {
        int status = run(cases[i].line, out, sizeof(out));
        bool ok = status == cases[i].status && strstr(out, cases[i].printed) &&
                  !strstr(out, "ERR ") && !strstr(out, "Error:");
        if (!ok) {
            fprintf(stderr,
                    "%s\n  exit status %d (expected %d), to print \"%s\"; printed:\n%.3000s\n",
                    cases[i].line, status, cases[i].status, cases[i].printed, out);
        }
        assert_true(ok);
    }
}

static void redis_cli_works_in_its_modes(void **state) {
    (void)state;
    if (!have("redis-cli")) {
        TEST_SKIP("no redis-cli (apt-get install redis-tools)");
    }
    static const struct tool_case cases[] = {
        {"redis-cli -p $PORT ping", "PONG", 0},
        {"redis-cli -p $PORT -3 ping", "PONG", 0},
        {"redis-cli --no-raw -p $PORT -3 hgetall hash:7", "1# \"name\" => \"value\"", 0},
        {"redis-cli -p $PORT hgetall hash:7", "value", 0},
        {"redis-cli -p $PORT -n 3 set x y", "OK", 0},
        {"redis-cli -p $PORT --scan --pattern \"key:49?\" | sort | tail -n 1", "key:499", 0},
        {"redis-cli -p $PORT --scan | wc -l", "1000", 0},
        {"redis-cli -p $PORT --bigkeys", "Biggest   hash found", 0},
        {"redis-cli -p $PORT --bigkeys", "500 strings with", 0},
        {"redis-cli -p $PORT --memkeys", "Biggest string found", 0},
        {"script -qec \"timeout 3 redis-cli -p $PORT --stat\" /dev/null", "requests", 124},
        {"script -qec \"timeout 3 redis-cli -p $PORT --latency\" /dev/null", "min: ", 124},
        {"redis-cli -p $PORT --intrinsic-latency 1", "Max latency", 0},
        {"redis-cli -p $PORT command docs get", "summary", 0},
        {"redis-cli -p $PORT info server", "redis_version:", 0},
        {"redis-cli -p $PORT client list", "addr=127.0.0.1", 0},
        {"redis-cli -p $PORT -r 3 -i 0 incr cli:counter", "3", 0},
        {"for i in 1 2 3; do printf \"SET pipe:%s v\\r\\n\" $i; done | redis-cli -p $PORT --pipe",
         "errors: 0, replies: 3", 0},
        {"redis-cli -p $PORT exists pipe:1 pipe:2 pipe:3", "3", 0},
        {"printf \"ping\\necho two\\n\" | redis-cli -p $PORT", "two", 0},
        /* At a terminal it first reads COMMAND DOCS, for its hints and its help. */
        {"(sleep 1; printf \"help hset\\r\"; sleep 1; printf \"quit\\r\"; sleep 1) | "
         "script -qec \"stty cols 80; redis-cli -p $PORT\" /dev/null",
         "summary:", 0},
    };
    run_cases(cases, COUNT(cases));
}

static void redis_benchmark_completes(void **state) {
    (void)state;
    if (!have("redis-benchmark")) {
        TEST_SKIP("no redis-benchmark (apt-get install redis-tools)");
    }
    static const struct tool_case cases[] = {
        {"redis-benchmark -p $PORT -q -n 10000 -t ping,set,get,incr,mset,hset", "HSET: ", 0},
        {"redis-benchmark -p $PORT -q -n 50000 -P 50 -t set,get,incr,mset,hset",
         "MSET (10 keys): ", 0},
        {"redis-benchmark -p $PORT -q -n 20000 -P 16 -r 100000 -t set,get", "GET: ", 0},
        {"redis-benchmark -p $PORT -q -3 -n 10000 -t get", "GET: ", 0},
        {"redis-benchmark -p $PORT -q -n 2000 -d 65536 -t set,get", "GET: ", 0},
    };
    run_cases(cases, COUNT(cases));
}

static int start(void **state) {
    (void)state;
    server = server_start(SERVER_GOBLIN, NULL);
    struct client *c = server_connect(server);
    for (int i = 0; i < KEYS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "key:%d", i);
        client_append(c, "SET", key, "value", NULL);
        snprintf(key, sizeof(key), "hash:%d", i);
        client_append(c, "HSET", key, "name", "value", NULL);
    }
    bool sent = client_flush(c);
    for (int i = 0; sent && i < 2 * KEYS; i++) {
        reply_free(client_read(c));
    }
    client_close(c);
    return sent ? 0 : -1;
}

static int stop(void **state) {
    (void)state;
    server_stop(server);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redis_cli_works_in_its_modes),
        cmocka_unit_test(redis_benchmark_completes),
    };
    return tests_result(cmocka_run_group_tests(tests, start, stop), COUNT(tests));
}
