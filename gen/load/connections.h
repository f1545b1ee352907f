#ifndef RUNNEL_LOAD_CONNECTIONS_H
#define RUNNEL_LOAD_CONNECTIONS_H

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#include <curl/curl.h>

#include "gen/load/connection.h"
#include "gen/load/events.h"
#include "gen/load/figures.h"
#include "gen/load/options.h"
#include "gen/load/target.h"

/*
 * All connections of a run: libcurl's multi handle, the epoll set that both it and we watch
 * sockets in, timeouts, and the pauses of slow readers. Whoever waits on `epoll` hands each
 * event to connections_event, and calls connections_work once after them, and when it is due.
 */
struct connections {
    const struct options *options;
    struct figures *figures;
    struct connection_shared shared;
    CURLM *multi;
    int epoll;
    uint64_t call;           /* into libcurl; see connection.h */
    int64_t curl_due_us;     /* CLOCK_NEVER: libcurl waits for sockets alone */
    struct connection **all; /* `count` of `room` */
    size_t count, room;
    struct connection *free;
    struct connection **by_fd; /* those that read by themselves, `fd_room` places; else NULL */
    size_t fd_room;
    TAILQ_HEAD(, connection) open; /* in the order of their starts, and so of their timeouts */
    struct connection *pause_first, *pause_last; /* in the order in which they resume */
    const char *broken;                          /* why it cannot go on; NULL: it can */
};

/* 0, or -1 when there is no memory; connections_close in either case. */
int connections_open(struct connections *connections, const struct options *options,
                     const struct target *target, struct figures *figures,
                     struct events *events);

/* Ends what is open without counting it. */
void connections_close(struct connections *connections);

/* Starts request `number`. On failure `broken` says why. */
void connections_start(struct connections *connections, uint64_t number, int64_t intended_us,
                       int64_t now_us);

/* A socket of the set is ready: one read. */
void connections_event(struct connections *connections, const struct epoll_event *event);

/* What libcurl has to do or has ended, sockets to be taken over, timeouts, pauses. */
void connections_work(struct connections *connections, int64_t now_us);

/* When connections_work is due though no socket is ready; CLOCK_NEVER: it is not. */
int64_t connections_due_us(const struct connections *connections);

/* Closes what is open and counts it as interrupted. */
void connections_interrupt(struct connections *connections);

#endif
