/*
 * The state machine of one request. What a step does is the whole of it: send what waits, then
 * one token if it is due, then say what to wait for. The pacer decides whose turn it is.
 */

#include "engine/generation.h"

#include <stdlib.h>

#include "base/clock.h"

enum {
    /* A reply in one piece, 100,000 tokens of torture escaped: the encoder's own ceiling is
       lower. */
    PENDING_MAX_BYTES = 64 << 20,
};

struct generation *generation_create(void)
{
    struct generation *generation = calloc(1, sizeof(*generation));

    if (generation == NULL)
        return NULL;
    buffer_init(&generation->pending, PENDING_MAX_BYTES);
    generation->plan.chunk = 1;
    generation->due_us = CLOCK_NEVER;
    return generation;
}

void generation_destroy(struct generation *generation)
{
    if (generation == NULL)
        return;
    if (generation->sink.ops != NULL)
        generation->sink.ops->release(generation->sink.context);
    if (generation->encoder.ops != NULL)
        generation->encoder.ops->free(generation->encoder.context);
    buffer_free(&generation->pending);
    free(generation);
}

static enum generation_step finish(struct generation *generation,
                                   const struct generation_context *context,
                                   enum ledger_outcome outcome,
                                   enum ledger_detector detected_by, int64_t now_us)
{
    generation->ledger.duration_us = now_us - generation->accepted_us;
    generation->ledger.pace_error_p99_us = histogram_percentile_us(generation->pace_errors, 99);
    ledger_end(context->ledger, &generation->ledger, outcome, detected_by);
    return STEP_ENDED;
}

/* A write has failed: the client is gone. */
static enum generation_step lose(struct generation *generation,
                                 const struct generation_context *context, int64_t now_us)
{
    if (!context->ignore_cancel || generation->ending != LEDGER_LIVE)
        return finish(generation, context, LEDGER_CANCELLED, LEDGER_BY_WRITE, now_us);
    generation->lost = true;
    buffer_free(&generation->pending);
    ledger_settle_held(context->ledger, &generation->ledger, 0, false);
    return STEP_WAIT;
}

/*
 * Give the sink what waits, a piece at a time. The last piece of the last bytes is left for
 * `end`, which flushes it together with the end of the reply.
 */
static enum generation_step send_pending(struct generation *generation,
                                         const struct generation_context *context,
                                         int64_t now_us)
{
    struct buffer *pending = &generation->pending;
    const struct sink *sink = &generation->sink;
    bool ending = generation->ending != LEDGER_LIVE;
    size_t piece_max = generation->plan.piece_bytes;
    size_t sent = 0;

    if (piece_max == 0 || generation->is_head_pending)
        piece_max = SINK_WRITE_MAX_BYTES;

    while (sent < pending->len) {
        size_t left = pending->len - sent;
        size_t piece = left < piece_max ? left : piece_max;
        if (!sink->ops->writable(sink->context)) {
            buffer_consume(pending, sent);
            return STEP_BLOCKED;
        }
        if (sink->ops->write(sink->context, pending->data + sent, piece) != 0)
            return lose(generation, context, now_us);
        sent += piece;
        generation->last_sent_us = now_us;
        if ((sent < pending->len || !ending) && sink->ops->flush(sink->context) != 0)
            return lose(generation, context, now_us);
    }
    generation->is_head_pending = false;
    buffer_free(pending); /* most streams need it once, for their head */
    if (!ending)
        ledger_settle_held(context->ledger, &generation->ledger, generation->kept, true);
    return STEP_WAIT;
}

/* All tokens are there, or none will come any more: write the last bytes. */
static enum generation_step close_reply(struct generation *generation,
                                        const struct generation_context *context,
                                        enum ledger_outcome outcome, int64_t now_us)
{
    generation->ending = outcome;
    if (generation->lost)
        return finish(generation, context, LEDGER_CANCELLED, LEDGER_BY_WRITE, now_us);
    if (generation->encoder.ops->end(generation->encoder.context, &generation->pending,
                                     outcome) != 0 ||
        generation->pending.failed)
        return finish(generation, context, LEDGER_FAILED, LEDGER_NOT_DETECTED, now_us);
    return STEP_SLOTLESS;
}

static enum generation_step end_reply(struct generation *generation,
                                      const struct generation_context *context, int64_t now_us)
{
    if (generation->sink.ops->end(generation->sink.context) != 0)
        return finish(generation, context, LEDGER_CANCELLED, LEDGER_BY_WRITE, now_us);
    if (generation->ending == LEDGER_DONE)
        ledger_settle_held(context->ledger, &generation->ledger, 0, true);
    return finish(generation, context, generation->ending, LEDGER_NOT_DETECTED, now_us);
}

