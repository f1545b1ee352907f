/*
 * completion: the two encoders of the OpenAI API, one token after the other, against the text
 * that the generator makes: what is shown, when, what is kept back, and where it ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "base/random.h"
#include "endpoints/completion.h"
#include "wire/json.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct config settings = {
    .max_tokens = 128,
    .max_tokens_limit = 100000,
    .ttft_limit_us = 600000000,
    .itl_limit_us = 60000000,
    .prompt_max_bytes = 65536,
    .body_max_bytes = 1048576,
};

/* --- what it should be --- */

enum { TOKENS_MAX = 60, TEXT_MAX_BYTES = TOKENS_MAX * TOKGEN_TOKEN_MAX_BYTES };

struct expected {
    char text[TEXT_MAX_BYTES + 1]; /* up to a stop sequence */
    size_t len;
    size_t starts[TOKENS_MAX + 1]; /* of each token in the whole text */
    uint64_t generated;            /* tokens, up to the one that completes a stop sequence */
    bool is_stopped;
};

/* By looking at every end of the text for every sequence. */
static size_t stopped_at(const struct stop_sequences *stops, const char *text, size_t len)
{
    size_t longest = 0;

    for (size_t i = 0; stops != NULL && i < stops->count; i++) {
        const struct stop_sequence *stop = &stops->sequence[i];
        if (stop->len <= len && stop->len > longest &&
            memcmp(text + len - stop->len, stop->text, stop->len) == 0)
            longest = stop->len;
    }
    return longest;
}

static void expect(struct expected *expected, const struct openai_request *asked)
{
    const struct controls *controls = &asked->controls;
    struct tokgen tokens = tokgen_init(controls->prompt, controls->prompt_len, controls->seed,
                                       (enum tokgen_vocab)controls->vocab);
    size_t len = 0;

    memset(expected, 0, sizeof(*expected));
    for (uint64_t i = 0; i < controls->max_tokens; i++) {
        size_t end = len + tokgen_token(&tokens, i, expected->text + len, TEXT_MAX_BYTES - len);
        expected->starts[i] = len;
        expected->starts[i + 1] = end;
        for (; len < end && !expected->is_stopped; len++) {
            size_t found = stopped_at(asked->stops, expected->text, len + 1);
            expected->is_stopped = found > 0;
            if (expected->is_stopped) {
                expected->len = len + 1 - found;
                expected->generated = i + 1;
            }
        }
        len = end;
    }
    if (!expected->is_stopped) {
        expected->len = len;
        expected->generated = controls->max_tokens;
    }
    expected->text[expected->len] = '\0';
}

/* --- what it is --- */

static struct encoder start(struct openai_request *asked, uint64_t first)
{
    struct completion_start begin = {
        .asked = asked, .wall_us = 1700000000000000, .first = first};

    snprintf(begin.caller.id, sizeof(begin.caller.id), "id");
    begin.caller.lines = "";
    struct encoder encoder =
        asked->streams ? completion_stream_encoder(&begin) : completion_whole_encoder(&begin);
    assert_non_null(encoder.context);
    return encoder;
}

static void read_request(struct openai_request *asked, enum openai_kind kind, const char *body)
{
    struct problem problem;

    openai_request_init(asked, kind, &settings);
    if (openai_request_read(asked, &settings, body, strlen(body), &problem) != 0)
        fail_msg("%s: %s", body, problem.message);
}

/* A client of a stream. */
struct client {
    char text[TEXT_MAX_BYTES + 1];
    size_t len;
    uint64_t last_id;
    unsigned roles, texts, usages, dones, errors;
    uint64_t usage_tokens;
    char finish[16];
};

static const cJSON *member(const cJSON *json, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(json, name);
}

