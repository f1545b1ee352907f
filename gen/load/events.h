#ifndef RUNNEL_LOAD_EVENTS_H
#define RUNNEL_LOAD_EVENTS_H

#include <stdint.h>
#include <stdio.h>

/*
 * A file with each event of the first streams of a run, for plots and for those who want to
 * look at a single gap. One line an event, five columns parted by tabs:
 *
 *     STREAM  US  READ  KIND  TOKENS
 *
 * STREAM is the number of the request, US microseconds since it was sent, READ the number of
 * the read (events with the same READ arrived together), KIND is head, token, done, error, bad
 * or other, or `end`, whose TOKENS are all that came. The first line is a comment with these
 * names.
 */

struct events {
    FILE *file; /* NULL: none are written */
    uint64_t streams;
};

/* 0, or -1 with errno. A `path` of NULL: none. */
int events_open(struct events *events, const char *path, uint64_t streams);

void events_write(struct events *events, uint64_t stream, int64_t us, uint64_t read,
                  const char *kind, uint64_t tokens);

/* 0, or -1 with errno when not all could be written. */
int events_close(struct events *events);

#endif
