/* GET /healthz: whether new requests are taken. */

#include "endpoints/reply.h"
#include "endpoints/routes.h"

void endpoint_health(const struct app *app, struct request *request)
{
    struct problem problem;
    struct buffer body;

    if (loop_is_draining(app->loop)) {
        problem_set(&problem, 503, "draining", NULL, "the server is draining");
        reply_send_problem(request, &problem, NULL);
        return;
    }
    buffer_init(&body, 16);
    buffer_append_text(&body, "ok\n");
    reply_send(request, 200, REPLY_TEXT, &body);
    buffer_free(&body);
}
