/* POST /v1/completions: a prompt, and the text that goes on from it. */

#include "endpoints/completion.h"
#include "endpoints/routes.h"

void endpoint_completions(const struct app *app, struct request *request)
{
    completion_answer(app, request, OPENAI_COMPLETION);
}
