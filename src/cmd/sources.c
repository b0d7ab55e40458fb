/* SPDX-License-Identifier: BSD-3-Clause */
#include "sources_priv.h"

#include <stdlib.h>

#include "cmd/args.h"
#include "types/set.h"
#include "types/zset.h"

static bool is_source(const struct value *v, bool scored) {
    return v->type == VALUE_SET || (scored && v->type == VALUE_ZSET);
}

bool sources_find(struct call *call, size_t first_key, struct source *sources, size_t count,
                  bool scored) {
    uint64_t hashes[LOOKUP_GROUP];
    struct entry e;
    for (size_t i = 0; i < count; i++) {
        if (i % LOOKUP_GROUP == 0) {
            lookup_prefetch(call, first_key + i, 1, hashes);
        }
        if (lookup_key(call, first_key + i, DB_TOUCH, &e) && !is_source(&e.value, scored)) {
            args_wrong_type(call);
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        sources[i] = (struct source){.weight = 1};
        if (lookup_key(call, first_key + i, DB_NO_TOUCH, &e)) {
            sources[i].value = e.value;
            sources[i].count =
                e.value.type == VALUE_SET ? set_count(&e.value) : zset_count(&e.value);
        }
    }
    return true;
}

static int compare(const void *a, const void *b) {
    const struct source *x = a, *y = b;
    return x->count < y->count ? -1 : x->count > y->count;
}

void sources_sort(struct source *sources, size_t count) {
    qsort(sources, count, sizeof(*sources), compare);
}
