/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/index.h"

#ifdef GC_SANITIZE
#include <sanitizer/asan_interface.h>
#define HIDE(ptr, len) __asan_poison_memory_region((ptr), (len))
#define SHOW(ptr, len) __asan_unpoison_memory_region((ptr), (len))
#else
#define HIDE(ptr, len) ((void)(ptr), (void)(len))
#define SHOW(ptr, len) ((void)(ptr), (void)(len))
#endif

enum {
    SPAN_BYTES = 64 * 1024,
    SPANS = INDEX_BLOCK_BYTES / SPAN_BYTES, /* 8 */
    HEADER_BYTES = 512,
    CLASSES = 13, /* 512, then four to a doubling */
};

/* A list of spans: those of one class with a free slot, or those that serve no class. */
struct span {
    struct span *next, *prev;
    void *free;     /* slots that came back, linked through their first bytes */
    uint16_t used;  /* slots handed out */
    uint16_t fresh; /* slots from here on were never handed out */
    uint16_t cap;   /* slots; 0: the span serves no class */
    uint8_t class_idx;
    uint8_t place; /* in its block */
};

struct block {
    uint64_t spans_used;
    struct span spans[SPANS];
};

static_assert(sizeof(struct block) <= HEADER_BYTES, "the header fits before the first slot");

static struct pages *pages;
static struct span *partial[CLASSES]; /* spans with a free slot */
static struct span *idle;             /* spans without a class */
static size_t slot_bytes_used;

/* ---- classes ---- */

/* 512 is class 0; 640 768 896 1024 are 1..4, and so on. */
static unsigned class_of(size_t bytes) {
    if (bytes <= SLAB_MIN) {
        return 0;
    }
    unsigned log2_step = 61U - (unsigned)__builtin_clzll(bytes - 1); /* four steps to a doubling */
    return (log2_step - 7) * 4 + (unsigned)((bytes - 1) >> log2_step) - 3;
}

static size_t class_bytes(unsigned class_idx) {
    if (class_idx == 0) {
        return SLAB_MIN;
    }
    unsigned doubling = (class_idx - 1) / 4;
    return (size_t)(5 + (class_idx - 1) % 4) << (7 + doubling);
}

static bool is_slot_size(size_t bytes) {
    return pages != NULL && bytes >= SLAB_MIN && bytes <= SLAB_MAX;
}

/* ---- spans ---- */

static void push(struct span **list, struct span *s) {
    s->prev = NULL;
    s->next = *list;
    if (s->next != NULL) {
        s->next->prev = s;
    }
    *list = s;
}

static void take_out(struct span **list, struct span *s) {
    if (s->next != NULL) {
        s->next->prev = s->prev;
    }
    if (s->prev != NULL) {
        s->prev->next = s->next;
    } else {
        *list = s->next;
    }
}

static struct block *block_of(const void *ptr) {
    return (struct block *)((uintptr_t)ptr & ~(uintptr_t)(INDEX_BLOCK_BYTES - 1));
}

static char *span_start(struct span *s) {
    return (char *)block_of(s) + (s->place == 0 ? HEADER_BYTES : s->place * (size_t)SPAN_BYTES);
}

static size_t span_room(const struct span *s) {
    return s->place == 0 ? SPAN_BYTES - HEADER_BYTES : SPAN_BYTES;
}

static bool add_block(void) {
    struct block *b = pages_acquire(pages, NULL);
    if (b == NULL) {
        return false;
    }
    b->spans_used = 0;
    for (int i = SPANS; i-- > 0;) {
        b->spans[i] = (struct span){.place = (uint8_t)i};
        push(&idle, &b->spans[i]);
    }
    HIDE((char *)b + HEADER_BYTES, INDEX_BLOCK_BYTES - HEADER_BYTES);
    return true;
}

static void drop_block(struct block *b) {
    for (int i = 0; i < SPANS; i++) {
        take_out(&idle, &b->spans[i]);
    }
    SHOW(b, INDEX_BLOCK_BYTES);
    pages_release(pages, b);
}

/* A span with a free slot of the class, NULL when memory is short. */
static struct span *find_span(unsigned class_idx) {
    if (partial[class_idx] != NULL) {
        return partial[class_idx];
    }
    if (idle == NULL && !add_block()) {
        return NULL;
    }
    struct span *s = idle;
    take_out(&idle, s);
    *s = (struct span){.place = s->place,
                       .class_idx = (uint8_t)class_idx,
                       .cap = (uint16_t)(span_room(s) / class_bytes(class_idx))};
    block_of(s)->spans_used++;
    push(&partial[class_idx], s);
    return s;
}

static void retire_span(struct span *s) {
    struct block *b = block_of(s);
    take_out(&partial[s->class_idx], s);
    *s = (struct span){.place = s->place};
    push(&idle, s);
    if (--b->spans_used == 0) {
        drop_block(b);
    }
}

static void *slot_take(size_t bytes) {
    if (UNLIKELY(account_must_fail())) {
        return NULL;
    }
    struct span *s = find_span(class_of(bytes));
    if (s == NULL) {
        return NULL;
    }
    size_t each = class_bytes(s->class_idx);
    void *slot = s->free;
    if (slot != NULL) {
        SHOW(slot, each);
        s->free = *(void **)slot;
    } else {
        slot = span_start(s) + s->fresh++ * each;
        SHOW(slot, each);
    }
    if (++s->used == s->cap) {
        take_out(&partial[s->class_idx], s);
    }
    return slot;
}

static void slot_give_back(void *slot) {
    struct block *b = block_of(slot);
    struct span *s = &b->spans[((uintptr_t)slot - (uintptr_t)b) / SPAN_BYTES];
    assert(s->used > 0);
    *(void **)slot = s->free;
    s->free = slot;
    HIDE(slot, class_bytes(s->class_idx));
    if (s->used-- == s->cap) {
        push(&partial[s->class_idx], s);
    }
    if (s->used == 0) {
        retire_span(s);
    }
}

/* ---- interface ---- */

enum status index_setup(enum pages_kind kind) {
    assert(pages == NULL);
    if (kind == PAGES_PLAIN) {
        return ST_OK;
    }
    struct pages_options options = {
        .kind = kind, .chunk_bytes = INDEX_BLOCK_BYTES, .what = "index"};
    return pages_create(&options, &pages);
}

void index_teardown(void) {
    assert(slot_bytes_used == 0);
    pages_destroy(pages);
    pages = NULL;
}

struct pages *index_pages(void) {
    return pages;
}

void *index_alloc(enum account_tag tag, size_t bytes) {
    if (!is_slot_size(bytes)) {
        return account_alloc(tag, bytes);
    }
    void *slot = slot_take(bytes);
    if (slot != NULL) {
        size_t each = class_bytes(class_of(bytes));
        account_count(tag, each);
        slot_bytes_used += each;
    }
    return slot;
}

void index_free(enum account_tag tag, void *ptr, size_t bytes) {
    if (ptr == NULL || !is_slot_size(bytes)) {
        account_free(tag, ptr);
        return;
    }
    size_t each = class_bytes(class_of(bytes));
    account_uncount(tag, each);
    slot_bytes_used -= each;
    slot_give_back(ptr);
}

size_t index_slot_bytes(void) {
    return slot_bytes_used;
}
