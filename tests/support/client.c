/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

enum { READ_CHUNK_BYTES = 256 * 1024, MAX_ARGS = 64 };

static int64_t now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void *grow(void *ptr, size_t *cap, size_t need) {
    if (need <= *cap) {
        return ptr;
    }
    size_t cap_new = *cap ? *cap : 4096;
    while (cap_new < need) {
        cap_new *= 2;
    }
    ptr = realloc(ptr, cap_new);
    if (!ptr) {
        abort();
    }
    *cap = cap_new;
    return ptr;
}

/* ---- connecting ---- */

static struct client *client_new(int fd, const struct sockaddr *addr, socklen_t addr_len) {
    if (fd < 0) {
        return NULL;
    }
    if (connect(fd, addr, addr_len) != 0) {
        close(fd);
        return NULL;
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    struct client *c = calloc(1, sizeof(*c));
    if (!c) {
        abort();
    }
    c->fd = fd;
    c->timeout_ms = 30000;
    return c;
}

struct client *client_connect_unix(const char *path) {
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(addr.sun_path)) {
        return NULL;
    }
    memcpy(addr.sun_path, path, strlen(path) + 1);
    return client_new(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                      (const struct sockaddr *)&addr, sizeof(addr));
}

struct client *client_connect_tcp(const char *host, int port) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct client *c = NULL;
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        c = client_new(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), (const struct sockaddr *)&v4,
                       sizeof(v4));
    } else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
        c = client_new(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0),
                       (const struct sockaddr *)&v6, sizeof(v6));
    }
    if (c) {
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    }
    return c;
}

void client_close(struct client *c) {
    if (!c) {
        return;
    }
    close(c->fd);
    free(c->in);
    free(c->out);
    free(c);
}

/* ---- sending ---- */

void client_append_raw(struct client *c, const void *ptr, size_t len) {
    if (len == 0) {
        return;
    }
    c->out = grow(c->out, &c->out_cap, c->out_len + len);
    memcpy(c->out + c->out_len, ptr, len);
    c->out_len += len;
}

void client_append_argv(struct client *c, int argc, const char *const *argv, const size_t *lens) {
    char *text = NULL;
    int len = redisFormatCommandArgv(&text, argc, (const char **)argv, lens);
    if (len < 0) {
        abort();
    }
    client_append_raw(c, text, (size_t)len);
    redisFreeCommand(text);
}

static void append_va(struct client *c, va_list ap) {
    const char *argv[MAX_ARGS];
    size_t lens[MAX_ARGS];
    int argc = 0;
    const char *arg;
    while ((arg = va_arg(ap, const char *)) != NULL) {
        if (argc == MAX_ARGS) {
            abort();
        }
        argv[argc] = arg;
        lens[argc++] = strlen(arg);
    }
    client_append_argv(c, argc, argv, lens);
}

void client_append(struct client *c, ...) {
    va_list ap;
    va_start(ap, c);
    append_va(c, ap);
    va_end(ap);
}

/* Take what has arrived; false when the connection is over. */
static bool receive_some(struct client *c) {
    if (c->in_pos > 0 && c->in_pos == c->in_len) {
        c->in_pos = c->in_len = 0;
    } else if (c->in_pos > 1024 * 1024) {
        memmove(c->in, c->in + c->in_pos, c->in_len - c->in_pos);
        c->in_len -= c->in_pos;
        c->in_pos = 0;
    }
    c->in = grow(c->in, &c->in_cap, c->in_len + READ_CHUNK_BYTES);
    ssize_t n = recv(c->fd, c->in + c->in_len, c->in_cap - c->in_len, 0);
    if (n > 0) {
        c->in_len += (size_t)n;
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    c->closed = true;
    return false;
}

bool client_flush(struct client *c) {
    return client_flush_pieces(c, SIZE_MAX);
}

bool client_flush_pieces(struct client *c, size_t piece_len) {
    int64_t deadline_ms = now_ms() + c->timeout_ms;
    size_t sent = 0;
    bool ok = !c->closed;
    while (ok && sent < c->out_len) {
        size_t left_len = c->out_len - sent;
        size_t len = left_len < piece_len ? left_len : piece_len;
        ssize_t n = send(c->fd, c->out + sent, len, MSG_NOSIGNAL);
        if (n > 0) {
            sent += (size_t)n;
            continue;
        }
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            ok = false;
            break;
        }
        struct pollfd p = {.fd = c->fd, .events = POLLIN | POLLOUT};
        int64_t left_ms = deadline_ms - now_ms();
        if (left_ms <= 0 || poll(&p, 1, (int)left_ms) == 0) {
            ok = false;
        } else if (p.revents & POLLIN) {
            ok = receive_some(c);
        }
    }
    c->out_len = 0;
    return ok;
}

/* ---- reading ---- */

static bool wait_input(struct client *c, int64_t deadline_ms) {
    int64_t left_ms = deadline_ms - now_ms();
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    if (c->closed || left_ms <= 0 || poll(&p, 1, (int)left_ms) <= 0) {
        return false;
    }
    return receive_some(c);
}

