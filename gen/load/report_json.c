/* The report for programs. */

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include <unistr.h>

#include "gen/load/report.h"

static void write_string(FILE *out, const char *text)
{
    bool is_utf8 = u8_check((const uint8_t *)text, strlen(text)) == NULL;

    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte < 0x20)
            fprintf(out, "\\u%04x", (unsigned)byte);
        else
            fputc(byte < 0x80 || is_utf8 ? byte : '?', out);
    }
    fputc('"', out);
}

static void write_figure(FILE *out, const struct figures *figures, enum figure figure)
{
    static const char *const names[REPORT_PERCENTILES] = {"p50", "p90", "p99", "p99_9",
                                                          "p99_99"};
    const struct distribution *distribution = &figures->of[figure];
    double offset_us = (double)figures_offset_us(figures, figure);

    fprintf(out, "    \"%s\": ", figure_name(figure));
    if (distribution->count == 0) {
        fputs("null", out);
        return;
    }
    fprintf(out, "{\"count\": %" PRIu64 ", \"min\": %.3f, \"mean\": %.3f", distribution->count,
            ((double)distribution->min - offset_us) / 1000,
            (distribution_mean(distribution) - offset_us) / 1000);
    for (int i = 0; i < REPORT_PERCENTILES; i++) {
        if (distribution->count < distribution_needs(report_percentiles[i]))
            fprintf(out, ", \"%s\": null", names[i]);
        else
            fprintf(out, ", \"%s\": %.3f", names[i],
                    ((double)distribution_percentile(distribution, report_percentiles[i]) -
                     offset_us) /
                        1000);
    }
    fprintf(out, ", \"max\": %.3f}", ((double)distribution->max - offset_us) / 1000);
}

static void write_failures(FILE *out, const struct figures *figures)
{
    bool is_first = true;

    fputs("  \"failures\": {", out);
    for (enum failure failure = 0; failure < FAILURES; failure++)
        fprintf(out, "%s\"%s\": %" PRIu64, failure == 0 ? "" : ", ", failure_name(failure),
                figures->failed_by[failure]);
    fputs("},\n  \"wrong_tokens\": {", out);
    for (enum verification_status status = VERIFICATION_LOST; status <= VERIFICATION_SHORT;
         status++)
        fprintf(out, "%s\"%s\": %" PRIu64, status == VERIFICATION_LOST ? "" : ", ",
                verification_name(status), figures->wrong_by[status]);
    fputs("},\n  \"http_status\": {", out);
    for (int status = 0; status < HTTP_STATUSES; status++) {
        if (figures->http_status[status] == 0)
            continue;
        fprintf(out, "%s\"%d\": %" PRIu64, is_first ? "" : ", ", status,
                figures->http_status[status]);
        is_first = false;
    }
    fputs("},\n  \"examples\": [", out);
    for (unsigned i = 0; i < figures->example_count; i++) {
        const struct example *example = &figures->examples[i];
        fprintf(out, "%s\n    {\"request\": %" PRIu64 ", \"id\": ", i == 0 ? "" : ",",
                example->number);
        write_string(out, example->id);
        fprintf(out, ", \"failure\": \"%s\", \"why\": ", failure_name(example->failure));
        write_string(out, example->why);
        fputc('}', out);
    }
    fputs("],\n", out);
}

struct doubts {
    FILE *out;
    bool is_first;
};

static void write_doubt(void *context, const char *doubt)
{
    struct doubts *doubts = context;

    fputs(doubts->is_first ? "" : ", ", doubts->out);
    doubts->is_first = false;
    write_string(doubts->out, doubt);
}

