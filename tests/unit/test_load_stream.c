/*
 * stream: what is counted and measured of whole streams, and which failure each broken one is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/load/stream.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { BEGAN = 1000000, INTENDED = BEGAN + 100, STARTED = BEGAN + 150, SENT = BEGAN + 200 };

struct lab {
    struct options options;
    struct figures figures;
    struct events events;
    struct stream_shared shared;
    struct request_maker maker;
    struct stream stream;
};

static void open_lab(struct lab *lab, const struct options *options)
{
    memset(lab, 0, sizeof(*lab));
    lab->options = *options;
    lab->options.prompts = 1;
    if (lab->options.url == NULL)
        lab->options.url = "http://h/stream";
    assert_int_equal(figures_init(&lab->figures), 0);
    figures_start(&lab->figures, &lab->options, BEGAN);
    lab->shared = (struct stream_shared){
        .options = &lab->options, .figures = &lab->figures, .events = &lab->events};
    buffer_init(&lab->shared.scratch, READER_EVENT_MAX_BYTES);
    request_maker_init(&lab->maker, &lab->options, 1);
    stream_init(&lab->stream, &lab->shared);
}

static void close_lab(struct lab *lab)
{
    stream_free(&lab->stream);
    buffer_free(&lab->shared.scratch);
    figures_free(&lab->figures);
}

static void start(struct lab *lab, uint64_t number, struct fate fate)
{
    assert_int_equal(request_make(&lab->maker, &lab->stream.request, number), 0);
    stream_start(&lab->stream, number, fate, INTENDED, STARTED);
}

static void head(struct lab *lab)
{
    stream_sent(&lab->stream, SENT);
    stream_head(&lab->stream, 200, true, SENT + 10);
}

static int read_at(struct lab *lab, int64_t now_us, const char *bytes)
{
    stream_begin_read(&lab->stream, now_us);
    return stream_read(&lab->stream, bytes, strlen(bytes));
}

static const struct distribution *figure(const struct lab *lab, enum figure which)
{
    return &lab->figures.of[which];
}

/* Every started request is in exactly one place. */
static void assert_balance(const struct lab *lab)
{
    const struct figures *figures = &lab->figures;
    uint64_t failed = 0;

    for (enum failure failure = 0; failure < FAILURES; failure++)
        failed += figures->failed_by[failure];
    assert_int_equal(failed, figures->failed);
    assert_int_equal(figures->started, figures->completed + figures->aborted +
                                           figures->interrupted + figures->failed +
                                           figures->open);
}

static void test_times(void **state)
{
    struct lab lab;
    struct options options = {.url = "http://h/stream?itl_ms=20&ttft_ms=1"};

    (void)state;
    open_lab(&lab, &options);
    start(&lab, 0, (struct fate){0});
    assert_int_equal(lab.figures.open, 1);
    head(&lab);
    assert_int_equal(read_at(&lab, SENT + 1000, "data: {\"token\":\"a\"}\n\n"), 0);
    assert_int_equal(read_at(&lab, SENT + 22000, "data: {\"token\":\"b\"}\n\n"), 0);
    /* Two in one read, and the first half of a third. */
    assert_int_equal(
        read_at(&lab, SENT + 41000,
                "data: {\"token\":\"c\"}\n\ndata: {\"token\":\"d\"}\n\ndata: {\"tok"),
        0);
    assert_int_equal(read_at(&lab, SENT + 61000, "en\":\"e\"}\n\n"), 0);
    assert_int_equal(read_at(&lab, SENT + 61500, "data: [DONE]\n\n"), 0);
    stream_end(&lab.stream, STREAM_ENDED, "", SENT + 62000);

    assert_int_equal(lab.figures.completed, 1);
    assert_int_equal(lab.figures.tokens, 5);
    assert_int_equal(lab.figures.token_events, 5);
    assert_int_equal(lab.figures.reads, 5);
    assert_int_equal(lab.figures.gap_events, 4);
    assert_int_equal(lab.figures.coalesced, 1);
    assert_int_equal(lab.figures.window_tokens, 5);
    assert_int_equal(lab.figures.asked_ttft_us, 1000);
    assert_int_equal(figure(&lab, FIGURE_TTFT)->max, SENT + 1000 - INTENDED);
    assert_int_equal(figure(&lab, FIGURE_TTFT_SENT)->max, 1000);
    assert_int_equal(figure(&lab, FIGURE_START)->max, STARTED - INTENDED);
    assert_int_equal(figure(&lab, FIGURE_ITL)->count, 4);
    assert_int_equal(figure(&lab, FIGURE_ITL)->min, 0);
    assert_int_equal(figure(&lab, FIGURE_ITL)->max, 21000);
    assert_int_equal(figure(&lab, FIGURE_LATENESS)->count, 4);
    assert_int_equal(figure(&lab, FIGURE_LATENESS)->min, -20000);
    assert_int_equal(figure(&lab, FIGURE_LATENESS)->max, 1000);
    assert_int_equal(figure(&lab, FIGURE_TPOT)->max, 15000);
    assert_int_equal(figure(&lab, FIGURE_TOTAL)->max, SENT + 61500 - INTENDED);
    assert_int_equal(figure(&lab, FIGURE_PATH)->count, 0);
    assert_balance(&lab);
    close_lab(&lab);
}

