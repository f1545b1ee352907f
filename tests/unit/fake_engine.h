#ifndef RUNNEL_TESTS_UNIT_FAKE_ENGINE_H
#define RUNNEL_TESTS_UNIT_FAKE_ENGINE_H

/*
 * The engine without the world around it: fake clock, fake peers, and the real ledger in
 * memory. Whatever a test does, the ledger's equations are asserted after every turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ledger.h"
#include "engine/pacer.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/fake_encoder.h"
#include "tests/unit/fake_sink.h"

/* One request of a test, from both its sides. */
struct fake_stream {
    struct fake_sink sink;
    struct fake_encoder encoder;
    struct generation *generation; /* the engine's; dangling once it is over */
};

/* --- the ledger's equations (engine/ledger.h) --- */

static inline uint64_t books_ended(const struct ledger_totals *totals,
                                   enum ledger_outcome outcome)
{
    uint64_t sum = 0;

    for (unsigned route = 0; route < LEDGER_ROUTES; route++)
        sum += totals->ended[route][outcome];
    return sum;
}

static inline bool books_balance(const struct ledger_totals *totals)
{
    uint64_t ended = 0;

    for (unsigned outcome = LEDGER_LIVE + 1; outcome < LEDGER_OUTCOMES; outcome++)
        ended += books_ended(totals, (enum ledger_outcome)outcome);
    return books_ended(totals, LEDGER_LIVE) == 0 &&
           totals->accepted == ended + totals->queued + totals->running &&
           totals->generated == totals->delivered + totals->discarded + totals->held &&
           totals->delivered + totals->discarded <= totals->generated;
}

static inline struct ledger_totals check_books(struct ledger *ledger)
{
    struct ledger_totals totals;

    ledger_read_totals(ledger, &totals);
    assert_true(books_balance(&totals));
    return totals;
}

/* --- generations --- */

static inline struct generation *fake_stream_generation(struct fake_stream *stream,
                                                        const char *id, uint64_t requested,
                                                        int64_t ttft_us, int64_t itl_us,
                                                        int64_t now_us)
{
    struct generation *generation = generation_create();

    assert_non_null(generation);
    snprintf(generation->ledger.id, sizeof(generation->ledger.id), "%s", id);
    generation->ledger.route = stream->encoder.is_whole ? LEDGER_GENERATE : LEDGER_STREAM;
    generation->ledger.requested = requested;
    generation->plan.timing = (struct timing){.ttft_us = ttft_us, .itl_us = itl_us};
    generation->encoder =
        (struct encoder){.ops = &fake_encoder_ops, .context = &stream->encoder};
    generation->sink = (struct sink){.ops = &fake_sink_ops, .context = &stream->sink};
    generation->accepted_us = now_us;
    stream->generation = generation;
    return generation;
}

/* It is over, everything was given back once, and the bytes are those. Frees them. */
static inline void assert_stream_got(struct fake_stream *stream, const char *wanted)
{
    assert_true(fake_sink_is_over(&stream->sink));
    assert_int_equal(stream->encoder.frees, 1);
    assert_int_equal(stream->encoder.broken_rules, 0);
    buffer_append_char(&stream->sink.bytes, '\0');
    assert_string_equal(stream->sink.bytes.data != NULL ? stream->sink.bytes.data : "", wanted);
    buffer_free(&stream->sink.bytes);
}

/* --- the engine --- */

struct fake_engine {
    struct fake_clock clock;
    struct ledger *ledger;
    struct pacer *pacer;
    size_t watched;
    bool watch_fails;
    uint64_t turns;
};

/* What on_end reported, in order; it has no context of its own. */
static struct {
    struct ledger_request requests[64]; /* the first ones */
    size_t count;
} fake_ends;

static inline void fake_engine_on_end(const struct ledger_request *request)
{
    if (fake_ends.count < sizeof(fake_ends.requests) / sizeof(fake_ends.requests[0]))
        fake_ends.requests[fake_ends.count] = *request;
    fake_ends.count++;
}

static inline int fake_engine_watch(void *context, struct generation *generation)
{
    struct fake_engine *engine = context;

    (void)generation;
    if (engine->watch_fails)
        return -1;
    engine->watched++;
    return 0;
}

static inline void fake_engine_unwatch(void *context, struct generation *generation)
{
    struct fake_engine *engine = context;

    (void)generation;
    engine->watched--;
}

