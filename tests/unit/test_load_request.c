/*
 * request: what is written for each placeholder, where; and what is read in it again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/load/request.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct options options_of(const char *url)
{
    return (struct options){.url = url, .prompts = 1};
}

static void make(const struct options *options, struct request *request, uint64_t number)
{
    struct request_maker maker;

    request_maker_init(&maker, options, 0xabc);
    request_init(request);
    assert_int_equal(request_make(&maker, request, number), 0);
}

static void test_url(void **state)
{
    static const struct {
        const char *url, *prompt;
        uint64_t prompts, tokens;
        const char *controls[3];
        const char *made;
    } rows[] = {
        {"http://h/s", NULL, 1, 0, {NULL}, "http://h/s"},
        {"http://h/s#part", NULL, 1, 0, {NULL}, "http://h/s"},
        {"http://h/s",
         "a b&c=d+e%/\xc3\xa9",
         1,
         5,
         {NULL},
         "http://h/s?prompt=a%20b%26c%3Dd%2Be%25%2F%C3%A9&max_tokens=5"},
        {"http://h/s?x=1", "p", 1, 5, {NULL}, "http://h/s?x=1&prompt=p&max_tokens=5"},
        {"http://h/s?", "p", 1, 0, {NULL}, "http://h/s?prompt=p"},
        {"http://h/s?x=1&", "p", 1, 0, {NULL}, "http://h/s?x=1&prompt=p"},
        {"http://h/s",
         "p",
         1,
         0,
         {"itl_ms=0.5", "v=a b", "e="},
         "http://h/s?prompt=p&itl_ms=0.5&v=a%20b&e="},
        {"http://h/s", "p", 3, 0, {NULL}, "http://h/s?prompt=p%201"},
        {"http://h/s", "p{i}", 1, 0, {"seed={i}"}, "http://h/s?prompt=p7&seed=7"},
        {"http://h/{i}/{id}/{x}{", NULL, 1, 0, {NULL}, "http://h/7/load-00000abc-7/{x}{"},
        {"http://h/s?q={prompt}&n={tokens}",
         "a&b",
         1,
         9,
         {NULL},
         "http://h/s?q=a%26b&n=9&prompt=a%26b&max_tokens=9"},
        {"http://h/s?q={prompt}", NULL, 1, 0, {NULL}, "http://h/s?q={prompt}"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct options options = options_of(rows[row].url);
        struct request request;
        options.prompt = rows[row].prompt;
        options.prompts = rows[row].prompts;
        options.tokens = rows[row].tokens;
        while (options.control_count < 3 && rows[row].controls[options.control_count] != NULL) {
            options.controls[options.control_count] = rows[row].controls[options.control_count];
            options.control_count++;
        }
        make(&options, &request, 7);
        assert_string_equal(request.url.data, rows[row].made);
        request_free(&request);
    }
}

/* The lines, each with a semicolon behind it. */
static void assert_headers(const struct request *request, const char *lines)
{
    char shown[512];
    size_t len = request->headers.len;

    assert_true(len < sizeof(shown));
    for (size_t i = 0; i < len; i++)
        shown[i] = request->headers.data[i] == '\0' ? ';' : request->headers.data[i];
    shown[len] = '\0';
    assert_string_equal(shown, lines);
}

static void test_headers(void **state)
{
    static char x[] = "X: {i} {id} {prompt}";
    static char id[] = "x-request-id: mine-{i}";
    static char type[] = "CONTENT-TYPE: text/plain";
    static char accept[] = "Accept: */*";
    static char like[] = "X-Request-Id-Too: 1";
    static char body[] = "b";
    struct options options = options_of("http://h/");
    struct request request;

    (void)state;
    make(&options, &request, 3);
    assert_headers(&request, "X-Request-Id: load-00000abc-3;Accept: text/event-stream;");
    request_free(&request);
    options.headers[options.header_count++] = x;
    options.headers[options.header_count++] = like;
    options.body = body;
    options.body_len = 1;
    make(&options, &request, 3);
    assert_headers(&request, "X: 3 load-00000abc-3 {prompt};X-Request-Id-Too: 1;"
                             "X-Request-Id: load-00000abc-3;Accept: text/event-stream;"
                             "Content-Type: application/json;");
    request_free(&request);
    options.headers[0] = id;
    options.headers[1] = type;
    options.headers[options.header_count++] = accept;
    make(&options, &request, 4);
    assert_headers(&request, "x-request-id: mine-4;CONTENT-TYPE: text/plain;Accept: */*;");
    request_free(&request);
}

