/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/table.h"

#include <ctype.h>
#include <stdlib.h>

#include "cmd/call.h"
#include "handlers_priv.h"

/* ---- what key specs cannot say -------------------------------------------------------------- */

/* SET writes blindly unless its option GET asks for the old value. */
static unsigned flags_of_set(const struct bytes *argv, size_t argc) {
    for (size_t i = 3; i < argc; i++) {
        if (bytes_is(argv[i], "get")) {
            return KEY_RW | KEY_ACCESS | KEY_UPDATE;
        }
    }
    return KEY_OW | KEY_UPDATE;
}

/* BITFIELD only reads when all it has is GET; a line that is no such is taken to write. */
static unsigned flags_of_bitfield(const struct bytes *argv, size_t argc) {
    for (size_t i = 2; i < argc;) {
        if (bytes_is(argv[i], "get") && i + 2 < argc) {
            i += 3;
        } else if (bytes_is(argv[i], "overflow") && i + 1 < argc) {
            i += 2;
        } else {
            return KEY_RW | KEY_ACCESS | KEY_UPDATE;
        }
    }
    return KEY_RO | KEY_ACCESS;
}

/* The key behind the last STORE of SORT that is no other option's argument. */
static size_t key_of_sort(const struct bytes *argv, size_t argc) {
    size_t key = 0;
    for (size_t i = 2; i < argc; i++) {
        if (bytes_is(argv[i], "limit")) {
            i += 2;
        } else if (bytes_is(argv[i], "get") || bytes_is(argv[i], "by")) {
            i++;
        } else if (bytes_is(argv[i], "store") && i + 1 < argc) {
            key = ++i;
        }
    }
    return key;
}

/* The key at 3, or those behind KEYS when that is empty. */
static bool range_of_migrate(const struct bytes *argv, size_t argc, size_t *first, size_t *count) {
    *first = 3;
    *count = 1;
    for (size_t i = 6; i < argc; i++) {
        if (bytes_is(argv[i], "keys") && i + 1 < argc) {
            *first = i + 1;
            *count = argc - *first;
            return argv[3].len == 0;
        }
        i += bytes_is(argv[i], "auth") ? 1 : bytes_is(argv[i], "auth2") ? 2 : 0;
    }
    return true;
}

/* ---- rows ----------------------------------------------------------------------------------- */

#include "commands_args.def"

/* Written by table_setup alone. */
static struct command rows[] = {
#define COMMAND(handler_, ...) {.handler = handler_, __VA_ARGS__},
#define CONTAINER(...) {.handler = NULL, __VA_ARGS__},
#include "commands.def"
#undef CONTAINER
#undef COMMAND
};

enum {
    ROWS = ARRAY_LEN(rows),
    LOOKUP_CAP =
        512, /* a power of two; a quarter full, so nearly every name is in its first slot */
    NO_CONTAINER = 0,  /* row 0 is no container */
    ERROR_PIECE = 128, /* client bytes quoted in an error, as Redis cuts them */
};

static_assert(ROWS * 2 <= LOOKUP_CAP, "the lookup wants to be at most half full");

/* ---- lookup --------------------------------------------------------------------------------- */

/* A name as two words that overlap below 16 bytes:
 *
 *     "hincrbyfloat" (12)     lo = hincrbyf, hi = rbyfloat
 *     "get" (3)               lo = g, e, t put together; hi = 0
 *
 * (lo, hi, len) is the name itself up to 16 bytes; past that the middle is compared as well.
 * Folding to lower case is eight bytes at a time and exact: bytes that are no letters stay as they
 * are. Measured over all names in table order, strlen of the name included: 6.5 ns a lookup
 * (unit test lookup_is_fast, -O2, gcc 12, x86-64). */
struct folded {
    uint64_t lo, hi;
};

struct slot {
    uint64_t lo, hi;
    const struct command *row; /* NULL: empty */
    uint16_t container;        /* id, or NO_CONTAINER */
    uint16_t len;              /* of the name, of the subcommand's own word below a container */
};

