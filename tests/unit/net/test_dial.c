/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/dial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

static int listening, other;
static char port[16];
static struct dial *d;

static int setup(void **state) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&address, len) != 0 || listen(listening, 1) != 0 ||
        getsockname(listening, (struct sockaddr *)&address, &len) != 0) {
        return -1;
    }
    snprintf(port, sizeof(port), "%d", ntohs(address.sin_port));
    return 0;
}

static int teardown(void **state) {
    return close(listening);
}

static int connect_both(void **state) {
    if (dial_open("127.0.0.1", port, 1000, &d) != ST_OK) {
        return -1;
    }
    other = accept(listening, NULL, NULL);
    return other < 0;
}

static int disconnect(void **state) {
    dial_close(d);
    return close(other);
}

static void say(const char *text) {
    assert_int_equal(write(other, text, strlen(text)), strlen(text));
}

static void assert_line(const char *text) {
    struct bytes line;
    assert_int_equal(dial_read_line(d, 1000, &line), ST_OK);
    assert_true(bytes_equal(line, bytes_from_cstr(text)));
}

static void lines_come_whole_whatever_their_pieces(void **state) {
    struct bytes line;
    say("one\r\ntwo\n\r\nthr");
    assert_line("one");
    assert_line("two");
    assert_line("");
    assert_int_equal(dial_read_line(d, 20, &line), ST_AGAIN);
    say("ee\r\n");
    assert_line("three");
    assert_int_equal(shutdown(other, SHUT_WR), 0);
    assert_int_equal(dial_read_line(d, 1000, &line), ST_CLOSED);
}

static void a_long_line_is_refused(void **state) {
    struct bytes line;
    for (int i = 0; i < DIAL_LINE_MAX / 8 + 8; i++) {
        say("12345678");
    }
    assert_int_equal(dial_read_line(d, 1000, &line), ST_SYNTAX);
}

static void waiting_ends_in_time(void **state) {
    struct bytes line;
    int64_t start_us = clock_monotonic_us();
    assert_int_equal(dial_read_line(d, 50, &line), ST_AGAIN);
    assert_true(clock_monotonic_us() - start_us >= 49000);
}

/* Nobody reads: the kernel's buffers fill up. */
static void sending_ends_in_time_and_keeps_what_comes(void **state) {
    size_t len = (size_t)32 << 20;
    char *much = calloc(1, len);
    assert_non_null(much);
    say("meanwhile\r\n");
    assert_int_equal(dial_send(d, BYTES(much, len), 50), ST_AGAIN);
    free(much);
    assert_line("meanwhile");
}

static void sending_to_who_closed_fails(void **state) {
    struct bytes line;
    close(other);
    other = dup(listening);
    assert_int_equal(dial_read_line(d, 1000, &line), ST_CLOSED);
    enum status st = ST_OK;
    for (int i = 0; i < 100 && st == ST_OK; i++) {
        st = dial_send(d, BYTES_LIT("hello"), 100);
        usleep(1000);
    }
    assert_int_equal(st, ST_CLOSED);
}

static void nobody_there(void **state) {
    struct dial *none = NULL;
    assert_int_equal(dial_open("127.0.0.1", "1", 1000, &none), ST_IO);
    assert_int_equal(dial_open("127.0.0.1", "http", 1000, &none), ST_IO);
    assert_int_equal(dial_open("no.such.host.invalid", "80", 1000, &none), ST_IO);
    assert_null(none);
    dial_close(none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_come_whole_whatever_their_pieces, connect_both,
                                        disconnect),
        cmocka_unit_test_setup_teardown(a_long_line_is_refused, connect_both, disconnect),
        cmocka_unit_test_setup_teardown(waiting_ends_in_time, connect_both, disconnect),
        cmocka_unit_test_setup_teardown(sending_ends_in_time_and_keeps_what_comes, connect_both,
                                        disconnect),
        cmocka_unit_test_setup_teardown(sending_to_who_closed_fails, connect_both, disconnect),
        cmocka_unit_test(nobody_there),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
