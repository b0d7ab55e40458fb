/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

struct listening {
    struct loop_io io;
    struct listener *owner;
    bool is_unix;
};

struct listener {
    struct loop *loop;
    struct listener_handler handler;
    struct listening sockets[LISTENER_SOCKETS_MAX];
    size_t count;
    struct loop_timer resume; /* running while accepting is paused */
    bool complained;          /* of missing descriptors, since the last accept that worked */
    char *unix_path;          /* what listener_close removes, if it is still the same file */
    dev_t unix_dev;
    ino_t unix_ino;
};

/* ---- accepting ---- */

static void watch_all(struct listener *listener, unsigned events) {
    for (size_t i = 0; i < listener->count; i++) {
        if (loop_modify(listener->loop, &listener->sockets[i].io, events) != ST_OK) {
            log_warning("Changing a listening socket failed: %s", strerror(errno));
        }
    }
}

static void resume(struct loop *loop, struct loop_timer *timer) {
    watch_all(CONTAINER_OF(timer, struct listener, resume), LOOP_READ);
}

static bool is_shortage(int err) {
    return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

/* No descriptor to be had: look away for a while. */
static void pause_accepting(struct listener *listener, int err) {
    if (!listener->complained) {
        log_warning("Accepting client connections: %s; trying again every %d ms", strerror(err),
                    LISTENER_PAUSE_MS);
        listener->complained = true;
    }
    if (loop_timer_start(listener->loop, &listener->resume, LISTENER_PAUSE_MS, 0) == ST_OK) {
        watch_all(listener, 0);
    }
}

static void accept_ready(struct loop *loop, struct loop_io *io, unsigned events) {
    struct listening *socket = CONTAINER_OF(io, struct listening, io);
    struct listener *listener = socket->owner;
    bool is_unix = socket->is_unix;
    for (int i = 0; i < LISTENER_BATCH; i++) {
        /* the handler may have closed the listener */
        if (listener->count == 0 || loop_timer_running(&listener->resume)) {
            return;
        }
        int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            listener->complained = false;
            listener->handler.accepted(listener->handler.user, fd, is_unix);
        } else if (is_shortage(errno)) {
            pause_accepting(listener, errno);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
        /* anything else concerns the one connection that was to be accepted: next */
    }
}

/* ---- opening ---- */

static enum status add_socket(struct listener *listener, int fd, bool is_unix) {
    struct listening *slot = &listener->sockets[listener->count];
    *slot =
        (struct listening){.io = {.ready = accept_ready}, .owner = listener, .is_unix = is_unix};
    enum status st = loop_add(listener->loop, &slot->io, fd, LOOP_READ);
    listener->count += st == ST_OK;
    return st;
}

/* Close the sockets from the given one on. */
static void close_from(struct listener *listener, size_t first) {
    while (listener->count > first) {
        struct listening *last = &listener->sockets[--listener->count];
        loop_remove(listener->loop, &last->io);
        close(last->io.fd);
    }
}

/* The address does not exist on this machine, or its family is not there. */
static bool is_unavailable(int err) {
    return err == EADDRNOTAVAIL;
}

static bool is_unsupported(int err) {
    return err == EAFNOSUPPORT || err == EPROTONOSUPPORT || err == ENOPROTOOPT ||
           err == ESOCKTNOSUPPORT || err == EPFNOSUPPORT;
}

/* A bound, listening socket for one resolved address, or -1 with errno and the step that failed. */
static int listen_on(const struct addrinfo *ai, int backlog, const char **step) {
    int one = 1;
    *step = "socket";
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, ai->ai_protocol);
    if (fd < 0) {
        return -1;
    }
    *step = "setsockopt";
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        (ai->ai_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) != 0)) {
        goto fail;
    }
    *step = "bind";
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0) {
        goto fail;
    }
    *step = "listen";
    if (listen(fd, backlog) == 0) {
        return fd;
    }
fail:;
    int err = errno;
    close(fd);
    errno = err;
    return -1;
}

static void tcp_error(char *error, const char *address, int port, const char *step,
                      const char *reason) {
    snprintf(error, LISTENER_ERROR_LEN,
             "Could not create server TCP listening socket %.300s:%d: %s: %s", address, port, step,
             reason);
}

/* One entry of bind. */
static enum status open_address(struct listener *listener, const char *address, int port,
                                int backlog, char *error) {
    bool optional = address[0] == '-';
    address += optional;
    bool any4 = strcmp(address, "*") == 0, any6 = strcmp(address, "::*") == 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    hints.ai_family = any4 ? AF_INET : any6 || strchr(address, ':') != NULL ? AF_INET6 : AF_UNSPEC;
    char service[16];
    snprintf(service, sizeof(service), "%d", port);
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(any4 || any6 ? NULL : address, service, &hints, &found);
    if (rc != 0) {
        tcp_error(error, address, port, "getaddrinfo", gai_strerror(rc));
        return ST_IO;
    }
    enum status st = ST_IO;
    const char *step = "socket";
    int fd = -1, err = 0;
    for (struct addrinfo *ai = found; ai != NULL && fd < 0; ai = ai->ai_next) {
        fd = listen_on(ai, backlog, &step);
        err = errno;
    }
    freeaddrinfo(found);
    if (fd < 0) {
        if (is_unsupported(err) || (optional && is_unavailable(err))) {
            return ST_OK;
        }
    } else {
        st = add_socket(listener, fd, false);
        if (st == ST_OK) {
            return ST_OK;
        }
        err = errno;
        step = "epoll_ctl";
        close(fd);
    }
    tcp_error(error, address, port, step, strerror(err));
    return st;
}

