#ifndef RUNNEL_WIRE_JSON_H
#define RUNNEL_WIRE_JSON_H

#include <stddef.h>

#include "base/buffer.h"

/*
 * JSON strings, written so that no text can break what carries it.
 *
 * Escaped are `"`, `\`, everything below U+0020, DEL, and U+0085, U+2028, U+2029: the last
 * three are legal inside a JSON string (RFC 8259, section 7), but some clients split lines on
 * them, and an event that is cut in two is lost. Parsing is cJSON's; writing is ours because it
 * happens for each token.
 */

/* Append `"text"` with its quotes. 0, or -1 as buffer_append. `text` is valid UTF-8. */
int json_append_string(struct buffer *out, const char *text, size_t len);

/* The same without the quotes, for a string that is written in pieces. */
int json_append_escaped(struct buffer *out, const char *text, size_t len);

#endif
