/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../../../src/ds/swiss_group.h"
#include "base/rng.h"
#include "ds/swiss.h"
#include "mem/account.h"

/* The records: an array of hashes; the key of record i is i. A ref is i plus an offset that can
 * make it wide. */
struct store {
    uint64_t *hashes;
    uint64_t count;
    uint64_t asked; /* calls of hash_of */
};

#define WIDE ((uint64_t)3 << 32)

static uint64_t store_hash_of(void *owner, uint64_t ref) {
    struct store *st = owner;
    uint64_t i = ref & UINT32_MAX;
    assert_true(i < st->count);
    st->asked++;
    return st->hashes[i];
}

static bool store_matches(void *owner, uint64_t ref, struct bytes key) {
    uint64_t wanted;
    memcpy(&wanted, key.ptr, sizeof(wanted));
    return (ref & UINT32_MAX) == wanted;
}

static const struct swiss_ops ops = {store_hash_of, store_matches, NULL};

static void store_init(struct store *st, uint64_t count, uint64_t seed) {
    struct rng rng;
    rng_init(&rng, seed);
    *st = (struct store){.hashes = malloc(count * sizeof(uint64_t)), .count = count};
    assert_non_null(st->hashes);
    for (uint64_t i = 0; i < count; i++) {
        st->hashes[i] = rng_next(&rng);
    }
}

static uint64_t find(const struct swiss *s, const struct store *st, uint64_t i) {
    return swiss_find(s, st->hashes[i], BYTES((const char *)&i, sizeof(i)));
}

static void insert(struct swiss *s, const struct store *st, uint64_t i) {
    assert_int_equal(swiss_insert(s, st->hashes[i], i), ST_OK);
}

static void assert_holds(const struct swiss *s, const struct store *st, uint64_t from,
                         uint64_t to) {
    for (uint64_t i = 0; i < st->count; i++) {
        assert_int_equal(find(s, st, i), i >= from && i < to ? i : SWISS_NONE);
    }
}

static double bytes_per_entry(const struct swiss *s) {
    return (double)swiss_bytes(s) / (double)swiss_count(s);
}

/* ---- groups ---- */

static uint64_t naive_mask(const uint8_t *ctrl, int byte) {
    uint64_t mask = 0;
    for (unsigned i = 0; i < GROUP_SLOTS; i++) {
        bool hit = byte < 0 ? ctrl[i] >= 0x80 : ctrl[i] == byte;
        mask |= (uint64_t)hit << i;
    }
    return mask;
}

/* Any mask stride to one bit a slot. */
static uint64_t narrow(uint64_t mask) {
    uint64_t out = 0;
    for (; mask != 0; mask &= mask - 1) {
        out |= (uint64_t)1 << group_first(mask);
    }
    return out;
}

static void every_group_form_agrees(void **state) {
    static const uint8_t bytes[] = {0, 1, 2, 0x3f, 0x40, 0x7e, 0x7f, CTRL_EMPTY, CTRL_DELETED};
    struct rng rng;
    rng_init(&rng, 1);
    for (int round = 0; round < 20000; round++) {
        uint8_t ctrl[GROUP_SLOTS];
        for (unsigned i = 0; i < GROUP_SLOTS; i++) {
            ctrl[i] = bytes[rng_below(&rng, ARRAY_LEN(bytes))];
        }
        for (unsigned b = 0; b < ARRAY_LEN(bytes); b++) {
            assert_int_equal(narrow(group_match(ctrl, bytes[b])), naive_mask(ctrl, bytes[b]));
            assert_int_equal(group_match_word(ctrl, bytes[b]), naive_mask(ctrl, bytes[b]));
        }
        assert_int_equal(narrow(group_free(ctrl)), naive_mask(ctrl, -1));
        assert_int_equal(group_free_word(ctrl), naive_mask(ctrl, -1));
        assert_int_equal(narrow(group_full(ctrl)), naive_mask(ctrl, -1) ^ 0xffff);
        assert_int_equal(group_has_empty(ctrl), naive_mask(ctrl, CTRL_EMPTY) != 0);
    }
}

/* ---- basics ---- */

