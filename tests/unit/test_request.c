/*
 * request: from vetted bytes through libfcgi to the reply, over a socketpair; and the sink,
 * whose peer reads, does not read, asks to stop, or is gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fastcgi/request.h"
#include "tests/unit/captured_nginx.h"
#include "tests/unit/fake_peer.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A connection with the web server's end of it in the test's hands. */
struct wire {
    int peer; /* -1 once it is closed */
    struct connection connection;
    unsigned releases;
    bool reusable;
};

static void on_release(void *context, struct connection *connection, bool reusable)
{
    struct wire *wire = context;

    assert_ptr_equal(connection, &wire->connection);
    wire->releases++;
    wire->reusable = reusable;
}

static const struct record_limits limits = {.params_max_bytes = 128 << 10,
                                            .body_max_bytes = 10000};

static int open_library(void **state)
{
    (void)state;
    if (request_library_init() != 0)
        return -1;
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

/* Nothing here may block; if it does, the test ends. */
static int set_alarm(void **state)
{
    (void)state;
    alarm(60);
    return 0;
}

static void wire_open(struct wire *wire)
{
    int fds[2];

    memset(wire, 0, sizeof(*wire));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    wire->connection.fd = fds[0];
    wire->peer = fds[1];
    record_init(&wire->connection.parser, &limits);
    buffer_init(&wire->connection.unread, 1 << 16);
}

static void wire_hang_up(struct wire *wire)
{
    close(wire->peer);
    wire->peer = -1;
}

static void wire_close(struct wire *wire)
{
    if (wire->peer >= 0)
        close(wire->peer);
    close(wire->connection.fd);
    record_free(&wire->connection.parser);
    buffer_free(&wire->connection.unread);
}

/* The request that the bytes are; NULL when it is refused, by the parser or by libfcgi. */
static struct request *wire_try_request(struct wire *wire, const char *bytes, size_t len)
{
    const struct request_owner owner = {.release = on_release, .context = wire};
    size_t used;

    if (record_parse(&wire->connection.parser, bytes, len, &used) == RECORD_BAD) {
        record_free(&wire->connection.parser);
        record_init(&wire->connection.parser, &limits);
        return NULL;
    }
    assert_int_equal(used, len);
    return request_open(&wire->connection, &owner);
}

static struct request *wire_request(struct wire *wire, unsigned id, unsigned flags,
                                    const char *body)
{
    struct buffer bytes;

    buffer_init(&bytes, 1 << 20);
    peer_request(&bytes, id, flags, "/stream", "prompt=hello", body);
    struct request *request = wire_try_request(wire, bytes.data, bytes.len);
    assert_non_null(request);
    buffer_free(&bytes);
    return request;
}

/* A request of pairs: name, value, name, value, NULL. */
static struct request *wire_request_of(struct wire *wire, const char *const *pairs)
{
    struct buffer bytes;
    struct buffer params;

    buffer_init(&bytes, 1 << 20);
    buffer_init(&params, 1 << 20);
    for (; *pairs != NULL; pairs += 2)
        peer_pair(&params, pairs[0], pairs[1]);
    peer_begin(&bytes, 1, 1, 0);
    peer_stream(&bytes, PEER_PARAMS, 1, params.data, params.len, 30000, 3);
    peer_stream(&bytes, PEER_STDIN, 1, "", 0, 1, 0);
    struct request *request = wire_try_request(wire, bytes.data, bytes.len);
    buffer_free(&bytes);
    buffer_free(&params);
    assert_non_null(request);
    return request;
}

static void reply_with(struct request *request, const char *text)
{
    struct buffer reply;

    buffer_init(&reply, 1 << 20);
    buffer_append_text(&reply, text);
    request_reply(request, &reply);
    buffer_free(&reply);
}

static void assert_reply(struct wire *wire, unsigned id, const char *wanted)
{
    char *text = peer_read_reply(wire->peer, id);

    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

static void test_self_test(void **state)
{
    char error[200] = "";

    (void)state;
    for (int i = 0; i < 5; i++) {
        if (request_self_test(error) != 0)
            fail_msg("%s", error);
    }
}

static void test_requests_of_nginx(void **state)
{
    struct wire wire;
    const char *body;
    size_t len;

    (void)state;
    wire_open(&wire);
    struct request *request =
        wire_try_request(&wire, (const char *)captured_get, sizeof(captured_get));
    assert_non_null(request);
    assert_string_equal(request_method(request), "GET");
    assert_string_equal(request_path(request), "/stream");
    assert_string_equal(request_query(request), "prompt=hello&max_tokens=20");
    assert_string_equal(request_id(request), "abc-1");
    assert_string_equal(request_param(request, "SERVER_PROTOCOL"), "HTTP/1.1");
    assert_string_equal(request_param(request, "CONTENT_TYPE"), "");
    assert_string_equal(request_param(request, "NOT_SENT"), "");
    assert_string_equal(request_param(request, "SERVER"), ""); /* no prefix of a name */
    assert_true(request_body(request, &body, &len));
    assert_int_equal(len, 0);
    reply_with(request, "Status: 200 OK\r\n\r\none");
    assert_reply(&wire, 1, "Status: 200 OK\r\n\r\none");
    assert_int_equal(wire.releases, 1);
    assert_true(wire.reusable);

    /* And the next on the same connection. */
    request = wire_try_request(&wire, (const char *)captured_post, sizeof(captured_post));
    assert_non_null(request);
    assert_string_equal(request_method(request), "POST");
    assert_string_equal(request_path(request), "/generate");
    assert_string_equal(request_query(request), "");
    assert_int_equal(strlen(request_id(request)), 32);
    assert_string_equal(request_id(request), request_param(request, "REQUEST_ID"));
    assert_true(request_body(request, &body, &len));
    assert_int_equal(len, 34);
    assert_memory_equal(body, "{\"prompt\":\"hello\",\"max_tokens\":20}", len);
    reply_with(request, "two");
    assert_reply(&wire, 1, "two");
    assert_int_equal(wire.releases, 2);
    wire_close(&wire);
}

#define SIXTEEN    "0123456789abcdef"
#define SIXTY_FOUR SIXTEEN SIXTEEN SIXTEEN SIXTEEN

static void test_choice_of_the_id(void **state)
{
    static const struct {
        const char *theirs; /* X-Request-Id; NULL: not sent */
        const char *nginx;  /* REQUEST_ID */
        const char *chosen; /* NULL: a random one */
    } rows[] = {
        {"abc-1", SIXTEEN, "abc-1"},
        {"a", NULL, "a"},
        {"A.z_0-9", SIXTEEN, "A.z_0-9"},
        {SIXTY_FOUR, SIXTEEN, SIXTY_FOUR},
        {SIXTY_FOUR "x", SIXTEEN, SIXTEEN},
        {"", SIXTEEN, SIXTEEN},
        {NULL, SIXTEEN, SIXTEEN},
        {"a b", SIXTEEN, SIXTEEN},
        {"a\r\nSet-Cookie: x", SIXTEEN, SIXTEEN},
        {"a/b", SIXTEEN, SIXTEEN},
        {"a,b", SIXTEEN, SIXTEEN},
        {u8"\u00e9", SIXTEEN, SIXTEEN},
        {"a\"", SIXTEEN, SIXTEEN},
        {NULL, NULL, NULL},
        {"a b", NULL, NULL},
        {NULL, "not valid!", NULL},
        {NULL, SIXTY_FOUR "x", NULL},
    };
    char previous[65] = "";

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        const char *pairs[5] = {NULL};
        size_t count = 0;
        struct wire wire;

        if (rows[row].theirs != NULL) {
            pairs[count++] = "HTTP_X_REQUEST_ID";
            pairs[count++] = rows[row].theirs;
        }
        if (rows[row].nginx != NULL) {
            pairs[count++] = "REQUEST_ID";
            pairs[count++] = rows[row].nginx;
        }
        wire_open(&wire);
        struct request *request = wire_request_of(&wire, pairs);
        if (rows[row].chosen != NULL) {
            assert_string_equal(request_id(request), rows[row].chosen);
        } else {
            assert_int_equal(strlen(request_id(request)), 32);
            assert_int_equal(strspn(request_id(request), SIXTEEN), 32);
            assert_string_not_equal(request_id(request), previous);
            snprintf(previous, sizeof(previous), "%s", request_id(request));
        }
        reply_with(request, "x");
        wire_close(&wire);
    }
}

static void test_choice_of_the_path(void **state)
{
    static const struct {
        const char *pairs[8];
        const char *path;
    } rows[] = {
        {{"DOCUMENT_URI", "/a", "PATH_INFO", "/b", "SCRIPT_NAME", "/c"}, "/a"},
        {{"SCRIPT_NAME", "/c", "PATH_INFO", "/b"}, "/b"},
        {{"PATH_INFO", "", "SCRIPT_NAME", "/c"}, "/c"},
        {{"DOCUMENT_URI", "", "PATH_INFO", "", "SCRIPT_NAME", ""}, ""},
        {{"X", "y"}, ""},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct wire wire;

        wire_open(&wire);
        struct request *request = wire_request_of(&wire, rows[row].pairs);
        assert_string_equal(request_path(request), rows[row].path);
        assert_string_equal(request_method(request), "");
        reply_with(request, "x");
        wire_close(&wire);
    }
}

static void test_long_params(void **state)
{
    static char value[100001];
    const char *pairs[] = {"QUERY_STRING", value, "DOCUMENT_URI", "/behind", NULL};
    struct wire wire;

    (void)state;
    memset(value, 'q', sizeof(value) - 1);
    wire_open(&wire);
    struct request *request = wire_request_of(&wire, pairs);
    assert_string_equal(request_query(request), value);
    assert_string_equal(request_path(request), "/behind");
    reply_with(request, "x");
    wire_close(&wire);
    /* A shorter one after it sees nothing of it. */
    wire_open(&wire);
    request = wire_request(&wire, 1, 0, NULL);
    assert_string_equal(request_query(request), "prompt=hello");
    reply_with(request, "x");
    wire_close(&wire);
}

/* Pairs whose lengths do not fit their stream: refused, and the next request is served. */
static void test_malformed_params(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        {"\1", 1},
        {"\5\1ab", 4},
        {"\1\5ab", 4},
        {"\1\1Ab\1", 5},
        {"\x80\0\0", 3},
        {"\1\x80\0\0\5ab", 7},
        {"\x80\0\xff\xff\1ab", 7},
        {"\xc0\0\0\0\1ab", 7},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct wire wire;
        struct buffer bytes;

        wire_open(&wire);
        buffer_init(&bytes, 1 << 20);
        peer_begin(&bytes, 1, 1, 1);
        peer_stream(&bytes, PEER_PARAMS, 1, rows[row].bytes, rows[row].len, 65535, 0);
        peer_stream(&bytes, PEER_STDIN, 1, "body", 4, 65535, 0);
        struct request *request = wire_try_request(&wire, bytes.data, bytes.len);
        buffer_free(&bytes);
        if (request != NULL)
            fail_msg("row %zu: taken", row);
        assert_int_equal(wire.releases, 0); /* the connection stays the caller's */
        reply_with(wire_request(&wire, 2, 1, NULL), "fine");
        assert_reply(&wire, 2, "fine");
        wire_close(&wire);
    }
}