/* A chunk's tokens come together: gaps of 0 between them, and the next chunk is due a gap later
 * for each. */
static void test_chunks(void **state)
{
    struct lab lab;
    struct options options = {.url = "http://h/stream?itl_ms=20&chunk=3"};

    (void)state;
    open_lab(&lab, &options);
    start(&lab, 0, (struct fate){0});
    head(&lab);
    read_at(&lab, SENT + 1000, "data: {\"token\":\"abc\",\"n\":3}\n\n");
    read_at(&lab, SENT + 61500, "data: {\"token\":\"de\",\"n\":2}\n\ndata: [DONE]\n\n");
    stream_end(&lab.stream, STREAM_ENDED, "", SENT + 62000);
    assert_int_equal(lab.figures.tokens, 5);
    assert_int_equal(lab.figures.token_events, 2);
    assert_int_equal(lab.figures.gap_events, 1);
    assert_int_equal(lab.figures.coalesced, 0);
    assert_int_equal(figure(&lab, FIGURE_ITL)->count, 4);
    assert_int_equal(distribution_percentile(figure(&lab, FIGURE_ITL), 75000), 0);
    assert_int_equal(figure(&lab, FIGURE_ITL)->max, 60500);
    assert_int_equal(figure(&lab, FIGURE_LATENESS)->count, 1);
    assert_int_equal(figure(&lab, FIGURE_LATENESS)->max, 500);
    close_lab(&lab);
}

static void test_stamps(void **state)
{
    struct lab lab;
    struct options options = {0};

    (void)state;
    open_lab(&lab, &options);
    start(&lab, 0, (struct fate){0});
    head(&lab);
    /* The server's clock is 7,000,000 us ahead; the path takes 300, 250 and 280 us. */
    read_at(&lab, SENT + 1000,
            "data: {\"token\":\"a\",\"i\":0,\"t_us\":8000900,\"due_us\":8000880}\n\n");
    read_at(&lab, SENT + 2000,
            "data: {\"token\":\"b\",\"i\":1,\"t_us\":8001950,\"due_us\":8001880}\n\n");
    read_at(&lab, SENT + 3000,
            "data: {\"token\":\"c\",\"i\":2,\"t_us\":8002920,\"due_us\":8002880}\n\n");
    assert_int_equal(figure(&lab, FIGURE_PACE)->min, 20);
    assert_int_equal(figure(&lab, FIGURE_PACE)->max, 70);
    const struct distribution *path = figure(&lab, FIGURE_PATH);
    assert_int_equal(figures_offset_us(&lab.figures, FIGURE_PATH), path->min);
    assert_int_equal(path->max - path->min, 50);
    assert_int_equal(distribution_percentile(path, 50000) - path->min, 30);
    const struct distribution *due = figure(&lab, FIGURE_DUE);
    assert_int_equal(due->max - figures_offset_us(&lab.figures, FIGURE_DUE), 70);
    assert_int_equal(figures_offset_us(&lab.figures, FIGURE_ITL), 0);
    stream_end(&lab.stream, STREAM_INTERRUPTED, "", SENT + 4000);
    assert_int_equal(lab.figures.interrupted, 1);
    assert_balance(&lab);
    close_lab(&lab);
}