static void test_body(void **state)
{
    static char body[] =
        "{\"prompt\":\"{prompt}\",\"n\":{tokens},\"i\":{i},\"x\":{\"y\":1}}\0{i}";
    static const char made[] =
        "{\"prompt\":\"a\\\"b\\\\c\\u000a 2\",\"n\":9,\"i\":2,\"x\":{\"y\":1}}\0002";
    struct options options = options_of("http://h/?a=1");
    struct request request;

    (void)state;
    options.body = body;
    options.body_len = sizeof(body) - 1;
    options.prompt = "a\"b\\c\n";
    options.prompts = 5;
    options.tokens = 9;
    make(&options, &request, 2);
    assert_int_equal(request.body.len, sizeof(made) - 1);
    assert_memory_equal(request.body.data, made, sizeof(made) - 1);
    assert_string_equal(request.url.data, "http://h/?a=1"); /* they are not in the query too */
    request_free(&request);
}

/* The same request again and again in the same memory. */
static void test_made_anew(void **state)
{
    struct options options = options_of("http://h/s");
    struct request_maker maker;
    struct request request;

    (void)state;
    options.prompt = "p{i}";
    request_maker_init(&maker, &options, 1);
    request_init(&request);
    for (uint64_t i = 0; i < 12; i++) {
        char url[64];
        assert_int_equal(request_make(&maker, &request, i), 0);
        snprintf(url, sizeof(url), "http://h/s?prompt=p%u", (unsigned)i);
        assert_string_equal(request.url.data, url);
        struct tokgen right = tokgen_init(url + 18, strlen(url) - 18, 0, TOKGEN_WORDS);
        assert_true(request.asked.tokens.seed == right.seed);
    }
    request_free(&request);
}

static void test_asked_in_the_query(void **state)
{
    struct options options = options_of("http://h/s?max_tokens=20&seed=18446744073709551615&"
                                        "prompt=a+b%21&vocab=torture&chunk=4&itl_ms=0.5&"
                                        "ttft_ms=200&jitter=none&x");
    struct request request;

    (void)state;
    make(&options, &request, 0);
    struct tokgen right = tokgen_init("a b!", 4, UINT64_MAX, TOKGEN_TORTURE);
    assert_true(request.asked.has_prompt);
    assert_true(request.asked.tokens.seed == right.seed);
    assert_int_equal(request.asked.tokens.vocab, TOKGEN_TORTURE);
    assert_int_equal(request.asked.max_tokens, 20);
    assert_int_equal(request.asked.chunk, 4);
    assert_int_equal(request.asked.itl_us, 500);
    assert_int_equal(request.asked.ttft_us, 200000);
    assert_false(request.asked.has_jitter);
    request_free(&request);

    options = options_of("http://h/s?jitter=normal:5&max_tokens=x&chunk=0");
    make(&options, &request, 0);
    assert_false(request.asked.has_prompt);
    assert_int_equal(request.asked.max_tokens, 0);
    assert_int_equal(request.asked.chunk, 1);
    assert_int_equal(request.asked.itl_us, -1);
    assert_int_equal(request.asked.ttft_us, -1);
    assert_true(request.asked.has_jitter);
    request_free(&request);
}

static void test_asked_in_the_body(void **state)
{
    static char body[] =
        "{\"prompt\":\"{prompt}\",\"max_tokens\":{tokens},\"seed\":9007199254740992,"
        "\"itl_ms\":0.5,\"stream\":true}";
    static char chat[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],"
                         "\"max_completion_tokens\":7}";
    static char inexact[] = "{\"prompt\":\"p\",\"max_tokens\":7,\"seed\":18446744073709551615}";
    struct options options = options_of("http://h/s?vocab=torture");
    struct request request;

    (void)state;
    options.prompt = "a \"b\"";
    options.tokens = 30;
    options.body = body;
    options.body_len = strlen(body);
    make(&options, &request, 0);
    struct tokgen right = tokgen_init("a \"b\"", 5, UINT64_C(9007199254740992), TOKGEN_TORTURE);
    assert_true(request.asked.has_prompt);
    assert_true(request.asked.tokens.seed == right.seed);
    assert_int_equal(request.asked.tokens.vocab, TOKGEN_TORTURE);
    assert_int_equal(request.asked.max_tokens, 30);
    assert_int_equal(request.asked.itl_us, 500);
    request_free(&request);

    options = options_of("http://h/");
    options.body = chat;
    options.body_len = strlen(chat);
    make(&options, &request, 0);
    assert_false(
        request.asked.has_prompt); /* how a chat becomes a prompt is the server's matter */
    assert_int_equal(request.asked.max_tokens, 7);
    request_free(&request);
    options.prompt = "x";
    make(&options, &request, 0);
    assert_true(request.asked.has_prompt); /* unless it is told */
    request_free(&request);

    /* A number that JSON readers cannot keep would verify another sequence. */
    options.body = inexact;
    options.body_len = strlen(inexact);
    make(&options, &request, 0);
    assert_false(request.asked.has_prompt);
    request_free(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_body),
        cmocka_unit_test(test_made_anew),
        cmocka_unit_test(test_asked_in_the_query),
        cmocka_unit_test(test_asked_in_the_body),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
