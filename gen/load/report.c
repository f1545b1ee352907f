/* The report for people, and what the two others share with it. */

#include "gen/load/report.h"

#include <inttypes.h>
#include <string.h>

enum {
    TURN_MAX_US = 2000, /* reads that may be so much older than their times: tell it */
    START_MAX_US = 10000,
    WAIT_MAX_PERCENT = 5,
};

const unsigned report_percentiles[REPORT_PERCENTILES] = {50000, 90000, 99000, 99900, 99990};

/* --- doubts --- */

static double share_of(int64_t part_us, int64_t whole_us)
{
    return whole_us <= 0 || part_us <= 0 ? 0 : (double)part_us / (double)whole_us;
}

double report_load(const struct figures *figures)
{
    struct process_time used = figures_used(figures);

    return share_of(used.user_us + used.system_us, used.at_us);
}

static double wait_share(const struct figures *figures)
{
    struct process_time used = figures_used(figures);

    return share_of(used.wait_us, used.at_us);
}

static int64_t p99_us(const struct figures *figures, enum figure figure)
{
    const struct distribution *distribution = &figures->of[figure];

    return distribution->count < distribution_needs(99000)
               ? 0
               : distribution_percentile(distribution, 99000);
}

void report_doubts(const struct figures *figures,
                   void (*tell)(void *context, const char *doubt), void *context)
{
    char doubt[256];
    double load = report_load(figures);

    if (load > 0.5) {
        snprintf(
            doubt, sizeof(doubt),
            "this client used %.0f %% of the one processor that it can use: above a half, its "
            "own queue is in the times; share the streams among more of them",
            load * 100);
        tell(context, doubt);
    }
    if (wait_share(figures) * 100 > WAIT_MAX_PERCENT) {
        snprintf(
            doubt, sizeof(doubt),
            "this client waited for a processor %.0f %% of the time: the machine was too full "
            "to measure on",
            wait_share(figures) * 100);
        tell(context, doubt);
    }
    if (p99_us(figures, FIGURE_TURN) > TURN_MAX_US) {
        snprintf(doubt, sizeof(doubt),
                 "one read in a hundred may have waited %.1f ms or more for this client (turn)",
                 (double)p99_us(figures, FIGURE_TURN) / 1000);
        tell(context, doubt);
    }
    if (p99_us(figures, FIGURE_START) > START_MAX_US) {
        snprintf(
            doubt, sizeof(doubt),
            "one request in a hundred started %.1f ms late or more, by this client's doing; "
            "ttft counts it",
            (double)p99_us(figures, FIGURE_START) / 1000);
        tell(context, doubt);
    }
    if (figures->delayed > 0) {
        snprintf(doubt, sizeof(doubt),
                 "%" PRIu64
                 " starts had to wait because --streams were open already; ttft counts "
                 "it",
                 figures->delayed);
        tell(context, doubt);
    }
}

/* --- text --- */

static void tell_loop(FILE *out, const struct options *options, const struct figures *figures)
{
    double seconds = (double)(figures->ended_us - figures->began_us) / 1e6;

    if (options->rate_milli > 0)
        fprintf(out, "open loop, %g requests/s, %s arrivals",
                (double)options->rate_milli / 1000,
                options->arrivals == ARRIVALS_POISSON ? "poisson" : "constant");
    else
        fprintf(out, "closed loop, %" PRIu64 " stream%s at once", options->streams,
                options->streams == 1 ? "" : "s");
    fprintf(out, ", %.2f s%s\n", seconds, figures->was_interrupted ? ", INTERRUPTED" : "");
}

static void tell_counts(FILE *out, const struct options *options, const struct figures *figures)
{
    fprintf(out, "requests     %" PRIu64 " started = %" PRIu64 " complete", figures->started,
            figures->completed);
    if (options->verify)
        fprintf(out, " (%" PRIu64 " verified)", figures->verified);
    fprintf(out, " + %" PRIu64 " aborted by us + %" PRIu64 " failed", figures->aborted,
            figures->failed);
    if (figures->interrupted > 0)
        fprintf(out, " + %" PRIu64 " interrupted", figures->interrupted);
    fprintf(out, "; at most %" PRIu64 " open", figures->open_max);
    if (figures->slow > 0)
        fprintf(out, "; %" PRIu64 " slow readers, whose times are not below", figures->slow);
    fputc('\n', out);
    fprintf(out, "tokens       %" PRIu64 " in %" PRIu64 " events in %" PRIu64 " reads\n",
            figures->tokens, figures->token_events, figures->reads);
}

static void tell_throughput(FILE *out, const struct options *options,
                            const struct figures *figures)
{
    double seconds = (double)(figures->window_end_us - figures->window_start_us) / 1e6;
    const struct goodput *goodput = &options->goodput;
    const struct {
        const char *name;
        int64_t bound_us;
    } bounds[] = {{"ttft", goodput->ttft_us},
                  {"itl", goodput->itl_us},
                  {"tpot", goodput->tpot_us},
                  {"total", goodput->total_us}};

    if (seconds <= 0)
        return;
    fprintf(
        out,
        "throughput   %.1f tokens/s, %.2f complete streams/s, in the %.2f s from %s to %s\n",
        (double)figures->window_tokens / seconds, (double)figures->window_completed / seconds,
        seconds, options->warmup_us > 0 ? "the end of the warm-up" : "the first start",
        options->duration_us > 0 ? "the end of --duration" : "the last end");
    if (!goodput->wanted)
        return;
    fprintf(out, "goodput      %.2f complete streams/s (%" PRIu64 " of %" PRIu64 ") kept",
            (double)figures->window_good / seconds, figures->window_good,
            figures->window_completed);
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        if (bounds[i].bound_us > 0)
            fprintf(out, " %s <= %g ms", bounds[i].name, (double)bounds[i].bound_us / 1000);
    }
    fputs("; itl is the longest gap of the stream\n", out);
}

