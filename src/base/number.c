/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "decimal_priv.h"

#define REAL_TEXT_MAX NUMBER_REAL_MAX_LEN /* what number_format_real writes must read back */
#define REAL_DIGITS_MAX 17                /* significant digits that tell any two doubles apart */
#define DIGITS_FULL 1000000000000000000   /* 10^18: one more digit still fits 64 bits */
#define REAL_AS_INTEGER_MAX 4611686018427387904.0 /* 2^62: whole numbers up to here have no e */

bool number_parse_u64(struct bytes b, uint64_t *out) {
    if (b.len == 0 || b.len > 20 || (b.ptr[0] == '0' && b.len > 1)) {
        return false;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < b.len; i++) {
        unsigned digit = (unsigned char)b.ptr[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, digit, &v)) {
            return false;
        }
    }
    *out = v;
    return true;
}

bool number_parse_i64(struct bytes b, int64_t *out) {
    uint64_t magnitude;
    if (b.len == 0) {
        return false;
    }
    bool negative = b.ptr[0] == '-';
    if (!number_parse_u64(BYTES(b.ptr + negative, b.len - negative), &magnitude)) {
        return false;
    }
    if (negative) {
        if (magnitude == 0 || magnitude > (uint64_t)INT64_MAX + 1) {
            return false;
        }
        *out = (int64_t)(0 - magnitude);
        return true;
    }
    if (magnitude > INT64_MAX) {
        return false;
    }
    *out = (int64_t)magnitude;
    return true;
}

size_t number_format_u64(char *out, uint64_t v) {
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    char tmp[NUMBER_I64_MAX_LEN];
    size_t at = sizeof(tmp);
    for (; v >= 100; v /= 100) {
        at -= 2;
        memcpy(tmp + at, pairs + 2 * (v % 100), 2);
    }
    if (v >= 10) {
        at -= 2;
        memcpy(tmp + at, pairs + 2 * v, 2);
    } else {
        tmp[--at] = (char)('0' + v);
    }
    memcpy(out, tmp + at, sizeof(tmp) - at);
    return sizeof(tmp) - at;
}

size_t number_format_i64(char *out, int64_t v) {
    if (v >= 0) {
        return number_format_u64(out, (uint64_t)v);
    }
    out[0] = '-';
    return 1 + number_format_u64(out + 1, 0 - (uint64_t)v);
}

bool number_parse_real(struct bytes b, long double *out) {
    char text[REAL_TEXT_MAX];
    if (b.len == 0 || b.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, b.ptr, b.len);
    text[b.len] = '\0';
    if (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r')) {
        return false;
    }
    char *end;
    errno = 0;
    long double v = strtold(text, &end);
    if (end != text + b.len || isnan(v) || (errno == ERANGE && (isinf(v) || v == 0))) {
        return false;
    }
    *out = v;
    return true;
}

/* Digits from at on into *digits, as far as 19 of them go; false when there are more. */
static bool scan_digits(struct bytes b, size_t *at, uint64_t *digits) {
    for (unsigned digit; *at < b.len && (digit = (unsigned char)b.ptr[*at] - '0') <= 9; ++*at) {
        if (*digits >= DIGITS_FULL) {
            return false;
        }
        *digits = *digits * 10 + digit;
    }
    return true;
}

static bool scan_exponent(struct bytes b, size_t *at, int *exponent) {
    uint64_t digits = 0;
    char sign = *at + 1 < b.len ? b.ptr[*at + 1] : '\0';
    bool negative = sign == '-';
    *at += negative || sign == '+' ? 2 : 1;
    size_t first = *at;
    if (!scan_digits(b, at, &digits) || *at == first || digits > INT16_MAX) {
        return false;
    }
    *exponent = negative ? -(int)digits : (int)digits;
    return true;
}

/* The usual forms: a sign, up to 19 digits with a point among them, an exponent. False: something
 * else, or too close to call; for strtod. */
static bool parse_decimal(struct bytes b, double *out) {
    uint64_t digits = 0;
    int exponent = 0;
    bool negative = b.len > 0 && b.ptr[0] == '-';
    size_t at = negative, first = at;
    if (!scan_digits(b, &at, &digits)) {
        return false;
    }
    size_t count = at - first;
    if (at < b.len && b.ptr[at] == '.') {
        first = ++at;
        if (!scan_digits(b, &at, &digits)) {
            return false;
        }
        count += at - first;
        exponent = -(int)(at - first);
    }
    if (at < b.len && (b.ptr[at] | 0x20) == 'e') {
        int written;
        if (!scan_exponent(b, &at, &written)) {
            return false;
        }
        exponent += written;
    }
    if (count == 0 || at != b.len || !decimal_to_double(digits, exponent, out)) {
        return false;
    }
    *out = negative ? -*out : *out;
    return true;
}

