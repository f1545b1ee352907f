/*
 * The event loop. A turn is: wait for sockets or for the next time something is due; read what
 * is there; deal with what libcurl has ended; start what is due; wake slow readers.
 */

#include "gen/load/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "gen/load/connection.h"
#include "gen/load/payload.h"
#include "gen/load/progress.h"
#include "gen/load/reader.h"
#include "gen/load/schedule.h"

enum {
    EVENTS_A_TURN = 4096,
    OWN_DESCRIPTORS = 32,    /* files, epoll, what libcurl has for itself */
    STARTS_A_TURN = 64,      /* then what is open is read again */
    REFUSED_WAIT_US = 50000, /* a closed loop would do nothing but be refused */
};

struct loop {
    const struct options *options;
    struct figures *figures;
    struct schedule schedule;
    struct progress progress;
    struct connection_shared shared;
    CURLM *multi;
    int epoll;
    uint64_t call;           /* into libcurl; see connection.h */
    int64_t curl_due_us;     /* CLOCK_NEVER: libcurl waits for sockets alone */
    struct connection **all; /* `count` of `room` */
    size_t count, room;
    struct connection *free;
    struct connection **by_fd; /* those that read by themselves, `fd_room` places; else NULL */
    size_t fd_room;
    TAILQ_HEAD(, connection) open; /* in the order of their starts, and so of their timeouts */
    struct connection *pause_first, *pause_last; /* in the order in which they resume */
    int64_t woke_us;                             /* when the last turn began to work */
    int64_t refused_us; /* in the closed loop: no start before it, for one was refused */
    int64_t held_us;    /* when --streams last put off a start */
    const char *broken; /* why it cannot go on */
};

static volatile sig_atomic_t stop_signals;

static void note_signal(int number)
{
    (void)number;
    if (++stop_signals > 1)
        _exit(3);
}

int loop_make_room(uint64_t streams, char why[LOOP_WHY_MAX_BYTES])
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        snprintf(why, LOOP_WHY_MAX_BYTES, "getrlimit failed: %s", strerror(errno));
        return -1;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur == RLIM_INFINITY || streams + OWN_DESCRIPTORS <= limit.rlim_cur)
        return 0;
    snprintf(why, LOOP_WHY_MAX_BYTES,
             "--streams %" PRIu64 " needs %" PRIu64
             " descriptors, and the hard limit is %" PRIu64 " (RLIMIT_NOFILE, `ulimit -Hn`)",
             streams, streams + OWN_DESCRIPTORS, (uint64_t)limit.rlim_cur);
    return -1;
}

/* --- what libcurl asks of us --- */

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    struct loop *loop = context;
    struct epoll_event event = {.data.fd = fd};
    struct connection *connection;

    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL); /* it may be closed already */
        return 0;
    }
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &connection);
    connection->socket = fd; /* of several, the last is the one that was connected */
    event.events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
                   (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
    if (epoll_ctl(loop->epoll, known == NULL ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) !=
            0 &&
        !(errno == EEXIST && epoll_ctl(loop->epoll, EPOLL_CTL_MOD, fd, &event) == 0) &&
        !(errno == ENOENT && epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0))
        loop->broken = "epoll_ctl failed: too many descriptors are watched";
    /* Anything but NULL says that it is in the set. */
    curl_multi_assign(loop->multi, fd, loop);
    return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct loop *loop = context;

    (void)multi;
    loop->curl_due_us =
        timeout_ms < 0 ? CLOCK_NEVER : clock_monotonic_us() + (int64_t)timeout_ms * 1000;
    return 0;
}

static void act(struct loop *loop, curl_socket_t fd, int events)
{
    int running;

    loop->call++;
    if (curl_multi_socket_action(loop->multi, fd, events, &running) != CURLM_OK)
        loop->broken = "curl_multi_socket_action failed";
}

/* --- starts and ends --- */

static void set_free(struct loop *loop, struct connection *connection)
{
    connection->next = loop->free;
    loop->free = connection;
}

static struct connection *take_free(struct loop *loop)
{
    struct connection *connection = loop->free;

    if (connection != NULL) {
        loop->free = connection->next;
        return connection;
    }
    if (loop->count == loop->room) {
        size_t room = loop->room > 0 ? loop->room * 2 : 64;
        struct connection **grown = realloc(loop->all, room * sizeof(struct connection *));
        if (grown == NULL)
            return NULL;
        loop->all = grown;
        loop->room = room;
    }
    connection = connection_new(&loop->shared);
    if (connection != NULL)
        loop->all[loop->count++] = connection;
    return connection;
}