static void take_choice(struct client *client, const cJSON *choice)
{
    const cJSON *delta = member(choice, "delta");
    const cJSON *text = delta != NULL ? member(delta, "content") : member(choice, "text");

    assert_true(cJSON_IsNull(member(choice, "logprobs")));
    if (member(delta, "role") != NULL) {
        assert_int_equal(client->len, 0); /* before all text */
        client->roles++;
    }
    if (cJSON_IsString(member(choice, "finish_reason")))
        strcpy(client->finish, member(choice, "finish_reason")->valuestring);
    if (text == NULL || text->valuestring[0] == '\0')
        return;
    assert_string_equal(client->finish, "");
    size_t len = strlen(text->valuestring);
    memcpy(client->text + client->len, text->valuestring, len);
    client->len += len;
    client->texts++;
}

static void take_event(struct client *client, const char *id, const char *data)
{
    if (id != NULL && strcmp(id, "done") != 0)
        client->last_id = strtoull(id, NULL, 10);
    if (strcmp(data, "[DONE]") == 0) {
        client->dones++;
        return;
    }
    assert_int_equal(client->dones, 0);
    cJSON *json = cJSON_Parse(data);
    assert_non_null(json);
    if (member(json, "error") != NULL) {
        client->errors++;
    } else if (member(json, "choices")->child != NULL) {
        take_choice(client, member(json, "choices")->child);
    } else {
        client->usages++;
        client->usage_tokens =
            (uint64_t)member(member(json, "usage"), "completion_tokens")->valuedouble;
    }
    cJSON_Delete(json);
}

/* The events in `out`, which is emptied. */
static void take(struct client *client, struct buffer *out)
{
    buffer_append_char(out, '\0');
    for (char *at = out->data; *at != '\0';) {
        char *end = strstr(at, "\n\n");
        char *id = NULL;
        assert_non_null(end);
        *end = '\0';
        if (strncmp(at, "id: ", 4) == 0) {
            id = at + 4;
            at = strchr(at, '\n');
            *at++ = '\0';
        }
        assert_memory_equal(at, "data: ", 6);
        take_event(client, id, at + 6);
        at = end + 2;
    }
    buffer_reset(out);
}

/* Tokens whose text is all before `len`. */
static uint64_t tokens_in(const struct expected *expected, size_t len)
{
    uint64_t count = 0;

    while (count < expected->generated && expected->starts[count + 1] <= len)
        count++;
    return count;
}

/* Run a stream from `first` on in spans of `chunk`; what was shown at any moment is asserted.
 */
static uint64_t run_stream(struct client *client, struct openai_request *asked,
                           const struct expected *expected, uint64_t first)
{
    const struct controls *controls = &asked->controls;
    struct encoder encoder = start(asked, first);
    struct buffer out;
    bool stops = ((const struct completion *)encoder.context)->finish == OPENAI_STOP;
    uint64_t made = first;
    size_t from = expected->starts[first];

    buffer_init(&out, 1 << 20);
    assert_int_equal(encoder.ops->head(encoder.context, &out), 0);
    assert_non_null(memmem(out.data, out.len, "\r\n\r\n", 4));
    buffer_reset(&out);
    while (!stops && made < controls->max_tokens) {
        uint64_t left = controls->max_tokens - made;
        struct token_span span = {.first = made,
                                  .count = left < controls->chunk ? left : controls->chunk};
        assert_int_equal(encoder.ops->tokens(encoder.context, &out, &span), 0);
        made += span.count;
        stops = span.stops;
        assert_int_equal(stops, made == expected->generated && expected->is_stopped);
        take(client, &out);
        /* behind the text when it was resumed in the stop sequence */
        assert_true(client->len == 0 || from + client->len <= expected->len);
        assert_memory_equal(client->text, expected->text + from, client->len);
        if (!stops) /* whole events, and the rest is said to be kept back */
            assert_int_equal(from + client->len, expected->starts[made - span.kept]);
    }
    assert_int_equal(made, stops ? expected->generated : controls->max_tokens);
    assert_int_equal(encoder.ops->end(encoder.context, &out, LEDGER_DONE), 0);
    take(client, &out);
    buffer_free(&out);
    encoder.ops->free(encoder.context);
    return made;
}

