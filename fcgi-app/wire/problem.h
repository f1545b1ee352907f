#ifndef RUNNEL_WIRE_PROBLEM_H
#define RUNNEL_WIRE_PROBLEM_H

#include "base/buffer.h"

/*
 * What is wrong with a request, as it is told to the client: an HTTP status and the four fields
 * of the OpenAI API's error object. A message names the parameter, what was given, and what is
 * allowed. Pure data; whoever finds the problem fills it, one place writes it.
 */

enum { PROBLEM_PARAM_MAX_BYTES = 63 };

struct problem {
    int status;        /* HTTP status; 0: no problem */
    const char *type;  /* e.g. "invalid_request_error"; a literal */
    const char *code;  /* e.g. "out_of_range"; a literal */
    const char *param; /* the parameter's name, in `name`; or NULL */
    char name[PROBLEM_PARAM_MAX_BYTES + 1];
    char message[400];
};

/*
 * Fill it; the type follows from the status. `param` (NULL: none) is copied, so the problem
 * must not be. Returns -1, for `return problem_set(...)`.
 */
int problem_set(struct problem *problem, int status, const char *code, const char *param,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Append `{"error":{"message":..,"type":..,"param":..,"code":..}}`. 0 or -1 as buffer_append.
 */
int problem_append_json(const struct problem *problem, struct buffer *out);

enum { PROBLEM_SHOWN_MAX_BYTES = 40 };

/*
 * What the client sent, made fit for a message: at most PROBLEM_SHOWN_MAX_BYTES bytes of it,
 * cut at a character, `...` where it was cut, and `?` for what is not printable UTF-8. Returns
 * `shown`.
 */
const char *problem_show(char shown[PROBLEM_SHOWN_MAX_BYTES + 4], const char *text, size_t len);

#endif