/* libfcgi allocates what the lengths say before it looks for the bytes: sums beyond an int
 * write over its heap (CVE-2025-23016) or end the process, so this is looked at from outside.
 */
static void test_params_of_absurd_lengths(void **state)
{
    static const struct {
        const char *lengths;
    } rows[] = {
        {"\xff\xff\xff\xff\xff\xff\xff\xff"}, {"\xff\xff\xff\xfe\xff\xff\xff\xff"},
        {"\xff\xff\xff\xff\x80\0\0\1"},       {"\x80\0\0\1\xff\xff\xff\xff"},
        {"\xff\xff\xff\xfd\x80\0\0\1"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
            static char params[100000];
            struct wire wire;
            struct buffer bytes;

            memset(params, 'A', sizeof(params));
            memcpy(params, rows[row].lengths, 8);
            wire_open(&wire);
            buffer_init(&bytes, 1 << 20);
            peer_begin(&bytes, 1, 1, 1);
            peer_stream(&bytes, PEER_PARAMS, 1, params, sizeof(params), 65535, 0);
            peer_stream(&bytes, PEER_STDIN, 1, "", 0, 1, 0);
            _exit(wire_try_request(&wire, bytes.data, bytes.len) == NULL ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("row %zu: status %d", row, status);
    }
}

static void test_bodies(void **state)
{
    static char body[10002];
    const char *bytes;
    size_t len;
    struct wire wire;

    (void)state;
    for (size_t size = 9999; size <= 10001; size++) {
        memset(body, 'b', size);
        body[size] = '\0';
        wire_open(&wire);
        struct request *request = wire_request(&wire, 1, 1, body);
        assert_int_equal(request_body(request, &bytes, &len), size <= 10000);
        if (size <= 10000) {
            assert_int_equal(len, size);
            assert_memory_equal(bytes, body, size);
        }
        reply_with(request, "answered all the same");
        assert_reply(&wire, 1, "answered all the same");
        assert_true(wire.reusable);
        wire_close(&wire);
    }
}

/* --- replies --- */

static void test_keep_flag(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags < 2; flags++) {
        struct wire wire;

        wire_open(&wire);
        reply_with(wire_request(&wire, 7, flags, NULL), "x");
        assert_reply(&wire, 7, "x");
        assert_int_equal(wire.releases, 1);
        assert_int_equal(wire.reusable, flags == PEER_KEEP);
        wire_close(&wire);
    }
}

static void test_many_requests_on_one_connection(void **state)
{
    struct wire wire;

    (void)state;
    wire_open(&wire);
    for (unsigned i = 1; i <= 300; i++) {
        char text[32];
        snprintf(text, sizeof(text), "reply %u", i);
        reply_with(wire_request(&wire, i * 200 % 65535 + 1, 1, "some body"), text);
        assert_reply(&wire, i * 200 % 65535 + 1, text);
        assert_int_equal(wire.releases, i);
        assert_true(wire.reusable);
    }
    wire_close(&wire);
}

/* All are open at once, and are answered in another order. */
static void test_many_connections_at_once(void **state)
{
    enum { COUNT = 50 };
    static struct wire wires[COUNT];
    struct request *requests[COUNT];

    (void)state;
    for (unsigned i = 0; i < COUNT; i++) {
        char body[16];
        wire_open(&wires[i]);
        snprintf(body, sizeof(body), "body %u", i);
        requests[i] = wire_request(&wires[i], i + 1, i % 2, body);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        unsigned at = i * 7 % COUNT;
        const char *body;
        size_t len;
        char text[32];
        request_body(requests[at], &body, &len);
        snprintf(text, sizeof(text), "%.*s", (int)len, body);
        reply_with(requests[at], text);
        snprintf(text, sizeof(text), "body %u", at);
        assert_reply(&wires[at], at + 1, text);
        assert_int_equal(wires[at].reusable, at % 2);
        wire_close(&wires[at]);
    }
}

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void test_no_descriptor_is_lost(void **state)
{
    struct wire wire;
    size_t before = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        if (i == 1) /* the first one makes the memory file */
            before = count_descriptors();
        wire_open(&wire);
        struct request *request = wire_request(&wire, 1, 0, NULL);
        if (i % 2)
            wire_hang_up(&wire);
        reply_with(request, "x");
        wire_close(&wire);
    }
    assert_int_equal(count_descriptors(), before);
}

