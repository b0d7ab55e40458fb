/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crc64.h"
#include "mem/account.h"
#include "reader_priv.h"

#define WINDOW_BYTES ((size_t)256 << 10)
#define SPARE_BYTES ((size_t)16 << 10)

/* ---- memory that views point into ------------------------------------------------------------ */

static struct held_block *block_create(size_t len) {
    if (len > SIZE_MAX - sizeof(struct held_block)) {
        return NULL;
    }
    struct held_block *block = account_alloc(ACCOUNT_OTHER, sizeof(*block) + len);
    if (block != NULL) {
        block->next = NULL;
        block->len = len;
    }
    return block;
}

static void hold(struct input *in, struct held_block *block) {
    block->next = in->held;
    in->held = block;
    in->held_bytes += block->len;
}

static void free_blocks(struct held_block *block) {
    while (block != NULL) {
        struct held_block *next = block->next;
        account_free(ACCOUNT_OTHER, block);
        block = next;
    }
}

char *input_hold(struct reader *r, size_t len) {
    struct input *in = &r->in;
    if (in->spare != NULL && in->spare->len - in->spare_used >= len) {
        char *p = in->spare->bytes + in->spare_used;
        in->spare_used += len;
        return p;
    }
    bool small = len <= SPARE_BYTES / 4;
    struct held_block *block = block_create(small ? SPARE_BYTES : len);
    if (block == NULL) {
        fault(r, ST_NOMEM, "out of memory for %zu bytes", len);
        return NULL;
    }
    if (!small) {
        hold(in, block);
        return block->bytes;
    }
    if (in->spare != NULL) {
        hold(in, in->spare);
    }
    in->spare = block;
    in->spare_used = len;
    return block->bytes;
}

void input_release(struct input *in) {
    free_blocks(in->held);
    in->held = NULL;
    in->held_bytes = 0;
    in->spare_used = 0;
    in->pinned = false;
}

/* ---- the window ----------------------------------------------------------------------------- */

bool input_init(struct reader *r) {
    struct input *in = &r->in;
    uint64_t total = r->options->total_bytes;
    *in = (struct input){.options = r->options,
                         .cap = total < WINDOW_BYTES ? (size_t)total : WINDOW_BYTES};
    in->window = block_create(in->cap);
    return in->window != NULL || fault(r, ST_NOMEM, "out of memory");
}

void input_deinit(struct input *in) {
    free_blocks(in->held);
    free_blocks(in->spare);
    free_blocks(in->window);
}

uint64_t input_left(const struct input *in) {
    uint64_t total = in->options->total_bytes, off = input_off(in);
    return total == READER_UNKNOWN_LEN ? READER_UNKNOWN_LEN : total > off ? total - off : 0;
}

uint64_t input_checksum(struct input *in) {
    in->crc = crc64(in->crc, in->window->bytes + in->crc_pos, in->pos - in->crc_pos);
    in->crc_pos = in->pos;
    return in->crc;
}

/* One read of the source. *got 0 at the end. */
static bool read_some(struct reader *r, char *ptr, size_t cap, size_t *got) {
    const struct reader_options *o = r->options;
    enum status st = o->read(o->arg, ptr, cap, got);
    if (st != ST_OK) {
        return fault(r, st, "%s", status_text(st));
    }
    if (o->progress != NULL && !o->progress(o->progress_arg, input_off(&r->in), r->report->keys)) {
        return fault(r, ST_CLOSED, "stopped");
    }
    return true;
}

static bool ends_early(struct reader *r) {
    return corrupt(r, "the file ends too early");
}

/* Move what is not yet consumed to the front of a window of at least cap bytes. Views keep the old
 * one alive. */
static bool move_window(struct reader *r, size_t cap) {
    struct input *in = &r->in;
    size_t left = in->len - in->pos;
    input_checksum(in);
    if (in->pinned || cap > in->cap) {
        cap = cap > WINDOW_BYTES ? cap : WINDOW_BYTES;
        struct held_block *fresh = block_create(cap);
        if (fresh == NULL) {
            return fault(r, ST_NOMEM, "out of memory for %zu bytes", cap);
        }
        memcpy(fresh->bytes, in->window->bytes + in->pos, left);
        if (in->pinned) {
            hold(in, in->window);
        } else {
            account_free(ACCOUNT_OTHER, in->window);
        }
        in->window = fresh;
        in->cap = cap;
        in->pinned = false; /* nobody has a view of the fresh one */
    } else if (in->pos != 0) {
        memmove(in->window->bytes, in->window->bytes + in->pos, left);
    }
    in->window_off += in->pos;
    in->pos = in->crc_pos = 0;
    in->len = left;
    return true;
}

/* The size of a window that will have len bytes: a length that the source's own does not vouch for
 * makes it grow only as bytes arrive. */
static size_t window_for(const struct reader *r, size_t len) {
    size_t have = r->in.len - r->in.pos;
    if (r->options->total_bytes == READER_UNKNOWN_LEN && len > WINDOW_BYTES && len > 2 * have) {
        len = 2 * have;
    }
    return len < WINDOW_BYTES ? WINDOW_BYTES : len;
}

/* Have len bytes in the window. */
static bool fill_window(struct reader *r, size_t len) {
    struct input *in = &r->in;
    if (len > input_left(in)) {
        return ends_early(r);
    }
    while (in->len - in->pos < len) {
        size_t got;
        bool fits = in->cap - in->pos >= len && in->len < in->cap;
        if (!fits && (in->pos != 0 || in->len == in->cap) && !move_window(r, window_for(r, len))) {
            return false;
        }
        if (!read_some(r, in->window->bytes + in->len, in->cap - in->len, &got)) {
            return false;
        }
        if (got == 0) {
            return ends_early(r);
        }
        in->len += got;
    }
    return true;
}

const char *input_slow(struct reader *r, size_t len) {
    struct input *in = &r->in;
    if (!fill_window(r, len)) {
        return NULL;
    }
    const char *p = in->window->bytes + in->pos;
    in->pos += len;
    in->pinned = true;
    return p;
}

bool input_copy(struct reader *r, char *ptr, size_t len) {
    struct input *in = &r->in;
    size_t have = in->len - in->pos < len ? in->len - in->pos : len;
    memcpy(ptr, in->window->bytes + in->pos, have);
    in->pos += have;
    if (have == len) {
        return true;
    }
    input_checksum(in);
    while (have < len) { /* the window is used up: pos == len */
        size_t got;
        if (!read_some(r, ptr + have, len - have, &got)) {
            return false;
        }
        if (got == 0) {
            return ends_early(r);
        }
        in->crc = crc64(in->crc, ptr + have, got);
        in->window_off += got;
        have += got;
    }
    return true;
}

bool input_at_end(struct reader *r, bool *at_end) {
    struct input *in = &r->in;
    *at_end = false;
    if (in->pos != in->len) {
        return true;
    }
    size_t got;
    if (!move_window(r, WINDOW_BYTES) || !read_some(r, in->window->bytes, in->cap, &got)) {
        return false;
    }
    in->len = got;
    *at_end = got == 0;
    return true;
}
