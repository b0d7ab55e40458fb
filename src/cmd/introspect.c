/* SPDX-License-Identifier: BSD-3-Clause */
/* The COMMAND family: the table told to clients. Shapes are those of redis-server 7.2, in both
 * protocols; nothing here knows any command by name. Two deliberate differences: summaries, costs
 * and replacements are in our words, and there is no "history" and no "notes". */
#include "cmd/args.h"
#include "cmd/call.h"
#include "cmd/table.h"
#include "handlers_priv.h"

/* ---- pieces --------------------------------------------------------------------------------- */

/* The set of texts whose bit is 1, as simple strings with a prefix. */
static void reply_bits(struct reply *r, uint32_t bits, const char *(*text_of)(unsigned bit),
                       const char *prefix) {
    char text[32];
    reply_set(r, (size_t)__builtin_popcount(bits));
    for (unsigned bit = 0; bits >> bit != 0; bit++) {
        if (bits >> bit & 1) {
            size_t head = strlen(prefix), tail = strlen(text_of(bit));
            memcpy(text, prefix, head);
            memcpy(text + head, text_of(bit), tail + 1);
            reply_simple(r, text);
        }
    }
}

static void reply_pair_cstr(struct reply *r, const char *name, const char *value) {
    reply_bulk_cstr(r, name);
    reply_bulk_cstr(r, value);
}

static void reply_pair_integer(struct reply *r, const char *name, int64_t value) {
    reply_bulk_cstr(r, name);
    reply_integer(r, value);
}

static size_t key_spec_count(const struct command *row) {
    size_t n = 0;
    while (n < COMMAND_KEY_SPECS && row->keys[n].first > 0) {
        n++;
    }
    return n;
}

/* How keys follow from where the search begins: "lastkey" is relative to the beginning unless it
 * counts from the end; "keynumidx" and "firstkey" are relative to it as well. */
static void reply_find_keys(struct reply *r, const struct key_spec *spec) {
    reply_map(r, 2);
    reply_pair_cstr(r, "type", key_spec_is_counted(spec) ? "keynum" : "range");
    reply_bulk_cstr(r, "spec");
    reply_map(r, 3);
    if (key_spec_is_counted(spec)) {
        reply_pair_integer(r, "keynumidx", 0);
        reply_pair_integer(r, "firstkey", 1);
        reply_pair_integer(r, "keystep", spec->step);
    } else {
        reply_pair_integer(r, "lastkey", spec->last < 0 ? spec->last : spec->last - spec->first);
        reply_pair_integer(r, "keystep", spec->step);
        reply_pair_integer(r, "limit", 0);
    }
}

static void reply_unknown(struct reply *r) {
    reply_map(r, 2);
    reply_pair_cstr(r, "type", "unknown");
    reply_bulk_cstr(r, "spec");
    reply_map(r, 0);
}

/* "startfrom" -2: the search begins at the end, since options before may have the word as their
 * argument. */
static void reply_behind_word(struct reply *r) {
    reply_map(r, 2);
    reply_pair_cstr(r, "type", "keyword");
    reply_bulk_cstr(r, "spec");
    reply_map(r, 2);
    reply_pair_cstr(r, "keyword", "KEYS");
    reply_pair_integer(r, "startfrom", -2);
    reply_bulk_cstr(r, "find_keys");
    reply_map(r, 2);
    reply_pair_cstr(r, "type", "range");
    reply_bulk_cstr(r, "spec");
    reply_map(r, 3);
    reply_pair_integer(r, "lastkey", -1);
    reply_pair_integer(r, "keystep", 1);
    reply_pair_integer(r, "limit", 0);
}

/* A spec as two steps: where the search begins, and how keys follow from there. */
static void reply_key_spec(struct reply *r, const struct key_spec *spec) {
    reply_map(r, 3);
    reply_bulk_cstr(r, "flags");
    reply_bits(r, spec->flags, key_flag_text, "");
    reply_bulk_cstr(r, "begin_search");
    if (key_spec_is_unknown(spec)) {
        reply_unknown(r);
        reply_bulk_cstr(r, "find_keys");
        reply_unknown(r);
        return;
    }
    if (key_spec_is_behind_word(spec)) {
        reply_behind_word(r);
        return;
    }
    reply_map(r, 2);
    reply_pair_cstr(r, "type", "index");
    reply_bulk_cstr(r, "spec");
    reply_map(r, 1);
    reply_pair_integer(r, "index", key_spec_is_counted(spec) ? spec->first - 1 : spec->first);
    reply_bulk_cstr(r, "find_keys");
    reply_find_keys(r, spec);
}

