/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bytes.h"

static unsigned char lower(unsigned char c) {
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

int bytes_compare(struct bytes a, struct bytes b) {
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;
    if (order != 0) {
        return order;
    }
    return (a.len > b.len) - (a.len < b.len);
}

bool bytes_equal_nocase(struct bytes a, struct bytes b) {
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (lower((unsigned char)a.ptr[i]) != lower((unsigned char)b.ptr[i])) {
            return false;
        }
    }
    return true;
}

bool bytes_is(struct bytes a, const char *word) {
    return bytes_equal_nocase(a, bytes_from_cstr(word));
}

bool bytes_equal_secret(struct bytes secret, struct bytes given) {
    unsigned char diff = secret.len != given.len;
    for (size_t i = 0; i < given.len; i++) {
        unsigned char want = secret.len ? (unsigned char)secret.ptr[i % secret.len] : 0;
        diff |= (unsigned char)(want ^ (unsigned char)given.ptr[i]);
    }
    return diff == 0;
}

/* ---- glob ---------------------------------------------------------------------------------- */

/* Match one character class that starts after '['; *next is set behind its ']'. An unterminated
 * class ends with the pattern, as in Redis. */
static bool class_match(struct bytes p, size_t i, unsigned char c, bool nocase, size_t *next) {
    bool negate = i < p.len && p.ptr[i] == '^';
    bool hit = false;
    i += negate;
    for (; i < p.len && p.ptr[i] != ']'; i++) {
        unsigned char from = (unsigned char)p.ptr[i];
        if (from == '\\' && i + 1 < p.len) {
            from = (unsigned char)p.ptr[++i];
            hit |= nocase ? lower(from) == lower(c) : from == c;
        } else if (i + 2 < p.len && p.ptr[i + 1] == '-') {
            unsigned char to = (unsigned char)p.ptr[i + 2];
            unsigned char lo = from < to ? from : to;
            unsigned char hi = from < to ? to : from;
            i += 2;
            hit |= nocase ? lower(c) >= lower(lo) && lower(c) <= lower(hi) : c >= lo && c <= hi;
        } else {
            hit |= nocase ? lower(from) == lower(c) : from == c;
        }
    }
    *next = i < p.len ? i + 1 : i;
    return hit != negate;
}

bool bytes_glob_match(struct bytes p, struct bytes t, bool nocase) {
    size_t pi = 0, ti = 0;
    size_t star_pi = SIZE_MAX, star_ti = 0; /* after the last star, and the text it covers up to */
    while (ti < t.len || pi < p.len) {
        if (pi < p.len && p.ptr[pi] == '*') {
            star_pi = ++pi;
            star_ti = ti;
            continue;
        }
        if (pi < p.len && ti < t.len) {
            unsigned char pc = (unsigned char)p.ptr[pi], tc = (unsigned char)t.ptr[ti];
            size_t next = pi + 1;
            bool hit;
            if (pc == '?') {
                hit = true;
            } else if (pc == '[') {
                hit = class_match(p, pi + 1, tc, nocase, &next);
            } else {
                if (pc == '\\' && pi + 1 < p.len) {
                    pc = (unsigned char)p.ptr[pi + 1];
                    next = pi + 2;
                }
                hit = nocase ? lower(pc) == lower(tc) : pc == tc;
            }
            if (hit) {
                pi = next;
                ti++;
                continue;
            }
        }
        if (star_pi == SIZE_MAX || star_ti >= t.len) {
            return false;
        }
        pi = star_pi;
        ti = ++star_ti;
    }
    return true;
}
