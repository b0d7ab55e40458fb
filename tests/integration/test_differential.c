/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle test: the same seeded random commands to our server and to a real redis-server, every
 * reply compared, then both data sets key by key.
 *
 *   integration_test_differential [--seed N] [--commands N] [--protocol 2|3] [--mismatches N]
 *
 * Without options: 60,000 commands in each protocol, seed from the clock (printed). A run repeats
 * exactly with its seed. After a mismatch both servers are flushed and the run goes on until
 * --mismatches (10) of them are printed, one for each command name, so that one run shows a
 * builder all that differs.
 *
 * The oracle is Debian's redis 7.0 and our contract is 7.2, so what 7.2 changed is listed in
 * `known` below; unordered replies are sorted; times may be 2 s apart; the members of random
 * replies are checked against the oracle's data. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/client.h"
#include "support/gen.h"
#include "support/reply.h"
#include "support/server.h"

enum { BATCH_MAX = 200, HISTORY_CAP = 8192, HISTORY_SHOWN = 25, DB_COUNT = 16 };

/* What 7.2 answers otherwise than 7.0, or where the contract leaves the text open. The command is
 * compared by its leading words without case; NULL texts match any reply. */
static const struct known {
    const char *command;
    const char *oracle;
    const char *ours;
    const char *why;
} known[] = {
    {"OBJECT FREQ", NULL, NULL, "LFU is reported only when the policy keeps it"},
    {"KEYS **", NULL, NULL,
     "redis matches the empty name with \"*\" only; here any stars match it"},
};

static struct {
    uint64_t seed;
    uint64_t commands;
    int protocol; /* 0: both */
    int mismatches_max;
} options = {.commands = 60000, .mismatches_max = 10};

enum { ORACLE, OURS };
static struct server *servers[2];

struct run {
    struct gen *gen;
    int protocol;
    struct client *clients[2];
    struct command batch[BATCH_MAX];
    int batch_count;
    uint64_t done;
    uint64_t error_count;       /* replies that were errors: the mix should be neither 0 nor all */
    char *history[HISTORY_CAP]; /* ring of readable commands; history_end counts all */
    uint64_t history_end;
    int mismatch_count;
    char *reported[64]; /* command names already shown */
    int reported_count;
};

/* ---- history ---- */

static char *command_text(const struct command *cmd) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    for (int i = 0; i < cmd->argc; i++) {
        char *arg = bytes_text(cmd->argv[i], cmd->lens[i], 100);
        fprintf(out, "%s\"%s\"", i ? " " : "", arg);
        free(arg);
    }
    fclose(out);
    return text;
}

static void remember(struct run *run, const struct command *cmd) {
    char **slot = &run->history[run->history_end++ % HISTORY_CAP];
    free(*slot);
    *slot = command_text(cmd);
}

