/* From a request to a live generation. */

#include "endpoints/submit.h"

#include <string.h>

#include "base/clock.h"
#include "endpoints/reply.h"

void submit_refuse(struct request *request)
{
    struct problem problem;

    problem_set(&problem, 503, "no_memory", NULL,
                "no memory for one more request; try again later");
    reply_send_problem(request, &problem, NULL);
}

static struct timing timing_of(const struct app *app, const struct controls *controls,
                               const struct tokgen *tokens)
{
    uint64_t prompt_tokens = 0;

    if (controls->prefill_us_per_token > 0)
        prompt_tokens = tokgen_count_prompt_tokens(controls->prompt, controls->prompt_len);
    return (struct timing){
        .ttft_us =
            controls->ttft_us + (int64_t)(prompt_tokens * controls->prefill_us_per_token),
        .itl_us = controls->itl_us,
        .jitter = controls->jitter,
        .seed = tokens->seed,
        .per_running_us = (int64_t)app->config->itl_per_running_us,
        .trace = controls->is_paced ? NULL : app->trace,
    };
}

static struct fault fault_of(const struct submission *submission)
{
    const struct fault *fault = &submission->controls->fault;

    /* An HTTP error at once: the encoder's end writes it. */
    if (fault->kind == FAULT_STATUS)
        return (struct fault){.kind = FAULT_ERROR, .token = submission->first};
    /* A token that is not asked for: the end comes before it. */
    if (fault->token >= submission->controls->max_tokens)
        return (struct fault){.kind = FAULT_NONE};
    /* Whoever resumes at the fault has seen it, and must be able to get past it. */
    if (submission->first > 0 && fault->token <= submission->first)
        return (struct fault){.kind = FAULT_NONE};
    return *fault;
}

void submit_generation(const struct app *app, struct request *request,
                       const struct submission *submission)
{
    const struct controls *controls = submission->controls;
    struct generation *generation = generation_create();

    if (generation == NULL) {
        submission->encoder.ops->free(submission->encoder.context);
        submit_refuse(request);
        return;
    }
    generation->plan = (struct generation_plan){
        .timing = timing_of(app, controls, submission->tokens),
        .first = submission->first,
        .chunk = controls->chunk,
        .fault = fault_of(submission),
        .ping_us = controls->ping_us,
        .piece_bytes = controls->wire == SSE_DRIP ? 1 : 0,
    };
    if (controls->fault.kind == FAULT_STATUS)
        generation->plan.timing = (struct timing){.ttft_us = 0};
    generation->encoder = submission->encoder;
    generation->accepted_us = request_arrived_us(request);
    generation->ledger.route = submission->route;
    generation->ledger.requested = controls->max_tokens - submission->first;
    generation->ledger.accepted_wall_us = submission->accepted_wall_us;
    memcpy(generation->ledger.id, request_id(request), strlen(request_id(request)) + 1);
    generation->sink = request_sink(request);
    loop_submit(app->loop, generation);
}

void submit_describe_end(const struct fault *fault, enum ledger_outcome outcome,
                         struct problem *problem)
{
    if (outcome == LEDGER_FAILED && fault->kind == FAULT_STATUS)
        problem_set(problem, fault->status, "fault", "fault",
                    "this status was asked for with fault=status:%d", fault->status);
    else if (outcome == LEDGER_FAILED && fault->kind == FAULT_ERROR)
        problem_set(problem, 500, "fault", "fault",
                    "this error was asked for with fault=error@%llu",
                    (unsigned long long)fault->token);
    else if (outcome == LEDGER_SHED)
        problem_set(
            problem, 503, "overloaded", NULL,
            "no slot is free and the queue is full (--slots, --queue), or the server is "
            "draining; try again later");
    else if (outcome == LEDGER_DRAINED)
        problem_set(problem, 503, "draining", NULL,
                    "the server is stopping and the time to end (--drain-s) is over");
    else
        problem_set(problem, 500, "failed", NULL, "the reply could not be written");
}
