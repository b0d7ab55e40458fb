/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the control groups of this process are: /proc/self/cgroup names a path in each hierarchy,
 * /proc/self/mountinfo where that hierarchy is mounted, and which part of it. */
#include <stdio.h>
#include <string.h>

#include "machine_priv.h"
#include "osfile_priv.h"

#define LINE_MAX_LEN 4096
#define UNLIMITED_FROM ((size_t)1 << 62) /* version 1 writes a number near 2^63 for "none" */

/* A folder of one hierarchy: prefix is the mount point, which the walk up does not leave. */
struct group {
    char dir[OSFILE_PATH_MAX / 2];
    size_t prefix_len;
    bool is_v2;
};

/* Is word one of the words between commas? */
static bool has_word(const char *list, const char *word) {
    size_t len = strlen(word);
    for (const char *p = list; *p != '\0';) {
        size_t n = strcspn(p, ",\n");
        if (n == len && memcmp(p, word, len) == 0) {
            return true;
        }
        p += n + (p[n] != '\0');
    }
    return false;
}

static FILE *open_file(const char *root, const char *path) {
    char full[OSFILE_PATH_MAX];
    int len = snprintf(full, sizeof(full), "%s%s", root, path);
    return len > 0 && (size_t)len < sizeof(full) ? fopen(full, "re") : NULL;
}

