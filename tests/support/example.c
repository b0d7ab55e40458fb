/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/example.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS_MAX = 64 };

int example_split(char *line, const char **argv, size_t *lens, int cap) {
    int argc = 0;
    for (char *p = line; *p && argc < cap;) {
        p += strspn(p, " ");
        char stop = *p == '\'' ? '\'' : ' ';
        p += stop == '\'';
        char *out = p;
        argv[argc] = p;
        while (*p && *p != stop) {
            if (p[0] == '\\' && p[1] == 'x') {
                char hex[3] = {p[2], p[3], '\0'};
                *out++ = (char)strtol(hex, NULL, 16);
                p += 4;
            } else {
                *out++ = *p++;
            }
        }
        lens[argc] = (size_t)(out - argv[argc]);
        argc++;
        p += *p != '\0';
        *out = '\0';
    }
    return argc;
}

static bool run_one(struct client *c, const struct example *e) {
    char *line = strdup(e->command);
    const char *argv[WORDS_MAX];
    size_t lens[WORDS_MAX];
    int argc = example_split(line, argv, lens, WORDS_MAX);
    struct reply *r = client_cmd_argv(c, argc, argv, lens);
    char *got = reply_text(r);
    bool ok = r && (e->reply ? strcmp(got, e->reply) == 0 : !reply_is_error(r));
    if (!ok) {
        fprintf(stderr, "%s\n  expected %s\n  got      %.2000s\n", e->command,
                e->reply ? e->reply : "no error", got);
    }
    free(got);
    free(line);
    reply_free(r);
    return ok;
}

static bool is_for(const struct example *e, enum server_kind kind, int protocol) {
    int only = (int)e->which & 3;
    return (only == 0 || only == protocol) && (!(e->which & NEW) || kind == SERVER_GOBLIN);
}

static int run_group(const struct server *s, const struct example_group *group, int protocol) {
    struct client *c = server_connect(s);
    int wrong = 0;
    client_expect(c, "+OK", "FLUSHALL", NULL);
    if (protocol == 3) {
        reply_free(client_cmd(c, "HELLO", "3", NULL));
    }
    for (size_t i = 0; i < group->count; i++) {
        if (is_for(&group->rows[i], s->kind, protocol)) {
            wrong += !run_one(c, &group->rows[i]);
        }
    }
    client_close(c);
    return wrong;
}

int examples_run(const struct server *s, const struct example_group *groups, size_t count,
                 int protocol) {
    int wrong = 0;
    for (size_t g = 0; g < count; g++) {
        wrong += run_group(s, &groups[g], protocol);
    }
    return wrong;
}

void examples_assert(enum server_kind kind, const struct example_group *groups, size_t count,
                     int protocol) {
    struct server *s = server_start(kind, NULL);
    int wrong = examples_run(s, groups, count, protocol);
    server_stop(s);
    assert_int_equal(wrong, 0);
}
