/* SPDX-License-Identifier: BSD-3-Clause */
#include "doctor_priv.h"

#include "mem/advice.h"

#define MIB ((size_t)1 << 20)
#define INDENT "   "

/* The bounds of Redis's own report: below the first nothing can be told from ratios. */
#define TOO_LITTLE_BYTES (5 * MIB)
#define PEAK_RATIO 1.5
#define OVERHEAD_RATIO 1.1
#define OVERHEAD_BYTES (10 * MIB)
#define CLIENT_BYTES (200 * (size_t)1024)

/* Page tables of 16 GiB of data on 4 KiB pages: no cache of a processor keeps them. */
#define PAGE_TABLE_BYTES (32 * MIB)

/* The kernel gave less than three quarters of the transparent huge pages that chunks lie on. Small
 * differences are chunks not filled yet. */
#define THP_SHARE 0.75
#define THP_SLACK_BYTES (32 * MIB)

/* Room to grow that a pool should have beyond what is in use. */
#define GROWTH_PART 8

#define CGROUP_ROOM_PART 10

struct report {
    const struct doctor_facts *f;
    struct buf *out;
    size_t problems;
};

static struct buf *problem(struct report *r, const char *title) {
    buf_printf(r->out, "%s * %s: ", r->problems++ == 0 ? "" : "\n", title);
    return r->out;
}

static size_t mib(uint64_t bytes) {
    return (size_t)(bytes / MIB);
}

static double in_mib(size_t bytes) {
    return (double)bytes / (double)MIB;
}

/* ---- the heap -------------------------------------------------------------------------------- */

/* a is more than b by ratio and by OVERHEAD_BYTES. */
static bool is_over(uint64_t a, uint64_t b, double ratio) {
    return a > b && (double)a > ratio * (double)b && a - b > OVERHEAD_BYTES;
}

static void look_at_heap(struct report *r) {
    const struct info_source *s = r->f->info;
    uint64_t resident = s->vm_rss_bytes + s->hugetlb_pages_bytes;
    uint64_t known = s->allocator_resident + s->arena_bytes;
    if (s->used_memory < TOO_LITTLE_BYTES) {
        return;
    }
    if ((double)s->used_memory_peak > PEAK_RATIO * (double)s->used_memory) {
        buf_printf(
            problem(r, "Peak"),
            "%zu MiB were in use once, %zu MiB are now. Free memory goes back to the kernel by "
            "itself, most of it at once; MEMORY PURGE gives back what the allocator keeps.\n",
            mib(s->used_memory_peak), mib(s->used_memory));
    }
    if (is_over(s->allocator_active, s->allocator_allocated, OVERHEAD_RATIO)) {
        buf_printf(problem(r, "Fragmentation of the heap"),
                   "%zu MiB of OS pages hold %zu MiB. Usual after many deletes; records of large "
                   "collections lie in arenas, which compact themselves.\n",
                   mib(s->allocator_active), mib(s->allocator_allocated));
    }
    if (is_over(s->allocator_resident, s->allocator_active, OVERHEAD_RATIO)) {
        buf_printf(problem(r, "Free memory kept by the allocator"),
                   "%zu MiB. MEMORY PURGE gives it back.\n",
                   mib(s->allocator_resident - s->allocator_active));
    }
    if (is_over(resident, known, OVERHEAD_RATIO)) {
        buf_printf(
            problem(r, "Resident memory"),
            "%zu MiB, of which arenas and the allocator know %zu MiB. Huge pages larger than a "
            "chunk are taken whole; otherwise it is memory of the program itself.\n",
            mib(resident), mib(known));
    }
}

static void look_at_clients(struct report *r) {
    const struct info_source *s = r->f->info;
    uint64_t each = s->connected_clients != 0 ? s->mem_clients_normal / s->connected_clients : 0;
    if (each > CLIENT_BYTES) {
        buf_printf(
            problem(r, "Connections"),
            "%zu MiB in buffers, %zu KiB each in the mean: clients that do not read their replies, "
            "or send very large requests. CLIENT LIST shows them; client-output-buffer-limit "
            "closes them.\n",
            mib(s->mem_clients_normal), (size_t)each / 1024);
    }
}

static void look_at_group(struct report *r) {
    const struct machine_limit *limit = &r->f->machine->cgroup_memory;
    if (limit->room_bytes != MACHINE_NO_LIMIT &&
        limit->room_bytes < limit->limit_bytes / CGROUP_ROOM_PART) {
        buf_printf(
            problem(r, "Control group"),
            "%zu MiB are left of its memory limit of %zu MiB (%s). Past it the kernel ends the "
            "process; CONFIG SET maxmemory to less answers with an error instead.\n",
            mib(limit->room_bytes), mib(limit->limit_bytes), limit->file);
    }
}

