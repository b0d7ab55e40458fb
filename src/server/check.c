/* SPDX-License-Identifier: BSD-3-Clause */
/* --check-rdb: a file read to its end, and what is in it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "server/server.h"

struct checking {
    uint64_t total_bytes;
    int64_t shown_us;
    bool on_terminal;
};

static void note_length(void *arg, uint64_t total_bytes) {
    struct checking *c = arg;
    c->total_bytes = total_bytes;
}

static bool show(void *arg, uint64_t bytes, uint64_t keys) {
    struct checking *c = arg;
    int64_t now_us = clock_monotonic_us();
    if (c->on_terminal && c->total_bytes != 0 && now_us - c->shown_us >= 100000) {
        c->shown_us = now_us;
        fprintf(stderr, "\r%3.0f %%, %" PRIu64 " keys\033[K",
                100 * (double)bytes / (double)c->total_bytes, keys);
    }
    return true;
}

static void print_report(const struct reader_report *r, bool ok) {
    printf("version:             RDB %u\n", r->version);
    printf("keys:                %" PRIu64 "%s\n", r->keys, ok ? "" : " before the error");
    for (int type = 0; type < VALUE_TYPES; type++) {
        if (r->keys_by_type[type] != 0) {
            printf("  %-18s %" PRIu64 "\n", value_type_name((enum value_type)type),
                   r->keys_by_type[type]);
        }
    }
    printf("with an expiry:      %" PRIu64 "\n", r->expiring);
    printf("expired:             %" PRIu64 " (a load leaves them out)\n", r->expired);
    printf("empty collections:   %" PRIu64 " (a load leaves them out)\n", r->empty);
    printf("not supported:       %" PRIu64 " streams, %" PRIu64 " module values, %" PRIu64
           " hashes with expiring fields, %" PRIu64 " function libraries\n",
           r->skipped_streams, r->skipped_modules, r->skipped_hashes, r->skipped_functions);
    if (ok) {
        printf("bytes:               %" PRIu64 "\n", r->bytes);
        printf("checksum:            %s\n", r->checksum_compared ? "right" : "the file has none");
    }
}

int check_rdb(const struct config *config, const char *path) {
    struct pages_options plain = {.kind = PAGES_PLAIN, .chunk_bytes = config->hash_chunk_bytes};
    struct pages *pages;
    char error[SNAPSHOT_ERROR_LEN] = "out of memory";
    hash_setup();
    if (pages_create(&plain, &pages) != ST_OK) {
        fprintf(stderr, "goblin-core: %s\n", error);
        return EXIT_FAILURE;
    }
    struct checking c = {.on_terminal = isatty(STDERR_FILENO) == 1};
    struct type_env env = server_type_env(config, pages);
    struct snapshot_load_options options = {.skip_unsupported = true,
                                            .now_ms = clock_realtime_ms(),
                                            .progress = show,
                                            .progress_arg = &c,
                                            .opened = note_length};
    struct reader_report report;
    bool ok = snapshot_check(path, &env, &options, &report, error) == ST_OK;
    if (c.shown_us != 0) {
        fprintf(stderr, "\r\033[K");
    }
    if (report.version != 0) {
        print_report(&report, ok);
    }
    printf("%s\n", ok ? "The file is good." : error);
    pages_destroy(pages);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
