/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "mem/account.h"
#include "seq_priv.h"

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "seq_check: %s is false\n", #cond);                                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct recount {
    uint64_t elements;
    size_t blocks, node_bytes, boxed_bytes;
};

#define OFFSET_EVERY 61 /* elements whose offset is also looked up the fast way */

static uint32_t sum_of_lens(const struct strip *r) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        REQUIRE(i % OFFSET_EVERY != 0 || strip_offset(r, i) == sum);
        sum += strip_len_at(r, i);
    }
    return sum;
}

static void check_block(const struct seq *s, const struct seq_node *n, const struct seq_entry *e,
                        struct recount *sum) {
    uint64_t ref = child_ref(e->child);
    const struct seq_block *b = block_at(s, ref);
    struct strip r = block_strip(b);
    REQUIRE(b->owner == n && b->unused == 0 && e->child == child_of_block(s, ref));
    REQUIRE(b->count != 0 && b->count == e->count && b->form <= FORM_BOX);
    REQUIRE(sum_of_lens(&r) == strip_data_len(&r) && block_used(b) <= block_cap(b));
    REQUIRE(block_is_large(b)
                ? b->count == 1
                : strip_weight(&r) <= SEQ_WEIGHT_MAX && block_cap(b) <= SEQ_BLOCK_MAX);
    if (b->form == FORM_BOX) {
        sum->boxed_bytes += sizeof(struct seq_box) + r.len;
    }
    sum->blocks++;
}

/* Nobody counts their elements any more, and those cut out last may be half freed. */
static void check_doomed(const struct seq *s, const struct seq_node *n, struct recount *sum) {
    REQUIRE(n->len <= n->cap && n->cap <= SEQ_NODE_MAX);
    sum->node_bytes += account_good_size(sizeof(*n) + n->cap * sizeof(n->entry[0]));
    for (uint32_t i = 0; i < n->len; i++) {
        if (n->level == 0) {
            struct seq_entry e = n->entry[i];
            e.count = entry_block(s, &e)->count;
            check_block(s, n, &e, sum);
        } else {
            const struct seq_node *down = child_node(n->entry[i].child);
            REQUIRE(down->level + 1 == n->level);
            check_doomed(s, down, sum);
        }
    }
}

static uint64_t check_node(const struct seq *s, const struct seq_node *n, struct recount *sum) {
    uint64_t total = 0;
    REQUIRE(n->len != 0 && n->len <= n->cap && n->cap <= SEQ_NODE_MAX);
    REQUIRE(n->cap == SEQ_NODE_MAX || n == s->root);
    sum->node_bytes += account_good_size(sizeof(*n) + n->cap * sizeof(n->entry[0]));
    for (uint32_t i = 0; i < n->len; i++) {
        const struct seq_entry *e = &n->entry[i];
        if (n->level == 0) {
            check_block(s, n, e, sum);
        } else {
            const struct seq_node *down = child_node(e->child);
            REQUIRE(down->level + 1 == n->level && check_node(s, down, sum) == e->count);
        }
        total += e->count;
    }
    return total;
}

static void check_end(const struct seq_buffer *b) {
    struct strip r = seq_buffer_strip(b);
    REQUIRE((b->memory == NULL) == (b->cap == 0) && b->cap % 2 == 0);
    REQUIRE(b->start <= b->stop && b->stop + 2 * ((size_t)b->gone + b->count) <= b->cap);
    REQUIRE(sum_of_lens(&r) == strip_data_len(&r));
}

static void count_record(void *arg, uint64_t ref, void *record) {
    (void)ref;
    (void)record;
    ++*(size_t *)arg;
}

void seq_check(const struct seq *s) {
    struct recount sum = {0};
    size_t records = 0;
    check_end(&s->end[SEQ_HEAD]);
    check_end(&s->end[SEQ_TAIL]);
    if (s->root != NULL) {
        sum.elements = check_node(s, s->root, &sum);
        REQUIRE(s->root->level == 0 || s->root->len > 1);
    }
    for (const struct seq_node *n = s->doomed; n != NULL; n = doomed_next(n)) {
        check_doomed(s, n, &sum);
    }
    arena_check(&s->arena);
    arena_each(&s->arena, count_record, &records);
    REQUIRE(records == sum.blocks && sum.elements == s->inner);
    REQUIRE(sum.node_bytes == s->node_bytes && sum.boxed_bytes == s->boxed_bytes);
}