static void assert_stream(struct openai_request *asked, uint64_t first,
                          const struct expected *expected, struct client *client)
{
    memset(client, 0, sizeof(*client));
    client->last_id = first;
    bool is_chat = asked->kind == OPENAI_CHAT;
    bool tells_usage = asked->tells_usage;
    uint64_t made = run_stream(client, asked, expected, first);

    assert_int_equal(client->len, expected->len > expected->starts[first]
                                      ? expected->len - expected->starts[first]
                                      : 0);
    assert_string_equal(client->finish, expected->is_stopped ? "stop" : "length");
    assert_int_equal(client->roles, is_chat && first == 0 ? 1 : 0);
    assert_int_equal(client->dones, 1);
    assert_int_equal(client->usages, tells_usage ? 1 : 0);
    if (tells_usage)
        assert_int_equal(client->usage_tokens, made);
}

/* The whole reply's body as JSON, to be freed. */
static cJSON *run_whole(struct openai_request *asked)
{
    const struct controls *controls = &asked->controls;
    struct encoder encoder = start(asked, 0);
    struct buffer out;
    struct token_span span = {.count = 0};

    buffer_init(&out, 1 << 20);
    encoder.ops->head(encoder.context, &out);
    for (uint64_t made = 0; !span.stops && made < controls->max_tokens; made += span.count) {
        uint64_t left = controls->max_tokens - made;
        span = (struct token_span){.first = made,
                                   .count = left < controls->chunk ? left : controls->chunk};
        assert_int_equal(encoder.ops->tokens(encoder.context, &out, &span), 0);
        assert_int_equal(out.len, 0);
        assert_int_equal(span.kept, 0);
    }
    assert_int_equal(encoder.ops->end(encoder.context, &out, LEDGER_DONE), 0);
    buffer_append_char(&out, '\0');
    const char *body = strstr(out.data, "\r\n\r\n") + 4;
    unsigned long length = strtoul(strstr(out.data, "Content-Length: ") + 16, NULL, 10);
    assert_int_equal(strlen(body), length);
    cJSON *json = cJSON_Parse(body);
    assert_non_null(json);
    buffer_free(&out);
    encoder.ops->free(encoder.context);
    return json;
}

static void assert_whole(struct openai_request *asked, const struct expected *expected)
{
    cJSON *json = run_whole(asked);
    const cJSON *choice = member(json, "choices")->child;
    const cJSON *text = asked->kind == OPENAI_CHAT
                            ? member(member(choice, "message"), "content")
                            : member(choice, "text");

    assert_string_equal(text->valuestring, expected->text);
    assert_string_equal(member(choice, "finish_reason")->valuestring,
                        expected->is_stopped ? "stop" : "length");
    assert_int_equal(member(member(json, "usage"), "completion_tokens")->valuedouble,
                     expected->generated);
    cJSON_Delete(json);
}

/* --- without stop sequences --- */

static void test_text(void **state)
{
    static const char *const controls[] = {
        "\"max_tokens\":20",
        "\"max_tokens\":60,\"runnel\":{\"vocab\":\"torture\",\"chunk\":7,\"seed\":5}",
    };
    struct expected expected;
    struct client client;
    char body[400];

    (void)state;
    for (size_t row = 0; row < 2 * COUNT_OF(controls); row++) {
        enum openai_kind kind = row % 2 == 0 ? OPENAI_CHAT : OPENAI_COMPLETION;
        struct openai_request asked;

        for (int streams = 0; streams < 2; streams++) {
            snprintf(body, sizeof(body),
                     "{\"prompt\":\"hello\",\"messages\":[{\"role\":\"user\",\"content\":"
                     "\"hello\"}],%s%s}",
                     controls[row / 2],
                     streams ? ",\"stream\":true,\"stream_options\":{\"include_usage\":true}"
                             : "");
            read_request(&asked, kind, body);
            expect(&expected, &asked);
            assert_false(expected.is_stopped);
            if (streams)
                assert_stream(&asked, 0, &expected, &client);
            else
                assert_whole(&asked, &expected);
            openai_request_free(&asked);
        }
    }
}