static bool moves_keys(const char *text) {
    static const char *const names[] = {"\"SELECT\"", "\"SWAPDB\"", "\"FLUSH", "\"RESET\"",
                                        "\"QUIT\""};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncasecmp(text, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* The latest commands, up to `end`, that name the key or move whole databases. */
static void show_history(struct run *run, const struct command *cmd, uint64_t end) {
    char *arg = cmd->argc > 1 ? bytes_text(cmd->argv[1], cmd->lens[1], 100) : strdup("");
    size_t quoted_len = strlen(arg) + 3;
    char *quoted = malloc(quoted_len);
    snprintf(quoted, quoted_len, "\"%s\"", arg);
    uint64_t shown[HISTORY_SHOWN];
    int count = 0;
    uint64_t begin = run->history_end > HISTORY_CAP ? run->history_end - HISTORY_CAP : 0;
    for (uint64_t i = end; i-- > begin && count < HISTORY_SHOWN;) {
        const char *text = run->history[i % HISTORY_CAP];
        if (strstr(text, quoted) || moves_keys(text)) {
            shown[count++] = i;
        }
    }
    fprintf(stderr, "  before it, touching %s:\n", quoted);
    while (count-- > 0) {
        fprintf(stderr, "  %8llu  %.600s\n", (unsigned long long)shown[count],
                run->history[shown[count] % HISTORY_CAP]);
    }
    free(quoted);
    free(arg);
}

/* ---- comparing ---- */

/* Aggregates by their elements, everything else by its type byte: HELLO, TIME. */
static void put_shape(FILE *out, const struct reply *r) {
    fputc(r->type, out);
    for (size_t i = 0; i < r->count; i++) {
        fputc(i ? ' ' : '[', out);
        put_shape(out, r->elements[i]);
    }
    fputs(r->count ? "]" : "", out);
}

static bool same_shape(const struct reply *a, const struct reply *b) {
    char *text[2] = {NULL, NULL};
    size_t len;
    const struct reply *r[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        FILE *out = open_memstream(&text[i], &len);
        put_shape(out, r[i]);
        fclose(out);
    }
    bool same = strcmp(text[0], text[1]) == 0;
    free(text[0]);
    free(text[1]);
    return same;
}

static bool same_text(const struct reply *a, const struct reply *b) {
    char *ta = reply_text(a);
    char *tb = reply_text(b);
    bool same = strcmp(ta, tb) == 0;
    free(ta);
    free(tb);
    return same;
}

static bool is_number(const struct reply *r, double *out) {
    char *end;
    if (r->is_null || (r->type != '$' && r->type != ',') || r->len == 0) {
        return false;
    }
    *out = strtod(r->str, &end);
    return end == r->str + r->len;
}

/* Redis 7.0 writes doubles with 17 digits, 7.2 with as few as tell them apart: where texts differ,
 * both must be numbers of one value. */
static bool same_scores(const struct reply *a, const struct reply *b) {
    double x, y;
    if (reply_is_aggregate(a) && a->type == b->type && a->count == b->count && !a->is_null &&
        !b->is_null) {
        for (size_t i = 0; i < a->count; i++) {
            if (!same_scores(a->elements[i], b->elements[i])) {
                return false;
            }
        }
        return true;
    }
    return same_text(a, b) ||
           (a->type == b->type && is_number(a, &x) && is_number(b, &y) && x == y);
}

static bool near(const struct reply *a, const struct reply *b, int64_t tolerance) {
    if (a->type != ':' || b->type != ':' || a->integer < 0 || b->integer < 0) {
        return same_text(a, b);
    }
    int64_t apart = a->integer - b->integer;
    return apart <= tolerance && apart >= -tolerance;
}

/* Where one server keeps a short string as "raw" because it was edited in place, another may call
 * it by what its bytes are; and each server has its own limits for a packed hash and its own
 * ways of emptying a set. */
static bool same_encoding(const struct reply *a, const struct reply *b) {
    static const char *const groups[][3] = {{"embstr", "raw", "int"},
                                            {"listpack", "hashtable", "intset"},
                                            {"listpack", "skiplist", ""},
                                            {"listpack", "quicklist", ""}};
    if (a->type != '$' || b->type != '$' || a->is_null || b->is_null || same_text(a, b)) {
        return same_text(a, b);
    }
    if (strcmp(a->str, "int") == 0) {
        return false; /* an integer the oracle knows as one is one */
    }
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        bool in[2] = {false, false};
        for (size_t j = 0; j < 3; j++) {
            in[0] |= strcmp(a->str, groups[i][j]) == 0;
            in[1] |= strcmp(b->str, groups[i][j]) == 0;
        }
        if (in[0] && in[1]) {
            return true;
        }
    }
    return false;
}

static bool is_known(const struct command *cmd, const struct reply *a, const struct reply *b) {
    char *words = NULL;
    size_t len;
    FILE *out = open_memstream(&words, &len);
    for (int i = 0; i < cmd->argc; i++) {
        fprintf(out, "%s%s", i ? " " : "", cmd->argv[i]);
    }
    fclose(out);
    char *text[2] = {reply_text(a), reply_text(b)};
    bool found = false;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !found; i++) {
        const struct known *k = &known[i];
        found = strncasecmp(words, k->command, strlen(k->command)) == 0 &&
                (!k->oracle || strcmp(k->oracle, text[0]) == 0) &&
                (!k->ours || strcmp(k->ours, text[1]) == 0);
    }
    free(words);
    free(text[0]);
    free(text[1]);
    return found;
}

