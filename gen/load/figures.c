/* Counters, and the clocks around them. */

#include "gen/load/figures.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"

const char *failure_name(enum failure failure)
{
    static const char *const names[FAILURES] = {
        "connect",  "http",        "not_a_stream", "truncated", "cut",  "error_event",
        "bad_json", "wrong_token", "timeout",      "too_long",  "other"};

    return names[failure];
}

int figures_init(struct figures *figures)
{
    *figures = (struct figures){.asked_ttft_us = -1};
    for (enum figure figure = 0; figure < FIGURES; figure++) {
        enum distribution_sign sign =
            figure == FIGURE_LATENESS || figure == FIGURE_PATH || figure == FIGURE_DUE
                ? DISTRIBUTION_SIGNED
                : DISTRIBUTION_POSITIVE;
        if (distribution_init(&figures->of[figure], sign) != 0) {
            figures_free(figures);
            return -1;
        }
    }
    return 0;
}

void figures_free(struct figures *figures)
{
    for (enum figure figure = 0; figure < FIGURES; figure++)
        distribution_free(&figures->of[figure]);
}

/* The second number of schedstat: nanoseconds that this thread could have run and did not. */
static int64_t read_wait_us(void)
{
    FILE *file = fopen("/proc/self/schedstat", "re");
    unsigned long long ran, waited;
    int found = 0;

    if (file != NULL) {
        found = fscanf(file, "%llu %llu", &ran, &waited);
        fclose(file);
    }
    return found == 2 ? (int64_t)(waited / 1000) : -1;
}

static struct process_time read_process(const struct figures *figures, int64_t now_us)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (struct process_time){
        .at_us = now_us,
        .user_us = (int64_t)usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec,
        .system_us = (int64_t)usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec,
        .wait_us = read_wait_us(),
        .tokens = figures->tokens,
    };
}

void figures_start(struct figures *figures, const struct options *options, int64_t now_us)
{
    figures->began_us = now_us;
    figures->window_start_us = now_us + options->warmup_us;
    figures->window_end_us =
        options->duration_us > 0 ? now_us + options->duration_us : CLOCK_NEVER;
    figures_turn(figures, now_us);
}

void figures_turn(struct figures *figures, int64_t now_us)
{
    if (figures->cpu_first.at_us == 0 && now_us >= figures->window_start_us)
        figures->cpu_first = read_process(figures, now_us);
    if (figures->cpu_last.at_us == 0 && now_us >= figures->window_end_us)
        figures->cpu_last = read_process(figures, now_us);
}

void figures_stop(struct figures *figures, int64_t now_us)
{
    struct rusage usage;

    figures->ended_us = now_us;
    if (figures->window_end_us > now_us)
        figures->window_end_us = now_us;
    figures_turn(figures, now_us);
    getrusage(RUSAGE_SELF, &usage);
    figures->memory_max_kib = (uint64_t)usage.ru_maxrss;
}

struct process_time figures_used(const struct figures *figures)
{
    const struct process_time *first = &figures->cpu_first;
    const struct process_time *last = &figures->cpu_last;
    bool is_told = first->wait_us >= 0 && last->wait_us >= 0;

    if (first->at_us == 0)
        return (struct process_time){.wait_us = -1};
    return (struct process_time){
        .at_us = last->at_us - first->at_us,
        .user_us = last->user_us - first->user_us,
        .system_us = last->system_us - first->system_us,
        .wait_us = is_told ? last->wait_us - first->wait_us : -1,
        .tokens = last->tokens - first->tokens,
    };
}

/* What a server wrote is shown on a terminal: other bytes than printable ASCII as \xNN. */
static void show(char *out, size_t cap, const char *text)
{
    size_t at = 0;

    for (; *text != '\0' && at + sizeof("\\xNN") <= cap; text++) {
        unsigned char byte = (unsigned char)*text;
        bool is_printable = byte >= 0x20 && byte < 0x7f;
        at += (size_t)snprintf(out + at, cap - at, is_printable ? "%c" : "\\x%02x",
                               (unsigned)byte);
    }
    out[at] = '\0';
}

void figures_fail(struct figures *figures, enum failure failure, uint64_t number,
                  const char *id, const char *why)
{
    figures->failed++;
    figures->failed_by[failure]++;
    if (figures->example_count == EXAMPLES)
        return;
    struct example *example = &figures->examples[figures->example_count++];
    *example = (struct example){.number = number, .failure = failure};
    snprintf(example->id, sizeof(example->id), "%s", id);
    show(example->why, sizeof(example->why), why);
}

void figures_add_stamps(struct figures *figures, int64_t arrived_us, int64_t sent_us,
                        int64_t due_us)
{
    int64_t offset_us = arrived_us - sent_us;

    if (!figures->has_path_base) {
        figures->has_path_base = true;
        figures->path_base_us = offset_us;
    }
    distribution_add(&figures->of[FIGURE_PACE], sent_us - due_us, 1);
    distribution_add(&figures->of[FIGURE_PATH], offset_us - figures->path_base_us, 1);
    distribution_add(&figures->of[FIGURE_DUE], arrived_us - due_us - figures->path_base_us, 1);
}

int64_t figures_offset_us(const struct figures *figures, enum figure figure)
{
    return figure == FIGURE_PATH || figure == FIGURE_DUE ? figures->of[FIGURE_PATH].min : 0;
}
