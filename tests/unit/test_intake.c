/*
 * intake: a real listening socket, and peers that keep to the protocol or do not. A peer is
 * served whatever the others do; what is not FastCGI is closed; nothing reaches the handler but
 * whole requests. Each wait is for a descriptor or a condition, with a limit that only a hang
 * reaches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fastcgi/intake.h"
#include "fastcgi/listener.h"
#include "tests/unit/captured_nginx.h"
#include "tests/unit/fake_peer.h"
#include "tests/unit/scratch.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { HELD_MAX = 64, BODY_MAX_BYTES = 1000, A_MINUTE_US = 60000000 };

struct server {
    struct scratch scratch;
    char path[128];
    struct listener listener;
    struct intake *intake;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    size_t handled;
    struct request *held[HELD_MAX];
    size_t held_count;
};

/* --- the handler --- */

static void send_text(struct request *request, const char *text)
{
    struct buffer reply;

    buffer_init(&reply, 1 << 16);
    buffer_append_text(&reply, text);
    request_reply(request, &reply);
    buffer_free(&reply);
}

/* `path?query|body`. */
static void send_echo(struct request *request)
{
    char text[4096];
    const char *body;
    size_t len;

    if (!request_body(request, &body, &len))
        snprintf(text, sizeof(text), "%s|too large", request_path(request));
    else
        snprintf(text, sizeof(text), "%s?%s|%.*s", request_path(request),
                 request_query(request), (int)len, body);
    send_text(request, text);
}

/* On the intake's thread. `/hold` is answered by the test, later. */
static void handle(void *context, struct request *request)
{
    struct server *server = context;
    bool is_held = strcmp(request_path(request), "/hold") == 0;
    bool stops = strcmp(request_path(request), "/stop") == 0;

    if (!is_held)
        send_echo(request);
    if (stops)
        intake_stop(server->intake);
    pthread_mutex_lock(&server->lock);
    if (is_held && server->held_count < HELD_MAX)
        server->held[server->held_count++] = request;
    server->handled++;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static bool wait_for(struct server *server, const size_t *count, size_t wanted)
{
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    pthread_mutex_lock(&server->lock);
    while (*count < wanted &&
           pthread_cond_timedwait(&server->changed, &server->lock, &limit) == 0)
        continue;
    bool reached = *count >= wanted;
    pthread_mutex_unlock(&server->lock);
    return reached;
}

/* --- the server --- */

static void server_create(struct server *server, int64_t read_timeout_us)
{
    char error[LISTENER_ERROR_MAX_BYTES];
    char where[160];

    memset(server, 0, sizeof(*server));
    scratch_open(&server->scratch);
    snprintf(server->path, sizeof(server->path), "%s", scratch_file(&server->scratch, "sock"));
    snprintf(where, sizeof(where), "unix:%s", server->path);
    if (listener_open(&server->listener, where, 0660, A_MINUTE_US, error) != 0)
        fail_msg("%s", error);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    const struct intake_options options = {
        .listen_fd = server->listener.fd,
        .limits = {.params_max_bytes = 128 << 10, .body_max_bytes = BODY_MAX_BYTES},
        .read_timeout_us = read_timeout_us,
        .handle = handle,
        .context = server,
    };
    server->intake = intake_create(&options);
    assert_non_null(server->intake);
}

static void *run_intake(void *context)
{
    struct server *server = context;

    intake_run(server->intake);
    return NULL;
}

static void server_start(struct server *server)
{
    assert_int_equal(pthread_create(&server->thread, NULL, run_intake, server), 0);
}

static void server_open(struct server *server)
{
    server_create(server, A_MINUTE_US);
    server_start(server);
}

static void server_free(struct server *server)
{
    intake_destroy(server->intake);
    listener_close(&server->listener);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->changed);
    scratch_close(&server->scratch);
}

static void server_close(struct server *server, size_t handled)
{
    intake_stop(server->intake);
    pthread_join(server->thread, NULL);
    assert_int_equal(server->handled, handled);
    server_free(server);
}

/* --- clients --- */

static int client_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        abort();
    return fd;
}

static int client_open(const struct server *server)
{
    return client_connect(server->path);
}

