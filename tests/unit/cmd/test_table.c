/* SPDX-License-Identifier: BSD-3-Clause */
/* The command table, what follows from it, the COMMAND family and shared argument decoding.
 * GC_UPDATE_DOCS=1 in the environment rewrites docs/commands.md instead of comparing it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cmd/args.h"
#include "cmd/call.h"
#include "cmd/table.h"

enum { WORDS_MAX = 40 };

/* A call as dispatch would make it, over words in one string: "command|getkeys" runs the row, the
 * words are its argv. */
struct fixture {
    struct buf out;
    struct bytes argv[WORDS_MAX];
    struct call call;
};

static void fixture_init(struct fixture *f, int proto, const char *line) {
    *f = (struct fixture){.call = {.argv = f->argv, .reply = {.out = &f->out, .proto = proto}}};
    while (*line != '\0') {
        size_t len = strcspn(line, " ");
        f->argv[f->call.argc++] = BYTES(line, len);
        line += len + strspn(line + len, " ");
    }
    f->call.row = table_find(f->argv[0]);
    if (f->call.row != NULL && f->call.argc > 1 && command_is_container(f->call.row)) {
        f->call.row = table_find_sub(f->call.row, f->argv[1]);
    }
}

static const char *text_of(struct buf *b) {
    buf_append_char(b, '\0');
    assert_false(b->failed);
    return b->ptr;
}

