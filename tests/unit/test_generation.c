/*
 * generation: what one step does, in each phase and at each failure, and what is left of a
 * request in the ledger whatever ends it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/fake_engine.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { TTFT_US = 200000, ITL_US = 25000, START_US = 5000000 };

/* One generation without a pacer: the test takes its steps. */
struct bench {
    struct ledger *ledger;
    struct buffer scratch;
    struct generation_context context;
    struct fake_stream stream;
    struct generation *generation;
};

static void bench_open(struct bench *bench, uint64_t requested, bool ignore_cancel)
{
    char error[LEDGER_ERROR_MAX_BYTES];

    bench->ledger = ledger_open(NULL, error);
    assert_non_null(bench->ledger);
    buffer_init(&bench->scratch, 1 << 20);
    bench->context = (struct generation_context){
        .ledger = bench->ledger, .scratch = &bench->scratch, .ignore_cancel = ignore_cancel};
    bench->generation =
        fake_stream_generation(&bench->stream, "g", requested, TTFT_US, ITL_US, START_US);
}

/* Accepted at START_US, and started `wait_us` later. */
static void bench_start(struct bench *bench, int64_t wait_us)
{
    assert_int_equal(generation_accept(bench->generation, &bench->context), STEP_WAIT);
    generation_start(bench->generation, &bench->context, START_US + wait_us);
}

static enum generation_step bench_step(struct bench *bench, int64_t after_us)
{
    enum generation_step step =
        generation_step(bench->generation, &bench->context, START_US + after_us);

    check_books(bench->ledger);
    return step;
}

/* It is over: destroy it, and compare what the client got. */
static void bench_close(struct bench *bench, const char *got)
{
    struct ledger_totals totals = check_books(bench->ledger);

    assert_int_equal(totals.accepted, 1);
    assert_int_equal(totals.queued + totals.running + totals.held, 0);
    generation_destroy(bench->generation);
    assert_stream_got(&bench->stream, got);
    buffer_free(&bench->scratch);
    ledger_close(bench->ledger);
}

static void assert_tokens(const struct bench *bench, uint64_t generated, uint64_t delivered,
                          uint64_t discarded)
{
    assert_int_equal(bench->generation->ledger.generated, generated);
    assert_int_equal(bench->generation->ledger.delivered, delivered);
    assert_int_equal(bench->generation->ledger.discarded, discarded);
}

static void test_a_stream_to_its_end(void **state)
{
    struct bench bench = {0};

    (void)state;
    bench_open(&bench, 3, false);
    assert_int_equal(generation_accept(bench.generation, &bench.context), STEP_WAIT);
    assert_int_equal(bench.generation->ledger.phase, LEDGER_QUEUED);
    assert_int_equal(bench.stream.sink.byte_count, 0);
    assert_int_equal(bench_step(&bench, 0), STEP_WAIT); /* the head, while still queued */
    assert_int_equal(bench.stream.sink.byte_count, 1);
    assert_int_equal(bench.stream.sink.unflushed, 0);
    assert_int_equal(bench_step(&bench, 10 * TTFT_US),
                     STEP_WAIT); /* nothing is due without a slot */
    assert_int_equal(bench.stream.encoder.tokens, 0);

    generation_start(bench.generation, &bench.context, START_US + 1000);
    assert_int_equal(bench.generation->ledger.phase, LEDGER_PREFILL);
    assert_int_equal(bench.generation->due_us, START_US + 1000 + TTFT_US);
    assert_int_equal(bench_step(&bench, 1000 + TTFT_US - 1), STEP_WAIT);
    assert_tokens(&bench, 0, 0, 0);
    assert_int_equal(bench.generation->ledger.ttft_us, -1);
    assert_int_equal(bench_step(&bench, 1000 + TTFT_US), STEP_WAIT);
    assert_tokens(&bench, 1, 1, 0);
    assert_int_equal(bench.generation->ledger.phase, LEDGER_DECODE);
    assert_int_equal(bench.generation->ledger.ttft_us, 1000 + TTFT_US); /* with the wait */
    assert_int_equal(bench.generation->due_us, START_US + 1000 + TTFT_US + ITL_US);
    assert_int_equal(bench_step(&bench, 1000 + TTFT_US), STEP_WAIT); /* one token a due time */
    assert_tokens(&bench, 1, 1, 0);

    /* Late for both tokens that are left: one a step, and the schedule stays. */
    assert_int_equal(bench_step(&bench, 1000000), STEP_WAIT);
    assert_tokens(&bench, 2, 2, 0);
    assert_int_equal(bench.generation->due_us, START_US + 1000 + TTFT_US + 2 * ITL_US);
    assert_int_equal(bench_step(&bench, 1000001), STEP_SLOTLESS);
    assert_tokens(&bench, 3, 3, 0);
    assert_int_equal(bench_step(&bench, 1000001), STEP_ENDED);
    assert_int_equal(bench.generation->ledger.outcome, LEDGER_DONE);
    assert_int_equal(bench.generation->ledger.duration_us, 1000001);
    assert_int_equal(bench.stream.sink.ends, 1);
    /* The last bytes went out with the end of the reply: head and three tokens were flushed. */
    assert_int_equal(bench.stream.sink.flushes, 4);
    bench_close(&bench, "H0;1;2;Edone");
}

