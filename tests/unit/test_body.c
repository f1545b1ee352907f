/*
 * body: what is a JSON object of ours and what is not, above all where cJSON itself is
 * generous.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/body.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct text {
    const char *bytes;
    size_t len;
};

#define TEXT(literal)                                                                          \
    {                                                                                          \
        literal, sizeof(literal) - 1                                                           \
    }

/* Parse a copy without a NUL behind it, for the sanitizer to guard. */
static cJSON *parse(struct text text, struct problem *problem)
{
    char *exact = malloc(text.len > 0 ? text.len : 1);

    assert_non_null(exact);
    memcpy(exact, text.bytes, text.len);
    *problem = (struct problem){.status = 0};
    cJSON *json = body_parse(exact, text.len, problem);
    free(exact);
    return json;
}

struct refusal {
    struct text text;
    const char *code;
};

static void check_refusals(const struct refusal *rows, size_t count)
{
    for (size_t row = 0; row < count; row++) {
        struct problem problem;
        cJSON *json = parse(rows[row].text, &problem);

        if (json != NULL) {
            char *seen = cJSON_PrintUnformatted(json);
            cJSON_Delete(json);
            print_message("it was read as %s\n", seen);
            free(seen);
            fail_msg("row %zu, %s: taken", row, rows[row].text.bytes);
        }
        if (problem.status != 400 || strcmp(problem.code, rows[row].code) != 0)
            fail_msg("row %zu, %s: %d %s", row, rows[row].text.bytes, problem.status,
                     problem.code);
        assert_true(strlen(problem.message) > 0);
    }
}

static void test_prompts(void **state)
{
    static const struct {
        const char *body;
        const char *prompt;
    } rows[] = {
        {"{\"p\":\"hello\"}", "hello"},
        {" \t\r\n{ \"p\" : \"hello\" } \t\r\n", "hello"},
        {"{\"p\":\"\"}", ""},
        {"{\"p\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "\"\\/\b\f\n\r\t"},
        {"{\"p\":\"\\u0041\\u00e9\\u4F60\"}", u8"A\u00e9\u4f60"},
        {"{\"p\":\"\\ud83d\\ude00\"}", u8"\U0001f600"},
        {"{\"p\":\"\\uDBFF\\uDFFF\"}", u8"\U0010ffff"},
        {u8"{\"p\":\"\u4f60\U0001f600\u2028\"}", u8"\u4f60\U0001f600\u2028"},
        {"{\"p\":\"\\u0001\"}", "\x01"},
        /* a backslash before it makes it five letters: no NUL */
        {"{\"p\":\"\\\\u0000\"}", "\\u0000"},
        {"{\"p\":\"\\\\\\\\u0000\"}", "\\\\u0000"},
        {"{\"p\":\"u0000\"}", "u0000"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct problem problem;
        struct text text = {rows[row].body, strlen(rows[row].body)};
        cJSON *json = parse(text, &problem);

        if (json == NULL)
            fail_msg("row %zu, %s: %s", row, rows[row].body, problem.message);
        assert_int_equal(problem.status, 0);
        assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "p")->valuestring,
                            rows[row].prompt);
        cJSON_Delete(json);
    }
}

static void test_nul(void **state)
{
    static const struct refusal rows[] = {
        {TEXT("{\"p\":\"a\\u0000b\"}"), "nul_byte"},
        {TEXT("{\"p\":\"\\u0000\"}"), "nul_byte"},
        {TEXT("{\"p\":\"\\u00000\"}"), "nul_byte"},
        {TEXT("{\"p\":\"\\\\\\u0000\"}"), "nul_byte"}, /* an escaped backslash, then NUL */
        {TEXT("{\"p\":\"\\\\\\\\\\u0000\"}"), "nul_byte"},
        {TEXT("{\"p\":\"\\\"\\u0000\"}"), "nul_byte"},
        {TEXT("{\"\\u0000p\":\"a\"}"), "nul_byte"},
        {TEXT("{\"q\":[{\"x\":\"\\u0000\"}]}"), "nul_byte"},
        {TEXT("{\"p\":\"a\0b\"}"), "nul_byte"},
        {TEXT("{\"p\":\"a\"}\0"), "nul_byte"},
        {TEXT("\0{\"p\":\"a\"}"), "nul_byte"},
    };

    (void)state;
    check_refusals(rows, COUNT_OF(rows));
}

