/* SPDX-License-Identifier: BSD-3-Clause */
/* --check-hugepages: facts, a real try, and what to type, before a server starts. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "mem/advice.h"
#include "server/server.h"

#define EXIT_HAD 0
#define EXIT_LACKING 1
#define EXIT_BAD_ARGUMENTS 2
/* Should the try bring the machine in need, it is this process that goes. */
#define OWN_OOM_SCORE "1000"
#define INDENT "  "

struct check {
    const struct config *config;
    struct machine machine;
    size_t bytes; /* 0: one page of each */
    struct buf out;
    bool any; /* some kind gives all */
};

/* What can be had of one kind. */
struct finding {
    struct advice advice;
    struct pages_trial trial;
    bool tried, had;
};

/* ---- arguments ---- */

/* SIZE in the form of memory options; what follows is the rest of a command line. */
static bool parse_arguments(struct check *c, struct config *config, int argc, char *const *argv,
                            struct buf *error) {
    int skip = 1;
    uint64_t bytes;
    if (argc > 2 && strncmp(argv[2], "--", 2) != 0) {
        if (!number_parse_size(bytes_from_cstr(argv[2]), &bytes) || bytes == 0 ||
            bytes > SIZE_MAX / 2) {
            buf_printf(error,
                       "'%s' is no size in bytes; units are k m g (1000) and kb mb gb (1024)",
                       argv[2]);
            return false;
        }
        c->bytes = (size_t)bytes;
        skip = 2;
    }
    enum config_action action;
    enum status st = config_load(config, argc - skip, argv + skip, &action, error);
    if (st == ST_OK && action != CONFIG_RUN) {
        buf_printf(error, "'%s' is no option for a check", argv[skip + 1]);
    }
    return st == ST_OK && action == CONFIG_RUN;
}

/* ---- the try ---- */

static void offer_to_oom(void) {
    FILE *file = fopen("/proc/self/oom_score_adj", "we");
    if (file != NULL) {
        fputs(OWN_OOM_SCORE, file);
        fclose(file);
    }
}

/* Transparent ones are ordinary memory, so what the machine has not is not tried. Reserved ones are tried whatever
 * the judgement: the kernel has the last word. */
static void find_out(struct check *c, enum pages_kind kind, size_t page_bytes, struct finding *f) {
    *f = (struct finding){.tried = false};
    advice_judge(&c->machine, kind, page_bytes, c->bytes != 0 ? c->bytes : 1, &f->advice);
    size_t wanted = f->advice.pages_needed * f->advice.page_bytes;
    if (f->advice.page_bytes == 0 ||
        (kind == PAGES_THP && (f->advice.lacks & (ADVICE_MEMORY | ADVICE_CGROUP)))) {
        return;
    }
    pages_try(kind, f->advice.page_bytes, wanted, &f->trial);
    f->tried = true;
    f->had = f->trial.huge_bytes >= wanted;
    c->any = c->any || f->had;
}

/* ---- the report ---- */

static void write_mib(const char *what, size_t bytes, struct buf *out) {
    if (bytes == MACHINE_NO_LIMIT) {
        buf_printf(out, "%snone seen", what);
    } else {
        buf_printf(out, "%s%zu MiB", what, bytes >> 20);
    }
}

static void write_trial(struct check *c, const struct finding *f) {
    struct buf *out = &c->out;
    size_t wanted = f->advice.pages_needed * f->advice.page_bytes;
    if (!f->tried) {
        return;
    }
    buf_printf(out, INDENT "tried: %zu MiB of %zu MiB could be mapped and filled",
               f->trial.huge_bytes >> 20, wanted >> 20);
    if (f->had) {
        buf_append_cstr(out, ".\n");
    } else if (f->advice.kind == PAGES_THP && f->trial.code == 0 && f->advice.lacks == 0) {
        buf_append_cstr(out, "; for the rest, free memory is in too small pieces.\n");
    } else {
        buf_printf(out, ": %s.\n", pages_reason_text(f->trial.reason));
    }
}

