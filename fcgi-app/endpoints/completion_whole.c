/* A completion in one piece: the text is kept, escaped, until it is all there. */

#include <stdlib.h>
#include <string.h>

#include "endpoints/completion.h"
#include "endpoints/submit.h"
#include "wire/json.h"

enum {
    /* A control character of one byte is six when it is escaped. */
    ESCAPED_TOKEN_MAX_BYTES = 6 * TOKGEN_TOKEN_MAX_BYTES,
};

struct whole {
    struct completion completion;
    struct buffer text; /* JSON-escaped */
    /* What may be the beginning of a stop sequence, and room for one more token. */
    char tail[STOP_SEQUENCE_MAX_BYTES + TOKGEN_TOKEN_MAX_BYTES];
    size_t tail_len;
};

static int whole_head(void *context, struct buffer *out)
{
    (void)context;
    (void)out; /* the status is not known before the end */
    return 0;
}

/* Move the first `len` bytes of the tail to the text. */
static int settle_tail(struct whole *whole, size_t len)
{
    if (json_append_escaped(&whole->text, whole->tail, len) != 0)
        return -1;
    whole->tail_len -= len;
    memmove(whole->tail, whole->tail + len, whole->tail_len);
    return 0;
}

static int add_token(struct whole *whole, uint64_t index, struct token_span *span)
{
    struct completion *completion = &whole->completion;
    char *token = whole->tail + whole->tail_len;
    size_t len = tokgen_token(&completion->tokens, index, token, TOKGEN_TOKEN_MAX_BYTES);
    size_t found;

    if (completion->stops == NULL)
        return json_append_escaped(&whole->text, token, len);
    size_t read = stop_read(&completion->search, completion->stops, token, len, &found);
    if (read == 0) {
        whole->tail_len += len;
        return settle_tail(whole, whole->tail_len - stop_pending(&completion->search));
    }
    completion->finish = OPENAI_STOP;
    span->stops = true;
    whole->tail_len += read;
    whole->tail_len -= found;
    return settle_tail(whole, whole->tail_len);
}

static int whole_tokens(void *context, struct buffer *out, struct token_span *span)
{
    struct whole *whole = context;

    (void)out;
    for (uint64_t made = 0; made < span->count; made++) {
        if (add_token(whole, span->first + made, span) != 0)
            return -1;
        if (span->stops)
            span->count = made + 1;
    }
    whole->completion.usage.completion_tokens += span->count;
    return 0;
}

static int append_reply(struct whole *whole, struct buffer *out)
{
    const struct completion *completion = &whole->completion;
    struct buffer start;
    struct buffer end;

    buffer_init(&start, 4096);
    buffer_init(&end, 4096);
    settle_tail(whole, whole->tail_len);
    openai_append_start(&start, &completion->reply);
    openai_append_end(&end, &completion->reply, completion->finish, &completion->usage);
    int result = start.failed || end.failed || whole->text.failed ? -1 : 0;
    if (result == 0) {
        reply_append_head(out, 200, REPLY_JSON, start.len + whole->text.len + end.len,
                          &completion->caller);
        buffer_append(out, start.data, start.len);
        buffer_append(out, whole->text.data, whole->text.len);
        result = buffer_append(out, end.data, end.len);
    }
    buffer_free(&start);
    buffer_free(&end);
    return result;
}

static int whole_end(void *context, struct buffer *out, enum ledger_outcome outcome)
{
    struct whole *whole = context;
    struct problem problem;

    if (outcome == LEDGER_DONE)
        return append_reply(whole, out);
    submit_describe_end(&whole->completion.fault, outcome, &problem);
    return reply_append_problem(out, &problem, NULL, &whole->completion.caller);
}

static void whole_free(void *context)
{
    struct whole *whole = context;

    completion_release(&whole->completion);
    buffer_free(&whole->text);
    free(whole);
}

static const struct encoder_ops whole_ops = {
    .head = whole_head, .tokens = whole_tokens, .end = whole_end, .free = whole_free};

struct encoder completion_whole_encoder(const struct completion_start *start)
{
    struct whole *whole = calloc(1, sizeof(*whole));

    if (whole != NULL) {
        completion_init(&whole->completion, start);
        buffer_init(&whole->text, start->asked->controls.max_tokens * ESCAPED_TOKEN_MAX_BYTES);
    }
    return (struct encoder){.ops = &whole_ops, .context = whole};
}
