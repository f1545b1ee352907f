/*
 * query: what each string decodes to, what is refused, and that the storage holds the worst
 * case.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/query.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Parse a copy without a NUL behind it, for the sanitizer to guard. */
static int parse(struct query *query, const char *text, size_t len, struct problem *problem)
{
    char *exact = malloc(len > 0 ? len : 1);

    assert_non_null(exact);
    memcpy(exact, text, len);
    *problem = (struct problem){.status = 0};
    int result = query_parse(query, exact, len, problem);
    free(exact);
    return result;
}

static void test_pairs(void **state)
{
    static const struct {
        const char *text;
        const char *pairs; /* name=value, each with a `;` behind it */
    } rows[] = {
        {"", ""},
        {"a=b", "a=b;"},
        {"a", "a=;"},
        {"a=", "a=;"},
        {"=b", "=b;"},
        {"=", "=;"},
        {"&", ""},
        {"&&", ""},
        {"&a=b", "a=b;"},
        {"a=b&", "a=b;"},
        {"a=b&&c=d", "a=b;c=d;"},
        {"a&b", "a=;b=;"},
        {"a=1&a=2", "a=1;a=2;"},
        {"a=b=c", "a=b=c;"},
        {"a==", "a==;"},
        {"a+b=c+d", "a b=c d;"},
        {"a=%2B%20%25", "a=+ %;"},
        {"a=%26%3D%3b", "a=&=;;"},
        {"%61%6a=%4A%4a", "aj=JJ;"},
        {"a=b;c=d", "a=b;c=d;"}, /* a semicolon divides nothing: one pair */
        {"prompt=%E4%BD%A0%e5%a5%bd", u8"prompt=\u4f60\u597d;"},
        {u8"prompt=\u4f60", u8"prompt=\u4f60;"}, /* raw bytes are what they are */
        {"a=%F4%8F%BF%BF", u8"a=\U0010ffff;"},
        {"a=%01%7f%0A", "a=\x01\x7f\n;"}, /* only NUL is out */
        {"a=%2500", "a=%00;"},            /* decoded once, not twice */
        {"a=%C3%A9+%c3%a9", u8"a=\u00e9 \u00e9;"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct query query;
        struct problem problem;
        char shown[200] = "";
        size_t at = 0;

        assert_int_equal(parse(&query, rows[row].text, strlen(rows[row].text), &problem), 0);
        assert_int_equal(problem.status, 0);
        for (size_t i = 0; i < query.count; i++) {
            const struct query_pair *pair = &query.pairs[i];
            assert_int_equal(pair->value_len, strlen(pair->value));
            at += (size_t)snprintf(shown + at, sizeof(shown) - at, "%s=%s;", pair->name,
                                   pair->value);
        }
        if (strcmp(shown, rows[row].pairs) != 0)
            fail_msg("row %zu, %s: %s", row, rows[row].text, shown);
        query_free(&query);
        query_free(&query); /* harmless */
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text;
        const char *code;
    } rows[] = {
        {"a=%", "bad_escape"},
        {"a=%4", "bad_escape"},
        {"a=%4&b=1", "bad_escape"}, /* the next pair's bytes are not its digits */
        {"a=%&41=1", "bad_escape"},
        {"%=41", "bad_escape"}, /* nor are the value's */
        {"%4=1", "bad_escape"},
        {"a=%zz", "bad_escape"},
        {"a=%4g", "bad_escape"},
        {"a=%g4", "bad_escape"},
        {"a=%-1", "bad_escape"},
        {"a=% 1", "bad_escape"},
        {"a=%+1", "bad_escape"},
        {"a=%0x41", "bad_escape"},
        {"a=%u0041", "bad_escape"},
        {"a=%%41", "bad_escape"},
        {"a=b%00c", "nul_byte"},
        {"a%00=c", "nul_byte"},
        {"a=%00", "nul_byte"},
        {"a=%FF", "bad_utf8"},
        {"a=\xff", "bad_utf8"},
        {"\xff=a", "bad_utf8"},
        {"a=%C3", "bad_utf8"},
        {"a=%C3&b=%A9", "bad_utf8"}, /* a character does not span pairs */
        {"a=%C0%80", "bad_utf8"},    /* an overlong NUL */
        {"a=%E0%80%AF", "bad_utf8"},
        {"a=%ED%A0%80", "bad_utf8"}, /* a surrogate */
        {"a=%F4%90%80%80", "bad_utf8"},
        {"a=%80", "bad_utf8"},
        {"a=1&unknown=%FF", "bad_utf8"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct query query;
        struct problem problem;

        if (parse(&query, rows[row].text, strlen(rows[row].text), &problem) != -1)
            fail_msg("row %zu, %s: taken", row, rows[row].text);
        if (problem.status != 400 || strcmp(problem.code, rows[row].code) != 0)
            fail_msg("row %zu, %s: %d %s", row, rows[row].text, problem.status, problem.code);
        assert_true(strlen(problem.message) > 0);
    }
}

static void test_a_raw_nul_is_refused(void **state)
{
    struct query query;
    struct problem problem;

    (void)state;
    assert_int_equal(parse(&query, "a=b\0c", 5, &problem), -1);
    assert_string_equal(problem.code, "nul_byte");
}

/* `unit` as often as `count` says, with `&` between them. */
static size_t repeat(char *out, const char *unit, size_t count)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            out[at++] = '&';
        memcpy(out + at, unit, strlen(unit));
        at += strlen(unit);
    }
    return at;
}

