/* SPDX-License-Identifier: BSD-3-Clause */
#include "persist/reader.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/crc64.h"
#include "base/hash.h"
#include "mem/account.h"
#include "reader_priv.h"

#define KEY_SHOWN_MAX 64
#define KEY_BYTES_MIN 3 /* type, empty name, empty value */
/* Waiting keys keep what they were read from; past this they are handed over. */
#define HELD_BYTES_MAX ((size_t)1 << 20)

/* ---- faults --------------------------------------------------------------------------------- */

/* Append text whose bytes may be anything. */
static size_t append_shown(char *to, size_t cap, struct bytes text) {
    size_t len = 0;
    for (size_t i = 0; i < text.len && i < KEY_SHOWN_MAX && len + 5 < cap; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        len += (size_t)snprintf(to + len, cap - len, isprint(c) && c < 128 ? "%c" : "\\x%02x", c);
    }
    if (text.len > KEY_SHOWN_MAX && len + 4 < cap) {
        len += (size_t)snprintf(to + len, cap - len, "...");
    }
    return len;
}

/* "hash ziplist of key 'x' at offset 1234: an entry overruns" */
bool fault(struct reader *r, enum status st, const char *fmt, ...) {
    char *error = r->report->error, reason[160];
    size_t cap = sizeof(r->report->error), len;
    if (r->st != ST_OK) {
        return false;
    }
    r->st = st;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof(reason), fmt, ap);
    va_end(ap);
    len = (size_t)snprintf(error, cap, "%s", r->what);
    if (r->at != NULL && r->at->key.len != 0) {
        len += (size_t)snprintf(error + len, cap - len, " of key '");
        len += append_shown(error + len, cap - len, buf_bytes(&r->at->key));
        len += (size_t)snprintf(error + len, cap - len, "'");
    }
    len += (size_t)snprintf(error + len, cap - len,
                            " at offset %llu: ", (unsigned long long)r->item_off);
    for (size_t i = 0; reason[i] != '\0' && len + 1 < cap; i++) {
        unsigned char c = (unsigned char)reason[i];
        error[len++] = isprint(c) && c < 128 ? (char)c : '?';
    }
    error[len] = '\0';
    return false;
}

bool corrupt(struct reader *r, const char *text) {
    return fault(r, ST_CORRUPT, "%s", text);
}

/* ---- keys that wait ------------------------------------------------------------------------- */

/* The current one is the first that is not waiting yet. */
static struct waiting *current(struct reader *r) {
    return &r->waiting[r->waiting_count];
}

static void drop_value(struct waiting *w) {
    if (w->out.image != NULL && w->out.type == VALUE_STRING) {
        value_image_discard(VALUE_STRING, w->out.image);
    }
    w->out.image = NULL;
    build_drop(&w->build);
}

static bool hand_over(struct reader *r, struct waiting *w) {
    enum status st = r->target->add(r->target->arg, &w->out);
    if (st != ST_OK) {
        r->at = w;
        r->what = "key";
        r->item_off = w->off;
        return fault(r, st == ST_EXISTS ? ST_CORRUPT : st, "%s",
                     st == ST_EXISTS ? "the key is there twice" : status_text(st));
    }
    w->out.image = NULL;
    w->build.v.len = 0; /* the object is the target's */
    r->report->keys++;
    r->report->keys_by_type[w->out.type]++;
    r->report->expiring += w->out.expire_ms != DB_NO_EXPIRY;
    return true;
}

/* Hand over what waits; the current key is not among it and stays. */
bool reader_flush(struct reader *r) {
    size_t count = r->waiting_count;
    struct waiting *reading_now = r->at;
    for (size_t i = 0; i < count && r->target->prefetch != NULL; i++) {
        r->target->prefetch(r->target->arg, r->waiting[i].out.hash, true);
    }
    for (size_t i = 0; i < count; i++) {
        if (!hand_over(r, &r->waiting[i])) {
            return false;
        }
    }
    if (reading_now != NULL && count != 0) { /* its value has not begun: its name moves */
        struct buf name = reading_now->key;
        reading_now->key = r->waiting[0].key;
        r->waiting[0].key = name;
        r->waiting[0].off = reading_now->off;
        r->at = &r->waiting[0];
    }
    r->waiting_count = 0;
    input_release(&r->in);
    return true;
}

/* What stands before a key. */
struct key_head {
    int64_t expire_ms;
    uint64_t idle_seconds;
};

