/* The OpenAI API's objects; members are in the order in which that API writes them. */

#include "wire/openai.h"

#include <string.h>

#include "wire/json.h"

enum {
    PREFIX_MAX_BYTES = 4096, /* a model's name with every byte escaped, an id, the rest */
    /* When the model was made: the day from which its token sequences are frozen. */
    MODEL_CREATED_S = 1795910400,
};

const char openai_model[] = "runnel";

#define CHOICE       ",\"choices\":[{\"index\":0,"
#define NOT_FINISHED ",\"logprobs\":null,\"finish_reason\":null}]"

/* What depends on the kind. */
static const struct {
    const char *id_prefix;
    const char *object, *chunk_object;
    const char *text_start, *text_end; /* inside a choice of a whole reply */
    const char *chunk_start, *chunk_end;
    const char *chunk_empty;
} forms[] = {
    [OPENAI_COMPLETION] =
        {
            .id_prefix = "cmpl-",
            .object = "text_completion",
            .chunk_object = "text_completion",
            .text_start = "\"text\":\"",
            .text_end = "\"",
            .chunk_start = "\"text\":\"",
            .chunk_end = "\"" NOT_FINISHED,
            .chunk_empty = "\"text\":\"\"",
        },
    [OPENAI_CHAT] =
        {
            .id_prefix = "chatcmpl-",
            .object = "chat.completion",
            .chunk_object = "chat.completion.chunk",
            .text_start = "\"message\":{\"role\":\"assistant\",\"content\":\"",
            .text_end = "\"}",
            .chunk_start = "\"delta\":{\"content\":\"",
            .chunk_end = "\"}" NOT_FINISHED,
            .chunk_empty = "\"delta\":{}",
        },
};

static int append_identity(struct buffer *out, const struct openai_reply *reply,
                           const char *object)
{
    buffer_append_text(out, "\"id\":\"");
    buffer_append_text(out, forms[reply->kind].id_prefix);
    buffer_append_text(out, reply->request_id); /* A-Za-z0-9._- */
    buffer_append_text(out, "\",\"object\":\"");
    buffer_append_text(out, object);
    buffer_append_text(out, "\",\"created\":");
    buffer_append_u64(out, (unsigned long long)reply->created_s);
    buffer_append_text(out, ",\"model\":");
    return json_append_string(out, reply->model, strlen(reply->model));
}

static int append_finished(struct buffer *out, enum openai_finish finish)
{
    buffer_append_text(out, ",\"logprobs\":null,\"finish_reason\":\"");
    return buffer_append_text(out, finish == OPENAI_STOP ? "stop\"}]" : "length\"}]");
}

static int append_usage(struct buffer *out, const struct openai_usage *usage)
{
    buffer_append_text(out, ",\"usage\":{\"prompt_tokens\":");
    buffer_append_u64(out, usage->prompt_tokens);
    buffer_append_text(out, ",\"completion_tokens\":");
    buffer_append_u64(out, usage->completion_tokens);
    buffer_append_text(out, ",\"total_tokens\":");
    buffer_append_u64(out, usage->prompt_tokens + usage->completion_tokens);
    return buffer_append_char(out, '}');
}

/* --- in one piece --- */

int openai_append_start(struct buffer *out, const struct openai_reply *reply)
{
    buffer_append_char(out, '{');
    append_identity(out, reply, forms[reply->kind].object);
    buffer_append_text(out, CHOICE);
    return buffer_append_text(out, forms[reply->kind].text_start);
}

int openai_append_end(struct buffer *out, const struct openai_reply *reply,
                      enum openai_finish finish, const struct openai_usage *usage)
{
    buffer_append_text(out, forms[reply->kind].text_end);
    append_finished(out, finish);
    append_usage(out, usage);
    return buffer_append_text(out, "}\n");
}

/* --- in chunks --- */

int openai_chunks_init(struct openai_chunks *chunks, const struct openai_reply *reply,
                       bool tells_usage, bool multiline)
{
    struct buffer *prefix = &chunks->prefix;

    chunks->kind = reply->kind;
    chunks->tells_usage = tells_usage;
    buffer_init(prefix, PREFIX_MAX_BYTES);
    buffer_append_text(prefix, multiline ? "{\n" : "{");
    append_identity(prefix, reply, forms[reply->kind].chunk_object);
    chunks->head_len = prefix->len;
    buffer_append_text(prefix, CHOICE);
    return buffer_append_text(prefix, forms[reply->kind].chunk_start);
}

void openai_chunks_free(struct openai_chunks *chunks)
{
    buffer_free(&chunks->prefix);
}

static int append_head(struct buffer *out, const struct openai_chunks *chunks)
{
    return buffer_append(out, chunks->prefix.data, chunks->head_len);
}

int openai_append_text_start(struct buffer *out, const struct openai_chunks *chunks)
{
    return buffer_append(out, chunks->prefix.data, chunks->prefix.len);
}

int openai_append_text_end(struct buffer *out, const struct openai_chunks *chunks)
{
    int result = buffer_append_text(out, forms[chunks->kind].chunk_end);

    return chunks->tells_usage ? buffer_append_text(out, ",\"usage\":null") : result;
}

int openai_append_role(struct buffer *out, const struct openai_chunks *chunks)
{
    append_head(out, chunks);
    buffer_append_text(out, CHOICE
                       "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}" NOT_FINISHED);
    return buffer_append_text(out, chunks->tells_usage ? ",\"usage\":null}" : "}");
}

int openai_append_finish(struct buffer *out, const struct openai_chunks *chunks,
                         enum openai_finish finish)
{
    append_head(out, chunks);
    buffer_append_text(out, CHOICE);
    buffer_append_text(out, forms[chunks->kind].chunk_empty);
    append_finished(out, finish);
    return buffer_append_text(out, chunks->tells_usage ? ",\"usage\":null}" : "}");
}

int openai_append_usage(struct buffer *out, const struct openai_chunks *chunks,
                        const struct openai_usage *usage)
{
    append_head(out, chunks);
    buffer_append_text(out, ",\"choices\":[]");
    append_usage(out, usage);
    return buffer_append_char(out, '}');
}

/* --- the model --- */

int openai_append_model(struct buffer *out)
{
    return buffer_printf(
        out, "{\"id\":\"%s\",\"object\":\"model\",\"created\":%d,\"owned_by\":\"runnel\"}",
        openai_model, MODEL_CREATED_S);
}