static int client_send(int fd, unsigned id, unsigned flags, const char *path, const char *query,
                       const char *body)
{
    struct buffer bytes;

    buffer_init(&bytes, 1 << 20);
    peer_request(&bytes, id, flags, path, query, body);
    int result = peer_send(fd, &bytes);
    buffer_free(&bytes);
    return result;
}

static bool client_gets(int fd, unsigned id, const char *wanted)
{
    char *text = peer_read_reply(fd, id);
    bool is_right = text != NULL && strcmp(text, wanted) == 0;

    free(text);
    return is_right;
}

/* A whole request on a connection of its own; the server is well. */
static void assert_served(const struct server *server)
{
    int fd = client_open(server);

    assert_int_equal(client_send(fd, 1, 0, "/well", "q", "b"), 0);
    assert_true(client_gets(fd, 1, "/well?q|b"));
    assert_true(peer_is_closed(fd));
    close(fd);
}

/* --- those that keep to the protocol --- */

static void test_one_request_a_connection(void **state)
{
    struct server server;

    (void)state;
    server_open(&server);
    for (int i = 0; i < 20; i++)
        assert_served(&server);
    server_close(&server, 20);
}

static void test_requests_of_nginx(void **state)
{
    struct server server;

    (void)state;
    server_open(&server);
    int fd = client_open(&server);
    assert_int_equal(send(fd, captured_get, sizeof(captured_get), 0), sizeof(captured_get));
    assert_true(client_gets(fd, 1, "/stream?prompt=hello&max_tokens=20|"));
    assert_int_equal(send(fd, captured_post, sizeof(captured_post), 0), sizeof(captured_post));
    assert_true(client_gets(fd, 1, "/generate?|{\"prompt\":\"hello\",\"max_tokens\":20}"));
    close(fd);
    server_close(&server, 2);
}

static void test_a_kept_connection_is_used_again(void **state)
{
    struct server server;

    (void)state;
    server_open(&server);
    int fd = client_open(&server);
    for (unsigned i = 1; i <= 100; i++) {
        char query[16];
        char wanted[32];
        snprintf(query, sizeof(query), "%u", i);
        snprintf(wanted, sizeof(wanted), "/again?%u|", i);
        assert_int_equal(client_send(fd, i, i < 100 ? PEER_KEEP : 0, "/again", query, NULL), 0);
        assert_true(client_gets(fd, i, wanted));
    }
    assert_true(peer_is_closed(fd)); /* the last one did not ask to keep it */
    close(fd);
    server_close(&server, 100);
}

static void test_pipelined_requests(void **state)
{
    enum { COUNT = 30 };
    struct server server;
    struct buffer bytes;

    (void)state;
    server_open(&server);
    buffer_init(&bytes, 1 << 20);
    for (unsigned i = 1; i <= COUNT; i++)
        peer_request(&bytes, i, PEER_KEEP, "/pipe", "", i % 2 ? "odd" : "even");
    int fd = client_open(&server);
    assert_int_equal(peer_send(fd, &bytes), 0);
    for (unsigned i = 1; i <= COUNT; i++)
        assert_true(client_gets(fd, i, i % 2 ? "/pipe?|odd" : "/pipe?|even"));
    buffer_free(&bytes);
    close(fd);
    server_close(&server, COUNT);
}

/* The second request comes with the first or after it, and waits until that is answered. */
static void test_a_request_behind_one_that_is_not_answered(void **state)
{
    (void)state;
    for (int together = 0; together < 2; together++) {
        struct server server;
        struct buffer bytes;

        server_open(&server);
        buffer_init(&bytes, 1 << 20);
        peer_request(&bytes, 1, PEER_KEEP, "/hold", "", NULL);
        int fd = client_open(&server);
        if (together)
            peer_request(&bytes, 2, PEER_KEEP, "/next", "", "body");
        assert_int_equal(peer_send(fd, &bytes), 0);
        assert_true(wait_for(&server, &server.held_count, 1));
        if (!together)
            assert_int_equal(client_send(fd, 2, PEER_KEEP, "/next", "", "body"), 0);
        assert_served(&server);            /* others are */
        send_text(server.held[0], "held"); /* on this thread, as the engine would */
        assert_true(client_gets(fd, 1, "held"));
        assert_true(client_gets(fd, 2, "/next?|body"));
        buffer_free(&bytes);
        close(fd);
        server_close(&server, 3);
    }
}

