/*
 * The libfcgi side of a request; see the header for what it may touch. Facts about
 * libfcgi 2.4.2 that this file rests on:
 *
 * - FCGX_Accept_r reads from ipcFd when that is set. It is given a memory file with the vetted
 *   request, so it cannot block, and then the real connection, for the reply. With listen_sock
 * -1 a failure returns instead of accepting a connection of its own.
 * - FCGX_FFlush writes until all is written, takes EAGAIN for an error, does not retry EINTR,
 * and tells an error once only. So the descriptor is blocking, we write only when poll says
 * there is room, signals are blocked in our threads, and the first error is latched here.
 * - FCGX_Finish_r may poll for seconds before it closes. It is not called: closing the two
 * writers sends END_REQUEST, FCGX_Free(…, 0) frees, and the connection is ours to close.
 */

#include "fastcgi/request.h"

#include <errno.h>
#include <fcgiapp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "fastcgi/tcp.h"

enum {
    REQUEST_ID_MAX_BYTES = 64,
    REQUEST_RECORDS_MAX_BYTES = 1 << 20, /* the parser's own limits are lower */
    /* What the kernel books for a small write beside its bytes. */
    WRITE_OVERHEAD_BYTES = 1024,
    CREDIT_MAX_BYTES = 48 << 10,
};

struct request {
    /* what a token needs, in one cache line */
    size_t credit; /* bytes that go through before poll must be asked again */
    size_t credit_max;
    size_t unflushed;
    bool failed; /* a write has failed: final */
    bool ended;  /* END_REQUEST has been sent */
    bool body_too_large;
    FCGX_Request fcgx;

    struct connection *connection;
    struct request_owner owner;
    struct buffer body;
    int64_t arrived_us;
    const char *reply_lines;
    char id[REQUEST_ID_MAX_BYTES + 1];
};

/* The memory file that libfcgi reads from; the intake thread's. */
static int feed_fd = -1;
static size_t feed_len;

int request_library_init(void)
{
    return FCGX_Init();
}

/* --- opening --- */

static int feed(const struct buffer *records)
{
    if (feed_fd < 0) {
        feed_fd = memfd_create("request", MFD_CLOEXEC);
        feed_len = 0;
    }
    if (feed_fd < 0 ||
        pwrite(feed_fd, records->data, records->len, 0) != (ssize_t)records->len ||
        (records->len < feed_len && ftruncate(feed_fd, (off_t)records->len) != 0) ||
        lseek(feed_fd, 0, SEEK_SET) != 0)
        return -1;
    feed_len = records->len;
    return 0;
}

static bool is_id(const char *text)
{
    size_t len =
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return len >= 1 && len <= REQUEST_ID_MAX_BYTES && text[len] == '\0';
}

static void choose_id(struct request *request)
{
    unsigned char random[16] = {0};
    const char *theirs = request_param(request, "HTTP_X_REQUEST_ID");

    if (!is_id(theirs))
        theirs = request_param(request, "REQUEST_ID");
    if (is_id(theirs)) {
        memcpy(request->id, theirs, strlen(theirs) + 1);
        return;
    }
    if (getrandom(random, sizeof(random), GRND_NONBLOCK) < 0)
        memcpy(random, &request->arrived_us, sizeof(request->arrived_us));
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(request->id + 2 * i, 3, "%02x", random[i]);
}

/*
 * How much may be written after poll has said "writable". A Unix socket says so when at least
 * 3/4 of its buffer are free (Linux, unix_writable), a TCP one at 1/3 (sk_stream_is_writable):
 * a quarter is safe for both. It saves a poll on most tokens.
 */
static size_t credit_of(int fd)
{
    int send_buffer = 0;
    socklen_t len = sizeof(send_buffer);

    if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, &len) != 0 || send_buffer <= 0)
        return 0;
    size_t quarter = (size_t)send_buffer / 4;
    return quarter < CREDIT_MAX_BYTES ? quarter : CREDIT_MAX_BYTES;
}

/* Off while the client does not read, which the stall timeout judges, and when the reply has
 * been made: what is left of it may take its time. */
static void limit_writing(struct connection *connection, bool limited)
{
    if (connection->is_unlimited == !limited)
        return;
    connection->is_unlimited = !limited;
    tcp_limit_writing(connection->fd, connection->peer_timeout_ms, limited);
}

static int accept_fed(FCGX_Request *fcgx, int connection_fd)
{
    FCGX_InitRequest(fcgx, -1, 0);
    fcgx->ipcFd = feed_fd;
    fcgx->keepConnection = 1; /* else the implied FCGX_Finish_r closes what it is given */
    if (FCGX_Accept_r(fcgx) != 0) {
        feed_fd = -1; /* libfcgi has closed it */
        return -1;
    }
    fcgx->ipcFd = connection_fd;
    FCGX_FreeStream(&fcgx->in); /* 8 KiB: the body is ours already */
    return 0;
}

