#ifndef RUNNEL_LOAD_SCHEDULE_H
#define RUNNEL_LOAD_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/load/options.h"

/*
 * When each request should start, and what its client will do to it. All is drawn by position
 * from --seed (base/random.h), so request i has the same fate however the others fare.
 *
 * Closed loop: the first --streams starts are spread over --ramp, a later one begins when
 * another has ended; its intended time is then. Open loop (--rate): the times are fixed
 * beforehand and the server has no say in them; what it makes late is its latency, not a
 * smaller load.
 */

struct schedule {
    const struct options *options;
    int64_t began_us;
    uint64_t next;      /* the number of the next request */
    double due_us;      /* when it is due, after the beginning; open loop */
    double gap_mean_us; /* open loop */
};

/* What the client of a request does. */
struct fate {
    uint64_t abort_after; /* tokens; 0: it stays to the end */
    bool is_slow;
};

void schedule_start(struct schedule *schedule, const struct options *options, int64_t now_us);

/*
 * When the next request should start, while `open` streams are open: CLOCK_NEVER when none is
 * to start any more, or none before one of them ends. In the closed loop a time in the past
 * means now.
 */
int64_t schedule_due_us(const struct schedule *schedule, uint64_t open);

/* Takes it: its number. */
uint64_t schedule_take(struct schedule *schedule);

/* Whether none will start any more. */
bool schedule_is_over(const struct schedule *schedule, int64_t now_us);

/* `max_tokens` is how many the request asks for, 0 when that is not known. */
struct fate schedule_fate(const struct options *options, uint64_t number, uint64_t max_tokens);

#endif