/* A peer that reads while it is sent gets it all; one that does not is cut off, without a wait.
 */
static void test_a_large_reply(void **state)
{
    static const struct {
        size_t len;
        bool whole;
    } rows[] = {{0, true},    {1, true},     {7999, true},    {8000, true},
                {8001, true}, {30000, true}, {5000000, false}};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct wire wire;
        struct buffer reply;

        wire_open(&wire);
        buffer_init(&reply, 8 << 20);
        for (size_t i = 0; i < rows[row].len; i++)
            buffer_append_char(&reply, (char)('a' + i % 26));
        request_reply(wire_request(&wire, 1, 1, NULL), &reply);
        assert_int_equal(wire.releases, 1);
        assert_int_equal(wire.reusable, rows[row].whole);
        if (rows[row].whole) {
            buffer_append_char(&reply, '\0');
            assert_reply(&wire, 1, reply.data);
        } else {
            shutdown(wire.connection.fd, SHUT_RDWR);
            assert_null(peer_read_reply(wire.peer, 1)); /* no END_REQUEST */
        }
        buffer_free(&reply);
        wire_close(&wire);
    }
}

/* A peer to which nothing was sent before has refused nothing yet: it gets all that is allowed.
 */
static void test_the_longest_reply(void **state)
{
    struct wire wire;
    struct buffer reply;

    (void)state;
    wire_open(&wire);
    buffer_init(&reply, 1 << 20);
    for (size_t i = 0; i < REQUEST_REPLY_MAX_BYTES; i++)
        buffer_append_char(&reply, 'x');
    request_reply(wire_request(&wire, 1, 1, NULL), &reply);
    buffer_free(&reply);
    shutdown(wire.connection.fd, SHUT_WR);
    char *text = peer_read_reply(wire.peer, 1);
    size_t len = text != NULL ? strlen(text) : 0;
    free(text);
    wire_close(&wire);
    assert_int_equal(len, REQUEST_REPLY_MAX_BYTES);
}

