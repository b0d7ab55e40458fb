/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "mem/account.h"
#include "server/server.h"

static int complain(const char *what, const struct buf *error) {
    fprintf(stderr, "goblin-core: %s%.*s\n", what, (int)error->len, error->ptr ? error->ptr : "");
    return EXIT_FAILURE;
}

static int complain_errno(const char *what, const char *path) {
    fprintf(stderr, "goblin-core: %s %s: %s\n", what, path, strerror(errno));
    return EXIT_FAILURE;
}

static int show(void (*write_page)(struct buf *out)) {
    struct buf page = {0};
    write_page(&page);
    fwrite(page.ptr, 1, page.len, stdout);
    buf_deinit(&page);
    return EXIT_SUCCESS;
}

static void write_version(struct buf *out) {
    buf_printf(out, "Goblin Core %s, %s, %zu-bit\n", GC_VERSION, account_allocator_name(),
               sizeof(void *) * 8);
}

static bool write_pidfile(const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return false;
    }
    bool ok = fprintf(file, "%d\n", (int)getpid()) > 0;
    return fclose(file) == 0 && ok;
}

/* Directory and log: what goes before the first socket. */
static int enter(const struct config *c) {
    if (chdir(c->dir) != 0) {
        return complain_errno("cannot change to dir", c->dir);
    }
    if (log_setup(c->logfile, (enum log_level)c->loglevel) != ST_OK) {
        return complain_errno("cannot open logfile", c->logfile);
    }
    return EXIT_SUCCESS;
}

/* Once the sockets are open, so that whoever started the program hears of a port in use. epoll sees only those
 * signals on a signalfd that the process which added it gets: it is made anew. */
static int detach(struct server *s) {
    const struct config *c = &s->config;
    if (c->daemonize) {
        signals_teardown(s);
        if (daemon(1, 0) != 0 || signals_setup(s) != ST_OK) {
            return complain_errno("cannot run in the background in", c->dir);
        }
    }
    if (c->pidfile[0] != '\0' && !write_pidfile(c->pidfile)) {
        return complain_errno("cannot write pidfile", c->pidfile);
    }
    return EXIT_SUCCESS;
}

static int run(struct server *s, struct buf *error) {
    enum status st = persist_start(s, error);
    if (st != ST_OK && st != ST_CLOSED) {
        log_warning("Cannot start: %.*s", (int)error->len, error->ptr);
        return s->config.logfile[0] != '\0' ? complain("", error) : EXIT_FAILURE;
    }
    if (st == ST_OK) {
        server_print_shares(s);
        log_notice("Ready to accept connections");
        st = persist_run(s);
    }
    if (st == ST_IO) {
        log_warning("The event loop failed: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    conn_set_flush(&s->frontend.conns);
    log_notice("Goblin Core is ending, bye bye");
    return EXIT_SUCCESS;
}

static int serve(struct server *s, struct buf *error) {
    int result = enter(&s->config);
    if (result != EXIT_SUCCESS) {
        return result;
    }
    if (server_setup(s, error) != ST_OK) {
        result = complain("", error);
        if (s->config.logfile[0] != '\0') {
            log_warning("Cannot start: %.*s", (int)error->len, error->ptr ? error->ptr : "");
        }
    } else if ((result = detach(s)) == EXIT_SUCCESS) {
        server_print_start(s);
        result = run(s, error);
    }
    server_teardown(s);
    if (s->config.pidfile[0] != '\0') {
        unlink(s->config.pidfile);
    }
    return result;
}

int main(int argc, char **argv) {
    static struct server server; /* large, and zero at first */
    static char executable[PATH_MAX];
    struct buf error = {0};
    enum config_action action;
    if (config_init(&server.config) != ST_OK) {
        return complain("out of memory", &error);
    }
    int result;
    if (config_load(&server.config, argc, argv, &action, &error) != ST_OK) {
        result = complain("", &error);
    } else if (action == CONFIG_SHOW_VERSION) {
        result = show(write_version);
    } else if (action == CONFIG_SHOW_HELP) {
        result = show(config_write_help);
    } else if (action == CONFIG_CHECK_RDB) {
        result = check_rdb(&server.config, argv[2]);
    } else if (action == CONFIG_CHECK_HUGEPAGES) {
        result = check_hugepages(&server.config, argc, argv);
    } else {
        ssize_t len = readlink("/proc/self/exe", executable, sizeof(executable) - 1);
        executable[len > 0 ? len : 0] = '\0';
        server.executable = executable;
        result = serve(&server, &error);
    }
    config_deinit(&server.config);
    buf_deinit(&error);
    return result;
}
