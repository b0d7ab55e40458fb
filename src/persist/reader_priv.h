/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader's inside, bottom up:
 *
 *   input    bytes of the source in a window; views of them stay good until they are let go
 *   string   lengths and strings of the format on top of it
 *   pack     ziplists, listpacks, intsets and zipmaps, an element at a time
 *   build    a value in the making, and groups of elements for it
 *   value    each type of the format, read into a build, or passed over
 *   reader   the sections of a file
 *
 * Functions that read answer false after a fault, which is in r->st and the report then. */
#ifndef PERSIST_READER_PRIV_H
#define PERSIST_READER_PRIV_H

#include "base/number.h"
#include "persist/format.h"
#include "persist/reader.h"
#include "types/hash.h"
#include "types/zset.h"

#define BATCH 64 /* elements or keys built at once, their memory accesses in flight side by side */

/* ---- input (input.c) ------------------------------------------------------------------------ */

/* Memory that views point into, kept until input_release. */
struct held_block {
    struct held_block *next;
    size_t len;
    char bytes[];
};

struct input {
    const struct reader_options *options;
    struct held_block *window; /* where the source is read to */
    size_t pos, len, cap;      /* of the window: next byte, behind the last one, size */
    uint64_t window_off;       /* of the window's first byte in the file */
    size_t crc_pos;            /* bytes before are in crc */
    uint64_t crc;
    bool pinned;              /* views of the window may be in use */
    struct held_block *held;  /* earlier windows and long strings */
    struct held_block *spare; /* block that short decoded strings are cut from */
    size_t spare_used;
    size_t held_bytes;
};

#define INPUT_BELIEVE_MAX 65536 /* entries: 400 KiB of index */

struct reader;

MUST_CHECK bool input_init(struct reader *r);
void input_deinit(struct input *in);

/* Offset in the file of the next byte. */
static inline uint64_t input_off(const struct input *in) {
    return in->window_off + in->pos;
}

/* Bytes that may still come. */
uint64_t input_left(const struct input *in);

/* A claimed number of things of at least min_bytes each, as far as to make room for it: what the source
 * vouches for, or a moderate number when it says nothing about its length. */
static inline uint64_t input_believe(const struct input *in, uint64_t claimed, size_t min_bytes) {
    uint64_t left = input_left(in);
    uint64_t most = left == READER_UNKNOWN_LEN ? INPUT_BELIEVE_MAX : left / min_bytes;
    return claimed < most ? claimed : most;
}

/* The next len bytes in one piece, consumed. NULL after a fault. Good until input_release. */
const char *input_slow(struct reader *r, size_t len);

/* The next len bytes, copied to ptr: for long strings, which then pass no window. */
bool input_copy(struct reader *r, char *ptr, size_t len);

/* len bytes of memory, kept like the views. */
char *input_hold(struct reader *r, size_t len);

/* All views are let go. */
void input_release(struct input *in);

/* The checksum of everything consumed. */
uint64_t input_checksum(struct input *in);

/* Is there nothing behind what was consumed? */
bool input_at_end(struct reader *r, bool *at_end);

/* ---- build (build.c) ------------------------------------------------------------------------ */

/* A value in the making: its record's bytes are in a buffer of ours until a target takes them. */
struct build {
    struct value v;
    struct value_host host;
    struct buf bytes;
    /* sorted sets gather their entries first */
    struct zset_entry *entries;
    size_t entries_count, entries_cap;
};

void build_init(struct build *b, const struct type_env *env);
void build_deinit(struct build *b);

/* Free what the value holds; ready for build_begin. */
void build_drop(struct build *b);

/* An empty value of a type; integers: a set that will likely hold only integers. */
MUST_CHECK bool build_begin(struct reader *r, struct build *b, enum value_type type, bool integers);

/* So many elements will come to a value that has just begun: advice, but for want of memory. */
MUST_CHECK bool build_expect(struct reader *r, struct build *b, uint64_t count);

/* Elements for the value. A field or member that was there already is a fault. Views need to last
 * for the call, but for sorted sets until build_end. */
MUST_CHECK bool build_add_pairs(struct reader *r, struct build *b, const struct hash_pair *pairs,
                                size_t count);
MUST_CHECK bool build_add_members(struct reader *r, struct build *b, const struct bytes *members,
                                  size_t count);
MUST_CHECK bool build_add_elements(struct reader *r, struct build *b, const struct bytes *elements,
                                   size_t count);