static void test_a_body_that_is_too_large(void **state)
{
    static char body[100001];
    struct server server;

    (void)state;
    memset(body, 'b', sizeof(body) - 1);
    server_open(&server);
    int fd = client_open(&server);
    assert_int_equal(client_send(fd, 1, PEER_KEEP, "/big", "", body), 0);
    assert_true(client_gets(fd, 1, "/big|too large"));
    body[BODY_MAX_BYTES] = '\0';
    assert_int_equal(client_send(fd, 2, PEER_KEEP, "/fits", "", body), 0);
    char *text = peer_read_reply(fd, 2);
    assert_non_null(text);
    assert_int_equal(strlen(text), strlen("/fits?|") + BODY_MAX_BYTES);
    free(text);
    close(fd);
    server_close(&server, 2);
}

enum { CLIENT_THREADS = 4, REQUESTS_EACH = 100 };

struct client_thread {
    pthread_t thread;
    const struct server *server;
    unsigned number;
    unsigned wrong;
};

static void *ask_many(void *context)
{
    struct client_thread *client = context;
    int kept = client_open(client->server);

    for (unsigned i = 1; i <= REQUESTS_EACH; i++) {
        char query[32];
        char wanted[64];
        int fd = i % 2 ? kept : client_open(client->server);
        snprintf(query, sizeof(query), "%u-%u", client->number, i);
        snprintf(wanted, sizeof(wanted), "/many?%s|body", query);
        if (client_send(fd, i, i % 2, "/many", query, "body") != 0 ||
            !client_gets(fd, i, wanted))
            client->wrong++;
        if (fd != kept)
            close(fd);
    }
    close(kept);
    return NULL;
}

static void test_many_clients_at_once(void **state)
{
    struct client_thread clients[CLIENT_THREADS];
    struct server server;

    (void)state;
    server_open(&server);
    for (unsigned i = 0; i < CLIENT_THREADS; i++) {
        clients[i] = (struct client_thread){.server = &server, .number = i};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, ask_many, &clients[i]), 0);
    }
    for (unsigned i = 0; i < CLIENT_THREADS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].wrong, 0);
    }
    server_close(&server, CLIENT_THREADS * REQUESTS_EACH);
}

/* Answered by other threads than the intake's, while that goes on. */
static void test_answered_from_another_thread(void **state)
{
    enum { COUNT = 50 };
    struct server server;
    int fds[COUNT];

    (void)state;
    server_open(&server);
    for (int round = 1; round <= 3; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            if (round == 1)
                fds[i] = client_open(&server);
            assert_int_equal(client_send(fds[i], i + 1, PEER_KEEP, "/hold", "", "b"), 0);
        }
        assert_true(wait_for(&server, &server.held_count, COUNT));
        pthread_mutex_lock(&server.lock);
        server.held_count = 0;
        pthread_mutex_unlock(&server.lock);
        for (unsigned i = 0; i < COUNT; i++)
            send_text(server.held[i], "x");
        for (unsigned i = 0; i < COUNT; i++)
            assert_true(client_gets(fds[i], i + 1, "x"));
    }
    for (unsigned i = 0; i < COUNT; i++)
        close(fds[i]);
    server_close(&server, 3 * COUNT);
}

static void test_a_client_that_left_before_the_answer(void **state)
{
    struct server server;

    (void)state;
    server_open(&server);
    int fd = client_open(&server);
    assert_int_equal(client_send(fd, 1, PEER_KEEP, "/hold", "", NULL), 0);
    assert_true(wait_for(&server, &server.held_count, 1));
    close(fd);
    send_text(server.held[0], "to nobody");
    assert_served(&server);
    server_close(&server, 2);
}

/* --- management records and records in the wrong place --- */

static void assert_answer(int fd, unsigned type, unsigned id, const char *content, size_t len)
{
    struct peer_reply *reply = malloc(sizeof(*reply));

    assert_non_null(reply);
    assert_int_equal(peer_receive(fd, reply), 1);
    assert_int_equal(reply->type, type);
    assert_int_equal(reply->id, id);
    assert_int_equal(reply->len, len);
    if (len > 0)
        assert_memory_equal(reply->content, content, len);
    free(reply);
}

