/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/listener.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

static struct loop *loop;
static struct listener *listener;
static char error[LISTENER_ERROR_LEN];
static char dir[64], path[96];
static int accepted_fds[256];
static size_t accepted_count;
static bool accepted_unix;

static void on_accepted(void *user, int fd, bool is_unix) {
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    accepted_fds[accepted_count++] = fd;
    accepted_unix = is_unix;
}

static int setup(void **state) {
    loop = loop_create((struct loop_hooks){0});
    listener = listener_create(loop, (struct listener_handler){.accepted = on_accepted});
    accepted_count = 0;
    error[0] = '\0';
    snprintf(dir, sizeof(dir), "/tmp/gc_listener_XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/sock", dir);
    return 0;
}

static int teardown(void **state) {
    listener_destroy(listener);
    loop_destroy(loop);
    for (size_t i = 0; i < accepted_count; i++) {
        close(accepted_fds[i]);
    }
    unlink(path);
    rmdir(dir);
    return 0;
}

static enum status open_one(const char *address, int port) {
    return listener_open_tcp(listener, &address, 1, port, 511, error);
}

static int connect_tcp(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    (void)!connect(fd, (struct sockaddr *)&to, sizeof(to));
    return fd;
}

static int connect_unix(void) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void turns(int ms) {
    int64_t end_us = clock_monotonic_us() + ms * 1000;
    while (clock_monotonic_us() < end_us) {
        assert_int_equal(loop_turn(loop, 5), ST_OK);
    }
}

static void accepts_over_tcp(void **state) {
    assert_int_equal(open_one("127.0.0.1", 0), ST_OK);
    assert_int_equal(listener_count(listener), 1);
    int fd = connect_tcp(listener_port(listener));
    turns(20);
    assert_int_equal(accepted_count, 1);
    assert_false(accepted_unix);
    close(fd);
}

static void a_storm_is_accepted_in_batches(void **state) {
    assert_int_equal(open_one("*", 0), ST_OK);
    int fds[150];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = connect_tcp(listener_port(listener));
    }
    usleep(20000);
    assert_int_equal(loop_turn(loop, 100), ST_OK);
    assert_int_equal(accepted_count, LISTENER_BATCH);
    turns(30);
    assert_int_equal(accepted_count, ARRAY_LEN(fds));
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        close(fds[i]);
    }
}

static void a_port_in_use_is_named(void **state) {
    assert_int_equal(open_one("127.0.0.1", 0), ST_OK);
    int port = listener_port(listener);
    char expected[LISTENER_ERROR_LEN];
    snprintf(expected, sizeof(expected),
             "Could not create server TCP listening socket 127.0.0.1:%d: bind: Address already in "
             "use",
             port);
    assert_int_equal(open_one("127.0.0.1", port), ST_IO);
    assert_string_equal(error, expected);
    assert_int_equal(open_one("-127.0.0.1", port), ST_IO); /* optional is not about ports in use */
    assert_int_equal(listener_count(listener), 1);
}

static void an_absent_address_fails_unless_optional(void **state) {
    assert_int_equal(open_one("192.0.2.7", 0), ST_IO);
    assert_string_equal(error, "Could not create server TCP listening socket 192.0.2.7:0: bind: "
                               "Cannot assign requested address");
    const char *both[] = {"127.0.0.1", "-192.0.2.7", "-2001:db8::7"};
    assert_int_equal(listener_open_tcp(listener, both, 3, 0, 511, error), ST_OK);
    assert_int_equal(listener_count(listener), 1);
    listener_close(listener);
    const char *failing[] = {"127.0.0.1", "192.0.2.7"};
    assert_int_equal(listener_open_tcp(listener, failing, 2, 0, 511, error), ST_IO);
    assert_int_equal(listener_count(listener), 0); /* nothing half open */
    assert_int_equal(open_one("-192.0.2.7", 0), ST_IO);
    assert_int_equal(open_one("no such host", 0), ST_IO);
    assert_int_equal(open_one("", 0), ST_OK);
    assert_int_equal(listener_count(listener), 0);
}

