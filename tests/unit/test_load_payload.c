/*
 * payload: what is a token, an error, an end; recorded shapes of other servers; and that
 * nothing but JSON is taken for JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/load/payload.h"
#include "gen/tokgen.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct buffer scratch;

static int open_scratch(void **state)
{
    (void)state;
    buffer_init(&scratch, 1 << 20);
    return 0;
}

static int close_scratch(void **state)
{
    (void)state;
    buffer_free(&scratch);
    return 0;
}

/* From a copy without a NUL behind it, for the sanitizer to guard. */
static struct payload read_as(enum payload_format format, const char *name, const char *data)
{
    size_t len = strlen(data);
    char *exact = malloc(len > 0 ? len : 1);
    struct payload payload;

    assert_non_null(exact);
    memcpy(exact, data, len);
    payload_read(&payload, &scratch, format, name, exact, len);
    free(exact);
    return payload;
}

static void assert_text(const struct payload *payload, const char *text)
{
    assert_int_equal(payload->text_len, strlen(text));
    assert_memory_equal(payload->text, text, strlen(text));
}

static void test_tokens(void **state)
{
    static const struct {
        const char *data;
        const char *text;
        uint64_t tokens;
    } rows[] = {
        {"{\"token\":\"a\"}", "a", 1},
        {"{\"token\":\"\"}", "", 1},
        {" { \"token\" : \"a\" } ", "a", 1},
        {"{\"token\":\n\"a\"}", "a", 1}, /* in two data: lines */
        {"{\"token\":\"a b\",\"n\":2}", "a b", 2},
        {"{\"n\":3,\"token\":\"abc\"}", "abc", 3},
        {"{\"token\":\"a\",\"n\":1.5}", "a", 1}, /* no count */
        {"{\"token\":\"a\",\"n\":null}", "a", 1},
        {"{\"tok\\u0065n\":\"a\"}", "a", 1},
        {"{\"token\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "\"\\/\b\f\n\r\t", 1},
        {"{\"token\":\"\\u0041\\u00e9\\u4F60\\u2028\"}", "A\xc3\xa9\xe4\xbd\xa0\xe2\x80\xa8",
         1},
        {"{\"token\":\"\\ud83d\\ude00\"}", "\xf0\x9f\x98\x80", 1},
        {"{\"token\":\"\\uDBFF\\uDFFF\"}", "\xf4\x8f\xbf\xbf", 1},
        {"{\"token\":\"x\xf0\x9f\x98\x80y\"}", "x\xf0\x9f\x98\x80y", 1},
        {"{\"token\":\"a\",\"error\":null}", "a", 1},
        {"{\"a\":{\"token\":\"no\"},\"token\":\"a\",\"b\":[{\"token\":\"no\"}]}", "a", 1},
        {"{\"token\":\"a\",\"x\":[1,-2.5e+3,0,0.1,1E2,true,false,null,\"\",{},[]]}", "a", 1},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct payload payload = read_as(PAYLOAD_AUTO, "", rows[row].data);
        assert_int_equal(payload.kind, PAYLOAD_TOKEN);
        assert_text(&payload, rows[row].text);
        assert_int_equal(payload.tokens, rows[row].tokens);
        assert_true(payload.tells_count);
        assert_false(payload.has_stamps);
    }
}

static void test_stamps(void **state)
{
    struct payload payload = read_as(
        PAYLOAD_AUTO, "",
        "{\"token\":\"a\",\"i\":7,\"t_us\":1795959011021321,\"due_us\":1795959011021277}");

    (void)state;
    assert_true(payload.has_stamps && payload.has_index);
    assert_int_equal(payload.index, 7);
    assert_int_equal(payload.sent_us, INT64_C(1795959011021321));
    assert_int_equal(payload.due_us, INT64_C(1795959011021277));
    payload = read_as(PAYLOAD_AUTO, "", "{\"token\":\"a\",\"t_us\":5}");
    assert_false(payload.has_stamps || payload.has_index);
}

