/* SPDX-License-Identifier: BSD-3-Clause */
#include "persist/writer.h"

#include <liblzf/lzf.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crc64.h"
#include "base/number.h"
#include "mem/account.h"
#include "writer_priv.h"

#define BUFFER_BYTES ((size_t)256 << 10)
#define BUFFER_BYTES_MIN 64
#define SERVER_VERSION "7.0.15" /* whose files these are like: what redis-ver tells */

/* ---- pieces --------------------------------------------------------------------------------- */

/* To the sink, through the checksum. */
static bool sink(struct writer *w, const char *ptr, size_t len) {
    if (w->st == ST_OK && len != 0) {
        if (w->options.checksum) {
            w->crc = crc64(w->crc, ptr, len);
        }
        w->st = w->options.write(w->options.arg, ptr, len);
        w->sunk_bytes += w->st == ST_OK ? len : 0;
    }
    return w->st == ST_OK;
}

bool put_flush(struct writer *w) {
    bool ok = sink(w, w->buffer, w->len);
    w->len = 0;
    return ok;
}

void put_bytes(struct writer *w, const void *ptr, size_t len) {
    if (LIKELY(w->cap - w->len >= len)) {
        if (len != 0) {
            memcpy(w->buffer + w->len, ptr, len);
            w->len += len;
        }
        return;
    }
    if (put_flush(w) && len < w->cap) {
        memcpy(w->buffer, ptr, len);
        w->len = len;
    } else {
        sink(w, ptr, len);
    }
}

void put_byte(struct writer *w, unsigned char byte) {
    char *p = put_room(w, 1);
    if (p != NULL) {
        *p = (char)byte;
        w->len++;
    }
}

static void put_little(struct writer *w, unsigned char head, uint64_t v, size_t size) {
    char *p = put_room(w, 1 + size);
    if (p != NULL) {
        *p++ = (char)head;
        for (size_t i = 0; i < size; i++) {
            p[i] = (char)(v >> 8 * i);
        }
        w->len += 1 + size;
    }
}

static void put_big(struct writer *w, unsigned char head, uint64_t v, size_t size) {
    put_little(w, head, __builtin_bswap64(v) >> (64 - 8 * size), size);
}

void put_u64(struct writer *w, uint64_t v) {
    char *p = put_room(w, sizeof(v));
    if (p != NULL) {
        for (size_t i = 0; i < sizeof(v); i++) {
            p[i] = (char)(v >> 8 * i);
        }
        w->len += sizeof(v);
    }
}

void put_double(struct writer *w, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    put_u64(w, bits);
}

void put_len(struct writer *w, uint64_t len) {
    if (LIKELY(len < 1 << 6)) {
        put_byte(w, (unsigned char)len);
    } else if (len < 1 << 14) {
        put_big(w, (unsigned char)(RDB_LEN_14 | len >> 8), len & 0xFF, 1);
    } else if (len <= UINT32_MAX) {
        put_big(w, RDB_LEN_32, len, 4);
    } else {
        put_big(w, RDB_LEN_64, len, 8);
    }
}

/* ---- strings -------------------------------------------------------------------------------- */

/* A 32-bit integer's canonical text as an integer. */
static bool put_as_integer(struct writer *w, struct bytes s) {
    int64_t n;
    if (!may_be_integer(s, sizeof("-2147483648") - 1) || !number_parse_i64(s, &n) ||
        n != (int32_t)n) {
        return false;
    }
    enum rdb_special form = n == (int8_t)n ? RDB_INT8 : n == (int16_t)n ? RDB_INT16 : RDB_INT32;
    put_little(w, (unsigned char)(RDB_LEN_SPECIAL | form), (uint64_t)n, (size_t)1 << form);
    return true;
}

/* False: no shorter, or no memory to find out. */
static bool put_compressed(struct writer *w, struct bytes s) {
    if (s.len < RDB_COMPRESS_LEN_MIN || s.len > RDB_COMPRESS_LEN_MAX) {
        return false;
    }
    size_t out_len = s.len - 4; /* what the two lengths in front take at least */
    if (out_len > w->lzf_cap) {
        char *lzf = account_realloc(ACCOUNT_OTHER, w->lzf, out_len);
        if (lzf == NULL) {
            return false;
        }
        w->lzf = lzf;
        w->lzf_cap = out_len;
    }
    out_len = lzf_compress(s.ptr, (unsigned)s.len, w->lzf, (unsigned)out_len);
    if (out_len == 0) {
        return false;
    }
    put_byte(w, RDB_LEN_SPECIAL | RDB_LZF);
    put_len(w, out_len);
    put_len(w, s.len);
    put_bytes(w, w->lzf, out_len);
    return true;
}

void put_blob(struct writer *w, struct bytes s) {
    if (!w->options.compress || !put_compressed(w, s)) {
        put_len(w, s.len);
        put_bytes(w, s.ptr, s.len);
    }
}

void put_string(struct writer *w, struct bytes s) {
    if (!put_as_integer(w, s)) {
        put_blob(w, s);
    }
}

/* ---- the file ------------------------------------------------------------------------------- */

enum status writer_create(const struct writer_options *options, struct writer **out) {
    struct writer *w = account_alloc(ACCOUNT_OTHER, sizeof(*w));
    if (w == NULL) {
        return ST_NOMEM;
    }
    *w = (struct writer){.options = *options};
    w->cap = options->buffer_bytes == 0                 ? BUFFER_BYTES
             : options->buffer_bytes < BUFFER_BYTES_MIN ? BUFFER_BYTES_MIN
                                                        : options->buffer_bytes;
    w->buffer = account_alloc(ACCOUNT_OTHER, w->cap);
    if (w->buffer == NULL) {
        account_free(ACCOUNT_OTHER, w);
        return ST_NOMEM;
    }
    *out = w;
    return ST_OK;
}

