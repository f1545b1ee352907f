#ifndef RUNNEL_FASTCGI_RECORD_H
#define RUNNEL_FASTCGI_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * FastCGI framing (FastCGI specification 1.0, sections 3.3 and 8), read incrementally.
 *
 * libfcgi decodes and answers requests, but only from bytes that this parser has vetted: it
 * blocks on half a request, and a management record with a repeated name writes past its stack
 * buffer (2.4.2). So framing is checked here, whole requests are handed on in canonical form,
 * and management records never get further. Pure: bytes in, events out.
 */

enum { RECORD_HEADER_BYTES = 8 };

enum record_event {
    RECORD_NEED_MORE,    /* all bytes used, nothing complete */
    RECORD_REQUEST,      /* a whole request: take it with record_take */
    RECORD_ABORTED,      /* the peer gave up the request it was sending: answer END_REQUEST */
    RECORD_GET_VALUES,   /* answer with record_append_values */
    RECORD_UNKNOWN_TYPE, /* answer with record_append_unknown_type */
    RECORD_CANNOT_MULTIPLEX, /* a second request inside the first: answer END_REQUEST */
    RECORD_BAD,              /* not FastCGI, or beyond a limit: close the connection */
};

struct record_limits {
    size_t params_max_bytes;
    size_t body_max_bytes;
};

struct record_parser {
    struct record_limits limits;
    enum { STAGE_BEGIN, STAGE_PARAMS, STAGE_BODY, STAGE_COMPLETE } stage;
    uint16_t request_id;
    bool keep_connection;
    struct buffer params; /* content of the PARAMS records */
    struct buffer body;   /* content of the STDIN records */
    bool body_too_large;  /* it was read to its end, and dropped */
    /* the record being read */
    unsigned char header[RECORD_HEADER_BYTES];
    size_t header_len;
    size_t content_left, padding_left;
    struct buffer control; /* content of a BEGIN or GET_VALUES record */
    /* for the answers */
    uint16_t other_id;     /* RECORD_CANNOT_MULTIPLEX */
    uint8_t unknown_type;  /* RECORD_UNKNOWN_TYPE */
    unsigned asked_values; /* RECORD_GET_VALUES: which of the known names */
};

void record_init(struct record_parser *parser, const struct record_limits *limits);
void record_free(struct record_parser *parser);

/* Whether part of a request has been read. */
bool record_is_midway(const struct record_parser *parser);

/* Read up to the next event; `*used` is how many bytes were. After RECORD_BAD only record_free.
 */
enum record_event record_parse(struct record_parser *parser, const char *bytes, size_t len,
                               size_t *used);

/*
 * After RECORD_REQUEST: append the request to `out` as libfcgi wants it (BEGIN, PARAMS, the
 * empty PARAMS, the empty STDIN), move the body to `body`, and make the parser ready for the
 * next one. 0, or -1 without memory.
 */
int record_take(struct record_parser *parser, struct buffer *out, struct buffer *body);

/* Whether `bytes` begin with an FCGI_ABORT_REQUEST for this request. */
bool record_is_abort(const char *bytes, size_t len, uint16_t request_id);

/* Protocol status of an END_REQUEST (section 5.5). */
enum record_status { RECORD_REQUEST_COMPLETE = 0, RECORD_CANT_MPX_CONN = 1 };

int record_append_end_request(struct buffer *out, uint16_t request_id,
                              enum record_status status);
int record_append_unknown_type(struct buffer *out, uint8_t type);
int record_append_values(struct buffer *out, unsigned asked_values);

#endif
