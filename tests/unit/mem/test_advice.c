/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of machines that are made up, to the letter where somebody will type it. */
#include "mem/advice.h"

#include "machine_fixture.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static struct machine machine;
static struct advice advice;
static char text[8192];

static void judge(enum pages_kind kind, size_t page_bytes, size_t bytes) {
    machine_read(fake_root, &machine);
    advice_judge(&machine, kind, page_bytes, bytes, &advice);
    struct buf out = {0};
    advice_write(&machine, &advice, "> ", &out);
    assert_false(out.failed);
    assert_true(out.len < sizeof(text));
    memcpy(text, out.ptr != NULL ? out.ptr : "", out.len);
    text[out.len] = '\0';
    buf_deinit(&out);
}

static void says(const char *line) {
    char whole[512];
    snprintf(whole, sizeof(whole), "> %s\n", line);
    if (strstr(text, whole) == NULL) {
        fail_msg("no line '%s' in:\n%s", line, text);
    }
}

/* The usual machine: 2 MiB and 1 GiB, plenty of memory. */
static void usual(size_t total, size_t free_pages, size_t reserved) {
    fake_memory(64 << 10, 32 << 10, 2048);
    fake_pool(2048, total, free_pages, reserved, 0, 0);
    fake_pool(1048576, 0, 0, 0, 0, 0);
    fake_thp("always [madvise] never", "[madvise]", 2 * MIB);
}

/* ---- reserved pages ---- */

static void enough_is_no_words(void **state) {
    usual(512, 512, 0);
    judge(PAGES_HUGETLB, 0, GIB);
    assert_int_equal(advice.lacks, 0);
    assert_int_equal(advice.page_bytes, 2 * MIB);
    assert_int_equal(advice.pages_needed, 512);
    assert_int_equal(advice.pages_usable, 512);
    assert_int_equal(advice.pages_lacking, 0);
    assert_string_equal(text, "");
    judge(PAGES_HUGETLB, 0, GIB + 1);
    assert_int_equal(advice.lacks, ADVICE_POOL);
    assert_int_equal(advice.pages_lacking, 1);
}

static void a_small_pool_is_told_what_to_type(void **state) {
    usual(100, 40, 10);
    judge(PAGES_HUGETLB, 2 * MIB, 100 * MIB);
    assert_int_equal(advice.lacks, ADVICE_POOL);
    assert_int_equal(advice.pages_usable, 30);
    assert_int_equal(advice.pages_lacking, 20);
    says("The pool is too small by 20 page(s) of 2 MiB: 50 needed, 30 of 100 free.");
    says("  sysctl -w vm.nr_hugepages=120");
    says("  echo 'vm.nr_hugepages = 120' > /etc/sysctl.d/60-hugepages.conf");
}

static void a_pool_of_another_size_has_other_lines(void **state) {
    usual(0, 0, 0);
    judge(PAGES_HUGETLB, GIB, 3 * GIB - 5);
    assert_int_equal(advice.pages_lacking, 3);
    says("  echo 3 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages");
    says("  hugepagesz=1G hugepages=3 on the kernel's command line");
    assert_null(strstr(text, "sysctl"));
    fake_memory(64 << 10, 32 << 10, 1048576); /* 1 GiB is the default, 2 MiB the other */
    judge(PAGES_HUGETLB, 2 * MIB, 7 * MIB);
    says("  echo 4 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    says("  echo 'w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 4' > "
         "/etc/tmpfiles.d/hugepages.conf");
}

static void pages_on_demand_count(void **state) {
    usual(0, 0, 0);
    fake_pool(2048, 6, 0, 0, 4, 10);
    judge(PAGES_HUGETLB, 0, 12 * MIB);
    assert_int_equal(advice.lacks, 0);
    assert_int_equal(advice.pages_usable, 6);
    fake_memory(100, 4, 2048); /* memory for two only */
    judge(PAGES_HUGETLB, 0, 12 * MIB);
    assert_int_equal(advice.pages_usable, 2);
    assert_true(advice.lacks & ADVICE_POOL);
}