/* An encoder that waits for more: what it keeps back is held, and nothing else is. */
static void test_tokens_that_are_kept_back(void **state)
{
    struct bench bench = {0};

    (void)state;
    bench.stream.encoder.keeps_from = 1;
    bench.stream.encoder.keeps_to = 3;
    bench_open(&bench, 5, false);
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_WAIT);
    assert_tokens(&bench, 1, 1, 0);
    unsigned writes = bench.stream.sink.writes;
    assert_int_equal(bench_step(&bench, TTFT_US + ITL_US), STEP_WAIT);
    assert_tokens(&bench, 2, 1, 0);
    assert_int_equal(bench.generation->last_sent_us,
                     START_US + TTFT_US); /* a ping may be due */
    assert_int_equal(bench_step(&bench, TTFT_US + 2 * ITL_US), STEP_WAIT);
    assert_tokens(&bench, 3, 1, 0);
    assert_int_equal(check_books(bench.ledger).held, 2);
    assert_int_equal(bench.stream.sink.writes, writes);
    assert_int_equal(bench_step(&bench, TTFT_US + 3 * ITL_US), STEP_WAIT);
    assert_tokens(&bench, 4, 4, 0);
    assert_int_equal(bench.stream.sink.writes, writes + 1);
    assert_int_equal(bench_step(&bench, TTFT_US + 4 * ITL_US), STEP_SLOTLESS);
    assert_int_equal(bench_step(&bench, TTFT_US + 4 * ITL_US), STEP_ENDED);
    bench_close(&bench, "H0;+3;4;Edone");
}

static void test_the_kept_are_discarded_when_the_client_leaves(void **state)
{
    struct bench bench = {0};

    (void)state;
    bench.stream.encoder.keeps_from = 1;
    bench.stream.encoder.keeps_to = 9;
    bench_open(&bench, 9, false);
    bench_start(&bench, 0);
    for (int64_t i = 0; i < 4; i++)
        assert_int_equal(bench_step(&bench, TTFT_US + i * ITL_US), STEP_WAIT);
    generation_stop(bench.generation, &bench.context, LEDGER_CANCELLED, LEDGER_BY_HANGUP,
                    START_US + TTFT_US + 4 * ITL_US);
    assert_tokens(&bench, 4, 1, 3);
    bench_close(&bench, "H0;");
}

/* The encoder says that no token follows: in a chunk, of which the rest is not generated. */
static void test_the_encoder_ends_the_reply(void **state)
{
    struct bench bench = {0};

    (void)state;
    bench.stream.encoder.stops = true;
    bench.stream.encoder.last_token = 5;
    bench_open(&bench, 100, false);
    bench.generation->plan.chunk = 4;
    bench.generation->plan.fault = (struct fault){.kind = FAULT_ERROR, .token = 6};
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_WAIT);
    assert_tokens(&bench, 4, 4, 0);
    assert_int_equal(bench_step(&bench, TTFT_US + 4 * ITL_US), STEP_SLOTLESS);
    assert_tokens(&bench, 6, 6, 0);
    assert_int_equal(bench_step(&bench, TTFT_US + 4 * ITL_US), STEP_ENDED);
    assert_int_equal(bench.generation->ledger.outcome, LEDGER_DONE);
    assert_int_equal(bench.generation->ledger.requested, 100);
    bench_close(&bench, "H0;4;Edone");
}

