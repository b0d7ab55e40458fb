/* SPDX-License-Identifier: BSD-3-Clause */
/* What the log says when the server starts. */
#include <unistd.h>

#include "base/log.h"
#include "mem/account.h"
#include "mem/advice.h"
#include "mem/index.h"
#include "server/server.h"

/* What was asked for and what there is of it: one line, and a warning when there is none. */
static void print_pages(const char *what, const char *unit, const struct pages *pages) {
    struct pages_stats stats;
    struct machine machine;
    struct advice advice;
    pages_get_stats(pages, &stats);
    machine_read("", &machine);
    advice_judge(&machine, stats.asked, stats.huge_page_bytes, 1, &advice);
    const struct machine_pool *pool = machine_pool(&machine, stats.huge_page_bytes);
    size_t unit_kib = stats.chunk_bytes >> 10, page_kib = stats.huge_page_bytes >> 10;
    if (stats.huge_page_bytes == 0) {
        log_warning(
            "%s: huge pages asked, but this kernel has none of that size: plain pages are used",
            what);
        return;
    }
    if (stats.asked == PAGES_THP) {
        log_notice(
            "%s: %s of %zu KiB, transparent huge pages of %zu KiB asked, the kernel's setting is "
            "'%s'",
            what, unit, unit_kib, page_kib, machine.thp_mode);
    } else if (pool != NULL) {
        log_notice("%s: %s of %zu KiB, huge pages asked: %zu of %zu pages of %zu KiB are free",
                   what, unit, unit_kib, pool->pages.free, pool->pages.total, page_kib);
    }
    if (advice.lacks != 0) {
        log_warning(
            "%s: no huge page can be had now, plain pages are used until one can (MEMORY DOCTOR "
            "and goblin-core --check-hugepages SIZE tell what to do)",
            what);
    }
}

static void print_memory(const struct server *s) {
    if (pages_asked(s->pages) == PAGES_PLAIN) {
        log_notice("Arenas: chunks of %zu KiB on plain pages (--arena-hugetlb asks for huge ones)",
                   pages_chunk_bytes(s->pages) >> 10);
    } else {
        print_pages("Arenas", "chunks", s->pages);
    }
    if (index_pages() == NULL) {
        log_notice("Indexes: on plain pages (--index-hugepages asks for huge ones)");
    } else {
        print_pages("Indexes", "blocks", index_pages());
    }
}

void server_print_start(const struct server *s) {
    log_notice("Goblin Core %s, pid %d, %s", GC_VERSION, (int)getpid(), account_allocator_name());
    print_memory(s);
    for (size_t i = 0; s->config.port != 0 && i < s->config.bind.count; i++) {
        const char *address = s->config.bind.items[i];
        bool optional = address[0] == '-';
        log_notice("Listening on %s, port %d%s", address + optional, s->config.port,
                   optional ? " (if this machine has it)" : "");
    }
    if (s->config.unixsocket[0] != '\0') {
        log_notice("Listening on %s", s->config.unixsocket);
    }
}

static void print_share(const char *what, const struct pages *pages) {
    struct pages_stats p;
    pages_get_stats(pages, &p);
    if (p.asked == PAGES_PLAIN || p.chunks == 0) {
        return;
    }
    double mib = (double)p.chunk_bytes / (1 << 20);
    log_notice("%s: %.1f of %.1f MiB are on huge pages", what, (double)p.huge_chunks * mib,
               (double)p.chunks * mib);
    if (p.fallback_chunks != 0) {
        log_warning("%s: %.1f MiB fell back to plain pages, as %s (MEMORY DOCTOR tells what to do)",
                    what, (double)p.fallback_chunks * mib, pages_reason_text(p.last_reason));
    }
}

void server_print_shares(const struct server *s) {
    print_share("Arenas", s->pages);
    if (index_pages() != NULL) {
        print_share("Indexes", index_pages());
    }
}
