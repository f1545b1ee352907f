/*
 * Connections from their start to their end. A socket is libcurl's until the head of a stream
 * is there, and then ours (`by_fd`).
 */

#include "gen/load/connections.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "gen/load/reader.h"

/* --- what libcurl asks of us --- */

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    struct connections *connections = context;
    struct epoll_event event = {.data.fd = fd};

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(connections->epoll, EPOLL_CTL_DEL, fd, NULL); /* it may be closed already */
        return 0;
    }
    event.events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
                   (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
    if (epoll_ctl(connections->epoll, known == NULL ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd,
                  &event) != 0 &&
        !(errno == EEXIST && epoll_ctl(connections->epoll, EPOLL_CTL_MOD, fd, &event) == 0) &&
        !(errno == ENOENT && epoll_ctl(connections->epoll, EPOLL_CTL_ADD, fd, &event) == 0))
        connections->broken = "epoll_ctl failed: too many descriptors are watched";
    /* Anything but NULL says that it is in the set. */
    curl_multi_assign(connections->multi, fd, connections);
    return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct connections *connections = context;

    (void)multi;
    connections->curl_due_us =
        timeout_ms < 0 ? CLOCK_NEVER : clock_monotonic_us() + (int64_t)timeout_ms * 1000;
    return 0;
}

static void act(struct connections *connections, curl_socket_t fd, int events)
{
    int running;

    connections->call++;
    if (curl_multi_socket_action(connections->multi, fd, events, &running) != CURLM_OK)
        connections->broken = "curl_multi_socket_action failed";
}

/* --- starts and ends --- */

static void set_free(struct connections *connections, struct connection *connection)
{
    connection->next = connections->free;
    connections->free = connection;
}

static struct connection *take_free(struct connections *connections)
{
    struct connection *connection = connections->free;

    if (connection != NULL) {
        connections->free = connection->next;
        return connection;
    }
    if (connections->count == connections->room) {
        size_t room = connections->room > 0 ? connections->room * 2 : 64;
        struct connection **grown =
            realloc(connections->all, room * sizeof(struct connection *));
        if (grown == NULL)
            return NULL;
        connections->all = grown;
        connections->room = room;
    }
    connection = connection_new(&connections->shared);
    if (connection != NULL)
        connections->all[connections->count++] = connection;
    return connection;
}

void connections_start(struct connections *connections, uint64_t number, int64_t intended_us,
                       int64_t now_us)
{
    struct connection *connection = take_free(connections);

    if (connection == NULL || connection_start(connection, number, intended_us, now_us) != 0 ||
        curl_multi_add_handle(connections->multi, connection->easy) != CURLM_OK) {
        connections->broken = "no memory for a request";
        return;
    }
    connection->started_us = now_us;
    TAILQ_INSERT_TAIL(&connections->open, connection, open);
}

static void end(struct connections *connections, struct connection *connection,
                enum stream_end how)
{
    if (connection->fd >= 0)
        connections->by_fd[connection->fd] = NULL;
    connection_end(connection, how, clock_monotonic_us());
    curl_multi_remove_handle(connections->multi, connection->easy);
    TAILQ_REMOVE(&connections->open, connection, open);
    if (!connection->is_paused) /* else it is free when its pause is over */
        set_free(connections, connection);
}

static void reap(struct connections *connections)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(connections->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        struct connection *connection;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &connection);
        end(connections, connection, connection_outcome(connection, code));
    }
}

static void end_timeouts(struct connections *connections, int64_t now_us)
{
    struct connection *oldest;

    while ((oldest = TAILQ_FIRST(&connections->open)) != NULL &&
           oldest->started_us + connections->options->timeout_us <= now_us) {
        snprintf(oldest->error, sizeof(oldest->error), "not at its end in %g s (--timeout)",
                 (double)connections->options->timeout_us / 1e6);
        end(connections, oldest, STREAM_TIMEOUT);
    }
}