/* The reply to a line, as it goes over the wire. */
static void check_reply(int proto, const char *line, const char *expected) {
    struct fixture f;
    fixture_init(&f, proto, line);
    assert_non_null(f.call.row);
    f.call.row->handler(&f.call);
    assert_string_equal(text_of(&f.out), expected);
    buf_deinit(&f.out);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void rows_are_complete(void **state) {
    (void)state;
    for (size_t i = 0; i < table_count(); i++) {
        const struct command *row = table_at(i);
        assert_int_equal(row->id, i);
        assert_true(row->cost != NULL && row->cost[0] != '\0');
        assert_true(row->summary != NULL && row->summary[strlen(row->summary) - 1] == '.');
        assert_true(row->since != NULL);
        assert_true(row->handler != NULL || row->sub_count > 0);
        assert_true(row->arity != 0);
        assert_int_equal(row->deprecated_since != NULL, row->replaced_by != NULL);
        assert_false(row->flags & CMD_WRITE && row->flags & CMD_READONLY);
        for (const char *c = row->name; *c != '\0'; c++) {
            assert_true(islower((unsigned char)*c) || strchr("|-_", *c) != NULL);
        }
    }
}

static void rows_are_sorted_and_unique(void **state) {
    (void)state;
    for (size_t i = 1; i < table_count(); i++) {
        const struct command *a = table_at(i - 1), *b = table_at(i);
        assert_true(a->group < b->group || (a->group == b->group && strcmp(a->name, b->name) < 0));
    }
}

/* Every key a spec points at is there in the shortest line the arity allows. */
static void key_positions_agree_with_arity(void **state) {
    (void)state;
    const unsigned modes = KEY_RO | KEY_RW | KEY_OW | KEY_RM;
    for (size_t i = 0; i < table_count(); i++) {
        const struct command *row = table_at(i);
        int least = abs(row->arity);
        bool reads_only = true;
        for (size_t k = 0; k < COMMAND_KEY_SPECS && row->keys[k].first != 0; k++) {
            const struct key_spec *spec = &row->keys[k];
            assert_true(spec->first > 0 && spec->first < least && spec->step > 0);
            bool counted = key_spec_is_counted(spec);
            assert_true(spec->last < least && (spec->last < 0 || spec->last >= spec->first));
            assert_true(!counted || (spec->first > 1 && (row->flags & CMD_MOVABLEKEYS)));
            assert_int_equal(__builtin_popcount(spec->flags & modes), 1);
            assert_int_equal((spec->flags & KEY_VARIABLE) != 0, row->call_flags != NULL);
            reads_only &= (spec->flags & KEY_RO) != 0;
        }
        if (row->keys[0].first != 0) {
            assert_int_equal((row->flags & CMD_WRITE) == 0, reads_only);
        }
        const int planned[] = {row->plan.member, row->plan.score};
        for (size_t k = 0; k < ARRAY_LEN(planned); k++) {
            int at = planned[k] < 0 ? planned[k] + least : planned[k];
            assert_true(planned[k] == 0 || row->keys[0].first > 0);
            assert_true(planned[k] == 0 || (at > row->keys[0].first && at < least));
        }
        assert_true(!row->plan.key_only || (planned[0] == 0 && planned[1] == 0));
    }
}

static void containers_hold_their_subcommands(void **state) {
    (void)state;
    size_t seen = 0;
    for (size_t i = 0; i < table_count(); i++) {
        const struct command *row = table_at(i);
        const char *bar = strchr(row->name, '|');
        assert_int_equal(bar != NULL, row->container != NULL);
        if (bar == NULL) {
            continue;
        }
        const struct command *box = row->container;
        assert_true(i >= box->sub_first && i < (size_t)box->sub_first + box->sub_count);
        assert_int_equal(strncmp(row->name, box->name, strlen(box->name)), 0);
        assert_int_equal(row->sub_count, 0);
        assert_true(abs(row->arity) >= 2);
        seen++;
    }
    assert_true(seen > 20);
}

/* ---- lookup --------------------------------------------------------------------------------- */

static void every_name_is_found_in_any_case(void **state) {
    (void)state;
    for (size_t i = 0; i < table_count(); i++) {
        const struct command *row = table_at(i);
        char upper[64], mixed[64];
        size_t len = strlen(row->name);
        for (size_t j = 0; j < len; j++) {
            upper[j] = (char)toupper((unsigned char)row->name[j]);
            mixed[j] = j % 2 == 0 ? upper[j] : row->name[j];
        }
        assert_ptr_equal(table_find_full(bytes_from_cstr(row->name)), row);
        assert_ptr_equal(table_find_full(BYTES(upper, len)), row);
        assert_ptr_equal(table_find_full(BYTES(mixed, len)), row);
        if (row->container == NULL) {
            assert_ptr_equal(table_find(BYTES(upper, len)), row);
        } else {
            size_t head = strlen(row->container->name) + 1;
            assert_null(table_find(BYTES(upper, len)));
            assert_ptr_equal(table_find_sub(row->container, BYTES(mixed + head, len - head)), row);
        }
    }
}

static void what_is_no_command_is_not_found(void **state) {
    (void)state;
    static const char *const names[] = {
        "",
        "g",
        "ge",
        "gett",
        "kill",
        "client|",
        "|kill",
        "client|nope",
        "\x07et",
        "get\r",
        "g\xc5t",
        "{get}",
        "[et",
        "geT\x01",
        "client|kill|kill",
        "hincrbyfloatx",
        "hincrbxfloat",
        "hincrbyfloat\n",
        "a-name-far-longer-than-sixteen-bytes",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_null(table_find_full(bytes_from_cstr(names[i])));
    }
    assert_null(table_find(BYTES(NULL, 0)));
    assert_null(table_find(BYTES("get\0", 4)));
    assert_null(table_find(BYTES("\0\0\0", 3)));
    assert_null(table_find_sub(table_find(BYTES_LIT("get")), BYTES_LIT("kill")));
    /* One byte off anywhere, every byte value: equal to the name but for ASCII case, or nothing. */
    for (size_t i = 0; i < table_count(); i++) {
        const struct command *row = table_at(i);
        char name[64];
        size_t len = strlen(row->name);
        for (size_t j = 0; j < len && row->container == NULL; j++) {
            memcpy(name, row->name, len);
            for (int c = 0; c < 256; c++) {
                name[j] = (char)c;
                const struct command *got = table_find(BYTES(name, len));
                assert_true(got == NULL || bytes_is(BYTES(name, len), got->name));
            }
        }
    }
}

static void lookup_is_fast(void **state) {
    (void)state;
    enum { ROUNDS = 2000 };
    size_t found = 0;
    int64_t start = clock_monotonic_ns();
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < table_count(); i++) {
            found += table_find(bytes_from_cstr(table_at(i)->name)) != NULL;
        }
    }
    double ns = (double)(clock_monotonic_ns() - start) / ROUNDS / (double)table_count();
    print_message("lookup: %.1f ns a name\n", ns);
    assert_true(found > ROUNDS);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void command_lines_show_their_keys(void **state) {
    (void)state;
    check_reply(2, "command getkeys set a b", "*1\r\n$1\r\na\r\n");
    check_reply(2, "command getkeys mset a 1 b 2", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    check_reply(2, "command getkeys mset a 1 b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    check_reply(2, "command getkeys del a b c", "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
    check_reply(2, "command getkeys copy a b replace", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    check_reply(2, "command getkeys object encoding k", "*1\r\n$1\r\nk\r\n");
    check_reply(2, "command getkeys memory usage k samples 1", "*1\r\n$1\r\nk\r\n");
    check_reply(2, "command getkeys lcs a b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    check_reply(2, "command getkeys object help", "-ERR The command has no key arguments\r\n");
    check_reply(2, "command getkeys object nope k", "-ERR Invalid command specified\r\n");
    check_reply(2, "command getkeys nope x", "-ERR Invalid command specified\r\n");
    check_reply(2, "command getkeys get a b",
                "-ERR Invalid number of arguments specified for command\r\n");
    check_reply(2, "command getkeys client kill", "-ERR The command has no key arguments\r\n");
}

/* The line itself says how many keys it has; a line that lies has none at all. */
static void counted_keys_are_counted(void **state) {
    (void)state;
    static const char lie[] = "-ERR Invalid arguments specified for command\r\n";
    check_reply(2, "command getkeys zunion 2 a b weights 1 2", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    check_reply(2, "command getkeys zunion 1 a b", "*1\r\n$1\r\na\r\n");
    check_reply(2, "command getkeys zinterstore d 1 a", "*2\r\n$1\r\nd\r\n$1\r\na\r\n");
    check_reply(2, "command getkeys bzmpop 0 2 a b min", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    check_reply(2, "command getkeys bzpopmin a b 0", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    check_reply(2, "command getkeys zunion 3 a b", lie);
    check_reply(2, "command getkeys zunion 0 a b", lie);
    check_reply(2, "command getkeys zunion -1 a b", lie);
    check_reply(2, "command getkeys zunion x a b", lie);
    check_reply(2, "command getkeys zunion 99999999999999999999999999999999999999999999999 a b",
                lie);
    check_reply(2, "command getkeys zdiffstore d 2 a", lie);
}

static void key_flags_follow_the_call(void **state) {
    (void)state;
    check_reply(2, "command getkeysandflags set a b",
                "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+OW\r\n+update\r\n");
    check_reply(2, "command getkeysandflags set get get",
                "*1\r\n*2\r\n$3\r\nget\r\n*2\r\n+OW\r\n+update\r\n");
    check_reply(3, "command getkeysandflags set a b GET",
                "*1\r\n*2\r\n$1\r\na\r\n~3\r\n+RW\r\n+access\r\n+update\r\n");
    check_reply(2, "command getkeysandflags rename a b",
                "*2\r\n*2\r\n$1\r\na\r\n*3\r\n+RW\r\n+access\r\n+delete\r\n"
                "*2\r\n$1\r\nb\r\n*2\r\n+OW\r\n+update\r\n");
}

/* ---- COMMAND -------------------------------------------------------------------------------- */

static void info_has_redis_shape(void **state) {
    (void)state;
    check_reply(2, "command info nope get CLIENT|KILL",
                "*3\r\n$-1\r\n"
                "*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
                "*3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n"
                "*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n"
                "$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n"
                "*2\r\n$5\r\nindex\r\n:1\r\n"
                "$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n"
                "*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n"
                "*10\r\n$11\r\nclient|kill\r\n:-3\r\n*4\r\n+admin\r\n+noscript\r\n+loading\r\n"
                "+stale\r\n:0\r\n:0\r\n:0\r\n*4\r\n+@admin\r\n+@slow\r\n+@dangerous\r\n"
                "+@connection\r\n*0\r\n*0\r\n*0\r\n");
    check_reply(3, "command info hget nope",
                "*2\r\n*10\r\n$4\r\nhget\r\n:3\r\n~2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
                "~3\r\n+@read\r\n+@hash\r\n+@fast\r\n~0\r\n"
                "~1\r\n%3\r\n$5\r\nflags\r\n~2\r\n+RO\r\n+access\r\n"
                "$12\r\nbegin_search\r\n%2\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n"
                "%1\r\n$5\r\nindex\r\n:1\r\n"
                "$9\r\nfind_keys\r\n%2\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n"
                "%3\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n~0\r\n"
                "_\r\n");
}

static void info_tells_of_counted_keys(void **state) {
    (void)state;
    check_reply(3, "command info zintercard",
                "*1\r\n*10\r\n$10\r\nzintercard\r\n:-3\r\n~2\r\n+readonly\r\n+movablekeys\r\n"
                ":0\r\n:0\r\n:0\r\n~3\r\n+@read\r\n+@sortedset\r\n+@slow\r\n~0\r\n"
                "~1\r\n%3\r\n$5\r\nflags\r\n~2\r\n+RO\r\n+access\r\n"
                "$12\r\nbegin_search\r\n%2\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n"
                "%1\r\n$5\r\nindex\r\n:1\r\n"
                "$9\r\nfind_keys\r\n%2\r\n$4\r\ntype\r\n$6\r\nkeynum\r\n$4\r\nspec\r\n"
                "%3\r\n$9\r\nkeynumidx\r\n:0\r\n$8\r\nfirstkey\r\n:1\r\n"
                "$7\r\nkeystep\r\n:1\r\n~0\r\n");
}

static void list_filters(void **state) {
    (void)state;
    check_reply(2, "command list filterby pattern hsetn*", "*1\r\n$6\r\nhsetnx\r\n");
    check_reply(2, "command list filterby pattern MEMORY|P*", "*1\r\n$12\r\nmemory|purge\r\n");
    check_reply(3, "command list FILTERBY module x", "*0\r\n");
    check_reply(2, "command list filterby aclcat nope", "*0\r\n");
    check_reply(2, "command list filterby aclcat geo", "*0\r\n");
    check_reply(2, "command list filterby aclcat hash x", "-ERR syntax error\r\n");
    check_reply(2, "command list filterby x y", "-ERR syntax error\r\n");
    check_reply(2, "command list x", "-ERR syntax error\r\n");
}

static void docs_skip_unknown_names(void **state) {
    (void)state;
    check_reply(3, "command docs nope", "%0\r\n");
    check_reply(2, "command docs nope", "*0\r\n");
    check_reply(3, "command docs CLIENT|ID",
                "%1\r\n$9\r\nclient|id\r\n%4\r\n$7\r\nsummary\r\n$34\r\n"
                "Returns the id of this connection.\r\n$5\r\nsince\r\n$5\r\n5.0.0\r\n"
                "$5\r\ngroup\r\n$10\r\nconnection\r\n$10\r\ncomplexity\r\n$4\r\nO(1)\r\n");
}

/* Walk one RESP value; NULL when it is not well formed. */
static const char *skip_value(const char *p, const char *end) {
    const char *line_end = memchr(p, '\n', (size_t)(end - p));
    if (line_end == NULL) {
        return NULL;
    }
    long n = strtol(p + 1, NULL, 10);
    const char *q = line_end + 1;
    switch (*p) {
    case '+':
    case ':':
    case '_':
        return q;
    case '$':
        return n < 0 ? q : q + n + 2;
    case '%':
        n *= 2;
        break;
    case '*':
    case '~':
        break;
    default:
        return NULL;
    }
    for (long i = 0; i < n && q != NULL; i++) {
        q = skip_value(q, end);
    }
    return q;
}

static void whole_replies_are_well_formed(void **state) {
    (void)state;
    static const char *const lines[] = {"command",      "command info", "command docs",
                                        "command list", "command help", "command count"};
    for (int proto = 2; proto <= 3; proto++) {
        for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
            struct fixture f;
            fixture_init(&f, proto, lines[i]);
            f.call.row->handler(&f.call);
            const char *end = f.out.ptr + f.out.len;
            assert_ptr_equal(skip_value(f.out.ptr, end), end);
            buf_deinit(&f.out);
        }
    }
}

/* ---- errors --------------------------------------------------------------------------------- */

static void check_unknown(const struct bytes *argv, size_t argc, const char *expected) {
    struct buf out = {0};
    struct reply r = {.out = &out, .proto = 2};
    table_reply_unknown(&r, argv, argc);
    assert_string_equal(text_of(&out), expected);
    buf_deinit(&out);
}

static void unknown_commands_are_quoted_as_redis_does(void **state) {
    (void)state;
    char x[201], y[201], expected[512];
    memset(x, 'x', 200);
    memset(y, 'y', 200);
    check_unknown((struct bytes[]){BYTES_LIT("foo")}, 1,
                  "-ERR unknown command 'foo', with args beginning with: \r\n");
    check_unknown((struct bytes[]){BYTES_LIT("foo"), BYTES_LIT("a"), BYTES_LIT("b")}, 3,
                  "-ERR unknown command 'foo', with args beginning with: 'a' 'b' \r\n");
    check_unknown((struct bytes[]){BYTES_LIT("f\r\noo"), BYTES_LIT("b\nc"), BYTES(NULL, 0)}, 3,
                  "-ERR unknown command 'f  oo', with args beginning with: 'b c' '' \r\n");
    check_unknown((struct bytes[]){BYTES_LIT("f\0oo"), BYTES_LIT("a\0b"), BYTES_LIT("c")}, 3,
                  "-ERR unknown command 'f', with args beginning with: 'a' 'c' \r\n");
    snprintf(expected, sizeof expected,
             "-ERR unknown command '%.128s', with args beginning with: '%.100s' '%.25s' \r\n", x, x,
             y);
    check_unknown((struct bytes[]){BYTES(x, 200), BYTES(x, 100), BYTES(y, 100), BYTES_LIT("z")}, 4,
                  expected);
    snprintf(expected, sizeof expected,
             "-ERR unknown command 'foo', with args beginning with: '%.128s' \r\n", x);
    check_unknown((struct bytes[]){BYTES_LIT("foo"), BYTES(x, 200), BYTES_LIT("z")}, 3, expected);
}

static void subcommand_and_arity_errors(void **state) {
    (void)state;
    struct buf out = {0};
    struct reply r = {.out = &out, .proto = 2};
    const struct command *client = table_find(BYTES_LIT("client"));
    table_reply_unknown_sub(&r, client, BYTES_LIT("f\nq"));
    table_reply_wrong_arity(&r, client);
    table_reply_wrong_arity(&r, table_find_full(BYTES_LIT("client|kill")));
    assert_string_equal(text_of(&out),
                        "-ERR unknown subcommand 'f q'. Try CLIENT HELP.\r\n"
                        "-ERR wrong number of arguments for 'client' command\r\n"
                        "-ERR wrong number of arguments for 'client|kill' command\r\n");
    buf_deinit(&out);
}

/* ---- arguments ------------------------------------------------------------------------------ */

static void integers_are_decoded_or_refused(void **state) {
    (void)state;
    struct fixture f;
    int64_t v = 0;
    fixture_init(&f, 2, "select 12 x -1 9223372036854775808 20");
    assert_true(args_i64(&f.call, 1, &v));
    assert_int_equal(v, 12);
    assert_true(args_i64_range(&f.call, 3, -1, 5, &v, NULL));
    assert_true(args_count(&f.call, 1, &v));
    assert_int_equal(f.out.len, 0);
    assert_false(args_i64(&f.call, 2, &v));
    assert_false(args_i64(&f.call, 4, &v));
    assert_false(args_i64_or(&f.call, 2, &v, "ERR own text"));
    assert_false(args_i64_range(&f.call, 5, -2, 5, &v, NULL));
    assert_false(args_i64_range(&f.call, 5, -2, 5, &v, "ERR own range"));
    assert_false(args_count(&f.call, 3, &v));
    assert_false(args_count(&f.call, 2, &v));
    assert_string_equal(text_of(&f.out),
                        "-ERR value is not an integer or out of range\r\n"
                        "-ERR value is not an integer or out of range\r\n"
                        "-ERR own text\r\n"
                        "-ERR value is out of range, value must between -2 and 5\r\n"
                        "-ERR own range\r\n"
                        "-ERR value is out of range, must be positive\r\n"
                        "-ERR value is out of range, must be positive\r\n");
    buf_deinit(&f.out);
}

static void floats_cursors_and_words(void **state) {
    (void)state;
    struct fixture f;
    long double real = 0;
    double d = 0;
    uint64_t cursor = 0;
    fixture_init(&f, 2, "hscan 1.5e1 nan 18446744073709551615 1x MATCH");
    assert_true(args_real(&f.call, 1, &real) && real == 15);
    assert_true(args_double(&f.call, 1, &d) && d == 15);
    assert_true(args_cursor(&f.call, 3, &cursor) && cursor == UINT64_MAX);
    assert_true(args_is(&f.call, 5, "match"));
    assert_false(args_is(&f.call, 5, "matc"));
    assert_false(args_is(&f.call, 6, "match"));
    assert_int_equal(f.out.len, 0);
    assert_false(args_real(&f.call, 2, &real));
    assert_false(args_double(&f.call, 2, &d));
    assert_false(args_cursor(&f.call, 4, &cursor));
    assert_string_equal(text_of(&f.out), "-ERR value is not a valid float\r\n"
                                         "-ERR value is not a valid float\r\n"
                                         "-ERR invalid cursor\r\n");
    buf_deinit(&f.out);
}

static void expiry_is_absolute_milliseconds(void **state) {
    (void)state;
    enum {
        S = ARGS_TIME_SECONDS,
        MS = ARGS_TIME_MS,
        AT = ARGS_TIME_ABSOLUTE,
        POS = ARGS_TIME_POSITIVE
    };
    static const struct {
        const char *line;
        unsigned flags;
        bool good;
        int64_t ms;
    } cases[] = {
        {"expire 10", S, true, 11000},
        {"expire -10", S, true, -9000},
        {"expire 10", MS, true, 1010},
        {"expire 10", S | AT, true, 10000},
        {"expire 10", MS | AT, true, 10},
        {"expire 1", S | POS, true, 2000},
        {"expire 0", S | POS, false, 0},
        {"expire -1", MS | AT | POS, false, 0},
        {"expire 9223372036854775", S | AT, true, 9223372036854775000},
        {"expire 9223372036854775", S, false, 0},
        {"expire 9223372036854776", S | AT, false, 0},
        {"expire -9223372036854776", S | AT, false, 0},
        {"expire 9223372036854775807", MS, false, 0},
        {"expire 9223372036854775807", MS | AT, true, INT64_MAX},
        {"expire 9223372036854774807", MS, true, INT64_MAX},
        {"expire -9223372036854775808", MS, true, INT64_MIN + 1000},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        int64_t ms = -7;
        fixture_init(&f, 2, cases[i].line);
        assert_int_equal(args_expiry(&f.call, 1, cases[i].flags, 1000, &ms), cases[i].good);
        if (cases[i].good) {
            assert_int_equal(ms, cases[i].ms);
            assert_int_equal(f.out.len, 0);
        } else {
            assert_string_equal(text_of(&f.out),
                                "-ERR invalid expire time in 'expire' command\r\n");
        }
        buf_deinit(&f.out);
    }
}

static void help_has_redis_frame(void **state) {
    (void)state;
    static const char *const lines[] = {"ONE", "    Does one thing.", NULL};
    struct fixture f;
    fixture_init(&f, 3, "object help");
    args_help(&f.call, lines);
    assert_string_equal(text_of(&f.out),
                        "*5\r\n+OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"
                        "+ONE\r\n+    Does one thing.\r\n+HELP\r\n+    Prints this help.\r\n");
    buf_deinit(&f.out);
}

/* ---- docs/commands.md ----------------------------------------------------------------------- */

static void open_page(FILE **file, const char *mode) {
    char path[4096] = __FILE__;
    char *here = strstr(path, "tests/unit/cmd/");
    assert_non_null(here);
    snprintf(here, sizeof path - (size_t)(here - path), "docs/commands.md");
    *file = fopen(path, mode);
    assert_non_null(*file);
}

static void page_is_up_to_date(void **state) {
    (void)state;
    struct buf page = {0}, stored = {0};
    FILE *file;
    commands_write_markdown(&page);
    assert_false(page.failed);
    if (getenv("GC_UPDATE_DOCS") != NULL) {
        open_page(&file, "w");
        assert_int_equal(fwrite(page.ptr, 1, page.len, file), page.len);
        assert_int_equal(fclose(file), 0);
    }
    open_page(&file, "r");
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;) {
        buf_append(&stored, block, n);
    }
    fclose(file);
    assert_string_equal(text_of(&stored), text_of(&page));
    buf_deinit(&page);
    buf_deinit(&stored);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(rows_are_sorted_and_unique),
        cmocka_unit_test(key_positions_agree_with_arity),
        cmocka_unit_test(containers_hold_their_subcommands),
        cmocka_unit_test(every_name_is_found_in_any_case),
        cmocka_unit_test(what_is_no_command_is_not_found),
        cmocka_unit_test(lookup_is_fast),
        cmocka_unit_test(command_lines_show_their_keys),
        cmocka_unit_test(counted_keys_are_counted),
        cmocka_unit_test(key_flags_follow_the_call),
        cmocka_unit_test(info_has_redis_shape),
        cmocka_unit_test(info_tells_of_counted_keys),
        cmocka_unit_test(list_filters),
        cmocka_unit_test(docs_skip_unknown_names),
        cmocka_unit_test(whole_replies_are_well_formed),
        cmocka_unit_test(unknown_commands_are_quoted_as_redis_does),
        cmocka_unit_test(subcommand_and_arity_errors),
        cmocka_unit_test(integers_are_decoded_or_refused),
        cmocka_unit_test(floats_cursors_and_words),
        cmocka_unit_test(expiry_is_absolute_milliseconds),
        cmocka_unit_test(help_has_redis_frame),
        cmocka_unit_test(page_is_up_to_date),
    };
    table_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
