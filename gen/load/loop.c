/*
 * The event loop. A turn is: wait for sockets or for the next time something is due; read what
 * is there; deal with what has ended; start what is due.
 */

#include "gen/load/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "gen/load/connections.h"
#include "gen/load/progress.h"
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
    struct connections connections;
    int64_t woke_us;    /* when the last turn began to work */
    uint64_t refused;   /* connections so far */
    int64_t refused_us; /* in the closed loop: no start before it, for one was refused */
    int64_t held_us;    /* when --streams last put off a start */
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

/* --- starts --- */

/* A closed loop waits when a connection was refused, so that it does not spin. */
static void heed_refusals(struct loop *loop, int64_t now_us)
{
    uint64_t refused = loop->figures->failed_by[FAILURE_CONNECT];

    if (loop->options->rate_milli == 0 && refused > loop->refused)
        loop->refused_us = now_us + REFUSED_WAIT_US;
    loop->refused = refused;
}

static void start(struct loop *loop, int64_t due_us, int64_t now_us)
{
    /* In the closed loop a later request is intended when there is room for it. */
    bool has_time =
        loop->options->rate_milli > 0 || loop->schedule.next < loop->options->streams;

    connections_start(&loop->connections, schedule_take(&loop->schedule),
                      has_time ? due_us : now_us, now_us);
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
        if (loop->connections.broken != NULL)
            return;
    }
}

/* --- turns --- */

static int64_t earlier(int64_t a_us, int64_t b_us)
{
    return a_us < b_us ? a_us : b_us;
}

static int64_t next_due_us(const struct loop *loop, int64_t now_us)
{
    int64_t due_us =
        earlier(connections_due_us(&loop->connections), progress_due_us(&loop->progress));

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
    return epoll_pwait2(loop->connections.epoll, events, EVENTS_A_TURN,
                        due_us == CLOCK_NEVER ? NULL : &wait, &none);
}

static void turn(struct loop *loop)
{
    struct epoll_event events[EVENTS_A_TURN];
    uint64_t reads = loop->figures->reads;
    int64_t slept_us = clock_monotonic_us();
    int64_t work_us = slept_us - loop->woke_us;
    int count = wait_for_events(loop, events, slept_us);
    int64_t woke_us = clock_monotonic_us();

    for (int i = 0; i < count && loop->connections.broken == NULL; i++)
        connections_event(&loop->connections, &events[i]);
    int64_t now_us = clock_monotonic_us();
    connections_work(&loop->connections, now_us);
    heed_refusals(loop, now_us);
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

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal};

    stop_signals = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void begin(struct loop *loop)
{
    int64_t now_us = clock_monotonic_us();

    schedule_start(&loop->schedule, loop->options, now_us);
    figures_start(loop->figures, loop->options, now_us);
    progress_start(&loop->progress, loop->options, now_us);
    loop->woke_us = now_us;
    start_due(loop, now_us);
}

int loop_run(const struct options *options, const struct target *target,
             struct figures *figures, struct events *events, char why[LOOP_WHY_MAX_BYTES])
{
    struct loop loop = {.options = options, .figures = figures, .held_us = -1};
    struct connections *connections = &loop.connections;

    catch_signals();
    /* Else the kernel may wake us 50 us late, to save power. */
    prctl(PR_SET_TIMERSLACK, 1UL);
    if (connections_open(connections, options, target, figures, events) != 0)
        connections->broken = "no epoll set, or no memory";
    else
        begin(&loop);
    while (connections->broken == NULL && stop_signals == 0 &&
           (figures->open > 0 || !schedule_is_over(&loop.schedule, clock_monotonic_us())))
        turn(&loop);
    if (connections->broken == NULL && stop_signals > 0) {
        figures->was_interrupted = true;
        connections_interrupt(connections);
    }
    figures_stop(figures, clock_monotonic_us());
    progress_end(&loop.progress);
    if (connections->broken != NULL)
        snprintf(why, LOOP_WHY_MAX_BYTES, "%s", connections->broken);
    int status = connections->broken == NULL ? 0 : -1;
    connections_close(connections);
    return status;
}
