/* SPDX-License-Identifier: BSD-3-Clause */
/* A made-up machine: a folder with what the kernel would have in /proc and /sys. */
#ifndef TESTS_UNIT_MEM_MACHINE_FIXTURE_H
#define TESTS_UNIT_MEM_MACHINE_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/compiler.h"

static char fake_root[] = "/tmp/goblin-machine-XXXXXX";

static int fake_setup(void **state) {
    strcpy(fake_root + strlen(fake_root) - 6, "XXXXXX");
    assert_non_null(mkdtemp(fake_root));
    return 0;
}

static int fake_teardown(void **state) {
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", fake_root);
    return system(command);
}

/* Write a file and the folders above it; path begins with '/'. */
PRINTF_LIKE(2, 3) static void fake_file(const char *path, const char *fmt, ...) {
    char full[512];
    snprintf(full, sizeof(full), "%s%s", fake_root, path);
    for (char *slash = full + strlen(fake_root) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    va_list args;
    va_start(args, fmt);
    vfprintf(file, fmt, args);
    va_end(args);
    fclose(file);
}

static void fake_pool(size_t kb, size_t total, size_t free_pages, size_t reserved, size_t surplus,
                      size_t overcommit) {
    static const char *const names[] = {"nr", "free", "resv", "surplus", "nr_overcommit"};
    size_t numbers[] = {total, free_pages, reserved, surplus, overcommit};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[128];
        snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/%s_hugepages", kb,
                 names[i]);
        fake_file(path, "%zu\n", numbers[i]);
    }
}

static void fake_memory(size_t total_mib, size_t available_mib, size_t huge_kb) {
    fake_file("/proc/meminfo", "MemTotal: %zu kB\nMemFree: 1 kB\nMemAvailable:  %zu kB\n%s%zu kB\n",
              total_mib << 10, available_mib << 10,
              huge_kb ? "Hugepagesize:   " : "Other: ", huge_kb);
}

static void fake_thp(const char *enabled, const char *defrag, size_t bytes) {
    fake_file("/sys/kernel/mm/transparent_hugepage/enabled", "%s\n", enabled);
    fake_file("/sys/kernel/mm/transparent_hugepage/defrag", "%s\n", defrag);
    fake_file("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "%zu\n", bytes);
}

static void fake_nodes(const char *online, const char *allowed) {
    fake_file("/sys/devices/system/node/online", "%s\n", online);
    fake_file("/proc/self/status",
              "Name:\tx\nVmRSS:\t 1 kB\nMems_allowed:\t3\nMems_allowed_list:\t%s\nx:\t1\n",
              allowed);
}

#endif
