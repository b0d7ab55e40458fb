/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: bytes in, commands out, without copying arguments and without reading a byte twice.
 *
 *     *2 CRLF $3 CRLF GET CRLF $3 CRLF key CRLF      multibulk: what client libraries send
 *     GET key CRLF                                   inline: what people type
 *
 * Words. A *command* starts at `in`; a *bulk* is one argument; a bulk over RESP_BIG_BULK bytes is
 * *big* and gets an allocation of its own; the *partial* is what the parser remembers of a command
 * of which some arguments arrived and some did not.
 *
 * The caller owns the input and passes it from the start of the first unconsumed command. In a
 * loop:
 *
 *     RESP_COMMAND    arguments args->v[first .. first + argc); drop `consumed` bytes, parse on.
 *                     They are views into the input, so it must stay where it is until the batch
 *                     was executed (then resp_args_clear). Inline arguments were unquoted in place.
 *     RESP_NEED_MORE  drop `consumed` bytes (empty commands before the partial one), keep the rest
 *                     and call again with more behind it; the input may have moved meanwhile.
 *     RESP_BIG        drop `consumed` bytes and cut the rest to `keep` bytes (what follows was
 * moved into the big bulk); then read into resp_big_room / resp_big_commit until resp_big_missing
 * is 0, and call again. Reading into the input instead is also right, only slower. RESP_ERROR the
 * text behind "-ERR "; the connection is to be closed after it is sent. RESP_NOMEM      the
 * connection is to be closed; nothing was taken from args.
 *
 * Memory. A parser between commands owns nothing. A partial costs 16 bytes an argument that has
 * arrived, at most doubled; nothing is ever allocated from a length that was only claimed. A big
 * bulk starts with RESP_BIG_START bytes and doubles as it fills, up to its length + 2, so a claim
 * of 512 MiB costs 64 KiB, and each of its bytes is copied at most once more on the average.
 * Cost. O(bytes) over any splitting into pieces, a million arguments in 1-byte pieces included.
 *
 * Limits and error texts are those of Redis 7.2, with one difference: whether a line is too long
 * depends on the line alone, not on how it was cut into reads. As there, the two bytes behind a
 * bulk are skipped unseen, and so is the one behind the CR of a length.
 * Protocol: redis.io, "RESP protocol specification". */
#ifndef RESP_PARSER_H
#define RESP_PARSER_H

#include "base/bytes.h"
#include "base/status.h"

#define RESP_BIG_BULK ((size_t)32 * 1024)  /* longer bulks get their own memory */
#define RESP_BIG_START ((size_t)64 * 1024) /* first allocation of a big bulk */
#define RESP_BIG_TRUSTED                                                                           \
    ((size_t)1024 * 1024)                 /* once so much has come, the rest is allocated at once */
#define RESP_MAX_LINE ((size_t)64 * 1024) /* inline request, or digits of a length */
#define RESP_MAX_MULTIBULK ((uint32_t)1024 * 1024) /* arguments a command */
#define RESP_MAX_BULK ((size_t)512 * 1024 * 1024)  /* default of proto-max-bulk-len */
#define RESP_UNAUTH_MULTIBULK 10                   /* before AUTH, where a password is required */
#define RESP_UNAUTH_BULK 16384
#define RESP_ERROR_TEXT_LEN 64

enum resp_event { RESP_COMMAND, RESP_NEED_MORE, RESP_BIG, RESP_ERROR, RESP_NOMEM };

struct resp_limits {
    size_t max_bulk_len;    /* proto-max-bulk-len */
    uint32_t max_multibulk; /* RESP_MAX_MULTIBULK */
    bool unauthenticated;   /* a password is required and was not given yet */
};

#define RESP_LIMITS_DEFAULT                                                                        \
    ((struct resp_limits){.max_bulk_len = RESP_MAX_BULK, .max_multibulk = RESP_MAX_MULTIBULK})

/* A big bulk among the arguments: argument arg_idx lies in ptr, from malloc; NULL once stolen. */
struct resp_big {
    size_t arg_idx;
    char *ptr;
};

/* The arguments of a batch of commands, of any number of connections. Zero-initialised is empty.
 * v moves as it grows: keep (first, argc) of a command, not a pointer, until parsing is over. */
struct resp_args {
    struct bytes *v;
    size_t len, cap;
    struct resp_big *bigs; /* by arg_idx, ascending */
    size_t bigs_len, bigs_cap;
    size_t steal_idx; /* where the next steal looks first: they mostly come in order */
};

struct resp_partial; /* parser.c */

/* One a connection. Zero-initialised is ready. Treat the fields as private. */
struct resp_parser {
    struct resp_partial *partial; /* NULL while no argument is remembered */
    size_t pos;                   /* where parsing goes on, from the start of the command */
    size_t scanned;               /* the line at pos has no end before this offset */
    int64_t bulk_len;             /* of the bulk at pos; -1: its header comes first */
    uint32_t left;                /* arguments still to come */
    uint8_t state;
};

struct resp_result {
    size_t consumed;                 /* bytes to drop from the front of the input */
    size_t keep;                     /* RESP_BIG: bytes to keep behind them */
    size_t first, argc;              /* RESP_COMMAND: argc >= 1 arguments from args->v[first] */
    char error[RESP_ERROR_TEXT_LEN]; /* RESP_ERROR: "Protocol error: ..." */
};

/* Parse up to the end of one command. See the loop above. */
MUST_CHECK enum resp_event resp_parse(struct resp_parser *p, char *in, size_t len,
                                      const struct resp_limits *limits, struct resp_args *args,
                                      struct resp_result *out);

/* Free what an unfinished command holds; the parser is then ready for a new stream. */
void resp_parser_deinit(struct resp_parser *p);

/* Heap bytes held for an unfinished command: counts against client-query-buffer-limit. */
size_t resp_parser_memory(const struct resp_parser *p);

/* True between commands: what follows is a command's first byte. */
static inline bool resp_parser_idle(const struct resp_parser *p) {
    return p->state == 0;
}

/* Bytes the big bulk under way still lacks, its CRLF included; 0 when there is none. */
size_t resp_big_missing(const struct resp_parser *p);

/* Where to read them: *room bytes at the result, never more than are missing. NULL: out of memory
 * (the connection is to be closed), or nothing is missing. */
char *resp_big_room(struct resp_parser *p, size_t *room);
void resp_big_commit(struct resp_parser *p, size_t n);

/* Take over the memory of a big argument (from malloc, arg.len + 2 bytes; free it with free).
 * NULL when the argument is a view into the input. O(1) in order of arguments. The view stays
 * readable as long as the new owner keeps the memory. */
char *resp_args_steal(struct resp_args *args, struct bytes arg);

/* Forget the arguments and free the big ones that were not stolen. Keeps v unless it is huge. */
void resp_args_clear(struct resp_args *args);
void resp_args_deinit(struct resp_args *args);

#endif
