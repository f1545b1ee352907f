#ifndef RUNNEL_LOAD_REQUEST_H
#define RUNNEL_LOAD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gen/load/options.h"
#include "gen/tokgen.h"

/*
 * Request number i of a run: its URL, headers and body, from the options and their
 * placeholders, and what it asks for as far as that can be read in it again. Whatever way a
 * parameter came into the request, the tokens are judged by what was sent.
 */

enum { REQUEST_MAX_BYTES = 16 << 20, REQUEST_ID_MAX_BYTES = 64 };

struct asked {
    bool has_prompt; /* then `tokens` generates the reply of a runnel */
    bool has_jitter;
    struct tokgen tokens;
    uint64_t max_tokens;     /* 0: not told */
    uint64_t chunk;          /* tokens an event; 1 when it is not told */
    int64_t itl_us, ttft_us; /* -1: not told */
};

/* Kept by its stream and made anew for each request, in the same memory. */
struct request {
    char id[REQUEST_ID_MAX_BYTES + 1];
    struct buffer url;     /* NUL-terminated */
    struct buffer body;    /* what it has; `has_body` of the options says whether it is sent */
    struct buffer headers; /* lines, each with its NUL */
    struct buffer prompt;  /* expanded */
    struct asked asked;
};

struct request_maker {
    const struct options *options;
    char run[16];  /* what the ids of this run have in common */
    bool sends_id; /* no -H gives one */
    bool sends_accept;
    bool sends_type; /* a body, and no -H gives its type */
};

void request_maker_init(struct request_maker *maker, const struct options *options,
                        uint32_t run);

void request_init(struct request *request);
void request_free(struct request *request);

/* 0, or -1 when it is larger than REQUEST_MAX_BYTES or there is no memory. */
int request_make(const struct request_maker *maker, struct request *request, uint64_t number);

#endif
