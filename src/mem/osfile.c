/* SPDX-License-Identifier: BSD-3-Clause */
#include "osfile_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool osfile_read(const char *root, const char *path, char *text, size_t cap) {
    char full[OSFILE_PATH_MAX];
    int len = snprintf(full, sizeof(full), "%s%s", root, path);
    text[0] = '\0';
    if (len < 0 || (size_t)len >= sizeof(full)) {
        return false;
    }
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    size_t used = 0;
    ssize_t got;
    while (used < cap - 1 && (got = read(fd, text + used, cap - 1 - used)) > 0) {
        used += (size_t)got;
    }
    close(fd);
    text[used] = '\0';
    return used > 0;
}

static bool parse_number(const char *text, size_t *out) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text) {
        return false;
    }
    *out = (size_t)value;
    return true;
}

bool osfile_number(const char *root, const char *path, size_t *out) {
    char text[32];
    return osfile_read(root, path, text, sizeof(text)) && parse_number(text, out);
}

bool osfile_find(const char *text, const char *name, size_t *out) {
    size_t len = strlen(name);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) == 0) {
            return parse_number(line + len, out);
        }
    }
    return false;
}

void osfile_chosen(const char *text, char *word, size_t cap) {
    const char *from = strchr(text, '[');
    const char *to = from != NULL ? strchr(from, ']') : NULL;
    word[0] = '\0';
    if (to != NULL) {
        snprintf(word, cap, "%.*s", (int)(to - from - 1), from + 1);
    }
}
