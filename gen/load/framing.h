#ifndef RUNNEL_LOAD_FRAMING_H
#define RUNNEL_LOAD_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where the body of an HTTP/1.1 reply ends (RFC 9112, section 6.3): by chunks, by its length,
 * or with the connection. Bytes as they come in; out come those of the body, where they lie.
 */

enum framing_kind { FRAMING_CLOSE, FRAMING_LENGTH, FRAMING_CHUNKED };

enum framing_status {
    FRAMING_MORE,      /* the body goes on */
    FRAMING_ENDED,     /* it is whole; what came behind it was left alone */
    FRAMING_MALFORMED, /* no chunks */
    FRAMING_STOPPED,   /* the taker did not want to go on */
};

/* 0: go on. */
typedef int (*framing_take)(void *context, const char *bytes, size_t len);

struct framing {
    enum framing_kind kind;
    uint64_t left;  /* of the length, or of the chunk */
    unsigned state; /* within the chunks; see framing.c */
    unsigned digits;
};

/* At the status line of a reply. */
void framing_start(struct framing *framing);

/* Each line of its head, in any order; what says nothing about the body is ignored. */
void framing_header(struct framing *framing, const char *line, size_t len);

enum framing_status framing_feed(struct framing *framing, const char *bytes, size_t len,
                                 framing_take take, void *context);

/* The connection has been closed: was the body whole? */
bool framing_is_whole_at_close(const struct framing *framing);

#endif