/* It says so in a write that the sink does not take at once: a fault behind it never comes. */
static void test_the_encoder_ends_a_blocked_reply(void **state)
{
    struct bench bench = {0};
    size_t large = 3 * SINK_WRITE_MAX_BYTES;

    (void)state;
    bench.stream.encoder.stops = true;
    bench.stream.encoder.last_token = 0;
    bench.stream.encoder.token_bytes = large;
    bench.stream.sink.forgets = true;
    bench_open(&bench, 100, false);
    bench.generation->plan.fault = (struct fault){.kind = FAULT_RESET, .token = 1};
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, 0), STEP_WAIT); /* the head */
    bench.stream.sink.is_limited = true;
    bench.stream.sink.room = 1;
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_BLOCKED);
    assert_tokens(&bench, 1, 0, 0);
    bench.stream.sink.is_limited = false;
    assert_int_equal(bench_step(&bench, 10 * TTFT_US), STEP_SLOTLESS);
    assert_tokens(&bench, 1, 1, 0);
    assert_int_equal(bench_step(&bench, 10 * TTFT_US), STEP_ENDED);
    assert_int_equal(bench.generation->ledger.outcome, LEDGER_DONE);
    assert_int_equal(bench.stream.sink.byte_count, 1 + large + strlen("Edone"));
    bench_close(&bench, "");
}

static void test_a_reply_in_one_piece(void **state)
{
    struct bench bench = {0};

    (void)state;
    bench.stream.encoder.is_whole = true;
    bench_open(&bench, 2, false);
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_WAIT);
    assert_tokens(&bench, 1, 0, 0);
    assert_int_equal(check_books(bench.ledger).held, 1);
    assert_int_equal(bench.generation->ledger.ttft_us, TTFT_US);
    assert_int_equal(bench_step(&bench, TTFT_US + ITL_US), STEP_SLOTLESS);
    assert_int_equal(bench.stream.sink.writes, 0);
    assert_int_equal(check_books(bench.ledger).held, 2);
    assert_int_equal(bench_step(&bench, TTFT_US + ITL_US), STEP_ENDED);
    assert_tokens(&bench, 2, 2, 0);
    assert_int_equal(bench.generation->ledger.outcome, LEDGER_DONE);
    bench_close(&bench, "Edone");
}

/* --- a sink that takes no more --- */

static void test_no_token_ahead_of_the_sink(void **state)
{
    struct bench bench = {0};

    (void)state;
    bench_open(&bench, 3, false);
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_WAIT);
    bench.stream.sink.is_full = true;
    assert_int_equal(bench_step(&bench, TTFT_US + 1),
                     STEP_WAIT); /* nothing is due: no matter */
    assert_int_equal(bench_step(&bench, TTFT_US + ITL_US), STEP_BLOCKED);
    assert_int_equal(bench_step(&bench, TTFT_US + 9 * ITL_US), STEP_BLOCKED);
    assert_int_equal(bench.stream.encoder.tokens, 1); /* none was made to wait in memory */
    assert_int_equal(bench.generation->pending.cap, 0);
    bench.stream.sink.is_full = false;
    assert_int_equal(bench_step(&bench, TTFT_US + 9 * ITL_US), STEP_WAIT);
    assert_int_equal(bench_step(&bench, TTFT_US + 9 * ITL_US), STEP_SLOTLESS);
    bench.stream.sink.is_full = true;
    assert_int_equal(bench_step(&bench, TTFT_US + 9 * ITL_US), STEP_BLOCKED);
    assert_int_equal(bench.stream.sink.ends, 0);
    bench.stream.sink.is_full = false;
    assert_int_equal(bench_step(&bench, TTFT_US + 9 * ITL_US), STEP_ENDED);
    bench_close(&bench, "H0;1;2;Edone");
}

