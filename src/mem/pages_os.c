/* SPDX-License-Identifier: BSD-3-Clause */
#include "pages_os.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <hugetlbfs.h>

#include "osfile_priv.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; the C library may be older than the kernel */
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

#define SIZES_MAX 16
#define THP_MODE_FILE "/sys/kernel/mm/transparent_hugepage/enabled"
#define THP_SIZE_FILE "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"

/* ---- sizes ---- */

size_t pages_default_huge_bytes(void) {
    long bytes = gethugepagesize();
    return bytes > 0 ? (size_t)bytes : 0;
}

static int by_size(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

size_t pages_huge_sizes(size_t *sizes, size_t max) {
    long found[SIZES_MAX];
    int count = gethugepagesizes(found, SIZES_MAX);
    size_t n = 0;
    for (int i = 0; i < count && n < max; i++) {
        sizes[n++] = (size_t)found[i];
    }
    qsort(sizes, n, sizeof(sizes[0]), by_size);
    return n;
}

void pages_thp_mode(char mode[PAGES_THP_MODE_LEN]) {
    char text[64];
    osfile_read("", THP_MODE_FILE, text, sizeof(text));
    osfile_chosen(text, mode, PAGES_THP_MODE_LEN);
}

size_t pages_thp_bytes(void) {
    size_t bytes = 0; /* the file is there when the kernel can do THP at all */
    osfile_number("", THP_SIZE_FILE, &bytes);
    return bytes;
}

/* The setting "never" makes MADV_HUGEPAGE succeed and do nothing. */
bool pages_os_thp_is_never(void) {
    char mode[PAGES_THP_MODE_LEN];
    pages_thp_mode(mode);
    return mode[0] == '\0' || strcmp(mode, "never") == 0;
}

size_t pages_os_find_size(enum pages_kind kind, size_t asked_bytes) {
    if (kind == PAGES_THP) {
        size_t bytes = pages_thp_bytes();
        return asked_bytes == 0 || asked_bytes == bytes ? bytes : 0;
    }
    if (asked_bytes == 0) {
        return pages_default_huge_bytes();
    }
    size_t sizes[SIZES_MAX];
    size_t count = pages_huge_sizes(sizes, SIZES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] == asked_bytes) {
            return asked_bytes;
        }
    }
    return 0;
}

/* ---- population ---- */

static sigjmp_buf touch_escape;

static void on_sigbus(int number) {
    siglongjmp(touch_escape, 1);
}

static NOINLINE void touch_all(char *ptr, size_t bytes, size_t os_page_bytes) {
    for (size_t at = 0; at < bytes; at += os_page_bytes) {
        *(volatile char *)(ptr + at) = 0;
    }
}

int pages_os_touch(void *ptr, size_t bytes, size_t os_page_bytes) {
    struct sigaction guard = {.sa_handler = on_sigbus}, before;
    sigemptyset(&guard.sa_mask);
    if (sigaction(SIGBUS, &guard, &before) != 0) {
        return errno;
    }
    if (sigsetjmp(touch_escape, 1) != 0) {
        sigaction(SIGBUS, &before, NULL);
        return EFAULT;
    }
    touch_all(ptr, bytes, os_page_bytes);
    sigaction(SIGBUS, &before, NULL);
    return 0;
}

int pages_os_populate(void *ptr, size_t bytes, size_t os_page_bytes) {
    int result;
    do {
        result = madvise(ptr, bytes, MADV_POPULATE_WRITE);
    } while (result != 0 && errno == EINTR);
    if (result == 0) {
        return 0;
    }
    return errno == EINVAL ? pages_os_touch(ptr, bytes, os_page_bytes) : errno;
}

void pages_warm(void *ptr, size_t bytes) {
    static bool refused; /* by a kernel before 5.14 */
    uintptr_t os_page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)ptr / os_page * os_page;
    if (!refused && bytes > 0) {
        size_t len = (uintptr_t)ptr + bytes - start;
        refused = madvise((char *)ptr - ((uintptr_t)ptr - start), len, MADV_POPULATE_WRITE) != 0 &&
                  errno == EINVAL;
    }
}

