/*
 * openai: the API's objects, byte for byte, and as JSON whatever the model is called; and what
 * of a request's body is taken, ignored and refused.
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

#include "endpoints/openai_request.h"
#include "wire/openai.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* --- objects --- */

static const struct openai_reply completion = {
    .kind = OPENAI_COMPLETION, .created_s = 1700000000, .request_id = "r-1", .model = "m"};
static const struct openai_reply chat = {
    .kind = OPENAI_CHAT, .created_s = 1700000000, .request_id = "r-1", .model = "m\"\n"};

static void assert_bytes(struct buffer *out, const char *wanted)
{
    buffer_append_char(out, '\0');
    assert_string_equal(out->data, wanted);
    buffer_reset(out);
}

static void test_whole_replies(void **state)
{
    const struct openai_usage usage = {.prompt_tokens = 2, .completion_tokens = 3};
    struct buffer out;

    (void)state;
    buffer_init(&out, 4096);
    openai_append_start(&out, &completion);
    buffer_append_text(&out, "a\\n");
    assert_int_equal(openai_append_end(&out, &completion, OPENAI_LENGTH, &usage), 0);
    assert_bytes(
        &out, "{\"id\":\"cmpl-r-1\",\"object\":\"text_completion\",\"created\":1700000000,"
              "\"model\":\"m\",\"choices\":[{\"index\":0,\"text\":\"a\\n\",\"logprobs\":null,"
              "\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":2,"
              "\"completion_tokens\":3,\"total_tokens\":5}}\n");
    openai_append_start(&out, &chat);
    openai_append_end(&out, &chat, OPENAI_STOP, &usage);
    assert_bytes(
        &out, "{\"id\":\"chatcmpl-r-1\",\"object\":\"chat.completion\",\"created\":1700000000,"
              "\"model\":\"m\\\"\\n\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
              "\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":\"stop\"}],"
              "\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":3,\"total_tokens\":5}}\n");
    buffer_free(&out);
}

#define CHAT_HEAD                                                                              \
    "{\"id\":\"chatcmpl-r-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"    \
    "\"model\":\"m\\\"\\n\",\"choices\":["
#define COMPLETION_HEAD                                                                        \
    "{\"id\":\"cmpl-r-1\",\"object\":\"text_completion\",\"created\":1700000000,\"model\":"    \
    "\"m\",\"choices\":["

static void test_chunks(void **state)
{
    const struct openai_usage usage = {.prompt_tokens = 1, .completion_tokens = 2};
    struct openai_chunks chunks;
    struct buffer out;

    (void)state;
    buffer_init(&out, 4096);
    assert_int_equal(openai_chunks_init(&chunks, &chat, false, false), 0);
    openai_append_role(&out, &chunks);
    assert_bytes(&out, CHAT_HEAD "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":"
                                 "\"\"},\"logprobs\":null,\"finish_reason\":null}]}");
    openai_append_text_start(&out, &chunks);
    buffer_append_text(&out, "x");
    openai_append_text_end(&out, &chunks);
    assert_bytes(&out, CHAT_HEAD "{\"index\":0,\"delta\":{\"content\":\"x\"},\"logprobs\":null,"
                                 "\"finish_reason\":null}]");
    openai_append_finish(&out, &chunks, OPENAI_STOP);
    assert_bytes(&out, CHAT_HEAD "{\"index\":0,\"delta\":{},\"logprobs\":null,"
                                 "\"finish_reason\":\"stop\"}]}");
    openai_chunks_free(&chunks);

    assert_int_equal(openai_chunks_init(&chunks, &chat, true, false), 0);
    openai_append_role(&out, &chunks);
    assert_bytes(&out, CHAT_HEAD "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":"
                                 "\"\"},\"logprobs\":null,\"finish_reason\":null}],"
                                 "\"usage\":null}");
    openai_append_usage(&out, &chunks, &usage);
    assert_bytes(&out, CHAT_HEAD "],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,"
                                 "\"total_tokens\":3}}");
    openai_chunks_free(&chunks);

    assert_int_equal(openai_chunks_init(&chunks, &completion, true, false), 0);
    openai_append_text_start(&out, &chunks);
    buffer_append_text(&out, "x");
    openai_append_text_end(&out, &chunks);
    assert_bytes(&out, COMPLETION_HEAD "{\"index\":0,\"text\":\"x\",\"logprobs\":null,"
                                       "\"finish_reason\":null}],\"usage\":null");
    openai_append_finish(&out, &chunks, OPENAI_LENGTH);
    assert_bytes(&out, COMPLETION_HEAD "{\"index\":0,\"text\":\"\",\"logprobs\":null,"
                                       "\"finish_reason\":\"length\"}],\"usage\":null}");
    openai_chunks_free(&chunks);
    buffer_free(&out);
}