static void start(struct loop *loop, int64_t due_us, int64_t now_us)
{
    struct connection *connection = take_free(loop);
    /* In the closed loop a later request is intended when there is room for it. */
    bool has_time =
        loop->options->rate_milli > 0 || loop->schedule.next < loop->options->streams;

    if (connection == NULL ||
        connection_start(connection, schedule_take(&loop->schedule), has_time ? due_us : now_us,
                         now_us) != 0 ||
        curl_multi_add_handle(loop->multi, connection->easy) != CURLM_OK) {
        loop->broken = "no memory for a request";
        return;
    }
    connection->started_us = now_us;
    TAILQ_INSERT_TAIL(&loop->open, connection, open);
}

static void start_due(struct loop *loop, int64_t now_us)
{
    const struct options *options = loop->options;

    if (now_us < loop->refused_us)
        return;
    for (int i = 0; i < STARTS_A_TURN && stop_signals == 0; i++) {
        if (schedule_is_over(&loop->schedule, now_us))
            return;
        if (loop->figures->open >= options->streams) {
            loop->held_us = now_us;
            return;
        }
        int64_t due_us = schedule_due_us(&loop->schedule, loop->figures->open);
        if (due_us > now_us)
            return;
        if (options->rate_milli > 0 && due_us <= loop->held_us)
            loop->figures->delayed++;
        start(loop, due_us, now_us);
        if (loop->broken != NULL)
            return;
    }
}

static void end(struct loop *loop, struct connection *connection, enum stream_end how)
{
    uint64_t refused = loop->figures->failed_by[FAILURE_CONNECT];
    int64_t now_us = clock_monotonic_us();

    if (connection->fd >= 0)
        loop->by_fd[connection->fd] = NULL;
    connection_end(connection, how, now_us);
    curl_multi_remove_handle(loop->multi, connection->easy);
    TAILQ_REMOVE(&loop->open, connection, open);
    if (loop->options->rate_milli == 0 && loop->figures->failed_by[FAILURE_CONNECT] > refused)
        loop->refused_us = now_us + REFUSED_WAIT_US;
    if (!connection->is_paused) /* else it is free when its pause is over */
        set_free(loop, connection);
}

static void reap(struct loop *loop)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(loop->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        struct connection *connection;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &connection);
        end(loop, connection, connection_outcome(connection, code));
    }
}

static void end_timeouts(struct loop *loop, int64_t now_us)
{
    struct connection *oldest;

    while ((oldest = TAILQ_FIRST(&loop->open)) != NULL &&
           oldest->started_us + loop->options->timeout_us <= now_us) {
        snprintf(oldest->error, sizeof(oldest->error), "not at its end in %g s (--timeout)",
                 (double)loop->options->timeout_us / 1e6);
        end(loop, oldest, STREAM_TIMEOUT);
    }
}

/* --- reads of our own --- */

static int remember(struct loop *loop, struct connection *connection)
{
    size_t fd = (size_t)connection->fd;

    if (fd >= loop->fd_room) {
        size_t room = 2 * fd + 64;
        struct connection **grown = realloc(loop->by_fd, room * sizeof(struct connection *));
        if (grown == NULL)
            return -1;
        memset(grown + loop->fd_room, 0, (room - loop->fd_room) * sizeof(struct connection *));
        loop->by_fd = grown;
        loop->fd_room = room;
    }
    loop->by_fd[fd] = connection;
    return 0;
}

/*
 * The streams whose head libcurl has read. For libcurl they pause, so it leaves their sockets
 * alone and has us watch them no more; then we do, for ourselves. Paused in one direction only,
 * it would read once more and keep what it has read (7.88, curl_easy_pause).
 */
static void take_over(struct loop *loop)
{
    while (loop->shared.heads != NULL) {
        struct connection *connection = loop->shared.heads;
        struct epoll_event event = {.events = EPOLLIN, .data.fd = connection->socket};

        loop->shared.heads = connection->next_head;
        if (!connection->is_open)
            continue;
        if (curl_easy_pause(connection->easy, CURLPAUSE_ALL) != CURLE_OK) {
            loop->broken = "libcurl could not be paused";
            return;
        }
        connection->fd = connection->socket;
        if (remember(loop, connection) != 0 ||
            epoll_ctl(loop->epoll, EPOLL_CTL_ADD, connection->fd, &event) != 0) {
            loop->broken = "no memory for a stream";
            return;
        }
    }
}