struct request *request_open(struct connection *connection, const struct request_owner *owner)
{
    struct buffer records;
    struct request *request = calloc(1, sizeof(*request));

    if (request == NULL)
        return NULL;
    buffer_init(&records, REQUEST_RECORDS_MAX_BYTES);
    request->connection = connection;
    request->owner = *owner;
    request->arrived_us = clock_monotonic_us();
    request->reply_lines = "";
    request->credit_max = credit_of(connection->fd);
    limit_writing(connection, true);
    request->body_too_large = connection->parser.body_too_large;
    connection->request_id = connection->parser.request_id;
    if (record_take(&connection->parser, &records, &request->body) != 0 ||
        feed(&records) != 0 || accept_fed(&request->fcgx, connection->fd) != 0) {
        buffer_free(&records);
        buffer_free(&request->body);
        free(request);
        return NULL;
    }
    buffer_free(&records);
    choose_id(request);
    return request;
}

/* --- what was asked --- */

const char *request_param(const struct request *request, const char *name)
{
    const char *value = FCGX_GetParam(name, request->fcgx.envp);

    return value != NULL ? value : "";
}

const char *request_method(const struct request *request)
{
    return request_param(request, "REQUEST_METHOD");
}

const char *request_path(const struct request *request)
{
    const char *path = request_param(request, "DOCUMENT_URI");

    if (path[0] == '\0')
        path = request_param(request, "PATH_INFO");
    return path[0] != '\0' ? path : request_param(request, "SCRIPT_NAME");
}

const char *request_query(const struct request *request)
{
    return request_param(request, "QUERY_STRING");
}

const char *request_id(const struct request *request)
{
    return request->id;
}

void request_set_reply_lines(struct request *request, const char *lines)
{
    request->reply_lines = lines;
}

const char *request_reply_lines(const struct request *request)
{
    return request->reply_lines;
}

int64_t request_arrived_us(const struct request *request)
{
    return request->arrived_us;
}

bool request_body(const struct request *request, const char **bytes, size_t *len)
{
    *bytes = request->body.data != NULL ? request->body.data : "";
    *len = request->body.len;
    return !request->body_too_large;
}

/* --- the sink --- */

static int sink_write(void *context, const char *bytes, size_t len)
{
    struct request *request = context;

    if (request->failed || FCGX_PutStr(bytes, (int)len, request->fcgx.out) != (int)len)
        request->failed = true;
    request->unflushed += len;
    return request->failed ? -1 : 0;
}

static void spend_credit(struct request *request)
{
    size_t cost = request->unflushed + WRITE_OVERHEAD_BYTES;

    request->credit -= cost < request->credit ? cost : request->credit;
    request->unflushed = 0;
}

static int sink_flush(void *context)
{
    struct request *request = context;

    if (!request->failed && FCGX_FFlush(request->fcgx.out) != 0)
        request->failed = true;
    spend_credit(request);
    return request->failed ? -1 : 0;
}

static bool sink_writable(void *context)
{
    struct request *request = context;
    struct pollfd out = {.fd = request->connection->fd, .events = POLLOUT};

    if (request->credit >= SINK_WRITE_MAX_BYTES + WRITE_OVERHEAD_BYTES)
        return true;
    /* An error counts as writable: the write will tell which. */
    bool writable = poll(&out, 1, 0) == 1 && out.revents != 0;
    if (!writable) {
        limit_writing(request->connection, false);
        return false;
    }
    if (request->connection->is_unlimited && !tcp_has_unsent(request->connection->fd))
        limit_writing(request->connection, true);
    request->credit = request->credit_max;
    return true;
}

static void sink_soon(const void *context)
{
    const struct request *request = context;

    __builtin_prefetch(request->fcgx.out);
    __builtin_prefetch(request->fcgx.out->wrNext, 1);
    __builtin_prefetch(request->fcgx.out->data);
}

static enum sink_peer sink_peer(void *context)
{
    struct request *request = context;
    struct connection *connection = request->connection;
    char head[RECORD_HEADER_BYTES];

    if (record_is_abort(connection->unread.data, connection->unread.len,
                        connection->request_id))
        return SINK_ABORTED;
    ssize_t len = recv(connection->fd, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);
    if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
        return SINK_HUNG_UP;
    if (len > 0 && record_is_abort(head, (size_t)len, connection->request_id))
        return SINK_ABORTED;
    return SINK_PRESENT;
}

static int sink_end(void *context)
{
    struct request *request = context;

    /* The last writer that is closed writes END_REQUEST, in one piece with what is buffered. */
    if (request->failed || FCGX_FClose(request->fcgx.err) != 0 ||
        FCGX_FClose(request->fcgx.out) != 0)
        request->failed = true;
    else
        request->ended = true;
    limit_writing(request->connection, false);
    spend_credit(request);
    return request->failed ? -1 : 0;
}

