/* SPDX-License-Identifier: BSD-3-Clause */
/* What a hostile, broken or merely odd client may send, at the level of the socket. Where
 * redis-server is installed its answer, byte for byte, is the expectation. */
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/client.h"
#include "support/reply.h"
#include "support/server.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB (1024 * 1024)
#define APPEND_TEXT(c, text) client_append_raw((c), (text), sizeof(text) - 1)

static struct server *ours;
static struct server *oracle; /* NULL where redis-server is missing */

/* ---- exchanges ---- */

/* Send, close our side, take everything until the server closes its own. dribble: a byte at a time,
 * each given time to arrive alone. The caller frees the readable text. */
static char *exchange(const struct server *s, const char *ptr, size_t len, bool dribble) {
    struct client *c = server_connect(s);
    if (dribble) {
        for (size_t i = 0; i < len; i++) {
            if (send(c->fd, ptr + i, 1, MSG_NOSIGNAL) != 1) {
                break; /* it has closed: a protocol error may come before the last byte */
            }
            usleep(100);
        }
    } else {
        client_append_raw(c, ptr, len);
        (void)client_flush(c);
    }
    shutdown(c->fd, SHUT_WR);
    char *got = NULL;
    size_t got_len = 0;
    FILE *out = open_memstream(&got, &got_len);
    if (c->in_len > 0) {
        fwrite(c->in, 1, c->in_len, out);
    }
    char chunk[16384];
    time_t deadline = time(NULL) + 20;
    for (;;) {
        ssize_t n = recv(c->fd, chunk, sizeof(chunk), 0);
        if (n > 0) {
            fwrite(chunk, 1, (size_t)n, out);
        } else if (n == 0 || time(NULL) > deadline) {
            fputs(n == 0 ? "" : "(still open)", out);
            break;
        } else {
            usleep(500);
            if (c->closed) {
                break;
            }
            /* A reset ends it too: the server closed with bytes of ours unread. */
            int error = 0;
            socklen_t error_len = sizeof(error);
            getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
            if (error) {
                break;
            }
        }
    }
    fclose(out);
    client_close(c);
    char *text = bytes_text(got, got_len, 4000);
    free(got);
    return text;
}

static void same_exchange(const struct server *s, const char *what, const char *ptr, size_t len,
                          const char *expected, bool dribble) {
    char *got = exchange(s, ptr, len, dribble);
    bool same = strcmp(got, expected) == 0;
    if (!same) {
        fprintf(stderr, "%s%s\n  expected %s\n  got      %s\n", what, dribble ? " (dribbled)" : "",
                expected, got);
    }
    free(got);
    assert_true(same);
}

/* ---- requests, whole and broken ---- */

struct bytes_case {
    const char *ptr;
    size_t len;
};

#define CASE(s)                                                                                    \
    { (s), sizeof(s) - 1 }