static void test_a_reply_that_could_not_be_made(void **state)
{
    struct wire wire;
    struct buffer reply;

    (void)state;
    wire_open(&wire);
    buffer_init(&reply, 3);
    buffer_append_text(&reply, "too long");
    assert_true(reply.failed);
    request_reply(wire_request(&wire, 1, 1, NULL), &reply);
    assert_int_equal(wire.releases, 1);
    assert_false(wire.reusable); /* cut off: half a reply is not a reply */
    shutdown(wire.connection.fd, SHUT_RDWR);
    assert_null(peer_read_reply(wire.peer, 1));
    wire_close(&wire);
}

static void test_a_reply_to_nobody(void **state)
{
    struct wire wire;

    (void)state;
    wire_open(&wire);
    struct request *request = wire_request(&wire, 1, 1, NULL);
    wire_hang_up(&wire);
    reply_with(request, "x");
    assert_int_equal(wire.releases, 1);
    assert_false(wire.reusable);
    wire_close(&wire);
}

/* --- the sink --- */

static void test_a_stream_through_the_sink(void **state)
{
    struct wire wire;
    struct peer_reply *reply = malloc(sizeof(*reply));

    (void)state;
    assert_non_null(reply);
    wire_open(&wire);
    struct sink sink = request_sink(wire_request(&wire, 3, 1, "a body"));
    assert_int_equal(sink.ops->descriptor(sink.context), wire.connection.fd);
    for (int i = 0; i < 20; i++) {
        char token[16];
        int len = snprintf(token, sizeof(token), "token %d;", i);
        assert_true(sink.ops->writable(sink.context));
        assert_int_equal(sink.ops->write(sink.context, token, (size_t)len), 0);
        assert_int_equal(recv(wire.peer, token, 1, MSG_DONTWAIT), -1); /* only buffered */
        assert_int_equal(sink.ops->flush(sink.context), 0);
        /* One flush, one record. */
        assert_int_equal(peer_receive(wire.peer, reply), 1);
        assert_int_equal(reply->type, PEER_STDOUT);
        assert_int_equal(reply->id, 3);
        assert_int_equal(reply->len, len);
        assert_memory_equal(reply->content, token, 1);
    }
    assert_int_equal(sink.ops->write(sink.context, "last", 4), 0);
    assert_int_equal(sink.ops->end(sink.context), 0);
    assert_int_equal(wire.releases, 0);
    sink.ops->release(sink.context);
    assert_int_equal(wire.releases, 1);
    assert_true(wire.reusable);
    assert_reply(&wire, 3, "last");
    free(reply);
    wire_close(&wire);
}

