/*
 * distribution: percentiles against a sorted list of the same values, precision over the whole
 * range, signs, and what is reported of a small sample.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "gen/load/distribution.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static int ascending(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

static void test_empty(void **state)
{
    struct distribution distribution;
    unsigned cursor = 0;
    int64_t value;
    uint64_t count;

    (void)state;
    assert_int_equal(distribution_init(&distribution, DISTRIBUTION_SIGNED), 0);
    distribution_add(&distribution, 5, 0);
    assert_int_equal(distribution.count, 0);
    assert_int_equal(distribution_percentile(&distribution, 50000), 0);
    assert_true(distribution_mean(&distribution) == 0);
    assert_int_equal(distribution_next(&distribution, &cursor, &value, &count), 0);
    distribution_free(&distribution);
}

/* Small values are exact: the nearest rank is the very value. */
static void test_nearest_rank(void **state)
{
    struct distribution distribution;
    static const struct {
        unsigned milli;
        int64_t value;
    } rows[] = {{0, 1},      {1000, 1},   {1001, 2},    {50000, 50},
                {50001, 51}, {99000, 99}, {99900, 100}, {100000, 100}};

    (void)state;
    assert_int_equal(distribution_init(&distribution, DISTRIBUTION_POSITIVE), 0);
    for (int64_t value = 100; value >= 1; value--)
        distribution_add(&distribution, value, 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(distribution_percentile(&distribution, rows[i].milli), rows[i].value);
    assert_true(distribution_mean(&distribution) == 50.5);
    assert_int_equal(distribution.min, 1);
    assert_int_equal(distribution.max, 100);
    distribution_free(&distribution);
}

/* Values of every magnitude: what is told is at most a thousandth above what was sorted. */
static void test_against_sorting(void **state)
{
    enum { VALUES = 20000 };
    static const unsigned milli[] = {1, 10000, 50000, 90000, 99000, 99900, 99990, 100000};
    static int64_t values[VALUES];
    struct distribution distribution;

    (void)state;
    assert_int_equal(distribution_init(&distribution, DISTRIBUTION_SIGNED), 0);
    for (unsigned i = 0; i < VALUES; i++) {
        uint64_t bits = random_at(1, i);
        int64_t magnitude = (int64_t)(random_at(2, i) >> (28 + bits % 36));
        values[i] = bits & 0x10000 ? -magnitude : magnitude;
        distribution_add(&distribution, values[i], 1);
    }
    qsort(values, VALUES, sizeof(values[0]), ascending);
    for (size_t i = 0; i < COUNT_OF(milli); i++) {
        uint64_t rank = ((uint64_t)VALUES * milli[i] + 99999) / 100000;
        int64_t right = values[rank < 1 ? 0 : rank - 1];
        int64_t told = distribution_percentile(&distribution, milli[i]);
        assert_true(told >= right);
        assert_true(told - right <= llabs(right) / 1024 + 1);
    }
    assert_int_equal(distribution.min, values[0]);
    assert_int_equal(distribution.max, values[VALUES - 1]);
    distribution_free(&distribution);
}

static void test_every_bucket_holds_its_values(void **state)
{
    struct distribution distribution;

    (void)state;
    for (int64_t base = 1; base <= DISTRIBUTION_MAX_VALUE / 2; base *= 2) {
        for (int64_t value = base - 1; value <= base + 1; value++) {
            assert_int_equal(distribution_init(&distribution, DISTRIBUTION_POSITIVE), 0);
            distribution_add(&distribution, value, 1);
            distribution_add(&distribution, DISTRIBUTION_MAX_VALUE, 1);
            int64_t told = distribution_percentile(&distribution, 50000);
            assert_true(told >= value && told - value <= value / 1024);
            distribution_free(&distribution);
        }
    }
}

static void test_ends(void **state)
{
    struct distribution distribution;

    (void)state;
    assert_int_equal(distribution_init(&distribution, DISTRIBUTION_POSITIVE), 0);
    distribution_add(&distribution, -7, 1); /* counts as 0 */
    distribution_add(&distribution, INT64_MAX, 2);
    assert_int_equal(distribution.min, 0);
    assert_int_equal(distribution_percentile(&distribution, 1000), 0);
    assert_int_equal(distribution_percentile(&distribution, 99000), INT64_MAX);
    distribution_free(&distribution);

    assert_int_equal(distribution_init(&distribution, DISTRIBUTION_SIGNED), 0);
    distribution_add(&distribution, INT64_MIN, 1);
    distribution_add(&distribution, -3, 1);
    assert_int_equal(distribution_percentile(&distribution, 50000), INT64_MIN);
    assert_int_equal(distribution_percentile(&distribution, 100000), -3);
    distribution_free(&distribution);
}

static void test_many_at_once(void **state)
{
    struct distribution distribution;
    unsigned cursor = 0;
    int64_t value;
    uint64_t count;

    (void)state;
    assert_int_equal(distribution_init(&distribution, DISTRIBUTION_SIGNED), 0);
    distribution_add(&distribution, 20, UINT64_C(5000000000));
    distribution_add(&distribution, -1, 3);
    assert_int_equal(distribution.count, UINT64_C(5000000003));
    assert_int_equal(distribution_percentile(&distribution, 99990), 20);
    assert_int_equal(distribution_next(&distribution, &cursor, &value, &count), 1);
    assert_int_equal(value, -1);
    assert_int_equal(count, 3);
    assert_int_equal(distribution_next(&distribution, &cursor, &value, &count), 1);
    assert_int_equal(value, 20);
    assert_int_equal(count, UINT64_C(5000000000));
    assert_int_equal(distribution_next(&distribution, &cursor, &value, &count), 0);
    distribution_free(&distribution);
}

static void test_needs(void **state)
{
    (void)state;
    assert_int_equal(distribution_needs(50000), 2);
    assert_int_equal(distribution_needs(90000), 10);
    assert_int_equal(distribution_needs(99000), 100);
    assert_int_equal(distribution_needs(99900), 1000);
    assert_int_equal(distribution_needs(99990), 10000);
    assert_int_equal(distribution_needs(100000), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_nearest_rank),
        cmocka_unit_test(test_against_sorting),
        cmocka_unit_test(test_every_bucket_holds_its_values),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_needs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
