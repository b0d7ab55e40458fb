/* SPDX-License-Identifier: BSD-3-Clause */
/* table: what is known of every command, one row each, and everything that follows from the rows.
 *
 *   row         one command or subcommand: src/cmd/commands.def, sorted by group, then name
 *   container   a row whose subcommands are rows of their own, named "container|sub"
 * ("client|kill") id          0 .. table_count() - 1, the row's place; counters kept beside the
 * table are indexed by it key spec    where keys stand among the arguments and what is done to them
 *   plan        which arguments lead where in a collection, so that a batch can prefetch it
 *
 * Dispatch, arity checks, the COMMAND family, docs/commands.md and ACL categories come from here;
 * nothing about a command is stated elsewhere. Rows never change after table_setup, so pointers to
 * them are good for ever.
 *
 * Lookup is one open-addressed table over (container, folded name): a name is two overlapping
 * 8-byte words and its length, lower-cased eight bytes at a time, so a hit costs one multiply and
 * one compare of words (see table.c for the measured time). */
#ifndef CMD_TABLE_H
#define CMD_TABLE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "resp/reply.h"

struct call;

/* X(name, text in COMMAND DOCS, ACL category of its commands) */
#define COMMAND_GROUP_MAP(X)                                                                       \
    X(GROUP_BITMAP, "bitmap", ACL_BITMAP)                                                          \
    X(GROUP_CONNECTION, "connection", ACL_CONNECTION)                                              \
    X(GROUP_GENERIC, "generic", ACL_KEYSPACE)                                                      \
    X(GROUP_HASH, "hash", ACL_HASH)                                                                \
    X(GROUP_LIST, "list", ACL_LIST)                                                                \
    X(GROUP_SERVER, "server", 0)                                                                   \
    X(GROUP_SET, "set", ACL_SET)                                                                   \
    X(GROUP_SORTED_SET, "sorted-set", ACL_SORTEDSET)                                               \
    X(GROUP_STRING, "string", ACL_STRING)

enum command_group {
#define GROUP_ENUM(name, text, acl) name,
    COMMAND_GROUP_MAP(GROUP_ENUM)
#undef GROUP_ENUM
};

/* X(name, bit, text), in the order COMMAND INFO lists them; those without a user today are absent.
 * no_async_loading: not by a replica that serves old data while it loads new ones. */
#define COMMAND_FLAG_MAP(X)                                                                        \
    X(CMD_WRITE, 0, "write")       /* may change data */                                           \
    X(CMD_READONLY, 1, "readonly") /* reads data, never changes it */                              \
    X(CMD_DENYOOM, 2, "denyoom")   /* may need more memory: refused over maxmemory */              \
    X(CMD_ADMIN, 3, "admin")       /* for operators */                                             \
    X(CMD_NOSCRIPT, 4, "noscript") /* not from scripts */                                          \
    X(CMD_BLOCKING, 5, "blocking") /* may let the client wait */                                   \
    X(CMD_LOADING, 6, "loading")   /* answered while a snapshot is being loaded */                 \
    X(CMD_STALE, 7, "stale")       /* answered by a replica out of touch */                        \
    X(CMD_FAST, 8, "fast")         /* constant or logarithmic time */                              \
    X(CMD_NO_AUTH, 9, "no_auth")   /* answered before AUTH */                                      \
    X(CMD_NO_ASYNC_LOADING, 10, "no_async_loading") /* not while a replica loads aside */          \
    X(CMD_NO_MULTI, 11, "no_multi")                 /* not inside MULTI */                         \
    X(CMD_MOVABLEKEYS, 12, "movablekeys") /* the line itself says how many keys it has; derived */ \
    X(CMD_ALLOW_BUSY, 13, "allow_busy")   /* answered while a script overruns */

enum command_flag {
#define FLAG_ENUM(name, bit, text) name = 1 << (bit),
    COMMAND_FLAG_MAP(FLAG_ENUM)
#undef FLAG_ENUM
};

/* X(name, bit, text): every category Redis knows, so that FILTERBY ACLCAT tells an empty one from a
 * wrong one. */
