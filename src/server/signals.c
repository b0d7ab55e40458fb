/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGTERM and SIGINT end the loop; SIGCHLD tells that a background save ended; SIGHUP, SIGPIPE and
 * SIGXFSZ do nothing. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "server/server.h"

/* SIGINT while a shutdown is under way, which takes long only when it saves. */
static void insist(void) {
    log_warning("You insist... exiting now.");
    snapshot_remove_stale(getpid());
    _exit(EXIT_FAILURE);
}

static void ready(struct loop *loop, struct loop_io *io, unsigned events) {
    struct server *s = CONTAINER_OF(io, struct server, signals);
    struct signalfd_siginfo info;
    (void)loop;
    (void)events;
    while (read(io->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            background_poll(&s->cx);
            continue;
        }
        if (s->shutdown_flags != 0 && info.ssi_signo == SIGINT) {
            insist();
        }
        log_notice("Received %s, shutting down", info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
        s->shutdown_flags |= SHUTDOWN_ASKED;
        loop_stop(s->loop);
    }
}

void signals_poll(struct server *s) {
    if (s->signals.ready != NULL) {
        ready(s->loop, &s->signals, LOOP_READ);
    }
}

enum status signals_setup(struct server *s) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGCHLD,
           SIG_DFL); /* ignored, as whoever starts this may leave it, no child is heard of */
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit of file sizes is an error like a full disk */
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
