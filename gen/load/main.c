/*
 * load: many token streams at once, checked and timed. This file has the order of things and
 * the exit status; what each does is in the file of its name.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "gen/load/events.h"
#include "gen/load/figures.h"
#include "gen/load/loop.h"
#include "gen/load/options.h"
#include "gen/load/report.h"
#include "gen/load/request.h"
#include "gen/load/selftest.h"
#include "gen/load/target.h"

enum exit_status { EXIT_GOOD = 0, EXIT_BAD = 1, EXIT_USAGE = 2, EXIT_COULD_NOT = 3 };

static enum exit_status say(enum exit_status status, const char *sentence)
{
    fprintf(stderr, "load: %s\n", sentence);
    return status;
}

/* Opened before the run: an hour's figures must not find at the end that there is no such
 * folder. */
struct outputs {
    struct events events;
    FILE *json;
    FILE *hdr[OPTIONS_HDR_MAX];
};

static FILE *open_output(const char *option, const char *path)
{
    FILE *file = fopen(path, "we");

    if (file == NULL)
        fprintf(stderr, "load: %s: cannot write %s: %s\n", option, path, strerror(errno));
    return file;
}

static int open_outputs(struct outputs *outputs, const struct options *options)
{
    *outputs = (struct outputs){0};
    if (options->json_path != NULL && strcmp(options->json_path, "-") == 0)
        outputs->json = stdout;
    else if (options->json_path != NULL &&
             (outputs->json = open_output("--json", options->json_path)) == NULL)
        return -1;
    for (size_t i = 0; i < options->hdr_count; i++) {
        if ((outputs->hdr[i] = open_output("--hdr", options->hdr[i].path)) == NULL)
            return -1;
    }
    if (events_open(&outputs->events, options->events_path, options->events_streams) != 0) {
        fprintf(stderr, "load: --events: cannot write %s: %s\n", options->events_path,
                strerror(errno));
        return -1;
    }
    return 0;
}

/* A full disk is no success. */
static int close_output(FILE *file, const char *path)
{
    if (file == NULL)
        return 0;
    int failed = ferror(file) | fflush(file);
    if (file != stdout)
        failed |= fclose(file);
    if (failed != 0)
        fprintf(stderr, "load: cannot write all of %s\n", path);
    return failed;
}

static int close_outputs(struct outputs *outputs, const struct options *options)
{
    int failed = close_output(outputs->json, options->json_path);

    for (size_t i = 0; i < options->hdr_count; i++)
        failed |= close_output(outputs->hdr[i], options->hdr[i].path);
    if (events_close(&outputs->events) != 0) {
        fprintf(stderr, "load: cannot write all of %s\n", options->events_path);
        failed = 1;
    }
    return failed == 0 ? 0 : -1;
}

static int write_reports(struct outputs *outputs, const struct options *options,
                         const struct figures *figures)
{
    if (outputs->json != NULL)
        report_json(outputs->json, options, figures);
    for (size_t i = 0; i < options->hdr_count; i++)
        report_hdr(outputs->hdr[i], figures, options->hdr[i].figure);
    if (outputs->json != stdout)
        report_text(stdout, options, figures);
    int failed = close_output(outputs->json == stdout ? NULL : stdout, "the report");
    return close_outputs(outputs, options) != 0 || failed != 0 ? -1 : 0;
}

/* Request 0 says what all are like: whether they can be verified, and where they go. */
static enum exit_status look_ahead(const struct options *options, struct target *target)
{
    struct request_maker maker;
    struct request request;
    char why[TARGET_WHY_MAX_BYTES];
    enum exit_status status = EXIT_GOOD;

    request_maker_init(&maker, options, 0);
    request_init(&request);
    if (request_make(&maker, &request, 0) != 0)
        status = say(EXIT_COULD_NOT, "the request is too large");
    else if (options->verify && !request.asked.has_prompt)
        status = say(EXIT_USAGE,
                     "--verify needs to know the prompt: give --prompt, or name it in the "
                     "URL's query or the JSON body (a seed there is at most 2^53)");
    else if (options->verify && request.asked.max_tokens == 0)
        status = say(EXIT_USAGE, "--verify needs to know how many tokens there will be: give "
                                 "--tokens, or max_tokens in the URL's query or the JSON body");
    if (status == EXIT_GOOD) {
        switch (target_find(target, options, request.url.data, why)) {
        case TARGET_FOUND:
            break;
        case TARGET_BAD_URL:
            status = say(EXIT_USAGE, why);
            break;
        case TARGET_NO_ANSWER:
            status = say(EXIT_COULD_NOT, why);
            break;
        }
    }
    request_free(&request);
    return status;
}

static enum exit_status judge(const struct figures *figures)
{
    if (figures->was_interrupted)
        return EXIT_COULD_NOT;
    return figures->failed > 0 ? EXIT_BAD : EXIT_GOOD;
}

static enum exit_status run(const struct options *options)
{
    struct target target;
    struct outputs outputs;
    struct figures figures;
    char why[LOOP_WHY_MAX_BYTES];
    enum exit_status status = look_ahead(options, &target);

    if (status != EXIT_GOOD)
        return status;
    if (loop_make_room(options->streams, why) != 0)
        return say(EXIT_COULD_NOT, why);
    if (figures_init(&figures) != 0)
        return say(EXIT_COULD_NOT, "no memory for the figures");
    if (open_outputs(&outputs, options) != 0)
        status = EXIT_COULD_NOT;
    else if (loop_run(options, &target, &figures, &outputs.events, why) != 0)
        status = say(EXIT_COULD_NOT, why);
    else if (write_reports(&outputs, options, &figures) != 0)
        status = EXIT_COULD_NOT;
    else
        status = judge(&figures);
    figures_free(&figures);
    return status;
}

int main(int argc, char **argv)
{
    struct options options;
    enum exit_status status = EXIT_GOOD;
    sigset_t stops;

    signal(SIGPIPE, SIG_IGN);
    switch (options_parse(&options, argc, argv)) {
    case OPTIONS_RUN:
        /* They are taken while the loop waits, and nowhere else. */
        sigemptyset(&stops);
        sigaddset(&stops, SIGINT);
        sigaddset(&stops, SIGTERM);
        sigprocmask(SIG_BLOCK, &stops, NULL);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        status = options.self_test ? (enum exit_status)selftest_run(&options) : run(&options);
        curl_global_cleanup();
        break;
    case OPTIONS_SAID:
        status = fflush(stdout) == 0 ? EXIT_GOOD : EXIT_COULD_NOT;
        break;
    case OPTIONS_USAGE:
        status = say(EXIT_USAGE, options.why);
        break;
    }
    options_free(&options);
    return (int)status;
}