static void reply_tips(struct reply *r, const struct command *row) {
    size_t n = 0;
    while (n < COMMAND_TIPS && row->tips[n] != NULL) {
        n++;
    }
    reply_set(r, n);
    for (size_t i = 0; i < n; i++) {
        reply_bulk_cstr(r, row->tips[i]);
    }
}

/* ---- COMMAND INFO --------------------------------------------------------------------------- */

/* The old description, first, last and step, knows no counted keys and none that are unknown. */
static void reply_key_range(struct reply *r, const struct command *row) {
    size_t plain = 0;
    while (plain < key_spec_count(row) && key_spec_is_plain(&row->keys[plain])) {
        plain++;
    }
    reply_integer(r, plain > 0 ? row->keys[0].first : 0);
    reply_integer(r, plain > 0 ? row->keys[plain - 1].last : 0);
    reply_integer(r, plain > 0 ? row->keys[0].step : 0);
}

static void reply_info(struct reply *r, const struct command *row) {
    size_t specs = key_spec_count(row);
    reply_array(r, 10);
    reply_bulk_cstr(r, row->name);
    reply_integer(r, row->arity);
    reply_bits(r, row->flags, command_flag_text, "");
    reply_key_range(r, row);
    reply_bits(r, row->acl, acl_category_text, "@");
    reply_tips(r, row);
    reply_set(r, specs);
    for (size_t i = 0; i < specs; i++) {
        reply_key_spec(r, &row->keys[i]);
    }
    reply_set(r, row->sub_count);
    for (size_t i = 0; i < row->sub_count; i++) {
        reply_info(r, table_at(row->sub_first + i)); /* one level: subcommands have none */
    }
}

/* Commands that are not subcommands. */
static size_t top_level_count(void) {
    size_t n = 0;
    for (size_t i = 0; i < table_count(); i++) {
        n += table_at(i)->container == NULL;
    }
    return n;
}

void command_command(struct call *call) {
    reply_array(&call->reply, top_level_count());
    for (size_t i = 0; i < table_count(); i++) {
        if (table_at(i)->container == NULL) {
            reply_info(&call->reply, table_at(i));
        }
    }
}

void command_info_command(struct call *call) {
    if (call->argc == 2) {
        command_command(call);
        return;
    }
    reply_array(&call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++) {
        const struct command *row = table_find_full(call->argv[i]);
        if (row != NULL) {
            reply_info(&call->reply, row);
        } else {
            reply_null(&call->reply);
        }
    }
}

void command_count_command(struct call *call) {
    reply_integer(&call->reply, (int64_t)top_level_count());
}

/* ---- COMMAND LIST --------------------------------------------------------------------------- */

struct filter {
    enum { FILTER_NONE, FILTER_MODULE, FILTER_CATEGORY, FILTER_PATTERN } kind;
    struct bytes pattern;
    uint32_t category;
};

static bool parse_filter(const struct call *call, struct filter *f) {
    *f = (struct filter){.kind = FILTER_NONE};
    if (call->argc == 2) {
        return true;
    }
    if (call->argc != 5 || !args_is(call, 2, "filterby")) {
        return false;
    }
    f->pattern = call->argv[4];
    if (args_is(call, 3, "module")) {
        f->kind = FILTER_MODULE; /* there are no modules: nothing matches */
    } else if (args_is(call, 3, "aclcat")) {
        f->kind = FILTER_CATEGORY;
        f->category = acl_category_find(f->pattern);
    } else if (args_is(call, 3, "pattern")) {
        f->kind = FILTER_PATTERN;
    } else {
        return false;
    }
    return true;
}