/* Enough by all that the kernel tells, and still it gave less. */
static void write_riddle(struct check *c, const struct finding *f) {
    if (f->tried && !f->had && f->advice.lacks == 0) {
        if (f->advice.kind == PAGES_THP) {
            buf_append_cstr(&c->out, INDENT "As root: echo 1 > /proc/sys/vm/compact_memory\n");
        } else {
            buf_append_cstr(&c->out,
                            INDENT "Somebody else took pages meanwhile, or a limit that this "
                                   "process cannot read holds.\n");
        }
    }
}

static void report_pool(struct check *c, const struct machine_pool *p, struct finding *f) {
    struct buf *out = &c->out;
    const struct pages_pool *pool = &p->pages;
    find_out(c, PAGES_HUGETLB, pool->page_bytes, f);
    buf_append_cstr(out, "\nReserved huge pages of ");
    advice_write_bytes(pool->page_bytes, out);
    buf_append_cstr(
        out, pool->page_bytes == c->machine.default_huge_bytes
                 ? ", this kernel's default size (--arena-hugetlb, --index-hugepages hugetlb)\n"
                 : " (--arena-hugetlb --arena-hugetlb-size ");
    if (pool->page_bytes != c->machine.default_huge_bytes) {
        bool gib = pool->page_bytes % ((size_t)1 << 30) == 0;
        bool mib = pool->page_bytes % ((size_t)1 << 20) == 0;
        buf_printf(out, "%zu%s)\n",
                   pool->page_bytes >> (gib   ? 30
                                        : mib ? 20
                                              : 10),
                   gib   ? "g"
                   : mib ? "m"
                         : "k");
    }
    buf_printf(
        out,
        INDENT
        "pool: %zu page(s), %zu free, %zu of them reserved, %zu surplus, %zu more on demand\n",
        pool->total, pool->free, pool->reserved, pool->surplus,
        p->overcommit > pool->surplus ? p->overcommit - pool->surplus : 0);
    buf_printf(out, INDENT "needed: %zu page(s), usable now: %zu\n", f->advice.pages_needed,
               f->advice.pages_usable);
    write_mib(INDENT "control group limit: ", p->cgroup.limit_bytes, out);
    if (p->cgroup.limit_bytes != MACHINE_NO_LIMIT) {
        write_mib(", room: ", p->cgroup.room_bytes, out);
    }
    buf_append_char(out, '\n');
    write_trial(c, f);
    advice_write(&c->machine, &f->advice, INDENT, out);
    write_riddle(c, f);
    advice_write_size(&c->machine, pool->page_bytes, c->config->hash_chunk_bytes, INDENT, out);
}

static void report_thp(struct check *c, struct finding *f) {
    struct buf *out = &c->out;
    const struct machine *m = &c->machine;
    find_out(c, PAGES_THP, 0, f);
    buf_append_cstr(out, "\nTransparent huge pages");
    if (m->thp_bytes != 0) {
        buf_append_cstr(out, " of ");
        advice_write_bytes(m->thp_bytes, out);
    }
    buf_append_cstr(out, " (--arena-thp, --index-hugepages thp)\n");
    if (m->thp_bytes != 0) {
        buf_printf(out, INDENT "mode: %s, defrag: %s\n", m->thp_mode, m->thp_defrag);
    }
    write_trial(c, f);
    advice_write(m, &f->advice, INDENT, out);
    write_riddle(c, f);
    advice_write_size(m, m->thp_bytes, c->config->hash_chunk_bytes, INDENT, out);
}

static void report_machine(struct check *c) {
    const struct machine *m = &c->machine;
    struct buf *out = &c->out;
    if (c->bytes != 0) {
        buf_printf(out, "Huge pages for %zu bytes (%zu MiB) on this machine\n", c->bytes,
                   c->bytes >> 20);
    } else {
        buf_append_cstr(out,
                        "Huge pages on this machine (no size given: one page of each is tried)\n");
    }
    buf_printf(out, INDENT "memory: %zu MiB, %zu MiB available; OS pages of ", m->total_bytes >> 20,
               m->available_bytes >> 20);
    advice_write_bytes(m->os_page_bytes, out);
    write_mib("\n" INDENT "control group memory limit: ", m->cgroup_memory.limit_bytes, out);
    buf_printf(out, "\n" INDENT "vm.overcommit_memory: %zu%s\n", m->overcommit_memory,
               m->overcommit_memory == 2 ? " (what is mapped counts in full, filled or not)" : "");
    buf_printf(out, INDENT "NUMA nodes: %s, usable by this process: %s\n",
               m->nodes_online[0] != '\0' ? m->nodes_online : "none",
               m->nodes_allowed[0] != '\0' ? m->nodes_allowed : "all");
    buf_append_cstr(out, INDENT "locked memory limit (RLIMIT_MEMLOCK): ");
    if (m->memlock_bytes == MACHINE_NO_LIMIT) {
        buf_append_cstr(out, "none");
    } else {
        buf_printf(out, "%zu KiB", m->memlock_bytes >> 10);
    }
    buf_append_cstr(out, "; huge pages do not count against it\n");
}