static void test_a_head_that_waits(void **state)
{
    struct bench bench = {0};

    (void)state;
    bench.stream.sink.is_full = true;
    bench_open(&bench, 1, false);
    assert_int_equal(generation_accept(bench.generation, &bench.context), STEP_WAIT);
    assert_int_equal(bench_step(&bench, 0), STEP_BLOCKED);
    generation_start(bench.generation, &bench.context, START_US);
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_BLOCKED);
    assert_int_equal(bench.stream.encoder.tokens, 0); /* no token before the head */
    bench.stream.sink.is_full = false;
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_SLOTLESS);
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_ENDED);
    bench_close(&bench, "H0;Edone");
}

static void test_a_huge_reply_goes_in_pieces(void **state)
{
    enum { REPLY = 600000 };
    struct bench bench = {0};
    size_t steps = 0;
    enum generation_step step;

    (void)state;
    bench.stream.encoder.is_whole = true;
    bench.stream.encoder.end_bytes = REPLY;
    bench.stream.sink.forgets = true;
    bench_open(&bench, 1, false);
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_SLOTLESS);
    bench.stream.sink.is_limited = true;
    do {
        size_t before = bench.stream.sink.byte_count;
        bench.stream.sink.room = 2;
        step = bench_step(&bench, TTFT_US);
        assert_true(bench.stream.sink.byte_count - before <= 2 * SINK_WRITE_MAX_BYTES);
        steps++;
        assert_int_equal(check_books(bench.ledger).held, step == STEP_ENDED ? 0 : 1);
    } while (step == STEP_BLOCKED);
    assert_int_equal(step, STEP_ENDED);
    assert_int_equal(bench.stream.sink.byte_count, REPLY);
    assert_int_equal(steps, (REPLY / SINK_WRITE_MAX_BYTES + 2) / 2);
    assert_tokens(&bench, 1, 1, 0);
    bench_close(&bench, "");
}

/* --- a token of more bytes than one write may have --- */

static void test_a_huge_token_goes_in_pieces(void **state)
{
    struct bench bench = {0};

    (void)state;
    bench.stream.encoder.token_bytes = 3 * SINK_WRITE_MAX_BYTES;
    bench.stream.sink.forgets = true;
    bench_open(&bench, 2, false);
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_WAIT);
    assert_tokens(&bench, 1, 1, 0);
    assert_int_equal(bench_step(&bench, TTFT_US + ITL_US), STEP_SLOTLESS);
    assert_int_equal(bench_step(&bench, TTFT_US + ITL_US), STEP_ENDED);
    assert_tokens(&bench, 2, 2, 0);
    assert_int_equal(bench.stream.sink.byte_count, 6 * SINK_WRITE_MAX_BYTES + 6);
    bench_close(&bench, "");
}

/* The sink fills up in mid-token: the token counts once, and the next one keeps its due time.
 */
static void test_a_huge_token_that_blocks(void **state)
{
    struct bench bench = {0};

    (void)state;
    bench.stream.encoder.token_bytes = 3 * SINK_WRITE_MAX_BYTES;
    bench.stream.sink.forgets = true;
    bench_open(&bench, 2, false);
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, 0), STEP_WAIT);
    bench.stream.sink.is_limited = true;
    bench.stream.sink.room = 1;
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_BLOCKED);
    assert_tokens(&bench, 1, 0, 0);
    bench.stream.sink.is_limited = false;
    enum generation_step step = bench_step(&bench, TTFT_US + 1);
    uint64_t made = bench.stream.encoder.tokens;
    int64_t due_us = bench.generation->due_us;
    generation_stop(bench.generation, &bench.context, LEDGER_CANCELLED, LEDGER_BY_HANGUP,
                    START_US + TTFT_US + 1);
    buffer_free(&bench.generation->pending);
    bench_close(&bench, "");
    assert_int_equal(step, STEP_WAIT);
    assert_int_equal(made, 1);
    assert_int_equal(due_us, START_US + TTFT_US + ITL_US);
}

