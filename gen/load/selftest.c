/* The steps of the self-test; each is a run like any other. */

#include "gen/load/selftest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gen/load/bare.h"
#include "gen/load/events.h"
#include "gen/load/figures.h"
#include "gen/load/loop.h"
#include "gen/load/report.h"
#include "gen/load/target.h"
#include "gen/load/writer.h"

enum {
    DEFAULT_STREAMS = 1000,
    STEP_US = 1000000,
    RAMP_US = 300000,  /* the starts are spread over it */
    FIRST_US = 200000, /* until the first token */
    FLOOD_STREAMS = 16,
    FLOOD_TOKENS = 100000, /* of each */
    QUIET_RATE = 10000,
    DIED = 3,
};

/* Tokens a second of all streams; the first is the quiet one, in which timing noise is told. */
static const unsigned steps[] = {QUIET_RATE, 50000, 100000, 150000, 200000, 300000, 400000};
static const double WAITED_MAX = 0.05;
enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

struct step {
    double asked, got;    /* tokens a second; asked is 0 for the flood */
    double cpu_us;        /* a token */
    double load;          /* of one processor */
    double coalesced;     /* share of the token events */
    int64_t noise_p50_us; /* arrival - sent */
    int64_t noise_p99_us;
    int64_t turn_p99_us;
    double waited; /* share of the time in which it could have run and had no processor */
};

struct selftest {
    struct writer writer;
    uint64_t streams;
    struct step step[STEPS + 1];
    unsigned count; /* of the paced ones; the flood is step[STEPS] */
    struct bare bare;
    FILE *table; /* the standard error when the JSON has the standard output */
};

/* It keeps up while nearly every token has a read of its own and comes at the rate asked for.
 */
static bool keeps_up(const struct step *step)
{
    return step->coalesced < 0.02 && step->got > 0.95 * step->asked;
}

static void read_step(const struct figures *figures, struct step *step)
{
    const struct distribution *path = &figures->of[FIGURE_PATH];
    struct process_time used = figures_used(figures);
    double cpu_us = (double)(used.user_us + used.system_us);

    step->cpu_us = used.tokens > 0 ? cpu_us / (double)used.tokens : 0;
    step->got = used.at_us > 0 ? (double)used.tokens * 1e6 / (double)used.at_us : 0;
    step->load = report_load(figures);
    step->waited =
        used.at_us > 0 && used.wait_us > 0 ? (double)used.wait_us / (double)used.at_us : 0;
    if (figures->gap_events > 0)
        step->coalesced = (double)figures->coalesced / (double)figures->gap_events;
    step->noise_p50_us = distribution_percentile(path, 50000) - path->min;
    step->noise_p99_us = distribution_percentile(path, 99000) - path->min;
    step->turn_p99_us = distribution_percentile(&figures->of[FIGURE_TURN], 99000);
}

static int run_step(const struct selftest *selftest, uint64_t streams, uint64_t tokens,
                    uint64_t gap_us, struct step *step)
{
    char url[128];
    char why[LOOP_WHY_MAX_BYTES];
    struct figures figures;
    struct target target;
    struct events events;
    /* Spread over whole gaps, so that the tokens are too; measured while all are open. */
    int64_t ramp_us = gap_us > 0 ? (RAMP_US / (int64_t)gap_us + 1) * (int64_t)gap_us : 0;
    int64_t warmup_us = gap_us > 0 ? ramp_us + FIRST_US : 0;
    struct options options = {.url = url,
                              .streams = streams,
                              .requests = streams,
                              .prompts = 1,
                              .ramp_us = ramp_us,
                              .warmup_us = warmup_us,
                              .duration_us = gap_us > 0 ? warmup_us + STEP_US : 0,
                              .timeout_us = 60000000,
                              .quiet = true};

    snprintf(url, sizeof(url),
             "http://127.0.0.1:%d/?tokens=%" PRIu64 "&first_us=%d&gap_us=%" PRIu64,
             selftest->writer.port, tokens, gap_us > 0 ? FIRST_US : 0, gap_us);
    if (figures_init(&figures) != 0) {
        fputs("load: no memory for the figures\n", stderr);
        return -1;
    }
    events_open(&events, NULL, 0);
    int status = -1;
    if (target_find(&target, &options, url, why) != TARGET_FOUND ||
        loop_run(&options, &target, &figures, &events, why) != 0)
        fprintf(stderr, "load: --self-test: %s\n", why);
    else if (figures.was_interrupted)
        fputs("load: --self-test: interrupted\n", stderr);
    else if (figures.failed > 0)
        fprintf(stderr, "load: --self-test: %" PRIu64 " streams failed: %s\n", figures.failed,
                figures.examples[0].why);
    else
        status = 0;
    read_step(&figures, step);
    figures_free(&figures);
    return status;
}

