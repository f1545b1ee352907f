#ifndef RUNNEL_LOAD_CONNECTION_H
#define RUNNEL_LOAD_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <curl/curl.h>

#include "gen/load/framing.h"
#include "gen/load/stream.h"
#include "gen/load/target.h"

/*
 * A stream and the libcurl handle that carries it; both are used for one request after the
 * other. Nothing but the options decides how it connects: no proxy, no ~/.netrc or ~/.curlrc,
 * HTTP/1.1, no redirects, TCP_NODELAY. It has no timeout of libcurl's: those of all handles
 * would be in one tree, which each read of any of them would walk through.
 *
 * libcurl connects, sends and reads the head. The body of a stream without TLS is then read
 * from the socket here: one recv is one read, nothing stands between it and its time, and a
 * token costs about half. libcurl reads it to its end with TLS, and where the connection is
 * used again.
 */

/* A read is at most so long, and so much shorter that of a slow reader: it must be felt. */
enum { CONNECTION_READ_BYTES = 16384, CONNECTION_SLOW_READ_BYTES = 1024 };

/* What the connections of a run share. */
struct connection_shared {
    struct stream_shared stream;
    const struct target *target;
    struct request_maker maker;
    const uint64_t *call; /* the number, from 1, of the call into libcurl that is going on */
    uint64_t sent;        /* requests so far, for the choice of a source address */
    struct connection *slow_reads; /* slow readers that have read since it was emptied */
    struct connection *heads;      /* streams whose head has come since it was emptied */
    char *bytes;                   /* of a read; CONNECTION_READ_BYTES of them */
};

struct connection {
    struct stream stream;
    struct connection_shared *shared;
    CURL *easy;
    struct curl_slist *headers, *connect_to;
    bool is_open;            /* between connection_start and its end */
    bool is_paused;          /* in the loop's list of those that pause, maybe ended meanwhile */
    struct connection *next; /* in that list, or among the free */
    int64_t resume_us;
    TAILQ_ENTRY(connection) open; /* in the loop's list, in the order of the starts */
    int64_t started_us;
    struct connection *next_read; /* in `slow_reads` */
    bool has_slow_read;
    struct connection *next_head; /* in `heads` */
    struct framing framing;
    bool reads_body; /* and not libcurl */
    int socket;      /* as libcurl made it */
    int fd;          /* the same, while we read from it; else -1 */
    uint64_t call;   /* that brought the last bytes, and where they ended */
    const char *read_end;
    char error[CURL_ERROR_SIZE];
};

/* NULL when there is no memory. */
struct connection *connection_new(struct connection_shared *shared);
void connection_free(struct connection *connection);

/* Makes request `number` and readies the handle for curl_multi_add_handle. 0, or -1: there is
 * no memory, and nothing was started. */
int connection_start(struct connection *connection, uint64_t number, int64_t intended_us,
                     int64_t now_us);

/* Reads once from `fd`. Whether it is over, and then how. */
bool connection_read(struct connection *connection, enum stream_end *end);

/* How it is over by libcurl's result. */
enum stream_end connection_outcome(struct connection *connection, CURLcode code);

/* It is over. The handle may still be in the multi handle, and the socket open. */
void connection_end(struct connection *connection, enum stream_end end, int64_t now_us);

#endif
