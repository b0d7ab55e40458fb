/* SPDX-License-Identifier: BSD-3-Clause */
/* The property test of the order tree with tiny nodes (30 entries a leaf, 4 children an inner
 * node): the same operations at heights that full-size nodes reach beyond 10^7 entries. The tree's
 * sources are compiled in, so the linker takes nothing of it from the library. */
#define LEAF_BYTES_MAX 256
#define INNER_BYTES_MAX 160

#include "../../src/ds/order.c"
#include "../../src/ds/order_edit.c"
#include "../../src/ds/order_leaf.c"
#include "../../src/ds/order_node.c"

#include "ds_order.c"
