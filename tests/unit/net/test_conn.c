/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/conn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- an owner that echoes ---- */

struct peer {
    struct conn *conn;
    struct conn *victim; /* closed when this one has input */
    int fd;              /* our end */
    int reads, closing, closed, drained;
    bool eof;
    bool close_on_input;
};

static struct loop *loop;
static struct conn_set set;

static void on_readable(struct conn *conn) {
    struct peer *peer = conn->user;
    peer->reads++;
    assert_true(conn_is_open(conn));
    if (peer->victim != NULL) {
        conn_close(peer->victim);
        conn_close(peer->victim); /* twice is once */
    }
    if (peer->close_on_input) {
        conn_close(conn);
        return;
    }
    char bytes[4096];
    size_t n;
    enum status st = conn_read(conn, bytes, sizeof(bytes), &n);
    if (st == ST_OK) {
        buf_append(conn_out(conn), bytes, n);
    } else if (st == ST_CLOSED) {
        peer->eof = true;
        conn_close_after_flush(conn);
    } else if (st == ST_IO) {
        conn_close(conn);
    }
}

static void on_closing(struct conn *conn) {
    ((struct peer *)conn->user)->closing++;
}

static void on_closed(struct conn *conn) {
    struct peer *peer = conn->user;
    peer->closed++;
    peer->conn = NULL;
}

static void on_drained(struct conn *conn) {
    ((struct peer *)conn->user)->drained++;
}

static void flush_all(struct loop *l, void *user) {
    conn_set_flush(&set);
}

static int setup(void **state) {
    loop = loop_create((struct loop_hooks){.before_sleep = flush_all});
    struct conn_handler handler = {on_readable, on_closing, on_closed, on_drained};
    conn_set_init(&set, loop, handler, 300);
    return 0;
}

static void on_closed_late(struct conn *conn) {
}

/* Connections that are still open name peers on the stack of a test that is over. */
static int teardown(void **state) {
    set.handler = (struct conn_handler){.readable = on_readable, .closed = on_closed_late};
    conn_set_deinit(&set);
    assert_int_equal(set.count, 0);
    loop_destroy(loop);
    return 0;
}

static void peer_open(struct peer *peer) {
    int s[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s), 0);
    peer->fd = s[1];
    peer->conn = conn_create(&set, s[0], true, peer);
    assert_non_null(peer->conn);
}

static void peer_say(struct peer *peer, const char *text) {
    assert_int_equal(write(peer->fd, text, strlen(text)), strlen(text));
}

static void peer_hears(struct peer *peer, const char *text) {
    char got[128];
    assert_int_equal(read(peer->fd, got, sizeof(got)), strlen(text));
    assert_memory_equal(got, text, strlen(text));
}

static void turn(int times) {
    for (int i = 0; i < times; i++) {
        assert_int_equal(loop_turn(loop, 0), ST_OK);
    }
}

/* ---- tests ---- */

static void echoes_and_keeps_nothing(void **state) {
    struct peer peer = {0};
    peer_open(&peer);
    for (int i = 0; i < 3; i++) {
        peer_say(&peer, "hello");
        turn(2);
        peer_hears(&peer, "hello");
        assert_int_equal(peer.conn->out.cap, 0);
        assert_int_equal(conn_out_len(peer.conn), 0);
        assert_int_equal(set.spare_count, 1); /* one buffer serves all three */
    }
    close(peer.fd);
    turn(2);
    assert_int_equal(peer.closed, 1);
}

static void what_is_sent_is_counted(void **state) {
    struct peer peer = {0};
    peer_open(&peer);
    set.sends = set.sent_bytes = 0;
    peer_say(&peer, "hello");
    turn(2);
    peer_hears(&peer, "hello");
    assert_int_equal(set.sends, 1);
    assert_int_equal(set.sent_bytes, 5);
    close(peer.fd);
    turn(2);
}

static void a_half_closed_peer_gets_its_replies(void **state) {
    struct peer peer = {0};
    peer_open(&peer);
    peer_say(&peer, "last words");
    assert_int_equal(shutdown(peer.fd, SHUT_WR), 0);
    turn(4);
    peer_hears(&peer, "last words");
    assert_true(peer.eof);
    assert_int_equal(peer.closed, 1);
    char c;
    assert_int_equal(read(peer.fd, &c, 1), 0);
    close(peer.fd);
}

#define LOTS ((size_t)8 << 20)

static size_t drain_peer(struct peer *peer) {
    static char sink[65536];
    size_t total = 0;
    for (;;) {
        ssize_t n = read(peer->fd, sink, sizeof(sink));
        if (n <= 0) {
            return total;
        }
        for (ssize_t i = 0; i < n; i++) {
            assert_int_equal(sink[i], 'z');
        }
        total += (size_t)n;
    }
}

