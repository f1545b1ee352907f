/*
 * The state machine of one request. What a step does is the whole of it: send what waits, then
 * one token if it is due, then say what to wait for. The pacer decides whose turn it is.
 */

#include "engine/generation.h"

#include <stdlib.h>

enum {
    /* A reply in one piece, 100,000 tokens of torture escaped: the encoder's own ceiling is
       lower. */
    PENDING_MAX_BYTES = 64 << 20,
};

struct generation *generation_create(void)
{
    struct generation *generation = calloc(1, sizeof(*generation));

    if (generation != NULL)
        buffer_init(&generation->pending, PENDING_MAX_BYTES);
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
    ledger_settle_held(context->ledger, &generation->ledger, false);
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
    size_t sent = 0;

    while (sent < pending->len) {
        size_t left = pending->len - sent;
        size_t piece = left < SINK_WRITE_MAX_BYTES ? left : SINK_WRITE_MAX_BYTES;
        if (!sink->ops->writable(sink->context)) {
            buffer_consume(pending, sent);
            return STEP_BLOCKED;
        }
        if (sink->ops->write(sink->context, pending->data + sent, piece) != 0)
            return lose(generation, context, now_us);
        sent += piece;
        if ((sent < pending->len || !ending) && sink->ops->flush(sink->context) != 0)
            return lose(generation, context, now_us);
    }
    buffer_free(pending); /* most streams need it once, for their head */
    if (!ending)
        ledger_settle_held(context->ledger, &generation->ledger, true);
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
        ledger_settle_held(context->ledger, &generation->ledger, true);
    return finish(generation, context, generation->ending, LEDGER_NOT_DETECTED, now_us);
}

/* Make token ledger.generated and send it. STEP_WAIT when that went well. */
static enum generation_step make_token(struct generation *generation,
                                       const struct generation_context *context, int64_t now_us)
{
    struct buffer *out = context->scratch;
    const struct sink *sink = &generation->sink;
    struct ledger_request *ledger = &generation->ledger;

    buffer_reset(out);
    if (generation->encoder.ops->token(generation->encoder.context, out, ledger->generated) !=
        0)
        return close_reply(generation, context, LEDGER_FAILED, now_us);
    if (ledger->ttft_us < 0)
        ledger->ttft_us = now_us - generation->accepted_us;
    if (generation->lost) {
        ledger_token(context->ledger, ledger, LEDGER_TOKEN_DISCARDED);
    } else if (out->len == 0) {
        ledger_token(context->ledger, ledger, LEDGER_TOKEN_HELD);
    } else if (out->len > SINK_WRITE_MAX_BYTES) {
        ledger_token(context->ledger, ledger, LEDGER_TOKEN_HELD);
        buffer_append(&generation->pending, out->data, out->len);
        return send_pending(generation, context, now_us);
    } else if (sink->ops->write(sink->context, out->data, out->len) != 0 ||
               sink->ops->flush(sink->context) != 0) {
        ledger_token(context->ledger, ledger, LEDGER_TOKEN_DISCARDED);
        return lose(generation, context, now_us);
    } else {
        ledger_token(context->ledger, ledger, LEDGER_TOKEN_DELIVERED);
        ledger_settle_held(context->ledger, ledger, true);
    }
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
    if (generation->ledger.phase == LEDGER_QUEUED || now_us < generation->due_us)
        return STEP_WAIT;
    if (!generation->lost && !generation->sink.ops->writable(generation->sink.context))
        return STEP_BLOCKED;

    step = make_token(generation, context, now_us);
    if (step != STEP_WAIT)
        return step;
    if (generation->ledger.generated == generation->ledger.requested)
        return close_reply(generation, context, LEDGER_DONE, now_us);
    generation->due_us += timing_gap_us(&generation->timing, generation->ledger.generated);
    return STEP_WAIT;
}

enum generation_step generation_accept(struct generation *generation,
                                       const struct generation_context *context)
{
    ledger_accept(context->ledger, &generation->ledger);
    if (generation->encoder.ops->head(generation->encoder.context, &generation->pending) != 0 ||
        generation->pending.failed)
        return finish(generation, context, LEDGER_FAILED, LEDGER_NOT_DETECTED,
                      generation->accepted_us);
    return STEP_WAIT;
}

void generation_start(struct generation *generation, const struct generation_context *context,
                      int64_t now_us)
{
    ledger_start(context->ledger, &generation->ledger);
    generation->started_us = now_us;
    generation->due_us = now_us + timing_first_us(&generation->timing);
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
    if (generation->ledger.outcome == LEDGER_LIVE)
        finish(generation, context, outcome, detected_by, now_us);
}