/* The longest name and id, with all that must be escaped: still JSON, with the same name. */
static void test_a_long_name(void **state)
{
    struct openai_reply reply = {.kind = OPENAI_CHAT, .created_s = INT64_MAX};
    struct openai_chunks chunks;
    struct buffer out;

    (void)state;
    memset(reply.request_id, 'x', sizeof(reply.request_id) - 1);
    memset(reply.model, '\x01', sizeof(reply.model) - 1);
    buffer_init(&out, 8192);
    assert_int_equal(openai_chunks_init(&chunks, &reply, true, true), 0);
    openai_append_text_start(&out, &chunks);
    openai_append_text_end(&out, &chunks);
    buffer_append_text(&out, "}");
    assert_int_equal(buffer_append_char(&out, '\0'), 0);
    assert_non_null(strchr(out.data, '\n')); /* multiline */
    cJSON *json = cJSON_Parse(out.data);
    assert_non_null(json);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "model")->valuestring,
                        reply.model);
    cJSON_Delete(json);
    openai_chunks_free(&chunks);
    buffer_free(&out);
}

/* --- requests --- */

static const struct config settings = {
    .max_tokens = 128,
    .ttft_us = 200000,
    .itl_us = 25000,
    .max_tokens_limit = 100000,
    .ttft_limit_us = 600000000,
    .itl_limit_us = 60000000,
    .prompt_max_bytes = 200,
    .body_max_bytes = 1048576,
};

static int read_request(struct openai_request *request, enum openai_kind kind, const char *body,
                        struct problem *problem)
{
    openai_request_init(request, kind, &settings);
    return openai_request_read(request, &settings, body, strlen(body), problem);
}

#define USER "{\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]"