/* --- slow readers --- */

/* 0, or -1 when it cannot be done any more. */
static int stop_reading(struct loop *loop, struct connection *connection)
{
    if (connection->fd >=
        0) /* all the way: a hang-up would be told even to nobody's interest */
        return epoll_ctl(loop->epoll, EPOLL_CTL_DEL, connection->fd, NULL);
    return curl_easy_pause(connection->easy, CURLPAUSE_ALL) == CURLE_OK ? 0 : -1;
}

static void read_on(struct loop *loop, struct connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = connection->fd};

    if (connection->fd >= 0) {
        epoll_ctl(loop->epoll, EPOLL_CTL_ADD, connection->fd, &event);
        return;
    }
    loop->call++; /* what libcurl has kept comes now */
    CURLcode code = curl_easy_pause(connection->easy, CURLPAUSE_CONT);
    if (code != CURLE_OK) /* it left at what had been kept: libcurl leaves the end to us */
        end(loop, connection, connection_outcome(connection, code));
}

/* Those that have read: all pause for the same time, so the list is in the order of its ends.
 */
static void pause_readers(struct loop *loop, int64_t now_us)
{
    while (loop->shared.slow_reads != NULL) {
        struct connection *connection = loop->shared.slow_reads;

        loop->shared.slow_reads = connection->next_read;
        connection->has_slow_read = false;
        if (connection->is_paused || !connection->is_open || !connection->stream.fate.is_slow ||
            stop_reading(loop, connection) != 0)
            continue;
        connection->is_paused = true;
        connection->resume_us = now_us + loop->options->slow_pause_us;
        connection->next = NULL;
        if (loop->pause_last != NULL)
            loop->pause_last->next = connection;
        else
            loop->pause_first = connection;
        loop->pause_last = connection;
    }
}

static void resume_readers(struct loop *loop, int64_t now_us)
{
    while (loop->pause_first != NULL && loop->pause_first->resume_us <= now_us) {
        struct connection *connection = loop->pause_first;

        loop->pause_first = connection->next;
        if (loop->pause_first == NULL)
            loop->pause_last = NULL;
        connection->is_paused = false;
        if (connection->is_open)
            read_on(loop, connection);
        else
            set_free(loop, connection);
    }
}

/* --- turns --- */

static int64_t earlier(int64_t a_us, int64_t b_us)
{
    return a_us < b_us ? a_us : b_us;
}

static int64_t next_due_us(const struct loop *loop, int64_t now_us)
{
    int64_t due_us = earlier(loop->curl_due_us, progress_due_us(&loop->progress));

    if (loop->pause_first != NULL)
        due_us = earlier(due_us, loop->pause_first->resume_us);
    if (!TAILQ_EMPTY(&loop->open))
        due_us =
            earlier(due_us, TAILQ_FIRST(&loop->open)->started_us + loop->options->timeout_us);
    if (!schedule_is_over(&loop->schedule, now_us)) {
        int64_t start_us = schedule_due_us(&loop->schedule, loop->figures->open);
        due_us = earlier(due_us, start_us > loop->refused_us ? start_us : loop->refused_us);
    }
    /* The duration may end while nothing else happens. */
    if (loop->options->duration_us > 0 && loop->figures->open == 0)
        due_us = earlier(due_us, loop->schedule.began_us + loop->options->duration_us);
    return due_us;
}

static int wait_for_events(const struct loop *loop, struct epoll_event *events, int64_t now_us)
{
    int64_t due_us = next_due_us(loop, now_us);
    int64_t wait_us = due_us > now_us ? due_us - now_us : 0;
    struct timespec wait = {.tv_sec = wait_us / 1000000, .tv_nsec = wait_us % 1000000 * 1000};
    sigset_t none;

    sigemptyset(&none);
    return epoll_pwait2(loop->epoll, events, EVENTS_A_TURN,
                        due_us == CLOCK_NEVER ? NULL : &wait, &none);
}

