/* SPDX-License-Identifier: BSD-3-Clause */
/* Defaults, files and the command line into a struct config. */
#include "option_priv.h"
#include "words_priv.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define INCLUDE_DEPTH_MAX 16 /* more is a file that includes itself */

static enum status load_file(struct config *c, const char *path, int depth, struct buf *error);

/* ---- one option ---------------------------------------------------------------------------- */

/* Set the option that words name. why: what is wrong, appended. */
static enum status set_words(struct config *c, const struct bytes *words, size_t count,
                             struct buf *why) {
    enum config_option_id id = option_find(words[0]);
    if (id == CONFIG_OPTIONS) {
        buf_append_cstr(why, "unknown option '");
        buf_append(why, words[0].ptr, words[0].len);
        buf_append_char(why, '\'');
        return ST_SYNTAX;
    }
    const struct option *o = &config_table[id];
    if (option_takes_words(o) && count == 1) {
        buf_append_cstr(why, "wrong number of arguments");
        return ST_SYNTAX;
    }
    return option_parse(o, c, words + 1, count - 1, why);
}

enum status config_init(struct config *c) {
    *c = (struct config){0};
    struct buf why = {0};
    enum status st = ST_OK;
    for (size_t i = 0; i < CONFIG_OPTIONS && st == ST_OK; i++) {
        struct bytes text = bytes_from_cstr(config_table[i].default_text);
        st = option_parse(&config_table[i], c, &text, 1, &why);
        assert(st == ST_OK || st == ST_NOMEM);
    }
    c->config_file = st == ST_OK ? strdup("") : NULL;
    buf_deinit(&why);
    if (c->config_file == NULL) {
        config_deinit(c);
        return ST_NOMEM;
    }
    return ST_OK;
}

void config_deinit(struct config *c) {
    for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
        option_clear(&config_table[i], c);
    }
    free(c->config_file);
    *c = (struct config){0};
}

/* ---- files --------------------------------------------------------------------------------- */

static enum status read_whole(const char *path, struct buf *out) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return ST_IO;
    }
    enum status st = ST_OK;
    for (;;) {
        char *tail = buf_tail(out, BUFSIZ);
        if (tail == NULL) {
            st = ST_NOMEM;
            break;
        }
        size_t got = fread(tail, 1, BUFSIZ, file);
        out->len += got;
        if (got == 0) {
            break;
        }
    }
    if (st == ST_OK && ferror(file)) {
        st = ST_IO;
    }
    int saved = errno; /* fclose may change it, the caller reports it */
    fclose(file);
    errno = saved;
    return st;
}

static enum status report_unreadable(struct buf *error, const char *path) {
    buf_printf(error, "can't read configuration file '%s': %s", path, strerror(errno));
    return ST_IO;
}

static enum status include(struct config *c, struct bytes pattern, int depth, struct buf *error) {
    char path[PATH_MAX];
    if (pattern.len >= sizeof(path) || memchr(pattern.ptr, '\0', pattern.len) != NULL) {
        buf_append_cstr(error, "not a path");
        return ST_SYNTAX;
    }
    if (depth >= INCLUDE_DEPTH_MAX) {
        buf_append_cstr(error, "files include each other too deep");
        return ST_SYNTAX;
    }
    memcpy(path, pattern.ptr, pattern.len);
    path[pattern.len] = '\0';
    if (strpbrk(path, "*?[") == NULL) {
        return load_file(c, path, depth + 1, error);
    }
    glob_t found;
    enum status st = ST_OK;
    int rc = glob(path, 0, NULL, &found); /* sorted; no match is no error, as in Redis */
    if (rc == GLOB_NOSPACE) {
        return ST_NOMEM;
    }
    for (size_t i = 0; rc == 0 && i < found.gl_pathc && st == ST_OK; i++) {
        st = load_file(c, found.gl_pathv[i], depth + 1, error);
    }
    if (rc == 0) {
        globfree(&found);
    }
    return st;
}

