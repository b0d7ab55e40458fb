/* SPDX-License-Identifier: BSD-3-Clause */
/* The property test of the swiss index once more, over the portable group code and, in sanitizer
 * builds too, over the mapped form of the segment pools. All of that is compiled into this file, so
 * none of the library's is linked. */
#define SWISS_GROUP_PORTABLE
#define DENSE_MAPPED

#include "../../src/ds/swiss.c"
#include "../../src/ds/swiss_check.c"
#undef CHECK
#include "../../src/ds/swiss_resize.c"
#include "../../src/ds/swiss_scan.c"
#include "../../src/ds/swiss_segment.c"
#include "../../src/mem/dense.c"
#include "ds_swiss.c"
