/*
 * loop: the engine's thread with real descriptors. The clients' ends are in the test's hands;
 * it waits for what the engine does (a release, an end of file), never for time to pass.
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
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine/loop.h"
#include "tests/unit/fake_engine.h"
#include "tests/unit/fake_peer.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { MS = 1000, LONG_US = 600000000 };

/* --- what all streams of a test share --- */

static struct {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    size_t released, ended, drained;
    struct ledger_request requests[512]; /* in the order of their ends */
} world = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void change(size_t *count)
{
    pthread_mutex_lock(&world.lock);
    (*count)++;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.lock);
}

/* Whether `*count` comes to `wanted`, before a limit that only a hang reaches. */
static bool wait_for(const size_t *count, size_t wanted)
{
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    pthread_mutex_lock(&world.lock);
    while (*count < wanted && pthread_cond_timedwait(&world.changed, &world.lock, &limit) == 0)
        continue;
    bool reached = *count >= wanted;
    pthread_mutex_unlock(&world.lock);
    return reached;
}

static void on_end(const struct ledger_request *request)
{
    pthread_mutex_lock(&world.lock);
    if (world.ended < COUNT_OF(world.requests))
        world.requests[world.ended] = *request;
    world.ended++;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.lock);
}

static void on_drained(void *context)
{
    change(context);
}

static atomic_int hangups;

static void on_hangup(void *context)
{
    assert_ptr_equal(context, &world.drained);
    atomic_fetch_add(&hangups, 1);
}

/* --- a stream over a socketpair --- */

struct stream {
    int fd, peer;
    struct fake_encoder encoder;
    atomic_int releases, looks, ends;
    atomic_int refusals; /* times that it was found full */
};

