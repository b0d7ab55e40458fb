/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on lists, SORT and the bitmap commands while memory fails (starved.h). What they answer
 * otherwise is tested against a server: tests/integration/test_list.c, test_sort.c, test_bitmap.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "starved.h"

/* All that the keys of these tests hold. */
static char *dump(struct fixture *f) {
    static const char *const keys[] = {"small", "large", "d", "new", "set", "bits", "int"};
    static const char *const lines[] = {"LRANGE %s 0 -1", "GET %s", "TYPE %s", "EXPIRETIME %s"};
    return dump_keys(f, keys, ARRAY_LEN(keys), lines, ARRAY_LEN(lines));
}

static void fill(struct fixture *f) {
    flush_all(f);
    run(f, "RPUSH small 3 1 2 5 4");
    for (int i = 0; i < 300; i++) {
        char line[128];
        snprintf(line, sizeof(line), "RPUSH large %d", i * 7919 % 1009);
        run(f, line);
        snprintf(line, sizeof(line), "SET w:%d %d", i, -i);
        run(f, line);
    }
    run(f, "SADD set 3 1 2");
    run(f, "SET d text EXAT 33177117420");
    run(f, "SET bits a-string-that-is-long-enough-to-be-more-than-a-few-words");
    run(f, "SETBIT bits 40000 1");
    run(f, "SET int 12345");
}

static const char *const atomic_lines[] = {
    "LPUSH small 6",
    "RPUSH small 6 7 8 9 10 11 12",
    "LPUSH small an-element-longer-than-what-a-packed-list-holds-and-then-some-more-bytes",
    "LPUSH new 1",
    "RPUSH new 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
    "LPUSH large a b c d e f g h i j",
    "RPUSHX large a",
    "LSET large 150 an-element-longer-than-what-was-there",
    "LSET small 1 an-element-longer-than-what-a-packed-list-holds-and-then-some-more-bytes",
    "LINSERT large BEFORE 500 new",
    "LINSERT small AFTER 5 an-element-longer-than-what-a-packed-list-holds-and-then-some-more",
    "LMOVE large new LEFT RIGHT",
    "LMOVE small large RIGHT LEFT",
    "RPOPLPUSH large small",
    "RPOPLPUSH large large",
    "SORT large STORE new",
    "SORT large STORE large",
    "SORT small BY w:* GET # GET w:* STORE d",
    "SORT set STORE d",
    "SORT large BY w:* ALPHA LIMIT 0 5",
    "SETBIT new 1000 1",
    "SETBIT new 100000 1",
    "SETBIT bits 100000 1",
    "SETBIT int 3 1",
    "SETBIT int 1000 1",
    "BITFIELD new SET u8 0 1 INCRBY i64 10000 5 GET u8 3",
    "BITFIELD int SET u8 0 1 INCRBY i64 1 5",
    "BITOP NOT new bits",
    "BITOP OR d bits int",
    "BITOP AND int int bits",
};

static void a_command_without_memory_changes_nothing(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(atomic_lines); i++) {
        assert_all_or_nothing(*state, atomic_lines[i], fill, dump);
    }
}

/* What takes elements away needs no memory. */
static void removing_needs_no_memory(void **state) {
    static const char *const lines[] = {
        "LPOP large",
        "RPOP large 100",
        "LREM large 0 500",
        "LTRIM large 50 -60",
        "LTRIM small 1 -2",
        "LREM small -1 2",
        "LMPOP 1 large LEFT COUNT 10",
        "LPOP small 100",
        "LTRIM large 1 0",
    };
    struct fixture *f = *state;
    fill(f);
    run(f, "LRANGE large 0 -1"); /* the buffer of replies is large enough now */
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        account_fail_after(1);
        const char *reply = run(f, lines[i]);
        account_fail_after(0);
        assert_true(reply[0] != '-');
        free(dump(f));
    }
    assert_string_equal(run(f, "EXISTS large small"), ":0\r\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_without_memory_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(removing_needs_no_memory, setup, teardown),
    };
    hash_setup_seed(1);
    ticks_setup();
    table_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