static void an_empty_index_finds_nothing(void **state) {
    struct swiss s;
    struct store st;
    struct rng rng;
    rng_init(&rng, 2);
    store_init(&st, 1, 1);
    swiss_init(&s, &ops, &st);
    assert_int_equal(find(&s, &st, 0), SWISS_NONE);
    assert_int_equal(swiss_likely(&s, 5), SWISS_NONE);
    swiss_prefetch(&s, 5);
    assert_int_equal(swiss_random(&s, &rng), SWISS_NONE);
    assert_int_equal(swiss_scan(&s, 0, 10, NULL, NULL), 0);
    uint64_t position = 0;
    uint64_t ref;
    assert_int_equal(swiss_next(&s, &position, &ref, 1), 0);
    assert_int_equal(swiss_bytes(&s), 0);
    swiss_check(&s);
    swiss_deinit(&s);
    swiss_deinit(&s);
    free(st.hashes);
}

static void what_is_inserted_is_found_until_erased(void **state) {
    struct swiss s;
    struct store st;
    store_init(&st, 20000, 3);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < 15000; i++) {
        insert(&s, &st, i);
        assert_int_equal(find(&s, &st, i), i);
    }
    swiss_check(&s);
    assert_holds(&s, &st, 0, 15000);
    for (uint64_t i = 0; i < 14000; i++) {
        swiss_erase(&s, st.hashes[i], i);
    }
    swiss_check(&s);
    assert_holds(&s, &st, 14000, 15000);
    assert_int_equal(swiss_count(&s), 1000);
    for (uint64_t i = 14000; i < 15000; i++) {
        swiss_erase(&s, st.hashes[i], i);
    }
    assert_int_equal(swiss_bytes(&s), 0);
    assert_int_equal(account_bytes(ACCOUNT_INDEX), 0);
    free(st.hashes);
}

static void likely_names_most_entries(void **state) {
    struct swiss s;
    struct store st;
    uint64_t right = 0;
    store_init(&st, 20000, 4);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < st.count; i++) {
        insert(&s, &st, i);
    }
    for (uint64_t i = 0; i < st.count; i++) {
        right += swiss_likely(&s, st.hashes[i]) == i;
    }
    assert_true(right > st.count * 85 / 100);
    swiss_deinit(&s);
    free(st.hashes);
}

static void deinit_can_go_step_by_step(void **state) {
    struct swiss s;
    struct store st;
    store_init(&st, 20000, 5);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < st.count; i++) {
        insert(&s, &st, i);
    }
    uint32_t segments = s.segments;
    uint32_t steps = 1;
    while (!swiss_deinit_step(&s, 2)) {
        steps++;
    }
    assert_int_equal(steps, (segments + 1) / 2);
    assert_int_equal(account_bytes(ACCOUNT_INDEX), 0);
    insert(&s, &st, 7);
    assert_int_equal(find(&s, &st, 7), 7);
    swiss_deinit(&s);
    free(st.hashes);
}

/* ---- memory ---- */

static void bytes_per_entry_stay_flat(void **state) {
    struct swiss s;
    struct store st;
    store_init(&st, 400000, 6);
    swiss_init(&s, &ops, &st);
    double most = 0;
    double sum = 0;
    for (uint64_t i = 0; i < st.count; i++) {
        insert(&s, &st, i);
        if (i >= 100 && (i < 5000 || i % 1000 == 0)) {
            most = bytes_per_entry(&s) > most ? bytes_per_entry(&s) : most;
            assert_true(bytes_per_entry(&s) <= 7.3);
            assert_true(i < 2000 || bytes_per_entry(&s) <= 7.1);
        }
        if (i >= 200000) {
            sum += bytes_per_entry(&s);
        }
    }
    assert_true(sum / 200000 <= 6.4);
    swiss_deinit(&s);
    free(st.hashes);
}

static void churn_leaves_the_index_small(void **state) {
    struct swiss s;
    struct store st;
    const uint64_t live = 50000;
    store_init(&st, 500000, 7);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < st.count; i++) {
        insert(&s, &st, i);
        if (i >= live) {
            swiss_erase(&s, st.hashes[i - live], i - live);
        }
    }
    swiss_check(&s);
    assert_int_equal(swiss_count(&s), live);
    assert_true(bytes_per_entry(&s) < 8.2);
    for (uint64_t i = st.count - live; i < st.count - live / 8; i++) {
        swiss_erase(&s, st.hashes[i], i);
    }
    swiss_check(&s);
    assert_true(bytes_per_entry(&s) < 8.7);
    swiss_deinit(&s);
    free(st.hashes);
}