static void test_prompts(void **state)
{
    static const struct {
        enum openai_kind kind;
        const char *body;
        const char *prompt;
    } rows[] = {
        {OPENAI_COMPLETION, "{\"prompt\":\"hello\"}", "hello"},
        {OPENAI_COMPLETION, "{\"prompt\":[\"hello\"]}", "hello"},
        {OPENAI_COMPLETION, "{\"prompt\":\"hello\",\"messages\":[]}", "hello"},
        {OPENAI_CHAT, USER "}", "hello"},
        {OPENAI_CHAT, USER ",\"prompt\":7}", "hello"},
        {OPENAI_CHAT,
         "{\"messages\":[{\"content\":[{\"type\":\"text\",\"text\":\"hel\"},"
         "{\"text\":\"lo\",\"type\":\"text\"}],\"role\":\"user\",\"name\":\"x\"}]}",
         "hello"},
        {OPENAI_CHAT, "{\"messages\":[{\"role\":\"system\",\"content\":\"hello\"}]}",
         "system: hello"},
        {OPENAI_CHAT,
         "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},"
         "{\"role\":\"user\",\"content\":\"hello\"}]}",
         "system: Be brief.\nuser: hello"},
        {OPENAI_CHAT,
         "{\"messages\":[{\"role\":\"developer\",\"content\":\"\"},"
         "{\"role\":\"user\",\"content\":[]},"
         "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{}]},"
         "{\"role\":\"assistant\"},"
         "{\"role\":\"tool\",\"content\":\"4\",\"tool_call_id\":\"x\"}]}",
         "developer: \nuser: \nassistant: \nassistant: \ntool: 4"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct openai_request request;
        struct problem problem;

        if (read_request(&request, rows[row].kind, rows[row].body, &problem) != 0)
            fail_msg("row %zu, %s: %s", row, rows[row].body, problem.message);
        assert_string_equal(request.controls.prompt, rows[row].prompt);
        assert_int_equal(request.controls.prompt_len, strlen(rows[row].prompt));
        assert_int_equal(request.controls.max_tokens, 128);
        assert_string_equal(request.model, "runnel");
        assert_false(request.streams || request.tells_usage);
        assert_null(request.stops);
        openai_request_free(&request);
        openai_request_free(&request); /* harmless */
    }
}

static void test_members_that_decide(void **state)
{
    struct openai_request request;
    struct problem problem;

    (void)state;
    assert_int_equal(
        read_request(&request, OPENAI_CHAT,
                     USER ",\"model\":\"gpt\",\"max_completion_tokens\":7,\"stream\":true,"
                          "\"stream_options\":{\"include_usage\":true,\"other\":1},"
                          "\"stop\":[\"a\",\"bc\"],\"runnel\":{\"itl_ms\":0.5,\"seed\":9,"
                          "\"stamps\":true,\"fault\":\"eof@3\"},\"seed\":18446744073709551615}",
                     &problem),
        0);
    assert_string_equal(request.model, "gpt");
    assert_int_equal(request.controls.max_tokens, 7);
    assert_true(request.streams && request.tells_usage);
    assert_int_equal(request.stops->count, 2);
    assert_string_equal(request.stops->sequence[1].text, "bc");
    assert_int_equal(request.controls.itl_us, 500);
    assert_true(request.controls.is_paced);
    assert_int_equal(request.controls.seed, 9); /* of `runnel`, wherever that stands */
    assert_int_equal(request.controls.stamps, 1);
    assert_int_equal(request.controls.fault.token, 3);
    openai_request_free(&request);

    assert_int_equal(read_request(&request, OPENAI_COMPLETION,
                                  "{\"prompt\":\"a\",\"max_tokens\":3,\"stop\":\"x\","
                                  "\"seed\":18446744073709551615}",
                                  &problem),
                     0);
    assert_int_equal(request.controls.max_tokens, 3);
    assert_true(request.controls.seed == UINT64_MAX);
    assert_int_equal(request.stops->count, 1);
    openai_request_free(&request);
}

/* null is as if it were not there; what would change nothing may say what it likes. */
static void test_members_that_do_not(void **state)
{
    static const struct {
        enum openai_kind kind;
        const char *members;
    } rows[] = {
        {OPENAI_CHAT, "\"model\":null,\"max_tokens\":null,\"max_completion_tokens\":null,"
                      "\"stream\":null,\"stream_options\":null,\"stop\":null,\"seed\":null,"
                      "\"runnel\":null,\"n\":null,\"logprobs\":null,\"top_logprobs\":null,"
                      "\"tools\":null,\"tool_choice\":null,\"functions\":null,"
                      "\"response_format\":null,\"modalities\":null,\"audio\":null,"
                      "\"web_search_options\":null,\"temperature\":null,\"user\":null"},
        {OPENAI_COMPLETION, "\"best_of\":null,\"echo\":null,\"suffix\":null,\"logprobs\":null"},
        {OPENAI_CHAT, "\"n\":1,\"logprobs\":false,\"top_logprobs\":0,\"tools\":[],"
                      "\"tool_choice\":\"auto\",\"functions\":[],"
                      "\"response_format\":{\"type\":\"text\"},\"modalities\":[\"text\"]"},
        {OPENAI_CHAT, "\"tools\":[{\"type\":\"function\"}],\"tool_choice\":\"none\""},
        {OPENAI_CHAT, "\"tool_choice\":\"none\",\"tools\":[{\"type\":\"function\"}]"},
        {OPENAI_COMPLETION, "\"n\":1,\"best_of\":1,\"echo\":false,\"suffix\":\"\""},
        {OPENAI_CHAT, "\"temperature\":1.5,\"top_p\":1,\"presence_penalty\":-2,"
                      "\"frequency_penalty\":0,\"logit_bias\":{\"5\":1},\"user\":\"u\","
                      "\"metadata\":{},\"store\":true,\"service_tier\":\"auto\","
                      "\"reasoning_effort\":\"low\",\"parallel_tool_calls\":true,"
                      "\"prediction\":{},\"top_k\":7,\"whatever\":[{}]"},
        {OPENAI_CHAT, "\"stop\":[],\"runnel\":{},\"stream\":false"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct openai_request request;
        struct problem problem;
        char body[1000];

        snprintf(body, sizeof(body), "%s,%s}",
                 rows[row].kind == OPENAI_CHAT ? USER : "{\"prompt\":\"hello\"",
                 rows[row].members);
        if (read_request(&request, rows[row].kind, body, &problem) != 0)
            fail_msg("row %zu, %s: %s", row, body, problem.message);
        assert_string_equal(request.controls.prompt, "hello");
        assert_int_equal(request.controls.max_tokens, 128);
        assert_false(request.streams);
        assert_null(request.stops);
        openai_request_free(&request);
    }
}

struct refusal {
    const char *body; /* from the second member on when it begins with a comma */
    const char *code;
    const char *param;
    const char *says;
};

static void check_refusals(enum openai_kind kind, const struct refusal *rows, size_t count)
{
    for (size_t row = 0; row < count; row++) {
        struct openai_request request;
        struct problem problem;
        char body[1000];
        const char *start = kind == OPENAI_CHAT ? USER : "{\"prompt\":\"hello\"";

        if (rows[row].body[0] == ',')
            snprintf(body, sizeof(body), "%s%s}", start, rows[row].body);
        else
            snprintf(body, sizeof(body), "%s", rows[row].body);
        if (read_request(&request, kind, body, &problem) == 0)
            fail_msg("row %zu, %s: taken", row, body);
        openai_request_free(&request);
        if (problem.status != 400 || strcmp(problem.code, rows[row].code) != 0)
            fail_msg("row %zu, %s: %d %s", row, body, problem.status, problem.code);
        if (rows[row].param == NULL) {
            assert_null(problem.param);
            continue;
        }
        assert_string_equal(problem.param, rows[row].param);
        if (strstr(problem.message, rows[row].param) == NULL ||
            (rows[row].says != NULL && strstr(problem.message, rows[row].says) == NULL))
            fail_msg("row %zu, %s: %s", row, body, problem.message);
    }
}

static void test_refused_in_both(void **state)
{
    static const struct refusal rows[] = {
        {"", "empty_body", NULL, NULL},
        {"[]", "not_an_object", NULL, NULL},
        {"{\"a\":", "bad_json", NULL, NULL},
        {",\"model\":7", "wrong_type", "model", "string"},
        {",\"model\":\"\"", "empty", "model", "1 to 128"},
        {",\"model\":\"a\",\"model\":\"a\"", "given_twice", "model", NULL},
        {",\"model\":null,\"model\":\"a\"", "given_twice", "model", NULL},
        {",\"max_tokens\":0", "out_of_range", "max_tokens", "1 to 100000"},
        {",\"max_tokens\":100001", "out_of_range", "max_tokens", NULL},
        {",\"max_tokens\":1.5", "not_a_number", "max_tokens", "`1.5`"},
        {",\"max_tokens\":\"7\"", "wrong_type", "max_tokens", "number"},
        {",\"stream\":1", "wrong_type", "stream", "true or false"},
        {",\"stream\":\"true\"", "wrong_type", "stream", NULL},
        {",\"stream_options\":{}", "streams_only", "stream_options", NULL},
        {",\"stream\":true,\"stream_options\":[]", "wrong_type", "stream_options", "object"},
        {",\"stream\":true,\"stream_options\":{\"include_usage\":1}", "wrong_type",
         "stream_options.include_usage", NULL},
        {",\"stream\":true,\"stream_options\":{\"include_usage\":true,\"include_usage\":true}",
         "given_twice", "stream_options.include_usage", NULL},
        {",\"stop\":7", "wrong_type", "stop", NULL},
        {",\"stop\":{\"a\":\"b\"}", "wrong_type", "stop", NULL},
        {",\"stop\":[\"a\",7]", "wrong_type", "stop", NULL},
        {",\"stop\":[null]", "wrong_type", "stop", NULL},
        {",\"stop\":\"\"", "empty", "stop", "1 to 256"},
        {",\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]", "too_many", "stop", "up to 4"},
        {",\"seed\":-1", "not_a_number", "seed", "`-1`"},
        {",\"seed\":\"7\"", "wrong_type", "seed", NULL},
        {",\"n\":2", "unsupported_value", "n", "`2`"},
        {",\"n\":1.0", "unsupported_value", "n", NULL},
        {",\"n\":\"1\"", "wrong_type", "n", NULL},
        {",\"temperature\":\"hot\"", "wrong_type", "temperature", "number"},
        {",\"logit_bias\":[]", "wrong_type", "logit_bias", "object"},
        {",\"user\":7", "wrong_type", "user", NULL},
        {",\"runnel\":7", "wrong_type", "runnel", NULL},
        {",\"runnel\":{\"itl\":5}", "unknown_control", "runnel", "`itl`"},
        {",\"runnel\":{\"prompt\":\"a\"}", "unknown_control", "runnel", "`prompt`"},
        {",\"runnel\":{\"max_tokens\":5}", "unknown_control", "runnel", NULL},
        {",\"runnel\":{\"itl_ms\":\"5\"}", "wrong_type", "runnel.itl_ms", NULL},
        {",\"runnel\":{\"itl_ms\":60001}", "out_of_range", "runnel.itl_ms", "`60001`"},
        {",\"runnel\":{\"itl_ms\":1,\"itl_ms\":1}", "given_twice", "runnel.itl_ms", NULL},
        {",\"runnel\":{\"fault\":\"x\"}", "not_allowed", "runnel.fault", NULL},
        {",\"runnel\":{\"ping_ms\":0.5}", "out_of_range", "ping_ms", NULL},
    };

    (void)state;
    check_refusals(OPENAI_COMPLETION, rows, COUNT_OF(rows));
    check_refusals(OPENAI_CHAT, rows, COUNT_OF(rows));
}

static void test_refused_completions(void **state)
{
    static const struct refusal rows[] = {
        {"{}", "missing", "prompt", NULL},
        {"{\"prompt\":null}", "missing", "prompt", NULL},
        {"{\"prompt\":\"\"}", "empty", "prompt", NULL},
        {"{\"prompt\":7}", "wrong_type", "prompt", NULL},
        {"{\"prompt\":[]}", "unsupported_value", "prompt", "an array of one"},
        {"{\"prompt\":[\"a\",\"b\"]}", "unsupported_value", "prompt", "an array of one"},
        {"{\"prompt\":[1,2,3]}", "unsupported_value", "prompt", "ids of tokens"},
        {"{\"prompt\":[[1,2],[3]]}", "unsupported_value", "prompt", "ids of tokens"},
        {"{\"prompt\":[null]}", "wrong_type", "prompt", NULL},
        {"{\"prompt\":[\"\"]}", "empty", "prompt", NULL},
        {"{\"prompt\":\"a\",\"prompt\":\"a\"}", "given_twice", "prompt", NULL},
        {",\"best_of\":2", "unsupported_value", "best_of", NULL},
        {",\"echo\":true", "unsupported_value", "echo", NULL},
        {",\"suffix\":\"b\"", "unsupported_value", "suffix", NULL},
        {",\"logprobs\":0", "unsupported_value", "logprobs", NULL},
        {",\"logprobs\":5", "unsupported_value", "logprobs", NULL},
        {",\"logprobs\":true", "wrong_type", "logprobs", NULL},
    };

    (void)state;
    check_refusals(OPENAI_COMPLETION, rows, COUNT_OF(rows));
}

static void test_refused_chats(void **state)
{
    static const struct refusal rows[] = {
        {"{}", "missing", "messages", NULL},
        {"{\"prompt\":\"a\"}", "missing", "messages", NULL},
        {"{\"messages\":\"a\"}", "wrong_type", "messages", "array"},
        {"{\"messages\":[]}", "empty", "messages", NULL},
        {"{\"messages\":[7]}", "wrong_type", "messages[0]", NULL},
        {"{\"messages\":[[]]}", "wrong_type", "messages[0]", NULL},
        {"{\"messages\":[{}]}", "wrong_type", "messages[0].role", NULL},
        {"{\"messages\":[{\"role\":7}]}", "wrong_type", "messages[0].role", NULL},
        {"{\"messages\":[{\"role\":\"robot\"}]}", "not_allowed", "messages[0].role", "`robot`"},
        {"{\"messages\":[{\"role\":\"user\"}]}", "wrong_type", "messages[0].content", NULL},
        {"{\"messages\":[{\"role\":\"user\",\"content\":null}]}", "wrong_type",
         "messages[0].content", NULL},
        {"{\"messages\":[{\"role\":\"user\",\"content\":7}]}", "wrong_type",
         "messages[0].content", NULL},
        {"{\"messages\":[{\"role\":\"user\",\"content\":{}}]}", "wrong_type",
         "messages[0].content", NULL},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}", "empty", "messages", NULL},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[]}]}", "empty", "messages", NULL},
        {"{\"messages\":[{\"role\":\"user\",\"role\":\"user\",\"content\":\"a\"}]}",
         "given_twice", "messages[0].role", NULL},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"content\":\"b\"}]}",
         "given_twice", "messages[0].content", NULL},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\","
         "\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\","
         "\"image_url\":{\"url\":\"data:\"}}]}]}",
         "unsupported_value", "messages[1].content[1].type", "`image_url`"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[\"a\"]}]}", "wrong_type",
         "messages[0].content[0]", NULL},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"text\":\"a\"}]}]}", "wrong_type",
         "messages[0].content[0].type", NULL},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]}", "wrong_type",
         "messages[0].content[0].text", NULL},
        {",\"max_tokens\":7,\"max_completion_tokens\":7", "given_twice",
         "max_completion_tokens", "two names"},
        {",\"max_completion_tokens\":0", "out_of_range", "max_completion_tokens", NULL},
        {",\"logprobs\":true", "unsupported_value", "logprobs", NULL},
        {",\"logprobs\":1", "wrong_type", "logprobs", NULL},
        {",\"top_logprobs\":5", "unsupported_value", "top_logprobs", NULL},
        {",\"tools\":[{}]", "unsupported_value", "tools", NULL},
        {",\"tools\":[{}],\"tool_choice\":\"auto\"", "unsupported_value", "tools", NULL},
        {",\"tool_choice\":\"required\"", "unsupported_value", "tool_choice", "`\"required\"`"},
        {",\"tool_choice\":{\"type\":\"function\"}", "unsupported_value", "tool_choice", NULL},
        {",\"functions\":[{}]", "unsupported_value", "functions", NULL},
        {",\"response_format\":{\"type\":\"json_object\"}", "unsupported_value",
         "response_format", NULL},
        {",\"response_format\":{}", "unsupported_value", "response_format", NULL},
        {",\"response_format\":\"text\"", "wrong_type", "response_format", NULL},
        {",\"modalities\":[\"text\",\"audio\"]", "unsupported_value", "modalities", NULL},
        {",\"modalities\":[]", "unsupported_value", "modalities", NULL},
        {",\"audio\":{\"voice\":\"x\"}", "unsupported_value", "audio", NULL},
        {",\"web_search_options\":{}", "unsupported_value", "web_search_options", NULL},
    };

    (void)state;
    check_refusals(OPENAI_CHAT, rows, COUNT_OF(rows));
}