static bool same_reply(const struct command *cmd, struct reply *a, struct reply *b) {
    if (!a || !b) {
        return false;
    }
    if (a->type == '-' || b->type == '-' || a->is_null || b->is_null) {
        return same_text(a, b);
    }
    switch (cmd->compare) {
    case COMPARE_SORTED:
        reply_sort(a, 1);
        reply_sort(b, 1);
        return same_text(a, b);
    case COMPARE_PAIRS:
        reply_sort(a, 2);
        reply_sort(b, 2);
        return same_text(a, b);
    case COMPARE_SCORES:
        return same_scores(a, b);
    case COMPARE_TYPE:
    case COMPARE_RANDKEY:
        return a->type == b->type;
    case COMPARE_NEAR_S:
        return near(a, b, 2);
    case COMPARE_NEAR_MS:
        return near(a, b, 2000);
    case COMPARE_SHAPE:
    case COMPARE_RANDOM:
    case COMPARE_POPPED:
        return same_shape(a, b);
    case COMPARE_SCAN:
        return a->type == b->type && a->count == b->count && a->count == 2 &&
               a->elements[0]->type == b->elements[0]->type &&
               a->elements[1]->type == b->elements[1]->type;
    case COMPARE_ENCODING:
        return same_encoding(a, b);
    default:
        return same_text(a, b);
    }
}

/* ---- whole iterations and random picks ---- */

static struct reply *take_element(struct reply *r, size_t i) {
    struct reply *e = r->elements[i];
    r->elements[i] = NULL;
    return e;
}

/* Collect a whole SCAN, HSCAN, SSCAN or ZSCAN; elements seen twice count once. NULL on an error. */
static struct reply *scan_all(struct client *c, const struct command *cmd, int cursor_arg) {
    struct reply *all = calloc(1, sizeof(*all));
    all->type = '*';
    size_t width = cursor_arg == 2 && cmd->argv[0][0] != 'S' ? 2 : 1;
    struct command step = *cmd;
    char cursor[32] = "0";
    for (int rounds = 0; rounds < 100000; rounds++) {
        step.argv[cursor_arg] = cursor;
        step.lens[cursor_arg] = strlen(cursor);
        struct reply *r = client_cmd_argv(c, step.argc, step.argv, step.lens);
        if (!r || r->type != '*' || r->count != 2) {
            reply_free(r);
            reply_free(all);
            return NULL;
        }
        struct reply *list = r->elements[1];
        all->elements =
            realloc(all->elements, (all->count + list->count + 1) * sizeof(struct reply *));
        for (size_t i = 0; i < list->count; i++) {
            all->elements[all->count++] = take_element(list, i);
        }
        list->count = 0;
        snprintf(cursor, sizeof(cursor), "%s", r->elements[0]->str);
        reply_free(r);
        if (strcmp(cursor, "0") == 0) {
            break;
        }
    }
    reply_sort(all, width);
    size_t kept = 0;
    for (size_t i = 0; i + width <= all->count; i += width) {
        bool again = kept > 0 && same_text(all->elements[kept - width], all->elements[i]);
        for (size_t j = 0; j < width; j++) {
            if (again) {
                reply_free(all->elements[i + j]);
            } else {
                all->elements[kept + j] = all->elements[i + j];
            }
        }
        kept += again ? 0 : width;
    }
    all->count = kept;
    return all;
}

/* HRANDFIELD, SRANDMEMBER, ZRANDMEMBER: every field and value (member and score) must be in the
 * oracle's hash (set); none twice when the count is positive. */
