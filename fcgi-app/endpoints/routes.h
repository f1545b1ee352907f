#ifndef RUNNEL_ENDPOINTS_ROUTES_H
#define RUNNEL_ENDPOINTS_ROUTES_H

#include "endpoints/app.h"
#include "fastcgi/request.h"

/*
 * Which endpoint answers which path and methods: one row each in routes.c. An endpoint is one
 * file with one function, declared here, that takes the request over. Intake thread; never
 * blocks.
 */

/* Answer the request, or give it to its endpoint. `app` is a struct app. */
void routes_handle(void *app, struct request *request);

void endpoint_stream(const struct app *app, struct request *request);
void endpoint_generate(const struct app *app, struct request *request);
void endpoint_completions(const struct app *app, struct request *request);
void endpoint_chat(const struct app *app, struct request *request);
void endpoint_models(const struct app *app, struct request *request);
void endpoint_model(const struct app *app, struct request *request);
void endpoint_debug_generated(const struct app *app, struct request *request);
void endpoint_metrics(const struct app *app, struct request *request);
void endpoint_health(const struct app *app, struct request *request);

#endif