/* ---- the answer ---- */

/* Whether that kind and size gave all. */
static bool gives(const struct check *c, const struct finding *pools, const struct finding *thp,
                  enum pages_kind kind, size_t page_bytes) {
    if (kind == PAGES_THP) {
        return thp->had;
    }
    size_t size = page_bytes != 0 ? page_bytes : c->machine.default_huge_bytes;
    for (size_t i = 0; i < c->machine.pool_count; i++) {
        if (c->machine.pools[i].pages.page_bytes == size) {
            return pools[i].had;
        }
    }
    return false;
}

static bool answer(struct check *c, const struct finding *pools, const struct finding *thp) {
    const struct config *g = c->config;
    bool arena_asks = g->arena_hugetlb || g->arena_thp,
         index_asks = g->index_hugepages != CONFIG_INDEX_NO;
    bool had = arena_asks || index_asks ? true : c->any;
    if (arena_asks) {
        had = gives(c, pools, thp, g->arena_hugetlb ? PAGES_HUGETLB : PAGES_THP,
                    g->arena_hugetlb_size);
    }
    if (index_asks) {
        had = had && gives(c, pools, thp,
                           g->index_hugepages == CONFIG_INDEX_THP ? PAGES_THP : PAGES_HUGETLB, 0);
    }
    struct buf *out = &c->out;
    const char *what = arena_asks || index_asks ? " as the options ask for them" : "";
    if (had) {
        buf_printf(out, "\nYes: that much can be had on huge pages%s.\n", what);
    } else {
        buf_printf(out,
                   "\nNo: that much cannot be had on huge pages%s now. A server falls back to "
                   "plain pages for the rest.\n",
                   what);
    }
    return had;
}

static void report_missing_size(struct check *c) {
    size_t size = c->config->arena_hugetlb_size;
    struct advice missing;
    if (size != 0 && machine_pool(&c->machine, size) == NULL) {
        advice_judge(&c->machine, PAGES_HUGETLB, size, 1, &missing);
        buf_append_char(&c->out, '\n');
        advice_write(&c->machine, &missing, "", &c->out);
    }
}

/* Part by part, as each try takes its time. */
static bool show(struct check *c) {
    bool good = !c->out.failed && fwrite(c->out.ptr, 1, c->out.len, stdout) == c->out.len;
    buf_clear(&c->out);
    return fflush(stdout) == 0 && good;
}

int check_hugepages(struct config *config, int argc, char *const *argv) {
    static struct check c;
    static struct finding pools[MACHINE_POOLS_MAX], thp;
    struct buf error = {0};
    c = (struct check){.config = config};
    if (!parse_arguments(&c, config, argc, argv, &error)) {
        fprintf(stderr, "goblin-core: --check-hugepages: %.*s\n", (int)error.len,
                error.ptr != NULL ? error.ptr : "out of memory");
        buf_deinit(&error);
        return EXIT_BAD_ARGUMENTS;
    }
    offer_to_oom();
    machine_read("", &c.machine);
    report_machine(&c);
    show(&c);
    for (size_t i = 0; i < c.machine.pool_count; i++) {
        report_pool(&c, &c.machine.pools[i], &pools[i]);
        show(&c);
    }
    report_missing_size(&c);
    report_thp(&c, &thp);
    bool had = answer(&c, pools, &thp);
    bool shown = show(&c);
    buf_deinit(&c.out);
    buf_deinit(&error);
    return had && shown ? EXIT_HAD : EXIT_LACKING;
}
