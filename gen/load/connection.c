/* The settings of a handle, its callbacks, and what its result means. */

#include "gen/load/connection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"

enum {
    /* A read is at most so long. One for each stream: 10,000 of them take 40 MB. */
    READ_BYTES = 4096,
    /* A slow reader's, and its socket's buffer: it must be felt on the other side. */
    SLOW_READ_BYTES = 1024,
    SLOW_SOCKET_BYTES = 4096,
    /* Ports of one address towards another: the kernel's range has 28232 of them, and one that
     * was used is not free for a minute. */
    REQUESTS_PER_SOURCE = 20000,
    SOURCES = 200,
};

/* --- callbacks --- */

/* The connection is there, and the request is about to be sent on it. */
static int take_connected(void *context, char *address, char *local, int port, int local_port)
{
    struct connection *connection = context;

    (void)address;
    (void)local;
    (void)port;
    (void)local_port;
    stream_sent(&connection->stream, clock_monotonic_us());
    return CURL_PREREQFUNC_OK;
}

static size_t take_header(char *line, size_t size, size_t count, void *context)
{
    struct connection *connection = context;
    size_t len = size * count;
    long status = 0;
    char *type = NULL;

    /* The line that ends the head. An interim head (100 Continue) is not it, nor are trailers.
     */
    if (len > 2 || connection->stream.status != 0)
        return len;
    (void)line;
    curl_easy_getinfo(connection->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200)
        return len;
    curl_easy_getinfo(connection->easy, CURLINFO_CONTENT_TYPE, &type);
    bool is_event_stream = type != NULL && strncasecmp(type, "text/event-stream", 17) == 0 &&
                           (type[17] == '\0' || type[17] == ';' || type[17] == ' ');
    stream_head(&connection->stream, (int)status, is_event_stream, clock_monotonic_us());
    return len;
}

/*
 * libcurl calls this for each piece of a read (each HTTP chunk in it), and may read more than
 * once in one call of ours (7.88 polls a socket after it has read). All pieces of a read lie in
 * one buffer, in order: what comes in another call, or lies before the last, is another read.
 */
static bool is_new_read(struct connection *connection, const char *bytes, size_t len)
{
    uint64_t call = *connection->shared->call;
    bool is_new = call != connection->call || bytes < connection->read_end;

    connection->call = call;
    connection->read_end = bytes + len;
    return is_new;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    struct connection *connection = context;
    struct stream *stream = &connection->stream;
    size_t len = size * count;

    if (is_new_read(connection, bytes, len))
        stream_begin_read(stream, clock_monotonic_us());
    if (stream_read(stream, bytes, len) != 0)
        return len == 0 ? 1 : 0; /* anything but len ends the transfer */
    if (stream->fate.is_slow && !connection->has_slow_read) {
        connection->has_slow_read = true;
        connection->next_read = connection->shared->slow_reads;
        connection->shared->slow_reads = connection;
    }
    return len;
}

static int set_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    const struct connection *connection = context;
    int bytes = SLOW_SOCKET_BYTES;

    if (purpose == CURLSOCKTYPE_IPCXN && connection->stream.fate.is_slow)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    return CURL_SOCKOPT_OK;
}

/* --- settings --- */

static void set_lasting(struct connection *connection)
{
    const struct options *options = connection->shared->stream.options;
    CURL *easy = connection->easy;

    curl_easy_setopt(easy, CURLOPT_PRIVATE, connection);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, connection->error);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "runnel-load/0.1.0");
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, options->keepalive ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, options->keepalive ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, take_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, connection);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, connection);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, connection);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, set_socket);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, connection);
    if (options->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (options->unix_socket != NULL)
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, options->unix_socket);
    if (options->body != NULL)
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
    if (options->method != NULL && strcmp(options->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else if (options->method != NULL)
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, options->method);
}

/* The address that was found before the run, for any host and port (the host stays in the
 * request). */
static int set_address(struct connection *connection)
{
    const struct target *target = connection->shared->target;
    char entry[TARGET_ADDRESS_MAX_BYTES + 8];

    if (target->address[0] == '\0')
        return 0;
    snprintf(entry, sizeof(entry), "::%s:", target->address);
    connection->connect_to = curl_slist_append(NULL, entry);
    if (connection->connect_to == NULL)
        return -1;
    curl_easy_setopt(connection->easy, CURLOPT_CONNECT_TO, connection->connect_to);
    return 0;
}