static const struct bytes_case requests[] = {
    CASE("PING\r\n"),
    CASE("PING\n"),
    CASE("ping\r\nPING hello\r\n"),
    CASE("\r\n\r\n\nPING\r\n"),
    CASE("   PING   \r\n"),
    CASE("\tPING\t\r\n"),
    CASE("SET q \"a b\"\r\nGET q\r\n"),
    CASE("SET q 'it\\'s'\r\nGET q\r\n"),
    CASE("SET q \"\\x41\\n\\t\\\"\\xzz\\q\"\r\nGET q\r\n"),
    CASE("SET q '\\x41\\n'\r\nGET q\r\n"),
    CASE("SET q \"\"\r\nGET q\r\n"),
    CASE("SET q \"abc\r\nPING\r\n"),
    CASE("SET q 'abc\r\n"),
    CASE("SET q \"abc\"def\r\n"),
    CASE("SET q a\"b c\"\r\nGET q\r\n"),
    CASE("PING"),
    CASE("P"),
    CASE(""),
    CASE("*0\r\nPING\r\n"),
    CASE("*-1\r\nPING\r\n"),
    CASE("*-5\r\nPING\r\n"),
    CASE("*\r\nPING\r\n"),
    CASE("*abc\r\nPING\r\n"),
    CASE("*1.5\r\n"),
    CASE("* 1\r\n$4\r\nPING\r\n"),
    CASE("*1 \r\n$4\r\nPING\r\n"),
    CASE("*+1\r\n$4\r\nPING\r\n"),
    CASE("*01\r\n$4\r\nPING\r\n"),
    CASE("*1\r\n$4\r\nPING\r\n"),
    CASE("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\nPING\r\n*1\r\n$4\r\nping\r\n"),
    CASE("*1\r\n$abc\r\n"),
    CASE("*1\r\n$\r\n"),
    CASE("*1\r\n$-1\r\n"),
    CASE("*1\r\n$04\r\nPING\r\n"),
    CASE("*1\r\n$+4\r\nPING\r\n"),
    CASE("*1\r\n$4 \r\nPING\r\n"),
    CASE("*1\r\n:1\r\n"),
    CASE("*1\r\n\r\n"),
    CASE("*1\r\nPING\r\n"),
    CASE("*1\r\n*1\r\n$4\r\nPING\r\n"),
    CASE("*1\r\n$0\r\n\r\n"),
    CASE("*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"),
    CASE("*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n"),
    CASE("*2\r\n$4\r\nECHO\r\n$5\r\nhelloXXPING\r\n"),
    CASE("*2\r\n$4\r\nECHO\r\n$5\r\nhel"),
    CASE("*2\r\n$4\r\nECHO\r\n"),
    CASE("*2\r\n$4\r\nECHO\r\n$3\r\nhello\r\n"),
    CASE("*2\r\n$4\r\nECHO\r\n$9\r\nhello\r\n"),
    CASE("*1\r\n$4\r\nPI"),
    CASE("*1\r\n$4"),
    CASE("*1"),
    CASE("*1\n$4\nPING\n"),
    CASE("*3\r\n$3\r\nSET\r\n$3\r\nb\0\n\r\n$4\r\n\0\r\n\0\r\n*2\r\n$3\r\nGET\r\n$3\r\nb\0\n\r\n"),
    CASE("*9223372036854775808\r\n"),
    CASE("*9223372036854775807\r\n"),
    CASE("*2147483648\r\n"),
    CASE("*-9223372036854775808\r\nPING\r\n"),
    CASE("*1\r\n$536870913\r\n"),
    CASE("*1\r\n$629145600\r\nabc"),
    CASE("*1\r\n$9223372036854775807\r\n"),
    CASE("*1\r\n$18446744073709551620\r\n"),
    CASE("GET / HTTP/1.1\r\nHost: localhost\r\nAccept: x\r\n\r\n"),
    CASE("POST / HTTP/1.1\r\n\r\nPING\r\n"),
    CASE("*1\r\n$5\r\nHost:\r\nPING\r\n"),
    CASE("$4\r\nPING\r\n"),
    CASE("+OK\r\nPING\r\n"),
    CASE("%1\r\n"),
    CASE("nosuch a b c\r\n"),
    CASE("*2\r\n$6\r\nno\r\nit\r\n$3\r\na\r\n\r\n"),
    CASE("QUIT\r\nPING\r\n"),
    CASE("*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n"),
    CASE("HELLO 3\r\n*1\r\n$3\r\nfoo\r\nGET nokey\r\nHGETALL nokey\r\nRESET\r\nGET nokey\r\n*2\r"),
};

static void broken_requests_get_the_oracles_answer(void **state) {
    (void)state;
    if (!oracle) {
        TEST_SKIP("no redis-server to compare with");
    }
    for (size_t i = 0; i < COUNT(requests); i++) {
        const struct bytes_case *r = &requests[i];
        /* HELLO names the server and its version: that reply is compared in test_examples. */
        if (strncmp(r->ptr, "HELLO", 5) == 0) {
            continue;
        }
        char *expected = exchange(oracle, r->ptr, r->len, false);
        char *what = bytes_text(r->ptr, r->len, 200);
        same_exchange(ours, what, r->ptr, r->len, expected, false);
        /* The oracle drops the answers still queued when it meets "Host:", so there the arrival
         * of the bytes shows. */
        if (!strstr(r->ptr, "HTTP")) {
            same_exchange(ours, what, r->ptr, r->len, expected, true);
        }
        free(what);
        free(expected);
    }
}