/* At the border of a split or merge one insert and one erase must not rehash each time. */
static void no_border_thrashes(void **state) {
    struct swiss s;
    struct store st;
    store_init(&st, 9000, 8);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i + 1 < st.count; i++) {
        insert(&s, &st, i);
        st.asked = 0;
        for (int round = 0; round < 4; round++) {
            insert(&s, &st, i + 1);
            swiss_erase(&s, st.hashes[i + 1], i + 1);
        }
        assert_true(st.asked <= SWISS_SEGMENT_SLOTS_MAX);
    }
    while (swiss_count(&s) > 1) {
        uint64_t i = swiss_count(&s) - 1;
        swiss_erase(&s, st.hashes[i], i);
        st.asked = 0;
        for (int round = 0; round < 4; round++) {
            insert(&s, &st, i);
            swiss_erase(&s, st.hashes[i], i);
        }
        assert_true(st.asked <= SWISS_SEGMENT_SLOTS_MAX);
    }
    swiss_deinit(&s);
    free(st.hashes);
}

static void an_insert_rehashes_one_segment_at_most(void **state) {
    struct swiss s;
    struct store st;
    store_init(&st, 100000, 9);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < st.count; i++) {
        st.asked = 0;
        insert(&s, &st, i);
        assert_true(st.asked <= SWISS_SEGMENT_SLOTS_MAX);
    }
    for (uint64_t i = 0; i < st.count; i++) {
        st.asked = 0;
        swiss_erase(&s, st.hashes[i], i);
        assert_true(st.asked <= SWISS_SEGMENT_SLOTS_MAX);
    }
    free(st.hashes);
}

/* ---- failing memory ---- */

static void a_failed_insert_changes_nothing(void **state) {
    struct swiss s;
    struct store st;
    uint64_t refused = 0;
    store_init(&st, 12000, 10);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < st.count; i++) {
        size_t before = account_bytes(ACCOUNT_INDEX);
        for (size_t nth = 1;; nth++) {
            account_fail_after(nth);
            enum status result = swiss_insert(&s, st.hashes[i], i);
            account_fail_after(0);
            if (result == ST_OK) {
                break;
            }
            refused++;
            assert_int_equal(result, ST_NOMEM);
            assert_int_equal(find(&s, &st, i), SWISS_NONE);
            assert_int_equal(swiss_count(&s), i);
            assert_int_equal(account_bytes(ACCOUNT_INDEX), before);
            swiss_check(&s);
        }
    }
    assert_true(refused > 40); /* each growth once, each split two or three times */
    assert_holds(&s, &st, 0, st.count);
    swiss_deinit(&s);
    free(st.hashes);
}

static void erasing_needs_no_memory(void **state) {
    struct swiss s;
    struct store st;
    store_init(&st, 12000, 11);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < st.count; i++) {
        insert(&s, &st, i);
    }
    for (uint64_t i = 0; i < st.count; i++) {
        account_fail_after(i % 3 == 0 ? 2 : 1); /* some merge but cannot trim the directory */
        swiss_erase(&s, st.hashes[i], i);
        account_fail_after(0);
        if (i % 1000 == 0) {
            swiss_check(&s);
        }
    }
    assert_int_equal(account_bytes(ACCOUNT_INDEX), 0);
    free(st.hashes);
}

static void reserve_makes_the_insert_certain(void **state) {
    struct swiss s;
    struct store st;
    store_init(&st, 12000, 12);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < st.count; i++) {
        uint64_t ref = i % 3000 == 2999 ? WIDE + i : i;
        assert_int_equal(swiss_reserve(&s, st.hashes[i], ref), ST_OK);
        account_fail_after(1);
        assert_int_equal(swiss_insert(&s, st.hashes[i], ref), ST_OK);
        account_fail_after(0);
    }
    swiss_check(&s);
    swiss_deinit(&s);
    free(st.hashes);
}

/* ---- wide refs ---- */