static bool random_fields_are_members(struct run *run, const struct command *cmd,
                                      const struct reply *r) {
    if (r->is_null || r->type == '-' || (reply_is_aggregate(r) && r->count == 0)) {
        return true;
    }
    char kind = cmd->argv[0][0] & ~0x20;
    const char *getter = kind == 'Z' ? "ZSCORE" : kind == 'S' ? "SISMEMBER" : "HGET";
    bool with_values = cmd->argc == 4;
    bool distinct = cmd->argc >= 3 && cmd->argv[2][0] != '-';
    const struct reply *flat[1] = {r};
    const struct reply *const *items =
        r->type == '$' ? flat : (const struct reply *const *)r->elements;
    size_t count = r->type == '$' ? 1 : r->count;
    bool nested = count > 0 && items[0]->type == '*';
    size_t step = with_values && !nested ? 2 : 1;
    bool ok = true;
    for (size_t i = 0; i + step <= count && ok; i += step) {
        const struct reply *field = nested ? items[i]->elements[0] : items[i];
        const struct reply *value = !with_values ? NULL
                                    : nested     ? items[i]->elements[1]
                                                 : items[i + 1];
        const char *argv[3] = {getter, cmd->argv[1], field->str};
        size_t lens[3] = {strlen(getter), cmd->lens[1], field->len};
        struct reply *expected = client_cmd_argv(run->clients[ORACLE], 3, argv, lens);
        ok = expected && !reply_is_error(expected) && !expected->is_null &&
             (expected->type != ':' || expected->integer == 1) &&
             (!value || same_scores(value, expected));
        reply_free(expected);
        for (size_t j = 0; distinct && j < i && ok; j += step) {
            const struct reply *other = nested ? items[j]->elements[0] : items[j];
            ok = !same_text(field, other);
        }
    }
    return ok;
}

/* The members of a set as they are on one side, with those that were popped there. */
static struct reply *with_popped(struct client *c, const struct command *cmd,
                                 const struct reply *popped, struct reply **members) {
    const char *argv[2] = {"SMEMBERS", cmd->argv[1]};
    size_t lens[2] = {8, cmd->lens[1]};
    *members = client_cmd_argv(c, 2, argv, lens);
    struct reply *all = client_cmd_argv(c, 2, argv, lens);
    size_t count = popped->type == '$' ? 1 : popped->count;
    all->elements = realloc(all->elements, (all->count + count + 1) * sizeof(struct reply *));
    for (size_t i = 0; i < count; i++) {
        const struct reply *from = popped->type == '$' ? popped : popped->elements[i];
        struct reply *copy = calloc(1, sizeof(*copy));
        *copy = (struct reply){.type = '$', .len = from->len, .str = malloc(from->len + 1)};
        memcpy(copy->str, from->str, from->len + 1);
        all->elements[all->count++] = copy;
    }
    reply_sort(all, 1);
    return all;
}

/* Run a command on each of the members, of those that `unless` has not when it is given. */
static void each_member(struct client *c, const char *name, const struct command *cmd,
                        const struct reply *members, struct client *unless) {
    for (size_t i = 0; i < members->count; i++) {
        const char *argv[3] = {"SISMEMBER", cmd->argv[1], members->elements[i]->str};
        size_t lens[3] = {9, cmd->lens[1], members->elements[i]->len};
        struct reply *there = unless ? client_cmd_argv(unless, 3, argv, lens) : NULL;
        if (!there || there->integer == 0) {
            argv[0] = name;
            lens[0] = strlen(name);
            reply_free(client_cmd_argv(c, 3, argv, lens));
        }
        reply_free(there);
    }
}

/* SPOP: what came out and what is left are the same set on both sides; then the oracle's is made
 * ours, without deleting it in between. */
static bool popped_members_were_there(struct run *run, const struct command *cmd,
                                      const struct reply *a, const struct reply *b) {
    if (b->is_null || b->type == '-' || (reply_is_aggregate(b) && b->count == 0)) {
        return true;
    }
    struct reply *left[2] = {NULL, NULL};
    struct reply *all[2] = {with_popped(run->clients[ORACLE], cmd, a, &left[0]),
                            with_popped(run->clients[OURS], cmd, b, &left[1])};
    bool ok = left[0]->count == left[1]->count && same_text(all[0], all[1]);
    each_member(run->clients[ORACLE], "SADD", cmd, left[1], NULL);
    each_member(run->clients[ORACLE], "SREM", cmd, left[0], run->clients[OURS]);
    for (int i = 0; i < 2; i++) {
        reply_free(left[i]);
        reply_free(all[i]);
    }
    return ok;
}

