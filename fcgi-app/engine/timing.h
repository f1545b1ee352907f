#ifndef RUNNEL_ENGINE_TIMING_H
#define RUNNEL_ENGINE_TIMING_H

#include <stdint.h>

/*
 * When the tokens of one request are due: token 0 at start + timing_first_us, token i one
 * timing_gap_us(i) after token i - 1. Pure functions of the request's own numbers, so a
 * schedule is the same alone and among a thousand others.
 */

struct timing {
    int64_t ttft_us;
    int64_t itl_us;
};

int64_t timing_first_us(const struct timing *timing);

/* From token index - 1 to token index; index >= 1. */
int64_t timing_gap_us(const struct timing *timing, uint64_t index);

#endif
