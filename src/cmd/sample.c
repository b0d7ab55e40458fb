/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample_priv.h"

#include <string.h>

#include "mem/account.h"

bool picks_init(struct picks *p, uint64_t count) {
    size_t slots = 16;
    while (slots < count * 2) {
        slots *= 2;
    }
    p->mask = slots - 1;
    p->slots = account_alloc(ACCOUNT_OTHER, slots * sizeof(*p->slots));
    if (p->slots != NULL) {
        memset(p->slots, 0, slots * sizeof(*p->slots));
    }
    return p->slots != NULL;
}

bool picks_add(struct picks *p, uint64_t id) {
    size_t slot = (id * UINT64_C(0x9E3779B97F4A7C15) >> 20) & p->mask;
    while (p->slots[slot] != 0 && p->slots[slot] != id) {
        slot = (slot + 1) & p->mask;
    }
    bool is_new = p->slots[slot] == 0;
    p->slots[slot] = id;
    return is_new;
}

void picks_deinit(struct picks *p) {
    account_free(ACCOUNT_OTHER, p->slots);
}