static void test_window(void **state)
{
    struct lab lab;
    struct options options = {.warmup_us = 10000, .duration_us = 30000};

    (void)state;
    open_lab(&lab, &options);
    start(&lab, 0, (struct fate){0}); /* in the warm-up: its ttft does not count */
    head(&lab);
    read_at(&lab, BEGAN + 5000, "data: {\"token\":\"a\"}\n\n");
    read_at(&lab, BEGAN + 9000, "data: {\"token\":\"b\"}\n\n");
    read_at(&lab, BEGAN + 15000, "data: {\"token\":\"c\"}\n\n"); /* its gap does */
    read_at(&lab, BEGAN + 31000, "data: {\"token\":\"d\"}\n\ndata: [DONE]\n\n"); /* too late */
    stream_end(&lab.stream, STREAM_ENDED, "", BEGAN + 31000);
    assert_int_equal(figure(&lab, FIGURE_TTFT)->count, 0);
    assert_int_equal(figure(&lab, FIGURE_TOTAL)->count, 0);
    assert_int_equal(figure(&lab, FIGURE_ITL)->count, 1);
    assert_int_equal(figure(&lab, FIGURE_ITL)->max, 6000);
    assert_int_equal(lab.figures.window_tokens, 1);
    assert_int_equal(lab.figures.window_completed, 0);
    assert_int_equal(lab.figures.completed, 1);
    close_lab(&lab);
}

static void test_slow_readers_are_not_measured(void **state)
{
    struct lab lab;
    struct options options = {0};

    (void)state;
    open_lab(&lab, &options);
    start(&lab, 0, (struct fate){.is_slow = true});
    head(&lab);
    read_at(&lab, SENT + 5000, "data: {\"token\":\"a\"}\n\n");
    read_at(&lab, SENT + 900000, "data: {\"token\":\"b\"}\n\ndata: [DONE]\n\n");
    stream_end(&lab.stream, STREAM_ENDED, "", SENT + 900000);
    assert_int_equal(lab.figures.slow, 1);
    assert_int_equal(lab.figures.completed, 1);
    assert_int_equal(lab.figures.tokens, 2);
    for (enum figure which = 0; which < FIGURES; which++)
        assert_int_equal(figure(&lab, which)->count, 0);
    close_lab(&lab);
}

static void test_abort(void **state)
{
    struct lab lab;
    struct options options = {0};

    (void)state;
    open_lab(&lab, &options);
    start(&lab, 0, (struct fate){.abort_after = 2});
    head(&lab);
    assert_int_equal(read_at(&lab, SENT + 1, "data: {\"token\":\"a\"}\n\n"), 0);
    /* It leaves at once: what the same read brought beyond it was never read. */
    assert_int_equal(
        read_at(&lab, SENT + 2,
                "data: {\"token\":\"b\"}\n\ndata: {\"token\":\"c\"}\n\ndata: [DONE]\n\n"),
        -1);
    stream_end(&lab.stream, STREAM_LEFT, "", SENT + 3);
    assert_int_equal(lab.figures.aborted, 1);
    assert_int_equal(lab.figures.tokens, 2);
    assert_int_equal(lab.figures.failed, 0);
    assert_balance(&lab);
    /* One that is shorter than that ends as any other. */
    start(&lab, 1, (struct fate){.abort_after = 2});
    head(&lab);
    assert_int_equal(read_at(&lab, SENT + 1, "data: {\"token\":\"a\"}\n\ndata: [DONE]\n\n"), 0);
    stream_end(&lab.stream, STREAM_ENDED, "", SENT + 3);
    assert_int_equal(lab.figures.completed, 1);
    assert_balance(&lab);
    close_lab(&lab);
}

