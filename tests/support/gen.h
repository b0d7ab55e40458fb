/* SPDX-License-Identifier: BSD-3-Clause */
/* A seeded generator of command sequences for the differential test: valid commands over a small
 * space of keys and fields, and every kind of mistake a client can make.
 *
 * A table row is a weight, how its reply is compared, and a template of words:
 *   WORD        as it is
 *   {A B|C|}    one alternative, itself words; an empty alternative is no argument
 *   %k any key     %s key usually a string    %h key usually a hash   %f field    %v value
 *   %z key usually a sorted set   %m member   %S score   %x score bound   %y bound in byte order
 *   %t key usually a set  %u member of one
 *   %q key of a sorted set whose scores are all 0: order by member means something there only
 *   %L number of LIMIT or rank   %g weight
 *   %i integer to add   %F float to add   %o offset   %n small count   %r HRANDFIELD count
 *   %d database    %D a DUMP   %p pattern   %w junk word   %l up to 100 KB
 *   %e relative s   %E relative ms   %a absolute s   %A absolute ms
 *   %b, %B      absolute s and ms for SET, never past: redis 7.0 counts such a key in DBSIZE until
 *               its expiry cycle meets it, which depends on the clock
 *   %X+         one to six times;  %f%v (no blank between) two arguments, and %f%v+ repeats both
 *
 * Relative expiries are drawn without repetition and lie far from the absolute ones, so that "GT"
 * and "LT" never depend on the milliseconds between the two servers. Every absolute time is either
 * long past or some months ahead. */
#ifndef SUPPORT_GEN_H
#define SUPPORT_GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum compare {
    COMPARE_EXACT,
    COMPARE_SORTED,   /* a list without order: KEYS, HKEYS, HVALS */
    COMPARE_PAIRS,    /* HGETALL: flat pairs or a map, without order */
    COMPARE_SCORES,   /* texts that are numbers may be written in two ways if they read the same */
    COMPARE_TYPE,     /* the reply's type only: MEMORY USAGE, TIME, COMMAND COUNT */
    COMPARE_NEAR_S,   /* an integer of seconds, 2 apart at most; negative ones exact */
    COMPARE_NEAR_MS,  /* the same in milliseconds, 2000 apart at most */
    COMPARE_SHAPE,    /* every type at every level, texts and numbers aside: HELLO */
    COMPARE_SCAN,     /* cursor and list: shape only (whole iterations are compared apart) */
    COMPARE_RANDOM,   /* same count; members checked by the caller (ends a batch) */
    COMPARE_POPPED,   /* SPOP: same count; the caller checks and evens out (ends a batch) */
    COMPARE_RANDKEY,  /* nil on both, or a key on each (ends a batch) */
    COMPARE_ENCODING, /* OBJECT ENCODING, with the differences the test documents */
    COMPARE_CLOSES,   /* QUIT: an answer, then the connection ends (ends a batch) */
};

enum { GEN_MAX_ARGS = 64 };

struct command {
    int argc;
    const char *argv[GEN_MAX_ARGS];
    size_t lens[GEN_MAX_ARGS];
    enum compare compare;
    bool ends_batch; /* what follows depends on its reply having been read */
};

struct gen;

/* protocol 3 makes the generator return to RESP3 after RESET and HELLO 2. */
struct gen *gen_create(uint64_t seed, int protocol);
void gen_destroy(struct gen *g);

/* Fill in the next command. Its arguments stay valid until gen_recycle. */
void gen_next(struct gen *g, struct command *cmd);
void gen_recycle(struct gen *g);

/* Uniform in [0, bound); the same stream as the commands, so that one seed repeats a run. */
uint64_t gen_below(struct gen *g, uint64_t bound);

#endif
