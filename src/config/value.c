/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of value: parse, print, free. One row a kind in `kinds`. */
#include "option_priv.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/number.h"

#define OUTPUT_LIMIT_WORDS 4 /* class hard soft seconds */

/* Parses into the storage at `to`: zeroed, or a copy of the current value of a kind that adds to it. */
typedef enum status kind_parse(const struct option *o, void *to, const struct bytes *words,
                               size_t count, struct buf *why);

static void *field_of(const struct option *o, struct config *c) {
    return (char *)c + o->offset;
}

static const void *field_of_const(const struct option *o, const struct config *c) {
    return (const char *)c + o->offset;
}

static enum status refuse(struct buf *why, const char *text) {
    buf_append_cstr(why, text);
    return ST_SYNTAX;
}

static bool has_nul(struct bytes b) {
    return b.len != 0 && memchr(b.ptr, '\0', b.len) != NULL;
}

static char *copy_cstr(struct bytes b) {
    char *s = malloc(b.len + 1);
    if (s != NULL) {
        if (b.len != 0) {
            memcpy(s, b.ptr, b.len);
        }
        s[b.len] = '\0';
    }
    return s;
}

static enum status check_limits(const struct option *o, bool within, struct buf *why) {
    if (within) {
        return ST_OK;
    }
    buf_printf(why, "argument must be between %" PRId64 " and %" PRId64 " inclusive", o->min,
               o->max);
    return ST_SYNTAX;
}

/* ---- parse --------------------------------------------------------------------------------- */

static enum status parse_bool(const struct option *o, void *to, const struct bytes *words,
                              size_t count, struct buf *why) {
    bool yes = bytes_is(words[0], "yes");
    if (!yes && !bytes_is(words[0], "no")) {
        return refuse(why, "argument must be 'yes' or 'no'");
    }
    *(bool *)to = yes;
    return ST_OK;
}

static enum status parse_number(const struct option *o, const struct bytes *words, uint64_t *out,
                                struct buf *why) {
    int64_t v;
    if (!number_parse_i64(words[0], &v)) {
        return refuse(why, "argument couldn't be parsed into an integer");
    }
    *out = (uint64_t)v;
    return check_limits(o, v >= o->min && v <= o->max, why);
}

static enum status parse_int(const struct option *o, void *to, const struct bytes *words,
                             size_t count, struct buf *why) {
    uint64_t v;
    enum status st = parse_number(o, words, &v, why);
    if (st == ST_OK) {
        *(int *)to = (int)v;
    }
    return st;
}

static enum status parse_count(const struct option *o, void *to, const struct bytes *words,
                               size_t count, struct buf *why) {
    uint64_t v;
    enum status st = parse_number(o, words, &v, why);
    if (st == ST_OK) {
        *(size_t *)to = (size_t)v;
    }
    return st;
}

static enum status parse_size(const struct option *o, void *to, const struct bytes *words,
                              size_t count, struct buf *why) {
    uint64_t v;
    if (!number_parse_size(words[0], &v)) {
        return refuse(why, "argument must be a memory value");
    }
    bool within = v >= (uint64_t)o->min && v <= (uint64_t)o->max; /* no size has a limit below 0 */
    enum status st = check_limits(o, within, why);
    if (st == ST_OK) {
        *(size_t *)to = (size_t)v;
    }
    return st;
}

static enum status parse_octal(const struct option *o, void *to, const struct bytes *words,
                               size_t count, struct buf *why) {
    unsigned v = 0;
    bool good = words[0].len > 0;
    for (size_t i = 0; good && i < words[0].len; i++) {
        unsigned digit = (unsigned char)words[0].ptr[i] - (unsigned)'0';
        good = digit <= 7;
        v = v > (unsigned)o->max ? v : v * 8 + digit; /* sticks once too large */
    }
    if (!good) {
        return refuse(why, "argument couldn't be parsed as an octal number");
    }
    if (v > (unsigned)o->max) {
        buf_printf(why, "argument must be between %o and %o inclusive", (unsigned)o->min,
                   (unsigned)o->max);
        return ST_SYNTAX;
    }
    *(unsigned *)to = v;
    return ST_OK;
}

static enum status parse_string(const struct option *o, void *to, const struct bytes *words,
                                size_t count, struct buf *why) {
    if (has_nul(words[0])) {
        return refuse(why, "argument must not hold NUL bytes");
    }
    char *s = copy_cstr(words[0]);
    *(char **)to = s;
    return s != NULL ? ST_OK : ST_NOMEM;
}

static enum status parse_enum(const struct option *o, void *to, const struct bytes *words,
                              size_t count, struct buf *why) {
    for (int i = 0; o->words[i] != NULL; i++) {
        if (bytes_is(words[0], o->words[i])) {
            *(int *)to = i;
            return ST_OK;
        }
    }
    buf_append_cstr(why, "argument(s) must be one of the following: ");
    for (int i = 0; o->words[i] != NULL; i++) {
        buf_printf(why, "%s%s", i == 0 ? "" : ", ", o->words[i]);
    }
    return ST_SYNTAX;
}

