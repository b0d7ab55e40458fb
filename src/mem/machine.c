/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/machine.h"

#include <dirent.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine_priv.h"
#include "osfile_priv.h"

#define POOLS_DIR "/sys/kernel/mm/hugepages"
#define NODES_DIR "/sys/devices/system/node"
#define THP_DIR "/sys/kernel/mm/transparent_hugepage"
#define NODES_MAX 1024
#define LONG_BITS (8 * sizeof(unsigned long))

/* ---- pools ---- */

static bool pool_number(const char *root, size_t page_bytes, const char *name, size_t *out) {
    char path[OSFILE_PATH_MAX];
    snprintf(path, sizeof(path), POOLS_DIR "/hugepages-%zukB/%s", page_bytes >> 10, name);
    return osfile_number(root, path, out);
}

static bool read_pool(const char *root, size_t page_bytes, struct pages_pool *out) {
    struct pages_pool pool = {.page_bytes = page_bytes};
    bool all = pool_number(root, page_bytes, "nr_hugepages", &pool.total) &&
               pool_number(root, page_bytes, "free_hugepages", &pool.free) &&
               pool_number(root, page_bytes, "resv_hugepages", &pool.reserved) &&
               pool_number(root, page_bytes, "surplus_hugepages", &pool.surplus);
    if (all) {
        *out = pool;
    }
    return all;
}

static int by_size(const void *a, const void *b) {
    size_t x = ((const struct pages_pool *)a)->page_bytes;
    size_t y = ((const struct pages_pool *)b)->page_bytes;
    return (x > y) - (x < y);
}

