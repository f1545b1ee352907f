#ifndef RUNNEL_ENGINE_LOOP_H
#define RUNNEL_ENGINE_LOOP_H

#include <stdbool.h>

#include "engine/pacer.h"

/*
 * The engine's thread: one epoll set for arrivals, peers, writability and signals, and the
 * pacer's next deadline as its timeout. Everything live is touched by this thread alone.
 *
 * SIGTERM and SIGINT, which must be blocked in every thread of the process, start the drain: no
 * new requests, what is live gets drain_us to end, then it is cut with an error event. A second
 * one ends at once. SIGHUP opens the log anew, and calls on_hangup.
 */

struct loop;

struct loop_options {
    struct pacer_options pacer; /* its watcher is set by loop_create */
    int64_t drain_us;
    /* Called on the engine thread when the drain is over; may be NULL. */
    void (*on_drained)(void *context);
    /* Called on the engine thread at a SIGHUP; may be NULL. What it does delays tokens. */
    void (*on_hangup)(void *context);
    void *context;
};

/* NULL with errno. */
struct loop *loop_create(const struct loop_options *options);

/* Start the thread. 0, or -1 with errno. */
int loop_start(struct loop *loop);

/* Hand a generation over, from any thread. Its peer is watched from the next microseconds on.
 */
void loop_submit(struct loop *loop, struct generation *generation);

/* Whether the drain has begun. Any thread. */
bool loop_is_draining(struct loop *loop);

/* Begin the drain as SIGTERM does, or end at once when it has begun. Any thread. */
void loop_terminate(struct loop *loop);

/* Wait for the thread to end, which it does when the drain is over, and free the loop. */
void loop_join(struct loop *loop);

#endif
