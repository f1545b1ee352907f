#ifndef RUNNEL_LOAD_REPORT_H
#define RUNNEL_LOAD_REPORT_H

#include <stdio.h>

#include "gen/load/figures.h"
#include "gen/load/options.h"

/*
 * What a run found, in three forms. None of them prints a percentile that its sample does not
 * carry: a p99 needs 100 values, a p99.9 a thousand.
 */

/* For people: each figure with its sample and its definition, then what there is to warn of. */
void report_text(FILE *out, const struct options *options, const struct figures *figures);

/* For programs; times in milliseconds, what is not known is null. */
void report_json(FILE *out, const struct options *options, const struct figures *figures);

/* The whole distribution, as HdrHistogram's tools write and plot it; milliseconds. */
void report_hdr(FILE *out, const struct figures *figures, enum figure figure);

/* The percentiles of the reports, in thousandths of a percent. */
enum { REPORT_PERCENTILES = 5 };
extern const unsigned report_percentiles[REPORT_PERCENTILES];

/* How much of one processor this client used, 0 to 1: it has one thread, so above a half it is
 * itself a part of what it measures. */
double report_load(const struct figures *figures);

/* One sentence for each reason to doubt the times; calls `tell` with it. */
void report_doubts(const struct figures *figures,
                   void (*tell)(void *context, const char *doubt), void *context);

#endif
