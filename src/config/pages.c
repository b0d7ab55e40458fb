/* SPDX-License-Identifier: BSD-3-Clause */
/* --help and docs/options.md. */
#include "option_priv.h"

static const char *changeable(const struct option *o) {
    return o->flags & (OPTION_FIXED | OPTION_GUARDED) ? "at start" : "CONFIG SET";
}

static void write_default(const struct option *o, struct buf *out) {
    buf_append_cstr(out, o->default_text[0] != '\0' ? o->default_text : "\"\"");
}

/* Limits and unit: "0 to 65535, seconds". */
static void write_values(const struct option *o, struct buf *out) {
    option_write_domain(o, out);
    if (o->unit[0] != '\0') {
        buf_printf(out, ", %s", o->unit);
    }
}

void config_write_help(struct buf *out) {
    buf_append_cstr(
        out, "Usage: goblin-core [FILE] [--name value ...]\n"
             "       goblin-core --check-rdb FILE   verify a snapshot and tell what is in it\n"
             "       goblin-core --check-hugepages [SIZE] [FILE] [--name value ...]\n"
             "                                      tell what this machine gives for SIZE bytes, "
             "and what to type;\n"
             "                                      exit status 0: SIZE can be had on huge pages, "
             "1: not, 2: bad arguments\n"
             "       goblin-core --version | --help\n\n"
             "FILE holds lines of 'name value'; options after it win. A yes/no option\n"
             "without a value means yes. Sizes take kb mb gb (1024) and k m g (1000).\n\n");
    for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
        const struct option *o = &config_table[i];
        buf_printf(out, "  --%s  (", o->name);
        write_values(o, out);
        buf_append_cstr(out, "; default ");
        write_default(o, out);
        buf_printf(out, ")\n      %s\n", o->help);
    }
}

/* A cell of a table: '|' would end it. */
static void write_cell(struct buf *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '|') {
            buf_append_char(out, '\\');
        }
        buf_append_char(out, *text);
    }
}

void config_write_markdown(struct buf *out) {
    buf_append_cstr(
        out,
        "# Options\n\n"
        "<!-- Generated from include/config/options.def; a test compares. -->\n\n"
        "On the command line as `--name value`, in a file named as the first argument as lines of\n"
        "`name value` (quotes, `#` comments and `include PATH` as in Redis), and with `CONFIG "
        "SET`\n"
        "where the table says so. A yes/no option alone on the command line (`--arena-hugetlb`)\n"
        "means yes. Sizes take `kb mb gb` (1024) and `k m g` (1000). An unknown option or a bad\n"
        "value stops start-up with a message that names it.\n\n"
        "| option | values | default | set | meaning |\n"
        "|---|---|---|---|---|\n");
    for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
        const struct option *o = &config_table[i];
        buf_printf(out, "| `%s`", o->name);
        if (o->alias != NULL) {
            buf_printf(out, " (also `%s`)", o->alias);
        }
        buf_append_cstr(out, " | ");
        write_values(o, out);
        buf_append_cstr(out, " | `");
        write_default(o, out);
        buf_printf(out, "` | %s | ", changeable(o));
        write_cell(out, o->help);
        buf_append_cstr(out, " |\n");
    }
}
