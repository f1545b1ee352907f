#ifndef RUNNEL_LOAD_DISTRIBUTION_H
#define RUNNEL_LOAD_DISTRIBUTION_H

#include <stdint.h>

/*
 * How often each value came, in bounded memory: the buckets of an HdrHistogram with three
 * significant digits. A value below 2048 has a bucket of its own; above, a bucket is at most
 * 1/1024 of its value wide. A minute of a million gaps a second takes the same memory as one
 * gap.
 *
 * Values are microseconds here, but nothing depends on it. Percentiles are by nearest rank, as
 * in all instruments: the value at rank ceil(p * n / 100), or rather the upper end of its
 * bucket.
 */

enum distribution_sign {
    DISTRIBUTION_POSITIVE, /* a negative value counts as 0 */
    DISTRIBUTION_SIGNED,   /* twice the memory */
};

/* Beyond it (38 hours in microseconds) a value is counted in the last bucket. */
#define DISTRIBUTION_MAX_VALUE ((INT64_C(1) << 37) - 1)

struct distribution {
    uint64_t count;
    int64_t min, max; /* exact; 0 while nothing was counted */
    double sum;
    uint64_t *above; /* buckets of 0 and more */
    uint64_t *below; /* of what is negative; NULL unless signed */
};

/* 0, or -1 when there is no memory. */
int distribution_init(struct distribution *distribution, enum distribution_sign sign);
void distribution_free(struct distribution *distribution);

/* Counts `value` as many times; 0 times is nothing. */
void distribution_add(struct distribution *distribution, int64_t value, uint64_t times);

/* 0 when nothing was counted. */
double distribution_mean(const struct distribution *distribution);

/*
 * The percentile in thousandths of a percent: 99900 is p99.9; 0 to 100000. 0 when nothing was
 * counted.
 */
int64_t distribution_percentile(const struct distribution *distribution,
                                unsigned milli_percent);

/* The least sample that carries a percentile: p99 of 99 values is only another word for the
 * largest. */
uint64_t distribution_needs(unsigned milli_percent);

/*
 * The buckets that are not empty, in ascending order. Start with `*cursor` at 0; returns 0 when
 * there is none left, else 1 with the bucket's upper end and count.
 */
int distribution_next(const struct distribution *distribution, unsigned *cursor, int64_t *value,
                      uint64_t *count);

#endif