static void append_get_values(struct buffer *out, unsigned repeats)
{
    struct buffer content;

    buffer_init(&content, 1 << 16);
    for (unsigned i = 0; i < repeats; i++)
        peer_pair(&content, "FCGI_MPXS_CONNS", "");
    peer_record(out, PEER_GET_VALUES, 0, content.data, content.len, 0);
    buffer_free(&content);
}

static const char mpxs_answer[] = "\17\1FCGI_MPXS_CONNS0";

static void test_answers_of_the_protocol(void **state)
{
    struct server server;
    struct buffer bytes;

    (void)state;
    server_open(&server);
    buffer_init(&bytes, 1 << 20);
    append_get_values(&bytes, 20); /* libfcgi would write past its stack buffer */
    peer_record(&bytes, 99, 0, "what?", 5, 3);
    peer_begin(&bytes, 5, 1, PEER_KEEP);
    peer_begin(&bytes, 6, 1, PEER_KEEP); /* inside the other */
    peer_record(&bytes, PEER_ABORT, 5, "", 0, 0);
    int fd = client_open(&server);
    assert_int_equal(peer_send(fd, &bytes), 0);
    assert_answer(fd, PEER_VALUES, 0, mpxs_answer, sizeof(mpxs_answer) - 1);
    assert_answer(fd, PEER_UNKNOWN, 0, "\143\0\0\0\0\0\0", 8);
    assert_answer(fd, PEER_END, 6, "\0\0\0\0\1\0\0", 8); /* CANT_MPX_CONN */
    assert_answer(fd, PEER_END, 5, "\0\0\0\0\0\0\0", 8);
    /* And the connection is as good as new. */
    assert_int_equal(client_send(fd, 5, 0, "/after", "", NULL), 0);
    assert_true(client_gets(fd, 5, "/after?|"));
    buffer_free(&bytes);
    close(fd);
    server_close(&server, 1);
}

/* As many as it likes, as long as it reads the answers. */
static void test_a_flood_of_get_values(void **state)
{
    enum { COUNT = 5000 };
    struct server server;
    struct buffer bytes;

    (void)state;
    server_open(&server);
    buffer_init(&bytes, 1 << 20);
    append_get_values(&bytes, 1);
    int fd = client_open(&server);
    for (unsigned i = 0; i < COUNT; i += 50) {
        for (unsigned j = 0; j < 50; j++)
            assert_int_equal(peer_send(fd, &bytes), 0);
        for (unsigned j = 0; j < 50; j++)
            assert_answer(fd, PEER_VALUES, 0, mpxs_answer, sizeof(mpxs_answer) - 1);
    }
    assert_int_equal(client_send(fd, 1, 0, "/after", "", NULL), 0);
    assert_true(client_gets(fd, 1, "/after?|"));
    buffer_free(&bytes);
    close(fd);
    server_close(&server, 1);
}

/* One that does not read them is closed, when its socket is full, and nobody waits for it. */
static void test_a_flood_that_reads_no_answers(void **state)
{
    struct server server;
    struct buffer bytes;
    int sent = 0;

    (void)state;
    server_open(&server);
    buffer_init(&bytes, 1 << 20);
    for (int i = 0; i < 100; i++)
        append_get_values(&bytes, 1);
    int fd = client_open(&server);
    while (peer_send(fd, &bytes) == 0)
        assert_true(++sent < 100000);
    assert_served(&server);
    buffer_free(&bytes);
    close(fd);
    server_close(&server, 1);
}

/* --- those that do not --- */

static void test_silent_connections(void **state)
{
    enum { COUNT = 200 };
    struct server server;
    int fds[COUNT];

    (void)state;
    server_open(&server);
    for (unsigned i = 0; i < COUNT; i++) {
        fds[i] = client_open(&server);
        if (i % 3 == 1)
            assert_int_equal(send(fds[i], "\1\1\0\1", 4, 0), 4); /* half a header */
        if (i % 3 == 2)
            assert_int_equal(send(fds[i], captured_post, 200, 0), 200);
    }
    for (int i = 0; i < 20; i++)
        assert_served(&server);
    /* The silent ones may still say something. */
    assert_int_equal(client_send(fds[0], 1, 0, "/late", "", NULL), 0);
    assert_true(client_gets(fds[0], 1, "/late?|"));
    for (unsigned i = 0; i < COUNT; i++)
        close(fds[i]);
    assert_served(&server);
    server_close(&server, 22);
}