static void test_release_before_the_end_cuts_off(void **state)
{
    struct wire wire;

    (void)state;
    wire_open(&wire);
    struct sink sink = request_sink(wire_request(&wire, 1, 1, NULL));
    assert_int_equal(sink.ops->write(sink.context, "half", 4), 0);
    assert_int_equal(sink.ops->flush(sink.context), 0);
    sink.ops->release(sink.context);
    assert_int_equal(wire.releases, 1);
    assert_false(wire.reusable);
    shutdown(wire.connection.fd, SHUT_RDWR);
    assert_null(peer_read_reply(wire.peer, 1));
    wire_close(&wire);
}

/* The most that may be written at once never blocks when the sink has said that it is writable;
 * when the socket is full it says so, and when it has been read, it says that too. */
static void test_writable(void **state)
{
    static char bytes[SINK_WRITE_MAX_BYTES];
    static const size_t sizes[] = {1, 30, 1000, SINK_WRITE_MAX_BYTES};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(sizes); row++) {
        struct wire wire;
        char sponge[65536];

        wire_open(&wire);
        struct sink sink = request_sink(wire_request(&wire, 1, 1, NULL));
        for (int round = 0; round < 3; round++) {
            size_t flushes = 0;
            while (sink.ops->writable(sink.context)) {
                assert_int_equal(sink.ops->write(sink.context, bytes, sizes[row]), 0);
                assert_int_equal(sink.ops->flush(sink.context), 0);
                assert_true(++flushes < 100000);
            }
            assert_true(flushes > 0);
            assert_false(sink.ops->writable(sink.context));
            while (recv(wire.peer, sponge, sizeof(sponge), MSG_DONTWAIT) > 0)
                continue;
            assert_true(sink.ops->writable(sink.context));
        }
        sink.ops->release(sink.context);
        wire_close(&wire);
    }
}

