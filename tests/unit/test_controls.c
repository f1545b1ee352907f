/*
 * controls: each one in a query and in a body, taken or refused with a message that says which,
 * what was given and what is allowed; and the same request from either form.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoints/controls.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct config settings = {
    .max_tokens = 128,
    .ttft_us = 200000,
    .itl_us = 25000,
    .max_tokens_limit = 100000,
    .ttft_limit_us = 600000000,
    .itl_limit_us = 60000500,
    .prompt_max_bytes = 65536,
};

static int from_query(struct controls *controls, const char *query, struct problem *problem)
{
    return controls_from_query(controls, &settings, query, problem);
}

static int from_body(struct controls *controls, const char *body, struct problem *problem)
{
    return controls_from_body(controls, &settings, body, strlen(body), problem);
}

static bool are_equal(const struct controls *a, const struct controls *b)
{
    return a->prompt_len == b->prompt_len && strcmp(a->prompt, b->prompt) == 0 &&
           a->max_tokens == b->max_tokens && a->ttft_us == b->ttft_us &&
           a->itl_us == b->itl_us && a->seed == b->seed && a->vocab == b->vocab;
}

#define PROMPT(text) .prompt = text, .prompt_len = sizeof(text) - 1
#define DEFAULTS     .max_tokens = 128, .ttft_us = 200000, .itl_us = 25000

static void test_taken_from_both_forms(void **state)
{
    static const struct {
        const char *query;
        const char *body;
        struct controls controls;
    } rows[] = {
        {"prompt=hello", "{\"prompt\":\"hello\"}", {PROMPT("hello"), DEFAULTS}},
        {"prompt=hello&max_tokens=20",
         "{\"prompt\":\"hello\",\"max_tokens\":20}",
         {PROMPT("hello"), .max_tokens = 20, .ttft_us = 200000, .itl_us = 25000}},
        {"max_tokens=20&prompt=hello",
         "{\"max_tokens\":20,\"prompt\":\"hello\"}",
         {PROMPT("hello"), .max_tokens = 20, .ttft_us = 200000, .itl_us = 25000}},
        {"prompt=a&max_tokens=1",
         "{\"prompt\":\"a\",\"max_tokens\":1}",
         {PROMPT("a"), .max_tokens = 1, .ttft_us = 200000, .itl_us = 25000}},
        {"prompt=a&max_tokens=100000",
         "{\"prompt\":\"a\",\"max_tokens\":100000}",
         {PROMPT("a"), .max_tokens = 100000, .ttft_us = 200000, .itl_us = 25000}},
        {"prompt=a&ttft_ms=0&itl_ms=0",
         "{\"prompt\":\"a\",\"ttft_ms\":0,\"itl_ms\":0}",
         {PROMPT("a"), .max_tokens = 128, .ttft_us = 0, .itl_us = 0}},
        {"prompt=a&ttft_ms=600000&itl_ms=60000.5",
         "{\"prompt\":\"a\",\"ttft_ms\":600000,\"itl_ms\":60000.5}",
         {PROMPT("a"), .max_tokens = 128, .ttft_us = 600000000, .itl_us = 60000500}},
        {"prompt=a&itl_ms=0.5",
         "{\"prompt\":\"a\",\"itl_ms\":0.5}",
         {PROMPT("a"), .max_tokens = 128, .ttft_us = 200000, .itl_us = 500}},
        {"prompt=a&itl_ms=33.333",
         "{\"prompt\":\"a\",\"itl_ms\":33.333}",
         {PROMPT("a"), .max_tokens = 128, .ttft_us = 200000, .itl_us = 33333}},
        {"prompt=a&itl_ms=0.001&ttft_ms=599999.999",
         "{\"prompt\":\"a\",\"itl_ms\":0.001,\"ttft_ms\":599999.999}",
         {PROMPT("a"), .max_tokens = 128, .ttft_us = 599999999, .itl_us = 1}},
        {"prompt=a&seed=0",
         "{\"prompt\":\"a\",\"seed\":0}",
         {PROMPT("a"), DEFAULTS, .seed = 0, .vocab = 0}},
        {"prompt=a&seed=18446744073709551615",
         "{\"prompt\":\"a\",\"seed\":18446744073709551615}",
         {PROMPT("a"), DEFAULTS, .seed = UINT64_MAX, .vocab = 0}},
        {"prompt=a&vocab=words",
         "{\"prompt\":\"a\",\"vocab\":\"words\"}",
         {PROMPT("a"), DEFAULTS, .seed = 0, .vocab = TOKGEN_WORDS}},
        {"prompt=a&vocab=torture",
         "{\"prompt\":\"a\",\"vocab\":\"torture\"}",
         {PROMPT("a"), DEFAULTS, .seed = 0, .vocab = TOKGEN_TORTURE}},
        {"prompt=a&unknown=1&Max_Tokens=7",
         "{\"prompt\":\"a\",\"unknown\":[{}],\"Max_Tokens\":7}",
         {PROMPT("a"), DEFAULTS}}, /* names are exact, and others are ignored */
        {"unknown=1&unknown=2&prompt=a",
         "{\"unknown\":1,\"unknown\":2,\"prompt\":\"a\"}",
         {PROMPT("a"), DEFAULTS}},
        {"prompt=%E4%BD%A0+%22%5C",
         u8"{\"prompt\":\"\\u4f60 \\\"\\\\\"}",
         {PROMPT(u8"\u4f60 \"\\"), DEFAULTS}},
        {"prompt=+", "{\"prompt\":\" \"}", {PROMPT(" "), DEFAULTS}},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct controls query;
        struct controls body;
        struct problem problem;

        if (from_query(&query, rows[row].query, &problem) != 0)
            fail_msg("row %zu, %s: %s", row, rows[row].query, problem.message);
        assert_int_equal(problem.status, 0);
        if (from_body(&body, rows[row].body, &problem) != 0)
            fail_msg("row %zu, %s: %s", row, rows[row].body, problem.message);
        assert_int_equal(problem.status, 0);
        if (!are_equal(&query, &rows[row].controls))
            fail_msg("row %zu, %s: not as it should be", row, rows[row].query);
        if (!are_equal(&body, &rows[row].controls))
            fail_msg("row %zu, %s: not as it should be", row, rows[row].body);
        controls_free(&query);
        controls_free(&query); /* harmless */
        controls_free(&body);
    }
}