static struct bytes trim(struct bytes line) {
    while (line.len > 0 && strchr(" \t\r", line.ptr[line.len - 1]) != NULL &&
           line.ptr[line.len - 1] != '\0') {
        line.len--;
    }
    while (line.len > 0 && (line.ptr[0] == ' ' || line.ptr[0] == '\t')) {
        line = BYTES(line.ptr + 1, line.len - 1);
    }
    return line;
}

/* One line without its end; why is appended. */
static enum status load_line(struct config *c, struct bytes line, struct words *words, int depth,
                             struct buf *why) {
    if (line.len == 0 || line.ptr[0] == '#') {
        return ST_OK;
    }
    enum status st = words_split(words, line);
    if (st == ST_SYNTAX) {
        buf_append_cstr(why, "Unbalanced quotes in configuration line");
    }
    if (st != ST_OK) {
        return st;
    }
    if (bytes_is(words->items[0], "include")) {
        if (words->count != 2) {
            buf_append_cstr(why, "wrong number of arguments");
            return ST_SYNTAX;
        }
        return include(c, words->items[1], depth, why);
    }
    return set_words(c, words->items, words->count, why);
}

static enum status load_file(struct config *c, const char *path, int depth, struct buf *error) {
    struct buf text = {0}, why = {0};
    struct words words = {0};
    enum status st = read_whole(path, &text);
    if (st == ST_IO) {
        st = report_unreadable(error, path);
    }
    size_t number = 0;
    for (size_t at = 0; st == ST_OK && at < text.len;) {
        const char *start = text.ptr + at;
        const char *end = memchr(start, '\n', text.len - at);
        size_t len = end != NULL ? (size_t)(end - start) : text.len - at;
        struct bytes line = trim(BYTES(start, len));
        at += len + 1;
        number++;
        st = load_line(c, line, &words, depth, &why);
        if (st == ST_SYNTAX || st == ST_IO) {
            buf_printf(error, "%s:%zu: '", path, number);
            buf_append(error, line.ptr, line.len);
            buf_append_cstr(error, "': ");
            buf_append(error, why.ptr, why.len);
        }
    }
    words_deinit(&words);
    buf_deinit(&why);
    buf_deinit(&text);
    return st;
}

enum status config_load_file(struct config *c, const char *path, struct buf *error) {
    return load_file(c, path, 0, error);
}

/* ---- command line -------------------------------------------------------------------------- */

static bool opens_option(const char *arg) {
    return arg[0] == '-' && arg[1] == '-';
}

/* A value left out on the command line: a flag means yes, save means none. */
static bool implied_value(struct bytes name, struct bytes *value) {
    enum config_option_id id = option_find(name);
    if (id == CONFIG_OPTIONS || (config_table[id].kind != KIND_BOOL && id != OPTION_save)) {
        return false;
    }
    *value = id == OPTION_save ? BYTES_LIT("") : BYTES_LIT("yes");
    return true;
}

/* argv[0] is "--name", its values follow; words has room for count + 1. */
static enum status load_argument(struct config *c, char *const *argv, size_t count,
                                 struct bytes *words, struct buf *error) {
    struct buf why = {0};
    size_t used = 0;
    words[used++] = bytes_from_cstr(argv[0] + 2);
    while (used < count) {
        words[used] = bytes_from_cstr(argv[used]);
        used++;
    }
    if (count == 1 && implied_value(words[0], &words[1])) {
        used = 2;
    }
    enum status st = set_words(c, words, used, &why);
    if (st == ST_SYNTAX) {
        buf_append_cstr(error, "argument '");
        for (size_t i = 0; i < count; i++) {
            buf_printf(error, "%s%s", i == 0 ? "" : " ", argv[i]);
        }
        buf_append_cstr(error, "': ");
        buf_append(error, why.ptr, why.len);
    }
    buf_deinit(&why);
    return st;
}