/* --- reads of our own --- */

static int remember(struct connections *connections, struct connection *connection)
{
    size_t fd = (size_t)connection->fd;

    if (fd >= connections->fd_room) {
        size_t room = 2 * fd + 64;
        struct connection **grown =
            realloc(connections->by_fd, room * sizeof(struct connection *));
        if (grown == NULL)
            return -1;
        memset(grown + connections->fd_room, 0,
               (room - connections->fd_room) * sizeof(struct connection *));
        connections->by_fd = grown;
        connections->fd_room = room;
    }
    connections->by_fd[fd] = connection;
    return 0;
}

/*
 * The streams whose head libcurl has read. For libcurl they pause, so it leaves their sockets
 * alone and has us watch them no more; then we do, for ourselves. In libcurl 7.88 a pause holds
 * only if it is of both directions, and begins before the reads of one call are used up: else
 * one more read is on its way. So take_body has begun it already, if there was a body.
 */
static void take_over(struct connections *connections)
{
    while (connections->shared.heads != NULL) {
        struct connection *connection = connections->shared.heads;
        struct epoll_event event = {.events = EPOLLIN, .data.fd = connection->socket};

        connections->shared.heads = connection->next_head;
        if (!connection->is_open)
            continue;
        if (curl_easy_pause(connection->easy, CURLPAUSE_ALL) != CURLE_OK) {
            connections->broken = "libcurl could not be paused";
            return;
        }
        connection->fd = connection->socket;
        if (remember(connections, connection) != 0 ||
            epoll_ctl(connections->epoll, EPOLL_CTL_ADD, connection->fd, &event) != 0) {
            connections->broken = "no memory for a stream";
            return;
        }
    }
}

/* --- slow readers --- */

/* 0, or -1 when it cannot be done any more. */
static int stop_reading(struct connections *connections, struct connection *connection)
{
    if (connection->fd >=
        0) /* all the way: a hang-up would be told even to nobody's interest */
        return epoll_ctl(connections->epoll, EPOLL_CTL_DEL, connection->fd, NULL);
    return curl_easy_pause(connection->easy, CURLPAUSE_ALL) == CURLE_OK ? 0 : -1;
}

static void read_on(struct connections *connections, struct connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = connection->fd};

    if (connection->fd >= 0) {
        epoll_ctl(connections->epoll, EPOLL_CTL_ADD, connection->fd, &event);
        return;
    }
    connections->call++; /* what libcurl has kept comes now */
    CURLcode code = curl_easy_pause(connection->easy, CURLPAUSE_CONT);
    if (code != CURLE_OK) /* it left at what had been kept: libcurl leaves the end to us */
        end(connections, connection, connection_outcome(connection, code));
}

/* Those that have read: all pause for the same time, so the list is in the order of its ends.
 */
static void pause_readers(struct connections *connections, int64_t now_us)
{
    while (connections->shared.slow_reads != NULL) {
        struct connection *connection = connections->shared.slow_reads;

        connections->shared.slow_reads = connection->next_read;
        connection->has_slow_read = false;
        if (connection->is_paused || !connection->is_open || !connection->stream.fate.is_slow ||
            stop_reading(connections, connection) != 0)
            continue;
        connection->is_paused = true;
        connection->resume_us = now_us + connections->options->slow_pause_us;
        connection->next = NULL;
        if (connections->pause_last != NULL)
            connections->pause_last->next = connection;
        else
            connections->pause_first = connection;
        connections->pause_last = connection;
    }
}

static void resume_readers(struct connections *connections, int64_t now_us)
{
    while (connections->pause_first != NULL && connections->pause_first->resume_us <= now_us) {
        struct connection *connection = connections->pause_first;

        connections->pause_first = connection->next;
        if (connections->pause_first == NULL)
            connections->pause_last = NULL;
        connection->is_paused = false;
        if (connection->is_open)
            read_on(connections, connection);
        else
            set_free(connections, connection);
    }
}