static void a_reader_that_stops_is_waited_for(void **state) {
    struct peer peer = {0};
    peer_open(&peer);
    char *big = malloc(LOTS);
    memset(big, 'z', LOTS);
    buf_append(conn_out(peer.conn), big, LOTS);
    turn(1);
    assert_true(conn_out_len(peer.conn) > 0);
    assert_true((peer.conn->io.events & LOOP_WRITE) != 0);
    size_t before = conn_out_len(peer.conn);
    buf_append(conn_out(peer.conn), big, 1000); /* more while waiting: no send of its own */
    turn(1);
    assert_int_equal(conn_out_len(peer.conn), before + 1000);
    size_t got = 0;
    for (int i = 0; i < 100000 && got < LOTS + 1000; i++) {
        got += drain_peer(&peer);
        turn(1);
    }
    assert_int_equal(got, LOTS + 1000);
    assert_int_equal(peer.drained, 1);
    assert_int_equal(peer.conn->io.events, LOOP_READ);
    assert_int_equal(peer.conn->out.cap, 0); /* large: given back to the system */
    assert_int_equal(set.spare_count, 0);
    free(big);
    close(peer.fd);
}

static void a_half_closed_peer_does_not_spin(void **state) {
    struct peer peer = {0};
    peer_open(&peer);
    char *big = malloc(LOTS);
    memset(big, 'z', LOTS);
    buf_append(conn_out(peer.conn), big, LOTS);
    free(big);
    assert_int_equal(shutdown(peer.fd, SHUT_WR), 0);
    turn(10);
    assert_true(peer.eof);
    assert_int_equal(peer.reads, 1);
    assert_int_equal(peer.closed, 0); /* its replies are still to be read */
    size_t got = 0;
    for (int i = 0; i < 100000 && peer.closed == 0; i++) {
        got += drain_peer(&peer);
        turn(1);
    }
    assert_int_equal(got + drain_peer(&peer), LOTS);
    assert_int_equal(peer.closed, 1);
    close(peer.fd);
}

static void close_after_flush_sends_all_first(void **state) {
    struct peer peer = {0};
    peer_open(&peer);
    char *big = malloc(LOTS);
    memset(big, 'z', LOTS);
    buf_append(conn_out(peer.conn), big, LOTS);
    free(big);
    conn_close_after_flush(peer.conn);
    peer_say(&peer, "not read any more");
    size_t got = 0;
    for (int i = 0; i < 100000 && peer.closed == 0; i++) {
        turn(1);
        got += drain_peer(&peer);
    }
    got += drain_peer(&peer);
    assert_int_equal(got, LOTS);
    assert_int_equal(peer.closed, 1);
    assert_int_equal(peer.reads, 0);
    close(peer.fd);
}

static void close_after_flush_with_nothing_to_send_closes(void **state) {
    struct peer peer = {0};
    peer_open(&peer);
    conn_close_after_flush(peer.conn);
    assert_int_equal(peer.closing, 1);
    assert_int_equal(peer.closed, 0); /* not before the end of the turn */
    turn(1);
    assert_int_equal(peer.closed, 1);
    close(peer.fd);
}

static void closing_from_handlers_is_safe(void **state) {
    struct peer a = {0}, b = {0}, c = {.close_on_input = true};
    peer_open(&a);
    peer_open(&b);
    peer_open(&c);
    a.victim = b.conn;
    b.victim = a.conn;
    peer_say(&a, "x");
    peer_say(&b, "x");
    peer_say(&c, "x");
    turn(1);
    assert_int_equal(a.reads + b.reads, 1); /* the first one closed the other */
    struct peer *victim = a.reads == 0 ? &a : &b;
    a.victim = b.victim = NULL;
    assert_false(conn_is_open(victim->conn)); /* the memory is still good in this turn */
    buf_append_cstr(conn_out(victim->conn), "into the void");
    assert_int_equal(conn_flush(victim->conn), ST_CLOSED);
    turn(1);
    assert_int_equal(victim->closing, 1);
    assert_int_equal(victim->closed, 1);
    assert_int_equal(c.closed, 1);
    assert_int_equal(set.count, 1);
    close(a.fd);
    close(b.fd);
    close(c.fd);
}