/* Also with the smallest buffer that the kernel gives, or nothing would be promised at all. */
static void test_writable_with_a_small_buffer(void **state)
{
    static char bytes[SINK_WRITE_MAX_BYTES];
    struct wire wire;
    int small = 65536;
    const struct timeval limit = {.tv_sec = 5};

    (void)state;
    wire_open(&wire);
    assert_int_equal(
        setsockopt(wire.connection.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    assert_int_equal(
        setsockopt(wire.connection.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)), 0);
    struct sink sink = request_sink(wire_request(&wire, 1, 1, NULL));
    int flushes = 0;
    while (sink.ops->writable(sink.context)) {
        assert_int_equal(sink.ops->write(sink.context, bytes, sizeof(bytes)), 0);
        assert_int_equal(sink.ops->flush(sink.context), 0); /* no timeout */
        flushes++;
    }
    assert_in_range(flushes, 1, 20);
    sink.ops->release(sink.context);
    wire_close(&wire);
}

static enum sink_peer peer_of(struct sink *sink)
{
    return sink->ops->peer(sink->context);
}

static void test_peer(void **state)
{
    static const struct {
        const char *sent;
        size_t len;
        enum sink_peer peer;
    } rows[] = {
        {"", 0, SINK_PRESENT},
        {"\1\2\0\5\0\0\0\0", 8, SINK_ABORTED},
        {"\1\2\0\5\0\0\0\0\1\1\0\6", 12, SINK_ABORTED},
        {"\1\2\0\6\0\0\0\0", 8, SINK_PRESENT}, /* another request's */
        {"\1\2\0\5\0\0\0", 7, SINK_PRESENT},   /* not yet whole */
        {"\1\1\0\6\0\10\0\0", 8, SINK_PRESENT},
        {"x", 1, SINK_PRESENT},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct wire wire;

        wire_open(&wire);
        struct sink sink = request_sink(wire_request(&wire, 5, 1, NULL));
        assert_int_equal(peer_of(&sink), SINK_PRESENT);
        if (rows[row].len > 0)
            assert_int_equal(send(wire.peer, rows[row].sent, rows[row].len, 0), rows[row].len);
        assert_int_equal(peer_of(&sink), rows[row].peer);
        assert_int_equal(peer_of(&sink), rows[row].peer); /* looking takes nothing away */
        if (rows[row].len == 7) {
            assert_int_equal(send(wire.peer, "\0", 1, 0), 1);
            assert_int_equal(peer_of(&sink), SINK_ABORTED);
        }
        sink.ops->release(sink.context);
        wire_close(&wire);
    }
}

/* What came behind the request in one read is looked at as well. */
static void test_an_abort_that_came_with_the_request(void **state)
{
    struct wire wire;

    (void)state;
    wire_open(&wire);
    struct request *request = wire_request(&wire, 5, 1, NULL);
    buffer_append(&wire.connection.unread, "\1\2\0\5\0\0\0\0", 8);
    struct sink sink = request_sink(request);
    assert_int_equal(peer_of(&sink), SINK_ABORTED);
    sink.ops->release(sink.context);
    wire_close(&wire);
}

static void test_peer_that_is_gone(void **state)
{
    enum { CLOSED, HALF_CLOSED, CLOSED_WITH_DATA_UNREAD, WAYS };

    (void)state;
    for (int way = CLOSED; way < WAYS; way++) {
        struct wire wire;

        wire_open(&wire);
        struct sink sink = request_sink(wire_request(&wire, 1, 1, NULL));
        if (way == CLOSED_WITH_DATA_UNREAD) {
            assert_int_equal(sink.ops->write(sink.context, "token", 5), 0);
            assert_int_equal(sink.ops->flush(sink.context), 0);
        }
        assert_int_equal(peer_of(&sink), SINK_PRESENT);
        if (way == HALF_CLOSED)
            assert_int_equal(shutdown(wire.peer, SHUT_WR), 0);
        else
            wire_hang_up(&wire);
        assert_int_equal(peer_of(&sink), SINK_HUNG_UP);
        assert_int_equal(peer_of(&sink), SINK_HUNG_UP);
        sink.ops->release(sink.context);
        assert_false(wire.reusable);
        wire_close(&wire);
    }
}

/* It fails at the flush, and from then on always; writable says yes, so that the failure is
 * met. */
static void test_a_write_to_nobody_is_latched(void **state)
{
    struct wire wire;

    (void)state;
    wire_open(&wire);
    struct sink sink = request_sink(wire_request(&wire, 1, 1, NULL));
    assert_int_equal(sink.ops->write(sink.context, "token", 5), 0);
    assert_int_equal(sink.ops->flush(sink.context), 0);
    wire_hang_up(&wire);
    assert_true(sink.ops->writable(sink.context));
    assert_int_equal(sink.ops->write(sink.context, "token", 5), 0);
    assert_int_equal(sink.ops->flush(sink.context), -1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sink.ops->write(sink.context, "token", 5), -1);
        assert_int_equal(sink.ops->flush(sink.context), -1);
    }
    assert_int_equal(sink.ops->end(sink.context), -1);
    sink.ops->release(sink.context);
    assert_int_equal(wire.releases, 1);
    assert_false(wire.reusable);
    wire_close(&wire);
}