static void test_other_protocols_are_closed(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27},
        {"\x16\x03\x01\x02\0\1\0\1\xfc\x03", 10},
        {"\1\1\0\1\0\10\0\0\0\2\0\0\0\0\0\0", 16}, /* an authorizer */
        {"\2\1\0\1\0\10\0\0", 8},                  /* version 2 */
        {"\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0\1\4\0\1\0\4\0\0\5\5ab\1\4\0\1\0\0\0\0", 36},
    };
    struct server server;

    (void)state;
    server_open(&server);
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        int fd = client_open(&server);
        assert_int_equal(send(fd, rows[row].bytes, rows[row].len, 0), rows[row].len);
        if (!peer_is_closed(fd))
            fail_msg("row %zu: it was answered", row);
        close(fd);
    }
    assert_served(&server);
    server_close(&server, 1);
}

/* At every byte of a request: the handler never hears of it. */
static void test_requests_that_break_off(void **state)
{
    struct server server;

    (void)state;
    server_open(&server);
    for (size_t len = 1; len < sizeof(captured_post); len++) {
        int fd = client_open(&server);
        assert_int_equal(send(fd, captured_post, len, 0), len);
        close(fd);
    }
    assert_served(&server);
    server_close(&server, 1);
}

/* At every byte, in two pieces: it is one request. */
static void test_requests_in_two_pieces(void **state)
{
    struct server server;

    (void)state;
    server_open(&server);
    int fd = client_open(&server);
    for (size_t len = 1; len < sizeof(captured_post); len++) {
        assert_int_equal(send(fd, captured_post, len, 0), len);
        assert_int_equal(send(fd, captured_post + len, sizeof(captured_post) - len, 0),
                         sizeof(captured_post) - len);
        assert_true(client_gets(fd, 1, "/generate?|{\"prompt\":\"hello\",\"max_tokens\":20}"));
    }
    close(fd);
    server_close(&server, sizeof(captured_post) - 1);
}

/* A request that was begun has its time, also when it comes in drops; a kept connection on
 * which nothing was begun has not. */
static void test_read_timeout(void **state)
{
    struct server server;
    char byte;

    (void)state;
    server_create(&server, 1000);
    server_start(&server);
    int kept = client_open(&server);
    assert_int_equal(client_send(kept, 1, PEER_KEEP, "/one", "", NULL), 0);
    assert_true(client_gets(kept, 1, "/one?|"));
    int silent = client_open(&server);
    int half = client_open(&server);
    assert_int_equal(send(half, captured_post, 100, 0), 100);
    int dripping = client_open(&server);
    /* Until it is closed, a byte now and then, all of them good. */
    for (size_t i = 0; i < sizeof(captured_post); i++) {
        struct pollfd in = {.fd = dripping, .events = POLLIN};
        if (send(dripping, captured_post + i, 1, MSG_NOSIGNAL) != 1 || poll(&in, 1, 100) == 1)
            break;
    }
    assert_int_not_equal(recv(dripping, &byte, 1, MSG_DONTWAIT), 1); /* no reply */
    assert_true(peer_is_closed(half));
    assert_int_equal(client_send(kept, 2, PEER_KEEP, "/two", "", NULL), 0);
    assert_true(client_gets(kept, 2, "/two?|"));
    assert_int_equal(client_send(silent, 1, 0, "/three", "", NULL), 0);
    assert_true(client_gets(silent, 1, "/three?|"));
    close(kept);
    close(silent);
    close(half);
    close(dripping);
    server_close(&server, 3);
}

/* --- without descriptors, in a process of its own --- */

struct poor {
    struct server server;
    pid_t pid;
    int command; /* a byte starts the intake, the next one answers what is held */
};

static void *answer_held(void *context)
{
    struct poor *poor = context;
    char byte;

    if (read(poor->command, &byte, 1) == 1) {
        pthread_mutex_lock(&poor->server.lock);
        for (size_t i = 0; i < poor->server.held_count; i++)
            send_text(poor->server.held[i], "at last");
        pthread_mutex_unlock(&poor->server.lock);
    }
    return NULL;
}

/* The limit below which `spare` descriptors are free. */
static struct rlimit limit_of_free(unsigned spare)
{
    int fd = 0;

