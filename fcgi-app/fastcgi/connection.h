#ifndef RUNNEL_FASTCGI_CONNECTION_H
#define RUNNEL_FASTCGI_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "fastcgi/record.h"

/*
 * One connection of a web server. It belongs to the intake while it sends a request, and to
 * that request's thread from then to the reply's end; a kept one then goes back.
 */
struct connection {
    int fd; /* blocking: libfcgi takes EAGAIN for an error; we read with MSG_DONTWAIT */
    struct record_parser parser;
    struct buffer unread;     /* came behind the request: looked at when it is answered */
    uint16_t request_id;      /* of the request that is being answered */
    unsigned peer_timeout_ms; /* of TCP; 0: none */
    bool is_unlimited;        /* tcp_limit_writing says so at the moment */

    /* the intake's own */
    int64_t active_us; /* when it came into its list */
    bool is_midway;
    struct connection *next, *previous;
};

#endif
