#ifndef RUNNEL_LOAD_WRITER_H
#define RUNNEL_LOAD_WRITER_H

#include <sys/types.h>

/*
 * A server for the self-test, in a process of its own: it does as little as a server can, so
 * that what the client cannot do is the client's. It answers
 *
 *     GET /?tokens=N&first_us=F&gap_us=G
 *
 * with N events, the first after F microseconds and the others G apart, each with the stamps of
 * a runnel (of the monotonic clock, which the client reads too); with gap_us=0 as many in a
 * write as the socket takes. It is no HTTP server beyond that, and listens on loopback only.
 */

struct writer {
    pid_t pid; /* 0: none */
    int port;
};

/* 0, or -1 with errno. It ends with the process that started it. */
int writer_start(struct writer *writer);

void writer_stop(struct writer *writer);

#endif