/* The last token blocks in its middle: no further one is made, and the reply ends. */
static void test_a_huge_last_token_that_blocks(void **state)
{
    struct bench bench = {0};
    enum generation_step step = STEP_WAIT;

    (void)state;
    bench.stream.encoder.token_bytes = 3 * SINK_WRITE_MAX_BYTES;
    bench.stream.sink.forgets = true;
    bench_open(&bench, 1, false);
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, 0), STEP_WAIT);
    bench.stream.sink.is_limited = true;
    bench.stream.sink.room = 1;
    bench_step(&bench, TTFT_US);
    bench.stream.sink.is_limited = false;
    for (int i = 0; i < 10 && step != STEP_ENDED; i++)
        step = bench_step(&bench, TTFT_US + i * ITL_US);
    uint64_t made = bench.stream.encoder.tokens;
    if (step != STEP_ENDED)
        generation_stop(bench.generation, &bench.context, LEDGER_CANCELLED, LEDGER_BY_HANGUP,
                        START_US + TTFT_US);
    bench_close(&bench, "");
    assert_int_equal(made, 1);
    assert_int_equal(step, STEP_ENDED);
}

/* --- failures --- */

static void test_an_encoder_that_fails(void **state)
{
    struct bench bench = {0};

    (void)state;
    bench.stream.encoder.fails_at_head = true;
    bench_open(&bench, 3, false);
    assert_int_equal(generation_accept(bench.generation, &bench.context), STEP_ENDED);
    assert_int_equal(bench.generation->ledger.outcome, LEDGER_FAILED);
    assert_int_equal(bench.stream.sink.ends, 0); /* cut off */
    bench_close(&bench, "");

    bench = (struct bench){0};
    bench.stream.encoder.fails_at_token = true;
    bench.stream.encoder.failing_token = 1;
    bench_open(&bench, 3, false);
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_WAIT);
    assert_int_equal(bench_step(&bench, TTFT_US + ITL_US), STEP_SLOTLESS);
    assert_int_equal(bench_step(&bench, TTFT_US + ITL_US), STEP_ENDED);
    assert_int_equal(bench.generation->ledger.outcome, LEDGER_FAILED);
    assert_tokens(&bench, 1, 1, 0);
    assert_int_equal(bench.stream.encoder.ended_as, LEDGER_FAILED); /* the client is told */
    bench_close(&bench, "H0;Efailed");

    bench = (struct bench){0};
    bench.stream.encoder.fails_at_end = true;
    bench_open(&bench, 1, false);
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, TTFT_US), STEP_ENDED);
    assert_int_equal(bench.generation->ledger.outcome, LEDGER_FAILED);
    assert_tokens(&bench, 1, 1, 0);
    assert_int_equal(bench.stream.sink.ends, 0);
    bench_close(&bench, "H0;");
}

/* What of a token in one piece was made before the failure is discarded. */
static void test_an_encoder_that_fails_late_in_one_piece(void **state)
{
    struct bench bench = {0};

    (void)state;
    bench.stream.encoder.is_whole = true;
    bench.stream.encoder.fails_at_token = true;
    bench.stream.encoder.failing_token = 2;
    bench_open(&bench, 5, false);
    bench_start(&bench, 0);
    assert_int_equal(bench_step(&bench, 1000000), STEP_WAIT);
    assert_int_equal(bench_step(&bench, 1000000), STEP_WAIT);
    assert_int_equal(bench_step(&bench, 1000000), STEP_SLOTLESS);
    assert_int_equal(bench_step(&bench, 1000000), STEP_ENDED);
    assert_int_equal(bench.generation->ledger.outcome, LEDGER_FAILED);
    assert_tokens(&bench, 2, 0, 2);
    bench_close(&bench, "Efailed");
}

enum failure { AT_WRITE, AT_FLUSH, AT_END };

static void fail_sink(struct fake_sink *sink, enum failure failure)
{
    sink->fails_at_write = failure == AT_WRITE;
    sink->fails_at_flush = failure == AT_FLUSH;
    sink->fails_at_end = failure == AT_END;
}

