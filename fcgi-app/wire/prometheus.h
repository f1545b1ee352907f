#ifndef RUNNEL_WIRE_PROMETHEUS_H
#define RUNNEL_WIRE_PROMETHEUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * The Prometheus text format, version 0.0.4. Pure. Each function returns 0, or -1 as
 * buffer_append. Names and label values are literals of ours that need no escape.
 */

/* # HELP and # TYPE of a metric; `type` is counter, gauge or histogram. */
int prometheus_append_head(struct buffer *out, const char *name, const char *type,
                           const char *help);

/* One sample; `labels` is `a="b",c="d"` or NULL. */
int prometheus_append_sample(struct buffer *out, const char *name, const char *labels,
                             uint64_t value);

/* Head and samples of a metric without labels. */
int prometheus_append_metric(struct buffer *out, const char *name, const char *type,
                             const char *help, uint64_t value);

/* Head, buckets, sum and count of a histogram of durations, in seconds. `buckets` are not
 * cumulative: bounds + 1 of them, the last one above all bounds. */
int prometheus_append_histogram(struct buffer *out, const char *name, const char *help,
                                const int64_t *bounds_us, const uint64_t *buckets,
                                size_t bounds, uint64_t sum_us);

#endif
