/* SPDX-License-Identifier: BSD-3-Clause */
/* Files, the command line and the pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rng.h"
#include "config/config.h"

static char dir[] = "/tmp/gc-config-XXXXXX";

/* ---- helpers ------------------------------------------------------------------------------- */

static int enter_dir(void **state) {
    return mkdtemp(dir) != NULL && chdir(dir) == 0 ? 0 : -1;
}

static int leave_dir(void **state) {
    static const char *const files[] = {"a.conf", "b.conf", "c.conf", "d1.inc", "d2.inc"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        (void)unlink(files[i]);
    }
    return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static void write_file(const char *name, const char *text) {
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* Load the words, NULL at their end; argv[0] is added. */
static enum status load(struct config *c, struct buf *error, char *const *words) {
    char *argv[32] = {"goblin-core"};
    int argc = 1;
    while (words[argc - 1] != NULL) {
        argv[argc] = words[argc - 1];
        argc++;
    }
    enum config_action action = CONFIG_SHOW_HELP;
    assert_int_equal(config_init(c), ST_OK);
    buf_clear(error);
    enum status st = config_load(c, argc, argv, &action, error);
    assert_int_equal(action, CONFIG_RUN);
    assert_true(st == ST_OK ? error->len == 0 : error->len != 0);
    return st;
}

#define LOAD(c, error, ...) load(c, error, (char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void assert_text(const struct buf *b, const char *want) {
    if (!bytes_equal(buf_bytes(b), bytes_from_cstr(want))) {
        fail_msg("got  '%.*s'\nwant '%s'", (int)b->len, b->ptr, want);
    }
}

/* ---- defaults ------------------------------------------------------------------------------ */

static void defaults_are_those_of_the_table(void **state) {
    struct config c;
    assert_int_equal(config_init(&c), ST_OK);
    assert_int_equal(c.port, 6379);
    assert_int_equal(c.bind.count, 2);
    assert_string_equal(c.bind.items[0], "127.0.0.1");
    assert_string_equal(c.bind.items[1], "-::1");
    assert_null(c.bind.items[2]);
    assert_true(c.protected_mode);
    assert_int_equal(c.maxclients, 10000);
    assert_int_equal(c.proto_max_bulk_len, 512u << 20);
    assert_int_equal(c.client_query_buffer_limit, 1u << 30);
    assert_int_equal(c.client_output_buffer_limit.hard_bytes, 0);
    assert_int_equal(c.loglevel, LOG_NOTICE);
    assert_int_equal(c.enable_debug_command, CONFIG_DEBUG_NO);
    assert_int_equal(c.maxmemory_policy, CONFIG_POLICY_NOEVICTION);
    assert_int_equal(c.hash_chunk_bytes, 2u << 20);
    assert_false(c.arena_hugetlb);
    assert_string_equal(c.requirepass, "");
    assert_string_equal(c.config_file, "");
    config_deinit(&c);
}

/* ---- command line -------------------------------------------------------------------------- */

static void arguments_set_options(void **state) {
    struct config c;
    struct buf error = {0};
    assert_int_equal(LOAD(&c, &error, "--port", "7000", "--bind", "10.0.0.1", "::1", "--save", "",
                          "--maxmemory", "1gb", "--LOGLEVEL", "Debug", "--unixsocketperm", "770",
                          "--client-output-buffer-limit", "normal", "1mb", "2kb", "30",
                          "--hash-max-ziplist-entries", "5", "--hz", "1000"),
                     ST_OK);
    assert_int_equal(c.port, 7000);
    assert_int_equal(c.bind.count, 2);
    assert_string_equal(c.bind.items[1], "::1");
    assert_int_equal(c.maxmemory, 1u << 30);
    assert_int_equal(c.loglevel, LOG_DEBUG);
    assert_int_equal(c.unixsocketperm, 0770);
    assert_int_equal(c.client_output_buffer_limit.hard_bytes, 1 << 20);
    assert_int_equal(c.client_output_buffer_limit.soft_bytes, 2048);
    assert_int_equal(c.client_output_buffer_limit.soft_seconds, 30);
    assert_int_equal(c.hash_max_listpack_entries, 5);
    assert_int_equal(c.hz, 500);
    assert_string_equal(c.dir, dir);
    config_deinit(&c);
    buf_deinit(&error);
}

static void a_flag_alone_means_yes(void **state) {
    struct config c;
    struct buf error = {0};
    assert_int_equal(LOAD(&c, &error, "--arena-hugetlb", "--port", "0", "--save", "--daemonize"),
                     ST_OK);
    assert_true(c.arena_hugetlb);
    assert_true(c.daemonize);
    assert_int_equal(c.port, 0);
    config_deinit(&c);
    assert_int_equal(LOAD(&c, &error, "--arena-hugetlb", "no"), ST_OK);
    assert_false(c.arena_hugetlb);
    config_deinit(&c);
    buf_deinit(&error);
}

static void save_points_add_up(void **state) {
    struct config c;
    struct buf error = {0}, text = {0};
    write_file("a.conf", "save 3600 1\nport 7000\nsave 300 100 60 10000\n");
    assert_int_equal(LOAD(&c, &error, "a.conf", "--save", "10 5", "--hz", "20", "--save", "7", "0"),
                     ST_OK);
    config_print(&c, OPTION_save, &text);
    assert_text(&text, "3600 1 300 100 60 10000 10 5 7 0");
    assert_int_equal(c.save.count, 5);
    assert_int_equal(c.save.at[2].seconds, 60);
    assert_int_equal(c.save.at[2].changes, 10000);
    config_deinit(&c);
    assert_int_equal(LOAD(&c, &error, "a.conf", "--save", "", "--save", "10 5"), ST_OK);
    assert_int_equal(c.save.count, 1);
    assert_int_equal(c.save.at[0].seconds, 10);
    config_deinit(&c);
    assert_int_equal(LOAD(&c, &error, "a.conf", "--save"), ST_OK);
    assert_int_equal(c.save.count, 0);
    config_deinit(&c);
    buf_deinit(&text);
    buf_deinit(&error);
}

static void a_wrong_argument_is_named(void **state) {
    static const struct {
        char *words[8];
        const char *error;
    } cases[] = {
        {{"--foo", "1"}, "argument '--foo 1': unknown option 'foo'"},
        {{"--check-rdb"}, "argument '--check-rdb': the name of a file is missing"},
        {{"--check-rdb", "a", "b"}, "argument '--check-rdb': only one file is checked"},
        {{"--port", "abc"}, "argument '--port abc': argument couldn't be parsed into an integer"},
        {{"--port", "70000"},
         "argument '--port 70000': argument must be between 0 and 65535 inclusive"},
        {{"--port"}, "argument '--port': wrong number of arguments"},
        {{"--port", "1", "2"}, "argument '--port 1 2': wrong number of arguments"},
        {{"--bind"}, "argument '--bind': wrong number of arguments"},
        {{"--port", "1", "--loglevel", "loud"},
         "argument '--loglevel loud': argument(s) must be one of the following: debug, verbose, "
         "notice, warning, nothing"},
        {{"--arena-hugetlb", "maybe"},
         "argument '--arena-hugetlb maybe': argument must be 'yes' or 'no'"},
        {{"--arena-hugetlb", "--arena-thp"},
         "'arena-hugetlb' and 'arena-thp' exclude each other: choose one kind of huge page"},
        {{"--arena-hugetlb-size", "2m"}, "'arena-hugetlb-size' needs 'arena-hugetlb'"},
        {{"--arena-hugetlb-size", "3m"},
         "argument '--arena-hugetlb-size 3m': argument must be the size of a huge page, such as 2m "
         "or 1g"},
        {{"--hash-chunk-bytes", "100000"},
         "argument '--hash-chunk-bytes 100000': argument must be a power of two"},
        {{"--hash-chunk-bytes", "1024"},
         "argument '--hash-chunk-bytes 1024': argument must be between 65536 and 1073741824 "
         "inclusive"},
        {{"--maxmemory", "10zb"}, "argument '--maxmemory 10zb': argument must be a memory value"},
        {{"--unixsocketperm", "999"},
         "argument '--unixsocketperm 999': argument couldn't be parsed as an octal number"},
        {{"--unixsocketperm", "1000"},
         "argument '--unixsocketperm 1000': argument must be between 0 and 777 inclusive"},
        {{"--bind", "127.0.0.1 "}, "argument '--bind 127.0.0.1 ': addresses stand one blank apart"},
        {{"--save", "900  1"}, "argument '--save 900  1': Invalid save parameters"},
        {{"--save", "900"}, "argument '--save 900': Invalid save parameters"},
        {{"--save", "900", "1", "60"}, "argument '--save 900 1 60': Invalid save parameters"},
        {{"--save", "0 1"}, "argument '--save 0 1': Invalid save parameters"},
        {{"--save", "60 -1"}, "argument '--save 60 -1': Invalid save parameters"},
        {{"--save", "a", "b"}, "argument '--save a b': Invalid save parameters"},
        {{"--save", "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "--save",
          "1", "2"},
         "argument '--save 1 2': too many save points"},
        {{"--appendonly", "yes"},
         "argument '--appendonly yes': argument must be 'no': this version has no append-only "
         "file"},
        {{"--client-output-buffer-limit", "pubsub", "1", "1", "1"},
         "argument '--client-output-buffer-limit pubsub 1 1 1': this version has no pubsub or "
         "replica clients; only the class 'normal' can be limited"},
        {{"-x"}, "argument '-x': expected --name"},
        {{"--"}, "argument '--': unknown option ''"},
        {{"--dir", "/nonexistent"},
         "option 'dir': can't use directory '/nonexistent': No such file or directory"},
        {{"--dir", "/dev/null"}, "option 'dir': can't use directory '/dev/null': Not a directory"},
        {{"nope.conf"}, "can't read configuration file 'nope.conf': No such file or directory"},
        {{"/tmp"}, "can't read configuration file '/tmp': Is a directory"},
    };
    struct buf error = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config c;
        assert_int_not_equal(load(&c, &error, cases[i].words), ST_OK);
        assert_text(&error, cases[i].error);
        config_deinit(&c);
    }
    buf_deinit(&error);
}

