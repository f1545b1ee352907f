/*
 * Accepting and reading. A connection is in one of two lists while it is ours: `midway` (part
 * of a request has come; a deadline runs) or `idle` (nothing has; it may be closed for its
 * descriptor). While its request is answered it is in neither, and comes back through
 * `returned`.
 */

#include "fastcgi/intake.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fastcgi/tcp.h"

enum {
    EVENTS_MAX = 128,
    ACCEPTS_MAX = 64, /* a round, so that a flood of connections does not starve the requests */
    READ_BYTES = 64 << 10,
    PAUSE_MS = 20,         /* of accepting, without descriptors */
    IDLE_MIN_US = 1000000, /* before a connection may be closed for its descriptor */
    WARN_EVERY_US = 10000000,
    SWEEP_MS = 1000,        /* between two looks at the deadlines */
    WRITE_TIMEOUT_MS = 100, /* never reached by design: see credit_of in request.c */
    /* All unfinished requests together; one of nginx comes whole, so this is for hostile peers.
     */
    UNFINISHED_MAX_BYTES = 256 << 20,
};

struct list {
    struct connection *first, *last;
};

struct intake {
    struct intake_options options;
    struct request_owner owner;
    int epoll_fd, wake_fd;
    struct list idle, midway; /* each by active_us, the earliest first */
    size_t unfinished_bytes;
    bool accepting;
    int64_t warned_us; /* of a pause */
    atomic_bool stopping;
    pthread_mutex_t lock; /* guards `returned` */
    struct connection *returned;
    char chunk[READ_BYTES];
};

/* --- lists --- */

static void append(struct list *list, struct connection *connection)
{
    connection->next = NULL;
    connection->previous = list->last;
    if (list->last != NULL)
        list->last->next = connection;
    else
        list->first = connection;
    list->last = connection;
}

static void take_out(struct list *list, struct connection *connection)
{
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        list->first = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    else
        list->last = connection->previous;
}

static struct list *list_of(struct intake *intake, const struct connection *connection)
{
    return connection->is_midway ? &intake->midway : &intake->idle;
}

static void file_under(struct intake *intake, struct connection *connection, bool midway)
{
    connection->is_midway = midway;
    append(list_of(intake, connection), connection);
}

/* --- connections --- */

static void free_connection(struct connection *connection)
{
    close(connection->fd);
    record_free(&connection->parser);
    buffer_free(&connection->unread);
    free(connection);
}

static size_t unfinished_of(const struct connection *connection)
{
    return connection->parser.params.cap + connection->parser.body.cap;
}

/* It is in a list of ours. */
static void drop(struct intake *intake, struct connection *connection)
{
    take_out(list_of(intake, connection), connection);
    intake->unfinished_bytes -= unfinished_of(connection);
    free_connection(connection);
}

static int watch(struct intake *intake, struct connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = connection};

    return epoll_ctl(intake->epoll_fd, EPOLL_CTL_ADD, connection->fd, &event);
}

/* On the thread that ended the request. */
static void release(void *context, struct connection *connection, bool reusable)
{
    struct intake *intake = context;
    uint64_t one = 1;

    if (!reusable || atomic_load(&intake->stopping)) {
        free_connection(connection);
        return;
    }
    pthread_mutex_lock(&intake->lock);
    connection->next = intake->returned;
    intake->returned = connection;
    pthread_mutex_unlock(&intake->lock);
    ssize_t wrote = write(intake->wake_fd, &one, sizeof(one));
    (void)wrote; /* EAGAIN: it is awake */
}

static int set_accepting(struct intake *intake, bool accepting)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &intake->options};

    if (intake->accepting == accepting)
        return 0;
    intake->accepting = accepting;
    return epoll_ctl(intake->epoll_fd, accepting ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
                     intake->options.listen_fd, &event);
}