static const struct key_head no_head = {.expire_ms = DB_NO_EXPIRY};

/* The current key's value is complete. */
static bool queue(struct reader *r, const struct key_head *head) {
    struct waiting *w = r->at;
    if (w->build.v.type != VALUE_STRING) {
        value_image_of(&w->build.v, &w->image);
    }
    w->out.type = w->build.v.type;
    w->out.key = buf_bytes(&w->key);
    w->out.image = &w->image;
    w->out.expire_ms = head->expire_ms;
    w->out.idle_seconds = head->idle_seconds;
    w->out.hash = hash_bytes(w->out.key);
    if (r->target->prefetch != NULL) {
        r->target->prefetch(r->target->arg, w->out.hash, false);
    }
    r->waiting_count++;
    r->at = NULL;
    return (r->waiting_count < r->waiting_cap && r->in.held_bytes < HELD_BYTES_MAX) ||
           reader_flush(r);
}

/* ---- sections ------------------------------------------------------------------------------- */

static bool is_due(const struct reader *r, int64_t expire_ms) {
    return expire_ms != DB_NO_EXPIRY && !r->options->keep_expired && expire_ms < r->options->now_ms;
}

static bool get_key(struct reader *r, struct bytes *out) {
    reading(r, "key");
    if (!get_string(r, out)) {
        return false;
    }
    struct buf *key = &r->at->key;
    buf_clear(key);
    buf_append(key, out->ptr, out->len);
    return !key->failed || fault(r, ST_NOMEM, "out of memory");
}

static bool get_pair(struct reader *r, unsigned char type, const struct key_head *head) {
    struct bytes key;
    bool kept;
    r->at = current(r);
    r->at->off = input_off(&r->in);
    buf_clear(&r->at->key);
    if (!get_key(r, &key) || !get_value(r, type, &kept)) {
        return false;
    }
    if (kept && !is_due(r, head->expire_ms)) {
        return queue(r, head);
    }
    r->report->expired += kept;
    if (kept && r->at->build.v.type == VALUE_STRING) {
        value_image_discard(VALUE_STRING, &r->at->image);
    }
    drop_value(r->at);
    r->at = NULL;
    if (r->waiting_count == 0) {
        input_release(&r->in);
    }
    return true;
}

static bool get_expire(struct reader *r, bool in_seconds, int64_t *expiry) {
    uint64_t ms;
    uint32_t s;
    reading(r, "expiry");
    if (in_seconds ? !get_u32(r, &s) : !get_u64(r, &ms)) {
        return false;
    }
    *expiry = in_seconds ? (int64_t)(int32_t)s * 1000 : (int64_t)ms;
    if (*expiry == DB_NO_EXPIRY) {
        *expiry += 1; /* as good a time in the past */
    }
    return true;
}

static bool get_aux(struct reader *r) {
    struct bytes name, value;
    reading(r, "aux field");
    if (!get_string(r, &name) || !get_string(r, &value)) {
        return false;
    }
    if (r->target->aux != NULL) {
        r->target->aux(r->target->arg, name, value);
    }
    return true;
}

static bool select_db(struct reader *r, uint64_t number, uint64_t keys, uint64_t expiring) {
    enum status st = r->target->select(r->target->arg, number, keys, expiring);
    if (st == ST_RANGE) {
        return fault(r, ST_UNSUPPORTED, "there is no database %llu here",
                     (unsigned long long)number);
    }
    return st == ST_OK || fault(r, st, "%s", status_text(st));
}

/* The number, and the sizes when they follow. */
static bool get_select(struct reader *r, uint64_t *number) {
    reading(r, "database number");
    return reader_flush(r) && get_len(r, number) && select_db(r, *number, 0, 0);
}

static bool get_resize(struct reader *r, uint64_t number) {
    uint64_t keys, expiring;
    reading(r, "database size");
    if (!reader_flush(r) || !get_len(r, &keys) || !get_len(r, &expiring)) {
        return false;
    }
    return select_db(r, number, input_believe(&r->in, keys, KEY_BYTES_MIN), expiring);
}

static bool get_lens(struct reader *r, const char *what, size_t count) {
    uint64_t len;
    reading(r, what);
    for (size_t i = 0; i < count; i++) {
        if (!get_len(r, &len)) {
            return false;
        }
    }
    return true;
}

static bool get_idle(struct reader *r, uint64_t *seconds) {
    reading(r, "idle time");
    return get_len(r, seconds);
}

