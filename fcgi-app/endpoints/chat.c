/* POST /v1/chat/completions: messages, and what the assistant says. */

#include "endpoints/completion.h"
#include "endpoints/routes.h"

void endpoint_chat(const struct app *app, struct request *request)
{
    completion_answer(app, request, OPENAI_CHAT);
}