static bool random_key_exists(struct run *run, const struct reply *r) {
    if (r->type != '$' || r->is_null) {
        return true;
    }
    const char *argv[2] = {"EXISTS", r->str};
    size_t lens[2] = {6, r->len};
    struct reply *n = client_cmd_argv(run->clients[ORACLE], 2, argv, lens);
    bool ok = n && n->type == ':' && n->integer == 1;
    reply_free(n);
    return ok;
}

/* ---- running ---- */

static void reconnect(struct run *run) {
    for (int i = 0; i < 2; i++) {
        client_close(run->clients[i]);
        run->clients[i] = server_connect(servers[i]);
    }
}

static bool already_reported(struct run *run, const char *name) {
    for (int i = 0; i < run->reported_count; i++) {
        if (strcasecmp(run->reported[i], name) == 0) {
            return true;
        }
    }
    if (run->reported_count < 64) {
        run->reported[run->reported_count++] = strdup(name);
    }
    return false;
}

static void show_mismatch(struct run *run, const struct command *cmd, uint64_t index,
                          const struct reply *a, const struct reply *b) {
    run->mismatch_count++;
    if (already_reported(run, cmd->argv[0])) {
        return;
    }
    char *text = command_text(cmd);
    char *oracle = reply_text(a);
    char *ours = reply_text(b);
    fprintf(stderr,
            "MISMATCH seed %llu protocol %d command %llu\n  %.2000s\n  oracle: %.2000s\n"
            "  ours:   %.2000s\n",
            (unsigned long long)options.seed, run->protocol, (unsigned long long)index, text,
            oracle, ours);
    show_history(run, cmd, index);
    free(text);
    free(oracle);
    free(ours);
}

/* Both sides empty again, in the same state. */
static void resynchronise(struct run *run) {
    reconnect(run);
    for (int i = 0; i < 2; i++) {
        reply_free(client_cmd(run->clients[i], "FLUSHALL", NULL));
        if (run->protocol == 3) {
            reply_free(client_cmd(run->clients[i], "HELLO", "3", NULL));
        }
    }
}

/* Now and then our server gets the batch in small pieces, so that parsing resumes mid-command. */
static void send_batch(struct run *run, int side) {
    struct client *c = run->clients[side];
    for (int i = 0; i < run->batch_count; i++) {
        client_append_argv(c, run->batch[i].argc, run->batch[i].argv, run->batch[i].lens);
    }
    bool in_pieces = side == OURS && run->done % 5 == 0 && c->out_len < 65536;
    (void)client_flush_pieces(c, in_pieces ? 1 + run->done % 97 : SIZE_MAX);
}

static bool check_last(struct run *run, const struct command *cmd, const struct reply *oracle,
                       const struct reply *ours) {
    switch (cmd->compare) {
    case COMPARE_POPPED:
        return popped_members_were_there(run, cmd, oracle, ours);
    case COMPARE_RANDOM:
        return random_fields_are_members(run, cmd, ours);
    case COMPARE_RANDKEY:
        return random_key_exists(run, ours);
    case COMPARE_CLOSES: {
        bool closed = client_wait_closed(run->clients[OURS], 5000);
        reconnect(run);
        return closed;
    }
    default:
        return true;
    }
}

/* Take the replies from `i` on unseen, so that nothing of the batch runs after the flush. */
static void drop_replies(struct run *run, int i) {
    for (; i < run->batch_count; i++) {
        reply_free(client_read(run->clients[ORACLE]));
        reply_free(client_read(run->clients[OURS]));
    }
}