/* Without a filter the list has no subcommands, with one it has. */
static bool passes(const struct command *row, const struct filter *f) {
    switch (f->kind) {
    case FILTER_NONE:
        return row->container == NULL;
    case FILTER_CATEGORY:
        return (row->acl & f->category) != 0;
    case FILTER_PATTERN:
        return bytes_glob_match(f->pattern, bytes_from_cstr(row->name), true);
    case FILTER_MODULE:
        return false;
    }
    return false;
}

void command_list_command(struct call *call) {
    struct filter filter;
    if (!parse_filter(call, &filter)) {
        args_syntax_error(call);
        return;
    }
    size_t mark = reply_defer(&call->reply), n = 0;
    for (size_t i = 0; i < table_count(); i++) {
        if (passes(table_at(i), &filter)) {
            reply_bulk_cstr(&call->reply, table_at(i)->name);
            n++;
        }
    }
    reply_defer_array(&call->reply, mark, n);
}

/* ---- COMMAND DOCS --------------------------------------------------------------------------- */

static const char *const arg_type_texts[] = {
    [ARG_STRING] = "string",         [ARG_INTEGER] = "integer",
    [ARG_DOUBLE] = "double",         [ARG_KEY] = "key",
    [ARG_PATTERN] = "pattern",       [ARG_UNIX_TIME] = "unix-time",
    [ARG_PURE_TOKEN] = "pure-token", [ARG_ONEOF] = "oneof",
    [ARG_BLOCK] = "block",
};

static const char *arg_flag_text(unsigned bit) {
    static const char *const texts[] = {"optional", "multiple", "multiple_token"};
    return texts[bit];
}

static size_t args_count_of(const struct command_arg *args) {
    size_t n = 0;
    while (args[n].name != NULL) {
        n++;
    }
    return n;
}

static void reply_args(struct reply *r, const struct command_arg *args);

/* Only what is there; "display_text" on whatever the user types himself, as 7.2 has it. */
static void reply_arg(struct reply *r, const struct command_arg *a) {
    bool is_leaf = a->children == NULL;
    reply_map(r, 2 + (size_t)is_leaf + (a->type == ARG_KEY) + (a->token != NULL) +
                     (a->since != NULL) + (a->deprecated_since != NULL) + (a->flags != 0) +
                     (size_t)!is_leaf);
    reply_pair_cstr(r, "name", a->name);
    reply_pair_cstr(r, "type", arg_type_texts[a->type]);
    if (is_leaf) {
        reply_pair_cstr(r, "display_text", a->name);
    }
    if (a->type == ARG_KEY) {
        reply_pair_integer(r, "key_spec_index", a->key_spec);
    }
    if (a->token != NULL) {
        reply_pair_cstr(r, "token", a->token);
    }
    if (a->since != NULL) {
        reply_pair_cstr(r, "since", a->since);
    }
    if (a->deprecated_since != NULL) {
        reply_pair_cstr(r, "deprecated_since", a->deprecated_since);
    }
    if (a->flags != 0) {
        reply_bulk_cstr(r, "flags");
        reply_bits(r, a->flags, arg_flag_text, "");
    }
    if (!is_leaf) {
        reply_bulk_cstr(r, "arguments");
        reply_args(r, a->children);
    }
}

static void reply_args(struct reply *r, const struct command_arg *args) {
    reply_array(r, args_count_of(args));
    for (; args->name != NULL; args++) {
        reply_arg(r, args);
    }
}

/* "since" is Redis's: clients hold it against redis_version to know what a server understands. */
static void reply_docs(struct reply *r, const struct command *row) {
    bool deprecated = row->deprecated_since != NULL;
    reply_map(r, 4 + (size_t)(deprecated || row->syscmd) + 2 * (size_t)deprecated +
                     (row->args != NULL) + (row->sub_count > 0));
    reply_pair_cstr(r, "summary", row->summary);
    reply_pair_cstr(r, "since", row->redis_since != NULL ? row->redis_since : row->since);
    reply_pair_cstr(r, "group", command_group_text(row->group));
    reply_pair_cstr(r, "complexity", row->cost);
    if (deprecated || row->syscmd) {
        reply_bulk_cstr(r, "doc_flags");
        reply_set(r, (size_t)deprecated + (size_t)row->syscmd);
        if (deprecated) {
            reply_simple(r, "deprecated");
        }
        if (row->syscmd) {
            reply_simple(r, "syscmd");
        }
    }
    if (deprecated) {
        reply_pair_cstr(r, "deprecated_since", row->deprecated_since);
        reply_pair_cstr(r, "replaced_by", row->replaced_by);
    }
    if (row->args != NULL) {
        reply_bulk_cstr(r, "arguments");
        reply_args(r, row->args);
    }
    if (row->sub_count > 0) {
        reply_bulk_cstr(r, "subcommands");
        reply_map(r, row->sub_count);
        for (size_t i = 0; i < row->sub_count; i++) {
            reply_bulk_cstr(r, table_at(row->sub_first + i)->name);
            reply_docs(r, table_at(row->sub_first + i)); /* one level */
        }
    }
}