struct refusal {
    const char *text;
    const char *code;
    const char *param;
    const char *says[3]; /* what the message must hold, beside the parameter's name */
};

static void check_refusals(int (*parse)(struct controls *, const char *, struct problem *),
                           const struct refusal *rows, size_t count)
{
    for (size_t row = 0; row < count; row++) {
        const struct refusal *wanted = &rows[row];
        struct controls controls;
        struct problem problem = {.status = 0};

        if (parse(&controls, wanted->text, &problem) != -1) {
            controls_free(&controls);
            fail_msg("row %zu, %s: taken", row, wanted->text);
        }
        if (problem.status != 400 || strcmp(problem.code, wanted->code) != 0)
            fail_msg("row %zu, %s: %d %s", row, wanted->text, problem.status, problem.code);
        if (wanted->param == NULL) {
            assert_null(problem.param);
            continue;
        }
        assert_string_equal(problem.param, wanted->param);
        if (strstr(problem.message, wanted->param) == NULL)
            fail_msg("row %zu, %s: %s", row, wanted->text, problem.message);
        for (size_t i = 0; i < COUNT_OF(wanted->says) && wanted->says[i] != NULL; i++) {
            if (strstr(problem.message, wanted->says[i]) == NULL)
                fail_msg("row %zu, %s: no `%s` in: %s", row, wanted->text, wanted->says[i],
                         problem.message);
        }
    }
}

