/* From a request of the OpenAI API to a generation. */

#include "endpoints/completion.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "endpoints/payload.h"
#include "endpoints/resume.h"
#include "endpoints/submit.h"

/*
 * The search as it stands before token `first`, as if all tokens before it had been read: the
 * last bytes decide, and a token has at least one. A stop sequence that is complete before
 * `first` has ended the stream already.
 */
static void catch_up(struct completion *completion, uint64_t first)
{
    enum { TOKENS_BACK = STOP_SEQUENCE_MAX_BYTES + 1 };
    char token[TOKGEN_TOKEN_MAX_BYTES];
    size_t found;

    for (uint64_t i = first > TOKENS_BACK ? first - TOKENS_BACK : 0; i < first; i++) {
        size_t len = tokgen_token(&completion->tokens, i, token, sizeof(token));
        if (stop_read(&completion->search, completion->stops, token, len, &found) > 0)
            completion->finish = OPENAI_STOP;
    }
}

void completion_init(struct completion *completion, const struct completion_start *start)
{
    struct openai_request *asked = start->asked;
    const struct controls *controls = &asked->controls;

    completion->tokens = tokgen_init(controls->prompt, controls->prompt_len, controls->seed,
                                     (enum tokgen_vocab)controls->vocab);
    completion->caller = start->caller;
    completion->reply.kind = asked->kind;
    completion->reply.created_s = start->wall_us / 1000000;
    memcpy(completion->reply.request_id, completion->caller.id, sizeof(completion->caller.id));
    memcpy(completion->reply.model, asked->model, sizeof(asked->model));
    completion->usage.prompt_tokens =
        tokgen_count_prompt_tokens(controls->prompt, controls->prompt_len);
    completion->usage.completion_tokens = start->first;
    completion->finish = OPENAI_LENGTH;
    completion->fault = controls->fault;
    completion->stops = asked->stops;
    asked->stops = NULL;
    if (completion->stops != NULL)
        catch_up(completion, start->first);
}

void completion_release(struct completion *completion)
{
    free(completion->stops);
}

static void submit(const struct app *app, struct request *request, struct openai_request *asked,
                   uint64_t first)
{
    int64_t arrived_us = request_arrived_us(request);
    const struct completion_start start = {
        .asked = asked,
        .caller = reply_caller_of(request),
        .wall_us = clock_wall_us() - (clock_monotonic_us() - arrived_us),
        .monotonic_us = arrived_us,
        .first = first,
    };
    struct encoder encoder =
        asked->streams ? completion_stream_encoder(&start) : completion_whole_encoder(&start);
    const struct completion *completion = encoder.context;

    if (completion == NULL) {
        submit_refuse(request);
        return;
    }
    if (completion->finish == OPENAI_STOP) /* before its first token: none is left */
        asked->controls.max_tokens = first;
    submit_generation(
        app, request,
        &(struct submission){
            .controls = &asked->controls,
            .tokens = &completion->tokens,
            .route = asked->kind == OPENAI_CHAT ? LEDGER_CHAT : LEDGER_COMPLETIONS,
            .first = first,
            .accepted_wall_us = start.wall_us,
            .encoder = encoder,
        });
}

static const char *header_of(const void *context, const char *param)
{
    return request_param(context, param);
}

static int read_request(const struct app *app, const struct request *request,
                        struct openai_request *asked, struct problem *problem)
{
    const char *body;
    size_t len;

    if (payload_read(app, request, &body, &len, problem) != 0 ||
        controls_from_headers(&asked->controls, app->config, header_of, request, problem) !=
            0 ||
        openai_request_read(asked, app->config, body, len, problem) != 0)
        return -1;
    return asked->streams
               ? 0
               : controls_check_whole(&asked->controls, "a reply without `stream`", problem);
}

void completion_answer(const struct app *app, struct request *request, enum openai_kind kind)
{
    struct openai_request asked;
    struct problem problem;
    uint64_t first;

    openai_request_init(&asked, kind, app->config);
    if (read_request(app, request, &asked, &problem) != 0) {
        reply_send_problem(request, &problem, NULL);
        openai_request_free(&asked);
        return;
    }
    switch (resume_point(&asked.controls, request, &first, &problem)) {
    case RESUME_BAD:
        reply_send_problem(request, &problem, NULL);
        break;
    case RESUME_NOTHING_LEFT:
        reply_send_nothing(request, "");
        break;
    default:
        submit(app, request, &asked, first);
    }
    openai_request_free(&asked);
}
