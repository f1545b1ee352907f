#ifndef RUNNEL_LOAD_PROGRESS_H
#define RUNNEL_LOAD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/load/figures.h"
#include "gen/load/options.h"

/* One line on the standard error, written anew twice a second: on a terminal only, never in a
 * log. */
struct progress {
    bool is_shown;
    int64_t began_us, next_us;
    int64_t told_us; /* when it was written last, and what had come by then */
    uint64_t told_tokens;
};

void progress_start(struct progress *progress, const struct options *options, int64_t now_us);

/* When progress_tell should be called; CLOCK_NEVER when it is not shown. */
int64_t progress_due_us(const struct progress *progress);

void progress_tell(struct progress *progress, const struct figures *figures, int64_t now_us);

/* Removes the line. */
void progress_end(struct progress *progress);

#endif
