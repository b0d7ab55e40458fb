/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts about machines that are made up: kernels with other huge pages, control groups of both
 * versions, NUMA nodes. */
#include "mem/machine.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine_fixture.h"

#define MIB ((size_t)1 << 20)
#define V1 "25 20 0:22 / /sys/fs/cgroup/hugetlb rw,nosuid shared:5 - cgroup cgroup rw,hugetlb\n"
#define V1_MEMORY "26 20 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define V2 "30 20 0:25 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define ROOT_FS "20 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"

static struct machine machine;

static const struct machine *read_it(void) {
    machine_read(fake_root, &machine);
    return &machine;
}

/* ---- what there is ---- */

static void an_empty_root_has_nothing(void **state) {
    const struct machine *m = read_it();
    assert_int_equal(m->pool_count, 0);
    assert_int_equal(m->default_huge_bytes, 0);
    assert_int_equal(m->thp_bytes, 0);
    assert_string_equal(m->thp_mode, "");
    assert_int_equal(m->node_count, 0);
    assert_true(m->memlock_bytes == MACHINE_NO_LIMIT);
    assert_true(m->cgroup_memory.room_bytes == MACHINE_NO_LIMIT);
    assert_null(machine_pool(m, 2 * MIB));
}

static void pools_come_in_ascending_sizes(void **state) {
    fake_pool(1048576, 1, 1, 0, 0, 0);
    fake_pool(64, 7, 6, 0, 0, 0);
    fake_pool(2048, 10, 8, 3, 2, 5);
    fake_file("/sys/kernel/mm/hugepages/other", "1\n");
    fake_memory(1000, 800, 2048);
    const struct machine *m = read_it();
    assert_int_equal(m->pool_count, 3);
    assert_int_equal(m->pools[0].pages.page_bytes, 64 << 10);
    assert_int_equal(m->pools[2].pages.page_bytes, MIB << 10);
    const struct machine_pool *p = machine_pool(m, 2 * MIB);
    assert_ptr_equal(p, &m->pools[1]);
    assert_int_equal(p->pages.total, 10);
    assert_int_equal(p->pages.free, 8);
    assert_int_equal(p->pages.reserved, 3);
    assert_int_equal(p->pages.surplus, 2);
    assert_int_equal(p->overcommit, 5);
    assert_int_equal(p->node_free, 8);
    assert_true(p->cgroup.room_bytes == MACHINE_NO_LIMIT);
    assert_int_equal(m->default_huge_bytes, 2 * MIB);
    assert_int_equal(m->total_bytes, 1000 * MIB);
    assert_int_equal(m->available_bytes, 800 * MIB);
}

static void modes_and_limits_are_read(void **state) {
    fake_thp("always [madvise] never", "always defer [defer+madvise] madvise never", 32 * MIB);
    fake_file("/proc/self/limits",
              "Limit                     Soft Limit           Hard Limit           Units\n"
              "Max locked memory         65536                65536                bytes\n");
    fake_file("/proc/sys/vm/overcommit_memory", "2\n");
    const struct machine *m = read_it();
    assert_string_equal(m->thp_mode, "madvise");
    assert_string_equal(m->thp_defrag, "defer+madvise");
    assert_int_equal(m->thp_bytes, 32 * MIB);
    assert_int_equal(m->memlock_bytes, 65536);
    assert_int_equal(m->overcommit_memory, 2);
    fake_file("/proc/self/limits", "Max locked memory         unlimited            unlimited\n");
    assert_true(read_it()->memlock_bytes == MACHINE_NO_LIMIT);
}

/* ---- nodes ---- */

