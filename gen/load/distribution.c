/*
 * The buckets: two linear thousands, and then a thousand for each doubling. The index of a
 * value is its eleven leading bits and how far they had to be shifted, so counting is a shift
 * and an addition.
 */

#include "gen/load/distribution.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    DOUBLING_BITS = 10,
    DOUBLING = 1 << DOUBLING_BITS, /* buckets for each doubling of the value */
    VALUE_BITS = 37,
    SHIFT_MAX = VALUE_BITS - DOUBLING_BITS - 1,
    BUCKETS = (SHIFT_MAX + 2) * DOUBLING,
};

static unsigned bucket_of(uint64_t magnitude)
{
    if (magnitude > (uint64_t)DISTRIBUTION_MAX_VALUE)
        magnitude = (uint64_t)DISTRIBUTION_MAX_VALUE;
    if (magnitude < 2 * DOUBLING)
        return (unsigned)magnitude;
    unsigned shift = 63u - (unsigned)__builtin_clzll(magnitude) - DOUBLING_BITS;
    return shift * DOUBLING + (unsigned)(magnitude >> shift);
}

static uint64_t lower_end(unsigned bucket)
{
    if (bucket < 2 * DOUBLING)
        return bucket;
    unsigned shift = bucket / DOUBLING - 1;
    return (uint64_t)(bucket - shift * DOUBLING) << shift;
}

int distribution_init(struct distribution *distribution, enum distribution_sign sign)
{
    *distribution = (struct distribution){.above = calloc(BUCKETS, sizeof(uint64_t))};
    if (distribution->above == NULL)
        return -1;
    if (sign == DISTRIBUTION_SIGNED) {
        distribution->below = calloc(BUCKETS, sizeof(uint64_t));
        if (distribution->below == NULL) {
            distribution_free(distribution);
            return -1;
        }
    }
    return 0;
}

void distribution_free(struct distribution *distribution)
{
    free(distribution->above);
    free(distribution->below);
    *distribution = (struct distribution){0};
}

void distribution_add(struct distribution *distribution, int64_t value, uint64_t times)
{
    if (times == 0)
        return;
    if (value < 0 && distribution->below == NULL)
        value = 0;
    if (value < 0)
        distribution->below[bucket_of(0 - (uint64_t)value)] += times;
    else
        distribution->above[bucket_of((uint64_t)value)] += times;
    if (distribution->count == 0 || value < distribution->min)
        distribution->min = value;
    if (distribution->count == 0 || value > distribution->max)
        distribution->max = value;
    distribution->count += times;
    distribution->sum += (double)value * (double)times;
}

double distribution_mean(const struct distribution *distribution)
{
    return distribution->count == 0 ? 0 : distribution->sum / (double)distribution->count;
}

uint64_t distribution_needs(unsigned milli_percent)
{
    unsigned above = 100000 - milli_percent; /* one value in so many thousandths lies above */

    return above == 0 ? 1 : (100000 + above - 1) / above;
}

/* The cursor runs through the negative buckets from the largest magnitude down, then through
 * the others. Nothing above the largest value is told. */
int distribution_next(const struct distribution *distribution, unsigned *cursor, int64_t *value,
                      uint64_t *count)
{
    for (; *cursor < 2 * BUCKETS; ++*cursor) {
        bool is_below = *cursor < BUCKETS;
        unsigned bucket = is_below ? BUCKETS - 1 - *cursor : *cursor - BUCKETS;
        const uint64_t *counts = is_below ? distribution->below : distribution->above;

        if (counts == NULL || counts[bucket] == 0)
            continue;
        *count = counts[bucket];
        if (is_below)
            *value = bucket == BUCKETS - 1 ? distribution->min : -(int64_t)lower_end(bucket);
        else
            *value =
                bucket == BUCKETS - 1 ? distribution->max : (int64_t)lower_end(bucket + 1) - 1;
        if (*value > distribution->max)
            *value = distribution->max;
        ++*cursor;
        return 1;
    }
    return 0;
}

/* ceil(milli * count / 100000) without a product that overflows. */
static uint64_t rank_of(uint64_t count, unsigned milli_percent)
{
    uint64_t whole = count / 100000 * milli_percent;
    uint64_t rest = (count % 100000 * milli_percent + 99999) / 100000;
    uint64_t rank = whole + rest;

    return rank < 1 ? 1 : rank;
}

int64_t distribution_percentile(const struct distribution *distribution, unsigned milli_percent)
{
    uint64_t rank = rank_of(distribution->count, milli_percent);
    uint64_t seen = 0;
    unsigned cursor = 0;
    int64_t value = 0;
    uint64_t count;

    while (seen < rank && distribution_next(distribution, &cursor, &value, &count))
        seen += count;
    return distribution->count == 0 ? 0 : value;
}
