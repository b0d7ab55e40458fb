/* SPDX-License-Identifier: BSD-3-Clause */
/* What a command costs without a socket: parsing, dispatch, execution, reply. ns a command, and
 * instructions when run as
 *
 *   valgrind --tool=callgrind --toggle-collect=run_measured micro_cmd_dispatch 100000 1 50 hget
 *
 *   micro_cmd_dispatch [ENTRIES] [ROUNDS] [PIPELINE] [ROW...]
 *
 * ENTRIES: keys, and fields, members, elements of one collection each, 16 bytes and 16 bytes. A round
 * is a command for each entry, chosen at random; the figure is the median of the rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/ticks.h"
#include "cmd/context.h"
#include "cmd/dispatch.h"
#include "cmd/table.h"

struct bench {
    struct config config;
    struct metrics metrics;
    struct pages *pages;
    struct dbset *dbs;
    struct cmd_context cx;
    struct client client;
    struct buf out, in;
    struct batch batch;
    struct resp_parser parser;
    struct rng rng;
    uint64_t entries, replies_len;
};

/* %1: a random entry, 12 digits. */
static const struct row {
    const char *name, *words;
} rows[] = {
    {"set", "SET key:%1 0123456789abcdef"},
    {"get", "GET key:%1"},
    {"hset", "HSET h fld:%1 0123456789abcdef"},
    {"hget", "HGET h fld:%1"},
    {"sadd", "SADD s mbr:%1"},
    {"sismember", "SISMEMBER s mbr:%1"},
    {"zadd", "ZADD z %1 mbr:%1"},
    {"zscore", "ZSCORE z mbr:%1"},
    {"zrank", "ZRANK z mbr:%1"},
    {"lpush", "LPUSH l 0123456789abcdef"},
    {"lindex", "LINDEX l %1"},
    {"rpop", "RPOP l"},
};

static void must(bool good) {
    if (!good) {
        fprintf(stderr, "micro_cmd_dispatch: out of memory\n");
        exit(1);
    }
}

static void no_flush(void *server, struct client *c) {
    (void)server;
    (void)c;
}

static void append_word(struct bench *b, const char *word, size_t len, uint64_t entry) {
    char text[64];
    size_t out = 0;
    for (size_t i = 0; i < len; i++) {
        if (word[i] == '%') {
            out += (size_t)snprintf(text + out, sizeof(text) - out, "%012llu",
                                    (unsigned long long)entry);
            i++;
        } else {
            text[out++] = word[i];
        }
    }
    buf_printf(&b->in, "$%zu\r\n%.*s\r\n", out, (int)out, text);
}

static void append_command(struct bench *b, const char *words, uint64_t entry) {
    size_t count = 1;
    for (const char *p = words; *p != '\0'; p++) {
        count += *p == ' ';
    }
    buf_printf(&b->in, "*%zu\r\n", count);
    for (const char *p = words;; p++) {
        size_t len = strcspn(p, " ");
        append_word(b, p, len, entry);
        p += len;
        if (*p == '\0') {
            return;
        }
    }
}

/* All commands of b->in, pipeline at a time. */
static void run_batches(struct bench *b, size_t pipeline) {
    struct resp_limits limits = RESP_LIMITS_DEFAULT;
    struct resp_result result;
    size_t used = 0;
    while (used < b->in.len) {
        enum resp_event event = resp_parse(&b->parser, b->in.ptr + used, b->in.len - used, &limits,
                                           &b->batch.args, &result);
        must(event == RESP_COMMAND);
        used += result.consumed;
        b->batch.items[b->batch.len++] =
            (struct batch_item){.client = &b->client, .first = result.first, .argc = result.argc};
        if (b->batch.len == pipeline || batch_is_full(&b->batch) || used == b->in.len) {
            dispatch_batch(&b->cx, &b->batch);
            b->replies_len += b->out.len;
            buf_clear(&b->out);
        }
    }
}

/* callgrind counts in here only. */
NOINLINE void run_measured(struct bench *b, size_t pipeline);
void run_measured(struct bench *b, size_t pipeline) {
    run_batches(b, pipeline);
}

static double run_round(struct bench *b, const struct row *row, size_t pipeline) {
    buf_clear(&b->in);
    for (uint64_t i = 0; i < b->entries; i++) {
        append_command(b, row->words, rng_below(&b->rng, b->entries));
    }
    int64_t start_ns = clock_monotonic_ns();
    run_measured(b, pipeline);
    return (double)(clock_monotonic_ns() - start_ns) / (double)b->entries;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(struct bench *b, const struct row *row, size_t rounds, size_t pipeline) {
    double *ns = calloc(rounds, sizeof(*ns));
    must(ns != NULL);
    for (size_t i = 0; i < rounds; i++) {
        ns[i] = run_round(b, row, pipeline);
    }
    qsort(ns, rounds, sizeof(*ns), by_value);
    printf("%-10s %7.0f ns\n", row->name, ns[rounds / 2]);
    free(ns);
}

static void load(struct bench *b) {
    static const char *const writes[] = {"SET key:%1 0123456789abcdef",
                                         "HSET h fld:%1 0123456789abcdef", "SADD s mbr:%1",
                                         "ZADD z %1 mbr:%1", "RPUSH l 0123456789abcdef"};
    for (size_t w = 0; w < ARRAY_LEN(writes); w++) {
        buf_clear(&b->in);
        for (uint64_t i = 0; i < b->entries; i++) {
            append_command(b, writes[w], i);
        }
        run_batches(b, DISPATCH_BATCH_MAX);
    }
}

static void setup(struct bench *b) {
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)2 << 20};
    hash_setup_seed(12345);
    table_setup();
    ticks_setup();
    must(config_init(&b->config) == ST_OK && pages_create(&options, &b->pages) == ST_OK);
    struct type_env env = {.pages = b->pages};
    must(dbset_create(&env, 1, &b->dbs) == ST_OK);
    must(context_init(&b->cx, &b->config, b->dbs, &b->metrics) == ST_OK);
    b->cx.hooks.flush = no_flush;
    client_init(&b->client, &b->cx.clients, &b->out, b->cx.now_ms);
    rng_init(&b->rng, 1);
    load(b);
}

static void teardown(struct bench *b) {
    client_deinit(&b->client, &b->cx.clients);
    buf_deinit(&b->in);
    buf_deinit(&b->out);
    context_deinit(&b->cx);
    dbset_destroy(b->dbs);
    pages_destroy(b->pages);
    config_deinit(&b->config);
    resp_args_deinit(&b->batch.args);
}

static bool is_wanted(const char *name, int argc, char **argv) {
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return true;
        }
    }
    return argc <= 4;
}

static size_t argument(int argc, char **argv, int i, size_t otherwise) {
    return argc > i ? strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv) {
    static struct bench b;
    b.entries = argument(argc, argv, 1, 1000000);
    size_t rounds = argument(argc, argv, 2, 5), pipeline = argument(argc, argv, 3, 50);
    if (b.entries == 0 || rounds == 0 || pipeline == 0) {
        fprintf(stderr, "usage: micro_cmd_dispatch [ENTRIES] [ROUNDS] [PIPELINE] [ROW...]\n");
        return 2;
    }
    setup(&b);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (is_wanted(rows[i].name, argc, argv)) {
            measure(&b, &rows[i], rounds, pipeline);
        }
    }
    teardown(&b);
    return 0;
}
