/* SPDX-License-Identifier: BSD-3-Clause */
#include "persist/snapshot.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "persist/format.h"

#define TEMPORARY_HEAD "temp-"
#define TEMPORARY_TAIL ".rdb"
#define PATH_SHOWN_MAX (SNAPSHOT_ERROR_LEN - READER_ERROR_LEN - 128)
/* The kernel is asked to begin with its writing after each so many bytes, so that the fsync at the
 * end finds little left, and in small steps, during which the CPU serves nobody else where kernel
 * code is not preempted: 99.9 % of a real-time reader's waits beside a child are below 267 us without
 * this, 176 with 4 MiB, 142 to 161 with 1 MiB, 153 with 256 KiB, and 146 without a child. */
#define WRITE_OUT_BYTES ((uint64_t)1 << 20)

/* ---- words ---------------------------------------------------------------------------------- */

/* "cannot write /dir/temp-1.rdb: No space left on device"; paths are shown from the root on. */
static enum status fail(char *error, const char *what, const char *path, const char *why) {
    char here[PATH_MAX];
    bool relative = path[0] != '/' && getcwd(here, sizeof(here)) != NULL;
    snprintf(error, SNAPSHOT_ERROR_LEN, "%s%.*s%s%.*s: %s", what,
             relative ? (int)PATH_SHOWN_MAX / 2 : 0, relative ? here : "", relative ? "/" : "",
             relative ? (int)PATH_SHOWN_MAX / 2 : (int)PATH_SHOWN_MAX, path, why);
    return ST_IO;
}

static enum status fail_errno(char *error, const char *what, const char *path) {
    return fail(error, what, path, strerror(errno));
}

/* ---- names ---------------------------------------------------------------------------------- */

/* The process whose temporary a name is; 0: it is none. */
static int64_t temporary_pid(struct bytes name) {
    size_t head = sizeof(TEMPORARY_HEAD) - 1, tail = sizeof(TEMPORARY_TAIL) - 1;
    int64_t pid = 0;
    if (name.len <= head + tail || name.len > head + tail + 10 ||
        memcmp(name.ptr, TEMPORARY_HEAD, head) != 0 ||
        memcmp(name.ptr + name.len - tail, TEMPORARY_TAIL, tail) != 0) {
        return 0;
    }
    for (size_t i = head; i < name.len - tail; i++) {
        if (name.ptr[i] < '0' || name.ptr[i] > '9') {
            return 0;
        }
        pid = pid * 10 + (name.ptr[i] - '0');
    }
    return pid <= INT_MAX ? pid : 0;
}

/* Names are written to the log and to the terminal: what could forge a line there is in none. */
static bool has_bad_byte(struct bytes name) {
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c == '/' || c < ' ' || c == 0x7F) {
            return true;
        }
    }
    return false;
}

bool snapshot_name_ok(struct bytes name) {
    return name.len >= 1 && name.len <= NAME_MAX && !has_bad_byte(name) &&
           !bytes_equal(name, BYTES_LIT(".")) && !bytes_equal(name, BYTES_LIT("..")) &&
           temporary_pid(name) == 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

struct saving {
    const struct snapshot_save_options *options;
    struct writer *writer;
    int fd;
    int failed_errno;
    uint64_t bytes;
    uint64_t written_out; /* of them the kernel was asked to write */
    char temporary[PATH_MAX];
    char folder[PATH_MAX];
};

/* "a/b.rdb" is written as "a/temp-1.rdb", in the folder "a". */
static bool name_files(struct saving *s, const char *path) {
    const char *slash = strrchr(path, '/');
    size_t folder_len = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    int len = snprintf(s->temporary, sizeof(s->temporary), "%.*s%s%lld%s", (int)folder_len, path,
                       TEMPORARY_HEAD, (long long)getpid(), TEMPORARY_TAIL);
    snprintf(s->folder, sizeof(s->folder), "%.*s", folder_len != 0 ? (int)folder_len : 1,
             folder_len != 0 ? path : ".");
    return folder_len < PATH_MAX && len > 0 && (size_t)len < sizeof(s->temporary);
}

/* A snapshot takes the place of an RDB file, an empty file, a link to either, or nothing. */
static enum status check_replaced(const char *path, char *error) {
    char head[sizeof(RDB_MAGIC) - 1];
    struct stat st;
    if (stat(path, &st) != 0) {
        return errno == ENOENT ? ST_OK : fail_errno(error, "cannot save to ", path);
    }
    int fd = S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0 && S_ISREG(st.st_mode)) {
        return fail_errno(error, "cannot save to ", path);
    }
    ssize_t len = fd < 0 ? -1 : read(fd, head, sizeof(head));
    if (fd >= 0) {
        close(fd);
    }
    if (len == 0 || (len == (ssize_t)sizeof(head) && memcmp(head, RDB_MAGIC, sizeof(head)) == 0)) {
        return ST_OK;
    }
    return fail(error, "cannot save to ", path, "it exists and is no snapshot");
}