/* The path of the controller's hierarchy, "4:memory:/a/b"; of version 2, "0::/a/b". */
static bool find_path(const char *root, const char *controller, bool v2, char *path, size_t cap) {
    char line[LINE_MAX_LEN];
    bool found = false;
    FILE *file = open_file(root, "/proc/self/cgroup");
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        char *names = strchr(line, ':');
        char *at = names != NULL ? strchr(names + 1, ':') : NULL;
        if (at == NULL) {
            continue;
        }
        *at++ = '\0';
        found =
            v2 ? strncmp(line, "0:", 2) == 0 && names[1] == '\0' : has_word(names + 1, controller);
        at[strcspn(at, "\n")] = '\0';
        snprintf(path, cap, "%s", at);
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* "36 35 0:30 ROOT POINT rw - cgroup2 source options": ROOT and POINT as far as they are wanted. */
static bool parse_mount(char *line, const char *controller, bool v2, char **top, char **point) {
    char *save, *type = strstr(line, " - ");
    if (type == NULL) {
        return false;
    }
    *type = '\0';
    type = strtok_r(type + 3, " ", &save);
    char *source = strtok_r(NULL, " ", &save), *options = strtok_r(NULL, " ", &save);
    if (type == NULL || source == NULL || options == NULL ||
        strcmp(type, v2 ? "cgroup2" : "cgroup") != 0 || (!v2 && !has_word(options, controller))) {
        return false;
    }
    char *word = strtok_r(line, " ", &save);
    for (int i = 0; i < 3 && word != NULL; i++) {
        word = strtok_r(NULL, " ", &save);
    }
    *top = word;
    *point = word != NULL ? strtok_r(NULL, " ", &save) : NULL;
    return *point != NULL;
}

/* The part of a mounted at top that path is in; the whole mount when it is outside of it, as when a container
 * sees its own group as the root. */
static const char *below(const char *path, const char *top) {
    size_t len = strcmp(top, "/") == 0 ? 0 : strlen(top);
    bool inside = strncmp(path, top, len) == 0 && (path[len] == '/' || path[len] == '\0');
    const char *rest = inside ? path + len : "";
    return strcmp(rest, "/") == 0 ? "" : rest;
}

static bool find_group(const char *root, const char *controller, bool v2, struct group *out) {
    char line[LINE_MAX_LEN], path[LINE_MAX_LEN], *top, *point;
    if (!find_path(root, controller, v2, path, sizeof(path))) {
        return false;
    }
    bool found = false;
    FILE *file = open_file(root, "/proc/self/mountinfo");
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        if (parse_mount(line, controller, v2, &top, &point)) {
            int len = snprintf(out->dir, sizeof(out->dir), "%s%s", point, below(path, top));
            found = len > 0 && (size_t)len < sizeof(out->dir);
            out->prefix_len = strlen(point);
            out->is_v2 = v2;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

static bool group_number(const char *root, const struct group *g, const char *name, size_t *out) {
    char path[OSFILE_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", g->dir, name);
    return osfile_number(root, path, out);
}

/* Bytes of files that the kernel would drop before it refused memory. */
static size_t droppable(const char *root, const struct group *g) {
    char path[OSFILE_PATH_MAX], text[OSFILE_TEXT_MAX];
    size_t bytes = 0;
    snprintf(path, sizeof(path), "%s/memory.stat", g->dir);
    osfile_read(root, path, text, sizeof(text));
    if (!osfile_find(text, "total_inactive_file ", &bytes)) {
        osfile_find(text, "inactive_file ", &bytes);
    }
    return bytes;
}

/* Keep the tighter of *out and of this group. */
static void look(const char *root, const struct group *g, const char *stem, bool is_memory,
                 struct machine_limit *out) {
    char limit_name[64], usage_name[64];
    size_t limit, usage = 0;
    snprintf(limit_name, sizeof(limit_name), "%s.%s", stem, g->is_v2 ? "max" : "limit_in_bytes");
    snprintf(usage_name, sizeof(usage_name), "%s.%s", stem,
             g->is_v2 ? "current" : "usage_in_bytes");
    if (!group_number(root, g, limit_name, &limit) || limit >= UNLIMITED_FROM) { /* or "max" */
        return;
    }
    group_number(root, g, usage_name, &usage);
    size_t spare = is_memory ? droppable(root, g) : 0;
    usage -= spare < usage ? spare : usage;
    size_t room = limit > usage ? limit - usage : 0;
    if (room < out->room_bytes) {
        out->room_bytes = room;
        out->limit_bytes = limit;
        int len = snprintf(out->file, sizeof(out->file), "%s/%s", g->dir, limit_name);
        if (len < 0 || (size_t)len >= sizeof(out->file)) {
            out->file[0] = '\0';
        }
    }
}

/* This group and all above it, in both versions: a machine may have some controllers in each. */
static void read_limits(const char *root, const char *controller, const char *const *stems,
                        struct machine_limit *out) {
    *out = (struct machine_limit){.room_bytes = MACHINE_NO_LIMIT, .limit_bytes = MACHINE_NO_LIMIT};
    for (int v2 = 0; v2 < 2; v2++) {
        struct group g;
        if (!find_group(root, controller, v2 != 0, &g)) {
            continue;
        }
        for (;;) {
            for (size_t i = 0; stems[i] != NULL; i++) {
                look(root, &g, stems[i], strcmp(controller, "memory") == 0, out);
            }
            char *slash = strrchr(g.dir, '/');
            if (slash == NULL || (size_t)(slash - g.dir) < g.prefix_len) {
                break;
            }
            *slash = '\0';
        }
    }
}

void machine_read_hugetlb_limit(const char *root, size_t page_bytes, struct machine_limit *out) {
    /* The kernel's own spelling of a size. */
    bool gb = page_bytes >= (size_t)1 << 30, mb = page_bytes >= (size_t)1 << 20;
    const char *unit = gb ? "GB" : mb ? "MB" : "KB";
    size_t n = page_bytes >> (gb ? 30 : mb ? 20 : 10);
    char used[48], reserved[48];
    snprintf(used, sizeof(used), "hugetlb.%zu%s", n, unit);
    snprintf(reserved, sizeof(reserved), "hugetlb.%zu%s.rsvd", n, unit);
    const char *const stems[] = {used, reserved, NULL};
    read_limits(root, "hugetlb", stems, out);
}

void machine_read_memory_limit(const char *root, struct machine_limit *out) {
    static const char *const stems[] = {"memory", NULL};
    read_limits(root, "memory", stems, out);
}
