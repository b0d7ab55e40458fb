/* SPDX-License-Identifier: BSD-3-Clause */
/* A view of bytes: pointer and length, owns nothing, may hold NULs. ptr may be NULL when len is 0.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <string.h>

#include "base/compiler.h"

struct bytes {
    const char *ptr;
    size_t len;
};

#define BYTES(ptr_, len_) ((struct bytes){(ptr_), (len_)})
#define BYTES_LIT(s) ((struct bytes){(s), sizeof(s) - 1})

static inline struct bytes bytes_from_cstr(const char *s) {
    return BYTES(s, strlen(s));
}

static inline bool bytes_equal(struct bytes a, struct bytes b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Byte order, shorter first on a common prefix: <0, 0, >0. */
int bytes_compare(struct bytes a, struct bytes b);

/* Equal but for ASCII case. */
bool bytes_equal_nocase(struct bytes a, struct bytes b);

/* Equal to a C string but for ASCII case. */
bool bytes_is(struct bytes a, const char *word);

/* Redis's glob: * ? [a-z] [^x] and backslash escapes, over bytes. O(pattern x text) at worst: a
 * pattern of many stars is bounded by remembering only the last one. */
bool bytes_glob_match(struct bytes pattern, struct bytes text, bool nocase);

/* A copy in constant time for secrets: true when equal; takes time that depends on b.len only. */
bool bytes_equal_secret(struct bytes secret, struct bytes given);

#endif
