/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on sets while memory fails (starved.h). What they answer otherwise is tested against a
 * server: tests/integration/test_set.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "starved.h"

/* All that the keys of these tests hold. */
static char *dump(struct fixture *f) {
    static const char *const keys[] = {"ints", "words", "large", "other", "kept",
                                       "text", "z",     "new",   "d"};
    static const char *const lines[] = {"SMEMBERS %s", "ZRANGE %s 0 -1 WITHSCORES", "TYPE %s",
                                        "OBJECT ENCODING %s", "EXPIRETIME %s"};
    return dump_keys(f, keys, ARRAY_LEN(keys), lines, ARRAY_LEN(lines));
}

static void fill(struct fixture *f) {
    flush_all(f);
    run(f, "SADD ints 1 2 3 4 5 6 70000 8");
    run(f, "SADD words 1 a b c d e f g");
    for (int i = 0; i < 300; i++) {
        char line[64];
        snprintf(line, sizeof(line), "SADD %s m%d", i % 3 ? "large" : "other", i / 2);
        run(f, line);
    }
    run(f, "SUNIONSTORE kept large");
    run(f, "EXPIREAT kept 33177117420");
    run(f, "ZADD z 1 a 2 1 3 m2");
    run(f, "SET text value EXAT 33177117420");
}

static const char *const atomic_lines[] = {
    "SADD ints 7",
    "SADD ints 5000000000",
    "SADD ints word",
    "SADD words h",
    "SADD words a-member-longer-than-what-a-packed-set-holds-and-then-some-more-bytes-behind-it",
    "SADD new 1",
    "SADD new word",
    "SADD large new-member",
    "SMOVE words ints a",
    "SMOVE ints new 3",
    "SMOVE large words m1",
    "SMOVE large new m1",
    "SPOP ints 3",
    "SPOP words 7",
    "SPOP large 10",
    "SPOP large 100",
    "SPOP kept 100",
    "SRANDMEMBER large 10",
    "SUNION large ints words",
    "SINTER large other",
    "SDIFF large ints words other",
    "SINTERCARD 2 large other",
    "SUNIONSTORE new large ints words",
    "SUNIONSTORE text ints words",
    "SUNIONSTORE large large other",
    "SINTERSTORE kept large other",
    "SINTERSTORE new ints words",
    "SDIFFSTORE new large other ints words",
    "SDIFFSTORE other large words",
    "ZUNION 3 ints z words",
    "ZUNIONSTORE new 3 ints large z",
    "ZINTERSTORE new 2 ints z",
    "ZDIFFSTORE ints 2 ints z",
};

static void a_command_without_memory_changes_nothing(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(atomic_lines); i++) {
        assert_all_or_nothing(*state, atomic_lines[i], fill, dump);
    }
}

static void members_added_before_memory_ran_out_stay(void **state) {
    enum { MEMBERS = 200 };
    for (int words = 0; words < 2; words++) {
        char line[LINE_MAX_LEN];
        size_t len = (size_t)snprintf(line, sizeof(line), "SADD new");
        for (int i = 0; i < MEMBERS; i++) {
            len += (size_t)snprintf(line + len, sizeof(line) - len, words ? " member:%d" : " %d",
                                    i * 1000);
        }
        assert_members_before_failure_stay(*state, line, MEMBERS, "SCARD new", fill, dump);
    }
}

static void taking_members_out_needs_no_memory(void **state) {
    static const char *const lines[] = {
        "SREM ints 1 70000",   "SREM words a g",       "SREM large m1 m5",     "SPOP large",
        "SPOP ints",           "SMOVE large other m3", "SRANDMEMBER large 10", "SPOP words 100",
        "SISMEMBER large m2",  "SRANDMEMBER large -5", "SSCAN large 0",        "SMEMBERS other",
        "SMISMEMBER ints 2 3", "SINTER ints words"};
    struct fixture *f = *state;
    fill(f);
    run(f, "SADD other m3");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        account_fail_after(1);
        bool failed = run(f, lines[i])[0] == '-';
        account_fail_after(0);
        /* what combines sets needs room for their views */
        assert_int_equal(failed, strncmp(lines[i], "SINTER", 6) == 0);
        free(dump(f));
    }
}

/* The walk of a difference, and the union that is subtracted when sets are many and small. */
static void both_ways_of_subtracting_agree(void **state) {
    struct fixture *f = *state;
    fill(f);
    for (int i = 0; i < 3000; i++) {
        char line[64];
        snprintf(line, sizeof(line), "SADD new m%d", i);
        run(f, line);
    }
    assert_string_equal(run(f, "SDIFFSTORE d new large other"), ":2850\r\n");
    assert_string_equal(run(f, "SDIFFSTORE d new words ints"), ":3000\r\n");
    run(f, "SADD words m7 m8");
    run(f, "SADD ints m8 m9");
    assert_string_equal(run(f, "SDIFFSTORE d new words ints nobody"), ":2997\r\n");
    assert_string_equal(run(f, "SISMEMBER d m8"), ":0\r\n");
    assert_string_equal(run(f, "SISMEMBER d m10"), ":1\r\n");
    free(dump(f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_without_memory_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(members_added_before_memory_ran_out_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(taking_members_out_needs_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(both_ways_of_subtracting_agree, setup, teardown),
    };
    hash_setup_seed(1);
    ticks_setup();
    table_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
