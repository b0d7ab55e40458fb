/* SPDX-License-Identifier: BSD-3-Clause */
/* OBJECT and MEMORY: what is known of one key, and of the heap. */
#include "cmd/args.h"
#include "cmd/lookup.h"
#include "handlers_priv.h"
#include "mem/account.h"

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

void memory_usage_command(struct call *call) {
    struct entry e;
    for (size_t i = 3; i < call->argc; i++) {
        int64_t samples;
        if (!args_is(call, i, "SAMPLES") || i + 1 >= call->argc) {
            args_syntax_error(call);
            return;
        }
        if (!args_i64(call, ++i, &samples)) {
            return;
        }
        if (samples < 0) {
            args_syntax_error(call);
            return;
        }
    }
    if (find_object(call, &e)) {
        /* exact, from the arena's own counters, so SAMPLES has nothing to choose */
        reply_integer(&call->reply, (int64_t)entry_memory(&e));
    }
}

void memory_purge_command(struct call *call) {
    account_purge();
    reply_ok(&call->reply);
}

void memory_help_command(struct call *call) {
    static const char *const lines[] = {
        "PURGE", "    Gives free heap pages back to the kernel.", "USAGE <key> [SAMPLES <count>]",
        "    Bytes the key and its value take. The count is exact: every element is "
        "in it, whatever SAMPLES says.",
        NULL};
    args_help(call, lines);
}
