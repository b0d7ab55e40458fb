/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/advice.h"

#include <stdio.h>
#include <string.h>

#define GIB ((size_t)1 << 30)
#define SYSCTL_FILE "/etc/sysctl.d/60-hugepages.conf"
#define TMPFILES_FILE "/etc/tmpfiles.d/hugepages.conf"
#define THP_ENABLED "/sys/kernel/mm/transparent_hugepage/enabled"

/* ---- judging ---- */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t minus(size_t a, size_t b) {
    return a > b ? a - b : 0;
}

static void judge_hugetlb(const struct machine *m, const struct machine_pool *p, struct advice *a) {
    size_t page = a->page_bytes;
    /* Pages made on demand are ordinary memory until then. */
    size_t extra = least(minus(p->overcommit, p->pages.surplus), m->available_bytes / page);
    size_t in_all = minus(p->pages.free, p->pages.reserved) + extra;
    size_t on_nodes = least(in_all, minus(p->node_free, p->pages.reserved) + extra);
    size_t in_group =
        p->cgroup.room_bytes == MACHINE_NO_LIMIT ? SIZE_MAX : p->cgroup.room_bytes / page;
    a->pages_usable = least(on_nodes, in_group);
    a->pages_lacking = minus(a->pages_needed, on_nodes);
    if (in_all < a->pages_needed) {
        a->lacks |= ADVICE_POOL;
    } else if (on_nodes < a->pages_needed) {
        a->lacks |= ADVICE_NODES;
    }
    if (in_group < a->pages_needed) {
        a->lacks |= ADVICE_CGROUP;
    }
    if (a->pages_lacking > m->available_bytes / page) {
        a->lacks |= ADVICE_MEMORY;
    }
}

static void judge_thp(const struct machine *m, struct advice *a) {
    size_t room = least(m->available_bytes, m->cgroup_memory.room_bytes);
    a->pages_usable = room / a->page_bytes;
    if (strcmp(m->thp_mode, "always") != 0 && strcmp(m->thp_mode, "madvise") != 0) {
        a->lacks |= ADVICE_MODE;
        a->pages_usable = 0;
    }
    if (room / a->page_bytes < a->pages_needed) {
        a->lacks |= m->available_bytes / a->page_bytes < a->pages_needed ? ADVICE_MEMORY : 0;
        a->lacks |=
            m->cgroup_memory.room_bytes / a->page_bytes < a->pages_needed ? ADVICE_CGROUP : 0;
    }
}

void advice_judge(const struct machine *m, enum pages_kind kind, size_t page_bytes, size_t bytes,
                  struct advice *out) {
    size_t size = kind == PAGES_THP ? m->thp_bytes
                  : page_bytes != 0 ? page_bytes
                                    : m->default_huge_bytes;
    const struct machine_pool *pool = machine_pool(m, size);
    *out = (struct advice){.kind = kind, .page_bytes = size, .asked_bytes = size};
    if (size == 0 || (kind == PAGES_HUGETLB && pool == NULL)) {
        out->page_bytes = 0;
        out->lacks = ADVICE_SIZE;
        return;
    }
    out->pages_needed = bytes / size + (bytes % size != 0);
    if (kind == PAGES_HUGETLB) {
        judge_hugetlb(m, pool, out);
    } else {
        judge_thp(m, out);
    }
}

/* ---- words ---- */

void advice_write_bytes(size_t bytes, struct buf *out) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    while (unit < ARRAY_LEN(units) - 1 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    buf_printf(out, "%zu %s", bytes, units[unit]);
}

static void write_size_lack(const struct machine *m, const struct advice *a, const char *indent,
                            struct buf *out) {
    if (a->kind == PAGES_THP) {
        buf_printf(out, "%sThis kernel has no transparent huge pages.\n", indent);
        return;
    }
    buf_append_cstr(out, indent);
    if (m->pool_count == 0) {
        buf_append_cstr(out, "This kernel has no reserved huge pages (built without "
                             "CONFIG_HUGETLBFS, or the processor has none): --arena-thp may do.\n");
        return;
    }
    buf_append_cstr(out, "This kernel has no huge pages of ");
    advice_write_bytes(a->asked_bytes, out);
    buf_append_cstr(out, ". It has");
    for (size_t i = 0; i < m->pool_count; i++) {
        buf_append_cstr(out, i == 0 ? " " : ", ");
        advice_write_bytes(m->pools[i].pages.page_bytes, out);
    }
    buf_append_cstr(out, ".\n");
}

/* The kernel's own file for a size. */
static void write_pool_file(size_t page_bytes, struct buf *out) {
    buf_printf(out, "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages", page_bytes >> 10);
}

static void write_node_line(const struct advice *a, unsigned node, const char *indent,
                            struct buf *out) {
    char file[160];
    snprintf(file, sizeof(file),
             "/sys/devices/system/node/node%u/hugepages/hugepages-%zukB/nr_hugepages", node,
             a->page_bytes >> 10);
    buf_printf(out, "%s  echo $(($(cat %s) + %zu)) > %s\n", indent, file, a->pages_lacking, file);
}