/* The limit (200 here) is on the text, however many messages it is in. */
static void test_the_prompts_limit(void **state)
{
    static const char roles[] = "system: \nuser: ";

    (void)state;
    for (size_t len = 190; len <= 202; len++) {
        struct openai_request request;
        struct problem problem;
        char text[256] = {0};
        char body[600];

        memset(text, 'x', len - strlen(roles));
        snprintf(body, sizeof(body),
                 "{\"messages\":[{\"role\":\"system\",\"content\":\"\"},{\"role\":\"user\","
                 "\"content\":\"%s\"}]}",
                 text);
        int result = read_request(&request, OPENAI_CHAT, body, &problem);
        assert_int_equal(result, len <= 200 ? 0 : -1);
        if (result == 0) {
            assert_int_equal(request.controls.prompt_len, len);
        } else {
            assert_string_equal(problem.code, "too_long");
            assert_string_equal(problem.param, "messages");
        }
        openai_request_free(&request);
    }
}

/* --- headers --- */

struct fake_headers {
    const char *param, *value;
    size_t asked;
};

static const char *value_of(const void *context, const char *param)
{
    struct fake_headers *headers = (struct fake_headers *)(uintptr_t)context;

    headers->asked++;
    return strcmp(param, headers->param) == 0 ? headers->value : "";
}

