/* SPDX-License-Identifier: BSD-3-Clause */
#include "inline_priv.h"

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool parts_words(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What a backslash before c stands for inside double quotes. */
static char escaped(char c) {
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return c;
    }
}

/* One character of "..." at line->at, which is not the closing quote. */
static char read_double_quoted(struct inline_line *line) {
    char *p = line->at;
    if (*p != '\\' || line->end - p < 2) {
        line->at = p + 1;
        return *p;
    }
    if (p[1] == 'x' && line->end - p >= 4 && hex_digit(p[2]) >= 0 && hex_digit(p[3]) >= 0) {
        line->at = p + 4;
        return (char)(hex_digit(p[2]) * 16 + hex_digit(p[3]));
    }
    line->at = p + 2;
    return escaped(p[1]);
}

static char read_single_quoted(struct inline_line *line) {
    char *p = line->at;
    if (*p == '\\' && line->end - p >= 2 && p[1] == '\'') {
        line->at = p + 2;
        return '\'';
    }
    line->at = p + 1;
    return *p;
}

/* The quoted part behind an opening quote, written at *to; false when it is not closed well. */
static bool read_quoted(struct inline_line *line, char quote, char **to) {
    while (line->at < line->end) {
        if (*line->at == quote) {
            line->at++;
            return line->at == line->end || is_space(*line->at);
        }
        *(*to)++ = quote == '"' ? read_double_quoted(line) : read_single_quoted(line);
    }
    return false;
}

enum inline_event inline_next(struct inline_line *line, struct bytes *word) {
    while (line->at < line->end && is_space(*line->at)) {
        line->at++;
    }
    if (line->at == line->end) {
        return INLINE_END;
    }
    char *start = line->at;
    char *to = start;
    while (line->at < line->end && !parts_words(*line->at)) {
        char c = *line->at++;
        if (c == '"' || c == '\'') {
            if (!read_quoted(line, c, &to)) {
                return INLINE_UNBALANCED;
            }
            break; /* white space or the end follows: the word is complete */
        }
        *to++ = c;
    }
    *word = BYTES(start, (size_t)(to - start));
    return INLINE_WORD;
}
