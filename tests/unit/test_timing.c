/*
 * timing: the schedule of one request is the sum of its own numbers, without rounding; jitter
 * is drawn by position; traces are read strictly.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/timing.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void test_schedule(void **state)
{
    static const struct {
        int64_t ttft_us, itl_us;
        uint64_t index;
        int64_t due_us; /* from the start */
    } rows[] = {
        {0, 0, 0, 0},
        {0, 0, 1000, 0},
        {200000, 25000, 0, 200000},
        {200000, 25000, 1, 225000},
        {200000, 25000, 19, 675000},
        {0, 500, 3, 1500},
        {1, 33333, 3, 100000},
        {7, 1, 599999, 600006},
        {INT64_C(86400000000), INT64_C(86400000000), 2, INT64_C(259200000000)},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        const struct timing timing = {.ttft_us = rows[row].ttft_us, .itl_us = rows[row].itl_us};
        int64_t due_us = timing_first_us(&timing);

        for (uint64_t i = 1; i <= rows[row].index; i++)
            due_us += timing_gap_us(&timing, i, 1);
        assert_int_equal(due_us, rows[row].due_us);
    }
}

static void test_batch(void **state)
{
    const struct timing timing = {.itl_us = 1000, .per_running_us = 7};

    (void)state;
    assert_int_equal(timing_gap_us(&timing, 1, 1), 1007);
    assert_int_equal(timing_gap_us(&timing, 1, 1000), 8000);
}

/* Mean and deviation as they say, never negative, the same at the same position. */
static void test_jitter(void **state)
{
    static const struct {
        struct jitter jitter;
        double deviation; /* of a gap of 1000 */
    } rows[] = {
        {{JITTER_UNIFORM, 50}, 288.7}, {{JITTER_UNIFORM, 100}, 577.4},
        {{JITTER_NORMAL, 20}, 200},    {{JITTER_LOGNORMAL, 30}, 300},
        {{JITTER_LOGNORMAL, 80}, 800},
    };
    enum { DRAWS = 50000 };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        const struct timing timing = {.itl_us = 1000, .jitter = rows[row].jitter, .seed = 42};
        double sum = 0;
        double squares = 0;

        for (uint64_t i = 1; i <= DRAWS; i++) {
            int64_t gap_us = timing_gap_us(&timing, i, 1);
            assert_true(gap_us >= 0);
            if (rows[row].jitter.shape == JITTER_UNIFORM)
                assert_true(llabs(gap_us - 1000) <= 10 * (int64_t)rows[row].jitter.percent);
            sum += (double)gap_us;
            squares += (double)gap_us * (double)gap_us;
        }
        double mean = sum / DRAWS;
        double deviation = sqrt(squares / DRAWS - mean * mean);
        assert_true(fabs(mean - 1000) < 0.02 * 1000);
        assert_true(fabs(deviation - rows[row].deviation) < 0.06 * rows[row].deviation);
        for (uint64_t i = 1; i <= DRAWS; i += 4999)
            assert_int_equal(timing_gap_us(&timing, i, 1), timing_gap_us(&timing, i, 1000));
    }
}

/* Frozen: a schedule that was measured once can be sent again. */
static void test_golden_jitter(void **state)
{
    static const int64_t uniform[] = {15277, 13913, 14818, 20110, 17393, 13962, 18903, 19677};
    static const int64_t lognormal[] = {26497, 14702, 9064, 25427, 11074, 22743, 17258, 14203};
    struct timing timing = {.itl_us = 20000, .jitter = {JITTER_UNIFORM, 40}, .seed = 12345};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(uniform); i++)
        assert_int_equal(timing_gap_us(&timing, i + 1, 1), uniform[i]);
    timing.jitter = (struct jitter){JITTER_LOGNORMAL, 40};
    for (size_t i = 0; i < COUNT_OF(lognormal); i++)
        assert_int_equal(timing_gap_us(&timing, i + 1, 1), lognormal[i]);
}

static void test_jitter_spellings(void **state)
{
    static const struct {
        const char *text;
        struct jitter jitter;
    } good[] = {
        {"none", {JITTER_NONE, 0}},
        {"uniform:0", {JITTER_UNIFORM, 0}},
        {"uniform:100", {JITTER_UNIFORM, 100}},
        {"normal:1000", {JITTER_NORMAL, 1000}},
        {"lognormal:5", {JITTER_LOGNORMAL, 5}},
    };
    static const char *const bad[] = {
        "",           "none:0",      "uniform",    "uniform:", "uniform:101", "normal:1001",
        "normal:-1",  "normal:1.5",  "normal:10%", "gamma:5",  "Uniform:5",   "uniform:5:5",
        "uniform :5", "lognormal:+5"};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(good); row++) {
        struct jitter jitter = {JITTER_NORMAL, 7};
        char printed[32];

        assert_int_equal(timing_parse_jitter(good[row].text, strlen(good[row].text), &jitter),
                         0);
        assert_int_equal(jitter.shape, good[row].jitter.shape);
        assert_int_equal(jitter.percent, good[row].jitter.percent);
        timing_print_jitter(&jitter, printed);
        assert_string_equal(printed, good[row].text);
    }
    for (size_t row = 0; row < COUNT_OF(bad); row++) {
        struct jitter jitter = {JITTER_NORMAL, 7};

        assert_int_equal(timing_parse_jitter(bad[row], strlen(bad[row]), &jitter), -1);
        assert_int_equal(jitter.percent, 7);
    }
}

static int load(struct timing_trace *trace, const char *content, char error[300])
{
    char path[] = "/tmp/test_timing.XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
    int result = timing_trace_load(trace, path, error);
    unlink(path);
    return result;
}

static void test_trace(void **state)
{
    struct timing_trace trace;
    char error[300];

    (void)state;
    assert_int_equal(load(&trace, "# a comment\n412000\r\n\n18211\n0\n7", error), 0);
    assert_int_equal(trace.count, 4);
    const struct timing timing = {.ttft_us = 1, .itl_us = 1, .trace = &trace};
    static const int64_t gaps[] = {18211, 0, 7, 18211, 0, 7, 18211};
    assert_int_equal(timing_first_us(&timing), 412000);
    for (size_t i = 0; i < COUNT_OF(gaps); i++)
        assert_int_equal(timing_gap_us(&timing, i + 1, 1), gaps[i]);
    timing_trace_free(&trace);
}

static void test_bad_traces(void **state)
{
    static const struct {
        const char *content;
        const char *says;
    } rows[] = {
        {"", "at least one gap"},         {"1000\n", "at least one gap"},
        {"# only\n", "at least one gap"}, {"1000\n1.5\n", "line 2"},
        {"1000\n# x\n-3\n", "line 3"},    {"abc\n5\n", "line 1"},
        {"1000\n2000000001\n", "line 2"}, {"1\n99999999999999999999\n", "line 2"},
        {"1 2\n3\n", "line 1"},
    };
    char error[300];

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct timing_trace trace;

        assert_int_equal(load(&trace, rows[row].content, error), -1);
        assert_non_null(strstr(error, "--timing-trace"));
        assert_non_null(strstr(error, rows[row].says));
        assert_null(trace.figures_us);
    }
    struct timing_trace trace;
    assert_int_equal(timing_trace_load(&trace, "/nowhere/trace", error), -1);
    assert_non_null(strstr(error, "/nowhere/trace"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule),         cmocka_unit_test(test_batch),
        cmocka_unit_test(test_jitter),           cmocka_unit_test(test_golden_jitter),
        cmocka_unit_test(test_jitter_spellings), cmocka_unit_test(test_trace),
        cmocka_unit_test(test_bad_traces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