static void free_pages_are_counted_on_the_nodes_that_may_be_used(void **state) {
    unsigned first;
    fake_pool(2048, 100, 90, 0, 0, 0);
    for (int node = 0; node < 4; node++) {
        char path[128];
        snprintf(path, sizeof(path),
                 "/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/free_hugepages", node);
        fake_file(path, "%d\n", node == 1 ? 60 : 10);
    }
    fake_nodes("0-3", "0-3");
    assert_int_equal(read_it()->node_count, 4);
    assert_int_equal(machine.pools[0].node_free, 90);
    assert_false(machine_is_bound(&machine, &first));
    fake_nodes("0-3", "2-3");
    assert_int_equal(read_it()->pools[0].node_free, 20);
    assert_true(machine_is_bound(&machine, &first));
    assert_int_equal(first, 2);
    fake_nodes("0-3", "1,3");
    assert_int_equal(read_it()->pools[0].node_free, 70);
    assert_string_equal(machine.nodes_allowed, "1,3");
    fake_nodes("0", "0-63"); /* the kernel lists nodes that could be */
    assert_int_equal(read_it()->pools[0].node_free, 90);
    assert_false(machine_is_bound(&machine, &first));
}

/* ---- control groups ---- */

static void a_version_1_group_limits_a_pool(void **state) {
    fake_pool(2048, 100, 100, 0, 0, 0);
    fake_pool(1048576, 2, 2, 0, 0, 0);
    fake_file("/proc/self/mountinfo", ROOT_FS V1 V1_MEMORY);
    fake_file("/proc/self/cgroup", "11:hugetlb,pids:/a/b\n4:memory:/other\n0::/\n");
    fake_file("/sys/fs/cgroup/hugetlb/hugetlb.2MB.limit_in_bytes", "9223372036852678656\n");
    fake_file("/sys/fs/cgroup/hugetlb/a/hugetlb.2MB.limit_in_bytes", "%zu\n", 50 * MIB);
    fake_file("/sys/fs/cgroup/hugetlb/a/hugetlb.2MB.usage_in_bytes", "%zu\n", 20 * MIB);
    fake_file("/sys/fs/cgroup/hugetlb/a/b/hugetlb.2MB.limit_in_bytes", "%zu\n", 40 * MIB);
    fake_file("/sys/fs/cgroup/hugetlb/a/b/hugetlb.2MB.usage_in_bytes", "0\n");
    const struct machine_limit *limit = &read_it()->pools[0].cgroup;
    assert_int_equal(limit->room_bytes, 30 * MIB); /* the one above has less left */
    assert_int_equal(limit->limit_bytes, 50 * MIB);
    assert_string_equal(limit->file, "/sys/fs/cgroup/hugetlb/a/hugetlb.2MB.limit_in_bytes");
    assert_true(machine.pools[1].cgroup.room_bytes == MACHINE_NO_LIMIT);
}

static void a_version_2_group_limits_a_pool_and_memory(void **state) {
    fake_pool(1048576, 4, 4, 0, 0, 0);
    fake_file("/proc/self/mountinfo", ROOT_FS V2);
    fake_file("/proc/self/cgroup", "0::/system.slice/goblin.service\n");
    fake_file("/sys/fs/cgroup/system.slice/goblin.service/hugetlb.1GB.max", "%zu\n", 3 * MIB << 10);
    fake_file("/sys/fs/cgroup/system.slice/goblin.service/hugetlb.1GB.current", "0\n");
    fake_file("/sys/fs/cgroup/system.slice/goblin.service/hugetlb.1GB.rsvd.max", "%zu\n",
              2 * MIB << 10);
    fake_file("/sys/fs/cgroup/system.slice/goblin.service/hugetlb.1GB.rsvd.current", "%zu\n",
              MIB << 10);
    fake_file("/sys/fs/cgroup/system.slice/goblin.service/memory.max", "max\n");
    fake_file("/sys/fs/cgroup/system.slice/memory.max", "%zu\n", 100 * MIB);
    fake_file("/sys/fs/cgroup/system.slice/memory.current", "%zu\n", 70 * MIB);
    fake_file("/sys/fs/cgroup/system.slice/memory.stat", "anon 5\nfile 6\ninactive_file %zu\n",
              20 * MIB);
    const struct machine *m = read_it();
    assert_int_equal(m->pools[0].cgroup.room_bytes, MIB << 10);
    assert_non_null(strstr(m->pools[0].cgroup.file, "/hugetlb.1GB.rsvd.max"));
    assert_int_equal(m->cgroup_memory.room_bytes, 50 * MIB);
    assert_int_equal(m->cgroup_memory.limit_bytes, 100 * MIB);
}

