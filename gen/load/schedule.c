/* Arrivals and fates. */

#include "gen/load/schedule.h"

#include <math.h>

#include "base/clock.h"
#include "base/random.h"

/* One sequence of random numbers for each kind of draw. */
enum draw { DRAW_ARRIVAL = 1, DRAW_ABORTS, DRAW_ABORT_TOKEN, DRAW_SLOW };

enum { UNKNOWN_LENGTH_ABORT = 32 }; /* tokens before which a reply of unknown length is left */

static uint64_t draw(const struct options *options, enum draw kind, uint64_t number)
{
    return random_at(random_at(options->seed, (uint64_t)kind), number);
}

/* In (0, 1]: its logarithm is finite. */
static double draw_unit(const struct options *options, enum draw kind, uint64_t number)
{
    return (double)((draw(options, kind, number) >> 11) + 1) * 0x1p-53;
}

/* The gap before a request. The first of a Poisson process comes after a gap too. */
static double gap_us(const struct schedule *schedule, uint64_t number)
{
    if (schedule->options->arrivals == ARRIVALS_POISSON)
        return -log(draw_unit(schedule->options, DRAW_ARRIVAL, number)) * schedule->gap_mean_us;
    return number == 0 ? 0 : schedule->gap_mean_us;
}

void schedule_start(struct schedule *schedule, const struct options *options, int64_t now_us)
{
    *schedule = (struct schedule){.options = options, .began_us = now_us};
    if (options->rate_milli > 0) {
        schedule->gap_mean_us = 1e9 / (double)options->rate_milli;
        schedule->due_us = gap_us(schedule, 0);
    }
}

static int64_t intended_us(const struct schedule *schedule)
{
    const struct options *options = schedule->options;

    if (options->rate_milli > 0)
        return schedule->began_us + (int64_t)schedule->due_us;
    if (schedule->next >= options->streams)
        return schedule->began_us; /* as soon as there is room */
    return schedule->began_us + (int64_t)((double)options->ramp_us * (double)schedule->next /
                                          (double)options->streams);
}

bool schedule_is_over(const struct schedule *schedule, int64_t now_us)
{
    const struct options *options = schedule->options;

    if (options->requests > 0 && schedule->next >= options->requests)
        return true;
    if (options->duration_us == 0)
        return false;
    int64_t end_us = schedule->began_us + options->duration_us;
    /* An open loop owes what was due before the end, however late it is. */
    return options->rate_milli > 0 ? intended_us(schedule) >= end_us : now_us >= end_us;
}

int64_t schedule_due_us(const struct schedule *schedule, uint64_t open)
{
    const struct options *options = schedule->options;

    if (open >= options->streams ||
        (options->requests > 0 && schedule->next >= options->requests))
        return CLOCK_NEVER;
    return intended_us(schedule);
}

uint64_t schedule_take(struct schedule *schedule)
{
    uint64_t number = schedule->next++;

    if (schedule->options->rate_milli > 0)
        schedule->due_us += gap_us(schedule, schedule->next);
    return number;
}

/* Whether a request is among so many thousandths of a percent. */
static bool is_among(const struct options *options, enum draw kind, uint64_t number,
                     uint64_t milli)
{
    return draw_unit(options, kind, number) * 100000 <= (double)milli;
}

struct fate schedule_fate(const struct options *options, uint64_t number, uint64_t max_tokens)
{
    struct fate fate = {.is_slow = is_among(options, DRAW_SLOW, number, options->slow_milli)};
    uint64_t min = options->abort_min;
    uint64_t max = options->abort_max;

    if (!is_among(options, DRAW_ABORTS, number, options->abort_milli))
        return fate;
    if (max == 0) {
        min = 1;
        max = max_tokens > 1 ? max_tokens - 1 : max_tokens == 1 ? 1 : UNKNOWN_LENGTH_ABORT;
    }
    fate.abort_after = min + (uint64_t)(draw_unit(options, DRAW_ABORT_TOKEN, number) *
                                        (double)(max - min + 1));
    if (fate.abort_after > max) /* a draw of exactly 1 */
        fate.abort_after = max;
    return fate;
}