size_t machine_read_pools(const char *root, struct pages_pool *pools, size_t max) {
    char path[OSFILE_PATH_MAX];
    snprintf(path, sizeof(path), "%s" POOLS_DIR, root);
    DIR *dir = opendir(path);
    size_t count = 0;
    for (struct dirent *e; dir != NULL && count < max && (e = readdir(dir)) != NULL;) {
        static const char prefix[] = "hugepages-";
        if (strncmp(e->d_name, prefix, sizeof(prefix) - 1) == 0) {
            size_t kb = strtoull(e->d_name + sizeof(prefix) - 1, NULL, 10);
            count += kb != 0 && read_pool(root, kb << 10, &pools[count]);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    qsort(pools, count, sizeof(pools[0]), by_size);
    return count;
}

enum status pages_pool_read(size_t huge_page_bytes, struct pages_pool *out) {
    return huge_page_bytes != 0 && read_pool("", huge_page_bytes, out) ? ST_OK : ST_NOTFOUND;
}

/* ---- NUMA nodes ---- */

/* Is n in "0-3,8"? */
static bool list_has(const char *list, unsigned n) {
    for (const char *p = list; *p >= '0' && *p <= '9';) {
        char *end;
        unsigned long first = strtoul(p, &end, 10), last = first;
        if (*end == '-') {
            last = strtoul(end + 1, &end, 10);
        }
        if (n >= first && n <= last) {
            return true;
        }
        p = *end == ',' ? end + 1 : end;
    }
    return false;
}

static void copy_line(char *out, const char *text) {
    size_t len = strcspn(text, "\n");
    snprintf(out, MACHINE_LIST_LEN, "%.*s", (int)(len < MACHINE_LIST_LEN ? len : 0), text);
}

/* numactl --membind and its like: the policy this thread has, when it names nodes it must keep to. */
static bool read_policy(unsigned long *mask, size_t bits) {
    int mode = 0;
    return syscall(SYS_get_mempolicy, &mode, mask, bits + 1, NULL, 0) == 0 &&
           (mode & ~MPOL_MODE_FLAGS) == MPOL_BIND;
}

static void keep_to_policy(struct machine *m) {
    unsigned long mask[NODES_MAX / LONG_BITS + 1] = {0};
    char kept[MACHINE_LIST_LEN] = "";
    size_t len = 0;
    if (!read_policy(mask, NODES_MAX)) {
        return;
    }
    for (unsigned n = 0; n < NODES_MAX && len + 8 < sizeof(kept); n++) {
        if ((mask[n / LONG_BITS] >> n % LONG_BITS & 1) != 0 && list_has(m->nodes_allowed, n)) {
            len += (size_t)snprintf(kept + len, sizeof(kept) - len, "%s%u", len ? "," : "", n);
        }
    }
    memcpy(m->nodes_allowed, kept, sizeof(kept));
}

static void read_nodes(const char *root, const char *status, struct machine *m) {
    char text[OSFILE_TEXT_MAX];
    static const char allowed[] = "\nMems_allowed_list:\t";
    const char *at = strstr(status, allowed);
    osfile_read(root, NODES_DIR "/online", text, sizeof(text));
    copy_line(m->nodes_online, text);
    copy_line(m->nodes_allowed, at != NULL ? at + sizeof(allowed) - 1 : text);
    if (root[0] == '\0') {
        keep_to_policy(m);
    }
    for (unsigned n = 0; n < NODES_MAX; n++) {
        m->node_count += list_has(m->nodes_online, n);
    }
}

bool machine_is_bound(const struct machine *m, unsigned *first_node) {
    bool found = false, all = true;
    for (unsigned n = 0; n < NODES_MAX && m->nodes_allowed[0] != '\0'; n++) {
        bool allowed = list_has(m->nodes_allowed, n);
        if (list_has(m->nodes_online, n)) {
            if (allowed && !found) {
                *first_node = n;
                found = true;
            }
            all = all && allowed;
        }
    }
    return found && !all;
}

static size_t read_node_free(const char *root, const struct machine *m,
                             const struct pages_pool *pool) {
    unsigned first;
    if (!machine_is_bound(m, &first)) {
        return pool->free;
    }
    size_t sum = 0;
    for (unsigned n = first; n < NODES_MAX; n++) {
        char path[OSFILE_PATH_MAX];
        size_t free_pages;
        snprintf(path, sizeof(path), NODES_DIR "/node%u/hugepages/hugepages-%zukB/free_hugepages",
                 n, pool->page_bytes >> 10);
        if (list_has(m->nodes_allowed, n) && list_has(m->nodes_online, n) &&
            osfile_number(root, path, &free_pages)) {
            sum += free_pages;
        }
    }
    return sum;
}

/* ---- all of it ---- */

static void read_pools(const char *root, struct machine *m) {
    struct pages_pool pools[MACHINE_POOLS_MAX];
    m->pool_count = machine_read_pools(root, pools, MACHINE_POOLS_MAX);
    for (size_t i = 0; i < m->pool_count; i++) {
        struct machine_pool *p = &m->pools[i];
        p->pages = pools[i];
        pool_number(root, pools[i].page_bytes, "nr_overcommit_hugepages", &p->overcommit);
        p->node_free = read_node_free(root, m, &pools[i]);
        machine_read_hugetlb_limit(root, pools[i].page_bytes, &p->cgroup);
    }
}

static void read_thp(const char *root, struct machine *m) {
    char text[OSFILE_TEXT_MAX];
    osfile_number(root, THP_DIR "/hpage_pmd_size", &m->thp_bytes);
    osfile_read(root, THP_DIR "/enabled", text, sizeof(text));
    osfile_chosen(text, m->thp_mode, sizeof(m->thp_mode));
    osfile_read(root, THP_DIR "/defrag", text, sizeof(text));
    osfile_chosen(text, m->thp_defrag, sizeof(m->thp_defrag));
}

static void read_memory(const char *root, struct machine *m) {
    char text[OSFILE_TEXT_MAX];
    size_t kb = 0;
    osfile_read(root, "/proc/meminfo", text, sizeof(text));
    m->total_bytes = osfile_find(text, "MemTotal:", &kb) ? kb << 10 : 0;
    m->available_bytes = osfile_find(text, "MemAvailable:", &kb) ? kb << 10 : 0;
    m->default_huge_bytes = osfile_find(text, "Hugepagesize:", &kb) ? kb << 10 : 0;
    osfile_number(root, "/proc/sys/vm/overcommit_memory", &m->overcommit_memory);
    osfile_read(root, "/proc/self/limits", text, sizeof(text));
    m->memlock_bytes = MACHINE_NO_LIMIT; /* also what "unlimited" leaves */
    osfile_find(text, "Max locked memory", &m->memlock_bytes);
    machine_read_memory_limit(root, &m->cgroup_memory);
}

void machine_read(const char *root, struct machine *out) {
    char status[OSFILE_TEXT_MAX];
    *out = (struct machine){.os_page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
    osfile_read(root, "/proc/self/status", status, sizeof(status));
    read_nodes(root, status, out);
    read_memory(root, out);
    read_pools(root, out);
    read_thp(root, out);
}

const struct machine_pool *machine_pool(const struct machine *m, size_t page_bytes) {
    for (size_t i = 0; i < m->pool_count; i++) {
        if (m->pools[i].pages.page_bytes == page_bytes) {
            return &m->pools[i];
        }
    }
    return NULL;
}
