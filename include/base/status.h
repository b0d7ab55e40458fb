/* SPDX-License-Identifier: BSD-3-Clause */
/* What the world may answer: 0 is good, everything else is negative and leaves the object as
 * before. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include "base/compiler.h"

/* One row a code: name, value, text. */
#define STATUS_MAP(X)                                                                              \
    X(ST_OK, 0, "success")                                                                         \
    X(ST_NOMEM, -1, "out of memory")                                                               \
    X(ST_IO, -2, "input/output error")                                                             \
    X(ST_RANGE, -3, "value out of range")                                                          \
    X(ST_SYNTAX, -4, "malformed input")                                                            \
    X(ST_NOTFOUND, -5, "not found")                                                                \
    X(ST_EXISTS, -6, "already exists")                                                             \
    X(ST_AGAIN, -7, "not ready, try again")                                                        \
    X(ST_CLOSED, -8, "closed by the other side")                                                   \
    X(ST_WRONGTYPE, -9, "value holds the wrong type")                                              \
    X(ST_UNSUPPORTED, -10, "not supported")                                                        \
    X(ST_CORRUPT, -11, "corrupt data")

enum status {
#define STATUS_ENUM(name, value, text) name = (value),
    STATUS_MAP(STATUS_ENUM)
#undef STATUS_ENUM
};

/* The text of a code; never NULL. */
const char *status_text(enum status st);

#endif
