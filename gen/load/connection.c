/* The settings of a handle, its callbacks, and what its result means. */

#include "gen/load/connection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"

enum {
    /* libcurl's reads, one buffer for each stream: of a head alone, or of the body too. */
    HEAD_BYTES = 1024,
    BODY_BYTES = 4096,
    /* A slow reader's socket buffer. */
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

static void take_head(struct connection *connection, int status)
{
    struct connection_shared *shared = connection->shared;
    char *type = NULL;

    curl_easy_getinfo(connection->easy, CURLINFO_CONTENT_TYPE, &type);
    bool is_event_stream = type != NULL && strncasecmp(type, "text/event-stream", 17) == 0 &&
                           (type[17] == '\0' || type[17] == ';' || type[17] == ' ');
    stream_head(&connection->stream, status, is_event_stream, clock_monotonic_us());
    if (connection->reads_body && connection->stream.is_stream) {
        connection->next_head = shared->heads;
        shared->heads = connection;
    }
}

static size_t take_header(char *line, size_t size, size_t count, void *context)
{
    struct connection *connection = context;
    size_t len = size * count;
    long status = 0;

    if (connection->stream.status != 0) /* a trailer */
        return len;
    if (len > 5 && memcmp(line, "HTTP/", 5) == 0)
        framing_start(&connection->framing);
    else
        framing_header(&connection->framing, line, len);
    curl_easy_getinfo(connection->easy, CURLINFO_RESPONSE_CODE, &status);
    if (len <= 2 && status >= 200) /* the line that ends the head, and of no interim one */
        take_head(connection, (int)status);
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

static int take_payload(void *context, const char *bytes, size_t len)
{
    return stream_read(context, bytes, len);
}

/* Bytes of the body as they came. 0, or -1: `*end` says why it is over. */
static int take_bytes(struct connection *connection, const char *bytes, size_t len,
                      enum stream_end *end)
{
    switch (framing_feed(&connection->framing, bytes, len, take_payload, &connection->stream)) {
    case FRAMING_MORE:
        return 0;
    case FRAMING_ENDED:
        *end = STREAM_ENDED;
        return -1;
    case FRAMING_STOPPED:
        *end = STREAM_LEFT;
        return -1;
    default:
        snprintf(connection->error, sizeof(connection->error), "the chunks are malformed");
        *end = STREAM_BROKEN;
        return -1;
    }
}

static void note_slow_read(struct connection *connection)
{
    if (!connection->stream.fate.is_slow || connection->has_slow_read)
        return;
    connection->has_slow_read = true;
    connection->next_read = connection->shared->slow_reads;
    connection->shared->slow_reads = connection;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    struct connection *connection = context;
    struct stream *stream = &connection->stream;
    size_t len = size * count;
    enum stream_end end = STREAM_LEFT;

    if (is_new_read(connection, bytes, len))
        stream_begin_read(stream, clock_monotonic_us());
    note_slow_read(connection);
    if (!connection->reads_body)
        return stream_read(stream, bytes, len) == 0 ? len : len + 1;
    if (take_bytes(connection, bytes, len, &end) != 0) /* libcurl finds a good end by itself */
        return end == STREAM_ENDED ? len : len + 1;
    if (stream->is_stream) /* here it stops: what comes next is ours to read */
        curl_easy_pause(connection->easy, CURLPAUSE_ALL);
    return len;
}

static int set_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    struct connection *connection = context;
    int bytes = SLOW_SOCKET_BYTES;

    connection->socket = fd; /* the only one: there is one address */
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
    curl_easy_setopt(easy, CURLOPT_HTTP_TRANSFER_DECODING, connection->reads_body ? 0L : 1L);
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
    connection->fd = -1;
    connection->reads_body = !shared->target->is_tls && !shared->stream.options->keepalive;
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
                     (long)(connection->reads_body ? HEAD_BYTES
                            : fate.is_slow         ? CONNECTION_SLOW_READ_BYTES
                                                   : BODY_BYTES));
    set_source(connection);
    connection->error[0] = '\0';
    connection->is_open = true;
    connection->call = 0;
    stream_start(stream, number, fate, intended_us, now_us);
    return 0;
}

/* --- reads of our own --- */

bool connection_read(struct connection *connection, enum stream_end *end)
{
    bool is_slow = connection->stream.fate.is_slow;
    char *bytes = connection->shared->bytes;
    ssize_t got =
        recv(connection->fd, bytes,
             is_slow ? CONNECTION_SLOW_READ_BYTES : CONNECTION_READ_BYTES, MSG_DONTWAIT);

    if (got > 0) {
        stream_begin_read(&connection->stream, clock_monotonic_us());
        note_slow_read(connection);
        return take_bytes(connection, bytes, (size_t)got, end) != 0;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    *end =
        got == 0 && framing_is_whole_at_close(&connection->framing) ? STREAM_ENDED : STREAM_CUT;
    snprintf(connection->error, sizeof(connection->error), "%s",
             got == 0 ? "the connection was closed in mid-reply" : strerror(errno));
    return true;
}

/* --- the end --- */

enum stream_end connection_outcome(struct connection *connection, CURLcode code)
{
    if (connection->error[0] == '\0')
        snprintf(connection->error, sizeof(connection->error), "%s", curl_easy_strerror(code));
    switch (code) {
    case CURLE_OK:
        return STREAM_ENDED;
    case CURLE_WRITE_ERROR: /* take_body's word */
        return connection->stream.has_left || connection->stream.has_failed ? STREAM_LEFT
                                                                            : STREAM_BROKEN;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT: /* of connecting: it has no other */
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
        return STREAM_BROKEN;
    }
}

void connection_end(struct connection *connection, enum stream_end end, int64_t now_us)
{
    struct stream *stream = &connection->stream;
    long status = 0;

    connection->is_open = false;
    connection->fd = -1;
    if (stream->status == 0 &&
        curl_easy_getinfo(connection->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK)
        stream->status = (int)status;
    stream_end(stream, end, connection->error, now_us);
}
