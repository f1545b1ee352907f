/* Which bodies are read at all. */

#include "endpoints/payload.h"

#include <string.h>

/* A browser form or a plain text is no JSON, whatever it holds; no type at all is let through.
 */
static bool is_json(const char *content_type)
{
    static const char json[] = "application/json";
    size_t len = strcspn(content_type, "; \t");

    return len == 0 || (len == sizeof(json) - 1 && strncasecmp(content_type, json, len) == 0);
}

int payload_read(const struct app *app, const struct request *request, const char **body,
                 size_t *len, struct problem *problem)
{
    const char *content_type = request_param(request, "CONTENT_TYPE");
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];

    if (!is_json(content_type))
        return problem_set(problem, 415, "not_json", NULL,
                           "Content-Type: `%s` was given; application/json is allowed",
                           problem_show(shown, content_type, strlen(content_type)));
    if (!request_body(request, body, len))
        return problem_set(problem, 413, "too_large", NULL,
                           "the body is larger than %llu bytes (--body-max-bytes)",
                           (unsigned long long)app->config->body_max_bytes);
    return 0;
}
