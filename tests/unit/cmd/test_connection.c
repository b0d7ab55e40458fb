/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection commands: who a client is, and what it may do to others. Texts are redis-server's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "cmd/call.h"
#include "cmd/context.h"
#include "cmd/table.h"

enum { CLIENTS = 3, WORDS_MAX = 40 };

struct fixture {
    struct config config;
    struct dbset dbs;
    struct cmd_context cx;
    struct client clients[CLIENTS]; /* ids 1, 2, 3; the first one talks */
    struct buf out[CLIENTS];
    struct client *closed; /* last one given to the close hook */
};

static void describe(const struct client *c, struct client_connection_info *info) {
    *info = (struct client_connection_info){.fd = 10 + (int)c->id, .query_bytes = 26};
    snprintf(info->peer, sizeof info->peer, "127.0.0.1:%u", 1000 + (unsigned)c->id);
    snprintf(info->local, sizeof info->local, "127.0.0.1:6379");
}

static void on_close(void *server, struct client *c) {
    struct fixture *f = server;
    f->closed = c;
    client_deinit(c, &f->cx.clients);
    memset(c, 0xee, sizeof *c); /* whoever still looks at it sees rubbish */
}

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_int_equal(config_init(&f->config), ST_OK);
    f->dbs.count = 16;
    f->cx.config = &f->config;
    f->cx.dbs = &f->dbs;
    f->cx.now_ms = 10000;
    f->cx.clients.describe = describe;
    f->cx.hooks = (struct server_hooks){.server = f, .close = on_close};
    for (size_t i = 0; i < CLIENTS; i++) {
        client_init(&f->clients[i], &f->cx.clients, &f->out[i], 7500);
    }
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    while (f->cx.clients.first != NULL) {
        client_deinit(f->cx.clients.first, &f->cx.clients);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        buf_deinit(&f->out[i]);
    }
    config_deinit(&f->config);
    free(f);
    return 0;
}

/* Run a line as client 1; '_' in it stands for a blank inside a word, "" for an empty word. */
static const char *run(struct fixture *f, const char *line) {
    static char text[512];
    struct bytes argv[WORDS_MAX];
    struct client *c = &f->clients[0];
    struct call call = {
        .cx = &f->cx, .client = c, .argv = argv, .reply = {.out = c->out, .proto = c->proto}};
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        for (char *p = word; *p != '\0'; p++) {
            *p = *p == '_' ? ' ' : *p;
        }
        argv[call.argc++] = strcmp(word, "''") == 0 ? BYTES(word, 0) : bytes_from_cstr(word);
    }
    call.row = table_find(argv[0]);
    if (command_is_container(call.row)) {
        call.row = table_find_sub(call.row, argv[1]);
    }
    assert_true(command_arity_ok(call.row, call.argc));
    c->last_row = call.row;
    buf_clear(c->out);
    call.row->handler(&call);
    buf_append_char(c->out, '\0');
    return c->out->ptr;
}

static void set_password(struct fixture *f, const char *password) {
    struct bytes args[] = {BYTES_LIT("requirepass"), bytes_from_cstr(password)};
    struct buf error = {0};
    assert_int_equal(config_set(&f->config, args, 2, &error), ST_OK);
    buf_deinit(&error);
}

#define CHECK(f, line, expected) assert_string_equal(run((f), (line)), (expected))

static const char wrongpass[] =
    "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
static const char bad_name[] =
    "-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
static const char hello2[] =
    "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n"
    "$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\n"
    "standalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
static const char hello3[] = "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n"
                             "$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\n"
                             "standalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";

static void ping_and_echo_answer(void **state) {
    struct fixture *f = *state;
    CHECK(f, "ping", "+PONG\r\n");
    CHECK(f, "ping x", "$1\r\nx\r\n");
    CHECK(f, "ping x y", "-ERR wrong number of arguments for 'ping' command\r\n");
    CHECK(f, "echo hi", "$2\r\nhi\r\n");
}