/* ---- huge pages ------------------------------------------------------------------------------ */

/* Those that ask for the same pages share a pool, and one piece of advice. */
struct wish {
    const char *names;
    const struct pages_stats *arena, *index; /* NULL: not of this wish */
    const struct pages_stats *first;         /* of the two */
    size_t bytes, fallback_bytes;
    size_t spare_bytes; /* on huge pages already taken */
};

static void add(struct wish *w, const struct pages_stats *p) {
    if (p == NULL) {
        return;
    }
    size_t huge = p->huge_chunks * p->chunk_bytes, fallen = p->fallback_chunks * p->chunk_bytes;
    size_t page = p->huge_page_bytes != 0 ? p->huge_page_bytes : p->chunk_bytes;
    w->bytes += p->chunks * p->chunk_bytes;
    w->fallback_bytes += (fallen + page - 1) / page * page; /* no page is shared by both */
    w->spare_bytes += p->huge_mapped_bytes > huge ? p->huge_mapped_bytes - huge : 0;
    w->first = w->first != NULL ? w->first : p;
}

static struct wish wish_of(const char *names, const struct pages_stats *arena,
                           const struct pages_stats *index) {
    struct wish w = {.names = names, .arena = arena, .index = index};
    add(&w, arena);
    add(&w, index);
    return w;
}

static void write_share(struct report *r, const char *name, const struct pages_stats *p) {
    if (p == NULL || p->fallback_chunks == 0) {
        return;
    }
    double all = in_mib(p->chunks * p->chunk_bytes),
           fallen = in_mib(p->fallback_chunks * p->chunk_bytes);
    buf_printf(r->out, INDENT "%s: %.1f of %.1f MiB (%.0f %%) are on plain pages. Failures:", name,
               fallen, all, 100 * fallen / all);
    for (int i = PAGES_REASON_NONE + 1, n = 0; i < PAGES_REASONS; i++) {
        if (p->failures[i] != 0) {
            buf_printf(r->out, "%s %s (%zu)", n++ != 0 ? "," : "",
                       pages_reason_text((enum pages_reason)i), (size_t)p->failures[i]);
        }
    }
    buf_append_cstr(r->out, ".\n");
}

static void write_not_permitted(struct report *r, const struct pages_stats *p) {
    if (p->last_reason == PAGES_REASON_NOT_PERMITTED) {
        size_t limit = r->f->machine->memlock_bytes;
        buf_append_cstr(r->out,
                        INDENT "The kernel did not permit it: a security module or a filter of "
                               "system calls. ");
        if (limit == MACHINE_NO_LIMIT) {
            buf_append_cstr(r->out, "RLIMIT_MEMLOCK is unlimited.\n");
        } else {
            buf_printf(r->out, "RLIMIT_MEMLOCK (%zu KiB) does not count huge pages.\n",
                       limit >> 10);
        }
    }
}

static void tell_of_fallback(struct report *r, const struct wish *w) {
    struct advice a;
    advice_judge(r->f->machine, w->first->asked, w->first->asked_page_bytes,
                 w->fallback_bytes + w->bytes / GROWTH_PART, &a);
    buf_printf(problem(r, "Huge pages"),
               "%s asked for %s and did not get all of it; page tables take %zu KiB.\n", w->names,
               pages_kind_name(w->first->asked), (size_t)r->f->info->page_table_bytes >> 10);
    write_share(r, "Arenas", w->arena);
    write_share(r, "Indexes", w->index);
    write_not_permitted(r, w->first);
    if (a.lacks & ~(unsigned)(ADVICE_SIZE | ADVICE_MODE)) {
        buf_append_cstr(r->out, INDENT "For what fell back, and an eighth of all to grow:\n");
    }
    advice_write(r->f->machine, &a, INDENT, r->out);
    if (a.lacks == 0) {
        bool limited = w->first->last_reason == PAGES_REASON_POPULATE ||
                       w->first->last_reason == PAGES_REASON_HELD_BACK;
        buf_append_cstr(
            r->out, limited ? INDENT
                        "By all that this process can read there are enough. A limit of a control "
                        "group out of its sight may hold.\n"
                            : INDENT "There are enough huge pages now: new data gets them.\n");
    }
    if (!(a.lacks & ADVICE_SIZE)) {
        buf_append_cstr(r->out, INDENT
                        "What fell back stays on plain pages until it is written anew: SAVE and "
                        "a new start do that for all data.\n");
    }
}

