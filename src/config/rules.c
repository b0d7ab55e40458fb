/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of options that their kind and limits do not say. */
#include "option_priv.h"

#include "base/number.h"

#define BIND_MAX 16 /* listening sockets are a fixed table, as in Redis */
#define HZ_MIN 1
#define HZ_MAX 500

const char *check_bind(struct config *c) {
    for (size_t i = 0; i < c->bind.count; i++) {
        if (c->bind.items[i][0] == '\0') {
            return "addresses stand one blank apart";
        }
    }
    return c->bind.count > BIND_MAX ? "Too many bind addresses specified." : NULL;
}

const char *check_power_of_two(struct config *c) {
    size_t bytes = c->hash_chunk_bytes;
    return (bytes & (bytes - 1)) != 0 ? "argument must be a power of two" : NULL;
}

/* "2m" and "2mb" both mean 2 MiB: no huge page has a decimal size, and no power of two is a multiple
 * of 1000. */
const char *check_huge_page_size(struct config *c) {
    static const size_t decimal[] = {1000000000, 1000000, 1000};
    size_t bytes = c->arena_hugetlb_size;
    for (unsigned i = 0; i < 3 && bytes != 0; i++) {
        if (bytes % decimal[i] == 0) {
            bytes = bytes / decimal[i] << (30 - 10 * i);
            break;
        }
    }
    c->arena_hugetlb_size = bytes;
    return (bytes & (bytes - 1)) != 0 ? "argument must be the size of a huge page, such as 2m or 1g"
                                      : NULL;
}

const char *check_combination(const struct config *c) {
    if (c->arena_hugetlb && c->arena_thp) {
        return "'arena-hugetlb' and 'arena-thp' exclude each other: choose one kind of huge page";
    }
    if (c->arena_hugetlb_size != 0 && !c->arena_hugetlb) {
        return "'arena-hugetlb-size' needs 'arena-hugetlb'";
    }
    return NULL;
}

/* Clamped, not refused: clients of Redis rely on 'hz 1000' being taken. */
const char *check_hz(struct config *c) {
    c->hz = c->hz < HZ_MIN ? HZ_MIN : c->hz > HZ_MAX ? HZ_MAX : c->hz;
    return NULL;
}

static bool has_control_character(const char *s) {
    while (*s != '\0' && (unsigned char)*s >= ' ' && *s != 0x7F) {
        s++;
    }
    return *s != '\0';
}

const char *check_dbfilename(struct config *c) {
    const char *name = c->dbfilename;
    if (strchr(name, '/') != NULL) {
        return "dbfilename can't be a path, just a filename";
    }
    bool ok = name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
              strncmp(name, "temp-", 5) != 0 && strlen(name) <= 255 && !has_control_character(name);
    return ok ? NULL
              : "dbfilename must name a file, of 255 bytes at most, without control characters and "
                "not like 'temp-1.rdb'";
}

const char *check_percentiles(struct config *c) {
    const struct config_list *list = &c->latency_tracking_info_percentiles;
    for (size_t i = 0; i < list->count; i++) {
        double percentile;
        if (!number_parse_double(bytes_from_cstr(list->items[i]), &percentile)) {
            return "Invalid latency-tracking-info-percentiles parameters";
        }
        if (percentile < 0 || percentile > 100) {
            return "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]";
        }
    }
    return NULL;
}

const char *check_appendonly(struct config *c) {
    return c->appendonly ? "argument must be 'no': this version has no append-only file" : NULL;
}
