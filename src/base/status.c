/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/status.h"

const char *status_text(enum status st) {
    switch (st) {
#define STATUS_CASE(name, value, text)                                                             \
    case name:                                                                                     \
        return text;
        STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}
