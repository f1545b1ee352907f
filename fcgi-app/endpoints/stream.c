/* GET /stream: each token an event, `[DONE]` at the end. */

#include <stdlib.h>

#include "endpoints/controls.h"
#include "endpoints/reply.h"
#include "endpoints/routes.h"
#include "endpoints/submit.h"
#include "gen/tokgen.h"
#include "wire/sse.h"

#include <string.h>

struct stream {
    struct tokgen tokens;
    char id[LEDGER_ID_MAX_BYTES + 1];
    bool head_sent;
};

static int stream_head(void *context, struct buffer *out)
{
    struct stream *stream = context;

    stream->head_sent = true;
    return reply_append_stream_head(out, stream->id);
}

static int stream_token(void *context, struct buffer *out, uint64_t index)
{
    const struct stream *stream = context;
    char token[TOKGEN_TOKEN_MAX_BYTES];
    size_t len = tokgen_token(&stream->tokens, index, token, sizeof(token));

    return sse_append_token(out, token, len);
}

static int stream_end(void *context, struct buffer *out, enum ledger_outcome outcome)
{
    const struct stream *stream = context;
    struct problem problem;
    struct buffer json;

    if (outcome == LEDGER_DONE)
        return sse_append_done(out);
    submit_describe_end(outcome, &problem);
    if (!stream->head_sent)
        return reply_append_problem(out, &problem, NULL, stream->id);
    buffer_init(&json, 4096);
    int result = problem_append_json(&problem, &json);
    if (result == 0)
        result = sse_append_error(out, json.data, json.len);
    buffer_free(&json);
    return result;
}

static const struct encoder_ops stream_ops = {
    .head = stream_head, .token = stream_token, .end = stream_end, .free = free};

void endpoint_stream(const struct app *app, struct request *request)
{
    struct controls controls;
    struct problem problem;

    if (controls_from_query(&controls, app->config, request_query(request), &problem) != 0) {
        reply_send_problem(request, &problem, NULL);
        return;
    }
    if (strcmp(request_method(request), "HEAD") == 0) {
        controls_free(&controls);
        reply_send_stream_head(request);
        return;
    }
    struct stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        controls_free(&controls);
        submit_refuse(request);
        return;
    }
    stream->tokens = tokgen_init(controls.prompt, controls.prompt_len, controls.seed,
                                 (enum tokgen_vocab)controls.vocab);
    memcpy(stream->id, request_id(request), strlen(request_id(request)) + 1);
    submit_generation(app, request, &controls, LEDGER_STREAM,
                      (struct encoder){.ops = &stream_ops, .context = stream});
    controls_free(&controls);
}