/* redis-server never sees the end of an inline command behind a NUL; here the line ends where it
 * ends. A line too long is refused even when its end arrives in the same read, which redis-server
 * lets through depending on how much one read returns. */
static void inline_lines_end_at_their_end(void **state) {
    (void)state;
    same_exchange(ours, "NUL inline", "PI\0NG\r\nPING\r\n", 13,
                  "-ERR unknown command 'PI', with args beginning with: \\x0d\\x0a"
                  "+PONG\\x0d\\x0a",
                  false);
    char *line = malloc(70002);
    memset(line, 'a', 70000);
    memcpy(line + 70000, "\r\n", 2);
    same_exchange(ours, "long inline", line, 70002,
                  "-ERR Protocol error: too big inline request\\x0d\\x0a", false);
    free(line);
}

/* A prefix, then `count` times the filler, then a suffix: what never ends, or ends too late. */
static void long_lines_get_the_oracles_answer(void **state) {
    (void)state;
    static const struct {
        const char *prefix;
        char filler;
        size_t count;
        const char *suffix;
    } cases[] = {
        {"", 'a', 70000, ""},
        {"*", '1', 70000, ""},
        {"*1\r\n$", '1', 70000, ""},
        {"*", '1', 100, "\r\n"},
        {"ECHO ", 'a', 60000, "\r\n"},
        {"", 'x', 300, " y z\r\n"},
        {"nosuch ", 'y', 300, "\r\n"},
        {"nosuch ", ' ', 300, "\r\n"},
        {"SET k \"", 'v', 1000, "\r\n"},
    };
    if (!oracle) {
        TEST_SKIP("no redis-server to compare with");
    }
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);
        fputs(cases[i].prefix, out);
        for (size_t n = 0; n < cases[i].count; n++) {
            fputc(cases[i].filler, out);
        }
        fputs(cases[i].suffix, out);
        fclose(out);
        char *expected = exchange(oracle, text, len, false);
        same_exchange(ours, cases[i].prefix, text, len, expected, false);
        free(expected);
        free(text);
    }
}

/* ---- large requests ---- */

static void a_million_arguments_are_one_command(void **state) {
    (void)state;
    enum { ARGS = 1000000 };
    struct client *c = server_connect(ours);
    client_expect(c, "+OK", "SET", "a", "1", NULL);
    APPEND_TEXT(c, "*1000001\r\n$6\r\nEXISTS\r\n");
    for (int i = 0; i < ARGS; i++) {
        APPEND_TEXT(c, "$1\r\na\r\n");
    }
    assert_true(client_flush(c));
    client_expect_next(c, ":1000000");
    APPEND_TEXT(c, "*1000001\r\n$3\r\nDEL\r\n");
    for (int i = 0; i < ARGS; i++) {
        APPEND_TEXT(c, "$1\r\na\r\n");
    }
    assert_true(client_flush(c));
    client_expect_next(c, ":1");
    client_close(c);
}

static char *filled(size_t len) {
    char *p = malloc(len);
    for (size_t i = 0; i < len; i++) {
        p[i] = (char)(i * 31 + i / 251);
    }
    return p;
}

static void expect_bulk(struct client *c, int argc, const char *const *argv, const size_t *lens,
                        const char *ptr, size_t len) {
    struct reply *r = client_cmd_argv(c, argc, argv, lens);
    assert_non_null(r);
    assert_int_equal(r->type, '$');
    assert_int_equal(r->len, len);
    assert_memory_equal(r->str, ptr, len);
    reply_free(r);
}

