/* The table of endpoints, and who may call them: keys and origins come before any endpoint. */

#include "endpoints/routes.h"

#include <stdio.h>
#include <string.h>

#include "endpoints/cors.h"
#include "endpoints/keys.h"
#include "endpoints/reply.h"
#include "wire/problem.h"

/* The service asks for a key (--api-key-file) and may be called by pages of other origins
 * (--cors-origin); what tells of it does neither. */
enum access { SERVICE, TELLS };

struct route {
    const char *path;  /* one that ends with a slash: everything below it */
    const char *allow; /* methods, as the Allow header lists them */
    enum access access;
    void (*handle)(const struct app *app, struct request *request);
};

static const struct route routes[] = {
    {"/stream", "GET, HEAD", SERVICE, endpoint_stream},
    {"/generate", "POST", SERVICE, endpoint_generate},
    {"/v1/completions", "POST", SERVICE, endpoint_completions},
    {"/v1/chat/completions", "POST", SERVICE, endpoint_chat},
    {"/v1/models", "GET, HEAD", SERVICE, endpoint_models},
    {"/v1/models/", "GET, HEAD", SERVICE, endpoint_model},
    {"/_debug/generated", "GET, HEAD", TELLS, endpoint_debug_generated},
    {"/metrics", "GET, HEAD", TELLS, endpoint_metrics},
    {"/healthz", "GET, HEAD", TELLS, endpoint_health},
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

static const struct route *find_route(const char *path)
{
    for (size_t i = 0; i < ROUTES; i++) {
        size_t len = strlen(routes[i].path);
        bool is_prefix = routes[i].path[len - 1] == '/';
        if (is_prefix ? strncmp(path, routes[i].path, len) == 0
                      : strcmp(path, routes[i].path) == 0)
            return &routes[i];
    }
    return NULL;
}

/* --- pages of other origins --- */

/* What a browser asks before it lets a page call (WHATWG Fetch, section 4.8). It never has the
 * page's key. */
static bool is_preflight(const struct request *request)
{
    return strcmp(request_method(request), "OPTIONS") == 0 &&
           request_param(request, "HTTP_ORIGIN")[0] != '\0' &&
           request_param(request, "HTTP_ACCESS_CONTROL_REQUEST_METHOD")[0] != '\0';
}

static void answer_preflight(struct request *request, const struct route *route,
                             bool is_allowed_origin)
{
    const char *origin = request_param(request, "HTTP_ORIGIN");
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];
    char lines[200];
    struct problem problem;

    if (!is_allowed_origin) {
        problem_set(&problem, 403, "origin_not_allowed", "Origin",
                    "Origin: `%s` was given; those of --cors-origin are allowed",
                    problem_show(shown, origin, strlen(origin)));
        reply_send_problem(request, &problem, NULL);
        return;
    }
    /* `*` stands for all names but Authorization; what knows no `*` gets the usual ones. */
    snprintf(lines, sizeof(lines),
             "Access-Control-Allow-Methods: %s\r\n"
             "Access-Control-Allow-Headers: Authorization, Content-Type, Last-Event-ID, "
             "X-Request-Id, *\r\n"
             "Access-Control-Max-Age: 7200\r\n",
             route->allow);
    reply_send_nothing(request, lines);
}

/* Whether the request has been answered. */
static bool handle_origin(const struct cors *cors, struct request *request,
                          const struct route *route)
{
    const char *lines = cors_lines(cors, request_param(request, "HTTP_ORIGIN"));

    request_set_reply_lines(request, lines != NULL ? lines : cors_vary);
    if (!is_preflight(request))
        return false;
    answer_preflight(request, route, lines != NULL);
    return true;
}

/* --- keys --- */

static bool refuse_key(struct keys *keys, struct request *request)
{
    const char *authorization = request_param(request, "HTTP_AUTHORIZATION");
    struct problem problem;

    if (keys_admit(keys, authorization))
        return false;
    problem_set(&problem, 401, "invalid_api_key", NULL,
                authorization[0] == '\0'
                    ? "no API key was given; `Authorization: Bearer KEY` is needed"
                    : "the API key is none of this server's (--api-key-file)");
    reply_send_problem(request, &problem, NULL);
    return true;
}

/* --- the way to an endpoint --- */

static void handle_route(const struct app *app, struct request *request,
                         const struct route *route)
{
    const char *method = request_method(request);
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];
    struct problem problem;

    if (route->access == SERVICE && app->cors != NULL &&
        handle_origin(app->cors, request, route))
        return;
    if (route->access == SERVICE && app->keys != NULL && refuse_key(app->keys, request))
        return;
    if (is_allowed(route->allow, method)) {
        route->handle(app, request);
        return;
    }
    problem_set(&problem, 405, "method_not_allowed", NULL, "%s: %s was asked; it takes %s",
                route->path, problem_show(shown, method, strlen(method)), route->allow);
    reply_send_problem(request, &problem, route->allow);
}

void routes_handle(void *context, struct request *request)
{
    const char *path = request_path(request);
    const struct route *route = find_route(path);
    struct problem problem;
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];

    if (route != NULL) {
        handle_route(context, request, route);
        return;
    }
    problem_set(&problem, 404, "not_found", NULL, "there is nothing at `%s`",
                problem_show(shown, path, strlen(path)));
    reply_send_problem(request, &problem, NULL);
}