static void an_expecting_index_hardly_grows(void **state) {
    static const uint64_t counts[] = {1, 10, 15, 300, 1300, 1301, 2600, 5000, 77777, 200000};
    for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
        uint64_t count = counts[k];
        struct store st;
        struct swiss s, grown;
        store_init(&st, count, k);
        swiss_init(&s, &ops, &st);
        swiss_init(&grown, &ops, &st);
        for (uint64_t i = 0; i < count; i++) {
            insert(&grown, &st, i);
        }
        swiss_expect(&s, count);
        swiss_check(&s);
        assert_int_equal(swiss_count(&s), 0);
        assert_int_equal(find(&s, &st, 0), SWISS_NONE);
        swiss_expect(&s, 7); /* it is not without segments: nothing happens */
        st.asked = 0;
        for (uint64_t i = 0; i < count; i++) {
            insert(&s, &st, i);
        }
        assert_true(st.asked <= count / 4);
        swiss_check(&s);
        assert_holds(&s, &st, 0, count);
        assert_true(count < 1000 || bytes_per_entry(&s) < bytes_per_entry(&grown) * 1.1);
        swiss_expect(&s, 1000000);
        assert_int_equal(swiss_count(&s), count);
        swiss_deinit(&s);
        swiss_deinit(&grown);
        assert_int_equal(account_bytes(ACCOUNT_INDEX), 0);
        free(st.hashes);
    }
}

/* Far fewer than expected, and the last one gone; then without memory. */
static void expecting_is_advice_only(void **state) {
    struct store st;
    struct swiss s;
    store_init(&st, 3000, 1);
    swiss_init(&s, &ops, &st);
    for (int how = 0; how < 12; how++) {
        account_fail_after(how < 2 ? 0 : 1u << (how - 2));
        swiss_expect(&s, 100000);
        account_fail_after(0);
        swiss_check(&s);
        for (uint64_t i = 0; i < (how == 0 ? 1 : 3000); i++) {
            insert(&s, &st, i);
        }
        swiss_check(&s);
        for (uint64_t i = 0; i < (how == 0 ? 1 : 3000); i++) {
            swiss_erase(&s, st.hashes[i], i);
        }
        swiss_check(&s);
        assert_int_equal(account_bytes(ACCOUNT_INDEX), 0);
    }
    free(st.hashes);
}

static void only_segments_with_wide_refs_turn_wide(void **state) {
    struct swiss s;
    struct store st;
    store_init(&st, 30000, 13);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < st.count; i++) {
        insert(&s, &st, i);
    }
    size_t narrow_bytes = swiss_bytes(&s);
    uint64_t high = ((uint64_t)1 << SWISS_REF_BITS) - ((uint64_t)1 << 32) + 5;
    account_fail_after(1);
    assert_int_equal(swiss_replace(&s, st.hashes[5], 5, high), ST_NOMEM);
    account_fail_after(0);
    assert_int_equal(find(&s, &st, 5), 5);
    assert_int_equal(swiss_replace(&s, st.hashes[5], 5, high), ST_OK);
    assert_int_equal(find(&s, &st, 5), high);
    size_t one_wide = swiss_bytes(&s);
    assert_true(one_wide > narrow_bytes && one_wide < narrow_bytes + narrow_bytes / 10);
    for (uint64_t i = 6; i < st.count; i++) {
        assert_int_equal(swiss_replace(&s, st.hashes[i], i, WIDE + i), ST_OK);
    }
    swiss_check(&s);
    for (uint64_t i = 0; i < st.count; i++) {
        assert_int_equal(find(&s, &st, i), i < 5 ? i : i == 5 ? high : WIDE + i);
    }
    for (uint64_t i = 6; i < st.count; i++) {
        swiss_erase(&s, st.hashes[i], WIDE + i);
    }
    assert_int_equal(find(&s, &st, 5), high);
    swiss_check(&s);
    swiss_deinit(&s);
    free(st.hashes);
}

/* ---- walks ---- */

struct seen {
    uint8_t *times;
    uint64_t total;
    uint64_t last_hash;
    const struct store *store;
};

static void see(void *arg, uint64_t ref) {
    struct seen *seen = arg;
    seen->times[ref]++;
    seen->total++;
}

static void scan_sees_each_entry_once_at_any_count(void **state) {
    static const size_t wants[] = {0, 1, 10, 100, 5000};
    struct swiss s;
    struct store st;
    store_init(&st, 9000, 14);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < st.count; i++) {
        insert(&s, &st, i);
    }
    for (size_t w = 0; w < ARRAY_LEN(wants); w++) {
        struct seen seen = {.times = calloc(st.count, 1), .store = &st};
        uint64_t cursor = 0;
        do {
            uint64_t before = seen.total;
            cursor = swiss_scan(&s, cursor, wants[w], see, &seen);
            assert_true(cursor == 0 || seen.total - before >= wants[w]);
            assert_true(seen.total - before <= wants[w] + 200);
        } while (cursor != 0);
        for (uint64_t i = 0; i < st.count; i++) {
            assert_int_equal(seen.times[i], 1);
        }
        free(seen.times);
    }
    swiss_deinit(&s);
    free(st.hashes);
}