bool number_parse_double(struct bytes b, double *out) {
    char text[REAL_TEXT_MAX];
    if (b.len < sizeof(text) && parse_decimal(b, out)) {
        return true;
    }
    if (b.len == 0 || b.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, b.ptr, b.len);
    text[b.len] = '\0';
    if (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r')) {
        return false;
    }
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (end != text + b.len || isnan(v) || (errno == ERANGE && (isinf(v) || v == 0))) {
        return false;
    }
    *out = v;
    return true;
}

size_t number_format_real(char *out, long double v) {
    if (isinf(v)) {
        size_t len = v > 0 ? 3 : 4;
        memcpy(out, v > 0 ? "inf" : "-inf", len);
        return len;
    }
    int printed = snprintf(out, NUMBER_REAL_MAX_LEN, "%.17Lf", v);
    size_t len = (size_t)printed;
    while (out[len - 1] == '0') {
        len--;
    }
    len -= out[len - 1] == '.';
    if (len == 2 && out[0] == '-' && out[1] == '0') {
        out[0] = '0';
        len = 1;
    }
    return len;
}

/* A double as digits x 10^scale without trailing zeros; finite and positive. The count of digits. */
static int shortest_digits(double v, char *digits, int *scale) {
    struct decimal d = decimal_shortest(v);
    int len = (int)number_format_u64(digits, d.digits);
    *scale = d.scale;
    while (len > 1 && digits[len - 1] == '0') {
        len--;
        ++*scale;
    }
    return len;
}

/* digits x 10^scale as Redis 7.2 writes it: plain while few zeros are needed, else d.ddde+x. */
static size_t write_decimal(char *out, const char *digits, int len, int scale) {
    int exponent = scale + len - 1;
    int magnitude = exponent < 0 ? -exponent : exponent;
    char *p = out;
    if (scale >= 0 && magnitude < len + 7) {
        memcpy(p, digits, (size_t)len);
        memset(p + len, '0', (size_t)scale);
        return (size_t)(len + scale);
    }
    if (scale < 0 && (scale > -7 || magnitude < 4)) {
        int whole = len + scale; /* digits before the point */
        if (whole > 0) {
            memcpy(p, digits, (size_t)whole);
            p += whole;
            *p++ = '.';
        } else {
            memcpy(p, "0.", 2);
            memset(p + 2, '0', (size_t)-whole);
            p += 2 - whole;
            whole = 0;
        }
        memcpy(p, digits + whole, (size_t)(len - whole));
        return (size_t)(p - out) + (size_t)(len - whole);
    }
    *p++ = digits[0];
    if (len > 1) {
        *p++ = '.';
        memcpy(p, digits + 1, (size_t)(len - 1));
        p += len - 1;
    }
    *p++ = 'e';
    *p++ = exponent < 0 ? '-' : '+';
    return (size_t)(p - out) + number_format_u64(p, (uint64_t)magnitude);
}

size_t number_format_double(char *out, double v) {
    if (isnan(v) || isinf(v)) {
        const char *word = isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
        size_t len = strlen(word);
        memcpy(out, word, len);
        return len;
    }
    if (v == 0) {
        memcpy(out, "-0", 2);
        out[0] = signbit(v) ? '-' : '0';
        return signbit(v) ? 2 : 1;
    }
    if (v >= -REAL_AS_INTEGER_MAX && v <= REAL_AS_INTEGER_MAX && v == (double)(int64_t)v) {
        return number_format_i64(out, (int64_t)v);
    }
    char digits[REAL_DIGITS_MAX + 1];
    int scale;
    int len = shortest_digits(fabs(v), digits, &scale);
    out[0] = '-';
    size_t sign = v < 0;
    return sign + write_decimal(out + sign, digits, len, scale);
}

bool number_parse_size(struct bytes b, uint64_t *out) {
    static const struct {
        const char *unit;
        uint64_t factor;
    } units[] = {{"kb", 1024},
                 {"mb", 1024 * 1024},
                 {"gb", 1024 * 1024 * 1024},
                 {"k", 1000},
                 {"m", 1000 * 1000},
                 {"g", 1000 * 1000 * 1000},
                 {"b", 1},
                 {"", 1}};
    size_t digits = 0;
    uint64_t v = 0;
    for (; digits < b.len && b.ptr[digits] >= '0' && b.ptr[digits] <= '9'; digits++) {
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(b.ptr[digits] - '0'), &v)) {
            return false;
        }
    }
    if (digits == 0) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (bytes_is(BYTES(b.ptr + digits, b.len - digits), units[i].unit)) {
            return !__builtin_mul_overflow(v, units[i].factor, out);
        }
    }
    return false;
}