static void write_pool_lines(const struct machine *m, const struct advice *a, const char *indent,
                             struct buf *out) {
    const struct machine_pool *p = machine_pool(m, a->page_bytes);
    size_t total = p->pages.total + a->pages_lacking;
    unsigned node;
    if (machine_is_bound(m, &node)) {
        buf_printf(out,
                   "%sThis process is bound to NUMA node(s) %s. As root, now and at each boot:\n",
                   indent, m->nodes_allowed);
        write_node_line(a, node, indent, out);
        return;
    }
    buf_printf(out, "%sAs root, now:\n%s  ", indent, indent);
    bool is_default = a->page_bytes == m->default_huge_bytes;
    if (is_default) {
        buf_printf(out, "sysctl -w vm.nr_hugepages=%zu\n", total);
    } else {
        buf_printf(out, "echo %zu > ", total);
        write_pool_file(a->page_bytes, out);
        buf_append_char(out, '\n');
    }
    buf_printf(out, "%sand at each boot:\n%s  ", indent, indent);
    if (a->page_bytes >= GIB) { /* hardly ever in one piece later on */
        buf_printf(out, "hugepagesz=%zuG hugepages=%zu on the kernel's command line\n",
                   a->page_bytes / GIB, total);
    } else if (is_default) {
        buf_printf(out, "echo 'vm.nr_hugepages = %zu' > " SYSCTL_FILE "\n", total);
    } else {
        buf_append_cstr(out, "echo 'w ");
        write_pool_file(a->page_bytes, out);
        buf_printf(out, " - - - - %zu' > " TMPFILES_FILE "\n", total);
    }
    buf_printf(out, "%sThe kernel may give fewer when free memory is in pieces: read ", indent);
    write_pool_file(a->page_bytes, out);
    buf_append_cstr(out, " afterwards.\n");
}

static void write_pool_lack(const struct machine *m, const struct advice *a, const char *indent,
                            struct buf *out) {
    const struct machine_pool *p = machine_pool(m, a->page_bytes);
    buf_printf(out, "%sThe pool is too small by %zu page(s) of ", indent, a->pages_lacking);
    advice_write_bytes(a->page_bytes, out);
    buf_printf(out, ": %zu needed, %zu of %zu free", a->pages_needed,
               minus(p->pages.free, p->pages.reserved), p->pages.total);
    if (a->lacks & ADVICE_NODES) {
        buf_printf(out, ", %zu on the nodes this process may use", p->node_free);
    }
    buf_append_cstr(out, ".\n");
    if (!(a->lacks & ADVICE_MEMORY)) {
        write_pool_lines(m, a, indent, out);
    }
}

static void write_memory_lack(const struct machine *m, const struct advice *a, const char *indent,
                              struct buf *out) {
    size_t pages = a->kind == PAGES_HUGETLB ? a->pages_lacking : a->pages_needed;
    buf_printf(out, "%sThe machine has not that much memory: ", indent);
    buf_printf(out, "%zu MiB more are wanted, %zu MiB are available.\n",
               (pages * (a->page_bytes >> 10)) >> 10, m->available_bytes >> 20);
}

static void write_cgroup_lack(const struct machine *m, const struct advice *a, const char *indent,
                              struct buf *out) {
    const struct machine_limit *limit =
        a->kind == PAGES_HUGETLB ? &machine_pool(m, a->page_bytes)->cgroup : &m->cgroup_memory;
    size_t wanted = a->pages_needed * a->page_bytes;
    buf_printf(out,
               "%sThe control group's limit leaves %zu MiB of %zu MiB. As root, or in the "
               "container's description:\n",
               indent, limit->room_bytes >> 20, limit->limit_bytes >> 20);
    buf_printf(out, "%s  echo %zu > %s\n", indent,
               limit->limit_bytes + minus(wanted, limit->room_bytes), limit->file);
}

static void write_mode_lack(const struct machine *m, const char *indent, struct buf *out) {
    buf_printf(out, "%sTransparent huge pages are set to '%s'. As root, now:\n", indent,
               m->thp_mode[0] != '\0' ? m->thp_mode : "never");
    buf_printf(out, "%s  echo madvise > " THP_ENABLED "\n", indent);
    buf_printf(out, "%sand at each boot:\n", indent);
    buf_printf(out, "%s  transparent_hugepage=madvise on the kernel's command line\n", indent);
}

void advice_write(const struct machine *m, const struct advice *a, const char *indent,
                  struct buf *out) {
    if (a->lacks & ADVICE_SIZE) {
        write_size_lack(m, a, indent, out);
        return;
    }
    if (a->lacks & ADVICE_MODE) {
        write_mode_lack(m, indent, out);
    }
    if (a->lacks & (ADVICE_POOL | ADVICE_NODES)) {
        write_pool_lack(m, a, indent, out);
    }
    if (a->lacks & ADVICE_MEMORY) {
        write_memory_lack(m, a, indent, out);
    }
    if (a->lacks & ADVICE_CGROUP) {
        write_cgroup_lack(m, a, indent, out);
    }
}

void advice_write_size(const struct machine *m, size_t page_bytes, size_t chunk_bytes,
                       const char *indent, struct buf *out) {
    if (page_bytes <= chunk_bytes) {
        return;
    }
    buf_printf(out, "%sOne page holds %zu chunks of ", indent, page_bytes / chunk_bytes);
    advice_write_bytes(chunk_bytes, out);
    buf_append_cstr(out, "; a whole page is taken at a time, and given back when all of its chunks "
                         "are free.\n");
    for (size_t i = 0; i < m->pool_count; i++) {
        size_t smaller = m->pools[i].pages.page_bytes;
        if (smaller < page_bytes && smaller >= chunk_bytes) {
            buf_printf(out, "%sThis kernel has smaller ones: --arena-hugetlb-size %zum\n", indent,
                       smaller >> 20);
            return;
        }
    }
}