/* ---- mappings ---- */

static struct pages_os_error map_error(int code) {
    enum pages_reason reason = PAGES_REASON_OTHER;
    if (code == ENOMEM) {
        reason = PAGES_REASON_POOL_EMPTY;
    } else if (code == EPERM || code == EACCES) {
        reason = PAGES_REASON_NOT_PERMITTED;
    } else if (code == EINVAL || code == ENODEV || code == ENOSYS) {
        reason = PAGES_REASON_NO_SUPPORT;
    }
    return (struct pages_os_error){.reason = reason, .code = code};
}

/* A place in the address space for `bytes` at a multiple of align, not accessible yet. */
static char *reserve_aligned(size_t bytes, size_t align) {
    size_t os_page = (size_t)sysconf(_SC_PAGESIZE);
    size_t extra = align > os_page ? align : 0;
    char *raw =
        mmap(NULL, bytes + extra, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        return NULL;
    }
    size_t head = extra == 0 ? 0 : (align - (uintptr_t)raw % align) % align;
    if (head > 0) {
        munmap(raw, head);
    }
    if (extra > head) {
        munmap(raw + head + bytes, extra - head);
    }
    return raw + head;
}

static void *map_at(char *place, size_t bytes, int flags, struct pages_os_error *error) {
    void *ptr = mmap(place, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0);
    if (ptr == MAP_FAILED) {
        *error = map_error(errno);
        munmap(place, bytes);
        return NULL;
    }
    return ptr;
}

static bool pool_has(size_t os_page_bytes, size_t pages) {
    struct pages_pool pool;
    return pages_pool_read(os_page_bytes, &pool) == ST_OK && pool.free >= pool.reserved + pages;
}

void *pages_os_map_hugetlb(size_t bytes, size_t os_page_bytes, size_t align,
                           struct pages_os_error *error) {
    char *place = reserve_aligned(bytes, align > os_page_bytes ? align : os_page_bytes);
    if (place == NULL) {
        *error = (struct pages_os_error){.reason = PAGES_REASON_OTHER, .code = errno};
        return NULL;
    }
    int log2_size = __builtin_ctzll((unsigned long long)os_page_bytes);
    void *ptr =
        map_at(place, bytes, MAP_HUGETLB | (int)((unsigned)log2_size << MAP_HUGE_SHIFT), error);
    if (ptr == NULL) {
        if (error->reason == PAGES_REASON_POOL_EMPTY &&
            pool_has(os_page_bytes, bytes / os_page_bytes)) {
            error->reason = PAGES_REASON_HELD_BACK;
        }
        return NULL;
    }
    int code = pages_os_populate(ptr, bytes, os_page_bytes);
    if (code != 0) {
        munmap(ptr, bytes);
        *error = (struct pages_os_error){.reason = PAGES_REASON_POPULATE, .code = code};
        return NULL;
    }
    return ptr;
}

void *pages_os_map(size_t bytes, size_t align, bool thp, struct pages_os_error *error) {
    char *place = reserve_aligned(bytes, align);
    if (place == NULL) {
        *error = (struct pages_os_error){.reason = PAGES_REASON_OTHER, .code = errno};
        return NULL;
    }
    void *ptr = map_at(place, bytes, MAP_NORESERVE, error);
    if (ptr == NULL) {
        return NULL;
    }
    int result = madvise(ptr, bytes, thp ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (result != 0 && thp) { /* a kernel without THP also has no way to turn plain memory into it:
                                 no error then */
        *error = map_error(errno);
        munmap(ptr, bytes);
        return NULL;
    }
    return ptr;
}

size_t pages_os_release(void *base, size_t from, size_t to) {
    size_t os_page = (size_t)sysconf(_SC_PAGESIZE);
    size_t start = (from + os_page - 1) / os_page * os_page;
    size_t end = (to + os_page - 1) / os_page * os_page;
    if (start < end) {
        madvise((char *)base + start, end - start, MADV_DONTNEED);
    }
    return start;
}

void pages_os_unmap(void *base, size_t bytes) {
    munmap(base, bytes);
}
