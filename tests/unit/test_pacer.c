/*
 * pacer: slots, queue, deadlines and back-pressure, in virtual time. After every turn the
 * ledger's equations hold (fake_engine.h), and when a test ends nothing is live and nothing was
 * released twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/fake_engine.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { TTFT_US = 200000, ITL_US = 25000 };

static void submit(struct fake_engine *engine, struct fake_stream *stream, const char *id,
                   uint64_t requested)
{
    fake_engine_submit(engine, stream, id, requested, TTFT_US, ITL_US);
}

static void assert_live(struct fake_engine *engine, uint64_t queued, uint64_t running)
{
    struct ledger_totals totals = fake_engine_check(engine);

    assert_int_equal(totals.queued, queued);
    assert_int_equal(totals.running, running);
}

/* --- pace --- */

static void test_one_stream_keeps_its_schedule(void **state)
{
    struct fake_engine engine;
    struct fake_stream stream = {.encoder = {.gap_us = ITL_US}};

    (void)state;
    fake_engine_open(&engine, 1, 0);
    stream.encoder.clock = &engine.clock;
    stream.encoder.first_us = engine.clock.now_us + TTFT_US;
    submit(&engine, &stream, "a", 5);
    assert_int_equal(stream.sink.byte_count, 1); /* the head is sent at once */
    fake_engine_run_for(&engine, TTFT_US + 4 * ITL_US - 1);
    assert_live(&engine, 0, 1);
    fake_engine_run_for(&engine, 1);
    assert_live(&engine, 0, 0);
    assert_int_equal(stream.encoder.off_schedule, 0);
    assert_ended("a", LEDGER_DONE, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    struct ledger_request ended = ended_request("a");
    assert_int_equal(ended.ttft_us, TTFT_US);
    assert_int_equal(ended.duration_us, TTFT_US + 4 * ITL_US);
    assert_int_equal(ended.delivered, 5);
    assert_stream_got(&stream, "H0;1;2;3;4;Edone");
    assert_int_equal(pacer_turn(engine.pacer), CLOCK_NEVER);
    fake_engine_close(&engine);
}

/* The clock jumps over several due times: the late tokens go out at once, one a turn, and the
 * ones that are not late keep their microsecond. */
static void test_late_tokens_move_nothing(void **state)
{
    struct fake_engine engine;
    struct fake_stream stream = {{0}, {0}, NULL};

    (void)state;
    fake_engine_open(&engine, 1, 0);
    int64_t first_us = engine.clock.now_us + TTFT_US;
    submit(&engine, &stream, "a", 20);
    fake_engine_run_for(&engine, TTFT_US + 2 * ITL_US);
    assert_int_equal(stream.encoder.tokens, 3);
    engine.clock.now_us += 5 * ITL_US + 4711;
    for (unsigned turn = 1; turn <= 5; turn++) {
        int64_t wake_us = pacer_turn(engine.pacer);
        assert_int_equal(stream.encoder.tokens, 3 + turn);
        if (turn < 5)
            assert_true(wake_us <= engine.clock.now_us);
        else
            assert_int_equal(wake_us, first_us + 8 * ITL_US);
    }
    stream.encoder.clock = &engine.clock;
    stream.encoder.first_us = first_us;
    stream.encoder.gap_us = ITL_US;
    fake_engine_run_until(&engine, first_us + 19 * ITL_US);
    assert_int_equal(stream.encoder.tokens, 20);
    assert_int_equal(stream.encoder.off_schedule, 0);
    assert_int_equal(ended_request("a").duration_us, TTFT_US + 19 * ITL_US);
    buffer_free(&stream.sink.bytes);
    fake_engine_close(&engine);
}

/* A request that was complete long before it came to the engine is late, not delayed. */
static void test_the_start_is_when_the_request_was_complete(void **state)
{
    struct fake_engine engine;
    struct fake_stream stream = {{0}, {0}, NULL};

    (void)state;
    fake_engine_open(&engine, 1, 0);
    struct generation *generation = fake_stream_generation(&stream, "a", 2, TTFT_US, ITL_US,
                                                           engine.clock.now_us - TTFT_US / 2);
    pacer_submit(engine.pacer, generation);
    fake_engine_run_for(&engine, TTFT_US / 2 - 1);
    assert_int_equal(stream.encoder.tokens, 0);
    fake_engine_run_for(&engine, 1);
    assert_int_equal(stream.encoder.tokens, 1);
    fake_engine_run_for(&engine, ITL_US);
    assert_int_equal(ended_request("a").ttft_us, TTFT_US);
    assert_stream_got(&stream, "H0;1;Edone");
    fake_engine_close(&engine);
}

/* --- slots and queue --- */

static void test_slots_queue_and_shed(void **state)
{
    struct fake_engine engine;
    struct fake_stream streams[6] = {{{0}, {0}, NULL}};
    static const char *const ids[] = {"0", "1", "2", "3", "4", "5"};

    (void)state;
    fake_engine_open(&engine, 2, 3);
    for (size_t i = 0; i < 6; i++)
        submit(&engine, &streams[i], ids[i], i == 1 ? 2 : 3);
    assert_live(&engine, 3, 2);
    assert_ended("5", LEDGER_SHED, LEDGER_QUEUED, LEDGER_NOT_DETECTED);
    assert_stream_got(&streams[5], "Eshed");
    /* Who waits has its head, and nothing else. */
    for (size_t i = 2; i < 5; i++)
        assert_int_equal(streams[i].sink.byte_count, 1);

    /* "1" ends first: its slot goes to "2", which has waited longest, at that microsecond. */
    fake_engine_run_for(&engine, TTFT_US + ITL_US);
    assert_live(&engine, 2, 2);
    assert_int_equal(streams[2].generation->due_us, engine.clock.now_us + TTFT_US);
    fake_engine_run_for(&engine, ITL_US);
    assert_live(&engine, 1, 2);
    assert_int_equal(streams[3].generation->due_us, engine.clock.now_us + TTFT_US);
    fake_engine_run_for(&engine, 10 * TTFT_US);
    assert_live(&engine, 0, 0);
    static const char *const order[] = {"5", "1", "0", "2", "3", "4"};
    for (size_t i = 0; i < COUNT_OF(order); i++)
        assert_string_equal(fake_ends.requests[i].id, order[i]);
    /* The first token's time includes the wait: two rounds for "4". */
    assert_int_equal(ended_request("4").ttft_us,
                     TTFT_US + ITL_US + (TTFT_US + 2 * ITL_US) + TTFT_US);
    for (size_t i = 0; i < 5; i++)
        assert_stream_got(&streams[i], i == 1 ? "H0;1;Edone" : "H0;1;2;Edone");
    fake_engine_close(&engine);
}

static void test_no_queue_at_all(void **state)
{
    struct fake_engine engine;
    struct fake_stream streams[2] = {{{0}, {0}, NULL}};

    (void)state;
    fake_engine_open(&engine, 1, 0);
    submit(&engine, &streams[0], "0", 1);
    submit(&engine, &streams[1], "1", 1);
    assert_ended("1", LEDGER_SHED, LEDGER_QUEUED, LEDGER_NOT_DETECTED);
    fake_engine_run_for(&engine, TTFT_US);
    assert_stream_got(&streams[0], "H0;Edone");
    assert_stream_got(&streams[1], "Eshed");
    fake_engine_close(&engine);
}

static void test_a_descriptor_that_cannot_be_watched(void **state)
{
    struct fake_engine engine;
    struct fake_stream stream = {{0}, {0}, NULL};

    (void)state;
    fake_engine_open(&engine, 4, 4);
    engine.watch_fails = true;
    submit(&engine, &stream, "a", 1);
    assert_ended("a", LEDGER_SHED, LEDGER_QUEUED, LEDGER_NOT_DETECTED);
    assert_stream_got(&stream, "Eshed");
    fake_engine_close(&engine);
}

/* First, middle and last of the queue leave; the rest keeps its order. */
static void test_leaving_the_queue(void **state)
{
    (void)state;
    for (unsigned left = 0; left < 8; left++) {
        struct fake_engine engine;
        struct fake_stream streams[4] = {{{0}, {0}, NULL}};
        static const char *const ids[] = {"0", "1", "2", "3"};
        uint64_t gone = 0;

        fake_engine_open(&engine, 1, 3);
        for (size_t i = 0; i < 4; i++)
            submit(&engine, &streams[i], ids[i], 1);
        for (unsigned i = 0; i < 3; i++) {
            if ((left & 1u << i) == 0)
                continue;
            pacer_peer_left(engine.pacer, streams[i + 1].generation, LEDGER_BY_HANGUP,
                            engine.clock.now_us);
            assert_ended(ids[i + 1], LEDGER_CANCELLED, LEDGER_QUEUED, LEDGER_BY_HANGUP);
            gone++;
            assert_live(&engine, 3 - gone, 1);
        }
        fake_engine_run_for(&engine, 4 * TTFT_US);
        int previous = -1;
        for (size_t i = gone; i < 4; i++) {
            int id = atoi(fake_ends.requests[i].id);
            assert_int_equal(fake_ends.requests[i].outcome, LEDGER_DONE);
            assert_true(id > previous);
            previous = id;
        }
        for (size_t i = 0; i < 4; i++)
            assert_stream_got(&streams[i], i > 0 && (left & 1u << (i - 1)) ? "H" : "H0;Edone");
        fake_engine_close(&engine);
    }
}

/* --- leaving --- */

enum moment { AT_SUBMIT, QUEUED, PREFILL, DECODE, BLOCKED, HELD, LAST_BYTES };

/* Its slot is free at once, and the one behind it starts in the same microsecond. */
static void test_leaving_at_any_moment(void **state)
{
    static const struct {
        enum moment moment;
        enum ledger_phase phase;
        const char *got;
        uint64_t generated, delivered;
    } rows[] = {
        {AT_SUBMIT, LEDGER_QUEUED, "", 0, 0},       {QUEUED, LEDGER_QUEUED, "H", 0, 0},
        {PREFILL, LEDGER_PREFILL, "H", 0, 0},       {DECODE, LEDGER_DECODE, "H0;1;", 2, 2},
        {BLOCKED, LEDGER_DECODE, "H0;1;", 2, 2},    {HELD, LEDGER_DECODE, "", 2, 0},
        {LAST_BYTES, LEDGER_DECODE, "H0;1;", 2, 2},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows) * 2; row++) {
        enum moment moment = rows[row / 2].moment;
        enum ledger_detector detector = row % 2 ? LEDGER_BY_ABORT : LEDGER_BY_HANGUP;
        struct fake_engine engine;
        struct fake_stream before = {{0}, {0}, NULL};
        struct fake_stream one = {.encoder = {.is_whole = moment == HELD}};
        struct fake_stream behind = {{0}, {0}, NULL};

        fake_engine_open(&engine, moment == QUEUED ? 2 : 1, 2);
        if (moment == QUEUED) { /* both slots taken */
            submit(&engine, &before, "before", 1000);
            submit(&engine, &behind, "behind", 1);
        }
        if (moment == AT_SUBMIT)
            one.sink.peer = detector == LEDGER_BY_ABORT ? SINK_ABORTED : SINK_HUNG_UP;
        submit(&engine, &one, "one", moment == LAST_BYTES ? 2 : 100);
        if (moment != QUEUED)
            submit(&engine, &behind, "behind", 1);
        if (moment >= DECODE)
            fake_engine_run_for(&engine, TTFT_US + (moment == LAST_BYTES ? 0 : ITL_US));
        if (moment >= BLOCKED && moment != HELD) {
            one.sink.is_full = moment == BLOCKED;
            one.sink.is_limited = moment == LAST_BYTES;
            one.sink.room = 1; /* the last token, and no more */
            fake_engine_run_for(&engine, ITL_US);
        }
        int64_t left_us = engine.clock.now_us;
        if (moment != AT_SUBMIT)
            pacer_peer_left(engine.pacer, one.generation, detector, engine.clock.now_us);
        assert_ended("one", LEDGER_CANCELLED, rows[row / 2].phase, detector);
        assert_int_equal(ended_request("one").generated, rows[row / 2].generated);
        assert_int_equal(ended_request("one").delivered, rows[row / 2].delivered);
        assert_int_equal(one.encoder.tokens, rows[row / 2].generated);
        /* An abort is answered with the end of the request where that can be written now. */
        if (detector != LEDGER_BY_ABORT || one.sink.is_full)
            assert_int_equal(one.sink.ends, 0);
        if (moment >= PREFILL) {
            /* A reply that waits with its last bytes has given its slot back before. */
            assert_live(&engine, 0, 1);
            assert_int_equal(behind.generation->due_us, left_us + TTFT_US);
        }
        fake_engine_run_for(&engine, TTFT_US);
        assert_ended("behind", LEDGER_DONE, LEDGER_DECODE, LEDGER_NOT_DETECTED);
        if (moment == QUEUED) {
            pacer_peer_left(engine.pacer, before.generation, LEDGER_BY_HANGUP,
                            engine.clock.now_us);
            buffer_free(&before.sink.bytes);
        }
        assert_stream_got(&one, rows[row / 2].got);
        assert_stream_got(&behind, "H0;Edone");
        fake_engine_close(&engine);
    }
}

