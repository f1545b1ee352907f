/* The line of progress. */

#include "gen/load/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { PERIOD_US = 500000 };

void progress_start(struct progress *progress, const struct options *options, int64_t now_us)
{
    *progress = (struct progress){
        .is_shown = !options->quiet && isatty(STDERR_FILENO) == 1,
        .began_us = now_us,
        .told_us = now_us,
        .next_us = now_us + PERIOD_US,
    };
}

int64_t progress_due_us(const struct progress *progress)
{
    return progress->is_shown ? progress->next_us : CLOCK_NEVER;
}

void progress_tell(struct progress *progress, const struct figures *figures, int64_t now_us)
{
    if (!progress->is_shown || now_us < progress->next_us)
        return;
    double seconds = (double)(now_us - progress->told_us) / 1e6;
    double rate = (double)(figures->tokens - progress->told_tokens) / seconds;
    fprintf(stderr,
            "\r\033[K%.0f s: %" PRIu64 " open, %" PRIu64 " complete, %" PRIu64
            " aborted, %" PRIu64 " failed, %.0f tokens/s",
            (double)(now_us - progress->began_us) / 1e6, figures->open, figures->completed,
            figures->aborted, figures->failed, rate);
    fflush(stderr);
    progress->told_us = now_us;
    progress->told_tokens = figures->tokens;
    progress->next_us = now_us + PERIOD_US;
}

void progress_end(struct progress *progress)
{
    if (progress->is_shown)
        fputs("\r\033[K", stderr);
}
