/* POST /generate: the same tokens at the same pace, in one JSON reply at the end. */

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "endpoints/controls.h"
#include "endpoints/payload.h"
#include "endpoints/reply.h"
#include "endpoints/routes.h"
#include "endpoints/submit.h"
#include "gen/tokgen.h"
#include "wire/json.h"

struct whole {
    struct tokgen tokens;
    uint64_t prompt_tokens;
    uint64_t completion_tokens;
    struct buffer text; /* JSON-escaped */
    struct fault fault;
    struct reply_caller caller;
};

enum {
    /* A control character of one byte is six when it is escaped. */
    ESCAPED_TOKEN_MAX_BYTES = 6 * TOKGEN_TOKEN_MAX_BYTES,
};

static int whole_head(void *context, struct buffer *out)
{
    (void)context;
    (void)out; /* the status is not known before the end */
    return 0;
}

static int whole_tokens(void *context, struct buffer *out, struct token_span *span)
{
    struct whole *whole = context;
    char token[TOKGEN_TOKEN_MAX_BYTES];

    (void)out;
    for (uint64_t i = span->first; i < span->first + span->count; i++) {
        size_t len = tokgen_token(&whole->tokens, i, token, sizeof(token));
        if (json_append_escaped(&whole->text, token, len) != 0)
            return -1;
    }
    whole->completion_tokens += span->count;
    return 0;
}

static int append_reply(const struct whole *whole, struct buffer *out)
{
    struct buffer tail;
    static const char start[] = "{\"text\":\"";

    buffer_init(&tail, 4096);
    buffer_append_text(&tail, "\",\"usage\":{\"prompt_tokens\":");
    buffer_append_u64(&tail, whole->prompt_tokens);
    buffer_append_text(&tail, ",\"completion_tokens\":");
    buffer_append_u64(&tail, whole->completion_tokens);
    buffer_append_text(&tail, ",\"total_tokens\":");
    buffer_append_u64(&tail, whole->prompt_tokens + whole->completion_tokens);
    buffer_append_text(&tail, "}}\n");
    reply_append_head(out, 200, REPLY_JSON, sizeof(start) - 1 + whole->text.len + tail.len,
                      &whole->caller);
    buffer_append(out, start, sizeof(start) - 1);
    buffer_append(out, whole->text.data, whole->text.len);
    int result = buffer_append(out, tail.data, tail.len);
    buffer_free(&tail);
    return result;
}

static int whole_end(void *context, struct buffer *out, enum ledger_outcome outcome)
{
    const struct whole *whole = context;
    struct problem problem;

    if (outcome == LEDGER_DONE)
        return append_reply(whole, out);
    submit_describe_end(&whole->fault, outcome, &problem);
    return reply_append_problem(out, &problem, NULL, &whole->caller);
}

static void whole_free(void *context)
{
    struct whole *whole = context;

    buffer_free(&whole->text);
    free(whole);
}

static const struct encoder_ops whole_ops = {
    .head = whole_head, .tokens = whole_tokens, .end = whole_end, .free = whole_free};

static int read_body(const struct app *app, struct request *request, struct controls *controls,
                     struct problem *problem)
{
    const char *body;
    size_t len;

    if (payload_read(app, request, &body, &len, problem) != 0 ||
        controls_from_body(controls, app->config, body, len, problem) != 0)
        return -1;
    if (controls_check_whole(controls, "/generate", problem) == 0)
        return 0;
    controls_free(controls);
    return -1;
}

void endpoint_generate(const struct app *app, struct request *request)
{
    struct controls controls;
    struct problem problem;

    if (read_body(app, request, &controls, &problem) != 0) {
        reply_send_problem(request, &problem, NULL);
        return;
    }
    struct whole *whole = calloc(1, sizeof(*whole));
    if (whole == NULL) {
        controls_free(&controls);
        submit_refuse(request);
        return;
    }
    whole->tokens = tokgen_init(controls.prompt, controls.prompt_len, controls.seed,
                                (enum tokgen_vocab)controls.vocab);
    whole->prompt_tokens = tokgen_count_prompt_tokens(controls.prompt, controls.prompt_len);
    buffer_init(&whole->text, controls.max_tokens * ESCAPED_TOKEN_MAX_BYTES);
    whole->caller = reply_caller_of(request);
    whole->fault = controls.fault;
    submit_generation(app, request,
                      &(struct submission){
                          .controls = &controls,
                          .tokens = &whole->tokens,
                          .route = LEDGER_GENERATE,
                          .accepted_wall_us = clock_wall_us(),
                          .encoder = {.ops = &whole_ops, .context = whole},
                      });
    controls_free(&controls);
}
