#ifndef RUNNEL_ENDPOINTS_SUBMIT_H
#define RUNNEL_ENDPOINTS_SUBMIT_H

#include "endpoints/app.h"
#include "endpoints/controls.h"
#include "fastcgi/request.h"
#include "wire/problem.h"

/* Giving a request to the engine, and what its encoder says when the engine ends it early. */

/*
 * Give the request away, to be generated as `controls` say and written by `encoder`, which is
 * taken over too. Without memory the request is answered with 503 and the encoder freed.
 */
void submit_generation(const struct app *app, struct request *request,
                       const struct controls *controls, enum ledger_route route,
                       struct encoder encoder);

/* The problem that an outcome other than done is told as. */
void submit_describe_end(enum ledger_outcome outcome, struct problem *problem);

/* Answer 503 for want of memory. */
void submit_refuse(struct request *request);

#endif