static enum status load_arguments(struct config *c, char *const *argv, size_t count,
                                  struct buf *error) {
    struct bytes *words = malloc((count + 1) * sizeof(*words));
    if (words == NULL) {
        return ST_NOMEM;
    }
    enum status st = ST_OK;
    for (size_t i = 0; i < count && st == ST_OK;) {
        if (!opens_option(argv[i])) {
            buf_printf(error, "argument '%s': expected --name", argv[i]);
            st = ST_SYNTAX;
            break;
        }
        size_t next = i + 1;
        while (next < count && !opens_option(argv[next])) {
            next++;
        }
        st = load_argument(c, argv + i, next - i, words, error);
        i = next;
    }
    free(words);
    return st;
}

static enum config_action asked_action(int argc, char *const *argv) {
    if (argc < 2) {
        return CONFIG_RUN;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0) {
        return CONFIG_SHOW_VERSION;
    }
    if (argc == 3 && strcmp(argv[1], "--check-rdb") == 0) {
        return CONFIG_CHECK_RDB;
    }
    if (strcmp(argv[1], "--check-hugepages") == 0) {
        return CONFIG_CHECK_HUGEPAGES;
    }
    bool help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    return help ? CONFIG_SHOW_HELP : CONFIG_RUN;
}

static enum status load_main_file(struct config *c, const char *path, struct buf *error) {
    char *absolute = realpath(path, NULL);
    if (absolute == NULL) {
        return errno == ENOMEM ? ST_NOMEM : report_unreadable(error, path);
    }
    free(c->config_file);
    c->config_file = absolute;
    return load_file(c, path, 0, error);
}

static enum status make_dir_absolute(struct config *c, struct buf *error) {
    struct stat info;
    char *absolute = realpath(c->dir, NULL);
    if (absolute == NULL && errno == ENOMEM) {
        return ST_NOMEM;
    }
    if (absolute == NULL || stat(absolute, &info) != 0 || !S_ISDIR(info.st_mode)) {
        const char *why = absolute == NULL ? strerror(errno) : strerror(ENOTDIR);
        buf_printf(error, "option 'dir': can't use directory '%s': %s", c->dir, why);
        free(absolute);
        return ST_IO;
    }
    free(c->dir);
    c->dir = absolute;
    return ST_OK;
}

/* Relative to where the program was started, not to dir. */
static enum status make_load_absolute(struct config *c, struct buf *error) {
    if (c->load[0] == '\0') {
        return ST_OK;
    }
    char *absolute = realpath(c->load, NULL);
    if (absolute == NULL) {
        buf_printf(error, "option 'load': can't open '%s': %s", c->load, strerror(errno));
        return errno == ENOMEM ? ST_NOMEM : ST_IO;
    }
    free(c->load);
    c->load = absolute;
    return ST_OK;
}

enum status config_load(struct config *c, int argc, char *const *argv, enum config_action *action,
                        struct buf *error) {
    *action = asked_action(argc, argv);
    if (argc != 3 && argc > 1 && strcmp(argv[1], "--check-rdb") == 0) {
        buf_printf(error, "argument '--check-rdb': %s",
                   argc < 3 ? "the name of a file is missing" : "only one file is checked");
        return ST_SYNTAX;
    }
    if (*action != CONFIG_RUN) {
        return ST_OK;
    }
    int at = 1;
    enum status st = ST_OK;
    if (argc > 1 && argv[1][0] != '-') {
        st = load_main_file(c, argv[1], error);
        at = 2;
    }
    if (st == ST_OK && argc > at) {
        st = load_arguments(c, argv + at, (size_t)(argc - at), error);
    }
    st = st == ST_OK ? make_load_absolute(c, error) : st;
    const char *wrong = st == ST_OK ? check_combination(c) : NULL;
    if (wrong != NULL) {
        buf_append_cstr(error, wrong);
        return ST_SYNTAX;
    }
    return st == ST_OK ? make_dir_absolute(c, error) : st;
}
