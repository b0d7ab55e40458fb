/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGTERM and SIGINT end the loop; SIGHUP and SIGPIPE do nothing. */
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "server/server.h"

static void ready(struct loop *loop, struct loop_io *io, unsigned events) {
    struct server *s = CONTAINER_OF(io, struct server, signals);
    struct signalfd_siginfo info;
    (void)events;
    while (read(io->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        log_notice("Received %s, shutting down", info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
        s->shutdown_flags = SHUTDOWN_ASKED;
        loop_stop(loop);
    }
}

enum status signals_setup(struct server *s) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return ST_IO;
    }
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) {
        return ST_IO;
    }
    s->signals.ready = ready;
    enum status st = loop_add(s->loop, &s->signals, fd, LOOP_READ);
    if (st != ST_OK) {
        close(fd);
        s->signals.ready = NULL;
    }
    return st;
}

void signals_teardown(struct server *s) {
    if (s->signals.ready != NULL) {
        loop_remove(s->loop, &s->signals);
        close(s->signals.fd);
        s->signals.ready = NULL;
    }
}
