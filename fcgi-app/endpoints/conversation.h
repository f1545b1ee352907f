#ifndef RUNNEL_ENDPOINTS_CONVERSATION_H
#define RUNNEL_ENDPOINTS_CONVERSATION_H

#include <cjson/cJSON.h>

#include "base/buffer.h"
#include "wire/problem.h"

/*
 * The messages of a chat as one prompt. A single message of a user is its text, so that it
 * gives the tokens that /stream gives for the same text; any other conversation is one line
 * `role: text` a message, with a newline between two. The parts of a message's text are joined
 * without anything between them.
 */

/* Append it to `prompt`. 0, or -1 with `problem` filled. */
int conversation_append_prompt(const cJSON *messages, struct buffer *prompt,
                               struct problem *problem);

#endif
