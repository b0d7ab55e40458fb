/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on sorted sets while memory fails (starved.h). What they answer otherwise is tested
 * against a server: tests/integration/test_zset.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "starved.h"

/* All that the keys of these tests hold. */
static char *dump(struct fixture *f) {
    static const char *const keys[] = {"small", "large", "other", "d", "new"};
    static const char *const lines[] = {"ZRANGE %s 0 -1 WITHSCORES", "TYPE %s", "EXPIRETIME %s"};
    return dump_keys(f, keys, ARRAY_LEN(keys), lines, ARRAY_LEN(lines));
}

static void fill(struct fixture *f) {
    flush_all(f);
    run(f, "ZADD small 1 a 2 b 3 c 4 d 5 e 6 f 7 g 8 h");
    for (int i = 0; i < 300; i++) {
        char line[64];
        snprintf(line, sizeof(line), "ZADD %s %d.5 m%d", i % 3 ? "large" : "other", i % 7, i / 2);
        run(f, line);
    }
    run(f, "SET d text EXAT 33177117420");
}

static const char *const atomic_lines[] = {
    "ZADD small 9 i",
    "ZADD small 2.5 a",
    "ZADD new 1 a",
    "ZADD large 1 new-member",
    "ZADD large 100000.25 m2",
    "ZADD large CH XX 100000.25 m2",
    "ZINCRBY large 0.125 m4",
    "ZINCRBY new 1 a",
    "ZADD new INCR 1 a",
    "ZADD small 1 a-member-longer-than-what-a-packed-sorted-set-holds-and-then-some-more-bytes",
    "ZUNIONSTORE d 2 large other",
    "ZUNIONSTORE new 2 large other",
    "ZUNIONSTORE large 2 large other WEIGHTS 2 3",
    "ZINTERSTORE d 2 large other",
    "ZINTERSTORE new 1 small",
    "ZDIFFSTORE other 2 other small",
    "ZRANGESTORE d large 0 -1",
    "ZRANGESTORE new small 0 -1",
    "ZRANGESTORE large large 3 5",
    "ZUNION 2 large other",
    "ZINTER 2 large other WITHSCORES",
    "ZINTERCARD 2 large other",
};

static void a_command_without_memory_changes_nothing(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(atomic_lines); i++) {
        assert_all_or_nothing(*state, atomic_lines[i], fill, dump);
    }
}

static void members_added_before_memory_ran_out_stay(void **state) {
    char line[LINE_MAX_LEN];
    size_t len = (size_t)snprintf(line, sizeof(line), "ZADD new");
    enum { MEMBERS = 200 };
    for (int i = 0; i < MEMBERS; i++) {
        len += (size_t)snprintf(line + len, sizeof(line) - len, " %d member:%d", i * 7 % 50, i);
    }
    assert_members_before_failure_stay(*state, line, MEMBERS, "ZCARD new", fill, dump);
}

/* ZRANDMEMBER has a way that needs no memory. */
static void random_members_need_no_memory(void **state) {
    struct fixture *f = *state;
    fill(f);
    account_fail_after(1);
    const char *reply = run(f, "ZRANDMEMBER large 10");
    account_fail_after(0);
    assert_int_equal(strncmp(reply, "*10\r\n", 5), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_without_memory_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(members_added_before_memory_ran_out_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(random_members_need_no_memory, setup, teardown),
    };
    hash_setup_seed(1);
    ticks_setup();
    table_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
