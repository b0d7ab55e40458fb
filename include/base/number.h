/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers as clients write and read them. Parsers are strict: the whole view must be the number. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include "base/bytes.h"

#define NUMBER_I64_MAX_LEN 20    /* "-9223372036854775808" */
#define NUMBER_REAL_MAX_LEN 5120 /* a long double written out with %.17Lf */

/* Canonical decimal only: no leading zeros, no '+', no blanks; "-0" is refused. False when not an
 * int64. */
bool number_parse_i64(struct bytes b, int64_t *out);
bool number_parse_u64(struct bytes b, uint64_t *out);

/* Decimal digits into out (at least NUMBER_I64_MAX_LEN bytes, not terminated); the length. */
size_t number_format_i64(char *out, int64_t v);
size_t number_format_u64(char *out, uint64_t v);

/* Any form strtold takes (exponent, hex, inf), no blanks, no NaN; false otherwise. */
bool number_parse_real(struct bytes b, long double *out);
bool number_parse_double(struct bytes b, double *out);

/* Plain decimals without exponent, 17 fraction digits at most, trailing zeros cut (as INCRBYFLOAT
 * replies). out holds NUMBER_REAL_MAX_LEN bytes. */
size_t number_format_real(char *out, long double v);

/* Shortest decimal that reads back as the same double, in the form Redis 7.2 sends: whole numbers
 * up to 2^62 as integers, 0.000001, 1e-7, 1e+20; -0, inf, -inf, nan as words. out holds 32 bytes.
 */
size_t number_format_double(char *out, double v);

/* "1gb", "64kb", "100": k m g are 1000s, kb mb gb 1024s. False on anything else or overflow. */
bool number_parse_size(struct bytes b, uint64_t *out);

#endif