static int run_paced(struct selftest *selftest)
{
    for (unsigned i = 0; i < STEPS; i++) {
        struct step *step = &selftest->step[i];
        uint64_t gap_us = selftest->streams * 1000000 / steps[i];
        uint64_t tokens = gap_us > 0 ? (STEP_US + 2 * RAMP_US) / gap_us + 2 : 1;

        if (gap_us == 0)
            break;
        step->asked = (double)selftest->streams * 1e6 / (double)gap_us;
        if (run_step(selftest, selftest->streams, tokens, gap_us, step) != 0)
            return -1;
        selftest->count++;
        fprintf(selftest->table,
                "%12.0f %12.0f %10.2f %% %8.0f %% %9.2f %10.3f %10.3f %10.3f\n", step->asked,
                step->got, step->coalesced * 100, step->load * 100, step->cpu_us,
                (double)step->noise_p50_us / 1000, (double)step->noise_p99_us / 1000,
                (double)step->turn_p99_us / 1000);
        fflush(selftest->table);
        if (!keeps_up(step))
            break;
    }
    return 0;
}

/* The last that it kept up with: the more tokens, the more of them share what a turn costs.
 * Beyond it they come together, and that is another test. NULL when there is none. */
static const struct step *best_step(const struct selftest *selftest)
{
    const struct step *best = NULL;

    for (unsigned i = 0; i < selftest->count; i++) {
        if (keeps_up(&selftest->step[i]))
            best = &selftest->step[i];
    }
    return best;
}

/* The same reads as in the best step, or the first. */
static int run_bare(struct selftest *selftest)
{
    const struct step *best = best_step(selftest);
    double rate = best != NULL ? best->asked : QUIET_RATE;

    if (bare_measure(&selftest->bare, selftest->writer.port, selftest->streams,
                     (uint64_t)((double)selftest->streams * 1e6 / rate),
                     STEP_US / 1000000) == 0)
        return 0;
    fprintf(stderr, "load: --self-test: the bare reads: %s\n", strerror(errno));
    return -1;
}

static void tell(const struct selftest *selftest)
{
    const struct step *best = best_step(selftest);
    const struct step *flood = &selftest->step[STEPS];
    FILE *out = selftest->table;
    double waited = 0;

    if (best != NULL)
        fprintf(out,
                "ceiling  %.0f tokens/s, one in a read: %.2f us of one processor each (at "
                "%.0f/s)\n",
                1e6 / best->cpu_us, best->cpu_us, best->got);
    else
        fputs("ceiling  none: it did not even keep up with the first step\n", out);
    fprintf(out, "bare     %.2f us: the same reads by epoll and recv alone (at %.0f/s)\n",
            selftest->bare.cpu_us, selftest->bare.reads_per_s);
    fprintf(out, "flood    %.0f tokens/s, as many in a read as come: %.2f us each\n",
            flood->got, flood->cpu_us);
    fprintf(
        out,
        "noise    %.3f ms p50, %.3f ms p99, from a token's sending to its time here, at %d/s\n",
        (double)selftest->step[0].noise_p50_us / 1000,
        (double)selftest->step[0].noise_p99_us / 1000, QUIET_RATE);
    for (unsigned i = 0; i < selftest->count; i++)
        waited = selftest->step[i].waited > waited ? selftest->step[i].waited : waited;
    if (waited > WAITED_MAX)
        fprintf(
            out,
            "warning  it waited for a processor %.0f %% of a step: the machine was too full\n",
            waited * 100);
}

