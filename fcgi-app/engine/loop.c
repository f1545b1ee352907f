/*
 * The engine's thread. Each round: wait for descriptors until the next deadline, deal with who
 * left, take the arrivals in, then give the pacer its turn. Hang-ups come before tokens, so
 * that no token is made for a client whose close is visible already.
 */

#include "engine/loop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

enum { EVENTS_MAX = 256 };

struct loop {
    struct loop_options options;
    struct pacer *pacer;
    pthread_t thread;
    int epoll_fd, arrival_fd, signal_fd;
    bool no_pwait2;          /* the kernel or a sandbox does not have epoll_pwait2 */
    int64_t drain_until_us;  /* CLOCK_NEVER: not draining */
    atomic_bool draining;    /* the same, for other threads */
    atomic_int terminations; /* asked for by loop_terminate, not yet seen */
    pthread_mutex_t lock;    /* guards the two below */
    struct generation *arrived_first, *arrived_last;
};

/* --- the pacer's watcher --- */

/* Edge-triggered: bytes that a peer sends in mid-reply stay unread, and must not spin the loop.
 */
static int control(struct loop *loop, int operation, struct generation *generation,
                   uint32_t also)
{
    int fd = generation->sink.ops->descriptor(generation->sink.context);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET | also,
                                .data.ptr = generation};

    return epoll_ctl(loop->epoll_fd, operation, fd, &event);
}

static int watch(void *context, struct generation *generation)
{
    return control(context, EPOLL_CTL_ADD, generation, 0);
}

static void unwatch(void *context, struct generation *generation)
{
    control(context, EPOLL_CTL_DEL, generation, 0);
}

static void watch_writable(void *context, struct generation *generation, bool wanted)
{
    control(context, EPOLL_CTL_MOD, generation, wanted ? (uint32_t)EPOLLOUT : 0);
}

/* --- making and ending --- */

static void close_descriptor(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void free_loop(struct loop *loop)
{
    pacer_destroy(loop->pacer);
    close_descriptor(loop->epoll_fd);
    close_descriptor(loop->arrival_fd);
    close_descriptor(loop->signal_fd);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

/* The event's pointer tells the two from generations: it is the address of the descriptor. */
static int watch_own(struct loop *loop, int *fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};

    return *fd < 0 ? -1 : epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, *fd, &event);
}

struct loop *loop_create(const struct loop_options *options)
{
    sigset_t signals;
    struct loop *loop = calloc(1, sizeof(*loop));

    if (loop == NULL)
        return NULL;
    loop->options = *options;
    loop->options.pacer.watcher = (struct pacer_watcher){
        .add = watch, .remove = unwatch, .want_writable = watch_writable, .context = loop};
    loop->drain_until_us = CLOCK_NEVER;
    pthread_mutex_init(&loop->lock, NULL);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->arrival_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    loop->pacer = pacer_create(&loop->options.pacer);
    if (loop->pacer == NULL || watch_own(loop, &loop->arrival_fd) != 0 ||
        watch_own(loop, &loop->signal_fd) != 0) {
        int error = errno;
        free_loop(loop);
        errno = error;
        return NULL;
    }
    return loop;
}

/* --- arrivals --- */

static void wake(struct loop *loop)
{
    uint64_t one = 1;
    ssize_t wrote = write(loop->arrival_fd, &one, sizeof(one));

    (void)wrote; /* EAGAIN: the counter is full, so it is awake */
}

void loop_submit(struct loop *loop, struct generation *generation)
{
    generation->next = NULL;
    pthread_mutex_lock(&loop->lock);
    bool was_empty = loop->arrived_first == NULL;
    if (was_empty)
        loop->arrived_first = generation;
    else
        loop->arrived_last->next = generation;
    loop->arrived_last = generation;
    pthread_mutex_unlock(&loop->lock);
    if (was_empty)
        wake(loop);
}

/* Give all that has arrived to the pacer. */
static void submit_arrived(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct generation *arrived = loop->arrived_first;
    loop->arrived_first = loop->arrived_last = NULL;
    pthread_mutex_unlock(&loop->lock);
    while (arrived != NULL) {
        struct generation *next = arrived->next;
        pacer_submit(loop->pacer, arrived);
        arrived = next;
    }
}

static void take_arrivals(struct loop *loop)
{
    uint64_t count;

    if (read(loop->arrival_fd, &count, sizeof(count)) > 0)
        submit_arrived(loop);
}

/* --- draining --- */

bool loop_is_draining(struct loop *loop)
{
    return atomic_load(&loop->draining);
}

void loop_terminate(struct loop *loop)
{
    atomic_fetch_add(&loop->terminations, 1);
    wake(loop);
}

