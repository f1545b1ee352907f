/*
 * problem: the object as clients read it, and that what they sent is shown without harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>
#include <unistr.h>

#include "wire/problem.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *text_of(const cJSON *error, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(error, name)->valuestring;
}

static void test_object(void **state)
{
    static const struct {
        int status;
        const char *param;
        const char *message;
        const char *type;
    } rows[] = {
        {400, "max_tokens", "max_tokens: `0` was given", "invalid_request_error"},
        {404, NULL, "nothing", "not_found_error"},
        {405, NULL, "nothing", "invalid_request_error"},
        {413, NULL, "nothing", "invalid_request_error"},
        {415, NULL, "nothing", "invalid_request_error"},
        {429, NULL, "nothing", "overloaded_error"},
        {500, NULL, "nothing", "server_error"},
        {503, NULL, "nothing", "overloaded_error"},
        {400, "prompt", "quote \" backslash \\ newline \n percent %s", "invalid_request_error"},
        {400, "a\"b", u8"\u4f60\u2028", "invalid_request_error"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct problem problem;
        struct buffer out;

        assert_int_equal(problem_set(&problem, rows[row].status, "some_code", rows[row].param,
                                     "%s", rows[row].message),
                         -1);
        assert_int_equal(problem.status, rows[row].status);
        buffer_init(&out, 2000);
        assert_int_equal(problem_append_json(&problem, &out), 0);
        assert_null(memchr(out.data, '\n', out.len));
        cJSON *json = cJSON_ParseWithLength(out.data, out.len);
        const cJSON *error = cJSON_GetObjectItemCaseSensitive(json, "error");
        assert_int_equal(cJSON_GetArraySize(json), 1);
        assert_int_equal(cJSON_GetArraySize(error), 4);
        assert_string_equal(text_of(error, "message"), rows[row].message);
        assert_string_equal(text_of(error, "type"), rows[row].type);
        assert_string_equal(text_of(error, "code"), "some_code");
        if (rows[row].param != NULL)
            assert_string_equal(text_of(error, "param"), rows[row].param);
        else
            assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(error, "param")));
        cJSON_Delete(json);
        buffer_free(&out);
    }
}

static void test_a_full_buffer_is_told(void **state)
{
    struct problem problem;
    struct buffer out;

    (void)state;
    problem_set(&problem, 400, "code", "param", "message");
    buffer_init(&out, 4096);
    assert_int_equal(problem_append_json(&problem, &out), 0);
    size_t whole = out.len;
    buffer_free(&out);
    for (size_t ceiling = 0; ceiling < whole; ceiling++) {
        buffer_init(&out, ceiling);
        assert_int_equal(problem_append_json(&problem, &out), -1);
        assert_true(out.failed);
        buffer_free(&out);
    }
}

static void test_a_long_message_is_cut(void **state)
{
    struct problem problem;
    char text[2000];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    problem_set(&problem, 400, "code", NULL, "%s", text);
    assert_int_equal(strlen(problem.message), sizeof(problem.message) - 1);
}

#define TEN       "0123456789"
#define FORTY     TEN TEN TEN TEN
#define THIRTY_9  TEN TEN TEN "012345678"
#define THIRTY_8  TEN TEN TEN "01234567"
#define TWO_BYTES "\xc3\xa9"
#define EMOJI     "\xf0\x9f\x98\x80"

static void test_shown(void **state)
{
    static const struct {
        const char *text;
        const char *shown;
    } rows[] = {
        {"", ""},
        {"20abc", "20abc"},
        {"a\nb\tc\x7f\x1b[0m", "a?b?c??[0m"},
        {u8"\u4f60\u597d", u8"\u4f60\u597d"},
        {"\xff\xfe", "??"},
        {"a\xe4\xbd", "a??"}, /* cut by the sender */
        {"\xc0\x80", "??"},
        {"\xed\xa0\x80", "???"},
        {FORTY, FORTY},
        {FORTY "x", FORTY "..."},
        {FORTY FORTY, FORTY "..."},
        {THIRTY_9 TWO_BYTES, THIRTY_9 "..."},
        {THIRTY_8 TWO_BYTES, THIRTY_8 TWO_BYTES},
        {THIRTY_8 TWO_BYTES "x", THIRTY_8 TWO_BYTES "..."},
        {THIRTY_9 EMOJI, THIRTY_9 "..."},
        {THIRTY_8 EMOJI, THIRTY_8 "..."},
        {TEN TEN TEN "0123456" EMOJI, TEN TEN TEN "0123456..."},
        {TEN TEN TEN "012345" EMOJI, TEN TEN TEN "012345" EMOJI},
        {THIRTY_9 "\xff\xff", THIRTY_9 "?..."},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        size_t len = strlen(rows[row].text);
        char *exact = malloc(len > 0 ? len : 1);
        char *shown = malloc(PROBLEM_SHOWN_MAX_BYTES + 4);

        assert_non_null(exact);
        assert_non_null(shown);
        memcpy(exact, rows[row].text, len);
        assert_ptr_equal(problem_show(shown, exact, len), shown);
        if (strcmp(shown, rows[row].shown) != 0)
            fail_msg("row %zu: %s", row, shown);
        free(exact);
        free(shown);
    }
}

/* A NUL inside is not the end of it. */
static void test_nul_is_shown(void **state)
{
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];

    (void)state;
    assert_string_equal(problem_show(shown, "a\0b", 3), "a?b");
}

/* Any bytes at all become short, valid UTF-8 without control characters. */
static void test_garbage(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int round = 0; round < 50000; round++) {
        char text[64];
        char shown[PROBLEM_SHOWN_MAX_BYTES + 4];
        size_t len = (size_t)round % (sizeof(text) + 1);

        for (size_t i = 0; i < len; i++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            text[i] = (char)(random >> 40 | (round % 3 == 0 ? 0x80 : 0));
        }
        problem_show(shown, text, len);
        assert_true(strlen(shown) < sizeof(shown));
        assert_null(u8_check((const uint8_t *)shown, strlen(shown)));
        for (const char *at = shown; *at != '\0'; at++)
            assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object),
        cmocka_unit_test(test_a_full_buffer_is_told),
        cmocka_unit_test(test_a_long_message_is_cut),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_nul_is_shown),
        cmocka_unit_test(test_garbage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
