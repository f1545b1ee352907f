/*
 * sse: a parser written from the standard sees exactly one event for each, in every spelling
 * and whatever the token is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "gen/tokgen.h"
#include "wire/json.h"
#include "wire/sse.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void assert_bytes(struct buffer *out, const char *wanted)
{
    assert_int_equal(out->len, strlen(wanted));
    assert_memory_equal(out->data, wanted, out->len);
    buffer_reset(out);
}

static void test_bytes(void **state)
{
    static const char data[] = "{\"token\":\n\"a\"}";
    static const struct {
        enum sse_wire wire;
        const char *event;
    } rows[] = {
        {SSE_LF, "event: e\nid: 7\ndata: {\"token\":\ndata: \"a\"}\n\n"},
        {SSE_DRIP, "event: e\nid: 7\ndata: {\"token\":\ndata: \"a\"}\n\n"},
        {SSE_BOM, "event: e\nid: 7\ndata: {\"token\":\ndata: \"a\"}\n\n"},
        {SSE_MULTILINE, "event: e\nid: 7\ndata: {\"token\":\ndata: \"a\"}\n\n"},
        {SSE_CRLF, "event: e\r\nid: 7\r\ndata: {\"token\":\r\ndata: \"a\"}\r\n\r\n"},
        {SSE_CR, "event: e\rid: 7\rdata: {\"token\":\rdata: \"a\"}\r\r"},
        {SSE_NOSPACE, "event:e\nid:7\ndata:{\"token\":\ndata:\"a\"}\n\n"},
    };
    struct buffer out;

    (void)state;
    buffer_init(&out, 1000);
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        const struct sse_event event = {
            .name = "e", .id = "7", .data = data, .data_len = sizeof(data) - 1};
        assert_int_equal(sse_append_event(&out, rows[row].wire, &event), 0);
        assert_bytes(&out, rows[row].event);
    }
    const struct sse_event done = {.data = "[DONE] and more", .data_len = 6};
    assert_int_equal(sse_append_event(&out, SSE_LF, &done), 0);
    assert_bytes(&out, "data: [DONE]\n\n");
    assert_int_equal(sse_append_comment(&out, SSE_CRLF, "ping"), 0);
    assert_bytes(&out, ": ping\r\n\r\n");
    assert_int_equal(sse_append_start(&out, SSE_BOM), 0);
    assert_bytes(&out, "\xef\xbb\xbf");
    buffer_free(&out);
}

static void test_a_full_buffer_is_told(void **state)
{
    const struct sse_event event = {.name = "error", .id = "1", .data = "{}", .data_len = 2};
    struct buffer out;

    (void)state;
    for (size_t ceiling = 0; ceiling < sizeof("event: error\nid: 1\ndata: {}\n\n") - 1;
         ceiling++) {
        buffer_init(&out, ceiling);
        assert_int_equal(sse_append_event(&out, SSE_LF, &event), -1);
        assert_true(out.failed);
        buffer_free(&out);
    }
}

/* --- a reader after WHATWG HTML, section 9.2.6; but a stricter one: it also ends lines where
 * careless clients do, at U+0085, U+2028 and U+2029, and so would lose what holds them --- */

struct reader {
    const char *at, *end;
    char data[4096]; /* of the event: lines joined with LF */
    size_t data_len;
    bool has_data;
    char id[32];
};

/* The next line; false at the end of the stream, and for a line without its end. */
static bool read_line(struct reader *reader, const char **line, size_t *len)
{
    *line = reader->at;
    for (const char *at = reader->at; at < reader->end; at++) {
        size_t left = (size_t)(reader->end - at);
        size_t width = 0;
        if (*at == '\n')
            width = 1;
        else if (*at == '\r')
            width = left > 1 && at[1] == '\n' ? 2 : 1;
        else if (left >= 2 && memcmp(at, "\xc2\x85", 2) == 0)
            width = 2;
        else if (left >= 3 &&
                 (memcmp(at, "\xe2\x80\xa8", 3) == 0 || memcmp(at, "\xe2\x80\xa9", 3) == 0))
            width = 3;
        if (width == 0)
            continue;
        *len = (size_t)(at - *line);
        reader->at = at + width;
        return true;
    }
    return false;
}

