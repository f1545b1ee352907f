/* Server-sent events as bytes, in each legal spelling. */

#include "wire/sse.h"

#include <string.h>

static const char *line_end(enum sse_wire wire)
{
    return wire == SSE_CRLF ? "\r\n" : wire == SSE_CR ? "\r" : "\n";
}

static int append_field(struct buffer *out, enum sse_wire wire, const char *name,
                        const char *value, size_t len)
{
    buffer_append_text(out, name);
    buffer_append_text(out, wire == SSE_NOSPACE ? ":" : ": ");
    buffer_append(out, value, len);
    return buffer_append_text(out, line_end(wire));
}

int sse_append_start(struct buffer *out, enum sse_wire wire)
{
    return wire == SSE_BOM ? buffer_append_text(out, "\xef\xbb\xbf") : 0;
}

int sse_append_finish(struct buffer *out, enum sse_wire wire)
{
    return wire == SSE_CR ? buffer_append_text(out, ": end\r") : 0;
}

static void append_data(struct buffer *out, enum sse_wire wire, const char *data, size_t len)
{
    const char *newline;

    while ((newline = memchr(data, '\n', len)) != NULL) {
        size_t line_len = (size_t)(newline - data);
        append_field(out, wire, "data", data, line_len);
        data += line_len + 1;
        len -= line_len + 1;
    }
    append_field(out, wire, "data", data, len);
}

int sse_append_event(struct buffer *out, enum sse_wire wire, const struct sse_event *event)
{
    if (wire == SSE_COMMENTS)
        buffer_append_text(out, ": a comment before the event\n:\n");
    if (event->name != NULL)
        append_field(out, wire, "event", event->name, strlen(event->name));
    if (event->id != NULL)
        append_field(out, wire, "id", event->id, strlen(event->id));
    if (wire == SSE_COMMENTS)
        buffer_append_text(out, ":data: a comment inside the event\n");
    append_data(out, wire, event->data, event->data_len);
    return buffer_append_text(out, line_end(wire));
}

int sse_append_comment(struct buffer *out, enum sse_wire wire, const char *text)
{
    buffer_append_text(out, ": ");
    buffer_append_text(out, text);
    buffer_append_text(out, line_end(wire));
    return buffer_append_text(out, line_end(wire));
}