static struct slot lookup[LOOKUP_CAP];
static bool is_ready;

static uint64_t fold8(uint64_t w) {
    const uint64_t ones = 0x0101010101010101;
    uint64_t low7 = w & (0x7f * ones);
    uint64_t above_z = low7 + (0x7f - 'Z') * ones;
    uint64_t from_a = low7 + (0x80 - 'A') * ones;
    uint64_t upper = (from_a ^ above_z) & ~w & (0x80 * ones);
    return w | upper >> 2; /* 0x80 >> 2 is the case bit */
}

static uint64_t load8(const char *p) {
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static uint32_t load4(const char *p) {
    uint32_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static struct folded fold(struct bytes name) {
    const char *p = name.ptr;
    size_t n = name.len;
    struct folded f = {0, 0};
    if (n >= 8) {
        f.lo = load8(p);
        f.hi = fold8(load8(p + n - 8));
    } else if (n >= 4) {
        f.lo = (uint64_t)load4(p) << 32 | load4(p + n - 4);
    } else if (n > 0) {
        f.lo = (uint64_t)(uint8_t)p[0] << 16 | (uint64_t)(uint8_t)p[n / 2] << 8 | (uint8_t)p[n - 1];
    }
    f.lo = fold8(f.lo);
    return f;
}

static size_t slot_of(struct folded f, size_t len, unsigned container) {
    uint64_t mixed = (f.lo ^ (f.hi << 7 | f.hi >> 57) ^ (uint64_t)container << 48 ^ len) *
                     0x9e3779b97f4a7c15; /* 2^64 / golden ratio */
    return (mixed >> 40) & (LOOKUP_CAP - 1);
}

/* The word a row is found by: "kill" of "client|kill". */
static struct bytes own_word(const struct command *row) {
    const char *bar = strchr(row->name, '|');
    return bytes_from_cstr(bar != NULL ? bar + 1 : row->name);
}

static const struct command *find(struct bytes name, unsigned container) {
    struct folded f = fold(name);
    for (size_t i = slot_of(f, name.len, container);; i = (i + 1) & (LOOKUP_CAP - 1)) {
        const struct slot *s = &lookup[i];
        if (LIKELY(s->lo == f.lo && s->hi == f.hi && s->len == name.len &&
                   s->container == container && s->row != NULL)) {
            if (LIKELY(name.len <= 16) || bytes_equal_nocase(own_word(s->row), name)) {
                return s->row;
            }
        } else if (s->row == NULL) {
            return NULL;
        }
    }
}

static void lookup_insert(const struct command *row, struct bytes word, unsigned container) {
    struct folded f = fold(word);
    size_t i = slot_of(f, word.len, container);
    while (lookup[i].row != NULL) {
        i = (i + 1) & (LOOKUP_CAP - 1);
    }
    lookup[i] = (struct slot){.lo = f.lo,
                              .hi = f.hi,
                              .row = row,
                              .container = (uint16_t)container,
                              .len = (uint16_t)word.len};
}

/* ---- what follows from a row ---------------------------------------------------------------- */

static const uint32_t group_acl[] = {
#define GROUP_ACL(name, text, acl) [name] = (acl),
    COMMAND_GROUP_MAP(GROUP_ACL)
#undef GROUP_ACL
};

/* The group's category, those that flags imply, and the row's own extras. A bare container does
 * nothing by itself and is of no group; SORT names the types it is for and is not of its group's. */
static uint32_t derive_acl(const struct command *row) {
    uint32_t acl = row->acl;
    if (row->handler != NULL && !(acl & (ACL_LIST | ACL_SET | ACL_SORTEDSET))) {
        acl |= group_acl[row->group];
    }
    if (row->flags & CMD_WRITE) {
        acl |= ACL_WRITE;
    }
    if (row->flags & CMD_READONLY) {
        acl |= ACL_READ;
    }
    if (row->flags & CMD_ADMIN) {
        acl |= ACL_ADMIN | ACL_DANGEROUS;
    }
    if (row->flags & CMD_BLOCKING) {
        acl |= ACL_BLOCKING;
    }
    return acl | (row->flags & CMD_FAST ? ACL_FAST : ACL_SLOW);
}

/* Where keys stand can be told from the row alone, or it takes the line. */
static uint32_t derive_flags(const struct command *row) {
    uint32_t flags = row->flags;
    for (size_t k = 0; k < COMMAND_KEY_SPECS; k++) {
        const struct key_spec *spec = &row->keys[k];
        flags |= spec->first > 0 && !key_spec_is_plain(spec) ? CMD_MOVABLEKEYS : 0;
    }
    return flags;
}

/* Rows are sorted, so a container stands right before its subcommands. */
static void adopt(struct command *row, struct command *container) {
    row->container = container;
    if (container->sub_count == 0) {
        container->sub_first = row->id;
    }
    container->sub_count++;
}

void table_setup(void) {
    if (is_ready) {
        return;
    }
    struct command *container = NULL;
    for (size_t i = 0; i < ROWS; i++) {
        struct command *row = &rows[i];
        row->id = (uint16_t)i;
        row->flags = derive_flags(row);
        row->acl = derive_acl(row);
        if (strchr(row->name, '|') == NULL) {
            container = row;
            lookup_insert(row, own_word(row), NO_CONTAINER);
        } else {
            assert(container != NULL && container->id != NO_CONTAINER);
            adopt(row, container);
            lookup_insert(row, own_word(row), container->id);
        }
    }
    is_ready = true;
}

size_t table_count(void) {
    return ROWS;
}

const struct command *table_at(size_t id) {
    assert(id < ROWS);
    return &rows[id];
}

const struct command *table_find(struct bytes name) {
    return find(name, NO_CONTAINER);
}

const struct command *table_find_sub(const struct command *container, struct bytes sub) {
    return command_is_container(container) ? find(sub, container->id) : NULL;
}

const struct command *table_find_full(struct bytes name) {
    const char *bar = name.len > 0 ? memchr(name.ptr, '|', name.len) : NULL;
    if (bar == NULL) {
        return table_find(name);
    }
    size_t head_len = (size_t)(bar - name.ptr);
    const struct command *container = table_find(BYTES(name.ptr, head_len));
    return container != NULL ? table_find_sub(container, BYTES(bar + 1, name.len - head_len - 1))
                             : NULL;
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* The last key's place; -1 when the line counts more keys than it has arguments, or none. */
static long last_key(const struct key_spec *spec, const struct bytes *argv, size_t argc) {
    if (key_spec_is_unknown(spec) || key_spec_is_behind_word(spec)) {
        return -1;
    }
    if (!key_spec_is_counted(spec)) {
        return spec->last >= 0 ? spec->last : (long)argc + spec->last;
    }
    char text[32];
    struct bytes number = argv[spec->first - 1];
    size_t len = number.len < sizeof text ? number.len : sizeof text - 1;
    memcpy(text, number.len > 0 ? number.ptr : "", len);
    text[len] = '\0';
    long count = strtol(text, NULL, 10); /* "2x" is 2 here, as Redis has it */
    return count >= 1 && count <= (long)argc - spec->first ? spec->first + count - 1 : -1;
}

bool table_keys(const struct command *row, const struct bytes *argv, size_t argc,
                void (*found)(void *ctx, size_t index, unsigned key_flags), void *ctx) {
    long last[COMMAND_KEY_SPECS];
    size_t specs = 0, first, count;
    if (row->call_range != NULL) {
        bool told = row->call_range(argv, argc, &first, &count);
        for (size_t i = 0; told && i < count; i++) {
            found(ctx, first + i, row->keys[0].flags);
        }
        return told;
    }
    for (; specs < COMMAND_KEY_SPECS && row->keys[specs].first > 0; specs++) {
        last[specs] = last_key(&row->keys[specs], argv, argc);
        if (key_spec_is_counted(&row->keys[specs]) && last[specs] < 0) {
            return false;
        }
    }
    for (size_t k = 0; k < specs; k++) {
        const struct key_spec *spec = &row->keys[k];
        unsigned flags = spec->flags & KEY_VARIABLE ? row->call_flags(argv, argc) : spec->flags;
        for (long i = spec->first; i <= last[k] && i < (long)argc; i += spec->step) {
            found(ctx, (size_t)i, flags);
        }
    }
    size_t moved = row->call_key != NULL ? row->call_key(argv, argc) : 0;
    if (moved > 0) {
        found(ctx, moved, row->keys[specs - 1].flags);
    }
    return true;
}

/* ---- errors of dispatch --------------------------------------------------------------------- */

/* At most cap bytes, and none behind a NUL: a C string's view, which is what Redis prints. */
static struct bytes quoted(struct bytes b, size_t cap) {
    size_t len = b.len < cap ? b.len : cap;
    return BYTES(b.ptr, len > 0 ? strnlen(b.ptr, len) : 0);
}

void table_reply_unknown(struct reply *r, const struct bytes *argv, size_t argc) {
    char list[2 * ERROR_PIECE]; /* a piece of at most 128 bytes begins before byte 128, three more
                                   around each */
    size_t len = 0;
    for (size_t i = 1; i < argc && len < ERROR_PIECE; i++) {
        struct bytes arg = quoted(argv[i], ERROR_PIECE - len);
        list[len++] = '\'';
        if (arg.len > 0) {
            memcpy(list + len, arg.ptr, arg.len);
            len += arg.len;
        }
        list[len++] = '\'';
        list[len++] = ' ';
    }
    struct bytes name = quoted(argv[0], ERROR_PIECE);
    /* Blanks at the end are part of the text: "'b' ". */
    reply_errorf(r, "ERR unknown command '%.*s', with args beginning with: %.*s", (int)name.len,
                 name.len > 0 ? name.ptr : "", (int)len, list);
}

void table_reply_unknown_sub(struct reply *r, const struct command *container, struct bytes sub) {
    char upper[32];
    size_t len = 0;
    for (; container->name[len] != '\0' && len + 1 < sizeof upper; len++) {
        upper[len] = (char)toupper((unsigned char)container->name[len]);
    }
    struct bytes word = quoted(sub, ERROR_PIECE);
    reply_errorf(r, "ERR unknown subcommand '%.*s'. Try %.*s HELP.", (int)word.len,
                 word.len > 0 ? word.ptr : "", (int)len, upper);
}

void table_reply_wrong_arity(struct reply *r, const struct command *row) {
    reply_errorf(r, "ERR wrong number of arguments for '%s' command", row->name);
}

/* ---- texts ---------------------------------------------------------------------------------- */

const char *command_group_text(enum command_group group) {
    static const char *const texts[] = {
#define GROUP_TEXT(name, text, acl) [name] = text,
        COMMAND_GROUP_MAP(GROUP_TEXT)
#undef GROUP_TEXT
    };
    return texts[group];
}

#define BIT_TEXT(name, bit, text) [bit] = text,

const char *command_flag_text(unsigned bit) {
    static const char *const texts[] = {COMMAND_FLAG_MAP(BIT_TEXT)};
    return bit < ARRAY_LEN(texts) ? texts[bit] : NULL;
}

const char *acl_category_text(unsigned bit) {
    static const char *const texts[] = {ACL_CATEGORY_MAP(BIT_TEXT)};
    return bit < ARRAY_LEN(texts) ? texts[bit] : NULL;
}

const char *key_flag_text(unsigned bit) {
    static const char *const texts[] = {KEY_FLAG_MAP(BIT_TEXT)};
    return bit < ARRAY_LEN(texts) ? texts[bit] : NULL;
}

#undef BIT_TEXT

uint32_t acl_category_find(struct bytes name) {
    const char *text;
    for (unsigned bit = 0; (text = acl_category_text(bit)) != NULL; bit++) {
        if (bytes_is(name, text)) {
            return (uint32_t)1 << bit;
        }
    }
    return 0;
}

/* ---- docs/commands.md ----------------------------------------------------------------------- */

static void write_upper(struct buf *out, const char *s) {
    for (; *s != '\0'; s++) {
        buf_append_char(out, (char)(*s == '|' ? ' ' : toupper((unsigned char)*s)));
    }
}

static void write_args(struct buf *out, const struct command_arg *args, const char *between);

/* One argument without its brackets and dots: "EX seconds", "NX | XX". */
static void write_arg_core(struct buf *out, const struct command_arg *a) {
    if (a->token != NULL) {
        buf_append_cstr(out, a->token[0] != '\0' ? a->token : "\"\"");
    }
    if (a->type == ARG_PURE_TOKEN) {
        return;
    }
    if (a->token != NULL) {
        buf_append_char(out, ' ');
    }
    if (a->type == ARG_ONEOF) {
        bool bare = a->token == NULL && (a->flags & ARG_OPTIONAL); /* the brackets already group */
        buf_append_cstr(out, bare ? "" : "<");
        write_args(out, a->children, " | ");
        buf_append_cstr(out, bare ? "" : ">");
    } else if (a->type == ARG_BLOCK) {
        write_args(out, a->children, " ");
    } else {
        buf_append_cstr(out, a->name);
    }
}

static void write_args(struct buf *out, const struct command_arg *args, const char *between) {
    for (const struct command_arg *a = args; a != NULL && a->name != NULL; a++) {
        buf_append_cstr(out, a == args ? "" : between);
        bool bracket = a->flags & ARG_OPTIONAL;
        buf_append_cstr(out, bracket ? "[" : "");
        write_arg_core(out, a);
        if (a->flags & ARG_MULTIPLE) {
            buf_append_cstr(out, " ...");
        }
        buf_append_cstr(out, bracket ? "]" : "");
    }
}

static void write_row(struct buf *out, const struct command *row) {
    buf_append_cstr(out, "### ");
    write_upper(out, row->name);
    buf_append_cstr(out, "\n\n    ");
    write_upper(out, row->name);
    if (row->args != NULL) {
        buf_append_char(out, ' ');
        write_args(out, row->args, " ");
    }
    buf_printf(out, "\n\n%s Cost: %s%s Since %s (%s%s).", row->summary, row->cost,
               row->cost[strlen(row->cost) - 1] == '.' ? "" : ".", row->since,
               row->redis_since != NULL ? "Redis " : "not in Redis",
               row->redis_since != NULL ? row->redis_since : "");
    if (row->deprecated_since != NULL) {
        buf_printf(out, " Deprecated since Redis %s in favour of %s.", row->deprecated_since,
                   row->replaced_by);
    }
    buf_append_cstr(out, "\nCategories:");
    const char *text;
    for (unsigned bit = 0; (text = acl_category_text(bit)) != NULL; bit++) {
        if (row->acl >> bit & 1) {
            buf_printf(out, " @%s", text);
        }
    }
    buf_append_cstr(out, ".\n\n");
}

void commands_write_markdown(struct buf *out) {
    buf_append_cstr(out, "<!-- Generated from src/cmd/commands.def; scripts/test.sh compares. -->\n"
                         "# Commands\n\n");
    for (size_t i = 0; i < ROWS; i++) {
        const struct command *row = &rows[i];
        if (i == 0 || row->group != rows[i - 1].group) {
            buf_printf(out, "## %s\n\n", command_group_text(row->group));
        }
        if (row->handler != NULL) {
            write_row(out, row);
        }
    }
}