static void test_refused_in_a_query(void **state)
{
    static const struct refusal rows[] = {
        {"", "missing", "prompt", {0}},
        {"max_tokens=20", "missing", "prompt", {0}},
        {"Prompt=a", "missing", "prompt", {0}},
        {"prompt=", "empty", "prompt", {"0 bytes", "1 to 65536", "--prompt-max-bytes"}},
        {"prompt", "empty", "prompt", {0}},
        {"prompt=a&prompt=b", "given_twice", "prompt", {"twice", "once"}},
        {"prompt=a&max_tokens=1&max_tokens=1", "given_twice", "max_tokens", {0}},
        {"prompt=a&seed=1&x=y&seed=2", "given_twice", "seed", {0}},
        {"prompt=a&vocab=words&vocab=words", "given_twice", "vocab", {0}},
        {"prompt=a&ttft_ms=1&ttft_ms=1", "given_twice", "ttft_ms", {0}},
        {"prompt=a&itl_ms=1&itl_ms=1", "given_twice", "itl_ms", {0}},
        {"prompt=a&max_tokens=", "not_a_number", "max_tokens", {"``", "from 1 to 100000"}},
        {"prompt=a&max_tokens=%2B5", "not_a_number", "max_tokens", {"`+5`"}},
        {"prompt=a&max_tokens=+5", "not_a_number", "max_tokens", {"` 5`"}},
        {"prompt=a&max_tokens=1e3", "not_a_number", "max_tokens", {"`1e3`"}},
        {"prompt=a&max_tokens=20abc", "not_a_number", "max_tokens", {"`20abc`"}},
        {"prompt=a&max_tokens=-1", "not_a_number", "max_tokens", {"`-1`"}},
        {"prompt=a&max_tokens=0x10", "not_a_number", "max_tokens", {"`0x10`"}},
        {"prompt=a&max_tokens=1.5", "not_a_number", "max_tokens", {"`1.5`"}},
        {"prompt=a&max_tokens=0", "out_of_range", "max_tokens", {"`0`", "from 1 to 100000"}},
        {"prompt=a&max_tokens=100001", "out_of_range", "max_tokens", {"`100001`", "100000"}},
        {"prompt=a&max_tokens=99999999999999999999", "out_of_range", "max_tokens", {0}},
        {"prompt=a&ttft_ms=abc", "not_a_number", "ttft_ms", {"`abc`", "0 to 600000"}},
        {"prompt=a&ttft_ms=-1", "not_a_number", "ttft_ms", {"three decimals"}},
        {"prompt=a&ttft_ms=0.0001", "not_a_number", "ttft_ms", {"`0.0001`"}},
        {"prompt=a&ttft_ms=600000.001", "out_of_range", "ttft_ms", {"600000"}},
        {"prompt=a&itl_ms=", "not_a_number", "itl_ms", {0}},
        {"prompt=a&itl_ms=1e1", "not_a_number", "itl_ms", {0}},
        {"prompt=a&itl_ms=60000.501", "out_of_range", "itl_ms", {"0 to 60000.500"}},
        {"prompt=a&seed=-1", "not_a_number", "seed", {"0 to 18446744073709551615"}},
        {"prompt=a&seed=18446744073709551616", "out_of_range", "seed", {0}},
        {"prompt=a&vocab=Words", "not_allowed", "vocab", {"`Words`", "words or torture"}},
        {"prompt=a&vocab=", "not_allowed", "vocab", {0}},
        {"prompt=a&vocab=word", "not_allowed", "vocab", {0}},
        {"prompt=a&vocab=wordss", "not_allowed", "vocab", {0}},
        {"prompt=%zz", "bad_escape", NULL, {0}},
        {"prompt=%00", "nul_byte", NULL, {0}},
        {"prompt=%ff", "bad_utf8", NULL, {0}},
    };

    (void)state;
    check_refusals(from_query, rows, COUNT_OF(rows));
}