static bool get_frequency(struct reader *r) {
    unsigned char frequency;
    reading(r, "access frequency");
    return get_byte(r, &frequency);
}

static bool get_function(struct reader *r, bool pre_release) {
    reading(r, "function library");
    return skip_function(r, pre_release);
}

static bool get_module_aux(struct reader *r) {
    reading(r, "module data");
    return skip_module_aux(r);
}

/* Sections until the end mark. */
static bool get_sections(struct reader *r) {
    struct key_head head = no_head; /* of the next key */
    uint64_t number = 0;
    bool ok = select_db(r, 0, 0, 0);
    while (ok) {
        unsigned char op;
        reading(r, "section");
        if (!get_byte(r, &op)) {
            return false;
        }
        switch (op) {
        case RDB_OP_EOF:
            return reader_flush(r);
        case RDB_OP_SELECT_DB:
            ok = get_select(r, &number);
            break;
        case RDB_OP_RESIZE_DB:
            ok = get_resize(r, number);
            break;
        case RDB_OP_EXPIRE_S:
        case RDB_OP_EXPIRE_MS:
            ok = get_expire(r, op == RDB_OP_EXPIRE_S, &head.expire_ms);
            break;
        case RDB_OP_IDLE:
            ok = get_idle(r, &head.idle_seconds);
            break;
        case RDB_OP_FREQ:
            ok = get_frequency(r);
            break;
        case RDB_OP_AUX:
            ok = get_aux(r);
            break;
        case RDB_OP_SLOT_INFO:
            ok = get_lens(r, "slot sizes", 3);
            break;
        case RDB_OP_FUNCTION:
        case RDB_OP_FUNCTION_PRE_GA:
            ok = get_function(r, op == RDB_OP_FUNCTION_PRE_GA);
            break;
        case RDB_OP_MODULE_AUX:
            ok = get_module_aux(r);
            break;
        default:
            ok = get_pair(r, op, &head);
            head = no_head;
        }
    }
    return false;
}

/* ---- the file ------------------------------------------------------------------------------- */

static bool get_header(struct reader *r) {
    reading(r, "header");
    const char *p = input_take(r, RDB_HEADER_LEN);
    if (p == NULL) {
        return false;
    }
    if (memcmp(p, RDB_MAGIC, sizeof(RDB_MAGIC) - 1) != 0) {
        return corrupt(r, "this is no RDB file");
    }
    for (size_t i = sizeof(RDB_MAGIC) - 1; i < RDB_HEADER_LEN; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return corrupt(r, "the version is not a number");
        }
        r->report->version = r->report->version * 10 + (unsigned)(p[i] - '0');
    }
    if (r->report->version == 0 || r->report->version > RDB_READ_VERSION_MAX) {
        return fault(r, ST_UNSUPPORTED, "RDB version %u; this server reads 1 to %d",
                     r->report->version, RDB_READ_VERSION_MAX);
    }
    return true;
}

static bool get_checksum(struct reader *r) {
    uint64_t stored, computed;
    if (r->report->version < RDB_CHECKSUM_SINCE) {
        return true;
    }
    reading(r, "checksum");
    computed = input_checksum(&r->in);
    if (!get_u64(r, &stored)) {
        return false;
    }
    if (stored == 0 || r->options->ignore_checksum) {
        return true;
    }
    r->report->checksum_compared = true;
    return stored == computed ||
           fault(r, ST_CORRUPT, "%016llx is written, the bytes before give %016llx",
                 (unsigned long long)stored, (unsigned long long)computed);
}

static bool get_end(struct reader *r) {
    bool at_end;
    r->report->bytes = input_off(&r->in);
    reading(r, "end");
    return input_at_end(r, &at_end) && (at_end || corrupt(r, "bytes follow it"));
}

static struct reader *create(const struct reader_options *options,
                             const struct reader_target *target, struct reader_report *report,
                             size_t waiting_cap) {
    size_t bytes = sizeof(struct reader) + waiting_cap * sizeof(struct waiting);
    struct reader *r = account_alloc(ACCOUNT_OTHER, bytes);
    *report = (struct reader_report){0};
    if (r == NULL) {
        snprintf(report->error, sizeof(report->error), "out of memory");
        return NULL;
    }
    memset(r, 0, bytes);
    r->options = options;
    r->target = target;
    r->report = report;
    r->what = "start";
    r->waiting_cap = waiting_cap;
    for (size_t i = 0; i < waiting_cap; i++) {
        build_init(&r->waiting[i].build, target->env);
    }
    return r;
}

