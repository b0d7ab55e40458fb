/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/number.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define REAL_TEXT_MAX NUMBER_REAL_MAX_LEN /* what number_format_real writes must read back */
#define REAL_DIGITS_MAX 17                /* significant digits that tell any two doubles apart */
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
    char tmp[NUMBER_I64_MAX_LEN];
    size_t at = sizeof(tmp);
    do {
        tmp[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
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

bool number_parse_double(struct bytes b, double *out) {
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

/* 10^k, exact: 5^27 < 2^63. */
#define POWER_MAX 27
static const long double powers[POWER_MAX + 1] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                                  1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                                  1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                                  1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

/* The usual case of shortest_digits: v, scaled by one exact power of ten into an integer of 15 to 17 digits, reads back.
 * One rounding in 64 bits or more, checked by strtod at the end. 0: not found this way. 140 ns, where printf and strtod
 * for each number of digits take 900. */
static int shortest_digits_fast(double v, char *digits, int *scale) {
    int exponent2;
    frexp(v, &exponent2);
    int exponent = (int)floor((exponent2 - 1) * 0.30102999566398120);
    if (exponent < -10 || exponent > POWER_MAX - 1) {
        return 0;
    }
    if (exponent >= 0 ? v >= powers[exponent + 1] : v * powers[-exponent - 1] >= 1) {
        exponent++; /* the estimate is one short at times */
    }
    /* Half a step between doubles around v, and a little for the roundings below. */
    long double reach = ldexpl(1.001L, exponent2 - DBL_MANT_DIG - 1);
    for (int n = DBL_DIG; n <= REAL_DIGITS_MAX; n++) {
        int shift = n - 1 - exponent;
        long double power = powers[shift < 0 ? -shift : shift];
        long double scaled = rintl(shift < 0 ? v / power : v * power);
        long double back = shift < 0 ? scaled * power : scaled / power;
        if (fabsl(back - v) > reach) {
            continue;
        }
        int len = (int)number_format_u64(digits, (uint64_t)scaled);
        char text[REAL_DIGITS_MAX + 16];
        memcpy(text, digits, (size_t)len);
        text[len] = 'e';
        text[len + 1 + (int)number_format_i64(text + len + 1, -shift)] = '\0';
        if (strtod(text, NULL) != v) {
            continue;
        }
        *scale = -shift;
        while (len > 1 && digits[len - 1] == '0') {
            len--;
            ++*scale;
        }
        return len;
    }
    return 0;
}

/* A double as digits x 10^scale: the fewest significant digits that read back as v, no trailing
 * zeros. v is finite and positive. The count of digits; at most 17. */
static int shortest_digits(double v, char *digits, int *scale) {
    int fast_len = shortest_digits_fast(v, digits, scale);
    if (LIKELY(fast_len > 0)) {
        return fast_len;
    }
    char text[REAL_DIGITS_MAX + 16];
    /* 15 digits always survive in a normal double, so trying begins there; denormals hold fewer. */
    for (int n = v < DBL_MIN ? 1 : DBL_DIG; n <= REAL_DIGITS_MAX; n++) {
        snprintf(text, sizeof(text), "%.*e", n - 1, v);
        if (strtod(text, NULL) == v) {
            break;
        }
    }
    char *exponent = strchr(text, 'e');
    int len = 0;
    for (char *p = text; p < exponent; p++) {
        if (*p != '.') {
            digits[len++] = *p;
        }
    }
    *scale = atoi(exponent + 1) + 1 - len;
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