static void adopt(struct intake *intake, int fd)
{
    const struct timeval limit = {.tv_usec = WRITE_TIMEOUT_MS * 1000};
    struct connection *connection = calloc(1, sizeof(*connection));

    if (connection == NULL) {
        close(fd);
        return;
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    /* It may have connected while spawn-fcgi listened and we did not run yet. */
    tcp_set_options(fd, intake->options.peer_timeout_us);
    connection->fd = fd;
    connection->peer_timeout_ms = tcp_peer_timeout_ms(fd);
    connection->active_us = clock_monotonic_us();
    record_init(&connection->parser, &intake->options.limits);
    buffer_init(&connection->unread, READ_BYTES);
    file_under(intake, connection, false);
    if (watch(intake, connection) != 0)
        drop(intake, connection);
}

/* At most once in WARN_EVERY_US: it goes on for as long as the want does. */
static void warn_of_pause(struct intake *intake, int error)
{
    int64_t now_us = clock_monotonic_us();

    if (now_us < intake->warned_us + WARN_EVERY_US)
        return;
    intake->warned_us = now_us;
    log_warn("no descriptor for a new connection (%s), accepting pauses", strerror(error));
}

/* Close the connection that has been idle longest, for its descriptor; but not one that has
 * just come: its request is on the way. */
static bool make_room(struct intake *intake)
{
    struct connection *oldest = intake->idle.first;

    if (oldest == NULL || oldest->active_us > clock_monotonic_us() - IDLE_MIN_US)
        return false;
    drop(intake, oldest);
    return true;
}

static void accept_all(struct intake *intake)
{
    bool made_room = false;

    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(intake->options.listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            adopt(intake, fd);
            /* Without a free descriptor accept says EMFILE also when nobody waits: only the
             * next event tells whether one more must go. */
            if (made_room)
                return;
            continue;
        }
        if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
            return; /* EAGAIN, or one that has gone again: the next event tells */
        if (made_room || !make_room(intake)) {
            warn_of_pause(intake, errno);
            set_accepting(intake, false);
            return;
        }
        made_room = true;
    }
}

/* --- reading --- */

/* Send a small answer of the protocol itself. 0, or -1: the peer does not read, or is gone. */
static int answer(struct connection *connection, struct buffer *bytes)
{
    ssize_t sent = bytes->failed ? -1
                                 : send(connection->fd, bytes->data, bytes->len,
                                        MSG_DONTWAIT | MSG_NOSIGNAL);
    int result = sent == (ssize_t)bytes->len ? 0 : -1;

    buffer_free(bytes);
    return result;
}

static int answer_event(struct connection *connection, enum record_event event)
{
    struct buffer bytes;
    const struct record_parser *parser = &connection->parser;

    buffer_init(&bytes, 256);
    switch (event) {
    case RECORD_GET_VALUES:
        record_append_values(&bytes, parser->asked_values);
        break;
    case RECORD_UNKNOWN_TYPE:
        record_append_unknown_type(&bytes, parser->unknown_type);
        break;
    case RECORD_ABORTED:
        record_append_end_request(&bytes, parser->request_id, RECORD_REQUEST_COMPLETE);
        break;
    default:
        record_append_end_request(&bytes, parser->other_id, RECORD_CANT_MPX_CONN);
    }
    return answer(connection, &bytes);
}