/* Where the client's end is found out by a failing write, and what the tokens then count as. */
static void test_a_sink_that_fails(void **state)
{
    static const struct {
        enum failure failure;
        unsigned before; /* tokens that went through */
        bool is_whole;
        size_t token_bytes;
        uint64_t generated, delivered, discarded;
        enum ledger_phase phase;
    } rows[] = {
        {AT_WRITE, 0, false, 0, 1, 0, 1, LEDGER_DECODE},
        {AT_FLUSH, 0, false, 0, 1, 0, 1, LEDGER_DECODE},
        {AT_WRITE, 2, false, 0, 3, 2, 1, LEDGER_DECODE},
        {AT_FLUSH, 2, false, 0, 3, 2, 1, LEDGER_DECODE},
        {AT_WRITE, 2, false, 20000, 3, 2, 1, LEDGER_DECODE}, /* a token in pieces */
        {AT_FLUSH, 2, false, 20000, 3, 2, 1, LEDGER_DECODE},
        {AT_END, 4, false, 0, 4, 4, 0, LEDGER_DECODE},   /* all tokens there, no [DONE] */
        {AT_WRITE, 4, false, 0, 4, 4, 0, LEDGER_DECODE}, /* the last bytes */
        {AT_END, 4, true, 0, 4, 0, 4, LEDGER_DECODE},
        {AT_WRITE, 4, true, 0, 4, 0, 4, LEDGER_DECODE},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct bench bench = {0};
        enum generation_step step;

        bench.stream.encoder.is_whole = rows[row].is_whole;
        bench.stream.encoder.token_bytes = rows[row].token_bytes;
        bench.stream.sink.forgets = true;
        bench_open(&bench, 4, false);
        bench_start(&bench, 0);
        bench_step(&bench, 0);
        for (unsigned i = 0; i < rows[row].before; i++)
            bench_step(&bench, 1000000);
        fail_sink(&bench.stream.sink, rows[row].failure);
        while ((step = bench_step(&bench, 1000000)) == STEP_WAIT || step == STEP_SLOTLESS)
            continue;
        assert_int_equal(step, STEP_ENDED);
        assert_int_equal(bench.generation->ledger.outcome, LEDGER_CANCELLED);
        assert_int_equal(bench.generation->ledger.detected_by, LEDGER_BY_WRITE);
        assert_int_equal(bench.generation->ledger.phase, rows[row].phase);
        assert_tokens(&bench, rows[row].generated, rows[row].delivered, rows[row].discarded);
        bench_close(&bench, "");
    }
}

static void test_a_head_that_fails(void **state)
{
    (void)state;
    for (int failure = AT_WRITE; failure <= AT_FLUSH; failure++) {
        struct bench bench = {0};

        bench.stream.sink.forgets = true;
        fail_sink(&bench.stream.sink, (enum failure)failure);
        bench_open(&bench, 4, false);
        assert_int_equal(generation_accept(bench.generation, &bench.context), STEP_WAIT);
        assert_int_equal(bench_step(&bench, 0), STEP_ENDED);
        assert_int_equal(bench.generation->ledger.outcome, LEDGER_CANCELLED);
        assert_int_equal(bench.generation->ledger.phase, LEDGER_QUEUED);
        assert_int_equal(bench.generation->ledger.duration_us, 0);
        bench_close(&bench, "");
    }
}

/* With cancel handling off the rest is generated at its pace, and all of it is discarded. */
static void test_ignored_cancel_generates_for_nobody(void **state)
{
    static const struct {
        enum failure failure;
        unsigned before;
        uint64_t delivered;
    } rows[] = {{AT_WRITE, 0, 0}, {AT_FLUSH, 0, 0}, {AT_WRITE, 2, 2}, {AT_FLUSH, 3, 3}};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct bench bench = {0};
        uint64_t steps = rows[row].before;
        enum generation_step step;

        bench.stream.sink.forgets = true;
        bench_open(&bench, 4, true);
        bench_start(&bench, 0);
        bench_step(&bench, 0);
        for (unsigned i = 0; i < rows[row].before; i++)
            bench_step(&bench, TTFT_US + i * ITL_US);
        fail_sink(&bench.stream.sink, rows[row].failure);
        while ((step = bench_step(&bench, TTFT_US + (int64_t)steps * ITL_US)) == STEP_WAIT) {
            steps++;
            assert_int_equal(bench.generation->ledger.generated, steps);
            assert_int_equal(bench.generation->due_us,
                             START_US + TTFT_US + (int64_t)steps * ITL_US);
        }
        assert_int_equal(step, STEP_ENDED);
        assert_int_equal(bench.generation->ledger.outcome, LEDGER_CANCELLED);
        assert_int_equal(bench.generation->ledger.detected_by, LEDGER_BY_WRITE);
        assert_tokens(&bench, 4, rows[row].delivered, 4 - rows[row].delivered);
        assert_int_equal(bench.stream.sink.ends, 0);
        bench_close(&bench, "");
    }
}