/* Nothing fell back yet, but nothing is left either. */
static void tell_of_end(struct report *r, const struct wish *w) {
    struct advice next, more;
    size_t growth = w->bytes / GROWTH_PART;
    advice_judge(r->f->machine, w->first->asked, w->first->asked_page_bytes, 1, &next);
    if (next.lacks == 0 || (w->spare_bytes != 0 && w->spare_bytes >= growth)) {
        return;
    }
    advice_judge(r->f->machine, w->first->asked, w->first->asked_page_bytes,
                 growth != 0 ? growth : 1, &more);
    buf_printf(problem(r, "Huge pages"),
               "%s ask for %s, and no more can be had: what is added goes on plain pages.\n",
               w->names, pages_kind_name(w->first->asked));
    if (growth != 0) {
        buf_printf(r->out, INDENT "To grow by an eighth, %zu MiB:\n", mib(growth));
    }
    advice_write(r->f->machine, &more, INDENT, r->out);
}

static void look_at_wish(struct report *r, struct wish w) {
    if (w.fallback_bytes != 0) {
        tell_of_fallback(r, &w);
    } else {
        tell_of_end(r, &w);
    }
}

static void look_at_huge_pages(struct report *r) {
    const struct pages_stats *arena = &r->f->memory->arena, *index = &r->f->memory->index;
    bool arena_asks = arena->asked != PAGES_PLAIN, index_asks = index->asked != PAGES_PLAIN;
    if (arena_asks && arena->asked == index->asked &&
        arena->huge_page_bytes == index->huge_page_bytes) {
        look_at_wish(r, wish_of("Arenas and indexes", arena, index));
        return;
    }
    if (arena_asks) {
        look_at_wish(r, wish_of("Arenas", arena, NULL));
    }
    if (index_asks) {
        look_at_wish(r, wish_of("Indexes", NULL, index));
    }
}

/* MADV_HUGEPAGE is a request: only the kernel's count tells what came of it. */
static void look_at_thp_share(struct report *r) {
    const struct memory_source *m = r->f->memory;
    size_t asked = 0, had = (size_t)r->f->info->anon_huge_pages_bytes;
    asked += m->arena.asked == PAGES_THP ? m->arena.huge_chunks * m->arena.chunk_bytes : 0;
    asked += m->index.asked == PAGES_THP ? m->index.huge_chunks * m->index.chunk_bytes : 0;
    if (asked > had + THP_SLACK_BYTES && (double)had < THP_SHARE * (double)asked) {
        buf_printf(problem(r, "Transparent huge pages"),
                   "the kernel serves %zu of %zu MiB with them (defrag: %s). Free memory was in "
                   "pieces, or a "
                   "background save had them split. As root:\n" INDENT
                   "  echo 1 > /proc/sys/vm/compact_memory\n" INDENT
                   "  echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag\n",
                   mib(had), mib(asked), r->f->machine->thp_defrag);
    }
}

static void look_at_page_tables(struct report *r) {
    const struct info_source *s = r->f->info;
    if (s->page_table_bytes > PAGE_TABLE_BYTES && r->f->memory->arena.asked == PAGES_PLAIN) {
        buf_printf(
            problem(r, "Page tables"),
            "%zu MiB, for %zu MiB of memory on plain pages. Huge pages need a 512th of them, and "
            "fewer steps to each record: --arena-thp, or --arena-hugetlb with a pool; "
            "goblin-core --check-hugepages %zumb tells what this machine gives.\n",
            mib(s->page_table_bytes), mib(s->vm_rss_bytes), mib(s->vm_rss_bytes));
    }
}

/* ---- report ---------------------------------------------------------------------------------- */

static void write_state(struct buf *out, const char *name, const struct pages_stats *p) {
    if (p->asked == PAGES_PLAIN) {
        buf_printf(out, "%s: on plain pages, as asked.\n", name);
        return;
    }
    buf_printf(out, "%s: %.1f of %.1f MiB on huge pages (%s", name,
               in_mib(p->huge_chunks * p->chunk_bytes), in_mib(p->chunks * p->chunk_bytes),
               pages_kind_name(p->asked));
    if (p->huge_page_bytes != 0) {
        buf_append_cstr(out, ", ");
        advice_write_bytes(p->huge_page_bytes, out);
    }
    buf_append_cstr(out, ").\n");
}

void doctor_write(const struct doctor_facts *f, struct buf *out) {
    struct report r = {.f = f, .out = out};
    look_at_huge_pages(&r);
    look_at_thp_share(&r);
    look_at_page_tables(&r);
    look_at_heap(&r);
    look_at_clients(&r);
    look_at_group(&r);
    buf_append_cstr(out, r.problems == 0 ? "No memory problem was found.\n" : "\n");
    write_state(out, "Arenas", &f->memory->arena);
    write_state(out, "Indexes", &f->memory->index);
    buf_printf(out, "Page tables: %zu KiB. Transparent huge pages are set to '%s'.\n",
               (size_t)f->info->page_table_bytes >> 10, f->machine->thp_mode);
}