static void names_of_a_mebibyte_with_every_byte_work(void **state) {
    (void)state;
    struct client *c = server_connect(ours);
    char *big = filled(MIB);
    const char *set[] = {"SET", big, "value"};
    const char *get[] = {"GET", big};
    reply_free(client_cmd_argv(c, 3, set, (size_t[]){3, MIB, 5}));
    expect_bulk(c, 2, get, (size_t[]){3, MIB}, "value", 5);
    const char *hset[] = {"HSET", "h", big, big, "small", "x"};
    reply_free(client_cmd_argv(c, 6, hset, (size_t[]){4, 1, MIB, MIB, 5, 1}));
    const char *hget[] = {"HGET", "h", big};
    expect_bulk(c, 3, hget, (size_t[]){4, 1, MIB}, big, MIB);
    client_expect(c, "\"x\"", "HGET", "h", "small", NULL);
    client_expect(c, ":2", "HLEN", "h", NULL);
    const char *rename_big[] = {"RENAME", "h", big};
    reply_free(client_cmd_argv(c, 3, rename_big, (size_t[]){6, 1, MIB}));
    const char *hget_big[] = {"HGET", big, big};
    expect_bulk(c, 3, hget_big, (size_t[]){4, MIB, MIB}, big, MIB);
    const char *hdel[] = {"HDEL", big, big};
    reply_free(client_cmd_argv(c, 3, hdel, (size_t[]){4, MIB, MIB}));
    const char *hlen[] = {"HLEN", big};
    struct reply *n = client_cmd_argv(c, 2, hlen, (size_t[]){4, MIB});
    assert_int_equal(n->integer, 1);
    reply_free(n);
    client_expect(c, "+OK", "FLUSHALL", NULL);
    free(big);
    client_close(c);
}

static void a_value_of_64_mebibytes_survives(void **state) {
    (void)state;
    struct client *c = server_connect(ours);
    size_t len = 64 * (size_t)MIB + 3;
    char *big = filled(len);
    const char *set[] = {"SET", "huge", big};
    struct reply *r = client_cmd_argv(c, 3, set, (size_t[]){3, 4, len});
    assert_non_null(r);
    assert_int_equal(r->type, '+');
    reply_free(r);
    const char *get[] = {"GET", "huge"};
    expect_bulk(c, 2, get, (size_t[]){3, 4}, big, len);
    client_expect(c, ":1", "DEL", "huge", NULL);
    free(big);
    client_close(c);
}

/* A claim costs nothing until the bytes come. */
static void a_claimed_length_takes_no_memory(void **state) {
    (void)state;
    long long before = server_status_bytes(ours, "VmRSS");
    struct client *claims[20];
    for (size_t i = 0; i < COUNT(claims); i++) {
        claims[i] = server_connect(ours);
        APPEND_TEXT(claims[i], "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nabc");
        assert_true(client_flush(claims[i]));
    }
    struct client *c = server_connect(ours);
    client_expect(c, "+PONG", "PING", NULL);
    usleep(100 * 1000);
    client_expect(c, "+PONG", "PING", NULL);
    long long after = server_status_bytes(ours, "VmRSS");
    print_message("20 claims of 512 MiB: resident %lld -> %lld KiB\n", before / 1024, after / 1024);
    assert_true(after - before < 64 * (long long)MIB);
    for (size_t i = 0; i < COUNT(claims); i++) {
        client_close(claims[i]);
    }
    client_expect(c, ":0", "EXISTS", "k", NULL);
    client_close(c);
}

static void ten_thousand_pipelined_commands_answer_in_order(void **state) {
    (void)state;
    struct client *c = server_connect_tcp(ours);
    reply_free(client_cmd(c, "DEL", "counter", NULL));
    for (int i = 0; i < 10000; i++) {
        client_append(c, "INCR", "counter", NULL);
    }
    assert_true(client_flush(c));
    for (int i = 1; i <= 10000; i++) {
        struct reply *r = client_read(c);
        assert_non_null(r);
        assert_int_equal(r->integer, i);
        reply_free(r);
    }
    client_close(c);
}

/* ---- many and slow clients ---- */

