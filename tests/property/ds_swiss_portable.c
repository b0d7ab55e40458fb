/* SPDX-License-Identifier: BSD-3-Clause */
/* The property test of the swiss index once more, over the portable group code. All of the index is
 * compiled into this file, so none of the library's is linked. */
#define SWISS_GROUP_PORTABLE

#include "../../src/ds/swiss.c"
#include "../../src/ds/swiss_check.c"
#undef CHECK
#include "../../src/ds/swiss_resize.c"
#include "../../src/ds/swiss_scan.c"
#include "../../src/ds/swiss_segment.c"
#include "ds_swiss.c"