MUST_CHECK bool build_add_scored(struct reader *r, struct build *b, struct bytes member,
                                 double score);
MUST_CHECK bool build_end(struct reader *r, struct build *b);
uint64_t build_count(const struct build *b);

/* ---- the reader ----------------------------------------------------------------------------- */

/* A key that waits for its group. */
struct waiting {
    struct buf key;
    struct build build;
    struct value_image image; /* a string's; else of build.v */
    struct reader_key out;
    uint64_t off; /* where it begins in the file, behind the type */
};

struct reader {
    const struct reader_options *options;
    const struct reader_target *target;
    struct reader_report *report;
    struct input in;
    enum status st;
    const char *what;   /* "hash ziplist", "opcode": what is being read */
    uint64_t item_off;  /* where it begins */
    struct waiting *at; /* the key being read, NULL between keys */
    size_t waiting_count, waiting_cap;
    struct waiting waiting[]; /* BATCH for a file, one for a payload */
};

/* Note the first fault. Always false. */
bool fault(struct reader *r, enum status st, const char *fmt, ...) PRINTF_LIKE(3, 4);
bool corrupt(struct reader *r, const char *text);

static inline void reading(struct reader *r, const char *what) {
    r->what = what;
    r->item_off = input_off(&r->in);
}

static inline const char *input_take(struct reader *r, size_t len) {
    struct input *in = &r->in;
    if (UNLIKELY(in->len - in->pos < len)) {
        return input_slow(r, len);
    }
    const char *p = in->window->bytes + in->pos;
    in->pos += len;
    in->pinned = true;
    return p;
}

/* Hand all waiting keys to the target, and let go of views: before a value that takes many groups. */
MUST_CHECK bool reader_flush(struct reader *r);

/* ---- strings (string.c) --------------------------------------------------------------------- */

MUST_CHECK bool get_byte(struct reader *r, unsigned char *out);
MUST_CHECK bool get_u64(struct reader *r, uint64_t *out); /* 8 bytes, little-endian */
MUST_CHECK bool get_u32(struct reader *r, uint32_t *out);
MUST_CHECK bool get_double(struct reader *r, double *out);
MUST_CHECK bool get_len(struct reader *r, uint64_t *out);

/* A number of things of at least min_bytes each to come: held against what is left. */
MUST_CHECK bool get_count(struct reader *r, size_t min_bytes, uint64_t *out);

MUST_CHECK bool get_string(struct reader *r, struct bytes *out);
MUST_CHECK bool skip_string(struct reader *r);

/* A string as a string value's image; long ones without a copy. */
MUST_CHECK bool get_string_image(struct reader *r, struct value_image *image);

/* ---- pack (pack.c) -------------------------------------------------------------------------- */

enum pack_kind { PACK_ZIPLIST, PACK_LISTPACK, PACK_INTSET, PACK_ZIPMAP };

struct pack_element {
    bool is_integer;
    int64_t integer;
    struct bytes text; /* when it is none */
};

struct pack {
    enum pack_kind kind;
    const unsigned char *start, *at, *end; /* end: of the entries */
    uint64_t count;                        /* elements seen */
    uint64_t claimed;                      /* elements by the head; PACK_UNKNOWN */
    size_t entry_len;                      /* of the last one */
    size_t width;                          /* intset: of an integer */
    const char *fault;                     /* NULL while all is well */
};
#define PACK_UNKNOWN UINT64_MAX

/* Check the head. False with a fault. */
MUST_CHECK bool pack_open(struct pack *p, enum pack_kind kind, struct bytes bytes);
/* False at the end, where all that the head claims is checked, and with a fault. */
bool pack_next(struct pack *p, struct pack_element *out);

/* The element's text; scratch holds NUMBER_I64_MAX_LEN bytes. */
static inline struct bytes pack_text(const struct pack_element *e, char *scratch) {
    return e->is_integer ? BYTES(scratch, number_format_i64(scratch, e->integer)) : e->text;
}

/* ---- values (reader_value.c, reader_skip.c) -------------------------------------------------- */

/* The value of a type into r->at; *kept is false when it was passed over or is empty. */
MUST_CHECK bool get_value(struct reader *r, unsigned char type, bool *kept);

/* What is not built here: pass over it and count it, or refuse it. */
MUST_CHECK bool skip_value(struct reader *r, unsigned char type);
MUST_CHECK bool skip_function(struct reader *r, bool pre_release);
MUST_CHECK bool skip_module_aux(struct reader *r);

#endif