/* What comes when: the role with the first token, the extras where they were asked for. */
static void test_events(void **state)
{
    struct openai_request asked;
    struct buffer out;

    (void)state;
    read_request(
        &asked, OPENAI_CHAT,
        "{\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}],\"max_tokens\":4,"
        "\"stream\":true,\"model\":\"m\",\"runnel\":{\"stamps\":1,\"chunk\":2,\"ids\":1,"
        "\"fault\":\"dup@3\"}}");
    struct encoder encoder = start(&asked, 0);
    buffer_init(&out, 1 << 16);
    encoder.ops->head(encoder.context, &out);
    assert_null(memmem(out.data, out.len, "data:", 5)); /* nothing before the first token */
    buffer_reset(&out);
    struct token_span span = {.first = 0, .count = 2, .due_us = 5, .now_us = 7};
    encoder.ops->tokens(encoder.context, &out, &span);
    buffer_append_char(&out, '\0');
#define HEAD                                                                                   \
    "data: {\"id\":\"chatcmpl-id\",\"object\":\"chat.completion.chunk\",\"created\":"          \
    "1700000000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{"
#define TAIL "},\"logprobs\":null,\"finish_reason\":null}]"
    assert_string_equal(out.data, HEAD "\"role\":\"assistant\",\"content\":\"\"" TAIL "}\n\n"
                                       "id: 2\n" HEAD "\"content\":\"The sailor\"" TAIL
                                       ",\"runnel\":{\"n\":2,\"i\":0,\"t_us\":1700000000000007,"
                                       "\"due_us\":1700000000000005}}\n\n");
    buffer_reset(&out);
    span = (struct token_span){.first = 2, .count = 2};
    encoder.ops->tokens(encoder.context, &out, &span);
    size_t half = out.len / 2;
    assert_memory_equal(out.data, out.data + half, half); /* dup@3 */
    assert_memory_equal(out.data, "id: 4\n", 6);
    buffer_reset(&out);
    encoder.ops->end(encoder.context, &out, LEDGER_DONE);
    buffer_append_char(&out, '\0');
    assert_string_equal(out.data, HEAD "},\"logprobs\":null,\"finish_reason\":\"length\"}]}\n\n"
                                       "id: done\ndata: [DONE]\n\n");
    buffer_free(&out);
    encoder.ops->free(encoder.context);
    openai_request_free(&asked);
}

/* An error in mid-stream is a message with the member `error`, and nothing comes after it. */
static void test_errors(void **state)
{
    static const struct {
        enum ledger_outcome outcome;
        const char *code;
    } rows[] = {{LEDGER_FAILED, "\"fault\""}, {LEDGER_DRAINED, "\"draining\""}};
    struct openai_request asked;
    struct buffer out;

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        buffer_init(&out, 1 << 16);
        read_request(&asked, OPENAI_COMPLETION,
                     "{\"prompt\":\"a\",\"stream\":true,\"runnel\":{\"fault\":\"error@3\"}}");
        struct encoder encoder = start(&asked, 0);
        encoder.ops->head(encoder.context, &out);
        buffer_reset(&out);
        encoder.ops->end(encoder.context, &out, rows[row].outcome);
        buffer_append_char(&out, '\0');
        assert_memory_equal(out.data, "data: {\"error\":{\"message\":\"", 26);
        assert_non_null(strstr(out.data, rows[row].code));
        assert_string_equal(out.data + strlen(out.data) - 4, "}}\n\n");
        buffer_free(&out);
        encoder.ops->free(encoder.context);
        openai_request_free(&asked);
    }
}

/* --- with them --- */

