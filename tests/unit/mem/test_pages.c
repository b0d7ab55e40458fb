/* SPDX-License-Identifier: BSD-3-Clause */
/* Huge-page tests change vm.nr_hugepages and put it back; a lock file keeps two such programs
 * apart. They are skipped, with the reason, where that is not permitted. */
#include "mem/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../src/mem/pages_os.h"
#include "base/log.h"
#include "mem/account.h"

#define CHUNK ((size_t)2 << 20)
#define LOCK_FILE "/tmp/goblin-hugepages.lock"

static struct pages *create(enum pages_kind kind, size_t huge_bytes, size_t chunk_bytes) {
    struct pages_options options = {
        .kind = kind, .huge_page_bytes = huge_bytes, .chunk_bytes = chunk_bytes};
    struct pages *p;
    assert_int_equal(pages_create(&options, &p), ST_OK);
    return p;
}

static struct pages_stats stats_of(const struct pages *p) {
    struct pages_stats stats;
    pages_get_stats(p, &stats);
    return stats;
}

static size_t status_kb(const char *name) {
    char line[256];
    size_t kb = 0, len = strlen(name);
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, name, len) == 0 && line[len] == ':') {
            kb = strtoull(line + len + 1, NULL, 10);
        }
    }
    fclose(f);
    return kb;
}

/* ---- the pool, under the lock ---- */

struct pool_guard {
    int lock;
    size_t total_before;
};

static bool write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool good = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return good;
}

static bool pool_resize(size_t page_bytes, size_t total) {
    char path[128], text[32];
    snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages",
             page_bytes >> 10);
    snprintf(text, sizeof(text), "%zu", total);
    return write_text(path, text);
}

static struct pages_pool pool_now(void) {
    struct pages_pool pool;
    assert_int_equal(pages_pool_read(pages_default_huge_bytes(), &pool), ST_OK);
    return pool;
}

/* Have `free_wanted` free pages in the default pool, or more unless `exactly`; skips the test when
 * that cannot be. */
static struct pool_guard pool_take(size_t free_wanted, bool exactly) {
    struct pages_pool pool;
    if (pages_pool_read(pages_default_huge_bytes(), &pool) != ST_OK) {
        print_message("no huge pages on this machine\n");
        skip();
    }
    struct pool_guard guard = {.lock = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0666)};
    assert_true(guard.lock >= 0);
    flock(guard.lock, LOCK_EX);
    pool = pool_now();
    guard.total_before = pool.total;
    size_t available = pool.free - (pool.free < pool.reserved ? pool.free : pool.reserved);
    bool enough = exactly ? available == free_wanted : available >= free_wanted;
    if (!enough && !pool_resize(pool.page_bytes, pool.total - available + free_wanted)) {
        print_message("vm.nr_hugepages cannot be set here\n");
        close(guard.lock);
        skip();
    }
    pool = pool_now();
    if (pool.free - pool.reserved != free_wanted) {
        print_message("the pool gave %zu free huge pages, %zu are needed\n", pool.free,
                      free_wanted);
        pool_resize(pool.page_bytes, guard.total_before);
        close(guard.lock);
        skip();
    }
    return guard;
}

static void pool_give_back(struct pool_guard guard) {
    pool_resize(pages_default_huge_bytes(), guard.total_before);
    close(guard.lock);
}

/* ---- plain ---- */

static void refuses_bad_chunk_sizes(void **state) {
    static const size_t sizes[] = {0, 4096, 32768, 65537, 3 << 20, (size_t)2 << 30};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = sizes[i]};
        struct pages *p = NULL;
        assert_int_equal(pages_create(&options, &p), ST_RANGE);
        assert_null(p);
    }
    pages_destroy(NULL);
}

