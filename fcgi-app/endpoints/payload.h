#ifndef RUNNEL_ENDPOINTS_PAYLOAD_H
#define RUNNEL_ENDPOINTS_PAYLOAD_H

#include "endpoints/app.h"
#include "fastcgi/request.h"
#include "wire/problem.h"

/* The body of a request that must be JSON; its type and its size are judged here, and no more.
 * 0, or -1 with `problem` filled (413, 415). */
int payload_read(const struct app *app, const struct request *request, const char **body,
                 size_t *len, struct problem *problem);

#endif
