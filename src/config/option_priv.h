/* SPDX-License-Identifier: BSD-3-Clause */
/* A row of options.def at run time, and the operations on the value it names. A value is a field
 * of some struct config, found by its offset: the live one, or a staged one of CONFIG SET. */
#ifndef CONFIG_OPTION_PRIV_H
#define CONFIG_OPTION_PRIV_H

#include "config/config.h"

enum option_kind {
    KIND_BOOL,
    KIND_INT,
    KIND_COUNT,
    KIND_SIZE,
    KIND_OCTAL,
    KIND_STRING,
    KIND_ENUM,
    KIND_LIST,
    KIND_OUTPUT_LIMIT,
    KIND_SAVE_POINTS,
    OPTION_KINDS
};

enum option_flag {
    OPTION_FIXED = 1 << 0,   /* CONFIG SET: "can't set immutable config" */
    OPTION_GUARDED = 1 << 1, /* CONFIG SET: "can't set protected config" */
};

/* A further rule on a value of the right form: NULL when it is good, else what is wrong. May bring
 * the value into reach. */
typedef const char *option_check(struct config *c);

struct option {
    const char *name;
    const char *alias; /* or NULL */
    const char *default_text;
    const char *unit;
    const char *help;
    const char *const *words; /* ENUM: NULL-terminated, the value is the position */
    option_check *check;      /* or NULL */
    int64_t min, max;
    size_t offset, size; /* of the field in struct config */
    enum option_kind kind;
    unsigned flags;
};

extern const struct option config_table[CONFIG_OPTIONS];

extern const char *const config_debug_words[];
extern const char *const config_index_words[];
extern const char *const config_policy_words[];
extern const char *const config_loglevel_words[];

option_check check_bind, check_power_of_two, check_huge_page_size, check_hz, check_appendonly,
    check_dbfilename, check_percentiles;

/* What options mean together, once all are read: NULL when it is good, else what is wrong. */
const char *check_combination(const struct config *c);

/* By name or alias, any case; CONFIG_OPTIONS when there is none. */
enum config_option_id option_find(struct bytes name);

/* Whether several words may follow the name. */
bool option_takes_words(const struct option *o);

/* Set the field of c from words (what it held is freed). ST_OK; ST_SYNTAX with *why told and the
 * field as before; ST_NOMEM likewise without *why. why is appended to. */
MUST_CHECK enum status option_parse(const struct option *o, struct config *c,
                                    const struct bytes *words, size_t count, struct buf *why);

void option_print(const struct option *o, const struct config *c, struct buf *out);

/* Free what the field owns and zero it. */
void option_clear(const struct option *o, struct config *c);

/* Exchange the field between two configs. */
void option_swap(const struct option *o, struct config *a, struct config *b);

/* "yes or no", "0 to 65535", "debug, verbose, ..." for --help and the page. */
void option_write_domain(const struct option *o, struct buf *out);

#endif