static void write_counts(FILE *out, const struct figures *figures)
{
    fprintf(out,
            "  \"requests\": {\"started\": %" PRIu64 ", \"complete\": %" PRIu64
            ", \"verified\": %" PRIu64 ", \"aborted\": %" PRIu64 ", \"failed\": %" PRIu64
            ", \"interrupted\": %" PRIu64 ", \"open_max\": %" PRIu64
            ", \"slow_readers\": %" PRIu64 ", \"delayed\": %" PRIu64 "},\n",
            figures->started, figures->completed, figures->verified, figures->aborted,
            figures->failed, figures->interrupted, figures->open_max, figures->slow,
            figures->delayed);
    fprintf(out,
            "  \"tokens\": {\"received\": %" PRIu64 ", \"events\": %" PRIu64
            ", \"reads\": %" PRIu64 ", \"body_bytes\": %" PRIu64 ", \"gap_events\": %" PRIu64
            ", \"coalesced\": %" PRIu64 "},\n",
            figures->tokens, figures->token_events, figures->reads, figures->bytes,
            figures->gap_events, figures->coalesced);
}

static void write_rates(FILE *out, const struct options *options, const struct figures *figures)
{
    double seconds = (double)(figures->window_end_us - figures->window_start_us) / 1e6;

    if (seconds <= 0)
        seconds = 0;
    double per_second = seconds > 0 ? 1 / seconds : 0;
    fprintf(out,
            "  \"window\": {\"seconds\": %.6f, \"tokens\": %" PRIu64 ", \"complete\": %" PRIu64
            ", \"tokens_per_s\": %.3f, \"complete_per_s\": %.3f},\n",
            seconds, figures->window_tokens, figures->window_completed,
            (double)figures->window_tokens * per_second,
            (double)figures->window_completed * per_second);
    if (options->goodput.wanted)
        fprintf(out, "  \"goodput\": {\"good\": %" PRIu64 ", \"good_per_s\": %.3f},\n",
                figures->window_good, (double)figures->window_good * per_second);
    else
        fputs("  \"goodput\": null,\n", out);
}

static void write_client(FILE *out, const struct figures *figures)
{
    struct process_time used = figures_used(figures);
    struct doubts doubts = {.out = out, .is_first = true};

    fprintf(out, "  \"client\": {\"user_s\": %.6f, \"system_s\": %.6f, \"load\": %.4f, ",
            (double)used.user_us / 1e6, (double)used.system_us / 1e6, report_load(figures));
    if (used.tokens > 0)
        fprintf(out, "\"cpu_us_per_token\": %.3f, ",
                (double)(used.user_us + used.system_us) / (double)used.tokens);
    else
        fputs("\"cpu_us_per_token\": null, ", out);
    if (used.wait_us >= 0)
        fprintf(out, "\"waited_s\": %.6f, ", (double)used.wait_us / 1e6);
    else
        fputs("\"waited_s\": null, ", out);
    fprintf(out, "\"memory_kib\": %" PRIu64 "},\n  \"warnings\": [", figures->memory_max_kib);
    report_doubts(figures, write_doubt, &doubts);
    fputs("]\n", out);
}

void report_json(FILE *out, const struct options *options, const struct figures *figures)
{
    fputs("{\n  \"url\": ", out);
    write_string(out, options->url);
    fprintf(out,
            ",\n  \"loop\": \"%s\", \"streams\": %" PRIu64
            ", \"rate\": %.3f, \"seconds\": %.6f, "
            "\"interrupted\": %s,\n",
            options->rate_milli > 0 ? "open" : "closed", options->streams,
            (double)options->rate_milli / 1000,
            (double)(figures->ended_us - figures->began_us) / 1e6,
            figures->was_interrupted ? "true" : "false");
    write_counts(out, figures);
    write_rates(out, options, figures);
    fputs("  \"ms\": {\n", out);
    for (enum figure figure = 0; figure < FIGURES; figure++) {
        write_figure(out, figures, figure);
        fputs(figure + 1 < FIGURES ? ",\n" : "\n  },\n", out);
    }
    if (figures->asked_ttft_us >= 0)
        fprintf(out, "  \"asked_ttft_ms\": %.3f,\n", (double)figures->asked_ttft_us / 1000);
    else
        fputs("  \"asked_ttft_ms\": null,\n", out);
    write_failures(out, figures);
    write_client(out, figures);
    fputs("}\n", out);
}