/* One line without its CRLF, valid until the next read; NULL at the end. */
static char *read_line(struct client *c, size_t *len, int64_t deadline_ms) {
    size_t seen = 0;
    for (;;) {
        char *from = c->in + c->in_pos;
        size_t have = c->in_len - c->in_pos;
        char *end = have > seen ? memmem(from + seen, have - seen, "\r\n", 2) : NULL;
        if (end) {
            *len = (size_t)(end - from);
            c->in_pos += *len + 2;
            *end = '\0';
            return from;
        }
        seen = have > 0 ? have - 1 : 0;
        if (!wait_input(c, deadline_ms)) {
            return NULL;
        }
    }
}

static bool read_body(struct client *c, struct reply *r, size_t len, int64_t deadline_ms) {
    while (c->in_len - c->in_pos < len + 2) {
        if (!wait_input(c, deadline_ms)) {
            return false;
        }
    }
    r->str = malloc(len + 1);
    memcpy(r->str, c->in + c->in_pos, len);
    r->str[len] = '\0';
    r->len = len;
    c->in_pos += len + 2;
    return true;
}

static struct reply *read_reply(struct client *c, int64_t deadline_ms);

static bool read_elements(struct client *c, struct reply *r, size_t count, int64_t deadline_ms) {
    r->elements = calloc(count ? count : 1, sizeof(struct reply *));
    for (size_t i = 0; i < count; i++) {
        r->elements[i] = read_reply(c, deadline_ms);
        if (!r->elements[i]) {
            return false;
        }
        r->count++;
    }
    return true;
}

static struct reply *read_reply(struct client *c, int64_t deadline_ms) {
    size_t len;
    char *line = read_line(c, &len, deadline_ms);
    if (!line || len == 0) {
        return NULL;
    }
    struct reply *r = calloc(1, sizeof(*r));
    r->type = line[0];
    long long number = strtoll(line + 1, NULL, 10);
    bool ok = true;
    switch (r->type) {
    case ':':
        r->integer = number;
        break;
    case '#':
        r->integer = line[1] == 't';
        break;
    case '_':
        r->is_null = true;
        break;
    case '$':
    case '=':
        r->is_null = number < 0;
        ok = r->is_null || read_body(c, r, (size_t)number, deadline_ms);
        break;
    case '*':
    case '%':
    case '~':
    case '>':
        r->is_null = number < 0;
        ok = r->is_null ||
             read_elements(c, r, (size_t)number * (r->type == '%' ? 2 : 1), deadline_ms);
        break;
    case '+':
    case '-':
    case ',':
    case '(':
        r->len = len - 1;
        r->str = malloc(len);
        memcpy(r->str, line + 1, len);
        break;
    default:
        fprintf(stderr, "not a reply type: 0x%02x\n", (unsigned)(unsigned char)r->type);
        c->closed = true;
        ok = false;
        break;
    }
    if (!ok) {
        reply_free(r);
        return NULL;
    }
    return r;
}

struct reply *client_read(struct client *c) {
    return read_reply(c, now_ms() + c->timeout_ms);
}

struct reply *client_cmd_argv(struct client *c, int argc, const char *const *argv,
                              const size_t *lens) {
    client_append_argv(c, argc, argv, lens);
    return client_flush(c) ? client_read(c) : NULL;
}

struct reply *client_cmd(struct client *c, ...) {
    va_list ap;
    va_start(ap, c);
    append_va(c, ap);
    va_end(ap);
    return client_flush(c) ? client_read(c) : NULL;
}

bool client_wait_closed(struct client *c, int timeout_ms) {
    int64_t deadline_ms = now_ms() + timeout_ms;
    while (!c->closed) {
        c->in_pos = c->in_len = 0;
        if (!wait_input(c, deadline_ms) && !c->closed) {
            return false;
        }
    }
    return true;
}

/* ---- expectations ---- */

void client_expect_next(struct client *c, const char *text) {
    struct reply *r = client_read(c);
    char *got = reply_text(r);
    bool same = strcmp(got, text) == 0;
    if (!same) {
        fprintf(stderr, "expected %.2000s\n     got %.2000s\n", text, got);
    }
    free(got);
    reply_free(r);
    assert_true(same);
}

void client_expect(struct client *c, const char *text, ...) {
    va_list ap;
    va_start(ap, text);
    append_va(c, ap);
    va_end(ap);
    assert_true(client_flush(c));
    client_expect_next(c, text);
}

bool client_info(struct client *c, const char *section, const char *field, char *out, size_t cap) {
    struct reply *r = client_cmd(c, "INFO", section, NULL);
    bool found = false;
    size_t field_len = strlen(field);
    for (char *line = r && r->str ? r->str : NULL; line && !found;) {
        char *end = strstr(line, "\r\n");
        if (end) {
            *end = '\0';
        }
        if (strncmp(line, field, field_len) == 0 && line[field_len] == ':') {
            snprintf(out, cap, "%s", line + field_len + 1);
            found = true;
        }
        line = end ? end + 2 : NULL;
    }
    reply_free(r);
    return found;
}

long long client_info_number(struct client *c, const char *section, const char *field) {
    char text[64];
    char *end;
    if (!client_info(c, section, field, text, sizeof(text))) {
        return -1;
    }
    long long n = strtoll(text, &end, 10);
    return end == text || *end != '\0' ? -1 : n;
}