/* --- what is ready and due --- */

void connections_event(struct connections *connections, const struct epoll_event *event)
{
    size_t fd = (size_t)event->data.fd;
    struct connection *connection = fd < connections->fd_room ? connections->by_fd[fd] : NULL;
    enum stream_end how;

    if (connection == NULL)
        act(connections, event->data.fd,
            (event->events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                (event->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                (event->events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0));
    else if (connection_read(connection, &how))
        end(connections, connection, how);
}

void connections_work(struct connections *connections, int64_t now_us)
{
    if (connections->curl_due_us <= now_us) {
        connections->curl_due_us = CLOCK_NEVER;
        act(connections, CURL_SOCKET_TIMEOUT, 0);
    }
    reap(connections);
    take_over(connections);
    end_timeouts(connections, now_us);
    pause_readers(connections, now_us);
    resume_readers(connections, now_us);
}

int64_t connections_due_us(const struct connections *connections)
{
    int64_t due_us = connections->curl_due_us;

    if (connections->pause_first != NULL && connections->pause_first->resume_us < due_us)
        due_us = connections->pause_first->resume_us;
    if (!TAILQ_EMPTY(&connections->open)) {
        int64_t timeout_us =
            TAILQ_FIRST(&connections->open)->started_us + connections->options->timeout_us;
        due_us = timeout_us < due_us ? timeout_us : due_us;
    }
    return due_us;
}

/* --- all of them --- */

void connections_interrupt(struct connections *connections)
{
    for (size_t i = 0; i < connections->count; i++) {
        if (!connections->all[i]->is_open)
            continue;
        curl_multi_remove_handle(connections->multi, connections->all[i]->easy);
        connection_end(connections->all[i], STREAM_INTERRUPTED, clock_monotonic_us());
    }
}

int connections_open(struct connections *connections, const struct options *options,
                     const struct target *target, struct figures *figures,
                     struct events *events)
{
    uint32_t run = 0;

    *connections = (struct connections){
        .options = options, .figures = figures, .curl_due_us = CLOCK_NEVER};
    TAILQ_INIT(&connections->open);
    connections->shared.stream =
        (struct stream_shared){.options = options, .figures = figures, .events = events};
    buffer_init(&connections->shared.stream.scratch, READER_EVENT_MAX_BYTES);
    connections->shared.target = target;
    connections->shared.call = &connections->call;
    if (getrandom(&run, sizeof(run), 0) != (ssize_t)sizeof(run))
        run = (uint32_t)getpid();
    request_maker_init(&connections->shared.maker, options, run);
    connections->shared.bytes = malloc(CONNECTION_READ_BYTES);
    connections->epoll = epoll_create1(EPOLL_CLOEXEC);
    connections->multi = curl_multi_init();
    if (connections->epoll < 0 || connections->multi == NULL ||
        connections->shared.bytes == NULL)
        return -1;
    curl_multi_setopt(connections->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(connections->multi, CURLMOPT_SOCKETDATA, connections);
    curl_multi_setopt(connections->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(connections->multi, CURLMOPT_TIMERDATA, connections);
    curl_multi_setopt(connections->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    curl_multi_setopt(connections->multi, CURLMOPT_MAXCONNECTS, (long)options->streams);
    return 0;
}

void connections_close(struct connections *connections)
{
    for (size_t i = 0; i < connections->count; i++) {
        if (connections->all[i]->is_open)
            curl_multi_remove_handle(connections->multi, connections->all[i]->easy);
        connection_free(connections->all[i]);
    }
    free(connections->all);
    free(connections->by_fd);
    free(connections->shared.bytes);
    if (connections->multi != NULL)
        curl_multi_cleanup(connections->multi);
    if (connections->epoll >= 0)
        close(connections->epoll);
    buffer_free(&connections->shared.stream.scratch);
}