static double now_s(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void a_thousand_connections_are_served(void **state) {
    (void)state;
    enum { CONNECTIONS = 1000 };
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < CONNECTIONS + 100) {
        TEST_SKIP("only %ld files may be open at once", (long)files.rlim_cur);
    }
    struct client *clients[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) {
        clients[i] = i % 2 ? server_connect(ours) : server_connect_tcp(ours);
        client_append(clients[i], "PING", NULL);
        assert_true(client_flush(clients[i]));
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < CONNECTIONS; i++) {
            client_expect_next(clients[i], "+PONG");
            client_append(clients[i], "PING", NULL);
            assert_true(client_flush(clients[i]));
        }
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        client_close(clients[i]);
    }
    struct client *c = server_connect(ours);
    client_expect(c, "+PONG", "PING", NULL);
    client_close(c);
}

/* One client asks for 96 MiB and reads nothing: others are answered at once, what waits for it is
 * visible, and when it does read, all is there. */
static void a_reader_that_never_reads_delays_nobody(void **state) {
    (void)state;
    enum { REPLIES = 96 };
    struct client *c = server_connect(ours);
    char *value = filled(MIB);
    const char *set[] = {"SET", "mebibyte", value};
    reply_free(client_cmd_argv(c, 3, set, (size_t[]){3, 8, MIB}));
    struct client *lazy = server_connect(ours);
    client_expect(lazy, "+OK", "CLIENT", "SETNAME", "lazy", NULL);
    for (int i = 0; i < REPLIES; i++) {
        client_append(lazy, "GET", "mebibyte", NULL);
    }
    assert_int_equal(send(lazy->fd, lazy->out, lazy->out_len, MSG_NOSIGNAL), lazy->out_len);
    lazy->out_len = 0;
    double worst_s = 0;
    for (int i = 0; i < 200; i++) {
        double begin_s = now_s();
        client_expect(c, "+PONG", "PING", NULL);
        double took_s = now_s() - begin_s;
        worst_s = took_s > worst_s ? took_s : worst_s;
        usleep(1000);
    }
    struct reply *list = client_cmd(c, "CLIENT", "LIST", NULL);
    assert_non_null(list);
    char *row = strstr(list->str, "name=lazy");
    assert_non_null(row);
    row[strcspn(row, "\n")] = '\0';
    const char *omem = strstr(row, " omem=");
    const char *obl = strstr(row, " obl=");
    assert_non_null(omem);
    assert_non_null(obl);
    print_message("worst PING beside it %.1f ms;%.20s\n", worst_s * 1000, omem);
    assert_true(strtoll(omem + 6, NULL, 10) > 0 || strtoll(obl + 5, NULL, 10) > 0);
    assert_true(worst_s < 1.0);
    reply_free(list);
    for (int i = 0; i < REPLIES; i++) {
        struct reply *r = client_read(lazy);
        assert_non_null(r);
        assert_int_equal(r->len, MIB);
        assert_memory_equal(r->str, value, MIB);
        reply_free(r);
    }
    client_close(lazy);
    client_expect(c, ":1", "DEL", "mebibyte", NULL);
    client_close(c);
    free(value);
}

/* ---- servers of their own ---- */

/* Requests behind megabytes of replies that wait for their reader are answered all the same when the stream ends. */
static void an_input_that_ends_is_answered_whole(void **state) {
    (void)state;
    enum { REPLIES = 24 };
    struct client *c = server_connect(ours);
    char *value = filled(MIB);
    const char *set[] = {"SET", "mebibyte", value};
    reply_free(client_cmd_argv(c, 3, set, (size_t[]){3, 8, MIB}));
    static const char *const ends[] = {"", "*1\r\n$4\r\nQUIT\r\n", "*1\r\n:x\r\n"};
    static const char *const last[] = {NULL, "+OK", "-ERR Protocol error: expected '$', got ':'"};
    for (size_t i = 0; i < COUNT(ends); i++) {
        struct client *lazy = server_connect(ours);
        client_expect(c, ":0", "INCRBY", "ended", "0", NULL);
        for (int k = 0; k < REPLIES; k++) {
            client_append(lazy, "GET", "mebibyte", NULL);
        }
        client_append(lazy, "INCR", "ended", NULL);
        client_append_raw(lazy, ends[i], strlen(ends[i]));
        assert_true(client_flush(lazy));
        if (i == 0) {
            shutdown(lazy->fd, SHUT_WR);
        }
        usleep(100000);
        for (int k = 0; k < REPLIES; k++) {
            struct reply *r = client_read(lazy);
            assert_non_null(r);
            assert_int_equal(r->len, MIB);
            reply_free(r);
        }
        client_expect_next(lazy, ":1");
        if (last[i] != NULL) {
            client_expect_next(lazy, last[i]);
        }
        assert_true(client_wait_closed(lazy, 2000));
        client_close(lazy);
        client_expect(c, ":1", "DEL", "ended", NULL);
    }
    free(value);
    client_close(c);
}

