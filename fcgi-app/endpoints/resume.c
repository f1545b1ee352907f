/* Last-Event-ID. */

#include "endpoints/resume.h"

#include <string.h>

#include "base/number.h"

const char resume_done_id[] = "done";

enum resume resume_point(const struct controls *controls, const struct request *request,
                         uint64_t *first, struct problem *problem)
{
    const char *last_id = request_param(request, "HTTP_LAST_EVENT_ID");
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];

    *first = 0;
    if (controls->ids == 0 || last_id[0] == '\0')
        return RESUME_FROM_START;
    if (strcmp(last_id, resume_done_id) == 0)
        return RESUME_NOTHING_LEFT;
    if (number_parse_u64(last_id, strlen(last_id), 0, controls->max_tokens, first) == NUMBER_OK)
        return RESUME_AFTER;
    problem_set(problem, 400, "bad_event_id", "Last-Event-ID",
                "Last-Event-ID: `%s` was given; an id of this stream is allowed: 0 to %llu "
                "(max_tokens), or done",
                problem_show(shown, last_id, strlen(last_id)),
                (unsigned long long)controls->max_tokens);
    return RESUME_BAD;
}