/* --- ended from outside --- */

enum moment { QUEUED, HEAD_BLOCKED, PREFILL, DECODE, BLOCKED, HELD, ENDING, MOMENTS };

static void bring_to(struct bench *bench, enum moment moment)
{
    bench->stream.encoder.is_whole = moment == HELD;
    bench->stream.sink.is_full = moment == HEAD_BLOCKED;
    bench_open(bench, moment == ENDING ? 2 : 4, false);
    assert_int_equal(generation_accept(bench->generation, &bench->context), STEP_WAIT);
    bench_step(bench, 0);
    if (moment == QUEUED || moment == HEAD_BLOCKED)
        return;
    generation_start(bench->generation, &bench->context, START_US);
    if (moment == PREFILL)
        return;
    bench_step(bench, TTFT_US);
    bench_step(bench, TTFT_US + ITL_US);
    if (moment == BLOCKED || moment == ENDING) {
        bench->stream.sink.is_full = true;
        assert_int_equal(bench_step(bench, TTFT_US + 2 * ITL_US), STEP_BLOCKED);
    }
}

static void test_stopped_at_any_moment(void **state)
{
    static const struct {
        enum moment moment;
        enum ledger_outcome outcome;
        const char *got;
        bool told; /* the reply has its proper end */
        enum ledger_phase phase;
        uint64_t generated, delivered;
    } rows[] = {
        {QUEUED, LEDGER_CANCELLED, "H", false, LEDGER_QUEUED, 0, 0},
        {QUEUED, LEDGER_DRAINED, "HEdrained", true, LEDGER_QUEUED, 0, 0},
        {QUEUED, LEDGER_STALLED, "H", false, LEDGER_QUEUED, 0, 0},
        {HEAD_BLOCKED, LEDGER_CANCELLED, "", false, LEDGER_QUEUED, 0, 0},
        {HEAD_BLOCKED, LEDGER_DRAINED, "", false, LEDGER_QUEUED, 0, 0},
        {PREFILL, LEDGER_CANCELLED, "H", false, LEDGER_PREFILL, 0, 0},
        {PREFILL, LEDGER_DRAINED, "HEdrained", true, LEDGER_PREFILL, 0, 0},
        {DECODE, LEDGER_CANCELLED, "H0;1;", false, LEDGER_DECODE, 2, 2},
        {DECODE, LEDGER_STALLED, "H0;1;", false, LEDGER_DECODE, 2, 2},
        {DECODE, LEDGER_DRAINED, "H0;1;Edrained", true, LEDGER_DECODE, 2, 2},
        {BLOCKED, LEDGER_CANCELLED, "H0;1;", false, LEDGER_DECODE, 2, 2},
        {BLOCKED, LEDGER_STALLED, "H0;1;", false, LEDGER_DECODE, 2, 2},
        {BLOCKED, LEDGER_DRAINED, "H0;1;", false, LEDGER_DECODE, 2, 2}, /* does not read: cut */
        {HELD, LEDGER_CANCELLED, "", false, LEDGER_DECODE, 2, 0},
        {HELD, LEDGER_DRAINED, "Edrained", true, LEDGER_DECODE, 2, 0},
        {ENDING, LEDGER_CANCELLED, "H0;1;", false, LEDGER_DECODE, 2, 2},
        {ENDING, LEDGER_STALLED, "H0;1;", false, LEDGER_DECODE, 2, 2},
        {ENDING, LEDGER_DRAINED, "H0;1;", false, LEDGER_DECODE, 2, 2},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct bench bench = {0};
        enum ledger_detector detector =
            rows[row].outcome == LEDGER_CANCELLED ? LEDGER_BY_HANGUP : LEDGER_NOT_DETECTED;

        bring_to(&bench, rows[row].moment);
        generation_stop(bench.generation, &bench.context, rows[row].outcome, detector,
                        START_US + 4711);
        const struct ledger_request *ledger = &bench.generation->ledger;
        if (ledger->outcome != rows[row].outcome || ledger->phase != rows[row].phase ||
            ledger->detected_by != detector || ledger->duration_us != 4711 ||
            ledger->generated != rows[row].generated ||
            ledger->delivered != rows[row].delivered ||
            ledger->discarded != rows[row].generated - rows[row].delivered ||
            bench.stream.sink.ends != rows[row].told)
            fail_msg("row %zu: %s in %s, %llu generated, %llu delivered, %u ends", row,
                     ledger_outcome_name(ledger->outcome), ledger_phase_name(ledger->phase),
                     (unsigned long long)ledger->generated,
                     (unsigned long long)ledger->delivered, bench.stream.sink.ends);
        bench_close(&bench, rows[row].got);
    }
}

