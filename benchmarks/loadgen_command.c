/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of `run command`: words with places in braces that are filled in for each request. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "loadgen_priv.h"

#define SCORE_UNIT UINT64_C(1000000)

enum place {
    PLACE_NONE, /* only the text before it */
    PLACE_ID,   /* {id}: a random item's number, 12 digits */
    PLACE_SEQ,  /* {seq}: the next number from --first on, 12 digits */
    PLACE_ONCE, /* {once}: the item that comes so far along in a scattered order of all, 12 digits */
    PLACE_N,    /* {n}: a random number below --fields; {n+K}: the same one and K */
    PLACE_SCORE, /* {score}: a random number with a fraction; {score+K}: the same one and K */
    PLACE_VALUE, /* {value}: --value-bytes random bytes */
};

static const char *const place_names[] = {"", "id", "seq", "once", "n", "score", "value"};

struct part {
    const char *text; /* in the options' own string */
    size_t text_len;
    enum place place;
    bool again; /* with the number drawn before */
    uint64_t plus;
};

struct word {
    size_t part_first;
    size_t part_count;
};

struct command {
    struct word *words;
    struct part *parts;
    size_t word_count;
    size_t part_count;
    uint64_t seq;
    uint64_t step; /* from one {once} to the next, modulo --fields */
    uint64_t n;
    uint64_t score;
    struct buf scratch; /* the word being made: its length comes before it */
};

/* What stands between braces: name, or name+K. */
static void parse_place(struct part *p, const char *ptr, size_t len) {
    const char *plus = memchr(ptr, '+', len);
    size_t name_len = plus != NULL ? (size_t)(plus - ptr) : len;
    for (size_t i = PLACE_ID; i < ARRAY_LEN(place_names); i++) {
        if (strlen(place_names[i]) == name_len && memcmp(place_names[i], ptr, name_len) == 0) {
            p->place = (enum place)i;
        }
    }
    p->again = plus != NULL;
    bool number = p->place == PLACE_N || p->place == PLACE_SCORE;
    if (p->place == PLACE_NONE ||
        (p->again &&
         (!number || !number_parse_u64(BYTES(plus + 1, len - name_len - 1), &p->plus)))) {
        die(EXIT_USAGE, "unknown place {%.*s} (id, seq, once, n, n+K, score, score+K, value)",
            (int)len, ptr);
    }
}

/* One word: text and places in turn, up to a blank or the end; what is behind it. */
static const char *parse_word(struct command *c, const char *at) {
    struct word *w = &c->words[c->word_count++];
    w->part_first = c->part_count;
    while (*at != '\0' && *at != ' ') {
        struct part *p = &c->parts[c->part_count++];
        *p = (struct part){.text = at, .text_len = strcspn(at, " {")};
        at += p->text_len;
        if (*at == '{') {
            const char *end = strchr(at, '}');
            if (end == NULL) {
                die(EXIT_USAGE, "a brace is not closed: %s", at);
            }
            parse_place(p, at + 1, (size_t)(end - at) - 1);
            at = end + 1;
        }
    }
    w->part_count = c->part_count - w->part_first;
    return at;
}

/* A step that visits every one of count items before it comes back to the first: prime to it, and
 * near the golden section, so that neighbours in the order lie far apart. */
static uint64_t scattering_step(uint64_t count) {
    for (uint64_t step = count - count * 382 / 1000;; step++) {
        uint64_t a = count;
        uint64_t b = step;
        while (b != 0) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) {
            return step;
        }
    }
}

struct command *command_create(const struct options *o) {
    size_t most = strlen(o->command) + 1;
    struct command *c = calloc(1, sizeof(*c));
    if (c == NULL || (c->words = calloc(most, sizeof(*c->words))) == NULL ||
        (c->parts = calloc(most, sizeof(*c->parts))) == NULL) {
        die(EXIT_RUN_FAILED, "out of memory");
    }
    c->seq = o->first;
    for (const char *at = o->command; *(at += strspn(at, " ")) != '\0';) {
        at = parse_word(c, at);
    }
    if (c->word_count == 0) {
        die(EXIT_USAGE, "an empty command");
    }
    for (size_t i = 0; i < c->part_count; i++) {
        if (c->parts[i].place == PLACE_ONCE && o->fields > UINT32_MAX) {
            die(EXIT_USAGE, "{once} goes up to %u --fields", UINT32_MAX); /* or products overflow */
        }
    }
    c->step = scattering_step(o->fields);
    return c;
}

void command_destroy(struct command *c) {
    if (c == NULL) {
        return;
    }
    buf_deinit(&c->scratch);
    free(c->words);
    free(c->parts);
    free(c);
}

static void append_id(struct buf *out, uint64_t id) {
    char *at = buf_tail(out, ID_DIGITS);
    must_have_grown(out);
    out->len += (size_t)(put_id(at, id) - at);
}

static void append_number(struct buf *out, uint64_t v) {
    char *at = buf_tail(out, NUMBER_I64_MAX_LEN);
    must_have_grown(out);
    out->len += number_format_u64(at, v);
}

/* A score in millionths: fine enough that scores rarely tie, and as long as what is often stored. */
static void append_score(struct buf *out, uint64_t micros) {
    uint64_t fraction = micros % SCORE_UNIT;
    append_number(out, micros / SCORE_UNIT);
    char *at = buf_tail(out, 7);
    must_have_grown(out);
    *at = '.';
    for (int i = 6; i >= 1; i--) {
        at[i] = (char)('0' + fraction % 10);
        fraction /= 10;
    }
    out->len += 7;
}

static void append_part(struct engine *e, struct command *c, const struct part *p, uint64_t *id) {
    struct buf *out = &c->scratch;
    buf_append(out, p->text, p->text_len);
    switch (p->place) {
    case PLACE_NONE:
        break;
    case PLACE_ID:
        append_id(out, *id);
        *id = rng_below(&e->rng, e->opt->fields);
        break;
    case PLACE_SEQ:
        append_id(out, c->seq++);
        break;
    case PLACE_ONCE:
        append_id(out, c->seq++ % e->opt->fields * c->step % e->opt->fields);
        break;
    case PLACE_N:
        c->n = p->again ? c->n : *id;
        *id = p->again ? *id : rng_below(&e->rng, e->opt->fields);
        append_number(out, c->n + p->plus);
        break;
    case PLACE_SCORE:
        c->score = p->again ? c->score : rng_below(&e->rng, e->opt->fields * SCORE_UNIT);
        append_score(out, c->score + p->plus * SCORE_UNIT);
        break;
    case PLACE_VALUE:
        buf_append(out, dataset_value(&e->data, rng_next(&e->rng) >> 8, 0), e->data.value_len);
        break;
    }
}

/* "*3" CR LF, "$12" CR LF. */
static void append_head(struct buf *out, char kind, size_t count) {
    buf_append_char(out, kind);
    append_number(out, count);
    buf_append(out, "\r\n", 2);
}

void command_append(struct engine *e, struct buf *out, uint64_t id) {
    struct command *c = e->command;
    append_head(out, '*', c->word_count);
    for (size_t i = 0; i < c->word_count; i++) {
        const struct word *w = &c->words[i];
        buf_clear(&c->scratch);
        for (size_t k = 0; k < w->part_count; k++) {
            append_part(e, c, &c->parts[w->part_first + k], &id);
        }
        must_have_grown(&c->scratch);
        append_head(out, '$', c->scratch.len);
        buf_append(out, c->scratch.ptr, c->scratch.len);
        buf_append(out, "\r\n", 2);
    }
    must_have_grown(out);
}
