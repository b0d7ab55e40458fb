/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "osfile_priv.h"
#include "pages_os.h"

/* At first so much in one mapping: few mappings for a large wish, and what there is of it is found
 * in halves from there. */
#define STEP_BYTES ((size_t)1 << 30)

struct piece {
    void *base;
    size_t bytes;
    struct piece *before;
};

static void unmap_all(struct piece *last) {
    while (last != NULL) {
        struct piece *p = last;
        last = p->before;
        pages_os_unmap(p->base, p->bytes);
        free(p);
    }
}

static void try_hugetlb(size_t page_bytes, size_t bytes, struct pages_trial *out) {
    size_t step = STEP_BYTES > page_bytes ? STEP_BYTES : page_bytes;
    struct piece *last = NULL;
    while (out->huge_bytes < bytes && step >= page_bytes) {
        size_t left = bytes - out->huge_bytes, want = left < step ? left : step;
        struct piece *p = malloc(sizeof(*p));
        struct pages_os_error error = {.reason = PAGES_REASON_OTHER, .code = ENOMEM};
        void *base = p != NULL ? pages_os_map_hugetlb(want, page_bytes, page_bytes, &error) : NULL;
        if (base == NULL) {
            free(p);
            out->reason = error.reason;
            out->code = error.code;
            step = want / 2 / page_bytes * page_bytes;
            step = step == 0 && want > page_bytes ? page_bytes : step;
            if (step == 0) {
                break;
            }
            continue;
        }
        *p = (struct piece){.base = base, .bytes = want, .before = last};
        last = p;
        out->huge_bytes += want;
    }
    unmap_all(last);
}

static size_t anon_huge_bytes(void) {
    char text[OSFILE_TEXT_MAX];
    size_t kb = 0;
    osfile_read("", "/proc/self/smaps_rollup", text, sizeof(text));
    osfile_find(text, "AnonHugePages:", &kb);
    return kb << 10;
}

static void try_thp(size_t page_bytes, size_t bytes, struct pages_trial *out) {
    struct pages_os_error error = {.reason = PAGES_REASON_THP_NEVER};
    if (pages_os_thp_is_never()) {
        out->reason = error.reason;
        return;
    }
    size_t before = anon_huge_bytes();
    void *base = pages_os_map(bytes, page_bytes, true, &error);
    if (base == NULL) {
        out->reason = error.reason;
        out->code = error.code;
        return;
    }
    out->code = pages_os_populate(base, bytes, page_bytes);
    size_t after = anon_huge_bytes();
    out->huge_bytes = after > before ? after - before : 0;
    if (out->huge_bytes >= bytes) {
        out->huge_bytes = bytes;
    } else {
        out->reason = out->code != 0 ? PAGES_REASON_POPULATE : PAGES_REASON_OTHER;
    }
    pages_os_unmap(base, bytes);
}

void pages_try(enum pages_kind kind, size_t page_bytes, size_t bytes, struct pages_trial *out) {
    *out = (struct pages_trial){.reason = PAGES_REASON_NONE};
    size_t page = pages_os_find_size(kind, page_bytes);
    if (page == 0 || kind == PAGES_PLAIN) {
        out->reason = PAGES_REASON_NO_SUPPORT;
        return;
    }
    size_t whole = (bytes / page + (bytes % page != 0)) * page;
    if (kind == PAGES_HUGETLB) {
        try_hugetlb(page, whole, out);
    } else {
        try_thp(page, whole, out);
    }
    if (out->huge_bytes >= whole) {
        out->reason = PAGES_REASON_NONE;
        out->code = 0;
    }
}