/* As recorded from servers of the OpenAI API, shortened in their ids. */
static void test_openai(void **state)
{
    static const struct {
        const char *data;
        enum payload_kind kind;
        const char *text;
    } rows[] = {
        {"{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1719000000,"
         "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
         "\"content\":"
         "\"\"},\"logprobs\":null,\"finish_reason\":null}]}",
         PAYLOAD_OTHER, ""},
        {"{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1719000000,"
         "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" sailor\"},"
         "\"logprobs\":null,\"finish_reason\":null}]}",
         PAYLOAD_TOKEN, " sailor"},
        {"{\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":"
         "\"stop\"}]}",
         PAYLOAD_OTHER, ""},
        {"{\"choices\":[{\"delta\":{\"content\":null,\"reasoning_content\":\"hm\"}}]}",
         PAYLOAD_TOKEN, "hm"},
        {"{\"choices\":[{\"delta\":{\"reasoning\":\"hm\",\"content\":\"\"}}]}", PAYLOAD_TOKEN,
         "hm"},
        {"{\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"x\"}}]}}]}",
         PAYLOAD_OTHER, ""},
        {"{\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":"
         "\" a\",\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}",
         PAYLOAD_TOKEN, " a"},
        {"{\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}", PAYLOAD_OTHER, ""},
        {"{\"choices\":[{\"index\":0},{\"index\":1,\"text\":\"not ours\"}]}", PAYLOAD_OTHER,
         ""},
        {"{\"choices\":{\"text\":\"a\"}}", PAYLOAD_OTHER, ""},
        {"{\"choices\":[]}", PAYLOAD_OTHER, ""},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct payload payload = read_as(PAYLOAD_AUTO, "", rows[row].data);
        assert_int_equal(payload.kind, rows[row].kind);
        assert_text(&payload, rows[row].text);
        assert_false(payload.tells_count);
        if (rows[row].kind == PAYLOAD_TOKEN)
            assert_int_equal(payload.tokens, 1);
        payload = read_as(PAYLOAD_TOKENS, "", rows[row].data);
        assert_int_equal(payload.kind, PAYLOAD_OTHER);
    }
    struct payload payload = read_as(PAYLOAD_OPENAI, "",
                                     "{\"choices\":[],\"usage\":{\"prompt_tokens\":5,"
                                     "\"completion_tokens\":20,\"total_tokens\":25}}");
    assert_int_equal(payload.kind, PAYLOAD_OTHER);
    assert_true(payload.has_usage);
    assert_int_equal(payload.completion_tokens, 20);
    payload = read_as(PAYLOAD_OPENAI, "", "{\"token\":\"a\"}");
    assert_int_equal(payload.kind, PAYLOAD_OTHER);
}

static void test_ends_and_errors(void **state)
{
    static const struct {
        const char *name, *data;
        enum payload_kind kind;
        const char *text;
    } rows[] = {
        {"", "[DONE]", PAYLOAD_DONE, ""},
        {"", "[DONE] ", PAYLOAD_BAD, ""},
        {"", "[done]", PAYLOAD_BAD, ""},
        {"error", "[DONE]", PAYLOAD_ERROR, ""},
        {"error", "{\"error\":{\"message\":\"no\",\"code\":\"x\"}}", PAYLOAD_ERROR, "no"},
        {"", "{\"error\":{\"type\":\"t\",\"message\":\"no\"}}", PAYLOAD_ERROR, "no"},
        {"", "{\"error\":\"no\"}", PAYLOAD_ERROR, "no"},
        {"", "{\"error\":[{\"message\":\"deep\"}]}", PAYLOAD_ERROR, ""},
        {"", "{\"error\":true,\"token\":\"a\"}", PAYLOAD_ERROR, ""},
        {"error", "not JSON", PAYLOAD_ERROR, ""},
        {"error", "{\"token\":\"a\"}", PAYLOAD_ERROR, ""},
        {"ping", "{}", PAYLOAD_OTHER, ""},
        {"", "{\"token\":5}", PAYLOAD_OTHER, ""},
        {"", "{\"token\":null}", PAYLOAD_OTHER, ""},
        {"", "\"token\"", PAYLOAD_OTHER, ""},
        {"", "1", PAYLOAD_OTHER, ""},
        {"", "[{\"token\":\"a\"}]", PAYLOAD_OTHER, ""},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct payload payload = read_as(PAYLOAD_AUTO, rows[row].name, rows[row].data);
        assert_int_equal(payload.kind, rows[row].kind);
        assert_text(&payload, rows[row].text);
    }
}

