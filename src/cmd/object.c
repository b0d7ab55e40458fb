/* SPDX-License-Identifier: BSD-3-Clause */
/* OBJECT: what is known of one key. */
#include "cmd/args.h"
#include "cmd/lookup.h"
#include "handlers_priv.h"

/* OBJECT looks without touching. False: there is no key, null was replied. */
static bool find_object(struct call *call, struct entry *e) {
    if (!lookup_key(call, 2, DB_NO_TOUCH, e)) {
        reply_null(&call->reply);
        return false;
    }
    return true;
}

void object_encoding_command(struct call *call) {
    struct entry e;
    if (find_object(call, &e)) {
        reply_bulk_cstr(&call->reply, value_encoding_name(&e.value));
    }
}

/* Values are never shared. */
void object_refcount_command(struct call *call) {
    struct entry e;
    if (find_object(call, &e)) {
        reply_integer(&call->reply, 1);
    }
}

void object_idletime_command(struct call *call) {
    struct entry e;
    if (find_object(call, &e)) {
        reply_integer(&call->reply, entry_idle_seconds(&e));
    }
}

void object_freq_command(struct call *call) {
    struct entry e;
    if (find_object(call, &e)) {
        reply_error(
            &call->reply,
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please "
            "note that when switching between policies at runtime LRU and LFU data will take "
            "some time to adjust.");
    }
}

void object_help_command(struct call *call) {
    static const char *const lines[] = {
        "ENCODING <key>",
        "    The form in which the key's value is stored.",
        "FREQ <key>",
        "    How often the key is used; needs an LFU policy, which is not available.",
        "IDLETIME <key>",
        "    Seconds since the key was last used.",
        "REFCOUNT <key>",
        "    How many times the value is referred to; always 1.",
        NULL};
    args_help(call, lines);
}
