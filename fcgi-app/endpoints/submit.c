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

void submit_generation(const struct app *app, struct request *request,
                       const struct controls *controls, enum ledger_route route,
                       struct encoder encoder)
{
    struct generation *generation = generation_create();

    if (generation == NULL) {
        encoder.ops->free(encoder.context);
        submit_refuse(request);
        return;
    }
    generation->timing = (struct timing){
        .ttft_us = controls->ttft_us,
        .itl_us = controls->itl_us,
    };
    generation->encoder = encoder;
    generation->accepted_us = request_arrived_us(request);
    generation->ledger.route = route;
    generation->ledger.requested = controls->max_tokens;
    generation->ledger.accepted_wall_us = clock_wall_us();
    memcpy(generation->ledger.id, request_id(request), strlen(request_id(request)) + 1);
    generation->sink = request_sink(request);
    loop_submit(app->loop, generation);
}

void submit_describe_end(enum ledger_outcome outcome, struct problem *problem)
{
    switch (outcome) {
    case LEDGER_SHED:
        problem_set(
            problem, 503, "overloaded", NULL,
            "no slot is free and the queue is full (--slots, --queue), or the server is "
            "draining; try again later");
        break;
    case LEDGER_DRAINED:
        problem_set(problem, 503, "draining", NULL,
                    "the server is stopping and the time to end (--drain-s) is over");
        break;
    default:
        problem_set(problem, 500, "failed", NULL, "the reply could not be written");
    }
}
