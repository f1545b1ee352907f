#ifndef RUNNEL_ENDPOINTS_REPLY_H
#define RUNNEL_ENDPOINTS_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "fastcgi/request.h"
#include "wire/problem.h"

/*
 * Replies of one piece, and the heads of all replies. A reply is appended to a buffer and sent
 * by request_reply, or becomes the last bytes of a generation: both write the same.
 */

#define REPLY_JSON "application/json"
#define REPLY_TEXT "text/plain; charset=utf-8"

/* What a head tells of the request that it answers. A value, which outlives the request: a
 * reply is often written when there is nothing left of it but the connection. */
struct reply_caller {
    char id[LEDGER_ID_MAX_BYTES + 1];
    const char *lines; /* as request_reply_lines */
};

struct reply_caller reply_caller_of(const struct request *request);

/* `Status:`, Content-Type, Content-Length, the caching and id headers, and the empty line. */
int reply_append_head(struct buffer *out, int status, const char *content_type,
                      size_t content_len, const struct reply_caller *caller);

/* The head of an event stream. With hints, it asks proxies neither to buffer nor to transform.
 */
int reply_append_stream_head(struct buffer *out, const struct reply_caller *caller, bool hints);

/* Head and body of an error. `allow` is for 405, else NULL. */
int reply_append_problem(struct buffer *out, const struct problem *problem, const char *allow,
                         const struct reply_caller *caller);

/* Send them; each ends the request. HEAD gets the head alone (RFC 9110, section 9.3.2). */
void reply_send(struct request *request, int status, const char *content_type,
                const struct buffer *body);
void reply_send_problem(struct request *request, const struct problem *problem,
                        const char *allow);
void reply_send_stream_head(struct request *request, bool hints);

/* 204: there is nothing, and there will not be more. `lines` are headers of this reply alone.
 */
void reply_send_nothing(struct request *request, const char *lines);

#endif