static void read_socket(struct loop *loop, const struct epoll_event *event)
{
    size_t fd = (size_t)event->data.fd;
    struct connection *connection = fd < loop->fd_room ? loop->by_fd[fd] : NULL;
    enum stream_end how;

    if (connection == NULL)
        act(loop, event->data.fd,
            (event->events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                (event->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                (event->events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0));
    else if (connection_read(connection, &how))
        end(loop, connection, how);
}

static void turn(struct loop *loop)
{
    struct epoll_event events[EVENTS_A_TURN];
    uint64_t reads = loop->figures->reads;
    int64_t slept_us = clock_monotonic_us();
    int64_t work_us = slept_us - loop->woke_us;
    int count = wait_for_events(loop, events, slept_us);
    int64_t woke_us = clock_monotonic_us();

    for (int i = 0; i < count && loop->broken == NULL; i++)
        read_socket(loop, &events[i]);
    int64_t now_us = clock_monotonic_us();
    if (loop->curl_due_us <= now_us) {
        loop->curl_due_us = CLOCK_NEVER;
        act(loop, CURL_SOCKET_TIMEOUT, 0);
    }
    reap(loop);
    take_over(loop);
    end_timeouts(loop, now_us);
    pause_readers(loop, now_us);
    resume_readers(loop, now_us);
    start_due(loop, now_us);
    progress_tell(&loop->progress, loop->figures, now_us);
    figures_turn(loop->figures, now_us);
    /* What was read may have been there since the turn before. */
    work_us += clock_monotonic_us() - woke_us;
    if (woke_us >= loop->figures->window_start_us && woke_us <= loop->figures->window_end_us)
        distribution_add(&loop->figures->of[FIGURE_TURN], work_us,
                         loop->figures->reads - reads);
    loop->woke_us = woke_us;
}

static void interrupt(struct loop *loop)
{
    loop->figures->was_interrupted = true;
    for (size_t i = 0; i < loop->count; i++) {
        if (!loop->all[i]->is_open)
            continue;
        curl_multi_remove_handle(loop->multi, loop->all[i]->easy);
        connection_end(loop->all[i], STREAM_INTERRUPTED, clock_monotonic_us());
    }
}

/* --- beginning and end --- */

static int open_loop(struct loop *loop)
{
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->multi = curl_multi_init();
    loop->shared.bytes = malloc(CONNECTION_READ_BYTES);
    if (loop->epoll < 0 || loop->multi == NULL || loop->shared.bytes == NULL)
        return -1;
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    curl_multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, (long)loop->options->streams);
    return 0;
}

static void close_loop(struct loop *loop)
{
    for (size_t i = 0; i < loop->count; i++) {
        if (loop->all[i]->is_open)
            curl_multi_remove_handle(loop->multi, loop->all[i]->easy);
        connection_free(loop->all[i]);
    }
    free(loop->all);
    free(loop->by_fd);
    free(loop->shared.bytes);
    if (loop->multi != NULL)
        curl_multi_cleanup(loop->multi);
    if (loop->epoll >= 0)
        close(loop->epoll);
    buffer_free(&loop->shared.stream.scratch);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal};

    stop_signals = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int loop_run(const struct options *options, const struct target *target,
             struct figures *figures, struct events *events, char why[LOOP_WHY_MAX_BYTES])
{
    struct loop loop = {
        .options = options, .figures = figures, .curl_due_us = CLOCK_NEVER, .held_us = -1};
    uint32_t run = 0;

    loop.shared.stream =
        (struct stream_shared){.options = options, .figures = figures, .events = events};
    buffer_init(&loop.shared.stream.scratch, READER_EVENT_MAX_BYTES);
    TAILQ_INIT(&loop.open);
    loop.shared.target = target;
    loop.shared.call = &loop.call;
    if (getrandom(&run, sizeof(run), 0) != (ssize_t)sizeof(run))
        run = (uint32_t)getpid();
    request_maker_init(&loop.shared.maker, options, run);
    catch_signals();
    /* Else the kernel may wake us 50 us late, to save power. */
    prctl(PR_SET_TIMERSLACK, 1UL);
    if (open_loop(&loop) != 0) {
        loop.broken = "no epoll set, or no memory";
    } else {
        int64_t now_us = clock_monotonic_us();
        schedule_start(&loop.schedule, options, now_us);
        figures_start(figures, options, now_us);
        loop.woke_us = now_us;
        progress_start(&loop.progress, options, now_us);
        start_due(&loop, now_us);
    }
    while (loop.broken == NULL && stop_signals == 0 &&
           (figures->open > 0 || !schedule_is_over(&loop.schedule, clock_monotonic_us())))
        turn(&loop);
    if (loop.broken == NULL && stop_signals > 0)
        interrupt(&loop);
    figures_stop(figures, clock_monotonic_us());
    progress_end(&loop.progress);
    if (loop.broken != NULL)
        snprintf(why, LOOP_WHY_MAX_BYTES, "%s", loop.broken);
    close_loop(&loop);
    return loop.broken == NULL ? 0 : -1;
}