static void test_an_end_to_nobody(void **state)
{
    struct wire wire;

    (void)state;
    wire_open(&wire);
    struct sink sink = request_sink(wire_request(&wire, 1, 1, NULL));
    wire_hang_up(&wire);
    assert_int_equal(sink.ops->write(sink.context, "last", 4), 0);
    assert_int_equal(sink.ops->end(sink.context), -1);
    sink.ops->release(sink.context);
    assert_false(wire.reusable);
    wire_close(&wire);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_alarm)
    const struct CMUnitTest tests[] = {
        TEST(test_self_test),
        TEST(test_requests_of_nginx),
        TEST(test_choice_of_the_id),
        TEST(test_choice_of_the_path),
        TEST(test_long_params),
        TEST(test_malformed_params),
        TEST(test_params_of_absurd_lengths),
        TEST(test_bodies),
        TEST(test_keep_flag),
        TEST(test_many_requests_on_one_connection),
        TEST(test_many_connections_at_once),
        TEST(test_no_descriptor_is_lost),
        TEST(test_a_large_reply),
        TEST(test_the_longest_reply),
        TEST(test_a_reply_that_could_not_be_made),
        TEST(test_a_reply_to_nobody),
        TEST(test_a_stream_through_the_sink),
        TEST(test_release_before_the_end_cuts_off),
        TEST(test_writable),
        TEST(test_writable_with_a_small_buffer),
        TEST(test_peer),
        TEST(test_an_abort_that_came_with_the_request),
        TEST(test_peer_that_is_gone),
        TEST(test_a_write_to_nobody_is_latched),
        TEST(test_an_end_to_nobody),
    };
#undef TEST

    return cmocka_run_group_tests(tests, open_library, NULL);
}