static void version_and_help_are_actions(void **state) {
    static const struct {
        char *word;
        enum config_action action;
    } cases[] = {{"--version", CONFIG_SHOW_VERSION},
                 {"-v", CONFIG_SHOW_VERSION},
                 {"--help", CONFIG_SHOW_HELP},
                 {"-h", CONFIG_SHOW_HELP}};
    struct config c;
    struct buf error = {0};
    assert_int_equal(config_init(&c), ST_OK);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum config_action action = CONFIG_RUN;
        char *argv[] = {"goblin-core", cases[i].word, NULL};
        assert_int_equal(config_load(&c, 2, argv, &action, &error), ST_OK);
        assert_int_equal(action, cases[i].action);
    }
    config_deinit(&c);
    buf_deinit(&error);
}

/* ---- files --------------------------------------------------------------------------------- */

static void a_file_takes_quotes_comments_and_includes(void **state) {
    struct config c;
    struct buf error = {0};
    char path[PATH_MAX];
    write_file("b.conf", "timeout 7\r\n\tport 2\n");
    write_file("d1.inc", "databases 3\n");
    write_file("d2.inc", "databases 4");
    write_file("a.conf", "# a comment\n"
                         "\n"
                         "   port 1   \n"
                         "include b.conf\n"
                         "include d*.inc\n"
                         "include none*.inc\n"
                         "requirepass \"a \\x41\\n\\\"q\"\n"
                         "unixsocket 'it\\'s'\n"
                         "bind \"127.0.0.1 ::1\"\n"
                         "logfile \"\"\n"
                         "ARENA-hugetlb YES\n"
                         "tcp-backlog 9");
    assert_int_equal(LOAD(&c, &error, "a.conf", "--timeout", "8"), ST_OK);
    assert_int_equal(c.port, 2);
    assert_int_equal(c.timeout, 8);
    assert_int_equal(c.databases, 4);
    assert_string_equal(c.requirepass, "a A\n\"q");
    assert_string_equal(c.unixsocket, "it's");
    assert_int_equal(c.bind.count, 2);
    assert_true(c.arena_hugetlb);
    assert_int_equal(c.tcp_backlog, 9);
    snprintf(path, sizeof(path), "%s/a.conf", dir);
    assert_string_equal(c.config_file, path);
    config_deinit(&c);
    buf_deinit(&error);
}

