/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenes of clients that wait (BLPOP, BZPOPMIN and the like): one server, one client that writes,
 * some that wait. Each scenario begins with new connections and an empty server. */
#ifndef SUPPORT_SCENE_H
#define SUPPORT_SCENE_H

#include "support/client.h"
#include "support/server.h"

enum { SCENE_WAITERS = 4 };

struct scene {
    struct server *server;
    struct client *writer;
    struct client *waiters[SCENE_WAITERS];
};

struct scenario {
    const char *name;
    void (*run)(struct scene *s);
};

#define SCENARIO(function)                                                                         \
    { #function, (function) }

/* Play each against a server of that kind. */
void scenes_play(enum server_kind kind, const struct scenario *list, size_t count);

/* A command of C strings for waiter i, sent at once; its reply is not waited for. */
#define WAIT(scene, i, ...)                                                                        \
    do {                                                                                           \
        client_append((scene)->waiters[i], __VA_ARGS__, NULL);                                     \
        assert_true(client_flush((scene)->waiters[i]));                                            \
    } while (0)

/* Until that many clients wait; a waiter's command has been executed then. */
void await_blocked(struct client *c, long long count);

/* Nothing has come for this client, and it is still there. */
void expect_silence(struct client *c);

/* A clock for time-outs, ms. */
int64_t scene_now_ms(void);

#endif
