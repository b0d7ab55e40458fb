/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LOG_LINE_MAX 1024

static FILE *log_file;
static enum log_level log_least = LOG_NOTICE;

enum status log_setup(const char *path, enum log_level least) {
    log_least = least;
    if (path[0] != '\0') {
        FILE *file = fopen(path, "a");
        if (file == NULL) {
            return ST_IO;
        }
        log_file = file;
    }
    return ST_OK;
}

void log_set_level(enum log_level least) {
    log_least = least;
}

void log_write(enum log_level level, const char *fmt, ...) {
    static const char marks[] = ".-*#";
    if (level < log_least || level >= LOG_NOTHING) {
        return;
    }
    char text[LOG_LINE_MAX], stamp[64];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    int64_t now_ms = clock_realtime_ms();
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm tm;
    localtime_r(&seconds, &tm);
    strftime(stamp, sizeof(stamp), "%d %b %Y %H:%M:%S", &tm);
    FILE *out = log_file ? log_file : stdout;
    fprintf(out, "%d:M %s.%03d %c %s\n", (int)getpid(), stamp, (int)(now_ms % 1000), marks[level],
            text);
    fflush(out);
}
