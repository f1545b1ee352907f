/* A distribution in the layout of HdrHistogram's outputPercentileDistribution, a row for each
 * bucket that is not empty. */

#include <inttypes.h>
#include <math.h>

#include "gen/load/report.h"

static double deviation_ms(const struct distribution *distribution)
{
    double mean = distribution_mean(distribution);
    double squares = 0;
    unsigned cursor = 0;
    int64_t value;
    uint64_t count;

    while (distribution_next(distribution, &cursor, &value, &count))
        squares += ((double)value - mean) * ((double)value - mean) * (double)count;
    return distribution->count == 0 ? 0 : sqrt(squares / (double)distribution->count) / 1000;
}

void report_hdr(FILE *out, const struct figures *figures, enum figure figure)
{
    const struct distribution *distribution = &figures->of[figure];
    int64_t offset_us = figures_offset_us(figures, figure);
    unsigned cursor = 0;
    uint64_t seen = 0;
    int64_t value;
    uint64_t count;

    fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
            "1/(1-Percentile)");
    while (distribution_next(distribution, &cursor, &value, &count)) {
        seen += count;
        fprintf(out, "%12.3f %14.12f %10" PRIu64, (double)(value - offset_us) / 1000,
                (double)seen / (double)distribution->count, seen);
        if (seen < distribution->count)
            fprintf(out, " %14.2f",
                    (double)distribution->count / (double)(distribution->count - seen));
        fputc('\n', out);
    }
    fprintf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n",
            (distribution_mean(distribution) - (double)offset_us) / 1000,
            deviation_ms(distribution));
    fprintf(out, "#[Max     = %12.3f, Total count    = %12" PRIu64 "]\n",
            (double)(distribution->max - offset_us) / 1000, distribution->count);
    fprintf(out, "#[Buckets = %12d, SubBuckets     = %12d]\n", 27, 2048);
}