static void a_wrong_line_is_named(void **state) {
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"port 1\n\nloglevel foo\n",
         "a.conf:3: 'loglevel foo': argument(s) must be one of the following: debug, verbose, "
         "notice, warning, nothing"},
        {"port 1\n  \"unbal\n", "a.conf:2: '\"unbal': Unbalanced quotes in configuration line"},
        {"requirepass \"a\"b\n",
         "a.conf:1: 'requirepass \"a\"b': Unbalanced quotes in configuration line"},
        {"requirepass 'a\n", "a.conf:1: 'requirepass 'a': Unbalanced quotes in configuration line"},
        {"maxmemory-samples 5", "a.conf:1: 'maxmemory-samples 5': unknown option "
                                "'maxmemory-samples'"},
        {"port", "a.conf:1: 'port': wrong number of arguments"},
        {"arena-hugetlb", "a.conf:1: 'arena-hugetlb': wrong number of arguments"},
        {"include", "a.conf:1: 'include': wrong number of arguments"},
        {"databases 0", "a.conf:1: 'databases 0': argument must be between 1 and 65535 inclusive"},
        {"dir \"a\\x00b\"", "a.conf:1: 'dir \"a\\x00b\"': argument must not hold NUL bytes"},
        {"bind \"a\\x00b\"", "a.conf:1: 'bind \"a\\x00b\"': argument must not hold NUL bytes"},
        {"include \"a\\x00b\"", "a.conf:1: 'include \"a\\x00b\"': not a path"},
        {"bind 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17",
         "a.conf:1: 'bind 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17': Too many bind addresses "
         "specified."},
        {"include nope.conf", "a.conf:1: 'include nope.conf': can't read configuration file "
                              "'nope.conf': No such file or directory"},
        {"include c.conf",
         "a.conf:1: 'include c.conf': c.conf:2: 'port x': argument couldn't be parsed into an "
         "integer"},
    };
    struct buf error = {0};
    write_file("c.conf", "# inner\nport x\n");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config c;
        write_file("a.conf", cases[i].text);
        assert_int_not_equal(LOAD(&c, &error, "a.conf"), ST_OK);
        assert_text(&error, cases[i].error);
        config_deinit(&c);
    }
    buf_deinit(&error);
}