static void list_clear(struct config_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct config_list){0};
}

static enum status parse_list(const struct option *o, void *to, const struct bytes *words,
                              size_t count, struct buf *why) {
    struct config_list list = {0};
    if (count == 0) {
        return ST_OK;
    }
    list.items = calloc(count + 1, sizeof(*list.items));
    if (list.items == NULL) {
        return ST_NOMEM;
    }
    for (; list.count < count; list.count++) {
        if (has_nul(words[list.count])) {
            list_clear(&list);
            return refuse(why, "argument must not hold NUL bytes");
        }
        list.items[list.count] = copy_cstr(words[list.count]);
        if (list.items[list.count] == NULL) {
            list_clear(&list);
            return ST_NOMEM;
        }
    }
    *(struct config_list *)to = list;
    return ST_OK;
}

/* class hard soft seconds. Redis's other classes are refused by name: nothing here could obey. */
static enum status parse_class_limit(const struct bytes *words, struct config_output_limit *to,
                                     struct buf *why) {
    if (bytes_is(words[0], "pubsub") || bytes_is(words[0], "replica") ||
        bytes_is(words[0], "slave")) {
        return refuse(why, "this version has no pubsub or replica clients; only the class "
                           "'normal' can be limited");
    }
    if (!bytes_is(words[0], "normal")) {
        return refuse(why, "Invalid client class specified in buffer limit configuration.");
    }
    uint64_t hard, soft;
    int64_t seconds;
    if (!number_parse_size(words[1], &hard) || !number_parse_size(words[2], &soft) ||
        !number_parse_i64(words[3], &seconds) || seconds < 0 || seconds > INT32_MAX) {
        return refuse(why,
                      "Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    }
    *to = (struct config_output_limit){
        .hard_bytes = (size_t)hard, .soft_bytes = (size_t)soft, .soft_seconds = (int)seconds};
    return ST_OK;
}

static enum status parse_output_limit(const struct option *o, void *to, const struct bytes *words,
                                      size_t count, struct buf *why) {
    if (count == 0 || count % OUTPUT_LIMIT_WORDS != 0) {
        return refuse(why, "Wrong number of arguments in buffer limit configuration.");
    }
    for (size_t i = 0; i < count; i += OUTPUT_LIMIT_WORDS) {
        enum status st = parse_class_limit(words + i, to, why);
        if (st != ST_OK) {
            return st;
        }
    }
    return ST_OK;
}

/* Adds to what is there; no words at all drop it. */
static enum status parse_save_points(const struct option *o, void *to, const struct bytes *words,
                                     size_t count, struct buf *why) {
    struct config_save_points *points = to;
    if (count == 0) {
        points->count = 0;
        return ST_OK;
    }
    for (size_t i = 0; i < count; i += 2) {
        struct config_save_point point;
        if (i + 1 == count || !number_parse_i64(words[i], &point.seconds) || point.seconds < 1 ||
            !number_parse_i64(words[i + 1], &point.changes) || point.changes < 0) {
            return refuse(why, "Invalid save parameters");
        }
        if (points->count == CONFIG_SAVE_POINTS_MAX) {
            return refuse(why, "too many save points");
        }
        points->at[points->count++] = point;
    }
    return ST_OK;
}

/* ---- print --------------------------------------------------------------------------------- */

static void print_bool(const struct option *o, const void *from, struct buf *out) {
    buf_append_cstr(out, *(const bool *)from ? "yes" : "no");
}

static void print_int(const struct option *o, const void *from, struct buf *out) {
    buf_printf(out, "%d", *(const int *)from);
}

static void print_size(const struct option *o, const void *from, struct buf *out) {
    buf_printf(out, "%zu", *(const size_t *)from);
}

static void print_octal(const struct option *o, const void *from, struct buf *out) {
    buf_printf(out, "%o", *(const unsigned *)from);
}

static void print_string(const struct option *o, const void *from, struct buf *out) {
    buf_append_cstr(out, *(char *const *)from);
}

static void print_enum(const struct option *o, const void *from, struct buf *out) {
    buf_append_cstr(out, o->words[*(const int *)from]);
}

static void print_list(const struct option *o, const void *from, struct buf *out) {
    const struct config_list *list = from;
    for (size_t i = 0; i < list->count; i++) {
        buf_printf(out, "%s%s", i == 0 ? "" : " ", list->items[i]);
    }
}

static void print_output_limit(const struct option *o, const void *from, struct buf *out) {
    const struct config_output_limit *limit = from;
    buf_printf(out, "normal %zu %zu %d", limit->hard_bytes, limit->soft_bytes, limit->soft_seconds);
}

static void print_save_points(const struct option *o, const void *from, struct buf *out) {
    const struct config_save_points *points = from;
    for (size_t i = 0; i < points->count; i++) {
        buf_printf(out, "%s%" PRId64 " %" PRId64, i == 0 ? "" : " ", points->at[i].seconds,
                   points->at[i].changes);
    }
}

static const struct {
    kind_parse *parse;
    void (*print)(const struct option *o, const void *from, struct buf *out);
    bool takes_words; /* several, split at blanks when given as one */
} kinds[OPTION_KINDS] = {
    [KIND_BOOL] = {parse_bool, print_bool, false},
    [KIND_INT] = {parse_int, print_int, false},
    [KIND_COUNT] = {parse_count, print_size, false},
    [KIND_SIZE] = {parse_size, print_size, false},
    [KIND_OCTAL] = {parse_octal, print_octal, false},
    [KIND_STRING] = {parse_string, print_string, false},
    [KIND_ENUM] = {parse_enum, print_enum, false},
    [KIND_LIST] = {parse_list, print_list, true},
    [KIND_OUTPUT_LIMIT] = {parse_output_limit, print_output_limit, true},
    [KIND_SAVE_POINTS] = {parse_save_points, print_save_points, true},
};

/* ---- fields -------------------------------------------------------------------------------- */

bool option_takes_words(const struct option *o) {
    return kinds[o->kind].takes_words;
}

/* "a b c" as its words, views into text: each blank parts two, as in Redis, so that a spare one leaves an empty word. No
 * text is no word. *words is malloc'ed. */
static enum status split_words(struct bytes text, struct bytes **words, size_t *count) {
    *count = 0;
    *words = malloc((text.len + 1) * sizeof(**words));
    if (*words == NULL) {
        return ST_NOMEM;
    }
    for (size_t from = 0; text.len > 0 && from <= text.len;) {
        size_t to = from;
        while (to < text.len && text.ptr[to] != ' ') {
            to++;
        }
        (*words)[(*count)++] = BYTES(text.ptr + from, to - from);
        from = to + 1;
    }
    return ST_OK;
}

/* Run check on c with the parsed value in place; on refusal put the old value back. */
static enum status install(const struct option *o, struct config *c, struct config *parsed,
                           struct buf *why) {
    option_swap(o, c, parsed);
    const char *wrong = o->check != NULL ? o->check(c) : NULL;
    if (wrong != NULL) {
        option_swap(o, c, parsed);
        option_clear(o, parsed);
        return refuse(why, wrong);
    }
    option_clear(o, parsed);
    return ST_OK;
}

enum status option_parse(const struct option *o, struct config *c, const struct bytes *words,
                         size_t count, struct buf *why) {
    struct bytes *split = NULL;
    struct config parsed = {0};
    enum status st = ST_OK;
    if (option_takes_words(o)) {
        if (count == 1) {
            st = split_words(words[0], &split, &count);
            words = split;
        }
    } else if (count != 1) {
        return refuse(why, "wrong number of arguments");
    }
    if (o->kind == KIND_SAVE_POINTS) { /* which owns nothing */
        memcpy(field_of(o, &parsed), field_of(o, c), o->size);
    }
    if (st == ST_OK) {
        st = kinds[o->kind].parse(o, field_of(o, &parsed), words, count, why);
    }
    if (st == ST_OK) {
        st = install(o, c, &parsed, why);
    }
    free(split);
    return st;
}

void option_print(const struct option *o, const struct config *c, struct buf *out) {
    kinds[o->kind].print(o, field_of_const(o, c), out);
}

void option_clear(const struct option *o, struct config *c) {
    void *field = field_of(o, c);
    if (o->kind == KIND_STRING) {
        free(*(char **)field);
    } else if (o->kind == KIND_LIST) {
        list_clear(field);
    }
    memset(field, 0, o->size);
}

void option_swap(const struct option *o, struct config *a, struct config *b) {
    char tmp[sizeof(struct config_save_points)]; /* the largest kind */
    assert(o->size <= sizeof(tmp));
    memcpy(tmp, field_of(o, a), o->size);
    memcpy(field_of(o, a), field_of(o, b), o->size);
    memcpy(field_of(o, b), tmp, o->size);
}

void option_write_domain(const struct option *o, struct buf *out) {
    switch (o->kind) {
    case KIND_BOOL:
        buf_append_cstr(out, "yes, no");
        return;
    case KIND_INT:
    case KIND_COUNT:
    case KIND_SIZE:
        if (o->max == INT64_MAX) {
            buf_printf(out, "%" PRId64 " or more", o->min);
        } else {
            buf_printf(out, "%" PRId64 " to %" PRId64, o->min, o->max);
        }
        return;
    case KIND_OCTAL:
        buf_printf(out, "%o to %o, octal", (unsigned)o->min, (unsigned)o->max);
        return;
    case KIND_STRING:
        buf_append_cstr(out, "text");
        return;
    case KIND_ENUM:
        for (int i = 0; o->words[i] != NULL; i++) {
            buf_printf(out, "%s%s", i == 0 ? "" : ", ", o->words[i]);
        }
        return;
    case KIND_LIST:
        buf_append_cstr(out, "words");
        return;
    case KIND_OUTPUT_LIMIT:
        buf_append_cstr(out, "normal HARD SOFT SECONDS");
        return;
    case KIND_SAVE_POINTS:
        buf_append_cstr(out, "SECONDS CHANGES ...");
        return;
    case OPTION_KINDS:
        break;
    }
}