enum status listener_open_tcp(struct listener *listener, const char *const *addresses, size_t count,
                              int port, int backlog, char *error) {
    size_t first = listener->count;
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        if (addresses[i][0] == '\0') {
            continue;
        }
        wanted++;
        enum status st = ST_RANGE;
        if (listener->count == LISTENER_SOCKETS_MAX) {
            tcp_error(error, addresses[i], port, "bind", "too many addresses");
        } else {
            st = open_address(listener, addresses[i], port, backlog, error);
        }
        if (st != ST_OK) {
            close_from(listener, first);
            return ST_IO;
        }
    }
    if (wanted > 0 && listener->count == first) {
        tcp_error(error, addresses[0], port, "bind", "none of the addresses is available");
        return ST_IO;
    }
    return ST_OK;
}

/* ---- Unix sockets ---- */

/* True when the path is a socket nobody listens on, left by a process that died. */
static bool is_stale_socket(const struct sockaddr_un *address) {
    struct stat info;
    if (lstat(address->sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) {
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    bool refused = connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 &&
                   errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static int bind_unix(int fd, const struct sockaddr_un *address) {
    int rc = bind(fd, (const struct sockaddr *)address, sizeof(*address));
    if (rc == 0 || errno != EADDRINUSE) {
        return rc;
    }
    if (!is_stale_socket(address) || unlink(address->sun_path) != 0) {
        errno = EADDRINUSE;
        return -1;
    }
    return bind(fd, (const struct sockaddr *)address, sizeof(*address));
}

/* Remember which file is ours. */
static enum status remember_unix(struct listener *listener, const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0) {
        return ST_IO;
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        errno = ENOMEM;
        return ST_IO;
    }
    listener->unix_path = copy;
    listener->unix_dev = info.st_dev;
    listener->unix_ino = info.st_ino;
    return ST_OK;
}

static void forget_unix(struct listener *listener) {
    struct stat info;
    if (listener->unix_path != NULL && lstat(listener->unix_path, &info) == 0 &&
        info.st_dev == listener->unix_dev && info.st_ino == listener->unix_ino) {
        unlink(listener->unix_path);
    }
    free(listener->unix_path);
    listener->unix_path = NULL;
}

enum status listener_open_unix(struct listener *listener, const char *path, unsigned perm,
                               int backlog, char *error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *step = "bind";
    int fd = -1;
    bool bound = false;
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        goto fail;
    }
    if (listener->count == LISTENER_SOCKETS_MAX || listener->unix_path != NULL) {
        errno = ENOSPC;
        goto fail;
    }
    memcpy(address.sun_path, path, len + 1);
    step = "socket";
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        goto fail;
    }
    step = "bind";
    if (bind_unix(fd, &address) != 0) {
        goto fail;
    }
    bound = true;
    step = "chmod"; /* before listen: until then connecting is refused */
    if (perm != 0 && chmod(path, (mode_t)perm) != 0) {
        goto fail;
    }
    step = "listen";
    if (listen(fd, backlog) != 0 || remember_unix(listener, path) != ST_OK ||
        add_socket(listener, fd, true) != ST_OK) {
        goto fail;
    }
    return ST_OK;
fail:
    snprintf(error, LISTENER_ERROR_LEN,
             "Could not create server Unix listening socket %.300s: %s: %s", path, step,
             strerror(errno));
    if (fd >= 0) {
        close(fd);
    }
    if (bound) {
        unlink(path);
        free(listener->unix_path);
        listener->unix_path = NULL;
    }
    return ST_IO;
}

/* ---- life ---- */

struct listener *listener_create(struct loop *loop, struct listener_handler handler) {
    struct listener *listener = calloc(1, sizeof(*listener));
    if (listener != NULL) {
        listener->loop = loop;
        listener->handler = handler;
        listener->resume.fire = resume;
    }
    return listener;
}

size_t listener_count(const struct listener *listener) {
    return listener->count;
}

int listener_port(const struct listener *listener) {
    for (size_t i = 0; i < listener->count; i++) {
        struct sockaddr_storage name;
        socklen_t len = sizeof(name);
        if (listener->sockets[i].is_unix ||
            getsockname(listener->sockets[i].io.fd, (struct sockaddr *)&name, &len) != 0) {
            continue;
        }
        if (name.ss_family == AF_INET) {
            return ntohs(((struct sockaddr_in *)&name)->sin_port);
        }
        return ntohs(((struct sockaddr_in6 *)&name)->sin6_port);
    }
    return 0;
}

void listener_close(struct listener *listener) {
    loop_timer_stop(listener->loop, &listener->resume);
    close_from(listener, 0);
    forget_unix(listener);
}

void listener_destroy(struct listener *listener) {
    if (listener == NULL) {
        return;
    }
    listener_close(listener);
    free(listener);
}