static void plain_chunks_are_aligned_apart_and_zeroed(void **state) {
    static const size_t sizes[] = {(size_t)64 << 10, CHUNK, (size_t)128 << 20};
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        struct pages *p = create(PAGES_PLAIN, 0, sizes[s]);
        char *chunks[100];
        size_t count = sizes[s] > CHUNK ? 3 : ARRAY_LEN(chunks);
        for (size_t i = 0; i < count; i++) {
            enum pages_kind kind;
            chunks[i] = pages_acquire(p, &kind);
            assert_non_null(chunks[i]);
            assert_int_equal(kind, PAGES_PLAIN);
            assert_int_equal((uintptr_t)chunks[i] % sizes[s], 0);
            assert_int_equal(chunks[i][0] | chunks[i][sizes[s] - 1], 0);
            chunks[i][0] = chunks[i][sizes[s] - 1] = (char)(i + 1);
        }
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(chunks[i][0], i + 1);
            assert_int_equal(chunks[i][sizes[s] - 1], i + 1);
        }
        struct pages_stats stats = stats_of(p);
        assert_int_equal(stats.chunks, count);
        assert_int_equal(stats.huge_chunks + stats.fallback_chunks, 0);
        assert_true(stats.mapped_bytes >= count * sizes[s]);
        for (size_t i = 0; i < count; i++) {
            pages_release(p, chunks[(i * 37) % count]);
        }
        assert_int_equal(stats_of(p).chunks, 0);
        assert_true(stats_of(p).mapped_bytes <= (sizes[s] > CHUNK ? sizes[s] : (size_t)64 << 20));
        pages_destroy(p);
    }
    assert_int_equal(account_bytes(ACCOUNT_OTHER), 0);
}

static void released_plain_memory_goes_back_at_once(void **state) {
    struct pages *p = create(PAGES_PLAIN, 0, CHUNK);
    char *kept = pages_acquire(p, NULL), *chunk = pages_acquire(p, NULL);
    size_t before = status_kb("VmRSS");
    memset(chunk, 1, CHUNK);
    size_t during = status_kb("VmRSS");
    assert_true(during >= before + 2000);
    pages_release(p, chunk);
    assert_true(status_kb("VmRSS") <= during - 1900);
    assert_ptr_equal(pages_acquire(p, NULL), chunk);
    assert_int_equal(chunk[5], 0);
    pages_release(p, chunk);
    pages_release(p, kept);
    pages_destroy(p);
}

static void no_memory_is_an_answer(void **state) {
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = CHUNK};
    struct pages *p = NULL;
    account_fail_after(1);
    assert_int_equal(pages_create(&options, &p), ST_NOMEM);
    account_fail_after(0);
    p = create(PAGES_PLAIN, 0, CHUNK);
    for (size_t nth = 1; nth <= 3; nth++) {
        account_fail_after(nth);
        assert_null(pages_acquire(p, NULL));
        account_fail_after(0);
        assert_int_equal(stats_of(p).chunks + stats_of(p).mapped_bytes, 0);
    }
    void *chunk = pages_acquire(p, NULL);
    assert_non_null(chunk);
    pages_release(p, chunk);
    pages_destroy(p);
}

/* ---- THP ---- */

static void thp_chunks_come_on_huge_pages(void **state) {
    struct pages *p = create(PAGES_THP, 0, CHUNK);
    if (stats_of(p).huge_page_bytes == 0) {
        assert_int_equal(stats_of(p).last_reason, PAGES_REASON_NO_SUPPORT);
        enum pages_kind kind;
        void *chunk = pages_acquire(p, &kind);
        assert_int_equal(kind, PAGES_PLAIN);
        pages_release(p, chunk);
        pages_destroy(p);
        print_message("no THP on this machine\n");
        skip();
    }
    enum pages_kind kind;
    char *a = pages_acquire(p, &kind), *b = pages_acquire(p, NULL);
    assert_int_equal(kind, PAGES_THP);
    assert_int_equal(stats_of(p).huge_chunks, 2);
    assert_int_equal((uintptr_t)a % CHUNK, 0);
    size_t before = status_kb("VmRSS");
    a[0] = 1; /* one touch brings the whole huge page, when the kernel has one free */
    size_t after = status_kb("VmRSS");
    print_message("one touch: %zu kB\n", after - before);
    pages_release(p, a);
    pages_release(p, b);
    assert_int_equal(stats_of(p).mapped_bytes, 0);
    pages_destroy(p);
}

/* ---- hugetlb ---- */

