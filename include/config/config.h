/* SPDX-License-Identifier: BSD-3-Clause */
/* config: the options. A plain struct with one typed field an option (config->port), filled from
 * defaults, a file, the command line and CONFIG SET. The rows are in config/options.def; nothing
 * about an option is stated elsewhere.
 *
 *   kind          C type                  text form
 *   BOOL          bool                    yes, no
 *   INT           int                     decimal
 *   COUNT         size_t                  decimal
 *   SIZE          size_t                  bytes, units allowed: 1k = 1000, 1kb = 1024, m mb g gb
 *   OCTAL         unsigned                octal digits
 *   STRING        char *                  any bytes but NUL; never a NULL pointer
 *   ENUM          int                     one of the option's words
 *   LIST          struct config_list      words between blanks
 *   OUTPUT_LIMIT  struct config_output_limit   "normal HARD SOFT SECONDS"
 *   SAVE_POINTS   struct config_save_points   "SECONDS CHANGES ...": of several settings in a file
 *                 and on the command line all are kept, "" drops those before it
 *
 * The struct owns its strings. A string or list may be replaced by config_set: read it anew each
 * time or copy it. Single-threaded. Names are compared without case. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

struct config_list {
    char **items; /* count strings and a NULL; NULL when empty */
    size_t count;
};

/* Limits on what a client has not read yet. */
struct config_output_limit {
    size_t hard_bytes; /* 0: none */
    size_t soft_bytes; /* 0: none */
    int soft_seconds;
};

/* Save when so much has changed and so long ago was the last save. */
#define CONFIG_SAVE_POINTS_MAX 16
struct config_save_points {
    size_t count;
    struct config_save_point {
        int64_t seconds, changes;
    } at[CONFIG_SAVE_POINTS_MAX];
};

enum config_debug { CONFIG_DEBUG_NO, CONFIG_DEBUG_YES, CONFIG_DEBUG_LOCAL };
enum config_index { CONFIG_INDEX_NO, CONFIG_INDEX_THP, CONFIG_INDEX_HUGETLB };
enum config_policy { CONFIG_POLICY_NOEVICTION };
/* loglevel is an enum log_level of base/log.h. */

/* OPTION_port, OPTION_bind ...: one for each row, in table order. */
enum config_option_id {
#define OPTION(kind, field, ...) OPTION_##field,
#include "config/options.def"
#undef OPTION
    CONFIG_OPTIONS
};

#define CONFIG_TYPE_BOOL bool
#define CONFIG_TYPE_INT int
#define CONFIG_TYPE_COUNT size_t
#define CONFIG_TYPE_SIZE size_t
#define CONFIG_TYPE_OCTAL unsigned
#define CONFIG_TYPE_STRING char *
#define CONFIG_TYPE_ENUM int
#define CONFIG_TYPE_LIST struct config_list
#define CONFIG_TYPE_OUTPUT_LIMIT struct config_output_limit
#define CONFIG_TYPE_SAVE_POINTS struct config_save_points

struct config;

/* Make a changed option true for the running server.
 *
 *   config  already holds the new value
 *   why     out, what the user is told when it cannot be; a literal, or text that lives until the
 *           next call
 *
 * False refuses: every option of that CONFIG SET goes back to what it was, and the hooks that had
 * run are called again with the old values (their answer is not asked then). */
typedef bool config_apply(void *ctx, const struct config *config, const char **why);

struct config {
#define OPTION(kind, field, ...) CONFIG_TYPE_##kind field;
#include "config/options.def"
#undef OPTION
    char *config_file; /* absolute path of the file named on the command line, "" for none */
    struct config_hook {
        config_apply *apply;
        void *ctx;
    } hooks[CONFIG_OPTIONS];
};

/* All defaults. ST_NOMEM leaves nothing to free. */
MUST_CHECK enum status config_init(struct config *c);
void config_deinit(struct config *c);

/* What the command line asked the program to do. */
enum config_action {
    CONFIG_RUN,
    CONFIG_SHOW_VERSION,
    CONFIG_SHOW_HELP,
    CONFIG_CHECK_RDB,
    CONFIG_CHECK_HUGEPAGES
};

/* Read the command line: [FILE] [--name value ...], later settings win. A token that starts with
 * "--" opens an option, the tokens up to the next such one are its values; an option of kind BOOL
 * without a value means yes, save without one means "". --version -v --help -h, --check-rdb FILE (argv[2])
 * and --check-hugepages [SIZE] (argv[2]) [more of the command line] are told in *action.
 * dir and load are made absolute at the end; the process does not change directory.
 *
 * ST_SYNTAX or ST_IO: *error says which file and line or argument, which option and why, without a
 * newline; the config is then of no use but to config_deinit. ST_NOMEM. */
MUST_CHECK enum status config_load(struct config *c, int argc, char *const *argv,
                                   enum config_action *action, struct buf *error);

/* One file in Redis's form: a line an option, # comments, "double quotes with \n \xHH escapes",
 * 'single quotes', include PATH-OR-GLOB. Errors as config_load. */
MUST_CHECK enum status config_load_file(struct config *c, const char *path, struct buf *error);

/* Call apply when CONFIG SET changes the option; the same (apply, ctx) on several options is called
 * once a CONFIG SET. Settings that go before the server runs do not call it. */
void config_on_change(struct config *c, enum config_option_id id, config_apply *apply, void *ctx);

/* CONFIG SET name value [name value ...], all or nothing.
 *
 * ST_OK, or *error holds the whole reply text ("ERR CONFIG SET failed ..."), nothing has changed,
 * and the status is ST_SYNTAX (also an odd count), ST_RANGE (a hook refused) or ST_NOMEM. */
MUST_CHECK enum status config_set(struct config *c, const struct bytes *args, size_t count,
                                  struct buf *error);

/* CONFIG GET: emit name and value of each option that one of the glob patterns matches, each name
 * once, in table order; a pattern without wildcards is emitted as it was written. emit NULL only
 * counts. Returns the number of pairs. The views are good during emit. */
typedef void config_emit(void *ctx, struct bytes name, struct bytes value);
size_t config_get(const struct config *c, const struct bytes *patterns, size_t count,
                  config_emit *emit, void *ctx);

/* The value of one option as CONFIG GET prints it. */
void config_print(const struct config *c, enum config_option_id id, struct buf *out);

const char *config_option_name(enum config_option_id id);

/* --help, and docs/options.md. */
void config_write_help(struct buf *out);
void config_write_markdown(struct buf *out);

#endif
