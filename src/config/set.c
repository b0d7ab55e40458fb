/* SPDX-License-Identifier: BSD-3-Clause */
/* CONFIG GET and CONFIG SET. SET parses every pair into a staged config first, exchanges the fields
 * with the live one, then runs the hooks; exchanging again is the roll-back, so that it allocates
 * nothing and cannot fail. */
#include "option_priv.h"

#include <stdlib.h>

/* ---- get ----------------------------------------------------------------------------------- */

void config_print(const struct config *c, enum config_option_id id, struct buf *out) {
    option_print(&config_table[id], c, out);
}

static bool has_wildcard(struct bytes pattern) {
    for (size_t i = 0; i < pattern.len; i++) {
        if (strchr("*?[", pattern.ptr[i]) != NULL && pattern.ptr[i] != '\0') {
            return true;
        }
    }
    return false;
}

/* The first pattern that asks for name, or count. */
static size_t find_pattern(const char *name, const struct bytes *patterns, size_t count) {
    struct bytes text = bytes_from_cstr(name);
    for (size_t i = 0; i < count; i++) {
        if (has_wildcard(patterns[i]) ? bytes_glob_match(patterns[i], text, true)
                                      : bytes_equal_nocase(patterns[i], text)) {
            return i;
        }
    }
    return count;
}

size_t config_get(const struct config *c, const struct bytes *patterns, size_t count,
                  config_emit *emit, void *ctx) {
    size_t pairs = 0;
    struct buf value = {0};
    for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++) {
        const char *names[] = {config_table[id].name, config_table[id].alias};
        for (size_t i = 0; i < ARRAY_LEN(names) && names[i] != NULL; i++) {
            size_t at = find_pattern(names[i], patterns, count);
            if (at == count) {
                continue;
            }
            pairs++;
            if (emit != NULL) {
                buf_clear(&value);
                config_print(c, id, &value);
                emit(ctx, has_wildcard(patterns[at]) ? bytes_from_cstr(names[i]) : patterns[at],
                     buf_bytes(&value));
            }
        }
    }
    buf_deinit(&value);
    return pairs;
}

/* ---- set ----------------------------------------------------------------------------------- */

void config_on_change(struct config *c, enum config_option_id id, config_apply *apply, void *ctx) {
    c->hooks[id] = (struct config_hook){.apply = apply, .ctx = ctx};
}

static enum status fail(struct buf *error, struct bytes name, struct bytes why) {
    buf_append_cstr(error, "ERR CONFIG SET failed (possibly related to argument '");
    buf_append(error, name.ptr, name.len);
    buf_append_cstr(error, "') - ");
    buf_append(error, why.ptr, why.len);
    return ST_SYNTAX;
}

static enum status fail_text(struct buf *error, struct bytes name, const char *why) {
    return fail(error, name, bytes_from_cstr(why));
}

static bool named_before(const struct bytes *args, size_t i) {
    for (size_t before = 0; before < i; before += 2) {
        if (bytes_equal_nocase(args[before], args[i])) {
            return true;
        }
    }
    return false;
}

/* All names before any value, as Redis: a wrong name is told before a wrong value. */
static enum status check_names(const struct bytes *args, size_t count, struct buf *error) {
    for (size_t i = 0; i < count; i += 2) {
        enum config_option_id id = option_find(args[i]);
        if (id == CONFIG_OPTIONS) {
            buf_append_cstr(error, "ERR Unknown option or number of arguments for CONFIG SET - '");
            buf_append(error, args[i].ptr, args[i].len);
            buf_append_char(error, '\'');
            return ST_SYNTAX;
        }
        if (config_table[id].flags & OPTION_FIXED) {
            return fail_text(error, args[i], "can't set immutable config");
        }
        if (config_table[id].flags & OPTION_GUARDED) {
            return fail_text(error, args[i], "can't set protected config");
        }
        if (named_before(args, i)) {
            return fail_text(error, args[i], "duplicate parameter");
        }
    }
    return ST_OK;
}

/* What one CONFIG SET is about to change. */
struct change {
    struct config staged;            /* new values before the exchange, old ones after */
    bool asked[CONFIG_OPTIONS];      /* has a staged value */
    struct bytes as[CONFIG_OPTIONS]; /* the name it was asked by */
    bool changed[CONFIG_OPTIONS];    /* and it differs from the live one */
};