/* Read and compare the batch's replies; false at the first difference. */
static bool compare_batch(struct run *run) {
    for (int i = 0; i < run->batch_count; i++) {
        const struct command *cmd = &run->batch[i];
        struct reply *a = client_read(run->clients[ORACLE]);
        struct reply *b = client_read(run->clients[OURS]);
        bool same = same_reply(cmd, a, b) || (a && b && is_known(cmd, a, b));
        run->error_count += reply_is_error(a);
        if (same && i == run->batch_count - 1) {
            same = check_last(run, cmd, a, b);
        }
        if (!same) {
            show_mismatch(run, cmd, run->done + (uint64_t)i, a, b);
        }
        reply_free(a);
        reply_free(b);
        if (!same) {
            drop_replies(run, i + 1);
            return false;
        }
    }
    return true;
}

static bool compare_scan(struct run *run) {
    struct command cmd = {.argc = 2, .argv = {"SCAN", "0", "COUNT", "7"}, .lens = {4, 1, 5, 1}};
    int cursor_arg = 1;
    char key[16];
    if (gen_below(run->gen, 2) == 0) {
        static const char *const names[] = {"HSCAN", "SSCAN", "ZSCAN"};
        uint64_t kind = gen_below(run->gen, 3);
        snprintf(key, sizeof(key), "%c%d", "htz"[kind], (int)gen_below(run->gen, 8));
        cmd = (struct command){.argc = 5,
                               .argv = {names[kind], key, "0", "COUNT", "9"},
                               .lens = {5, strlen(key), 1, 5, 1}};
        cursor_arg = 2;
    } else if (gen_below(run->gen, 2) == 0) {
        cmd.argc = 4;
    }
    struct reply *a = scan_all(run->clients[ORACLE], &cmd, cursor_arg);
    struct reply *b = scan_all(run->clients[OURS], &cmd, cursor_arg);
    bool same = (!a && !b) || (a && b && same_scores(a, b));
    if (!same) {
        show_mismatch(run, &cmd, run->done, a, b);
    }
    reply_free(a);
    reply_free(b);
    return same;
}

static bool run_batch(struct run *run, uint64_t left) {
    uint64_t size = gen_below(run->gen, 4) == 0 ? 1 + gen_below(run->gen, 4)
                                                : 1 + gen_below(run->gen, BATCH_MAX);
    gen_recycle(run->gen);
    run->batch_count = 0;
    while (run->batch_count < (int)(size < left ? size : left)) {
        struct command *cmd = &run->batch[run->batch_count++];
        gen_next(run->gen, cmd);
        remember(run, cmd);
        if (cmd->ends_batch) {
            break;
        }
    }
    send_batch(run, ORACLE);
    send_batch(run, OURS);
    bool same = compare_batch(run);
    run->done += (uint64_t)run->batch_count;
    if (same && gen_below(run->gen, 20) == 0) {
        same = compare_scan(run);
    }
    if (!same) {
        resynchronise(run);
    }
    return same;
}

/* ---- the whole data set ---- */

static bool compare_one(struct run *run, enum compare mode, int argc, const char *const *argv,
                        const size_t *lens) {
    struct command cmd = {.argc = argc, .compare = mode};
    memcpy(cmd.argv, argv, (size_t)argc * sizeof(*argv));
    memcpy(cmd.lens, lens, (size_t)argc * sizeof(*lens));
    struct reply *a = client_cmd_argv(run->clients[ORACLE], argc, argv, lens);
    struct reply *b = client_cmd_argv(run->clients[OURS], argc, argv, lens);
    bool same = same_reply(&cmd, a, b);
    if (!same) {
        show_mismatch(run, &cmd, run->history_end, a, b);
    }
    reply_free(a);
    reply_free(b);
    return same;
}