static void hugetlb_chunks_are_populated(void **state) {
    struct pool_guard guard = pool_take(3, false);
    struct pages *p = create(PAGES_HUGETLB, 0, CHUNK);
    size_t before = status_kb("HugetlbPages");
    void *chunks[3];
    for (int i = 0; i < 3; i++) {
        enum pages_kind kind;
        chunks[i] = pages_acquire(p, &kind);
        assert_int_equal(kind, PAGES_HUGETLB);
        assert_int_equal((uintptr_t)chunks[i] % CHUNK, 0);
    }
    assert_int_equal(status_kb("HugetlbPages") - before, 3 * CHUNK / 1024);
    struct pages_stats stats = stats_of(p);
    assert_int_equal(stats.huge_chunks, 3);
    assert_int_equal(stats.huge_page_bytes, pages_default_huge_bytes());
    assert_int_equal(stats.huge_mapped_bytes, 3 * CHUNK);
    for (int i = 0; i < 3; i++) {
        pages_release(p, chunks[i]);
    }
    assert_int_equal(status_kb("HugetlbPages"), before);
    pages_destroy(p);
    pool_give_back(guard);
}

static void small_chunks_share_a_huge_page(void **state) {
    struct pool_guard guard = pool_take(2, false);
    size_t page = pages_default_huge_bytes(), chunk = (size_t)64 << 10, count = page / chunk;
    struct pages *p = create(PAGES_HUGETLB, 0, chunk);
    void **chunks = malloc((count + 1) * sizeof(void *));
    for (size_t i = 0; i < count; i++) {
        chunks[i] = pages_acquire(p, NULL);
        assert_int_equal((uintptr_t)chunks[i] % chunk, 0);
        memset(chunks[i], (int)i, chunk);
    }
    assert_int_equal(stats_of(p).mapped_bytes, page);
    chunks[count] = pages_acquire(p, NULL);
    assert_int_equal(stats_of(p).mapped_bytes, 2 * page);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(((unsigned char *)chunks[i])[chunk - 1], i % 256);
    }
    for (size_t i = 0; i <= count; i++) {
        pages_release(p, chunks[i]);
    }
    assert_int_equal(stats_of(p).mapped_bytes, 0);
    pages_destroy(p);
    free(chunks);
    pool_give_back(guard);
}

static void large_chunks_span_huge_pages(void **state) {
    struct pool_guard guard = pool_take(4, false);
    size_t chunk = 4 * pages_default_huge_bytes();
    struct pages *p = create(PAGES_HUGETLB, 0, chunk);
    enum pages_kind kind;
    void *a = pages_acquire(p, &kind);
    assert_int_equal(kind, PAGES_HUGETLB);
    assert_int_equal((uintptr_t)a % chunk, 0);
    memset(a, 1, chunk);
    pages_release(p, a);
    pages_destroy(p);
    pool_give_back(guard);
}

static void an_empty_pool_falls_back_and_is_asked_again_when_it_changes(void **state) {
    struct pool_guard guard = pool_take(1, true);
    struct pages *p = create(PAGES_HUGETLB, 0, pages_default_huge_bytes());
    void *chunks[6];
    enum pages_kind kind;
    chunks[0] = pages_acquire(p, &kind);
    assert_int_equal(kind, PAGES_HUGETLB);
    for (int i = 1; i < 5; i++) {
        chunks[i] = pages_acquire(p, &kind);
        assert_int_equal(kind, PAGES_PLAIN);
        memset(chunks[i], 1, CHUNK);
    }
    struct pages_stats stats = stats_of(p);
    assert_int_equal(stats.failures[PAGES_REASON_POOL_EMPTY], 1); /* asked once, then backed off */
    assert_int_equal(stats.last_reason, PAGES_REASON_POOL_EMPTY);
    assert_int_equal(stats.fallback_chunks, 4);
    assert_int_equal(stats.huge_chunks, 1);
    assert_true(strlen(pages_reason_text(stats.last_reason)) > 0);
    assert_true(pool_resize(pages_default_huge_bytes(), pool_now().total + 1));
    usleep(60000);
    chunks[5] = pages_acquire(p, &kind);
    assert_int_equal(kind, PAGES_HUGETLB);
    for (int i = 0; i < 6; i++) {
        pages_release(p, chunks[i]);
    }
    pages_destroy(p);
    pool_give_back(guard);
}

static void an_unknown_huge_page_size_falls_back(void **state) {
    struct pages *p = create(PAGES_HUGETLB, (size_t)3 << 20, CHUNK);
    enum pages_kind kind;
    void *chunk = pages_acquire(p, &kind);
    assert_int_equal(kind, PAGES_PLAIN);
    struct pages_stats stats = stats_of(p);
    assert_int_equal(stats.asked, PAGES_HUGETLB);
    assert_int_equal(stats.last_reason, PAGES_REASON_NO_SUPPORT);
    assert_int_equal(stats.huge_page_bytes, 0);
    assert_int_equal(stats.fallback_chunks, 1);
    pages_release(p, chunk);
    pages_destroy(p);
    struct pages_pool pool;
    assert_int_equal(pages_pool_read((size_t)3 << 20, &pool), ST_NOTFOUND);
    assert_int_equal(pages_pool_read(0, &pool), ST_NOTFOUND);
}

