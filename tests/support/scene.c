/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

int64_t scene_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void await_blocked(struct client *c, long long count) {
    for (int i = 0; i < 2000; i++) {
        if (client_info_number(c, "clients", "blocked_clients") == count) {
            return;
        }
        usleep(2000);
    }
    fail_msg("%lld clients wait, not %lld", client_info_number(c, "clients", "blocked_clients"),
             count);
}

void expect_silence(struct client *c) {
    c->timeout_ms = 60;
    struct reply *r = client_read(c);
    char *text = reply_text(r);
    if (r || c->closed) {
        fail_msg("no reply expected, got %s", text);
    }
    free(text);
    c->timeout_ms = 30000;
}

void scenes_play(enum server_kind kind, const struct scenario *list, size_t count) {
    struct scene s = {.server = server_start(kind, NULL)};
    for (size_t i = 0; i < count; i++) {
        print_message("  %s\n", list[i].name);
        s.writer = server_connect(s.server);
        for (int k = 0; k < SCENE_WAITERS; k++) {
            s.waiters[k] = server_connect(s.server);
        }
        list[i].run(&s);
        for (int k = 0; k < SCENE_WAITERS; k++) {
            client_close(s.waiters[k]);
        }
        await_blocked(s.writer, 0);
        client_expect(s.writer, "+OK", "FLUSHALL", NULL);
        client_close(s.writer);
    }
    server_stop(s.server);
}