static void compare_key(struct run *run, const struct reply *key) {
    const char *k = key->str;
    size_t n = key->len;
    compare_one(run, COMPARE_EXACT, 2, (const char *[]){"TYPE", k}, (size_t[]){4, n});
    compare_one(run, COMPARE_ENCODING, 3, (const char *[]){"OBJECT", "ENCODING", k},
                (size_t[]){6, 8, n});
    compare_one(run, COMPARE_NEAR_MS, 2, (const char *[]){"PEXPIRETIME", k}, (size_t[]){11, n});
    compare_one(run, COMPARE_EXACT, 2, (const char *[]){"GET", k}, (size_t[]){3, n});
    compare_one(run, COMPARE_PAIRS, 2, (const char *[]){"HGETALL", k}, (size_t[]){7, n});
    compare_one(run, COMPARE_EXACT, 2, (const char *[]){"HLEN", k}, (size_t[]){4, n});
    compare_one(run, COMPARE_SORTED, 2, (const char *[]){"SMEMBERS", k}, (size_t[]){8, n});
    compare_one(run, COMPARE_EXACT, 2, (const char *[]){"SCARD", k}, (size_t[]){5, n});
    compare_one(run, COMPARE_SCORES, 5, (const char *[]){"ZRANGE", k, "0", "-1", "WITHSCORES"},
                (size_t[]){6, n, 1, 2, 10});
    compare_one(run, COMPARE_EXACT, 4, (const char *[]){"LRANGE", k, "0", "-1"},
                (size_t[]){6, n, 1, 2});
    compare_one(run, COMPARE_EXACT, 2, (const char *[]){"ZCARD", k}, (size_t[]){5, n});
}

static uint64_t compare_everything(struct run *run) {
    uint64_t keys = 0;
    reconnect(run);
    for (int db = 0; db < DB_COUNT; db++) {
        char number[16];
        snprintf(number, sizeof(number), "%d", db);
        size_t number_len = strlen(number);
        compare_one(run, COMPARE_EXACT, 2, (const char *[]){"SELECT", number},
                    (size_t[]){6, number_len});
        compare_one(run, COMPARE_EXACT, 1, (const char *[]){"DBSIZE"}, (size_t[]){6});
        struct reply *list = client_cmd(run->clients[ORACLE], "KEYS", "*", NULL);
        for (size_t i = 0; list && i < list->count; i++) {
            compare_key(run, list->elements[i]);
            keys++;
        }
        reply_free(list);
    }
    return keys;
}

/* ---- tests ---- */

static void run_protocol(int protocol) {
    struct run *run = calloc(1, sizeof(*run));
    run->protocol = protocol;
    run->gen = gen_create(options.seed + (uint64_t)protocol, protocol);
    reconnect(run);
    for (int i = 0; i < 2; i++) {
        reply_free(client_cmd(run->clients[i], "FLUSHALL", NULL));
    }
    while (run->done < options.commands && run->mismatch_count < 50 &&
           run->reported_count < options.mismatches_max) {
        (void)run_batch(run, options.commands - run->done);
    }
    uint64_t keys = compare_everything(run);
    print_message("seed %llu, RESP%d: %llu commands (%llu errors), %llu keys at the end, "
                  "%d mismatches\n",
                  (unsigned long long)options.seed, protocol, (unsigned long long)run->done,
                  (unsigned long long)run->error_count, (unsigned long long)keys,
                  run->mismatch_count);
    int mismatch_count = run->mismatch_count;
    for (int i = 0; i < 2; i++) {
        client_close(run->clients[i]);
    }
    for (int i = 0; i < HISTORY_CAP; i++) {
        free(run->history[i]);
    }
    for (int i = 0; i < run->reported_count; i++) {
        free(run->reported[i]);
    }
    gen_destroy(run->gen);
    free(run);
    assert_int_equal(mismatch_count, 0);
}

static void replies_equal_the_oracles_in_resp2(void **state) {
    (void)state;
    if (options.protocol == 3) {
        skip();
    }
    run_protocol(2);
}

static void replies_equal_the_oracles_in_resp3(void **state) {
    (void)state;
    if (options.protocol == 2) {
        skip();
    }
    run_protocol(3);
}