static void files_that_include_each_other_end(void **state) {
    struct config c;
    struct buf error = {0};
    write_file("a.conf", "include b.conf\n");
    write_file("b.conf", "include a.conf\n");
    assert_int_equal(LOAD(&c, &error, "a.conf"), ST_SYNTAX);
    assert_non_null(memmem(error.ptr, error.len, "too deep", 8));
    config_deinit(&c);
    buf_deinit(&error);
}

/* Whatever a file holds, it is taken or refused with a reason. */
static void random_files_never_harm(void **state) {
    static const char *const pieces[] = {
        "port",   "bind", "\"",          "'",     "\\x4",
        "\\",     " ",    "\n",          "\r",    "#",
        "1",      "yes",  "requirepass", "\t",    "client-output-buffer-limit",
        "normal", "\x80", "include",     "none*", "0",
        ",",      "\v"};
    struct rng rng;
    struct buf text = {0}, error = {0};
    rng_init(&rng, 42);
    for (size_t i = 0; i < 3000; i++) {
        struct config c;
        buf_clear(&text);
        buf_clear(&error);
        for (uint64_t n = rng_below(&rng, 12); n > 0; n--) {
            buf_append_cstr(&text, pieces[rng_below(&rng, ARRAY_LEN(pieces))]);
        }
        buf_append_char(&text, '\0');
        write_file("a.conf", text.ptr);
        assert_int_equal(config_init(&c), ST_OK);
        enum status st = config_load_file(&c, "a.conf", &error);
        assert_int_equal(st == ST_OK, error.len == 0);
        config_deinit(&c);
    }
    buf_deinit(&text);
    buf_deinit(&error);
}

/* ---- pages --------------------------------------------------------------------------------- */

static void help_names_every_option(void **state) {
    struct buf help = {0};
    config_write_help(&help);
    for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++) {
        char want[128];
        snprintf(want, sizeof(want), "--%s  (", config_option_name(id));
        assert_non_null(memmem(help.ptr, help.len, want, strlen(want)));
    }
    buf_deinit(&help);
}

/* docs/options.md is committed; with GC_WRITE_PAGES set in the environment it is written anew. A compiler cache may
 * make __FILE__ relative, so its path is taken before the first test leaves the directory. */
static char page_path[PATH_MAX];

static void find_page(void) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.*s/../../../docs/options.md",
             (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
    if (realpath(path, page_path) == NULL) {
        perror(path);
    }
}

static void the_page_is_up_to_date(void **state) {
    struct buf page = {0}, found = {0};
    config_write_markdown(&page);
    if (getenv("GC_WRITE_PAGES") != NULL) {
        FILE *out = fopen(page_path, "w");
        assert_non_null(out);
        assert_int_equal(fwrite(page.ptr, 1, page.len, out), page.len);
        assert_int_equal(fclose(out), 0);
    }
    FILE *file = fopen(page_path, "r");
    assert_non_null(file);
    char *tail = buf_tail(&found, page.len + 1);
    assert_non_null(tail);
    found.len = fread(tail, 1, page.len + 1, file);
    fclose(file);
    assert_true(bytes_equal(buf_bytes(&found), buf_bytes(&page)));
    buf_deinit(&page);
    buf_deinit(&found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_table),
        cmocka_unit_test(arguments_set_options),
        cmocka_unit_test(a_flag_alone_means_yes),
        cmocka_unit_test(save_points_add_up),
        cmocka_unit_test(a_wrong_argument_is_named),
        cmocka_unit_test(version_and_help_are_actions),
        cmocka_unit_test(a_file_takes_quotes_comments_and_includes),
        cmocka_unit_test(a_wrong_line_is_named),
        cmocka_unit_test(files_that_include_each_other_end),
        cmocka_unit_test(random_files_never_harm),
        cmocka_unit_test(help_names_every_option),
        cmocka_unit_test(the_page_is_up_to_date),
    };
    find_page();
    return cmocka_run_group_tests(tests, enter_dir, leave_dir);
}
