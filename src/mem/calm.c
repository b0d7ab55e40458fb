/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/calm.h"

bool calm_is_set;

void calm_set(bool on) {
    calm_is_set = on;
}