/* Without a cgroup namespace a container sees its path from outside, and only its own part mounted. */
static void a_container_finds_its_group(void **state) {
    fake_file("/proc/self/mountinfo",
              ROOT_FS "31 20 0:25 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    fake_file("/proc/self/cgroup", "0::/docker/abc/inner\n");
    fake_file("/sys/fs/cgroup/inner/memory.max", "1000\n");
    assert_int_equal(read_it()->cgroup_memory.limit_bytes, 1000);
    fake_file("/proc/self/cgroup", "0::/elsewhere\n");
    fake_file("/sys/fs/cgroup/memory.max", "2000\n");
    assert_int_equal(read_it()->cgroup_memory.limit_bytes, 2000);
}

static void broken_files_are_no_limit(void **state) {
    static const char *const mounts[] = {"",
                                         "\n",
                                         " - ",
                                         "1 2 - cgroup2\n",
                                         "1 - cgroup2 a b\n",
                                         "- cgroup2 a b",
                                         "1 2 3 /  - cgroup2 a b\n"};
    static const char *const groups[] = {"", "0", "0:", "0::", ":::\n", "0::/a\n"};
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
        for (size_t k = 0; k < ARRAY_LEN(groups); k++) {
            fake_file("/proc/self/mountinfo", "%s", mounts[i]);
            fake_file("/proc/self/cgroup", "%s", groups[k]);
            assert_true(read_it()->cgroup_memory.room_bytes == MACHINE_NO_LIMIT);
        }
    }
}

/* ---- this machine ---- */

static void this_machine_agrees_with_the_other_reader(void **state) {
    struct pages_pool pools[MACHINE_POOLS_MAX], one;
    size_t sizes[MACHINE_POOLS_MAX];
    machine_read("", &machine);
    assert_true(machine.total_bytes > 0);
    assert_int_equal(machine.default_huge_bytes, pages_default_huge_bytes());
    assert_int_equal(machine.thp_bytes, pages_thp_bytes());
    size_t count = machine_read_pools("", pools, MACHINE_POOLS_MAX);
    assert_int_equal(count, machine.pool_count);
    assert_int_equal(count, pages_huge_sizes(sizes, MACHINE_POOLS_MAX));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pools[i].page_bytes, sizes[i]);
        assert_int_equal(pages_pool_read(sizes[i], &one), ST_OK);
        assert_int_equal(one.page_bytes, sizes[i]);
    }
    assert_int_equal(pages_pool_read(12345, &one), ST_NOTFOUND);
    assert_int_equal(machine_read_pools("", pools, 0), 0);
}

static void a_policy_of_nodes_is_kept_to(void **state) {
    unsigned long first = 1;
    if (syscall(SYS_set_mempolicy, MPOL_BIND, &first, 64) != 0) {
        print_message("SKIP: no policy can be set here\n");
        skip();
    }
    machine_read("", &machine);
    assert_string_equal(machine.nodes_allowed, "0");
    unsigned node = 9;
    assert_int_equal(machine_is_bound(&machine, &node), machine.node_count > 1);
    assert_int_equal(syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_empty_root_has_nothing),
        TEST(pools_come_in_ascending_sizes),
        TEST(modes_and_limits_are_read),
        TEST(free_pages_are_counted_on_the_nodes_that_may_be_used),
        TEST(a_version_1_group_limits_a_pool),
        TEST(a_version_2_group_limits_a_pool_and_memory),
        TEST(a_container_finds_its_group),
        TEST(broken_files_are_no_limit),
        TEST(this_machine_agrees_with_the_other_reader),
        TEST(a_policy_of_nodes_is_kept_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
