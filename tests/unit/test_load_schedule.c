/*
 * schedule: when requests start in both loops, that arrivals are what they are called, and what
 * is drawn for a request.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gen/load/schedule.h"

enum { BEGAN = 1000000 };

static void test_closed_loop(void **state)
{
    struct options options = {.streams = 4, .requests = 6, .ramp_us = 1000};
    struct schedule schedule;

    (void)state;
    schedule_start(&schedule, &options, BEGAN);
    for (uint64_t i = 0; i < 4; i++) {
        assert_false(schedule_is_over(&schedule, BEGAN));
        assert_int_equal(schedule_due_us(&schedule, i), BEGAN + 250 * (int64_t)i);
        assert_int_equal(schedule_take(&schedule), i);
    }
    assert_true(schedule_due_us(&schedule, 4) == CLOCK_NEVER); /* until one ends */
    assert_true(schedule_due_us(&schedule, 3) <= BEGAN + 1000);
    assert_int_equal(schedule_take(&schedule), 4);
    assert_int_equal(schedule_take(&schedule), 5);
    assert_true(schedule_is_over(&schedule, BEGAN));
    assert_true(schedule_due_us(&schedule, 0) == CLOCK_NEVER);
}

static void test_duration(void **state)
{
    struct options options = {.streams = 2, .duration_us = 5000};
    struct schedule schedule;

    (void)state;
    schedule_start(&schedule, &options, BEGAN);
    for (int i = 0; i < 1000; i++)
        schedule_take(&schedule);
    assert_false(schedule_is_over(&schedule, BEGAN + 4999));
    assert_true(schedule_is_over(&schedule, BEGAN + 5000));
}

static void test_constant_rate(void **state)
{
    struct options options = {.streams = 10, .duration_us = 1000000, .rate_milli = 3000};
    struct schedule schedule;

    (void)state;
    schedule_start(&schedule, &options, BEGAN);
    for (uint64_t i = 0; i < 3; i++) {
        assert_false(schedule_is_over(&schedule, BEGAN + 2000000));
        int64_t off = schedule_due_us(&schedule, 0) - (BEGAN + (int64_t)i * 1000000 / 3);
        assert_true(off >= -1 && off <= 1);
        assert_int_equal(schedule_take(&schedule), i);
    }
    /* The three that were due before the end are owed, however late; a fourth is not. */
    assert_true(schedule_is_over(&schedule, BEGAN + 1));
    assert_true(schedule_due_us(&schedule, 10) == CLOCK_NEVER);
}

/* No drift: the millionth is where it should be. */
static void test_no_drift(void **state)
{
    struct options options = {.streams = 1, .requests = 2000000, .rate_milli = 7000000};
    struct schedule schedule;

    (void)state;
    schedule_start(&schedule, &options, 0);
    for (int i = 0; i < 1000000; i++)
        schedule_take(&schedule);
    int64_t off = schedule_due_us(&schedule, 0) - INT64_C(142857143);
    assert_true(off >= -100 && off <= 100);
}

/* Exponential gaps: their mean and their deviation are 1 / rate, and 1 - 1/e of them are below
 * it. */
static void test_poisson(void **state)
{
    enum { ARRIVALS = 100000 };
    struct options options = {.streams = 1,
                              .requests = ARRIVALS + 1,
                              .rate_milli = 1000000,
                              .arrivals = ARRIVALS_POISSON};
    struct schedule schedule;
    int64_t before = 0;
    double sum = 0;
    double squares = 0;
    unsigned below = 0;

    (void)state;
    schedule_start(&schedule, &options, 0);
    for (int i = 0; i < ARRIVALS; i++) {
        int64_t due_us = schedule_due_us(&schedule, 0);
        double gap = (double)(due_us - before);
        assert_true(due_us >= before);
        sum += gap;
        squares += gap * gap;
        below += gap < 1000;
        before = due_us;
        schedule_take(&schedule);
    }
    double mean = sum / ARRIVALS;
    double deviation = sqrt(squares / ARRIVALS - mean * mean);
    assert_true(fabs(mean - 1000) < 20);
    assert_true(fabs(deviation - 1000) < 30);
    assert_true(fabs((double)below / ARRIVALS - (1 - exp(-1))) < 0.01);
}

static void test_same_seed_same_fate(void **state)
{
    struct options options = {.abort_milli = 30000, .slow_milli = 5000};
    struct options other = options;
    unsigned differ = 0;

    (void)state;
    other.seed = 1;
    for (uint64_t i = 0; i < 1000; i++) {
        struct fate fate = schedule_fate(&options, i, 100);
        struct fate again = schedule_fate(&options, i, 100);
        struct fate another = schedule_fate(&other, i, 100);
        assert_int_equal(fate.abort_after, again.abort_after);
        assert_int_equal(fate.is_slow, again.is_slow);
        differ += fate.abort_after != another.abort_after;
    }
    assert_true(differ > 100);
}

static void test_shares(void **state)
{
    enum { REQUESTS = 100000 };
    struct options options = {.abort_milli = 30000, .slow_milli = 5000};
    unsigned aborts = 0, slow = 0, both = 0;
    unsigned seen[100] = {0};

    (void)state;
    for (uint64_t i = 0; i < REQUESTS; i++) {
        struct fate fate = schedule_fate(&options, i, 100);
        assert_true(fate.abort_after < 100); /* before the last token */
        seen[fate.abort_after]++;
        aborts += fate.abort_after > 0;
        slow += fate.is_slow;
        both += fate.abort_after > 0 && fate.is_slow;
    }
    assert_true(fabs((double)aborts / REQUESTS - 0.3) < 0.01);
    assert_true(fabs((double)slow / REQUESTS - 0.05) < 0.005);
    assert_true(fabs((double)both / REQUESTS - 0.015) < 0.003); /* drawn apart */
    for (int token = 1; token < 100; token++)
        assert_true(seen[token] > 200 && seen[token] < 420); /* 303 are expected */
}

static void test_all_and_none(void **state)
{
    struct options none = {.streams = 1};
    struct options all = {
        .abort_milli = 100000, .slow_milli = 100000, .abort_min = 5, .abort_max = 7};
    unsigned seen[8] = {0};

    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        struct fate fate = schedule_fate(&none, i, 100);
        assert_true(fate.abort_after == 0 && !fate.is_slow);
        fate = schedule_fate(&all, i, 100);
        assert_true(fate.abort_after >= 5 && fate.abort_after <= 7 && fate.is_slow);
        seen[fate.abort_after]++;
    }
    assert_true(seen[5] > 0 && seen[6] > 0 && seen[7] > 0);
    all.abort_min = all.abort_max = 0;
    assert_int_equal(schedule_fate(&all, 1, 1).abort_after, 1);
    assert_true(schedule_fate(&all, 1, 0).abort_after > 0); /* a length that is not known */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_loop),   cmocka_unit_test(test_duration),
        cmocka_unit_test(test_constant_rate), cmocka_unit_test(test_no_drift),
        cmocka_unit_test(test_poisson),       cmocka_unit_test(test_same_seed_same_fate),
        cmocka_unit_test(test_shares),        cmocka_unit_test(test_all_and_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
