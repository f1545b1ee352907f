#ifndef RUNNEL_ENDPOINTS_OPENAI_REQUEST_H
#define RUNNEL_ENDPOINTS_OPENAI_REQUEST_H

#include "endpoints/controls.h"
#include "wire/openai.h"
#include "wire/stop.h"

/*
 * What a body of /v1/completions or /v1/chat/completions asks for. One table in
 * openai_request.c holds each of its members that means something: what would not change the
 * reply is read and ignored, what the reply would have to look different for is refused, and
 * names that are not in the table are ignored. null is as if it were not there.
 */

struct openai_request {
    enum openai_kind kind;
    struct controls controls; /* the prompt among them */
    bool streams, tells_usage;
    char model[OPENAI_MODEL_MAX_BYTES + 1];
    struct stop_sequences *stops; /* owned; NULL: none */
};

/* With the settings' defaults; `controls` may be set further (headers) before the body is read.
 * openai_request_free is due after it. */
void openai_request_init(struct openai_request *request, enum openai_kind kind,
                         const struct config *config);

/* 0, or -1 with `problem` filled. */
int openai_request_read(struct openai_request *request, const struct config *config,
                        const char *body, size_t len, struct problem *problem);

void openai_request_free(struct openai_request *request);

#endif