    for (unsigned seen = 0; seen < spare; fd++)
        seen += fcntl(fd, F_GETFD) == -1;
    return (struct rlimit){.rlim_cur = (rlim_t)fd, .rlim_max = (rlim_t)fd};
}

/* A child that may accept `spare` connections at once, and not one more. */
static void poor_open(struct poor *poor, unsigned spare)
{
    int command[2];

    assert_int_equal(pipe2(command, O_CLOEXEC), 0);
    server_create(&poor->server, A_MINUTE_US);
    poor->pid = fork();
    assert_true(poor->pid >= 0);
    if (poor->pid == 0) {
        pthread_t thread;
        char byte;
        const struct rlimit limit = limit_of_free(spare);
        poor->command = command[0];
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || read(command[0], &byte, 1) != 1 ||
            pthread_create(&thread, NULL, answer_held, poor) != 0)
            _exit(1);
        intake_run(poor->server.intake); /* until it is killed */
        _exit(1);
    }
    close(command[0]);
    poor->command = command[1];
}

static void poor_tell(struct poor *poor)
{
    assert_int_equal(write(poor->command, "x", 1), 1);
}

static void poor_close(struct poor *poor)
{
    assert_int_equal(waitpid(poor->pid, NULL, WNOHANG), 0); /* it is alive */
    assert_int_equal(kill(poor->pid, SIGKILL), 0);
    assert_int_equal(waitpid(poor->pid, NULL, 0), poor->pid);
    close(poor->command);
    server_free(&poor->server);
}

/* A kept connection that is idle, and has been used, so that it is known to be accepted. */
static int kept_client(const struct server *server)
{
    int fd = client_open(server);

    assert_int_equal(client_send(fd, 1, PEER_KEEP, "/kept", "", NULL), 0);
    assert_true(client_gets(fd, 1, "/kept?|"));
    return fd;
}

static void test_the_longest_idle_makes_room(void **state)
{
    struct poor poor;

    (void)state;
    poor_open(&poor, 3);
    poor_tell(&poor);
    int first = kept_client(&poor.server);
    int second = kept_client(&poor.server);
    int third = kept_client(&poor.server);
    int fourth = kept_client(&poor.server);
    assert_true(peer_is_closed(first));
    assert_int_equal(client_send(second, 2, PEER_KEEP, "/still", "", NULL), 0);
    assert_true(client_gets(second, 2, "/still?|"));
    /* Now the third has been idle for longest. */
    int fifth = kept_client(&poor.server);
    assert_true(peer_is_closed(third));
    assert_int_equal(client_send(fourth, 2, PEER_KEEP, "/still", "", NULL), 0);
    assert_true(client_gets(fourth, 2, "/still?|"));
    close(first);
    close(second);
    close(third);
    close(fourth);
    close(fifth);
    poor_close(&poor);
}

/* All are busy: the new ones wait in the backlog, and are served when there is room. */
static void test_accepting_pauses(void **state)
{
    struct poor poor;
    int busy[3];
    int waiting[3];

    (void)state;
    poor_open(&poor, 3);
    poor_tell(&poor);
    int idle = kept_client(&poor.server);
    for (unsigned i = 0; i < COUNT_OF(busy); i++) {
        busy[i] = client_open(&poor.server);
        assert_int_equal(client_send(busy[i], 1, 0, "/hold", "", NULL), 0);
    }
    assert_true(peer_is_closed(idle)); /* the third one took its descriptor */
    for (unsigned i = 0; i < COUNT_OF(waiting); i++) {
        waiting[i] = client_open(&poor.server);
        assert_int_equal(client_send(waiting[i], 1, 0, "/wait", "", NULL), 0);
    }
    struct pollfd in = {.fd = waiting[0], .events = POLLIN};
    assert_int_equal(poll(&in, 1, 100), 0);
    poor_tell(&poor);
    for (unsigned i = 0; i < COUNT_OF(busy); i++) {
        assert_true(client_gets(busy[i], 1, "at last"));
        close(busy[i]);
    }
    for (unsigned i = 0; i < COUNT_OF(waiting); i++) {
        assert_true(client_gets(waiting[i], 1, "/wait?|"));
        close(waiting[i]);
    }
    close(idle);
    poor_close(&poor);
}

/* One that has just come, with its request, is not idle: it is served, and the next one waits.
 */