static void test_not_json(void **state)
{
    static const char *const rows[] = {
        "",
        " ",
        "{",
        "{\"token\":\"a\"",
        "{\"token\":\"a\"}}",
        "{\"token\":\"a\"} x",
        "{\"token\":\"a\",}",
        "{,\"token\":\"a\"}",
        "{\"token\" \"a\"}",
        "{\"token\":}",
        "{token:\"a\"}",
        "{'token':'a'}",
        "{\"token\":\"a}",
        "{\"token\":\"a\n\"}",
        "{\"token\":\"a\tb\"}",
        "{\"token\":\"\\x\"}",
        "{\"token\":\"\\u12\"}",
        "{\"token\":\"\\u12g4\"}",
        "{\"token\":\"\\ud83d\"}",
        "{\"token\":\"\\ud83dx\"}",
        "{\"token\":\"\\ud83d\\u0041\"}",
        "{\"token\":\"\\ude00\"}",
        "{\"token\":\"a\\",
        "{\"n\":01}",
        "{\"n\":1.}",
        "{\"n\":.5}",
        "{\"n\":+1}",
        "{\"n\":1e}",
        "{\"n\":-}",
        "{\"n\":0x10}",
        "[1,2",
        "[1,]",
        "[,1]",
        "tru",
        "nul",
        "True",
        "NaN",
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++)
        assert_int_equal(read_as(PAYLOAD_AUTO, "", rows[row]).kind, PAYLOAD_BAD);
}

/* What is cut anywhere is not JSON. */
static void test_every_cut(void **state)
{
    static const char whole[] =
        "{\"token\":\"a\\u00e9\\n\",\"n\":2,\"x\":[true,{\"y\":-1.5e3}]}";

    (void)state;
    assert_int_equal(read_as(PAYLOAD_AUTO, "", whole).kind, PAYLOAD_TOKEN);
    for (size_t len = 0; len + 1 < sizeof(whole); len++) {
        char cut[sizeof(whole)];
        memcpy(cut, whole, len);
        cut[len] = '\0';
        assert_int_equal(read_as(PAYLOAD_AUTO, "", cut).kind, PAYLOAD_BAD);
    }
}

static void test_depth(void **state)
{
    char deep[2 * PAYLOAD_DEPTH_MAX + 3];

    (void)state;
    memset(deep, '[', PAYLOAD_DEPTH_MAX);
    memset(deep + PAYLOAD_DEPTH_MAX, ']', PAYLOAD_DEPTH_MAX);
    deep[2 * PAYLOAD_DEPTH_MAX] = '\0';
    assert_int_equal(read_as(PAYLOAD_AUTO, "", deep).kind, PAYLOAD_OTHER);
    memset(deep, '[', PAYLOAD_DEPTH_MAX + 1);
    memset(deep + PAYLOAD_DEPTH_MAX + 1, ']', PAYLOAD_DEPTH_MAX + 1);
    deep[2 * PAYLOAD_DEPTH_MAX + 2] = '\0';
    assert_int_equal(read_as(PAYLOAD_AUTO, "", deep).kind, PAYLOAD_BAD);
}

/* All that the torture vocabulary has, escaped as far as JSON allows. */
static void test_torture(void **state)
{
    struct tokgen tokens = tokgen_init("hello", 5, 0, TOKGEN_TORTURE);

    (void)state;
    for (uint64_t i = 0; i < 2 * TOKGEN_TORTURE_COUNT; i++) {
        char token[TOKGEN_TOKEN_MAX_BYTES];
        char data[8 * TOKGEN_TOKEN_MAX_BYTES + 32] = "{\"token\":\"";
        size_t len = tokgen_token(&tokens, i, token, sizeof(token));
        size_t at = strlen(data);
        for (size_t byte = 0; byte < len; byte++) {
            unsigned char c = (unsigned char)token[byte];
            if (c < 0x20)
                at += (size_t)snprintf(data + at, sizeof(data) - at, "\\u%04x", (unsigned)c);
            else if (c == '"' || c == '\\')
                at += (size_t)snprintf(data + at, sizeof(data) - at, "\\%c", c);
            else
                data[at++] = token[byte];
        }
        memcpy(data + at, "\"}", 3);
        struct payload payload = read_as(PAYLOAD_AUTO, "", data);
        assert_int_equal(payload.kind, PAYLOAD_TOKEN);
        assert_int_equal(payload.text_len, len);
        assert_memory_equal(payload.text, token, len);
    }
}

static void test_format_names(void **state)
{
    enum payload_format format = PAYLOAD_AUTO;

    (void)state;
    assert_int_equal(payload_format_parse("openai", &format), 0);
    assert_int_equal(format, PAYLOAD_OPENAI);
    assert_int_equal(payload_format_parse("token", &format), 0);
    assert_int_equal(format, PAYLOAD_TOKENS);
    assert_int_equal(payload_format_parse("Token", &format), -1);
    assert_int_equal(format, PAYLOAD_TOKENS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),       cmocka_unit_test(test_stamps),
        cmocka_unit_test(test_openai),       cmocka_unit_test(test_ends_and_errors),
        cmocka_unit_test(test_not_json),     cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_depth),        cmocka_unit_test(test_torture),
        cmocka_unit_test(test_format_names),
    };

    return cmocka_run_group_tests(tests, open_scratch, close_scratch);
}
