/* Heads and whole replies. */

#include "endpoints/reply.h"

#include <string.h>

enum {
    REPLY_MAX_BYTES = REQUEST_REPLY_MAX_BYTES,
    RETRY_AFTER_S = 1,
};

static const char *reason_of(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 204:
        return "No Content";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 413:
        return "Content Too Large";
    case 414:
        return "URI Too Long";
    case 415:
        return "Unsupported Media Type";
    case 503:
        return "Service Unavailable";
    case 500:
        return "Internal Server Error";
    default:
        return "Error"; /* one that a fault asked for */
    }
}

struct reply_caller reply_caller_of(const struct request *request)
{
    struct reply_caller caller = {.lines = request_reply_lines(request)};

    memcpy(caller.id, request_id(request), strlen(request_id(request)) + 1);
    return caller;
}

static int append_common(struct buffer *out, int status, const char *content_type,
                         const struct reply_caller *caller)
{
    return buffer_printf(out,
                         "Status: %d %s\r\n"
                         "Content-Type: %s\r\n"
                         "X-Request-Id: %s\r\n"
                         "%s",
                         status, reason_of(status), content_type, caller->id, caller->lines);
}

int reply_append_head(struct buffer *out, int status, const char *content_type,
                      size_t content_len, const struct reply_caller *caller)
{
    append_common(out, status, content_type, caller);
    return buffer_printf(out, "Cache-Control: no-store\r\nContent-Length: %zu\r\n\r\n",
                         content_len);
}

int reply_append_stream_head(struct buffer *out, const struct reply_caller *caller, bool hints)
{
    /* Without the charset some clients read Latin-1, and split lines at the byte 0x85.
     * no-transform keeps compressing proxies out; X-Accel-Buffering turns the buffer of an
     * nginx off. */
    append_common(out, 200, "text/event-stream; charset=utf-8", caller);
    buffer_append_text(out, hints ? "Cache-Control: no-cache, no-transform\r\n"
                                    "X-Accel-Buffering: no"
                                  : "Cache-Control: no-cache");
    /* To a multiple of 8, or libfcgi pads the record: nginx 1.22 takes the padding behind a
     * head for a body that has begun, and keeps the head until there is one. It trims these
     * spaces. */
    while (!out->failed && (out->len + 4) % 8 != 0)
        buffer_append_char(out, ' ');
    return buffer_append_text(out, "\r\n\r\n");
}

int reply_append_problem(struct buffer *out, const struct problem *problem, const char *allow,
                         const struct reply_caller *caller)
{
    struct buffer body;

    buffer_init(&body, REPLY_MAX_BYTES);
    int result = problem_append_json(problem, &body);
    if (allow != NULL)
        buffer_printf(out, "Allow: %s\r\n", allow);
    if (problem->status == 401) /* RFC 9110, section 15.5.2: it must say how */
        buffer_append_text(out, "WWW-Authenticate: Bearer\r\n");
    if (problem->status == 503 || problem->status == 429)
        buffer_printf(out, "Retry-After: %d\r\n", RETRY_AFTER_S);
    if (result == 0)
        result = reply_append_head(out, problem->status, REPLY_JSON, body.len, caller);
    if (result == 0)
        result = buffer_append(out, body.data, body.len);
    buffer_free(&body);
    return result;
}

/* Send `reply`, of which HEAD gets the part up to the empty line. */
static void send_whole(struct request *request, struct buffer *reply)
{
    if (strcmp(request_method(request), "HEAD") == 0 && !reply->failed) {
        const char *end = memmem(reply->data, reply->len, "\r\n\r\n", 4);
        if (end != NULL)
            reply->len = (size_t)(end - reply->data) + 4;
    }
    request_reply(request, reply);
    buffer_free(reply);
}

void reply_send(struct request *request, int status, const char *content_type,
                const struct buffer *body)
{
    struct buffer reply;
    struct reply_caller caller = reply_caller_of(request);

    buffer_init(&reply, REPLY_MAX_BYTES);
    reply_append_head(&reply, status, content_type, body->len, &caller);
    buffer_append(&reply, body->data, body->len);
    send_whole(request, &reply);
}

void reply_send_problem(struct request *request, const struct problem *problem,
                        const char *allow)
{
    struct buffer reply;
    struct reply_caller caller = reply_caller_of(request);

    buffer_init(&reply, REPLY_MAX_BYTES);
    reply_append_problem(&reply, problem, allow, &caller);
    send_whole(request, &reply);
}

void reply_send_stream_head(struct request *request, bool hints)
{
    struct buffer reply;
    struct reply_caller caller = reply_caller_of(request);

    buffer_init(&reply, REPLY_MAX_BYTES);
    reply_append_stream_head(&reply, &caller, hints);
    send_whole(request, &reply);
}

void reply_send_nothing(struct request *request, const char *lines)
{
    struct buffer reply;

    buffer_init(&reply, REPLY_MAX_BYTES);
    buffer_printf(&reply,
                  "Status: 204 %s\r\nX-Request-Id: %s\r\nCache-Control: no-store\r\n%s%s\r\n",
                  reason_of(204), request_id(request), request_reply_lines(request), lines);
    send_whole(request, &reply);
}
