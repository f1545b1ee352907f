#ifndef RUNNEL_WIRE_BODY_H
#define RUNNEL_WIRE_BODY_H

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
struct body_members {
    const char *at;
    const char *end;
};

struct body_members body_members(const char *text, size_t len);

/* The text of the next member's value, in the order of json->child; `*len` is its length. */
const char *body_next_value(struct body_members *members, size_t *len);

#endif
