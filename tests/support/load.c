/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { PIPELINE = 500, VALUE_CAP = 4096 };

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t entry_name(char *out, size_t cap, uint64_t i) {
    return (size_t)snprintf(out, cap, "field:%" PRIu64, i);
}

static size_t entry_value(const struct load *l, char *out, uint64_t i, uint32_t generation) {
    uint64_t seed = mix(i * 0x9e3779b97f4a7c15u + generation + 1);
    size_t len = l->value_min_len + seed % (l->value_max_len - l->value_min_len + 1u);
    for (size_t at = 0; at < len; at += 8) {
        seed = mix(seed + 0x9e3779b97f4a7c15u);
        memcpy(out + at, &seed, len - at < 8 ? len - at : 8);
    }
    return len;
}

/* Queue one command on entry i: verb is the hash's, or the string's, form. */
static void append_entry(struct load *l, const char *hash_verb, const char *string_verb, uint64_t i,
                         const char *value, size_t value_len) {
    char name[32];
    size_t name_len = entry_name(name, sizeof(name), i);
    const char *argv[4];
    size_t lens[4];
    int argc = 0;
    const char *verb = l->kind == LOAD_HASH ? hash_verb : string_verb;
    argv[argc] = verb;
    lens[argc++] = strlen(verb);
    if (l->kind == LOAD_HASH) {
        argv[argc] = "big";
        lens[argc++] = 3;
    }
    argv[argc] = name;
    lens[argc++] = name_len;
    if (value) {
        argv[argc] = value;
        lens[argc++] = value_len;
    }
    client_append_argv(l->client, argc, argv, lens);
}

static void take_replies(struct load *l, uint64_t count) {
    assert_true(client_flush(l->client));
    while (count-- > 0) {
        struct reply *r = client_read(l->client);
        assert_non_null(r);
        l->errors += reply_is_error(r);
        reply_free(r);
    }
}

void load_write(struct load *l, uint64_t from, uint64_t to, uint32_t generation) {
    char value[VALUE_CAP + 8];
    uint64_t queued = 0;
    for (uint64_t i = from; i < to; i++) {
        size_t len = entry_value(l, value, i, generation);
        append_entry(l, "HSET", "SET", i, value, len);
        if (++queued == PIPELINE || i + 1 == to) {
            take_replies(l, queued);
            queued = 0;
        }
    }
}

void load_remove(struct load *l, uint64_t from, uint64_t to, uint64_t step) {
    uint64_t queued = 0;
    for (uint64_t i = from; i < to; i++) {
        if (i % step == 0) {
            append_entry(l, "HDEL", "DEL", i, NULL, 0);
            queued++;
        }
        if (queued == PIPELINE || i + 1 == to) {
            take_replies(l, queued);
            queued = 0;
        }
    }
}

uint64_t load_verify(struct load *l, uint64_t from, uint64_t to, uint32_t generation,
                     uint64_t gone_step) {
    char value[VALUE_CAP + 8];
    uint64_t wrong = 0;
    for (uint64_t begin = from; begin < to; begin += PIPELINE) {
        uint64_t end = begin + PIPELINE < to ? begin + PIPELINE : to;
        for (uint64_t i = begin; i < end; i++) {
            append_entry(l, "HGET", "GET", i, NULL, 0);
        }
        assert_true(client_flush(l->client));
        for (uint64_t i = begin; i < end; i++) {
            struct reply *r = client_read(l->client);
            assert_non_null(r);
            size_t len = entry_value(l, value, i, generation);
            bool gone = gone_step && i % gone_step == 0;
            bool right = gone ? r->is_null
                              : r->type == '$' && !r->is_null && r->len == len &&
                                    memcmp(r->str, value, len) == 0;
            wrong += !right;
            reply_free(r);
        }
    }
    return wrong;
}