static void quit_closes_after_the_reply(void **state) {
    struct fixture *f = *state;
    CHECK(f, "quit a b", "+OK\r\n");
    assert_true(f->clients[0].flags & CLIENT_CLOSE_AFTER_REPLY);
}

static void select_checks_the_range(void **state) {
    struct fixture *f = *state;
    CHECK(f, "select 15", "+OK\r\n");
    assert_int_equal(f->clients[0].db, 15);
    CHECK(f, "select 16", "-ERR DB index is out of range\r\n");
    CHECK(f, "select -1", "-ERR DB index is out of range\r\n");
    CHECK(f, "select x", "-ERR value is not an integer or out of range\r\n");
    CHECK(f, "select 015", "-ERR value is not an integer or out of range\r\n");
    CHECK(f, "select 2147483648",
          "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n");
    assert_int_equal(f->clients[0].db, 15);
}

static void auth_without_a_password_set(void **state) {
    struct fixture *f = *state;
    CHECK(f, "auth x",
          "-ERR AUTH <password> called without any password configured for the default user. Are "
          "you sure your configuration is correct?\r\n");
    CHECK(f, "auth default anything", "+OK\r\n");
    CHECK(f, "auth nobody x", wrongpass);
    CHECK(f, "auth a b c", "-ERR syntax error\r\n");
}

static void auth_with_a_password_set(void **state) {
    struct fixture *f = *state;
    set_password(f, "sesame");
    CHECK(f, "auth bad", wrongpass);
    CHECK(f, "auth ''", wrongpass);
    CHECK(f, "auth sesameX", wrongpass);
    CHECK(f, "auth default bad", wrongpass);
    CHECK(f, "auth nobody sesame", wrongpass);
    CHECK(f, "auth DEFAULT sesame", wrongpass);
    assert_false(f->clients[0].flags & CLIENT_AUTHENTICATED);
    CHECK(f, "auth sesame", "+OK\r\n");
    assert_true(f->clients[0].flags & CLIENT_AUTHENTICATED);
    CHECK(f, "reset", "+RESET\r\n");
    assert_false(f->clients[0].flags & CLIENT_AUTHENTICATED);
    CHECK(f, "auth default sesame", "+OK\r\n");
}

static void hello_switches_protocol(void **state) {
    struct fixture *f = *state;
    CHECK(f, "hello", hello2);
    CHECK(f, "hello 3", hello3);
    CHECK(f, "client getname", "_\r\n");
    CHECK(f, "hello", hello3);
    CHECK(f, "hello 2 setname nm", hello2);
    CHECK(f, "client getname", "$2\r\nnm\r\n");
    CHECK(f, "hello 3 AUTH default x SETNAME q", hello3);
    CHECK(f, "client getname", "$1\r\nq\r\n");
    CHECK(f, "hello 2 setname a setname b", hello2);
    CHECK(f, "client getname", "$1\r\nb\r\n");
    CHECK(f, "hello 2 setname ''", hello2);
    CHECK(f, "client getname", "$-1\r\n");
}

static void hello_refuses(void **state) {
    struct fixture *f = *state;
    CHECK(f, "hello 4", "-NOPROTO unsupported protocol version\r\n");
    CHECK(f, "hello 1", "-NOPROTO unsupported protocol version\r\n");
    CHECK(f, "hello x", "-ERR Protocol version is not an integer or out of range\r\n");
    CHECK(f, "hello 3 foo", "-ERR Syntax error in HELLO option 'foo'\r\n");
    CHECK(f, "hello 3 auth a", "-ERR Syntax error in HELLO option 'auth'\r\n");
    CHECK(f, "hello 3 setname", "-ERR Syntax error in HELLO option 'setname'\r\n");
    CHECK(f, "hello 3 setname a_b", bad_name);
    CHECK(f, "hello 3 auth nobody x", wrongpass);
    set_password(f, "sesame");
    static const char noauth[] =
        "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
        "protocol version at the same time\r\n";
    CHECK(f, "hello", noauth);
    CHECK(f, "hello 3 setname x", noauth);
    CHECK(f, "hello 3 auth default bad", wrongpass);
    assert_int_equal(f->clients[0].proto, 2);
    assert_null(f->clients[0].name);
    CHECK(f, "hello 3 auth default sesame", hello3);
}

