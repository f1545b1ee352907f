#ifndef RUNNEL_ENDPOINTS_CONTROLS_H
#define RUNNEL_ENDPOINTS_CONTROLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "engine/fault.h"
#include "engine/timing.h"
#include "gen/tokgen.h"
#include "wire/body.h"
#include "wire/problem.h"

/*
 * What one request asks for: the same names in a query and in a JSON body. One table in
 * controls.c holds each name, its kind and its range; a new control is a field here and a row
 * there.
 */

struct controls {
    char *prompt; /* owned */
    size_t prompt_len;
    uint64_t max_tokens;
    int64_t ttft_us;
    int64_t itl_us;
    bool is_paced; /* ttft_ms or itl_ms was given: no timing trace then */
    struct jitter jitter;
    uint64_t prefill_us_per_token;
    uint64_t seed;
    uint64_t vocab; /* an enum tokgen_vocab */
    uint64_t chunk;
    uint64_t stamps; /* 0 or 1 */
    uint64_t ids;    /* 0 or 1 */
    uint64_t hints;  /* 0 or 1: the headers that ask proxies to stream */
    int64_t ping_us;
    struct fault fault;
    uint64_t wire; /* an enum sse_wire */
};

/* From a query string. 0, or -1 with `problem` filled and nothing to free. */
int controls_from_query(struct controls *controls, const struct config *config,
                        const char *query, struct problem *problem);

/* From a JSON body; the same. */
int controls_from_body(struct controls *controls, const struct config *config, const char *body,
                       size_t len, struct problem *problem);

/*
 * In parts, for a request of another shape: the settings' defaults first, then whatever the
 * request has, each part over those before it, and the check last. Each but the first returns
 * 0, or -1 with `problem` filled; controls_free is due in any case.
 */
void controls_init(struct controls *controls, const struct config *config);

/* The control `name` from a JSON value and its text as it was written; messages call it
 * `label`. */
int controls_set(struct controls *controls, const struct config *config, const char *name,
                 const char *label, const struct body_value *value, struct problem *problem);

int controls_set_prompt(struct controls *controls, const struct config *config,
                        const char *label, const char *text, size_t len,
                        struct problem *problem);

/* All but prompt and max_tokens, from an object that holds nothing else: `runnel`. */
int controls_from_object(struct controls *controls, const struct config *config,
                         const struct body_value *object, struct problem *problem);

/* The same from headers: `value_of` gives what the FastCGI parameter HTTP_X_RUNNEL_ITL_MS has,
 * or "". */
int controls_from_headers(struct controls *controls, const struct config *config,
                          const char *(*value_of)(const void *context, const char *param),
                          const void *context, struct problem *problem);

int controls_check(const struct controls *controls, struct problem *problem);

/* What only a stream can show is refused for a reply in one piece of `path`, and not ignored.
 */
int controls_check_whole(const struct controls *controls, const char *path,
                         struct problem *problem);

void controls_free(struct controls *controls);

#endif