static void test_refused_in_a_body(void **state)
{
    static const struct refusal rows[] = {
        {"{}", "missing", "prompt", {0}},
        {"{\"max_tokens\":20}", "missing", "prompt", {0}},
        {"{\"Prompt\":\"a\"}", "missing", "prompt", {0}},
        {"{\"prompt\":\"\"}", "empty", "prompt", {"0 bytes", "1 to 65536"}},
        {"{\"prompt\":1}", "wrong_type", "prompt", {"string"}},
        {"{\"prompt\":null}", "wrong_type", "prompt", {"string"}},
        {"{\"prompt\":[\"a\"]}", "wrong_type", "prompt", {"string"}},
        {"{\"prompt\":{\"a\":\"b\"}}", "wrong_type", "prompt", {"string"}},
        {"{\"prompt\":\"a\",\"prompt\":\"b\"}", "given_twice", "prompt", {0}},
        {"{\"prompt\":\"a\",\"seed\":1,\"seed\":1}", "given_twice", "seed", {0}},
        {"{\"prompt\":\"a\",\"vocab\":\"words\",\"vocab\":\"words\"}",
         "given_twice",
         "vocab",
         {0}},
        {"{\"prompt\":\"a\",\"max_tokens\":\"20\"}", "wrong_type", "max_tokens", {"number"}},
        {"{\"prompt\":\"a\",\"max_tokens\":true}", "wrong_type", "max_tokens", {"number"}},
        {"{\"prompt\":\"a\",\"max_tokens\":null}", "wrong_type", "max_tokens", {"number"}},
        {"{\"prompt\":\"a\",\"max_tokens\":[20]}", "wrong_type", "max_tokens", {"number"}},
        {"{\"prompt\":\"a\",\"max_tokens\":1.5}", "not_a_number", "max_tokens", {"`1.5`"}},
        {"{\"prompt\":\"a\",\"max_tokens\":0}",
         "out_of_range",
         "max_tokens",
         {"`0`", "1 to 100000"}},
        {"{\"prompt\":\"a\",\"max_tokens\":-1}", "not_a_number", "max_tokens", {"`-1`"}},
        {"{\"prompt\":\"a\",\"max_tokens\":100001}", "out_of_range", "max_tokens", {"100000"}},
        {"{\"prompt\":\"a\",\"max_tokens\":99999999999999999999}",
         "out_of_range",
         "max_tokens",
         {0}},
        {"{\"prompt\":\"a\",\"max_tokens\":1e300}", "not_a_number", "max_tokens", {0}},
        {"{\"prompt\":\"a\",\"ttft_ms\":\"1\"}", "wrong_type", "ttft_ms", {"number"}},
        {"{\"prompt\":\"a\",\"ttft_ms\":0.0001}",
         "not_a_number",
         "ttft_ms",
         {"three decimals"}},
        {"{\"prompt\":\"a\",\"ttft_ms\":0.0005}", "not_a_number", "ttft_ms", {0}},
        {"{\"prompt\":\"a\",\"ttft_ms\":-0.5}", "not_a_number", "ttft_ms", {"`-0.5`"}},
        {"{\"prompt\":\"a\",\"ttft_ms\":600000.001}", "out_of_range", "ttft_ms", {"600000"}},
        {"{\"prompt\":\"a\",\"itl_ms\":60000.501}", "out_of_range", "itl_ms", {"60000.500"}},
        {"{\"prompt\":\"a\",\"seed\":-1}", "not_a_number", "seed", {0}},
        {"{\"prompt\":\"a\",\"seed\":18446744073709551616}", "out_of_range", "seed", {0}},
        {"{\"prompt\":\"a\",\"seed\":0.5}", "not_a_number", "seed", {0}},
        {"{\"prompt\":\"a\",\"vocab\":1}", "wrong_type", "vocab", {"string"}},
        {"{\"prompt\":\"a\",\"vocab\":\"Words\"}",
         "not_allowed",
         "vocab",
         {"words or torture"}},
        {"{\"prompt\":\"a\",\"vocab\":\"\"}", "not_allowed", "vocab", {0}},
        {"", "empty_body", NULL, {0}},
        {"[]", "not_an_object", NULL, {0}},
        {"{\"prompt\":\"a\\u0000b\"}", "nul_byte", NULL, {0}},
    };

    (void)state;
    check_refusals(from_body, rows, COUNT_OF(rows));
}

/* The larger half of a double's range is no number of tokens either. */
static void test_a_number_beyond_double(void **state)
{
    static const char *const rows[] = {
        "{\"prompt\":\"a\",\"max_tokens\":1e999}",
        "{\"prompt\":\"a\",\"ttft_ms\":1e999}",
        "{\"prompt\":\"a\",\"seed\":-1e999}",
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct controls controls;
        struct problem problem;

        assert_int_equal(from_body(&controls, rows[row], &problem), -1);
        assert_int_equal(problem.status, 400);
    }
}

