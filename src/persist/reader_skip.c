/* SPDX-License-Identifier: BSD-3-Clause */
#include "reader_priv.h"

#define STREAM_ID_LEN 16
#define MODULE_NAME_LEN 9

static bool skip_len(struct reader *r) {
    uint64_t len;
    return get_len(r, &len);
}

static bool skip_lens(struct reader *r, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!skip_len(r)) {
            return false;
        }
    }
    return true;
}

static bool skip_bytes(struct reader *r, size_t n) {
    return input_take(r, n) != NULL;
}

/* Between two things that are passed over: nobody keeps a view, unless other keys wait. */
static void let_go(struct reader *r) {
    if (r->waiting_count == 0) {
        input_release(&r->in);
    }
}

/* ---- modules -------------------------------------------------------------------------------- */

/* Nine letters of 6 bits, high ones first, then 10 bits of version. */
static void module_name(uint64_t id, char name[MODULE_NAME_LEN + 1]) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    id >>= 10;
    for (size_t i = MODULE_NAME_LEN; i-- > 0; id >>= 6) {
        name[i] = letters[id & 63];
    }
    name[MODULE_NAME_LEN] = '\0';
}

static bool skip_module_values(struct reader *r) {
    uint64_t op;
    bool ok = true;
    while (ok) {
        let_go(r);
        if (!get_len(r, &op)) {
            return false;
        }
        switch (op) {
        case RDB_MODULE_EOF:
            return true;
        case RDB_MODULE_SINT:
        case RDB_MODULE_UINT:
            ok = skip_len(r);
            break;
        case RDB_MODULE_FLOAT:
            ok = skip_bytes(r, 4);
            break;
        case RDB_MODULE_DOUBLE:
            ok = skip_bytes(r, 8);
            break;
        case RDB_MODULE_STRING:
            ok = skip_string(r);
            break;
        default:
            ok = corrupt(r, "a module's value of an unknown kind");
        }
    }
    return false;
}

static bool skip_module(struct reader *r, unsigned char type) {
    uint64_t id;
    char name[MODULE_NAME_LEN + 1];
    if (!get_len(r, &id)) {
        return false;
    }
    module_name(id, name);
    if (type == RDB_MODULE) {
        return fault(r, ST_UNSUPPORTED, "a value of module %s, in a form that only it can read",
                     name);
    }
    if (!r->options->skip_unsupported) {
        return fault(r, ST_UNSUPPORTED, "a value of module %s", name);
    }
    r->report->skipped_modules++;
    return skip_module_values(r);
}

bool skip_module_aux(struct reader *r) {
    uint64_t id;
    if (!get_len(r, &id) || !skip_module_values(r)) {
        return false;
    }
    r->report->skipped_module_aux++;
    return true;
}

/* ---- streams -------------------------------------------------------------------------------- */

static bool skip_consumer(struct reader *r, unsigned char type) {
    uint64_t pending;
    if (!skip_string(r) || !skip_bytes(r, type == RDB_STREAM_3 ? 16 : 8) ||
        !get_count(r, STREAM_ID_LEN, &pending)) {
        return false;
    }
    for (uint64_t i = 0; i < pending; i++) {
        let_go(r);
        if (!skip_bytes(r, STREAM_ID_LEN)) {
            return false;
        }
    }
    return true;
}

static bool skip_group(struct reader *r, unsigned char type) {
    uint64_t pending, consumers;
    if (!skip_string(r) || !skip_lens(r, type == RDB_STREAM ? 2 : 3) ||
        !get_count(r, STREAM_ID_LEN + 9, &pending)) {
        return false;
    }
    for (uint64_t i = 0; i < pending; i++) {
        let_go(r);
        if (!skip_bytes(r, STREAM_ID_LEN + 8) || !skip_len(r)) {
            return false;
        }
    }
    if (!get_count(r, 10, &consumers)) {
        return false;
    }
    for (uint64_t i = 0; i < consumers; i++) {
        if (!skip_consumer(r, type)) {
            return false;
        }
    }
    return true;
}

static bool skip_stream(struct reader *r, unsigned char type) {
    uint64_t nodes, groups;
    if (!get_count(r, 2, &nodes)) {
        return false;
    }
    for (uint64_t i = 0; i < nodes; i++) {
        let_go(r);
        if (!skip_string(r) || !skip_string(r)) {
            return false;
        }
    }
    /* elements, last id; first id, highest deleted id, elements ever added */
    if (!skip_lens(r, type == RDB_STREAM ? 3 : 8) || !get_count(r, 5, &groups)) {
        return false;
    }
    for (uint64_t i = 0; i < groups; i++) {
        if (!skip_group(r, type)) {
            return false;
        }
    }
    return true;
}

/* ---- hashes with expiring fields ------------------------------------------------------------- */

static bool skip_expiring_hash(struct reader *r, unsigned char type) {
    uint64_t count;
    if (!skip_bytes(r, 8)) {
        return false;
    }
    if (type == RDB_HASH_LISTPACK_EX) {
        return skip_string(r);
    }
    if (!get_count(r, 3, &count)) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        let_go(r);
        if (!skip_len(r) || !skip_string(r) || !skip_string(r)) {
            return false;
        }
    }
    return true;
}

/* ---- all ------------------------------------------------------------------------------------ */

bool skip_value(struct reader *r, unsigned char type) {
    bool is_stream = type == RDB_STREAM || type == RDB_STREAM_2 || type == RDB_STREAM_3;
    if (type == RDB_MODULE || type == RDB_MODULE_2) {
        return skip_module(r, type);
    }
    if (type == RDB_HASH_METADATA_PRE_GA || type == RDB_HASH_LISTPACK_EX_PRE_GA) {
        return fault(r, ST_UNSUPPORTED, "in a form that no release has written");
    }
    if (!r->options->skip_unsupported) {
        return fault(r, ST_UNSUPPORTED, "this server has no such type");
    }
    if (is_stream) {
        r->report->skipped_streams++;
        return skip_stream(r, type);
    }
    r->report->skipped_hashes++;
    return skip_expiring_hash(r, type);
}

/* The library's name is in its source: "#!lua name=mylib". */
static bool refuse_function(struct reader *r, struct bytes text) {
    const char *line_end = text.len != 0 ? memchr(text.ptr, '\n', text.len) : NULL;
    size_t len = line_end != NULL ? (size_t)(line_end - text.ptr) : text.len;
    return fault(r, ST_UNSUPPORTED, "function library '%.*s': this server has no functions",
                 (int)(len < 64 ? len : 64), text.len != 0 ? text.ptr : "");
}

bool skip_function(struct reader *r, bool pre_release) {
    struct bytes text;
    uint64_t has_description;
    if (!get_string(r, &text)) {
        return false;
    }
    if (!r->options->skip_unsupported) {
        return refuse_function(r, text);
    }
    r->report->skipped_functions++;
    return !pre_release || (skip_string(r) && get_len(r, &has_description) &&
                            (has_description == 0 || skip_string(r)) && skip_string(r));
}
