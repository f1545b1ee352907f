/* The Prometheus text format. */

#include "wire/prometheus.h"

int prometheus_append_head(struct buffer *out, const char *name, const char *type,
                           const char *help)
{
    return buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

int prometheus_append_sample(struct buffer *out, const char *name, const char *labels,
                             uint64_t value)
{
    if (labels == NULL)
        return buffer_printf(out, "%s %llu\n", name, (unsigned long long)value);
    return buffer_printf(out, "%s{%s} %llu\n", name, labels, (unsigned long long)value);
}

int prometheus_append_metric(struct buffer *out, const char *name, const char *type,
                             const char *help, uint64_t value)
{
    prometheus_append_head(out, name, type, help);
    return prometheus_append_sample(out, name, NULL, value);
}

/* Microseconds as seconds, exactly, whatever the locale says about decimal points. */
static int append_seconds(struct buffer *out, uint64_t us)
{
    char fraction[7];
    uint64_t rest = us % 1000000;
    int len = 6;

    buffer_append_u64(out, us / 1000000);
    if (rest == 0)
        return 0;
    for (int i = 5; i >= 0; i--) {
        fraction[i] = (char)('0' + rest % 10);
        rest /= 10;
    }
    while (fraction[len - 1] == '0')
        len--;
    buffer_append_char(out, '.');
    return buffer_append(out, fraction, (size_t)len);
}

int prometheus_append_histogram(struct buffer *out, const char *name, const char *help,
                                const int64_t *bounds_us, const uint64_t *buckets,
                                size_t bounds, uint64_t sum_us)
{
    uint64_t cumulative = 0;

    prometheus_append_head(out, name, "histogram", help);
    for (size_t i = 0; i < bounds; i++) {
        cumulative += buckets[i];
        buffer_printf(out, "%s_bucket{le=\"", name);
        append_seconds(out, (uint64_t)bounds_us[i]);
        buffer_printf(out, "\"} %llu\n", (unsigned long long)cumulative);
    }
    cumulative += buckets[bounds];
    buffer_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum ", name,
                  (unsigned long long)cumulative, name);
    append_seconds(out, sum_us);
    return buffer_printf(out, "\n%s_count %llu\n", name, (unsigned long long)cumulative);
}
