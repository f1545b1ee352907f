/*
 * GET /stream: each token an event, `[DONE]` at the end. The encoder here writes the events in
 * the spelling that was asked for, with stamps and ids, and the faults that change bytes.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "endpoints/controls.h"
#include "endpoints/reply.h"
#include "endpoints/resume.h"
#include "endpoints/routes.h"
#include "endpoints/submit.h"
#include "gen/tokgen.h"
#include "wire/json.h"
#include "wire/sse.h"

/* A chunk of tokens with every byte escaped, and what stands around them. */
enum { DATA_MAX_BYTES = 64 << 10 };

struct stream {
    struct tokgen tokens;
    enum sse_wire wire;
    bool stamps, ids, hints, tells_count;
    bool head_sent;
    struct fault fault;
    struct buffer data; /* of the event being written */
    /* Wall minus monotonic time when it was accepted: stamps are one clock, whatever is set. */
    int64_t wall_offset_us;
    struct reply_caller caller;
};

static int stream_head(void *context, struct buffer *out)
{
    struct stream *stream = context;

    if (stream->fault.kind == FAULT_STATUS)
        return 0; /* the end says it */
    stream->head_sent = true;
    if (reply_append_stream_head(out, &stream->caller, stream->hints) != 0)
        return -1;
    return sse_append_start(out, stream->wire);
}

static void append_stamps(struct stream *stream, const struct token_span *span)
{
    struct buffer *data = &stream->data;

    buffer_append_text(data, ",\"i\":");
    buffer_append_u64(data, span->first);
    buffer_append_text(data, ",\"t_us\":");
    buffer_append_u64(data, (unsigned long long)(span->now_us + stream->wall_offset_us));
    buffer_append_text(data, ",\"due_us\":");
    buffer_append_u64(data, (unsigned long long)(span->due_us + stream->wall_offset_us));
}

/* `{"token":"a b","n":2,"i":7,"t_us":..,"due_us":..}` into stream->data. */
static int write_data(struct stream *stream, const struct token_span *span)
{
    struct buffer *data = &stream->data;
    char token[TOKGEN_TOKEN_MAX_BYTES];

    buffer_reset(data);
    buffer_append_text(data, "{\"token\":");
    if (stream->wire == SSE_MULTILINE)
        buffer_append_char(data, '\n'); /* white space between two JSON tokens */
    buffer_append_char(data, '"');
    for (uint64_t i = span->first; i < span->first + span->count; i++) {
        size_t len = tokgen_token(&stream->tokens, i, token, sizeof(token));
        json_append_escaped(data, token, len);
    }
    buffer_append_char(data, '"');
    if (stream->tells_count) {
        buffer_append_text(data, ",\"n\":");
        buffer_append_u64(data, span->count);
    }
    if (stream->stamps)
        append_stamps(stream, span);
    return buffer_append_char(data, '}');
}

static int stream_tokens(void *context, struct buffer *out, struct token_span *span)
{
    struct stream *stream = context;
    char id[24];
    struct sse_event event = {0};

    if (write_data(stream, span) != 0)
        return -1;
    if (fault_hits(&stream->fault, FAULT_GARBLE, span->first, span->count))
        stream->data.len--; /* the closing brace */
    if (stream->ids) {
        snprintf(id, sizeof(id), "%llu", (unsigned long long)(span->first + span->count));
        event.id = id;
    }
    event.data = stream->data.data;
    event.data_len = stream->data.len;
    if (fault_hits(&stream->fault, FAULT_DUP, span->first, span->count))
        sse_append_event(out, stream->wire, &event);
    return sse_append_event(out, stream->wire, &event);
}

static int stream_ping(void *context, struct buffer *out)
{
    const struct stream *stream = context;

    /* Without a head (fault=status) it would be taken for one. */
    return stream->head_sent ? sse_append_comment(out, stream->wire, "ping") : -1;
}

static int stream_end(void *context, struct buffer *out, enum ledger_outcome outcome)
{
    struct stream *stream = context;
    struct sse_event event = {.data = "[DONE]", .data_len = 6};
    struct problem problem;

    if (outcome == LEDGER_DONE && stream->fault.kind == FAULT_NODONE)
        return 0;
    if (outcome == LEDGER_DONE) {
        event.id = stream->ids ? resume_done_id : NULL;
        sse_append_event(out, stream->wire, &event);
        return sse_append_finish(out, stream->wire);
    }
    submit_describe_end(&stream->fault, outcome, &problem);
    if (!stream->head_sent)
        return reply_append_problem(out, &problem, NULL, &stream->caller);
    buffer_reset(&stream->data);
    if (problem_append_json(&problem, &stream->data) != 0)
        return -1;
    event = (struct sse_event){
        .name = "error", .data = stream->data.data, .data_len = stream->data.len};
    sse_append_event(out, stream->wire, &event);
    return sse_append_finish(out, stream->wire);
}

static void stream_free(void *context)
{
    struct stream *stream = context;

    buffer_free(&stream->data);
    free(stream);
}

static const struct encoder_ops stream_ops = {.head = stream_head,
                                              .tokens = stream_tokens,
                                              .ping = stream_ping,
                                              .end = stream_end,
                                              .free = stream_free};

static struct stream *make_stream(const struct controls *controls, struct request *request,
                                  int64_t wall_us)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL)
        return NULL;
    stream->tokens = tokgen_init(controls->prompt, controls->prompt_len, controls->seed,
                                 (enum tokgen_vocab)controls->vocab);
    stream->caller = reply_caller_of(request);
    stream->wire = (enum sse_wire)controls->wire;
    stream->stamps = controls->stamps != 0;
    stream->ids = controls->ids != 0;
    stream->hints = controls->hints != 0;
    stream->tells_count = controls->chunk > 1;
    stream->fault = controls->fault;
    stream->wall_offset_us = wall_us - request_arrived_us(request);
    buffer_init(&stream->data, DATA_MAX_BYTES);
    return stream;
}

static void start_stream(const struct app *app, struct request *request,
                         const struct controls *controls, uint64_t first)
{
    int64_t wall_us = clock_wall_us() - (clock_monotonic_us() - request_arrived_us(request));
    struct stream *stream = make_stream(controls, request, wall_us);

    if (stream == NULL) {
        submit_refuse(request);
        return;
    }
    submit_generation(app, request,
                      &(struct submission){
                          .controls = controls,
                          .tokens = &stream->tokens,
                          .route = LEDGER_STREAM,
                          .first = first,
                          .accepted_wall_us = wall_us,
                          .encoder = {.ops = &stream_ops, .context = stream},
                      });
}

void endpoint_stream(const struct app *app, struct request *request)
{
    struct controls controls;
    struct problem problem;
    uint64_t first;

    if (controls_from_query(&controls, app->config, request_query(request), &problem) != 0) {
        reply_send_problem(request, &problem, NULL);
        return;
    }
    switch (resume_point(&controls, request, &first, &problem)) {
    case RESUME_BAD:
        reply_send_problem(request, &problem, NULL);
        break;
    case RESUME_NOTHING_LEFT:
        reply_send_nothing(request, ""); /* an EventSource stops at 204 */
        break;
    default:
        if (strcmp(request_method(request), "HEAD") != 0)
            start_stream(app, request, &controls, first);
        else if (controls.fault.kind == FAULT_STATUS) {
            submit_describe_end(&controls.fault, LEDGER_FAILED, &problem);
            reply_send_problem(request, &problem, NULL);
        } else
            reply_send_stream_head(request, controls.hints != 0);
    }
    controls_free(&controls);
}