static void more_than_the_machine_has_is_said(void **state) {
    usual(8, 8, 0);
    judge(PAGES_HUGETLB, 0, 40 * GIB);
    assert_int_equal(advice.lacks, ADVICE_POOL | ADVICE_MEMORY);
    says("The machine has not that much memory: 40944 MiB more are wanted, 32768 MiB are "
         "available.");
    assert_null(strstr(text, "sysctl")); /* which would only hurt */
}

static void a_control_group_is_named(void **state) {
    usual(100, 100, 0);
    fake_file("/proc/self/mountinfo", "30 20 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    fake_file("/proc/self/cgroup", "0::/box\n");
    fake_file("/sys/fs/cgroup/box/hugetlb.2MB.max", "%zu\n", 64 * MIB);
    fake_file("/sys/fs/cgroup/box/hugetlb.2MB.current", "%zu\n", 44 * MIB);
    judge(PAGES_HUGETLB, 0, 100 * MIB);
    assert_int_equal(advice.lacks, ADVICE_CGROUP);
    assert_int_equal(advice.pages_usable, 10);
    says("The control group's limit leaves 20 MiB of 64 MiB. As root, or in the container's "
         "description:");
    says("  echo 150994944 > /sys/fs/cgroup/box/hugetlb.2MB.max"); /* 144 MiB: 44 and 100 */
    judge(PAGES_HUGETLB, 0, 210 * MIB);
    assert_int_equal(advice.lacks, ADVICE_CGROUP | ADVICE_POOL);
}

static void a_bound_process_is_told_its_node(void **state) {
    usual(100, 100, 0);
    fake_nodes("0-1", "1");
    fake_file("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "30\n");
    judge(PAGES_HUGETLB, 0, 100 * MIB);
    assert_int_equal(advice.lacks, ADVICE_NODES);
    assert_int_equal(advice.pages_lacking, 20);
    says(
        "The pool is too small by 20 page(s) of 2 MiB: 50 needed, 100 of 100 free, 30 on the nodes "
        "this process may use.");
    says(
        "  echo $(($(cat /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages) + "
        "20)) > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages");
}

/* ---- kernels with other sizes ---- */

static void a_size_the_kernel_lacks_is_said(void **state) {
    fake_memory(1000, 900, 32768); /* arm64 with OS pages of 16 KiB */
    fake_pool(2048, 0, 0, 0, 0, 0);
    fake_pool(32768, 4, 4, 0, 0, 0);
    judge(PAGES_HUGETLB, GIB, 1);
    assert_int_equal(advice.lacks, ADVICE_SIZE);
    assert_int_equal(advice.page_bytes, 0);
    says("This kernel has no huge pages of 1 GiB. It has 2 MiB, 32 MiB.");
    judge(PAGES_HUGETLB, 0, 100 * MIB);
    assert_int_equal(advice.lacks, 0);
    assert_int_equal(advice.page_bytes, 32 * MIB);
    assert_int_equal(advice.pages_needed, 4);
}

static void a_kernel_without_any_is_said(void **state) {
    fake_memory(1000, 900, 0);
    judge(PAGES_HUGETLB, 0, MIB);
    assert_int_equal(advice.lacks, ADVICE_SIZE);
    assert_non_null(strstr(text, "> This kernel has no reserved huge pages"));
    judge(PAGES_THP, 0, MIB);
    assert_int_equal(advice.lacks, ADVICE_SIZE);
    says("This kernel has no transparent huge pages.");
}

static void size_notes(size_t page_bytes, const char *expected) {
    struct buf out = {0};
    machine_read(fake_root, &machine);
    advice_write_size(&machine, page_bytes, 2 * MIB, "", &out);
    buf_append_char(&out, '\0');
    assert_string_equal(out.ptr, expected);
    buf_deinit(&out);
}

static void large_default_pages_are_explained(void **state) {
    fake_memory(64 << 10, 32 << 10, 524288); /* arm64 with OS pages of 64 KiB */
    fake_pool(524288, 2, 2, 0, 0, 0);
    size_notes(512 * MIB,
               "One page holds 256 chunks of 2 MiB; a whole page is taken at a time, and "
               "given back when all of its chunks are free.\n");
    fake_pool(2048, 0, 0, 0, 0, 0);
    size_notes(512 * MIB,
               "One page holds 256 chunks of 2 MiB; a whole page is taken at a time, and "
               "given back when all of its chunks are free.\n"
               "This kernel has smaller ones: --arena-hugetlb-size 2m\n");
    size_notes(2 * MIB, "");
    judge(PAGES_HUGETLB, 0, 2 * GIB);
    says("The pool is too small by 2 page(s) of 512 MiB: 4 needed, 2 of 2 free.");
    says("  sysctl -w vm.nr_hugepages=4");
}

/* ---- transparent ones ---- */

static void transparent_pages_need_a_mode_and_memory(void **state) {
    usual(0, 0, 0);
    judge(PAGES_THP, 0, GIB);
    assert_int_equal(advice.lacks, 0);
    assert_int_equal(advice.page_bytes, 2 * MIB);
    assert_string_equal(text, "");
    fake_thp("[always] madvise never", "[madvise]", 2 * MIB);
    judge(PAGES_THP, 0, GIB);
    assert_int_equal(advice.lacks, 0);
    judge(PAGES_THP, 0, 33 * GIB);
    assert_int_equal(advice.lacks, ADVICE_MEMORY);
    says("The machine has not that much memory: 33792 MiB more are wanted, 32768 MiB are "
         "available.");
    fake_thp("always madvise [never]", "[madvise]", 2 * MIB);
    judge(PAGES_THP, 0, GIB);
    assert_int_equal(advice.lacks, ADVICE_MODE);
    assert_int_equal(advice.pages_usable, 0);
    says("Transparent huge pages are set to 'never'. As root, now:");
    says("  echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    says("  transparent_hugepage=madvise on the kernel's command line");
}

static void a_memory_group_limits_transparent_pages(void **state) {
    usual(0, 0, 0);
    fake_file("/proc/self/mountinfo", "30 20 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    fake_file("/proc/self/cgroup", "0::/box\n");
    fake_file("/sys/fs/cgroup/box/memory.max", "%zu\n", 100 * MIB);
    fake_file("/sys/fs/cgroup/box/memory.current", "%zu\n", 40 * MIB);
    judge(PAGES_THP, 0, 60 * MIB);
    assert_int_equal(advice.lacks, 0);
    judge(PAGES_THP, 0, 62 * MIB);
    assert_int_equal(advice.lacks, ADVICE_CGROUP);
    says("  echo 106954752 > /sys/fs/cgroup/box/memory.max"); /* 102 MiB */
}

static void sizes_are_written_in_the_unit_that_fits(void **state) {
    static const struct {
        size_t bytes;
        const char *expected;
    } cases[] = {{0, "0 bytes"},          {1000, "1000 bytes"},   {65536, "64 KiB"},
                 {2 * MIB, "2 MiB"},      {512 * MIB, "512 MiB"}, {16 * GIB, "16 GiB"},
                 {2048 * GIB, "2048 GiB"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = {0};
        advice_write_bytes(cases[i].bytes, &out);
        buf_append_char(&out, '\0');
        assert_string_equal(out.ptr, cases[i].expected);
        buf_deinit(&out);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        TEST(enough_is_no_words),
        TEST(a_small_pool_is_told_what_to_type),
        TEST(a_pool_of_another_size_has_other_lines),
        TEST(pages_on_demand_count),
        TEST(more_than_the_machine_has_is_said),
        TEST(a_control_group_is_named),
        TEST(a_bound_process_is_told_its_node),
        TEST(a_size_the_kernel_lacks_is_said),
        TEST(a_kernel_without_any_is_said),
        TEST(large_default_pages_are_explained),
        TEST(transparent_pages_need_a_mode_and_memory),
        TEST(a_memory_group_limits_transparent_pages),
        TEST(sizes_are_written_in_the_unit_that_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
