#ifndef RUNNEL_ENDPOINTS_COMPLETION_H
#define RUNNEL_ENDPOINTS_COMPLETION_H

#include "endpoints/app.h"
#include "endpoints/openai_request.h"
#include "endpoints/reply.h"
#include "gen/tokgen.h"

/*
 * What the endpoints below /v1/ share: a request of the OpenAI API becomes a generation whose
 * encoder writes that API's objects, in chunks or in one piece.
 *
 * A stop sequence is looked for where the tokens are made, one token after the other: it costs
 * the engine a few comparisons a byte, whatever was asked for. (To find it when the request
 * comes would take the time of all its tokens, in one go.)
 */

/* Answer a request of /v1/completions or /v1/chat/completions. */
void completion_answer(const struct app *app, struct request *request, enum openai_kind kind);

/* --- what its two encoders share --- */

struct completion {
    struct tokgen tokens;
    struct openai_reply reply;
    struct openai_usage usage;
    enum openai_finish finish;
    struct reply_caller caller;
    struct fault fault;
    struct stop_sequences *stops; /* owned; NULL: none */
    struct stop_search search;
};

struct completion_start {
    struct openai_request *asked; /* its stop sequences are taken over */
    struct reply_caller caller;
    int64_t wall_us, monotonic_us; /* of its acceptance */
    uint64_t first;                /* above 0 when a stream is resumed */
};

void completion_init(struct completion *completion, const struct completion_start *start);
void completion_release(struct completion *completion);

/* The encoders; `context` is NULL without memory. Each begins with its struct completion. */
struct encoder completion_stream_encoder(const struct completion_start *start);
struct encoder completion_whole_encoder(const struct completion_start *start);

#endif
