/* SPDX-License-Identifier: BSD-3-Clause */
/* osfile: the small text files by which the kernel tells of itself, /proc and /sys. A root other than
 * "" is a folder that holds such files, for tests. */
#ifndef MEM_OSFILE_PRIV_H
#define MEM_OSFILE_PRIV_H

#include "base/compiler.h"

#define OSFILE_PATH_MAX 1024
#define OSFILE_TEXT_MAX 4096

/* The file's first cap - 1 bytes, terminated; false and "" when it can't be read. */
bool osfile_read(const char *root, const char *path, char *text, size_t cap);

/* A file of one decimal number. False leaves *out. */
bool osfile_number(const char *root, const char *path, size_t *out);

/* The number behind the first line that begins with `name`, "VmRSS:" say; false leaves *out. */
bool osfile_find(const char *text, const char *name, size_t *out);

/* The word in brackets of "always [madvise] never"; "" when there is none. */
void osfile_chosen(const char *text, char *word, size_t cap);

#endif
