#ifndef RUNNEL_LOAD_BARE_H
#define RUNNEL_LOAD_BARE_H

#include <stdint.h>

/*
 * What reads cost on this machine at least: epoll and recv on the streams of a writer
 * (writer.h), and nothing done with the bytes. The self-test tells it beside its own figure,
 * for the price of a read differs more between machines than between clients.
 */

struct bare {
    double reads_per_s;
    double cpu_us; /* a read */
};

/* As many streams with an event each `gap_us`, for `seconds` after all have begun. 0, or -1
 * with errno. */
int bare_measure(struct bare *bare, int port, uint64_t streams, uint64_t gap_us, int seconds);

#endif
