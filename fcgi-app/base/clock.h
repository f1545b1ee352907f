#ifndef RUNNEL_BASE_CLOCK_H
#define RUNNEL_BASE_CLOCK_H

#include <stdint.h>

/*
 * Time, in one type and one module: int64_t microseconds.
 *
 * Everything that is paced or measured uses the monotonic clock; the wall clock serves stamps
 * and log lines only. The engine never asks for the time itself but through a `struct clock`,
 * so a test can drive minutes of it without waiting.
 */

#define CLOCK_NEVER INT64_MAX

struct clock {
    int64_t (*now_us)(void *context); /* monotonic; never goes back */
    void *context;
};

/* Microseconds of CLOCK_MONOTONIC. Any thread; does not block. */
int64_t clock_monotonic_us(void);

/* Microseconds since 1970 of CLOCK_REALTIME. Any thread; does not block. */
int64_t clock_wall_us(void);

/* The clock of the machine. */
struct clock clock_system(void);

static inline int64_t clock_now_us(const struct clock *clock)
{
    return clock->now_us(clock->context);
}

#endif
