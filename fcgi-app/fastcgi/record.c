/* FastCGI framing; the header says why libfcgi is not left to do it alone. */

#include "fastcgi/record.h"

#include <string.h>

/* Section 8 of the specification. */
enum {
    VERSION_1 = 1,
    TYPE_BEGIN_REQUEST = 1,
    TYPE_ABORT_REQUEST = 2,
    TYPE_END_REQUEST = 3,
    TYPE_PARAMS = 4,
    TYPE_STDIN = 5,
    TYPE_GET_VALUES = 9,
    TYPE_GET_VALUES_RESULT = 10,
    TYPE_UNKNOWN = 11,
    ROLE_RESPONDER = 1,
    FLAG_KEEP_CONN = 1,
    CONTENT_MAX_BYTES = 65535,
    BEGIN_BODY_BYTES = 8,
    GET_VALUES_MAX_BYTES = 1024,
};

static const char *const value_names[] = {"FCGI_MAX_CONNS", "FCGI_MAX_REQS", "FCGI_MPXS_CONNS"};
/* Connections are limited by descriptors alone; the figure is a hint for the peer's pool. */
static const char *const values[] = {"16384", "16384", "0"};

enum { VALUES = sizeof(values) / sizeof(values[0]) };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void record_init(struct record_parser *parser, const struct record_limits *limits)
{
    memset(parser, 0, sizeof(*parser));
    parser->limits = *limits;
    buffer_init(&parser->params, limits->params_max_bytes);
    buffer_init(&parser->body, limits->body_max_bytes);
    buffer_init(&parser->control, GET_VALUES_MAX_BYTES);
}

void record_free(struct record_parser *parser)
{
    buffer_free(&parser->params);
    buffer_free(&parser->body);
    buffer_free(&parser->control);
}

bool record_is_midway(const struct record_parser *parser)
{
    return parser->stage != STAGE_BEGIN || parser->header_len > 0;
}

static uint16_t id_of(const unsigned char *header)
{
    return (uint16_t)(header[2] << 8 | header[3]);
}

static bool is_ours(const struct record_parser *parser)
{
    return parser->stage != STAGE_BEGIN && id_of(parser->header) == parser->request_id;
}

/* Where the content of the current record goes; NULL: it is skipped. */
static struct buffer *stream_of(struct record_parser *parser)
{
    if (!is_ours(parser))
        return NULL;
    if (parser->header[1] == TYPE_PARAMS)
        return &parser->params;
    return parser->header[1] == TYPE_STDIN && !parser->body_too_large ? &parser->body : NULL;
}

/* The header is complete: is this record allowed here? 0 or -1. */
static int check_header(struct record_parser *parser)
{
    const unsigned char *header = parser->header;

    parser->content_left = (size_t)(header[4] << 8 | header[5]);
    parser->padding_left = header[6];
    buffer_free(&parser->control);
    parser->asked_values = 0;
    if (header[0] != VERSION_1)
        return -1;
    switch (header[1]) {
    case TYPE_BEGIN_REQUEST:
        return id_of(header) != 0 && parser->content_left == BEGIN_BODY_BYTES ? 0 : -1;
    case TYPE_PARAMS:
        return is_ours(parser) && parser->stage != STAGE_PARAMS ? -1 : 0;
    case TYPE_STDIN:
        return is_ours(parser) && parser->stage != STAGE_BODY ? -1 : 0;
    case TYPE_GET_VALUES:
        return id_of(header) == 0 && parser->content_left <= GET_VALUES_MAX_BYTES ? 0 : -1;
    default:
        return 0;
    }
}

/* Part of the content of the current record. 0, or -1 beyond a limit. */
static int take_content(struct record_parser *parser, const char *bytes, size_t len)
{
    struct buffer *stream = stream_of(parser);

    if (stream != NULL && buffer_append(stream, bytes, len) != 0) {
        if (stream == &parser->params)
            return -1;
        /* Read on: an answer that comes before the end of the body is lost in a reset. */
        buffer_free(&parser->body);
        parser->body_too_large = true;
    }
    if (parser->header[1] == TYPE_BEGIN_REQUEST || parser->header[1] == TYPE_GET_VALUES)
        return buffer_append(&parser->control, bytes, len);
    return 0;
}

