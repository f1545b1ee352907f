#ifndef RUNNEL_TESTS_UNIT_FAKE_PEER_H
#define RUNNEL_TESTS_UNIT_FAKE_PEER_H

/*
 * The web server's side of FastCGI (specification 1.0, section 8), written apart from the code
 * under test: records to send, and the reading of what comes back.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"

enum peer_type {
    PEER_BEGIN = 1,
    PEER_ABORT = 2,
    PEER_END = 3,
    PEER_PARAMS = 4,
    PEER_STDIN = 5,
    PEER_STDOUT = 6,
    PEER_GET_VALUES = 9,
    PEER_VALUES = 10,
    PEER_UNKNOWN = 11,
};

enum { PEER_KEEP = 1, PEER_TIMEOUT_MS = 20000 };

/* --- to send --- */

static inline void peer_record(struct buffer *out, unsigned type, unsigned id,
                               const void *content, size_t len, size_t padding)
{
    static const char zeros[255];
    unsigned char header[8] = {1,
                               (unsigned char)type,
                               (unsigned char)(id >> 8),
                               (unsigned char)id,
                               (unsigned char)(len >> 8),
                               (unsigned char)len,
                               (unsigned char)padding,
                               0};

    buffer_append(out, header, sizeof(header));
    buffer_append(out, content, len);
    buffer_append(out, zeros, padding);
}

static inline void peer_begin(struct buffer *out, unsigned id, unsigned role, unsigned flags)
{
    unsigned char body[8] = {(unsigned char)(role >> 8), (unsigned char)role,
                             (unsigned char)flags};

    peer_record(out, PEER_BEGIN, id, body, sizeof(body), 0);
}

static inline void peer_length(struct buffer *out, size_t len)
{
    if (len >= 0x80) {
        buffer_append_char(out, (char)(len >> 24 | 0x80));
        buffer_append_char(out, (char)(len >> 16));
        buffer_append_char(out, (char)(len >> 8));
    }
    buffer_append_char(out, (char)len);
}

/* A name-value pair, as PARAMS and GET_VALUES carry it. */
static inline void peer_pair(struct buffer *out, const char *name, const char *value)
{
    peer_length(out, strlen(name));
    peer_length(out, strlen(value));
    buffer_append_text(out, name);
    buffer_append_text(out, value);
}

/* A stream in records of at most `piece` bytes, and the empty one that ends it. */
static inline void peer_stream(struct buffer *out, unsigned type, unsigned id,
                               const char *bytes, size_t len, size_t piece, size_t padding)
{
    for (size_t at = 0; at < len; at += piece)
        peer_record(out, type, id, bytes + at, len - at < piece ? len - at : piece, padding);
    peer_record(out, type, id, "", 0, 0);
}

/* A whole GET of `path?query`, or a POST when there is a body. */
static inline void peer_request(struct buffer *out, unsigned id, unsigned flags,
                                const char *path, const char *query, const char *body)
{
    struct buffer params;

    buffer_init(&params, 1 << 20);
    peer_pair(&params, "REQUEST_METHOD", body != NULL ? "POST" : "GET");
    peer_pair(&params, "DOCUMENT_URI", path);
    peer_pair(&params, "QUERY_STRING", query);
    peer_begin(out, id, 1, flags);
    peer_stream(out, PEER_PARAMS, id, params.data, params.len, 65535, 0);
    peer_stream(out, PEER_STDIN, id, body, body != NULL ? strlen(body) : 0, 65535, 0);
    buffer_free(&params);
}

/* All of it, blocking. 0, or -1 when the other side is gone. */
static inline int peer_send(int fd, const struct buffer *bytes)
{
    for (size_t sent = 0; sent < bytes->len;) {
        ssize_t wrote = send(fd, bytes->data + sent, bytes->len - sent, MSG_NOSIGNAL);
        if (wrote <= 0)
            return -1;
        sent += (size_t)wrote;
    }
    return 0;
}

/* --- what comes back --- */

struct peer_reply {
    unsigned type, id;
    size_t len;
    unsigned char content[65536];
};

/* `len` bytes, in time. 1, 0 at the end of the connection (or -1 within the bytes, or late). */
static inline int peer_read(int fd, void *bytes, size_t len)
{
    size_t got = 0;

    while (got < len) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        if (poll(&in, 1, PEER_TIMEOUT_MS) != 1)
            return -1;
        ssize_t count = recv(fd, (char *)bytes + got, len - got, 0);
        if (count <= 0)
            return got == 0 ? 0 : -1;
        got += (size_t)count;
    }
    return 1;
}

/* The next record. 1, 0 at the end of the connection, -1 when it breaks off or does not come.
 */
static inline int peer_receive(int fd, struct peer_reply *reply)
{
    unsigned char header[8];
    unsigned char padding[255];
    int result = peer_read(fd, header, sizeof(header));

    if (result != 1)
        return result;
    reply->type = header[1];
    reply->id = (unsigned)(header[2] << 8 | header[3]);
    reply->len = (size_t)(header[4] << 8 | header[5]);
    if (header[0] != 1 || (reply->len > 0 && peer_read(fd, reply->content, reply->len) != 1) ||
        (header[6] > 0 && peer_read(fd, padding, header[6]) != 1))
        return -1;
    return 1;
}

/*
 * The whole reply to request `id`: its STDOUT as a string, to be freed. NULL when it does not
 * end with END_REQUEST and status 0, or something else comes.
 */
static inline char *peer_read_reply(int fd, unsigned id)
{
    struct peer_reply *reply = malloc(sizeof(*reply));
    struct buffer text;
    char *result = NULL;

    buffer_init(&text, 64 << 20);
    while (peer_receive(fd, reply) == 1 && reply->id == id) {
        if (reply->type == PEER_STDOUT)
            buffer_append(&text, reply->content, reply->len);
        if (reply->type == PEER_END) {
            static const unsigned char complete[5];
            if (reply->len == 8 && memcmp(reply->content, complete, 5) == 0)
                result = buffer_append_char(&text, '\0') == 0 ? text.data : NULL;
            break;
        }
    }
    free(reply);
    if (result == NULL)
        buffer_free(&text);
    return result;
}

/* Whether the other side closes, or has closed, without sending anything. */
static inline bool peer_is_closed(int fd)
{
    char byte;

    return peer_read(fd, &byte, 1) != 1;
}

#endif