static void test_utf8(void **state)
{
    static const struct refusal rows[] = {
        {TEXT("{\"p\":\"\xff\"}"), "bad_utf8"},
        {TEXT("{\"p\":\"\xc3\"}"), "bad_utf8"},
        {TEXT("{\"p\":\"\xc0\x80\"}"), "bad_utf8"},
        {TEXT("{\"p\":\"\xed\xa0\x80\"}"), "bad_utf8"},
        {TEXT("{\"p\":\"\xf4\x90\x80\x80\"}"), "bad_utf8"},
        {TEXT("{\"\xe9\":1}"), "bad_utf8"},
        {TEXT("{\"p\":\"a\"}\xe4\xbd"), "bad_utf8"},
    };

    (void)state;
    check_refusals(rows, COUNT_OF(rows));
}

static void test_surrogates(void **state)
{
    static const struct refusal rows[] = {
        {TEXT("{\"p\":\"\\ud83d\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\ude00\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\ude00\\ud83d\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\ud83d\\ud83d\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\ud83dx\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\ud83d\\u0041\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\ud83d\\n\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\ud83d\\ude0\"}"), "bad_json"},
    };

    (void)state;
    check_refusals(rows, COUNT_OF(rows));
}

static void test_not_json(void **state)
{
    static const struct refusal rows[] = {
        {TEXT(""), "empty_body"},
        {TEXT("   \r\n\t"), "empty_body"},
        {TEXT("{"), "bad_json"},
        {TEXT("{\"p\""), "bad_json"},
        {TEXT("{\"p\":"), "bad_json"},
        {TEXT("{\"p\":\"a\""), "bad_json"},
        {TEXT("{\"p\":\"a"), "bad_json"},
        {TEXT("{\"p\":\"a\\"), "bad_json"},
        {TEXT("{\"p\":\"a\\\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\u00"), "bad_json"},
        {TEXT("{\"p\":\"\\x41\"}"), "bad_json"},
        {TEXT("{\"p\":\"a\"}}"), "bad_json"},
        {TEXT("{\"p\":\"a\"}{}"), "bad_json"},
        {TEXT("{\"p\":\"a\"} x"), "bad_json"},
        {TEXT("{\"p\":\"a\"},"), "bad_json"},
        {TEXT("{\"p\":\"a\",}"), "bad_json"},
        {TEXT("{,\"p\":\"a\"}"), "bad_json"},
        {TEXT("{p:\"a\"}"), "bad_json"},
        {TEXT("{'p':'a'}"), "bad_json"},
        {TEXT("{\"p\" \"a\"}"), "bad_json"},
        {TEXT("{\"n\":NaN}"), "bad_json"},
        {TEXT("{\"n\":Infinity}"), "bad_json"},
        {TEXT("{\"n\":+1}"), "bad_json"},
        {TEXT("{\"n\":.5}"), "bad_json"},
        {TEXT("{\"n\":-}"), "bad_json"},
        {TEXT("{\"n\":1-2}"), "bad_json"},
        {TEXT("{\"n\":0x10}"), "bad_json"},
        {TEXT("{\"n\":True}"), "bad_json"},
        {TEXT("{\"n\":nul}"), "bad_json"},
        {TEXT("prompt=hello&max_tokens=20"), "bad_json"},
        {TEXT("[]"), "not_an_object"},
        {TEXT("\"hello\""), "not_an_object"},
        {TEXT("20"), "not_an_object"},
        {TEXT("null"), "not_an_object"},
        {TEXT("true"), "not_an_object"},
        {TEXT("[{\"p\":\"a\"}]"), "not_an_object"},
    };

    (void)state;
    check_refusals(rows, COUNT_OF(rows));
}

/* RFC 8259, section 7: four hexadecimal digits. cJSON reads others as U+0000, and cuts there.
 */
