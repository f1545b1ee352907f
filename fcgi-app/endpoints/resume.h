#ifndef RUNNEL_ENDPOINTS_RESUME_H
#define RUNNEL_ENDPOINTS_RESUME_H

#include "endpoints/controls.h"
#include "fastcgi/request.h"

/* Where a stream with ids goes on: the id of an event is the number of tokens up to its end. */

enum resume { RESUME_FROM_START, RESUME_AFTER, RESUME_NOTHING_LEFT, RESUME_BAD };

/* Where Last-Event-ID says that the client has come to: `*first` is the next token. `problem`
 * is filled for RESUME_BAD. */
enum resume resume_point(const struct controls *controls, const struct request *request,
                         uint64_t *first, struct problem *problem);

/* The id of the last event: whoever has it has everything. */
extern const char resume_done_id[];

#endif
