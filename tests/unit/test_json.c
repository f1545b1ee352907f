/*
 * json: every code point comes back from a parser as it went in, and none of those at which
 * clients split lines is ever written raw.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>
#include <unistr.h>

#include "wire/json.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void test_escapes(void **state)
{
    static const struct {
        const char *text;
        const char *json;
    } rows[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"\"", "\"\\\"\""},
        {"\\", "\"\\\\\""},
        {"\\n", "\"\\\\n\""},
        {"/", "\"/\""},
        {"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
        {"\x01\x02\x0b\x0e\x1f", "\"\\u0001\\u0002\\u000b\\u000e\\u001f\""},
        {"\x7f", "\"\\u007f\""},
        {" ~", "\" ~\""},
        {"\xc2\x85", "\"\\u0085\""},
        {u8"\u2028\u2029", "\"\\u2028\\u2029\""},
        {"\xc2\x84\xc2\x86", "\"\xc2\x84\xc2\x86\""},
        {u8"\u2027\u202a\u20a8", u8"\"\u2027\u202a\u20a8\""},
        {u8"\u00e9\u4f60\U0001f600", u8"\"\u00e9\u4f60\U0001f600\""},
        {"a\"b\"c", "\"a\\\"b\\\"c\""},
        {"\n\n\ndata: x\n\n", "\"\\n\\n\\ndata: x\\n\\n\""},
        {u8"\u2028x\u2028", "\"\\u2028x\\u2028\""},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct buffer out;
        size_t wanted = strlen(rows[row].json);

        buffer_init(&out, 1000);
        assert_int_equal(json_append_string(&out, rows[row].text, strlen(rows[row].text)), 0);
        if (out.len != wanted || memcmp(out.data, rows[row].json, wanted) != 0)
            fail_msg("row %zu: %.*s", row, (int)out.len, out.data);
        buffer_reset(&out);
        assert_int_equal(json_append_escaped(&out, rows[row].text, strlen(rows[row].text)), 0);
        assert_int_equal(out.len, wanted - 2);
        if (wanted > 2)
            assert_memory_equal(out.data, rows[row].json + 1, wanted - 2);
        buffer_free(&out);
    }
}

static void test_nul_is_escaped(void **state)
{
    struct buffer out;

    (void)state;
    buffer_init(&out, 100);
    assert_int_equal(json_append_string(&out, "a\0b", 3), 0);
    assert_int_equal(out.len, 10);
    assert_memory_equal(out.data, "\"a\\u0000b\"", 10);
    buffer_free(&out);
}

static bool has_line_break(const char *text, size_t len)
{
    return memchr(text, '\n', len) != NULL || memchr(text, '\r', len) != NULL ||
           memmem(text, len, "\xc2\x85", 2) != NULL ||
           memmem(text, len, u8"\u2028", 3) != NULL || memmem(text, len, u8"\u2029", 3) != NULL;
}

static void check_round_trip(const char *text, size_t len, unsigned long what)
{
    struct buffer out;

    buffer_init(&out, 1000);
    assert_int_equal(json_append_string(&out, text, len), 0);
    assert_false(has_line_break(out.data, out.len));
    for (size_t i = 0; i < out.len; i++)
        assert_false((unsigned char)out.data[i] < 0x20 || out.data[i] == 0x7f);
    assert_null(u8_check((const uint8_t *)out.data, out.len));
    cJSON *parsed = cJSON_ParseWithLength(out.data, out.len);
    if (!cJSON_IsString(parsed) || strlen(parsed->valuestring) != len ||
        memcmp(parsed->valuestring, text, len) != 0)
        fail_msg("U+%04lX became %.*s", what, (int)out.len, out.data);
    cJSON_Delete(parsed);
    buffer_free(&out);
}

/* Alone, in the middle, and next to itself. */
static void test_every_code_point_comes_back(void **state)
{
    (void)state;
    for (ucs4_t code_point = 1; code_point <= 0x10ffff; code_point++) {
        uint8_t encoded[6];
        char text[64];
        int width = u8_uctomb(encoded, code_point, sizeof(encoded));

        if (width < 0) {
            assert_in_range(code_point, 0xd800, 0xdfff);
            continue;
        }
        int len =
            snprintf(text, sizeof(text), "%.*sa%.*s%.*sb%.*s", width, (char *)encoded, width,
                     (char *)encoded, width, (char *)encoded, width, (char *)encoded);
        assert_int_equal(len, 4 * width + 2);
        check_round_trip(text, (size_t)len, code_point);
        check_round_trip((char *)encoded, (size_t)width, code_point);
    }
}

/* Text that ends inside a character must not be read beyond, whatever it becomes. */
static void test_nothing_is_read_beyond_the_end(void **state)
{
    static const char *const rows[] = {"\xc2", "\xe2", "\xe2\x80", "ab\xe2\x80", "\xf0\x9f"};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        size_t len = strlen(rows[row]);
        char *exact = malloc(len);
        struct buffer out;

        assert_non_null(exact);
        memcpy(exact, rows[row], len);
        buffer_init(&out, 100);
        assert_int_equal(json_append_string(&out, exact, len), 0);
        assert_int_equal(out.len, len + 2);
        assert_memory_equal(out.data + 1, exact, len);
        buffer_free(&out);
        free(exact);
    }
}

/* At every ceiling below its length, the string fails as a whole. */
static void test_no_half_string(void **state)
{
    static const char text[] = u8"a\"\u2028\nz";
    static const size_t whole = sizeof("\"a\\\"\\u2028\\nz\"") - 1;

    (void)state;
    for (size_t ceiling = 0; ceiling <= whole; ceiling++) {
        struct buffer out;

        buffer_init(&out, ceiling);
        int result = json_append_string(&out, text, sizeof(text) - 1);
        assert_int_equal(result, ceiling == whole ? 0 : -1);
        assert_int_equal(out.failed, ceiling != whole);
        assert_int_equal(out.len, ceiling == whole ? whole : 0);
        buffer_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_nul_is_escaped),
        cmocka_unit_test(test_every_code_point_comes_back),
        cmocka_unit_test(test_nothing_is_read_beyond_the_end),
        cmocka_unit_test(test_no_half_string),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
