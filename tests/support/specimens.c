/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/specimens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { PIPELINE = 500, LONG = 9000, ELEMENT_CAP = LONG + 32 };

enum style { INTEGERS, WIDE_INTEGERS, SHORT, LONG_ALIKE, LONG_NOISE, BINARY };

static const struct specimen {
    const char *key;
    const char *command; /* SET takes the element; the others an element more for each of count */
    int count;
    enum style style;
} specimens[] = {
    {"string, integer", "SET", 1, INTEGERS},
    {"string, wide integer", "SET", 1, WIDE_INTEGERS},
    {"string, short", "SET", 1, SHORT},
    {"string, binary", "SET", 1, BINARY},
    {"string, long and alike", "SET", 1, LONG_ALIKE},
    {"string, long noise", "SET", 1, LONG_NOISE},
    {"list of 3 integers", "RPUSH", 3, INTEGERS},
    {"list of 100 short texts", "RPUSH", 100, SHORT},
    {"list of 5000 integers", "RPUSH", 5000, WIDE_INTEGERS},
    {"list of 5000 short texts", "RPUSH", 5000, SHORT},
    {"list of 40 long texts", "RPUSH", 40, LONG_NOISE},
    {"set of 5 integers", "SADD", 5, INTEGERS},
    {"set of 400 wide integers", "SADD", 400, WIDE_INTEGERS},
    {"set of 5000 integers", "SADD", 5000, INTEGERS},
    {"set of 5 short texts", "SADD", 5, SHORT},
    {"set of 5000 short texts", "SADD", 5000, SHORT},
    {"set of 20 long texts", "SADD", 20, LONG_ALIKE},
    {"hash of 5 short texts", "HSET", 5, SHORT},
    {"hash of 3 binary texts", "HSET", 3, BINARY},
    {"hash of 100 integers", "HSET", 100, INTEGERS},
    {"hash of 5000 short texts", "HSET", 5000, SHORT},
    {"hash of 20 long texts", "HSET", 20, LONG_NOISE},
    {"zset of 5 short texts", "ZADD", 5, SHORT},
    {"zset of 100 integers", "ZADD", 100, INTEGERS},
    {"zset of 5000 short texts", "ZADD", 5000, SHORT},
    {"zset of 20 long texts", "ZADD", 20, LONG_ALIKE},
};

size_t specimens_count(void) {
    return COUNT(specimens);
}

const char *specimen_key(size_t i) {
    return specimens[i].key;
}

/* ---- making --------------------------------------------------------------------------------- */

static size_t element(enum style style, int i, char out[ELEMENT_CAP]) {
    unsigned noise = (unsigned)i * 2654435761u + 1;
    switch (style) {
    case INTEGERS:
        return (size_t)snprintf(out, ELEMENT_CAP, "%d", i - 2);
    case WIDE_INTEGERS:
        return (size_t)snprintf(out, ELEMENT_CAP, "%lld",
                                (long long)noise * (i % 3 == 0 ? -2000000011LL : 65537));
    case SHORT:
        return (size_t)snprintf(out, ELEMENT_CAP, "member:%d", i);
    case BINARY:
        memcpy(out, "a\0b\r\n\xff", 6);
        out[6] = (char)i;
        return 7;
    case LONG_ALIKE:
    case LONG_NOISE:
        for (size_t k = 0; k < LONG; k++) {
            noise = noise * 1664525u + 1013904223u;
            out[k] = style == LONG_ALIKE ? 'x' : (char)(noise >> 24);
        }
        return LONG + (size_t)snprintf(out + LONG, ELEMENT_CAP - LONG, ":%d", i);
    }
    return 0;
}

static const char *const scores[] = {
    "0", "1", "-1", "3.25", "1e300", "inf", "-3", "0.1", "-5e-324", "12345678901234567", "-0"};

/* One command that adds element i. */
static void append_element(struct client *c, const struct specimen *s, int i) {
    char text[ELEMENT_CAP], value[32];
    const char *argv[4] = {s->command, s->key};
    size_t len = element(s->style, i, text);
    size_t lens[4] = {strlen(s->command), strlen(s->key)};
    int argc = 2;
    if (strcmp(s->command, "ZADD") == 0) {
        argv[argc] = scores[(size_t)i % COUNT(scores)];
        lens[argc] = strlen(argv[argc]);
        argc++;
    }
    argv[argc] = text;
    lens[argc++] = len;
    if (strcmp(s->command, "HSET") == 0) {
        lens[argc] = (size_t)snprintf(value, sizeof(value), "value of %d", i);
        argv[argc++] = value;
    }
    client_append_argv(c, argc, argv, lens);
}

static void load(struct client *c, const struct specimen *s) {
    for (int i = 0; i < s->count;) {
        int first = i;
        for (; i < s->count && i < first + PIPELINE; i++) {
            append_element(c, s, i);
        }
        assert_true(client_flush(c));
        for (int k = first; k < i; k++) {
            struct reply *r = client_read(c);
            assert_true(r != NULL && !reply_is_error(r));
            reply_free(r);
        }
    }
}

void specimens_load(struct client *c) {
    for (size_t i = 0; i < COUNT(specimens); i++) {
        load(c, &specimens[i]);
    }
}

/* ---- comparing ------------------------------------------------------------------------------ */

/* One number, one text, whatever digits the server chose. */
static void even_out_score(struct reply *score) {
    char text[40];
    size_t len = (size_t)snprintf(text, sizeof(text), "%.17g", strtod(score->str, NULL));
    char *copy = strdup(text);
    assert_non_null(copy);
    free(score->str);
    score->str = copy;
    score->len = len;
}

char *value_text(struct client *c, const char *key) {
    struct reply *type = client_cmd(c, "TYPE", key, NULL), *r = NULL;
    assert_non_null(type);
    if (strcmp(type->str, "string") == 0) {
        r = client_cmd(c, "GET", key, NULL);
    } else if (strcmp(type->str, "list") == 0) {
        r = client_cmd(c, "LRANGE", key, "0", "-1", NULL);
    } else if (strcmp(type->str, "set") == 0) {
        r = client_cmd(c, "SMEMBERS", key, NULL);
        reply_sort(r, 1);
    } else if (strcmp(type->str, "hash") == 0) {
        r = client_cmd(c, "HGETALL", key, NULL);
        reply_sort(r, 2);
    } else if (strcmp(type->str, "zset") == 0) {
        r = client_cmd(c, "ZRANGE", key, "0", "-1", "WITHSCORES", NULL);
        for (size_t i = 1; r != NULL && i < r->count; i += 2) {
            even_out_score(r->elements[i]);
        }
    }
    reply_free(type);
    char *text = reply_text(r);
    reply_free(r);
    return text;
}
