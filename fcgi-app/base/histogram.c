/* The buckets of all histograms. */

#include "base/histogram.h"

const int64_t histogram_bounds_us[HISTOGRAM_BOUNDS] = {
    10,       20,       50,       100,       200,       300,      500,     750,      1000,
    1500,     2000,     3000,     5000,      7500,      10000,    15000,   20000,    25000,
    30000,    40000,    50000,    75000,     100000,    150000,   200000,  300000,   500000,
    750000,   1000000,  1500000,  2000000,   3000000,   5000000,  7500000, 10000000, 15000000,
    20000000, 30000000, 60000000, 120000000, 300000000, 600000000};

/* The bucket of each power of two: a search from there takes at most three steps, where a
 * binary search takes six, each a branch that no processor predicts. */
static const uint8_t bucket_of_power[] = {0,  0,  0,  0,  1,  2,  3,  4,  5,  7,
                                          9,  11, 12, 14, 16, 19, 21, 23, 25, 27,
                                          29, 31, 32, 34, 36, 38, 39, 40, 40, 41};

unsigned histogram_bucket(int64_t duration_us)
{
    if (duration_us <= 0)
        return 0;
    unsigned power = 63 - (unsigned)__builtin_clzll((unsigned long long)duration_us);
    if (power >= sizeof(bucket_of_power))
        return HISTOGRAM_BOUNDS;
    unsigned bucket = bucket_of_power[power];
    while (bucket < HISTOGRAM_BOUNDS && histogram_bounds_us[bucket] < duration_us)
        bucket++;
    return bucket;
}

int64_t histogram_percentile_us(const uint32_t counts[HISTOGRAM_BUCKETS], unsigned percent)
{
    uint64_t total = 0;
    uint64_t seen = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        total += counts[i];
    if (total == 0)
        return -1;
    uint64_t rank = (total * percent + 99) / 100;
    for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
        seen += counts[i];
        if (seen >= rank)
            return histogram_bounds_us[i];
    }
    return INT64_MAX;
}
