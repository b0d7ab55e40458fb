/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/hugepages.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOCK_FILE "/tmp/goblin-hugepages.lock"
#define POOL_FILE "/sys/kernel/mm/hugepages/hugepages-%lldkB/%s"
#define THP_FILE "/sys/kernel/mm/transparent_hugepage/enabled"

enum { PATH_MAX_LEN = 256, TEXT_MAX_LEN = 128 };

static struct {
    int lock_fd;
    long pool_2m, pool_1g, overcommit; /* -1: there is none */
    char thp[16];                      /* "": likewise */
} before = {.lock_fd = -1};

static pid_t guardian = -1;
static int guardian_end = -1; /* our end of its pipe */

static char cgroup_mount[] = "/tmp/goblin-cgroup-XXXXXX";
static char cgroup_dir[64]; /* "": none */
static bool cgroup_is_v2;

/* ---- files ---- */

static bool read_text(const char *path, char text[TEXT_MAX_LEN]) {
    FILE *f = fopen(path, "r");
    bool ok = f != NULL && fgets(text, TEXT_MAX_LEN, f) != NULL;
    if (f != NULL) {
        fclose(f);
    }
    return ok;
}

static bool write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

static bool write_number(const char *path, long long n) {
    char text[32];
    snprintf(text, sizeof(text), "%lld", n);
    return write_text(path, text);
}

static long read_pool(long long page_bytes, const char *name) {
    char path[PATH_MAX_LEN], text[TEXT_MAX_LEN];
    snprintf(path, sizeof(path), POOL_FILE, page_bytes / 1024, name);
    return read_text(path, text) ? strtol(text, NULL, 10) : -1;
}

static bool write_pool(long long page_bytes, const char *name, long pages) {
    char path[PATH_MAX_LEN];
    snprintf(path, sizeof(path), POOL_FILE, page_bytes / 1024, name);
    return write_number(path, pages) && read_pool(page_bytes, name) == pages;
}

/* ---- pools and modes ---- */

bool hugepages_set_pool(long long page_bytes, long pages) {
    return write_pool(page_bytes, "nr_hugepages", pages);
}

long hugepages_free(long long page_bytes) {
    return read_pool(page_bytes, "free_hugepages");
}

bool hugepages_set_overcommit(long pages) {
    return write_pool(HUGE_2M, "nr_overcommit_hugepages", pages);
}

bool hugepages_set_thp(const char *mode) {
    return write_text(THP_FILE, mode);
}

static void note_thp(void) {
    char text[TEXT_MAX_LEN] = "";
    before.thp[0] = '\0';
    if (read_text(THP_FILE, text) && strchr(text, '[') != NULL) {
        sscanf(strchr(text, '[') + 1, "%15[a-z]", before.thp);
    }
}

/* ---- the cgroup ---- */

static bool has_word(const char *text, const char *word) {
    return strstr(text, word) != NULL;
}

/* v1 is a mount of its own; with v2 the one hierarchy has to offer the controller. */
static bool mount_cgroup(void) {
    char path[PATH_MAX_LEN], text[TEXT_MAX_LEN] = "";
    cgroup_is_v2 = false;
    if (mount("none", cgroup_mount, "cgroup", 0, "hugetlb") == 0) {
        return true;
    }
    if (mount("none", cgroup_mount, "cgroup2", 0, NULL) != 0) {
        return false;
    }
    cgroup_is_v2 = true;
    snprintf(path, sizeof(path), "%s/cgroup.controllers", cgroup_mount);
    bool offered = read_text(path, text) && has_word(text, "hugetlb");
    snprintf(path, sizeof(path), "%s/cgroup.subtree_control", cgroup_mount);
    if (offered && write_text(path, "+hugetlb")) {
        return true;
    }
    umount(cgroup_mount);
    return false;
}

bool hugepages_open_cgroup(void) {
    strcpy(cgroup_mount + strlen(cgroup_mount) - 6, "XXXXXX");
    if (mkdtemp(cgroup_mount) == NULL) {
        return false;
    }
    if (!mount_cgroup()) {
        rmdir(cgroup_mount);
        return false;
    }
    snprintf(cgroup_dir, sizeof(cgroup_dir), "%s/goblin-test-%d", cgroup_mount, (int)getpid());
    return mkdir(cgroup_dir, 0700) == 0;
}

bool hugepages_limit(bool on_reservations, long long bytes) {
    char path[PATH_MAX_LEN];
    snprintf(path, sizeof(path), "%s/hugetlb.2MB.%s%s", cgroup_dir, on_reservations ? "rsvd." : "",
             cgroup_is_v2 ? "max" : "limit_in_bytes");
    return write_number(path, bytes);
}

bool hugepages_enter_cgroup(void) {
    char path[PATH_MAX_LEN];
    snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup_dir);
    return write_number(path, getpid());
}

static void close_cgroup(void) {
    if (cgroup_dir[0] != '\0') {
        rmdir(cgroup_dir);
        umount(cgroup_mount);
        rmdir(cgroup_mount);
        cgroup_dir[0] = '\0';
    }
}

/* ---- before and after ---- */

static void put_back(long long page_bytes, const char *name, long pages) {
    if (pages >= 0 && read_pool(page_bytes, name) != pages) {
        (void)write_pool(page_bytes, name, pages);
    }
}

/* The killed test's servers go a moment after it. */
static void put_all_back(void) {
    put_back(HUGE_2M, "nr_overcommit_hugepages", before.overcommit);
    for (int tries = 0; tries < 50; tries++) {
        put_back(HUGE_2M, "nr_hugepages", before.pool_2m);
        put_back(HUGE_1G, "nr_hugepages", before.pool_1g);
        if (read_pool(HUGE_2M, "nr_hugepages") == before.pool_2m &&
            read_pool(HUGE_1G, "nr_hugepages") == before.pool_1g) {
            break;
        }
        usleep(20 * 1000);
    }
    if (before.thp[0] != '\0') {
        (void)hugepages_set_thp(before.thp);
    }
}

/* A child that puts all back when the pipe's other end closes, be it because the test was killed;
 * until then it holds the lock too. */
static void start_guardian(void) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    fflush(NULL);
    guardian = fork();
    if (guardian == 0) {
        char byte;
        setsid();
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        close(ends[1]);
        while (read(ends[0], &byte, 1) > 0) {
        }
        put_all_back();
        _exit(0);
    }
    close(ends[0]);
    guardian_end = ends[1];
}

void hugepages_setup(void) {
    before.lock_fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (before.lock_fd >= 0) {
        (void)flock(before.lock_fd, LOCK_EX);
    }
    before.pool_2m = read_pool(HUGE_2M, "nr_hugepages");
    before.pool_1g = read_pool(HUGE_1G, "nr_hugepages");
    before.overcommit = read_pool(HUGE_2M, "nr_overcommit_hugepages");
    note_thp();
    start_guardian();
}

void hugepages_teardown(void) {
    close_cgroup();
    if (guardian > 0) {
        close(guardian_end);
        waitpid(guardian, NULL, 0);
        guardian = -1;
    }
    if (before.lock_fd >= 0) {
        close(before.lock_fd);
        before.lock_fd = -1;
    }
}
