#ifndef RUNNEL_ENDPOINTS_SUBMIT_H
#define RUNNEL_ENDPOINTS_SUBMIT_H

#include "endpoints/app.h"
#include "endpoints/controls.h"
#include "fastcgi/request.h"
#include "wire/problem.h"
#include "wire/sse.h"

/* Giving a request to the engine, and what its encoder says when the engine ends it early. */

struct submission {
    const struct controls *controls;
    const struct tokgen *tokens;
    enum ledger_route route;
    uint64_t first; /* index of the first token: above 0 when a stream is resumed */
    int64_t accepted_wall_us;
    struct encoder encoder; /* taken over */
};

/*
 * Give the request away, to be generated as `submission` says. Without memory the request is
 * answered with 503 and the encoder freed.
 */
void submit_generation(const struct app *app, struct request *request,
                       const struct submission *submission);

/* The problem that an outcome other than done is told as. */
void submit_describe_end(const struct fault *fault, enum ledger_outcome outcome,
                         struct problem *problem);

/* Answer 503 for want of memory. */
void submit_refuse(struct request *request);

#endif
