/* SPDX-License-Identifier: BSD-3-Clause */
#include "words_priv.h"

#include <stdlib.h>

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The character behind a backslash at line[i]; returns how many bytes it took. */
static size_t unescape(struct bytes line, size_t i, char *out) {
    if (line.ptr[i] == 'x' && i + 2 < line.len && hex_digit(line.ptr[i + 1]) >= 0 &&
        hex_digit(line.ptr[i + 2]) >= 0) {
        *out = (char)(hex_digit(line.ptr[i + 1]) * 16 + hex_digit(line.ptr[i + 2]));
        return 3;
    }
    static const char from[] = "nrtba", to[] = "\n\r\t\b\a";
    const char *at = memchr(from, line.ptr[i], sizeof(from) - 1);
    *out = at != NULL ? to[at - from] : line.ptr[i];
    return 1;
}

/* A quoted part whose quote is at line[i]; returns the position behind its closing quote, 0 when
 * there is none. */
static size_t take_quoted(struct buf *text, struct bytes line, size_t i) {
    char quote = line.ptr[i++];
    while (i < line.len && line.ptr[i] != quote) {
        char c = line.ptr[i++];
        if (c == '\\' && i < line.len && quote == '"') {
            i += unescape(line, i, &c);
        } else if (c == '\\' && i < line.len && line.ptr[i] == '\'') {
            c = line.ptr[i++];
        }
        buf_append_char(text, c);
    }
    bool closed = i < line.len && (i + 1 == line.len || is_blank(line.ptr[i + 1]));
    return closed ? i + 1 : 0;
}

/* One word that starts at line[i]; returns the position behind it, 0 when malformed. */
static size_t take_word(struct buf *text, struct bytes line, size_t i) {
    while (i < line.len && !is_blank(line.ptr[i])) {
        if (line.ptr[i] == '"' || line.ptr[i] == '\'') {
            return take_quoted(text, line, i);
        }
        buf_append_char(text, line.ptr[i++]);
    }
    return i;
}

void words_deinit(struct words *w) {
    free(w->items);
    buf_deinit(&w->text);
    *w = (struct words){0};
}

enum status words_split(struct words *w, struct bytes line) {
    free(w->items);
    w->count = 0;
    buf_clear(&w->text);
    /* Words are never longer than the line: reserved once, the views into text stay good. */
    w->items = malloc((line.len / 2 + 1) * sizeof(*w->items));
    if (w->items == NULL || buf_reserve(&w->text, line.len + 1) != ST_OK) {
        return ST_NOMEM;
    }
    size_t i = 0;
    for (;;) {
        while (i < line.len && is_blank(line.ptr[i])) {
            i++;
        }
        if (i == line.len) {
            return ST_OK;
        }
        size_t from = w->text.len;
        i = take_word(&w->text, line, i);
        if (i == 0) {
            return ST_SYNTAX;
        }
        w->items[w->count++] = BYTES(w->text.ptr + from, w->text.len - from);
    }
}