static int write_json(const struct selftest *selftest, const char *path)
{
    bool is_stdout = strcmp(path, "-") == 0;
    FILE *out = is_stdout ? stdout : fopen(path, "we");
    const struct step *best = best_step(selftest);
    const struct step *flood = &selftest->step[STEPS];

    if (out == NULL) {
        fprintf(stderr, "load: --json: cannot write %s: %s\n", path, strerror(errno));
        return -1;
    }
    fprintf(out, "{\"streams\": %" PRIu64 ", \"ceiling_tokens_per_s\": %.0f, \"steps\": [",
            selftest->streams, best != NULL ? 1e6 / best->cpu_us : 0);
    for (unsigned i = 0; i < selftest->count; i++) {
        const struct step *step = &selftest->step[i];
        fprintf(
            out,
            "%s\n  {\"asked_per_s\": %.0f, \"got_per_s\": %.0f, \"coalesced\": %.4f, \"load\": "
            "%.4f, \"cpu_us_per_token\": %.3f, \"noise_p50_ms\": %.3f, \"noise_p99_ms\": %.3f, "
            "\"turn_p99_ms\": %.3f, \"waited\": %.4f}",
            i == 0 ? "" : ",", step->asked, step->got, step->coalesced, step->load,
            step->cpu_us, (double)step->noise_p50_us / 1000, (double)step->noise_p99_us / 1000,
            (double)step->turn_p99_us / 1000, step->waited);
    }
    fprintf(out,
            "],\n \"bare\": {\"reads_per_s\": %.0f, \"cpu_us_per_read\": %.3f},\n "
            "\"flood\": {\"got_per_s\": %.0f, \"cpu_us_per_token\": %.3f}}\n",
            selftest->bare.reads_per_s, selftest->bare.cpu_us, flood->got, flood->cpu_us);
    int failed = ferror(out) | fflush(out);
    if (!is_stdout)
        failed |= fclose(out);
    return failed == 0 ? 0 : -1;
}

int selftest_run(const struct options *options)
{
    struct selftest selftest = {.streams =
                                    options->streams > 1 ? options->streams : DEFAULT_STREAMS};
    char why[LOOP_WHY_MAX_BYTES];
    int status = -1;

    if (loop_make_room(selftest.streams, why) != 0) {
        fprintf(stderr, "load: %s\n", why);
        return DIED;
    }
    if (writer_start(&selftest.writer) != 0) {
        fprintf(stderr, "load: --self-test: no server: %s\n", strerror(errno));
        return DIED;
    }
    selftest.table =
        options->json_path != NULL && strcmp(options->json_path, "-") == 0 ? stderr : stdout;
    fprintf(selftest.table,
            "%" PRIu64 " streams over loopback TCP, from a process that does nothing else\n",
            selftest.streams);
    fprintf(selftest.table, "%12s %12s %12s %10s %9s %10s %10s %10s\n", "asked/s", "got/s",
            "coalesced", "load", "us/token", "noise p50", "p99", "turn p99");
    if (run_paced(&selftest) == 0 && run_bare(&selftest) == 0 &&
        run_step(&selftest, FLOOD_STREAMS, FLOOD_TOKENS, 0, &selftest.step[STEPS]) == 0) {
        tell(&selftest);
        status = options->json_path != NULL ? write_json(&selftest, options->json_path) : 0;
    }
    writer_stop(&selftest.writer);
    return status == 0 ? 0 : DIED;
}