struct connection *connection_new(struct connection_shared *shared)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (connection == NULL)
        return NULL;
    connection->shared = shared;
    stream_init(&connection->stream, &shared->stream);
    connection->easy = curl_easy_init();
    if (connection->easy == NULL || set_address(connection) != 0) {
        connection_free(connection);
        return NULL;
    }
    set_lasting(connection);
    return connection;
}

void connection_free(struct connection *connection)
{
    if (connection == NULL)
        return;
    curl_easy_cleanup(connection->easy);
    curl_slist_free_all(connection->headers);
    curl_slist_free_all(connection->connect_to);
    stream_free(&connection->stream);
    free(connection);
}

static int set_headers(struct connection *connection)
{
    const struct buffer *lines = &connection->stream.request.headers;
    /* Without it curl would wait a second for 100 Continue before it sends a large body. */
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    struct curl_slist *longer = headers;

    for (size_t at = 0; longer != NULL && at < lines->len; at += strlen(lines->data + at) + 1)
        longer = curl_slist_append(headers, lines->data + at);
    if (longer == NULL) {
        curl_slist_free_all(headers);
        return -1;
    }
    curl_easy_setopt(connection->easy, CURLOPT_HTTPHEADER, headers);
    curl_slist_free_all(connection->headers);
    connection->headers = headers;
    return 0;
}

/* The first 20,000 requests come from 127.0.0.1, the next from 127.0.0.2, and so on. */
static void set_source(struct connection *connection)
{
    struct connection_shared *shared = connection->shared;
    uint64_t source = shared->sent++ / REQUESTS_PER_SOURCE % SOURCES;
    char interface[32];

    if (!shared->target->is_loopback_v4)
        return;
    snprintf(interface, sizeof(interface), "host!127.0.0.%" PRIu64, source + 1);
    curl_easy_setopt(connection->easy, CURLOPT_INTERFACE, source == 0 ? NULL : interface);
}

int connection_start(struct connection *connection, uint64_t number, int64_t intended_us,
                     int64_t now_us)
{
    struct connection_shared *shared = connection->shared;
    const struct options *options = shared->stream.options;
    struct stream *stream = &connection->stream;

    if (request_make(&shared->maker, &stream->request, number) != 0 ||
        set_headers(connection) != 0)
        return -1;
    struct fate fate = schedule_fate(options, number, stream->request.asked.max_tokens);
    if (curl_easy_setopt(connection->easy, CURLOPT_URL, stream->request.url.data) != CURLE_OK)
        return -1;
    if (options->body != NULL) {
        curl_easy_setopt(connection->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)stream->request.body.len);
        curl_easy_setopt(connection->easy, CURLOPT_POSTFIELDS,
                         stream->request.body.len > 0 ? stream->request.body.data : "");
    }
    curl_easy_setopt(connection->easy, CURLOPT_BUFFERSIZE,
                     (long)(fate.is_slow ? SLOW_READ_BYTES : READ_BYTES));
    set_source(connection);
    connection->error[0] = '\0';
    connection->is_open = true;
    connection->call = 0;
    stream_start(stream, number, fate, intended_us, now_us);
    return 0;
}

/* --- the end --- */

static enum stream_end end_of(const struct connection *connection, CURLcode code)
{
    switch (code) {
    case CURLE_OK:
        return STREAM_ENDED;
    case CURLE_WRITE_ERROR:
        return STREAM_LEFT;
    case CURLE_OPERATION_TIMEDOUT:
        return STREAM_TIMEOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_INTERFACE_FAILED:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
        return STREAM_REFUSED;
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return STREAM_CUT;
    default:
        return connection->stream.has_left ? STREAM_LEFT : STREAM_BROKEN;
    }
}

void connection_end(struct connection *connection, CURLcode code, int64_t now_us)
{
    struct stream *stream = &connection->stream;
    long status = 0;

    connection->is_open = false;
    if (stream->status == 0 &&
        curl_easy_getinfo(connection->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK)
        stream->status = (int)status;
    stream_end(stream, end_of(connection, code),
               connection->error[0] != '\0' ? connection->error : curl_easy_strerror(code),
               now_us);
}

void connection_interrupt(struct connection *connection, int64_t now_us)
{
    connection->is_open = false;
    stream_end(&connection->stream, STREAM_INTERRUPTED, "interrupted", now_us);
}
