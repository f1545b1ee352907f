/* The schedule of one request. */

#include "engine/timing.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/random.h"

enum {
    TRACE_MAX_FIGURES = 1 << 20,
    TRACE_FIGURE_MAX_US = 2000000000, /* half an hour */
};

const char timing_jitter_allowed[] = "none, uniform:P (P from 0 to 100), normal:P or "
                                     "lognormal:P (P from 0 to 1000) is allowed, P "
                                     "in whole percent of the time between tokens";

int64_t timing_first_us(const struct timing *timing)
{
    return timing->trace != NULL ? timing->trace->figures_us[0] : timing->ttft_us;
}

/* In (0, 1): 53 bits, the middle of each step, so that a logarithm is finite. */
static double unit_at(uint64_t seed, uint64_t counter)
{
    return ((double)(random_at(seed, counter) >> 11) + 0.5) * 0x1p-53;
}

/* Standard normal, by Box and Muller. */
static double normal_at(uint64_t seed, uint64_t counter)
{
    double radius = sqrt(-2 * log(unit_at(seed, 2 * counter)));

    return radius * cos(2 * 3.14159265358979323846 * unit_at(seed, 2 * counter + 1));
}

static double jitter_factor(const struct timing *timing, uint64_t index)
{
    double share = timing->jitter.percent / 100.0;

    switch (timing->jitter.shape) {
    case JITTER_UNIFORM:
        return 1 + share * (2 * unit_at(timing->seed, index) - 1);
    case JITTER_NORMAL:
        return 1 + share * normal_at(timing->seed, index);
    case JITTER_LOGNORMAL: {
        /* With this mu and sigma the mean is 1 and the standard deviation `share`. */
        double variance = log1p(share * share);
        return exp(sqrt(variance) * normal_at(timing->seed, index) - variance / 2);
    }
    default:
        return 1;
    }
}

int64_t timing_gap_us(const struct timing *timing, uint64_t index, size_t running)
{
    int64_t gap_us = timing->itl_us;

    if (timing->trace != NULL)
        gap_us = timing->trace->figures_us[1 + (index - 1) % (timing->trace->count - 1)];
    else if (timing->jitter.shape != JITTER_NONE)
        gap_us = llround((double)gap_us * fmax(jitter_factor(timing, index), 0));
    return gap_us + timing->per_running_us * (int64_t)running;
}

static const struct {
    const char *name;
    uint64_t percent_max;
} shapes[] = {[JITTER_NONE] = {"none", 0},
              [JITTER_UNIFORM] = {"uniform", 100},
              [JITTER_NORMAL] = {"normal", 1000},
              [JITTER_LOGNORMAL] = {"lognormal", 1000}};

int timing_parse_jitter(const char *text, size_t len, struct jitter *jitter)
{
    const char *colon = memchr(text, ':', len);
    size_t name_len = colon != NULL ? (size_t)(colon - text) : len;
    uint64_t percent = 0;

    for (unsigned shape = JITTER_NONE; shape <= JITTER_LOGNORMAL; shape++) {
        if (strlen(shapes[shape].name) != name_len ||
            memcmp(shapes[shape].name, text, name_len) != 0)
            continue;
        if ((shape == JITTER_NONE) != (colon == NULL))
            return -1;
        if (colon != NULL && number_parse_u64(colon + 1, len - name_len - 1, 0,
                                              shapes[shape].percent_max, &percent) != NUMBER_OK)
            return -1;
        *jitter = (struct jitter){(enum jitter_shape)shape, (uint32_t)percent};
        return 0;
    }
    return -1;
}

void timing_print_jitter(const struct jitter *jitter, char out[32])
{
    if (jitter->shape == JITTER_NONE)
        snprintf(out, 32, "none");
    else
        snprintf(out, 32, "%s:%u", shapes[jitter->shape].name, jitter->percent);
}

/* One line of the file into the next figure. 0, or -1. */
static int read_figure(struct timing_trace *trace, const char *line, size_t len)
{
    uint64_t figure_us;

    while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r' || line[len - 1] == ' '))
        len--;
    if (len == 0 || line[0] == '#')
        return 0;
    if (trace->count == TRACE_MAX_FIGURES ||
        number_parse_u64(line, len, 0, TRACE_FIGURE_MAX_US, &figure_us) != NUMBER_OK)
        return -1;
    trace->figures_us[trace->count++] = (int64_t)figure_us;
    return 0;
}

int timing_trace_load(struct timing_trace *trace, const char *path, char error[300])
{
    char line[256];
    unsigned long number = 0;
    FILE *file = fopen(path, "re");

    *trace = (struct timing_trace){.figures_us =
                                       calloc(TRACE_MAX_FIGURES, sizeof(*trace->figures_us))};
    int result = file != NULL && trace->figures_us != NULL ? 0 : -1;
    if (result != 0)
        snprintf(error, 300, "--timing-trace: cannot read `%.150s`: %s", path, strerror(errno));
    while (result == 0 && fgets(line, sizeof(line), file) != NULL) {
        number++;
        result = read_figure(trace, line, strlen(line));
        if (result != 0)
            snprintf(
                error, 300,
                "--timing-trace: `%.150s` line %lu: a whole number of microseconds up to %d "
                "is needed, in at most %d lines",
                path, number, TRACE_FIGURE_MAX_US, TRACE_MAX_FIGURES);
    }
    if (result == 0 && (ferror(file) || trace->count < 2)) {
        snprintf(
            error, 300,
            "--timing-trace: `%.150s`: a time to first token and at least one gap are needed",
            path);
        result = -1;
    }
    if (file != NULL)
        fclose(file);
    if (result != 0)
        timing_trace_free(trace);
    return result;
}

void timing_trace_free(struct timing_trace *trace)
{
    free(trace->figures_us);
    *trace = (struct timing_trace){0};
}
