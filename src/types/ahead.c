/* SPDX-License-Identifier: BSD-3-Clause */
#include "types/ahead.h"

#include "types/zset.h"

#define LINE 64
/* Of a value in its key's record, behind the line that is fetched with the record. The rest of longer
 * ones comes in order, which the hardware sees by itself. */
#define INLINE_LINES_MAX 6
/* What the objects of all types read first. */
#define OBJECT_LINES 3

static void prefetch_lines(const char *at, size_t lines) {
    for (size_t i = 0; i < lines; i++) {
        PREFETCH(at + i * LINE);
    }
}

static void prefetch_object(const struct value *v) {
    if (v->encoding == VALUE_HEAP) {
        prefetch_lines(value_object(v), OBJECT_LINES);
    } else if (v->len > LINE) {
        size_t lines = v->len / LINE;
        prefetch_lines(v->data + LINE, lines < INLINE_LINES_MAX ? lines : INLINE_LINES_MAX);
    }
}

void ahead_prefetch(const struct ahead *a, enum ahead_stage stage) {
    const struct value *v = &a->value;
    bool member = (a->parts & AHEAD_MEMBER) && value_has_index(v);
    switch (stage) {
    case AHEAD_STAGE_OBJECT:
        prefetch_object(v);
        break;
    case AHEAD_STAGE_INDEX:
        if (member) {
            value_prefetch_index(v, a->hash);
        }
        if ((a->parts & AHEAD_SCORE) && v->type == VALUE_ZSET) {
            zset_prefetch_score(v, a->score);
        }
        break;
    case AHEAD_STAGE_RECORD:
        if (member) {
            value_prefetch_record(v, a->hash);
        }
        break;
    }
}