/* As in a query: what is finer than a microsecond is refused, and never rounded. */
static void test_json_decimals_are_not_rounded(void **state)
{
    static const char *const rows[] = {
        "{\"prompt\":\"a\",\"itl_ms\":1.0000005}",
        "{\"prompt\":\"a\",\"itl_ms\":0.0000009}",
        "{\"prompt\":\"a\",\"ttft_ms\":200.0009999}",
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct controls controls;
        struct problem problem;

        if (from_body(&controls, rows[row], &problem) == 0) {
            controls_free(&controls);
            fail_msg("row %zu, %s: taken", row, rows[row]);
        }
        assert_string_equal(problem.code, "not_a_number");
    }
}

static void test_prompt_length(void **state)
{
    enum { MAX = 65536 };
    char *text = malloc(MAX + 100);

    (void)state;
    assert_non_null(text);
    for (size_t extra = 0; extra < 2; extra++) {
        struct controls controls;
        struct problem problem;
        int wanted = extra == 0 ? 0 : -1;

        memcpy(text, "prompt=", 7);
        memset(text + 7, 'x', MAX + extra);
        text[7 + MAX + extra] = '\0';
        assert_int_equal(from_query(&controls, text, &problem), wanted);
        if (wanted == 0) {
            assert_int_equal(controls.prompt_len, MAX);
            controls_free(&controls);
        } else {
            assert_string_equal(problem.code, "too_long");
            assert_non_null(strstr(problem.message, "65537 bytes"));
        }
        memcpy(text, "{\"prompt\":\"", 11);
        memset(text + 11, 'x', MAX + extra);
        memcpy(text + 11 + MAX + extra, "\"}", 3);
        assert_int_equal(from_body(&controls, text, &problem), wanted);
        if (wanted == 0)
            controls_free(&controls);
        else
            assert_string_equal(problem.code, "too_long");
    }
    free(text);
}

/* The message tells the server's limits, not built-in ones. */
static void test_limits_come_from_the_settings(void **state)
{
    static const struct config tight = {
        .max_tokens = 5,
        .ttft_us = 1,
        .itl_us = 2,
        .max_tokens_limit = 7,
        .ttft_limit_us = 1500,
        .itl_limit_us = 0,
        .prompt_max_bytes = 3,
    };
    static const struct {
        const char *query;
        const char *says;
    } rows[] = {
        {"prompt=a&max_tokens=8", "from 1 to 7"},
        {"prompt=a&ttft_ms=1.501", "from 0 to 1.500"},
        {"prompt=a&itl_ms=0.001", "from 0 to 0"},
        {"prompt=abcd", "1 to 3"},
    };
    struct controls controls;
    struct problem problem;

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        assert_int_equal(controls_from_query(&controls, &tight, rows[row].query, &problem), -1);
        if (strstr(problem.message, rows[row].says) == NULL)
            fail_msg("row %zu: %s", row, problem.message);
    }
    assert_int_equal(controls_from_query(&controls, &tight, "prompt=abc", &problem), 0);
    assert_int_equal(controls.max_tokens, 5);
    assert_int_equal(controls.ttft_us, 1);
    assert_int_equal(controls.itl_us, 2);
    controls_free(&controls);
}

/* What the client sent comes back cut and clean. */
static void test_the_given_is_shown_safely(void **state)
{
    struct controls controls;
    struct problem problem;

    (void)state;
    assert_int_equal(from_query(&controls, "prompt=a&vocab=%0Ax%1B[2J", &problem), -1);
    assert_non_null(strstr(problem.message, "`?x?[2J`"));
    assert_int_equal(from_query(&controls,
                                "prompt=a&max_tokens="
                                "11111111111111111111111111111111111111111111111111x",
                                &problem),
                     -1);
    assert_non_null(strstr(problem.message, "...`"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_from_both_forms),
        cmocka_unit_test(test_refused_in_a_query),
        cmocka_unit_test(test_refused_in_a_body),
        cmocka_unit_test(test_a_number_beyond_double),
        cmocka_unit_test(test_json_decimals_are_not_rounded),
        cmocka_unit_test(test_prompt_length),
        cmocka_unit_test(test_limits_come_from_the_settings),
        cmocka_unit_test(test_the_given_is_shown_safely),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
