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

#endif
