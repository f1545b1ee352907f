#ifndef RUNNEL_LOAD_STREAM_H
#define RUNNEL_LOAD_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gen/load/events.h"
#include "gen/load/figures.h"
#include "gen/load/options.h"
#include "gen/load/payload.h"
#include "gen/load/reader.h"
#include "gen/load/request.h"
#include "gen/load/schedule.h"
#include "gen/load/verification.h"

/*
 * One request from its start to its end: what comes is read, checked, timed and counted. It
 * knows no socket: whoever has one calls it, in this order: stream_start, stream_sent,
 * stream_head, any number of stream_begin_read and stream_read, stream_end.
 *
 * A stream that has failed is read on to its end, so that the server's load and books are those
 * of a client that stays; only its first failure counts.
 */

/* What all streams of a run share. */
struct stream_shared {
    const struct options *options;
    struct figures *figures;
    struct events *events;
    struct buffer scratch; /* text of the event being looked at */
};

enum stream_end {
    STREAM_ENDED,   /* HTTP says that the reply is whole */
    STREAM_LEFT,    /* we closed it, because stream_read said so */
    STREAM_CUT,     /* the connection broke */
    STREAM_REFUSED, /* there never was one */
    STREAM_TIMEOUT,
    STREAM_BROKEN, /* anything else */
    STREAM_INTERRUPTED,
};

enum { STREAM_WHY_MAX_BYTES = 200, STREAM_BODY_MAX_BYTES = 512 };

struct stream {
    struct stream_shared *shared;
    struct request request;
    struct reader reader;
    struct verification verification;
    uint64_t number;
    struct fate fate;
    bool is_measured; /* ttft, tpot and total count: it began in the window and reads at once */
    bool is_verified;
    int64_t intended_us, sent_us;

    int status; /* of HTTP; 0: no head yet */
    bool is_stream;
    struct buffer body; /* the beginning of one that is no stream */

    uint64_t reads;
    int64_t now_us; /* when the last of them came */

    uint64_t tokens, last_event_tokens;
    int64_t first_token_us, last_token_us, done_us;
    uint64_t last_token_read;
    int64_t gap_max_us;
    bool is_done; /* [DONE] has come */
    bool has_left;
    bool has_failed;
    enum failure failure;
    char why[STREAM_WHY_MAX_BYTES];
};

/* Its memory is taken as it is needed and kept for the next request. */
void stream_init(struct stream *stream, struct stream_shared *shared);
void stream_free(struct stream *stream);

/* The request has been made (stream->request) and is on its way. */
void stream_start(struct stream *stream, uint64_t number, struct fate fate, int64_t intended_us,
                  int64_t now_us);

/* The connection is there, the request goes out. */
void stream_sent(struct stream *stream, int64_t now_us);

/* The head has come. */
void stream_head(struct stream *stream, int status, bool is_event_stream, int64_t now_us);

/* What stream_read gets from here on was read from the socket now. */
void stream_begin_read(struct stream *stream, int64_t now_us);

/* Bytes of the body. Returns 0, or -1 when the connection is to be closed: the client leaves.
 */
int stream_read(struct stream *stream, const char *bytes, size_t len);

/* It is over; `detail` says how a connection broke. Counts it. */
void stream_end(struct stream *stream, enum stream_end end, const char *detail, int64_t now_us);

#endif
