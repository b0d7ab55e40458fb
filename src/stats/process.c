/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PROC_TEXT_MAX 4096 /* the lines looked for are in the first 2 KiB of either file */

/* The file's first bytes, terminated; "" when it can't be read. */
static void read_proc(const char *path, char text[PROC_TEXT_MAX]) {
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && len < PROC_TEXT_MAX - 1) {
        ssize_t got = read(fd, text + len, PROC_TEXT_MAX - 1 - len);
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
    }
    text[len] = '\0';
    if (fd >= 0) {
        close(fd);
    }
}

/* "\nName:   123 kB" in bytes; 0 when there is no such line. */
static uint64_t find_kb(const char *text, const char *line) {
    const char *at = strstr(text, line);
    return at != NULL ? strtoull(at + strlen(line), NULL, 10) * 1024 : 0;
}

void process_read_memory(struct process_memory *out) {
    char text[PROC_TEXT_MAX];
    read_proc("/proc/self/status", text);
    out->vm_rss_bytes = find_kb(text, "\nVmRSS:");
    out->hugetlb_pages_bytes = find_kb(text, "\nHugetlbPages:");
    out->page_table_bytes = find_kb(text, "\nVmPTE:");
}

uint64_t process_read_anon_huge_bytes(bool madvised) {
    char text[PROC_TEXT_MAX];
    read_proc("/sys/kernel/mm/transparent_hugepage/enabled", text);
    bool unasked = strstr(text, "[always]") != NULL;
    if (!unasked && !madvised) {
        return 0;
    }
    read_proc("/proc/self/smaps_rollup", text);
    return find_kb(text, "\nAnonHugePages:");
}

uint64_t process_read_private_dirty_bytes(void) {
    char text[PROC_TEXT_MAX];
    read_proc("/proc/self/smaps_rollup", text);
    return find_kb(text, "\nPrivate_Dirty:");
}

static void read_usage(int who, double *user_s, double *sys_s) {
    struct rusage usage;
    if (getrusage(who, &usage) != 0) {
        usage = (struct rusage){0};
    }
    *user_s = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
    *sys_s = (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
}

void process_read_cpu(struct process_cpu *out) {
    read_usage(RUSAGE_SELF, &out->user_s, &out->sys_s);
    read_usage(RUSAGE_CHILDREN, &out->user_children_s, &out->sys_children_s);
    read_usage(RUSAGE_THREAD, &out->user_thread_s, &out->sys_thread_s);
}

void process_os_name(char *out, size_t out_cap) {
    struct utsname name;
    if (uname(&name) != 0) {
        snprintf(out, out_cap, "unknown");
        return;
    }
    snprintf(out, out_cap, "%s %s %s", name.sysname, name.release, name.machine);
}

uint64_t process_system_memory_bytes(void) {
    long count = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return count > 0 && page_bytes > 0 ? (uint64_t)count * (uint64_t)page_bytes : 0;
}