static void test_headers(void **state)
{
    static const struct {
        const char *param, *value;
        const char *code;  /* NULL: taken */
        const char *label; /* of the problem */
    } rows[] = {
        {"HTTP_X_RUNNEL_ITL_MS", "0.5", NULL, NULL},
        {"HTTP_X_RUNNEL_ITL_MS", "5, 6", "not_a_number", "X-Runnel-Itl-Ms"},
        {"HTTP_X_RUNNEL_SEED", "-1", "not_a_number", "X-Runnel-Seed"},
        {"HTTP_X_RUNNEL_PREFILL_US_PER_TOKEN", "1000001", "out_of_range",
         "X-Runnel-Prefill-Us-Per-Token"},
        {"HTTP_X_RUNNEL_VOCAB", "Words", "not_allowed", "X-Runnel-Vocab"},
        {"HTTP_X_RUNNEL_STAMPS", "true", "not_a_number", "X-Runnel-Stamps"},
        {"HTTP_X_RUNNEL_PROMPT", "a", NULL, NULL},        /* nobody asks for it */
        {"HTTP_X_RUNNEL_MAX_TOKENS", "none", NULL, NULL}, /* nor for this */
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct fake_headers headers = {rows[row].param, rows[row].value, 0};
        struct controls controls;
        struct problem problem;

        controls_init(&controls, &settings);
        int result = controls_from_headers(&controls, &settings, value_of, &headers, &problem);
        assert_int_equal(result, rows[row].code == NULL ? 0 : -1);
        if (result != 0) {
            assert_string_equal(problem.code, rows[row].code);
            assert_string_equal(problem.param, rows[row].label);
            assert_non_null(strstr(problem.message, rows[row].label));
        } else {
            assert_int_equal(headers.asked, 13);
            assert_null(controls.prompt);
            assert_int_equal(controls.max_tokens, 128);
        }
    }
    /* The body comes after them, and over them. */
    struct fake_headers headers = {"HTTP_X_RUNNEL_ITL_MS", "7", 0};
    struct openai_request request;
    struct problem problem;
    openai_request_init(&request, OPENAI_CHAT, &settings);
    assert_int_equal(
        controls_from_headers(&request.controls, &settings, value_of, &headers, &problem), 0);
    assert_int_equal(request.controls.itl_us, 7000);
    static const char body[] = USER ",\"runnel\":{\"itl_ms\":3}}";
    assert_int_equal(openai_request_read(&request, &settings, body, strlen(body), &problem), 0);
    assert_int_equal(request.controls.itl_us, 3000);
    openai_request_free(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_replies),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_a_long_name),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_members_that_decide),
        cmocka_unit_test(test_members_that_do_not),
        cmocka_unit_test(test_refused_in_both),
        cmocka_unit_test(test_refused_completions),
        cmocka_unit_test(test_refused_chats),
        cmocka_unit_test(test_the_prompts_limit),
        cmocka_unit_test(test_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
