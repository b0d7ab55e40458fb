/* SPDX-License-Identifier: BSD-3-Clause */
/* What MEMORY DOCTOR says of numbers that are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "../../../src/cmd/doctor_priv.h"

#define MIB ((size_t)1 << 20)
#define CHUNK (2 * MIB)

static struct info_source info;
static struct memory_source memory;
static struct machine machine;
static struct metrics metrics;
static char text[8192];

/* A healthy server on a machine with a pool of 100 pages, 50 free. */
static int setup(void **state) {
    info = (struct info_source){.metrics = &metrics,
                                .used_memory = 100 * MIB,
                                .used_memory_peak = 100 * MIB,
                                .allocator_allocated = 20 * MIB,
                                .allocator_active = 21 * MIB,
                                .allocator_resident = 22 * MIB,
                                .arena_bytes = 100 * MIB,
                                .vm_rss_bytes = 121 * MIB,
                                .connected_clients = 10,
                                .mem_clients_normal = MIB};
    memory = (struct memory_source){.arena = {.chunk_bytes = CHUNK},
                                    .index = {.chunk_bytes = CHUNK / 4}};
    machine = (struct machine){.default_huge_bytes = 2 * MIB,
                               .pool_count = 1,
                               .thp_bytes = 2 * MIB,
                               .thp_mode = "madvise",
                               .thp_defrag = "madvise",
                               .available_bytes = 8192 * MIB,
                               .cgroup_memory = {MACHINE_NO_LIMIT, MACHINE_NO_LIMIT, ""},
                               .memlock_bytes = MACHINE_NO_LIMIT};
    machine.pools[0] = (struct machine_pool){.pages = {2 * MIB, 100, 50, 0, 0},
                                             .node_free = 50,
                                             .cgroup = {MACHINE_NO_LIMIT, MACHINE_NO_LIMIT, ""}};
    return 0;
}

static void set_free(size_t pages) {
    machine.pools[0].pages.free = machine.pools[0].node_free = pages;
}

/* Data on huge pages and fallen back, in MiB. */
static void ask(struct pages_stats *p, enum pages_kind kind, size_t huge_mib, size_t fallen_mib) {
    size_t chunk = p->chunk_bytes;
    *p = (struct pages_stats){.asked = kind,
                              .chunk_bytes = chunk,
                              .huge_page_bytes = 2 * MIB,
                              .huge_chunks = huge_mib * MIB / chunk,
                              .fallback_chunks = fallen_mib * MIB / chunk,
                              .huge_mapped_bytes = huge_mib * MIB};
    p->chunks = p->huge_chunks + p->fallback_chunks;
    if (fallen_mib != 0) {
        p->failures[PAGES_REASON_POOL_EMPTY] = 3;
        p->last_reason = PAGES_REASON_POOL_EMPTY;
    }
}

static void report(void) {
    struct buf out = {0};
    doctor_write(&(struct doctor_facts){&info, &memory, &machine}, &out);
    assert_false(out.failed);
    assert_true(out.len < sizeof(text));
    memcpy(text, out.ptr, out.len);
    text[out.len] = '\0';
    buf_deinit(&out);
}

static void says(const char *part) {
    if (strstr(text, part) == NULL) {
        fail_msg("no '%s' in:\n%s", part, text);
    }
}

static void says_not(const char *part) {
    if (strstr(text, part) != NULL) {
        fail_msg("'%s' in:\n%s", part, text);
    }
}

/* ---- all is well ----------------------------------------------------------------------------- */

static void nothing_is_said_of_a_healthy_server(void **state) {
    report();
    assert_string_equal(text, "No memory problem was found.\n"
                              "Arenas: on plain pages, as asked.\n"
                              "Indexes: on plain pages, as asked.\n"
                              "Page tables: 0 KiB. Transparent huge pages are set to 'madvise'.\n");
    ask(&memory.arena, PAGES_HUGETLB, 100, 0);
    ask(&memory.index, PAGES_THP, 8, 0);
    info.anon_huge_pages_bytes = 8 * MIB;
    report();
    assert_string_equal(text, "No memory problem was found.\n"
                              "Arenas: 100.0 of 100.0 MiB on huge pages (hugetlb, 2 MiB).\n"
                              "Indexes: 8.0 of 8.0 MiB on huge pages (thp, 2 MiB).\n"
                              "Page tables: 0 KiB. Transparent huge pages are set to 'madvise'.\n");
}

