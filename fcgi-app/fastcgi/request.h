#ifndef RUNNEL_FASTCGI_REQUEST_H
#define RUNNEL_FASTCGI_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "engine/generation.h"
#include "fastcgi/connection.h"

/*
 * One FastCGI request, decoded and answered by libfcgi. This module is the only one that knows
 * libfcgi, and the only one that touches the fields of FCGX_Request below its "don't use" line:
 * ipcFd, to hand it bytes that were vetted by fastcgi/record.h and then the real connection,
 * and keepConnection. request_self_test proves at start-up that this works with the installed
 * version.
 *
 * One thread at a time per request: the intake's until the request is answered or its sink is
 * given away, the engine's after that.
 */

struct request;

/* Once, at start-up, before any signal handler of ours: libfcgi sets handlers too. 0 or -1. */
int request_library_init(void);

/* A request over a socketpair, from the record parser to the reply. 0, or -1 with a sentence.
 */
int request_self_test(char error[200]);

/* Who gets the connection when its request is over; called on the thread that ends it. */
struct request_owner {
    void (*release)(void *context, struct connection *connection, bool reusable);
    void *context;
};

/*
 * Make the request that `connection`'s parser has just completed. NULL when libfcgi refuses it
 * or there is no memory: the connection is then still the caller's, to be closed. Intake thread
 * only.
 */
struct request *request_open(struct connection *connection, const struct request_owner *owner);

/* A FastCGI parameter, or "" when it was not sent. Lives as long as the request. */
const char *request_param(const struct request *request, const char *name);

const char *request_method(const struct request *request);

/* The path without the query, as the web server calls it. */
const char *request_path(const struct request *request);

const char *request_query(const struct request *request);

/* 1 to 64 characters of A-Za-z0-9._-: the caller's, the web server's, or a random one. */
const char *request_id(const struct request *request);

/* Header lines, each with its CR LF, that every reply to it has beside its own: whoever chooses
 * them knows the request, whoever writes the reply need not. A literal or the like: it must
 * outlive the request. "" at first. */
void request_set_reply_lines(struct request *request, const char *lines);
const char *request_reply_lines(const struct request *request);

/* When it was complete, on the monotonic clock. */
int64_t request_arrived_us(const struct request *request);

/* The body; false when it was larger than allowed and has been dropped. */
bool request_body(const struct request *request, const char **bytes, size_t *len);

/*
 * Send a whole reply (status line as `Status:`, headers, body) and end the request. Never
 * blocks: a peer that has not read what it asked for before is cut off. A reply that has
 * failed, or is longer than fits a socket's buffer for sure, is not sent: the web server says
 * 502.
 */
enum { REQUEST_REPLY_MAX_BYTES = 48 << 10 };
void request_reply(struct request *request, const struct buffer *reply);

/* Give the request away as the engine's sink; the engine's `release` ends it. */
struct sink request_sink(struct request *request);

#endif
