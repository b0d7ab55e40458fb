/* SPDX-License-Identifier: BSD-3-Clause */
/* The snapshot reader on arbitrary bytes. The first byte chooses how they are read; what is accepted
 * is sound: it passes the checks of the databases, is written, and read again as the same. */
#include <stdlib.h>

#include "base/crc64.h"
#include "base/hash.h"
#include "persist/reader.h"
#include "persist/writer.h"
#include "types/list.h"

#define DATABASES 4

enum how { SLOWLY = 1, UNKNOWN_LEN = 2, PAYLOAD = 4, COMPRESSED = 8 };

struct source {
    struct bytes left;
    size_t piece;
};

static enum status read_some(void *arg, char *ptr, size_t cap, size_t *len) {
    struct source *s = arg;
    size_t n = s->left.len < cap ? s->left.len : cap;
    n = n < s->piece ? n : s->piece;
    if (n != 0) {
        memcpy(ptr, s->left.ptr, n);
    }
    s->left = BYTES(s->left.ptr + n, s->left.len - n);
    *len = n;
    return ST_OK;
}

static enum status append(void *arg, const char *ptr, size_t len) {
    buf_append(arg, ptr, len);
    return ((struct buf *)arg)->failed ? ST_NOMEM : ST_OK;
}

static void must(bool condition) {
    if (!condition) {
        abort();
    }
}

static struct dbset *create(struct pages *pages) {
    struct type_env env = {.pages = pages,
                           .hash_packed_entries_max = 16,
                           .hash_packed_element_max = 64,
                           .set_int_entries_max = 32,
                           .set_packed_entries_max = 16,
                           .set_packed_element_max = 64,
                           .zset_packed_entries_max = 16,
                           .zset_packed_element_max = 64};
    struct dbset *set;
    list_limits(-1, &env);
    must(dbset_create(&env, DATABASES, &set) == ST_OK);
    set->now_ms = INT64_MIN; /* nothing is due */
    return set;
}

static enum status read_into(struct dbset *set, struct bytes file, unsigned how, bool checksum) {
    struct source source = {file, how & SLOWLY ? 13 : SIZE_MAX};
    struct reader_options options = {.read = read_some,
                                     .arg = &source,
                                     .total_bytes =
                                         how & UNKNOWN_LEN ? READER_UNKNOWN_LEN : file.len,
                                     .ignore_checksum = !checksum,
                                     .skip_unsupported = true,
                                     .keep_expired = true};
    struct reader_dbset to;
    struct reader_target target;
    struct reader_report report;
    reader_into_dbset(&to, set, &target);
    enum status st = reader_run(&options, &target, &report);
    must((st == ST_OK) == (report.error[0] == '\0'));
    return st;
}

static void check_all(struct dbset *set) {
    for (size_t i = 0; i < DATABASES; i++) {
        db_check(set->dbs[i]);
    }
}

static void fuzz_file(struct pages *pages, struct bytes file, unsigned how) {
    struct dbset *set = create(pages), *again = create(pages);
    enum status st = read_into(set, file, how, false);
    check_all(set);
    if (st == ST_OK) {
        struct buf out = {0};
        struct writer_options options = {.write = append,
                                         .arg = &out,
                                         .buffer_bytes = 1000,
                                         .compress = how & COMPRESSED,
                                         .checksum = true};
        struct writer *w;
        must(writer_create(&options, &w) == ST_OK);
        must(writer_dbset(w, set, 0) == ST_OK);
        writer_destroy(w);
        must(read_into(again, buf_bytes(&out), 0, true) == ST_OK);
        check_all(again);
        for (size_t i = 0; i < DATABASES; i++) {
            must(db_count(set->dbs[i]) == db_count(again->dbs[i]));
        }
        buf_deinit(&out);
    }
    dbset_destroy(set);
    dbset_destroy(again);
}

/* A checksum that is right, so that the value behind it is reached. */
static void fuzz_payload(struct pages *pages, struct bytes value) {
    struct dbset *set = create(pages);
    struct buf payload = {0}, hold = {0};
    struct value_image image;
    enum value_type type;
    char error[READER_ERROR_LEN];
    buf_append(&payload, value.ptr, value.len);
    buf_append(&payload, "\x0B\0", 2);
    uint64_t crc = crc64(0, payload.ptr, payload.len);
    buf_append(&payload, &crc, sizeof(crc));
    if (reader_payload(buf_bytes(&payload), &set->env, &hold, &type, &image, error) == ST_OK) {
        struct entry e;
        struct bytes key = BYTES_LIT("key");
        must(db_add(set->dbs[0], key, hash_bytes(key), type, &image, DB_NO_EXPIRY, &e) == ST_OK);
        check_all(set);
    }
    buf_deinit(&payload);
    buf_deinit(&hold);
    dbset_destroy(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct pages_options options = {.kind = PAGES_PLAIN, .chunk_bytes = (size_t)64 << 10};
    struct pages *pages;
    if (size == 0) {
        return 0;
    }
    hash_setup_seed(1);
    must(pages_create(&options, &pages) == ST_OK);
    struct bytes rest = BYTES((const char *)data + 1, size - 1);
    if (data[0] & PAYLOAD) {
        fuzz_payload(pages, rest);
    } else {
        fuzz_file(pages, rest, data[0]);
    }
    pages_destroy(pages);
    return 0;
}