static void ratios_of_little_memory_mean_nothing(void **state) {
    info.used_memory = MIB;
    info.allocator_active = 60 * MIB;
    info.allocator_resident = 90 * MIB;
    info.vm_rss_bytes = 300 * MIB;
    report();
    says("No memory problem");
}

/* ---- huge pages ------------------------------------------------------------------------------ */

static void a_share_that_fell_back_is_told_with_what_to_type(void **state) {
    ask(&memory.arena, PAGES_HUGETLB, 60, 40);
    set_free(5);
    info.page_table_bytes = 300 << 10;
    report();
    says(" * Huge pages: Arenas asked for hugetlb and did not get all of it; page tables take 300 "
         "KiB.\n");
    says("   Arenas: 40.0 of 100.0 MiB (40 %) are on plain pages. Failures: the huge page pool is "
         "empty (3).\n");
    says("   The pool is too small by 22 page(s) of 2 MiB: 27 needed, 5 of 100 free.\n");
    says("     sysctl -w vm.nr_hugepages=122\n");
    says("   For what fell back, and an eighth of all to grow:\n");
    says("SAVE and a new start");
    says("Arenas: 60.0 of 100.0 MiB on huge pages (hugetlb, 2 MiB).\n");
    says_not("No memory problem");
    says_not("Indexes asked");
}

static void arenas_and_indexes_of_one_pool_get_one_number(void **state) {
    ask(&memory.arena, PAGES_HUGETLB, 60, 40);
    ask(&memory.index, PAGES_HUGETLB, 6, 10);
    set_free(0);
    report();
    says(" * Huge pages: Arenas and indexes asked for hugetlb");
    says("   Indexes: 10.0 of 16.0 MiB (62 %) are on plain pages.");
    says("too small by 33 page(s)");
    says("vm.nr_hugepages=133");
}

static void arenas_and_indexes_of_two_kinds_are_told_apart(void **state) {
    ask(&memory.arena, PAGES_THP, 0, 40);
    strcpy(machine.thp_mode, "never");
    ask(&memory.index, PAGES_HUGETLB, 6, 1);
    memory.index.fallback_chunks = 1;
    set_free(0);
    report();
    says(" * Huge pages: Arenas asked for thp");
    says(" * Huge pages: Indexes asked for hugetlb");
    says("   Indexes: 0.5 of 7.0 MiB");
    says("too small by 2 page(s)");
    assert_ptr_equal(strstr(strstr(text, "   Arenas: ") + 1, "   Arenas: "), NULL);
}

static void a_refilled_pool_is_told(void **state) {
    ask(&memory.arena, PAGES_HUGETLB, 60, 40);
    report();
    says("There are enough huge pages now: new data gets them.\n");
    says_not("sysctl");
}

static void a_pool_without_a_page_left_is_told_before_it_hurts(void **state) {
    ask(&memory.arena, PAGES_HUGETLB, 160, 0);
    set_free(0);
    report();
    says(" * Huge pages: Arenas ask for hugetlb, and no more can be had");
    says("   To grow by an eighth, 20 MiB:\n");
    says("too small by 10 page(s)");
    memory.arena.huge_mapped_bytes = 1024 * MIB; /* pages of 1 GiB with room */
    report();
    says("No memory problem");
    ask(&memory.arena, PAGES_HUGETLB, 0, 0); /* empty still */
    report();
    says("too small by 1 page(s)");
    says_not("To grow");
}

static void transparent_pages_that_are_off_are_told(void **state) {
    ask(&memory.arena, PAGES_THP, 0, 40);
    memory.arena.failures[PAGES_REASON_POOL_EMPTY] = 0;
    memory.arena.failures[PAGES_REASON_THP_NEVER] = 1;
    strcpy(machine.thp_mode, "never");
    report();
    says("Arenas asked for thp and did not get all of it");
    says("transparent huge pages are set to 'never' (1)");
    says("     echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\n");
}

static void transparent_pages_that_the_kernel_did_not_give_are_told(void **state) {
    ask(&memory.arena, PAGES_THP, 400, 0);
    info.anon_huge_pages_bytes = 290 * MIB;
    report();
    says(
        " * Transparent huge pages: the kernel serves 290 of 400 MiB with them (defrag: madvise).");
    says("compact_memory");
    info.anon_huge_pages_bytes = 310 * MIB;
    report();
    says("No memory problem");
}