static void wildcards_of_both_families_share_a_port(void **state) {
    assert_int_equal(open_one("*", 0), ST_OK);
    int port = listener_port(listener);
    (void)!open_one("-::*", port); /* a machine without IPv6 has none */
    int fd = connect_tcp(port);
    turns(20);
    assert_int_equal(accepted_count, 1);
    close(fd);
}

static void accepts_over_a_unix_socket(void **state) {
    assert_int_equal(listener_open_unix(listener, path, 0700, 511, error), ST_OK);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    int fd = connect_unix();
    assert_true(fd >= 0);
    turns(10);
    assert_int_equal(accepted_count, 1);
    assert_true(accepted_unix);
    assert_int_equal(listener_port(listener), 0);
    close(fd);
    listener_close(listener);
    assert_int_equal(stat(path, &info), -1);
}

static void a_stale_socket_file_is_replaced(void **state) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(listener_open_unix(listener, path, 0, 511, error), ST_IO); /* it answers */
    char expected[LISTENER_ERROR_LEN];
    snprintf(expected, sizeof(expected),
             "Could not create server Unix listening socket %s: bind: Address already in use",
             path);
    assert_string_equal(error, expected);
    close(fd); /* the file stays behind */
    assert_int_equal(listener_open_unix(listener, path, 0, 511, error), ST_OK);
    fd = connect_unix();
    assert_true(fd >= 0);
    close(fd);
}

static void a_file_of_another_kind_is_left_alone(void **state) {
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    assert_int_equal(listener_open_unix(listener, path, 0, 511, error), ST_IO);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 1);
}

static void an_unusable_unix_path_is_named(void **state) {
    assert_int_equal(listener_open_unix(listener, "/nonexistent/x.sock", 0, 511, error), ST_IO);
    assert_string_equal(error, "Could not create server Unix listening socket /nonexistent/x.sock: "
                               "bind: No such file or directory");
    char longer[200];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(listener_open_unix(listener, longer, 0, 511, error), ST_IO);
    assert_non_null(strstr(error, "File name too long"));
}

static void a_file_that_is_not_ours_any_more_stays(void **state) {
    assert_int_equal(listener_open_unix(listener, path, 0, 511, error), ST_OK);
    assert_int_equal(unlink(path), 0);
    int fd = open(path, O_CREAT | O_WRONLY, 0600); /* another process took the name */
    close(fd);
    listener_close(listener);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
}

static void running_out_of_descriptors_does_not_spin(void **state) {
    assert_int_equal(open_one("127.0.0.1", 0), ST_OK);
    int port = listener_port(listener);
    int fd = connect_tcp(port);
    struct rlimit old, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = old;
    low.rlim_cur = (rlim_t)fd + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    int wakeups = 0;
    int64_t end_us = clock_monotonic_us() + 350 * 1000;
    while (clock_monotonic_us() < end_us) {
        assert_int_equal(loop_turn(loop, 400), ST_OK);
        wakeups++;
    }
    assert_int_equal(accepted_count, 0);
    assert_in_range(wakeups, 1, 12);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    turns(2 * LISTENER_PAUSE_MS);
    assert_int_equal(accepted_count, 1);
    close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(accepts_over_tcp),
        TEST(a_storm_is_accepted_in_batches),
        TEST(a_port_in_use_is_named),
        TEST(an_absent_address_fails_unless_optional),
        TEST(wildcards_of_both_families_share_a_port),
        TEST(accepts_over_a_unix_socket),
        TEST(a_stale_socket_file_is_replaced),
        TEST(a_file_of_another_kind_is_left_alone),
        TEST(an_unusable_unix_path_is_named),
        TEST(a_file_that_is_not_ours_any_more_stays),
        TEST(running_out_of_descriptors_does_not_spin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
