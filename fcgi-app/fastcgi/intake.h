#ifndef RUNNEL_FASTCGI_INTAKE_H
#define RUNNEL_FASTCGI_INTAKE_H

#include <stdint.h>

#include "fastcgi/request.h"

/*
 * The intake accepts connections and reads requests, without ever waiting for one peer: a
 * connection that says nothing, half a request, or nonsense, holds a descriptor and its own
 * bytes, never a thread. A whole request goes to the handler, on the intake's thread.
 *
 * When descriptors run out, the connection that has been idle longest is closed; when none is,
 * accepting pauses for a moment.
 */

struct intake;

struct intake_options {
    int listen_fd; /* stays the caller's */
    struct record_limits limits;
    int64_t read_timeout_us; /* for a request that was begun */
    int64_t peer_timeout_us; /* of TCP; 0: none (fastcgi/tcp.h) */
    /* Takes the request over: it must be answered, or given away as a sink. Must not block. */
    void (*handle)(void *context, struct request *request);
    void *context;
};

/* NULL with errno. */
struct intake *intake_create(const struct intake_options *options);

/* Serve on the calling thread until intake_stop. */
void intake_run(struct intake *intake);

/* Any thread. */
void intake_stop(struct intake *intake);

/* Closes what it still has. All requests must be over. */
void intake_destroy(struct intake *intake);

#endif