static inline void fake_engine_want(void *context, struct generation *generation, bool wanted)
{
    (void)context;
    assert_int_equal(generation->is_blocked, wanted);
}

enum { FAKE_START_US = 1000000000, STALL_US = 60000000 };

static inline void fake_engine_open_as(struct fake_engine *engine, size_t slots, size_t queue,
                                       bool ignore_cancel)
{
    char error[LEDGER_ERROR_MAX_BYTES];

    memset(engine, 0, sizeof(*engine));
    fake_ends.count = 0;
    engine->clock.now_us = FAKE_START_US;
    engine->ledger = ledger_open(NULL, error);
    assert_non_null(engine->ledger);
    struct pacer_options options = {
        .slots = slots,
        .queue = queue,
        .stall_timeout_us = STALL_US,
        .ignore_cancel = ignore_cancel,
        .ledger = engine->ledger,
        .clock = fake_clock(&engine->clock),
        .watcher = {.add = fake_engine_watch,
                    .remove = fake_engine_unwatch,
                    .want_writable = fake_engine_want,
                    .context = engine},
        .on_end = fake_engine_on_end,
    };
    engine->pacer = pacer_create(&options);
    assert_non_null(engine->pacer);
}

static inline void fake_engine_open(struct fake_engine *engine, size_t slots, size_t queue)
{
    fake_engine_open_as(engine, slots, queue, false);
}

static inline struct ledger_totals fake_engine_check(struct fake_engine *engine)
{
    struct ledger_totals totals = check_books(engine->ledger);

    assert_int_equal(totals.queued + totals.running, pacer_live(engine->pacer));
    return totals;
}

/* Nothing is live any more: each request was reported once, and nothing is held. */
static inline void fake_engine_close(struct fake_engine *engine)
{
    pacer_destroy(engine->pacer);
    struct ledger_totals totals = check_books(engine->ledger);
    assert_int_equal(totals.queued + totals.running + totals.held, 0);
    assert_int_equal(totals.accepted, fake_ends.count);
    assert_int_equal(engine->watched, 0);
    ledger_close(engine->ledger);
}

static inline void fake_engine_submit(struct fake_engine *engine, struct fake_stream *stream,
                                      const char *id, uint64_t requested, int64_t ttft_us,
                                      int64_t itl_us)
{
    pacer_submit(engine->pacer, fake_stream_generation(stream, id, requested, ttft_us, itl_us,
                                                       engine->clock.now_us));
    fake_engine_check(engine);
}

/* Turns as the loop would take them, each at the microsecond that the one before asked for. */
static inline void fake_engine_run_until(struct fake_engine *engine, int64_t until_us)
{
    for (;;) {
        int64_t wake_us = pacer_turn(engine->pacer);
        engine->turns++;
        fake_engine_check(engine);
        if (wake_us <= engine->clock.now_us)
            continue;
        if (wake_us > until_us)
            break;
        engine->clock.now_us = wake_us;
    }
    if (engine->clock.now_us < until_us)
        engine->clock.now_us = until_us;
}

static inline void fake_engine_run_for(struct fake_engine *engine, int64_t span_us)
{
    fake_engine_run_until(engine, engine->clock.now_us + span_us);
}

/* The request that ended last with this id. */
static inline struct ledger_request ended_request(const char *id)
{
    size_t kept = sizeof(fake_ends.requests) / sizeof(fake_ends.requests[0]);
    size_t count = fake_ends.count < kept ? fake_ends.count : kept;

    for (size_t i = count; i > 0; i--) {
        if (strcmp(fake_ends.requests[i - 1].id, id) == 0)
            return fake_ends.requests[i - 1];
    }
    fail_msg("request %s has not ended", id);
    return (struct ledger_request){.sequence = 0};
}

#define assert_ended(name, wanted_outcome, wanted_phase, wanted_detector)                      \
    do {                                                                                       \
        struct ledger_request ended_ = ended_request(name);                                    \
        assert_string_equal(ledger_outcome_name(ended_.outcome),                               \
                            ledger_outcome_name(wanted_outcome));                              \
        assert_string_equal(ledger_phase_name(ended_.phase), ledger_phase_name(wanted_phase)); \
        assert_int_equal(ended_.detected_by, wanted_detector);                                 \
    } while (0)

#endif