static void test_unicode_escapes_need_four_digits(void **state)
{
    static const struct refusal rows[] = {
        {TEXT("{\"p\":\"hello\\uZZZZ world\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\u00g0\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\u 041\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\u+041\"}"), "bad_json"},
        {TEXT("{\"p\":\"a\\u\"}"), "bad_json"},
        {TEXT("{\"p\":\"a\\u004\"}"), "bad_json"},
        {TEXT("{\"p\":\"\\ud83d\\uzzzz\"}"), "bad_json"},
    };

    (void)state;
    check_refusals(rows, COUNT_OF(rows));
}

/* RFC 8259, section 7: they must be escaped. */
static void test_raw_control_characters_in_strings(void **state)
{
    static const struct refusal rows[] = {
        {TEXT("{\"p\":\"a\nb\"}"), "bad_json"},
        {TEXT("{\"p\":\"a\tb\"}"), "bad_json"},
        {TEXT("{\"p\":\"\x01\"}"), "bad_json"},
        {TEXT("{\"\x1f\":1}"), "bad_json"},
    };

    (void)state;
    check_refusals(rows, COUNT_OF(rows));
}

/* RFC 8259, section 6. */
static void test_numbers_that_json_does_not_have(void **state)
{
    static const struct refusal rows[] = {
        {TEXT("{\"n\":020}"), "bad_json"}, {TEXT("{\"n\":-01}"), "bad_json"},
        {TEXT("{\"n\":1.}"), "bad_json"},  {TEXT("{\"n\":1.e2}"), "bad_json"},
        {TEXT("{\"n\":1e}"), "bad_json"},
    };

    (void)state;
    check_refusals(rows, COUNT_OF(rows));
}

/* RFC 8259, section 2: space is these four. */
static void test_other_space(void **state)
{
    static const struct refusal rows[] = {
        {TEXT("{\"p\":\v\"a\"}"), "bad_json"},       {TEXT("{\"p\":\f\"a\"}"), "bad_json"},
        {TEXT("\x01{\"p\":\"a\"}"), "bad_json"},     {TEXT("{\"p\":\"a\"}\v"), "bad_json"},
        {TEXT("{\"p\":\"a\"}\xc2\xa0"), "bad_json"},
    };

    (void)state;
    check_refusals(rows, COUNT_OF(rows));
}

static void test_the_place_is_told(void **state)
{
    struct problem problem;
    struct text text = TEXT("{\"p\":\"a\"}  x");

    (void)state;
    assert_null(parse(text, &problem));
    assert_non_null(strstr(problem.message, "byte 11"));
}

/* Deep enough for anything sane, and refused before the stack ends. */
static void test_depth(void **state)
{
    enum { DEEP = 200000 };
    char *body = malloc(2 * DEEP + 100);
    static const struct {
        int depth;
        int taken;
    } rows[] = {{1, 1}, {100, 1}, {2000, 0}, {DEEP, 0}};

    (void)state;
    assert_non_null(body);
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        size_t depth = (size_t)rows[row].depth;
        struct problem problem;

        memcpy(body, "{\"q\":", 5);
        memset(body + 5, '[', depth);
        memset(body + 5 + depth, ']', depth);
        body[5 + 2 * depth] = '}';
        cJSON *json = body_parse(body, 6 + 2 * depth, &problem);
        assert_int_equal(json != NULL, rows[row].taken);
        if (json == NULL)
            assert_string_equal(problem.code, "bad_json");
        cJSON_Delete(json);
        memset(body + 5, '[', 2 * depth); /* and never closed */
        assert_null(body_parse(body, 5 + 2 * depth, &problem));
    }
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_surrogates),
        cmocka_unit_test(test_not_json),
        cmocka_unit_test(test_unicode_escapes_need_four_digits),
        cmocka_unit_test(test_raw_control_characters_in_strings),
        cmocka_unit_test(test_numbers_that_json_does_not_have),
        cmocka_unit_test(test_other_space),
        cmocka_unit_test(test_the_place_is_told),
        cmocka_unit_test(test_depth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