static void reset_makes_a_client_new(void **state) {
    struct fixture *f = *state;
    run(f, "hello 3");
    run(f, "client setname me");
    run(f, "client setinfo LIB-NAME lib");
    run(f, "client no-evict on");
    run(f, "client no-touch on");
    run(f, "select 3");
    CHECK(f, "reset", "+RESET\r\n");
    const struct client *c = &f->clients[0];
    assert_int_equal(c->db, 0);
    assert_int_equal(c->proto, 2);
    assert_null(c->name);
    assert_string_equal(c->lib_name, "lib");
    assert_int_equal(c->flags, CLIENT_AUTHENTICATED);
}

static void names_are_plain(void **state) {
    struct fixture *f = *state;
    CHECK(f, "client setname a_b", bad_name);
    CHECK(f, "client setname a\nb", bad_name);
    CHECK(f, "client setname \xc3\xa9", bad_name);
    CHECK(f, "client setname ok", "+OK\r\n");
    CHECK(f, "client getname", "$2\r\nok\r\n");
    CHECK(f, "client setname ''", "+OK\r\n");
    CHECK(f, "client getname", "$-1\r\n");
    CHECK(f, "client setinfo lib-ver 1.2", "+OK\r\n");
    CHECK(f, "client setinfo foo 1", "-ERR Unrecognized option 'foo'\r\n");
    CHECK(f, "client setinfo lib-NAME a_b",
          "-ERR lib-NAME cannot contain spaces, newlines or special characters.\r\n");
    assert_string_equal(f->clients[0].lib_ver, "1.2");
}

static void switches_take_on_and_off(void **state) {
    struct fixture *f = *state;
    struct client *c = &f->clients[0];
    CHECK(f, "client no-evict x", "-ERR syntax error\r\n");
    CHECK(f, "client no-touch ON", "+OK\r\n");
    CHECK(f, "client no-touch off", "+OK\r\n");
    assert_int_equal(c->flags, 0);
    CHECK(f, "client reply x", "-ERR syntax error\r\n");
    CHECK(f, "client reply skip", "");
    assert_int_equal(c->flags, CLIENT_REPLY_SKIP);
    CHECK(f, "client reply off", "");
    assert_true(c->flags & CLIENT_REPLY_OFF);
    CHECK(f, "client reply on", "+OK\r\n");
    assert_int_equal(c->flags, 0);
}

#define LINE(id, name, rest)                                                                       \
    "id=" id " addr=127.0.0.1:100" id " laddr=127.0.0.1:6379 fd=1" id " name=" name                \
    " age=2 idle=2 flags=" rest

static const char others[] =
    LINE("2", "",
         "N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=26 qbuf-free=0 argv-mem=0 multi-mem=0 "
         "rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=NULL user=default "
         "redir=-1 resp=2 lib-name= lib-ver=\n");

static void list_describes_connections(void **state) {
    struct fixture *f = *state;
    run(f, "client setname me");
    run(f, "client setinfo lib-name lib");
    run(f, "client no-evict on");
    const char *text = run(f, "client list");
    assert_non_null(strstr(text, LINE("1", "me", "e db=0 ")));
    assert_non_null(strstr(text, " cmd=client|list user=default redir=-1 resp=2 lib-name=lib "
                                 "lib-ver=\n"));
    assert_non_null(strstr(text, others));
    assert_true(strstr(text, "id=1 ") < strstr(text, "id=2 "));
    assert_true(strstr(text, "id=2 ") < strstr(text, "id=3 "));
    assert_non_null(strstr(run(f, "client info"), " cmd=client|info "));
    assert_null(strstr(run(f, "client info"), "id=2 "));
    text = run(f, "client list id 3 2 77 0 -1");
    assert_true(strstr(text, "id=3 ") < strstr(text, "id=2 "));
    assert_null(strstr(text, "id=1 "));
    assert_non_null(strstr(run(f, "client list type NORMAL"), others));
    CHECK(f, "client list type master", "$0\r\n\r\n");
    CHECK(f, "client list type foo", "-ERR Unknown client type 'foo'\r\n");
    CHECK(f, "client list type", "-ERR syntax error\r\n");
    CHECK(f, "client list id", "-ERR syntax error\r\n");
    CHECK(f, "client list id x", "-ERR Invalid client ID\r\n");
    CHECK(f, "client list type normal id 3", "-ERR syntax error\r\n");
    run(f, "hello 3");
    assert_memory_equal(run(f, "client list id 2"), "=", 1);
    CHECK(f, "client list id 99", "=4\r\ntxt:\r\n");
}