void command_docs_command(struct call *call) {
    size_t mark = reply_defer(&call->reply), n = 0;
    size_t limit = call->argc == 2 ? table_count() : call->argc - 2;
    for (size_t i = 0; i < limit; i++) {
        const struct command *row =
            call->argc == 2 ? table_at(i) : table_find_full(call->argv[i + 2]);
        if (row == NULL || (call->argc == 2 && row->container != NULL)) {
            continue; /* unknown names are left out */
        }
        reply_bulk_cstr(&call->reply, row->name);
        reply_docs(&call->reply, row);
        n++;
    }
    reply_defer_map(&call->reply, mark, n);
}

/* ---- COMMAND GETKEYS ------------------------------------------------------------------------ */

/* The row that a command line at argv would be dispatched to; NULL when none. */
static const struct command *resolve(const struct bytes *argv, size_t argc) {
    const struct command *row = table_find(argv[0]);
    if (row == NULL || !command_is_container(row) || (argc == 1 && row->handler != NULL)) {
        return row;
    }
    return argc > 1 ? table_find_sub(row, argv[1]) : NULL;
}

struct keys_reply {
    struct reply *reply;
    const struct bytes *argv;
    size_t count;
    bool with_flags;
};

static void on_key(void *ctx, size_t index, unsigned key_flags) {
    struct keys_reply *k = ctx;
    k->count++;
    if (k->with_flags) {
        reply_array(k->reply, 2);
    }
    reply_bulk(k->reply, k->argv[index]);
    if (k->with_flags) {
        reply_bits(k->reply, key_flags, key_flag_text, "");
    }
}

static void reply_keys_of_line(struct call *call, bool with_flags) {
    const struct bytes *argv = call->argv + 2;
    size_t argc = call->argc - 2;
    const struct command *row = resolve(argv, argc);
    if (row == NULL) {
        reply_error(&call->reply, "ERR Invalid command specified");
    } else if (row->keys[0].first == 0) {
        reply_error(&call->reply, "ERR The command has no key arguments");
    } else if (!command_arity_ok(row, argc)) {
        reply_error(&call->reply, "ERR Invalid number of arguments specified for command");
    } else {
        size_t mark = reply_defer(&call->reply);
        struct keys_reply k = {.reply = &call->reply, .argv = argv, .with_flags = with_flags};
        if (table_keys(row, argv, argc, on_key, &k)) {
            reply_defer_array(&call->reply, mark, k.count);
        } else {
            call->reply.out->len = mark;
            reply_error(&call->reply, "ERR Invalid arguments specified for command");
        }
    }
}

void command_getkeys_command(struct call *call) {
    reply_keys_of_line(call, false);
}

void command_getkeysandflags_command(struct call *call) {
    reply_keys_of_line(call, true);
}

/* ---- COMMAND HELP --------------------------------------------------------------------------- */

void command_help_command(struct call *call) {
    static const char *const lines[] = {
        "(no subcommand)",
        "    Describe every command, as INFO does.",
        "COUNT",
        "    Tell how many commands there are.",
        "DOCS [<command-name> ...]",
        "    Return the documentation of the commands named, or of all.",
        "GETKEYS <full-command>",
        "    Find the keys in a command line.",
        "GETKEYSANDFLAGS <full-command>",
        "    Find the keys in a command line, and what is done to each.",
        "INFO [<command-name> ...]",
        "    Describe the commands named, or all.",
        "LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
        "    List the names of all commands, or of those that pass the filter.",
        NULL,
    };
    args_help(call, lines);
}