/* The table goes through many sizes while the scan is under way; the first thousand entries stay.
 */
static void scan_survives_growing_and_shrinking(void **state) {
    struct swiss s;
    struct store st;
    const uint64_t stay = 1000;
    store_init(&st, 60000, 15);
    for (int grow = 0; grow < 2; grow++) {
        swiss_init(&s, &ops, &st);
        uint64_t n = grow ? stay : st.count;
        for (uint64_t i = 0; i < n; i++) {
            insert(&s, &st, i);
        }
        struct seen seen = {.times = calloc(st.count, 1), .store = &st};
        uint64_t cursor = 0;
        do {
            cursor = swiss_scan(&s, cursor, 10, see, &seen);
            for (int step = 0; step < 600; step++) {
                if (grow && n < st.count) {
                    insert(&s, &st, n++);
                } else if (!grow && n > stay) {
                    n--;
                    swiss_erase(&s, st.hashes[n], n);
                }
            }
        } while (cursor != 0);
        for (uint64_t i = 0; i < st.count; i++) {
            assert_true(seen.times[i] <= 1);
            assert_true(i >= stay || seen.times[i] == 1);
        }
        swiss_check(&s);
        free(seen.times);
        swiss_deinit(&s);
    }
    free(st.hashes);
}

static void scan_takes_any_cursor(void **state) {
    struct swiss s;
    struct store st;
    struct rng rng;
    rng_init(&rng, 16);
    store_init(&st, 5000, 16);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < st.count; i++) {
        insert(&s, &st, i);
    }
    struct seen seen = {.times = calloc(st.count, 1), .store = &st};
    for (int i = 0; i < 2000; i++) {
        uint64_t next = swiss_scan(&s, rng_next(&rng) >> (i % 64), 3, see, &seen);
        assert_true(next >> 57 == 0);
    }
    assert_int_equal(swiss_scan(&s, UINT64_MAX, 3, see, &seen), 0);
    assert_int_equal(swiss_scan(&s, ((uint64_t)1 << 57) - 1, 3, see, &seen), 0);
    free(seen.times);
    swiss_deinit(&s);
    free(st.hashes);
}

/* Memory fails while the table empties, so great empty stretches remain: a call passes a bounded
 * part. */
static void scan_of_empty_stretches_is_bounded(void **state) {
    struct swiss s;
    struct store st;
    store_init(&st, 200000, 17);
    swiss_init(&s, &ops, &st);
    for (uint64_t i = 0; i < st.count; i++) {
        insert(&s, &st, i);
    }
    account_fail_after(1);
    for (uint64_t i = 3; i < st.count; i++) {
        swiss_erase(&s, st.hashes[i], i);
    }
    account_fail_after(0);
    struct seen seen = {.times = calloc(st.count, 1), .store = &st};
    uint64_t cursor = 0;
    uint64_t calls = 0;
    do {
        cursor = swiss_scan(&s, cursor, 10, see, &seen);
        calls++;
    } while (cursor != 0);
    assert_true(calls >= 2);
    assert_int_equal(seen.total, 3);
    free(seen.times);
    swiss_check(&s);
    swiss_deinit(&s);
    free(st.hashes);
}

static void random_is_uniform(void **state) {
    static const uint64_t sizes[] = {1, 2, 14, 40, 500, 4000};
    struct rng rng;
    rng_init(&rng, 18);
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        struct swiss s;
        struct store st;
        store_init(&st, sizes[k] * 3, 18);
        swiss_init(&s, &ops, &st);
        for (uint64_t i = 0; i < st.count; i++) {
            insert(&s, &st, i);
        }
        for (uint64_t i = sizes[k]; i < st.count; i++) {
            swiss_erase(&s, st.hashes[i], i);
        }
        uint64_t n = sizes[k];
        uint64_t *hits = calloc(n, sizeof(*hits));
        for (uint64_t i = 0; i < n * 100; i++) {
            hits[swiss_random(&s, &rng)]++;
        }
        double chi = 0;
        for (uint64_t i = 0; i < n; i++) {
            chi += ((double)hits[i] - 100) * ((double)hits[i] - 100) / 100;
        }
        /* mean n - 1, deviation sqrt(2n): five of them */
        double over = chi - (double)(n - 1);
        assert_true(over <= 0 || over * over < 25 * 2 * (double)n);
        free(hits);
        swiss_deinit(&s);
        free(st.hashes);
    }
}