static uint64_t next_index(const struct generation *generation)
{
    return generation->plan.first + generation->ledger.generated;
}

static uint64_t tokens_left(const struct generation *generation)
{
    return generation->stopped ? 0
                               : generation->ledger.requested - generation->ledger.generated;
}

/* The next event's tokens: a chunk, but for the end and for a fault that must hit its token. */
static struct token_span next_span(const struct generation *generation, int64_t now_us)
{
    const struct fault *fault = &generation->plan.fault;
    struct token_span span = {.first = next_index(generation),
                              .count = generation->plan.chunk,
                              .due_us = generation->due_us,
                              .now_us = now_us};
    bool stops = fault->kind == FAULT_ERROR || fault->kind == FAULT_RESET ||
                 fault->kind == FAULT_EOF || fault->kind == FAULT_STALL;

    if (span.count > tokens_left(generation))
        span.count = tokens_left(generation);
    if (stops && fault->token > span.first && span.count > fault->token - span.first)
        span.count = fault->token - span.first;
    return span;
}

static void count_tokens(struct generation *generation,
                         const struct generation_context *context,
                         const struct token_span *span, enum ledger_fate fate)
{
    struct ledger_request *ledger = &generation->ledger;
    struct ledger_tokens tokens = {.count = span->count,
                                   .fate = fate,
                                   .gap_us = span->now_us - generation->last_tokens_us,
                                   .pace_error_us = span->now_us - span->due_us};

    if (ledger->ttft_us < 0)
        ledger->ttft_us = span->now_us - generation->accepted_us;
    generation->pace_errors[histogram_bucket(tokens.pace_error_us)]++;
    generation->last_tokens_us = span->now_us;
    ledger_tokens(context->ledger, ledger, &tokens);
}

/* Make the tokens of `span` and send them. STEP_WAIT when that went well. */
static enum generation_step make_tokens(struct generation *generation,
                                        const struct generation_context *context,
                                        struct token_span *span)
{
    struct buffer *out = context->scratch;
    const struct sink *sink = &generation->sink;

    buffer_reset(out);
    if (generation->encoder.ops->tokens(generation->encoder.context, out, span) != 0)
        return close_reply(generation, context, LEDGER_FAILED, span->now_us);
    generation->stopped = span->stops;
    generation->kept = span->kept;
    if (generation->lost) {
        count_tokens(generation, context, span, LEDGER_TOKENS_DISCARDED);
    } else if (out->len == 0) {
        count_tokens(generation, context, span, LEDGER_TOKENS_HELD);
        return STEP_WAIT; /* and nothing was sent: a ping may be due */
    } else if (out->len > SINK_WRITE_MAX_BYTES || generation->plan.piece_bytes > 0) {
        count_tokens(generation, context, span, LEDGER_TOKENS_HELD);
        buffer_append(&generation->pending, out->data, out->len);
        return send_pending(generation, context, span->now_us);
    } else if (sink->ops->write(sink->context, out->data, out->len) != 0 ||
               sink->ops->flush(sink->context) != 0) {
        count_tokens(generation, context, span, LEDGER_TOKENS_DISCARDED);
        return lose(generation, context, span->now_us);
    } else {
        count_tokens(generation, context, span,
                     span->kept == 0 ? LEDGER_TOKENS_DELIVERED : LEDGER_TOKENS_HELD);
        ledger_settle_held(context->ledger, &generation->ledger, span->kept, true);
    }
    generation->last_sent_us = span->now_us;
    return STEP_WAIT;
}

/* A fault that stops or delays this token. STEP_WAIT: there is none, or it was a delay. */
static enum generation_step commit_fault(struct generation *generation,
                                         const struct generation_context *context,
                                         int64_t now_us)
{
    struct fault *fault = &generation->plan.fault;

    if (fault->token != next_index(generation))
        return STEP_WAIT;
    switch (fault->kind) {
    case FAULT_STALL:
        generation->due_us += fault->stall_us;
        fault->kind = FAULT_NONE;
        return STEP_WAIT;
    case FAULT_ERROR:
        return close_reply(generation, context, LEDGER_FAILED, now_us);
    case FAULT_EOF:
        generation->ending = LEDGER_FAILED; /* with no last bytes */
        return STEP_SLOTLESS;
    case FAULT_RESET:
        return finish(generation, context, LEDGER_FAILED, LEDGER_NOT_DETECTED, now_us);
    default:
        return STEP_WAIT;
    }
}

static int64_t ping_due_us(const struct generation *generation)
{
    return generation->plan.ping_us > 0 && generation->encoder.ops->ping != NULL
               ? generation->last_sent_us + generation->plan.ping_us
               : CLOCK_NEVER;
}

