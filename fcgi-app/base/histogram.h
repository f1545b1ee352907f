#ifndef RUNNEL_BASE_HISTOGRAM_H
#define RUNNEL_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/*
 * Buckets for durations, the same for every histogram: upper bounds in microseconds, from 10 us
 * to 10 min, close enough to each other to tell half a millisecond from a whole one. A duration
 * above the last bound is in the bucket after it (`+Inf`).
 */

enum { HISTOGRAM_BOUNDS = 42, HISTOGRAM_BUCKETS = HISTOGRAM_BOUNDS + 1 };

extern const int64_t histogram_bounds_us[HISTOGRAM_BOUNDS];

/* The bucket of a duration: the first whose bound is not below it. Negative counts as 0. */
unsigned histogram_bucket(int64_t duration_us);

/*
 * The upper bound of the bucket that holds the nearest-rank percentile ceil(percent * n / 100);
 * -1 when nothing was counted, INT64_MAX when it lies above the last bound.
 */
int64_t histogram_percentile_us(const uint32_t counts[HISTOGRAM_BUCKETS], unsigned percent);

#endif
