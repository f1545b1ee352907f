/* What a stream's events mean for the figures, and what its end was worth. */

#include "gen/load/stream.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int take_event(void *context, const struct reader_event *event);
static void fail(struct stream *stream, enum failure failure, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a reader_take returns to stop the reader. */
enum { LEAVE = 1 };

void stream_init(struct stream *stream, struct stream_shared *shared)
{
    *stream = (struct stream){.shared = shared};
    request_init(&stream->request);
    reader_init(&stream->reader, take_event, stream);
    buffer_init(&stream->body, STREAM_BODY_MAX_BYTES);
}

void stream_free(struct stream *stream)
{
    request_free(&stream->request);
    reader_free(&stream->reader);
    buffer_free(&stream->body);
}

void stream_start(struct stream *stream, uint64_t number, struct fate fate, int64_t intended_us,
                  int64_t now_us)
{
    struct figures *figures = stream->shared->figures;
    const struct asked *asked = &stream->request.asked;
    bool is_verified =
        stream->shared->options->verify && asked->has_prompt && asked->max_tokens > 0;

    *stream = (struct stream){
        .shared = stream->shared,
        .request = stream->request,
        .reader = stream->reader,
        .body = stream->body,
        .number = number,
        .fate = fate,
        .is_measured = intended_us >= figures->window_start_us && !fate.is_slow,
        .is_verified = is_verified,
        .intended_us = intended_us,
        .sent_us = now_us,
    };
    reader_restart(&stream->reader);
    buffer_reset(&stream->body);
    if (is_verified)
        verification_start(&stream->verification, &asked->tokens, asked->max_tokens);
    figures->started++;
    figures->slow += fate.is_slow;
    figures->open++;
    if (figures->open > figures->open_max)
        figures->open_max = figures->open;
    if (stream->is_measured)
        distribution_add(&figures->of[FIGURE_START], now_us - intended_us, 1);
    if (!figures->has_asked_ttft)
        figures->asked_ttft_us = asked->ttft_us;
    else if (figures->asked_ttft_us != asked->ttft_us)
        figures->asked_ttft_us = -1;
    figures->has_asked_ttft = true;
}

void stream_sent(struct stream *stream, int64_t now_us)
{
    stream->sent_us = now_us;
}

void stream_head(struct stream *stream, int status, bool is_event_stream, int64_t now_us)
{
    stream->status = status;
    stream->is_stream = status == 200 && is_event_stream;
    events_write(stream->shared->events, stream->number, now_us - stream->sent_us,
                 stream->reads, "head", 0);
}

static void fail(struct stream *stream, enum failure failure, const char *format, ...)
{
    va_list arguments;

    if (stream->has_failed)
        return;
    stream->has_failed = true;
    stream->failure = failure;
    va_start(arguments, format);
    vsnprintf(stream->why, sizeof(stream->why), format, arguments);
    va_end(arguments);
}

/* --- tokens --- */

static void fail_verification(struct stream *stream, enum verification_status status,
                              const struct payload *payload)
{
    const struct verification *verification = &stream->verification;
    int got_len = payload->text_len < 40 ? (int)payload->text_len : 40;

    if (stream->has_failed)
        return;
    stream->shared->figures->wrong_by[status]++;
    fail(stream, FAILURE_WRONG_TOKEN, "%s at token %" PRIu64 ": `%.*s` came, `%.*s` was next",
         verification_name(status), verification->next, got_len, payload->text,
         (int)verification->token_len, verification->token);
}

static void verify(struct stream *stream, const struct payload *payload)
{
    enum verification_status status = VERIFICATION_OK;

    if (payload->has_index)
        status =
            verification_take_index(&stream->verification, payload->index, payload->tokens);
    if (status == VERIFICATION_OK)
        status = verification_take(&stream->verification, payload->text, payload->text_len,
                                   payload->tells_count ? payload->tokens : 0);
    if (status != VERIFICATION_OK)
        fail_verification(stream, status, payload);
}

/* Whether what comes now is measured; what a slow reader reads late is not. */
static bool is_in_window(const struct stream *stream)
{
    const struct figures *figures = stream->shared->figures;

    return stream->now_us >= figures->window_start_us &&
           stream->now_us <= figures->window_end_us && !stream->fate.is_slow;
}

/* The gap before this event, and those of 0 between the tokens in it. */
static void measure_gap(struct stream *stream, uint64_t tokens)
{
    struct figures *figures = stream->shared->figures;
    const struct asked *asked = &stream->request.asked;
    int64_t gap_us = stream->now_us - stream->last_token_us;

    if (gap_us > stream->gap_max_us)
        stream->gap_max_us = gap_us;
    if (!is_in_window(stream))
        return;
    distribution_add(&figures->of[FIGURE_ITL], gap_us, 1);
    distribution_add(&figures->of[FIGURE_ITL], 0, tokens - 1);
    figures->gap_events++;
    if (stream->last_token_read == stream->reads)
        figures->coalesced++;
    /* The tokens of an event are due with the first of them: the next is due a gap for each
     * later. */
    if (asked->itl_us > 0 && !asked->has_jitter)
        distribution_add(&figures->of[FIGURE_LATENESS],
                         gap_us - asked->itl_us * (int64_t)stream->last_event_tokens, 1);
}

static void measure_first(struct stream *stream, uint64_t tokens)
{
    struct figures *figures = stream->shared->figures;

    stream->first_token_us = stream->now_us;
    if (!stream->is_measured)
        return;
    distribution_add(&figures->of[FIGURE_TTFT], stream->now_us - stream->intended_us, 1);
    distribution_add(&figures->of[FIGURE_TTFT_SENT], stream->now_us - stream->sent_us, 1);
    if (is_in_window(stream))
        distribution_add(&figures->of[FIGURE_ITL], 0, tokens - 1);
}

static int take_token(struct stream *stream, const struct payload *payload)
{
    struct figures *figures = stream->shared->figures;
    uint64_t tokens = payload->tokens < 1 ? 1 : payload->tokens;

    if (stream->is_done)
        fail(stream, FAILURE_WRONG_TOKEN, "a token came after [DONE]");
    if (stream->is_verified && !stream->has_failed)
        verify(stream, payload);
    if (stream->tokens == 0)
        measure_first(stream, tokens);
    else
        measure_gap(stream, tokens);
    if (payload->has_stamps && is_in_window(stream))
        figures_add_stamps(figures, stream->now_us, payload->sent_us, payload->due_us);
    stream->tokens += tokens;
    stream->last_event_tokens = tokens;
    stream->last_token_us = stream->now_us;
    stream->last_token_read = stream->reads;
    figures->tokens += tokens;
    figures->token_events++;
    if (stream->now_us >= figures->window_start_us && stream->now_us <= figures->window_end_us)
        figures->window_tokens += tokens;
    if (stream->fate.abort_after == 0 || stream->tokens < stream->fate.abort_after)
        return 0;
    stream->has_left = true;
    return LEAVE;
}

static void take_done(struct stream *stream)
{
    if (stream->is_done)
        fail(stream, FAILURE_WRONG_TOKEN, "[DONE] came twice");
    stream->is_done = true;
    stream->done_us = stream->now_us;
    if (!stream->is_verified || stream->has_failed)
        return;
    if (verification_end(&stream->verification) != VERIFICATION_OK) {
        stream->shared->figures->wrong_by[VERIFICATION_SHORT]++;
        fail(stream, FAILURE_WRONG_TOKEN,
             "short: [DONE] came after %" PRIu64 " tokens, %" PRIu64 " were asked for",
             stream->verification.next, stream->verification.wanted);
    }
}

static int take_event(void *context, const struct reader_event *event)
{
    static const char *const kinds[] = {"token", "done", "error", "bad", "other"};
    struct stream *stream = context;
    struct stream_shared *shared = stream->shared;
    struct payload payload;

    payload_read(&payload, &shared->scratch, shared->options->format, event->name, event->data,
                 event->data_len);
    events_write(shared->events, stream->number, stream->now_us - stream->sent_us,
                 stream->reads, kinds[payload.kind],
                 payload.kind == PAYLOAD_TOKEN ? payload.tokens : 0);
    switch (payload.kind) {
    case PAYLOAD_TOKEN:
        return take_token(stream, &payload);
    case PAYLOAD_DONE:
        take_done(stream);
        break;
    case PAYLOAD_ERROR:
        fail(stream, FAILURE_ERROR, "after %" PRIu64 " tokens: %.*s", stream->tokens,
             (int)(payload.text_len < 120 ? payload.text_len : 120), payload.text);
        break;
    case PAYLOAD_BAD:
        fail(stream, FAILURE_BAD_JSON, "after %" PRIu64 " tokens: `%.*s` is not JSON",
             stream->tokens, (int)(event->data_len < 120 ? event->data_len : 120), event->data);
        break;
    case PAYLOAD_OTHER:
        if (stream->is_verified && payload.has_usage && !stream->has_failed &&
            payload.completion_tokens != stream->verification.next)
            fail(stream, FAILURE_WRONG_TOKEN,
                 "usage.completion_tokens is %" PRIu64 ", and %" PRIu64 " tokens came",
                 payload.completion_tokens, stream->verification.next);
        break;
    }
    return 0;
}

/* --- reads --- */

static void keep_body(struct stream *stream, const char *bytes, size_t len)
{
    size_t room = STREAM_BODY_MAX_BYTES - stream->body.len;

    buffer_append(&stream->body, bytes, len < room ? len : room);
}

void stream_begin_read(struct stream *stream, int64_t now_us)
{
    stream->now_us = now_us;
    stream->reads++;
    stream->shared->figures->reads++;
}

int stream_read(struct stream *stream, const char *bytes, size_t len)
{
    struct figures *figures = stream->shared->figures;

    figures->bytes += len;
    if (!stream->is_stream) {
        keep_body(stream, bytes, len);
        return 0;
    }
    int status = reader_feed(&stream->reader, bytes, len);
    if (status == READER_TOO_LONG)
        fail(stream, FAILURE_TOO_LONG,
             "after %" PRIu64 " tokens: an event of more than %d bytes", stream->tokens,
             READER_EVENT_MAX_BYTES);
    return status == 0 ? 0 : -1;
}

/* --- the end --- */

/* The message of an error's JSON, or the text itself. */
static void fail_http(struct stream *stream)
{
    struct buffer *scratch = &stream->shared->scratch;
    const struct buffer *body = &stream->body;
    struct payload payload;

    payload_read(&payload, scratch, PAYLOAD_AUTO, "", body->len > 0 ? body->data : "",
                 body->len);
    if (payload.kind != PAYLOAD_ERROR || payload.text_len == 0) {
        payload.text = body->len > 0 ? body->data : "";
        payload.text_len = body->len;
    }
    int len = (int)(payload.text_len < 150 ? payload.text_len : 150);
    if (stream->status == 200)
        fail(stream, FAILURE_NOT_STREAM, "the reply is no text/event-stream: %.*s", len,
             payload.text);
    else
        fail(stream, FAILURE_HTTP, "HTTP %d: %.*s", stream->status, len, payload.text);
}

static void judge(struct stream *stream, enum stream_end end, const char *detail)
{
    switch (end) {
    case STREAM_ENDED:
        if (!stream->is_stream)
            fail_http(stream);
        else if (!stream->is_done)
            fail(stream, FAILURE_TRUNCATED,
                 "the reply ended after %" PRIu64 " tokens%s without [DONE]", stream->tokens,
                 reader_is_inside(&stream->reader) ? ", in the middle of an event," : "");
        break;
    case STREAM_TIMEOUT:
        fail(stream, FAILURE_TIMEOUT, "after %" PRIu64 " tokens: %s", stream->tokens, detail);
        break;
    case STREAM_REFUSED:
        fail(stream, FAILURE_CONNECT, "%s", detail);
        break;
    case STREAM_CUT:
        if (stream->status != 0 && !stream->is_stream)
            fail_http(stream);
        else
            fail(stream, FAILURE_CUT, "after %" PRIu64 " tokens: %s", stream->tokens, detail);
        break;
    case STREAM_BROKEN:
        fail(stream, FAILURE_OTHER, "%s", detail);
        break;
    case STREAM_LEFT:
    case STREAM_INTERRUPTED:
        break;
    }
}

static bool keeps(int64_t bound_us, int64_t value_us)
{
    return bound_us == 0 || value_us <= bound_us;
}

static void count_complete(struct stream *stream)
{
    struct figures *figures = stream->shared->figures;
    const struct goodput *goodput = &stream->shared->options->goodput;
    int64_t total_us = stream->done_us - stream->intended_us;
    int64_t tpot_us = 0;

    figures->completed++;
    figures->verified += stream->is_verified;
    if (stream->tokens > 1)
        tpot_us =
            (stream->last_token_us - stream->first_token_us) / (int64_t)(stream->tokens - 1);
    if (stream->is_measured) {
        distribution_add(&figures->of[FIGURE_TOTAL], total_us, 1);
        distribution_add(&figures->of[FIGURE_TPOT], tpot_us, stream->tokens > 1);
    }
    if (stream->done_us < figures->window_start_us || stream->done_us > figures->window_end_us)
        return;
    figures->window_completed++;
    if (stream->tokens > 0 && keeps(goodput->total_us, total_us) &&
        keeps(goodput->ttft_us, stream->first_token_us - stream->intended_us) &&
        keeps(goodput->itl_us, stream->gap_max_us) && keeps(goodput->tpot_us, tpot_us))
        figures->window_good++;
}

void stream_end(struct stream *stream, enum stream_end end, const char *detail, int64_t now_us)
{
    struct figures *figures = stream->shared->figures;

    judge(stream, end, detail);
    figures->open--;
    if (stream->status > 0 && stream->status < HTTP_STATUSES)
        figures->http_status[stream->status]++;
    events_write(stream->shared->events, stream->number, now_us - stream->sent_us,
                 stream->reads, "end", stream->tokens);
    if (stream->has_failed)
        figures_fail(figures, stream->failure, stream->number, stream->request.id, stream->why);
    else if (end == STREAM_INTERRUPTED)
        figures->interrupted++;
    else if (end == STREAM_LEFT)
        figures->aborted++;
    else
        count_complete(stream);
}