static void take_field(struct reader *reader, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    size_t name_len = colon != NULL ? (size_t)(colon - line) : len;
    const char *value = colon != NULL ? colon + 1 : line + len;

    if (value < line + len && *value == ' ')
        value++;
    size_t value_len = (size_t)(line + len - value);
    if (name_len == 4 && memcmp(line, "data", 4) == 0) {
        if (reader->has_data)
            reader->data[reader->data_len++] = '\n';
        memcpy(reader->data + reader->data_len, value, value_len);
        reader->data_len += value_len;
        reader->has_data = true;
    } else if (name_len == 2 && memcmp(line, "id", 2) == 0) {
        snprintf(reader->id, sizeof(reader->id), "%.*s", (int)value_len, value);
    } else {
        assert_int_equal(name_len, 0); /* a comment: no other field was written */
    }
}

/* The next event's data, NUL-terminated; false at the end. */
static bool read_event(struct reader *reader)
{
    const char *line;
    size_t len;

    reader->data_len = 0;
    reader->has_data = false;
    while (read_line(reader, &line, &len)) {
        if (len > 0) {
            take_field(reader, line, len);
        } else if (reader->has_data) {
            reader->data[reader->data_len] = '\0';
            return true;
        }
    }
    return false;
}

enum { TOKENS = 500 };

static void write_stream(struct buffer *out, enum sse_wire wire, const struct tokgen *tokens)
{
    const struct sse_event done = {.id = "done", .data = "[DONE]", .data_len = 6};

    sse_append_start(out, wire);
    for (uint64_t i = 0; i < TOKENS; i++) {
        char token[TOKGEN_TOKEN_MAX_BYTES];
        char id[24];
        struct buffer data;
        size_t len = tokgen_token(tokens, i, token, sizeof(token));
        buffer_init(&data, 1000);
        buffer_append_text(&data, wire == SSE_MULTILINE ? "{\"token\":\n" : "{\"token\":");
        json_append_string(&data, token, len);
        buffer_append_char(&data, '}');
        snprintf(id, sizeof(id), "%d", (int)i + 1);
        const struct sse_event event = {.id = id, .data = data.data, .data_len = data.len};
        assert_int_equal(sse_append_event(out, wire, &event), 0);
        if (i % 7 == 0)
            sse_append_comment(out, wire, "ping");
        buffer_free(&data);
    }
    sse_append_event(out, wire, &done);
    assert_int_equal(sse_append_finish(out, wire), 0);
}

static void read_stream(const struct buffer *out, enum sse_wire wire,
                        const struct tokgen *tokens)
{
    size_t skipped = wire == SSE_BOM ? 3 : 0;
    static struct reader reader;

    reader = (struct reader){.at = out->data + skipped, .end = out->data + out->len};
    for (uint64_t i = 0; i < TOKENS; i++) {
        char token[TOKGEN_TOKEN_MAX_BYTES + 1];
        char id[24];
        token[tokgen_token(tokens, i, token, TOKGEN_TOKEN_MAX_BYTES)] = '\0';
        snprintf(id, sizeof(id), "%d", (int)i + 1);
        assert_true(read_event(&reader));
        assert_string_equal(reader.id, id);
        cJSON *json = cJSON_Parse(reader.data);
        assert_non_null(json);
        assert_string_equal(cJSON_GetObjectItem(json, "token")->valuestring, token);
        cJSON_Delete(json);
    }
    assert_true(read_event(&reader));
    assert_string_equal(reader.data, "[DONE]");
    assert_string_equal(reader.id, "done");
    assert_false(read_event(&reader));
}

static void test_every_spelling_is_the_same_events(void **state)
{
    static const enum tokgen_vocab vocabs[] = {TOKGEN_WORDS, TOKGEN_TORTURE};

    (void)state;
    for (size_t v = 0; v < COUNT_OF(vocabs); v++) {
        for (unsigned wire = SSE_LF; wire <= SSE_DRIP; wire++) {
            struct tokgen tokens = tokgen_init("hello", 5, 0, vocabs[v]);
            struct buffer out;
            buffer_init(&out, 1 << 20);
            write_stream(&out, (enum sse_wire)wire, &tokens);
            assert_false(out.failed);
            read_stream(&out, (enum sse_wire)wire, &tokens);
            buffer_free(&out);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_a_full_buffer_is_told),
        cmocka_unit_test(test_every_spelling_is_the_same_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