/* Sequences from the text itself, so that they are met: whole tokens, parts of them, over the
 * borders of several, and one byte off. */
static void draw_stops(struct stop_sequences *stops, const struct expected *text,
                       uint64_t *draw)
{
    size_t count = 1 + random_at(3, (*draw)++) % STOP_SEQUENCES_MAX;

    memset(stops, 0, sizeof(*stops));
    while (stops->count < count) {
        size_t len = 1 + random_at(3, (*draw)++) % 40;
        size_t at = random_at(3, (*draw)++) % (text->len - 1);
        char sequence[64];

        if (at + len > text->len)
            len = text->len - at;
        /* characters, not halves of them: that is what JSON can say */
        while (at > 0 && ((unsigned char)text->text[at] & 0xc0) == 0x80)
            at--, len++;
        while (((unsigned char)text->text[at + len] & 0xc0) == 0x80)
            len++;
        memcpy(sequence, text->text + at, len);
        if (random_at(3, (*draw)++) % 4 == 0)
            sequence[len - 1] ^= 1; /* nearly met, over and over */
        stop_add(stops, sequence, len);
    }
}

static void append_stops(struct buffer *body, const struct stop_sequences *stops)
{
    buffer_append_text(body, ",\"stop\":[");
    for (size_t i = 0; i < stops->count; i++) {
        buffer_append_text(body, i > 0 ? "," : "");
        json_append_string(body, stops->sequence[i].text, stops->sequence[i].len);
    }
    buffer_append_text(body, "]");
}