static void destroy(struct reader *r) {
    for (size_t i = 0; i < r->waiting_cap; i++) {
        drop_value(&r->waiting[i]);
        build_deinit(&r->waiting[i].build);
        buf_deinit(&r->waiting[i].key);
    }
    input_deinit(&r->in);
    account_free(ACCOUNT_OTHER, r);
}

enum status reader_run(const struct reader_options *options, const struct reader_target *target,
                       struct reader_report *report) {
    struct reader *r = create(options, target, report, BATCH);
    if (r == NULL) {
        return ST_NOMEM;
    }
    bool ok = input_init(r) && get_header(r) && get_sections(r) && get_checksum(r) && get_end(r);
    enum status st = r->st;
    assert(ok == (st == ST_OK));
    (void)ok;
    destroy(r);
    return st;
}

/* ---- payloads ------------------------------------------------------------------------------- */

static enum status read_bytes(void *arg, char *ptr, size_t cap, size_t *len) {
    struct bytes *left = arg;
    *len = left->len < cap ? left->len : cap;
    memcpy(ptr, left->ptr, *len);
    *left = BYTES(left->ptr + *len, left->len - *len);
    return ST_OK;
}

static uint64_t little(const char *p, size_t size) {
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++) {
        v |= (uint64_t)(unsigned char)p[i] << 8 * i;
    }
    return v;
}

/* Version and checksum, which stand last. *value is what is before. */
static bool check_footer(struct bytes payload, struct bytes *value) {
    if (payload.len <= RDB_PAYLOAD_FOOTER_LEN) {
        return false;
    }
    value->ptr = payload.ptr;
    value->len = payload.len - RDB_PAYLOAD_FOOTER_LEN;
    return little(payload.ptr + value->len, 2) <= RDB_READ_VERSION_MAX &&
           crc64(0, payload.ptr, value->len + 2) == little(payload.ptr + value->len + 2, 8);
}

/* The image of what was read, on its own: all that the reader holds goes. */
static bool give_image(struct reader *r, struct buf *hold, struct value_image *image) {
    struct waiting *w = r->at;
    if (w->build.v.type != VALUE_STRING) {
        value_image_of(&w->build.v, &w->image);
    }
    image->encoding = w->image.encoding;
    if (image->encoding == VALUE_HEAP || w->image.data.ptr == w->image.small) {
        memcpy(image->small, w->image.data.ptr, w->image.data.len);
        image->data = BYTES(image->small, w->image.data.len);
    } else {
        buf_clear(hold);
        buf_append(hold, w->image.data.ptr, w->image.data.len);
        if (hold->failed) {
            return fault(r, ST_NOMEM, "out of memory");
        }
        image->data = buf_bytes(hold);
    }
    w->build.v.len = 0; /* the object is the caller's */
    return true;
}

static bool get_payload(struct reader *r, struct buf *hold, struct value_image *image) {
    unsigned char type;
    bool kept;
    r->at = current(r);
    reading(r, "payload");
    return input_init(r) && get_byte(r, &type) && get_value(r, type, &kept) &&
           (kept || corrupt(r, "it is empty")) &&
           (input_left(&r->in) == 0 || corrupt(r, "bytes follow it")) && give_image(r, hold, image);
}

enum status reader_payload(struct bytes payload, const struct type_env *env, struct buf *hold,
                           enum value_type *type, struct value_image *image,
                           char error[READER_ERROR_LEN]) {
    struct bytes value;
    struct reader_report report;
    struct reader_target target;
    if (!check_footer(payload, &value)) {
        snprintf(error, READER_ERROR_LEN, "version or checksum of the payload are wrong");
        return ST_SYNTAX;
    }
    struct reader_options options = {
        .read = read_bytes, .arg = &value, .total_bytes = value.len, .keep_expired = true};
    reader_into_nothing(env, &target);
    struct reader *r = create(&options, &target, &report, 1);
    if (r == NULL) {
        snprintf(error, READER_ERROR_LEN, "out of memory");
        return ST_NOMEM;
    }
    if (get_payload(r, hold, image)) {
        *type = r->at->build.v.type;
    } else if (r->at->build.v.type == VALUE_STRING && r->at->image.data.ptr != NULL) {
        value_image_discard(VALUE_STRING, &r->at->image);
    }
    enum status st = r->st;
    snprintf(error, READER_ERROR_LEN, "%s", report.error);
    destroy(r);
    return st;
}
