/*
 * number: what is a number and what is not, at each border of what fits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct text {
    const char *bytes;
    size_t len;
};

#define TEXT(literal)                                                                          \
    {                                                                                          \
        literal, sizeof(literal) - 1                                                           \
    }

/* A copy without a NUL behind it, for the sanitizer to guard. */
static char *exact_copy(struct text text)
{
    char *copy = malloc(text.len > 0 ? text.len : 1);

    assert_non_null(copy);
    memcpy(copy, text.bytes, text.len);
    return copy;
}

static void test_whole_numbers(void **state)
{
    static const struct {
        struct text text;
        uint64_t min, max;
        enum number_status status;
        uint64_t value;
    } rows[] = {
        {TEXT("20"), 1, 100000, NUMBER_OK, 20},
        {TEXT("0"), 0, 0, NUMBER_OK, 0},
        {TEXT("007"), 0, 9, NUMBER_OK, 7},
        {TEXT("00000000000000000000000000000001"), 0, 9, NUMBER_OK, 1},
        {TEXT("1"), 1, 100000, NUMBER_OK, 1},
        {TEXT("100000"), 1, 100000, NUMBER_OK, 100000},
        {TEXT("18446744073709551615"), 0, UINT64_MAX, NUMBER_OK, UINT64_MAX},
        {TEXT("18446744073709551610"), 0, UINT64_MAX, NUMBER_OK, UINT64_MAX - 5},
        {TEXT("0"), 1, 100000, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("100001"), 1, 100000, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("18446744073709551616"), 0, UINT64_MAX, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("18446744073709551620"), 0, UINT64_MAX, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("28446744073709551615"), 0, UINT64_MAX, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("99999999999999999999"), 0, UINT64_MAX, NUMBER_OUT_OF_RANGE, 0},
        /* 2^64 + 20: a wrap-around would make it 20 */
        {TEXT("18446744073709551636"), 0, UINT64_MAX, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("99999999999999999999x"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT(""), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("+5"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("-1"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("-0"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("1e3"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("20abc"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("0x10"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT(" 20"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("20 "), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("20\n"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("20\0"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("2\0000"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("1.0"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("1,000"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("1_000"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("/"), 0, UINT64_MAX, NUMBER_MALFORMED, 0}, /* the neighbours of the digits */
        {TEXT(":"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("\xd9\xa3"), 0, UINT64_MAX, NUMBER_MALFORMED, 0}, /* an Arabic three */
        {TEXT("nan"), 0, UINT64_MAX, NUMBER_MALFORMED, 0},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        uint64_t value = 4711;
        char *text = exact_copy(rows[row].text);
        enum number_status status =
            number_parse_u64(text, rows[row].text.len, rows[row].min, rows[row].max, &value);
        uint64_t wanted = rows[row].status == NUMBER_OK ? rows[row].value : 4711;

        free(text);
        if (status != rows[row].status || value != wanted)
            fail_msg("row %zu, \"%s\": status %d, value %llu", row, rows[row].text.bytes,
                     (int)status, (unsigned long long)value);
    }
}

static void test_milliseconds(void **state)
{
    static const int64_t hour = INT64_C(3600000000);
    static const struct {
        struct text text;
        int64_t min_us, max_us;
        enum number_status status;
        int64_t value_us;
    } rows[] = {
        {TEXT("25"), 0, hour, NUMBER_OK, 25000},
        {TEXT("0"), 0, hour, NUMBER_OK, 0},
        {TEXT("0.5"), 0, hour, NUMBER_OK, 500},
        {TEXT("0.05"), 0, hour, NUMBER_OK, 50},
        {TEXT("0.005"), 0, hour, NUMBER_OK, 5},
        {TEXT("33.333"), 0, hour, NUMBER_OK, 33333},
        {TEXT("1.010"), 0, hour, NUMBER_OK, 1010},
        {TEXT("0.000"), 0, hour, NUMBER_OK, 0},
        {TEXT("3600000"), 0, hour, NUMBER_OK, hour},
        {TEXT("3600000.000"), 0, hour, NUMBER_OK, hour},
        {TEXT("0.002"), 2, hour, NUMBER_OK, 2},
        {TEXT("0.001"), 2, hour, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("3600000.001"), 0, hour, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("99999999999999999999"), 0, INT64_MAX, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("9223372036854775807"), 0, INT64_MAX, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("9223372036854775.807"), 0, hour, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("9223372036854773.999"), 0, INT64_MAX, NUMBER_OK, INT64_C(9223372036854773999)},
        {TEXT("9223372036854775.999"), 0, INT64_MAX, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("18446744073709551.616"), 0, INT64_MAX, NUMBER_OUT_OF_RANGE, 0},
        {TEXT("99999999999999999999.x"), 0, INT64_MAX, NUMBER_MALFORMED, 0},
        {TEXT("0.0001"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("1.0000"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("5."), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT(".5"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("."), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT(""), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("1.2.3"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("1..2"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("1.-2"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("1.+2"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("1. 2"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("1,5"), 0, hour, NUMBER_MALFORMED, 0}, /* whatever the locale says */
        {TEXT("1e1"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("1.5ms"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("-1"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("-0.5"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("inf"), 0, hour, NUMBER_MALFORMED, 0},
        {TEXT("0x1.8"), 0, hour, NUMBER_MALFORMED, 0},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        int64_t value = 4711;
        char *text = exact_copy(rows[row].text);
        enum number_status status = number_parse_ms(text, rows[row].text.len, rows[row].min_us,
                                                    rows[row].max_us, &value);
        int64_t wanted = rows[row].status == NUMBER_OK ? rows[row].value_us : 4711;

        free(text);
        if (status != rows[row].status || value != wanted)
            fail_msg("row %zu, \"%s\": status %d, value %lld", row, rows[row].text.bytes,
                     (int)status, (long long)value);
    }
}

/* Every whole microsecond below a second, written and read again. */
static void test_every_microsecond_is_exact(void **state)
{
    (void)state;
    for (int64_t us = 0; us < 1000000; us++) {
        char text[16];
        int64_t value = -1;
        int len = snprintf(text, sizeof(text), "%lld.%03lld", (long long)(us / 1000),
                           (long long)(us % 1000));

        if (number_parse_ms(text, (size_t)len, 0, 1000000, &value) != NUMBER_OK || value != us)
            fail_msg("%s became %lld", text, (long long)value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_milliseconds),
        cmocka_unit_test(test_every_microsecond_is_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
