/* SPDX-License-Identifier: BSD-3-Clause */
/* index memory: where the segments of swiss tables and the nodes of order trees come from.
 *
 * Without index_setup everything is as the allocator and mem/dense have it. With it, blocks of
 * INDEX_BLOCK_BYTES come from a mem/pages of their own, on the kind of OS page that was asked for,
 * and all indexes of the process share them, so that no index owns a huge page:
 *
 *   whole block    a block of a dense pool (mem/dense), for segments of a large table
 *   carved block   eight spans of 64 KiB, each for slots of one size, SLAB_MIN .. SLAB_MAX: nodes
 *                  of order trees, segments of tables of a few hundred entries
 *
 *   carved block, 512 KiB, aligned
 *   +--------+-----------+-----------+- - - -+-----------+
 *   | header | span 0    | span 1    |       | span 7    |      a span's slots do not cross 64 KiB
 *   +--------+-----------+-----------+- - - -+-----------+
 *   0        512         64K         128K    448K
 *
 * Lost to the header: one slot of 4096 in 128. A span that empties serves any size again, a block
 * that empties goes back to pages. What is smaller than SLAB_MIN or longer than SLAB_MAX (segment
 * directories) stays with the allocator. Single-threaded, one for the process.
 * docs/design/007-dense.md */
#ifndef MEM_INDEX_H
#define MEM_INDEX_H

#include "mem/account.h"
#include "mem/pages.h"

#define INDEX_BLOCK_BYTES ((size_t)512 * 1024)
#define SLAB_MIN 512
#define SLAB_MAX 4096

/* Take index memory from huge pages from now on; before the first index has an entry.
 *
 *   kind  PAGES_PLAIN leaves everything with the allocator */
MUST_CHECK enum status index_setup(enum pages_kind kind);

/* All indexes must be gone. */
void index_teardown(void);

/* NULL when index memory is not on pages. */
struct pages *index_pages(void);

/* Memory for an index, counted under tag; `bytes` has to be the same at index_free. NULL when memory is short.
 * O(1). ptr NULL is allowed. */
void *index_alloc(enum account_tag tag, size_t bytes);
void index_free(enum account_tag tag, void *ptr, size_t bytes);

/* Bytes of slots in use, for tests. */
size_t index_slot_bytes(void);

#endif