static enum status stage(struct change *ch, const struct bytes *args, size_t count,
                         struct buf *error) {
    struct buf why = {0};
    enum status st = ST_OK;
    for (size_t i = 0; i < count && st == ST_OK; i += 2) {
        enum config_option_id id = option_find(args[i]);
        st = option_parse(&config_table[id], &ch->staged, &args[i + 1], 1, &why);
        if (st == ST_SYNTAX) {
            st = fail(error, args[i], buf_bytes(&why));
        }
        ch->asked[id] = st == ST_OK;
        ch->as[id] = args[i];
    }
    buf_deinit(&why);
    return st;
}

static bool differs(const struct option *o, const struct config *a, const struct config *b,
                    struct buf *scratch) {
    buf_clear(scratch);
    option_print(o, a, scratch);
    size_t middle = scratch->len;
    option_print(o, b, scratch);
    return scratch->failed || !bytes_equal(BYTES(scratch->ptr, middle),
                                           BYTES(scratch->ptr + middle, scratch->len - middle));
}

static void exchange(struct change *ch, struct config *c) {
    for (size_t id = 0; id < CONFIG_OPTIONS; id++) {
        if (ch->changed[id]) {
            option_swap(&config_table[id], c, &ch->staged);
        }
    }
}

static bool hook_runs(const struct change *ch, const struct config *c, size_t id) {
    if (!ch->changed[id] || c->hooks[id].apply == NULL) {
        return false;
    }
    for (size_t i = 0; i < id; i++) {
        if (ch->changed[i] && c->hooks[i].apply == c->hooks[id].apply &&
            c->hooks[i].ctx == c->hooks[id].ctx) {
            return false; /* ran already for an earlier option */
        }
    }
    return true;
}

/* Run the hooks; CONFIG_OPTIONS, or the option whose hook refused. */
static size_t apply_changes(const struct change *ch, const struct config *c, const char **why) {
    for (size_t id = 0; id < CONFIG_OPTIONS; id++) {
        if (hook_runs(ch, c, id) && !c->hooks[id].apply(c->hooks[id].ctx, c, why)) {
            return id;
        }
    }
    return CONFIG_OPTIONS;
}

static void reapply(const struct change *ch, const struct config *c, size_t end) {
    const char *ignored = NULL;
    for (size_t id = 0; id < end; id++) {
        if (hook_runs(ch, c, id)) {
            (void)c->hooks[id].apply(c->hooks[id].ctx, c, &ignored);
        }
    }
}

static enum status commit(struct change *ch, struct config *c, struct buf *error) {
    struct buf scratch = {0};
    for (size_t id = 0; id < CONFIG_OPTIONS; id++) {
        ch->changed[id] = ch->asked[id] && differs(&config_table[id], c, &ch->staged, &scratch);
    }
    buf_deinit(&scratch);
    exchange(ch, c);
    const char *why = "the server could not apply it";
    size_t refused = apply_changes(ch, c, &why);
    if (refused == CONFIG_OPTIONS) {
        return ST_OK;
    }
    (void)fail_text(error, ch->as[refused], why);
    exchange(ch, c);
    reapply(ch, c, refused);
    return ST_RANGE;
}

enum status config_set(struct config *c, const struct bytes *args, size_t count,
                       struct buf *error) {
    if (count % 2 != 0) {
        buf_append_cstr(error, "ERR syntax error");
        return ST_SYNTAX;
    }
    enum status st = check_names(args, count, error);
    if (st != ST_OK) {
        return st;
    }
    struct change *ch = calloc(1, sizeof(*ch));
    st = ch != NULL ? stage(ch, args, count, error) : ST_NOMEM;
    if (st == ST_OK) {
        st = commit(ch, c, error);
    }
    if (ch != NULL) {
        for (size_t id = 0; id < CONFIG_OPTIONS; id++) {
            option_clear(&config_table[id], &ch->staged);
        }
        free(ch);
    }
    if (st == ST_NOMEM) {
        buf_append_cstr(error, "ERR out of memory in CONFIG SET");
    }
    return st;
}
