/* SPDX-License-Identifier: BSD-3-Clause */
/* One line an event: "pid:M DD Mon YYYY HH:MM:SS.mmm * text", the format operators' tools know. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/compiler.h"
#include "base/status.h"

enum log_level { LOG_DEBUG, LOG_VERBOSE, LOG_NOTICE, LOG_WARNING, LOG_NOTHING };

/* path "" is standard output. ST_IO when the file cannot be opened for appending; errno says why.
 */
MUST_CHECK enum status log_setup(const char *path, enum log_level least);
void log_set_level(enum log_level least);
void log_write(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)
#define log_verbose(...) log_write(LOG_VERBOSE, __VA_ARGS__)
#define log_notice(...) log_write(LOG_NOTICE, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)

#endif