/* The request is whole: it leaves our lists and the set until it is over. */
static void hand_over(struct intake *intake, struct connection *connection, const char *rest,
                      size_t rest_len)
{
    take_out(list_of(intake, connection), connection);
    intake->unfinished_bytes -= unfinished_of(connection);
    epoll_ctl(intake->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
    if (rest_len > 0 && buffer_append(&connection->unread, rest, rest_len) != 0) {
        free_connection(connection);
        return;
    }
    struct request *request = request_open(connection, &intake->owner);
    if (request == NULL) {
        log_warn("a request was refused by libfcgi, or there was no memory for it");
        free_connection(connection);
        return;
    }
    intake->options.handle(intake->options.context, request);
}

/* Feed bytes that came. The connection may be gone, or handed over, afterwards. */
static void feed(struct intake *intake, struct connection *connection, const char *bytes,
                 size_t len)
{
    size_t before = unfinished_of(connection);

    for (size_t at = 0; at < len;) {
        size_t used;
        enum record_event event =
            record_parse(&connection->parser, bytes + at, len - at, &used);
        at += used;
        intake->unfinished_bytes += unfinished_of(connection) - before;
        before = unfinished_of(connection);
        if (event == RECORD_REQUEST) {
            hand_over(intake, connection, bytes + at, len - at);
            return;
        }
        if (event == RECORD_BAD || intake->unfinished_bytes > UNFINISHED_MAX_BYTES ||
            (event != RECORD_NEED_MORE && answer_event(connection, event) != 0)) {
            drop(intake, connection);
            return;
        }
    }
    if (record_is_midway(&connection->parser) == connection->is_midway)
        return;
    take_out(list_of(intake, connection), connection);
    connection->active_us = clock_monotonic_us(); /* the deadline runs from its first byte */
    file_under(intake, connection, record_is_midway(&connection->parser));
}

static void read_some(struct intake *intake, struct connection *connection)
{
    ssize_t len = recv(connection->fd, intake->chunk, sizeof(intake->chunk), MSG_DONTWAIT);

    if (len > 0)
        feed(intake, connection, intake->chunk, (size_t)len);
    else if (len == 0 || (errno != EAGAIN && errno != EINTR))
        drop(intake, connection);
}

/* Connections whose request is over. What came behind it is looked at first. */
static void take_back(struct intake *intake)
{
    uint64_t count;
    ssize_t got = read(intake->wake_fd, &count, sizeof(count));

    (void)got;
    pthread_mutex_lock(&intake->lock);
    struct connection *connection = intake->returned;
    intake->returned = NULL;
    pthread_mutex_unlock(&intake->lock);
    while (connection != NULL) {
        struct connection *next = connection->next;
        struct buffer unread = connection->unread;
        buffer_init(&connection->unread, READ_BYTES);
        connection->active_us = clock_monotonic_us();
        file_under(intake, connection, false);
        intake->unfinished_bytes += unfinished_of(connection);
        if (watch(intake, connection) != 0)
            drop(intake, connection);
        else if (unread.len > 0)
            feed(intake, connection, unread.data, unread.len);
        buffer_free(&unread);
        connection = next;
    }
}

static void drop_late(struct intake *intake)
{
    int64_t limit_us = clock_monotonic_us() - intake->options.read_timeout_us;

    while (intake->midway.first != NULL && intake->midway.first->active_us < limit_us)
        drop(intake, intake->midway.first);
}

/* --- the whole --- */

struct intake *intake_create(const struct intake_options *options)
{
    struct intake *intake = calloc(1, sizeof(*intake));

    if (intake == NULL)
        return NULL;
    intake->options = *options;
    intake->owner = (struct request_owner){.release = release, .context = intake};
    pthread_mutex_init(&intake->lock, NULL);
    intake->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    intake->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &intake->wake_fd};
    if (intake->epoll_fd < 0 || intake->wake_fd < 0 ||
        epoll_ctl(intake->epoll_fd, EPOLL_CTL_ADD, intake->wake_fd, &event) != 0 ||
        set_accepting(intake, true) != 0) {
        int error = errno;
        intake_destroy(intake);
        errno = error;
        return NULL;
    }
    return intake;
}

void intake_run(struct intake *intake)
{
    struct epoll_event events[EVENTS_MAX];
    int64_t swept_us = clock_monotonic_us();

    while (!atomic_load(&intake->stopping)) {
        int count = epoll_wait(intake->epoll_fd, events, EVENTS_MAX,
                               intake->accepting ? SWEEP_MS : PAUSE_MS);
        bool accepts = false;
        bool returns = false;
        /* Connections first: accepting may close idle ones, whose events could be in this
         * batch. */
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &intake->options)
                accepts = true;
            else if (events[i].data.ptr == &intake->wake_fd)
                returns = true;
            else
                read_some(intake, events[i].data.ptr);
        }
        if (returns)
            take_back(intake);
        if (!intake->accepting)
            set_accepting(intake, true);
        else if (accepts)
            accept_all(intake);
        if (clock_monotonic_us() - swept_us >= SWEEP_MS * 1000) {
            swept_us = clock_monotonic_us();
            drop_late(intake);
        }
    }
}

void intake_stop(struct intake *intake)
{
    uint64_t one = 1;

    atomic_store(&intake->stopping, true);
    ssize_t wrote = write(intake->wake_fd, &one, sizeof(one));
    (void)wrote;
}

void intake_destroy(struct intake *intake)
{
    if (intake == NULL)
        return;
    while (intake->returned != NULL) { /* nobody answers any more: not taken back, closed */
        struct connection *connection = intake->returned;
        intake->returned = connection->next;
        free_connection(connection);
    }
    while (intake->idle.first != NULL)
        drop(intake, intake->idle.first);
    while (intake->midway.first != NULL)
        drop(intake, intake->midway.first);
    if (intake->epoll_fd >= 0)
        close(intake->epoll_fd);
    if (intake->wake_fd >= 0)
        close(intake->wake_fd);
    pthread_mutex_destroy(&intake->lock);
    free(intake);
}