static void test_a_write_that_fails_frees_the_slot(void **state)
{
    struct fake_engine engine;
    struct fake_stream one = {{0}, {0}, NULL};
    struct fake_stream behind = {{0}, {0}, NULL};

    (void)state;
    fake_engine_open(&engine, 1, 1);
    submit(&engine, &one, "one", 100);
    submit(&engine, &behind, "behind", 1);
    fake_engine_run_for(&engine, TTFT_US);
    one.sink.fails_at_flush = true;
    fake_engine_run_for(&engine, ITL_US);
    assert_ended("one", LEDGER_CANCELLED, LEDGER_DECODE, LEDGER_BY_WRITE);
    assert_int_equal(ended_request("one").generated, 2);
    assert_int_equal(ended_request("one").discarded, 1);
    assert_int_equal(behind.generation->due_us, engine.clock.now_us + TTFT_US);
    fake_engine_run_for(&engine, TTFT_US);
    assert_stream_got(&behind, "H0;Edone");
    buffer_free(&one.sink.bytes);
    fake_engine_close(&engine);
}

static void test_ignored_cancel_keeps_the_slot(void **state)
{
    struct fake_engine engine;
    struct fake_stream gone = {.sink = {.peer = SINK_HUNG_UP}};
    struct fake_stream one = {{0}, {0}, NULL};
    struct fake_stream behind = {{0}, {0}, NULL};

    (void)state;
    fake_engine_open_as(&engine, 2, 2, true);
    submit(&engine, &gone, "gone", 3); /* had left before it was taken in */
    submit(&engine, &one, "one", 3);
    submit(&engine, &behind, "behind", 1);
    assert_live(&engine, 1, 2);
    pacer_peer_left(engine.pacer, one.generation, LEDGER_BY_HANGUP, engine.clock.now_us);
    pacer_peer_left(engine.pacer, behind.generation, LEDGER_BY_ABORT, engine.clock.now_us);
    assert_live(&engine, 1, 2);
    one.sink.fails_at_write = true;
    fake_engine_run_for(&engine, TTFT_US + 2 * ITL_US);
    assert_ended("gone", LEDGER_DONE, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    assert_ended("one", LEDGER_CANCELLED, LEDGER_DECODE, LEDGER_BY_WRITE);
    assert_int_equal(ended_request("one").generated, 3);
    assert_int_equal(ended_request("one").discarded, 3);
    assert_int_equal(behind.generation->due_us, engine.clock.now_us + TTFT_US);
    fake_engine_run_for(&engine, TTFT_US);
    assert_stream_got(&gone, "H0;1;2;Edone");
    assert_stream_got(&one, "H");
    assert_stream_got(&behind, "H0;Edone");
    fake_engine_close(&engine);
}

/* --- back-pressure --- */

static void test_a_slow_reader_pauses_itself_alone(void **state)
{
    struct fake_engine engine;
    struct fake_stream slow = {{0}, {0}, NULL};
    struct fake_stream other = {.encoder = {.gap_us = ITL_US}};

    (void)state;
    fake_engine_open(&engine, 2, 0);
    other.encoder.clock = &engine.clock;
    other.encoder.first_us = engine.clock.now_us + TTFT_US;
    submit(&engine, &slow, "slow", 10);
    submit(&engine, &other, "other", 20);
    fake_engine_run_for(&engine, TTFT_US + ITL_US);
    slow.sink.is_full = true;
    fake_engine_run_for(&engine, 10 * ITL_US);
    assert_int_equal(slow.encoder.tokens, 2);
    assert_int_equal(other.encoder.tokens, 12);
    assert_true(slow.generation->is_blocked);

    /* It reads again: what is late goes at once, what is not keeps its time. */
    slow.sink.is_full = false;
    pacer_writable(engine.pacer, slow.generation);
    assert_int_equal(slow.encoder.tokens, 3);
    fake_engine_run_for(&engine, 0);
    assert_int_equal(slow.encoder.tokens, 10);
    fake_engine_run_for(&engine, 10 * ITL_US);
    assert_int_equal(other.encoder.off_schedule, 0);
    assert_ended("slow", LEDGER_DONE, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    assert_stream_got(&slow, "H0;1;2;3;4;5;6;7;8;9;Edone");
    assert_ended("other", LEDGER_DONE, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    buffer_free(&other.sink.bytes);
    fake_engine_close(&engine);
}

/* pacer_writable may come when nothing waits for it. */
static void test_writable_without_being_blocked(void **state)
{
    struct fake_engine engine;
    struct fake_stream stream = {{0}, {0}, NULL};

    (void)state;
    fake_engine_open(&engine, 1, 0);
    submit(&engine, &stream, "a", 2);
    pacer_writable(engine.pacer, stream.generation);
    fake_engine_run_for(&engine, TTFT_US);
    pacer_writable(engine.pacer, stream.generation);
    assert_int_equal(stream.encoder.tokens, 1);
    stream.sink.is_full = true;
    fake_engine_run_for(&engine, ITL_US);
    for (int i = 0; i < 3; i++) /* it is still full: blocked as before */
        pacer_writable(engine.pacer, stream.generation);
    assert_int_equal(stream.encoder.tokens, 1);
    stream.sink.is_full = false;
    pacer_writable(engine.pacer, stream.generation);
    assert_stream_got(&stream, "H0;1;Edone");
    fake_engine_close(&engine);
}

/* From the microsecond at which it did not take a token, for the whole timeout and not longer.
 */
static void test_stalled(void **state)
{
    struct fake_engine engine;
    struct fake_stream stream = {{0}, {0}, NULL};
    struct fake_stream behind = {{0}, {0}, NULL};

    (void)state;
    fake_engine_open(&engine, 1, 1);
    submit(&engine, &stream, "a", 10);
    submit(&engine, &behind, "behind", 1);
    fake_engine_run_for(&engine, TTFT_US);
    stream.sink.is_full = true;
    fake_engine_run_for(&engine, ITL_US); /* blocked now */
    fake_engine_run_for(&engine, STALL_US - 1);
    assert_live(&engine, 1, 1);
    fake_engine_run_for(&engine, 1);
    assert_ended("a", LEDGER_STALLED, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    assert_int_equal(behind.generation->due_us, engine.clock.now_us + TTFT_US);
    fake_engine_run_for(&engine, TTFT_US);
    assert_stream_got(&stream, "H0;");
    assert_stream_got(&behind, "H0;Edone");
    fake_engine_close(&engine);
}

/* A client that reads now and then has a new timeout each time. */
static void test_a_token_taken_starts_the_timeout_anew(void **state)
{
    struct fake_engine engine;
    struct fake_stream stream = {.sink = {.is_limited = true, .room = 1}};

    (void)state;
    fake_engine_open(&engine, 1, 0);
    submit(&engine, &stream, "a", 5); /* takes its head */
    for (int i = 0; i < 6; i++) {
        fake_engine_run_for(&engine, STALL_US - ITL_US - TTFT_US);
        assert_live(&engine, 0, 1);
        stream.sink.room = 1;
        pacer_writable(engine.pacer, stream.generation);
    }
    assert_stream_got(&stream, "H0;1;2;3;4;Edone");
    fake_engine_close(&engine);
}

/* The same for a reply in one piece: as long as some of it is taken, nobody refuses to read. */
static void test_a_piece_taken_starts_the_timeout_anew(void **state)
{
    enum { PIECES = 5 };
    struct fake_engine engine;
    struct fake_stream stream = {
        .encoder = {.is_whole = true, .end_bytes = PIECES * SINK_WRITE_MAX_BYTES},
        .sink = {.forgets = true}};

    (void)state;
    fake_engine_open(&engine, 1, 0);
    submit(&engine, &stream, "a", 1);
    fake_engine_run_for(&engine, TTFT_US - 1);
    stream.sink.is_limited = true;
    stream.sink.room = 1;
    fake_engine_run_for(&engine, 1);
    for (int i = 1; i < PIECES && pacer_live(engine.pacer) > 0; i++) {
        fake_engine_run_for(&engine, STALL_US / 2);
        if (pacer_live(engine.pacer) == 0)
            break;
        stream.sink.room = 1;
        pacer_writable(engine.pacer, stream.generation);
    }
    fake_engine_close(&engine);
    assert_ended("a", LEDGER_DONE, LEDGER_DECODE, LEDGER_NOT_DETECTED);
}

/* A client that does not even take the head is cut off too, with and without a slot. */
static void test_stalled_at_the_head(void **state)
{
    struct fake_engine engine;
    struct fake_stream running = {.sink = {.is_full = true}};

    (void)state;
    fake_engine_open(&engine, 1, 1);
    submit(&engine, &running, "running", 10);
    fake_engine_run_for(&engine, STALL_US - 1);
    assert_live(&engine, 0, 1);
    fake_engine_run_for(&engine, 1);
    assert_ended("running", LEDGER_STALLED, LEDGER_PREFILL, LEDGER_NOT_DETECTED);
    assert_stream_got(&running, "");
    fake_engine_close(&engine);
}

/* Blocked with its head while it waits: it gets its slot in its turn, and then the head goes.
 */
static void test_blocked_in_the_queue(void **state)
{
    struct fake_engine engine;
    struct fake_stream one = {{0}, {0}, NULL};
    struct fake_stream waiting = {.sink = {.is_full = true}};

    (void)state;
    for (int reads_early = 0; reads_early < 2; reads_early++) {
        one = (struct fake_stream){{0}, {0}, NULL};
        waiting = (struct fake_stream){.sink = {.is_full = true}};
        fake_engine_open(&engine, 1, 1);
        submit(&engine, &one, "one", 2);
        submit(&engine, &waiting, "waiting", 1);
        fake_engine_run_for(&engine, TTFT_US);
        if (reads_early) {
            waiting.sink.is_full = false;
            pacer_writable(engine.pacer, waiting.generation);
            assert_int_equal(waiting.sink.byte_count, 1);
        }
        fake_engine_run_for(&engine, ITL_US);
        assert_live(&engine, 0, 1);
        if (!reads_early) {
            waiting.sink.is_full = false;
            pacer_writable(engine.pacer, waiting.generation);
        }
        fake_engine_run_for(&engine, TTFT_US);
        assert_stream_got(&one, "H0;1;Edone");
        assert_stream_got(&waiting, "H0;Edone");
        fake_engine_close(&engine);
    }
}

/* A reply of 600 KB to a reader that takes a little at a time: the slot is free meanwhile. */
static void test_a_huge_reply_holds_no_slot(void **state)
{
    enum { REPLY = 600000 };
    struct fake_engine engine;
    struct fake_stream huge = {.encoder = {.is_whole = true, .end_bytes = REPLY},
                               .sink = {.forgets = true}};
    struct fake_stream behind = {{0}, {0}, NULL};

    (void)state;
    fake_engine_open(&engine, 1, 1);
    submit(&engine, &huge, "huge", 2);
    submit(&engine, &behind, "behind", 1);
    fake_engine_run_for(&engine, TTFT_US);
    assert_int_equal(fake_engine_check(&engine).held, 1);
    huge.sink.is_limited = true;
    huge.sink.room = 3;
    fake_engine_run_for(&engine, ITL_US);
    assert_int_equal(behind.generation->due_us, engine.clock.now_us + TTFT_US);
    assert_int_equal(huge.sink.byte_count, 3 * SINK_WRITE_MAX_BYTES);
    assert_int_equal(fake_engine_check(&engine).held, 2);
    fake_engine_run_for(&engine, TTFT_US);
    assert_ended("behind", LEDGER_DONE, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    while (pacer_live(engine.pacer) > 0) {
        huge.sink.room = 3;
        pacer_writable(engine.pacer, huge.generation);
        fake_engine_run_for(&engine, 1000);
    }
    assert_ended("huge", LEDGER_DONE, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    assert_int_equal(ended_request("huge").delivered, 2);
    assert_int_equal(huge.sink.byte_count, REPLY);
    assert_stream_got(&huge, "");
    assert_stream_got(&behind, "H0;Edone");
    fake_engine_close(&engine);
}

/* --- drain --- */

static void test_drain_refuses_the_new_and_lets_the_old_end(void **state)
{
    struct fake_engine engine;
    struct fake_stream streams[3] = {{{0}, {0}, NULL}};

    (void)state;
    fake_engine_open(&engine, 1, 5);
    submit(&engine, &streams[0], "running", 2);
    submit(&engine, &streams[1], "queued", 2);
    pacer_drain(engine.pacer);
    submit(&engine, &streams[2], "new", 2);
    assert_ended("new", LEDGER_SHED, LEDGER_QUEUED, LEDGER_NOT_DETECTED);
    assert_live(&engine, 1, 1);
    fake_engine_run_for(&engine, 3 * TTFT_US);
    assert_live(&engine, 0, 0);
    assert_stream_got(&streams[0], "H0;1;Edone");
    assert_stream_got(&streams[1], "H0;1;Edone");
    assert_stream_got(&streams[2], "Eshed");
    fake_engine_close(&engine);
}

static void test_stop_ends_all_and_tells_them(void **state)
{
    struct fake_engine engine;
    struct fake_stream running = {{0}, {0}, NULL};
    struct fake_stream blocked = {{0}, {0}, NULL};
    struct fake_stream whole = {.encoder = {.is_whole = true}};
    struct fake_stream queued = {{0}, {0}, NULL};
    struct fake_stream late = {{0}, {0}, NULL};

    (void)state;
    fake_engine_open(&engine, 3, 1);
    submit(&engine, &running, "running", 100);
    submit(&engine, &blocked, "blocked", 100);
    submit(&engine, &whole, "whole", 100);
    submit(&engine, &queued, "queued", 100);
    fake_engine_run_for(&engine, TTFT_US);
    blocked.sink.is_full = true;
    fake_engine_run_for(&engine, ITL_US);
    pacer_stop(engine.pacer);
    assert_live(&engine, 0, 0);
    assert_ended("running", LEDGER_DRAINED, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    assert_ended("blocked", LEDGER_DRAINED, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    assert_ended("whole", LEDGER_DRAINED, LEDGER_DECODE, LEDGER_NOT_DETECTED);
    assert_ended("queued", LEDGER_DRAINED, LEDGER_QUEUED, LEDGER_NOT_DETECTED);
    assert_int_equal(ended_request("whole").discarded, 2);
    pacer_stop(engine.pacer); /* harmless */
    submit(&engine, &late, "late", 1);
    assert_stream_got(&running, "H0;1;Edrained");
    assert_stream_got(&blocked, "H0;");
    assert_stream_got(&whole, "Edrained");
    assert_stream_got(&queued, "HEdrained");
    assert_stream_got(&late, "Eshed");
    fake_engine_close(&engine);
}

static void test_destroy_cuts_off_what_is_live(void **state)
{
    struct fake_engine engine;
    struct fake_stream streams[2] = {{{0}, {0}, NULL}};

    (void)state;
    fake_engine_open(&engine, 1, 1);
    submit(&engine, &streams[0], "0", 2);
    submit(&engine, &streams[1], "1", 2);
    fake_engine_close(&engine);
    assert_ended("0", LEDGER_DRAINED, LEDGER_PREFILL, LEDGER_NOT_DETECTED);
    assert_ended("1", LEDGER_DRAINED, LEDGER_QUEUED, LEDGER_NOT_DETECTED);
    assert_stream_got(&streams[0], "HEdrained");
    assert_stream_got(&streams[1], "HEdrained");
    pacer_destroy(NULL);
}

/* --- fairness --- */

/* Without pace all go round in turn: after any turn nobody is more than one token ahead. */
static void check_fairness(size_t count, uint64_t requested)
{
    struct fake_engine engine;
    struct fake_stream *streams = calloc(count, sizeof(*streams));

    assert_non_null(streams);
    fake_engine_open(&engine, count, 0);
    for (size_t i = 0; i < count; i++) {
        streams[i].sink.forgets = true;
        fake_engine_submit(&engine, &streams[i], "x", requested, 0, 0);
    }
    while (pacer_live(engine.pacer) > 0) {
        uint64_t least = UINT64_MAX;
        uint64_t most = 0;
        assert_true(pacer_turn(engine.pacer) <= engine.clock.now_us ||
                    pacer_live(engine.pacer) == 0);
        for (size_t i = 0; i < count; i++) {
            uint64_t tokens = streams[i].encoder.tokens;
            least = tokens < least ? tokens : least;
            most = tokens > most ? tokens : most;
        }
        assert_true(most - least <= 1);
        engine.clock.now_us += 7; /* the turn took its time */
    }
    struct ledger_totals totals = check_books(engine.ledger);
    assert_int_equal(totals.delivered, count * requested);
    fake_engine_close(&engine);
    for (size_t i = 0; i < count; i++)
        assert_true(fake_sink_is_over(&streams[i].sink));
    free(streams);
}

static void test_fifty_without_pace_are_equal(void **state)
{
    (void)state;
    check_fairness(50, 200);
}

/* More than one turn can serve. */
static void test_two_thousand_without_pace_are_equal(void **state)
{
    (void)state;
    check_fairness(2000, 10);
}

/* A paced stream among 600 that have none is late by two turns at most: one turn serves 512. */
static void test_pace_among_streams_without(void **state)
{
    enum { UNPACED = 600, TURN_US = 1000 };
    struct fake_engine engine;
    struct fake_stream *streams = calloc(UNPACED, sizeof(*streams));
    struct fake_stream paced = {.sink = {.forgets = true}};
    int64_t worst_us = 0;

    (void)state;
    assert_non_null(streams);
    fake_engine_open(&engine, UNPACED + 1, 0);
    for (size_t i = 0; i < UNPACED; i++) {
        streams[i].sink.forgets = true;
        fake_engine_submit(&engine, &streams[i], "x", 1000000, 0, 0);
    }
    int64_t first_us = engine.clock.now_us + TTFT_US;
    submit(&engine, &paced, "paced", 40);
    for (uint64_t seen = 0; seen < 40; engine.clock.now_us += TURN_US) {
        pacer_turn(engine.pacer);
        for (; seen < paced.encoder.tokens; seen++) {
            int64_t late_us = engine.clock.now_us - first_us - (int64_t)seen * ITL_US;
            worst_us = late_us > worst_us ? late_us : worst_us;
        }
    }
    assert_true(worst_us <= 2 * TURN_US);
    pacer_stop(engine.pacer);
    fake_engine_close(&engine);
    free(streams);
}

/* --- many --- */

/*
 * 10,000 streams over 10 virtual minutes, each with a start, a first token and a pace of its
 * own, odd to the microsecond. Every token is made in the turn of its own microsecond; the last
 * one of each is where the sum of its gaps says, so there is no drift.
 */
static void test_ten_thousand_streams_for_ten_minutes(void **state)
{
#ifdef __SANITIZE_THREAD__ /* one thread: there is nothing more to find with more of them */
    enum { STREAMS = 500, STEPS_BETWEEN_CHECKS = 1 << 14 };
#else
    enum { STREAMS = 10000, STEPS_BETWEEN_CHECKS = 1 << 14 };
#endif
    static const int64_t minutes = INT64_C(600000000);
    struct fake_engine engine;
    struct fake_stream *streams = calloc(STREAMS, sizeof(*streams));
    struct timespec began;
    struct timespec ended;
    uint64_t wanted_tokens = 0;
    uint64_t turns = 0;

    (void)state;
    assert_non_null(streams);
    clock_gettime(CLOCK_MONOTONIC, &began);
    fake_engine_open(&engine, STREAMS, 0);
    int64_t start_us = engine.clock.now_us;
    for (int64_t i = 0; i < STREAMS; i++) {
        struct fake_stream *stream = &streams[i];
        int64_t ttft_us = 1 + i * 7919 % 1000003;
        int64_t gap_us = 4000000 + i * 104729 % 1999993;
        uint64_t requested = (uint64_t)((minutes - (i * 13 + ttft_us)) / gap_us) + 1;
        engine.clock.now_us = start_us + i * 13;
        stream->sink.forgets = true;
        stream->encoder.clock = &engine.clock;
        stream->encoder.first_us = engine.clock.now_us + ttft_us;
        stream->encoder.gap_us = gap_us;
        wanted_tokens += requested;
        pacer_submit(engine.pacer, fake_stream_generation(stream, "x", requested, ttft_us,
                                                          gap_us, engine.clock.now_us));
        /* Those that have come already are served while the others still arrive. */
        while (pacer_turn(engine.pacer) <= engine.clock.now_us)
            continue;
        /* The next arrival moves the clock on by 13 us: nothing may fall due in between. */
        if (i + 1 < STREAMS) {
            int64_t next_us = start_us + (i + 1) * 13;
            int64_t wake_us;
            while ((wake_us = pacer_turn(engine.pacer)) < next_us) {
                if (wake_us > engine.clock.now_us)
                    engine.clock.now_us = wake_us;
            }
        }
    }
    assert_int_equal(fake_engine_check(&engine).running, STREAMS);
    for (;;) {
        int64_t wake_us = pacer_turn(engine.pacer);
        if (++turns % STEPS_BETWEEN_CHECKS == 0)
            fake_engine_check(&engine);
        if (wake_us == CLOCK_NEVER)
            break;
        assert_true(wake_us <= start_us + minutes);
        if (wake_us > engine.clock.now_us)
            engine.clock.now_us = wake_us;
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    struct ledger_totals totals = fake_engine_check(&engine);
    assert_int_equal(books_ended(&totals, LEDGER_DONE), STREAMS);
    assert_int_equal(totals.delivered, wanted_tokens);
    for (size_t i = 0; i < STREAMS; i++) {
        assert_int_equal(streams[i].encoder.off_schedule, 0);
        assert_true(fake_sink_is_over(&streams[i].sink));
    }
    fake_engine_close(&engine);
    free(streams);
    print_message("%d streams, %llu tokens, %llu turns: %.2f s\n", STREAMS,
                  (unsigned long long)wanted_tokens, (unsigned long long)turns,
                  (double)(ended.tv_sec - began.tv_sec) +
                      (double)(ended.tv_nsec - began.tv_nsec) / 1e9);
}

/* One stream of a millisecond's pace for ten minutes ends at the microsecond. */
static void test_no_drift_in_ten_minutes_at_a_millisecond(void **state)
{
    struct fake_engine engine;
    struct fake_stream stream = {.sink = {.forgets = true}, .encoder = {.gap_us = 1000}};
    int64_t wake_us;

    (void)state;
    fake_engine_open(&engine, 1, 0);
    stream.encoder.clock = &engine.clock;
    stream.encoder.first_us = engine.clock.now_us + TTFT_US;
    fake_engine_submit(&engine, &stream, "a", 600000, TTFT_US, 1000);
    while ((wake_us = pacer_turn(engine.pacer)) != CLOCK_NEVER)
        engine.clock.now_us = wake_us;
    assert_int_equal(stream.encoder.off_schedule, 0);
    assert_int_equal(ended_request("a").duration_us, TTFT_US + INT64_C(599999) * 1000);
    fake_engine_close(&engine);
}

/* Random comings, goings and blockings, by a fixed seed: the books always balance. */
static void test_chaos(void **state)
{
    enum { STREAMS = 2000, ROUNDS = 20000 };
    struct fake_engine engine;
    struct fake_stream *streams = calloc(STREAMS, sizeof(*streams));
    uint64_t random = 99;
    size_t submitted = 0;

    (void)state;
    assert_non_null(streams);
    fake_engine_open(&engine, 40, 60);
    for (int round = 0; round < ROUNDS; round++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t dice = random >> 33;
        if (dice % 4 == 0 && submitted < STREAMS) {
            struct fake_stream *stream = &streams[submitted++];
            stream->sink.forgets = true;
            stream->sink.is_full = dice / 4 % 16 == 0;
            stream->sink.peer = dice / 64 % 32 == 0 ? SINK_HUNG_UP : SINK_PRESENT;
            stream->encoder.is_whole = dice / 2048 % 4 == 0;
            stream->encoder.end_bytes = dice / 8192 % 64 == 0 ? 100000 : 0;
            fake_engine_submit(&engine, stream, "x", dice / 4 % 30 + 1,
                               (int64_t)(dice % 50) * 1000, (int64_t)(dice / 50 % 10) * 1000);
        }
        if (submitted > 0) {
            struct fake_stream *stream = &streams[dice / 7 % submitted];
            if (stream->sink.releases == 0) {
                switch (dice % 32) {
                case 1:
                    pacer_peer_left(engine.pacer, stream->generation, LEDGER_BY_HANGUP,
                                    engine.clock.now_us);
                    break;
                case 2:
                    stream->sink.fails_at_write = true;
                    break;
                case 3:
                    stream->sink.is_full = true;
                    break;
                case 5:
                    stream->encoder.fails_at_token = true;
                    stream->encoder.failing_token = stream->encoder.tokens + 1;
                    break;
                default:
                    stream->sink.is_full = false;
                    pacer_writable(engine.pacer, stream->generation);
                }
            }
        }
        pacer_turn(engine.pacer);
        fake_engine_check(&engine);
        engine.clock.now_us += (int64_t)(dice % 2000);
    }
    assert_int_equal(submitted, STREAMS);
    struct ledger_totals totals = check_books(engine.ledger);
    assert_true(books_ended(&totals, LEDGER_DONE) > 0);
    assert_true(books_ended(&totals, LEDGER_CANCELLED) > 0);
    assert_true(books_ended(&totals, LEDGER_FAILED) > 0);
    assert_true(books_ended(&totals, LEDGER_SHED) > 0);
    fake_engine_close(&engine);
    for (size_t i = 0; i < STREAMS; i++) {
        assert_true(fake_sink_is_over(&streams[i].sink));
        assert_int_equal(streams[i].encoder.frees, 1);
        assert_int_equal(streams[i].encoder.broken_rules, 0);
    }
    free(streams);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_stream_keeps_its_schedule),
        cmocka_unit_test(test_late_tokens_move_nothing),
        cmocka_unit_test(test_the_start_is_when_the_request_was_complete),
        cmocka_unit_test(test_slots_queue_and_shed),
        cmocka_unit_test(test_no_queue_at_all),
        cmocka_unit_test(test_a_descriptor_that_cannot_be_watched),
        cmocka_unit_test(test_leaving_the_queue),
        cmocka_unit_test(test_leaving_at_any_moment),
        cmocka_unit_test(test_a_write_that_fails_frees_the_slot),
        cmocka_unit_test(test_ignored_cancel_keeps_the_slot),
        cmocka_unit_test(test_a_slow_reader_pauses_itself_alone),
        cmocka_unit_test(test_writable_without_being_blocked),
        cmocka_unit_test(test_stalled),
        cmocka_unit_test(test_a_token_taken_starts_the_timeout_anew),
        cmocka_unit_test(test_a_piece_taken_starts_the_timeout_anew),
        cmocka_unit_test(test_stalled_at_the_head),
        cmocka_unit_test(test_blocked_in_the_queue),
        cmocka_unit_test(test_a_huge_reply_holds_no_slot),
        cmocka_unit_test(test_drain_refuses_the_new_and_lets_the_old_end),
        cmocka_unit_test(test_stop_ends_all_and_tells_them),
        cmocka_unit_test(test_destroy_cuts_off_what_is_live),
        cmocka_unit_test(test_fifty_without_pace_are_equal),
        cmocka_unit_test(test_two_thousand_without_pace_are_equal),
        cmocka_unit_test(test_pace_among_streams_without),
        cmocka_unit_test(test_ten_thousand_streams_for_ten_minutes),
        cmocka_unit_test(test_no_drift_in_ten_minutes_at_a_millisecond),
        cmocka_unit_test(test_chaos),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
