/* GET /v1/models and /v1/models/ID: there is one. Requests may name any, and get it back. */

#include <string.h>

#include "endpoints/reply.h"
#include "endpoints/routes.h"
#include "wire/openai.h"

void endpoint_models(const struct app *app, struct request *request)
{
    struct buffer body;

    (void)app;
    buffer_init(&body, 1024);
    buffer_append_text(&body, "{\"object\":\"list\",\"data\":[");
    openai_append_model(&body);
    buffer_append_text(&body, "]}\n");
    reply_send(request, 200, REPLY_JSON, &body);
    buffer_free(&body);
}

void endpoint_model(const struct app *app, struct request *request)
{
    const char *id = request_path(request) + sizeof("/v1/models/") - 1;
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];
    struct problem problem;
    struct buffer body;

    (void)app;
    if (strcmp(id, openai_model) != 0) {
        problem_set(&problem, 404, "model_not_found", "model",
                    "model: there is no `%s`, there is `%s` (requests may name any)",
                    problem_show(shown, id, strlen(id)), openai_model);
        reply_send_problem(request, &problem, NULL);
        return;
    }
    buffer_init(&body, 1024);
    openai_append_model(&body);
    buffer_append_char(&body, '\n');
    reply_send(request, 200, REPLY_JSON, &body);
    buffer_free(&body);
}