static const char *body_of(struct buffer *body, uint64_t number, uint64_t chunk, bool streams,
                           const struct stop_sequences *stops)
{
    buffer_reset(body);
    buffer_printf(
        body,
        "{\"prompt\":\"p%llu\",\"messages\":[{\"role\":\"user\",\"content\":\"p%llu\"}],"
        "\"max_tokens\":%d,\"runnel\":{\"vocab\":\"%s\",\"chunk\":%llu%s}",
        (unsigned long long)number, (unsigned long long)number, TOKENS_MAX,
        number % 2 == 0 ? "torture" : "words", (unsigned long long)chunk,
        streams ? ",\"ids\":1" : "");
    if (streams)
        buffer_append_text(body,
                           ",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    if (stops != NULL)
        append_stops(body, stops);
    buffer_append_text(body, "}");
    buffer_append_char(body, '\0');
    return body->data;
}

/* With a sequence that JSON cannot carry (half a character, after the byte was changed) there
 * is nothing to test. */
static bool is_readable(const char *body)
{
    struct openai_request asked;
    struct problem problem;

    openai_request_init(&asked, OPENAI_CHAT, &settings);
    int result = openai_request_read(&asked, &settings, body, strlen(body), &problem);
    openai_request_free(&asked);
    return result == 0;
}

static void test_stop_sequences(void **state)
{
    static struct expected whole, expected;
    static struct client client, rest;
    struct stop_sequences stops;
    struct openai_request asked;
    struct buffer body;
    uint64_t draw = 0;
    unsigned tested = 0, stopped = 0, empty = 0, cut = 0;

    (void)state;
    buffer_init(&body, 1 << 16);
    for (uint64_t number = 0; number < 3000; number++) {
        enum openai_kind kind = number % 3 == 0 ? OPENAI_CHAT : OPENAI_COMPLETION;
        uint64_t chunk = number % 5 < 3 ? 1 : number % 5;

        read_request(&asked, kind, body_of(&body, number, chunk, false, NULL));
        expect(&whole, &asked);
        openai_request_free(&asked);
        draw_stops(&stops, &whole, &draw);
        if (!is_readable(body_of(&body, number, chunk, false, &stops)))
            continue;

        read_request(&asked, kind, body.data);
        expect(&expected, &asked);
        assert_whole(&asked, &expected);
        openai_request_free(&asked);
        read_request(&asked, kind, body_of(&body, number, chunk, true, &stops));
        assert_stream(&asked, 0, &expected, &client);
        openai_request_free(&asked);
        assert_int_equal(client.len, expected.len);

        /* Resumed after any event, it goes on with what was missing, and ends the same. */
        uint64_t after = tokens_in(&expected, random_at(3, draw++) % (expected.len + 1));
        after -= after % chunk;
        read_request(&asked, kind, body.data);
        assert_stream(&asked, after, &expected, &rest);
        openai_request_free(&asked);
        if (expected.is_stopped) {
            read_request(&asked, kind, body.data);
            assert_stream(&asked, client.last_id, &expected, &rest);
            openai_request_free(&asked);
            assert_int_equal(rest.len, 0);
        }
        tested++;
        stopped += expected.is_stopped;
        empty += expected.len == 0;
        cut += expected.is_stopped &&
               expected.starts[tokens_in(&expected, expected.len)] != expected.len;
    }
    buffer_free(&body);
    print_message("%u streams, %u stopped, %u of them inside a token, %u before any text\n",
                  tested, stopped, cut, empty);
    assert_true(tested > 2000 && stopped > 1000 && cut > 300 && empty > 10);
}

/* Tokens that are kept back when a fault ends the stream are shown: nothing will complete them.
 */
static void test_a_fault_ends_the_wait(void **state)
{
    static const char *const faults[] = {"error@2", "eof@2", "reset@2"};
    struct openai_request asked;
    struct client client;
    struct buffer out;
    char body[300];

    (void)state;
    for (size_t row = 0; row < COUNT_OF(faults); row++) {
        snprintf(body, sizeof(body),
                 "{\"prompt\":\"hello\",\"max_tokens\":9,\"stream\":true,"
                 "\"stop\":\"The sailor rested and so on\",\"runnel\":{\"fault\":\"%s\"}}",
                 faults[row]);
        read_request(&asked, OPENAI_COMPLETION, body);
        struct encoder encoder = start(&asked, 0);
        memset(&client, 0, sizeof(client));
        buffer_init(&out, 1 << 16);
        struct token_span span = {.first = 0, .count = 1};
        encoder.ops->tokens(encoder.context, &out, &span);
        assert_int_equal(span.kept, 1);
        assert_int_equal(out.len, 0);
        span = (struct token_span){.first = 1, .count = 1};
        encoder.ops->tokens(encoder.context, &out, &span);
        assert_int_equal(span.kept, 0);
        take(&client, &out);
        assert_string_equal(client.text, "The sailor");
        assert_int_equal(client.texts, 2); /* each in its own event */
        buffer_free(&out);
        encoder.ops->free(encoder.context);
        openai_request_free(&asked);
    }
}

/* One that nearly is the text, as long as allowed: many tokens wait, and all are shown. */
static void test_a_long_wait(void **state)
{
    static struct expected expected;
    static struct client client;
    struct stop_sequences stops = {.count = 0};
    struct openai_request asked;
    struct buffer body;
    char sequence[STOP_SEQUENCE_MAX_BYTES];

    (void)state;
    buffer_init(&body, 1 << 16);
    read_request(&asked, OPENAI_CHAT, body_of(&body, 1, 1, false, NULL));
    expect(&expected, &asked);
    openai_request_free(&asked);
    assert_true(expected.len > sizeof(sequence));
    memcpy(sequence, expected.text, sizeof(sequence));
    sequence[sizeof(sequence) - 1] = '#';
    stop_add(&stops, sequence, sizeof(sequence));
    read_request(&asked, OPENAI_CHAT, body_of(&body, 1, 1, true, &stops));
    expect(&expected, &asked);
    assert_false(expected.is_stopped);
    assert_stream(&asked, 0, &expected, &client);
    assert_int_equal(client.texts, TOKENS_MAX);
    openai_request_free(&asked);
    buffer_free(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_stop_sequences),
        cmocka_unit_test(test_a_fault_ends_the_wait),
        cmocka_unit_test(test_a_long_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
