/* The table of endpoints. */

#include "endpoints/routes.h"

#include <string.h>

#include "endpoints/reply.h"
#include "wire/problem.h"

struct route {
    const char *path;  /* one that ends with a slash: everything below it */
    const char *allow; /* methods, as the Allow header lists them */
    void (*handle)(const struct app *app, struct request *request);
};

static const struct route routes[] = {
    {"/stream", "GET, HEAD", endpoint_stream},
    {"/generate", "POST", endpoint_generate},
    {"/v1/completions", "POST", endpoint_completions},
    {"/v1/chat/completions", "POST", endpoint_chat},
    {"/v1/models", "GET, HEAD", endpoint_models},
    {"/v1/models/", "GET, HEAD", endpoint_model},
    {"/_debug/generated", "GET, HEAD", endpoint_debug_generated},
    {"/metrics", "GET, HEAD", endpoint_metrics},
    {"/healthz", "GET, HEAD", endpoint_health},
};

enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

/* Whether `method` is one of the list "A, B". */
static bool is_allowed(const char *allow, const char *method)
{
    size_t len = strlen(method);

    for (const char *at = allow; len > 0 && (at = strstr(at, method)) != NULL; at += len) {
        if ((at == allow || at[-1] == ' ') && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

static bool leads_to(const struct route *route, const char *path)
{
    size_t len = strlen(route->path);

    return route->path[len - 1] == '/' ? strncmp(path, route->path, len) == 0
                                       : strcmp(path, route->path) == 0;
}

void routes_handle(void *context, struct request *request)
{
    const struct app *app = context;
    const char *path = request_path(request);
    const char *method = request_method(request);
    struct problem problem;
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];

    for (size_t i = 0; i < ROUTES; i++) {
        if (!leads_to(&routes[i], path))
            continue;
        if (is_allowed(routes[i].allow, method)) {
            routes[i].handle(app, request);
            return;
        }
        problem_set(&problem, 405, "method_not_allowed", NULL, "%s: %s was asked; it takes %s",
                    path, problem_show(shown, method, strlen(method)), routes[i].allow);
        reply_send_problem(request, &problem, routes[i].allow);
        return;
    }
    problem_set(&problem, 404, "not_found", NULL, "there is nothing at `%s`",
                problem_show(shown, path, strlen(path)));
    reply_send_problem(request, &problem, NULL);
}
