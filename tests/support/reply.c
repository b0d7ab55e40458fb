/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/reply.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reply_free(struct reply *r) {
    if (!r) {
        return;
    }
    for (size_t i = 0; i < r->count; i++) {
        reply_free(r->elements[i]);
    }
    free(r->elements);
    free(r->str);
    free(r);
}

static void put_escaped(FILE *out, const char *ptr, size_t len) {
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)ptr[i];
        if (c == '"' || c == '\\') {
            fprintf(out, "\\%c", c);
        } else if (isprint(c)) {
            fputc(c, out);
        } else {
            fprintf(out, "\\x%02x", c);
        }
    }
}

static void put_reply(FILE *out, const struct reply *r);

static void put_elements(FILE *out, const struct reply *r, const char *open, char close) {
    fputs(open, out);
    for (size_t i = 0; i < r->count; i++) {
        if (i > 0) {
            fputc(' ', out);
        }
        put_reply(out, r->elements[i]);
    }
    fputc(close, out);
}

static void put_reply(FILE *out, const struct reply *r) {
    if (r->is_null) {
        fputs(r->type == '$' ? "nil" : r->type == '*' ? "nil*" : "null", out);
        return;
    }
    switch (r->type) {
    case ':':
        fprintf(out, ":%lld", (long long)r->integer);
        break;
    case '#':
        fputs(r->integer ? "#t" : "#f", out);
        break;
    case '$':
        fputc('"', out);
        put_escaped(out, r->str, r->len);
        fputc('"', out);
        break;
    case '=':
        fprintf(out, "=%.*s:\"", r->len >= 3 ? 3 : (int)r->len, r->str);
        put_escaped(out, r->len >= 4 ? r->str + 4 : "", r->len >= 4 ? r->len - 4 : 0);
        fputc('"', out);
        break;
    case '*':
        put_elements(out, r, "[", ']');
        break;
    case '%':
        put_elements(out, r, "{", '}');
        break;
    case '~':
        put_elements(out, r, "~[", ']');
        break;
    case '>':
        put_elements(out, r, ">[", ']');
        break;
    default: /* + - , ( : one line of text */
        fputc(r->type, out);
        put_escaped(out, r->str, r->len);
        break;
    }
}

char *reply_text(const struct reply *r) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out) {
        abort();
    }
    if (r) {
        put_reply(out, r);
    } else {
        fputs("(no reply)", out);
    }
    fclose(out);
    return text;
}

char *bytes_text(const char *ptr, size_t len, size_t max) {
    char *text = NULL;
    size_t text_len = 0;
    FILE *out = open_memstream(&text, &text_len);
    if (!out) {
        abort();
    }
    put_escaped(out, ptr, len < max ? len : max);
    if (len > max) {
        fprintf(out, "... (%zu bytes)", len);
    }
    fclose(out);
    return text;
}

struct sort_row {
    char *text; /* canonical text of the group's elements */
    struct reply *group[2];
};

static int compare_rows(const void *a, const void *b) {
    return strcmp(((const struct sort_row *)a)->text, ((const struct sort_row *)b)->text);
}

void reply_sort(struct reply *r, size_t width) {
    if (!reply_is_aggregate(r) || r->count < 2 * width || r->count % width != 0 || width > 2) {
        return;
    }
    size_t row_count = r->count / width;
    struct sort_row *rows = calloc(row_count, sizeof(*rows));
    for (size_t i = 0; i < row_count; i++) {
        struct reply group = {.type = '*', .elements = r->elements + i * width, .count = width};
        rows[i].text = reply_text(&group);
        memcpy(rows[i].group, r->elements + i * width, width * sizeof(struct reply *));
    }
    qsort(rows, row_count, sizeof(*rows), compare_rows);
    for (size_t i = 0; i < row_count; i++) {
        memcpy(r->elements + i * width, rows[i].group, width * sizeof(struct reply *));
        free(rows[i].text);
    }
    free(rows);
}