static void tell_figure(FILE *out, const struct figures *figures, enum figure figure,
                        const char *definition)
{
    const struct distribution *distribution = &figures->of[figure];
    int64_t offset_us = figures_offset_us(figures, figure);

    if (distribution->count == 0)
        return;
    fprintf(out, "%-9s %10" PRIu64, figure_name(figure), distribution->count);
    for (int i = 0; i < REPORT_PERCENTILES; i++) {
        if (distribution->count < distribution_needs(report_percentiles[i]))
            fprintf(out, " %9s", "-");
        else
            fprintf(out, " %9.3f",
                    (double)(distribution_percentile(distribution, report_percentiles[i]) -
                             offset_us) /
                        1000);
    }
    fprintf(out, " %9.3f  %s\n", (double)(distribution->max - offset_us) / 1000, definition);
}

static void tell_figures(FILE *out, const struct figures *figures)
{
    static const char *const definitions[FIGURES] = {
        [FIGURE_TTFT] = "first token, since the request should have started",
        [FIGURE_TTFT_SENT] = "first token, since the request was sent",
        [FIGURE_ITL] = "from a token to the next, by the reads that completed them",
        [FIGURE_TPOT] = "(last - first token) / (tokens - 1) of a complete stream",
        [FIGURE_TOTAL] = "[DONE], since the request should have started",
        [FIGURE_LATENESS] = "gap - itl_ms",
        [FIGURE_PACE] = "sent - due, by the server's stamps: its own lateness",
        [FIGURE_PATH] = "arrival - sent, the least taken off: path and client",
        [FIGURE_DUE] = "arrival - due: both",
        [FIGURE_TURN] = "client: at work when a read came (at most its error)",
        [FIGURE_START] = "client: how late a request started",
    };

    fprintf(out, "\n%-9s %10s %9s %9s %9s %9s %9s %9s  in ms\n", "", "n", "p50", "p90", "p99",
            "p99.9", "p99.99", "max");
    for (enum figure figure = 0; figure < FIGURES; figure++)
        tell_figure(out, figures, figure, definitions[figure]);
    fputs("A percentile is the value at rank ceil(p n / 100); `-`: too few values for it.\n",
          out);
    if (figures->gap_events > 0)
        fprintf(out,
                "coalesced    %.2f %% of %" PRIu64
                " token events came in the same read as the one before (a gap of 0)\n",
                (double)figures->coalesced * 100 / (double)figures->gap_events,
                figures->gap_events);
    const struct distribution *ttft = &figures->of[FIGURE_TTFT_SENT];
    if (figures->asked_ttft_us >= 0 && ttft->count >= distribution_needs(50000))
        fprintf(out, "ttft added   %.3f ms: p50 of ttft_sent - ttft_ms\n",
                (double)(distribution_percentile(ttft, 50000) - figures->asked_ttft_us) / 1000);
}

static void tell_failures(FILE *out, const struct figures *figures)
{
    if (figures->failed == 0)
        return;
    fputs("\nfailures   ", out);
    for (enum failure failure = 0; failure < FAILURES; failure++) {
        if (figures->failed_by[failure] > 0)
            fprintf(out, "  %s %" PRIu64, failure_name(failure), figures->failed_by[failure]);
    }
    fputc('\n', out);
    for (int status = 1; status < HTTP_STATUSES; status++) {
        if (status != 200 && figures->http_status[status] > 0)
            fprintf(out, "  HTTP %d: %" PRIu64 "\n", status, figures->http_status[status]);
    }
    for (unsigned i = 0; i < figures->example_count; i++)
        fprintf(out, "  request %" PRIu64 " (%s) %s: %s\n", figures->examples[i].number,
                figures->examples[i].id, failure_name(figures->examples[i].failure),
                figures->examples[i].why);
    if (figures->failed > figures->example_count)
        fprintf(out, "  and %" PRIu64 " more\n", figures->failed - figures->example_count);
}

static void tell_client(FILE *out, const struct figures *figures)
{
    struct process_time used = figures_used(figures);

    fprintf(out, "\nthis client  %.0f %% of a processor (%.2f s user, %.2f s system)",
            report_load(figures) * 100, (double)used.user_us / 1e6,
            (double)used.system_us / 1e6);
    if (used.tokens > 0)
        fprintf(out, ", %.2f us a token",
                (double)(used.user_us + used.system_us) / (double)used.tokens);
    if (used.wait_us >= 0)
        fprintf(out, "; waited for one %.3f s", (double)used.wait_us / 1e6);
    fprintf(out, "; %.1f MB\n", (double)figures->memory_max_kib / 1024);
}

static void tell_doubt(void *context, const char *doubt)
{
    fprintf(context, "warning      %s\n", doubt);
}

void report_text(FILE *out, const struct options *options, const struct figures *figures)
{
    tell_loop(out, options, figures);
    tell_counts(out, options, figures);
    tell_throughput(out, options, figures);
    tell_figures(out, figures);
    tell_failures(out, figures);
    tell_client(out, figures);
    report_doubts(figures, tell_doubt, out);
}
