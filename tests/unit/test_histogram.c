/*
 * histogram: which bucket a duration is in, and percentiles by nearest rank.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/histogram.h"

static void test_bounds_ascend(void **state)
{
    (void)state;
    for (unsigned i = 1; i < HISTOGRAM_BOUNDS; i++)
        assert_true(histogram_bounds_us[i - 1] < histogram_bounds_us[i]);
}

/* A bound belongs to its own bucket (`le`), one microsecond more to the next. */
static void test_buckets(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
        assert_int_equal(histogram_bucket(histogram_bounds_us[i]), i);
        assert_int_equal(histogram_bucket(histogram_bounds_us[i] + 1), i + 1);
    }
    assert_int_equal(histogram_bucket(-5), 0);
    assert_int_equal(histogram_bucket(0), 0);
    assert_int_equal(histogram_bucket(INT64_MAX), HISTOGRAM_BOUNDS);
    assert_true(histogram_bucket(500) != histogram_bucket(1000));
}

static unsigned plain_bucket(int64_t duration_us)
{
    unsigned bucket = 0;

    while (bucket < HISTOGRAM_BOUNDS && histogram_bounds_us[bucket] < duration_us)
        bucket++;
    return bucket;
}

/* Against a look at all bounds: around each power of two, and wherever else. */
static void test_buckets_are_those_of_a_plain_search(void **state)
{
    (void)state;
    for (int64_t duration_us = 0; duration_us < 3000000000;
         duration_us += 1 + duration_us / 500)
        assert_int_equal(histogram_bucket(duration_us), plain_bucket(duration_us));
    for (unsigned power = 0; power < 63; power++) {
        int64_t duration_us = INT64_C(1) << power;
        for (int64_t near_us = duration_us - 1; near_us <= duration_us + 1; near_us++)
            assert_int_equal(histogram_bucket(near_us), plain_bucket(near_us));
    }
}

static void test_percentiles(void **state)
{
    uint32_t counts[HISTOGRAM_BUCKETS] = {0};

    (void)state;
    assert_int_equal(histogram_percentile_us(counts, 99), -1);
    counts[2] = 1;
    assert_int_equal(histogram_percentile_us(counts, 1), histogram_bounds_us[2]);
    assert_int_equal(histogram_percentile_us(counts, 99), histogram_bounds_us[2]);
    counts[2] = 99;
    counts[10] = 1; /* the 100th of 100: above p99 */
    assert_int_equal(histogram_percentile_us(counts, 99), histogram_bounds_us[2]);
    assert_int_equal(histogram_percentile_us(counts, 100), histogram_bounds_us[10]);
    counts[10] = 2; /* ceil(0.99 * 101) = 100: the first of them */
    assert_int_equal(histogram_percentile_us(counts, 99), histogram_bounds_us[10]);
    memset(counts, 0, sizeof(counts));
    counts[HISTOGRAM_BOUNDS] = 1;
    assert_int_equal(histogram_percentile_us(counts, 50), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_ascend),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_buckets_are_those_of_a_plain_search),
        cmocka_unit_test(test_percentiles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