#define ACL_CATEGORY_MAP(X)                                                                        \
    X(ACL_KEYSPACE, 0, "keyspace")                                                                 \
    X(ACL_READ, 1, "read")                                                                         \
    X(ACL_WRITE, 2, "write")                                                                       \
    X(ACL_SET, 3, "set")                                                                           \
    X(ACL_SORTEDSET, 4, "sortedset")                                                               \
    X(ACL_LIST, 5, "list")                                                                         \
    X(ACL_HASH, 6, "hash")                                                                         \
    X(ACL_STRING, 7, "string")                                                                     \
    X(ACL_BITMAP, 8, "bitmap")                                                                     \
    X(ACL_HYPERLOGLOG, 9, "hyperloglog")                                                           \
    X(ACL_GEO, 10, "geo")                                                                          \
    X(ACL_STREAM, 11, "stream")                                                                    \
    X(ACL_PUBSUB, 12, "pubsub")                                                                    \
    X(ACL_ADMIN, 13, "admin")                                                                      \
    X(ACL_FAST, 14, "fast")                                                                        \
    X(ACL_SLOW, 15, "slow")                                                                        \
    X(ACL_BLOCKING, 16, "blocking")                                                                \
    X(ACL_DANGEROUS, 17, "dangerous")                                                              \
    X(ACL_CONNECTION, 18, "connection")                                                            \
    X(ACL_TRANSACTION, 19, "transaction")                                                          \
    X(ACL_SCRIPTING, 20, "scripting")

enum acl_category {
#define ACL_ENUM(name, bit, text) name = 1 << (bit),
    ACL_CATEGORY_MAP(ACL_ENUM)
#undef ACL_ENUM
};

/* X(name, bit, text): what is done to a key, in the order replies list them. One of the first four,
 * and what it means for the value's data. */
#define KEY_FLAG_MAP(X)                                                                            \
    X(KEY_RO, 0, "RO")                                                                             \
    X(KEY_RW, 1, "RW")                                                                             \
    X(KEY_OW, 2, "OW")                                                                             \
    X(KEY_RM, 3, "RM")                                                                             \
    X(KEY_ACCESS, 4, "access")                                                                     \
    X(KEY_UPDATE, 5, "update")                                                                     \
    X(KEY_INSERT, 6, "insert")                                                                     \
    X(KEY_DELETE, 7, "delete")                                                                     \
    X(KEY_VARIABLE, 8, "variable_flags") /* what a call does is for command.call_flags to tell */  \
    X(KEY_INCOMPLETE, 9, "incomplete")   /* the spec may miss some, or take others for keys */

enum key_flag {
#define KEY_ENUM(name, bit, text) name = 1 << (bit),
    KEY_FLAG_MAP(KEY_ENUM)
#undef KEY_ENUM
};

/* Keys stand at arguments first, first + step, ... up to last; last < 0 counts from the end (-1 the
 * last argument). first 0: no spec. last KEYS_COUNTED: how many there are stands in the line itself,
 * right before the first ("ZUNION 2 a b"). last KEYS_UNKNOWN: the spec cannot say; one of them may
 * be found by command.call_key. last KEYS_BEHIND_WORD: all arguments behind the word KEYS, which
 * stands at `first` or later ("MIGRATE host port '' 0 1000 KEYS a b"); command.call_range finds the
 * keys of a line of such a command. */
struct key_spec {
    int8_t first, last, step;
    uint16_t flags; /* enum key_flag */
};

#define KEYS_COUNTED INT8_MIN
#define KEYS_UNKNOWN (INT8_MIN + 1)
#define KEYS_BEHIND_WORD (INT8_MIN + 2)

static inline bool key_spec_is_counted(const struct key_spec *spec) {
    return spec->last == KEYS_COUNTED;
}

static inline bool key_spec_is_unknown(const struct key_spec *spec) {
    return spec->last == KEYS_UNKNOWN;
}

static inline bool key_spec_is_behind_word(const struct key_spec *spec) {
    return spec->last == KEYS_BEHIND_WORD;
}

/* Where the keys stand follows from the row alone. */
static inline bool key_spec_is_plain(const struct key_spec *spec) {
    return !key_spec_is_counted(spec) && !key_spec_is_unknown(spec) &&
           !key_spec_is_behind_word(spec);
}

/* What the command does with the value at keys[0], as far as its words tell: the argument that is a
 * member or field, or the score where a range begins; 0: none, below 0: counted from the end, -1 the
 * last. One of several members: handlers fetch them in groups. Data for prefetching (types/ahead.h),
 * never for execution. */
struct command_plan {
    int8_t member, score;
    bool key_only; /* the value itself is not looked at */
};

enum arg_type {
    ARG_STRING,
    ARG_INTEGER,
    ARG_DOUBLE,
    ARG_KEY,
    ARG_PATTERN,
    ARG_UNIX_TIME,
    ARG_PURE_TOKEN, /* the token alone */
    ARG_ONEOF,      /* one of the children */
    ARG_BLOCK,      /* all children in order */
};

enum arg_flag { ARG_OPTIONAL = 1, ARG_MULTIPLE = 2, ARG_MULTIPLE_TOKEN = 4 };

/* One argument, for COMMAND DOCS and the hints of redis-cli. Arrays end with a row whose name is
 * NULL. */