/* The most storage a byte of query can ask for: 64 names without `=` are two NULs each. */
static void test_worst_cases_fit(void **state)
{
    static const char *const units[] = {"a", "=", "a=", "=b", "a=b", "%41", "+", "a=bcdef"};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(units); row++) {
        for (size_t count = 1; count <= QUERY_PAIRS_MAX; count++) {
            char text[QUERY_PAIRS_MAX * 8];
            struct query query;
            struct problem problem;

            assert_int_equal(parse(&query, text, repeat(text, units[row], count), &problem), 0);
            assert_int_equal(query.count, count);
            for (size_t i = 0; i < count; i++) {
                assert_string_equal(query.pairs[i].name, query.pairs[0].name);
                assert_string_equal(query.pairs[i].value, query.pairs[0].value);
            }
            query_free(&query);
        }
    }
}

static void test_64_pairs_and_no_more(void **state)
{
    char text[1024];
    struct query query;
    struct problem problem;

    (void)state;
    assert_int_equal(parse(&query, text, repeat(text, "a", QUERY_PAIRS_MAX + 1), &problem), -1);
    assert_int_equal(problem.status, 400);
    assert_string_equal(problem.code, "too_many_parameters");
    assert_non_null(strstr(problem.message, "64"));

    /* Nothing between two `&` is no pair. */
    size_t len = repeat(text, "a", QUERY_PAIRS_MAX);
    memset(text + len, '&', 100);
    assert_int_equal(parse(&query, text, len + 100, &problem), 0);
    assert_int_equal(query.count, QUERY_PAIRS_MAX);
    query_free(&query);
}

static void test_a_long_value(void **state)
{
    enum { LEN = 1 << 20 };
    char *text = malloc(LEN);
    struct query query;
    struct problem problem;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', LEN);
    memcpy(text, "prompt=", 7);
    assert_int_equal(parse(&query, text, LEN, &problem), 0);
    assert_int_equal(query.pairs[0].value_len, LEN - 7);
    query_free(&query);
    free(text);
}

/* Whatever the bytes are: taken or refused, never beyond the storage. */
static void test_garbage(void **state)
{
    static const char alphabet[] = {'a', '=', '&', '%', '4', '1', '+', '\0', '\xc3', '\xa9'};
    uint64_t random = 1;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[40];
        struct query query;
        struct problem problem;
        size_t len = (size_t)round % (sizeof(text) + 1);

        for (size_t i = 0; i < len; i++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            text[i] = alphabet[(random >> 33) % sizeof(alphabet)];
        }
        if (parse(&query, text, len, &problem) != 0) {
            assert_int_equal(problem.status, 400);
            continue;
        }
        for (size_t i = 0; i < query.count; i++)
            assert_int_equal(strlen(query.pairs[i].value), query.pairs[i].value_len);
        query_free(&query);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_raw_nul_is_refused),
        cmocka_unit_test(test_worst_cases_fit),
        cmocka_unit_test(test_64_pairs_and_no_more),
        cmocka_unit_test(test_a_long_value),
        cmocka_unit_test(test_garbage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