static void closing_takes_a_connection_out_of_the_flush(void **state) {
    struct peer peers[5] = {0};
    for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
        peer_open(&peers[i]);
        buf_append_cstr(conn_out(peers[i].conn), "x");
    }
    conn_close(peers[2].conn);
    conn_close(peers[4].conn);
    turn(1);
    for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
        char c;
        assert_int_equal(read(peers[i].fd, &c, 1), i == 2 || i == 4 ? 0 : 1);
        close(peers[i].fd);
    }
    assert_int_equal(set.count, 3);
    assert_ptr_equal(set.first, peers[0].conn);
    assert_ptr_equal(set.last, peers[3].conn);
}

static void a_vanished_peer_raises_no_signal(void **state) {
    struct peer peer = {0};
    peer_open(&peer);
    close(peer.fd);
    buf_append_cstr(conn_out(peer.conn), "x");
    assert_int_equal(conn_flush(peer.conn), ST_CLOSED);
    assert_false(conn_is_open(peer.conn));
    turn(1);
    assert_int_equal(peer.closed, 1);
}

static void a_paused_connection_is_not_read(void **state) {
    struct peer peer = {0};
    peer_open(&peer);
    conn_pause_reading(peer.conn, true);
    peer_say(&peer, "x");
    turn(3);
    assert_int_equal(peer.reads, 0);
    conn_pause_reading(peer.conn, false);
    turn(2);
    assert_int_equal(peer.reads, 1);
    conn_pause_reading(peer.conn, true);
    close(peer.fd); /* noticed all the same */
    turn(2);
    assert_int_equal(peer.closed, 1);
}

static void failed_output_closes(void **state) {
    struct peer peer = {0};
    peer_open(&peer);
    conn_out(peer.conn)->failed = true;
    turn(1);
    assert_int_equal(peer.closed, 1);
    close(peer.fd);
}

static void tcp_has_its_options_and_addresses(void **state) {
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in name = {.sin_family = AF_INET};
    socklen_t len = sizeof(name);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(server, (struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(listen(server, 1), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&name, &len), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&name, sizeof(name)), 0);
    struct peer peer = {.fd = client};
    int fd = accept4(server, NULL, NULL, SOCK_NONBLOCK);
    peer.conn = conn_create(&set, fd, false, &peer);
    int value = 0;
    len = sizeof(value);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &len), 0);
    assert_int_not_equal(value, 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, &len), 0);
    assert_int_equal(value, 300);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &value, &len), 0);
    assert_int_equal(value, 100);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &value, &len), 0);
    assert_int_equal(value, 3);
    char local[CONN_ADDRESS_LEN], remote[CONN_ADDRESS_LEN], expected[CONN_ADDRESS_LEN];
    conn_local_address(peer.conn, local);
    conn_peer_address(peer.conn, remote);
    snprintf(expected, sizeof(expected), "127.0.0.1:%d", ntohs(name.sin_port));
    assert_string_equal(local, expected);
    assert_int_equal(getsockname(client, (struct sockaddr *)&name, &len), 0);
    assert_memory_equal(remote, "127.0.0.1:", 10);
    assert_string_not_equal(remote, local);
    /* an error reply survives the close although input is left unread */
    peer_say(&peer, "garbage that nobody reads");
    buf_append_cstr(conn_out(peer.conn), "-ERR Protocol error\r\n");
    conn_close_after_flush(peer.conn);
    usleep(2000);
    turn(2);
    usleep(2000);
    peer_hears(&peer, "-ERR Protocol error\r\n");
    char c;
    assert_int_equal(read(client, &c, 1), 0);
    assert_int_equal(peer.closed, 1);
    close(client);
    close(server);
}

static void many_connections_drain_through_few_buffers(void **state) {
    static struct peer peers[200];
    memset(peers, 0, sizeof(peers));
    for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
        peer_open(&peers[i]);
        peer_say(&peers[i], "ping");
    }
    turn(3);
    assert_int_equal(set.spare_count, CONN_SPARE_MAX);
    for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
        peer_hears(&peers[i], "ping");
        assert_int_equal(peers[i].conn->out.cap, 0);
        close(peers[i].fd);
    }
    turn(3);
    assert_int_equal(set.count, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(echoes_and_keeps_nothing),
        TEST(what_is_sent_is_counted),
        TEST(a_half_closed_peer_gets_its_replies),
        TEST(a_half_closed_peer_does_not_spin),
        TEST(a_reader_that_stops_is_waited_for),
        TEST(close_after_flush_sends_all_first),
        TEST(close_after_flush_with_nothing_to_send_closes),
        TEST(closing_from_handlers_is_safe),
        TEST(closing_takes_a_connection_out_of_the_flush),
        TEST(a_vanished_peer_raises_no_signal),
        TEST(a_paused_connection_is_not_read),
        TEST(failed_output_closes),
        TEST(tcp_has_its_options_and_addresses),
        TEST(many_connections_drain_through_few_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