/* Runs in a child inside a hugetlb cgroup that allows one page, while the pool has more. */
static int child_under_a_limit(const char *group) {
    char path[256], pid[32];
    snprintf(path, sizeof(path), "%s/cgroup.procs", group);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    struct pages_options options = {.kind = PAGES_HUGETLB,
                                    .chunk_bytes = pages_default_huge_bytes()};
    struct pages *p;
    if (!write_text(path, pid) || pages_create(&options, &p) != ST_OK) {
        return 2;
    }
    enum pages_kind kinds[3];
    void *chunks[3];
    for (int i = 0; i < 3; i++) {
        chunks[i] = pages_acquire(p, &kinds[i]);
        memset(chunks[i], 1, options.chunk_bytes);
    }
    struct pages_stats stats = stats_of(p);
    for (int i = 0; i < 3; i++) {
        pages_release(p, chunks[i]);
    }
    pages_destroy(p);
    return kinds[0] == PAGES_HUGETLB && kinds[1] == PAGES_PLAIN && kinds[2] == PAGES_PLAIN &&
                   stats.failures[PAGES_REASON_POPULATE] == 1 &&
                   stats.last_reason == PAGES_REASON_POPULATE
               ? 0
               : 1;
}

static bool limit_one_page(const char *group) {
    char path[256], text[32];
    size_t bytes = pages_default_huge_bytes();
    snprintf(path, sizeof(path), "%s/hugetlb.%zuMB.limit_in_bytes", group, bytes >> 20);
    snprintf(text, sizeof(text), "%zu", bytes);
    return write_text(path, text);
}

static void a_cgroup_limit_costs_a_fallback_and_no_sigbus(void **state) {
    char dir[] = "/tmp/gc-hugetlb-XXXXXX", group[64];
    assert_non_null(mkdtemp(dir));
    snprintf(group, sizeof(group), "%s/gc", dir);
    if (mount("none", dir, "cgroup", 0, "hugetlb") != 0) {
        rmdir(dir);
        print_message("no hugetlb cgroup to mount here\n");
        skip();
    }
    struct pool_guard guard = pool_take(4, false);
    int result = -1;
    if (mkdir(group, 0755) == 0 && limit_one_page(group)) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            _exit(child_under_a_limit(group));
        }
        int status = 0;
        waitpid(child, &status, 0);
        result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    rmdir(group);
    umount(dir);
    rmdir(dir);
    pool_give_back(guard);
    assert_int_equal(result, 0);
}

static void a_touch_that_cannot_be_answered_is_caught(void **state) {
    size_t os_page = (size_t)sysconf(_SC_PAGESIZE);
    char path[] = "/tmp/gc-touch-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(ftruncate(fd, (off_t)os_page), 0);
    char *map = mmap(NULL, 4 * os_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(pages_os_touch(map, os_page, os_page), 0);
    assert_int_equal(pages_os_touch(map, 4 * os_page, os_page), EFAULT);
    assert_int_equal(pages_os_touch(map, 4 * os_page, os_page),
                     EFAULT); /* the guard can be used again */
    munmap(map, 4 * os_page);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_bad_chunk_sizes),
        cmocka_unit_test(plain_chunks_are_aligned_apart_and_zeroed),
        cmocka_unit_test(released_plain_memory_goes_back_at_once),
        cmocka_unit_test(no_memory_is_an_answer),
        cmocka_unit_test(thp_chunks_come_on_huge_pages),
        cmocka_unit_test(hugetlb_chunks_are_populated),
        cmocka_unit_test(small_chunks_share_a_huge_page),
        cmocka_unit_test(large_chunks_span_huge_pages),
        cmocka_unit_test(an_empty_pool_falls_back_and_is_asked_again_when_it_changes),
        cmocka_unit_test(an_unknown_huge_page_size_falls_back),
        cmocka_unit_test(a_cgroup_limit_costs_a_fallback_and_no_sigbus),
        cmocka_unit_test(a_touch_that_cannot_be_answered_is_caught),
    };
    log_set_level(LOG_NOTHING);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