/* ---- hashes far from random ---- */

static void equal_top_bits_grow_one_segment(void **state) {
    struct swiss s;
    struct store st;
    store_init(&st, 3000, 19);
    for (uint64_t i = 0; i < st.count; i++) {
        st.hashes[i] = (uint64_t)0x123456789abcd << 12 | (st.hashes[i] & 0xfff);
    }
    swiss_init(&s, &ops, &st);
    uint64_t n = 0;
    while (n < st.count) {
        insert(&s, &st, n++);
    }
    swiss_check(&s);
    assert_true(s.depth <= 6);
    assert_true(bytes_per_entry(&s) < 7.5);
    for (uint64_t i = 0; i < st.count; i++) {
        assert_int_equal(find(&s, &st, i), i);
    }
    struct seen seen = {.times = calloc(st.count, 1), .store = &st};
    uint64_t cursor = 0;
    do {
        cursor = swiss_scan(&s, cursor, 10, see, &seen);
    } while (cursor != 0);
    assert_int_equal(seen.total, st.count);
    free(seen.times);
    while (n-- > 0) {
        swiss_erase(&s, st.hashes[n], n);
    }
    assert_int_equal(account_bytes(ACCOUNT_INDEX), 0);
    free(st.hashes);
}

/* More than a segment may hold: the directory does not grow for them, other hashes go on. */
static void too_many_equal_top_bits_end_in_nomem(void **state) {
    struct swiss s;
    struct store st;
    store_init(&st, 40000, 20);
    for (uint64_t i = 1; i < st.count; i++) {
        st.hashes[i] = st.hashes[i] >> 30 | (uint64_t)0x2468ace << 36;
    }
    st.hashes[0] = ~st.hashes[1];
    swiss_init(&s, &ops, &st);
    uint64_t n = 1;
    while (n < st.count && swiss_insert(&s, st.hashes[n], n) == ST_OK) {
        n++;
    }
    assert_true(n > 25000 && n < st.count);
    assert_true(s.depth <= 9);
    insert(&s, &st, 0);
    swiss_check(&s);
    for (uint64_t i = 0; i < st.count; i += 97) {
        assert_int_equal(find(&s, &st, i), i < n ? i : SWISS_NONE);
    }
    while (n-- > 0) {
        swiss_erase(&s, st.hashes[n], n);
    }
    assert_int_equal(account_bytes(ACCOUNT_INDEX), 0);
    free(st.hashes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_group_form_agrees),
        cmocka_unit_test(an_empty_index_finds_nothing),
        cmocka_unit_test(what_is_inserted_is_found_until_erased),
        cmocka_unit_test(likely_names_most_entries),
        cmocka_unit_test(deinit_can_go_step_by_step),
        cmocka_unit_test(bytes_per_entry_stay_flat),
        cmocka_unit_test(churn_leaves_the_index_small),
        cmocka_unit_test(no_border_thrashes),
        cmocka_unit_test(an_insert_rehashes_one_segment_at_most),
        cmocka_unit_test(a_failed_insert_changes_nothing),
        cmocka_unit_test(erasing_needs_no_memory),
        cmocka_unit_test(reserve_makes_the_insert_certain),
        cmocka_unit_test(an_expecting_index_hardly_grows),
        cmocka_unit_test(expecting_is_advice_only),
        cmocka_unit_test(only_segments_with_wide_refs_turn_wide),
        cmocka_unit_test(scan_sees_each_entry_once_at_any_count),
        cmocka_unit_test(scan_survives_growing_and_shrinking),
        cmocka_unit_test(scan_takes_any_cursor),
        cmocka_unit_test(scan_of_empty_stretches_is_bounded),
        cmocka_unit_test(random_is_uniform),
        cmocka_unit_test(equal_top_bits_grow_one_segment),
        cmocka_unit_test(too_many_equal_top_bits_end_in_nomem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