void writer_destroy(struct writer *w) {
    if (w != NULL) {
        account_free(ACCOUNT_OTHER, w->lzf);
        buf_deinit(&w->packed);
        account_free(ACCOUNT_OTHER, w->buffer);
        account_free(ACCOUNT_OTHER, w);
    }
}

enum status writer_begin(struct writer *w) {
    put_bytes(w, RDB_WRITE_HEADER, RDB_HEADER_LEN);
    return w->st;
}

enum status writer_aux(struct writer *w, const char *name, struct bytes value) {
    put_byte(w, RDB_OP_AUX);
    put_string(w, bytes_from_cstr(name));
    put_string(w, value);
    return w->st;
}

enum status writer_aux_number(struct writer *w, const char *name, int64_t value) {
    char text[NUMBER_I64_MAX_LEN];
    return writer_aux(w, name, BYTES(text, number_format_i64(text, value)));
}

enum status writer_select(struct writer *w, size_t number, uint64_t keys, uint64_t expiring) {
    put_byte(w, RDB_OP_SELECT_DB);
    put_len(w, number);
    put_byte(w, RDB_OP_RESIZE_DB);
    put_len(w, keys);
    put_len(w, expiring);
    return w->st;
}

enum status writer_key(struct writer *w, const struct entry *e) {
    if (e->expire_ms != DB_NO_EXPIRY) {
        put_byte(w, RDB_OP_EXPIRE_MS);
        put_u64(w, (uint64_t)e->expire_ms);
    }
    enum rdb_type type = put_value_type(&e->value);
    put_byte(w, (unsigned char)type);
    put_string(w, e->key);
    put_value(w, &e->value, type);
    w->keys += w->st == ST_OK;
    return w->st;
}

enum status writer_end(struct writer *w) {
    put_byte(w, RDB_OP_EOF);
    if (put_flush(w)) {
        put_u64(w, w->options.checksum ? w->crc : 0);
        put_flush(w);
    }
    return w->st;
}

static void visit_key(void *arg, struct entry *e) {
    struct writer *w = arg;
    if (w->st == ST_OK && writer_key(w, e) != ST_OK) {
        return; /* it stays in w->st */
    }
}

static void put_usual_aux(struct writer *w, size_t used_bytes) {
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"redis-bits", (int64_t)sizeof(void *) * 8},
                   {"ctime", clock_realtime_ms() / 1000},
                   {"used-mem", (int64_t)used_bytes}};
    enum status st = writer_aux(w, "redis-ver", BYTES_LIT(SERVER_VERSION));
    for (size_t i = 0; i < ARRAY_LEN(numbers) && st == ST_OK; i++) {
        st = writer_aux_number(w, numbers[i].name, numbers[i].value);
    }
    if (st == ST_OK) {
        st = writer_aux(w, "goblin-version", BYTES_LIT(GC_VERSION));
    }
}

enum status writer_dbset(struct writer *w, const struct dbset *set, size_t used_bytes) {
    enum status st = writer_begin(w);
    put_usual_aux(w, used_bytes);
    for (size_t i = 0; i < set->count && st == ST_OK; i++) {
        struct db *db = set->dbs[i];
        if (db_count(db) != 0) {
            st = writer_select(w, i, db_count(db), order_count(&db->expiries));
            db_each(db, visit_key, w);
        }
    }
    return writer_end(w);
}

void writer_get_stats(const struct writer *w, struct writer_stats *out) {
    *out = (struct writer_stats){.bytes = w->sunk_bytes, .keys = w->keys};
}

/* ---- payloads ------------------------------------------------------------------------------- */

static enum status append_to_buf(void *arg, const char *ptr, size_t len) {
    struct buf *out = arg;
    if (buf_reserve(out, len) != ST_OK) {
        return ST_NOMEM;
    }
    buf_append(out, ptr, len);
    return ST_OK;
}

/* A type and its value to a sink. NULL: out of memory; what else fails is in w->st. */
static struct writer *write_value(const struct writer_options *options, const struct value *v) {
    struct writer *w;
    if (writer_create(options, &w) != ST_OK) {
        return NULL;
    }
    enum rdb_type type = put_value_type(v);
    put_byte(w, (unsigned char)type);
    put_value(w, v, type);
    return w;
}

enum status writer_payload(const struct value *v, bool compress, struct buf *out) {
    size_t len_before = out->len;
    struct writer_options options = {.write = append_to_buf,
                                     .arg = out,
                                     .buffer_bytes = RDB_LISTPACK_BYTES_MAX,
                                     .compress = compress,
                                     .checksum = true};
    struct writer *w = write_value(&options, v);
    if (w == NULL) {
        return ST_NOMEM;
    }
    put_byte(w, RDB_WRITE_VERSION & 0xFF);
    put_byte(w, RDB_WRITE_VERSION >> 8);
    if (put_flush(w)) {
        put_u64(w, w->crc);
        put_flush(w);
    }
    enum status st = w->st;
    writer_destroy(w);
    if (st != ST_OK) {
        out->len = len_before;
    }
    return st;
}

static enum status drop_bytes(void *arg, const char *ptr, size_t len) {
    return ST_OK;
}

enum status writer_value_bytes(const struct value *v, bool compress, uint64_t *bytes) {
    struct writer_options options = {
        .write = drop_bytes, .buffer_bytes = RDB_LISTPACK_BYTES_MAX, .compress = compress};
    struct writer *w = write_value(&options, v);
    if (w == NULL) {
        return ST_NOMEM;
    }
    put_flush(w);
    enum status st = w->st;
    *bytes = w->sunk_bytes - 1; /* the type */
    writer_destroy(w);
    return st;
}
