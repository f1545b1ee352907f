#ifndef RUNNEL_ENGINE_PACER_H
#define RUNNEL_ENGINE_PACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "engine/generation.h"

/*
 * The pacer decides whose turn it is: slots, the queue for them, a heap of absolute deadlines,
 * and back-pressure. It owns every generation from pacer_submit to its end, never blocks, and
 * knows descriptors only as something that its watcher looks after. One thread.
 *
 * Fairness: a turn gives each generation that is due at most one token, the longest due first,
 * and then lets the caller look at its descriptors; one that is late, or has no pace, queues up
 * behind all others that are due now.
 */

/* Whoever waits for descriptors: the loop, or nobody in a test. */
struct pacer_watcher {
    /* Report hang-ups and aborts from now on. 0 or -1 (no memory, no descriptor). */
    int (*add)(void *context, struct generation *generation);
    void (*remove)(void *context, struct generation *generation);
    /* Also report when the sink can be written to again, or no longer. */
    void (*want_writable)(void *context, struct generation *generation, bool wanted);
    void *context;
};

struct pacer_options {
    size_t slots; /* requests that generate at once */
    size_t queue; /* requests that wait for a slot */
    int64_t stall_timeout_us;
    bool ignore_cancel;
    struct ledger *ledger;
    struct clock clock;
    struct pacer_watcher watcher;
    /* Called for each request that has ended; may be NULL. Must not block. */
    void (*on_end)(const struct ledger_request *request);
};

struct pacer;

/* NULL without memory. */
struct pacer *pacer_create(const struct pacer_options *options);

/* Cuts off what is live (outcome drained). */
void pacer_destroy(struct pacer *pacer);

/* Take a generation over: it starts, waits in the queue, or is refused. */
void pacer_submit(struct pacer *pacer, struct generation *generation);

/*
 * Give a turn to what is due. Returns when the next turn is wanted (CLOCK_NEVER: only an event
 * can bring one; at or before now: at once, after a look at the descriptors).
 */
int64_t pacer_turn(struct pacer *pacer);

/* Events from the watcher; `seen_us` is when the wait that brought it ended. After either,
 * `generation` may be gone. */
void pacer_peer_left(struct pacer *pacer, struct generation *generation,
                     enum ledger_detector detected_by, int64_t seen_us);
void pacer_writable(struct pacer *pacer, struct generation *generation);

/* From now on everything new is refused. */
void pacer_drain(struct pacer *pacer);

/* End all that is live with outcome drained; streams are told with an error event. */
void pacer_stop(struct pacer *pacer);

size_t pacer_live(const struct pacer *pacer);

#endif