/* A name-value pair's length: one byte, or four when its high bit is set (section 3.4). */
static int read_length(const unsigned char **at, const unsigned char *end, size_t *len)
{
    if (*at == end)
        return -1;
    if (**at < 0x80) {
        *len = *(*at)++;
        return 0;
    }
    if (end - *at < 4)
        return -1;
    *len = (size_t)((*at)[0] & 0x7f) << 24 | (size_t)(*at)[1] << 16 | (size_t)(*at)[2] << 8 |
           (*at)[3];
    *at += 4;
    return 0;
}

/* Which known names a GET_VALUES asks for; a peer that repeats one is answered once. */
static unsigned asked_values(const struct buffer *content)
{
    const unsigned char *at = (const unsigned char *)content->data;
    const unsigned char *end = content->len > 0 ? at + content->len : at;
    unsigned asked = 0;
    size_t name_len;
    size_t value_len;

    while (at < end && read_length(&at, end, &name_len) == 0 &&
           read_length(&at, end, &value_len) == 0 && name_len <= (size_t)(end - at)) {
        for (unsigned i = 0; i < VALUES; i++) {
            if (strlen(value_names[i]) == name_len && memcmp(at, value_names[i], name_len) == 0)
                asked |= 1u << i;
        }
        at += name_len;
        if (value_len > (size_t)(end - at))
            break;
        at += value_len;
    }
    return asked;
}

/*
 * Whether each pair lies within the stream. libfcgi 2.4.2 allocates what the lengths say before
 * it looks for the bytes: their sum overflows (CVE-2025-23016), or its assert on malloc ends
 * us.
 */
static bool params_are_whole(const struct buffer *params)
{
    const unsigned char *at = (const unsigned char *)params->data;
    const unsigned char *end = params->len > 0 ? at + params->len : at;
    size_t name_len;
    size_t value_len;

    while (at < end) {
        if (read_length(&at, end, &name_len) != 0 || read_length(&at, end, &value_len) != 0 ||
            name_len > (size_t)(end - at) || value_len > (size_t)(end - at) - name_len)
            return false;
        at += name_len + value_len;
    }
    return true;
}

static enum record_event begin_request(struct record_parser *parser)
{
    const unsigned char *body = (const unsigned char *)parser->control.data;

    if (parser->stage != STAGE_BEGIN) {
        parser->other_id = id_of(parser->header);
        return parser->other_id == parser->request_id ? RECORD_BAD : RECORD_CANNOT_MULTIPLEX;
    }
    if ((body[0] << 8 | body[1]) != ROLE_RESPONDER)
        return RECORD_BAD;
    parser->request_id = id_of(parser->header);
    parser->keep_connection = (body[2] & FLAG_KEEP_CONN) != 0;
    parser->stage = STAGE_PARAMS;
    return RECORD_NEED_MORE;
}

static void start_over(struct record_parser *parser)
{
    buffer_free(&parser->params);
    buffer_free(&parser->body);
    parser->body_too_large = false;
    parser->stage = STAGE_BEGIN;
}

/* The record has been read to its end. */
static enum record_event end_record(struct record_parser *parser)
{
    bool was_empty = parser->header[4] == 0 && parser->header[5] == 0;
    uint8_t type = parser->header[1];

    parser->header_len = 0;
    if (type == TYPE_BEGIN_REQUEST)
        return begin_request(parser);
    if (id_of(parser->header) == 0) {
        parser->unknown_type = type;
        if (type != TYPE_GET_VALUES)
            return RECORD_UNKNOWN_TYPE;
        parser->asked_values = asked_values(&parser->control);
        return RECORD_GET_VALUES;
    }
    if (!is_ours(parser))
        return RECORD_NEED_MORE; /* of a request that is over: ignored (section 3.3) */
    if (type == TYPE_ABORT_REQUEST) {
        start_over(parser);
        return RECORD_ABORTED;
    }
    if (type == TYPE_PARAMS && was_empty) {
        if (!params_are_whole(&parser->params))
            return RECORD_BAD;
        parser->stage = STAGE_BODY;
    }
    if (type == TYPE_STDIN && was_empty) {
        parser->stage = STAGE_COMPLETE;
        return RECORD_REQUEST;
    }
    return RECORD_NEED_MORE;
}