static void before_auth_little_is_allowed(void **state) {
    (void)state;
    static const struct bytes_case cases[] = {
        CASE("PING\r\n"),
        CASE("GET k\r\n"),
        CASE("nosuch\r\n"),
        CASE("GET\r\n"),
        CASE("AUTH wrong\r\n"),
        CASE("AUTH default wrong\r\n"),
        CASE("AUTH nobody secret\r\n"),
        CASE("AUTH secret\r\nPING\r\n"),
        CASE("AUTH default secret\r\nPING\r\n"),
        CASE("AUTH secre\r\nAUTH secrets\r\nPING\r\n"),
        CASE("AUTH \"\"\r\n"),
        CASE("HELLO\r\n"),
        CASE("HELLO 3\r\n"),
        CASE("HELLO 3 AUTH default wrong\r\n"),
        CASE("HELLO 9\r\n"),
        CASE("RESET\r\n"),
        CASE("AUTH secret\r\nRESET\r\nGET k\r\n"),
        CASE("QUIT\r\n"),
        CASE("SELECT 1\r\n"),
        CASE("*10\r\n"),
        CASE("*11\r\n"),
        CASE("*2\r\n$16384\r\n"),
        CASE("*2\r\n$16385\r\n"),
        CASE("AUTH secret\r\n*11\r\n"),
        CASE("AUTH secret\r\n*2\r\n$16385\r\n"),
    };
    if (!oracle) {
        TEST_SKIP("no redis-server to compare with");
    }
    static const char *const args[] = {"--requirepass", "secret", NULL};
    struct server *locked = server_start(SERVER_ORACLE, args);
    struct server *guarded = server_start(SERVER_GOBLIN, args);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *expected = exchange(locked, cases[i].ptr, cases[i].len, false);
        same_exchange(guarded, cases[i].ptr, cases[i].ptr, cases[i].len, expected, false);
        free(expected);
    }
    struct client *c = server_connect(guarded);
    client_expect(c, "-WRONGPASS invalid username-password pair or user is disabled.", "AUTH",
                  "default", "secre", NULL);
    struct reply *hello = client_cmd(c, "HELLO", "3", "AUTH", "default", "secret", NULL);
    assert_non_null(hello);
    assert_int_equal(hello->type, '%');
    reply_free(hello);
    client_close(c);
    server_stop(guarded);
    server_stop(locked);
}

