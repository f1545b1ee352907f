#ifndef RUNNEL_TESTS_UNIT_FAKE_CLOCK_H
#define RUNNEL_TESTS_UNIT_FAKE_CLOCK_H

#include "base/clock.h"

/* A clock that stands still until a test moves it. */
struct fake_clock {
    int64_t now_us;
};

static inline int64_t fake_clock_now_us(void *context)
{
    return ((const struct fake_clock *)context)->now_us;
}

static inline struct clock fake_clock(struct fake_clock *clock)
{
    return (struct clock){.now_us = fake_clock_now_us, .context = clock};
}

#endif