static bool write_all(int fd, const char *ptr, size_t len) {
    while (len != 0) {
        ssize_t n = write(fd, ptr, len);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        ptr += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static enum status into_file(void *arg, const char *ptr, size_t len) {
    struct saving *s = arg;
    if (!write_all(s->fd, ptr, len)) {
        s->failed_errno = errno;
        return ST_IO;
    }
    s->bytes += len;
    if (s->bytes - s->written_out >= WRITE_OUT_BYTES) {
        /* advice: what it cannot do, fsync does */
        (void)sync_file_range(s->fd, (off_t)s->written_out, (off_t)(s->bytes - s->written_out),
                              SYNC_FILE_RANGE_WRITE);
        s->written_out = s->bytes;
    }
    const struct snapshot_save_options *o = s->options;
    struct writer_stats stats;
    writer_get_stats(s->writer, &stats);
    return o->progress == NULL || o->progress(o->progress_arg, s->bytes, stats.keys) ? ST_OK
                                                                                     : ST_CLOSED;
}

static enum status write_data(struct saving *s, const struct dbset *set, struct writer_stats *stats,
                              char *error) {
    struct writer_options options = {.write = into_file,
                                     .arg = s,
                                     .compress = s->options->compress,
                                     .checksum = s->options->checksum};
    enum status st = writer_create(&options, &s->writer);
    if (st == ST_OK) {
        st = writer_dbset(s->writer, set, s->options->used_bytes);
        writer_get_stats(s->writer, stats);
        writer_destroy(s->writer);
    }
    if (st == ST_IO) {
        return fail(error, "cannot write ", s->temporary, strerror(s->failed_errno));
    }
    if (st != ST_OK) {
        fail(error, "cannot write ", s->temporary,
             st == ST_CLOSED ? "it was stopped" : status_text(st));
    }
    return st;
}

static enum status open_temporary(struct saving *s, char *error) {
    unlink(s->temporary); /* left by a killed process that had our number */
    s->fd = open(s->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (s->fd < 0) {
        return fail_errno(error, "cannot create ", s->temporary);
    }
    (void)flock(s->fd, LOCK_EX | LOCK_NB); /* for others to see; some file systems have no locks */
    return ST_OK;
}

/* The data are on the disk, and the file is closed, also after a failure. */
static enum status finish_temporary(struct saving *s, char *error) {
    if (fsync(s->fd) != 0) {
        enum status st = fail_errno(error, "cannot fsync ", s->temporary);
        close(s->fd);
        return st;
    }
    return close(s->fd) == 0 ? ST_OK : fail_errno(error, "cannot close ", s->temporary);
}

static enum status sync_folder(const char *folder, char *error) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return fail_errno(error, "cannot open the directory ", folder);
    }
    enum status st = ST_OK;
    if (fsync(fd) != 0 && errno != EINVAL) { /* EINVAL: directories need none there */
        st = fail_errno(error, "cannot fsync the directory ", folder);
    }
    close(fd);
    return st;
}

enum status snapshot_save(const struct dbset *set, const char *path,
                          const struct snapshot_save_options *options, struct writer_stats *stats,
                          char error[SNAPSHOT_ERROR_LEN]) {
    struct saving s = {.options = options};
    *stats = (struct writer_stats){0};
    if (!name_files(&s, path)) {
        errno = ENAMETOOLONG;
        return fail_errno(error, "cannot save to ", path);
    }
    enum status st = check_replaced(path, error);
    st = st == ST_OK ? open_temporary(&s, error) : st;
    if (st != ST_OK) {
        return st;
    }
    st = write_data(&s, set, stats, error);
    if (st != ST_OK) {
        close(s.fd);
    } else {
        st = finish_temporary(&s, error);
    }
    if (st == ST_OK && rename(s.temporary, path) != 0) {
        st = fail_errno(error, "cannot rename the temporary to ", path);
    }
    if (st != ST_OK) {
        unlink(s.temporary);
        return st;
    }
    return sync_folder(s.folder, error);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct loading {
    int fd;
    int failed_errno;
    uint64_t total_bytes;
};

static enum status from_file(void *arg, char *ptr, size_t cap, size_t *len) {
    struct loading *l = arg;
    ssize_t n;
    do {
        n = read(l->fd, ptr, cap);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        l->failed_errno = errno;
        return ST_IO;
    }
    *len = (size_t)n;
    return ST_OK;
}

/* Not blocking: a pipe of that name must not stop the server. */
static enum status open_file(struct loading *l, const char *path, char *error) {
    struct stat st;
    l->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (l->fd < 0) {
        enum status missing = errno == ENOENT ? ST_NOTFOUND : ST_IO;
        fail_errno(error, "cannot open ", path);
        return missing;
    }
    if (fstat(l->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(l->fd);
        return fail(error, "cannot open ", path, "it is not a regular file");
    }
    (void)posix_fadvise(l->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* advice */
    l->total_bytes = (uint64_t)st.st_size;
    return ST_OK;
}

static enum status read_file(struct loading *l, const char *path,
                             const struct snapshot_load_options *o,
                             const struct reader_target *target, struct reader_report *report,
                             char *error) {
    struct reader_options options = {.read = from_file,
                                     .arg = l,
                                     .total_bytes = l->total_bytes,
                                     .ignore_checksum = o->ignore_checksum,
                                     .skip_unsupported = o->skip_unsupported,
                                     .now_ms = o->now_ms,
                                     .progress = o->progress,
                                     .progress_arg = o->progress_arg};
    if (o->opened != NULL) {
        o->opened(o->progress_arg, l->total_bytes);
    }
    enum status st = reader_run(&options, target, report);
    if (st == ST_IO) {
        return fail(error, "cannot read ", path, strerror(l->failed_errno));
    }
    if (st != ST_OK) {
        fail(error, "", path, report->error);
    }
    return st;
}

enum status snapshot_load(const char *path, const struct type_env *env, size_t count,
                          const struct snapshot_load_options *options, struct dbset **fresh,
                          struct reader_report *report, char error[SNAPSHOT_ERROR_LEN]) {
    struct loading l;
    struct reader_dbset to;
    struct reader_target target;
    struct dbset *set = NULL;
    *report = (struct reader_report){0};
    enum status st = open_file(&l, path, error);
    if (st != ST_OK) {
        return st;
    }
    st = dbset_create(env, count, &set);
    if (st != ST_OK) {
        fail(error, "", path, status_text(st));
        goto out;
    }
    set->now_ms = options->now_ms;
    reader_into_dbset(&to, set, &target);
    st = read_file(&l, path, options, &target, report, error);
    if (st == ST_OK) {
        *fresh = set;
        set = NULL;
    }
out:
    close(l.fd);
    dbset_destroy(set);
    return st;
}

enum status snapshot_check(const char *path, const struct type_env *env,
                           const struct snapshot_load_options *options,
                           struct reader_report *report, char error[SNAPSHOT_ERROR_LEN]) {
    struct loading l;
    struct reader_target target;
    *report = (struct reader_report){0};
    enum status st = open_file(&l, path, error);
    if (st != ST_OK) {
        return st;
    }
    reader_into_nothing(env, &target);
    st = read_file(&l, path, options, &target, report, error);
    close(l.fd);
    return st;
}

/* ---- what killed processes left ------------------------------------------------------------- */

static bool is_locked(int folder, const char *name) {
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    bool locked = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

static bool is_gone(int64_t pid) {
    return pid == getpid() || (kill((pid_t)pid, 0) != 0 && errno == ESRCH);
}

size_t snapshot_remove_stale(int64_t pid) {
    size_t removed = 0;
    DIR *folder = opendir(".");
    struct dirent *e;
    while (folder != NULL && (e = readdir(folder)) != NULL) {
        int64_t owner = temporary_pid(bytes_from_cstr(e->d_name));
        if (owner != 0 &&
            (owner == pid || (is_gone(owner) && !is_locked(dirfd(folder), e->d_name)))) {
            removed += unlinkat(dirfd(folder), e->d_name, 0) == 0;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return removed;
}
