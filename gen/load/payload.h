#ifndef RUNNEL_LOAD_PAYLOAD_H
#define RUNNEL_LOAD_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * What the data of one event says: a token, the end, an error, or nothing that counts.
 *
 * One pass over the JSON checks all of it (RFC 8259, strictly) and picks the few members that
 * matter, without a tree and without memory: this is done for every token of every stream. The
 * shapes are those of runnel ({"token":"a","n":1}) and of the OpenAI API: choices[0].text of
 * completions, choices[0].delta.content (or reasoning_content, reasoning) of chat.
 */

enum payload_kind {
    PAYLOAD_TOKEN,
    PAYLOAD_DONE,  /* [DONE] */
    PAYLOAD_ERROR, /* a member "error", or an event of that name */
    PAYLOAD_BAD,   /* not JSON */
    PAYLOAD_OTHER, /* a role, usage, an empty delta, what another format would take for a token
                    */
};

enum payload_format { PAYLOAD_AUTO, PAYLOAD_TOKENS, PAYLOAD_OPENAI };

enum { PAYLOAD_DEPTH_MAX = 64 };

struct payload {
    enum payload_kind kind;
    const char
        *text; /* of a token: decoded; of an error: its message. Good until the next read */
    size_t text_len;
    uint64_t tokens;  /* "n", or 1 for a token without it */
    bool tells_count; /* the format says how many tokens an event is made of */
    bool has_index, has_stamps, has_usage;
    uint64_t index;             /* "i" */
    int64_t sent_us, due_us;    /* "t_us" and "due_us", of the server's clock */
    uint64_t completion_tokens; /* usage.completion_tokens */
};

/* "auto", "token" or "openai". 0, or -1 and *format as it was. */
int payload_format_parse(const char *name, enum payload_format *format);
const char *payload_format_name(enum payload_format format);

/*
 * Reads the data of an event whose name is `name`. `scratch` holds the text; its ceiling must
 * be that of the data. Never fails otherwise than by PAYLOAD_BAD.
 */
void payload_read(struct payload *payload, struct buffer *scratch, enum payload_format format,
                  const char *name, const char *data, size_t len);

#endif
