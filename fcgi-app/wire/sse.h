#ifndef RUNNEL_WIRE_SSE_H
#define RUNNEL_WIRE_SSE_H

#include <stddef.h>

#include "base/buffer.h"

/*
 * The events of runnel's own stream, as bytes (WHATWG HTML, section 9.2, "Server-sent events").
 * Pure: what they append depends on the arguments alone. Each returns 0, or -1 as
 * buffer_append.
 */

/* `data: {"token":"..."}` and an empty line. */
int sse_append_token(struct buffer *out, const char *token, size_t len);

/* `data: [DONE]` and an empty line: the only proof that a stream is complete. */
int sse_append_done(struct buffer *out);

/* `event: error`, `data: <json>` and an empty line. `json` has no newline in it. */
int sse_append_error(struct buffer *out, const char *json, size_t len);

#endif
