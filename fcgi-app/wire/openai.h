#ifndef RUNNEL_WIRE_OPENAI_H
#define RUNNEL_WIRE_OPENAI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * Replies of the OpenAI API as bytes: text completions and chat completions, whole and in
 * chunks, and the model. Pure: what is appended depends on the arguments alone. Each function
 * that returns an int returns 0, or -1 as buffer_append.
 */

enum openai_kind { OPENAI_COMPLETION, OPENAI_CHAT };

enum openai_finish {
    OPENAI_LENGTH, /* as many tokens as were asked for */
    OPENAI_STOP,   /* a stop sequence was met */
};

enum { OPENAI_MODEL_MAX_BYTES = 128 };

/* What is the same in every object of one reply. */
struct openai_reply {
    enum openai_kind kind;
    int64_t created_s;                      /* since 1970 */
    char request_id[64 + 1];                /* its own id is this with the API's prefix */
    char model[OPENAI_MODEL_MAX_BYTES + 1]; /* valid UTF-8 */
};

struct openai_usage {
    uint64_t prompt_tokens, completion_tokens;
};

/* --- a reply in one piece: the start, the text, escaped (wire/json.h), and the end --- */

int openai_append_start(struct buffer *out, const struct openai_reply *reply);
int openai_append_end(struct buffer *out, const struct openai_reply *reply,
                      enum openai_finish finish, const struct openai_usage *usage);

/* --- a reply in chunks: the JSON of each, without the event around it --- */

/* What all chunks have before their text, made once for a stream. */
struct openai_chunks {
    enum openai_kind kind;
    bool tells_usage;     /* each chunk has a usage, of which all but the last are null */
    struct buffer prefix; /* up to a chunk's text */
    size_t head_len;      /* of it: up to `choices` */
};

/* `multiline`: with a newline where JSON allows one. Free it with openai_chunks_free. */
int openai_chunks_init(struct openai_chunks *chunks, const struct openai_reply *reply,
                       bool tells_usage, bool multiline);
void openai_chunks_free(struct openai_chunks *chunks);

/* A chunk of text: the start, the text, escaped, and the end but for the last brace, so that
 * more members can follow. */
int openai_append_text_start(struct buffer *out, const struct openai_chunks *chunks);
int openai_append_text_end(struct buffer *out, const struct openai_chunks *chunks);

/* Whole chunks: who speaks (chat only), why it ended, what it cost. */
int openai_append_role(struct buffer *out, const struct openai_chunks *chunks);
int openai_append_finish(struct buffer *out, const struct openai_chunks *chunks,
                         enum openai_finish finish);
int openai_append_usage(struct buffer *out, const struct openai_chunks *chunks,
                        const struct openai_usage *usage);

/* --- the model --- */

extern const char openai_model[];

int openai_append_model(struct buffer *out);

#endif
