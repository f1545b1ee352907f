#ifndef RUNNEL_WIRE_SSE_H
#define RUNNEL_WIRE_SSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * Server-sent events as bytes (WHATWG HTML, section 9.2), in all their legal spellings: a
 * client that reads one and not another has a bug. Pure: what is appended depends on the
 * arguments alone. Each function returns 0, or -1 as buffer_append.
 */

enum sse_wire {
    SSE_LF,        /* the usual */
    SSE_CRLF,      /* lines end with CR LF */
    SSE_CR,        /* lines end with CR */
    SSE_NOSPACE,   /* `data:{` without the space after the colon */
    SSE_COMMENTS,  /* comment lines before and inside each event */
    SSE_MULTILINE, /* the data of an event in several data: lines */
    SSE_BOM,       /* the stream begins with U+FEFF */
    SSE_DRIP,      /* as the first, one byte a write: the engine's part */
};

struct sse_event {
    const char *name; /* of the event; NULL: a message */
    const char *id;   /* NULL: none */
    const char *data; /* each newline in it begins one more data: line */
    size_t data_len;
};

/* What comes before the first event; nothing but for SSE_BOM. */
int sse_append_start(struct buffer *out, enum sse_wire wire);

/*
 * What comes after the last event: for SSE_CR a comment line. Parsers that keep a CR back until
 * they know whether an LF follows would never see the last event end (eventsource-parser 3 is
 * one), and an empty line more is an event to others (httpx-sse 0.4 is one).
 */
int sse_append_finish(struct buffer *out, enum sse_wire wire);

int sse_append_event(struct buffer *out, enum sse_wire wire, const struct sse_event *event);

/* `: text`, and the empty line that keeps it from being part of an event. */
int sse_append_comment(struct buffer *out, enum sse_wire wire, const char *text);

#endif