struct command_arg {
    const char *name;
    enum arg_type type;
    uint8_t flags;     /* enum arg_flag */
    uint8_t key_spec;  /* ARG_KEY: index of its spec */
    const char *token; /* word before the value; NULL when none */
    const char *since; /* Redis's version, NULL when the command's own */
    const char *deprecated_since;
    const struct command_arg *children;
};

enum { COMMAND_KEY_SPECS = 3, COMMAND_TIPS = 3 };

struct command {
    const char *name; /* lower case; subcommands "container|sub" */
    enum command_group group;
    int arity; /* words, name included (container and subcommand are two); negative: at least that
                  many */
    uint32_t flags; /* enum command_flag */
    uint32_t acl;   /* extra enum acl_category bits; all of them after table_setup */
    struct key_spec keys[COMMAND_KEY_SPECS];
    /* enum key_flag bits of this very line, where a spec has KEY_VARIABLE. */
    unsigned (*call_flags)(const struct bytes *argv, size_t argc);
    /* Where a key of the last spec stands, KEYS_UNKNOWN, in this very line; 0 when it has none. */
    size_t (*call_key)(const struct bytes *argv, size_t argc);
    /* The keys of this very line, all behind each other, in place of what the specs say; their
     * flags are those of the first. False: it has none to tell. */
    bool (*call_range)(const struct bytes *argv, size_t argc, size_t *first, size_t *count);
    struct command_plan plan;
    void (*handler)(
        struct call *call); /* NULL for a container that is nothing without a subcommand */
    const char *since;      /* our version */
    const char *
        redis_since; /* version of Redis with the same command: what clients compare against; NULL: it has none */
    const char *cost;               /* complexity, one sentence at most */
    const char *summary;            /* one sentence */
    const char *tips[COMMAND_TIPS]; /* for proxies and clients, NULL behind the last */
    const char *deprecated_since;   /* Redis's version; NULL when not deprecated */
    const char *replaced_by;
    bool syscmd;           /* COMMAND DOCS: for internal use */
    bool heard_when_muted; /* answered, errors aside, though the client's replies are off */
    const struct command_arg *args; /* NULL when none */

    /* Derived by table_setup. */
    uint16_t id;
    uint16_t sub_first, sub_count;   /* ids of a container's subcommands; 0, 0 when none */
    const struct command *container; /* of a subcommand, else NULL */
};

/* Build the lookup. Call once, before any other function here; again is harmless. */
void table_setup(void);

size_t table_count(void);
const struct command *table_at(size_t id);

/* Row of a name in any case, subcommands excluded; NULL when there is none. O(1). */
const struct command *table_find(struct bytes name);

/* Subcommand of a container by its own word ("kill"), any case; NULL when there is none. O(1). */
const struct command *table_find_sub(const struct command *container, struct bytes sub);

/* Row by its full name: "get", "client|kill"; NULL when there is none. */
const struct command *table_find_full(struct bytes name);

static inline bool command_is_container(const struct command *row) {
    return row->sub_count > 0;
}

static inline bool command_arity_ok(const struct command *row, size_t argc) {
    return row->arity >= 0 ? argc == (size_t)row->arity : argc >= (size_t)-row->arity;
}

/* Call found(ctx, argument index, enum key_flag bits of this very call) for each key; argc is taken
 * to satisfy the arity. False, and found not called at all, when the line counts keys that it does
 * not have. O(keys). */
bool table_keys(const struct command *row, const struct bytes *argv, size_t argc,
                void (*found)(void *ctx, size_t index, unsigned key_flags), void *ctx);

/* --- errors of dispatch, texts as Redis 7.2's
 * --------------------------------------------------------------------- */

/* "ERR unknown command 'foo', with args beginning with: 'a' 'b' ", name and list cut at 128 bytes
 * each */
void table_reply_unknown(struct reply *r, const struct bytes *argv, size_t argc);

/* "ERR unknown subcommand 'x'. Try CLIENT HELP." */
void table_reply_unknown_sub(struct reply *r, const struct command *container, struct bytes sub);

/* "ERR wrong number of arguments for 'client|kill' command" */
void table_reply_wrong_arity(struct reply *r, const struct command *row);

/* --- texts
 * --------------------------------------------------------------------------------------------------------
 */

const char *command_group_text(enum command_group group);

/* Text of the i-th flag / category / key flag, bit i; NULL behind the last. */
const char *command_flag_text(unsigned bit);
const char *acl_category_text(unsigned bit);
const char *key_flag_text(unsigned bit);

/* enum acl_category bit of a name in any case, 0 when unknown. */
uint32_t acl_category_find(struct bytes name);

/* docs/commands.md: the whole page. */
void commands_write_markdown(struct buf *out);

#endif