static void limits_are_options(void **state) {
    (void)state;
    static const char *const args[] = {"--maxclients",
                                       "4",
                                       "--timeout",
                                       "1",
                                       "--proto-max-bulk-len",
                                       "1mb",
                                       "--client-query-buffer-limit",
                                       "1mb",
                                       "--unixsocketperm",
                                       "700",
                                       NULL};
    struct server *s = server_start(SERVER_GOBLIN, args);
    struct stat st;
    assert_int_equal(stat(s->socket_path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    struct client *many[5];
    for (int i = 0; i < 4; i++) {
        many[i] = server_connect(s);
        client_expect(many[i], "+PONG", "PING", NULL);
    }
    many[4] = server_connect(s);
    client_expect_next(many[4], "-ERR max number of clients reached");
    assert_true(client_wait_closed(many[4], 5000));
    client_close(many[4]);
    APPEND_TEXT(many[0], "*2\r\n$4\r\nECHO\r\n$1048577\r\n");
    assert_true(client_flush(many[0]));
    client_expect_next(many[0], "-ERR Protocol error: invalid bulk length");
    assert_true(client_wait_closed(many[0], 5000));
    /* More unread request than the limit: the connection ends, with or without a word. */
    char *value = filled(900 * 1024);
    APPEND_TEXT(many[1], "*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$921600\r\n");
    client_append_raw(many[1], value, 900 * 1024);
    APPEND_TEXT(many[1], "\r\n$1\r\nb\r\n$921600\r\n");
    client_append_raw(many[1], value, 900 * 1024);
    (void)client_flush(many[1]);
    assert_true(client_wait_closed(many[1], 5000));
    free(value);
    /* The idle ones are closed after a second of silence. */
    assert_true(client_wait_closed(many[2], 10000));
    assert_true(client_wait_closed(many[3], 10000));
    for (int i = 0; i < 4; i++) {
        client_close(many[i]);
    }
    server_stop(s);
}

static void ipv6_is_served_when_asked(void **state) {
    (void)state;
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    if (probe < 0 || access("/proc/net/if_inet6", R_OK) != 0) {
        TEST_SKIP("this machine has no IPv6");
    }
    close(probe);
    static const char *const args[] = {"--bind", "127.0.0.1 ::1", NULL};
    struct server *s = server_start(SERVER_GOBLIN, args);
    struct client *c = client_connect_tcp("::1", s->port);
    bool served = c != NULL;
    if (c) {
        client_expect(c, "+PONG", "PING", NULL);
        client_close(c);
    }
    server_stop(s);
    assert_true(served);
}

/* Start-up refuses what it cannot do, with a word about what it was. */
static void a_bad_start_is_refused_by_name(void **state) {
    (void)state;
    char port[16];
    char used_port[16];
    snprintf(port, sizeof(port), "%d", free_port());
    snprintf(used_port, sizeof(used_port), "%d", ours->port);
    const struct {
        const char *args[8];
        const char *named;
    } cases[] = {
        {{"--port", used_port, "--bind", "127.0.0.1"}, used_port},
        {{"--port", port, "--unixsocket", "/nonexistent/folder/socket"}, "/nonexistent/folder"},
        {{"--port", port, "--no-such-option", "1"}, "no-such-option"},
        {{"--port", "abc"}, "port"},
        {{"--port", "70000"}, "port"},
        {{"--port", port, "--databases", "0"}, "databases"},
        {{"--port", port, "--databases", "-3"}, "databases"},
        {{"--port", port, "--maxclients", ""}, "maxclients"},
        {{"--port", port, "--bind", "not.an.address."}, "not.an.address."},
        {{"--port", port, "--dir", "/nonexistent/folder"}, "/nonexistent/folder"},
        {{"--port", port, "--enable-debug-command", "perhaps"}, "enable-debug-command"},
        {{"/nonexistent/config/file"}, "/nonexistent/config/file"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[8192];
        const char *args[12] = {NULL};
        memcpy(args, cases[i].args, sizeof(cases[i].args));
        int status = server_run(SERVER_GOBLIN, args, out, sizeof(out));
        if (status <= 0 || !strstr(out, cases[i].named)) {
            fprintf(stderr,
                    "%s %s ...: exit status %d, expected a failure that names %s; it said:\n%s\n",
                    args[0], args[1] ? args[1] : "", status, cases[i].named, out);
        }
        assert_true(status > 0);
        assert_non_null(strstr(out, cases[i].named));
    }
    struct client *c = server_connect(ours);
    client_expect(c, "+PONG", "PING", NULL);
    client_close(c);
}

static void a_server_in_the_background_ends_at_sigterm(void **state) {
    (void)state;
    char dir[] = "/tmp/goblin-test-XXXXXX", pidfile[64], port[16], out[1024];
    assert_non_null(mkdtemp(dir));
    snprintf(pidfile, sizeof(pidfile), "%s/pid", dir);
    snprintf(port, sizeof(port), "%d", free_port());
    const char *args[] = {"--port", port,    "--bind",    "127.0.0.1", "--daemonize",
                          "yes",    "--dir", dir,         "--pidfile", pidfile,
                          "--save", "",      "--logfile", "log",       NULL};
    assert_int_equal(server_run(SERVER_GOBLIN, args, out, sizeof(out)), 0);
    int pid = 0;
    for (int i = 0; i < 1000 && pid == 0; i++, usleep(10000)) {
        FILE *f = fopen(pidfile, "r");
        if (f != NULL) {
            (void)!fscanf(f, "%d", &pid);
            fclose(f);
        }
    }
    assert_true(pid > 1 && kill(pid, SIGTERM) == 0);
    int waited = 0;
    while (waited < 1000 && kill(pid, 0) == 0) {
        usleep(10000);
        waited++;
    }
    kill(pid, SIGKILL);
    assert_true(waited < 1000);
    assert_int_equal(access(pidfile, F_OK), -1);
    snprintf(out, sizeof(out), "%s/log", dir);
    unlink(out);
    rmdir(dir);
}

static void a_config_file_is_read(void **state) {
    (void)state;
    char path[] = "/tmp/goblin-conf-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    int port = free_port();
    dprintf(fd, "# a comment\n\nport %d\nbind 127.0.0.1\nrequirepass \"a b\"\nsave \"\"\n", port);
    close(fd);
    struct server s = {.kind = SERVER_GOBLIN, .port = port};
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const char *program = getenv("GOBLIN_CORE");
        (void)freopen("/dev/null", "w", stdout);
        execl(program, program, path, "--databases", "3", (char *)NULL);
        _exit(127);
    }
    s.pid = pid;
    struct client *c = NULL;
    for (int i = 0; i < 1000 && !c; i++) {
        c = client_connect_tcp("127.0.0.1", port);
        usleep(10000);
    }
    assert_non_null(c);
    client_expect(c, "-NOAUTH Authentication required.", "DBSIZE", NULL);
    client_expect(c, "+OK", "AUTH", "a b", NULL);
    client_expect(c, "+OK", "SELECT", "2", NULL);
    client_expect(c, "-ERR DB index is out of range", "SELECT", "3", NULL);
    client_append(c, "SHUTDOWN", "NOSAVE", NULL);
    assert_true(client_flush(c));
    assert_true(client_wait_closed(c, 10000));
    client_close(c);
    for (int i = 0; i < 1000 && server_alive(&s); i++) {
        usleep(10000);
    }
    assert_false(server_alive(&s));
    unlink(path);
}

static int start(void **state) {
    (void)state;
    ours = server_start(SERVER_GOBLIN, NULL);
    oracle = server_available(SERVER_ORACLE) ? server_start(SERVER_ORACLE, NULL) : NULL;
    return 0;
}

static int stop(void **state) {
    (void)state;
    server_stop(oracle);
    server_stop(ours);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_requests_get_the_oracles_answer),
        cmocka_unit_test(inline_lines_end_at_their_end),
        cmocka_unit_test(long_lines_get_the_oracles_answer),
        cmocka_unit_test(a_million_arguments_are_one_command),
        cmocka_unit_test(names_of_a_mebibyte_with_every_byte_work),
        cmocka_unit_test(a_value_of_64_mebibytes_survives),
        cmocka_unit_test(a_claimed_length_takes_no_memory),
        cmocka_unit_test(ten_thousand_pipelined_commands_answer_in_order),
        cmocka_unit_test(a_thousand_connections_are_served),
        cmocka_unit_test(a_reader_that_never_reads_delays_nobody),
        cmocka_unit_test(an_input_that_ends_is_answered_whole),
        cmocka_unit_test(before_auth_little_is_allowed),
        cmocka_unit_test(limits_are_options),
        cmocka_unit_test(ipv6_is_served_when_asked),
        cmocka_unit_test(a_bad_start_is_refused_by_name),
        cmocka_unit_test(a_config_file_is_read),
        cmocka_unit_test(a_server_in_the_background_ends_at_sigterm),
    };
    return tests_result(cmocka_run_group_tests(tests, start, stop), COUNT(tests));
}
