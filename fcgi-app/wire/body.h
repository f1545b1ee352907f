#ifndef RUNNEL_WIRE_BODY_H
#define RUNNEL_WIRE_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "wire/problem.h"

/*
 * A JSON request body as a cJSON object. Beyond JSON itself (RFC 8259) it must be valid UTF-8,
 * one object with nothing after it, and free of U+0000, which C strings would cut at.
 */

/* The object, to be freed with cJSON_Delete; or NULL with `problem` filled. */
cJSON *body_parse(const char *text, size_t len, struct problem *problem);

/*
 * The members of a body that body_parse has taken, as they are written: cJSON keeps numbers as
 * doubles only, which lose digits above 2^53 and how a number was spelled.
 */
struct body_value {
    const cJSON *json;
    const char *text; /* as it is written */
    size_t len;
};

struct body_members {
    const cJSON *next;
    const char *at;
    const char *end;
};

/* The members of `json`, an object that is written so. */
struct body_members body_members(const cJSON *json, const char *text, size_t len);

/* The next member's value (its name is json->string); false after the last. */
bool body_next(struct body_members *members, struct body_value *value);

#endif