/* Short expiries, each command once they are over: read lazily, counted, scanned, overwritten. */
static void keys_expire_as_the_oracles_do(void **state) {
    (void)state;
    static const char *const setup[][6] = {
        {"FLUSHALL"},
        {"SET", "past", "v", "EXAT", "1"},
        {"GET", "past"},
        {"SET", "past", "v", "PXAT", "1000"},
        {"SET", "past", "w", "NX"},
        {"SET", "past", "w", "XX", "GET"},
        {"SET", "px", "v", "PX", "60"},
        {"PSETEX", "psetex", "60", "v"},
        {"SET", "plain", "v"},
        {"HSET", "hash", "f", "v"},
        {"PEXPIRE", "hash", "60"},
        {"SET", "number", "41", "PX", "60"},
        {"SET", "renamed", "v", "PX", "60"},
        {"RENAME", "renamed", "target"},
        {"SET", "copied", "v", "PX", "60"},
        {"COPY", "copied", "copy"},
        {"SET", "kept", "v", "PX", "60"},
        {"SET", "kept", "w", "KEEPTTL"},
        {"SET", "persisted", "v", "PX", "60"},
        {"PERSIST", "persisted"},
        {"SET", "overwritten", "v", "PX", "60"},
        {"SET", "overwritten", "w"},
        {"SET", "moved", "v", "PX", "60"},
        {"MOVE", "moved", "1"},
    };
    static const char *const after[][6] = {
        {"GET", "px"},        {"TTL", "psetex"},          {"HGETALL", "hash"},
        {"INCR", "number"},   {"TTL", "number"},          {"GET", "target"},
        {"EXISTS", "copy"},   {"GETSET", "kept", "new"},  {"TTL", "kept"},
        {"GET", "persisted"}, {"GET", "overwritten"},     {"GET", "plain"},
        {"SELECT", "1"},      {"GET", "moved"},           {"SELECT", "0"},
        {"TYPE", "hash"},     {"HSET", "hash", "g", "w"}, {"HGETALL", "hash"},
        {"COPY", "px", "x"},  {"RENAME", "copied", "x"},  {"DBSIZE"},
    };
    struct run *run = calloc(1, sizeof(*run));
    reconnect(run);
    bool same = true;
    for (int phase = 0; phase < 2; phase++) {
        const char *const(*list)[6] = phase ? after : setup;
        size_t count = phase ? sizeof(after) / sizeof(after[0]) : sizeof(setup) / sizeof(setup[0]);
        for (size_t i = 0; i < count; i++) {
            size_t lens[6];
            int argc = 0;
            while (argc < 6 && list[i][argc]) {
                lens[argc] = strlen(list[i][argc]);
                argc++;
            }
            same &= compare_one(run, COMPARE_EXACT, argc, list[i], lens);
        }
        usleep(150 * 1000);
    }
    for (int i = 0; i < 2; i++) {
        client_close(run->clients[i]);
    }
    for (int i = 0; i < run->reported_count; i++) {
        free(run->reported[i]);
    }
    free(run);
    assert_true(same);
}

static int start_both(void **state) {
    (void)state;
    servers[ORACLE] = server_start(SERVER_ORACLE, NULL);
    servers[OURS] = server_start(SERVER_GOBLIN, NULL);
    return 0;
}

static int stop_both(void **state) {
    (void)state;
    server_stop(servers[ORACLE]);
    server_stop(servers[OURS]);
    return 0;
}

static void parse_options(int argc, char **argv) {
    options.seed = (uint64_t)time(NULL);
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t n = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seed") == 0) {
            options.seed = n;
        } else if (strcmp(argv[i], "--commands") == 0) {
            options.commands = n;
        } else if (strcmp(argv[i], "--protocol") == 0) {
            options.protocol = (int)n;
        } else if (strcmp(argv[i], "--mismatches") == 0) {
            options.mismatches_max = (int)n;
        } else {
            fprintf(stderr, "unknown option %s\n", argv[i]);
            exit(2);
        }
    }
}

int main(int argc, char **argv) {
    parse_options(argc, argv);
    if (!server_available(SERVER_ORACLE)) {
        printf("SKIP: no redis-server on this machine (apt-get install redis-server)\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_equal_the_oracles_in_resp2),
        cmocka_unit_test(replies_equal_the_oracles_in_resp3),
        cmocka_unit_test(keys_expire_as_the_oracles_do),
    };
    return cmocka_run_group_tests(tests, start_both, stop_both);
}