/* Of "hello": The, sailor, rested. */
static void test_failures(void **state)
{
    static const struct {
        const char *body;
        enum stream_end end;
        bool verify;
        enum failure failure; /* FAILURES: none */
        const char *why;
    } rows[] = {
        {"data: {\"token\":\"The\"}\n\ndata: {\"token\":\" sailor\"}\n\ndata: [DONE]\n\n",
         STREAM_ENDED, true, FAILURES, ""},
        {"data: {\"token\":\"The\"}\n\ndata: {\"token\":\" sailor\"}\n\n", STREAM_ENDED, false,
         FAILURE_TRUNCATED, "after 2 tokens without [DONE]"},
        {"data: {\"token\":\"The\"}\n\ndata: {\"to", STREAM_ENDED, false, FAILURE_TRUNCATED,
         "in the middle of an event"},
        {"", STREAM_ENDED, false, FAILURE_TRUNCATED, "after 0 tokens"},
        {"data: {\"token\":\"The\"}\n\n", STREAM_CUT, false, FAILURE_CUT, "detail"},
        {"data: {\"token\":\"The\"}\n\ndata: [DONE]\n\n", STREAM_CUT, false, FAILURE_CUT,
         "detail"},
        {"data: {\"token\":\"The\"}\n\n", STREAM_TIMEOUT, false, FAILURE_TIMEOUT,
         "after 1 tokens"},
        {"data: {\"token\":\"The\"}\n\n", STREAM_BROKEN, false, FAILURE_OTHER, "detail"},
        {"event: error\ndata: {\"error\":{\"message\":\"why not\"}}\n\n", STREAM_ENDED, false,
         FAILURE_ERROR, "why not"},
        {"data: {\"token\":\"The\"\n\ndata: {\"token\":\" sailor\"}\n\ndata: [DONE]\n\n",
         STREAM_ENDED, false, FAILURE_BAD_JSON, "`{\"token\":\"The\"` is not JSON"},
        {"data: {\"token\":\"The\"}\n\ndata: {\"token\":\"The\"}\n\ndata: [DONE]\n\n",
         STREAM_ENDED, true, FAILURE_WRONG_TOKEN,
         "doubled at token 1: `The` came, ` sailor` was next"},
        {"data: {\"token\":\"The\"}\n\ndata: {\"token\":\"The\"}\n\ndata: [DONE]\n\n",
         STREAM_ENDED, false, FAILURES, ""}, /* nobody asked */
        {"data: {\"token\":\" sailor\"}\n\ndata: [DONE]\n\n", STREAM_ENDED, true,
         FAILURE_WRONG_TOKEN, "lost at token 0"},
        {"data: {\"token\":\"The\"}\n\ndata: {\"token\":\" sailos\"}\n\ndata: [DONE]\n\n",
         STREAM_ENDED, true, FAILURE_WRONG_TOKEN, "changed at token 1"},
        {"data: {\"token\":\"The\"}\n\ndata: [DONE]\n\n", STREAM_ENDED, true,
         FAILURE_WRONG_TOKEN, "short: [DONE] came after 1 tokens, 2 were asked for"},
        {"data: {\"token\":\"The\"}\n\ndata: {\"token\":\" sailor\"}\n\n"
         "data: {\"token\":\" rested\"}\n\ndata: [DONE]\n\n",
         STREAM_ENDED, true, FAILURE_WRONG_TOKEN, "excess at token 2"},
        {"data: {\"token\":\"The\",\"i\":1,\"t_us\":5,\"due_us\":5}\n\n", STREAM_ENDED, true,
         FAILURE_WRONG_TOKEN, "lost at token 0"},
        {"data: {\"token\":\"The\",\"n\":2}\n\n", STREAM_ENDED, true, FAILURE_WRONG_TOKEN,
         "split at token 1"},
        {"data: {\"token\":\"The\"}\n\ndata: [DONE]\n\ndata: {\"token\":\"x\"}\n\n",
         STREAM_ENDED, false, FAILURE_WRONG_TOKEN, "after [DONE]"},
        {"data: [DONE]\n\ndata: [DONE]\n\n", STREAM_ENDED, false, FAILURE_WRONG_TOKEN, "twice"},
        {"data: {\"choices\":[{\"text\":\"The sai\"}]}\n\ndata: "
         "{\"choices\":[{\"text\":\"lor\"}]}"
         "\n\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
         STREAM_ENDED, true, FAILURES, ""},
        {"data: {\"choices\":[{\"text\":\"The sailor\"}]}\n\n"
         "data: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
         STREAM_ENDED, true, FAILURE_WRONG_TOKEN, "usage.completion_tokens is 3, and 2"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct lab lab;
        struct options options = {.url = "http://h/stream?prompt=hello&max_tokens=2",
                                  .verify = rows[row].verify};
        open_lab(&lab, &options);
        start(&lab, 0, (struct fate){0});
        head(&lab);
        assert_int_equal(read_at(&lab, SENT + 1, rows[row].body), 0);
        stream_end(&lab.stream, rows[row].end, "detail", SENT + 3);
        assert_int_equal(lab.figures.completed, rows[row].failure == FAILURES);
        if (rows[row].failure != FAILURES) {
            assert_int_equal(lab.figures.failed_by[rows[row].failure], 1);
            assert_int_equal(lab.figures.example_count, 1);
            if (strstr(lab.figures.examples[0].why, rows[row].why) == NULL)
                fail_msg("`%s` does not say `%s`", lab.figures.examples[0].why, rows[row].why);
            assert_string_equal(lab.figures.examples[0].id, "load-00000001-0");
        }
        assert_balance(&lab);
        close_lab(&lab);
    }
}

static void test_http(void **state)
{
    static const struct {
        int status; /* 0: no head */
        const char *body;
        enum stream_end end;
        enum failure failure;
        const char *why;
    } rows[] = {
        {503, "{\"error\":{\"message\":\"busy\"}}", STREAM_ENDED, FAILURE_HTTP,
         "HTTP 503: busy"},
        {404, "<html>no</html>", STREAM_ENDED, FAILURE_HTTP, "HTTP 404: <html>no</html>"},
        {500, "", STREAM_ENDED, FAILURE_HTTP, "HTTP 500"},
        {429, "{\"error\":{}}", STREAM_CUT, FAILURE_HTTP, "HTTP 429"},
        {200, "{\"text\":\"The\"}", STREAM_ENDED, FAILURE_NOT_STREAM, "no text/event-stream"},
        {0, NULL, STREAM_REFUSED, FAILURE_CONNECT, "detail"},
        {0, NULL, STREAM_CUT, FAILURE_CUT, "detail"},
        {0, NULL, STREAM_TIMEOUT, FAILURE_TIMEOUT, "detail"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct lab lab;
        struct options options = {0};
        open_lab(&lab, &options);
        start(&lab, 0, (struct fate){0});
        if (rows[row].status > 0) {
            stream_sent(&lab.stream, SENT);
            stream_head(&lab.stream, rows[row].status, false, SENT + 1);
            assert_int_equal(read_at(&lab, SENT + 1, rows[row].body), 0);
        }
        stream_end(&lab.stream, rows[row].end, "detail", SENT + 3);
        assert_int_equal(lab.figures.failed_by[rows[row].failure], 1);
        assert_non_null(strstr(lab.figures.examples[0].why, rows[row].why));
        if (rows[row].status > 0)
            assert_int_equal(lab.figures.http_status[rows[row].status], 1);
        assert_balance(&lab);
        close_lab(&lab);
    }
}

/* The first failure counts, once, and what follows is read all the same. */
static void test_failed_is_read_on(void **state)
{
    struct lab lab;
    struct options options = {0};

    (void)state;
    open_lab(&lab, &options);
    start(&lab, 0, (struct fate){0});
    head(&lab);
    assert_int_equal(read_at(&lab, SENT + 1, "data: {\n\ndata: {\"token\":\"a\"}\n\n"), 0);
    assert_int_equal(read_at(&lab, SENT + 2, "event: error\ndata: {}\n\n"), 0);
    stream_end(&lab.stream, STREAM_CUT, "detail", SENT + 3);
    assert_int_equal(lab.figures.failed, 1);
    assert_int_equal(lab.figures.failed_by[FAILURE_BAD_JSON], 1);
    assert_int_equal(lab.figures.tokens, 1);
    close_lab(&lab);
}

static void test_endless_event(void **state)
{
    static char piece[1 << 16];
    struct lab lab;
    struct options options = {0};
    int status = 0;

    (void)state;
    open_lab(&lab, &options);
    start(&lab, 0, (struct fate){0});
    head(&lab);
    memset(piece, 'x', sizeof(piece) - 1);
    for (int i = 0; status == 0 && i < 20; i++)
        status = read_at(&lab, SENT + i, piece);
    assert_int_equal(status, -1);
    stream_end(&lab.stream, STREAM_LEFT, "", SENT + 30);
    assert_int_equal(lab.figures.failed_by[FAILURE_TOO_LONG], 1);
    assert_int_equal(lab.figures.aborted, 0);
    close_lab(&lab);
}

static void test_goodput(void **state)
{
    static const struct {
        struct goodput goodput;
        bool is_good;
    } rows[] = {
        {{.wanted = true}, true},
        {{.wanted = true, .ttft_us = 1100}, true},
        {{.wanted = true, .ttft_us = 1099}, false}, /* since it should have started */
        {{.wanted = true, .itl_us = 2000}, true},
        {{.wanted = true, .itl_us = 1999}, false},
        {{.wanted = true, .tpot_us = 1500}, true},
        {{.wanted = true, .tpot_us = 1499}, false},
        {{.wanted = true, .total_us = 4100}, true},
        {{.wanted = true, .total_us = 4099}, false},
        {{.wanted = true, .ttft_us = 9999, .itl_us = 1}, false},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct lab lab;
        struct options options = {.goodput = rows[row].goodput};
        open_lab(&lab, &options);
        start(&lab, 0, (struct fate){0});
        head(&lab);
        read_at(&lab, INTENDED + 1100, "data: {\"token\":\"a\"}\n\n");
        read_at(&lab, INTENDED + 2100, "data: {\"token\":\"b\"}\n\n");
        read_at(&lab, INTENDED + 4100, "data: {\"token\":\"c\"}\n\ndata: [DONE]\n\n");
        stream_end(&lab.stream, STREAM_ENDED, "", INTENDED + 4200);
        assert_int_equal(lab.figures.window_completed, 1);
        assert_int_equal(lab.figures.window_good, rows[row].is_good);
        close_lab(&lab);
    }
}

/* What a server sent does not reach a terminal as it is, and is cut. */
static void test_examples(void **state)
{
    struct lab lab;
    struct options options = {0};
    char long_text[1000];

    (void)state;
    open_lab(&lab, &options);
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    for (uint64_t i = 0; i < EXAMPLES + 5; i++) {
        start(&lab, i, (struct fate){0});
        stream_end(&lab.stream, STREAM_BROKEN, i == 0 ? "\033[31m\n\xff" : long_text, SENT);
    }
    assert_int_equal(lab.figures.example_count, EXAMPLES);
    assert_int_equal(lab.figures.failed, EXAMPLES + 5);
    assert_string_equal(lab.figures.examples[0].why, "\\x1b[31m\\x0a\\xff");
    assert_true(strlen(lab.figures.examples[1].why) < EXAMPLE_MAX_BYTES);
    close_lab(&lab);
}

static void test_event_file(void **state)
{
    struct lab lab;
    struct options options = {0};
    char *written = NULL;
    size_t len = 0;

    (void)state;
    open_lab(&lab, &options);
    lab.events = (struct events){.file = open_memstream(&written, &len), .streams = 1};
    for (uint64_t i = 0; i < 2; i++) { /* the second is beyond --events-streams */
        start(&lab, i, (struct fate){0});
        head(&lab);
        read_at(&lab, SENT + 100, "data: {\"choices\":[]}\n\n");
        read_at(&lab, SENT + 200,
                "data: {\"token\":\"ab\",\"n\":2}\n\ndata: {\"token\":\"c\"}\n\n");
        read_at(&lab, SENT + 300, "data: [DONE]\n\n");
        stream_end(&lab.stream, STREAM_ENDED, "", SENT + 400);
    }
    assert_int_equal(events_close(&lab.events), 0);
    assert_string_equal(written, "0\t10\t0\thead\t0\n"
                                 "0\t100\t1\tother\t0\n"
                                 "0\t200\t2\ttoken\t2\n"
                                 "0\t200\t2\ttoken\t1\n"
                                 "0\t300\t3\tdone\t0\n"
                                 "0\t400\t3\tend\t3\n");
    free(written);
    close_lab(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_stamps),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_slow_readers_are_not_measured),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_http),
        cmocka_unit_test(test_failed_is_read_on),
        cmocka_unit_test(test_endless_event),
        cmocka_unit_test(test_goodput),
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_event_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
