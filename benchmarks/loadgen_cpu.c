/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU time of processes, from the kernel's own books. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loadgen.h"

static uint64_t timeval_ns(struct timeval t) {
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_usec * 1000;
}

struct cpu_time cpu_time_own(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    struct cpu_time t = {.user_ns = timeval_ns(u.ru_utime), .sys_ns = timeval_ns(u.ru_stime)};
    t.total_ns = t.user_ns + t.sys_ns;
    t.exact = true;
    return t;
}

/* utime and stime: fields 14 and 15 of /proc/PID/stat, counted behind the name's last ')'. */
static bool read_stat(uint64_t pid, struct cpu_time *t) {
    char path[64];
    char line[1024];
    snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", pid);
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        return false;
    }
    size_t len = fread(line, 1, sizeof(line) - 1, f);
    fclose(f);
    line[len] = '\0';
    const char *behind_name = strrchr(line, ')');
    uint64_t user_ticks;
    uint64_t sys_ticks;
    if (behind_name == NULL ||
        sscanf(behind_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
               &user_ticks, &sys_ticks) != 2) {
        return false;
    }
    uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    t->user_ns = user_ticks * tick_ns;
    t->sys_ns = sys_ticks * tick_ns;
    return true;
}

/* Sum of the first figure (ns on a CPU) of every thread's schedstat; false where there is none. */
static bool read_schedstat(uint64_t pid, uint64_t *total_ns) {
    char path[320];
    snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task", pid);
    DIR *dir = opendir(path);
    bool found = false;
    *total_ns = 0;
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task/%s/schedstat", pid, e->d_name);
        FILE *f = e->d_name[0] != '.' ? fopen(path, "r") : NULL;
        uint64_t ns;
        if (f != NULL && fscanf(f, "%" SCNu64, &ns) == 1) {
            *total_ns += ns;
            found = true;
        }
        if (f != NULL) {
            fclose(f);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return found;
}

struct cpu_time cpu_time_of(uint64_t pid) {
    struct cpu_time t = {0};
    if (pid == 0) {
        return t;
    }
    if (!read_stat(pid, &t)) {
        die(EXIT_RUN_FAILED, "--pid %" PRIu64 ": no such process", pid);
    }
    t.exact = read_schedstat(pid, &t.total_ns);
    if (!t.exact) {
        t.total_ns = t.user_ns + t.sys_ns;
    }
    return t;
}

struct cpu_time cpu_time_since(struct cpu_time now, struct cpu_time then) {
    now.total_ns -= then.total_ns;
    now.user_ns -= then.user_ns;
    now.sys_ns -= then.sys_ns;
    return now;
}