static void a_limit_out_of_sight_is_not_called_enough(void **state) {
    ask(&memory.arena, PAGES_HUGETLB, 60, 40);
    memory.arena.last_reason = PAGES_REASON_POPULATE;
    report();
    says("A limit of a control group out of its sight may hold.");
    says_not("new data gets them");
    machine.pools[0].cgroup = (struct machine_limit){4 * MIB, 64 * MIB, "/cg/hugetlb.2MB.max"};
    report();
    says("     echo 119537664 > /cg/hugetlb.2MB.max\n");
    says_not("out of its sight");
}

static void a_size_that_the_kernel_lacks_is_told(void **state) {
    ask(&memory.arena, PAGES_HUGETLB, 0, 40);
    memory.arena.huge_page_bytes = 0;
    memory.arena.asked_page_bytes = 1024 * MIB;
    memory.arena.failures[PAGES_REASON_POOL_EMPTY] = 0;
    memory.arena.failures[PAGES_REASON_NO_SUPPORT] = 1;
    report();
    says("   This kernel has no huge pages of 1 GiB. It has 2 MiB.\n");
    says_not("a new start");
}

static void what_is_not_permitted_is_explained(void **state) {
    ask(&memory.arena, PAGES_HUGETLB, 0, 40);
    memory.arena.last_reason = PAGES_REASON_NOT_PERMITTED;
    machine.memlock_bytes = 65536;
    report();
    says("RLIMIT_MEMLOCK (64 KiB) does not count huge pages.");
}

static void large_page_tables_are_told_when_nothing_was_asked(void **state) {
    info.page_table_bytes = 40 * MIB;
    info.vm_rss_bytes = info.arena_bytes = 20480 * MIB;
    report();
    says(" * Page tables: 40 MiB, for 20480 MiB of memory on plain pages.");
    says("goblin-core --check-hugepages 20480mb");
    ask(&memory.arena, PAGES_THP, 20480, 0);
    info.anon_huge_pages_bytes = 20480 * MIB;
    report();
    says("No memory problem");
}

/* ---- the heap -------------------------------------------------------------------------------- */

static void the_heap_is_judged_by_bounds_of_redis(void **state) {
    info.used_memory_peak = 151 * MIB;
    info.allocator_active = 40 * MIB;
    info.allocator_resident = 60 * MIB;
    info.vm_rss_bytes = 200 * MIB;
    info.mem_clients_normal = 10 * 201 * 1024;
    report();
    says(" * Peak: 151 MiB were in use once, 100 MiB are now.");
    says(" * Fragmentation of the heap: 40 MiB of OS pages hold 20 MiB.");
    says(" * Free memory kept by the allocator: 20 MiB. MEMORY PURGE gives it back.");
    says(" * Resident memory: 200 MiB, of which arenas and the allocator know 160 MiB.");
    says(" * Connections: 1 MiB in buffers, 201 KiB each in the mean");
    says_not("No memory problem");
}

static void a_control_group_that_is_nearly_full_is_told(void **state) {
    machine.cgroup_memory =
        (struct machine_limit){99 * MIB, 1000 * MIB, "/sys/fs/cgroup/memory.max"};
    report();
    says(" * Control group: 99 MiB are left of its memory limit of 1000 MiB "
         "(/sys/fs/cgroup/memory.max).");
    machine.cgroup_memory.room_bytes = 101 * MIB;
    report();
    says("No memory problem");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_said_of_a_healthy_server),
        TEST(ratios_of_little_memory_mean_nothing),
        TEST(a_share_that_fell_back_is_told_with_what_to_type),
        TEST(arenas_and_indexes_of_one_pool_get_one_number),
        TEST(arenas_and_indexes_of_two_kinds_are_told_apart),
        TEST(a_refilled_pool_is_told),
        TEST(a_pool_without_a_page_left_is_told_before_it_hurts),
        TEST(transparent_pages_that_are_off_are_told),
        TEST(transparent_pages_that_the_kernel_did_not_give_are_told),
        TEST(a_limit_out_of_sight_is_not_called_enough),
        TEST(a_size_that_the_kernel_lacks_is_told),
        TEST(what_is_not_permitted_is_explained),
        TEST(large_page_tables_are_told_when_nothing_was_asked),
        TEST(the_heap_is_judged_by_bounds_of_redis),
        TEST(a_control_group_that_is_nearly_full_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