static int socket_write(void *context, const char *bytes, size_t len)
{
    struct stream *stream = context;

    return send(stream->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1;
}

static int socket_flush(void *context)
{
    (void)context;
    return 0;
}

static bool socket_writable(void *context)
{
    struct stream *stream = context;
    struct pollfd out = {.fd = stream->fd, .events = POLLOUT};

    if (poll(&out, 1, 0) == 1)
        return true;
    atomic_fetch_add(&stream->refusals, 1);
    return false;
}

static void socket_soon(const void *context)
{
    (void)context;
}

static enum sink_peer socket_peer(void *context)
{
    struct stream *stream = context;
    char byte;

    atomic_fetch_add(&stream->looks, 1);
    ssize_t len = recv(stream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (len == 0)
        return SINK_HUNG_UP;
    return len > 0 && byte == 'A' ? SINK_ABORTED : SINK_PRESENT;
}

static int socket_end(void *context)
{
    struct stream *stream = context;

    atomic_fetch_add(&stream->ends, 1);
    return 0;
}

static void socket_release(void *context)
{
    struct stream *stream = context;

    if (atomic_fetch_add(&stream->releases, 1) == 0)
        close(stream->fd);
    change(&world.released);
}

static int socket_descriptor(void *context)
{
    const struct stream *stream = context;

    return stream->fd;
}

static const struct sink_ops socket_ops = {
    .write = socket_write,
    .flush = socket_flush,
    .writable = socket_writable,
    .soon = socket_soon,
    .peer = socket_peer,
    .end = socket_end,
    .release = socket_release,
    .descriptor = socket_descriptor,
};

static struct generation *stream_generation(struct stream *stream, const char *id,
                                            uint64_t requested, int64_t ttft_us, int64_t itl_us)
{
    int fds[2] = {-1, -1};
    struct generation *generation = generation_create();

    if (generation == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        abort();
    stream->fd = fds[0];
    stream->peer = fds[1];
    snprintf(generation->ledger.id, sizeof(generation->ledger.id), "%s", id);
    generation->ledger.requested = requested;
    generation->plan.timing = (struct timing){.ttft_us = ttft_us, .itl_us = itl_us};
    generation->encoder =
        (struct encoder){.ops = &fake_encoder_ops, .context = &stream->encoder};
    generation->sink = (struct sink){.ops = &socket_ops, .context = stream};
    generation->accepted_us = clock_monotonic_us();
    return generation;
}

/* Read until `text` has come, or, with NULL, all to the end. false: it ends without. */
static bool read_text(int peer, const char *text, char *all, size_t cap)
{
    size_t len = strlen(all);

    while (text == NULL || strstr(all, text) == NULL) {
        struct pollfd in = {.fd = peer, .events = POLLIN};
        if (poll(&in, 1, PEER_TIMEOUT_MS) != 1 || len + 1 >= cap)
            return false;
        ssize_t got = recv(peer, all + len, cap - len - 1, 0);
        if (got <= 0)
            return text == NULL;
        len += (size_t)got;
        all[len] = '\0';
    }
    return true;
}

/* What the client gets until the connection ends. */
static void assert_got(struct stream *stream, const char *wanted)
{
    char all[4096] = "";

    assert_true(read_text(stream->peer, NULL, all, sizeof(all)));
    assert_string_equal(all, wanted);
    close(stream->peer);
}

/* --- the loop --- */

struct engine {
    struct ledger *ledger;
    struct loop *loop;
};

static void engine_open_as(struct engine *engine, size_t slots, size_t queue, int64_t drain_us,
                           bool ignore_cancel)
{
    char error[LEDGER_ERROR_MAX_BYTES];

    pthread_mutex_lock(&world.lock);
    world.released = world.ended = world.drained = 0;
    pthread_mutex_unlock(&world.lock);
    engine->ledger = ledger_open(NULL, error);
    assert_non_null(engine->ledger);
    const struct loop_options options = {
        .pacer = {.slots = slots,
                  .queue = queue,
                  .stall_timeout_us = LONG_US,
                  .ignore_cancel = ignore_cancel,
                  .ledger = engine->ledger,
                  .clock = clock_system(),
                  .on_end = on_end},
        .drain_us = drain_us,
        .on_drained = on_drained,
        .on_hangup = on_hangup,
        .context = &world.drained,
    };
    engine->loop = loop_create(&options);
    assert_non_null(engine->loop);
    assert_int_equal(loop_start(engine->loop), 0);
}

static void engine_open(struct engine *engine, size_t slots, size_t queue)
{
    engine_open_as(engine, slots, queue, LONG_US, false);
}

/* Join, and see that each of `count` requests ended and was released once. */
static void engine_join(struct engine *engine, size_t count)
{
    loop_join(engine->loop);
    struct ledger_totals totals = check_books(engine->ledger);
    assert_int_equal(totals.accepted, count);
    assert_int_equal(totals.queued + totals.running + totals.held, 0);
    assert_int_equal(world.ended, count);
    assert_int_equal(world.released, count);
    assert_int_equal(world.drained, 1);
    ledger_close(engine->ledger);
}

static void engine_close(struct engine *engine, size_t count)
{
    loop_terminate(engine->loop);
    engine_join(engine, count);
}

static void submit(struct engine *engine, struct stream *stream, const char *id,
                   uint64_t requested, int64_t ttft_us, int64_t itl_us)
{
    loop_submit(engine->loop, stream_generation(stream, id, requested, ttft_us, itl_us));
}

/* After its end. */
static struct ledger_request request_named(const char *id)
{
    struct ledger_request request = {.sequence = 0};

    pthread_mutex_lock(&world.lock);
    for (size_t i = 0; i < world.ended && i < COUNT_OF(world.requests); i++) {
        if (strcmp(world.requests[i].id, id) == 0)
            request = world.requests[i];
    }
    pthread_mutex_unlock(&world.lock);
    assert_true(request.sequence > 0);
    return request;
}

static void assert_outcome(const char *id, enum ledger_outcome outcome, enum ledger_phase phase,
                           enum ledger_detector detector)
{
    struct ledger_request request = request_named(id);

    assert_string_equal(ledger_outcome_name(request.outcome), ledger_outcome_name(outcome));
    assert_string_equal(ledger_phase_name(request.phase), ledger_phase_name(phase));
    assert_string_equal(ledger_detector_name(request.detected_by),
                        ledger_detector_name(detector));
}

static void test_one_stream(void **state)
{
    struct engine engine;
    struct stream stream = {.fd = -1};

    (void)state;
    engine_open(&engine, 1, 0);
    int64_t began_us = clock_monotonic_us();
    submit(&engine, &stream, "a", 5, 20 * MS, 5 * MS);
    assert_got(&stream, "H0;1;2;3;4;Edone");
    assert_true(clock_monotonic_us() - began_us >= 40 * MS); /* never early */
    assert_true(wait_for(&world.ended, 1));
    assert_outcome("a", LEDGER_DONE, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    assert_true(request_named("a").ttft_us >= 20 * MS);
    assert_int_equal(atomic_load(&stream.ends), 1);
    assert_false(loop_is_draining(engine.loop));
    engine_close(&engine, 1);
    assert_int_equal(stream.encoder.broken_rules, 0);
}

/* --- many threads --- */

enum { THREADS = 4, STREAMS_EACH = 50 };

struct submitter {
    pthread_t thread;
    struct engine *engine;
    struct stream streams[STREAMS_EACH];
};

static void *submit_all(void *context)
{
    struct submitter *submitter = context;

    for (size_t i = 0; i < STREAMS_EACH; i++)
        submit(submitter->engine, &submitter->streams[i], "x", 1 + i % 7, (int64_t)(i % 5) * MS,
               (int64_t)(i % 3) * MS / 2);
    return NULL;
}

static struct submitter *start_submitters(struct engine *engine)
{
    struct submitter *submitters = calloc(THREADS, sizeof(*submitters));

    assert_non_null(submitters);
    for (size_t i = 0; i < THREADS; i++) {
        submitters[i].engine = engine;
        assert_int_equal(
            pthread_create(&submitters[i].thread, NULL, submit_all, &submitters[i]), 0);
    }
    return submitters;
}

static void join_submitters(struct submitter *submitters)
{
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(submitters[i].thread, NULL);
}

static void test_submitted_from_many_threads(void **state)
{
    struct engine engine;

    (void)state;
    engine_open(&engine, 20, THREADS * STREAMS_EACH);
    struct submitter *submitters = start_submitters(&engine);
    join_submitters(submitters);
    assert_true(wait_for(&world.released, THREADS * STREAMS_EACH));
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t j = 0; j < STREAMS_EACH; j++) {
            static const char whole[] = "H0;1;2;3;4;5;6;";
            char wanted[64];
            snprintf(wanted, sizeof(wanted), "%.*sEdone", (int)(1 + 2 * (1 + j % 7)), whole);
            assert_got(&submitters[i].streams[j], wanted);
        }
    }
    engine_close(&engine, THREADS * STREAMS_EACH);
    for (size_t i = 0; i < THREADS * STREAMS_EACH; i++) {
        const struct stream *stream = &submitters[i / STREAMS_EACH].streams[i % STREAMS_EACH];
        assert_int_equal(atomic_load(&stream->releases), 1);
        assert_int_equal(stream->encoder.frees, 1);
        assert_int_equal(stream->encoder.broken_rules, 0);
    }
    free(submitters);
}

/* Submitting and terminating race: each request is served or refused, and released once. */
static void test_terminated_while_others_submit(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        struct engine engine;

        engine_open(&engine, 10, 1000);
        struct submitter *submitters = start_submitters(&engine);
        assert_true(wait_for(&world.ended, (size_t)round * 5));
        loop_terminate(engine.loop);
        join_submitters(submitters);
        engine_join(&engine, THREADS * STREAMS_EACH);
        for (size_t i = 0; i < THREADS * STREAMS_EACH; i++) {
            struct stream *stream = &submitters[i / STREAMS_EACH].streams[i % STREAMS_EACH];
            assert_int_equal(atomic_load(&stream->releases), 1);
            assert_int_equal(stream->encoder.frees, 1);
            close(stream->peer);
        }
        free(submitters);
    }
}

/* --- clients that leave --- */

enum moment { QUEUED, PREFILL, DECODE, BLOCKED };
enum way { CLOSE, HALF_CLOSE, ABORT };

static void leave(struct stream *stream, enum way way)
{
    if (way == CLOSE)
        close(stream->peer);
    else if (way == HALF_CLOSE)
        shutdown(stream->peer, SHUT_WR);
    else
        assert_int_equal(send(stream->peer, "A", 1, 0), 1);
}

/* Whether the engine comes to find its socket full, before a limit that only a hang reaches. */
static bool wait_until_refused(struct stream *stream)
{
    int64_t limit_us = clock_monotonic_us() + 60000 * MS;

    while (atomic_load(&stream->refusals) == 0) {
        if (clock_monotonic_us() > limit_us)
            return false;
        sched_yield();
    }
    return true;
}

static void test_clients_that_leave(void **state)
{
    static const struct {
        enum moment moment;
        enum ledger_phase phase;
    } rows[] = {
        {QUEUED, LEDGER_QUEUED},
        {PREFILL, LEDGER_PREFILL},
        {DECODE, LEDGER_DECODE},
        {BLOCKED, LEDGER_DECODE},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        for (int way = CLOSE; way <= ABORT; way++) {
            enum moment moment = rows[row].moment;
            struct engine engine;
            struct stream first = {.fd = -1};
            struct stream one = {.fd = -1};
            struct stream behind = {.fd = -1};
            char all[4096] = "";

            engine_open(&engine, 1, 2);
            if (moment == QUEUED)
                submit(&engine, &first, "first", 1000000, LONG_US, 0);
            one.encoder.token_bytes = moment == BLOCKED ? 4000 : 0;
            submit(&engine, &one, "one", 1000000, moment == PREFILL ? LONG_US : 0,
                   moment == BLOCKED ? 0 : LONG_US);
            submit(&engine, &behind, "behind", 1, 0, 0);
            if (moment == BLOCKED) /* with nothing read, which would make room again */
                assert_true(wait_until_refused(&one));
            else
                assert_true(
                    read_text(one.peer, moment == DECODE ? "0;" : "H", all, sizeof(all)));
            leave(&one, (enum way)way);
            assert_true(wait_for(&world.released, 1));
            /* No client that waits behind it waits for longer than that. */
            if (moment != QUEUED)
                assert_got(&behind, "H0;Edone");
            assert_outcome("one", LEDGER_CANCELLED, rows[row].phase,
                           way == ABORT ? LEDGER_BY_ABORT : LEDGER_BY_HANGUP);
            /* An abort is answered with the end of the request, a hang-up with nothing. */
            assert_int_equal(atomic_load(&one.ends), way == ABORT && moment != BLOCKED ? 1 : 0);
            if (moment == QUEUED) {
                close(first.peer);
                assert_got(&behind, "H0;Edone");
            }
            if (way != CLOSE)
                close(one.peer);
            engine_close(&engine, moment == QUEUED ? 3 : 2);
        }
    }
}

/* It has closed before the engine sees it for the first time. */
static void test_a_client_that_left_early(void **state)
{
    struct engine engine;
    struct stream stream = {.fd = -1};

    (void)state;
    engine_open(&engine, 1, 0);
    struct generation *generation = stream_generation(&stream, "a", 10, 0, 0);
    close(stream.peer);
    loop_submit(engine.loop, generation);
    assert_true(wait_for(&world.released, 1));
    assert_outcome("a", LEDGER_CANCELLED, LEDGER_QUEUED, LEDGER_BY_HANGUP);
    assert_int_equal(request_named("a").generated, 0);
    engine_close(&engine, 1);
}

/* Bytes that are no abort stay unread, and must not wake the loop again and again. */
static void test_bytes_in_mid_reply_do_not_spin(void **state)
{
    struct engine engine;
    struct stream stream = {.fd = -1};

    (void)state;
    engine_open(&engine, 1, 0);
    submit(&engine, &stream, "a", 50, 0, 2 * MS);
    char all[4096] = "";
    assert_true(read_text(stream.peer, "H", all, sizeof(all)));
    assert_int_equal(send(stream.peer, "x", 1, 0), 1);
    assert_true(read_text(stream.peer, "Edone", all, sizeof(all)));
    assert_in_range(atomic_load(&stream.looks), 1, 10);
    close(stream.peer);
    engine_close(&engine, 1);
    assert_outcome("a", LEDGER_DONE, LEDGER_DECODE, LEDGER_NOT_DETECTED);
}

static void test_ignored_cancel(void **state)
{
    struct engine engine;
    struct stream stream = {.fd = -1};
    char all[4096] = "";

    (void)state;
    engine_open_as(&engine, 1, 0, LONG_US, true);
    submit(&engine, &stream, "a", 30, 0, MS);
    assert_true(read_text(stream.peer, "0;", all, sizeof(all)));
    close(stream.peer);
    assert_true(wait_for(&world.released, 1));
    assert_outcome("a", LEDGER_CANCELLED, LEDGER_DECODE, LEDGER_BY_WRITE);
    assert_int_equal(request_named("a").generated, 30);
    engine_close(&engine, 1);
}

/* A reader that stops, and goes on: its stream waits, and then goes on where it was. */
static void test_a_slow_reader_goes_on(void **state)
{
    enum { TOKENS = 500, TOKEN_BYTES = 4000 };
    struct engine engine;
    struct stream stream = {.fd = -1, .encoder = {.token_bytes = TOKEN_BYTES}};
    size_t got = 0;
    char sponge[65536];

    (void)state;
    engine_open(&engine, 1, 0);
    submit(&engine, &stream, "a", TOKENS, 0, 0);
    for (;;) {
        struct pollfd in = {.fd = stream.peer, .events = POLLIN};
        assert_int_equal(poll(&in, 1, PEER_TIMEOUT_MS), 1);
        ssize_t len = recv(stream.peer, sponge, sizeof(sponge), 0);
        if (len <= 0)
            break;
        got += (size_t)len;
    }
    assert_int_equal(got, 1 + TOKENS * TOKEN_BYTES + strlen("Edone"));
    close(stream.peer);
    engine_close(&engine, 1);
    assert_outcome("a", LEDGER_DONE, LEDGER_DECODE, LEDGER_NOT_DETECTED);
}

/* --- the end --- */

static void test_drain(void **state)
{
    struct engine engine;
    struct stream live = {.fd = -1};
    struct stream queued = {.fd = -1};
    struct stream late = {.fd = -1};
    char all[4096] = "";

    (void)state;
    engine_open(&engine, 1, 1);
    submit(&engine, &live, "live", 20, 0, 5 * MS);
    submit(&engine, &queued, "queued", 1, 0, 0);
    assert_true(read_text(queued.peer, "H", all, sizeof(all)));
    loop_terminate(engine.loop);
    while (!loop_is_draining(engine.loop))
        sched_yield();
    submit(&engine, &late, "late", 1, 0, 0);
    assert_got(&late, "Eshed");
    assert_got(&live, "H0;1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;Edone");
    assert_true(read_text(queued.peer, NULL, all, sizeof(all)));
    assert_string_equal(all, "H0;Edone");
    close(queued.peer);
    assert_true(wait_for(&world.drained, 1)); /* by itself, when the last one has ended */
    engine_join(&engine, 3);
    assert_outcome("late", LEDGER_SHED, LEDGER_QUEUED, LEDGER_NOT_DETECTED);
}

static void test_the_drain_has_an_end(void **state)
{
    struct engine engine;
    struct stream live = {.fd = -1};
    struct stream queued = {.fd = -1};
    char waiting[64] = "";
    char all[4096] = "";

    (void)state;
    engine_open_as(&engine, 1, 1, 20 * MS, false);
    submit(&engine, &live, "live", 10, 0, LONG_US);
    submit(&engine, &queued, "queued", 10, 0, LONG_US);
    assert_true(read_text(live.peer, "0;", all, sizeof(all)));
    assert_true(read_text(queued.peer, "H", waiting, sizeof(waiting))); /* it was taken in */
    loop_terminate(engine.loop);
    assert_true(read_text(queued.peer, NULL, waiting, sizeof(waiting)));
    assert_string_equal(waiting, "HEdrained");
    close(queued.peer);
    assert_true(read_text(live.peer, NULL, all, sizeof(all)));
    assert_string_equal(all, "H0;Edrained");
    close(live.peer);
    engine_join(&engine, 2);
    assert_outcome("live", LEDGER_DRAINED, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    assert_outcome("queued", LEDGER_DRAINED, LEDGER_QUEUED, LEDGER_NOT_DETECTED);
}

static void test_a_second_terminate_ends_at_once(void **state)
{
    (void)state;
    for (int together = 0; together < 2; together++) {
        struct engine engine;
        struct stream stream = {.fd = -1};
        char all[4096] = "";

        engine_open(&engine, 1, 0);
        submit(&engine, &stream, "a", 10, LONG_US, 0);
        assert_true(read_text(stream.peer, "H", all, sizeof(all)));
        loop_terminate(engine.loop);
        while (!together && !loop_is_draining(engine.loop))
            sched_yield();
        loop_terminate(engine.loop);
        assert_got(&stream, "Edrained");
        engine_join(&engine, 1);
        assert_outcome("a", LEDGER_DRAINED, LEDGER_PREFILL, LEDGER_NOT_DETECTED);
    }
}

/* What is handed over when the thread has ended is refused by whoever joins it. */
static void test_arrivals_after_the_end(void **state)
{
    struct engine engine;
    struct stream streams[3];

    (void)state;
    engine_open(&engine, 1, 0);
    loop_terminate(engine.loop);
    assert_true(wait_for(&world.drained, 1)); /* nothing was live: it ends at once */
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        streams[i] = (struct stream){.fd = -1};
        submit(&engine, &streams[i], "late", 1, 0, 0);
    }
    assert_int_equal(world.released, 0);
    engine_join(&engine, COUNT_OF(streams));
    for (size_t i = 0; i < COUNT_OF(streams); i++)
        assert_got(&streams[i], "Eshed");
    assert_outcome("late", LEDGER_SHED, LEDGER_QUEUED, LEDGER_NOT_DETECTED);
}

static void test_signals(void **state)
{
    static const int rows[] = {SIGTERM, SIGINT};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct engine engine;
        struct stream stream = {.fd = -1};
        char all[4096] = "";

        engine_open(&engine, 1, 0);
        submit(&engine, &stream, "a", 10, LONG_US, 0);
        assert_true(read_text(stream.peer, "H", all, sizeof(all)));
        int before = atomic_load(&hangups);
        kill(getpid(), SIGHUP); /* opens the log anew, and ends nothing */
        while (atomic_load(&hangups) == before)
            sched_yield();
        kill(getpid(), rows[row]);
        while (!loop_is_draining(engine.loop))
            sched_yield();
        pthread_mutex_lock(&world.lock);
        size_t ended = world.ended;
        pthread_mutex_unlock(&world.lock);
        assert_int_equal(ended, 0);
        kill(getpid(), rows[row]);
        assert_got(&stream, "Edrained");
        engine_join(&engine, 1);
    }
}

/* A loop that was never started can be freed by nobody but its creator's exit; one that was
 * started and never used ends when it is told to. */
static void test_an_idle_loop_ends(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct engine engine;
        engine_open(&engine, 1, 0);
        engine_close(&engine, 0);
    }
}

/* The loop reads them; no thread may take them. */
static int block_signals(void **state)
{
    sigset_t blocked;

    (void)state;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGHUP);
    return pthread_sigmask(SIG_BLOCK, &blocked, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_stream),
        cmocka_unit_test(test_submitted_from_many_threads),
        cmocka_unit_test(test_terminated_while_others_submit),
        cmocka_unit_test(test_clients_that_leave),
        cmocka_unit_test(test_a_client_that_left_early),
        cmocka_unit_test(test_bytes_in_mid_reply_do_not_spin),
        cmocka_unit_test(test_ignored_cancel),
        cmocka_unit_test(test_a_slow_reader_goes_on),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_the_drain_has_an_end),
        cmocka_unit_test(test_a_second_terminate_ends_at_once),
        cmocka_unit_test(test_arrivals_after_the_end),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_an_idle_loop_ends),
    };

    return cmocka_run_group_tests(tests, block_signals, NULL);
}
