/* The schedule of one request. */

#include "engine/timing.h"

int64_t timing_first_us(const struct timing *timing)
{
    return timing->ttft_us;
}

int64_t timing_gap_us(const struct timing *timing, uint64_t index)
{
    (void)index;
    return timing->itl_us;
}