enum record_event record_parse(struct record_parser *parser, const char *bytes, size_t len,
                               size_t *used)
{
    size_t at = 0;

    *used = 0;
    while (at < len) {
        size_t left = len - at;
        if (parser->header_len < RECORD_HEADER_BYTES) {
            size_t step = least(left, RECORD_HEADER_BYTES - parser->header_len);
            memcpy(parser->header + parser->header_len, bytes + at, step);
            parser->header_len += step;
            at += step;
            if (parser->header_len < RECORD_HEADER_BYTES)
                break;
            if (check_header(parser) != 0)
                return RECORD_BAD;
        } else if (parser->content_left > 0) {
            size_t step = least(left, parser->content_left);
            if (take_content(parser, bytes + at, step) != 0)
                return RECORD_BAD;
            parser->content_left -= step;
            at += step;
        } else {
            size_t step = least(left, parser->padding_left);
            parser->padding_left -= step;
            at += step;
        }
        if (parser->content_left > 0 || parser->padding_left > 0)
            continue;
        enum record_event event = end_record(parser);
        *used = at;
        if (event != RECORD_NEED_MORE)
            return event;
    }
    *used = at;
    return RECORD_NEED_MORE;
}

static int append_header(struct buffer *out, uint8_t type, uint16_t id, size_t content)
{
    unsigned char header[RECORD_HEADER_BYTES] = {VERSION_1,
                                                 type,
                                                 (unsigned char)(id >> 8),
                                                 (unsigned char)id,
                                                 (unsigned char)(content >> 8),
                                                 (unsigned char)content,
                                                 0,
                                                 0};
    return buffer_append(out, header, sizeof(header));
}

int record_take(struct record_parser *parser, struct buffer *out, struct buffer *body)
{
    uint16_t id = parser->request_id;
    unsigned char begin[BEGIN_BODY_BYTES] = {0, ROLE_RESPONDER,
                                             parser->keep_connection ? FLAG_KEEP_CONN : 0};

    append_header(out, TYPE_BEGIN_REQUEST, id, sizeof(begin));
    buffer_append(out, begin, sizeof(begin));
    for (size_t at = 0; at < parser->params.len;) {
        size_t piece = least(parser->params.len - at, CONTENT_MAX_BYTES);
        append_header(out, TYPE_PARAMS, id, piece);
        buffer_append(out, parser->params.data + at, piece);
        at += piece;
    }
    append_header(out, TYPE_PARAMS, id, 0);
    int result = append_header(out, TYPE_STDIN, id, 0);

    *body = parser->body;
    buffer_init(&parser->body, parser->limits.body_max_bytes);
    start_over(parser);
    return result;
}

bool record_is_abort(const char *bytes, size_t len, uint16_t request_id)
{
    const unsigned char *header = (const unsigned char *)bytes;

    return len >= RECORD_HEADER_BYTES && header[0] == VERSION_1 &&
           header[1] == TYPE_ABORT_REQUEST && id_of(header) == request_id;
}

int record_append_end_request(struct buffer *out, uint16_t request_id,
                              enum record_status status)
{
    unsigned char body[8] = {0, 0, 0, 0, (unsigned char)status};

    append_header(out, TYPE_END_REQUEST, request_id, sizeof(body));
    return buffer_append(out, body, sizeof(body));
}

int record_append_unknown_type(struct buffer *out, uint8_t type)
{
    unsigned char body[8] = {type};

    append_header(out, TYPE_UNKNOWN, 0, sizeof(body));
    return buffer_append(out, body, sizeof(body));
}

int record_append_values(struct buffer *out, unsigned asked)
{
    size_t content = 0;

    for (unsigned i = 0; i < VALUES; i++) {
        if (asked & 1u << i)
            content += 2 + strlen(value_names[i]) + strlen(values[i]);
    }
    append_header(out, TYPE_GET_VALUES_RESULT, 0, content);
    for (unsigned i = 0; i < VALUES; i++) {
        if (!(asked & 1u << i))
            continue;
        buffer_append_char(out, (char)strlen(value_names[i]));
        buffer_append_char(out, (char)strlen(values[i]));
        buffer_append_text(out, value_names[i]);
        buffer_append_text(out, values[i]);
    }
    return out->failed ? -1 : 0;
}