static void sink_release(void *context)
{
    struct request *request = context;
    struct connection *connection = request->connection;
    struct request_owner owner = request->owner;
    bool reusable = request->ended && !request->failed && request->fcgx.keepConnection != 0;

    FCGX_Free(&request->fcgx, 0);
    buffer_free(&request->body);
    free(request);
    owner.release(owner.context, connection, reusable);
}

static int sink_descriptor(void *context)
{
    const struct request *request = context;

    return request->connection->fd;
}

struct sink request_sink(struct request *request)
{
    static const struct sink_ops ops = {
        .write = sink_write,
        .flush = sink_flush,
        .writable = sink_writable,
        .soon = sink_soon,
        .peer = sink_peer,
        .end = sink_end,
        .release = sink_release,
        .descriptor = sink_descriptor,
    };
    /* Whoever answers later needs the reply's writer alone. */
    buffer_free(&request->body);
    return (struct sink){.ops = &ops, .context = request};
}

void request_reply(struct request *request, const struct buffer *reply)
{
    bool fits = !reply->failed && reply->len <= REQUEST_REPLY_MAX_BYTES;
    int result = fits && sink_writable(request) ? 0 : -1;

    for (size_t sent = 0; result == 0 && sent < reply->len;) {
        size_t left = reply->len - sent;
        size_t piece = left < SINK_WRITE_MAX_BYTES ? left : SINK_WRITE_MAX_BYTES;
        result = sink_write(request, reply->data + sent, piece);
        sent += piece;
        if (result == 0 && sent < reply->len)
            result = sink_flush(request);
    }
    if (result == 0)
        sink_end(request);
    sink_release(request);
}

/* --- the self-test --- */

struct self_test {
    int fds[2];
    struct connection connection;
    bool released, reusable;
};

static void self_test_release(void *context, struct connection *connection, bool reusable)
{
    struct self_test *test = context;

    (void)connection;
    test->released = true;
    test->reusable = reusable;
}

/* BEGIN_REQUEST (id 1, responder, keep), PARAMS with A=b, the empty PARAMS and STDIN. */
static const char self_test_request[] = "\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0"
                                        "\1\4\0\1\0\4\4\0\1\1Ab\0\0\0\0"
                                        "\1\4\0\1\0\0\0\0\1\5\0\1\0\0\0\0";
static const char self_test_reply[] = "\1\6\0\1\0\2\6\0ok\0\0\0\0\0\0"
                                      "\1\6\0\1\0\0\0\0"
                                      "\1\3\0\1\0\10\0\0\0\0\0\0\0\0\0\0";

static const char *run_self_test(struct self_test *test)
{
    const struct record_limits limits = {.params_max_bytes = 1024, .body_max_bytes = 1024};
    const struct request_owner owner = {.release = self_test_release, .context = test};
    struct buffer reply;
    char answer[sizeof(self_test_reply)] = {0};
    size_t used;

    test->connection.fd = test->fds[0];
    record_init(&test->connection.parser, &limits);
    buffer_init(&test->connection.unread, 1024);
    if (record_parse(&test->connection.parser, self_test_request, sizeof(self_test_request) - 1,
                     &used) != RECORD_REQUEST)
        return "the record parser does not see a whole request";
    struct request *request = request_open(&test->connection, &owner);
    if (request == NULL)
        return "FCGX_Accept_r does not take a request from ipcFd";
    bool decoded = strcmp(request_param(request, "A"), "b") == 0;
    buffer_init(&reply, 16);
    buffer_append_text(&reply, "ok");
    request_reply(request, &reply);
    buffer_free(&reply);
    if (!decoded)
        return "a parameter was not decoded";
    if (!test->released || !test->reusable)
        return "keepConnection is not taken from BEGIN_REQUEST";
    ssize_t len = recv(test->fds[1], answer, sizeof(answer), MSG_DONTWAIT);
    if (len != (ssize_t)sizeof(self_test_reply) - 1 ||
        memcmp(answer, self_test_reply, sizeof(self_test_reply) - 1) != 0)
        return "the reply did not come out on the connection as expected";
    return NULL;
}

int request_self_test(char error[200])
{
    struct self_test test = {.released = false};

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, test.fds) != 0) {
        snprintf(error, 200, "no socketpair: %s", strerror(errno));
        return -1;
    }
    const char *wrong = run_self_test(&test);
    record_free(&test.connection.parser);
    close(test.fds[0]);
    close(test.fds[1]);
    if (wrong != NULL)
        snprintf(error, 200, "this libfcgi is not one that runnel can work with: %s", wrong);
    return wrong != NULL ? -1 : 0;
}