static void test_refused(void **state)
{
    static const struct {
        bool is_full, fails_at_end;
        const char *got;
        unsigned ends;
    } rows[] = {{false, false, "Eshed", 1}, {true, false, "", 0}, {false, true, "", 0}};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct bench bench = {0};

        bench.stream.sink.is_full = rows[row].is_full;
        bench.stream.encoder.fails_at_end = rows[row].fails_at_end;
        bench_open(&bench, 4, false);
        generation_refuse(bench.generation, &bench.context);
        assert_int_equal(bench.generation->ledger.outcome, LEDGER_SHED);
        assert_int_equal(bench.generation->ledger.phase, LEDGER_QUEUED);
        assert_int_equal(bench.generation->ledger.duration_us, 0);
        assert_int_equal(bench.stream.encoder.heads, 0); /* the status is its own: 503 */
        assert_int_equal(bench.stream.sink.ends, rows[row].ends);
        bench_close(&bench, rows[row].got);
    }
}

/* A drain meets a client that has gone: it has not been drained, it has left. */
static void test_drained_into_a_closed_connection(void **state)
{
    struct bench bench = {0};

    (void)state;
    bring_to(&bench, DECODE);
    fail_sink(&bench.stream.sink, AT_WRITE);
    generation_stop(bench.generation, &bench.context, LEDGER_DRAINED, LEDGER_NOT_DETECTED,
                    START_US + 1000000);
    assert_int_equal(bench.generation->ledger.outcome, LEDGER_CANCELLED);
    assert_int_equal(bench.generation->ledger.detected_by, LEDGER_BY_WRITE);
    assert_int_equal(bench.stream.sink.ends, 0);
    bench_close(&bench, "H0;1;");
}

static void test_created_and_destroyed(void **state)
{
    (void)state;
    generation_destroy(NULL);
    generation_destroy(generation_create()); /* without sink and encoder */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_to_its_end),
        cmocka_unit_test(test_tokens_that_are_kept_back),
        cmocka_unit_test(test_the_kept_are_discarded_when_the_client_leaves),
        cmocka_unit_test(test_the_encoder_ends_the_reply),
        cmocka_unit_test(test_the_encoder_ends_a_blocked_reply),
        cmocka_unit_test(test_a_reply_in_one_piece),
        cmocka_unit_test(test_no_token_ahead_of_the_sink),
        cmocka_unit_test(test_a_head_that_waits),
        cmocka_unit_test(test_a_huge_reply_goes_in_pieces),
        cmocka_unit_test(test_a_huge_token_goes_in_pieces),
        cmocka_unit_test(test_a_huge_token_that_blocks),
        cmocka_unit_test(test_a_huge_last_token_that_blocks),
        cmocka_unit_test(test_an_encoder_that_fails),
        cmocka_unit_test(test_an_encoder_that_fails_late_in_one_piece),
        cmocka_unit_test(test_a_sink_that_fails),
        cmocka_unit_test(test_a_head_that_fails),
        cmocka_unit_test(test_ignored_cancel_generates_for_nobody),
        cmocka_unit_test(test_stopped_at_any_moment),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_drained_into_a_closed_connection),
        cmocka_unit_test(test_created_and_destroyed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
