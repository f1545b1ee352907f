/* The events of a stream as bytes. */

#include "wire/sse.h"

#include "wire/json.h"

int sse_append_token(struct buffer *out, const char *token, size_t len)
{
    if (buffer_append_text(out, "data: {\"token\":") != 0 ||
        json_append_string(out, token, len) != 0)
        return -1;
    return buffer_append_text(out, "}\n\n");
}

int sse_append_done(struct buffer *out)
{
    return buffer_append_text(out, "data: [DONE]\n\n");
}

int sse_append_error(struct buffer *out, const char *json, size_t len)
{
    if (buffer_append_text(out, "event: error\ndata: ") != 0 ||
        buffer_append(out, json, len) != 0)
        return -1;
    return buffer_append_text(out, "\n\n");
}