static void test_a_request_that_waits_is_not_idle(void **state)
{
    struct poor poor;
    int fds[4];
    unsigned served = 0;

    (void)state;
    poor_open(&poor, 1);
    for (unsigned i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = client_open(&poor.server);
        assert_int_equal(client_send(fds[i], 1, 0, "/all", "", NULL), 0);
    }
    poor_tell(&poor); /* all of them are in the backlog: only now it begins */
    for (unsigned i = 0; i < COUNT_OF(fds); i++) {
        served += client_gets(fds[i], 1, "/all?|");
        close(fds[i]);
    }
    poor_close(&poor);
    assert_int_equal(served, COUNT_OF(fds));
}

/* --- the end --- */

static void test_stop_closes_what_is_there(void **state)
{
    struct server server;

    (void)state;
    server_open(&server);
    int idle = kept_client(&server);
    int half = client_open(&server);
    assert_int_equal(send(half, captured_post, 100, 0), 100);
    int held = client_open(&server);
    assert_int_equal(client_send(held, 1, PEER_KEEP, "/hold", "", NULL), 0);
    assert_true(wait_for(&server, &server.held_count, 1));
    intake_stop(server.intake);
    pthread_join(server.thread, NULL);
    /* The engine may still answer; the connection then ends, whatever was asked for. */
    send_text(server.held[0], "late");
    assert_true(client_gets(held, 1, "late"));
    assert_true(peer_is_closed(held));
    server_free(&server);
    assert_true(peer_is_closed(idle));
    assert_true(peer_is_closed(half));
    close(idle);
    close(half);
    close(held);
}

static void test_stop_before_run(void **state)
{
    struct server server;

    (void)state;
    server_create(&server, A_MINUTE_US);
    intake_stop(server.intake);
    intake_run(server.intake); /* returns at once */
    server_free(&server);
}

/* What lies behind the last answered request is dropped with its connection: when
 * intake_destroy comes, there is no engine any more that a handler could give it to. */
static void test_nothing_is_handled_after_the_end(void **state)
{
    struct server server;
    struct buffer bytes;

    (void)state;
    server_open(&server);
    buffer_init(&bytes, 1 << 20);
    peer_request(&bytes, 1, PEER_KEEP, "/stop", "", NULL);
    peer_request(&bytes, 2, PEER_KEEP, "/behind", "", NULL);
    int fd = client_open(&server);
    assert_int_equal(peer_send(fd, &bytes), 0);
    assert_true(client_gets(fd, 1, "/stop?|"));
    pthread_join(server.thread, NULL);
    size_t before = server.handled;
    intake_destroy(server.intake);
    size_t after = server.handled;
    server.intake = NULL;
    server_free(&server);
    buffer_free(&bytes);
    close(fd);
    assert_int_equal(before, 1);
    assert_int_equal(after, before);
}

static int open_library(void **state)
{
    char error[200];

    (void)state;
    if (request_library_init() != 0 || request_self_test(error) != 0)
        return -1;
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

static int set_alarm(void **state)
{
    (void)state;
    alarm(120);
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_alarm)
    const struct CMUnitTest tests[] = {
        /* those that fork, before any thread has been */
        TEST(test_the_longest_idle_makes_room),
        TEST(test_accepting_pauses),
        TEST(test_a_request_that_waits_is_not_idle),
        TEST(test_one_request_a_connection),
        TEST(test_requests_of_nginx),
        TEST(test_a_kept_connection_is_used_again),
        TEST(test_pipelined_requests),
        TEST(test_a_request_behind_one_that_is_not_answered),
        TEST(test_a_body_that_is_too_large),
        TEST(test_many_clients_at_once),
        TEST(test_answered_from_another_thread),
        TEST(test_a_client_that_left_before_the_answer),
        TEST(test_answers_of_the_protocol),
        TEST(test_a_flood_of_get_values),
        TEST(test_a_flood_that_reads_no_answers),
        TEST(test_silent_connections),
        TEST(test_other_protocols_are_closed),
        TEST(test_requests_that_break_off),
        TEST(test_requests_in_two_pieces),
        TEST(test_read_timeout),
        TEST(test_stop_closes_what_is_there),
        TEST(test_stop_before_run),
        TEST(test_nothing_is_handled_after_the_end),
    };
#undef TEST

    return cmocka_run_group_tests(tests, open_library, NULL);
}
