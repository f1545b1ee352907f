/* POST /generate: the same tokens at the same pace, in one JSON reply at the end. */

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "endpoints/controls.h"
#include "endpoints/reply.h"
#include "endpoints/routes.h"
#include "endpoints/submit.h"
#include "gen/tokgen.h"
#include "wire/json.h"

struct whole {
    struct tokgen tokens;
    uint64_t prompt_tokens;
    uint64_t completion_tokens;
    struct buffer text; /* JSON-escaped */
    struct fault fault;
    char id[LEDGER_ID_MAX_BYTES + 1];
};

enum {
    /* A control character of one byte is six when it is escaped. */
    ESCAPED_TOKEN_MAX_BYTES = 6 * TOKGEN_TOKEN_MAX_BYTES,
};

static int whole_head(void *context, struct buffer *out)
{
    (void)context;
    (void)out; /* the status is not known before the end */
    return 0;
}

static int whole_tokens(void *context, struct buffer *out, struct token_span *span)
{
    struct whole *whole = context;
    char token[TOKGEN_TOKEN_MAX_BYTES];

    (void)out;
    for (uint64_t i = span->first; i < span->first + span->count; i++) {
        size_t len = tokgen_token(&whole->tokens, i, token, sizeof(token));
        if (json_append_escaped(&whole->text, token, len) != 0)
            return -1;
    }
    whole->completion_tokens += span->count;
    return 0;
}

static int append_reply(const struct whole *whole, struct buffer *out)
{
    struct buffer tail;
    static const char start[] = "{\"text\":\"";

    buffer_init(&tail, 4096);
    buffer_append_text(&tail, "\",\"usage\":{\"prompt_tokens\":");
    buffer_append_u64(&tail, whole->prompt_tokens);
    buffer_append_text(&tail, ",\"completion_tokens\":");
    buffer_append_u64(&tail, whole->completion_tokens);
    buffer_append_text(&tail, ",\"total_tokens\":");
    buffer_append_u64(&tail, whole->prompt_tokens + whole->completion_tokens);
    buffer_append_text(&tail, "}}\n");
    reply_append_head(out, 200, REPLY_JSON, sizeof(start) - 1 + whole->text.len + tail.len,
                      whole->id);
    buffer_append(out, start, sizeof(start) - 1);
    buffer_append(out, whole->text.data, whole->text.len);
    int result = buffer_append(out, tail.data, tail.len);
    buffer_free(&tail);
    return result;
}

static int whole_end(void *context, struct buffer *out, enum ledger_outcome outcome)
{
    const struct whole *whole = context;
    struct problem problem;

    if (outcome == LEDGER_DONE)
        return append_reply(whole, out);
    submit_describe_end(&whole->fault, outcome, &problem);
    return reply_append_problem(out, &problem, NULL, whole->id);
}

static void whole_free(void *context)
{
    struct whole *whole = context;

    buffer_free(&whole->text);
    free(whole);
}

static const struct encoder_ops whole_ops = {
    .head = whole_head, .tokens = whole_tokens, .end = whole_end, .free = whole_free};

/* A browser form or a plain text is no JSON, whatever it holds; no type at all is let through.
 */
static bool is_json(const char *content_type)
{
    static const char json[] = "application/json";
    size_t len = strcspn(content_type, "; \t");

    return len == 0 || (len == sizeof(json) - 1 && strncasecmp(content_type, json, len) == 0);
}

/* What only a stream can show is refused, and not ignored. */
static int check_controls(const struct controls *controls, struct problem *problem)
{
    enum fault_kind kind = controls->fault.kind;
    const char *param = NULL;

    if (kind == FAULT_EOF || kind == FAULT_GARBLE || kind == FAULT_DUP || kind == FAULT_NODONE)
        param = "fault";
    else if (controls->wire != SSE_LF)
        param = "wire";
    else if (controls->stamps != 0)
        param = "stamps";
    else if (controls->hints == 0)
        param = "hints";
    else if (controls->ids != 0)
        param = "ids";
    else if (controls->ping_us != 0)
        param = "ping_ms";
    if (param == NULL)
        return 0;
    return problem_set(
        problem, 400, "streams_only", param,
        "%s: what was given exists for streams only; /generate takes the faults "
        "error@K, reset@K, stall@K:MS and status:CODE, and no wire, stamps, ids, hints or "
        "ping_ms",
        param);
}

static int read_body(const struct app *app, struct request *request, struct controls *controls,
                     struct problem *problem)
{
    const char *content_type = request_param(request, "CONTENT_TYPE");
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];
    const char *body;
    size_t len;

    if (!is_json(content_type))
        return problem_set(problem, 415, "not_json", NULL,
                           "Content-Type: `%s` was given; application/json is allowed",
                           problem_show(shown, content_type, strlen(content_type)));
    if (!request_body(request, &body, &len))
        return problem_set(problem, 413, "too_large", NULL,
                           "the body is larger than %llu bytes (--body-max-bytes)",
                           (unsigned long long)app->config->body_max_bytes);
    if (controls_from_body(controls, app->config, body, len, problem) != 0)
        return -1;
    if (check_controls(controls, problem) == 0)
        return 0;
    controls_free(controls);
    return -1;
}

void endpoint_generate(const struct app *app, struct request *request)
{
    struct controls controls;
    struct problem problem;

    if (read_body(app, request, &controls, &problem) != 0) {
        reply_send_problem(request, &problem, NULL);
        return;
    }
    struct whole *whole = calloc(1, sizeof(*whole));
    if (whole == NULL) {
        controls_free(&controls);
        submit_refuse(request);
        return;
    }
    whole->tokens = tokgen_init(controls.prompt, controls.prompt_len, controls.seed,
                                (enum tokgen_vocab)controls.vocab);
    whole->prompt_tokens = tokgen_count_prompt_tokens(controls.prompt, controls.prompt_len);
    buffer_init(&whole->text, controls.max_tokens * ESCAPED_TOKEN_MAX_BYTES);
    memcpy(whole->id, request_id(request), strlen(request_id(request)) + 1);
    whole->fault = controls.fault;
    submit_generation(app, request,
                      &(struct submission){
                          .controls = &controls,
                          .tokens = &whole->tokens,
                          .route = LEDGER_GENERATE,
                          .accepted_wall_us = clock_wall_us(),
                          .encoder = {.ops = &whole_ops, .context = whole},
                      });
    controls_free(&controls);
}
