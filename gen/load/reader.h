#ifndef RUNNEL_LOAD_READER_H
#define RUNNEL_LOAD_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/*
 * Bytes of an event stream, as they come, into events (WHATWG HTML, section 9.2.6). Every legal
 * spelling is read: LF, CR and CRLF, a byte order mark, comments, data in several lines, with
 * and without the space after the colon; and a read may end anywhere.
 *
 * An event that lies in one read is handed on where it lies; memory is taken for what a read
 * cuts in two, and kept for the next stream. Fields other than `data` and `event` are ignored:
 * who only measures does not reconnect.
 */

/* A line, and the data of an event, may be so long. */
enum { READER_EVENT_MAX_BYTES = 1 << 20, READER_NAME_MAX_BYTES = 32 };

struct reader_event {
    const char *name; /* of the event, cut to READER_NAME_MAX_BYTES; "" is a message */
    const char
        *data; /* its lines joined by a newline; not NUL-terminated, gone after the call */
    size_t data_len;
};

/* 0: go on; anything else: the reader stops there and returns it. */
typedef int (*reader_take)(void *context, const struct reader_event *event);

struct reader {
    reader_take take;
    void *context;
    struct buffer line;  /* of a line that an earlier read began */
    struct buffer lines; /* the data of the event so far, unless it is `in_place` */
    const char *in_place;
    size_t in_place_len;
    char name[READER_NAME_MAX_BYTES + 1];
    bool has_data;
    bool skip_lf;    /* the last byte was a CR: an LF belongs to it */
    bool first_line; /* it may begin with a byte order mark */
};

enum { READER_TOO_LONG = -1 };

/* No memory is taken before it is needed. */
void reader_init(struct reader *reader, reader_take take, void *context);
void reader_free(struct reader *reader);

/* Ready for the next stream, with the memory of the last. */
void reader_restart(struct reader *reader);

/*
 * Calls `take` for each event that these bytes complete. Returns 0, what `take` returned if
 * that was not 0, or READER_TOO_LONG; after anything but 0 the reader must be restarted.
 */
int reader_feed(struct reader *reader, const char *bytes, size_t len);

/* Whether an event has begun that has not ended. */
bool reader_is_inside(const struct reader *reader);

#endif