/* A connection that has sent nothing yet has no place for replies. */
static void list_describes_a_silent_connection(void **state) {
    struct fixture *f = *state;
    f->clients[1].out = NULL;
    assert_non_null(strstr(run(f, "client list"), others));
    assert_non_null(strstr(run(f, "client list id 2"), others));
}

static void kill_picks_by_every_filter(void **state) {
    struct fixture *f = *state;
    CHECK(f, "client kill id 99", ":0\r\n");
    CHECK(f, "client kill id 1", ":0\r\n");
    CHECK(f, "client kill type pubsub", ":0\r\n");
    CHECK(f, "client kill addr 127.0.0.1:1009", ":0\r\n");
    CHECK(f, "client kill id 2 addr 127.0.0.1:1003", ":0\r\n");
    assert_null(f->closed);
    CHECK(f, "client kill id 2 laddr 127.0.0.1:6379 user default type normal", ":1\r\n");
    assert_ptr_equal(f->closed, &f->clients[1]);
    CHECK(f, "client kill 127.0.0.1:1003", "+OK\r\n");
    assert_ptr_equal(f->closed, &f->clients[2]);
    CHECK(f, "client kill skipme yes", ":0\r\n");
    CHECK(f, "client kill skipme no", ":1\r\n");
    assert_int_equal(f->clients[0].flags, CLIENT_CLOSE_AFTER_REPLY);
}

static void kill_closes_all_others(void **state) {
    struct fixture *f = *state;
    CHECK(f, "client kill user default", ":2\r\n");
    assert_int_equal(f->cx.clients.count, 1);
}

static void kill_refuses(void **state) {
    struct fixture *f = *state;
    static const char positive[] = "-ERR client-id should be greater than 0\r\n";
    CHECK(f, "client kill foo", "-ERR No such client\r\n");
    CHECK(f, "client kill id", "-ERR No such client\r\n");
    CHECK(f, "client kill id x", positive);
    CHECK(f, "client kill id 0", positive);
    CHECK(f, "client kill id 99999999999999999999", positive);
    CHECK(f, "client kill type foo", "-ERR Unknown client type 'foo'\r\n");
    CHECK(f, "client kill skipme foo", "-ERR syntax error\r\n");
    CHECK(f, "client kill user nobody", "-ERR No such user 'nobody'\r\n");
    CHECK(f, "client kill id 2 addr", "-ERR syntax error\r\n");
    CHECK(f, "client kill foo bar", "-ERR syntax error\r\n");
    assert_null(f->closed);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(ping_and_echo_answer),
        TEST(quit_closes_after_the_reply),
        TEST(select_checks_the_range),
        TEST(auth_without_a_password_set),
        TEST(auth_with_a_password_set),
        TEST(hello_switches_protocol),
        TEST(hello_refuses),
        TEST(reset_makes_a_client_new),
        TEST(names_are_plain),
        TEST(switches_take_on_and_off),
        TEST(list_describes_connections),
        TEST(list_describes_a_silent_connection),
        TEST(kill_picks_by_every_filter),
        TEST(kill_closes_all_others),
        TEST(kill_refuses),
    };
    table_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