static void terminate(struct loop *loop)
{
    int64_t now = clock_now_us(&loop->options.pacer.clock);

    if (atomic_load(&loop->draining)) {
        log_warn("second signal: ending at once, live=%zu", pacer_live(loop->pacer));
        loop->drain_until_us = now;
        return;
    }
    log_info("draining, live=%zu, for at most %lld s", pacer_live(loop->pacer),
             (long long)(loop->options.drain_us / 1000000));
    loop->drain_until_us = now + loop->options.drain_us;
    pacer_drain(loop->pacer);
    atomic_store(&loop->draining, true);
}

static void take_signals(struct loop *loop)
{
    struct signalfd_siginfo info;

    while (read(loop->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGHUP) {
            terminate(loop);
            continue;
        }
        if (log_reopen() != 0)
            log_error("SIGHUP: cannot open the log anew, going on with the old one");
        if (loop->options.on_hangup != NULL)
            loop->options.on_hangup(loop->options.context);
    }
}

/* --- the rounds --- */

static void handle(struct loop *loop, const struct epoll_event *event, int64_t seen_us)
{
    struct generation *generation = event->data.ptr;
    enum sink_peer peer = SINK_PRESENT;

    if (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        peer = SINK_HUNG_UP;
    else if (event->events & EPOLLIN)
        peer = generation->sink.ops->peer(generation->sink.context);
    if (peer != SINK_PRESENT && !loop->options.pacer.ignore_cancel)
        pacer_peer_left(loop->pacer, generation,
                        peer == SINK_ABORTED ? LEDGER_BY_ABORT : LEDGER_BY_HANGUP, seen_us);
    else if (event->events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        pacer_writable(loop->pacer, generation);
}

/* epoll_wait that sleeps to the microsecond: its own timeout is in rounded-up milliseconds. */
static int wait_for_events(struct loop *loop, struct epoll_event *events, int64_t timeout_us)
{
    struct timespec timeout = {.tv_sec = timeout_us / 1000000,
                               .tv_nsec = timeout_us % 1000000 * 1000};
    const struct timespec *limit = timeout_us == CLOCK_NEVER ? NULL : &timeout;

    if (!loop->no_pwait2) {
        int count = epoll_pwait2(loop->epoll_fd, events, EVENTS_MAX, limit, NULL);
        if (count >= 0 || (errno != ENOSYS && errno != EPERM))
            return count;
        loop->no_pwait2 = true; /* before Linux 5.11, and in some sandboxes */
    }
    struct pollfd ready = {.fd = loop->epoll_fd, .events = POLLIN};
    ppoll(&ready, 1, limit, NULL);
    return epoll_wait(loop->epoll_fd, events, EVENTS_MAX, 0);
}

static bool is_over(struct loop *loop)
{
    if (!atomic_load(&loop->draining))
        return false;
    if (pacer_live(loop->pacer) > 0 &&
        clock_now_us(&loop->options.pacer.clock) >= loop->drain_until_us)
        pacer_stop(loop->pacer);
    return pacer_live(loop->pacer) == 0;
}

/* A generation is in at most one event of a batch, and only its own event ends it: no pointer
 * in the batch goes stale before its turn, except by pacer_stop, which comes after the batch.
 */
static void handle_all(struct loop *loop, const struct epoll_event *events, int count)
{
    int64_t seen_us = clock_now_us(&loop->options.pacer.clock);
    bool arrivals = false;
    bool signals = false;

    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == &loop->arrival_fd)
            arrivals = true;
        else if (events[i].data.ptr == &loop->signal_fd)
            signals = true;
        else
            handle(loop, &events[i], seen_us);
    }
    if (arrivals)
        take_arrivals(loop);
    for (int asked = atomic_exchange(&loop->terminations, 0); asked > 0; asked--)
        terminate(loop);
    if (signals)
        take_signals(loop);
}

static void *loop_main(void *context)
{
    struct loop *loop = context;
    struct epoll_event events[EVENTS_MAX];

    /* The kernel may be 50 us late with a timer for the sake of batching; this thread may not.
     */
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    prctl(PR_SET_NAME, "engine", 0UL, 0UL, 0UL);
    while (!is_over(loop)) {
        int64_t wake_us = pacer_turn(loop->pacer);
        if (is_over(loop))
            break; /* the turn ended the last one: there is nothing more to wait for */
        if (wake_us > loop->drain_until_us)
            wake_us = loop->drain_until_us;
        int64_t timeout_us = CLOCK_NEVER;
        if (wake_us != CLOCK_NEVER) {
            timeout_us = wake_us - clock_now_us(&loop->options.pacer.clock);
            if (timeout_us < 0)
                timeout_us = 0;
        }
        int count = wait_for_events(loop, events, timeout_us);
        handle_all(loop, events, count);
    }
    if (loop->options.on_drained != NULL)
        loop->options.on_drained(loop->options.context);
    return NULL;
}

int loop_start(struct loop *loop)
{
    errno = pthread_create(&loop->thread, NULL, loop_main, loop);
    return errno == 0 ? 0 : -1;
}

void loop_join(struct loop *loop)
{
    pthread_join(loop->thread, NULL);
    submit_arrived(loop); /* what came too late is refused: it is draining */
    free_loop(loop);
}
