#ifndef RUNNEL_ENGINE_TIMING_H
#define RUNNEL_ENGINE_TIMING_H

#include <stddef.h>
#include <stdint.h>

/*
 * When the tokens of one request are due: token 0 at start + timing_first_us, token i one
 * timing_gap_us(i) after token i - 1. Pure functions of the request's own numbers (but for
 * per_running_us, which is there to depend on the load), so a schedule is the same alone and
 * among a thousand others.
 */

enum jitter_shape { JITTER_NONE, JITTER_UNIFORM, JITTER_NORMAL, JITTER_LOGNORMAL };

/* How gaps scatter around itl_us. Uniform: within +- percent of it. Normal, lognormal: with a
 * standard deviation of percent of it, the mean kept; a gap is never negative. */
struct jitter {
    enum jitter_shape shape;
    uint32_t percent;
};

/* Figures recorded from a real endpoint: the first is a time to first token, the others are
 * gaps, which begin again after the last. */
struct timing_trace {
    int64_t *figures_us;
    size_t count; /* at least 2 */
};

struct timing {
    int64_t ttft_us; /* with the prefill of the prompt's tokens */
    int64_t itl_us;
    struct jitter jitter;
    uint64_t seed;                    /* of the jitter */
    int64_t per_running_us;           /* added to each gap for each running generation */
    const struct timing_trace *trace; /* instead of ttft_us and itl_us; NULL: none */
};

int64_t timing_first_us(const struct timing *timing);

/* From token index - 1 to token index (index >= 1), while `running` generations share the
 * engine. */
int64_t timing_gap_us(const struct timing *timing, uint64_t index, size_t running);

/*
 * `none`, `uniform:P` (P from 0 to 100), `normal:P` or `lognormal:P` (0 to 1000). 0, or -1 when
 * it is none of these; timing_jitter_allowed says them in words.
 */
int timing_parse_jitter(const char *text, size_t len, struct jitter *jitter);
extern const char timing_jitter_allowed[];

/* The text that timing_parse_jitter reads. */
void timing_print_jitter(const struct jitter *jitter, char out[32]);

/*
 * Load a trace: one whole number of microseconds a line, `#` begins a comment line. 0, or -1
 * with a sentence that names the line. Start-up only.
 */
int timing_trace_load(struct timing_trace *trace, const char *path, char error[300]);
void timing_trace_free(struct timing_trace *trace);

#endif