int64_t generation_wake_us(const struct generation *generation)
{
    int64_t ping_us = ping_due_us(generation);

    return generation->due_us < ping_us ? generation->due_us : ping_us;
}

/* Nothing is pending, so a ping is between two events. */
static enum generation_step ping(struct generation *generation,
                                 const struct generation_context *context, int64_t now_us)
{
    const struct sink *sink = &generation->sink;

    if (now_us < ping_due_us(generation))
        return STEP_WAIT;
    if (!generation->lost && !sink->ops->writable(sink->context))
        return STEP_BLOCKED; /* a client that does not read: the stall timeout runs */
    generation->last_sent_us = now_us;
    if (generation->lost)
        return STEP_WAIT;
    buffer_reset(context->scratch);
    if (generation->encoder.ops->ping(generation->encoder.context, context->scratch) != 0)
        return STEP_WAIT;
    if (sink->ops->write(sink->context, context->scratch->data, context->scratch->len) != 0 ||
        sink->ops->flush(sink->context) != 0)
        return lose(generation, context, now_us);
    return STEP_WAIT;
}

enum generation_step generation_step(struct generation *generation,
                                     const struct generation_context *context, int64_t now_us)
{
    enum generation_step step = STEP_WAIT;

    if (generation->pending.len > 0)
        step = send_pending(generation, context, now_us);
    if (step != STEP_WAIT)
        return step;
    if (generation->ending != LEDGER_LIVE)
        return end_reply(generation, context, now_us);
    if (now_us >= generation->due_us && !generation->stopped) {
        step = commit_fault(generation, context, now_us);
        if (step != STEP_WAIT)
            return step;
    }
    if (now_us < generation->due_us)
        return ping(generation, context, now_us);
    if (!generation->lost && !generation->sink.ops->writable(generation->sink.context))
        return STEP_BLOCKED;

    struct token_span span = next_span(generation, now_us);
    if (span.count > 0)
        step = make_tokens(generation, context, &span);
    if (step == STEP_ENDED || step == STEP_SLOTLESS)
        return step;
    /* Blocked or not, the tokens are made; what comes next has its time. */
    for (uint64_t i = 1; i <= span.count && tokens_left(generation) > 0; i++)
        generation->due_us +=
            timing_gap_us(&generation->plan.timing, span.first + i, context->running);
    if (step == STEP_WAIT && tokens_left(generation) == 0)
        return close_reply(generation, context, LEDGER_DONE, now_us);
    return step;
}

enum generation_step generation_accept(struct generation *generation,
                                       const struct generation_context *context)
{
    ledger_accept(context->ledger, &generation->ledger);
    generation->last_sent_us = generation->accepted_us;
    generation->is_head_pending = true;
    if (generation->encoder.ops->head(generation->encoder.context, &generation->pending) != 0 ||
        generation->pending.failed)
        return finish(generation, context, LEDGER_FAILED, LEDGER_NOT_DETECTED,
                      generation->accepted_us);
    return STEP_WAIT;
}

void generation_start(struct generation *generation, const struct generation_context *context,
                      int64_t now_us)
{
    ledger_start(context->ledger, &generation->ledger, now_us - generation->accepted_us);
    generation->due_us = now_us + timing_first_us(&generation->plan.timing);
}

void generation_refuse(struct generation *generation, const struct generation_context *context)
{
    ledger_accept(context->ledger, &generation->ledger);
    generation_stop(generation, context, LEDGER_SHED, LEDGER_NOT_DETECTED,
                    generation->accepted_us);
}

void generation_stop(struct generation *generation, const struct generation_context *context,
                     enum ledger_outcome outcome, enum ledger_detector detected_by,
                     int64_t now_us)
{
    bool can_tell = outcome == LEDGER_SHED || outcome == LEDGER_DRAINED;
    const struct sink *sink = &generation->sink;

    /* One try: a client that does not read now is cut off. A reply whose last bytes are already
     * on their way gets no second end. */
    if (can_tell && !generation->lost && generation->ending == LEDGER_LIVE &&
        generation->encoder.ops->end(generation->encoder.context, &generation->pending,
                                     outcome) == 0) {
        generation->ending = outcome;
        if (send_pending(generation, context, now_us) == STEP_WAIT)
            sink->ops->end(sink->context);
    }
    /* The peer that asked for the end waits for it (FastCGI specification, section 5.4). */
    if (detected_by == LEDGER_BY_ABORT && sink->ops->writable(sink->context))
        sink->ops->end(sink->context);
    if (generation->ledger.outcome == LEDGER_LIVE)
        finish(generation, context, outcome, detected_by, now_us);
}
